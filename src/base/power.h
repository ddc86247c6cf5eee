/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a process may do beyond reading and writing the files of its user: given up for good, by a command
 * that needs none of it, before it reads what others wrote. For root much remains, for it owns /etc; gone is
 * what reaches past files: modules, mounts, raw devices' and other processes' memory. And for everybody the
 * calls by which the kernel hands powers out anew (user namespaces) or has been broken into most. */
#include "base/macro.h"

/* Bits of keep, numbered as in capabilities(7). */
#define POWER_READ  (1ULL << 2)                         /* CAP_DAC_READ_SEARCH: whosever files */
#define POWER_WRITE (POWER_READ | 1ULL << 1 | 1ULL << 3)        /* and CAP_DAC_OVERRIDE, CAP_FOWNER */
#define POWER_LOOK  (1ULL << 19)                        /* CAP_SYS_PTRACE: into other processes' /proc */
#define POWER_LOG   (1ULL << 34)                        /* CAP_SYSLOG: the kernel's messages */
#define POWER_ALL   UINT64_MAX

/* No core file, and nobody of the same user reads our memory (prctl(2), PR_SET_DUMPABLE). What we execute
 * has that of its own; a fork keeps ours. */
void power_hide_memory(void);
/* For the look of power_needed(): nothing but the right to give up is in effect. power_drop() comes next. */
void power_lower(void);
/* Without powers, may this path be used so (access(2): R_OK, or W_OK: made, or replaced)? 0, or what it
 * takes. A path that is not there is judged by the directory in which it would be. A directory that is read
 * takes POWER_READ: its files are read, whosever they are. */
_must_check_ _nonnull_ uint64_t power_needed(const char *path, int mode);
/* Keeps these capabilities at most, for what it executes, too, which gets no others (no_new_privs); and
 * refuses the calls above, with execve(2) unless it executes. A kernel that has no filters refuses less. */
void power_drop(uint64_t keep, bool executes);
/* Root, but with fewer of its powers than it has elsewhere: below a unit that says so, or in a container? */
bool power_is_limited(void);
/* One of those that were kept has served its turn. */
void power_drop_one(uint64_t power);
