/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A request to stop, SIGTERM, SIGINT or the SIGHUP of a session that is lost, that waits until the work at
 * hand can say why it ended. Whoever waits (a poll, a sleep) looks here when it was interrupted, and before
 * it waits again. */

#include "base/macro.h"

#include <signal.h>

/* These signals, without one that is to be ignored. */
_nonnull_ void stop_signals(sigset_t *ret);
/* From now on they are only noted. */
void stop_catch(void);
/* The first one that came, 0 if none did. */
int stop_signal(void);
/* "SIGTERM" */
const char *stop_name(int signal);
/* Sleeps until fd is readable (1), or until an instant of CLOCK_MONOTONIC, or a signal that is no request
 * (0): look at the clock; -EINTR where it was one, also if it came before. */
_must_check_ int stop_wait(int fd, uint64_t until_usec);
