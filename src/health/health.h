/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Hardware health from the NVIDIA library, sysfs, procfs and the kernel log → Findings, each with a fixed
 * word, an address and a sentence. Read-only. An unreadable value is not a finding: a driver or kernel may be
 * too old. Every function may run on a thread and ends within a second or two. */
#include "base/json.h"
#include "base/root.h"
#include "nvidia/nvml.h"

/* Also the words in a plan. */
typedef enum HealthLook {
        HEALTH_LOOK_FABRIC,             /* gpu.c: state of a GPU in the NVLink fabric */
        HEALTH_LOOK_RECOVERY,           /* gpu.c: what the driver demands for a GPU */
        HEALTH_LOOK_MEMORY,             /* gpu.c: row remapping, uncorrectable ECC errors */
        HEALTH_LOOK_NVLINK,             /* gpu.c: links that are up, against the model */
        HEALTH_LOOK_CLOCKS,             /* gpu.c: slowed by heat, power or hardware */
        HEALTH_LOOK_PCIE,               /* pcie.c: width and speed of GPUs and EFA functions */
        HEALTH_LOOK_KERNEL_LOG,         /* kernel-log.c: Xid, SXid, fallen off the bus, GSP time-outs */
        HEALTH_LOOK_EFA,                /* efa.c: ports that are not active */
        HEALTH_LOOK_GPUDIRECT,          /* gpudirect.c: peer memory, /dev/gdrdrv */
        HEALTH_LOOK_GPUDIRECT_REQUIRED, /* the same, and a failure without it (gpuDirect: on) */
        HEALTH_LOOK_REPAIR,             /* looks at nothing: finding_reason() for unusable GPUs */
        _HEALTH_LOOK_MAX, _HEALTH_LOOK_INVALID = -22,
} HealthLook;
DECLARE_STRING_TABLE(health_look, HealthLook);

typedef struct Finding {
        const char *word; /* static, in the table of the manual: "nvlink-down", "xid" */
        char *address;  /* "0000:86:00.0"; "" for the machine as a whole */
        char *text;     /* a sentence: fact, meaning, advice */
        size_t fact;    /* 0, or size of the fact in text, if unusable */
        unsigned xid;   /* the NVIDIA number; 0: none */
        bool unusable;  /* the vendor calls it unusable, gpuDirect is on, or a test failed: a failure under
                         * each policy */
        bool harmless;  /* under none */
} Finding;
typedef struct Findings { Finding *items; size_t n; } Findings;     /* a zeroed one is empty */
void findings_done(Findings *f);
/* word is static; address may be "". */
void finding_add(Findings *f, const char *word, const char *address, bool unusable, const char *format, ...)
        _nonnull_ _printf_(5, 6);

/* "NvidiaXID79Error": the reason of the condition AcceleratedHardwareReady. NULL: no repair is due. */
_nonnull_ char *finding_reason(const Finding *f);

/* Drops unusable and the advice of findings of that device: its driver now says otherwise. */
_nonnull_ void findings_excuse(Findings *f, const char *address);

/* Checks each GPU by NVML: the checks of gpu.c in looks (bits of HealthLook). nvlinks: per GPU, 0: not known;
 * fabric: it belongs to one. at: called before each query, for the message of a hang; or NULL. */
_nonnull(1, 6) void health_gpus(const NvmlGpus *gpus, unsigned looks, unsigned nvlinks, bool fabric,
                                void (*at)(void *userdata, const char *gpu, const char *what), Findings *f,
                                void *userdata);
/* Width and speed of each link, against both ends (sysfs: max_link_*) and against siblings. kind: "GPU". */
_nonnull_ void health_pcie(const Root *root, const char *kind, char *const *addresses, Findings *f);
/* The kernel log since its start, for these devices and the driver. */
_nonnull(1, 3) void health_kernel_log(const Root *root, char *const *gpus, Findings *f);
/* Ports of these EFA functions (/sys/class/infiniband/NAME/ports/1/state). */
_nonnull_ void health_efa_ports(const Root *root, char *const *addresses, Findings *f);
/* "yes, by dma-buf", "no, …why" or "not known, …why": can EFA reach GPU memory without the CPU? A new
 * string, and a finding if it should work but does not. efa: EFA devices exist; tray: of a GB200 or GB300
 * rack; required: the finding is unusable. */
_malloc_ _nonnull_ char *health_gpudirect(const Root *root, bool efa, bool tray, bool required, Findings *f);
/* Of /proc/driver/nvidia/params. NULL: the driver does not show the key. */
_must_check_ _nonnull_ char *nvidia_param(const char *params, const char *key, size_t key_size);

/* ---- xid.c ---- */
typedef struct Xid {
        uint8_t number;
        bool reset; /* NVIDIA: the GPU needs a reset before use */
        char what[47];
} Xid;
/* NULL: not a hardware error, or new */
const Xid *xid_find(unsigned number);
/* NVIDIA: without impact, unless the NVSwitch calls it fatal. */
bool sxid_is_harmless(unsigned number);

/* ---- kernel-log.c ---- */
/* Records as in /dev/kmsg, one a line (torvalds/linux:Documentation/ABI/testing/dev-kmsg) → findings.
 * Changes text. gpus: sysfs addresses, which complete those of messages; may be NULL. */
_nonnull(1, 4) void kernel_log_findings(char *text, size_t size, char *const *gpus, Findings *f);

/* ---- pcie.c ---- */
/* vendor << 16 | device; 0: not known. */
_nonnull_ unsigned pci_id_at(const Root *root, const char *address);
/* A100, H100, B200 and similar (conf/hbm-chips.csv). */
extern const unsigned char hbm_chips[];
extern const size_t n_hbm_chips;
bool pci_id_is_hbm_gpu(unsigned id);

/* ---- prove.c ---- */
/* The lines of nodestrap-prove, and facts to judge them by. */
typedef struct ProveInput {
        const char *text;               /* its lines, maybe cut */
        const char *ended;              /* how it ended early: "signal"; NULL: by itself */
        char *const *gpus;              /* addresses as in sysfs; NULL-terminated */
        const char *users;              /* of GPUs, for messages; "": not known */
        unsigned bandwidth;             /* of the memory, in GB/s by the data sheet; 0: not known */
        bool links;                     /* NVLinks connect the GPUs */
} ProveInput;
/* Findings, and {"gpus": […], "prove": {"links": […], …}} for Result.found. */
_must_check_ _nonnull_ json_t *prove_judge(const ProveInput *input, Findings *f);
