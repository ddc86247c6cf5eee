/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Executors of devices, of the lock between phases (devices-lock.c), of kubelet files (state.c), of a warm
 * pool (pool.c), and of a failed node (node-precheck.c, taint.c). Functions with a Work run on a thread and
 * check whether work is needed: > 0 done, 0 unchanged, < 0 after work_fail(). */
#include "apply/work.h"
#include "base/root.h"
#include "base/str.h"

WorkFunction sysctl_work, tuning_work, pages_work, module_work, machine_work, efa_work, devices_work,
        driver_work, versions_work, fabric_work, license_work, health_work, prove_work, mig_mode_work,
        partition_work, clocks_work, nodes_work, list_work, cdi_work, channel_work, imex_work, turn_work,
        state_work, pool_work, register_work, taint_work;
/* 1: it has the value; 0; or a negative errno. *ret_have: the current value, a new string. */
_must_check_ _nonnull_ int sysctl_has(const Root *root, const Action *a, const char *path, char **ret_have);
/* 1: as the action wants; 0; or a negative errno. *ret_have: how many exist. */
_must_check_ _nonnull_ int pages_have(const Root *root, const Action *a, uint64_t *ret_have);
/* 1: loaded or built in; 0; or a negative errno. */
_must_check_ _nonnull_ int module_is_loaded(const Root *root, const char *name);

/* 1, and in *ret which files would go and why (a new string); 0 and NULL; or a negative errno. */
_must_check_ _nonnull_ int state_look(const Root *root, const Action *a, char **ret);

TaskFunction register_check, taint_check;
/* Strings for the thread: cause and action id of the first failure, and the NVLink clique; "" if unset. NULL:
 * no label or taint. The caller frees it. */
_must_check_ _nonnull_ char **taint_reason(const Task *t);

/* node.c: NVIDIA device nodes, which neither kernel nor udev makes, since the drivers have no class. */

typedef struct NodeRights { uid_t uid; gid_t gid; mode_t mode; } NodeRights;

/* Reads "234 nvidia-uvm" in the character devices of /proc/devices. -ENXIO: not listed. */
_must_check_ _nonnull_ int node_major(const Root *root, const char *name, unsigned *ret);
/* Makes or corrects a character device and its link in /dev/char. Without the link, containers lose the
 * device when systemd reloads (NVIDIA/nvidia-container-toolkit#48). > 0 changed, 0 unchanged. */
_must_check_ _nonnull_ int node_make(const Root *root, const char *path, dev_t device,
                                     const NodeRights *want);
/* The reason after "/dev/nvidia0 cannot be made: "; static text. */
_must_check_ const char *node_error(int r);
_must_check_ _nonnull_ int node_of_gpu(const Root *root, const char *address, unsigned *ret);

/* module.c, module-options.c (modprobe.d) and reload.c */

_nonnull_ Cause module_cause(const char *name);
/* The options and install lines of modprobe.d(5) for this module and PREFIX_*, in the order of modprobe:
 * "/etc/modprobe.d/a.conf: options nvidia X=1". The caller frees it. */
_must_check_ _nonnull_ int module_options(const Root *root, const char *prefix, char **ret);
_nonnull_ void module_options_add(Text *to, const char *path, const char *text, const char *prefix);
/* A file with a line that the other text lacks; the caller frees it. */
_malloc_ _nonnull_ char *module_options_changed(const char *before, const char *now);

/* Records the options before the NVIDIA driver is loaded. < 0 after work_fail(). */
_must_check_ _nonnull_ int driver_note_options(Work *w);
/* Reloads the driver if its recorded options differ: 1. 0: same options, first look in this boot, or not
 * possible, with a warning. */
_must_check_ _nonnull_ int driver_renew(Work *w);
_nonnull_ void driver_return(Work *w);
