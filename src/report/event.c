/* SPDX-License-Identifier: Apache-2.0
 * Events about this node, and the condition of its Node. The same failure in two phases or boots is one Event
 * with a count and the latest message. */
#include "report/event.h"

#include "base/json.h"
#include "base/log.h"
#include "base/time.h"
#include "doc/doc.h"

#include <errno.h>

#define UNWELL_FILE "/var/lib/nodestrap/unwell.json"    /* the failure that the cluster knows, without a
                                                         * recovery since then */
#define UNWELL_MAX  4096
#define SENTENCE_MAX 760                                /* characters; the message of an Event has 1024 at
                                                         * most */

/* From the firmware, on Nitro the instance id: other instances may have had the node name. */
static char *find_machine(const Root *root) {
        _free_ char *id = NULL;
        char *uuid = NULL;
        if (root_read_line(root, "/sys/devices/virtual/dmi/id/board_asset_tag", &id) >= 0 &&
            startswith(id, "i-"))
                return TAKE_PTR(id);
        return root_read_line(root, "/sys/devices/virtual/dmi/id/product_uuid", &uuid) >= 0 ? uuid
                                                                                            : xstrdup("");
}

static void make_room(const Root *root) {
        _strv_ char **names = NULL;
        if (root_list(root, EVENTS_DIR, &names) < 0)
                return;
        size_t n = strv_length(names);
        for (size_t i = 0; i + EVENTS_MAX <= n; i++) {
                _free_ char *path = xasprintf(EVENTS_DIR "/%s", names[i]);
                (void)!root_remove(root, path);
        }
}

/* Names sort by time. Only root may read them: a proxy variable may hold a password. */
static void notice_write(const Root *root, const json_t *notice, const char *ending) {
        _free_ char *text = json_dumps(notice, JSON_INDENT(1));
        _free_ char *path =
                xasprintf(EVENTS_DIR "/%020llu.%d%s", (unsigned long long)now_usec(), (int)getpid(), ending);
        int r = root_make_dirs(root, RUN_DIR, 0755);
        THEN(r, root_make_dirs(root, EVENTS_DIR, 0700));
        if (r >= 0)
                make_room(root);
        THEN(r, root_replace_volatile(root, path, text, strlen(text), 0600));
        if (r < 0)
                (void)log_line_errno(LOG_WARNING, r, "nodestrap cannot write %s, so the Node gets no event "
                                                     "or condition from it",
                                     path);
}

json_t *event_environment(void) {
        static const char *const names[] = { "HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy" };
        json_t *environment = json_object();
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                json_object_set_new(environment, names[i], text_json(getenv(names[i])));
        return environment;
}

static json_t *access_json(const Report *r) {
        const Cluster *c = r->config ? &r->config->cluster : NULL;
        const char *name = !c ? NULL : c->outpost ? c->id : c->name;
        if (!name || !c->endpoint || !c->certificate_authority || !r->region || !r->node)
                return NULL;
        _free_ char *ca =
                base64_encode(c->certificate_authority, c->certificate_authority_size);
        return json_pack("{ss ss s[ssss] ss}", "server", c->endpoint, "certificate-authority-data", ca,
                         "args", "--cluster-name", name, "--region", r->region, "node", r->node);
}

static json_t *notice_new(const Root *root, bool warning, const char *reason, const char *code,
                          const char *step, const char *message) {
        _free_ char *machine = find_machine(root), *when = verdict_time(),
                    *key = xasprintf("%s\n%s\n%s", machine, code, step);
        return json_pack("{ss sb so so ss so}", "reason", reason, "warning", warning, "message",
                         text_json(message), "key", text_json(key), "time", when, "environment",
                         event_environment());
}

/* "EFABRIC at await-fabric: message" */
static void add_verdict(Text *t, const char *code, const char *step, const char *text) {
        text_add(t, "%s at %s: ", code, step);
        text_add_shown(t, text, strcspn(text, "\n"), SENTENCE_MAX, 0);
}

/* A node may not change the taint of its existing Node. */
static void add_taint(Text *t, const Report *report, const char *code) {
        const Result *check = report_result(report, ACTION_CHECK_NODE, TAINT_KEY);
        const char *before = json_get_text(check ? check->found : NULL, "taint");
        if (*before)
                text_add(t, "; the Node keeps its taint " TAINT_KEY "=%s:NoSchedule", before);
        else
                text_add(t, "; kubelet registers the node with the taint " TAINT_KEY "=%s:NoSchedule", code);
}

/* The run phase may do device steps first. */
static bool run_is_over(const Root *root) {
        _cleanup_(status_done) Status status = {};
        return status_read(root, &status) >= 0 && status_last(&status, "run");
}

/* The next thing that happens to the node. */
static void add_outlook(Text *t, const Root *root, const Report *report, const Verdict *v) {
        bool turn = report_did(report, ACTION_WRITE_FILE, KUBELET_TURN);
        if (v->tolerated)
                add_taint(t, report, v->code);
        else if (!strstr(report->phases, "run") && v->phase && streq(v->phase, "devices") &&
                 !run_is_over(root))
                text_add(t, "; the run phase tries this again before it starts kubelet");
        else if (!turn && root_exists(root, KUBELET_TURN) == 1)
                text_add(t, "; " KUBELET_LEFT);
        else if (!report_did(report, ACTION_START_UNIT, "kubelet.service"))
                text_add(t, "; kubelet was not started");
        if (report->tries > 1)
                text_add(t, "; nodestrap tried %u times", report->tries);
        if (report->then)
                text_add(t, "; the machine %s", report->then);
        if (report->node_guessed)
                text_add(t, "; EC2 may have another name for this node");
        text_add(t, " (on the node, run nodestrap status)");
}

static void remember(const Root *root, const Verdict *v) {
        _free_ char *machine = find_machine(root);
        _cleanup_(json_decrefp) json_t *unwell = json_pack("{so ss so}", "machine", text_json(machine),
                                                           "code", v->code, "step", text_json(v->step));
        _free_ char *text = json_dumps(unwell, JSON_INDENT(1));
        int r = root_replace(root, UNWELL_FILE, text, strlen(text), 0644);
        if (r < 0)
                log_debug(UNWELL_FILE " cannot be written: %s", strerror(-r));
}

/* kubeconfig and node name are as kubelet reads them, with any manual edits. If this run failed to write
 * them, they are from another time, or from the node that the image was made of. */
static void tell_failure(const Root *root, const Report *report, const Verdict *v) {
        bool outpost = report->config && report->config->cluster.outpost;
        bool here = !strstr(report->phases, "config") ||
                    (report_did(report, ACTION_WRITE_FILE, outpost ? KUBECONFIG_BOOTSTRAP : KUBECONFIG) &&
                     report_did(report, ACTION_WRITE_FILE, KUBELET_ENVIRONMENT));
        json_t *access = access_json(report);
        _cleanup_(text_done) Text t = {};
        if (!here && !access)
                return;                 /* no access to a cluster */
        add_verdict(&t, v->code, v->step, v->text ?: "");
        add_outlook(&t, root, report, v);
        const char *reason = v->tolerated ? "NodestrapTainted" : "NodestrapFailed";
        _cleanup_(json_decrefp) json_t *notice = notice_new(root, true, reason, v->code, v->step, t.data);
        if (access)
                json_object_set_new(notice, "access", access);
        json_object_set_new(notice, "given", json_boolean(!here));
        notice_write(root, notice, "");
        remember(root, v);
}

/* An image may carry the file of another machine. */
static void tell_recovery(const Root *root) {
        _free_ char *text = NULL, *machine = NULL;
        if (root_read(root, UNWELL_FILE, UNWELL_MAX, &text, NULL) < 0)
                return;
        _cleanup_(json_decrefp) json_t *unwell = json_loads(text, 0, NULL);
        const char *code = json_get_text(unwell, "code"), *step = json_get_text(unwell, "step");
        (void)!root_remove(root, UNWELL_FILE);
        machine = find_machine(root);
        if (!*code || !streq(machine, json_get_text(unwell, "machine")))
                return;
        _free_ char *message =
                xasprintf("%s at %s is resolved: nodestrap has done every step", code, step);
        _cleanup_(json_decrefp) json_t *notice =
                notice_new(root, false, "NodestrapRecovered", code, step, message);
        notice_write(root, notice, "");
}

void event_of_run(const Root *root, const Report *report, const Verdict *v, bool well) {
        if (v->exit_code != EXIT_DONE)
                tell_failure(root, report, v);
        else if (well && strstr(report->phases, "run"))
                tell_recovery(root);
}

void event_of_join(const Root *root, const Verdict *v) {
        _cleanup_(text_done) Text t = {};
        bool ours = v->exit_code == EXIT_NOT_JOINED || streq(v->code, cause_word(CAUSE_KUBELET));
        if (!ours || ONE_OF(v->code, cause_word(CAUSE_INIT), cause_word(CAUSE_NO_KUBECONFIG)))
                return;                 /* init has sent it, or no cluster is known */
        add_verdict(&t, v->code, v->step, v->text ?: "");
        const char *reason = streq(v->code, cause_word(CAUSE_DEVICES)) ? "NodestrapDevicesMissing"
                                                                       : "NodestrapNotJoined";
        _cleanup_(json_decrefp) json_t *notice = notice_new(root, true, reason, v->code, v->step, t.data);
        notice_write(root, notice, "");
}

/* ---- the condition NodestrapReady ---- */

/* A later state replaces one that was not sent. */
static void forget_conditions(const Root *root) {
        _strv_ char **names = NULL;
        if (root_list(root, EVENTS_DIR, &names) < 0)
                return;
        STRV_FOREACH(name, names) {
                _free_ char *path = xasprintf(EVENTS_DIR "/%s", *name);
                if (endswith(*name, CONDITION_ENDING))
                        (void)!root_remove(root, path);
        }
}

static json_t *shown_json(const char *message) {
        _cleanup_(text_done) Text shown = {};
        text_add_shown(&shown, message, strcspn(message, "\n"), SENTENCE_MAX, 0);
        return text_json(shown.data ?: "");
}

/* repair: why the node must be repaired, or NULL */
static void condition_write(const Root *root, const char *status, const char *reason, const char *message,
                            const StatusFinding *repair) {
        _free_ char *machine = find_machine(root), *when = verdict_time(), *boot_id = NULL;
        (void)!root_boot_id(root, &boot_id);
        _cleanup_(json_decrefp) json_t *notice = json_pack(
                "{ss ss ss so so so so so}", "condition", "NodestrapReady", "status", status, "reason",
                reason, "message", shown_json(message), "machine", text_json(machine), "bootId",
                text_json(boot_id ?: ""), "time", text_json(when), "environment", event_environment());
        if (repair) {
                json_set_text(notice, "repairReason", repair->reason);
                json_object_set_new(notice, "repairMessage", shown_json(repair->text));
        }
        forget_conditions(root);
        notice_write(root, notice, CONDITION_ENDING);
}

/* The sender may still have one, while the API server is away. */
static bool condition_waits(const Root *root) {
        _strv_ char **names = NULL;
        if (root_list(root, EVENTS_DIR, &names) < 0)
                return false;
        STRV_FOREACH(name, names)
                if (endswith(*name, CONDITION_ENDING))
                        return true;
        return false;
}

/* Does the cluster have a condition of this machine? boot_differs: an older boot. */
static bool condition_is_known(const Root *root, bool *ret_boot_differs) {
        _free_ char *text = NULL, *machine = find_machine(root), *boot_id = NULL;
        if (root_read(root, CONDITION_FILE, UNWELL_MAX, &text, NULL) < 0)
                return false;
        _cleanup_(json_decrefp) json_t *sent = json_loads(text, 0, NULL);
        *ret_boot_differs =
                root_boot_id(root, &boot_id) < 0 || !streq(boot_id, json_get_text(sent, "bootId"));
        return streq(machine, json_get_text(sent, "machine"));
}

/* The run phase does again what earlier phases have missed. After a failed config phase it never begins. */
static bool is_final(const Status *s) {
        return status_last(s, "run") || (streq(s->verdict, "failed") && streq(s->phase, "config"));
}

/* NULL: none, or cluster.repairCondition is not set. */
static const StatusFinding *find_repair(const Status *s) {
        const StatusFinding *f = s->accelerator.health ? s->accelerator.health->findings : NULL;
        while (f && f->word && !*f->reason)
                f++;
        return f && f->word ? f : NULL;
}

static void condition_tell(const Root *root, const Status *s) {
        bool ok = streq(s->verdict, "ok") && is_final(s), expects = ok && s->accelerator.expects;
        const StatusJoin *joined = s->joined;
        if (expects && joined && streq(joined->devices, cause_word(CAUSE_DEVICES)))
                condition_write(root, "False", joined->devices, joined->lack, NULL);
        else if (expects && (!joined || !*joined->devices))
                condition_write(root, "Unknown", "NodestrapRunning", "nodestrap is waiting for the devices",
                                NULL);
        else if (ok)
                condition_write(root, "True", "NodestrapDone", "nodestrap has done all steps of this boot",
                                NULL);
        else if (is_final(s))
                condition_write(root, "False", *s->code ? s->code : "NodestrapFailed", s->text,
                                find_repair(s));
        else
                condition_write(root, "Unknown", "NodestrapRunning", "nodestrap is setting up this node",
                                NULL);
}

void condition_of_start(const Root *root) {
        bool earlier = false;
        if (condition_is_known(root, &earlier) && earlier)
                condition_write(root, "Unknown", "NodestrapRunning", "nodestrap is setting up this node",
                                NULL);
}

void condition_of_run(const Root *root, const Status *status) {
        bool earlier,
                typed = root_is_host(root) && !verdict_is_of_unit() && !streq(status->verdict, "failed");
        if (status_pool(status))
                return;                 /* kubelet is down, so no Node has anything to say */
        if (is_final(status) && (condition_is_known(root, &earlier) || condition_waits(root) || typed))
                condition_tell(root, status);
}

void condition_of_node(const Root *root) {
        _cleanup_(status_done) Status status = {};
        if (geteuid() == 0 && status_read(root, &status) >= 0)
                condition_tell(root, &status);
}
