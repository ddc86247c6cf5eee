/* SPDX-License-Identifier: Apache-2.0
 * "runs" of status.json and current work → a verdict for each phase. One process may do several phases,
 * and two processes one phase. Then the later one decides, but the time is that of the process that did
 * only this phase. */
#include "report/status.h"

#include "base/json.h"
#include "plan/plan.h"

#define JOIN "join"

static const char *phase_name(int phase) {
        return phase == ONGOING_JOIN ? JOIN : phase_to_string((Phase)phase);
}

static bool is_in(const char *phase, const char *phases) {
        return strstr(phases, phase);
}

static bool has_action(const StatusRun *run, const char *phase, const char *outcome) {
        for (const StatusAction *a = run->actions; a && a->id; a++)
                if (streq(a->phase, phase) && streq(a->outcome, outcome))
                        return true;
        return false;
}

/* It failed before its first step, in another phase. */
static bool came_to_nothing(const StatusRun *run, const char *phase) {
        return !streq(run->verdict, "ok") && !streq(run->phase, phase) &&
               (!run->actions || !run->actions->id);
}

/* The verdict of one phase in a run of several. */
static const char *part_verdict(const StatusRun *run, const char *phase) {
        if (streq(run->verdict, "ok") || streq(run->phase, phase) || has_action(run, phase, "failed"))
                return run->verdict;
        return came_to_nothing(run, phase) || has_action(run, phase, "skipped") ? "held" : "ok";
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

/* The unit of the devices phase may be disabled: then the run phase does its steps. */
static UnitWork unit_work(const Ongoing *ongoing, int phase) {
        UnitWork own = ongoing ? ongoing->units[phase] : UNIT_IDLE;
        bool later = phase == ONGOING_DEVICES && ongoing && ongoing->units[ONGOING_RUN] == UNIT_WAITS;
        return own == UNIT_IDLE && later ? UNIT_WAITS : own;
}

/* The run phase repeats the devices steps, mostly as no-ops: the phase stays ok. */
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

static json_t *entry_new(const char *phase, const char *verdict, int64_t begin, int64_t end) {
        json_t *entry = json_pack("{ss ss}", "phase", phase, "verdict", verdict);
        if (begin > 0) {
                json_object_set_new(entry, "beginUsec", json_integer((json_int_t)begin));
                json_object_set_new(entry, "endUsec", json_integer((json_int_t)MAX(begin, end)));
        }
        return entry;
}

/* The times of its own run, else from its first to its last step in another one. */
static json_t *phase_entry(const Status *s, int phase, bool failed, const Ongoing *ongoing) {
        const char *name = phase_name(phase);
        const StatusRun *last = status_last(s, name), *own = status_run(s, name);
        /* one that came to nothing does not replace a run of this phase alone */
        const StatusRun *run = own && came_to_nothing(last, name) ? own : last;
        const char *verdict = run ? part_verdict(run, name) : failed ? "held" : "not begun";
        verdict = verdict_now(ongoing, phase, *verdict ? verdict : "failed");
        if (streq(verdict, "running")) {
                const json_t *process = process_of(ongoing, name);
                return json_pack("{ss ss sO* sO*}", "phase", name, "verdict", verdict, "beginUsec",
                                 json_object_get(process, "beginUsec"), "steps",
                                 json_object_get(process, "steps"));
        }
        int64_t begin = own ? own->begin_usec : 0, end = own ? own->end_usec : 0;
        for (const StatusAction *a = own || !run ? NULL : run->actions; a && a->id; a++)
                if (a->begin_usec > 0 && streq(a->phase, name)) {
                        begin = begin > 0 ? MIN(begin, a->begin_usec) : a->begin_usec;
                        end = MAX(end, a->end_usec);
                }
        return entry_new(name, verdict, begin, end);
}

static bool any_is(const json_t *phases, const char *verdict) {
        const json_t *entry;
        size_t i;
        json_array_foreach(phases, i, entry)
                if (streq(json_get_text(entry, "verdict"), verdict))
                        return true;
        return false;
}

/* The verdict of the runs counts once no process runs; ok needs all phases. */
static const char *boot_verdict(const Status *s, const json_t *phases) {
        return any_is(phases, "running")                 ? "running"
               : any_is(phases, "waiting")               ? "waiting"
               : *s->verdict && !streq(s->verdict, "ok") ? s->verdict
               : any_is(phases, "not begun")             ? "unfinished"
                                                         : "ok";
}

void phases_put(Status *s, const Ongoing *ongoing) {
        json_t *phases = json_array();
        const StatusJoin *joined = s->joined && *s->joined->verdict ? s->joined : NULL;
        UnitWork join = unit_work(ongoing, ONGOING_JOIN);
        for (int i = ONGOING_CONFIG; i <= ONGOING_RUN; i++)
                json_array_append_new(phases, phase_entry(s, i, any_is(phases, "failed"), ongoing));
        json_object_set_new(s->json, "verdict", json_string(boot_verdict(s, phases)));
        if (joined || join != UNIT_IDLE)        /* only during or after a wait */
                json_array_append_new(phases, entry_new(JOIN, join == UNIT_WORKS ? "running"
                                                              : joined           ? joined->verdict
                                                                                 : "waiting",
                                                        joined ? joined->begin_usec : 0,
                                                        joined ? joined->end_usec : 0));
        if (ongoing && ongoing->now_usec > 0)
                json_object_set_new(s->json, "nowUsec", json_integer((json_int_t)ongoing->now_usec));
        json_object_set_new(s->json, "phases", phases);
        status_take(s, json_incref(s->json));
}

/* The unit of a step: its own log has the reason. */
static char *next_of_failure(const char *step, const char *code) {
        static const char types[][14] = { "start-unit:", "restart-unit:", "await-unit:", "check-unit:" };
        return ANY(type, types, ARRAY_SIZE(types), startswith(step, *type))
                       ? xasprintf("journalctl -b -u %s", strchr(step, ':') + 1)
                       : xasprintf("nodestrap explain %s", *code ? code : "EINTERNAL");
}

static char *next_unit(const StatusPhase *phase) {
        for (; phase && phase->phase; phase++)
                if (streq(phase->verdict, "not begun"))
                        return xasprintf("systemctl status nodestrap-%s.service", phase->phase);
        return xstrdup("systemctl status 'nodestrap-*'");
}

void next_put(Status *s) {
        const StatusJoin *joined = s->joined;
        const char *verdict = s->verdict;
        _free_ char *next = NULL;
        if (streq(verdict, "running"))
                next = xstrdup("nodestrap status --follow");
        else if (streq(verdict, "waiting"))
                next = xstrdup("systemctl list-jobs");
        else if (streq(verdict, "unfinished"))
                next = next_unit(s->phases);
        else if (!streq(verdict, "ok"))
                next = next_of_failure(s->step, s->code);
        else if (joined && streq(joined->verdict, "failed"))
                next = xstrdup("nodestrap wait --timeout 10s");  /* the node may have joined since */
        if (!next)
                json_object_del(s->json, "next");
        json_set_text(s->json, "next", next);
        status_take(s, json_incref(s->json));
}
