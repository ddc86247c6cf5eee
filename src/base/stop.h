/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A request to stop: SIGTERM, SIGINT, or the SIGHUP of a lost session. Work goes on until it can report why
 * it ended, so look here after an interrupted wait and before the next one. */

#include "base/macro.h"

#include <signal.h>

/* Those that are not ignored. */
_nonnull_ void stop_signals(sigset_t *ret);
/* Only notes them from now on. */
void stop_catch(void);
/* The first signal, or 0. */
int stop_signal(void);
/* "SIGTERM" */
const char *stop_name(int signal);
/* Sleeps until fd is readable (1), an instant or another signal (0); -EINTR: a request to stop, or
 * earlier. */
_must_check_ int stop_wait(int fd, uint64_t until_usec);
