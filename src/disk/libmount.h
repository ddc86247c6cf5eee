/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* libmount, loaded where there are local disks: it reads mountinfo, and knows why a mount failed. */
#include "base/macro.h"

#include <libmount.h>

typedef struct Libmount {
        __typeof__(&mnt_new_context) new_context;
        __typeof__(&mnt_free_context) free_context;
        __typeof__(&mnt_context_set_source) set_source;
        __typeof__(&mnt_context_set_target) set_target;
        __typeof__(&mnt_context_set_fstype) set_fstype;
        __typeof__(&mnt_context_set_options) set_options;
        __typeof__(&mnt_context_disable_helpers) disable_helpers;
        __typeof__(&mnt_context_disable_mtab) disable_mtab;
        __typeof__(&mnt_context_enable_rwonly_mount) only_writable;
        __typeof__(&mnt_context_mount) mount;
        __typeof__(&mnt_context_get_syscall_errno) get_errno;
        __typeof__(&mnt_context_get_excode) get_excode;
        __typeof__(&mnt_new_table) new_table;
        __typeof__(&mnt_unref_table) unref_table;
        __typeof__(&mnt_table_set_parser_errcb) set_parser_errcb;
        __typeof__(&mnt_table_parse_file) parse_file;
        __typeof__(&mnt_table_parse_stream) parse_stream;
        __typeof__(&mnt_table_get_nents) get_nents;
        __typeof__(&mnt_new_iter) new_iter;
        __typeof__(&mnt_free_iter) free_iter;
        __typeof__(&mnt_table_next_fs) next_fs;
        __typeof__(&mnt_fs_is_kernel) is_kernel;
        __typeof__(&mnt_fs_get_id) get_id;
        __typeof__(&mnt_fs_get_parent_id) get_parent_id;
        __typeof__(&mnt_fs_get_devno) get_devno;
        __typeof__(&mnt_fs_get_root) get_root;
        __typeof__(&mnt_fs_get_target) get_target;
        __typeof__(&mnt_fs_get_fstype) get_fstype;
        __typeof__(&mnt_fs_get_source) get_source;
        __typeof__(&mnt_fs_get_option) get_option;
} Libmount;
/* Its functions, once libmount_load() has loaded it. */
extern Libmount libmount;

/* Loads it the first time; from any thread. NULL, or why it cannot be loaded, which is not the caller's. */
_must_check_ const char *libmount_load(void);
