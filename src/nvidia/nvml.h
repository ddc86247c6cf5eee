/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The NVIDIA management library (https://docs.nvidia.com/deploy/nvml-api), loaded on demand. Functions return
 * its codes, NVML_OK or a positive number, unless noted; outputs are untouched on failure.
 * NVML_FUNCTION_NOT_FOUND: the library is too old. Thread-safe; a call may hang with the driver. */
#include "base/macro.h"

enum { /* nvmlReturn_t, the ones used */
       NVML_OK = 0,
       NVML_INVALID_ARGUMENT = 2,
       NVML_NOT_SUPPORTED = 3,
       NVML_NO_PERMISSION = 4,
       NVML_NOT_FOUND = 6,
       NVML_INSUFFICIENT_SIZE = 7,
       NVML_DRIVER_NOT_LOADED = 9,
       NVML_TIMEOUT = 10,
       NVML_FUNCTION_NOT_FOUND = 13,
       NVML_GPU_IS_LOST = 15,
       NVML_RESET_REQUIRED = 16,
       NVML_VERSION_MISMATCH = 18,
       NVML_IN_USE = 19,
       NVML_INSUFFICIENT_RESOURCES = 23,
       NVML_ARGUMENT_VERSION_MISMATCH = 25,
       NVML_DEPRECATED = 26,
       NVML_UNKNOWN = 999,
};

typedef struct nvmlDevice_st *NvmlDevice;
/* address as in sysfs, "0000:86:00.0"; index of the library */
typedef struct NvmlGpu { NvmlDevice device; char address[24]; unsigned index; } NvmlGpu;
/* by address: the library has no fixed order */
typedef struct NvmlGpus { NvmlGpu *items; size_t n; } NvmlGpus;

/* code 0: cannot load the library */
typedef struct NvmlTrouble { int code; char *text; } NvmlTrouble;
void nvml_trouble_done(NvmlTrouble *t);

/* Loads and initialises the library, once per nvml_close(), and lists its GPUs. 0, or -EIO and a text such as
 * "nvmlInit_v2: Driver/library version mismatch (18)". */
_must_check_ _nonnull_ int nvml_open(NvmlGpus *ret, NvmlTrouble *ret_trouble);
_nonnull_ void nvml_close(NvmlGpus *g);
/* "GPU is lost (15)"; the caller frees it. */
_malloc_ char *nvml_text(int code);
/* Waiting does not help: GPU lost, version mismatch, no permission, library too old. */
bool nvml_is_final(int code);

/* "GPU-…", "MIG-…" */
typedef struct NvmlUuid { char text[96]; } NvmlUuid;
_must_check_ _nonnull_ int nvml_uuid(NvmlDevice device, NvmlUuid *ret);

/* ---- fabric ---- */
typedef enum NvmlFabricState {
        NVML_FABRIC_NOT_SUPPORTED,
        NVML_FABRIC_NOT_STARTED,
        NVML_FABRIC_IN_PROGRESS,
        NVML_FABRIC_COMPLETED
} NvmlFabricState;
/* as in nvidia-smi: "In Progress"; NULL: not a state */
const char *nvml_fabric_state_to_string(NvmlFabricState state);
typedef struct NvmlFabric {
        NvmlFabricState state;
        int status;                     /* nvmlReturn_t, valid when completed */
        unsigned char uuid[16];         /* of the cluster; zero if the fabric ends in this machine */
        unsigned clique;
        const char *misconfigured;      /* fault of the fabric configuration (R570 and later), or NULL */
        unsigned health, summary;       /* NVML_GPU_FABRIC_HEALTH_MASK_*, _SUMMARY_*; 0: not known */
} NvmlFabric;
_must_check_ _nonnull_ int nvml_fabric(NvmlDevice device, NvmlFabric *ret);

/* ---- MIG ---- */
typedef struct NvmlProfile {
        unsigned id;                    /* to create instances; differs by model */
        unsigned slices, instances;     /* compute slices; how many instances fit */
        char name[96];                  /* "1g.10gb+me"; empty if the library is too old */
} NvmlProfile;
typedef struct NvmlInstance {
        void *handle;                   /* nvmlGpuInstance_t */
        unsigned id, profile;           /* profile: NvmlProfile.id */
        unsigned start, size;           /* memory slices */
} NvmlInstance;
typedef struct NvmlInstances { NvmlInstance *items; size_t n; } NvmlInstances;
_must_check_ _nonnull_ int nvml_mig_mode(NvmlDevice device, bool *ret_current, bool *ret_pending);
/* activation: NVML_OK: active now; else why not yet, as NVML_RESET_REQUIRED or NVML_IN_USE. */
_must_check_ _nonnull_ int nvml_mig_set_mode(NvmlDevice device, bool on, int *ret_activation);
_must_check_ _nonnull_ int nvml_mig_profiles(NvmlDevice device, NvmlProfile **ret, size_t *ret_n);
/* Existing instances, by place in memory. */
_must_check_ _nonnull_ int nvml_mig_instances(NvmlDevice device, const NvmlProfile *profiles, size_t n,
                                              NvmlInstances *ret);
void nvml_instances_done(NvmlInstances *i);
/* Possible places: sets only start and size. */
_must_check_ _nonnull_ int nvml_mig_places(NvmlDevice device, unsigned profile, NvmlInstances *ret);
/* Makes a GPU instance with one compute instance over all of it; nothing on failure. place NULL: any. */
_must_check_ _nonnull(1, 2) int nvml_mig_create(NvmlDevice device, const NvmlProfile *profile,
                                                const NvmlInstance *place);
/* Does one compute instance take all of it? */
_must_check_ _nonnull_ int nvml_mig_is_whole(const NvmlInstance *instance, const NvmlProfile *profile,
                                             bool *ret);
_must_check_ _nonnull_ int nvml_mig_destroy(const NvmlInstance *instance);
/* Programs see a MIG device per compute instance, with a number below this. */
_must_check_ _nonnull_ int nvml_mig_most(NvmlDevice device, unsigned *ret);
/* NVML_NOT_FOUND: this number is free. */
_must_check_ _nonnull_ int nvml_mig_device(NvmlDevice device, unsigned number, NvmlDevice *ret);

/* ---- clocks, in MHz ---- */
_must_check_ _nonnull_ int nvml_persistence(NvmlDevice device, bool *ret);
_must_check_ int nvml_set_persistence(NvmlDevice device, bool on);
_must_check_ _nonnull_ int nvml_auto_boost(NvmlDevice device, bool *ret, bool *ret_default);
/* now, and as the default */
_must_check_ int nvml_set_auto_boost(NvmlDevice device, bool on);
_must_check_ _nonnull_ int nvml_highest_clocks(NvmlDevice device, unsigned *ret_memory,
                                               unsigned *ret_graphics);
_must_check_ _nonnull_ int nvml_application_clocks(NvmlDevice device, unsigned *ret_memory,
                                                   unsigned *ret_graphics);
_must_check_ _nonnull_ int nvml_default_clocks(NvmlDevice device, unsigned *ret_memory,
                                               unsigned *ret_graphics);
_must_check_ int nvml_set_application_clocks(NvmlDevice device, unsigned memory, unsigned graphics);
_must_check_ int nvml_reset_application_clocks(NvmlDevice device);

/* ---- licences of GRID drivers, after nvml_open() ---- */
typedef struct NvmlLicense {
        bool supported;                 /* false: not a GRID driver */
        bool licensed;
        char product[128];              /* "NVIDIA RTX Virtual Workstation" or empty */
} NvmlLicense;
_must_check_ _nonnull_ int nvml_license(NvmlDevice device, NvmlLicense *ret);

/* ---- health ---- */
/* Between nvml_open() and nvml_close(). NVML_NOT_SUPPORTED: GPU, driver or mode (MIG) lacks the value. */

/* nvmlDeviceGpuRecoveryAction_t */
typedef enum NvmlRecovery {
        NVML_RECOVERY_NONE,
        NVML_RECOVERY_RESET,
        NVML_RECOVERY_REBOOT,
        NVML_RECOVERY_DRAIN_P2P,
        NVML_RECOVERY_DRAIN_AND_RESET,
        NVML_RECOVERY_DOMAIN,           /* the IMEX domain of the rack */
        NVML_RECOVERY_BUS_RESET,        /* this and the next: cuda-python, cuda.bindings.nvml */
        NVML_RECOVERY_SYSTEM_REBOOT,
} NvmlRecovery;
/* R570 and later */
_must_check_ _nonnull_ int nvml_recovery(NvmlDevice device, unsigned *ret);

/* Memory rows to replace at the next reset, or not replaceable. From Ampere on. */
_must_check_ _nonnull_ int nvml_remapped_rows(NvmlDevice device, bool *ret_pending, bool *ret_failed);
/* Memory pages, before Ampere. */
_must_check_ _nonnull_ int nvml_retired_pages(NvmlDevice device, bool *ret_pending);
/* Uncorrected ECC errors since the driver load or GPU reset. */
_must_check_ _nonnull_ int nvml_uncorrected_errors(NvmlDevice device, uint64_t *ret);

_must_check_ _nonnull_ int nvml_link_is_up(NvmlDevice device, unsigned link, bool *ret);
/* How often it was retrained after errors. */
_must_check_ _nonnull_ int nvml_link_recoveries(NvmlDevice device, unsigned link, uint64_t *ret);

enum { /* nvmlClocksEventReason…, those that are faults */
       NVML_CLOCKS_HW_SLOWDOWN = 0x08,
       NVML_CLOCKS_SW_THERMAL = 0x20,
       NVML_CLOCKS_HW_THERMAL = 0x40,
       NVML_CLOCKS_HW_POWER_BRAKE = 0x80,
};
/* Why clocks are not higher: these bits and others. */
_must_check_ _nonnull_ int nvml_clock_reasons(NvmlDevice device, uint64_t *ret);
