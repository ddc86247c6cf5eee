/* SPDX-License-Identifier: Apache-2.0
 * A file for the support bundle → the same without its secrets. The first byte chooses the format. The
 * output has no value behind a key of a secret, and no environment of a unit. */
#include "redact/mask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CANARY "Xq7-canary-Zv2"

/* The same file with the canary where the input has '@'. */
static char *plant(const char *text, size_t size, size_t *ret_size) {
        Text t = {};
        for (size_t i = 0; i < size; i++)
                if (text[i] == '@')
                        text_add(&t, CANARY);
                else
                        text_add_bytes(&t, text + i, 1);
        *ret_size = t.size;
        return t.data ? text_take(&t) : xstrdup("");
}

static void check(MaskFormat format, const char *text, size_t size) {
        _cleanup_(secrets_done) Secrets s = {};
        _free_ char *out = NULL, *again = NULL, *scrubbed = NULL;
        size_t n, m;
        if (mask_file(&s, format, text, size, &out, &n) < 0)
                return;
        if (out[n] || (mask_file(&s, format, out, n, &again, &m) < 0 && format != MASK_TEXT))
                abort();        /* the output must have the format, too */
        scrubbed = secrets_scrub(&s, out, n, &n);
        if (format == MASK_JSON && startswith(text, "{\"password\":\"" CANARY "\",") &&
            !strstr(text + 4, "password") && memmem(scrubbed, n, CANARY, strlen(CANARY)))
                abort();
        if (format == MASK_UNIT && startswith(text, "Environment=A=" CANARY "\n") &&
            memmem(scrubbed, n, CANARY, strlen(CANARY)))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        size_t n;
        if (size < 1)
                return 0;
        _free_ char *text = plant((const char *)data + 1, size - 1, &n);
        check((MaskFormat)(data[0] % 6), text, n);
        return 0;
}
