/* SPDX-License-Identifier: Apache-2.0
 * The tree of an expression → its value (github.com/google/cel-spec, doc/langdef.md#evaluation). It checks
 * all types first, so that a mistake in any branch shows on every machine. */
#include "doc/doc.h"
#include "doc/expr.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int expr_fail(ExprError *error, const char *at, const char *format, ...) {
        free(error->text);
        error->text = FORMATTED(format);
        error->at = at;
        return -EINVAL;
}

static int fail_overload(ExprError *error, const Expr *e, const ExprType *types) {
        const char *a = expr_type_name(types[0]), *b = e->n > 1 ? expr_type_name(types[1]) : "";
        if (streq(e->name, "[]"))
                return expr_fail(error, e->at, "no such overload: %s[%s]", a, b);
        if (strchr("+-*/%!<>=i", *e->name) && !startswith(e->name, "int"))
                return e->n == 1 ? expr_fail(error, e->at, "no such overload: %s%s", e->name, a)
                                 : expr_fail(error, e->at, "no such overload: %s %s %s", a, e->name, b);
        if (e->n > 2 || e->n == 0)
                return expr_fail(error, e->at, "%s() does not take %zu arguments", e->name, e->n - e->method);
        if (e->method)
                return expr_fail(error, e->at, "no such overload: %s.%s(%s)", a, e->name, b);
        return expr_fail(error, e->at, "no such overload: %s(%s%s%s)", e->name, a, *b ? ", " : "", b);
}

static int fail_condition(ExprError *error, const Expr *e, ExprType type) {
        return expr_fail(error, e->at, "a condition must be a bool, not %s",
                         expr_type_name(type));
}

/* Possible types of a subexpression, and of its items. */
typedef struct Shape { ExprType types, items; } Shape;

static int check(const Expr *e, Shape *ret, ExprError *error);

/* Numbers of two types compare only where one type is known only at run time (dyn): nodeadm does not set
 * CrossTypeNumericComparisons (google/cel-go cel/options.go). */
static bool is_comparable(ExprType a, ExprType b) {
        bool known = (a & (a - 1)) == 0 && (b & (b - 1)) == 0;
        return a & b || (!known && a & EXPR_NUMBER && b & EXPR_NUMBER);
}

static int check_call(const Expr *e, const Shape *args, Shape *ret, ExprError *error) {
        ExprType types[2] = { 0, 0 };
        for (size_t i = 0; i < e->n && i < 2; i++)
                types[i] = args[i].types;
        *ret = (Shape){ 0, EXPR_ANY };
        for (const ExprOverload *o = NULL; e->n <= 2; o++) {
                o = expr_overload(o, e->name, e->method, types, e->n);
                if (!o)
                        break;
                ret->types |= o->result;
        }
        bool compares = e->n == 2 && strchr("<>=!", *e->name);
        if (ret->types == 0 || (compares && !is_comparable(types[0], types[1])) ||
            (streq(e->name, "in") && !is_comparable(types[0], args[1].items)))
                return fail_overload(error, e, types);
        if (streq(e->name, "[]"))
                ret->types = args[0].items;
        return 0;
}

static int check_condition(const Expr *e, const Shape *args, Shape *ret, ExprError *error) {
        size_t conditions = e->kind == EXPR_CONDITION ? 1 : 2;
        for (size_t i = 0; i < conditions; i++)
                if (!(args[i].types & EXPR_BOOL))
                        return fail_condition(error, e->args[i], args[i].types);
        *ret = (Shape){ EXPR_BOOL, EXPR_ANY };
        if (conditions == 2)
                return 0;
        if (!(args[1].types & args[2].types))
                return expr_fail(error, e->at, "both sides of the : must have the same type, not %s and %s",
                                 expr_type_name(args[1].types), expr_type_name(args[2].types));
        *ret = (Shape){ args[1].types | args[2].types, args[1].items | args[2].items };
        return 0;
}

static int check(const Expr *e, Shape *ret, ExprError *error) {
        if (e->kind == EXPR_LITERAL) {
                *ret = (Shape){ e->value.type, EXPR_ANY };
                return 0;
        }
        _free_ Shape *args = xcalloc(e->n, sizeof *args);
        ExprType items = 0;
        for (size_t i = 0; i < e->n; i++) {
                int r = check(e->args[i], &args[i], error);
                if (r < 0)
                        return r;
                items |= args[i].types;
        }
        if (e->kind == EXPR_CALL)
                return check_call(e, args, ret, error);
        if (e->kind != EXPR_ITEMS)
                return check_condition(e, args, ret, error);
        *ret = (Shape){ EXPR_LIST, items ?: EXPR_ANY };
        return 0;
}

int expr_check(const Expr *e, ExprType *ret, ExprError *error) {
        Shape shape = {};
        int r = check(e, &shape, error);
        if (r >= 0)
                *ret = shape.types;
        return r;
}

static int eval_bool(ExprPool *pool, const Expr *e, bool *ret, ExprError *error) {
        ExprValue value = {};
        int r = expr_eval(pool, e, &value, error);
        if (r < 0)
                return r;
        if (value.type != EXPR_BOOL)
                return fail_condition(error, e, value.type);
        *ret = value.boolean;
        return 0;
}

/* && and ||: one side that decides is enough, even where the other one fails. */
static int eval_logic(ExprPool *pool, const Expr *e, ExprValue *ret, ExprError *error) {
        bool decides = e->kind == EXPR_OR, value = false;
        ExprError other = {};
        int failed = 0;
        for (size_t i = 0; i < 2; i++) {
                int r = eval_bool(pool, e->args[i], &value, failed < 0 ? &other : error);
                if (r < 0)
                        failed = r;
                else if (value == decides) {
                        failed = 0;
                        break;
                }
        }
        free(other.text);
        if (failed < 0)
                return failed;
        free(TAKE_PTR(error->text));
        *ret = (ExprValue){ .type = EXPR_BOOL, .boolean = value == decides ? decides : !decides };
        return 0;
}

static int eval_call(ExprPool *pool, const Expr *e, const ExprValue *args, ExprValue *ret, ExprError *error) {
        ExprType types[2] = { args[0].type, e->n > 1 ? args[1].type : 0 };
        const ExprOverload *o = expr_overload(NULL, e->name, e->method, types, e->n);
        if (!o)
                return fail_overload(error, e, types);
        const char *why = o->call(&(ExprCall){ pool, o->name, args }, ret);
        return why ? expr_fail(error, e->at, "%s", why) : 0;
}

int expr_eval(ExprPool *pool, const Expr *e, ExprValue *ret, ExprError *error) {
        bool yes = false;
        if (e->kind == EXPR_LITERAL) {
                *ret = e->value;
                return 0;
        }
        if (e->kind == EXPR_AND || e->kind == EXPR_OR)
                return eval_logic(pool, e, ret, error);
        if (e->kind == EXPR_CONDITION) {
                int r = eval_bool(pool, e->args[0], &yes, error);
                return r < 0 ? r : expr_eval(pool, e->args[yes ? 1 : 2], ret, error);
        }
        ExprValue *values = expr_pool_alloc(pool, e->n * sizeof *values);
        for (size_t i = 0; i < e->n; i++) {
                int r = expr_eval(pool, e->args[i], &values[i], error);
                if (r < 0)
                        return r;
        }
        if (e->kind == EXPR_CALL)
                return eval_call(pool, e, values, ret, error);
        *ret = (ExprValue){ .type = EXPR_LIST, .items = values, .n = e->n };
        return 0;
}
