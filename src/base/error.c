/* SPDX-License-Identifier: Apache-2.0
 * The table of causes (the manual has the same one, with what each means) and the list of diagnostics. */
#include "base/error.h"

#include "base/str.h"

#include <errno.h>
#include <stdarg.h>

static const struct { const char *word; ExitCode exit_code; } causes[_CAUSE_MAX] = {
        [CAUSE_NONE]             = { "OK",              EXIT_DONE },
        [CAUSE_INTERNAL]         = { "EINTERNAL",       EXIT_INTERNAL },
        [CAUSE_USAGE]            = { "EUSAGE",          EXIT_USAGE },
        [CAUSE_INTERRUPTED]      = { "EINTERRUPTED",    EXIT_INTERNAL },
        [CAUSE_NO_CONFIG]        = { "ENOCONFIG",       EXIT_NO_CONFIG },
        [CAUSE_SYNTAX]           = { "ESYNTAX",         EXIT_CONFIG_INVALID },
        [CAUSE_LIMIT]            = { "ELIMIT",          EXIT_CONFIG_INVALID },
        [CAUSE_INVALID]          = { "EINVALID",        EXIT_CONFIG_INVALID },
        [CAUSE_STRICT]           = { "ESTRICT",         EXIT_CONFIG_INVALID },
        [CAUSE_SIGNATURE]        = { "ESIGNATURE",      EXIT_CONFIG_INVALID },
        [CAUSE_TRUST]            = { "ETRUST",          EXIT_CONFIG_INVALID },
        [CAUSE_BINDING]          = { "EBINDING",        EXIT_CONFIG_INVALID },
        [CAUSE_DOWNGRADE]        = { "EDOWNGRADE",      EXIT_CONFIG_INVALID },
        [CAUSE_SOURCE]           = { "ESOURCE",         EXIT_SOURCE },
        [CAUSE_IMDS]             = { "EIMDS",           EXIT_SOURCE },
        [CAUSE_CREDENTIALS]      = { "ECREDENTIALS",    EXIT_FACTS },
        [CAUSE_EC2]              = { "EEC2",            EXIT_FACTS },
        [CAUSE_STS]              = { "ESTS",            EXIT_FACTS },
        [CAUSE_FACTS]            = { "EFACTS",          EXIT_FACTS },
        [CAUSE_DISKS]            = { "EDISKS",          EXIT_STORAGE },
        [CAUSE_DISK_USED]        = { "EDISKUSED",       EXIT_STORAGE },
        [CAUSE_DISK_DATA]        = { "EDISKDATA",       EXIT_STORAGE },
        [CAUSE_DISK_ERROR]       = { "EDISKERROR",      EXIT_STORAGE },
        [CAUSE_ARRAY]            = { "EARRAY",          EXIT_STORAGE },
        [CAUSE_FILESYSTEM]       = { "EFILESYSTEM",     EXIT_STORAGE },
        [CAUSE_MOUNT]            = { "EMOUNT",          EXIT_STORAGE },
        [CAUSE_MOVE]             = { "EMOVE",           EXIT_STORAGE },
        [CAUSE_STORAGE_TOOL]     = { "ESTORAGETOOL",    EXIT_STORAGE },
        [CAUSE_SYSCTL]           = { "ESYSCTL",         EXIT_FILE },
        [CAUSE_HUGEPAGES]        = { "EHUGEPAGES",      EXIT_HUGEPAGES },
        [CAUSE_EFA]              = { "EEFA",            EXIT_NETWORK },
        [CAUSE_INTERFACE]        = { "EINTERFACE",      EXIT_NETWORK },
        [CAUSE_LINK]             = { "ELINK",           EXIT_NETWORK },
        [CAUSE_MODULE]           = { "EMODULE",         EXIT_ACCELERATOR },
        [CAUSE_GPU_CLASS]        = { "EGPUCLASS",       EXIT_ACCELERATOR },
        [CAUSE_GPU_MISSING]      = { "EGPUMISSING",     EXIT_ACCELERATOR },
        [CAUSE_NVSWITCH]         = { "ENVSWITCH",       EXIT_ACCELERATOR },
        [CAUSE_CRYPTO]           = { "ECRYPTO",         EXIT_FACTS },
        [CAUSE_NUMA]             = { "ENUMA",           EXIT_FACTS },
        [CAUSE_DRIVER]           = { "EDRIVER",         EXIT_ACCELERATOR },
        [CAUSE_DRIVER_SETTING]   = { "EDRIVERSETTING",  EXIT_ACCELERATOR },
        [CAUSE_VERSION]          = { "EVERSION",        EXIT_ACCELERATOR },
        [CAUSE_FABRIC_MANAGER]   = { "EFABRICMANAGER",  EXIT_ACCELERATOR },
        [CAUSE_FABRIC]           = { "EFABRIC",         EXIT_ACCELERATOR },
        [CAUSE_NVML]             = { "ENVML",           EXIT_ACCELERATOR },
        [CAUSE_NVIDIA_SMI]       = { "ENVIDIASMI",      EXIT_ACCELERATOR },
        [CAUSE_MIG]              = { "EMIG",            EXIT_ACCELERATOR },
        [CAUSE_MIG_REBOOT]       = { "EMIGREBOOT",      EXIT_ACCELERATOR },
        [CAUSE_CDI]              = { "ECDI",            EXIT_ACCELERATOR },
        [CAUSE_IMEX]             = { "EIMEX",           EXIT_ACCELERATOR },
        [CAUSE_HEALTH]           = { "EHEALTH",         EXIT_ACCELERATOR },
        [CAUSE_LICENSE]          = { "ELICENSE",        EXIT_ACCELERATOR },
        [CAUSE_NEURON]           = { "ENEURON",         EXIT_ACCELERATOR },
        [CAUSE_FILE]             = { "EFILE",           EXIT_FILE },
        [CAUSE_UNIT]             = { "EUNIT",           EXIT_UNIT },
        [CAUSE_UNIT_MISSING]     = { "EUNITMISSING",    EXIT_UNIT },
        [CAUSE_CRI]              = { "ECRI",            EXIT_UNIT },
        [CAUSE_KUBELET]          = { "EKUBELET",        EXIT_UNIT },
        [CAUSE_BUS]              = { "EBUS",            EXIT_UNIT },
        [CAUSE_COMMAND]          = { "ECOMMAND",        EXIT_UNIT },
        [CAUSE_DEADLINE]         = { "EDEADLINE",       EXIT_DEADLINE },
        [CAUSE_NO_KUBECONFIG]    = { "ENOKUBECONFIG",   EXIT_NOT_JOINED },
        [CAUSE_API_NAME]         = { "EAPINAME",        EXIT_NOT_JOINED },
        [CAUSE_API_ROUTE]        = { "EAPIROUTE",       EXIT_NOT_JOINED },
        [CAUSE_API_PROXY]        = { "EAPIPROXY",       EXIT_NOT_JOINED },
        [CAUSE_API_CERT]         = { "EAPICERT",        EXIT_NOT_JOINED },
        [CAUSE_CLOCK]            = { "ECLOCK",          EXIT_NOT_JOINED },
        [CAUSE_API_SILENT]       = { "EAPISILENT",      EXIT_NOT_JOINED },
        [CAUSE_API_ERROR]        = { "EAPIERROR",       EXIT_NOT_JOINED },
        [CAUSE_NOT_MAPPED]       = { "ENOTMAPPED",      EXIT_NOT_JOINED },
        [CAUSE_FORBIDDEN]        = { "EFORBIDDEN",      EXIT_NOT_JOINED },
        [CAUSE_NOT_REGISTERED]   = { "ENOTREGISTERED",  EXIT_NOT_JOINED },
        [CAUSE_NOT_READY]        = { "ENOTREADY",       EXIT_NOT_JOINED },
        [CAUSE_INIT]             = { "EINIT",           EXIT_NOT_JOINED },
        [CAUSE_IMAGE]            = { "EIMAGE",          EXIT_IMAGE },
};

const char *cause_word(Cause cause) {
        return cause >= 0 && cause < _CAUSE_MAX ? causes[cause].word : "EINTERNAL";
}

ExitCode cause_exit_code(Cause cause) {
        return cause >= 0 && cause < _CAUSE_MAX ? causes[cause].exit_code : EXIT_INTERNAL;
}

static void diagnostic_done(Diagnostic *i) {
        free(i->code);
        free(i->where);
        free(i->path);
        free(i->text);
        free(i->source);
        free(i->suggestion);
}

void diag_done(Diag *d) {
        for (size_t i = 0; i < d->n; i++)
                diagnostic_done(&d->items[i]);
        free(d->items);
        *d = (Diag){};
}

char *position_format(const Position *at, bool column) {
        Text t = {};
        if (!at->source)
                return NULL;
        text_add(&t, "%s", at->source);
        if (at->part > 0)
                text_add(&t, ", part %u", at->part);
        if (at->line > 0)
                text_add(&t, ", line %u", at->line);
        if (column && at->line > 0 && at->column > 0)
                text_add(&t, ", column %u", at->column);
        return text_take(&t);
}

void diagnostic_locate(Diagnostic *i, const Position *at) {
        if (i->where || !at->source)
                return;
        i->where = position_format(at, i->cause == CAUSE_SYNTAX);
        i->source = xstrdup(at->source);
        i->part = at->part;
        i->line = at->line;
        i->column = at->column;
}

static Diagnostic *diag_add(Diag *d, Cause cause, const Position *at, const char *path) {
        if ((d->n & (d->n + 1)) == 0)
                d->items = xrealloc(d->items, 2 * d->n + 1, sizeof *d->items);
        d->items[d->n] = (Diagnostic){ .cause = cause, .path = xstrdup_or_null(path) };
        if (at)
                diagnostic_locate(&d->items[d->n], at);
        return &d->items[d->n++];
}

/* Takes what va_start() has begun. */
_printf_(1, 0) static char *format_text(const char *format, va_list ap) {
        char *text = NULL;
        return vasprintf(&text, format, ap) < 0 ? xstrdup("out of memory") : text;
}

static Diagnostic *add_warning(Diag *d, const char *code, const Position *at, const char *path) {
        Diagnostic *i = diag_add(d, CAUSE_NONE, at, path);
        i->warning = true;
        i->code = xstrdup(code);
        return i;
}

int diag_error(Diag *d, int r, Cause cause, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        diag_add(d, cause, NULL, NULL)->text = format_text(format, ap);
        va_end(ap);
        return r;
}

int diag_error_at(Diag *d, int r, Cause cause, const Position *at, const char *path, const char *format,
                  ...) {
        va_list ap;
        va_start(ap, format);
        diag_add(d, cause, at, path)->text = format_text(format, ap);
        va_end(ap);
        return r;
}

void diag_warn(Diag *d, const char *code, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        add_warning(d, code, NULL, NULL)->text = format_text(format, ap);
        va_end(ap);
}

void diag_warn_at(Diag *d, const char *code, const Position *at, const char *path, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        add_warning(d, code, at, path)->text = format_text(format, ap);
        va_end(ap);
}

void diag_foretell(Diag *d, Cause cause) {
        d->items[d->n - 1].cause = cause;
}

int diag_judge(Diag *d) {
        int r = 0;
        for (size_t i = 0; i < d->n; i++)
                if (d->items[i].warning && d->items[i].cause != CAUSE_NONE) {
                        d->items[i].warning = false;
                        r = -EINVAL;
                }
        return r;
}

void diag_suggest(Diag *d, const char *format, ...) {
        Diagnostic *i = &d->items[d->n - 1];
        va_list ap;
        va_start(ap, format);
        free(i->suggestion);
        i->suggestion = format_text(format, ap);
        va_end(ap);
        char *text = xasprintf("%s; did you mean %s?", i->text, i->suggestion);
        free(i->text);
        i->text = text;
}

void diag_move(Diag *to, Diag *from) {
        for (size_t i = 0; i < from->n; i++) {
                if ((to->n & (to->n + 1)) == 0)
                        to->items = xrealloc(to->items, 2 * to->n + 1, sizeof *to->items);
                to->items[to->n++] = from->items[i];
        }
        free(from->items);
        *from = (Diag){};
}

const Diagnostic *diag_first_error(const Diag *d) {
        for (size_t i = 0; i < d->n; i++)
                if (!d->items[i].warning)
                        return &d->items[i];
        return NULL;
}

size_t diag_count(const Diag *d, bool warnings) {
        size_t n = 0;
        for (size_t i = 0; i < d->n; i++)
                n += d->items[i].warning == warnings;
        return n;
}

char *diagnostic_format(const Diagnostic *i) {
        const char *const parts[] = { i->where, i->path, i->code, i->text };
        Text t = {};
        for (size_t k = 0; k < ARRAY_SIZE(parts); k++)
                if (parts[k]) {
                        text_add(&t, "%s", t.size > 0 ? ": " : "");
                        text_add_shown(&t, parts[k], strlen(parts[k]), SIZE_MAX, 0);
                }
        return text_take(&t);
}
