/* SPDX-License-Identifier: Apache-2.0
 * Kernel settings that cost GPUs or NCCL time → faults. An unreadable setting gives no verdict: most guests
 * of EC2 have no governor, and many types show no idle states. memlock is not here: where there is EFA, the
 * plan lifts that limit, or warns of one that a user sets (plan/runtime-spec.c). */
#include "host/detect.h"

#include "base/paths.h"
#include "base/str.h"

#define HUGE_PAGES "/sys/kernel/mm/transparent_hugepage"
#define FILE_MAX   (64 << 10)

static const TuningRule rules[] = {
        /* D2H and H2D lose up to 15 % to page faults: awslabs/amazon-eks-ami#2741. For Grace:
         * nvidia.github.io/grace-cpu-benchmarking-guide/platform */
        { "kernel.numa_balancing", "/proc/sys/kernel/numa_balancing", "0",
          "set it to 0 in spec.instance.sysctl", NULL, NULL, false },
        /* tsc is recommended, on Nitro once kvm-clock; Graviton has only arch_sys_counter
         * (awslabs/amazon-eks-ami#1328, #2144: repost.aws/knowledge-center/manage-ec2-linux-clock-source) */
        { "the clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource",
          "tsc kvm-clock arch_sys_counter", "kernel parameter clocksource=tsc", NULL, NULL, false },
        /* With 64 KiB pages these are 512 MiB, too large for most applications:
         * docs.nvidia.com/grace-perf-tuning-guide/os-settings.html. Others disagree for pages of 4 KiB. */
        { "transparent_hugepage", HUGE_PAGES "/enabled", "madvise never",
          "kernel parameter transparent_hugepage=madvise", HUGE_PAGES "/hpage_pmd_size", "536870912", false },
        /* nodestrap only reports it. With strict invalidation ("DMA") NVIDIA measured a sixth of the I/O that
         * the other two reach (NVIDIA/NV-Kernels#183). Its kernels for Grace have passthrough (#226 there).
         * Its installation guide says the opposite (k8snetworkplumbingwg/sriov-network-operator#864). Before
         * 6.11 the SMMU driver binds no PASID to it (NVIDIA/nodewright-packages#121: CUDA does not start). */
        { "the IOMMU domain", "/sys/kernel/iommu_groups/0/type", "DMA-FQ identity",
          "kernel parameter iommu.strict=0, or iommu.passthrough=1 on Linux 6.11 or "
          "newer", NULL, NULL, false },
};
/* nvidia.github.io/grace-cpu-benchmarking-guide/platform. On x86, metal and a few old types have one:
 * docs.aws.amazon.com/AWSEC2/latest/UserGuide/processor_state_control.html */
static const TuningRule governor = { .name = "the CPU governor", .right = "performance",
                                     .remedy = "spec.instance.tuning: gpu", .ours = true };
/* The latency of NCCL doubles for small packets: awslabs/amazon-eks-ami#2741. An image with EFA has the two
 * parameters (templates/al2023/provisioners/limit-c-states.sh there). */
static const TuningRule idle = {
        .name = "CPU idle states", .remedy = "spec.instance.tuning: gpu, or the kernel parameters "
                                             "intel_idle.max_cstate=1 processor.max_cstate=1", .ours = true
};

static void add_fault(HostTuning *t, const TuningRule *rule, char *text) {
        __auto_type fault = APPEND(t->faults, t->n_faults);
        fault->rule = rule;
        fault->text = text;
}

/* "always [madvise] never" → "madvise" */
static char *chosen(const char *line) {
        const char *open = strchr(line, '[');
        return open ? xstrndup(open + 1, strcspn(open + 1, "]")) : xstrdup(line);
}

static void read_rule(const Root *root, const TuningRule *rule, HostTuning *t) {
        _free_ char *line = NULL, *condition = NULL;
        if (root_read_line(root, rule->path, &line) < 0 || !*line ||
            (rule->if_path && (root_read_line(root, rule->if_path, &condition) < 0 ||
                               !streq(condition, rule->if_value))))
                return;
        _free_ char *have = chosen(line);
        const char *right = rule->right;
        while (*right) {
                _free_ char *word = str_cut(&right, " ");
                if (streq(word, have))
                        return;
        }
        add_fault(t, rule, xasprintf("%s is %.40s, not %.*s (%s)", rule->name, have,
                                     (int)strcspn(rule->right, " "), rule->right, rule->remedy));
}

/* Of the files FOLDER/NAME/LEAF: the number of those not equal to `right`; the first such value. */
static size_t count_wrong(const Root *root, const char *folder, char *const *names, const char *leaf,
                          const char *right, size_t *ret_n, char **ret_value) {
        size_t n = 0, wrong = 0;
        STRV_FOREACH(name, names) {
                _free_ char *path = xasprintf("%s/%s/%s", folder, *name, leaf), *value = NULL;
                if (root_read_line(root, path, &value) < 0 || !*value)
                        continue;
                n++;
                if (!streq(value, right) && wrong++ == 0)
                        *ret_value = TAKE_PTR(value);
        }
        *ret_n = n;
        return wrong;
}

/* The CPUs of a policy share one governor. The kernel refuses the read for a policy without online CPU. */
static void read_governors(const Root *root, HostTuning *t) {
        _strv_ char **policies = root_names(root, TUNING_POLICIES);
        _free_ char *value = NULL, *some = NULL;
        size_t n, wrong = count_wrong(root, TUNING_POLICIES, policies, "scaling_governor", governor.right, &n,
                                      &value);
        if (wrong < n)
                some = xasprintf(", on %zu of %zu cpufreq policies", wrong, n);
        if (wrong > 0)
                add_fault(t, &governor, xasprintf("%s is %.40s, not %s%s (%s)", governor.name, value,
                                                  governor.right, some ?: "", governor.remedy));
}

static char **online_cpus(const Root *root) {
        _strv_ char **names = root_names(root, TUNING_CPUS);
        _free_ char *online = NULL;
        char **cpus = NULL;
        (void)!root_read_line(root, TUNING_CPUS "/online", &online);
        STRV_FOREACH(name, names) {
                uint64_t number;
                if (startswith(*name, "cpu") && parse_u64(*name + strlen("cpu"), &number) >= 0 &&
                    cpulist_has(online, (unsigned)number) != 0)
                        strv_add(&cpus, *name);
        }
        return cpus;
}

/* One driver serves all CPUs with the same states, so cpu0 has the latencies. Each CPU disables its own. */
static void read_idle(const Root *root, HostTuning *t) {
        _strv_ char **cpus = online_cpus(root), **states = root_names(root, TUNING_CPUS "/cpu0/cpuidle");
        _free_ char *slowest = NULL, *some = NULL;
        uint64_t most = TUNING_IDLE_USEC;
        STRV_FOREACH(state, states) {
                _free_ char *latency = xasprintf(TUNING_CPUS "/cpu0/cpuidle/%s/latency", *state),
                            *name = xasprintf(TUNING_CPUS "/cpu0/cpuidle/%s/name", *state),
                            *disable = xasprintf("cpuidle/%s/disable", *state), *value = NULL;
                uint64_t usec = 0;
                size_t n, wrong;
                if (root_read_u64(root, latency, &usec) < 0 || usec <= most)
                        continue;
                wrong = count_wrong(root, TUNING_CPUS, cpus, disable, "1", &n, &value);
                if (wrong == 0)
                        continue;
                most = usec;
                RENEW(some, wrong < n ? xasprintf(", on %zu of %zu CPUs", wrong, n) : NULL);
                RENEW(slowest, NULL);
                if (root_read_line(root, name, &slowest) < 0)
                        slowest = xstrdup(*state);
        }
        if (slowest)
                add_fault(t, &idle,
                          xasprintf("CPU idle state %.16s takes %llu us to leave, more than %d%s (%s)",
                                    slowest, (unsigned long long)most, TUNING_IDLE_USEC, some ?: "",
                                    idle.remedy));
}

void tuning_read(const Root *root, HostTuning *t) {
        read_idle(root, t);
        read_governors(root, t);
        for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
                read_rule(root, &rules[i], t);
        t->known = true;
        t->set = root_exists(root, TUNING_FILE) > 0;
}

/* ---- files ---- */

#define MTU        "MTUBytes="
#define OUR_MTU    MTU "9001"           /* nic/plan/network-file.c, as nodeadm */
#define EC2_FOLDER "80-ec2.network.d"

/* Since nodeadm 2025-10 its files come before 80-ec2.network, whose drop-ins no longer count, and users edit
 * ours in /run: awslabs/amazon-eks-ami#2468. A [Match]-only one is from the image. */
static void find_network_fault(const Root *root, const char *path, HostTuning *t) {
        _free_ char *text = NULL;
        const char *mtu = root_read(root, path, FILE_MAX, &text, NULL) < 0 ? NULL : strstr(text, "\n" MTU);
        if (!mtu)
                return;
        if (strstr(path, EC2_FOLDER)) {
                t->network = xasprintf("%s has no effect: 70-eks-NAME.network comes before 80-ec2.network",
                                       path);
                t->network_remedy = "Set spec.instance.network.mtu, or move the file to "
                                    "/etc/systemd/network/70-NAME.network.d";
        } else if (!startswith(mtu + 1, OUR_MTU "\n")) {
                t->network = xasprintf("%s was changed (%.*s): the next udev event for its interface "
                                       "rewrites it", path, (int)strcspn(mtu + 1, "\n"), mtu + 1);
                t->network_remedy = "Set spec.instance.network.mtu";
        }
}

static void read_network(const Root *root, const char *folder, const char *prefix, const char *suffix,
                         HostTuning *t) {
        _strv_ char **names = root_names(root, folder);
        STRV_FOREACH(name, names) {
                _free_ char *path = xasprintf("%s/%s", folder, *name);
                if (!t->network && startswith(*name, prefix) && endswith(*name, suffix))
                        find_network_fault(root, path, t);
        }
}

void tuning_read_image(const Root *root, HostTuning *t) {
        /* Each of them sets the governor or idle states at boot. */
        static const char *const units[] = { "tuned.service", "cpupower.service", "cpufrequtils.service",
                                             "power-profiles-daemon.service", "ondemand.service" };
        static const char *const places[] = { "/etc", "/run", "/usr/local/lib", "/usr/lib" };
        for (size_t i = 0; i < ARRAY_SIZE(units) && !t->owner; i++)
                t->owner = unit_is_on(root, units[i]) ? xstrdup(units[i]) : NULL;
        for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
                _free_ char *folder = xasprintf("%s/systemd/network/" EC2_FOLDER, places[i]);
                read_network(root, folder, "", ".conf", t);
        }
        read_network(root, NETWORK_DIR, "70-eks-", ".network", t);
}

void tuning_done(HostTuning *t) {
        for (size_t i = 0; i < t->n_faults; i++)
                free(t->faults[i].text);
        FREE_ALL(t->faults, t->owner, t->network);
}
