/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays on the disks: superblocks tell what belongs together, sysfs what runs. Device names prove nothing:
 * udev assembles the same array as md127, kubernetes_0 or host:kubernetes (mdadm(8), --homehost). */
#include "plan/storage.h"
#include "base/str.h"
#include "disk/disk.h"

#define ROLES_MAX 1024  /* limit for a message: a superblock may claim any number */

void array_found_done(ArrayFound *f) {
        strv_free(f->blank);
        free(f->why);
}

static bool is_member(const Disk *d) {
        return d->content.kind == CONTENT_RAID_MEMBER;
}

static bool is_ours(const Disk *d) {
        return is_member(d) && raid_is_ours(&d->content.raid);
}

static bool same_array(const Disk *a, const Disk *b) {
        return is_member(a) && is_member(b) && a->content.raid.uuid && b->content.raid.uuid &&
               streq(a->content.raid.uuid, b->content.raid.uuid);
}

static const char *level_text(int level) {
        return level == 0 ? "raid0" : level == 10 ? "raid10" : "md";
}

static const Disk *store_by_name(const Stores *s, const char *name) {
        return PICK(d, s->disks, s->n, streq((*d)->name, name), *d, NULL);
}

static size_t stores_in(const Stores *s, const Array *a) {
        size_t n = 0;
        for (char **member = a->members; member && *member; member++)
                n += store_by_name(s, *member) != NULL;
        return n;
}

static void refuse_mixed(Stores *s, const Array *a) {
        _cleanup_(text_done) Text stores = {}, others = {};
        for (char **member = a->members; member && *member; member++) {
                const Disk *d = store_by_name(s, *member);
                _free_ char *label = d ? disk_label(d) : xstrdup(*member);
                list_add(d ? &stores : &others, label);
        }
        stores_refuse(s, CAUSE_ARRAY,
                      "array %s has the instance stores %s as members, but also %s, so nodestrap leaves it "
                      "alone. If you do not need the array, run `mdadm --stop /dev/%s`, and `blkdiscard "
                      "--force` for each instance store among its members",
                      a->name, stores.data, others.data, a->name);
}

const char *array_name_taken(const Stores *s) {
        for (size_t i = 0; s->seen->named && i < s->seen->n_arrays; i++)
                if (streq(s->seen->arrays[i].name, s->seen->named) && stores_in(s, &s->seen->arrays[i]) == 0)
                        return s->seen->named;
        return NULL;
}

/* The array that holds our disks, running or not. */
static const Array *holding_array(Stores *s) {
        const Array *found = NULL;
        for (const Array *a = s->seen->arrays; a < s->seen->arrays + s->seen->n_arrays; a++) {
                size_t n = stores_in(s, a);
                if (n == 0)
                        continue;
                if (n < strv_length(a->members))
                        refuse_mixed(s, a);
                else if (found)
                        stores_refuse(s, CAUSE_ARRAY,
                                      "two arrays, %s and %s, hold the instance stores. Stop the one that "
                                      "you do not need (`mdadm --stop`), clear its members (`blkdiscard "
                                      "--force`), and run nodestrap init again", found->name, a->name);
                found = a;
        }
        return found;
}

/* "nvme1n1 (…): member 0 of md array data (raid0 of 3), …": all members of that array. */
static char *members_text(const Stores *s, const Disk *like) {
        Text t = {};
        for (size_t i = 0; i < s->n; i++)
                if (s->disks[i] == like || same_array(s->disks[i], like)) {
                        _free_ char *label = disk_label(s->disks[i]),
                                    *holds = content_describe(&s->disks[i]->content);
                        text_add(&t, "%s%s: %s", t.size > 0 ? ", " : "", label, holds);
                }
        return text_take(&t);
}

static bool is_first_of_its_array(const Stores *s, size_t i) {
        return !ANY(d, s->disks, i, same_array(*d, s->disks[i]));
}

/* The member with the most events of the array that is ours; NULL if there is none, or if it is refused. */
static const Disk *find_ours(Stores *s) {
        const Disk *ours = NULL;
        for (size_t i = 0; i < s->n; i++) {
                const Disk *d = s->disks[i];
                if (!is_member(d))
                        continue;
                if (is_first_of_its_array(s, i) && !is_ours(d)) {
                        _free_ char *members = members_text(s, d);
                        stores_refuse(s, CAUSE_DISK_USED,
                                      "%s: nodestrap touches only an array with the name " RAID_NAME
                                      " and metadata 1.2. If you do not need this one, stop it and run "
                                      "`blkdiscard --force` for each member", members);
                } else if (is_first_of_its_array(s, i) && ours) {
                        _free_ char *one = members_text(s, ours), *other = members_text(s, d);
                        stores_refuse(s, CAUSE_ARRAY,
                                      "two arrays are named " RAID_NAME ", %s and %s: %s; %s. Decide which "
                                      "one you need, and run `blkdiscard --force` for each member of the "
                                      "other", ours->content.raid.uuid, d->content.raid.uuid, one, other);
                } else if (is_ours(d) && (!ours || (same_array(ours, d) &&
                                                    d->content.raid.events > ours->content.raid.events)))
                        ours = d;
        }
        return ours;
}

static bool has_role(const Disk *d, const Disk *ours) {
        return same_array(d, ours) && d->content.raid.role >= 0 &&
               (unsigned)d->content.raid.role < ours->content.raid.disks;
}

/* mdadm accepts a member one event behind, too: a power failure while superblocks were written. */
static bool is_current(const Disk *d, const Disk *ours) {
        return has_role(d, ours) && d->content.raid.events + 1 >= ours->content.raid.events;
}

/* Per role: does a current member have it, or, with old, any member? */
static bool *roles_filled(const Stores *s, const Disk *ours, bool old) {
        bool *filled = xcalloc((size_t)ours->content.raid.disks + 1, sizeof(bool));
        for (size_t i = 0; i < s->n; i++)
                if (has_role(s->disks[i], ours) && (old || is_current(s->disks[i], ours)))
                        filled[s->disks[i]->content.raid.role] = true;
        return filled;
}

static size_t roles_count(const bool *filled, const Disk *ours) {
        size_t n = 0;
        for (unsigned i = 0; i < ours->content.raid.disks; i++)
                n += filled[i];
        return n;
}

char *array_missing(const Stores *s) {
        const Disk *ours = NULL;
        for (size_t i = 0; i < s->n && !ours; i++)
                ours = is_ours(s->disks[i]) ? s->disks[i] : NULL;
        if (!ours || ours->content.raid.disks > ROLES_MAX)
                return xstrdup("");
        _free_ bool *filled = roles_filled(s, ours, false);
        _cleanup_(text_done) Text roles = {};
        for (unsigned i = 0; i < ours->content.raid.disks; i++)
                if (!filled[i])
                        text_add(&roles, "%s%u", roles.size > 0 ? ", " : "", i);
        return roles.size == 0
                       ? xstrdup("")
                       : xasprintf(" (the %s array " RAID_NAME " lacks member%s %s of its %u)",
                                   level_text(ours->content.raid.level),
                                   roles_count(filled, ours) + 1 == ours->content.raid.disks ? "" : "s",
                                   roles.data, ours->content.raid.disks);
}

#define NEAR_2 0x102    /* default of mdadm */

/* raid10, "near 2": a chunk lies on two neighbours; odd numbers share with both sides (md(4)). */
static bool has_every_chunk(const bool *filled, unsigned disks) {
        for (unsigned i = 0; i < disks; i += disks % 2 == 0 ? 2 : 1)
                if (!filled[i] && !filled[(i + 1) % disks])
                        return false;
        return true;
}

/* Is this disk in the running array, or can it be assembled? A failed member or a spare counts as well: only
 * md can release it, and an array in use is not taken apart. */
static bool takes_part(const Disk *d, const Disk *ours, const Array *running) {
        return running ? strv_contains(running->members, d->name) : is_current(d, ours);
}

/* Old members count here: their data may be the only copy. */
static bool is_lost(const Stores *s, const Disk *ours) {
        _free_ bool *filled = roles_filled(s, ours, true);
        return ours->content.raid.layout == NEAR_2 && !has_every_chunk(filled, ours->content.raid.disks);
}

static void decide_raid10(Stores *s, const Disk *ours, const Array *running, ArrayFound *f) {
        _free_ bool *filled = roles_filled(s, ours, false);
        for (size_t i = 0; i < s->n; i++)
                if (!takes_part(s->disks[i], ours, running))
                        strv_add(&f->blank, s->disks[i]->name);
        _free_ char *blank = f->blank ? strv_join(f->blank, ", ") : NULL;
        if (!blank) {
                f->state = running ? STEP_KEEP : STEP_ASSEMBLE;
                return;
        }
        bool alive = running || (ours->content.raid.layout == NEAR_2 &&
                                 has_every_chunk(filled, ours->content.raid.disks));
        if (!alive && !is_lost(s, ours)) {
                _free_ char *text = members_text(s, ours);
                stores_refuse(s, CAUSE_ARRAY,
                              "the raid10 cannot be assembled without %s, but its data may still exist: %s. "
                              "Try `mdadm --assemble --force`, or if you do not need it, run `blkdiscard "
                              "--force` for each member", blank, text);
                return;
        }
        f->state = alive ? STEP_REPAIR : STEP_REMAKE;
        f->why = xasprintf(alive ? "add %s again; the others have all chunks"
                                 : "make a new raid10: %s blank, chunks lost", blank);
        if (!alive)
                f->blank = strv_free(f->blank);
}

static void decide_raid0(Stores *s, const Disk *ours, const Array *running, ArrayFound *f) {
        _cleanup_(text_done) Text lost = {};
        size_t members = 0;
        _free_ bool *filled = roles_filled(s, ours, false);
        for (size_t i = 0; i < s->n; i++) {
                members += same_array(s->disks[i], ours);
                if (!same_array(s->disks[i], ours))
                        list_add(&lost, s->disks[i]->name);
        }
        if (running)    /* raid0 runs only with all members */
                f->state = STEP_KEEP;
        else if (members < s->n) {
                f->state = STEP_REMAKE;
                f->why = xasprintf("make a new raid0: %s blank, data lost", lost.data);
        } else if (roles_count(filled, ours) == s->n)
                f->state = STEP_ASSEMBLE;
        else {
                _free_ char *text = members_text(s, ours);
                stores_refuse(s, CAUSE_ARRAY,
                              "the superblocks contradict each other: %s; if you do not need the array, run "
                              "`blkdiscard --force` for each member", text);
        }
}

/* An array of ours whose shape is not the wanted one. */
static bool refuse_shape(Stores *s, const Disk *ours, int level) {
        const RaidMember *raid = &ours->content.raid;
        _free_ char *text = members_text(s, ours), *missing = array_missing(s);
        if (raid->level != level)
                stores_refuse(s, CAUSE_ARRAY,
                              "the instance stores hold an array that is not %s, which the strategy wants: "
                              "%s. Set the strategy that made it, or if you do not need the array, stop it "
                              "and run `blkdiscard --force` for each member", level_text(level), text);
        else if (raid->disks > s->n)
                stores_refuse(s, CAUSE_DISKS,
                              "the array " RAID_NAME " has %u members, but only %zu instance store%s "
                              "here%s: %s. If you do not need the data, stop and start the instance to get "
                              "new disks, or run `blkdiscard --force` for each member here",
                              raid->disks, s->n, s->n == 1 ? " is" : "s are", missing, text);
        else if (raid->disks < s->n)
                stores_refuse(s, CAUSE_ARRAY,
                              "the array " RAID_NAME " has %u member%s, but %zu instance stores are here: "
                              "%s. If you do not need the data and want one array of all stores, stop this "
                              "one and run `blkdiscard --force` for each member",
                              raid->disks, raid->disks == 1 ? "" : "s", s->n, text);
        else
                return false;
        return true;
}

static void refuse_held_blank(Stores *s, const Array *a) {
        for (char **member = a->members; member && *member; member++) {
                const Disk *d = store_by_name(s, *member);
                _free_ char *label = disk_label(d);
                stores_refuse(s, CAUSE_DISK_USED,
                              "%s has no superblock, yet is a member of the array %s, which stays as it is; "
                              "if you do not need it, run `mdadm --stop /dev/%s`", label, a->name, a->name);
        }
}

static bool array_is_free(Stores *s, const Array *a) {
        char *const *users = a->holders ?: a->partitions;
        if (users)
                stores_refuse(s, CAUSE_DISK_USED,
                              "%s is built on array %s, which stays as it is; remove the former if you do "
                              "not need it", *users, a->name);
        return !users;
}

static char *why_simple(const Stores *s, const ArrayFound *f) {
        switch (f->state) {
        case STEP_KEEP:
                /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): only a running array is kept */
                return xasprintf("already runs as %s%s", f->array->name,
                                 f->array->degraded ? ", degraded" : "");
        case STEP_ASSEMBLE:
                return f->array ? xasprintf("assemble %zu members of inactive %s", s->n, f->array->name)
                                : xasprintf("assemble %zu members", s->n);
        default:
                return s->n == 1 ? xstrdup("new array on one blank "
                                           "disk") : xasprintf("new array on %zu blank disks", s->n);
        }
}

/* A raid0 that lost a member while it runs shows fewer. */
static bool refuse_partial(Stores *s, const Array *running, int level) {
        size_t n = running ? stores_in(s, running) : 0;
        if (!running || level != 0 || n == s->n)
                return false;
        stores_refuse(s, CAUSE_ARRAY,
                      "array %s runs with %zu of its %zu members: reboot, or stop it (`mdadm --stop "
                      "/dev/%s`)",
                      running->name, n, s->n, running->name);
        return true;
}

void array_find(Stores *s, int level, ArrayFound *ret) {
        bool before = s->refused;
        s->refused = false;
        const Array *array = holding_array(s);
        const Disk *ours = find_ours(s);
        const Array *running = array && array->active ? array : NULL;
        ArrayFound f = { .array = array, .uuid = ours ? ours->content.raid.uuid : NULL };
        if (!s->refused && array && array_is_free(s, array) && !ours)
                refuse_held_blank(s, array);
        if (!s->refused && !ours) {
                f.state = STEP_MAKE;
                for (size_t i = 0; i < s->n; i++)
                        if (s->disks[i]->content.kind == CONTENT_REMAINS)
                                f.state = STEP_REMAKE;
                if (f.state == STEP_REMAKE)
                        f.why = xstrdup("repeat the interrupted creation");
        } else if (!s->refused && !refuse_shape(s, ours, level) && !refuse_partial(s, running, level)) {
                if (level == 10)
                        decide_raid10(s, ours, running, &f);
                else
                        decide_raid0(s, ours, running, &f);
        }
        /* apply writes to disks without a role, so they must not hold data. */
        bool runs = f.array && f.array->active;
        for (size_t i = 0; !runs && i < s->n; i++)
                (void)stores_check_blank(s, s->disks[i], NULL);
        if (!f.why && f.state != STEP_UNKNOWN)
                f.why = why_simple(s, &f);
        s->refused = s->refused || before;
        *ret = f;
}
