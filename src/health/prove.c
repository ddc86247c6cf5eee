/* SPDX-License-Identifier: Apache-2.0
 * The lines of nodestrap-prove → findings. A wrong result is a failure. A GPU that is slower than its
 * siblings, or than a part of its data sheet, gets a warning. */
#include "health/health.h"

#include "base/str.h"

#define REPLACE   "replace the instance (stop and start moves it to other hardware)"
#define COMPILER  "the driver did not compile the test (PTX), so the GPU was not tested; install the " \
                  "compiler of the driver (libnvidia-ptxjitcompiler.so.1)"
/* Fractions of the median over all node GPUs. Times that are wrong by 10 % either way stay above 0.9 / 1.1.
 * Host copies share its memory and bridges. */
#define MEMORY_PART 0.80
#define LINK_PART   0.80
#define HOST_PART   0.60
/* Of the data sheet, whose figure no program reaches. */
#define FLOOR_PART  0.60
#define RATE_MAX    1e15        /* bytes a second; more is damage */
#define WORDS_MAX   (1LL << 48)
#define USED_PART   0.25        /* of the memory, beyond what the driver itself takes */

typedef enum Rate { RATE_MEMORY, RATE_TO_GPU, RATE_TO_HOST, RATE_LINK, _RATE_MAX } Rate;
static const char *const rate_keys[_RATE_MAX] = { "memoryBytesPerSecond", "toGpuBytesPerSecond",
                                                  "toHostBytesPerSecond", "linkBytesPerSecond" };

typedef struct Tested {
        char uuid[48];
        bool listed;
        bool failed, wrong;             /* an error, or wrong words, were reported */
        json_int_t words;
        double rates[_RATE_MAX];        /* bytes a second; 0: not measured; of links: the slowest */
        unsigned slow_links;
} Tested;

typedef struct Judge {
        const ProveInput *input;
        Findings *f;
        size_t n;
        Tested *gpus;
        double *links;                  /* from, to */
        bool ended, complete;           /* the last line is there; and all tests ended in time */
        bool told;                      /* an error without a GPU */
} Judge;

static int gpu_of(const Judge *j, const char *address) {
        for (size_t i = 0; i < j->n; i++)
                if (streq(j->input->gpus[i], address))
                        return (int)i;
        return -1;
}

static double rate_at(const json_t *o, const char *key) {
        double rate = json_number_value(json_object_get(o, key));
        return rate > 0 && rate < RATE_MAX ? rate : 0;
}

/* ---- what is wrong ---- */

static const struct Refusal {
        const char *call, *error;       /* NULL: any; error: a part of its name */
        const char *word;
        bool unusable;
        const char *text;
} refusals[] = {
        { "dlopen", NULL, "prove-no-libcuda", false,
          "libcuda.so.1 cannot be loaded, so no GPU was tested; install the CUDA library of the driver "
          "(nvidia-driver-cuda-libs, libcuda1 on Debian)" },
        { NULL, "timeout", "prove-timeout", true,
          "the call does not return; dmesg (NVRM, Xid) shows why. If it happens again, " REPLACE },
        { NULL, "UNSUPPORTED_PTX_VERSION", "prove-ptx", false,
          "the driver is too old to compile the test (PTX), so the GPU was not tested; install a newer "
          "driver" },
        { "cuModuleLoadDataEx", "PTX", "prove-ptx", false, COMPILER },
        { "cuModuleLoadDataEx", "JIT", "prove-ptx", false, COMPILER },
        { "cuModuleLoadDataEx", "NO_BINARY", "prove-ptx", false, COMPILER },
        { "cuModuleLoadDataEx", "SHARED_OBJECT", "prove-ptx", false, COMPILER },
        { NULL, "DEVICE_UNAVAILABLE", "prove-in-use", false,
          "another program has exclusive use of it, so it was not tested" },
        { NULL, "OUT_OF_MEMORY", "prove-no-memory", false,
          "it has no free memory, so it was not tested; nvidia-smi shows the programs that use it" },
        { NULL, NULL, "prove-failed", true,
          "this CUDA call fails; dmesg (NVRM, Xid) shows why. If it happens again, " REPLACE },
};

static void take_error(Judge *j, const json_t *o, const char *error, Tested *gpu, const char *address) {
        const char *call = json_get_text(o, "call");
        const struct Refusal *r = FIND(one, refusals, ARRAY_SIZE(refusals),
                                       (!one->call || streq(one->call, call)) &&
                                               (!one->error || strstr(error, one->error)));
        bool *told = gpu ? &gpu->failed : &j->told;
        if (!*told)
                finding_add(j->f, r->word, address, r->unusable, "%s: %s (%lld): %s", call,
                            *error ? error : "error",
                            (long long)json_integer_value(json_object_get(o, "code")), r->text);
        *told = true;
}

/* Copies of wrong memory are wrong, too. */
static void take_wrong(Judge *j, const json_t *o, Tested *gpu, const char *address, const char *where) {
        json_int_t wrong = json_integer_value(json_object_get(o, "wrong"));
        if (wrong > 0 && !gpu->wrong)
                finding_add(j->f, "memory-wrong", address, true,
                            "%lld of %lld words of its memory were wrong%s, the first at offset %s, wrong "
                            "bits %s; " REPLACE,
                            (long long)wrong, (long long)json_integer_value(json_object_get(o, "words")),
                            where, json_get_text(o, "first"), json_get_text(o, "mask"));
        gpu->wrong |= wrong > 0;
}

static void take_product(Judge *j, const json_t *o, const char *address) {
        json_int_t wrong = json_integer_value(json_object_get(o, "wrong"));
        if (wrong > 0)
                finding_add(j->f, "compute-wrong", address, true,
                            "%lld of %lld warps multiplied matrices of small integers wrongly, the first "
                            "being warp %lld; " REPLACE,
                            (long long)wrong, (long long)json_integer_value(json_object_get(o, "warps")),
                            (long long)json_integer_value(json_object_get(o, "first")));
}

/* A second line of a link has a better measurement. */
static void take_link(Judge *j, const json_t *o, size_t to, const char *address) {
        const char *from = json_get_text(o, "from");
        int i = gpu_of(j, from);
        _free_ char *where = xasprintf(" after a copy from GPU %d (%s)", i, from);
        if (i < 0)
                return;
        double *link = &j->links[(size_t)i * j->n + to];
        *link = MAX(*link, rate_at(o, "bytesPerSecond"));
        if (!j->gpus[i].wrong)
                take_wrong(j, o, &j->gpus[to], address, where);
}

/* Names the users of a GPU; ends none. */
static void take_memory_use(Judge *j, const json_t *o, const char *address) {
        double free = json_number_value(json_object_get(o, "free")),
               total = json_number_value(json_object_get(o, "total"));
        if (total > 0 && free < total * (1 - USED_PART))
                finding_add(j->f, "prove-in-use", address, false,
                            "other programs use %.0f of its %.0f MiB, so only the rest can be tested%s%s",
                            (total - free) / (1 << 20), total / (1 << 20), *j->input->users ? ": " : "",
                            j->input->users);
}

static void take_test(Judge *j, const json_t *o, Tested *gpu, const char *address) {
        const char *test = json_get_text(o, "test");
        size_t at = (size_t)(gpu - j->gpus);
        if (streq(test, "memory")) {
                gpu->words = MIN(MAX(json_integer_value(json_object_get(o, "words")), 0), WORDS_MAX);
                gpu->rates[RATE_MEMORY] = rate_at(o, "bytesPerSecond");
                take_wrong(j, o, gpu, address, "");
        } else if (streq(test, "host")) {
                gpu->rates[RATE_TO_GPU] = rate_at(o, "toGpu");
                gpu->rates[RATE_TO_HOST] = rate_at(o, "toHost");
                take_wrong(j, o, gpu, address, " after a copy to the host and back");
        } else if (streq(test, "product"))
                take_product(j, o, address);
        else if (streq(test, "link"))
                take_link(j, o, at, address);
}

static void take_gpu(Judge *j, const json_t *o, Tested *gpu, const char *address) {
        json_int_t capability = json_integer_value(json_object_get(o, "capability"));
        gpu->listed = true;
        if (*json_get_text(o, "uuid"))
                snprintf(gpu->uuid, sizeof gpu->uuid, "%s", json_get_text(o, "uuid"));
        if (capability > 0 && capability < 80) {
                finding_add(j->f, "prove-unsupported", address, false,
                            "it cannot be tested: it has compute capability %lld.%lld, and the test needs "
                            "8.0 (A100 and later)",
                            (long long)capability / 10, (long long)capability % 10);
                j->f->items[j->f->n - 1].harmless = true;
        }
        take_memory_use(j, o, address);
        take_test(j, o, gpu, address);
}

static void take_line(Judge *j, const char *line, size_t size) {
        json_auto_t *o = json_loadb(line, size, JSON_REJECT_DUPLICATES, NULL);
        const char *address = json_get_text(o, "gpu");
        const char *error = json_string_value(json_object_get(o, "error"));
        int i = gpu_of(j, address);
        if (!json_is_object(o) || (i < 0 && *address))
                return;
        Tested *gpu = i >= 0 ? &j->gpus[i] : NULL;
        if (error)
                take_error(j, o, error, gpu, address);
        if (gpu)
                take_gpu(j, o, gpu, address);
        else if (json_object_get(o, "done")) {
                j->ended = true;
                j->complete = json_is_true(json_object_get(o, "done"));
        }
}

/* ---- what is slow ---- */

static int compare(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;
        return (x > y) - (x < y);
}

/* Of those that are known; 0: of fewer than two. */
static double median(const double *values, size_t n) {
        _free_ double *sorted = xcalloc(n, sizeof *sorted);
        size_t known = 0;
        for (size_t i = 0; i < n; i++)
                if (values[i] > 0)
                        sorted[known++] = values[i];
        qsort(sorted, known, sizeof *sorted, compare);
        return known < 2 ? 0 : (sorted[(known - 1) / 2] + sorted[known / 2]) / 2;
}

static void judge_rate(Judge *j, Rate rate, double part, const char *word, const char *what) {
        _free_ double *values = xcalloc(j->n, sizeof *values);
        for (size_t i = 0; i < j->n; i++)
                values[i] = j->gpus[i].rates[rate];
        double middle = median(values, j->n), sheet = rate == RATE_MEMORY ? j->input->bandwidth * 1e9 : 0;
        for (size_t i = 0; i < j->n; i++) {
                const char *address = j->input->gpus[i];
                if (values[i] > 0 && values[i] < middle * part)
                        finding_add(j->f, word, address, false,
                                    "%s at %.4g GB/s, which is below %.0f %% of the median of all GPUs here "
                                    "(%.4g GB/s); " REPLACE,
                                    what, values[i] / 1e9, part * 100, middle / 1e9);
                else if (values[i] > 0 && values[i] < sheet * FLOOR_PART)
                        finding_add(j->f, word, address, false,
                                    "%s at %.4g GB/s, which is below %.0f %% of its data sheet value (%.4g "
                                    "GB/s); "
                                    REPLACE,
                                    what, values[i] / 1e9, FLOOR_PART * 100, sheet / 1e9);
        }
}

/* The slower direction; 0: not both measured. */
static double link_rate(const Judge *j, size_t i, size_t k) {
        return MIN(j->links[i * j->n + k], j->links[k * j->n + i]);
}

/* A GPU that is slow to most others is itself the cause. */
static void judge_links(Judge *j) {
        double middle = j->input->links ? median(j->links, j->n * j->n) : 0, slow = middle * LINK_PART;
        for (size_t i = 0; i < j->n; i++)
                for (size_t k = 0; k < j->n; k++) {
                        double rate = i == k ? 0 : link_rate(j, i, k);
                        double *slowest = &j->gpus[i].rates[RATE_LINK];
                        if (rate > 0)
                                *slowest = *slowest > 0 ? MIN(*slowest, rate) : rate;
                        j->gpus[i].slow_links += rate > 0 && rate < slow;
                }
        for (size_t i = 0; i < j->n; i++) {
                bool all = j->gpus[i].slow_links > 1 && j->gpus[i].slow_links >= j->n / 2;
                if (all)
                        finding_add(j->f, "slow-link", j->input->gpus[i], false,
                                    "copies to and from %u of %zu other GPUs are slow: down to %.4g GB/s "
                                    "(the median is %.4g GB/s). See nvidia-smi nvlink -s. If the links "
                                    "stay slow, " REPLACE,
                                    j->gpus[i].slow_links, j->n - 1, j->gpus[i].rates[RATE_LINK] / 1e9,
                                    middle / 1e9);
                for (size_t k = i + 1; k < j->n && !all; k++) {
                        double rate = link_rate(j, i, k);
                        if (rate > 0 && rate < slow &&
                            !(j->gpus[k].slow_links > 1 && j->gpus[k].slow_links >= j->n / 2))
                                finding_add(j->f, "slow-link", j->input->gpus[i], false,
                                            "GPU %zu \xe2\x86\x94 GPU %zu copy at %.4g GB/s (the median of "
                                            "all links is %.4g GB/s); nvidia-smi nvlink -s lists links. "
                                            "If the link stays slow, " REPLACE,
                                            i, k, rate / 1e9, middle / 1e9);
                }
        }
}

/* ---- all ---- */

static void judge_end(Judge *j) {
        const char *ended = j->input->ended;
        if (!j->ended)
                finding_add(j->f, "prove-failed", "", true,
                            "the test of the GPUs ended early (%s), so not all were tested; journalctl -u "
                            "'nodestrap-prove@*' and dmesg (NVRM, Xid, oom) show why",
                            ended ?: "its last line is missing");
        for (size_t i = 0; i < j->n && j->ended && !j->told; i++)
                if (!j->gpus[i].listed)
                        finding_add(j->f, "prove-failed", j->input->gpus[i], true,
                                    "CUDA does not list it; dmesg (NVRM, Xid) shows why. If it happens "
                                    "again, " REPLACE);
}

static json_t *report(const Judge *j) {
        json_t *gpus = json_array(), *links = json_array();
        for (size_t i = 0; i < j->n; i++) {
                const Tested *t = &j->gpus[i];
                json_t *prove = json_pack("{sI}", "bytesTested", t->words * 8);
                json_t *gpu = json_pack("{si ss so}", "index", (int)i, "address", j->input->gpus[i], "prove",
                                        prove);
                json_set_text(gpu, "uuid", *t->uuid ? t->uuid : NULL);
                for (int rate = 0; rate < _RATE_MAX; rate++)
                        if (t->rates[rate] > 0)
                                json_object_set_new(prove, rate_keys[rate],
                                                    json_integer((json_int_t)t->rates[rate]));
                if (t->listed)
                        json_array_append_new(gpus, gpu);
                else
                        json_decref(gpu);
                for (size_t k = 0; k < j->n; k++)
                        if (j->links[i * j->n + k] > 0)
                                json_array_append_new(
                                        links, json_pack("{si si sI}", "from", (int)i, "to", (int)k,
                                                         "bytesPerSecond",
                                                         (json_int_t)j->links[i * j->n + k]));
        }
        return json_pack("{so s{sb so}}", "gpus", gpus, "prove", "complete", j->complete, "links", links);
}

/* Threads write their lines in any order. */
static void sort_findings(const Judge *j) {
        for (size_t i = 1; i < j->f->n; i++)
                for (size_t k = i; k > 0; k--) {
                        Finding *before = &j->f->items[k - 1], *one = before + 1, other = *one;
                        if (gpu_of(j, before->address) <= gpu_of(j, one->address))
                                break;
                        *one = *before;
                        *before = other;
                }
}

json_t *prove_judge(const ProveInput *input, Findings *f) {
        size_t n = strv_length((char **)input->gpus);
        Judge j = { .input = input, .f = f, .n = n, .gpus = xcalloc(n + 1, sizeof *j.gpus),
                    .links = xcalloc(n * n + 1, sizeof *j.links) };
        for (const char *line = input->text, *end; (end = strchr(line, '\n')); line = end + 1)
                take_line(&j, line, (size_t)(end - line));
        judge_end(&j);
        judge_rate(&j, RATE_MEMORY, MEMORY_PART, "slow-memory", "its memory is read and written");
        judge_rate(&j, RATE_TO_GPU, HOST_PART, "slow-host", "it receives data from the host");
        judge_rate(&j, RATE_TO_HOST, HOST_PART, "slow-host", "it sends data to the host");
        judge_links(&j);
        sort_findings(&j);
        json_t *all = report(&j);
        FREE_ALL(j.gpus, j.links);
        return all;
}
