/* SPDX-License-Identifier: Apache-2.0
 * Programs → packages of Amazon Linux 2023, Debian and NVIDIA; one name if they agree. */
#include "base/package.h"

#include "base/str.h"

static const struct { char name[32]; const char *package; } packages[] = {
        { "mkfs.xfs", "xfsprogs" },
        { "xfs_growfs", "xfsprogs" },
        { "mkfs.ext4", "e2fsprogs" },
        { "resize2fs", "e2fsprogs" },
        { "modprobe", "kmod" },
        { "rmmod", "kmod" },
        { "cp", "coreutils" },
        { "mount", "util-linux (Amazon Linux) or mount (Debian)" },
        { "umount", "util-linux (Amazon Linux) or mount (Debian)" },
        { "systemctl", "systemd" },
        { "ctr", "containerd" },
        { "containerd-shim-runc-v2", "containerd" },
        { "unpigz", "pigz" },
        { "ibstat", "infiniband-diags" },
        { "nvidia-ctk", "nvidia-container-toolkit-base" },
        { "nvidia-container-runtime", "nvidia-container-toolkit" },
        { "nv-fabricmanager", "nvidia-fabricmanager" },
        { "nvidia-imex-ctl", "nvidia-imex" },
        { "nvidia-smi", "the NVIDIA driver with its programs" },
        { "nvidia-gridd", "the NVIDIA GRID driver" },
        { "nvidia-gridd.service", "the NVIDIA GRID driver" },
        { "libnvidia-ml.so.1", "the NVIDIA driver with its libraries" },
        { "libcurl.so.4", CURL_PACKAGE },
        { "libmount.so.1", LIBMOUNT_PACKAGE },
        { "libblkid.so.1", BLKID_PACKAGE },
        { "containerd.service", "containerd" },
        { "nvidia-persistenced.service", "nvidia-persistenced" },
        { "nvidia-fabricmanager.service", "nvidia-fabricmanager" },
        { "nvidia-imex.service", "nvidia-imex" },
        { "nvidia-cdi-refresh.service", "nvidia-container-toolkit-base" },
};

const char *package_of(const char *name) {
        const char *base = path_last(name);
        if (startswith(base, "nodestrap-"))
                return "nodestrap";
        return PICK(p, packages, ARRAY_SIZE(packages), streq(p->name, base), p->package, base);
}
