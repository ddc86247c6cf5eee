/* SPDX-License-Identifier: Apache-2.0
 * nodestrap-prove on a libcuda that executes its PTX (tests/fakes/libcuda.c), with one fault each, and the
 * verdict on its lines. */
#include "health/health.h"

#include "base/run.h"
#include "base/str.h"
#include "base/time.h"
#include "test.h"

#include <stdio.h>
#include <unistd.h>

#define GPUS 4
static char *gpus[] = { (char *)"0000:10:00.0", (char *)"0000:20:00.0", (char *)"0000:30:00.0", (char *)"0000:40:00.0", NULL };

typedef struct Run { char *text, *words, *sentence; int status; json_t *found; } Run;

static void run_done(Run *r) {
        FREE_ALL(r->text, r->words, r->sentence);
        json_decref(r->found);
}

/* "2 memory-wrong!; …" as in test-prove.c */
static char *words_of(const Findings *f) {
        Text t = {};
        for (size_t i = 0; i < f->n; i++)
                text_add(&t, "%s%c %s%s", i > 0 ? "; " : "", *f->items[i].address ? (char)(f->items[i].address[5] - 1) : '-',
                         f->items[i].word, f->items[i].unusable ? "!" : "");
        return text_take(&t);
}

/* The script of the fake, and the lines that the helper leaves within the seconds. */
static Run prove_with(const char *script, const char *seconds) {
        static char folder[4096];
        char path[] = "/tmp/test-prove-gpus.XXXXXX";
        int fd = mkstemp(path);
        _free_ char *program = NULL, *libraries = NULL, *lines = xasprintf("gpus %d\nmemory all 96\nsms 1\n%s", GPUS, script);
        _cleanup_(child_result_done) ChildResult c = {};
        _cleanup_(findings_done) Findings f = {};
        ASSERT_TRUE(fd >= 0 && write(fd, lines, strlen(lines)) == (ssize_t)strlen(lines));
        close(fd);
        if (!*folder) {
                ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);
                ASSERT_TRUE(n > 0);
                folder[n] = 0;
                *strrchr(folder, '/') = 0;
        }
        program = xasprintf("%s/../../nodestrap-prove", folder);
        libraries = xasprintf("%s/../fakes", folder);
        setenv("LD_LIBRARY_PATH", libraries, 1);
        setenv("FAKE_CUDA", path, 1);
        setenv("CUDA_VISIBLE_DEVICES", "none", 1);      /* set by the caller */
        char *argv[] = { program, (char *)seconds, NULL };
        ASSERT_OK(child_run(argv, 60 * USEC_PER_SEC, 1 << 20, &c));
        unsetenv("LD_LIBRARY_PATH");
        unlink(path);
        Run r = { .text = xstrdup(c.output), .status = c.status };
        r.found = prove_judge(&(ProveInput){ .text = r.text, .gpus = gpus, .users = "", .links = true }, &f);
        r.words = words_of(&f);
        r.sentence = xstrdup(f.n > 0 ? f.items[0].text : "");
        return r;
}

#define PROVED(script, wanted, says) ({                                                                         \
        _cleanup_(run_done) Run _r = prove_with(script, "30");                                                  \
        if (!streq(_r.words, wanted))                                                                           \
                FAIL("%s: \"%s\", want \"%s\"\n# %s", script, _r.words, wanted, _r.text);                       \
        ASSERT_CONTAINS(_r.sentence, says); })

/* Every second run has times that are wrong by up to 10 %. RUNS is the number of runs:
 * tests/exhaustive/prove-gpus.sh has a thousand. */
TEST(good_gpus_have_no_findings) {
        int runs = atoi(getenv("RUNS") ?: "2");
        for (int i = 0; i < runs; i++) {
                _free_ char *script = i % 2 == 0 ? xasprintf("noise 10 %d\n", i + 1) : xstrdup("");
                _cleanup_(run_done) Run r = prove_with(script, "30");
                if (*r.words)
                        FAIL("run %d of %d, %s: %s\n# %s", i, runs, script, r.words, r.text);
                ASSERT_EQ(r.status, 0);
                ASSERT_EQ(json_array_size(json_object_get(r.found, "gpus")), GPUS);
                ASSERT_EQ(json_array_size(json_object_get(json_object_get(r.found, "prove"), "links")), GPUS * (GPUS - 1));
        }
}

TEST(memory_faults_and_used_memory_are_found) {
        PROVED("stuck 2 0x4000 4 1\n", "2 memory-wrong!", "wrong bits 0x0000000000000010");
        PROVED("stuck 2 0x4000 4 1\n", "2 memory-wrong!", "1 of ");    /* counted once, not in each pass */
        PROVED("stuck 2 0x4003 7 0\n", "2 memory-wrong!", "wrong bits 0x0000000080000000");
        PROVED("flip 1 0x4000 0 2x\n", "1 memory-wrong!", "1 of ");
        PROVED("alias 3 0x4100 0x4200\n", "3 memory-wrong!", "words of its memory were wrong");
        PROVED("used 1 80\n", "1 prove-in-use", "other programs use");
        PROVED("used 1 92\n", "1 prove-in-use; 1 prove-no-memory", "only the rest can be tested");     /* less than a page is left */
        PROVED("used 1 96\n", "1 prove-no-memory", "CUDA_ERROR_OUT_OF_MEMORY");
}

TEST(wrong_arithmetic_is_found) {
        PROVED("wrong-sm 2 0\n", "2 compute-wrong!", "warps multiplied");
        PROVED("sums backward\n", "", "");      /* the sums are exact in any order */
}

TEST(slow_memory_host_and_links_are_found) {
        PROVED("speed memory 1000 1\n", "1 slow-memory", "below 80 %");
        PROVED("speed host 20 3\n", "3 slow-host; 3 slow-host", "below 60 %");
        PROVED("speed peer 100 1 3\n", "1 slow-link", "GPU 1 \xe2\x86\x94 GPU 3");
        PROVED("no-peer 0 2\n", "", "");        /* nothing connects them */
}

TEST(cuda_errors_become_findings) {
        PROVED("error cuInit 100\n", "- prove-failed!", "CUDA_ERROR_NO_DEVICE (100)");
        PROVED("error cuDeviceGet 101 2\n", "- prove-failed!", "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)");
        PROVED("error cuModuleLoadDataEx 2 1\n", "1 prove-no-memory", "cuModuleLoadDataEx");
        PROVED("error cuModuleLoadDataEx 214 1\n", "1 prove-failed!", "CUDA_ERROR_ECC_UNCORRECTABLE (214)");
        PROVED("error cuModuleLoadDataEx 218 1\n", "1 prove-ptx", "install the compiler");
        PROVED("error cuCtxCreate 2 1\n", "1 prove-no-memory", "cuCtxCreate_v2");
        PROVED("error cuCtxCreate 46 1\n", "1 prove-in-use", "exclusive use of it");
        PROVED("ptx 6.3\n", "0 prove-ptx; 1 prove-ptx; 2 prove-ptx; 3 prove-ptx", "too old");
        PROVED("lost 2 700 after 4x\n", "2 prove-failed!", "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
        PROVED("error cuMemcpyPeerAsync 719 3\n", "3 prove-failed!", "(719)");
        PROVED("model t4\n", "0 prove-unsupported; 1 prove-unsupported; 2 prove-unsupported; 3 prove-unsupported", "7.5");
}

static bool says(const Run *r, const char *word) {
        return strstr(r->text, word) != NULL;
}

/* Each GPU hangs in another call. */
TEST(a_hanging_call_is_a_timeout_of_its_gpu) {
        _cleanup_(run_done) Run each = prove_with("hang cuLaunchKernel 0\nhang cuCtxCreate 1\nhang cuMemcpyDtoHAsync 2\nendless kernel 3\n", "3");
        ASSERT_STREQ(each.words, "0 prove-timeout!; 1 prove-timeout!; 2 prove-timeout!; 3 prove-timeout!");
        ASSERT_TRUE(says(&each, "cuLaunchKernel") && says(&each, "cuCtxCreate_v2") && says(&each, "cuMemcpyDtoHAsync_v2"));
        ASSERT_EQ(each.status, 0);
        _cleanup_(run_done) Run all = prove_with("hang cuInit\n", "1");
        ASSERT_STREQ(all.words, "- prove-timeout!");
}

/* The others have half of the time. qemu translates their kernels, which takes seconds beside other work, and far more with
 * sanitizers. */
TEST(other_gpus_end_their_tests_while_one_hangs) {
#ifdef __SANITIZE_ADDRESS__
        if (TRANSLATED_BY(""))
                SKIP("translated and with sanitizers, a test of a GPU does not end in time");
#endif
        const char *seconds = TRANSLATED_BY("") ? "24" : "6";
        _cleanup_(run_done) Run one = prove_with("hang cuLaunchKernel 1\n", seconds);
        ASSERT_STREQ(one.words, "1 prove-timeout!");
        ASSERT_CONTAINS(one.sentence, "cuLaunchKernel: timeout");
        ASSERT_EQ(one.status, 0);
        ASSERT_EQ(json_array_size(json_object_get(json_object_get(one.found, "prove"), "links")), 6);
        _cleanup_(run_done) Run copy = prove_with("hang cuMemcpyPeerAsync 1\n", seconds);
        ASSERT_STREQ(copy.words, "1 prove-timeout!");
        ASSERT_TRUE(says(&copy, "\"done\": false"));
        _cleanup_(run_done) Run list = prove_with("hang cuDeviceGet 2\n", "1");
        ASSERT_STREQ(list.words, "- prove-timeout!");
}

TEST_MAIN
