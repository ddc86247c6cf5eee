/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a plan consists of. Each type is a row of the table in action.c, which says what others know of it;
 * apply/table.c has its functions. */
#include "base/error.h"
#include "base/json.h"
#include "host/host.h"
#include <sys/types.h>

typedef enum Phase { PHASE_CONFIG, PHASE_DEVICES, PHASE_RUN, _PHASE_MAX, _PHASE_INVALID = -22 } Phase;
DECLARE_STRING_TABLE(phase, Phase);

typedef enum ActionType {
        ACTION_WRITE_FILE,      /* target: path; file */
        ACTION_WRITE_BLOCK,     /* target: path; file.content between markers inside
                                 * a file that others own too; empty: no block */
        ACTION_PRUNE_FILES,     /* target: the manifest; removes files that an
                                 * earlier plan wrote and this one does not */
        ACTION_RELOAD_MANAGER,  /* target: "systemd"; daemon-reload when units or drop-ins changed */
        ACTION_RESTART_UNIT,    /* target: unit that must take up changed settings
                                 * (unit.inputs) but is only restarted if it runs (resolved) */
        ACTION_START_UNIT,      /* target: unit; started, or restarted when
                                 * unit.inputs is not what it was last started with;
                                 * with: where containerd listens, if that is not CONTAINERD_SOCKET */
        ACTION_STOP_UNIT,       /* target: unit that must not run while its state moves to another disk;
                                 * storage.state; unchanged where it does not run, and with
                                 * STEP_KEEP: nothing of what it writes moves */
        ACTION_CREATE_RAID,     /* target: "/dev/md/kubernetes"; storage */
        ACTION_MAKE_FILESYSTEM, /* target: "/dev/md/kubernetes", or where the
                                 * one disk will be mounted; storage */
        ACTION_MOUNT,           /* target: directory; storage */
        ACTION_GROW_FILESYSTEM, /* target: where it is mounted; storage; unchanged
                                 * where the file system fills its device */
        ACTION_MOVE_FILES,      /* target: directory on the disks; storage.moves */
        ACTION_BIND,            /* target: directory that storage.source is bound over, shared */
        ACTION_IMPORT_IMAGE,    /* target: archive, if the AMI has one; with: the name that
                                 * containerd should know from it, pinned; image */
        ACTION_MASK_UNIT,       /* target: unit that must not run here: stopped, and masked
                                 * until the next boot; unchanged where there is none */
        ACTION_UNMASK_UNIT,     /* target: unit that an earlier run of this
                                 * boot masked and that may run now */
        ACTION_AWAIT_UNIT,      /* target: unit of the image that may be at work: waited
                                 * for, never started; unchanged where there is none or it
                                 * has no job and failed nothing; a failed one fails it */
        ACTION_CHECK_UNIT,      /* target: a daemon's unit that was started before: it and its processes are
                                 * still there, and stay for a moment */
        ACTION_SET_SYSCTL,      /* target: "vm.max_map_count"; with: its value */
        ACTION_RESERVE_PAGES,   /* target: "1Gi", "2Mi on node 0"; pages */
        ACTION_LOAD_MODULE,     /* target: kernel module */
        ACTION_CHECK_MACHINE,   /* target: "devices"; census: what is missing;
                                 * the first one's cause is the failure's */
        ACTION_CHECK_EFA,       /* target: "efa"; every EFA function of device.seen is bound
                                 * to the driver, and there are device.count of them */
        ACTION_CHECK_DRIVER,    /* target: "nvidia"; loaded with device.parameters,
                                 * and bound to every GPU of device.seen */
        ACTION_CHECK_VERSIONS,  /* target: "nvidia"; those of programs that are there are the driver's
                                 * version; nvlsm counts its own and only has to be there */
        ACTION_AWAIT_DEVICES,   /* target: "/dev/infiniband/umad*": a directory and the beginning of
                                 * names; device.count of them; whether fewer are a failure is the target's
                                 * own, none always is */
        ACTION_AWAIT_FABRIC,    /* target: "fabric"; every one of device.count GPUs
                                 * has joined it, by NVML; class: what that means */
        ACTION_AWAIT_LICENSE,   /* target: "grid"; every one of device.count GPUs, which are parts of
                                 * one, has a licence, by NVML */
        ACTION_CHECK_HEALTH,    /* target: "gpus"; what device.parameters names (HealthLook) of
                                 * device.seen and device.efa finds nothing wrong; lenient: it is
                                 * only told, but for what its vendor calls unusable */
        ACTION_SET_MIG_MODE,    /* target: "mig"; device.layouts; where a change takes a reset, which
                                 * nobody who holds the GPUs allows, before what holds them is started */
        ACTION_PARTITION_GPUS,  /* target: "mig"; device.layouts, and MIG mode where it changes at once */
        ACTION_LIST_GPUS,       /* target: "nvidia-smi"; -L names device.count GPUs */
        ACTION_SET_CLOCKS,      /* target: "clocks"; with: "max" (persistence on, no
                                 * auto-boost, highest application clocks) or "default" */
        ACTION_GENERATE_CDI,    /* target: "/var/run/cdi/nvidia.yaml" */
        ACTION_MAKE_NODES,      /* target: "/dev/nvidia*": the driver's and those of nvidia_uvm, which
                                 * no kernel makes */
        ACTION_MAKE_CHANNEL,    /* target: "/dev/nvidia-caps-imex-channels/channel0";
                                 * its major is in /proc/devices */
        ACTION_AWAIT_IMEX,      /* target: "imex"; nvidia-imex-ctl says READY */
        ACTION_CHECK_NODE,      /* target: TAINT_KEY; with: this instance's id; where any of after_any
                                 * failed: the cluster has no Node of this machine's name, or it is this
                                 * instance's and has the taint */
        ACTION_TAINT_NODE,      /* target: TAINT_FILE; written when any of after_any failed, or the clique
                                 * is to be a label and known; else removed; node */
        ACTION_REMOVE_FILE,     /* target: path, also of a link or of a directory, which stays while
                                 * something is in it; unchanged where there is none */
        ACTION_LINK_FILE,       /* target: path; with: where the symbolic link there leads */
        ACTION_RELOAD_NETWORKD, /* target: "systemd-networkd"; reads its files again; unchanged
                                 * where nothing that it comes after changed anything */
        ACTION_TAKE_TURN,       /* target: "devices"; waits for another process that works on them,
                                 * and keeps others from them until this one ends */
        ACTION_FORGET_STATE,    /* target: the directory of kubelet; words: its settings; removes state
                                 * files of an earlier boot that kubelet refuses. Unchanged where kubelet
                                 * may have run in this boot */
        _ACTION_MAX, _ACTION_INVALID = -22,
} ActionType;
DECLARE_STRING_TABLE(action_type, ActionType);

/* What the disks say about a step, found out before anything is touched. Not part of the plan's id, nor are
 * the names of disks: the plan of a second run, of the next boot and of the first one is the same plan. */
typedef enum StepState {
        STEP_UNKNOWN,   /* the disks were not looked at (model, config phase, not root): nothing may be done
                         * */
        STEP_KEEP,      /* is so already */
        STEP_MAKE,      /* there is nothing yet: create, make, mount, move, bind */
        STEP_REMAKE,    /* create-raid: remains of an array that cannot be had again are wiped first;
                         * make-filesystem: one whose making was cut off, or what lay below such an array */
        STEP_ASSEMBLE,  /* create-raid: all members are there, the array does not run; make-filesystem:
                         * decided when the array runs: made only where it is blank or unfinished then (with
                         * storage.uuid), else left as it is; mount: whatever xfs or ext4 lies there then,
                         * uuid is NULL */
        STEP_REPAIR,    /* create-raid: raid10 runs or can run with the members it has; storage.blank joins it
                         * again; mount: is mounted already, only the mark that the file system is finished is
                         * missing */
        _STEP_MAX, _STEP_INVALID = -22,
} StepState;
DECLARE_STRING_TABLE(step_state, StepState);

/* What carrying out an action would change, as far as that is seen without touching anything (apply/look.h):
 * no part of the plan's id. */
typedef enum Live {
        LIVE_NONE,              /* nobody looked, or it changes nothing by itself: a check, a wait */
        LIVE_KEEP,              /* is so already */
        LIVE_CREATE,            /* is not there */
        LIVE_CHANGE,            /* is something else, or in another state */
        LIVE_REMOVE,            /* is there and must not be */
        LIVE_UNKNOWN,           /* cannot be seen by who looks */
        _LIVE_MAX, _LIVE_INVALID = -22,
} Live;
DECLARE_STRING_TABLE(live, Live);

/* Instances that the GPU at a place is divided into, in an order in which they fit. Places count from 0, by
 * PCI address; a profile is "1g.10gb" or an id; none at all: MIG is switched off. */
typedef struct MigLayout { unsigned gpu; char **profiles; } MigLayout;
/* What lies in the directory from goes to the directory name below the target; "": to the target itself. */
typedef struct Move { char *from, *name; } Move;

typedef struct Action {
        char *id;                       /* unique, stable: "write-file:/etc/…" */
        ActionType type;
        Phase phase;
        char *group;                    /* what a reader sorts by: "system", "containerd", "kubelet", …; also
                                         * what --daemon filters */
        char *target;
        char *with;                     /* in what form, part of the id: "raid0 3 disks", "xfs", "noatime"; or
                                         * NULL */
        char *why;                      /* one clause for the reader: what was decided and from what */
        char **after;                   /* ids that must have ended well before */
        char **after_any;               /* ids that must have ended before, well or not */
        uint64_t deadline_usec;         /* for this action alone */
        char *timed_from;               /* id of another one: the deadline counts from the end of that one
                                         * where it is still to come; or NULL */
        bool optional;                  /* start-unit: an image without this unit is warned of, not failed;
                                         * await-unit: one that is ordered behind this run is not waited for
                                         * */
        bool retry;                     /* start-unit: a start that fails is tried again, with back-off, until
                                         * the deadline */
        bool lenient;                   /* what does not come true is a warning, not a failure (onShortfall:
                                         * warn, gate: warn, persistenced) */
        bool secret;                    /* what the user wrote as he liked stands in the file, in with, or in
                                         * a file that the unit reads: nobody is shown it, or a digest to
                                         * guess it from, who does not ask for it */
        bool revealed;                  /* it would be secret, and somebody asked */
        bool quiet;                     /* what its unit or program says is not repeated: it reads such files,
                                         * and may quote them */
        GpuClass class;                 /* of the machine, in steps that its GPUs need */
        Live live;
        char *live_why;                 /* in which it differs, why it is not known, what goes; or NULL */
        char *diff;                     /* of a file: unified, where it was asked for; or NULL */
        union {                         /* the one that the type's row names; all zero for a type without one
                                         * */
                struct {
                        char *content; size_t size;
                        mode_t mode;
                } file;
                struct {
                        char inputs[65]; /* SHA-256 over the files of this plan that the unit reads at start;
                                          * may be empty */
                        char **reads;   /* these files */
                        bool no_swap, defaults; /* kubelet ends where there is swap, or where kernel settings
                                                 * are not its defaults; not part of the id */
                } unit;
                struct {
                        StepState state;
                        char **disks;   /* kernel names of this boot, in order of serial: members, or the one
                                         * disk */
                        char **serials; /* of the same disks, so that apply can tell that they still are */
                        char **blank;   /* STEP_REPAIR: those of disks that are to join again: blank, or
                                         * members that stayed behind */
                        char *running;  /* create-raid: the array that holds members now ("md127"), or NULL.
                                         * STEP_KEEP: it runs. STEP_ASSEMBLE, STEP_REMAKE: it does not, and is
                                         * stopped first. STEP_REPAIR: stopped first if it is inactive */
                        char *array_uuid; /* STEP_ASSEMBLE, STEP_REPAIR, STEP_KEEP: md's */
                        char *device;   /* create-raid: what its node is called where somebody else's array
                                         * has the target's name; or NULL */
                        bool array;     /* the device is the array over disks, not disks[0] itself */
                        char *level;    /* create-raid: "raid0", "raid10" */
                        char *filesystem; /* make-filesystem, mount: "xfs", "ext4" (mount: what is there may
                                           * differ from what is asked for) */
                        char *uuid;     /* make-filesystem: the new one's, or STEP_KEEP: the one's that is
                                         * there; mount: of what is expected; NULL: not known, as in
                                         * STEP_UNKNOWN */
                        char *source;   /* bind: directory on the disks; grow-filesystem: where it is mounted
                                         * */
                        bool volume;    /* disks is an EBS volume; move-files: only where the volume has
                                         * nothing for the directory yet; else files alone */
                        char **files;   /* move-files, volume: of this plan, below the directories: written
                                         * anew at each boot before it is mounted */
                        Move *moves; size_t n_moves;
                        uint64_t bytes; /* move-files: that they hold, at most; 0: nobody looked */
                } storage;
                struct {
                        char *socket;   /* where containerd listens; NULL: CONTAINERD_SOCKET */
                        char *snapshotter; /* where it is unpacked; NULL: containerd's own default */
                        char **options; /* of `ctr images import` for that */
                } image;
                struct {
                        uint64_t size, count; /* size: bytes of one page */
                        int node;       /* -1: over all NUMA nodes that have CPUs */
                        bool if_none;   /* what is reserved already wins */
                        bool by_node;   /* node -1: memory of GPUs may come online meanwhile, and one number
                                         * for all nodes would take from it */
                } pages;
                struct {
                        unsigned count; /* how many there must be */
                        char **seen;    /* PCI addresses of this boot; not part of the plan's id */
                        char **efa;     /* check-health: the same of EFA functions */
                        unsigned nvlinks; /* check-health: how many each GPU has; 0: not looked at */
                        char **parameters; /* check-driver: "ImexChannelCount=2048", as
                                            * /proc/driver/nvidia/params names them; with a "?" behind it
                                            * nobody asked for just this, and a driver that does not know it
                                            * is only a warning */
                        MigLayout *layouts; size_t n_layouts; /* set-mig-mode, partition-gpus */
                } device;
                struct { Shortfall *missing; size_t n; } census; /* not part of the plan's id */
                char **words;           /* check-versions: "nv-fabricmanager", "nvlsm", …; forget-state:
                                         * "cpuManagerPolicy=static", … */
                struct {
                        char **taints;  /* the user's own, which the flag --register-with-taints must keep */
                        bool clique;    /* the node is to have the label CLIQUE_KEY */
                } node;
        };
} Action;

/* ---- the rows ---- */

typedef enum NeedKind {
        NEED_PROGRAM,           /* a name in systemd's PATH, or an absolute path: may be executed, is of
                                 * this architecture, and its interpreter and libraries are there */
        NEED_UNIT,              /* "containerd.service": one of systemd's directories has it, it is not
                                 * masked, and what it starts is there */
        NEED_MODULE,            /* "raid0": of every kernel of the image, as a file or built in */
        NEED_LIBRARY,           /* "libmount.so.1", which is loaded when it is needed */
        NEED_DIRECTORY,         /* where something is written: a directory, or one can be made, which
                                 * nobody but root may write to */
        NEED_FILE,              /* something that is read: the archive of the sandbox image */
        NEED_FEATURE,           /* "CONFIG_HUGETLBFS": =y or =m in every kernel's configuration */
        NEED_SYSCTL,            /* "vm.overcommit_memory=1": what a boot has it be before init runs */
        NEED_NO_SWAP,           /* nothing has a boot swap; the name is for people */
        _NEED_KIND_MAX, _NEED_KIND_INVALID = -22,
} NeedKind;

/* An action asks this of an image by its own words, behind its needs: a function of doctor/needs.c each. */
typedef enum Asking {
        ASKS_KERNEL = 1,        /* and no needs: the kernel has it all (sysfs, ioctl(2), mount(2)) */
        ASKS_NEEDS,             /* its needs are all */
        ASKS_FOLDER,            /* the directory that the target is in */
        ASKS_RUNTIMES,          /* that, and the programs that containerd's configuration names */
        ASKS_UNIT,              /* the target */
        ASKS_OLD_UNIT,          /* the same, where there is one */
        ASKS_ARRAY,             /* modules for the level */
        ASKS_FILESYSTEM,        /* what makes it, and its module */
        ASKS_PLACE,             /* the target is a directory */
        ASKS_MODULE,            /* the target */
        ASKS_PROGRAMS,          /* its words */
        ASKS_NUMA,              /* NUMA, where it is for one node */
        ASKS_ARCHIVE,           /* the target, if there is one */
        _ASKING_MAX,
} Asking;

/* By which function of apply/look.c an action is compared with the machine. NOT: a check, a wait, or it looks
 * when it is its turn. STEP: of storage. RERUN: of a unit that may not run. */
typedef enum Compare {
        COMPARE_NOT,
        COMPARE_FILE, COMPARE_BLOCK, COMPARE_LINK, COMPARE_REMOVAL, COMPARE_MANIFEST, COMPARE_STATE,
        COMPARE_SYSCTL, COMPARE_PAGES, COMPARE_MODULE, COMPARE_STEP, COMPARE_UNIT, COMPARE_RERUN,
} Compare;

/* report/device-report.c takes this of Result.found, beside the values of tells. GPUS: all that is known of
 * each. */
enum { REPORTS_GPUS = 1 << 0, REPORTS_HEALTH = 1 << 1, REPORTS_PAGES = 1 << 2 };

/* A list ends with an empty one. */
typedef struct ActionNeed { NeedKind kind; const char *name; Cause cause; } ActionNeed;
typedef struct ActionUsual { const char *target; unsigned msec; } ActionUsual;  /* target NULL: any */
typedef struct ActionTold { const char *from, *to; } ActionTold;        /* a value, among those of the node */

/* Data alone. NULL and 0: nothing of it. */
typedef struct ActionRow {
        const char *name;
        const struct Family *family;    /* action.c has them */
        unsigned seconds;               /* the deadline that it begins with */
        Asking asks;
        Compare compare;
        bool lenient;                   /* a plan may let it fail: codes(7) has the word for that */
        unsigned reports;
        const ActionTold *tells;
        const ActionNeed *needs;        /* of a lenient action they are optional */
        const ActionUsual *usual;       /* how long it takes, where that is long */
} ActionRow;
_must_check_ const ActionRow *action_row(ActionType type);

/* What an action counts as, for those who treat several types alike. */
typedef enum ActionKind {
        ACTION_OF_FILES = 1,    /* write-file, write-block: file is its part of the union */
        ACTION_OF_UNITS,        /* systemd is asked for it */
        ACTION_OF_STORAGE,      /* a step from the disks to what is bound to them */
} ActionKind;
_nonnull_ bool action_is(const Action *a, ActionKind kind);
/* What this action needs beyond that for what it has to do on this boot; 0 for most. */
_nonnull_ uint64_t action_more_usec(const Action *a);
/* For a machine that reads the plan, without what is in a secret file; a new reference. */
_nonnull_ json_t *action_to_json(const Action *a);
/* What apply will do, and nothing that only explains it: what the plan's id is made of; a new reference. */
_nonnull_ json_t *action_canonical(const Action *a);
/* The file of a write-file, with its content; where that is no UTF-8 with its digest, where it is a secret
 * with neither; a new reference. */
_nonnull_ json_t *action_file_to_json(const Action *a);
/* frees what it holds, whatever of it is set */
_nonnull_ void action_done(Action *a);
