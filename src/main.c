/* SPDX-License-Identifier: Apache-2.0
 * The road, from left to right: sources → decode → merge → validate → detect → plan → apply → report. A
 * command is a place to stop on it; a dry run is one return behind the plan. */
#include "apply/apply.h"
#include "base/log.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/time.h"
#include "cli.h"
#include "join.h"
#include "keep.h"
#include "report.h"
#include "report-join.h"
#include "show.h"
#include "source.h"
#include "token.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_FILE APPLY_RUN_DIR "/lock"
#define DISKS_TIMEOUT (30 * USEC_PER_SEC)       /* for instance stores that come late;
                                                 * a plan shows what is there */

/* Everything that the stages hand to each other, and what ends up in the report. */
typedef struct Run {
        Options options;
        Root *root;
        char *cache;                    /* --config-cache as a path below the root, or NULL */
        Imds *imds;
        Blobs blobs;
        Documents documents;
        Config *config;
        Kept kept;                      /* of the other phase of this boot */
        json_t *cached_status;          /* facts of an earlier run on the same configuration, or NULL */
        Host *host;
        Plan *plan;
        Results results;
        bool applied;
        Join join;                      /* of wait */
        const char *stage;              /* where on the road: what the report calls the step */
        int lock_fd;
        uint64_t begin_usec;
        Diag diag;
} Run;

static void run_done(Run *run) {
        join_done(&run->join);
        results_done(&run->results);
        plan_free(run->plan);
        host_free(run->host);
        json_decref(run->cached_status);
        kept_done(&run->kept);
        config_free(run->config);
        documents_done(&run->documents);
        blobs_done(&run->blobs);
        imds_free(run->imds);
        free(run->cache);
        root_free(run->root);
        options_done(&run->options);
        diag_done(&run->diag);
        if (run->lock_fd >= 0)
                close(run->lock_fd);
}

static bool changes_machine(const Options *o) {
        return o->command == COMMAND_INIT && !o->dry_run;
}

static bool asks_imds(const Options *o) {
        for (char **s = o->sources; s && *s; s++)
                if (source_is_imds(*s))
                        return true;
        return false;
}

/* Puts the cache to use as nodeadm does: instead of sources that hold no config, or for the facts that it
 * keeps when the configuration is what it was; a changed configuration brings the config phase back even
 * where it was to be skipped. */
static int consult_cache(Run *run, int loaded, Diag *found) {
        _cleanup_(json_decrefp) json_t *spec = NULL, *status = NULL;
        int r = config_cache_read(run->root, run->cache, &spec, &status, &run->diag);

        if (r < 0)                      /* none yet, or one that cannot be read, which was warned about */
                return loaded;
        if (loaded == -ENODATA) {
                _cleanup_(json_decrefp) json_t *document =
                        json_pack("{s:s, s:s, s:O}", "apiVersion", CONFIG_API_VERSION, "kind", CONFIG_KIND,
                                  "spec", spec);
                r = config_from_json(document, run->cache, &run->config, &run->diag);
                if (r < 0)
                        return r;
                diag_done(found);
                diag_warn(&run->diag, "config-from-cache", "no source holds a NodeConfig; %s is used instead",
                          run->cache);
        } else if (!config_cache_matches(json_object_get(run->config->document, "spec"), spec)) {
                run->options.skip_config = false;
                return loaded;
        }
        run->cached_status = TAKE_PTR(status);
        return 0;
}

/* The next stage begins, unless somebody wants us to stop. */
static int enter(Run *run, const char *stage) {
        int signal = stop_signal();
        if (signal != 0)
                return diag_error(&run->diag, -EINTR, CAUSE_INTERRUPTED, "stopped by %s; nothing was changed",
                                  stop_name(signal));
        run->stage = stage;
        return 0;
}

/* --strict: each one stays what it says and where, but now it counts. */
static int warnings_promote(Diag *diag) {
        size_t n = 0;
        for (size_t i = 0; i < diag->n; i++)
                if (diag->items[i].warning) {
                        diag->items[i].warning = false;
                        diag->items[i].cause = CAUSE_STRICT;
                        n++;
                }
        return n > 0 ? -EINVAL : 0;
}

/* sources → decode → merge → validate */
static int load_config(Run *run) {
        Diag found = {};
        int r;

        if (asks_imds(&run->options) || run->options.command == COMMAND_INIT)
                /* a file says what is wanted; what this instance is, only IMDS knows */
                run->imds = imds_new(0);
        if (changes_machine(&run->options) && kept_read(run->root, &run->kept) >= 0 && run->kept.answers)
                imds_recall(run->imds, run->kept.answers);
        r = source_read(run->root, run->options.sources, run->imds, &run->blobs, &run->diag);
        if (r < 0 || (r = enter(run, "decode")) < 0)
                return r;
        r = source_decode(&run->blobs, &run->documents, &run->diag);
        if (r < 0 || (r = enter(run, "validate")) < 0)
                return r;
        r = config_load(&run->documents, &run->config, &found);
        if (run->cache && (r >= 0 || r == -ENODATA))
                r = consult_cache(run, r, &found);
        diag_move(&run->diag, &found);
        if (r == -ENODATA)
                run->stage = "source";  /* whatever is there, it is not ours */
        if (r < 0)
                return r;
        return run->options.strict ? warnings_promote(&run->diag) : 0;
}

/* The proxy of the configuration must hold for our own first request to EC2, too; nothing else of it is taken
 * over. */
static void adopt_proxy(const Config *config) {
        static const char *const names[] = { "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
                                             "http_proxy", "https_proxy", "no_proxy" };
        for (size_t i = 0; i < config->instance.n_environment; i++) {
                const ServiceEnvironment *e = &config->instance.environment[i];
                for (size_t v = 0; streq(e->service, "default") && v < e->n; v++)
                        for (size_t n = 0; n < ARRAY_SIZE(names); n++)
                                if (streq(e->variables[v].name, names[n]))
                                        setenv(names[n], e->variables[v].value, 1);
        }
}

/* detect → plan */
static int make_plan(Run *run) {
        const Options *o = &run->options;
        PlanOptions plan = { .plugin = o->plugin };
        char spec[65];

        spec_digest(json_object_get(run->config->document, "spec"), spec);
        if (!run->cached_status && run->kept.status && streq(run->kept.spec, spec))
                run->cached_status = json_incref(run->kept.status);
        HostOptions host = {
                o->instance_type,
                o->kubelet_version,
                o->containerd_version,
                o->driver_version,
                run->imds,
                run->cached_status,
                .storage = !o->skip_run,
                .disks_timeout_usec = changes_machine(o) && !o->skip_run ? DISKS_TIMEOUT : 0,
        };
        adopt_proxy(run->config);
        int r = host_detect(run->root, run->config, &host, &run->host, &run->diag);
        if (r < 0 || (r = enter(run, "plan")) < 0)
                return r;
        r = plan_make(run->config, run->host, &plan, &run->plan, &run->diag);
        if (r < 0)
                return r;
        plan_filter(run->plan, o->skip_config, o->skip_run, o->daemons);
        return 0;
}

/* One init at a time: user data may call it while the unit does. The lock is a file that only root can open,
 * or anybody could hold up a boot. Not by a flock() that waits: a signal that came a moment before would not
 * end it. */
#define LOCK_PAUSE_USEC 50000
static int take_lock(Run *run) {
        int r = root_make_dirs(run->root, APPLY_RUN_DIR, 0755);
        if (r >= 0)
                r = run->lock_fd = root_open(run->root, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW);
        if (r < 0)
                return diag_error(&run->diag, r, CAUSE_FILE,
                                  LOCK_FILE
                                  " cannot be made: %s. The lock and the status of this "
                                  "boot live there; /run must be a directory in which root can write",
                                  strerror(-r));
        for (bool told = false; flock(run->lock_fd, LOCK_EX | LOCK_NB) < 0; told = true) {
                if (errno != EWOULDBLOCK)
                        return diag_error(&run->diag, -errno, CAUSE_FILE, LOCK_FILE " cannot be locked: %s",
                                          strerror(errno));
                if (!told)
                        log_info("Another nodestrap is at work on this machine; waiting for it to end.");
                r = enter(run, run->stage);
                if (r < 0)
                        return r;
                usleep(LOCK_PAUSE_USEC);
        }
        return 0;
}

/* For the other phase of this boot; without it, that one asks again. */
static void keep_facts(Run *run) {
        _cleanup_(json_decrefp) json_t *status = host_status(run->host);
        Kept kept = { .answers = run->imds ? imds_answers(run->imds) : NULL, .status = status };

        spec_digest(json_object_get(run->config->document, "spec"), kept.spec);
        int r = kept_write(run->root, &kept);
        if (r < 0)
                log_debug("%s cannot be written: %s", KEEP_FILE, strerror(-r));
}

/* apply; the cache is written when the config phase is done, and its loss is no reason to hold up a node. */
static int carry_out(Run *run) {
        int r = enter(run, "apply");
        if (r < 0)
                return r;
        log_info("Applying plan %s.", run->plan->id);
        keep_facts(run);
        r = apply_plan(run->root, run->plan, &run->results, &run->diag);
        run->applied = true;
        if (r < 0 || !run->cache || run->options.skip_config)
                return r;
        _cleanup_(json_decrefp) json_t *status = host_status(run->host);
        Diag ignored = {};
        if (config_cache_write(run->root, run->cache, run->config, status, &ignored) < 0)
                log_warning("%s cannot be written; the next run asks its sources again.", run->cache);
        diag_done(&ignored);
        return r;
}

static int walk(Run *run) {
        const Options *o = &run->options;
        int r = root_new(o->root, &run->root);
        if (r < 0)
                return diag_error(&run->diag, r, CAUSE_USAGE, "--root %s: %s", o->root, strerror(-r));
        run->cache = o->cache ? root_absolute(run->root, o->cache) : NULL;
        if (o->command == COMMAND_STATUS)
                return show_status(o, run->root, &run->diag);
        if (o->command == COMMAND_WAIT) {
                stop_catch();
                join_wait(o, run->root, run->begin_usec, &run->join);
                return 0;
        }
        if (changes_machine(o) && root_is_host(run->root) && geteuid() != 0)
                return diag_error(&run->diag, -EPERM, CAUSE_USAGE,
                                  "init changes the machine and needs root; plan, which shows what it would "
                                  "do, does not");
        if (changes_machine(o))
                stop_catch();           /* from here on a report is owed */
        run->stage = "source";
        r = load_config(run);
        if (r < 0)
                return r;
        if (o->command == COMMAND_CONFIG_DUMP)
                return show_json(o, run->config->document, &run->diag);
        if (o->command == COMMAND_CONFIG_CHECK)
                return config_check_expression(run->config, &run->diag);
        r = enter(run, "detect");
        /* before anything is looked at: another init may be changing just that */
        if (r >= 0 && changes_machine(o))
                r = take_lock(run);
        if (r >= 0)
                r = make_plan(run);
        if (r < 0)
                return r;
        if (o->command == COMMAND_PLAN || o->dry_run) {
                /* What became of the input belongs into what is reviewed, before what planning has to say. */
                diag_move(&run->diag, &run->plan->warnings);
                diag_move(&run->plan->warnings, &run->diag);
                return show_plan(o, run->plan, &run->diag);
        }
        return carry_out(run);
}

/* The last line on stderr carries the first root cause (contract, section 7). */
static ExitCode conclude(Run *run, int r) {
        const Options *o = &run->options;
        if (run->join.done)
                return report_join(run->root, &run->join);
        /* a defect, but never a failure that is reported as a success */
        if (r < 0 && !diag_first_error(&run->diag))
                (void)diag_error(&run->diag, r, CAUSE_INTERNAL, "%s, and nobody said why", strerror(-r));
        Report report = {
                .command = "init",
                .phases = o->skip_run      ? "config"
                          : o->skip_config ? "run"
                                           : "config,run",
                .step = run->stage,
                .begin_usec = run->begin_usec,
                .plan = run->plan,
                .results = run->applied ? &run->results : NULL,
                .diag = &run->diag,
                .imds_requests = run->imds ? imds_requests(run->imds) : 0,
                .ec2_requests = ec2_requests(),
        };
        if (run->stage && changes_machine(o))
                return report_write(run->root, &report);
        report_tell(&run->diag);
        return r >= 0 ? EXIT_DONE : report_tell_failure(&report);
}

static void *allocate(size_t size) {
        return xcalloc(size, 1);
}

/* Whatever the caller left us with: closed standard descriptors, which the next file would take the place of
 * and get our messages; a mask that hides directories from daemons; ended children that nobody can wait for;
 * and a reader of our messages that goes away, or a peer that hangs up, must not end a node's boot half
 * way. */
static void settle_in(void) {
        for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0 &&
                    open("/dev/null", fd == STDIN_FILENO ? O_RDONLY : O_WRONLY) != fd)
                        _exit(EXIT_INTERNAL);
        umask(022);
        signal(SIGCHLD, SIG_DFL);
        signal(SIGPIPE, SIG_IGN);
        json_set_alloc_funcs(allocate, free);   /* so that jansson never answers NULL for want of memory */
}

static int obey(int argc, char **argv, Run *run) {
        const Options *o = &run->options;
        int r = options_parse(argc, argv, &run->options, &run->diag);
        if (r < 0)
                return r;
        if (o->development)
                log_set_level(LOG_DEBUG);
        switch (o->command) {
        case COMMAND_HELP:
        case COMMAND_VERSION:
                return show_about(o, &run->diag);
        case COMMAND_CONFIG_SCHEMA:
                return show_schema(o, &run->diag);
        case COMMAND_TOKEN:
                run->stage = "token";
                return token_print(o, &run->diag);
        default:
                return walk(run);
        }
}

/* A thread that the kernel keeps may come back at any time: what libraries do at exit() (curl, NVIDIA's) must
 * not happen beside it. */
static void leave(const Results *results, ExitCode code) {
        if (results->threads_left == 0)
                return;
        fflush(NULL);
        _exit((int)code);
}

int main(int argc, char **argv) {
        Run run = { .begin_usec = now_usec(), .lock_fd = -1 };

        settle_in();
        ExitCode code = conclude(&run, obey(argc, argv, &run));
        if (code == EXIT_DONE && run.options.command == COMMAND_CONFIG_CHECK)
                log_info("The configuration is valid.");
        leave(&run.results, code);
        run_done(&run);
        return (int)code;
}
