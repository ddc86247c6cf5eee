/* SPDX-License-Identifier: Apache-2.0
 * Storage as host_detect() sees it, on the fixture root "stores": arrays, mounts and directories, and how the
 * facts show them. */
#include "host/detect.h"

#include "superblock.h"
#include "test.h"
#include "base/run.h"
#include "base/str.h"
#include "base/time.h"
#include "disk/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <sys/fanotify.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- waiting: stands in for src/host/wait.c ---- */

static unsigned waits, waited_for;
static int wait_result;
static const char *arrives;             /* this disk is there after the wait */
static char *arrives_below;

int wait_for_disks(_unused_ const Root *root, _unused_ const Config *config, unsigned expected, _unused_ const HostOptions *options, Diag *diag) {
        waits++;
        waited_for = expected;
        if (arrives) {
                _free_ char *old = xasprintf("%s/sys/%s", arrives_below, arrives), *new = xasprintf("%s/sys/block/%s", arrives_below, arrives);
                ASSERT_EQ(rename(old, new), 0);
        }
        return wait_result < 0 ? diag_error(diag, wait_result, CAUSE_INTERRUPTED, "stopped while waiting for disks") : wait_result;
}

/* ---- one detection ---- */

typedef struct Run { Root *root; Host *host; Diag diag; Config config; HostOptions options; char dir[40]; } Run;

static void run_program(char *const *argv) {
        _cleanup_(child_result_done) ChildResult c = {};
        ASSERT_OK(child_run(argv, 60 * USEC_PER_SEC, 4096, &c));
        if (c.status != 0)
                FAIL("%s: %s", argv[0], c.errors);
}

static void run_done(Run *r) {
        host_free(r->host);
        root_free(r->root);
        diag_done(&r->diag);
        run_program((char *[]){ (char *)"rm", (char *)"-r", r->dir, NULL });
}

static void run_open(Run *r, const char *fixture) {
        strcpy(r->dir, P_tmpdir "/test-storage-XXXXXX");
        ASSERT_TRUE(mkdtemp(r->dir));
        run_program((char *[]){ (char *)"tests/fixtures/expand.sh", (char *)fixture, r->dir, NULL });
        ASSERT_OK(root_new(r->dir, &r->root));
        r->config.instance.storage = (LocalStorage){ .strategy = STORAGE_RAID0, .mount_path = (char *)"/mnt/k8s-disks" };
        r->options.storage = true;
        waits = waited_for = 0;
        wait_result = 1;
        arrives = NULL;
        arrives_below = r->dir;
}

#define RUN(name, fixture) _cleanup_(run_done) Run name = {}; run_open(&name, fixture)

static int run_detect(Run *r) {
        r->host = host_free(r->host);
        return host_detect(r->root, &r->config, &r->options, &r->host, &r->diag);
}

static const Storage *run_ok(Run *r) {
        int result = run_detect(r);
        const Diagnostic *e = diag_first_error(&r->diag);
        if (result < 0)
                FAIL("detection: %s", e ? e->text : "failed without a word");
        return &r->host->storage;
}

static void run_write(Run *r, const char *path, const char *text) {
        ASSERT_TRUE(root_replace(r->root, path, text, strlen(text), 0644) >= 0);
}

static void run_fails(Run *r, Cause cause, const char *word, const char *other) {
        ASSERT_TRUE(run_detect(r) < 0);
        const Diagnostic *e = diag_first_error(&r->diag);
        ASSERT_TRUE(e);
        _free_ char *text = diagnostic_format(e);
        ASSERT_STREQ(cause_word(e->cause), cause_word(cause));
        ASSERT_CONTAINS(text, word);
        ASSERT_CONTAINS(text, other);
        diag_done(&r->diag);
        r->diag = (Diag){};
}

static const Disk *disk(const Host *h, const char *name) {
        for (size_t i = 0; i < h->n_disks; i++)
                if (streq(h->disks[i].name, name))
                        return &h->disks[i];
        FAIL("no disk %s", name);
}

static const Array *array(const Storage *s, const char *name) {
        for (size_t i = 0; i < s->n_arrays; i++)
                if (streq(s->arrays[i].name, name))
                        return &s->arrays[i];
        FAIL("no array %s", name);
}

static void join_is(char *const *v, const char *want) {
        _free_ char *joined = strv_join(v, " ");
        ASSERT_STREQ(joined, want);
}

/* ---- disks ---- */

TEST(disks_have_their_number_holders_partitions_and_content) {
        RUN(r, "stores");
        ASSERT_TRUE(run_ok(&r)->looked);
        ASSERT_TRUE(!r.host->storage.not_looked);
        const Disk *d = disk(r.host, "nvme1n1");
        ASSERT_STREQ(d->number, "259:2");
        ASSERT_TRUE(d->in_use && !d->read_only && !d->partitions);
        join_is(d->holders, "md127");
        ASSERT_EQ(d->content.kind, CONTENT_BLANK);
        d = disk(r.host, "nvme3n1");
        ASSERT_TRUE(!d->in_use && d->read_only && !d->holders);
        ASSERT_STREQ(d->content.type, "dos");
        d = disk(r.host, "nvme0n1");
        ASSERT_TRUE(d->in_use);
        join_is(d->partitions, "nvme0n1p1");
        ASSERT_EQ(d->content.kind, CONTENT_UNKNOWN);    /* EBS volumes do not count; there is no dev/nvme0n1 */
        ASSERT_EQ(waits, 0);
}

TEST(the_random_uuid_of_the_kernel_is_read) {
        RUN(r, "stores");
        ASSERT_TRUE(!run_ok(&r)->chance);
        run_write(&r, "/proc/sys/kernel/random/uuid", "6c5b6a0e-0f9c-4a57-8f0e-6a9c4d1f2b3a\n");
        ASSERT_STREQ(run_ok(&r)->chance, "6c5b6a0e-0f9c-4a57-8f0e-6a9c4d1f2b3a");
}

TEST(without_local_storage_disks_and_mounts_are_not_read) {
        RUN(r, "stores");
        run_write(&r, "/proc/self/mountinfo", "rubbish\n");
        run_write(&r, "/sys/block/nvme1n1/ro", "rubbish\n");
        r.config.instance.storage.strategy = STORAGE_NONE;
        r.options.disks_timeout_usec = 1;
        const Storage *s = run_ok(&r);
        ASSERT_TRUE(!s->looked && !s->not_looked && !s->n_arrays && !r.host->disks[1].number);
        r.config.instance.storage.strategy = STORAGE_RAID0;
        r.options.storage = false;
        s = run_ok(&r);
        ASSERT_TRUE(!s->looked && !s->not_looked);
        ASSERT_EQ(waits, 0);
        json_t *facts = host_to_json(r.host);
        ASSERT_TRUE(!json_object_get(facts, "storage"));
        ASSERT_TRUE(!json_object_get(json_array_get(json_object_get(facts, "disks"), 1), "holders"));
        json_decref(facts);
}

TEST(an_invalid_sysfs_file_of_a_disk_is_an_error) {
        RUN(r, "stores");
        run_write(&r, "/sys/block/nvme1n1/ro", "perhaps\n");
        run_fails(&r, CAUSE_FACTS, "/sys/block/nvme1n1/ro", "cannot tell if this disk is writable");
}

TEST(a_missing_device_node_is_the_reason_for_no_look_at_disks) {
        RUN(r, "stores");
        ASSERT_EQ(root_remove(r.root, "/dev/nvme2n1"), 1);
        const Storage *s = run_ok(&r);
        ASSERT_TRUE(!s->looked && !s->n_arrays && !s->n_mounts);
        ASSERT_STREQ(s->not_looked, "/dev/nvme2n1 does not exist");
        ASSERT_EQ(r.host->disks[1].content.kind, CONTENT_UNKNOWN);
        json_t *facts = host_to_json(r.host), *o = json_object_get(facts, "storage");
        ASSERT_TRUE(json_is_false(json_object_get(o, "looked")));
        ASSERT_STREQ(json_string_value(json_object_get(o, "notLooked")), "/dev/nvme2n1 does not exist");
        ASSERT_TRUE(!json_object_get(o, "arrays"));
        json_decref(facts);
}

static const Storage *as_nobody(Run *r) {
        uid_t user = geteuid();
        if (user == 0)
                ASSERT_EQ(seteuid(65534), 0);
        const Storage *s = run_ok(r);
        if (user == 0)
                ASSERT_EQ(seteuid(0), 0);
        return s;
}

TEST(only_root_can_read_what_its_mode_hides) {
        RUN(r, "stores");
        _free_ char *device = xasprintf("%s/dev/nvme1n1", r.dir), *folder = xasprintf("%s/var/lib/kubelet", r.dir);
        ASSERT_EQ(chmod(r.dir, 0755), 0);
        ASSERT_EQ(chmod(device, 0600), 0);
        if (geteuid() != 0)
                ASSERT_EQ(chmod(device, 0), 0);
        ASSERT_STREQ(as_nobody(&r)->not_looked, "only root can read disks");
        ASSERT_TRUE(!r.host->storage.looked);
        ASSERT_EQ(chmod(device, 0644), 0);
        ASSERT_EQ(chmod(folder, 0), 0);
        ASSERT_STREQ(as_nobody(&r)->not_looked, "only root can read /var/lib/kubelet");
        ASSERT_EQ(chmod(folder, 0755), 0);
        ASSERT_TRUE(as_nobody(&r)->looked);
        ASSERT_EQ(r.diag.n, 0);
}

TEST(a_model_has_no_disks_to_look_at) {
        RUN(r, "none");
        r.options.instance_type = "p5.48xlarge";
        ASSERT_STREQ(run_ok(&r)->not_looked, "a machine given with --instance-type has no disks to look at");
        r.options.storage = false;
        ASSERT_TRUE(!run_ok(&r)->not_looked);
}

/* ---- a disk that does not answer ---- */

/* The kernel holds up each open of the file until a listener allows it (fanotify(7)), which happens when
 * *guard closes. */
static bool silence(const Run *r, const char *path, int *guard) {
        _free_ char *file = xasprintf("%s%s", r->dir, path);
        *guard = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);
        return *guard >= 0 && fanotify_mark(*guard, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, file) == 0;
}

TEST(a_disk_that_does_not_answer_is_unreadable) {
        RUN(r, "stores");
        _cleanup_(close_fd) int guard = -1;
        if (!silence(&r, "/dev/nvme1n1", &guard))
                SKIP("no fanotify permission events");
        r.options.answer_timeout_usec = 5 * USEC_PER_SEC;
        ASSERT_TRUE(run_ok(&r)->looked);
        const Disk *d = disk(r.host, "nvme1n1");
        ASSERT_EQ(d->content.kind, CONTENT_UNREADABLE);
        ASSERT_STREQ(d->content.error, "it did not answer within 5 s");
        ASSERT_EQ(disk(r.host, "nvme2n1")->content.kind, CONTENT_BLANK);        /* the others are read */
        ASSERT_STREQ(disk(r.host, "nvme3n1")->content.type, "dos");
        ASSERT_EQ(array(&r.host->storage, "md127")->content.kind, CONTENT_BLANK);
}

TEST(an_array_that_does_not_answer_is_unreadable) {
        RUN(r, "stores");
        _cleanup_(close_fd) int guard = -1;
        if (!silence(&r, "/dev/md127", &guard))
                SKIP("no fanotify permission events");
        r.options.answer_timeout_usec = 5 * USEC_PER_SEC;
        ASSERT_EQ(array(run_ok(&r), "md127")->content.kind, CONTENT_UNREADABLE);
        ASSERT_EQ(disk(r.host, "nvme1n1")->content.kind, CONTENT_BLANK);
}

TEST(sigterm_ends_the_wait_for_a_disk_that_does_not_answer) {
        RUN(r, "stores");
        _cleanup_(close_fd) int guard = -1;
        int status = 0;
        if (!silence(&r, "/dev/nvme1n1", &guard))
                SKIP("no fanotify permission events");
        pid_t child = ASSERT_OK(fork());
        if (child == 0) {               /* a child, since a noted signal stays noted */
                stop_catch();
                raise(SIGTERM);
                r.options.answer_timeout_usec = 3600 * USEC_PER_SEC;
                run_fails(&r, CAUSE_INTERRUPTED, "stopped by SIGTERM", "/dev/nvme1n1");
                _exit(0);
        }
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_EQ(status, 0);
}

TEST(a_prober_that_ends_without_an_answer_is_an_error) {
        RUN(r, "stores");
        _cleanup_(prober_end) Prober prober = {};
        Probed all[] = { { .path = (char *)"/dev/nvme1n1" }, { .path = (char *)"/dev/nvme2n1" } };
        siginfo_t info = {};
        ASSERT_OK(prober_start(r.root, &prober, &r.diag));
        ASSERT_EQ(kill(prober.child, SIGKILL), 0);
        ASSERT_EQ(waitid(P_PID, (id_t)prober.child, &info, WEXITED | WNOWAIT), 0);
        prober_ask(&prober, all, ARRAY_SIZE(all), 3600 * USEC_PER_SEC);
        ASSERT_TRUE(prober_take(&prober, all, ARRAY_SIZE(all), &r.diag) < 0);
        for (size_t i = 0; i < ARRAY_SIZE(all); i++)
                ASSERT_TRUE(all[i].result < 0);
        ASSERT_EQ(diag_count(&r.diag, false), 1);
        ASSERT_CONTAINS(diag_first_error(&r.diag)->text, "exited without an answer");
}

/* ---- waiting ---- */

TEST(disks_that_appear_during_the_wait_are_read) {
        RUN(r, "stores");
        _free_ char *here = xasprintf("%s/sys/block/nvme3n1", r.dir), *away = xasprintf("%s/sys/nvme3n1", r.dir);
        ASSERT_EQ(rename(here, away), 0);
        r.options.disks_timeout_usec = 5 * USEC_PER_SEC;
        r.config.instance.storage.expected_disks = 3;
        arrives = "nvme3n1";
        ASSERT_TRUE(run_ok(&r)->looked);
        ASSERT_EQ(waits, 1);
        ASSERT_EQ(waited_for, 3);
        ASSERT_EQ(r.host->n_disks, 4);
        ASSERT_STREQ(disk(r.host, "nvme3n1")->content.type, "dos");
}

TEST(a_stopped_wait_for_disks_is_an_error) {
        RUN(r, "stores");
        r.options.disks_timeout_usec = 5 * USEC_PER_SEC;
        wait_result = -EINTR;
        run_fails(&r, CAUSE_INTERRUPTED, "stopped", "waiting for disks");
}

TEST(expected_stores_come_from_config_table_or_pci_bus) {
        Config config = {};
        Host host = {};
        InstanceType type = { .disks = 8 };
        ASSERT_EQ(host_expected_stores(&config, &host), 0);
        host.type = &type;
        ASSERT_EQ(host_expected_stores(&config, &host), 8);
        config.instance.storage.expected_disks = 3;
        ASSERT_EQ(host_expected_stores(&config, &host), 3);
        config.instance.storage.expected_disks = 0;
        type.disks = -1;                /* the table does not know */
        ASSERT_EQ(host_expected_stores(&config, &host), 0);
        /* one for each PCI controller of an instance store; other controllers do not count */
        PciDevice pci[] = {
                { .vendor = 0x1d0f, .device = 0x8061, .class = 0x010802 }, { .vendor = 0x1d0f, .device = 0xcd01, .class = 0x010802 },
                { .vendor = 0x1d0f, .device = 0xcd02, .class = 0x010802 }, { .vendor = 0x1b36, .device = 0xcd01, .class = 0x010802 },
                { .vendor = 0x1d0f, .device = 0xcd00, .class = 0x010802 }, { .vendor = 0x1d0f, .device = 0xcd01, .class = 0x020000 },
        };
        host.pci = pci;
        host.n_pci = ARRAY_SIZE(pci);
        ASSERT_EQ(host_expected_stores(&config, &host), 3);
        ASSERT_CONTAINS(host_expected_by(&config, &host), "PCI");
        host.type = NULL;
        ASSERT_EQ(host_expected_stores(&config, &host), 3);
        host.type = &type;
        type.disks = 4;
        ASSERT_EQ(host_expected_stores(&config, &host), 4);
        ASSERT_CONTAINS(host_expected_by(&config, &host), "table");
        config.instance.storage.expected_disks = 1;
        ASSERT_EQ(host_expected_stores(&config, &host), 1);
        ASSERT_STREQ(host_expected_by(&config, &host), "expectedDisks");
        config.instance.storage.expected_disks = 0;
        host.modelled = true;
        type.disks = -1;
        ASSERT_EQ(host_expected_stores(&config, &host), 0);
}

/* Of four controllers on the bus, one has its disk, one has no driver, one has no disk yet; one is of EBS. */
TEST(controllers_of_instance_stores_without_a_disk_are_listed) {
        RUN(r, "stores");
        static const struct { const char *address, *id, *disk; } devices[] = {
                { "0000:00:1c.0", "1D0F:8061", NULL },              { "0000:00:1d.0", "1D0F:CD01", "nvme/nvme1/nvme1c0n1" },
                { "0000:00:1e.0", "1D0F:CD01", NULL },              { "0000:00:1f.0", "1D0F:CD02", "nvme/nvme2/power" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
                _free_ char *dir = xasprintf("/sys/bus/pci/devices/%s/%s", devices[i].address, devices[i].disk ?: "power"),
                            *path = xasprintf("/sys/bus/pci/devices/%s/uevent", devices[i].address),
                            *text = xasprintf("PCI_CLASS=10802\nPCI_ID=%s\n", devices[i].id);
                ASSERT_OK(root_make_dirs(r.root, dir, 0755));
                run_write(&r, path, text);
        }
        join_is(run_ok(&r)->idle, "0000:00:1e.0 0000:00:1f.0");
        ASSERT_EQ(host_expected_stores(&r.config, r.host), 3);
        ASSERT_TRUE(!r.host->storage.named);
        ASSERT_OK(root_make_dirs(r.root, "/dev/md", 0755));
        _free_ char *link = xasprintf("%s/dev/md/kubernetes", r.dir);
        ASSERT_EQ(symlink("../md5", link), 0);
        ASSERT_STREQ(run_ok(&r)->named, "md5");
}

/* ---- arrays ---- */

TEST(arrays_have_their_level_members_holders_and_content) {
        RUN(r, "stores");
        const Storage *s = run_ok(&r);
        ASSERT_EQ(s->n_arrays, 4);
        ASSERT_STREQ(s->arrays[0].name, "md126");
        const Array *a = array(s, "md127");
        ASSERT_STREQ(a->number, "9:127");
        ASSERT_STREQ(a->level, "raid0");
        ASSERT_EQ(a->disks, 2);
        ASSERT_EQ(a->bytes, 61440 * 512);
        ASSERT_TRUE(a->active && !a->degraded && !a->holders && !a->partitions);
        join_is(a->members, "nvme1n1 nvme2n1");
        ASSERT_EQ(a->content.kind, CONTENT_BLANK);
        a = array(s, "md126");
        ASSERT_TRUE(!a->active && !a->level && !a->degraded);
        ASSERT_EQ(a->disks, 0);
        join_is(a->members, "sdb1");
        a = array(s, "md5");
        ASSERT_EQ(a->disks, 4);
        ASSERT_TRUE(a->active && a->degraded);
        join_is(a->members, "sdc sdd");
        join_is(a->holders, "dm-0");
        join_is(a->partitions, "md5p1");
        ASSERT_EQ(a->content.kind, CONTENT_UNKNOWN);    /* none of its members is an instance store */
        ASSERT_TRUE(array(s, "md6")->degraded);
}

TEST(the_content_of_an_array_of_a_partition_is_read) {
        RUN(r, "stores");
        _free_ char *slave = xasprintf("%s/sys/block/md127/slaves", r.dir);
        run_program((char *[]){ (char *)"rm", (char *)"-r", slave, NULL });
        ASSERT_OK(root_make_dirs(r.root, "/sys/block/md127/slaves/nvme3n1p1", 0755));
        ASSERT_EQ(array(run_ok(&r), "md127")->content.kind, CONTENT_UNKNOWN);
        ASSERT_OK(root_make_dirs(r.root, "/sys/block/nvme3n1/nvme3n1p1", 0755));
        ASSERT_EQ(array(run_ok(&r), "md127")->content.kind, CONTENT_BLANK);
        run_write(&r, "/sys/block/md127/md/raid_disks", "18446744073709551616\n");
        ASSERT_EQ(array(run_ok(&r), "md127")->disks, 0);
        run_write(&r, "/sys/block/md127/md/array_state", "inactive\n");
        ASSERT_EQ(array(run_ok(&r), "md127")->content.kind, CONTENT_UNKNOWN);
}

TEST(an_invalid_size_of_an_array_is_an_error) {
        RUN(r, "stores");
        run_write(&r, "/sys/block/md127/size", "much\n");
        run_fails(&r, CAUSE_FACTS, "/sys/block/md127/size", "size");
        run_write(&r, "/sys/block/md127/size", "18446744073709551615\n");
        run_fails(&r, CAUSE_FACTS, "/sys/block/md127/size", "size");
}

/* ---- mounts ---- */

static const char *seen_at(const Storage *s, const char *target) {
        const Mount *m = storage_mount_at(s, target);
        return m ? m->source : "nothing";
}

TEST(mounts_are_read_and_found_by_path) {
        RUN(r, "stores");
        const Storage *s = run_ok(&r);
        ASSERT_EQ(s->n_mounts, 5);
        const Mount *m = storage_mount_at(s, "/var/lib/kubelet");
        ASSERT_STREQ(m->target, "/var/lib/kubelet");
        ASSERT_STREQ(m->source, "/dev/md127");
        ASSERT_STREQ(m->number, "9:127");
        ASSERT_STREQ(m->root, "/kubelet");
        ASSERT_STREQ(m->type, "xfs");
        ASSERT_TRUE(!m->read_only && storage_mount_at(s, "/media")->read_only);
        ASSERT_STREQ(seen_at(s, "/mnt//k8s-disks/./0/"), "/dev/md127");
        ASSERT_STREQ(seen_at(s, "/mnt/k8s-disks"), "nothing");
        ASSERT_STREQ(seen_at(s, "/mnt/k8s-disks/00"), "nothing");
        ASSERT_STREQ(storage_mount_of(s, "/var/lib/kubelet/pods")->source, "/dev/md127");
        ASSERT_STREQ(storage_mount_of(s, "/var/lib")->source, "/dev/nvme0n1p1");
}

static int mounts_parse(const char *text, Storage *s, Diag *diag) {
        _free_ char *copy = xstrdup(text);            /* fmemopen() takes no const */
        FILE *f = fmemopen(copy, strlen(copy), "r");
        ASSERT_TRUE(f);
        int r = mounts_read(f, s, diag);
        fclose(f);
        return r;
}

TEST(mountinfo_may_have_escapes_and_optional_fields) {
        _cleanup_(diag_done) Diag diag = {};
        Storage s = {};
        ASSERT_OK(mounts_parse("36 35 98:0 /a\\040b /mnt/with\\011tab\\134and\\012line\\9 ro,noatime - ext3.x /dev/a\\040b rw\n"
                               "37 35 98:1 / /b rw shared:1 master:2 propagate_from:3 unbindable - fuse.x  rw,lowerdir=/a\\040b,ro\n"
                               "38 35 98:2 / /c rw,romantic - tmpfs none rw,error=ro", &s, &diag));
        ASSERT_EQ(s.n_mounts, 3);
        ASSERT_STREQ(s.mounts[0].target, "/mnt/with\ttab\\and\nline\\9");
        ASSERT_STREQ(s.mounts[0].root, "/a b");
        ASSERT_STREQ(s.mounts[0].source, "/dev/a b");
        ASSERT_TRUE(s.mounts[0].read_only);
        ASSERT_EQ(s.mounts[0].id, 36);
        ASSERT_EQ(s.mounts[0].parent, 35);
        ASSERT_STREQ(s.mounts[1].source, "");
        ASSERT_STREQ(s.mounts[1].type, "fuse.x");
        ASSERT_TRUE(s.mounts[1].read_only);             /* the file system is, the mount is not */
        ASSERT_TRUE(!s.mounts[2].read_only);
        storage_clear(&s);
}

TEST(an_invalid_line_of_mountinfo_is_an_error) {
        static const char *const lines[] = {
                "rubbish", "36 35 98:0 / /mnt rw shared:1", "36 35 98:0 / /mnt rw - xfs", "36 35 98:0 / /mnt rw - xfs /dev/a",
                "x 35 98:0 / /mnt rw - xfs /dev/a rw", "36 -1 98:0 / /mnt rw - xfs /dev/a rw", "-36 35 98:0 / /mnt rw - xfs /dev/a rw",
                "36 35 98 / /mnt rw - xfs /dev/a rw", "36 35 98: / /mnt rw - xfs /dev/a rw", "/dev/a /mnt xfs rw 0 0",
                "36 35 98:0 / mnt rw - xfs /dev/a rw", "36 35 98:0 / /mnt rw -  /dev/a rw",
        };
        for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
                RUN(r, "stores");
                _free_ char *text = xasprintf("27 1 259:1 / / rw - xfs /dev/nvme0n1p1 rw\n%s\n", lines[i]);
                run_write(&r, "/proc/self/mountinfo", text);
                run_fails(&r, CAUSE_FACTS, "/proc/self/mountinfo, line 2: ", "the mounts are not known");
        }
}

TEST(an_fstab_in_place_of_mountinfo_is_an_error) {
        RUN(r, "stores");
        run_write(&r, "/proc/self/mountinfo", "/dev/nvme0n1p1 / xfs rw 0 0\n");
        run_fails(&r, CAUSE_FACTS, "/proc/self/mountinfo, line 1: ", "the mounts are not known");
}

TEST(without_mountinfo_there_are_no_mounts) {
        RUN(r, "stores");
        ASSERT_EQ(root_remove(r.root, "/proc/self/mountinfo"), 1);
        ASSERT_EQ(run_ok(&r)->n_mounts, 0);
}

/* Lines are in the order of ids, not of mounting. Only the parents show which mount hides which. */
TEST(only_a_mount_that_no_other_mount_hides_is_found) {
        static const struct { const char *name, *mountinfo, *target, *want; } cases[] = {
                { "one over another",
                  "27 1 8:1 / / rw - xfs root rw\n40 27 8:2 / /mnt rw - xfs below rw\n41 40 8:3 / /mnt rw - xfs above rw\n", "/mnt", "above" },
                { "the same, moved there from elsewhere",
                  "27 1 8:1 / / rw - xfs root rw\n40 41 8:3 / /mnt rw - xfs above rw\n41 27 8:2 / /mnt rw - xfs below rw\n", "/mnt", "above" },
                { "hidden by a mount above its directory",
                  "27 1 8:1 / / rw - xfs root rw\n40 27 8:2 / /mnt/a rw - xfs hidden rw\n41 27 8:3 / /mnt rw - xfs above rw\n", "/mnt/a", "nothing" },
                { "on the mount above its directory",
                  "27 1 8:1 / / rw - xfs root rw\n40 41 8:2 / /mnt/a rw - xfs here rw\n41 27 8:3 / /mnt rw - xfs above rw\n", "/mnt/a", "here" },
                { "below what is hidden",
                  "27 1 8:1 / / rw - xfs root rw\n39 40 8:4 / /mnt/a/b rw - xfs deep rw\n40 27 8:2 / /mnt/a rw - xfs hidden rw\n"
                  "41 27 8:3 / /mnt rw - xfs above rw\n", "/mnt/a/b", "nothing" },
                { "below what another covers",
                  "27 1 8:1 / / rw - xfs root rw\n40 27 8:2 / /mnt rw - xfs below rw\n41 40 8:3 / /mnt rw - xfs above rw\n"
                  "42 40 8:4 / /mnt/a rw - xfs hidden rw\n", "/mnt/a", "nothing" },
                { "the root of the initrd",
                  "1 1 0:2 / / rw - rootfs rootfs rw\n22 27 0:21 / /proc rw - proc proc rw\n27 1 8:1 / / rw - xfs root rw\n", "/proc", "proc" },
                { "on the root of all",
                  "1 1 8:1 / / rw - xfs root rw\n22 1 0:21 / /proc rw - proc proc rw\n", "/proc", "proc" },
                { "two at one place of one parent",
                  "27 1 8:1 / / rw - xfs root rw\n40 27 8:2 / /mnt rw - xfs first rw\n41 27 8:3 / /mnt rw - xfs second rw\n", "/mnt", "second" },
                { "ids in a circle",
                  "40 41 8:2 / /mnt rw - xfs one rw\n41 40 8:3 / /mnt/a rw - xfs two rw\n", "/mnt/a", "two" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(diag_done) Diag diag = {};
                Storage s = {};
                ASSERT_OK(mounts_parse(cases[i].mountinfo, &s, &diag));
                if (!streq(seen_at(&s, cases[i].target), cases[i].want))
                        FAIL("%s: seen at %s is %s", cases[i].name, cases[i].target, seen_at(&s, cases[i].target));
                storage_clear(&s);
        }
}

TEST(without_ids_the_last_mount_of_a_path_is_found) {
        Mount mounts[] = { { .target = (char *)"/mnt", .source = (char *)"first" }, { .target = (char *)"/", .source = (char *)"root" },
                           { .target = (char *)"/mnt", .source = (char *)"last" } };
        Storage s = { .mounts = mounts, .n_mounts = ARRAY_SIZE(mounts) };
        ASSERT_STREQ(seen_at(&s, "/mnt"), "last");
        ASSERT_STREQ(storage_mount_of(&s, "/mnt/x")->source, "last");
        ASSERT_STREQ(storage_mount_of(&s, "/mn")->source, "root");
}

/* ---- directories ---- */

static const Directory *directory(const Storage *s, const char *path) {
        const Directory *d = storage_directory(s, path);
        if (!d)
                FAIL("nobody looked at %s", path);
        return d;
}

TEST(directories_have_their_kind_and_emptiness) {
        RUN(r, "stores");
        const Storage *s = run_ok(&r);
        ASSERT_EQ(s->n_directories, 6);
        ASSERT_EQ(directory(s, "/mnt/k8s-disks")->kind, DIRECTORY_MISSING);
        ASSERT_TRUE(directory(s, "/mnt/k8s-disks/0")->empty);
        ASSERT_TRUE(!storage_directory(s, "/mnt/k8s-disks/1"));
        const Directory *d = directory(s, "/var/lib/containerd");
        ASSERT_EQ(d->kind, DIRECTORY_THERE);
        ASSERT_TRUE(!d->empty && !d->read_only && !d->on);
        d = directory(s, "/var/lib/kubelet");
        ASSERT_TRUE(d->kind == DIRECTORY_THERE && d->empty);
        ASSERT_EQ(directory(s, "/var/log/pods")->kind, DIRECTORY_NO_DIRECTORY);
        join_is(s->programs, "cp mdadm mkfs.xfs");
}

TEST(a_mount_is_found_through_a_symbolic_link) {
        RUN(r, "stores");
        _free_ char *link = xasprintf("%s/disks", r.dir);
        ASSERT_EQ(symlink("srv/disks", link), 0);
        ASSERT_OK(root_make_dirs(r.root, "/srv/disks/0", 0755));
        run_write(&r, "/proc/self/mountinfo", "1 1 8:1 / / rw - ext4 /dev/sda rw\n2 1 9:127 / /srv/disks/0 rw - xfs /dev/md127 rw\n");
        r.config.instance.storage.mount_path = (char *)"/disks";
        const Storage *s = run_ok(&r);
        ASSERT_STREQ(directory(s, "/disks/0")->real, "/srv/disks/0");
        ASSERT_TRUE(!directory(s, "/var/lib/soci-snapshotter-grpc")->real);
        const Mount *m = storage_mount_at(s, "/disks/0");
        ASSERT_TRUE(m);
        ASSERT_STREQ(m->number, "9:127");
}

/* Directories of a path that a user other than root could change. */
TEST(paths_that_other_users_can_change_are_foreign) {
        static const struct { const char *path, *foreign; bool itself; } cases[] = {
                { "/srv/disks",            NULL,                                                            false },
                { "/srv/../srv/./disks/x", NULL,                                                            false },
                { "/tmp/disks",            "/tmp is writable by users other than root (mode 1777)",           false },
                { "/tmp",                  "/tmp is writable by users other than root (mode 1777)",           true  },
                { "/srv/open",             "/srv/open is writable by users other than root (mode 0757)",      true  },
                { "/srv/to-tmp/disks",     "/tmp is writable by users other than root (mode 1777)",           false },
                { "/srv/through/x",        "/srv/open is writable by users other than root (mode 0757)",      false },
                { "/srv/upwards/disks",    "/tmp is writable by users other than root (mode 1777)",           false },
                { "/srv/circle/x",         NULL,                                                            false },
        };
        static const char *const links[][2] = { { "/tmp", "to-tmp" }, { "open/on", "through" }, { "/srv/disks", "open/on" }, { "../../tmp", "upwards" },
                                                { "circle", "circle" } };
        RUN(r, "stores");
        ASSERT_OK(root_make_dirs(r.root, "/srv/disks", 0755));
        ASSERT_OK(root_make_dirs(r.root, "/srv/open", 0755));
        ASSERT_OK(root_make_dirs(r.root, "/tmp", 0755));
        _free_ char *open = xasprintf("%s/srv/open", r.dir), *tmp = xasprintf("%s/tmp", r.dir);
        ASSERT_EQ(chmod(open, 0757), 0);
        ASSERT_EQ(chmod(tmp, 01777), 0);
        for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
                _free_ char *link = xasprintf("%s/srv/%s", r.dir, links[i][1]);
                ASSERT_EQ(symlink(links[i][0], link), 0);
        }
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                Directory d;
                ASSERT_OK(detect_directory(r.root, cases[i].path, &(Storage){}, 0, &d, &r.diag));
                ASSERT_STREQ(d.foreign ?: "", cases[i].foreign ?: "");
                ASSERT_TRUE(!d.foreign || d.foreign_itself == cases[i].itself);
                if (geteuid() == 0 && i == 0) {
                        _free_ char *srv = xasprintf("%s/srv", r.dir);
                        _free_ char *said = NULL;
                        Directory owned;
                        ASSERT_EQ(chown(srv, 1000, 0), 0);
                        ASSERT_OK(detect_directory(r.root, "/srv/disks", &(Storage){}, 0, &owned, &r.diag));
                        said = TAKE_PTR(owned.foreign);
                        ASSERT_STREQ(said, "/srv belongs to user 1000");
                        ASSERT_EQ(chown(srv, 0, 0), 0);
                        free(owned.path), free(owned.real), free(owned.on);
                }
                free(d.path), free(d.real), free(d.on), free(d.foreign);
        }
}

/* The list lets one user write; the mode alone shows only rights of the group root. */
TEST(a_path_that_an_access_control_list_opens_is_foreign) {
        static const struct { uint16_t tag, allowed; uint32_t id; } entries[] = {   /* linux/posix_acl_xattr.h */
                { 1, 7, UINT32_MAX }, { 2, 7, 1000 }, { 4, 5, UINT32_MAX }, { 16, 7, UINT32_MAX }, { 32, 5, UINT32_MAX },
        };
        RUN(r, "stores");
        ASSERT_OK(root_make_dirs(r.root, "/srv/shared/disks", 0755));
        _free_ char *shared = xasprintf("%s/srv/shared", r.dir);
        for (int i = 0; i < 2; i++) {
                Directory d;
                ASSERT_EQ(chmod(shared, 0775), 0);
                uint8_t list[4 + sizeof entries] = { 2 };
                memcpy(list + 4, entries, sizeof entries);
                if (i == 1 && setxattr(shared, "system.posix_acl_access", list, sizeof list, 0) < 0) {
                        ASSERT_EQ(errno, EOPNOTSUPP);
                        return;
                }
                ASSERT_OK(detect_directory(r.root, "/srv/shared/disks", &(Storage){}, 0, &d, &r.diag));
                ASSERT_STREQ(d.foreign ?: "", i == 0 ? "" : "/srv/shared is writable by users other than root (mode 0775; getfacl shows who)");
                free(d.path), free(d.real), free(d.on), free(d.foreign);
        }
}

TEST(the_mount_strategy_has_a_directory_for_each_disk) {
        RUN(r, "stores");
        r.config.instance.storage.strategy = STORAGE_MOUNT;
        r.config.instance.storage.mount_path = (char *)"/mnt/";
        const Storage *s = run_ok(&r);
        ASSERT_EQ(s->n_directories, 8);
        ASSERT_TRUE(storage_directory(s, "/mnt/1") && storage_directory(s, "/mnt/2") && storage_directory(s, "/mnt/3"));
        ASSERT_TRUE(!storage_directory(s, "/mnt/0") && !storage_directory(s, "/mnt/4"));
}

TEST(bad_places_for_directories_are_recognized) {
        static const struct { const char *path, *link, *to; DirectoryKind kind; bool read_only; const char *on; } cases[] = {
                { "/media/new/disks",   NULL,      NULL,          DIRECTORY_MISSING,      true,  NULL   },
                { "/proc/disks",        NULL,      NULL,          DIRECTORY_MISSING,      false, "proc" },
                { "/proc",              NULL,      NULL,          DIRECTORY_THERE,        false, "proc" },
                { "/elsewhere/disks",   "/elsewhere", "/media",   DIRECTORY_MISSING,      true,  NULL   },
                { "/var/log/pods/a",    NULL,      NULL,          DIRECTORY_NO_DIRECTORY, false, NULL   },
                { "/nowhere",           "/nowhere", "/not/there", DIRECTORY_NO_DIRECTORY, false, NULL   },
                { "/circle",            "/circle", "/circle",     DIRECTORY_NO_DIRECTORY, false, NULL   },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                RUN(r, "stores");
                ASSERT_OK(root_make_dirs(r.root, "/media", 0755));
                _free_ char *link = xasprintf("%s%s", r.dir, cases[i].link ?: "");
                if (cases[i].link)
                        ASSERT_EQ(symlink(cases[i].to, link), 0);
                r.config.instance.storage.mount_path = (char *)cases[i].path;
                const Directory *d = directory(run_ok(&r), cases[i].path);
                if (d->kind != cases[i].kind || d->read_only != cases[i].read_only || !d->on != !cases[i].on)
                        FAIL("%s: kind %d, read-only %d, on %s", cases[i].path, d->kind, d->read_only, d->on ?: "-");
                if (cases[i].on)
                        ASSERT_STREQ(d->on, cases[i].on);
                ASSERT_EQ(d->dead != NULL, streq(cases[i].path, "/nowhere"));
        }
}

TEST(a_directory_below_the_real_proc_is_on_proc) {
        _cleanup_(root_freep) Root *root = NULL;
        _cleanup_(diag_done) Diag diag = {};
        Directory d = {};
        Storage s = {};
        ASSERT_OK(root_new("/", &root));
        ASSERT_OK(detect_mounts(root, &s, &diag));
        ASSERT_OK(detect_directory(root, "/proc/self/disks", &s, 0, &d, &diag));
        ASSERT_STREQ(d.on, "proc");
        free(d.path);
        free(d.on);
        storage_clear(&s);
}

/* A container may leave directories so deep that their path is longer than PATH_MAX. */
TEST(a_directory_deeper_than_a_path_can_be_is_not_empty) {
        char dir[] = P_tmpdir "/test-deep-XXXXXX", name[201];
        _cleanup_(root_freep) Root *root = NULL;
        _cleanup_(diag_done) Diag diag = {};
        Storage s = {};
        Directory d = {};
        memset(name, 'a', 200);
        name[200] = 0;
        ASSERT_TRUE(mkdtemp(dir) && root_new(dir, &root) >= 0);
        int at = root_open(root, "/", O_RDONLY | O_DIRECTORY);
        for (int i = 0; i < 30; i++) {
                ASSERT_EQ(mkdirat(at, name, 0755), 0);
                int below = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                close(at);
                at = below;
        }
        close(at);
        ASSERT_OK(detect_directory(root, "/", &s, 0, &d, &diag));
        ASSERT_TRUE(d.kind == DIRECTORY_THERE && !d.empty);
        free(d.path);
        free(d.real);
        free(d.on);
        run_program((char *[]){ (char *)"rm", (char *)"-r", dir, NULL });
}

TEST(bytes_are_counted_only_if_they_might_not_fit) {
        RUN(r, "stores");
        _free_ char *data = xcalloc(1 << 20, 1), *deep = xasprintf("%s/var/lib/containerd/a/b", r.dir);
        memset(data, 'x', 1 << 20);
        ASSERT_TRUE(root_replace(r.root, "/var/lib/containerd/a/file", data, 1 << 20, 0644) >= 0);
        ASSERT_EQ(symlink("/", deep), 0);               /* is not followed */
        static const char *const all[] = { "", "/a", "/a/file", "/a/b", "/io.containerd.content.v1", "/io.containerd.content.v1/blob" };
        uint64_t bytes = 0;
        for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
                _free_ char *path = xasprintf("%s/var/lib/containerd%s", r.dir, all[i]);
                struct stat st;
                ASSERT_EQ(lstat(path, &st), 0);
                bytes += (uint64_t)st.st_blocks * 512;
        }
        ASSERT_TRUE(bytes >= 1 << 20);
        run_write(&r, "/sys/block/nvme1n1/size", "2048\n");    /* 1 MiB: less than the data */
        ASSERT_EQ(directory(run_ok(&r), "/var/lib/containerd")->bytes, bytes);
        for (int i = 1; i <= 3; i++) {
                _free_ char *size = xasprintf("/sys/block/nvme%dn1/size", i);
                run_write(&r, size, "18014398509481984\n");
        }
        ASSERT_EQ(directory(run_ok(&r), "/var/lib/containerd")->bytes, 0);
        ASSERT_TRUE(directory(&r.host->storage, "/var/lib/containerd")->used >= bytes);
}

TEST(bytes_of_other_file_systems_do_not_count) {
        RUN(r, "stores");
        _free_ char *data = xcalloc(1 << 20, 1), *inside = xasprintf("%s/var/lib/containerd/inside", r.dir);
        memset(data, 'x', 1 << 20);
        ASSERT_OK(root_make_dirs(r.root, "/var/lib/containerd/inside", 0755));
        if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0 || mount("tmpfs", inside, "tmpfs", 0, NULL) < 0) {
                printf("# nothing can be mounted here\n");
                return;
        }
        root_free(r.root);              /* it looks at the old mounts */
        ASSERT_OK(root_new(r.dir, &r.root));
        ASSERT_TRUE(root_replace(r.root, "/var/lib/containerd/inside/file", data, 1 << 20, 0644) >= 0);
        ASSERT_TRUE(directory(run_ok(&r), "/var/lib/containerd")->bytes < 1 << 20);
        ASSERT_EQ(umount(inside), 0);
}

/* ---- units ---- */

TEST(mount_units_of_etc_are_read_with_missing_devices) {
        RUN(r, "stores");
        ASSERT_EQ(run_ok(&r)->n_units, 0);
        run_write(&r, "/etc/systemd/system/mnt-k8s\\x2ddisks-0.mount", "[Unit]\nWhat=/not/here\n[Mount]\nWhat=UUID=0f0e0d0c-1111-4222-8333-444455556666\n"
                  "Where=/mnt/k8s-disks/0\nType=xfs\n[Install]\nWhere=/nor/here\n");
        run_write(&r, "/etc/systemd/system/data.mount", "[Mount]\nWhat=/dev/nvme3n1\nWhere=/data\n");
        run_write(&r, "/etc/systemd/system/var-lib-kubelet.mount", "[Mount]\nWhat=/old\n#What=/dev/none\n What = /mnt/k8s-disks/0/kubelet \nWhere=/var/lib/kubelet\nOptions=bind\n");
        run_write(&r, "/etc/systemd/system/half.mount", "[Mount]\nWhere=/half\n");
        run_write(&r, "/etc/systemd/system/a.service", "[Mount]\nWhat=/dev/a\nWhere=/a\n");
        ASSERT_OK(root_make_dirs(r.root, "/etc/systemd/system/folder.mount", 0755));
        _free_ char *masked = xasprintf("%s/etc/systemd/system/masked.mount", r.dir);
        ASSERT_EQ(symlink("/dev/null", masked), 0);
        const Storage *s = run_ok(&r);
        ASSERT_EQ(s->n_units, 3);
        ASSERT_STREQ(s->units[0].name, "data.mount");
        ASSERT_TRUE(!s->units[0].missing && s->units[1].missing && !s->units[2].missing);
        ASSERT_STREQ(s->units[1].name, "mnt-k8s\\x2ddisks-0.mount");
        ASSERT_STREQ(s->units[1].where, "/mnt/k8s-disks/0");
        ASSERT_STREQ(s->units[2].what, "/mnt/k8s-disks/0/kubelet");
        run_write(&r, "/dev/disk/by-uuid/0f0e0d0c-1111-4222-8333-444455556666", "");
        ASSERT_TRUE(!run_ok(&r)->units[1].missing);
}

/* ---- facts ---- */

TEST(facts_show_disks_arrays_mounts_and_directories) {
        RUN(r, "stores");
        run_write(&r, "/proc/self/mountinfo", "27 1 259:1 / / rw - xfs /dev/nvme0n1p1 rw\n40 27 259:4 / /data rw - ext4 /dev/nvme3n1 rw\n"
                  "41 27 9:127 / /a\\300b rw - xfs /dev/md127 rw\n42 27 0:9 / /var/lib/kubelet rw - tmpfs none rw\n43 27 0:9 / /tmp rw - tmpfs none rw\n");
        uint8_t block[MD_SUPER_SIZE];
        md_super_make(block, &(MdSuper){ .name = "k\xc0s", .level = 0, .disks = 2, .device = 1, .role = 1, .at = 4096 });
        int fd = ASSERT_OK(root_open(r.root, "/dev/nvme1n1", O_WRONLY));
        ASSERT_EQ(pwrite(fd, block, sizeof block, 4096), sizeof block);
        close(fd);
        run_ok(&r);
        json_t *facts = host_to_json(r.host), *disks = json_object_get(facts, "disks"), *s = json_object_get(facts, "storage");
        ASSERT_STREQ(json_string_value(json_object_get(json_array_get(disks, 1), "content")), "member 1 of md array k\\xc0s (raid0 of 2)");
        ASSERT_STREQ(json_string_value(json_array_get(json_object_get(json_array_get(disks, 1), "holders"), 0)), "md127");
        ASSERT_TRUE(json_is_true(json_object_get(json_array_get(disks, 3), "readOnly")));
        ASSERT_STREQ(json_string_value(json_array_get(json_object_get(json_array_get(disks, 0), "partitions"), 0)), "nvme0n1p1");
        ASSERT_TRUE(!json_object_get(json_array_get(disks, 0), "content"));
        ASSERT_EQ(json_array_size(json_object_get(s, "arrays")), 4);
        json_t *a = json_array_get(json_object_get(s, "arrays"), 1);
        ASSERT_STREQ(json_string_value(json_object_get(a, "name")), "md127");
        ASSERT_STREQ(json_string_value(json_object_get(a, "content")), "nothing");
        ASSERT_EQ(json_array_size(json_object_get(a, "members")), 2);
        json_t *mounts = json_object_get(s, "mounts");
        ASSERT_EQ(json_array_size(mounts), 3);          /* of a store, of an array, at a path of nodestrap */
        ASSERT_STREQ(json_string_value(json_object_get(json_array_get(mounts, 1), "target")), "/a\\xc0b");
        json_t *directories = json_object_get(s, "directories");
        ASSERT_EQ(json_array_size(directories), 2);     /* not those that are empty */
        ASSERT_STREQ(json_string_value(json_object_get(json_array_get(directories, 0), "path")), "/var/lib/containerd");
        ASSERT_TRUE(json_is_false(json_object_get(json_array_get(directories, 1), "isDirectory")));
        ASSERT_EQ(json_array_size(json_object_get(s, "programs")), 3);
        json_decref(facts);
}

TEST_MAIN
