/* SPDX-License-Identifier: Apache-2.0
 * An ELF file → what it needs to run. The file may be hostile: every offset, size and count has a limit. */
#include "doctor/elf.h"

#include "base/str.h"

#include <elf.h>
#include <errno.h>

#define MAX_HEADERS  256u  /* of programs; linkers make about 15 at most */
#define MAX_SECTIONS 4096u /* NVIDIA modules have hundreds */
#define MAX_DYNAMIC  4096u
#define MAX_NEEDED   256u
#define MAX_VERSIONS 1024u /* libstdc++ has some hundred */
#define MAX_STRING   4096u

void elf_done(Elf *e) {
        FREE_ALL(e->interpreter, e->soname);
        strv_free(e->needed);
        strv_free(e->search);
        strv_free(e->defines);
        for (size_t i = 0; i < e->n_wants; i++)
                FREE_ALL(e->wants[i].name, e->wants[i].library);
        free(e->wants);
        *e = (Elf){};
}

char *elf_machine_text(unsigned machine) {
        return machine == ELF_X86_64    ? xstrdup("x86_64")
               : machine == ELF_AARCH64 ? xstrdup("aarch64")
               : machine == EM_386      ? xstrdup("i386")
               : machine == EM_ARM      ? xstrdup("32-bit arm")
                                        : xasprintf("ELF machine %u", machine);
}

/* Up to size bytes; fewer where the file ends, or a negative errno. */
static ssize_t read_some(int fd, uint64_t at, void *to, size_t size) {
        size_t done = 0;
        if (at > INT64_MAX - size)
                return -EBADMSG;
        for (ssize_t n = 1; n != 0 && done < size; done += (size_t)MAX(n, 0)) {
                n = pread(fd, (char *)to + done, size - done, (off_t)(at + done));
                if (n < 0 && errno != EINTR)
                        return -errno;
        }
        return (ssize_t)done;
}

/* -EBADMSG: the file ends early. */
static int read_at(int fd, uint64_t at, void *to, size_t size) {
        ssize_t n = read_some(fd, at, to, size);
        return n < 0 ? (int)n : (size_t)n < size ? -EBADMSG : 0;
}

/* -EBADMSG: the file ends before a NUL. */
static int read_string(int fd, uint64_t at, char **ret) {
        char text[MAX_STRING];
        ssize_t n = read_some(fd, at, text, sizeof text);
        if (n < 0 || !memchr(text, 0, (size_t)n))
                return n < 0 ? (int)n : -EBADMSG;
        *ret = xstrdup(text);
        return 0;
}

static int read_header(int fd, Elf64_Ehdr *ret) {
        unsigned char start[20];
        int r = read_at(fd, 0, start, sizeof start);
        if (r == -EBADMSG || (r == 0 && memcmp(start, ELFMAG, SELFMAG) != 0))
                return -ENOEXEC;
        if (r < 0)
                return r;
        *ret = (Elf64_Ehdr){};
        memcpy(ret->e_ident, start, EI_NIDENT);
        bool other =
                start[EI_DATA] != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB);
        ret->e_machine = start[EI_DATA] == ELFDATA2MSB ? (Elf64_Half)(start[18] << 8 | start[19])
                                                       : (Elf64_Half)(start[19] << 8 | start[18]);
        if (other || start[EI_CLASS] != ELFCLASS64)
                return 0;
        return read_at(fd, 0, ret, sizeof *ret);
}

static bool is_readable(const Elf64_Ehdr *h) {
        return h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_ehsize > 0;
}

typedef struct Segments { Elf64_Phdr *items; size_t n; } Segments;

/* The offset in the file of a memory address. */
static int file_offset(const Segments *s, uint64_t address, uint64_t *ret) {
        const Elf64_Phdr *p = FIND(one, s->items, s->n,
                                   one->p_type == PT_LOAD && address >= one->p_vaddr &&
                                           address - one->p_vaddr < one->p_filesz &&
                                           one->p_offset <= INT64_MAX);
        *ret = p ? p->p_offset + (address - p->p_vaddr) : 0;
        return p ? 0 : -EBADMSG;
}

typedef struct Dynamic { Elf64_Dyn *items; size_t n; } Dynamic;

static const Elf64_Dyn *dynamic_find(const Dynamic *d, int64_t tag) {
        return FIND(one, d->items, d->n, one->d_tag == tag);
}

/* The string table of the dynamic section. */
typedef struct Strings { uint64_t at, size; } Strings;

static int read_name(int fd, const Strings *strings, uint64_t at, char **ret) {
        return at < strings->size ? read_string(fd, strings->at + at, ret) : -EBADMSG;
}

static int read_names(int fd, const Strings *strings, const Dynamic *d, Elf *e) {
        bool runpath = dynamic_find(d, DT_RUNPATH);
        size_t n = 0;
        for (size_t i = 0; i < d->n; i++) {
                const Elf64_Dyn *item = &d->items[i];
                int64_t tag = item->d_tag;
                if (tag != DT_NEEDED && tag != DT_SONAME && tag != (runpath ? DT_RUNPATH : DT_RPATH))
                        continue;
                _free_ char *text = NULL;
                int r = n++ > MAX_NEEDED ? -EBADMSG : read_name(fd, strings, item->d_un.d_val, &text);
                if (r < 0)
                        return r;
                if (tag == DT_NEEDED)
                        strv_push(&e->needed, TAKE_PTR(text));
                else if (tag != DT_SONAME)
                        for (const char *at = text + strspn(text, ":");
                             *at && strv_length(e->search) < MAX_NEEDED;)
                                strv_push(&e->search, str_cut(&at, ":"));
                else if (!e->soname)
                        e->soname = TAKE_PTR(text);
        }
        return 0;
}

/* Each entry has the distance to the next; 0 ends the list. Like ld.so(8), this ignores the counts beside
 * such lists. Each read counts against the limit of the whole section. */
static int entry_read(int fd, uint64_t at, size_t *total, void *entry, size_t size) {
        return ++*total > MAX_VERSIONS ? -EBADMSG : read_at(fd, at, entry, size);
}

static int read_wanted(int fd, const Strings *strings, uint64_t at, const char *library, size_t *total,
                       Elf *e) {
        for (uint32_t next = 1; next != 0; at += next) {
                _free_ char *name = NULL;
                Elf64_Vernaux version = {};
                int r = entry_read(fd, at, total, &version, sizeof version);
                if (r >= 0 && !(version.vna_flags & VER_FLG_WEAK))
                        r = read_name(fd, strings, version.vna_name, &name);
                if (r < 0)
                        return r;
                if (name)
                        *APPEND(e->wants, e->n_wants) = (ElfVersion){ TAKE_PTR(name), xstrdup(library) };
                next = version.vna_next;
        }
        return 0;
}

static int read_wants(int fd, const Strings *strings, uint64_t at, Elf *e) {
        size_t total = 0;
        for (uint32_t next = 1; next != 0; at += next) {
                _free_ char *library = NULL;
                Elf64_Verneed need;
                int r = entry_read(fd, at, &total, &need, sizeof need);
                THEN(r, read_name(fd, strings, need.vn_file, &library));
                THEN(r, read_wanted(fd, strings, at + need.vn_aux, library, &total, e));
                if (r < 0)
                        return r;
                next = need.vn_next;
        }
        return 0;
}

/* The first name is its own; the others are those that it inherits from. */
static int read_defines(int fd, const Strings *strings, uint64_t at, Elf *e) {
        size_t total = 0;
        for (uint32_t next = 1; next != 0; at += next) {
                _free_ char *name = NULL;
                Elf64_Verdef definition;
                Elf64_Verdaux first = {};
                int r = entry_read(fd, at, &total, &definition, sizeof definition);
                THEN(r, read_at(fd, at + definition.vd_aux, &first, sizeof first));
                THEN(r, read_name(fd, strings, first.vda_name, &name));
                if (r < 0)
                        return r;
                strv_push_at(&e->defines, total - 1, TAKE_PTR(name));
                next = definition.vd_next;
        }
        return 0;
}

static int read_tables(int fd, const Segments *s, const Dynamic *d, Elf *e) {
        const Elf64_Dyn *table = dynamic_find(d, DT_STRTAB), *size = dynamic_find(d, DT_STRSZ),
                        *wants = dynamic_find(d, DT_VERNEED), *defines = dynamic_find(d, DT_VERDEF);
        if (!table || !size)
                return -EBADMSG;
        Strings strings = { .size = size->d_un.d_val };
        uint64_t at = 0;
        int r = file_offset(s, table->d_un.d_ptr, &strings.at);
        THEN(r, read_names(fd, &strings, d, e));
        if (wants) {
                THEN(r, file_offset(s, wants->d_un.d_ptr, &at));
                THEN(r, read_wants(fd, &strings, at, e));
        }
        if (defines) {
                THEN(r, file_offset(s, defines->d_un.d_ptr, &at));
                THEN(r, read_defines(fd, &strings, at, e));
        }
        return r;
}

static int read_dynamic(int fd, const Segments *s, const Elf64_Phdr *p, Elf *e) {
        size_t n = p->p_filesz / sizeof(Elf64_Dyn);
        if (n > MAX_DYNAMIC)
                return -EBADMSG;
        _free_ Elf64_Dyn *items = xcalloc(n + 1, sizeof *items);
        int r = read_at(fd, p->p_offset, items, n * sizeof *items);
        if (r < 0)
                return r;
        Dynamic d = { .items = items };
        while (d.n < n && items[d.n].d_tag != DT_NULL)
                d.n++;
        return dynamic_find(&d, DT_NEEDED) || dynamic_find(&d, DT_SONAME) ? read_tables(fd, s, &d, e) : 0;
}

static int read_segments(int fd, const Elf64_Ehdr *h, Elf *e) {
        if (h->e_phnum == 0)
                return 0; /* a kernel module */
        if (h->e_phnum > MAX_HEADERS || h->e_phentsize != sizeof(Elf64_Phdr))
                return -EBADMSG;
        _free_ Elf64_Phdr *items = xcalloc(h->e_phnum, sizeof *items);
        int r = read_at(fd, h->e_phoff, items, h->e_phnum * sizeof *items);
        const Segments s = { .items = items, .n = h->e_phnum };
        bool seen = false;
        for (size_t i = 0; r == 0 && i < s.n; i++) {
                if (items[i].p_type == PT_INTERP && !e->interpreter)
                        r = read_string(fd, items[i].p_offset, &e->interpreter);
                else if (items[i].p_type == PT_DYNAMIC && !seen) {
                        seen = true;
                        r = read_dynamic(fd, &s, &items[i], e);
                }
        }
        return r;
}

int elf_read(int fd, Elf *ret) {
        _cleanup_(elf_done) Elf e = {};
        Elf64_Ehdr h;
        int r = read_header(fd, &h);
        if (r < 0)
                return r;
        e.wide = h.e_ident[EI_CLASS] == ELFCLASS64;
        e.machine = h.e_machine;
        r = is_readable(&h) ? read_segments(fd, &h, &e) : 0;
        if (r < 0)
                return r;
        *ret = e;
        e = (Elf){};
        return 0;
}

int elf_section(int fd, const char *name, size_t limit, char **ret, size_t *ret_size) {
        Elf64_Ehdr h;
        int r = read_header(fd, &h);
        if (r < 0)
                return r;
        if (!is_readable(&h) || h.e_shnum == 0)
                return -ENOENT;
        if (h.e_shnum > MAX_SECTIONS || h.e_shentsize != sizeof(Elf64_Shdr) || h.e_shstrndx >= h.e_shnum)
                return -EBADMSG;
        _free_ Elf64_Shdr *sections = xcalloc(h.e_shnum, sizeof *sections);
        r = read_at(fd, h.e_shoff, sections, h.e_shnum * sizeof *sections);
        const Elf64_Shdr *names = &sections[h.e_shstrndx];
        for (size_t i = 0; r == 0 && i < h.e_shnum; i++) {
                const Elf64_Shdr *s = &sections[i];
                size_t size = s->sh_size;
                _free_ char *text = NULL;
                if (names->sh_offset > INT64_MAX || s->sh_name >= names->sh_size)
                        continue;
                r = read_string(fd, names->sh_offset + s->sh_name, &text);
                if (!text || !streq(text, name))
                        continue;
                if (s->sh_type == SHT_NOBITS || size > limit)
                        return s->sh_type == SHT_NOBITS ? -ENOENT : -EFBIG;
                _free_ char *data = xcalloc(size + 1, 1);
                r = read_at(fd, s->sh_offset, data, size);
                if (r < 0)
                        return r;
                *ret = TAKE_PTR(data);
                *ret_size = size;
                return 0;
        }
        return r < 0 ? r : -ENOENT;
}
