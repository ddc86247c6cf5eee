/* SPDX-License-Identifier: Apache-2.0
 * A file of an image → what it needs to run, and its .modinfo. */
#include "doctor/elf.h"

#include "base/str.h"

#include <errno.h>
#include <sys/mman.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const Elf *e) {
        size_t n = strv_length(e->needed);
        for (size_t i = 0; i < n; i++)
                if (strlen(e->needed[i]) >= 4096)
                        abort();
        for (size_t i = 0; i < e->n_wants; i++)
                if (strlen(e->wants[i].name) >= 4096 || strlen(e->wants[i].library) >= 4096)
                        abort();
        if (e->n_wants > 1024 || strv_length(e->defines) > 1024)
                abort();
        if (n > 257 || strv_length(e->search) > 256 || (!e->wide && (e->interpreter || e->needed || e->soname)))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(elf_done) Elf e = {};
        _free_ char *section = NULL;
        _cleanup_(close_fd) int fd = memfd_create("elf", MFD_CLOEXEC);
        size_t n = 0;
        if (fd < 0 || (size > 0 && pwrite(fd, data, size, 0) != (ssize_t)size))
                abort();
        int r = elf_read(fd, &e);
        if (r == 0)
                check(&e);
        else if (r != -ENOEXEC && r != -EBADMSG)
                abort();
        r = elf_section(fd, ".modinfo", 4096, &section, &n);
        if (r == 0 && (n > 4096 || section[n] != 0))
                abort();
        if (r != 0 && r != -ENOEXEC && r != -EBADMSG && r != -ENOENT && r != -EFBIG)
                abort();
        return 0;
}
