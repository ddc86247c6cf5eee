/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the parts of the expression evaluator hand to each other: text → tokens (expr-lex.c) → a tree
 * (expr.c) → types and a value (expr-eval.c), by one table of overloads (expr-functions.c). Everybody else
 * uses expr_evaluate() of doc.h. */
#include "base/str.h"
#include <stdint.h>

#define EXPR_MAX_BYTES   (64u << 10)
#define EXPR_MAX_DEPTH   100u           /* brackets in each other */
#define EXPR_MAX_HEIGHT  250u           /* operators in a row count here too; cel-go has the same limit */

/* One bit each, so that a set of them says what a subexpression can be before it is evaluated. */
typedef enum ExprType {
        EXPR_NULL = 1,
        EXPR_BOOL = 2,
        EXPR_INT = 4,
        EXPR_UINT = 8,
        EXPR_DOUBLE = 16,
        EXPR_STRING = 32,
        EXPR_LIST = 64,
        EXPR_TYPE = 128,
        EXPR_NUMBER = EXPR_INT | EXPR_UINT | EXPR_DOUBLE,
        EXPR_ANY = 255,
} ExprType;

typedef struct ExprValue ExprValue;
struct ExprValue {
        ExprType type;
        size_t n;               /* bytes of text, items of a list */
        union {
                bool boolean;
                int64_t i;
                uint64_t u;
                double d;
                const char *text;
                const ExprValue *items;
                ExprType named;         /* a type is a value too: type(1) == int */
        };
};

/* Memory that lives as long as one evaluation. */
typedef struct ExprPool { void **items; size_t n; } ExprPool;
void *expr_pool_alloc(ExprPool *pool, size_t size);     /* zeroed */
char *expr_pool_text(ExprPool *pool, const char *text, size_t size);

typedef enum TokenType { TOKEN_END, TOKEN_NAME, TOKEN_LITERAL, TOKEN_OPERATOR } TokenType;
typedef struct Token {
        TokenType type;
        const char *at;
        size_t size;
        ExprValue value;        /* of a literal; an int holds its magnitude in
                                 * u, since only the parser knows the sign */
} Token;
/* Reads one token at *at and moves behind it. Returns NULL, or what is wrong with it. */
_must_check_ const char *expr_lex(ExprPool *pool, const char **at, Token *ret);

typedef enum ExprKind { EXPR_LITERAL, EXPR_ITEMS, EXPR_CALL, EXPR_AND, EXPR_OR, EXPR_CONDITION } ExprKind;
typedef struct Expr Expr;
struct Expr {
        ExprKind kind;
        bool method;            /* a call as x.f(y): x is the first argument */
        unsigned height;
        const char *at;         /* in the text, for errors */
        const char *name;       /* of a call: the operator or the function */
        ExprValue value;        /* of a literal */
        Expr **args;
        size_t n;
};

typedef struct ExprCall { ExprPool *pool; const char *name; const ExprValue *args; } ExprCall;
typedef const char *(*ExprFunction)(const ExprCall *c, ExprValue *ret);
typedef struct ExprOverload {
        const char *name;
        unsigned n;
        ExprType args[2], result;
        ExprFunction call;      /* returns NULL, or why there is no value */
        /* operators are functions */
        enum { EXPR_AS_FUNCTION = 1, EXPR_AS_METHOD = 2, EXPR_AS_BOTH = 3 } form;
} ExprOverload;
/* The first overload of that name and form that takes arguments of such types, looking from start on; NULL
 * when there is none. With n == SIZE_MAX types are not asked: is there such a function at all? */
const ExprOverload *expr_overload(const ExprOverload *start, const char *name, bool method,
                                  const ExprType *types, size_t n);
const char *expr_type_name(ExprType type);      /* "dyn" for a set */
_must_check_ int expr_type_from_name(const char *name, size_t size, ExprType *ret);

typedef struct ExprError { const char *at; char *text; } ExprError;     /* text is owned */
/* What types the value can have; refuses what can never have one, in branches that are not taken too, as
 * cel-go does. */
_must_check_ int expr_check(const Expr *e, ExprType *ret, ExprError *error);
_must_check_ int expr_eval(ExprPool *pool, const Expr *e, ExprValue *ret, ExprError *error);
/* Sets the error and returns -EINVAL. */
int expr_fail(ExprError *error, const char *at, const char *format, ...) _printf_(3, 4);
