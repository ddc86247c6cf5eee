/* SPDX-License-Identifier: Apache-2.0
 * Reads modprobe.d(5): for each file name the first directory counts, files are in name order, and a
 * backslash joins lines. */
#include "apply/device.h"

#include "base/str.h"

#include <errno.h>

#define FILE_MAX (256 << 10)
#define BLANK " \t"

static const char directories[][28] = { "/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d",
                                        "/usr/lib/modprobe.d", "/lib/modprobe.d" };

/* "nvidia" and "nvidia_drm", but not "nvidiafb"; modprobe treats "-" like "_". */
static bool names_module(const char *word, size_t size, const char *prefix) {
        size_t n = strlen(prefix);
        for (size_t i = 0; i < n; i++)
                if (i >= size || (word[i] == '-' ? '_' : word[i]) != prefix[i])
                        return false;
        return size == n || word[n] == '_' || word[n] == '-';
}

static size_t word_size(const char *s) {
        return strcspn(s, BLANK);
}

static const char *next_word(const char *s) {
        s += word_size(s);
        return s + strspn(s, BLANK);
}

static void add_line(Text *to, const char *path, char *line, const char *prefix) {
        char *start = line + strspn(line, BLANK), *end = start + strlen(start);
        while (end > start && strchr(BLANK "\\", end[-1]))     /* a trailing backslash joins nothing */
                *--end = 0;
        /* Other lines (blacklist, alias, softdep) do not affect parameters. */
        const char *name = next_word(start);
        size_t size = word_size(start);
        bool counts = (size == strlen("options") && startswith(start, "options")) ||
                      (size == strlen("install") && startswith(start, "install"));
        if (!(counts && names_module(name, word_size(name), prefix)))
                return;
        text_add(to, "%s:", path);
        for (const char *word = start; *word; word = next_word(word))
                text_add(to, " %.*s", (int)word_size(word), word);
        text_add(to, "\n");
}

void module_options_add(Text *to, const char *path, const char *text, const char *prefix) {
        _free_ char *copy = xstrdup(text);
        char *line = copy;
        for (char *p = copy; *p; p++) {
                if (p[0] == '\\' && p[1] == '\n')
                        p[0] = p[1] = ' ';
                if (*p != '\n')
                        continue;
                *p = 0;
                add_line(to, path, line, prefix);
                line = p + 1;
        }
        add_line(to, path, line, prefix);
}

static int file_names(const Root *root, char ***ret) {
        _strv_ char **names = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
                _strv_ char **list = NULL;
                int r = root_list(root, directories[i], &list);
                if (r < 0 && r != -ENOENT && r != -ENOTDIR)
                        return r;
                for (char **name = list; name && *name; name++)
                        if (endswith(*name, ".conf") && !strv_contains(names, *name))
                                strv_add(&names, *name);
        }
        strv_sort(names);
        *ret = TAKE_PTR(names);
        return 0;
}

int module_options(const Root *root, const char *prefix, char **ret) {
        _strv_ char **names = NULL;
        Text t = {};
        int r = file_names(root, &names);
        for (char **name = names; r >= 0 && name && *name; name++) {
                r = -ENOENT;
                for (size_t i = 0; r == -ENOENT && i < ARRAY_SIZE(directories); i++) {
                        _free_ char *path = xasprintf("%s/%s", directories[i], *name), *text = NULL;
                        r = root_read(root, path, FILE_MAX, &text, NULL);
                        if (r >= 0)
                                module_options_add(&t, path, text, prefix);
                }
                r = r == -ENOENT ? 0 : r;
        }
        if (r < 0)
                text_done(&t);
        else
                *ret = text_take(&t);
        return r;
}

static const char *next_line(const char *line) {
        size_t size = strcspn(line, "\n");
        return line + size + (line[size] == '\n');
}

static char *line_beyond(const char *text, const char *other) {
        for (const char *line = text; *line; line = next_line(line)) {
                size_t size = strcspn(line, "\n");
                const char *o = other;
                while (*o && (strcspn(o, "\n") != size || memcmp(o, line, size) != 0))
                        o = next_line(o);
                if (!*o)
                        return xstrndup(line, strcspn(line, ":\n"));
        }
        return NULL;
}

char *module_options_changed(const char *before, const char *now) {
        return line_beyond(now, before) ?: line_beyond(before, now) ?: xstrdup("/etc/modprobe.d");
}
