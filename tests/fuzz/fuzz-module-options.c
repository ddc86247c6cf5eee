/* SPDX-License-Identifier: Apache-2.0
 * Any file of modprobe.d → its lines about some modules, with one blank between words. A second reading
 * gives the same. */
#include "apply/device.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _free_ char *text = xstrndup((const char *)data, size);
        _cleanup_(text_done) Text lines = {}, again = {};
        module_options_add(&lines, "F", text, "nvidia");
        if (!lines.data)
                return 0;
        _free_ char *plain = xcalloc(1, lines.size + 1);
        char *to = plain;
        for (const char *line = lines.data; *line; line = strchr(line, '\n') + 1) {
                if (!startswith(line, "F: ") || !strchr(line, '\n') || strstr(line, "  "))
                        abort();
                to = stpncpy(to, line + strlen("F: "), strcspn(line, "\n") + 1 - strlen("F: "));
        }
        module_options_add(&again, "F", plain, "nvidia");
        if (!again.data || !streq(again.data, lines.data))
                abort();
        _free_ char *file = module_options_changed(lines.data, "");
        if (!streq(file, "F"))
                abort();
        return 0;
}
