/* SPDX-License-Identifier: Apache-2.0 */
/* The action types, a row each. The family frees, prints and names its member of the union. */
#include "plan/action.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/time.h"
#include <assert.h>
#include <errno.h>
#include <stdio.h>

#define MOVE_SEC       600
/* A network volume may pause for a minute, and a phase does not run twice. */
#define DISK_SEC       120
#define MOVE_RATE      (10ULL << 20)    /* bytes a second */
#define MOVE_MORE_MAX  ((4 * 3600 - MOVE_SEC) * USEC_PER_SEC)

DEFINE_STRING_TABLE(phase, Phase, "config", "devices", "run")
DEFINE_STRING_TABLE(step_state, StepState, "unknown", "keep", "make", "remake", "assemble", "repair")
DEFINE_STRING_TABLE(live, Live, "none", "keep", "create", "change", "remove", "unknown")

/* A text or a vector of texts in the union: freed, and shown unless it has no key. */
typedef struct Part { const char *key; size_t at; bool list; } Part;
#define AT(member) offsetof(Action, member)
#define TEXT(key, member) { key, _Generic(((Action *)0)->member, char *: AT(member)), false }
#define LIST(key, member) { key, _Generic(((Action *)0)->member, char **: AT(member)), true }

typedef struct Family {
        ActionKind kind;                                /* 0: other */
        const Part *parts; size_t n;
        bool named;                                     /* the parts are in the plan id */
        void (*done)(Action *a);                        /* frees the rest; or NULL */
        void (*put)(json_t *into, const Action *a);     /* NULL: put_common() and the parts */
        /* Adds its part of the plan id to the action (all) or to `device` in it; or NULL. */
        void (*name)(json_t *all, json_t *device, const Action *a);
        uint64_t (*more_usec)(const Action *a);         /* or NULL */
} Family;
#define PARTS(m) .parts = (m), .n = ARRAY_SIZE(m)

static void put_parts(json_t *into, const Action *a, const Part *parts, size_t n) {
        for (const Part *m = parts; m < parts + n; m++) {
                const void *at = (const char *)a + m->at;
                if (m->key && m->list)
                        json_set_list(into, m->key, *(char *const *const *)at);
                else if (m->key)
                        json_set_text(into, m->key, *(char *const *)at);
        }
}

static void put_flag(json_t *into, const char *key, bool flag) {
        if (flag)
                json_object_set_new(into, key, json_true());
}

/* False flags are left out, so that a reader sees what is special about an action. */
static void put_common(json_t *into, const Action *a) {
        json_set_text(into, "with", a->secret ? NULL : a->with);
        put_flag(into, "secret", a->secret);
        put_flag(into, "revealed", a->revealed);
        json_set_list(into, "afterAny", a->after_any);
        json_set_text(into, "timedFrom", a->timed_from);
        put_flag(into, "optional", a->optional);
        put_flag(into, "retry", a->retry);
        put_flag(into, "lenient", a->lenient);
        if (a->class != GPU_CLASS_NONE)
                json_set_text(into, "class", gpu_class_to_string(a->class));
}

static const Family plain = {};
static const Family manager = { .kind = ACTION_OF_UNITS };

/* ---- files ---- */

static void put_mode(json_t *into, const Action *a) {
        char text[8];
        snprintf(text, sizeof text, "%04o", (unsigned)a->file.mode & 07777);
        json_set_text(into, "mode", text);
}

static void put_digest(json_t *into, const char *key, const Action *a) {
        char digest[65];
        sha256_hex(a->file.content, a->file.size, digest);
        json_set_text(into, key, digest);
}

/* null if it is secret or not UTF-8 */
static json_t *content_json(const Action *a) {
        json_t *text = a->secret ? NULL : json_stringn(a->file.content, a->file.size);
        return text ?: json_null();
}

/* No digest or size of a secret: a short one can be guessed from them. */
static void put_file(json_t *into, const Action *a) {
        put_mode(into, a);
        if (!a->secret) {
                put_digest(into, "sha256", a);
                json_object_set_new(into, "size", json_integer((json_int_t)a->file.size));
        }
        put_common(into, a);
        json_object_set_new(into, "secret", json_boolean(a->secret));
}

static void put_block(json_t *into, const Action *a) {
        json_object_set_new(into, "content", content_json(a));
        put_common(into, a);
}

static void name_file(json_t *all, _unused_ json_t *device, const Action *a) {
        if (a->file.content)
                put_digest(all, "content", a);
        json_object_set_new(all, "mode", json_integer(a->file.mode));
}

static const Part file_parts[] = { TEXT(NULL, file.content) };
static const Family files = {
        .kind = ACTION_OF_FILES, PARTS(file_parts), .put = put_file, .name = name_file,
};
static const Family blocks = {
        .kind = ACTION_OF_FILES, PARTS(file_parts), .put = put_block, .name = name_file,
};

json_t *action_file_to_json(const Action *a) {
        json_t *j = json_pack("{ss so}", "path", a->target, "content", content_json(a));
        put_mode(j, a);
        if (!a->secret && json_is_null(json_object_get(j, "content")))
                put_digest(j, "sha256", a);
        return j;
}

static void put_unit(json_t *into, const Action *a) {
        if (*a->unit.inputs && !a->secret)
                json_set_text(into, "inputs", a->unit.inputs);
        put_common(into, a);
}

static void name_unit(json_t *all, _unused_ json_t *device, const Action *a) {
        json_set_text(all, "inputs", a->unit.inputs);
}

static const Part unit_parts[] = { LIST(NULL, unit.reads) };
static const Family units = {
        .kind = ACTION_OF_UNITS, PARTS(unit_parts), .put = put_unit, .name = name_unit,
};

/* ---- storage: the state of disks is not in the plan id ---- */

static const Part storage_parts[] = {
        LIST("disks", storage.disks),           LIST("serials", storage.serials),
        LIST("blank", storage.blank),           TEXT("array", storage.running),
        TEXT("arrayUuid", storage.array_uuid),  TEXT("device", storage.device),
        TEXT("level", storage.level),           TEXT("filesystem", storage.filesystem),
        TEXT("uuid", storage.uuid),             TEXT("source", storage.source),
        LIST(NULL, storage.files),
};

static void storage_done(Action *a) {
        for (size_t i = 0; i < a->storage.n_moves; i++)
                FREE_ALL(a->storage.moves[i].from, a->storage.moves[i].name);
        free(a->storage.moves);
}

static void put_storage(json_t *into, const Action *a) {
        json_set_text(into, "with", a->with);
        json_set_text(into, "state", step_state_to_string(a->storage.state));
        put_parts(into, a, storage_parts, ARRAY_SIZE(storage_parts));
        put_flag(into, "volume", a->storage.volume);
        put_flag(into, "lenient", a->lenient);
}

static void put_moves(json_t *into, const Action *a) {
        json_t *moves = json_array();
        put_storage(into, a);
        for (size_t i = 0; i < a->storage.n_moves; i++)
                json_array_append_new(moves, json_pack("{ss ss}", "from", a->storage.moves[i].from, "name",
                                                       a->storage.moves[i].name));
        json_object_set_new(into, "moves", moves);
        json_set_list(into, "files", a->storage.files);
}

/* The first read of a snapshot block is slow
 * (https://docs.aws.amazon.com/ebs/latest/userguide/initalize-volume.html); later reads reach 125 MiB/s. A
 * stuck move ends after hours. */
static uint64_t move_more_usec(const Action *a) {
        return MIN(a->storage.bytes / MOVE_RATE * USEC_PER_SEC, MOVE_MORE_MAX);
}

#define STORAGE PARTS(storage_parts), .done = storage_done
static const Family storage = { .kind = ACTION_OF_STORAGE, STORAGE, .put = put_storage };
static const Family moving = { .kind = ACTION_OF_STORAGE, STORAGE, .put = put_moves,
                               .more_usec = move_more_usec };
static const Family stops = { .kind = ACTION_OF_UNITS, STORAGE, .put = put_storage };

static const Part image_parts[] = {
        TEXT("socket", image.socket), TEXT("snapshotter", image.snapshotter), LIST("words", image.options),
        TEXT("store", image.store),
};
static const Family image = { PARTS(image_parts), .named = true };

static void put_pages(json_t *into, const Action *a) {
        json_t *pages = json_pack("{sI sI}", "size", (json_int_t)a->pages.size, "count",
                                  (json_int_t)a->pages.count);
        if (a->pages.node >= 0)
                json_object_set_new(pages, "numaNode", json_integer(a->pages.node));
        put_flag(pages, "ifNone", a->pages.if_none);
        put_flag(pages, "byNode", a->pages.by_node);
        put_common(into, a);
        json_object_set_new(into, "pages", pages);
}

static void name_pages(_unused_ json_t *all, json_t *device, const Action *a) {
        json_object_set_new(device, "pages",
                            json_pack("[IIib]", (json_int_t)a->pages.size, (json_int_t)a->pages.count,
                                      a->pages.node, a->pages.if_none));
        put_flag(device, "byNode", a->pages.by_node);
}

static const Family hugepages = { .put = put_pages, .name = name_pages };

static const Part device_parts[] = {
        LIST("words", device.parameters), LIST("devices", device.seen), LIST(NULL, device.efa),
};

static void device_done(Action *a) {
        for (size_t i = 0; i < a->device.n_layouts; i++)
                strv_free(a->device.layouts[i].profiles);
        free(a->device.layouts);
}

static json_t *layouts_json(const Action *a) {
        json_t *all = json_array();
        for (size_t i = 0; i < a->device.n_layouts; i++)
                json_array_append_new(all, json_pack("{si so}", "gpu", (int)a->device.layouts[i].gpu,
                                                     "profiles", json_list(a->device.layouts[i].profiles)));
        return all;
}

static void put_device(json_t *into, const Action *a) {
        put_common(into, a);
        if (a->device.count > 0)
                json_object_set_new(into, "count", json_integer(a->device.count));
        put_parts(into, a, device_parts, ARRAY_SIZE(device_parts));
        if (a->device.n_layouts > 0)
                json_object_set_new(into, "layouts", layouts_json(a));
}

static void name_device(_unused_ json_t *all, json_t *device, const Action *a) {
        json_t *layouts = json_object_get(device, "layouts");
        for (size_t i = 0; i < a->device.n_layouts; i++)
                json_array_append_new(layouts, json_pack("[io]", (int)a->device.layouts[i].gpu,
                                                         json_list(a->device.layouts[i].profiles)));
        json_object_set_new(device, "count", json_integer(a->device.count));
        json_set_list(device, "words", a->device.parameters);
}

static const Family devices = { PARTS(device_parts), .done = device_done, .put = put_device,
                                .name = name_device };

static void census_done(Action *a) {
        for (size_t i = 0; i < a->census.n; i++)
                free(a->census.missing[i].text);
        free(a->census.missing);
}

static void put_census(json_t *into, const Action *a) {
        json_t *missing = json_array();
        put_common(into, a);
        for (size_t i = 0; i < a->census.n; i++)
                json_array_append_new(missing,
                                      json_pack("{ss ss}", "code", cause_word(a->census.missing[i].cause),
                                                "text", a->census.missing[i].text));
        if (a->census.n > 0)
                json_object_set(into, "missing", missing);
        put_flag(into, "expectDevices", a->census.expect);
        json_decref(missing);
}

static const Family census = { .done = census_done, .put = put_census };

static const Part word_parts[] = { LIST("words", words) };
static const Part taint_parts[] = { LIST("words", node.taints) };
static const Family words = { PARTS(word_parts), .named = true };
static const Family taints = { PARTS(taint_parts), .named = true };

/* ---- the types ---- */

/* The usual time with eight GPUs. Fabric manager waits up to 30 s for GPUs (pytorch/ci-infra#552) and sleeps
 * 5 s after NVLSM starts; the rest comes from the fakes of tests/bench/boot.py. */
#define USUAL(...) .usual = (const ActionUsual[]){ __VA_ARGS__, {} }
#define TAKES(msec) USUAL({ NULL, msec })
#define NEEDS(...) .needs = (const ActionNeed[]){ __VA_ARGS__, {} }
#define TELLS(...) .tells = (const ActionTold[]){ __VA_ARGS__, {} }
#define NVML       { NEED_LIBRARY, "libnvidia-ml.so.1", CAUSE_NVML }
#define LIBBLKID   { NEED_LIBRARY, "libblkid.so.1", CAUSE_STORAGE_TOOL }
#define LIBMOUNT   { NEED_LIBRARY, "libmount.so.1", CAUSE_STORAGE_TOOL }

static const ActionRow rows[_ACTION_MAX] = {
        [ACTION_WRITE_FILE]      = { "write-file",      &files,     DISK_SEC, ASKS_RUNTIMES, COMPARE_FILE,
                .lenient = true },
        [ACTION_WRITE_BLOCK]     = { "write-block",     &blocks,    DISK_SEC, ASKS_FOLDER, COMPARE_BLOCK },
        [ACTION_PRUNE_FILES]     = { "prune-files",     &plain,     DISK_SEC, ASKS_FOLDER, COMPARE_MANIFEST },
        [ACTION_RELOAD_MANAGER]  = { "reload-manager",  &manager,         30, ASKS_NEEDS,
                NEEDS({ NEED_PROGRAM, "/usr/lib/systemd/systemd", CAUSE_BUS }) },
        [ACTION_RESTART_UNIT]    = { "restart-unit",    &units,           30, ASKS_OLD_UNIT, COMPARE_RERUN },
        [ACTION_START_UNIT]      = { "start-unit",      &units,           90, ASKS_UNIT, COMPARE_UNIT,
                USUAL({ "nvidia-fabricmanager.service", 15000 }, { "nvidia-persistenced.service", 2000 },
                      { "containerd.service", 8000 }) },
        [ACTION_STOP_UNIT]       = { "stop-unit",       &stops,           90, ASKS_KERNEL },
        [ACTION_CREATE_RAID]     = { "create-raid",     &storage,         60, ASKS_ARRAY, COMPARE_STEP,
                NEEDS({ NEED_PROGRAM, "mdadm", CAUSE_STORAGE_TOOL }, LIBBLKID), TAKES(1000) },
        [ACTION_MAKE_FILESYSTEM] = { "make-filesystem", &storage,        120, ASKS_FILESYSTEM, COMPARE_STEP,
                NEEDS(LIBBLKID), TAKES(3000) },
        [ACTION_MOUNT]           = { "mount",           &storage,         60, ASKS_PLACE, COMPARE_STEP,
                NEEDS(LIBMOUNT) },
        [ACTION_GROW_FILESYSTEM] = { "grow-filesystem", &storage,        120, ASKS_KERNEL },
        [ACTION_MOVE_FILES]      = { "move-files",      &moving,    MOVE_SEC, ASKS_NEEDS, COMPARE_STEP,
                NEEDS({ NEED_PROGRAM, "cp", CAUSE_STORAGE_TOOL }) },
        [ACTION_BIND]            = { "bind",            &storage,   DISK_SEC, ASKS_PLACE, COMPARE_STEP,
                NEEDS(LIBMOUNT) },
        [ACTION_IMPORT_IMAGE]    = { "import-image",    &image,           90, ASKS_ARCHIVE,
                NEEDS({ NEED_PROGRAM, "ctr", CAUSE_COMMAND }), TAKES(2000) },
        [ACTION_PIN_IMAGE]       = { "pin-image",       &image,           90, ASKS_NEEDS, .lenient = true,
                NEEDS({ NEED_PROGRAM, "ctr", CAUSE_COMMAND }) },
        [ACTION_MASK_UNIT]       = { "mask-unit",       &manager,         90, ASKS_KERNEL },
        [ACTION_UNMASK_UNIT]     = { "unmask-unit",     &manager,         30, ASKS_KERNEL },
        [ACTION_AWAIT_UNIT]      = { "await-unit",      &manager,        300, ASKS_KERNEL },
        [ACTION_CHECK_UNIT]      = { "check-unit",      &manager,         20, ASKS_UNIT },
        [ACTION_SET_SYSCTL]      = { "set-sysctl",      &plain,           10, ASKS_KERNEL, COMPARE_SYSCTL,
                .lenient = true },
        [ACTION_SET_TUNING]      = { "set-tuning",      &plain,           30, ASKS_KERNEL },
        [ACTION_RESERVE_PAGES]   = { "reserve-pages",   &hugepages,      180, ASKS_NUMA, COMPARE_PAGES,
                .reports = REPORTS_PAGES, NEEDS({ NEED_FEATURE, "CONFIG_HUGETLBFS", CAUSE_HUGEPAGES }),
                TAKES(1000) },
        [ACTION_LOAD_MODULE]     = { "load-module",     &plain,          120, ASKS_MODULE, COMPARE_MODULE,
                .lenient = true, NEEDS({ NEED_PROGRAM, "modprobe", CAUSE_MODULE }),
                USUAL({ "nvidia", 12000 }) },
        [ACTION_CHECK_MACHINE]   = { "check-machine",   &census,          10, ASKS_KERNEL,
                TELLS({ "gpus", "counted" }, { "efa", "efa" }, { "expectDevices", "expectDevices" }) },
        [ACTION_CHECK_EFA]       = { "check-efa",       &devices,         30, ASKS_KERNEL },
        [ACTION_CHECK_DRIVER]    = { "check-driver",    &devices,         60, ASKS_KERNEL,
                TELLS({ "version", "driver" }) },
        [ACTION_CHECK_VERSIONS]  = { "check-versions",  &words,           30, ASKS_PROGRAMS },
        [ACTION_AWAIT_DEVICES]   = { "await-devices",   &devices,         60, ASKS_KERNEL },
        [ACTION_AWAIT_FABRIC]    = { "await-fabric",    &devices,        300, ASKS_NEEDS,
                .reports = REPORTS_GPUS,
                TELLS({ "clusterUuid", "clusterUuid" }, { "cliqueId", "cliqueId" },
                      { "seconds", "fabricSeconds" }), NEEDS(NVML), TAKES(30000) },
        [ACTION_AWAIT_LICENSE]   = { "await-license",   &devices,         30, ASKS_NEEDS,
                NEEDS(NVML, { NEED_PROGRAM, "nvidia-gridd", CAUSE_LICENSE }) },
        [ACTION_CHECK_HEALTH]    = { "check-health",    &devices,         60, ASKS_NEEDS,
                .reports = REPORTS_HEALTH | REPORTS_GPUS, NEEDS(NVML), TAKES(1000) },
        [ACTION_PROVE_GPUS]      = { "prove-gpus",      &devices,  60 + PROVE_MORE_SEC, ASKS_NEEDS,
                .reports = REPORTS_GPUS, TELLS({ "prove", "prove" }),
                NEEDS(NVML, { NEED_LIBRARY, "libcuda.so.1", CAUSE_HEALTH },
                      { NEED_LIBRARY, "libnvidia-ptxjitcompiler.so.1", CAUSE_HEALTH },
                      { NEED_UNIT, "nodestrap-prove@.service", CAUSE_HEALTH },
                      { NEED_PROGRAM, "systemctl", CAUSE_HEALTH }), TAKES(8000) },
        [ACTION_SET_MIG_MODE]    = { "set-mig-mode",    &devices,        300, ASKS_NEEDS,
                NEEDS(NVML, { NEED_PROGRAM, "nvidia-smi", CAUSE_MIG },
                      { NEED_PROGRAM, "systemctl", CAUSE_MIG }), TAKES(10000) },
        [ACTION_PARTITION_GPUS]  = { "partition-gpus",  &devices,        300, ASKS_NEEDS,
                .reports = REPORTS_GPUS, NEEDS(NVML), TAKES(10000) },
        [ACTION_LIST_GPUS]       = { "list-gpus",       &devices,        120, ASKS_NEEDS,
                TELLS({ "gpus", "listed" }, { "migDevices", "migDevices" }),
                NEEDS({ NEED_PROGRAM, "nvidia-smi", CAUSE_NVIDIA_SMI }), TAKES(1000) },
        [ACTION_SET_CLOCKS]      = { "set-clocks",      &devices,         60, ASKS_NEEDS,
                .reports = REPORTS_GPUS, NEEDS(NVML), TAKES(1000) },
        [ACTION_GENERATE_CDI]    = { "generate-cdi",    &plain,          120, ASKS_NEEDS,
                NEEDS({ NEED_PROGRAM, "nvidia-ctk", CAUSE_CDI }), TAKES(2000) },
        [ACTION_MAKE_NODES]      = { "make-nodes",      &plain,           30, ASKS_KERNEL },
        [ACTION_MAKE_CHANNEL]    = { "make-channel",    &plain,           30, ASKS_KERNEL },
        [ACTION_AWAIT_IMEX]      = { "await-imex",      &plain,          180, ASKS_NEEDS,
                NEEDS({ NEED_PROGRAM, "nvidia-imex-ctl", CAUSE_IMEX }), TAKES(5000) },
        [ACTION_CHECK_POOL]      = { "check-pool",      &plain,           15, ASKS_KERNEL },
        [ACTION_CHECK_NODE]      = { "check-node",      &plain,          120, ASKS_NEEDS,
                NEEDS({ NEED_LIBRARY, "libcurl.so.4", CAUSE_UNIT }) },
        [ACTION_MARK_NODE]       = { "mark-node",       &taints,    DISK_SEC, ASKS_KERNEL },
        [ACTION_REMOVE_FILE]     = { "remove-file",     &plain,           10, ASKS_KERNEL, COMPARE_REMOVAL,
                .lenient = true },
        [ACTION_LINK_FILE]       = { "link-file",       &plain,           10, ASKS_FOLDER, COMPARE_LINK },
        [ACTION_RELOAD_NETWORKD] = { "reload-networkd", &plain,           15, ASKS_KERNEL },
        [ACTION_TAKE_TURN]       = { "take-turn",       &plain,          300, ASKS_KERNEL },
        [ACTION_FORGET_STATE]    = { "forget-state",    &words,     DISK_SEC, ASKS_KERNEL, COMPARE_STATE,
                .lenient = true },
};

const ActionRow *action_row(ActionType type) {
        assert((size_t)type < _ACTION_MAX && rows[type].family);
        return &rows[type];
}

const char *action_type_to_string(ActionType type) {
        return (size_t)type < _ACTION_MAX ? rows[type].name : NULL;
}

int action_type_from_string(const char *text) {
        for (int type = 0; type < _ACTION_MAX; type++)
                if (streq(rows[type].name, text))
                        return type;
        return -EINVAL;
}

bool action_is(const Action *a, ActionKind kind) {
        return action_row(a->type)->family->kind == kind;
}

uint64_t action_more_usec(const Action *a) {
        const Family *family = action_row(a->type)->family;
        return family->more_usec ? family->more_usec(a) : 0;
}

static json_t *live_json(const Action *a) {
        json_t *j = json_object();
        json_set_text(j, "state", live_to_string(a->live));
        json_set_text(j, "why", a->live_why);
        json_set_text(j, "diff", a->diff);
        return j;
}

json_t *action_to_json(const Action *a) {
        const Family *family = action_row(a->type)->family;
        json_t *j = json_pack("{ss ss ss ss ss ss so sI}", "id", a->id, "phase", phase_to_string(a->phase),
                              "type", action_type_to_string(a->type), "group", a->group, "target", a->target,
                              "why", a->why, "after", json_list(a->after), "timeoutMs",
                              (json_int_t)(a->deadline_usec / USEC_PER_MSEC));
        if (family->put)
                family->put(j, a);
        else {
                put_common(j, a);
                put_parts(j, a, family->parts, family->n);
        }
        if (a->live != LIVE_NONE)
                json_object_set_new(j, "live", live_json(a));
        return j;
}

/* Every action has every key, so that different plans have different texts. */
json_t *action_canonical(const Action *a) {
        const Family *family = action_row(a->type)->family;
        json_t *own = json_pack("{so sb sb sb s[iiib] si si s[] s[]}", "afterAny", json_list(a->after_any),
                                "optional", a->optional, "retry", a->retry, "lenient", a->lenient, "pages",
                                0, 0, 0, 0, "class", (int)a->class, "count", 0, "words", "layouts");
        json_t *all = json_pack("{ss ss so sI ss si ss ss so}", "id", a->id, "phase",
                                phase_to_string(a->phase), "after", json_list(a->after), "deadline",
                                (json_int_t)a->deadline_usec, "content", "", "mode", 0, "inputs", "", "with",
                                a->with ?: "", "device", own);
        if (family->named)
                put_parts(own, a, family->parts, family->n);
        else if (family->name)
                family->name(all, own, a);
        return all;
}

void action_done(Action *a) {
        const Family *family = action_row(a->type)->family;
        FREE_ALL(a->id, a->group, a->target, a->with, a->why);
        strv_free(a->after);
        strv_free(a->after_any);
        FREE_ALL(a->timed_from, a->live_why, a->diff);
        for (const Part *m = family->parts; m < family->parts + family->n; m++) {
                void *at = (char *)a + m->at;
                if (m->list)
                        strv_free(*(char ***)at);
                else
                        free(*(char **)at);
        }
        if (family->done)
                family->done(a);
}
