/* SPDX-License-Identifier: Apache-2.0
 * The steps of a plan read a machine (a tree, tree.h): files of the driver, sysfs, notes in /run and /var, the
 * environment of kubelet. They also read the programs that they run (answers.h): versions, tables of ctr. The first
 * byte says which step, the second in what form. The content of a disk stands in /dev/NAME as a word:
 * "blank", "fs TYPE LABEL", "md UUID NAME DISKS ROLE EVENTS". */
#include "answers.h"

#include "apply/device.h"
#include "apply/engine.h"
#include "apply/file.h"
#include "apply/apply.h"
#include "apply/storage.h"
#include "apply/units/units.h"
#include "base/hash.h"
#include "base/log.h"
#include "doc/env-file.h"

#include <fcntl.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define UUID "3aaa0122:29827cfa:5331ad66:ca767371"
#define BIT(n) (1U << (n))

/* ---- in place of src/disk/content.c and of the C library ---- */

void content_done(Content *c) {
        free(c->type);
        free(c->label);
        free(c->uuid);
        free(c->raid.uuid);
        free(c->raid.name);
        free(c->error);
}

int content_probe(const Root *root, const char *path, Content *ret, Diag *diag) {
        _free_ char *line = NULL;
        char words[2][40] = { "", "" };
        unsigned disks = 0, events = 0;
        Content c = { .kind = CONTENT_UNREADABLE };
        int r = root_read(root, path, MAX_INPUT, &line, NULL);
        (void)diag;
        line = line ?: xstrdup("");
        line[strcspn(line, "\n")] = 0;
        if (r < 0 && r != -EFBIG)
                return r;
        if (startswith(path, "/dev/") && disk_is_marked(root, path + strlen("/dev/")))
                c.kind = CONTENT_REMAINS;
        else if (r == -EFBIG || !*line || streq(line, "blank")) /* wiped, or never written to */
                c.kind = CONTENT_BLANK;
        else if (sscanf(line, "fs %39s %39s", words[0], words[1]) >= 1) {
                c.kind = CONTENT_FILESYSTEM;
                c.type = xstrdup(words[0]);
                c.label = xstrdup(words[1]);
        } else if (sscanf(line, "md %39s %39s %u %d %u", words[0], words[1], &disks, &c.raid.role,
                          &events) == 5) {
                c.kind = CONTENT_RAID_MEMBER;
                c.type = xstrdup("linux_raid_member");
                c.raid.uuid = xstrdup(words[0]);
                c.raid.name = xstrdup(words[1]);
                c.raid.disks = disks;
                c.raid.events = events;
        }
        *ret = c;
        return 0;
}

char *content_describe(const Content *c) {
        return xstrdup(c->type ?: "nothing");
}

bool content_unfinished(const Content *c) {
        return c->label && streq(c->label, LABEL_UNFINISHED);
}

void sync(void) {
}

/* ---- the steps ---- */

typedef struct Case { Work *w; Action *a; unsigned form; } Case;

static void set_devices(Case *c) {
        static char *seen[] = { (char *)"0000:10:00.0", (char *)"0000:20:00.0", NULL };
        c->a->device = (typeof(c->a->device)){ .count = 2, .seen = seen };
}

static int run_driver(Case *c) {
        static char *all[] = { (char *)"ImexChannelCount=2048", (char *)"RestrictProfiling=0?", NULL };
        set_devices(c);
        c->a->device.parameters = c->form & BIT(0) ? all : NULL;
        return driver_work(c->w);
}

static int run_versions(Case *c) {
        static char *all[] = { (char *)"nv-fabricmanager", (char *)"nvidia-imex", (char *)"nvlsm", NULL };
        c->a->words = all;
        return versions_work(c->w);
}

static int run_nodes(Case *c) {
        return nodes_work(c->w);
}

static int run_channel(Case *c) {
        c->a->target = (char *)"/dev/nvidia-caps-imex-channels/channel0";
        return channel_work(c->w);
}

static int run_imex(Case *c) {
        return imex_work(c->w);
}

static int run_pages(Case *c) {
        uint64_t have;
        c->a->pages = (typeof(c->a->pages)){ .size = 2U << 20, .count = c->form & BIT(0) ? 0 : 1024,
                                             .node = c->form & BIT(1) ? 0 : -1, .if_none = c->form & BIT(2) };
        (void)!pages_have(c->w->root, c->a, &have);
        return pages_work(c->w);
}

static int run_sysctl(Case *c) {
        c->a->target = (char *)"vm.max_map_count";
        c->a->with = (char *)(c->form & BIT(0) ? "4 4 1 7" : "0x10");
        c->a->secret = c->form & BIT(1);
        return sysctl_work(c->w);
}

static int run_module(Case *c) {
        c->a->target = (char *)(c->form & BIT(0) ? "ib-umad" : "nvidia");
        return module_work(c->w);
}

static int run_efa(Case *c) {
        set_devices(c);
        return efa_work(c->w);
}

static int run_devices(Case *c) {
        set_devices(c);
        c->a->target = (char *)(c->form & BIT(0) ? "/dev/neuron*" : "/dev/infiniband/umad*");
        return devices_work(c->w);
}

/* systemd must read from the file the arguments of kubelet, and ours after them. */
static void check_taint(const Root *root) {
        _free_ char *text = NULL;
        if (root_read(root, TAINT_FILE, MAX_INPUT, &text, NULL) < 0)
                abort();
        _free_ char *value = assignment_in_environment(text, "NODEADM_KUBELET_ARGS");
        _strv_ char **words = assignment_split(value ?: "");
        size_t n = strv_length(words);
        if (n < 2 || !endswith(words[n - 1], TAINT_KEY "=EDRIVER:NoSchedule") ||
            !streq(words[n - 2], "--node-labels=" TAINT_KEY "=EDRIVER"))
                abort();
}

static int run_taint(Case *c) {
        static char *mine[] = { (char *)"a=b:NoSchedule", NULL };
        c->a->node.taints = c->form & BIT(0) ? mine : NULL;
        c->w->given = command(c->form & BIT(1) ? "EDRIVER" : "", "check-driver:nvidia",
                              c->form & BIT(2) ? "1-2.7" : "?", NULL);
        int r = taint_work(c->w);
        if (r >= 0 && c->form & BIT(1))
                check_taint(c->w->root);
        c->w->given = strv_free(c->w->given);
        return r;
}

static int run_image(Case *c) {
        c->a->target = (char *)"/etc/eks/pause.tar";
        c->a->with = (char *)"localhost/kubernetes/pause:latest";
        c->a->image.snapshotter = c->form & BIT(0) ? (char *)"soci" : NULL;
        return image_work(c->w);
}

static int run_pin(Case *c) {
        c->a->target = (char *)"localhost/kubernetes/pause:latest";
        return pin_work(c->w);
}

static void set_disks(Case *c) {
        static char *disks[] = { (char *)"nvme1n1", (char *)"nvme2n1", NULL },
                    *serials[] = { (char *)"AWS1", (char *)"AWS2", NULL },
                    *blank[] = { (char *)"nvme2n1", NULL };
        c->a->target = (char *)RAID_DEVICE;
        c->a->storage = (typeof(c->a->storage)){ .state = (StepState)(STEP_MAKE + (c->form & 3)),
                                                 .disks = disks, .serials = serials, .blank = blank,
                                                 .array = true, .array_uuid = (char *)UUID,
                                                 .level = (char *)(c->form & BIT(2) ? "raid10" : "raid0") };
}

static int run_raid(Case *c) {
        set_disks(c);
        return raid_work(c->w);
}

static int run_disk(Case *c) {
        _free_ char *device = NULL;
        set_disks(c);
        c->a->storage.array = c->form & BIT(0);
        c->a->storage.volume = c->form & BIT(1);
        int r = disk_still(c->w, "nvme1n1", c->form & BIT(2) ? "" : "AWS1",
                           c->a->storage.array ? "md127" : NULL);
        return r < 0 ? r : step_device(c->w, &device);
}

static int run_filling(Case *c) {
        static const Move first = { .from = (char *)"/var/lib/containerd", .name = (char *)"containerd" },
                          whole = { .from = (char *)"/var/lib/containerd", .name = (char *)"" };
        _cleanup_(close_fd) int fd = root_open(c->w->root, "/mnt/data", O_RDONLY | O_DIRECTORY);
        c->a->target = (char *)"/mnt/data";
        int r = fd < 0 ? 0 : layout_check(c->w, fd, c->form & BIT(0) ? &whole : &first, c->form & BIT(1));
        if (r >= 0)
                r = filling_check(c->w, "/mnt/data", "mark");
        if (r >= 0)
                r = filling_begin(c->w, "/mnt/data", "mark");
        if (r >= 0 && filling_check(c->w, "/mnt/data", "mark") < 0)
                abort();
        return r < 0 ? r : filling_end(c->w, "/mnt/data");
}

/* A step gets some time, and at most its own deadline. */
static int run_waited(Case *c) {
        Action actions[] = { { .id = (char *)"await-fabric:fabric", .type = ACTION_AWAIT_FABRIC,
                               .target = (char *)"fabric", .phase = PHASE_DEVICES,
                               .deadline_usec = 600 * USEC_PER_SEC },
                             { .id = (char *)"start-unit:kubelet.service", .type = ACTION_START_UNIT,
                               .target = (char *)"kubelet.service", .phase = PHASE_RUN } };
        Plan devices = { .actions = actions, .n = 1 },
             plan = { .actions = actions, .n = ARRAY_SIZE(actions) };
        Apply apply = { .root = c->w->root, .plan = &plan };
        Result result = { .action = &actions[0], .outcome = OUTCOME_FAILED, .begin_usec = USEC_PER_SEC,
                          .end_usec = 400 * USEC_PER_SEC };
        const Results results = { .items = &result, .n = 1 };
        Task task = { .apply = &apply, .action = &actions[0], .executor = &executors[actions[0].type],
                      .result = &result };
        if (c->form & BIT(0))
                waited_write(c->w->root, &devices, &results);
        waited_take(&apply);
        waited_grant(&task);
        json_decref(apply.waited);
        if (task.limit_usec > actions[0].deadline_usec || (task.limit_usec && task.limit_usec < USEC_PER_SEC))
                abort();
        return 0;
}

/* The reload for a file that is unchanged or just written, with the record of the last reload. */
static int run_networkd(Case *c) {
        Action actions[] = { { .id = (char *)"write-file:/run/systemd/network/70-eks-ens6.network",
                               .target = (char *)"/run/systemd/network/70-eks-ens6.network" },
                             { .id = (char *)"reload-networkd:systemd-networkd",
                               .target = (char *)"systemd-networkd" } };
        Apply apply = { .root = c->w->root };
        Result result = { .outcome = c->form & BIT(0) ? OUTCOME_DONE : OUTCOME_UNCHANGED };
        Task before = { .apply = &apply, .action = &actions[0], .result = &result }, *after[] = { &before },
             task = { .apply = &apply, .action = &actions[1], .after = after, .n_after = 1 };
        int r = networkd_check(&task);
        if (r != CHECK_NEEDED && (c->form & BIT(0) || r != CHECK_DONE_ALREADY))
                abort();
        return 0;
}

static void look_texts_twice(const Root *root, const Action *a) {
        _cleanup_(texts_done) Texts t = {};
        size_t size;
        if (look_texts(root, a, &t) < 0 || a->type != ACTION_WRITE_BLOCK)
                return;
        _free_ char *again = block_merge(t.new, t.new_size, a->file.content, &size);
        if (size != t.new_size || memcmp(again, t.new, size) != 0)
                abort();
}

static int run_look(Case *c) {
        static char content[] = "10.0.0.1 a\n";
        Action actions[] = {
                { .type = ACTION_WRITE_FILE, .target = (char *)"/etc/a",
                  .file = { content, sizeof content - 1, 0644 } },
                { .type = ACTION_WRITE_BLOCK, .target = (char *)"/etc/hosts",
                  .file = { content, sizeof content - 1, 0 } },
                { .type = ACTION_LINK_FILE, .target = (char *)"/etc/link", .with = (char *)"a" },
                { .type = ACTION_REMOVE_FILE, .target = (char *)"/etc/old" },
                { .type = ACTION_PRUNE_FILES, .target = (char *)MANIFEST_FILE },
                { .type = ACTION_RESTART_UNIT, .target = (char *)"a.service" },
        };
        Plan plan = { .actions = actions, .n = ARRAY_SIZE(actions) };
        apply_look(c->w->root, &plan);
        (void)!unit_record(c->w->root, &actions[5]);
        for (size_t i = 0; i < plan.n; i++) {
                if (i < 5 && actions[i].live == LIVE_NONE)
                        abort();
                free(actions[i].live_why);
        }
        look_texts_twice(c->w->root, &actions[0]);
        look_texts_twice(c->w->root, &actions[1]);
        return 0;
}

/* After a success no file is left that should go. */
static int run_state(Case *c) {
        static char *plain[] = { (char *)"cpuManagerPolicy=none", (char *)"memoryManagerPolicy=None", (char *)"draManagerState=v1", NULL },
                    *pinned[] = { (char *)"cpuManagerPolicy=static", (char *)"memoryManagerPolicy=Static", (char *)"reservedSystemCPUs=0", NULL },
                    *strict[] = { (char *)"cpuManagerPolicy=static", (char *)"reservedSystemCPUs=0-1", (char *)"strict-cpu-reservation=true", NULL };
        c->a->target = (char *)KUBELET_DIR;
        c->a->words = c->form & BIT(0) ? pinned : c->form & BIT(1) ? strict : plain;
        int r = state_work(c->w);
        char *left = NULL;
        if (r >= 0 && state_look(c->w->root, c->a, &left) != 0)
                abort();
        free(left);
        return r;
}

static const struct { ActionType type; int (*run)(Case *c); } steps[] = {
        { ACTION_CHECK_DRIVER, run_driver },   { ACTION_CHECK_VERSIONS, run_versions },
        { ACTION_MAKE_NODES, run_nodes },      { ACTION_MAKE_CHANNEL, run_channel },
        { ACTION_AWAIT_IMEX, run_imex },       { ACTION_RESERVE_PAGES, run_pages },
        { ACTION_SET_SYSCTL, run_sysctl },     { ACTION_LOAD_MODULE, run_module },
        { ACTION_CHECK_EFA, run_efa },         { ACTION_AWAIT_DEVICES, run_devices },
        { ACTION_MARK_NODE, run_taint },      { ACTION_IMPORT_IMAGE, run_image },
        { ACTION_CREATE_RAID, run_raid },      { ACTION_MOUNT, run_disk },
        { ACTION_MOVE_FILES, run_filling },    { ACTION_PRUNE_FILES, run_waited },
        { ACTION_PRUNE_FILES, run_look },      { ACTION_RELOAD_NETWORKD, run_networkd },
        { ACTION_FORGET_STATE, run_state },    { ACTION_PIN_IMAGE, run_pin },
};

/* A step that fails says why, and a finding can be written as JSON. */
static void run(const Root *root, unsigned which, unsigned form) {
        Action action = { .id = (char *)"step", .type = steps[which].type, .target = (char *)"target",
                          .lenient = form & BIT(3) };
        Work w = { .root = root, .action = &action, .deadline_usec = now_usec() + 5 * USEC_PER_SEC,
                   .cancel_fd = -1, .early = form & BIT(4) };
        int r = steps[which].run(&(Case){ &w, &action, form });
        if (r < 0 && (!w.text || !*w.text || w.cause == CAUSE_NONE))
                abort();
        _free_ char *found = w.found ? json_dumps(w.found, 0) : NULL;
        if (w.found && !found)
                abort();
        free(w.text);
        json_decref(w.found);
        diag_done(&w.warnings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(diag_done) Diag diag = {};
        if (size < 2 || size > MAX_INPUT || data[0] < 'a' || data[0] - 'a' >= (int)ARRAY_SIZE(steps))
                return 0;
        log_set_level(LOG_EMERG);
        if (hash_load(&diag) < 0)
                abort();
        Tree tree = tree_new();
        tree_unpack(&tree, (const char *)data + 2, (const char *)data + size);
        answers_read(tree.root);
        run(tree.root, data[0] - 'a', data[1]);
        answers_done();
        tree_done(&tree);
        return 0;
}
