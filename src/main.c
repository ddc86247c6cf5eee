/* SPDX-License-Identifier: Apache-2.0
 * The road: sources → decode → merge → validate → detect → plan → apply → report. The row of a
 * command in commands/commands.c names its last stage. */
#include "commands/commands.h"
#include "commands/run.h"
#include "commands/sources.h"
#include "report/report.h"

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int walk_once(Run *run) {
        const Command *command = run->options.command;
        int r = 0;
        if (command->last >= STAGE_CONFIG)
                r = run_load_config(run);
        if (r >= 0 && command->last >= STAGE_PLAN && !run->options.matrix)       /* makes several plans
                                                                                  * itself */
                r = run_make_plan(run);
        return r < 0 ? r : command->run(run);
}

static int walk(Run *run) {
        const Command *command = run->options.command;
        int r = 0;
        if (command->last >= STAGE_ROOT)
                r = run_open_root(run);
        if (r >= 0 && command->flags & UINT64_C(1) << FLAG_CONFIG_SOURCE)
                r = run_choose_sources(run);
        if (r < 0)
                return r;
        hide_in_journal(run);
        if (!PORTABLE && run_changes_machine(run) && !(run->options.skip_config && run->options.skip_run))
                aftermath_take_back(run->root);
        do
                r = walk_once(run);
        while (r < 0 && run_again(run, r));
        return r;
}

/* A mistyped command line starts nothing, so it is not a result of this boot, except in a unit file. */
static bool is_slip(const Run *run) {
        const Diagnostic *error = diag_first_error(&run->diag);
        return error && error->cause == CAUSE_USAGE && !verdict_is_of_unit();
}

/* The last line on stderr has the first root cause. A failed command of nodeadm-internal exits with 1, and an
 * invalid one with 2 (awslabs/amazon-eks-ami:nodeadm/internal/cli/main.go). */
static ExitCode conclude(Run *run, bool parsed, int r) {
        const Options *o = &run->options;
        if (run->reported)
                return run->exit_code;
        /* a defect; but no failure may look like a success */
        if (r < 0 && !diag_first_error(&run->diag))
                (void)diag_error(&run->diag, r, CAUSE_INTERNAL, "%s, for an unrecorded reason",
                                 strerror(-r));
        hide_in_run(run);
        unsigned tries = (unsigned)run->tried.n + 1;
        diag_move(&run->diag, &run->tried);
        _free_ char *phases = run_phases(o);
        Report report = {
                .command = o->command->words,
                .phases = phases,
                .tries = tries,
                .step = run->step,
                .begin_usec = run->begin_usec,
                .plan = run->plan,
                .results = run->applied ? run->results : NULL,
                .diag = &run->diag,
                .imds_requests = run->imds ? imds_requests(run->imds) : 0,
                .ec2_requests = ec2_requests(),
                .internal = parsed && o->name == PROGRAM_NODEADM_INTERNAL,
        };
        if (!PORTABLE && run->step && run_changes_machine(run) && !is_slip(run)) {
                _cleanup_(node_name_done) NodeName name = {};
                if (run->config)
                        init_find_name(run, &name);
                report.config = run->config;
                report.region = name.region;
                report.node = name.node;
                report.instance_id = name.instance_id;
                report.instance_type = name.instance_type;
                report.node_guessed = name.guessed;
                _free_ char *then =
                        aftermath_choose(run->root, &report,
                                         run_is_of_units(run) && r != -EINTR && !stop_signal(), &run->diag);
                report.then = then;
                bool failed_before = init_devices_failed(run);
                ExitCode code = report_write(run->root, &report);
                if (code == EXIT_DONE && failed_before && !results_first_failure(run->results))
                        init_forgive_devices();
                return code;
        }
        report_tell(&run->diag);
        if (r < 0) {
                ExitCode code = report_tell_failure(&report);
                if (code == EXIT_USAGE && o->detailed_exitcode)
                        code = EXIT_INTERNAL;
                if (parsed && o->output != OUTPUT_TEXT && o->command->last == STAGE_PLAN)
                        plan_tell_failure(run, code);
                return code;
        }
        if (o->command->done)
                log_info("%s", o->command->done);
        return run->exit_code;
}

static void *allocate(size_t size) {
        return xcalloc(size, 1);
}

/* Repairs what the caller left: closed standard descriptors, which a later file would take; a umask that
 * hides directories from daemons; ignored SIGCHLD. A closed pipe of messages must not end the boot. */
static void settle_in(void) {
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0 &&
                    open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) != fd)
                        _exit(EXIT_INTERNAL);
        umask(022);
        signal(SIGCHLD, SIG_DFL);
        signal(SIGPIPE, SIG_IGN);
        json_set_alloc_funcs(allocate, free);   /* jansson never returns NULL for lack of memory */
}

/* A stuck thread may return at any time, so exit() handlers (curl, NVIDIA) must not run beside it. If it
 * never returns, the process keeps its descriptors. */
static void leave(Run *run, ExitCode code) {
        if (run->results->threads_left + run->threads_left == 0)
                return;
        run_release_locks(run);
        fflush(NULL);
        _exit((int)code);
}

int main(int argc, char **argv) {
        Sources sources = {};
        Results results = {};
        Run run = { .sources = &sources, .results = &results, .begin_usec = now_usec(), .lock_fd = -1,
                    .devices_fd = -1 };

        settle_in();
        int r = options_parse(argc, argv, &command_table, &run.options, &run.diag);
        if (run.options.development)
                log_set_level(LOG_DEBUG);
        else
                power_hide_memory();
        run_give_up(&run.options);
        bool parsed = r >= 0;
        ExitCode code = conclude(&run, parsed, parsed ? walk(&run) : r);
        leave(&run, code);
        run_done(&run);
        return (int)code;
}
