/* SPDX-License-Identifier: Apache-2.0
 * UTF-8 as RFC 3629 has it: nothing overlong, no surrogates, nothing above U+10FFFF; and what of it may be
 * shown. */
#include "base/str.h"

size_t utf8_length(const char *s, size_t room) {
        /* The range of the first byte, and that of the second, which alone keeps out what is overlong, a
         * surrogate or too large. */
        static const struct { unsigned char first, last, low, high; size_t n; } forms[] = {
                { 0x00, 0x7f, 0x00, 0x00, 1 }, { 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 },
                { 0xe1, 0xec, 0x80, 0xbf, 3 }, { 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 },
                { 0xf0, 0xf0, 0x90, 0xbf, 4 }, { 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
        };
        const unsigned char *u = (const unsigned char *)s;
        for (size_t i = 0; room > 0 && i < ARRAY_SIZE(forms); i++) {
                size_t n = forms[i].n;
                if (u[0] < forms[i].first || u[0] > forms[i].last)
                        continue;
                if (n > room || (n > 1 && (u[1] < forms[i].low || u[1] > forms[i].high)))
                        return 0;
                for (size_t k = 2; k < n; k++)
                        if ((u[k] & 0xc0) != 0x80)
                                return 0;
                return n;
        }
        return 0;
}

void utf8_add(Text *to, unsigned long c) {
        static const unsigned char lead[] = { 0x00, 0xc0, 0xe0, 0xf0 };
        size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        char bytes[4] = { (char)(lead[more] | c >> (6 * more)) };
        for (size_t i = 1; i <= more; i++)
                bytes[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
        text_add_bytes(to, bytes, more + 1);
}

/* C0, DEL and, as two bytes, C1. */
static bool is_control_at(const char *s, size_t n) {
        unsigned char c = (unsigned char)s[n - 1];
        return n == 1 ? c < 0x20 || c == 0x7f : n == 2 && (unsigned char)s[0] == 0xc2 && c < 0xa0;
}

void text_add_shown(Text *to, const char *s, size_t size, size_t limit, char quote) {
        for (size_t i = 0, n; i < size; i += n) {
                bool whole = (n = utf8_length(s + i, size - i)) > 0;
                n = whole ? n : 1;
                if (limit-- == 0) {
                        text_add(to, "…");
                        return;
                }
                if (!whole || is_control_at(s + i, n))
                        text_add(to, "\\x%02x", (unsigned char)s[i + n - 1]);
                else if (quote && (s[i] == quote || s[i] == '\\'))
                        text_add(to, "\\%c", s[i]);
                else
                        text_add_bytes(to, s + i, n);
        }
}
