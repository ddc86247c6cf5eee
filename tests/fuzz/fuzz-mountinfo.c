/* SPDX-License-Identifier: Apache-2.0
 * /proc/self/mountinfo → Mounts, and who is seen where. */
#include "base/str.h"
#include "host/detect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(freep) char *text = xmemdup(data, size);
        Storage s = {};
        int r = mounts_parse(text, &s, &diag);

        if ((r < 0) != (diag_first_error(&diag) != NULL))
                abort();
        for (size_t i = 0; i < s.n_mounts; i++) {
                const Mount *seen = storage_mount_at(&s, s.mounts[i].target),
                            *of = storage_mount_of(&s, s.mounts[i].target);
                if (s.mounts[i].target[0] != '/' || !*s.mounts[i].type ||
                    (seen && (!path_same(seen->target, s.mounts[i].target) || of != seen)))
                        abort();
        }
        storage_clear(&s);
        return 0;
}
