/* SPDX-License-Identifier: Apache-2.0
 * What networkd or networkctl say of links is links with a name and a state, or refused. */
#include "net/networkd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(links_done) Links links = {};
        if (links_parse((const char *)data, size, &links) < 0)
                return 0;
        for (size_t i = 0; i < links.n; i++)
                if (!*links.items[i].name || !links.items[i].setup || !links.items[i].operational)
                        abort();
        return 0;
}
