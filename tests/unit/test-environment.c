/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"
#include "config/kubelet.h"

static char *words(const char *flag) {
        char *flags[] = { (char *)flag, NULL };
        _strv_ char **w = kubelet_words(flags);
        return strv_join(w, "|");
}

TEST(flags_are_split_as_users_of_nodeadm_mean_them) {
        static const struct { const char *flag, *words; } cases[] = {
                { "--v=4",                                      "--v=4" },
                { "--v=4 --x=y",                                "--v=4|--x=y" },
                { "  --v=4\n--x=y\t",                           "--v=4|--x=y" },
                { "--max-pods 110",                             "--max-pods|110" },
                { "-v 4 --x",                                   "-v|4|--x" },
                { "--node-labels=\"a=b,c=d\"",                  "--node-labels=a=b,c=d" },      /* as Karpenter writes it */
                { "--node-labels='a=b'",                        "--node-labels=a=b" },
                { "--a=\"x\" --b='y z'",                        "--a=x|--b=y z" },
                { "'--a=b c'",                                  "--a=b c" },
                { "--a=\"x --b=y\"",                            "--a=x --b=y" },
                { "--a=x y",                                    "--a=x y" },                    /* kubelet would refuse a lone y */
                { "--a={\"k\": 1}",                             "--a={\"k\": 1}" },
                { "--a=\"b\"c\"",                               "--a=\"b\"c\"" },
                { "--a=it's",                                   "--a=it's" },
                { "--a=C:\\x\\",                                "--a=C:\\x\\" },
                { "--a=",                                       "--a=" },
                { "--a=\"\"",                                   "--a=" },
                { "",                                           "" },
                { " ",                                          "" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *got = words(cases[i].flag);
                ASSERT_STREQ(got, cases[i].words);
        }
}

TEST(drop_ins_name_environment_files) {
        _cleanup_(sample_done) Sample s = sample_new();
        Variable two[] = { { (char[]){"A"}, (char[]){"1"} }, { (char[]){"B"}, (char[]){"50%"} } };
        ServiceEnvironment e[] = { { (char[]){"default"}, two, 2 }, { (char[]){"kubelet"}, two, 1 }, { (char[]){"x.service"}, two, 1 }, { (char[]){"none"}, NULL, 0 } };
        s.config.instance.environment = e;
        s.config.instance.n_environment = ARRAY_SIZE(e);
        sample_plan(&s);
        static const struct { const char *path, *content; mode_t mode; bool secret; } files[] = {
                { ENVIRONMENT_DIR "/default", "A=\"1\"\nB=\"50%\"\n", 0600, true },
                { ENVIRONMENT_DIR "/kubelet.service", "A=\"1\"\n", 0600, true },
                { ENVIRONMENT_DIR "/x.service", "A=\"1\"\n", 0600, true },
                { "/etc/systemd/system/kubelet.service.d/environment.conf", "[Service]\nEnvironmentFile=-/etc/nodestrap/environment/default\nEnvironmentFile=-/etc/nodestrap/environment/kubelet.service\n", 0644, false },
                { "/etc/systemd/system/containerd.service.d/environment.conf", "[Service]\nEnvironmentFile=-/etc/nodestrap/environment/default\n", 0644, false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                const Action *a = sample_file(&s, files[i].path);
                ASSERT_STREQ(a->file.content, files[i].content);
                ASSERT_EQ(a->file.mode, files[i].mode);
                ASSERT_EQ(a->secret, files[i].secret);
        }
        const Action *kubelet = plan_find(s.plan, "start-unit:kubelet.service");
        ASSERT_TRUE(strv_contains(kubelet->unit.reads, ENVIRONMENT_DIR "/default") && strv_contains(kubelet->unit.reads, ENVIRONMENT_DIR "/kubelet.service"));
        ASSERT_TRUE(!plan_find(s.plan, "write-file:" SYSTEM_ENVIRONMENT));
        ASSERT_TRUE(!plan_find(s.plan, "write-file:/etc/systemd/system/none.service.d/environment.conf"));
}

TEST(drop_ins_hold_the_variables_under_the_name_nodeadm) {
        _cleanup_(sample_done) Sample s = sample_new();
        Variable two[] = { { (char[]){"A"}, (char[]){"1"} }, { (char[]){"B"}, (char[]){"50%"} } };
        ServiceEnvironment e[] = { { (char[]){"default"}, two, 2 }, { (char[]){"kubelet"}, two, 1 } };
        s.config.instance.environment = e;
        s.config.instance.n_environment = ARRAY_SIZE(e);
        s.options.as_nodeadm = true;
        sample_plan(&s);
        ASSERT_STREQ(sample_file(&s, SYSTEM_ENVIRONMENT)->file.content, "[Manager]\nDefaultEnvironment=\"A=1\"\nDefaultEnvironment=\"B=50%%\"\n");
        ASSERT_STREQ(sample_file(&s, "/etc/systemd/system/kubelet.service.d/environment.conf")->file.content, "[Service]\nEnvironment=\"A=1\"\n");
        ASSERT_TRUE(sample_file(&s, "/etc/systemd/system/kubelet.service.d/environment.conf")->secret);
        ASSERT_TRUE(!plan_find(s.plan, "write-file:" ENVIRONMENT_DIR "/kubelet.service"));
}

/* Otherwise systemd would write this line to the journal, or replace the kubelet arguments. */
TEST(variables_that_are_left_out) {
        _cleanup_(sample_done) Sample s = sample_new();
        Variable v[] = { { (char[]){"A-B"}, (char[]){"1"} }, { (char[]){"NODEADM_KUBELET_ARGS"}, (char[]){"--x"} }, { (char[]){"C"}, (char[]){"2"} } };
        ServiceEnvironment e[] = { { (char[]){"kubelet"}, v, ARRAY_SIZE(v) } };
        s.config.instance.environment = e;
        s.config.instance.n_environment = 1;
        sample_plan(&s);
        ASSERT_STREQ(sample_file(&s, ENVIRONMENT_DIR "/kubelet.service")->file.content, "C=\"2\"\n");
}

TEST(line_breaks_are_refused_without_their_value) {
        _cleanup_(sample_done) Sample s = sample_new();
        Variable v[] = { { (char[]){"KEY"}, (char[]){"hunter2\nEvil=1"} } };
        ServiceEnvironment e[] = { { (char[]){"kubelet"}, v, 1 } };
        s.config.instance.environment = e;
        s.config.instance.n_environment = 1;
        ASSERT_ERROR(plan_make(&s.config, &s.host, &s.options, &s.plan, &s.diag), EINVAL);
        ASSERT_STREQ(diag_first_error(&s.diag)->path, "spec.instance.environment.kubelet.KEY");
        ASSERT_TRUE(!strstr(diag_first_error(&s.diag)->text, "hunter2"));
}

TEST(one_service_under_two_names_is_refused) {
        _cleanup_(sample_done) Sample s = sample_new();
        Variable one[] = { { (char[]){"A"}, (char[]){"1"} } }, two[] = { { (char[]){"A"}, (char[]){"2"} } };
        ServiceEnvironment e[] = { { (char[]){"kubelet"}, one, 1 }, { (char[]){"kubelet.service"}, two, 1 } };
        s.config.instance.environment = e;
        s.config.instance.n_environment = 2;
        ASSERT_ERROR(plan_make(&s.config, &s.host, &s.options, &s.plan, &s.diag), EINVAL);
        ASSERT_EQ(diag_first_error(&s.diag)->cause, CAUSE_INVALID);
        ASSERT_STREQ(diag_first_error(&s.diag)->path, "spec.instance.environment.kubelet.service");
}

TEST(names_that_systemd_ignores) {
        static const struct { const char *name; bool taken; } names[] = {
                { "HTTP_PROXY", true }, { "_x1", true }, { "my-var", false }, { "my.var", false }, { "1X", false }, { "MIT BLANK", false }, { "Ä", false }, { "", false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                ASSERT_EQ(variable_name_is_valid(names[i].name), names[i].taken);
}

/* torvalds/linux fs/exec.c: MAX_ARG_STRLEN, the NUL behind it included. tests/check/environment.sh proves it with the kernel. */
TEST(a_variable_that_is_too_long_for_the_kernel_is_refused) {
        static const struct { size_t size; bool taken; } cases[] = { { (128 << 10) - 3, true }, { (128 << 10) - 2, false } };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                _free_ char *value = xcalloc(cases[i].size + 1, 1);
                memset(value, 'x', cases[i].size);
                Variable v[] = { { (char[]){"A"}, value } };
                ServiceEnvironment e[] = { { (char[]){"kubelet"}, v, 1 } };
                s.config.instance.environment = e;
                s.config.instance.n_environment = 1;
                ASSERT_EQ(plan_make(&s.config, &s.host, &s.options, &s.plan, &s.diag), cases[i].taken ? 0 : -EINVAL);
                if (!cases[i].taken)
                        ASSERT_STREQ(diag_first_error(&s.diag)->path, "spec.instance.environment.kubelet.A");
        }
}

TEST(kubelet_flags_that_are_too_long_for_the_kernel_are_refused) {
        _cleanup_(sample_done) Sample s = sample_new();
        sample_plan(&s);
        size_t ours = strlen(sample_file(&s, "/etc/eks/kubelet/environment")->file.content) - 1;
        for (int more = 0; more < 2; more++) {
                _cleanup_(sample_done) Sample t = sample_new();
                _cleanup_(text_done) Text flag = {};
                size_t room = (128u << 10) - 1 - ours - strlen(" --root-dir=/") + (size_t)more;
                text_add(&flag, "--root-dir=/%0*d", (int)room, 0);
                t.config.kubelet.flags = LIST(flag.data);
                int r = plan_make(&t.config, &t.host, &t.options, &t.plan, &t.diag);
                ASSERT_EQ(r, more ? -EINVAL : 0);
                if (more)
                        ASSERT_STREQ(diag_first_error(&t.diag)->path, "spec.kubelet.flags");
                strv_free(t.config.kubelet.flags);
        }
}

TEST(user_flags_are_last_and_in_order) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.config.kubelet.flags = LIST("--v=1", "--root-dir=2", "--node-ip=1.2.3.4");
        sample_plan(&s);
        const char *text = sample_file(&s, "/etc/eks/kubelet/environment")->file.content;
        ASSERT_TRUE(startswith(text, "NODEADM_KUBELET_ARGS=--cloud-provider=external --config="));
        ASSERT_TRUE(endswith(text, " --v=1 --root-dir=2 --node-ip=1.2.3.4\n"));
        strv_free(s.config.kubelet.flags);
}

TEST_MAIN
