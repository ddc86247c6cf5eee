/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A command gives up powers that it does not need before it reads foreign input. Root still owns /etc
 * afterwards, but has no modules, mounts, raw devices or memory of other processes. All users lose the calls
 * that grant new powers (user namespaces) or are exploited most. */
#include "base/macro.h"

/* Bits as in capabilities(7). */
#define POWER_READ  (1ULL << 2)                         /* CAP_DAC_READ_SEARCH */
#define POWER_WRITE (POWER_READ | 1ULL << 1 | 1ULL << 3)        /* and CAP_DAC_OVERRIDE, CAP_FOWNER */
#define POWER_LOOK  (1ULL << 19)                        /* CAP_SYS_PTRACE: /proc of other processes */
#define POWER_LOG   (1ULL << 34)                        /* CAP_SYSLOG: kernel messages */
#define POWER_ALL   UINT64_MAX

/* Denies core files, and reads of our memory by the same user (prctl(2), PR_SET_DUMPABLE), until exec. */
void power_hide_memory(void);
/* For power_needed(): disables all powers until power_drop(). */
void power_lower(void);
/* The capabilities for this use of a path (access(2): R_OK, or W_OK to make or replace it); 0: none. Its
 * directory counts for a missing path. A directory that is read needs POWER_READ, for any files in it. */
_must_check_ _nonnull_ uint64_t power_needed(const char *path, int mode);
/* Keeps at most these capabilities, also in programs (no_new_privs). Without executes it denies execve(2). */
void power_drop(uint64_t keep, bool executes);
/* Is this a root with fewer powers, in a restricted unit or a container? */
bool power_is_limited(void);
/* Drops one of the kept powers. */
void power_drop_one(uint64_t power);
