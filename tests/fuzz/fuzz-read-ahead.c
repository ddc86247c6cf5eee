/* SPDX-License-Identifier: Apache-2.0
 * A list of nodestrap-read-ahead in /list of a machine (tree.h) → rows, each with a verdict on its condition and a pattern. */
#include "tree.h"

#include "readahead/list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        if (size > MAX_INPUT)
                return 0;
        Tree tree = tree_new();
        _free_ char *text = NULL;
        ListRow row = {};
        tree_unpack(&tree, (const char *)data, (const char *)data + size);
        if (root_read(tree.root, "/list", MAX_INPUT, &text, NULL) >= 0)
                for (char *at = text; list_next(&at, &row);) {
                        _free_ char *pattern = list_pattern(row.path, "6.12.0");
                        if (!*row.condition || strpbrk(row.condition, " \t\n#") || strpbrk(row.path, " \t\n#") ||
                            list_condition(tree.root, row.condition) > 1 || strlen(pattern) < strlen(row.path))
                                abort();
                }
        tree_done(&tree);
        return 0;
}
