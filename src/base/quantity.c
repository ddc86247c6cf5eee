/* SPDX-License-Identifier: Apache-2.0 */
/* Text ⇄ quantity, in integers: reservations must match the numbers of kubelet to the byte. */
#include "base/str.h"
#include <errno.h>

#define EXPONENT_MAX 100        /* far more than fits */

/* Digits with at most one point: value × 10^exponent. Digits that do not fit round up. -EINVAL: no digit. */
static int read_digits(const char **at, uint64_t *ret, int *ret_exponent) {
        bool point = false, digits = false, more = false;
        uint64_t value = 0;
        int exponent = 0;
        const char *p = *at;
        for (; is_digit(*p) || (*p == '.' && !point); p++) {
                if (*p == '.') {
                        point = true;
                        continue;
                }
                digits = true;
                bool fits = value < UINT64_MAX / 10 - 1;
                if (fits)
                        value = value * 10 + (uint64_t)(*p - '0');
                else
                        more = more || *p != '0';
                exponent += fits == false && !point;
                exponent -= fits && point;
        }
        *at = p;
        *ret = value + more;
        *ret_exponent = exponent;
        return digits ? 0 : -EINVAL;
}

/* "e3", "E-2" → 3, -2; false: not an exponent. */
static bool read_exponent(const char *s, int *ret) {
        bool minus = s[0] && s[1] == '-';
        uint64_t value;
        if ((*s != 'e' && *s != 'E') || parse_u64(s + 1 + (minus || s[1] == '+'), &value) < 0)
                return false;
        *ret = (int)MIN(value, (uint64_t)EXPONENT_MAX) * (minus ? -1 : 1);
        return true;
}

/* A suffix multiplies by 2^*ret_shift × 10^*ret_exponent. */
static int read_suffix(const char *s, unsigned *ret_shift, int *ret_exponent) {
        static const char letters[] = "numkMGTPE", binary[] = "KMGTPE";
        static const int exponents[] = { -9, -6, -3, 3, 6, 9, 12, 15, 18 };
        const char *letter = *s ? strchr(letters, *s) : NULL, *power = *s ? strchr(binary, *s) : NULL;
        *ret_shift = 0;
        *ret_exponent = 0;
        if (!*s || read_exponent(s, ret_exponent))
                return 0;
        if (letter && !s[1])
                *ret_exponent = exponents[letter - letters];
        else if (power && streq(s + 1, "i"))
                *ret_shift = 10 * (unsigned)(power - binary + 1);
        else
                return -EINVAL;
        return 0;
}

/* value × 2^shift × 10^exponent, rounded up. Divides before it would overflow. */
static int64_t scale(uint64_t value, unsigned shift, int exponent) {
        bool more = false;
        while (value > 0 && (shift > 0 || exponent < 0)) {
                if (shift > 0 && value <= UINT64_MAX / 2) {
                        value *= 2;
                        shift--;
                        continue;
                }
                if (exponent >= 0)
                        return INT64_MAX;
                more = more || value % 10 > 0;
                value /= 10;
                exponent++;
        }
        for (; exponent > 0 && value > 0; exponent--)
                if (__builtin_mul_overflow(value, 10, &value))
                        return INT64_MAX;
        return value >= INT64_MAX ? INT64_MAX : (int64_t)value + more;
}

int quantity_parse(const char *text, int64_t *ret_thousandths) {
        bool minus = *text == '-';
        const char *p = text + (minus || *text == '+');
        uint64_t value;
        unsigned shift;
        int exponent, more;
        int r = read_digits(&p, &value, &exponent);
        THEN(r, read_suffix(p, &shift, &more));
        if (r < 0)
                return r;
        int64_t thousandths = scale(value, shift, exponent + more + 3);
        *ret_thousandths = minus ? -thousandths : thousandths;
        return 0;
}

char *quantity_text(int64_t thousandths, bool binary) {
        static const char suffixes[] = "kMGTPE";
        int64_t whole = thousandths / 1000 + (thousandths % 1000 > 0);
        size_t n = 0;
        if (binary && whole > 0 && whole % 1024 == 0)
                return bytes_text((uint64_t)whole);
        if (thousandths % 1000 > 0 && !binary)
                return xasprintf("%lldm", (long long)thousandths);
        for (; whole > 0 && whole % 1000 == 0; n++)
                whole /= 1000;
        return n > 0 ? xasprintf("%lld%c", (long long)whole, suffixes[n - 1])
                     : xasprintf("%lld", (long long)whole);
}
