/* SPDX-License-Identifier: Apache-2.0
 * Lines of nodestrap-prove → words, sentences and figures; and the step around it, with a systemctl that writes them. */
#include "health/health.h"

#include "fake-nvml.h"

#include <sys/eventfd.h>

#define GPUS 8

/* The figures of a node of eight; a fault changes one of them. */
typedef struct Eight {
        Text text;
        double memory[GPUS], host[GPUS], link[GPUS][GPUS];
        unsigned noise;                 /* percent, up and down, on each time */
} Eight;

static char *gpus[] = { (char *)"0000:10:00.0", (char *)"0000:20:00.0", (char *)"0000:30:00.0", (char *)"0000:40:00.0",
                        (char *)"0000:50:00.0", (char *)"0000:60:00.0", (char *)"0000:70:00.0", (char *)"0000:80:00.0", NULL };

static Eight node_new(void) {
        Eight n = {};
        for (int i = 0; i < GPUS; i++) {
                n.memory[i] = 3000e9;
                n.host[i] = 55e9;
                for (int k = 0; k < GPUS; k++)
                        n.link[i][k] = i == k ? 0 : 390e9;
        }
        return n;
}

/* The same numbers in each run: MINSTD, by Park and Miller. */
static double noisy(const Eight *n, double rate) {
        static uint64_t state = 1;
        state = state * 48271 % 2147483647;
        return n->noise > 0 ? rate / (1 + ((double)(state % 2001) - 1000) / 1000 * n->noise / 100) : rate;
}

/* All lines, without the tests of some GPUs: bits of 1 << GPU. */
static void node_write(Eight *n, unsigned without) {
        text_add(&n->text, "{\"cuda\": 13000, \"gpus\": 8}\n");
        for (int i = 0; i < GPUS; i++) {
                text_add(&n->text, "{\"gpu\": \"%s\", \"uuid\": \"GPU-%d\", \"capability\": 90}\n", gpus[i], i);
                if (without >> i & 1)
                        continue;
                text_add(&n->text, "{\"gpu\": \"%s\", \"free\": 84000000000, \"total\": 85000000000}\n", gpus[i]);
                text_add(&n->text, "{\"gpu\": \"%s\", \"test\": \"memory\", \"words\": 10000000000, \"wrong\": 0, \"bytesPerSecond\": %.0f}\n",
                         gpus[i], noisy(n, n->memory[i]));
                text_add(&n->text, "{\"gpu\": \"%s\", \"test\": \"product\", \"warps\": 4224, \"wrong\": 0}\n", gpus[i]);
                text_add(&n->text, "{\"gpu\": \"%s\", \"test\": \"host\", \"words\": 8388608, \"wrong\": 0, \"toHost\": %.0f, \"toGpu\": %.0f}\n",
                         gpus[i], noisy(n, n->host[i]), noisy(n, n->host[i]));
                for (int k = 0; k < GPUS; k++)
                        if (i != k && !(without >> k & 1))
                                text_add(&n->text, "{\"gpu\": \"%s\", \"test\": \"link\", \"from\": \"%s\", \"words\": 8388608, \"wrong\": 0, \"bytesPerSecond\": %.0f}\n",
                                         gpus[i], gpus[k], noisy(n, n->link[k][i]));
        }
}

static void node_end(Eight *n) {
        for (int i = 0; i < GPUS; i++)
                text_add(&n->text, "{\"gpu\": \"%s\", \"done\": true}\n", gpus[i]);
        text_add(&n->text, "{\"done\": true}\n");
}

/* "3 memory-wrong!": the GPU, or - for none; ! marks a failure, and ? a finding that never is one */
static char *words_of(const Findings *f) {
        Text t = {};
        for (size_t i = 0; i < f->n; i++) {
                const char *address = f->items[i].address;
                text_add(&t, "%s%c %s%s", i > 0 ? "; " : "", *address ? (char)(address[5] - 1) : '-', f->items[i].word,
                         f->items[i].unusable ? "!" : f->items[i].harmless ? "?" : "");
        }
        return text_take(&t);
}

static json_t *judge(const char *text, unsigned bandwidth, Findings *f) {
        return prove_judge(&(ProveInput){ .text = text, .gpus = gpus, .users = "python3 (900) has a GPU open", .bandwidth = bandwidth, .links = true }, f);
}

#define JUDGED(lines, wanted, sentence) ({                                                                                       \
        _cleanup_(findings_done) Findings _f = {};                                                                              \
        _cleanup_(json_decrefp) _unused_ json_t *_j = judge(lines, 3350, &_f);                                                           \
        _free_ char *_words = words_of(&_f);                                                                                    \
        ASSERT_STREQ(_words, wanted);                                                                                           \
        ASSERT_CONTAINS(_f.n > 0 ? _f.items[0].text : "", sentence); })
/* One more line, before the last ones. */
#define SAYS(line, wanted, sentence) ({                                                                                         \
        Eight _n = node_new();                                                                                                   \
        node_write(&_n, 0);                                                                                                     \
        text_add(&_n.text, "%s\n", line);                                                                                       \
        node_end(&_n);                                                                                                          \
        JUDGED(_n.text.data, wanted, sentence);                                                                                 \
        text_done(&_n.text); })
#define THIRD "{\"gpu\": \"0000:40:00.0\", "

TEST(a_good_node_has_figures_and_no_findings) {
        _cleanup_(findings_done) Findings f = {};
        Eight n = node_new();
        node_write(&n, 0);
        node_end(&n);
        _cleanup_(json_decrefp) json_t *j = judge(n.text.data, 3350, &f);
        ASSERT_EQ(f.n, 0);
        const json_t *gpu = json_array_get(json_object_get(j, "gpus"), 3), *prove = json_object_get(gpu, "prove");
        ASSERT_STREQ(json_get_text(gpu, "address"), "0000:40:00.0");
        ASSERT_STREQ(json_get_text(gpu, "uuid"), "GPU-3");
        ASSERT_EQ(json_integer_value(json_object_get(prove, "bytesTested")), 80000000000);
        ASSERT_EQ(json_integer_value(json_object_get(prove, "memoryBytesPerSecond")), 3000000000000);
        ASSERT_EQ(json_integer_value(json_object_get(prove, "linkBytesPerSecond")), 390000000000);
        ASSERT_TRUE(json_is_true(json_object_get(json_object_get(j, "prove"), "complete")));
        ASSERT_EQ(json_array_size(json_object_get(json_object_get(j, "prove"), "links")), 56);
        text_done(&n.text);
}

TEST(noise_of_10_percent_is_not_a_finding) {
        for (int i = 0; i < 1000; i++) {
                Eight n = node_new();
                n.noise = 10;
                node_write(&n, 0);
                node_end(&n);
                JUDGED(n.text.data, "", "");
                text_done(&n.text);
        }
}

TEST(wrong_results_become_findings) {
        SAYS(THIRD "\"test\": \"memory\", \"words\": 1000, \"wrong\": 2, \"first\": \"0x8000\", \"mask\": \"0x0000000000000010\", \"bytesPerSecond\": 3000000000000}",
             "3 memory-wrong!", "2 of 1000 words of its memory were wrong, the first at offset 0x8000, wrong bits 0x0000000000000010");
        SAYS(THIRD "\"test\": \"product\", \"warps\": 4224, \"wrong\": 1, \"first\": 17}", "3 compute-wrong!", "1 of 4224 warps");
        SAYS(THIRD "\"test\": \"link\", \"from\": \"0000:60:00.0\", \"words\": 1000, \"wrong\": 1, \"first\": \"0x10\", \"mask\": \"0x0000000000000001\"}",
             "3 memory-wrong!", "wrong after a copy from GPU 5 (0000:60:00.0), the first at");
}

TEST(cuda_errors_become_findings) {
        SAYS(THIRD "\"error\": \"timeout\", \"code\": 0, \"call\": \"cuLaunchKernel\"}", "3 prove-timeout!", "cuLaunchKernel: timeout (0): the call does not return");
        SAYS(THIRD "\"error\": \"CUDA_ERROR_ILLEGAL_ADDRESS\", \"code\": 700, \"call\": \"cuCtxSynchronize\"}", "3 prove-failed!", "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
        SAYS(THIRD "\"error\": \"CUDA_ERROR_UNSUPPORTED_PTX_VERSION\", \"code\": 222, \"call\": \"cuModuleLoadDataEx\"}", "3 prove-ptx", "too old");
        SAYS(THIRD "\"error\": \"CUDA_ERROR_JIT_COMPILER_NOT_FOUND\", \"code\": 221, \"call\": \"cuModuleLoadDataEx\"}", "3 prove-ptx", "libnvidia-ptxjitcompiler.so.1");
        SAYS(THIRD "\"error\": \"CUDA_ERROR_ECC_UNCORRECTABLE\", \"code\": 214, \"call\": \"cuModuleLoadDataEx\"}", "3 prove-failed!", "CUDA_ERROR_ECC_UNCORRECTABLE (214)");
        SAYS(THIRD "\"error\": \"CUDA_ERROR_OUT_OF_MEMORY\", \"code\": 2, \"call\": \"cuCtxCreate_v2\"}", "3 prove-no-memory", "no free memory");
        SAYS(THIRD "\"error\": \"CUDA_ERROR_DEVICE_UNAVAILABLE\", \"code\": 46, \"call\": \"cuCtxCreate_v2\"}", "3 prove-in-use", "exclusive use of it");
        SAYS(THIRD "\"error\": \"\", \"code\": 12345, \"call\": \"cuInit\"}\n" THIRD "\"error\": \"timeout\", \"call\": \"cuInit\"}", "3 prove-failed!", "error (12345)");
        SAYS(THIRD "\"free\": 40000000000, \"total\": 85000000000}", "3 prove-in-use", "only the rest can be tested: python3 (900) has a GPU open");
        SAYS(THIRD "\"capability\": 75}", "3 prove-unsupported?", "it has compute capability 7.5");
        JUDGED("{\"error\": \"not found\", \"code\": 0, \"call\": \"dlopen\"}\n{\"done\": true}\n", "- prove-no-libcuda", "libcuda.so.1 cannot be loaded");
        JUDGED("{\"error\": \"CUDA_ERROR_SYSTEM_NOT_READY\", \"code\": 802, \"call\": \"cuInit\"}\n{\"done\": true}\n", "- prove-failed!", "CUDA_ERROR_SYSTEM_NOT_READY (802)");
}

TEST(a_test_that_ends_early_is_a_finding) {
        Eight n = node_new();
        node_write(&n, 1 << 3);
        JUDGED(n.text.data, "- prove-failed!", "ended early (its last line is missing)");
        node_end(&n);
        JUDGED(n.text.data, "", "");
        JUDGED("", "- prove-failed!", "ended early");
        /* GPU 7 has no line at all */
        *strstr(n.text.data, "{\"gpu\": \"0000:80:00.0\"") = 0;
        _free_ char *text = xasprintf("%s{\"done\": true}\n", n.text.data);
        JUDGED(text, "7 prove-failed!", "CUDA does not list it");
        text_done(&n.text);
}

TEST(slow_memory_host_and_links_are_found) {
        Eight n = node_new();
        n.memory[2] = 2300e9;
        n.host[4] = 27e9;
        n.link[3][5] = 200e9;
        node_write(&n, 0);
        node_end(&n);
        JUDGED(n.text.data, "2 slow-memory; 3 slow-link; 4 slow-host; 4 slow-host", "2300 GB/s, which is below 80 % of the median of all GPUs here (3000 GB/s)");
        /* in a copy that runs alone, the link is as fast as the others */
        text_add(&n.text, "{\"gpu\": \"0000:60:00.0\", \"test\": \"link\", \"from\": \"0000:40:00.0\", \"bytesPerSecond\": 385000000000}\n");
        JUDGED(n.text.data, "2 slow-memory; 4 slow-host; 4 slow-host", "");
        text_done(&n.text);

        n = node_new();
        n.link[3][5] = 200e9;
        node_write(&n, 0);
        node_end(&n);
        JUDGED(n.text.data, "3 slow-link", "GPU 3 \xe2\x86\x94 GPU 5 copy at 200 GB/s");
        text_done(&n.text);
}

TEST(a_gpu_with_slow_links_to_all_is_one_finding) {
        Eight n = node_new();
        for (int i = 0; i < GPUS; i++)
                n.link[3][i] = n.link[i][3] = i == 3 ? 0 : 100e9;
        node_write(&n, 0);
        node_end(&n);
        JUDGED(n.text.data, "3 slow-link", "7 of 7 other GPUs");
        text_done(&n.text);
}

/* All are equally slow, so only the data sheet shows it. */
TEST(an_equally_slow_node_is_found_by_the_data_sheet) {
        Eight n = node_new();
        for (int i = 0; i < GPUS; i++)
                n.memory[i] = 1900e9;
        node_write(&n, 0);
        node_end(&n);
        _cleanup_(findings_done) Findings f = {};
        _cleanup_(json_decrefp) _unused_ json_t *known = judge(n.text.data, 3350, &f), *unknown = NULL;
        ASSERT_EQ(f.n, GPUS);
        ASSERT_CONTAINS(f.items[0].text, "below 60 % of its data sheet value (3350 GB/s)");
        findings_done(&f);
        unknown = judge(n.text.data, 0, &f);
        ASSERT_EQ(f.n, 0);
        text_done(&n.text);
}

/* ---- the step ---- */

/* Two GPUs. START: shell lines of `systemctl start`; LINES is a file with good results. */
static void step(Machine *m, const char *start) {
        _free_ char *lines = xasprintf("%s/lines", m->path), *search = xasprintf("%s/bin:/usr/bin:/bin", m->path);
        _cleanup_(text_done) Text t = {};
        for (int i = 0; i < 2; i++)
                text_add(&t, "{\"gpu\": \"%s\", \"uuid\": \"GPU-%d\", \"capability\": 90}\n"
                             "{\"gpu\": \"%s\", \"test\": \"memory\", \"words\": 1000, \"wrong\": 0, \"bytesPerSecond\": 3000000000000}\n"
                             "{\"gpu\": \"%s\", \"done\": true}\n", gpus[i], i, gpus[i], gpus[i]);
        text_add(&t, "{\"done\": true}\n");
        write_file(lines, t.data);
        _free_ char *text = xasprintf("#!/bin/sh\n"
                                      "echo \"$*\" >>%1$s/ran; LINES=%1$s/lines; mkdir -p %1$s/run/nodestrap\n"
                                      "case $1 in\n"
                                      "show) case \"$*\" in\n"
                                      "      *--property=Id*) ;;\n"
                                      "      *ActiveState*) cat %1$s/active 2>/dev/null || echo inactive;;\n"
                                      "      *Result*) cat %1$s/result;;\n"
                                      "      esac;;\n"
                                      "kill) [ -e %1$s/immortal ] || rm -f %1$s/active;;\n"
                                      "start) cd %1$s/run/nodestrap; %2$s\n;;\n"
                                      "esac\n", m->path, start);
        ASSERT_OK(root_replace(m->root, "/bin/systemctl", text, strlen(text), 0755));
        setenv("PATH", search, 1);
}

#define STEP(name, script, start)                                                                                               \
        MACHINE(name, "gpus 2\n" script);                                                                                       \
        name.action.id = (char *)"prove-gpus:gpus";                                                                             \
        name.action.type = ACTION_PROVE_GPUS;                                                                                   \
        name.action.lenient = true;                                                                                             \
        name.action.device.count = 2;                                                                                           \
        name.action.device.nvlinks = 18;                                                                                        \
        name.action.deadline_usec = 90 * USEC_PER_SEC;                                                                          \
        strv_add(&name.action.device.seen, gpus[0]);                                                                            \
        strv_add(&name.action.device.seen, gpus[1]);                                                                            \
        step(&name, start)

static unsigned runs(const Machine *m) {
        _free_ char *text = NULL;
        unsigned n = 0;
        ASSERT_OK(root_read(m->root, "/ran", 1 << 20, &text, NULL));
        for (const char *p = text; (p = strstr(p, "start nodestrap-prove@60.service")); p++)
                n++;
        return n;
}

TEST(the_test_runs_once_in_a_boot) {
        STEP(m, "", "cp $LINES prove");
        ASSERT_EQ(prove_work(&m.work), 1);
        ASSERT_EQ(m.work.warnings.n, 0);
        const json_t *prove = json_object_get(m.work.found, "prove");
        ASSERT_TRUE(json_is_true(json_object_get(prove, "complete")));
        ASSERT_EQ(json_array_size(json_object_get(prove, "findings")), 0);
        machine_clear(&m);
        ASSERT_EQ(prove_work(&m.work), 0);
        ASSERT_EQ(runs(&m), 1);
}

TEST(missing_memory_warns_or_fails_by_policy) {
        STEP(m, "", "sed 's/\"done\": true, *//; s/\"capability\": 90/\"error\": \"CUDA_ERROR_OUT_OF_MEMORY\", \"code\": 2, \"call\": \"cuMemAlloc_v2\"/' $LINES >prove");
        ASSERT_EQ(prove_work(&m.work), 1);
        ASSERT_EQ(m.work.warnings.n, 2);
        ASSERT_STREQ(m.work.warnings.items[0].code, "prove-no-memory");
        m.action.lenient = false;       /* health: require */
        ASSERT_OK(root_remove(m.root, "/run/nodestrap/gpus-proved"));
        ASSERT_FAILS(prove_work(&m.work), CAUSE_HEALTH, "GPU 0 (0000:10:00.0): cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)");
        ASSERT_EQ(json_array_size(json_object_get(json_object_get(m.work.found, "prove"), "findings")), 2);
}

TEST(an_unsupported_gpu_only_warns) {
        STEP(m, "", "sed 's/\"capability\": 90/\"capability\": 75/' $LINES >prove");
        m.action.lenient = false;
        ASSERT_EQ(prove_work(&m.work), 1);
        ASSERT_STREQ(m.work.warnings.items[0].code, "prove-unsupported");
}

TEST(a_wrong_word_fails_and_is_tested_again) {
        STEP(m, "", "sed 's/\"wrong\": 0/\"wrong\": 1, \"first\": \"0x40\", \"mask\": \"0x0000000000000001\"/' $LINES >prove");
        ASSERT_FAILS(prove_work(&m.work), CAUSE_HEALTH, "GPU 0 (0000:10:00.0): 1 of 1000 words of its memory were wrong, the first at offset 0x40");
        ASSERT_CONTAINS(m.work.text, " (and 1 more)");
        ASSERT_FAILS(prove_work(&m.work), CAUSE_HEALTH, "1 of 1000 words");     /* tested again */
        ASSERT_EQ(runs(&m), 2);
}

TEST(error_counters_that_grow_are_a_failure) {
        STEP(m, "ecc 0 7\n", "cp $LINES prove; echo 'ecc 0 9' >>$FAKE_NVML");
        ASSERT_FAILS(prove_work(&m.work), CAUSE_HEALTH, "GPU 0 (0000:10:00.0): 2 uncorrectable memory errors during the test");
        machine_says(&m, "gpus 2\nrecoveries 1 5\n");
        step(&m, "cp $LINES prove; echo 'recoveries 1 6' >>$FAKE_NVML");
        ASSERT_FAILS(prove_work(&m.work), CAUSE_HEALTH, "GPU 1 (0000:20:00.0): its NVLinks recovered from errors 18 times");
        machine_says(&m, "gpus 2\nrows 1 pending\n");
        step(&m, "cp $LINES prove; echo 'rows 1 failed' >>$FAKE_NVML");
        ASSERT_FAILS(prove_work(&m.work), CAUSE_HEALTH, "GPU 1 (0000:20:00.0): a memory row failed during the test");
        machine_says(&m, "gpus 2\nrows 1 failed\necc 1 3\n");
        step(&m, "cp $LINES prove");
        machine_clear(&m);
        ASSERT_EQ(prove_work(&m.work), 1);      /* old errors are left to check-health */
}

TEST(a_gpu_that_leaves_the_bus_is_a_failure) {
        STEP(m, "", "cp $LINES prove; echo 'error nvmlDeviceGetHandleByIndex 15 1' >>$FAKE_NVML");
        ASSERT_FAILS(prove_work(&m.work), CAUSE_HEALTH, "a GPU fell off the PCI bus during its test");
        ASSERT_STREQ(m.work.warnings.items[0].code, "off-the-bus");
}

TEST(mig_mode_prevents_the_test_with_a_warning) {
        STEP(m, "", "cp $LINES prove");
        write_file(m.state, "mig 1 1 1\n");
        ASSERT_EQ(prove_work(&m.work), 0);
        ASSERT_STREQ(m.work.warnings.items[0].code, "prove-mig");
        ASSERT_CONTAINS(m.work.warnings.items[0].text, "GPU 1 (0000:20:00.0): it is in MIG mode");
}

TEST(the_test_does_not_run_if_kubelet_may_run) {
        STEP(m, "", "cp $LINES prove");
        ASSERT_TRUE(root_replace(m.root, "/run/nodestrap/kubelet-may-start", "", 0, 0644) >= 0);
        ASSERT_EQ(prove_work(&m.work), 0);
        ASSERT_STREQ(m.work.warnings.items[0].code, "prove-in-use");
}

TEST(a_crashed_helper_is_a_failure) {
        STEP(m, "", "head -n 2 $LINES >prove; exit 1");
        _free_ char *result = xasprintf("%s/result", m.path);
        write_file(result, "oom-kill\n");
        ASSERT_FAILS(prove_work(&m.work), CAUSE_HEALTH, "the test of the GPUs ended early (oom-kill)");
        step(&m, "echo 'Failed to start nodestrap-prove@60.service: Unit not found.' >&2; exit 5");
        write_file(result, "success\n");
        ASSERT_FAILS(prove_work(&m.work), CAUSE_HEALTH, "nodestrap-prove@60.service does not start: Failed to start");
}

/* The real helper dies at one CUDA call after the other. EACH is the distance between them;
 * tests/exhaustive/prove-gpus.sh takes all calls. */
TEST(a_helper_killed_at_any_call_is_a_failure) {
        _free_ char *program = beside_program("../../nodestrap-prove"), *libraries = beside_program("../fakes");
        _free_ char *start = xasprintf("FAKE_CUDA=../../cuda LD_LIBRARY_PATH=%s %s 60 >prove || { echo signal >../../result; exit 1; }", libraries, program);
        int each = atoi(getenv("EACH") ?: "61");
        bool ended = false;
        for (int call = 1; !ended; call += each) {
                STEP(m, "", start);
                _free_ char *cuda = xasprintf("%s/cuda", m.path), *script = xasprintf("gpus 2\nmemory all 64\nsms 1\ndie %d\n", call);
                write_file(cuda, script);
                ended = prove_work(&m.work) >= 0;
                if (ended) {
                        printf("# %d calls, killed at each %d\n", call - 1, each);
                        ASSERT_EQ(m.work.warnings.n, 0);
                } else if (m.work.cause != CAUSE_HEALTH || !strstr(m.work.text, "ended early (signal)"))
                        FAIL("call %d: %s", call, m.work.text);
                ASSERT_EQ(json_array_size(json_object_get(json_object_get(m.work.found, "prove"), "findings")), ended ? 0 : 1);
        }
}

TEST(a_hanging_helper_is_a_failure) {
        STEP(m, "", "head -n 2 $LINES >prove; echo activating >../../active; exec sleep 100");
        m.work.deadline_usec = now_usec() + 11 * USEC_PER_SEC;
        ASSERT_FAILS(prove_work(&m.work), CAUSE_HEALTH, "ended early (it did not end in time)");
        ASSERT_EQ(m.work.warnings.n, 1);
}

TEST(a_helper_of_a_killed_run_is_killed_first) {
        STEP(m, "", "cp $LINES prove");
        _free_ char *active = xasprintf("%s/active", m.path), *ran = NULL;
        write_file(active, "activating\n");
        ASSERT_EQ(prove_work(&m.work), 1);
        ASSERT_EQ(m.work.warnings.n, 0);
        ASSERT_EQ(runs(&m), 1);
        ASSERT_OK(root_read(m.root, "/ran", 1 << 20, &ran, NULL));
        ASSERT_CONTAINS(ran, "kill --signal=KILL nodestrap-prove@60.service");
}

TEST(a_helper_that_survives_sigkill_blocks_the_test) {
        STEP(m, "", "head -n 2 $LINES >prove; echo activating >../../active; exec sleep 100");
        _free_ char *immortal = xasprintf("%s/immortal", m.path);
        write_file(immortal, "");
        m.work.deadline_usec = now_usec() + 11 * USEC_PER_SEC;
        (void)!prove_work(&m.work);
        ASSERT_EQ(m.work.warnings.n, 2);
        ASSERT_CONTAINS(m.work.warnings.items[1].text, "no program can use the GPUs in this boot");
        m.work.deadline_usec = now_usec() + 60 * USEC_PER_SEC;
        ASSERT_FAILS(prove_work(&m.work), CAUSE_HEALTH, "SIGKILL does not end the test");       /* the run phase */
        ASSERT_EQ(runs(&m), 1);
}

TEST_MAIN
