/* SPDX-License-Identifier: Apache-2.0
 * A file of /etc/default → the value of MIG_PARTITION. */
#include "base/str.h"
#include "host/detect.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(freep) char *text = xmemdup(data, size), *value = NULL, *again = NULL;
        int r = assignment_find(text, "MIG_PARTITION", &value);

        if (r < 0 ? r != -EINVAL || value : value && (!*value || strchr(value, '\n') || !strstr(text, "MIG_PARTITION=")))
                abort();
        if (value && !strchr(value, '\'')) {    /* what was read can be written and read again */
                _cleanup_(freep) char *line = xasprintf("MIG_PARTITION='%s'\n", value);
                if (assignment_find(line, "MIG_PARTITION", &again) < 0 || !streq(again, value))
                        abort();
        }
        return 0;
}
