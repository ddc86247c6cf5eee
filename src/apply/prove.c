/* SPDX-License-Identifier: Apache-2.0
 * prove-gpus: nodestrap-prove tests the GPUs, in a unit of its own (units/nodestrap-prove@.service): libcuda
 * may crash or hang there. Once a boot, before anything uses the GPUs. If SIGKILL does not end the helper, it
 * is in the driver for good. Then no program can use the GPUs any more. */
#include "apply/device.h"
#include "apply/gpus.h"

#include "base/run.h"
#include "base/time.h"

#include <errno.h>

#define RESULTS     RUN_DIR "/prove"    /* stdout of the unit */
#define RESULTS_MAX (4U << 20)
#define STAMP       RUN_DIR "/gpus-proved"
#define END_USEC    (5 * USEC_PER_SEC)  /* for a killed helper */
#define PAUSE_USEC  (USEC_PER_SEC / 4)

/* Of one GPU, as NVML has them. */
typedef struct Counters { char address[24]; uint64_t errors, recoveries; bool pending, failed; } Counters;

typedef struct Proof {
        Work *w;
        char *unit;
        Findings found;
        Counters *before; size_t n_before;
} Proof;

static void counters_read(const NvmlGpu *gpu, unsigned nvlinks, Counters *ret) {
        snprintf(ret->address, sizeof ret->address, "%s", gpu->address);
        (void)!nvml_uncorrected_errors(gpu->device, &ret->errors);
        (void)!nvml_remapped_rows(gpu->device, &ret->pending, &ret->failed);
        for (unsigned i = 0; i < nvlinks; i++) {
                uint64_t n = 0;
                if (nvml_link_recoveries(gpu->device, i, &n) == NVML_OK)
                        ret->recoveries += n;
        }
}

/* The image may enable MIG; CUDA then sees parts of GPUs. */
static int look_before(Proof *p) {
        NvmlGpus gpus = {};
        bool current = false, pending = false;
        int r = gpus_open(p->w, &gpus);
        if (r < 0)
                return r;
        p->before = xcalloc(gpus.n + 1, sizeof *p->before);
        for (size_t i = 0; i < gpus.n; i++) {
                counters_read(&gpus.items[i], p->w->action->device.nvlinks, &p->before[p->n_before++]);
                if (nvml_mig_mode(gpus.items[i].device, &current, &pending) == NVML_OK && current)
                        finding_add(&p->found, "prove-mig", gpus.items[i].address, false,
                                    "it is in MIG mode, so no GPU was tested; keep the image from turning "
                                    "MIG mode on, or remove spec.accelerator.nvidia.prove");
        }
        nvml_close(&gpus);
        return p->found.n > 0 ? 0 : 1;
}

static void compare_counters(Proof *p, const Counters *before, const Counters *now) {
        if (now->errors > before->errors)
                finding_add(&p->found, "counter-grew", now->address, true,
                            "%ju uncorrectable memory errors during the test; replace the instance",
                            (uintmax_t)(now->errors - before->errors));
        if ((now->pending && !before->pending) || (now->failed && !before->failed))
                finding_add(&p->found, "counter-grew", now->address, true,
                            "a memory row failed during the test, and awaits remapping or could not be "
                            "remapped; replace the instance");
        if (now->recoveries > before->recoveries)
                finding_add(&p->found, "counter-grew", now->address, true,
                            "its NVLinks recovered from errors %ju times during the test: see nvidia-smi "
                            "nvlink -e; replace the instance",
                            (uintmax_t)(now->recoveries - before->recoveries));
}

static int look_after(Proof *p) {
        _cleanup_(nvml_trouble_done) NvmlTrouble trouble = {};
        NvmlGpus gpus = {};
        int r = gpus_look(p->w, &gpus, &trouble);
        if (r < 0 && trouble.code != NVML_GPU_IS_LOST)
                return gpus_fail(p->w, &trouble);
        if (r < 0)
                finding_add(&p->found, "off-the-bus", "", true,
                            "%s: a GPU fell off the PCI bus during its test; replace the instance",
                            trouble.text);
        for (size_t i = 0; i < gpus.n; i++) {
                Counters now = {};
                NvmlUuid uuid = {};
                const Counters *before =
                        FIND(b, p->before, p->n_before, streq(b->address, gpus.items[i].address));
                if (nvml_uuid(gpus.items[i].device, &uuid) == NVML_GPU_IS_LOST)
                        finding_add(&p->found, "off-the-bus", gpus.items[i].address, true,
                                    "it fell off the PCI bus during its test; replace the instance");
                counters_read(&gpus.items[i], p->w->action->device.nvlinks, &now);
                if (before)
                        compare_counters(p, before, &now);
        }
        if (r >= 0)
                nvml_close(&gpus);
        return 0;
}

/* ---- the unit ---- */

/* A property of the unit: "ActiveState", "Result". */
static char *unit_says(const Proof *p, const char *property) {
        _strv_ char **argv = command("systemctl", "show", "--property", property, "--value", p->unit, NULL);
        _cleanup_(child_result_done) ChildResult c = {};
        if (child_run_until(argv, now_usec() + END_USEC, p->w->cancel_fd, 4096, &c) < 0 || c.status != 0)
                return xstrdup("");
        c.output[strcspn(c.output, "\n")] = 0;
        return TAKE_PTR(c.output);
}

static bool has_ended(const Proof *p) {
        _free_ char *state = unit_says(p, "ActiveState");
        return !ONE_OF(state, "activating", "active", "deactivating");
}

static void unit_kill(Proof *p) {
        _strv_ char **argv = command("systemctl", "kill", "--signal=KILL", p->unit, NULL);
        _cleanup_(child_result_done) ChildResult c = {};
        (void)!child_run_until(argv, now_usec() + END_USEC, -1, 4096, &c);
        for (uint64_t end = now_usec() + END_USEC; now_usec() < end && !has_ended(p);)
                if (!work_pause(p->w, PAUSE_USEC))
                        return;
}

/* 0, also if the unit failed: its Result says how. < 0 after work_fail(). */
static int unit_run(Proof *p, const char **ret_ended, char **ret_result) {
        _strv_ char **argv = command("systemctl", "start", p->unit, NULL);
        _cleanup_(child_result_done) ChildResult c = {};
        uint64_t end = p->w->deadline_usec - 2 * END_USEC;
        work_at(p->w, "the GPUs were under test (%s)", p->unit);
        int r = child_run_until(argv, end, p->w->cancel_fd, 4096, &c);
        if (r < 0)
                return work_fail(p->w, r, CAUSE_HEALTH, "the GPUs cannot be tested: systemctl cannot be "
                                                        "started: %m");
        if (c.timed_out)
                unit_kill(p);
        else if (c.status != 0)
                *ret_result = unit_says(p, "Result");
        *ret_ended = c.timed_out ? "it did not end in time" : *ret_result;
        if (c.status == 0 || c.timed_out || !*c.errors || !streq(*ret_result, "success"))
                return 0;
        return work_fail(p->w, -EIO, CAUSE_HEALTH, "the GPUs cannot be tested: %s does not start: %s",
                         p->unit, c.errors);
}

static void find_stuck(Proof *p) {
        finding_add(&p->found, "prove-timeout", "", true,
                    "SIGKILL does not end the test (%s): the driver does not return. So no program can use "
                    "the GPUs in this boot; reboot, and replace the instance if it happens again",
                    p->unit);
}

/* ---- the step ---- */

static void proof_done(Proof *p) {
        FREE_ALL(p->unit, p->before);
        findings_done(&p->found);
}

static json_t *take_results(Proof *p, const char *ended) {
        static char *none[] = { NULL };
        const Action *a = p->w->action;
        _free_ char *text = NULL, *users = holders_found(p->w);
        size_t size = 0;
        if (root_read(p->w->root, RESULTS, RESULTS_MAX, &text, &size) < 0)
                RENEW(text, xstrdup(""));
        return prove_judge(&(ProveInput){ .text = text, .ended = ended, .gpus = a->device.seen ?: none,
                                          .users = users, .bandwidth = a->device.bandwidth,
                                          .links = a->device.nvlinks > 0 },
                           &p->found);
}

static json_t *with_findings(const Proof *p, json_t *found) {
        json_object_set_new(json_object_get(found, "prove"), "findings", findings_json(p->w, &p->found));
        return found;
}

static int test(Proof *p) {
        _free_ char *result = NULL;
        const char *ended = NULL;
        (void)!root_remove(p->w->root, RESULTS);
        int r = unit_run(p, &ended, &result);
        if (r < 0)
                return r;
        json_t *found = with_findings(p, take_results(p, ended));
        bool stuck = !has_ended(p);
        findings_draft(p->w, &p->found, json_incref(found));
        if (stuck)
                find_stuck(p);
        else
                r = look_after(p);
        int k = findings_judge(p->w, &p->found);
        p->w->found = with_findings(p, found);
        return r < 0 ? r : k;
}

/* A later process of this boot finds the stamp. */
static bool is_proved(Work *w, char digest[static 65]) {
        _cleanup_(nvml_trouble_done) NvmlTrouble trouble = {};
        _cleanup_(gpu_names_done) GpuNames names = {};
        *digest = 0;
        if (gpu_names_read(w, &names, &trouble) < 0)
                return false;
        gpu_names_digest(w, &names, digest);
        return stamp_same(w, STAMP, digest);
}

int prove_work(Work *w) {
        const Action *a = w->action;
        uint64_t seconds = a->deadline_usec / USEC_PER_SEC - PROVE_MORE_SEC;
        _cleanup_(proof_done) Proof p = { .w = w };
        char digest[65];
        p.unit = xasprintf("nodestrap-prove@%ju.service", (uintmax_t)seconds);
        if (is_proved(w, digest))
                return 0;
        if (!holders_may_stop(w)) {
                finding_add(&p.found, "prove-in-use", "", false,
                            "the GPUs were not tested: kubelet may already be running, and its pods may "
                            "use them");
                p.found.items->harmless = true;
                return findings_judge(w, &p.found);
        }
        /* A killed process of this boot left it. */
        if (!has_ended(&p))
                unit_kill(&p);
        if (!has_ended(&p)) {
                find_stuck(&p);
                return findings_judge(w, &p.found);
        }
        int r = look_before(&p);
        if (r == 0)
                return findings_judge(w, &p.found);
        THEN(r, test(&p));
        if (r >= 0 && *digest)
                stamp_write(w, STAMP, digest);
        return r < 0 ? r : 1;
}
