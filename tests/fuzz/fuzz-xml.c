/* SPDX-License-Identifier: Apache-2.0
 * The first line is the path, the rest the document. */
#include "base/str.h"
#include "doc/doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _strv_ char **texts = NULL;
        const uint8_t *line_end = size > 0 ? memchr(data, '\n', size) : NULL;
        if (!line_end)
                return 0;
        _free_ char *path = xmemdup(data, (size_t)(line_end - data));
        size_t rest = size - (size_t)(line_end + 1 - data);
        int r = xml_texts((const char *)line_end + 1, rest, path, &texts);
        if (r < 0 && texts)
                abort();
        for (char **t = texts; t && *t; t++)
                if (strlen(*t) > rest)
                        abort();
        return 0;
}
