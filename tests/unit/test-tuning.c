/* SPDX-License-Identifier: Apache-2.0
 * Kernel settings that cost GPUs time, on tests/fixtures/tuning-*.txt: what nodestrap reports, sets, and restores. */
#include "apply/device.h"
#include "base/paths.h"
#include "base/run.h"
#include "base/str.h"
#include "base/time.h"
#include "files.h"
#include "host/host.h"
#include "test.h"

#include <unistd.h>

#define CPU   "/sys/devices/system/cpu"
#define CLOCK "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define THP   "/sys/kernel/mm/transparent_hugepage/"

typedef struct Box { char dir[32]; Root *root; HostTuning tuning; } Box;

static void box_done(Box *b) {
        tuning_done(&b->tuning);
        root_free(b->root);
        ASSERT_EQ(tree_remove(b->dir), 0);
}

static Box box_new(const char *fixture) {
        Box b = { .dir = P_tmpdir "/test-tuning-XXXXXX" };
        _cleanup_(child_result_done) ChildResult c = {};
        ASSERT_TRUE(mkdtemp(b.dir));
        ASSERT_OK(root_new(b.dir, &b.root));
        if (!fixture)
                return b;
        ASSERT_OK(child_run((char *[]){ (char *)"tests/fixtures/expand.sh", (char *)fixture, b.dir, NULL },
                            60 * USEC_PER_SEC, 4096, &c));
        ASSERT_EQ(c.status, 0);
        return b;
}
#define BOX(name, fixture) _cleanup_(box_done) Box name = box_new(fixture)

static void put(const Box *b, const char *path, const char *text) {
        ASSERT_OK(root_replace_volatile(b->root, path, text, strlen(text), 0644));
}

static void assert_line(const Box *b, const char *path, const char *text) {
        _free_ char *line = NULL;
        ASSERT_OK(root_read_line(b->root, path, &line));
        ASSERT_STREQ(line, text);
}

static const char *fault(Box *b, const char *name) {
        tuning_done(&b->tuning);
        b->tuning = (HostTuning){};
        tuning_read(b->root, &b->tuning);
        for (size_t i = 0; i < b->tuning.n_faults; i++)
                if (streq(b->tuning.faults[i].rule->name, name))
                        return b->tuning.faults[i].text;
        return NULL;
}

/* Where each row reads, and a value that is not listed as right. */
static const struct { const char *name, *path, *right, *wrong, *says; } rows[] = {
        { "kernel.numa_balancing", "/proc/sys/kernel/numa_balancing", "0", "1", "kernel.numa_balancing is 1, not 0" },
        { "the CPU governor", CPU "/cpufreq/policy0/scaling_governor", "performance", "schedutil", "is schedutil, not performance" },
        { "the clock source", CLOCK, "kvm-clock", "acpi_pm", "is acpi_pm, not tsc" },
        { "the clock source", CLOCK, "arch_sys_counter", "jiffies", "kernel parameter clocksource=tsc" },
        { "transparent_hugepage", THP "enabled", "always madvise [never]", "[always] madvise never", "is always, not madvise" },
        { "the IOMMU domain", "/sys/kernel/iommu_groups/0/type", "identity", "DMA", "is DMA, not DMA-FQ (kernel parameter iommu.strict=0" },
        { "the IOMMU domain", "/sys/kernel/iommu_groups/0/type", "DMA-FQ", "DMA", "iommu.passthrough=1 on Linux 6.11 or newer" },
        { "CPU idle states", CPU "/cpu0/cpuidle/state3/disable", "1", "0", "CPU idle state C6 takes 290 us to leave, more than 10" },
        { "CPU idle states", CPU "/cpu0/cpuidle/state3/latency", "10", "11", NULL },
};

TEST(each_wrong_setting_is_a_fault) {
        BOX(b, "tuning-wrong");
        (void)fault(&b, "");
        ASSERT_EQ(b.tuning.n_faults, 6);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (!fault(&b, rows[i].name))
                        FAIL("%s is not told", rows[i].name);
}

TEST(a_right_setting_is_not_a_fault) {
        BOX(b, "tuning-right");
        (void)fault(&b, "");
        ASSERT_EQ(b.tuning.n_faults, 0);
        ASSERT_TRUE(b.tuning.known && !b.tuning.set);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                put(&b, rows[i].path, rows[i].wrong);
                put(&b, CPU "/cpu0/cpuidle/state3/disable", i >= 7 ? "0\n" : "1\n");
                const char *text = fault(&b, rows[i].name);
                if (!text || (rows[i].says && !strstr(text, rows[i].says)))
                        FAIL("%s %s: %s", rows[i].path, rows[i].wrong, text ?: "nothing");
                put(&b, rows[i].path, rows[i].right);
                if (fault(&b, rows[i].name))
                        FAIL("%s %s: %s", rows[i].path, rows[i].right, fault(&b, rows[i].name));
        }
}

TEST(missing_files_give_no_verdict) {
        BOX(none, NULL);
        (void)fault(&none, "");
        ASSERT_EQ(none.tuning.n_faults, 0);
        put(&none, "/proc/sys/kernel/numa_balancing", "\n");
        ASSERT_TRUE(!fault(&none, "kernel.numa_balancing"));
        BOX(b, "tuning-wrong");
        ASSERT_OK(root_remove(b.root, CPU "/cpufreq/policy1/scaling_governor"));
        ASSERT_OK(root_remove(b.root, CPU "/cpu1/cpuidle/state3/disable"));
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                (void)!root_remove(b.root, rows[i].path);
                if (fault(&b, rows[i].name))
                        FAIL("%s without %s", rows[i].name, rows[i].path);
        }
        ASSERT_EQ(b.tuning.n_faults, 0);
}

/* As many CPUs as Grace has, of which other programs have changed three. */
TEST(all_cpus_are_checked) {
        BOX(b, "tuning-right");
        for (size_t i = 0; i < 144; i++) {
                _free_ char *governor = xasprintf(CPU "/cpufreq/policy%zu/scaling_governor", i), *disable = xasprintf(CPU "/cpu%zu/cpuidle/state3/disable", i);
                put(&b, governor, i == 77 ? "ondemand\n" : "performance\n");
                put(&b, disable, i == 78 || i == 143 ? "0\n" : "1\n");
        }
        ASSERT_STREQ(fault(&b, "the CPU governor"),
                     "the CPU governor is ondemand, not performance, on 1 of 144 cpufreq policies (spec.instance.tuning: gpu)");
        ASSERT_TRUE(strstr(fault(&b, "CPU idle states") ?: "", "more than 10, on 2 of 144 CPUs (spec.instance.tuning: gpu"));
        ASSERT_EQ(b.tuning.n_faults, 2);
        put(&b, CPU "/online", "0-77,79-143\n");        /* an offline CPU does not count */
        ASSERT_TRUE(strstr(fault(&b, "CPU idle states") ?: "", "on 1 of 143 CPUs"));
        put(&b, CPU "/online", "0-77,79-142\n");
        ASSERT_TRUE(!fault(&b, "CPU idle states"));
        /* the slowest state that is on counts, on any CPU */
        put(&b, CPU "/cpu0/cpuidle/state2/latency", "133\n");
        ASSERT_TRUE(strstr(fault(&b, "CPU idle states") ?: "", "CPU idle state C1E takes 133 us to leave, more than 10 (")); /* both CPUs */
        put(&b, CPU "/cpu5/cpuidle/state3/disable", "0\n");
        ASSERT_TRUE(strstr(fault(&b, "CPU idle states") ?: "", "CPU idle state C6 takes 290 us to leave, more than 10, on 1 of 142 CPUs"));
}

/* With pages of 4 KiB, huge pages have 2 MiB, and the sources disagree about those. */
TEST(huge_pages_of_2_mib_are_not_a_fault) {
        BOX(b, "tuning-wrong");
        put(&b, THP "hpage_pmd_size", "2097152\n");
        ASSERT_TRUE(!fault(&b, "transparent_hugepage"));
}

TEST(an_enabled_unit_that_tunes_cpus_is_named) {
        static const char *const owners[] = { "tuned", "cpupower", "cpufrequtils", "power-profiles-daemon", "ondemand" };
        for (size_t i = 0; i < ARRAY_SIZE(owners); i++) {
                BOX(b, NULL);
                _free_ char *unit = xasprintf("%s.service", owners[i]), *link = xasprintf("/etc/systemd/system/multi-user.target.wants/%s", unit),
                            *file = xasprintf("/usr/lib/systemd/system/%s", unit);
                ASSERT_OK(root_link(b.root, link, file));
                tuning_read_image(b.root, &b.tuning);
                ASSERT_STREQ(b.tuning.owner, unit);
        }
        BOX(masked, NULL);
        ASSERT_OK(root_link(masked.root, "/etc/systemd/system/multi-user.target.wants/tuned.service", "/usr/lib/systemd/system/tuned.service"));
        ASSERT_OK(root_link(masked.root, "/etc/systemd/system/tuned.service", "/dev/null"));
        tuning_read_image(masked.root, &masked.tuning);
        ASSERT_TRUE(!masked.tuning.owner);
}

/* awslabs/amazon-eks-ami#2468: the drop-in that a user tried, and the edit that was recommended. */
TEST(files_of_networkd_without_effect_are_found) {
        static const struct { const char *path, *text, *says; } files[] = {
                { "/usr/lib/systemd/network/80-ec2.network.d/99-mtu.conf", "[Link]\nMTUBytes=1500\n", "99-mtu.conf has no effect" },
                { "/etc/systemd/network/80-ec2.network.d/a.conf", "[Link]\nMTUBytes=9001\n", "70-NAME.network.d" },
                { "/run/systemd/network/80-ec2.network.d/10-eks-disable.conf", "[Match]\nName=none", NULL },
                { "/run/systemd/network/70-eks-ens5.network", "[Match]\nX=y\n\n[Link]\nMTUBytes=1500\n", "was changed (MTUBytes=1500)" },
                { "/run/systemd/network/70-eks-ens5.network", "[Match]\nX=y\n\n[Link]\nMTUBytes=9001\n", NULL },
                { "/run/systemd/network/70-other.network", "[Link]\nMTUBytes=1500\n", NULL },
                { "/etc/systemd/network/80-ec2.network.d/a.txt", "[Link]\nMTUBytes=1500\n", NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
                BOX(b, NULL);
                put(&b, files[i].path, files[i].text);
                tuning_read_image(b.root, &b.tuning);
                _free_ char *text = xasprintf("%s. %s", b.tuning.network ?: "", b.tuning.network_remedy ?: "");
                if (!b.tuning.network != !files[i].says || (files[i].says && !strstr(text, files[i].says)))
                        FAIL("%s: %s", files[i].path, text);
        }
}

/* ---- set-tuning ---- */

static const char *run(const Box *b, const char *with, bool lenient, char **ret_text) {
        Action a = { .id = (char *)"set-tuning:cpus", .type = ACTION_SET_TUNING, .target = (char *)"cpus", .with = (char *)with, .lenient = lenient };
        Work w = { .root = b->root, .action = &a, .deadline_usec = now_usec() + 60 * USEC_PER_SEC, .cancel_fd = -1 };
        int r = tuning_work(&w);
        if (ret_text)
                *ret_text = w.warnings.n > 0 ? xstrdup(w.warnings.items[0].text) : xstrdup_or_null(w.text);
        diag_done(&w.warnings);
        free(w.text);
        return r < 0 ? "failed" : r > 0 ? "done" : "unchanged";
}
#define GPU    "performance, idle states up to 10 us"
#define BEFORE "as before"

TEST(all_cpus_are_set_and_restored) {
        BOX(b, "tuning-wrong");
        ASSERT_STREQ(run(&b, GPU, true, NULL), "done");
        for (size_t i = 0; i < 2; i++) {
                _free_ char *governor = xasprintf(CPU "/cpufreq/policy%zu/scaling_governor", i), *deep = xasprintf(CPU "/cpu%zu/cpuidle/state3/disable", i),
                            *light = xasprintf(CPU "/cpu%zu/cpuidle/state2/disable", i);
                assert_line(&b, governor, "performance");
                assert_line(&b, deep, "1");
                assert_line(&b, light, "0");
        }
        ASSERT_TRUE(!fault(&b, "CPU idle states") && !fault(&b, "the CPU governor") && b.tuning.set);
        ASSERT_STREQ(run(&b, GPU, true, NULL), "unchanged");
        /* another run, after another program has changed a value: the record keeps the first */
        put(&b, CPU "/cpufreq/policy1/scaling_governor", "ondemand\n");
        ASSERT_STREQ(run(&b, GPU, true, NULL), "done");
        ASSERT_STREQ(run(&b, BEFORE, true, NULL), "done");
        assert_line(&b, CPU "/cpufreq/policy1/scaling_governor", "powersave");
        assert_line(&b, CPU "/cpu0/cpuidle/state3/disable", "0");
        ASSERT_EQ(root_exists(b.root, TUNING_FILE), 0);
        ASSERT_STREQ(run(&b, BEFORE, true, NULL), "unchanged");
}

TEST(only_settings_that_differ_are_set_and_recorded) {
        BOX(b, "tuning-right");
        put(&b, CPU "/cpufreq/policy1/scaling_governor", "powersave\n");
        put(&b, CPU "/cpu1/cpuidle/state3/disable", "0\n");
        ASSERT_STREQ(run(&b, GPU, true, NULL), "done");
        (void)fault(&b, "");
        ASSERT_EQ(b.tuning.n_faults, 0);
        _free_ char *record = NULL;
        ASSERT_OK(root_read(b.root, TUNING_FILE, 4096, &record, NULL));
        ASSERT_STREQ(record, CPU "/cpufreq/policy1/scaling_governor powersave\n" CPU "/cpu1/cpuidle/state3/disable 0\n");
        ASSERT_STREQ(run(&b, BEFORE, true, NULL), "done");
        assert_line(&b, CPU "/cpufreq/policy1/scaling_governor", "powersave");
        assert_line(&b, CPU "/cpufreq/policy0/scaling_governor", "performance");
        assert_line(&b, CPU "/cpu0/cpuidle/state3/disable", "1");
        assert_line(&b, CPU "/cpu1/cpuidle/state3/disable", "0");
}

TEST(a_machine_without_governors_and_idle_states_needs_nothing) {
        BOX(b, NULL);
        ASSERT_STREQ(run(&b, GPU, true, NULL), "unchanged");
        ASSERT_EQ(root_exists(b.root, TUNING_FILE), 0);
}

/* Only paths of CPUs are written, whatever the record says. */
TEST(a_foreign_line_of_the_record_is_ignored) {
        BOX(b, "tuning-wrong");
        put(&b, TUNING_FILE, "/proc/sys/kernel/numa_balancing 7\n" CPU "/cpufreq/policy9/scaling_governor x\nnonsense\n");
        _free_ char *text = NULL;
        ASSERT_STREQ(run(&b, BEFORE, true, &text), "done");
        ASSERT_TRUE(text && strstr(text, "policy9/scaling_governor cannot be set") && strstr(text, "1 of 3 CPU settings"));
        assert_line(&b, "/proc/sys/kernel/numa_balancing", "1");
}

TEST_MAIN
