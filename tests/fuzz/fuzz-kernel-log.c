/* SPDX-License-Identifier: Apache-2.0
 * Records of /dev/kmsg → findings, no two with the same word, address and text. Each has a sentence, and an
 * address as in sysfs or none. */
#include "base/str.h"
#include "health/health.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static char gpu[] = "0000:86:00.0";
        char *gpus[] = { gpu, NULL };
        _cleanup_(findings_done) Findings f = {};
        _free_ char *text = xmemdup(data, size);

        kernel_log_findings(text, size, gpus, &f);
        for (size_t i = 0; i < f.n; i++) {
                const Finding *one = &f.items[i];
                size_t n = strlen(one->address);
                if (!*one->text || strchr(one->text, '\n') || (n > 0 && (n < 12 || one->address[n - 2] != '.')))
                        abort();
                for (size_t j = 0; j < i; j++)
                        if (streq(f.items[j].text, one->text) && streq(f.items[j].address, one->address) &&
                            streq(f.items[j].word, one->word))
                                abort();
        }
        return 0;
}
