/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What can go wrong, and the list that a stage fills while it works. A function that fails returns a negative
 * errno and has left what a person needs in the Diag; it says what, where, why and what next, and never a
 * value of the configuration: user data holds secrets and the console can be read from outside. */
#include "base/macro.h"
#include <stdio.h>

/* Exit status of the program (nodestrap-codes(7), CAUSES). */
typedef enum ExitCode {
        EXIT_DONE = 0, EXIT_INTERNAL = 1, EXIT_USAGE = 2,
        EXIT_UNFINISHED = 3,            /* of status: the boot is not over, as far as is known */
        EXIT_CHANGES = 2,               /* of --detailed-exitcode, where what is EXIT_USAGE is 1 */
        EXIT_NO_CONFIG = 10, EXIT_CONFIG_INVALID = 11, EXIT_SOURCE = 12,
        EXIT_FACTS = 20, EXIT_STORAGE = 30, EXIT_HUGEPAGES = 31, EXIT_NETWORK = 32, EXIT_ACCELERATOR = 33,
        EXIT_FILE = 40, EXIT_UNIT = 50, EXIT_DEADLINE = 51, EXIT_NOT_JOINED = 60,
        EXIT_IMAGE = 70,
} ExitCode;

/* One word for each distinct cause: the code a dashboard counts, and the exit status behind it.
 * nodestrap-codes(7) tells people what each means and what to do about it. */
#define CAUSES(X) \
        X(NONE, "OK", DONE) \
        X(INTERNAL, "EINTERNAL", INTERNAL)     /* a bug of ours */ \
        X(USAGE, "EUSAGE", USAGE)              /* called wrongly, or not as root */ \
        X(INTERRUPTED, "EINTERRUPTED", INTERNAL) /* SIGTERM, SIGINT or SIGHUP */ \
        X(NO_CONFIG, "ENOCONFIG", NO_CONFIG)   /* no NodeConfig in any source */ \
        X(SYNTAX, "ESYNTAX", CONFIG_INVALID)   /* user data that cannot be decoded: base64, gzip, MIME, \
                                                * YAML */ \
        X(LIMIT, "ELIMIT", CONFIG_INVALID)     /* user data past one of the limits */ \
        X(INVALID, "EINVALID", CONFIG_INVALID) /* a value or a combination that is not allowed */ \
        X(STRICT, "ESTRICT", CONFIG_INVALID)   /* --strict and there were warnings */ \
        X(SIGNATURE, "ESIGNATURE", CONFIG_INVALID) /* a source that is not signed as it must be, or was \
                                                    * changed since */ \
        X(TRUST, "ETRUST", CONFIG_INVALID)     /* keys that say who may sign, and cannot be used */ \
        X(BINDING, "EBINDING", CONFIG_INVALID) /* signed for another account, region or cluster, or \
                                                * nothing proves which */ \
        X(DOWNGRADE, "EDOWNGRADE", CONFIG_INVALID) /* signed before what this machine has had already */ \
        X(SOURCE, "ESOURCE", SOURCE)           /* a source that cannot be read */ \
        X(IMDS, "EIMDS", SOURCE)               /* the metadata service does not answer, or not as it \
                                                * should */ \
        X(CREDENTIALS, "ECREDENTIALS", FACTS)  /* no AWS credentials */ \
        X(EC2, "EEC2", FACTS)                  /* the EC2 API does not answer, or refuses */ \
        X(STS, "ESTS", FACTS)                  /* the STS API does not answer, or refuses */ \
        X(FACTS, "EFACTS", FACTS)              /* something about this machine that must be known and \
                                                * is not */ \
        X(DISKS, "EDISKS", STORAGE)            /* fewer instance stores than promised or than the \
                                                * strategy needs */ \
        X(VOLUME, "EVOLUME", STORAGE)          /* an EBS volume that is not attached */ \
        X(DISK_USED, "EDISKUSED", STORAGE)     /* a disk that carries something of somebody else's */ \
        X(DISK_DATA, "EDISKDATA", STORAGE)     /* a disk that is not blank, and nothing says whose it is */ \
        X(DISK_ERROR, "EDISKERROR", STORAGE)   /* a disk that cannot be read or written */ \
        X(ARRAY, "EARRAY", STORAGE)            /* an array that cannot be made, found or started */ \
        X(FILESYSTEM, "EFILESYSTEM", STORAGE)  /* a file system that cannot be made */ \
        X(MOUNT, "EMOUNT", STORAGE)            /* a mount or bind that cannot be made, or a place that \
                                                * it cannot be made at */ \
        X(MOVE, "EMOVE", STORAGE)              /* content that cannot be moved to the disks */ \
        X(STORAGE_TOOL, "ESTORAGETOOL", STORAGE) /* mdadm, mkfs or cp is not there */ \
        X(SYSCTL, "ESYSCTL", FILE)             /* a kernel setting that cannot be made */ \
        X(HUGEPAGES, "EHUGEPAGES", HUGEPAGES)  /* fewer huge pages than asked for */ \
        X(EFA, "EEFA", NETWORK)                /* EFA devices that are missing, or without their driver */ \
        X(INTERFACE, "EINTERFACE", NETWORK)    /* a network interface that cannot be set up */ \
        X(LINK, "ELINK", NETWORK)              /* one that does not get ready */ \
        X(MODULE, "EMODULE", ACCELERATOR)      /* a kernel module that cannot be loaded */ \
        X(GPU_CLASS, "EGPUCLASS", ACCELERATOR) /* devices and instance type contradict each other about \
                                                * what machine this is */ \
        X(GPU_MISSING, "EGPUMISSING", ACCELERATOR) /* fewer GPUs than the instance type has */ \
        X(NVSWITCH, "ENVSWITCH", ACCELERATOR)  /* NVSwitches, or the bridges to them, that are missing */ \
        X(CRYPTO, "ECRYPTO", FACTS)            /* libcrypto has no SHA-256 that its configuration allows */ \
        X(NUMA, "ENUMA", FACTS)                /* a NUMA node that is missing */ \
        X(DRIVER, "EDRIVER", ACCELERATOR)      /* NVIDIA's driver is not there, or not bound to every GPU */ \
        X(DRIVER_SETTING, "EDRIVERSETTING", ACCELERATOR) /* it was loaded with other parameters than \
                                                          * are asked for */ \
        X(VERSION, "EVERSION", ACCELERATOR)    /* NVIDIA's parts are of different versions */ \
        X(FABRIC_MANAGER, "EFABRICMANAGER", ACCELERATOR) /* fabric manager does not come up */ \
        X(FABRIC, "EFABRIC", ACCELERATOR)      /* a GPU that has not joined the NVLink fabric */ \
        X(NVML, "ENVML", ACCELERATOR)          /* NVIDIA's management library is not there or answers \
                                                * with errors */ \
        X(NVIDIA_SMI, "ENVIDIASMI", ACCELERATOR) /* nvidia-smi fails, or does not see every GPU */ \
        X(MIG, "EMIG", ACCELERATOR)            /* a GPU that cannot be divided as asked */ \
        X(MIG_REBOOT, "EMIGREBOOT", ACCELERATOR) /* MIG mode waits for a reboot that did not help or \
                                                  * may not be made */ \
        X(CDI, "ECDI", ACCELERATOR)            /* no CDI specification */ \
        X(IMEX, "EIMEX", ACCELERATOR)          /* IMEX does not get ready */ \
        X(HEALTH, "EHEALTH", ACCELERATOR)      /* hardware that is not well */ \
        X(LICENSE, "ELICENSE", ACCELERATOR)    /* a GPU that its driver runs only with a licence, and \
                                                * none is there */ \
        X(NEURON, "ENEURON", ACCELERATOR)      /* Trainium or Inferentia without its driver, or fewer \
                                                * than there must be */ \
        X(FILE, "EFILE", FILE)                 /* a file that cannot be written */ \
        X(STALLED, "ESTALLED", FILE)           /* the disk below it does not answer */ \
        X(UNIT, "EUNIT", UNIT)                 /* a unit that failed or restarts in a loop */ \
        X(UNIT_MISSING, "EUNITMISSING", UNIT)  /* a unit that does not exist */ \
        X(CRI, "ECRI", UNIT)                   /* containerd runs, and does not serve kubelet */ \
        X(KUBELET, "EKUBELET", UNIT)           /* kubelet ends soon after its start */ \
        X(BUS, "EBUS", UNIT)                   /* no systemd to talk to */ \
        X(COMMAND, "ECOMMAND", UNIT)           /* a program that failed */ \
        X(DEADLINE, "EDEADLINE", DEADLINE)     /* not done in time */ \
        X(NO_KUBECONFIG, "ENOKUBECONFIG", NOT_JOINED) /* nothing says how the API server is reached */ \
        X(API_NAME, "EAPINAME", NOT_JOINED)    /* the API server's name does not resolve */ \
        X(API_ROUTE, "EAPIROUTE", NOT_JOINED)  /* no connection to it */ \
        X(API_PROXY, "EAPIPROXY", NOT_JOINED)  /* a proxy does not lead to it */ \
        X(API_CERT, "EAPICERT", NOT_JOINED)    /* it does not prove who it is */ \
        X(CLOCK, "ECLOCK", NOT_JOINED)         /* this machine's clock is wrong */ \
        X(API_SILENT, "EAPISILENT", NOT_JOINED) /* it takes the request and does not answer */ \
        X(API_ERROR, "EAPIERROR", NOT_JOINED)  /* it answers with an error, or breaks off */ \
        X(NOT_MAPPED, "ENOTMAPPED", NOT_JOINED) /* 401: the cluster does not know the node's role */ \
        X(FORBIDDEN, "EFORBIDDEN", NOT_JOINED) /* 403: it knows the role and lets it do nothing */ \
        X(NOT_REGISTERED, "ENOTREGISTERED", NOT_JOINED) /* kubelet has not made the Node */ \
        X(NOT_READY, "ENOTREADY", NOT_JOINED)  /* the Node is there and not Ready */ \
        X(INIT, "EINIT", NOT_JOINED)           /* init failed, so nobody starts kubelet */ \
        X(IMAGE, "EIMAGE", IMAGE)              /* of doctor: the image cannot run the plan */
#define CAUSE_MEMBER(name, word, exit_code) CAUSE_##name,
/* Those that may pass by themselves: each time, or where an answer did not come in time. All others are the
 * configuration's or the hardware's. */
#define PASSING_CAUSES(X) \
        X(IMDS, SILENT) X(EC2, SILENT) X(FACTS, SILENT) X(STALLED, ALWAYS) X(VOLUME, ALWAYS) \
        X(DISK_ERROR, ALWAYS)
/* Those for which failurePolicy: reboot and poweroff act: hardware that another start or another instance may
 * not have broken. STEP: of a failed step alone, as before that the configuration is at odds with the type.
 * EFA is not among them: a launch template that attaches too few devices fails by the same cause. */
#define HARDWARE_CAUSES(X) \
        X(DISK_ERROR, ALWAYS) X(GPU_MISSING, STEP) X(NVSWITCH, STEP) X(DRIVER, STEP) \
        X(FABRIC_MANAGER, STEP) X(FABRIC, STEP) X(NVML, STEP) X(NVIDIA_SMI, STEP) X(HEALTH, STEP) \
        X(NEURON, STEP)
typedef enum Cause { CAUSES(CAUSE_MEMBER) _CAUSE_MAX, _CAUSE_INVALID = -22 } Cause;

/* "ESYNTAX"; for what is no cause that of CAUSE_INTERNAL */
const char *cause_word(Cause cause);
/* EXIT_CONFIG_INVALID */
ExitCode cause_exit_code(Cause cause);
/* Is it worth another try? error: the negative errno that came with it. */
bool cause_passes(Cause cause, int error);
/* Is it the hardware's, and not the configuration's? step: it is that of a failed step. */
bool cause_is_hardware(Cause cause, bool step);

/* Where in the input something stands: lines and columns (characters, not bytes) count from 1, as an editor
 * shows them. Zero means not known; the source belongs to somebody else. */
typedef struct Position { const char *source; unsigned part, line, column; } Position;

typedef struct Diagnostic {
        bool warning;
        Cause cause;            /* of an error; of a warning what it certainly comes to, or CAUSE_NONE */
        char *code;             /* of a warning: "unknown-field" */
        char *where;            /* "user-data, part 2, line 14", or NULL;
                                 * ", column 7" where the syntax is wrong, which a line alone may not show */
        char *path;             /* "spec.cluster.cidr", or NULL */
        char *text;             /* the sentence */
        char *source;           /* what where is made of; NULL and 0: not known */
        unsigned part, line, column;
        char *suggestion;       /* what to write instead, without the question around it; or NULL */
        char *excerpt;          /* lines to show below it, which may be none: where is as compilers have it,
                                 * and nothing stands in front; or NULL */
} Diagnostic;

typedef struct Diag { Diagnostic *items; size_t n; } Diag;
void diag_done(Diag *d);                /* frees what is in it; it is empty then */

/* Adds an error and returns r, a negative errno, so that a failure is one statement. */
int diag_error(Diag *d, int r, Cause cause, const char *format, ...) _nonnull(1, 4) _printf_(4, 5);
/* The same of a place in the input, or of a key of the configuration, or of an action; either may be NULL. */
int diag_error_at(Diag *d, int r, Cause cause, const Position *at, const char *path, const char *format, ...)
        _nonnull(1, 6) _printf_(6, 7);
/* The same of a source as a whole, or of a file. */
int diag_error_in(Diag *d, int r, Cause cause, const char *source, const char *format, ...)
        _nonnull(1, 5) _printf_(5, 6);
/* Adds a warning; code is one of the words users may grep for. */
void diag_warn(Diag *d, const char *code, const char *format, ...) _nonnull(1, 2, 3) _printf_(3, 4);
void diag_warn_at(Diag *d, const char *code, const Position *at, const char *path, const char *format, ...)
        _nonnull(1, 2, 5) _printf_(5, 6);
/* Of the warning added last: what it tells of ends a boot for certain, with this cause. Whoever answers for
 * the whole makes an error of it. */
void diag_foretell(Diag *d, Cause cause) _nonnull(1);
/* Makes errors of such warnings. -EINVAL where there are any, else 0. */
_must_check_ int diag_judge(Diag *d) _nonnull(1);
/* "user-data, part 2, line 14", the caller's; NULL where even the source is not known. */
_nonnull_ char *position_format(const Position *at, bool column);
/* Where it stands, of an item that was added without a place. */
void diagnostic_locate(Diagnostic *i, const Position *at) _nonnull(1, 2);
/* What to write instead, of the item added last: behind its sentence as a question, where people read, and by
 * itself for machines. Once an item, and no value of the configuration. */
void diag_suggest(Diag *d, const char *format, ...) _nonnull(1, 2) _printf_(2, 3);
/* The same of a name, where there is one (nearest_name()), and what stands in front of it. */
void diag_suggest_name(Diag *d, const char *before, const char *name) _nonnull(1, 2);
/* In the order of their lines, by source; those of one place as they were. */
_nonnull_ void diag_sort(Diag *d);
/* Moves all that is in from behind what is in to; from is empty then. */
void diag_move(Diag *to, Diag *from);

/* The first error: the root cause. NULL when there is none. */
const Diagnostic *diag_first_error(const Diag *d);
/* How many warnings there are, or how many errors. */
size_t diag_count(const Diag *d, bool warnings);
/* "user-data, part 2, line 14: spec.cluster.cidr: text" as one line; the caller frees it. */
_malloc_ char *diagnostic_format(const Diagnostic *item);
