/* SPDX-License-Identifier: Apache-2.0
 * Explains a failed unit by its state, its commands and conditions, and the end of its journal. */
#include "apply/units/unit.h"

#include "base/journal.h"
#include "base/run.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <signal.h>

#define TAIL_LINES 5

static const struct { char result[11], text[64]; } job_results[] = {
        { "canceled",   "another program cancelled its job" },
        { "dependency", "a unit that it needs did not start; systemctl --failed names it" },
        { "skipped",    "systemd skipped it" },
        { "assert",     "an Assert…= of the unit is not met" },
        { "collected",  "systemd dropped it" },
        { "frozen",     "it is frozen" },
        { "gone",       "its processes are gone" },     /* ours, not of systemd */
};

static const struct { char result[16], text[63]; } service_results[] = {
        { "timeout",         "it was not ready within TimeoutStartSec=" },
        { "protocol",        "it exited or sent an invalid message before it was ready" },
        { "start-limit-hit", "it started too often in a short time (start-limit-hit)" },
        { "watchdog",        "its watchdog timed out" },
        { "oom-kill",        "the kernel killed it for lack of memory" },
        { "resources",       "systemd could not prepare it (a file or a resource is missing)" },
        { "exec-condition",  "its ExecCondition= failed" },
};

static sd_bus_message *property_ask(const Unit *u, const char *interface, const char *name,
                                    const char *contents) {
        sd_bus *bus = u->task->apply->bus->bus;
        sd_bus_message *call = NULL, *reply = NULL;
        int r = sd_bus_message_new_method_call(bus, &call, SYSTEMD, u->path,
                                               "org.freedesktop.DBus.Properties", "Get");
        THEN(r, sd_bus_message_append(call, "ss", interface, name));
        THEN(r, sd_bus_call(bus, call, ANSWER_USEC, NULL, &reply));
        THEN(r, sd_bus_message_enter_container(reply, 'v', contents));
        THEN(r, sd_bus_message_enter_container(reply, 'a', contents + 1));
        sd_bus_message_unref(call);
        return r >= 0 ? reply : sd_bus_message_unref(reply);
}

/* "ConditionPathExists=!/etc/x": conditions that were not met; NULL: unknown. "|" conditions fail only
 * together (systemd.unit(5)). */
static char *conditions_unmet(const Unit *u) {
        _strv_ char **unmet = NULL, **alternatives = NULL;
        bool met = false;
        const char *type, *parameter;
        int trigger, negate, state;
        sd_bus_message *m = property_ask(u, SYSTEMD ".Unit", "Conditions", "a(sbbsi)");
        while (m && sd_bus_message_read(m, "(sbbsi)", &type, &trigger, &negate, &parameter, &state) > 0) {
                met |= trigger && state > 0;
                if (state < 0)
                        strv_push(trigger ? &alternatives : &unmet,
                                  xasprintf("%s=%s%s%s", type, trigger ? "|" : "", negate ? "!" : "",
                                            parameter));
        }
        sd_bus_message_unref(m);
        if (!met)
                strv_extend(&unmet, alternatives);
        return unmet ? strv_join(unmet, ", ") : NULL;
}

/* "/etc/eks/condition.sh (status 1)": the first failed command without "-"; NULL: none or unknown. */
static char *command_failed(const Unit *u, const char *property) {
        const char *path;
        char *command = NULL;
        int ignored, code, status;
        sd_bus_message *m = property_ask(u, SYSTEMD ".Service", property, "a(sasbttttuii)");
        while (m && !command && sd_bus_message_enter_container(m, 'r', "sasbttttuii") > 0 &&
               sd_bus_message_read(m, "s", &path) > 0 && sd_bus_message_skip(m, "as") >= 0 &&
               sd_bus_message_read(m, "b", &ignored) > 0 && sd_bus_message_skip(m, "ttttu") >= 0 &&
               sd_bus_message_read(m, "ii", &code, &status) > 0 && sd_bus_message_exit_container(m) >= 0)
                if (status != 0 && !ignored)
                        command = xasprintf("%s (%s %d)", path, code == CLD_EXITED ? "status" : "signal",
                                            status);
        sd_bus_message_unref(m);
        return command;
}

bool unit_was_skipped(const Unit *u) {
        const UnitState *s = &u->state;
        return streq(s->active, "inactive") &&
               (streq(s->result, "exec-condition") || (!s->condition && streq(s->result, "success")));
}

static const char *job_text(const Unit *u) {
        return u->job_result ? PICK(j, job_results, ARRAY_SIZE(job_results), streq(u->job_result, j->result),
                                    j->text, NULL)
                             : NULL;
}

static char *failure_text(const Unit *u) {
        const UnitState *s = &u->state;
        const char *job = job_text(u);
        if (job)
                return xstrdup(job);
        if (unit_was_skipped(u)) {
                /* "exec-condition" may be from an earlier start, so Condition…= comes first. */
                _free_ char *unmet = conditions_unmet(u), *program = NULL;
                if (unmet)
                        return xasprintf("%s is not met, so systemd did not start it", unmet);
                if (!streq(u->state.result, "exec-condition"))
                        return xstrdup("one of its Condition…= checks failed, so systemd did not start it");
                program = command_failed(u, "ExecCondition");
                return xasprintf("its ExecCondition=%s%s failed, so systemd did not start it",
                                 program ? " " : "", program ?: "");
        }
        for (size_t i = 0; i < ARRAY_SIZE(service_results); i++)
                if (streq(s->result, service_results[i].result))
                        return xstrdup(service_results[i].text);
        if (u->asks && streq(s->active, "inactive") && streq(s->result, "success"))
                return xstrdup("systemctl stop, or Conflicts= of another unit, stopped it");
        if (s->code != 0) {
                const char *signal = s->code == CLD_EXITED ? NULL : sigabbrev_np(s->status);
                if (s->code == CLD_EXITED && s->status == 203)
                        return xstrdup("its program cannot be executed (status 203/EXEC)");
                if (s->code == CLD_EXITED)
                        return xasprintf("its process exited with status %d", s->status);
                return xasprintf("its process was killed by signal %d%s%s%s", s->status, signal ? "/" : "",
                                 signal ?: "", kill_hint(s->status));
        }
        /* no main process */
        _free_ char *command = command_failed(u, "ExecStartPre") ?: command_failed(u, "ExecStart");
        if (command)
                return xasprintf("its command %s failed", command);
        return xasprintf("it is %s (%s), result %s", s->active, s->sub, *s->result ? s->result : "unknown");
}

/* NVIDIA units with their own causes; log: their default log file. */
static const struct { const char *name; Cause cause; const char *log; } known_units[] = {
        /* docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide */
        { "nvidia-fabricmanager.service",  CAUSE_FABRIC_MANAGER, "/var/log/fabricmanager.log" },
        /* docs.nvidia.com/multi-node-nvlink-systems/imex-guide */
        { "nvidia-imex.service",           CAUSE_IMEX,           "/var/log/nvidia-imex.log"   },
        /* awslabs/amazon-eks-ami:templates/al2023/runtime/gpu */
        { "nvidia-kmod-load.service",      CAUSE_DRIVER,         NULL                         },
        { "nvidia-driver-resolve.service", CAUSE_DRIVER,         NULL                         },
        { "nvidia-usr-copy@bin.service",   CAUSE_DRIVER,         NULL                         },
        { "nvidia-usr-copy@lib64.service", CAUSE_DRIVER,         NULL                         },
        { "nvidia-usr-copy@share.service", CAUSE_DRIVER,         NULL                         },
        { "nvidia-setup.service",          CAUSE_DRIVER,         NULL                         },
        { "nvidia-persistenced.service",   CAUSE_DRIVER,         NULL                         },
};

/* Messages that need an explanation: awslabs/amazon-eks-ami#2727, siderolabs/extensions#717,
 * spectrocloud/CanvOS#700. */
static const struct { const char *said, *meaning; } known_words[] = {
        { "NV_WARN_NOTHING_TO_DO",
          "it found no NVSwitch: the driver shows none, or, on HGX B200 and B300, NVLSM is not running" },
        { "\"ib_umad\" has not been loaded", "the image needs the kernel module ib_umad" },
};

Cause unit_cause(const char *name) {
        return PICK(k, known_units, ARRAY_SIZE(known_units), streq(k->name, name), k->cause, CAUSE_UNIT);
}

static bool is_kubelet(const Unit *u) {
        return streq(u->name, "kubelet.service");
}

/* Console and cluster see this line, so it never quotes the unit. Only the exit reason of kubelet is quoted;
 * commands/hide.c hides its secrets. */
static void failure_add(Text *t, const Unit *u, char *const *lines) {
        const char *log = PICK(k, known_units, ARRAY_SIZE(known_units), streq(k->name, u->name), k->log,
                               NULL),
                   *meaning = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(known_words); i++)
                for (char *const *line = lines; line && *line; line++)
                        if (!meaning && strstr(*line, known_words[i].said))
                                meaning = known_words[i].meaning;
        _free_ char *why = failure_text(u);
        text_add(t, "%s %s: %s", u->name, u->kind->failed, meaning ?: why);
        if (is_kubelet(u))
                (void)journal_quote_kubelet(t, u->state.id ?: u->name, u->begun_usec);
        if (u->state.restarts > 0)
                text_add(t, "; systemd restarted it %u time%s", u->state.restarts,
                         u->state.restarts > 1 ? "s" : "");
        if (startswith(u->state.sub, "auto-restart"))
                text_add(t, "; systemd keeps restarting it");
        text_add(t, "; journalctl -u %s%s%s", u->state.id ?: u->name, log ? " and " : "", log ?: "");
}

char *unit_failure(const Unit *u, uint64_t since_usec) {
        _strv_ char **lines = journal_tail(u->state.id ?: u->name, since_usec, TAIL_LINES);
        Text t = {};
        failure_add(&t, u, lines);
        return text_take(&t);
}

void unit_fail(Unit *u) {
        _strv_ char **lines = journal_tail(u->state.id ?: u->name,
                                           u->kind->history ? 0 : u->task->result->begin_usec, TAIL_LINES);
        _cleanup_(text_done) Text t = {};
        failure_add(&t, u, lines);
        if (u->calls > 1)
                text_add(&t, "; %u starts failed", u->calls);
        for (char **line = u->task->action->quiet ? NULL : lines; line && *line; line++)
                text_add(&t, "\n%s", *line);
        bool ended = is_kubelet(u) && u->state.code != 0 && !job_text(u);
        (void)task_fail(u->task, -EIO, ended ? CAUSE_KUBELET : unit_cause(u->name), "%s", t.data);
}
