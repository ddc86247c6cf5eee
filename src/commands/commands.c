/* SPDX-License-Identifier: Apache-2.0
 * The table of commands. A new one is a row here and a function in a file of its name. */
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
                .help = HELP("[OPTION...]", "Make this machine a node of an EKS cluster",
                             "Reads the NodeConfig, plans each step and does what the plan says. Needs "
                             "root. A second run with the same input changes nothing.",
                             "init --dry-run\n"
                             "init -c file:///etc/node.yaml --skip run"),
                .names = BOTH, .flags = PLANS | BIT(DRY_RUN), .dry_run = &commands[PLAN],
                .last = STAGE_APPLY, .run = ON_NODE(command_init),
                .powers = POWER_ALL,
        },
        [PLAN] = {
                .words = "plan", .use = USE_BEFORE,
                .help = HELP("[OPTION...] [FILE...]", "Show what init would do, on this machine or another",
                             "Changes nothing and needs no root. A step marked > is on the longest chain "
                             "to kubelet. FILE means -c FILE: a NodeConfig, or a file for Karpenter, "
                             "eksctl, EC2 or Terraform with one.",
                             "plan -c user-data --instance-type p5.48xlarge\n"
                             "plan --show-diff"),
                .takes_words = true,
                .names = OURS, .flags = PLANS | MODELS | BIT(INSTANCE_TYPE_FILE) | BIT(WRITE_TO) |
                         BIT(SHOW_SECRETS) | BIT(SHOW_DIFF) | BIT(DIFF) | BIT(MATRIX) |
                         BIT(DETAILED_EXITCODE) | BIT(INTERFACES) | BIT(EFA),
                .last = STAGE_PLAN, .run = command_plan,
                .powers = POWER_READ, .starts_programs = true,     /* it measures what containers have left */
        },
        [DOCTOR] = {
                .words = "doctor", .use = USE_BEFORE,
                .help = HELP("[OPTION...]", "Test whether an image or a machine can boot as a node",
                             "Names missing programs, units and modules, and versions that do not work "
                             "together. Exits with 70 if a boot would fail; with --strict also for a "
                             "warning.",
                             "doctor\n"
                             "doctor --root /mnt --instance-type p5.48xlarge --strict"),
                .names = OURS, .flags = LOADS | MODELS | BIT(OUTPUT) | BIT(ASK), .sample = true,
                .last = STAGE_ROOT, .run = command_doctor,
                .powers = POWER_READ | POWER_LOOK, .starts_programs = true,
        },
        [CONFIG_CHECK] = {
                .words = "config check", .use = USE_BEFORE,
                .help = HELP("[OPTION...] [FILE...]", "Validate the merged sources, or each FILE alone",
                             "FILE is a NodeConfig, or a file for Karpenter, eksctl, EC2 or Terraform "
                             "with one. The exit status is that of the first that is not valid.",
                             "config check --strict user-data\n"
                             "config check --output sarif nodes/*.yaml"),
                .names = BOTH, .flags = LOADS | BIT(OUTPUT) | BIT(PARTIAL), .finds = true,
                .last = STAGE_ROOT, .run = command_config_check, .done = "The configuration is valid.",
        },
        [CONFIG_DUMP] = {
                .words = "config dump", .use = USE_BEFORE,
                .help = HELP("[OPTION...]", "Print the merged NodeConfig as JSON",
                             "Hides nothing: the output may hold secrets.",
                             "config dump -c user-data\n"
                             "config dump -o merged.json"),
                .names = BOTH, .flags = LOADS | BIT(CONFIG_CACHE) | BIT(CONFIG_OUTPUT),
                .last = STAGE_CONFIG, .run = command_config_dump, .unchecked = true,
        },
        [CONFIG_SCHEMA] = {
                .words = "config schema", .use = USE_BEFORE,
                .help = HELP("[OPTION...]", "Print the JSON Schema of a NodeConfig",
                             "The schema has an example of each key, and the version that added it.",
                             "config schema\n"
                             "config schema --strict -o schema.json"),
                .names = OURS, .flags = ROOT | BIT(CONFIG_OUTPUT) | BIT(STRICT),
                .last = STAGE_START, .run = command_config_schema,
        },
        [CONFIG_EXAMPLE] = {
                .words = "config example", .use = USE_BEFORE,
                .help = HELP("TYPE", "Print a NodeConfig to start from",
                             "It is for the instance type TYPE. Change spec.cluster, then check and plan it.",
                             "config example p5.48xlarge >user-data\n"
                             "config example m7i.large"),
                .names = OURS, .flags = ROOT, .takes_words = true,
                .last = STAGE_ROOT, .run = command_config_example,
        },
        [CONFIG_SIGN] = {
                .words = "config sign", .use = USE_BEFORE,
                .help = HELP("-k KEY.pem [OPTION...]", "Print the sources as signed user data",
                             "Without --region, --account and --cluster, the signature is valid on each "
                             "machine that trusts the key.",
                             "config sign -k ops.pem -c user-data >signed\n"
                             "config sign -k ops.pem -c user-data --cluster training -o signed"),
                .names = OURS,
                .flags = ROOT | BIT(CONFIG_SOURCE) | BIT(CONFIG_OUTPUT) | BIT(KEY) | BIT(ACCOUNT) |
                         BIT(REGION) | BIT(CLUSTER) | BIT(SERIAL),
                .last = STAGE_ROOT, .run = command_config_sign,
        },
        [CONFIG_VERIFY] = {
                .words = "config verify", .use = USE_BEFORE,
                .help = HELP("[OPTION...]", "Print who signed the sources, for which machines",
                             "Exits with 11 and prints the reason if the signature is not valid.",
                             "config verify -c signed\n"
                             "config verify -k ops.pub -c signed"),
                .names = OURS, .flags = ROOT | BIT(CONFIG_SOURCE) | BIT(KEY),
                .last = STAGE_ROOT, .run = command_config_verify,
                .done = "The configuration is signed.",
        },
        [TOKEN] = {
                .words = "token", .use = USE_UNITS,
                .help = HELP("--cluster-name NAME|--cluster-id ID [OPTION...]",
                             "Print a token for the API server of an EKS cluster",
                             "kubelet and kubectl run it as their exec plugin.",
                             "token --cluster-name training\n"
                             "token --cluster-name training --region us-west-2"),
                .names = OURS, .flags = EVERY | ASKS,
                .last = STAGE_START, .run = ON_NODE(command_token),
        },
        [WAIT] = {
                .words = "wait", .use = USE_AFTER,
                .help = HELP("[OPTION...]", "Wait until this node has joined its cluster",
                             "Prints the reason if it has not. Exits with 60 if the node does not join in "
                             "time, and with 50 if kubelet itself fails.",
                             "wait --timeout 10s\n"
                             "wait --for registered"),
                .names = OURS, .flags = ROOT | BIT(FOR) | BIT(TIMEOUT),
                .last = STAGE_ROOT, .run = ON_NODE(command_wait),
        },
        [SEND_EVENTS] = {
                .words = "send-events", .use = USE_UNITS,
                .help = HELP("[OPTION...]", "Send recorded failures to the cluster",
                             "Tries for half an hour. nodestrap-event.service runs it.",
                             "send-events\n"
                             "send-events --development"),
                .names = OURS, .flags = ROOT,
                .last = STAGE_ROOT, .run = ON_NODE(command_send_events),
        },
        [STATUS] = {
                .words = "status", .use = USE_AFTER,
                .help = HELP("[OPTION...]", "Show what this boot did, and what it is doing",
                             "Prints the verdict, the cause of a failure and what to do next, in at most "
                             "eight lines.",
                             "status --long\n"
                             "status --bundle node.tar.gz"),
                .names = OURS, .flags = ROOT | BIT(OUTPUT) | BIT(BUNDLE) | BIT(EXIT_CODE) | BIT(FOLLOW) |
                         BIT(LONG),
                .draws = true,
                .last = STAGE_ROOT, .run = ON_NODE(command_status),
        },
        [EXPLAIN] = {
                .words = "explain", .use = USE_AFTER,
                .help = HELP("WORD...", "Print the manual on a code, a warning or a key",
                             "Works without man: the texts are those of nodestrap-codes(7) and "
                             "NodeConfig(5).",
                             "explain EFABRIC\n"
                             "explain hugePages.mode driver-options"),
                .names = OURS, .flags = ROOT, .takes_words = true,
                .last = STAGE_ROOT, .run = command_explain,
        },
        [UDEV_NET_MANAGER] = {
                .words = "udev-net-manager", .use = USE_UNITS,
                .help = HELP("-a ACTION -i NAME [OPTION...]",
                             "Set up an added interface, or clean up after a removed one",
                             "A udev rule runs it for each interface.",
                             "udev-net-manager --action add --interface ens6 --dry-run\n"
                             "udev-net-manager --action remove --interface ens6 --dry-run"),
                .names = OURS | INTERNAL,
                .flags = ROOT | BIT(ACTION) | BIT(INTERFACE) | BIT(DRY_RUN),
                .dry_run = &commands[UDEV_NET_MANAGER],
                .last = STAGE_ROOT, .run = ON_NODE(command_udev_net_manager),
                .powers = POWER_ALL,
        },
        [BOOT_HOOK] = {
                .words = "boot-hook", .use = USE_UNITS,
                .help = HELP("[OPTION...]", "Wait until all network links are ready",
                             "Names each link that is not ready, and why.",
                             "boot-hook\n"
                             "boot-hook --timeout 5s"),
                .names = OURS | INTERNAL, .flags = ROOT | BIT(TIMEOUT),
                .last = STAGE_ROOT, .run = ON_NODE(command_boot_hook),
                .powers = POWER_ALL,
        },
        [ABOUT_HELP] = {
                .words = "help", .use = USE_PROGRAM,
                .help = HELP("[COMMAND]", "Print help on a command",
                             "nodestrap turns a bare EC2 instance into a GPU node of an EKS cluster. It "
                             "reads a NodeConfig from user data, plans each step, does what the plan says, "
                             "and starts kubelet.",
                             "config example p5.48xlarge >user-data\n"
                             "plan -c user-data --instance-type p5.48xlarge"),
                .names = OURS, .flags = ROOT,
                .last = STAGE_START, .run = command_help,
        },
        [ABOUT_VERSION] = {
                .words = "version", .use = USE_PROGRAM,
                .help = HELP("[OPTION...]", "Print the version", "The commit follows in brackets.",
                             "version --long\nversion --output json"),
                .names = OURS, .flags = EVERY | BIT(OUTPUT) | BIT(LONG),
                .last = STAGE_START, .run = command_version,
        },
};

const CommandTable command_table = {
        .items = commands, .n = _COMMAND_MAX,
        .help = &commands[ABOUT_HELP], .version = &commands[ABOUT_VERSION],
};
