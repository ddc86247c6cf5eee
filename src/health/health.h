/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Is the hardware well? What NVIDIA's library, sysfs, procfs and the kernel's log say of it → Findings,
 * each with a word that stays, an address and a sentence. Only looks, and knows nothing of plans and
 * policies. What cannot be read says nothing: a driver or kernel that does not know a question is no fault of
 * the hardware. Every function may be called from a thread and ends within a second or two. */
#include "base/root.h"
#include "nvidia/nvml.h"

/* What is looked at; also the words by which a plan names it. */
typedef enum HealthLook {
        HEALTH_LOOK_FABRIC,             /* gpu.c: what the driver says of a GPU's way to the NVLink fabric */
        HEALTH_LOOK_RECOVERY,           /* gpu.c: what the driver says must be done with the GPU */
        HEALTH_LOOK_MEMORY,             /* gpu.c: row remapping, uncorrectable ECC errors */
        HEALTH_LOOK_NVLINK,             /* gpu.c: links that are up, against what the model has */
        HEALTH_LOOK_CLOCKS,             /* gpu.c: slowed down by heat, power or hardware */
        HEALTH_LOOK_PCIE,               /* pcie.c: width and speed of GPUs and EFA functions */
        HEALTH_LOOK_KERNEL_LOG,         /* kernel-log.c: Xid, SXid, fallen off the bus, GSP time-outs */
        HEALTH_LOOK_EFA,                /* efa.c: ports that are not active */
        HEALTH_LOOK_GPUDIRECT,          /* gpudirect.c: peer memory, /dev/gdrdrv */
        _HEALTH_LOOK_MAX, _HEALTH_LOOK_INVALID = -22,
} HealthLook;
DECLARE_STRING_TABLE(health_look, HealthLook);

typedef struct Finding {
        const char *word; /* static, of the manual's table: "nvlink-down", "xid" */
        char *address;  /* "0000:86:00.0"; "" for the machine as a whole */
        char *text;     /* a sentence: what is so, what it means, what next */
        size_t fact;    /* 0, or bytes of text before what is advised for one that is unusable */
        bool unusable;  /* its vendor says that it cannot be used like this: a failure whatever the policy */
} Finding;
typedef struct Findings { Finding *items; size_t n; } Findings;     /* a zeroed one is empty */
void findings_done(Findings *f);
/* word is static; address may be "". */
void finding_add(Findings *f, const char *word, const char *address, bool unusable, const char *format, ...)
        _nonnull_ _printf_(5, 6);

/* What was found of that device so far does not make it unusable, and its advice falls away: its driver has
 * been asked since. */
_nonnull_ void findings_excuse(Findings *f, const char *address);

/* Each GPU by NVML, for those of the looks (bits of HealthLook) that gpu.c has. nvlinks: how many each has by
 * its model, 0: not known; fabric: it belongs to a fabric whose state counts. at: told which GPU is asked
 * what, for the message of one that never answers; may be NULL. */
_nonnull(1, 6) void health_gpus(const NvmlGpus *gpus, unsigned looks, unsigned nvlinks, bool fabric,
                                void (*at)(void *userdata, const char *gpu, const char *what), Findings *f,
                                void *userdata);
/* Width and speed of each link against what both its ends can (sysfs: max_link_*), and against its siblings:
 * devices of this kind. kind: "GPU", "EFA device". */
_nonnull_ void health_pcie(const Root *root, const char *kind, char *const *addresses, Findings *f);
/* What the kernel has said since it started, of these devices or of the driver as a whole. */
_nonnull(1, 3) void health_kernel_log(const Root *root, char *const *gpus, Findings *f);
/* The ports of these EFA functions (/sys/class/infiniband/NAME/ports/1/state). */
_nonnull_ void health_efa_ports(const Root *root, char *const *addresses, Findings *f);
/* "yes, by dma-buf" or "no, …why": can EFA devices reach the memory of GPUs without the CPU's? A new
 * string; where it should work and does not, there is a finding, too. efa: EFA devices are there. */
_malloc_ _nonnull_ char *health_gpudirect(const Root *root, bool efa, Findings *f);

/* ---- xid.c ---- */
typedef struct Xid {
        unsigned number;
        bool reset; /* NVIDIA: the GPU must be reset before it is used again */
        const char *what;
} Xid;
/* NULL: one that says nothing of the hardware, or a new one. */
const Xid *xid_find(unsigned number);
/* Has one of an NVSwitch's no impact, by NVIDIA, where the switch does not call it fatal? */
bool sxid_is_harmless(unsigned number);

/* ---- kernel-log.c ---- */
/* Records as /dev/kmsg gives them, one a line (torvalds/linux:Documentation/ABI/testing/dev-kmsg): what they
 * say against the hardware. text is changed. gpus: addresses as sysfs has them, which complete those of
 * messages; may be NULL. */
_nonnull(1, 4) void kernel_log_findings(char *text, size_t size, char *const *gpus, Findings *f);
