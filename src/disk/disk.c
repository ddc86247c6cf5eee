/* SPDX-License-Identifier: Apache-2.0
 * The kind of an EC2 disk, by the model of its NVMe controller. */
#include "disk/disk.h"

#include "base/str.h"

static const struct { const char *model; DiskKind kind; } models[] = {
        /* https://github.com/amazonlinux/amazon-ec2-utils, 70-ec2-nvme-devices.rules */
        { "Amazon EC2 NVMe Instance Storage", DISK_INSTANCE_STORE },
        { "Amazon Elastic Block Store",       DISK_EBS },
};

DiskKind disk_kind(const char *model) {
        for (size_t i = 0; model && i < ARRAY_SIZE(models); i++)
                if (startswith(model, models[i].model))
                        return models[i].kind;
        return DISK_OTHER;
}
