/* SPDX-License-Identifier: Apache-2.0
 * kernels.ptx, executed by the fake libcuda, must compute the same as C. Then the test changes each of its
 * instructions. Each change must change the results, unless `equal` lists it as equivalent, with the
 * reason. */
#include "prove/kernels.h"

#include "fake-cuda.h"

#define REGION 512      /* words, around what a kernel may reach */
#define BEFORE 8UL      /* words of the region before its base */
#define GBPS 1.0
#define GUARD 0x5a
#define GUARD_WORD UINT64_C(0x5a5a5a5a5a5a5a5a)

typedef struct Bench {
        const Cuda *cuda;
        void *context, *module, *fill, *verify, *product;
        void *start, *stop;
        CudaPointer region, result;
        uint64_t words[REGION];
} Bench;

/* 0, or the error. */
static unsigned bench_begin(Bench *b, const Cuda *cuda, const char *text) {
        *b = (Bench){ .cuda = cuda };
        ASSERT_EQ(cuda->create(&b->context, 0, 0), 0);
        ASSERT_EQ(cuda->alloc(&b->region, sizeof b->words), 0);
        ASSERT_EQ(cuda->alloc(&b->result, 8 * sizeof(uint64_t)), 0);
        ASSERT_EQ(cuda->event(&b->start, 0), 0);
        ASSERT_EQ(cuda->event(&b->stop, 0), 0);
        unsigned r = cuda->load(&b->module, text, 0, NULL, NULL);
        r = r ?: cuda->function(&b->fill, b->module, "ns_fill");
        r = r ?: cuda->function(&b->verify, b->module, "ns_verify");
        return r ?: cuda->function(&b->product, b->module, "ns_product");
}

static void bench_end(Bench *b) {
        if (b->module)
                (void)b->cuda->unload(b->module);
        ASSERT_EQ(b->cuda->destroy(b->context), 0);
}

static unsigned launch(Bench *b, void *function, unsigned blocks, unsigned threads, void **params) {
        unsigned r = b->cuda->record(b->start, NULL);
        r = r ?: b->cuda->launch(function, blocks, 1, 1, threads, 1, 1, 0, NULL, params, NULL);
        return r ?: b->cuda->record(b->stop, NULL);
}

/* The bytes of memory that the launch moved, by the time that it took. */
static unsigned moved(Bench *b, unsigned long *ret) {
        float ms = 0;
        unsigned r = b->cuda->elapsed(&ms, b->start, b->stop);
        *ret = (unsigned long)((double)ms * 1e6 * GBPS + 0.5);
        return r;
}

static unsigned take(Bench *b) {
        unsigned r = b->cuda->to_host(b->words, b->region, sizeof b->words, NULL);
        return r ?: b->cuda->finish(NULL);
}

static unsigned give(Bench *b) {
        unsigned r = b->cuda->to_device(b->region, b->words, sizeof b->words, NULL);
        return r ?: b->cuda->finish(NULL);
}

/* 0: as in C. 1: different. Anything else is an error of the API. */
static unsigned fills(Bench *b, uint64_t words, uint64_t salt, unsigned blocks, unsigned threads) {
        uint64_t base = b->region + BEFORE * 8;
        unsigned r = b->cuda->set(b->region, GUARD, sizeof b->words, NULL);
        r = r ?: launch(b, b->fill, blocks, threads, (void *[]){ &base, &words, &salt });
        unsigned long bytes = 0;
        r = r ?: take(b);
        r = r ?: moved(b, &bytes);
        r = r ?: bytes != words * 8;
        for (uint64_t i = 0; r == 0 && i < REGION; i++) {
                bool inside = i >= BEFORE && i - BEFORE < words;
                r = b->words[i] != (inside ? prove_pattern(i - BEFORE, salt) : GUARD_WORD);
        }
        return r;
}

typedef struct Wrong { uint64_t at, bits; } Wrong;

static unsigned verifies(Bench *b, uint64_t words, uint64_t salt, unsigned blocks, unsigned threads,
                         const Wrong *wrong, size_t n) {
        uint64_t base = b->region + BEFORE * 8, result[8], count = 0, first = UINT64_MAX, bits = 0;
        for (uint64_t i = 0; i < REGION; i++)
                b->words[i] = prove_pattern(i - BEFORE, salt);
        for (size_t i = 0; i < n; i++) {
                bool inside = wrong[i].at < words;
                b->words[BEFORE + wrong[i].at] ^= wrong[i].bits;
                count += inside;
                first = inside ? MIN(first, wrong[i].at) : first;
                bits |= inside ? wrong[i].bits : 0;
        }
        memset(result, GUARD, sizeof result);
        result[2] = 0;
        result[3] = UINT64_MAX;
        result[4] = 0;
        uint64_t at = b->result + 16;
        unsigned r = give(b);
        r = r ?: b->cuda->to_device(b->result, result, sizeof result, NULL);
        r = r ?: launch(b, b->verify, blocks, threads, (void *[]){ &base, &words, &salt, &at });
        r = r ?: b->cuda->to_host(result, b->result, sizeof result, NULL);
        r = r ?: b->cuda->finish(NULL);
        if (r != 0)
                return r;
        for (size_t i = 0; i < 8; i++)
                r |= (i < 2 || i > 4) && result[i] != GUARD_WORD;
        return r || result[2] != count || result[3] != first || result[4] != bits;
}

static unsigned multiplies(Bench *b, uint32_t rounds, uint32_t seed, unsigned blocks, unsigned threads) {
        uint64_t out = b->region + BEFORE * 8;
        unsigned warps = blocks * threads / 32;
        unsigned r = b->cuda->set(b->region, GUARD, sizeof b->words, NULL);
        r = r ?: b->cuda->set(out, 0, warps * 8UL, NULL);
        r = r ?: launch(b, b->product, blocks, threads, (void *[]){ &out, &rounds, &seed });
        r = r ?: take(b);
        for (unsigned i = 0; r == 0 && i < REGION; i++) {
                bool inside = i >= BEFORE && i - BEFORE < warps;
                r = b->words[i] != (inside ? prove_expected(i - BEFORE, rounds, seed) : GUARD_WORD);
        }
        return r;
}

static const unsigned shapes[][2] = { { 1, 1 }, { 1, 32 }, { 2, 32 }, { 1, 33 }, { 3, 96 }, { 7, 1024 } };
#define SALT UINT64_C(0x0123456789abcdef)
#define GPU "gpus 1\nmemory 0 64\nsteps 20000\nspeed memory 1\n"

TEST(the_fill_kernel_writes_the_same_as_c) {
        static const unsigned words[] = { 0, 1, 2, 31, 32, 33, 63, 64, 65, 100, 255, 256, 500, 504 };
        Bench b;
        ASSERT_EQ(bench_begin(&b, cuda_begin(GPU), prove_ptx), 0);
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                for (size_t k = 0; k < ARRAY_SIZE(shapes); k++)
                        for (uint64_t salt = 0; salt < 3; salt++)
                                ASSERT_EQ(fills(&b, words[i], salt == 2 ? ~SALT : salt * SALT, shapes[k][0],
                                                shapes[k][1]),
                                          0);
        bench_end(&b);
}

/* As for the memory of a whole GPU, the number of words is not a multiple of the grid. */
TEST(fill_and_verify_handle_more_words_than_threads) {
        const Cuda *c = cuda_begin("gpus 1\nmemory 0 1100\n");
        Bench b;
        uint64_t words = (1 << 17) + 77, salt = SALT, result[3] = { 0, UINT64_MAX, 0 }, *back, base, at;
        ASSERT_EQ(bench_begin(&b, c, prove_ptx), 0);
        ASSERT_EQ(c->alloc(&base, words * 8), 0);
        at = b.result;
        ASSERT_EQ(launch(&b, b.fill, 16, 256, (void *[]){ &base, &words, &salt }), 0);
        ASSERT_EQ(c->to_device(at, result, sizeof result, NULL), 0);
        ASSERT_EQ(launch(&b, b.verify, 16, 256, (void *[]){ &base, &words, &salt, &at }), 0);
        back = xcalloc(words, sizeof *back);
        ASSERT_EQ(c->to_host(back, base, words * 8, NULL), 0);
        ASSERT_EQ(c->to_host(result, at, sizeof result, NULL), 0);
        ASSERT_EQ(c->finish(NULL), 0);
        for (uint64_t i = 0; i < words; i++)
                if (back[i] != prove_pattern(i, salt))
                        FAIL("word %llu", (unsigned long long)i);
        ASSERT_EQ(result[0], 0);
        free(back);
        bench_end(&b);
}

static const Wrong some[] = {
        { 7, 1 }, { 39, 1 }, { 71, 0x8000000000000001 }, { 8, 1 },
        { 99, 0x10000 }, { 100, 0xff00 }, { 101, 6 },
};

TEST(the_verify_kernel_counts_the_same_as_c) {
        static const unsigned words[] = { 0, 1, 8, 64, 99, 100, 101, 102, 333, 400 };
        Bench b;
        ASSERT_EQ(bench_begin(&b, cuda_begin(GPU), prove_ptx), 0);
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                for (size_t k = 0; k < ARRAY_SIZE(shapes); k++)
                        for (size_t n = 0; n <= ARRAY_SIZE(some); n++)
                                ASSERT_EQ(verifies(&b, words[i], SALT, shapes[k][0], shapes[k][1], some, n),
                                          0);
        bench_end(&b);
}

static void multiplies_well(const char *script) {
        static const unsigned warps[][2] = { { 1, 32 }, { 1, 64 }, { 3, 96 }, { 2, 1024 } };
        static const uint32_t seeds[] = { 0, 1, 0xdeadbeef, UINT32_MAX };
        _free_ char *all = xasprintf(GPU "%s", script);
        Bench b;
        ASSERT_EQ(bench_begin(&b, cuda_begin(all), prove_ptx), 0);
        for (size_t i = 0; i < ARRAY_SIZE(seeds); i++)
                for (size_t k = 0; k < ARRAY_SIZE(warps); k++)
                        for (uint32_t rounds = 0; rounds < 4; rounds++)
                                ASSERT_EQ(multiplies(&b, rounds, seeds[i], warps[k][0], warps[k][1]), 0);
        ASSERT_EQ(multiplies(&b, 40, 99, 1, 32), 0);
        bench_end(&b);
}

TEST(the_product_kernel_computes_the_same_as_c) {
        multiplies_well("");
}

/* NVIDIA does not document the order of the sums of mma, nor how many bits a GPU keeps meanwhile. */
TEST(the_product_kernel_is_exact_in_any_order_of_sums) {
        multiplies_well("sums backward\n");
}
TEST(the_product_kernel_is_exact_with_18_bits) {
        multiplies_well("sums 18\n");
}

TEST(the_product_kernel_is_wrong_with_17_bits) {
        Bench b;
        ASSERT_EQ(bench_begin(&b, cuda_begin(GPU "sums 17\n"), prove_ptx), 0);
        ASSERT_EQ(multiplies(&b, 3, 1, 3, 96), 1);
        bench_end(&b);
}

TEST(neighbouring_words_have_different_patterns) {
        for (uint64_t i = 1; i < 1000; i++)
                ASSERT_TRUE(prove_pattern(i, SALT) != prove_pattern(i - 1, SALT));
        ASSERT_TRUE(prove_pattern(77, ~SALT) == ~prove_pattern(77, SALT));
}

/* ---- mutants ---- */

/* More words than there are: the kernel must run past the end of the memory. */
static unsigned runs_out(const Cuda *cuda, const char *text, bool verify) {
        uint64_t words = UINT64_C(1) << 63 | UINT64_C(1) << 32 | 1, salt = SALT;
        Bench b;
        unsigned r = bench_begin(&b, cuda, text);
        void *params[] = { &b.region, &words, &salt, &b.result };
        r = r ?: launch(&b, verify ? b.verify : b.fill, 1, 32, params);
        r = r ?: cuda->finish(NULL);
        bench_end(&b);
        return r == 700 ? 0 : r ?: 1;
}

/* The work of every mutant. Some threads have nothing to do, and some go through a loop several times. The
 * same bit and other bits are wrong twice in a thread, and in two threads. The base is not the region.
 * There are ten warps. */
static unsigned judge(const Cuda *cuda, const char *text) {
        static const Wrong twice[] = { { 5, 2 }, { 37, 2 }, { 6, 4 }, { 38, 8 }, { 64, 16 }, { 7, 2 } };
        Bench b;
        unsigned r = bench_begin(&b, cuda, text);
        r = r ?: fills(&b, 0, SALT, 1, 32);
        r = r ?: fills(&b, 64, SALT, 1, 32);
        r = r ?: fills(&b, 130, ~SALT, 2, 33);
        r = r ?: fills(&b, 333, SALT, 3, 64);
        r = r ?: verifies(&b, 0, SALT, 1, 32, NULL, 0);
        r = r ?: verifies(&b, 64, SALT, 1, 32, twice, ARRAY_SIZE(twice));
        r = r ?: verifies(&b, 130, ~SALT, 2, 33, some, ARRAY_SIZE(some));
        r = r ?: verifies(&b, 100, SALT, 3, 64, some, ARRAY_SIZE(some));
        r = r ?: verifies(&b, 333, SALT, 3, 64, some, 2);
        r = r ?: multiplies(&b, 0, 1, 1, 32);
        r = r ?: multiplies(&b, 1, 7, 5, 64);
        r = r ?: multiplies(&b, 2, 12345, 1, 64);
        r = r ?: multiplies(&b, 3, 0xdeadbeef, 3, 96);
        bench_end(&b);
        r = r ?: runs_out(cuda, text, false);
        return r ?: runs_out(cuda, text, true);
}

/* Equivalent mutants: a part of the old line, a part of the new one, and the reason. */
static const struct { const char *from, *to, *reason; } equal[] = {
        { "cvta.to.global", NULL, "generic addresses of global memory are the same" },
        { "ret;", NULL, "the text of the kernel ends there" },
        { "bra DONE", " ret;", "behind DONE there is only ret" },
        { "@%same bra DONE", NULL, "a thread without wrong words adds 0, and so on" },
        { "cvt.u64.u32 %i", "cvt.s64.s32 %i", "a block has less than 2^31 threads" },
        { "cvt.u64.u32", "cvt.u32.u32", "the register is longer and filled up with zeros" },
        { "mad.wide.u32 %i", "mad.wide.s32", "numbers of threads and blocks are below 2^31" },
        { "mul.wide.u32", "mul.wide.s32", "and so are numbers of warps" },
        { "shr.u32 %warp", "shr.s32", "and of all threads" },
        { "%sum, %sum, 0x9E3779B97F4A7C15", "0xde3779b97f4a7c15",
          "at the fourth word all lanes have the same lower two bits, and 32 times that is 0 here" },
};

static uint64_t last_number(const char *line) {
        const char *at = strrchr(line, ' ');
        return at ? strtoull(at, NULL, 0) : 0;
}

static bool is_equal(const char *from, const char *to) {
        uint64_t a = last_number(from), b = last_number(to);
        if (a == 0x83c083c0 && startswith(to, "and.b32"))
                return ((a ^ b) & ~0x3c003c00UL) == 0;          /* the next instruction sets these bits */
        if (a == 0x003fffc0 && startswith(to, "and.b32"))
                return ((a ^ b) & ~0x44000000UL) == 0;
        if (startswith(to, "mov.u64 %first, ") && b > REGION)
                return true;                                    /* more than the index of any word */
        return ANY(e, equal, ARRAY_SIZE(equal),
                   strstr(from, e->from) && (e->to ? strstr(to, e->to) != NULL : !*to));
}

typedef struct Mutants { const Cuda *cuda; unsigned n, errors, wrong, same, survived; } Mutants;

/* The statement at this place becomes another one. */
static void try_mutant(Mutants *m, const char *at, size_t length, const char *to) {
        _free_ char *from = xasprintf("%.*s", (int)length, at);
        if (streq(from, to) || (TRANSLATED_BY("") && m->n++ % 20 != 0))
                return;
        _free_ char *text = xasprintf("%.*s%s%s", (int)(at - prove_ptx), prove_ptx, to, at + length);
        unsigned r = judge(m->cuda, text);
        m->n++;
        m->errors += r > 1;
        m->wrong += r == 1;
        if (r == 0 && is_equal(from, to))
                m->same++;
        else if (r == 0) {
                m->survived++;
                printf("# survives: %s -> %s\n", from, *to ? to : "(gone)");
        }
}

/* Each place of a word becomes another word. */
static void swap_words(Mutants *m, const char *at, size_t length, const char *word, const char *other) {
        _free_ char *line = xasprintf("%.*s", (int)length, at);
        size_t n = strlen(word);
        for (char *found = line; (found = strstr(found, word)); found += n) {
                _free_ char *to = xasprintf("%.*s%s%s", (int)(found - line), line, other, found + n);
                try_mutant(m, at, length, to);
        }
}

static void change_opcode(Mutants *m, const char *at, size_t length) {
        static const char *const swaps[][2] = {
                { "add.", "sub." }, { "sub.", "add." }, { "and.", "or." }, { "and.", "xor." },
                { "or.b", "and.b" }, { "xor.", "or." }, { "xor.", "and." }, { ".or.b", ".xor.b" },
                { "shr.", "shl." }, { "shr.u", "shr.s" }, { "mul.lo", "mul.hi" }, { "mad.lo", "mad.hi" },
                { "mul.wide.u", "mul.wide.s" }, { "mad.wide.u", "mad.wide.s" },
                { "cvt.u64.u32", "cvt.s64.s32" }, { "min.", "max." }, { "min.u", "min.s" },
                { ".lt", ".le" }, { ".lt", ".gt" }, { ".lt", ".ne" }, { ".lt.u", ".lt.s" }, { ".eq", ".ne" },
                { ".ne", ".eq" }, { ".add.u", ".max.u" }, { "@", "@!" }, { "@!", "@" },
                { "bra DONE", "bra LOOP" }, { "bra LOOP", "bra DONE" }, { "bra NEXT", "bra DONE" },
                { "bra DONE", "ret" }, { "tid.x", "ctaid.x" }, { "ctaid.x", "tid.x" },
                { "ntid.x", "nctaid.x" }, { "nctaid.x", "ntid.x" }, { "+8]", "+16]" }, { "+16]", "+8]" },
                { "[base]", "[words]" }, { "[words]", "[salt]" }, { "[salt]", "[words]" },
                { "[result]", "[base]" }, { "[rounds]", "[seed]" }, { "[seed]", "[rounds]" },
                { ".u64", ".u32" }, { ".b64", ".b32" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(swaps); i++)
                swap_words(m, at, length, swaps[i][0], swaps[i][1]);
}

/* Numbers become their neighbours, and lose or gain a bit. */
static void change_numbers(Mutants *m, const char *at, size_t length) {
        for (const char *p = at; p < at + length; p++) {
                if (*p < '0' || *p > '9' || p[-1] != ' ')
                        continue;
                char *end;
                unsigned long long value = strtoull(p, &end, 0);
                for (unsigned bit = 0; bit < 64 && (bit < 2 || value >> (bit - 1) != 0); bit++) {
                        uint64_t other = bit == 0 ? value + 1 : value ^ 1ULL << (bit - 1);
                        _free_ char *to = xasprintf("%.*s0x%llx%.*s", (int)(p - at), at,
                                                    (unsigned long long)other, (int)(at + length - end), end);
                        try_mutant(m, at, length, to);
                }
                p = end;
        }
}

static size_t name_length(const char *at) {
        return 1 + strspn(at + 1, "abcdefghijklmnopqrstuvwxyz0123456789.");
}

/* Each register of a statement becomes each other one that the statement, or the one behind it, has. */
static void change_registers(Mutants *m, const char *at, size_t length) {
        const char *end = strchr(at + length + 1, ';') ?: at + length;
        for (const char *p = at; p < at + length; p++) {
                if (*p != '%')
                        continue;
                size_t n = name_length(p);
                for (const char *other = at; other < end; other++) {
                        if (*other != '%' || (name_length(other) == n && strncmp(p, other, n) == 0))
                                continue;
                        _free_ char *to = xasprintf("%.*s%.*s%.*s", (int)(p - at), at,
                                                    (int)name_length(other), other,
                                                    (int)(at + length - p - (ptrdiff_t)n), p + n);
                        try_mutant(m, at, length, to);
                }
        }
}

/* Names alone change nothing: under another name each kernel does what its text says. */
TEST(kernels_do_the_same_under_other_names) {
        const Cuda *c = cuda_begin(GPU);
        const char *fill = strstr(prove_ptx, "ns_fill("), *product = strstr(prove_ptx, "ns_product(");
        void *function;
        Bench b;
        ASSERT_TRUE(fill && product);
        _free_ char *text = xasprintf("%.*sxs%.*sns_fill%s", (int)(fill - prove_ptx), prove_ptx,
                                      (int)(product - fill - 2), fill + 2, product + strlen("ns_product"));
        ASSERT_EQ(bench_begin(&b, c, text), 500);       /* CUDA_ERROR_NOT_FOUND */
        ASSERT_EQ(c->function(&function, b.module, "ns_fill"), 0);
        b.product = function;
        ASSERT_EQ(c->function(&b.fill, b.module, "xs_fill"), 0);
        ASSERT_EQ(c->function(&b.verify, b.module, "ns_verify"), 0);
        ASSERT_EQ(fills(&b, 100, SALT, 3, 64), 0);
        ASSERT_EQ(multiplies(&b, 3, 7, 3, 96), 0);
        bench_end(&b);
}

TEST(no_mutant_of_the_kernels_survives) {
        Mutants m = { .cuda = cuda_begin(GPU) };
        unsigned statements = 0;
        ASSERT_EQ(judge(m.cuda, prove_ptx), 0);
        for (const char *at = prove_ptx; (at = strchr(at, '\n'));) {
                at += 1 + strspn(at + 1, " \n");
                const char *end = strchr(at, ';');
                if (!end || (*at != '@' && (*at < 'a' || *at > 'z')))
                        continue;
                size_t length = (size_t)(end + 1 - at);
                statements++;
                try_mutant(&m, at, length, "");
                change_opcode(&m, at, length);
                change_numbers(&m, at, length);
                change_registers(&m, at, length);
                at = end;
        }
        printf("# %u statements, %u mutants: %u wrong, %u errors, %u mean the same\n", statements, m.n,
               m.wrong, m.errors, m.same);
        ASSERT_TRUE(statements > 100 && m.n > 1000 && (m.wrong > 3000 || TRANSLATED_BY("")));
        ASSERT_EQ(m.survived, 0);
}

TEST_MAIN
