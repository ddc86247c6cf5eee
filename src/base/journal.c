/* SPDX-License-Identifier: Apache-2.0
 * The last messages of a unit in trouble. First journald writes down its buffer (varlink,
 * io.systemd.Journal.Synchronize, as journalctl --sync). */
#include "base/journal.h"

#include "base/str.h"

#include <jansson.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#define LINE_MAX_BYTES 600     /* room for a hundred names before the reason */
#define TRACE_LINES    64
#define QUOTE_LINES    2048

/* Best effort, at most half a second; without it the last lines may be missing. */
static void journal_sync(void) {
        /* its NUL is the varlink end mark */
        static const char request[] = "{\"method\":\"io.systemd.Journal.Synchronize\"}";
        struct sockaddr_un address = { .sun_family = AF_UNIX,
                                       .sun_path = "/run/systemd/journal/io.systemd.journal" };
        struct timeval limit = { .tv_usec = 500000 };
        char reply[256];
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return;
        if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) == 0 &&
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) == 0 &&
            connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
            send(fd, request, sizeof request, MSG_NOSIGNAL) == (ssize_t)sizeof request)
                (void)!recv(fd, reply, sizeof reply, 0);
        close(fd);
}

static JournalHide *hides;
static void *hides_for;

void journal_hide_with(JournalHide *hide, void *context) {
        hides = hide;
        hides_for = context;
}

/* Cuts at a word: the filter for secrets would not recognise a part of one. */
static char *line_cut(const char *text, size_t size) {
        size_t n = MIN(size, (size_t)LINE_MAX_BYTES);
        while (n > 0 && n < size && !strchr(" \t\n", text[n]))
                n--;
        return n == 0 && size > 0 ? xasprintf("(one word of %zu bytes)", size) : xmemdup(text, n);
}

/* One printable line of UTF-8: a terminal, the console and JSON must all take it. */
static char *line_clean(const char *text, size_t size) {
        char *line = line_cut(text, size);
        for (char *p = line; *p; p++)
                if ((unsigned char)*p < ' ' || *p == 0x7f)
                        *p = ' ';
        json_t *valid = json_string(line);
        if (!valid)
                for (char *p = line; *p; p++)
                        if ((unsigned char)*p >= 0x80)
                                *p = '?';
        json_decref(valid);
        char *stripped = str_strip(line);
        free(line);
        return stripped;
}

/* Hides secrets first: the filter does not know one that is cut or unescaped. */
static char *line_hide(const char *line) {
        return hides ? hides(hides_for, line) : xstrdup(line);
}

/* "" without such a field. */
static char *entry_field(sd_journal *j, const char *name, size_t *ret_size) {
        size_t n = strlen(name) + 1;            /* and the equals sign */
        const void *data;
        if (sd_journal_get_data(j, name, &data, ret_size) < 0 || *ret_size < n) {
                *ret_size = 0;
                return xstrdup("");
        }
        *ret_size -= n;
        return xmemdup((const char *)data + n, *ret_size);
}

char *log_error(const char *line) {
        static const char marks[][12] = { "err=\"", "error=\"", "\"err\":\"", "\"error\":\"" };
        const char *begin = NULL, *head = strstr(line, "] ");
        for (size_t i = 0; !begin && i < ARRAY_SIZE(marks); i++) {
                begin = strstr(line, marks[i]);
                begin = begin ? begin + strlen(marks[i]) : NULL;
        }
        if (!begin) {
                begin = *line && is_digit(line[1]) && head ? head + 2 : line;
                return line_clean(begin, strlen(begin));
        }
        size_t n = 0;
        while (begin[n] && begin[n] != '"')
                n += begin[n] == '\\' && begin[n + 1] ? 2 : 1;
        /* a Go escape unknown to JSON stays as is */
        _free_ char *quoted = xasprintf("\"%.*s\"", (int)n, begin);
        json_t *text = json_loads(quoted, JSON_DECODE_ANY, NULL);
        char *error = text ? line_clean(json_string_value(text), json_string_length(text))
                           : line_clean(begin, n);
        json_decref(text);
        return error;
}

/* As they were written. */
static char **journal_last(sd_journal *j, const char *field, const char *unit, uint64_t since_usec,
                           size_t max) {
        _free_ char *match = xasprintf("%s=%s", field, unit), *newest = NULL;
        _strv_ char **newest_first = NULL;
        char **lines = NULL;
        size_t first = 0;
        uint64_t usec;

        sd_journal_flush_matches(j);
        if (sd_journal_add_match(j, match, 0) < 0 || sd_journal_seek_tail(j) < 0)
                return NULL;
        while (strv_length(newest_first) < MAX(max, (size_t)TRACE_LINES) && sd_journal_previous(j) > 0) {
                if (sd_journal_get_monotonic_usec(j, &usec, NULL) < 0 || usec < since_usec)
                        break;                  /* an earlier boot (-ESTALE), or too early */
                size_t unused;
                _free_ char *message = entry_field(j, "MESSAGE", &unused),
                            *invocation = entry_field(j, "_SYSTEMD_INVOCATION_ID", &unused);
                const char *line = message + strspn(message, " \t\r\n");
                newest = newest ?: xstrdup(invocation);
                /* journald may not know the invocation of a process that has ended */
                bool same = !*invocation || !*newest || streq(invocation, newest);
                /* The last message before a long stack trace (kubelet panics at an unknown feature gate). */
                if (same && (startswith(line, "panic: ") || startswith(line, "fatal error: ")))
                        first = strv_length(newest_first);
                if (*line)
                        strv_add(&newest_first, line);
        }
        for (size_t n = MIN(first + max, strv_length(newest_first)); newest_first && n > first; n--)
                strv_add(&lines, newest_first[n - 1]);
        return lines;
}

static char **journal_lines(const char *unit, uint64_t since_usec, size_t max) {
        sd_journal *j = NULL;
        journal_sync();
        if (sd_journal_open(&j, SD_JOURNAL_LOCAL_ONLY | SD_JOURNAL_SYSTEM) < 0)
                return NULL;
        char **lines = journal_last(j, "_SYSTEMD_UNIT", unit, since_usec, max);
        /* the unit was silent: messages of systemd about it */
        if (!lines)
                lines = journal_last(j, "UNIT", unit, since_usec, max);
        sd_journal_close(j);
        return lines;
}

char **journal_tail(const char *unit, uint64_t since_usec, size_t max) {
        _strv_ char **lines = journal_lines(unit, since_usec, max);
        char **clean = NULL;
        STRV_FOREACH(line, lines) {
                _free_ char *hidden = line_hide(*line);
                char *text = line_clean(hidden, strlen(hidden));
                if (*text)
                        strv_push(&clean, text);
                else
                        free(text);
        }
        return clean;
}

bool journal_quote(Text *to, const char *unit, uint64_t since_usec, const char *word, const char *other) {
        _strv_ char **lines = journal_lines(unit, since_usec, QUOTE_LINES);
        for (size_t i = strv_length(lines); i > 0; i--) {
                if (!strstr(lines[i - 1], word) || !strstr(lines[i - 1], other))
                        continue;
                _free_ char *hidden = line_hide(lines[i - 1]), *said = log_error(hidden);
                text_add(to, " and says \"");
                text_add_shown(to, said, strlen(said), LINE_MAX_BYTES, '"');
                text_add(to, "\"");
                return true;
        }
        return false;
}

bool journal_quote_kubelet(Text *to, const char *unit, uint64_t since_usec) {
        return journal_quote(to, unit, since_usec, "command failed", "err") ||
               journal_quote(to, unit, since_usec, "panic: ", "");
}
