/* SPDX-License-Identifier: Apache-2.0
 * The disk of "/dev/xvdb", "vol-0123" or "/dev/nvme1n1" in a configuration. On Nitro the vendor part of the
 * NVMe identify page has the launch template name, and amazon-ec2-utils makes a udev link of it.
 * https://docs.aws.amazon.com/ebs/latest/userguide/nvme-ebs-volumes.html, amazonlinux/amazon-ec2-utils,
 * ebsnvme-id. We read the page, too: an image may lack the rules, and udev may be late. */
#include "host/detect.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NVME_IDENTIFY       0x06 /* NVM Express base specification, "Identify command" */
#define NVME_CONTROLLER     1    /* its CNS */
#define VENDOR_OFFSET       3072
#define VENDOR_NAME_SIZE    32

char *volume_name_parse(const void *page) {
        const char *name = (const char *)page + VENDOR_OFFSET;
        size_t n = 0;
        /* padded with blanks or zeros; other bytes: not a name */
        while (n < VENDOR_NAME_SIZE && name[n] > ' ' && name[n] < 0x7f)
                n++;
        for (size_t i = 0; i < n; i++)
                if (!((name[i] | 0x20) >= 'a' && (name[i] | 0x20) <= 'z') && !is_digit(name[i]) &&
                    !strchr("/_-", name[i]))
                        return NULL;
        _free_ char *text = xstrndup(name, n);
        const char *bare = startswith(text, "/dev/") ? text + strlen("/dev/") : text;
        return *bare && !streq(bare, "none") && !strchr(bare, '/') ? xstrdup(text) : NULL;
}

/* Without a timeout of our own, at which Linux would reset the controller, even of a root disk. */
int volume_name_read(int fd, char **ret) {
        _free_ char *page = xcalloc(NVME_IDENTIFY_SIZE, 1);
        struct nvme_admin_cmd command = {
                .opcode = NVME_IDENTIFY,
                .addr = (uintptr_t)page,
                .data_len = NVME_IDENTIFY_SIZE,
                .cdw10 = NVME_CONTROLLER,
        };
        int r = ioctl(fd, NVME_IOCTL_ADMIN_CMD, &command);
        if (r != 0) /* controller errors are positive */
                return r < 0 ? -errno : -EIO;
        *ret = volume_name_parse(page);
        return 0;
}

bool disk_is_volume(const Disk *d) {
        return d->kind == DISK_EBS || (!d->model && startswith(d->name, "xvd"));
}

static void add_name(Disk *d, const char *name) {
        _free_ char *canonical = volume_canonical(name);
        if (!strv_contains(d->names, canonical))
                strv_push(&d->names, TAKE_PTR(canonical));
}

/* Kept, since a wait looks at the disks many times. A new disk of the same name has another serial number. */
typedef struct Answer { char *disk, *name; } Answer;
static Answer *answers;
static size_t n_answers;

/* Needs root. */
static void add_vendor_name(const Root *root, Disk *d) {
        _free_ char *path = xasprintf("/dev/%s", d->name), *name = NULL,
                    *disk = xasprintf("%s %s", d->name, d->serial ?: "");
        const Answer *known = FIND(a, answers, n_answers, streq(a->disk, disk));
        if (known)
                name = xstrdup_or_null(known->name);
        else {
                _cleanup_(close_fd) int fd = root_open(root, path, O_RDONLY | O_NONBLOCK);
                if (fd < 0 || volume_name_read(fd, &name) < 0)
                        return;
                *APPEND(answers, n_answers) = (Answer){ TAKE_PTR(disk), xstrdup_or_null(name) };
        }
        if (name)
                add_name(d, name);
}

bool volume_to_ask(const Disk *d) {
        bool named = false;
        STRV_FOREACH(name, d->names)
                named = named || startswith(*name, "xvd");
        return d->kind == DISK_EBS && !named;
}

bool volumes_unresolved(const Config *config, const Host *h) {
        const Disk *second;
        return ANY(v, config->instance.volumes, config->instance.n_volumes,
                   !host_volume(h, v->device, &second));
}

static void add_link(const Root *root, const char *path, const char *device, Host *h) {
        _free_ char *leads_to = NULL;
        if (root_link_name(root, path, &leads_to) < 0)
                return;
        for (Disk *d = h->disks; d < h->disks + h->n_disks; d++)
                if (streq(d->name, leads_to))
                        add_name(d, device);
}

/* udev links for a configured name, "/dev/xvdb" as well as "/dev/sdb". */
static void add_links(const Root *root, const char *device, Host *h) {
        _free_ char *canonical = volume_canonical(device);
        char *const paths[] = {
                xasprintf("/dev/%s", canonical),
                startswith(canonical, "xvd") ? xasprintf("/dev/sd%s", canonical + 3) : NULL,
                startswith(canonical, "vol-")
                        ? xasprintf("/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol%s", canonical + 4)
                        : NULL,
        };
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                _free_ char *path = paths[i];
                if (path)
                        add_link(root, path, device, h);
        }
}

/* udev links for all other names spare their controllers the question. */
static void add_all_links(const Root *root, Host *h) {
        _strv_ char **names = NULL;
        if (root_list(root, "/dev", &names) < 0)
                return;
        STRV_FOREACH(name, names) {
                _free_ char *path = xasprintf("/dev/%s", *name);
                if (startswith(*name, "xvd") || startswith(*name, "sd"))
                        add_link(root, path, *name, h);
        }
}

void detect_volume_names(const Root *root, const Config *config, Host *h) {
        for (Disk *d = h->disks; d < h->disks + h->n_disks; d++) {
                add_name(d, d->name);
                if (d->kind == DISK_EBS && d->serial && startswith(d->serial, "vol"))
                        add_name(d, d->serial);
        }
        for (size_t i = 0; i < config->instance.n_volumes; i++)
                add_links(root, config->instance.volumes[i].device, h);
        add_all_links(root, h);
        bool ask = root_is_host(root) && volumes_unresolved(config, h);
        for (Disk *d = h->disks; ask && d < h->disks + h->n_disks; d++)
                if (volume_to_ask(d))
                        add_vendor_name(root, d);
}

void volume_names_remember(const Root *root) {
        _cleanup_(diag_done) Diag diag = {};
        Host h = {};
        if (detect_disks(root, &h, &diag) >= 0)         /* otherwise detection reports */
                add_all_links(root, &h);
        for (Disk *d = h.disks; d < h.disks + h.n_disks; d++)
                if (volume_to_ask(d))
                        add_vendor_name(root, d);
        disks_clear(&h);
}

const Disk *host_volume(const Host *host, const char *device, const Disk **ret_second) {
        _free_ char *canonical = volume_canonical(device);
        const Disk *first = NULL;
        *ret_second = NULL;
        for (const Disk *d = host->disks; d < host->disks + host->n_disks; d++)
                if (strv_contains(d->names, canonical)) {
                        *ret_second = first ? d : NULL;
                        first = first ?: d;
                }
        return first;
}
