/* SPDX-License-Identifier: Apache-2.0
 * A file of nodeadm or ours → the manager of an interface; and its MAC, by the file for networkd. */
#include "base/str.h"
#include "nic/nic.h"
#include "nic/plan/interface.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _free_ char *text = xstrndup((const char *)data, size), *mac = network_file_mac(text);
        _cleanup_(decision_done) Decision d = {};
        if (mac && !mac_is_valid(mac))
                abort();
        if (decision_parse((const char *)data, size, &d) < 0) {
                if (d.mac || d.name)
                        abort();        /* a part of a file that is not a decision */
                return 0;
        }
        if ((d.manager != MANAGER_NETWORKD && d.manager != MANAGER_CNI) || (d.mac && !mac_is_valid(d.mac)) ||
            (d.name && !interface_name_is_valid(d.name)))
                abort();
        return 0;
}
