/* SPDX-License-Identifier: Apache-2.0
 * Nodes → JSON values, as go-yaml v2, which nodeadm uses, resolves YAML 1.1
 * (https://github.com/go-yaml/yaml/blob/v2/resolve.go). Dates stay text. */
#include "doc/node.h"

#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>

/* ParseInt of Go with base 0: 0x1F, 0o17, 017 and 0b11. The digits after the prefix. */
static const char *number_base(const char *s, unsigned *ret) {
        static const struct { char letter; unsigned base; } prefixes[] = {
                { 'x', 16 }, { 'o', 8 }, { 'b', 2 }
        };
        *ret = 10;
        if (s[0] != '0' || s[1] == '\0')
                return s;
        for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
                if ((s[1] | 0x20) == prefixes[i].letter) {
                        *ret = prefixes[i].base;
                        return s + 2;
                }
        *ret = 8;
        return s + 1;
}

/* -ERANGE: beyond 64 bits; -EINVAL: not an integer. */
static int parse_integer(const char *s, bool *ret_negative, uint64_t *ret) {
        uint64_t value = 0;
        unsigned base;
        *ret_negative = *s == '-';
        const char *d = number_base(s + (*s == '-' || *s == '+'), &base);
        if (*d == '\0')
                return -EINVAL;
        for (; *d; d++) {
                unsigned digit = is_digit(*d)   ? (unsigned)(*d - '0')
                                 : isalpha((unsigned char)*d) ? (unsigned)((*d | 0x20) - 'a') + 10
                                                              : 99;
                if (digit >= base)
                        return -EINVAL;
                if (__builtin_mul_overflow(value, base, &value) ||
                    __builtin_add_overflow(value, digit, &value))
                        return -ERANGE;
        }
        *ret = value;
        return 0;
}

/* [-+]? (.digits | digits [.digits*]) [exponent]: strtod() takes more. */
static bool is_decimal(const char *s) {
        static const char digits[] = "0123456789";
        s += *s == '-' || *s == '+';
        size_t whole = strspn(s, digits), fraction = s[whole] == '.' ? strspn(s + whole + 1, digits) : 0;
        s += whole + (s[whole] == '.') + fraction;
        if (whole + fraction == 0 || (*s != 'e' && *s != 'E'))
                return whole + fraction > 0 && *s == '\0';
        s += s[1] == '-' || s[1] == '+' ? 2 : 1;
        return is_digit(*s) && !s[strspn(s, digits)];
}

static json_t *resolve_float(const char *s) {
        /* the program never calls setlocale(), so strtod() wants a point */
        double value = is_decimal(s) ? strtod(s, NULL) : NAN;
        return isfinite(value) ? json_real(value) : NULL;
}

static json_t *resolve_plain_number(const char *s) {
        uint64_t value;
        bool negative;
        if (parse_integer(s, &negative, &value) < 0)
                return resolve_float(s);
        if (value <= (uint64_t)INT64_MAX + negative)
                return json_integer(negative ? (json_int_t)(0 - value) : (json_int_t)value);
        /* Go has unsigned integers, most readers of JSON do not */
        return negative ? resolve_float(s) : json_real((double)value);
}

/* A number, with or without underscores, or NULL. */
static json_t *resolve_number(const char *text) {
        if (text[0] == '.')
                return resolve_float(text);
        if (!is_digit(text[0]) && text[0] != '-' && text[0] != '+')
                return NULL;
        _free_ char *plain = xcalloc(strlen(text) + 1, 1);
        char *to = plain;
        for (const char *from = text; *from; from++)
                if (*from != '_')
                        *to++ = *from;
        return resolve_plain_number(plain);
}

static json_t *text_to_json(const Node *scalar) {
        return json_stringn(scalar->text, scalar->n);
}

int yaml_resolve(const Node *scalar, json_t **ret) {
        json_t *value = NULL;
        if (scalar->type != NODE_SCALAR)
                return -EINVAL;
        if (!scalar->plain || strlen(scalar->text) != scalar->n)
                value = text_to_json(scalar);
        else if (node_is_null(scalar))
                value = json_null();
        else if (ONE_OF(scalar->text, "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On",
                        "ON"))
                value = json_true();
        else if (ONE_OF(scalar->text, "n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off",
                        "OFF"))
                value = json_false();
        else if (!ONE_OF(scalar->text, ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF", "+.inf", "+.Inf",
                         "+.INF", "-.inf", "-.Inf", "-.INF"))
                value = resolve_number(scalar->text) ?: text_to_json(scalar);
        if (!value)
                return -EINVAL;
        *ret = value;
        return 0;
}

/* The depth limit of documents bounds the recursion. */
int yaml_to_json(const Node *node, json_t **ret) {
        if (node->type == NODE_SCALAR)
                return yaml_resolve(node, ret);
        bool list = node->type == NODE_LIST;
        json_auto_t *all = list ? json_array() : json_object();
        for (size_t i = 0; i < node->n; i++) {
                json_t *value;
                int r = yaml_to_json(list ? node->items[i] : node->members[i].value, &value);
                if (r < 0)
                        return r;
                if (list)
                        json_array_append_new(all, value);
                else
                        json_object_set_new(all, node->members[i].key, value);
        }
        *ret = TAKE_PTR(all);
        return 0;
}
