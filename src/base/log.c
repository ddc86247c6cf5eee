/* SPDX-License-Identifier: Apache-2.0
 * Messages → lines on stderr, one write each, so that lines of several processes do not mix. For the
 * journal (JOURNAL_STREAM, systemd.exec(5)) each begins with its priority (sd-daemon(3)). */
#include "base/log.h"

#include "base/str.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int max_level = LOG_INFO;

void log_set_level(int level) {
        max_level = level;
}

bool log_to_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        struct stat st;
        if (!stream || fstat(STDERR_FILENO, &st) < 0)
                return false;
        _free_ char *ours = xasprintf("%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
        /* stderr may be redirected meanwhile, as cloud-init does for its scripts */
        return streq(stream, ours);
}

void log_line(int level, const char *format, ...) {
        static const char *const words[] = {
                [LOG_ERR] = "error: ", [LOG_WARNING] = "warning: ", [LOG_DEBUG] = "debug: "
        };
        const char *word = (size_t)level < ARRAY_SIZE(words) && words[level] ? words[level] : "";
        if (level > max_level)
                return;
        _free_ char *text = FORMATTED(format);
        _free_ char *line = log_to_journal() ? xasprintf("<%d>%s\n", level, text)
                                             : xasprintf("nodestrap: %s%s\n", word, text);
        for (size_t done = 0, size = strlen(line); done < size;) {
                ssize_t n = write(STDERR_FILENO, line + done, size - done);
                if (n < 0 && errno != EINTR)
                        return;
                if (n > 0)
                        done += (size_t)n;
        }
}

int log_line_errno(int level, int r, const char *format, ...) {
        _free_ char *text = FORMATTED(format);
        log_line(level, "%s: %s", text, strerror(-r));
        return r;
}
