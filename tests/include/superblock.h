/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* md superblocks of metadata 1.x as mdadm would leave them, for tests: this machine need not have md. */
#include "base/macro.h"

#include <endian.h>
#include <linux/types.h>
#include <linux/raid/md_p.h>

typedef struct MdSuper {
        const char *name;
        int level;
        unsigned disks, device, role;   /* role: what dev_roles says of this device; 0xffff is a spare */
        uint64_t events, at, data;      /* the last two in bytes */
} MdSuper;

#define MD_SUPER_SIZE 4096
#define MD_SUPER_DEVICES ((size_t)128)  /* as mdadm has it */

static inline uint32_t md_super_sum(const uint8_t *block, size_t size) {
        uint64_t sum = 0;
        for (size_t i = 0; i + 4 <= size; i += 4)
                sum += (uint64_t)block[i] | (uint64_t)block[i + 1] << 8 | (uint64_t)block[i + 2] << 16 |
                       (uint64_t)block[i + 3] << 24;
        return (uint32_t)(sum + (sum >> 32));
}

/* Sets the checksum right, after something was changed. */
static inline void md_super_seal(uint8_t block[MD_SUPER_SIZE]) {
        const size_t at = offsetof(struct mdp_superblock_1, sb_csum);
        memset(block + at, 0, 4);
        uint32_t sum = htole32(md_super_sum(block, sizeof(struct mdp_superblock_1) + 2 * MD_SUPER_DEVICES));
        memcpy(block + at, &sum, 4);
}

static inline void md_super_make(uint8_t block[MD_SUPER_SIZE], const MdSuper *want) {
        struct mdp_superblock_1 s = {
                .magic = htole32(MD_SB_MAGIC),
                .major_version = htole32(1),
                .level = htole32((uint32_t)want->level),
                .layout = htole32(want->level == 10 ? 0x102 : 0),
                .raid_disks = htole32(want->disks),
                .dev_number = htole32(want->device),
                .max_dev = htole32(MD_SUPER_DEVICES),
                .events = htole64(want->events),
                .super_offset = htole64(want->at / 512),
                .data_offset = htole64(want->data / 512),
                .size = htole64(2048),
                .data_size = htole64(2048),
        };
        memset(block, 0, MD_SUPER_SIZE);
        for (unsigned i = 0; i < sizeof s.set_uuid; i++)
                s.set_uuid[i] = (uint8_t)(0x3a + i);
        memcpy(s.set_name, want->name, MIN(strlen(want->name), sizeof s.set_name));
        memcpy(block, &s, sizeof s);
        memset(block + sizeof s, 0xff, 2 * MD_SUPER_DEVICES);
        size_t at = sizeof s + 2 * (size_t)want->device;
        block[at] = (uint8_t)want->role;
        block[at + 1] = (uint8_t)(want->role >> 8);
        md_super_seal(block);
}
