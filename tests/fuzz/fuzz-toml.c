/* SPDX-License-Identifier: Apache-2.0
 * Each parsed text must be written, and the written text must parse to the same value. Each key stands on a
 * line of the text. */
#include "base/str.h"
#include "doc/doc.h"

static void check_lines(const json_t *value, const TomlLines *lines, unsigned last) {
        const char *key;
        json_t *member;
        size_t i;
        json_object_foreach((json_t *)value, key, member) {
                unsigned line = toml_line(lines, key);
                if (line == 0 || line > last)
                        abort();
                check_lines(member, lines, last);
        }
        json_array_foreach(value, i, member)
                check_lines(member, lines, last);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        json_auto_t *value = NULL, *again = NULL;
        _free_ char *text = NULL;
        const char *why = NULL;
        unsigned line = 0, last = 1;
        _cleanup_(toml_lines_done) TomlLines lines = {};
        if (toml_parse_lines((const char *)data, size, &value, &lines, &line, &why) < 0) {
                if (!why || line == 0)
                        abort();
                return 0;
        }
        for (size_t i = 0; i < size; i++)
                last += data[i] == '\n';
        check_lines(value, &lines, last);
        if (toml_format(value, &text) < 0 || toml_parse(text, strlen(text), &again, &line, &why) < 0 ||
            !json_equal(value, again))
                abort();
        return 0;
}
