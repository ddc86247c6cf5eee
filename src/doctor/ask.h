/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The three files behind daemons_ask() of doctor/checks.h: ask.c starts the daemons and hears them,
 * ask-root.c makes the root that they see, ask-groups.c their control groups. */
#include "base/time.h"
#include "doctor/checks.h"

/* So long the kernel may take to end the processes and empty their groups. */
#define ASK_CLEAN_USEC (2 * USEC_PER_SEC)
#define CGROUPS        "/sys/fs/cgroup"

/* kind: "cpu", "name=systemd", "" is cgroup v2. fd: its lock, as long as we or the first process are there */
typedef struct Group { char *own, *kind; int fd; } Group;
typedef struct Ask {
        const Config *config;
        const Plan *plan;
        const Image *image;
        Group groups[16]; size_t n_groups;
        char **containerd, **kubelet, *alpha;           /* command lines; a variable for kubelet */
        int said[3], told[3];           /* pipes: what containerd, kubelet and kubelet again say */
        int again[2], fault[2];         /* a byte: kubelet again; why the root could not be made, or "." */
        uint64_t end_usec;              /* for all of it */
        char *why;                      /* nothing could be asked, in place of an error of the system */
} Ask;

/* ---- ask-groups.c ---- */
/* A control group in each hierarchy of this process; a negative errno, with a->why. */
_must_check_ _nonnull_ int ask_groups_make(Ask *a);
/* Once all processes in them are gone. */
_nonnull_ void ask_groups_remove(const Ask *a);
/* In the first process; 0 or a negative errno. It enters them, shows them in its root as those of a machine,
 * and makes those that kubelet is told of. */
_must_check_ _nonnull_ int ask_groups_enter(Ask *a);
_must_check_ _nonnull_ int ask_groups_show(Ask *a);
_must_check_ _nonnull_ int ask_groups_name(Ask *a);

/* ---- ask-root.c ---- */
/* In the first process: why its root cannot be made, or NULL; the caller's. */
_must_check_ _nonnull_ char *ask_root_make(Ask *a);
