/* SPDX-License-Identifier: Apache-2.0
 * An API server that answers anything → the wait for the Node, a look at it, an Event: each ends, and says
 * why. The first byte says which. Then come the answers to requests, with a line "==" between them.
 * Each is "CURLCODE STATUS VERIFY BITS", and below it the lines of the watch, or the body. An empty line is a
 * second without data. With some first bytes the rest is a tree (tree.h) with kubeconfig and environment
 * file. */
#include "fake-clock.h"
#include "tree.h"

#include "base/json.h"
#include "base/log.h"
#include "kube/internal.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct KubeApi { int unused; };

static const char *next, *end;
static unsigned requests;

/* ---- in the place of api.c and kubelet.c ---- */

int kube_api_new(const KubeAccess *access, KubeApi **ret, Diag *diag) {
        (void)access, (void)diag;
        *ret = xcalloc(1, sizeof **ret);
        return 0;
}

KubeApi *kube_api_free(KubeApi *a) {
        free(a);
        return NULL;
}

void kube_reply_done(KubeReply *r) {
        free(r->error);
        text_done(&r->body);
        *r = (KubeReply){};
}

/* The words of the answer, and where its lines begin; NULL: no more answers. */
static char *answer(KubeReply *ret, const char **ret_lines) {
        static const char line[] = "\n==\n";
        unsigned bits = 0;
        if (++requests > 2000)
                abort();        /* the wait does not end */
        fake_now += USEC_PER_SEC;
        if (!next) {
                *ret = (KubeReply){ .curl = 28, .error = xstrdup("timed out"), .usec = USEC_PER_SEC };
                return NULL;
        }
        const char *stop = memmem(next, (size_t)(end - next), line, strlen(line));
        char *text = xstrndup(next, (size_t)((stop ?: end) - next));
        next = stop ? stop + strlen(line) : NULL;
        *ret = (KubeReply){ .error = xstrdup("said libcurl: subject name reset by peer"), .usec = 5 };
        if (sscanf(text, "%d %ld %ld %u", &ret->curl, &ret->status, &ret->verify, &bits) < 1)
                ret->curl = 1;
        ret->resolved = bits & 1;
        ret->connected = bits & 2;
        ret->at_proxy = ret->proxy_set = bits & 4;
        ret->cut_by_deadline = bits & 8;
        ret->os_error = bits & 16 ? ECONNREFUSED : bits & 32 ? EHOSTUNREACH : 0;
        ret->date = bits & 64 ? 1700000000 : 0;
        ret->retry_after = bits & 128 ? UINT32_MAX : 0;
        ret->proxy_status = bits & 256 ? 407 : 0;
        const char *lines = strchr(text, '\n');
        *ret_lines = lines ? lines + 1 : "";
        return text;
}

/* true: the watch continues. */
static bool play(const KubeWatch *watch) {
        const char *lines;
        KubeReply *ret = watch->reply;
        _free_ char *text = answer(ret, &lines);
        if (!text)
                return false;
        if (ret->status != 200)
                text_add(&ret->body, "%s", lines);
        for (const char *p = lines; ret->status == 200 && *p;) {
                size_t n = strcspn(p, "\n");
                fake_now += n == 0 ? USEC_PER_SEC : 1;
                if (!watch->on_line(watch->user, p, n))
                        return false;
                p += n + (p[n] == '\n');
        }
        return ret->status == 200;
}

/* One after the other; the last one ends both. */
void kube_api_watch(KubeApi *api, const KubeWatch *watches, size_t n, const char *token,
                    uint64_t deadline_usec) {
        (void)api, (void)token, (void)deadline_usec;
        for (size_t i = 0; i < n; i++) {
                if (strpbrk(watches[i].path, " \r\n"))
                        abort();
                if (!play(&watches[i]) || i + 1 == n)
                        return;
                watches[i].reply->cut = true;
        }
}

void kube_api_request(KubeApi *api, const KubeRequest *request, const char *token, uint64_t deadline_usec,
                      KubeReply *ret) {
        const char *lines;
        _free_ char *text = answer(ret, &lines);
        (void)api, (void)token, (void)deadline_usec;
        if (!*request->path || strpbrk(request->path, " \r\n"))
                abort();
        if (text)
                text_add(&ret->body, "%s", lines);
}

int64_t kube_api_clock(KubeApi *api, uint64_t deadline_usec) {
        (void)api, (void)deadline_usec;
        return 1700000000;
}

void kubelet_done(Kubelet *k) {
        free(k->state);
        *k = (Kubelet){};
}

void kubelet_look(const Root *root, Kubelet *ret) {
        (void)root;
        *ret = (Kubelet){ .state = xstrdup("kubelet.service is active"), .runs = requests & 1 };
}

/* ---- questions ---- */

static int make_token(void *user, char **ret, Diag *diag) {
        (void)user, (void)diag;
        *ret = xstrdup("token");
        return 0;
}

static char *principal(void *user) {
        (void)user;
        return requests & 1 ? NULL : xstrdup("arn:aws:iam::1:role/x");
}

static bool is_lost(const Root *root, JoinOutcome *ret) {
        (void)root, (void)ret;
        return false;
}

static void check_text(const char *text, bool wanted) {
        if (!text != !wanted || (text && !*text))
                abort();
        for (const unsigned char *p = (const unsigned char *)text; p && *p; p++)
                if (*p < ' ' && *p != '\n')
                        abort();        /* this would garble a terminal */
}

static json_t *expected(const Root *root) {
        (void)root;
        return requests & 1 ? NULL : json_pack("{si si si si}", "nvidia.com/gpu", 8, "nvidia.com/mig-*", 7,
                                               "vpc.amazonaws.com/efa", 4, "hugepages-2Mi", 1 << 30);
}

static void join(const Root *root, const KubeAccess *access, const KubeIdentity *as, JoinGoal goal) {
        JoinTask task = { .root = root, .access = access, .identity = as, .is_lost = is_lost,
                          .goal = goal, .expected = expected,
                          .deadline_usec = now_usec() + 120 * USEC_PER_SEC };
        JoinOutcome o = {};
        join_wait(&task, &o);
        check_text(o.text, o.cause != CAUSE_NONE);
        join_outcome_done(&o);
}

static void look(const KubeAccess *access, const KubeIdentity *as) {
        NodeLook l = {};
        kube_node_look(access, as, "nodestrap/unhealthy", now_usec() + USEC_PER_SEC, &l);
        check_text(l.text, l.cause != CAUSE_NONE);
        node_look_done(&l);
}

static void tell(const KubeAccess *access, const KubeIdentity *as) {
        KubeEvent e = { .name = "nodestrap-x", .reason = "NodestrapFailed", .message = "m", .first = "f",
                        .last = "l", .count = 1 };
        KubeSent sent = {};
        kube_event_send(access, as, &e, &sent);
        check_text(sent.text, sent.cause != CAUSE_NONE);
        free(sent.text);
        KubeCondition c = { .type = "NodestrapReady", .status = "True", .reason = "r", .message = "m", .instance = "",
                            .repair_reason = requests % 2 ? "NvidiaXID79Error" : "", .repair_message = "m" };
        sent = (KubeSent){};
        kube_condition_send(access, as, &c, &sent);
        check_text(sent.text, sent.cause != CAUSE_NONE);
        FREE_ALL(sent.text, sent.owner);
}

static void read_access(const char *at) {
        _cleanup_(kube_access_done) KubeAccess access = {}, taken = {};
        _cleanup_(diag_done) Diag diag = {}, other = {};
        Tree tree = tree_new();
        tree_unpack(&tree, at, end);
        int r = kube_access_read(tree.root, &access, &diag);
        if ((r < 0) != (diag_first_error(&diag) != NULL) ||
            (r >= 0 && (!access.server || !access.host || !access.ca || !access.cluster || !access.node)))
                abort();
        json_auto_t *json = json_loadb(at, (size_t)(end - at), 0, NULL);
        r = json ? kube_access_take(tree.root, json, &taken, &other) : -EINVAL;
        if (r >= 0 && (!taken.server || !taken.host || !taken.ca || !taken.cluster || !taken.node))
                abort();
        tree_done(&tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static Root *root;
        KubeAccess access = { .server = (char *)"https://x", .host = (char *)"x", .ca = (char *)"",
                              .ca_path = (char *)"/ca", .cluster = (char *)"prod", .node = (char *)"n",
                              .boot_id = (char *)"11111111-2222-3333-4444-555555555555" };
        const KubeIdentity as = { .token = make_token, .principal = principal };
        if (size < 1 || size > MAX_INPUT)
                return 0;
        if (!root && root_new("/", &root) < 0)
                abort();
        _free_ char *text = xmemdup(data + 1, size - 1);
        next = text;
        end = text + size - 1;
        requests = 0;
        fake_now = USEC_PER_SEC;
        log_set_level(LOG_EMERG);
        switch (data[0] & 7) {
        case 0: join(root, &access, &as, JOIN_REGISTERED); break;
        case 1: join(root, &access, &as, JOIN_READY); break;
        case 4: join(root, &access, &as, JOIN_DEVICES); break;
        case 2: look(&access, &as); break;
        case 3: tell(&access, &as); break;
        default: read_access(text);
        }
        return 0;
}
