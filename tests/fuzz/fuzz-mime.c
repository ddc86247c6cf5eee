/* SPDX-License-Identifier: Apache-2.0
 * mime_split(): the parts are in order and end with NUL, and failures are explained. */
#include "base/str.h"
#include "doc/doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Blob message = { .at = { "fuzz", 0, 1 }, .data = xmemdup(data, size), .size = size };
        _cleanup_(blobs_done) Blobs parts = {};
        _cleanup_(diag_done) Diag diag = {};
        unsigned last = 0;
        bool is_mime;
        int r = mime_split(&message, "application/node.eks.aws", &parts, &is_mime, &diag);

        if ((r < 0) != (diag_count(&diag, false) > 0) || (r < 0 && parts.n > 0) ||
            (r >= 0 && !is_mime && parts.n != 1))
                abort();
        for (size_t i = 0; is_mime && i < parts.n; i++) {
                if (parts.items[i].at.part <= last || parts.items[i].at.line == 0 ||
                    parts.items[i].data[parts.items[i].size] != '\0')
                        abort();
                last = parts.items[i].at.part;
        }
        free(message.data);
        return 0;
}
