/* SPDX-License-Identifier: Apache-2.0
 * Functions of each type of action. This file depends on all executors. */
#include "apply/device.h"
#include "apply/engine.h"
#include "apply/file.h"
#include "apply/storage.h"
#include "apply/units/units.h"

static int work_begin(Task *t) {
        const Executor *e = t->executor;
        return work_start(t, e->work, e->given ? e->given(t) : NULL);
}

#define UNIT(c, s, ...) {                                                                                  \
        .host_only = true, .missed = "unit-failed", .check = c, .start = s, .waiting = unit_waiting,       \
        .late = unit_late, .cancel = unit_cancel, .release = unit_release, ##__VA_ARGS__ }
/* On a thread, if check() says so. */
#define THREAD(c, f, w, ...) {                                                                             \
        .host_only = true, .check = c, .start = work_begin, .work = f, .waiting = w,                       \
        .cancel = work_cancel, .release = work_release, ##__VA_ARGS__ }
/* On a thread that itself checks whether anything is to do. */
#define WORK(f, c, m, ...) THREAD(NULL, f, work_waiting, .overdue = c, .missed = m, ##__VA_ARGS__)

const Executor executors[_ACTION_MAX] = {
        [ACTION_WRITE_FILE]      = { .stage = file_stage, .publish = file_publish },
        [ACTION_WRITE_BLOCK]     = { .stage = block_stage },
        [ACTION_PRUNE_FILES]     = { .stage = manifest_stage, .publish = manifest_publish },
        [ACTION_RELOAD_MANAGER]  = UNIT(reload_check, reload_start),
        [ACTION_RESTART_UNIT]    = UNIT(unit_check, unit_start),
        [ACTION_START_UNIT]      = UNIT(unit_check, unit_start),
        [ACTION_STOP_UNIT]       = UNIT(unit_check, unit_start),
        [ACTION_MASK_UNIT]       = UNIT(mask_check, mask_start),
        [ACTION_UNMASK_UNIT]     = UNIT(mask_check, mask_start),
        [ACTION_AWAIT_UNIT]      = UNIT(await_check, await_start, .waits = true),
        [ACTION_CHECK_UNIT]      = { .host_only = true, .missed = "unit-failed", .check = alive_check,
                                     .waiting = alive_waiting, .late = unit_late,
                                     .release = unit_release },
        [ACTION_CREATE_RAID]     = THREAD(storage_check, raid_work, storage_waiting),
        [ACTION_MAKE_FILESYSTEM] = THREAD(storage_check, filesystem_work, storage_waiting),
        [ACTION_MOUNT]           = THREAD(storage_check, mount_work, storage_waiting),
        [ACTION_GROW_FILESYSTEM] = THREAD(storage_check, grow_work, storage_waiting,
                                          .missed = "filesystem-not-grown"),
        [ACTION_MOVE_FILES]      = THREAD(storage_check, move_work, storage_waiting),
        [ACTION_BIND]            = THREAD(storage_check, bind_work, storage_waiting),
        [ACTION_IMPORT_IMAGE]    = WORK(image_work, CAUSE_NONE, NULL),
        [ACTION_SET_SYSCTL]      = WORK(sysctl_work, CAUSE_SYSCTL, NULL, .in_turn = true),
        [ACTION_SET_TUNING]      = WORK(tuning_work, CAUSE_SYSCTL, "tuning"),
        [ACTION_RESERVE_PAGES]   = WORK(pages_work, CAUSE_HUGEPAGES, "hugepages-short", .waits = true),
        [ACTION_LOAD_MODULE]     = WORK(module_work, CAUSE_MODULE, NULL),
        [ACTION_CHECK_MACHINE]   = WORK(machine_work, CAUSE_NONE, NULL),
        [ACTION_CHECK_EFA]       = WORK(efa_work, CAUSE_EFA, "efa-missing", .waits = true),
        [ACTION_CHECK_DRIVER]    = WORK(driver_work, CAUSE_DRIVER, NULL, .waits = true),
        [ACTION_CHECK_VERSIONS]  = WORK(versions_work, CAUSE_VERSION, NULL),
        [ACTION_AWAIT_DEVICES]   = WORK(devices_work, CAUSE_NVSWITCH, "devices-missing", .waits = true),
        [ACTION_AWAIT_FABRIC]    = WORK(fabric_work, CAUSE_NVML, "fabric", .waits = true, .late = work_late),
        [ACTION_AWAIT_LICENSE]   = WORK(license_work, CAUSE_LICENSE, "no-license", .waits = true,
                                        .late = work_late),
        [ACTION_CHECK_HEALTH]    = WORK(health_work, CAUSE_NVML, "health", .waits = true, .late = work_late),
        [ACTION_PROVE_GPUS]      = WORK(prove_work, CAUSE_HEALTH, "health"),
        [ACTION_SET_MIG_MODE]    = WORK(mig_mode_work, CAUSE_MIG, NULL),
        [ACTION_PARTITION_GPUS]  = WORK(partition_work, CAUSE_MIG, NULL),
        [ACTION_LIST_GPUS]       = WORK(list_work, CAUSE_NVIDIA_SMI, NULL, .waits = true),
        [ACTION_SET_CLOCKS]      = WORK(clocks_work, CAUSE_NVML, "clocks"),
        [ACTION_GENERATE_CDI]    = WORK(cdi_work, CAUSE_CDI, NULL),
        [ACTION_MAKE_NODES]      = WORK(nodes_work, CAUSE_DRIVER, NULL),
        [ACTION_MAKE_CHANNEL]    = WORK(channel_work, CAUSE_IMEX, NULL),
        [ACTION_AWAIT_IMEX]      = WORK(imex_work, CAUSE_IMEX, NULL, .waits = true),
        [ACTION_CHECK_NODE]      = THREAD(register_check, register_work, work_waiting, .given = taint_reason,
                                          .overdue = CAUSE_API_SILENT),
        [ACTION_TAINT_NODE]      = THREAD(taint_check, taint_work, work_waiting, .given = taint_reason,
                                          .overdue = CAUSE_FILE),
        [ACTION_REMOVE_FILE]     = { .check = remove_check },
        [ACTION_LINK_FILE]       = { .check = link_check },
        [ACTION_TAKE_TURN]       = WORK(turn_work, CAUSE_NONE, NULL),
        [ACTION_FORGET_STATE]    = { .start = work_begin, .work = state_work,
                                     .waiting = work_waiting, .cancel = work_cancel,
                                     .release = work_release, .overdue = CAUSE_STALLED },
        [ACTION_RELOAD_NETWORKD] = THREAD(networkd_check, networkd_work, work_waiting,
                                          .given = networkd_links, .overdue = CAUSE_INTERFACE),
};

int apply_plan(const Root *root, const Plan *plan, Results *ret, Diag *diag) {
        return apply_with(executors, root, plan, ret, diag);
}
