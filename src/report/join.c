/* SPDX-License-Identifier: Apache-2.0
 * The result of a join → joined.json, joined.prom, journal, console and stderr. The files are apart from
 * status.json and metrics.prom, because init may run while this waits, and each process replaces whole
 * files. */
#include "report/join.h"

#include "base/json.h"
#include "base/log.h"
#include "base/time.h"
#include "report/event.h"

#include <errno.h>
#include <stdio.h>

#define JOINED_MAX     (1 << 20)
#define JOINED_FILE    RUN_DIR "/joined.json"
#define JOINED_METRICS RUN_DIR "/joined.prom"

void join_report_done(JoinReport *j) {
        kube_access_done(&j->access);
        join_outcome_done(&j->outcome);
        *j = (JoinReport){};
}

json_t *join_read(const Root *root) {
        _free_ char *text = NULL, *boot_id = NULL;
        size_t size = 0;
        if (root_read(root, JOINED_FILE, JOINED_MAX, &text, &size) < 0)
                return NULL;
        json_t *joined = json_loadb(text, size, 0, NULL);
        const char *its_boot = json_string_value(json_object_get(joined, "bootId"));
        if (its_boot && root_boot_id(root, &boot_id) >= 0 && streq(its_boot, boot_id))
                return joined;
        json_decref(joined);
        return NULL;
}

/* The earliest of this wait and those before in this boot. */
static json_t *first_of(const json_t *before, const char *key, uint64_t usec) {
        uint64_t earlier = (uint64_t)json_integer_value(json_object_get(before, key));
        uint64_t first = usec == 0 ? earlier : earlier == 0 ? usec : MIN(usec, earlier);
        return first > 0 ? json_integer((json_int_t)first) : json_null();
}

/* Other waits keep what the last device wait found. */
static json_t *devices_json(const JoinReport *join, const json_t *before) {
        const JoinOutcome *o = &join->outcome;
        if (join->goal != JOIN_DEVICES || (o->cause != CAUSE_NONE && o->cause != CAUSE_DEVICES))
                return json_incref(json_object_get(before, "devices"));
        return json_pack("{ss so sO* sO*}", "code", cause_word(o->cause), "text", text_json(o->text),
                         "expected", o->expected, "allocatable", o->seen);
}

static json_t *join_json(const Root *root, const JoinReport *join, const Verdict *v, const char *plan_id) {
        _cleanup_(json_decrefp) json_t *before = join_read(root), *rest = NULL;
        _free_ char *when = verdict_time(), *boot_id = NULL;
        const KubeAccess *a = &join->access;
        const JoinOutcome *o = &join->outcome;
        (void)!root_boot_id(root, &boot_id);
        json_t *joined = json_pack("{so}", "bootId", text_json(boot_id ?: ""));
        verdict_put(joined, v, plan_id);
        rest = json_pack("{ss so so so so so ss sI sI si so*}", "for", join_goal_to_string(join->goal),
                         "node", text_json(a->node), "cluster", text_json(a->cluster), "server",
                         text_json(a->server), "registeredUsec",
                         first_of(before, "registeredUsec", o->registered_usec),
                         "readyUsec", first_of(before, "readyUsec", o->ready_usec), "endedAt", when,
                         "beginUsec", (json_int_t)join->begin_usec, "endUsec", (json_int_t)join->end_usec,
                         "requests", (int)o->requests, "devices", devices_json(join, before));
        json_object_update(joined, rest);
        return joined;
}

static void add_gauge(Text *t, const char *name, const char *help, const char *labels, double value) {
        metric_head(t, name, help);
        text_add(t, "nodestrap_%s%s %.*f\n", name, labels, value == (int)value ? 0 : 6, value);
}

static void add_seconds(Text *t, int64_t usec, const char *name, const char *help) {
        if (usec > 0)
                add_gauge(t, name, help, "", (double)usec / USEC_PER_SEC);
}

static void add_devices(Text *t, const JoinOutcome *o) {
        const char *resource;
        json_t *n;
        metric_head(t, "devices", "devices that this machine has, and that pods can get");
        json_object_foreach(o->expected, resource, n)
                text_add(t,
                         "nodestrap_devices{resource=\"%s\",kind=\"expected\"} %lld\n"
                         "nodestrap_devices{resource=\"%s\",kind=\"allocatable\"} %lld\n",
                         resource, (long long)json_integer_value(n), resource,
                         (long long)json_integer_value(json_object_get(o->seen, resource)));
}

static char *gauges_make(const StatusJoin *joined, const JoinOutcome *o, const Verdict *v) {
        _free_ char *labels = xasprintf("{verdict=\"%s\",code=\"%s\"}", v->word, v->code);
        Text t = {};
        add_gauge(&t, "joined", "1 if this node had joined its cluster when the wait for it ended", labels,
                  (v->exit_code == EXIT_DONE && !o->text) || o->cause == CAUSE_DEVICES);
        if (o->expected)
                add_devices(&t, o);
        add_seconds(&t, joined->registered_usec, "registered_seconds",
                    "from the start of the kernel until kubelet had registered the node");
        add_seconds(&t, joined->ready_usec, "ready_seconds",
                    "from the start of the kernel until the node was Ready");
        add_gauge(&t, "join_requests", "watch requests for the node, including retries", "",
                  o->requests);
        return text_take(&t);
}

/* " registered=12.3s ready=18.9s" */
static char *times_text(const StatusJoin *joined, bool console) {
        const struct { const char *word; int64_t usec; } times[] = {
                { "registered", joined->registered_usec }, { "ready", joined->ready_usec }
        };
        Text t = {};
        for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
                double seconds = (double)times[i].usec / USEC_PER_SEC;
                if (times[i].usec > 0 && console)
                        text_add(&t, " %s=%.1fs", times[i].word, seconds);
                else if (times[i].usec > 0)
                        text_add(&t, "%s%s %.1f s", t.size > 0 ? ", " : "", times[i].word, seconds);
        }
        return text_take(&t);
}

static char *join_last_line(const JoinReport *join, const Verdict *v, const StatusJoin *joined,
                            double seconds) {
        if (v->exit_code != EXIT_DONE)
                return xasprintf("nodestrap: %s (%d %s) at %s: %s", v->word, (int)v->exit_code, v->code,
                                 v->step, v->text);
        if (v->text)
                return xasprintf("nodestrap: ok: %s", v->text);
        _free_ char *times = times_text(joined, false);
        return xasprintf("nodestrap: ok: Node %s of cluster %s is %s: %s after the kernel started (this "
                         "check: %u request%s, %.2f s)",
                         join->access.node, join->access.cluster, join_goal_text(join->goal), times,
                         join->outcome.requests, join->outcome.requests == 1 ? "" : "s", seconds);
}

static void files_write(const Root *root, const json_t *joined, const char *metrics) {
        _free_ char *text = json_dumps(joined, JSON_INDENT(1));
        int r = root_replace_volatile(root, JOINED_FILE, text, strlen(text), REPORT_MODE);
        if (r >= 0)
                r = root_replace_volatile(root, JOINED_METRICS, metrics, strlen(metrics), 0644);
        if (r == -EACCES || r == -EPERM)        /* any user may wait, but only root writes the files */
                log_debug(JOINED_FILE " is left as it is: %s", strerror(-r));
        else if (r < 0)
                (void)log_line_errno(LOG_WARNING, r, JOINED_FILE " and joined.prom beside it are out of "
                                                                 "date, because nodestrap cannot write them");
}

ExitCode report_join(const Root *root, const JoinReport *join) {
        const JoinOutcome *o = &join->outcome;
        Verdict v = { .word = o->cause == CAUSE_NONE ? "ok" : "failed", .code = cause_word(o->cause),
                      .exit_code = cause_exit_code(o->cause), .step = "join", .text = o->text };
        _cleanup_(status_done) Status status = {}, now = {};
        const char *plan_id = status_read(root, &status) >= 0 && *status.plan_id ? status.plan_id : NULL;
        json_t *joined = join_json(root, join, &v, plan_id);
        status_take(&now, json_pack("{so}", "joined", joined));
        double seconds = (double)(join->end_usec - join->begin_usec) / USEC_PER_SEC;
        _free_ char *times = times_text(now.joined, true),
                    *metrics = gauges_make(now.joined, o, &v),
                    *last = join_last_line(join, &v, now.joined, seconds);
        _free_ char *console = xasprintf("NODESTRAP verdict=%s code=%s step=join t=%.1fs plan=%s%s",
                                         v.word, v.code, seconds, plan_id ?: "-", times);

        bool by_unit = verdict_is_of_unit();    /* not for a command that you type */
        files_write(root, joined, metrics);
        if (join->goal == JOIN_DEVICES && o->registered_usec > 0)
                condition_of_node(root);
        if (by_unit)
                event_of_join(root, &v);
        if (root_is_host(root))
                (by_unit ? verdict_announce : verdict_record)(&v, "join", plan_id ?: "", seconds, console);
        verdict_tell(&v, last);
        return v.exit_code;
}

void join_show(Text *t, const StatusJoin *joined) {
        _free_ char *times = times_text(joined, false);
        bool ok = streq(joined->verdict, "ok");
        if (ok && *joined->text)
                return;                 /* a warm pool: the line of init says so */
        if (ok)
                text_add(t, "joined: %s after the kernel started (node %s of cluster %s)\n", times,
                       *joined->node ? joined->node : "?", *joined->cluster ? joined->cluster : "?");
        else
                text_add(t, "%s (%lld %s): %s\n",
                         join_lacks_devices(joined) ? "devices missing" : "not joined",
                         (long long)joined->exit, *joined->code ? joined->code : "?", joined->text);
}
