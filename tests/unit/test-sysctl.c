/* SPDX-License-Identifier: Apache-2.0
 * set-sysctl over a fixture of /proc/sys; against a kernel: tests/vm/modules.sh. */
#include "apply/device.h"
#include "../mounts.h"

typedef struct Setting { Box box; Action action; Result result; Diag diag; Apply apply; Task task; } Setting;

static void setting_init(Setting *s, const char *name, const char *value) {
        *s = (Setting){ .action = { .id = (char *)"set-sysctl:test", .type = ACTION_SET_SYSCTL, .target = (char *)name, .with = (char *)value } };
        box_init(&s->box);
}

static void setting_done(Setting *s) {
        free(s->result.text);
        diag_done(&s->diag);
        box_done(&s->box);
}
#define SETTING(var, name, value) _cleanup_(setting_done) Setting var; setting_init(&var, name, value)

static void setting_reset(Setting *s) {
        free(s->result.text);
        s->result = (Result){};
        s->apply = (Apply){ .root = s->box.root, .diag = &s->diag, .in_flight = 1 };
        s->task = (Task){ .apply = &s->apply, .action = &s->action, .result = &s->result, .state = TASK_RUNNING, .tmp = { .dir_fd = -1, .fd = -1 } };
}

static const char *run(Setting *s) {
        setting_reset(s);
        int r = sysctl_check(&s->task);
        if (r == CHECK_DONE_ALREADY)
                task_end(&s->task, OUTCOME_UNCHANGED);
        else if (r == CHECK_NEEDED)
                r = sysctl_start(&s->task);
        ASSERT_EQ(s->task.state, TASK_ENDED);
        ASSERT_EQ(s->apply.in_flight, 0);
        ASSERT_EQ(r < 0, s->result.outcome == OUTCOME_FAILED);
        return outcome_to_string(s->result.outcome);
}

TEST(sets_it_once) {
        SETTING(s, "vm.max_map_count", "262144");
        put(&s.box, "/proc/sys/vm/max_map_count", "65530\n");
        ASSERT_STREQ(run(&s), "done");
        assert_file(&s.box, "/proc/sys/vm/max_map_count", "262144\n");
        ASSERT_STREQ(run(&s), "unchanged");
}

TEST(dots_and_slashes_as_sysctl_d_has_them) {
        static const struct { const char *name, *path; } names[] = {
                { "net.ipv4.conf.eth0/5.forwarding", "/proc/sys/net/ipv4/conf/eth0.5/forwarding" },
                { "net/ipv4/conf/eth0.5/forwarding", "/proc/sys/net/ipv4/conf/eth0.5/forwarding" },
                { "kernel.pid_max",                  "/proc/sys/kernel/pid_max" },
                { "kernel/pid_max",                  "/proc/sys/kernel/pid_max" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                SETTING(s, names[i].name, "1");
                put(&s.box, names[i].path, "0\n");
                ASSERT_STREQ(run(&s), "done");
                assert_file(&s.box, names[i].path, "1\n");
        }
}

TEST(values_are_compared_as_the_kernel_shows_them) {
        static const struct { const char *want, *have; bool same; } values[] = {
                { "4096 87380 6291456", "4096\t87380\t6291456\n", true },
                { "  1  ",              "1\n",                    true },
                { "0x10",               "16\n",                   true },
                { "4",                  "4\t4\t1\t7\n",           true },       /* the others of a list stay */
                { "-1",                 "-1\n",                   true },
                { "",                   "\n",                     true },
                { "core",               "core\n",                 true },
                { "core",               "core dumped\n",          false },      /* words are not a list of numbers */
                { "|/bin/x %p",         "|/bin/x %p\n",           true },
                { "1 2",                "1\n",                    false },
                { "1",                  "2\n",                    false },
                { "",                   "x\n",                    false },
                { "1",                  "\n",                     false },
                { "18446744073709551615", "18446744073692774399\n", false },   /* shmmax, as it is: both above 2^63 */
                { "18446744073709551615", "9223372036854775807\n",  false },
                { "18446744073709551615", "18446744073709551615\n", true },
                { "0xffffffffffffffff",   "18446744073709551615\n", true },
                { "-1",                   "18446744073709551615\n", false },
                { "-1",                   "1\n",                    false },
                { "-0x10",                "-16\n",                  true },
                { "-0",                   "0\n",                    true },
                { "-9223372036854775809", "-9223372036854775808\n", false },
                { "99999999999999999999", "99999999999999999998\n", false },   /* too large for 64 bits: by their text */
                { "99999999999999999999", "18446744073709551615\n", false },
                { "99999999999999999999", "99999999999999999999\n", true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                SETTING(s, "kernel.x", values[i].want);
                put(&s.box, "/proc/sys/kernel/x", values[i].have);
                if (!streq(run(&s), values[i].same ? "unchanged" : "done"))
                        FAIL("\"%s\" and \"%s\": %s", values[i].want, values[i].have, outcome_to_string(s.result.outcome));
        }
}

TEST(a_setting_that_is_not_there) {
        SETTING(s, "vm.max_map_cuont", "1");
        put(&s.box, "/proc/sys/vm/max_map_count", "65530\n");
        ASSERT_STREQ(run(&s), "failed");
        ASSERT_EQ(s.result.cause, CAUSE_SYSCTL);
        ASSERT_CONTAINS(s.result.text, "/proc/sys/vm/max_map_cuont is not there");
        ASSERT_CONTAINS(s.result.text, "did you mean max_map_count?");
        s.action.target = (char *)"net.bridge.bridge-nf-call-iptables";         /* not even its directory */
        ASSERT_STREQ(run(&s), "failed");
        ASSERT_CONTAINS(s.result.text, "/etc/modules-load.d");
}

TEST(a_group_of_settings) {
        SETTING(s, "vm", "1");
        put(&s.box, "/proc/sys/vm/max_map_count", "65530\n");
        ASSERT_STREQ(run(&s), "failed");
        ASSERT_CONTAINS(s.result.text, "/proc/sys/vm is a group of settings");
}

TEST_MAIN
