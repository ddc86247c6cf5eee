/* SPDX-License-Identifier: Apache-2.0
 * Parses md superblocks 1.x. The layout is that of the kernel (linux/raid/md_p.h), little-endian; the
 * checksum is the sum of its 32-bit words with carry (drivers/md/md.c, calc_sb_1_csum). */
#include "disk/disk.h"

#include "base/str.h"

#include <endian.h>
#include <errno.h>
#include <linux/types.h>
#include <linux/raid/md_p.h>

typedef struct mdp_superblock_1 Superblock;

static uint32_t checksum(const uint8_t *block, size_t size) {
        uint64_t sum = 0;
        for (size_t i = 0; i < size; i += 4) {
                uint32_t word = 0;      /* the last one may be half a word */
                memcpy(&word, block + i, MIN(4U, size - i));
                if (i != offsetof(Superblock, sb_csum))
                        sum += le32toh(word);
        }
        return (uint32_t)((sum & 0xffffffff) + (sum >> 32));
}

/* -1: spare, faulty or journal, whose roles are not slots. */
static int role_of(const Superblock *s, const uint8_t *block, size_t max_dev, uint32_t disks) {
        size_t device = le32toh(s->dev_number);
        uint16_t role;
        if (device >= max_dev)
                return -1;
        memcpy(&role, block + sizeof *s + 2 * device, sizeof role);
        return le16toh(role) < MIN(disks, MD_DISK_ROLE_MAX) ? le16toh(role) : -1;
}

int raid_member_parse(const void *block, uint64_t offset, RaidMember *ret) {
        Superblock s;
        uint64_t super, data;

        memcpy(&s, block, sizeof s);
        uint32_t disks = le32toh(s.raid_disks);
        size_t max_dev = le32toh(s.max_dev);
        if (le32toh(s.magic) != MD_SB_MAGIC || le32toh(s.major_version) != 1 ||
            max_dev > (MD_SUPERBLOCK_SIZE - sizeof s) / 2 ||
            checksum(block, sizeof s + 2 * max_dev) != le32toh(s.sb_csum))
                return -EINVAL;
        if (__builtin_mul_overflow(le64toh(s.super_offset), 512, &super) || super != offset ||
            __builtin_mul_overflow(le64toh(s.data_offset), 512, &data))
                return -EINVAL;
        Text uuid = {};
        for (size_t i = 0; i < 16; i++)
                text_add(&uuid, "%s%02x", i > 0 && i % 4 == 0 ? ":" : "", s.set_uuid[i]);
        *ret = (RaidMember){
                .uuid = text_take(&uuid),
                .name = xstrndup(s.set_name, sizeof s.set_name),
                .level = (int32_t)le32toh(s.level),
                .layout = le32toh(s.layout),
                .disks = disks,
                .role = role_of(&s, block, max_dev, disks),
                .events = le64toh(s.events),
                .super_offset = super,
                .data_offset = data,
        };
        return 0;
}

#define SUPER_1_2 4096  /* md(4): 1.0 is at the end, 1.1 at the start, 1.2 at 4 KiB */

bool raid_is_ours(const RaidMember *m) {
        const char *s = m->uuid && m->name ? raid_short_name(m->name) : "";
        return m->super_offset == SUPER_1_2 && (streq(s, RAID_NAME) || streq(s, RAID_OTHER_NAME));
}

const char *raid_short_name(const char *name) {
        const char *colon = strchr(name, ':');
        return colon ? colon + 1 : name;
}
