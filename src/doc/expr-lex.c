/* SPDX-License-Identifier: Apache-2.0
 * Text of an expression → tokens of CEL, with values (github.com/google/cel-spec,
 * doc/langdef.md#syntax). */
#include "doc/doc.h"
#include "doc/expr.h"

#include <errno.h>
#include <math.h>

static bool is_name(int c) {
        return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static const char *skip_comments(const char *s) {
        for (;;) {
                s += strspn(s, " \t\n\f\r");
                if (s[0] != '/' || s[1] != '/')
                        return s;
                s += strcspn(s, "\r\n");
        }
}

static const char *lex_real(ExprPool *pool, const char *from, const char *end, ExprValue *ret) {
        char *copy = expr_pool_text(pool, from, (size_t)(end - from));
        *ret = (ExprValue){ .type = EXPR_DOUBLE, .d = strtod(copy, NULL) };
        return isfinite(ret->d) ? NULL : "a number that is too large for a double";
}

/* Digits, [. digits] [e [+-] digits], or 0x digits; a u suffix makes an integer unsigned. */
static const char *lex_number(ExprPool *pool, const char **at, ExprValue *ret) {
        const char *from = *at, *s = from;
        bool hex = s[0] == '0' && s[1] == 'x' && hex_digit(s[2]) >= 0;
        for (s += hex ? 2 : 0; hex ? hex_digit(*s) >= 0 : is_digit(*s);)
                s++;
        const char *whole = s;
        if (!hex && s[0] == '.' && is_digit(s[1]))
                for (s++; is_digit(*s);)
                        s++;
        size_t sign = s[0] != '\0' && (s[1] == '+' || s[1] == '-');
        if (!hex && (*s == 'e' || *s == 'E') && is_digit(s[1 + sign]))
                for (s += 1 + sign; is_digit(*s);)
                        s++;
        *at = s;
        if (s > whole)
                return is_name(*s) ? "letters right after a number" : lex_real(pool, from, s, ret);
        bool is_unsigned = *s == 'u' || *s == 'U';
        *at += is_unsigned;
        if (is_name(**at))
                return "letters right after a number";
        errno = 0;
        *ret = (ExprValue){ .type = is_unsigned ? EXPR_UINT : EXPR_INT,
                            .u = strtoull(from, NULL, hex ? 16 : 10) };
        return errno == 0 ? NULL : "an integer that does not fit into 64 bits";
}

static const char *lex_character(const char **at, size_t n, unsigned base, Text *ret) {
        unsigned long c = 0;
        for (size_t i = 0; i < n; i++, ++*at) {
                int digit = hex_digit(**at);
                if (digit < 0 || (unsigned)digit >= base)
                        return "an escape with too few digits in a string";
                c = c * base + (unsigned)digit;
        }
        if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) || (base == 8 && c > 0xff))
                return "a string escape that is not a character";
        utf8_add(ret, c);
        return NULL;
}

/* Behind a backslash. */
static const char *lex_escape(const char **at, Text *ret) {
        static const char names[] = "abfnrtv\\'\"`?", values[] = "\a\b\f\n\r\t\v\\'\"`?";
        static const struct { char name; unsigned char digits; } numbers[] = {
                { 'x', 2 }, { 'X', 2 }, { 'u', 4 }, { 'U', 8 }
        };
        char c = **at;
        const char *name = c ? strchr(names, c) : NULL;
        if (name) {
                text_add_bytes(ret, values + (name - names), 1);
                ++*at;
                return NULL;
        }
        __auto_type number = FIND(n, numbers, ARRAY_SIZE(numbers), n->name == c);
        if (number) {
                ++*at;
                return lex_character(at, number->digits, 16, ret);
        }
        return is_digit(c) ? lex_character(at, 3, 8, ret) : "an unknown escape in a string";
}

/* "…", '…', """…""", '''…''', each raw after an r. Newlines become \n. */
static const char *lex_text(const char **at, bool raw, Text *ret) {
        const char quote = **at, triple[] = { quote, quote, quote, '\0' };
        bool multi = startswith(*at, triple);
        size_t length = multi ? 3 : 1;
        const char *why, stops[] = { quote, '\r', '\n', raw ? '\n' : '\\', '\0' };
        *at += length;
        for (;;) {
                size_t run = strcspn(*at, stops);
                text_add_bytes(ret, *at, run);
                *at += run;
                if (strncmp(*at, triple, length) == 0) {
                        *at += length;
                        return NULL;
                }
                if (**at == '\\') {
                        ++*at;
                        why = lex_escape(at, ret);
                        if (why)
                                return why;
                } else if (**at == quote)
                        text_add_bytes(ret, (*at)++, 1);
                else if (**at == '\0' || !multi)
                        return "a string that is not closed";
                else {
                        *at += startswith(*at, "\r\n") ? 2 : 1;
                        text_add_bytes(ret, "\n", 1);
                }
        }
}

static const char *lex_string(ExprPool *pool, const char **at, ExprValue *ret) {
        _cleanup_(text_done) Text text = {};
        bool raw = **at == 'r' || **at == 'R';
        *at += raw;
        const char *why = lex_text(at, raw, &text);
        if (why)
                return why;
        const char *copy = expr_pool_text(pool, text.data ?: "", text.size);
        *ret = (ExprValue){ .type = EXPR_STRING, .text = copy, .n = text.size };
        return NULL;
}

/* A quote, maybe after r, b or both. */
static bool starts_string(const char *s, bool *ret_bytes) {
        size_t n = strspn(s, "rRbB");
        *ret_bytes = n > 0 && strcspn(s, "bB") < n;
        return (s[n] == '"' || s[n] == '\'') && (n < 2 || (n == 2 && *ret_bytes && strcspn(s, "rR") < n));
}

const char *expr_lex(ExprPool *pool, const char **at, Token *ret) {
        static const char operators[][4] = { "==", "!=", "<=", ">=", "&&", "||" };
        const char *s = *at = skip_comments(*at), *why = NULL;
        bool bytes;
        *ret = (Token){ .at = s };
        if (*s == '\0')
                return NULL;
        if (is_digit(*s) || (*s == '.' && is_digit(s[1]))) {
                ret->type = TOKEN_LITERAL;
                why = lex_number(pool, at, &ret->value);
        } else if (starts_string(s, &bytes)) {
                ret->type = TOKEN_LITERAL;
                why = bytes ? "bytes are not supported here" : lex_string(pool, at, &ret->value);
        } else if (is_name(*s)) {
                while (is_name(**at))
                        ++*at;
                ret->type = *at - s == 2 && startswith(s, "in") ? TOKEN_OPERATOR : TOKEN_NAME;
        } else {
                ret->type = TOKEN_OPERATOR;
                *at = s + (ANY(o, operators, ARRAY_SIZE(operators), startswith(s, *o)) ? 2 : 1);
                if (*at == s + 1 && !strchr("<>!?:+-*/%()[]{}.,", *s))
                        why = "a character that means nothing here";
        }
        ret->size = (size_t)(*at - s);
        return why;
}
