/* SPDX-License-Identifier: Apache-2.0 */
/* Holds the namespaces of a pod: waits until a signal ends it, and reaps the others as first process of its
 * container. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signal) {
        (void)signal;
        _exit(0);
}

static void reap(int signal) {
        (void)signal;
        while (waitpid(-1, NULL, WNOHANG) > 0)
                continue;
}

int main(void) {
        signal(SIGTERM, end);
        signal(SIGINT, end);
        signal(SIGCHLD, reap);
        for (;;)
                pause();
}
