/* SPDX-License-Identifier: Apache-2.0
 * Plan → Needs, from the rows of plan/action.c, and from the table below for the daemons that a plan
 * starts. The causes are those of the actions in apply/. */
#include "doctor/look.h"

#include "apply/device.h"
#include "base/paths.h"
#include "base/sysctl.h"
#include "config/kubelet.h"

typedef struct Question {
        Needs *needs;
        const Plan *plan;
        const char *type;
        const Action *action;           /* NULL: nodestrap itself */
} Question;

/* A mandatory need replaces an optional one, with its cause and its types only. */
static void want(const Question *q, NeedKind kind, const char *name, Cause cause, bool optional) {
        Need *n = (Need *)needs_find(q->needs, kind, name);
        if (n && optional && !n->optional)
                return;
        if (!n) {
                n = APPEND(q->needs->items, q->needs->n);
                *n = (Need){ .kind = kind, .name = xstrdup(name), .optional = true };
        }
        if (!n->types || n->optional != optional) {
                RENEW(n->step, q->action ? xstrdup(q->action->id) : NULL);
                n->cause = cause;
                n->optional = optional;
                n->types = strv_free(n->types);
        }
        size_t last = strv_length(n->types);
        if (last == 0 || !streq(n->types[last - 1], q->type))
                strv_push_at(&n->types, last, xstrdup(q->type));
}

/* The kernel and systemd make these at each boot. */
static bool is_volatile(const char *path) {
        static const char folders[][12] = { "/run/", "/var/run/", "/dev/", "/proc/", "/sys/", "/tmp/" };
        return ANY(f, folders, ARRAY_SIZE(folders), startswith(path, *f));
}

static void want_directory(const Question *q, const char *path, Cause cause) {
        if (!is_volatile(path))
                want(q, NEED_DIRECTORY, path, cause, false);
}

static void want_folder(const Question *q) {
        _free_ char *folder = parent_of(q->action->target);
        if (!is_volatile(q->action->target))
                want_directory(q, folder, CAUSE_FILE);
}

/* containerd runs the program at options.BinaryName (docs/cri/config.md there). The NVIDIA runtime edits the
 * configuration of the container and needs runc:
 * https://github.com/NVIDIA/nvidia-container-toolkit/blob/main/cmd/nvidia-container-runtime/README.md */
static void want_runtimes(const Question *q) {
        static const char key[] = "BinaryName = ";
        const char *text = q->action->file.content;
        want_folder(q);
        if (!streq(q->action->target, "/etc/containerd/config.toml"))
                return;
        if (text && !strstr(text, "io.containerd.nri.v1.nri"))          /* the user decides */
                want(q, NEED_NRI, "NRI plugins", CAUSE_NONE, true);
        for (const char *p = text ? strstr(text, key) : NULL; p; p = strstr(p, key)) {
                p += strlen(key);
                const char *end = *p == '"' || *p == '\'' ? strchr(p + 1, *p) : NULL;
                if (!end)
                        continue;
                _free_ char *path = xstrndup(p + 1, (size_t)(end - p - 1));
                if (*path != '/' || strchr(path, '\\'))
                        continue;
                want(q, NEED_PROGRAM, path, CAUSE_NOT_READY, false);
                if (startswith(strrchr(path, '/'), "/nvidia-container-runtime"))
                        want(q, NEED_PROGRAM, "runc", CAUSE_NOT_READY, false);
        }
}

static void want_unit(const Question *q) {
        const Action *a = q->action;
        want(q, NEED_UNIT, a->target, CAUSE_UNIT_MISSING,
             a->optional || a->lenient || action_row(a->type)->asks == ASKS_OLD_UNIT);
}

static void want_array(const Question *q) {
        want(q, NEED_MODULE, "md_mod", CAUSE_ARRAY, false);
        if (q->action->storage.level)
                want(q, NEED_MODULE, q->action->storage.level, CAUSE_ARRAY, false);
}

static void want_mkfs(const Question *q) {
        const char *filesystem = q->action->storage.filesystem ?: q->action->with;
        if (!filesystem)
                return;
        _free_ char *program = xasprintf("mkfs.%s", filesystem);
        want(q, NEED_PROGRAM, program, CAUSE_STORAGE_TOOL, q->action->lenient);
        want(q, NEED_MODULE, filesystem, CAUSE_MOUNT, q->action->lenient);
}

static void want_place(const Question *q) {
        want_directory(q, q->action->target, CAUSE_MOUNT);
}

static void want_module(const Question *q) {
        _free_ char *name = module_name(q->action->target);
        want(q, NEED_MODULE, name, module_cause(name), q->action->lenient);
}

/* nvidia-imex without await-imex: the DRA driver starts it in a pod, and a boot does not wait for it. */
static void want_programs(const Question *q) {
        for (char **program = q->action->words; program && *program; program++) {
                if (streq(*program, "nvlsm")) {
                        want(q, NEED_PROGRAM, NVLSM_PROGRAM, CAUSE_FABRIC_MANAGER, false);
                        want(q, NEED_FILE, NVLSM_CONFIG, CAUSE_FABRIC_MANAGER, false);
                        want(q, NEED_PROGRAM, "ibstat", CAUSE_FABRIC_MANAGER, false);
                } else
                        want(q, NEED_PROGRAM, *program,
                             streq(*program, "nvidia-imex") ? CAUSE_IMEX : CAUSE_FABRIC_MANAGER,
                             streq(*program, "nvidia-imex") && !plan_find(q->plan, "await-imex:imex"));
        }
}

static void want_nodes(const Question *q) {
        if (q->action->pages.node >= 0)
                want(q, NEED_FEATURE, "CONFIG_NUMA", CAUSE_HUGEPAGES, q->action->lenient);
}

static void want_archive(const Question *q) {
        want(q, NEED_FILE, q->action->target, CAUSE_NOT_READY, true);   /* containerd may have it already */
}

static void (*const asks[_ASKING_MAX])(const Question *q) = {
        [ASKS_FOLDER] = want_folder,   [ASKS_RUNTIMES] = want_runtimes, [ASKS_UNIT] = want_unit,
        [ASKS_OLD_UNIT] = want_unit,   [ASKS_ARRAY] = want_array,       [ASKS_FILESYSTEM] = want_mkfs,
        [ASKS_PLACE] = want_place,     [ASKS_MODULE] = want_module,     [ASKS_PROGRAMS] = want_programs,
        [ASKS_NUMA] = want_nodes,      [ASKS_ARCHIVE] = want_archive,
};

#define CONTAINERD "start-unit:containerd.service"
#define KUBELET    "start-unit:kubelet.service"

/* kubelet checks these first: kubernetes/kubernetes, pkg/kubelet/cm/container_manager_linux.go. */
static void want_settings(Question *q) {
        q->action = plan_find(q->plan, KUBELET);
        if (!q->action)
                return;
        bool protects = plan_kubelet_switch(q->plan, "protectKernelDefaults", false);
        for (size_t i = 0; protects && i < n_kubelet_tunables; i++) {
                const Tunable *t = &kubelet_tunables[i];
                _free_ char *name = sysctl_name(t->path), *setting = xasprintf("%s=%s", name, t->value);
                if (!plan_sets(q->plan, t->path))
                        want(q, NEED_SYSCTL, setting, CAUSE_UNIT, false);
        }
        if (plan_kubelet_switch(q->plan, "failSwapOn", true))
                want(q, NEED_NO_SWAP, "no swap", CAUSE_UNIT, false);
}

void needs_of_tuning(const Plan *plan, const char *type, Needs *needs) {
        Question q = { .needs = needs, .plan = plan, .type = type };
        want(&q, NEED_TUNING, plan_find(plan, "set-tuning:cpus") ? TUNED_OTHERS : TUNED_SETTINGS, CAUSE_NONE,
             true);
        if (!plan_sets(plan, SYSCTL_DIR "kernel/numa_balancing"))
                want(&q, NEED_SYSCTL, "kernel.numa_balancing=0", CAUSE_NONE, true);
}

/* step: of the plan that starts it; NULL: every plan. cause: CAUSE_NONE: optional. names: "a|b". */
static void want_of(Question *q, const char *step, NeedKind kind, Cause cause, const char *names) {
        q->action = step ? plan_find(q->plan, step) : NULL;
        while (*names && (!step || q->action)) {
                _free_ char *name = str_cut(&names, "|");
                want(q, kind, name, cause, cause == CAUSE_NONE);
        }
}

/* Calls, as a table of pointers would be relocated at each start. */
static void want_daemons(Question *q) {
        /* kubeconfig and our units name this path */
        want_of(q, NULL, NEED_PROGRAM, CAUSE_INIT, "/usr/bin/nodestrap");
        /* image_settle() makes these mandatory */
        want_of(q, NULL, NEED_UNIT, CAUSE_NONE,
                "nodestrap-config.service|nodestrap-devices.service|nodestrap-run.service");
        /* for the node name of EC2, and for Events */
        want_of(q, NULL, NEED_LIBRARY, CAUSE_NONE, "libcurl.so.4");
        /* every Nitro instance: docs.aws.amazon.com/ec2/latest/instancetypes/ec2-nitro-instances.html */
        want_of(q, NULL, NEED_MODULE, CAUSE_IMDS, "ena");
        want_of(q, NULL, NEED_MODULE, CAUSE_DISKS, "nvme");
        /* its default snapshotter and runtime: containerd, docs/getting-started.md */
        want_of(q, CONTAINERD, NEED_PROGRAM, CAUSE_UNIT, "containerd");
        want_of(q, CONTAINERD, NEED_PROGRAM, CAUSE_NOT_READY, "containerd-shim-runc-v2");
        want_of(q, CONTAINERD, NEED_MODULE, CAUSE_UNIT, "overlay");
        want_of(q, CONTAINERD, NEED_FEATURE, CAUSE_UNIT, "CONFIG_CGROUPS");
        /* namespaces of a container, its devices with cgroup v2: opencontainers/runc, script/check-config.sh;
         * RuntimeDefault of seccompProfile: https://kubernetes.io/docs/tutorials/security/seccomp/ */
        want_of(q, CONTAINERD, NEED_FEATURE, CAUSE_NOT_READY,
                "CONFIG_NAMESPACES|CONFIG_UTS_NS|CONFIG_IPC_NS|CONFIG_PID_NS|CONFIG_NET_NS|"
                "CONFIG_CGROUP_BPF|CONFIG_SECCOMP_FILTER");
        /* the controllers that kubelet needs: kubernetes, pkg/kubelet/cm/cgroup_manager_linux.go */
        want_of(q, KUBELET, NEED_FEATURE, CAUSE_UNIT,
                "CONFIG_MEMCG|CONFIG_CPUSETS|CONFIG_FAIR_GROUP_SCHED|CONFIG_CGROUP_PIDS");
        /* for volume mounts of kubelet: kubernetes, staging/src/k8s.io/mount-utils/mount_linux.go */
        want_of(q, KUBELET, NEED_PROGRAM, CAUSE_UNIT, "kubelet");
        want_of(q, KUBELET, NEED_PROGRAM, CAUSE_NOT_READY, "mount|umount");
        /* it makes them, for the sockets of device plugins, DRA and CSI drivers: kubernetes,
         * pkg/kubelet/kubelet.go, setupDataDirs() */
        want_of(q, KUBELET, NEED_DIRECTORY, CAUSE_UNIT,
                KUBELET_DIR "/device-plugins|" KUBELET_DIR "/plugins|" KUBELET_DIR "/plugins_registry");
        /* with FastImagePull, to unpack gzip */
        want_of(q, "start-unit:soci-snapshotter.service", NEED_PROGRAM, CAUSE_NONE, "unpigz");
        want_of(q, "start-unit:nvidia-fabricmanager.service", NEED_PROGRAM, CAUSE_FABRIC_MANAGER,
                "nv-fabricmanager");
        want_of(q, "start-unit:nvidia-fabricmanager.service", NEED_FILE, CAUSE_FABRIC_MANAGER, FABRIC_CONFIG);
        want_of(q, "start-unit:nvidia-imex.service", NEED_PROGRAM, CAUSE_IMEX, "nvidia-imex");
}

void needs_of_plan(const Plan *plan, const char *type, Needs *needs) {
        Question q = { .needs = needs, .plan = plan, .type = type };
        want_daemons(&q);
        /* kubelet runs it for each pull from ECR. Without it the plan warns. */
        static const char words[] = "--image-credential-provider-bin-dir=/etc/eks/image-credential-provider ";
        q.action = plan_find(q.plan, "write-file:" KUBELET_ENVIRONMENT);
        if (q.action && q.action->file.content && strstr(q.action->file.content, words))
                want(&q, NEED_PROGRAM, ECR_PROVIDER, CAUSE_UNIT, true);
        want_settings(&q);
        for (size_t i = 0; i < plan->n; i++) {
                q.action = &plan->actions[i];
                const ActionRow *row = action_row(q.action->type);
                for (const ActionNeed *n = row->needs; n && *n->name; n++)
                        want(&q, n->kind, n->name, n->cause, q.action->lenient);
                if (asks[row->asks])
                        asks[row->asks](&q);
        }
}
