/* SPDX-License-Identifier: Apache-2.0
 * MIG mode. Hopper and later change it at once. On Ampere it survives reboots, and a change stays pending
 * until a GPU reset. A reset needs an unused GPU, and may be impossible in a virtual machine. Then the
 * machine reboots once, before kubelet starts, and MIG_LEDGER records that
 * (docs.nvidia.com/datacenter/tesla/mig-user-guide; NVIDIA/mig-parted does the same). "In use" only means
 * pending (NVIDIA/gpu-operator#118, #1845). */
#include "apply/mig.h"

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>

#define LEDGER_MAX (16 << 10)
#define IN_USE_ASKS 5                   /* a second apart: monitors let go soon */
#define RESET_ASKS  3
#define IN_USE_WORDS "In use by another client" /* nvidia-smi, when it cannot reset (NVIDIA/mig-parted#181) */

static bool is_accepted(const DividedGpu *part) {
        bool on = false, pending = false;
        return nvml_mig_mode(part->device, &on, &pending) == NVML_OK && pending == part_wants_mig(part);
}

static int part_set_mode(Division *d, DividedGpu *part, int asks) {
        int code = NVML_OK;
        for (part->activation = NVML_OK; asks > 0; asks--) {
                work_at(d->w, "NVML did not answer when asked to set the MIG mode of %s; look for an Xid in "
                              "dmesg", part->name);
                code = nvml_mig_set_mode(part->device, part_wants_mig(part), &part->activation);
                if (code != NVML_OK || part->activation != NVML_IN_USE)
                        break;
                if (is_accepted(part)) {
                        d->accepted = true;
                        return 0;
                }
                work_progress(d->w, "%s is in use, so its MIG mode cannot be set yet", part->name);
                if (asks > 1 && !work_pause(d->w, USEC_PER_SEC))
                        break;
        }
        d->accepted |= code == NVML_OK && part->activation == NVML_RESET_REQUIRED;
        code = code == NVML_OK ? part->activation : code;
        if (code == NVML_OK || code == NVML_RESET_REQUIRED || code == NVML_IN_USE)
                return 0;
        return division_fail(d, part, code, "its MIG mode cannot be set");
}

/* again: only GPUs that were in use. 1: a change is pending. */
static int modes_set(Division *d, bool again) {
        bool waits = false;
        for (size_t i = 0; i < d->n; i++) {
                DividedGpu *part = &d->parts[i];
                if (!part->touched || part->mode_same)
                        continue;
                int r = !again && part->was_on && !part_wants_mig(part) ? part_clear(d, part, NULL) : 0;
                if (r >= 0 && (!again || part->activation == NVML_IN_USE))
                        r = part_set_mode(d, part, again ? IN_USE_ASKS : 1);
                if (r >= 0 && again && part->activation == NVML_IN_USE && !is_accepted(part))
                        r = division_fail(d, part, NVML_IN_USE, "its MIG mode cannot be set");
                if (r < 0)
                        return r;
                waits |= part->activation != NVML_OK;
        }
        return waits;
}

int modes_read(Division *d) {
        bool all = true, pending = false;
        for (size_t i = 0; i < d->n; i++) {
                DividedGpu *part = &d->parts[i];
                int code = part->supported ? nvml_mig_mode(part->device, &part->is_on, &pending) : NVML_OK;
                if (code != NVML_OK)
                        return division_fail(d, part, code, "its MIG mode cannot be read");
                all &= !part->touched || part->is_on == part_wants_mig(part);
        }
        return all;
}

/* GPUs behind an NVSwitch reset only together, and fabric manager trains their links again
 * (docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide). */
static int reset_all(Division *d) {
        bool together = d->w->action->class == GPU_CLASS_NVSWITCH;
        for (size_t i = 0; i < d->n; i++) {
                unsigned gpu = d->parts[i].layout->gpu;
                if (!d->parts[i].touched)
                        continue;
                _strv_ char **argv = command("nvidia-smi", "--gpu-reset", together ? NULL : "-i",
                                             d->parts[i].address, NULL);
                _free_ char *what = together ? xstrdup("the GPUs cannot be reset")
                                             : xasprintf("GPU %u cannot be reset", gpu);
                int r = work_run(d->w, CAUSE_MIG, what, argv);
                if (r < 0 || together)
                        return r;
        }
        return 0;
}

/* Retries after units that restarted by themselves are stopped. */
static int reset_again(Division *d) {
        /* Persistence mode also holds GPUs (NVIDIA/NVSentinel#1690); set-clocks sets it again. */
        bool on = false;
        for (size_t i = 0; i < d->gpus.n; i++)
                if (nvml_persistence(d->gpus.items[i].device, &on) == NVML_OK && on)
                        (void)!nvml_set_persistence(d->gpus.items[i].device, false);
        division_close(d);              /* this process holds them, too */
        int r = reset_all(d);
        for (int asks = 1; r < 0 && asks < RESET_ASKS && strstr(d->w->text, IN_USE_WORDS); asks++) {
                holders_stop(d->w, true);
                if (!work_pause(d->w, USEC_PER_SEC) || !holders_may_stop(d->w))
                        break;
                r = reset_all(d);
        }
        if (r >= 0)
                return r;
        bool used = strstr(d->w->text, IN_USE_WORDS);
        _free_ char *users = used ? holders_found(d->w) : NULL;
        d->reset_why = used ? xasprintf("resetting: " IN_USE_WORDS "%s%s", *users ? "; " : "", users)
                            : xstrndup(d->w->text, strcspn(d->w->text, "\n"));
        return r;
}

/* With the instance id: an image may carry the ledger of another instance. */
static char *ledger_text(const Division *d) {
        _free_ char *instance = NULL;
        Text t = {};
        if (root_read_line(d->w->root, "/sys/devices/virtual/dmi/id/board_asset_tag", &instance) < 0)
                instance = NULL;
        text_add(&t, "%s\n", instance ?: "-");
        for (size_t i = 0; i < d->n; i++) {
                _free_ char *list = strv_join(d->parts[i].layout->profiles, ",");
                text_add(&t, "%u %s\n", d->parts[i].layout->gpu, list);
        }
        return text_take(&t);
}

static char *waiting_parts(const Division *d) {
        Text t = {};
        size_t n = 0;
        for (size_t i = 0; i < d->n; i++)
                if (d->parts[i].touched && d->parts[i].is_on != part_wants_mig(&d->parts[i])) {
                        text_add(&t, "%s%s", t.data ? ", " : "", d->parts[i].name);
                        n++;
                }
        if (n < 2 || n < d->w->action->device.count)
                return text_take(&t);
        text_done(&t);
        return xasprintf("all %zu GPUs", n);
}

/* A reboot now would hit pods; the next one activates the mode. */
static int fail_to_stop(Division *d) {
        (void)!modes_read(d);
        _free_ char *gpus = waiting_parts(d);
        return work_fail(d->w, -EBUSY, CAUSE_MIG_REBOOT,
                         "MIG mode of %s is set and takes effect after a reboot. kubelet may "
                         "already be running, so nodestrap does not reboot: drain the node and reboot it",
                         gpus);
}

static int refuse_reboot(Division *d, const char *boot, const char *gpus, const char *wanted) {
        _free_ char *ledger = NULL;
        const char *why = d->reset_why ?: "resetting did not change it";
        (void)!root_read(d->w->root, MIG_LEDGER, LEDGER_MAX, &ledger, NULL);
        char *rest = ledger ? strchr(ledger, '\n') : NULL; /* the first line is the boot id */
        bool earlier = rest && streq(rest + 1, wanted);
        d->rebooting = earlier && strncmp(ledger, boot, (size_t)(rest - ledger)) == 0 &&
                       strlen(boot) == (size_t)(rest - ledger);
        if (d->rebooting)
                return work_fail(d->w, -EINPROGRESS, CAUSE_MIG_REBOOT,
                                 "MIG mode of %s takes effect after a reboot, which nodestrap has already "
                                 "requested",
                                 gpus);
        if (earlier)
                return work_fail(d->w, -EIO, CAUSE_MIG_REBOOT,
                                 "MIG mode of %s is still pending after a reboot (now: %s); nodestrap "
                                 "does not reboot again. nvidia-smi -q shows the modes; remove "
                                 MIG_LEDGER " to allow another reboot",
                                 gpus, why);
        if (!holders_may_stop(d->w))
                return fail_to_stop(d);
        /* an abandoned step must not reboot later */
        if (!work_pause(d->w, 0))
                return work_fail(d->w, -ECANCELED, CAUSE_MIG_REBOOT,
                                 "the step ended before MIG mode of %s took effect; run nodestrap init "
                                 "again", gpus);
        /* cloud-init runs user scripts once per instance, so a reboot would cut them off for good */
        if (d->w->early)
                return work_fail(d->w, -EINPROGRESS, CAUSE_MIG_REBOOT,
                                 "MIG mode of %s takes effect after a reboot (%s); the run phase reboots "
                                 "after the user scripts",
                                 gpus, why);
        return 0;
}

static int reboot_once(Division *d) {
        _strv_ char **argv = command("systemctl", "--no-block", "reboot", NULL);
        _free_ char *wanted = ledger_text(d), *boot = NULL, *gpus = waiting_parts(d);
        const char *why = d->reset_why ?: "resetting did not change it";
        int r = root_boot_id(d->w->root, &boot);
        if (r < 0)
                return work_fail(d->w, r, CAUSE_MIG_REBOOT,
                                 "MIG mode of %s takes effect after a reboot, but nodestrap cannot "
                                 "read the boot ID: %m; reboot the machine yourself",
                                 gpus);
        r = refuse_reboot(d, boot, gpus, wanted);
        if (r < 0)
                return r;
        _free_ char *text = xasprintf("%s\n%s", boot, wanted);
        r = root_replace(d->w->root, MIG_LEDGER, text, strlen(text), 0644);
        if (r < 0)
                return work_fail(d->w, r, CAUSE_MIG_REBOOT,
                                 "MIG mode takes effect after a reboot, but " MIG_LEDGER " cannot be "
                                 "written: %m; so nodestrap does not reboot");
        /* Logged first: SIGTERM of the reboot may end this run before its report. */
        log_warning("%s: MIG mode of %s takes effect after a reboot (%s); this machine reboots now, once",
                    d->w->action->id, gpus, why);
        r = work_run(d->w, CAUSE_MIG_REBOOT,
                     "MIG mode takes effect after a reboot, which systemd did not start", argv);
        /* SIGTERM also ends systemctl. Without SIGTERM, systemctl failed, and a later boot may retry. */
        d->rebooting = r >= 0 || !work_pause(d->w, USEC_PER_SEC);
        if (!d->rebooting)
                return root_remove(d->w->root, MIG_LEDGER) < 0 ? -EIO : r;
        return work_fail(d->w, -EINPROGRESS, CAUSE_MIG_REBOOT,
                         "MIG mode of %s takes effect after a reboot (%s); this machine reboots now, once, "
                         "and then continues",
                         gpus, why);
}

/* After set-mig-mode the plan itself starts persistenced and fabric manager. */
static int holders_return(Division *d, bool well) {
        bool own = d->w->action->type == ACTION_SET_MIG_MODE,
             manager = holders_stopped(d->w, "nvidia-fabricmanager.service");
        holders_start(d->w, !own || !well);
        if (!well || own || !manager)
                return 0;
        /* The plan has awaited fabric manager already, so later steps need it running. */
        _strv_ char **argv = command("systemctl", "start", "nvidia-fabricmanager.service", NULL);
        return work_run(d->w, CAUSE_FABRIC_MANAGER,
                        "fabric manager does not start again after the reset of the GPUs", argv);
}

/* false: only users of the GPU block the mode. */
static bool wants_reset(const Division *d) {
        bool wants = d->w->action->type == ACTION_SET_MIG_MODE;
        for (size_t i = 0; i < d->n; i++)
                wants |= d->parts[i].touched && d->parts[i].activation == NVML_RESET_REQUIRED;
        return wants;
}

static int modes_reset(Division *d) {
        int r = holders_may_stop(d->w) ? reset_again(d) : fail_to_stop(d);
        if (r < 0 && !d->reset_why)
                return r;
        r = division_open(d);
        THEN(r, modes_read(d));
        return r > 0 ? 0 : r < 0 ? r : reboot_once(d);
}

int modes_change(Division *d) {
        int r = modes_set(d, false);
        if (r <= 0)
                return r;
        if (!holders_may_stop(d->w) && d->accepted)
                return fail_to_stop(d);
        holders_stop(d->w, wants_reset(d));
        r = modes_set(d, true);
        const DividedGpu *waits = FIND(p, d->parts, d->n, p->touched && p->activation != NVML_OK);
        if (r > 0 && wants_reset(d))
                r = modes_reset(d);
        else if (r > 0)
                r = waits ? division_fail(d, waits, waits->activation, "its MIG mode is pending") : -EIO;
        int back = d->rebooting ? 0 : holders_return(d, r >= 0);
        return r < 0 ? r : back;
}
