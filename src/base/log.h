/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One line on stderr for each message. Log where an error is handled, and once. */
#include "base/macro.h"
#include <syslog.h>

/* Is stderr the journal, where "<N>" is the priority of a line? */
bool log_to_journal(void);
/* LOG_DEBUG … LOG_ERR; the default is LOG_INFO */
void log_set_level(int level);
void log_line(int level, const char *format, ...) _printf_(2, 3);
/* Logs with ": " and strerror(-r); returns r. */
int log_line_errno(int level, int r, const char *format, ...) _printf_(3, 4);

#define log_debug(...)   log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)    log_line(LOG_INFO, __VA_ARGS__)
#define log_warning(...) log_line(LOG_WARNING, __VA_ARGS__)
#define log_error(...)   log_line(LOG_ERR, __VA_ARGS__)
