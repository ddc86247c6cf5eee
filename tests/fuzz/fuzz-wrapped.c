/* SPDX-License-Identifier: Apache-2.0
 * wrapped_read(): files of other tools. A failure is explained; each item has a name and a place, and either
 * user data, a reason, or what its tool adds. instance_types_learn(): an answer of EC2 about instance types. */
#include "base/str.h"
#include "host/host.h"
#include "source/wrapped.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void complete(const Wrapped *w) {
        _cleanup_(documents_done) Documents documents = {};
        _cleanup_(diag_done) Diag diag = {};
        if (w->added && (wrapped_complete(w, &documents, &diag) < 0) != (diag_count(&diag, false) > 0))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Blob file = { .at = { "fuzz", 0, 1, 0 }, .data = xmemdup(data, size), .size = size };
        _cleanup_(wrapped_done) WrappedFile f = {};
        _cleanup_(diag_done) Diag diag = {}, types = {};
        Wrapped *chosen = NULL;
        int r = wrapped_read(&file, &f, &diag);
        if ((r < 0) != (diag_count(&diag, false) > 0) || (r < 0 && f.n > 0))
                abort();
        for (const Wrapped *w = f.items; w < f.items + f.n; w++) {
                if (!w->name || !w->place || (!w->blob.data && !w->why && !w->added) || !w->at.source)
                        abort();
                complete(w);
        }
        for (size_t turn = 0; f.n > 0 && turn <= f.n; turn++)
                if ((wrapped_choose(&f, NULL, turn, "fuzz", &chosen, &types) < 0) != (types.n > 0))
                        abort();
                else
                        diag_done(&types);
        if ((instance_types_learn(file.data, size, "fuzz", &types) < 0) != (diag_count(&types, false) > 0))
                abort();
        free(file.data);
        return 0;
}
