/* SPDX-License-Identifier: Apache-2.0
 * Progress lines → the inits that run, and their steps. A killed one leaves no last line, so this checks
 * that the process exists. */
#include "report/status.h"

#include "base/json.h"
#include "base/progress.h"
#include "base/str.h"
#include "report/report.h"

#include <limits.h>

#define PROGRESS_READ (4 << 20)

static bool line_parse(char *line, ProgressLine *ret) {
        char *fields[4] = { line };
        uint64_t usec, pid;
        for (size_t i = 1; i < ARRAY_SIZE(fields); i++) {
                fields[i] = strchr(fields[i - 1], '\t');
                if (!fields[i])
                        return false;
                *fields[i]++ = 0;
        }
        if (parse_u64(fields[0], &usec) < 0 || usec > 1ULL << 52 || parse_u64(fields[1], &pid) < 0 ||
            pid > INT_MAX)
                return false;
        *ret = (ProgressLine){ (int64_t)usec, (int)pid, fields[2], fields[3] };
        return true;
}

size_t progress_parse(char *text, void (*f)(const ProgressLine *line, void *userdata), void *userdata) {
        char *from = text;
        for (char *end; (end = strchr(from, '\n')); from = end + 1) {
                ProgressLine line;
                *end = 0;
                if (line_parse(from, &line))
                        f(&line, userdata);
        }
        return (size_t)(from - text);
}

static size_t step_find(const json_t *steps, const char *id) {
        size_t i;
        const json_t *step;
        json_array_foreach(steps, i, step)
                if (streq(json_get_text(step, "id"), id))
                        break;
        return i;
}

void progress_take(const ProgressLine *line, void *userdata) {
        json_t *all = userdata;
        _free_ char *key = xasprintf("%d", line->pid);
        json_t *steps = json_object_get(json_object_get(all, key), "steps");
        if (streq(line->word, "start")) {
                json_t *process =
                        json_pack("{si so sI s[]}", "pid", line->pid, "phases", text_json(line->what),
                                  "beginUsec", (json_int_t)line->usec, "steps");
                json_object_set_new(all, key, process);
        } else if (streq(line->word, "end"))
                json_object_del(all, key);
        else if (steps && streq(line->word, "begin"))
                json_array_append_new(steps, json_pack("{so sI}", "id", text_json(line->what), "beginUsec",
                                                       (json_int_t)line->usec));
        else if (steps)
                json_array_remove(steps, step_find(steps, line->what));
}

const json_t *progress_step(const json_t *process, const char *id) {
        const json_t *steps = json_object_get(process, "steps");
        return json_array_get(steps, step_find(steps, id));
}

/* By name, since pids are reused. */
static bool is_alive(const Root *root, const char *pid) {
        _free_ char *path = xasprintf("/proc/%s/comm", pid), *name = NULL;
        return root_read_line(root, path, &name) >= 0 && (startswith(name, "nodestrap") ||
                                                          startswith(name, "nodeadm"));
}

json_t *progress_read(const Root *root) {
        _free_ char *text = NULL;
        _cleanup_(json_decrefp) json_t *all = json_object();
        json_t *list = json_array(), *process;
        const char *pid;
        if (root_read(root, PROGRESS_FILE, PROGRESS_READ, &text, NULL) < 0)
                return list;
        (void)progress_parse(text, progress_take, all);
        json_object_foreach(all, pid, process) {
                if (is_alive(root, pid))
                        json_array_append(list, process);
        }
        return list;
}
