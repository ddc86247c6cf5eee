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

/* One word for each distinct cause: the code a dashboard counts. Words and exit codes stand in error.c's
 * table; nodestrap-codes(7) tells people what each means and what to do about it. */
typedef enum Cause {
        CAUSE_NONE,
        CAUSE_INTERNAL,         /* a bug of ours */
        CAUSE_USAGE,            /* called wrongly, or not as root */
        CAUSE_INTERRUPTED,      /* SIGTERM, SIGINT or SIGHUP */
        CAUSE_NO_CONFIG,        /* no NodeConfig in any source */
        CAUSE_SYNTAX,           /* user data that cannot be decoded: base64, gzip, MIME, YAML */
        CAUSE_LIMIT,            /* user data past one of the limits */
        CAUSE_INVALID,          /* a value or a combination that is not allowed */
        CAUSE_STRICT,           /* --strict and there were warnings */
        CAUSE_SIGNATURE,        /* a source that is not signed as it must be, or was changed since */
        CAUSE_TRUST,            /* keys that say who may sign, and cannot be used */
        CAUSE_BINDING,          /* signed for another account, region or cluster, or nothing proves which */
        CAUSE_DOWNGRADE,        /* signed before what this machine has had already */
        CAUSE_SOURCE,           /* a source that cannot be read */
        CAUSE_IMDS,             /* the metadata service does not answer, or not as it should */
        CAUSE_CREDENTIALS,      /* no AWS credentials */
        CAUSE_EC2,              /* the EC2 API does not answer, or refuses */
        CAUSE_STS,              /* the STS API does not answer, or refuses */
        CAUSE_FACTS,            /* something about this machine that must be known and is not */
        CAUSE_DISKS,            /* fewer instance stores than promised or than the strategy needs */
        CAUSE_DISK_USED,        /* a disk that carries something of somebody else's */
        CAUSE_DISK_DATA,        /* a disk that is not blank, and nothing says whose it is */
        CAUSE_DISK_ERROR,       /* a disk that cannot be read or written */
        CAUSE_ARRAY,            /* an array that cannot be made, found or started */
        CAUSE_FILESYSTEM,       /* a file system that cannot be made */
        CAUSE_MOUNT,            /* a mount or bind that cannot be made, or
                                 * a place that it cannot be made at */
        CAUSE_MOVE,             /* content that cannot be moved to the disks */
        CAUSE_STORAGE_TOOL,     /* mdadm, mkfs or cp is not there */
        CAUSE_SYSCTL,           /* a kernel setting that cannot be made */
        CAUSE_HUGEPAGES,        /* fewer huge pages than asked for */
        CAUSE_EFA,              /* EFA devices that are missing, or without their driver */
        CAUSE_INTERFACE,        /* a network interface that cannot be set up */
        CAUSE_LINK,             /* one that does not get ready */
        CAUSE_MODULE,           /* a kernel module that cannot be loaded */
        CAUSE_GPU_CLASS,        /* devices and instance type contradict
                                 * each other about what machine this is */
        CAUSE_GPU_MISSING,      /* fewer GPUs than the instance type has */
        CAUSE_NVSWITCH,         /* NVSwitches, or the bridges to them, that are missing */
        CAUSE_CRYPTO,           /* libcrypto has no SHA-256 that its configuration allows */
        CAUSE_NUMA,             /* a NUMA node that is missing */
        CAUSE_DRIVER,           /* NVIDIA's driver is not there, or not bound to every GPU */
        CAUSE_DRIVER_SETTING,   /* it was loaded with other parameters than are asked for */
        CAUSE_VERSION,          /* NVIDIA's parts are of different versions */
        CAUSE_FABRIC_MANAGER,   /* fabric manager does not come up */
        CAUSE_FABRIC,           /* a GPU that has not joined the NVLink fabric */
        CAUSE_NVML,             /* NVIDIA's management library is not there or answers with errors */
        CAUSE_NVIDIA_SMI,       /* nvidia-smi fails, or does not see every GPU */
        CAUSE_MIG,              /* a GPU that cannot be divided as asked */
        CAUSE_MIG_REBOOT,       /* MIG mode waits for a reboot that did not help or may not be made */
        CAUSE_CDI,              /* no CDI specification */
        CAUSE_IMEX,             /* IMEX does not get ready */
        CAUSE_HEALTH,           /* hardware that is not well */
        CAUSE_LICENSE,          /* a GPU that its driver runs only with a licence, and none is there */
        CAUSE_NEURON,           /* Trainium or Inferentia without its driver, or fewer than there must be */
        CAUSE_FILE,             /* a file that cannot be written */
        CAUSE_UNIT,             /* a unit that failed or restarts in a loop */
        CAUSE_UNIT_MISSING,     /* a unit that does not exist */
        CAUSE_CRI,              /* containerd runs, and does not serve kubelet */
        CAUSE_KUBELET,          /* kubelet ends soon after its start */
        CAUSE_BUS,              /* no systemd to talk to */
        CAUSE_COMMAND,          /* a program that failed */
        CAUSE_DEADLINE,         /* not done in time */
        CAUSE_NO_KUBECONFIG,    /* nothing says how the API server is reached */
        CAUSE_API_NAME,         /* the API server's name does not resolve */
        CAUSE_API_ROUTE,        /* no connection to it */
        CAUSE_API_PROXY,        /* a proxy does not lead to it */
        CAUSE_API_CERT,         /* it does not prove who it is */
        CAUSE_CLOCK,            /* this machine's clock is wrong */
        CAUSE_API_SILENT,       /* it takes the request and does not answer */
        CAUSE_API_ERROR,        /* it answers with an error, or breaks off */
        CAUSE_NOT_MAPPED,       /* 401: the cluster does not know the node's role */
        CAUSE_FORBIDDEN,        /* 403: it knows the role and lets it do nothing */
        CAUSE_NOT_REGISTERED,   /* kubelet has not made the Node */
        CAUSE_NOT_READY,        /* the Node is there and not Ready */
        CAUSE_INIT,             /* init failed, so nobody starts kubelet */
        CAUSE_IMAGE,            /* of doctor: the image cannot run the plan */
        _CAUSE_MAX,
        _CAUSE_INVALID = -22,
} Cause;

/* "ESYNTAX"; for what is no cause that of CAUSE_INTERNAL */
const char *cause_word(Cause cause);
/* EXIT_CONFIG_INVALID */
ExitCode cause_exit_code(Cause cause);

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
} Diagnostic;

typedef struct Diag { Diagnostic *items; size_t n; } Diag;
void diag_done(Diag *d);                /* frees what is in it; it is empty then */

/* Adds an error and returns r, a negative errno, so that a failure is one statement. */
int diag_error(Diag *d, int r, Cause cause, const char *format, ...) _nonnull(1, 4) _printf_(4, 5);
/* The same of a place in the input, or of a key of the configuration, or of an action; either may be NULL. */
int diag_error_at(Diag *d, int r, Cause cause, const Position *at, const char *path, const char *format, ...)
        _nonnull(1, 6) _printf_(6, 7);
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
/* Moves all that is in from behind what is in to; from is empty then. */
void diag_move(Diag *to, Diag *from);

/* The first error: the root cause. NULL when there is none. */
const Diagnostic *diag_first_error(const Diag *d);
/* How many warnings there are, or how many errors. */
size_t diag_count(const Diag *d, bool warnings);
/* "user-data, part 2, line 14: spec.cluster.cidr: text" as one line; the caller frees it. */
_malloc_ char *diagnostic_format(const Diagnostic *item);
