/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside the evaluator only: text → tokens (expr-lex.c) → a tree (expr.c) → types and a value
 * (expr-eval.c), by one table of overloads (expr-functions.c). */
#include "base/str.h"
#include <stdint.h>

#define EXPR_MAX_BYTES   (64u << 10)
#define EXPR_MAX_DEPTH   100u           /* of nested brackets */
#define EXPR_MAX_HEIGHT  250u           /* of the tree, operators in a row included; as in cel-go */

/* Bits: a set holds the possible types of a subexpression. */
typedef enum ExprType {
        EXPR_NULL = 1, EXPR_BOOL = 2, EXPR_INT = 4, EXPR_UINT = 8, EXPR_DOUBLE = 16, EXPR_STRING = 32,
        EXPR_LIST = 64, EXPR_TYPE = 128,
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
                ExprType named;         /* of a type as a value: type(1) == int */
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
        ExprValue value;        /* of a literal; of an int, u is the magnitude: the parser adds the sign */
} Token;
/* Reads one token at *at and moves past it. Returns NULL or a message. */
_must_check_ const char *expr_lex(ExprPool *pool, const char **at, Token *ret);

typedef enum ExprKind { EXPR_LITERAL, EXPR_ITEMS, EXPR_CALL, EXPR_AND, EXPR_OR, EXPR_CONDITION } ExprKind;
typedef struct Expr Expr;
struct Expr {
        ExprKind kind;
        bool method;            /* called as x.f(y): x is the first argument */
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
        char name[12];
        unsigned n;
        ExprFunction call;      /* returns NULL, or why it fails */
        ExprType args[2], result;
        enum { EXPR_AS_FUNCTION = 1, EXPR_AS_METHOD = 2, EXPR_AS_BOTH = 3 } form;
} ExprOverload;
/* The first overload from start on that takes such types, or NULL. n == SIZE_MAX: any types. */
const ExprOverload *expr_overload(const ExprOverload *start, const char *name, bool method,
                                  const ExprType *types, size_t n);
const char *expr_type_name(ExprType type);      /* "dyn" for a set */
ExprType expr_type_from_name(const char *name, size_t size);    /* 0: none */

typedef struct ExprError { const char *at; char *text; } ExprError;     /* text is owned */
/* The possible types of the value. It checks all branches, as cel-go does. */
_must_check_ int expr_check(const Expr *e, ExprType *ret, ExprError *error);
_must_check_ int expr_eval(ExprPool *pool, const Expr *e, ExprValue *ret, ExprError *error);
/* Sets the error and returns -EINVAL. */
int expr_fail(ExprError *error, const char *at, const char *format, ...) _printf_(3, 4);
