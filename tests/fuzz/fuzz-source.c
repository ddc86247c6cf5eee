/* SPDX-License-Identifier: Apache-2.0
 * source_decode(): whole user data. A failure has an error and leaves no document; a labelled part holds
 * maps. source_list_parse(): the lines of a list of sources. Each line that it takes can be read again. */
#include "base/str.h"
#include "source/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_list(const char *text) {
        _cleanup_(source_list_done) SourceList list = {}, again = {};
        _cleanup_(diag_done) Diag diag = {};
        int r = source_list_parse(text, "fuzz", &list, &diag);
        if ((r < 0) != (diag_count(&diag, false) > 0))
                abort();
        for (char **uri = list.uris; uri && *uri; uri++)
                if (source_list_parse(*uri, "fuzz", &again, &diag) < 0)
                        abort();
        if (strv_length(again.uris) != strv_length(list.uris))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _free_ char *text = xmemdup(data, size);
        _cleanup_(blobs_done) Blobs blobs = {};
        _cleanup_(documents_done) Documents documents = {};
        _cleanup_(diag_done) Diag diag = {};
        int r;

        as_list(text);
        blobs_add(&blobs, (Position){ "fuzz", 0, 1 }, xmemdup(data, size), size);
        r = source_decode(&blobs, &documents, &diag);
        if ((r < 0) != (diag_count(&diag, false) > 0) || (r < 0 && documents.n > 0))
                abort();
        for (size_t i = 0; i < documents.n; i++)
                if (!documents.items[i].root ||
                    (documents.items[i].at.part > 0 && documents.items[i].root->type != NODE_MAP))
                        abort();
        return 0;
}
