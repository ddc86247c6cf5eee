/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap config check, dump, schema, example`. */
#include "commands/output.h"
#include "commands/run.h"
#include "commands/sources.h"
#include "host/host.h"
#include "report/diag-json.h"
#include "report/explain.h"
#include "report/report.h"

#include "base/log.h"
#include "base/portable.h"
#include "base/str.h"

#include <errno.h>
#include <fnmatch.h>

#define EXAMPLES "/usr/lib/nodestrap/examples"
#define EXAMPLE_MAX (64 << 10)

static int check_sources(Run *run) {
        int r = run_load_config(run);
        if (r >= 0) {
                tell_signatures(run);
                r = config_check_expression(run->config, &run->diag);
        }
        if (r < 0 && !diag_first_error(&run->diag))
                r = diag_error(&run->diag, r, CAUSE_INTERNAL, "%s; no reason was recorded",
                               strerror(-r));
        hide_in_run(run);
        diag_sort(&run->diag);
        return r;
}

/* Gives each finding a source, for programs. A finding about the merged configuration has none of its own. */
static void name_source(Run *run) {
        const char *uri = run->options.sources[0];
        _free_ char *path = source_file_path(uri);
        const char *name = run->sources->blobs.n > 0      ? run->sources->blobs.items[0].at.source
                           : path                ? path
                           : streq(uri, "-")     ? "stdin"
                           : source_is_imds(uri) ? "user-data"
                                                 : uri;
        for (size_t i = 0; i < run->diag.n; i++) {
                Diagnostic *item = &run->diag.items[i];
                if (item->source)
                        continue;
                item->source = xstrdup(name);
                if (run->options.each && !item->where)
                        item->where = xstrdup(name);
        }
}

static int print_findings(const Run *run, const Diag *found, ExitCode code, Diag *diag) {
        bool sarif = run->options.output == OUTPUT_SARIF;
        _free_ char *manual = NULL;
        if (sarif)
                (void)!explain_read(run->root, &manual);        /* without it, rules have only names */
        _cleanup_(json_decrefp) json_t *document =
                sarif ? findings_to_sarif(found, code, manual ?: "")
                      : json_pack("{si sb si so}", "format", 1, "valid", code == EXIT_DONE, "exit", code,
                                  "findings", findings_to_json(found));
        return output_json(document, NULL, diag);
}

static ExitCode tell_one(Run *run, int r, const char *source) {
        Report report = { .command = run->options.command->words,
                          .step = run->step,
                          .begin_usec = run->begin_usec,
                          .diag = &run->diag };
        if (!source_is_imds(source))
                findings_place(run);
        report_tell(&run->diag);
        if (r < 0)
                return report_tell_failure(&report);
        log_info("%s: valid.", streq(source, "-") ? "stdin" : source);
        return EXIT_DONE;
}

/* Checks each source alone. The exit code is that of the first invalid one. */
static int check_each(Run *run, char *const *sources) {
        _cleanup_(diag_done) Diag found = {};
        ExitCode code = EXIT_DONE;
        for (size_t turn = 1; *sources;) {
                Sources *from = run->sources;
                run->options.sources = NULL;
                strv_add(&run->options.sources, *sources);
                from->turn = turn;
                from->turns = 1;
                int r = check_sources(run);
                name_source(run);
                _free_ char *own = from->turns > 1
                                           ? xasprintf("%s#%s", *sources, from->wrapped.items[turn - 1].name)
                                           : xstrdup(*sources);
                ExitCode one = tell_one(run, r, own);
                code = code == EXIT_DONE ? one : code;
                diag_move(&found, &run->diag);
                run_forget_config(run);
                run->options.sources = strv_free(run->options.sources);
                turn = turn < from->turns ? turn + 1 : 1;
                sources += turn == 1;
        }
        run->reported = true;
        run->exit_code = code;
        if (run->options.output == OUTPUT_TEXT || print_findings(run, &found, code, &run->diag) >= 0)
                return 0;
        run->reported = false;
        return -EIO;
}

int command_config_check(Run *run) {
        if (run->options.each) {
                _strv_ char **sources = TAKE_PTR(run->options.sources);
                return check_each(run, sources);
        }
        int r = check_sources(run);
        if (run->options.output == OUTPUT_TEXT)
                return r;
        name_source(run);
        ExitCode code = r < 0 ? cause_exit_code(diag_first_error(&run->diag)->cause) : EXIT_DONE;
        int printed = print_findings(run, &run->diag, code, &run->diag);
        return r < 0 ? r : printed;
}

int command_config_dump(Run *run) {
        return output_json(run->config->document, run->options.output_file, &run->diag);
}

int command_config_schema(Run *run) {
        _cleanup_(json_decrefp) json_t *schema = config_schema(run->options.strict);
        return output_json(schema, run->options.output_file, &run->diag);
}

static int example_read(Run *run, const char *name, char **ret) {
        _free_ char *path = xasprintf(EXAMPLES "/%s", name);
        int r = installed_read(run->root, path, EXAMPLE_MAX, ret);
        return r >= 0 ? r : diag_error(&run->diag, r, CAUSE_SOURCE,
                                       "%s below %s cannot be read: %s; install the nodestrap "
                                       "package, or see conf/examples in its source code",
                                       path, root_path(run->root), strerror(-r));
}

/* The first matching line of EXAMPLES/types: its file and its own type, the first pattern, in index. */
static bool example_choose(char *index, const char *type, const char **ret_name, const char **ret_own) {
        for (char *line; (line = strsep(&index, "\n"));) {
                const char *name = strsep(&line, " "), *own = NULL;
                for (const char *pattern; (pattern = strsep(&line, " "));) {
                        own = own ?: pattern;
                        *ret_name = name;
                        *ret_own = own;
                        if (*name != '#' && fnmatch(pattern, type, 0) == 0)
                                return true;
                }
        }
        return false;
}

static char *text_replaced(const char *text, const char *from, const char *to) {
        Text t = {};
        for (const char *at; (at = strstr(text, from)); text = at + strlen(from)) {
                text_add_bytes(&t, text, (size_t)(at - text));
                text_add(&t, "%s", to);
        }
        text_add(&t, "%s", text);
        return text_take(&t);
}

/* Changes the example to this type: its name, and the number of EFA devices. */
static char *example_make(const char *text, const char *own, const char *type) {
        const InstanceType *from = instance_type_find(own), *to = instance_type_find(type);
        _free_ char *named = text_replaced(text, own, type);
        if (!from || !to || to->max_efa <= 0)
                return TAKE_PTR(named);
        /* All that its type can have, or what AWS's guide recommends for a tray. */
        const char *key = "expectedDevices: ", *at = strstr(named, key);
        int n = at ? (int)strtol(at + strlen(key), NULL, 10) : 0;
        _free_ char *before = xasprintf("%s%d}", key, n),
                    *after = xasprintf("%s%d}", key, n == from->max_efa ? to->max_efa : MIN(n, to->max_efa));
        return text_replaced(named, before, after);
}

int command_config_example(Run *run) {
        const char *name = "", *own = "";
        _free_ char *index = NULL, *text = NULL;
        if (strv_length(run->options.sources) != 1)
                return diag_error(&run->diag, -EINVAL, CAUSE_USAGE,
                                  "config example takes one instance type: nodestrap config example "
                                  "p5.48xlarge");
        const char *type = run->options.sources[0];
        int r = instance_type_check(type, NULL, &run->diag);
        THEN(r, example_read(run, "types", &index));
        if (r >= 0 && !example_choose(index, type, &name, &own))
                r = diag_error(&run->diag, -ENOENT, CAUSE_SOURCE, EXAMPLES "/types has no file for %s",
                               type);
        THEN(r, example_read(run, name, &text));
        if (r < 0)
                return r;
        _free_ char *made = example_make(text, own, type);
        return output_text(made, &run->diag);
}
