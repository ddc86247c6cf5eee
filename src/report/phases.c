/* SPDX-License-Identifier: Apache-2.0
 * "runs" of status.json, and what is at work now → a verdict for each phase. One process may have done
 * several phases, and two processes one: then the later one counts, but how long it took, the one tells that
 * did the phase alone. */
#include "report/phases.h"

#include "base/json.h"
#include "base/str.h"
#include "plan/plan.h"
#include "report/status.h"

#define LONGEST 5U
#define JOIN    "join"

static const char *phase_name(int phase) {
        return phase == ONGOING_JOIN ? JOIN : phase_to_string((Phase)phase);
}

static bool is_in(const char *phase, const char *phases) {
        return strstr(phases, phase);
}

static bool is(const json_t *object, const char *key, const char *word) {
        return streq(json_get_text(object, key), word);
}

/* The last one that did it, or tried to. */
static const json_t *run_of(json_t *runs, const char *phase) {
        const json_t *last = NULL;
        const char *key;
        json_t *run;
        json_object_foreach(runs, key, run) {
                if (is_in(phase, key))
                        last = run;
        }
        return last;
}

/* ---- verdicts ---- */

static bool has_action(const json_t *run, const char *phase, const char *outcome) {
        json_t *action;
        size_t i;
        json_array_foreach(json_object_get(run, "actions"), i, action) {
                if (is(action, "phase", phase) && is(action, "outcome", outcome))
                        return true;
        }
        return false;
}

/* Its own part of a run that did not end well, which may have had others. */
static const char *part_verdict(const json_t *run, const char *phase) {
        const char *verdict = json_get_text(run, "verdict");
        if (streq(verdict, "ok") || is(run, "phase", phase) || has_action(run, phase, "failed"))
                return verdict;
        bool early = json_array_size(json_object_get(run, "actions")) == 0;
        return early || has_action(run, phase, "skipped") ? "held" : "ok";
}

static const json_t *process_of(const Ongoing *ongoing, const char *phase) {
        json_t *process;
        size_t i;
        json_array_foreach(ongoing ? ongoing->processes : NULL, i, process) {
                if (is_in(phase, json_get_text(process, "phases")))
                        return process;
        }
        return NULL;
}

/* The devices have a unit of their own, which may be disabled: then the run phase's will do them. */
static UnitWork unit_work(const Ongoing *ongoing, int phase) {
        UnitWork own = ongoing ? ongoing->units[phase] : UNIT_IDLE;
        bool later = phase == ONGOING_DEVICES && ongoing && ongoing->units[ONGOING_RUN] == UNIT_WAITS;
        return own == UNIT_IDLE && later ? UNIT_WAITS : own;
}

/* The run phase does the devices' steps again, most of which are done: that is no reason to call them
 * running. */
static bool is_at_work(const Ongoing *ongoing, int phase, const char *verdict) {
        const json_t *process = process_of(ongoing, phase_name(phase));
        bool again = phase == ONGOING_DEVICES && is_in("run", json_get_text(process, "phases"));
        return process && !(again && streq(verdict, "ok"));
}

static const char *verdict_now(const Ongoing *ongoing, int phase, const char *verdict) {
        bool begun = !streq(verdict, "not begun") && !streq(verdict, "held");
        UnitWork work = unit_work(ongoing, phase);
        if (is_at_work(ongoing, phase, verdict))
                return "running";
        if (begun || work == UNIT_IDLE)
                return verdict;
        return work == UNIT_WAITS ? "waiting" : "running";
}

/* ---- times ---- */

/* Of its own run; else from the first to the last of its steps in another one. */
static void put_times(json_t *entry, json_t *runs, const char *phase, const json_t *last) {
        const json_t *own = json_object_get(runs, phase);
        int64_t begin = status_number(own, "beginUsec"), end = status_number(own, "endUsec");
        json_t *action;
        size_t i;
        json_array_foreach(own ? NULL : json_object_get(last, "actions"), i, action) {
                int64_t from = status_number(action, "beginUsec");
                if (from == 0 || !is(action, "phase", phase))
                        continue;
                begin = begin > 0 ? MIN(begin, from) : from;
                end = MAX(end, status_number(action, "endUsec"));
        }
        if (begin == 0)
                return;
        json_object_set_new(entry, "beginUsec", json_integer((json_int_t)begin));
        json_object_set_new(entry, "endUsec", json_integer((json_int_t)MAX(begin, end)));
}

/* ---- together ---- */

static json_t *entry_new(const char *phase, const char *verdict, const json_t *process) {
        json_t *entry = json_pack("{ss ss}", "phase", phase, "verdict", verdict);
        if (process) {
                json_object_set(entry, "beginUsec", json_object_get(process, "beginUsec"));
                json_object_set(entry, "steps", json_object_get(process, "steps"));
        }
        return entry;
}

static json_t *phase_entry(json_t *runs, int phase, bool failed, const Ongoing *ongoing) {
        const char *name = phase_name(phase);
        const json_t *run = run_of(runs, name);
        const char *verdict = run ? part_verdict(run, name) : failed ? "held" : "not begun";
        const char *now = verdict_now(ongoing, phase, *verdict ? verdict : "failed");
        bool runs_now = streq(now, "running");
        json_t *entry = entry_new(name, now, runs_now ? process_of(ongoing, name) : NULL);
        if (!runs_now)
                put_times(entry, runs, name, run);
        return entry;
}

/* Only where somebody waits, or has. */
static json_t *join_entry(const json_t *status, const Ongoing *ongoing) {
        const json_t *joined = json_object_get(status, "joined");
        UnitWork work = unit_work(ongoing, ONGOING_JOIN);
        if (!json_is_object(joined) && work == UNIT_IDLE)
                return NULL;
        json_t *entry = entry_new(JOIN, work == UNIT_WORKS            ? "running"
                                        : json_is_object(joined)      ? json_get_text(joined, "verdict")
                                                                      : "waiting", NULL);
        json_object_set(entry, "beginUsec", json_object_get(joined, "beginUsec"));
        json_object_set(entry, "endUsec", json_object_get(joined, "endUsec"));
        return entry;
}

static bool any_is(const json_t *phases, const char *verdict) {
        const json_t *entry;
        size_t i;
        json_array_foreach(phases, i, entry)
                if (is(entry, "verdict", verdict) && !is(entry, "phase", JOIN))
                        return true;
        return false;
}

/* What the runs say stands, once nobody is at work; but it is not ok before all phases are. */
static const char *boot_verdict(const json_t *status, const json_t *phases) {
        const char *verdict = json_get_text(status, "verdict");
        if (any_is(phases, "running"))
                return "running";
        if (any_is(phases, "waiting"))
                return "waiting";
        return *verdict && !streq(verdict, "ok") ? verdict
               : any_is(phases, "not begun")     ? "unfinished"
                                                 : "ok";
}

void phases_put(json_t *status, const Ongoing *ongoing) {
        json_t *phases = json_array(), *runs = json_object_get(status, "runs");
        bool failed = false;
        for (int i = ONGOING_CONFIG; i <= ONGOING_RUN; i++) {
                json_t *entry = phase_entry(runs, i, failed, ongoing);
                failed = failed || is(entry, "verdict", "failed");
                json_array_append_new(phases, entry);
        }
        json_t *join = join_entry(status, ongoing);
        if (join)
                json_array_append_new(phases, join);
        json_object_set_new(status, "verdict", json_string(boot_verdict(status, phases)));
        if (ongoing && ongoing->now_usec > 0)
                json_object_set_new(status, "nowUsec", json_integer((json_int_t)ongoing->now_usec));
        json_object_set_new(status, "phases", phases);
}

/* ---- what to look at ---- */

/* Of a step that is about a unit: it has said why itself. */
static const char *unit_of(const char *step) {
        static const char *const types[] = { "start-unit:", "restart-unit:", "await-unit:", "check-unit:" };
        for (size_t i = 0; i < ARRAY_SIZE(types); i++)
                if (startswith(step, types[i]))
                        return step + strlen(types[i]);
        return NULL;
}

static char *next_of_failure(const json_t *failed) {
        const char *unit = unit_of(json_get_text(failed, "step")), *code = json_get_text(failed, "code");
        return unit ? xasprintf("journalctl -b -u %s", unit)
                    : xasprintf("man 7 nodestrap-codes, at %s", *code ? code : "EINTERNAL");
}

/* The first phase that has yet to begin, and that nothing is in the way of. */
static char *next_unit(const json_t *phases) {
        const json_t *entry;
        size_t i;
        json_array_foreach(phases, i, entry)
                if (is(entry, "verdict", "not begun"))
                        return xasprintf("systemctl status nodestrap-%s.service",
                                         json_get_text(entry, "phase"));
        return xstrdup("systemctl status 'nodestrap-*'");
}

void next_put(json_t *status) {
        const json_t *joined = json_object_get(status, "joined");
        const char *verdict = json_get_text(status, "verdict");
        _cleanup_(freep) char *next = NULL;
        if (streq(verdict, "running"))
                next = xstrdup("nodestrap status --follow");
        else if (streq(verdict, "waiting"))
                next = xstrdup("systemctl list-jobs");
        else if (streq(verdict, "unfinished"))
                next = next_unit(json_object_get(status, "phases"));
        else if (!streq(verdict, "ok"))
                next = next_of_failure(status);
        else if (is(joined, "verdict", "failed"))
                next = next_of_failure(joined);
        if (next)
                json_object_set_new(status, "next", text_json(next));
        else
                json_object_del(status, "next");
}

/* ---- by what it took so long ---- */

static void longest_insert(json_t *list, const char *run, const json_t *action) {
        int64_t begin = status_number(action, "beginUsec"),
                usec = begin > 0 ? status_number(action, "endUsec") - begin : 0;
        size_t at = json_array_size(list);
        while (at > 0 && status_number(json_array_get(list, at - 1), "usec") < usec)
                at--;
        /* taking turns is waiting for other steps, which are listed themselves */
        if (at >= LONGEST || usec <= 0 || startswith(json_get_text(action, "id"), "take-turn:"))
                return;
        json_t *step = json_object();
        json_object_set_new(step, "run", text_json(run));
        json_object_set_new(step, "id", text_json(json_get_text(action, "id")));
        json_object_set_new(step, "usec", json_integer((json_int_t)usec));
        json_array_insert_new(list, at, step);
        if (json_array_size(list) > LONGEST)
                json_array_remove(list, LONGEST);
}

void longest_put(json_t *status) {
        json_t *list = json_array(), *run, *action;
        const char *key;
        size_t i;
        json_object_foreach(json_object_get(status, "runs"), key, run) {
                json_array_foreach(json_object_get(run, "actions"), i, action) {
                        longest_insert(list, key, action);
                }
        }
        json_object_set_new(status, "longest", list);
}
