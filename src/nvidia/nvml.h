/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* NVIDIA's management library (https://docs.nvidia.com/deploy/nvml-api), loaded when it is needed: the part
 * of it that brings a node up. Nothing here knows of plans. Functions return the library's own code, NVML_OK
 * or a positive number, unless they say otherwise; outputs are untouched on failure. One that the library is
 * too old for answers NVML_FUNCTION_NOT_FOUND. The library may be called from several threads; a call may
 * hang for as long as the driver does. */
#include "base/macro.h"

enum { /* nvmlReturn_t, those that somebody here looks at */
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
/* "0000:86:00.0", as sysfs names it; the library's own number */
typedef struct NvmlGpu { NvmlDevice device; char address[24]; unsigned index; } NvmlGpu;
/* by address: the library promises no order across boots */
typedef struct NvmlGpus { NvmlGpu *items; size_t n; } NvmlGpus;

/* code 0: the library itself cannot be loaded */
typedef struct NvmlTrouble { int code; char *text; } NvmlTrouble;
void nvml_trouble_done(NvmlTrouble *t);

/* Loads and initialises the library, once for each nvml_close(), and looks up its GPUs. 0 or -EIO and what is
 * wrong: "nvmlInit_v2: Driver/library version mismatch (18)". */
_must_check_ _nonnull_ int nvml_open(NvmlGpus *ret, NvmlTrouble *ret_trouble);
_nonnull_ void nvml_close(NvmlGpus *g);
/* The library's words for a code and the code: "GPU is lost (15)"; the caller frees it. */
_malloc_ char *nvml_text(int code);
/* A code that no waiting makes better: GPU lost, version mismatch, no permission, too old a library. */
bool nvml_is_final(int code);

/* "GPU-…", of a MIG device "MIG-…" */
typedef struct NvmlUuid { char text[96]; } NvmlUuid;
_must_check_ _nonnull_ int nvml_uuid(NvmlDevice device, NvmlUuid *ret);

/* ---- fabric ---- */
typedef enum NvmlFabricState {
        NVML_FABRIC_NOT_SUPPORTED,
        NVML_FABRIC_NOT_STARTED,
        NVML_FABRIC_IN_PROGRESS,
        NVML_FABRIC_COMPLETED
} NvmlFabricState;
/* as nvidia-smi prints it: "In Progress"; NULL: no such state */
const char *nvml_fabric_state_to_string(NvmlFabricState state);
typedef struct NvmlFabric {
        NvmlFabricState state;
        int status;                     /* nvmlReturn_t; it counts only when the state is completed */
        unsigned char uuid[16];         /* of the cluster; zero on a machine whose
                                         * fabric ends at its own switches */
        unsigned clique;
        const char *misconfigured;      /* what the driver says is wrong with the fabric's
                                         * configuration (R570 and later), or NULL */
        unsigned health, summary;       /* NVML_GPU_FABRIC_HEALTH_MASK_*, _SUMMARY_*; 0: not known */
} NvmlFabric;
_must_check_ _nonnull_ int nvml_fabric(NvmlDevice device, NvmlFabric *ret);

/* ---- MIG ---- */
typedef struct NvmlProfile {
        unsigned id;                    /* what instances are created with; differs between models */
        unsigned slices, instances;     /* of compute; how many fit */
        char name[96];                  /* "1g.10gb+me"; empty where the library is too old to say */
} NvmlProfile;
typedef struct NvmlInstance {
        void *handle;                   /* nvmlGpuInstance_t */
        unsigned id, profile;           /* profile: NvmlProfile.id */
        unsigned start, size;           /* memory slices */
} NvmlInstance;
typedef struct NvmlInstances { NvmlInstance *items; size_t n; } NvmlInstances;
_must_check_ _nonnull_ int nvml_mig_mode(NvmlDevice device, bool *ret_current, bool *ret_pending);
/* activation: NVML_OK: it is so now; else why it is not yet, as NVML_RESET_REQUIRED or NVML_IN_USE. */
_must_check_ _nonnull_ int nvml_mig_set_mode(NvmlDevice device, bool on, int *ret_activation);
_must_check_ _nonnull_ int nvml_mig_profiles(NvmlDevice device, NvmlProfile **ret, size_t *ret_n);
/* Those that there are, by their place in memory. */
_must_check_ _nonnull_ int nvml_mig_instances(NvmlDevice device, const NvmlProfile *profiles, size_t n,
                                              NvmlInstances *ret);
void nvml_instances_done(NvmlInstances *i);
/* Where instances of a profile may lie: start and size are set, nothing else. */
_must_check_ _nonnull_ int nvml_mig_places(NvmlDevice device, unsigned profile, NvmlInstances *ret);
/* A GPU instance of this profile with one compute instance over all of it. place: NULL: where the driver
 * likes. Nothing is left behind on failure. */
_must_check_ _nonnull(1, 2) int nvml_mig_create(NvmlDevice device, const NvmlProfile *profile,
                                                const NvmlInstance *place);
/* Does one compute instance take all of it, as nvml_mig_create() makes it? */
_must_check_ _nonnull_ int nvml_mig_is_whole(const NvmlInstance *instance, const NvmlProfile *profile,
                                             bool *ret);
_must_check_ _nonnull_ int nvml_mig_destroy(const NvmlInstance *instance);
/* What programs see of the instances: each compute instance is a MIG device, with a number below this one. */
_must_check_ _nonnull_ int nvml_mig_most(NvmlDevice device, unsigned *ret);
/* NVML_NOT_FOUND: there is none of that number. */
_must_check_ _nonnull_ int nvml_mig_device(NvmlDevice device, unsigned number, NvmlDevice *ret);

/* ---- clocks, in MHz ---- */
_must_check_ _nonnull_ int nvml_persistence(NvmlDevice device, bool *ret);
_must_check_ int nvml_set_persistence(NvmlDevice device, bool on);
_must_check_ _nonnull_ int nvml_auto_boost(NvmlDevice device, bool *ret, bool *ret_default);
/* now, and where no program asks for anything else */
_must_check_ int nvml_set_auto_boost(NvmlDevice device, bool on);
_must_check_ _nonnull_ int nvml_highest_clocks(NvmlDevice device, unsigned *ret_memory,
                                               unsigned *ret_graphics);
_must_check_ _nonnull_ int nvml_application_clocks(NvmlDevice device, unsigned *ret_memory,
                                                   unsigned *ret_graphics);
_must_check_ _nonnull_ int nvml_default_clocks(NvmlDevice device, unsigned *ret_memory,
                                               unsigned *ret_graphics);
_must_check_ int nvml_set_application_clocks(NvmlDevice device, unsigned memory, unsigned graphics);
_must_check_ int nvml_reset_application_clocks(NvmlDevice device);

/* ---- nvml-license.c ---- */
/* Licences of GRID drivers, as NVIDIA's management library tells them; conventions as in nvml.h, whose
 * nvml_open() comes first. */

typedef struct NvmlLicense {
        bool supported;                 /* by the driver: without, it is not one of GRID's */
        bool licensed;
        char product[128];              /* "NVIDIA RTX Virtual Workstation"; or empty */
} NvmlLicense;
_must_check_ _nonnull_ int nvml_license(NvmlDevice device, NvmlLicense *ret);

/* ---- nvml-health.c ---- */
/* The part of NVIDIA's management library that tells how a GPU fares, between nvml_open() and nvml_close().
 * Functions return its code as those of nvml.h do; what a GPU, a driver or a mode (MIG) has no answer for is
 * NVML_NOT_SUPPORTED most of the time. */

/* What the driver wants done with a GPU: nvmlDeviceGpuRecoveryAction_t. */
typedef enum NvmlRecovery {
        NVML_RECOVERY_NONE,
        NVML_RECOVERY_RESET,
        NVML_RECOVERY_REBOOT,
        NVML_RECOVERY_DRAIN_P2P,
        NVML_RECOVERY_DRAIN_AND_RESET,
        NVML_RECOVERY_DOMAIN,           /* the IMEX domain, which is the rack's */
        NVML_RECOVERY_BUS_RESET,        /* this and the next by cuda-python: cuda.bindings.nvml */
        NVML_RECOVERY_SYSTEM_REBOOT,
} NvmlRecovery;
/* R570 and later */
_must_check_ _nonnull_ int nvml_recovery(NvmlDevice device, unsigned *ret);

/* Rows of memory that are to be replaced at the next reset; one could not be. From Ampere on. */
_must_check_ _nonnull_ int nvml_remapped_rows(NvmlDevice device, bool *ret_pending, bool *ret_failed);
/* The same of pages, before Ampere. */
_must_check_ _nonnull_ int nvml_retired_pages(NvmlDevice device, bool *ret_pending);
/* Errors of memory that ECC has not corrected, since the driver was loaded or the GPU reset. */
_must_check_ _nonnull_ int nvml_uncorrected_errors(NvmlDevice device, uint64_t *ret);

_must_check_ _nonnull_ int nvml_link_is_up(NvmlDevice device, unsigned link, bool *ret);

enum { /* nvmlClocksEventReason…, those that are no choice of anybody's */
       NVML_CLOCKS_HW_SLOWDOWN = 0x08,
       NVML_CLOCKS_SW_THERMAL = 0x20,
       NVML_CLOCKS_HW_THERMAL = 0x40,
       NVML_CLOCKS_HW_POWER_BRAKE = 0x80,
};
/* Why the clocks are not higher: bits, also others. */
_must_check_ _nonnull_ int nvml_clock_reasons(NvmlDevice device, uint64_t *ret);
