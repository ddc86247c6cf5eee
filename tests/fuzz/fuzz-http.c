/* SPDX-License-Identifier: Apache-2.0
 * A response in one piece, and the same bytes in pieces whose sizes the first byte chooses, must come to the
 * same end. */
#include "aws/internal.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        HttpResponse whole = {}, pieces = {};
        const char *text = (const char *)data + 1;
        int a = 0, b = 0;
        if (size < 1)
                return 0;
        size--;
        a = http_feed(&whole, text, size);
        for (size_t i = 0, n; i < size && b >= 0; i += n) {
                n = MIN((size_t)data[0] % 37 + 1, size - i);
                b = http_feed(&pieces, text + i, n);
        }
        if (a != b || (a >= 0 && (whole.status != pieces.status || whole.body.size != pieces.body.size ||
                                  whole.state != pieces.state)))
                abort();
        if (a == 0 && http_feed_end(&whole) == 1 && whole.state != HTTP_DONE)
                abort();
        if (whole.body.size > HTTP_MAX_BODY)
                abort();
        http_response_done(&whole);
        http_response_done(&pieces);

        _free_ char *address = xmemdup(text, size);
        _cleanup_(url_done) Url url = {};
        if (url_parse(address, &url) == 0 &&
            (!*url.host || strpbrk(url.authority, "\r\n /") || endswith(url.path, "/")))
                abort();
        return 0;
}
