/* SPDX-License-Identifier: Apache-2.0
 * Lines of nodestrap-prove, maybe cut → findings and figures, each with a word and a sentence. */
#include "health/health.h"

#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static char first[] = "0000:10:00.0", second[] = "0000:20:00.0", third[] = "0000:30:00.0";
        char *gpus[] = { first, second, third, NULL };
        _free_ char *text = xstrndup((const char *)data, size);
        _cleanup_(findings_done) Findings f = {};
        json_t *found = prove_judge(&(ProveInput){ .text = text, .gpus = gpus, .users = "", .bandwidth = 3350, .links = true }, &f);
        for (size_t i = 0; i < f.n; i++)
                if (!*f.items[i].word || !*f.items[i].text || (f.items[i].unusable && f.items[i].harmless))
                        abort();
        if (json_array_size(json_object_get(found, "gpus")) > 3)
                abort();
        char *dump = json_dumps(found, 0);
        if (!dump)
                abort();
        free(dump);
        json_decref(found);
        return 0;
}
