/* SPDX-License-Identifier: Apache-2.0 */
/* What holds a pod's namespaces: waits until it is told to end, as the first process of its container reaps the others. */
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
