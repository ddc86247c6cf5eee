/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of kubelet, containerd, drivers and kernels */
#include "base/str.h"

#include <stdlib.h>
#include <string.h>

bool version_at_least(const char *version, unsigned major, unsigned minor) {
        char *end = NULL;
        unsigned long a = version ? strtoul(version, &end, 10) : 0;
        if (!version || end == version || *end != '.')
                return false;
        unsigned long b = strtoul(end + 1, NULL, 10);
        return a > major || (a == major && b >= minor);
}

unsigned version_minor(const char *version) {
        const char *dot = version ? strchr(version, '.') : NULL;
        return dot ? (unsigned)strtoul(dot + 1, NULL, 10) : 0;
}

int version_compare(const char *a, const char *b) {
        while (*a || *b) {
                size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
                if (n > 0 && m > 0) {
                        for (; n > 1 && *a == '0'; n--)
                                a++;
                        for (; m > 1 && *b == '0'; m--)
                                b++;
                        int r = n != m ? (n > m ? 1 : -1) : memcmp(a, b, n);
                        if (r != 0)
                                return r;
                        a += n;
                        b += m;
                } else if (*a != *b) /* 6.12 is more than 6 */
                        return (unsigned char)*a > (unsigned char)*b ? 1 : -1;
                else {
                        a++;
                        b++;
                }
        }
        return 0;
}
