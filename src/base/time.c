/* SPDX-License-Identifier: Apache-2.0
 * The steady clock, and time spans of people. */
#include "base/time.h"

#include "base/str.h"

#include <errno.h>
#include <time.h>

uint64_t now_usec(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * USEC_PER_SEC + (uint64_t)t.tv_nsec / 1000;
}

char *usec_text(int64_t usec) {
        if (usec < 0)
                usec = 0;
        if (usec < (int64_t)USEC_PER_SEC)
                return xasprintf("%.1f ms", (double)usec / USEC_PER_MSEC);
        return xasprintf("%.*f s", usec < 10 * (int64_t)USEC_PER_SEC ? 2 : 1, (double)usec / USEC_PER_SEC);
}

double usec_seconds(uint64_t usec) {
        double seconds = (double)usec / USEC_PER_SEC,
               scale = seconds >= 100 ? 1 : seconds >= 10 ? 10 : seconds >= 1 ? 100 : 1e6;
        return (double)(uint64_t)(seconds * scale + .5) / scale;
}

char *time_text(int64_t seconds) {
        char text[32];
        time_t t = (time_t)seconds;
        struct tm utc;
        strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &utc));
        return xstrdup(text);
}

int parse_timespan(const char *s, uint64_t *ret_usec) {
        static const struct { const char *unit; uint64_t usec; } units[] = {
                { "ms", USEC_PER_MSEC },
                { "s",  USEC_PER_SEC },
                { "m",  60 * USEC_PER_SEC },
                { "h",  3600 * USEC_PER_SEC },
                { "",   USEC_PER_SEC },
        };
        uint64_t total = 0;

        if (!*s)
                return -EINVAL;
        while (*s) {
                uint64_t value = 0;
                size_t digits = strspn(s, "0123456789"), letters = strcspn(s + digits, "0123456789");
                uint64_t unit = PICK(u, units, ARRAY_SIZE(units),
                                     strlen(u->unit) == letters && startswith(s + digits, u->unit), u->usec,
                                     0);
                if (digits == 0 || digits > 9 || unit == 0)
                        return -EINVAL;
                for (size_t i = 0; i < digits; i++)
                        value = value * 10 + (uint64_t)(s[i] - '0');
                if (__builtin_mul_overflow(value, unit, &value) ||
                    __builtin_add_overflow(total, value, &total))
                        return -ERANGE;
                s += digits + letters;
        }
        *ret_usec = total;
        return 0;
}
