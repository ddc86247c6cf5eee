/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with the files: the marker that hands later interfaces to the CNI, the reload of systemd, the units in their order;
 * and what the configuration asks for and this version cannot do. */
#include "plan/plan.h"
#include "base/hash.h"
#include "base/str.h"

#define MARKER        "/run/nodeadm/init"       /* nodeadm-internal's udev helper looks for it (nodeadm: internal/system/marker.go) */
#define KUBELET_TURN  "/run/nodestrap/kubelet-may-start" /* units/kubelet.service.d: the same for a kubelet that is enabled by itself */
#define UNIT_DIR      "/etc/systemd/system/"
#define SOCI_UNIT     "soci-snapshotter.service"
#define SOCI_FILE     "/etc/soci-snapshotter-grpc/config.toml"

static bool is_file(const Action *a) {
        return a->type == ACTION_WRITE_FILE;
}

/* Drop-ins of units and PID 1's own settings: what daemon-reload reads. */
static bool is_read_by_manager(const Action *a) {
        return is_file(a) && (startswith(a->target, UNIT_DIR) || streq(a->target, SYSTEM_ENVIRONMENT));
}

/* What a daemon reads when it starts: its group's files, its drop-ins, everybody's environment. SOCI's file is SOCI's. */
static bool is_read_by_unit(const Action *a, const char *unit) {
        _cleanup_(freep) char *drop_ins = xasprintf(UNIT_DIR "%s.d/", unit), *group = xstrndup(unit, strcspn(unit, "."));
        if (!is_file(a) || a->phase != PHASE_CONFIG)
                return false;
        if (startswith(a->target, drop_ins) || streq(a->target, SYSTEM_ENVIRONMENT))
                return true;
        if (streq(a->target, SOCI_FILE))
                return streq(unit, SOCI_UNIT);
        return streq(a->group, group) && !startswith(a->target, UNIT_DIR);
}

static void plan_reload(Plan *plan) {
        plan_add(plan, ACTION_RELOAD_MANAGER, PHASE_CONFIG, "system", "systemd", "if units or drop-ins changed");
        Action *reload = &plan->actions[plan->n - 1];
        for (size_t i = 0; i + 1 < plan->n; i++)
                if (is_read_by_manager(&plan->actions[i]) || plan->actions[i].type == ACTION_PRUNE_FILES)
                        action_after(reload, plan->actions[i].id);
}

static void plan_unit(Plan *plan, const char *group, const char *unit, const char *why, const char *after) {
        Action *start = plan_add(plan, ACTION_START_UNIT, PHASE_RUN, group, unit, why);
        _cleanup_(text_done) Text inputs = {};
        for (size_t i = 0; i + 1 < plan->n; i++) {
                const Action *a = &plan->actions[i];
                if (!is_read_by_unit(a, unit))
                        continue;
                char digest[65];
                sha256_hex(a->file.content, a->file.size, digest);
                text_add(&inputs, "%s %s\n", digest, a->target);
                strv_add(&start->unit.reads, a->target);
                action_after(start, a->id);
        }
        sha256_hex(inputs.data ?: "", inputs.size, start->unit.inputs);
        action_after(start, PLAN_RELOAD_ID);
        action_after(start, after);
}

/* After it a daemon may start that is enabled by itself, so it comes last of what concerns disks, and before our own starts. */
static void plan_ready(Plan *plan, bool storage) {
        bool mounts = false;
        for (size_t i = 0; i < plan->n; i++)
                mounts = mounts || plan->actions[i].type == ACTION_MOUNT;
        Action *ready = plan_file(plan, storage ? PHASE_RUN : PHASE_CONFIG, "system", MOUNTS_READY,
                                  mounts ? "the local disks are mounted: containerd may start" : "no local disks are to be mounted: containerd may start by itself", "", 0644);
        if (!storage)
                action_after(ready, PLAN_RELOAD_ID);    /* and so after all files */
        for (size_t i = 0; i + 1 < plan->n; i++)
                if (plan->actions[i].type == ACTION_MOUNT || plan->actions[i].type == ACTION_BIND)
                        action_after(ready, plan->actions[i].id);
}

/* containerd's store has moved to disks that a stop and start of the instance blanks, and the AMI's sandbox image with it. SOCI's
 * drop-in imports it by itself. */
static void plan_sandbox_image(Plan *plan) {
        const Action *bind = plan_find(plan, "bind:/var/lib/containerd");
        if (!bind)
                return;
        StepState state = bind->storage.state;
        Action *import = plan_add(plan, ACTION_IMPORT_IMAGE, PHASE_RUN, "containerd", SANDBOX_ARCHIVE,
                                  state == STEP_KEEP ? "containerd's store is where it was" : "if it is not on the local disks");
        import->with = xstrdup(SANDBOX_IMAGE);
        import->storage.state = state;
        action_after(import, "start-unit:containerd.service");
}

static void plan_units(Plan *plan, bool soci) {
        if (soci) {
                plan_unit(plan, "containerd", SOCI_UNIT, "FastImagePull", "write-file:" MARKER);
                action_after(&plan->actions[plan->n - 1], "write-file:" MOUNTS_READY);
        }
        plan_unit(plan, "containerd", "containerd.service", "restarted if what it reads changed",
                  soci ? "start-unit:" SOCI_UNIT : "write-file:" MARKER);
        action_after(&plan->actions[plan->n - 1], "write-file:" MOUNTS_READY);
        if (!soci)
                plan_sandbox_image(plan);
        Action *turn = plan_file(plan, PHASE_RUN, "kubelet", KUBELET_TURN, "all that kubelet waits for went well", "", 0644);
        if (plan_find(plan, "import-image:" SANDBOX_ARCHIVE))
                action_after(turn, "import-image:" SANDBOX_ARCHIVE);
        action_after(turn, "start-unit:containerd.service");
        action_after(turn, "write-file:" MOUNTS_READY);         /* also where --daemon leaves containerd out */
        plan_unit(plan, "kubelet", "kubelet.service", "last: the node may register now", "start-unit:containerd.service");
        action_after(&plan->actions[plan->n - 1], "write-file:" KUBELET_TURN);
}

int plan_run(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        (void)diag;
        const char *reason;
        plan_reload(plan);
        plan_ready(plan, config->instance.storage.strategy != STORAGE_NONE);
        plan_file(plan, PHASE_RUN, "system", MARKER, "interfaces attached from now on are the CNI's", "", 0644);
        plan_units(plan, plan_uses_soci(config, host, &reason));
        for (char **path = config->unsupported; path && *path; path++)
                plan_add(plan, ACTION_UNSUPPORTED, PHASE_RUN, "unsupported", *path, "not supported yet, and not ignored: init refuses this plan");
        return 0;
}
