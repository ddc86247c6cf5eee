/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap plan`: prints the plan as text, JSON or Markdown, compared with the machine. */
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/run.h"
#include "commands/sources.h"

#include "apply/apply.h"
#include "base/str.h"
#include "doctor/checks.h"
#include "redact/mask.h"
#include "report/report.h"
#include "report/diag-json.h"
#include "report/status.h"
#include "plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static bool is_own(const Root *root, const char *uri) {
        _free_ char *name = source_file_path(uri), *path = name ? root_absolute(root, name) : NULL;
        _cleanup_(close_fd) int fd = path ? root_open(root, path, O_PATH) : -ENOENT;
        struct stat st;
        return fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid();
}

/* A user may see what he may read. --show-secrets protects against onlookers, and logs of image builds. */
static int reveal(const Run *run, Diag *diag) {
        for (char **uri = geteuid() == 0 ? NULL : run->options.sources; uri && *uri; uri++)
                if (!is_own(run->root, *uri) && !(run->host->modelled && !source_is_imds(*uri)))
                        return diag_error(diag, -EPERM, CAUSE_USAGE,
                                          "--show-secrets: you do not own %s; run sudo nodestrap plan "
                                          "--show-secrets, or name a type and a file: --instance-type TYPE "
                                          "-c file://PATH",
                                          *uri);
        for (size_t i = 0; i < run->plan->n; i++) {
                Action *a = &run->plan->actions[i];
                a->revealed = a->secret;
                a->secret = false;
        }
        return 0;
}

/* The present file may hold a secret of an earlier configuration, so all of it is scrubbed. */
static void make_diff(const Root *root, Action *a, Secrets *secrets, bool show_secrets) {
        _cleanup_(texts_done) Texts t = {};
        Text diff = {};
        if (a->secret || look_texts(root, a, &t) < 0 || (t.private && !show_secrets)) {
                a->diff = xstrdup("(hidden, as it may hold a secret; see --show-secrets)\n");
                return;
        }
        size_t old_size = t.old_size, new_size = t.new_size;
        if (!show_secrets) {
                RENEW(t.old, secrets_scrub(secrets, t.old ?: "", t.old_size, &old_size));
                RENEW(t.new, secrets_scrub(secrets, t.new, t.new_size, &new_size));
        }
        lines_diff(&diff, t.old ?: "", old_size, t.new, new_size, "");
        a->diff = text_take(&diff);
}

static void make_diffs(const Run *run) {
        _cleanup_(secrets_done) Secrets secrets = {};
        json_decref(mask_config(&secrets, run->config->document));
        for (size_t i = 0; i < run->plan->n; i++) {
                Action *a = &run->plan->actions[i];
                if (action_is(a, ACTION_OF_FILES) && (a->live == LIVE_CREATE || a->live == LIVE_CHANGE))
                        make_diff(run->root, a, &secrets, run->options.show_secrets);
        }
}

/* A model is not this machine, but may be planned for an image. */
static int look(Run *run) {
        const Options *o = &run->options;
        bool elsewhere = run->host->modelled && root_is_host(run->root);
        if (elsewhere && (o->show_diff || o->detailed_exitcode))
                return diag_error(&run->diag, -EINVAL, CAUSE_USAGE,
                                  "--%s compares with a machine, but --instance-type plans for another one; "
                                  "name an image: --root DIR",
                                  o->show_diff ? "show-diff" : "detailed-exitcode");
        if (elsewhere)
                return 0;
        apply_look(run->root, run->plan);
        if (o->show_diff)
                make_diffs(run);
        if (o->detailed_exitcode && !plan_is_done(run->plan))
                run->exit_code = EXIT_CHANGES;
        return 0;
}

void plan_tell_failure(const Run *run, ExitCode code) {
        const Diagnostic *error = diag_first_error(&run->diag);
        _cleanup_(diag_done) Diag ignored = {};         /* stderr has said why already */
        if (run->options.output == OUTPUT_MARKDOWN) {
                _free_ char *page = plan_page("No plan for", run->options.instance_type ?: "this machine",
                                              &run->diag, "", "", "");
                (void)!output_text(page, &ignored);
                return;
        }
        _cleanup_(json_decrefp) json_t *json =
                json_pack("{si ss si so}", "formatVersion", PLAN_FORMAT, "code",
                          cause_word(error ? error->cause : CAUSE_INTERNAL), "exit", (int)code, "findings",
                          findings_to_json(&run->diag));
        (void)!output_json(json, NULL, &ignored);
}

int plan_show(Run *run, const char *title, const char *of, const Diag *findings, const char *language,
              const char *text) {
        _free_ char *page = run->options.output == OUTPUT_TEXT
                                    ? xstrdup(text)
                                    : plan_page(title, of, findings, "", language, text);
        return output_text(page, &run->diag);
}

int plan_be_strict(Diag *diag) {
        for (size_t i = 0; i < diag->n; i++)
                if (plan_warning_fails(&diag->items[i]))
                        diag->items[i].cause = CAUSE_STRICT;
        return diag_judge(diag);
}

/* A boot continues, because a user script may bring the driver. A plan shows the present state. */
static int refuse_unmet(const Config *config, Diag *diag) {
        if (config->failure_policy == FAILURE_JOIN_TAINTED)
                return 0;
        for (size_t i = 0; i < diag->n; i++)
                if (diag->items[i].warning && streq(diag->items[i].code, "require-unmet"))
                        diag->items[i].cause = CAUSE_DRIVER;
        return diag_judge(diag);
}

/* failurePolicy allows one reboot of an instance. */
static void warn_of_ledger(Run *run) {
        if (run->config->failure_policy != FAILURE_REBOOT || run->host->modelled || run->plan->as_nodeadm)
                return;
        _free_ char *why = aftermath_ledger_look(run->root, run->host->instance.id);
        if (why)
                diag_warn(&run->diag, "failure-policy", "nodestrap will not reboot after a hardware "
                                                        "failure: %s", why);
}

static int refuse_mixture(const Options *o, Diag *diag) {
        const struct { bool given; const char *name; } others[] = {
                { o->diff, "diff" }, { o->write_to, "write-to" }, { o->instance_type, "instance-type" },
                { o->show_diff, "show-diff" }, { o->interfaces, "interfaces" },
                { o->efa, "efa" },
                { o->detailed_exitcode, "detailed-exitcode" },
        };
        __auto_type with = FIND(other, others, ARRAY_SIZE(others), other->given);
        if (o->matrix && with)
                return diag_error(diag, -EINVAL, CAUSE_USAGE, "--matrix cannot be used with --%s",
                                  with->name);
        if (o->diff && o->show_diff)
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "--diff compares two plans, --show-diff a plan and the machine: choose "
                                  "one");
        return 0;
}

/* Why this is not the plan of the boot, first what this user can change. */
static const char *reason_to_differ(const Run *run, const Status *status) {
        _cleanup_(kept_done) Kept kept = {};
        char spec[65];
        if (ANY(i, run->diag.items, run->diag.n, i->code && streq(i->code, "source-denied")))
                return "you cannot read all of its sources";
        if (!streq(status->version, status_version))
                return "another version of nodestrap made it";
        if (kept_read(run->root, &kept) < 0)
                return "run nodestrap plan as root to see the reason";
        spec_digest(json_object_get(run->config->document, "spec"), spec);
        return streq(spec, kept.spec) ? "facts about this machine have changed since"
                                      : "its sources have changed since";
}

static void compare_with_boot(Run *run) {
        _cleanup_(status_done) Status status = {};
        if (!run->sources->by_default || run->host->modelled || status_read(run->root, &status) < 0)
                return;
        const char *id = status.plan_id;
        if (*id && !streq(id, run->plan->id))
                diag_warn(&run->diag, "plan-differs",
                          "the last run in this boot had a different plan, %.14s…: %s; see nodestrap plan "
                          "--show-diff",
                          id, reason_to_differ(run, &status));
}

int command_plan(Run *run) {
        const Options *o = &run->options;
        int r = refuse_mixture(o, &run->diag);
        if (r < 0)
                return r;
        if (o->matrix)
                return plan_matrix(run);
        if (!run->host->modelled)
                units_warn(run->root, &run->plan->warnings);
        /* Findings about the input come before those of planning. */
        diag_move(&run->diag, &run->plan->warnings);
        compare_with_boot(run);
        warn_of_ledger(run);
        r = refuse_unmet(run->config, &run->diag);
        if (r >= 0 && o->strict)
                r = plan_be_strict(&run->diag);
        if (r < 0)
                return r;
        diag_move(&run->plan->warnings, &run->diag);
        r = o->write_to ? plan_write(o->write_to, run->plan, &run->diag) : 0;
        if (r >= 0 && o->show_secrets)
                r = reveal(run, &run->diag);
        if (r >= 0 && o->diff)
                return plan_diff(run);
        THEN(r, look(run));
        if (r < 0)
                return r;
        if (o->output == OUTPUT_JSON) {
                _cleanup_(json_decrefp) json_t *json = plan_to_json(run->plan);
                return output_json(json, NULL, &run->diag);
        }
        _free_ char *text = o->output == OUTPUT_TEXT
                                    ? plan_to_text(run->plan)
                                    : plan_to_markdown(run->plan, run->host->instance.type ?: "unknown type");
        return output_text(text, &run->diag);
}
