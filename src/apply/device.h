/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The executors of devices: pages.c, sysctl.c, module.c, machine.c (what is there), driver.c, fabric.c,
 * health.c, mig.c, node.c, list.c, clocks.c, cdi.c, imex.c; devices-lock.c, of whose turn it is; and of what
 * a failure of theirs makes of the node, node-precheck.c and taint.c. Beside them state.c, of the files of
 * kubelet. Those that take a Work run on a thread, look for themselves whether anything is to be done, and
 * return > 0 done, 0 unchanged, < 0 after work_fail(). */
#include "apply/work.h"
#include "base/root.h"
#include "base/str.h"

_must_check_ _nonnull_ int sysctl_work(Work *w);
/* Has the setting at path its value? 1, 0 or a negative errno; what it has to *ret_have, which is new. */
_must_check_ _nonnull_ int sysctl_has(const Root *root, const Action *a, const char *path, char **ret_have);
_must_check_ _nonnull_ int pages_work(Work *w);
/* Are they as the action wants them? 1, 0 or a negative errno; how many there are to *ret_have. */
_must_check_ _nonnull_ int pages_have(const Root *root, const Action *a, uint64_t *ret_have);
_must_check_ _nonnull_ int module_work(Work *w);
/* Is it loaded, or a part of the kernel? 1, 0 or a negative errno. */
_must_check_ _nonnull_ int module_is_loaded(const Root *root, const char *name);
_must_check_ _nonnull_ int machine_work(Work *w);
_must_check_ _nonnull_ int efa_work(Work *w);
_must_check_ _nonnull_ int devices_work(Work *w);
_must_check_ _nonnull_ int driver_work(Work *w);
_must_check_ _nonnull_ int versions_work(Work *w);
_must_check_ _nonnull_ int fabric_work(Work *w);
_must_check_ _nonnull_ int license_work(Work *w);
_must_check_ _nonnull_ int health_work(Work *w);
_must_check_ _nonnull_ int mig_mode_work(Work *w);
_must_check_ _nonnull_ int partition_work(Work *w);
_must_check_ _nonnull_ int clocks_work(Work *w);
_must_check_ _nonnull_ int nodes_work(Work *w);
_must_check_ _nonnull_ int list_work(Work *w);
_must_check_ _nonnull_ int cdi_work(Work *w);
_must_check_ _nonnull_ int channel_work(Work *w);
_must_check_ _nonnull_ int imex_work(Work *w);

_must_check_ _nonnull_ int turn_work(Work *w);

_must_check_ _nonnull_ int state_work(Work *w);
/* 1, and which files would go and why in a new text, *ret; 0 and NULL: none; or a negative errno. */
_must_check_ _nonnull_ int state_look(const Root *root, const Action *a, char **ret);

/* Has any of those failed that the task comes after, however they end? */
_must_check_ _nonnull_ bool taint_is_wanted(const Task *t);
_must_check_ _nonnull_ int register_check(Task *t);
/* given: as of taint_reason() */
_must_check_ _nonnull_ int register_work(Work *w);
_must_check_ _nonnull_ int taint_check(Task *t);
/* What the node is to say, as the task's thread is told: word of the cause and id of the action that failed
 * first of all that the task comes after, and the clique of the GPUs; "" for what is not so, NULL for
 * nothing. The caller frees it. */
_must_check_ _nonnull_ char **taint_reason(const Task *t);
_must_check_ _nonnull_ int taint_work(Work *w);

/* ---- node.c ---- */
/* Device nodes that no kernel and no udev makes, because their drivers have no class: NVIDIA's. */

typedef struct NodeRights { uid_t uid; gid_t gid; mode_t mode; } NodeRights;

/* "234 nvidia-uvm" in the first part of /proc/devices, that of character devices. -ENXIO: no such driver
 * there; other errors: the file cannot be read. */
_must_check_ _nonnull_ int node_major(const Root *root, const char *name, unsigned *ret);
/* A character device at path, and its link in /dev/char, without which containers lose it when systemd
 * reloads (NVIDIA/nvidia-container-toolkit#48). One that has another number is replaced. > 0 made or put
 * right, 0 was so. */
_must_check_ _nonnull_ int node_make(const Root *root, const char *path, dev_t device,
                                     const NodeRights *want);
/* What is missing to make one: the sentence's end behind "/dev/nvidia0 cannot be made: "; static text. */
_must_check_ const char *node_error(int r);
/* The number of a GPU's own node, /dev/nvidiaN, as the driver gave it: by its PCI address. */
_must_check_ _nonnull_ int node_of_gpu(const Root *root, const char *address, unsigned *ret);

/* ---- module.c ---- */
/* What module.c (load-module), module-options.c (modprobe.d) and reload.c (a driver whose options are others
 * than it was loaded with) share. */

/* What a boot says where this module cannot be loaded; name as the kernel spells it. */
_nonnull_ Cause module_cause(const char *name);
/* All lines of modprobe.d(5) that say how a module is loaded (options, install), of this name or one that
 * continues it behind "_" ("nvidia", "nvidia_drm"; "-" counts as "_"), in the order in which modprobe reads
 * them, each behind its file: "/etc/modprobe.d/a.conf: options nvidia X=1". "": none. The caller frees it. */
_must_check_ _nonnull_ int module_options(const Root *root, const char *prefix, char **ret);
/* The same of one file. */
_nonnull_ void module_options_add(Text *to, const char *path, const char *text, const char *prefix);
/* A file that the one has lines of that the other has not; the caller frees it. */
_malloc_ _nonnull_ char *module_options_changed(const char *before, const char *now);

/* reload.c: NVIDIA's driver is about to be loaded: notes with which options. < 0 after work_fail(). */
_must_check_ _nonnull_ int driver_note_options(Work *w);
/* It is loaded: takes it out and loads it again where its options are others than those noted: 1; 0: they are
 * the same, or are seen for the first time in this boot, or it cannot be, of which it warns. */
_must_check_ _nonnull_ int driver_renew(Work *w);
/* Loads and starts again what a process before this one has left stopped in the middle of that. */
_nonnull_ void driver_return(Work *w);
