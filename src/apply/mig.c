/* SPDX-License-Identifier: Apache-2.0
 * set-mig-mode and partition-gpus: MIG mode and instances of all configured GPUs, or of none. Instances never
 * survive a reboot. On Hopper and later the mode does not either, and is set with them. On Ampere it is an
 * earlier step, before anything uses the GPUs (mig-mode.c). */
#include "apply/device.h"
#include "apply/mig.h"

#include "base/str.h"

#include <errno.h>

static void division_done(Division *d) {
        division_close(d);
        for (size_t i = 0; i < d->n; i++) {
                FREE_ALL(d->parts[i].name, d->parts[i].address, d->parts[i].profiles, d->parts[i].wanted);
                nvml_instances_done(&d->parts[i].before);
        }
        FREE_ALL(d->parts, d->reset_why);
}

static int part_look(Division *d, DividedGpu *part) {
        bool pending = false;
        work_at(d->w, "NVML did not answer when asked for the MIG mode of %s", part->name);
        int code = nvml_mig_mode(part->device, &part->was_on, &pending);
        if (code == NVML_NOT_SUPPORTED && !part_wants_mig(part))
                return 1;
        if (code == NVML_NOT_SUPPORTED)
                return work_fail(d->w, -EOPNOTSUPP, CAUSE_MIG,
                                 "%s cannot be partitioned: the GPU lacks MIG, or the driver is too old; "
                                 "install a newer driver, or remove spec.accelerator.nvidia.mig",
                                 part->name);
        if (code != NVML_OK)
                return division_fail(d, part, code, "its MIG mode cannot be read");
        part->supported = true;
        part->is_on = part->was_on;
        part->mode_same = part->was_on == part_wants_mig(part) && pending == part->was_on;
        int r = part_resolve(d, part);
        if (r < 0)
                return r;
        if (d->w->action->type == ACTION_SET_MIG_MODE && part->mode_same)
                return 1;
        code = part->was_on
                       ? nvml_mig_instances(part->device, part->profiles, part->n_profiles, &part->before)
                       : NVML_OK;
        if (code != NVML_OK)
                return division_fail(d, part, code, "its MIG instances cannot be listed");
        return part->mode_same ? part_same(d, part) : 0;
}

static int division_look(Division *d) {
        int r = division_open(d);
        bool same = true;
        for (size_t i = 0; r >= 0 && i < d->n; i++) {
                r = part_look(d, &d->parts[i]);
                d->parts[i].touched = r == 0;
                same &= r == 1;
        }
        return r < 0 ? r : same;
}

/* A pending mode stays: the configuration still wants it when the GPU is free. */
static int part_put_back(Division *d, const DividedGpu *part) {
        bool on = false, pending = false;
        int activation = NVML_OK, code = nvml_mig_mode(part->device, &on, &pending), r = 0;
        if (code == NVML_OK && on)
                r = part_clear(d, part, part->was_on ? &part->before : NULL);
        if (r >= 0 && code == NVML_OK && !d->accepted && (on != part->was_on || pending != part->was_on))
                code = nvml_mig_set_mode(part->device, part->was_on, &activation);
        return r < 0 || code != NVML_OK || activation != NVML_OK ? -EIO : instances_put_back(part);
}

/* The failure comes first, the state of the GPUs second. */
static int put_back(Division *d, int failure) {
        _free_ char *why = TAKE_PTR(d->w->text);
        Cause cause = d->w->cause;
        Text lost = {};
        if (!d->open && division_open(d) < 0)
                text_add(&lost, "any GPU");
        for (size_t i = 0; d->open && i < d->n; i++)
                if (d->parts[i].touched && part_put_back(d, &d->parts[i]) < 0)
                        text_add(&lost, "%s%s", lost.data ? ", " : "", d->parts[i].name);
        const char *became = lost.data     ? "; the earlier MIG state could not be restored on "
                             : d->accepted ? ""
                                           : "; every GPU has its earlier MIG state again";
        (void)work_fail(d->w, failure, cause, "%s%s%s", why ?: strerror(-failure), became, lost.data ?: "");
        text_done(&lost);
        return failure;
}

static int parts_fill(Division *d) {
        int r = division_open(d);
        THEN(r, modes_read(d));
        for (size_t i = 0; r >= 0 && i < d->n; i++) {
                DividedGpu *part = &d->parts[i];
                if (!part->touched || !part_wants_mig(part))
                        continue;
                r = part_resolve(d, part);
                THEN(r, part_fill(d, part));
        }
        return r;
}

static json_t *part_found(const Division *d, const DividedGpu *part) {
        _cleanup_(nvml_instances_done) NvmlInstances there = {};
        json_t *names = json_array();
        bool on = false, pending = false;
        if (part->supported && nvml_mig_mode(part->device, &on, &pending) == NVML_OK && on &&
            nvml_mig_instances(part->device, part->profiles, part->n_profiles, &there) == NVML_OK)
                for (size_t i = 0; i < there.n; i++)
                        json_array_append_new(names,
                                              json_string(part_profile(part, there.items[i].profile)->name));
        return json_pack("{s:i, s:s, s:b, s:o}", "index", (int)part->layout->gpu, "address",
                         d->gpus.items[part->layout->gpu].address, "mig", on, "profiles", names);
}

static int division_make(Division *d) {
        const Action *a = d->w->action;
        d->parts = xcalloc(a->device.n_layouts + 1, sizeof *d->parts);
        for (; d->n < a->device.n_layouts; d->n++)
                d->parts[d->n].layout = &a->device.layouts[d->n];
        int same = division_look(d), r = same != 0 ? same : modes_change(d);
        if (same == 0 && r >= 0 && a->type != ACTION_SET_MIG_MODE)
                r = parts_fill(d);
        if (same == 0 && r < 0 && !d->rebooting)
                r = put_back(d, r);
        if (!d->rebooting)              /* also units that an earlier process stopped */
                holders_start(d->w, a->type != ACTION_SET_MIG_MODE || r < 0);
        return r < 0 ? r : same == 0;
}

static int ledger_done(Work *w, int changed) {
        int r = root_remove(w->root, MIG_LEDGER);
        return r < 0 ? work_fail(w, r, CAUSE_MIG,
                                 "the MIG modes are as configured, but %s cannot be removed: %m", MIG_LEDGER)
                     : changed;
}

int mig_mode_work(Work *w) {
        _cleanup_(division_done) Division d = { .w = w };
        int changed = division_make(&d);
        return changed < 0 ? changed : ledger_done(w, changed);
}

int partition_work(Work *w) {
        _cleanup_(division_done) Division d = { .w = w };
        int changed = division_make(&d);
        if (changed < 0)
                return changed;
        json_t *gpus = json_array();
        for (size_t i = 0; i < d.n; i++)
                json_array_append_new(gpus, part_found(&d, &d.parts[i]));
        d.w->found = json_pack("{s:o}", "gpus", gpus);
        return ledger_done(w, changed);
}
