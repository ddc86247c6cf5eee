/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Executes PTX text, a warp of 32 lanes at a time: the GPU of libcuda.c. It knows the instructions that
 * nodestrap uses and their neighbours; any other is an error of the text. The PTX ISA says what each does
 * (https://docs.nvidia.com/cuda/parallel-thread-execution): widths of operands, shifts by too much, and where
 * lanes have the elements of mma.m16n8k16. Undefined registers hold garbage here, and mma in a part of a warp
 * is an error. Lanes that have parted meet again: those with the lowest instruction go first. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANES         32U
#define FULL          0xffffffffU
#define NAME_MAX_PTX  64
#define PARTS_MAX     12
#define OPERANDS_MAX  5
#define MMA_REGISTERS 14

enum { PTX_OK, PTX_ILLEGAL_INSTRUCTION, PTX_ILLEGAL_ADDRESS, PTX_MISALIGNED, PTX_ENDLESS };

typedef enum PtxCode {
        PTX_MOV,
        PTX_ADD,
        PTX_SUB,
        PTX_MUL_LO,
        PTX_MUL_HI,
        PTX_MUL_WIDE,
        PTX_MAD_LO,
        PTX_MAD_HI,
        PTX_MAD_WIDE,
        PTX_MIN,
        PTX_MAX,
        PTX_AND,
        PTX_OR,
        PTX_XOR,
        PTX_NOT,
        PTX_SHL,
        PTX_SHR,
        PTX_SETP,
        PTX_SELP,
        PTX_CVT,
        PTX_LD,
        PTX_ST,
        PTX_ATOM,
        PTX_BRA,
        PTX_RET,
        PTX_MMA
} PtxCode;
typedef enum PtxCompare { PTX_EQ, PTX_NE, PTX_LT, PTX_LE, PTX_GT, PTX_GE } PtxCompare;

/* kind: u, s, b, f or p (.pred, whose width is 1) */
typedef struct PtxType {
        char kind;
        unsigned char width;
} PtxType;
typedef struct PtxOp {
        PtxCode code;
        PtxCompare compare;
        PtxCode change;     /* of PTX_ATOM: PTX_ADD, PTX_MIN, PTX_MOV (exch) … */
        PtxType type, from; /* from: of cvt */
        int guard;          /* register of the predicate, or -1 */
        bool negated;
        int to, a, b, c; /* registers; to -1: of red */
        int64_t offset;
        unsigned target, line;
        char label[NAME_MAX_PTX];
        unsigned short mma[MMA_REGISTERS]; /* d, a, b; c follows in more */
        unsigned short more[4];
} PtxOp;
typedef struct PtxRegister {
        char name[NAME_MAX_PTX];
        PtxType type;
        bool constant;
        uint64_t value;
} PtxRegister;
typedef struct PtxLabel {
        char name[NAME_MAX_PTX];
        unsigned at;
} PtxLabel;
typedef struct PtxParam {
        char name[NAME_MAX_PTX];
        PtxType type;
        int reg;
} PtxParam;
typedef struct PtxKernel {
        char name[NAME_MAX_PTX];
        PtxParam params[16];
        unsigned n_params;
        PtxRegister *regs;
        unsigned n_regs;
        PtxOp *ops;
        unsigned n_ops;
        PtxLabel labels[64];
        unsigned n_labels;
} PtxKernel;
typedef struct PtxModule {
        unsigned version, target; /* 70: 7.0; 80: sm_80 */
        PtxKernel *kernels[16];
        unsigned n;
} PtxModule;

/* The GPU below a kernel, and the work of a launch. */
typedef struct PtxMachine {
        void *user;
        unsigned char *(*reach)(void *user, uint64_t address, unsigned bytes); /* NULL: an illegal address */
        void (*written)(void *user, uint64_t address, unsigned bytes);         /* or NULL */
        unsigned sms;                                                          /* blocks go round them */
        int wrong_sm;                /* sums come out wrong there; -1: nowhere */
        bool backward;               /* mma adds from the last product to the first */
        unsigned bits;               /* of a sum, which is cut off after each addition; 24: a whole f32 */
        uint64_t steps_max;          /* instructions of a launch, for whole warps */
        uint64_t bytes, mmas, steps; /* what a launch has done */
} PtxMachine;

/* ---- text → instructions ---- */

typedef struct PtxReader {
        const char *at;
        unsigned line;
        PtxKernel *kernel;
        char error[160];
} PtxReader;

__attribute__((format(printf, 2, 3))) static bool ptx_fail(PtxReader *r, const char *format, ...) {
        va_list args;
        va_start(args, format);
        if (!*r->error) {
                int n = snprintf(r->error, sizeof r->error, "line %u; error : ", r->line);
                vsnprintf(r->error + n, sizeof r->error - (size_t)n, format, args);
        }
        va_end(args);
        return false;
}

static void ptx_blank(PtxReader *r) {
        for (;; r->at++) {
                if (r->at[0] == '/' && r->at[1] == '/')
                        r->at += strcspn(r->at, "\n");
                if (*r->at == '\n')
                        r->line++;
                else if (!*r->at || !strchr(" \t\r", *r->at))
                        return;
        }
}

/* Up to one of these characters, which it skips, without blanks at both ends; NULL: the text ends before. */
static char *ptx_until(PtxReader *r, const char *ends, char *ret_end) {
        char *text = calloc(1, strlen(r->at) + 1), *to = text;
        for (ptx_blank(r); *r->at && !strchr(ends, *r->at);) {
                *to++ = *r->at++;
                const char *before = r->at;
                ptx_blank(r);
                if (before != r->at && *r->at && !strchr(ends, *r->at))
                        *to++ = ' ';
        }
        *ret_end = *r->at;
        if (!*r->at) {
                free(text);
                return NULL;
        }
        r->at++;
        return text;
}

static PtxType ptx_type(const char *name) {
        static const char *const names[] = { "u32", "s32", "b32", "f32", "u64", "s64", "b64", "f64" };
        if (strcmp(name, "pred") == 0)
                return (PtxType){ 'p', 1 };
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
                if (strcmp(names[i], name) == 0)
                        return (PtxType){ *name, i < 4 ? 32 : 64 };
        return (PtxType){};
}

static int ptx_register_add(PtxKernel *k, const char *name, PtxType type) {
        k->regs = realloc(k->regs, (k->n_regs + 1) * sizeof *k->regs);
        k->regs[k->n_regs] = (PtxRegister){ .type = type };
        snprintf(k->regs[k->n_regs].name, NAME_MAX_PTX, "%s", name);
        return (int)k->n_regs++;
}

static int ptx_register_find(const PtxKernel *k, const char *name) {
        for (unsigned i = 0; i < k->n_regs; i++)
                if (strcmp(k->regs[i].name, name) == 0)
                        return (int)i;
        return -1;
}

/* The first registers of a kernel; mov alone reads them. */
enum { PTX_TID, PTX_NTID, PTX_CTAID, PTX_NCTAID, PTX_LANEID, PTX_SPECIAL };
static const char *const ptx_special[] = { "%tid.x", "%ntid.x", "%ctaid.x", "%nctaid.x", "%laneid" };

/* A register of that width, or of more. */
static int ptx_register(PtxReader *r, const char *name, unsigned width, bool wider) {
        int i = ptx_register_find(r->kernel, name);
        if (*name != '%' || i < PTX_SPECIAL) {
                ptx_fail(r, "not a register: %s", name);
                return 0;
        }
        unsigned has = r->kernel->regs[i].type.width;
        if (wider ? has < width || has == 1 : has != width)
                ptx_fail(r, "%s has %u bits, not %u", name, has, width);
        return i;
}

static int ptx_source(PtxReader *r, const char *text, PtxType type, bool wider) {
        char *end;
        bool minus = *text == '-';
        uint64_t value = strtoull(text + minus, &end, 0);
        if (*text == '%' || end == text + minus)
                return ptx_register(r, text, type.width, wider);
        if (*end && strcmp(end, "U") != 0)
                ptx_fail(r, "not a number: %s", text);
        value = minus ? -value : value;
        int i = ptx_register_add(r->kernel, "", type);
        r->kernel->regs[i].constant = true;
        r->kernel->regs[i].value = type.width == 32 ? (uint32_t)value : value;
        return i;
}

/* "[%at+8]" */
static int ptx_address(PtxReader *r, char *text, int64_t *ret_offset) {
        size_t n = strlen(text);
        if (n < 2 || *text != '[' || text[n - 1] != ']') {
                ptx_fail(r, "not an address: %s", text);
                return 0;
        }
        text[n - 1] = 0;
        char *plus = strchr(text, '+');
        *ret_offset = plus ? strtoll(plus + 1, NULL, 0) : 0;
        if (plus)
                *plus = 0;
        return ptx_register(r, text + 1, 64, false);
}

/* "{%a0, %a1}": that many of 32 bits */
static void ptx_vector(PtxReader *r, char *text, unsigned n, unsigned short *to) {
        unsigned i = 0;
        char *save = NULL;
        if (*text != '{')
                ptx_fail(r, "not a vector: %s", text);
        for (char *word = strtok_r(text, "{}, ", &save); word && i < n;
             word = strtok_r(NULL, "{}, ", &save), i++)
                to[i] = (unsigned short)ptx_register(r, word, 32, false);
        if (i < n || strtok_r(NULL, "{}, ", &save))
                ptx_fail(r, "a vector of %u registers is wanted", n);
}

typedef struct PtxWords {
        char *parts[PARTS_MAX], *operands[OPERANDS_MAX];
        unsigned n, n_operands;
} PtxWords;

static bool ptx_is_integer(PtxType t) {
        return t.width >= 32 && (t.kind == 'u' || t.kind == 's');
}

/* mov, and ld.param, for which a parameter is a register. */
static bool ptx_decode_mov(PtxReader *r, PtxOp *op, const PtxWords *w) {
        op->to = ptx_register(r, w->operands[0], op->type.width, false);
        for (unsigned i = 0; i < PTX_SPECIAL; i++)
                if (strcmp(w->operands[1], ptx_special[i]) == 0) {
                        op->a = (int)i;
                        return op->type.width == 32 || ptx_fail(r, "%s has 32 bits", ptx_special[i]);
                }
        op->a = ptx_source(r, w->operands[1], op->type, false);
        return true;
}

static bool ptx_decode_param(PtxReader *r, PtxOp *op, const PtxWords *w) {
        op->to = ptx_register(r, w->operands[0], op->type.width, true);
        for (unsigned i = 0; i < r->kernel->n_params; i++) {
                const PtxParam *p = &r->kernel->params[i];
                size_t n = strlen(p->name);
                const char *text = w->operands[1];
                if (*text == '[' && strncmp(text + 1, p->name, n) == 0 && strcmp(text + 1 + n, "]") == 0) {
                        op->a = p->reg;
                        return op->type.width <= p->type.width || ptx_fail(r, "%s is shorter", p->name);
                }
        }
        return ptx_fail(r, "no such parameter: %s", w->operands[1]);
}

static bool ptx_decode_atom(PtxReader *r, PtxOp *op, const PtxWords *w, bool returns) {
        static const struct {
                const char *name;
                PtxCode change;
                const char *types;
        } changes[] = {
                { "add", PTX_ADD, "u32 s32 u64" },     { "min", PTX_MIN, "u32 s32 u64 s64" },
                { "max", PTX_MAX, "u32 s32 u64 s64" }, { "and", PTX_AND, "b32 b64" },
                { "or", PTX_OR, "b32 b64" },           { "xor", PTX_XOR, "b32 b64" },
                { "exch", PTX_MOV, "b32 b64" },
        };
        if (w->n != 4 || strcmp(w->parts[1], "global") != 0 || w->n_operands != 2U + returns)
                return ptx_fail(r, "not such an atomic operation");
        op->to = returns ? ptx_register(r, w->operands[0], op->type.width, false) : -1;
        op->a = ptx_address(r, w->operands[returns], &op->offset);
        op->b = ptx_source(r, w->operands[returns + 1], op->type, false);
        for (unsigned i = 0; i < sizeof changes / sizeof *changes; i++)
                if (strcmp(changes[i].name, w->parts[2]) == 0 && strstr(changes[i].types, w->parts[3])) {
                        op->change = changes[i].change;
                        return true;
                }
        return ptx_fail(r, "not such an atomic operation");
}

static bool ptx_decode_setp(PtxReader *r, PtxOp *op, const PtxWords *w) {
        static const struct {
                const char *name, *kinds;
                PtxCompare compare;
        } compares[] = {
                { "eq", "usb", PTX_EQ }, { "ne", "usb", PTX_NE }, { "lt", "us", PTX_LT },
                { "le", "us", PTX_LE },  { "gt", "us", PTX_GT },  { "ge", "us", PTX_GE },
                { "lo", "u", PTX_LT },   { "ls", "u", PTX_LE },   { "hi", "u", PTX_GT },
                { "hs", "u", PTX_GE },
        };
        op->to = ptx_register(r, w->operands[0], 1, false);
        op->a = ptx_source(r, w->operands[1], op->type, false);
        op->b = ptx_source(r, w->operands[2], op->type, false);
        for (unsigned i = 0; i < sizeof compares / sizeof *compares; i++)
                if (strcmp(compares[i].name, w->parts[1]) == 0 && strchr(compares[i].kinds, op->type.kind)) {
                        op->compare = compares[i].compare;
                        return true;
                }
        return ptx_fail(r, "not such a comparison");
}

static bool ptx_decode_mma(PtxReader *r, PtxOp *op, const PtxWords *w) {
        op->code = PTX_MMA;
        if (w->n_operands != 4)
                return ptx_fail(r, "mma has four operands");
        ptx_vector(r, w->operands[0], 4, op->mma);
        ptx_vector(r, w->operands[1], 4, op->mma + 4);
        ptx_vector(r, w->operands[2], 2, op->mma + 8);
        ptx_vector(r, w->operands[3], 4, op->more);
        return !*r->error;
}

/* Instructions with a type at the end, operands of that type and nothing else that is special. */
static bool ptx_decode_plain(PtxReader *r, PtxOp *op, const PtxWords *w) {
        static const struct {
                const char *name;
                unsigned parts, operands;
                PtxCode code;
                const char *kinds;
        } plain[] = {
                { "add", 2, 3, PTX_ADD, "us" },
                { "sub", 2, 3, PTX_SUB, "us" },
                { "mul.lo", 3, 3, PTX_MUL_LO, "us" },
                { "mul.hi", 3, 3, PTX_MUL_HI, "us" },
                { "mul.wide", 3, 3, PTX_MUL_WIDE, "us" },
                { "mad.lo", 3, 4, PTX_MAD_LO, "us" },
                { "mad.hi", 3, 4, PTX_MAD_HI, "us" },
                { "mad.wide", 3, 4, PTX_MAD_WIDE, "us" },
                { "min", 2, 3, PTX_MIN, "us" },
                { "max", 2, 3, PTX_MAX, "us" },
                { "and", 2, 3, PTX_AND, "b" },
                { "or", 2, 3, PTX_OR, "b" },
                { "xor", 2, 3, PTX_XOR, "b" },
                { "not", 2, 2, PTX_NOT, "b" },
                { "shl", 2, 3, PTX_SHL, "b" },
                { "shr", 2, 3, PTX_SHR, "bus" },
        };
        char name[2 * NAME_MAX_PTX];
        snprintf(name, sizeof name, "%s%s%s", w->parts[0], w->n == 3 ? "." : "",
                 w->n == 3 ? w->parts[1] : "");
        for (unsigned i = 0; i < sizeof plain / sizeof *plain; i++) {
                if (strcmp(plain[i].name, name) != 0 || plain[i].parts != w->n ||
                    plain[i].operands != w->n_operands || !strchr(plain[i].kinds, op->type.kind))
                        continue;
                op->code = plain[i].code;
                bool wide = op->code == PTX_MUL_WIDE || op->code == PTX_MAD_WIDE;
                bool shift = op->code == PTX_SHL || op->code == PTX_SHR;
                if (wide && op->type.width != 32)
                        return ptx_fail(r, "%s of 64 bits", name);
                PtxType twice = { op->type.kind, 64 }, amount = { 'u', 32 };
                op->to = ptx_register(r, w->operands[0], wide ? 64 : op->type.width, false);
                op->a = ptx_source(r, w->operands[1], op->type, false);
                if (w->n_operands > 2)
                        op->b = ptx_source(r, w->operands[2], shift ? amount : op->type, false);
                if (w->n_operands > 3)
                        op->c = ptx_source(r, w->operands[3], wide ? twice : op->type, false);
                return !*r->error;
        }
        return ptx_fail(r, "unknown instruction %s", name);
}

static bool ptx_is(const PtxWords *w, const char *name, unsigned parts, unsigned operands) {
        return strcmp(w->parts[0], name) == 0 && w->n == parts && w->n_operands == operands;
}

static bool ptx_decode(PtxReader *r, PtxOp *op, const PtxWords *w, const char *opcode) {
        op->type = ptx_type(w->parts[w->n - 1]);
        const char *second = w->n > 1 ? w->parts[1] : "";
        if (strcmp(opcode, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32") == 0)
                return ptx_decode_mma(r, op, w);
        if ((ptx_is(w, "bra", 1, 1) || ptx_is(w, "bra", 2, 1)) && (w->n == 1 || strcmp(second, "uni") == 0)) {
                op->code = PTX_BRA;
                snprintf(op->label, sizeof op->label, "%s", w->operands[0]);
                return true;
        }
        if (ptx_is(w, "ret", 1, 0) || ptx_is(w, "exit", 1, 0)) {
                op->code = PTX_RET;
                return true;
        }
        if (op->type.width < 32)
                return ptx_fail(r, "unknown instruction %s", opcode);
        if (ptx_is(w, "mov", 2, 2)) {
                op->code = PTX_MOV;
                return ptx_decode_mov(r, op, w);
        }
        if (ptx_is(w, "ld", 3, 2) && strcmp(second, "param") == 0) {
                op->code = PTX_MOV;
                return ptx_decode_param(r, op, w);
        }
        if (ptx_is(w, "ld", 3, 2) && strcmp(second, "global") == 0) {
                op->code = PTX_LD;
                op->to = ptx_register(r, w->operands[0], op->type.width, true);
                op->a = ptx_address(r, w->operands[1], &op->offset);
                return !*r->error;
        }
        if (ptx_is(w, "st", 3, 2) && strcmp(second, "global") == 0) {
                op->code = PTX_ST;
                op->a = ptx_address(r, w->operands[0], &op->offset);
                op->b = ptx_source(r, w->operands[1], op->type, true);
                return !*r->error;
        }
        if (strcmp(w->parts[0], "red") == 0 || strcmp(w->parts[0], "atom") == 0) {
                op->code = PTX_ATOM;
                return ptx_decode_atom(r, op, w, *w->parts[0] == 'a');
        }
        if (strcmp(opcode, "cvta.to.global.u64") == 0 || strcmp(opcode, "cvta.global.u64") == 0) {
                op->code = PTX_MOV; /* both spaces have the same addresses */
                return w->n_operands == 2 && ptx_decode_mov(r, op, w);
        }
        if (ptx_is(w, "cvt", 3, 2)) {
                op->code = PTX_CVT;
                op->from = op->type;
                op->type = ptx_type(second);
                if (!ptx_is_integer(op->type) || !ptx_is_integer(op->from))
                        return ptx_fail(r, "unknown instruction %s", opcode);
                op->to = ptx_register(r, w->operands[0], op->type.width, true);
                op->a = ptx_register(r, w->operands[1], op->from.width, true);
                return !*r->error;
        }
        if (ptx_is(w, "setp", 3, 3)) {
                op->code = PTX_SETP;
                return ptx_decode_setp(r, op, w);
        }
        if (ptx_is(w, "selp", 2, 4)) {
                op->code = PTX_SELP;
                op->to = ptx_register(r, w->operands[0], op->type.width, false);
                op->a = ptx_source(r, w->operands[1], op->type, false);
                op->b = ptx_source(r, w->operands[2], op->type, false);
                op->c = ptx_register(r, w->operands[3], 1, false);
                return !*r->error;
        }
        return ptx_decode_plain(r, op, w);
}

/* Splits at commas outside of braces and brackets. */
static void ptx_operands(PtxReader *r, char *text, PtxWords *w) {
        unsigned depth = 0;
        for (char *at = text, *start = text; *start; at++) {
                depth += *at == '{' || *at == '[';
                depth -= depth > 0 && (*at == '}' || *at == ']');
                if (*at && (*at != ',' || depth > 0))
                        continue;
                if (w->n_operands == OPERANDS_MAX) {
                        ptx_fail(r, "too many operands");
                        return;
                }
                bool last = !*at;
                *at = 0;
                for (char *end = at; end > start && end[-1] == ' '; end--)
                        end[-1] = 0;
                w->operands[w->n_operands++] = start;
                if (last)
                        return;
                start = at + 1 + strspn(at + 1, " ");
                at = start - 1;
        }
}

/* "@!%p bra LOOP", "add.u32 %a, %b, 1" */
static bool ptx_instruction(PtxReader *r, char *text) {
        PtxKernel *k = r->kernel;
        PtxOp op = { .guard = -1, .to = -1, .line = r->line };
        PtxWords w = {};
        char opcode[2 * NAME_MAX_PTX], *save = NULL;
        if (*text == '@') {
                char *end = text + strcspn(text, " ");
                if (!*end)
                        return ptx_fail(r, "a predicate alone");
                *end = 0;
                op.negated = text[1] == '!';
                op.guard = ptx_register(r, text + 1 + op.negated, 1, false);
                text = end + 1;
        }
        char *rest = text + strcspn(text, " ");
        if (*rest)
                *rest++ = 0;
        snprintf(opcode, sizeof opcode, "%s", text);
        for (char *part = strtok_r(text, ".", &save); part && w.n < PARTS_MAX;
             part = strtok_r(NULL, ".", &save))
                w.parts[w.n++] = part;
        ptx_operands(r, rest, &w);
        if (w.n == 0 || *r->error || !ptx_decode(r, &op, &w, opcode) || *r->error)
                return ptx_fail(r, "cannot read this");
        k->ops = realloc(k->ops, (k->n_ops + 1) * sizeof *k->ops);
        k->ops[k->n_ops++] = op;
        return true;
}

/* ".reg .b32 %a, %s<6>" */
static bool ptx_registers(PtxReader *r, char *text) {
        char *save = NULL, *word = strtok_r(text, " ,", &save), *type = strtok_r(NULL, " ,", &save);
        if (!word || !type || strcmp(word, ".reg") != 0 || *type != '.' || ptx_type(type + 1).width == 0)
                return ptx_fail(r, "unknown directive");
        while ((word = strtok_r(NULL, " ,", &save))) {
                char *many = strchr(word, '<'), name[NAME_MAX_PTX];
                unsigned n = many ? (unsigned)atoi(many + 1) : 1;
                if (many)
                        *many = 0;
                for (unsigned i = 0; i < n && n <= 256; i++) {
                        snprintf(name, sizeof name, many ? "%.48s%u" : "%.48s", word, i);
                        if (*name != '%' || ptx_register_find(r->kernel, name) >= 0)
                                return ptx_fail(r, "%s is there already, or not a name", name);
                        ptx_register_add(r->kernel, name, ptx_type(type + 1));
                }
        }
        return true;
}

static bool ptx_resolve(PtxReader *r) {
        PtxKernel *k = r->kernel;
        for (unsigned i = 0; i < k->n_ops; i++) {
                unsigned l = 0;
                while (k->ops[i].code == PTX_BRA && l < k->n_labels &&
                       strcmp(k->labels[l].name, k->ops[i].label) != 0)
                        l++;
                r->line = k->ops[i].line;
                if (k->ops[i].code == PTX_BRA && l == k->n_labels)
                        return ptx_fail(r, "no such label: %s", k->ops[i].label);
                if (k->ops[i].code == PTX_BRA)
                        k->ops[i].target = k->labels[l].at;
        }
        return true;
}

static bool ptx_body(PtxReader *r) {
        PtxKernel *k = r->kernel;
        for (;;) {
                ptx_blank(r);
                if (*r->at == '}') {
                        r->at++;
                        return ptx_resolve(r);
                }
                size_t word =
                        strspn(r->at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789$");
                if (word > 0 && r->at[word] == ':') {
                        if (k->n_labels == 64 || word >= NAME_MAX_PTX)
                                return ptx_fail(r, "too many labels");
                        snprintf(k->labels[k->n_labels].name, NAME_MAX_PTX, "%.*s", (int)word, r->at);
                        k->labels[k->n_labels++].at = k->n_ops;
                        r->at += word + 1;
                        continue;
                }
                char end, *text = ptx_until(r, ";", &end);
                bool good = text ? *text == '.' ? ptx_registers(r, text) : ptx_instruction(r, text)
                                 : ptx_fail(r, "the text ends here");
                free(text);
                if (!good)
                        return false;
        }
}

/* "NAME(.param .u64 base, …) { … }" */
static bool ptx_entry(PtxReader *r, PtxModule *m) {
        char end, *name = ptx_until(r, "(", &end);
        if (!name || strlen(name) >= NAME_MAX_PTX || m->n == 16) {
                free(name);
                return ptx_fail(r, "a kernel without parameters");
        }
        PtxKernel *k = m->kernels[m->n++] = r->kernel = calloc(1, sizeof *k);
        snprintf(k->name, sizeof k->name, "%s", name);
        free(name);
        for (unsigned i = 0; i < PTX_SPECIAL; i++)
                ptx_register_add(k, ptx_special[i], (PtxType){ 'u', 32 });
        for (end = ','; end == ',';) {
                char type[8] = "", param[NAME_MAX_PTX] = "", *text = ptx_until(r, ",)", &end);
                bool good = text && k->n_params < 16 && sscanf(text, ".param .%7s %63s", type, param) == 2 &&
                            ptx_type(type).width >= 32;
                free(text);
                if (!good)
                        return ptx_fail(r, "a parameter that is not one");
                PtxParam *p = &k->params[k->n_params++];
                *p = (PtxParam){ .type = ptx_type(type), .reg = ptx_register_add(k, "", ptx_type(type)) };
                snprintf(p->name, sizeof p->name, "%s", param);
        }
        ptx_blank(r);
        return *r->at++ == '{' ? ptx_body(r) : ptx_fail(r, "a kernel without a body");
}

static void ptx_free(PtxModule *m) {
        for (unsigned i = 0; m && i < m->n; i++) {
                free(m->kernels[i]->regs);
                free(m->kernels[i]->ops);
                free(m->kernels[i]);
        }
        free(m);
}

/* NULL, and what the log of the compiler says. */
static PtxModule *ptx_read(const char *text, char error[static 160]) {
        PtxReader r = { .at = text, .line = 1 };
        PtxModule *m = calloc(1, sizeof *m);
        for (ptx_blank(&r); *r.at && !*r.error; ptx_blank(&r)) {
                unsigned a, b;
                int n = 0;
                if (sscanf(r.at, ".version %u.%u%n", &a, &b, &n) == 2 && n > 0)
                        m->version = 10 * a + b;
                else if (sscanf(r.at, ".target sm_%u%n", &a, &n) == 1 && n > 0)
                        m->target = a;
                else if (sscanf(r.at, ".address_size %u%n", &a, &n) != 1 || a != 64 || n == 0)
                        n = 0;
                if (n == 0 && sscanf(r.at, ".visible .entry %n", &n) == 0 && n > 0) {
                        r.at += n;
                        if (m->version == 0 || m->target == 0)
                                ptx_fail(&r, "no .version or no .target");
                        else
                                (void)ptx_entry(&r, m);
                } else if (n > 0)
                        r.at += n;
                else
                        ptx_fail(&r, "unknown directive");
        }
        if (m->n > 0 && !*r.error)
                return m;
        snprintf(error, 160, "%s", *r.error ? r.error : "no kernel");
        ptx_free(m);
        return NULL;
}

/* ---- mma.m16n8k16: 16 rows and 8 columns of f32, sums of 16 products of f16 ---- */

/* The lower or upper f16 of a register. */
static float ptx_half(uint64_t pair, unsigned upper) {
        uint32_t bits = (uint32_t)pair >> 16 * upper & 0xffff;
        uint32_t exponent = bits >> 10 & 31, fraction = bits & 1023, sign = (bits & 0x8000) << 16;
        uint32_t word = sign | (exponent + 112) << 23 | fraction << 13;
        float value;
        if (exponent == 31)
                word = sign | 255U << 23 | fraction << 13;
        memcpy(&value, &word, sizeof value);
        if (exponent > 0)
                return value;
        value = (float)fraction / (1 << 24);
        return sign ? -value : value;
}

static float ptx_cut(float sum, unsigned bits) {
        uint32_t word;
        memcpy(&word, &sum, sizeof word);
        word &= bits < 24 ? ~0U << (24 - bits) : ~0U;
        memcpy(&sum, &word, sizeof word);
        return sum;
}

static void ptx_sums(const PtxMachine *m, const float a[16][16], const float b[16][8], float d[16][8]) {
        for (unsigned i = 0; i < 16; i++) {
                unsigned k = m->backward ? 15 - i : i;
                for (unsigned row = 0; row < 16; row++)
                        for (unsigned column = 0; column < 8; column++)
                                d[row][column] += a[row][k] * b[k][column];
                for (unsigned e = 0; m->bits < 24 && e < 128; e++)
                        d[e / 8][e % 8] = ptx_cut(d[e / 8][e % 8], m->bits);
        }
}

static void ptx_mma(const PtxMachine *m, const PtxOp *op, uint64_t (*reg)[LANES], bool wrong) {
        float a[16][16], b[16][8], d[16][8];
        for (unsigned lane = 0; lane < LANES; lane++) {
                unsigned group = lane >> 2, in_group = lane % 4;
                for (unsigned i = 0; i < 8; i++) {
                        bool upper = i < 2 || (i >= 4 && i < 6);
                        unsigned row = upper ? group : group + 8,
                                 column = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
                        a[row][column] = ptx_half(reg[op->mma[4 + i / 2]][lane], i & 1);
                }
                for (unsigned i = 0; i < 4; i++)
                        b[in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0)][group] =
                                ptx_half(reg[op->mma[8 + i / 2]][lane], i & 1);
                for (unsigned i = 0; i < 4; i++) {
                        uint32_t word = (uint32_t)reg[op->more[i]][lane];
                        memcpy(&d[i < 2 ? group : group + 8][in_group * 2 + (i & 1)], &word, sizeof word);
                }
        }
        ptx_sums(m, a, b, d);
        if (wrong)
                d[9][3] += 1.0F / 256;
        for (unsigned lane = 0; lane < LANES; lane++)
                for (unsigned i = 0; i < 4; i++) {
                        uint32_t word;
                        memcpy(&word, &d[(lane >> 2) + (i < 2 ? 0 : 8)][lane % 4 * 2 + (i & 1)], sizeof word);
                        reg[op->mma[i]][lane] = word;
                }
}

/* ---- a launch ---- */

static int64_t ptx_signed(uint64_t value, unsigned width) {
        return width == 32 ? (int32_t)(uint32_t)value : (int64_t)value;
}

static uint64_t ptx_high(const PtxOp *op, uint64_t a, uint64_t b) {
        bool is_signed = op->type.kind == 's';
        if (op->type.width == 32)
                return is_signed ? (uint64_t)(ptx_signed(a, 32) * ptx_signed(b, 32)) >> 32 : a * b >> 32;
        return is_signed ? (uint64_t)((__int128)(int64_t)a * (int64_t)b >> 64)
                         : (uint64_t)((unsigned __int128)a * b >> 64);
}

static uint64_t ptx_wide(const PtxOp *op, uint64_t a, uint64_t b) {
        return op->type.kind == 's' ? (uint64_t)(ptx_signed(a, 32) * ptx_signed(b, 32)) : a * b;
}

static uint64_t ptx_shift(const PtxOp *op, uint64_t a, uint64_t n) {
        unsigned width = op->type.width;
        if (op->code == PTX_SHL)
                return n >= width ? 0 : a << n;
        if (op->type.kind == 's')
                return (uint64_t)(ptx_signed(a, width) >> (n >= width ? width - 1 : n));
        return n >= width ? 0 : a >> n;
}

static bool ptx_less(PtxType t, uint64_t a, uint64_t b) {
        return t.kind == 's' ? ptx_signed(a, t.width) < ptx_signed(b, t.width) : a < b;
}

static uint64_t ptx_compare(const PtxOp *op, uint64_t a, uint64_t b) {
        switch (op->compare) {
        case PTX_EQ:
                return a == b;
        case PTX_NE:
                return a != b;
        case PTX_LT:
                return ptx_less(op->type, a, b);
        case PTX_LE:
                return !ptx_less(op->type, b, a);
        case PTX_GT:
                return ptx_less(op->type, b, a);
        default:
                return !ptx_less(op->type, a, b);
        }
}

/* From the width of its type to that of the register. */
static uint64_t ptx_extend(PtxType t, uint64_t value) {
        return t.kind == 's' ? (uint64_t)ptx_signed(value, t.width) : t.width == 32 ? (uint32_t)value : value;
}

static uint64_t ptx_changed(const PtxOp *op, uint64_t old, uint64_t b) {
        switch (op->change) {
        case PTX_ADD:
                return old + b;
        case PTX_MIN:
                return ptx_less(op->type, b, old) ? b : old;
        case PTX_MAX:
                return ptx_less(op->type, old, b) ? b : old;
        case PTX_AND:
                return old & b;
        case PTX_OR:
                return old | b;
        case PTX_XOR:
                return old ^ b;
        default:
                return b;
        }
}

static int ptx_memory(PtxMachine *m, const PtxKernel *k, const PtxOp *op, uint64_t (*reg)[LANES],
                      uint32_t mask) {
        unsigned bytes = op->type.width / 8;
        for (unsigned l = 0; l < LANES; l++) {
                if (!(mask >> l & 1))
                        continue;
                uint64_t address = reg[op->a][l] + (uint64_t)op->offset, word = 0;
                if (address % bytes != 0)
                        return PTX_MISALIGNED;
                unsigned char *at = m->reach(m->user, address, bytes);
                if (!at)
                        return PTX_ILLEGAL_ADDRESS;
                m->bytes += bytes;
                memcpy(&word, at, bytes);
                if (op->code != PTX_ST && op->to >= 0) {
                        uint64_t value = ptx_extend(op->type, word);
                        reg[op->to][l] = k->regs[op->to].type.width == 32 ? (uint32_t)value : value;
                }
                if (op->code == PTX_LD)
                        continue;
                word = op->code == PTX_ST ? reg[op->b][l] : ptx_changed(op, word, reg[op->b][l]);
                memcpy(at, &word, bytes);
                if (m->written)
                        m->written(m->user, address, bytes);
        }
        return PTX_OK;
}

#define EACH(value)                                                                                          \
        do {                                                                                                 \
                if (mask == FULL)                                                                            \
                        for (unsigned l = 0; l < LANES; l++)                                                 \
                                to[l] = (value)&keep;                                                        \
                else                                                                                         \
                        for (unsigned l = 0; l < LANES; l++)                                                 \
                                if (mask >> l & 1)                                                           \
                                        to[l] = (value)&keep;                                                \
        } while (0)

/* Whatever is neither a branch nor an end. */
static int ptx_execute(PtxMachine *m, const PtxKernel *k, const PtxOp *op, uint64_t (*reg)[LANES],
                       uint32_t mask, unsigned block) {
        if (op->code == PTX_MMA) {
                if (mask != FULL)
                        return PTX_ILLEGAL_INSTRUCTION;
                m->mmas++;
                ptx_mma(m, op, reg, m->wrong_sm >= 0 && block % m->sms == (unsigned)m->wrong_sm);
                return PTX_OK;
        }
        if (op->code == PTX_LD || op->code == PTX_ST || op->code == PTX_ATOM)
                return ptx_memory(m, k, op, reg, mask);
        uint64_t *to = reg[op->to], *a = reg[op->a], *b = reg[op->b], *c = reg[op->c];
        uint64_t keep = k->regs[op->to].type.width == 32 ? FULL : ~UINT64_C(0);
        switch (op->code) {
        case PTX_MOV:
                EACH(op->type.width == 32 ? (uint32_t)a[l] : a[l]);
                break;
        case PTX_ADD:
                EACH(a[l] + b[l]);
                break;
        case PTX_SUB:
                EACH(a[l] - b[l]);
                break;
        case PTX_MUL_LO:
                EACH(a[l] * b[l]);
                break;
        case PTX_MUL_HI:
                EACH(ptx_high(op, a[l], b[l]));
                break;
        case PTX_MUL_WIDE:
                EACH(ptx_wide(op, a[l], b[l]));
                break;
        case PTX_MAD_LO:
                EACH(a[l] * b[l] + c[l]);
                break;
        case PTX_MAD_HI:
                EACH(ptx_high(op, a[l], b[l]) + c[l]);
                break;
        case PTX_MAD_WIDE:
                EACH(ptx_wide(op, a[l], b[l]) + c[l]);
                break;
        case PTX_MIN:
                EACH(ptx_less(op->type, b[l], a[l]) ? b[l] : a[l]);
                break;
        case PTX_MAX:
                EACH(ptx_less(op->type, a[l], b[l]) ? b[l] : a[l]);
                break;
        case PTX_AND:
                EACH(a[l] & b[l]);
                break;
        case PTX_OR:
                EACH(a[l] | b[l]);
                break;
        case PTX_XOR:
                EACH(a[l] ^ b[l]);
                break;
        case PTX_NOT:
                EACH(~a[l]);
                break;
        case PTX_SHL:
        case PTX_SHR:
                EACH(ptx_shift(op, a[l], b[l]));
                break;
        case PTX_SETP:
                EACH(ptx_compare(op, a[l], b[l]));
                break;
        case PTX_SELP:
                EACH(c[l] ? a[l] : b[l]);
                break;
        default:
                EACH(ptx_extend(op->type, ptx_extend(op->from, a[l])));
                break;
        }
        return PTX_OK;
}

static int ptx_warp(PtxMachine *m, const PtxKernel *k, uint64_t (*reg)[LANES], uint32_t alive,
                    unsigned block) {
        unsigned at[LANES] = {};
        while (alive) {
                unsigned pc = ~0U;
                uint32_t mask = 0;
                for (unsigned l = 0; l < LANES; l++)
                        if (alive >> l & 1) {
                                mask = at[l] < pc ? 1U << l : at[l] == pc ? mask | 1U << l : mask;
                                pc = at[l] < pc ? at[l] : pc;
                        }
                bool parted = false;
                do {
                        const PtxOp *op = pc < k->n_ops ? &k->ops[pc] : NULL;
                        uint32_t now = mask;
                        for (unsigned l = 0; op && op->guard >= 0 && l < LANES; l++)
                                if (!reg[op->guard][l] != op->negated)
                                        now &= ~(1U << l);
                        if (++m->steps > m->steps_max)
                                return PTX_ENDLESS;
                        if (!op || op->code == PTX_RET) {
                                alive &= ~now;
                                mask &= ~now;
                                pc++;
                        } else if (op->code == PTX_BRA && now == mask)
                                pc = op->target;
                        else if (op->code == PTX_BRA) {
                                for (unsigned l = 0; l < LANES; l++)
                                        if (mask >> l & 1)
                                                at[l] = now >> l & 1 ? op->target : pc + 1;
                                parted = now != 0;
                                pc++;
                        } else {
                                int r = now ? ptx_execute(m, k, op, reg, now, block) : PTX_OK;
                                if (r != PTX_OK)
                                        return r;
                                pc++;
                        }
                } while (!parted && mask && mask == alive);
                for (unsigned l = 0; !parted && l < LANES; l++)
                        if (mask >> l & 1)
                                at[l] = pc;
        }
        return PTX_OK;
}

/* params: a pointer to each. */
static int ptx_launch(PtxMachine *m, const PtxKernel *k, unsigned blocks, unsigned threads,
                      void *const *params) {
        uint64_t(*reg)[LANES] = malloc(k->n_regs * sizeof *reg);
        int r = PTX_OK;
        m->bytes = m->mmas = m->steps = 0;
        for (unsigned block = 0; block < blocks && r == PTX_OK; block++)
                for (unsigned first = 0; first < threads && r == PTX_OK; first += LANES) {
                        for (unsigned i = 0; i < k->n_regs; i++)
                                for (unsigned l = 0; l < LANES; l++) {
                                        uint64_t garbage = (i + 1) * UINT64_C(0xdeadbeef1234567);
                                        garbage = (garbage + l) >> l % 3 * 31;  /* large and small */
                                        PtxType t = k->regs[i].type;
                                        reg[i][l] = k->regs[i].constant ? k->regs[i].value
                                                    : t.width == 1      ? garbage >> 9 & 1
                                                    : t.width == 32     ? (uint32_t)garbage
                                                                        : garbage;
                                }
                        for (unsigned p = 0; p < k->n_params; p++) {
                                uint64_t value = 0;
                                memcpy(&value, params[p], k->params[p].type.width / 8);
                                for (unsigned l = 0; l < LANES; l++)
                                        reg[k->params[p].reg][l] = value;
                        }
                        for (unsigned l = 0; l < LANES; l++) {
                                reg[PTX_TID][l] = first + l;
                                reg[PTX_NTID][l] = threads;
                                reg[PTX_CTAID][l] = block;
                                reg[PTX_NCTAID][l] = blocks;
                                reg[PTX_LANEID][l] = l;
                        }
                        unsigned left = threads - first;
                        r = ptx_warp(m, k, reg, left < LANES ? (1U << left) - 1 : FULL, block);
                }
        free(reg);
        return r;
}
