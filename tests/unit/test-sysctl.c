/* SPDX-License-Identifier: Apache-2.0
 * set-sysctl over a fixture of /proc/sys; against a kernel: tests/vm/modules.sh. */
#include "apply/device.h"
#include "base/str.h"
#include "../test.h"

#include <sys/stat.h>
#include <unistd.h>

typedef struct Box { char path[32]; Root *root; Action action; Result result; Diag diag; Apply apply; Task task; } Box;

static void box_init(Box *b, const char *name, const char *value) {
        *b = (Box){ .path = "/tmp/test-sysctl.XXXXXX" };
        ASSERT_TRUE(mkdtemp(b->path));
        ASSERT_OK(root_new(b->path, &b->root));
        b->action = (Action){ .id = (char *)"set-sysctl:test", .type = ACTION_SET_SYSCTL, .target = (char *)name, .with = (char *)value };
}

static void box_reset(Box *b) {
        free(b->result.text);
        b->result = (Result){};
        b->apply = (Apply){ .root = b->root, .diag = &b->diag, .in_flight = 1 };
        b->task = (Task){ .apply = &b->apply, .action = &b->action, .result = &b->result, .state = TASK_RUNNING, .tmp = { .dir_fd = -1, .fd = -1 } };
}

static void box_done(Box *b) {
        _cleanup_(freep) char *command = xasprintf("rm -rf '%s'", b->path);
        free(b->result.text);
        diag_done(&b->diag);
        root_free(b->root);
        ASSERT_EQ(system(command), 0);
}
#define BOX(var, name, value) _cleanup_(box_done) Box var; box_init(&var, name, value)

static void put(const Box *b, const char *path, const char *content) {
        ASSERT_OK(root_replace_volatile(b->root, path, content, strlen(content), 0644));
}

static const char *run(Box *b) {
        box_reset(b);
        int r = sysctl_check(&b->task);
        if (r == CHECK_DONE_ALREADY)
                task_end(&b->task, OUTCOME_UNCHANGED);
        else if (r == CHECK_NEEDED)
                r = sysctl_start(&b->task);
        ASSERT_EQ(b->task.state, TASK_ENDED);
        ASSERT_EQ(b->apply.in_flight, 0);
        ASSERT_EQ(r < 0, b->result.outcome == OUTCOME_FAILED);
        return outcome_to_string(b->result.outcome);
}

static void assert_file(const Box *b, const char *path, const char *content) {
        _cleanup_(freep) char *data = NULL;
        ASSERT_OK(root_read(b->root, path, 1 << 20, &data, NULL));
        ASSERT_STREQ(data, content);
}

TEST(sets_it_once) {
        BOX(b, "vm.max_map_count", "262144");
        put(&b, "/proc/sys/vm/max_map_count", "65530\n");
        ASSERT_STREQ(run(&b), "done");
        assert_file(&b, "/proc/sys/vm/max_map_count", "262144\n");
        ASSERT_STREQ(run(&b), "unchanged");
}

TEST(dots_and_slashes_as_sysctl_d_has_them) {
        static const struct { const char *name, *path; } names[] = {
                { "net.ipv4.conf.eth0/5.forwarding", "/proc/sys/net/ipv4/conf/eth0.5/forwarding" },
                { "net/ipv4/conf/eth0.5/forwarding", "/proc/sys/net/ipv4/conf/eth0.5/forwarding" },
                { "kernel.pid_max",                  "/proc/sys/kernel/pid_max" },
                { "kernel/pid_max",                  "/proc/sys/kernel/pid_max" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                BOX(b, names[i].name, "1");
                put(&b, names[i].path, "0\n");
                ASSERT_STREQ(run(&b), "done");
                assert_file(&b, names[i].path, "1\n");
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
        };
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                BOX(b, "kernel.x", values[i].want);
                put(&b, "/proc/sys/kernel/x", values[i].have);
                if (!streq(run(&b), values[i].same ? "unchanged" : "done"))
                        FAIL("\"%s\" and \"%s\": %s", values[i].want, values[i].have, outcome_to_string(b.result.outcome));
        }
}

TEST(a_setting_that_is_not_there) {
        BOX(b, "vm.max_map_cuont", "1");
        put(&b, "/proc/sys/vm/max_map_count", "65530\n");
        ASSERT_STREQ(run(&b), "failed");
        ASSERT_EQ(b.result.cause, CAUSE_SYSCTL);
        ASSERT_CONTAINS(b.result.text, "/proc/sys/vm/max_map_cuont is not there");
        ASSERT_CONTAINS(b.result.text, "did you mean max_map_count?");
        b.action.target = (char *)"net.bridge.bridge-nf-call-iptables";         /* not even its directory */
        ASSERT_STREQ(run(&b), "failed");
        ASSERT_CONTAINS(b.result.text, "/etc/modules-load.d");
}

TEST(a_group_of_settings) {
        BOX(b, "vm", "1");
        put(&b, "/proc/sys/vm/max_map_count", "65530\n");
        ASSERT_STREQ(run(&b), "failed");
        ASSERT_CONTAINS(b.result.text, "/proc/sys/vm is a group of settings");
}

TEST_MAIN
