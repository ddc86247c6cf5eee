/* SPDX-License-Identifier: Apache-2.0
 * Tasks on threads. A thread signals its end by an eventfd in the loop, and is cancelled by another.
 *
 * An abandoned thread may stay in a system call that no signal interrupts, e.g. mount(2) of a dead disk. The
 * run waits a moment and then ends without it, to write its report. So each thread has its own Root and a
 * reference to the plan, and frees them if it returns. */
#include "apply/engine.h"

#include "base/log.h"
#include "base/package.h"
#include "base/run.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define PATIENCE_USEC (3 * USEC_PER_SEC)        /* for abandoned threads, at the end of the run */
#define PROGRESS_USEC (10 * USEC_PER_SEC)
#define OUTPUT_MAX (64 << 10)                   /* of a program with an answer */
#define HEARD_MAX (1 << 20)                     /* of a program whose warnings count */
#define WORDS_MAX 400                           /* characters of a last line */
#define WORDS_KEPT 2048                         /* bytes of output after the message */
#define COMMAND_MAX 60                          /* characters of an argument vector */
#define PATIENCE_MARGIN_USEC (2 * USEC_PER_SEC)

struct Job {
        Work work;
        Plan *plan;                     /* a reference */
        Root *root;
        int (*function)(Work *w);
        void (*done)(Work *w);          /* frees data of the caller; or NULL */
        int result;                     /* of the thread, read after the join */
        pthread_mutex_t lock;
        char *at, *also;                /* under the lock, like the next four */
        const Action *on;               /* the action of `at` */
        json_t *found;
        Cause cause;                    /* of work_draft() */
        bool orphan;                    /* the loop has left it to the thread */
        int ended_fd;
        int *kept; size_t n_kept;       /* of the thread until it ends */
        Task *task;                     /* NULL: files.c checks its end */
        pthread_t thread;
        bool running;
        sd_event_source *source;
        uint64_t told_usec;             /* of the thread: last work_progress() message */
        Job *next;
};

static void close_all(int *fds, size_t n) {
        while (n > 0)
                close(fds[--n]);
        free(fds);
}

Job *job_free(Job *j) {
        /* Removed before close: a forked child may hold a copy of the descriptor, which would stay in epoll
         * with a freed source. */
        j->source = sd_event_source_disable_unref(j->source);
        close_all(j->kept, j->n_kept);
        if (j->ended_fd >= 0)
                close(j->ended_fd);
        if (j->work.cancel_fd >= 0)
                close(j->work.cancel_fd);
        if (j->done)
                j->done(&j->work);
        pthread_mutex_destroy(&j->lock);
        plan_free(j->plan);
        root_free(j->root);
        free(j->work.text);
        strv_free(j->work.given);
        json_decref(j->work.found);
        diag_done(&j->work.warnings);
        json_decref(j->found);
        FREE_ALL(j->also, j->at, j);
        return NULL;
}

static void *job_run(void *userdata) {
        Job *j = userdata;
        j->result = j->function(&j->work);
        pthread_mutex_lock(&j->lock);
        bool orphan = j->orphan;
        if (!orphan)
                (void)!eventfd_write(j->ended_fd, 1);
        pthread_mutex_unlock(&j->lock);
        if (orphan)
                job_free(j);
        return NULL;
}

static void job_join(Job *j) {
        pthread_join(j->thread, NULL);
        j->running = false;
}

static void task_worked(Task *t, Job *j) {
        t->result->found = TAKE_PTR(j->work.found);
        diag_move(t->apply->diag, &j->work.warnings);
        if (j->work.turn_fd > 0)
                *t->apply->turn_fd = j->work.turn_fd;
        if (j->result < 0)
                (void)task_fail(t, j->result, j->work.cause ?: CAUSE_INTERNAL, "%s",
                                j->work.text ?: strerror(-j->result));
        else if (j->work.skips) {
                t->result->end_usec = now_usec();
                task_skip(t, TAKE_PTR(j->work.text), false);
        } else
                task_end(t, j->result > 0 ? OUTCOME_DONE : OUTCOME_UNCHANGED);
}

static int on_ended(_unused_ sd_event_source *s, _unused_ int fd, _unused_ uint32_t events, void *userdata) {
        Job *j = userdata;
        job_join(j);
        if (j->task)
                task_worked(j->task, j);
        return 0;
}

static int flag_open(int *ret) {
        *ret = eventfd(0, EFD_CLOEXEC);
        return *ret < 0 ? -errno : 0;
}

static Job *job_new(Apply *a, const Action *action, int (*function)(Work *w)) {
        Job *j = xcalloc(1, sizeof *j);
        *j = (Job){ .work = { .plan = a->plan, .action = action, .cancel_fd = -1, .job = j,
                              .early = !plan_has_phase(a->plan, PHASE_RUN) },
                    .plan = plan_ref(a->plan),
                    .function = function,
                    .ended_fd = -1 };
        pthread_mutex_init(&j->lock, NULL);
        return j;
}

static int job_begin(Job *j, Apply *a) {
        sd_event *event = NULL;
        int r = apply_event(a, &event);
        THEN(r, root_new(root_path(a->root), &j->root));
        THEN(r, flag_open(&j->ended_fd));
        THEN(r, flag_open(&j->work.cancel_fd));
        THEN(r, sd_event_add_io(event, &j->source, j->ended_fd, EPOLLIN, on_ended, j));
        j->work.root = j->root;
        THEN(r, -pthread_create(&j->thread, NULL, job_run, j));
        j->running = r >= 0;
        return r;
}

int work_start(Task *t, int (*function)(Work *w), char **given) {
        Job *j = job_new(t->apply, t->action, function);
        t->data = j;
        j->task = t;
        j->work.given = given;
        j->work.waited_usec = t->waited_usec;
        int r = sd_event_source_get_time(t->deadline, &j->work.deadline_usec);
        THEN(r, job_begin(j, t->apply));
        return r < 0 ? task_fail(t, r, CAUSE_INTERNAL, "cannot start a thread for it: %m") : 0;
}

char *work_waiting(Task *t) {
        Job *j = t->data;
        if (!j)
                return xstrdup(t->action->target);
        pthread_mutex_lock(&j->lock);
        char *at = xasprintf("%s%s%s", j->at ?: t->action->target, j->also ? "; also: " : "", j->also ?: "");
        pthread_mutex_unlock(&j->lock);
        return at;
}

Cause work_late(const Task *t) {
        Job *j = t->data;
        if (!j)
                return t->executor->overdue;
        pthread_mutex_lock(&j->lock);
        Cause cause = j->cause ?: t->executor->overdue;
        pthread_mutex_unlock(&j->lock);
        return cause;
}

void work_cancel(Task *t) {
        Job *j = t->data;
        if (j && j->running)
                (void)!eventfd_write(j->work.cancel_fd, 1);
}

void work_release(Task *t) {
        Apply *a = t->apply;
        Job *j = t->data;
        if (j && j->running) {
                j->source = sd_event_source_disable_unref(j->source);
                pthread_mutex_lock(&j->lock);
                t->result->found = TAKE_PTR(j->found);
                pthread_mutex_unlock(&j->lock);
                j->next = a->jobs;
                a->jobs = j;
        } else if (j) {
                while (j->n_kept > 0)
                        *APPEND(a->kept, a->n_kept) = j->kept[--j->n_kept];
                job_free(j);
        }
        if (a->n_kept > 0 &&
            !ANY(o, a->tasks, a->n, o->state != TASK_ENDED && action_is(o->action, ACTION_OF_STORAGE))) {
                close_all(a->kept, a->n_kept);
                a->kept = NULL;
                a->n_kept = 0;
        }
}

bool job_ended(Job *j, uint64_t instant) {
        struct pollfd ended = { .fd = j->ended_fd, .events = POLLIN };
        int n = 0;
        for (uint64_t now = now_usec(); j->running && n <= 0 && now < instant; now = now_usec())
                n = poll(&ended, 1, (int)((instant - now + 999) / 1000));
        if (j->running && poll(&ended, 1, 0) > 0)
                job_join(j);
        return !j->running;
}

bool job_leave(Job *j, Apply *a) {
        pthread_t thread = j->thread;
        j->source = sd_event_source_disable_unref(j->source);
        pthread_mutex_lock(&j->lock);
        bool left = j->orphan = !job_ended(j, 0);
        pthread_mutex_unlock(&j->lock);
        if (left)
                pthread_detach(thread);
        *a->threads_left += left;
        return left;
}

void work_wait(Apply *a) {
        uint64_t instant = now_usec() + PATIENCE_USEC;
        while (a->jobs) {
                Job *j = a->jobs;
                a->jobs = j->next;
                if (!job_ended(j, instant))
                        log_warning("%s: a system call hangs; nodestrap goes on without it; see dmesg",
                                    j->work.action->id);
                if (!job_leave(j, a))
                        job_free(j);
        }
}

int job_start(Apply *a, const Action *first, Files *files, int (*function)(Work *w), void (*done)(Work *w),
              Job **ret) {
        Job *j = job_new(a, first, function);
        j->done = done;
        j->work.files = files;
        j->work.pruning = TAKE_PTR(a->pruning);
        (void)work_at(&j->work, "starting to write it");
        int r = job_begin(j, a);
        if (r < 0 && j->root)           /* better late than never */
                r = function(&j->work);
        if (r < 0)
                job_free(j);
        else
                *ret = j;
        return r;
}

Work *job_work(Job *j) {
        return &j->work;
}

char *job_at(Job *j, const Action **ret) {
        pthread_mutex_lock(&j->lock);
        char *at = xstrdup_or_null(j->at);
        *ret = j->on;
        pthread_mutex_unlock(&j->lock);
        return at;
}

void work_keep(Work *w, int fd) {
        Job *j = w->job;
        if (!j) {
                close(fd);
                return;
        }
        *APPEND(j->kept, j->n_kept) = fd;
}

int work_fail(Work *w, int r, Cause cause, const char *format, ...) {
        errno = -r;     /* for %m */
        RENEW(w->text, FORMATTED(format));
        w->cause = cause;
        return r;
}

int work_miss(Work *w, int r, Cause cause, const char *code, const char *format, ...) {
        _free_ char *text = FORMATTED(format);
        if (!w->action->lenient)
                return work_fail(w, r, cause, "%s", text);
        diag_warn_at(&w->warnings, code, NULL, w->action->id, "%.*s", (int)strcspn(text, "\n"), text);
        return 0;
}

uint64_t work_patience(const Work *w) {
        uint64_t now = now_usec(), left = w->deadline_usec > now ? w->deadline_usec - now : 0;
        return now + left - MIN(left / 10, PATIENCE_MARGIN_USEC);
}

bool work_at(Work *w, const char *format, ...) {
        Job *j = w->job;
        if (!j)
                return true;
        char *text = FORMATTED(format);
        pthread_mutex_lock(&j->lock);
        RENEW(j->at, text);
        j->on = w->action;
        bool left = j->orphan;
        pthread_mutex_unlock(&j->lock);
        return !left;
}

void work_draft(Work *w, json_t *found, Cause cause, char *also) {
        Job *j = w->job;
        if (!j) {
                json_decref(found);
                free(also);
                return;
        }
        pthread_mutex_lock(&j->lock);
        json_decref(j->found);
        free(j->also);
        j->found = found;
        j->cause = cause;
        j->also = also;
        pthread_mutex_unlock(&j->lock);
}

bool work_pause(Work *w, uint64_t usec) {
        struct pollfd cancelled = { .fd = w->cancel_fd, .events = POLLIN };
        for (uint64_t now = now_usec(), end = now + usec; now < end; now = now_usec())
                if (poll(&cancelled, 1, (int)((end - now + 999) / 1000)) > 0)
                        return false;
        return poll(&cancelled, 1, 0) <= 0;
}

void work_progress(Work *w, const char *format, ...) {
        Job *j = w->job;
        _free_ char *text = FORMATTED(format);
        uint64_t now = now_usec();
        work_at(w, "%s", text);
        if (!j)
                return;
        j->told_usec = j->told_usec ?: now;
        if (now - j->told_usec < PROGRESS_USEC)
                return;
        j->told_usec = now;
        log_info("%s: %s", w->action->id, text);
}

char **command(const char *word, ...) {
        char **argv = NULL;
        va_list ap;
        va_start(ap, word);
        for (; word; word = va_arg(ap, const char *))
                strv_add(&argv, word);
        va_end(ap);
        return argv;
}

static const char *hint_for(Cause cause) {
        static const char disk[] =
                "; dmesg shows whether a disk is failing; if a disk is broken, replace the instance";
        static const char module[] =
                "; modinfo shows whether the image has it for this kernel, and dmesg why the kernel "
                "refused it";
        static const char driver[] =
                "; modinfo shows whether the image has it for this kernel, and dmesg (NVRM) why the kernel "
                "refused it. If a pod installs the driver (NVIDIA GPU operator), set "
                "spec.accelerator.nvidia.mode: off";
        static const struct { Cause cause; const char *hint; } hints[] = {
                { CAUSE_ARRAY, disk },
                { CAUSE_FILESYSTEM, disk },
                { CAUSE_MODULE, module },
                { CAUSE_EFA, module },
                { CAUSE_DRIVER, driver },
                { CAUSE_NVIDIA_SMI, "; dmesg (NVRM, Xid) shows what happened to the driver" },
                { CAUSE_CDI, "; nvidia-smi -L must list every GPU, and the MIG devices of those in MIG "
                             "mode" },
        };
        return PICK(h, hints, ARRAY_SIZE(hints), h->cause == cause, h->hint, "");
}

static int fail_to_succeed(Work *w, Cause cause, const char *what, const char *program,
                           const ChildResult *c) {
        /* Most programs report on stderr, nvidia-smi on stdout. */
        size_t skipped = c->size > WORDS_KEPT ? c->size - WORDS_KEPT : 0;
        _free_ char *words = str_strip(*c->errors ? c->errors : c->output + skipped);
        const char *last = strrchr(words, '\n');
        Text t = {};
        last = last ? last + 1 : words;
        if (w->action->quiet)
                text_add(&t, "; its output may hold secrets and is not repeated");
        else if (*last) {
                text_add(&t, ", last said \"");
                text_add_shown(&t, last, strlen(last), WORDS_MAX, '"');
                text_add(&t, "\"");
        }
        text_add(&t, "%s", hint_for(cause));
        if (last != words && !w->action->quiet)
                text_add(&t, "\n%s", words);
        if (c->status > 128 && c->status <= 128 + SIGRTMAX)     /* nvidia-smi itself exits with 255 */
                (void)work_fail(w, -EIO, cause, "%s: %s was killed by signal %d%s%s", what, program,
                                c->status - 128, kill_hint(c->status - 128), t.data);
        else
                (void)work_fail(w, -EIO, cause, "%s: %s exited with status %d%s", what, program, c->status,
                                t.data);
        text_done(&t);
        return -EIO;
}

typedef int RunProgram(char *const *argv, uint64_t deadline, int cancel_fd, size_t limit, ChildResult *ret);

static int ask(Work *w, Cause cause, const char *what, char *const *argv, RunProgram *run, size_t limit,
               char **ret_output) {
        _cleanup_(child_result_done) ChildResult c = {};
        _free_ char *line = strv_join(argv, " ");
        Text t = {};
        text_add_shown(&t, line, strlen(line), COMMAND_MAX, 0);
        work_at(w, "%s was running", t.data);
        text_done(&t);
        /* the loop enforces the deadline */
        int r = run(argv, UINT64_MAX, w->cancel_fd, limit, &c);
        work_at(w, "%s had ended", argv[0]);
        if (r < 0) {
                if (r == -ENOENT || r == -EACCES)
                        return work_fail(
                                w, r, cause_exit_code(cause) == EXIT_STORAGE ? CAUSE_STORAGE_TOOL : cause,
                                "%s: %s %s; the image needs %s", what, argv[0],
                                r == -ENOENT ? "is missing" : "is not executable", package_of(argv[0]));
                return work_fail(w, r, cause, "%s: %s cannot be started: %m", what, argv[0]);
        }
        if (c.timed_out)
                return work_fail(w, -ECANCELED, cause, "%s: %s was stopped", what, argv[0]);
        if (c.status != 0)
                return fail_to_succeed(w, cause, what, argv[0], &c);
        if (ret_output)
                *ret_output = TAKE_PTR(c.output);
        return 0;
}

int work_ask(Work *w, Cause cause, const char *what, char *const *argv, char **ret_output) {
        return ask(w, cause, what, argv, child_run_until, OUTPUT_MAX, ret_output);
}

int work_hear(Work *w, Cause cause, const char *what, char *const *argv, char **ret_words) {
        return ask(w, cause, what, argv, child_run_joined, HEARD_MAX, ret_words);
}

int work_run(Work *w, Cause cause, const char *what, char *const *argv) {
        return work_ask(w, cause, what, argv, NULL);
}
