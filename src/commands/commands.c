/* SPDX-License-Identifier: Apache-2.0
 * The table of commands. A new one is a row here and a function in a file of its name. */
#include "commands/commands.h"

#define OURS    (1u << PROGRAM_NODESTRAP)
#define INTERNAL (1u << PROGRAM_NODEADM_INTERNAL)
#define BOTH    (OURS | 1u << PROGRAM_NODEADM)

#define BIT(flag) (UINT64_C(1) << FLAG_##flag)
#define EVERY   (BIT(DEVELOPMENT) | BIT(HELP) | BIT(VERSION))
#define ROOT    (BIT(ROOT) | EVERY)
#define LOADS   (BIT(CONFIG_SOURCE) | BIT(STRICT) | ROOT)
#define PLANS   (BIT(CONFIG_CACHE) | BIT(SKIP) | BIT(DAEMON) | BIT(CREDENTIAL_PLUGIN) | BIT(OUTPUT) | \
                 BIT(STRICT_NODE_NAME) | LOADS)
#define MODELS  (BIT(INSTANCE_TYPE) | BIT(KUBELET_VERSION) | BIT(CONTAINERD_VERSION) | BIT(DRIVER_VERSION))
#define ASKS    (BIT(CLUSTER_NAME) | BIT(CLUSTER_ID) | BIT(REGION) | BIT(ROLE_ARN))

enum {
        INIT, PLAN, DOCTOR,
        CONFIG_CHECK, CONFIG_DUMP, CONFIG_SCHEMA, CONFIG_EXAMPLE, CONFIG_SIGN, CONFIG_VERIFY,
        TOKEN, WAIT, SEND_EVENTS, STATUS, EXPLAIN,
        UDEV_NET_MANAGER, BOOT_HOOK,
        ABOUT_HELP, ABOUT_VERSION,
        _COMMAND_MAX,
};

static const Command commands[_COMMAND_MAX] = {
        [INIT] = {
                .words = "init",
                .help = "make this machine a node: load, validate, detect, plan, apply, report",
                .names = BOTH, .flags = PLANS | BIT(DRY_RUN), .dry_run = &commands[PLAN],
                .last = STAGE_APPLY, .run = command_init,
                .powers = POWER_ALL,
        },
        [PLAN] = {
                .words = "plan",
                .help = "show what init would do, on this machine or another; changes nothing",
                .takes_words = true,
                .names = OURS, .flags = PLANS | MODELS | BIT(WRITE_TO) | BIT(SHOW_SECRETS) |
                         BIT(SHOW_DIFF) | BIT(DIFF) | BIT(MATRIX) | BIT(DETAILED_EXITCODE) | BIT(INTERFACES),
                .last = STAGE_PLAN, .run = command_plan,
                .powers = POWER_READ, .starts_programs = true,     /* it measures what containers have left */
        },
        [DOCTOR] = {
                .words = "doctor",
                .help = "what this machine, or the image below --root, lacks for the plan",
                .names = OURS, .flags = LOADS | MODELS | BIT(OUTPUT) | BIT(ASK), .sample = true,
                .last = STAGE_ROOT, .run = command_doctor,
                .powers = POWER_READ | POWER_LOOK, .starts_programs = true,
        },
        [CONFIG_CHECK] = {
                .words = "config check",
                .help = "validate the configuration, or each FILE by itself",
                .names = BOTH, .flags = LOADS | BIT(OUTPUT) | BIT(PARTIAL), .finds = true,
                .last = STAGE_ROOT, .run = command_config_check, .done = "The configuration is valid.",
        },
        [CONFIG_DUMP] = {
                .words = "config dump",
                .help = "print the merged NodeConfig as JSON",
                .names = BOTH, .flags = LOADS | BIT(CONFIG_CACHE) | BIT(CONFIG_OUTPUT),
                .last = STAGE_CONFIG, .run = command_config_dump, .unchecked = true,
        },
        [CONFIG_SCHEMA] = {
                .words = "config schema",
                .help = "print the JSON Schema of a NodeConfig",
                .names = OURS, .flags = ROOT | BIT(CONFIG_OUTPUT) | BIT(STRICT),
                .last = STAGE_START, .run = command_config_schema,
        },
        [CONFIG_EXAMPLE] = {
                .words = "config example",
                .help = "print a NodeConfig to start from: config example p5.48xlarge",
                .names = OURS, .flags = ROOT, .takes_words = true,
                .last = STAGE_ROOT, .run = command_config_example,
        },
        [CONFIG_SIGN] = {
                .words = "config sign",
                .help = "print the sources as user data that is signed",
                .names = OURS,
                .flags = ROOT | BIT(CONFIG_SOURCE) | BIT(CONFIG_OUTPUT) | BIT(KEY) | BIT(ACCOUNT) |
                         BIT(REGION) | BIT(CLUSTER) | BIT(SERIAL),
                .last = STAGE_ROOT, .run = command_config_sign,
        },
        [CONFIG_VERIFY] = {
                .words = "config verify",
                .help = "say who has signed the configuration, or why it does not count",
                .names = OURS, .flags = ROOT | BIT(CONFIG_SOURCE) | BIT(KEY),
                .last = STAGE_ROOT, .run = command_config_verify,
                .done = "The configuration is signed.",
        },
        [TOKEN] = {
                .words = "token",
                .help = "a token for the API server of an EKS cluster, for kubelet and kubectl",
                .names = OURS, .flags = EVERY | ASKS,
                .last = STAGE_START, .run = command_token,
        },
        [WAIT] = {
                .words = "wait",
                .help = "wait until this node has joined its cluster, or say why it does not",
                .names = OURS, .flags = ROOT | BIT(FOR) | BIT(TIMEOUT),
                .last = STAGE_ROOT, .run = command_wait,
        },
        [SEND_EVENTS] = {
                .words = "send-events",
                .help = "tell the cluster what failed here, for half an hour (nodestrap-event.service)",
                .names = OURS, .flags = ROOT,
                .last = STAGE_ROOT, .run = command_send_events,
        },
        [STATUS] = {
                .words = "status",
                .help = "what this boot did, and what it is doing",
                .names = OURS, .flags = ROOT | BIT(OUTPUT) | BIT(BUNDLE) | BIT(EXIT_CODE) | BIT(FOLLOW) |
                         BIT(LONG),
                .draws = true,
                .last = STAGE_ROOT, .run = command_status,
        },
        [EXPLAIN] = {
                .words = "explain",
                .help = "print the manual on a code, a warning or a key: explain EFABRIC hugePages",
                .names = OURS, .flags = ROOT, .takes_words = true,
                .last = STAGE_ROOT, .run = command_explain,
        },
        [UDEV_NET_MANAGER] = {
                .words = "udev-net-manager",
                .help = "set up a network interface that has come or gone; udev's rule calls it",
                .names = OURS | INTERNAL,
                .flags = ROOT | BIT(ACTION) | BIT(INTERFACE) | BIT(DRY_RUN),
                .dry_run = &commands[UDEV_NET_MANAGER],
                .last = STAGE_ROOT, .run = command_udev_net_manager,
                .powers = POWER_ALL,
        },
        [BOOT_HOOK] = {
                .words = "boot-hook",
                .help = "wait until the network of this boot is complete, or say which link is not",
                .names = OURS | INTERNAL, .flags = ROOT | BIT(TIMEOUT),
                .last = STAGE_ROOT, .run = command_boot_hook,
                .powers = POWER_ALL,
        },
        [ABOUT_HELP]    = { .words = "help", .flags = ROOT, .last = STAGE_START, .run = command_help },
        [ABOUT_VERSION] = { .words = "version", .flags = EVERY, .last = STAGE_START,
                            .run = command_version },
};

const CommandTable command_table = {
        .items = commands, .n = _COMMAND_MAX,
        .help = &commands[ABOUT_HELP], .version = &commands[ABOUT_VERSION],
};
