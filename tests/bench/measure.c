/* SPDX-License-Identifier: Apache-2.0
 * Runs a command once and prints what it cost, one line of "name value". A small C program does it because a
 * child's peak memory counts the process it was forked from, and Python's would hide what is measured.
 *
 * usage: measure COMMAND [ARGUMENT...]     its output goes to stderr; exit status: the command's */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double seconds(struct timeval t) {
        return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

int main(int argc, char **argv) {
        struct rusage usage;
        int status = 0;
        if (argc < 2)
                return 2;
        double begin = now();
        pid_t pid = fork();
        if (pid == 0) {
                dup2(STDERR_FILENO, STDOUT_FILENO);
                execv(argv[1], argv + 1);
                perror(argv[1]);
                _exit(127);
        }
        if (pid < 0 || wait4(pid, &status, 0, &usage) < 0)
                return 127;
        double wall = now() - begin;
        printf("wall %.6f\ncpu %.6f\nrss_kib %ld\nread_bytes %ld\n", wall,
               seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss, usage.ru_inblock * 512);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
