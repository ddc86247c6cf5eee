/* SPDX-License-Identifier: Apache-2.0 */
/* Plan → text for people, and → JSON for machines (contract, section 6). Neither holds what is in a secret
 * file. */
#include "plan/plan.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/str.h"
#include <stdio.h>

#define WIDTH  110      /* of wrapped paragraphs; an action is one line, however long */
#define COLUMN 76       /* where reasons stand, unless a target is longer; EKS's paths mostly are not */

/* ---- the machine ---- */

static void add_count(Text *t, size_t n, const char *what) {
        if (n > 0)
                text_add(t, ", %zu %s%s", n, what, n == 1 ? "" : "s");
}

static void describe_machine(Text *t, const Host *host) {
        unsigned gpus = host->gpus.count;
        text_add(t, "machine    %s%s: %u CPUs", host->instance.type ?: "unknown type",
                 host->modelled ? ", as modelled" : "", host->cpus);
        if (host->memory_bytes > 0)     /* the table of types does not have it for all */
                text_add(t, ", %.4g GiB", (double)host->memory_bytes / (double)(1ULL << 30));
        if (host->n_nodes > 1)
                text_add(t, " on %zu NUMA nodes", host->n_nodes);
        add_count(t, gpus, "GPU");
        if (gpus > 0)
                text_add(t, " (%s%sclass %s)",
                         host->type && host->type->gpu_model ? host->type->gpu_model : "",
                         host->type && host->type->gpu_model ? ", " : "",
                         gpu_class_to_string(host->gpus.class));
        add_count(t, host_efa(host), "EFA device");
        add_count(t, host_instance_stores(host), "instance store");
        add_count(t, host->n_nics, "network interface");
        text_add(t, "\n");
}

char *plan_describe_host(const Host *host) {
        const Instance *i = &host->instance;
        Text t = {};
        describe_machine(&t, host);
        text_add(&t, "instance   %s in %s", i->id ?: "?", i->zone ?: "?");
        const char *more[] = { i->ipv4, i->ipv6, i->private_dns_name };
        for (size_t k = 0; k < ARRAY_SIZE(more); k++)
                if (more[k])
                        text_add(&t, ", %s", more[k]);
        text_add(&t, "\nsoftware   kubelet %s, containerd %s", host->kubelet_version,
                 host->containerd_version);
        if (host->driver_version)
                text_add(&t, ", NVIDIA driver %s", host->driver_version);
        if (host->kernel)
                text_add(&t, ", Linux %s", host->kernel);
        text_add(&t, "\n");
        if (host->assumed) {
                _cleanup_(freep) char *list = strv_join(host->assumed, ", ");
                text_add(&t, "assumed    %s\n", list);
        }
        return text_take(&t);
}

/* ---- text ---- */

/* Words on lines of at most WIDTH, the first behind `lead`, the others indented as far. */
static void add_paragraph(Text *t, const char *lead, const char *text) {
        size_t indent = strlen(lead), column = indent;
        text_add(t, "%s", lead);
        for (const char *word = text; *word;) {
                size_t n = strcspn(word, " ");
                if (column > indent && column + 1 + n > WIDTH) {
                        text_add(t, "\n%*s", (int)indent, "");
                        column = indent;
                }
                text_add(t, "%s%.*s", column > indent ? " " : "", (int)n, word);
                column += n + (column > indent);
                word += n + strspn(word + n, " ");
        }
        text_add(t, "\n");
}

static void add_action(Text *t, const Action *a) {
        const char *type = action_type_to_string(a->type);
        int used = 4 + MAX(14, (int)strlen(type)) + 1 +
                   (int)(strlen(a->target) + (a->with ? 1 + strlen(a->with) : 0)),
            gap = MAX(COLUMN - used, 2);
        text_add(t, "    %-14s %s%s%s", type, a->target, a->with ? " " : "", a->with ?: "");
        text_add(t, "%*s%s%s\n", gap, "", a->file.secret ? "[0600, not shown] " : "", a->why);
}

static void add_actions(Text *t, const Plan *plan, Phase phase) {
        const char *group = "";
        bool headed = false;
        for (size_t i = 0; i < plan->n; i++) {
                const Action *a = &plan->actions[i];
                if (a->phase != phase)
                        continue;
                if (!headed)
                        text_add(t, "\n%s phase\n", phase == PHASE_CONFIG ? "Config" : "Run");
                if (!streq(group, a->group))
                        text_add(t, "  %s\n", a->group);
                headed = true;
                group = a->group;
                add_action(t, a);
        }
}

static void add_warnings(Text *t, const Diag *warnings) {
        if (warnings->n > 0)
                text_add(t, "\nWarnings\n");
        for (size_t i = 0; i < warnings->n; i++) {
                const Diagnostic *d = &warnings->items[i];
                _cleanup_(freep) char *line =
                        xasprintf("%s%s%s%s%s [%s]", d->where ?: "", d->where ? ": " : "", d->path ?: "",
                                  d->path ? ": " : "", d->text, d->code ?: "warning");
                add_paragraph(t, "  * ", line);
        }
}

char *plan_to_text(const Plan *plan) {
        Text t = {};
        text_add(&t, "%s", plan->machine ?: "");
        for (int phase = 0; phase < _PHASE_MAX; phase++)
                add_actions(&t, plan, (Phase)phase);
        add_warnings(&t, &plan->warnings);
        text_add(&t, "\n%zu actions. Plan %s\n", plan->n, plan->id);
        return text_take(&t);
}

/* ---- JSON ---- */

static void put_mode(json_t *into, mode_t mode) {
        char text[8];
        snprintf(text, sizeof(text), "%04o", (unsigned)mode & 07777);
        json_object_set_new(into, "mode", json_string(text));
}

static json_t *content_json(const Action *a) {
        /* NULL too if it is not UTF-8 */
        json_t *text = a->file.secret ? NULL : json_stringn(a->file.content, a->file.size);
        return text ?: json_null();
}

static void put_digest(json_t *into, const Action *a) {
        char digest[65];
        sha256_hex(a->file.content, a->file.size, digest);
        json_object_set_new(into, "sha256", json_string(digest));
}

static bool is_storage(const Action *a) {
        return a->type >= ACTION_STOP_UNIT && a->type <= ACTION_BIND;
}

static void put_storage(json_t *into, const Action *a) {
        json_set_text(into, "with", a->with);
        json_set_text(into, "state", step_state_to_string(a->storage.state));
        json_set_list(into, "disks", a->storage.disks);
        json_set_list(into, "serials", a->storage.serials);
        json_set_list(into, "blank", a->storage.blank);
        json_set_text(into, "array", a->storage.running);
        json_set_text(into, "arrayUuid", a->storage.array_uuid);
        json_set_text(into, "level", a->storage.level);
        json_set_text(into, "filesystem", a->storage.filesystem);
        json_set_text(into, "uuid", a->storage.uuid);
        json_set_text(into, "source", a->storage.source);
        if (a->type != ACTION_MOVE_FILES)
                return;
        json_t *moves = json_array();
        for (size_t i = 0; i < a->storage.n_moves; i++)
                json_array_append_new(moves, json_pack("{ss ss}", "from", a->storage.moves[i].from, "name",
                                                       a->storage.moves[i].name));
        json_object_set_new(into, "moves", moves);
}

static void put_flag(json_t *into, const char *key, bool flag) {
        if (flag)
                json_object_set_new(into, key, json_true());
}

static json_t *layouts_json(const Action *a) {
        json_t *all = json_array();
        for (size_t i = 0; i < a->device.n_layouts; i++)
                json_array_append_new(all, json_pack("{si so}", "gpu", (int)a->device.layouts[i].gpu,
                                                     "profiles", json_list(a->device.layouts[i].profiles)));
        return all;
}

static json_t *shortfalls_json(const Action *a) {
        json_t *all = json_array();
        for (size_t i = 0; i < a->device.n_shortfalls; i++)
                json_array_append_new(all,
                                      json_pack("{ss ss}", "code", cause_word(a->device.shortfalls[i].cause),
                                                "text", a->device.shortfalls[i].text));
        return all;
}

static json_t *pages_json(const Action *a) {
        json_t *pages =
                json_pack("{sI sI}", "size", (json_int_t)a->pages.size, "count", (json_int_t)a->pages.count);
        if (a->pages.node >= 0)
                json_object_set_new(pages, "numaNode", json_integer(a->pages.node));
        put_flag(pages, "ifNone", a->pages.if_none);
        return pages;
}

/* What is not so is not there: a reader of a plan for one machine looks at what is special about it. */
static void put_device(json_t *into, const Action *a) {
        json_set_text(into, "with", a->with);
        json_set_list(into, "afterAny", a->after_any);
        put_flag(into, "optional", a->optional);
        put_flag(into, "retry", a->retry);
        put_flag(into, "lenient", a->lenient);
        if (a->type == ACTION_RESERVE_PAGES)
                json_object_set_new(into, "pages", pages_json(a));
        if (a->device.class != GPU_CLASS_NONE)
                json_set_text(into, "class", gpu_class_to_string(a->device.class));
        if (a->device.count > 0)
                json_object_set_new(into, "count", json_integer(a->device.count));
        json_set_list(into, "words", a->device.words);
        json_set_list(into, "devices", a->device.seen);
        if (a->device.n_layouts > 0)
                json_object_set_new(into, "layouts", layouts_json(a));
        if (a->device.n_shortfalls > 0)
                json_object_set_new(into, "missing", shortfalls_json(a));
}

static json_t *action_json(const Action *a) {
        json_t *j = json_pack("{ss ss ss ss ss ss so sI}", "id", a->id, "phase", phase_to_string(a->phase),
                              "type", action_type_to_string(a->type), "group", a->group, "target", a->target,
                              "why", a->why, "after", json_list(a->after), "timeoutMs",
                              (json_int_t)(a->deadline_usec / USEC_PER_MSEC));
        if (a->type == ACTION_WRITE_FILE) {
                put_mode(j, a->file.mode);
                put_digest(j, a);
                json_object_set_new(j, "secret", json_boolean(a->file.secret));
        } else if (a->type == ACTION_WRITE_BLOCK)
                json_object_set_new(j, "content", content_json(a));
        else if (is_storage(a))
                put_storage(j, a);
        else if (*a->unit.inputs)
                json_object_set_new(j, "inputs", json_string(a->unit.inputs));
        if (!is_storage(a))
                put_device(j, a);
        return j;
}

static json_t *file_json(const Action *a) {
        json_t *j = json_pack("{ss so}", "path", a->target, "content", content_json(a));
        put_mode(j, a->file.mode);
        if (json_is_null(json_object_get(j, "content")))
                put_digest(j, a);
        return j;
}

static json_t *warning_json(const Diagnostic *d) {
        return json_pack("{ss* ss* ss* ss*}", "code", d->code, "where", d->where, "path", d->path, "text",
                         d->text);
}

json_t *plan_to_json(const Plan *plan) {
        json_t *warnings = json_array(), *actions = json_array(), *files = json_array();
        for (size_t i = 0; i < plan->warnings.n; i++)
                json_array_append_new(warnings, warning_json(&plan->warnings.items[i]));
        for (size_t i = 0; i < plan->n; i++) {
                json_array_append_new(actions, action_json(&plan->actions[i]));
                if (plan->actions[i].type == ACTION_WRITE_FILE)
                        json_array_append_new(files, file_json(&plan->actions[i]));
        }
        return json_pack("{ss sO so so so}", "planId", plan->id, "facts", plan->facts, "warnings", warnings,
                         "actions", actions, "files", files);
}
