/* SPDX-License-Identifier: Apache-2.0
 * Answers of the NVIDIA management library → the steps that ask it. answers.h: "$ FUNCTION CODE VALUES",
 * in the order of the outputs, lengths of lists first; "$ FUNCTION.2" is for the index or the profile 2
 * alone. It may claim more items than there is room for, but writes only those that fit. Its texts may lack
 * the NUL, and its answers may differ each time. The first byte says which step, and of what
 * machine. */
#include "answers.h"

#include "apply/device.h"
#include "base/hash.h"
#include "base/library.h"
#include "base/log.h"
#include "nvidia/nvml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int opened;

/* ---- one answer ---- */

/* A word, in which '_' is a blank. It has no NUL if it fills the room. */
static const char *put_text(const char *at, char *to, size_t room) {
        at += strspn(at, " ");
        size_t n = strcspn(at, " \n");
        for (size_t i = 0; i < MIN(n, room); i++)
                to[i] = (char)(at[i] == '_' ? ' ' : at[i]);
        if (n < room)
                to[n] = 0;
        return at + n;
}

/* layout: b, u and q are numbers of one, four and eight bytes, p is a handle, which is not NULL. s32 is a
 * text of so many bytes, .4 a gap. */
static const char *put(const char *at, const char *layout, unsigned char *to) {
        while (*layout) {
                char kind = *layout++, *end;
                size_t room = strtoul(layout, &end, 10);
                layout = end;
                if (kind == 's')
                        at = put_text(at, (char *)to, room);
                else if (kind != '.') {
                        uint64_t value = strtoull(at, &end, 0);
                        value = kind == 'p' && value == 0 ? 1 : value;
                        at = end;
                        room = kind == 'b' ? 1 : kind == 'u' ? 4 : 8;
                        memcpy(to, &value, room);       /* little-endian, as all machines here */
                }
                to += room;
        }
        return at;
}

/* Puts the code into *ret. Returns the values after it, or NULL. */
static const char *code_of(const char *function, unsigned *ret) {
        const char *text = answer_take(function);
        char *end;
        if (!text) {
                *ret = NVML_NOT_SUPPORTED;
                return NULL;
        }
        *ret = (unsigned)strtoul(text, &end, 0);
        return *ret == NVML_OK ? end : NULL;
}

static unsigned answer(const char *function, const char *layout, void *ret) {
        unsigned code;
        const char *at = code_of(function, &code);
        if (at)
                (void)put(at, layout, ret);
        return code;
}

static unsigned answer_two(const char *function, unsigned *ret, unsigned *ret_other) {
        unsigned both[2] = { *ret, *ret_other }, code = answer(function, "uu", both);
        *ret = both[0];
        *ret_other = both[1];
        return code;
}

/* The name of the answer for this index, or that of the function. */
static const char *indexed(const char *function, unsigned index, char name[static 96]) {
        snprintf(name, 96, "%s.%u", function, index);
        for (size_t i = 0; i < answers.n; i++)
                if (streq(answers.items[i].name, name))
                        return name;
        return function;
}

static unsigned answer_at(const char *function, unsigned index, const char *layout, void *ret) {
        char name[96];
        return answer(indexed(function, index, name), layout, ret);
}

static unsigned answer_list(const char *function, const char *layout, size_t size, unsigned *count,
                            void *ret) {
        unsigned code, room = ret ? *count : 0;
        const char *at = code_of(function, &code);
        if (at)
                at = put(at, "u", (unsigned char *)count);
        for (unsigned i = 0; at && i < MIN(*count, room) && strchr("0123456789", at[strspn(at, " ")]); i++)
                at = put(at, layout, (unsigned char *)ret + i * size);
        return code;
}

/* ---- the library ---- */

#define FUNCTION(name, ...) static unsigned name(__VA_ARGS__)
#define GIVES(name, layout) FUNCTION(name, void *d, void *ret) { return (void)d, answer(#name, layout, ret); }
#define GIVES_TWO(name)     FUNCTION(name, void *d, unsigned *ret, unsigned *ret_other) {         \
        return (void)d, answer_two(#name, ret, ret_other); }
#define GIVES_AT(name, layout) FUNCTION(name, void *d, unsigned i, void *ret) {                   \
        return (void)d, answer_at(#name, i, layout, ret); }
#define SETS(name)          FUNCTION(name, void *d, unsigned a, unsigned b) {                     \
        return (void)d, (void)a, (void)b, answer(#name, "", NULL); }
#define LISTS(name)         FUNCTION(name, void *d, unsigned i, void **ret, unsigned *count) {    \
        char at[96];                                                                              \
        return (void)d, answer_list(indexed(#name, i, at), "p", sizeof *ret, count, ret); }

FUNCTION(nvmlInit_v2, void) {
        unsigned code = answer("nvmlInit_v2", "", NULL);
        opened += code == NVML_OK;
        return code;
}

FUNCTION(nvmlShutdown, void) {
        opened--;
        return NVML_OK;
}

static const char *nvmlErrorString(unsigned code) {
        return answer_take("nvmlErrorString") ?: code == NVML_OK ? "Success" : "Some Error";
}

FUNCTION(nvmlDeviceGetCount_v2, void *ret) {
        return answer("nvmlDeviceGetCount_v2", "u", ret);
}

FUNCTION(nvmlDeviceGetHandleByIndex_v2, unsigned index, void **ret) {
        uintptr_t handle = index + 1UL;
        unsigned code = answer("nvmlDeviceGetHandleByIndex_v2", "", NULL);
        memcpy(ret, &handle, sizeof handle);
        return code;
}

FUNCTION(nvmlDeviceGetUUID, void *d, char *ret, unsigned size) {
        _free_ char *layout = xasprintf("s%u", size);
        (void)d;
        return answer("nvmlDeviceGetUUID", layout, ret);
}

/* Version 2 ends before the summary. */
FUNCTION(nvmlDeviceGetGpuFabricInfoV, void *d, unsigned *ret) {
        (void)d;
        return answer("nvmlDeviceGetGpuFabricInfoV", *ret >> 24 == 3 ? ".4qquub.3ub" : ".4qquub.3u", ret);
}

FUNCTION(nvmlDeviceGetGpuInstancePossiblePlacements_v2, void *d, unsigned i, uint64_t *ret, unsigned *count) {
        char at[96];
        (void)d;
        return answer_list(indexed("nvmlDeviceGetGpuInstancePossiblePlacements_v2", i, at), "uu", sizeof *ret,
                           count, ret);
}

FUNCTION(nvmlDeviceCreateGpuInstanceWithPlacement, void *d, unsigned profile, const void *at, void **ret) {
        (void)d, (void)profile, (void)at;
        return answer("nvmlDeviceCreateGpuInstanceWithPlacement", "p", ret);
}

FUNCTION(nvmlGpuInstanceGetComputeInstanceProfileInfo, void *d, unsigned i, unsigned engines, void *ret) {
        (void)d, (void)engines;
        return answer_at("nvmlGpuInstanceGetComputeInstanceProfileInfo", i, "uuuu", ret);
}

FUNCTION(nvmlDeviceGetSupportedMemoryClocks, void *d, unsigned *count, unsigned *ret) {
        (void)d;
        return answer_list("nvmlDeviceGetSupportedMemoryClocks", "u", sizeof *ret, count, ret);
}

FUNCTION(nvmlDeviceGetSupportedGraphicsClocks, void *d, unsigned memory, unsigned *count, unsigned *ret) {
        (void)d, (void)memory;
        return answer_list("nvmlDeviceGetSupportedGraphicsClocks", "u", sizeof *ret, count, ret);
}

FUNCTION(nvmlDeviceGetFieldValues, void *d, int n, void *ret) {
        (void)d, (void)n;
        return answer("nvmlDeviceGetFieldValues", ".24uuq", ret);
}

FUNCTION(nvmlDeviceGetRemappedRows, void *d, unsigned *a, unsigned *b, unsigned *pending, unsigned *failed) {
        (void)d, (void)a, (void)b;
        return answer_two("nvmlDeviceGetRemappedRows", pending, failed);
}

FUNCTION(nvmlDeviceGetNvLinkErrorCounter, void *d, unsigned link, unsigned counter, void *ret) {
        (void)d, (void)link, (void)counter;
        return answer("nvmlDeviceGetNvLinkErrorCounter", "q", ret);
}
FUNCTION(nvmlDeviceGetTotalEccErrors, void *d, unsigned type, unsigned counter, void *ret) {
        (void)d, (void)type, (void)counter;
        return answer("nvmlDeviceGetTotalEccErrors", "q", ret);
}

GIVES(nvmlDeviceGetPciInfo_v3, ".16uuuuus32")
GIVES(nvmlDeviceGetMaxMigDeviceCount, "u")
GIVES_AT(nvmlDeviceGetMigDeviceHandleByIndex, "p")
GIVES(nvmlDeviceGetGpuFabricInfo, "qquub")
GIVES_TWO(nvmlDeviceGetMigMode)
GIVES_AT(nvmlDeviceSetMigMode, "u")
GIVES_AT(nvmlDeviceGetGpuInstanceProfileInfo, "uuuu")
GIVES_AT(nvmlDeviceGetGpuInstanceProfileInfoV, ".4uuuu.36s96")
LISTS(nvmlDeviceGetGpuInstances)
GIVES(nvmlGpuInstanceGetInfo, "puuuu")
GIVES_AT(nvmlDeviceCreateGpuInstance, "p")
SETS(nvmlGpuInstanceDestroy)
GIVES_AT(nvmlGpuInstanceCreateComputeInstance, "p")
LISTS(nvmlGpuInstanceGetComputeInstances)
SETS(nvmlComputeInstanceDestroy)
GIVES(nvmlDeviceGetPersistenceMode, "u")
SETS(nvmlDeviceSetPersistenceMode)
GIVES_TWO(nvmlDeviceGetAutoBoostedClocksEnabled)
SETS(nvmlDeviceSetAutoBoostedClocksEnabled)
SETS(nvmlDeviceSetDefaultAutoBoostedClocksEnabled)
GIVES_AT(nvmlDeviceGetApplicationsClock, "u")
GIVES_AT(nvmlDeviceGetDefaultApplicationsClock, "u")
SETS(nvmlDeviceSetApplicationsClocks)
SETS(nvmlDeviceResetApplicationsClocks)
GIVES(nvmlDeviceGetRetiredPagesPendingStatus, "u")
GIVES_AT(nvmlDeviceGetNvLinkState, "u")
GIVES(nvmlDeviceGetCurrentClocksEventReasons, "q")
GIVES(nvmlDeviceGetCurrentClocksThrottleReasons, "q")
GIVES(nvmlDeviceGetGridLicensableFeatures_v4, "uu.4u.128s128u.16.4u.128s128u.16")

#define ENTRY(name) { #name, (void *)name }
static const struct { const char *name; void *address; } library[] = {
        ENTRY(nvmlInit_v2), ENTRY(nvmlShutdown), ENTRY(nvmlErrorString), ENTRY(nvmlDeviceGetCount_v2),
        ENTRY(nvmlDeviceGetHandleByIndex_v2), ENTRY(nvmlDeviceGetPciInfo_v3), ENTRY(nvmlDeviceGetUUID),
        ENTRY(nvmlDeviceGetMaxMigDeviceCount), ENTRY(nvmlDeviceGetMigDeviceHandleByIndex),
        ENTRY(nvmlDeviceGetGpuFabricInfo), ENTRY(nvmlDeviceGetGpuFabricInfoV), ENTRY(nvmlDeviceGetMigMode),
        ENTRY(nvmlDeviceSetMigMode), ENTRY(nvmlDeviceGetGpuInstanceProfileInfo),
        ENTRY(nvmlDeviceGetGpuInstanceProfileInfoV), ENTRY(nvmlDeviceGetGpuInstances),
        ENTRY(nvmlGpuInstanceGetInfo), ENTRY(nvmlDeviceGetGpuInstancePossiblePlacements_v2),
        ENTRY(nvmlDeviceCreateGpuInstance), ENTRY(nvmlDeviceCreateGpuInstanceWithPlacement),
        ENTRY(nvmlGpuInstanceDestroy), ENTRY(nvmlGpuInstanceGetComputeInstanceProfileInfo),
        ENTRY(nvmlGpuInstanceCreateComputeInstance), ENTRY(nvmlGpuInstanceGetComputeInstances),
        ENTRY(nvmlComputeInstanceDestroy), ENTRY(nvmlDeviceGetPersistenceMode),
        ENTRY(nvmlDeviceSetPersistenceMode), ENTRY(nvmlDeviceGetAutoBoostedClocksEnabled),
        ENTRY(nvmlDeviceSetAutoBoostedClocksEnabled), ENTRY(nvmlDeviceSetDefaultAutoBoostedClocksEnabled),
        ENTRY(nvmlDeviceGetSupportedMemoryClocks), ENTRY(nvmlDeviceGetSupportedGraphicsClocks),
        ENTRY(nvmlDeviceGetApplicationsClock), ENTRY(nvmlDeviceGetDefaultApplicationsClock),
        ENTRY(nvmlDeviceSetApplicationsClocks), ENTRY(nvmlDeviceResetApplicationsClocks),
        ENTRY(nvmlDeviceGetFieldValues), ENTRY(nvmlDeviceGetRemappedRows),
        ENTRY(nvmlDeviceGetRetiredPagesPendingStatus), ENTRY(nvmlDeviceGetTotalEccErrors),
        ENTRY(nvmlDeviceGetNvLinkState), ENTRY(nvmlDeviceGetNvLinkErrorCounter),
        ENTRY(nvmlDeviceGetCurrentClocksEventReasons),
        ENTRY(nvmlDeviceGetCurrentClocksThrottleReasons), ENTRY(nvmlDeviceGetGridLicensableFeatures_v4),
};

/* In the place of src/base/library.c. For a function that a library lacks, a seed has the code
 * NVML_FUNCTION_NOT_FOUND. */
int library_load(const char *name, const char *functions, const char *package, void *table, char **ret_why) {
        char *slot = table;
        (void)name, (void)package, (void)ret_why;
        for (const char *f = functions; *f; f += strlen(f) + 1, slot += sizeof(void *)) {
                void *address = NULL;
                for (size_t i = 0; i < ARRAY_SIZE(library); i++)
                        if (streq(library[i].name, f + (*f == '?')))
                                address = library[i].address;
                if (!address)
                        abort();
                memcpy(slot, &address, sizeof address);
        }
        return 0;
}

void library_settle_libcrypto(void) {
}

/* ---- the steps ---- */

static const struct { int (*work)(Work *w); const char *target; ActionType type; bool finds; } steps[] = {
        { fabric_work, "fabric", ACTION_AWAIT_FABRIC, true },
        { mig_mode_work, "mig", ACTION_SET_MIG_MODE, false },
        { partition_work, "mig", ACTION_PARTITION_GPUS, true },
        { clocks_work, "clocks", ACTION_SET_CLOCKS, true },
        { health_work, "gpus", ACTION_CHECK_HEALTH, true },
        { license_work, "grid", ACTION_AWAIT_LICENSE, false },
        { list_work, "nvidia-smi", ACTION_LIST_GPUS, true },
        { cdi_work, "/var/run/cdi/nvidia.yaml", ACTION_GENERATE_CDI, false },
};

/* A step that fails says why, a finding can be written as JSON, and the library is closed as often as it was
 * opened. */
static void check(const Work *w, int r, bool finds) {
        _free_ char *found = w->found ? json_dumps(w->found, 0) : NULL;
        if (r < 0 && (!w->text || !*w->text || w->cause == CAUSE_NONE))
                abort();
        if ((w->found || (finds && r >= 0)) && !found)
                abort();
        if (opened != 0)
                abort();
}

static void run(const Root *root, uint8_t what) {
        static char *seen[] = { (char *)"0000:10:00.0", (char *)"0000:20:00.0", NULL },
                    *some[] = { (char *)"1g.10gb", (char *)"2g.20gb", (char *)"19", (char *)"19", (char *)"19",
                                NULL },
                    *none[] = { NULL },
                    *looks[] = { (char *)"fabric", (char *)"recovery", (char *)"memory", (char *)"nvlink",
                                 (char *)"clocks", NULL };
        MigLayout layouts[] = { { 0, some }, { 1, none } };
        Action action = { .id = (char *)"step", .type = steps[what & 7].type,
                          .target = (char *)steps[what & 7].target, .lenient = what & 8,
                          .with = (char *)(what & 8 ? "default" : "max"),
                          .class = (GpuClass)(GPU_CLASS_TRAY + (what >> 4 & 3)) };
        action.device = (typeof(action.device)){ .count = 1, .seen = seen, .nvlinks = 2, .parameters = looks,
                                                 .layouts = layouts, .n_layouts = 1 + (what >> 6 & 1) };
        Work w = { .root = root, .action = &action, .deadline_usec = now_usec() + 5 * USEC_PER_SEC,
                   .cancel_fd = -1, .early = what >> 7 };
        int r = steps[what & 7].work(&w);
        check(&w, r, steps[what & 7].finds);
        free(w.text);
        json_decref(w.found);
        diag_done(&w.warnings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(diag_done) Diag diag = {};
        if (size < 1 || size > MAX_INPUT)
                return 0;
        log_set_level(LOG_EMERG);
        if (hash_load(&diag) < 0)
                abort();
        Tree tree = tree_new();
        tree_unpack(&tree, (const char *)data + 1, (const char *)data + size);
        answers_read(tree.root);
        opened = 0;
        run(tree.root, data[0]);
        answers_done();
        tree_done(&tree);
        return 0;
}
