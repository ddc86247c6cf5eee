/* SPDX-License-Identifier: Apache-2.0
 * GPUs of the layouts and their MIG instances: profiles by name, existing instances, and how new ones fit
 * (docs.nvidia.com/datacenter/tesla/mig-user-guide). */
#include "apply/mig.h"

#include "base/str.h"

#include <errno.h>

/* A GPU has at most 7 instances with 8 places each. TRIES_MAX guards against bad answers from NVML. */
#define TRIES_MAX  1000000U
#define PLACES_MAX 16

typedef struct Places {
        NvmlInstances possible[PLACES_MAX];     /* of each instance, by nvml_mig_places() */
        const NvmlInstance *chosen[PLACES_MAX];         /* one of these */
        size_t n;
} Places;

void division_close(Division *d) {
        if (d->open)
                nvml_close(&d->gpus);
        d->open = false;
}

int division_fail(Division *d, const DividedGpu *part, int code, const char *what) {
        _free_ char *text = nvml_text(code), *users = code == NVML_IN_USE ? holders_found(d->w) : NULL;
        Cause cause = code == NVML_OK || nvml_is_final(code) ? CAUSE_NVML : CAUSE_MIG;
        if (users && *users)
                return work_fail(d->w, -EIO, cause, "%s: %s: %s; %s", part->name, what, text, users);
        return work_fail(d->w, -EIO, cause, "%s: %s: %s%s", part->name, what, text,
                         users ? "; nvidia-smi and fuser -v /dev/nvidia* show who uses it (DCGM, a device "
                                 "plugin)"
                               : "");
}

int division_open(Division *d) {
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
                                "spec.accelerator.nvidia.mig names GPU %u, but there are only %zu, "
                                "numbered from 0", gpu,
                                d->gpus.n);
                d->parts[i].device = d->gpus.items[gpu].device;
                if (d->parts[i].name)
                        continue;
                d->parts[i].name = gpu_name(&d->gpus, gpu);
                d->parts[i].address = xstrdup(d->gpus.items[gpu].address);
        }
        return 0;
}

bool part_wants_mig(const DividedGpu *part) {
        return part->layout->profiles && part->layout->profiles[0];
}

const NvmlProfile *part_profile(const DividedGpu *part, unsigned id) {
        return FIND(p, part->profiles, part->n_profiles, p->id == id);
}

/* Profile ids differ between GPUs, and some drivers list profiles only in MIG mode. */
int part_resolve(Division *d, DividedGpu *part) {
        NvmlProfile *profiles = NULL;
        int code = nvml_mig_profiles(part->device, &profiles, &part->n_profiles);
        if (code != NVML_OK)
                return division_fail(d, part, code, "its MIG profiles cannot be listed");
        free(part->profiles);
        free(TAKE_PTR(part->wanted));
        part->profiles = profiles;
        part->n_wanted = 0;
        if (part->n_profiles == 0 && !part->is_on)
                return 0;
        part->wanted = xcalloc(strv_length(part->layout->profiles) + 1, sizeof *part->wanted);
        for (char **name = part->layout->profiles; name && *name; name++) {
                uint64_t id = 0;
                bool number = parse_u64(*name, &id) >= 0;
                const NvmlProfile *profile = FIND(p, part->profiles, part->n_profiles,
                                                  number ? p->id == id : streq(p->name, *name));
                if (!profile) {
                        _strv_ char **names = NULL;
                        for (size_t i = 0; i < part->n_profiles; i++)
                                strv_push(&names, *part->profiles[i].name
                                                          ? xstrdup(part->profiles[i].name)
                                                          : xasprintf("%u", part->profiles[i].id));
                        _free_ char *list = strv_join(names, ", ");
                        return work_fail(d->w, -EINVAL, CAUSE_MIG, "%s has no MIG profile %s; it has %s",
                                         part->name, *name, names ? list : "none");
                }
                part->wanted[part->n_wanted++] = *profile;
        }
        return 0;
}

static size_t count_wanted(const DividedGpu *part, unsigned id) {
        size_t n = 0;
        for (size_t i = 0; i < part->n_wanted; i++)
                n += part->wanted[i].id == id;
        return n;
}

int part_same(Division *d, const DividedGpu *part) {
        if (part->before.n != part->n_wanted)
                return 0;
        for (size_t i = 0; i < part->before.n; i++) {
                unsigned id = part->before.items[i].profile;
                size_t there = 0;
                bool whole = false;
                for (size_t k = 0; k < part->before.n; k++)
                        there += part->before.items[k].profile == id;
                int code = nvml_mig_is_whole(&part->before.items[i], part_profile(part, id), &whole);
                if (code != NVML_OK)
                        return division_fail(d, part, code, "its compute instances cannot be listed");
                if (!whole || there != count_wanted(part, id))
                        return 0;
        }
        return 1;
}

static const NvmlInstance *instance_like(const NvmlInstances *list, const NvmlInstance *i) {
        return list ? FIND(l, list->items, list->n,
                           l->profile == i->profile && l->start == i->start && l->size == i->size)
                    : NULL;
}

int part_clear(Division *d, const DividedGpu *part, const NvmlInstances *keep) {
        _cleanup_(nvml_instances_done) NvmlInstances there = {};
        int code = nvml_mig_instances(part->device, part->profiles, part->n_profiles, &there);
        if (code != NVML_OK)
                return division_fail(d, part, code, "its MIG instances cannot be listed");
        for (size_t i = 0; i < there.n; i++) {
                if (instance_like(keep, &there.items[i]))
                        continue;
                const NvmlProfile *profile = part_profile(part, there.items[i].profile);
                _free_ char *what = xasprintf("the MIG instance %s cannot be destroyed", profile->name);
                code = nvml_mig_destroy(&there.items[i]);
                if (code != NVML_OK)
                        return division_fail(d, part, code, what);
        }
        return 0;
}

static int fail_fit(Division *d, const DividedGpu *part) {
        _free_ char *list = strv_join(part->layout->profiles, ", ");
        return work_fail(d->w, -ENOSPC, CAUSE_MIG,
                         "%s: %s do not fit on one GPU in any order; nvidia-smi mig -lgipp shows the "
                         "placements of each profile",
                         part->name, list);
}

static int fail_create(Division *d, const DividedGpu *part, const NvmlProfile *profile, int code) {
        _free_ char *what = xasprintf("a %s instance cannot be created", profile->name);
        return division_fail(d, part, code, what);
}

static void places_done(Places *p) {
        for (size_t i = 0; i < p->n; i++)
                nvml_instances_done(&p->possible[i]);
}

static bool is_free(const Places *p, size_t n, const NvmlInstance *place) {
        return !ANY(c, p->chosen, n,
                    place->start < (*c)->start + (*c)->size && (*c)->start < place->start + place->size);
}

static bool choose_from(Places *p, size_t i, unsigned *tries) {
        if (i == p->n)
                return true;
        for (size_t k = 0; k < p->possible[i].n && *tries < TRIES_MAX; k++) {
                ++*tries;
                p->chosen[i] = &p->possible[i].items[k];
                if (is_free(p, i, p->chosen[i]) && choose_from(p, i + 1, tries))
                        return true;
        }
        return false;
}

static bool places_choose(Places *p) {
        unsigned tries = 0;
        return choose_from(p, 0, &tries);
}

/* The driver may place small instances so that a large one does not fit; this chooses the places. */
static int part_fill_by_place(Division *d, const DividedGpu *part) {
        _cleanup_(places_done) Places p = {};
        if (part->n_wanted > PLACES_MAX)
                return fail_fit(d, part);
        for (; p.n < part->n_wanted; p.n++) {
                int code = nvml_mig_places(part->device, part->wanted[p.n].id, &p.possible[p.n]);
                if (code != NVML_OK)
                        return division_fail(d, part, code,
                                             "the placements of its MIG profiles cannot be listed");
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

int part_fill(Division *d, const DividedGpu *part) {
        work_at(d->w, "NVML did not answer when asked to partition %s", part->name);
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

int instances_put_back(const DividedGpu *part) {
        _cleanup_(nvml_instances_done) NvmlInstances there = {};
        if (part->before.n > 0 &&
            nvml_mig_instances(part->device, part->profiles, part->n_profiles, &there) != NVML_OK)
                return -EIO;
        for (size_t i = 0; i < part->before.n; i++) {
                const NvmlInstance *old = &part->before.items[i], *left = instance_like(&there, old);
                const NvmlProfile *profile = part_profile(part, old->profile);
                bool whole = true;
                if (!profile ||
                    (left ? nvml_mig_is_whole(left, profile, &whole)
                          : nvml_mig_create(part->device, profile, old)) != NVML_OK ||
                    !whole)
                        return -EIO;
        }
        return 0;
}
