/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A root directory that an input of a fuzzer describes: its files, one behind the other, each below a line of
 * its own:
 *   == /etc/fstab                  what follows
 *   =1 /sys/block/nvme0n1/size 99  that word and a newline
 *   =* /etc/ld.so.conf             what follows, 500 times over
 *   =E /usr/bin/kubelet libc.so.6  an ELF file that needs that library, or none; the lines that follow are
 *                                  its .modinfo, and strings at its end
 *   =/ /sys/block/nvme0n1/holders  a directory
 *   -> /lib usr/lib                a link */
#include "base/str.h"
#include "files.h"
#include "small-elf.h"

#include <errno.h>
#include <unistd.h>

#define MAX_INPUT (256U << 10)
#define MAX_FILES 200U
#define MAX_BYTES (1U << 20)            /* of all files, with what is repeated */
#define REPEATED  500U

typedef struct Tree { char path[32]; Root *root; size_t files, bytes; } Tree;

_unused_ static Tree tree_new(void) {
        Tree t = { .path = "/dev/shm/fuzz-tree-XXXXXX" };
        if (!mkdtemp(t.path)) {
                strcpy(t.path, P_tmpdir "/fuzz-tree-XXXXXX");
                if (!mkdtemp(t.path))
                        abort();
        }
        if (root_new(t.path, &t.root) < 0)
                abort();
        return t;
}

_unused_ static void tree_done(Tree *t) {
        root_free(t->root);
        if (tree_remove(t->path) != 0)
                abort();
}

static char *tree_elf(const char *needed, const char *text, size_t size, size_t *ret_size) {
        _free_ char *info = xmemdup(text, size);
        for (size_t i = 0; i < size; i++)
                if (info[i] == '\n')
                        info[i] = 0;
        ElfSpec spec = { .interpreter = needed ? "/lib64/ld-linux-x86-64.so.2" : NULL, .needed = { needed },
                         .info = info, .info_size = size, .strings = info, .strings_size = size };
        return elf_make(&spec, ret_size);
}

/* Not in a temporary file first, as the program itself does it: it is the time of the fuzzer that counts. */
static int tree_write(const Root *root, const char *path, const char *content, size_t size) {
        const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK;
        _cleanup_(close_fd) int fd = root_open(root, path, flags);
        if (fd == -ENOENT) {
                _free_ char *above = xstrndup(path, (size_t)(strrchr(path, '/') - path));
                int r = *above ? root_make_dirs(root, above, 0755) : 0;
                fd = r < 0 ? r : root_open(root, path, flags);
        }
        if (fd < 0)
                return fd;
        return fchmod(fd, 0755) < 0 || write(fd, content, size) != (ssize_t)size ? -errno : 0;
}

/* Impossible entries, such as a file in a file or a name of 300 bytes, are left out. */
static void tree_put(Tree *t, char kind, char *path, const char *content, size_t size) {
        _free_ char *made = NULL;
        char *word = strchr(path, ' ');
        int r = 0;
        if (kind == 'E' || kind == '>') {
                if (word)
                        *word++ = 0;
                made = kind == 'E' ? tree_elf(word, content, size, &size) : NULL;
        } else if (kind == '*') {
                Text all = {};
                for (size_t i = 0; i < REPEATED && t->bytes + all.size + size <= MAX_BYTES; i++)
                        text_add_bytes(&all, content, size);
                size = all.size;
                made = text_take(&all);
        } else if (kind == '1') {
                made = xasprintf("%s\n", word ? word + 1 : "");
                size = strlen(made);
                if (word)
                        *word = 0;
        }
        if (*path != '/' || t->files >= MAX_FILES || t->bytes + size > MAX_BYTES)
                return;
        t->files++;
        t->bytes += size;
        if (kind == '/')
                r = root_make_dirs(t->root, path, 0755);
        else if (kind == '>')
                r = word && *word ? root_link(t->root, path, word) : 0;
        else
                r = tree_write(t->root, path, made ?: content, size);
        (void)r;
}

static bool tree_is_head(const char *at, const char *end) {
        return end - at > 3 && at[2] == ' ' && ((*at == '=' && strchr("=*E1/", at[1]) && at[1]) ||
                                                (*at == '-' && at[1] == '>'));
}

_unused_ static void tree_unpack(Tree *t, const char *at, const char *end) {
        while (at < end && tree_is_head(at, end)) {
                const char *newline = memchr(at, '\n', (size_t)(end - at)), *body = newline ? newline + 1 : end,
                           *next = body;
                while (next < end && !tree_is_head(next, end)) {
                        newline = memchr(next, '\n', (size_t)(end - next));
                        next = newline ? newline + 1 : end;
                }
                _free_ char *path = xmemdup(at + 3, (size_t)(body - at - 3));
                path[strcspn(path, "\n")] = 0;
                tree_put(t, at[1], path, body, (size_t)(next - body));
                at = next;
        }
}
