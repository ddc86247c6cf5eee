/* SPDX-License-Identifier: Apache-2.0
 * A verdict → journal with fields, serial console, and the last line on stderr. */
#include "report/report.h"

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <systemd/sd-journal.h>
#include <time.h>
#include <unistd.h>

#define CONSOLE_USEC (2 * USEC_PER_SEC)
#define CONSOLE_AGAIN_USEC (10 * USEC_PER_MSEC)
#define MESSAGE_ID "c2f6d3a1b7e84f0f9a5c61d90e7b4a52"   /* journalctl MESSAGE_ID=… */

json_t *text_json(const char *text) {
        json_t *json = text ? json_string(text) : json_null();
        return json ?: json_string("(not UTF-8)");
}

static int verdict_level(const Verdict *v) {
        return v->exit_code == EXIT_DONE ? LOG_NOTICE : v->tolerated ? LOG_WARNING : LOG_ERR;
}

char *verdict_time(void) {
        return time_text(time(NULL));
}

void verdict_put(json_t *object, const Verdict *v, const char *plan_id) {
        _cleanup_(json_decrefp) json_t *part = json_pack(
                "{ss ss si so so so}", "verdict", v->word, "code", v->code, "exit", (int)v->exit_code, "step",
                text_json(v->step), "text", text_json(v->text), "planId", text_json(plan_id));
        json_object_update(object, part);
}

void verdict_record(const Verdict *v, const char *phases, const char *plan_id, double seconds,
                    const char *line) {
        char *fields[] = {
                /* the text, too, for readers of MESSAGE only */
                v->exit_code == EXIT_DONE ? xasprintf("MESSAGE=%s", line)
                                          : xasprintf("MESSAGE=%s\n%s", line, v->text ?: ""),
                xstrdup("MESSAGE_ID=" MESSAGE_ID),
                xasprintf("PRIORITY=%d", verdict_level(v)),
                xstrdup("SYSLOG_IDENTIFIER=nodestrap"),
                xasprintf("NODESTRAP_VERDICT=%s", v->word),
                xasprintf("NODESTRAP_CODE=%s", v->code),
                xasprintf("NODESTRAP_EXIT=%d", (int)v->exit_code),
                xasprintf("NODESTRAP_STEP=%s", v->step ?: ""),
                xasprintf("NODESTRAP_TEXT=%s", v->text ?: ""),
                xasprintf("NODESTRAP_PHASES=%s", phases),
                xasprintf("NODESTRAP_SECONDS=%.3f", seconds),
                xasprintf("NODESTRAP_PLAN=%s", plan_id),
                /* The unit of the image under which journalctl -u shows the entry, too: journalctl(1) accepts
                 * what root says about a unit. Log collectors of EKS read these two (github.com/awslabs/
                 * amazon-eks-ami, log-collector-script/linux/eks-log-collector.sh:get_nodeadm_info). */
                xasprintf("OBJECT_SYSTEMD_UNIT=nodeadm-%s.service",
                          streq(phases, "config") ? "config" : "run"),
        };
        struct iovec parts[ARRAY_SIZE(fields)];
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                parts[i] = (struct iovec){ fields[i], strlen(fields[i]) };
        (void)sd_journal_sendv(parts, (int)ARRAY_SIZE(parts));          /* fails without journald */
        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                free(fields[i]);
}

/* GetConsoleOutput shows the serial console, if you cannot log in. */
static int console_open(void) {
        return open("/dev/console", O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

/* A serial line is slow and has a small buffer, so this waits, but an undrained console must not delay the
 * boot. systemd may hang the console up for another user (vhangup(2)): then this opens it again. */
static void console_write(const char *line) {
        int fd = console_open();
        size_t left = strlen(line);
        uint64_t end = now_usec() + CONSOLE_USEC;
        while (fd >= 0 && left > 0) {
                uint64_t now = now_usec();
                struct pollfd ready = { .fd = fd, .events = POLLOUT };
                ssize_t n = write(fd, line, left);
                bool hung_up = n < 0 && errno == EIO;
                if ((n < 0 && errno != EAGAIN && errno != EINTR && !hung_up) || now >= end)
                        break;
                line += MAX(n, 0);
                left -= (size_t)MAX(n, 0);
                if (hung_up) {
                        close(fd);
                        (void)usleep(CONSOLE_AGAIN_USEC);
                        fd = console_open();
                } else if (left > 0)
                        (void)poll(&ready, 1, (int)((end - now) / USEC_PER_MSEC) + 1);
        }
        close_fd(&fd);
}

void verdict_announce(const Verdict *v, const char *phases, const char *plan_id, double seconds,
                      const char *line) {
        _free_ char *whole = xasprintf("%s\n", line);
        verdict_record(v, phases, plan_id, seconds, line);
        console_write(whole);
}

/* systemd sets this to the pid of the process that it starts (systemd.exec(5), since 248). A child of a
 * script or a shell has another pid. */
bool verdict_is_of_unit(void) {
        const char *text = getenv("SYSTEMD_EXEC_PID");
        uint64_t pid;
        return text && parse_u64(text, &pid) >= 0 && pid == (uint64_t)getpid();
}

void verdict_tell(const Verdict *v, const char *line) {
        _free_ char *priority =
                log_to_journal() ? xasprintf("<%d>", verdict_level(v)) : xstrdup("");
        _free_ char *all = xasprintf("%s%s\n", priority, line);
        (void)!write(STDERR_FILENO, all, strlen(all));
}
