/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"
#include "base/hash.h"

static size_t position(const Plan *plan, const char *id) {
        for (size_t i = 0; i < plan->n; i++)
                if (streq(plan->actions[i].id, id))
                        return i;
        FAIL("no action %s", id);
}

TEST(action_types_and_their_names_match) {
        for (int type = 0; type < _ACTION_MAX; type++)
                ASSERT_EQ(action_type_from_string(action_type_to_string((ActionType)type)), type);
        ASSERT_TRUE(!action_type_to_string(_ACTION_INVALID));
        ASSERT_TRUE(!action_type_to_string(_ACTION_MAX));
        ASSERT_ERROR(action_type_from_string("write-fil"), EINVAL);
}

TEST(order_respects_dependencies) {
        _cleanup_(sample_done) Sample s = sample_new();
        Variable v[] = { { (char[]){"A"}, (char[]){"b"} } };
        ServiceEnvironment e[] = { { (char[]){"default"}, v, 1 }, { (char[]){"kubelet"}, v, 1 } };
        s.config.instance.environment = e;
        s.config.instance.n_environment = 2;
        const Plan *p = sample_plan(&s);
        for (size_t i = 0; i < p->n; i++)
                for (char **id = p->actions[i].after; id && *id; id++)
                        ASSERT_TRUE(position(p, *id) < i);
        ASSERT_TRUE(position(p, "start-unit:containerd.service") < position(p, "start-unit:kubelet.service"));
        ASSERT_TRUE(position(p, "write-file:/etc/systemd/system/kubelet.service.d/environment.conf") < position(p, PLAN_RELOAD_ID));
        ASSERT_TRUE(position(p, "prune-files:/var/lib/nodestrap/manifest.json") < position(p, PLAN_RELOAD_ID));
        ASSERT_TRUE(position(p, "write-file:/run/nodeadm/init") < position(p, "start-unit:containerd.service"));
        ASSERT_STREQ(p->actions[p->n - 1].id, "start-unit:kubelet.service");
        const Action *kubelet = plan_find(p, "start-unit:kubelet.service");
        ASSERT_TRUE(strv_contains(kubelet->after, PLAN_RELOAD_ID));
        ASSERT_TRUE(strv_contains(plan_find(p, "start-unit:containerd.service")->after, "write-file:/run/nodestrap/mounts-ready"));
        ASSERT_TRUE(strv_contains(kubelet->after, "start-unit:containerd.service"));
        ASSERT_TRUE(strv_contains(kubelet->after, "write-file:/etc/systemd/system/kubelet.service.d/environment.conf"));
        ASSERT_TRUE(strv_contains(kubelet->after, "write-file:/etc/eks/kubelet/environment"));
        ASSERT_TRUE(!strv_contains(kubelet->after, "write-file:/etc/containerd/config.toml"));
        ASSERT_EQ(kubelet->deadline_usec, 90 * USEC_PER_SEC);
}

TEST(one_process_at_a_time_works_on_the_devices) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.host.type = NULL;
        ASSERT_TRUE(!plan_find(sample_plan(&s), "take-turn:devices"));
        Variable settings[] = { { (char[]){"vm.swappiness"}, (char[]){"1"} }, { (char[]){"vm.max_map_count"}, (char[]){"1"} } };
        s.config.instance.sysctl = settings;
        s.config.instance.n_sysctl = 2;
        const Plan *p = sample_plan(&s);
        const Action *turn = plan_find(p, "take-turn:devices"), *kubelet_turn = plan_find(p, "write-file:" KUBELET_TURN);
        size_t behind = 0;
        for (size_t i = 0; i < p->n; i++) {
                const Action *a = &p->actions[i];
                bool devices = a != turn && a->phase == PHASE_DEVICES;
                behind += devices && strv_contains(a->after, turn->id);
                ASSERT_TRUE(!devices || position(p, turn->id) < i);
        }
        ASSERT_EQ(behind, 2);
        ASSERT_TRUE(strv_contains(kubelet_turn->after, turn->id));
        ASSERT_EQ(turn->deadline_usec, (300 + 2 * 10) * USEC_PER_SEC);  /* it waits for as long as another process may take */
}

TEST(the_plan_id_depends_on_actions_and_files_only) {
        _cleanup_(sample_done) Sample s = sample_new();
        _free_ char *first = xstrdup(sample_plan(&s)->id);
        ASSERT_EQ(strlen(first), 71);
        ASSERT_STREQ(sample_plan(&s)->id, first);
        s.host.kernel = (char[]){ "6.12.1" };           /* a fact that changes nothing */
        ASSERT_STREQ(sample_plan(&s)->id, first);
        s.host.instance.ipv4 = (char[]){ "10.0.3.8" };  /* a fact that changes the plan */
        ASSERT_TRUE(!streq(sample_plan(&s)->id, first));
}

TEST(inputs_change_only_for_the_unit_that_reads_them) {
        _cleanup_(sample_done) Sample s = sample_new();
        sample_plan(&s);
        _free_ char *containerd = xstrdup(plan_find(s.plan, "start-unit:containerd.service")->unit.inputs),
                    *kubelet = xstrdup(plan_find(s.plan, "start-unit:kubelet.service")->unit.inputs);
        s.config.kubelet.flags = LIST("--v=4");
        sample_plan(&s);
        ASSERT_STREQ(plan_find(s.plan, "start-unit:containerd.service")->unit.inputs, containerd);
        ASSERT_TRUE(!streq(plan_find(s.plan, "start-unit:kubelet.service")->unit.inputs, kubelet));

        Variable v[] = { { (char[]){"A"}, (char[]){"b"} } };
        ServiceEnvironment e[] = { { (char[]){"containerd"}, v, 1 } };
        s.config.instance.environment = e;
        s.config.instance.n_environment = 1;
        s.config.kubelet.flags = strv_free(s.config.kubelet.flags);
        sample_plan(&s);
        ASSERT_TRUE(!streq(plan_find(s.plan, "start-unit:containerd.service")->unit.inputs, containerd));
        ASSERT_STREQ(plan_find(s.plan, "start-unit:kubelet.service")->unit.inputs, kubelet);
}

TEST(filters_drop_phases_and_other_daemons) {
        _cleanup_(sample_done) Sample s = sample_new();
        _free_ char *id = xstrdup(sample_plan(&s)->id);
        plan_filter(s.plan, (bool[_PHASE_MAX]){ [PHASE_CONFIG] = true }, NULL);
        ASSERT_TRUE(!plan_find(s.plan, "write-file:/etc/containerd/config.toml"));
        ASSERT_TRUE(!plan_find(s.plan, "prune-files:/var/lib/nodestrap/manifest.json"));
        const Action *kubelet = plan_find(s.plan, "start-unit:kubelet.service");
        ASSERT_EQ(strv_length(kubelet->after), 2);
        ASSERT_STREQ(kubelet->after[0], "start-unit:containerd.service");
        ASSERT_STREQ(kubelet->after[1], "write-file:/run/nodestrap/kubelet-may-start");
        ASSERT_TRUE(strv_contains(plan_find(s.plan, kubelet->after[1])->after, "start-unit:containerd.service"));
        ASSERT_STREQ(s.plan->id, id);

        sample_plan(&s);
        plan_filter(s.plan, (bool[_PHASE_MAX]){ [PHASE_DEVICES] = true, [PHASE_RUN] = true }, NULL);
        ASSERT_TRUE(!plan_find(s.plan, "start-unit:kubelet.service"));

        sample_plan(&s);
        char **daemons = LIST("kubelet");
        plan_filter(s.plan, (bool[_PHASE_MAX]){}, daemons);
        ASSERT_TRUE(!plan_find(s.plan, "write-file:/etc/containerd/config.toml"));
        ASSERT_TRUE(!plan_find(s.plan, "start-unit:containerd.service"));
        ASSERT_TRUE(!plan_find(s.plan, "prune-files:/var/lib/nodestrap/manifest.json"));        /* the containerd files are not stale */
        ASSERT_TRUE(plan_find(s.plan, "start-unit:kubelet.service"));
        ASSERT_TRUE(plan_find(s.plan, "write-file:/run/nodeadm/init"));
        strv_free(daemons);
}

TEST(secrets_are_in_no_output) {
        _cleanup_(sample_done) Sample s = sample_new();
        Variable v[] = { { (char[]){"HTTPS_PROXY"}, (char[]){"http://me:hunter2@proxy:3128"} } };
        ServiceEnvironment e[] = { { (char[]){"default"}, v, 1 } };
        s.config.instance.environment = e;
        s.config.instance.n_environment = 1;
        s.config.containerd.config = sample_json(&s, "{'plugins': {'io.containerd.cri.v1.images': {'registry': {'configs': {'r.example': {'auth': {'password': 'hunter2'}}}}}}}");
        s.config.instance.sysctl = (Variable[]){ { (char[]){"kernel.domainname"}, (char[]){"hunter2"} }, { (char[]){"vm.max_map_count"}, (char[]){"262144"} } };
        s.config.instance.n_sysctl = 2;
        sample_plan(&s);
        ASSERT_EQ(sample_file(&s, ENVIRONMENT_DIR "/default")->file.mode, 0600);
        ASSERT_CONTAINS(sample_file(&s, ENVIRONMENT_DIR "/default")->file.content, "hunter2");
        ASSERT_CONTAINS(sample_file(&s, "/etc/containerd/config.toml")->file.content, "hunter2");
        ASSERT_EQ(sample_file(&s, "/etc/containerd/config.toml")->file.mode, 0600);
        _free_ char *text = plan_to_text(s.plan);
        json_t *json = plan_to_json(s.plan);
        _free_ char *dump = json_dumps(json, 0);
        ASSERT_TRUE(!strstr(text, "hunter2"));
        ASSERT_TRUE(!strstr(dump, "hunter2"));
        ASSERT_CONTAINS(text, "set-sysctl     vm.max_map_count 262144");
        ASSERT_CONTAINS(text, "set-sysctl     kernel.domainname");
        json_t *file, *files = json_object_get(json, "files");
        size_t i, hidden = 0;
        json_array_foreach(files, i, file)
                if (json_is_null(json_object_get(file, "content"))) {
                        ASSERT_TRUE(!json_object_get(file, "sha256"));
                        ASSERT_STREQ(json_string_value(json_object_get(file, "mode")), "0600");
                        hidden++;
                }
        ASSERT_EQ(hidden, 2);
        json_decref(json);
}

/* A digest, or a digest of digests, would confirm a guess of the secret. */
TEST(digests_of_secrets_are_in_no_output) {
        _cleanup_(sample_done) Sample s = sample_new();
        Variable v[] = { { (char[]){"PIN"}, (char[]){"4711"} } };
        ServiceEnvironment e[] = { { (char[]){"default"}, v, 1 } };
        s.config.instance.environment = e;
        s.config.instance.n_environment = 1;
        sample_plan(&s);
        const Action *file = plan_find(s.plan, "write-file:" ENVIRONMENT_DIR "/default"),
                     *start = plan_find(s.plan, "start-unit:containerd.service");
        char digest[65];
        sha256_hex(file->file.content, file->file.size, digest);
        json_t *json = plan_to_json(s.plan);
        _free_ char *dump = json_dumps(json, 0), *text = plan_to_text(s.plan);
        ASSERT_TRUE(strlen(start->unit.inputs) == 64 && start->secret);
        ASSERT_TRUE(!strstr(dump, digest) && !strstr(dump, start->unit.inputs));
        ASSERT_TRUE(!strstr(text, digest) && !strstr(text, start->unit.inputs));
        json_decref(json);
        /* digests without a secret are there */
        s.config.instance.n_environment = 0;
        sample_plan(&s);
        start = plan_find(s.plan, "start-unit:containerd.service");
        json = plan_to_json(s.plan);
        _free_ char *shown = json_dumps(json, 0);
        ASSERT_CONTAINS(shown, start->unit.inputs);
        json_decref(json);
}

TEST(json_has_the_promised_keys) {
        _cleanup_(sample_done) Sample s = sample_new();
        sample_plan(&s);
        json_t *json = plan_to_json(s.plan), *a;
        size_t i;
        const char *keys[] = { "planId", "facts", "warnings", "actions", "files" };
        for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
                ASSERT_TRUE(json_object_get(json, keys[k]));
        ASSERT_EQ(json_array_size(json_object_get(json, "actions")), s.plan->n);
        json_array_foreach(json_object_get(json, "actions"), i, a) {
                const char *needed[] = { "id", "phase", "type", "target" };
                for (size_t k = 0; k < ARRAY_SIZE(needed); k++)
                        ASSERT_TRUE(json_is_string(json_object_get(a, needed[k])));
                ASSERT_TRUE(json_is_array(json_object_get(a, "after")));
        }
        json_decref(json);
}

TEST(a_missing_runtime_and_an_unused_store_are_warnings) {
        _cleanup_(sample_done) Sample s = sample_new();
        PciDevice gpu = { .address = (char[]){ "0000:31:00.0" }, .vendor = 0x10de, .device = 0x27b8, .class = 0x030200 };
        Disk store = { .kind = DISK_INSTANCE_STORE };
        s.host.pci = &gpu;
        s.host.n_pci = 1;
        s.host.disks = &store;
        s.host.n_disks = 1;
        s.host.gpus = (Gpus){ .class = GPU_CLASS_SINGLE, .count = 1, .expected = 1 };
        sample_plan(&s);
        _free_ char *text = plan_to_text(s.plan);
        ASSERT_TRUE(!sample_warned(&s, "accelerator"));
        ASSERT_TRUE(!sample_warned(&s, "unknown-instance-type"));
        ASSERT_TRUE(!sample_warned(&s, "assumed-facts"));
        ASSERT_TRUE(sample_warned(&s, "no-nvidia-runtime"));
        ASSERT_TRUE(sample_warned(&s, "unused-instance-store"));
        ASSERT_CONTAINS(text, "1 GPU (nvidia-l4-24gb, class single)");
        ASSERT_CONTAINS(text, s.plan->id);
}

TEST(long_actions_are_folded) {
        _cleanup_(sample_done) Sample s = sample_new();
        sample_plan(&s);
        Action *a = &s.plan->actions[0];
        free(a->with);
        a->with = xstrdup("one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen");
        _free_ char *text = plan_to_text(s.plan), *end = xstrdup(strstr(text, "thirteen") ?: "");
        ASSERT_CONTAINS(text, ",\n                   ");
        ASSERT_CONTAINS(end, "fourteen\n");
}

TEST(a_second_bootstrapper_is_named_and_changes_nothing) {
        _cleanup_(sample_done) Sample s = sample_new();
        _free_ char *id = xstrdup(sample_plan(&s)->id);
        s.host.bootstrappers = (char *[]){ (char[]){ "nodeadm-config.service" }, (char[]){ "nodeadm-run.service" }, NULL };
        ASSERT_STREQ(sample_plan(&s)->id, id);
        ASSERT_TRUE(sample_warned(&s, "two-bootstrappers"));
        ASSERT_CONTAINS(s.plan->warnings.items[0].text, "nodeadm-config.service and nodeadm-run.service are enabled, too");
        ASSERT_CONTAINS(s.plan->warnings.items[0].text, "systemctl disable nodeadm-config.service nodeadm-run.service");
}

TEST(an_ordinary_node_has_no_warnings) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.host.type = NULL;             /* the table knows accelerated types only */
        sample_plan(&s);
        ASSERT_EQ(s.plan->warnings.n, 0);
        s.host.gpus = (Gpus){ .class = GPU_CLASS_SINGLE, .count = 1, .expected = 1 };
        s.host.modelled = true;
        s.host.assumed = LIST("instance.id");
        sample_plan(&s);
        ASSERT_TRUE(sample_warned(&s, "unknown-instance-type"));
        ASSERT_TRUE(sample_warned(&s, "assumed-facts"));
        strv_free(s.host.assumed);
}

TEST(missing_facts_are_errors) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.host.kubelet_version = NULL;
        s.host.instance.zone = NULL;
        ASSERT_ERROR(plan_make(&s.config, &s.host, &s.options, &s.plan, &s.diag), EINVAL);
        ASSERT_EQ(diag_count(&s.diag, false), 2);
        ASSERT_EQ(diag_first_error(&s.diag)->cause, CAUSE_FACTS);
        ASSERT_TRUE(!s.plan);
}

TEST(outposts_get_hosts_and_a_bootstrap_kubeconfig) {
        _cleanup_(sample_done) Sample s = sample_new();
        sample_plan(&s);
        ASSERT_TRUE(!plan_find(s.plan, "write-block:/etc/hosts"));
        s.config.cluster.outpost = true;
        s.config.cluster.id = (char[]){ "11111111-2222" };
        s.config.cluster.endpoint = (char[]){ "https://api.example:8443/x" };
        s.host.api_server_addresses = LIST("10.0.0.4", "10.0.0.5");
        sample_plan(&s);
        ASSERT_STREQ(plan_find(s.plan, "write-block:/etc/hosts")->file.content, "10.0.0.4\tapi.example\n10.0.0.5\tapi.example\n");
        ASSERT_TRUE(!plan_find(s.plan, "write-file:/var/lib/kubelet/kubeconfig"));
        ASSERT_CONTAINS(sample_file(&s, "/var/lib/kubelet/bootstrap-kubeconfig")->file.content, "- \"11111111-2222\"");
        ASSERT_CONTAINS(sample_file(&s, "/etc/eks/kubelet/environment")->file.content, "--bootstrap-kubeconfig=/var/lib/kubelet/bootstrap-kubeconfig");
        ASSERT_CONTAINS(sample_file(&s, "/etc/eks/kubelet/environment")->file.content, "--kubeconfig=/var/lib/kubelet/kubeconfig");
        s.host.api_server_addresses = strv_free(s.host.api_server_addresses);
        ASSERT_ERROR(plan_make(&s.config, &s.host, &s.options, &(Plan *){ NULL }, &s.diag), EINVAL);
}

TEST(name_servers_configure_and_restart_resolved) {
        _cleanup_(sample_done) Sample s = sample_new();
        sample_plan(&s);
        ASSERT_TRUE(!plan_find(s.plan, "restart-unit:systemd-resolved.service"));
        s.config.instance.nameservers = LIST("10.0.0.2", "fd00::2");
        s.config.instance.domains = LIST("example.com", "corp");
        sample_plan(&s);
        ASSERT_STREQ(sample_file(&s, "/run/systemd/resolved.conf.d/40-eks.conf")->file.content, "[Resolve]\nDNS=10.0.0.2 fd00::2\nDomains=example.com corp\n");
        _free_ char *inputs = xstrdup(plan_find(s.plan, "restart-unit:systemd-resolved.service")->unit.inputs);
        ASSERT_EQ(strlen(inputs), 64);
        strv_add(&s.config.instance.domains, "x");
        sample_plan(&s);
        ASSERT_TRUE(!streq(plan_find(s.plan, "restart-unit:systemd-resolved.service")->unit.inputs, inputs));
        strv_free(s.config.instance.nameservers);
        strv_free(s.config.instance.domains);
}

TEST_MAIN
