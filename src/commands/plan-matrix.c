/* SPDX-License-Identifier: Apache-2.0
 * One configuration, many instance types → a table with the plan of each, or the error. Models read no
 * machine and start nothing, so a hundred types take the time of a few processes. */
#include "commands/run.h"

#include "base/hash.h"
#include "base/json.h"
#include "commands/output.h"
#include "host/tables.h"
#include "plan/plan.h"
#include "report/diag-json.h"
#include "report/report.h"

#include <errno.h>

#define FILE_MAX (1 << 20)

static void add_types(char ***types, char *list, const char *separators) {
        for (char *rest = list, *name = strsep(&rest, separators); name; name = strsep(&rest, separators)) {
                name[strcspn(name, "#")] = 0;   /* in files: a remark about a type */
                _free_ char *plain = str_strip(name);
                if (*plain && !strv_contains(*types, plain))
                        strv_add(types, plain);
        }
}

/* "a,b", "all" for the table of accelerated types, or a file (with a "/") that has one type a line. */
static int find_types(const char *given, char ***ret, Diag *diag) {
        _cleanup_(root_freep) Root *here = NULL;
        _free_ char *text = NULL, *path = NULL;
        int r = 0;
        for (size_t i = 0; streq(given, "all") && i < n_instance_types; i++)
                strv_add(ret, instance_types[i].name);
        if (strchr(given, '/')) {
                r = root_new("/", &here);
                path = r >= 0 ? root_absolute(here, given) : NULL;
                r = r < 0 ? r : path ? root_read(here, path, FILE_MAX, &text, NULL) : -ENOENT;
                if (r < 0)
                        return diag_error(diag, r, CAUSE_USAGE, "--matrix %s: %s", given, strerror(-r));
                add_types(ret, text, "\n");
        } else if (!*ret && strchr(given, '.')) {       /* each type has a "." */
                text = xstrdup(given);
                add_types(ret, text, ",");
        }
        return *ret ? 0
                    : diag_error(diag, -EINVAL, CAUSE_USAGE,
                                 "--matrix takes types (p5.48xlarge,g6.xlarge), a file with one type per "
                                 "line (./types), or all");
}

static json_t *huge_pages(const json_t *node) {
        json_t *pages = json_object(), *value;
        const char *name;
        json_object_foreach(json_object_get(node, "capacity"), name, value)
                if (startswith(name, "hugepages-") && !streq(json_string_value(value), "0"))
                        json_object_set(pages, name + strlen("hugepages-"), value);
        return pages;
}

static void put_host(json_t *row, const Host *h) {
        json_set_text(row, "class", gpu_class_to_string(h->gpus.class));
        json_object_set_new(row, "gpus", json_integer(h->gpus.count));
        if (host_efa_is_known(h))
                json_object_set_new(row, "efa", json_integer((json_int_t)host_efa(h)));
        json_object_set_new(row, "instanceStores", json_integer((json_int_t)host_instance_stores(h)));
}

static void put_plan(json_t *row, const Plan *plan) {
        const json_t *capacity = json_object_get(plan->node, "capacity");
        json_object_set_new(row, "hugePages", huge_pages(plan->node));
        json_set_text(row, "maxPods", json_string_value(json_object_get(capacity, "pods")));
        json_set_text(row, "planId", plan->id);
        json_object_set_new(row, "actions", json_integer((json_int_t)plan->n));
}

/* A word: why planning failed, or the first thing that will not work. */
static const char *verdict(const Diag *diag, Cause cause) {
        const Diagnostic *error = diag_first_error(diag);
        if (cause != CAUSE_NONE)
                return cause == CAUSE_STRICT && error ? finding_code(error) : cause_word(cause);
        return PICK(i, diag->items, diag->n, plan_warning_fails(i), i->code, "ok");
}

static int make_row(Run *run, const char *type, json_t **ret) {
        const Options *o = &run->options;
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(host_freep) Host *host = NULL;
        _cleanup_(plan_freep) Plan *plan = NULL;
        HostOptions options = { .instance_type = type, .kubelet_version = o->kubelet_version,
                                .containerd_version = o->containerd_version,
                                .driver_version = o->driver_version, .storage = !o->skip_run };
        PlanOptions how = { .plugin = (CredentialPlugin)credential_plugin_from_string(o->credential_plugin) };
        const bool skip[_PHASE_MAX] = { o->skip_config, o->skip_devices, o->skip_run };
        int r = host_detect(run->root, run->config, &options, &host, &diag);
        THEN(r, plan_make(run->config, host, &how, &plan, &diag));
        if (plan)
                diag_move(&diag, &plan->warnings);
        if (r >= 0 && o->strict)
                r = plan_be_strict(&diag);
        const Diagnostic *error = diag_first_error(&diag);
        Cause cause = r >= 0 ? CAUSE_NONE : error ? error->cause : CAUSE_INTERNAL;
        json_t *row = json_pack("{so ss ss si}", "type", text_json(type), "code", cause_word(cause),
                                "verdict", verdict(&diag, cause), "exit", (int)cause_exit_code(cause));
        if (host)
                put_host(row, host);
        if (plan) {
                plan_filter(plan, skip, o->daemons);
                put_plan(row, plan);
        }
        json_object_set_new(row, "findings", findings_to_json(&diag));
        *ret = row;
        return r < 0 ? (int)cause_exit_code(cause) : 0;
}

#define VERDICT_WIDTH 12

static void add_row(Text *t, const json_t *row, int width) {
        json_t *pages = json_object_get(row, "hugePages"), *value;
        const json_t *findings = json_object_get(row, "findings");
        const char *size, *pods = json_get_text(row, "maxPods"), *id = json_get_text(row, "planId");
        const json_t *efa = json_object_get(row, "efa");
        _free_ char *efas = xasprintf("%lld", (long long)json_integer_value(efa));
        _cleanup_(text_done) Text huge = {};
        json_object_foreach(pages, size, value)
                text_add(&huge, "%s%s %s", huge.size > 0 ? ", " : "", json_string_value(value), size);
        text_add(t, "%-19s %-*s %-10s %4lld %4s %5lld  %-14s %5s  %-12.12s %4zu\n",
                 json_get_text(row, "type"), width, json_get_text(row, "verdict"),
                 json_get_text(row, "class"), (long long)json_integer_value(json_object_get(row, "gpus")),
                 json_is_integer(efa) ? efas : "?",
                 (long long)json_integer_value(json_object_get(row, "instanceStores")),
                 huge.size > 0 ? huge.data : "-", *pods ? pods : "-", *id ? id + strlen("sha256:") : "-",
                 json_array_size(findings));
}

/* Each sentence once, with its types. */
static void add_findings(Text *t, const json_t *rows) {
        _cleanup_(json_decrefp) json_t *types = json_object();
        const json_t *row, *finding;
        json_t *names;
        const char *sentence;
        size_t i, k;
        json_array_foreach(rows, i, row)
                json_array_foreach(json_object_get(row, "findings"), k, finding) {
                        const char *path = json_get_text(finding, "path");
                        _free_ char *text = xasprintf("%s%s%s [%s]", path, *path ? ": " : "",
                                                      json_get_text(finding, "message"),
                                                      json_get_text(finding, "code"));
                        names = json_object_get(types, text);
                        if (!names)
                                json_object_set_new(types, text, names = json_array());
                        json_array_append(names, json_object_get(row, "type"));
                }
        json_object_foreach(types, sentence, names) {
                size_t n = json_array_size(names);
                _free_ char *more = n == json_array_size(rows) ? xstrdup(" and all others")
                                    : n > 1 ? xasprintf(" and %zu more", n - 1)
                                            : xstrdup("");
                _free_ char *lead = xasprintf(
                        "  * %s%s: ", json_string_value(json_array_get(names, 0)), n > 1 ? more : "");
                text_add_folded(t, lead, 4, sentence);
        }
}

static char *matrix_text(const json_t *rows, size_t failed) {
        const json_t *row;
        size_t i, width = VERDICT_WIDTH;
        Text t = {};
        json_array_foreach(rows, i, row)
                width = MAX(width, strlen(json_get_text(row, "verdict")));
        text_add(&t, "%-19s %-*s %-10s %4s %4s %5s  %-14s %5s  %-12s %4s\n", "TYPE", (int)width, "VERDICT",
                 "CLASS", "GPUS", "EFA", "DISKS", "HUGE PAGES", "PODS", "PLAN", "SAID");
        json_array_foreach(rows, i, row)
                add_row(&t, row, (int)width);
        text_add(&t, "\n");
        add_findings(&t, rows);
        text_add(&t, "\n%zu types, %zu without a plan\n", json_array_size(rows), failed);
        return text_take(&t);
}

int plan_matrix(Run *run) {
        const Options *o = &run->options;
        _strv_ char **types = NULL;
        _cleanup_(json_decrefp) json_t *rows = json_array();
        size_t failed = 0;
        int r = find_types(o->matrix, &types, &run->diag);
        THEN(r, hash_load(&run->diag));
        for (char **type = types; r >= 0 && type && *type; type++) {
                json_t *row = NULL;
                int code = make_row(run, *type, &row);
                json_array_append_new(rows, row);
                if (code > 0 && failed++ == 0)
                        run->exit_code = (ExitCode)code;
        }
        if (r < 0)
                return r;
        if (o->output == OUTPUT_JSON) {
                _cleanup_(json_decrefp) json_t *all =
                        json_pack("{si sO}", "formatVersion", PLAN_FORMAT, "types", rows);
                return output_json(all, NULL, &run->diag);
        }
        _free_ char *text = matrix_text(rows, failed);
        return plan_show(run, "Plans for", o->matrix, &run->diag, "text", text);
}
