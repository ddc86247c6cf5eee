/* SPDX-License-Identifier: Apache-2.0
 * One text as each kind of file with KEY=value. A patched /etc/eks/kubelet/environment → words → the
 * line that mark-node writes → the same words. A unit → a setting on one line. A file of /etc/default
 * → a word that can be written and read again. */
#include "base/str.h"
#include "doc/env-file.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void as_environment(const char *text) {
        _free_ char *value = assignment_in_environment(text, "A");
        _strv_ char **words = assignment_split(value ?: text), **again = NULL;
        _free_ char *joined = assignment_join(words), *line = xasprintf("A=%s\n", joined);
        _free_ char *back = assignment_in_environment(line, "A");
        again = assignment_split(back);
        if (strv_length(words) != strv_length(again))
                abort();
        for (size_t i = 0; i < strv_length(words); i++)
                if (!streq(words[i], again[i]))
                        abort();
}

static void as_unit(const char *text) {
        _free_ char *what = assignment_in_unit(text, "Mount", "What");
        if (what && (strpbrk(what, "\n\r") || !strstr(text, "[Mount]") || !strstr(text, "What")))
                abort();
}

static void as_shell(const char *text) {
        _free_ char *value = NULL, *again = NULL;
        int r = assignment_in_shell(text, "MIG_PARTITION", &value);
        if (r < 0 ? r != -EINVAL || value
                  : value && (!*value || strchr(value, '\n') || !strstr(text, "MIG_PARTITION=")))
                abort();
        if (!value || strchr(value, '\''))
                return;
        _free_ char *line = xasprintf("MIG_PARTITION='%s'\n", value);
        if (assignment_in_shell(line, "MIG_PARTITION", &again) < 0 || !streq(again, value))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _free_ char *text = xmemdup(data, size);
        as_environment(text);
        as_unit(text);
        as_shell(text);
        return 0;
}
