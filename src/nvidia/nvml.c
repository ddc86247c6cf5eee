/* SPDX-License-Identifier: Apache-2.0
 * libnvidia-ml.so.1 by dlopen: it belongs to the driver, and most nodes lack it. Layouts, numbers and
 * versions as NVIDIA documents them (https://docs.nvidia.com/deploy/nvml-api, nvml.h) or as its Python
 * bindings send them (nvidia-ml-py: pynvml.py). A struct version is its size, with a number in the highest
 * byte. */
#include "nvidia/nvml.h"

#include "base/library.h"
#include "base/str.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#define STRUCT_VERSION(type, number) ((unsigned)sizeof(type) | (unsigned)(number) << 24)
#define PROFILES_MAX 32                 /* profile indexes to try; R580 names 17 */
#define CLOCKS_MAX 1024
/* More is an error: machines have 16 GPUs with seven instances each. */
#define GPUS_MAX 256
#define LIST_MAX 256

/* ---- what the library takes and gives ---- */

/* nvmlPciInfo_t */
typedef struct PciInfo {
        char legacy_id[16];
        unsigned domain, bus, device, device_id, subsystem_id;
        char id[32];
} PciInfo;
/* nvmlGpuFabricInfo_t */
typedef struct FabricInfo1 {
        unsigned char uuid[16];
        unsigned status, clique;
        unsigned char state;
} FabricInfo1;
typedef struct FabricInfo2 {            /* nvmlGpuFabricInfo_v2_t; _v3_t adds a byte */
        unsigned version;
        unsigned char uuid[16];
        unsigned status, clique;
        unsigned char state;
        unsigned health;
} FabricInfo2;
typedef struct FabricInfo3 { FabricInfo2 v2; unsigned char summary; } FabricInfo3;
/* nvmlGpuInstancePlacement_t */
typedef struct Placement { unsigned start, size; } Placement;
typedef struct ProfileInfo2 {           /* nvmlGpuInstanceProfileInfo_v2_t */
        unsigned version, id, p2p, slices, instances, processors, copy, decoders, encoders, jpeg, ofa;
        unsigned long long memory;
        char name[96];
} ProfileInfo2;
typedef struct ProfileInfo1 {           /* nvmlGpuInstanceProfileInfo_t */
        unsigned id, p2p, slices, instances, processors, copy, decoders, encoders, jpeg, ofa;
        unsigned long long memory;
} ProfileInfo1;
/* nvmlGpuInstanceInfo_t */
typedef struct InstanceInfo { NvmlDevice device; unsigned id, profile; Placement placement; } InstanceInfo;
/* nvmlComputeInstanceProfileInfo_t */
typedef struct ComputeProfileInfo {
        unsigned id, slices, instances, processors, shared[5];
} ComputeProfileInfo;

/* NVML_FI_DEV_GET_GPU_RECOVERY_ACTION; NVML_VALUE_TYPE_UNSIGNED_INT, …_LONG, …_LONG_LONG, by driver */
enum { FIELD_RECOVERY = 230, TYPE_UINT = 1, TYPE_ULONG, TYPE_ULLONG };
/* nvmlMemoryErrorType_t, nvmlEccCounterType_t */
enum { ERROR_UNCORRECTED = 1, COUNTER_VOLATILE = 0, LINK_RECOVERY = 1 };

/* nvmlFieldValue_t */
typedef struct FieldValue {
        unsigned field, scope;
        long long timestamp, latency;
        unsigned type, code;
        union { unsigned u; unsigned long long ull; } value;
} FieldValue;
_Static_assert(sizeof(FieldValue) == 40, "as nvml.h has it");

#define FEATURES_MAX 3                  /* NVML_GRID_LICENSE_FEATURE_MAX_COUNT */
typedef struct Feature {                /* nvmlGridLicensableFeature_t */
        unsigned code, licensed;
        char info[128], product[128];
        unsigned enabled;
        struct {
                unsigned year;
                unsigned short month, day, hour, minute, second;
                unsigned char status;
        } expiry;
} Feature;
typedef struct Features {               /* nvmlGridLicensableFeatures_t */
        int supported;
        unsigned n;
        Feature items[FEATURES_MAX];
} Features;
_Static_assert(sizeof(Feature) == 284 && sizeof(Features) == 860, "as nvml.h has them");

_Static_assert(STRUCT_VERSION(FabricInfo2, 2) == 0x02000024 && STRUCT_VERSION(FabricInfo3, 3) == 0x03000028,
               "as pynvml.py has them");
_Static_assert(STRUCT_VERSION(ProfileInfo2, 2) == 0x02000098, "as pynvml.py has it");

/* return type, member, name ('?': old libraries lack it), parameters */
#define NVML_FUNCTIONS(X)                                                                                \
        X(unsigned, init, "nvmlInit_v2", (void))                                                         \
        X(unsigned, shutdown, "nvmlShutdown", (void))                                                    \
        X(const char *, error_string, "nvmlErrorString", (unsigned code))                                \
        X(unsigned, count, "nvmlDeviceGetCount_v2", (unsigned *ret))                                     \
        X(unsigned, handle, "nvmlDeviceGetHandleByIndex_v2", (unsigned index, NvmlDevice *ret))          \
        X(unsigned, pci, "nvmlDeviceGetPciInfo_v3", (NvmlDevice device, PciInfo *ret))                   \
        X(unsigned, uuid, "?nvmlDeviceGetUUID", (NvmlDevice device, char *ret, unsigned size))           \
        X(unsigned, mig_most, "?nvmlDeviceGetMaxMigDeviceCount", (NvmlDevice device, unsigned *ret))     \
        X(unsigned, mig_device, "?nvmlDeviceGetMigDeviceHandleByIndex",                                  \
          (NvmlDevice device, unsigned index, NvmlDevice *ret))                                          \
        X(unsigned, fabric, "?nvmlDeviceGetGpuFabricInfo", (NvmlDevice device, FabricInfo1 *ret))        \
        X(unsigned, fabric_v, "?nvmlDeviceGetGpuFabricInfoV", (NvmlDevice device, FabricInfo2 *ret))     \
        X(unsigned, mig_mode, "?nvmlDeviceGetMigMode",                                                   \
          (NvmlDevice device, unsigned *ret_current, unsigned *ret_pending))                             \
        X(unsigned, set_mig_mode, "?nvmlDeviceSetMigMode",                                               \
          (NvmlDevice device, unsigned mode, unsigned *ret_activation))                                  \
        X(unsigned, profile, "?nvmlDeviceGetGpuInstanceProfileInfo",                                     \
          (NvmlDevice device, unsigned index, ProfileInfo1 *ret))                                        \
        X(unsigned, profile_v, "?nvmlDeviceGetGpuInstanceProfileInfoV",                                  \
          (NvmlDevice device, unsigned index, ProfileInfo2 *ret))                                        \
        X(unsigned, instances, "?nvmlDeviceGetGpuInstances",                                             \
          (NvmlDevice device, unsigned profile, void **ret, unsigned *count))                            \
        X(unsigned, instance_info, "?nvmlGpuInstanceGetInfo", (void *instance, InstanceInfo *ret))       \
        X(unsigned, places, "?nvmlDeviceGetGpuInstancePossiblePlacements_v2",                            \
          (NvmlDevice device, unsigned profile, Placement *ret, unsigned *count))                        \
        X(unsigned, create, "?nvmlDeviceCreateGpuInstance",                                              \
          (NvmlDevice device, unsigned profile, void **ret))                                             \
        X(unsigned, create_at, "?nvmlDeviceCreateGpuInstanceWithPlacement",                              \
          (NvmlDevice device, unsigned profile, const Placement *placement, void **ret))                 \
        X(unsigned, destroy, "?nvmlGpuInstanceDestroy", (void *instance))                                \
        X(unsigned, compute_profile, "?nvmlGpuInstanceGetComputeInstanceProfileInfo",                    \
          (void *instance, unsigned index, unsigned engines, ComputeProfileInfo *ret))                   \
        X(unsigned, compute_create, "?nvmlGpuInstanceCreateComputeInstance",                             \
          (void *instance, unsigned profile, void **ret))                                                \
        X(unsigned, compute_instances, "?nvmlGpuInstanceGetComputeInstances",                            \
          (void *instance, unsigned profile, void **ret, unsigned *count))                               \
        X(unsigned, compute_destroy, "?nvmlComputeInstanceDestroy", (void *compute))                     \
        X(unsigned, persistence, "?nvmlDeviceGetPersistenceMode", (NvmlDevice device, unsigned *ret))    \
        X(unsigned, set_persistence, "?nvmlDeviceSetPersistenceMode", (NvmlDevice device, unsigned on))  \
        X(unsigned, auto_boost, "?nvmlDeviceGetAutoBoostedClocksEnabled",                                \
          (NvmlDevice device, unsigned *ret, unsigned *ret_default))                                     \
        X(unsigned, set_auto_boost, "?nvmlDeviceSetAutoBoostedClocksEnabled",                            \
          (NvmlDevice device, unsigned on))                                                              \
        X(unsigned, set_default_auto_boost, "?nvmlDeviceSetDefaultAutoBoostedClocksEnabled",             \
          (NvmlDevice device, unsigned on, unsigned flags))                                              \
        X(unsigned, memory_clocks, "?nvmlDeviceGetSupportedMemoryClocks",                                \
          (NvmlDevice device, unsigned *count, unsigned *ret))                                           \
        X(unsigned, graphics_clocks, "?nvmlDeviceGetSupportedGraphicsClocks",                            \
          (NvmlDevice device, unsigned memory, unsigned *count, unsigned *ret))                          \
        X(unsigned, application_clock, "?nvmlDeviceGetApplicationsClock",                                \
          (NvmlDevice device, unsigned type, unsigned *ret))                                             \
        X(unsigned, default_clock, "?nvmlDeviceGetDefaultApplicationsClock",                             \
          (NvmlDevice device, unsigned type, unsigned *ret))                                             \
        X(unsigned, set_application_clocks, "?nvmlDeviceSetApplicationsClocks",                          \
          (NvmlDevice device, unsigned memory, unsigned graphics))                                       \
        X(unsigned, reset_application_clocks, "?nvmlDeviceResetApplicationsClocks", (NvmlDevice device)) \
        X(unsigned, fields, "?nvmlDeviceGetFieldValues", (NvmlDevice device, int n, FieldValue *values)) \
        X(unsigned, rows, "?nvmlDeviceGetRemappedRows",                                                  \
          (NvmlDevice device, unsigned *ret_corrected, unsigned *ret_uncorrected, unsigned *ret_pending, \
           unsigned *ret_failed))                                                                        \
        X(unsigned, pages, "?nvmlDeviceGetRetiredPagesPendingStatus", (NvmlDevice device, unsigned *ret))\
        X(unsigned, errors, "?nvmlDeviceGetTotalEccErrors",                                              \
          (NvmlDevice device, unsigned type, unsigned counter, unsigned long long *ret))                 \
        X(unsigned, link, "?nvmlDeviceGetNvLinkState", (NvmlDevice device, unsigned link, unsigned *ret))\
        X(unsigned, link_errors, "?nvmlDeviceGetNvLinkErrorCounter",                                     \
          (NvmlDevice device, unsigned link, unsigned counter, unsigned long long *ret))                 \
        X(unsigned, reasons, "?nvmlDeviceGetCurrentClocksEventReasons",                                  \
          (NvmlDevice device, unsigned long long *ret))                                                  \
        X(unsigned, old_reasons, "?nvmlDeviceGetCurrentClocksThrottleReasons",                           \
          (NvmlDevice device, unsigned long long *ret))                                                  \
        X(unsigned, features, "?nvmlDeviceGetGridLicensableFeatures_v4", (NvmlDevice device, Features *ret))
#define POINTER(type, member, name, parameters) type(*member) parameters;
#define NAME(type, member, name, parameters) name "\0"
static struct { NVML_FUNCTIONS(POINTER) } nvml;
enum { CLOCK_GRAPHICS = 0, CLOCK_MEMORY = 2 };  /* nvmlClockType_t */
#define CALL(member, ...) (nvml.member ? (int)nvml.member(__VA_ARGS__) : NVML_FUNCTION_NOT_FOUND)

/* The code reports too little room; if only the count does, this adds the code. */
static int list_code(int code, const unsigned *count, unsigned room) {
        return code == NVML_OK && *count > room ? NVML_INSUFFICIENT_SIZE : code;
}

/* ---- loading ---- */

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;   /* executors run on threads */
/* retried until it loads: a driver may come late */
static bool loaded;

void nvml_trouble_done(NvmlTrouble *t) {
        free(t->text);
        *t = (NvmlTrouble){};
}

char *nvml_text(int code) {
        return xasprintf("%s (%d)", nvml.error_string ? nvml.error_string((unsigned)code) : "error", code);
}

bool nvml_is_final(int code) {
        static const int codes[] = { NVML_NO_PERMISSION, NVML_FUNCTION_NOT_FOUND, NVML_GPU_IS_LOST,
                                     NVML_VERSION_MISMATCH, NVML_ARGUMENT_VERSION_MISMATCH };
        return ANY(c, codes, ARRAY_SIZE(codes), *c == code);
}

static int by_address(const void *a, const void *b) {
        const NvmlGpu *x = a, *y = b;
        return strcmp(x->address, y->address);
}

/* sysfs has four digits of the domain, the text of the library eight. */
static int gpus_take(NvmlGpus *g, unsigned count, const char **ret_call, unsigned *ret_index) {
        g->items = xcalloc(count + 1, sizeof *g->items);
        for (unsigned i = 0; i < count; i++) {
                NvmlGpu *gpu = &g->items[g->n];
                PciInfo pci = {};
                *ret_index = i;
                *ret_call = "nvmlDeviceGetHandleByIndex_v2";
                int code = CALL(handle, i, &gpu->device);
                if (code == NVML_OK) {
                        *ret_call = "nvmlDeviceGetPciInfo_v3";
                        code = CALL(pci, gpu->device, &pci);
                }
                if (code != NVML_OK)
                        return code;
                snprintf(gpu->address, sizeof gpu->address, "%04x:%02x:%02x.0", pci.domain, pci.bus & 0xff,
                         pci.device & 0xff);
                gpu->index = i;
                g->n++;
        }
        qsort(g->items, g->n, sizeof *g->items, by_address);
        return NVML_OK;
}

static int open_failed(NvmlTrouble *ret, int code, char *call) {
        _free_ char *text = nvml_text(code), *name = call;
        *ret = (NvmlTrouble){ .code = code, .text = xasprintf("%s: %s", name, text) };
        return -EIO;
}

int nvml_open(NvmlGpus *ret, NvmlTrouble *ret_trouble) {
        NvmlGpus g = {};
        const char *call = NULL;
        char *why = NULL;
        unsigned count = 0, index = 0;

        pthread_mutex_lock(&load_lock);
        if (!loaded)
                loaded = library_load("libnvidia-ml.so.1", NVML_FUNCTIONS(NAME), NULL, &nvml, &why) >= 0;
        pthread_mutex_unlock(&load_lock);
        if (why) {
                *ret_trouble = (NvmlTrouble){ .text = why };
                return -EIO;
        }
        int code = CALL(init);
        if (code != NVML_OK)
                return open_failed(ret_trouble, code, xstrdup("nvmlInit_v2"));
        code = CALL(count, &count);
        if (code != NVML_OK) {
                nvml_close(&g);
                return open_failed(ret_trouble, code, xstrdup("nvmlDeviceGetCount_v2"));
        }
        if (count > GPUS_MAX) {
                nvml_close(&g);
                *ret_trouble = (NvmlTrouble){ NVML_UNKNOWN,
                                              xasprintf("nvmlDeviceGetCount_v2 counts %u GPUs", count) };
                return -EIO;
        }
        code = gpus_take(&g, count, &call, &index);
        if (code != NVML_OK) {
                nvml_close(&g);
                return open_failed(ret_trouble, code, xasprintf("%s of GPU %u of %u", call, index, count));
        }
        *ret = g;
        return 0;
}

void nvml_close(NvmlGpus *g) {
        (void)CALL(shutdown);
        free(g->items);
        *g = (NvmlGpus){};
}

int nvml_uuid(NvmlDevice device, NvmlUuid *ret) {
        NvmlUuid uuid = {};
        int code = CALL(uuid, device, uuid.text, sizeof uuid.text - 1);
        if (code == NVML_OK)
                *ret = uuid;
        return code;
}

/* ---- fabric ---- */

const char *nvml_fabric_state_to_string(NvmlFabricState state) {
        static const char names[][16] = { "Not Supported", "Not Started", "In Progress", "Completed" };
        return (size_t)state < ARRAY_SIZE(names) ? names[state] : NULL;
}

/* NVML_GPU_FABRIC_HEALTH_MASK_INCORRECT_CONFIGURATION_*: bits 8 to 11. */
static const char *health_fault(unsigned mask) {
        static const char *const words[] = { [2] = "incorrect system GUID",
                                             [3] = "incorrect chassis serial number",
                                             [4] = "no partition",
                                             [5] = "insufficient NVLinks",
                                             [6] = "incompatible GPU firmware",
                                             [7] = "invalid location",
                                             [8] = "invalid GPU state" };
        unsigned word = mask >> 8 & 0xf;
        return word < ARRAY_SIZE(words) ? words[word] : NULL;
}

/* Old libraries have version 2 only, or the function without versions. */
int nvml_fabric(NvmlDevice device, NvmlFabric *ret) {
        FabricInfo3 info = { .v2.version = STRUCT_VERSION(FabricInfo3, 3) };
        int code = CALL(fabric_v, device, &info.v2);
        if (code == NVML_ARGUMENT_VERSION_MISMATCH || code == NVML_INVALID_ARGUMENT) {
                info = (FabricInfo3){ .v2.version = STRUCT_VERSION(FabricInfo2, 2) };
                code = CALL(fabric_v, device, &info.v2);
        }
        if (code == NVML_FUNCTION_NOT_FOUND) {
                FabricInfo1 old = {};
                code = CALL(fabric, device, &old);
                if (code != NVML_OK)
                        return code;
                *ret = (NvmlFabric){ .state = old.state, .status = (int)old.status, .clique = old.clique };
                memcpy(ret->uuid, old.uuid, sizeof ret->uuid);
                return NVML_OK;
        }
        if (code != NVML_OK)
                return code;
        *ret = (NvmlFabric){ .state = info.v2.state, .status = (int)info.v2.status, .clique = info.v2.clique,
                             .misconfigured = health_fault(info.v2.health),
                             .health = info.v2.health,
                             .summary = info.summary };
        memcpy(ret->uuid, info.v2.uuid, sizeof ret->uuid);
        return NVML_OK;
}

/* ---- MIG ---- */

/* Two flags at once. */
static int get_flags(unsigned (*get)(NvmlDevice, unsigned *, unsigned *), NvmlDevice device, bool *ret,
                     bool *ret_other) {
        unsigned one = 0, other = 0;
        int code = get ? (int)get(device, &one, &other) : NVML_FUNCTION_NOT_FOUND;
        if (code != NVML_OK)
                return code;
        *ret = one == 1;
        *ret_other = other == 1;
        return NVML_OK;
}

int nvml_mig_mode(NvmlDevice device, bool *ret_current, bool *ret_pending) {
        return get_flags(nvml.mig_mode, device, ret_current, ret_pending);
}

int nvml_mig_set_mode(NvmlDevice device, bool on, int *ret_activation) {
        unsigned activation = NVML_OK;
        int code = CALL(set_mig_mode, device, on, &activation);
        if (code == NVML_OK)
                *ret_activation = (int)activation;
        return code;
}

static int profile_at(NvmlDevice device, unsigned index, NvmlProfile *ret) {
        ProfileInfo2 info = { .version = STRUCT_VERSION(ProfileInfo2, 2) };
        ProfileInfo1 old = {};
        int code = CALL(profile_v, device, index, &info);
        if (code == NVML_FUNCTION_NOT_FOUND) {
                code = CALL(profile, device, index, &old);
                info.id = old.id;
                info.slices = old.slices;
                info.instances = old.instances;
        }
        if (code != NVML_OK)
                return code;
        *ret = (NvmlProfile){ .id = info.id, .slices = info.slices, .instances = info.instances };
        size_t skipped = startswith(info.name, "MIG ") ? strlen("MIG ") : 0;
        snprintf(ret->name, sizeof ret->name, "%.*s", (int)(sizeof info.name - skipped), info.name + skipped);
        return NVML_OK;
}

/* A missing profile answers "not supported", an unknown index "invalid argument". */
int nvml_mig_profiles(NvmlDevice device, NvmlProfile **ret, size_t *ret_n) {
        _free_ NvmlProfile *profiles = xcalloc(PROFILES_MAX, sizeof *profiles);
        size_t n = 0;
        for (unsigned i = 0; i < PROFILES_MAX; i++) {
                int code = profile_at(device, i, &profiles[n]);
                if (code != NVML_OK && code != NVML_NOT_SUPPORTED && code != NVML_INVALID_ARGUMENT)
                        return code;
                if (code == NVML_OK && !ANY(p, profiles, n, p->id == profiles[n].id))
                        n++;
        }
        *ret = TAKE_PTR(profiles);
        *ret_n = n;
        return NVML_OK;
}

void nvml_instances_done(NvmlInstances *i) {
        free(i->items);
        *i = (NvmlInstances){};
}

static int by_place(const void *a, const void *b) {
        const NvmlInstance *x = a, *y = b;
        return (x->start > y->start) - (x->start < y->start);
}

static int instances_of(NvmlDevice device, const NvmlProfile *profile, NvmlInstances *to) {
        unsigned room = MIN(MAX(profile->instances, PROFILES_MAX), LIST_MAX), count = room;
        _free_ void **handles = xcalloc(room, sizeof *handles);
        int code = list_code(CALL(instances, device, profile->id, handles, &count), &count, room);
        for (unsigned i = 0; code == NVML_OK && i < count; i++) {
                InstanceInfo info = {};
                code = CALL(instance_info, handles[i], &info);
                *APPEND(to->items, to->n) = (NvmlInstance){ handles[i], info.id, profile->id,
                                                            info.placement.start, info.placement.size };
        }
        return code;
}

int nvml_mig_instances(NvmlDevice device, const NvmlProfile *profiles, size_t n, NvmlInstances *ret) {
        _cleanup_(nvml_instances_done) NvmlInstances found = {};
        for (size_t i = 0; i < n; i++) {
                int code = instances_of(device, &profiles[i], &found);
                if (code != NVML_OK)
                        return code;
        }
        if (found.n > 0)
                qsort(found.items, found.n, sizeof *found.items, by_place);
        *ret = found;
        found = (NvmlInstances){};
        return NVML_OK;
}

int nvml_mig_places(NvmlDevice device, unsigned profile, NvmlInstances *ret) {
        unsigned count = 0;
        int code = list_code(CALL(places, device, profile, NULL, &count), &count, LIST_MAX);
        if (code != NVML_OK)
                return code;
        unsigned room = count;
        _free_ Placement *places = xcalloc(room, sizeof *places);
        code = list_code(CALL(places, device, profile, places, &count), &count, room);
        if (code != NVML_OK)
                return code;
        NvmlInstances found = { .items = xcalloc(count + 1, sizeof *found.items) };
        for (; found.n < count; found.n++)
                found.items[found.n] = (NvmlInstance){ .profile = profile,
                                                       .start = places[found.n].start,
                                                       .size = places[found.n].size };
        *ret = found;
        return NVML_OK;
}

/* The first compute profile over all slices; later ones differ in engines. */
static int whole_profile(void *instance, unsigned slices, unsigned *ret) {
        for (unsigned i = 0; i < PROFILES_MAX; i++) {
                ComputeProfileInfo info = {};
                int code = CALL(compute_profile, instance, i, 0, &info);
                if (code != NVML_OK && code != NVML_NOT_SUPPORTED && code != NVML_INVALID_ARGUMENT)
                        return code;
                if (code == NVML_OK && info.slices == slices) {
                        *ret = info.id;
                        return NVML_OK;
                }
        }
        return NVML_NOT_FOUND;
}

int nvml_mig_create(NvmlDevice device, const NvmlProfile *profile, const NvmlInstance *place) {
        void *instance = NULL, *compute = NULL;
        unsigned whole = 0;
        Placement at = { place ? place->start : 0, place ? place->size : 0 };
        int code = place ? CALL(create_at, device, profile->id, &at, &instance)
                         : CALL(create, device, profile->id, &instance);
        if (code != NVML_OK)
                return code;
        code = whole_profile(instance, profile->slices, &whole);
        if (code == NVML_OK)
                code = CALL(compute_create, instance, whole, &compute);
        if (code != NVML_OK)
                (void)CALL(destroy, instance);
        return code;
}

int nvml_mig_is_whole(const NvmlInstance *instance, const NvmlProfile *profile, bool *ret) {
        void *handles[PROFILES_MAX] = {};
        unsigned whole = 0, count = PROFILES_MAX;
        int code = whole_profile(instance->handle, profile->slices, &whole);
        if (code == NVML_OK)
                code = CALL(compute_instances, instance->handle, whole, handles, &count);
        if (code == NVML_OK)
                *ret = count == 1;
        return code;
}

static int compute_destroy_all(void *instance, unsigned profile) {
        void *handles[PROFILES_MAX] = {};
        unsigned count = PROFILES_MAX;
        int code = CALL(compute_instances, instance, profile, handles, &count);
        code = list_code(code, &count, PROFILES_MAX);
        for (unsigned i = 0; code == NVML_OK && i < count; i++)
                code = CALL(compute_destroy, handles[i]);
        return code;
}

int nvml_mig_destroy(const NvmlInstance *instance) {
        for (unsigned i = 0; i < PROFILES_MAX; i++) {
                ComputeProfileInfo info = {};
                int code = CALL(compute_profile, instance->handle, i, 0, &info);
                if (code == NVML_OK)
                        code = compute_destroy_all(instance->handle, info.id);
                if (code != NVML_OK && code != NVML_NOT_SUPPORTED && code != NVML_INVALID_ARGUMENT)
                        return code;
        }
        return CALL(destroy, instance->handle);
}

int nvml_mig_most(NvmlDevice device, unsigned *ret) {
        unsigned most = 0;
        int code = list_code(CALL(mig_most, device, &most), &most, LIST_MAX);
        if (code == NVML_OK)
                *ret = most;
        return code;
}

/* For gaps in the numbers R450 says "invalid argument". */
int nvml_mig_device(NvmlDevice device, unsigned number, NvmlDevice *ret) {
        int code = CALL(mig_device, device, number, ret);
        return code == NVML_INVALID_ARGUMENT ? NVML_NOT_FOUND : code;
}

/* ---- clocks ---- */

static int get_flag(unsigned (*get)(NvmlDevice, unsigned *), NvmlDevice device, bool *ret) {
        unsigned on = 0;
        int code = get ? (int)get(device, &on) : NVML_FUNCTION_NOT_FOUND;
        if (code == NVML_OK)
                *ret = on == 1;
        return code;
}

int nvml_persistence(NvmlDevice device, bool *ret) {
        return get_flag(nvml.persistence, device, ret);
}

int nvml_set_persistence(NvmlDevice device, bool on) {
        return CALL(set_persistence, device, on);
}

int nvml_auto_boost(NvmlDevice device, bool *ret, bool *ret_default) {
        return get_flags(nvml.auto_boost, device, ret, ret_default);
}

int nvml_set_auto_boost(NvmlDevice device, bool on) {
        int code = CALL(set_default_auto_boost, device, on, 0);
        return code == NVML_OK ? CALL(set_auto_boost, device, on) : code;
}

static unsigned highest(const unsigned *clocks, unsigned n) {
        unsigned high = 0;
        for (unsigned i = 0; i < n; i++)
                high = MAX(high, clocks[i]);
        return high;
}

int nvml_highest_clocks(NvmlDevice device, unsigned *ret_memory, unsigned *ret_graphics) {
        unsigned clocks[CLOCKS_MAX] = {}, n = CLOCKS_MAX;
        int code = list_code(CALL(memory_clocks, device, &n, clocks), &n, CLOCKS_MAX);
        if (code != NVML_OK)
                return code;
        unsigned memory = highest(clocks, n);
        n = CLOCKS_MAX;
        code = list_code(CALL(graphics_clocks, device, memory, &n, clocks), &n, CLOCKS_MAX);
        if (code != NVML_OK)
                return code;
        *ret_memory = memory;
        *ret_graphics = highest(clocks, n);
        return NVML_OK;
}

typedef unsigned GetClock(NvmlDevice device, unsigned type, unsigned *ret);

static int clock_pair(GetClock *get, NvmlDevice device, unsigned *ret_memory, unsigned *ret_graphics) {
        unsigned memory = 0, graphics = 0;
        int code = get ? (int)get(device, CLOCK_MEMORY, &memory) : NVML_FUNCTION_NOT_FOUND;
        if (code == NVML_OK)
                code = (int)get(device, CLOCK_GRAPHICS, &graphics);
        if (code != NVML_OK)
                return code;
        *ret_memory = memory;
        *ret_graphics = graphics;
        return NVML_OK;
}

int nvml_application_clocks(NvmlDevice device, unsigned *ret_memory, unsigned *ret_graphics) {
        return clock_pair(nvml.application_clock, device, ret_memory, ret_graphics);
}

int nvml_default_clocks(NvmlDevice device, unsigned *ret_memory, unsigned *ret_graphics) {
        return clock_pair(nvml.default_clock, device, ret_memory, ret_graphics);
}

int nvml_set_application_clocks(NvmlDevice device, unsigned memory, unsigned graphics) {
        return CALL(set_application_clocks, device, memory, graphics);
}

int nvml_reset_application_clocks(NvmlDevice device) {
        return CALL(reset_application_clocks, device);
}

/* ---- health ---- */

int nvml_recovery(NvmlDevice device, unsigned *ret) {
        FieldValue value = { .field = FIELD_RECOVERY };
        int code = CALL(fields, device, 1, &value);
        if (code == NVML_OK)
                code = (int)value.code;
        if (code == NVML_OK && (value.type < TYPE_UINT || value.type > TYPE_ULLONG))
                code = NVML_NOT_SUPPORTED;
        if (code == NVML_OK)
                *ret = value.type == TYPE_UINT ? value.value.u : (unsigned)value.value.ull;
        return code;
}

int nvml_remapped_rows(NvmlDevice device, bool *ret_pending, bool *ret_failed) {
        unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
        int code = CALL(rows, device, &corrected, &uncorrected, &pending, &failed);
        if (code == NVML_OK) {
                *ret_pending = pending;
                *ret_failed = failed;
        }
        return code;
}

int nvml_retired_pages(NvmlDevice device, bool *ret_pending) {
        return get_flag(nvml.pages, device, ret_pending);
}

int nvml_uncorrected_errors(NvmlDevice device, uint64_t *ret) {
        unsigned long long n = 0;
        int code = CALL(errors, device, ERROR_UNCORRECTED, COUNTER_VOLATILE, &n);
        if (code == NVML_OK)
                *ret = n;
        return code;
}

int nvml_link_recoveries(NvmlDevice device, unsigned link, uint64_t *ret) {
        unsigned long long n = 0;
        int code = CALL(link_errors, device, link, LINK_RECOVERY, &n);
        if (code == NVML_OK)
                *ret = n;
        return code;
}

int nvml_link_is_up(NvmlDevice device, unsigned link, bool *ret) {
        unsigned up = 0;
        int code = CALL(link, device, link, &up);
        if (code == NVML_OK)
                *ret = up == 1;
        return code;
}

/* Drivers before R535 have the old name. */
int nvml_clock_reasons(NvmlDevice device, uint64_t *ret) {
        unsigned long long reasons = 0;
        int code = CALL(reasons, device, &reasons);
        if (code == NVML_FUNCTION_NOT_FOUND)
                code = CALL(old_reasons, device, &reasons);
        if (code == NVML_OK)
                *ret = reasons;
        return code;
}

/* ---- licences ---- */

/* One of several features has the licence. */
int nvml_license(NvmlDevice device, NvmlLicense *ret) {
        Features all = {};
        int code = CALL(features, device, &all);
        if (code != NVML_OK)
                return code;
        *ret = (NvmlLicense){ .supported = all.supported };
        for (unsigned i = 0; i < MIN(all.n, FEATURES_MAX) && !ret->licensed; i++) {
                const Feature *f = &all.items[i];
                ret->licensed = f->licensed;
                if (f->licensed || f->enabled)
                        snprintf(ret->product, sizeof ret->product, "%.*s", (int)sizeof f->product - 1,
                                 f->product);
        }
        return NVML_OK;
}
