/* SPDX-License-Identifier: Apache-2.0
 * Finds the disk that a name of the configuration means, by sysfs, links below /dev and the NVMe identify
 * page. */
#include "host/detect.h"

#include "test.h"
#include "base/run.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <linux/nvme_ioctl.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define EBS "Amazon Elastic Block Store              \n"

/* ---- the controller: stands in for ioctl(2) ---- */

static char page[NVME_IDENTIFY_SIZE];
static int ioctl_result;

int ioctl(_unused_ int fd, unsigned long request, ...) {
        va_list ap;
        va_start(ap, request);
        const struct nvme_admin_cmd *command = va_arg(ap, const struct nvme_admin_cmd *);
        va_end(ap);
        ASSERT_EQ(request, NVME_IOCTL_ADMIN_CMD);
        ASSERT_EQ(command->opcode, 6);
        ASSERT_EQ(command->cdw10, 1);
        ASSERT_EQ(command->data_len, sizeof page);
        ASSERT_EQ(command->timeout_ms, 0);  /* the default: at the end of any other the kernel resets the controller */
        if (ioctl_result < 0) {
                errno = -ioctl_result;
                return -1;
        }
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): the interface of the kernel */
        memcpy((void *)(uintptr_t)command->addr, page, sizeof page);
        return ioctl_result;
}

TEST(the_device_name_is_read_from_the_nvme_identify_page) {
        static const struct { const char *bytes, *name; } cases[] = {
                { "/dev/sdf                        ", "/dev/sdf" }, { "xvdf                            ", "xvdf" }, { "sdb", "sdb" },
                { "nvme1n1                         ", "nvme1n1" }, { "/dev/xvdba                      ", "/dev/xvdba" },
                { "", NULL }, { "                                ", NULL }, { "none                            ", NULL },
                { "ephemeral0:sdb                  ", NULL }, { "/dev/../etc/passwd              ", NULL }, { "a\x01", "a" }, { "\xff\xff", NULL },
                { "abcdefghijklmnopqrstuvwxyzabcdefTHIS-IS-BEHIND", "abcdefghijklmnopqrstuvwxyzabcdef" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *name = NULL;
                memset(page, 0, sizeof page);
                memcpy(page + 3072, cases[i].bytes, strlen(cases[i].bytes));
                ioctl_result = 0;
                ASSERT_OK(volume_name_read(0, &name));
                if (!cases[i].name)
                        ASSERT_TRUE(!name);
                else
                        ASSERT_STREQ(name, cases[i].name);
        }
}

TEST(a_controller_that_refuses_the_command_is_an_error) {
        _free_ char *name = NULL;
        ioctl_result = -EACCES;
        ASSERT_ERROR(volume_name_read(0, &name), EACCES);
        ioctl_result = 0x2002;                                  /* invalid field, do not retry */
        ASSERT_ERROR(volume_name_read(0, &name), EIO);
        ASSERT_TRUE(!name);
}

/* ---- a tree of sysfs and /dev ---- */

typedef struct Tree { char dir[32]; Root *root; Diag diag; Host *host; Volume volumes[8]; Config config; } Tree;

static void tree_done(Tree *t) {
        _cleanup_(child_result_done) ChildResult c = {};
        host_free(t->host);
        root_free(t->root);
        diag_done(&t->diag);
        ASSERT_OK(child_run((char *[]){ (char *)"rm", (char *)"-r", t->dir, NULL }, 60 * USEC_PER_SEC, 4096, &c));
}

static void tree_open(Tree *t) {
        strcpy(t->dir, P_tmpdir "/test-volume-XXXXXX");
        ASSERT_TRUE(mkdtemp(t->dir));
        ASSERT_OK(root_new(t->dir, &t->root));
        t->config.instance.volumes = t->volumes;
}
#define TREE(name) _cleanup_(tree_done) Tree name = {}; tree_open(&name)

static void put(Tree *t, const char *path, const char *text) {
        ASSERT_OK(root_replace(t->root, path, text, strlen(text), 0644));
}

static void add_disk(Tree *t, const char *name, const char *model, const char *serial) {
        _free_ char *model_path = xasprintf("/sys/block/%s/device/model", name), *serial_path = xasprintf("/sys/block/%s/device/serial", name),
                    *size = xasprintf("/sys/block/%s/size", name), *other = xasprintf("/sys/block/%s/device/uevent", name);
        put(t, other, "");
        put(t, size, "2097152\n");
        if (model)
                put(t, model_path, model);
        if (serial)
                put(t, serial_path, serial);
}

static void add_link(Tree *t, const char *path, const char *leads_to) {
        _free_ char *full = xasprintf("%s%s", t->dir, path), *parent = xstrndup(path, (size_t)(strrchr(path, '/') - path));
        ASSERT_OK(root_make_dirs(t->root, parent, 0755));
        ASSERT_EQ(symlink(leads_to, full), 0);
}

static void want(Tree *t, const char *device) {
        t->volumes[t->config.instance.n_volumes++] = (Volume){ .device = (char *)device };
}

/* the disk that is found, "nothing", or "two" */
static const char *found(Tree *t, const char *device) {
        const Disk *second = NULL, *d;
        t->host = host_free(t->host);
        t->host = xcalloc(1, sizeof *t->host);
        ASSERT_OK(detect_disks(t->root, t->host, &t->diag));
        detect_volume_names(t->root, &t->config, t->host);
        d = host_volume(t->host, device, &second);
        return !d ? "nothing" : second ? "two" : d->name;
}

static void two_volumes(Tree *t) {
        add_disk(t, "nvme0n1", EBS, "vol0aaaaaaaaaaaaaaaa\n");
        add_disk(t, "nvme1n1", EBS, "vol0bbbbbbbbbbbbbbbb\n");
        add_disk(t, "nvme2n1", "Amazon EC2 NVMe Instance Storage\n", "AWS1\n");
}

TEST(a_volume_is_found_by_its_id_and_its_kernel_name) {
        TREE(t);
        two_volumes(&t);
        ASSERT_STREQ(found(&t, "vol-0bbbbbbbbbbbbbbbb"), "nvme1n1");
        ASSERT_STREQ(found(&t, "vol0bbbbbbbbbbbbbbbb"), "nvme1n1");
        ASSERT_STREQ(found(&t, "/dev/nvme1n1"), "nvme1n1");
        ASSERT_STREQ(found(&t, "nvme0n1"), "nvme0n1");
        ASSERT_STREQ(found(&t, "vol-0bbbbbbbbbbbbbbb"), "nothing");
        ASSERT_STREQ(found(&t, "/dev/xvdb"), "nothing");
        ASSERT_STREQ(found(&t, "/dev/nvme1n1p1"), "nothing");
        ASSERT_TRUE(disk_is_volume(&t.host->disks[0]) && !disk_is_volume(&t.host->disks[2]));
}

TEST(a_volume_is_found_by_links_in_dev) {
        TREE(t);
        two_volumes(&t);
        want(&t, "/dev/sdb");
        want(&t, "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0aaaaaaaaaaaaaaaa");
        want(&t, "/dev/xvdz");
        add_link(&t, "/dev/xvdb", "nvme1n1");
        add_link(&t, "/dev/xvdz", "nvme2n1");
        add_link(&t, "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0aaaaaaaaaaaaaaaa", "../../nvme0n1");
        ASSERT_STREQ(found(&t, "/dev/sdb"), "nvme1n1");
        ASSERT_STREQ(found(&t, "xvdb"), "nvme1n1");
        ASSERT_STREQ(found(&t, "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0aaaaaaaaaaaaaaaa"), "nvme0n1");
        ASSERT_STREQ(found(&t, "/dev/xvdz"), "nvme2n1");        /* an instance store */
}

TEST(links_sdb_and_xvdb_to_different_disks_are_two_matches) {
        TREE(t);
        two_volumes(&t);
        want(&t, "/dev/sdb");
        add_link(&t, "/dev/xvdb", "nvme1n1");
        add_link(&t, "/dev/sdb", "nvme0n1");
        ASSERT_STREQ(found(&t, "/dev/sdb"), "two");
}

/* An admin command is a risk for the controller of the root disk. */
TEST(only_ebs_disks_without_a_link_get_a_command_if_a_name_is_missing) {
        TREE(t);
        two_volumes(&t);
        add_link(&t, "/dev/xvda", "nvme0n1");
        want(&t, "vol-0bbbbbbbbbbbbbbbb");
        ASSERT_STREQ(found(&t, "xvda"), "nvme0n1");             /* no name of the configuration */
        ASSERT_TRUE(!volumes_unresolved(&t.config, t.host));
        want(&t, "/dev/sdb");
        ASSERT_STREQ(found(&t, "/dev/sdb"), "nothing");
        ASSERT_TRUE(volumes_unresolved(&t.config, t.host));
        ASSERT_TRUE(!volume_to_ask(&t.host->disks[0]));
        ASSERT_TRUE(volume_to_ask(&t.host->disks[1]));
        ASSERT_TRUE(!volume_to_ask(&t.host->disks[2]));         /* no EBS volume */
        add_link(&t, "/dev/sdb", "nvme1n1");
        ASSERT_STREQ(found(&t, "/dev/sdb"), "nvme1n1");
        ASSERT_TRUE(!volumes_unresolved(&t.config, t.host));
}

TEST(on_xen_sdb_means_xvdb) {
        TREE(t);
        add_disk(&t, "xvda", NULL, NULL);
        add_disk(&t, "xvdb", NULL, NULL);
        want(&t, "/dev/sdb");
        ASSERT_STREQ(found(&t, "/dev/sdb"), "xvdb");
        ASSERT_TRUE(disk_is_volume(&t.host->disks[1]));
}

TEST_MAIN
