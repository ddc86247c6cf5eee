/* SPDX-License-Identifier: Apache-2.0 */
/* Plan → text for people, Markdown for a pull request, JSON for programs, all without secret content. */
#include "plan/planner.h"
#include "base/str.h"

#define COLUMN 54       /* column of reasons; on a new line if the target is longer */

static void add_paragraph(Text *t, const char *lead, const char *text) {
        text_add_folded(t, lead, strlen(lead), text);
}

static void add_count(Text *t, size_t n, const char *what) {
        if (n > 0)
                text_add(t, ", %zu %s%s", n, what, n == 1 ? "" : "s");
}

/* Nodes without CPUs hold GPU memory. */
static void describe_nodes(Text *t, const Config *config, const Host *host) {
        size_t with_cpus = 0, later = kubelet_numa_nodes(config, host);
        for (size_t i = 0; i < host->n_nodes; i++)
                with_cpus += host->nodes[i].cpus > 0;
        if (host->n_nodes > 1 || later > host->n_nodes)
                text_add(t, " on %zu NUMA node%s", with_cpus, with_cpus == 1 ? "" : "s");
        if (host->n_nodes > with_cpus)
                text_add(t, " with CPUs and %zu without", host->n_nodes - with_cpus);
        if (later > host->n_nodes)
                text_add(t, " (%zu once the driver has added GPU memory)", later);
}

static void describe_machine(Text *t, const Config *config, const Host *host) {
        unsigned gpus = host->gpus.count;
        bool guessed = strv_contains(host->assumed, "cpus");
        text_add(t, "%s", host->instance.type ?: "unknown type");
        if (host->modelled && !guessed)
                text_add(t, ", from the table of instance types");
        text_add(t, ": ");
        text_add(t, host->cpus > 0 ? "%u CPUs%s" : "CPUs not known", host->cpus,
                 !guessed    ? ""
                 : host->type ? " (assumed)" : " (assumed: not in the table of instance types)");
        if (host->memory_bytes > 0)     /* not all instance types have it in the table */
                text_add(t, ", %.4g GiB", (double)host->memory_bytes / (double)(1ULL << 30));
        describe_nodes(t, config, host);
        add_count(t, gpus, "GPU");
        if (gpus > 0)
                text_add(t, " (%s%sclass %s)",
                         host->type ? host->type->gpu_model : "",
                         host->type && *host->type->gpu_model ? ", " : "",
                         gpu_class_to_string(host->gpus.class));
        add_count(t, host->neuron.count, "Neuron device");
        bool efa = host_efa(host) > 0, known = host_efa_is_known(host);
        if (efa && known && strv_contains(host->assumed, "efa"))
                text_add(t, ", up to %u EFA device%s", host_efa(host), host_efa(host) == 1 ? "" : "s");
        else
                add_count(t, host_efa(host), "EFA device");
        if (efa && !known)
                text_add(t, " (assumed)");
        if (host_instance_stores(host) > 0 && strv_contains(host->assumed, "disks"))
                text_add(t, ", instance stores (number not known)");
        else
                add_count(t, host_instance_stores(host), "instance store");
        if (!host->modelled)            /* a model has one for its address */
                add_count(t, host->n_nics, "network interface");
}

char *plan_describe_host(const Config *config, const Host *host) {
        _cleanup_(text_done) Text machine = {}, instance = {}, software = {};
        Text t = {};
        describe_machine(&machine, config, host);
        const char *more[] = { host->instance.ipv4, host->instance.ipv6, host->instance.private_dns_name };
        text_add(&instance, "%s in %s", host->instance.id ?: "?", host->instance.zone ?: "?");
        for (size_t k = 0; k < ARRAY_SIZE(more); k++)
                if (more[k])
                        text_add(&instance, ", %s", more[k]);
        text_add(&software, "kubelet %s, containerd %s", host->kubelet_version, host->containerd_version);
        if (host->driver_version && host->gpus.count > 0)
                text_add(&software, ", NVIDIA driver %s", host->driver_version);
        if (host->kernel)
                text_add(&software, ", Linux %s", host->kernel);
        add_paragraph(&t, "machine    ", machine.data);
        add_paragraph(&t, "instance   ", instance.data);
        add_paragraph(&t, "software   ", software.data);
        if (host->assumed) {
                _free_ char *list = strv_join(host->assumed, ", ");
                add_paragraph(&t, "assumed    ", list);
        }
        return text_take(&t);
}

static char *what_of(const Action *a) {
        const char *with = a->secret ? NULL : a->with;
        return xasprintf("%s%s%s", a->target, with ? " " : "", with ?: "");
}

/* In brackets before the reason: hidden, and state on the machine. */
static char *why_of(const Action *a) {
        Text why = {};
        if (a->secret && action_is(a, ACTION_OF_FILES))
                text_add(&why, "[%04o, secret] ", (unsigned)a->file.mode);
        else if (a->secret && a->with)
                text_add(&why, "[secret] ");
        if (a->live != LIVE_NONE)
                text_add(&why, "[%s%s%s] ", live_to_string(a->live), a->live_why ? ": " : "",
                         a->live_why ?: "");
        text_add(&why, "%s", a->why);
        return text_take(&why);
}

/* critical: on the critical path to kubelet. */
static void add_action(Text *t, const Action *a, bool critical) {
        _free_ char *type = xasprintf("  %c %-14s ", critical ? '>' : ' ', action_type_to_string(a->type)),
                    *what = what_of(a), *head = xasprintf("%s%s", type, what), *why = why_of(a);
        bool fits = strlen(head) + 2 <= COLUMN;
        if (strlen(head) > TEXT_WIDTH)
                text_add_folded(t, type, strlen(type), what);
        else if (!fits)
                text_add(t, "%s\n", head);
        _free_ char *lead = xasprintf("%-*s", COLUMN, fits ? head : "");
        text_add_folded(t, lead, COLUMN, why);
}

/* ---- Markdown, as GitHub reads it (https://github.github.com/gfm/) ---- */

#define SPECIAL "\\`*_[]<>|~&#$"

/* A line break would end a row or an item. */
static void add_escaped(Text *t, const char *text, const char *special) {
        for (; *text; text++)
                text_add(t, "%s%c", is_char_of(*text, special) ? "\\" : "",
                         (unsigned char)*text < ' ' ? ' ' : *text);
}

/* A | in a cell needs a backslash, even in code. */
static void add_row(Text *t, const Action *a, bool critical) {
        _free_ char *what = what_of(a), *why = why_of(a);
        const char *code = what[strcspn(what, "`\\")] ? "" : "`";
        text_add(t, "| %s | %s | %s | %s", critical ? ">" : "", a->group, action_type_to_string(a->type),
                 code);
        add_escaped(t, what, *code ? "|" : SPECIAL);
        text_add(t, "%s | ", code);
        add_escaped(t, why, SPECIAL);
        text_add(t, " |\n");
}

static void add_actions(Text *t, const Plan *plan, Phase phase, const bool *critical) {
        static const char *const titles[_PHASE_MAX] = { "Config", "Devices", "Run" };
        const char *group = "";
        bool headed = false;
        for (size_t i = 0; i < plan->n; i++) {
                const Action *a = &plan->actions[i];
                if (a->phase != phase)
                        continue;
                if (!headed)
                        text_add(t, "\n%s phase\n", titles[phase]);
                if (!streq(group, a->group))
                        text_add(t, "  %s\n", a->group);
                headed = true;
                group = a->group;
                add_action(t, a, critical[i]);
        }
}

static void add_findings(Text *t, const Diag *findings, bool markdown) {
        if (findings->n > 0)
                text_add(t, markdown ? "\n" : "\nWarnings\n");
        for (const Diagnostic *d = findings->items; d < findings->items + findings->n; d++) {
                const char *kind = d->warning ? "warning" : "error";
                _free_ char *line =
                        xasprintf("%s%s%s%s%s [%s]", d->where ?: "", d->where ? ": " : "", d->path ?: "",
                                  d->path ? ": " : "", d->text,
                                  d->code ?: d->warning ? kind : cause_word(d->cause));
                if (!markdown) {
                        add_paragraph(t, "  * ", line);
                        continue;
                }
                text_add(t, "- **%s:** ", kind);
                add_escaped(t, line, SPECIAL);
                text_add(t, "\n");
        }
}

static void add_marks(Text *t, const Plan *plan) {
        const json_t *node = plan->node;
        const Action *mark = plan_find(plan, "mark-node:" TAINT_FILE);
        const char *id = json_get_text(node, "providerID"), *key;
        json_t *value;
        size_t i;
        if (*id)
                text_add(t, "  %-20s %s\n", "providerID", id);
        json_object_foreach(json_object_get(node, "labels"), key, value)
                text_add(t, "  %-20s %s=%s\n", "label", key, json_string_value(value));
        if (mark && mark->node.clique)
                text_add(t, "  %-20s %s, known when the fabric is complete\n", "label", CLIQUE_KEY);
        json_array_foreach(json_object_get(node, "taints"), i, value)
                text_add(t, "  %-20s %s=%s:%s\n", "taint", json_get_text(value, "key"),
                         json_get_text(value, "value"), json_get_text(value, "effect"));
}

/* Names and values as in `kubectl describe node`. */
static void add_node(Text *t, const Plan *plan) {
        const json_t *node = plan->node;
        const char *columns[] = { "capacity", "allocatable", "approximate" }, *name;
        json_t *value;
        text_add(t, "\nNode %s, as kubelet will report it\n", json_get_text(node, "name"));
        add_marks(t, plan);
        text_add(t, "  %-20s %-16s %s\n", "", "capacity", "allocatable");
        json_object_foreach(json_object_get(node, "capacity"), name, value) {
                const char *cells[ARRAY_SIZE(columns)];
                if (startswith(name, "hugepages-") && streq(json_string_value(value), "0"))
                        continue;
                for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
                        cells[i] = json_get_text(json_object_get(node, columns[i]), name);
                _free_ char *row = xasprintf("  %-20s %-16s %-*s%s", name, cells[0], *cells[2] ? 16 : 0,
                                             cells[1], *cells[2] ? " " : "");
                text_add_folded(t, row, 57, cells[2]);
        }
        json_object_foreach(json_object_get(node, "unknown"), name, value) {
                _free_ char *lead = xasprintf("  %-20s not known: ", name);
                text_add_folded(t, lead, 23, json_string_value(value));
        }
}

static void add_diffs(Text *t, const Plan *plan) {
        bool headed = false;
        for (const Action *a = plan->actions; a < plan->actions + plan->n; a++) {
                if (!a->diff)
                        continue;
                text_add(t, "%s--- %s%s\n+++ %s\n%s", headed ? "" : "\nDifferences\n",
                         a->live == LIVE_CREATE ? "/dev/null" : a->target,
                         a->live == LIVE_CREATE ? "" : ", as it is", a->target, a->diff);
                headed = true;
        }
}

static void add_live(Text *t, const Plan *plan) {
        static const char *const words[_LIVE_MAX] = {
                [LIVE_KEEP] = "as planned", [LIVE_CREATE] = "to create", [LIVE_CHANGE] = "to change",
                [LIVE_REMOVE] = "to remove", [LIVE_UNKNOWN] = "unknown",
        };
        if (!plan->looked)
                return;
        text_add(t, "\n");
        if (plan_is_done(plan))
                text_add(t, "Nothing to do: ");
        for (int live = LIVE_NONE + 1; live < _LIVE_MAX; live++)
                text_add(t, "%s%zu %s", live > LIVE_NONE + 1 ? ", " : "", plan_count(plan, (Live)live),
                         words[live]);
        if (plan_count(plan, LIVE_NONE) > 0)
                text_add(t, "; %zu not checked before they run", plan_count(plan, LIVE_NONE));
        text_add(t, "\n");
}

/* Of each action: is it on the critical path? */
static bool *critical_of(const Plan *plan, uint64_t *ret_usec) {
        _free_ size_t *path = NULL;
        bool *critical = xcalloc(plan->n + 1, sizeof *critical);
        for (size_t n = plan_critical_path(plan, &path, ret_usec); n > 0; n--)
                critical[path[n - 1]] = true;
        return critical;
}

static void add_critical(Text *t, const char *mark, uint64_t usec) {
        if (usec > 0)
                text_add(t, "\n%s marks the longest chain of steps before kubelet starts; these usually "
                            "take about %llu s\n",
                         mark, (unsigned long long)((usec + USEC_PER_SEC - 1) / USEC_PER_SEC));
}

char *plan_to_text(const Plan *plan) {
        Text t = {};
        uint64_t usec;
        _free_ bool *critical = critical_of(plan, &usec);
        text_add(&t, "%s", plan->machine ?: "");
        for (int phase = 0; phase < _PHASE_MAX; phase++)
                add_actions(&t, plan, (Phase)phase, critical);
        add_critical(&t, ">", usec);
        if (plan->node)
                add_node(&t, plan);
        add_findings(&t, &plan->warnings, false);
        add_diffs(&t, plan);
        add_live(&t, plan);
        text_add(&t, "\n%zu steps. Plan %s\n", plan->n, plan->id);
        return text_take(&t);
}

char *plan_page(const char *title, const char *of, const Diag *findings, const char *table,
                const char *language, const char *block) {
        Text t = {};
        _cleanup_(text_done) Text fence = {};   /* more backticks than anywhere in the block */
        do
                text_add(&fence, "%s", fence.size > 0 ? "`" : "```");
        while (strstr(block, fence.data));
        text_add(&t, "### %s ", title);
        add_escaped(&t, of, SPECIAL);
        text_add(&t, "\n");
        add_findings(&t, findings, true);
        text_add(&t, "%s", table);
        if (*block)
                text_add(&t, "\n%s%s\n%s%s\n", fence.data, language, block, fence.data);
        return text_take(&t);
}

char *plan_to_markdown(const Plan *plan, const char *type) {
        _cleanup_(text_done) Text table = {};
        uint64_t usec;
        _free_ bool *critical = critical_of(plan, &usec);
        _free_ char *all = plan_to_text(plan);
        text_add(&table, "\n| | Part | Step | Target | Why |\n|---|---|---|---|---|\n");
        for (size_t i = 0; i < plan->n; i++)
                add_row(&table, &plan->actions[i], critical[i]);
        add_critical(&table, "`>`", usec);
        text_add(&table, "\n<details><summary>The whole plan</summary>\n");
        _free_ char *page = plan_page("Plan for", type, &plan->warnings, table.data, "text", all);
        return xasprintf("%s\n</details>\n", page);
}

static json_t *live_json(const Plan *plan) {
        if (!plan->looked)
                return NULL;
        json_t *j = json_pack("{sb}", "nothingToDo", plan_is_done(plan));
        for (int live = LIVE_NONE + 1; live < _LIVE_MAX; live++)
                json_object_set_new(j, live_to_string((Live)live),
                                    json_integer((json_int_t)plan_count(plan, (Live)live)));
        return j;
}

json_t *plan_to_json(const Plan *plan) {
        json_t *warnings = json_array(), *actions = json_array(), *files = json_array(),
               *critical = json_array();
        uint64_t usec;
        _free_ size_t *path = NULL;
        size_t n = plan_critical_path(plan, &path, &usec);
        for (size_t i = 0; i < n; i++)
                json_array_append_new(critical, json_string(plan->actions[path[i]].id));
        for (const Diagnostic *d = plan->warnings.items; d < plan->warnings.items + plan->warnings.n; d++)
                json_array_append_new(warnings, json_pack("{ss* ss* ss* ss*}", "code", d->code, "where",
                                                          d->where, "path", d->path, "text", d->text));
        for (size_t i = 0; i < plan->n; i++) {
                json_array_append_new(actions, action_to_json(&plan->actions[i]));
                if (plan->actions[i].type == ACTION_WRITE_FILE)
                        json_array_append_new(files, action_file_to_json(&plan->actions[i]));
        }
        return json_pack("{si ss sO sO* so so so so so*}", "formatVersion", PLAN_FORMAT, "planId", plan->id,
                         "facts", plan->facts, "node", plan->node, "warnings", warnings, "actions", actions,
                         "files", files, "criticalPath", critical, "live", live_json(plan));
}
