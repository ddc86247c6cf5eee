/* SPDX-License-Identifier: Apache-2.0
 * forget-state: the files in which kubelet records its allocation of CPUs, memory and devices. kubelet exits
 * if a file of an earlier boot does not match: policy, CPUs, memory or checksum (siderolabs/talos#7504,
 * bottlerocket-os/bottlerocket#1465, kubernetes/kubernetes#131253). No container of that boot runs, and
 * kubelet allocates again for each pod. If kubelet may have run in this boot, its files stay.
 *
 * Checksums are FNV-1a, 32 bits, over the text of Go spew, and CRC-32 for devices
 * (kubernetes/kubernetes:pkg/kubelet/checkpointmanager/checksum/checksum.go,
 * pkg/kubelet/cm/dra/state/checkpoint.go). A file that a feature gate extends fails the comparison and
 * goes. */
#include "apply/device.h"

#include "apply/gpus.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <zlib.h>

#define STATE_MAX  (16 << 20)
#define CPUS_MAX   8192                 /* limit of CONFIG_NR_CPUS on x86-64 */
#define CPUS_FILE  "/sys/devices/system/cpu/online"
#define UNREADABLE "kubelet cannot read it"
#define OTHER_SUM  "its checksum is wrong"
#define OTHER_POLICY "it has a different policy"

static const char *setting(const Action *a, const char *name) {
        size_t n = strlen(name);
        for (char **word = a->words; word && *word; word++)
                if (startswith(*word, name) && (*word)[n] == '=')
                        return *word + n + 1;
        return NULL;
}

typedef struct Cpus { unsigned char has[CPUS_MAX]; } Cpus;

static bool cpus_read(Cpus *to, const char *list) {
        for (const char *s = list; *s;) {
                size_t n = strcspn(s, ",");
                _free_ char *range = xstrndup(s, n);
                char *dash = strchr(range, '-');
                uint64_t first, last;
                if (dash)
                        *dash = 0;
                if (parse_u64(range, &first) < 0 || parse_u64(dash ? dash + 1 : range, &last) < 0 ||
                    last < first || last >= CPUS_MAX || (s[n] && !s[n + 1]))
                        return false;
                memset(to->has + first, 1, last - first + 1);
                s += n + (s[n] == ',');
        }
        return true;
}

static bool sum_is(const json_t *sum, const char *text) {
        uint32_t hash = 2166136261;
        for (const char *s = text; *s; s++)
                hash = (hash ^ (unsigned char)*s) * 16777619;
        return json_is_integer(sum) && json_integer_value(sum) == (json_int_t)hash;
}

static bool is_empty(const json_t *value) {
        return !value || json_is_null(value) || (json_is_object(value) && json_object_size(value) == 0);
}

/* kubelet 1.37 repeats the state as text with its own checksum, and reads only that
 * (kubernetes/kubernetes:pkg/kubelet/cm/cpumanager/state/checkpoint.go). */
static const char *data_contradicts(const json_t *state) {
        static const char keys[][16] = { "policyName", "defaultCpuSet", "machineState", "entries" };
        const json_t *data = json_object_get(state, "data");
        if (!data)
                return NULL;
        _free_ char *text = xasprintf("(string)%s", json_get_text(state, "data"));
        if (!sum_is(json_object_get(state, "dataChecksum"), text))
                return OTHER_SUM;
        _cleanup_(json_decrefp) json_t *inner = json_loads(json_get_text(state, "data"), 0, NULL);
        if (!inner)
                return UNREADABLE;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                const json_t *a = json_object_get(state, keys[i]), *b = json_object_get(inner, keys[i]);
                if (!json_equal(a, b) && !(is_empty(a) && is_empty(b)))
                        return OTHER_SUM;
        }
        return is_empty(json_object_get(inner, "podEntries"))
                       ? NULL : "it has resources that kubelet allocated to whole pods";
}

/* Formats "pod:map[container:0-1 other:3] pod:map[…]" in key order, and adds the CPUs to taken. */
static bool entries_read(const json_t *entries, Text *to, Cpus *taken) {
        _free_ JsonMember *pods = json_members(entries, true);
        for (JsonMember *pod = pods; pod->key; pod++) {
                _free_ JsonMember *containers = json_members(pod->value, true);
                if (!json_is_object(pod->value))
                        return false;
                text_add(to, "%s%s:map[", pod == pods ? "" : " ", pod->key);
                for (JsonMember *c = containers; c->key; c++) {
                        const char *cpus = json_string_value(c->value);
                        if (!cpus || !cpus_read(taken, cpus))
                                return false;
                        text_add(to, "%s%s:%s", c == containers ? "" : " ", c->key, cpus);
                }
                text_add(to, "]");
        }
        return true;
}

/* kubernetes/kubernetes:pkg/kubelet/cm/cpumanager/policy_static.go, validateState(). kubelet chooses reserved
 * CPUs by number, so CPUs of pods may be among them. */
static const char *static_contradicts(const Root *root, const Action *a, const Cpus *shared,
                                      const Cpus *taken, bool holds) {
        Cpus online = {}, reserved = {};
        const char *list = setting(a, "reservedSystemCPUs");
        bool strict = setting(a, "strict-cpu-reservation");
        _free_ char *line = NULL;
        if (!list && (strict || holds))
                return "kubelet itself picks the reserved CPUs";
        if (root_read_line(root, CPUS_FILE, &line) < 0 || !cpus_read(&online, line) ||
            !cpus_read(&reserved, list ?: ""))
                return NULL;            /* not known here */
        for (size_t i = 0; i < CPUS_MAX; i++) {
                if (shared->has[i] && taken->has[i])
                        return "a CPU is both shared and exclusive";
                if (reserved.has[i] && shared->has[i] == strict)
                        return "it contradicts reservedSystemCPUs";
                if ((shared->has[i] || taken->has[i]) != (online.has[i] && !(strict && reserved.has[i])))
                        return "it does not match the CPUs of this machine";
        }
        return NULL;
}

static const char *cpu_contradicts(const Root *root, const Action *a, const json_t *state,
                                   const char *policy) {
        const char *shares = json_get_text(state, "defaultCpuSet");
        const json_t *entries = json_object_get(state, "entries");
        _cleanup_(text_done) Text t = {};
        Cpus shared = {}, taken = {};
        if (!streq(json_get_text(state, "policyName"), policy))
                return OTHER_POLICY;
        text_add(&t,
                 "(*state.CPUManagerCheckpoint){PolicyName:(string)%s DefaultCPUSet:(string)%s "
                 "Entries:(map[string]map[string]string)map[",
                 policy, shares);
        if (!cpus_read(&shared, shares) || (!is_empty(entries) && !json_is_object(entries)) ||
            !entries_read(entries, &t, &taken))
                return UNREADABLE;
        text_add(&t, "] Checksum:(checksum.Checksum)0}");
        /* kubelet accepts 0, from before checksums */
        const json_t *sum = json_object_get(state, "checksum");
        if (json_integer_value(sum) != 0 && !sum_is(sum, t.data))
                return OTHER_SUM;
        const char *why = data_contradicts(state);
        if (why || !streq(policy, "static"))
                return why;
        /* kubelet fills an empty set if no pod holds a CPU */
        bool holds = !is_empty(entries);
        return *shares || holds ? static_contradicts(root, a, &shared, &taken, holds) : NULL;
}

/* kubelet compares sizes of each NUMA node to the byte
 * (kubernetes/kubernetes:pkg/kubelet/cm/memorymanager/policy_static.go, validateState()), but the kernel uses
 * a different amount each boot (kubernetes/kubernetes#131253). So a file of Static never stays. */
static const char *memory_contradicts(_unused_ const Root *root, _unused_ const Action *a,
                                      const json_t *state, const char *policy) {
        static const char none[] =
                "(*state.MemoryManagerCheckpoint){PolicyName:(string)None "
                "MachineState:(state.NUMANodeMap)map[] Entries:(state.ContainerMemoryAssignments)map[] "
                "Checksum:(checksum.Checksum)0}";
        if (!streq(json_get_text(state, "policyName"), policy))
                return OTHER_POLICY;
        if (streq(policy, "Static"))
                return "memory sizes change at each boot";
        if (!is_empty(json_object_get(state, "machineState")) ||
            !is_empty(json_object_get(state, "entries")) || !sum_is(json_object_get(state, "checksum"), none))
                return OTHER_SUM;
        return data_contradicts(state);
}

/* kubelet needs prepared claims to release them, so only a file that it rejects goes. */
static const char *dra_contradicts(_unused_ const Root *root, _unused_ const Action *a, const json_t *state,
                                   _unused_ const char *form) {
        const char *data = json_get_text(state, "Data");
        const json_t *sum = json_object_get(state, "Checksum");
        uLong crc = crc32(0, (const Bytef *)data, (uInt)strlen(data));
        if (!json_is_integer(sum) || json_integer_value(sum) != (json_int_t)crc)
                return OTHER_SUM;
        _cleanup_(json_decrefp) json_t *inner = json_loads(data, 0, NULL);
        return json_is_object(inner) ? NULL : UNREADABLE;
}

static const struct {
        const char *name, *setting;     /* without this setting in the plan: skipped */
        const char *(*contradicts)(const Root *root, const Action *a, const json_t *state, const char *value);
} states[] = {
        { "cpu_manager_state",    "cpuManagerPolicy",    cpu_contradicts },
        { "memory_manager_state", "memoryManagerPolicy", memory_contradicts },
        { "dra_manager_state",    "draManagerState",     dra_contradicts },
};

/* *ret_why: why it must go, static text. NULL: it stays, also if it is too large. */
static int state_judge(const Root *root, const Action *a, size_t i, const char **ret_why) {
        _free_ char *path = xasprintf("%s/%s", a->target, states[i].name), *text = NULL;
        const char *value = setting(a, states[i].setting);
        struct stat st;
        size_t size = 0;
        *ret_why = NULL;
        if (!value)
                return 0;
        _cleanup_(close_fd) int fd = root_open(root, path, O_PATH | O_NOFOLLOW);
        if (fd < 0)
                return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode)) {
                *ret_why = "it is not a file";
                return 0;
        }
        int r = root_read(root, path, STATE_MAX, &text, &size);
        if (r < 0)
                return r == -EFBIG ? 0 : r;
        _cleanup_(json_decrefp) json_t *state = json_loadb(text, size, 0, NULL);
        *ret_why = json_is_object(state) ? states[i].contradicts(root, a, state, value) : UNREADABLE;
        return 0;
}

/* kubelet creates this cgroup at startup and never removes it. */
static bool kubelet_has_run(const Root *root) {
        static const char groups[][40] = {
                "/sys/fs/cgroup/kubepods.slice",
                "/sys/fs/cgroup/kubepods",
                "/sys/fs/cgroup/systemd/kubepods.slice",        /* cgroup v1 */
                "/sys/fs/cgroup/systemd/kubepods",
        };
        bool run = root_exists(root, KUBELET_TURN) != 0;
        for (size_t i = 0; i < ARRAY_SIZE(groups) && !run; i++)
                run = root_exists(root, groups[i]) != 0;
        return run;
}

int state_look(const Root *root, const Action *a, char **ret) {
        Text t = {};
        for (size_t i = 0; i < ARRAY_SIZE(states) && !kubelet_has_run(root); i++) {
                const char *why;
                int r = state_judge(root, a, i, &why);
                if (r < 0) {
                        text_done(&t);
                        return r;
                }
                if (why)
                        text_add(&t, "%s%s: %s", t.size > 0 ? "; " : "", states[i].name, why);
        }
        *ret = t.data;
        return t.size > 0;
}

int state_work(Work *w) {
        int removed = 0;
        for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
                _free_ char *path = xasprintf("%s/%s", w->action->target, states[i].name);
                const char *why = NULL;
                work_at(w, "reading %s", path);
                int r = kubelet_has_run(w->root) ? 0 : state_judge(w->root, w->action, i, &why);
                /* another root runs nothing */
                if (r >= 0 && why && (removed > 0 || !root_is_host(w->root) || holders_may_stop(w)))
                        r = root_remove(w->root, path);
                if (r < 0)
                        return work_fail(w, r, CAUSE_FILE,
                                         "%s, from an earlier boot, cannot be %s: %m; remove it by hand if "
                                         "kubelet fails on it",
                                         path, why ? "removed" : "read");
                if (r > 0)
                        log_info("removed %s of an earlier boot: %s", path, why);
                removed += r;
        }
        return removed;
}
