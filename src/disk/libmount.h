/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* libmount reads mountinfo and explains failed mounts; loaded only on nodes with local disks. */
#include "base/library.h"
#include "base/package.h"

#include <libmount.h>

#define LIBMOUNT_FUNCTIONS(X)                             \
        X(new_context, mnt_new_context)                   \
        X(free_context, mnt_free_context)                 \
        X(set_source, mnt_context_set_source)             \
        X(set_target, mnt_context_set_target)             \
        X(set_fstype, mnt_context_set_fstype)             \
        X(set_options, mnt_context_set_options)           \
        X(disable_helpers, mnt_context_disable_helpers)   \
        X(disable_mtab, mnt_context_disable_mtab)         \
        X(only_writable, mnt_context_enable_rwonly_mount) \
        X(mount, mnt_context_mount)                       \
        X(get_errno, mnt_context_get_syscall_errno)       \
        X(get_excode, mnt_context_get_excode)             \
        X(new_table, mnt_new_table)                       \
        X(unref_table, mnt_unref_table)                   \
        X(set_parser_errcb, mnt_table_set_parser_errcb)   \
        X(parse_file, mnt_table_parse_file)               \
        X(parse_stream, mnt_table_parse_stream)           \
        X(get_nents, mnt_table_get_nents)                 \
        X(new_iter, mnt_new_iter)                         \
        X(free_iter, mnt_free_iter)                       \
        X(next_fs, mnt_table_next_fs)                     \
        X(is_kernel, mnt_fs_is_kernel)                    \
        X(get_id, mnt_fs_get_id)                          \
        X(get_parent_id, mnt_fs_get_parent_id)            \
        X(get_devno, mnt_fs_get_devno)                    \
        X(get_root, mnt_fs_get_root)                      \
        X(get_target, mnt_fs_get_target)                  \
        X(get_fstype, mnt_fs_get_fstype)                  \
        X(get_source, mnt_fs_get_source)                  \
        X(get_option, mnt_fs_get_option)
typedef struct Libmount { LIBMOUNT_FUNCTIONS(LIBRARY_POINTER) } Libmount;
/* Valid after libmount_load(). */
extern Libmount libmount;

/* Loads it once; from any thread. NULL, or the static error. */
_must_check_ const char *libmount_load(void);
