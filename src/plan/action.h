/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The actions of a plan. action.c has a row for each type; apply/table.c has its functions. */
#include "base/error.h"
#include "base/json.h"
#include "host/host.h"
#include <sys/types.h>

typedef enum Phase { PHASE_CONFIG, PHASE_DEVICES, PHASE_RUN, _PHASE_MAX, _PHASE_INVALID = -22 } Phase;
DECLARE_STRING_TABLE(phase, Phase);

typedef enum ActionType {
        ACTION_WRITE_FILE,      /* target: path; file */
        ACTION_WRITE_BLOCK,     /* target: path; file.content, between markers; empty: no block */
        ACTION_PRUNE_FILES,     /* target: manifest; removes files that only earlier plans wrote */
        ACTION_RELOAD_MANAGER,  /* target: "systemd"; daemon-reload when units or drop-ins changed */
        ACTION_RESTART_UNIT,    /* target: unit; restarted if it runs and unit.inputs changed (resolved) */
        ACTION_START_UNIT,      /* target: unit; restarted when unit.inputs changed; with: its socket */
        ACTION_STOP_UNIT,       /* target: unit that stops while its state moves; storage.state */
        ACTION_CREATE_RAID,     /* target: "/dev/md/kubernetes"; storage */
        ACTION_MAKE_FILESYSTEM, /* target: "/dev/md/kubernetes", or a mount point; storage */
        ACTION_MOUNT,           /* target: directory; storage */
        ACTION_GROW_FILESYSTEM, /* target: mount point; storage; unchanged if it fills its device */
        ACTION_MOVE_FILES,      /* target: directory on the disks; storage.moves */
        ACTION_BIND,            /* target: directory that storage.source is bound over, shared */
        ACTION_IMPORT_IMAGE,    /* target: archive of the AMI; with: the name of the image; image */
        ACTION_PIN_IMAGE,       /* target: name of the image that kubelet keeps; image.socket */
        ACTION_MASK_UNIT,       /* target: unit; stopped, and masked until the next boot */
        ACTION_UNMASK_UNIT,     /* target: unit that an earlier run of this boot masked */
        ACTION_AWAIT_UNIT,      /* target: unit of the image that may be at work. Waits for it, never starts
                                 * it, fails if it failed. Unchanged if it does not exist or has no job */
        ACTION_CHECK_UNIT,      /* target: unit that runs; it and its processes stay up briefly */
        ACTION_SET_SYSCTL,      /* target: "vm.max_map_count"; with: its value */
        ACTION_SET_TUNING,      /* target: "cpus"; governor and idle states, or with: "as before" */
        ACTION_RESERVE_PAGES,   /* target: "1Gi", "2Mi on node 0"; pages */
        ACTION_LOAD_MODULE,     /* target: kernel module */
        ACTION_CHECK_MACHINE,   /* target: "devices"; census; the first missing device is the cause */
        ACTION_CHECK_EFA,       /* target: "efa"; the driver has all of device.seen and device.count */
        ACTION_CHECK_DRIVER,    /* target: "nvidia"; loaded with device.parameters, on device.seen */
        ACTION_CHECK_VERSIONS,  /* target: "nvidia"; words match the driver, nvlsm need only exist */
        ACTION_AWAIT_DEVICES,   /* target: "/dev/infiniband/umad*"; device.count; zero always fails */
        ACTION_AWAIT_FABRIC,    /* target: "fabric"; NVML: all device.count GPUs have joined; class */
        ACTION_AWAIT_LICENSE,   /* target: "grid"; NVML: all device.count vGPUs have a licence */
        ACTION_CHECK_HEALTH,    /* target: "gpus"; device.parameters (HealthLook) on device.seen and
                                 * device.efa; lenient: only what the vendor calls unusable fails */
        ACTION_PROVE_GPUS,      /* target: "gpus"; a test on device.seen, over links if device.nvlinks, and
                                 * against device.bandwidth; lenient: only a wrong result or a hang fails */
        ACTION_SET_MIG_MODE,    /* target: "mig"; device.layouts; by a reset, before GPUs are in use */
        ACTION_PARTITION_GPUS,  /* target: "mig"; device.layouts, and MIG mode without a reset */
        ACTION_LIST_GPUS,       /* target: "nvidia-smi"; -L names device.count GPUs */
        ACTION_SET_CLOCKS,      /* target: "clocks"; with: "max" (application clocks) or "default" */
        ACTION_GENERATE_CDI,    /* target: "/var/run/cdi/nvidia.yaml" */
        ACTION_MAKE_NODES,      /* target: "/dev/nvidia*"; the kernel makes none of them */
        ACTION_MAKE_CHANNEL,    /* target: "/dev/nvidia-caps-imex-channels/channel0" */
        ACTION_AWAIT_IMEX,      /* target: "imex"; nvidia-imex-ctl says READY */
        ACTION_CHECK_POOL,      /* target: "warm-pool"; with: its state; skipped as long as it holds */
        ACTION_CHECK_NODE,      /* target: TAINT_KEY; with: instance id; no old Node without taint */
        ACTION_MARK_NODE,      /* target: TAINT_FILE; for a failure of after_any, or a clique; node */
        ACTION_REMOVE_FILE,     /* target: path of a file, link or empty directory */
        ACTION_LINK_FILE,       /* target: path; with: where the symbolic link leads */
        ACTION_RELOAD_NETWORKD, /* target: "systemd-networkd"; if an earlier action changed anything */
        ACTION_TAKE_TURN,       /* target: "devices"; lock against other processes that work on them */
        ACTION_FORGET_STATE,    /* target: kubelet directory; words: its settings; removes state of an earlier
                                 * boot that kubelet refuses, unless kubelet ran in this boot */
        _ACTION_MAX, _ACTION_INVALID = -22,
} ActionType;
DECLARE_STRING_TABLE(action_type, ActionType);

/* The state of the disks for a step; not in the plan id, which is the same at every boot. */
typedef enum StepState {
        STEP_UNKNOWN,   /* the disks were not examined (model, config phase, not root): change nothing */
        STEP_KEEP,      /* is so already */
        STEP_MAKE,      /* nothing is there yet */
        STEP_REMAKE,    /* create-raid: wipe a lost array first; make-filesystem: an old one */
        STEP_ASSEMBLE,  /* create-raid: all members are there, the array does not run. make-filesystem:
                         * decides when the array runs, only if that is blank or unfinished (storage.uuid).
                         * mount: mounts the xfs or ext4 found then, uuid is NULL */
        STEP_REPAIR,    /* create-raid: raid10 is degraded; mount: the mark is missing */
        _STEP_MAX, _STEP_INVALID = -22,
} StepState;
DECLARE_STRING_TABLE(step_state, StepState);

/* Effect of an action on this machine (apply/apply.h); not in the plan id. */
typedef enum Live {
        LIVE_NONE,              /* not examined, or a check or wait that changes nothing */
        LIVE_KEEP,              /* is so already */
        LIVE_CREATE,
        LIVE_CHANGE,
        LIVE_REMOVE,
        LIVE_UNKNOWN,           /* this user cannot see it */
        _LIVE_MAX, _LIVE_INVALID = -22,
} Live;
DECLARE_STRING_TABLE(live, Live);

/* The MIG instances of a GPU by PCI order, as they fit: "1g.10gb" or an id; none: MIG is off. */
typedef struct MigLayout { unsigned gpu; char **profiles; } MigLayout;
/* Moves the content of `from` to directory `name` below the target; "": to the target itself. */
typedef struct Move { char *from, *name; } Move;

typedef struct Action {
        char *id;                       /* unique, stable: "write-file:/etc/…" */
        ActionType type;
        Phase phase;
        char *group;                    /* "system", "containerd", "kubelet", …; --daemon filters by it */
        char *target;
        char *with;                     /* variant: "raid0 3 disks", "xfs", "noatime"; or NULL */
        char *why;                      /* the reason, for people; not in the plan id */
        char **after;                   /* ids that must succeed before */
        char **after_any;               /* ids that end first, failed or not */
        uint64_t deadline_usec;
        char *timed_from;               /* id; the deadline starts when that action ends; or NULL */
        bool optional;                  /* start-unit: may be missing; await-unit: may be ordered later */
        bool retry;                     /* start-unit: retried with back-off until the deadline */
        bool lenient;                   /* a failure is only a warning (gate: warn, persistenced, …) */
        bool secret;                    /* free-form user data in the file, `with` or a file it reads */
        bool revealed;                  /* secret, but the user asked to see it */
        bool quiet;                     /* its output is not repeated: it may quote secret files */
        GpuClass class;                 /* for steps of GPUs */
        Live live;
        char *live_why;                 /* the difference, or why it is unknown; or NULL */
        char *diff;                     /* of a file, unified, if asked for; or NULL */
        union {                         /* the member that the row of the type names */
                struct {
                        char *content; size_t size;
                        mode_t mode;
                } file;
                struct {
                        char inputs[65]; /* SHA-256 over reads; may be empty */
                        char **reads;   /* files of this plan that the unit reads at start */
                        bool no_swap, defaults; /* kubelet exits with swap or other sysctls; not in the id */
                } unit;
                struct {
                        StepState state;
                        char **disks;   /* kernel names of this boot, in order of serial */
                        char **serials; /* of the same disks; apply compares them before it writes */
                        char **blank;   /* STEP_REPAIR: those of disks that join again */
                        char *running;  /* create-raid: the array that holds members now ("md127"), or NULL.
                                         * apply stops it, unless STEP_KEEP or active in STEP_REPAIR */
                        char *array_uuid; /* of md, in STEP_ASSEMBLE, STEP_REPAIR, STEP_KEEP */
                        char *device;   /* create-raid: if a foreign array has the name; or NULL */
                        bool array;     /* the device is the array over disks, not disks[0] */
                        char *level;    /* create-raid: "raid0", "raid10" */
                        char *filesystem; /* "xfs", "ext4"; mount: the one found */
                        char *uuid;     /* of a new one; STEP_KEEP: of the one found; NULL: not known */
                        char *source;   /* bind: directory on the disks; grow-filesystem: mount point */
                        bool volume;    /* an EBS volume; move-files: moves only what the volume lacks */
                        char **files;   /* move-files, volume: files of this plan below the directories */
                        Move *moves; size_t n_moves;
                        uint64_t bytes; /* move-files: their content, at most; 0: not counted */
                } storage;
                struct {
                        char *socket;   /* NULL: CONTAINERD_SOCKET */
                        char *snapshotter; /* NULL: default of containerd */
                        char *store;    /* root directory of containerd; NULL: CONTAINERD_DIR */
                        char **options; /* of `ctr images import` */
                } image;
                struct {
                        uint64_t size, count; /* size: bytes of a page */
                        int node;       /* -1: over all NUMA nodes that have CPUs */
                        bool if_none;   /* pages that are reserved already stay */
                        bool by_node;   /* node -1: per node, since GPU memory may come online meanwhile */
                } pages;
                struct {
                        unsigned count;
                        char **seen;    /* PCI addresses of this boot; not in the plan id */
                        char **efa;     /* check-health: of EFA functions */
                        unsigned nvlinks; /* check-health, prove-gpus: of each GPU; 0: not checked */
                        unsigned bandwidth; /* prove-gpus: of the memory, GB/s; 0: not known */
                        char **parameters; /* check-driver: "ImexChannelCount=2048", as in
                                            * /proc/driver/nvidia/params; "…?": only a warning if unknown,
                                            * "…??": also if it is another value */
                        MigLayout *layouts; size_t n_layouts;
                } device;
                struct {                /* not in the plan id */
                        Shortfall *missing; size_t n;
                        unsigned gpus, efa;
                        bool expect;    /* spec.cluster.expectDevices */
                } census;
                char **words;           /* check-versions: programs; forget-state: settings */
                struct {
                        char **taints;  /* of the user; --register-with-taints must repeat them */
                        bool clique;    /* set the label CLIQUE_KEY */
                } node;
        };
} Action;

/* ---- the rows ---- */

typedef enum NeedKind {
        NEED_PROGRAM,           /* in the PATH of systemd, or an absolute path: can run here */
        NEED_UNIT,              /* "containerd.service": found, not masked, and its program exists */
        NEED_MODULE,            /* "raid0": in every kernel of the image, as a file or built in */
        NEED_LIBRARY,           /* "libmount.so.1", loaded on demand */
        NEED_DIRECTORY,         /* a directory, or can be made; only root may write there */
        NEED_FILE,              /* to read: the archive of the sandbox image */
        NEED_FEATURE,           /* "CONFIG_HUGETLBFS": =y or =m in the configuration of every kernel */
        NEED_SYSCTL,            /* "vm.overcommit_memory=1": the value that a boot sets */
        NEED_TUNING,            /* "host settings": none costs GPUs time, by the rows of host/tuning.c */
        NEED_NO_SWAP,           /* no boot has swap; the name is for people */
        NEED_NRI,               /* containerd starts the NRI plugins of the image; the name is for people */
        _NEED_KIND_MAX, _NEED_KIND_INVALID = -22,
} NeedKind;

/* Further needs of an action, from its own members: a function of doctor/needs.c each. */
typedef enum Asking {
        ASKS_KERNEL = 1,        /* nothing, and no needs: the kernel has it all (sysfs, ioctl(2), mount(2)) */
        ASKS_NEEDS,             /* nothing but its needs */
        ASKS_FOLDER,            /* the directory of the target */
        ASKS_RUNTIMES,          /* ASKS_FOLDER, and the programs in the containerd configuration */
        ASKS_UNIT,              /* the target */
        ASKS_OLD_UNIT,          /* the target, where it exists */
        ASKS_ARRAY,             /* the module of the level */
        ASKS_FILESYSTEM,        /* mkfs and the module */
        ASKS_PLACE,             /* the target is a directory */
        ASKS_MODULE,            /* the target */
        ASKS_PROGRAMS,          /* its words */
        ASKS_NUMA,              /* NUMA, where it names a node */
        ASKS_ARCHIVE,           /* the target, if there is one */
        _ASKING_MAX,
} Asking;

/* The function of apply/look.c that compares an action with the machine. NOT: a check, a wait, or it compares
 * when it runs. STEP: storage. RERUN: a unit that may not run. */
typedef enum Compare {
        COMPARE_NOT,
        COMPARE_FILE, COMPARE_BLOCK, COMPARE_LINK, COMPARE_REMOVAL, COMPARE_MANIFEST, COMPARE_STATE,
        COMPARE_SYSCTL, COMPARE_PAGES, COMPARE_MODULE, COMPARE_STEP, COMPARE_UNIT, COMPARE_RERUN,
} Compare;

/* prove-gpus: the deadline beyond proveTimeout, to kill a hanging test and to read the counters. */
#define PROVE_MORE_SEC 30

/* For report/device-report.c, from Result.found beside the values of tells. */
enum { REPORTS_GPUS = 1 << 0, REPORTS_HEALTH = 1 << 1, REPORTS_PAGES = 1 << 2 };

/* Lists end with an empty item. */
typedef struct ActionNeed { uint8_t kind; char name[30]; uint8_t cause; } ActionNeed;
typedef struct ActionUsual { const char *target; unsigned msec; } ActionUsual;  /* target NULL: any */
typedef struct ActionTold { char from[14], to[14]; } ActionTold;

typedef struct ActionRow {
        char name[16];
        const struct Family *family;
        unsigned seconds;               /* deadline before action_more_usec() */
        Asking asks;
        Compare compare;
        bool lenient;                   /* a plan may set Action.lenient: codes(7) has the word for that */
        unsigned reports;
        const ActionTold *tells;
        const ActionNeed *needs;        /* of a lenient action they are optional */
        const ActionUsual *usual;       /* where it takes long */
} ActionRow;
_must_check_ const ActionRow *action_row(ActionType type);

typedef enum ActionKind {
        ACTION_OF_FILES = 1,    /* write-file, write-block: Action.file is set */
        ACTION_OF_UNITS,        /* through systemd */
        ACTION_OF_STORAGE,      /* from the disks to the binds */
} ActionKind;
_nonnull_ bool action_is(const Action *a, ActionKind kind);
/* Added to the deadline for the work of this boot; 0 for most. */
_nonnull_ uint64_t action_more_usec(const Action *a);
/* For programs, without the content of secret files; a new reference. */
_nonnull_ json_t *action_to_json(const Action *a);
/* For the plan id: the work of apply, without explanations; a new reference. */
_nonnull_ json_t *action_canonical(const Action *a);
/* A write-file with its content, or a digest if that is not UTF-8, or neither if secret; a new reference. */
_nonnull_ json_t *action_file_to_json(const Action *a);
_nonnull_ void action_done(Action *a);
