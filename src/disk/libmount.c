/* SPDX-License-Identifier: Apache-2.0
 * The functions of libmount.so.1 (util-linux), by dlopen. */
#include "disk/libmount.h"

#include "base/library.h"

#include <pthread.h>
#include <stddef.h>

static const Symbol symbols[] = {
        { "mnt_new_context",               offsetof(Libmount, new_context)     },
        { "mnt_free_context",              offsetof(Libmount, free_context)    },
        { "mnt_context_set_source",        offsetof(Libmount, set_source)      },
        { "mnt_context_set_target",        offsetof(Libmount, set_target)      },
        { "mnt_context_set_fstype",        offsetof(Libmount, set_fstype)      },
        { "mnt_context_set_options",       offsetof(Libmount, set_options)     },
        { "mnt_context_disable_helpers",   offsetof(Libmount, disable_helpers) },
        { "mnt_context_disable_mtab",      offsetof(Libmount, disable_mtab)    },
        { "mnt_context_enable_rwonly_mount", offsetof(Libmount, only_writable) },
        { "mnt_context_mount",             offsetof(Libmount, mount)           },
        { "mnt_context_get_syscall_errno", offsetof(Libmount, get_errno)       },
        { "mnt_context_get_excode",        offsetof(Libmount, get_excode)      },
        { "mnt_new_table",                 offsetof(Libmount, new_table)       },
        { "mnt_unref_table",               offsetof(Libmount, unref_table)     },
        { "mnt_table_set_parser_errcb",    offsetof(Libmount, set_parser_errcb) },
        { "mnt_table_parse_file",          offsetof(Libmount, parse_file)      },
        { "mnt_table_parse_stream",        offsetof(Libmount, parse_stream)    },
        { "mnt_table_get_nents",           offsetof(Libmount, get_nents)       },
        { "mnt_new_iter",                  offsetof(Libmount, new_iter)        },
        { "mnt_free_iter",                 offsetof(Libmount, free_iter)       },
        { "mnt_table_next_fs",             offsetof(Libmount, next_fs)         },
        { "mnt_fs_is_kernel",              offsetof(Libmount, is_kernel)       },
        { "mnt_fs_get_id",                 offsetof(Libmount, get_id)          },
        { "mnt_fs_get_parent_id",          offsetof(Libmount, get_parent_id)   },
        { "mnt_fs_get_devno",              offsetof(Libmount, get_devno)       },
        { "mnt_fs_get_root",               offsetof(Libmount, get_root)        },
        { "mnt_fs_get_target",             offsetof(Libmount, get_target)      },
        { "mnt_fs_get_fstype",             offsetof(Libmount, get_fstype)      },
        { "mnt_fs_get_source",             offsetof(Libmount, get_source)      },
        { "mnt_fs_get_option",             offsetof(Libmount, get_option)      },
};

Libmount libmount;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static char *load_error;                /* NULL: it is loaded */

static void load_libmount(void) {
        (void)!library_load("libmount.so.1", symbols, ARRAY_SIZE(symbols), &libmount, &load_error);
}

const char *libmount_load(void) {
        pthread_once(&load_once, load_libmount);
        return load_error;
}
