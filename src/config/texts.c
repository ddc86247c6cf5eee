/* SPDX-License-Identifier: Apache-2.0
 * Checks of texts that several files need, and the report of an error. */
#include "config/fields.h"

#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>

/* One message for a cause: a value that could not be decoded, or a placeholder, has one already. */
void config_report(const Merge *m, Diag *diag, const char *path, const char *text) {
        if (!origins_failed(&m->origins, path) &&
            !ANY(item, diag->items, diag->n,
                 item->path && streq(item->path, path) && streq(item->text, PLACEHOLDER)))
                diag_error_at(diag, -EINVAL, CAUSE_INVALID, origins_find(&m->origins, path), path, "%s",
                              text);
}

void merge_warn(const Merge *m, Diag *diag, const char *code, const char *path, const char *format, ...) {
        _free_ char *text = FORMATTED(format);
        diag_warn_at(diag, code, origins_find(&m->origins, path), path, "%s", text);
}

bool word_is_among(const char *word, const char *list) {
        while (*list) {
                _free_ char *one = str_cut(&list, "|");
                if (streq(one, word))
                        return true;
        }
        return false;
}

const char *word_fault(const char *word, const char *list, Text *room) {
        if (word_is_among(word, list))
                return NULL;
        text_add(room, "is not one of ");
        for (const char *between = ""; *list; between = ", ") {
                _free_ char *one = str_cut(&list, "|");
                text_add(room, "%s%s", between, one);
        }
        return room->data;
}

/* C1 in UTF-8: 0xc2 0x80 to 0xc2 0x9f */
bool has_control(const char *s, const char *except) {
        for (; *s; s++) {
                unsigned char c = (unsigned char)*s, next = (unsigned char)s[1];
                if ((c < 0x20 || c == 0x7f || (c == 0xc2 && next >= 0x80 && next < 0xa0)) &&
                    !strchr(except, c))
                        return true;
        }
        return false;
}

bool cidr_is_valid(const char *text) {
        unsigned char address[16];
        const char *slash = strchr(text, '/');
        uint64_t bits;
        if (!slash || strlen(slash + 1) > 3 || parse_u64(slash + 1, &bits) < 0)
                return false;
        _free_ char *host = xstrndup(text, (size_t)(slash - text));
        return (inet_pton(AF_INET, host, address) == 1 && bits <= 32) ||
               (inet_pton(AF_INET6, host, address) == 1 && bits <= 128);
}

int parse_page_size(const char *text, uint64_t *ret) {
        static const struct { const char *unit; unsigned shift; } units[] = {
                { "Ki", 10 }, { "Mi", 20 }, { "Gi", 30 }
        };
        size_t digits = strspn(text, "0123456789");
        uint64_t value;
        if (digits == 0 || digits > 9 || text[0] == '0')
                return -EINVAL;
        _free_ char *number = xstrndup(text, digits);
        __auto_type unit = FIND(u, units, ARRAY_SIZE(units), streq(text + digits, u->unit));
        if (!unit || parse_u64(number, &value) < 0 || (value & (value - 1)) != 0)
                return -EINVAL;
        *ret = value << unit->shift;
        return 0;
}

bool has_placeholder(const char *text) {
        const char *dollar = strstr(text, "${");
        return (dollar && strchr(dollar, '}')) || strstr(text, "{{");
}

/* V7 of tests/userdata/README.md. Ignores doubled slashes and ".". The planner refuses /proc and /sys, which
 * are not folders of the image, and other paths that hold no data. */
bool mount_path_is_valid(const char *path) {
        _free_ char *inner = xasprintf("%s/", path);
        if (path[0] != '/' || has_control(path, "") || strstr(inner, "/../"))
                return false;
        while (*path == '/' || (path[0] == '.' && (path[1] == '/' || path[1] == 0)))
                path++;
        _free_ char *first = xstrndup(path, strcspn(path, "/"));
        return *first && !word_is_among(first, "bin|boot|dev|etc|lib|lib64|run|sbin|usr");
}

/* kubernetes/utils net/parse.go: ParseIPSloppy(). The numbers of an IPv4 address may have leading zeros. */
bool kubelet_address_is_valid(const char *text) {
        size_t parts = 0;
        uint64_t byte;
        if (text[strspn(text, "0123456789.")])
                return strchr(text, ':') && address_is_valid(text);
        for (const char *s = text;; s++) {
                size_t n = strcspn(s, ".");
                _free_ char *number = xstrndup(s, n);
                if (parse_u64(number, &byte) < 0 || byte > UINT8_MAX)
                        return false;
                parts++;
                s += n;
                if (!*s)
                        return parts == 4;
        }
}
