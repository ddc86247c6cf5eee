/* SPDX-License-Identifier: Apache-2.0
 * The operators and functions of CEL, as one table of overloads. Results and errors are those of cel-go,
 * which nodeadm uses (github.com/google/cel-spec, doc/langdef.md#standard-definitions). */
#include "doc/doc.h"
#include "doc/expr.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static const struct { const char *name; ExprType type; } type_names[] = {
        { "int", EXPR_INT }, { "uint", EXPR_UINT }, { "double", EXPR_DOUBLE }, { "bool", EXPR_BOOL },
        { "string", EXPR_STRING }, { "list", EXPR_LIST }, { "null_type", EXPR_NULL }, { "type", EXPR_TYPE },
};

const char *expr_type_name(ExprType type) {
        return PICK(t, type_names, ARRAY_SIZE(type_names), t->type == type, t->name, "dyn");
}

ExprType expr_type_from_name(const char *name, size_t size) {
        return PICK(t, type_names, ARRAY_SIZE(type_names),
                    strlen(t->name) == size && memcmp(t->name, name, size) == 0, t->type, 0);
}

/* For functions that return NULL or why they fail. */
static const char *give(ExprValue *ret, ExprValue value) {
        *ret = value;
        return NULL;
}

static const char int_range[] = "the result does not fit into 64 bits", division[] = "division by zero";

static const char *math_int(const ExprCall *c, ExprValue *ret) {
        int64_t a = c->args[0].i, b = c->args[1].i, result = 0;
        bool divides = *c->name == '/' || *c->name == '%', bad;
        if (divides && b == 0)
                return division;
        if (divides)
                bad = a == INT64_MIN && b == -1;
        else
                bad = *c->name == '+'   ? __builtin_add_overflow(a, b, &result)
                      : *c->name == '-' ? __builtin_sub_overflow(a, b, &result)
                                        : __builtin_mul_overflow(a, b, &result);
        if (bad)
                return int_range;
        if (divides)
                result = *c->name == '/' ? a / b : a % b;
        return give(ret, (ExprValue){ .type = EXPR_INT, .i = result });
}

static const char *math_uint(const ExprCall *c, ExprValue *ret) {
        uint64_t a = c->args[0].u, b = c->args[1].u, result = 0;
        bool divides = *c->name == '/' || *c->name == '%';
        if (divides && b == 0)
                return division;
        if (divides)
                result = *c->name == '/' ? a / b : a % b;
        else if (*c->name == '+'   ? __builtin_add_overflow(a, b, &result)
                 : *c->name == '-' ? __builtin_sub_overflow(a, b, &result)
                                   : __builtin_mul_overflow(a, b, &result))
                return "the result does not fit into an unsigned 64-bit number";
        return give(ret, (ExprValue){ .type = EXPR_UINT, .u = result });
}

/* x / 0.0 is infinity (IEEE 754, CEL) */
__attribute__((no_sanitize("float-divide-by-zero")))
static const char *math_double(const ExprCall *c, ExprValue *ret) {
        double a = c->args[0].d, b = c->args[1].d;
        double result = *c->name == '+' ? a + b : *c->name == '-' ? a - b : *c->name == '*' ? a * b : a / b;
        return give(ret, (ExprValue){ .type = EXPR_DOUBLE, .d = result });
}

static const char *negate_int(const ExprCall *c, ExprValue *ret) {
        return c->args->i == INT64_MIN ? int_range
                                       : give(ret, (ExprValue){ .type = EXPR_INT, .i = -c->args->i });
}

static const char *negate_double(const ExprCall *c, ExprValue *ret) {
        return give(ret, (ExprValue){ .type = EXPR_DOUBLE, .d = -c->args->d });
}

static const char *give_bool(ExprValue *ret, bool value) {
        return give(ret, (ExprValue){ .type = EXPR_BOOL, .boolean = value });
}

static const char *negate_bool(const ExprCall *c, ExprValue *ret) {
        return give_bool(ret, !c->args->boolean);
}

static double as_double(const ExprValue *v) {
        return v->type == EXPR_DOUBLE ? v->d : v->type == EXPR_INT ? (double)v->i : (double)v->u;
}

/* < 0, 0, > 0; false where one is NaN. An integer beside a double becomes one, as in CEL. */
static bool compare_numbers(const ExprValue *a, const ExprValue *b, int *ret) {
        if (a->type == EXPR_DOUBLE || b->type == EXPR_DOUBLE) {
                double x = as_double(a), y = as_double(b);
                *ret = (x > y) - (x < y);
                return !isnan(x) && !isnan(y);
        }
        bool a_below = a->type == EXPR_INT && a->i < 0, b_below = b->type == EXPR_INT && b->i < 0;
        uint64_t x = a->type == EXPR_INT ? (uint64_t)a->i : a->u,
                 y = b->type == EXPR_INT ? (uint64_t)b->i : b->u;
        /* two negative numbers keep their order as unsigned ones */
        *ret = a_below != b_below ? (a_below ? -1 : 1) : (x > y) - (x < y);
        return true;
}

static bool expr_equal(const ExprValue *a, const ExprValue *b) {
        int order = 0;
        if (a->type & EXPR_NUMBER && b->type & EXPR_NUMBER)
                return compare_numbers(a, b, &order) && order == 0;
        if (a->type != b->type || a->n != b->n)
                return false;
        switch (a->type) {
        case EXPR_BOOL:
                return a->boolean == b->boolean;
        case EXPR_STRING:
                return memcmp(a->text, b->text, a->n) == 0;
        case EXPR_TYPE:
                return a->named == b->named;
        case EXPR_LIST:
                for (size_t i = 0; i < a->n; i++)
                        if (!expr_equal(&a->items[i], &b->items[i]))
                                return false;
                return true;
        default:
                return true;    /* null */
        }
}

static const char *compare_equal(const ExprCall *c, ExprValue *ret) {
        return give_bool(ret, expr_equal(&c->args[0], &c->args[1]) == (*c->name == '='));
}

static const char *give_order(const char *name, int order, ExprValue *ret) {
        return give_bool(ret, (*name == '<' ? order < 0 : order > 0) || (name[1] == '=' && order == 0));
}

static const char *order_numbers(const ExprCall *c, ExprValue *ret) {
        int order = 0;
        return compare_numbers(&c->args[0], &c->args[1], &order) ? give_order(c->name, order, ret)
                                                                 : "NaN cannot be compared";
}

static const char *order_bools(const ExprCall *c, ExprValue *ret) {
        return give_order(c->name, c->args[0].boolean - c->args[1].boolean, ret);
}

static const char *order_strings(const ExprCall *c, ExprValue *ret) {
        size_t a = c->args[0].n, b = c->args[1].n;
        int order = memcmp(c->args[0].text, c->args[1].text, MIN(a, b));
        return give_order(c->name, order ?: (a > b) - (a < b), ret);
}

static const char *concat_strings(const ExprCall *c, ExprValue *ret) {
        size_t a = c->args[0].n, b = c->args[1].n;
        char *text = expr_pool_alloc(c->pool, a + b + 1);
        memcpy(text, c->args[0].text, a);
        memcpy(text + a, c->args[1].text, b);
        return give(ret, (ExprValue){ .type = EXPR_STRING, .text = text, .n = a + b });
}

static const char *concat_lists(const ExprCall *c, ExprValue *ret) {
        size_t a = c->args[0].n, b = c->args[1].n;
        ExprValue *items = expr_pool_alloc(c->pool, (a + b) * sizeof *items);
        for (size_t i = 0; i < a + b; i++)
                items[i] = i < a ? c->args[0].items[i] : c->args[1].items[i - a];
        return give(ret, (ExprValue){ .type = EXPR_LIST, .items = items, .n = a + b });
}

static const char *index_list(const ExprCall *c, ExprValue *ret) {
        bool inside = c->args[1].i >= 0 && (uint64_t)c->args[1].i < c->args[0].n;
        return inside ? give(ret, c->args[0].items[c->args[1].i]) : "the index is out of range";
}

static const char *in_list(const ExprCall *c, ExprValue *ret) {
        return give_bool(ret, ANY(item, c->args[1].items, c->args[1].n, expr_equal(&c->args[0], item)));
}

static const char *size_of(const ExprCall *c, ExprValue *ret) {
        size_t n = c->args->n;
        if (c->args->type == EXPR_STRING)
                for (size_t i = 0; i < c->args->n; i++)
                        n -= ((unsigned char)c->args->text[i] & 0xc0) == 0x80;     /* characters, not bytes */
        return give(ret, (ExprValue){ .type = EXPR_INT, .i = (int64_t)n });
}

static const char *has_part(const ExprCall *c, ExprValue *ret) {
        const char *text = c->args[0].text, *part = c->args[1].text;
        size_t n = c->args[0].n, m = c->args[1].n;
        if (m > n)
                return give_bool(ret, false);
        if (*c->name == 'c')
                return give_bool(ret, memmem(text, n, part, m) != NULL);
        return give_bool(ret, memcmp(*c->name == 's' ? text : text + n - m, part, m) == 0);
}

static const char out_of_range[] = "a number outside the range of the target type";
static const char no_number[] = "a string that is not a number of the target type";

static const char *convert_same(const ExprCall *c, ExprValue *ret) {
        return give(ret, *c->args);
}

static const char *convert_type(const ExprCall *c, ExprValue *ret) {
        return give(ret, (ExprValue){ .type = EXPR_TYPE, .named = c->args->type });
}

/* Towards zero. Refuses the limits too, as cel-go does: as a double, the upper one is 2^63. */
static const char *number_to_int(const ExprCall *c, ExprValue *ret) {
        const ExprValue *a = c->args;
        if (a->type == EXPR_UINT ? a->u > INT64_MAX : !(fabs(a->d) < 9223372036854775808.0))
                return out_of_range;
        int64_t i = a->type == EXPR_UINT ? (int64_t)a->u : (int64_t)a->d;
        return give(ret, (ExprValue){ .type = EXPR_INT, .i = i });
}

static const char *number_to_uint(const ExprCall *c, ExprValue *ret) {
        const ExprValue *a = c->args;
        if (a->type == EXPR_INT ? a->i < 0 : !(a->d >= 0 && a->d < 18446744073709551616.0))
                return out_of_range;
        uint64_t u = a->type == EXPR_INT ? (uint64_t)a->i : (uint64_t)a->d;
        return give(ret, (ExprValue){ .type = EXPR_UINT, .u = u });
}

static const char *number_to_double(const ExprCall *c, ExprValue *ret) {
        return give(ret, (ExprValue){ .type = EXPR_DOUBLE, .d = as_double(c->args) });
}

static const char *string_to_integer(const ExprCall *c, ExprValue *ret) {
        bool is_signed = *c->name == 'i';
        const char *s = c->args->text;
        size_t sign = is_signed && (*s == '+' || *s == '-'), digits = strspn(s + sign, "0123456789");
        if (digits == 0 || sign + digits != c->args->n)
                return no_number;
        errno = 0;
        if (is_signed)
                *ret = (ExprValue){ .type = EXPR_INT, .i = strtoll(s, NULL, 10) };
        else
                *ret = (ExprValue){ .type = EXPR_UINT, .u = strtoull(s, NULL, 10) };
        return errno == 0 ? NULL : out_of_range;
}

static const char *string_to_double(const ExprCall *c, ExprValue *ret) {
        const char *s = c->args->text;
        _free_ char *lower = str_lower(s + (*s == '+' || *s == '-'));
        bool word = ONE_OF(lower, "inf", "infinity", "nan");
        char *end;
        if (c->args->n == 0 || (!word && strspn(s, "0123456789.eE+-") != c->args->n))
                return no_number;
        double value = strtod(s, &end);
        if (end != s + c->args->n)
                return no_number;
        if (!word && isinf(value))
                return out_of_range;
        return give(ret, (ExprValue){ .type = EXPR_DOUBLE, .d = value });
}

static const char *string_to_bool(const ExprCall *c, ExprValue *ret) {
        int value = strlen(c->args->text) == c->args->n ? parse_bool(c->args->text) : -EINVAL;
        return value < 0 ? "a string that is neither true nor false" : give_bool(ret, value);
}

/* As %g of Go: the fewest digits that read back the same, an exponent below 1e-04 and from 1e+06 on. */
static char *format_double(double value) {
        if (!isfinite(value))
                return xstrdup(isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
        for (int decimals = 0;; decimals++) {
                _free_ char *text = xasprintf("%.*e", decimals, value);
                if (decimals < 16 && strtod(text, NULL) != value)
                        continue;
                long exponent = strtol(strchr(text, 'e') + 1, NULL, 10);
                if (exponent < -4 || exponent >= 6)
                        return TAKE_PTR(text);
                return xasprintf("%.*f", decimals > exponent ? (int)(decimals - exponent) : 0, value);
        }
}

static const char *scalar_to_string(const ExprCall *c, ExprValue *ret) {
        _free_ char *text =
                c->args->type == EXPR_INT    ? xasprintf("%lld", (long long)c->args->i)
                : c->args->type == EXPR_UINT ? xasprintf("%llu", (unsigned long long)c->args->u)
                : c->args->type == EXPR_BOOL ? xstrdup(c->args->boolean ? "true" : "false")
                                             : format_double(c->args->d);
        size_t n = strlen(text);
        const char *copy = expr_pool_text(c->pool, text, n);
        return give(ret, (ExprValue){ .type = EXPR_STRING, .text = copy, .n = n });
}

#define UNARY(op, from, to, function)                                                                        \
        { .name = op, .n = 1, .args = { from }, .result = to, .call = function, .form = EXPR_AS_FUNCTION }
#define BINARY(op, left, right, to, function)                                                                \
        { .name = op, .n = 2, .args = { left, right }, .result = to, .call = function,                       \
          .form = EXPR_AS_FUNCTION }
#define METHOD(op, on, with, to, function)                                                                   \
        { .name = op, .n = 2, .args = { on, with }, .result = to, .call = function, .form = EXPR_AS_METHOD }
#define ARITHMETIC(op)                                                                                       \
        BINARY(op, EXPR_INT, EXPR_INT, EXPR_INT, math_int),                                                  \
        BINARY(op, EXPR_UINT, EXPR_UINT, EXPR_UINT, math_uint)
#define ORDER(op)                                                                                            \
        BINARY(op, EXPR_NUMBER, EXPR_NUMBER, EXPR_BOOL, order_numbers),                                      \
        BINARY(op, EXPR_BOOL, EXPR_BOOL, EXPR_BOOL, order_bools),                                            \
        BINARY(op, EXPR_STRING, EXPR_STRING, EXPR_BOOL, order_strings)

static const ExprOverload overloads[] = {
        ARITHMETIC("+"), ARITHMETIC("-"), ARITHMETIC("*"), ARITHMETIC("/"), ARITHMETIC("%"),
        BINARY("+", EXPR_DOUBLE, EXPR_DOUBLE, EXPR_DOUBLE, math_double),
        BINARY("-", EXPR_DOUBLE, EXPR_DOUBLE, EXPR_DOUBLE, math_double),
        BINARY("*", EXPR_DOUBLE, EXPR_DOUBLE, EXPR_DOUBLE, math_double),
        BINARY("/", EXPR_DOUBLE, EXPR_DOUBLE, EXPR_DOUBLE, math_double),
        BINARY("+", EXPR_STRING, EXPR_STRING, EXPR_STRING, concat_strings),
        BINARY("+", EXPR_LIST, EXPR_LIST, EXPR_LIST, concat_lists),
        UNARY("-", EXPR_INT, EXPR_INT, negate_int),
        UNARY("-", EXPR_DOUBLE, EXPR_DOUBLE, negate_double),
        UNARY("!", EXPR_BOOL, EXPR_BOOL, negate_bool),
        ORDER("<"), ORDER("<="), ORDER(">"), ORDER(">="),
        BINARY("==", EXPR_ANY, EXPR_ANY, EXPR_BOOL, compare_equal),
        BINARY("!=", EXPR_ANY, EXPR_ANY, EXPR_BOOL, compare_equal),
        BINARY("in", EXPR_ANY, EXPR_LIST, EXPR_BOOL, in_list),
        BINARY("[]", EXPR_LIST, EXPR_INT, EXPR_ANY, index_list),
        { .name = "size", .n = 1, .args = { EXPR_STRING | EXPR_LIST }, .result = EXPR_INT, .call = size_of,
          .form = EXPR_AS_BOTH },
        METHOD("startsWith", EXPR_STRING, EXPR_STRING, EXPR_BOOL, has_part),
        METHOD("endsWith", EXPR_STRING, EXPR_STRING, EXPR_BOOL, has_part),
        METHOD("contains", EXPR_STRING, EXPR_STRING, EXPR_BOOL, has_part),
        UNARY("int", EXPR_INT, EXPR_INT, convert_same),
        UNARY("int", EXPR_UINT | EXPR_DOUBLE, EXPR_INT, number_to_int),
        UNARY("int", EXPR_STRING, EXPR_INT, string_to_integer),
        UNARY("uint", EXPR_UINT, EXPR_UINT, convert_same),
        UNARY("uint", EXPR_INT | EXPR_DOUBLE, EXPR_UINT, number_to_uint),
        UNARY("uint", EXPR_STRING, EXPR_UINT, string_to_integer),
        UNARY("double", EXPR_DOUBLE, EXPR_DOUBLE, convert_same),
        UNARY("double", EXPR_INT | EXPR_UINT, EXPR_DOUBLE, number_to_double),
        UNARY("double", EXPR_STRING, EXPR_DOUBLE, string_to_double),
        UNARY("string", EXPR_STRING, EXPR_STRING, convert_same),
        UNARY("string", EXPR_NUMBER | EXPR_BOOL, EXPR_STRING, scalar_to_string),
        UNARY("bool", EXPR_BOOL, EXPR_BOOL, convert_same),
        UNARY("bool", EXPR_STRING, EXPR_BOOL, string_to_bool),
        UNARY("dyn", EXPR_ANY, EXPR_ANY, convert_same),
        UNARY("type", EXPR_ANY, EXPR_TYPE, convert_type),
        {},
};

const ExprOverload *expr_overload(const ExprOverload *start, const char *name, bool method,
                                  const ExprType *types, size_t n) {
        for (const ExprOverload *o = start ?: overloads; *o->name; o++) {
                bool fits = streq(o->name, name) && o->form & (method ? EXPR_AS_METHOD : EXPR_AS_FUNCTION);
                if (n != SIZE_MAX)
                        fits = fits && o->n == n;
                for (size_t i = 0; fits && n != SIZE_MAX && i < n; i++)
                        fits = (o->args[i] & types[i]) != 0;
                if (fits)
                        return o;
        }
        return NULL;
}
