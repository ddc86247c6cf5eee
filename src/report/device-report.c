/* SPDX-License-Identifier: Apache-2.0
 * What the actions of a boot found out about GPUs and huge pages (Result.found), put together for
 * status.json: "accelerator", with all that is known of each GPU in one place, and "hugepages"; and from
 * there for people. */
#include "report/device-report.h"

#include "apply/apply.h"
#include "base/json.h"

/* NULL: a type of another version of this program */
static const ActionRow *row_of(const json_t *action) {
        const char *id = json_get_text(action, "id");
        _cleanup_(freep) char *name = xstrndup(id, strcspn(id, ":"));
        int type = action_type_from_string(name);
        return type < 0 ? NULL : action_row((ActionType)type);
}

static const char *state_of(const json_t *gpu) {
        return json_string_value(json_object_get(gpu, "state"));
}

static json_t *gpu_of(json_t *gpus, json_int_t index) {
        json_t *gpu;
        size_t i;
        json_array_foreach(gpus, i, gpu) {
                if (json_integer_value(json_object_get(gpu, "index")) == index)
                        return gpu;
        }
        gpu = json_pack("{s:I}", "index", index);
        json_array_append_new(gpus, gpu);
        return gpu;
}

/* Each action names those GPUs that it was about, and what it knows of them. */
static void gpus_merge(json_t *accelerator, const json_t *found) {
        const json_t *list = json_object_get(found, "gpus"), *one;
        json_t *gpus = json_object_get(accelerator, "gpus");
        size_t i;
        if (!json_is_array(list))
                return;
        if (!gpus) {
                gpus = json_array();
                json_object_set_new(accelerator, "gpus", gpus);
        }
        json_array_foreach(list, i, one) {
                json_object_update(gpu_of(gpus, json_integer_value(json_object_get(one, "index"))),
                                   (json_t *)one);
        }
}

static void states_count(json_t *accelerator) {
        json_t *gpu, *states = json_object();
        size_t i;
        json_array_foreach(json_object_get(accelerator, "gpus"), i, gpu) {
                const char *state = state_of(gpu);
                if (state)
                        json_object_set_new(
                                states, state,
                                json_integer(json_integer_value(json_object_get(states, state)) + 1));
        }
        if (json_object_size(states) > 0)
                json_object_set(accelerator, "states", states);
        json_decref(states);
}

/* All but the words of each GPU, which stand at it. A later run has looked again, or should have: what an
 * earlier one has found holds no more, least of all that a GPU is well which does not answer now. */
static void health_take(json_t *accelerator, const json_t *found) {
        json_t *health = json_copy((json_t *)found) ?: json_pack("{sb s[]}", "complete", 0, "findings"), *gpu;
        size_t i;
        json_object_del(health, "gpus");
        json_object_set_new(accelerator, "health", health);
        json_array_foreach(json_object_get(accelerator, "gpus"), i, gpu)
                json_object_del(gpu, "health");
}

/* In the place of what an earlier phase found. */
static void pages_put(json_t *pages, json_t *found) {
        json_t *one;
        size_t i;
        json_array_foreach(pages, i, one) {
                if (json_equal(json_object_get(one, "size"), json_object_get(found, "size")) &&
                    json_equal(json_object_get(one, "node"), json_object_get(found, "node"))) {
                        json_array_set(pages, i, found);
                        return;
                }
        }
        json_array_append(pages, found);
}

static void action_take(const json_t *action, json_t *accelerator, json_t *pages) {
        json_t *found = json_object_get(action, "found");
        const ActionRow *row = row_of(action);
        if (!row)
                return;
        if (row->reports & REPORTS_HEALTH &&
            outcome_from_string(json_get_text(action, "outcome")) != OUTCOME_PENDING)
                health_take(accelerator, found);
        if (!json_is_object(found))
                return;
        if (row->reports & REPORTS_PAGES)
                pages_put(pages, found);
        for (const ActionTold *t = row->tells; t && t->from; t++)
                json_object_set(accelerator, t->to, json_object_get(found, t->from));
        if (row->reports & REPORTS_GPUS)
                gpus_merge(accelerator, found);
}

void found_put(json_t *status, json_t *runs) {
        json_t *accelerator = json_object(), *pages = json_array(), *run, *action;
        const char *phases;
        size_t i;
        json_object_foreach(runs, phases, run) {
                json_array_foreach(json_object_get(run, "actions"), i, action) {
                        action_take(action, accelerator, pages);
                }
        }
        states_count(accelerator);
        if (json_object_size(accelerator) > 0)
                json_object_set(status, "accelerator", accelerator);
        if (json_array_size(pages) > 0)
                json_object_set(status, "hugepages", pages);
        json_decref(accelerator);
        json_decref(pages);
}

/* ---- words ---- */

static char *size_word(const json_t *pages) {
        return bytes_text((uint64_t)json_integer_value(json_object_get(pages, "size")));
}

char *found_node(const json_t *pages) {
        const json_t *node = json_object_get(pages, "node");
        return json_is_integer(node) ? xasprintf("%lld", (long long)json_integer_value(node)) : xstrdup("");
}

long long found_number(const json_t *object, const char *key) {
        return (long long)json_integer_value(json_object_get(object, key));
}

/* ---- for people: a line each ---- */

static void accelerator_text(Text *t, json_t *a) {
        const char *driver = json_string_value(json_object_get(a, "driver")),
                   *uuid = json_string_value(json_object_get(a, "clusterUuid")), *state;
        json_t *count;
        size_t before = t->size;
        text_add(t, "GPUs: ");
        if (json_object_get(a, "listed"))
                text_add(t, "%lld listed, ", found_number(a, "listed"));
        /* none: NVIDIA's library answered nothing, which is no count */
        else if (json_array_size(json_object_get(a, "gpus")) > 0)
                text_add(t, "%zu, ", json_array_size(json_object_get(a, "gpus")));
        if (found_number(a, "migDevices") > 0)
                text_add(t, "%lld MIG devices, ", found_number(a, "migDevices"));
        if (driver)
                text_add(t, "driver %s, ", driver);
        json_object_foreach(json_object_get(a, "states"), state, count) {
                text_add(t, "%lld %s in the fabric, ", (long long)json_integer_value(count), state);
        }
        if (json_is_integer(json_object_get(a, "cliqueId")))
                text_add(t, "clique %s%s%lld, ", uuid ?: "", uuid ? "." : "", found_number(a, "cliqueId"));
        bool known = t->data[t->size - 2] == ',';
        t->data[t->size - 2] = '\n';
        t->size = known ? t->size - 1 : before;
        t->data[t->size] = 0;
}

static void findings_text(Text *t, const json_t *findings) {
        const json_t *f;
        size_t i;
        text_add(t, "Health: %zu finding%s\n", json_array_size(findings),
                 json_array_size(findings) == 1 ? "" : "s");
        json_array_foreach(findings, i, f) {
                text_add(t, "  %s: %s\n", json_get_text(f, "word"), json_get_text(f, "text"));
        }
}

static void health_text(Text *t, const json_t *health) {
        const char *gpudirect = json_string_value(json_object_get(health, "gpudirect"));
        const json_t *look;
        size_t i;
        if (json_array_size(json_object_get(health, "findings")) > 0)
                findings_text(t, json_object_get(health, "findings"));
        else if (!json_is_true(json_object_get(health, "complete")))
                text_add(t, "Health: not known, the GPUs did not answer\n");
        else {
                text_add(t, "Health: well, looked at");
                json_array_foreach(json_object_get(health, "looks"), i, look) {
                        text_add(t, "%s %s", i > 0 ? "," : "", json_string_value(look) ?: "");
                }
                text_add(t, "\n");
        }
        if (gpudirect)
                text_add(t, "GPUDirect: %s\n", gpudirect);
}

char *found_text(const json_t *status) {
        json_t *accelerator = json_object_get(status, "accelerator"), *pages;
        Text t = {};
        size_t i;
        if (accelerator)
                accelerator_text(&t, accelerator);
        if (json_object_get(accelerator, "health"))
                health_text(&t, json_object_get(accelerator, "health"));
        json_array_foreach(json_object_get(status, "hugepages"), i, pages) {
                _cleanup_(freep) char *size = size_word(pages), *node = found_node(pages);
                text_add(&t, "%s%lld of %lld of %s%s%s", i == 0 ? "huge pages: " : ", ",
                         found_number(pages, "got"), found_number(pages, "requested"), size,
                         *node ? " on node " : "", node);
        }
        text_add(&t, "%s", i > 0 ? "\n" : "");
        return text_take(&t);
}
