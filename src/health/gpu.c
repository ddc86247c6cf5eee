/* SPDX-License-Identifier: Apache-2.0
 * The NVIDIA management library → findings. A code like "not supported" is not a fault: models, modes and
 * drivers differ. Sources: nvml.h; for memory and recovery docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt. */
#include "health/health.h"

#include "base/str.h"
#include "base/time.h"
#include "nvidia/nvml.h"

#include <time.h>

#define REPLACE "if this persists, replace the instance (stop and start moves it to other hardware)"

typedef struct Look {
        const NvmlGpu *gpu;
        unsigned nvlinks;
        bool fabric;
        Findings *f;
} Look;

#define FOUND(l, word, unusable, ...) finding_add((l)->f, word, (l)->gpu->address, unusable, __VA_ARGS__)

/* Two bits each of NVML_GPU_FABRIC_HEALTH_MASK: 0 unknown, 1 yes, 2 no. */
static const struct { unsigned shift; const char *word, *text; } flags[] = {
        { 0, "fabric-bandwidth", "it has reduced bandwidth in the NVLink fabric" },
        { 2, "fabric-route-recovery", "its routes in the NVLink fabric are being recovered" },
        { 4, "fabric-route", "its routes in the NVLink fabric are unhealthy" },
        { 6, "fabric-timeout-recovery", "the NVLink fabric is recovering from an access timeout" },
};

static int look_at_fabric(Look *l) {
        static const char *const words[16] = { [4] = "fabric-partition", [5] = "fabric-links" };
        NvmlFabric fabric = {};
        size_t before = l->f->n;
        int code = l->fabric ? nvml_fabric(l->gpu->device, &fabric) : NVML_NOT_SUPPORTED;
        for (size_t i = 0; i < ARRAY_SIZE(flags) && code == NVML_OK; i++)
                if ((fabric.health >> flags[i].shift & 3) == 1)
                        FOUND(l, flags[i].word, false, "%s; " REPLACE, flags[i].text);
        if (fabric.misconfigured)
                FOUND(l, words[fabric.health >> 8 & 0xf] ?: "fabric-configuration", false,
                      "its NVLink fabric is misconfigured: %s; see the journal of fabric manager, or of the "
                      "NMX controller of the rack", fabric.misconfigured);
        if (l->f->n > before || fabric.state != NVML_FABRIC_COMPLETED)  /* the summary repeats these */
                return code;
        if (fabric.summary == 2)
                FOUND(l, "fabric-unhealthy", false,
                      "the driver reports its NVLink fabric as unhealthy, without a reason; " REPLACE);
        if (fabric.summary == 3)
                FOUND(l, "fabric-limited", false,
                      "the driver reports limited capacity of its NVLink fabric; " REPLACE);
        return code;
}

/* Each action makes the GPU unusable, except that for the IMEX domain. All GPUs of the domain report it, and
 * they work. If their nodes stayed out of the cluster, the domain could not form
 * (kubernetes-sigs/dra-driver-nvidia-gpu#1441). */
static int look_at_recovery(Look *l) {
        static const struct { const char *word, *text; } actions[] = {
                [NVML_RECOVERY_RESET] = { "gpu-reset", "reset it (nvidia-smi --gpu-reset, or a reboot)" },
                [NVML_RECOVERY_REBOOT] = { "node-reboot", "reboot the node" },
                [NVML_RECOVERY_DRAIN_P2P] = { "drain-p2p", "end all peer-to-peer (P2P) work" },
                [NVML_RECOVERY_DRAIN_AND_RESET] = { "drain-and-reset", "end all work on it and reset it" },
                [NVML_RECOVERY_DOMAIN] = { "recover-domain", "recover the IMEX domain of the rack" },
                [NVML_RECOVERY_BUS_RESET] = { "bus-reset", "reset its PCI bus" },
                [NVML_RECOVERY_SYSTEM_REBOOT] = { "system-reboot", "reboot the system" },
        };
        unsigned action = NVML_RECOVERY_NONE;
        int code = nvml_recovery(l->gpu->device, &action);
        /* The kernel log has errors from before a reset, but not the reset. */
        if (code == NVML_OK && action == NVML_RECOVERY_NONE)
                findings_excuse(l->f, l->gpu->address);
        if (action >= ARRAY_SIZE(actions))
                FOUND(l, "recovery-unknown", false,
                      "the driver wants a recovery action that nodestrap does not know (%u): nvidia-smi -q "
                      "names it; do that", action);
        else if (actions[action].word)
                FOUND(l, actions[action].word, action != NVML_RECOVERY_DOMAIN,
                      "the driver says: %s before %s", actions[action].text,
                      action == NVML_RECOVERY_DOMAIN ? "jobs run across trays again; check IMEX on each "
                                                       "tray (nvidia-imex-ctl -N)"
                                                     : "you use it; " REPLACE);
        return code;
}

static int look_at_rows(Look *l) {
        bool pending = false, failed = false;
        int code = nvml_remapped_rows(l->gpu->device, &pending, &failed);
        if (code == NVML_NOT_SUPPORTED || code == NVML_FUNCTION_NOT_FOUND) {
                bool retired = false;
                code = nvml_retired_pages(l->gpu->device, &retired);
                if (retired)
                        FOUND(l, "page-retirement-pending", false,
                              "memory pages await retirement at its next reset: reboot soon");
        }
        if (pending)
                FOUND(l, "row-remap-pending", false,
                      "memory rows await remapping at its next reset or reboot: reboot when no work runs "
                      "on it");
        if (failed)
                FOUND(l, "row-remap-failed", false,
                      "a memory row could not be remapped: replace the instance");
        return code;
}

static int look_at_memory(Look *l) {
        uint64_t errors = 0;
        int code = look_at_rows(l);
        if (code != NVML_GPU_IS_LOST)
                code = nvml_uncorrected_errors(l->gpu->device, &errors);
        if (errors > 0)
                FOUND(l, "ecc-uncorrected", false,
                      "%ju uncorrectable memory error%s since the driver was loaded: work on this GPU "
                      "may fail; reboot, and replace the instance if this happens again",
                      (uintmax_t)errors, errors == 1 ? "" : "s");
        return code;
}

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
                      "%u of its %u NVLinks %s down (%s): see nvidia-smi nvlink -s and the journal of fabric "
                      "manager; " REPLACE, n, l->nvlinks, n == 1 ? "is" : "are", down.data);
        return code;
}

/* Clock changes briefly show hardware slowdown (nvml.h), so a reason must persist. */
static int look_at_clocks(Look *l) {
        static const struct { unsigned bit; const char *word, *text; } reasons[] = {
                { NVML_CLOCKS_HW_THERMAL, "hw-thermal-slowdown",
                  "it is too hot: its hardware has cut its clocks by half or more" },
                { NVML_CLOCKS_HW_POWER_BRAKE, "hw-power-brake-slowdown",
                  "power brake slowdown: its hardware has cut its clocks by half or more" },
                { NVML_CLOCKS_SW_THERMAL, "sw-thermal-slowdown",
                  "it is above its temperature limit: the driver lowers its clocks" },
                { NVML_CLOCKS_HW_SLOWDOWN, "hw-slowdown", "its hardware has cut its clocks by half or more" },
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

/* A lost GPU does not answer any more. */
static bool is_gone(const Look *l, int code) {
        if (code == NVML_RESET_REQUIRED &&
            !ANY(f, l->f->items, l->f->n, streq(f->word, "gpu-reset") && streq(f->address, l->gpu->address)))
                FOUND(l, "gpu-reset", true, "NVML says: reset it before you use it; " REPLACE);
        if (code == NVML_GPU_IS_LOST)
                FOUND(l, "off-the-bus", true,
                      "it does not answer on the PCI bus (\"GPU is lost\"): reboot, and replace the instance "
                      "if it happens again");
        return code == NVML_RESET_REQUIRED || code == NVML_GPU_IS_LOST;
}

void health_gpus(const NvmlGpus *gpus, unsigned looks, unsigned nvlinks, bool fabric,
                 void (*at)(void *userdata, const char *gpu, const char *what), Findings *f, void *userdata) {
        static const struct { HealthLook look; const char *what; int (*look_at)(Look *l); } questions[] = {
                { HEALTH_LOOK_RECOVERY, "the recovery action", look_at_recovery },
                { HEALTH_LOOK_FABRIC, "the fabric health", look_at_fabric },
                { HEALTH_LOOK_MEMORY, "the memory errors", look_at_memory },
                { HEALTH_LOOK_NVLINK, "the state of the NVLinks", look_at_links },
                { HEALTH_LOOK_CLOCKS, "the clock limits", look_at_clocks },
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
