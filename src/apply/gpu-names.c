/* SPDX-License-Identifier: Apache-2.0
 * A digest of the GPUs and MIG devices of NVML. nvidia-smi and nvidia-ctk take seconds on eight GPUs, so the
 * run phase skips them if nothing changed since the devices phase. */
#include "apply/gpus.h"
#include "apply/device.h"

#include "base/hash.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

void gpu_names_done(GpuNames *names) {
        for (size_t i = 0; i < names->n; i++)
                free(names->items[i].node);
        free(names->items);
        *names = (GpuNames){};
}

static GpuName *add(GpuNames *to, NvmlDevice device, const char *node) {
        GpuName *name = APPEND(to->items, to->n);
        *name = (GpuName){ .node = xstrdup_or_null(node) };
        (void)!nvml_uuid(device, &name->uuid);
        return name;
}

static int add_mig_devices(const NvmlGpu *gpu, const char *node, GpuNames *to) {
        unsigned most = 0;
        int code = nvml_mig_most(gpu->device, &most);
        for (unsigned i = 0; code == NVML_OK && i < most; i++) {
                NvmlDevice device = NULL;
                code = nvml_mig_device(gpu->device, i, &device);
                if (code == NVML_OK) {
                        GpuName *name = add(to, device, node);
                        name->mig = true;
                        snprintf(name->index, sizeof name->index, "%u:%u", gpu->index, i);
                } else if (code == NVML_NOT_FOUND)
                        code = NVML_OK;
        }
        return code;
}

static int add_gpu(Work *w, const NvmlGpu *gpu, GpuNames *to) {
        bool on = false, pending = false;
        unsigned number = 0;
        bool known = node_of_gpu(w->root, gpu->address, &number) >= 0;
        _free_ char *node = known ? xasprintf("/dev/nvidia%u", number) : NULL;
        GpuName *name = add(to, gpu->device, node);
        snprintf(name->index, sizeof name->index, "%u", gpu->index);
        memccpy(name->address, gpu->address, 0, sizeof name->address);
        name->divided = nvml_mig_mode(gpu->device, &on, &pending) == NVML_OK && on;
        to->gpus++;
        return name->divided ? add_mig_devices(gpu, node, to) : NVML_OK;
}

int gpu_names_read(Work *w, GpuNames *ret, NvmlTrouble *ret_trouble) {
        NvmlGpus gpus = {};
        GpuNames names = {};
        int code = NVML_OK;
        work_at(w, "the NVIDIA management library did not answer when asked for the GPUs");
        int r = nvml_open(&gpus, ret_trouble);
        if (r < 0)
                return r;
        for (size_t i = 0; i < gpus.n && code == NVML_OK; i++)
                code = add_gpu(w, &gpus.items[i], &names);
        if (code != NVML_OK) {
                _free_ char *text = nvml_text(code);
                *ret_trouble = (NvmlTrouble){ code, xasprintf("the MIG devices cannot be listed: %s", text) };
        }
        nvml_close(&gpus);
        if (code == NVML_OK)
                *ret = names;
        else
                gpu_names_done(&names);
        return code == NVML_OK ? 0 : -EIO;
}

/* Identity of the file; of a device node also its device. */
static void add_file(const Root *root, const char *path, Text *t) {
        struct stat st = {};
        _cleanup_(close_fd) int fd = root_open(root, path, O_PATH);
        if (fd >= 0 && fstat(fd, &st) == 0)
                text_add(t, "%s %ju %ju %jd %jd.%09ld\n", path, (uintmax_t)st.st_ino, (uintmax_t)st.st_rdev,
                         (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

static void add_nodes(const Root *root, const char *directory, Text *t) {
        _strv_ char **entries = root_names(root, directory);
        for (char **entry = entries; entry && *entry; entry++) {
                _free_ char *path = xasprintf("%s/%s", directory, *entry);
                if (startswith(*entry, "nvidia"))
                        add_file(root, path, t);
        }
}

void gpu_names_digest(const Work *w, const GpuNames *names, char ret[static 65]) {
        _free_ char *version = NULL;
        _cleanup_(text_done) Text t = {};
        if (root_read_line(w->root, "/sys/module/nvidia/version", &version) >= 0)
                text_add(&t, "driver %s\n", version);
        /* sysfs has a new inode after each load, and instances and their nodes change with it. */
        struct stat st = {};
        _cleanup_(close_fd) int fd = root_open(w->root, "/sys/module/nvidia", O_PATH);
        if (fd >= 0 && fstat(fd, &st) == 0)
                text_add(&t, "module %ju\n", (uintmax_t)st.st_ino);
        for (size_t i = 0; i < names->n; i++)
                text_add(&t, "%s %s %d\n", names->items[i].index, names->items[i].uuid.text,
                         names->items[i].divided);
        add_nodes(w->root, "/dev", &t);
        add_nodes(w->root, "/dev/nvidia-caps", &t);
        add_file(w->root, "/etc/ld.so.cache", &t);
        add_file(w->root, "/usr/bin/nvidia-ctk", &t);
        sha256_hex(t.data ?: "", t.size, ret);
}

bool stamp_same(const Work *w, const char *path, const char *digest) {
        _free_ char *line = NULL;
        return root_read_line(w->root, path, &line) >= 0 && streq(line, digest);
}

void stamp_write(const Work *w, const char *path, const char *digest) {
        _free_ char *line = xasprintf("%s\n", digest);
        (void)!root_replace_volatile(w->root, path, line, strlen(line), 0644);
}
