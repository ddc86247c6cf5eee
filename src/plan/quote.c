/* SPDX-License-Identifier: Apache-2.0 */
/* Values → text that systemd's parsers turn back into the same bytes. Three parsers, three rules:
 * Environment= of a unit and DefaultEnvironment= of system.conf: words with C escapes, then %-specifiers
 * (systemd.exec(5), systemd.unit(5)); EnvironmentFile=: shell-like assignment, no specifiers
 * (systemd.exec(5), systemd's env-file.c); $NAME on a command line: the value split at blanks, where quotes
 * group and a backslash takes the next character as it is. */
#include "plan/plan.h"
#include "base/str.h"

char *systemd_quote_assignment(const char *name, const char *value) {
        Text t = {};
        text_add(&t, "\"%s=", name);
        for (const char *p = value; *p; p++)
                if (*p == '"' || *p == '\\')
                        text_add(&t, "\\%c", *p);
                else if (*p == '%')
                        text_add(&t, "%%%%");
                else
                        text_add_bytes(&t, p, 1);
        text_add(&t, "\"");
        return text_take(&t);
}

/* One word for the splitting of $NAME. */
static void add_word(Text *t, const char *word) {
        if (!*word)
                text_add(t, "\"\"");
        for (const char *p = word; *p; p++) {
                if (strchr(" \t\"'\\", *p))
                        text_add(t, "\\");
                text_add_bytes(t, p, 1);
        }
}

/* Plain where it can be, since people grep and patch this line; else in double quotes, inside which the
 * shell's four need a backslash. */
char *systemd_quote_words(char *const *words) {
        _cleanup_(text_done) Text plain = {};
        for (char *const *w = words; w && *w; w++) {
                text_add(&plain, "%s", w == words ? "" : " ");
                add_word(&plain, *w);
        }
        const char *value = plain.data ?: "";
        if (!strpbrk(value, "\\\"'"))
                return xstrdup(value);

        Text quoted = {};
        text_add(&quoted, "\"");
        for (const char *p = value; *p; p++) {
                if (strchr("\"\\`$", *p))
                        text_add(&quoted, "\\");
                text_add_bytes(&quoted, p, 1);
        }
        text_add(&quoted, "\"");
        return text_take(&quoted);
}
