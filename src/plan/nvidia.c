/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA GPUs: contradictions and driver options. nvidia-steps.c has the steps. */
#include "plan/devices.h"
#include "base/str.h"
#include <errno.h>

static void stack_done(Stack *s) {
        for (size_t i = 0; i < s->n_layouts; i++)
                strv_free(s->layouts[i].profiles);
        FREE_ALL(s->layouts, s->mig);
        strv_free(s->options);
        strv_free(s->parameters);
        for (size_t i = 0; i < ARRAY_SIZE(s->ids); i++)
                free(s->ids[i]);
}

/* How check-driver treats an option if the module is loaded already. */
typedef enum Must {
        MUST_NOTHING,
        /* only a warning */
        MUST_WARN,
        /* the driver may not know it */
        MUST_IF_KNOWN,
        MUST_BE_SO
} Must;

static void add_option(Stack *s, Must must, const char *name, const char *value) {
        static const char marks[][4] = { "", "??", "?", "" };
        strv_push(&s->options, xasprintf("NVreg_%s=%s", name, value));
        if (must != MUST_NOTHING)
                strv_push(&s->parameters, xasprintf("%s=%s%s", name, value, marks[must]));
}

static void plan_options(Stack *s) {
        if (gpus_are_coherent(s->host)) /* or kubelet counts GPU memory as its own */
                add_option(s, s->want->memory == MEMORY_AUTO ? MUST_IF_KNOWN : MUST_BE_SO,
                           "CoherentGPUMemoryMode", s->want->memory == MEMORY_NUMA ? "numa" : "driver");
        else if (s->want->memory != MEMORY_AUTO)
                diag_warn_at(&s->plan->warnings, "no-effect", NULL, NVIDIA_PATH ".memoryMode",
                             "has no effect: no CPU shares memory with these GPUs");
        /* On trays the DRA driver makes channel 0; one from the kernel driver gets in its way. */
        _free_ char *count = xasprintf("%u", s->want->imex_channels);
        if (s->tray || s->want->imex_channels != IMEX_CHANNELS)
                add_option(s, s->want->imex_channels == IMEX_CHANNELS ? MUST_IF_KNOWN : MUST_BE_SO,
                           "ImexChannelCount", count);
        /* a later step makes a missing channel, so it is not checked */
        if (s->tray || s->channel)
                add_option(s, s->channel ? MUST_NOTHING : MUST_IF_KNOWN, "CreateImexChannel0",
                           s->channel ? "1" : "0");
        /* Without it EFA may not attach GPU memory by dma-buf, and NCCL falls back to sockets
         * (NVIDIA/aicr#668, NVIDIA/aicr#2356, Azure/azhpc-images#589). AWS documents neither. */
        if (s->tray && s->efa && s->want->gpu_direct != GPU_DIRECT_OFF)
                add_option(s, s->want->gpu_direct == GPU_DIRECT_ON ? MUST_BE_SO : MUST_WARN,
                           GPU_DIRECT_OPTION, "1");
        /* The open module ignores it (NVIDIA/open-gpu-kernel-modules#820). */
        if (s->host->gpus.model && s->host->gpus.model->no_gsp)
                add_option(s, MUST_NOTHING, "EnableGpuFirmware", "0");
        if (!s->options)
                return;
        _free_ char *list = strv_join(s->options, " "),
                    *text = xasprintf("# Written by nodestrap from "
                                      "spec.accelerator.nvidia.\noptions nvidia %s\n", list);
        plan_file(s->plan, PHASE_CONFIG, NVIDIA_GROUP, NVIDIA_OPTIONS,
                  "options that the driver reads when loading", text, 0644);
}

/* Only in a model: on a machine a step finds out, or a unit of the user prevents it. */
static void foretell(const Stack *s, Cause cause) {
        if (s->host->modelled && s->policy != FAILURE_JOIN_TAINTED)
                diag_foretell(&s->plan->warnings, cause);
}

static int check_manager(const Stack *s, Diag *diag) {
        if (s->want->fabric_manager == FABRIC_MANAGER_ON && !s->switches)
                return diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, NVIDIA_PATH ".fabric.manager",
                                     "is on, but this machine (class %s) has no NVSwitch: fabric manager "
                                     "would fail; set auto", gpu_class_to_string(s->class));
        if (s->want->fabric_manager == FABRIC_MANAGER_OFF && s->gate && s->switches &&
            s->want->fabric_gate == FABRIC_GATE_REQUIRE) {
                diag_warn_at(&s->plan->warnings, "fabric-gate", NULL, NVIDIA_PATH ".fabric.gate",
                             "kubelet waits in vain: manager is off, so nothing here starts the fabric; if "
                             "fabric manager runs in a pod, set gate: off or warn");
                foretell(s, CAUSE_FABRIC);
        }
        return 0;
}

static void warn_of_imex(const Stack *s) {
        if (!s->tray && (s->want->imex == IMEX_HOST || s->want->imex == IMEX_DRA))
                diag_warn_at(&s->plan->warnings, "imex-without-domain", NULL, NVIDIA_PATH ".imex.mode",
                             "is %s, but no NVLink of this machine (class %s) leads to another machine; "
                             "remove the key",
                             imex_mode_to_string(s->want->imex), gpu_class_to_string(s->class));
        if (s->want->imex_label && !s->tray)
                diag_warn_at(&s->plan->warnings, "no-effect", NULL, NVIDIA_PATH ".imex.label",
                             "has no effect: no NVLink of this machine (class %s) leads to another machine, "
                             "so its GPUs have no clique", gpu_class_to_string(s->class));
}

static bool asks_for_something(const Config *config) {
        static const char keys[][40] = { NVIDIA_PATH ".fabric.gate", NVIDIA_PATH ".fabric.timeout",
                                         NVIDIA_PATH ".health", NVIDIA_PATH ".memoryMode",
                                         NVIDIA_PATH ".gpuDirect", NVIDIA_PATH ".prove" };
        const Nvidia *n = &config->nvidia;
        for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
                if (config_says(config, keys[i]))
                        return true;
        return (n->n_mig > 0 && !nvidia_mig_is_off(n)) || n->imex == IMEX_HOST || n->imex == IMEX_DRA ||
               n->fabric_manager == FABRIC_MANAGER_ON || n->clocks != CLOCKS_AUTO || n->imex_label;
}

/* A key with the value require (or on), which keeps a node without a driver from joining; or NULL. */
static const char *required(const Config *config) {
        static const char *const health = NVIDIA_PATH ".health", *const gate = NVIDIA_PATH ".fabric.gate";
        if (config->nvidia.gpu_direct == GPU_DIRECT_ON)
                return NVIDIA_PATH ".gpuDirect";
        if (config->nvidia.health == HEALTH_REQUIRE && config_says(config, health))
                return health;
        return config->nvidia.fabric_gate == FABRIC_GATE_REQUIRE && config_says(config, gate) ? gate : NULL;
}

/* GPUs without a fabric have no gate. */
static void warn_of_gate(const Stack *s, const Config *config) {
        static const char *const keys[] = { NVIDIA_PATH ".fabric.gate", NVIDIA_PATH ".fabric.timeout" };
        for (size_t i = 0; i < ARRAY_SIZE(keys) && !s->registers; i++)
                if (config_says(config, keys[i]))
                        diag_warn_at(&s->plan->warnings, "no-effect", NULL, keys[i],
                                     "has no effect: the GPUs of this machine (class %s) join no NVLink "
                                     "fabric", gpu_class_to_string(s->class));
}

/* At boot load-module fails, unless a user script installs the driver first. */
static void warn_of_requirement(const Stack *s, const char *key) {
        diag_warn_at(&s->plan->warnings, "require-unmet", NULL, key,
                     "is %s, but this image has no NVIDIA driver: the driver step fails; install the driver "
                     "in the image, or remove the key", endswith(key, "Direct") ? "on" : "require");
        foretell(s, CAUSE_DRIVER);
}

/* Units of the image or a pod bring the driver, and a pod needs kubelet. */
static void plan_hands_off(Plan *plan, const Config *config, unsigned gpus) {
        const char *are = gpus == 1 ? " is" : "s are",
                   *more = asks_for_something(config) ? "; settings in spec.accelerator.nvidia have no "
                                                        "effect"
                                                               : "";
        if (config->nvidia.mode == NVIDIA_OFF)
                diag_warn_at(&plan->warnings, "accelerator", NULL, NVIDIA_PATH ".mode",
                             "is off: nodestrap leaves %u NVIDIA GPU%s to the units of the image, and "
                             "kubelet does not wait%s", gpus, gpus == 1 ? "" : "s", more);
        else
                diag_warn(&plan->warnings, "no-driver",
                          "this image has no NVIDIA driver (no nvidia-smi, no nvidia.ko, no unit that loads "
                          "it): %u NVIDIA GPU%s not set up. kubelet does not wait%s. Install the driver, or "
                          "let the NVIDIA GPU Operator install it", gpus, are, more);
        plan_file(plan, PHASE_CONFIG, NVIDIA_GROUP, FABRIC_TURN, "leave fabric manager to the image", "",
                  0644);
        plan_file(plan, PHASE_CONFIG, NVIDIA_GROUP, CDI_TURN, "leave the CDI file to the image", "", 0644);
}

/* A machine that has no EFA device fails at boot. */
static int check_direct(const Stack *s, Diag *diag) {
        Promise promise = { CAUSE_EFA, NVIDIA_PATH ".gpuDirect",
                            s->want->gpu_direct == GPU_DIRECT_ON && !s->efa,
                            s->host->type ? s->host->type->max_efa : -1,
                            s->policy == FAILURE_JOIN_TAINTED };
        return plan_promise(s->plan, s->host, &promise, diag);
}

static int plan_stack(Stack *s, const Config *config, Diag *diag) {
        int r = check_manager(s, diag),
            k = mig_layouts(s->plan, config, s->host, s->gpus, &s->layouts, &s->n_layouts, &s->mig, diag);
        if (r >= 0)
                r = check_direct(s, diag);
        if (r < 0 || k < 0)
                return r < 0 ? r : k;
        warn_of_imex(s);
        if (s->host->gpus.part && !s->host->gpus.license_daemon)
                diag_warn(&s->plan->warnings, "no-license-daemon",
                          "this vGPU needs a licence for its GRID driver, but this image cannot get one (no "
                          "nvidia-gridd.service): CUDA fails after a day; install nvidia-gridd");
        if (s->want->prove != PROVE_OFF && s->n_layouts > 0)
                diag_warn_at(&s->plan->warnings, "no-effect", NULL, NVIDIA_PATH ".prove",
                             "has no effect while nodestrap sets MIG, even to off; remove this key, or the "
                             "MIG setting");
        plan_options(s);
        if (s->runs_imex)
                plan_imex_files(s->plan, s->want, s->host);
        if (s->bars_imex)
                plan_file(s->plan, PHASE_CONFIG, NVIDIA_GROUP, IMEX_BARRED,
                          "keep the image from starting IMEX", "", 0644);
        stack_plan_steps(s);
        return 0;
}

int plan_nvidia(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        const Nvidia *want = &config->nvidia;
        unsigned gpus = host->gpus.expected;
        bool tray = host->gpus.class == GPU_CLASS_TRAY;
        if (host->gpus.class == GPU_CLASS_NONE) {
                if (want->mode != NVIDIA_OFF && asks_for_something(config))
                        diag_warn_at(&plan->warnings, "no-effect", NULL, NVIDIA_PATH,
                                     "has no effect: this machine has no NVIDIA GPU");
                return 0;
        }
        const char *key = host->gpus.driver ? NULL : required(config);
        if (want->mode == NVIDIA_OFF || (!host->gpus.driver && !key)) {
                plan_hands_off(plan, config, gpus);
                return 0;
        }
        _cleanup_(stack_done) Stack s = {
                .plan = plan, .want = want, .host = host, .policy = config->failure_policy,
                .class = host->gpus.class, .gpus = gpus,
                .efa = plan_uses_efa(config, host), .repairs = config->cluster.repair_condition,
                .imex = want->imex == IMEX_AUTO && tray ? IMEX_DRA : want->imex,
        };
        stack_decide(&s);
        if (key)
                warn_of_requirement(&s, key);
        warn_of_gate(&s, config);
        return plan_stack(&s, config, diag);
}
