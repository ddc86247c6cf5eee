/* SPDX-License-Identifier: Apache-2.0
 * libmount.so.1 (util-linux), by dlopen. */
#include "disk/libmount.h"

#include <pthread.h>

Libmount libmount;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static char *load_error;                /* NULL: it is loaded */

static void load_libmount(void) {
        (void)!library_load("libmount.so.1", LIBMOUNT_FUNCTIONS(LIBRARY_NAME), LIBMOUNT_PACKAGE, &libmount,
                            &load_error);
}

const char *libmount_load(void) {
        pthread_once(&load_once, load_libmount);
        return load_error;
}
