/* SPDX-License-Identifier: Apache-2.0
 * The configuration by itself: is it valid, what do all sources come to, what may it hold? */
#include "commands/commands.h"
#include "commands/hide.h"
#include "commands/output.h"
#include "commands/run.h"
#include "commands/sources.h"
#include "report/diag-json.h"
#include "report/report.h"

#include "base/log.h"
#include "base/str.h"

#include <errno.h>

static int check_sources(Run *run) {
        int r = run_load_config(run);
        if (r >= 0) {
                tell_signatures(run);
                r = config_check_expression(run->config, &run->diag);
        }
        if (r < 0 && !diag_first_error(&run->diag))
                r = diag_error(&run->diag, r, CAUSE_INTERNAL, "%s, for a reason that was not recorded",
                               strerror(-r));
        hide_in_run(run);
        return r;
}

/* A machine wants to know of each finding where it is; what the merged whole lacks is nowhere. */
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
        _cleanup_(json_decrefp) json_t *document =
                run->options.output == OUTPUT_SARIF
                        ? findings_to_sarif(found, code)
                        : json_pack("{si sb si so}", "format", 1, "valid", code == EXIT_DONE, "exit", code,
                                    "findings", findings_to_json(found));
        return output_json(document, NULL, diag);
}

static ExitCode tell_one(Run *run, int r, const char *source) {
        Report report = { .command = run->options.command->words,
                          .step = run->step,
                          .begin_usec = run->begin_usec,
                          .diag = &run->diag };
        report_tell(&run->diag);
        if (r < 0)
                return report_tell_failure(&report);
        log_info("%s: valid.", streq(source, "-") ? "stdin" : source);
        return EXIT_DONE;
}

/* Each as if it were the only one. Ends with the exit code of the first that is not valid. */
static int check_each(Run *run, char *const *sources) {
        _cleanup_(diag_done) Diag found = {};
        ExitCode code = EXIT_DONE;
        for (; *sources; sources++) {
                run->options.sources = NULL;
                strv_add(&run->options.sources, *sources);
                int r = check_sources(run);
                name_source(run);
                ExitCode one = tell_one(run, r, *sources);
                code = code == EXIT_DONE ? one : code;
                diag_move(&found, &run->diag);
                run_forget_config(run);
                run->options.sources = strv_free(run->options.sources);
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
