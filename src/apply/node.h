/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Device nodes that no kernel and no udev makes, because their drivers have no class: NVIDIA's. */
#include "base/root.h"

typedef struct NodeRights { uid_t uid; gid_t gid; mode_t mode; } NodeRights;

/* "234 nvidia-uvm" in the first part of /proc/devices, that of character devices. -ENXIO: no such driver
 * there; other errors: the file cannot be read. */
_must_check_ _nonnull_ int node_major(const Root *root, const char *name, unsigned *ret);
/* A character device at path, and its link in /dev/char, without which containers lose it when systemd
 * reloads (NVIDIA/nvidia-container-toolkit#48). One that has another number is replaced. > 0 made or put
 * right, 0 was so. */
_must_check_ _nonnull_ int node_make(const Root *root, const char *path, dev_t device,
                                     const NodeRights *want);
/* What is missing to make one: the sentence's end behind "/dev/nvidia0 cannot be made: "; static text. */
_must_check_ const char *node_error(int r);
/* The number of a GPU's own node, /dev/nvidiaN, as the driver gave it: by its PCI address. */
_must_check_ _nonnull_ int node_of_gpu(const Root *root, const char *address, unsigned *ret);
