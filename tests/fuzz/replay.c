/* SPDX-License-Identifier: Apache-2.0
 * main() of every fuzzer in `make check`: feeds it each file of tests/fuzz/corpus/NAME, one TAP line a file.
 * An empty corpus is a failure: a fuzzer without seeds proves nothing. */
#include "base/root.h"
#include "base/str.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv) {
        _cleanup_(root_freep) Root *root = NULL;
        _cleanup_(strv_freep) char **names = NULL;
        const char *slash = strrchr(argv[0], '/');
        _cleanup_(freep) char *dir = xasprintf("/%s", slash && argc > 0 ? slash + 1 : argv[0]);

        if (root_new("tests/fuzz/corpus", &root) < 0 || root_list(root, dir, &names) < 0 || !names) {
                printf("1..1\nnot ok 1 - tests/fuzz/corpus%s is empty or missing\n", dir);
                return 1;
        }
        printf("1..%zu\n", strv_length(names));
        for (size_t i = 0; names[i]; i++) {
                _cleanup_(freep) char *path = xasprintf("%s/%s", dir, names[i]), *data = NULL;
                size_t size = 0;
                if (root_read(root, path, 8 << 20, &data, &size) < 0) {
                        printf("not ok %zu - %s cannot be read\n", i + 1, names[i]);
                        return 1;
                }
                /* An exact copy, so that a read past the end is seen by the sanitizer. */
                uint8_t *exact = xcalloc(size, 1);
                memcpy(exact, data, size);
                LLVMFuzzerTestOneInput(exact, size);
                free(exact);
                printf("ok %zu - %s\n", i + 1, names[i]);
        }
        return 0;
}
