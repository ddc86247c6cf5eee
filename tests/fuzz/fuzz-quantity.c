/* SPDX-License-Identifier: Apache-2.0
 * A text of a user about resources → a quantity, and its canonical form, which means the same. */
#include "base/str.h"
#include "plan/planner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _free_ char *text = xmemdup(data, size);
        int64_t value, again;
        if (cpu_list_count(text) > 1U << 31)
                abort();
        if (quantity_parse(text, &value) < 0)
                return 0;
        if (value < 0 && *text != '-')
                abort();
        if (value < 0 || value > INT64_MAX - 1000)
                return 0;
        _free_ char *decimal = quantity_text(value, false), *binary = quantity_text(value, true);
        if (quantity_parse(decimal, &again) < 0 || again != value)
                abort();
        if (quantity_parse(binary, &again) < 0 || again < value || again - value > 999)
                abort();
        return 0;
}
