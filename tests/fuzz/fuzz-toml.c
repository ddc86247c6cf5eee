/* SPDX-License-Identifier: Apache-2.0
 * What parses must be written, and what was written must parse to the same value. */
#include "base/str.h"
#include "doc/doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        json_auto_t *value = NULL, *again = NULL;
        _cleanup_(freep) char *text = NULL;
        const char *why = NULL;
        unsigned line = 0;
        if (toml_parse((const char *)data, size, &value, &line, &why) < 0) {
                if (!why || line == 0)
                        abort();
                return 0;
        }
        if (toml_format(value, &text) < 0 || toml_parse(text, strlen(text), &again, &line, &why) < 0 ||
            !json_equal(value, again))
                abort();
        return 0;
}
