/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap send-events`: notices of report/event.c → Events and the condition of the Node, with the token
 * of this node. Nothing waits for it or fails with it. It retries for half an hour, then the journal gets a
 * line. */
#include "commands/run.h"

#include "apply/identity.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "report/event.h"

#include <errno.h>
#include <sys/inotify.h>

#define TOTAL_USEC   (1800 * USEC_PER_SEC)      /* since the verdict */
#define TOKEN_USEC   (10 * USEC_PER_SEC)
#define BACKOFF_USEC (1 * USEC_PER_SEC)
#define BACKOFF_CAP  (30 * USEC_PER_SEC)
#define RETRY_CAP    300                        /* seconds; the server may ask for more */
#define NOTICE_MAX   (1u << 20)
/* {NAME: {count, first}}, the latest last; also of an earlier boot */
#define SENT_FILE    "/var/lib/nodestrap/events.json"
#define SENT_MAX     32

typedef struct Round {
        const Root *root;
        json_t *environment;            /* of this process at its start */
        bool left;                      /* a notice needs another try */
        unsigned retry_after;
        Cause told;                     /* the last cause in the journal */
        char *way;                      /* of the last attempt: server, cluster, role, proxies */
        KubeSent sent;                  /* its result */
} Round;

static void forget_attempt(Round *round) {
        FREE_ALL(round->way, round->sent.text, round->sent.owner);
        round->way = NULL;
        round->sent = (KubeSent){};
}

static json_t *sent_read(const Root *root) {
        _free_ char *text = NULL;
        size_t size = 0;
        int r = root_read(root, SENT_FILE, NOTICE_MAX, &text, &size);
        _cleanup_(json_decrefp) json_t *sent = r >= 0 ? json_loadb(text, size, 0, NULL) : NULL;
        return json_is_object(sent) ? TAKE_PTR(sent) : json_object();
}

static void sent_note(const Root *root, json_t *sent, const KubeEvent *e) {
        json_object_del(sent, e->name);
        while (json_object_size(sent) >= SENT_MAX)
                json_object_del(sent, json_object_iter_key(json_object_iter(sent)));
        json_object_set_new(sent, e->name,
                            json_pack("{sI ss}", "count", (json_int_t)e->count, "first", e->first));
        _free_ char *text = json_dumps(sent, JSON_INDENT(1));
        int r = root_replace(root, SENT_FILE, text, strlen(text), 0644);
        if (r < 0)
                log_debug(SENT_FILE " cannot be written: %s", strerror(-r));
}

/* The files of kubelet win, unless they are of an earlier boot. */
static int find_access(const Root *root, const json_t *notice, KubeAccess *ret, Diag *diag) {
        const json_t *access = json_object_get(notice, "access");
        bool given = json_is_true(json_object_get(notice, "given"));
        int r = access && given ? kube_access_take(root, access, ret, diag)
                                : kube_access_read(root, ret, diag);
        if (r < 0 && access && !given)
                r = kube_access_take(root, access, ret, diag);
        return r;
}

/* A variable that the notice lacks keeps its own value. */
static void adopt_environment(json_t *own, const json_t *notice) {
        const json_t *given = json_object_get(notice, "environment");
        const char *name;
        json_t *value;
        json_object_foreach(own, name, value) {
                const char *proxy =
                        json_string_value(json_object_get(given, name)) ?: json_string_value(value);
                if (!proxy)
                        unsetenv(name);
                else
                        setenv(name, proxy, 1);
        }
}

/* Counts earlier sends from the file: an attempt without an answer does not count twice. */
static KubeSent send_event(const Root *root, const KubeAccess *access, const json_t *notice) {
        _cleanup_(json_decrefp) json_t *sent = sent_read(root);
        ClusterIdentity as = { .access = access, .deadline_usec = now_usec() + TOKEN_USEC };
        KubeIdentity identity = cluster_identity(&as);
        KubeEvent e = {
                .warning = json_is_true(json_object_get(notice, "warning")),
                .reason = json_get_text(notice, "reason"),
                .message = json_get_text(notice, "message"),
                .last = json_get_text(notice, "time"),
        };
        KubeSent result = {};
        kube_event_name(access, e.reason, json_get_text(notice, "key"), e.name);
        const json_t *before = json_object_get(sent, e.name);
        const char *first = json_get_text(before, "first");
        _free_ char *since = xstrdup(*first ? first : e.last);
        e.first = since;
        e.count = MIN(MAX(json_integer_value(json_object_get(before, "count")), 0), INT32_MAX - 1) + 1;
        kube_event_send(access, &identity, &e, &result);
        if (result.cause == CAUSE_NONE) {
                log_info("Sent to cluster %s: %s, Event %s in namespace default, count %lld.",
                         access->cluster, e.reason, e.name, (long long)e.count);
                sent_note(root, sent, &e);
        }
        return result;
}

/* The Node may appear later: kubelet registers it. */
static KubeSent send_condition(const Root *root, const KubeAccess *access, const json_t *notice) {
        ClusterIdentity as = { .access = access, .deadline_usec = now_usec() + TOKEN_USEC };
        KubeIdentity identity = cluster_identity(&as);
        const char *machine = json_get_text(notice, "machine");
        KubeCondition c = {
                .type = json_get_text(notice, "condition"),
                .status = json_get_text(notice, "status"),
                .reason = json_get_text(notice, "reason"),
                .message = json_get_text(notice, "message"),
                .instance = startswith(machine, "i-") ? machine : "",
                .repair_reason = json_get_text(notice, "repairReason"),
                .repair_message = json_get_text(notice, "repairMessage"),
        };
        KubeSent result = {};
        kube_condition_send(access, &identity, &c, &result);
        if (result.cause != CAUSE_NONE && !result.repair)
                return result;
        if (result.cause == CAUSE_NONE)
                log_info("Set in cluster %s: condition %s=%s (%s) of Node %s.", access->cluster, c.type,
                         c.status, c.reason, access->node);
        if (result.cause == CAUSE_NONE && result.repair)
                log_info("Set in cluster %s: condition " KUBE_REPAIR "=%s (%s) of Node %s.", access->cluster,
                         result.repair, *c.repair_reason ? c.repair_reason : c.reason, access->node);
        if (result.owner)
                log_warning("condition " KUBE_REPAIR "=False (%s) was not sent: %s owns this condition of "
                            "Node %s; leave repairs to it, and remove spec.cluster.repairCondition",
                            c.repair_reason, *result.owner ? result.owner : "an unknown manager",
                            access->node);
        _cleanup_(json_decrefp) json_t *known = json_pack(
                "{ss ss ss}", "machine", machine, "bootId", json_get_text(notice, "bootId"), "status",
                c.status);
        _free_ char *text = json_dumps(known, JSON_INDENT(1));
        int r = root_replace(root, CONDITION_FILE, text, strlen(text), 0644);
        if (r < 0)
                log_debug(CONDITION_FILE " cannot be written: %s", strerror(-r));
        return result;
}

static bool is_over(const char *name) {
        uint64_t now = now_usec(), since = 0;
        _free_ char *number = xstrndup(name, strcspn(name, "."));
        return parse_u64(number, &since) < 0 || now > MIN(since, now) + TOTAL_USEC;
}

/* Is the notice done? */
static bool settle(Round *round, const char *name, const json_t *notice, const KubeSent *sent) {
        if (sent->cause == CAUSE_NONE)
                return true;
        bool over = sent->refused || is_over(name);
        const char *condition = sent->repair ? KUBE_REPAIR : json_get_text(notice, "condition"),
                   *kind = *condition ? "condition" : "Event",
                   *what = *condition ? condition : json_get_text(notice, "reason");
        if (over)
                log_warning("%s %s was not sent (%s): %s", kind, what, cause_word(sent->cause),
                            sent->text ?: "");
        else if (sent->cause != round->told && sent->text)
                log_info("%s %s has not been sent yet (%s): %s", kind, what, cause_word(sent->cause),
                         sent->text);
        round->told = sent->cause;
        round->retry_after = MAX(round->retry_after, sent->retry_after);
        return over;
}

/* Asks an unreachable server once a round, or each notice would wait. Another notice may know another way. */
static void attempt(Round *round, const json_t *notice) {
        _cleanup_(kube_access_done) KubeAccess access = {};
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *proxies = json_dumps(json_object_get(notice, "environment"), 0), *way = NULL;
        int r = find_access(round->root, notice, &access, &diag);
        THEN(r, hash_load(&diag));
        const Diagnostic *error = diag_first_error(&diag);
        if (r >= 0)
                way = xasprintf("%s %s %s %s %s", access.server, access.cluster, access.role ?: "",
                                access.ca, proxies ?: "");
        if (way && round->way && round->sent.away && streq(way, round->way))
                return;
        forget_attempt(round);
        round->way = TAKE_PTR(way);
        if (r >= 0)
                round->sent = *json_get_text(notice, "condition")
                                      ? send_condition(round->root, &access, notice)
                                      : send_event(round->root, &access, notice);
        else
                round->sent = (KubeSent){ .cause = error ? error->cause : CAUSE_INTERNAL, .refused = true,
                                          .text = error ? diagnostic_format(error) : xstrdup(strerror(-r)) };
}

static bool try_notice(Round *round, const char *name, const char *path) {
        _free_ char *text = NULL;
        size_t size = 0;
        int r = root_read(round->root, path, NOTICE_MAX, &text, &size);
        if (r == -ENOENT && endswith(name, CONDITION_ENDING))   /* a later one has replaced it */
                return true;
        _cleanup_(json_decrefp) json_t *notice = r >= 0 ? json_loadb(text, size, 0, NULL) : NULL;
        if (!*json_get_text(notice, "reason") || !*json_get_text(notice, "time")) {
                log_warning("%s is not a notice for the cluster.", path);
                return true;
        }
        adopt_environment(round->environment, notice);
        attempt(round, notice);
        return settle(round, name, notice, &round->sent);
}

static int try_all(Round *round, Diag *diag) {
        _strv_ char **names = NULL;
        int r = root_list(round->root, EVENTS_DIR, &names);
        round->left = false;
        round->retry_after = 0;
        if (r < 0 && r != -ENOENT)
                return diag_error(diag, r, CAUSE_USAGE, EVENTS_DIR " cannot be read: %s", strerror(-r));
        for (char **name = names; r >= 0 && name && *name && !stop_signal(); name++) {
                _free_ char *path = xasprintf(EVENTS_DIR "/%s", *name);
                if (**name == '.')      /* it is being written */
                        continue;
                if (!try_notice(round, *name, path) ||
                    (root_remove(round->root, path) < 0 && root_remove_dir(round->root, path) != 1))
                        round->left = true;
        }
        forget_attempt(round);
        return 0;
}

/* Until the next round, or a notice since the last one began. */
static bool wait_for_more(const Round *round, int fd, unsigned failures) {
        uint64_t pause = backoff_usec(failures, BACKOFF_USEC, BACKOFF_CAP);
        pause = MAX(pause, MIN(round->retry_after, RETRY_CAP) * USEC_PER_SEC);
        return stop_wait(fd, now_usec() + pause) == 1;
}

int command_send_events(Run *run) {
        _cleanup_(json_decrefp) json_t *environment = event_environment();
        Round round = { .root = run->root, .environment = environment };
        _free_ char *path = xasprintf("%s" EVENTS_DIR, root_path(run->root));
        stop_catch();
        for (unsigned failures = 0; !stop_signal();) {
                _cleanup_(close_fd) int fd = inotify_init1(IN_CLOEXEC);
                if (fd >= 0)
                        (void)inotify_add_watch(fd, path, IN_MOVED_TO);
                int r = try_all(&round, &run->diag);
                if (r < 0 || !round.left)
                        return r;
                failures = wait_for_more(&round, fd, failures) ? 0 : failures + 1;
        }
        return 0;
}
