/* SPDX-License-Identifier: Apache-2.0
 * Only for the static program (make portable): the texts of the package, from the table of conf/texts.awk. */
#include "base/portable.h"

#include "base/str.h"

#include <errno.h>
#include <netdb.h>

int portable_text(const char *path, char **ret) {
        for (const PortableText *t = portable_texts; *t->path; t++)
                if (streq(t->path, path)) {
                        *ret = xstrdup(t->text);
                        return 0;
                }
        return -ENOENT;
}

/* libcrypto can load modules and open connections, but nothing here asks it to. In a static program, those
 * functions of glibc need its shared libraries at run time. The linker calls these instead (--wrap). */
#define ABSENT(type, name, result)                                                             \
        type __wrap_##name(void);                                                              \
        type __wrap_##name(void) {                                                             \
                return (result);                                                               \
        }
ABSENT(void *, dlopen, NULL)
ABSENT(void *, dlsym, NULL)
ABSENT(int, dlclose, -1)
ABSENT(int, dladdr, 0)
ABSENT(const char *, dlerror, "this program loads no libraries")
ABSENT(int, getaddrinfo, EAI_FAIL)
ABSENT(int, getnameinfo, EAI_FAIL)
ABSENT(void *, freeaddrinfo, NULL)
ABSENT(void *, gethostbyname, NULL)
