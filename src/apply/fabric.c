/* SPDX-License-Identifier: Apache-2.0
 * await-fabric: every GPU has joined the NVLink fabric, by NVML. Until then CUDA fails with error 802 on some
 * or all GPUs. A GPU that did not join still works without NVLink, so each one is checked
 * (docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide). */
#include "apply/device.h"
#include "apply/gpus.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>

#define LATE_PART       50U                     /* poll interval: time waited / LATE_PART */
#define STEP_MIN_USEC   (100 * USEC_PER_MSEC)
#define STEP_MAX_USEC   USEC_PER_SEC

typedef struct Gate {
        Work *w;
        uint64_t start_usec;
        NvmlGpus gpus;
        bool open;
        NvmlFabric *seen;       /* last answer of each GPU */
        size_t n_seen;          /* how many have answered */
        NvmlTrouble trouble;    /* of the last poll, if it failed */
} Gate;

static void gate_done(Gate *g) {
        if (g->open)
                nvml_close(&g->gpus);
        g->open = false;
        g->n_seen = 0;
        free(TAKE_PTR(g->seen));
        nvml_trouble_done(&g->trouble);
}

static bool has_uuid(const NvmlFabric *f) {
        static const unsigned char zero[sizeof f->uuid];
        return memcmp(f->uuid, zero, sizeof zero) != 0;
}

/* The fabric of a tray is that of its rack and has a UUID. Other machines have none
 * (pytorch/ci-infra:osdc/docs/h100-fabric-handles-imex-channels.md). */
static bool has_joined(const Gate *g, const NvmlFabric *f) {
        return f->state == NVML_FABRIC_COMPLETED && f->status == NVML_OK &&
               (g->w->action->class != GPU_CLASS_TRAY || has_uuid(f));
}

static char *state_words(const Gate *g, const NvmlFabric *f) {
        const char *state = nvml_fabric_state_to_string(f->state);
        if (!state)
                return xasprintf("in state %u (unknown to nodestrap)", (unsigned)f->state);
        const char *fault = f->misconfigured, *before = fault ? ", configuration: " : "";
        if (f->state != NVML_FABRIC_COMPLETED || has_joined(g, f))
                return xasprintf("%s%s%s", state, before, fault ?: "");
        if (f->status == NVML_OK)
                return xasprintf("%s, but without a cluster UUID%s%s", state, before, fault ?: "");
        _free_ char *status = nvml_text(f->status);
        return xasprintf("%s with status %s%s%s", state, status, before, fault ?: "");
}

static char *gpu_words(const Gate *g, size_t i, const char *between) {
        _free_ char *name = gpu_name(&g->gpus, i), *state = state_words(g, &g->seen[i]);
        return xasprintf("%s%s %s", name, between, state);
}

static size_t count_joined(const Gate *g, size_t *ret_first) {
        size_t joined = 0, first = g->gpus.n;
        for (size_t i = 0; i < g->gpus.n; i++) {
                bool has = has_joined(g, &g->seen[i]);
                joined += has;
                if (!has && first == g->gpus.n)
                        first = i;
        }
        *ret_first = first;
        return joined;
}

static const char *advice(GpuClass class) {
        switch (class) {
        case GPU_CLASS_TRAY:
                return "the rack has the switches and their fabric manager, so this host cannot correct "
                       "that. Look at the NMX controller of the rack, and at the partition of this tray";
        case GPU_CLASS_NVLINK5:
                return "journalctl -u nvidia-fabricmanager shows what fabric manager and NVLSM did; check "
                       "also that ib_umad is loaded and /dev/infiniband/umad* exist";
        default:
                return "journalctl -u nvidia-fabricmanager shows what fabric manager did";
        }
}

/* GPUs that answered and have not joined; NULL: none. after: " after 3 s" */
static char *late_words(const Gate *g, const char *after) {
        Text t = {};
        for (size_t i = 0, told = 0; i < g->n_seen; i++) {
                if (has_joined(g, &g->seen[i]))
                        continue;
                _free_ char *state = state_words(g, &g->seen[i]), *words = gpu_words(g, i, "");
                if (told++ == 0)
                        text_add(&t, "GPU %zu of %zu (%s) still %s%s", i, g->gpus.n,
                                 g->gpus.items[i].address, state, after);
                else
                        text_add(&t, "%s%s", told == 2 ? "; also " : ", ", words);
        }
        if (t.data)
                text_add(&t, "; %s", advice(g->w->action->class));
        return t.data;
}

static int fail_late(Gate *g) {
        uint64_t usec = now_usec() - g->start_usec + g->w->waited_usec + USEC_PER_SEC - 1;
        _free_ char *after = xasprintf(" after %ju s", (uintmax_t)(usec / USEC_PER_SEC)),
                    *words = late_words(g, after);
        if (!words)
                return work_fail(g->w, -ETIMEDOUT, CAUSE_NVML,
                                 "%s, even%s; dmesg | grep -E 'NVRM|Xid' shows what the driver reports",
                                 g->trouble.text, after);
        return work_fail(g->w, -ETIMEDOUT, CAUSE_FABRIC, "%s%s%s", words, g->trouble.text ? "; " : "",
                         g->trouble.text ?: "");
}

static json_t *gpu_found(const Gate *g, size_t i) {
        const NvmlFabric *f = &g->seen[i];
        bool completed = f->state == NVML_FABRIC_COMPLETED;
        _free_ char *status = !completed             ? NULL
                              : f->status == NVML_OK ? xstrdup("Success")
                                                     : nvml_text(f->status);
        return json_pack("{s:I, s:s, s:s, s:s?}", "index", (json_int_t)i, "address", g->gpus.items[i].address,
                         "state", nvml_fabric_state_to_string(f->state) ?: "unknown", "status", status);
}

/* Pods get nvidia.com/gpu.clique only if all GPUs share one clique. */
static void tell_clique(Gate *g, json_t *found) {
        for (size_t i = 1; i < g->gpus.n; i++)
                if (memcmp(g->seen[0].uuid, g->seen[i].uuid, sizeof g->seen[0].uuid) != 0 ||
                    g->seen[0].clique != g->seen[i].clique) {
                        _free_ char *first = gpu_name(&g->gpus, 0), *other = gpu_name(&g->gpus, i);
                        diag_warn_at(&g->w->warnings, "fabric-cliques", NULL, g->w->action->id,
                                     "%s and %s are in different cliques of the fabric: the node gets no "
                                     "label nvidia.com/gpu.clique; look at the partitions of the rack",
                                     first, other);
                        return;
                }
        _cleanup_(text_done) Text uuid = {};
        for (size_t i = 0; i < 16 && has_uuid(&g->seen[0]); i++)
                text_add(&uuid, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                         g->seen[0].uuid[i]);
        json_object_set_new(found, "clusterUuid", uuid.data ? json_string(uuid.data) : json_null());
        json_object_set_new(found, "cliqueId", json_integer(g->seen[0].clique));
}

static json_t *gate_found(const Gate *g) {
        json_t *gpus = json_array();
        uint64_t tenths = (now_usec() - g->start_usec + g->w->waited_usec) / (USEC_PER_SEC / 10);
        for (size_t i = 0; i < g->n_seen; i++)
                json_array_append_new(gpus, gpu_found(g, i));
        return json_pack("{s:n, s:n, s:o, s:f}", "clusterUuid", "cliqueId", "gpus", gpus, "seconds",
                         (double)tenths / 10);
}

static int gpu_look(Gate *g, size_t i) {
        _free_ char *name = gpu_name(&g->gpus, i);
        work_at(g->w, "NVML did not answer when asked for the fabric state of %s", name);
        int code = nvml_fabric(g->gpus.items[i].device, &g->seen[i]);
        if (code == NVML_NOT_SUPPORTED) {
                g->seen[i] = (NvmlFabric){ .state = NVML_FABRIC_NOT_SUPPORTED };
                return 0;
        }
        if (code == NVML_OK)
                return 0;
        _free_ char *text = nvml_text(code);
        g->trouble = (NvmlTrouble){ code, xasprintf("the fabric state of %s cannot be read: "
                                                    "%s", name, text) };
        return -EIO;
}

static int fabric_look(Gate *g) {
        nvml_trouble_done(&g->trouble);
        int r = g->open ? 0 : gpus_look(g->w, &g->gpus, &g->trouble);
        if (r >= 0 && !g->open) {
                g->open = true;
                g->seen = xcalloc(g->gpus.n, sizeof *g->seen);
        }
        for (size_t i = 0; r == 0 && i < g->gpus.n; i++) {
                r = gpu_look(g, i);
                if (r == 0) {
                        g->n_seen = MAX(g->n_seen, i + 1);
                        /* The deadline may pass during a round: eight answers take time, and NVML may never
                         * give the last one. */
                        char *late = late_words(g, "");
                        work_draft(g->w, gate_found(g), late ? CAUSE_FABRIC : CAUSE_NONE, late);
                }
        }
        return r;
}

/* 1: all have joined, 0: not yet. Errors while the driver settles are retried; others end the wait. */
static int gate_ask(Gate *g) {
        size_t first = 0;
        if (fabric_look(g) < 0) {
                if (g->trouble.code == NVML_OK || nvml_is_final(g->trouble.code))
                        return gpus_fail(g->w, &g->trouble);
                work_progress(g->w, "%s", g->trouble.text);
                return 0;
        }
        if (g->w->action->class == GPU_CLASS_NVSWITCH &&
            !ANY(s, g->seen, g->gpus.n, s->state != NVML_FABRIC_NOT_SUPPORTED))
                return work_fail(
                        g->w, -EOPNOTSUPP, CAUSE_FABRIC,
                        "the driver reports the fabric state Not Supported for all %zu GPUs, although the "
                        "machine has NVSwitches. Check that driver and firmware support this machine",
                        g->gpus.n);
        size_t joined = count_joined(g, &first);
        if (joined == g->gpus.n)
                return 1;
        _free_ char *words = gpu_words(g, first, "");
        work_progress(g->w, "%zu of %zu GPUs have joined the fabric; %s", joined, g->gpus.n, words);
        return 0;
}

static int gate_wait(Gate *g) {
        uint64_t end = work_patience(g->w);     /* leaves time to name the GPU */
        for (bool waited_already = false;; waited_already = true) {
                int r = gate_ask(g);
                if (r != 0)
                        return r < 0 ? r : waited_already;
                uint64_t now = now_usec(), part = (now - g->start_usec) / LATE_PART,
                         step = MIN(MAX(part, STEP_MIN_USEC), STEP_MAX_USEC);
                if (now < end && work_pause(g->w, MIN(step, end - now)))
                        continue;
                return fail_late(g);
        }
}

int fabric_work(Work *w) {
        _cleanup_(gate_done) Gate g = { .w = w, .start_usec = now_usec() };
        int r = gate_wait(&g);
        w->found = gate_found(&g);
        if (r >= 0)
                tell_clique(&g, w->found);
        return r;
}
