/* SPDX-License-Identifier: Apache-2.0
 * Compares security contexts of files with the SELinux policy of the image (selabel_file(5)): the last
 * matching expression counts, but plain paths win; prefixes replace others. Like restorecon(8), it
 * compares types only, and leaves customizable ones alone. A tree unpacked without labels has no label at
 * all, so all differences make one check. */
#include "doctor/look.h"

#include <errno.h>
#include <fcntl.h>
#include <regex.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#define POLICY_MAX (4U << 20)
#define LABEL_MAX  512u
#define SHOWN      3u    /* paths in a message */
#define REGEX_MAX  1024u /* no policy has a longer one */
#define COPIES_MAX 3u    /* groups repeated by "+" */

struct Labels {
        bool enforcing;
        char *contexts;                      /* file_contexts, .homedirs, .local */
        char *prefixes;                      /* file_contexts.subs_dist: "/lib64 /usr/lib" */
        char *customizable;                  /* types, one a line */
        char *base;                          /* the real path of the root */
        size_t seen, missing, other, silent; /* silent: label not readable, or a file system without labels */
        Text without, with;                  /* the first paths of each kind */
};

Labels *labels_free(Labels *labels) {
        if (!labels)
                return NULL;
        FREE_ALL(labels->contexts, labels->prefixes, labels->customizable, labels->base);
        text_done(&labels->without);
        text_done(&labels->with);
        free(labels);
        return NULL;
}

/* "targeted" in SELINUXTYPE=, "permissive" in SELINUX=: the last line counts. The caller frees it. */
static char *configured(const char *text, const char *key) {
        char *value = NULL;
        for (const char *at = text; *at;) {
                _free_ char *line = str_cut(&at, "\n");
                if (startswith(line, key) && line[strlen(key)])
                        RENEW(value, str_strip(line + strlen(key)));
        }
        return value;
}

static void append_file(const Root *root, const char *folder, const char *name, Text *to) {
        _free_ char *text = image_text(root, POLICY_MAX, "%s/%s", folder, name);
        if (text)
                text_add(to, "%s\n", text);
}

char *real_path(int fd, const char *base) {
        char path[4096];
        _free_ char *link = xasprintf("/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, path, sizeof path);
        size_t below = streq(base, "/") ? 0 : strlen(base);
        if (n <= 0 || (size_t)n >= sizeof path || (size_t)n <= below || strncmp(path, base, below) != 0 ||
            path[below] != '/')
                return NULL;
        return xstrndup(path + below, (size_t)n - below);
}

Labels *labels_open(const Root *root) {
        _free_ char *text = image_text(root, IMAGE_TEXT_MAX, "/etc/selinux/config"),
                    *mode = text ? configured(text, "SELINUX=") : NULL,
                    *type = text ? configured(text, "SELINUXTYPE=") : NULL, *folder = NULL;
        _cleanup_(labels_freep) Labels *l = xcalloc(1, sizeof *l);
        Text contexts = {}, prefixes = {}, customizable = {};
        if (!mode || streq(mode, "disabled") || root_exists(root, "/.autorelabel") > 0)
                return NULL; /* .autorelabel: the next boot labels everything again */
        l->enforcing = streq(mode, "enforcing");
        folder = xasprintf("/etc/selinux/%s/contexts", type && !strchr(type, '/') ? type : "targeted");
        append_file(root, folder, "files/file_contexts", &contexts);
        append_file(root, folder, "files/file_contexts.homedirs", &contexts);
        append_file(root, folder, "files/file_contexts.local", &contexts);
        append_file(root, folder, "files/file_contexts.subs_dist", &prefixes);
        append_file(root, folder, "files/file_contexts.subs", &prefixes);
        append_file(root, folder, "customizable_types", &customizable);
        l->contexts = text_take(&contexts);
        l->prefixes = text_take(&prefixes);
        l->customizable = text_take(&customizable);
        _cleanup_(close_fd) int fd = root_open(root, "/", O_PATH | O_DIRECTORY);
        l->base = fd >= 0 ? real_path(fd, "/") : NULL;
        return *l->contexts && l->base ? TAKE_PTR(l) : NULL;
}

/* Returns the number of words, at most three. */
static size_t split_line(const char *line, size_t size, const char *words[static 3], size_t sizes[static 3]) {
        size_t n = 0;
        for (size_t at = 0; n < 3; n++) {
                at += strspn(line + at, " \t");
                if (at >= size || line[at] == '#' || line[at] == '\n')
                        break;
                words[n] = line + at;
                sizes[n] = MIN(strcspn(line + at, " \t\n"), size - at);
                at += sizes[n];
        }
        return n;
}

/* The path that the policy uses for it. The caller frees it. */
static char *policy_path(const Labels *l, const char *path) {
        for (const char *line = l->prefixes; *line;) {
                const char *words[3];
                size_t sizes[3], size = strcspn(line, "\n");
                if (split_line(line, size, words, sizes) == 2 && strncmp(path, words[0], sizes[0]) == 0 &&
                    (path[sizes[0]] == '/' || !path[sizes[0]]))
                        return xasprintf("%.*s%s", (int)sizes[1], words[1], path + sizes[0]);
                line += size + (line[size] == '\n');
        }
        return xstrdup(path);
}

/* The size of the plain prefix of an expression; *ret_whole: all of it is plain. */
static size_t plain_size(const char *regex, size_t size, bool *ret_whole) {
        size_t n = 0;
        while (n < size && !strchr(".^$?*+|[({\\", regex[n]))
                n++;
        *ret_whole = n == size;
        /* "/boot/x?" is "/boot/" and perhaps more */
        return n < size && n > 0 && strchr("?*{", regex[n]) ? n - 1 : n;
}

/* Policies use neither counted repeats nor back references, which can take all time and memory. regcomp(3)
 * copies what a "+" repeats: "((x+)+)+" makes eight copies. This counts each "+" behind a group or a
 * repetition, even in brackets, so that no nesting hides. */
static bool is_bounded(const char *regex, size_t size) {
        unsigned copies = 0;
        for (size_t i = 0; i < size; i++) {
                if (regex[i] == '{' || (regex[i] == '\\' && i + 1 < size && is_digit(regex[i + 1])))
                        return false;
                copies += regex[i] == '+' && i > 0 && strchr(")*+?", regex[i - 1]);
        }
        return size <= REGEX_MAX && copies <= COPIES_MAX;
}

static bool regex_matches(const char *regex, size_t size, const char *path) {
        regex_t compiled;
        if (!is_bounded(regex, size))
                return false;
        _free_ char *whole = xasprintf("^(%.*s)$", (int)size, regex);
        if (regcomp(&compiled, whole, REG_EXTENDED | REG_NOSUB) != 0)
                return false;
        bool does = regexec(&compiled, path, 0, NULL, 0) == 0;
        regfree(&compiled);
        return does;
}

static bool is_kind(const char *word, size_t size, mode_t mode) {
        return size == 2 && word[0] == '-' &&
               (word[1] == '-'   ? S_ISREG(mode)
                : word[1] == 'd' ? S_ISDIR(mode)
                : word[1] == 'l' ? S_ISLNK(mode)
                                 : false);
}

/* NULL: the policy has no label for it. The caller frees it. */
static char *wanted_label(const Labels *l, const char *real, mode_t mode) {
        _free_ char *path = policy_path(l, real), *found = NULL;
        bool exact = false;
        for (const char *line = l->contexts; *line;) {
                const char *words[3];
                size_t sizes[3], size = strcspn(line, "\n"), n = split_line(line, size, words, sizes);
                bool whole = false, kind = n == 3 ? is_kind(words[1], sizes[1], mode) : n == 2;
                size_t plain = n >= 2 ? plain_size(words[0], sizes[0], &whole) : 0;
                if (kind && strncmp(path, words[0], plain) == 0 && (whole || !exact) &&
                    (whole ? !path[plain] : regex_matches(words[0], sizes[0], path))) {
                        exact |= whole;
                        RENEW(found, xstrndup(words[n - 1], sizes[n - 1]));
                }
                line += size + (line[size] == '\n');
        }
        return found && !streq(found, "<<none>>") ? TAKE_PTR(found) : NULL;
}

/* "bin_t" in "system_u:object_r:bin_t:s0"; "" if it is not a context. The caller frees it. */
static char *type_of(const char *label) {
        const char *user = strchr(label, ':'), *role = user ? strchr(user + 1, ':') : NULL;
        return role ? xstrndup(role + 1, strcspn(role + 1, ":")) : xstrdup("");
}

static bool is_customizable(const Labels *l, const char *type) {
        size_t n = strlen(type);
        for (const char *at = strstr(l->customizable, type); n > 0 && at; at = strstr(at + 1, type))
                if ((at == l->customizable || at[-1] == '\n') && (at[n] == '\n' || !at[n]))
                        return true;
        return false;
}

static void note_path(Text *to, size_t n, const char *path, const char *is, const char *want) {
        if (n <= SHOWN)
                text_add(to, "%s%s is %s, and should be %s", n > 1 ? ", " : "", path, is, want);
}

void labels_look(Labels *l, const Root *root, const char *path) {
        char label[LABEL_MAX];
        struct stat st;
        _cleanup_(close_fd) int fd = l ? root_open(root, path, O_PATH) : -1;
        if (fd < 0 || fstat(fd, &st) < 0)
                return;
        _free_ char *real = real_path(fd, l->base), *link = xasprintf("/proc/self/fd/%d", fd),
                    *want = real ? wanted_label(l, real, st.st_mode) : NULL;
        if (!want)
                return;
        ssize_t n = getxattr(link, "security.selinux", label, sizeof label - 1);
        if (n < 0 && errno != ENODATA) {
                l->silent++;
                return;
        }
        label[MAX(n, 0)] = 0;
        _free_ char *is = type_of(label), *type = type_of(want);
        l->seen++;
        if (n <= 0)
                note_path(&l->without, ++l->missing, real, "not labelled", type);
        else if (!streq(is, type) && !is_customizable(l, is))
                note_path(&l->with, ++l->other, real, is, type);
}

static void report(const Labels *l, Checks *checks, size_t n, const Text *paths, bool missing) {
        _free_ char *found = xasprintf("%zu of %zu files", n, l->seen);
        /* systemd runs an unlabelled program in a domain that the policy does not know. */
        bool failed = missing && l->enforcing;
        Check *c = TELL(checks, failed ? CHECK_FAILED : CHECK_WARNING, "label",
                        missing ? "files without a label" : "files with a wrong label", found, NULL,
                        "%s%s; SELinux is %s. When you build the image, run restorecon -RF on these files, "
                        "or setfiles -r on the mounted image. You can also touch /.autorelabel in the "
                        "image, which costs a minute at first boot",
                        paths->data ?: "", n > SHOWN ? " and more" : "",
                        l->enforcing ? "enforcing, and can block the plan"
                                      : "permissive, and only logs this");
        c->cause = failed ? CAUSE_IMAGE : CAUSE_NONE;
}

void labels_report(Labels *l, Checks *checks) {
        if (!l)
                return;
        if (l->seen == 0 && l->silent > 0)
                TELL(checks, CHECK_UNKNOWN, "label", "SELinux", NULL, NULL,
                     "SELinux labels cannot be read on this file system: run doctor as root on the "
                     "mounted image");
        if (l->missing > 0)
                report(l, checks, l->missing, &l->without, true);
        if (l->other > 0)
                report(l, checks, l->other, &l->with, false);
        if (l->seen > 0 && l->missing + l->other == 0) {
                _free_ char *found = xasprintf("%zu files", l->seen);
                checks_add(checks, CHECK_OK, "label", "SELinux", found);
        }
}
