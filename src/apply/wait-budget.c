/* SPDX-License-Identifier: Apache-2.0
 * /run/nodestrap/devices.json records how long the devices phase waited in vain, and for which steps, so that
 * the run phase waits less. It is used once, as a later init follows a repair. A step gets its whole time
 * again if it may now succeed: a user script may have helped unseen. */
#include "apply/engine.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/paths.h"
#include "base/str.h"
#include "base/time.h"

#include <string.h>

#define WAITED_FILE RUN_DIR "/devices.json"
#define WAITED_MAX  (1U << 20)
#define FLOOR_USEC  (10 * USEC_PER_SEC)         /* for a check and a slow program */

static void action_digest(const Action *a, char ret[static 65]) {
        json_t *all = action_canonical(a);
        _free_ char *text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
        json_decref(all);
        sha256_hex(text, strlen(text), ret);
}

void waited_write(const Root *root, const Plan *plan, const Results *results) {
        _free_ char *boot = NULL, *text = NULL;
        if (!plan_has_phase(plan, PHASE_DEVICES) || root_boot_id(root, &boot) < 0)
                return;
        json_t *steps = json_array();
        for (size_t i = 0; i < results->n && !plan_has_phase(plan, PHASE_RUN); i++) {
                char digest[65];
                const Result *r = &results->items[i];
                bool in_vain = r->outcome == OUTCOME_FAILED || r->missed;
                if (r->action->phase != PHASE_DEVICES || !in_vain || r->begin_usec == 0)
                        continue;
                action_digest(r->action, digest);
                json_array_append_new(steps, json_pack("{s:s, s:s, s:I, s:I}", "id", r->action->id, "digest",
                                                       digest, "beginUsec", (json_int_t)r->begin_usec,
                                                       "endUsec", (json_int_t)r->end_usec));
        }
        size_t n = json_array_size(steps);
        json_t *all = json_object();
        json_set_text(all, "bootId", boot);
        json_object_set_new(all, "steps", steps);
        text = json_dumps(all, JSON_INDENT(1));
        json_decref(all);
        int r = n == 0 ? root_remove(root, WAITED_FILE)
                       : root_replace_volatile(root, WAITED_FILE, text, strlen(text), 0644);
        if (r < 0)
                log_debug(WAITED_FILE " cannot be written: %s", strerror(-r));
}

/* Has a dependency in the devices phase changed something in this run? Then the wait may succeed now. */
static bool stirred(Task *const *before, size_t n) {
        for (size_t i = 0; i < n; i++) {
                const Task *t = before[i];
                if (t->action->phase != PHASE_DEVICES)
                        continue;
                if (t->result->outcome == OUTCOME_DONE || stirred(t->after, t->n_after) ||
                    stirred(t->after_any, t->n_after_any))
                        return true;
        }
        return false;
}

static uint64_t usec_of(const json_t *step, const Action *a) {
        char digest[65];
        json_int_t begin = json_integer_value(json_object_get(step, "beginUsec")),
                   end = json_integer_value(json_object_get(step, "endUsec"));
        if (!streq(json_get_text(step, "id"), a->id) || begin <= 0 || end < begin)
                return 0;
        action_digest(a, digest);
        return streq(json_get_text(step, "digest"), digest) ? (uint64_t)(end - begin) : 0;
}

void waited_take(Apply *a) {
        if (!plan_has_phase(a->plan, PHASE_RUN))
                return;
        _free_ char *boot = NULL, *text = NULL;
        size_t size = 0;
        if (root_boot_id(a->root, &boot) >= 0 &&
            root_read(a->root, WAITED_FILE, WAITED_MAX, &text, &size) >= 0) {
                _cleanup_(json_decrefp) json_t *all = json_loadb(text, size, 0, NULL);
                if (streq(json_get_text(all, "bootId"), boot))
                        a->waited = json_incref(json_object_get(all, "steps"));
        }
        (void)!root_remove(a->root, WAITED_FILE);
}

void waited_grant(Task *t) {
        uint64_t whole = t->action->deadline_usec, usec = 0;
        const json_t *step;
        size_t i;
        if (!t->apply->waited || !t->executor->waits || t->action->phase != PHASE_DEVICES ||
            whole <= FLOOR_USEC)
                return;
        json_array_foreach(t->apply->waited, i, step) {
                usec = MAX(usec, usec_of(step, t->action));
        }
        if (usec == 0 || stirred(t->after, t->n_after) || stirred(t->after_any, t->n_after_any))
                return;
        t->waited_usec = usec;
        t->limit_usec = MAX(whole - MIN(whole, usec), FLOOR_USEC);
        _free_ char *waited = usec_text((int64_t)usec), *left = usec_text((int64_t)t->limit_usec);
        log_info("%s: the devices phase waited %s for it in vain; the run phase waits %s more", t->action->id,
                 waited, left);
}
