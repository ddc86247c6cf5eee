/* SPDX-License-Identifier: Apache-2.0
 * Names of kernel settings → their files (sysctl.d(5)). */
#include "base/sysctl.h"
#include "test.h"

TEST(names_with_dots_or_slashes_become_paths) {
        static const char *const cases[][2] = {
                { "vm.max_map_count", "/proc/sys/vm/max_map_count" },
                { "vm/max_map_count", "/proc/sys/vm/max_map_count" },
                { "net.ipv4.conf.eth0/5.forwarding", "/proc/sys/net/ipv4/conf/eth0.5/forwarding" },
                { "net/ipv4/conf/eth0.5/forwarding", "/proc/sys/net/ipv4/conf/eth0.5/forwarding" },
                { "net.ipv4.conf./eth0.forwarding", "/proc/sys/net/ipv4/conf/.eth0/forwarding" },
                { "kernel", "/proc/sys/kernel" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *path = sysctl_path(cases[i][0]);
                ASSERT_TRUE(sysctl_name_is_valid(cases[i][0]));
                ASSERT_STREQ(path, cases[i][1]);
        }
}

TEST(malformed_names_are_invalid) {
        static const char *const names[] = { "", ".", "/", "..", "a..b", "a//b", "/a", ".a", "a/", "a.", "a b", "a=b", "a\n", "é",
                                             "kernel/./modprobe", "kernel./.modprobe", "net/ipv4/./ip_forward" };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (sysctl_name_is_valid(names[i]))
                        FAIL("\"%s\"", names[i]);
}

TEST(settings_that_name_a_program_are_recognized) {
        static const struct { const char *name, *value; bool program; } cases[] = {
                { "kernel.core_pattern", "|/usr/bin/dump %p", true },  { "kernel/core_pattern", " \t|/usr/bin/dump", true },
                { "kernel.core_pattern", "/var/cores/%e|%p", false }, { "kernel.core_pattern", "", false },
                { "kernel.modprobe", "/sbin/modprobe", true },        { "kernel/modprobe", "x", true },
                { "kernel.modprobe", "", false },                     { "kernel.hotplug", "/x", true },
                { "kernel.hotplug", " ", false },                     { "kernel.poweroff_cmd", "/x", true },
                { "fs.binfmt_misc.register", ":a:E::a::/x:", true },  { "fs.ocfs2.nm.hb_ctl_path", "/x", true },
                { "kernel.modprobes", "/x", false },                  { "kernel.core_pattern.x", "|x", false },
                { "kernel.modules_disabled", "1", false },            { "vm.max_map_count", "|", false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                if (sysctl_names_program(cases[i].name, cases[i].value) != cases[i].program)
                        FAIL("%s = %s", cases[i].name, cases[i].value);
}

TEST_MAIN
