/* SPDX-License-Identifier: Apache-2.0
 * A file of /etc/default → the value of one name in it. Such files are read by shells and by systemd's
 * EnvironmentFile=; what both take for the same plain word is understood here: no expansion, no value over
 * several lines. */
#include "host/detect.h"

#include "base/str.h"

#include <errno.h>

#define BLANKS " \t\r"

/* The word at p, without quotes, up to a blank; -EINVAL for what a shell would expand or what is not
 * closed. */
static int read_word(const char *p, char **ret) {
        Text t = {};
        char quote = 0;

        for (; *p && (quote || !strchr(BLANKS, *p)); p++)
                if (quote ? *p == quote : *p == '"' || *p == '\'')
                        quote = quote ? 0 : *p;
                else if ((quote != '\'' && strchr("$`\\", *p)) || (!quote && strchr(";&|<>()", *p)))
                        break;
                else
                        text_add_bytes(&t, p, 1);
        p += strspn(p, BLANKS);
        if (quote || (*p && *p != '#')) {
                text_done(&t);
                return -EINVAL;
        }
        *ret = text_take(&t);
        return 0;
}

/* What stands behind "NAME=" or "export NAME=" on this line, or NULL. */
static const char *assigned(const char *line, const char *name) {
        line += strspn(line, BLANKS);
        if (startswith(line, "export") && strspn(line + strlen("export"), BLANKS) > 0)
                line += strlen("export") + strspn(line + strlen("export"), BLANKS);
        return startswith(line, name) && line[strlen(name)] == '=' ? line + strlen(name) + 1 : NULL;
}

int assignment_find(const char *text, const char *name, char **ret) {
        _cleanup_(freep) char *found = NULL;
        for (const char *p = text; *p;) {
                size_t n = strcspn(p, "\n");
                _cleanup_(freep) char *line = xstrndup(p, n);
                const char *value = assigned(line, name);
                p += n + (p[n] == '\n');
                if (!value)
                        continue;
                char *word = NULL;
                int r = read_word(value, &word);
                if (r < 0)
                        return r;
                free(found);
                found = word;
        }
        *ret = found && *found ? TAKE_PTR(found) : NULL;
        return 0;
}
