/* SPDX-License-Identifier: Apache-2.0
 * check-node: may kubelet register, if a failure is tolerated with a taint? kubelet gives taints only to a
 * new Node (kubernetes/kubernetes: pkg/kubelet/kubelet_node_status.go, tryRegisterWithAPIServer), and no node
 * may change its own (plugin/pkg/admission/noderestriction/admission.go, admitNode). A Node from before a
 * reboot, or of an earlier instance with this name, must already have the taint; otherwise kubelet would join
 * as healthy.
 *
 * Waiting is cheap: kubelet needs the same server, and a tainted node gets no work. */
#include "apply/device.h"
#include "apply/identity.h"
#include "apply/task.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <jansson.h>

#define BACKOFF_USEC (1 * USEC_PER_SEC)
#define BACKOFF_CAP  (5 * USEC_PER_SEC)
#define RETRY_CAP    (30 * USEC_PER_SEC)        /* limit for Retry-After */
#define ANSWER_USEC  (2 * USEC_PER_SEC)         /* a shorter request is pointless */
#define ID_MAX       100                        /* characters of a providerID in a message */

static const char *what_kubelet_does(const Work *w) {
        return root_exists(w->root, KUBELET_TURN) == 1 ? KUBELET_LEFT : "kubelet stays down";
}

static char *shown(const char *text) {
        Text t = {};
        text_add_shown(&t, text, strlen(text), ID_MAX, 0);
        return text_take(&t);
}

static int hold_another(Work *w, const KubeAccess *a, const NodeLook *l) {
        _free_ char *id = shown(l->provider_id);
        return work_fail(w, -EEXIST, CAUSE_NOT_REGISTERED,
                         "Node %s of cluster %s belongs to another instance (%s, not %s), and kubelet "
                         "would take it over without the taint " TAINT_KEY ": %s. Let the cloud controller "
                         "delete the Node once that instance is gone, or run kubectl delete node %s; then "
                         "run nodestrap init or reboot",
                         a->node, a->cluster, id, w->action->with, what_kubelet_does(w), a->node);
}

static int decide(Work *w, const KubeAccess *a, const NodeLook *l) {
        const char *code = w->given ? w->given[0] : "";
        _free_ char *value = shown(l->taint ?: "");
        w->found = json_pack("{ss sb}", "node", a->node, "exists", l->there);
        if (l->there && !l->taint)
                return work_fail(
                        w, -EEXIST, CAUSE_NOT_REGISTERED,
                        "Node %s of cluster %s exists without the taint " TAINT_KEY ", and a node cannot "
                        "taint itself: %s. Run kubectl taint node %s " TAINT_KEY "=%s:NoSchedule, or kubectl "
                        "delete node %s. Then run nodestrap init, or reboot",
                        a->node, a->cluster, what_kubelet_does(w), a->node, code, a->node);
        if (l->there) {
                json_object_set_new(w->found, "taint", json_string(value));
                if (!streq(value, code))
                        diag_warn_at(&w->warnings, "node-taint-older", NULL, w->action->id,
                                     "Node %s keeps its earlier " TAINT_KEY "=%s: a node cannot change it",
                                     a->node, value);
        }
        return 0;
}

/* Waits for an answer, and for a Node of another instance to go. */
static int look_until(Work *w, const KubeAccess *a) {
        uint64_t patience = work_patience(w);
        ClusterIdentity as = { a, patience };
        KubeIdentity identity = cluster_identity(&as);
        for (unsigned n = 0;; n++) {
                _cleanup_(node_look_done) NodeLook l = {};
                work_at(w, "%s did not answer when asked for Node %s", a->server, a->node);
                kube_node_look(a, &identity, TAINT_KEY, patience, &l);
                /* spec.providerID never changes (pkg/apis/core/validation, ValidateNodeUpdate); ids of other
                 * forms are ignored. */
                const char *id = l.provider_id ?: "";
                if (l.cause == CAUSE_NONE && !(startswith(id, "aws://") && w->action->with &&
                                               !streq(strrchr(id, '/') + 1, w->action->with)))
                        return decide(w, a, &l);
                int r;
                if (l.cause != CAUSE_NONE) {
                        r = work_fail(w, -EHOSTUNREACH, l.cause,
                                      "%s; a Node %s without the taint " TAINT_KEY " may exist, and kubelet "
                                      "would use that Node: %s; to check again, run nodestrap init or reboot",
                                      l.text, a->node, what_kubelet_does(w));
                        work_progress(w, "%s; asking again", l.text);
                } else {
                        r = hold_another(w, a, &l);
                        work_progress(w, "Node %s of another instance: waiting for its deletion", a->node);
                }
                uint64_t now = now_usec(), pause = backoff_usec(n, BACKOFF_USEC, BACKOFF_CAP);
                pause = MAX(pause, MIN(l.retry_after * USEC_PER_SEC, RETRY_CAP));
                if (!work_pause(w, MIN(pause, patience - MIN(now, patience))) ||
                    now_usec() + ANSWER_USEC > patience)
                        return r;
        }
}

int register_work(Work *w) {
        _cleanup_(kube_access_done) KubeAccess access = {};
        Diag diag = {};
        int r = kube_access_read(w->root, &access, &diag);
        const Diagnostic *error = diag_first_error(&diag);
        r = r >= 0 ? look_until(w, &access)
                   : work_fail(w, r, error ? error->cause : CAUSE_INTERNAL,
                               "%s; so the Node of this machine cannot be looked up: %s",
                               error ? error->text : strerror(-r), what_kubelet_does(w));
        diag_done(&diag);
        return r;
}
