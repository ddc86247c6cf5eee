/* SPDX-License-Identifier: Apache-2.0
 * A word of TOML without quotes → a number or a boolean (https://toml.io/en/v1.0.0#integer and below). */
#include "doc/doc.h"

#include <errno.h>
#include <math.h>

static size_t digits_length(const char *s, int base) {
        size_t n = 0;
        while (hex_digit(s[n]) >= 0 && hex_digit(s[n]) < base)
                n++;
        return n;
}

/* [+-] integer [. digits] [e [+-] digits], without a leading zero. 1: an integer, 2: a real, 0: neither. */
static int decimal_form(const char *s) {
        static const char *const marks[] = { ".", "eE" };
        int form = 1;
        s += *s == '+' || *s == '-';
        size_t n = digits_length(s, 10);
        if (n == 0 || (n > 1 && *s == '0'))
                return 0;
        s += n;
        for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
                if (*s == '\0' || !strchr(marks[i], *s))
                        continue;
                form = 2;
                s++;
                s += i == 1 && (*s == '+' || *s == '-');
                n = digits_length(s, 10);
                if (n == 0)
                        return 0;
                s += n;
        }
        return *s == '\0' ? form : 0;
}

static const char *why_no_value(const char *s) {
        const char *word = s + (*s == '+' || *s == '-');
        size_t n = digits_length(s, 10);
        if (streq(word, "inf") || streq(word, "nan"))
                return "NaN and infinity are not supported";
        if ((n == 4 && s[4] == '-') || (n == 2 && s[2] == ':'))
                return "dates and times are not supported: write them as strings";
        if (*word == '\0')
                return "a value is missing";
        return is_digit(*word) ? "a number that is not well formed" : "not a value: strings need quotes";
}

static const char too_large[] = "an integer that does not fit into 64 bits";

static int parse_based(const char *s, int base, json_t **ret, const char **ret_why) {
        size_t n = digits_length(s, base);
        bool digits = n > 0 && s[n] == '\0';
        errno = 0;
        unsigned long long value = digits ? strtoull(s, NULL, base) : 0;
        *ret_why = digits ? too_large : "a number with digits that its base does not have";
        if (!digits || errno != 0 || value > INT64_MAX)
                return -EINVAL;
        *ret = json_integer((json_int_t)value);
        return 0;
}

static int parse_decimal(const char *s, json_t **ret, const char **ret_why) {
        int form = decimal_form(s);
        errno = 0;
        long long whole = form == 1 ? strtoll(s, NULL, 10) : 0;
        bool valid = form == 1 && errno == 0;
        /* the program never calls setlocale(), so strtod() wants a point */
        double real = form == 2 ? strtod(s, NULL) : 0;
        *ret_why = form == 1 ? too_large : "a number that is too large";
        if (form == 0)
                *ret_why = why_no_value(s);
        if (!valid && !(form == 2 && isfinite(real)))
                return -EINVAL;
        *ret = form == 1 ? json_integer(whole) : json_real(real);
        return 0;
}

/* A copy, or NULL where an underscore is not between two digits. */
static char *drop_underscores(const char *word, int base) {
        _cleanup_(text_done) Text plain = {};
        for (const char *s = word; *s; s++)
                if (*s != '_')
                        text_add_bytes(&plain, s, 1);
                else if (s == word || digits_length(s - 1, base) == 0 || digits_length(s + 1, base) == 0)
                        return NULL;
        return text_take(&plain);
}

int toml_parse_word(const char *word, json_t **ret, const char **ret_why) {
        static const struct { const char *prefix; int base; } bases[] = {
                { "0x", 16 }, { "0o", 8 }, { "0b", 2 }
        };
        int base = PICK(b, bases, ARRAY_SIZE(bases), startswith(word, b->prefix), b->base, 10);
        if (streq(word, "true") || streq(word, "false")) {
                *ret = json_boolean(*word == 't');
                return 0;
        }
        _free_ char *plain = drop_underscores(word, base);
        if (!plain) {
                *ret_why =
                        is_digit(*word) ? "an underscore that is not between two digits" : why_no_value(word);
                return -EINVAL;
        }
        return base == 10 ? parse_decimal(plain, ret, ret_why) : parse_based(plain + 2, base, ret, ret_why);
}
