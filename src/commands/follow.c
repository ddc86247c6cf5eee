/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap status --follow`: prints the progress of inits until the boot has a verdict. inotify(7) reports
 * new lines. It asks systemd and looks for processes only after an init has ended, and every few seconds. */
#include "commands/output.h"
#include "commands/run.h"

#include "base/json.h"
#include "base/progress.h"
#include "base/time.h"
#include "report/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#define LOOK_USEC (2 * USEC_PER_SEC)
#define READ_MAX  (64 << 10)

typedef struct Follow {
        const Root *root;
        int inotify_fd;
        bool watches;                   /* RUN_DIR; false: /run, where it will appear */
        off_t offset;                   /* of the file, whole lines */
        json_t *processes;              /* progress_take() */
        bool ended;                     /* a process has, since the last look */
} Follow;

static void follow_done(Follow *f) {
        close_fd(&f->inotify_fd);
        json_decref(f->processes);
}

/* of: a process or a step, for its time; or NULL */
static void print_line(int64_t usec, const char *phases, const char *word, const char *what,
                       const json_t *of) {
        int64_t begin = json_integer_value(json_object_get(of, "beginUsec"));
        _free_ char *when = usec_text(usec), *took = usec_text(usec - begin);
        printf("%9s  %-18s %-9s", when, phases, word);
        if (*what)
                printf("  %s", what);
        if (begin > 0)
                printf(" (%s)", took);
        printf("\n");
}

static void on_line(const ProgressLine *line, void *userdata) {
        Follow *f = userdata;
        _free_ char *key = xasprintf("%d", line->pid);
        const json_t *process = json_object_get(f->processes, key);
        const char *phases = json_get_text(process, "phases"), *word = line->word;
        if (streq(word, "start"))
                print_line(line->usec, line->what, "begun", "", NULL);
        else if (streq(word, "end"))
                print_line(line->usec, phases, line->what, "", process);
        else
                print_line(line->usec, phases, streq(word, "begin") ? "..." : word, line->what,
                           progress_step(process, line->what));
        f->ended = f->ended || streq(word, "end");
        progress_take(line, f->processes);
}

/* The file starts again at 0 when it is too long. */
static void read_lines(Follow *f) {
        _cleanup_(close_fd) int fd = root_open(f->root, PROGRESS_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
        _free_ char *text = xcalloc(1, READ_MAX + 1);
        struct stat st;
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return;
        if (st.st_size < f->offset)
                f->offset = 0;
        for (;;) {
                ssize_t n = pread(fd, text, READ_MAX, f->offset);
                if (n <= 0)
                        return;
                text[n] = 0;
                size_t taken = progress_parse(text, on_line, f);
                if (taken == 0)         /* an incomplete line, or an invalid one */
                        return;
                f->offset += (off_t)taken;
        }
}

static int watch(Follow *f) {
        static const char run[] = "/run";
        bool there = root_exists(f->root, RUN_DIR) == 1;
        if (f->watches)
                return 0;
        _cleanup_(close_fd) int fd = root_open(f->root, there ? RUN_DIR : run, O_RDONLY | O_DIRECTORY);
        _free_ char *path = xasprintf("/proc/self/fd/%d", fd);
        if (fd < 0 || inotify_add_watch(f->inotify_fd, path, IN_CREATE | IN_MODIFY | IN_MOVED_TO) < 0)
                return fd < 0 ? fd : -errno;
        f->watches = there;
        return 0;
}

static int follow(Follow *f, Status *status, Diag *diag) {
        for (uint64_t next = 0;;) {
                int r = watch(f);
                if (r < 0)
                        return diag_error(diag, r, r == -ENOENT ? CAUSE_SOURCE : CAUSE_INTERNAL,
                                          RUN_DIR " below %s cannot be watched: %s", root_path(f->root),
                                          strerror(-r));
                read_lines(f);
                if (fflush(stdout) != 0)
                        return output_end(diag);
                if (f->ended || now_usec() >= next) {
                        r = status_now(f->root, true, status, diag);
                        if (r < 0 || status_exit(status) != EXIT_UNFINISHED)
                                return r;
                        f->ended = false;
                        next = now_usec() + LOOK_USEC;
                }
                r = stop_wait(f->inotify_fd, next);
                if (r < 0)
                        return r == -EINTR ? 0 : diag_error(diag, r, CAUSE_INTERNAL, "the wait failed: %s",
                                                            strerror(-r));
                for (char events[4096]; read(f->inotify_fd, events, sizeof events) > 0;)
                        ;
        }
}

int status_follow(Run *run) {
        _cleanup_(status_done) Status status = {};
        _cleanup_(follow_done) Follow f = { .root = run->root,
                                            .inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK),
                                            .processes = json_object() };
        if (f.inotify_fd < 0)
                return diag_error(&run->diag, -errno, CAUSE_INTERNAL, "inotify: %s", strerror(errno));
        stop_catch();
        output_begin();
        int r = follow(&f, &status, &run->diag);
        if (r < 0 || !status.json)
                return r;
        printf("\n");
        status_show(run->root, &status, run->options.whole);
        run->reported = true;
        run->exit_code = status_exit(&status);
        return output_end(&run->diag);
}
