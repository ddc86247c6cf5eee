/* SPDX-License-Identifier: Apache-2.0
 * nodestrap-prove SECONDS: tests every GPU that CUDA lists and writes what it measures to stdout, a JSON
 * object a line. It judges nothing: src/health/prove.c does. units/nodestrap-prove@.service is its sandbox.
 *
 * CUDA may hang in any call. So the first thread only watches the time, and at the end of it reports the call
 * in which each GPU stands. Each line is written at once: a crash leaves the earlier ones. */
#include "base/macro.h"
#include "prove/cuda.h"
#include "prove/kernels.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#define LIBRARY      "libcuda.so.1"
#define GPUS_MAX     64
#define SALT         UINT64_C(0x9e3779b97f4a7c15)
#define PASSES       4          /* over the memory; the complement of a salt follows it */
#define THREADS      256        /* of a block */
#define BLOCKS       4          /* for each multiprocessor */
#define ROUNDS       64
#define BATCH        4          /* launches of ns_product between two looks at the clock */
#define SEED         1
#define PRODUCT_NSEC 200000000
#define COPY_MAX     (64UL << 20)
#define COPIES       8
#define ALONE        3          /* measurements of a link that was slow while all others were busy */

#define POINTER(name, parameters) int(*name) parameters;
#define NAME(name, parameters) #name "\0"
static struct { CUDA_FUNCTIONS(POINTER) } cuda;

typedef struct Gpu {
        int device, processors;
        char address[24];
        pthread_t thread;
        _Atomic(const char *) at;       /* the CUDA call it is in, or the last one */
        atomic_bool inside;             /* that call has not returned */
        atomic_bool over;               /* it has nothing to add */
        bool ready;                     /* by its thread: its own tests have ended */
        bool started, linked;           /* by test_all(): linked: it takes part in the tests of links */
        CudaContext context;
        CudaFunction fill, verify, product;
        CudaEvent begin, end;
        CudaAddress result, block;
        size_t size, copy;              /* bytes of the block, and of a copy */
} Gpu;

static Gpu gpus[GPUS_MAX];
static atomic_int n_gpus;                /* 0 until all of them are known */
static Gpu machine;                     /* stands for calls before there is a GPU */
/* CLOCK_MONOTONIC: early in a boot chrony may set the clock, by seconds or by years. */
static struct timespec half, end;
static uint64_t expected[PROVE_KINDS];

/* One write(2) a line: lines of threads do not mix. */
__attribute__((format(printf, 2, 3))) static void tell(const Gpu *g, const char *format, ...) {
        char line[512];
        int n = *g->address ? snprintf(line, sizeof line, "{\"gpu\": \"%s\", ", g->address)
                            : snprintf(line, sizeof line, "{");
        va_list list;
        va_start(list, format);
        n += vsnprintf(line + n, sizeof line - (size_t)n, format, list);
        va_end(list);
        n += snprintf(line + n, sizeof line - (size_t)n, "}\n");
        (void)!write(STDOUT_FILENO, line, (size_t)n);
}

static bool is_ok(Gpu *g, int code) {
        const char *name = NULL;
        if (code == CUDA_OK)
                return true;
        if (cuda.cuGetErrorName(code, &name) != CUDA_OK || !name)
                name = "";
        tell(g, "\"error\": \"%s\", \"code\": %d, \"call\": \"%s\"", name, code, atomic_load(&g->at));
        return false;
}

static void enter(Gpu *g, const char *call) {
        atomic_store(&g->at, call);
        atomic_store(&g->inside, true);
}

static int leave(Gpu *g, int code) {
        atomic_store(&g->inside, false);
        return code;
}
#define TRY(g, name, ...) leave(g, (enter(g, #name), cuda.name(__VA_ARGS__)))
#define DO(g, name, ...)  is_ok(g, TRY(g, name, __VA_ARGS__))

static bool launch(Gpu *g, CudaFunction function, void **parameters) {
        return DO(g, cuLaunchKernel, function, (unsigned)g->processors * BLOCKS, 1, 1, THREADS, 1, 1, 0, NULL,
                  parameters, NULL);
}

static bool fill(Gpu *g, uint64_t base, uint64_t words, uint64_t salt) {
        void *parameters[] = { &base, &words, &salt };
        return launch(g, g->fill, parameters);
}

typedef struct Wrong { uint64_t words, first, mask; } Wrong;    /* as ns_verify leaves it */

static bool verify_begin(Gpu *g, uint64_t base, uint64_t words, uint64_t salt) {
        void *parameters[] = { &base, &words, &salt, &g->result };
        return launch(g, g->verify, parameters);
}

static bool wrong_clear(Gpu *g) {
        Wrong none = { .first = UINT64_MAX };
        return DO(g, cuMemcpyHtoD_v2, g->result, &none, sizeof none);
}

static bool wrong_read(Gpu *g, Wrong *all) {
        Wrong wrong = {};
        if (!DO(g, cuMemcpyDtoH_v2, &wrong, g->result, sizeof wrong))
                return false;
        all->words = MAX(all->words, wrong.words);      /* each pass sees the same ones */
        all->first = MIN(all->first, wrong.first);
        all->mask |= wrong.mask;
        return true;
}

static bool verify(Gpu *g, uint64_t base, uint64_t words, uint64_t salt, Wrong *all) {
        return wrong_clear(g) && verify_begin(g, base, words, salt) && wrong_read(g, all);
}

static bool begin(Gpu *g) {
        return DO(g, cuEventRecord, g->begin, NULL);
}

/* *rate: bytes a second of this measurement, if it is the best so far. */
static bool measure(Gpu *g, double bytes, double *rate) {
        float msec = 0;
        if (!DO(g, cuEventSynchronize, g->end) || !DO(g, cuEventElapsedTime, &msec, g->begin, g->end))
                return false;
        if (msec > 0)
                *rate = MAX(*rate, bytes * 1000 / (double)msec);
        return true;
}

static bool ended(Gpu *g, double bytes, double *rate) {
        return DO(g, cuEventRecord, g->end, NULL) && measure(g, bytes, rate);
}

static void tell_words(const Gpu *g, const char *test, uint64_t words, const Wrong *wrong, const char *more) {
        tell(g,
             "\"test\": \"%s\", \"words\": %llu, \"wrong\": %llu, \"first\": \"0x%llx\", \"mask\": "
             "\"0x%016llx\"%s",
             test, (unsigned long long)words, (unsigned long long)wrong->words,
             (unsigned long long)(wrong->words > 0 ? wrong->first * 8 : 0), (unsigned long long)wrong->mask,
             more);
}

/* ---- the tests of one GPU ---- */

/* Host memory and copies stay on the NUMA node of the GPU: the path to another is slower. */
static void move_near(const Gpu *g) {
        char path[80], list[1024];
        cpu_set_t set;
        CPU_ZERO(&set);
        snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/local_cpulist", g->address);
        FILE *file = fopen(path, "re");
        char *p = file ? fgets(list, sizeof list, file) : NULL;
        if (file)
                fclose(file);
        while (p && *p >= '0' && *p <= '9') {
                unsigned long first = strtoul(p, &p, 10), last = *p == '-' ? strtoul(p + 1, &p, 10) : first;
                for (; first <= last && first < CPU_SETSIZE; first++)
                        CPU_SET(first, &set);
                p += *p == ',';
        }
        if (CPU_COUNT(&set) > 0)
                (void)sched_setaffinity(0, sizeof set, &set);
}

static bool describe(Gpu *g, bool *ret_supported) {
        unsigned char u[16] = {};
        int major = 0, minor = 0;
        if (!DO(g, cuDeviceGetUuid_v2, u, g->device) ||
            !DO(g, cuDeviceGetAttribute, &major, CUDA_CAPABILITY_MAJOR, g->device) ||
            !DO(g, cuDeviceGetAttribute, &minor, CUDA_CAPABILITY_MINOR, g->device) ||
            !DO(g, cuDeviceGetAttribute, &g->processors, CUDA_MULTIPROCESSORS, g->device))
                return false;
        tell(g,
             "\"uuid\": \"GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x\", "
             "\"capability\": %d",
             u[0], u[1], u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15], major * 10 + minor);
        *ret_supported = major >= 8;    /* kernels.ptx is for sm_80 */
        return true;
}

static bool prepare(Gpu *g) {
        CudaModule module = NULL;
        return DO(g, cuCtxCreate_v2, &g->context, CUDA_BLOCKING_SYNC, g->device) &&
               DO(g, cuModuleLoadDataEx, &module, prove_ptx, 0, NULL, NULL) &&
               DO(g, cuModuleGetFunction, &g->fill, module, "ns_fill") &&
               DO(g, cuModuleGetFunction, &g->verify, module, "ns_verify") &&
               DO(g, cuModuleGetFunction, &g->product, module, "ns_product") &&
               DO(g, cuEventCreate, &g->begin, 0) && DO(g, cuEventCreate, &g->end, 0) &&
               DO(g, cuMemAlloc_v2, &g->result, sizeof(Wrong));
}

/* The driver needs some memory for itself, and for the next programs. */
static bool take_memory(Gpu *g) {
        size_t free = 0, total = 0;
        int code = CUDA_OUT_OF_MEMORY;
        if (!DO(g, cuMemGetInfo_v2, &free, &total))
                return false;
        tell(g, "\"free\": %zu, \"total\": %zu", free, total);
        for (size_t part = 15; part > 0 && code == CUDA_OUT_OF_MEMORY; part--) {
                g->size = free / 16 * part & ~(size_t)4095;
                code = g->size > 0 ? TRY(g, cuMemAlloc_v2, &g->block, g->size) : CUDA_OUT_OF_MEMORY;
        }
        g->copy = MIN(COPY_MAX, g->size / 4);
        return is_ok(g, code);
}

static bool test_memory(Gpu *g) {
        uint64_t words = g->size / 8;
        Wrong wrong = { .first = UINT64_MAX };
        double rate = 0;
        char more[64];
        for (int i = 0; i < PASSES; i++) {
                uint64_t salt = i % 2 ? ~SALT : SALT;
                if (!wrong_clear(g) || !begin(g) || !fill(g, g->block, words, salt) ||
                    !verify_begin(g, g->block, words, salt) || !ended(g, 2.0 * (double)g->size, &rate) ||
                    !wrong_read(g, &wrong))
                        return false;
        }
        snprintf(more, sizeof more, ", \"bytesPerSecond\": %.0f", rate);
        tell_words(g, "memory", words, &wrong, more);
        return true;
}

static int64_t nsec_since(const struct timespec *then) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (now.tv_sec - then->tv_sec) * 1000000000L + now.tv_nsec - then->tv_nsec;
}

/* Each launch adds to the sums, so one comparison covers all of them. The sums lie at the start of the block,
 * which has room for them on every GPU today; too little is a failure. */
static bool test_product(Gpu *g) {
        size_t warps = (size_t)g->processors * BLOCKS * THREADS / 32;
        uint64_t launches = 0, wrong = 0, first = 0, sum = 0;
        uint32_t rounds = ROUNDS, seed = SEED;
        void *parameters[] = { &g->block, &rounds, &seed };
        struct timespec start;
        uint64_t *sums = warps * 8 <= g->size ? calloc(warps, sizeof *sums) : NULL;
        bool good = sums && DO(g, cuMemcpyHtoD_v2, g->block, sums, warps * 8);
        clock_gettime(CLOCK_MONOTONIC, &start);
        while (good && nsec_since(&start) < PRODUCT_NSEC) {
                for (int i = 0; i < BATCH && good; i++, launches++)
                        good = launch(g, g->product, parameters);
                good = good && DO(g, cuCtxSynchronize);
        }
        good = good && DO(g, cuMemcpyDtoH_v2, sums, g->block, warps * 8);
        for (size_t i = 0; i < warps && good; i++) {
                sum += sums[i];
                if (sums[i] == launches * expected[i % PROVE_KINDS])
                        continue;
                first = wrong++ == 0 ? i : first;
        }
        if (good)
                tell(g,
                     "\"test\": \"product\", \"warps\": %zu, \"wrong\": %llu, \"first\": %llu, "
                     "\"launches\": %llu, \"checksum\": \"%016llx\"",
                     warps, (unsigned long long)wrong, (unsigned long long)first,
                     (unsigned long long)launches, (unsigned long long)sum);
        else if (!sums)
                tell(g, "\"error\": \"CUDA_ERROR_OUT_OF_MEMORY\", \"code\": 2, \"call\": \"calloc\"");
        free(sums);
        return good;
}

/* The pattern goes to the host and, from there, to another place in the block. */
static bool test_host(Gpu *g) {
        Wrong wrong = { .first = UINT64_MAX };
        double out = 0, in = 0;
        void *buffer = NULL;
        char more[96];
        bool good = DO(g, cuMemHostAlloc, &buffer, g->copy, 0) && fill(g, g->block, g->copy / 8, SALT + 1) &&
                    begin(g);
        for (int i = 0; i < COPIES && good; i++)
                good = DO(g, cuMemcpyDtoHAsync_v2, buffer, g->block, g->copy, NULL);
        good = good && ended(g, COPIES * (double)g->copy, &out) && begin(g);
        for (int i = 0; i < COPIES && good; i++)
                good = DO(g, cuMemcpyHtoDAsync_v2, g->block + g->copy, buffer, g->copy, NULL);
        good = good && ended(g, COPIES * (double)g->copy, &in) &&
               verify(g, g->block + g->copy, g->copy / 8, SALT + 1, &wrong);
        if (!good)
                return false;
        snprintf(more, sizeof more, ", \"toHost\": %.0f, \"toGpu\": %.0f", out, in);
        tell_words(g, "host", g->copy / 8, &wrong, more);
        return true;
}

static void *test_gpu(void *argument) {
        Gpu *g = argument;
        bool supported = false;
        move_near(g);
        g->ready = describe(g, &supported) && supported && prepare(g) && take_memory(g) && test_memory(g) &&
                   test_product(g) && test_host(g);
        atomic_store(&g->over, true);
        return NULL;
}

/* ---- the links between GPUs ---- */

static bool is_linked(Gpu *from, const Gpu *to) {
        int can = 0;
        return from != to && from->linked && to->linked &&
               DO(from, cuDeviceCanAccessPeer, &can, from->device, to->device) && can;
}

static bool copy_begin(Gpu *from, const Gpu *to) {
        int code;
        if (!DO(from, cuCtxSetCurrent, from->context))
                return false;
        code = TRY(from, cuCtxEnablePeerAccess, to->context, 0);
        bool good = (code == CUDA_PEER_ACCESS_ALREADY_ENABLED || is_ok(from, code)) && begin(from);
        for (int i = 0; i < COPIES && good; i++)
                good = DO(from, cuMemcpyPeerAsync, to->block + to->copy, to->context, from->block,
                          from->context, MIN(from->copy, to->copy), NULL);
        return good && DO(from, cuEventRecord, from->end, NULL);
}

static bool copy_end(Gpu *from, const Gpu *to, double *rate) {
        return DO(from, cuCtxSetCurrent, from->context) &&
               measure(from, COPIES * (double)MIN(from->copy, to->copy), rate);
}

static bool link_verify(const Gpu *from, Gpu *to, double rate) {
        uint64_t words = MIN(from->copy, to->copy) / 8;
        Wrong wrong = { .first = UINT64_MAX };
        char more[96];
        if (!DO(to, cuCtxSetCurrent, to->context) ||
            !verify(to, to->block + to->copy, words, SALT + 2 + (uint64_t)(from - gpus), &wrong))
                return false;
        snprintf(more, sizeof more, ", \"from\": \"%s\", \"bytesPerSecond\": %.0f", from->address, rate);
        tell_words(to, "link", words, &wrong, more);
        return true;
}

/* All GPUs copy at once, each to the GPU shift places further on. */
static void test_links_at(int shift, double rates[GPUS_MAX][GPUS_MAX]) {
        bool busy[GPUS_MAX] = {};
        for (int i = 0; i < n_gpus; i++) {
                Gpu *from = &gpus[i], *to = &gpus[(i + shift) % n_gpus];
                busy[i] = is_linked(from, to);
                if (busy[i] && !copy_begin(from, to))
                        from->linked = busy[i] = false;
        }
        for (int i = 0; i < n_gpus; i++) {
                int k = (i + shift) % n_gpus;
                if (busy[i] && !copy_end(&gpus[i], &gpus[k], &rates[i][k]))
                        gpus[i].linked = busy[i] = false;
        }
        for (int i = 0; i < n_gpus; i++) {
                Gpu *to = &gpus[(i + shift) % n_gpus];
                if (busy[i] && to->linked && !link_verify(&gpus[i], to, rates[i][to - gpus]))
                        to->linked = false;
        }
}

/* Retests links slower than the best one, alone. */
static void test_links_alone(double rates[GPUS_MAX][GPUS_MAX], double best) {
        for (int i = 0; i < n_gpus; i++)
                for (int k = 0; k < n_gpus; k++) {
                        Gpu *from = &gpus[i], *to = &gpus[k];
                        double rate = rates[i][k];
                        if (rate <= 0 || rate > best * 9 / 10 || !from->linked || !to->linked)
                                continue;
                        for (int times = 0; times < ALONE && from->linked; times++)
                                from->linked = copy_begin(from, to) && copy_end(from, to, &rate);
                        if (from->linked && rate > rates[i][k])
                                tell(to, "\"test\": \"link\", \"from\": \"%s\", \"bytesPerSecond\": %.0f",
                                     from->address, rate);
                }
}

static void test_links(void) {
        static double rates[GPUS_MAX][GPUS_MAX];
        double best = 0;
        for (int i = 0; i < n_gpus; i++)
                if (gpus[i].linked)
                        gpus[i].linked = DO(&gpus[i], cuCtxSetCurrent, gpus[i].context) &&
                                        fill(&gpus[i], gpus[i].block, gpus[i].copy / 8,
                                             SALT + 2 + (uint64_t)i);
        for (int shift = 1; shift < n_gpus; shift++)
                test_links_at(shift, rates);
        for (int i = 0; i < n_gpus * GPUS_MAX; i++)
                best = MAX(best, rates[i / GPUS_MAX][i % GPUS_MAX]);
        test_links_alone(rates, best);
}

/* ---- all ---- */

static bool load(void) {
        static const char names[] = CUDA_FUNCTIONS(NAME);
        void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
        char *slot = (char *)&cuda;
        const char *missing = NULL;
        for (const char *name = names; library && *name; name += strlen(name) + 1) {
                void *address = dlsym(library, name);
                memcpy(slot, &address, sizeof address);
                slot += sizeof address;
                missing = missing ?: address ? NULL : name;
        }
        if (library && !missing)
                return true;
        tell(&machine, "\"error\": \"%s\", \"code\": 0, \"call\": \"dlopen\"",
             library ? missing : "not found");
        return false;
}

static bool list(void) {
        int n = 0, version = 0;
        if (!DO(&machine, cuInit, 0) || !DO(&machine, cuDriverGetVersion, &version) ||
            !DO(&machine, cuDeviceGetCount, &n))
                return false;
        tell(&machine, "\"cuda\": %d, \"gpus\": %d", version, n);
        for (int i = 0; i < MIN(n, GPUS_MAX); i++) {
                Gpu *g = &gpus[i];
                if (!DO(&machine, cuDeviceGet, &g->device, i) ||
                    !DO(&machine, cuDeviceGetPCIBusId, g->address, sizeof g->address, g->device))
                        return false;
                for (char *c = g->address; *c; c++)
                        *c = (char)(*c >= 'A' && *c <= 'F' ? *c + ('a' - 'A') : *c);
        }
        n_gpus = MIN(n, GPUS_MAX);
        return true;
}

/* A GPU that hangs does not stop the others: after half the time they test their links without it. */
static void *test_all(_unused_ void *argument) {
        for (int i = 0; i < PROVE_KINDS; i++)
                expected[i] = prove_expected((uint32_t)i, ROUNDS, SEED);
        if (load() && list()) {
                for (int i = 0; i < n_gpus; i++) {
                        atomic_store(&gpus[i].at, "pthread_create");
                        gpus[i].started = pthread_create(&gpus[i].thread, NULL, test_gpu, &gpus[i]) == 0;
                }
                for (int i = 0; i < n_gpus; i++)
                        gpus[i].linked =
                                gpus[i].started &&
                                pthread_clockjoin_np(gpus[i].thread, NULL, CLOCK_MONOTONIC, &half) == 0 &&
                                gpus[i].ready;
                test_links();
        }
        atomic_store(&machine.over, true);
        return NULL;
}

static void tell_late(const Gpu *g) {
        const char *at = atomic_load(&g->at);
        tell(g, "\"error\": \"timeout\", \"code\": 0, \"call\": \"%s\"", at ?: "");
}

/* Caller variables may select GPUs, change the compiler or trace: CUDA_VISIBLE_DEVICES and many more. */
static void clean_environment(void) {
        for (char **e = environ; *e;) {
                char name[64];
                size_t n = strcspn(*e, "=");
                bool ours = strncmp(*e, "CUDA", 4) == 0 || strncmp(*e, "NVIDIA", 6) == 0;
                snprintf(name, sizeof name, "%.*s", (int)n, *e);
                if (ours && n < sizeof name && unsetenv(name) == 0)
                        e = environ;
                else
                        e++;
        }
        setenv("CUDA_CACHE_DISABLE", "1", 1);
        setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
}

int main(int argc, char **argv) {
        long seconds = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
        pthread_t thread;
        if (seconds < 1 || seconds > 86400) {
                fprintf(stderr, "usage: nodestrap-prove SECONDS\n"
                                "Tests all NVIDIA GPUs; systemctl start nodestrap-prove@60.service runs "
                                "it.\n");
                return 2;
        }
        clean_environment();
        alarm((unsigned)seconds + 5);   /* ends it if even the watchdog hangs */
        clock_gettime(CLOCK_MONOTONIC, &half);
        end = half;
        half.tv_sec += (seconds + 1) / 2;
        end.tv_sec += seconds;
        atomic_store(&machine.at, "dlopen");
        if (pthread_create(&thread, NULL, test_all, NULL) != 0)
                return 1;
        bool late = pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &end) != 0;
        if (late && n_gpus == 0)
                tell_late(&machine);
        /* One thread tests all links: it hangs in a call for one GPU, or the time was too short for all. */
        bool hangs = late && ANY(g, gpus, n_gpus, g->linked && atomic_load(&g->inside));
        for (int i = 0; i < n_gpus; i++) {
                Gpu *g = &gpus[i];
                bool links = late && g->linked;
                if (!atomic_load(&g->over) || (links && (atomic_load(&g->inside) || !hangs)))
                        tell_late(g);
                else
                        tell(g, "\"done\": %s", links ? "false" : "true");
        }
        tell(&machine, "\"done\": %s", late ? "false" : "true");
        _exit(0);       /* without the handlers of CUDA, which may hang */
}
