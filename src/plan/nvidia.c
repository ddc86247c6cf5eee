/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's stack in the order that the machine's class wants: one table of steps, each behind the one before
 * it. Another order breaks: fabric manager before umad takes the machine for an older one, CDI before the
 * instances of MIG fails, kubelet before the fabric gives pods that end in CUDA error 802
 * (https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/). */
#include "plan/devices.h"
#include "base/str.h"
#include <errno.h>

#define GROUP    "accelerator"
#define MANAGER  "nvidia-fabricmanager.service"
#define IMEX     "nvidia-imex.service"
#define CHANNEL  "/dev/nvidia-caps-imex-channels/channel0"
#define CHANNELS 2048                   /* the driver's default (NVIDIA/open-gpu-kernel-modules: nv-reg.h) */
#define MANAGER_TIMEOUT (180 * USEC_PER_SEC)    /* it gives up after 30 s where GPUs are
                                                 * not there yet, and is started again */
#define HELPER_TIMEOUT  (60 * USEC_PER_SEC)     /* nvidia-smi, a few times */

typedef struct Stack {
        Plan *plan;
        const Nvidia *want;
        const Host *host;
        GpuClass class;
        unsigned gpus;                  /* that there must be */
        ImexMode imex;                  /* IMEX_AUTO: left as the image has it */
        bool manager;                   /* fabric manager runs on this host */
        MigLayout *layouts; size_t n_layouts;   /* given away to its step */
        char *mig;                      /* the same for a reader, or NULL */
        char **options, **parameters;   /* for the module, and what must be so where it is loaded already */
        char *last;                     /* id of the step before */
} Stack;

static void stack_done(Stack *s) {
        for (size_t i = 0; i < s->n_layouts; i++)
                strv_free(s->layouts[i].profiles);
        free(s->layouts);
        free(s->mig);
        strv_free(s->options);
        strv_free(s->parameters);
        free(s->last);
}

/* ---- what the class decides ---- */

static bool has_switches(const Stack *s) {
        return s->class == GPU_CLASS_NVSWITCH || s->class == GPU_CLASS_NVLINK5;
}

static bool is_tray(const Stack *s) {
        return s->class == GPU_CLASS_TRAY;
}

/* From Hopper on GPUs register with the fabric, and NVML says so; before, a fabric manager that is up is all
 * there is to see. */
static bool registers(const Stack *s) {
        const char *generation = s->host->gpus.model ? s->host->gpus.model->generation : NULL;
        bool older = generation && (streq(generation, "volta") || streq(generation, "turing") ||
                                    streq(generation, "ampere"));
        return is_tray(s) || (has_switches(s) && !older);
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

static bool gates_fabric(const Stack *s) {
        return registers(s) && s->want->fabric_gate != FABRIC_GATE_OFF;
}

static bool divides(const Stack *s) {
        return s->n_layouts > 0;
}

static bool runs_imex(const Stack *s) {
        return s->imex == IMEX_HOST;
}

static bool bars_imex(const Stack *s) {
        return s->imex == IMEX_DRA || s->imex == IMEX_OFF;
}

static bool wants_channel(const Stack *s) {
        return runs_imex(s) || s->want->imex_channel0;
}

/* On trays also the DRA driver's daemon is the image's program. */
static bool uses_imex(const Stack *s) {
        return runs_imex(s) || (is_tray(s) && s->imex != IMEX_OFF);
}

static bool has_programs(const Stack *s) {
        return s->manager || uses_imex(s);
}

/* ---- what a step needs beside its target ---- */

static void put_count(const Stack *s, Action *a) {
        a->device.count = s->gpus;
        a->with = xasprintf("%u GPU%s", s->gpus, s->gpus == 1 ? "" : "s");
}

/* One that failed is told of; whether the driver is there all the same, the next steps find out. */
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
        free(a->why);
        a->why = xasprintf("at every GPU, and loaded with %s", list.data);
        text_done(&list);
}

static void fill_versions(Stack *s, Action *a) {
        if (s->manager)
                strv_add(&a->programs, "nv-fabricmanager");
        if (s->manager && is_nvlink5(s))
                strv_add(&a->programs, "nvlsm");
        if (uses_imex(s))
                strv_add(&a->programs, "nvidia-imex");
        a->with = strv_join(a->programs, ", ");
}

/* It keeps GPUs initialised that nobody uses; without it the first user of each waits a moment. */
static void fill_persistenced(_unused_ Stack *s, Action *a) {
        a->optional = a->lenient = true;
}

static void fill_umad(Stack *s, Action *a) {
        a->device.count =
                s->host->gpus.model && s->host->gpus.model->switches > 0 ? s->host->gpus.model->switches : 1;
        a->with = xasprintf("x %u", a->device.count);
}

/* No file of this plan is among its inputs: it would be restarted when one changes, and CUDA jobs die with
 * it. */
static void fill_manager(_unused_ Stack *s, Action *a) {
        a->retry = true;
        a->deadline_usec = MANAGER_TIMEOUT;
        action_after(a, PLAN_RELOAD_ID);
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
        free(a->why);
        a->why = xasprintf("%s within %llu s%s",
                           is_tray(s) ? "the rack's manager lets every GPU join" : "every GPU joins",
                           (unsigned long long)(a->deadline_usec / USEC_PER_SEC),
                           a->lenient ? "; if not, the gate only warns" : ", or CUDA fails with 802");
}

/* Layouts name GPUs by their place among all: with one missing the others would be taken for their
 * neighbours. */
static void fill_mig(Stack *s, Action *a) {
        a->device.count = s->gpus;
        devices_seen(a, s->host, pci_is_gpu);
        a->device.layouts = TAKE_PTR(s->layouts);
        a->device.n_layouts = s->n_layouts;
        a->with = xstrdup(s->mig);
        s->n_layouts = 0;
}

static void fill_list(Stack *s, Action *a) {
        put_count(s, a);
}

static void fill_clocks(Stack *s, Action *a) {
        a->with = xstrdup(s->want->clocks == CLOCKS_DEFAULT ? "default" : "max");
        a->lenient = s->want->clocks == CLOCKS_AUTO;    /* what newer GPUs make of it is not documented */
}

/* So long that nvidia-smi has come to an end, and not so long that one which never does would be noticed
 * late. What the unit did not do, a later step does, or says why not. One that comes behind this run is not
 * waited for. */
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

typedef struct Step {
        ActionType type;
        const char *target;
        bool (*wanted)(const Stack *s);         /* NULL: on every machine that has NVIDIA GPUs */
        void (*fill)(Stack *s, Action *a);
        const char *why;
} Step;

static const Step steps[] = {
        { ACTION_AWAIT_UNIT, "nvidia-driver-resolve.service", .fill = fill_loader,
          .why = "if the image chooses its driver at boot" },
        { ACTION_AWAIT_UNIT, "nvidia-usr-copy@bin.service", .fill = fill_loader,
          .why = "if the image brings the driver's programs at boot" },
        { ACTION_AWAIT_UNIT, "nvidia-usr-copy@lib64.service", .fill = fill_loader,
          .why = "if the image brings the driver's libraries at boot" },
        { ACTION_AWAIT_UNIT, "nvidia-usr-copy@share.service", .fill = fill_loader,
          .why = "if the image brings fabric manager's tables at boot" },
        { ACTION_AWAIT_UNIT, "nvidia-setup.service", .fill = fill_loader,
          .why = "if the image installs its driver at boot" },
        { ACTION_AWAIT_UNIT, "nvidia-kmod-load.service", .fill = fill_loader,
          .why = "if the image loads its driver by itself" },
        { ACTION_AWAIT_UNIT, "nvidia-ldcache-update.service", .fill = fill_loader,
          .why = "if the image makes its libraries known at boot, as nvidia-ctk finds them" },
        { ACTION_LOAD_MODULE, "nvidia", .why = "the driver, with the options of this plan" },
        /* never nvidia_drm (a reset would fail) or nvidia_peermem (EFA) */
        { ACTION_LOAD_MODULE, "nvidia_uvm", .why = "CUDA's unified memory" },
        { ACTION_CHECK_DRIVER, "nvidia", .fill = fill_driver, .why = "loaded, and at every GPU" },
        { ACTION_CHECK_VERSIONS, "nvidia", .wanted = has_programs, .fill = fill_versions,
          .why = "of the driver's own version, or they would give up" },
        { ACTION_MASK_UNIT, MANAGER, .wanted = lacks_manager },
        { ACTION_UNMASK_UNIT, MANAGER, .wanted = runs_manager,
          .why = "if an earlier run of this boot masked it" },
        { ACTION_MASK_UNIT, IMEX, .wanted = bars_imex },
        { ACTION_UNMASK_UNIT, IMEX, .wanted = runs_imex, .why = "if an earlier run of this boot masked it" },
        { ACTION_START_UNIT, "nvidia-persistenced.service", .fill = fill_persistenced,
          .why = "keeps the GPUs initialised, if the image has it" },
        { ACTION_LOAD_MODULE, "mlx5_core", .wanted = is_nvlink5, .why = "the way to the NVLink switches" },
        { ACTION_LOAD_MODULE, "mlx5_ib", .wanted = is_nvlink5, .why = "the way to the NVLink switches" },
        { ACTION_LOAD_MODULE, "ib_umad", .wanted = is_nvlink5,
          .why = "without it fabric manager takes this for an older machine" },
        { ACTION_AWAIT_DEVICES, "/dev/infiniband/umad*", .wanted = is_nvlink5, .fill = fill_umad,
          .why = "one for each way to the switches, before fabric manager looks" },
        { ACTION_WRITE_FILE, FABRIC_TURN, .wanted = runs_manager, .fill = fill_turn,
          .why = "what fabric manager waits for is there" },
        { ACTION_START_UNIT, MANAGER, .wanted = runs_manager, .fill = fill_manager },
        { ACTION_AWAIT_FABRIC, "fabric", .wanted = gates_fabric, .fill = fill_fabric,
          .why = "every GPU joins" },
        /* Both hold GPUs, whose MIG mode cannot be changed then: NVIDIA/mig-parted, known issues. */
        { ACTION_AWAIT_UNIT, "set-nvidia-clocks.service", .fill = fill_helper,
          .why = "if the image sets clocks by itself; it holds the GPUs meanwhile" },
        { ACTION_AWAIT_UNIT, "nvidia-cdi-refresh.service", .fill = fill_helper,
          .why = "if the toolkit writes the CDI file by itself; it holds the GPUs meanwhile" },
        { ACTION_PARTITION_GPUS, "mig", .wanted = divides, .fill = fill_mig },
        { ACTION_LIST_GPUS, "nvidia-smi", .fill = fill_list,
          .why = "every GPU answers, and the device nodes of instances are made" },
        { ACTION_SET_CLOCKS, "clocks", .fill = fill_clocks },
        { ACTION_MAKE_CHANNEL, CHANNEL, .wanted = wants_channel,
          .why = "what pods share memory between nodes through" },
        { ACTION_GENERATE_CDI, "/var/run/cdi/nvidia.yaml",
          .why = "what containers are given of the GPUs, as they now are" },
        { ACTION_WRITE_FILE, CDI_TURN, .fill = fill_turn,
          .why = "what the toolkit writes there by itself would now be the same" },
        { ACTION_START_UNIT, IMEX, .wanted = runs_imex, .fill = fill_imex,
          .why = "the configuration wants it on this host" },
        { ACTION_AWAIT_IMEX, "imex", .wanted = runs_imex, .why = "nvidia-imex-ctl says READY" },
};

/* Where the reason is another on another machine. */
static const char *why(const Stack *s, const Step *step) {
        if (step->why)
                return step->why;
        switch (step->type) {
        case ACTION_MASK_UNIT:
                if (streq(step->target, IMEX))
                        return s->imex == IMEX_OFF
                                       ? "nothing here shares memory between nodes"
                                       : "the DRA driver brings its own, and the GPUs take only one";
                return has_switches(s) ? "the configuration says so"
                       : is_tray(s)    ? "the switches are the rack's, and so is their manager"
                                       : "no NVSwitch here: it would only fail";
        case ACTION_START_UNIT:
                return is_nvlink5(s) ? "with NVLSM, which it starts itself; again if it came too early"
                                     : "again if it came too early";
        case ACTION_PARTITION_GPUS:
                return s->want->n_mig > 0 ? "as asked for, all or nothing"
                                          : "as " MIG_DEFAULTS " asks for, all or nothing";
        default:
                return s->want->clocks == CLOCKS_AUTO ? "as EKS's images set them; a failure is only told"
                                                      : "as asked for";
        }
}

static void add_step(Stack *s, const Step *step) {
        Action *a = plan_add(s->plan, step->type, PHASE_RUN, GROUP, step->target, why(s, step));
        a->class = s->class;
        if (step->fill)
                step->fill(s, a);
        if (s->last)
                action_after(a, s->last);
        free(s->last);
        s->last = xstrdup(a->id);
}

/* ---- options of the module ---- */

/* What is checked of an option where the module is loaded already. */
typedef enum Must {
        MUST_NOTHING,
        /* the driver may be too old to know it */
        MUST_IF_KNOWN,
        MUST_BE_SO
} Must;

static void add_option(Stack *s, Must must, const char *name, const char *value) {
        strv_push(&s->options, xasprintf("NVreg_%s=%s", name, value));
        if (must != MUST_NOTHING)
                strv_push(&s->parameters,
                          xasprintf("%s=%s%s", name, value, must == MUST_IF_KNOWN ? "?" : ""));
}

static void choose_memory(Stack *s) {
        bool coherent = is_tray(s) || (s->host->gpus.model && s->host->gpus.model->coherent);
        if (coherent)           /* or kubelet would count the GPUs' memory as its own */
                add_option(s, s->want->memory == MEMORY_AUTO ? MUST_IF_KNOWN : MUST_BE_SO,
                           "CoherentGPUMemoryMode", s->want->memory == MEMORY_NUMA ? "numa" : "driver");
        else if (s->want->memory != MEMORY_AUTO)
                diag_warn_at(&s->plan->warnings, "no-effect", NULL, NVIDIA_PATH ".memoryMode",
                             "has no effect here: no CPU shares memory with these GPUs");
}

/* Channel 0 that the driver makes by itself gets in the way of the DRA driver's own, so on trays it is said
 * that it shall not. */
static void choose_channels(Stack *s) {
        _cleanup_(freep) char *count = xasprintf("%u", s->want->imex_channels);
        if (is_tray(s) || s->want->imex_channels != CHANNELS)
                add_option(s, s->want->imex_channels == CHANNELS ? MUST_IF_KNOWN : MUST_BE_SO,
                           "ImexChannelCount", count);
        /* one that is missing is made later, so it need not be so already */
        if (is_tray(s) || wants_channel(s))
                add_option(s, wants_channel(s) ? MUST_NOTHING : MUST_IF_KNOWN, "CreateImexChannel0",
                           wants_channel(s) ? "1" : "0");
}

/* The open module has no GSP to switch off and ignores it (NVIDIA/open-gpu-kernel-modules#820). */
static void choose_firmware(Stack *s) {
        if (s->host->gpus.model && s->host->gpus.model->no_gsp)
                add_option(s, MUST_NOTHING, "EnableGpuFirmware", "0");
}

static void plan_options(Stack *s) {
        choose_memory(s);
        choose_channels(s);
        choose_firmware(s);
        if (!s->options)
                return;
        _cleanup_(freep) char *list = strv_join(s->options, " "),
                              *text = xasprintf("# Written by nodestrap from "
                                                "spec.accelerator.nvidia.\noptions nvidia %s\n",
                                                list);
        Action *file = plan_file(s->plan, PHASE_CONFIG, GROUP, NVIDIA_OPTIONS,
                                 "the driver's options, before it is loaded", text, 0644);
        s->last = xstrdup(file->id);
}

/* ---- contradictions ---- */

static int check_manager(const Stack *s, Diag *diag) {
        if (s->want->fabric_manager == FABRIC_MANAGER_ON && !has_switches(s))
                return diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, NVIDIA_PATH ".fabric.manager",
                                     "is on, and this machine (class %s) has no NVSwitch of its own: "
                                     "fabric manager would only fail here; leave it at auto",
                                     gpu_class_to_string(s->class));
        if (s->want->fabric_manager == FABRIC_MANAGER_OFF && gates_fabric(s) && has_switches(s) &&
            s->want->fabric_gate == FABRIC_GATE_REQUIRE)
                diag_warn_at(&s->plan->warnings, "fabric-gate", NULL, NVIDIA_PATH ".fabric.gate",
                             "kubelet waits for a fabric that nothing on this host brings up, since manager "
                             "is off; where fabric manager runs in a pod, set gate: off or warn");
        return 0;
}

static void warn_of_imex(const Stack *s) {
        if (!is_tray(s) && (s->want->imex == IMEX_HOST || s->want->imex == IMEX_DRA))
                diag_warn_at(&s->plan->warnings, "imex-without-domain", NULL, NVIDIA_PATH ".imex.mode",
                             "is %s, and no NVLink of this machine (class %s) leads to another one",
                             imex_mode_to_string(s->want->imex), gpu_class_to_string(s->class));
        if (s->want->imex != IMEX_HOST && s->want->imex_nodes)
                diag_warn_at(&s->plan->warnings, "no-effect", NULL, NVIDIA_PATH ".imex.nodes",
                             "has no effect without mode host");
}

static bool asks_for_something(const Nvidia *n) {
        return n->n_mig > 0 || n->imex == IMEX_HOST || n->imex == IMEX_DRA ||
               n->fabric_manager == FABRIC_MANAGER_ON || n->clocks != CLOCKS_AUTO;
}

/* ---- the whole ---- */

/* The image's own units do as they like, or a pod brings all of it, for which kubelet must run. */
static void plan_hands_off(Plan *plan, const Config *config, unsigned gpus) {
        const char *are = gpus == 1 ? " is" : "s are",
                   *more = asks_for_something(&config->nvidia) ? "; what else is set there has no effect"
                                                               : "";
        if (config->nvidia.mode == NVIDIA_OFF)
                diag_warn_at(&plan->warnings, "accelerator", NULL, NVIDIA_PATH ".mode",
                             "is off: %u NVIDIA GPU%s left to the image's own units, and kubelet does not "
                             "wait for them%s",
                             gpus, are, more);
        else
                diag_warn(&plan->warnings, "no-driver",
                          "this image brings no NVIDIA driver (no nvidia-smi, no nvidia.ko, no unit that "
                          "loads it): %u NVIDIA GPU%s left to "
                          "whatever brings one later, such as a pod of NVIDIA's operator, and kubelet does "
                          "not wait for them%s",
                          gpus, are, more);
        plan_file(plan, PHASE_CONFIG, GROUP, FABRIC_TURN, "fabric manager is left to the image", "", 0644);
        plan_file(plan, PHASE_CONFIG, GROUP, CDI_TURN, "so is the file of CDI", "", 0644);
}

static int plan_stack(Stack *s, const Config *config, Diag *diag) {
        int r = check_manager(s, diag),
            k = mig_layouts(s->plan, config, s->host, s->gpus, &s->layouts, &s->n_layouts, &s->mig, diag);
        if (r < 0 || k < 0)
                return r < 0 ? r : k;
        warn_of_imex(s);
        plan_options(s);
        if (runs_imex(s))
                plan_imex_files(s->plan, s->want, s->host);
        bool first = true;
        for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
                if (steps[i].wanted && !steps[i].wanted(s))
                        continue;
                add_step(s, &steps[i]);
                if (first && plan_find(s->plan, CENSUS_ID))
                        action_after(&s->plan->actions[s->plan->n - 1], CENSUS_ID);
                first = false;
        }
        return 0;
}

int plan_nvidia(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        const Nvidia *want = &config->nvidia;
        unsigned gpus = host->gpus.expected;
        bool tray = host->gpus.class == GPU_CLASS_TRAY;
        if (host->gpus.class == GPU_CLASS_NONE) {
                if (want->mode != NVIDIA_OFF && asks_for_something(want))
                        diag_warn_at(&plan->warnings, "no-effect", NULL, NVIDIA_PATH,
                                     "has no effect: this machine has no NVIDIA GPU");
                return 0;
        }
        if (want->mode == NVIDIA_OFF || !host->gpus.driver) {
                plan_hands_off(plan, config, gpus);
                return 0;
        }
        _cleanup_(stack_done) Stack s = {
                .plan = plan, .want = want, .host = host, .class = host->gpus.class, .gpus = gpus,
                .imex = want->imex == IMEX_AUTO && tray ? IMEX_DRA : want->imex,
        };
        s.manager = has_switches(&s) && want->fabric_manager != FABRIC_MANAGER_OFF;
        return plan_stack(&s, config, diag);
}
