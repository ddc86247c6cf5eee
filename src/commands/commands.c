/* SPDX-License-Identifier: Apache-2.0
 * The table of commands. A new one is a row here, its texts in conf/help.txt and a function in a file
 * of its name. */
#include "commands/commands.h"

#define OURS    (1u << PROGRAM_NODESTRAP)
#define INTERNAL (1u << PROGRAM_NODEADM_INTERNAL)
#define BOTH    (OURS | 1u << PROGRAM_NODEADM)

/* A command that needs the daemons or services of a node: a PORTABLE build knows only its name. */
#define ON_NODE(run) (PORTABLE ? NULL : (run))

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
        STATUS, WAIT, EXPLAIN,
        TOKEN, SEND_EVENTS, UDEV_NET_MANAGER, BOOT_HOOK,
        ABOUT_HELP, ABOUT_VERSION,
        _COMMAND_MAX,
};

static const Command commands[_COMMAND_MAX] = {
        [INIT] = {
                .words = "init", .use = USE_NODE,
                .names = BOTH, .flags = PLANS | BIT(DRY_RUN), .dry_run = &commands[PLAN],
                .last = STAGE_APPLY, .run = ON_NODE(command_init),
                .powers = POWER_ALL,
        },
        [PLAN] = {
                .words = "plan", .use = USE_BEFORE,
                .takes_words = true,
                .names = OURS, .flags = PLANS | MODELS | BIT(INSTANCE_TYPE_FILE) | BIT(WRITE_TO) |
                         BIT(SHOW_SECRETS) | BIT(SHOW_DIFF) | BIT(DIFF) | BIT(MATRIX) |
                         BIT(DETAILED_EXITCODE) | BIT(INTERFACES) | BIT(EFA),
                .last = STAGE_PLAN, .run = command_plan,
                .powers = POWER_READ, .starts_programs = true,     /* it measures what containers have left */
        },
        [DOCTOR] = {
                .words = "doctor", .use = USE_BEFORE,
                .names = OURS, .flags = LOADS | MODELS | BIT(OUTPUT) | BIT(ASK), .sample = true,
                .last = STAGE_ROOT, .run = command_doctor,
                .powers = POWER_READ | POWER_LOOK, .starts_programs = true,
        },
        [CONFIG_CHECK] = {
                .words = "config check", .use = USE_BEFORE,
                .names = BOTH, .flags = LOADS | BIT(OUTPUT) | BIT(PARTIAL), .finds = true,
                .last = STAGE_ROOT, .run = command_config_check, .done = "The configuration is valid.",
        },
        [CONFIG_DUMP] = {
                .words = "config dump", .use = USE_BEFORE,
                .names = BOTH, .flags = LOADS | BIT(CONFIG_CACHE) | BIT(CONFIG_OUTPUT),
                .last = STAGE_CONFIG, .run = command_config_dump, .unchecked = true,
        },
        [CONFIG_SCHEMA] = {
                .words = "config schema", .use = USE_BEFORE,
                .names = OURS, .flags = ROOT | BIT(CONFIG_OUTPUT) | BIT(STRICT),
                .last = STAGE_START, .run = command_config_schema,
        },
        [CONFIG_EXAMPLE] = {
                .words = "config example", .use = USE_BEFORE,
                .names = OURS, .flags = ROOT, .takes_words = true,
                .last = STAGE_ROOT, .run = command_config_example,
        },
        [CONFIG_SIGN] = {
                .words = "config sign", .use = USE_BEFORE,
                .names = OURS,
                .flags = ROOT | BIT(CONFIG_SOURCE) | BIT(CONFIG_OUTPUT) | BIT(KEY) | BIT(ACCOUNT) |
                         BIT(REGION) | BIT(CLUSTER) | BIT(SERIAL),
                .last = STAGE_ROOT, .run = command_config_sign,
        },
        [CONFIG_VERIFY] = {
                .words = "config verify", .use = USE_BEFORE,
                .names = OURS, .flags = ROOT | BIT(CONFIG_SOURCE) | BIT(KEY),
                .last = STAGE_ROOT, .run = command_config_verify,
                .done = "The configuration is signed.",
        },
        [TOKEN] = {
                .words = "token", .use = USE_UNITS,
                .names = OURS, .flags = EVERY | ASKS,
                .last = STAGE_START, .run = ON_NODE(command_token),
        },
        [WAIT] = {
                .words = "wait", .use = USE_AFTER,
                .names = OURS, .flags = ROOT | BIT(FOR) | BIT(TIMEOUT),
                .last = STAGE_ROOT, .run = ON_NODE(command_wait),
        },
        [SEND_EVENTS] = {
                .words = "send-events", .use = USE_UNITS,
                .names = OURS, .flags = ROOT,
                .last = STAGE_ROOT, .run = ON_NODE(command_send_events),
        },
        [STATUS] = {
                .words = "status", .use = USE_AFTER,
                .names = OURS, .flags = ROOT | BIT(OUTPUT) | BIT(BUNDLE) | BIT(EXIT_CODE) | BIT(FOLLOW) |
                         BIT(LONG),
                .draws = true,
                .last = STAGE_ROOT, .run = ON_NODE(command_status),
        },
        [EXPLAIN] = {
                .words = "explain", .use = USE_AFTER,
                .names = OURS, .flags = ROOT, .takes_words = true,
                .last = STAGE_ROOT, .run = command_explain,
        },
        [UDEV_NET_MANAGER] = {
                .words = "udev-net-manager", .use = USE_UNITS,
                .names = OURS | INTERNAL,
                .flags = ROOT | BIT(ACTION) | BIT(INTERFACE) | BIT(DRY_RUN),
                .dry_run = &commands[UDEV_NET_MANAGER],
                .last = STAGE_ROOT, .run = ON_NODE(command_udev_net_manager),
                .powers = POWER_ALL,
        },
        [BOOT_HOOK] = {
                .words = "boot-hook", .use = USE_UNITS,
                .names = OURS | INTERNAL, .flags = ROOT | BIT(TIMEOUT),
                .last = STAGE_ROOT, .run = ON_NODE(command_boot_hook),
                .powers = POWER_ALL,
        },
        [ABOUT_HELP] = {
                .words = "help", .use = USE_PROGRAM,
                .names = OURS, .flags = ROOT,
                .last = STAGE_START, .run = command_help,
        },
        [ABOUT_VERSION] = {
                .words = "version", .use = USE_PROGRAM,
                .names = OURS, .flags = EVERY | BIT(OUTPUT) | BIT(LONG),
                .last = STAGE_START, .run = command_version,
        },
};

const CommandTable command_table = {
        .items = commands, .n = _COMMAND_MAX,
        .help = &commands[ABOUT_HELP], .version = &commands[ABOUT_VERSION],
};
