/* SPDX-License-Identifier: Apache-2.0
 * The vendor's part of an NVMe identify page → the name of a device, or none. */
#include "base/str.h"
#include "host/detect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _free_ char *page = xcalloc(NVME_IDENTIFY_SIZE, 1);
        memcpy(page + 3072, data, MIN(size, 1024));
        _free_ char *name = volume_name_parse(page);
        if (!name)
                return 0;
        const char *bare = startswith(name, "/dev/") ? name + strlen("/dev/") : name;
        if (!*bare || strchr(bare, '/') || strlen(name) > 32)
                abort();
        for (const char *p = bare; *p; p++)
                if (!is_digit(*p) && !((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z') && *p != '_' && *p != '-')
                        abort();
        return 0;
}
