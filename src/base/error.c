/* SPDX-License-Identifier: Apache-2.0
 * The table of causes (words, exit codes, meanings: the manual prints it) and the list of diagnostics. */
#include "base/error.h"

#include "base/str.h"

#include <stdarg.h>

static const struct { const char *word; ExitCode exit_code; const char *meaning; } causes[_CAUSE_MAX] = {
        [CAUSE_NONE]         = { "OK",           EXIT_DONE,           "nothing went wrong" },
        [CAUSE_INTERNAL]     = { "EINTERNAL",    EXIT_INTERNAL,       "a bug in nodestrap; report it with the journal of this boot" },
        [CAUSE_USAGE]        = { "EUSAGE",       EXIT_USAGE,          "called with wrong arguments, or not as root" },
        [CAUSE_INTERRUPTED]  = { "EINTERRUPTED", EXIT_INTERNAL,       "stopped by a signal; what was begun was finished or undone, run it again" },
        [CAUSE_NO_CONFIG]    = { "ENOCONFIG",    EXIT_NO_CONFIG,      "no NodeConfig in any source; look at the launch template's user data" },
        [CAUSE_SYNTAX]       = { "ESYNTAX",      EXIT_CONFIG_INVALID, "user data that cannot be decoded" },
        [CAUSE_LIMIT]        = { "ELIMIT",       EXIT_CONFIG_INVALID, "user data larger or deeper than the limits allow" },
        [CAUSE_INVALID]      = { "EINVALID",     EXIT_CONFIG_INVALID, "a value, or a combination of values, that is not allowed" },
        [CAUSE_STRICT]       = { "ESTRICT",      EXIT_CONFIG_INVALID, "--strict was given and there are warnings" },
        [CAUSE_SOURCE]       = { "ESOURCE",      EXIT_SOURCE,         "a configuration source that cannot be read" },
        [CAUSE_IMDS]         = { "EIMDS",        EXIT_SOURCE,         "the instance metadata service does not answer as it should" },
        [CAUSE_CREDENTIALS]  = { "ECREDENTIALS", EXIT_FACTS,          "no AWS credentials that can be used, mostly because the instance has no role" },
        [CAUSE_EC2]          = { "EEC2",         EXIT_FACTS,          "the EC2 API does not answer, or refuses" },
        [CAUSE_STS]          = { "ESTS",         EXIT_FACTS,          "the STS API does not answer, or refuses" },
        [CAUSE_FACTS]        = { "EFACTS",       EXIT_FACTS,          "something about this machine that must be known is not" },
        [CAUSE_DISKS]        = { "EDISKS",       EXIT_STORAGE,        "fewer instance stores than the instance type or the configuration promises, or than the strategy needs" },
        [CAUSE_DISK_USED]    = { "EDISKUSED",    EXIT_STORAGE,        "an instance store that carries something that is not nodestrap's, or is in use; it was not touched" },
        [CAUSE_DISK_ERROR]   = { "EDISKERROR",   EXIT_STORAGE,        "an instance store that cannot be read or written" },
        [CAUSE_ARRAY]        = { "EARRAY",       EXIT_STORAGE,        "an md array that cannot be made, found or started" },
        [CAUSE_FILESYSTEM]   = { "EFILESYSTEM",  EXIT_STORAGE,        "a file system that cannot be made" },
        [CAUSE_MOUNT]        = { "EMOUNT",       EXIT_STORAGE,        "something that cannot be mounted, or not there" },
        [CAUSE_MOVE]         = { "EMOVE",        EXIT_STORAGE,        "files that cannot be moved to the local disks" },
        [CAUSE_STORAGE_TOOL] = { "ESTORAGETOOL", EXIT_STORAGE,        "mdadm, mkfs.xfs, mkfs.ext4 or cp is missing in the image" },
        [CAUSE_SYSCTL]       = { "ESYSCTL",      EXIT_FILE,           "a kernel setting that does not exist or cannot be made" },
        [CAUSE_HUGEPAGES]    = { "EHUGEPAGES",   EXIT_HUGEPAGES,      "the kernel cannot reserve as many huge pages as were asked for" },
        [CAUSE_EFA]          = { "EEFA",         EXIT_NETWORK,        "EFA devices that are missing, or that their driver does not run" },
        [CAUSE_MODULE]       = { "EMODULE",      EXIT_ACCELERATOR,    "a kernel module that the accelerators need and that cannot be loaded" },
        [CAUSE_GPU_CLASS]    = { "EGPUCLASS",    EXIT_ACCELERATOR,    "the devices and the instance type contradict each other about what machine this is" },
        [CAUSE_GPU_MISSING]  = { "EGPUMISSING",  EXIT_ACCELERATOR,    "fewer GPUs on the PCI bus than this instance type has" },
        [CAUSE_NVSWITCH]     = { "ENVSWITCH",    EXIT_ACCELERATOR,    "NVSwitches, or the bridges to them, that are missing on the PCI bus" },
        [CAUSE_NUMA]         = { "ENUMA",        EXIT_FACTS,          "a NUMA node that this instance type has and this boot does not" },
        [CAUSE_DRIVER]       = { "EDRIVER",      EXIT_ACCELERATOR,    "NVIDIA's driver is not loaded, or does not run every GPU" },
        [CAUSE_DRIVER_SETTING] = { "EDRIVERSETTING", EXIT_ACCELERATOR, "NVIDIA's driver was loaded with other parameters than the configuration asks for" },
        [CAUSE_VERSION]      = { "EVERSION",     EXIT_ACCELERATOR,    "driver, fabric manager and IMEX are not of one version" },
        [CAUSE_FABRIC_MANAGER] = { "EFABRICMANAGER", EXIT_ACCELERATOR, "NVIDIA's fabric manager does not come up, or has died" },
        [CAUSE_FABRIC]       = { "EFABRIC",      EXIT_ACCELERATOR,    "a GPU that did not join the NVLink fabric in time: CUDA would fail with error 802" },
        [CAUSE_NVML]         = { "ENVML",        EXIT_ACCELERATOR,    "NVIDIA's management library is not there, or answers with an error" },
        [CAUSE_NVIDIA_SMI]   = { "ENVIDIASMI",   EXIT_ACCELERATOR,    "nvidia-smi fails, hangs, or does not list every GPU" },
        [CAUSE_MIG]          = { "EMIG",         EXIT_ACCELERATOR,    "a GPU that cannot be divided as the configuration asks" },
        [CAUSE_MIG_REBOOT]   = { "EMIGREBOOT",   EXIT_ACCELERATOR,    "MIG mode takes effect only after a reset or reboot; that did not help, or pods may run" },
        [CAUSE_CDI]          = { "ECDI",         EXIT_ACCELERATOR,    "no CDI specification, without which containers get no GPU" },
        [CAUSE_IMEX]         = { "EIMEX",        EXIT_ACCELERATOR,    "IMEX does not get ready, or its channel cannot be made" },
        [CAUSE_FILE]         = { "EFILE",        EXIT_FILE,           "a file that cannot be written or removed" },
        [CAUSE_UNIT]         = { "EUNIT",        EXIT_UNIT,           "a unit that failed to start, or restarts again and again" },
        [CAUSE_UNIT_MISSING] = { "EUNITMISSING", EXIT_UNIT,           "a unit that does not exist on this machine" },
        [CAUSE_BUS]          = { "EBUS",         EXIT_UNIT,           "systemd cannot be reached on the system bus" },
        [CAUSE_COMMAND]      = { "ECOMMAND",     EXIT_UNIT,           "a program that failed" },
        [CAUSE_DEADLINE]     = { "EDEADLINE",    EXIT_DEADLINE,       "something was not done in time" },
        [CAUSE_NO_KUBECONFIG]  = { "ENOKUBECONFIG",  EXIT_NOT_JOINED,     "no kubeconfig that names an API server; init has not run, or failed" },
        [CAUSE_API_NAME]       = { "EAPINAME",       EXIT_NOT_JOINED,     "the name of the cluster's API server does not resolve" },
        [CAUSE_API_ROUTE]      = { "EAPIROUTE",      EXIT_NOT_JOINED,     "no connection to the cluster's API server: refused, no route, or no answer" },
        [CAUSE_API_PROXY]      = { "EAPIPROXY",      EXIT_NOT_JOINED,     "the proxy of the environment does not lead to the API server" },
        [CAUSE_API_CERT]       = { "EAPICERT",       EXIT_NOT_JOINED,     "what answers cannot prove that it is the cluster's API server: another CA, another name, or no TLS" },
        [CAUSE_CLOCK]          = { "ECLOCK",         EXIT_NOT_JOINED,     "this machine's clock is wrong: certificates or tokens do not hold at that time" },
        [CAUSE_API_SILENT]     = { "EAPISILENT",     EXIT_NOT_JOINED,     "the API server takes requests and does not answer them" },
        [CAUSE_API_ERROR]      = { "EAPIERROR",      EXIT_NOT_JOINED,     "the API server answers with an error of its own, or breaks connections off" },
        [CAUSE_NOT_MAPPED]     = { "ENOTMAPPED",     EXIT_NOT_JOINED,     "401: the cluster has no access entry or mapping for this node's IAM role" },
        [CAUSE_FORBIDDEN]      = { "EFORBIDDEN",     EXIT_NOT_JOINED,     "403: the cluster knows this node's role, and not as a node of this name" },
        [CAUSE_NOT_REGISTERED] = { "ENOTREGISTERED", EXIT_NOT_JOINED,     "kubelet has not registered this node with the cluster" },
        [CAUSE_NOT_READY]      = { "ENOTREADY",      EXIT_NOT_JOINED,     "the node is registered and not Ready" },
};

const char *cause_word(Cause cause) {
        return cause >= 0 && cause < _CAUSE_MAX ? causes[cause].word : "EINTERNAL";
}

ExitCode cause_exit_code(Cause cause) {
        return cause >= 0 && cause < _CAUSE_MAX ? causes[cause].exit_code : EXIT_INTERNAL;
}

const char *cause_meaning(Cause cause) {
        return cause >= 0 && cause < _CAUSE_MAX ? causes[cause].meaning : "";
}

static void diagnostic_done(Diagnostic *i) {
        free(i->code);
        free(i->where);
        free(i->path);
        free(i->text);
}

void diag_done(Diag *d) {
        for (size_t i = 0; i < d->n; i++)
                diagnostic_done(&d->items[i]);
        free(d->items);
        *d = (Diag){};
}

static char *position_format(const Position *at) {
        Text t = {};
        if (!at || !at->source)
                return NULL;
        text_add(&t, "%s", at->source);
        if (at->part > 0)
                text_add(&t, ", part %u", at->part);
        if (at->line > 0)
                text_add(&t, ", line %u", at->line);
        return text_take(&t);
}

static Diagnostic *diag_add(Diag *d, const Position *at, const char *path) {
        if ((d->n & (d->n + 1)) == 0)
                d->items = xrealloc(d->items, 2 * d->n + 1, sizeof *d->items);
        d->items[d->n] = (Diagnostic){ .where = position_format(at), .path = path ? xstrdup(path) : NULL };
        return &d->items[d->n++];
}

/* Takes what va_start() has begun. */
static char *format_text(const char *format, va_list ap) {
        char *text = NULL;
        return vasprintf(&text, format, ap) < 0 ? xstrdup("out of memory") : text;
}

static Diagnostic *add_error(Diag *d, Cause cause, const Position *at, const char *path) {
        Diagnostic *i = diag_add(d, at, path);
        i->cause = cause;
        return i;
}

static Diagnostic *add_warning(Diag *d, const char *code, const Position *at, const char *path) {
        Diagnostic *i = diag_add(d, at, path);
        i->warning = true;
        i->code = xstrdup(code);
        return i;
}

int diag_error(Diag *d, int r, Cause cause, const char *format, ...) {
        va_list ap;
        va_start(ap, format);
        add_error(d, cause, NULL, NULL)->text = format_text(format, ap);
        va_end(ap);
        return r;
}

int diag_error_at(Diag *d, int r, Cause cause, const Position *at, const char *path, const char *format,
                  ...) {
        va_list ap;
        va_start(ap, format);
        add_error(d, cause, at, path)->text = format_text(format, ap);
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
