/* SPDX-License-Identifier: Apache-2.0 */
/* The NVIDIA stack, ordered by class: a table of steps with dependencies. Fabric manager before umad assumes
 * an older machine. CDI before the MIG instances fails. kubelet before the fabric gives pods that end in CUDA
 * error 802 (https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/). */
#include "plan/devices.h"
#include "base/str.h"

#define MANAGER  "nvidia-fabricmanager.service"
#define IMEX     "nvidia-imex.service"
#define CHANNEL  "/dev/nvidia-caps-imex-channels/channel0"
#define MANAGER_TIMEOUT (180 * USEC_PER_SEC)    /* it gives up after 30 s without GPUs; then it restarts */
#define LOAD_TIMEOUT    (300 * USEC_PER_SEC)    /* after three daemons with 90 s each to stop */
#define HELPER_TIMEOUT  (60 * USEC_PER_SEC)     /* nvidia-smi, a few times */

/* ---- what the class decides ---- */

bool stack_has_switches(const Stack *s) {
        return s->class == GPU_CLASS_NVSWITCH || s->class == GPU_CLASS_NVLINK5;
}

bool stack_is_tray(const Stack *s) {
        return s->class == GPU_CLASS_TRAY;
}

/* Newer GPUs do (conf/gpus.csv, fabric), and those not in the table. */
bool stack_registers(const Stack *s) {
        const GpuModel *model = s->host->gpus.model;
        return stack_is_tray(s) || (stack_has_switches(s) && (!model || model->fabric));
}

static bool runs_manager(const Stack *s) {
        return s->manager;
}

static bool lacks_manager(const Stack *s) {
        return !s->manager;
}

static bool is_nvlink5(const Stack *s) {
        return s->class == GPU_CLASS_NVLINK5;
}

bool stack_gates_fabric(const Stack *s) {
        return stack_registers(s) && s->want->fabric_gate != FABRIC_GATE_OFF;
}

static bool divides(const Stack *s) {
        return s->n_layouts > 0;
}

static bool resets_for_mig(const Stack *s) {
        return divides(s) && s->host->gpus.model && s->host->gpus.model->mig_resets;
}

bool stack_runs_imex(const Stack *s) {
        return s->imex == IMEX_HOST;
}

bool stack_bars_imex(const Stack *s) {
        return s->imex == IMEX_DRA || s->imex == IMEX_OFF;
}

bool stack_wants_channel(const Stack *s) {
        return stack_runs_imex(s) || s->want->imex_channel0;
}

/* On trays the daemon of the DRA driver runs the program of the image. */
static bool uses_imex(const Stack *s) {
        return stack_runs_imex(s) || (stack_is_tray(s) && s->imex != IMEX_OFF);
}

static bool has_programs(const Stack *s) {
        return s->manager || uses_imex(s);
}

/* ---- more for a step ---- */

static void put_count(const Stack *s, Action *a) {
        a->device.count = s->gpus;
        a->with = xasprintf("%u GPU%s", s->gpus, s->gpus == 1 ? "" : "s");
}

/* A failure is a warning: the next steps find out if the driver is there. */
static void fill_loader(_unused_ Stack *s, Action *a) {
        a->lenient = true;
}

static void fill_driver(Stack *s, Action *a) {
        a->device.parameters = strv_copy(s->parameters);
        devices_seen(a, s->host, pci_is_gpu);
        if (!s->parameters)
                return;
        Text list = {};
        for (char **word = s->parameters; *word; word++)
                text_add(&list, "%s%.*s", list.size > 0 ? ", " : "", (int)strcspn(*word, "?"), *word);
        RENEW(a->why, xasprintf("check the driver and its options: %s", list.data));
        text_done(&list);
}

static void fill_versions(Stack *s, Action *a) {
        if (s->manager)
                strv_add(&a->words, "nv-fabricmanager");
        if (s->manager && is_nvlink5(s))
                strv_add(&a->words, "nvlsm");
        if (uses_imex(s))
                strv_add(&a->words, "nvidia-imex");
        a->with = strv_join(a->words, ", ");
}

/* It keeps idle GPUs initialised; without it the first user of each waits a moment. */
static void fill_persistenced(_unused_ Stack *s, Action *a) {
        a->optional = a->lenient = true;
}

static void fill_umad(Stack *s, Action *a) {
        a->device.count =
                s->host->gpus.model && s->host->gpus.model->switches > 0 ? s->host->gpus.model->switches : 1;
        a->with = xasprintf("x %u", a->device.count);
}

/* No unit.inputs: a changed file would restart it, and CUDA jobs die with it. */
static void fill_manager(_unused_ Stack *s, Action *a) {
        a->retry = true;
        a->deadline_usec = MANAGER_TIMEOUT;
        action_after(a, PLAN_RELOAD_ID);
}

static void fill_load(_unused_ Stack *s, Action *a) {
        a->deadline_usec = LOAD_TIMEOUT;
}

static void fill_turn(_unused_ Stack *s, Action *a) {
        action_content(a, "", 0);
        a->file.mode = 0644;
}

static void fill_fabric(Stack *s, Action *a) {
        put_count(s, a);
        devices_seen(a, s->host, pci_is_gpu);
        a->lenient = s->want->fabric_gate == FABRIC_GATE_WARN;
        a->deadline_usec = s->want->fabric_timeout_usec;
        RENEW(a->why, xasprintf("wait %llu s for %s fabric, or %s",
                                (unsigned long long)(a->deadline_usec / USEC_PER_SEC),
                                stack_is_tray(s) ? "rack" : "NVLink", a->lenient ? "warn" : "fail"));
}

/* Layouts name GPUs by their place, so with one missing they would mean others. */
static void fill_mig(Stack *s, Action *a) {
        a->device.count = s->gpus;
        devices_seen(a, s->host, pci_is_gpu);
        a->device.layouts = TAKE_PTR(s->layouts);
        a->device.n_layouts = s->n_layouts;
        a->with = xstrdup(s->mig);
        s->n_layouts = 0;
}

/* The same layouts decide the MIG mode. It waits for the units of the image that open the GPUs; other steps
 * do not. */
static void fill_mig_mode(Stack *s, Action *a) {
        a->device.count = s->gpus;
        devices_seen(a, s->host, pci_is_gpu);
        a->device.layouts = xcalloc(s->n_layouts, sizeof *a->device.layouts);
        for (; a->device.n_layouts < s->n_layouts; a->device.n_layouts++) {
                const MigLayout *l = &s->layouts[a->device.n_layouts];
                a->device.layouts[a->device.n_layouts] =
                        (MigLayout){ .gpu = l->gpu, .profiles = strv_copy(l->profiles) };
        }
        action_after(a, "await-unit:set-nvidia-clocks.service");
        action_after(a, "await-unit:nvidia-cdi-refresh.service");
}

/* A vGPU works for a day without a licence. */
static bool is_part(const Stack *s) {
        return s->host->gpus.part;
}

static bool has_gridd(const Stack *s) {
        return is_part(s) && s->host->gpus.license_daemon;
}

static bool wants_license(const Stack *s) {
        return is_part(s) && s->want->health != HEALTH_OFF &&
               (s->host->gpus.license_daemon || s->want->health == HEALTH_REQUIRE);
}

static void fill_license(Stack *s, Action *a) {
        put_count(s, a);
        devices_seen(a, s->host, pci_is_gpu);
        a->lenient = s->want->health != HEALTH_REQUIRE;
}

static void fill_list(Stack *s, Action *a) {
        put_count(s, a);
}

static void fill_clocks(Stack *s, Action *a) {
        a->with = xstrdup(s->want->clocks == CLOCKS_DEFAULT ? "default" : "max");
        a->lenient = s->want->clocks == CLOCKS_AUTO;    /* not documented for newer GPUs */
}

/* Time for nvidia-smi, but a hang is noticed soon. A later step does what the unit did not. It does not wait
 * for a unit ordered after this run. */
static void fill_helper(_unused_ Stack *s, Action *a) {
        a->deadline_usec = HELPER_TIMEOUT;
        a->optional = a->lenient = true;
}

static bool is_read_by_imex(const Action *a, _unused_ const char *unit) {
        return streq(a->id, "write-file:" IMEX_CONFIG) || streq(a->id, "write-file:" IMEX_NODES);
}

static void fill_imex(Stack *s, Action *a) {
        action_reads(s->plan, a, is_read_by_imex);
        action_after(a, PLAN_RELOAD_ID);
}

/* ---- the steps ---- */

typedef enum StepName {
        STEP_RESOLVE, STEP_COPY_BIN, STEP_COPY_LIB, STEP_COPY_SHARE, STEP_SETUP, STEP_KMOD, STEP_LDCACHE,
        STEP_LOAD, STEP_UVM, STEP_DRIVER, STEP_NODES, STEP_VERSIONS, STEP_MASK_MANAGER, STEP_UNMASK_MANAGER,
        STEP_MASK_IMEX, STEP_UNMASK_IMEX, STEP_SET_CLOCKS, STEP_CDI_REFRESH, STEP_MIG_MODE,
        STEP_PERSISTENCED, STEP_MLX5_CORE, STEP_MLX5_IB, STEP_IB_UMAD,
        STEP_UMAD, STEP_FABRIC_TURN, STEP_MANAGER, STEP_FABRIC,
        STEP_GRIDD, STEP_LICENSE, STEP_HEALTH, STEP_MIG, STEP_LIST, STEP_CLOCKS, STEP_CHANNEL, STEP_CDI,
        STEP_CDI_TURN, STEP_IMEX, STEP_AWAIT_IMEX,
        _STEPS_MAX,
} StepName;
#define AFTER(name) (1ULL << STEP_##name)
_Static_assert(_STEPS_MAX <= 64, "a set of steps is a uint64_t");

typedef struct Step {
        ActionType type;
        const char *target;
        uint64_t after;                         /* AFTER() of its dependencies */
        uint64_t behind;                        /* dependencies that count only if planned */
        bool (*wanted)(const Stack *s);         /* NULL: always */
        void (*fill)(Stack *s, Action *a);
        const char *why;
} Step;

/* In order of dependencies. Independent steps run in parallel. */
static const Step steps[_STEPS_MAX] = {
        [STEP_RESOLVE] = { ACTION_AWAIT_UNIT, "nvidia-driver-resolve.service", .fill = fill_loader,
                .why = "wait while the image chooses its driver" },
        [STEP_COPY_BIN] = { ACTION_AWAIT_UNIT, "nvidia-usr-copy@bin.service", .after = AFTER(RESOLVE),
                .fill = fill_loader, .why = "wait while the image copies driver programs" },
        [STEP_COPY_LIB] = { ACTION_AWAIT_UNIT, "nvidia-usr-copy@lib64.service",
                .after = AFTER(COPY_BIN), .fill = fill_loader,
                .why = "wait while the image copies driver libraries" },
        [STEP_COPY_SHARE] = { ACTION_AWAIT_UNIT, "nvidia-usr-copy@share.service",
                .after = AFTER(COPY_LIB), .fill = fill_loader,
                .why = "wait while the image copies fabric tables" },
        [STEP_SETUP] = { ACTION_AWAIT_UNIT, "nvidia-setup.service", .after = AFTER(COPY_SHARE),
                .fill = fill_loader, .why = "wait while the image installs its driver" },
        [STEP_KMOD] = { ACTION_AWAIT_UNIT, "nvidia-kmod-load.service", .after = AFTER(SETUP),
                .fill = fill_loader, .why = "wait while the image loads its driver" },
        [STEP_LDCACHE] = { ACTION_AWAIT_UNIT, "nvidia-ldcache-update.service",
                .after = AFTER(COPY_SHARE), .fill = fill_loader,
                .why = "wait while the image updates its library cache" },
        [STEP_LOAD] = { ACTION_LOAD_MODULE, "nvidia", .after = AFTER(KMOD), .fill = fill_load,
                .why = "load the driver with the planned options" },
        /* never nvidia_drm (a reset would fail) or nvidia_peermem (EFA) */
        [STEP_UVM] = { ACTION_LOAD_MODULE, "nvidia_uvm", .after = AFTER(LOAD),
                .why = "CUDA unified memory" },
        /* The steps after it open the driver libraries. */
        [STEP_DRIVER] = { ACTION_CHECK_DRIVER, "nvidia", .after = AFTER(UVM) | AFTER(LDCACHE),
                .fill = fill_driver, .why = "check the driver on every GPU" },
        [STEP_NODES] = { ACTION_MAKE_NODES, "/dev/nvidia*", .after = AFTER(DRIVER),
                .why = "make device nodes before nvidia-ctk needs them" },
        [STEP_VERSIONS] = { ACTION_CHECK_VERSIONS, "nvidia", .after = AFTER(DRIVER),
                .wanted = has_programs, .fill = fill_versions,
                .why = "check that versions match the driver" },
        /* Enabling a masked unit fails, so masks come after the image installs its units. A step that unmasks
         * waits for nothing. */
        [STEP_MASK_MANAGER] = { ACTION_MASK_UNIT, MANAGER, .after = AFTER(KMOD), .wanted = lacks_manager },
        [STEP_UNMASK_MANAGER] = { ACTION_UNMASK_UNIT, MANAGER, .wanted = runs_manager,
                .why = "if an earlier run of this boot masked it" },
        [STEP_MASK_IMEX] = { ACTION_MASK_UNIT, IMEX, .after = AFTER(KMOD), .wanted = stack_bars_imex },
        [STEP_UNMASK_IMEX] = { ACTION_UNMASK_UNIT, IMEX, .wanted = stack_runs_imex,
                .why = "if an earlier run of this boot masked it" },
        /* Both open GPUs, which blocks a change of MIG mode (NVIDIA/mig-parted, known issues), as do all
         * steps after MIG. */
        [STEP_SET_CLOCKS] = { ACTION_AWAIT_UNIT, "set-nvidia-clocks.service", .after = AFTER(DRIVER),
                .fill = fill_helper,
                .why = "wait while the image sets GPU clocks" },
        [STEP_CDI_REFRESH] = { ACTION_AWAIT_UNIT, "nvidia-cdi-refresh.service", .after = AFTER(DRIVER),
                .fill = fill_helper,
                .why = "wait while the toolkit writes the CDI file" },
        /* persistenced, fabric manager and nvidia_drm never close them (NVIDIA/gpu-operator#118) */
        [STEP_MIG_MODE] = { ACTION_SET_MIG_MODE, "mig", .after = AFTER(DRIVER), .wanted = resets_for_mig,
                .fill = fill_mig_mode, .why = "change MIG mode before anything uses GPUs" },
        [STEP_PERSISTENCED] = { ACTION_START_UNIT, "nvidia-persistenced.service",
                .after = AFTER(MIG_MODE), .fill = fill_persistenced,
                .why = "keep the GPUs initialised, if installed" },
        [STEP_MLX5_CORE] = { ACTION_LOAD_MODULE, "mlx5_core", .wanted = is_nvlink5,
                .why = "driver for the NVLink switches" },
        [STEP_MLX5_IB] = { ACTION_LOAD_MODULE, "mlx5_ib", .after = AFTER(MLX5_CORE),
                .wanted = is_nvlink5, .why = "driver for the NVLink switches" },
        [STEP_IB_UMAD] = { ACTION_LOAD_MODULE, "ib_umad", .after = AFTER(MLX5_IB),
                .wanted = is_nvlink5,
                .why = "let fabric manager recognise this machine" },
        [STEP_UMAD] = { ACTION_AWAIT_DEVICES, "/dev/infiniband/umad*", .after = AFTER(IB_UMAD),
                .wanted = is_nvlink5, .fill = fill_umad,
                .why = "wait for each path to the NVLink switches" },
        [STEP_FABRIC_TURN] = { ACTION_WRITE_FILE, FABRIC_TURN,
                .after = AFTER(MIG_MODE) | AFTER(VERSIONS) | AFTER(UNMASK_MANAGER) | AFTER(UMAD),
                .wanted = runs_manager, .fill = fill_turn,
                .why = "release the start of fabric manager" },
        [STEP_MANAGER] = { ACTION_START_UNIT, MANAGER, .after = AFTER(FABRIC_TURN),
                .wanted = runs_manager, .fill = fill_manager },
        /* Without persistenced each query would initialise the GPUs again
         * (https://docs.nvidia.com/deploy/driver-persistence/). */
        [STEP_FABRIC] = { ACTION_AWAIT_FABRIC, "fabric", .after = AFTER(PERSISTENCED) | AFTER(MANAGER),
                .wanted = stack_gates_fabric, .fill = fill_fabric, .why = "" },
        [STEP_GRIDD] = { ACTION_START_UNIT, "nvidia-gridd.service", .after = AFTER(DRIVER),
                .wanted = has_gridd, .fill = fill_persistenced,
                .why = "get the licence of each vGPU" },
        [STEP_LICENSE] = { ACTION_AWAIT_LICENSE, "grid", .after = AFTER(GRIDD) | AFTER(PERSISTENCED),
                .wanted = wants_license, .fill = fill_license,
                .why = "wait for the licence that CUDA needs" },
        [STEP_HEALTH] = { ACTION_CHECK_HEALTH, "gpus", .after = AFTER(PERSISTENCED),
                .wanted = stack_looks_at_health, .fill = stack_fill_health },
        [STEP_MIG] = { ACTION_PARTITION_GPUS, "mig",
                .after = AFTER(FABRIC) | AFTER(HEALTH) | AFTER(SET_CLOCKS) |
                         AFTER(CDI_REFRESH),
                .wanted = divides, .fill = fill_mig },
        /* Neither waits for the fabric, like the units of images: awslabs/amazon-eks-ami
         * set-nvidia-clocks.service, NVIDIA/nvidia-container-toolkit deployments/systemd. */
        [STEP_LIST] = { ACTION_LIST_GPUS, "nvidia-smi", .after = AFTER(PERSISTENCED) | AFTER(NODES),
                .behind = AFTER(MIG), .fill = fill_list,
                .why = "list every GPU and make its nodes" },
        [STEP_CLOCKS] = { ACTION_SET_CLOCKS, "clocks", .after = AFTER(PERSISTENCED) | AFTER(SET_CLOCKS),
                .behind = AFTER(MIG), .fill = fill_clocks },
        [STEP_CHANNEL] = { ACTION_MAKE_CHANNEL, CHANNEL, .after = AFTER(DRIVER),
                .wanted = stack_wants_channel, .why = "IMEX channel for memory shared between nodes" },
        /* The file lists the sockets of persistenced and fabric manager if they exist
         * (NVIDIA/nvidia-container-toolkit:internal/discover/ipc.go). The unit of the toolkit writes the same
         * file. */
        [STEP_CDI] = { ACTION_GENERATE_CDI, "/var/run/cdi/nvidia.yaml",
                .after = AFTER(LIST) | AFTER(CHANNEL) | AFTER(PERSISTENCED) | AFTER(MANAGER) |
                         AFTER(CDI_REFRESH),
                .why = "describe the current GPUs to containers" },
        [STEP_CDI_TURN] = { ACTION_WRITE_FILE, CDI_TURN, .after = AFTER(CDI), .fill = fill_turn,
                .why = "release the CDI service of the toolkit" },
        [STEP_IMEX] = { ACTION_START_UNIT, IMEX,
                .after = AFTER(VERSIONS) | AFTER(UNMASK_IMEX) | AFTER(FABRIC) | AFTER(CHANNEL),
                .behind = AFTER(MIG), .wanted = stack_runs_imex, .fill = fill_imex,
                .why = "start IMEX on this host, as configured" },
        [STEP_AWAIT_IMEX] = { ACTION_AWAIT_IMEX, "imex", .after = AFTER(IMEX), .wanted = stack_runs_imex,
                .why = "wait until nvidia-imex-ctl says READY" },
};

/* Reasons that depend on the machine. */
static const char *why(const Stack *s, const Step *step) {
        if (step->why)
                return step->why;
        switch (step->type) {
        case ACTION_MASK_UNIT:
                if (streq(step->target, IMEX))
                        return s->imex == IMEX_OFF
                                       ? "keep IMEX off, as configured"
                                       : "leave IMEX to the DRA driver";
                return stack_has_switches(s) ? "keep fabric manager off, as configured"
                       : stack_is_tray(s)    ? "leave the fabric to the rack manager"
                                       : "no NVSwitch: fabric manager would fail";
        case ACTION_START_UNIT:
                return is_nvlink5(s) ? "start with NVLSM; restart if it failed earlier"
                                     : "start; restart if it failed earlier";
        case ACTION_PARTITION_GPUS:
                return s->want->n_mig > 0 ? "make all configured MIG instances, or none"
                                          : "make all MIG instances of " MIG_DEFAULTS ", or none";
        default:
                return s->want->clocks == CLOCKS_AUTO ? "set clocks as EKS images do"
                                                      : "set clocks as configured";
        }
}

/* A step that is not planned passes its dependencies on, but not to `behind`. */
static void come_after(const Stack *s, Action *a, uint64_t after, uint64_t behind) {
        for (size_t i = 0; i < _STEPS_MAX; i++) {
                if (!((after | behind) >> i & 1))
                        continue;
                if (s->ids[i])
                        action_after(a, s->ids[i]);
                else if (after >> i & 1)
                        come_after(s, a, steps[i].after, steps[i].behind);
        }
}

static void add_step(Stack *s, size_t i) {
        const Step *step = &steps[i];
        Action *a = plan_add(s->plan, step->type, PHASE_DEVICES, NVIDIA_GROUP, step->target, why(s, step));
        a->class = s->class;
        if (step->fill)
                step->fill(s, a);
        come_after(s, a, step->after, step->behind);
        if (!a->after) {
                if (plan_find(s->plan, CENSUS_ID))
                        action_after(a, CENSUS_ID);
                if (plan_find(s->plan, "write-file:" NVIDIA_OPTIONS))
                        action_after(a, "write-file:" NVIDIA_OPTIONS);
        }
        s->ids[i] = xstrdup(a->id);
}

void stack_plan_steps(Stack *s) {
        for (size_t i = 0; i < _STEPS_MAX; i++)
                if (!steps[i].wanted || steps[i].wanted(s))
                        add_step(s, i);
}
