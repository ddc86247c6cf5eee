/* SPDX-License-Identifier: Apache-2.0
 * An entry is a term, a line for each paragraph, and an empty line. */
#include "report/explain.h"

#include "base/portable.h"
#include "base/str.h"

#include <strings.h>

#define LIMIT (1 << 20)

int explain_read(const Root *root, char **ret) {
        return installed_read(root, EXPLAIN_FILE, LIMIT, ret);
}

static const char *entry_end(const char *entry) {
        const char *end = strstr(entry, "\n\n");
        return end ? end + 1 : entry + strlen(entry);
}

/* The first word of the term: "EFABRIC" of "EFABRIC (33)". */
static char *entry_word(const char *entry) {
        return xstrndup(entry, strcspn(entry, " \n"));
}

/* "hugePages.mode" is "spec.instance.hugePages.mode". */
static bool is_tail(const char *key, const char *word) {
        size_t n = strlen(key), m = strlen(word);
        return startswith(key, "spec.") && n > m && key[n - m - 1] == '.' &&
               strcasecmp(key + n - m, word) == 0;
}

char *explain_find(const char *entries, const char *word) {
        const char *tail = NULL;
        for (const char *e = entries; *e; e = entry_end(e), e += *e == '\n') {
                _free_ char *name = entry_word(e);
                if (strcasecmp(name, word) == 0)
                        return xstrndup(e, (size_t)(entry_end(e) - e));
                if (!tail && is_tail(name, word))
                        tail = e;
        }
        return tail ? xstrndup(tail, (size_t)(entry_end(tail) - tail)) : NULL;
}

char *explain_nearest(const char *entries, const char *word) {
        _strv_ char **names = NULL;
        for (const char *e = entries; *e; e = entry_end(e), e += *e == '\n')
                strv_push(&names, entry_word(e));
        return names ? xstrdup_or_null(nearest_name(word, (const char *const *)names)) : NULL;
}

char *explain_paragraph(const char *entry, const char *begin) {
        for (const char *p = strchr(entry, '\n'); p && p[1]; p = strchr(p + 1, '\n'))
                if (startswith(p + 1, begin))
                        return xstrndup(p + 1 + strlen(begin), strcspn(p + 1 + strlen(begin), "\n"));
        return NULL;
}
