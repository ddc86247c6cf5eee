/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Config + Host → Plan; pure: no file, no clock, no environment, no bus. `make pure` looks at its undefined
 * symbols. */
#include "base/error.h"
#include "base/time.h"
#include "config/config.h"
#include "host/host.h"

typedef enum Phase { PHASE_CONFIG, PHASE_RUN, _PHASE_MAX, _PHASE_INVALID = -22 } Phase;
DECLARE_STRING_TABLE(phase, Phase);

typedef enum ActionType {
        ACTION_WRITE_FILE,      /* target: path; file.* */
        ACTION_WRITE_BLOCK,     /* target: path; file.content between markers inside
                                 * a file that others own too; empty: no block */
        ACTION_PRUNE_FILES,     /* target: the manifest; removes files that an
                                 * earlier plan wrote and this one does not */
        ACTION_RELOAD_MANAGER,  /* target: "systemd"; daemon-reload when units or drop-ins changed */
        ACTION_RESTART_UNIT,    /* target: unit that must take up changed settings
                                 * (unit.inputs) but is only restarted if it runs (resolved) */
        ACTION_START_UNIT,      /* target: unit; started, or restarted when
                                 * unit.inputs is not what it was last started with */
        ACTION_STOP_UNIT,       /* target: unit that must not run while its state
                                 * moves to another disk; unchanged where it does not
                                 * run, and with STEP_KEEP: nothing of its moves */
        ACTION_CREATE_RAID,     /* target: "/dev/md/kubernetes"; storage.* */
        ACTION_MAKE_FILESYSTEM, /* target: "/dev/md/kubernetes", or where the
                                 * one disk will be mounted; storage.* */
        ACTION_MOUNT,           /* target: directory; storage.* */
        ACTION_MOVE_FILES,      /* target: directory on the disks; storage.moves */
        ACTION_BIND,            /* target: directory that storage.source is bound over, shared */
        ACTION_IMPORT_IMAGE,    /* target: archive, if the image has one; with:
                                 * the name that containerd should know from it */
        ACTION_MASK_UNIT,       /* target: unit that must not run here: stopped, and masked
                                 * until the next boot; unchanged where there is none */
        ACTION_UNMASK_UNIT,     /* target: unit that an earlier run of this
                                 * boot masked and that may run now */
        ACTION_AWAIT_UNIT,      /* target: unit of the image that may be at work: waited
                                 * for, never started; unchanged where there is none or it
                                 * has no job and failed nothing; a failed one fails it */
        ACTION_SET_SYSCTL,      /* target: "vm.max_map_count"; with: its value */
        ACTION_RESERVE_PAGES,   /* target: "1Gi", "2Mi on node 0"; pages.* */
        ACTION_LOAD_MODULE,     /* target: kernel module */
        ACTION_CHECK_MACHINE,   /* target: "devices"; device.shortfalls: the census that
                                 * was taken; the first one's cause is the failure's */
        ACTION_CHECK_EFA,       /* target: "efa"; every EFA function of device.seen is bound
                                 * to the driver, and there are device.count of them */
        ACTION_CHECK_DRIVER,    /* target: "nvidia"; loaded, bound to every GPU of device.seen, with the
                                 * parameters of device.words ("ImexChannelCount=2048", as
                                 * /proc/driver/nvidia/params names them; with a "?" behind it nobody asked
                                 * for just this, and a driver that does not know it is only a warning) */
        ACTION_CHECK_VERSIONS,  /* target: "nvidia"; programs of device.words ("nv-fabricmanager",
                                 * "nvidia-imex", "nvlsm") that are there are the driver's
                                 * version; nvlsm counts its own and only has to be there */
        ACTION_AWAIT_DEVICES,   /* target: "/dev/infiniband/umad*": a directory and the beginning of
                                 * names; device.count of them: fewer are a warning, none is a failure */
        ACTION_AWAIT_FABRIC,    /* target: "fabric"; every one of device.count GPUs has
                                 * joined it, by NVML; device.class: what that means */
        ACTION_PARTITION_GPUS,  /* target: "mig"; device.layouts */
        ACTION_LIST_GPUS,       /* target: "nvidia-smi"; -L names device.count GPUs */
        ACTION_SET_CLOCKS,      /* target: "clocks"; with: "max" (persistence on, no
                                 * auto-boost, highest application clocks) or "default" */
        ACTION_GENERATE_CDI,    /* target: "/var/run/cdi/nvidia.yaml" */
        ACTION_MAKE_CHANNEL,    /* target: "/dev/nvidia-caps-imex-channels/channel0";
                                 * its major is in /proc/devices */
        ACTION_AWAIT_IMEX,      /* target: "imex"; nvidia-imex-ctl says READY */
        ACTION_TAINT_NODE,      /* target: TAINT_FILE; written when any of after_any failed,
                                 * else removed; device.words: what the flag
                                 * --register-with-taints must keep, the user's own taints */
        _ACTION_MAX, _ACTION_INVALID = -22,
} ActionType;
DECLARE_STRING_TABLE(action_type, ActionType);

/* What the disks say about a step, found out before anything is touched. Not part of the plan's id, nor are
 * the names of disks: the plan of a second run, of the next boot and of the first one is the same plan. */
typedef enum StepState {
        STEP_UNKNOWN,           /* the disks were not looked at (model, config
                                 * phase, not root): nothing may be done */
        STEP_KEEP,              /* is so already */
        STEP_MAKE,              /* there is nothing yet: create, make, mount, move, bind */
        STEP_REMAKE,            /* create-raid: remains of an array that cannot be had
                                 * again are wiped first; make-filesystem: one whose
                                 * making was cut off, or what lay below such an array */
        STEP_ASSEMBLE,          /* create-raid: all members are there, the array does not run;
                                 * make-filesystem: decided when the array runs: made only where it
                                 * is blank or unfinished then (with storage.uuid), else left as it
                                 * is; mount: whatever xfs or ext4 lies there then, uuid is NULL */
        STEP_REPAIR,            /* create-raid: raid10 runs or can run with the members it has;
                                 * storage.blank joins it again; mount: is mounted already,
                                 * only the mark that the file system is finished is missing */
        _STEP_MAX, _STEP_INVALID = -22,
} StepState;
DECLARE_STRING_TABLE(step_state, StepState);
/* Instances that one GPU is divided into, in an order in which they fit. */
/* gpu: by PCI address, from 0; "1g.10gb", or an id; none: MIG off */
typedef struct MigLayout { unsigned gpu; char **profiles; } MigLayout;
/* what lies in the directory from → directory name below the target */
typedef struct Move { char *from, *name; } Move;

typedef struct Action {
        char *id;               /* unique, stable: "write-file:/etc/…" */
        ActionType type;
        Phase phase;
        char *group;            /* what a reader sorts by: "system", "containerd",
                                 * "kubelet", …; also what --daemon filters */
        char *target;
        char *with;             /* in what form, part of the id: "raid0 3 disks", "xfs", "noatime"; or NULL */
        char *why;              /* one clause for the reader: what was decided and from what */
        char **after;           /* ids that must have ended well before */
        char **after_any;       /* ids that must have ended before, well or not */
        uint64_t deadline_usec; /* for this action alone */
        bool optional;          /* start-unit: an image without this unit is warned of, not failed */
        bool retry;             /* start-unit: a start that fails is tried
                                 * again, with back-off, until the deadline */
        bool lenient;           /* what does not come true is a warning, not a failure
                                 * (onShortfall: warn, gate: warn, persistenced) */
        /* secret: content is never printed */
        struct { char *content; size_t size; mode_t mode; bool secret; } file;
        /* bytes of one; -1: over all nodes; if_none: what is reserved wins */
        struct { uint64_t size, count; int node; bool if_none; } pages;
        struct {
                GpuClass class;
                unsigned count;         /* how many there must be */
                char **words;           /* see ActionType */
                MigLayout *layouts; size_t n_layouts;
                char **seen;            /* PCI addresses of this boot; not part
                                         * of the plan's id, like the next */
                Shortfall *shortfalls; size_t n_shortfalls;
        } device;
        struct { char inputs[65]; char **reads; } unit; /* the files of this plan that the unit
                                                         * reads at start, and SHA-256 over them */
        struct {
                StepState state;
                char **disks;           /* kernel names of this boot, in order of
                                         * serial: members, or the one disk */
                char **serials;         /* of the same disks, so that apply can tell that they still are */
                char **blank;           /* STEP_REPAIR: those of disks that are to join
                                         * again: blank, or members that stayed behind */
                char *running;          /* create-raid: the array that holds members now ("md127"), or NULL.
                                         * STEP_KEEP: it runs. STEP_ASSEMBLE, STEP_REMAKE: it does not, and
                                         * is stopped first. STEP_REPAIR: stopped first if it is inactive */
                char *array_uuid;       /* STEP_ASSEMBLE, STEP_REPAIR, STEP_KEEP: md's */
                bool array;             /* the device is the array over disks, not disks[0] itself */
                char *level;            /* create-raid: "raid0", "raid10" */
                char *filesystem;       /* make-filesystem, mount: "xfs", "ext4" (mount: what
                                         * is there may differ from what is asked for) */
                char *uuid;             /* make-filesystem: the new one's; mount: of what is
                                         * expected; NULL: not known, as in STEP_UNKNOWN */
                char *source;           /* bind: directory on the disks */
                Move *moves; size_t n_moves;
        } storage;
} Action;

void action_done(Action *a);            /* frees what it holds, whatever of it is set */

typedef struct Plan {
        Action *actions; size_t n;      /* in an order that respects after */
        json_t *facts;
        char *machine;                  /* the same in some lines for people */
        Diag warnings;                  /* of planning: decisions a person should know of */
        char id[72];                    /* "sha256:…" over actions and files alone */
} Plan;
Plan *plan_free(Plan *p);
DEFINE_CLEANUP(Plan *, plan_free)

typedef enum CredentialPlugin { PLUGIN_AWS, PLUGIN_NODESTRAP, _PLUGIN_INVALID = -22 } CredentialPlugin;
DECLARE_STRING_TABLE(credential_plugin, CredentialPlugin);
typedef struct PlanOptions {
        CredentialPlugin plugin;        /* of the kubeconfig's exec plugin */
} PlanOptions;

/* Decides everything. -EINVAL with diagnostics when configuration and machine contradict each other. */
_must_check_ _nonnull_ int plan_make(const Config *config, const Host *host, const PlanOptions *options,
                                     Plan **ret, Diag *diag);
/* Leaves out actions of skipped phases and of daemons not named; what depended on them no longer does. NULL:
 * keep all. The id stays that of the whole plan, so that both halves of a boot name the one that was
 * reviewed. */
_nonnull(1) void plan_filter(Plan *plan, bool skip_config, bool skip_run, char *const *daemons);
const Action *plan_find(const Plan *plan, const char *id);
/* Text for people, JSON for machines (contract, section 6); both new, both without secrets. */
_malloc_ char *plan_to_text(const Plan *plan);
json_t *plan_to_json(const Plan *plan);

/* ---- for the planners in this folder ---- */
#define PLAN_FILE_TIMEOUT (10 * USEC_PER_SEC)
#define PLAN_UNIT_TIMEOUT (90 * USEC_PER_SEC)
#define PLAN_RELOAD_ID    "reload-manager:systemd"
#define PLAN_MANIFEST     "/var/lib/nodestrap/manifest.json"    /* of files that this tool owns; apply
                                                                 * keeps it, here it is only a name */
#define PLAN_PRUNE_ID     "prune-files:" PLAN_MANIFEST
#define KUBELET_TURN      "/run/nodestrap/kubelet-may-start"    /* units/kubelet.service.d: the same for
                                                                 * a kubelet that is enabled by itself */
/* the last file wins, and AMIs have theirs */
#define NVIDIA_OPTIONS    "/etc/modprobe.d/zz-nodestrap-nvidia.conf"
#define IMEX_CONFIG       "/etc/nvidia-imex/config.cfg"         /* says also where the daemon
                                                                 * listens for nvidia-imex-ctl */
#define MOUNTS_READY      "/run/nodestrap/mounts-ready" /* units/containerd.service.d: until it
                                                         * is there, containerd does not start */
#define RAID_NAME         "kubernetes"                  /* nodeadm's; also the label of file
                                                         * systems that are finished */
#define RAID_DEVICE       "/dev/md/" RAID_NAME
#define RAID_CHUNK_KIB    256           /* the largest that an XFS log stripe follows (facts: S24, S38) */
#define SANDBOX_ARCHIVE   "/etc/eks/pause.tar"          /* EKS's AMIs keep it (amazon-eks-ami:
                                                         * cache-pause-container) */
#define SANDBOX_IMAGE     "localhost/kubernetes/pause"  /* part of every EKS AMI, so nothing is pulled */
#define TAINT_FILE        "/run/nodestrap/kubelet-environment"  /* units/kubelet.service.d reads it
                                                                 * behind /etc/eks/kubelet/environment */
#define TAINT_KEY         "nodestrap/unhealthy"         /* of the taint and the label; their
                                                         * value is the cause's word */
#define FABRIC_TURN       "/run/nodestrap/fabric-may-start"     /* units/nvidia-fabricmanager.service.d */
#define SYSTEM_ENVIRONMENT "/etc/systemd/system.conf.d/environment.conf"

/* Appends an action with its type's deadline; the strings are copied. The caller fills what its type needs.
 * The pointer is valid until the next one is added. */
_nonnull(1, 4, 5, 6) Action *plan_add(Plan *plan, ActionType type, Phase phase, const char *group,
                                      const char *target, const char *why);
/* A file with text content; mode 0644, or 0600 where a secret may be inside (its content is never shown).
 * Returns its action. */
_nonnull(1, 3, 4, 5, 6) Action *plan_file(Plan *plan, Phase phase, const char *group, const char *path,
                                          const char *why, const char *content, mode_t mode);
void action_after(Action *a, const char *id);
void action_after_any(Action *a, const char *id);
/* replaces the content: for bytes that are no text */
void action_content(Action *a, const void *data, size_t size);
/* start-unit: unit.reads, unit.inputs and after, from those files of the plan that the unit reads when it
 * starts. */
_nonnull_ void action_reads(const Plan *plan, Action *start,
                            bool (*is_read)(const Action *file, const char *unit));

/* The planners, in the order plan_make() calls them. */
/* environment, resolver, hosts */
_must_check_ _nonnull_ int plan_system(Plan *plan, const Config *config, const Host *host, Diag *diag);
_must_check_ _nonnull_ int plan_containerd(Plan *plan, const Config *config, const Host *host, Diag *diag);
_must_check_ _nonnull_ int plan_kubelet(Plan *plan, const Config *config, const Host *host,
                                        const PlanOptions *options, Diag *diag);
/* instance stores */
_must_check_ _nonnull_ int plan_storage(Plan *plan, const Config *config, const Host *host, Diag *diag);
/* sysctl, huge pages, EFA */
_must_check_ _nonnull_ int plan_devices(Plan *plan, const Config *config, const Host *host, Diag *diag);
/* driver to IMEX */
_must_check_ _nonnull_ int plan_nvidia(Plan *plan, const Config *config, const Host *host, Diag *diag);
/* marker, taint, units */
_must_check_ _nonnull_ int plan_run(Plan *plan, const Config *config, const Host *host, Diag *diag);

_malloc_ char *plan_describe_host(const Host *host);
/* memlock: containers may lock all memory */
_nonnull(1) void plan_runtime_spec(Plan *plan, const json_t *user, bool memlock);
/* Does something here use EFA: are there devices, or must there be? */
_nonnull_ bool plan_uses_efa(const Config *config, const Host *host);
/* A step of the run phase that kubelet waits for as failurePolicy says: kernel settings, huge pages, network,
 * accelerators. */
_nonnull_ bool plan_is_device_step(const Action *a);
/* FastImagePull: is SOCI used on this machine? Where the gate is on and it is not, *ret_reason says why not
 * (static text). */
bool plan_uses_soci(const Config *config, const Host *host, const char **ret_reason);
/* "1.33.4" ≥ 1.33; false for NULL */
bool version_at_least(const char *version, unsigned major, unsigned minor);

/* kubelet */
/* source: one clause for the reader */
typedef struct MaxPods { unsigned pods; const char *source; } MaxPods;
_nonnull_ MaxPods max_pods_choose(const Config *config, const Host *host, Diag *warnings);
unsigned cpu_reserved_millicores(unsigned cpus);
/* The tenth address of a service range, canonical; -EINVAL if it is no range or has no tenth address. */
_must_check_ _nonnull_ int cluster_dns(const char *cidr, char **ret_address, bool *ret_is_ipv6);
json_t *kubelet_settings(const Config *config, const Host *host, const MaxPods *pods, const char *dns,
                         Diag *warnings);
/* The taints that the user's flags or settings register the node with: "key=value:NoSchedule". */
_nonnull_ char **kubelet_taints(const Config *config);
/* What a list of flags written for nodeadm means as an argument vector (environment.c says how). */
char **kubelet_words(char *const *flags);
_must_check_ _nonnull(1, 2, 3, 5) int kubelet_environment(Plan *plan, const Config *config, const Host *host,
                                                          char *const *flags, Diag *diag);
_nonnull_ void kubelet_files(Plan *plan, const Config *config, const Host *host, const PlanOptions *options,
                             char ***flags);

/* text */
/* indented, a line end behind it; the shortest numbers that are exact */
_malloc_ char *json_text(const json_t *json);
/* Sets what stands at a path like "authentication/webhook/enabled"; makes the objects between. Takes the
 * value. */
_nonnull_ void json_put(json_t *object, const char *path, json_t *value);
/* is there a key that usually has a secret behind it? */
bool json_holds_secret(const json_t *json);
