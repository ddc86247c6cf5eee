/* SPDX-License-Identifier: Apache-2.0
 * A CEL expression → its value as an int: the grammar (github.com/google/cel-spec, doc/langdef.md#syntax)
 * by precedence climbing. It lacks messages, maps, bytes, macros, times and regular expressions, which the
 * variables of nodeadm do not need. Errors never quote the text, which may hold secrets. */
#include "doc/doc.h"
#include "doc/expr.h"

#include <errno.h>

typedef struct ExprParser {
        const char *text, *at;
        Token token;                    /* the next one */
        const ExprVariable *variables;
        size_t n_variables;
        unsigned depth;
        ExprPool *pool;
        ExprError *error;
} ExprParser;
void *expr_pool_alloc(ExprPool *pool, size_t size) {
        return *APPEND(pool->items, pool->n) = xcalloc(size, 1);
}

char *expr_pool_text(ExprPool *pool, const char *text, size_t size) {
        return *APPEND(pool->items, pool->n) = xmemdup(text, size);
}

static void expr_pool_done(ExprPool *pool) {
        for (size_t i = 0; i < pool->n; i++)
                free(pool->items[i]);
        free(pool->items);
        *pool = (ExprPool){};
}

static int next(ExprParser *p) {
        const char *why = expr_lex(p->pool, &p->at, &p->token);
        return why ? expr_fail(p->error, p->token.at, "%s", why) : 0;
}

static bool token_is(const Token *token, const char *text) {
        return strlen(text) == token->size && memcmp(text, token->at, token->size) == 0;
}

static bool is_operator(const ExprParser *p, const char *operator) {
        return p->token.type == TOKEN_OPERATOR && token_is(&p->token, operator);
}

static bool is_name_token(const ExprParser *p, const char *word) {
        return p->token.type == TOKEN_NAME && token_is(&p->token, word);
}

static int fail_missing(ExprParser *p, const char *what) {
        const char *where = p->token.type == TOKEN_END ? ", where the expression ends" : "";
        return expr_fail(p->error, p->token.at, "%s is expected here%s", what, where);
}

static int expect(ExprParser *p, const char *operator) {
        return is_operator(p, operator) ? next(p) : fail_missing(p, operator);
}

static int nest(ExprParser *p) {
        if (p->depth >= EXPR_MAX_DEPTH)
                return expr_fail(p->error, p->token.at, "nested more than %u deep", EXPR_MAX_DEPTH);
        p->depth++;
        return 0;
}

static Expr *expr_new(ExprParser *p, ExprKind kind, const char *at, const char *name, size_t n) {
        Expr *e = expr_pool_alloc(p->pool, sizeof *e);
        *e = (Expr){ .kind = kind, .at = at, .name = name, .n = n, .height = 1,
                     .args = expr_pool_alloc(p->pool, n * sizeof(void *)) };
        return e;
}

static int set_arg(ExprParser *p, Expr *e, size_t i, Expr *arg) {
        e->args[i] = arg;
        /* Never NULL: only parse_list() takes NULL, for a call without an object before it. */
        e->height = MAX(e->height, arg->height + 1); /* NOLINT(clang-analyzer-core.NullDereference) */
        if (e->height > EXPR_MAX_HEIGHT)
                return expr_fail(p->error, e->at, "more than %u operators nested or in a row",
                                 EXPR_MAX_HEIGHT);
        return 0;
}

static int make_binary(ExprParser *p, ExprKind kind, const char *at, const char *name, Expr *a, Expr *b,
                       Expr **ret) {
        Expr *e = expr_new(p, kind, at, name, 2);
        int r = set_arg(p, e, 0, a) ?: set_arg(p, e, 1, b);
        if (r >= 0)
                *ret = e;
        return r;
}

static Expr *make_literal(ExprParser *p, const char *at, ExprValue value) {
        Expr *e = expr_new(p, EXPR_LITERAL, at, NULL, 0);
        e->value = value;
        return e;
}

static int parse_expr(ExprParser *p, Expr **ret);

/* Expressions between commas, up to the closing bracket; first goes in front, unless it is NULL. */
static int parse_list(ExprParser *p, const char *close, Expr *first, Expr *into) {
        size_t n = 0;
        Expr **items = NULL, *item = first;
        int r = nest(p);
        bool more = !is_operator(p, close);
        if (first)
                *APPEND(items, n) = first;
        while (r >= 0 && more) {
                r = parse_expr(p, &item);
                if (r >= 0)
                        *APPEND(items, n) = item;
                more = r >= 0 && is_operator(p, ",");
                if (more)
                        r = next(p);
                if (more && streq(close, "]") && is_operator(p, close))
                        more = false;           /* [1, 2,] is allowed */
        }
        THEN(r, expect(p, close));
        into->n = n;
        into->args = expr_pool_alloc(p->pool, n * sizeof(void *));
        for (size_t i = 0; i < n && r >= 0; i++)
                r = set_arg(p, into, i, items[i]);
        free(items);
        p->depth--;
        return r;
}

/* f(x), or object.f(x); from the bracket on. */
static int parse_call(ExprParser *p, const Token *name, Expr *object, Expr **ret) {
        char *copy = expr_pool_text(p->pool, name->at, name->size);
        if (!expr_overload(NULL, copy, object != NULL, NULL, SIZE_MAX))
                return expr_fail(p->error, name->at, "no such %s: choose from %s",
                                 object ? "method" : "function",
                                 object ? "size, startsWith, endsWith and contains"
                                        : "int, uint, double, string, bool, dyn, type and size");
        Expr *e = expr_new(p, EXPR_CALL, name->at, copy, 0);
        e->method = object != NULL;
        int r = next(p) ?: parse_list(p, ")", object, e);
        if (r >= 0)
                *ret = e;
        return r;
}

static int fail_name(ExprParser *p, const Token *name) {
        _cleanup_(text_done) Text known = {};
        for (size_t i = 0; i < p->n_variables; i++)
                text_add(&known, "%s%s", i > 0 ? ", " : "", p->variables[i].name);
        return expr_fail(p->error, name->at, "no such variable; the variables are %s", known.data ?: "none");
}

/* A variable, or a type as a value. */
static int resolve_name(ExprParser *p, const Token *name, Expr **ret) {
        ExprValue value = { .type = EXPR_TYPE, .named = expr_type_from_name(name->at, name->size) };
        __auto_type own = FIND(v, p->variables, p->n_variables, token_is(name, v->name));
        if (own)
                value = (ExprValue){ .type = EXPR_INT, .i = own->value };
        else if (!value.named)
                return fail_name(p, name);
        *ret = make_literal(p, name->at, value);
        return 0;
}

static int parse_name(ExprParser *p, Expr **ret) {
        static const struct { const char *word; ExprValue value; } constants[] = {
                { "true", { .type = EXPR_BOOL, .boolean = true } }, { "false", { .type = EXPR_BOOL } },
                { "null", { .type = EXPR_NULL } },
        };
        static const char reserved[][12] = { "as",   "break",    "const",     "continue", "else",
                                             "for",  "function", "if",        "import",   "let",
                                             "loop", "package",  "namespace", "return",   "var",
                                             "void", "while" };
        Token name = p->token;
        __auto_type constant = FIND(c, constants, ARRAY_SIZE(constants), is_name_token(p, c->word));
        if (constant) {
                *ret = make_literal(p, name.at, constant->value);
                return next(p);
        }
        if (ANY(word, reserved, ARRAY_SIZE(reserved), is_name_token(p, *word)))
                return expr_fail(p->error, name.at, "a word that CEL reserves");
        int r = next(p);
        if (r < 0)
                return r;
        return is_operator(p, "(") ? parse_call(p, &name, NULL, ret) : resolve_name(p, &name, ret);
}

static int parse_literal(ExprParser *p, bool negative, Expr **ret) {
        Token token = p->token;
        ExprValue value = token.value;
        if (value.type == EXPR_INT) {
                if (value.u > (uint64_t)INT64_MAX + negative)
                        return expr_fail(p->error, token.at, "an integer that does not fit into 64 bits");
                value.i = (int64_t)(negative ? -value.u : value.u);
        } else if (negative)
                value.d = -value.d;
        *ret = make_literal(p, token.at, value);
        return next(p);
}

static int parse_primary(ExprParser *p, Expr **ret) {
        int r;
        if (p->token.type == TOKEN_LITERAL)
                return parse_literal(p, false, ret);
        bool rooted = is_operator(p, ".");
        if (rooted) {
                r = next(p);
                if (r < 0)
                        return r;
        }
        if (p->token.type == TOKEN_NAME)
                return parse_name(p, ret);
        if (is_operator(p, "[")) {
                *ret = expr_new(p, EXPR_ITEMS, p->token.at, NULL, 0);
                return next(p) ?: parse_list(p, "]", NULL, *ret);
        }
        if (is_operator(p, "{"))
                return expr_fail(p->error, p->token.at, "maps are not supported here");
        if (rooted || !is_operator(p, "("))
                return fail_missing(p, "a value");
        r = nest(p) ?: next(p) ?: parse_expr(p, ret);
        p->depth--;
        return r < 0 ? r : expect(p, ")");
}

/* .method(…) and [index] after a value. */
static int parse_suffixes(ExprParser *p, Expr **e) {
        while (is_operator(p, ".") || is_operator(p, "[") || is_operator(p, "{")) {
                const char *at = p->token.at;
                bool index = *at == '[';
                if (*at == '{')
                        return expr_fail(p->error, at, "messages are not supported here");
                int r = next(p);
                if (r < 0)
                        return r;
                if (index) {
                        Expr *argument = NULL;
                        r = nest(p) ?: parse_expr(p, &argument);
                        p->depth--;
                        THEN(r, expect(p, "]"));
                        THEN(r, make_binary(p, EXPR_CALL, at, "[]", *e, argument, e));
                } else {
                        Token name = p->token;
                        if (name.type != TOKEN_NAME)
                                return expr_fail(p->error, name.at, "a name must follow the dot");
                        r = next(p);
                        if (r >= 0 && !is_operator(p, "("))
                                return expr_fail(p->error, name.at, "values here have no fields");
                        THEN(r, parse_call(p, &name, *e, e));
                }
                if (r < 0)
                        return r;
        }
        return 0;
}

/* A run of ! or of -. The last - before a number belongs to it, for -9223372036854775808. */
static int parse_unary(ExprParser *p, Expr **ret) {
        const char *first = p->token.at, *name = is_operator(p, "!") ? "!" : is_operator(p, "-") ? "-" : NULL;
        size_t n = 0;
        int r = 0;
        while (name && r >= 0 && is_operator(p, name)) {
                n++;
                r = next(p);
        }
        if (r < 0)
                return r;
        bool sign = name && *name == '-' && p->token.type == TOKEN_LITERAL &&
                    p->token.value.type & (EXPR_INT | EXPR_DOUBLE);
        n -= sign;
        r = sign ? parse_literal(p, true, ret) : parse_primary(p, ret);
        THEN(r, parse_suffixes(p, ret));
        for (; r >= 0 && n > 0; n--) {
                Expr *e = expr_new(p, EXPR_CALL, first, name, 1);
                r = set_arg(p, e, 0, *ret);
                *ret = e;
        }
        return r;
}

static int parse_binary(ExprParser *p, unsigned lowest, Expr **ret) {
        static const struct { const char *name; unsigned binds; ExprKind kind; } operators[] = {
                { "||", 1, EXPR_OR }, { "&&", 2, EXPR_AND },
                { "<", 3, EXPR_CALL }, { "<=", 3, EXPR_CALL }, { ">", 3, EXPR_CALL }, { ">=", 3, EXPR_CALL },
                { "==", 3, EXPR_CALL }, { "!=", 3, EXPR_CALL }, { "in", 3, EXPR_CALL },
                { "+", 4, EXPR_CALL }, { "-", 4, EXPR_CALL },
                { "*", 5, EXPR_CALL }, { "/", 5, EXPR_CALL }, { "%", 5, EXPR_CALL },
        };
        Expr *left, *right;
        int r = parse_unary(p, &left);
        while (r >= 0) {
                const char *at = p->token.at;
                __auto_type found = FIND(o, operators, ARRAY_SIZE(operators),
                                         o->binds >= lowest && is_operator(p, o->name));
                if (!found)
                        break;
                r = next(p) ?: parse_binary(p, found->binds + 1, &right) ?:
                        make_binary(p, found->kind, at, found->name, left, right, &left);
        }
        if (r >= 0)
                *ret = left;
        return r;
}

/* Reads condition ? value : condition ? value : … in a loop and builds the tree from its end. */
static int parse_expr(ExprParser *p, Expr **ret) {
        _free_ Expr **open = NULL;
        size_t n = 0;
        Expr *last = NULL;
        for (;;) {
                int r = parse_binary(p, 1, &last);
                if (r < 0)
                        return r;
                if (!is_operator(p, "?"))
                        break;
                if (n >= EXPR_MAX_HEIGHT)
                        return expr_fail(p->error, p->token.at,
                                         "more than %u operators nested or in a row", EXPR_MAX_HEIGHT);
                Expr *e = *APPEND(open, n) = expr_new(p, EXPR_CONDITION, p->token.at, NULL, 3);
                r = set_arg(p, e, 0, last) ?: next(p) ?: parse_binary(p, 1, &last) ?:
                        set_arg(p, e, 1, last) ?: expect(p, ":");
                if (r < 0)
                        return r;
        }
        while (n > 0) {
                int r = set_arg(p, open[--n], 2, last);
                if (r < 0)
                        return r;
                last = open[n];
        }
        *ret = last;
        return 0;
}

static int parse(ExprParser *p, Expr **ret) {
        const char *bad = utf8_fault(p->text, strlen(p->text));
        if (bad)
                return expr_fail(p->error, bad, "not UTF-8");
        int r = next(p) ?: parse_expr(p, ret);
        if (r >= 0 && p->token.type != TOKEN_END)
                return expr_fail(p->error, p->token.at,
                                 "the expression should end here, or an operator should follow");
        return r;
}

/* "column 12: no such overload: int + double"; the first line has no number. */
static char *locate(const char *text, const ExprError *error) {
        unsigned line = 1, column = 1;
        for (const char *s = text; s < error->at; s++) {
                if (((unsigned char)*s & 0xc0) != 0x80)
                        column++;
                if (*s == '\n') {
                        line++;
                        column = 1;
                }
        }
        return line == 1 ? xasprintf("column %u: %s", column, error->text)
                         : xasprintf("line %u, column %u: %s", line, column, error->text);
}

/* As nodeadm: by int(). */
static int convert_result(ExprPool *pool, const char *text, const ExprValue *value, int64_t *ret,
                          ExprError *error) {
        const ExprOverload *o = expr_overload(NULL, "int", false, &value->type, 1);
        ExprValue result;
        if (!o)
                return expr_fail(error, text, "the result is of type %s and not a number",
                                 expr_type_name(value->type));
        const char *why = o->call(&(ExprCall){ pool, o->name, value }, &result);
        if (why)
                return expr_fail(error, text, "the result is %s", why);
        *ret = result.i;
        return 0;
}

int expr_evaluate(const char *text, const ExprVariable *variables, size_t n, int64_t *ret, char **ret_why) {
        _cleanup_(expr_pool_done) ExprPool pool = {};
        ExprError error = {};
        ExprParser p = { .text = text, .at = text, .variables = variables, .n_variables = n, .pool = &pool,
                         .error = &error };
        Expr *e = NULL;
        ExprType type;
        ExprValue value = {};
        int r = strnlen(text, EXPR_MAX_BYTES + 1) > EXPR_MAX_BYTES
                        ? expr_fail(&error, text, "more than %u KiB of text", EXPR_MAX_BYTES >> 10)
                        : parse(&p, &e);
        THEN(r, expr_check(e, &type, &error));
        THEN(r, expr_eval(&pool, e, &value, &error));
        THEN(r, convert_result(&pool, text, &value, ret, &error));
        if (r < 0)
                *ret_why = locate(text, &error);
        free(error.text);
        return r;
}
