/* SPDX-License-Identifier: Apache-2.0
 * mark-node writes a taint into the file that systemd reads after the environment file that users patch.
 * In tests/boot/tainted.sh kubelet reads it. */
#include "apply/device.h"
#include "apply/engine.h"
#include "mounts.h"

#define ENVIRONMENT "/etc/eks/kubelet/environment"
#define OURS        "--node-labels=nodestrap/unhealthy=EFABRIC "

typedef struct Turn {
        Box box;
        Action steps[2];
        Result results[2];
        Task task, tasks[2], *after[2];         /* the first is await-fabric */
        Apply apply;
} Turn;

static void turn_init(Turn *n) {
        *n = (Turn){ .steps = { { .id = (char *)"await-fabric:fabric", .type = ACTION_AWAIT_FABRIC }, { .id = (char *)"check-efa:efa" } } };
        box_init(&n->box);
        n->box.action = (Action){ .id = (char *)"mark-node:test", .type = ACTION_MARK_NODE, .target = (char *)TAINT_FILE };
        for (size_t i = 0; i < 2; i++) {
                n->results[i] = (Result){ .action = &n->steps[i], .outcome = OUTCOME_DONE, .end_usec = 10 };
                n->tasks[i] = (Task){ .action = &n->steps[i], .result = &n->results[i] };
                n->after[i] = &n->tasks[i];
        }
}

static void turn_done(Turn *n) {
        json_decref(n->results[0].found);
        box_done(&n->box);
}
#define TURN(name) _cleanup_(turn_done) Turn name; turn_init(&name)

static void fails(Turn *n, size_t i, Cause cause, uint64_t end_usec) {
        n->results[i].outcome = OUTCOME_FAILED;
        n->results[i].cause = cause;
        n->results[i].end_usec = end_usec;
}

static const char *run(Turn *n) {
        Work *w = &n->box.work;
        json_decref(w->found);
        w->found = NULL;
        diag_done(&w->warnings);
        n->apply = (Apply){ .root = n->box.root, .tasks = n->tasks, .n = 2 };
        n->task = (Task){ .apply = &n->apply, .action = &n->box.action, .after_any = n->after, .n_after_any = 2 };
        if (taint_check(&n->task) == CHECK_DONE_ALREADY)
                return "unchanged";
        w->given = taint_reason(&n->task);
        int r = ASSERT_OK(taint_work(w));
        w->given = strv_free(w->given);
        return r > 0 ? "done" : "unchanged";
}

static void assert_warns(const Turn *n, const char *code) {
        ASSERT_EQ(n->box.work.warnings.n, 1);
        ASSERT_STREQ(n->box.work.warnings.items[0].code, code);
}

TEST(without_a_failure_there_is_no_taint_file) {
        TURN(n);
        ASSERT_STREQ(run(&n), "unchanged");
        ASSERT_TRUE(!is_there(&n.box, TAINT_FILE));
}

TEST(a_failure_taints_the_node_once_and_a_success_ends_that) {
        TURN(n);
        fails(&n, 0, CAUSE_FABRIC, 10);
        ASSERT_STREQ(run(&n), "done");
        assert_file(&n.box, TAINT_FILE, "NODEADM_KUBELET_ARGS=" OURS "--register-with-taints=nodestrap/unhealthy=EFABRIC:NoSchedule\n");
        ASSERT_STREQ(json_string_value(json_object_get(n.box.work.found, "taint")), "EFABRIC");
        ASSERT_STREQ(json_string_value(json_object_get(n.box.work.found, "step")), "await-fabric:fabric");
        assert_warns(&n, "node-tainted");
        ASSERT_STREQ(run(&n), "unchanged");
        ASSERT_TRUE(n.box.work.found);            /* from it the report knows that the node is tainted */
        ASSERT_EQ(n.box.work.warnings.n, 0);
        n.results[0].outcome = OUTCOME_DONE;
        ASSERT_STREQ(run(&n), "done");
        ASSERT_TRUE(!is_there(&n.box, TAINT_FILE) && !n.box.work.found);
        assert_warns(&n, "node-was-tainted");
        ASSERT_STREQ(run(&n), "unchanged");
        ASSERT_EQ(n.box.work.warnings.n, 0);
}

/* The Node outlives a reboot, and the file does not. */
TEST(a_taint_of_an_earlier_boot_is_one_warning) {
        TURN(n);
        fails(&n, 0, CAUSE_FABRIC, 10);
        ASSERT_STREQ(run(&n), "done");
        ASSERT_OK(root_remove(n.box.root, TAINT_FILE));
        fails(&n, 0, CAUSE_EFA, 10);
        ASSERT_STREQ(run(&n), "done");
        assert_warns(&n, "node-tainted");
        ASSERT_OK(root_remove(n.box.root, TAINT_FILE));
        n.results[0].outcome = OUTCOME_DONE;
        ASSERT_STREQ(run(&n), "unchanged");
        assert_warns(&n, "node-was-tainted");
        ASSERT_STREQ(run(&n), "unchanged");
        ASSERT_EQ(n.box.work.warnings.n, 0);
}

TEST(without_a_failure_the_api_server_gets_no_request) {
        TURN(n);
        ASSERT_STREQ(run(&n), "unchanged");
        ASSERT_EQ(register_check(&n.task), CHECK_DONE_ALREADY);
        fails(&n, 1, CAUSE_EFA, 10);
        ASSERT_EQ(register_check(&n.task), CHECK_NEEDED);
}

TEST(without_a_kubeconfig_kubelet_stays_down) {
        TURN(n);
        ASSERT_TRUE(register_work(&n.box.work) < 0);
        ASSERT_EQ(n.box.work.cause, CAUSE_NO_KUBECONFIG);
        ASSERT_CONTAINS(n.box.work.text, "so the Node of this machine cannot be looked up: kubelet stays down");
}

TEST(the_taint_names_the_first_failure_in_time) {
        TURN(n);
        fails(&n, 0, CAUSE_EFA, 20);
        fails(&n, 1, CAUSE_FABRIC, 10);
        ASSERT_STREQ(run(&n), "done");
        ASSERT_STREQ(json_string_value(json_object_get(n.box.work.found, "taint")), "EFABRIC");
        ASSERT_STREQ(json_string_value(json_object_get(n.box.work.found, "step")), "check-efa:efa");
}

/* kubelet takes the last of several flags, so ours repeats the taints of the one before. The file has the
 * mode of the environment file. */
TEST(kubelet_arguments_and_taints_of_the_user_stay) {
        static const struct { const char *arguments, *want; } files[] = {
                { "--v=2", "--v=2 " OURS "--register-with-taints=planned:NoSchedule,also=x:NoExecute,nodestrap/unhealthy=EFABRIC:NoSchedule" },
                { "--register-with-taints=a:NoSchedule --register-with-taints=b:NoExecute",
                  "--register-with-taints=a:NoSchedule --register-with-taints=b:NoExecute " OURS "--register-with-taints=b:NoExecute,nodestrap/unhealthy=EFABRIC:NoSchedule" },
                { "--register-with-taints c:NoSchedule", "--register-with-taints c:NoSchedule " OURS "--register-with-taints=c:NoSchedule,nodestrap/unhealthy=EFABRIC:NoSchedule" },
        };
        char *planned[] = { (char *)"planned:NoSchedule", (char *)"also=x:NoExecute", NULL };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                TURN(n);
                _free_ char *text = xasprintf("A=b\nNODEADM_KUBELET_ARGS=\"%s\"\n", files[i].arguments), *path = box_path(&n.box, ENVIRONMENT);
                _free_ char *want = xasprintf("NODEADM_KUBELET_ARGS=%s\n", files[i].want);
                n.box.action.node.taints = planned;
                put(&n.box, ENVIRONMENT, text);
                ASSERT_EQ(chmod(path, 0600), 0);
                fails(&n, 0, CAUSE_FABRIC, 10);
                ASSERT_STREQ(run(&n), "done");
                assert_file(&n.box, TAINT_FILE, want);
                ASSERT_EQ(look_at(&n.box, TAINT_FILE).st_mode, S_IFREG | 0600);
        }
}

/* ---- the clique ---- */

#define UUID "7b968a6d-c8aa-45e1-9e07-e1e51be99c31"
#define LABEL "--node-labels=nvidia.com/gpu.clique=" UUID
static void fabric_finds(Turn *n, const char *uuid, int clique) {
        json_decref(n->results[0].found);
        n->results[0].found = uuid ? json_pack("{s:s, s:i}", "clusterUuid", uuid, "cliqueId", clique) : json_pack("{s:n, s:n}", "clusterUuid", "cliqueId");
}

TEST(the_clique_is_a_label_if_configured) {
        TURN(n);
        fabric_finds(&n, UUID, 1);
        ASSERT_STREQ(run(&n), "unchanged");
        ASSERT_TRUE(!is_there(&n.box, TAINT_FILE));
        n.box.action.node.clique = true;
        put(&n.box, ENVIRONMENT, "NODEADM_KUBELET_ARGS=--v=2\n");
        ASSERT_STREQ(run(&n), "done");
        assert_file(&n.box, TAINT_FILE, "NODEADM_KUBELET_ARGS=--v=2 " LABEL ".1\n");
        ASSERT_STREQ(json_string_value(json_object_get(n.box.work.found, "clique")), UUID ".1");
        ASSERT_TRUE(!json_object_get(n.box.work.found, "taint") && n.box.work.warnings.n == 0);
        ASSERT_STREQ(run(&n), "unchanged");
        fabric_finds(&n, UUID, 32766);
        ASSERT_STREQ(run(&n), "done");
        assert_file(&n.box, TAINT_FILE, "NODEADM_KUBELET_ARGS=--v=2 " LABEL ".32766\n");
}

static void assert_tells_to(const Turn *n, const char *change) {
        assert_warns(n, "node-clique");
        ASSERT_CONTAINS(n->box.work.warnings.items[0].text, change);
}

/* An existing Node keeps the labels from its registration. */
TEST(a_node_of_another_clique_gets_a_warning) {
        TURN(n);
        n.box.action.node.clique = true;
        fabric_finds(&n, UUID, 1);
        ASSERT_STREQ(run(&n), "done");
        ASSERT_EQ(n.box.work.warnings.n, 0);
        ASSERT_OK(root_remove(n.box.root, TAINT_FILE));         /* a reboot */
        ASSERT_STREQ(run(&n), "done");
        ASSERT_EQ(n.box.work.warnings.n, 0);
        ASSERT_OK(root_remove(n.box.root, TAINT_FILE));
        fabric_finds(&n, UUID, 32766);
        ASSERT_STREQ(run(&n), "done");
        assert_tells_to(&n, "kubectl label --overwrite node NAME nvidia.com/gpu.clique=" UUID ".32766");
        ASSERT_STREQ(run(&n), "unchanged");
        ASSERT_EQ(n.box.work.warnings.n, 0);
        fabric_finds(&n, NULL, 0);
        ASSERT_STREQ(run(&n), "done");
        assert_tells_to(&n, "kubectl label --overwrite node NAME nvidia.com/gpu.clique-");
}

TEST(a_node_without_the_label_gets_a_warning) {
        TURN(n);
        put(&n.box, "/var/lib/kubelet/pki/kubelet.crt", "");
        n.box.action.node.clique = true;
        fabric_finds(&n, UUID, 1);
        ASSERT_STREQ(run(&n), "done");
        assert_tells_to(&n, "nvidia.com/gpu.clique=" UUID ".1");
        n.results[0].action = n.tasks[0].action = &n.steps[1];          /* no look, after a reboot */
        ASSERT_OK(root_remove(n.box.root, TAINT_FILE));
        ASSERT_STREQ(run(&n), "unchanged");
        ASSERT_EQ(n.box.work.warnings.n, 0);
}

TEST(gpus_of_no_clique_or_of_several_get_no_label) {
        TURN(n);
        n.box.action.node.clique = true;
        fabric_finds(&n, NULL, 0);
        ASSERT_STREQ(run(&n), "unchanged");
        fabric_finds(&n, UUID, 1);
        ASSERT_STREQ(run(&n), "done");
        fabric_finds(&n, NULL, 0);
        ASSERT_STREQ(run(&n), "done");
        ASSERT_TRUE(!is_there(&n.box, TAINT_FILE) && !n.box.work.found);
        assert_warns(&n, "node-clique");        /* and no other warning: the node had no taint */
}

/* --daemon kubelet: no step has looked at the fabric */
TEST(a_run_without_a_look_at_the_fabric_keeps_the_clique) {
        TURN(n);
        n.box.action.node.clique = true;
        ASSERT_STREQ(run(&n), "unchanged");
        ASSERT_TRUE(!is_there(&n.box, TAINT_FILE));
        put(&n.box, TAINT_FILE, "NODEADM_KUBELET_ARGS=--v=2 " LABEL ".1\n");
        put(&n.box, ENVIRONMENT, "NODEADM_KUBELET_ARGS=\"--v=3 --x=a\\ b\"\n");
        ASSERT_STREQ(run(&n), "done");          /* the arguments of kubelet have changed */
        ASSERT_STREQ(json_string_value(json_object_get(n.box.work.found, "clique")), UUID ".1");
        ASSERT_STREQ(run(&n), "unchanged");
}

TEST(one_file_has_the_clique_and_the_taint) {
        TURN(n);
        n.box.action.node.clique = true;
        fabric_finds(&n, UUID, 1);
        fails(&n, 1, CAUSE_EFA, 10);
        ASSERT_STREQ(run(&n), "done");
        assert_file(&n.box, TAINT_FILE,
                    "NODEADM_KUBELET_ARGS=" LABEL ".1 --node-labels=nodestrap/unhealthy=EEFA --register-with-taints=nodestrap/unhealthy=EEFA:NoSchedule\n");
        assert_warns(&n, "node-tainted");
        n.results[1].outcome = OUTCOME_DONE;
        ASSERT_STREQ(run(&n), "done");
        assert_file(&n.box, TAINT_FILE, "NODEADM_KUBELET_ARGS=" LABEL ".1\n");
        assert_warns(&n, "node-was-tainted");
}

TEST_MAIN
