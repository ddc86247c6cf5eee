/* SPDX-License-Identifier: Apache-2.0
 * partition-gpus: MIG mode and instances as the layouts say, on all of their GPUs or on none. Instances live
 * until the next boot on every GPU, the mode does on Hopper and later; on Ampere the mode stays and its
 * change waits for a reset, which inside a virtual machine may be possible only by a reboot: that is made
 * once, before kubelet's turn, and LEDGER remembers it (docs.nvidia.com/datacenter/tesla/mig-user-guide;
 * NVIDIA/mig-parted does the same). */
#include "apply/device.h"
#include "apply/gpus.h"
#include "apply/mig-places.h"

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <stdio.h>

#define LEDGER "/var/lib/nodestrap/mig-reboot"
#define LEDGER_MAX (16 << 10)
#define IN_USE_ASKS 5                   /* a second apart: whoever looks at
                                         * GPUs at boot lets go of them soon */

typedef struct DividedGpu {                   /* one GPU and what is wanted of it */
        const MigLayout *layout;
        NvmlDevice device;
        char *name, *address;           /* "GPU 3 (0000:86:00.0)", "0000:86:00.0":
                                         * known also while the library is closed */
        NvmlProfile *profiles; size_t n_profiles;
        NvmlProfile *wanted; size_t n_wanted;
        bool supported, was_on, is_on, touched;
        NvmlInstances before;
} DividedGpu;

typedef struct Division {
        Work *w;
        NvmlGpus gpus;
        bool open;
        DividedGpu *parts; size_t n;
        bool rebooting;
        char *reset_why;                /* why resetting did not help */
} Division;

static void division_close(Division *d) {
        if (d->open)
                nvml_close(&d->gpus);
        d->open = false;
}

static void division_done(Division *d) {
        division_close(d);
        for (size_t i = 0; i < d->n; i++) {
                free(d->parts[i].name);
                free(d->parts[i].address);
                free(d->parts[i].profiles);
                free(d->parts[i].wanted);
                nvml_instances_done(&d->parts[i].before);
        }
        free(d->parts);
        free(d->reset_why);
}

static int fail_part(Division *d, const DividedGpu *part, int code, const char *what) {
        _cleanup_(freep) char *text = nvml_text(code);
        return work_fail(d->w, -EIO, code == NVML_OK || nvml_is_final(code) ? CAUSE_NVML : CAUSE_MIG,
                         "%s: %s: %s%s", part->name, what, text,
                         code == NVML_IN_USE ? "; nvidia-smi and fuser -v /dev/nvidia* show who uses it "
                                               "(DCGM, a device plugin), and a loaded nvidia_drm "
                                               "keeps it from being reset"
                                             : "");
}

/* Handles are the library's until it is closed; a change of mode, or a reset, may make new ones. */
static int division_open(Division *d) {
        division_close(d);
        int r = gpus_open(d->w, &d->gpus);
        if (r < 0)
                return r;
        d->open = true;
        for (size_t i = 0; i < d->n; i++) {
                unsigned gpu = d->parts[i].layout->gpu;
                if (gpu >= d->gpus.n)
                        return work_fail(
                                d->w, -ENODEV, CAUSE_MIG,
                                "spec.accelerator.nvidia.mig names GPU %u, and there are %zu, from 0 on", gpu,
                                d->gpus.n);
                d->parts[i].device = d->gpus.items[gpu].device;
                if (d->parts[i].name)
                        continue;
                d->parts[i].name = gpu_name(&d->gpus, gpu);
                d->parts[i].address = xstrdup(d->gpus.items[gpu].address);
        }
        return 0;
}

/* ---- what is wanted ---- */

static const NvmlProfile *profile_named(const DividedGpu *part, const char *name) {
        uint64_t id = 0;
        bool number = parse_u64(name, &id) >= 0;
        for (size_t i = 0; i < part->n_profiles; i++)
                if (number ? part->profiles[i].id == id : streq(part->profiles[i].name, name))
                        return &part->profiles[i];
        return NULL;
}

static const NvmlProfile *profile_of(const DividedGpu *part, unsigned id) {
        for (size_t i = 0; i < part->n_profiles; i++)
                if (part->profiles[i].id == id)
                        return &part->profiles[i];
        return NULL;
}

static int fail_profile(Division *d, const DividedGpu *part, const char *name) {
        _cleanup_(strv_freep) char **names = NULL;
        for (size_t i = 0; i < part->n_profiles; i++)
                strv_push(&names, *part->profiles[i].name ? xstrdup(part->profiles[i].name)
                                                          : xasprintf("%u", part->profiles[i].id));
        _cleanup_(freep) char *list = strv_join(names, ", ");
        return work_fail(d->w, -EINVAL, CAUSE_MIG, "%s has no MIG profile %s; it has %s", part->name, name,
                         names ? list : "none");
}

/* Profiles are asked for by name, and their numbers differ between GPUs. Some drivers list them only while
 * the mode is on. */
static int part_resolve(Division *d, DividedGpu *part) {
        NvmlProfile *profiles = NULL;
        int code = nvml_mig_profiles(part->device, &profiles, &part->n_profiles);
        if (code != NVML_OK)
                return fail_part(d, part, code, "its MIG profiles cannot be listed");
        free(part->profiles);
        free(TAKE_PTR(part->wanted));
        part->profiles = profiles;
        part->n_wanted = 0;
        if (part->n_profiles == 0 && !part->is_on)
                return 0;
        part->wanted = xcalloc(strv_length(part->layout->profiles) + 1, sizeof *part->wanted);
        for (char **name = part->layout->profiles; name && *name; name++) {
                const NvmlProfile *profile = profile_named(part, *name);
                if (!profile)
                        return fail_profile(d, part, *name);
                part->wanted[part->n_wanted++] = *profile;
        }
        return 0;
}

static bool wants_on(const DividedGpu *part) {
        return part->layout->profiles && part->layout->profiles[0];
}

/* ---- what is there ---- */

static size_t count_wanted(const DividedGpu *part, unsigned id) {
        size_t n = 0;
        for (size_t i = 0; i < part->n_wanted; i++)
                n += part->wanted[i].id == id;
        return n;
}

static int part_same(Division *d, const DividedGpu *part) {
        if (part->before.n != part->n_wanted)
                return 0;
        for (size_t i = 0; i < part->before.n; i++) {
                unsigned id = part->before.items[i].profile;
                size_t there = 0;
                bool whole = false;
                for (size_t k = 0; k < part->before.n; k++)
                        there += part->before.items[k].profile == id;
                int code = nvml_mig_is_whole(&part->before.items[i], profile_of(part, id), &whole);
                if (code != NVML_OK)
                        return fail_part(d, part, code, "its compute instances cannot be listed");
                if (!whole || there != count_wanted(part, id))
                        return 0;
        }
        return 1;
}

/* 1: is as wanted, 0: is not. */
static int part_look(Division *d, DividedGpu *part) {
        bool pending = false;
        work_at(d->w, "NVML was asked for the MIG mode of %s, and did not answer", part->name);
        int code = nvml_mig_mode(part->device, &part->was_on, &pending);
        if (code == NVML_NOT_SUPPORTED && !wants_on(part))
                return 1;
        if (code == NVML_NOT_SUPPORTED)
                return work_fail(
                        d->w, -EOPNOTSUPP, CAUSE_MIG,
                        "%s cannot be divided: it knows no MIG, or the driver is too old for its MIG",
                        part->name);
        if (code != NVML_OK)
                return fail_part(d, part, code, "its MIG mode cannot be read");
        part->supported = true;
        part->is_on = part->was_on;
        int r = part_resolve(d, part);
        if (r < 0)
                return r;
        code = part->was_on
                       ? nvml_mig_instances(part->device, part->profiles, part->n_profiles, &part->before)
                       : NVML_OK;
        if (code != NVML_OK)
                return fail_part(d, part, code, "its MIG instances cannot be listed");
        return part->was_on == wants_on(part) && pending == part->was_on ? part_same(d, part) : 0;
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

/* ---- instances ---- */

static const NvmlInstance *instance_like(const NvmlInstances *list, const NvmlInstance *i) {
        for (size_t k = 0; list && k < list->n; k++)
                if (list->items[k].profile == i->profile && list->items[k].start == i->start &&
                    list->items[k].size == i->size)
                        return &list->items[k];
        return NULL;
}

/* keep: places of instances that stay; or NULL. */
static int part_clear(Division *d, const DividedGpu *part, const NvmlInstances *keep) {
        _cleanup_(nvml_instances_done) NvmlInstances there = {};
        int code = nvml_mig_instances(part->device, part->profiles, part->n_profiles, &there);
        if (code != NVML_OK)
                return fail_part(d, part, code, "its MIG instances cannot be listed");
        for (size_t i = 0; i < there.n; i++) {
                if (instance_like(keep, &there.items[i]))
                        continue;
                const NvmlProfile *profile = profile_of(part, there.items[i].profile);
                _cleanup_(freep) char *what = xasprintf("the instance %s cannot be destroyed", profile->name);
                code = nvml_mig_destroy(&there.items[i]);
                if (code != NVML_OK)
                        return fail_part(d, part, code, what);
        }
        return 0;
}

static int fail_fit(Division *d, const DividedGpu *part) {
        _cleanup_(freep) char *list = strv_join(part->layout->profiles, ", ");
        return work_fail(d->w, -ENOSPC, CAUSE_MIG,
                         "%s: %s do not fit together, in whatever order; nvidia-smi mig -lgipp shows the "
                         "places of each profile",
                         part->name, list);
}

static int fail_create(Division *d, const DividedGpu *part, const NvmlProfile *profile, int code) {
        _cleanup_(freep) char *what = xasprintf("an instance %s cannot be made", profile->name);
        return fail_part(d, part, code, what);
}

/* The driver puts each where it likes, and small ones may leave no room for a large one: so their places are
 * chosen here. */
static int part_fill_by_place(Division *d, const DividedGpu *part) {
        _cleanup_(places_done) Places p = {};
        if (part->n_wanted > PLACES_MAX)
                return fail_fit(d, part);
        for (; p.n < part->n_wanted; p.n++) {
                int code = nvml_mig_places(part->device, part->wanted[p.n].id, &p.possible[p.n]);
                if (code != NVML_OK)
                        return fail_part(d, part, code, "the places of its MIG profiles cannot be listed");
        }
        if (!places_choose(&p))
                return fail_fit(d, part);
        for (size_t i = 0; i < p.n; i++) {
                int code = nvml_mig_create(part->device, &part->wanted[i], p.chosen[i]);
                if (code != NVML_OK)
                        return code == NVML_INSUFFICIENT_RESOURCES
                                       ? fail_fit(d, part)
                                       : fail_create(d, part, &part->wanted[i], code);
        }
        return 0;
}

static int part_fill(Division *d, const DividedGpu *part) {
        work_at(d->w, "NVML was asked to divide %s, and did not answer", part->name);
        int r = part_clear(d, part, NULL);
        for (size_t i = 0; r >= 0 && i < part->n_wanted; i++) {
                int code = nvml_mig_create(part->device, &part->wanted[i], NULL);
                if (code == NVML_INSUFFICIENT_RESOURCES) {
                        r = part_clear(d, part, NULL);
                        return r < 0 ? r : part_fill_by_place(d, part);
                }
                r = code == NVML_OK ? 0 : fail_create(d, part, &part->wanted[i], code);
        }
        return r;
}

/* ---- mode ---- */

/* 1: waits for a reset. */
static int part_set_mode(Division *d, DividedGpu *part, bool on) {
        int activation = NVML_OK, code = NVML_OK;
        for (int asks = 0; asks < IN_USE_ASKS; asks++) {
                work_at(d->w, "NVML was asked to set the MIG mode of %s, and did not answer", part->name);
                code = nvml_mig_set_mode(part->device, on, &activation);
                code = code == NVML_OK ? activation : code;
                if (code != NVML_IN_USE)
                        break;
                work_progress(d->w, "%s is in use, its MIG mode cannot be set", part->name);
                if (!work_pause(d->w, USEC_PER_SEC))
                        break;
        }
        if (code != NVML_OK && code != NVML_RESET_REQUIRED)
                return fail_part(d, part, code, "its MIG mode cannot be set");
        return code == NVML_RESET_REQUIRED;
}

static int modes_set(Division *d) {
        bool reset = false;
        for (size_t i = 0; i < d->n; i++) {
                DividedGpu *part = &d->parts[i];
                bool on = wants_on(part);
                int r = part->touched && part->was_on && !on ? part_clear(d, part, NULL) : 0;
                if (r >= 0 && part->touched)
                        r = part_set_mode(d, part, on);
                if (r < 0)
                        return r;
                reset |= r > 0;
        }
        return reset;
}

/* After the handles were renewed: 1 if every GPU has the mode that is wanted. */
static int modes_read(Division *d) {
        bool all = true, pending = false;
        for (size_t i = 0; i < d->n; i++) {
                DividedGpu *part = &d->parts[i];
                int code = part->supported ? nvml_mig_mode(part->device, &part->is_on, &pending) : NVML_OK;
                if (code != NVML_OK)
                        return fail_part(d, part, code, "its MIG mode cannot be read");
                all &= !part->touched || part->is_on == wants_on(part);
        }
        return all;
}

/* GPUs that an NVSwitch connects can only be reset together, and fabric manager trains their links anew:
 * docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide. */
static int reset_all(Division *d) {
        bool together = d->w->action->class == GPU_CLASS_NVSWITCH;
        division_close(d);             /* else this process itself uses them */
        for (size_t i = 0; i < d->n; i++) {
                unsigned gpu = d->parts[i].layout->gpu;
                if (!d->parts[i].touched)
                        continue;
                _cleanup_(strv_freep) char **argv = command(
                        "nvidia-smi", "--gpu-reset", together ? NULL : "-i", d->parts[i].address, NULL);
                _cleanup_(freep) char *what = together ? xstrdup("the GPUs cannot be reset")
                                                       : xasprintf("GPU %u cannot be reset", gpu);
                int r = work_run(d->w, CAUSE_MIG, what, argv);
                if (r < 0 || together)
                        return r;
        }
        return 0;
}

static int fabric_manager_restart(Division *d) {
        _cleanup_(strv_freep) char **argv =
                command("systemctl", "try-restart", "nvidia-fabricmanager.service", NULL);
        if (d->w->action->class != GPU_CLASS_NVSWITCH)
                return 0;
        return work_run(d->w, CAUSE_FABRIC_MANAGER,
                        "fabric manager does not come back after the GPUs were reset", argv);
}

/* ---- the one reboot ---- */

static char *ledger_text(const Division *d) {
        Text t = {};
        for (size_t i = 0; i < d->n; i++) {
                _cleanup_(freep) char *list = strv_join(d->parts[i].layout->profiles, ",");
                text_add(&t, "%u %s\n", d->parts[i].layout->gpu, list);
        }
        return text_take(&t);
}

/* The first line is the boot's id, the others are the layouts. */
static bool ledger_says(const Division *d, const char *wanted, char **ret_boot) {
        _cleanup_(freep) char *text = NULL;
        if (root_read(d->w->root, LEDGER, LEDGER_MAX, &text, NULL) < 0)
                return false;
        char *rest = strchr(text, '\n');
        if (!rest || !streq(rest + 1, wanted))
                return false;
        *ret_boot = xstrndup(text, (size_t)(rest - text));
        return true;
}

static int ledger_write(Division *d, const char *boot, const char *wanted) {
        _cleanup_(freep) char *text = xasprintf("%s\n%s", boot, wanted);
        int r = root_replace(d->w->root, LEDGER, text, strlen(text), 0644);
        return r < 0 ? work_fail(d->w, r, CAUSE_MIG_REBOOT,
                                 "MIG mode takes effect after a reboot, which is not made, since %s cannot "
                                 "be written: %s",
                                 LEDGER, strerror(-r))
                     : 0;
}

static char *waiting_parts(const Division *d) {
        Text t = {};
        for (size_t i = 0; i < d->n; i++)
                if (d->parts[i].touched && d->parts[i].is_on != wants_on(&d->parts[i]))
                        text_add(&t, "%s%s", t.data ? ", " : "", d->parts[i].name);
        return text_take(&t);
}

static int reboot_once(Division *d) {
        _cleanup_(strv_freep) char **argv = command("systemctl", "--no-block", "reboot", NULL);
        _cleanup_(freep) char *wanted = ledger_text(d), *boot = NULL, *earlier = NULL,
                              *gpus = waiting_parts(d);
        int r = root_boot_id(d->w->root, &boot);
        if (r < 0)
                return work_fail(d->w, r, CAUSE_MIG_REBOOT,
                                 "MIG mode of %s takes effect after a reboot, which is not made, since this "
                                 "boot has no id: %s",
                                 gpus, strerror(-r));
        d->rebooting = ledger_says(d, wanted, &earlier) && streq(earlier, boot);
        if (d->rebooting)
                return work_fail(d->w, -EINPROGRESS, CAUSE_MIG_REBOOT,
                                 "MIG mode of %s takes effect after a reboot, which was asked for earlier in "
                                 "this boot",
                                 gpus);
        if (earlier)
                return work_fail(d->w, -EIO, CAUSE_MIG_REBOOT,
                                 "MIG mode of %s is still pending after the reboot that was made for it; no "
                                 "second one is made: "
                                 "nvidia-smi -q shows the modes, and removing " LEDGER " allows another",
                                 gpus);
        /* a step that is told as late must not take the machine with it later on */
        if (!work_pause(d->w, 0))
                return work_fail(d->w, -ECANCELED, CAUSE_MIG_REBOOT,
                                 "given up before MIG mode of %s took effect", gpus);
        /* pods may run, and nobody has drained the node */
        if (root_exists(d->w->root, KUBELET_TURN) != 0)
                return work_fail(d->w, -EBUSY, CAUSE_MIG_REBOOT,
                                 "MIG mode of %s takes effect after a reboot (%s), which is not made, since "
                                 "kubelet may run "
                                 "already; drain the node and reboot it",
                                 gpus, d->reset_why ?: "resetting did not change it");
        r = ledger_write(d, boot, wanted);
        if (r < 0)
                return r;
        /* Said before it is asked for: the reboot ends this run with SIGTERM, maybe before it comes to its
         * verdict. */
        log_warning("%s: MIG mode of %s takes effect after a reboot (%s); this machine reboots now, once",
                    d->w->action->id, gpus, d->reset_why ?: "resetting did not change it");
        r = work_run(d->w, CAUSE_MIG_REBOOT,
                     "MIG mode takes effect after a reboot, which cannot be asked for", argv);
        /* The signal ends systemctl too; where it does not come, systemctl failed by itself, and a later boot
         * may make it. */
        d->rebooting = r >= 0 || !work_pause(d->w, USEC_PER_SEC);
        if (!d->rebooting)
                return root_remove(d->w->root, LEDGER) < 0 ? -EIO : r;
        return work_fail(d->w, -EINPROGRESS, CAUSE_MIG_REBOOT,
                         "MIG mode of %s takes effect after a reboot (%s); this machine reboots now, once, "
                         "and goes on then",
                         gpus, d->reset_why ?: "resetting did not change it");
}

/* A reset that fails is no failure yet. */
static int modes_activate(Division *d) {
        int r = reset_all(d);
        if (r < 0)
                d->reset_why = xstrndup(d->w->text, strcspn(d->w->text, "\n"));
        else
                r = fabric_manager_restart(d);
        if (r < 0 && !d->reset_why)
                return r;
        r = division_open(d);
        if (r >= 0)
                r = modes_read(d);
        return r != 0 ? r : reboot_once(d);
}

/* ---- all or nothing ---- */

/* What could not be destroyed, because a pod uses it, is where it was. */
static int instances_put_back(const DividedGpu *part) {
        _cleanup_(nvml_instances_done) NvmlInstances there = {};
        if (part->before.n > 0 &&
            nvml_mig_instances(part->device, part->profiles, part->n_profiles, &there) != NVML_OK)
                return -EIO;
        for (size_t i = 0; i < part->before.n; i++) {
                const NvmlInstance *old = &part->before.items[i], *left = instance_like(&there, old);
                const NvmlProfile *profile = profile_of(part, old->profile);
                bool whole = true;
                if (!profile ||
                    (left ? nvml_mig_is_whole(left, profile, &whole)
                          : nvml_mig_create(part->device, profile, old)) != NVML_OK ||
                    !whole)
                        return -EIO;
        }
        return 0;
}

static int part_put_back(Division *d, const DividedGpu *part) {
        bool on = false, pending = false;
        int activation = NVML_OK, code = nvml_mig_mode(part->device, &on, &pending), r = 0;
        if (code == NVML_OK && on)
                r = part_clear(d, part, part->was_on ? &part->before : NULL);
        if (r >= 0 && code == NVML_OK && (on != part->was_on || pending != part->was_on))
                code = nvml_mig_set_mode(part->device, part->was_on, &activation);
        return r < 0 || code != NVML_OK || activation != NVML_OK ? -EIO : instances_put_back(part);
}

/* Why it failed comes first, what became of the GPUs second. */
static int put_back(Division *d, int failure) {
        _cleanup_(freep) char *why = TAKE_PTR(d->w->text);
        Cause cause = d->w->cause;
        Text lost = {};
        if (!d->open && division_open(d) < 0)
                text_add(&lost, "any GPU");
        for (size_t i = 0; d->open && i < d->n; i++)
                if (d->parts[i].touched && part_put_back(d, &d->parts[i]) < 0)
                        text_add(&lost, "%s%s", lost.data ? ", " : "", d->parts[i].name);
        (void)work_fail(d->w, failure, cause, "%s; %s%s", why ?: strerror(-failure),
                        lost.data ? "what was there before could not be put back on "
                                  : "what was there before is there again on every GPU",
                        lost.data ?: "");
        text_done(&lost);
        return failure;
}

static int parts_fill(Division *d) {
        int r = division_open(d);
        if (r >= 0)
                r = modes_read(d);
        for (size_t i = 0; r >= 0 && i < d->n; i++) {
                DividedGpu *part = &d->parts[i];
                if (!part->touched || !wants_on(part))
                        continue;
                r = part_resolve(d, part);
                if (r >= 0)
                        r = part_fill(d, part);
        }
        return r;
}

static int division_change(Division *d) {
        int r = modes_set(d);
        if (r > 0)
                r = modes_activate(d);
        if (r >= 0)
                r = parts_fill(d);
        return r < 0 && !d->rebooting ? put_back(d, r) : r;
}

/* ---- what was found ---- */

static json_t *part_found(const Division *d, const DividedGpu *part) {
        _cleanup_(nvml_instances_done) NvmlInstances there = {};
        json_t *names = json_array();
        bool on = false, pending = false;
        if (part->supported && nvml_mig_mode(part->device, &on, &pending) == NVML_OK && on &&
            nvml_mig_instances(part->device, part->profiles, part->n_profiles, &there) == NVML_OK)
                for (size_t i = 0; i < there.n; i++)
                        json_array_append_new(names,
                                              json_string(profile_of(part, there.items[i].profile)->name));
        return json_pack("{s:i, s:s, s:b, s:o}", "index", (int)part->layout->gpu, "address",
                         d->gpus.items[part->layout->gpu].address, "mig", on, "profiles", names);
}

static void division_report(Division *d) {
        json_t *gpus = json_array();
        for (size_t i = 0; i < d->n; i++)
                json_array_append_new(gpus, part_found(d, &d->parts[i]));
        d->w->found = json_pack("{s:o}", "gpus", gpus);
}

int partition_work(Work *w) {
        _cleanup_(division_done) Division d = { .w = w };
        d.parts = xcalloc(w->action->device.n_layouts + 1, sizeof *d.parts);
        for (; d.n < w->action->device.n_layouts; d.n++)
                d.parts[d.n].layout = &w->action->device.layouts[d.n];
        int same = division_look(&d), r = same != 0 ? same : division_change(&d);
        if (r < 0)
                return r;
        division_report(&d);
        r = root_remove(w->root, LEDGER);
        if (r < 0)
                return work_fail(w, r, CAUSE_MIG, "the GPUs are divided, but %s cannot be removed: %s",
                                 LEDGER, strerror(-r));
        return same == 0;
}
