/* SPDX-License-Identifier: Apache-2.0
 * forget-state on files as kubelet 1.33 and 1.37 write them. In tests/boot/soft-reboot.sh kubelet runs.
 * tests/cluster/state-1.33.sh and state-1.37.sh show how the real kubelet reads such files. */
#include "apply/device.h"
#include "programs.h"

#define CPU     KUBELET_DIR "/cpu_manager_state"
#define MEMORY  KUBELET_DIR "/memory_manager_state"
#define DRA     KUBELET_DIR "/dra_manager_state"
#define NONE    "{\"policyName\":\"none\",\"defaultCpuSet\":\"\",\"checksum\":1353318690}"
#define NO_MEMORY "{\"policyName\":\"None\",\"machineState\":{},\"checksum\":4236770233}"
#define STATIC(cpus, sum) "{\"policyName\":\"static\",\"defaultCpuSet\":\"" cpus "\",\"checksum\":" #sum "}"
#define HELD(cpus, pods, sum) "{\"policyName\":\"static\",\"defaultCpuSet\":\"" cpus "\",\"entries\":" pods ",\"checksum\":" #sum "}"
#define DATA    "\"data\":\"{\\\"policyName\\\":\\\"static\\\",\\\"defaultCpuSet\\\":\\\"0-1\\\"}\",\"dataChecksum\":"
#define CLAIMS  "{\\\"kind\\\":\\\"DRACheckpoint\\\",\\\"apiVersion\\\":\\\"checkpoint.dra.kubelet.k8s.io/v1\\\",\\\"ClaimInfoStateList\\\":null}"

static void state_init(Box *b, const char *const *words) {
        box_init(b);
        b->action = (Action){ .id = (char *)"forget-state:" KUBELET_DIR, .type = ACTION_FORGET_STATE, .target = (char *)KUBELET_DIR, .words = (char **)words };
        put(b, "/sys/devices/system/cpu/online", "0-3\n");
}
#define STATE(name, ...) _cleanup_(box_done) Box name; state_init(&name, (const char *const[]){ __VA_ARGS__, NULL })

static const char *run(Box *b) {
        int r = state_work(&b->work);
        return r < 0 ? "failed" : r > 0 ? "done" : "unchanged";
}

/* A plan shows the removal, a run does it, and a second run has nothing to do. */
static void assert_judged(Box *b, const char *path, const char *why) {
        _free_ char *said = NULL;
        ASSERT_EQ(state_look(b->root, &b->action, &said), why != NULL);
        if (why)
                ASSERT_CONTAINS(said, why);
        ASSERT_STREQ(run(b), why ? "done" : "unchanged");
        ASSERT_EQ(is_there(b, path), !why);
        ASSERT_STREQ(run(b), "unchanged");
}

typedef struct Row { const char *state, *words[4], *why; } Row;

static void assert_rows(const char *path, const Row *rows, size_t n) {
        for (size_t i = 0; i < n; i++) {
                _cleanup_(box_done) Box b;
                state_init(&b, rows[i].words);
                put(&b, path, rows[i].state);
                assert_judged(&b, path, rows[i].why);
        }
}

TEST(cpu_state_is_removed_if_kubelet_would_refuse_it) {
        static const Row rows[] = {
                { NONE, { "cpuManagerPolicy=none" }, NULL },
                { NONE, { "cpuManagerPolicy=static" }, "cpu_manager_state: it has a different policy" },
                { NONE, { "memoryManagerPolicy=None" }, NULL },         /* the plan does not name this file */
                { STATIC("0-3", 611748604), { "cpuManagerPolicy=none" }, "it has a different policy" },
                { STATIC("0-3", 611748604), { "cpuManagerPolicy=static" }, NULL },
                { STATIC("0-3", 0), { "cpuManagerPolicy=static" }, NULL },
                { STATIC("0-3", 611748605), { "cpuManagerPolicy=static" }, "its checksum is wrong" },
                { STATIC("", 3083571066), { "cpuManagerPolicy=static", "reservedSystemCPUs=0" }, NULL },
                { STATIC("0-7", 14413152), { "cpuManagerPolicy=static" }, "does not match the CPUs of this machine" },
                { STATIC("1-3", 1277645473), { "cpuManagerPolicy=static" }, "does not match the CPUs of this machine" },
                { STATIC("1-3", 1277645473), { "cpuManagerPolicy=static", "reservedSystemCPUs=0" }, "it contradicts reservedSystemCPUs" },
                { STATIC("2-3", 3728209010), { "cpuManagerPolicy=static", "reservedSystemCPUs=0-1", "strict-cpu-reservation=true" }, NULL },
                { STATIC("2-3", 3728209010), { "cpuManagerPolicy=static", "reservedSystemCPUs=0", "strict-cpu-reservation=true" }, "does not match the CPUs of this machine" },
                { STATIC("2-3", 3728209010), { "cpuManagerPolicy=static", "reservedSystemCPUs=0-2", "strict-cpu-reservation=true" }, "it contradicts reservedSystemCPUs" },
                { STATIC("2-3", 3728209010), { "cpuManagerPolicy=static", "strict-cpu-reservation=true" }, "kubelet itself picks the reserved CPUs" },
                { HELD("0-1,3", "{\"b\":{\"x\":\"2\"}}", 4273550965), { "cpuManagerPolicy=static", "reservedSystemCPUs=0" }, NULL },
                { HELD("0-1,3", "{\"b\":{\"x\":\"2\"}}", 4273550965), { "cpuManagerPolicy=static", "reservedSystemCPUs=2" }, "it contradicts reservedSystemCPUs" },
                { HELD("0-1,3", "{\"b\":{\"x\":\"2\"}}", 4273550965), { "cpuManagerPolicy=static" }, "kubelet itself picks the reserved CPUs" },
                { HELD("0,3", "{\"b\":{\"x\":\"2\"},\"a\":{\"z\":\"1\",\"y\":\"1\"}}", 3656855009), { "cpuManagerPolicy=static", "reservedSystemCPUs=0" }, NULL },
                { HELD("0-3", "{\"b\":{\"x\":\"3\"}}", 2793023245), { "cpuManagerPolicy=static", "reservedSystemCPUs=0" }, "a CPU is both shared and exclusive" },
                { HELD("", "{\"b\":{\"x\":\"3\"}}", 1720723055), { "cpuManagerPolicy=static", "reservedSystemCPUs=0" }, "it contradicts reservedSystemCPUs" },
                { HELD("0-3", "{\"b\":\"3\"}", 0), { "cpuManagerPolicy=static" }, "kubelet cannot read it" },       /* as before 1.18 */
                { "{\"policyName\":\"none\",\"defaultCpuSet\":\"0..3\",\"checksum\":1961002633}", { "cpuManagerPolicy=none" }, "kubelet cannot read it" },
                { "", { "cpuManagerPolicy=none" }, "kubelet cannot read it" },                  /* a power cut */
                { "{\"policyName\":\"none\"", { "cpuManagerPolicy=none" }, "kubelet cannot read it" },
                { "[]", { "cpuManagerPolicy=none" }, "kubelet cannot read it" },
        };
        assert_rows(CPU, rows, ARRAY_SIZE(rows));
}

/* kubelet 1.37 repeats the whole state as a text, with a checksum of its own. */
TEST(cpu_state_of_kubelet_1_37_is_compared_with_its_data) {
        static const char good[] = "{\"policyName\":\"static\",\"defaultCpuSet\":\"0-1\",\"checksum\":1636926438," DATA "989860433}",
                          bad[] = "{\"policyName\":\"static\",\"defaultCpuSet\":\"0-1\",\"checksum\":1636926438," DATA "989860434}",
                          other[] = "{\"policyName\":\"static\",\"defaultCpuSet\":\"0-3\",\"checksum\":611748604," DATA "989860433}";
        static const struct { const char *state, *online, *why; } rows[] = {
                { good, "0-1\n", NULL }, { good, "0-3\n", "does not match the CPUs of this machine" }, { bad, "0-1\n", "its checksum is wrong" }, { other, "0-3\n", "its checksum is wrong" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                STATE(b, "cpuManagerPolicy=static");
                put(&b, "/sys/devices/system/cpu/online", rows[i].online);
                put(&b, CPU, rows[i].state);
                assert_judged(&b, CPU, rows[i].why);
        }
}

TEST(memory_state_is_removed_if_kubelet_would_refuse_it) {
        static const Row rows[] = {
                { NO_MEMORY, { "memoryManagerPolicy=None" }, NULL },
                { NO_MEMORY, { "memoryManagerPolicy=Static" }, "memory_manager_state: it has a different policy" },
                { "{\"policyName\":\"None\",\"machineState\":{},\"checksum\":4236770234}", { "memoryManagerPolicy=None" }, "its checksum is wrong" },
                { "{\"policyName\":\"None\",\"machineState\":{\"0\":{}},\"checksum\":4236770233}", { "memoryManagerPolicy=None" }, "its checksum is wrong" },
                { "{\"policyName\":\"Static\",\"machineState\":{},\"checksum\":1}", { "memoryManagerPolicy=None" }, "it has a different policy" },
                { "{\"policyName\":\"Static\",\"machineState\":{},\"checksum\":1}", { "memoryManagerPolicy=Static" }, "memory sizes change" },
        };
        assert_rows(MEMORY, rows, ARRAY_SIZE(rows));
}

TEST(device_state_is_removed_if_kubelet_would_refuse_it) {
        static const Row rows[] = {
                { "{\"Data\":\"" CLAIMS "\",\"Checksum\":4010664294}", { "draManagerState=v1" }, NULL },
                { "{\"Data\":\"" CLAIMS "\",\"Checksum\":4010664295}", { "draManagerState=v1" }, "dra_manager_state: its checksum is wrong" },
                { "{\"Data\":\"\",\"Checksum\":0}", { "draManagerState=v1" }, "kubelet cannot read it" },
                { "{\"version\":\"v1\",\"entries\":[],\"checksum\":3}", { "draManagerState=v1" }, "its checksum is wrong" },     /* of 1.30 */
                { "{\"version\":\"v1\",\"entries\":[],\"checksum\":3}", { "cpuManagerPolicy=none" }, NULL },
        };
        assert_rows(DRA, rows, ARRAY_SIZE(rows));
}

TEST(one_run_removes_all_files_that_kubelet_would_refuse) {
        STATE(b, "cpuManagerPolicy=static", "memoryManagerPolicy=Static", "draManagerState=v1");
        put(&b, CPU, NONE);
        put(&b, MEMORY, NO_MEMORY);
        put(&b, DRA, "{\"Data\":\"" CLAIMS "\",\"Checksum\":4010664294}");
        put(&b, KUBELET_DIR "/device-plugins/kubelet_internal_checkpoint", "{}");
        _free_ char *said = NULL;
        ASSERT_EQ(state_look(b.root, &b.action, &said), 1);
        ASSERT_STREQ(said, "cpu_manager_state: it has a different policy; memory_manager_state: it has a different policy");
        ASSERT_STREQ(run(&b), "done");
        assert_entries(&b, KUBELET_DIR, "device-plugins dra_manager_state");
}

TEST(state_is_kept_if_kubelet_may_have_run) {
        static const char *const traces[] = { KUBELET_TURN, "/sys/fs/cgroup/kubepods.slice/cgroup.procs", "/sys/fs/cgroup/kubepods/cgroup.procs",
                                              "/sys/fs/cgroup/systemd/kubepods.slice/tasks", "/sys/fs/cgroup/systemd/kubepods/tasks" };
        for (size_t i = 0; i < ARRAY_SIZE(traces); i++) {
                STATE(b, "cpuManagerPolicy=static");
                put(&b, CPU, NONE);
                put(&b, traces[i], "");
                assert_judged(&b, CPU, NULL);
        }
}

TEST(a_link_is_removed_and_a_directory_is_an_error) {
        STATE(b, "cpuManagerPolicy=none", "memoryManagerPolicy=None", "draManagerState=v1");
        ASSERT_STREQ(run(&b), "unchanged");
        put(&b, "/etc/somebodys", NONE);
        box_link(&b, CPU, "/etc/somebodys");
        ASSERT_STREQ(run(&b), "done");
        assert_file(&b, "/etc/somebodys", NONE);
        box_mkdir(&b, MEMORY, 0755);
        ASSERT_STREQ(run(&b), "failed");
        ASSERT_CONTAINS(b.work.text, "memory_manager_state, from an earlier boot, cannot be removed: Is a directory; remove it by hand");
        ASSERT_EQ(b.work.cause, CAUSE_FILE);
}

TEST(a_state_file_that_is_too_large_is_kept) {
        STATE(b, "cpuManagerPolicy=static");
        put(&b, CPU, NONE);
        _free_ char *path = box_path(&b, CPU);
        ASSERT_EQ(truncate(path, 17 << 20), 0);
        assert_judged(&b, CPU, NULL);
}

TEST_MAIN
