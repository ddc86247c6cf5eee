/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Answers of programs and services out of the input of a fuzzer, each behind a line of its own in the file
 * /answers of the tree (tree.h):
 *   $ NAME WORDS   and lines that follow
 * Who asks NAME gets its first answer, then the next one; the last one stays. Programs answer so, too, in
 * place of src/base/run.c: WORDS is the exit status and stderr, and the lines are stdout. A program without
 * an answer is not there. Nothing waits, either: time passes as in fake-clock.h. One source file
 * of a program includes it. */
#include "base/run.h"
#include "fake-clock.h"
#include "tree.h"

#include <poll.h>
#include <time.h>

#define MAX_ANSWERS 200U

typedef struct Answer { char *name, *text; bool used; } Answer;
static struct { char *all; Answer items[MAX_ANSWERS]; size_t n; } answers;

static char *answers_head(char *at) {
        while (at && !startswith(at, "$ ")) {
                at = strchr(at, '\n');
                at += at != NULL;
        }
        return at;
}

_unused_ static void answers_read(const Root *root) {
        answers.n = 0;
        if (root_read(root, "/answers", MAX_INPUT, &answers.all, NULL) < 0)
                return;
        for (char *at = answers_head(answers.all), *next; at && answers.n < MAX_ANSWERS; at = next) {
                next = answers_head(strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL);
                Answer *a = &answers.items[answers.n++];
                *a = (Answer){ .name = at + 2, .text = at + 2 + strcspn(at + 2, " \n") };
                if (next)
                        next[-1] = 0;   /* the newline before it */
                if (*a->text)
                        *a->text++ = 0;
        }
}

_unused_ static void answers_done(void) {
        free(TAKE_PTR(answers.all));
        answers.n = 0;
}

/* The text behind the name, for as long as the answers live; NULL: no answer of that name. */
_unused_ static const char *answer_take(const char *name) {
        Answer *a = NULL;
        for (size_t i = 0; i < answers.n && (!a || a->used); i++)
                if (streq(answers.items[i].name, name))
                        a = &answers.items[i];
        if (!a)
                return NULL;
        a->used = true;
        return a->text;
}

/* ---- in the place of src/base/run.c ---- */

void child_result_done(ChildResult *r) {
        free(r->output);
        free(r->errors);
        *r = (ChildResult){};
}

const char *kill_hint(int signal) {
        (void)signal;
        return "";
}

/* "STATUS [WORDS ON STDERR]", and below it stdout; a status of "late" is one that was killed. */
static int child_answer(char *const *argv, size_t limit, ChildResult *ret) {
        const char *text = answer_take(argv[0]);
        if (!text)
                return -ENOENT;
        size_t line = strcspn(text, "\n"), word = strcspn(text, " \n");
        const char *out = text + line + (text[line] == '\n');
        *ret = (ChildResult){ .status = atoi(text) & 0xff, .timed_out = startswith(text, "late") };
        ret->size = MIN(strlen(out), limit);
        ret->cut = strlen(out) > limit;
        ret->output = xstrndup(out, ret->size);
        ret->errors = xstrndup(text + word, line - word);
        return 0;
}

int child_run(char *const *argv, uint64_t timeout_usec, size_t limit, ChildResult *ret) {
        (void)timeout_usec;
        return child_answer(argv, limit, ret);
}

int child_run_until(char *const *argv, uint64_t deadline_usec, int cancel_fd, size_t limit,
                    ChildResult *ret) {
        (void)deadline_usec, (void)cancel_fd;
        return child_answer(argv, limit, ret);
}

int child_run_joined(char *const *argv, uint64_t deadline_usec, int cancel_fd, size_t limit,
                     ChildResult *ret) {
        (void)deadline_usec, (void)cancel_fd;
        return child_answer(argv, limit, ret);
}

int child_call(int (*call)(void *), void *argument, uint64_t timeout_usec, size_t limit, ChildResult *ret) {
        (void)call, (void)argument, (void)timeout_usec, (void)limit, (void)ret;
        return -ENOSYS;
}

/* ---- in place of the C library: without waiting ---- */

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): its names are reserved ones */
int poll(struct pollfd *fds, nfds_t n, int timeout) {
        for (nfds_t i = 0; i < n; i++)
                fds[i].revents = 0;
        sleep_usec(timeout > 0 ? (uint64_t)timeout * USEC_PER_MSEC : 0);
        return 0;
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): the same */
int nanosleep(const struct timespec *wanted, struct timespec *left) {
        (void)left;
        sleep_usec((uint64_t)wanted->tv_sec * USEC_PER_SEC + (uint64_t)wanted->tv_nsec / 1000);
        return 0;
}
