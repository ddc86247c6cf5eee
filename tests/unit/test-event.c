/* SPDX-License-Identifier: Apache-2.0
 * Verdicts → notices for the cluster, as files below a temporary root, and their access to the cluster.
 * They become Events in tests/cluster/events.sh. */
#include "files.h"
#include "doc/doc.h"
#include "report/event.h"
#include "report/status.h"

#include "test.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"

#define TAG "/sys/devices/virtual/dmi/id/board_asset_tag"
#define UNWELL "/var/lib/nodestrap/unwell.json"
#define PEM "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"

typedef struct Box { char path[32]; Root *root; Config config; Action kubelet, kubeconfig, environment; Result items[3]; Results results; Report report; Verdict verdict; } Box;

static void box_done(Box *b) {
        root_free(b->root);
        tree_remove(b->path);
}

/* A run phase that failed where kubelet was not started. */
static void box_init(Box *b) {
        static char name[] = "training", id[] = "0a1b", endpoint[] = "https://api.example", pem[] = PEM, kubelet[] = "kubelet.service", kubeconfig[] = KUBECONFIG,
                    environment[] = KUBELET_ENVIRONMENT, text[] = "3 of 8 disks are there\nlast words";
        *b = (Box){ .path = "/tmp/test-event.XXXXXX" };
        ASSERT_TRUE(mkdtemp(b->path));
        ASSERT_OK(root_new(b->path, &b->root));
        ASSERT_OK(root_replace(b->root, TAG, "i-0123\n", 7, 0444));
        b->config.cluster = (Cluster){ .name = name, .id = id, .endpoint = endpoint, .certificate_authority = pem, .certificate_authority_size = strlen(pem) };
        b->kubelet = (Action){ .type = ACTION_START_UNIT, .target = kubelet };
        b->kubeconfig = (Action){ .type = ACTION_WRITE_FILE, .target = kubeconfig };
        b->environment = (Action){ .type = ACTION_WRITE_FILE, .target = environment };
        b->items[0] = (Result){ .action = &b->kubelet, .outcome = OUTCOME_SKIPPED };
        b->items[1] = (Result){ .action = &b->kubeconfig, .outcome = OUTCOME_UNCHANGED };
        b->items[2] = (Result){ .action = &b->environment, .outcome = OUTCOME_DONE };
        b->results = (Results){ .items = b->items, .n = 3 };
        b->report = (Report){ .command = "init", .phases = "run", .results = &b->results, .config = &b->config, .region = "us-west-2", .node = "ip-10-0-0-10.example" };
        b->verdict = (Verdict){ .word = "failed", .code = "EDISKS", .exit_code = EXIT_STORAGE, .step = "await-disks", .phase = "run", .text = text };
}
#define BOX(name) _cleanup_(box_done) Box name; box_init(&name)

static const Verdict all_well = { .word = "ok", .code = "OK", .exit_code = EXIT_DONE };

/* Returns the only notice and removes its file. */
static json_t *notice(const Box *b) {
        _strv_ char **names = NULL;
        _free_ char *text = NULL, *path = NULL;
        ASSERT_OK(root_list(b->root, EVENTS_DIR, &names));
        ASSERT_EQ(strv_length(names), 1);
        path = xasprintf(EVENTS_DIR "/%s", names[0]);
        ASSERT_OK(root_read(b->root, path, 1 << 20, &text, NULL));
        ASSERT_EQ(root_remove(b->root, path), 1);
        json_t *json = json_loads(text, 0, NULL);
        ASSERT_TRUE(json);
        return json;
}

static size_t waiting(const Box *b) {
        _strv_ char **names = NULL;
        int r = root_list(b->root, EVENTS_DIR, &names);
        ASSERT_TRUE(r >= 0 || r == -ENOENT);
        return strv_length(names);
}

static void assert_message(const Box *b, const char *want) {
        json_t *n = notice(b);
        ASSERT_STREQ(json_get_text(n, "message"), want);
        json_decref(n);
}
#define TAIL " (on the node, run nodestrap status)"

TEST(a_failure_has_a_reason_a_message_and_a_key) {
        BOX(b);
        event_of_run(b.root, &b.report, &b.verdict, false);
        json_t *n = notice(&b);
        ASSERT_STREQ(json_get_text(n, "reason"), "NodestrapFailed");
        ASSERT_TRUE(json_is_true(json_object_get(n, "warning")));
        ASSERT_STREQ(json_get_text(n, "message"), "EDISKS at await-disks: 3 of 8 disks are there; kubelet was not started" TAIL);
        ASSERT_STREQ(json_get_text(n, "key"), "i-0123\nEDISKS\nawait-disks");
        ASSERT_EQ(strlen(json_get_text(n, "time")), strlen("2026-01-02T03:04:05Z"));
        json_decref(n);
}

TEST(the_message_says_what_happens_to_the_node) {
        BOX(b);
        b.items[0].outcome = OUTCOME_UNCHANGED;
        event_of_run(b.root, &b.report, &b.verdict, false);
        assert_message(&b, "EDISKS at await-disks: 3 of 8 disks are there" TAIL);
        b.report.tries = 3;
        event_of_run(b.root, &b.report, &b.verdict, false);
        assert_message(&b, "EDISKS at await-disks: 3 of 8 disks are there; nodestrap tried 3 times" TAIL);
        b.report.tries = 1;
        b.report.phases = "devices";
        b.verdict.phase = "devices";
        event_of_run(b.root, &b.report, &b.verdict, false);
        assert_message(&b, "EDISKS at await-disks: 3 of 8 disks are there; the run phase tries this again before it starts kubelet" TAIL);
        static const char status[] = "{\"runs\": {\"devices\": {}, \"devices,run\": {}}}";      /* which came first */
        ASSERT_OK(root_replace(b.root, REPORT_STATUS, status, strlen(status), 0644));
        b.items[0].outcome = OUTCOME_SKIPPED;
        event_of_run(b.root, &b.report, &b.verdict, false);
        assert_message(&b, "EDISKS at await-disks: 3 of 8 disks are there; kubelet was not started" TAIL);
        b.report.phases = "devices,run";
        b.verdict = (Verdict){ .word = "tainted", .code = "EFABRIC", .exit_code = EXIT_ACCELERATOR, .step = "await-fabric", .phase = "devices", .tolerated = true };
        event_of_run(b.root, &b.report, &b.verdict, false);
        json_t *n = notice(&b);
        ASSERT_STREQ(json_get_text(n, "reason"), "NodestrapTainted");
        ASSERT_STREQ(json_get_text(n, "message"), "EFABRIC at await-fabric: ; kubelet registers the node with the taint nodestrap/unhealthy=EFABRIC:NoSchedule" TAIL);
        json_decref(n);
}

/* No Event may say that a running kubelet was not started, after an init by hand or a repeated phase. */
TEST(the_message_says_that_kubelet_keeps_running) {
        BOX(b);
        static char file[] = KUBELET_TURN;
        Action turn = { .type = ACTION_WRITE_FILE, .target = file };
        ASSERT_OK(root_replace(b.root, KUBELET_TURN, "", 0, 0644));
        event_of_run(b.root, &b.report, &b.verdict, false);
        assert_message(&b, "EDISKS at await-disks: 3 of 8 disks are there; kubelet, started by an earlier run in this boot, keeps running" TAIL);
        b.items[1] = (Result){ .action = &turn, .outcome = OUTCOME_DONE };      /* but it does not start */
        b.items[0].outcome = OUTCOME_FAILED;
        event_of_run(b.root, &b.report, &b.verdict, false);
        assert_message(&b, "EDISKS at await-disks: 3 of 8 disks are there; kubelet was not started" TAIL);
}

TEST(the_message_names_the_taint_of_the_node) {
        BOX(b);
        static char key[] = TAINT_KEY;
        Action check = { .type = ACTION_CHECK_NODE, .target = key };
        b.verdict = (Verdict){ .word = "tainted", .code = "EFABRIC", .exit_code = EXIT_ACCELERATOR, .step = "await-fabric", .phase = "devices", .tolerated = true };
        b.items[1] = (Result){ .action = &check, .outcome = OUTCOME_DONE, .found = json_pack("{ss sb ss}", "node", "n", "exists", true, "taint", "EGPU") };
        event_of_run(b.root, &b.report, &b.verdict, false);
        json_decref(b.items[1].found);
        assert_message(&b, "EFABRIC at await-fabric: ; the Node keeps its taint nodestrap/unhealthy=EGPU:NoSchedule" TAIL);
}

TEST(the_message_says_that_the_node_name_is_uncertain) {
        BOX(b);
        b.report.node_guessed = true;
        event_of_run(b.root, &b.report, &b.verdict, false);
        assert_message(&b, "EDISKS at await-disks: 3 of 8 disks are there; kubelet was not started; EC2 may have another name for this node" TAIL);
}

/* Foreign words in the sentence are long, of many lines, or not a text at all. */
TEST(messages_are_short_and_printable) {
        BOX(b);
        _free_ char *text = xcalloc(5001, 1);
        memset(text, 'x', 5000);
        for (size_t i = 0; i < 5; i++)
                text[i] = "\xff\x1b[1m"[i];
        b.verdict.text = text;
        event_of_run(b.root, &b.report, &b.verdict, false);
        json_t *n = notice(&b);
        const char *message = json_get_text(n, "message");
        ASSERT_TRUE(startswith(message, "EDISKS at await-disks: \\xff\\x1b[1mxxx") && endswith(message, TAIL) && strlen(message) <= 1024);
        json_decref(n);
}

TEST(a_notice_has_the_access_to_the_cluster) {
        BOX(b);
        event_of_run(b.root, &b.report, &b.verdict, false);
        json_t *n = notice(&b), *access = json_object_get(n, "access");
        ASSERT_TRUE(json_is_false(json_object_get(n, "given")));        /* kubeconfig is of this boot */
        ASSERT_STREQ(json_get_text(access, "server"), "https://api.example");
        _cleanup_(kube_access_done) KubeAccess a = {};
        _cleanup_(diag_done) Diag diag = {};
        ASSERT_OK(kube_access_take(b.root, access, &a, &diag));
        ASSERT_STREQ(a.server, "https://api.example");
        ASSERT_STREQ(a.host, "api.example");
        ASSERT_STREQ(a.cluster, "training");
        ASSERT_STREQ(a.region, "us-west-2");
        ASSERT_STREQ(a.node, "ip-10-0-0-10.example");
        ASSERT_STREQ(a.ca, PEM);
        json_decref(n);
}

/* The configuration phase writes kubeconfig and the name of the node. If it did not reach one of them, the
 * file is of an earlier boot. */
TEST(an_older_kubeconfig_is_not_used) {
        for (size_t i = 1; i < 3; i++) {
                BOX(b);
                b.report.phases = "config";
                event_of_run(b.root, &b.report, &b.verdict, false);
                json_t *n = notice(&b);
                ASSERT_TRUE(json_is_false(json_object_get(n, "given")));
                json_decref(n);
                b.items[i].outcome = OUTCOME_FAILED;
                event_of_run(b.root, &b.report, &b.verdict, false);
                n = notice(&b);
                ASSERT_TRUE(json_is_true(json_object_get(n, "given")));
                json_decref(n);
        }
}

TEST(no_notice_without_a_cluster_a_node_name_or_a_failure) {
        BOX(b);
        b.report = (Report){ .command = "init", .phases = "config,devices,run", .step = "source" };
        event_of_run(b.root, &b.report, &b.verdict, false);
        ASSERT_EQ(waiting(&b), 0);
        b.report = (Report){ .command = "init", .phases = "config", .config = &b.config, .region = "us-west-2" };       /* the name is unknown */
        event_of_run(b.root, &b.report, &b.verdict, false);
        ASSERT_EQ(waiting(&b), 0);
        event_of_run(b.root, &b.report, &all_well, true);
        ASSERT_EQ(waiting(&b), 0);
}

TEST(access_to_a_cluster_on_an_outpost_has_its_id) {
        BOX(b);
        static char file[] = KUBECONFIG_BOOTSTRAP;
        b.config.cluster.outpost = true;
        b.kubeconfig.target = file;
        b.report.phases = "config";
        event_of_run(b.root, &b.report, &b.verdict, false);
        json_t *n = notice(&b), *access = json_object_get(n, "access");
        ASSERT_TRUE(json_is_false(json_object_get(n, "given")));
        ASSERT_STREQ(json_string_value(json_array_get(json_object_get(access, "args"), 1)), "0a1b");
        json_decref(n);
}

TEST(a_notice_has_the_proxies) {
        BOX(b);
        setenv("HTTPS_PROXY", "http://proxy:3128", 1);
        event_of_run(b.root, &b.report, &b.verdict, false);
        unsetenv("HTTPS_PROXY");
        json_t *n = notice(&b);
        ASSERT_STREQ(json_get_text(json_object_get(n, "environment"), "HTTPS_PROXY"), "http://proxy:3128");
        json_decref(n);
}

TEST(a_recovery_is_reported_once_when_all_phases_are_well) {
        BOX(b);
        event_of_run(b.root, &b.report, &b.verdict, false);
        json_decref(notice(&b));
        b.report.phases = "config,devices";
        event_of_run(b.root, &b.report, &all_well, true);       /* there is a phase to come */
        ASSERT_EQ(waiting(&b), 0);
        b.report.phases = "run";
        event_of_run(b.root, &b.report, &all_well, false);      /* another phase is not well */
        ASSERT_EQ(waiting(&b), 0);
        event_of_run(b.root, &b.report, &all_well, true);
        json_t *n = notice(&b);
        ASSERT_STREQ(json_get_text(n, "reason"), "NodestrapRecovered");
        ASSERT_TRUE(json_is_false(json_object_get(n, "warning")));
        ASSERT_STREQ(json_get_text(n, "key"), "i-0123\nEDISKS\nawait-disks");
        json_decref(n);
        event_of_run(b.root, &b.report, &all_well, true);
        ASSERT_EQ(waiting(&b), 0);
}

TEST(failures_of_another_machine_are_forgotten) {
        static const char *const files[] = { "{\"machine\": \"i-9999\", \"code\": \"EDISKS\", \"step\": \"s\"}", "", "[]", "{\"machine\": \"i-0123\"", "{\"code\": 7}" };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                BOX(b);
                ASSERT_OK(root_replace(b.root, UNWELL, files[i], strlen(files[i]), 0644));
                event_of_run(b.root, &b.report, &all_well, true);
                ASSERT_EQ(waiting(&b), 0);
                ASSERT_EQ(root_exists(b.root, UNWELL), 0);
        }
}

TEST(the_oldest_notice_is_removed) {
        BOX(b);
        for (int i = 0; i < EVENTS_MAX + 3; i++) {
                _free_ char *text = xasprintf("number %d", i);
                b.verdict.text = text;
                event_of_run(b.root, &b.report, &b.verdict, false);
        }
        _strv_ char **names = NULL;
        ASSERT_OK(root_list(b.root, EVENTS_DIR, &names));
        ASSERT_EQ(strv_length(names), EVENTS_MAX);
        _free_ char *path = xasprintf(EVENTS_DIR "/%s", names[0]), *first = NULL;
        ASSERT_OK(root_read(b.root, path, 1 << 20, &first, NULL));
        ASSERT_TRUE(strstr(first, "number 3;"));
}

TEST(failures_to_join_have_their_own_reasons) {
        BOX(b);
        b.verdict = (Verdict){ .word = "failed", .code = "ENOTREADY", .exit_code = EXIT_NOT_JOINED, .step = "join", .text = b.verdict.text };
        event_of_join(b.root, &b.verdict);
        json_t *n = notice(&b);
        ASSERT_STREQ(json_get_text(n, "reason"), "NodestrapNotJoined");
        ASSERT_STREQ(json_get_text(n, "message"), "ENOTREADY at join: 3 of 8 disks are there");
        json_decref(n);
        b.verdict.code = "EKUBELET";
        b.verdict.exit_code = EXIT_UNIT;
        event_of_join(b.root, &b.verdict);
        n = notice(&b);
        ASSERT_STREQ(json_get_text(n, "message"), "EKUBELET at join: 3 of 8 disks are there");
        json_decref(n);
        b.verdict.code = "EDEVICES";
        b.verdict.exit_code = EXIT_NOT_JOINED;
        event_of_join(b.root, &b.verdict);
        n = notice(&b);
        ASSERT_STREQ(json_get_text(n, "reason"), "NodestrapDevicesMissing");
        json_decref(n);
        b.verdict.code = "ENOTREADY";
        event_of_join(b.root, &all_well);
        b.verdict.exit_code = EXIT_STORAGE;                     /* of init */
        event_of_join(b.root, &b.verdict);
        b.verdict.exit_code = EXIT_NOT_JOINED;
        b.verdict.code = cause_word(CAUSE_NO_KUBECONFIG);       /* no cluster is known */
        event_of_join(b.root, &b.verdict);
        b.verdict.code = cause_word(CAUSE_INIT);                /* init has reported it */
        event_of_join(b.root, &b.verdict);
        ASSERT_EQ(waiting(&b), 0);
}

/* ---- kube/ ---- */

TEST(incomplete_access_is_refused) {
        static const char ca[] = "\"certificate-authority-data\": \"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0t\"", args[] = "\"args\": [\"--cluster-name\", \"c\"]";
        const struct { char *text; Cause cause; } cases[] = {
                { xasprintf("{%s, %s, \"node\": \"n\", \"server\": \"http://a\"}", ca, args), CAUSE_NO_KUBECONFIG },
                { xasprintf("{%s, %s, \"node\": \"n\"}", ca, args), CAUSE_NO_KUBECONFIG },
                { xasprintf("{%s, %s, \"server\": \"https://a\"}", ca, args), CAUSE_NONE },
                { xasprintf("{%s, \"node\": \"n\", \"server\": \"https://a\"}", ca), CAUSE_NONE },
                { xasprintf("{%s, \"node\": \"n\", \"server\": \"https://a\"}", args), CAUSE_API_CERT },
                { xasprintf("{\"certificate-authority-data\": \"?\", %s, \"node\": \"n\", \"server\": \"https://a\"}", args), CAUSE_API_CERT },
                { xstrdup("[]"), CAUSE_NONE },
        };
        BOX(b);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(diag_done) Diag diag = {};
                KubeAccess a = {};
                json_t *given = json_loads(cases[i].text, 0, NULL);
                ASSERT_TRUE(given);
                if (kube_access_take(b.root, given, &a, &diag) >= 0 || a.server)
                        FAIL("case %zu is taken", i);
                const Diagnostic *error = diag_first_error(&diag);
                if ((error ? error->cause : CAUSE_NONE) != cases[i].cause)
                        FAIL("case %zu: %s", i, error ? error->text : "no error");
                json_decref(given);
                free(cases[i].text);
        }
}

TEST(names_of_events_depend_on_node_reason_and_key) {
        char one[65], other[65], node[] = "ip-10-0-0-10.example", second[] = "ip-10-0-0-11.example";
        _cleanup_(diag_done) Diag diag = {};
        ASSERT_OK(hash_load(&diag));
        KubeAccess a = { .node = node }, b = { .node = second };
        kube_event_name(&a, "NodestrapFailed", "i-1\nEDISKS\nawait-disks", one);
        ASSERT_EQ(strlen(one), strlen("nodestrap-") + 24);
        ASSERT_EQ(strspn(one, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(one));
        kube_event_name(&a, "NodestrapFailed", "i-1\nEDISKS\nawait-disks", other);
        ASSERT_STREQ(one, other);
        kube_event_name(&b, "NodestrapFailed", "i-1\nEDISKS\nawait-disks", other);
        ASSERT_TRUE(!streq(one, other));
        kube_event_name(&a, "NodestrapTainted", "i-1\nEDISKS\nawait-disks", other);
        ASSERT_TRUE(!streq(one, other));
        kube_event_name(&a, "NodestrapFailed", "i-2\nEDISKS\nawait-disks", other);
        ASSERT_TRUE(!streq(one, other));
}

/* ---- reboot and power off ---- */

TEST(failures_that_reboot_or_power_off) {
        const AftermathFacts reboot = { .policy = FAILURE_REBOOT, .cause = CAUSE_FABRIC, .step = true, .units = true };
        static const Cause others[] = { CAUSE_NONE, CAUSE_INVALID, CAUSE_DISKS, CAUSE_DISK_USED, CAUSE_DISK_DATA, CAUSE_SYSCTL, CAUSE_MIG, CAUSE_MIG_REBOOT, CAUSE_VERSION,
                                        CAUSE_FILE, CAUSE_UNIT, CAUSE_KUBELET, CAUSE_INTERRUPTED, CAUSE_EC2, CAUSE_EFA, CAUSE_NOT_READY, _CAUSE_MAX, _CAUSE_INVALID },
                           hardware[] = { CAUSE_GPU_MISSING, CAUSE_FABRIC, CAUSE_HEALTH, CAUSE_DISK_ERROR, CAUSE_NEURON, CAUSE_DRIVER };
        const struct { AftermathFacts facts; FailurePolicy want; } cases[] = {
                { reboot, FAILURE_REBOOT },
                { { FAILURE_POWER_OFF, CAUSE_HEALTH, true, true, false, false }, FAILURE_POWER_OFF },
                { { FAILURE_HOLD, CAUSE_FABRIC, true, true, false, false }, FAILURE_HOLD },
                { { FAILURE_JOIN_TAINTED, CAUSE_FABRIC, true, true, false, false }, FAILURE_HOLD },
                { { FAILURE_REBOOT, CAUSE_FABRIC, true, false, false, false }, FAILURE_HOLD },  /* by hand, or as nodeadm */
                { { FAILURE_REBOOT, CAUSE_FABRIC, true, true, true, false }, FAILURE_HOLD },    /* the run phase tries again */
                { { FAILURE_POWER_OFF, CAUSE_FABRIC, true, true, false, true }, FAILURE_HOLD }, /* pods may run */
                { { FAILURE_REBOOT, CAUSE_GPU_MISSING, false, true, false, false }, FAILURE_HOLD },     /* the user wants more than the type can have */
                { { FAILURE_REBOOT, CAUSE_DISK_ERROR, false, true, false, false }, FAILURE_REBOOT },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (aftermath_decide(&cases[i].facts) != cases[i].want)
                        FAIL("case %zu", i);
        AftermathFacts f = reboot;
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if ((f.cause = others[i], aftermath_decide(&f)) != FAILURE_HOLD)
                        FAIL("reboots for %s", cause_word(others[i]));
        for (size_t i = 0; i < ARRAY_SIZE(hardware); i++)
                if ((f.cause = hardware[i], aftermath_decide(&f)) != FAILURE_REBOOT)
                        FAIL("does not reboot for %s", cause_word(hardware[i]));
}

#define MACHINE "i-0123456789abcdef0"

typedef struct Failed { Box b; Diag diag; char *then; } Failed;

/* A run phase of the unit, below the directory, whose fabric failed; ledger: its content, NULL for none. */
static void failed_init(Failed *f, const char *directory, FailurePolicy policy, const char *ledger, size_t size) {
        *f = (Failed){};
        box_init(&f->b);
        tree_remove(f->b.path);
        root_free(f->b.root);
        (void)snprintf(f->b.path, sizeof f->b.path, "%s/test-XXXXXX", directory);
        ASSERT_TRUE(mkdtemp(f->b.path));
        ASSERT_OK(root_new(f->b.path, &f->b.root));
        f->b.config.failure_policy = policy;
        f->b.items[0].outcome = OUTCOME_FAILED;
        f->b.items[0].cause = CAUSE_FABRIC;
        f->b.report.diag = &f->diag;
        f->b.report.instance_id = MACHINE;
        if (ledger)
                ASSERT_OK(root_replace(f->b.root, REBOOT_LEDGER, ledger, size, 0644));
        f->then = aftermath_choose(f->b.root, &f->b.report, true, &f->diag);
}

static void failed_done(Failed *f) {
        free(f->then);
        diag_done(&f->diag);
        box_done(&f->b);
}
#define FAILED(name, ...) _cleanup_(failed_done) Failed name; failed_init(&name, __VA_ARGS__)

static char *asked(const Failed *f) {
        char *text = NULL;
        return root_read(f->b.root, POWER_FILE, 64, &text, NULL) < 0 ? xstrdup("nothing") : text;
}
static void assert_asked(const Failed *f, const char *want) {
        _free_ char *text = asked(f);
        ASSERT_STREQ(text, want);
}

TEST(an_instance_reboots_only_once) {
        FAILED(f, "/var/tmp", FAILURE_REBOOT, NULL, 0);
        ASSERT_STREQ(f.then, "reboots now, once");
        assert_asked(&f, "reboot 0 60\n");
        _free_ char *again = aftermath_choose(f.b.root, &f.b.report, true, &f.diag);
        ASSERT_TRUE(!again);
        assert_asked(&f, "nothing");
        ASSERT_STREQ(f.diag.items[1].code, "failure-policy");
        ASSERT_STREQ(f.diag.items[1].text, "the machine stays as it is: this instance has used its one reboot (" REBOOT_LEDGER ")");
        f.b.report.instance_id = "i-0123456789abcdef1";         /* an image was made of the first one */
        _free_ char *other = aftermath_choose(f.b.root, &f.b.report, true, &f.diag);
        ASSERT_STREQ(other, "reboots now, once");
}

TEST(a_damaged_ledger_prevents_the_reboot) {
        static const char *const bad[] = { "", "\n", "i-\n", MACHINE, MACHINE "\n" MACHINE "\n", MACHINE "\n\n", "i-0123 x\n", "{}\n", "x" MACHINE "\n", "i-01\xff\n" };
        static const char zeros[64], end[] = MACHINE "\n\0", large[4096] = "i-0";
        const struct { const char *text; size_t size; } others[] = { { zeros, sizeof zeros }, { end, sizeof end - 1 }, { large, sizeof large } };
        for (size_t i = 0; i < ARRAY_SIZE(bad) + ARRAY_SIZE(others); i++) {
                bool text = i < ARRAY_SIZE(bad);
                const char *ledger = text ? bad[i] : others[i - ARRAY_SIZE(bad)].text;
                FAILED(f, "/var/tmp", FAILURE_REBOOT, ledger, text ? strlen(ledger) : others[i - ARRAY_SIZE(bad)].size);
                if (f.then || f.diag.n != 1 || !strstr(f.diag.items[0].text, REBOOT_LEDGER))
                        FAIL("ledger %zu: %s", i, f.then ?: "no warning");
                assert_asked(&f, "nothing");
        }
}

TEST(a_ledger_that_cannot_be_written_prevents_the_reboot) {
        FAILED(f, "/dev/shm", FAILURE_REBOOT, NULL, 0);         /* it would be lost with the reboot */
        ASSERT_TRUE(!f.then);
        assert_asked(&f, "nothing");
        FAILED(g, "/var/tmp", FAILURE_HOLD, NULL, 0);
        g.b.config.failure_policy = FAILURE_REBOOT;
        ASSERT_OK(root_replace(g.b.root, "/var/lib/nodestrap", "a file", 6, 0644));
        _free_ char *then = aftermath_choose(g.b.root, &g.b.report, true, &g.diag);
        ASSERT_TRUE(!then && g.diag.n == 1);
        assert_asked(&g, "nothing");
        g.b.report.instance_id = NULL;
        _free_ char *unknown = aftermath_choose(g.b.root, &g.b.report, true, &g.diag);
        ASSERT_TRUE(!unknown && strstr(g.diag.items[1].text, "instance id"));
}

TEST(the_power_off_comes_after_ten_to_fifteen_minutes) {
        unsigned first = 0, others = 0, sec = 0, limit = 0;
        FAILED(f, "/var/tmp", FAILURE_POWER_OFF, "junk", 4);    /* the ledger is for reboots */
        for (unsigned i = 0; i < 200; i++) {
                char id[32];
                (void)snprintf(id, sizeof id, "i-%017x", i / 2);
                f.b.report.instance_id = id;
                _free_ char *then = aftermath_choose(f.b.root, &f.b.report, true, &f.diag), *text = asked(&f);
                ASSERT_EQ(sscanf(text, "poweroff %u %u\n", &sec, &limit), 2);
                ASSERT_TRUE(sec >= 600 && sec <= 900 && limit == 1800);
                ASSERT_TRUE(then && startswith(then, "powers off in 1"));
                ASSERT_TRUE(i % 2 == 0 || sec == first);        /* each instance keeps its delay */
                others += i % 2 == 0 && sec != first;
                first = sec;
        }
        ASSERT_TRUE(others > 90);
        f.b.report.phases = "devices";                          /* leaves the power off as it is */
        ASSERT_TRUE(!aftermath_choose(f.b.root, &f.b.report, true, &f.diag));
        ASSERT_EQ(root_exists(f.b.root, POWER_FILE), 1);
        f.b.report.phases = "run";
        aftermath_take_back(f.b.root);                          /* a person types an init */
        ASSERT_TRUE(!aftermath_choose(f.b.root, &f.b.report, false, &f.diag));
        assert_asked(&f, "nothing");
        f.b.items[1].cause = CAUSE_INTERRUPTED;                 /* or stops the unit after its first failure */
        f.b.items[1].outcome = OUTCOME_FAILED;
        ASSERT_TRUE(!aftermath_choose(f.b.root, &f.b.report, true, &f.diag));
        assert_asked(&f, "nothing");
}

TEST(the_message_names_the_power_off) {
        BOX(b);
        b.report.then = "powers off in 12 minutes";
        event_of_run(b.root, &b.report, &b.verdict, false);
        assert_message(&b, "EDISKS at await-disks: 3 of 8 disks are there; kubelet was not started; the machine powers off in 12 minutes" TAIL);
}

TEST_MAIN
