/* SPDX-License-Identifier: Apache-2.0
 * libcuda.so.1 without a GPU: the driver API as documented (https://docs.nvidia.com/cuda/cuda-driver-api),
 * which executes the PTX that it gets (ptx.h). FAKE_CUDA names a script, else it is /etc/fake-cuda. A process
 * reads it once. It has lines; # begins a comment. GPUs count from 0 in the script order, "all" is every one.
 * 3x means the first three times, after 3x the fourth time and later:
 *
 *   model NAME                     of the table below; default h100
 *   gpus N                         that many, at 0000:10:00.0, 0000:20:00.0 …; UUIDs as of the fake NVML
 *   gpu ADDRESS                    one more: gpu 0000:86:00.0
 *   memory GPU KIB                 default 1280
 *   used GPU KIB                   others have so much of it
 *   sms N                          multiprocessors of each, default 4
 *   driver N                       what cuDriverGetVersion() says, default 12080
 *   ptx VERSION                    the newest that the driver reads, default 8.7
 *   speed memory | host | peer GBPS [GPU [GPU]]    of all, of one GPU, of one pair
 *   speed product N [GPU]          instructions mma in a microsecond and multiprocessor, default 0.1
 *   noise PERCENT [SEED]           times are wrong by up to that; without a seed otherwise in each process
 *   no-peer GPU GPU                these two cannot reach each other
 *   needs PATH                     without it cuInit() is CUDA_ERROR_UNKNOWN
 *   error CALL CODE [GPU] [3x | after 3x]  CALL as in cuda.h without _v2
 *   hang CALL [GPU] [3x | after 3x]        it does not return
 *   endless kernel | copy GPU [after 3x]   it does not end: its stream is never ready
 *   lost GPU CODE [after 3x]       after so many kernels and copies each call for this GPU is CODE
 *   die N                          SIGKILL at call number N of the process
 *   calls PATH                     a line for each call goes there: its name and GPU (-1: none)
 *   flip GPU OFFSET BIT [after 3x] a bit of the byte at OFFSET of its memory changes once, when this byte has
 *                                  been written so often (default 1x)
 *   stuck GPU OFFSET BIT VALUE     this bit always is 0, or 1
 *   alias GPU OFFSET OTHER         kernels reach the word of 64 bits at OTHER where they address OFFSET
 *   wrong-sm GPU SM                one sum of each mma is too large there by 1/256
 *   sums backward | BITS           mma adds from the last product to the first; or keeps so many bits of sums
 *   steps N                        a kernel ends with LAUNCH_TIMEOUT after so many instructions of warps,
 *                                  default 20000000
 *
 * Memory is at hand in small amounts, and its contents are garbage when it is allocated. A call queues work.
 * Waiting for the stream or an event does it, and each question about them does one thing of it. Times are
 * those of a clock that each context has. They follow from bytes and speeds; no call and no launch costs
 * anything. Mma is slow as memory is small. An engine of a GPU does one thing at a time. One has kernels and
 * its own memory, two have the host, one has other GPUs. GPUs do not delay each other. Kernels have one
 * dimension. */
#include "ptx.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define API        __attribute__((visibility("default")))
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define GPUS_MAX   16
#define RULES_MAX  32
#define FAULTS_MAX 16
#define BLOCKS_MAX 256
#define FIRST      UINT64_C(0x7f0000000000) /* the memory of GPU 0, and 64 GiB further on that of the next */
#define GPU_SHIFT  36
#define ALIGNMENT  512
#define GARBAGE    0xa5

enum { /* CUresult, of cuda.h */
       OK = 0,
       INVALID_VALUE = 1,
       OUT_OF_MEMORY = 2,
       NOT_INITIALIZED = 3,
       NO_DEVICE = 100,
       INVALID_DEVICE = 101,
       INVALID_CONTEXT = 201,
       PEER_ACCESS_UNSUPPORTED = 217,
       INVALID_PTX = 218,
       UNSUPPORTED_PTX_VERSION = 222,
       INVALID_HANDLE = 400,
       NOT_FOUND = 500,
       NOT_READY = 600,
       ILLEGAL_ADDRESS = 700,
       LAUNCH_TIMEOUT = 702,
       PEER_ACCESS_ALREADY_ENABLED = 704,
       ILLEGAL_INSTRUCTION = 715,
       MISALIGNED_ADDRESS = 716,
       UNKNOWN = 999,
};
static const struct {
        unsigned code;
        const char *name, *text;
} results[] = {
        { OK, "CUDA_SUCCESS", "no error" },
        { INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
        { OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
        { NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
        { 46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "CUDA-capable device(s) is/are busy or unavailable" },
        { NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
        { INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
        { INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
        { 209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device" },
        { 214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered" },
        { PEER_ACCESS_UNSUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
          "peer access is not supported between these two devices" },
        { INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed" },
        { 220, "CUDA_ERROR_NVLINK_UNCORRECTABLE",
          "uncorrectable NVLink error detected during the execution" },
        { UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
          "the provided PTX was compiled with an unsupported toolchain." },
        { INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
        { NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
        { NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
        { ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered" },
        { LAUNCH_TIMEOUT, "CUDA_ERROR_LAUNCH_TIMEOUT", "the launch timed out and was terminated" },
        { PEER_ACCESS_ALREADY_ENABLED, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
          "peer access is already enabled" },
        { ILLEGAL_INSTRUCTION, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "an illegal instruction was encountered" },
        { MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address" },
        { 719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
        { 802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized" },
        { 803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
          "system has unsupported display driver / cuda driver combination" },
        { UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error" },
};

/* ---- models ----
 * Compute capability, then GB/s of memory, of the host and of NVLink in one direction, as in data sheets.
 * Peer access needs a speed of NVLink. */

typedef struct Model {
        const char *name, *title;
        int major, minor;
        double memory, host, peer;
} Model;
static const Model models[] = {
        { "h100", "NVIDIA H100 80GB HBM3", 9, 0, 3350, 55, 450 },
        { "h200", "NVIDIA H200", 9, 0, 4800, 55, 450 },
        { "a100-40", "NVIDIA A100-SXM4-40GB", 8, 0, 1555, 25, 300 },
        { "a100-80", "NVIDIA A100-SXM4-80GB", 8, 0, 2039, 25, 300 },
        { "b200", "NVIDIA B200", 10, 0, 8000, 55, 900 },
        { "b300", "NVIDIA B300 SXM6 AC", 10, 3, 8000, 110, 900 },
        { "gb200", "NVIDIA GB200", 10, 0, 8000, 200, 900 },
        { "gb300", "NVIDIA GB300", 10, 3, 8000, 200, 900 },
        { "rtx-pro-6000", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 12, 0, 1597, 55, 0 },
        { "l4", "NVIDIA L4", 8, 9, 300, 12, 0 },
        { "a10g", "NVIDIA A10G", 8, 6, 600, 25, 0 },
        { "t4", "Tesla T4", 7, 5, 320, 12, 0 },
        { "v100", "Tesla V100-SXM2-16GB", 7, 0, 900, 12, 150 },
};

/* ---- what there is ---- */

typedef struct Gpu Gpu;
typedef struct Event Event;
typedef struct Stream Stream;
typedef struct Context {
        Gpu *gpu;
        bool primary;
        unsigned users, peers, error; /* peers: bits of GPUs whose memory it reaches; error: it stays */
        double now;                   /* of the host, as far as it has waited */
        Stream *zero;
        struct Context *next;
} Context;
typedef struct Block {
        uint64_t offset, bytes;
        Context *context;
} Block;
typedef struct Fault {
        enum { FLIP, STUCK, ALIAS } kind;
        uint64_t offset, other;
        unsigned bit, value, writes, times;
} Fault;
struct Gpu {
        unsigned number;
        char address[40];
        unsigned char *memory;
        uint64_t size, used;
        Block blocks[BLOCKS_MAX];
        unsigned n_blocks, hit;
        Fault faults[FAULTS_MAX];
        unsigned n_faults;
        int wrong_sm;
        double speed, host, product;    /* GB/s: bytes a nanosecond; mma a microsecond */
        double compute, up, down, peer; /* busy until then */
        unsigned done, lost, lost_after, endless_after;
        char endless[8];
        Context *primary;
};
typedef struct Module {
        PtxModule *ptx;
        Context *context;
        struct Module *next;
} Module;
typedef struct Function {
        PtxKernel *kernel;
        Module *module;
        struct Function *next;
} Function;
typedef struct Side {
        int gpu;
        unsigned char *at;
} Side; /* gpu -1: the host */
typedef struct Op {
        enum { LAUNCH, COPY, SET, RECORD } kind;
        double issued;
        const PtxKernel *kernel;
        unsigned blocks, threads;
        uint64_t args[16];
        Side to, from;
        size_t bytes;
        void *staged;
        int value;
        Event *event;
        unsigned turn;
} Op;
struct Stream {
        Context *context;
        Op *ops;
        size_t n;
        bool alone; /* CU_STREAM_NON_BLOCKING */
        double clock;
        Stream *next;
};
struct Event {
        Context *context;
        Stream *stream;
        bool no_times;
        unsigned recorded, done; /* how often it was, and which of them have happened */
        double at;
        Event *next;
};
typedef struct Pinned {
        unsigned char *at;
        size_t bytes;
        struct Pinned *next;
} Pinned;
typedef struct Rule {
        char call[64];
        bool hang;
        unsigned code, first, n; /* n 0: always */
        int gpu;
        unsigned calls[GPUS_MAX + 1];
} Rule;

static struct {
        const Model *model;
        Gpu gpus[GPUS_MAX];
        unsigned n;
        double peer[GPUS_MAX][GPUS_MAX];
        Rule rules[RULES_MAX];
        unsigned n_rules;
        unsigned sms, driver, ptx, bits, calls, die;
        bool backward, initialised, read;
        double noise;
        uint64_t random, steps;
        char calls_path[256], needs[256];
        Context *contexts;
        Stream *streams;
        Event *events;
        Module *modules;
        Function *functions;
        Pinned *pinned;
} fake;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread Context *current;

_Noreturn static void broken(const char *what, const char *line) {
        fprintf(stderr, "fake libcuda: %s: %s\n", what, line);
        abort();
}

_Noreturn static void hang(void) {
        pthread_mutex_unlock(&lock);
        for (;;)
                pause();
}

/* ---- the script ---- */

static void set_model(const char *name) {
        for (size_t i = 0; i < COUNT(models); i++)
                if (strcmp(models[i].name, name) == 0) {
                        fake.model = &models[i];
                        return;
                }
        broken("no such model", name);
}

static void add_gpu(const char *address) {
        if (fake.n == GPUS_MAX)
                broken("too many GPUs", address);
        Gpu *g = &fake.gpus[fake.n];
        *g = (Gpu){ .number = fake.n++, .size = 1280 << 10, .wrong_sm = -1 };
        snprintf(g->address, sizeof g->address, "%s", address);
}

/* The words behind it until the line ends: a GPU, 3x, after 3x. */
static void add_rule(const char *call, bool hangs, const char *code, char *const *words) {
        Rule r = { .hang = hangs, .code = (unsigned)atoi(code), .gpu = -1 };
        snprintf(r.call, sizeof r.call, "%s", call);
        for (bool after = false; *words; words++) {
                unsigned n = (unsigned)atoi(*words);
                if (strcmp(*words, "after") == 0)
                        after = true;
                else if (!strchr(*words, 'x'))
                        r.gpu = (int)n;
                else if (after)
                        r.first = n;
                else
                        r.n = n;
        }
        if (fake.n_rules < RULES_MAX)
                fake.rules[fake.n_rules++] = r;
}

static void set_speed(const char *what, double speed, const char *first, const char *second) {
        for (unsigned i = 0; i < fake.n; i++) {
                bool one = !first || strcmp(first, "all") == 0 || (unsigned)atoi(first) == i;
                if (one && strcmp(what, "memory") == 0)
                        fake.gpus[i].speed = speed;
                if (one && strcmp(what, "host") == 0)
                        fake.gpus[i].host = speed;
                if (one && strcmp(what, "product") == 0)
                        fake.gpus[i].product = speed;
                for (unsigned k = 0; k < fake.n && strcmp(what, "peer") == 0; k++)
                        if (one && (!second || (unsigned)atoi(second) == k))
                                fake.peer[i][k] = fake.peer[k][i] = speed;
        }
}

static void add_fault(Gpu *g, const char *key, char *const *words) {
        Fault f = { .kind = *key == 'f' ? FLIP : *key == 's' ? STUCK : ALIAS };
        f.offset = strtoull(words[2], NULL, 0);
        f.other = strtoull(words[3], NULL, 0);
        f.bit = (unsigned)f.other;
        f.value = words[4] ? (unsigned)atoi(words[4]) : 0;
        f.times = f.kind == FLIP && words[4] && words[5] ? (unsigned)atoi(words[5]) : 1;
        if (f.offset >= g->size || g->n_faults == FAULTS_MAX)
                broken("no room for this fault", key);
        g->faults[g->n_faults++] = f;
}

/* A line that begins with a GPU behind the key. */
static bool gpu_line(Gpu *g, const char *key, char *const *words) {
        if (strcmp(key, "memory") == 0)
                g->size = strtoull(words[2], NULL, 0) << 10;
        else if (strcmp(key, "used") == 0)
                g->used = strtoull(words[2], NULL, 0) << 10;
        else if (strcmp(key, "lost") == 0) {
                g->lost = (unsigned)atoi(words[2]);
                g->lost_after = words[3] && words[4] ? (unsigned)atoi(words[4]) : 0;
        } else if (strcmp(key, "wrong-sm") == 0)
                g->wrong_sm = atoi(words[2]);
        else if (strcmp(key, "no-peer") == 0)
                fake.peer[g->number][atoi(words[2]) % GPUS_MAX] =
                        fake.peer[atoi(words[2]) % GPUS_MAX][g->number] = 0;
        else if (words[3] &&
                 (strcmp(key, "flip") == 0 || strcmp(key, "stuck") == 0 || strcmp(key, "alias") == 0))
                add_fault(g, key, words);
        else
                return false;
        return true;
}

static void script_line(char *line) {
        char *words[9] = {}, all[512], *save = NULL;
        unsigned n = 0;
        snprintf(all, sizeof all, "%s", line);
        for (char *word = strtok_r(line, " \n", &save); word && n < 8; word = strtok_r(NULL, " \n", &save))
                words[n++] = word;
        const char *key = words[0];
        if (!key || *key == '#')
                return;
        if (!words[1])
                broken("a word is missing", all);
        if (strcmp(key, "model") == 0)
                set_model(words[1]);
        else if (strcmp(key, "gpus") == 0)
                for (int i = 0; i < atoi(words[1]); i++) {
                        char address[40];
                        snprintf(address, sizeof address, "0000:%x0:00.0", i + 1);
                        add_gpu(address);
                }
        else if (strcmp(key, "gpu") == 0)
                add_gpu(words[1]);
        else if (strcmp(key, "sms") == 0)
                fake.sms = (unsigned)atoi(words[1]);
        else if (strcmp(key, "steps") == 0)
                fake.steps = strtoull(words[1], NULL, 0);
        else if (strcmp(key, "driver") == 0)
                fake.driver = (unsigned)atoi(words[1]);
        else if (strcmp(key, "ptx") == 0)
                fake.ptx = (unsigned)(atof(words[1]) * 10 + 0.5);
        else if (strcmp(key, "noise") == 0) {
                fake.noise = atof(words[1]) / 100;
                fake.random = words[2] ? strtoull(words[2], NULL, 0) : fake.random;
        } else if (strcmp(key, "speed") == 0 && words[2])
                set_speed(words[1], atof(words[2]), words[3], words[3] ? words[4] : NULL);
        else if (strcmp(key, "error") == 0 && words[2])
                add_rule(words[1], false, words[2], words + 3);
        else if (strcmp(key, "hang") == 0)
                add_rule(words[1], true, "0", words + 2);
        else if (strcmp(key, "die") == 0)
                fake.die = (unsigned)atoi(words[1]);
        else if (strcmp(key, "needs") == 0)
                snprintf(fake.needs, sizeof fake.needs, "%s", words[1]);
        else if (strcmp(key, "calls") == 0)
                snprintf(fake.calls_path, sizeof fake.calls_path, "%s", words[1]);
        else if (strcmp(key, "sums") == 0) {
                fake.backward |= *words[1] == 'b';
                fake.bits = *words[1] == 'b' ? fake.bits : (unsigned)atoi(words[1]);
        } else if (strcmp(key, "endless") == 0 && words[2] && (unsigned)atoi(words[2]) < fake.n) {
                Gpu *g = &fake.gpus[atoi(words[2])];
                snprintf(g->endless, sizeof g->endless, "%s", words[1]);
                g->endless_after = words[3] && words[4] ? (unsigned)atoi(words[4]) : 0;
        } else {
                bool good = words[2] != NULL;
                for (unsigned i = 0; good && i < fake.n; i++)
                        if (strcmp(words[1], "all") == 0 || (unsigned)atoi(words[1]) == i)
                                good = gpu_line(&fake.gpus[i], key, words);
                if (!good)
                        broken("what is this?", all);
        }
}

/* Twice: a model and GPUs come before what they have. */
static void script_read(void) {
        const char *script = getenv("FAKE_CUDA") ?: "/etc/fake-cuda";
        FILE *from = fopen(script, "re");
        char line[512], word[16];
        struct timespec t;
        if (!from)
                broken("no script", script);
        clock_gettime(CLOCK_MONOTONIC, &t);
        fake.random = (uint64_t)t.tv_nsec * 1000003 + (uint64_t)getpid();
        fake.sms = 4;
        fake.driver = 12080;
        fake.ptx = 87;
        fake.bits = 24;
        fake.steps = 20000000;
        set_model("h100");
        for (unsigned turn = 0; turn < 2; turn++, rewind(from)) {
                while (fgets(line, sizeof line, from))
                        if (sscanf(line, "%15s", word) == 1 &&
                            (strcmp(word, "model") == 0 || strcmp(word, "gpus") == 0 ||
                             strcmp(word, "gpu") == 0) == (turn == 0))
                                script_line(line);
                for (unsigned i = 0; turn == 0 && i < fake.n; i++) {
                        fake.gpus[i].speed = fake.model->memory;
                        fake.gpus[i].host = fake.model->host;
                        fake.gpus[i].product = 0.1;
                        for (unsigned k = 0; k < fake.n; k++)
                                fake.peer[i][k] = i == k ? 0 : fake.model->peer;
                }
        }
        fclose(from);
        fake.read = true;
}

/* ---- memory ---- */

static Gpu *gpu_at(uint64_t address) {
        uint64_t i = (address - FIRST) >> GPU_SHIFT;
        return address >= FIRST && i < fake.n ? &fake.gpus[i] : NULL;
}

static uint64_t offset_of(uint64_t address) {
        return (address - FIRST) & ((UINT64_C(1) << GPU_SHIFT) - 1);
}

static Block *block_at(Gpu *g, uint64_t offset, uint64_t bytes) {
        for (unsigned i = 0; i < g->n_blocks; i++) {
                unsigned k = (g->hit + i) % g->n_blocks;
                Block *b = &g->blocks[k];
                if (offset >= b->offset && bytes <= b->bytes && offset - b->offset <= b->bytes - bytes) {
                        g->hit = k;
                        return b;
                }
        }
        return NULL;
}

static void written(Gpu *g, uint64_t offset, uint64_t bytes) {
        for (unsigned i = 0; i < g->n_faults; i++) {
                Fault *f = &g->faults[i];
                if (f->offset < offset || f->offset - offset >= bytes)
                        continue;
                f->writes++;
                if (f->kind == FLIP && f->writes == f->times)
                        g->memory[f->offset] ^= (unsigned char)(1U << f->bit % 8);
                if (f->kind == STUCK) {
                        g->memory[f->offset] &= (unsigned char)~(1U << f->bit % 8);
                        g->memory[f->offset] |= (unsigned char)((f->value & 1) << f->bit % 8);
                }
        }
}

static uint64_t aliased(const Gpu *g, uint64_t offset) {
        for (unsigned i = 0; i < g->n_faults; i++)
                if (g->faults[i].kind == ALIAS && offset / 8 == g->faults[i].offset / 8)
                        return g->faults[i].other / 8 * 8 + offset % 8;
        return offset;
}

/* For kernels of the context: user. */
static unsigned char *kernel_reach(void *user, uint64_t address, unsigned bytes) {
        Context *c = user;
        Gpu *g = gpu_at(address);
        if (!g || (g != c->gpu && !(c->peers >> g->number & 1)))
                return NULL;
        uint64_t offset = aliased(g, offset_of(address));
        return block_at(g, offset, bytes) ? g->memory + offset : NULL;
}

static void kernel_written(void *user, uint64_t address, unsigned bytes) {
        (void)user;
        Gpu *g = gpu_at(address);
        if (g)
                written(g, aliased(g, offset_of(address)), bytes);
}

static uint64_t free_bytes(const Gpu *g) {
        uint64_t taken = g->used;
        for (unsigned i = 0; i < g->n_blocks; i++)
                taken += (g->blocks[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        return taken < g->size ? g->size - taken : 0;
}

/* The first gap; blocks are sorted by offset. */
static unsigned allocate(Context *c, uint64_t bytes, uint64_t *ret) {
        Gpu *g = c->gpu;
        uint64_t whole = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, at = 0;
        unsigned i = 0;
        if (bytes == 0)
                return INVALID_VALUE;
        if (whole < bytes || whole > free_bytes(g) || g->n_blocks == BLOCKS_MAX)
                return OUT_OF_MEMORY;
        for (; i < g->n_blocks && g->blocks[i].offset - at < whole; i++)
                at = g->blocks[i].offset + (g->blocks[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        if (at + whole > g->size)
                return OUT_OF_MEMORY;
        if (!g->memory)
                g->memory = mmap(NULL, g->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (g->memory == MAP_FAILED)
                broken("no memory", g->address);
        memmove(g->blocks + i + 1, g->blocks + i, (g->n_blocks++ - i) * sizeof *g->blocks);
        g->blocks[i] = (Block){ at, bytes, c };
        memset(g->memory + at, GARBAGE, bytes);
        *ret = FIRST + ((uint64_t)g->number << GPU_SHIFT) + at;
        return OK;
}

static void free_block(Gpu *g, unsigned i) {
        memmove(g->blocks + i, g->blocks + i + 1, (--g->n_blocks - i) * sizeof *g->blocks);
}

/* Where that many bytes of a device pointer lie; false: not in one allocation. */
static bool device_side(uint64_t address, uint64_t bytes, Side *ret) {
        Gpu *g = gpu_at(address);
        if (!g || !block_at(g, offset_of(address), bytes))
                return false;
        *ret = (Side){ (int)g->number, g->memory + offset_of(address) };
        return true;
}

/* ---- streams ---- */

static double noisy(double duration) {
        fake.random = fake.random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double share = (double)(fake.random >> 11) / (double)(UINT64_C(1) << 53);
        return duration * (1 + fake.noise * (2 * share - 1));
}

static void take_time(Stream *s, double issued, double *engine, double duration) {
        double start = s->clock > issued ? s->clock : issued;
        start = *engine > start ? *engine : start;
        s->clock = *engine = start + noisy(duration);
}

/* Has a context of either GPU enabled access to the other one? */
static bool peers(unsigned a, unsigned b) {
        for (const Context *c = fake.contexts; c; c = c->next)
                if ((c->gpu->number == a && c->peers >> b & 1) || (c->gpu->number == b && c->peers >> a & 1))
                        return true;
        return false;
}

static void copy(Stream *s, const Op *op) {
        Gpu *to = op->to.gpu < 0 ? NULL : &fake.gpus[op->to.gpu];
        Gpu *from = op->from.gpu < 0 ? NULL : &fake.gpus[op->from.gpu];
        double bytes = (double)op->bytes;
        memmove(op->to.at, op->staged ? op->staged : op->from.at, op->bytes);
        if (to)
                written(to, (uint64_t)(op->to.at - to->memory), op->bytes);
        double fast = to && from ? fake.peer[to->number][from->number] : 0, *engine = &s->context->gpu->peer;
        if (to && to == from)
                take_time(s, op->issued, &to->compute, 2 * bytes / to->speed);
        else if (to && from && fast > 0 && peers(to->number, from->number))
                take_time(s, op->issued, engine, bytes / fast);
        else if (to && from) /* through the host */
                take_time(s, op->issued, engine, bytes / from->host + bytes / to->host);
        else if (to)
                take_time(s, op->issued, &to->down, bytes / to->host);
        else if (from)
                take_time(s, op->issued, &from->up, bytes / from->host);
}

static unsigned launch(Stream *s, Op *op) {
        static const unsigned codes[] = { OK, ILLEGAL_INSTRUCTION, ILLEGAL_ADDRESS, MISALIGNED_ADDRESS,
                                          LAUNCH_TIMEOUT };
        Gpu *g = s->context->gpu;
        bool faulty = false;
        void *params[16];
        for (unsigned i = 0; i < COUNT(params); i++)
                params[i] = &op->args[i];
        for (unsigned i = 0; i < fake.n; i++)
                faulty |= fake.gpus[i].n_faults > 0;
        PtxMachine m = { .user = s->context,
                         .reach = kernel_reach,
                         .written = faulty ? kernel_written : NULL,
                         .sms = fake.sms,
                         .wrong_sm = g->wrong_sm,
                         .backward = fake.backward,
                         .bits = fake.bits,
                         .steps_max = fake.steps };
        int r = ptx_launch(&m, op->kernel, op->blocks, op->threads, params);
        double product = (double)m.mmas * 1000 / g->product / fake.sms, memory = (double)m.bytes / g->speed;
        take_time(s, op->issued, &g->compute, product > memory ? product : memory);
        return codes[r];
}

/* One thing; false: it is one that never ends. */
static bool stream_step(Stream *s) {
        Op op = s->ops[0];
        Gpu *g = s->context->gpu;
        bool work = op.kind != RECORD;
        const char *word = op.kind == LAUNCH ? "kernel" : "copy";
        if (work && strcmp(g->endless, word) == 0 && g->done >= g->endless_after)
                return false;
        memmove(s->ops, s->ops + 1, --s->n * sizeof *s->ops);
        if (work && g->lost && g->done >= g->lost_after)
                s->context->error = g->lost;
        g->done += work;
        if (s->context->error == OK && op.kind == LAUNCH)
                s->context->error = launch(s, &op);
        else if (s->context->error == OK && op.kind == COPY)
                copy(s, &op);
        else if (s->context->error == OK && op.kind == SET) {
                Gpu *to = &fake.gpus[op.to.gpu];
                memset(op.to.at, op.value, op.bytes);
                written(to, (uint64_t)(op.to.at - to->memory), op.bytes);
                take_time(s, op.issued, &to->compute, (double)op.bytes / to->speed);
        } else if (op.kind == RECORD) {
                op.event->done = op.turn;
                op.event->at = s->clock > op.issued ? s->clock : op.issued;
        }
        free(op.staged);
        return true;
}

static unsigned stream_finish(Stream *s) {
        while (s->n > 0)
                if (!stream_step(s))
                        hang();
        s->context->now = s->clock > s->context->now ? s->clock : s->context->now;
        return s->context->error;
}

static unsigned context_finish(Context *c) {
        for (Stream *s = fake.streams; s; s = s->next)
                if (s->context == c)
                        (void)stream_finish(s);
        return c->error;
}

/* The stream that has no handle waits for the others, and they for it. */
static void stream_push(Stream *s, Op op) {
        for (Stream *o = fake.streams; o; o = o->next)
                if (o != s && o->context == s->context && !o->alone && !s->alone &&
                    (s == s->context->zero || o == s->context->zero))
                        (void)stream_finish(o);
        op.issued = s->context->now;
        s->ops = realloc(s->ops, (s->n + 1) * sizeof *s->ops);
        s->ops[s->n++] = op;
}

static Stream *stream_new(Context *c, bool alone) {
        Stream *s = calloc(1, sizeof *s);
        *s = (Stream){ .context = c, .alone = alone, .clock = c->now, .next = fake.streams };
        return fake.streams = s;
}

/* ---- calls ---- */

#define FIND(list, item)                                                                                     \
        ({                                                                                                   \
                __typeof__(list) _at = (list);                                                               \
                while (_at && _at != (item))                                                                 \
                        _at = _at->next;                                                                     \
                _at;                                                                                         \
        })
#define TAKE_OUT(list, item)                                                                                 \
        do {                                                                                                 \
                __typeof__(&(list)) _at = &(list);                                                           \
                while (*_at != (item))                                                                       \
                        _at = &(*_at)->next;                                                                 \
                *_at = (item)->next;                                                                         \
                free(item);                                                                                  \
        } while (0)

/* Begins a call with the lock held; not OK: what the call returns, without the lock. */
static unsigned begin(const char *call, int gpu) {
        pthread_mutex_lock(&lock);
        if (!fake.read)
                script_read();
        if (*fake.calls_path) {
                FILE *to = fopen(fake.calls_path, "ae");
                if (to) {
                        fprintf(to, "%s %d\n", call, gpu);
                        fclose(to);
                }
        }
        if (++fake.calls == fake.die)
                (void)kill(getpid(), SIGKILL);
        unsigned code = fake.initialised || strcmp(call, "cuInit") == 0 ? OK : NOT_INITIALIZED;
        for (unsigned i = 0; code == OK && i < fake.n_rules; i++) {
                Rule *r = &fake.rules[i];
                if (strcmp(r->call, call) != 0 || (r->gpu >= 0 && r->gpu != gpu))
                        continue;
                unsigned n = r->calls[gpu < 0 ? GPUS_MAX : gpu]++;
                if (n < r->first || (r->n > 0 && n >= r->first + r->n))
                        continue;
                if (r->hang)
                        hang();
                code = r->code;
        }
        if (code != OK)
                pthread_mutex_unlock(&lock);
        return code;
}

static unsigned end(unsigned code) {
        pthread_mutex_unlock(&lock);
        return code;
}

#define FUNCTION(name, ...)                                                                                  \
        API unsigned name(__VA_ARGS__);                                                                      \
        API unsigned name(__VA_ARGS__)
#define BEGIN(call, gpu)                                                                                     \
        unsigned begun = begin(call, gpu);                                                                   \
        if (begun != OK)                                                                                     \
        return begun
#define END(code) return end(code)
#define WANT(condition, code)                                                                                \
        if (!(condition))                                                                                    \
        END(code)
/* A call that needs a context of this thread. */
#define BEGIN_CONTEXT(call)                                                                                  \
        BEGIN(call, current ? (int)current->gpu->number : -1);                                               \
        Context *c = FIND(fake.contexts, current);                                                           \
        WANT(c, INVALID_CONTEXT);                                                                            \
        WANT(c->error == OK, c->error)
#define BEGIN_DEVICE(call, device)                                                                           \
        BEGIN(call, device);                                                                                 \
        WANT(device >= 0 && (unsigned)device < fake.n, INVALID_DEVICE);                                      \
        Gpu *g = &fake.gpus[device]
/* A stream that may be NULL. */
#define STREAM(handle)                                                                                       \
        Stream *s = (handle) ? FIND(fake.streams, (Stream *)(handle)) : c->zero;                             \
        WANT(s, INVALID_HANDLE);                                                                             \
        WANT(s->context->error == OK, s->context->error)

typedef uint64_t Pointer; /* CUdeviceptr */

FUNCTION(cuInit, unsigned flags) {
        BEGIN("cuInit", -1);
        WANT(flags == 0, INVALID_VALUE);
        WANT(fake.n > 0, NO_DEVICE);
        WANT(!*fake.needs || access(fake.needs, F_OK) == 0, UNKNOWN);
        fake.initialised = true;
        END(OK);
}

FUNCTION(cuDriverGetVersion, int *ret) {
        WANT((pthread_mutex_lock(&lock), ret), INVALID_VALUE);
        if (!fake.read)
                script_read();
        *ret = (int)fake.driver;
        END(OK);
}

static unsigned result_find(unsigned code, const char **ret, bool name) {
        *ret = NULL;
        for (size_t i = 0; i < COUNT(results); i++)
                if (results[i].code == code)
                        *ret = name ? results[i].name : results[i].text;
        return *ret ? OK : INVALID_VALUE;
}

FUNCTION(cuGetErrorName, unsigned code, const char **ret) {
        return result_find(code, ret, true);
}

FUNCTION(cuGetErrorString, unsigned code, const char **ret) {
        return result_find(code, ret, false);
}

FUNCTION(cuDeviceGetCount, int *ret) {
        BEGIN("cuDeviceGetCount", -1);
        *ret = (int)fake.n;
        END(OK);
}

FUNCTION(cuDeviceGet, int *ret, int ordinal) {
        BEGIN_DEVICE("cuDeviceGet", ordinal);
        *ret = (int)g->number;
        END(OK);
}

FUNCTION(cuDeviceGetName, char *ret, int size, int device) {
        BEGIN_DEVICE("cuDeviceGetName", device);
        (void)g;
        snprintf(ret, (size_t)size, "%s", fake.model->title);
        END(OK);
}

/* The bytes of "GPU-…", as the fake NVML has it for this address. */
FUNCTION(cuDeviceGetUuid_v2, unsigned char ret[16], int device) {
        unsigned a[3] = {};
        BEGIN_DEVICE("cuDeviceGetUuid", device);
        (void)sscanf(g->address, "%x:%x:%x", &a[0], &a[1], &a[2]);
        memset(ret, 0, 16);
        for (unsigned i = 0; i < 4; i++)
                ret[10 + i] = (unsigned char)(a[0] >> (24 - 8 * i));
        ret[14] = (unsigned char)a[1];
        ret[15] = (unsigned char)a[2];
        END(OK);
}

FUNCTION(cuDeviceGetPCIBusId, char *ret, int size, int device) {
        BEGIN_DEVICE("cuDeviceGetPCIBusId", device);
        WANT(size > 12, INVALID_VALUE);
        snprintf(ret, (size_t)size, "%s", g->address);
        END(OK);
}

FUNCTION(cuDeviceTotalMem_v2, size_t *ret, int device) {
        BEGIN_DEVICE("cuDeviceTotalMem", device);
        *ret = g->size;
        END(OK);
}

/* CUdevice_attribute */
FUNCTION(cuDeviceGetAttribute, int *ret, int attribute, int device) {
        unsigned a[3] = {};
        BEGIN_DEVICE("cuDeviceGetAttribute", device);
        (void)sscanf(g->address, "%x:%x:%x", &a[0], &a[1], &a[2]);
        switch (attribute) {
        case 1:
                *ret = 1024;
                break; /* MAX_THREADS_PER_BLOCK */
        case 2:
                *ret = 1024;
                break; /* MAX_BLOCK_DIM_X */
        case 5:
                *ret = INT32_MAX;
                break; /* MAX_GRID_DIM_X */
        case 10:
                *ret = LANES;
                break; /* WARP_SIZE */
        case 16:
                *ret = (int)fake.sms;
                break; /* MULTIPROCESSOR_COUNT */
        case 17:
                *ret = 0;
                break; /* KERNEL_EXEC_TIMEOUT */
        case 18:
                *ret = 0;
                break; /* INTEGRATED */
        case 20:
                *ret = 0;
                break; /* COMPUTE_MODE: default */
        case 32:
                *ret = 1;
                break; /* ECC_ENABLED */
        case 33:
                *ret = (int)a[1];
                break; /* PCI_BUS_ID */
        case 34:
                *ret = (int)a[2];
                break; /* PCI_DEVICE_ID */
        case 39:
                *ret = 2048;
                break; /* MAX_THREADS_PER_MULTIPROCESSOR */
        case 40:
                *ret = 3;
                break; /* ASYNC_ENGINE_COUNT */
        case 41:
                *ret = 1;
                break; /* UNIFIED_ADDRESSING */
        case 50:
                *ret = (int)a[0];
                break; /* PCI_DOMAIN_ID */
        case 75:
                *ret = fake.model->major;
                break;
        case 76:
                *ret = fake.model->minor;
                break;
        default:
                END(INVALID_VALUE);
        }
        END(OK);
}

FUNCTION(cuDeviceCanAccessPeer, int *ret, int device, int peer) {
        BEGIN_DEVICE("cuDeviceCanAccessPeer", device);
        WANT(peer >= 0 && (unsigned)peer < fake.n, INVALID_DEVICE);
        *ret = fake.peer[g->number][peer] > 0;
        END(OK);
}

/* ---- contexts ---- */

static Context *context_new(Gpu *g, bool primary) {
        Context *c = calloc(1, sizeof *c);
        *c = (Context){ .gpu = g, .primary = primary, .users = 1, .next = fake.contexts };
        fake.contexts = c;
        c->zero = stream_new(c, false);
        return c;
}

static void context_free(Context *c) {
        Gpu *g = c->gpu;
        for (unsigned i = g->n_blocks; i-- > 0;)
                if (g->blocks[i].context == c)
                        free_block(g, i);
        for (Stream *s = fake.streams, *next; s; s = next) {
                next = s->next;
                if (s->context == c) {
                        for (size_t i = 0; i < s->n; i++)
                                free(s->ops[i].staged);
                        free(s->ops);
                        TAKE_OUT(fake.streams, s);
                }
        }
        for (Event *e = fake.events, *next; e; e = next) {
                next = e->next;
                if (e->context == c)
                        TAKE_OUT(fake.events, e);
        }
        if (current == c)
                current = NULL;
        TAKE_OUT(fake.contexts, c);
}

FUNCTION(cuDevicePrimaryCtxRetain, Context **ret, int device) {
        BEGIN_DEVICE("cuDevicePrimaryCtxRetain", device);
        WANT(!g->lost || g->done < g->lost_after, g->lost);
        if (g->primary)
                g->primary->users++;
        else
                g->primary = context_new(g, true);
        *ret = g->primary;
        END(OK);
}

FUNCTION(cuDevicePrimaryCtxRelease_v2, int device) {
        BEGIN_DEVICE("cuDevicePrimaryCtxRelease", device);
        WANT(g->primary, INVALID_CONTEXT);
        if (--g->primary->users == 0) {
                (void)context_finish(g->primary);
                context_free(g->primary);
                g->primary = NULL;
        }
        END(OK);
}

FUNCTION(cuCtxCreate_v2, Context **ret, unsigned flags, int device) {
        BEGIN_DEVICE("cuCtxCreate", device);
        (void)flags;
        WANT(!g->lost || g->done < g->lost_after, g->lost);
        *ret = current = context_new(g, false);
        END(OK);
}

FUNCTION(cuCtxDestroy_v2, Context *context) {
        BEGIN("cuCtxDestroy", FIND(fake.contexts, context) ? (int)context->gpu->number : -1);
        WANT(FIND(fake.contexts, context) && !context->primary, INVALID_CONTEXT);
        (void)context_finish(context);
        context_free(context);
        END(OK);
}

FUNCTION(cuCtxSetCurrent, Context *context) {
        BEGIN("cuCtxSetCurrent", -1);
        WANT(!context || FIND(fake.contexts, context), INVALID_CONTEXT);
        current = context;
        END(OK);
}

FUNCTION(cuCtxGetCurrent, Context **ret) {
        BEGIN("cuCtxGetCurrent", -1);
        *ret = FIND(fake.contexts, current);
        END(OK);
}

FUNCTION(cuCtxSynchronize, void) {
        BEGIN_CONTEXT("cuCtxSynchronize");
        END(context_finish(c));
}

FUNCTION(cuCtxEnablePeerAccess, Context *peer, unsigned flags) {
        BEGIN_CONTEXT("cuCtxEnablePeerAccess");
        WANT(flags == 0, INVALID_VALUE);
        WANT(FIND(fake.contexts, peer) && peer != c, INVALID_CONTEXT);
        WANT(fake.peer[c->gpu->number][peer->gpu->number] > 0, PEER_ACCESS_UNSUPPORTED);
        WANT(!(c->peers >> peer->gpu->number & 1), PEER_ACCESS_ALREADY_ENABLED);
        c->peers |= 1U << peer->gpu->number;
        END(OK);
}

API void fakeCudaReset(void);
/* For a test that goes on with another script: all is as in a new process. */
API void fakeCudaReset(void) {
        while (fake.contexts)
                context_free(fake.contexts);
        for (Function *f = fake.functions, *next; f; f = next) {
                next = f->next;
                free(f);
        }
        for (Module *m = fake.modules, *next; m; m = next) {
                next = m->next;
                ptx_free(m->ptx);
                free(m);
        }
        for (Pinned *p = fake.pinned, *next; p; p = next) {
                next = p->next;
                free(p->at);
                free(p);
        }
        for (unsigned i = 0; i < fake.n; i++)
                if (fake.gpus[i].memory)
                        munmap(fake.gpus[i].memory, fake.gpus[i].size);
        memset(&fake, 0, sizeof fake);
}

/* ---- memory ---- */

FUNCTION(cuMemGetInfo_v2, size_t *ret_free, size_t *ret_total) {
        BEGIN_CONTEXT("cuMemGetInfo");
        *ret_free = free_bytes(c->gpu);
        *ret_total = c->gpu->size;
        END(OK);
}

FUNCTION(cuMemAlloc_v2, Pointer *ret, size_t bytes) {
        BEGIN_CONTEXT("cuMemAlloc");
        END(allocate(c, bytes, ret));
}

FUNCTION(cuMemFree_v2, Pointer address) {
        BEGIN_CONTEXT("cuMemFree");
        Gpu *g = gpu_at(address);
        if (address == 0)
                END(OK);
        for (unsigned i = 0; g && i < g->n_blocks; i++)
                if (g->blocks[i].offset == offset_of(address)) {
                        unsigned code = context_finish(g->blocks[i].context);
                        free_block(g, i);
                        END(code);
                }
        END(INVALID_VALUE);
}

FUNCTION(cuMemAllocHost_v2, void **ret, size_t bytes) {
        BEGIN_CONTEXT("cuMemAllocHost");
        (void)c;
        Pinned *p = calloc(1, sizeof *p);
        *p = (Pinned){ aligned_alloc(4096, (bytes + 4095) / 4096 * 4096), bytes, fake.pinned };
        memset(p->at, GARBAGE, bytes);
        fake.pinned = p;
        *ret = p->at;
        END(OK);
}

FUNCTION(cuMemHostAlloc, void **ret, size_t bytes, unsigned flags) {
        if (flags & ~7U)
                return INVALID_VALUE;
        return cuMemAllocHost_v2(ret, bytes);
}

FUNCTION(cuMemFreeHost, void *at) {
        BEGIN_CONTEXT("cuMemFreeHost");
        Pinned *p = fake.pinned;
        while (p && p->at != at)
                p = p->next;
        WANT(p, INVALID_VALUE);
        (void)context_finish(c);
        free(p->at);
        TAKE_OUT(fake.pinned, p);
        END(OK);
}

static bool is_pinned(const unsigned char *at, size_t bytes) {
        for (const Pinned *p = fake.pinned; p; p = p->next)
                if (at >= p->at && at + bytes <= p->at + p->bytes)
                        return true;
        return false;
}

/* Pageable memory is read at once (cuda-driver-api, "API synchronization behavior"), and written when the
 * copy is done. */
static void queue_copy(Stream *s, Side to, Side from, size_t bytes) {
        Op op = { .kind = COPY, .to = to, .from = from, .bytes = bytes };
        if (from.gpu < 0 && !is_pinned(from.at, bytes))
                op.staged = memcpy(malloc(bytes + 1), from.at, bytes);
        stream_push(s, op);
}

FUNCTION(cuMemcpyHtoDAsync_v2, Pointer to, const void *from, size_t bytes, void *stream) {
        Side side;
        BEGIN_CONTEXT("cuMemcpyHtoDAsync");
        STREAM(stream);
        WANT(from && device_side(to, bytes, &side), INVALID_VALUE);
        queue_copy(s, side, (Side){ -1, (unsigned char *)from }, bytes);
        END(OK);
}

FUNCTION(cuMemcpyDtoHAsync_v2, void *to, Pointer from, size_t bytes, void *stream) {
        Side side;
        BEGIN_CONTEXT("cuMemcpyDtoHAsync");
        STREAM(stream);
        WANT(to && device_side(from, bytes, &side), INVALID_VALUE);
        queue_copy(s, (Side){ -1, to }, side, bytes);
        END(OK);
}

FUNCTION(cuMemcpyDtoDAsync_v2, Pointer to, Pointer from, size_t bytes, void *stream) {
        Side target, source;
        BEGIN_CONTEXT("cuMemcpyDtoDAsync");
        STREAM(stream);
        WANT(device_side(to, bytes, &target) && device_side(from, bytes, &source), INVALID_VALUE);
        queue_copy(s, target, source, bytes);
        END(OK);
}

FUNCTION(cuMemcpyPeerAsync, Pointer to, Context *to_context, Pointer from, Context *from_context,
         size_t bytes, void *stream) {
        Side target, source;
        BEGIN_CONTEXT("cuMemcpyPeerAsync");
        STREAM(stream);
        WANT(FIND(fake.contexts, to_context) && FIND(fake.contexts, from_context), INVALID_CONTEXT);
        WANT(device_side(to, bytes, &target) && device_side(from, bytes, &source), INVALID_VALUE);
        WANT(target.gpu == (int)to_context->gpu->number && source.gpu == (int)from_context->gpu->number,
             INVALID_VALUE);
        queue_copy(s, target, source, bytes);
        END(OK);
}

FUNCTION(cuMemcpyDtoH_v2, void *to, Pointer from, size_t bytes) {
        Side side;
        BEGIN_CONTEXT("cuMemcpyDtoH");
        WANT(to && device_side(from, bytes, &side), INVALID_VALUE);
        queue_copy(c->zero, (Side){ -1, to }, side, bytes);
        END(stream_finish(c->zero));
}

FUNCTION(cuMemcpyHtoD_v2, Pointer to, const void *from, size_t bytes) {
        Side side;
        BEGIN_CONTEXT("cuMemcpyHtoD");
        WANT(from && device_side(to, bytes, &side), INVALID_VALUE);
        queue_copy(c->zero, side, (Side){ -1, (unsigned char *)from }, bytes);
        END(stream_finish(c->zero));
}

FUNCTION(cuMemsetD8Async, Pointer to, unsigned char value, size_t bytes, void *stream) {
        Op op = { .kind = SET, .value = value, .bytes = bytes };
        BEGIN_CONTEXT("cuMemsetD8Async");
        STREAM(stream);
        WANT(device_side(to, bytes, &op.to), INVALID_VALUE);
        stream_push(s, op);
        END(OK);
}

/* ---- modules and launches ---- */

/* CU_JIT_ERROR_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES */
static void write_log(unsigned n, const int *options, void *const *values, const char *text) {
        char *buffer = NULL;
        size_t size = 0;
        for (unsigned i = 0; i < n; i++) {
                if (options[i] == 5)
                        buffer = values[i];
                if (options[i] == 6)
                        size = (size_t)(uintptr_t)values[i];
        }
        if (buffer && size > 0)
                snprintf(buffer, size, "ptxas application ptx input, %s\n", text);
}

FUNCTION(cuModuleLoadDataEx, Module **ret, const void *image, unsigned n, int *options, void **values) {
        char error[160] = "";
        BEGIN_CONTEXT("cuModuleLoadDataEx");
        WANT(ret && image, INVALID_VALUE);
        PtxModule *ptx = ptx_read(image, error);
        unsigned code = ptx ? OK : INVALID_PTX;
        if (ptx && ptx->version > fake.ptx) {
                snprintf(error, sizeof error, "line 1; fatal : Unsupported .version %u.%u", ptx->version / 10,
                         ptx->version % 10);
                code = UNSUPPORTED_PTX_VERSION;
        } else if (ptx && ptx->target > (unsigned)(fake.model->major * 10 + fake.model->minor)) {
                snprintf(error, sizeof error,
                         "fatal : SM version specified by .target is higher than that of the GPU");
                code = INVALID_PTX;
        }
        if (code != OK) {
                write_log(n, options, values, error);
                ptx_free(ptx);
                END(code);
        }
        Module *m = calloc(1, sizeof *m);
        *m = (Module){ ptx, c, fake.modules };
        *ret = fake.modules = m;
        END(OK);
}

FUNCTION(cuModuleUnload, Module *module) {
        BEGIN_CONTEXT("cuModuleUnload");
        WANT(FIND(fake.modules, module), INVALID_HANDLE);
        (void)context_finish(c);
        for (Function *f = fake.functions, *next; f; f = next) {
                next = f->next;
                if (f->module == module)
                        TAKE_OUT(fake.functions, f);
        }
        ptx_free(module->ptx);
        TAKE_OUT(fake.modules, module);
        END(OK);
}

FUNCTION(cuModuleGetFunction, Function **ret, Module *module, const char *name) {
        BEGIN_CONTEXT("cuModuleGetFunction");
        (void)c;
        WANT(FIND(fake.modules, module), INVALID_HANDLE);
        for (unsigned i = 0; i < module->ptx->n; i++)
                if (strcmp(module->ptx->kernels[i]->name, name) == 0) {
                        Function *f = calloc(1, sizeof *f);
                        *f = (Function){ module->ptx->kernels[i], module, fake.functions };
                        *ret = fake.functions = f;
                        END(OK);
                }
        END(NOT_FOUND);
}

FUNCTION(cuLaunchKernel, Function *f, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
         unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **params, void **extra) {
        BEGIN_CONTEXT("cuLaunchKernel");
        STREAM(stream);
        WANT(FIND(fake.functions, f) && f->module->context == s->context, INVALID_HANDLE);
        WANT(grid_x > 0 && grid_y > 0 && grid_z > 0 && block_x > 0 && block_y > 0 && block_z > 0,
             INVALID_VALUE);
        WANT(block_x <= 1024 && shared <= 48 << 10 && !extra && params, INVALID_VALUE);
        if (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1)
                broken("a kernel of more than one dimension", f->kernel->name);
        Op op = { .kind = LAUNCH, .kernel = f->kernel, .blocks = grid_x, .threads = block_x };
        for (unsigned i = 0; i < f->kernel->n_params; i++)
                memcpy(&op.args[i], params[i], f->kernel->params[i].type.width / 8);
        stream_push(s, op);
        END(OK);
}

/* ---- streams and events ---- */

FUNCTION(cuStreamCreate, Stream **ret, unsigned flags) {
        BEGIN_CONTEXT("cuStreamCreate");
        WANT(flags <= 1, INVALID_VALUE);
        *ret = stream_new(c, flags == 1);
        END(OK);
}

FUNCTION(cuStreamDestroy_v2, Stream *stream) {
        BEGIN_CONTEXT("cuStreamDestroy");
        WANT(FIND(fake.streams, stream) && stream != c->zero, INVALID_HANDLE);
        (void)stream_finish(stream);
        for (Event *e = fake.events; e; e = e->next)
                e->stream = e->stream == stream ? NULL : e->stream;
        free(stream->ops);
        TAKE_OUT(fake.streams, stream);
        END(OK);
}

FUNCTION(cuStreamSynchronize, void *stream) {
        BEGIN_CONTEXT("cuStreamSynchronize");
        STREAM(stream);
        END(stream_finish(s));
}

static unsigned stream_ask(Stream *s) {
        if (s->n > 0)
                (void)stream_step(s);
        if (s->n == 0)
                return stream_finish(s);
        return s->context->error != OK ? s->context->error : NOT_READY;
}

FUNCTION(cuStreamQuery, void *stream) {
        BEGIN_CONTEXT("cuStreamQuery");
        STREAM(stream);
        END(stream_ask(s));
}

FUNCTION(cuEventCreate, Event **ret, unsigned flags) {
        BEGIN_CONTEXT("cuEventCreate");
        Event *e = calloc(1, sizeof *e);
        *e = (Event){ .context = c, .no_times = flags & 2, .next = fake.events };
        *ret = fake.events = e;
        END(OK);
}

FUNCTION(cuEventDestroy_v2, Event *event) {
        BEGIN_CONTEXT("cuEventDestroy");
        (void)c;
        WANT(FIND(fake.events, event), INVALID_HANDLE);
        if (event->stream)
                (void)stream_finish(event->stream);
        TAKE_OUT(fake.events, event);
        END(OK);
}

FUNCTION(cuEventRecord, Event *event, void *stream) {
        BEGIN_CONTEXT("cuEventRecord");
        STREAM(stream);
        WANT(FIND(fake.events, event) && event->context == s->context, INVALID_HANDLE);
        event->stream = s;
        stream_push(s, (Op){ .kind = RECORD, .event = event, .turn = ++event->recorded });
        END(OK);
}

FUNCTION(cuEventQuery, Event *event) {
        BEGIN_CONTEXT("cuEventQuery");
        (void)c;
        WANT(FIND(fake.events, event), INVALID_HANDLE);
        WANT(event->context->error == OK, event->context->error);
        if (event->done != event->recorded && event->stream)
                (void)stream_step(event->stream);
        WANT(event->context->error == OK, event->context->error);
        if (event->done == event->recorded && event->at > event->context->now)
                event->context->now = event->at;
        END(event->done == event->recorded ? OK : NOT_READY);
}

FUNCTION(cuEventSynchronize, Event *event) {
        BEGIN_CONTEXT("cuEventSynchronize");
        (void)c;
        WANT(FIND(fake.events, event), INVALID_HANDLE);
        while (event->done != event->recorded)
                if (!stream_step(event->stream))
                        hang();
        if (event->at > event->context->now)
                event->context->now = event->at;
        END(event->context->error);
}

FUNCTION(cuEventElapsedTime, float *ret, Event *start, Event *stop) {
        BEGIN_CONTEXT("cuEventElapsedTime");
        (void)c;
        WANT(FIND(fake.events, start) && FIND(fake.events, stop) && start->context == stop->context,
             INVALID_HANDLE);
        WANT(start->recorded && stop->recorded && !start->no_times && !stop->no_times, INVALID_HANDLE);
        WANT(start->done == start->recorded && stop->done == stop->recorded, NOT_READY);
        *ret = (float)((stop->at - start->at) / 1e6);
        END(OK);
}
