/* SPDX-License-Identifier: Apache-2.0
 * move-files with a real cp, on a tmpfs for the root disk and another one for the disks. ptrace(2) stops a
 * run before each system call that changes anything. It is killed there, and the next run completes it, so
 * no place of a cut is a guess. */
#include "apply/storage.h"
#include "base/run.h"
#include "mounts.h"

#include <ftw.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#define TARGET "/mnt/k8s-disks/0"

static Move moves[] = {
        { (char *)"/var/lib/kubelet", (char *)"kubelet" }, { (char *)"/var/lib/containerd", (char *)"containerd" }, { (char *)"/var/log/pods", (char *)"logs" },
};

static void disks_init(Box *b, const char *options) {
        box_init(b);
        box_tmpfs(b, TARGET, options);
        b->action = (Action){ .type = ACTION_MOVE_FILES, .target = (char *)TARGET,
                              .storage = { .state = STEP_MAKE, .moves = moves, .n_moves = ARRAY_SIZE(moves) } };
}
#define DISKS(name) _cleanup_(box_done) Box name; disks_init(&name, "mode=0755")

static int run(Box *b) {
        int r = move_work(&b->work);
        if (r < 0 && !b->work.text)
                FAIL("it failed without a word: %s", strerror(-r));
        return r;
}

static void assert_done(Box *b) {
        int r = run(b);
        if (r != 1)
                FAIL("move_work() is %d: %s", r, b->work.text ?: "");
}

static void assert_refused(Box *b, const char *words) {
        ASSERT_TRUE(run(b) < 0);
        ASSERT_EQ(b->work.cause, CAUSE_MOVE);
        ASSERT_CONTAINS(b->work.text, words);
        ASSERT_TRUE(!is_there(b, TARGET "/.nodestrap-incoming"));
}

static void fill(const Box *b) {
        put(b, "/var/lib/kubelet/kubeconfig", "kubeconfig");
        put(b, "/var/lib/kubelet/pki/key", "key");
        put(b, "/var/lib/containerd/db/meta", "metadata");
        put(b, "/var/lib/containerd/db/more", "more");
}

static void assert_moved(const Box *b) {
        assert_file(b, TARGET "/kubelet/kubeconfig", "kubeconfig");
        assert_file(b, TARGET "/kubelet/pki/key", "key");
        assert_file(b, TARGET "/containerd/db/meta", "metadata");
        assert_file(b, TARGET "/containerd/db/more", "more");
        assert_entries(b, TARGET, "containerd kubelet logs");
        assert_entries(b, "/var/lib/kubelet", "");
        assert_entries(b, "/var/lib/containerd", "");
        assert_entries(b, "/var/log/pods", "");
}

TEST(files_move_once_and_a_second_run_changes_nothing) {
        DISKS(b);
        fill(&b);
        assert_done(&b);
        assert_moved(&b);
        ASSERT_EQ(run(&b), 0);
        assert_moved(&b);
}

TEST(missing_directories_get_the_modes_of_their_daemons) {
        DISKS(b);
        assert_done(&b);
        ASSERT_EQ(look_at(&b, "/var/lib/kubelet").st_mode, S_IFDIR | 0750);
        ASSERT_EQ(look_at(&b, "/var/lib/containerd").st_mode, S_IFDIR | 0711);
        ASSERT_EQ(look_at(&b, TARGET "/kubelet").st_mode, S_IFDIR | 0750);
        ASSERT_EQ(look_at(&b, TARGET "/containerd").st_mode, S_IFDIR | 0711);
        ASSERT_EQ(look_at(&b, TARGET "/logs").st_mode, S_IFDIR | 0755);
        ASSERT_EQ(look_at(&b, "/var/lib").st_mode, S_IFDIR | 0755);
        ASSERT_EQ(run(&b), 0);
}

static void set_attribute(const Box *b, const char *path, const char *name, const void *value, size_t size) {
        _free_ char *full = box_path(b, path);
        if (lsetxattr(full, name, value, size, 0) < 0 && errno != EOPNOTSUPP)
                FAIL("%s of %s: %s", name, path, strerror(errno));
}

static void assert_same_attribute(const Box *b, const char *path, const char *other, const char *name) {
        char a[256], c[256];
        _free_ char *one = box_path(b, path), *two = box_path(b, other);
        ssize_t n = lgetxattr(one, name, a, sizeof a), m = lgetxattr(two, name, c, sizeof c);
        if (n != m || (n > 0 && memcmp(a, c, (size_t)n) != 0))
                FAIL("%s of %s has %zd bytes, of %s %zd", name, path, n, other, m);
}

/* cp keeps a setgid bit that a new directory inherits from its parent. A default ACL comes the same way. */
TEST(setgid_and_default_acl_of_the_disks_are_not_inherited) {
        DISKS(b);
        static const unsigned char acl[] = { 2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 7, 0, 7, 0, 0, 0, 4, 0, 7, 0, 255, 255, 255, 255,
                                             16, 0, 7, 0, 255, 255, 255, 255, 32, 0, 7, 0, 255, 255, 255, 255 };
        fill(&b);
        box_mkdir(&b, TARGET, 02755);
        set_attribute(&b, TARGET, "system.posix_acl_default", acl, sizeof acl);
        assert_done(&b);
        ASSERT_EQ(look_at(&b, TARGET "/containerd/db").st_mode, S_IFDIR | 0755);
        ASSERT_EQ(look_at(&b, TARGET "/logs").st_mode, S_IFDIR | 0755);
        ASSERT_EQ(look_at(&b, TARGET "/kubelet/kubeconfig").st_mode, S_IFREG | 0644);
        assert_same_attribute(&b, TARGET "/containerd/db", "/var/lib/containerd", "system.posix_acl_default");
        assert_same_attribute(&b, TARGET "/kubelet/kubeconfig", "/var/lib/containerd", "system.posix_acl_access");
}

TEST(paths_with_the_same_last_name_stay_separate) {
        DISKS(b);
        Move alike[] = { { (char *)"/opt/a/data", (char *)"kubelet" }, { (char *)"/opt/b/data", (char *)"containerd" } };
        b.action.storage.moves = alike;
        b.action.storage.n_moves = ARRAY_SIZE(alike);
        put(&b, "/opt/a/data/kubeconfig", "kubeconfig");
        assert_done(&b);
        assert_file(&b, TARGET "/kubelet/kubeconfig", "kubeconfig");
        assert_entries(&b, TARGET, "containerd kubelet");
        ASSERT_EQ(look_at(&b, TARGET "/containerd").st_mode, S_IFDIR | 0711);   /* the mode of the daemon, wherever its directory is */
        ASSERT_EQ(run(&b), 0);
}

TEST(an_empty_directory_keeps_mode_owner_and_label) {
        DISKS(b);
        char label[64] = "";
        static const char text[] = "system_u:object_r:container_var_lib_t:s0";
        _free_ char *from = box_path(&b, "/var/lib/containerd"), *to = box_path(&b, TARGET "/containerd");
        box_mkdir(&b, "/var/lib/containerd", 02770);
        ASSERT_EQ(chown(from, 7, 8), 0);
        ASSERT_EQ(chmod(from, 02770), 0);
        bool labelled = setxattr(from, "security.selinux", text, sizeof text, 0) == 0;
        assert_done(&b);
        struct stat st = look_at(&b, TARGET "/containerd");
        ASSERT_EQ(st.st_mode, S_IFDIR | 02770);
        ASSERT_EQ(st.st_uid * 100 + st.st_gid, 708);
        ASSERT_EQ(getxattr(to, "security.selinux", label, sizeof label) > 0, labelled);
        ASSERT_STREQ(label, labelled ? text : "");
}

/* ---- kinds of files ---- */

static void put_special(const Box *b, const char *path, mode_t mode, dev_t device) {
        _free_ char *full = box_path(b, path);
        ASSERT_EQ(mknod(full, mode, device), 0);
}

static void put_sparse(const Box *b, const char *path) {
        _free_ char *full = box_path(b, path);
        int fd = open(full, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ASSERT_TRUE(fd >= 0);
        ASSERT_EQ(pwrite(fd, "end", 3, 16 << 20), 3);
        close(fd);
}

static const char *const kinds[] = { "file", "dir", "link", "hole", "fifo", "socket", "whiteout", "disk", "suid", "hard" };
static const char *const attributes[] = {
        "user.note", "trusted.overlay.opaque", "trusted.overlay.redirect", "security.capability", "system.posix_acl_access", "system.posix_acl_default",
};

static void fill_with_all_kinds(const Box *b, const char *at) {
        static const unsigned char capability[20] = { 0, 0, 0, 2, 0, 4 };
        static const unsigned char acl[] = { 2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 4, 0, 7, 0, 0, 0, 4, 0, 5, 0, 255, 255, 255, 255,
                                             16, 0, 5, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255 };
        char path[256];
#define AT(name) (snprintf(path, sizeof path, "%s/%s", at, name), path)
        put(b, AT("file"), "content");
        put(b, AT("suid"), "program");
        put(b, AT("hard"), "two names");
        box_mkdir(b, AT("dir"), 01777);
        put_sparse(b, AT("hole"));
        put_special(b, AT("fifo"), S_IFIFO | 0600, 0);
        put_special(b, AT("socket"), S_IFSOCK | 0600, 0);
        put_special(b, AT("whiteout"), S_IFCHR, makedev(0, 0));
        put_special(b, AT("disk"), S_IFBLK | 0640, makedev(7, 77));
        set_attribute(b, AT("file"), "user.note", "x", 1);
        set_attribute(b, AT("file"), "system.posix_acl_access", acl, sizeof acl);
        set_attribute(b, AT("suid"), "security.capability", capability, sizeof capability);
        set_attribute(b, AT("dir"), "trusted.overlay.opaque", "y", 1);
        set_attribute(b, AT("dir"), "trusted.overlay.redirect", "/etc", 4);
        set_attribute(b, AT("dir"), "system.posix_acl_default", acl, sizeof acl);
        _free_ char *link = box_path(b, AT("link")), *file = box_path(b, AT("file")), *suid = box_path(b, AT("suid"));
        ASSERT_EQ(symlink("/leads/nowhere", link), 0);
        ASSERT_EQ(lchown(link, 9, 10), 0);
        ASSERT_EQ(chown(file, 65534, 65533), 0);
        ASSERT_EQ(chmod(suid, 06755), 0);
        set_attribute(b, AT("suid"), "security.capability", capability, sizeof capability);
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                struct timespec times[] = { { .tv_sec = 5 }, { .tv_sec = 1000000000 + (time_t)i, .tv_nsec = 123456789 } };
                _free_ char *full = box_path(b, AT(kinds[i]));
                ASSERT_EQ(utimensat(AT_FDCWD, full, times, AT_SYMLINK_NOFOLLOW), 0);
        }
#undef AT
}

static void assert_same_kind(const Box *b, const char *name) {
        _free_ char *one = xasprintf("/reference/%s", name), *two = xasprintf(TARGET "/kubelet/%s", name);
        struct stat a = look_at(b, one), c = look_at(b, two);
        ASSERT_EQ(a.st_mode, c.st_mode);
        ASSERT_EQ(a.st_uid, c.st_uid);
        ASSERT_EQ(a.st_gid, c.st_gid);
        ASSERT_EQ(a.st_rdev, c.st_rdev);
        ASSERT_EQ(a.st_mtim.tv_sec, c.st_mtim.tv_sec);
        ASSERT_EQ(a.st_mtim.tv_nsec, c.st_mtim.tv_nsec);
        if (!S_ISDIR(a.st_mode))
                ASSERT_EQ(a.st_size, c.st_size);
        for (size_t i = 0; i < ARRAY_SIZE(attributes); i++)
                assert_same_attribute(b, one, two, attributes[i]);
}

TEST(every_kind_of_file_arrives_unchanged) {
        DISKS(b);
        char target[64] = "";
        fill_with_all_kinds(&b, "/reference");
        fill_with_all_kinds(&b, "/var/lib/kubelet");
        box_mkdir(&b, "/var/lib/containerd", 0711);
        _free_ char *hard = box_path(&b, "/var/lib/kubelet/hard"), *other = box_path(&b, "/var/lib/containerd/other");
        ASSERT_EQ(link(hard, other), 0);
        assert_done(&b);
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
                assert_same_kind(&b, kinds[i]);
        assert_file(&b, TARGET "/kubelet/file", "content");
        ASSERT_TRUE(look_at(&b, TARGET "/kubelet/hole").st_blocks < 1000);
        ASSERT_EQ(look_at(&b, TARGET "/kubelet/hard").st_ino, look_at(&b, TARGET "/containerd/other").st_ino);
        _free_ char *moved = box_path(&b, TARGET "/kubelet/link");
        ASSERT_EQ(readlink(moved, target, sizeof target - 1), (ssize_t)strlen("/leads/nowhere"));
        ASSERT_STREQ(target, "/leads/nowhere");
        assert_entries(&b, "/var/lib/kubelet", "");
}

/* A ramfs has no attributes. If an attribute would be lost, nothing moves. */
TEST(a_lost_attribute_is_a_failure) {
        DISKS(b);
        _free_ char *target = box_path(&b, TARGET);
        fill(&b);
        set_attribute(&b, "/var/lib/containerd/db", "trusted.overlay.opaque", "y", 1);
        ASSERT_EQ(umount(target), 0);
        ASSERT_EQ(mount("test", target, "ramfs", 0, NULL), 0);
        assert_refused(&b, "db");
        assert_file(&b, "/var/lib/containerd/db/meta", "metadata");
        assert_entries(&b, TARGET, "");
}

/* ---- later boots ---- */

TEST(files_written_since_the_last_boot_win_and_the_rest_stays) {
        DISKS(b);
        fill(&b);
        assert_done(&b);
        put(&b, TARGET "/kubelet/pods/volume", "of a pod");
        put(&b, "/var/lib/kubelet/kubeconfig", "written anew by the configuration phase");
        assert_done(&b);
        assert_file(&b, TARGET "/kubelet/kubeconfig", "written anew by the configuration phase");
        assert_file(&b, TARGET "/kubelet/pods/volume", "of a pod");
        assert_file(&b, TARGET "/kubelet/pki/key", "key");
        assert_entries(&b, "/var/lib/kubelet", "");
}

/* ---- stores ---- */

static void assert_warned(const Box *b, const char *words) {
        ASSERT_EQ(diag_count(&b->work.warnings, true), 1);
        ASSERT_STREQ(b->work.warnings.items[0].code, "store-kept");
        ASSERT_CONTAINS(b->work.warnings.items[0].text, words);
}

TEST(two_stores_are_not_mixed) {
        DISKS(b);
        put(&b, TARGET "/containerd/db/meta", "of the disks");
        put(&b, TARGET "/containerd/snapshots/1/a", "a");
        put(&b, TARGET "/kubelet/pods/volume", "of a pod");
        fill(&b);
        put(&b, "/var/lib/containerd/snapshots/1/b", "b");
        assert_done(&b);                /* the kubelet directory is not a store */
        assert_file(&b, TARGET "/containerd/db/meta", "of the disks");
        assert_entries(&b, TARGET "/containerd/db", "meta");
        assert_entries(&b, TARGET "/containerd/snapshots/1", "a");
        assert_file(&b, "/var/lib/containerd/db/meta", "metadata");
        assert_file(&b, "/var/lib/containerd/db/more", "more");
        assert_file(&b, "/var/lib/containerd/snapshots/1/b", "b");
        assert_file(&b, TARGET "/kubelet/kubeconfig", "kubeconfig");
        assert_file(&b, TARGET "/kubelet/pods/volume", "of a pod");
        assert_entries(&b, "/var/lib/kubelet", "");
        assert_warned(&b, "/var/lib/containerd of the root disk and " TARGET "/containerd differ");
        diag_done(&b.work.warnings);
        b.work.warnings = (Diag){};
        ASSERT_EQ(run(&b), 0);
        assert_warned(&b, "`mount --bind / /mnt` shows it as /mnt/var/lib/containerd");
}

/* The same size and another time: not the same file. */
TEST(stores_with_the_same_names_and_other_times_are_not_mixed) {
        DISKS(b);
        fill(&b);
        assert_done(&b);
        fill(&b);
        _free_ char *meta = box_path(&b, "/var/lib/containerd/db/meta");
        ASSERT_EQ(utimensat(AT_FDCWD, meta, (struct timespec[]){ { .tv_sec = 1 }, { .tv_sec = 1 } }, 0), 0);
        assert_done(&b);
        assert_file(&b, "/var/lib/containerd/db/meta", "metadata");
        assert_warned(&b, "two stores");
}

static void copy_aside(const Box *b, const char *from, const char *to) {
        _free_ char *a = box_path(b, from), *c = box_path(b, to);
        _cleanup_(child_result_done) ChildResult ran = {};
        ASSERT_OK(child_run((char *[]){ (char *)"cp", (char *)"-a", a, c, NULL }, 60 * USEC_PER_SEC, 0, &ran));
        ASSERT_EQ(ran.status, 0);
}

TEST(originals_that_are_already_copied_are_removed) {
        DISKS(b);
        fill(&b);
        copy_aside(&b, "/var/lib/containerd", TARGET);
        put(&b, TARGET "/containerd/db/later", "of a later boot");
        ASSERT_EQ(root_remove(b.root, "/var/lib/containerd/db/more"), 1);
        assert_done(&b);
        ASSERT_EQ(root_remove(b.root, TARGET "/containerd/db/later"), 1);
        assert_moved(&b);
        ASSERT_EQ(diag_count(&b.work.warnings, true), 0);
}

TEST(half_a_copy_of_a_store_is_completed) {
        DISKS(b);
        fill(&b);
        copy_aside(&b, "/var/lib/containerd", TARGET);
        ASSERT_EQ(root_remove(b.root, TARGET "/containerd/db/meta"), 1);
        assert_done(&b);
        assert_moved(&b);
        ASSERT_EQ(diag_count(&b.work.warnings, true), 0);
}

TEST(directories_that_are_already_bound_are_left_alone) {
        DISKS(b);
        fill(&b);
        assert_done(&b);
        b.action.storage.source = (char *)TARGET "/kubelet";
        b.action.target = (char *)"/var/lib/kubelet";
        ASSERT_EQ(bind_work(&b.work), 1);
        b.action.target = (char *)TARGET;
        ASSERT_EQ(run(&b), 0);
        assert_file(&b, "/var/lib/kubelet/kubeconfig", "kubeconfig");
        put(&b, "/var/log/pods/late", "late");
        assert_done(&b);
        assert_file(&b, "/var/lib/kubelet/kubeconfig", "kubeconfig");
        assert_file(&b, TARGET "/logs/late", "late");
}

TEST(a_link_is_followed_and_stays) {
        DISKS(b);
        _free_ char *link = box_path(&b, "/var/lib/kubelet");
        put(&b, "/data/elsewhere/kubeconfig", "kubeconfig");
        box_mkdir(&b, "/var/lib", 0755);
        ASSERT_EQ(symlink("../../data/elsewhere", link), 0);
        assert_done(&b);
        assert_file(&b, TARGET "/kubelet/kubeconfig", "kubeconfig");
        assert_entries(&b, "/data/elsewhere", "");
        ASSERT_TRUE(S_ISLNK(look_at(&b, "/var/lib/kubelet").st_mode));
}

/* ---- failures ---- */

TEST(without_space_originals_stay_and_the_copy_is_removed) {
        _cleanup_(box_done) Box b;
        disks_init(&b, "mode=0755,size=256k");
        _free_ char *big = xcalloc(1 << 20, 1);
        memset(big, 'x', (1 << 20) - 1);
        fill(&b);
        put(&b, "/var/lib/containerd/big", big);
        put(&b, TARGET "/kubelet/old", "old");
        assert_refused(&b, "No space left");
        ASSERT_CONTAINS(b.work.text, "MiB were free");
        assert_file(&b, "/var/lib/containerd/big", big);
        assert_file(&b, "/var/lib/kubelet/kubeconfig", "kubeconfig");
        assert_entries(&b, TARGET, "kubelet");
        assert_entries(&b, TARGET "/kubelet", "old");
}

TEST(without_cp_nothing_changes) {
        SKIP_IF_VFORK_FORKS();
        DISKS(b);
        _free_ char *before = xstrdup(getenv("PATH") ?: "/usr/bin:/bin");
        fill(&b);
        setenv("PATH", "/nowhere", 1);
        int r = run(&b);
        setenv("PATH", before, 1);
        ASSERT_TRUE(r < 0);
        ASSERT_EQ(b.work.cause, CAUSE_STORAGE_TOOL);
        ASSERT_CONTAINS(b.work.text, "cp");
        assert_file(&b, "/var/lib/kubelet/kubeconfig", "kubeconfig");
        assert_entries(&b, TARGET, "");
}

TEST(a_file_that_changes_during_the_copy_is_not_removed) {
        DISKS(b);
        _free_ char *before = xstrdup(getenv("PATH") ?: "/usr/bin:/bin"), *bin = box_path(&b, "/bin"), *first = xasprintf("%s:%s", bin, before);
        _free_ char *cp = xasprintf("#!/bin/sh\nPATH=%s\ncp \"$@\" && echo more >>%s/var/lib/containerd/db/meta\n", before, b.path);
        fill(&b);
        ASSERT_OK(root_replace_volatile(b.root, "/bin/cp", cp, strlen(cp), 0755));
        setenv("PATH", first, 1);
        int r = run(&b);
        setenv("PATH", before, 1);
        ASSERT_EQ(r, -ESTALE);
        ASSERT_EQ(b.work.cause, CAUSE_MOVE);
        ASSERT_CONTAINS(b.work.text, "/var/lib/containerd/db/meta changed during the copy");
        assert_file(&b, "/var/lib/containerd/db/meta", "metadatamore\n");
        assert_entries(&b, TARGET, "");         /* the disks have nothing of it */
        assert_done(&b);
        assert_file(&b, TARGET "/containerd/db/meta", "metadatamore\n");
        assert_entries(&b, "/var/lib/containerd", "");
}

TEST(nothing_moves_if_the_target_is_not_mounted) {
        DISKS(b);
        _free_ char *target = box_path(&b, TARGET);
        fill(&b);
        ASSERT_EQ(umount(target), 0);
        assert_refused(&b, "nothing is mounted on " TARGET);
        assert_entries(&b, TARGET, "");
}

TEST(a_directory_with_its_own_file_system_is_refused) {
        DISKS(b);
        fill(&b);
        box_tmpfs(&b, "/var/log/pods", NULL);
        assert_refused(&b, "/var/log/pods has its own file system");
        assert_entries(&b, TARGET, "");
}

TEST(a_mount_below_a_directory_is_refused_by_name) {
        DISKS(b);
        fill(&b);
        box_tmpfs(&b, "/var/lib/kubelet/pods/1/token", NULL);
        put(&b, "/var/lib/kubelet/pods/1/token/secret", "of a pod that runs");
        assert_refused(&b, "/var/lib/kubelet/pods/1/token is mounted below /var/lib/kubelet");
        assert_entries(&b, TARGET, "");
        assert_file(&b, "/var/lib/kubelet/pods/1/token/secret", "of a pod that runs");
}

TEST(a_file_in_the_place_of_a_directory_is_refused) {
        DISKS(b);
        put(&b, "/var/log/pods", "no directory");
        assert_refused(&b, "/var/log/pods cannot be opened as a directory");
}

TEST(a_dead_link_is_refused) {
        DISKS(b);
        _free_ char *link = box_path(&b, "/var/lib/kubelet");
        box_mkdir(&b, "/var/lib", 0755);
        ASSERT_EQ(symlink("/data/elsewhere", link), 0);
        assert_refused(&b, "/var/lib/kubelet cannot be made");
}

TEST(directories_that_lead_into_each_other_are_refused) {
        DISKS(b);
        _free_ char *link = box_path(&b, "/var/log/pods");
        box_mkdir(&b, "/var/log", 0755);
        box_mkdir(&b, "/var/lib/kubelet/logs", 0755);
        ASSERT_EQ(symlink("/var/lib/kubelet/logs", link), 0);
        assert_refused(&b, "/var/log/pods resolves to a path in /var/lib/kubelet");
}

TEST(undeletable_originals_are_a_failure_and_the_copy_stays) {
        DISKS(b);
        fill(&b);
        ASSERT_TRUE(run(&b) == 1);
        fill(&b);
        ASSERT_EQ(mount("none", b.path, "none", MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
        assert_refused(&b, "/var/lib/kubelet/kubeconfig is on the disks now, but could not be deleted from the root disk: Read-only file system");
        assert_file(&b, TARGET "/kubelet/kubeconfig", "kubeconfig");
}

/* ---- remains of a run that was cut off ---- */

TEST(an_unfinished_copy_is_removed_first) {
        DISKS(b);
        fill(&b);
        put(&b, TARGET "/.nodestrap-incoming/var/lib/kubelet/half", "ha");
        put(&b, TARGET "/.nodestrap-incoming/kubeconfig", "ku");
        assert_done(&b);
        assert_moved(&b);
        ASSERT_TRUE(!is_there(&b, TARGET "/kubelet/half"));
}

TEST(an_unfinished_copy_is_removed_even_with_nothing_to_move) {
        DISKS(b);
        assert_done(&b);
        put(&b, TARGET "/.nodestrap-incoming/half", "ha");
        ASSERT_EQ(run(&b), 0);
        ASSERT_TRUE(!is_there(&b, TARGET "/.nodestrap-incoming"));
}

TEST(an_unfinished_copy_with_a_mount_in_it_stays) {
        DISKS(b);
        fill(&b);
        box_tmpfs(&b, TARGET "/.nodestrap-incoming/x", NULL);
        put(&b, TARGET "/.nodestrap-incoming/x/precious", "precious");
        ASSERT_TRUE(run(&b) < 0);
        ASSERT_CONTAINS(b.work.text, TARGET "/.nodestrap-incoming/x is left over from an earlier copy and cannot be removed");
        assert_file(&b, TARGET "/.nodestrap-incoming/x/precious", "precious");
        assert_file(&b, "/var/lib/kubelet/kubeconfig", "kubeconfig");
}

static bool changes(uint64_t call) {
        switch (call) {
        case SYS_renameat2:
        case SYS_renameat:
        case SYS_unlinkat:
        case SYS_mkdirat:
        case SYS_syncfs:
        case SYS_fsync:
        case SYS_waitid:                /* cp has copied, or is about to copy */
                return true;
        default:
                return false;
        }
}

/* Runs in a process of its own. 0: the run was killed before its nth change; 1: it made fewer and ended
 * well; 2: tracing is not possible. */
static int trace(Box *b, unsigned n) {
        int status = 0;
        pid_t child = fork();           /* PID 1 of its namespace, so its children end with it */
        if (child == 0) {
                if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
                        _exit(2);
                raise(SIGSTOP);
                _exit(move_work(&b->work) == 1 ? 1 : 3);
        }
        if (child < 0 || waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status))
                return 2;
        ptrace(PTRACE_SETOPTIONS, child, NULL, (long)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
        for (int signal = 0; ptrace(PTRACE_SYSCALL, child, NULL, (long)signal) == 0 && waitpid(child, &status, 0) > 0;) {
                struct __ptrace_syscall_info info = {};
                if (WIFEXITED(status))
                        return WEXITSTATUS(status);
                signal = WIFSTOPPED(status) && WSTOPSIG(status) != (SIGTRAP | 0x80) ? WSTOPSIG(status) : 0;
                if (signal || ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) <= 0)
                        continue;
                if (info.op != PTRACE_SYSCALL_INFO_ENTRY || !changes(info.entry.nr) || --n > 0)
                        continue;
                kill(child, SIGKILL);
                while (waitpid(child, &status, 0) > 0 && !WIFSIGNALED(status))
                        ;
                return 0;
        }
        return 2;
}

static int run_and_cut(Box *b, unsigned n) {
        int status = 0;
        pid_t tracer = fork();
        if (tracer == 0)
                _exit(unshare(CLONE_NEWPID) == 0 ? trace(b, n) : 2);
        ASSERT_TRUE(tracer > 0 && waitpid(tracer, &status, 0) == tracer && WIFEXITED(status));
        return WEXITSTATUS(status);
}

/* A second boot's content over a first one's: merging, files that win, a tree in the place of a file. */
static void fill_for_second_boot(Box *b) {
        put(b, TARGET "/kubelet/kubeconfig", "old");
        put(b, TARGET "/kubelet/pods/volume", "of a pod");
        put(b, TARGET "/logs/pod", "a file in the place of a directory");
        put(b, "/var/log/pods/pod/log", "log");
        fill(b);
}

TEST(the_next_run_completes_a_run_killed_anywhere) {
        unsigned n = 1;
        for (;; n++) {
                DISKS(b);
                fill_for_second_boot(&b);
                int r = run_and_cut(&b, n);
                if (r == 2 || TRANSLATED_BY(""))       /* then system calls are not those of the program */
                        SKIP("processes cannot be traced here");
                ASSERT_TRUE(r == 0 || r == 1);
                int again = run(&b);
                if (again < 0)
                        FAIL("cut off before change %u: %s", n, b.work.text);
                assert_moved(&b);
                assert_file(&b, TARGET "/kubelet/pods/volume", "of a pod");
                assert_file(&b, TARGET "/logs/pod/log", "log");
                assert_file(&b, TARGET "/logs/pod.nodestrap-old", "a file in the place of a directory");
                ASSERT_EQ(run(&b), 0);
                if (r == 1)
                        break;
        }
        ASSERT_TRUE(n > 20);            /* there were enough cuts */
}

/* ---- volumes ---- */

static Move whole[] = { { (char *)"/var/lib/containerd", (char *)"" } };
static Move shared[] = { { (char *)"/var/lib/containerd", (char *)"var-lib-containerd" }, { (char *)"/srv/b", (char *)"srv-b" } };
#define WHOLE  whole, ARRAY_SIZE(whole)
#define SHARED shared, ARRAY_SIZE(shared)

static void volume_init(Box *b, Move *list, size_t n) {
        disks_init(b, "mode=0755");
        b->action.storage.moves = list;
        b->action.storage.n_moves = n;
        b->action.storage.volume = true;
}
#define VOLUME(name, what) _cleanup_(box_done) Box name; volume_init(&name, what)

static void fill_volume(const Box *b) {
        put(b, "/var/lib/containerd/db/meta", "metadata");
        put(b, "/var/lib/containerd/db/more", "more");
        put(b, "/var/lib/containerd/snapshots", "1");
        put(b, "/srv/b/log", "one");
}

static const char *on_volume(const Box *b) {
        return b->action.storage.n_moves == 1 ? TARGET : TARGET "/var-lib-containerd";
}

static void assert_on_volume(const Box *b, const char *meta) {
        _free_ char *one = xasprintf("%s/db/meta", on_volume(b)), *two = xasprintf("%s/db/more", on_volume(b)),
                    *three = xasprintf("%s/snapshots", on_volume(b));
        assert_file(b, one, meta);
        assert_file(b, two, "more");
        assert_file(b, three, "1");
        if (b->action.storage.n_moves > 1)
                assert_file(b, TARGET "/srv-b/log", "one");
        assert_entries(b, TARGET, b->action.storage.n_moves == 1 ? ".nodestrap-taken db snapshots" : "srv-b var-lib-containerd");
}

static void forget(const Box *b, const char *path) {
        _free_ char *full = box_path(b, path);
        _cleanup_(child_result_done) ChildResult ran = {};
        ASSERT_OK(child_run((char *[]){ (char *)"rm", (char *)"-rf", full, NULL }, 60 * USEC_PER_SEC, 0, &ran));
        ASSERT_EQ(ran.status, 0);
}

/* The volume at another machine, which has its own root disk and its own content in the directories. */
static void other_machine(const Box *b) {
        forget(b, "/var/lib");
        forget(b, "/srv");
        put(b, "/var/lib/containerd/db/meta", "of the other machine");
        put(b, "/var/lib/containerd/db/other", "other");
}

static int cut_volume(Box *b, int n) {
        fill_volume(b);
        int r = run_and_cut(b, (unsigned)n);
        if (r == 2 || TRANSLATED_BY(""))
                return 2;
        ASSERT_TRUE(r == 0 || r == 1);
        return r;
}
#define CUT_VOLUME(b, n) ({ int _r = cut_volume(b, n); if (_r == 2) SKIP("processes cannot be traced here"); _r; })

static void volume_is_completed(Move *list, size_t n_moves) {
        int n = 1;
        for (int r = 0; r == 0; n++) {
                _cleanup_(box_done) Box b;
                volume_init(&b, list, n_moves);
                r = CUT_VOLUME(&b, n);
                if (run(&b) < 0)
                        FAIL("cut off before change %d: %s", n, b.work.text);
                assert_on_volume(&b, "metadata");
                assert_entries(&b, "/var/lib/containerd", "");
                ASSERT_EQ(diag_count(&b.work.warnings, true), 0);
                ASSERT_TRUE(!is_there(&b, "/var/lib/nodestrap/filling-0"));
                ASSERT_EQ(run(&b), 0);
        }
        ASSERT_TRUE(n > 12);
}

TEST(a_whole_volume_is_completed_after_a_kill_anywhere) {
        volume_is_completed(WHOLE);
}

TEST(a_shared_volume_is_completed_after_a_kill_anywhere) {
        volume_is_completed(SHARED);
}

/* All content of the first machine or all of the other, and never a mixture. */
static void assert_not_mixed(Box *b, int r, int n) {
        _free_ char *meta = xasprintf("%s/db/meta", on_volume(b)), *more = xasprintf("%s/db/more", on_volume(b)),
                    *other = xasprintf("%s/db/other", on_volume(b)), *data = NULL;
        if (r < 0) {
                ASSERT_CONTAINS(b->work.text, "another machine");
                ASSERT_TRUE(!is_there(b, other));
                assert_file(b, "/var/lib/containerd/db/meta", "of the other machine");
                return;
        }
        ASSERT_OK(root_read(b->root, meta, 1000, &data, NULL));
        bool first = streq(data, "metadata");
        if (is_there(b, more) != first || is_there(b, other) == first)
                FAIL("cut off before change %d, the volume is mixed", n);
        if (first)
                assert_warned(b, "/var/lib/containerd/db/meta of the root disk is missing on the volume");
}

static void other_machine_mixes_nothing(Move *list, size_t n_moves, bool refused) {
        bool was_refused = false;
        for (int n = 1, r = 0; r == 0; n++) {
                _cleanup_(box_done) Box b;
                volume_init(&b, list, n_moves);
                r = CUT_VOLUME(&b, n);
                other_machine(&b);
                int again = run(&b);
                was_refused |= again < 0;
                assert_not_mixed(&b, again, n);
        }
        ASSERT_EQ(was_refused, refused);
}

TEST(another_machine_does_not_mix_a_whole_volume) {
        other_machine_mixes_nothing(WHOLE, true);
}

TEST(another_machine_does_not_mix_a_shared_volume) {
        other_machine_mixes_nothing(SHARED, false);
}

static void changed_original_is_told(Move *list, size_t n_moves) {
        bool warned = false;
        for (int n = 1, r = 0; r == 0; n++) {
                _cleanup_(box_done) Box b;
                volume_init(&b, list, n_moves);
                r = CUT_VOLUME(&b, n);
                if (r > 0)
                        break;
                put(&b, "/var/lib/containerd/db/meta", "metadata and newer");
                if (run(&b) < 0)
                        FAIL("cut off before change %d: %s", n, b.work.text);
                if (is_there(&b, "/var/lib/containerd/db/meta")) {
                        assert_warned(&b, "/var/lib/containerd/db/meta of the root disk is missing on the volume at " TARGET ", or differs there");
                        assert_file(&b, "/var/lib/containerd/db/meta", "metadata and newer");
                        assert_on_volume(&b, "metadata");
                        warned = true;
                } else
                        assert_on_volume(&b, "metadata and newer");
        }
        ASSERT_TRUE(warned);
}

TEST(a_whole_volume_hides_a_changed_original_only_with_a_warning) {
        changed_original_is_told(WHOLE);
}

TEST(a_shared_volume_hides_a_changed_original_only_with_a_warning) {
        changed_original_is_told(SHARED);
}

TEST(a_volume_that_its_user_emptied_is_not_filled_again) {
        VOLUME(b, WHOLE);
        fill_volume(&b);
        assert_done(&b);
        assert_on_volume(&b, "metadata");
        forget(&b, TARGET "/db");
        forget(&b, TARGET "/snapshots");
        put(&b, "/var/lib/containerd/db/meta", "of the image");
        ASSERT_EQ(run(&b), 0);
        assert_entries(&b, TARGET, ".nodestrap-taken");
        assert_file(&b, "/var/lib/containerd/db/meta", "of the image");
}

TEST(a_copied_mark_of_another_volume_does_not_count) {
        VOLUME(b, WHOLE);
        fill_volume(&b);
        put(&b, "/var/lib/containerd/.nodestrap-taken/machine", "of another volume");
        assert_done(&b);
        assert_on_volume(&b, "metadata");
        assert_entries(&b, "/var/lib/containerd", "");
}

static void assert_layout_warned(Box *b, bool warned) {
        ASSERT_EQ(diag_count(&b->work.warnings, true), warned);
        if (warned)
                ASSERT_STREQ(b->work.warnings.items[0].code, "volume-layout");
        diag_done(&b->work.warnings);
        b->work.warnings = (Diag){};
}

TEST(a_change_from_whole_to_shared_layout_is_a_warning) {
        VOLUME(b, WHOLE);
        fill_volume(&b);
        assert_done(&b);
        b.action.storage.moves = shared;
        b.action.storage.n_moves = ARRAY_SIZE(shared);
        assert_done(&b);
        assert_layout_warned(&b, true);
        ASSERT_EQ(run(&b), 0);
        assert_layout_warned(&b, false);
}

TEST(a_change_from_shared_to_whole_layout_is_a_warning) {
        VOLUME(b, SHARED);
        fill_volume(&b);
        assert_done(&b);
        assert_layout_warned(&b, false);
        b.action.storage.moves = whole;
        b.action.storage.n_moves = ARRAY_SIZE(whole);
        ASSERT_EQ(run(&b), 0);
        assert_layout_warned(&b, true);
}

/* The first phase writes its files at each boot. They move to the volume and hide nothing. */
TEST(planned_files_replace_those_of_a_volume_without_a_warning) {
        static char *files[] = { (char *)"/var/lib/containerd/db/meta", NULL };
        VOLUME(b, SHARED);
        b.action.storage.files = files;
        fill_volume(&b);
        assert_done(&b);
        put(&b, "/var/lib/containerd/db/meta", "written anew");
        assert_done(&b);
        assert_on_volume(&b, "written anew");
        assert_entries(&b, "/var/lib/containerd", "");
        ASSERT_EQ(diag_count(&b.work.warnings, true), 0);
        ASSERT_EQ(run(&b), 0);
}

TEST_MAIN
