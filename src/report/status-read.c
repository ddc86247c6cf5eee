/* SPDX-License-Identifier: Apache-2.0
 * status.json, from this version, an older one, or damaged → Status. */
#include "report/status.h"

#include "base/json.h"
#include "report/join.h"

#include <errno.h>

#define STATUS_MAX (16 << 20)

static const char *text(const json_t *object, const char *key) {
        return json_get_text(object, key);
}

static int64_t number(const json_t *object, const char *key) {
        return MIN(MAX(json_integer_value(json_object_get(object, key)), 0), 1LL << 52);
}

static int64_t number_or_minus(const json_t *object, const char *key) {
        return json_is_integer(json_object_get(object, key)) ? number(object, key) : -1;
}

char *number_or_none(int64_t n) {
        return n < 0 ? xstrdup("") : xasprintf("%lld", (long long)n);
}

/* key: of a member of an object; else "". */
typedef void Reader(void **memory, const char *key, const json_t *value, void *ret);

/* Each block begins with the address of the one before. */
static void *list_new(void **memory, size_t n, size_t size) {
        void **block = xcalloc(1, sizeof *block + n * size);
        *block = *memory;
        *memory = block;
        return block + 1;
}

static void *list_of(void **memory, json_t *list, size_t size, Reader *read) {
        if (!json_is_array(list))
                return NULL;
        char *all = list_new(memory, json_array_size(list) + 1, size);
        json_t *value;
        size_t i;
        json_array_foreach(list, i, value)
                read(memory, "", value, all + i * size);
        return all;
}

static void *map_of(void **memory, json_t *map, size_t size, Reader *read) {
        if (!json_is_object(map))
                return NULL;
        char *all = list_new(memory, json_object_size(map) + 1, size), *at = all;
        const char *key;
        json_t *value;
        json_object_foreach(map, key, value) {
                read(memory, key, value, at);
                at += size;
        }
        return all;
}

static void *one_of(void **memory, const json_t *value, size_t size, Reader *read) {
        void *one = value ? list_new(memory, 1, size) : NULL;
        if (one)
                read(memory, "", value, one);
        return one;
}
#define LIST(object, key, type, read) list_of(memory, json_object_get(object, key), sizeof(type), read)
#define MAP(object, key, type, read)  map_of(memory, json_object_get(object, key), sizeof(type), read)
#define ONE(object, key, type, read)  one_of(memory, json_object_get(object, key), sizeof(type), read)
#define WORDS(object, key)            LIST(object, key, StatusWord, read_word)

const char *const status_rates[STATUS_RATES] = { "memory", "to-gpu", "to-host", "link" };

#define READER(name) \
        static void name(_unused_ void **memory, _unused_ const char *key, const json_t *o, void *ret)

READER(read_word) {
        *(StatusWord *)ret = (StatusWord){ json_string_value(o) ?: "" };
}

READER(read_step) {
        *(StatusStep *)ret = (StatusStep){
                .id = text(o, "id"), .run = text(o, "run"), .phase = text(o, "phase"),
                .begin_usec = number(o, "beginUsec"), .end_usec = number(o, "endUsec"),
                .usec = number(o, "usec") };
}

READER(read_action) {
        *(StatusAction *)ret = (StatusAction){
                .id = text(o, "id"), .phase = text(o, "phase"), .outcome = text(o, "outcome"),
                .text = text(o, "text"), .begin_usec = number(o, "beginUsec"),
                .end_usec = number(o, "endUsec"), .after = WORDS(o, "after"),
                .found = json_object_get(o, "found") };
}

READER(read_run) {
        const json_t *requests = json_object_get(o, "requests");
        *(StatusRun *)ret = (StatusRun){
                .phases = key, .verdict = text(o, "verdict"), .phase = text(o, "phase"),
                .ended_at = text(o, "endedAt"), .begin_usec = number(o, "beginUsec"),
                .end_usec = number(o, "endUsec"), .tries = number(o, "tries"),
                .imds_requests = number_or_minus(requests, "imds"),
                .ec2_requests = number_or_minus(requests, "ec2"), .errors = WORDS(o, "errors"),
                .warnings = WORDS(o, "warnings"), .actions = LIST(o, "actions", StatusAction, read_action) };
}

READER(read_phase) {
        *(StatusPhase *)ret = (StatusPhase){
                .phase = text(o, "phase"), .verdict = text(o, "verdict"),
                .begin_usec = number(o, "beginUsec"), .end_usec = number(o, "endUsec"),
                .steps = LIST(o, "steps", StatusStep, read_step) };
}

READER(read_join) {
        *(StatusJoin *)ret = (StatusJoin){
                .verdict = text(o, "verdict"), .code = text(o, "code"), .step = text(o, "step"),
                .text = text(o, "text"), .node = text(o, "node"), .cluster = text(o, "cluster"),
                .devices = text(json_object_get(o, "devices"), "code"),
                .lack = text(json_object_get(o, "devices"), "text"),
                .exit = number(o, "exit"), .begin_usec = number(o, "beginUsec"),
                .end_usec = number(o, "endUsec"), .registered_usec = number(o, "registeredUsec"),
                .ready_usec = number(o, "readyUsec") };
}

READER(read_count) {
        *(StatusCount *)ret = (StatusCount){ key, json_integer_value(o) };
}

READER(read_gpu) {
        const json_t *p = json_object_get(o, "prove");
        *(StatusGpu *)ret = (StatusGpu){
                text(o, "address"), number(o, "index"), WORDS(o, "health"), number(p, "bytesTested"),
                { number(p, "memoryBytesPerSecond"), number(p, "toGpuBytesPerSecond"),
                  number(p, "toHostBytesPerSecond"), number(p, "linkBytesPerSecond") }
        };
}

READER(read_finding) {
        *(StatusFinding *)ret = (StatusFinding){ text(o, "word"), text(o, "text"), text(o, "address"),
                                                 text(o, "reason"), number_or_minus(o, "gpu") };
}

READER(read_health) {
        *(StatusHealth *)ret = (StatusHealth){ text(o, "gpudirect"),
                                               json_is_true(json_object_get(o, "complete")),
                                               LIST(o, "findings", StatusFinding, read_finding),
                                               WORDS(o, "looks") };
}

READER(read_pages) {
        *(StatusPages *)ret = (StatusPages){ number(o, "size"), number(o, "requested"), number(o, "got"),
                                             number_or_minus(o, "node") };
}

void status_take(Status *s, json_t *json) {
        const json_t *node = json_object_get(json, "node"), *a = json_object_get(json, "accelerator");
        void *chain = NULL, **memory = &chain;
        Status all = {
                .json = json, .version = text(json, "version"), .boot_id = text(json, "bootId"),
                .booted_at = text(json, "bootedAt"), .plan_id = text(json, "planId"),
                .next = text(json, "next"), .verdict = text(json, "verdict"), .code = text(json, "code"),
                .step = text(json, "step"), .text = text(json, "text"), .phase = text(json, "phase"),
                .exit = number(json, "exit"), .now_usec = number(json, "nowUsec"),
                .node = { text(node, "host"), text(node, "instanceId"), text(node, "instanceType"),
                          text(node, "region"), text(node, "cluster"), text(node, "name") },
                .runs = MAP(json, "runs", StatusRun, read_run),
                .path = LIST(json, "criticalPath", StatusStep, read_step),
                .longest = LIST(json, "longest", StatusStep, read_step),
                .phases = LIST(json, "phases", StatusPhase, read_phase),
                .joined = ONE(json, "joined", StatusJoin, read_join),
                .accelerator = { text(a, "driver"), text(a, "clusterUuid"), number_or_minus(a, "listed"),
                                 number_or_minus(a, "cliqueId"), number(a, "migDevices"),
                                 json_is_true(json_object_get(a, "expectDevices")),
                                 MAP(a, "states", StatusCount, read_count),
                                 LIST(a, "gpus", StatusGpu, read_gpu),
                                 ONE(a, "health", StatusHealth, read_health),
                                 ONE(a, "prove", StatusHealth, read_health) },
                .pages = LIST(json, "hugepages", StatusPages, read_pages),
        };
        all.memory = chain;
        for (const StatusStep *step = all.path; step && step->id; step++) {
                StatusRun *run = status_run(&all, step->run);
                for (StatusAction *action = run ? run->actions : NULL; action && action->id; action++)
                        action->critical = action->critical || streq(action->id, step->id);
        }
        status_done(s);
        *s = all;
}

void status_done(Status *s) {
        for (void **block = s->memory, **before; block; block = before) {
                before = *block;
                free(block);
        }
        json_decref(s->json);
        *s = (Status){};
}

/* Of programs that run beside the phases. */
static void reports_add(const Root *root, json_t *status) {
        static const struct { char key[10], path[32]; } reports[] = {
                { "readAhead", READ_AHEAD_FILE }, { "images", PRE_PULL_RESULT },
        };
        for (size_t i = 0; i < ARRAY_SIZE(reports); i++) {
                _free_ char *text = NULL;
                size_t size = 0;
                if (root_read(root, reports[i].path, STATUS_MAX, &text, &size) >= 0)
                        json_object_set_new(status, reports[i].key, json_loadb(text, size, 0, NULL));
        }
}

int status_read(const Root *root, Status *ret) {
        _free_ char *text = NULL;
        size_t size = 0;
        int r = root_read(root, REPORT_STATUS, STATUS_MAX, &text, &size);
        json_t *json = r < 0 ? NULL : json_loadb(text, size, 0, NULL);
        json_t *joined = json_is_object(json) ? join_read(root) : NULL;
        if (joined)
                json_object_set_new(json, "joined", joined);
        if (json_is_object(json))
                reports_add(root, json);
        bool damaged = r >= 0 && !json_is_object(json);
        if (damaged)
                json_decref(TAKE_PTR(json));
        status_take(ret, json);
        return damaged ? -EBADMSG : r;
}

StatusRun *status_run(const Status *s, const char *phases) {
        for (StatusRun *run = s->runs; run && run->phases; run++)
                if (streq(run->phases, phases))
                        return run;
        return NULL;
}

StatusRun *status_last(const Status *s, const char *phase) {
        StatusRun *last = NULL;
        for (StatusRun *run = s->runs; run && run->phases; run++)
                if (strstr(run->phases, phase))
                        last = run;
        return last;
}
