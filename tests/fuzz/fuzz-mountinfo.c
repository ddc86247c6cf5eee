/* SPDX-License-Identifier: Apache-2.0
 * /proc/self/mountinfo → Mounts, by libmount, and the visible mount of each path. */
#include "base/str.h"
#include "host/detect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *text = xmemdup(data, size);      /* fmemopen() takes no const */
        FILE *file = size > 0 ? fmemopen(text, size, "r") : NULL;
        Storage s = {};
        int r = file ? mounts_read(file, &s, &diag) : 0;

        if (file)
                fclose(file);
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
