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

#define UNIT_COURSE(s) { s, unit_waiting, unit_late, unit_cancel, unit_release }
static const Course reload_course = UNIT_COURSE(reload_start), unit_course = UNIT_COURSE(unit_start),
                    mask_course = UNIT_COURSE(mask_start), await_course = UNIT_COURSE(await_start),
                    alive_course = { NULL, alive_waiting, unit_late, NULL, unit_release },
                    work_course = { work_begin, work_waiting, NULL, work_cancel, work_release },
                    wait_course = { work_begin, work_waiting, work_late, work_cancel, work_release },
                    storage_course = { work_begin, storage_waiting, NULL, work_cancel, work_release };

#define UNIT(c, course_of, ...)                                                                            \
        { .host_only = true, .missed = "unit-failed", .check = c, .course = &course_of, ##__VA_ARGS__ }
/* On a thread, if check() says so. */
#define THREAD(c, f, course_of, ...)                                                                       \
        { .host_only = true, .check = c, .work = f, .course = &course_of, ##__VA_ARGS__ }
#define STORAGE(f, ...) THREAD(storage_check, f, storage_course, ##__VA_ARGS__)
/* On a thread that itself checks whether work is needed. */
#define WORK(f, c, m, ...) THREAD(NULL, f, work_course, .overdue = c, .missed = m, ##__VA_ARGS__)
#define WAIT(f, c, m) THREAD(NULL, f, wait_course, .overdue = c, .missed = m, .waits = true)

const Executor executors[_ACTION_MAX] = {
        [ACTION_WRITE_FILE]      = { .stage = file_stage, .publish = file_publish },
        [ACTION_WRITE_BLOCK]     = { .stage = block_stage },
        [ACTION_PRUNE_FILES]     = { .stage = manifest_stage, .publish = manifest_publish },
        [ACTION_RELOAD_MANAGER]  = UNIT(reload_check, reload_course),
        [ACTION_RESTART_UNIT]    = UNIT(unit_check, unit_course),
        [ACTION_START_UNIT]      = UNIT(unit_check, unit_course),
        [ACTION_STOP_UNIT]       = UNIT(unit_check, unit_course),
        [ACTION_MASK_UNIT]       = UNIT(mask_check, mask_course),
        [ACTION_UNMASK_UNIT]     = UNIT(mask_check, mask_course),
        [ACTION_AWAIT_UNIT]      = UNIT(await_check, await_course, .waits = true),
        [ACTION_CHECK_UNIT]      = UNIT(alive_check, alive_course),
        [ACTION_CREATE_RAID]     = STORAGE(raid_work),
        [ACTION_MAKE_FILESYSTEM] = STORAGE(filesystem_work),
        [ACTION_MOUNT]           = STORAGE(mount_work),
        [ACTION_GROW_FILESYSTEM] = STORAGE(grow_work, .missed = "filesystem-not-grown"),
        [ACTION_MOVE_FILES]      = STORAGE(move_work),
        [ACTION_BIND]            = STORAGE(bind_work),
        [ACTION_IMPORT_IMAGE]    = WORK(image_work, CAUSE_NONE, NULL),
        [ACTION_PIN_IMAGE]       = WORK(pin_work, CAUSE_NONE, NULL),
        [ACTION_SET_SYSCTL]      = WORK(sysctl_work, CAUSE_SYSCTL, NULL, .in_turn = true),
        [ACTION_SET_TUNING]      = WORK(tuning_work, CAUSE_SYSCTL, "tuning"),
        [ACTION_RESERVE_PAGES]   = WORK(pages_work, CAUSE_HUGEPAGES, "hugepages-short", .waits = true),
        [ACTION_LOAD_MODULE]     = WORK(module_work, CAUSE_MODULE, NULL),
        [ACTION_CHECK_MACHINE]   = WORK(machine_work, CAUSE_NONE, NULL),
        [ACTION_CHECK_EFA]       = WORK(efa_work, CAUSE_EFA, "efa-missing", .waits = true),
        [ACTION_CHECK_DRIVER]    = WORK(driver_work, CAUSE_DRIVER, NULL, .waits = true),
        [ACTION_CHECK_VERSIONS]  = WORK(versions_work, CAUSE_VERSION, NULL),
        [ACTION_AWAIT_DEVICES]   = WORK(devices_work, CAUSE_NVSWITCH, "devices-missing", .waits = true),
        [ACTION_AWAIT_FABRIC]    = WAIT(fabric_work, CAUSE_NVML, "fabric"),
        [ACTION_AWAIT_LICENSE]   = WAIT(license_work, CAUSE_LICENSE, "no-license"),
        [ACTION_CHECK_HEALTH]    = WAIT(health_work, CAUSE_NVML, "health"),
        [ACTION_PROVE_GPUS]      = WORK(prove_work, CAUSE_HEALTH, "health"),
        [ACTION_SET_MIG_MODE]    = WORK(mig_mode_work, CAUSE_MIG, NULL),
        [ACTION_PARTITION_GPUS]  = WORK(partition_work, CAUSE_MIG, NULL),
        [ACTION_LIST_GPUS]       = WORK(list_work, CAUSE_NVIDIA_SMI, NULL, .waits = true),
        [ACTION_SET_CLOCKS]      = WORK(clocks_work, CAUSE_NVML, "clocks"),
        [ACTION_GENERATE_CDI]    = WORK(cdi_work, CAUSE_CDI, NULL),
        [ACTION_MAKE_NODES]      = WORK(nodes_work, CAUSE_DRIVER, NULL),
        [ACTION_MAKE_CHANNEL]    = WORK(channel_work, CAUSE_IMEX, NULL),
        [ACTION_AWAIT_IMEX]      = WORK(imex_work, CAUSE_IMEX, NULL, .waits = true),
        [ACTION_CHECK_POOL]      = { .work = pool_work, .course = &work_course, .overdue = CAUSE_DEADLINE },
        [ACTION_CHECK_NODE]      = THREAD(register_check, register_work, work_course, .given = taint_reason,
                                          .overdue = CAUSE_API_SILENT),
        [ACTION_MARK_NODE]       = THREAD(taint_check, taint_work, work_course, .given = taint_reason,
                                          .overdue = CAUSE_FILE),
        [ACTION_REMOVE_FILE]     = { .check = remove_check },
        [ACTION_LINK_FILE]       = { .check = link_check },
        [ACTION_TAKE_TURN]       = WORK(turn_work, CAUSE_NONE, NULL),
        [ACTION_FORGET_STATE]    = { .work = state_work, .course = &work_course, .overdue = CAUSE_STALLED },
        [ACTION_RELOAD_NETWORKD] = THREAD(networkd_check, networkd_work, work_course,
                                          .given = networkd_links, .overdue = CAUSE_INTERFACE),
};

int apply_plan(const Root *root, const Plan *plan, Results *ret, Diag *diag) {
        return apply_with(executors, root, plan, ret, diag);
}
