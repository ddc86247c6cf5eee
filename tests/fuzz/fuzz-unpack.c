/* SPDX-License-Identifier: Apache-2.0
 * doc_unpack(): nothing larger than the limit comes out, and base64 survives the way back. */
#include "base/str.h"
#include "doc/doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Blob b = { .at = { "fuzz", 0, 1 }, .data = xmemdup(data, size), .size = size };
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *text = base64_encode(data, size), *back = NULL;
        size_t n;
        int r = doc_unpack(&b, &diag);

        if ((r >= 0 && b.size > DOC_MAX_BYTES) || (r < 0) != (diag.n > 0))
                abort();
        free(b.data);
        if (base64_decode(text, strlen(text), false, &back, &n) < 0 || n != size ||
            (n > 0 && memcmp(back, data, n) != 0))
                abort();
        return 0;
}
