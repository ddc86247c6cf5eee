/* SPDX-License-Identifier: Apache-2.0
 * set-sysctl on a fixture of /proc/sys; tests/vm/modules.sh has a real kernel. */
#include "apply/apply.h"
#include "apply/device.h"
#include "mounts.h"

#include <signal.h>

static void setting_init(Box *s, const char *name, const char *value) {
        box_init(s);
        s->action = (Action){ .id = (char *)"set-sysctl:test", .type = ACTION_SET_SYSCTL, .target = (char *)name, .with = (char *)value };
}
#define SETTING(var, name, value) _cleanup_(box_done) Box var; setting_init(&var, name, value)

static const char *run(Box *s) {
        int r = sysctl_work(&s->work);
        return r < 0 ? "failed" : r > 0 ? "done" : "unchanged";
}

TEST(a_setting_is_written_once) {
        SETTING(s, "vm.max_map_count", "262144");
        put(&s, "/proc/sys/vm/max_map_count", "65530\n");
        ASSERT_STREQ(run(&s), "done");
        assert_file(&s, "/proc/sys/vm/max_map_count", "262144\n");
        ASSERT_STREQ(run(&s), "unchanged");
}

TEST(dots_and_slashes_are_read_as_in_sysctl_d) {
        static const struct { const char *name, *path; } names[] = {
                { "net.ipv4.conf.eth0/5.forwarding", "/proc/sys/net/ipv4/conf/eth0.5/forwarding" },
                { "net/ipv4/conf/eth0.5/forwarding", "/proc/sys/net/ipv4/conf/eth0.5/forwarding" },
                { "kernel.pid_max",                  "/proc/sys/kernel/pid_max" },
                { "kernel/pid_max",                  "/proc/sys/kernel/pid_max" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                SETTING(s, names[i].name, "1");
                put(&s, names[i].path, "0\n");
                ASSERT_STREQ(run(&s), "done");
                assert_file(&s, names[i].path, "1\n");
        }
}

TEST(values_are_compared_as_the_kernel_shows_them) {
        static const struct { const char *want, *have; bool same; } values[] = {
                { "4096 87380 6291456", "4096\t87380\t6291456\n", true },
                { "  1  ",              "1\n",                    true },
                { "0x10",               "16\n",                   true },
                { "4",                  "4\t4\t1\t7\n",           true },       /* the rest of a list stays */
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
                { "99999999999999999999", "99999999999999999998\n", false },   /* over 64 bits: as text */
                { "99999999999999999999", "18446744073709551615\n", false },
                { "99999999999999999999", "99999999999999999999\n", true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
                SETTING(s, "kernel.x", values[i].want);
                put(&s, "/proc/sys/kernel/x", values[i].have);
                const char *outcome = run(&s);
                if (!streq(outcome, values[i].same ? "unchanged" : "done"))
                        FAIL("\"%s\" and \"%s\": %s", values[i].want, values[i].have, outcome);
        }
}

TEST(a_setting_that_does_not_exist_is_an_error) {
        SETTING(s, "vm.max_map_cuont", "1");
        put(&s, "/proc/sys/vm/max_map_count", "65530\n");
        ASSERT_STREQ(run(&s), "failed");
        ASSERT_EQ(s.work.cause, CAUSE_SYSCTL);
        ASSERT_CONTAINS(s.work.text, "/proc/sys/vm/max_map_cuont does not exist");
        ASSERT_CONTAINS(s.work.text, "did you mean max_map_count?");
        s.action.target = (char *)"net.bridge.bridge-nf-call-iptables";         /* not even its directory */
        ASSERT_STREQ(run(&s), "failed");
        ASSERT_CONTAINS(s.work.text, "/etc/modules-load.d");
}

TEST(a_group_of_settings_is_an_error) {
        SETTING(s, "vm", "1");
        put(&s, "/proc/sys/vm/max_map_count", "65530\n");
        ASSERT_STREQ(run(&s), "failed");
        ASSERT_CONTAINS(s.work.text, "/proc/sys/vm is a group of settings");
}

/* The write to a FIFO that is mounted over the setting hangs, as it may in a kernel. */
TEST(a_setting_that_hangs_does_not_hold_up_the_run) {
        static const char path[] = "/proc/sys/vm/max_map_count";
        BOX(b);
        _cleanup_(root_freep) Root *host = NULL;
        _cleanup_(results_done) Results results = {};
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *fifo = box_path(&b, "/fifo");
        /* The thread may read both after this function returns. */
        static Action action = { .id = (char *)"set-sysctl:vm.max_map_count", .type = ACTION_SET_SYSCTL,
                                 .target = (char *)"vm.max_map_count", .with = (char *)"65531",
                                 .deadline_usec = 2 * USEC_PER_SEC };
        static Plan plan = { .actions = &action, .n = 1 };
        signal(SIGPIPE, SIG_IGN);                               /* as main() does */
        ASSERT_OK(root_new("/", &host));
        ASSERT_EQ(mkfifo(fifo, 0600), 0);
        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", "", MS_REC | MS_PRIVATE, "") < 0 ||
            mount(fifo, path, "", MS_BIND, "") < 0) {
                printf("# not tried: %s is not to be mounted over\n", path);
                return;
        }
        uint64_t begin = now_usec();
        ASSERT_TRUE(apply_plan(host, &plan, &results, &diag) < 0);
        ASSERT_TRUE(now_usec() - begin < 60 * USEC_PER_SEC);
        ASSERT_EQ(results.threads_left, 1);
        ASSERT_EQ(results.items[0].cause, CAUSE_SYSCTL);
        ASSERT_CONTAINS(results.items[0].text, "not done after 2 s; writing /proc/sys/vm/max_map_count");
        int fd = ASSERT_OK(open(fifo, O_RDONLY | O_CLOEXEC));   /* the thread continues */
        ASSERT_EQ(umount2(path, MNT_DETACH), 0);
        char written[8];
        while (read(fd, written, sizeof written) > 0)           /* until it has closed its end */
                ;
        close(fd);
}

/* One setting can change others: net.ipv6.conf.all.* changes those of each interface. */
TEST(settings_are_written_one_after_the_other) {
        static const char first[] = "/proc/sys/vm/max_map_count", second[] = "/proc/sys/vm/swappiness";
        BOX(b);
        _cleanup_(root_freep) Root *host = NULL;
        _cleanup_(results_done) Results results = {};
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *fifo = box_path(&b, "/fifo"), *file = box_path(&b, "/file");
        /* The thread may read both after this function returns. */
        static Action actions[] = {
                { .id = (char *)"set-sysctl:vm.max_map_count", .type = ACTION_SET_SYSCTL,
                  .target = (char *)"vm.max_map_count", .with = (char *)"65531",
                  .deadline_usec = 300 * USEC_PER_MSEC },
                { .id = (char *)"set-sysctl:vm.swappiness", .type = ACTION_SET_SYSCTL,
                  .target = (char *)"vm.swappiness", .with = (char *)"17" },
        };
        static Plan plan = { .actions = actions, .n = ARRAY_SIZE(actions) };
        signal(SIGPIPE, SIG_IGN);
        ASSERT_OK(root_new("/", &host));
        ASSERT_EQ(mkfifo(fifo, 0600), 0);
        put(&b, "/file", "60\n");
        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", "", MS_REC | MS_PRIVATE, "") < 0 ||
            mount(fifo, first, "", MS_BIND, "") < 0 || mount(file, second, "", MS_BIND, "") < 0) {
                printf("# not tried: %s is not to be mounted over\n", first);
                return;
        }
        ASSERT_TRUE(apply_plan(host, &plan, &results, &diag) < 0);
        int fd = ASSERT_OK(open(fifo, O_RDONLY | O_CLOEXEC));   /* the thread continues */
        ASSERT_EQ(umount2(first, MNT_DETACH), 0);
        ASSERT_EQ(umount2(second, MNT_DETACH), 0);
        close(fd);
        ASSERT_EQ(results.items[0].outcome, OUTCOME_FAILED);
        ASSERT_EQ(results.items[1].outcome, OUTCOME_DONE);
        ASSERT_TRUE(results.items[1].begin_usec >= results.items[0].end_usec);
        assert_file(&b, "/file", "17\n");
}

TEST_MAIN
