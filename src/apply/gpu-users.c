/* SPDX-License-Identifier: Apache-2.0
 * Units that have GPUs open are stopped and started again. nvidia-smi resets no GPU that is open
 * (NVIDIA/gpu-operator#118, NVIDIA/mig-parted#181). On Ampere a change of MIG mode then stays pending
 * (NVIDIA/gpu-operator#1845), and the driver cannot be unloaded. STOPPED lists the units in order before the
 * first one stops, so the next process can start them if this one is killed. */
#include "apply/gpus.h"

#include "base/paths.h"
#include "base/run.h"
#include "base/str.h"
#include "base/time.h"

#include <unistd.h>

#define STOPPED     RUN_DIR "/stopped"
#define STOPPED_MAX (4 << 10)
#define RETURN_USEC (30 * USEC_PER_SEC)
#define NAMES_MAX 8                     /* processes in a message */

/* NVIDIA/mig-parted:deployments/systemd/hooks.sh stops nvsm and nvidia-dcgm; dcgm and nv-hostengine are older
 * names. */
static const char *const others[] = { "nvidia-dcgm.service", "dcgm.service",          "nv-hostengine.service",
                                      "nvsm.service",        "dcgm-exporter.service", NULL };
static const char *const ours[] = { "nvidia-persistenced.service", "nvidia-fabricmanager.service", NULL };
static const char *const imex[] = { "nvidia-imex.service", NULL };     /* often managed by the image */
static const char *const kubelet[] = { "kubelet.service", NULL };
static const char *const modules[] = { "nvidia_drm", "nvidia_modeset", NULL };

static char **stopped_read(const Work *w) {
        _free_ char *text = NULL;
        char **names = NULL;
        if (root_read(w->root, STOPPED, STOPPED_MAX, &text, NULL) < 0)
                return NULL;
        for (char *save = NULL, *name = strtok_r(text, "\n", &save); name; name = strtok_r(NULL, "\n", &save))
                strv_add(&names, name);
        return names;
}

bool holders_stopped(const Work *w, const char *name) {
        _strv_ char **names = stopped_read(w);
        return strv_contains(names, name);
}

bool holders_note(const Work *w, char *const *names) {
        _strv_ char **all = stopped_read(w);
        for (; names && *names; names++)
                if (!strv_contains(all, *names))
                        strv_add(&all, *names);
        _free_ char *lines = strv_join(all, "\n"), *text = xasprintf("%s\n", lines);
        return root_replace_volatile(w->root, STOPPED, text, strlen(text), 0644) >= 0;
}

/* Failures are not reported here; an earlier failure stays. ret_output: or NULL. */
static bool attempt(Work *w, char **argv, char **ret_output) {
        char *text = TAKE_PTR(w->text);
        Cause cause = w->cause;
        int r = work_ask(w, CAUSE_MIG, argv[0], argv, ret_output);
        RENEW(w->text, text);
        w->cause = cause;
        return r >= 0;
}

/* Also runs after the deadline, to undo what was stopped. name: warn with it on failure; or NULL. */
static bool give_back(Work *w, char *const *argv, const char *name) {
        _cleanup_(child_result_done) ChildResult result = {};
        int r = child_run(argv, RETURN_USEC, 0, &result);
        if (r >= 0 && !result.timed_out && result.status == 0)
                return true;
        if (!name)
                return false;
        _free_ char *by_hand = strv_join(argv, " ");
        const char *last = r < 0 ? NULL : strrchr(result.errors, '\n');
        diag_warn_at(&w->warnings, "not-started-again", NULL, name,
                     "was stopped because it held the GPUs, and does not start again (%s); try `%s`",
                     r < 0              ? strerror(-r)
                     : result.timed_out ? "no answer within 30 s"
                     : last             ? last + 1
                                        : result.errors, by_hand);
        return false;
}

static char **with_all(char **argv, char *const *words) {
        for (; words && *words; words++)
                strv_add(&argv, *words);
        return argv;
}

static const char *find_name(const char *const *units, const char *names) {
        for (; *units; units++)
                for (const char *name = names; (name = strstr(name, *units)); name++)
                        if (name == names || name[-1] == ' ')
                                return *units;
        return NULL;
}

/* Running units, from blocks of "Id=…", "Names=…" and "ActiveState=…". An alias has another Id. */
static char **units_running(Work *w, const char *const *units) {
        _strv_ char **argv = with_all(command("systemctl", "show", "--property=Id,Names,ActiveState", NULL),
                                      (char *const *)units);
        _free_ char *output = NULL;
        char **running = NULL;
        if (!attempt(w, argv, &output))
                return NULL;
        const char *id = NULL;
        bool runs = false;
        char *rest = output;
        for (char *line = strsep(&rest, "\n"); line; line = strsep(&rest, "\n")) {
                bool names = startswith(line, "Id=") || startswith(line, "Names=");
                const char *found = names ? find_name(units, strchr(line, '=') + 1) : NULL;
                if (found)
                        id = found;
                if (startswith(line, "ActiveState="))
                        runs = !streq(line, "ActiveState=inactive") && !streq(line, "ActiveState=failed");
                if (*line && rest)
                        continue;
                if (id && runs)
                        strv_add(&running, id);
                id = NULL;
                runs = false;
        }
        return running;
}

/* The run phase of this boot starts kubelet, or nodeadm or a person does. */
bool holders_may_stop(Work *w) {
        if (root_exists(w->root, KUBELET_TURN) != 0)
                return false;
        _strv_ char **running = units_running(w, kubelet);
        return !running;
}

static void units_stop(Work *w, const char *const *units) {
        _strv_ char **running = units_running(w, units);
        if (!running || !holders_note(w, running))
                return;
        _strv_ char **argv = with_all(command("systemctl", "stop", NULL), running);
        (void)attempt(w, argv, NULL);
}

static bool is_loaded(const Work *w, const char *module) {
        _free_ char *path = xasprintf("/sys/module/%s", module);
        return root_exists(w->root, path) > 0;
}

void holders_stop(Work *w, bool all) {
        if (!holders_may_stop(w))
                return;
        units_stop(w, others);
        if (all) {
                units_stop(w, imex);
                units_stop(w, ours);
        }
        /* rmmod(8): `modprobe -r` could also unload nvidia. */
        for (const char *const *module = modules; *module; module++) {
                _free_ char *path = xasprintf("/sys/module/%s/refcnt", *module);
                _strv_ char **argv = command("rmmod", *module, NULL);
                uint64_t users = 0;
                if (root_read_u64(w->root, path, &users) >= 0 && users == 0 && holders_note(w, argv + 1))
                        (void)attempt(w, argv, NULL);
        }
}

/* --no-block: a unit may be ordered after this run (NVIDIA/mig-parted:CHANGELOG, 0.14.3). */
void holders_start(Work *w, bool all) {
        _strv_ char **names = stopped_read(w), **left = NULL,
                    **units = command("systemctl", "--no-block", "start", NULL);
        size_t words = strv_length(units);
        for (size_t i = strv_length(names); i > 0; i--) {
                const char *name = names[i - 1];
                _strv_ char **argv = command("modprobe", name, NULL);
                if (!strchr(name, '.') && !is_loaded(w, name) && !give_back(w, argv, name))
                        strv_add(&left, name);
                if (strchr(name, '.') && (all || !strv_contains((char *const *)ours, name)))
                        strv_add(&units, name);
        }
        size_t n = strv_length(units) - words;
        bool all_start = n > 1 && give_back(w, units, NULL);
        for (size_t i = words; i < words + n && !all_start; i++) {
                _strv_ char **argv = command("systemctl", "--no-block", "start", units[i], NULL);
                if (!give_back(w, argv, units[i]))
                        strv_add(&left, units[i]);
        }
        if (names)
                (void)!root_remove(w->root, STOPPED);
        if (left)               /* for the next run */
                (void)!holders_note(w, left);
}

static bool has_gpu_open(const Work *w, const char *pid) {
        _free_ char *directory = xasprintf("/proc/%s/fd", pid);
        _strv_ char **fds = NULL;
        if (root_list(w->root, directory, &fds) < 0)
                return false;
        for (char **fd = fds; fd && *fd; fd++) {
                _free_ char *path = xasprintf("%s/%s", directory, *fd), *to = NULL;
                if (root_read_link(w->root, path, &to) >= 0 && startswith(to, "/dev/nvidia"))
                        return true;
        }
        return false;
}

char *holders_found(const Work *w) {
        _strv_ char **pids = NULL;
        Text t = {};
        unsigned n = 0;
        if (root_list(w->root, "/proc", &pids) < 0)
                pids = NULL;
        for (char **pid = pids; pid && *pid && n < NAMES_MAX; pid++)
                if (strspn(*pid, "0123456789") == strlen(*pid) && (pid_t)atoi(*pid) != getpid() &&
                    has_gpu_open(w, *pid)) {
                        _free_ char *path = xasprintf("/proc/%s/comm", *pid), *name = NULL;
                        n++;
                        if (root_read_line(w->root, path, &name) < 0)
                                continue;
                        text_add(&t, "%s", t.size > 0 ? ", " : "");
                        text_add_shown(&t, name, strlen(name), 40, 0);
                        text_add(&t, " (%s)", *pid);
                }
        if (n > 0)
                text_add(&t, "%s a GPU open", n == 1 ? " has" : " have");
        for (const char *const *module = modules; *module; module++)
                if (is_loaded(w, *module))
                        text_add(&t, "%s%s is loaded", t.size > 0 ? "; " : "", *module);
        return text_take(&t);
}
