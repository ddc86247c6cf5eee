/* SPDX-License-Identifier: Apache-2.0
 * Names of kernel settings → their files (sysctl.d(5)). */
#include "base/sysctl.h"
#include "test.h"

TEST(paths) {
        static const char *const cases[][2] = {
                { "vm.max_map_count", "/proc/sys/vm/max_map_count" },
                { "vm/max_map_count", "/proc/sys/vm/max_map_count" },
                { "net.ipv4.conf.eth0/5.forwarding", "/proc/sys/net/ipv4/conf/eth0.5/forwarding" },
                { "net/ipv4/conf/eth0.5/forwarding", "/proc/sys/net/ipv4/conf/eth0.5/forwarding" },
                { "kernel", "/proc/sys/kernel" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(freep) char *path = sysctl_path(cases[i][0]);
                ASSERT_TRUE(sysctl_name_is_valid(cases[i][0]));
                ASSERT_STREQ(path, cases[i][1]);
        }
}

TEST(names_that_lead_elsewhere) {
        static const char *const names[] = { "", ".", "/", "..", "a..b", "a//b", "/a", ".a", "a/", "a.", "a b", "a=b", "a\n", "é" };
        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (sysctl_name_is_valid(names[i]))
                        FAIL("\"%s\"", names[i]);
}

TEST_MAIN
