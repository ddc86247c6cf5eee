/* SPDX-License-Identifier: Apache-2.0
 * pull-image → `ctr images import` of the archive that the AMI carries, into the snapshotter SOCI: the copy that containerd holds
 * lies in another snapshotter's store, and nothing can be pulled before kubelet has credentials (nodeadm:
 * internal/containerd/sandbox_image.go). Once a boot, unless the archive changes. */
#include "apply/executor.h"

#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARCHIVE "/etc/eks/pause.tar"
#define RECORD  APPLY_RUN_DIR "/started/pause.tar"
#define WORDS_MAX 4096

typedef struct Child {
        Task *task;
        pid_t pid;
        int pidfd, output;
        sd_event_source *source;
        char *identity;         /* of the archive */
} Child;

static char *archive_identity(const Root *root) {
        struct stat st;
        int fd = root_open(root, ARCHIVE, O_PATH);
        char *identity = NULL;
        if (fd < 0)
                return NULL;
        if (fstat(fd, &st) == 0)
                identity = xasprintf("%ju %ju %jd.%09ld", (uintmax_t)st.st_ino, (uintmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
        close(fd);
        return identity;
}

int image_check(Task *t) {
        const Root *root = t->apply->root;
        _cleanup_(freep) char *identity = archive_identity(root), *record = NULL;
        if (!identity) {
                diag_warn(t->apply->diag, "no-image-archive", NULL, t->action->id,
                          ARCHIVE " is not there, so the sandbox image is left to containerd; the first pod fails if it cannot pull it");
                return CHECK_DONE_ALREADY;
        }
        if (root_read_line(root, RECORD, &record) >= 0 && streq(record, identity))
                return CHECK_DONE_ALREADY;
        Child *c = xcalloc(1, sizeof *c);
        *c = (Child){ .task = t, .pidfd = -1, .output = -1, .identity = TAKE_PTR(identity) };
        t->data = c;
        return CHECK_NEEDED;
}

/* The last line that the child wrote: Go programs put their reason there. */
static char *last_words(const Child *c) {
        char words[WORDS_MAX + 1];
        struct stat st = {};
        (void)fstat(c->output, &st);
        ssize_t n = pread(c->output, words, WORDS_MAX, MAX(st.st_size - WORDS_MAX, 0));
        words[MAX(n, 0)] = 0;
        _cleanup_(freep) char *text = str_strip(words);
        const char *line = strrchr(text, '\n');
        char *copy = xstrdup(line ? line + 1 : text);
        for (char *p = copy; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = ' ';
        return copy;
}

static int on_child(_unused_ sd_event_source *s, _unused_ int fd, _unused_ uint32_t events, void *userdata) {
        Child *c = userdata;
        siginfo_t info = {};
        int r = waitid(P_PID, (id_t)c->pid, &info, WEXITED) < 0 ? -errno : 0;
        c->pid = 0;
        if (r >= 0 && info.si_code == CLD_EXITED && info.si_status == 0) {
                _cleanup_(freep) char *line = xasprintf("%s\n", c->identity);
                if (root_replace(c->task->apply->root, RECORD, line, strlen(line), 0644) < 0)
                        log_debug("%s cannot be written; the next run imports the image again", RECORD);
                task_end(c->task, OUTCOME_DONE);
                return 0;
        }
        _cleanup_(freep) char *words = last_words(c);
        (void)task_fail(c->task, -EIO, CAUSE_COMMAND, "ctr could not import " ARCHIVE ": it %s %d; last said \"%s\"",
                        info.si_code == CLD_EXITED ? "exited with status" : "was killed by signal", info.si_status, words);
        return 0;
}

static int spawn(Child *c) {
        static const char *const words[] = { "ctr", "--namespace", "k8s.io", "images", "import", "--snapshotter", "soci",
                                             "--discard-unpacked-layers=false", "--local", ARCHIVE, NULL };
        posix_spawn_file_actions_t actions;
        posix_spawnattr_t attributes;
        sigset_t none;

        sigemptyset(&none);     /* ours holds SIGTERM back */
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, c->output, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, c->output, STDERR_FILENO);
        posix_spawnattr_init(&attributes);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setsigmask(&attributes, &none);
        int r = -posix_spawnp(&c->pid, words[0], &actions, &attributes, (char *const *)words, environ);
        posix_spawnattr_destroy(&attributes);
        posix_spawn_file_actions_destroy(&actions);
        if (r < 0)
                c->pid = 0;
        return r;
}

int image_start(Task *t) {
        Child *c = t->data;
        sd_event *event = NULL;
        c->output = memfd_create("ctr", MFD_CLOEXEC);
        int r = c->output < 0 ? -errno : spawn(c);
        if (r == -ENOENT)
                return task_fail(t, r, CAUSE_COMMAND, "ctr is not installed; it belongs to containerd");
        if (r >= 0 && (c->pidfd = pidfd_open(c->pid, 0)) < 0)
                r = -errno;
        if (r >= 0)
                r = apply_event(t->apply, &event);
        if (r >= 0)
                r = sd_event_add_io(event, &c->source, c->pidfd, EPOLLIN, on_child, c);
        return r < 0 ? task_fail(t, r, CAUSE_COMMAND, "ctr cannot be run: %s", strerror(-r)) : 0;
}

char *image_waiting(Task *t) {
        _cleanup_(freep) char *words = t->data ? last_words(t->data) : xstrdup("");
        return xasprintf("ctr was importing " ARCHIVE "%s%s%s", *words ? "; last said \"" : "", words, *words ? "\"" : "");
}

void image_release(Task *t) {
        Child *c = t->data;
        if (!c)
                return;
        c->source = sd_event_source_disable_unref(c->source);
        if (c->pid > 0) {               /* given up: the whole group goes */
                kill(-c->pid, SIGKILL);
                (void)waitid(P_PID, (id_t)c->pid, &(siginfo_t){}, WEXITED);
        }
        if (c->pidfd >= 0)
                close(c->pidfd);
        if (c->output >= 0)
                close(c->output);
        free(c->identity);
        free(c);
}
