/* SPDX-License-Identifier: Apache-2.0
 * Needs and a root made for each test → checks. */
#include "test.h"
#include "files.h"
#include "small-elf.h"

#include "doctor/checks.h"
#include "doctor/elf.h"
#include "doctor/look.h"
#include "base/str.h"

#include <sys/xattr.h>

#define KERNEL "6.1.0-9-cloud-amd64"
#define OTHER  "6.1.0-10-cloud-amd64"
#define LOADER "/lib64/ld-linux-x86-64.so.2"

static size_t open_files(void) {
        _cleanup_(root_freep) Root *host = NULL;
        _strv_ char **names = NULL;
        ASSERT_OK(root_new("/", &host));
        ASSERT_OK(root_list(host, "/proc/self/fd", &names));
        return strv_length(names);
}

typedef struct Box { char path[32]; Root *root; Needs needs; Checks checks; Image image; bool open; size_t files; } Box;

static void put(Box *b, const char *path, const char *text, mode_t mode) {
        ASSERT_OK(root_replace_volatile(b->root, path, text, strlen(text), mode));
}

static void put_elf(Box *b, const char *path, ElfSpec spec) {
        size_t size;
        _free_ char *data = elf_make(&spec, &size);
        ASSERT_OK(root_replace_volatile(b->root, path, data, size, 0755));
}

static void put_link(Box *b, const char *path, const char *target) {
        ASSERT_OK(root_link(b->root, path, target));
}

static char *full(const Box *b, const char *path) {
        return xasprintf("%s%s", b->path, path);
}

static void take_away(Box *b, const char *path) {
        ASSERT_EQ(root_remove(b->root, path), 1);
}

static Box box_new(void) {
        Box b = { .path = P_tmpdir "/doctor-XXXXXX" };
        ASSERT_TRUE(mkdtemp(b.path));
        ASSERT_EQ(chmod(b.path, 0755), 0);
        b.files = open_files();
        ASSERT_OK(root_new(b.path, &b.root));
        put_elf(&b, LOADER, (ElfSpec){ .soname = "ld-linux-x86-64.so.2" });
        put_elf(&b, "/usr/lib64/libc.so.6", (ElfSpec){ .soname = "libc.so.6" });
        put_elf(&b, "/usr/lib/systemd/systemd", (ElfSpec){ .interpreter = LOADER, .needed = { "libc.so.6" } });
        put_elf(&b, "/usr/bin/tool", (ElfSpec){ .interpreter = LOADER, .needed = { "libc.so.6" } });
        put(&b, "/lib/modules/" KERNEL "/modules.builtin", "kernel/fs/ext4/ext4.ko\n", 0644);
        return b;
}

static void box_done(Box *b) {
        if (b->open)
                image_done(&b->image);
        needs_done(&b->needs);
        checks_done(&b->checks);
        root_free(b->root);
        ASSERT_EQ(open_files(), b->files);
        ASSERT_EQ(tree_remove(b->path), 0);
}
#define BOX(b) _cleanup_(box_done) Box b = box_new()

static void box_need(Box *b, NeedKind kind, const char *name, bool optional) {
        b->needs.items = xrealloc(b->needs.items, b->needs.n + 1, sizeof *b->needs.items);
        b->needs.items[b->needs.n++] = (Need){ .kind = kind, .name = xstrdup(name), .optional = optional,
                                               .cause = CAUSE_COMMAND, .step = xstrdup("the-step") };
}

static void box_types(Box *b, const char *type) {
        strv_add(&b->needs.items[b->needs.n - 1].types, type);
}

static void box_open(Box *b) {
        _cleanup_(diag_done) Diag diag = {};
        if (b->open)
                image_done(&b->image);
        ASSERT_OK(image_open(b->root, image_is_running(b->root), &b->image, &diag));
        b->image.running = false;
        b->open = true;
        checks_done(&b->checks);
}

static void look(Box *b) {
        box_open(b);
        image_look(&b->image, &b->needs, &b->checks);
}

static void compare(Box *b) {
        box_open(b);
        image_compare(&b->image, &b->needs, &b->checks);
}

static void search(Box *b) {
        box_open(b);
        image_search(&b->image, &b->checks);
}

static const Check *find(const Box *b, const char *code, const char *subject) {
        for (size_t i = 0; i < b->checks.n; i++)
                if (streq(b->checks.items[i].code, code) && (!subject || streq(b->checks.items[i].subject, subject)))
                        return &b->checks.items[i];
        return NULL;
}

/* Finds this check and compares its verdict; its text must have these words. */
static void assert_check(const Box *b, CheckVerdict verdict, const char *code, const char *subject, const char *words) {
        const Check *c = find(b, code, subject);
        if (!c)
                FAIL("no check \"%s\" of %s; the first is %s", code, subject ?: "anything",
                     b->checks.n ? b->checks.items[0].code : "none");
        if (c->verdict != verdict)
                FAIL("%s of %s is %s, want %s: %s", code, c->subject, check_verdict_to_string(c->verdict),
                     check_verdict_to_string(verdict), c->text ?: "");
        if (words)
                ASSERT_CONTAINS(c->text, words);
        else
                ASSERT_TRUE(!c->text);
}

/* Looks at the only need of this box, which must give this one check. */
static void assert_look(Box *b, CheckVerdict verdict, const char *code, const char *words) {
        look(b);
        assert_check(b, verdict, code, NULL, words);
        ASSERT_EQ(b->checks.n, 1);
        ASSERT_STREQ(b->checks.items[0].step, "the-step");
        if (verdict == CHECK_FAILED)
                ASSERT_TRUE(b->checks.items[0].cause != CAUSE_NONE);
        else
                ASSERT_EQ(b->checks.items[0].cause, CAUSE_NONE);
}

/* ---- ELF ---- */

static int elf_file(const char *data, size_t size, Elf *ret) {
        FILE *f = tmpfile();
        ASSERT_TRUE(f && fwrite(data, 1, size, f) == size && fflush(f) == 0);
        int r = elf_read(fileno(f), ret);
        ASSERT_EQ(fclose(f), 0);
        return r;
}

TEST(elf_names) {
        _cleanup_(elf_done) Elf e = {};
        const ElfSpec spec = { .interpreter = LOADER, .soname = "libx.so.1", .runpath = "$ORIGIN/../lib:/opt/x",
                               .needed = { "liba.so", "libb.so.2" }, .machine = EM_AARCH64 };
        size_t size;
        _free_ char *data = elf_make(&spec, &size);
        ASSERT_OK(elf_file(data, size, &e));
        ASSERT_TRUE(e.wide);
        ASSERT_EQ(e.machine, EM_AARCH64);
        ASSERT_STREQ(e.interpreter, LOADER);
        ASSERT_STREQ(e.soname, "libx.so.1");
        ASSERT_STREQ(e.needed[1], "libb.so.2");
        ASSERT_TRUE(!e.needed[2]);
        ASSERT_STREQ(e.search[0], "$ORIGIN/../lib");
        ASSERT_STREQ(e.search[1], "/opt/x");
        ASSERT_TRUE(!e.search[2]);
}

TEST(elf_versions) {
        _cleanup_(elf_done) Elf e = {};
        const ElfSpec spec = { .needed = { "liba.so" }, .wants = { "A_1", "?A_2", "A_3" }, .defines = { "libx.so.1", "X_1", "X_2" } };
        size_t size;
        _free_ char *data = elf_make(&spec, &size);
        ASSERT_OK(elf_file(data, size, &e));
        ASSERT_EQ(e.n_wants, 2);
        ASSERT_STREQ(e.wants[1].name, "A_3");
        ASSERT_STREQ(e.wants[1].library, "liba.so");
        ASSERT_STREQ(e.defines[2], "X_2");
        ASSERT_TRUE(!e.defines[3]);
}

/* Each entry says that the next one begins four bytes further, inside it; only the last has no next one. */
TEST(elf_versions_without_end) {
        _cleanup_(elf_done) Elf e = {};
        const ElfSpec spec = { .soname = "libx.so.1", .defines = { "X_1" } };
        size_t size, at = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr) + 12 * sizeof(Elf64_Dyn) + sizeof(Elf64_Verneed) +
                          3 * sizeof(Elf64_Vernaux), more = 64 << 10;
        _free_ char *data = elf_make(&spec, &size), *long_one = xcalloc(size + more, 1);
        memcpy(long_one, data, size);
        const uint32_t next = (uint32_t)(size - at), step = 4;
        memcpy(long_one + at + offsetof(Elf64_Verdef, vd_next), &next, sizeof next);
        for (size_t i = 0; i < more - 64; i += sizeof step)
                memcpy(long_one + size + i, &step, sizeof step);
        ASSERT_EQ(elf_file(long_one, size + more, &e), -EBADMSG);
}

TEST(elf_cut_anywhere) {
        const ElfSpec spec = { .interpreter = LOADER, .needed = { "liba.so" }, .wants = { "A_1" }, .defines = { "X_1" } };
        size_t size, whole = 0;
        _free_ char *data = elf_make(&spec, &size);
        for (size_t n = 0; n <= size; n++) {
                _cleanup_(elf_done) Elf e = {};
                int r = elf_file(data, n, &e);
                if (r != 0 && r != (n < 20 ? -ENOEXEC : -EBADMSG))
                        FAIL("cut to %zu bytes it is %d", n, r);
                whole += r == 0;
        }
        ASSERT_TRUE(whole > 0 && whole < size / 2);
}

/* ---- the image ---- */

TEST(a_root_without_an_image_is_an_error) {
        _cleanup_(diag_done) Diag diag = {};
        char path[] = P_tmpdir "/doctor-XXXXXX";
        _cleanup_(root_freep) Root *root = NULL;
        Image image = {};
        ASSERT_TRUE(mkdtemp(path));
        ASSERT_OK(root_new(path, &root));
        ASSERT_ERROR(image_open(root, false, &image, &diag), ENOENT);
        ASSERT_EQ(diag_first_error(&diag)->cause, CAUSE_USAGE);
        ASSERT_EQ(tree_remove(path), 0);
}

TEST(lists_of_modules_have_one_limit) {
        BOX(b);
        _free_ char *first = NULL, *second = NULL;
        size_t rest = 30;
        put(&b, "/lib/modules/" KERNEL "/modules.dep", "kernel/fs/xfs/xfs.ko:\n", 0644);
        ASSERT_OK(modules_list(b.root, KERNEL, &rest, &first));
        ASSERT_EQ(rest, 30 - strlen(first));
        ASSERT_EQ(modules_list(b.root, KERNEL, &rest, &second), -EFBIG);
}

TEST(kernels_in_order) {
        BOX(b);
        put(&b, "/lib/modules/6.1.155-1/modules.builtin", "", 0644);
        put(&b, "/lib/modules/6.1.94-1/modules.builtin", "", 0644);
        box_open(&b);
        ASSERT_STREQ(b.image.kernels[0], KERNEL);
        ASSERT_STREQ(b.image.kernels[1], "6.1.94-1");
        ASSERT_STREQ(b.image.kernels[2], "6.1.155-1");
}

TEST(kernel_that_boots) {
        BOX(b);
        box_open(&b);
        ASSERT_EQ(b.image.machine, EM_X86_64);
        ASSERT_STREQ(b.image.kernel, KERNEL);
        put(&b, "/lib/modules/" OTHER "/modules.builtin", "", 0644);
        put(&b, "/lib/modules/5.10.0/extra/nvidia.ko", "", 0644);       /* of a kernel that was removed */
        box_open(&b);
        ASSERT_EQ(strv_length(b.image.kernels), 2);
        ASSERT_TRUE(!b.image.kernel);
        put(&b, "/boot/loader/entries/id-" KERNEL ".conf", "title A\nversion " KERNEL "\n", 0644);
        put(&b, "/boot/loader/entries/id-" OTHER ".conf", "title B\nversion " OTHER "\n", 0644);
        box_open(&b);
        ASSERT_STREQ(b.image.kernel, OTHER);    /* 10 is more than 9 */
        put(&b, "/boot/grub2/grubenv", "# GRUB Environment Block\nsaved_entry=id-" KERNEL "\n####", 0644);
        box_open(&b);
        ASSERT_STREQ(b.image.kernel, KERNEL);
}

#define INFO(version) "license=NVIDIA\0version=" version "\0vermagic=" KERNEL " SMP"
static void put_driver(Box *b, const char *info, size_t size) {
        put(b, "/lib/modules/" KERNEL "/modules.dep", "extra/nvidia.ko: kernel/x.ko\nextra/nvidia-uvm.ko.xz:\n", 0644);
        put_elf(b, "/lib/modules/" KERNEL "/extra/nvidia.ko", (ElfSpec){ .info = info, .info_size = size });
}

TEST(driver_version) {
        BOX(b);
        put(&b, "/usr/src/nvidia-fs-2.24.3/dkms.conf", "", 0644);       /* has a version of its own */
        put(&b, "/usr/src/nvidia-580/dkms.conf", "", 0644);
        put(&b, "/var/lib/dkms/nvidia/kernel-6.12.46-66.121.amzn2023.x86_64-x86_64/x", "", 0644);
        box_open(&b);
        ASSERT_TRUE(!b.image.driver);
        put(&b, "/var/lib/dkms-archive/nvidia-open/nvidia-open-575.57.08-kernel6.12.46-x86_64.dkms.tar.gz", "", 0644);
        box_open(&b);
        ASSERT_STREQ(b.image.driver, "575.57.08");
        put(&b, "/usr/src/nvidia-open-98.86.15/dkms.conf", "", 0644);
        put(&b, "/usr/src/nvidia-470.256.02/dkms.conf", "", 0644);
        put(&b, "/usr/src/nvidia-570.158.01/dkms.conf", "", 0644);
        box_open(&b);
        ASSERT_STREQ(b.image.driver, "570.158.01");
        put_driver(&b, INFO("580.126.09"), sizeof INFO("580.126.09"));
        box_open(&b);
        ASSERT_STREQ(b.image.driver, "580.126.09");
}

TEST(driver_trees) {
        BOX(b);
        put(&b, "/opt/nvidia/lts/usr/lib64/libnvidia-ml.so.580.126.09", "", 0755);
        put(&b, "/opt/nvidia/pb/usr/lib64/libnvidia-ml.so.595.45.04", "", 0755);
        box_open(&b);
        ASSERT_TRUE(!b.image.driver);           /* the boot chooses one */
        put(&b, "/opt/nvidia/current/usr/lib64/libnvidia-ml.so.595.45.04", "", 0755);
        box_open(&b);
        ASSERT_STREQ(b.image.driver, "595.45.04");
}

/* ---- programs and libraries ---- */

TEST(program_with_its_interpreter) {
        BOX(b);
        box_need(&b, NEED_PROGRAM, "tool", false);
        assert_look(&b, CHECK_OK, "program", NULL);
        ASSERT_STREQ(b.checks.items[0].found, "/usr/bin/tool");
        put(&b, "/usr/bin/tool", "#! /usr/bin/env systemd\n", 0755);
        assert_look(&b, CHECK_FAILED, "program-interpreter", "its interpreter systemd is missing");
        put(&b, "/usr/bin/systemd", "#!/usr/lib/systemd/systemd --x\n", 0755);
        assert_look(&b, CHECK_OK, "program", NULL);
}

TEST(program_missing) {
        BOX(b);
        box_need(&b, NEED_PROGRAM, "mkfs.xfs", false);
        assert_look(&b, CHECK_FAILED, "program", "install xfsprogs");
        ASSERT_EQ(b.checks.items[0].cause, CAUSE_COMMAND);
        b.needs.items[0].optional = true;
        assert_look(&b, CHECK_WARNING, "program", "install xfsprogs");
        put(&b, "/usr/sbin/mkfs.xfs", "#!/usr/bin/tool\n", 0644);
        assert_look(&b, CHECK_WARNING, "program-mode", "chmod 0755 /usr/sbin/mkfs.xfs");
        put_link(&b, "/usr/sbin/mkfs.xfs", "/usr/bin/tool");            /* of the image, not of this machine */
        assert_look(&b, CHECK_OK, "program", NULL);
}

TEST(program_cannot_run) {
        BOX(b);
        box_need(&b, NEED_PROGRAM, "/usr/bin/tool", false);
        put_elf(&b, "/usr/bin/tool", (ElfSpec){ .machine = EM_AARCH64 });
        assert_look(&b, CHECK_FAILED, "program-architecture", "built for aarch64, but the image for x86_64");
        put_elf(&b, "/usr/bin/tool", (ElfSpec){ .interpreter = "/lib/ld-musl-x86_64.so.1" });
        assert_look(&b, CHECK_FAILED, "program-interpreter", "/lib/ld-musl-x86_64.so.1");
        put(&b, "/usr/bin/tool", "echo\n", 0755);
        assert_look(&b, CHECK_FAILED, "program-damaged", "neither a program nor a script");
        put(&b, "/usr/bin/tool", "\177ELF", 0755);
        assert_look(&b, CHECK_FAILED, "program-damaged", "neither");
}

TEST(program_libraries) {
        BOX(b);
        box_need(&b, NEED_PROGRAM, "tool", false);
        put_elf(&b, "/usr/bin/tool", (ElfSpec){ .needed = { "liba.so.1" } });
        assert_look(&b, CHECK_FAILED, "program-library", "liba.so.1, which it needs");
        put_elf(&b, "/opt/a/liba.so.1", (ElfSpec){ .needed = { "libb.so.1" } });
        put(&b, "/etc/ld.so.conf", "include ld.so.conf.d/*.conf\n", 0644);
        put(&b, "/etc/ld.so.conf.d/a.conf", "# ours\n/opt/a\n", 0644);
        assert_look(&b, CHECK_FAILED, "program-library", "libb.so.1, which /opt/a/liba.so.1 needs");
        put(&b, "/etc/ld.so.conf", "include /etc/ld.so.conf.d/[ab].conf\n", 0644);
        assert_look(&b, CHECK_FAILED, "program-library", "libb.so.1, which /opt/a/liba.so.1 needs");
        put_elf(&b, "/usr/lib64/libb.so.1", (ElfSpec){ .machine = EM_AARCH64 });        /* of no use here */
        assert_look(&b, CHECK_FAILED, "program-library", "libb.so.1");
        put_elf(&b, "/usr/lib64/libb.so.1", (ElfSpec){ .needed = { "liba.so.1" } });    /* a ring */
        assert_look(&b, CHECK_OK, "program", NULL);
        put_elf(&b, "/usr/bin/tool", (ElfSpec){ .needed = { "libc.so.1" }, .runpath = "$ORIGIN/../own" });
        put_elf(&b, "/usr/own/libc.so.1", (ElfSpec){});
        assert_look(&b, CHECK_OK, "program", NULL);
}

TEST(program_that_needs_newer_libraries) {
        BOX(b);
        box_need(&b, NEED_PROGRAM, "tool", false);
        put_elf(&b, "/usr/bin/tool", (ElfSpec){ .needed = { "liba.so.1", "libc.so.6" }, .wants = { "A_1.10", "?A_9" } });
        put_elf(&b, "/usr/lib64/liba.so.1", (ElfSpec){ .needed = { "libc.so.6" }, .wants = { "C_2.38", "C_PRIVATE" } });
        assert_look(&b, CHECK_OK, "program", NULL);             /* none of them says which it has */
        put_elf(&b, "/usr/lib64/libc.so.6", (ElfSpec){ .soname = "libc.so.6", .defines = { "C_2.4", "C_2.36", "C_2.5", "C_PRIVATE" } });
        assert_look(&b, CHECK_FAILED, "program-library",
                    "/usr/lib64/liba.so.1 needs C_2.38, but /usr/lib64/libc.so.6 has only C_2.36: install");
        put_elf(&b, "/usr/lib64/libc.so.6", (ElfSpec){ .soname = "libc.so.6", .defines = { "C_2.38", "C_PRIVATE" } });
        assert_look(&b, CHECK_OK, "program", NULL);
        put_elf(&b, "/usr/lib64/liba.so.1", (ElfSpec){ .soname = "liba.so.1", .defines = { "A_1.9" } });
        assert_look(&b, CHECK_FAILED, "program-library", "it needs A_1.10, but /usr/lib64/liba.so.1 has only A_1.9");
        put_elf(&b, "/usr/lib64/liba.so.1", (ElfSpec){ .soname = "liba.so.1", .defines = { "B_1.10" } });
        assert_look(&b, CHECK_FAILED, "program-library", "/usr/lib64/liba.so.1 has no such version: install");
        b.needs.items[0].kind = NEED_LIBRARY;
        free(b.needs.items[0].name);
        b.needs.items[0].name = xstrdup("libb.so.1");
        put_elf(&b, "/usr/lib64/libb.so.1", (ElfSpec){ .needed = { "liba.so.1" }, .wants = { "A_1.10" } });
        assert_look(&b, CHECK_FAILED, "program-library", "it cannot be loaded: it needs A_1.10");
}

static void give(Box *b, const char *path, uid_t owner, mode_t mode) {
        _free_ char *at = full(b, path);
        ASSERT_EQ(lchown(at, owner, (gid_t)owner), 0);
        if (mode)
                ASSERT_EQ(chmod(at, mode), 0);
}

TEST(files_of_other_users) {
        BOX(b);
        if (geteuid() != 0)
                SKIP("files are given away by root alone");
        box_need(&b, NEED_PROGRAM, "tool", false);
        put_link(&b, "/usr/sbin/tool", "../bin/tool");
        give(&b, "/usr/sbin/tool", 1000, 0);    /* a link belongs to its directory, whatever owner it has */
        assert_look(&b, CHECK_OK, "program", NULL);
        give(&b, "/usr/bin/tool", 1000, 0);
        look(&b);
        assert_check(&b, CHECK_WARNING, "owner", NULL, "/usr/bin/tool is 0755, owner 1000, group 1000: ");
        assert_check(&b, CHECK_OK, "program", "tool", NULL);
        ASSERT_EQ(b.checks.n, 2);
        give(&b, "/usr/bin/tool", 0, 0757);
        look(&b);
        assert_check(&b, CHECK_WARNING, "owner", NULL, "/usr/bin/tool is 0757, owner 0");
        give(&b, "/usr/bin/tool", 0, 0755);
        give(&b, "/usr/sbin", 0, 0777);
        look(&b);
        assert_check(&b, CHECK_WARNING, "owner", NULL, "/usr/sbin is 0777");
        give(&b, "/usr/sbin", 0, 0755);
        give(&b, "/usr/bin", 1000, 0755);       /* where the link leads */
        look(&b);
        assert_check(&b, CHECK_WARNING, "owner", NULL, "/usr/bin is 0755, owner 1000");
        give(&b, "/usr/bin", 0, 01777);
        assert_look(&b, CHECK_OK, "program", NULL);
        give(&b, "/usr/bin", 0, 0755);
        give(&b, "/usr/lib64/libc.so.6", 0, 01666);
        look(&b);
        assert_check(&b, CHECK_WARNING, "owner", NULL, "/libc.so.6 is 1666");
        give(&b, "/usr/lib64/libc.so.6", 0, 0644);
        assert_look(&b, CHECK_OK, "program", NULL);
}

TEST(units_of_other_users) {
        BOX(b);
        if (geteuid() != 0)
                SKIP("files are given away by root alone");
        box_need(&b, NEED_UNIT, "a.service", false);
        put(&b, "/usr/lib/systemd/system/a.service", "[Service]\nExecStart=/usr/bin/tool\n", 0644);
        put(&b, "/etc/systemd/system/a.service.d/x.conf", "[Service]\n", 0644);
        assert_look(&b, CHECK_OK, "unit", NULL);
        give(&b, "/usr/lib/systemd/system/a.service", 1000, 0666);
        give(&b, "/etc/systemd/system/a.service.d", 1000, 0);
        give(&b, "/usr/bin/tool", 1000, 0);
        look(&b);
        assert_check(&b, CHECK_WARNING, "owner", NULL, "/usr/lib/systemd/system/a.service is 0666, owner 1000");
        assert_check(&b, CHECK_WARNING, "owner", NULL, "/etc/systemd/system/a.service.d is 0755, owner 1000");
        assert_check(&b, CHECK_WARNING, "owner", NULL, "/usr/bin/tool is 0755, owner 1000");
}

TEST(library_with_its_soname) {
        BOX(b);
        box_need(&b, NEED_LIBRARY, "libmount.so.1", false);
        assert_look(&b, CHECK_FAILED, "library", "install libmount");
        put_elf(&b, "/lib/x86_64-linux-gnu/libmount.so.1", (ElfSpec){ .soname = "libmount.so.1" });
        assert_look(&b, CHECK_OK, "library", NULL);
        put_elf(&b, "/lib/x86_64-linux-gnu/libmount.so.1", (ElfSpec){ .soname = "libother.so.1" });
        assert_look(&b, CHECK_WARNING, "library", "libother.so.1");
}

/* doctor opens regular files only: this pipe has no writer. */
TEST(library_that_is_a_pipe) {
        BOX(b);
        _free_ char *path = full(&b, "/usr/lib64/libx.so.1");
        ASSERT_EQ(mkfifo(path, 0644), 0);
        box_need(&b, NEED_LIBRARY, "libx.so.1", false);
        assert_look(&b, CHECK_FAILED, "library", "not in a library directory");
}

/* ---- units ---- */

#define UNIT "[Service]\nExecStartPre=-/nowhere\nExecStart=@/usr/bin/tool x \\\n  --y\n[Install]\nWantedBy=multi-user.target\n"

TEST(unit_with_its_programs) {
        BOX(b);
        box_need(&b, NEED_UNIT, "a.service", false);
        assert_look(&b, CHECK_FAILED, "unit", "unit not found");
        put(&b, "/run/systemd/system/a.service", UNIT, 0644);           /* of the boot that is over */
        assert_look(&b, CHECK_FAILED, "unit", "unit not found");
        put(&b, "/usr/lib/systemd/system/a.service", UNIT, 0644);
        assert_look(&b, CHECK_OK, "unit", NULL);
        put(&b, "/etc/systemd/system/a.service.d/x.conf", "[Service]\nExecStart=\nExecStart=/opt/gone\n", 0644);
        assert_look(&b, CHECK_FAILED, "unit-program", "it starts /opt/gone, which is missing");
        ASSERT_EQ(b.checks.items[0].cause, CAUSE_UNIT);
        put_link(&b, "/etc/systemd/system/a.service.d/x.conf", "/dev/null");
        assert_look(&b, CHECK_OK, "unit", NULL);
        put(&b, "/usr/lib/systemd/system/a.service", "[Service]\nExecStart=/gone %i\nExecStart=\nExecStart=/usr/%i\n", 0644);
        assert_look(&b, CHECK_OK, "unit", NULL);
}

/* The verdicts are those of systemd-analyze verify. */
TEST(unit_lines) {
        BOX(b);
        box_need(&b, NEED_UNIT, "a.service", false);
        static const char unit[] = "/usr/lib/systemd/system/a.service";
        put(&b, unit, "[Service]\nExecStart=/usr/bin/tool\\\n--x\n", 0644);
        assert_look(&b, CHECK_OK, "unit", NULL);
        put(&b, unit, "[Service]\n# a \\\nExecStartPre=/usr/bin/gone\nExecStart=/usr/bin/tool\n", 0644);
        assert_look(&b, CHECK_FAILED, "unit-program", "it starts /usr/bin/gone");
        put(&b, unit, "[Service]\nExecStart=/usr/bin/tool \\\n# why\n --x\nExecStart=\n\tExecStart = /usr/bin/tool\n", 0644);
        assert_look(&b, CHECK_OK, "unit", NULL);
        put(&b, unit, "[Service]\nExecStop=/usr/bin/tool\n", 0644);
        assert_look(&b, CHECK_FAILED, "unit", "no ExecStart=");
        ASSERT_EQ(b.checks.items[0].cause, CAUSE_UNIT);
        put(&b, unit, "[Service]\nExecStop=/usr/bin/tool\nRemainAfterExit=yes\n", 0644);
        assert_look(&b, CHECK_OK, "unit", NULL);
        put(&b, unit, "[Service]\nExecStart=/usr/bin/tool\nType=exec\n", 0644);
        assert_look(&b, CHECK_OK, "unit", NULL);
        put(&b, "/etc/systemd/system/a.service.d/x.conf", "[Service]\nExecStart=/usr/bin/tool --x\n", 0644);
        assert_look(&b, CHECK_FAILED, "unit", "several ExecStart=");
        put(&b, "/etc/systemd/system/a.service.d/y.conf", "[Service]\nType=oneshot\n", 0644);
        assert_look(&b, CHECK_OK, "unit", NULL);
}

/* Each unit has a drop-in; said NULL: the unit reads the files that init writes. */
TEST(units_that_read_other_files) {
        static const struct { const char *unit, *drop_in, *said; } cases[] = {
                { "kubelet", "", NULL }, { "containerd", "", NULL },
                { "kubelet", "ExecStart=\nExecStart=/usr/bin/kubelet --v=2 $NODEADM_KUBELET_ARGS --v=4\n", NULL },
                { "kubelet", "ExecStart=\nExecStart=/usr/bin/kubelet --config=/etc/x $NODEADM_KUBELET_ARGS\n", NULL },        /* the last one counts */
                { "kubelet", "ExecStart=\nExecStart=-/usr/bin/tool --config=/etc/x\n", NULL },                                 /* which may know */
                { "kubelet", "ExecStart=\nExecStart=/usr/bin/kubelet --config=/etc/x\n", "x.conf starts kubelet without $NODEADM_KUBELET_ARGS" },
                { "kubelet", "ExecStart=\nExecStart=/usr/bin/kubelet ${NODEADM_KUBELET_ARGS}\n", "x.conf starts kubelet without $NODEADM_KUBELET_ARGS" },
                { "kubelet", "ExecStart=\nExecStart=/usr/bin/kubelet $NODEADM_KUBELET_ARGS --config /etc/x\n", "x.conf makes kubelet read /etc/x" },
                { "kubelet", "ExecStart=\nExecStart=/usr/bin/kubelet $NODEADM_KUBELET_ARGS --config=/etc/x\n", "x.conf makes kubelet read /etc/x" },
                { "kubelet", "EnvironmentFile=\nEnvironmentFile=/etc/other\n", "EnvironmentFile=/etc/eks/kubelet/environment" },
                { "kubelet", "EnvironmentFile=\nEnvironmentFile=-/etc/eks/kubelet/environment\n", NULL },
                { "containerd", "ExecStart=\nExecStart=/usr/bin/containerd --config /etc/containerd/config.toml\n", NULL },
                { "containerd", "ExecStart=\nExecStart=/usr/bin/containerd --config=/etc/containerd/other.toml\n", "x.conf makes containerd read /etc/containerd/other.toml" },
                { "containerd", "ExecStart=\nExecStart=/usr/bin/containerd -c /etc/x --log-level debug\n", "x.conf makes containerd read /etc/x" },
                { "containerd", "ExecStart=\nExecStart=/usr/bin/containerd -c $CONFIG\n", NULL },
                { "containerd", "ExecStart=\nExecStart=/usr/bin/containerd -c=/etc/x\n", "x.conf makes containerd read /etc/x" },
                { "containerd", "ExecStart=\nExecStart=/usr/bin/containerd -l debug -config /etc/x\n", "x.conf makes containerd read /etc/x" },
                { "containerd", "ExecStart=\nExecStart=/usr/bin/containerd --c=/etc/containerd/config.toml config\n", NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                BOX(b);
                _cleanup_(diag_done) Diag warnings = {};
                _free_ char *name = xasprintf("%s.service", cases[i].unit), *path = xasprintf("/usr/lib/systemd/system/%s", name),
                            *drop_in = xasprintf("/etc/systemd/system/%s.d/x.conf", name), *text = xasprintf("[Service]\n%s", cases[i].drop_in);
                box_need(&b, NEED_UNIT, name, false);
                put(&b, path, streq(cases[i].unit, "kubelet") ? "[Service]\nEnvironmentFile=/etc/eks/kubelet/environment\nExecStart=/usr/bin/kubelet $NODEADM_KUBELET_ARGS\n"
                                                              : "[Service]\nExecStart=/usr/bin/containerd\n", 0644);
                put(&b, drop_in, text, 0644);
                put_link(&b, "/usr/bin/kubelet", "/usr/bin/tool");
                put_link(&b, "/usr/bin/containerd", "/usr/bin/tool");
                assert_look(&b, cases[i].said ? CHECK_FAILED : CHECK_OK, cases[i].said ? "unit-reads" : "unit", cases[i].said);
                units_warn(b.root, &warnings);
                ASSERT_EQ(warnings.n, cases[i].said != NULL);
                if (cases[i].said)
                        ASSERT_CONTAINS(warnings.items[0].text, cases[i].said);
        }
}

TEST(unit_that_is_a_pipe) {
        BOX(b);
        put(&b, "/usr/lib/systemd/system/a.service", UNIT, 0644);
        put(&b, "/etc/systemd/system/b.service", UNIT, 0644);
        _free_ char *path = full(&b, "/etc/systemd/system/a.service");
        ASSERT_EQ(mkfifo(path, 0644), 0);
        box_need(&b, NEED_UNIT, "a.service", false);
        assert_look(&b, CHECK_FAILED, "unit", "not a regular file");
}

TEST(unit_masked) {
        BOX(b);
        box_need(&b, NEED_UNIT, "a.service", false);
        put(&b, "/usr/lib/systemd/system/a.service", UNIT, 0644);
        put_link(&b, "/etc/systemd/system/a.service", "/dev/null");
        assert_look(&b, CHECK_FAILED, "unit-masked", "systemctl unmask a.service");
        ASSERT_EQ(b.checks.items[0].cause, CAUSE_UNIT);
        take_away(&b, "/etc/systemd/system/a.service");
        put(&b, "/etc/systemd/system/a.service", "", 0644);
        assert_look(&b, CHECK_FAILED, "unit-masked", "systemctl unmask a.service");
        take_away(&b, "/etc/systemd/system/a.service");
        put_link(&b, "/etc/systemd/system/a.service", "/opt/a.service");
        assert_look(&b, CHECK_FAILED, "unit", "dangling link");
}

TEST(unit_template) {
        BOX(b);
        box_need(&b, NEED_UNIT, "a@b.service", false);
        put(&b, "/usr/lib/systemd/system/a@.service", UNIT, 0644);
        assert_look(&b, CHECK_OK, "unit", NULL);
        put(&b, "/etc/systemd/system/a@b.service.d/x.conf", "[Service]\nExecStartPre=/opt/gone\n", 0644);
        assert_look(&b, CHECK_FAILED, "unit-program", "/opt/gone");
}

TEST(unit_that_is_not_enabled) {
        BOX(b);
        box_need(&b, NEED_UNIT, "nodestrap-run.service", false);
        free(TAKE_PTR(b.needs.items[0].step));
        put(&b, "/usr/lib/systemd/system/nodestrap-run.service", UNIT, 0644);
        put(&b, "/etc/machine-id", "", 0444);
        look(&b);
        assert_check(&b, CHECK_FAILED, "unit-disabled", "nodestrap-run.service", "systemctl enable nodestrap-run.service");
        put(&b, "/etc/machine-id", "uninitialized\n", 0444);
        look(&b);
        assert_check(&b, CHECK_FAILED, "unit-disabled", NULL, "systemctl enable");      /* no preset of nodestrap does */
        put_link(&b, "/etc/systemd/system/multi-user.target.wants/nodestrap-run.service", "/usr/lib/systemd/system/x");
        look(&b);
        assert_check(&b, CHECK_OK, "unit", NULL, NULL);
}

TEST(unit_that_another_unit_installs_at_boot) {
        BOX(b);
        box_need(&b, NEED_UNIT, "nvidia-fabricmanager.service", false);
        put(&b, "/etc/systemd/system/nvidia-setup.service", UNIT, 0644);
        assert_look(&b, CHECK_UNKNOWN, "unit", "nvidia-setup.service installs it");
        put(&b, "/opt/nvidia/lts/usr/bin/x", "", 0755);
        assert_look(&b, CHECK_FAILED, "unit", "unit not found");       /* nor the tree */
        put(&b, "/opt/nvidia/lts/usr/lib/systemd/system/nvidia-fabricmanager.service", UNIT, 0644);
        assert_look(&b, CHECK_OK, "unit", NULL);
}

/* ---- modules and features ---- */

static void put_module(Box *b, const char *kernel, const char *magic) {
        _free_ char *dep = xasprintf("/lib/modules/%s/modules.dep", kernel),
                    *file = xasprintf("/lib/modules/%s/kernel/md-mod.ko", kernel),
                    *builtin = xasprintf("/lib/modules/%s/modules.builtin", kernel),
                    *info = xasprintf("vermagic=%s SMP mod_unload", magic);
        put(b, dep, "kernel/md-mod.ko:\n", 0644);
        put(b, builtin, "", 0644);
        put_elf(b, file, (ElfSpec){ .info = info, .info_size = strlen(info) + 1 });
}

TEST(module_in_each_kernel) {
        BOX(b);
        box_need(&b, NEED_MODULE, "md_mod", false);
        assert_look(&b, CHECK_FAILED, "module", KERNEL " (which boots) has it neither as a file nor");
        put_module(&b, KERNEL, KERNEL);
        assert_look(&b, CHECK_OK, "module", NULL);
        put(&b, "/lib/modules/" OTHER "/modules.builtin", "", 0644);
        put(&b, "/boot/vmlinuz-" KERNEL, "", 0644);
        assert_look(&b, CHECK_WARNING, "module", OTHER " (not the one that boots)");
        put(&b, "/boot/vmlinuz-" OTHER, "", 0644);
        assert_look(&b, CHECK_WARNING, "module", OTHER);        /* the kernel that boots is unknown, and one has the module */
        put(&b, "/lib/modules/" OTHER "/modules.builtin", "kernel/drivers/md/md-mod.ko\n", 0644);
        assert_look(&b, CHECK_OK, "module", NULL);
}

TEST(module_files) {
        BOX(b);
        box_need(&b, NEED_MODULE, "md_mod", false);
        put_module(&b, KERNEL, OTHER);
        assert_look(&b, CHECK_FAILED, "module", "built for kernel " OTHER);
        take_away(&b, "/lib/modules/" KERNEL "/kernel/md-mod.ko");
        assert_look(&b, CHECK_FAILED, "module", "its file is missing");
        put(&b, "/lib/modules/" KERNEL "/modules.dep", "", 0644);
        put(&b, "/lib/modules/" KERNEL "/extra/md_mod.ko.xz", "", 0644);
        assert_look(&b, CHECK_FAILED, "module", "depmod -a " KERNEL);
}

TEST(module_rules) {
        BOX(b);
        box_need(&b, NEED_MODULE, "md_mod", false);
        put_module(&b, KERNEL, KERNEL);
        put(&b, "/usr/lib/modprobe.d/a.conf", "# blacklist md_mod\nblacklist md_mod2\n\tblacklist md-mod\n", 0644);
        look(&b);
        assert_check(&b, CHECK_WARNING, "module-blacklisted", "md_mod", "stops devices from loading the module");
        assert_check(&b, CHECK_OK, "module", "md_mod", NULL);
        put(&b, "/etc/modprobe.d/a.conf", "install md_mod /usr/bin/false\n", 0644);     /* instead of that one */
        assert_look(&b, CHECK_FAILED, "module-blacklisted", "in this file blocks it: remove");
        put_link(&b, "/etc/modprobe.d/a.conf", "/dev/null");
        assert_look(&b, CHECK_OK, "module", NULL);
}

TEST(module_of_the_nvidia_driver) {
        BOX(b);
        box_need(&b, NEED_MODULE, "nvidia_uvm", false);
        assert_look(&b, CHECK_FAILED, "module", "install the NVIDIA driver");
        put(&b, "/usr/lib/systemd/system/nvidia-kmod-load.service", UNIT, 0644);
        assert_look(&b, CHECK_UNKNOWN, "module", "nvidia-kmod-load.service installs it");
        put(&b, "/opt/nvidia/lts/usr/bin/nvidia-smi", "", 0755);
        put(&b, "/opt/nvidia/lts/flavors/open/lib/modules/" KERNEL "/extra/nvidia-uvm.ko.xz", "", 0644);
        assert_look(&b, CHECK_OK, "module", NULL);
}

TEST(image_without_kernels) {
        BOX(b);
        box_need(&b, NEED_MODULE, "md_mod", false);
        box_need(&b, NEED_MODULE, "xfs", false);
        box_need(&b, NEED_FEATURE, "CONFIG_CGROUPS", false);
        take_away(&b, "/lib/modules/" KERNEL "/modules.builtin");
        look(&b);
        assert_check(&b, CHECK_UNKNOWN, "module", "kernels", "/lib/modules has no kernel");
        ASSERT_EQ(b.checks.n, 1);
}

TEST(features_of_the_kernel_that_boots) {
        BOX(b);
        box_need(&b, NEED_FEATURE, "CONFIG_HUGETLBFS", false);
        look(&b);
        assert_check(&b, CHECK_UNKNOWN, "feature", "kernel configuration", "CONFIG_HUGETLBFS and others");
        put(&b, "/boot/config-" KERNEL, "CONFIG_HUGETLBFS_X=y\n# CONFIG_HUGETLBFS is not set\n", 0644);
        assert_look(&b, CHECK_FAILED, "feature", "lacks it; boot a kernel that has it");
        put(&b, "/boot/config-" KERNEL, "CONFIG_HUGETLBFS=n\n", 0644);
        assert_look(&b, CHECK_FAILED, "feature", "lacks it; boot a kernel that has it");
        put(&b, "/boot/config-" KERNEL, "CONFIG_A=y\nCONFIG_HUGETLBFS=m\n", 0644);
        assert_look(&b, CHECK_OK, "feature", NULL);
}

/* ---- settings of the kernel, swap ---- */

TEST(settings_of_images) {
        BOX(b);
        box_need(&b, NEED_SYSCTL, "vm.overcommit_memory=1", false);
        assert_look(&b, CHECK_FAILED, "sysctl", "protectKernelDefaults");
        ASSERT_STREQ(b.checks.items[0].found, "0, kernel default");
        put(&b, "/usr/lib/sysctl.d/50-a.conf", "# vm.overcommit_memory = 0\n-vm/overcommit_memory =1 \n", 0644);
        assert_look(&b, CHECK_OK, "sysctl", NULL);
        ASSERT_STREQ(b.checks.items[0].found, "1, /usr/lib/sysctl.d/50-a.conf");
        put(&b, "/usr/lib/sysctl.d/60-b.conf", "vm.overcommit_memory=2\n", 0644);   /* later by name */
        put(&b, "/etc/sysctl.d/10-c.conf", "vm.overcommit_memory=0\n", 0644);
        assert_look(&b, CHECK_FAILED, "sysctl", "vm.overcommit_memory = 1");
        ASSERT_STREQ(b.checks.items[0].found, "2, /usr/lib/sysctl.d/60-b.conf");
        put_link(&b, "/etc/sysctl.d/60-b.conf", "/dev/null");                        /* hides the other */
        assert_look(&b, CHECK_OK, "sysctl", NULL);
        put(&b, "/etc/sysctl.d/50-a.conf", "vm.overcommit_memory.x=1\n", 0644);
        assert_look(&b, CHECK_FAILED, "sysctl", "starts only if the value is");
        ASSERT_STREQ(b.checks.items[0].found, "0, /etc/sysctl.d/10-c.conf");
}

TEST(settings_that_a_kernel_is_built_with) {
        BOX(b);
        box_need(&b, NEED_SYSCTL, "kernel.panic_on_oops=1", false);
        assert_look(&b, CHECK_UNKNOWN, "sysctl", "is not known");
        put(&b, "/boot/config-" KERNEL, "CONFIG_PANIC_ON_OOPS=y\nCONFIG_PANIC_ON_OOPS_VALUE=1\n", 0644);
        assert_look(&b, CHECK_OK, "sysctl", NULL);
        put(&b, "/boot/config-" KERNEL, "# CONFIG_PANIC_ON_OOPS is not set\n", 0644);
        assert_look(&b, CHECK_FAILED, "sysctl", "kernel.panic_on_oops = 1");
}

TEST(swap) {
        BOX(b);
        box_need(&b, NEED_NO_SWAP, "no swap", false);
        assert_look(&b, CHECK_OK, "swap", NULL);
        put(&b, "/etc/fstab", "#/swapfile none swap\nUUID=1 none swap noauto 0 0\n", 0644);
        assert_look(&b, CHECK_OK, "swap", NULL);
        put(&b, "/etc/fstab", "UUID=1 / xfs\n/swapfile none swap sw 0 0\n", 0644);
        assert_look(&b, CHECK_FAILED, "swap", "failSwapOn");
        ASSERT_STREQ(b.checks.items[0].found, "/swapfile");
        put(&b, "/etc/fstab", "/dev/nvme1n1p2 none swap\n", 0644);
        assert_look(&b, CHECK_WARNING, "swap", "waits 90 s");
        search(&b);
        ASSERT_TRUE(!find(&b, "leftover-mount", NULL));
}

/* ---- places ---- */

TEST(nri_plugins) {
        BOX(b);
        static const struct { const char *containerd; CheckVerdict verdict; const char *words; } cases[] = {
                { "1.7.28", CHECK_WARNING, "containerd 1.7.28 does not start these plugins" }, { "2.1.5", CHECK_OK, NULL }, { NULL, CHECK_OK, NULL },
        };
        box_need(&b, NEED_NRI, "NRI plugins", true);
        for (int there = 0; there < 2; there++) {
                for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                        box_open(&b);
                        b.image.containerd = cases[i].containerd ? xstrdup(cases[i].containerd) : NULL;
                        image_look(&b.image, &b.needs, &b.checks);
                        if (there && cases[i].containerd)
                                assert_check(&b, cases[i].verdict, "nri", NULL, cases[i].words);
                        else
                                ASSERT_TRUE(!find(&b, "nri", NULL));
                }
                put(&b, "/opt/nri/plugins/10-dranet", "x", 0755);
        }
}

TEST(directories) {
        BOX(b);
        _free_ char *lib = full(&b, "/var/lib");
        box_need(&b, NEED_DIRECTORY, "/var/lib/kubelet/pki", false);
        assert_look(&b, CHECK_OK, "directory", NULL);
        ASSERT_STREQ(b.checks.items[0].found, "can be made");
        ASSERT_OK(root_make_dirs(b.root, "/var/lib", 0755));
        ASSERT_EQ(chmod(lib, 0777), 0);
        assert_look(&b, CHECK_WARNING, "directory-mode", "chmod go-w /var/lib");
        ASSERT_EQ(chmod(lib, 01777), 0);
        assert_look(&b, CHECK_OK, "directory", NULL);
        put_link(&b, "/var/lib/kubelet", "/mnt/gone");
        assert_look(&b, CHECK_FAILED, "directory", "dangling link");
        put(&b, "/mnt/gone", "", 0644);
        assert_look(&b, CHECK_FAILED, "directory", "/var/lib/kubelet is not a directory");
        ASSERT_OK(root_remove(b.root, "/var/lib/kubelet"));
        put_link(&b, "/var/lib/kubelet", "/mnt/gone/below");
        assert_look(&b, CHECK_FAILED, "directory", "/var/lib/kubelet is a dangling link");
}

TEST(files) {
        BOX(b);
        box_need(&b, NEED_FILE, "/etc/eks/pause.tar", false);
        assert_look(&b, CHECK_FAILED, "file", "it is missing: add the file to the image");
        put(&b, "/etc/eks/pause.tar", "", 0644);
        assert_look(&b, CHECK_FAILED, "file", "it is empty: add the file to the image");
        put(&b, "/etc/eks/pause.tar", "x", 0644);
        assert_look(&b, CHECK_OK, "file", NULL);
}

/* ---- SELinux ---- */

static const char policy[] = "/.*\tsystem_u:object_r:default_t:s0\n"
                             "/usr/.*\t--\tsystem_u:object_r:usr_t:s0\n"
                             "/usr/bin/tool\t--\tsystem_u:object_r:tool_exec_t:s0\n"
                             "/usr/(s)?bin/.*\t--\tsystem_u:object_r:bin_t:s0\n"
                             "/usr/bin(/.*)?\t-d\tsystem_u:object_r:other_t:s0\n";

static bool set_label(const Box *b, const char *path, const char *label) {
        _free_ char *at = full(b, path);
        return setxattr(at, "security.selinux", label, strlen(label) + 1, 0) == 0;
}

/* Each "+" around a group doubles the work of regcomp(3) in glibc. doctor compiles none of these, however
 * the repetition is written, and so the line before them counts. */
TEST(labels_by_hostile_expressions) {
        static const char *const shapes[][2] = { { "(", ")+" }, { "", "+" }, { "", "?+" }, { "([x)]?", ")+" } };
        for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
                BOX(b);
                Text t = {};
                box_need(&b, NEED_PROGRAM, "tool", false);
                put(&b, "/etc/selinux/config", "SELINUX=permissive\nSELINUXTYPE=targeted\n", 0644);
                text_add(&t, "/usr/(s)?bin/(.+)?tool\t--\tsystem_u:object_r:tool_exec_t:s0\n/usr/bin/");
                for (unsigned k = 0; k < 8; k++)
                        text_add(&t, "%s", shapes[i][0]);
                text_add(&t, "(tool)+");
                for (unsigned k = 0; k < 8; k++)
                        text_add(&t, "%s", shapes[i][1]);
                text_add(&t, "\t--\tsystem_u:object_r:hostile_t:s0\n");
                put(&b, "/etc/selinux/targeted/contexts/files/file_contexts", t.data, 0644);
                text_done(&t);
                if (!set_label(&b, "/usr/bin/tool", "system_u:object_r:usr_t:s0"))
                        SKIP("no security labels can be written here");
                look(&b);
                assert_check(&b, CHECK_WARNING, "label", "files with a wrong label",
                             "/usr/bin/tool is usr_t, and should be tool_exec_t");
        }
}

TEST(labels_of_selinux) {
        BOX(b);
        box_need(&b, NEED_PROGRAM, "tool", false);
        put(&b, "/etc/selinux/config", "SELINUX=permissive\nSELINUXTYPE=targeted\n", 0644);
        put(&b, "/etc/selinux/targeted/contexts/files/file_contexts", policy, 0644);
        if (!set_label(&b, "/usr/bin/tool", "system_u:object_r:usr_t:s0"))
                SKIP("no security labels can be written here");
        look(&b);
        assert_check(&b, CHECK_WARNING, "label", "files with a wrong label", "/usr/bin/tool is usr_t, and should be tool_exec_t");
        ASSERT_TRUE(set_label(&b, "/usr/bin/tool", "unconfined_u:object_r:tool_exec_t:s0:c1"));
        look(&b);
        assert_check(&b, CHECK_OK, "label", "SELinux", NULL);
        _free_ char *at = full(&b, "/usr/bin/tool");
        ASSERT_EQ(removexattr(at, "security.selinux"), 0);
        look(&b);
        assert_check(&b, CHECK_WARNING, "label", "files without a label", "not labelled, and should be tool_exec_t");
        put(&b, "/etc/selinux/config", "SELINUX=enforcing\nSELINUXTYPE=targeted\n", 0644);
        look(&b);
        assert_check(&b, CHECK_FAILED, "label", "files without a label", "enforcing");
        put(&b, "/.autorelabel", "", 0644);
        look(&b);
        ASSERT_TRUE(!find(&b, "label", NULL));
}

/* ---- versions ---- */

#define MANAGER "/usr/bin/nv-fabricmanager"
#define STRINGS(text) .strings = "\0" text "\0", .strings_size = sizeof text + 1

TEST(version_of_fabric_manager) {
        BOX(b);
        put_driver(&b, INFO("580.126.09"), sizeof INFO("580.126.09"));
        box_need(&b, NEED_PROGRAM, "nv-fabricmanager", false);
        compare(&b);
        ASSERT_TRUE(!find(&b, "version", NULL));                /* image_look() reports a missing program */
        put_elf(&b, MANAGER, (ElfSpec){ STRINGS("580.126.09") });
        compare(&b);
        ASSERT_EQ(find(&b, "version", "nv-fabricmanager")->verdict, CHECK_OK);
        put_elf(&b, MANAGER, (ElfSpec){ STRINGS("575.57.08") });
        compare(&b);
        assert_check(&b, CHECK_FAILED, "version", "nv-fabricmanager", "the NVIDIA driver is 580.126.09 (/lib/modules/");
        ASSERT_EQ(find(&b, "version", "nv-fabricmanager")->cause, CAUSE_VERSION);
        put_elf(&b, MANAGER, (ElfSpec){ STRINGS("575.57.08\0" "570.86.15") });
        compare(&b);
        assert_check(&b, CHECK_UNKNOWN, "version", "nv-fabricmanager", "cannot tell");
        put(&b, "/var/lib/dpkg/status", "Package: nvidia-fabricmanager-dev\nStatus: install ok installed\nVersion: 1\n\n"
            "Package: nvidia-fabricmanager-575\nVersion: 575.57.08-1\nStatus: install ok installed\n", 0644);
        compare(&b);
        assert_check(&b, CHECK_FAILED, "version", "nv-fabricmanager", "580.126.09");
}

TEST(toolkits_for_cdi_and_for_compute_domains) {
        static const struct { const char *version; bool tray; CheckVerdict verdict; } cases[] = {
                { "1.11.0-1", false, CHECK_FAILED }, { "1.12.0-1", false, CHECK_OK },     { "1.17.8-1", false, CHECK_OK },
                { "1.17.8-1", true, CHECK_WARNING },  { "1.18.0-1", true, CHECK_OK },     { "1.11.0-1", true, CHECK_FAILED },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                BOX(b);
                _free_ char *status = xasprintf("Package: nvidia-container-toolkit\nStatus: install ok installed\nVersion: %s\n", cases[i].version);
                box_need(&b, NEED_PROGRAM, "nvidia-ctk", false);
                if (cases[i].tray)
                        box_need(&b, NEED_PROGRAM, "nvidia-imex", true);
                put(&b, "/var/lib/dpkg/status", status, 0644);
                box_open(&b);
                image_compare(&b.image, &b.needs, &b.checks);
                ASSERT_EQ(find(&b, "version", "nvidia-ctk")->verdict, cases[i].verdict);
                ASSERT_EQ(find(&b, "version", "nvidia-ctk")->cause, cases[i].verdict == CHECK_FAILED ? CAUSE_CDI : CAUSE_NONE);
        }
}

TEST(version_by_rpm) {
        BOX(b);
        static const char header[] = "xxC\0nvidia-imex\0" "580.126.09\0" "1.amzn2023\0C\0nvidia-imex-libs\0" "1.2\0";
        static const char both[] = "C\0nvidia-imex\0" "570.86.15\0" "1\0C\0nvidia-imex\0" "580.126.09\0" "1\0";
        put_driver(&b, INFO("570.86.15"), sizeof INFO("570.86.15"));
        put_elf(&b, "/usr/bin/nvidia-imex", (ElfSpec){});
        box_need(&b, NEED_PROGRAM, "nvidia-imex", false);
        ASSERT_OK(root_replace_volatile(b.root, "/var/lib/rpm/rpmdb.sqlite", header, sizeof header, 0644));
        compare(&b);
        assert_check(&b, CHECK_FAILED, "version", "nvidia-imex", "570.86.15");
        ASSERT_STREQ(find(&b, "version", "nvidia-imex")->found, "580.126.09");
        ASSERT_OK(root_replace_volatile(b.root, "/var/lib/rpm/rpmdb.sqlite", both, sizeof both, 0644));
        compare(&b);
        ASSERT_EQ(find(&b, "version", "nvidia-imex")->verdict, CHECK_UNKNOWN);
}

TEST(version_of_nvml) {
        BOX(b);
        put_driver(&b, INFO("580.126.09"), sizeof INFO("580.126.09"));
        box_need(&b, NEED_LIBRARY, "libnvidia-ml.so.1", false);
        put_link(&b, "/usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.575.57.08");
        compare(&b);
        assert_check(&b, CHECK_FAILED, "version", "libnvidia-ml.so.1", "the NVIDIA driver is 580.126.09");
        put_link(&b, "/usr/lib64/libnvidia-ml.so.1", "libnvidia-ml.so.580.126.09");
        compare(&b);
        assert_check(&b, CHECK_OK, "version", "libnvidia-ml.so.1", NULL);
        take_away(&b, "/usr/lib64/libnvidia-ml.so.1");
        put_elf(&b, "/usr/lib64/libnvidia-ml.so.1", (ElfSpec){ STRINGS("575.57.08") });
        compare(&b);
        ASSERT_EQ(find(&b, "version", "libnvidia-ml.so.1")->verdict, CHECK_FAILED);
        put_elf(&b, "/usr/lib64/libnvidia-ml.so.1", (ElfSpec){});
        compare(&b);
        assert_check(&b, CHECK_UNKNOWN, "version", "libnvidia-ml.so.1", "cannot tell");
}

#define OPEN(version) "license=Dual MIT/GPL\0version=" version
TEST(version_of_modules) {
        BOX(b);
        put(&b, "/lib/modules/" KERNEL "/modules.dep", "extra/nvidia.ko:\nextra/nvidia-uvm.ko:\n", 0644);
        put_elf(&b, "/lib/modules/" KERNEL "/extra/nvidia.ko",
                (ElfSpec){ .info = OPEN("580.126.09"), .info_size = sizeof OPEN("580.126.09") });
        put_elf(&b, "/lib/modules/" KERNEL "/extra/nvidia-uvm.ko",
                (ElfSpec){ .info = OPEN("575.57.08"), .info_size = sizeof OPEN("575.57.08") });
        put(&b, "/usr/lib/firmware/nvidia/575.57.08/gsp_ga10x.bin", "GSP", 0644);
        box_need(&b, NEED_MODULE, "nvidia", false);
        box_need(&b, NEED_MODULE, "nvidia_uvm", false);
        compare(&b);
        assert_check(&b, CHECK_FAILED, "version", "nvidia_uvm", "580.126.09");
        assert_check(&b, CHECK_FAILED, "firmware", "NVIDIA firmware", "nvidia/580.126.09/gsp_*.bin are missing");
        ASSERT_EQ(find(&b, "firmware", NULL)->cause, CAUSE_DRIVER);
        put(&b, "/usr/lib/firmware/nvidia/580.126.09/gsp_ga10x.bin.xz", "GSP", 0644);
        put_elf(&b, "/lib/modules/" KERNEL "/extra/nvidia-uvm.ko",
                (ElfSpec){ .info = OPEN("580.126.09"), .info_size = sizeof OPEN("580.126.09") });
        compare(&b);
        ASSERT_EQ(checks_count(&b.checks, CHECK_OK), b.checks.n);
        put_driver(&b, INFO("570.158.01"), sizeof INFO("570.158.01"));  /* the proprietary one */
        compare(&b);
        ASSERT_TRUE(!find(&b, "firmware", NULL));
}

#define LTS "/opt/nvidia/lts/usr/"
#define PB  "/opt/nvidia/pb/usr/"
TEST(versions_in_trees) {
        BOX(b);
        put(&b, "/opt/nvidia/lts/.version", "580.126.09\n", 0644);
        put_elf(&b, LTS "bin/nv-fabricmanager", (ElfSpec){ STRINGS("580.126.09") });
        put(&b, PB "lib64/libnvidia-ml.so.595.45.04", "", 0755);
        put_elf(&b, PB "bin/nv-fabricmanager", (ElfSpec){ STRINGS("580.126.09") });
        put_link(&b, LTS "lib64/libnvidia-ml.so.1", "libnvidia-ml.so.580.126.09");
        put_elf(&b, PB "lib64/libnvidia-ml.so.1", (ElfSpec){ STRINGS("595.45.04") });    /* no link */
        box_need(&b, NEED_PROGRAM, "nv-fabricmanager", false);
        box_types(&b, "p5.48xlarge");
        box_need(&b, NEED_LIBRARY, "libnvidia-ml.so.1", false);
        compare(&b);
        ASSERT_TRUE(!b.image.driver);
        ASSERT_EQ(checks_count(&b.checks, CHECK_OK), 5);        /* two drivers, two libraries, a fabric manager */
        ASSERT_EQ(checks_count(&b.checks, CHECK_WARNING), 1);   /* a p5 does not start it */
        ASSERT_EQ(b.checks.n, 6);
        strv_add(&b.needs.items[0].types, "g7.2xlarge");
        compare(&b);
        ASSERT_EQ(checks_count(&b.checks, CHECK_FAILED), 1);
        const Check *c = find(&b, "version", "nv-fabricmanager");
        while (c->verdict != CHECK_FAILED)
                c++;
        ASSERT_CONTAINS(c->text, "595.45.04");
        ASSERT_STREQ(c->types[0], "g7.2xlarge");
        ASSERT_TRUE(!c->types[1]);
        take_away(&b, LTS "bin/nv-fabricmanager");
        compare(&b);
        assert_check(&b, CHECK_FAILED, "program", "nv-fabricmanager", "not in /opt/nvidia/lts");
        ASSERT_STREQ(find(&b, "program", NULL)->types[0], "p5.48xlarge");
        ASSERT_TRUE(!find(&b, "program", NULL)->types[1]);
}

TEST(driver_for_types) {
        BOX(b);
        put_driver(&b, INFO("565.57.01"), sizeof INFO("565.57.01"));    /* the proprietary one */
        box_need(&b, NEED_MODULE, "nvidia", false);
        box_types(&b, "p5.48xlarge");
        compare(&b);
        ASSERT_TRUE(!find(&b, "version", NULL));
        box_types(&b, "p6-b200.48xlarge");
        compare(&b);
        assert_check(&b, CHECK_FAILED, "version", "NVIDIA driver", "install 570 or newer");
        assert_check(&b, CHECK_FAILED, "version", "NVIDIA modules", "proprietary");
        ASSERT_STREQ(find(&b, "version", "NVIDIA driver")->types[0], "p6-b200.48xlarge");
        ASSERT_TRUE(!find(&b, "version", "NVIDIA driver")->types[1]);
        ASSERT_TRUE(image_drives(&b.image, "p5.48xlarge") && image_drives(&b.image, "m5.large"));
        ASSERT_TRUE(!image_drives(&b.image, "p6-b200.48xlarge"));
        put_driver(&b, INFO("580.126.09"), sizeof INFO("580.126.09"));
        box_open(&b);
        take_away(&b, "/lib/modules/" KERNEL "/extra/nvidia.ko");       /* looked at once, not for each type */
        ASSERT_TRUE(!image_drives(&b.image, "p6-b200.48xlarge"));
}

/* ---- leftovers ---- */

TEST(image_without_leftovers) {
        BOX(b);
        put(&b, "/etc/machine-id", "", 0444);
        put(&b, "/etc/mdadm/mdadm.conf", "# ARRAY /dev/md0\nHOMEHOST <system>\n", 0644);
        put(&b, "/etc/fstab", "UUID=1 / xfs defaults 0 0\n# /dev/md0 /x xfs\n/dev/nvme0n1p128 /boot/efi vfat defaults 0 0\n", 0644);
        put(&b, "/etc/cdi/other.yaml", "kind: vendor.example/device\n", 0644);
        put(&b, "/usr/lib/systemd/system/kubelet.service", UNIT, 0644);
        search(&b);
        assert_check(&b, CHECK_OK, "leftovers", NULL, NULL);
        ASSERT_EQ(b.checks.n, 1);
}

/* Opening a device may have effects; a pipe shows whether it was read. */
TEST(nothing_but_regular_files_is_opened) {
        static const char *const paths[] = { "/etc/fstab", "/etc/machine-id", "/etc/mdadm.conf", "/etc/cdi/a.yaml",
                "/etc/selinux/config", "/etc/sysctl.d/a.conf", "/etc/modprobe.d/a.conf", "/etc/ld.so.conf",
                "/etc/systemd/system/a.service", "/etc/systemd/system/a.mount", "/lib/modules/" KERNEL "/modules.dep",
                ("/boot/config-" KERNEL) };
        BOX(b);
        box_need(&b, NEED_NO_SWAP, "no swap", false);
        box_need(&b, NEED_SYSCTL, "vm.overcommit_memory=1", false);
        box_need(&b, NEED_MODULE, "raid0", false);
        box_need(&b, NEED_FEATURE, "CONFIG_NUMA", false);
        box_need(&b, NEED_UNIT, "a.service", false);
        int pipes[ARRAY_SIZE(paths)];
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                _free_ char *at = full(&b, paths[i]), *folder = xstrndup(paths[i], (size_t)(strrchr(paths[i], '/') - paths[i]));
                ASSERT_OK(root_make_dirs(b.root, folder, 0755));
                ASSERT_EQ(mkfifo(at, 0644), 0);
                pipes[i] = open(at, O_RDWR | O_NONBLOCK | O_CLOEXEC);
                ASSERT_EQ(write(pipes[i], "x", 1), 1);
        }
        look(&b);
        image_search(&b.image, &b.checks);
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                char c;
                if (read(pipes[i], &c, 1) != 1)         /* opening it took its content */
                        FAIL("%s was read", paths[i]);
                close(pipes[i]);
        }
}

/* The name of a device does not tell its disk: only a warning, and none for the parts of a root volume. */
TEST(mounts_by_name) {
        BOX(b);
        put(&b, "/etc/fstab", "LABEL=/ / xfs\nUUID=1 /boot/efi vfat\nUUID=2 /var/log xfs\n/dev/xvda128 /x vfat\n"
                              "UUID=3 /data xfs nofail\nfs-1:/ /efs nfs4\ntmpfs /t tmpfs\n", 0644);
        search(&b);
        assert_check(&b, CHECK_OK, "leftovers", NULL, NULL);
        static const char *const devices[] = { "UUID=4", "/dev/xvdf", "/dev/sdf", "LABEL=x", "PARTUUID=5",
                                               "/dev/disk/by-uuid/6" };
        for (size_t i = 0; i < ARRAY_SIZE(devices); i++) {
                _free_ char *line = xasprintf("%s /data xfs defaults 0 0\n", devices[i]);
                put(&b, "/etc/fstab", line, 0644);
                search(&b);
                assert_check(&b, CHECK_WARNING, "leftover-mount", "/etc/fstab", "nofail");
                ASSERT_STREQ(b.checks.items[0].found, devices[i]);
        }
}

TEST(image_with_leftovers) {
        BOX(b);
        put(&b, "/etc/machine-id", "0123456789abcdef0123456789abcdef\n", 0444);
        put(&b, "/etc/mdadm.conf", "ARRAY /dev/md0 UUID=1\n", 0644);
        put(&b, "/etc/fstab", "/dev/md/kubernetes\t/data xfs defaults 0 0\n/dev/nvme1n1 /x xfs rw,nofail 0 0\n", 0644);
        put(&b, "/etc/systemd/system/data.mount", "[Mount]\nWhat=UUID=1\nWhere=/data\n", 0644);
        put(&b, "/etc/cdi/nvidia.yaml", "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n", 0644);
        put(&b, "/var/lib/kubelet/kubeconfig", "x", 0600);
        put(&b, "/var/lib/kubelet/cpu_manager_state", "{}", 0600);
        put(&b, "/opt/nvidia/current/.driver-flavor", "open", 0644);
        put(&b, "/usr/lib/systemd/system/kubelet.service", UNIT, 0644);
        put_link(&b, "/etc/systemd/system/multi-user.target.wants/kubelet.service", "/usr/lib/systemd/system/kubelet.service");
        put_link(&b, "/etc/systemd/system/multi-user.target.wants/nodestrap-run.service", "/x");
        put_link(&b, "/etc/systemd/system/multi-user.target.wants/nodeadm-run.service", "/x");
        search(&b);
        assert_check(&b, CHECK_WARNING, "leftover-machine-id", NULL, "truncate -s 0");
        assert_check(&b, CHECK_WARNING, "leftover-array", "mdadm.conf", "ARRAY");
        assert_check(&b, CHECK_FAILED, "leftover-mount", "/etc/fstab", "90 s");
        assert_check(&b, CHECK_WARNING, "leftover-mount", "/etc/systemd/system/data.mount", "remove this mount");
        assert_check(&b, CHECK_WARNING, "leftover-cdi", NULL, "remove this file");
        assert_check(&b, CHECK_WARNING, "leftover-node", NULL, "remove these files");
        assert_check(&b, CHECK_WARNING, "leftover-kubelet", NULL, "remove them");
        assert_check(&b, CHECK_WARNING, "leftover-driver", NULL, "does not choose again");
        assert_check(&b, CHECK_FAILED, "enabled", "kubelet.service", "systemctl disable kubelet.service");
        assert_check(&b, CHECK_FAILED, "bootstrappers", NULL, "systemctl disable nodeadm-run.service");
        put(&b, "/etc/systemd/system/nodeadm-run.service.d/10-nodestrap.conf", "[Service]\n", 0644);
        search(&b);
        assert_check(&b, CHECK_WARNING, "bootstrappers", NULL, "only one of the two");
        put(&b, "/usr/lib/systemd/system/kubelet.service.d/10-nodestrap.conf", "[Service]\n", 0644);
        search(&b);
        assert_check(&b, CHECK_WARNING, "enabled", "kubelet.service", "wait for init");
        b.image.running = true;
        checks_done(&b.checks);
        image_search(&b.image, &b.checks);      /* the state of one machine */
        ASSERT_TRUE(!find(&b, "leftover-node", NULL) && !find(&b, "leftover-array", NULL));
        static char version[] = "580.126.09";
        Driver own = { .version = version };
        put(&b, "/run/nvidia/driver/usr/bin/nvidia-smi", "x", 0755);
        checks_done(&b.checks);
        image_search(&b.image, &b.checks);
        ASSERT_TRUE(!find(&b, "driver-container", NULL));       /* the driver of the operator is the only one */
        b.image.drivers = &own;
        b.image.n_drivers = 1;
        image_search(&b.image, &b.checks);
        b.image.drivers = NULL;
        b.image.n_drivers = 0;
        assert_check(&b, CHECK_WARNING, "driver-container", NULL, "driver.enabled=false");
        assert_check(&b, CHECK_WARNING, "leftover-cdi", NULL, "remove this file");
}

TEST_MAIN
