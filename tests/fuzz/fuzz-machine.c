/* SPDX-License-Identifier: Apache-2.0
 * A machine as a tree of files (tree.h: /sys, /proc, /etc, /run/udev) → Host → a plan with every use of
 * its disks. Other readers of these places run, too: interfaces, decisions about them, checks of the
 * hardware.
 * The content of a disk stands in /dev/NAME as a word: "blank", "fs TYPE LABEL", "md NAME LEVEL DISKS
 * ROLE". */
#include "sample.h"
#include "tree.h"

#include "health/health.h"
#include "host/detect.h"
#include "nic/nic.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ID "i-0123456789abcdef0"

/* ---- in the place of the process that reads disks ---- */

static const Root *machine;

int prober_start(const Root *root, Prober *ret, Diag *diag) {
        (void)root, (void)diag;
        ret->child = 1;
        return 0;
}

void prober_ask(Prober *p, const Probed *all, size_t n, uint64_t timeout_usec) {
        (void)p, (void)all, (void)n, (void)timeout_usec;
}

static void probe(Probed *p) {
        _free_ char *line = NULL;
        char words[2][32] = { "", "" };
        unsigned disks = 0;
        Content *c = &p->content;
        p->result = root_read_line(machine, p->path, &line);
        c->kind = CONTENT_UNREADABLE;
        if (p->result < 0)
                return;
        if (streq(line, "blank"))
                c->kind = CONTENT_BLANK;
        else if (sscanf(line, "fs %31s %31s", words[0], words[1]) >= 1) {
                c->kind = CONTENT_FILESYSTEM;
                c->label = xstrdup(words[1]);
                c->uuid = xstrdup("3aaa0122-2982-7cfa-5331-ad66ca767371");
        } else if (sscanf(line, "md %31s %d %u %d", words[0], &c->raid.level, &disks, &c->raid.role) == 4) {
                c->kind = CONTENT_RAID_MEMBER;
                c->raid.uuid = xstrdup("3aaa0122:29827cfa:5331ad66:ca767371");
                c->raid.name = xstrdup(words[0]);
                c->raid.disks = disks;
        }
        if (c->kind == CONTENT_UNREADABLE)
                c->error = xstrdup(line);
        else if (c->kind != CONTENT_BLANK)
                c->type = xstrdup(c->kind == CONTENT_RAID_MEMBER ? "linux_raid_member" : words[0]);
}

int prober_take(Prober *p, Probed *all, size_t n, Diag *diag) {
        (void)p, (void)diag;
        for (size_t i = 0; i < n; i++)
                probe(&all[i]);
        return 0;
}

void prober_end(Prober *p) {
        p->child = 0;
}

/* ---- host and plan ---- */

static void plan(Sample *s, const Host *host) {
        int r = plan_make(&s->config, host, &s->options, &s->plan, &s->diag);
        if (r < 0) {
                if (!diag_first_error(&s->diag))
                        abort();
                return;
        }
        _cleanup_(json_decrefp) json_t *json = plan_to_json(s->plan);
        _free_ char *text = plan_to_text(s->plan), *dump = json_dumps(json, 0);
        if (!text || !dump)
                abort();
}

static void detect(const Root *root, StorageStrategy strategy, bool volumes) {
        static char place[] = "/mnt/k8s-disks", device[] = "/dev/xvdb", key[] = "xvdb", data[] = "/data";
        char *targets[] = { data, NULL }, *folders[] = { (char *)"", NULL };
        Volume volume = { .device = device, .key = key, .targets = targets, .folders = folders, .whole = true,
                          .filesystem = FILESYSTEM_XFS };
        bool given = root_exists(root, "/etc/eks/kubelet-version.txt") > 0;
        const HostOptions options = { .kubelet_version = given ? NULL : "1.34.2",
                                      .containerd_version = given ? NULL : "2.1.5",
                                      .storage = true };
        Sample s = sample_new();
        Host *host = NULL;
        s.config.instance.storage.strategy = strategy;
        s.config.instance.storage.mount_path = place;
        if (volumes) {
                s.config.instance.volumes = &volume;
                s.config.instance.n_volumes = 1;
        }
        int r = host_detect(root, &s.config, &options, &host, &s.diag);
        if ((r < 0) != (diag_first_error(&s.diag) != NULL))
                abort();
        if (r >= 0) {
                _cleanup_(json_decrefp) json_t *json = host_to_json(host);
                _free_ char *text = json_dumps(json, 0);
                if (!text)
                        abort();
                plan(&s, host);
        }
        host_free(host);
        sample_done(&s);
}

/* ---- interfaces, hardware ---- */

static void look(const Root *root) {
        char *addresses[] = { (char *)"0000:00:1e.0", (char *)"0000:10:1b.0", (char *)"0000:20:1b.0", NULL };
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(interfaces_done) Interfaces interfaces = {};
        _cleanup_(decisions_done) Decisions decisions = {};
        _cleanup_(findings_done) Findings f = {};
        int r = interfaces_read(root, &interfaces, &diag);
        if (r >= 0)
                r = decisions_read(root, ID, &decisions, &diag);
        if ((r < 0) != (diag_first_error(&diag) != NULL))
                abort();
        for (size_t i = 0; i < interfaces.n; i++)
                (void)!decision_find(&decisions, interfaces.items[i].mac, interfaces.items[i].name);
        health_pcie(root, "GPU", addresses, &f);
        health_efa_ports(root, addresses, &f);
        free(health_gpudirect(root, true, true, false, &f));
        free(health_gpudirect(root, true, false, true, &f));
        for (size_t i = 0; i < f.n; i++)
                if (!*f.items[i].text)
                        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const StorageStrategy strategies[] = { STORAGE_RAID0, STORAGE_RAID10, STORAGE_MOUNT,
                                                      STORAGE_NONE };
        if (size < 1 || size > MAX_INPUT)
                return 0;
        Tree tree = tree_new();
        machine = tree.root;
        tree_unpack(&tree, (const char *)data + 1, (const char *)data + size);
        detect(tree.root, strategies[data[0] & 3], data[0] & 4);
        look(tree.root);
        tree_done(&tree);
        return 0;
}
