/* SPDX-License-Identifier: Apache-2.0
 * A disk → Content. The first byte says where the rest lies on an image: at the start, at 4 KiB or at the end.
 * The image has 2 MiB, since libblkid looks for no array on a smaller one. The byte also says if the rest is
 * sealed as an md superblock. */
#include "disk/disk.h"

#include "superblock.h"
#include "base/str.h"

#include <fcntl.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define IMAGE_SIZE (2U << 20)

static void check(const Content *c) {
        _free_ char *text = content_describe(c);
        bool has_signature = c->kind != CONTENT_BLANK && c->kind != CONTENT_DATA &&
                             c->kind != CONTENT_REMAINS;
        if (c->kind == CONTENT_UNKNOWN || c->kind == CONTENT_UNREADABLE || !c->type == has_signature ||
            (c->kind == CONTENT_DATA && !c->error))
                abort();
        for (const char *p = text; *p; p++)
                if ((unsigned char)*p < ' ')
                        abort();        /* a line end or an escape in a message */
        if (c->raid.uuid && (strlen(c->raid.uuid) != 35 || strlen(c->raid.name) > 32 || c->raid.role < -1 ||
                             (c->raid.role >= 0 && (unsigned)c->raid.role >= c->raid.disks) ||
                             strlen(raid_short_name(c->raid.name)) > 32))
                abort();
}

static char dir[] = P_tmpdir "/fuzz-content-XXXXXX";

static void remove_image(void) {
        _free_ char *path = xasprintf("%s/image", dir);
        unlink(path);
        rmdir(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static Root *root;
        static int fd = -1;
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(content_done) Content c = {};

        if (size < 1 || size - 1 > IMAGE_SIZE / 2)
                return 0;
        if (!root) {
                if (!mkdtemp(dir) || atexit(remove_image) != 0 || root_new(dir, &root) < 0 ||
                    (fd = root_open(root, "/image", O_RDWR | O_CREAT)) < 0)
                        abort();
        }
        const uint64_t places[] = { 0, 4096, IMAGE_SIZE - (size - 1), IMAGE_SIZE - 8192 };
        uint64_t at = places[data[0] & 3];
        _free_ uint8_t *bytes = xcalloc(MAX(size, (size_t)MD_SUPER_SIZE), 1);
        memcpy(bytes, data + 1, size - 1);
        if (data[0] & 4)
                md_super_seal(bytes);
        if (ftruncate(fd, 0) < 0 || ftruncate(fd, IMAGE_SIZE) < 0 ||
            pwrite(fd, bytes, size - 1, (off_t)at) != (ssize_t)(size - 1))
                abort();
        if (content_probe(root, "/image", &c, &diag) < 0)
                abort();
        check(&c);
        return 0;
}
