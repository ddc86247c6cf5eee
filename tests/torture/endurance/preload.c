/* SPDX-License-Identifier: Apache-2.0
 * Preloaded (ld.so(8)) into one program, whose name is that of $ENDURANCE_OF, by tests/torture/endurance.sh and its guests:
 *   ENDURANCE_ACCOUNT=FILE  gets a line at the end of the process: its peak of memory in kB, CPU in ms, and its open descriptors
 *   ENDURANCE_JUMPS=LIST    CLOCK_REALTIME is wrong by the seconds of this list, such as "0 315360000 -1700000000".
 *                           Each call of a clock takes the next one; the last one stays
 *   ENDURANCE_JUMPED=FILE   gets a line at the end of the process: how often the clock has jumped, there or back
 *   ENDURANCE_SPEED=N       sleeps end N times as early, and CLOCK_MONOTONIC is ahead by the time left out:
 *                           hours of retries end in seconds. It does not affect timerfd (sd-event). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE         /* lint passes it as the Makefile does */
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long speed = 1;
static unsigned char inherited[1024];
static char *jumps;
static const char *account, *jumped;
static long off, count;
static long long left_out;       /* ns */

static void *real(const char *name) {
        return dlsym(RTLD_NEXT, name);
}

static long jump(void) {
        if (jumps && *jumps) {
                char *end;
                long next = strtol(jumps, &end, 10);
                if (end == jumps)
                        jumps = NULL;
                else {
                        count += next != off;
                        off = next;
                        jumps = end;
                }
        }
        return off;
}

static long long nsec_of(const struct timespec *t) {
        return t->tv_sec * 1000000000LL + t->tv_nsec;
}

static struct timespec timespec_of(long long nsec) {
        return (struct timespec){ nsec / 1000000000LL, nsec % 1000000000LL };
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): stand-ins for the C library */
int clock_gettime(clockid_t clock, struct timespec *t) {
        static int (*next)(clockid_t, struct timespec *);
        if (!next)
                *(void **)&next = real("clock_gettime");
        int r = next(clock, t);
        if (r < 0)
                return r;
        if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)
                t->tv_sec += jump();
        else if (speed > 1 && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_BOOTTIME)) {
                *t = timespec_of(nsec_of(t) + left_out);
        }
        return r;
}

time_t time(time_t *ret) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        if (ret)
                *ret = t.tv_sec;
        return t.tv_sec;
}

int gettimeofday(struct timeval *t, void *zone) {
        struct timespec now;
        (void)zone;
        clock_gettime(CLOCK_REALTIME, &now);
        *t = (struct timeval){ now.tv_sec, now.tv_nsec / 1000 };
        return 0;
}

int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask) {
        static int (*next)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
        if (!next)
                *(void **)&next = real("ppoll");
        struct timespec t = timeout ? timespec_of(nsec_of(timeout) / speed) : (struct timespec){ 0 };
        int r = next(fds, n, timeout ? &t : NULL, mask);
        if (r == 0 && timeout)
                left_out += nsec_of(timeout) - nsec_of(&t);
        return r;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t, struct timespec *left) {
        static int (*next)(clockid_t, int, const struct timespec *, struct timespec *);
        if (!next)
                *(void **)&next = real("clock_nanosleep");
        if (flags & TIMER_ABSTIME)
                return next(clock, flags, t, left);
        struct timespec s = timespec_of(nsec_of(t) / speed);
        left_out += nsec_of(t) - nsec_of(&s);
        return next(clock, 0, &s, left);
}

int usleep(useconds_t usec) {
        struct timespec t = timespec_of(usec * 1000LL);
        return clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

__attribute__((constructor)) static void begin(void) {
        const char *of = getenv("ENDURANCE_OF"), *text;
        if (of && strcmp(program_invocation_short_name, of) != 0)
                return;
        for (int fd = 0; fd < 1024; fd++)
                inherited[fd] = fcntl(fd, F_GETFD) >= 0;
        account = getenv("ENDURANCE_ACCOUNT");
        jumps = getenv("ENDURANCE_JUMPS");
        jumped = getenv("ENDURANCE_JUMPED");
        text = getenv("ENDURANCE_SPEED");
        speed = text ? atol(text) : 1;
}

__attribute__((destructor)) static void end(void) {
        struct rusage usage;
        FILE *file = jumped ? fopen(jumped, "ae") : NULL;
        if (file) {
                fprintf(file, "%ld\n", count);
                fclose(file);
        }
        if (!account)
                return;
        file = fopen(account, "ae");
        DIR *dir = opendir("/proc/self/fd");
        if (!file || !dir)
                return;
        getrusage(RUSAGE_SELF, &usage);
        char line[4096] = "", status[128];
        long peak = 0;
        FILE *s = fopen("/proc/self/status", "re");
        while (s && fgets(status, sizeof status, s))
                (void)sscanf(status, "VmHWM: %ld", &peak);
        if (s)
                fclose(s);
        for (struct dirent *e; (e = readdir(dir));) {
                int fd = atoi(e->d_name);
                if (e->d_name[0] == '.' || fd <= STDERR_FILENO || fd == dirfd(dir) || fd == fileno(file) || (fd < 1024 && inherited[fd]))
                        continue;
                char path[64], target[256] = "?";
                snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
                ssize_t n = readlink(path, target, sizeof target - 1);
                target[n < 0 ? 0 : n] = 0;
                snprintf(line + strlen(line), sizeof line - strlen(line), " %s", target);
        }
        closedir(dir);
        fprintf(file, "%ld %ld%s\n", peak, usage.ru_utime.tv_sec * 1000 + usage.ru_utime.tv_usec / 1000 + usage.ru_stime.tv_sec * 1000 + usage.ru_stime.tv_usec / 1000, line);
        fclose(file);
}
