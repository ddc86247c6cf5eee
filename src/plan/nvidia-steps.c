/* SPDX-License-Identifier: Apache-2.0 */
/* The NVIDIA stack, ordered by class: a table of steps with dependencies. Before umad, fabric manager assumes
 * an older machine. Before the MIG instances, CDI fails. Before the fabric, kubelet runs pods that hit CUDA
 * error 802 (https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/). */
#include "plan/devices.h"
#include "base/str.h"

#define MANAGER  "nvidia-fabricmanager.service"
#define IMEX     "nvidia-imex.service"
#define CHANNEL  "/dev/nvidia-caps-imex-channels/channel0"

void stack_decide(Stack *s) {
        const Gpus *gpus = &s->host->gpus;
        s->nvlink5 = s->class == GPU_CLASS_NVLINK5;
        s->switches = s->nvlink5 || s->class == GPU_CLASS_NVSWITCH;
        s->tray = s->class == GPU_CLASS_TRAY;
        s->manager = s->switches && s->want->fabric_manager != FABRIC_MANAGER_OFF;
        s->no_manager = !s->manager;
        /* newer GPUs do (conf/gpus.csv, fabric), and those not in the table */
        s->registers = s->tray || (s->switches && (!gpus->model || gpus->model->fabric));
        s->gate = s->registers && s->want->fabric_gate != FABRIC_GATE_OFF;
        s->runs_imex = s->imex == IMEX_HOST;
        s->bars_imex = s->imex == IMEX_DRA || s->imex == IMEX_OFF;
        /* on trays the DRA driver daemon runs the program in the image */
        s->uses_imex = s->runs_imex || (s->tray && s->imex != IMEX_OFF);
        s->channel = s->runs_imex || s->want->imex_channel0;
        s->programs = s->manager || s->uses_imex;
        s->health = s->want->health != HEALTH_OFF || s->want->gpu_direct == GPU_DIRECT_ON;
        /* a vGPU works for a day without a licence */
        s->gridd = gpus->part && gpus->license_daemon;
        s->license = gpus->part && s->want->health != HEALTH_OFF &&
                     (gpus->license_daemon || s->want->health == HEALTH_REQUIRE);
}

static void fill_driver(Stack *s, Action *a) {
        a->device.parameters = strv_copy(s->parameters);
        if (!s->parameters)
                return;
        Text list = {};
        for (char **word = s->parameters; *word; word++)
                text_add(&list, "%s%.*s", list.size > 0 ? ", " : "", (int)strcspn(*word, "?"), *word);
        RENEW(a->why, xasprintf("check the driver and its options: %s", list.data));
        text_done(&list);
}

static void fill_versions(Stack *s, Action *a) {
        if (s->manager && requirement_find("driver", COMPONENT_FABRICMANAGER)->fails)
                strv_add(&a->words, "nv-fabricmanager");
        if (s->manager && s->nvlink5)
                strv_add(&a->words, "nvlsm");
        if (s->uses_imex && requirement_find("driver", COMPONENT_IMEX)->fails)
                strv_add(&a->words, "nvidia-imex");
        a->with = strv_join(a->words, ", ");
}

static void fill_umad(Stack *s, Action *a) {
        a->device.count =
                s->host->gpus.model && s->host->gpus.model->switches > 0 ? s->host->gpus.model->switches : 1;
        a->with = xasprintf("x %u", a->device.count);
}

static void fill_turn(_unused_ Stack *s, Action *a) {
        action_content(a, "", 0);
        a->file.mode = 0644;
}

static void fill_fabric(Stack *s, Action *a) {
        a->lenient = s->want->fabric_gate == FABRIC_GATE_WARN;
        a->deadline_usec = s->want->fabric_timeout_usec;
        RENEW(a->why, xasprintf("%s unless %s fabric forms within %llu s",
                                a->lenient ? "warn" : "fail", s->tray ? "rack" : "NVLink",
                                (unsigned long long)(a->deadline_usec / USEC_PER_SEC)));
}

/* Layouts name GPUs by index, so with one missing they would hit wrong ones. */
static void fill_mig(Stack *s, Action *a) {
        a->device.count = s->gpus;
        a->device.layouts = TAKE_PTR(s->layouts);
        a->device.n_layouts = s->n_layouts;
        a->with = xstrdup(s->mig);
        s->n_layouts = 0;
}

/* Waits for the units of the image that open the GPUs; other steps do not. */
static void fill_mig_mode(Stack *s, Action *a) {
        a->device.count = s->gpus;
        a->device.layouts = xcalloc(s->n_layouts, sizeof *a->device.layouts);
        for (; a->device.n_layouts < s->n_layouts; a->device.n_layouts++) {
                const MigLayout *l = &s->layouts[a->device.n_layouts];
                a->device.layouts[a->device.n_layouts] =
                        (MigLayout){ .gpu = l->gpu, .profiles = strv_copy(l->profiles) };
        }
        action_after(a, "await-unit:set-nvidia-clocks.service");
        action_after(a, "await-unit:nvidia-cdi-refresh.service");
}

static void fill_license(Stack *s, Action *a) {
        a->lenient = s->want->health != HEALTH_REQUIRE;
}

static void fill_clocks(Stack *s, Action *a) {
        a->with = xstrdup(s->want->clocks == CLOCKS_DEFAULT ? "default" : "max");
        a->lenient = s->want->clocks == CLOCKS_AUTO;    /* not documented for newer GPUs */
}

static bool is_read_by_imex(const Action *a, _unused_ const char *unit) {
        return streq(a->id, "write-file:" IMEX_CONFIG) || streq(a->id, "write-file:" IMEX_NODES);
}

static void fill_imex(Stack *s, Action *a) {
        action_reads(s->plan, a, is_read_by_imex);
}

typedef enum StepName {
        STEP_RESOLVE, STEP_COPY_BIN, STEP_COPY_LIB, STEP_COPY_SHARE, STEP_SETUP, STEP_KMOD, STEP_LDCACHE,
        STEP_LOAD, STEP_UVM, STEP_DRIVER, STEP_NODES, STEP_VERSIONS, STEP_MASK_MANAGER, STEP_UNMASK_MANAGER,
        STEP_MASK_IMEX, STEP_UNMASK_IMEX, STEP_SET_CLOCKS, STEP_CDI_REFRESH, STEP_MIG_MODE,
        STEP_PERSISTENCED, STEP_MLX5_CORE, STEP_MLX5_IB, STEP_IB_UMAD,
        STEP_UMAD, STEP_FABRIC_TURN, STEP_MANAGER, STEP_FABRIC,
        STEP_GRIDD, STEP_LICENSE, STEP_HEALTH, STEP_PROVE, STEP_MIG, STEP_LIST, STEP_CLOCKS, STEP_CHANNEL,
        STEP_CDI, STEP_CDI_TURN, STEP_IMEX, STEP_AWAIT_IMEX,
        _STEPS_MAX,
} StepName;
#define AFTER(name) (1ULL << STEP_##name)
#define FLAG(name) _Generic(((Stack *)0)->name, bool: offsetof(Stack, name))
_Static_assert(_STEPS_MAX <= 64, "a set of steps is a uint64_t");

typedef struct Step {
        ActionType type;
        const char *target;
        uint64_t after;                         /* AFTER() of its dependencies */
        uint64_t behind;                        /* dependencies that count only if planned */
        size_t wanted;                          /* FLAG() of the stack; 0: always */
        uint16_t seconds;                       /* 0: the deadline of the type */
        bool lenient, optional, retry;          /* as in Action */
        bool counted, seen;                     /* needs the GPU count; names the GPUs */
        bool reload;                            /* after daemon-reload */
        void (*fill)(Stack *s, Action *a);
        char why[47];                           /* "": why() */
} Step;

/* In order of dependencies. Independent steps run in parallel. */
static const Step steps[_STEPS_MAX] = {
        /* A failure of these units is a warning: later steps find out if the driver is there. */
        [STEP_RESOLVE] = { ACTION_AWAIT_UNIT, "nvidia-driver-resolve.service", .lenient = true,
                .why = "wait while the image chooses its driver" },
        [STEP_COPY_BIN] = { ACTION_AWAIT_UNIT, "nvidia-usr-copy@bin.service", .after = AFTER(RESOLVE),
                .lenient = true, .why = "wait while the image copies driver programs" },
        [STEP_COPY_LIB] = { ACTION_AWAIT_UNIT, "nvidia-usr-copy@lib64.service",
                .after = AFTER(COPY_BIN), .lenient = true,
                .why = "wait while the image copies driver libraries" },
        [STEP_COPY_SHARE] = { ACTION_AWAIT_UNIT, "nvidia-usr-copy@share.service",
                .after = AFTER(COPY_LIB), .lenient = true,
                .why = "wait while the image copies NVSwitch files" },
        [STEP_SETUP] = { ACTION_AWAIT_UNIT, "nvidia-setup.service", .after = AFTER(COPY_SHARE),
                .lenient = true, .why = "wait while the image installs its driver" },
        [STEP_KMOD] = { ACTION_AWAIT_UNIT, "nvidia-kmod-load.service", .after = AFTER(SETUP),
                .lenient = true, .why = "wait while the image loads its driver" },
        [STEP_LDCACHE] = { ACTION_AWAIT_UNIT, "nvidia-ldcache-update.service",
                .after = AFTER(COPY_SHARE), .lenient = true,
                .why = "wait while the image updates its library cache" },
        /* after three daemons with 90 s each to stop */
        [STEP_LOAD] = { ACTION_LOAD_MODULE, "nvidia", .after = AFTER(KMOD), .seconds = 300,
                .why = "load the driver; reload if options changed" },
        /* never nvidia_drm (a reset would fail) or nvidia_peermem (EFA) */
        [STEP_UVM] = { ACTION_LOAD_MODULE, "nvidia_uvm", .after = AFTER(LOAD),
                .why = "CUDA unified memory" },
        /* The steps after it open the driver libraries. */
        [STEP_DRIVER] = { ACTION_CHECK_DRIVER, "nvidia", .after = AFTER(UVM) | AFTER(LDCACHE),
                .fill = fill_driver, .seen = true, .why = "check the driver on every GPU" },
        [STEP_NODES] = { ACTION_MAKE_NODES, "/dev/nvidia*", .after = AFTER(DRIVER),
                .why = "make device files before nvidia-ctk needs them" },
        [STEP_VERSIONS] = { ACTION_CHECK_VERSIONS, "nvidia", .after = AFTER(DRIVER),
                .wanted = FLAG(programs), .fill = fill_versions,
                .why = "check that program and driver versions match" },
        /* Enabling a masked unit fails, so the image installs its units first. */
        [STEP_MASK_MANAGER] = { ACTION_MASK_UNIT, MANAGER, .after = AFTER(KMOD), .wanted = FLAG(no_manager) },
        [STEP_UNMASK_MANAGER] = { ACTION_UNMASK_UNIT, MANAGER, .wanted = FLAG(manager),
                .why = "undo a mask from an earlier run" },
        [STEP_MASK_IMEX] = { ACTION_MASK_UNIT, IMEX, .after = AFTER(KMOD), .wanted = FLAG(bars_imex) },
        [STEP_UNMASK_IMEX] = { ACTION_UNMASK_UNIT, IMEX, .wanted = FLAG(runs_imex),
                .why = "undo a mask from an earlier run" },
        /* Both open GPUs, which blocks a change of MIG mode (NVIDIA/mig-parted, known issues), as do all
         * steps after MIG. A later step does what a unit did not do in its 60 s. */
        [STEP_SET_CLOCKS] = { ACTION_AWAIT_UNIT, "set-nvidia-clocks.service", .after = AFTER(DRIVER),
                .seconds = 60, .optional = true, .lenient = true,
                .why = "wait while the image sets GPU clocks" },
        [STEP_CDI_REFRESH] = { ACTION_AWAIT_UNIT, "nvidia-cdi-refresh.service", .after = AFTER(DRIVER),
                .seconds = 60, .optional = true, .lenient = true,
                .why = "wait while nvidia-cdi-refresh uses the GPUs" },
        /* persistenced, fabric manager and nvidia_drm never close them (NVIDIA/gpu-operator#118) */
        [STEP_MIG_MODE] = { ACTION_SET_MIG_MODE, "mig", .after = AFTER(DRIVER), .wanted = FLAG(mig_resets),
                .fill = fill_mig_mode, .seen = true, .why = "change MIG mode before anything uses GPUs" },
        [STEP_PERSISTENCED] = { ACTION_START_UNIT, "nvidia-persistenced.service",
                .after = AFTER(MIG_MODE), .optional = true, .lenient = true,
                .why = "if installed: keep GPUs initialised" },
        [STEP_MLX5_CORE] = { ACTION_LOAD_MODULE, "mlx5_core", .wanted = FLAG(nvlink5),
                .why = "driver for the NVLink switches" },
        [STEP_MLX5_IB] = { ACTION_LOAD_MODULE, "mlx5_ib", .after = AFTER(MLX5_CORE),
                .wanted = FLAG(nvlink5), .why = "driver for the NVLink switches" },
        [STEP_IB_UMAD] = { ACTION_LOAD_MODULE, "ib_umad", .after = AFTER(MLX5_IB),
                .wanted = FLAG(nvlink5),
                .why = "let fabric manager reach the NVLink switches" },
        [STEP_UMAD] = { ACTION_AWAIT_DEVICES, "/dev/infiniband/umad*", .after = AFTER(IB_UMAD),
                .wanted = FLAG(nvlink5), .fill = fill_umad,
                .why = "wait for each path to the NVLink switches" },
        [STEP_FABRIC_TURN] = { ACTION_WRITE_FILE, FABRIC_TURN,
                .after = AFTER(MIG_MODE) | AFTER(VERSIONS) | AFTER(UNMASK_MANAGER) | AFTER(UMAD),
                .wanted = FLAG(manager), .fill = fill_turn,
                .why = "let fabric manager start" },
        /* It exits after 30 s without GPUs and restarts. No unit.inputs: a restart kills CUDA jobs. */
        [STEP_MANAGER] = { ACTION_START_UNIT, MANAGER, .after = AFTER(FABRIC_TURN),
                .wanted = FLAG(manager), .retry = true, .seconds = 180, .reload = true },
        /* Without persistenced each query would initialise the GPUs again
         * (https://docs.nvidia.com/deploy/driver-persistence/). */
        [STEP_FABRIC] = { ACTION_AWAIT_FABRIC, "fabric", .after = AFTER(PERSISTENCED) | AFTER(MANAGER),
                .wanted = FLAG(gate), .fill = fill_fabric, .counted = true, .seen = true },
        [STEP_GRIDD] = { ACTION_START_UNIT, "nvidia-gridd.service", .after = AFTER(DRIVER),
                .wanted = FLAG(gridd), .optional = true, .lenient = true,
                .why = "get a licence for each vGPU" },
        [STEP_LICENSE] = { ACTION_AWAIT_LICENSE, "grid", .after = AFTER(GRIDD) | AFTER(PERSISTENCED),
                .wanted = FLAG(license), .fill = fill_license, .counted = true, .seen = true,
                .why = "wait for the licence that CUDA needs" },
        [STEP_HEALTH] = { ACTION_CHECK_HEALTH, "gpus", .after = AFTER(PERSISTENCED),
                .wanted = FLAG(health), .fill = stack_fill_health },
        /* The test wants the GPUs for itself. */
        [STEP_PROVE] = { ACTION_PROVE_GPUS, "gpus",
                .after = AFTER(FABRIC) | AFTER(HEALTH) | AFTER(LICENSE) | AFTER(NODES) | AFTER(SET_CLOCKS) |
                         AFTER(CDI_REFRESH),
                .wanted = FLAG(proves), .fill = stack_fill_prove, .seen = true,
                .why = "test each GPU before kubelet starts" },
        [STEP_MIG] = { ACTION_PARTITION_GPUS, "mig",
                .after = AFTER(FABRIC) | AFTER(HEALTH) | AFTER(SET_CLOCKS) |
                         AFTER(CDI_REFRESH),
                .wanted = FLAG(divides), .fill = fill_mig, .seen = true },
        /* Like image units, neither waits for the fabric: awslabs/amazon-eks-ami set-nvidia-clocks.service,
         * NVIDIA/nvidia-container-toolkit deployments/systemd. */
        [STEP_LIST] = { ACTION_LIST_GPUS, "nvidia-smi", .after = AFTER(PERSISTENCED) | AFTER(NODES),
                .behind = AFTER(MIG) | AFTER(PROVE), .counted = true,
                .why = "list every GPU and make its device files" },
        [STEP_CLOCKS] = { ACTION_SET_CLOCKS, "clocks", .after = AFTER(PERSISTENCED) | AFTER(SET_CLOCKS),
                .behind = AFTER(MIG) | AFTER(PROVE), .fill = fill_clocks },
        [STEP_CHANNEL] = { ACTION_MAKE_CHANNEL, CHANNEL, .after = AFTER(DRIVER),
                .wanted = FLAG(channel), .why = "IMEX channel for memory shared between nodes" },
        /* The file lists sockets of persistenced and fabric manager
         * (NVIDIA/nvidia-container-toolkit:internal/discover/ipc.go). The unit of the toolkit writes it,
         * too. */
        [STEP_CDI] = { ACTION_GENERATE_CDI, "/var/run/cdi/nvidia.yaml",
                .after = AFTER(LIST) | AFTER(CHANNEL) | AFTER(PERSISTENCED) | AFTER(MANAGER) |
                         AFTER(CDI_REFRESH),
                .why = "describe current GPUs to the container runtime" },
        [STEP_CDI_TURN] = { ACTION_WRITE_FILE, CDI_TURN, .after = AFTER(CDI), .fill = fill_turn,
                .why = "let nvidia-cdi-refresh update the CDI file" },
        [STEP_IMEX] = { ACTION_START_UNIT, IMEX,
                .after = AFTER(VERSIONS) | AFTER(UNMASK_IMEX) | AFTER(FABRIC) | AFTER(CHANNEL),
                .behind = AFTER(MIG) | AFTER(PROVE), .wanted = FLAG(runs_imex), .fill = fill_imex,
                .reload = true,
                .why = "start IMEX on this host, as configured" },
        [STEP_AWAIT_IMEX] = { ACTION_AWAIT_IMEX, "imex", .after = AFTER(IMEX), .wanted = FLAG(runs_imex),
                .why = "wait until nvidia-imex-ctl says READY" },
};

/* Reasons that depend on the machine. */
static const char *why(const Stack *s, const Step *step) {
        if (*step->why)
                return step->why;
        switch (step->type) {
        case ACTION_MASK_UNIT:
                if (streq(step->target, IMEX))
                        return s->imex == IMEX_OFF
                                       ? "keep IMEX off, as configured"
                                       : "leave IMEX to the DRA driver";
                return s->switches ? "keep fabric manager off, as configured"
                       : s->tray    ? "leave fabric management to the rack"
                                       : "no NVSwitch: fabric manager would fail";
        case ACTION_START_UNIT:
                return s->nvlink5 ? "start with NVLSM; restart after an earlier failure"
                                     : "start; restart after an earlier failure";
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
        a->lenient = step->lenient;
        a->optional = step->optional;
        a->retry = step->retry;
        if (step->seconds > 0)
                a->deadline_usec = step->seconds * USEC_PER_SEC;
        if (step->counted) {
                a->device.count = s->gpus;
                a->with = xasprintf("%u GPU%s", s->gpus, s->gpus == 1 ? "" : "s");
        }
        if (step->seen)
                devices_seen(a, s->host, pci_is_gpu);
        if (step->fill)
                step->fill(s, a);
        if (step->reload)
                action_after(a, PLAN_RELOAD_ID);
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
        const GpuModel *model = s->host->gpus.model;
        s->divides = s->n_layouts > 0;
        s->mig_resets = s->divides && model && model->mig_resets;
        s->proves = s->want->prove != PROVE_OFF && !s->divides;
        for (size_t i = 0; i < _STEPS_MAX; i++)
                if (steps[i].wanted == 0 || *(const bool *)((const char *)s + steps[i].wanted))
                        add_step(s, i);
}
