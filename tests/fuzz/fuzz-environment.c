/* SPDX-License-Identifier: Apache-2.0
 * A patched /etc/eks/kubelet/environment → words → the line that taint-node writes → the same words. */
#include "base/str.h"
#include "plan/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(freep) char *text = xmemdup(data, size), *value = systemd_environment_value(text, "A");
        _cleanup_(strv_freep) char **words = systemd_split_words(value ?: text), **again = NULL;
        for (char **w = words; w && *w; w++)
                if (strpbrk(*w, "\n\r"))                /* nodestrap writes none, and a word of kubelet's has none */
                        return 0;
        _cleanup_(freep) char *quoted = systemd_quote_words(words), *line = xasprintf("A=%s\n", quoted), *back = systemd_environment_value(line, "A");
        again = systemd_split_words(back);
        if (strv_length(words) != strv_length(again))
                abort();
        for (size_t i = 0; i < strv_length(words); i++)
                if (!streq(words[i], again[i]))
                        abort();
        return 0;
}
