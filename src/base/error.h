/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Causes of failure, and diagnostics: what, where, why, what next. A function that fails returns a negative
 * errno and adds one. Never with a value of the configuration: user data holds secrets, and others read the
 * console. */
#include "base/macro.h"
#include <stdio.h>

/* Exit statuses (nodestrap-codes(7), CAUSES) */
typedef enum ExitCode {
        EXIT_DONE = 0, EXIT_INTERNAL = 1, EXIT_USAGE = 2,
        EXIT_UNFINISHED = 3,            /* of status: still booting */
        EXIT_CHANGES = 2,               /* of --detailed-exitcode, where EXIT_USAGE is 1 */
        EXIT_NO_CONFIG = 10, EXIT_CONFIG_INVALID = 11, EXIT_SOURCE = 12,
        EXIT_FACTS = 20, EXIT_STORAGE = 30, EXIT_HUGEPAGES = 31, EXIT_NETWORK = 32, EXIT_ACCELERATOR = 33,
        EXIT_FILE = 40, EXIT_UNIT = 50, EXIT_DEADLINE = 51, EXIT_NOT_JOINED = 60,
        EXIT_IMAGE = 70,
} ExitCode;

/* The code that a dashboard counts, and its exit status; nodestrap-codes(7) explains each. */
#define CAUSES(X) \
        X(NONE, "OK", DONE) \
        X(INTERNAL, "EINTERNAL", INTERNAL)               /* a bug of ours */ \
        X(USAGE, "EUSAGE", USAGE)                        /* a wrong call, or not as root */ \
        X(INTERRUPTED, "EINTERRUPTED", INTERNAL)         /* SIGTERM, SIGINT or SIGHUP */ \
        X(NO_CONFIG, "ENOCONFIG", NO_CONFIG)             /* no NodeConfig in any source */ \
        X(SYNTAX, "ESYNTAX", CONFIG_INVALID)             /* user data: not base64, gzip, MIME or YAML */ \
        X(LIMIT, "ELIMIT", CONFIG_INVALID)               /* user data above a limit */ \
        X(INVALID, "EINVALID", CONFIG_INVALID)           /* an invalid value or combination */ \
        X(STRICT, "ESTRICT", CONFIG_INVALID)             /* --strict and a warning */ \
        X(SIGNATURE, "ESIGNATURE", CONFIG_INVALID)       /* unsigned, or changed after signing */ \
        X(TRUST, "ETRUST", CONFIG_INVALID)               /* unusable keys of signers */ \
        X(BINDING, "EBINDING", CONFIG_INVALID)           /* for another account, region or cluster */ \
        X(DOWNGRADE, "EDOWNGRADE", CONFIG_INVALID)       /* older than the last one applied here */ \
        X(SOURCE, "ESOURCE", SOURCE)                     /* an unreadable source */ \
        X(IMDS, "EIMDS", SOURCE)                         /* no usable answer from the metadata API */ \
        X(CREDENTIALS, "ECREDENTIALS", FACTS)            /* no AWS credentials */ \
        X(EC2, "EEC2", FACTS)                            /* EC2 did not answer or refused */ \
        X(STS, "ESTS", FACTS)                            /* the same of STS */ \
        X(FACTS, "EFACTS", FACTS)                        /* an unknown fact of this machine */ \
        X(DISKS, "EDISKS", STORAGE)                      /* fewer instance stores than needed */ \
        X(VOLUME, "EVOLUME", STORAGE)                    /* an EBS volume that is not attached */ \
        X(DISK_USED, "EDISKUSED", STORAGE)               /* a disk with foreign content */ \
        X(DISK_DATA, "EDISKDATA", STORAGE)               /* a disk with content of unknown origin */ \
        X(DISK_ERROR, "EDISKERROR", STORAGE)             /* a disk with read or write errors */ \
        X(ARRAY, "EARRAY", STORAGE)                      /* an array that cannot be made or started */ \
        X(FILESYSTEM, "EFILESYSTEM", STORAGE)            /* a file system that cannot be made */ \
        X(MOUNT, "EMOUNT", STORAGE)                      /* a mount, bind or mount point */ \
        X(MOVE, "EMOVE", STORAGE)                        /* content that cannot be moved to the disks */ \
        X(STORAGE_TOOL, "ESTORAGETOOL", STORAGE)         /* mdadm, mkfs or cp is missing */ \
        X(SYSCTL, "ESYSCTL", FILE)                       /* a kernel setting that cannot be made */ \
        X(HUGEPAGES, "EHUGEPAGES", HUGEPAGES)            /* fewer huge pages than configured */ \
        X(EFA, "EEFA", NETWORK)                          /* EFA devices without driver, or missing */ \
        X(INTERFACE, "EINTERFACE", NETWORK)              /* a network interface that cannot be set up */ \
        X(LINK, "ELINK", NETWORK)                        /* one that does not become ready */ \
        X(MODULE, "EMODULE", ACCELERATOR)                /* a kernel module that does not load */ \
        X(GPU_CLASS, "EGPUCLASS", ACCELERATOR)           /* devices contradict the instance type */ \
        X(GPU_MISSING, "EGPUMISSING", ACCELERATOR)       /* fewer GPUs than the type has */ \
        X(NVSWITCH, "ENVSWITCH", ACCELERATOR)            /* missing NVSwitches, or bridges to them */ \
        X(CRYPTO, "ECRYPTO", FACTS)                      /* no SHA-256 allowed in libcrypto */ \
        X(NUMA, "ENUMA", FACTS)                          /* a missing NUMA node */ \
        X(DRIVER, "EDRIVER", ACCELERATOR)                /* NVIDIA driver missing, or not on every GPU */ \
        X(DRIVER_SETTING, "EDRIVERSETTING", ACCELERATOR) /* loaded with other parameters */ \
        X(VERSION, "EVERSION", ACCELERATOR)              /* incompatible versions */ \
        X(FABRIC_MANAGER, "EFABRICMANAGER", ACCELERATOR) /* fabric manager does not start */ \
        X(FABRIC, "EFABRIC", ACCELERATOR)                /* a GPU outside of the NVLink fabric */ \
        X(NVML, "ENVML", ACCELERATOR)                    /* NVML missing, or with errors */ \
        X(NVIDIA_SMI, "ENVIDIASMI", ACCELERATOR)         /* fails, or does not see every GPU */ \
        X(MIG, "EMIG", ACCELERATOR)                      /* a MIG layout that cannot be set */ \
        X(MIG_REBOOT, "EMIGREBOOT", ACCELERATOR)         /* MIG mode needs another reboot */ \
        X(CDI, "ECDI", ACCELERATOR)                      /* no CDI specification */ \
        X(IMEX, "EIMEX", ACCELERATOR)                    /* IMEX does not become ready */ \
        X(HEALTH, "EHEALTH", ACCELERATOR)                /* unhealthy hardware */ \
        X(LICENSE, "ELICENSE", ACCELERATOR)              /* a GPU without its licence */ \
        X(NEURON, "ENEURON", ACCELERATOR)                /* Trainium or Inferentia: missing, or no driver */ \
        X(FILE, "EFILE", FILE)                           /* a file that cannot be written */ \
        X(STALLED, "ESTALLED", FILE)                     /* its disk does not answer */ \
        X(UNIT, "EUNIT", UNIT)                           /* a unit that failed or restarts in a loop */ \
        X(UNIT_MISSING, "EUNITMISSING", UNIT)            /* a unit that does not exist */ \
        X(CRI, "ECRI", UNIT)                             /* containerd runs, but does not serve kubelet */ \
        X(KUBELET, "EKUBELET", UNIT)                     /* kubelet ends soon after its start */ \
        X(BUS, "EBUS", UNIT)                             /* no connection to systemd */ \
        X(COMMAND, "ECOMMAND", UNIT)                     /* a program that failed */ \
        X(DEADLINE, "EDEADLINE", DEADLINE)               /* not done in time */ \
        X(NO_KUBECONFIG, "ENOKUBECONFIG", NOT_JOINED)    /* no address of the API server */ \
        X(API_NAME, "EAPINAME", NOT_JOINED)              /* its name does not resolve */ \
        X(API_ROUTE, "EAPIROUTE", NOT_JOINED)            /* no connection to it */ \
        X(API_PROXY, "EAPIPROXY", NOT_JOINED)            /* no way to it through a proxy */ \
        X(API_CERT, "EAPICERT", NOT_JOINED)              /* an invalid certificate */ \
        X(CLOCK, "ECLOCK", NOT_JOINED)                   /* the clock here is wrong */ \
        X(API_SILENT, "EAPISILENT", NOT_JOINED)          /* a request without an answer */ \
        X(API_ERROR, "EAPIERROR", NOT_JOINED)            /* an error response, or a malformed one */ \
        X(NOT_MAPPED, "ENOTMAPPED", NOT_JOINED)          /* 401: the cluster does not know the role */ \
        X(FORBIDDEN, "EFORBIDDEN", NOT_JOINED)           /* 403: the role has no permissions */ \
        X(NOT_REGISTERED, "ENOTREGISTERED", NOT_JOINED)  /* kubelet has not made the Node */ \
        X(NOT_READY, "ENOTREADY", NOT_JOINED)            /* the Node is not Ready */ \
        X(DEVICES, "EDEVICES", NOT_JOINED)               /* pods cannot get all its devices */ \
        X(INIT, "EINIT", NOT_JOINED)                     /* init failed, so kubelet does not start */ \
        X(IMAGE, "EIMAGE", IMAGE)                        /* doctor: the image cannot run the plan */
#define CAUSE_MEMBER(name, word, exit_code) CAUSE_##name,
/* Causes that may pass by themselves: always, or after a timeout. */
#define PASSING_CAUSES(X) \
        X(IMDS, SILENT) X(EC2, SILENT) X(FACTS, SILENT) X(STALLED, ALWAYS) X(VOLUME, ALWAYS) \
        X(DISK_ERROR, ALWAYS)
/* Causes for failurePolicy reboot and poweroff: hardware that another boot or instance may fix. STEP: only of
 * a failed step. Not EFA: a launch template with too few devices has that cause, too. */
#define HARDWARE_CAUSES(X) \
        X(DISK_ERROR, ALWAYS) X(GPU_MISSING, STEP) X(NVSWITCH, STEP) X(DRIVER, STEP) \
        X(FABRIC_MANAGER, STEP) X(FABRIC, STEP) X(NVML, STEP) X(NVIDIA_SMI, STEP) X(HEALTH, STEP) \
        X(NEURON, STEP)
typedef enum Cause { CAUSES(CAUSE_MEMBER) _CAUSE_MAX, _CAUSE_INVALID = -22 } Cause;

/* "ESYNTAX"; EINTERNAL for an invalid cause */
const char *cause_word(Cause cause);
ExitCode cause_exit_code(Cause cause);
/* Is a retry worth it? error: its negative errno. */
bool cause_passes(Cause cause, int error);
/* Is it the hardware? step: a step failed. */
bool cause_is_hardware(Cause cause, bool step);

/* A place in the input: lines and columns (characters) count from 1, 0: not known. It borrows source. */
typedef struct Position { const char *source; unsigned part, line, column; } Position;

typedef struct Diagnostic {
        bool warning;
        Cause cause;            /* of an error, or of the error a warning foretells, or CAUSE_NONE */
        char *code;             /* of a warning: "unknown-field" */
        char *where;            /* "user-data, part 2, line 14", of syntax with ", column 7"; or NULL */
        char *path;             /* "spec.cluster.cidr", or NULL */
        char *text;
        char *source;           /* the parts of where; NULL and 0: not known */
        unsigned part, line, column;
        char *suggestion;       /* a replacement, or NULL */
        char *excerpt;          /* lines to print below it in the style of compilers, or NULL */
} Diagnostic;

typedef struct Diag { Diagnostic *items; size_t n; } Diag;
void diag_done(Diag *d);                /* empties it */

/* Adds an error and returns r, a negative errno: a failure is one statement. */
int diag_error(Diag *d, int r, Cause cause, const char *format, ...) _nonnull(1, 4) _printf_(4, 5);
/* The same for a place in the input and for a key or an action; either may be NULL. */
int diag_error_at(Diag *d, int r, Cause cause, const Position *at, const char *path, const char *format, ...)
        _nonnull(1, 6) _printf_(6, 7);
/* The same for a whole source or file. */
int diag_error_in(Diag *d, int r, Cause cause, const char *source, const char *format, ...)
        _nonnull(1, 5) _printf_(5, 6);
/* Adds a warning; code is a word to grep for. */
void diag_warn(Diag *d, const char *code, const char *format, ...) _nonnull(1, 2, 3) _printf_(3, 4);
void diag_warn_at(Diag *d, const char *code, const Position *at, const char *path, const char *format, ...)
        _nonnull(1, 2, 5) _printf_(5, 6);
/* The last warning means certain boot failure with this cause: diag_judge() makes it an error. */
void diag_foretell(Diag *d, Cause cause) _nonnull(1);
/* -EINVAL if it made an error, else 0. */
_must_check_ int diag_judge(Diag *d) _nonnull(1);
/* "user-data, part 2, line 14"; the caller frees it. NULL without a source. */
_nonnull_ char *position_format(const Position *at, bool column);
/* Adds the place of an item without one. */
void diagnostic_locate(Diagnostic *i, const Position *at) _nonnull(1, 2);
/* Adds a replacement to the last item, once: a question after its sentence, and a member for machines. */
void diag_suggest(Diag *d, const char *format, ...) _nonnull(1, 2) _printf_(2, 3);
/* The same as advice: what the user wrote was meant. */
void diag_instead(Diag *d, const char *format, ...) _nonnull(1, 2) _printf_(2, 3);
/* diag_suggest() for before and a name (nearest_name()), unless name is NULL. */
void diag_suggest_name(Diag *d, const char *before, const char *name) _nonnull(1, 2);
/* Sorts by source and line; stable. */
_nonnull_ void diag_sort(Diag *d);
/* Moves all items of from into to. */
void diag_move(Diag *to, Diag *from);

/* The root cause, or NULL. */
const Diagnostic *diag_first_error(const Diag *d);
size_t diag_count(const Diag *d, bool warnings);
/* "user-data, part 2, line 14: spec.cluster.cidr: text" on one line; the caller frees it. */
_malloc_ char *diagnostic_format(const Diagnostic *item);
