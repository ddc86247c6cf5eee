/* SPDX-License-Identifier: Apache-2.0
 * set-tuning: the governor of each cpufreq policy and the slow idle states of each CPU, or what they were
 * before. The kernel forgets them at a reboot, as /run does the record. */
#include "apply/device.h"

#include "base/paths.h"
#include "base/str.h"

#include <errno.h>

#define RECORD_MAX (4 << 20)

typedef struct Setting { char *path, *have; const char *want; } Setting;
typedef struct Settings { Setting *items; size_t n; } Settings;

static void settings_done(Settings *s) {
        for (size_t i = 0; i < s->n; i++)
                FREE_ALL(s->items[i].path, s->items[i].have);
        free(s->items);
}

/* A missing or right value needs no action. */
static void want(const Root *root, Settings *s, char *path, const char *value) {
        _free_ char *have = NULL;
        if (root_read_line(root, path, &have) < 0 || streq(have, value)) {
                free(path);
                return;
        }
        *APPEND(s->items, s->n) = (Setting){ path, TAKE_PTR(have), value };
}

static void want_cpu(const Root *root, Settings *s, const char *cpu) {
        _free_ char *folder = xasprintf(TUNING_CPUS "/%s/cpuidle", cpu);
        _strv_ char **states = root_names(root, folder);
        STRV_FOREACH(state, states) {
                _free_ char *latency = xasprintf("%s/%s/latency", folder, *state);
                uint64_t usec = 0;
                if (root_read_u64(root, latency, &usec) >= 0 && usec > TUNING_IDLE_USEC)
                        want(root, s, xasprintf("%s/%s/disable", folder, *state), "1");
        }
}

/* Before the first change. A value that an earlier run has recorded stays: this one set what is there now. */
static int record(Work *w, const Settings *s) {
        _free_ char *before = NULL;
        _cleanup_(text_done) Text t = {};
        if (root_read(w->root, TUNING_FILE, RECORD_MAX, &before, NULL) >= 0)
                text_add(&t, "%s", before);
        for (const Setting *one = s->items; one < s->items + s->n; one++) {
                _free_ char *key = xasprintf("%s ", one->path);
                if (!before || !strstr(before, key))
                        text_add(&t, "%s%s\n", key, one->have);
        }
        int r = root_replace_volatile(w->root, TUNING_FILE, t.data ?: "", t.size, 0644);
        return r < 0 ? work_fail(w, r, CAUSE_FILE, TUNING_FILE " cannot be written: %m") : 0;
}

static int set(Work *w, const char *path, const char *value) {
        _free_ char *line = xasprintf("%s\n", value), *now = NULL;
        work_at(w, "writing %s", path);
        int r = root_write_value(w->root, path, line), k = root_read_line(w->root, path, &now);
        if (k < 0 || streq(now, value))
                return k;
        return r < 0 ? r : -EINVAL;
}

static int tell_missed(Work *w, int r, size_t missed, size_t n, const char *path) {
        return missed == 0 ? 0
                           : work_miss(w, r, CAUSE_SYSCTL, "tuning",
                                       "%s cannot be set (%s): %zu of %zu CPU settings stay as they are",
                                       path, strerror(-r), missed, n);
}

static int tune(Work *w) {
        _cleanup_(settings_done) Settings s = {};
        _strv_ char **cpus = root_names(w->root, TUNING_CPUS),
                    **policies = root_names(w->root, TUNING_POLICIES);
        const char *first = NULL;
        size_t missed = 0;
        int error = 0;
        STRV_FOREACH(policy, policies)
                want(w->root, &s, xasprintf(TUNING_POLICIES "/%s/scaling_governor", *policy), "performance");
        STRV_FOREACH(cpu, cpus)
                if (startswith(*cpu, "cpu") && is_digit((*cpu)[3]))
                        want_cpu(w->root, &s, *cpu);
        int r = s.n > 0 ? record(w, &s) : 0;
        if (r < 0)
                return r;
        for (const Setting *one = s.items; one < s.items + s.n; one++) {
                r = set(w, one->path, one->want);
                if (r < 0 && missed++ == 0)
                        error = r, first = one->path;
        }
        r = tell_missed(w, error, missed, s.n, first);
        return r < 0 ? r : s.n > missed;
}

static int restore(Work *w) {
        _free_ char *record = NULL, *first = NULL;
        size_t missed = 0, n = 0;
        int error = 0, r = root_read(w->root, TUNING_FILE, RECORD_MAX, &record, NULL);
        for (const char *rest = r < 0 ? "" : record; *rest; n++) {
                _free_ char *line = str_cut(&rest, "\n");
                const char *value = line;
                _free_ char *path = str_cut(&value, " ");
                r = startswith(path, TUNING_CPUS "/") ? set(w, path, value) : 0;
                if (r < 0 && missed++ == 0)
                        error = r, first = TAKE_PTR(path);
        }
        r = root_remove(w->root, TUNING_FILE);
        if (r < 0)
                return work_fail(w, r, CAUSE_FILE, TUNING_FILE " cannot be removed: %m");
        r = tell_missed(w, error, missed, n, first);
        return r < 0 ? r : n > missed;
}

int tuning_work(Work *w) {
        return streq(w->action->with ?: "", "as before") ? restore(w) : tune(w);
}
