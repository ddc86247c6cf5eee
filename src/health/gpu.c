/* SPDX-License-Identifier: Apache-2.0
 * The NVIDIA management library → findings. A code like "not supported" is not a fault: models, modes and
 * drivers differ. Sources: nvml.h; for memory and recovery docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt. */
#include "health/health.h"

#include "base/str.h"
#include "base/time.h"
#include "nvidia/nvml.h"

#include <time.h>

#define REPLACE "if it stays so, replace the instance (stop and start moves it to other hardware)"

typedef struct Look {
        const NvmlGpu *gpu;
        unsigned nvlinks;
        bool fabric;
        Findings *f;
} Look;

#define FOUND(l, word, unusable, ...) finding_add((l)->f, word, (l)->gpu->address, unusable, __VA_ARGS__)

/* ---- fabric ---- */

/* Two bits each of NVML_GPU_FABRIC_HEALTH_MASK: 0 unknown, 1 yes, 2 no. */
static const struct { unsigned shift; const char *word, *text; } flags[] = {
        { 0, "fabric-bandwidth", "it has less than its bandwidth in the NVLink fabric" },
        { 2, "fabric-route-recovery", "its routes in the NVLink fabric are being recovered" },
        { 4, "fabric-route", "its routes in the NVLink fabric are unhealthy" },
        { 6, "fabric-timeout-recovery", "the NVLink fabric recovers from a time-out of an access of its" },
};

static const char *misconfiguration_word(unsigned mask) {
        switch (mask >> 8 & 0xf) {
        case 4:
                return "fabric-partition";
        case 5:
                return "fabric-links";
        default:
                return "fabric-configuration";
        }
}

static int look_at_fabric(Look *l) {
        NvmlFabric fabric = {};
        size_t before = l->f->n;
        int code = l->fabric ? nvml_fabric(l->gpu->device, &fabric) : NVML_NOT_SUPPORTED;
        for (size_t i = 0; i < ARRAY_SIZE(flags) && code == NVML_OK; i++)
                if ((fabric.health >> flags[i].shift & 3) == 1)
                        FOUND(l, flags[i].word, false, "%s; " REPLACE, flags[i].text);
        if (fabric.misconfigured)
                FOUND(l, misconfiguration_word(fabric.health), false,
                      "the NVLink fabric is not configured as it must be for it: %s; fabric manager's "
                      "journal, on a rack its NMX controller, tells more",
                      fabric.misconfigured);
        if (l->f->n > before || fabric.state != NVML_FABRIC_COMPLETED)  /* the summary repeats these */
                return code;
        if (fabric.summary == 2)
                FOUND(l, "fabric-unhealthy", false,
                      "the driver calls its NVLink fabric unhealthy, and not why; " REPLACE);
        if (fabric.summary == 3)
                FOUND(l, "fabric-limited", false,
                      "the driver says that its NVLink fabric has limited capacity; " REPLACE);
        return code;
}

/* ---- what the driver wants ---- */

/* Each action makes the GPU unusable, except that for the IMEX domain: all GPUs of all its trays have it and
 * work, and nodes that stay out would keep the domain from forming
 * (kubernetes-sigs/dra-driver-nvidia-gpu#1441). */
static int look_at_recovery(Look *l) {
        static const struct { const char *word, *text; } actions[] = {
                [NVML_RECOVERY_RESET] = { "gpu-reset", "that it must be reset (nvidia-smi --gpu-reset, or a "
                                                       "reboot)" },
                [NVML_RECOVERY_REBOOT] = { "node-reboot", "that the node must be rebooted" },
                [NVML_RECOVERY_DRAIN_P2P] = { "drain-p2p", "that all work of GPUs with each other must end" },
                [NVML_RECOVERY_DRAIN_AND_RESET] = { "drain-and-reset", "that all work on it must end, and "
                                                                       "that it must be reset then" },
                [NVML_RECOVERY_DOMAIN] = { "recover-domain", "that the IMEX domain, which the trays of the "
                                                             "rack make together, must be recovered" },
                [NVML_RECOVERY_BUS_RESET] = { "bus-reset", "that its PCI bus must be reset" },
                [NVML_RECOVERY_SYSTEM_REBOOT] = { "system-reboot", "that the system must be rebooted" },
        };
        unsigned action = NVML_RECOVERY_NONE;
        int code = nvml_recovery(l->gpu->device, &action);
        /* The kernel log has errors from before a reset, but not the reset. */
        if (code == NVML_OK && action == NVML_RECOVERY_NONE)
                findings_excuse(l->f, l->gpu->address);
        if (action >= ARRAY_SIZE(actions))
                FOUND(l, "recovery-unknown", false,
                      "the driver wants something done with it that nodestrap does not know (recovery action "
                      "%u): nvidia-smi -q names it",
                      action);
        else if (actions[action].word)
                FOUND(l, actions[action].word, action != NVML_RECOVERY_DOMAIN, "the driver says %s before %s",
                      actions[action].text,
                      action == NVML_RECOVERY_DOMAIN ? "work across trays goes on; IMEX on each tells more "
                                                       "(nvidia-imex-ctl -N)"
                                                     : "it can be used; " REPLACE);
        return code;
}

/* ---- memory ---- */

static int look_at_rows(Look *l) {
        bool pending = false, failed = false;
        int code = nvml_remapped_rows(l->gpu->device, &pending, &failed);
        if (code == NVML_NOT_SUPPORTED || code == NVML_FUNCTION_NOT_FOUND) {
                bool retired = false;
                code = nvml_retired_pages(l->gpu->device, &retired);
                if (retired)
                        FOUND(l, "page-retirement-pending", false,
                              "pages of its memory are to be retired at its next reset: reboot before it is "
                              "used for long");
        }
        if (pending)
                FOUND(l, "row-remap-pending", false,
                      "rows of its memory are to be remapped at its next reset, which a reboot is; work is "
                      "not affected until then, for they are not used");
        if (failed)
                FOUND(l, "row-remap-failed", false,
                      "a row of its memory could not be remapped, since no spare one is left: replace the "
                      "instance");
        return code;
}

static int look_at_memory(Look *l) {
        uint64_t errors = 0;
        int code = look_at_rows(l);
        if (code != NVML_GPU_IS_LOST)
                code = nvml_uncorrected_errors(l->gpu->device, &errors);
        if (errors > 0)
                FOUND(l, "ecc-uncorrected", false,
                      "%ju uncorrectable memory error%s since the driver was loaded: what runs on it may "
                      "fail; reboot, and if they come again replace the instance",
                      (uintmax_t)errors, errors == 1 ? "" : "s");
        return code;
}

/* ---- NVLink ---- */

/* MIG instances do not use NVLink, and on A100 it is off
 * (docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide). */
static bool is_divided(const Look *l) {
        bool current = false, pending = false;
        return nvml_mig_mode(l->gpu->device, &current, &pending) == NVML_OK && current;
}

static int look_at_links(Look *l) {
        _cleanup_(text_done) Text down = {};
        unsigned n = 0;
        int code = NVML_OK;
        if (l->nvlinks == 0 || is_divided(l))
                return NVML_OK;
        for (unsigned i = 0; i < l->nvlinks && code != NVML_GPU_IS_LOST; i++) {
                bool up = true;
                code = nvml_link_is_up(l->gpu->device, i, &up);
                if (code == NVML_OK && !up)
                        text_add(&down, "%s%u", n++ > 0 ? ", " : "", i);
        }
        if (n > 0)
                FOUND(l, "nvlink-down", false,
                      "%u of its %u NVLinks %s down (%s): nvidia-smi nvlink -s shows them, fabric manager's "
                      "journal may say why; " REPLACE,
                      n, l->nvlinks, n == 1 ? "is" : "are", down.data);
        return code;
}

/* ---- clocks ---- */

/* Changing clocks show hardware slowdown for a moment (nvml.h), so a reason must stay. */
static int look_at_clocks(Look *l) {
        static const struct { unsigned bit; const char *word, *text; } reasons[] = {
                { NVML_CLOCKS_HW_THERMAL, "hw-thermal-slowdown",
                  "it is too hot, and its hardware halves its clocks or worse" },
                { NVML_CLOCKS_HW_POWER_BRAKE, "hw-power-brake-slowdown",
                  "its power supply brakes it, and its hardware halves its clocks or worse" },
                { NVML_CLOCKS_SW_THERMAL, "sw-thermal-slowdown",
                  "it is warmer than it may be at work, and the driver lowers its clocks" },
                { NVML_CLOCKS_HW_SLOWDOWN, "hw-slowdown", "its hardware halves its clocks or worse" },
        };
        static const struct timespec between = { .tv_nsec = 50000000 };
        uint64_t all = UINT64_MAX, now = 0, known = 0;
        int code = NVML_OK;
        for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
                known |= reasons[i].bit;
        for (int i = 0; i < 3 && (all & known) && code == NVML_OK; i++) {
                if (i > 0)
                        (void)nanosleep(&between, NULL);
                code = nvml_clock_reasons(l->gpu->device, &now);
                all &= now;
        }
        if (code != NVML_OK)
                return code;
        if (all & (NVML_CLOCKS_HW_THERMAL | NVML_CLOCKS_HW_POWER_BRAKE))
                all &= ~(uint64_t)NVML_CLOCKS_HW_SLOWDOWN;      /* includes these */
        for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
                if (all & reasons[i].bit)
                        FOUND(l, reasons[i].word, false, "%s; " REPLACE, reasons[i].text);
        return code;
}

/* ---- all of them ---- */

/* A lost GPU does not answer any more. */
static bool is_gone(const Look *l, int code) {
        if (code == NVML_RESET_REQUIRED &&
            !ANY(f, l->f->items, l->f->n, streq(f->word, "gpu-reset") && streq(f->address, l->gpu->address)))
                FOUND(l, "gpu-reset", true,
                      "NVIDIA's library says that it must be reset before it can be used; " REPLACE);
        if (code == NVML_GPU_IS_LOST)
                FOUND(l, "off-the-bus", true,
                      "it no longer answers on the PCI bus (\"GPU is lost\"): reboot, and if it is lost "
                      "again replace the instance");
        return code == NVML_RESET_REQUIRED || code == NVML_GPU_IS_LOST;
}

void health_gpus(const NvmlGpus *gpus, unsigned looks, unsigned nvlinks, bool fabric,
                 void (*at)(void *userdata, const char *gpu, const char *what), Findings *f, void *userdata) {
        static const struct { HealthLook look; const char *what; int (*look_at)(Look *l); } questions[] = {
                { HEALTH_LOOK_RECOVERY, "the recovery action", look_at_recovery },
                { HEALTH_LOOK_FABRIC, "the fabric's health", look_at_fabric },
                { HEALTH_LOOK_MEMORY, "the errors of the memory", look_at_memory },
                { HEALTH_LOOK_NVLINK, "the state of the NVLinks", look_at_links },
                { HEALTH_LOOK_CLOCKS, "what holds the clocks down", look_at_clocks },
        };
        for (size_t i = 0; i < gpus->n; i++) {
                Look l = { .gpu = &gpus->items[i], .nvlinks = nvlinks, .fabric = fabric, .f = f };
                _free_ char *name = xasprintf("GPU %zu (%s)", i, gpus->items[i].address);
                bool gone = false;
                for (size_t q = 0; q < ARRAY_SIZE(questions) && !gone; q++) {
                        if (!(looks >> questions[q].look & 1))
                                continue;
                        if (at)
                                at(userdata, name, questions[q].what);
                        gone = is_gone(&l, questions[q].look_at(&l));
                }
        }
}
