/* SPDX-License-Identifier: Apache-2.0 */
/* Reload of systemd, start of units, and the marker that leaves later interfaces to the CNI. Also
 * failurePolicy: a failed device step keeps kubelet down or taints the node. */
#include "plan/planner.h"
#include "base/str.h"

#define FABRIC_MANAGER "nvidia-fabricmanager.service"

/* Files that a daemon reads at start: of its group, drop-ins, environments. SOCI and the puller have files
 * of their own in the containerd group. */
static bool is_read_by_unit(const Action *a, const char *unit) {
        _free_ char *drop_ins = xasprintf(UNIT_DIR "/%s.d/", unit),
                    *own = xasprintf(ENVIRONMENT_DIR "/%s", unit),
                    *group = xstrndup(unit, strcspn(unit, "."));
        if (a->phase != PHASE_CONFIG)
                return false;
        if (startswith(a->target, drop_ins) || streq(a->target, SYSTEM_ENVIRONMENT) ||
            streq(a->target, ENVIRONMENT_DIR "/default") || streq(a->target, own))
                return true;
        if (streq(a->target, SOCI_CONFIG))
                return streq(unit, SOCI_UNIT);
        if (streq(a->target, PRE_PULL_CONFIG))
                return streq(unit, PRE_PULL_UNIT);
        return streq(a->group, group) && !startswith(a->target, UNIT_DIR "/");
}

/* The pointer is valid until the next plan_add(). */
static Action *plan_unit(Plan *plan, const char *group, const char *unit, const char *why,
                         const char *after) {
        Action *start = plan_add(plan, ACTION_START_UNIT, PHASE_RUN, group, unit, why);
        action_reads(plan, start, is_read_by_unit);
        action_after(start, PLAN_RELOAD_ID);
        action_after(start, after);
        return start;
}

/* Enabled daemons may start after it, so it comes after the disks and before our own starts. It lists the
 * mount points, one per line, for units/nodestrap-trim.service. */
static void plan_ready(Plan *plan, bool storage) {
        _cleanup_(text_done) Text mounts = {};
        for (size_t i = 0; i < plan->n; i++)
                if (plan->actions[i].type == ACTION_MOUNT)
                        text_add(&mounts, "%s\n", plan->actions[i].target);
        Action *ready = plan_file(plan, storage ? PHASE_RUN : PHASE_CONFIG, "system", MOUNTS_READY,
                                  mounts.data ? "let containerd start after the mounts"
                                              : "let containerd start: no disks to mount",
                                  mounts.data ?: "", 0644);
        if (!storage)
                action_after(ready, PLAN_RELOAD_ID);    /* and so after all files */
        for (size_t i = 0, n = strv_length(ready->after); i + 1 < plan->n; i++)      /* many, each once */
                if (plan->actions[i].type == ACTION_MOUNT || plan->actions[i].type == ACTION_BIND)
                        strv_push_at(&ready->after, n++, xstrdup(plan->actions[i].id));
}

/* Import the sandbox image: a stop and start wipes instance stores and the image. SOCI needs it in its own
 * snapshotter (nodeadm: internal/containerd/sandbox_image.go). AMIs before May 2026 have it without tag and
 * pin (awslabs/amazon-eks-ami#2729, #2730). kubelet waits for the image, but not for the pin. */
static void plan_sandbox_image(Plan *plan, const Config *config, const Host *host, bool soci) {
        _cleanup_(storage_places_done) StoragePlaces places =
                storage_binds_of(config, host->containerd_version);
        const StorageBind *store = &places.all[PLACE_CONTAINERD];
        _free_ char *id = xasprintf("bind:%s", store->path);
        bool bind = plan_find(plan, id);
        if (!bind && !store->given && !soci && plan_sandbox_is_users(config, host))
                return;
        Action *import = plan_add(plan, ACTION_IMPORT_IMAGE, PHASE_RUN, "containerd", SANDBOX_ARCHIVE,
                                  soci ? "import the pause image unless SOCI has it"
                                       : "import the pause image if containerd lacks it");
        const char *socket = plan_containerd_socket(config, host, false);
        if (streq(socket, CONTAINERD_SOCKET))
                socket = NULL;
        import->with = xstrdup(SANDBOX_IMAGE);
        import->image.socket = xstrdup_or_null(socket);
        if (!streq(store->path, CONTAINERD_DIR))
                import->image.store = xstrdup(store->path);
        import->image.snapshotter = soci ? xstrdup("soci") : NULL;
        if (soci && version_at_least(host->containerd_version, 1, 7)) {
                strv_add(&import->image.options, "--local");
                strv_add(&import->image.options, "--discard-unpacked-layers=false");
        }
        action_after(import, "start-unit:containerd.service");

        Action *pin = plan_add(plan, ACTION_PIN_IMAGE, PHASE_RUN, "containerd", SANDBOX_IMAGE,
                               "keep kubelet from removing the pause image");
        pin->image.socket = xstrdup_or_null(socket);
        pin->lenient = true;
        action_after(pin, "import-image:" SANDBOX_ARCHIVE);
}

bool plan_is_device_step(const Action *a) {
        return a->phase == PHASE_DEVICES;
}

#define FABRIC_ID "await-fabric:fabric"

/* well: all device steps must succeed; else only end. */
static void after_devices(const Plan *plan, Action *a, bool well) {
        for (size_t i = 0; i < plan->n; i++)
                if (plan_is_device_step(&plan->actions[i]) && &plan->actions[i] != a)
                        (well ? action_after : action_after_any)(a, plan->actions[i].id);
}

/* Fabric manager may die after its start, then CUDA fails on GPUs that look healthy (Azure/AgentBaker#1269).
 * The last check before kubelet, even after a failed step: this may be the cause. */
static void plan_watch(Plan *plan) {
        if (!plan_find(plan, "start-unit:" FABRIC_MANAGER))
                return;
        Action *a = plan_add(plan, ACTION_CHECK_UNIT, PHASE_DEVICES, "accelerator", FABRIC_MANAGER,
                             "check that fabric manager is still running");
        const char *const others[] = { "start-unit:containerd.service", "import-image:" SANDBOX_ARCHIVE };
        action_after(a, "start-unit:" FABRIC_MANAGER);  /* a failed start is reported already */
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                if (plan_find(plan, others[i]))
                        action_after_any(a, others[i]);
        after_devices(plan, a, false);
}

/* Asks again when all else is done, since an instance may enter service while it boots. Later actions read a
 * Node, or leave traces of one, so they all depend on it. */
static const char *plan_pool(Plan *plan, const Host *host) {
        if (host->pool != POOL_PREPARES)
                return NULL;
        Action *a = plan_add(plan, ACTION_CHECK_POOL, PHASE_RUN, "kubelet", POOL_CHECK,
                             "do not start kubelet while in the warm pool");
        a->with = xstrdup(host->pool_text);
        for (const Action *before = plan->actions; before < a; before++)
                if (before->phase != PHASE_CONFIG)
                        action_after_any(a, before->id);
        return a->id;
}

/* Even if a failure keeps kubelet down: an earlier run of this boot may have left a taint. */
static void plan_taint(Plan *plan, const Config *config, const Host *host) {
        /* Only racks have cliques, and only the fabric gate finds them. */
        bool taint = config->failure_policy == FAILURE_JOIN_TAINTED,
             label = config->nvidia.imex_label && host->gpus.class == GPU_CLASS_TRAY &&
                     plan_find(plan, FABRIC_ID);
        Action *a = plan_add(plan, ACTION_MARK_NODE, PHASE_RUN, "kubelet", TAINT_FILE,
                             taint ? "taint if a device step failed"
                                   : "clear an earlier taint from kubelet arguments");
        if (label) {
                a->node.clique = true;
                a->with = xstrdup(taint ? CLIQUE_KEY " " TAINT_KEY : CLIQUE_KEY);
                RENEW(a->why, xstrdup(taint ? "label Node with fabric clique; taint after failure"
                                            : "label the Node with its fabric clique"));
                if (!taint)
                        action_after(a, FABRIC_ID);
        }
        if (!taint)
                return;
        if (!a->with)
                a->with = xstrdup(TAINT_KEY);
        a->node.taints = kubelet_taints(config);
        action_after(a, "check-node:" TAINT_KEY);
        after_devices(plan, a, false);
}

/* It needs the kubelet files to reach the cluster. */
static void plan_check_node(Plan *plan, const Config *config, const Host *host) {
        if (config->failure_policy != FAILURE_JOIN_TAINTED)
                return;
        Action *a = plan_add(plan, ACTION_CHECK_NODE, PHASE_RUN, "kubelet", TAINT_KEY,
                             "after device failure, refuse an existing untainted Node");
        a->with = xstrdup(host->instance.id);
        for (size_t i = 0; i + 1 < plan->n; i++)
                if (is_read_by_unit(&plan->actions[i], "kubelet.service"))
                        action_after(a, plan->actions[i].id);
        after_devices(plan, a, false);
}

static void plan_turn(Plan *plan, const char *forget, FailurePolicy policy) {
        static const char *const why[] = {
                [FAILURE_HOLD] = "let kubelet start once all steps succeed",
                [FAILURE_JOIN_TAINTED] = "let kubelet start even if devices failed",
                [FAILURE_REBOOT] = "unblock kubelet, or reboot once on hardware failure",
                [FAILURE_POWER_OFF] = "unblock kubelet, or power off on hardware failure",
        };
        bool ours = !plan->as_nodeadm || policy == FAILURE_JOIN_TAINTED;
        Action *turn = plan_file(plan, PHASE_RUN, "kubelet", KUBELET_TURN,
                                 why[ours ? policy : FAILURE_HOLD], "", 0644);
        if (plan_find(plan, "import-image:" SANDBOX_ARCHIVE))
                action_after(turn, "import-image:" SANDBOX_ARCHIVE);
        action_after(turn, "start-unit:containerd.service");
        /* even if --daemon leaves containerd out */
        action_after(turn, "write-file:" MOUNTS_READY);
        action_after(turn, "mark-node:" TAINT_FILE);
        action_after(turn, forget);
        after_devices(plan, turn, policy != FAILURE_JOIN_TAINTED);
        /* A taint covers failed devices, not failed files: steps that need such a file have no result. */
        for (size_t i = 0; i < plan->n; i++)
                for (char **id = plan_is_device_step(&plan->actions[i]) ? plan->actions[i].after : NULL;
                     id && *id; id++) {
                        const Action *before = plan_find(plan, *id);
                        if (before && !plan_is_device_step(before))
                                action_after(turn, *id);
                }
}

/* SOCI and containerd do not wait for devices. The CDI cache reads the file when a container asks for a
 * device (cncf-tags/container-device-interface:pkg/cdi/cache.go). The NVIDIA runtime starts with the
 * container. */
static void plan_daemons(Plan *plan, const Config *config, const Host *host, bool soci) {
        const char *socket = plan_containerd_socket(config, host, false);
        if (soci)
                action_after(plan_unit(plan, "containerd", SOCI_UNIT, "start SOCI for FastImagePull",
                                       "write-file:" INIT_MARKER), "write-file:" MOUNTS_READY);
        Action *containerd = plan_unit(plan, "containerd", "containerd.service",
                                       "start; restart if its files changed",
                                       soci ? "start-unit:" SOCI_UNIT : "write-file:" INIT_MARKER);
        action_after(containerd, "write-file:" MOUNTS_READY);
        if (!streq(socket, CONTAINERD_SOCKET))
                containerd->with = xstrdup(socket);
        plan_sandbox_image(plan, config, host, soci);
        if (config->containerd.pre_pull)        /* src/pull; nothing waits for it */
                plan_unit(plan, "containerd", PRE_PULL_UNIT, "pull images while kubelet starts",
                          "start-unit:containerd.service")->lenient = true;
        plan_watch(plan);
        const char *pool = plan_pool(plan, host);
        size_t rest = plan->n;
        plan_check_node(plan, config, host);
        plan_taint(plan, config, host);
        const char *forget = plan_state(plan, config, host);
        plan_turn(plan, forget, config->failure_policy);
        Action *kubelet = plan_unit(plan, "kubelet", "kubelet.service",
                                    "start last, because this registers the node",
                                    "start-unit:containerd.service");
        strv_add(&kubelet->unit.reads, TAINT_FILE);    /* restarts kubelet when it changes */
        kubelet->unit.no_swap = plan_kubelet_switch(plan, "failSwapOn", true);
        kubelet->unit.defaults = plan_kubelet_switch(plan, "protectKernelDefaults", false);
        action_after(kubelet, "write-file:" KUBELET_TURN);
        for (; pool && rest < plan->n; rest++)
                action_after(&plan->actions[rest], pool);
}

void plan_units(Plan *plan, const Config *config, const Host *host) {
        const char *reason;
        Action *reload = plan_add(plan, ACTION_RELOAD_MANAGER, PHASE_CONFIG, "system", "systemd",
                                  "reload if units or drop-ins changed");
        for (const Action *a = plan->actions; a < reload; a++)
                if (a->type == ACTION_PRUNE_FILES ||
                    (a->type == ACTION_WRITE_FILE &&
                     (startswith(a->target, UNIT_DIR "/") || streq(a->target, SYSTEM_ENVIRONMENT))))
                        action_after(reload, a->id);
        plan_ready(plan, config->instance.storage.strategy != STORAGE_NONE || config->instance.n_volumes > 0);
        plan_file(plan, PHASE_RUN, "system", INIT_MARKER, "let the CNI configure interfaces added later", "",
                  0644);
        plan_daemons(plan, config, host, plan_uses_soci(config, host, &reason));
}
