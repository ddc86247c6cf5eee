/* SPDX-License-Identifier: Apache-2.0
 * Plan, documents, status, help → stdout, and whether all of it got there. */
#include "show.h"

#include "base/str.h"
#include "config/config.h"
#include "report.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* What is printed from here on is all that is left to do: a reader that goes away (head) ends the program, as
 * in any pipeline. */
static void begin_output(void) {
        signal(SIGPIPE, SIG_DFL);
}

static int end_output(Diag *diag) {
        return fflush(stdout) == 0 && !ferror(stdout)
                       ? 0
                       : diag_error(diag, -EIO, CAUSE_FILE, "stdout cannot be written");
}

static int write_output(const char *path, const char *text) {
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        int r = dprintf(fd, "%s\n", text) < 0 ? -errno : 0;
        if (close(fd) < 0 && r == 0)
                r = -errno;
        return r;
}

int show_text(const char *text, Diag *diag) {
        begin_output();
        fputs(text, stdout);
        return end_output(diag);
}

int show_json(const Options *o, const json_t *json, Diag *diag) {
        _cleanup_(freep) char *text = json_dumps(json, JSON_INDENT(2) | JSON_ENCODE_ANY);
        if (!o->output_file) {
                begin_output();
                puts(text);
                return end_output(diag);
        }
        int r = write_output(o->output_file, text);
        return r < 0 ? diag_error(diag, r, CAUSE_FILE, "%s cannot be written: %s", o->output_file,
                                  strerror(-r))
                     : 0;
}

/* --write-to: every planned file below a directory of the reader's choice, to look at or to compare. */
static int write_plan_files(const char *target, const Plan *plan, Diag *diag) {
        _cleanup_(root_freep) Root *dir = NULL;
        _cleanup_(root_freep) Root *here = NULL;
        int r = root_new("/", &here);
        _cleanup_(freep) char *path = r >= 0 ? root_absolute(here, target) : NULL;

        if (r >= 0)
                r = path ? root_make_dirs(here, path, 0755) : -ENOENT;
        if (r >= 0)
                r = root_new(path, &dir);
        for (size_t i = 0; r >= 0 && i < plan->n; i++) {
                const Action *a = &plan->actions[i];
                if (a->type == ACTION_WRITE_FILE || a->type == ACTION_WRITE_BLOCK)
                        r = root_replace(dir, a->target, a->file.content, a->file.size, a->file.mode);
        }
        return r < 0 ? diag_error(diag, r, CAUSE_FILE, "%s: the planned files cannot be written there: %s",
                                  target, strerror(-r))
                     : 0;
}

int show_plan(const Options *o, const Plan *plan, Diag *diag) {
        int r = o->write_to ? write_plan_files(o->write_to, plan, diag) : 0;
        if (r < 0)
                return r;
        if (o->output == OUTPUT_JSON) {
                _cleanup_(json_decrefp) json_t *json = plan_to_json(plan);
                return show_json(o, json, diag);
        }
        _cleanup_(freep) char *text = plan_to_text(plan);
        return show_text(text, diag);
}

int show_status(const Options *o, const Root *root, Diag *diag) {
        begin_output();
        int r = report_show(root, o->output);
        if (r == -ENOENT)
                return diag_error(diag, r, CAUSE_USAGE,
                                  "there is no " REPORT_STATUS
                                  ": nodestrap init has not run since this machine booted");
        return r < 0 ? diag_error(diag, r, CAUSE_FILE, REPORT_STATUS " cannot be shown: %s", strerror(-r))
                     : 0;
}

int show_about(const Options *o, Diag *diag) {
        begin_output();
        if (o->command == COMMAND_HELP)
                options_print_help(o);
        else
                puts("nodestrap " VERSION);
        return end_output(diag);
}

int show_schema(const Options *o, Diag *diag) {
        _cleanup_(json_decrefp) json_t *schema = config_schema();
        return show_json(o, schema, diag);
}
