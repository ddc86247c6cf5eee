/* SPDX-License-Identifier: Apache-2.0
 * Answers of NVML about faulty GPUs → codes, messages, and the verdict for the node. */
#include "health/health.h"

#include "fake-nvml.h"

#define ALL_LOOKS ((1U << _HEALTH_LOOK_MAX) - 1)

/* "0000:20:00.0 nvlink-down; 0000:20:00.0 off-the-bus!": ! marks an unusable GPU */
static char *words_of(const Findings *f) {
        Text t = {};
        for (size_t i = 0; i < f->n; i++)
                text_add(&t, "%s%s %s%s", i > 0 ? "; " : "", f->items[i].address, f->items[i].word,
                         f->items[i].unusable ? "!" : "");
        return text_take(&t);
}

static Findings look(const char *script, unsigned looks, unsigned nvlinks, bool fabric) {
        MACHINE(m, script);
        NvmlGpus gpus = {};
        NvmlTrouble trouble = {};
        Findings f = {};
        ASSERT_OK(nvml_open(&gpus, &trouble));
        health_gpus(&gpus, looks, nvlinks, fabric, NULL, &f, NULL);
        nvml_close(&gpus);
        return f;
}

/* Two H100; the other lines of the script are about the second. */
#define FINDS(lines, wanted) ({                                                                                 \
        _cleanup_(findings_done) Findings _f = look("gpus 2\n" lines, ALL_LOOKS, 18, true);                     \
        _free_ char *_words = words_of(&_f);                                                          \
        ASSERT_STREQ(_words, wanted); })
#define SAYS(lines, words) ({                                                                                   \
        _cleanup_(findings_done) Findings _f = look("gpus 2\n" lines, ALL_LOOKS, 18, true);                     \
        ASSERT_EQ(_f.n, 1);                                                                                     \
        ASSERT_CONTAINS(_f.items[0].text, words); })
#define SECOND "0000:20:00.0 "

TEST(healthy_gpus_have_no_findings) {
        FINDS("", "");
        FINDS("health all 0x1aaa 1\n", "");     /* each flag says explicitly that all is well, and a partition is assigned */
        FINDS("health all 0 0\n", "");          /* nothing is known */
        FINDS("error nvmlDeviceGetGpuFabricInfoV3 25\n", "");           /* a library that knows no summary */
}

TEST(fabric_flags) {
        FINDS("health 1 0x1 1\n", SECOND "fabric-bandwidth");
        FINDS("health 1 0x4 1\n", SECOND "fabric-route-recovery");
        FINDS("health 1 0x10 1\n", SECOND "fabric-route");
        FINDS("health 1 0x40 1\n", SECOND "fabric-timeout-recovery");
        FINDS("health 1 0x55 2\n", SECOND "fabric-bandwidth; " SECOND "fabric-route-recovery; " SECOND "fabric-route; " SECOND "fabric-timeout-recovery");
        FINDS("health 1 0xff 1\n", "");         /* no header has the value 3 */
}

TEST(fabric_configuration) {
        FINDS("health 1 0x100 1\n", "");        /* as it must be */
        FINDS("health 1 0x200 2\n", SECOND "fabric-configuration");
        FINDS("health 1 0x400 2\n", SECOND "fabric-partition");
        FINDS("health 1 0x500 2\n", SECOND "fabric-links");
        FINDS("health 1 0x600 2\n", SECOND "fabric-configuration");
        SAYS("health 1 0x200 2\n", "incorrect system GUID; see the journal of fabric manager");
        SAYS("health 1 0x500 2\n", "insufficient NVLinks");
        SAYS("health 1 0x600 2\n", "incompatible GPU firmware");
        FINDS("health 1 0xf00 1\n", "");        /* of a driver that is newer than this program */
}

TEST(fabric_summary) {
        FINDS("health 1 0 2\n", SECOND "fabric-unhealthy");
        FINDS("health 1 0xaa 3\n", SECOND "fabric-limited");
        FINDS("health 1 0 4\n", "");
        FINDS("health 1 0 2\nerror nvmlDeviceGetGpuFabricInfoV3 25\n", "");
        FINDS("fabric all in-progress\nhealth 1 0 2\n", "");            /* only a complete fabric has a summary */
}

TEST(a_fabric_that_is_not_checked_has_no_findings) {
        _cleanup_(findings_done) Findings f = look("gpus 2\nhealth all 0x555 2\n", ALL_LOOKS, 18, false);
        ASSERT_EQ(f.n, 0);
}

/* The first two findings are as from the kernel log. */
static Findings look_after(const char *script) {
        MACHINE(m, script);
        NvmlGpus gpus = {};
        NvmlTrouble trouble = {};
        Findings f = {};
        finding_add(&f, "xid", "0000:10:00.0", true, "it was not well");
        finding_add(&f, "sxid", "", true, "nor was this");
        ASSERT_OK(nvml_open(&gpus, &trouble));
        health_gpus(&gpus, ALL_LOOKS, 0, false, NULL, &f, NULL);
        nvml_close(&gpus);
        return f;
}
#define AFTER_LOG(script, wanted) ({                                                                            \
        _cleanup_(findings_done) Findings _f = look_after("gpus 1\n" script);                                   \
        _free_ char *_words = words_of(&_f);                                                          \
        ASSERT_STREQ(_words, wanted); })

TEST(the_recovery_action_of_the_driver_outweighs_the_log) {
        AFTER_LOG("", "0000:10:00.0 xid;  sxid!");
        AFTER_LOG("recovery none\n", "0000:10:00.0 xid!;  sxid!");     /* a driver without recovery actions */
        AFTER_LOG("recovery 0 1\n", "0000:10:00.0 xid!;  sxid!; 0000:10:00.0 gpu-reset!");
        _cleanup_(findings_done) Findings f = look_after("gpus 1\n");
        ASSERT_STREQ(f.items[0].text, "it was not well. The driver asks for no action now; replace the instance if this happens again");
}

TEST(recovery_actions) {
        FINDS("recovery 1 1\n", SECOND "gpu-reset!");
        FINDS("recovery 1 2\n", SECOND "node-reboot!");
        FINDS("recovery 1 3\n", SECOND "drain-p2p!");
        FINDS("recovery 1 4\n", SECOND "drain-and-reset!");
        FINDS("recovery 1 5\n", SECOND "recover-domain");
        SAYS("recovery 1 5\n", "recover the IMEX domain of the rack before jobs run across trays again; check IMEX");
        FINDS("recovery 1 6\n", SECOND "bus-reset!");
        FINDS("recovery 1 7\n", SECOND "system-reboot!");
        FINDS("recovery 1 8\n", SECOND "recovery-unknown");
        SAYS("recovery 1 8\n", "recovery action that nodestrap does not know (8)");
        SAYS("recovery 1 2\n", "the driver says: reboot the node before you use it; if this persists, replace the instance");
        FINDS("recovery none\nrecovery 1 2\n", "");
        FINDS("recovery 1 2 2\n", SECOND "node-reboot!");      /* each type of an unsigned integer */
        FINDS("recovery 1 2 3\n", SECOND "node-reboot!");
        FINDS("recovery 1 2 0\n", "");                         /* but no floating-point number */
        FINDS("recovery 1 2\nerror nvmlDeviceGetFieldValues 3\n", "");
}

TEST(memory_errors) {
        FINDS("rows 1 pending\n", SECOND "row-remap-pending");
        FINDS("rows 1 failed\n", SECOND "row-remap-failed");
        FINDS("rows 1 pending\nrows 1 failed\n", SECOND "row-remap-pending; " SECOND "row-remap-failed");
        FINDS("ecc 1 2\n", SECOND "ecc-uncorrected");
        SAYS("ecc 1 1\n", "1 uncorrectable memory error since");
        SAYS("ecc 1 2\n", "2 uncorrectable memory errors since");
        FINDS("pages 1 pending\n", "");         /* of generations before */
        _cleanup_(findings_done) Findings f = look("model t4\ngpus 1\npages 0 pending\nrows 0 pending\n", ALL_LOOKS, 0, false);
        _free_ char *words = words_of(&f);
        ASSERT_STREQ(words, "0000:10:00.0 page-retirement-pending");
}

TEST(nvlinks) {
        FINDS("links 1 4\n", SECOND "nvlink-down");
        SAYS("links 1 4\n", "1 of its 18 NVLinks is down (4): ");
        SAYS("links 1 0,4,17\n", "3 of its 18 NVLinks are down (0, 4, 17): ");
        FINDS("links-need /nowhere\n", "0000:10:00.0 nvlink-down; " SECOND "nvlink-down");
        FINDS("links 1 4\nerror nvmlDeviceGetNvLinkState 3\n", "");     /* an unknown state is not down */
        _cleanup_(findings_done) Findings f = look("gpus 1\nlinks all all\n", ALL_LOOKS, 0, false);
        ASSERT_EQ(f.n, 0);              /* one H100 of a p5.4xlarge: its links lead nowhere */
}

TEST(nvlinks_in_mig_mode) {
        MACHINE(m, "model a100-40\ngpus 1\n");
        NvmlGpus gpus = {};
        NvmlTrouble trouble = {};
        _cleanup_(findings_done) Findings f = {};
        write_file(m.state, "mig 0 1 1\n");
        ASSERT_OK(nvml_open(&gpus, &trouble));
        health_gpus(&gpus, ALL_LOOKS, 12, false, NULL, &f, NULL);
        ASSERT_EQ(f.n, 0);
        write_file(m.state, "mig 0 0 1\n");     /* not yet */
        machine_says(&m, "model a100-40\ngpus 1\nlinks 0 3\n");
        health_gpus(&gpus, ALL_LOOKS, 12, false, NULL, &f, NULL);
        nvml_close(&gpus);
        ASSERT_EQ(f.n, 1);
        ASSERT_CONTAINS(f.items[0].text, "1 of its 12 NVLinks is down (3)");
}

TEST(reasons_of_slow_clocks) {
        FINDS("reasons 1 0x40\n", SECOND "hw-thermal-slowdown");
        FINDS("reasons 1 0x80\n", SECOND "hw-power-brake-slowdown");
        FINDS("reasons 1 0x20\n", SECOND "sw-thermal-slowdown");
        FINDS("reasons 1 0x8\n", SECOND "hw-slowdown");
        FINDS("reasons 1 0x48\n", SECOND "hw-thermal-slowdown");        /* which is the reason for the other */
        FINDS("reasons 1 0x60\n", SECOND "hw-thermal-slowdown; " SECOND "sw-thermal-slowdown");
        FINDS("reasons 1 0x116\n", "");         /* power cap, application clocks, sync boost, display */
        FINDS("reasons 1 0x8 1x\n", "");        /* clocks that were just changed */
        FINDS("reasons 1 0x8 2x\n", "");
        FINDS("reasons 1 0x8\nerror nvmlDeviceGetCurrentClocksEventReasons 13\n", SECOND "hw-slowdown");        /* by the older name of the call */
        FINDS("reasons 1 0x8\nerror nvmlDeviceGetCurrentClocksEventReasons 3\n", "");
}

TEST(a_lost_gpu_has_only_that_finding) {
        FINDS("recovery 1 2\nerror nvmlDeviceGetFieldValues 15 1\necc 1 2\n", SECOND "off-the-bus!");
        FINDS("error nvmlDeviceGetRemappedRows 15 1\necc 1 2\nlinks 1 4\n", SECOND "off-the-bus!");
        FINDS("error nvmlDeviceGetNvLinkState 15 1\nreasons 1 0x40\n", SECOND "off-the-bus!");
        FINDS("error nvmlDeviceGetCurrentClocksEventReasons 16 1\n", SECOND "gpu-reset!");
        FINDS("recovery 1 1\nerror nvmlDeviceGetCurrentClocksEventReasons 16 1\n", SECOND "gpu-reset!");
        FINDS("error nvmlDeviceGetTotalEccErrors 4 1\nerror nvmlDeviceGetRemappedRows 999 1\n", "");
}

TEST(only_the_given_looks_are_done) {
        static const char script[] = "gpus 1\nhealth 0 1 2\nrecovery 0 1\necc 0 1\nlinks 0 1\nreasons 0 0x40\n";
        static const struct { HealthLook look; const char *word; } looks[] = {
                { HEALTH_LOOK_FABRIC, "0000:10:00.0 fabric-bandwidth" },
                { HEALTH_LOOK_RECOVERY, "0000:10:00.0 gpu-reset!" },
                { HEALTH_LOOK_MEMORY, "0000:10:00.0 ecc-uncorrected" },
                { HEALTH_LOOK_NVLINK, "0000:10:00.0 nvlink-down" },
                { HEALTH_LOOK_CLOCKS, "0000:10:00.0 hw-thermal-slowdown" },
                { HEALTH_LOOK_PCIE, "" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(looks); i++) {
                _cleanup_(findings_done) Findings f = look(script, 1U << looks[i].look, 18, true);
                _free_ char *words = words_of(&f);
                ASSERT_STREQ(words, looks[i].word);
        }
}

static void note(void *userdata, const char *gpu, const char *what) {
        text_add(userdata, "%s: %s\n", gpu, what);
}

TEST(each_look_announces_its_gpu_and_subject) {
        MACHINE(m, "gpus 2\n");
        NvmlGpus gpus = {};
        NvmlTrouble trouble = {};
        Findings f = {};
        _cleanup_(text_done) Text t = {};
        ASSERT_OK(nvml_open(&gpus, &trouble));
        health_gpus(&gpus, 1U << HEALTH_LOOK_RECOVERY | 1U << HEALTH_LOOK_CLOCKS, 0, false, note, &f, &t);
        nvml_close(&gpus);
        ASSERT_STREQ(t.data, "GPU 0 (0000:10:00.0): the recovery action\nGPU 0 (0000:10:00.0): the clock limits\n"
                             "GPU 1 (0000:20:00.0): the recovery action\nGPU 1 (0000:20:00.0): the clock limits\n");
}

/* ---- the step ---- */

/* Two GPUs, with 18 NVLinks each. */
#define CHECK(name, policy, script)                                                                             \
        MACHINE(name, "gpus 2\n" script);                                                                       \
        name.action.id = (char *)"check-health:gpus";                                                           \
        name.action.type = ACTION_CHECK_HEALTH;                                                                 \
        name.action.lenient = (policy) == HEALTH_WARN;                                                          \
        name.action.device.count = 2;                                                                           \
        name.action.device.nvlinks = 18;                                                                        \
        _strv_ char **looks = NULL;                                                              \
        for (int _l = 0; _l <= HEALTH_LOOK_CLOCKS; _l++)                                                        \
                strv_add(&looks, health_look_to_string((HealthLook)_l));                                        \
        name.action.device.parameters = looks;                                                                  \
        strv_add(&name.action.device.seen, "0000:10:00.0");                                                     \
        strv_add(&name.action.device.seen, "0000:20:00.0")

static void assert_found(const Machine *m, const char *text) {
        json_t *wanted = json_loads(text, 0, NULL), *found = json_copy(m->work.found);
        ASSERT_TRUE(wanted);
        json_object_del(found, "looks");
        _free_ char *a = json_dumps(found, JSON_COMPACT | JSON_SORT_KEYS), *b = json_dumps(wanted, JSON_COMPACT | JSON_SORT_KEYS);
        json_decref(wanted);
        json_decref(found);
        ASSERT_STREQ(a, b);
}

TEST(a_healthy_machine_passes) {
        CHECK(m, HEALTH_REQUIRE, "");
        ASSERT_EQ(health_work(&m.work), 0);
        ASSERT_EQ(m.work.warnings.n, 0);
        assert_found(&m, "{\"complete\": true, \"findings\": [], \"gpus\": [{\"index\": 0, \"address\": \"0000:10:00.0\", \"health\": []},"
                         "{\"index\": 1, \"address\": \"0000:20:00.0\", \"health\": []}]}");
        ASSERT_EQ(json_array_size(json_object_get(m.work.found, "looks")), 5);
}

TEST(findings_are_warnings_if_health_is_warn) {
        CHECK(m, HEALTH_WARN, "links 1 4\nreasons 1 0x40\n");
        ASSERT_EQ(health_work(&m.work), 0);
        ASSERT_EQ(m.work.warnings.n, 2);
        ASSERT_STREQ(m.work.warnings.items[0].code, "nvlink-down");
        ASSERT_CONTAINS(m.work.warnings.items[0].text, "GPU 1 (0000:20:00.0): 1 of its 18 NVLinks is down (4): ");
        ASSERT_STREQ(m.work.warnings.items[1].code, "hw-thermal-slowdown");
        const json_t *first = json_array_get(json_object_get(m.work.found, "findings"), 0);
        ASSERT_STREQ(json_get_text(first, "word"), "nvlink-down");
        ASSERT_STREQ(json_get_text(first, "address"), "0000:20:00.0");
        ASSERT_EQ(json_integer_value(json_object_get(first, "gpu")), 1);
        ASSERT_TRUE(json_is_false(json_object_get(first, "unusable")));
        const json_t *gpu = json_array_get(json_object_get(m.work.found, "gpus"), 1);
        ASSERT_EQ(json_array_size(json_object_get(gpu, "health")), 2);
}

TEST(findings_are_an_error_if_health_is_require) {
        CHECK(m, HEALTH_REQUIRE, "links 1 4\nreasons 1 0x40\necc 0 1\n");
        ASSERT_FAILS(health_work(&m.work), CAUSE_HEALTH, "GPU 0 (0000:10:00.0): 1 uncorrectable memory error");
        ASSERT_CONTAINS(m.work.text, " (and 2 more)");
        ASSERT_EQ(m.work.warnings.n, 3);
        ASSERT_EQ(json_array_size(json_object_get(m.work.found, "findings")), 3);
}

/* A100 while fabric manager trains the links: each look asks for twelve of them. */
TEST(links_in_training_are_awaited) {
        CHECK(m, HEALTH_REQUIRE, "model a100-40\nlinks 1 4 20x\n");
        m.action.device.nvlinks = 12;
        m.action.device.parameters = strv_copy((char *[]){ (char *)"nvlink", NULL });
        ASSERT_EQ(health_work(&m.work), 0);
        ASSERT_EQ(calls_of(&m, "nvmlDeviceGetNvLinkState", 1), 4 * 12);         /* the last look counts */
        machine_says(&m, "gpus 2\nmodel a100-40\nlinks 1 4\n");
        m.work.deadline_usec = now_usec() + USEC_PER_SEC;
        ASSERT_FAILS(health_work(&m.work), CAUSE_HEALTH, "1 of its 12 NVLinks is down (4)");
        strv_freep(&m.action.device.parameters);
        m.action.device.parameters = NULL;
}

TEST(an_unusable_gpu_is_an_error_in_any_case) {
        CHECK(m, HEALTH_WARN, "links 0 4\nrecovery 1 2\n");
        ASSERT_FAILS(health_work(&m.work), CAUSE_HEALTH, "GPU 1 (0000:20:00.0): the driver says: reboot the node");
        ASSERT_TRUE(!strstr(m.work.text, "more"));      /* only one finding is a failure */
        ASSERT_EQ(m.work.warnings.n, 2);

        _cleanup_(root_freep) Root *host = NULL;        /* and the whole task fails, though it is lenient */
        _cleanup_(results_done) Results results = {};
        _cleanup_(diag_done) Diag diag = {};
        Plan plan = { .actions = &m.action, .n = 1 };
        m.action.target = (char *)"gpus";
        ASSERT_OK(root_new("/", &host));
        ASSERT_TRUE(apply_plan(host, &plan, &results, &diag) < 0);
        ASSERT_STREQ(outcome_to_string(results.items[0].outcome), "failed");
        ASSERT_STREQ(cause_word(results.items[0].cause), "EHEALTH");
        ASSERT_TRUE(results.items[0].found);
}

static void assert_reason(const Machine *m, size_t i, const char *word, const char *reason) {
        const json_t *one = json_array_get(json_object_get(m->work.found, "findings"), i);
        ASSERT_STREQ(json_get_text(one, "word"), word);
        ASSERT_STREQ(json_get_text(one, "reason"), reason);
}

/* cluster.repairCondition: words of EKS, only for GPUs that the vendor calls unusable */
TEST(reasons_of_the_repair_condition) {
        static const char log[] = "4,900,7,-;NVRM: Xid (PCI:0000:10:00): 63, Row Remapper\n"
                                  "4,901,8,-;NVRM: Xid (PCI:0000:10:00): 119, Timeout\n"
                                  "4,902,9,-;NVRM: Xid (PCI:0000:20:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 09\n";
        CHECK(m, HEALTH_WARN, "links 0 4\nrecovery none\n");
        ASSERT_TRUE(root_replace(m.root, "/dev/kmsg", log, strlen(log), 0644) >= 0);
        char **own = strv_copy(m.action.device.parameters);
        strv_add(&own, "kernel-log");
        strv_add(&own, "repair-condition");
        m.action.device.parameters = own;
        ASSERT_TRUE(health_work(&m.work) < 0);
        assert_reason(&m, 0, "xid", "");
        assert_reason(&m, 1, "gsp-timeout", "NvidiaXID119Error");
        assert_reason(&m, 2, "xid", "NvidiaNVLinkError");
        assert_reason(&m, 3, "nvlink-down", "");
        ASSERT_STREQ(json_string_value(json_array_get(json_object_get(m.work.found, "looks"), 5)), "kernel-log");
        ASSERT_EQ(json_array_size(json_object_get(m.work.found, "looks")), 6);
        machine_says(&m, "gpus 2\nrecovery 1 2\n");     /* which excuses GPU 0 */
        machine_clear(&m);
        ASSERT_TRUE(health_work(&m.work) < 0);
        assert_reason(&m, 1, "gsp-timeout", "");
        assert_reason(&m, 3, "node-reboot", "NvidiaXID154Error");
        m.action.device.parameters = looks;
        strv_free(own);
        const Finding direct = { .word = "peer-memory", .address = (char *)"", .unusable = true },
                      lost = { .word = "off-the-bus", .address = (char *)"", .unusable = true };
        _free_ char *none = finding_reason(&direct), *reason = finding_reason(&lost);
        ASSERT_TRUE(!none);
        ASSERT_STREQ(reason, "NvidiaXID79Error");
}

TEST(a_gpu_that_nvml_cannot_open_is_a_finding) {
        CHECK(m, HEALTH_WARN, "error nvmlDeviceGetHandleByIndex 15 1\n");
        ASSERT_FAILS(health_work(&m.work), CAUSE_HEALTH, "of GPU 1 of 2: GPU is lost (15)");
        ASSERT_STREQ(m.work.warnings.items[0].code, "off-the-bus");
        ASSERT_EQ(json_array_size(json_object_get(m.work.found, "gpus")), 0);

        static const char log[] = "4,900,7,-;NVRM: Xid (PCI:0000:20:00): 79, GPU has fallen off the bus.\n";
        ASSERT_TRUE(root_replace(m.root, "/dev/kmsg", log, strlen(log), 0644) >= 0);
        strv_add(&looks, "kernel-log");
        m.action.device.parameters = looks;
        machine_clear(&m);
        ASSERT_FAILS(health_work(&m.work), CAUSE_HEALTH, "GPU 1 (0000:20:00.0): NVIDIA driver: the GPU has fallen off the bus");
        const json_t *gpus = json_object_get(m.work.found, "gpus"), *one = json_array_get(gpus, 0);
        ASSERT_EQ(json_array_size(gpus), 1);            /* the GPU that is known to be faulty */
        ASSERT_EQ(json_integer_value(json_object_get(one, "index")), 1);
        ASSERT_STREQ(json_string_value(json_array_get(json_object_get(one, "health"), 0)), "off-the-bus");
}

TEST(an_error_of_nvml_is_not_a_finding) {
        CHECK(m, HEALTH_WARN, "error nvmlInit 18\n");
        ASSERT_FAILS(health_work(&m.work), CAUSE_NVML, "Driver/library version mismatch");
        assert_found(&m, "{\"complete\": false, \"findings\": [], \"gpus\": []}");
        assert_only_warns(&m, ACTION_CHECK_HEALTH, "health", "Driver/library version mismatch");
}

TEST(a_gpu_that_hangs_is_a_warning_with_the_findings_so_far) {
        CHECK(m, HEALTH_WARN, "ecc 0 1\nhang nvmlDeviceGetNvLinkState 1\n");
        assert_only_warns(&m, ACTION_CHECK_HEALTH, "health", "NVML did not answer when asked for the state of the NVLinks of GPU 1 (0000:20:00.0); "
                          "also: GPU 0 (0000:10:00.0): 1 uncorrectable memory error");
        const json_t *findings = json_object_get(m.work.found, "findings");
        ASSERT_TRUE(json_is_false(json_object_get(m.work.found, "complete")));
        ASSERT_STREQ(json_get_text(json_array_get(findings, 0), "word"), "ecc-uncorrected");
}

/* A faulty GPU hangs: the findings so far still count. */
TEST(an_unusable_gpu_is_an_error_if_another_hangs) {
        CHECK(m, HEALTH_WARN, "ecc 0 1\nrecovery 0 2\nhang nvmlDeviceGetRemappedRows 1\n");
        _cleanup_(root_freep) Root *host = NULL;
        _cleanup_(results_done) Results results = {};
        _cleanup_(diag_done) Diag diag = {};
        Plan plan = { .actions = &m.action, .n = 1 };
        m.action.target = (char *)"gpus";
        m.action.deadline_usec = 2 * USEC_PER_SEC;
        ASSERT_OK(root_new("/", &host));
        ASSERT_TRUE(apply_plan(host, &plan, &results, &diag) < 0);
        ASSERT_STREQ(outcome_to_string(results.items[0].outcome), "failed");
        ASSERT_STREQ(cause_word(results.items[0].cause), "EHEALTH");
        ASSERT_CONTAINS(results.items[0].text, "the memory errors of GPU 1 (0000:20:00.0); also: GPU 0 (0000:10:00.0): the driver says: reboot the node");
        ASSERT_EQ(json_array_size(json_object_get(results.items[0].found, "findings")), 2);
        ASSERT_EQ(json_array_size(json_object_get(results.items[0].found, "gpus")), 1);
}

TEST_MAIN
