/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A test file is a list of TEST(name) { ... } blocks and then TEST_MAIN; its output is TAP. The first failure
 * ends the file. The order of the blocks is the linker's: no test may depend on it. */
#include "base/macro.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Test { const char *name; void (*run)(void); } Test;
static const char *test_name;
_unused_ static const char *test_skipped;
static int test_number;

#define TEST(n)                                                                                \
        static void test_##n(void);                                                            \
        __attribute__((section("tests"), used, retain, aligned(sizeof(void *))))               \
        static const Test entry_##n = { #n, test_##n };                                        \
        static void test_##n(void)

#define FAIL(format, ...) ({                                                                   \
        printf("not ok %d - %s\n# %s:%d: " format "\n", test_number, test_name, __FILE__, __LINE__, \
               ##__VA_ARGS__);                                                                        \
        exit(1); })
/* Ends the test here: what it needs is not on this machine. */
#define SKIP(reason) ({ test_skipped = (reason); return; })
/* "valgrind" or "qemu-user", where that runs the instructions of the test (tests/run/valgrind.sh, tests/tools/cross.sh). Both
 * run vfork() as fork(), so that a program that cannot be executed is one that ends with 127. */
#define TRANSLATED_BY(name) ({ const char *_by = getenv("NODESTRAP_TRANSLATED"); _by && (!*(name) || strcmp(_by, (name)) == 0); })
#define SKIP_IF_VFORK_FORKS() ({ if (TRANSLATED_BY("")) SKIP("vfork() is fork() here, which hides that a program cannot be executed"); })
#define ASSERT_TRUE(x)     ({ if (!(x)) FAIL("%s", #x); })
#define ASSERT_OK(x)       ({ int _r = (x); if (_r < 0) FAIL("%s: %s", #x, strerror(-_r)); _r; })
#define ASSERT_ERROR(x, e) ({ int _r = (x); if (_r != -(e)) FAIL("%s is %d, want -%s", #x, _r, #e); })
#define ASSERT_EQ(a, b) ({ long long _a = (long long)(a), _b = (long long)(b);                 \
        if (_a != _b) FAIL("%s is %lld, want %lld", #a, _a, _b); })
#define ASSERT_STREQ(a, b) ({ const char *_a = (a), *_b = (b);                                 \
        if (!_a || !_b || strcmp(_a, _b) != 0)                                                 \
                FAIL("%s is \"%s\", want \"%s\"", #a, _a ?: "(null)", _b ?: "(null)"); })
#define ASSERT_CONTAINS(a, b) ({ const char *_a = (a), *_b = (b);                              \
        if (!_a || !strstr(_a, _b)) FAIL("%s is \"%s\" and lacks \"%s\"", #a, _a ?: "(null)", _b); })

#define TEST_MAIN                                                                              \
        extern const Test __start_tests[], __stop_tests[];                                     \
        int main(void) {                                                                       \
                setvbuf(stdout, NULL, _IOLBF, 0);                                              \
                printf("1..%td\n", __stop_tests - __start_tests);                              \
                for (const Test *t = __start_tests; t < __stop_tests; t++) {                   \
                        test_name = t->name;                                                   \
                        test_number++;                                                         \
                        test_skipped = NULL;                                                   \
                        t->run();                                                              \
                        printf("ok %d - %s%s%s\n", test_number, t->name,                       \
                               test_skipped ? " # SKIP " : "", test_skipped ?: "");            \
                }                                                                              \
                return 0;                                                                      \
        }
