/* SPDX-License-Identifier: Apache-2.0
 * The gate before kubelet: scripted fabrics → outcome, messages, and the data for status.json. */
#include "fake-nvml.h"

#include <sys/wait.h>

static Action without_action = { .id = (char *)"await-fabric:fabric", .class = GPU_CLASS_NVSWITCH, .device.count = 8 };
static Work without = { .action = &without_action, .cancel_fd = -1 };   /* before the fake is there */
__attribute__((constructor)) static void work_without(void) {
        without.deadline_usec = now_usec() + 10 * USEC_PER_SEC;
        if (fabric_work(&without) >= 0)
                without.text = NULL;
}

TEST(a_missing_library_is_an_error) {
        if (!without.text || without.cause != CAUSE_NVML)
                SKIP("this machine has NVIDIA's library");
        ASSERT_CONTAINS(without.text, "the NVIDIA management library cannot be loaded: libnvidia-ml.so.1");
        ASSERT_CONTAINS(without.text, "it comes with the driver");
        free(without.text);
        json_decref(without.found);
}

#define GATE(name, kind, gpus, script)                                                         \
        MACHINE(name, script);                                                                 \
        name.action.class = GPU_CLASS_##kind;                                           \
        name.action.device.count = gpus

static void late(Machine *m) {          /* the deadline has come: one request */
        m->work.deadline_usec = now_usec();
}

static json_t *found_gpu(const Machine *m, size_t i) {
        return json_array_get(json_object_get(m->work.found, "gpus"), i);
}
#define ASSERT_FOUND(object, key, value) ASSERT_STREQ(json_string_value(json_object_get(object, key)), value)

TEST(a_complete_fabric_passes_at_once) {
        GATE(m, NVSWITCH, 8, "gpus 8\n");
        ASSERT_EQ(fabric_work(&m.work), 0);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceGetGpuFabricInfoV", 7), 1);
        ASSERT_EQ(json_array_size(json_object_get(m.work.found, "gpus")), 8);
        ASSERT_FOUND(found_gpu(&m, 7), "address", "0000:80:00.0");
        ASSERT_FOUND(found_gpu(&m, 7), "state", "Completed");
        ASSERT_FOUND(found_gpu(&m, 7), "status", "Success");
        ASSERT_TRUE(json_is_null(json_object_get(m.work.found, "clusterUuid")));        /* no rack, no UUID */
        ASSERT_EQ(json_integer_value(json_object_get(m.work.found, "cliqueId")), 0);
        ASSERT_EQ(m.work.warnings.n, 0);
}

TEST(gpus_may_join_one_by_one) {
        GATE(m, NVLINK5, 3, "model b200\ngpus 3\nfabric all not-started for 1x then in-progress for 1x then completed\nfabric 2 in-progress for 4x then completed\n");
        ASSERT_EQ(fabric_work(&m.work), 1);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceGetGpuFabricInfoV", 2), 5);
}

TEST(the_message_names_a_late_gpu) {
        GATE(m, NVSWITCH, 8, "gpus 8\nfabric 3 in-progress\n");
        late(&m);
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "GPU 3 of 8 (0000:40:00.0) still In Progress after ");
        ASSERT_CONTAINS(m.work.text, " s; journalctl -u nvidia-fabricmanager");
        ASSERT_FOUND(found_gpu(&m, 3), "state", "In Progress");
        ASSERT_TRUE(json_is_null(json_object_get(found_gpu(&m, 3), "status")));
        ASSERT_TRUE(json_is_null(json_object_get(m.work.found, "cliqueId")));
}

TEST(the_message_names_several_late_gpus) {
        GATE(m, NVLINK5, 4, "gpus 4\nfabric 1 not-started\nfabric 3 completed 10\n");
        late(&m);
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "GPU 1 of 4 (0000:20:00.0) still Not Started after ");
        ASSERT_CONTAINS(m.work.text, "; also GPU 3 (0000:40:00.0) Completed with status Timeout (10); ");
        ASSERT_CONTAINS(m.work.text, "NVLSM");
        ASSERT_CONTAINS(m.work.text, "ib_umad");
        ASSERT_FOUND(found_gpu(&m, 3), "status", "Timeout (10)");
}

TEST(a_tray_needs_a_cluster_uuid) {
        GATE(m, TRAY, 4, "model gb200\ngpus 4\n");
        late(&m);
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "GPU 0 of 4 (0000:10:00.0) still Completed, but without a cluster UUID after ");
        ASSERT_CONTAINS(m.work.text, "this host cannot correct that. Look at the NMX controller of the rack");
        machine_says(&m, "model gb200\ngpus 4\nfabric all in-progress\nhealth all 0x400\n");
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "still In Progress, configuration: no partition after ");
}

TEST(a_tray_reports_its_clique) {
        GATE(m, TRAY, 4, "model gb200\ngpus 4\ncluster 7b968a6dc8aa45e19e07e1e51be99c31 1\n");
        ASSERT_EQ(fabric_work(&m.work), 0);
        ASSERT_FOUND(m.work.found, "clusterUuid", "7b968a6d-c8aa-45e1-9e07-e1e51be99c31");
        ASSERT_EQ(json_integer_value(json_object_get(m.work.found, "cliqueId")), 1);
        ASSERT_EQ(m.work.warnings.n, 0);
}

TEST(two_cliques_in_a_tray_are_a_warning) {
        GATE(m, TRAY, 4, "model gb200\ngpus 4\ncluster 7b968a6dc8aa45e19e07e1e51be99c31 1\ncluster 7b968a6dc8aa45e19e07e1e51be99c31 2 3\n");
        ASSERT_EQ(fabric_work(&m.work), 0);
        ASSERT_EQ(m.work.warnings.n, 1);
        ASSERT_CONTAINS(m.work.warnings.items[0].text, "GPU 0 (0000:10:00.0) and GPU 3 (0000:40:00.0) are in different cliques");
        ASSERT_TRUE(json_is_null(json_object_get(m.work.found, "clusterUuid")));
}

TEST(a_fabric_that_is_not_supported_is_an_error) {
        GATE(m, NVSWITCH, 8, "model a100-80\ngpus 8\n");
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "reports the fabric state Not Supported for all 8 GPUs");
        machine_says(&m, "gpus 8\nerror nvmlDeviceGetGpuFabricInfoV 3\n");      /* the same, as an error */
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "reports the fabric state Not Supported for all 8 GPUs");
        late(&m);
        machine_says(&m, "gpus 8\nfabric 5 not-supported\n");
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "GPU 5 of 8 (0000:60:00.0) still Not Supported after ");
}

TEST(a_lenient_gate_only_warns) {
        GATE(m, NVSWITCH, 2, "gpus 2\nfabric 1 in-progress\n");
        assert_only_warns(&m, ACTION_AWAIT_FABRIC, "fabric", "GPU 1 of 2 (0000:20:00.0) still In Progress");
        ASSERT_FOUND(found_gpu(&m, 1), "state", "In Progress");
}

TEST(permanent_errors_are_reported_at_once) {
        GATE(m, NVSWITCH, 8, "gpus 8\nerror nvmlInit 18\n");
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_NVML, "nvmlInit_v2: Driver/library version mismatch (18); the loaded driver and its library");
        machine_says(&m, "gpus 8\nerror nvmlDeviceGetGpuFabricInfoV 15 6\n");
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_NVML, "the fabric state of GPU 6 (0000:70:00.0) cannot be read: GPU is lost (15); dmesg");
        machine_says(&m, "gpus 8\nerror nvmlDeviceGetGpuFabricInfoV 13\nerror nvmlDeviceGetGpuFabricInfo 13\n");
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_NVML, "the fabric state of GPU 0 (0000:10:00.0) cannot be read: Function Not Found (13)");
}

TEST(errors_while_the_driver_settles_are_retried) {
        GATE(m, NVSWITCH, 2, "gpus 2\nerror nvmlInit 9 2x\nerror nvmlDeviceGetGpuFabricInfoV 999 1 2x\n");
        ASSERT_EQ(fabric_work(&m.work), 1);
        ASSERT_EQ(calls_of(&m, "nvmlInit", -1), 3);
        ASSERT_TRUE(!m.work.text);
}

TEST(errors_are_reported_at_the_deadline) {
        GATE(m, NVSWITCH, 2, "gpus 2\nerror nvmlInit 9\n");
        late(&m);
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_NVML, "nvmlInit_v2: Driver Not Loaded (9), even after ");
        machine_says(&m, "gpus 2\nerror nvmlDeviceGetGpuFabricInfoV 999 1\n");
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_NVML, "the fabric state of GPU 1 (0000:20:00.0) cannot be read: Unknown Error (999), even after ");
}

/* The machine waits for a GPU that has not joined; the message has the error, too. */
TEST(the_message_has_a_late_gpu_and_the_error_of_another) {
        GATE(m, NVSWITCH, 2, "gpus 2\nfabric 0 in-progress\nerror nvmlDeviceGetGpuFabricInfoV 999 1\n");
        late(&m);
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "GPU 0 of 2 (0000:10:00.0) still In Progress after ");
        ASSERT_CONTAINS(m.work.text, "; the fabric state of GPU 1 (0000:20:00.0) cannot be read: Unknown Error (999)");
        ASSERT_FOUND(found_gpu(&m, 0), "state", "In Progress");
        ASSERT_EQ(json_array_size(json_object_get(m.work.found, "gpus")), 1);
}

TEST(the_message_names_a_missing_gpu) {
        GATE(m, NVSWITCH, 3, "gpu 0000:10:00.0\ngpu 0000:30:00.0\n");
        late(&m);
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_NVML, "NVML sees 2 of 3 GPUs, even after ");
        for (const char *const *a = (const char *const[]){ "0000:10:00.0", "0000:20:00.0", "0000:30:00.0", NULL }; *a; a++)
                strv_add(&m.action.device.seen, *a);
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_NVML, "NVML sees 2 of 3 GPUs: not 0000:20:00.0, even after ");
        ASSERT_EQ(json_array_size(json_object_get(m.work.found, "gpus")), 0);
}

/* ---- a library that hangs: the loop ends the task and leaves the thread behind, with its memory ---- */

typedef struct Hang { const char *script; int gpu; Cause cause; const char *also; size_t gpus; } Hang;

/* Returns false if a busy machine needs longer than this deadline to get there. */
static bool hangs(const Hang *h, uint64_t seconds) {
        MACHINE(m, h->script);
        _cleanup_(root_freep) Root *host = NULL;
        _cleanup_(results_done) Results results = {};
        _cleanup_(diag_done) Diag diag = {};
        Action action = { .id = xstrdup("await-fabric:fabric"), .type = ACTION_AWAIT_FABRIC, .phase = PHASE_RUN, .target = xstrdup("fabric"),
                          .deadline_usec = seconds * USEC_PER_SEC, .class = GPU_CLASS_NVSWITCH, .device.count = 8 };
        Plan plan = { .actions = &action, .n = 1 };
        ASSERT_OK(root_new("/", &host));        /* the action runs on a real machine alone */
        ASSERT_TRUE(apply_plan(host, &plan, &results, &diag) < 0);
        const Diagnostic *first = diag_first_error(&diag);
        ASSERT_TRUE(first);
        _free_ char *at = xasprintf("not done after %u s; NVML did not answer when asked for the fabric state of GPU %d (0000:%d0:00.0)",
                                    (unsigned)seconds, h->gpu, h->gpu + 1),
                    *text = xasprintf("%s%s", at, h->also);
        bool there = startswith(first->text, at);
        if (there || seconds > 16) {
                ASSERT_CONTAINS(first->text, text);
                ASSERT_EQ(strstr(first->text, "also: ") != NULL, *h->also != 0);
                ASSERT_STREQ(cause_word(first->cause), cause_word(h->cause));
                ASSERT_EQ(json_array_size(json_object_get(results.items[0].found, "gpus")), h->gpus);
        }
        free(action.id);
        free(action.target);
        return there;
}

TEST(a_library_that_hangs_is_an_error) {
        static const char fabric[] = "; journalctl -u nvidia-fabricmanager";
        _free_ char *early = xasprintf("; also: GPU 3 of 8 (0000:40:00.0) still In Progress%s", fabric),
                    *before = xasprintf("; also: GPU 7 of 8 (0000:80:00.0) still In Progress%s", fabric);
        const Hang all[] = {
                { "gpus 8\nhang nvmlDeviceGetGpuFabricInfoV 6\n", 6, CAUSE_NVML, "", 6 },
                /* in a round that has shown a late GPU */
                { "gpus 8\nfabric 3 in-progress\nfabric 7 in-progress\nhang nvmlDeviceGetGpuFabricInfoV 6\n", 6, CAUSE_FABRIC, early, 6 },
                /* after such a round */
                { "gpus 8\nfabric 7 in-progress\nhang nvmlDeviceGetGpuFabricInfoV 2 after 1x\n", 2, CAUSE_FABRIC, before, 8 },
                /* after that GPU has joined */
                { "gpus 8\nfabric 0 in-progress for 1x then completed\nhang nvmlDeviceGetGpuFabricInfoV 2 after 1x\n", 2, CAUSE_NVML, "", 8 },
        };
        pid_t children[ARRAY_SIZE(all)];
        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {  /* each waits for most of its time */
                children[i] = ASSERT_OK(fork());
                if (children[i] > 0)
                        continue;
                for (uint64_t seconds = 1; !hangs(&all[i], seconds);)
                        seconds *= 2;
                _exit(0);
        }
        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                int status = 0;
                ASSERT_EQ(waitpid(children[i], &status, 0), children[i]);
                ASSERT_EQ(status, 0);
        }
}

TEST(the_fake_fabric_completes_with_fabric_manager) {     /* the boots need this of the fake */
        GATE(m, NVSWITCH, 1, "");
        _free_ char *up = xasprintf("%s/up", m.path), *script = xasprintf("gpus 1\nfabric-needs %s\n", up);
        machine_says(&m, script);
        late(&m);
        ASSERT_FAILS(fabric_work(&m.work), CAUSE_FABRIC, "still Not Started");
        machine_clear(&m);
        write_file(up, "");
        ASSERT_EQ(fabric_work(&m.work), 0);
}
TEST_MAIN
