/* SPDX-License-Identifier: Apache-2.0
 * The fake libcuda against the driver API as documented (https://docs.nvidia.com/cuda/cuda-driver-api), and
 * the faults that its script brings. */
#include "prove/kernels.h"

#include "fake-cuda.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { /* CUresult */
       OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, UNAVAILABLE = 46, NO_DEVICE = 100,
       INVALID_DEVICE = 101, INVALID_CONTEXT = 201, ECC = 214, NO_PEERS = 217, INVALID_PTX = 218, OLD = 222,
       INVALID_HANDLE = 400, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700, TIMEOUT = 702,
       ALREADY = 704, ILLEGAL_INSTRUCTION = 715, MISALIGNED = 716
};
#define SALT UINT64_C(0xfedcba9876543210)
#define WORDS UINT64_C(1024)

TEST(init_fails_without_a_device) {
        int n;
        ASSERT_EQ(cuda_script("# nothing\n")->init(0), NO_DEVICE);
        ASSERT_EQ(cuda_script("# nothing\n")->count(&n), NOT_INITIALIZED);
        ASSERT_EQ(cuda_script("gpus 1\nneeds /nonexistent\n")->init(0), 999);
        ASSERT_EQ(cuda_script("gpus 1\nneeds /dev/null\n")->init(0), OK);
}

TEST(devices_have_names_addresses_and_uuids) {
        const Cuda *c = cuda_begin("model b200\ngpus 1\ngpu 0001:86:1f.0\ndriver 13000\n");
        static const unsigned char first[16] = { [14] = 0x10 };
        static const unsigned char second[16] = { [13] = 1, 0x86, 0x1f };
        unsigned char uuid[16];
        char text[64];
        int n, device;
        ASSERT_EQ(c->init(1), INVALID_VALUE);
        ASSERT_EQ(c->version(&n), OK);
        ASSERT_EQ(n, 13000);
        ASSERT_EQ(c->count(&n), OK);
        ASSERT_EQ(n, 2);
        ASSERT_EQ(c->device(&device, 2), INVALID_DEVICE);
        ASSERT_EQ(c->device(&device, -1), INVALID_DEVICE);
        ASSERT_EQ(c->device(&device, 1), OK);
        ASSERT_EQ(c->name(text, sizeof text, device), OK);
        ASSERT_STREQ(text, "NVIDIA B200");
        ASSERT_EQ(c->bus(text, sizeof text, device), OK);
        ASSERT_STREQ(text, "0001:86:1f.0");
        ASSERT_EQ(c->bus(text, 12, device), INVALID_VALUE);
        ASSERT_EQ(c->uuid(uuid, 0), OK);
        ASSERT_TRUE(memcmp(uuid, first, 16) == 0);
        ASSERT_EQ(c->uuid(uuid, 1), OK);
        ASSERT_TRUE(memcmp(uuid, second, 16) == 0);
        ASSERT_EQ(c->attribute(&n, 75, 0), OK);
        ASSERT_EQ(n, 10);
        ASSERT_EQ(c->attribute(&n, 9999, 0), INVALID_VALUE);
}

TEST(errors_have_names) {
        const Cuda *c = cuda_begin("gpus 1\n");
        const char *text;
        ASSERT_EQ(c->error_name(ECC, &text), OK);
        ASSERT_STREQ(text, "CUDA_ERROR_ECC_UNCORRECTABLE");
        ASSERT_EQ(c->error_text(OUT_OF_MEMORY, &text), OK);
        ASSERT_STREQ(text, "out of memory");
        ASSERT_EQ(c->error_name(12345, &text), INVALID_VALUE);
        ASSERT_TRUE(!text);
}

TEST(contexts) {
        const Cuda *c = cuda_begin("gpus 2\n");
        void *one, *other, *stream;
        CudaPointer p;
        ASSERT_EQ(c->alloc(&p, 16), INVALID_CONTEXT);
        ASSERT_EQ(c->create(&one, 0, 2), INVALID_DEVICE);
        ASSERT_EQ(c->retain(&one, 0), OK);
        ASSERT_EQ(c->retain(&other, 0), OK);
        ASSERT_TRUE(one == other);
        ASSERT_EQ(c->alloc(&p, 16), INVALID_CONTEXT);
        ASSERT_EQ(c->set_current(one), OK);
        ASSERT_EQ(c->alloc(&p, 16), OK);
        ASSERT_EQ(c->destroy(one), INVALID_CONTEXT);
        ASSERT_EQ(c->release(0), OK);
        ASSERT_EQ(c->stream(&stream, 0), OK);
        ASSERT_EQ(c->release(0), OK);
        ASSERT_EQ(c->release(0), INVALID_CONTEXT);
        ASSERT_EQ(c->alloc(&p, 16), INVALID_CONTEXT);
        ASSERT_EQ(c->create(&one, 0, 1), OK);
        ASSERT_EQ(c->finish(stream), INVALID_HANDLE);
        ASSERT_EQ(c->destroy(one), OK);
        ASSERT_EQ(c->set_current(one), INVALID_CONTEXT);
}

static const Cuda *begin(const char *script) {
        const Cuda *c = cuda_begin(script);
        void *context;
        ASSERT_EQ(c->create(&context, 0, 0), OK);
        return c;
}

TEST(memory) {
        const Cuda *c = begin("gpus 2\nmemory 0 64\nused 0 16\nused 1 1280\n");
        CudaPointer a, b, d;
        unsigned char bytes[4];
        size_t free_bytes, total;
        void *context;
        ASSERT_EQ(c->memory(&free_bytes, &total), OK);
        ASSERT_EQ(free_bytes, 48 << 10);
        ASSERT_EQ(total, 64 << 10);
        ASSERT_EQ(c->alloc(&a, 0), INVALID_VALUE);
        ASSERT_EQ(c->alloc(&a, (48 << 10) + 1), OUT_OF_MEMORY);
        ASSERT_EQ(c->alloc(&a, SIZE_MAX), OUT_OF_MEMORY);
        ASSERT_EQ(c->alloc(&a, 20 << 10), OK);
        ASSERT_EQ(c->alloc(&b, 20 << 10), OK);
        ASSERT_EQ(c->alloc(&d, 10 << 10), OUT_OF_MEMORY);
        ASSERT_EQ(c->free(a), OK);
        ASSERT_EQ(c->free(a), INVALID_VALUE);
        ASSERT_EQ(c->free(b + 512), INVALID_VALUE);
        ASSERT_EQ(c->free(0), OK);
        ASSERT_EQ(c->alloc(&d, 10 << 10), OK);
        ASSERT_TRUE(d == a);
        ASSERT_EQ(c->to_host(bytes, d, 4, NULL), OK);
        ASSERT_EQ(c->finish(NULL), OK);
        ASSERT_EQ(bytes[0] | bytes[3], 0xa5);
        ASSERT_EQ(c->to_host(bytes, d + (10 << 10) - 3, 4, NULL), INVALID_VALUE);
        ASSERT_EQ(c->to_host(bytes, 4711, 4, NULL), INVALID_VALUE);
        ASSERT_EQ(c->create(&context, 0, 1), OK);
        ASSERT_EQ(c->memory(&free_bytes, &total), OK);
        ASSERT_EQ(free_bytes, 0);
        ASSERT_EQ(c->alloc(&a, 1), OUT_OF_MEMORY);
}

/* Queued work has not happened yet; a copy has read pageable memory anyway. */
TEST(queued_work_completes_after_a_wait) {
        const Cuda *c = begin("gpus 1\n");
        uint64_t pageable = 1, back = 0, *pinned;
        void *stream, *start, *stop;
        CudaPointer p;
        float ms;
        ASSERT_EQ(c->alloc(&p, 64), OK);
        ASSERT_EQ(c->alloc_host((void **)&pinned, 8), OK);
        ASSERT_EQ(c->stream(&stream, 1), OK);
        ASSERT_EQ(c->stream(&start, 2), INVALID_VALUE);
        ASSERT_EQ(c->event(&start, 0), OK);
        ASSERT_EQ(c->event(&stop, 0), OK);
        ASSERT_EQ(c->event_ask(start), OK);     /* nothing was recorded */
        ASSERT_EQ(c->elapsed(&ms, start, stop), INVALID_HANDLE);
        ASSERT_EQ(c->record(start, stream), OK);
        ASSERT_EQ(c->to_device(p, &pageable, 8, stream), OK);
        pageable = 2;
        ASSERT_EQ(c->to_host(&back, p, 8, stream), OK);
        ASSERT_EQ(c->record(stop, stream), OK);
        ASSERT_EQ(back, 0);
        ASSERT_EQ(c->elapsed(&ms, start, stop), NOT_READY);
        ASSERT_EQ(c->ask(stream), NOT_READY);
        ASSERT_EQ(c->event_ask(stop), NOT_READY);
        ASSERT_EQ(c->finish(stream), OK);
        ASSERT_EQ(c->ask(stream), OK);
        ASSERT_EQ(back, 1);
        ASSERT_EQ(c->elapsed(&ms, start, stop), OK);
        *pinned = 3;
        ASSERT_EQ(c->to_device(p, pinned, 8, stream), OK);
        *pinned = 4;
        ASSERT_EQ(c->to_host(&back, p, 8, stream), OK);
        ASSERT_EQ(c->record(stop, stream), OK);
        ASSERT_EQ(c->event_wait(stop), OK);
        ASSERT_EQ(back, 4);
        ASSERT_EQ(c->free_host(pinned), OK);
        ASSERT_EQ(c->free_host(pinned), INVALID_VALUE);
        ASSERT_EQ(c->stream_destroy(stream), OK);
        ASSERT_EQ(c->stream_destroy(stream), INVALID_HANDLE);
}

/* ---- modules ---- */

#define HEAD ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n" \
        ".reg .b64 %p, %q;\n.reg .b32 %a, %b;\n.reg .pred %c;\nld.param.u64 %p, [p];\n"
#define TAIL "ret;\n}\n"

#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#define FOUR "{%a,%a,%a,%a}"

static void *kernel(const Cuda *c, const char *body) {
        _free_ char *text = xasprintf("%s%s%s", HEAD, body, TAIL);
        void *module, *function;
        ASSERT_EQ(c->load(&module, text, 0, NULL, NULL), OK);
        ASSERT_EQ(c->function(&function, module, "k"), OK);
        return function;
}

static unsigned run(const Cuda *c, void *function, unsigned threads, CudaPointer p) {
        unsigned r = c->launch(function, 1, 1, 1, threads, 1, 1, 0, NULL, (void *[]){ &p }, NULL);
        return r ?: c->finish(NULL);
}

TEST(wrong_ptx_is_refused) {
        static const char *const bad[] = {
                "frob.u32 %a, %b;\n", "add.u64 %a, %a, 1;\n", "add.f32 %a, %a, %b;\n", "bra NOWHERE;\n",
                "mov.u32 %nothing, 1;\n", "mov.u32 %a, %tid.y;\n", "ld.shared.u32 %a, [%p];\n",
                "mov.u32 %a, 1\n",
                "st.global.u64 [%p], %a;\n", "setp.lo.s32 %c, %a, %b;\n", "@%a ret;\n", "add.u32 %a, %b;\n",
                "ld.param.u64 %q, [other];\n", ".reg .b32 %a;\n", "mul.wide.u64 %q, %p, %p;\n", "}\n",
                "red.global.or.u32 [%p], %a;\n", "mov.u32 %ctaid.x, 1;\n", "cvt.f32.u32 %a, %b;\n",
                "mma.sync.aligned.m16n8k16.row.row.f32.f16.f16.f32 " FOUR ", " FOUR ", {%a,%a}, " FOUR ";\n",
                MMA " {%a,%a,%a}, " FOUR ", {%a,%a}, " FOUR ";\n",
                MMA " " FOUR ", " FOUR ", {%a,%a}, {%a,%a};\n",
        };
        const Cuda *c = begin("gpus 1\n");
        char log[256] = "";
        int options[] = { 5, 6 };
        void *values[] = { log, NULL }, *module;
        size_t size = sizeof log;
        memcpy(&values[1], &size, sizeof size);
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                _free_ char *text = xasprintf("%s%s%s", HEAD, bad[i], TAIL);
                *log = 0;
                if (c->load(&module, text, 2, options, values) != INVALID_PTX || !*log)
                        FAIL("not refused: %s", bad[i]);
        }
        ASSERT_EQ(c->load(&module, HEAD "frob.u32 %a, %b;\n" TAIL, 2, options, values), INVALID_PTX);
        ASSERT_STREQ(log, "ptxas application ptx input, line 9; error : unknown instruction frob\n");
        ASSERT_EQ(c->load(&module, "", 2, options, values), INVALID_PTX);
        ASSERT_EQ(c->load(&module, prove_ptx, 0, NULL, NULL), OK);
        void *function;
        ASSERT_EQ(c->function(&function, module, "ns_none"), NOT_FOUND);
        ASSERT_EQ(c->unload(module), OK);
        ASSERT_EQ(c->unload(module), INVALID_HANDLE);
}

TEST(an_old_driver_refuses_newer_ptx) {
        const Cuda *c = begin("gpus 1\nptx 6.5\n");
        void *module;
        ASSERT_EQ(c->load(&module, prove_ptx, 0, NULL, NULL), OLD);
}

TEST(an_old_gpu_refuses_newer_ptx) {
        const Cuda *c = begin("model t4\ngpus 1\n");
        void *module;
        int n;
        ASSERT_EQ(c->load(&module, prove_ptx, 0, NULL, NULL), INVALID_PTX);
        ASSERT_EQ(c->attribute(&n, 75, 0), OK);
        ASSERT_EQ(n, 7);
}

/* An error of a kernel stays until the context is gone. */
static void ends_with(const char *body, unsigned threads, unsigned code) {
        const Cuda *c = cuda_begin("gpus 1\nsteps 1000\n");
        void *context;
        CudaPointer p;
        size_t n;
        ASSERT_EQ(c->create(&context, 0, 0), OK);
        ASSERT_EQ(c->alloc(&p, 64), OK);
        ASSERT_EQ(run(c, kernel(c, body), threads, p), code);
        ASSERT_EQ(c->memory(&n, &n), code);
        ASSERT_EQ(c->synchronize(), code);
        ASSERT_EQ(c->destroy(context), OK);
        ASSERT_EQ(c->create(&context, 0, 0), OK);
        ASSERT_EQ(c->memory(&n, &n), OK);
}

TEST(kernels_fail) {
        static const char mma[] = "mov.u32 %a, %tid.x;\nsetp.ne.u32 %c, %a, 5;\n@!%c bra OUT;\n"
                MMA " " FOUR ", " FOUR ", {%a,%a}, " FOUR ";\n"
                "OUT:\n";
        ends_with("ld.global.u64 %q, [%p+64];\n", 1, ILLEGAL_ADDRESS);
        ends_with("mov.u64 %p, 0;\nst.global.u32 [%p], 1;\n", 1, ILLEGAL_ADDRESS);
        ends_with("ld.global.u64 %q, [%p+4];\n", 1, MISALIGNED);
        ends_with("AGAIN:\nbra AGAIN;\n", 1, TIMEOUT);
        ends_with(mma, 32, ILLEGAL_INSTRUCTION);
        ends_with(mma, 31, ILLEGAL_INSTRUCTION);
}

TEST(launches_are_checked) {
        const Cuda *c = begin("gpus 1\n");
        void *f = kernel(c, "");
        CudaPointer p = 0;
        void *params[] = { &p };
        ASSERT_EQ(c->launch(f, 1, 1, 1, 1025, 1, 1, 0, NULL, params, NULL), INVALID_VALUE);
        ASSERT_EQ(c->launch(f, 0, 1, 1, 32, 1, 1, 0, NULL, params, NULL), INVALID_VALUE);
        ASSERT_EQ(c->launch(f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL), INVALID_VALUE);
        ASSERT_EQ(c->launch(&p, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), INVALID_HANDLE);
        ASSERT_EQ(c->launch(f, 1, 1, 1, 32, 1, 1, 0, &p, params, NULL), INVALID_HANDLE);
}

/* Lanes diverge and meet again; each adds its number to its word; signed and unsigned differ. */
TEST(kernels_execute) {
        const Cuda *c = begin("gpus 1\n");
        uint32_t words[16];
        CudaPointer p;
        ASSERT_EQ(c->alloc(&p, sizeof words), OK);
        ASSERT_EQ(c->set(p, 0, sizeof words, NULL), OK);
        void *f = kernel(c, "mov.u32 %a, %tid.x;\nand.b32 %b, %a, 1;\nsetp.eq.u32 %c, %b, 0;\n@%c bra EVEN;\n"
                            "red.global.add.u32 [%p], %a;\nbra MEET;\n"
                            "EVEN:\nred.global.add.u32 [%p+4], %a;\n"
                            "MEET:\nmov.u32 %a, %laneid;\nsub.u32 %a, %a, 1;\n"
                            "red.global.max.s32 [%p+8], %a;\nred.global.max.u32 [%p+12], %a;\n"
                            "shr.s32 %b, %a, 40;\nred.global.or.b32 [%p+16], %b;\n"
                            "shr.u32 %b, %a, 31;\nred.global.add.u32 [%p+20], %b;\n"
                            "shl.b32 %b, %a, 32;\nred.global.or.b32 [%p+24], %b;\n"
                            "mul.hi.s32 %b, %a, %a;\nred.global.or.b32 [%p+28], %b;\n"
                            "selp.b32 %b, 5, 7, %c;\nred.global.add.u32 [%p+32], %b;\n"
                            "cvt.s64.s32 %q, %a;\nred.global.min.s64 [%p+40], %q;\n"
                            "not.b32 %b, %a;\natom.global.exch.b32 %a, [%p+48], %b;\n");
        ASSERT_EQ(run(c, f, 32, p), OK);
        ASSERT_EQ(c->to_host(words, p, sizeof words, NULL), OK);
        ASSERT_EQ(c->finish(NULL), OK);
        ASSERT_EQ(words[0], 256);
        ASSERT_EQ(words[1], 240);
        ASSERT_EQ(words[2], 30);
        ASSERT_EQ(words[3], UINT32_MAX);
        ASSERT_EQ(words[4], UINT32_MAX);
        ASSERT_EQ(words[5], 1);
        ASSERT_EQ(words[6], 0);
        ASSERT_EQ(words[7], 0);
        ASSERT_EQ(words[8], 16 * 5 + 16 * 7);
        ASSERT_EQ(words[10], UINT32_MAX);
        ASSERT_EQ(words[11], UINT32_MAX);
        ASSERT_EQ(words[12], ~30U);
}

/* The bits of the f32 that is the sum of sixteen products of this f16 and 1. */
TEST(multiplies_all_kinds_of_f16) {
        static const struct { uint32_t half, sum; } cases[] = {
                { 0x3c00, 0x41800000 }, { 0xbc00, 0xc1800000 }, { 0x3555, 0x40aaa000 }, { 0x0000, 0 },
                { 0x0001, 0x35800000 }, { 0x8001, 0xb5800000 }, { 0x03ff, 0x3a7fc000 },
                { 0x0400, 0x3a800000 }, { 0x7bff, 0x497fe000 }, { 0x7c00, 0x7f800000 },
                { 0xfc00, 0xff800000 },
        };
        const Cuda *c = begin("gpus 1\n");
        CudaPointer p;
        uint32_t bits;
        ASSERT_EQ(c->alloc(&p, 4), OK);
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *body = xasprintf("mov.u32 %%a, 0x%x;\nmov.u32 %%b, 0x3c003c00;\n"
                                              ".reg .b32 %%d<4>;\nmov.u32 %%d0, 0;\nmov.u32 %%d1, 0;\n"
                                              "mov.u32 %%d2, 0;\nmov.u32 %%d3, 0;\n%s {%%d0,%%d1,%%d2,%%d3}, "
                                              "%s, {%%b,%%b}, {%%d0,%%d1,%%d2,%%d3};\n"
                                              "st.global.u32 [%%p], %%d3;\n",
                                              cases[i].half << 16 | cases[i].half, MMA, FOUR);
                ASSERT_EQ(run(c, kernel(c, body), 32, p), OK);
                ASSERT_EQ(c->to_host(&bits, p, 4, NULL), OK);
                ASSERT_EQ(c->finish(NULL), OK);
                if (bits != cases[i].sum)
                        FAIL("%x: %x, not %x", cases[i].half, bits, cases[i].sum);
        }
}

/* ---- times ---- */

static double copy_ms(const Cuda *c, CudaPointer to, void *to_context, CudaPointer from, void *from_context,
                      size_t n) {
        void *start, *stop;
        float ms = 0;
        ASSERT_EQ(c->event(&start, 0), OK);
        ASSERT_EQ(c->event(&stop, 0), OK);
        ASSERT_EQ(c->record(start, NULL), OK);
        ASSERT_EQ(c->to_peer(to, to_context, from, from_context, n, NULL), OK);
        ASSERT_EQ(c->record(stop, NULL), OK);
        ASSERT_EQ(c->event_wait(stop), OK);
        ASSERT_EQ(c->elapsed(&ms, start, stop), OK);
        return (double)ms;
}
#define ASSERT_NEAR(a, b) ({ double _a = (a), _b = (b);                                        \
        if (_a < 0.999 * _b || _a > 1.001 * _b) FAIL("%s is %g, want %g", #a, _a, _b); })

TEST(pairs_of_gpus_copy_at_their_speed) {
        const Cuda *c = cuda_begin("gpus 4\nspeed peer 100\nspeed peer 10 1 2\nspeed host 50\nno-peer 0 3\n");
        enum { N = 1000000 };
        void *contexts[4];
        CudaPointer p[4];
        unsigned char byte = 7, back[2] = {};
        int can;
        for (int i = 0; i < 4; i++) {
                ASSERT_EQ(c->create(&contexts[i], 0, i), OK);
                ASSERT_EQ(c->alloc(&p[i], N), OK);
        }
        ASSERT_EQ(c->can_reach(&can, 0, 3), OK);
        ASSERT_EQ(can, 0);
        ASSERT_EQ(c->can_reach(&can, 0, 1), OK);
        ASSERT_EQ(can, 1);
        ASSERT_EQ(c->set_current(contexts[0]), OK);
        ASSERT_EQ(c->to_device(p[0] + N - 1, &byte, 1, NULL), OK);
        ASSERT_EQ(c->reach(contexts[3], 0), NO_PEERS);
        ASSERT_NEAR(copy_ms(c, p[1], contexts[1], p[0], contexts[0], N), 1e-6 * 2 * N / 50);
        ASSERT_EQ(c->reach(contexts[1], 0), OK);
        ASSERT_EQ(c->reach(contexts[1], 0), ALREADY);
        ASSERT_NEAR(copy_ms(c, p[1], contexts[1], p[0], contexts[0], N), 1e-6 * N / 100);
        ASSERT_EQ(c->to_peer(p[1], contexts[0], p[0], contexts[0], N, NULL), INVALID_VALUE);
        ASSERT_EQ(c->set_current(contexts[2]), OK);
        ASSERT_EQ(c->reach(contexts[1], 0), OK);
        ASSERT_NEAR(copy_ms(c, p[2], contexts[2], p[1], contexts[1], N), 1e-6 * N / 10);
        ASSERT_EQ(c->to_host(back, p[2] + N - 1, 1, NULL), OK);
        ASSERT_EQ(c->finish(NULL), OK);
        ASSERT_EQ(back[0], 7);
        ASSERT_NEAR(copy_ms(c, p[2], contexts[2], p[2] + N / 2, contexts[2], N / 2), 1e-6 * N / 3350);
}

TEST(noise_changes_the_times) {
        const Cuda *c = begin("gpus 1\nspeed memory 1\nnoise 10 4711\n");
        void *context;
        CudaPointer p;
        double least = 10, most = 0;
        ASSERT_EQ(c->create(&context, 0, 0), OK);
        ASSERT_EQ(c->alloc(&p, 1000000), OK);
        for (int i = 0; i < 200; i++) {
                double ms = copy_ms(c, p, context, p + 500000, context, 500000);
                least = MIN(least, ms);
                most = MAX(most, ms);
        }
        ASSERT_TRUE(least >= 0.9 && least < 0.92 && most <= 1.1 && most > 1.08);
}

/* ---- faults ---- */

typedef struct Proof { uint64_t wrong, first, bits; } Proof;

/* Fills and verifies the first 8 KiB of this GPU once for each salt. */
static unsigned prove(const Cuda *c, int gpu, unsigned salts, Proof *ret) {
        void *context, *module, *fill, *verify;
        uint64_t words = WORDS, base, result;
        *ret = (Proof){ 0, UINT64_MAX, 0 };
        unsigned r = c->create(&context, 0, gpu);
        r = r ?: c->alloc(&base, WORDS * 8);
        r = r ?: c->alloc(&result, sizeof *ret);
        r = r ?: c->load(&module, prove_ptx, 0, NULL, NULL);
        r = r ?: c->function(&fill, module, "ns_fill");
        r = r ?: c->function(&verify, module, "ns_verify");
        r = r ?: c->to_device(result, ret, sizeof *ret, NULL);
        for (unsigned i = 0; r == 0 && i < salts; i++) {
                uint64_t salt = i % 2 ? ~SALT : SALT;
                void *params[] = { &base, &words, &salt, &result };
                r = c->launch(fill, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
                r = r ?: c->launch(verify, 4, 1, 1, 64, 1, 1, 0, NULL, params, NULL);
        }
        r = r ?: c->to_host(ret, result, sizeof *ret, NULL);
        return r ?: c->finish(NULL);
}

static void proves(const char *script, unsigned salts, uint64_t wrong, uint64_t first, uint64_t bits) {
        _free_ char *all = xasprintf("gpus 2\n%s", script);
        const Cuda *c = cuda_begin(all);
        Proof p;
        ASSERT_EQ(prove(c, 0, salts, &p), OK);
        ASSERT_EQ(p.wrong, 0);
        ASSERT_EQ(prove(c, 1, salts, &p), OK);
        if (p.wrong != wrong || p.first != first || p.bits != bits)
                FAIL("%s: %llu wrong from %lld on, bits %llx", script, (unsigned long long)p.wrong,
                     (long long)p.first, (unsigned long long)p.bits);
}

TEST(bits_flip) {
        proves("", 2, 0, UINT64_MAX, 0);
        proves("flip 1 0x103 5\n", 1, 1, 32, UINT64_C(1) << 29);
        proves("flip 1 0x103 5\n", 2, 1, 32, UINT64_C(1) << 29);
        proves("flip 1 0x103 5 after 2x\n", 1, 0, UINT64_MAX, 0);
        proves("flip 1 0x103 5 after 2x\n", 2, 1, 32, UINT64_C(1) << 29);
        proves("flip 1 0x103 5\nflip 1 0x1fff 7\n", 1, 2, 32, UINT64_C(1) << 29 | UINT64_C(1) << 63);
}

/* One of the two salts finds a bit that cannot change, whatever it is stuck at. */
TEST(bits_are_stuck) {
        proves("stuck 1 0x200 0 0\n", 2, 1, 64, 1);
        proves("stuck 1 0x200 0 1\n", 2, 1, 64, 1);
}

TEST(addresses_are_wrong) {
        uint64_t bits = prove_pattern(3, 0) ^ prove_pattern(700, 0);
        proves("alias 1 0x18 0x15e0\n", 1, 1, 3, bits);         /* the later one is in both words */
}

TEST(one_multiprocessor_computes_wrong) {
        const Cuda *c = begin("gpus 1\nsms 4\nwrong-sm 0 2\n");
        uint32_t rounds = 1, seed = 5;
        uint64_t out, sums[8] = {};
        void *module, *product;
        ASSERT_EQ(c->alloc(&out, sizeof sums), OK);
        ASSERT_EQ(c->set(out, 0, sizeof sums, NULL), OK);
        ASSERT_EQ(c->load(&module, prove_ptx, 0, NULL, NULL), OK);
        ASSERT_EQ(c->function(&product, module, "ns_product"), OK);
        void *params[] = { &out, &rounds, &seed };
        ASSERT_EQ(c->launch(product, 8, 1, 1, 32, 1, 1, 0, NULL, params, NULL), OK);
        ASSERT_EQ(c->to_host(sums, out, sizeof sums, NULL), OK);
        ASSERT_EQ(c->finish(NULL), OK);
        for (unsigned i = 0; i < 8; i++)
                ASSERT_EQ(sums[i] == prove_expected(i, rounds, seed), i % 4 != 2);
}

TEST(a_gpu_is_lost) {
        Proof p;
        size_t n;
        void *context;
        const Cuda *c = cuda_begin("gpus 2\nlost 1 46 after 3x\n");
        ASSERT_EQ(prove(c, 0, 2, &p), OK);
        ASSERT_EQ(prove(c, 1, 1, &p), UNAVAILABLE);
        ASSERT_EQ(c->memory(&n, &n), UNAVAILABLE);
        ASSERT_EQ(c->create(&context, 0, 1), UNAVAILABLE);
        ASSERT_EQ(c->create(&context, 0, 0), OK);
        c = cuda_begin("gpus 2\nlost 1 214\n");
        ASSERT_EQ(prove(c, 1, 1, &p), ECC);
}

TEST(calls_fail) {
        const Cuda *c = cuda_begin("gpus 3\nerror cuCtxCreate 2 1\nerror cuDeviceGet 46 2 after 2x\n"
                                   "error cuDeviceGetCount 999 2x\n");
        void *context;
        int n;
        ASSERT_EQ(c->create(&context, 0, 0), OK);
        ASSERT_EQ(c->create(&context, 0, 1), OUT_OF_MEMORY);
        ASSERT_EQ(c->device(&n, 2), OK);
        ASSERT_EQ(c->device(&n, 2), OK);
        ASSERT_EQ(c->device(&n, 2), UNAVAILABLE);
        ASSERT_EQ(c->device(&n, 1), OK);
        ASSERT_EQ(c->count(&n), 999);
        ASSERT_EQ(c->count(&n), 999);
        ASSERT_EQ(c->count(&n), OK);
}

/* The wait status of a process with this script, or -1 if it does not end soon. */
static int lives(const char *script) {
        Proof p;
        int status = -1;
        const Cuda *c = cuda_begin(script);
        fflush(stdout);
        pid_t pid = fork();
        ASSERT_TRUE(pid >= 0);
        if (pid == 0)
                _exit((int)prove(c, 0, 1, &p));
        for (int i = 0; i < 200; i++) {
                if (waitpid(pid, &status, WNOHANG) == pid)
                        return status;
                nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
        }
        kill(pid, SIGKILL);
        ASSERT_EQ(waitpid(pid, &status, 0), pid);
        return -1;
}

TEST(scripts_can_hang_and_die) {
        if (TRANSLATED_BY(""))
                SKIP("a tenth of a second says nothing here");
        ASSERT_EQ(lives("gpus 2\n"), 0);
        ASSERT_EQ(lives("gpus 2\nhang cuCtxCreate 1\n"), 0);
        ASSERT_EQ(lives("gpus 2\nhang cuCtxCreate 0\n"), -1);
        ASSERT_EQ(lives("gpus 2\nhang cuLaunchKernel after 1x\n"), -1);
        ASSERT_EQ(lives("gpus 2\nhang cuLaunchKernel after 2x\n"), 0);
        ASSERT_EQ(lives("gpus 2\nhang cuMemcpyDtoHAsync\n"), -1);
        ASSERT_EQ(lives("gpus 2\nendless kernel 0\n"), -1);
        ASSERT_EQ(lives("gpus 2\nendless copy 0\n"), -1);
        ASSERT_EQ(lives("gpus 2\nendless copy 1\n"), 0);
        ASSERT_EQ(lives("gpus 2\ndie 5\n"), SIGKILL);
}

TEST(endless_work_is_never_ready) {
        const Cuda *c = begin("gpus 1\nendless copy 0 after 1x\n");
        CudaPointer p;
        ASSERT_EQ(c->alloc(&p, 8), OK);
        ASSERT_EQ(c->set(p, 0, 8, NULL), OK);
        ASSERT_EQ(c->set(p, 1, 8, NULL), OK);
        for (int i = 0; i < 20; i++)
                ASSERT_EQ(c->ask(NULL), NOT_READY);
}

TEST(calls_are_listed) {
        char path[] = "/tmp/test-calls.XXXXXX", line[64];
        int fd = mkstemp(path), n;
        ASSERT_TRUE(fd >= 0);
        close(fd);
        _free_ char *script = xasprintf("gpus 2\ncalls %s\n", path);
        const Cuda *c = cuda_begin(script);
        ASSERT_EQ(c->device(&n, 1), OK);
        FILE *f = fopen(path, "re");
        unlink(path);
        ASSERT_TRUE(f && fgets(line, sizeof line, f));
        ASSERT_STREQ(line, "cuInit -1\n");
        ASSERT_TRUE(fgets(line, sizeof line, f));
        ASSERT_STREQ(line, "cuDeviceGet 1\n");
        fclose(f);
}

/* Eight GPUs of 1 MiB: filled and verified twice, and the product. */
TEST(the_fake_is_fast_enough) {
        const Cuda *c = cuda_begin("gpus 8\nmemory all 1100\nsms 2\n");
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        for (int gpu = 0; gpu < 8; gpu++) {
                uint64_t words = 1 << 17, base, result, salt = SALT;
                uint32_t rounds = 16, seed = 1;
                void *context, *module, *f[3];
                static const char *const names[] = { "ns_fill", "ns_verify", "ns_product" };
                ASSERT_EQ(c->create(&context, 0, gpu), OK);
                ASSERT_EQ(c->alloc(&base, words * 8), OK);
                ASSERT_EQ(c->alloc(&result, 4096), OK);
                ASSERT_EQ(c->load(&module, prove_ptx, 0, NULL, NULL), OK);
                for (int i = 0; i < 3; i++)
                        ASSERT_EQ(c->function(&f[i], module, names[i]), OK);
                for (int i = 0; i < 4; i++)
                        ASSERT_EQ(c->launch(f[i % 2], 8, 1, 1, 256, 1, 1, 0, NULL,
                                            (void *[]){ &base, &words, &salt, &result }, NULL),
                                  OK);
                ASSERT_EQ(c->launch(f[2], 8, 1, 1, 256, 1, 1, 0, NULL, (void *[]){ &result, &rounds, &seed },
                                    NULL),
                          OK);
                ASSERT_EQ(c->finish(NULL), OK);
        }
        clock_gettime(CLOCK_MONOTONIC, &b);
        long long ms = (long long)(b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000;
        printf("# %lld ms\n", ms);
        ASSERT_TRUE(ms < 20000 || TRANSLATED_BY(""));
}

TEST_MAIN
