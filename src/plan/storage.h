/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside src/plan only: instance stores and volumes. stores.c: which disks, and is each of them free;
 * array.c: what they say about arrays; places.c: what lies where things are to be mounted; volumes.c: the
 * same of EBS volumes; storage.c makes the steps. Whatever is wrong is told, not only the first. */
#include "plan/planner.h"

typedef struct Stores {
        const Config *config;
        const Host *host;
        const Storage *seen;    /* of host */
        Diag *diag;
        const Disk **disks; size_t n; /* the instance stores that are there, by serial */
        unsigned expected;      /* 0: nobody says */
        size_t count;           /* that the plan is made for: n, or more where the disks were not looked at */
        const char *path;       /* "spec.instance.storage.volumes[0]": what is refused is a volume; NULL: an
                                 * instance store */
        StoragePlaces places;
        size_t n_files;         /* actions of the plan before ours: those that write files */
        bool refused;
} Stores;
/* What file systems lie on: the array, or a disk alone. */
typedef struct Device {
        bool array;
        const Disk *const *disks; size_t n;
        const Volume *volume;   /* NULL: an instance store */
        const char *place;      /* where it is mounted */
        StepState made;         /* of the array; STEP_KEEP for a disk, STEP_UNKNOWN where nobody looked */
        const char *name, *number; /* NULL while an array does not run */
        const Content *content; /* the same */
        StepState filled;       /* with a file system */
        const char *filesystem; /* that lies there, or will */
        char uuid[37];          /* of a new one; empty where nobody looked */
        bool mounted;           /* at place, */
        const char *seen_at;    /* or where its one target is: by somebody else; or NULL */
} Device;
void stores_done(Stores *s);
/* fills disks, expected and count; config, host, seen and diag are set */
void stores_find(Stores *s);
/* Are there enough of them? */
void stores_check_number(Stores *s);
/* One that is broken or somebody else's is refused. place: where it may be mounted; NULL where it becomes
 * part of an array. */
void stores_check_disk(Stores *s, const Disk *d, const char *place);
/* One that carries data without a signature is refused: false. device: what the configuration calls a volume;
 * NULL: an instance store. */
bool stores_check_blank(Stores *s, const Disk *d, const char *device);

/* Adds an error; the plan will not be made. */
void stores_refuse(Stores *s, Cause cause, const char *format, ...) _nonnull(1, 3) _printf_(3, 4);
_malloc_ char *disk_label(const Disk *d);               /* "nvme1n1 (AWS47F206C2DE5276E70, 600 GB)" */
_malloc_ char *size_text(uint64_t bytes);               /* "3.84 TB" */
void list_add(Text *t, const char *item);               /* with ", " between */
bool is_mountable(const Content *c);                    /* an xfs or ext4 */
/* Of a device that is mounted, but not at place: where. NULL: nowhere, or at place, where other mounts of it
 * do no harm. */
const Mount *mounted_elsewhere(const Storage *seen, const char *number, const char *place);

/* ---- storage.c ---- */
/* Fills what follows from the content: filled, filesystem, uuid. A kept file system that is not the wanted
 * one is a warning. */
void device_filesystem(Stores *s, Diag *warnings, Device *d);
/* The steps up to a mounted file system; what they need must be in the image. */
void add_device_steps(Plan *plan, Stores *s, const Device *d);
typedef struct BindStep BindStep;
/* The steps from there to what is bound to it: stop who uses it, move, bind. */
void add_state(Plan *plan, Stores *s, const Device *d, const BindStep *binds, size_t n);

/* ---- volumes.c ---- */
void plan_volumes(Plan *plan, Stores *s);
/* The volume that the directory goes to, whatever instance stores want; NULL: none. */
const Volume *volume_for(const Config *config, const char *path);

/* ---- array.c ---- */
typedef struct ArrayFound {
        StepState state;                /* STEP_UNKNOWN where it was refused */
        const Array *array;             /* that holds the disks now, whether it runs or not; NULL: none */
        const char *uuid;               /* of the superblocks; NULL where there are none */
        char **blank;                   /* STEP_REPAIR */
        char *why;
} ArrayFound;
void array_found_done(ArrayFound *f);
void array_find(Stores *s, int level, ArrayFound *ret);
/* The array of somebody else's that has ours' name; NULL: none. */
_nonnull_ const char *array_name_taken(const Stores *s);
/* Of an array that superblocks tell of and that has more members than disks are here: " of the raid0 array
 * \"kubernetes\" the members 1 and 3 are not here"; "" otherwise. */
_malloc_ char *array_missing(const Stores *s);

/* ---- places.c ---- */
/* mountPath itself. Where it is refused, nothing below it needs to be looked at. */
void place_check_top(Stores *s);
/* Can something be mounted at path, where none of ours is yet? */
void place_check(Stores *s, const char *path);
/* Units of somebody else's for places that the plan mounts or binds: a warning. */
void places_check_units(Plan *plan, const Stores *s);
struct BindStep {
        const StorageBind *bind;
        StepState state;                /* STEP_UNKNOWN, STEP_KEEP, STEP_MAKE */
        const Directory *directory;     /* what lies there now; NULL: not looked at */
};
bool store_bind_wanted(const LocalStorage *l, const StorageBind *bind); /* by disabledMounts */
bool path_in(const char *path, const char *folder);             /* or the same */
_malloc_ char *mount_label(const Mount *m);                     /* "xfs of /dev/nvme0n1p1" */
/* What is wrong with a place whatever is done there: a clause, or NULL. */
char *why_unfit(const Directory *d);
/* The way to the path leads through a directory that is not root's alone: Directory.foreign of it. */
void refuse_foreign_way(Stores *s, const char *path, const char *foreign);
/* Pods run already, with their volumes below what would be moved away: true, and it is refused. */
bool refuse_mounts_below(Stores *s, const char *path, const Directory *d);
/* The directories that go to the disks: those that the configuration wants, but not what already is a mount
 * of the user's own (a warning then). number: the device that is mounted on the disks' directory now, or
 * NULL. Returns how many. */
size_t binds_find(Stores *s, Diag *warnings, const char *number,
                  BindStep ret[static ARRAY_SIZE(s->places.all)]);
/* STEP_KEEP where what is seen at a place that was looked at is our bind of this folder of the device,
 * STEP_MAKE where nothing is, STEP_UNKNOWN where something else is: *ret_mount. */
StepState bind_state(const Storage *seen, const char *path, const char *number, const char *name,
                     const Mount **ret_mount);
