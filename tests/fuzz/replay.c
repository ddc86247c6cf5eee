/* SPDX-License-Identifier: Apache-2.0
 * main() of every fuzzer in `make check`: feeds it each file of tests/fuzz/corpus/NAME, or of the
 * directories that it is given, one TAP line a file. An empty corpus is a failure: a fuzzer without seeds
 * proves nothing. */
#include "base/root.h"
#include "base/str.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned n;

static bool replay(const Root *root, const char *dir, const char *name) {
        _free_ char *path = xasprintf("%s/%s", dir, name), *data = NULL;
        size_t size = 0;
        if (root_read(root, path, 8 << 20, &data, &size) < 0) {
                printf("not ok %u - %s cannot be read\n", ++n, name);
                return false;
        }
        /* An exact copy, so that a read past the end is seen by the sanitizer. */
        uint8_t *exact = xcalloc(size, 1);
        memcpy(exact, data, size);
        LLVMFuzzerTestOneInput(exact, size);
        free(exact);
        printf("ok %u - %s\n", ++n, name);
        return true;
}

int main(int argc, char **argv) {
        _cleanup_(root_freep) Root *root = NULL;
        const char *slash = strrchr(argv[0], '/');
        char *own = xasprintf("tests/fuzz/corpus/%s", slash && argc > 0 ? slash + 1 : argv[0]);
        char **dirs = argc > 1 ? argv + 1 : (char *[]){ own, NULL };
        bool well = root_new(".", &root) >= 0;
        if (!well)
                printf("not ok %u - this directory cannot be opened\n", ++n);
        for (; well && *dirs; dirs++) {
                _strv_ char **names = NULL;
                well = root_list(root, *dirs, &names) >= 0 && names;
                if (!well)
                        printf("not ok %u - %s is empty or missing\n", ++n, *dirs);
                for (char **name = names; well && *name; name++)
                        well = replay(root, *dirs, *name);
        }
        free(own);
        printf("1..%u\n", n);
        return !well;
}
