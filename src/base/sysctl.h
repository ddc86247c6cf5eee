/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Names of kernel settings as sysctl.d(5) has them. Where the first separator is a dot, dots separate and a
 * slash stands for a dot ("net.ipv4.conf.eth0/5.forwarding"); where it is a slash, slashes separate and dots
 * are part of names ("net/ipv4/conf/eth0.5/forwarding"). */
#include "base/macro.h"

#define SYSCTL_DIR "/proc/sys/"

/* Does the name lead to a place below SYSCTL_DIR, whatever it says? */
_nonnull_ bool sysctl_name_is_valid(const char *name);
/* "vm.max_map_count" → "/proc/sys/vm/max_map_count" */
_malloc_ char *sysctl_path(const char *name);
/* "/proc/sys/vm/max_map_count" → "vm.max_map_count", where no part of it has a dot */
_malloc_ char *sysctl_name(const char *path);
/* Would this value have the kernel start a program, as root, outside of all containers and of what systemd
 * knows of (Linux: Documentation/admin-guide/sysctl/kernel.rst and binfmt-misc.rst, fs/ocfs2/stackglue.c;
 * core(5))? An empty value takes such a program away. */
_nonnull_ bool sysctl_names_program(const char *name, const char *value);
