/* SPDX-License-Identifier: Apache-2.0
 * check-health: findings of src/health become warnings, or failures by configuration or vendor. Changes
 * nothing. */
#include "apply/device.h"
#include "apply/gpus.h"

#include "base/str.h"
#include "base/time.h"
#include "health/health.h"

#include <errno.h>

#define TRAINING_USEC (15 * USEC_PER_SEC)
#define PAUSE_USEC    (USEC_PER_SEC / 4)

typedef struct Check {
        Work *w;
        unsigned looks;                 /* bits of HealthLook */
        Findings found;
        bool asked;                     /* every GPU, by NVML */
        char *gpudirect;                /* NULL: not looked at */
} Check;

static bool looks_at(const Check *c, HealthLook look) {
        return c->looks >> look & 1;
}

static int gpu_index(const Work *w, const char *address) {
        char **seen = w->action->device.seen;
        for (int i = 0; seen && seen[i]; i++)
                if (streq(seen[i], address))
                        return i;
        return -1;
}

/* "GPU 3 (0000:86:00.0): 2 of 18 NVLinks are down …" */
static char *finding_line(const Work *w, const Finding *f) {
        int gpu = gpu_index(w, f->address);
        if (gpu >= 0)
                return xasprintf("GPU %d (%s): %s", gpu, f->address, f->text);
        bool named = !*f->address || strstr(f->text, f->address);
        return xasprintf("%s%s%s", named ? "" : f->address, named ? "" : ": ", f->text);
}

static json_t *finding_json(const Work *w, const Finding *f) {
        int gpu = gpu_index(w, f->address);
        _free_ char *line = finding_line(w, f);
        json_t *j = json_pack("{ss ss sb}", "word", f->word, "address", f->address, "unusable", f->unusable);
        json_set_text(j, "text", line);
        if (strv_contains(w->action->device.parameters, health_look_to_string(HEALTH_LOOK_REPAIR))) {
                _free_ char *reason = finding_reason(f);
                json_set_text(j, "reason", reason);
        }
        if (gpu >= 0)
                json_object_set_new(j, "gpu", json_integer(gpu));
        return j;
}

json_t *findings_json(const Work *w, const Findings *f) {
        json_t *all = json_array();
        for (size_t i = 0; i < f->n; i++)
                json_array_append_new(all, finding_json(w, &f->items[i]));
        return all;
}

static json_t *gpu_json(const Check *c, int index, const char *address) {
        _strv_ char **words = NULL;
        for (size_t i = 0; i < c->found.n; i++) {
                const Finding *f = &c->found.items[i];
                if (streq(f->address, address) && !strv_contains(words, f->word))
                        strv_add(&words, f->word);
        }
        return json_pack("{si ss so}", "index", index, "address", address, "health", json_list(words));
}

/* If NVML does not answer, only GPUs with findings are listed. */
static json_t *check_report(const Check *c) {
        const Action *a = c->w->action;
        json_t *findings = findings_json(c->w, &c->found), *gpus = json_array(),
               *looks = json_list(a->device.parameters);
        if (looks_at(c, HEALTH_LOOK_REPAIR))    /* the last one */
                json_array_remove(looks, json_array_size(looks) - 1);
        for (int i = 0; a->device.seen && a->device.seen[i]; i++)
                if (c->asked || ANY(f, c->found.items, c->found.n, streq(f->address, a->device.seen[i])))
                        json_array_append_new(gpus, gpu_json(c, i, a->device.seen[i]));
        json_t *report = json_pack("{so sb so so}", "looks", looks, "complete", c->asked, "findings",
                                   findings, "gpus", gpus);
        json_set_text(report, "gpudirect", c->gpudirect);
        return report;
}

static const Finding *fatal_of(const Work *w, const Findings *f, size_t *ret_more) {
        const Finding *first = NULL;
        *ret_more = 0;
        for (size_t i = 0; i < f->n; i++) {
                if (f->items[i].harmless || (w->action->lenient && !f->items[i].unusable))
                        continue;
                *ret_more += first != NULL;
                first = first ?: &f->items[i];
        }
        return first;
}

/* A sick GPU may stop answering, so earlier findings are kept. */
void findings_draft(Work *w, const Findings *f, json_t *found) {
        size_t more = 0;
        const Finding *fatal = fatal_of(w, f, &more), *first = fatal ?: f->items;
        work_draft(w, found, fatal ? CAUSE_HEALTH : CAUSE_NONE, first ? finding_line(w, first) : NULL);
}

int findings_judge(Work *w, const Findings *f) {
        size_t more = 0;
        const Finding *first = fatal_of(w, f, &more);
        for (size_t i = 0; i < f->n; i++) {
                _free_ char *line = finding_line(w, &f->items[i]);
                diag_warn_at(&w->warnings, f->items[i].word, NULL, w->action->id, "%s", line);
        }
        if (!first)
                return 0;
        _free_ char *line = finding_line(w, first),
                    *rest = more > 0 ? xasprintf(" (and %zu more)", more) : NULL;
        return work_fail(w, -EIO, CAUSE_HEALTH, "%s%s", line, rest ?: "");
}

/* Needs no NVML, which may hang for the same reason. */
static void machine_look(Check *c) {
        static char *none[] = { NULL };
        const Action *a = c->w->action;
        char **gpus = a->device.seen ?: none, **efa = a->device.efa ?: none;
        if (looks_at(c, HEALTH_LOOK_PCIE)) {
                health_pcie(c->w->root, "GPU", gpus, &c->found);
                health_pcie(c->w->root, "EFA device", efa, &c->found);
        }
        if (looks_at(c, HEALTH_LOOK_KERNEL_LOG))
                health_kernel_log(c->w->root, gpus, &c->found);
        if (looks_at(c, HEALTH_LOOK_EFA))
                health_efa_ports(c->w->root, efa, &c->found);
        bool required = looks_at(c, HEALTH_LOOK_GPUDIRECT_REQUIRED);
        if (required || looks_at(c, HEALTH_LOOK_GPUDIRECT))
                c->gpudirect = health_gpudirect(c->w->root, *efa != NULL, a->class == GPU_CLASS_TRAY,
                                                required, &c->found);
}

static void tell_at(void *userdata, const char *gpu, const char *what) {
        const Check *c = userdata;
        findings_draft(c->w, &c->found, check_report(c));
        work_at(c->w, "NVML did not answer when asked for %s of %s", what, gpu);
}

static bool links_are_down(Check *c, const NvmlGpus *gpus) {
        _cleanup_(findings_done) Findings found = {};
        bool down = false;
        health_gpus(gpus, 1U << HEALTH_LOOK_NVLINK, c->w->action->device.nvlinks, false, tell_at, &found, c);
        for (size_t i = 0; i < found.n; i++)
                down |= streq(found.items[i].word, "nvlink-down");
        return down;
}

/* A lost GPU is a finding, not an NVML error. */
static int gpus_look_at(Check *c) {
        _cleanup_(nvml_trouble_done) NvmlTrouble trouble = {};
        NvmlGpus gpus = {};
        int r = gpus_look(c->w, &gpus, &trouble);
        if (r < 0 && trouble.code != NVML_GPU_IS_LOST)
                return gpus_fail(c->w, &trouble);
        if (r < 0) {
                finding_add(&c->found, "off-the-bus", "", true,
                            "%s: a GPU no longer answers on the PCI bus, and NVML lists no GPU; reboot, "
                            "and replace the instance if that happens again",
                            trouble.text);
                return 0;
        }
        /* A100 does not report a complete fabric, and systemd calls a foreground fabric manager active before
         * it has trained a link. */
        uint64_t end = MIN(now_usec() + TRAINING_USEC, work_patience(c->w));
        bool train = looks_at(c, HEALTH_LOOK_NVLINK) && !looks_at(c, HEALTH_LOOK_FABRIC);
        while (train && links_are_down(c, &gpus) && now_usec() < end && work_pause(c->w, PAUSE_USEC))
                work_progress(c->w, "waiting for NVLinks that are down");
        health_gpus(&gpus, c->looks, c->w->action->device.nvlinks, looks_at(c, HEALTH_LOOK_FABRIC), tell_at,
                    &c->found, c);
        nvml_close(&gpus);
        c->asked = true;
        return 0;
}

int health_work(Work *w) {
        Check c = { .w = w };
        for (char **word = w->action->device.parameters; word && *word; word++) {
                int look = health_look_from_string(*word);
                c.looks |= look >= 0 ? 1U << look : 0;
        }
        machine_look(&c);
        findings_draft(w, &c.found, check_report(&c));
        bool alone = c.looks == 1U << HEALTH_LOOK_GPUDIRECT_REQUIRED; /* health: off */
        int r = alone ? 0 : gpus_look_at(&c), k = findings_judge(w, &c.found);
        w->found = check_report(&c);
        findings_done(&c.found);
        free(c.gpudirect);
        return r < 0 ? r : k;
}
