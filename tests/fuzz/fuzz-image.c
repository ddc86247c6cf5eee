/* SPDX-License-Identifier: Apache-2.0
 * A root directory that anybody made → all that doctor says of it. The input is its files, one behind the
 * other, each below a line of its own:
 *   == /etc/fstab                  what follows
 *   =* /etc/ld.so.conf             the same, 500 times over
 *   =E /usr/bin/kubelet libc.so.6  an ELF file that needs that library, or none; the lines that follow are
 *                                  its .modinfo, and strings at its end
 *   -> /lib usr/lib                a link
 * They are looked at for plans that are always the same. */
#include "files.h"
#include "sample.h"
#include "small-elf.h"

#include "base/json.h"
#include "doctor/checks.h"
#include "host/detect.h"
#include "host/host.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_INPUT (256U << 10)
#define MAX_FILES 200U
#define MAX_BYTES (1U << 20)            /* of all files, with what is repeated */
#define REPEATED  500U

/* ---- a root ---- */

typedef struct Tree { char path[32]; Root *root; size_t files, bytes; } Tree;

static Tree tree_new(void) {
        Tree t = { .path = "/dev/shm/fuzz-image-XXXXXX" };
        if (!mkdtemp(t.path)) {
                strcpy(t.path, P_tmpdir "/fuzz-image-XXXXXX");
                if (!mkdtemp(t.path))
                        abort();
        }
        if (root_new(t.path, &t.root) < 0)
                abort();
        return t;
}

static void tree_done(Tree *t) {
        root_free(t->root);
        if (tree_remove(t->path) != 0)
                abort();
}

static char *make_elf(const char *needed, const char *text, size_t size, size_t *ret_size) {
        _cleanup_(freep) char *info = xmemdup(text, size);
        for (size_t i = 0; i < size; i++)
                if (info[i] == '\n')
                        info[i] = 0;
        ElfSpec spec = { .interpreter = needed ? "/lib64/ld-linux-x86-64.so.2" : NULL, .needed = { needed },
                         .info = info, .info_size = size, .strings = info, .strings_size = size };
        return elf_make(&spec, ret_size);
}

/* What cannot be there, a file in a file or a name of 300 bytes, is not there. */
static void put(Tree *t, char kind, char *path, const char *content, size_t size) {
        _cleanup_(freep) char *made = NULL;
        char *word = strchr(path, ' ');
        int r = 0;
        if (kind == 'E' || kind == '>') {
                if (word)
                        *word++ = 0;
                made = kind == 'E' ? make_elf(word, content, size, &size) : NULL;
        } else if (kind == '*') {
                Text all = {};
                for (size_t i = 0; i < REPEATED && t->bytes + all.size + size <= MAX_BYTES; i++)
                        text_add_bytes(&all, content, size);
                size = all.size;
                made = text_take(&all);
        }
        if (*path != '/' || t->files >= MAX_FILES || t->bytes + size > MAX_BYTES)
                return;
        t->files++;
        t->bytes += size;
        if (kind == '>')
                r = word && *word ? root_link(t->root, path, word) : 0;
        else
                r = root_replace_volatile(t->root, path, made ?: content, size, 0755);
        (void)r;
}

static bool is_head(const char *at, const char *end) {
        return end - at > 3 && at[2] == ' ' && ((*at == '=' && strchr("=*E", at[1]) && at[1]) ||
                                                (*at == '-' && at[1] == '>'));
}

static void unpack(Tree *t, const char *at, const char *end) {
        while (at < end && is_head(at, end)) {
                const char *newline = memchr(at, '\n', (size_t)(end - at)), *body = newline ? newline + 1 : end,
                           *next = body;
                while (next < end && !is_head(next, end)) {
                        newline = memchr(next, '\n', (size_t)(end - next));
                        next = newline ? newline + 1 : end;
                }
                _cleanup_(freep) char *path = xmemdup(at + 3, (size_t)(body - at - 3));
                path[strcspn(path, "\n")] = 0;
                put(t, at[1], path, body, (size_t)(next - body));
                at = next;
        }
}

/* ---- what is asked of it ---- */

static const Needs *wanted(void) {
        static const char *const types[] = { "p6-b200.48xlarge", "p6e-gb200.36xlarge", "m6id.8xlarge",
                                             "trn2.48xlarge" };
        static char place[] = "/mnt/k8s-disks";
        static Needs needs;
        _cleanup_(root_freep) Root *root = NULL;
        if (needs.n == 0 && root_new("/", &root) < 0)
                abort();
        for (size_t i = 0; root && i < ARRAY_SIZE(types); i++) {
                HostOptions options = { .instance_type = types[i], .kubelet_version = "1.34.2",
                                        .containerd_version = "2.1.5", .stores = 2 };
                Sample s = sample_new();
                Host *host = NULL;
                s.config.instance.storage.strategy = STORAGE_RAID0;
                s.config.instance.storage.mount_path = place;
                s.config.nvidia.fabric_timeout_usec = 300 * USEC_PER_SEC;
                s.config.nvidia.imex_channels = 2048;
                if (host_detect(root, &s.config, &options, &host, &s.diag) < 0 ||
                    plan_make(&s.config, host, &s.options, &s.plan, &s.diag) < 0 || !s.plan)
                        abort();
                needs_of_plan(s.plan, types[i], &needs);
                host_free(host);
                sample_done(&s);
        }
        return &needs;
}

/* What every pipeline may rely on, whatever the image holds. */
static void check(const Checks *checks) {
        for (size_t i = 0; i < checks->n; i++) {
                const Check *c = &checks->items[i];
                if (!*c->code || !*c->subject || (c->verdict != CHECK_OK && !(c->text && *c->text)) ||
                    (c->verdict == CHECK_FAILED) != (c->cause != CAUSE_NONE))
                        abort();
        }
        _cleanup_(freep) char *table = checks_to_text(checks, checks->n % 2);
        for (const char *p = table, *end = p + strlen(p); p < end;) {
                size_t n = utf8_length(p, (size_t)(end - p));
                if (n == 0 || ((unsigned char)*p < ' ' && *p != '\n'))
                        abort();        /* what garbles a terminal */
                p += n;
        }
        json_auto_t *json = checks_to_json(checks);
        _cleanup_(freep) char *text = json_dumps(json, 0);
        if (!text || json_array_size(json) != checks->n)
                abort();
}

static void ask(const Image *image) {
        static const char *const programs[] = { "kubelet", "containerd" };
        _cleanup_(checks_done) Checks checks = {};
        _cleanup_(freep) char *why = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
                _cleanup_(diag_done) Diag diag = {};
                _cleanup_(freep) char *version = NULL;
                if (host_program_version(image->root, programs[i], NULL, &version, &diag) >= 0 && !version)
                        abort();
        }
        char **types = image_types(image, &why);
        if (!types || !why || (image->kernel && !strv_contains(image->kernels, image->kernel)))
                abort();
        strv_free(types);
        image_look(image, wanted(), &checks);
        image_compare(image, wanted(), &checks);
        image_search(image, &checks);
        check(&checks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(diag_done) Diag diag = {};
        Image image = {};
        if (size > MAX_INPUT)
                return 0;
        int before = dup(STDOUT_FILENO);
        Tree tree = tree_new();
        unpack(&tree, (const char *)data, (const char *)data + size);
        int r = image_open(tree.root, &image, &diag);
        if ((r < 0) != (diag_count(&diag, false) > 0))
                abort();
        if (r >= 0) {
                ask(&image);
                image_done(&image);
        }
        tree_done(&tree);
        close(before);
        int after = dup(STDOUT_FILENO);
        if (before < 0 || after != before)
                abort();        /* files are left open */
        close(after);
        return 0;
}
