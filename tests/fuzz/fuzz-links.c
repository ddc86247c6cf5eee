/* SPDX-License-Identifier: Apache-2.0
 * Answers of networkd or networkctl → links with a name and a state, or a refusal; and the state file of
 * one. */
#include "base/str.h"
#include "networkd/networkd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _free_ char *text = xmemdup(data, size);
        _cleanup_(links_done) Links links = {}, one = { .items = xcalloc(1, sizeof(Link)), .n = 1 };
        one.items[0] = link_from_state("eth0", 2, text);
        if (!one.items[0].setup || !one.items[0].operational)
                abort();
        if (links_parse((const char *)data, size, &links) < 0)
                return 0;
        for (size_t i = 0; i < links.n; i++)
                if (!*links.items[i].name || !links.items[i].setup || !links.items[i].operational)
                        abort();
        return 0;
}
