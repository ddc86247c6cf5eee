/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Behind daemons_ask(): ask.c starts the daemons and reads their output, ask-root.c makes their root,
 * ask-groups.c their control groups. */
#include "base/time.h"
#include "doctor/checks.h"

/* For the kernel, to end the processes and empty their groups. */
#define ASK_CLEAN_USEC (2 * USEC_PER_SEC)
#define CGROUPS        "/sys/fs/cgroup"

/* kind: "cpu", "name=systemd"; "" is cgroup v2. fd: its lock, held while we or the first process live. */
typedef struct Group { char *own, *kind; int fd; } Group;
/* Output of the daemons; a byte that starts kubelet again; why the root failed, or ".". */
enum { CONTAINERD_SAYS, KUBELET_SAYS, KUBELET_SAYS_AGAIN, START_AGAIN, ROOT_FAULT, N_PIPES };
typedef struct Ask {
        const Config *config;
        const Plan *plan;
        const Image *image;
        Group groups[16]; size_t n_groups;
        char **containerd, **kubelet, *alpha;           /* command lines; a variable for kubelet */
        int pipes[N_PIPES][2];          /* ends to read and to write */
        uint64_t end_usec;              /* for all of it */
        char *why;                      /* why no daemon was started; NULL: the errno says it */
} Ask;

/* ---- ask-groups.c ---- */
/* One group in each hierarchy of this process; a negative errno, with a->why. */
_must_check_ _nonnull_ int ask_groups_make(Ask *a);
_nonnull_ void ask_groups_remove(const Ask *a);
/* In the first process, 0 or a negative errno: enter them, mount them in its root, make those that kubelet
 * names. */
_must_check_ _nonnull_ int ask_groups_enter(Ask *a);
_must_check_ _nonnull_ int ask_groups_show(Ask *a);
_must_check_ _nonnull_ int ask_groups_name(Ask *a);

/* ---- ask-root.c ---- */
/* In the first process: why its root failed, or NULL; the caller frees it. */
_must_check_ _nonnull_ char *ask_root_make(Ask *a);
