/* SPDX-License-Identifier: Apache-2.0
 * Every text has a value or a reason, and the same one each time. */
#include "base/str.h"
#include "doc/doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const ExprVariable variables[] = {
                { "default_enis", 3 }, { "ips_per_eni", 6 }, { "max_pods", 17 }, { "highest", INT64_MAX }
        };
        _free_ char *text = xmemdup(data, size), *why = NULL, *again = NULL;
        int64_t value = 0, same = 0;
        int r = expr_evaluate(text, variables, ARRAY_SIZE(variables), &value, &why);
        int q = expr_evaluate(text, variables, ARRAY_SIZE(variables), &same, &again);
        if (r != q || value != same || (r < 0) != (why != NULL) || (why && !streq(why, again)))
                abort();
        return 0;
}
