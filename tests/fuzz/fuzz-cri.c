/* SPDX-License-Identifier: Apache-2.0
 * Bytes of containerd over HTTP/2 → does it serve CRI? Later bytes do not change a verdict, and the bytes may
 * arrive in any pieces. */
#include "apply/units/unit.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        int last = -EAGAIN;
        for (size_t n = 0; n <= MIN(size, 512u); n++) {
                int r = cri_answer(data, n);
                if ((r != 0 && r != 1 && r != -EBUSY && r != -EAGAIN) || (last != -EAGAIN && r != last))
                        abort();
                last = r;
        }
        return 0;
}
