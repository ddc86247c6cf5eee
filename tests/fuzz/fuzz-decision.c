/* SPDX-License-Identifier: Apache-2.0
 * A file of nodeadm's or ours → who manages an interface. */
#include "base/str.h"
#include "net/net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(decision_done) Decision d = {};
        if (decision_parse((const char *)data, size, &d) < 0) {
                if (d.mac || d.name)
                        abort();        /* something of what is no decision */
                return 0;
        }
        if ((d.manager != MANAGER_NETWORKD && d.manager != MANAGER_CNI) || (d.mac && !mac_is_valid(d.mac)) ||
            (d.name && !interface_name_is_valid(d.name)))
                abort();
        return 0;
}
