/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names of kernel settings (sysctl.d(5)). If a dot comes first, a slash is a dot
 * ("net.ipv4.conf.eth0/5.forwarding"); if a slash comes first, the reverse
 * ("net/ipv4/conf/eth0.5/forwarding"). */
#include "base/macro.h"

#define SYSCTL_DIR "/proc/sys/"

/* Does this name stay below SYSCTL_DIR? */
_nonnull_ bool sysctl_name_is_valid(const char *name);
/* "vm.max_map_count" → "/proc/sys/vm/max_map_count" */
_malloc_ char *sysctl_path(const char *name);
/* The reverse, for a path without dots. */
_malloc_ char *sysctl_name(const char *path);
/* Would this value make the kernel start a program, as root and outside of all containers? Linux:
 * Documentation/admin-guide/sysctl/kernel.rst and binfmt-misc.rst, fs/ocfs2/stackglue.c; core(5). */
_nonnull_ bool sysctl_names_program(const char *name, const char *value);
