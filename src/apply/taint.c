/* SPDX-License-Identifier: Apache-2.0
 * mark-node: writes kubelet arguments with a label and a taint for an earlier failure, and with the NVLink
 * clique as a label. Their file comes after the one that people patch (units/kubelet.service.d). Without
 * either, the file is removed.
 *
 * kubelet merges --node-labels, but uses only the last --register-with-taints, so ours repeats the taints of
 * the user. Nodes may set such labels: kubernetes/kubernetes, plugin/pkg/admission/noderestriction, forbids
 * none of nvidia.com/. */
#include "apply/device.h"
#include "apply/engine.h"
#include "apply/file.h"
#include "apply/gpus.h"

#include "base/json.h"
#include "base/str.h"
#include "doc/env-file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

#define ENVIRONMENT_MAX  (1 << 20)
#define ARGUMENTS        "NODEADM_KUBELET_ARGS"
#define TAINTS_FLAG      "--register-with-taints"
#define CLIQUE_FLAG      "--node-labels=" CLIQUE_KEY "="
#define CLIQUE_STAMP     "/var/lib/nodestrap/clique"    /* of the last registration */
#define UNHEALTHY_FLAG   "--node-labels=" TAINT_KEY "="
#define TAINT_STAMP      "/var/lib/nodestrap/tainted"   /* kubelet may have registered with it, and no run has
                                                         * succeeded since */

/* Values to write; "" for none. The clique "?": keep the label, since this run did not look. */
enum { SAY_CODE, SAY_STEP, SAY_CLIQUE };

static const Result *first_failure(const Task *t) {
        const Result *first = NULL;
        for (size_t i = 0; i < t->n_after_any; i++) {
                const Result *r = t->after_any[i]->result;
                if (r->outcome == OUTCOME_FAILED && (!first || r->end_usec < first->end_usec))
                        first = r;
        }
        return first;
}

int register_check(Task *t) {
        return first_failure(t) ? CHECK_NEEDED : CHECK_DONE_ALREADY;
}

static int arguments_read(Work *w, char ***ret_words, mode_t *ret_mode) {
        _free_ char *text = NULL, *value = NULL;
        struct stat st = { .st_mode = 0644 };
        work_at(w, "reading " KUBELET_ENVIRONMENT);
        int fd = root_open(w->root, KUBELET_ENVIRONMENT, O_PATH);
        int r = root_read(w->root, KUBELET_ENVIRONMENT, ENVIRONMENT_MAX, &text, NULL);
        if (fd >= 0)
                (void)!fstat(fd, &st);
        close_fd(&fd);
        if (r < 0 && r != -ENOENT)
                return file_fail(w, r, "read", KUBELET_ENVIRONMENT);
        value = assignment_in_environment(text ?: "", ARGUMENTS);
        *ret_words = assignment_split(value ?: "");
        *ret_mode = st.st_mode & 0777;
        return 0;
}

/* The taints without ours: of the command line, where people may add them, or of the plan. */
static char *taints_find(char *const *words, char *const *planned) {
        const char *last = NULL;
        for (char *const *w = words; w && *w; w++)
                if (startswith(*w, TAINTS_FLAG "="))
                        last = *w + strlen(TAINTS_FLAG "=");
                else if (streq(*w, TAINTS_FLAG) && w[1])
                        last = w[1];
        return last ? xstrdup(last) : planned ? strv_join(planned, ",") : xstrdup("");
}

static int arguments_write(Work *w, const char *code, const char *clique) {
        _strv_ char **words = NULL;
        mode_t mode = 0644;
        int r = arguments_read(w, &words, &mode);
        if (r < 0)
                return r;
        _free_ char *taints = taints_find(words, w->action->node.taints);
        if (*clique)
                strv_push(&words, xasprintf(CLIQUE_FLAG "%s", clique));
        if (*code) {
                strv_push(&words, xasprintf(UNHEALTHY_FLAG "%s", code));
                strv_push(&words, xasprintf(TAINTS_FLAG "=%s%s" TAINT_KEY "=%s:NoSchedule", taints,
                                            *taints ? "," : "", code));
        }
        _free_ char *value = assignment_join(words), *content = xasprintf(ARGUMENTS "=%s\n", value);
        work_at(w, "writing " TAINT_FILE);
        r = root_replace_volatile(w->root, TAINT_FILE, content, strlen(content), mode);
        return r < 0 ? file_fail(w, r, "written", TAINT_FILE) : r;
}

static void tell(Work *w, bool was_tainted, const char *code) {
        if (*code)
                diag_warn_at(&w->warnings, "node-tainted", NULL, w->action->id,
                             "kubelet registers this node with " TAINT_KEY "=%s:NoSchedule and a label of "
                             "that name",
                             code);
        else if (was_tainted)
                diag_warn_at(&w->warnings, "node-was-tainted", NULL, w->action->id,
                             "kubelet no longer registers this node with " TAINT_KEY ", but an existing "
                             "Node keeps it, and a node cannot change it. Run kubectl taint node NAME "
                             TAINT_KEY "- and kubectl label node NAME " TAINT_KEY "-; or run kubectl delete "
                             "node NAME and reboot");
}

/* kubelet labels only a new Node (kubernetes/kubernetes: pkg/kubelet/kubelet_node_status.go,
 * tryRegisterWithAPIServer), and a tray keeps its Node across reboots and rack repartitions. */
static void clique_tell(Work *w, const char *clique) {
        _free_ char *last = NULL;
        bool known = root_read_line(w->root, CLIQUE_STAMP, &last) >= 0;
        if (streq(last ?: "", clique))
                return;
        stamp_write(w, CLIQUE_STAMP, clique);
        if (known || root_exists(w->root, KUBELET_DIR "/pki") == 1)
                diag_warn_at(&w->warnings, "node-clique", NULL, w->action->id,
                             "kubelet labels only a new Node; for an existing one run kubectl label "
                             "--overwrite node NAME " CLIQUE_KEY "%s%s",
                             *clique ? "=" : "-", clique);
}

int taint_work(Work *w) {
        const char *code = w->given ? w->given[SAY_CODE] : "", *step = w->given ? w->given[SAY_STEP] : "";
        _free_ char *clique = xstrdup(w->given ? w->given[SAY_CLIQUE] : ""), *before = NULL;
        bool looked = !streq(clique, "?");
        (void)!root_read(w->root, TAINT_FILE, ENVIRONMENT_MAX, &before, NULL);
        if (!looked) {
                const char *p = before ? strstr(before, CLIQUE_FLAG) : NULL;
                p = p ? p + strlen(CLIQUE_FLAG) : "";
                RENEW(clique, xstrndup(p, strcspn(p, " \"'\n")));
        }
        work_at(w, "removing " TAINT_FILE);
        int r = *code || *clique ? arguments_write(w, code, clique) : root_remove(w->root, TAINT_FILE);
        if (r < 0)
                return *code || *clique ? r : file_fail(w, r, "removed", TAINT_FILE);
        if (*code || *clique)
                w->found = json_object();
        if (*code) {
                json_object_set_new(w->found, "taint", json_string(code));
                json_object_set_new(w->found, "step", json_string(step));
        }
        if (*clique)
                json_object_set_new(w->found, "clique", json_string(clique));
        /* The stamp survives reboots, unlike the file. */
        _free_ char *last = NULL;
        bool was_tainted = root_read_line(w->root, TAINT_STAMP, &last) >= 0;
        if (*code && !streq(last ?: "", code))
                stamp_write(w, TAINT_STAMP, code);
        else if (was_tainted && !*code)
                (void)!root_remove(w->root, TAINT_STAMP);
        was_tainted = was_tainted || (before && strstr(before, UNHEALTHY_FLAG));
        if (r > 0 || (was_tainted && !*code))
                tell(w, was_tainted, code);
        if (looked)
                clique_tell(w, clique);
        return r;
}

/* From await-fabric of this run: "" without a common clique, "?" if it did not run. */
static char *clique_found(const Task *t) {
        const Apply *a = t->apply;
        for (size_t i = 0; i < a->n; i++) {
                const json_t *found = a->tasks[i].result->found;
                if (a->tasks[i].action->type != ACTION_AWAIT_FABRIC || !found)
                        continue;
                const char *uuid = json_get_text(found, "clusterUuid");
                return *uuid ? xasprintf("%s.%" JSON_INTEGER_FORMAT, uuid,
                                         json_integer_value(json_object_get(found, "cliqueId")))
                             : xstrdup("");
        }
        return xstrdup("?");
}

/* Otherwise the content of the files decides. */
int taint_check(Task *t) {
        const Root *root = t->apply->root;
        return !first_failure(t) && !t->action->node.clique && root_exists(root, TAINT_FILE) == 0 &&
                               root_exists(root, TAINT_STAMP) == 0
                       ? CHECK_DONE_ALREADY
                       : CHECK_NEEDED;
}

char **taint_reason(const Task *t) {
        const Result *failed = first_failure(t);
        _free_ char *clique = t->action->node.clique ? clique_found(t) : xstrdup("");
        return failed || *clique ? command(failed ? cause_word(failed->cause) : "",
                                           failed ? failed->action->id : "", clique, NULL)
                                 : NULL;
}
