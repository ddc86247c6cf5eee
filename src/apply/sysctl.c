/* SPDX-License-Identifier: Apache-2.0
 * set-sysctl: writes below /proc/sys. Values are compared as the kernel shows them (any blanks, longer
 * lists), so a second run changes nothing. They are read back, since some are rounded or ignored. */
#include "apply/device.h"

#include "base/str.h"
#include "base/sysctl.h"

#include <errno.h>

#define VALUE_MAX   (64 << 10)
#define SHOWN_MAX   60          /* characters of a value in a message */
#define BLANKS      " \t\n"

typedef struct Number { bool negative; unsigned long long magnitude; } Number;

/* Sign and 64 bits: decimal, 0x… or octal, like kernel/sysctl.c:proc_get_long(). false: not a number, or
 * too large. */
static bool parse_number(const char *word, Number *ret) {
        const char *digits = word + (*word == '-' || *word == '+');
        char *end = NULL;
        if (*digits < '0' || *digits > '9')
                return false;
        errno = 0;
        ret->magnitude = strtoull(digits, &end, 0);
        ret->negative = *word == '-' && ret->magnitude > 0;
        return errno == 0 && !*end;
}

static char **words_of(const char *text) {
        char **words = NULL;
        for (const char *p = text + strspn(text, BLANKS); *p; p += strspn(p, BLANKS)) {
                size_t n = strcspn(p, BLANKS);
                strv_push(&words, xstrndup(p, n));
                p += n;
        }
        return words;
}

/* The kernel accepts a part of a list ("kernel.printk = 4"). */
static bool same_value(const char *want, const char *have) {
        _strv_ char **a = words_of(want), **b = words_of(have);
        size_t n = strv_length(a), m = strv_length(b);
        bool numbers = n > 0;
        if (n > m)
                return false;
        for (size_t i = 0; i < n; i++) {
                Number x, y;
                bool number = parse_number(a[i], &x) && parse_number(b[i], &y) && x.negative == y.negative &&
                              x.magnitude == y.magnitude;
                if (!number && !streq(a[i], b[i]))
                        return false;
                numbers &= number;
        }
        return n == m || numbers;
}

static char *value_shown(const char *value) {
        _strv_ char **words = words_of(value);
        _free_ char *line = strv_join(words, " ");
        Text t = {};
        text_add_shown(&t, line, strlen(line), SHOWN_MAX, '"');
        return text_take(&t);
}

static char *wanted_shown(const Work *w) {
        _free_ char *value = value_shown(w->action->with ?: "");
        return w->action->secret ? xstrdup("the value") : xasprintf("\"%s\"", value);
}

static int fail_to_set(Work *w, int r, const char *path) {
        _free_ char *value = wanted_shown(w);
        if (r == -ENOENT || r == -ENOTDIR) {
                const char *slash = strrchr(path, '/');
                _free_ char *directory = xstrndup(path, (size_t)(slash - path));
                _strv_ char **names = root_names(w->root, directory);
                const char *near = names ? nearest_name(slash + 1, (const char *const *)names) : NULL;
                _free_ char *hint = near ? xasprintf("did you mean %s? ", near) : xstrdup("");
                return work_fail(
                        w, -ENOENT, CAUSE_SYSCTL,
                        "this kernel has no such setting (%s does not exist); %scorrect it in "
                        "spec.instance.sysctl, or list its module (for net.bridge.*, net.netfilter.*) in "
                        "/etc/modules-load.d",
                        path, hint);
        }
        if (r == -EINVAL || r == -ERANGE)
                return work_fail(w, r, CAUSE_SYSCTL,
                                 "the kernel rejects %s (%m); correct it in spec.instance.sysctl", value);
        if (r == -EISDIR)
                return work_fail(w, r, CAUSE_SYSCTL,
                                 "%s is a group of settings; name one of them in spec.instance.sysctl", path);
        if (r == -EROFS || r == -EACCES || r == -EPERM)
                return work_fail(w, r, CAUSE_SYSCTL,
                                 "%s cannot be written (%m): the kernel locks it, or /proc/sys is read-only, "
                                 "as in a container",
                                 path);
        return work_fail(w, r, CAUSE_SYSCTL, "%s cannot be set: %m", path);
}

int sysctl_has(const Root *root, const Action *a, const char *path, char **ret_have) {
        int r = root_read(root, path, VALUE_MAX, ret_have, NULL);
        return r < 0 ? r : same_value(a->with ?: "", *ret_have);
}

/* A write-only setting (-EACCES, even for root) never matches. */
static int has_value(Work *w, const char *path, char **ret_have) {
        work_at(w, "reading %s", path);
        int r = sysctl_has(w->root, w->action, path, ret_have);
        return r == -EACCES || r == -EPERM ? 0 : r;
}

static int set(Work *w, const char *path) {
        _free_ char *have = NULL;
        /* With a newline, like other tools: "" is a value, too. */
        _free_ char *line = xasprintf("%s\n", w->action->with ?: "");
        work_at(w, "writing %s", path);
        int r = root_write_value(w->root, path, line);
        THEN(r, has_value(w, path, &have));
        if (r < 0)
                return fail_to_set(w, r, path);
        if (r > 0 || !have)
                return 1;
        _free_ char *want = wanted_shown(w), *is = value_shown(have);
        return work_fail(w, -EINVAL, CAUSE_SYSCTL,
                         "the kernel accepted %s but shows %s%s%s; set a valid value in spec.instance.sysctl",
                         want, w->action->secret ? "another" : "\"", w->action->secret ? "" : is,
                         w->action->secret ? "" : "\"");
}

int sysctl_work(Work *w) {
        _free_ char *path = sysctl_path(w->action->target), *have = NULL;
        int r = has_value(w, path, &have);
        if (r < 0)
                return fail_to_set(w, r, path);
        return r > 0 ? 0 : set(w, path);
}
