/* SPDX-License-Identifier: Apache-2.0
 * A mount unit → what is mounted where. */
#include "base/str.h"
#include "host/detect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(freep) char *text = xmemdup(data, size);
        MountUnit u = {};

        if (mount_unit_parse(text, &u) && (!u.what || u.where[0] != '/' || strchr(u.where, '\n')))
                abort();
        free(u.what);
        free(u.where);
        return 0;
}
