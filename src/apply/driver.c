/* SPDX-License-Identifier: Apache-2.0
 * check-driver: the NVIDIA driver is loaded with the wanted parameters and runs every GPU. check-versions:
 * its programs have the driver version; fabric manager and IMEX refuse another (FMUG; IMEX guide, "Getting
 * started"). */
#include "apply/device.h"

#include "base/str.h"
#include "health/health.h"

#include <errno.h>

#define PROC     "/proc/driver/nvidia"
#define TEXT_MAX (256 << 10)

static char *version_in(const char *text) {
        for (const char *p = text + strspn(text, " \t\n"); *p; p += strspn(p, " \t\n")) {
                size_t n = strspn(p, "0123456789."), word = strcspn(p, " \t\n");
                if (n > 2 && *p != '.' && p[n - 1] != '.' && memchr(p, '.', n))
                        return xstrndup(p, n);
                p += word;
        }
        return NULL;
}

static int driver_version(Work *w, char **ret) {
        _free_ char *text = NULL;
        int r = root_read(w->root, "/sys/module/nvidia/version", TEXT_MAX, &text, NULL);
        if (r == -ENOENT)
                r = root_read(w->root, PROC "/version", TEXT_MAX, &text, NULL);
        if (r == -ENOENT)
                return work_fail(w, r, CAUSE_DRIVER,
                                 "the NVIDIA driver is not loaded: neither /sys/module/nvidia/version nor "
                                 PROC "/version exists; dmesg (NVRM) and `modprobe nvidia` show why");
        if (r >= 0)
                *ret = version_in(text);
        if (r >= 0 && !*ret)
                r = -EBADMSG;
        return r < 0 ? work_fail(w, r, CAUSE_DRIVER,
                                 "the version of the NVIDIA driver cannot be read from "
                                 "/sys/module/nvidia/version or " PROC "/version: %m")
                     : 0;
}

/* ignored: unknown, but optional ("?"); borne: another value, but only a warning ("??") */
typedef struct Differences { Text other, unknown, ignored, borne; } Differences;

static void add_difference(const char *params, const char *word, Differences *d) {
        size_t n = strcspn(word, "="), size = strcspn(word, "?");
        _free_ char *want = xstrndup(word + n + 1, size - n - 1), *is = nvidia_param(params, word, n);
        Text *unknown = word[size] ? &d->ignored : &d->unknown,
             *other = endswith(word, "??") ? &d->borne : &d->other;
        if (!is)
                text_add(unknown, "%s%.*s", unknown->size > 0 ? ", " : "", (int)n, word);
        else if (!streq(is, want))
                text_add(other, "%s%.*s=%s (wanted: %s)", other->size > 0 ? ", " : "", (int)n,
                         word, *is ? is : "\"\"", want);
}

#define NO_LATER_CHANGE "; it reads " NVIDIA_OPTIONS " only when it loads. Reboot once (an initramfs that " \
        "loads the driver needs that file, too)"
#define UNKNOWN_FORMAT  PROC "/params has an unknown format, so nodestrap cannot check the parameter %s; " \
                        "use a version of the driver that nodestrap knows"

static int tell_params(Work *w, const Differences *d, bool known_format) {
        if (!known_format && d->ignored.size > 0)
                diag_warn_at(&w->warnings, "driver-parameter", NULL, w->action->id, UNKNOWN_FORMAT,
                             d->ignored.data);
        if (!known_format)
                return d->unknown.size == 0 ? 0 : work_fail(w, -EBADMSG, CAUSE_DRIVER_SETTING, UNKNOWN_FORMAT,
                                                            d->unknown.data);
        if (d->borne.size > 0)
                diag_warn_at(&w->warnings, "driver-parameter", NULL, w->action->id,
                             "the NVIDIA driver was loaded with %s" NO_LATER_CHANGE, d->borne.data);
        if (d->ignored.size > 0)
                diag_warn_at(&w->warnings, "driver-parameter", NULL, w->action->id,
                             "the NVIDIA driver does not know the parameter %s of " NVIDIA_OPTIONS
                             " and ignores it; use a newer driver",
                             d->ignored.data);
        if (d->unknown.size > 0)
                return work_fail(
                        w, -EOPNOTSUPP, CAUSE_DRIVER_SETTING,
                        "the NVIDIA driver does not know the parameter %s of " NVIDIA_OPTIONS "; use an "
                        "image with a newer driver, or remove that setting from spec.accelerator.nvidia",
                        d->unknown.data);
        if (d->other.size > 0)
                return work_fail(w, -ESTALE, CAUSE_DRIVER_SETTING,
                                 "the NVIDIA driver was loaded with %s" NO_LATER_CHANGE, d->other.data);
        return 0;
}

static int check_params(Work *w) {
        Differences d = {};
        _free_ char *params = NULL;
        int r = w->action->device.parameters ? root_read(w->root, PROC "/params", TEXT_MAX, &params, NULL)
                                             : 0;
        if (r < 0)
                return work_fail(w, r, CAUSE_DRIVER,
                                 "the parameters of the NVIDIA driver cannot be read from " PROC
                                 "/params: %m");
        for (char **word = w->action->device.parameters; word && *word; word++)
                add_difference(params, *word, &d);
        size_t n = params ? strcspn(params, ":= \t\n\"{") : 0;
        r = tell_params(w, &d, !params || (n > 0 && params[n] == ':'));
        text_done(&d.other);
        text_done(&d.unknown);
        text_done(&d.ignored);
        text_done(&d.borne);
        return r;
}

static int add_without_driver(Work *w, const char *address, Text *t) {
        _free_ char *link = xasprintf("/sys/bus/pci/devices/%s/driver", address), *name = NULL,
                    *known = xasprintf(PROC "/gpus/%s", address);
        const char *between = t->size > 0 ? ", " : "";
        int r = root_link_name(w->root, link, &name);
        if (r < 0 && r != -ENOENT)
                return r;
        if (!name || !streq(name, "nvidia")) {
                text_add(t, "%s%s (%s)", between, address, name ?: "no driver");
                return 0;
        }
        r = root_exists(w->root, known);
        if (r == 0)
                text_add(t, "%s%s (bound, but not listed in " PROC "/gpus)", between, address);
        return r < 0 ? r : 0;
}

static int check_gpus(Work *w) {
        _cleanup_(text_done) Text t = {};
        int r = 0;
        for (char **address = w->action->device.seen; r >= 0 && address && *address; address++)
                r = add_without_driver(w, *address, &t);
        if (r < 0)
                return work_fail(w, r, CAUSE_DRIVER, "the drivers of the GPUs cannot be read: %m");
        if (t.size > 0)
                return work_fail(w, -ENODEV, CAUSE_DRIVER,
                                 "the NVIDIA driver does not drive every GPU; missing: %s; dmesg (NVRM) "
                                 "shows why. If the GPU is broken, replace the instance. If the driver does "
                                 "not support the GPU, install the other flavour (open or proprietary) "
                                 "or another version. If another driver (vfio-pci) drives the GPU, set "
                                 "spec.accelerator.nvidia.mode: off",
                                 t.data);
        return 0;
}

int driver_work(Work *w) {
        _free_ char *version = NULL;
        int r = driver_version(w, &version);
        if (!version)
                return r;
        w->found = json_pack("{s:s}", "version", version);
        r = check_params(w);
        return r < 0 ? r : check_gpus(w);
}

/* The start script of fabric manager runs both and ends silently if one is missing (FMUG, NVLink 5
 * systems). */
static int check_nvlsm(Work *w) {
        bool nvlsm = root_executable(w->root, NVLSM_PROGRAM) > 0,
             ibstat = root_program(w->root, "ibstat") > 0;
        const char *missing = nvlsm    ? "ibstat"
                              : ibstat ? NVLSM_PROGRAM
                                       : NVLSM_PROGRAM " and ibstat";
        if (nvlsm && ibstat)
                return 0;
        return work_fail(
                w, -ENOENT, CAUSE_FABRIC_MANAGER,
                "the image lacks %s, so the NVLink 5 fabric of this machine never comes up; install "
                "nvlsm, libibumad and infiniband-diags",
                missing);
}

/* Without a version, the program itself reports at startup whether it works with the driver. */
static int ask_version(Work *w, const char *program, char **ret) {
        _free_ char *what = xasprintf("the version of %s is not known", program), *output = NULL;
        _strv_ char **argv = command(program, "--version", NULL);
        int r = work_ask(w, CAUSE_VERSION, what, argv, &output);
        if (r == -EIO) {                /* it ran, but failed */
                diag_warn_at(&w->warnings, "version-unknown", NULL, w->action->id, "%.*s",
                             (int)strcspn(w->text, "\n"), w->text);
                return 0;
        }
        if (r < 0)
                return r;
        *ret = version_in(output);
        if (!*ret)
                diag_warn_at(&w->warnings, "version-unknown", NULL, w->action->id,
                             "%s --version prints no version, so it cannot be compared with the driver",
                             program);
        return 0;
}

static int check_program(Work *w, const char *program, const char *driver, Text *t) {
        _free_ char *version = NULL;
        if (streq(program, "nvlsm"))
                return check_nvlsm(w);
        if (root_program(w->root, program) <= 0)    /* its unit reports that */
                return 0;
        int r = ask_version(w, program, &version);
        if (r < 0 || !version)
                return r;
        json_object_set_new(w->found, program, json_string(version));
        if (!streq(version, driver))
                text_add(t, "%s%s is %s", t->size > 0 ? " and " : "", program, version);
        return 0;
}

int versions_work(Work *w) {
        _free_ char *driver = NULL;
        _cleanup_(text_done) Text t = {};
        int r = driver_version(w, &driver);
        if (!driver)
                return r;
        w->found = json_pack("{s:s}", "driver", driver);
        for (char **program = w->action->words; r >= 0 && program && *program; program++)
                r = check_program(w, *program, driver, &t);
        if (r >= 0 && t.size > 0)
                r = work_fail(w, -EPROTO, CAUSE_VERSION,
                              "the NVIDIA driver is %s, but %s: the versions must match; install all "
                              "NVIDIA packages at the same version. Reboot if the old driver is still loaded",
                              driver, t.data);
        return r;
}
