/* SPDX-License-Identifier: Apache-2.0
 * The decision for every situation of EBS volumes. */
#include "disk/disk.h"
#include "sample.h"

#define XVDB "/mnt/k8s-volumes/xvdb"
#define GB   1000000000ULL

typedef struct Machine {
        Sample s;
        Disk disks[3];
        Volume volumes[2];
        Mount mounts[8];
        Directory directories[12];
        char **programs, **names[3], **lists[4];
        size_t n_lists;
} Machine;

static char **keep(Machine *m, char **list) {
        return m->lists[m->n_lists++] = list;
}

static void machine_done(Machine *m) {
        sample_done(&m->s);
        strv_free(m->programs);
        for (size_t i = 0; i < 3; i++)
                strv_free(m->names[i]);
        for (size_t i = 0; i < m->n_lists; i++)
                strv_free(m->lists[i]);
        for (size_t i = 0; i < 2; i++) {
                strv_free(m->volumes[i].targets);
                strv_free(m->volumes[i].folders);
        }
        free(m);
}
DEFINE_CLEANUP(Machine *, machine_done)

static void add_directory(Machine *m, const char *path, Directory d) {
        d.path = (char *)path;
        m->directories[m->s.host.storage.n_directories++] = d;
}

static Directory *directory(Machine *m, const char *path) {
        for (size_t i = 0; i < m->s.host.storage.n_directories; i++)
                if (streq(m->directories[i].path, path))
                        return &m->directories[i];
        FAIL("%s was not looked at", path);
}

static void add_mount(Machine *m, const char *target, const char *number, const char *root) {
        m->mounts[m->s.host.storage.n_mounts++] = (Mount){ .target = (char *)target, .source = (char *)"/dev/x", .number = (char *)number,
                                                           .root = (char *)root, .type = (char *)"xfs" };
}

static void set_content(Disk *d, const char *type, const char *label) {
        d->content = (Content){ .kind = CONTENT_FILESYSTEM, .type = (char *)type, .label = (char *)label,
                                .uuid = (char *)"0f0e0d0c-1111-4222-8333-444455556666" };
}

/* The root disk, a blank volume that is /dev/xvdb, and a blank one that is /dev/xvdc. */
static Machine *machine_new(void) {
        Machine *m = xcalloc(1, sizeof *m);
        m->s = sample_new();
        Host *h = &m->s.host;
        h->type = NULL;
        h->disks = m->disks;
        h->n_disks = 3;
        m->names[0] = LIST("nvme0n1", "vol-0a", "xvda");
        m->names[1] = LIST("nvme1n1", "vol-0b", "xvdb");
        m->names[2] = LIST("nvme2n1", "vol-0c", "xvdc");
        m->disks[0] = (Disk){ .name = (char *)"nvme0n1", .serial = (char *)"vol0a", .number = (char *)"259:0", .root = true };
        m->disks[1] = (Disk){ .name = (char *)"nvme1n1", .serial = (char *)"vol0b", .number = (char *)"259:1" };
        m->disks[2] = (Disk){ .name = (char *)"nvme2n1", .serial = (char *)"vol0c", .number = (char *)"259:2" };
        for (size_t i = 0; i < 3; i++) {
                m->disks[i].kind = DISK_EBS;
                m->disks[i].model = (char *)"Amazon Elastic Block Store";
                m->disks[i].names = m->names[i];
                m->disks[i].bytes = 100 * GB;
                m->disks[i].content.kind = CONTENT_BLANK;
        }
        m->disks[0].content = (Content){ .kind = CONTENT_OTHER, .type = (char *)"gpt" };
        m->disks[0].partitions = keep(m, LIST("nvme0n1p1"));
        m->programs = LIST("cp", "mkfs.ext4", "mkfs.xfs");
        h->storage = (Storage){ .looked = true, .mounts = m->mounts, .directories = m->directories, .programs = m->programs };
        m->s.config.instance.storage.mount_path = (char *)"/mnt/k8s-disks";
        m->s.config.instance.volumes = m->volumes;
        static const char *const places[] = { XVDB, "/mnt/k8s-volumes/xvdc", "/data", "/opt/models", "/mnt/k8s-disks", "/mnt/k8s-disks/0" };
        for (size_t i = 0; i < ARRAY_SIZE(places); i++)
                add_directory(m, places[i], (Directory){ .empty = true });
        for (size_t i = 0; i < ARRAY_SIZE(storage_binds); i++)
                add_directory(m, storage_binds[i].path, (Directory){ .kind = DIRECTORY_THERE, .empty = i >= 2 });
        return m;
}

static void want(Machine *m, const char *device, const char *key, const char *target, const char *folder) {
        Volume *v = &m->volumes[m->s.config.instance.n_volumes++];
        *v = (Volume){ .device = (char *)device, .key = (char *)key, .targets = LIST(target), .folders = LIST(folder), .whole = !*folder };
}

static int machine_plan(Machine *m) {
        m->s.plan = plan_free(m->s.plan);
        diag_done(&m->s.diag);
        return plan_make(&m->s.config, &m->s.host, &m->s.options, &m->s.plan, &m->s.diag);
}

static char *texts(const Diag *diag) {
        Text t = {};
        for (size_t i = 0; i < diag->n; i++)
                text_add(&t, "%s: %s: %s\n", diag->items[i].warning ? diag->items[i].code : cause_word(diag->items[i].cause), diag->items[i].path ?: "", diag->items[i].text);
        return text_take(&t);
}

static const Action *planned(Machine *m, const char *id) {
        const Action *a = m->s.plan ? plan_find(m->s.plan, id) : NULL;
        if (!a)
                FAIL("the plan has no %s", id);
        return a;
}

#define ASSERT_PLANNED(m) ({ if (machine_plan(m) < 0) { _free_ char *_all = texts(&(m)->s.diag); FAIL("refused: %s", _all); } })
#define ASSERT_STATE(m, id, wanted) ASSERT_STREQ(step_state_to_string(planned(m, id)->storage.state), wanted)
#define ASSERT_REFUSED(m, text) ({ \
        ASSERT_ERROR(machine_plan(m), EINVAL); \
        _free_ char *_all = texts(&(m)->s.diag); \
        ASSERT_CONTAINS(_all, text); })
#define MACHINE(m) _cleanup_(machine_donep) Machine *m = machine_new()
#define WANTED(m, target) MACHINE(m); want(m, "/dev/sdb", "xvdb", target, "")

TEST(a_blank_volume_gets_a_file_system_a_mount_and_a_bind) {
        WANTED(m, "/var/lib/containerd");
        ASSERT_PLANNED(m);
        ASSERT_STATE(m, "make-filesystem:" XVDB, "make");
        ASSERT_STATE(m, "mount:" XVDB, "make");
        ASSERT_STATE(m, "grow-filesystem:" XVDB, "make");
        ASSERT_STATE(m, "stop-unit:containerd.service", "make");
        ASSERT_STATE(m, "bind:/var/lib/containerd", "make");
        ASSERT_STREQ(planned(m, "bind:/var/lib/containerd")->storage.source, XVDB);
        const Action *move = planned(m, "move-files:" XVDB);
        ASSERT_EQ(move->storage.n_moves, 1);
        ASSERT_STREQ(move->storage.moves[0].from, "/var/lib/containerd");
        ASSERT_STREQ(move->storage.moves[0].name, "");
        ASSERT_TRUE(move->storage.volume && strv_contains(move->after, "stop-unit:containerd.service"));
        ASSERT_STREQ(planned(m, "make-filesystem:" XVDB)->storage.disks[0], "nvme1n1");
        ASSERT_TRUE(strv_contains(planned(m, "write-file:" MOUNTS_READY)->after, "bind:/var/lib/containerd"));
        ASSERT_TRUE(!plan_find(m->s.plan, "stop-unit:kubelet.service"));
}

TEST(the_plan_id_does_not_depend_on_the_disk) {
        WANTED(m, "/var/lib/kubelet");
        ASSERT_PLANNED(m);
        _free_ char *first = xstrdup(m->s.plan->id);
        set_content(&m->disks[1], "xfs", "kubernetes");
        m->disks[1].serial = (char *)"vol0d";
        m->disks[1].name = (char *)"nvme7n1";
        add_mount(m, XVDB, "259:1", "/");
        add_mount(m, "/var/lib/kubelet", "259:1", "/");
        ASSERT_PLANNED(m);
        ASSERT_STREQ(m->s.plan->id, first);
        ASSERT_STATE(m, "make-filesystem:" XVDB, "keep");
        ASSERT_STATE(m, "mount:" XVDB, "keep");
        ASSERT_STATE(m, "move-files:" XVDB, "keep");
        ASSERT_STATE(m, "bind:/var/lib/kubelet", "keep");
        ASSERT_STATE(m, "stop-unit:kubelet.service", "keep");
        m->s.host.storage.looked = false;
        ASSERT_PLANNED(m);
        ASSERT_STREQ(m->s.plan->id, first);
        ASSERT_STATE(m, "mount:" XVDB, "unknown");
}

TEST(an_existing_file_system_is_kept) {
        WANTED(m, "/data");
        set_content(&m->disks[1], "ext4", "theirs");
        ASSERT_PLANNED(m);
        ASSERT_STATE(m, "make-filesystem:" XVDB, "keep");
        ASSERT_STATE(m, "mount:" XVDB, "make");
        ASSERT_STREQ(planned(m, "mount:" XVDB)->storage.filesystem, "ext4");
        _free_ char *all = texts(&m->s.plan->warnings);
        ASSERT_CONTAINS(all, "filesystem-kept: spec.instance.storage.volumes[0]: nvme1n1 holds ext4 already: nodestrap keeps it, since you may need its data, and does not make xfs");
        set_content(&m->disks[1], "xfs", LABEL_UNFINISHED);
        ASSERT_PLANNED(m);
        ASSERT_STATE(m, "make-filesystem:" XVDB, "remake");
}

TEST(one_volume_can_have_several_targets) {
        MACHINE(m);
        want(m, "vol-0b", "vol-0b", "/data", "data");
        strv_add(&m->volumes[0].targets, "/var/lib/kubelet");
        strv_add(&m->volumes[0].folders, "var-lib-kubelet");
        ASSERT_PLANNED(m);
        ASSERT_STREQ(planned(m, "bind:/data")->storage.source, "/mnt/k8s-volumes/vol-0b/data");
        ASSERT_STREQ(planned(m, "bind:/var/lib/kubelet")->storage.source, "/mnt/k8s-volumes/vol-0b/var-lib-kubelet");
        ASSERT_TRUE(strv_contains(planned(m, "move-files:/mnt/k8s-volumes/vol-0b")->storage.files, KUBECONFIG));
}

TEST(a_daemon_keeps_its_data_on_a_volume) {
        WANTED(m, "/data");
        m->s.config.containerd.config = sample_json(&m->s, "{'root':'/data/containerd'}");
        m->s.config.instance.storage.strategy = STORAGE_RAID0;
        m->s.config.instance.storage.expected_disks = 1;
        m->s.host.storage.looked = false;
        ASSERT_PLANNED(m);
        ASSERT_TRUE(plan_find(m->s.plan, "bind:/data"));
        ASSERT_TRUE(!plan_find(m->s.plan, "bind:/data/containerd") && !plan_find(m->s.plan, "bind:/var/lib/containerd"));
        ASSERT_TRUE(strv_contains(planned(m, "move-files:" XVDB)->after, "stop-unit:containerd.service"));
}

TEST(two_daemons_keep_their_data_on_a_volume) {
        WANTED(m, "/data");
        m->s.config.containerd.config = sample_json(&m->s, "{'root':'/data/containerd'}");
        m->s.config.kubelet.flags = keep(m, LIST("--root-dir=/data/kubelet"));
        ASSERT_PLANNED(m);
        ASSERT_TRUE(strv_contains(planned(m, "move-files:" XVDB)->after, "stop-unit:containerd.service"));
        ASSERT_TRUE(strv_contains(planned(m, "move-files:" XVDB)->after, "stop-unit:kubelet.service"));
        ASSERT_TRUE(strv_contains(planned(m, "stop-unit:containerd.service")->after, "stop-unit:kubelet.service"));
}

TEST(a_target_where_a_daemon_no_longer_keeps_its_data_is_a_warning) {
        WANTED(m, "/var/lib/containerd");
        m->s.config.containerd.config = sample_json(&m->s, "{'root':'/opt/lab/containerd'}");
        ASSERT_PLANNED(m);
        _free_ char *said = texts(&m->s.plan->warnings);
        ASSERT_CONTAINS(said, "no-effect: spec.instance.storage.volumes[0]: /var/lib/containerd stays empty: spec.containerd.config.root moves its data to /opt/lab/containerd");
}

TEST(a_volume_that_is_mounted_at_its_target_stays) {
        WANTED(m, "/data");
        set_content(&m->disks[1], "xfs", NULL);
        add_mount(m, "/data", "259:1", "/");
        ASSERT_PLANNED(m);
        ASSERT_STATE(m, "mount:" XVDB, "keep");
        ASSERT_STATE(m, "bind:/data", "keep");
        ASSERT_STATE(m, "move-files:" XVDB, "keep");
        ASSERT_STREQ(planned(m, "grow-filesystem:" XVDB)->storage.source, "/data");
}

TEST(a_volume_wins_over_instance_stores) {
        WANTED(m, "/var/lib/containerd");
        m->s.config.instance.storage.strategy = STORAGE_RAID0;
        m->disks[2] = (Disk){ .name = (char *)"nvme2n1", .serial = (char *)"AWS1", .number = (char *)"259:2", .kind = DISK_INSTANCE_STORE,
                              .names = m->names[2], .bytes = 100 * GB, .content.kind = CONTENT_BLANK };
        ASSERT_PLANNED(m);
        ASSERT_STREQ(planned(m, "bind:/var/lib/containerd")->storage.source, XVDB);
        ASSERT_STREQ(planned(m, "bind:/var/lib/kubelet")->storage.source, "/mnt/k8s-disks/0/kubelet");
        _free_ char *all = texts(&m->s.plan->warnings);
        ASSERT_CONTAINS(all, "volume-wins: spec.instance.localStorage.disabledMounts: /var/lib/containerd goes to the volume /dev/sdb, not to instance stores");
        m->s.config.instance.storage.no_containerd = true;
        ASSERT_PLANNED(m);
        _free_ char *none = texts(&m->s.plan->warnings);
        ASSERT_TRUE(!strstr(none, "volume-wins"));
        want(m, "/dev/xvdc", "xvdc", "/data", "");
        ASSERT_REFUSED(m, "/dev/xvdc is nvme2n1 (AWS1, 100 GB), an instance store");
}

TEST(daemons_stop_after_both_mounts) {
        WANTED(m, "/var/log/pods");
        m->s.config.instance.storage.strategy = STORAGE_RAID0;
        m->disks[2].kind = DISK_INSTANCE_STORE;
        ASSERT_PLANNED(m);
        const Action *stop = planned(m, "stop-unit:kubelet.service");
        ASSERT_TRUE(strv_contains(stop->after, "mount:" XVDB) && strv_contains(stop->after, "mount:/mnt/k8s-disks/0"));
}

TEST(a_volume_that_is_not_attached_is_an_error) {
        MACHINE(m);
        want(m, "/dev/xvdf", "xvdf", "/data", "");
        ASSERT_REFUSED(m, "EVOLUME: spec.instance.storage.volumes[0]: the volume /dev/xvdf is not attached, or has another name; EBS volumes here: "
                          "nvme0n1 (vol0a, 100 GB) called xvda with the root file system, nvme1n1 (vol0b, 100 GB) called xvdb, nvme2n1");
}

TEST(a_name_of_two_disks_is_an_error) {
        WANTED(m, "/data");
        m->disks[2].names = m->names[1];
        ASSERT_REFUSED(m, "/dev/sdb matches two disks, nvme1n1 (vol0b, 100 GB) and nvme2n1 (vol0c, 100 GB)");
}

TEST(two_entries_for_one_volume_are_an_error) {
        WANTED(m, "/data");
        want(m, "vol-0b", "vol-0b", "/opt/models", "");
        ASSERT_REFUSED(m, "volumes[1]: /dev/sdb and vol-0b are the same volume, nvme1n1");
}

TEST(the_root_disk_as_a_volume_is_an_error) {
        MACHINE(m);
        want(m, "/dev/xvda", "xvda", "/data", "");
        ASSERT_REFUSED(m, "EDISKUSED: spec.instance.storage.volumes[0]: the volume /dev/xvda, nvme0n1 (vol0a, 100 GB), is the root disk");
}

TEST(foreign_data_is_refused) {
        WANTED(m, "/data");
        m->disks[1].content = (Content){ .kind = CONTENT_OTHER, .type = (char *)"LVM2_member" };
        ASSERT_REFUSED(m, "holds LVM physical volume, but must be blank, xfs or ext4: it stays as it is");
        m->disks[1].holders = keep(m, LIST("dm-0"));
        ASSERT_REFUSED(m, "is in use by dm-0");
        m->disks[1].holders = NULL;
        m->disks[1].content = (Content){ .kind = CONTENT_RAID_MEMBER, .type = (char *)"linux_raid_member" };
        ASSERT_REFUSED(m, "holds member of an array");
        set_content(&m->disks[1], "btrfs", NULL);
        ASSERT_REFUSED(m, "holds btrfs file system");
        ASSERT_REFUSED(m, "blkdiscard --force --zeroout /dev/nvme1n1");
        m->disks[1].content = (Content){ .kind = CONTENT_UNREADABLE, .error = (char *)"Input/output error" };
        ASSERT_REFUSED(m, "Input/output error");
        m->disks[1].content = (Content){ .kind = CONTENT_BLANK };
        m->disks[1].read_only = true;
        ASSERT_REFUSED(m, "is read-only");
        m->disks[1].read_only = false;
        m->disks[1].partitions = keep(m, LIST("nvme1n1p1"));
        ASSERT_REFUSED(m, "has partitions (nvme1n1p1), but nodestrap mounts only whole volumes");
}

TEST(a_volume_that_is_mounted_elsewhere_is_an_error) {
        WANTED(m, "/data");
        set_content(&m->disks[1], "xfs", NULL);
        add_mount(m, "/home/x", "259:1", "/");
        ASSERT_REFUSED(m, "is mounted at /home/x");
}

TEST(a_target_that_cannot_be_a_mount_point_is_an_error) {
        WANTED(m, "/data");
        add_mount(m, "/data", "0:99", "/");
        ASSERT_REFUSED(m, "/data is a mount point already (xfs of /dev/x), but the volume /dev/sdb belongs there: remove");
        m->s.host.storage.n_mounts = 0;
        add_mount(m, "/data/pods/x", "0:99", "/");
        ASSERT_REFUSED(m, "/data must move to the volume, but is in use: 1 mount is below it");
        m->s.host.storage.n_mounts = 0;
        directory(m, "/data")->kind = DIRECTORY_NO_DIRECTORY;
        ASSERT_REFUSED(m, "/data is not a directory, but the volume");
        directory(m, "/data")->kind = DIRECTORY_MISSING;
        directory(m, XVDB)->empty = false;
        ASSERT_REFUSED(m, XVDB " is not empty");
        directory(m, XVDB)->empty = true;
        directory(m, XVDB)->foreign = (char *)"/mnt belongs to user 7";
        ASSERT_REFUSED(m, "/mnt belongs to user 7: a user who can write there could redirect " XVDB ", and root would write elsewhere");
        directory(m, XVDB)->foreign = NULL;
        directory(m, "/data")->foreign = (char *)"/data belongs to user 7";
        ASSERT_REFUSED(m, "/data belongs to user 7");
        directory(m, "/data")->foreign_itself = true;           /* the data that moves belongs to that user */
        ASSERT_OK(machine_plan(m));
        directory(m, "/data")->foreign = NULL;
}

TEST(a_target_within_the_directories_of_instance_stores_is_an_error) {
        WANTED(m, "/var/lib/kubelet/pods");
        add_directory(m, "/var/lib/kubelet/pods", (Directory){ .empty = true });
        ASSERT_PLANNED(m);
        ASSERT_STATE(m, "stop-unit:kubelet.service", "make");
        m->s.config.instance.storage.strategy = STORAGE_RAID0;
        m->disks[2].kind = DISK_INSTANCE_STORE;
        ASSERT_REFUSED(m, "/var/lib/kubelet/pods overlaps /var/lib/kubelet, which goes to the instance stores: set another");
        m->s.config.instance.storage.no_kubelet = true;
        ASSERT_PLANNED(m);
        strv_free(m->volumes[0].targets);
        m->volumes[0].targets = LIST("/mnt/k8s-disks/9");
        ASSERT_REFUSED(m, "/mnt/k8s-disks/9 overlaps /mnt/k8s-disks, the mount point of instance stores: set another");
        strv_free(m->volumes[0].targets);
        m->volumes[0].targets = LIST("/mnt/k8s-volumes/x");
        ASSERT_REFUSED(m, "lies in /mnt/k8s-volumes");
}

TEST(instance_stores_within_the_directory_of_volumes_are_an_error) {
        WANTED(m, "/data");
        m->s.config.instance.storage.strategy = STORAGE_RAID0;
        m->s.config.instance.storage.mount_path = (char *)"/mnt/k8s-volumes/stores";
        ASSERT_REFUSED(m, "EMOUNT: spec.instance.localStorage.mountPath: /mnt/k8s-volumes/stores, the mount point of instance stores, overlaps /mnt/k8s-volumes");
        m->s.config.instance.storage.mount_path = (char *)"/mnt";
        ASSERT_REFUSED(m, "/mnt, the mount point of instance stores, overlaps /mnt/k8s-volumes, that of volumes: set another");
        m->s.config.instance.storage.strategy = STORAGE_NONE;
        ASSERT_PLANNED(m);
}

TEST(a_volume_unmounted_from_its_own_directory_is_an_error) {
        MACHINE(m);
        want(m, "/dev/sdb", "xvdb", "/data", "data");
        strv_add(&m->volumes[0].targets, "/opt/models");
        strv_add(&m->volumes[0].folders, "opt-models");
        set_content(&m->disks[1], "xfs", NULL);
        add_mount(m, "/data", "259:1", "/data");
        add_mount(m, "/opt/models", "259:1", "/opt-models");
        ASSERT_REFUSED(m, "is mounted at /data, but was unmounted from " XVDB ": reboot, or mount it there again (`mount /dev/nvme1n1 " XVDB "`)");
        _free_ char *all = texts(&m->s.diag);
        ASSERT_TRUE(!strstr(all, "attach another one"));
        add_mount(m, XVDB, "259:1", "/");
        ASSERT_PLANNED(m);
}

TEST(a_kernel_name_as_device_is_a_warning) {
        MACHINE(m);
        want(m, "/dev/nvme1n1", "nvme1n1", "/data", "");
        add_directory(m, "/mnt/k8s-volumes/nvme1n1", (Directory){ .empty = true });
        m->s.plan = plan_free(m->s.plan);
        strv_free(m->names[1]);
        m->disks[1].names = m->names[1] = LIST("nvme1n1", "vol-0b", "xvdb");
        ASSERT_PLANNED(m);
        _free_ char *all = texts(&m->s.plan->warnings);
        ASSERT_CONTAINS(all, "kernel-name: spec.instance.storage.volumes[0]: /dev/nvme1n1 is a kernel name, which may mean another volume at the next boot; "
                             "now it is vol-0b, xvdb: set device to that");
}

TEST(a_volume_that_is_too_small_for_the_data_is_an_error) {
        WANTED(m, "/data");
        *directory(m, "/data") = (Directory){ .path = (char *)"/data", .kind = DIRECTORY_THERE, .bytes = 200 * GB };
        ASSERT_REFUSED(m, "200 GB (/data 200 GB) must move to the volume /dev/sdb, which has room for only 95 GB: remove what you do not need, or attach a larger one");
        set_content(&m->disks[1], "xfs", NULL);
        ASSERT_PLANNED(m);              /* it has a file system, so no data moves to it */
}

TEST(a_missing_program_that_the_plan_needs_is_an_error) {
        WANTED(m, "/data");
        m->s.host.storage.programs = NULL;
        ASSERT_REFUSED(m, "mkfs.xfs is missing from this image");
        set_content(&m->disks[1], "xfs", NULL);
        ASSERT_REFUSED(m, "cp is missing from this image: the plan copies the directory to the volume");
        add_mount(m, XVDB, "259:1", "/");
        add_mount(m, "/data", "259:1", "/");
        ASSERT_PLANNED(m);
}

TEST_MAIN
