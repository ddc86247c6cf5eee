/* SPDX-License-Identifier: Apache-2.0
 * UTF-8 of RFC 3629: nothing overlong, no surrogates, nothing above U+10FFFF. */
#include "base/str.h"

size_t utf8_length(const char *s, size_t room) {
        /* The range of the second byte excludes overlong forms, surrogates and values past U+10FFFF. */
        static const struct { unsigned char n, first, last, low, high; } forms[] = {
                { .n = 1, .first = 0x00, .last = 0x7f },
                { .n = 2, .first = 0xc2, .last = 0xdf, .low = 0x80, .high = 0xbf },
                { .n = 3, .first = 0xe0, .last = 0xe0, .low = 0xa0, .high = 0xbf },
                { .n = 3, .first = 0xe1, .last = 0xec, .low = 0x80, .high = 0xbf },
                { .n = 3, .first = 0xed, .last = 0xed, .low = 0x80, .high = 0x9f },
                { .n = 3, .first = 0xee, .last = 0xef, .low = 0x80, .high = 0xbf },
                { .n = 4, .first = 0xf0, .last = 0xf0, .low = 0x90, .high = 0xbf },
                { .n = 4, .first = 0xf1, .last = 0xf3, .low = 0x80, .high = 0xbf },
                { .n = 4, .first = 0xf4, .last = 0xf4, .low = 0x80, .high = 0x8f },
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

const char *utf8_fault(const char *s, size_t size) {
        for (const char *end = s + size; s < end;) {
                size_t n = utf8_length(s, (size_t)(end - s));
                if (n == 0)
                        return s;
                s += n;
        }
        return NULL;
}

const char *utf8_false_blank(const char *s, size_t room) {
        static const struct { const char *bytes, *name; } blanks[] = {
                { "\xc2\xa0", "a no-break space (U+00A0)" },
                { "\xe2\x80\x87", "a figure space (U+2007)" },
                { "\xe2\x80\x8b", "a zero width space (U+200B)" },
                { "\xe2\x80\xaf", "a narrow no-break space (U+202F)" },
                { "\xe3\x80\x80", "an ideographic space (U+3000)" },
                { "\xef\xbb\xbf", "a byte order mark (U+FEFF)" },
        };
        return PICK(b, blanks, ARRAY_SIZE(blanks),
                    strlen(b->bytes) <= room && memcmp(s, b->bytes, strlen(b->bytes)) == 0, b->name, NULL);
}

void utf8_add(Text *to, unsigned long c) {
        static const unsigned char lead[] = { 0x00, 0xc0, 0xe0, 0xf0 };
        size_t more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        char bytes[4] = { (char)(lead[more] | c >> (6 * more)) };
        for (size_t i = 1; i <= more; i++)
                bytes[i] = (char)(0x80 | (c >> (6 * (more - i)) & 0x3f));
        text_add_bytes(to, bytes, more + 1);
}

bool utf8_is_for_systemd(const char *s) {
        size_t n;
        for (const char *p = s, *end = s + strlen(s); *p; p += n) {
                const unsigned char *c = (const unsigned char *)p;
                n = utf8_length(p, (size_t)(end - p));
                bool last = n >= 3 && c[n - 2] == 0xbf && c[n - 1] >= 0xbe,      /* U+FFFE, U+1FFFF, … */
                     reserved = n == 3 && c[0] == 0xef && c[1] == 0xb7 && c[2] >= 0x90 && c[2] < 0xb0;
                if (n == 0 || reserved || (last && (n == 3 ? c[0] == 0xef : (c[1] & 0xf) == 0xf)))
                        return false;
        }
        return true;
}

/* C0, DEL, and C1 as two bytes */
static bool is_control_at(const char *s, size_t n) {
        unsigned char c = (unsigned char)s[n - 1];
        return n == 1 ? c < 0x20 || c == 0x7f : n == 2 && (unsigned char)s[0] == 0xc2 && c < 0xa0;
}

void text_add_shown(Text *to, const char *s, size_t size, size_t limit, char quote) {
        for (size_t i = 0, n; i < size; i += n) {
                size_t whole = utf8_length(s + i, size - i);
                n = MAX(whole, (size_t)1);
                if (limit-- == 0) {
                        text_add(to, "…");
                        return;
                }
                if (whole == 0 || is_control_at(s + i, n))
                        text_add(to, "\\x%02x", (unsigned char)s[i + n - 1]);
                else if (quote && (s[i] == quote || s[i] == '\\'))
                        text_add(to, "\\%c", s[i]);
                else
                        text_add_bytes(to, s + i, n);
        }
}
