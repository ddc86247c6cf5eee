/* SPDX-License-Identifier: Apache-2.0
 * The NVIDIA driver reads options when it is loaded, in the devices phase. User scripts may write
 * modprobe.d(5) files meanwhile. If the lines differ in the run phase, the driver is loaded again, and later
 * steps repeat what is needed. */
#include "apply/gpus.h"
#include "apply/device.h"

#include "base/str.h"

#include <errno.h>

#define RECORD    RUN_DIR "/driver-options"
#define TEXT_MAX  (1 << 20)
#define DRIVER    "nvidia"
#define USERS_MAX 16

static int options_now(Work *w, char **ret) {
        int r = module_options(w->root, DRIVER, ret);
        return r < 0 ? work_fail(w, r, CAUSE_DRIVER,
                                 "NVIDIA driver options in modprobe.d cannot be read: %m; see modprobe -c")
                     : 0;
}

static int record_write(Work *w, const char *options) {
        int r = root_replace_volatile(w->root, RECORD, options, strlen(options), 0644);
        return r < 0 ? work_fail(w, r, CAUSE_DRIVER, "%s cannot be written: %m", RECORD) : 0;
}

int driver_note_options(Work *w) {
        _free_ char *now = NULL;
        int r = options_now(w, &now);
        return r < 0 ? r : record_write(w, now);
}

/* Dependents first: nvidia_drm, nvidia_modeset, nvidia_uvm, gdrdrv, nvidia. Each module is visited once. */
static void add_users(const Work *w, const char *module, char ***seen, char ***to) {
        _free_ char *path = xasprintf("/sys/module/%s/holders", module);
        _strv_ char **users = NULL;
        strv_add(seen, module);
        if (strv_length(*seen) < USERS_MAX && root_list(w->root, path, &users) >= 0)
                for (char **user = users; user && *user; user++)
                        if (!strv_contains(*seen, *user))
                                add_users(w, *user, seen, to);
        strv_add(to, module);
}

static int unload(Work *w, char *const *modules) {
        _strv_ char **argv = command("modprobe", "-r", NULL);
        for (char *const *module = modules; *module; module++)
                strv_add(&argv, *module);
        return work_run(w, CAUSE_DRIVER_SETTING, "the NVIDIA driver cannot be unloaded", argv);
}

static int load(Work *w) {
        _strv_ char **argv = command("modprobe", DRIVER, NULL);
        return root_exists(w->root, "/sys/module/" DRIVER) > 0
                       ? 0
                       : work_run(w, CAUSE_DRIVER, "the NVIDIA driver cannot be loaded again", argv);
}

static void warn(Work *w, const char *file, const char *why) {
        diag_warn_at(&w->warnings, "driver-options", NULL, w->action->id,
                     "%s differs from the options of the loaded NVIDIA driver, which cannot be loaded again: "
                     "%s; reboot once to apply that file",
                     file, why);
}

static int reload(Work *w, const char *file, const char *now) {
        _strv_ char **modules = NULL, **seen = NULL;
        work_progress(w, "the options of the loaded driver differ from %s: loading the driver again", file);
        add_users(w, DRIVER, &seen, &modules);
        bool noted = holders_note(w, modules);
        if (noted)
                holders_stop(w, true);
        /* the toolkit must not look at GPUs before they are ready */
        int r = noted && root_remove(w->root, CDI_TURN) >= 0 ? unload(w, modules) : -EIO;
        if (r < 0) {
                _free_ char *users = holders_found(w), *text = TAKE_PTR(w->text);
                text = text ?: xstrdup(RUN_DIR " cannot be written");
                _free_ char *why =
                        xasprintf("%.*s%s%s", (int)strcspn(text, "\n"), text, *users ? "; " : "", users);
                holders_start(w, true); /* some modules may be unloaded */
                warn(w, file, why);
                return load(w);
        }
        holders_start(w, false);
        r = load(w);
        THEN(r, record_write(w, now));
        return r < 0 ? r : 1;
}

int driver_renew(Work *w) {
        _free_ char *before = NULL, *now = NULL;
        int r = root_read(w->root, RECORD, TEXT_MAX, &before, NULL);
        if (r < 0)
                return driver_note_options(w);
        r = options_now(w, &now);
        if (r < 0 || streq(before, now) || w->early)
                return r;
        _free_ char *file = module_options_changed(before, now);
        if (holders_may_stop(w))
                return reload(w, file, now);
        warn(w, file, "kubelet may already be running");
        return 0;
}

void driver_return(Work *w) {
        if (holders_stopped(w, DRIVER))
                holders_start(w, false);
}
