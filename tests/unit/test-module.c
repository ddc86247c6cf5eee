/* SPDX-License-Identifier: Apache-2.0
 * Options of modules as in modprobe.d(5). The NVIDIA driver loads again after a change of them. */
#include "apply/device.h"
#include "files.h"
#include "programs.h"

static void options_are(const Box *b, const char *wanted) {
        _free_ char *text = NULL;
        ASSERT_OK(module_options(b->root, "nvidia", &text));
        ASSERT_STREQ(text, wanted);
}

TEST(options_are_read_in_the_order_of_modprobe) {
        BOX(b);
        options_are(&b, "");
        put(&b, "/usr/lib/modprobe.d/50-a.conf", "options nvidia NVreg_A=1\noptions nvidiafb x=1\ninstall nvidiafb /bin/true\n");
        put(&b, "/run/modprobe.d/10-b.conf", "  install   nvidia-uvm \\\n\t/bin/true # and so on\n#options nvidia X=1\nblacklist nvidia_drm\nblacklist nouveau");
        put(&b, "/etc/modprobe.d/90-c.conf", "options nvidia-drm modeset=1\nalias char-major-195* nvidia\nsoftdep nvidia pre: ecdh\noption nvidia Y=1\noptions nv X=1\r\nalias a b\n");
        put(&b, "/etc/modprobe.d/50-a.conf.rpmnew", "options nvidia NVreg_A=9\n");
        options_are(&b, "/run/modprobe.d/10-b.conf: install nvidia-uvm /bin/true # and so on\n"
                        "/usr/lib/modprobe.d/50-a.conf: options nvidia NVreg_A=1\n/etc/modprobe.d/90-c.conf: options nvidia-drm modeset=1\n");
        put(&b, "/etc/modprobe.d/50-a.conf", "# nothing\n");    /* hides the file of the same name in /usr */
        put(&b, "/etc/modprobe.d/90-c.conf", "");
        options_are(&b, "/run/modprobe.d/10-b.conf: install nvidia-uvm /bin/true # and so on\n");
}

TEST(the_file_with_changed_options_is_named) {
        static const struct { const char *before, *now, *file; } cases[] = {
                { "a: options nvidia X=1\n", "a: options nvidia X=1\nb: options nvidia X=2\n", "b" },
                { "a: options nvidia X=1\nb: options nvidia X=2\n", "a: options nvidia X=1\n", "b" },
                { "a: options nvidia X=1\n", "a: options nvidia X=12\n", "a" },
                { "", "c: blacklist nvidia", "c" },
                { "a: x\nb: x\n", "b: x\na: x\n", "/etc/modprobe.d" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *file = module_options_changed(cases[i].before, cases[i].now);
                ASSERT_STREQ(file, cases[i].file);
        }
}

/* ---- the driver ---- */

#define SYSTEMCTL "case $1 in show) for u in nvidia-dcgm nvidia-persistenced nvidia-fabricmanager nvidia-imex; do printf 'Id=%s.service\nActiveState=active\n\n' $u; done;; esac"

static void note(Box *b, const char *name, const char *script) {
        _free_ char *text = xasprintf("[ $1 = show ] || echo \"%s $*\" >>%s/ran\ncd %s/sys/module || exit 9\n%s", name, b->path, b->path, script);
        box_program(b, name, text);
}

static void ran(const Box *b, const char *wanted) {
        _free_ char *text = NULL;
        if (root_read(b->root, "/ran", 1 << 20, &text, NULL) < 0)
                text = xstrdup("");
        ASSERT_STREQ(text, wanted);
        ASSERT_OK(root_remove(b->root, "/ran"));
}

static void unload_all(Box *b) {
        _free_ char *all = box_path(b, "/sys/module");
        ASSERT_EQ(tree_remove(all), 0);
        ASSERT_OK(root_make_dirs(b->root, "/sys/module", 0755));
}

static void driver_init(Box *b) {
        box_init(b);
        b->action = (Action){ .id = (char *)"load-module:nvidia", .target = (char *)"nvidia" };
        put(b, "/proc/sys/kernel/osrelease", "6.1.0-test\n");
        put(b, "/etc/modprobe.d/40-eks.conf", "options nvidia NVreg_A=1\n");
        ASSERT_OK(root_make_dirs(b->root, "/sys/module", 0755));
        note(b, "systemctl", SYSTEMCTL);
        note(b, "modprobe", "[ $1 != -r ] || { shift; rm -rf $*; exit 0; }\nmkdir -p $1; echo live >$1/initstate");
        note(b, "rmmod", "rm -rf $1");
        assert_works(b, module_work, 1);
        ran(b, "modprobe nvidia\n");
        put(b, "/sys/module/nvidia_uvm/initstate", "live\n");
        put(b, "/sys/module/nvidia_drm/refcnt", "0\n");
        put(b, "/sys/module/nvidia/holders/nvidia_uvm/refcnt", "0\n");
        put(b, "/sys/module/nvidia/holders/nvidia_modeset/refcnt", "1\n");
        put(b, "/sys/module/nvidia_modeset/holders/nvidia_drm/refcnt", "0\n");
        put(b, CDI_TURN, "");
}
#define DRIVER(var) _cleanup_(box_done) Box var; driver_init(&var)
#define SCRIPT(b) put(&(b), "/etc/modprobe.d/zzz-mine.conf", "options nvidia NVreg_B=2\n")

TEST(options_of_other_modules_change_nothing) {
        DRIVER(b);
        put(&b, "/etc/modprobe.d/other.conf", "options nouveau modeset=0\n# options nvidia NVreg_A=2\nblacklist nvidiafb\nblacklist nvidia_drm\noptions nvidiafb x=1\n");
        assert_works(&b, module_work, 0);
        ran(&b, "");
        ASSERT_EQ(b.work.warnings.n, 0);
}

TEST(a_driver_with_changed_options_is_loaded_again) {
        DRIVER(b);
        SCRIPT(b);
        b.work.early = true;            /* left to the run phase */
        assert_works(&b, module_work, 0);
        ran(&b, "");
        b.work.early = false;
        assert_works(&b, module_work, 1);
        ran(&b, "systemctl stop nvidia-dcgm.service\nsystemctl stop nvidia-imex.service\nsystemctl stop nvidia-persistenced.service nvidia-fabricmanager.service\n"
                "rmmod nvidia_drm\nmodprobe -r nvidia_drm nvidia_modeset nvidia_uvm nvidia\n"
                "modprobe nvidia\nmodprobe nvidia_uvm\nmodprobe nvidia_modeset\nmodprobe nvidia_drm\n"
                "systemctl --no-block start nvidia-imex.service nvidia-dcgm.service\n");
        ASSERT_EQ(root_exists(b.root, CDI_TURN), 0);
        ASSERT_EQ(b.work.warnings.n, 0);
        assert_works(&b, module_work, 0);       /* only once */
        ran(&b, "");
}

TEST(a_driver_in_use_is_a_warning_that_names_the_process) {
        DRIVER(b);
        SCRIPT(b);
        note(&b, "modprobe", "[ $1 != -r ] || { echo 'modprobe: FATAL: Module nvidia_uvm is in use.' >&2; exit 1; }");
        put(&b, "/proc/77/comm", "python3\n");
        ASSERT_OK(root_link(b.root, "/proc/77/fd/9", "/dev/nvidia-uvm"));
        assert_works(&b, module_work, 0);
        assert_warns(&b, "driver-options", "/etc/modprobe.d/zzz-mine.conf differs from the options of the loaded NVIDIA driver, which cannot be loaded again: the NVIDIA driver cannot be "
                     "unloaded: modprobe exited with status 1, last said \"modprobe: FATAL: Module nvidia_uvm is in use.\"; python3 (77) has a GPU open");
        ASSERT_CONTAINS(b.work.warnings.items[0].text, "python3 (77) has a GPU open; nvidia_modeset is loaded; reboot once to apply that file");
        _free_ char *text = NULL;
        ASSERT_OK(root_read(b.root, "/ran", 1 << 20, &text, NULL));     /* all that ran runs again */
        ASSERT_CONTAINS(text, "systemctl --no-block start nvidia-fabricmanager.service nvidia-persistenced.service nvidia-imex.service nvidia-dcgm.service\n");
}

TEST(a_driver_is_not_reloaded_if_kubelet_may_run) {
        DRIVER(b);
        SCRIPT(b);
        put(&b, KUBELET_TURN, "");
        assert_works(&b, module_work, 0);
        ran(&b, "");
        assert_warns(&b, "driver-options", "which cannot be loaded again: kubelet may already be running; reboot once");
        ASSERT_OK(root_remove(b.root, KUBELET_TURN));
        note(&b, "systemctl", "printf 'Id=kubelet.service\nActiveState=activating\n'");
        assert_works(&b, module_work, 0);       /* started by nodeadm, or by hand */
        ran(&b, "");
}

TEST(a_driver_that_does_not_load_again_is_a_failure) {
        DRIVER(b);
        SCRIPT(b);
        note(&b, "modprobe", "[ $1 != -r ] || { shift; rm -rf $*; exit 0; }\nexit 1");
        assert_fails(&b, module_work, CAUSE_DRIVER, "the NVIDIA driver cannot be loaded again: modprobe exited with status 1");
}

TEST(a_cancelled_step_loads_the_driver_again) {
        DRIVER(b);
        SCRIPT(b);
        _free_ char *pipe = box_path(&b, "/cancel"), *script = xasprintf("[ $1 = -r ] || { mkdir -p $1; exit; }; rm -rf nvidia*; echo >%s; exec sleep 60", pipe);
        ASSERT_OK(mkfifo(pipe, 0600));
        b.work.cancel_fd = ASSERT_OK(open(pipe, O_RDWR | O_CLOEXEC));
        note(&b, "modprobe", script);
        assert_works(&b, module_work, 0);       /* the loop has already failed the step */
        _free_ char *text = NULL;
        ASSERT_OK(root_read(b.root, "/ran", 1 << 20, &text, NULL));
        ASSERT_CONTAINS(text, "modprobe nvidia\nmodprobe nvidia_uvm\nmodprobe nvidia_modeset\nmodprobe nvidia_drm\nsystemctl --no-block start nvidia-f");
        ASSERT_EQ(root_exists(b.root, RUN_DIR "/stopped"), 0);
        close(b.work.cancel_fd);
}

TEST(the_next_run_loads_what_a_killed_run_unloaded) {     /* a process was killed during the reload */
        DRIVER(b);
        put(&b, RUN_DIR "/stopped", "nvidia_drm\nnvidia_uvm\nnvidia\nnvidia-dcgm.service\nnvidia-persistenced.service");
        unload_all(&b);
        assert_works(&b, module_work, 1);
        ran(&b, "modprobe nvidia\nmodprobe nvidia_uvm\nmodprobe nvidia_drm\nsystemctl --no-block start nvidia-dcgm.service\n");
        put(&b, RUN_DIR "/stopped", "nvidia-dcgm.service");    /* stopped for a reset, by another step */
        assert_works(&b, module_work, 0);
        ran(&b, "");
}

TEST(a_half_unloaded_driver_is_a_failure) {
        DRIVER(b);
        SCRIPT(b);
        note(&b, "modprobe", "rm -rf nvidia\nexit 1");
        assert_fails(&b, module_work, CAUSE_DRIVER, "the NVIDIA driver cannot be loaded again: modprobe exited with status 1");
}

TEST(options_are_compared_with_those_of_the_last_load) {   /* and not with those of an earlier load */
        DRIVER(b);
        SCRIPT(b);
        note(&b, "rmmod", "");
        unload_all(&b);
        assert_works(&b, module_work, 1);
        assert_works(&b, module_work, 0);
        ran(&b, "modprobe nvidia\n");
        ASSERT_OK(root_remove(b.root, RUN_DIR "/driver-options"));
        put(&b, "/etc/modprobe.d/zzz-mine.conf", "");
        assert_works(&b, module_work, 0);       /* first sight of a driver that the image has loaded */
        SCRIPT(b);
        b.work.early = true;
        assert_works(&b, module_work, 0);
        ran(&b, "");
}
TEST_MAIN
