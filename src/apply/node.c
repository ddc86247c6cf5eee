/* SPDX-License-Identifier: Apache-2.0
 * make-nodes: /dev/nvidiactl, /dev/nvidia0 …, /dev/nvidia-uvm, -uvm-tools and -modeset. Otherwise the first
 * CUDA program makes them by a setuid helper, and nvidia-ctk omits missing ones. Numbers and rights are those
 * of the helper (NVIDIA/nvidia-modprobe:modprobe-utils/nvidia-modprobe-utils.c). */
#include "apply/device.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PROC     "/proc/driver/nvidia"
#define TEXT_MAX (64 << 10)

enum { FRONTEND = 195, CONTROL = 255, MODESET = 254 };  /* NVIDIA major number, minor numbers */

int node_major(const Root *root, const char *name, unsigned *ret) {
        _free_ char *text = NULL;
        int r = root_read(root, "/proc/devices", TEXT_MAX, &text, NULL);
        if (r < 0)
                return r;
        char *rest = text;
        for (char *line = strsep(&rest, "\n"); line && !startswith(line, "Block devices:");
             line = strsep(&rest, "\n")) {
                char *end;
                unsigned long number = strtoul(line, &end, 10);
                if (end > line && *end == ' ' && streq(end + 1, name)) {
                        *ret = (unsigned)number;
                        return 0;
                }
        }
        return -ENXIO;
}

/* 1: device and rights match, 0: not. *ret_device: the device matches. */
static int is_node(int dir_fd, const char *name, dev_t device, const NodeRights *want, bool *ret_device) {
        struct stat st;
        if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return -errno;
        *ret_device = S_ISCHR(st.st_mode) && st.st_rdev == device;
        return *ret_device && (st.st_mode & 07777) == want->mode && st.st_uid == want->uid &&
               st.st_gid == want->gid;
}

/* > 0 made, 0 was there. NVIDIA programs may make the same node meanwhile. */
static int make_at(int dir_fd, const char *name, dev_t device, const NodeRights *want) {
        bool same = false;
        int r = is_node(dir_fd, name, device, want, &same);
        if (r > 0)
                return 0;
        if (r < 0 && r != -ENOENT)
                return r;
        if (r == 0 && !same && unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
                return -errno;
        if (!same && mknodat(dir_fd, name, S_IFCHR | want->mode, device) < 0 && errno != EEXIST)
                return -errno;
        if (fchownat(dir_fd, name, want->uid, want->gid, AT_SYMLINK_NOFOLLOW) < 0 ||
            fchmodat(dir_fd, name, want->mode, 0) < 0)
                return -errno;
        return 1;
}

int node_make(const Root *root, const char *path, dev_t device, const NodeRights *want) {
        const char *slash = strrchr(path, '/');
        _free_ char *directory = xstrndup(path, (size_t)(slash - path)),
                    *link = xasprintf("/dev/char/%u:%u", major(device), minor(device)),
                    *target = xasprintf("..%s", path + strlen("/dev"));
        int r = root_make_dirs(root, directory, 0755);
        if (r < 0)
                return r;
        _cleanup_(close_fd) int fd = root_open(root, directory, O_RDONLY | O_DIRECTORY);
        r = fd < 0 ? fd : make_at(fd, slash + 1, device, want);
        if (r < 0)
                return r;
        int linked = root_link(root, link, target);
        return linked < 0 ? linked : r || linked;
}

const char *node_error(int r) {
        return r == -EPERM ? "mknod is not permitted here; a container needs CAP_MKNOD and access in its "
                             "device cgroup"
                           : strerror(-r);
}

static bool number_of(const char *text, const char *key, unsigned *ret) {
        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                const char *value = startswith(line, key) ? line + strlen(key) : NULL;
                if (value && *value == ':')
                        return sscanf(value + 1, " %u", ret) == 1;
        }
        return false;
}

int node_of_gpu(const Root *root, const char *address, unsigned *ret) {
        _free_ char *path = xasprintf(PROC "/gpus/%s/information", address), *text = NULL;
        int r = root_read(root, path, TEXT_MAX, &text, NULL);
        if (r < 0)
                return r;
        return number_of(text, "Device Minor", ret) ? 0 : -EBADMSG;
}

/* From the driver parameters; false: another program makes them (NVreg_ModifyDeviceFiles=0). */
static bool read_rights(const Root *root, NodeRights *ret) {
        _free_ char *text = NULL;
        unsigned uid = 0, gid = 0, mode = 0666, modify = 1;
        if (root_read(root, PROC "/params", TEXT_MAX, &text, NULL) >= 0) {
                (void)number_of(text, "DeviceFileUID", &uid);
                (void)number_of(text, "DeviceFileGID", &gid);
                (void)number_of(text, "DeviceFileMode", &mode);
                (void)number_of(text, "ModifyDeviceFiles", &modify);
        }
        *ret = (NodeRights){ uid, gid, mode & 0777 };
        return modify == 1;
}

static int make(Work *w, const char *path, unsigned number, unsigned minor_number, const NodeRights *want) {
        int r = node_make(w->root, path, makedev(number, minor_number), want);
        return r < 0 ? work_fail(w, r, CAUSE_DRIVER, "%s cannot be made: %s", path, node_error(r)) : r;
}

static int make_frontend(Work *w, const NodeRights *want) {
        _strv_ char **gpus = NULL;
        unsigned ignored;
        int changed = make(w, "/dev/nvidiactl", FRONTEND, CONTROL, want);
        int r = changed < 0 ? 0 : root_list(w->root, PROC "/gpus", &gpus);
        if (r < 0)
                return work_fail(w, r, CAUSE_DRIVER, PROC "/gpus cannot be read: %m");
        for (char **gpu = gpus; changed >= 0 && gpu && *gpu; gpu++) {
                unsigned number = 0;
                r = node_of_gpu(w->root, *gpu, &number);
                if (r < 0)
                        return work_fail(w, r, CAUSE_DRIVER,
                                         "the device node of GPU %s is unknown: " PROC
                                         "/gpus/%s/information: %m", *gpu, *gpu);
                _free_ char *path = xasprintf("/dev/nvidia%u", number);
                r = make(w, path, FRONTEND, number, want);
                changed = r < 0 ? r : changed || r;
        }
        /* this module is not loaded just for its node */
        if (changed < 0 || node_major(w->root, "nvidia-modeset", &ignored) < 0)
                return changed;
        r = make(w, "/dev/nvidia-modeset", FRONTEND, MODESET, want);
        return r < 0 ? r : changed || r;
}

/* World-accessible: the driver parameters do not apply to this module. */
static int make_uvm(Work *w) {
        static const NodeRights rights = { .mode = 0666 };
        unsigned number = 0;
        int r = node_major(w->root, "nvidia-uvm", &number);
        if (r < 0)
                return work_fail(w, r, CAUSE_DRIVER,
                                 "nvidia_uvm has no device number (/proc/devices does "
                                 "not list nvidia-uvm); modprobe nvidia_uvm and dmesg show why");
        int changed = make(w, "/dev/nvidia-uvm", number, 0, &rights);
        r = changed < 0 ? changed : make(w, "/dev/nvidia-uvm-tools", number, 1, &rights);
        return r < 0 ? r : changed || r;
}

int nodes_work(Work *w) {
        NodeRights rights;
        int changed = read_rights(w->root, &rights) ? make_frontend(w, &rights) : 0;
        int r = changed < 0 ? changed : make_uvm(w);
        return r < 0 ? r : changed || r;
}
