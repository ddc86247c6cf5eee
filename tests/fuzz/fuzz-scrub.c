/* SPDX-License-Identifier: Apache-2.0
 * secrets_scrub(): it ends, reads no byte too many, and its output has no
 * secret. The first line of the input is the secret. */
#include "redact/scrub.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const uint8_t *end = memchr(data, '\n', size);
        size_t n = end ? (size_t)(end - data) : 0, out_size;
        _cleanup_(secrets_done) Secrets s = {};
        _free_ char *secret = xstrndup((const char *)data, n), *bare = str_strip(secret);
        /* on the heap, so that a sanitizer sees what is read behind it */
        _free_ char *text = xmemdup(data + n, size - n);
        if (n < 256)                            /* what has a NUL ends there */
                secrets_add(&s, secret);
        _free_ char *out = secrets_scrub(&s, text, size - n, &out_size);
        bool told = n < 256;
        n = strlen(bare);
        /* the mark itself may contain the secret */
        if (told && n >= SECRET_MIN && !strpbrk(bare, "(hiden)[]\"") && memmem(out, out_size, bare, n))
                abort();
        return 0;
}
