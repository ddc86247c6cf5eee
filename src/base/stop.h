/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A request to stop, SIGTERM or SIGINT, that waits until the work at hand can say why it ended. Whoever waits (a poll, a sleep)
 * looks here when it was interrupted, and before it waits again. */

/* From now on both signals are only noted. */
void stop_catch(void);
/* The first one that came, 0 if none did. */
int stop_signal(void);
/* "SIGTERM" */
const char *stop_name(int signal);
