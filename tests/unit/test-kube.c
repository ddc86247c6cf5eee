/* SPDX-License-Identifier: Apache-2.0
 * Events of a watch → the state of the Node, and replies → causes and sentences; tests/check/wait.sh
 * has a real connection. */
#include "base/time.h"
#include "kube/internal.h"
#include "test.h"

#include <curl/curl.h>
#include <openssl/x509_vfy.h>

#define BOOT "11111111-2222-3333-4444-555555555555"

static int parse(const char *line, KubeNode *ret, char **ret_why) {
        return kube_event_parse(line, strlen(line), BOOT, ret, ret_why);
}

static char *event(const char *type, const char *boot_id, const char *conditions) {
        return xasprintf("{\"type\":\"%s\",\"object\":{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\",\"creationTimestamp\":\"2026-01-02T03:04:05Z\"},"
                         "\"status\":{\"nodeInfo\":{\"bootID\":\"%s\"},\"conditions\":[%s]}}}\n", type, boot_id, conditions);
}

TEST(the_node_state_follows_the_event) {
        static const char pressure[] = "{\"type\":\"MemoryPressure\",\"status\":\"True\"},";
        static const struct { const char *type, *boot_id, *ready; KubeNodeState state; } cases[] = {
                { "ADDED",    BOOT,    "\"True\"",    KUBE_NODE_READY      },
                { "MODIFIED", BOOT,    "\"True\"",    KUBE_NODE_READY      },
                { "ADDED",    BOOT,    "\"False\"",   KUBE_NODE_REGISTERED },
                { "ADDED",    BOOT,    "\"Unknown\"", KUBE_NODE_REGISTERED },
                { "ADDED",    BOOT,    "true",        KUBE_NODE_REGISTERED },
                { "ADDED",    "other", "\"True\"",    KUBE_NODE_STALE      },
                { "ADDED",    "",      "\"True\"",    KUBE_NODE_READY      },    /* kubelet did not know its boot, but only kubelet reports Ready */
                { "DELETED",  BOOT,    "\"True\"",    KUBE_NODE_ABSENT     },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *ready = xasprintf("%s{\"type\":\"Ready\",\"status\":%s,\"lastTransitionTime\":\"2026-01-02T03:05:05Z\"}", pressure, cases[i].ready);
                _free_ char *line = event(cases[i].type, cases[i].boot_id, ready), *why = NULL;
                _cleanup_(kube_node_done) KubeNode n = {};
                ASSERT_OK(parse(line, &n, &why));
                if (n.state != cases[i].state)
                        FAIL("case %zu: state %d, want %d", i, (int)n.state, (int)cases[i].state);
        }
}

TEST(a_node_without_conditions_is_registered) {
        _free_ char *line = event("ADDED", BOOT, ""), *why = NULL;
        _cleanup_(kube_node_done) KubeNode n = {};
        ASSERT_OK(parse(line, &n, &why));
        ASSERT_EQ(n.state, KUBE_NODE_REGISTERED);
        ASSERT_TRUE(!n.reason && !n.message);
        ASSERT_EQ(n.created, 1767323045);
}

TEST(without_an_own_boot_id_a_ready_node_counts) {
        _free_ char *line = event("ADDED", "any", "{\"type\":\"Ready\",\"status\":\"True\"}"), *why = NULL;
        _cleanup_(kube_node_done) KubeNode n = {};
        ASSERT_OK(kube_event_parse(line, strlen(line), "", &n, &why));
        ASSERT_EQ(n.state, KUBE_NODE_READY);
        ASSERT_EQ(n.ready_since, 0);
}

TEST(reason_and_message_come_from_the_ready_condition) {
        _free_ char *line = event("ADDED", BOOT, "{\"type\":\"Ready\",\"status\":\"Unknown\",\"reason\":\"R\",\"message\":\"m n\"}"), *why = NULL;
        _cleanup_(kube_node_done) KubeNode n = {};
        ASSERT_OK(parse(line, &n, &why));
        ASSERT_STREQ(n.reason, "R");
        ASSERT_STREQ(n.message, "m n");
}

TEST(invalid_events_are_refused) {
        static const char *const lines[] = { "", "\n", "{}", "[]", "<html>", "{\"type\":\"ADDED\"}", "{\"type\":\"ADDED\",\"object\":[]}", "{\"object\":{}}",
                                             "{\"type\":\"BOOKMARK\",\"object\":{}}", "{\"type\":7,\"object\":{}}", "{\"type\":\"ADDED\",\"object\":{}} x" };
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                KubeNode n = {};
                char *why = NULL;
                if (parse(lines[i], &n, &why) != -EBADMSG || why)
                        FAIL("case %zu", i);
        }
}

TEST(error_events_have_the_message_of_the_server) {
        _free_ char *why = NULL, *other = NULL;
        KubeNode n = {};
        ASSERT_ERROR(parse("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"message\":\"too old\"}}", &n, &why), EREMOTEIO);
        ASSERT_STREQ(why, "too old");
        ASSERT_ERROR(parse("{\"type\":\"ERROR\"}", &n, &other), EREMOTEIO);
        ASSERT_TRUE(other);
}

TEST(the_message_of_a_status_is_found) {
        static const char *const bodies[][2] = { { "{\"message\":\"no\"}", "no" }, { "{\"message\":\"\"}", NULL }, { "{\"message\":7}", NULL }, { "nothing", NULL } };
        for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
                Text body = {};
                text_add(&body, "%s", bodies[i][0]);
                _free_ char *message = kube_status_message(&body);
                ASSERT_TRUE(bodies[i][1] ? message && streq(message, bodies[i][1]) : !message);
                text_done(&body);
        }
}

/* ---- devices ---- */

#define STATUS(allocatable, capacity) "{\"allocatable\":{" allocatable "},\"capacity\":{" capacity "}}"
#define GPUS(n)  "\"nvidia.com/gpu\":\"" #n "\""
#define SLICE(name, driver, devices) "\"" name "\":{\"driver\":\"" driver "\",\"devices\":[" devices "]}"
#define DRA(kind, more) "{\"attributes\":{\"type\":{\"string\":\"" kind "\"}}" more "}"
#define OLD      "{\"basic\":" DRA("gpu", "") "}"
#define EFA(rdma) "{\"attributes\":{\"dra.net/rdma\":{\"bool\":" rdma "}}}"
#define TAINTED  ",\"taints\":[{\"key\":\"xid\",\"effect\":\"NoSchedule\"}]"

TEST(devices_that_pods_cannot_get_are_explained) {
        static const struct { const char *expected, *status, *slices, *text; } cases[] = {
                { "{}", "{}", "{}", NULL },
                { "{\"nvidia.com/gpu\":8}", STATUS(GPUS(8), GPUS(8)), "{}", NULL },
                { "{\"nvidia.com/gpu\":8}", STATUS("\"nvidia.com/gpu.shared\":\"32\"", ""), "{}", NULL },
                { "{\"nvidia.com/gpu\":8}", "{}", "{}", "pods can get 0 of 8 nvidia.com/gpu: no device plugin or DRA driver has registered them" },
                { "{\"nvidia.com/gpu\":8}", STATUS(GPUS(0), GPUS(0)), "{}", "pods can get 0 of 8 nvidia.com/gpu: no device plugin or DRA driver has registered them" },
                { "{\"nvidia.com/gpu\":8}", STATUS(GPUS(7), GPUS(7)), "{}", "pods can get 7 of 8 nvidia.com/gpu: the device plugin has registered no more" },
                { "{\"nvidia.com/gpu\":8}", STATUS(GPUS(7), GPUS(8)), "{}",
                  "pods can get 7 of 8 nvidia.com/gpu: the device plugin has exited, or finds the others unhealthy; see the log of its pod" },
                { "{\"nvidia.com/gpu\":8}", STATUS(GPUS(0), GPUS(8)), "{}",
                  "pods can get 0 of 8 nvidia.com/gpu: the device plugin has exited, or finds the others unhealthy; see the log of its pod" },
                { "{\"nvidia.com/gpu\":2}", "{}", "{" SLICE("a", "gpu.nvidia.com", DRA("gpu", "")) "," SLICE("b", "gpu.nvidia.com", OLD "," DRA("vfio", "")) "}", NULL },
                { "{\"nvidia.com/gpu\":2}", "{}", "{" SLICE("a", "gpu.nvidia.com", DRA("gpu", "") "," DRA("gpu", TAINTED) "," DRA("mig", "")) "}",
                  "pods can get 1 of 2 nvidia.com/gpu: the DRA driver offers no more untainted devices" },
                { "{\"nvidia.com/gpu\":1}", "{}", "{" SLICE("a", "compute-domain.nvidia.com", DRA("gpu", "")) "}",
                  "pods can get 0 of 1 nvidia.com/gpu: no device plugin or DRA driver has registered them" },
                { "{\"nvidia.com/gpu\":8}", STATUS(GPUS(8), GPUS(8)), "{" SLICE("a", "gpu.nvidia.com", DRA("gpu", "")) "}",
                  "a device plugin offers 8 of nvidia.com/gpu and a DRA driver 1, so two pods may get the same device. Remove the plugin or the DRA driver from this node" },
                { "{\"nvidia.com/mig-*\":8}", STATUS(GPUS(1) ",\"nvidia.com/mig-1g.10gb\":\"7\"", ""), "{}", NULL },
                { "{\"nvidia.com/mig-*\":7}", STATUS(GPUS(7), ""), "{}", NULL },
                { "{\"nvidia.com/mig-*\":2}", "{}", "{" SLICE("a", "gpu.nvidia.com", DRA("gpu", "") "," DRA("mig", "")) "}", NULL },
                { "{\"vpc.amazonaws.com/efa\":1}", "{}", "{" SLICE("a", "dra.net", EFA("false") "," EFA("true")) "}", NULL },
                { "{\"nvidia.com/gpu\":8,\"vpc.amazonaws.com/efa\":32}", STATUS(GPUS(8), ""), "{}",
                  "pods can get 0 of 32 vpc.amazonaws.com/efa: no device plugin or DRA driver has registered them" },
                { "{\"hugepages-2Mi\":1073741824}", STATUS("\"hugepages-2Mi\":\"1Gi\"", ""), "{}", NULL },
                { "{\"hugepages-1Gi\":4294967296}", STATUS("\"hugepages-1Gi\":\"1Gi\"", ""), "{}",
                  "pods can get 1Gi of 4Gi hugepages-1Gi: kubelet counts them when it starts; run systemctl restart kubelet" },
                { "{\"nvidia.com/gpu\":1}", "{\"allocatable\":{\"nvidia.com/gpu\":7,\"nvidia.com/gpu.x\":\"many\"},\"capacity\":[]}", "{\"a\":7,\"b\":{\"driver\":\"gpu.nvidia.com\",\"devices\":{}}}",
                  "pods can get 0 of 1 nvidia.com/gpu: no device plugin or DRA driver has registered them" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                json_auto_t *expected = json_loads(cases[i].expected, 0, NULL), *status = json_loads(cases[i].status, 0, NULL),
                            *slices = json_loads(cases[i].slices, 0, NULL), *seen = json_object();
                ASSERT_TRUE(expected && status && slices);
                _free_ char *text = devices_judge(expected, status, slices, seen);
                if (cases[i].text ? !text || !streq(text, cases[i].text) : !!text)
                        FAIL("case %zu: %s", i, text ?: "nothing");
                ASSERT_EQ(json_object_size(seen), json_object_size(expected));
        }
        json_auto_t *seen = json_object();
        _free_ char *nothing = devices_judge(NULL, NULL, NULL, seen);
        ASSERT_TRUE(!nothing);
}

/* ---- a look at the Node ---- */

#define UNHEALTHY "nodestrap/unhealthy"
#define NODE(spec) "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"},\"spec\":" spec "}"
#define TAINT(key, rest) "{\"key\":\"" key "\"," rest "}"

static int look(const char *text, bool found, NodeLook *ret) {
        _cleanup_(text_done) Text body = {};
        text_add(&body, "%s", text);
        return node_look_parse(&body, found, "n", UNHEALTHY, ret);
}

TEST(the_nodestrap_taint_of_a_node_is_found) {
        static const struct { const char *spec, *taint; } cases[] = {
                { NODE("{}"), NULL },
                { NODE("{\"taints\":[]}"), NULL },
                { NODE("{\"taints\":7}"), NULL },
                { NODE("{\"taints\":[" TAINT(UNHEALTHY, "\"value\":\"EGPU\",\"effect\":\"NoSchedule\"") "]}"), "EGPU" },
                { NODE("{\"taints\":[7," TAINT("a", "\"effect\":\"NoSchedule\"") "," TAINT(UNHEALTHY, "\"effect\":\"NoExecute\"") "]}"), "" },
                { NODE("{\"taints\":[" TAINT(UNHEALTHY, "\"value\":\"EGPU\",\"effect\":\"PreferNoSchedule\"") "]}"), NULL },
                { NODE("{\"taints\":[" TAINT(UNHEALTHY "2", "\"effect\":\"NoSchedule\"") "," TAINT(UNHEALTHY, "\"value\":\"EGPU\"") "]}"), NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(node_look_done) NodeLook l = {};
                ASSERT_OK(look(cases[i].spec, true, &l));
                ASSERT_TRUE(l.there && !l.provider_id);
                if (!streq(l.taint ?: "none", cases[i].taint ?: "none"))
                        FAIL("case %zu: %s", i, l.taint ?: "none");
        }
        _cleanup_(node_look_done) NodeLook l = {};
        ASSERT_OK(look(NODE("{\"providerID\":\"aws:///us-west-2a/i-1\"}"), true, &l));
        ASSERT_STREQ(l.provider_id, "aws:///us-west-2a/i-1");
}

/* Only the API server itself can say that a Node does not exist: a 404 of a proxy is not an answer. */
TEST(only_a_404_of_the_api_server_means_no_node) {
        static const char missing[] = "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404}";
        static const struct { const char *text; bool found; } bad[] = {
                { missing, true }, { NODE("{}"), false }, { "404 page not found\n", false }, { "", false }, { "", true }, { "[]", true },
                { "{\"kind\":\"Status\",\"reason\":\"Forbidden\"}", false }, { "{\"kind\":\"Node\",\"metadata\":{\"name\":\"m\"}}", true },
                { "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"n\"}}", true },
        };
        NodeLook l = { .there = true };
        ASSERT_OK(look(missing, false, &l));
        ASSERT_TRUE(!l.there && !l.taint && !l.provider_id);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                if (look(bad[i].text, bad[i].found, &l) != -EBADMSG)
                        FAIL("case %zu", i);
}

/* ---- the name of the Node ---- */

TEST(a_stale_node_keeps_its_provider_id) {
        static const char line[] = "{\"type\":\"ADDED\",\"object\":{\"spec\":{\"providerID\":\"aws:///a/i-0\"},\"status\":{\"nodeInfo\":{\"bootID\":\"b\"}}}}\n";
        _cleanup_(kube_node_done) KubeNode stale = {}, own = {};
        char *why = NULL;
        ASSERT_OK(kube_event_parse(line, strlen(line), "another", &stale, &why));
        ASSERT_EQ(stale.state, KUBE_NODE_STALE);
        ASSERT_STREQ(stale.provider_id, "aws:///a/i-0");
        ASSERT_OK(kube_event_parse(line, strlen(line), "b", &own, &why));
        ASSERT_EQ(own.state, KUBE_NODE_REGISTERED);
        ASSERT_TRUE(!own.provider_id);
}

/* The parts of a kubeconfig that matter here. */
static const char kubeconfig[] =
        "current-context: k\ncontexts: [{name: k, context: {cluster: c, user: u}}]\n"
        "clusters: [{name: c, cluster: {server: \"https://kube.example\","
        " certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t}}]\n"
        "users: [{name: u, user: {exec: {args: [--cluster-name, training]}}}]\n";

static void remove_files(const char *dir) {
        static const char *const files[] = { "/var/lib/kubelet/kubeconfig", "/etc/eks/kubelet/environment",
                                             "/proc/sys/kernel/hostname" };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                _free_ char *path = xasprintf("%s%s", dir, files[i]);
                ASSERT_EQ(unlink(path), 0);
                while (strlen(path) > strlen(dir) + 1) {        /* directories, unless others use them */
                        *strrchr(path, '/') = 0;
                        rmdir(path);
                }
        }
}

TEST(the_node_name_follows_hostname_override) {
        static const struct { const char *environment, *node; } cases[] = {
                { "NODEADM_KUBELET_ARGS=--v=2\n", "host.example" },
                { "NODEADM_KUBELET_ARGS=--hostname-override=My.Node --v=2\n", "my.node" },
                { "NODEADM_KUBELET_ARGS=--hostname-override my.node\n", "my.node" },
                { "NODEADM_KUBELET_ARGS=--hostname-override=a --hostname-override=b\n", "b" },
                { "NODEADM_KUBELET_ARGS=--hostname-override=a\nNODEADM_KUBELET_ARGS=--hostname-override=b\n", "b" },
                { "NODEADM_KUBELET_ARGS=--hostname-override=a --hostname-override=\n", "host.example" },
                { "NODEADM_KUBELET_ARGS='--hostname-override=my.node'\n", "my.node" },
                { "NODEADM_KUBELET_ARGS=\"--v=2 --hostname-override=\\\"my.node\\\"\"\n", "my.node" },
                { "NODEADM_KUBELET_ARGS=--hostname-override='my.node'\n", "my.node" },
                { "NODEADM_KUBELET_ARGS=--hostname-override \"my.node\"\n", "my.node" },
                { "NODEADM_KUBELET_ARGS=--v=2 \\\n--hostname-override=my.node\n", "my.node" },
                { "NODEADM_KUBELET_ARGS=--hostname-override=my.node\n#NODEADM_KUBELET_ARGS=--hostname-override=old\n", "my.node" },
                { "NODEADM_KUBELET_ARGS=--v=2\n; was --hostname-override=old\n", "host.example" },
                { "NODEADM_KUBELET_ARGS=--v=2\nOLD_ARGS=--hostname-override=old\n", "host.example" },
                { "NODEADM_KUBELET_ARGS=--node-labels=\"a=--hostname-override=b c\"\n", "host.example" },
        };
        char dir[] = "/tmp/test-kube-XXXXXX";
        _cleanup_(root_freep) Root *root = NULL;
        ASSERT_TRUE(mkdtemp(dir));
        ASSERT_OK(root_new(dir, &root));
        ASSERT_OK(root_replace_volatile(root, "/var/lib/kubelet/kubeconfig", kubeconfig, strlen(kubeconfig), 0600));
        ASSERT_OK(root_replace_volatile(root, "/proc/sys/kernel/hostname", "host.example\n", 13, 0600));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *text = cases[i].environment;
                _cleanup_(kube_access_done) KubeAccess a = {};
                Diag diag = {};
                ASSERT_OK(root_replace_volatile(root, "/etc/eks/kubelet/environment", text, strlen(text), 0600));
                if (kube_access_read(root, &a, &diag) < 0 || !streq(a.node, cases[i].node))
                        FAIL("case %zu: %s: %s", i, text, a.node ?: diag.items[0].text);
                diag_done(&diag);
        }
        remove_files(dir);
}

TEST(invalid_node_names_are_errors) {
        static const struct { const char *environment, *words; } cases[] = {
                { "NODEADM_KUBELET_ARGS=--hostname-override=my_node\n", "/etc/eks/kubelet/environment: the name of this node" },
                { "NODEADM_KUBELET_ARGS=--v=2\n", "the host name is not a valid Node name" },
        };
        char dir[] = "/tmp/test-kube-XXXXXX";
        _cleanup_(root_freep) Root *root = NULL;
        ASSERT_TRUE(mkdtemp(dir));
        ASSERT_OK(root_new(dir, &root));
        ASSERT_OK(root_replace_volatile(root, "/var/lib/kubelet/kubeconfig", kubeconfig, strlen(kubeconfig), 0600));
        ASSERT_OK(root_replace_volatile(root, "/proc/sys/kernel/hostname", "my_host\n", 8, 0600));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *text = cases[i].environment;
                _cleanup_(kube_access_done) KubeAccess a = {};
                Diag diag = {};
                ASSERT_OK(root_replace_volatile(root, "/etc/eks/kubelet/environment", text, strlen(text), 0600));
                ASSERT_ERROR(kube_access_read(root, &a, &diag), EINVAL);
                ASSERT_CONTAINS(diag.items[0].text, cases[i].words);
                diag_done(&diag);
        }
        remove_files(dir);
}

/* Forms that spec.cluster.apiServerEndpoint may have. */
TEST(only_https_servers_are_accepted) {
        static const struct { const char *server, *words; } cases[] = {
                { "https://kube.example", NULL },
                { "HTTPS://kube.example/", NULL },
                { "http://kube.example", "/var/lib/kubelet/kubeconfig is http: kubelet uses it, but nodestrap does not send a token in clear text" },
                { "Http://kube.example", "is http: kubelet uses it, but nodestrap" },
                { "kube.example", "/var/lib/kubelet/kubeconfig does not begin with https://" },
                { "", "does not begin with https://" },
        };
        char dir[] = "/tmp/test-kube-XXXXXX";
        const char *args = "NODEADM_KUBELET_ARGS=--hostname-override=my.node\n", *at = strstr(kubeconfig, "https://kube.example");
        _cleanup_(root_freep) Root *root = NULL;
        ASSERT_TRUE(mkdtemp(dir));
        ASSERT_OK(root_new(dir, &root));
        ASSERT_OK(root_replace_volatile(root, "/etc/eks/kubelet/environment", args, strlen(args), 0600));
        ASSERT_OK(root_replace_volatile(root, "/proc/sys/kernel/hostname", "host\n", 5, 0600));
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *text = xasprintf("%.*s%s%s", (int)(at - kubeconfig), kubeconfig, cases[i].server, strchr(at, '"'));
                _cleanup_(kube_access_done) KubeAccess a = {};
                Diag diag = {};
                ASSERT_OK(root_replace_volatile(root, "/var/lib/kubelet/kubeconfig", text, strlen(text), 0600));
                int r = kube_access_read(root, &a, &diag);
                if (cases[i].words) {
                        ASSERT_ERROR(r, EBADMSG);
                        ASSERT_EQ(diag.items[0].cause, CAUSE_NO_KUBECONFIG);
                        ASSERT_CONTAINS(diag.items[0].text, cases[i].words);
                } else {
                        ASSERT_OK(r);
                        ASSERT_STREQ(a.host, "kube.example");
                        ASSERT_TRUE(!endswith(a.server, "/"));
                }
                diag_done(&diag);
        }
        remove_files(dir);
}

/* ---- failures ---- */

static char *nobody(_unused_ void *user) {
        return NULL;
}

static char *somebody(_unused_ void *user) {
        return xstrdup("arn:aws-cn:iam::1:role/r");
}

static const KubeIdentity unknown = { .principal = nobody }, known = { .principal = somebody };

static char server[] = "https://kube.example", host[] = "kube.example", ca_path[] = "/ca.crt", cluster[] = "training", region[] = "cn-north-1", node[] = "n";
static const KubeAccess access_here = { .server = server, .host = host, .ca_path = ca_path, .cluster = cluster, .region = region, .node = node };
static const KubeAccess access_nowhere = { .server = server, .host = host, .ca_path = ca_path, .cluster = cluster, .node = node };

typedef struct Case { KubeReply reply; int64_t server; Cause cause; const char *words; } Case;

static char *explain(const KubeAccess *access, const KubeIdentity *identity, const Case *c) {
        KubeMoment m = { .access = access, .reply = &c->reply, .now = 1767323045, .server = c->server };
        char *text = NULL;
        Cause cause = kube_failure(&m, identity, &text);
        if (cause != c->cause)
                FAIL("cause %s, want %s: %s", cause_word(cause), cause_word(c->cause), text);
        return text;
}

#define BODY(text) { text, sizeof text - 1, sizeof text }

TEST(each_failure_has_a_cause_and_a_sentence) {
        static char asks[] = "{\"message\": \"nodes \\\"n\\\" is forbidden: User \\\"system:node:ip-1\\\" cannot watch\"}",
                    lonely[] = "{\"message\": \"User \\\"system:node:n\\\" cannot watch\"}", user[] = "{\"message\": \"User \\\"me\\\" cannot watch\"}",
                    open_end[] = "{\"message\": \"User \\\"system:node:ip-1\"}";
        static char reset[] = "Recv failure: Connection reset by peer", eof[] = "TLS connect error: error:0A000126:SSL routines::unexpected eof while reading";
        static char e[] = "words of libcurl", names[] = "no alternative certificate subject name matches";
        static const Case cases[] = {
                { { .status = 200 }, 0, CAUSE_NONE, "" },
                { { .status = 401, .date = 1 }, 1767323045, CAUSE_NOT_MAPPED, "--region cn-north-1 --type EC2_LINUX --principal-arn arn:aws-cn:iam::1:role/r" },
                { { .status = 401 }, 0, CAUSE_NOT_MAPPED, "arn:aws-cn:iam::1:role/r: create one" },
                { { .status = 401 }, 0, CAUSE_NOT_MAPPED, "the token may be for another cluster: training must be the name (spec.cluster.name) of the cluster at https://kube.example. Or its authenticator" },
                { { .status = 401 }, 1767323045 - 299, CAUSE_NOT_MAPPED, "create one" },
                { { .status = 401 }, 1767323045 - 300, CAUSE_CLOCK, "2026-01-02T03:04:05Z, that of the server 2026-01-02T02:59:05Z: ours is 300 s ahead" },
                { { .status = 401 }, 1767323045 + 300, CAUSE_CLOCK, "ours is 300 s behind" },
                { { .status = 401 }, 1767323045 + 86400, CAUSE_CLOCK, "ours is 24 h behind" },
                { { .status = 401 }, 1767323045 + 864000, CAUSE_CLOCK, "ours is 10 days behind" },
                { { .status = 403 }, 0, CAUSE_FORBIDDEN, "Node n: 403 Forbidden; the role must be mapped to user system:node:n" },
                { { .status = 403, .body = BODY(asks) }, 0, CAUSE_FORBIDDEN, "; the cluster knows this node as ip-1: kubelet must register with that name, the private DNS name of this instance in EC2 (--hostname-override, in /etc/eks/kubelet/environment)" },
                { { .status = 403, .body = BODY(lonely) }, 0, CAUSE_FORBIDDEN, "the role must be mapped to user system:node:n (it already is) and group system:nodes" },
                { { .status = 403, .body = BODY(user) }, 0, CAUSE_FORBIDDEN, "User \"me\" cannot watch); the role must be mapped to user system:node:n and group system:nodes" },
                { { .status = 403, .body = BODY(open_end) }, 0, CAUSE_FORBIDDEN, "knows this node as ip-1: " },
                { { .status = 429 }, 0, CAUSE_API_ERROR, "HTTP 429: the API server is overloaded" },
                { { .status = 302 }, 0, CAUSE_API_ERROR, "HTTP 302, unlike an API server" },
                { { .curl = CURLE_COULDNT_RESOLVE_HOST, .error = e }, 0, CAUSE_API_NAME, "kube.example, does not resolve (words of libcurl)" },
                { { .curl = CURLE_OPERATION_TIMEDOUT, .error = e }, 0, CAUSE_API_NAME, "does not resolve" },
                { { .curl = CURLE_OPERATION_TIMEDOUT, .error = e, .resolved = true, .usec = 10 * USEC_PER_SEC }, 0, CAUSE_API_ROUTE, "within 10.0 s: the security group of the cluster" },
                { { .curl = CURLE_OPERATION_TIMEDOUT, .error = e, .resolved = true, .proxy_set = true }, 0, CAUSE_API_ROUTE, "HTTPS_PROXY is set" },
                { { .curl = CURLE_OPERATION_TIMEDOUT, .error = e, .resolved = true, .connected = true }, 0, CAUSE_API_SILENT, "accepts a connection but does not answer" },
                { { .curl = CURLE_COULDNT_CONNECT, .error = e, .os_error = EHOSTUNREACH }, 0, CAUSE_API_ROUTE, "no route to https://kube.example (No route to host)" },
                { { .curl = CURLE_COULDNT_CONNECT, .error = e, .os_error = EACCES }, 0, CAUSE_API_ROUTE, "no connection to https://kube.example: words of libcurl" },
                { { .curl = CURLE_COULDNT_CONNECT, .error = e, .os_error = ECONNREFUSED, .at_proxy = true }, 0, CAUSE_API_PROXY, "words of libcurl; allow that host" },
                { { .curl = CURLE_RECV_ERROR, .error = e, .at_proxy = true, .proxy_status = 403 }, 0, CAUSE_API_PROXY, "it answers HTTP 403" },
                { { .curl = CURLE_PEER_FAILED_VERIFICATION, .error = e, .verify = X509_V_ERR_CERT_NOT_YET_VALID }, 0, CAUSE_CLOCK, "the clock of this machine says 2026-01-02T03:04:05Z; check" },
                { { .curl = CURLE_PEER_FAILED_VERIFICATION, .error = e, .verify = X509_V_ERR_CERT_NOT_YET_VALID }, 1767323045, CAUSE_API_CERT, "is not valid yet, and the clocks agree" },
                { { .curl = CURLE_PEER_FAILED_VERIFICATION, .error = e, .verify = X509_V_ERR_CERT_HAS_EXPIRED }, 1767323045, CAUSE_API_CERT, "has expired, and the clocks agree" },
                { { .curl = CURLE_PEER_FAILED_VERIFICATION, .error = e, .verify = X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN }, 0, CAUSE_API_CERT, "CA in /ca.crt has not signed (self" },
                { { .curl = CURLE_PEER_FAILED_VERIFICATION, .error = names }, 0, CAUSE_API_CERT, "for other names (" },
                { { .curl = CURLE_SSL_CONNECT_ERROR, .error = e }, 0, CAUSE_API_CERT, "no TLS 1.2" },
                { { .curl = CURLE_SSL_CONNECT_ERROR, .error = reset }, 0, CAUSE_API_ERROR, "broke (Recv failure: Connection reset by peer): the API server is restarting" },
                { { .curl = CURLE_SSL_CONNECT_ERROR, .error = eof }, 0, CAUSE_API_ERROR, "the API server is restarting" },
                { { .curl = CURLE_SSL_CACERT_BADFILE, .error = e }, 0, CAUSE_API_CERT, "/ca.crt has no readable certificate" },
                { { .curl = CURLE_GOT_NOTHING, .error = e }, 0, CAUSE_API_ERROR, "broke (words of libcurl): the API server is restarting" },
                { { .curl = CURLE_WEIRD_SERVER_REPLY, .error = e }, 0, CAUSE_API_ERROR, "the server there is not an API server" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *text = explain(&access_here, &known, &cases[i]);
                ASSERT_CONTAINS(text, cases[i].words);
        }
}

TEST(a_node_named_after_its_instance_id_needs_another_mapping) {
        static char id[] = "i-0123456789abcdef0", asks[] = "{\"message\": \"User \\\"system:node:ip-1\\\" cannot watch\"}";
        static const KubeAccess access = { .server = server, .host = host, .ca_path = ca_path, .cluster = cluster, .node = id };
        _free_ char *text = explain(&access, &known, &(Case){ { .status = 403, .body = BODY(asks) }, 0, CAUSE_FORBIDDEN, NULL });
        ASSERT_CONTAINS(text, "knows this node as ip-1: with InstanceIdNodeName, aws-auth must map the role to system:node:{{SessionName}}");
}

TEST(an_unknown_role_has_a_placeholder_in_the_command) {
        static const Case c = { { .status = 401 }, 0, CAUSE_NOT_MAPPED, NULL };
        _free_ char *text = explain(&access_nowhere, &unknown, &c);
        ASSERT_CONTAINS(text, "probably lacks an access entry or aws-auth line for that role: create one (aws eks create-access-entry --cluster-name training --type EC2_LINUX --principal-arn ARN-OF-THE-ROLE). If it has one, ");
}

TEST(control_characters_of_the_server_are_escaped) {
        static char body[] = "{\"message\":\"a\\u001b[31mb\\nc\"}";
        Case c = { { .status = 403, .body = { body, sizeof body - 1, sizeof body } }, 0, CAUSE_FORBIDDEN, NULL };
        _free_ char *text = explain(&access_here, &known, &c);
        ASSERT_CONTAINS(text, "(a\\x1b[31mb\\x0ac)");
}

TEST(only_certificate_dates_need_the_server_clock) {
        KubeReply r = { .curl = CURLE_PEER_FAILED_VERIFICATION, .verify = X509_V_ERR_CERT_HAS_EXPIRED };
        ASSERT_TRUE(kube_failure_wants_clock(&r));
        r.verify = X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
        ASSERT_TRUE(!kube_failure_wants_clock(&r));
        ASSERT_TRUE(!kube_failure_wants_clock(&(KubeReply){ .status = 401 }));
}

TEST_MAIN
