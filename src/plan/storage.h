/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside src/plan only: instance stores and volumes. Reports all faults, not only the first. */
#include "plan/planner.h"

typedef struct Stores {
        const Config *config;
        const Host *host;
        const Storage *seen;    /* host->storage */
        Diag *diag;
        const Disk **disks; size_t n; /* instance stores found, by serial */
        unsigned expected;      /* 0: not known */
        size_t count;           /* planned: n, or more if the disks were not examined */
        const char *path;       /* "spec.instance.storage.volumes[0]", for errors; or NULL */
        StoragePlaces places;
        size_t n_files;         /* actions before ours: they write the files */
        bool refused;
} Stores;
/* An array or a disk for a file system. */
typedef struct Device {
        bool array;
        const Disk *const *disks; size_t n;
        const Volume *volume;   /* NULL: an instance store */
        const char *place;      /* mount point */
        StepState made;         /* of the array; STEP_KEEP for a disk, STEP_UNKNOWN if not examined */
        const char *name, *number; /* NULL for an array that does not run */
        const Content *content; /* the same */
        StepState filled;       /* state of its file system */
        const char *filesystem; /* found, or wanted */
        char uuid[37];          /* of a new one; empty if not examined */
        bool mounted;           /* at place, */
        const char *seen_at;    /* its one target, if something else mounted it there; or NULL */
} Device;
void stores_done(Stores *s);
/* fills disks, expected and count from the members before them */
void stores_find(Stores *s);
void stores_check_number(Stores *s);
/* Refuses a disk that is broken or in use. place: where it may be mounted; NULL: part of an array. */
void stores_check_disk(Stores *s, const Disk *d, const char *place);
/* Refuses (false) data without a signature. device: the configured volume name, or NULL. */
bool stores_check_blank(Stores *s, const Disk *d, const char *device);

/* Adds an error, so that the plan fails. */
void stores_refuse(Stores *s, Cause cause, const char *format, ...) _nonnull(1, 3) _printf_(3, 4);
_malloc_ char *disk_label(const Disk *d);               /* "nvme1n1 (AWS47F206C2DE5276E70, 600 GB)" */
_malloc_ char *size_text(uint64_t bytes);               /* "3.84 TB" */
void list_add(Text *t, const char *item);
bool is_mountable(const Content *c);
/* Where a device is mounted, if not at place; else NULL. */
const Mount *mounted_elsewhere(const Storage *seen, const char *number, const char *place);

/* ---- storage.c ---- */
/* Sets filled, filesystem and uuid from the content; warns if it keeps an unwanted file system. */
void device_filesystem(Stores *s, Diag *warnings, Device *d);
/* The steps up to a mounted file system; refuses if the image lacks their programs. */
void add_device_steps(Plan *plan, Stores *s, const Device *d);
typedef struct BindStep BindStep;
/* The steps from there to the binds: stop the users, move, bind. */
void add_state(Plan *plan, Stores *s, const Device *d, const BindStep *binds, size_t n);

/* ---- volumes.c ---- */
void plan_volumes(Plan *plan, Stores *s);
/* The volume that has this directory as a target; NULL: none. */
const Volume *volume_for(const Config *config, const char *path);

/* ---- array.c ---- */
typedef struct ArrayFound {
        StepState state;                /* STEP_UNKNOWN if refused */
        const Array *array;             /* that holds the disks now, running or not; or NULL */
        const char *uuid;               /* of the superblocks; or NULL */
        char **blank;                   /* STEP_REPAIR */
        char *why;
} ArrayFound;
void array_found_done(ArrayFound *f);
void array_find(Stores *s, int level, ArrayFound *ret);
/* A foreign array that has the name of ours; NULL: none. */
_nonnull_ const char *array_name_taken(const Stores *s);
/* " (of the raid0 array \"kubernetes\" of 3 the members 1 2)": missing by superblocks; or "". */
_malloc_ char *array_missing(const Stores *s);

/* ---- places.c ---- */
/* mountPath itself. */
void place_check_top(Stores *s);
/* Refuses a path that cannot become a mount point; who: "the volume …". */
bool place_refused(Stores *s, const char *path, const char *who);
/* The same for an instance store, and a path to it that non-root can change. */
void place_check(Stores *s, const char *path);
/* Warns of foreign mount units for places that the plan mounts or binds. */
void places_check_units(Plan *plan, const Stores *s);
struct BindStep {
        const StorageBind *bind;
        StepState state;                /* STEP_UNKNOWN, STEP_KEEP, STEP_MAKE */
        const Directory *directory;     /* as it is now; NULL: not examined */
};
bool store_bind_wanted(const LocalStorage *l, const StorageBind *bind);
bool path_in(const char *path, const char *folder);             /* or equal */
_malloc_ char *mount_label(const Mount *m);                     /* "xfs of /dev/nvme0n1p1" */
/* Why it cannot be used: a clause, or NULL. */
char *why_unfit(const Directory *d);
/* A user other than root can write to a directory on the way to path: Directory.foreign. */
void refuse_foreign_way(Stores *s, const char *path, const char *foreign);
/* Refuses (true) if pods already run with volumes below path. */
bool refuse_mounts_below(Stores *s, const char *path, const Directory *d);
/* The directories that go to the disks, without those that the user mounted (a warning). number: the device
 * mounted on the disks' directory now, or NULL. Returns how many. */
size_t binds_find(Stores *s, Diag *warnings, const char *number,
                  BindStep ret[static ARRAY_SIZE(s->places.all)]);
/* STEP_KEEP: the mount at path is our bind of this folder, STEP_MAKE: none, STEP_UNKNOWN: *ret_mount. */
StepState bind_state(const Storage *seen, const char *path, const char *number, const char *name,
                     const Mount **ret_mount);
