/* SPDX-License-Identifier: Apache-2.0
 * A name → the program or library of the image, and can it run? Checks architecture, interpreter and
 * libraries, in the search order of ld.so(8) (without its cache, which is made from the same
 * directories). */
#include "doctor/look.h"

#include "base/package.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>

#define MAX_LIBRARIES 256u /* of one program, with their own needs */
#define MAX_FOLDERS   64u
#define MAX_FILES     256u /* in ld.so.conf.d */

/* ---- programs by name ---- */

char *program_find(const Root *root, const char *tree, const char *name, char **ret_odd) {
        _strv_ char **paths = program_paths(name);
        _free_ char *odd = NULL;
        STRV_FOREACH(path, paths) {
                struct stat st;
                _free_ char *below = xasprintf("%s%s", tree, *path);
                _cleanup_(close_fd) int fd = root_open(root, below, O_PATH);
                bool file = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
                if (file && st.st_mode & 0111)
                        return TAKE_PTR(below);
                if (file && !odd)
                        odd = TAKE_PTR(below);
        }
        if (ret_odd)
                *ret_odd = TAKE_PTR(odd);
        return NULL;
}

char *image_program(const Image *image, const char *name, char **ret_odd) {
        char *path = program_find(image->root, "", name, ret_odd);
        for (char **tree = image->trees; tree && *tree && !path; tree++)
                path = program_find(image->root, *tree, name, NULL);
        return path;
}

/* ---- libraries ---- */

static void add_directory(char ***to, const char *path) {
        if (*path == '/' && strv_length(*to) < MAX_FOLDERS && !strv_contains(*to, path))
                strv_add(to, path);
}

static void read_configuration(const Root *root, const char *path, bool include, char ***to);

/* "include ld.so.conf.d/" and a pattern for names in one directory, relative to /etc. */
static void read_included(const Root *root, const char *word, char ***to) {
        _free_ char *pattern = xasprintf("%s%s", *word == '/' ? "" : "/etc/", word);
        const char *slash = strrchr(pattern, '/');
        _strv_ char **names = NULL;
        _free_ char *folder = xstrndup(pattern, (size_t)(slash - pattern));
        if (!*folder || root_list(root, folder, &names) < 0)
                return;
        for (char **name = names; name && *name && name < names + MAX_FILES; name++) {
                _free_ char *path = xasprintf("%s/%s", folder, *name);
                if (fnmatch(slash + 1, *name, FNM_PERIOD) == 0)
                        read_configuration(root, path, false, to);
        }
}

/* As ldconfig(8) reads it. */
static void read_configuration(const Root *root, const char *path, bool include, char ***to) {
        _free_ char *text = NULL;
        if (image_read(root, path, IMAGE_TEXT_MAX, &text, NULL) < 0)
                return;
        for (const char *at = text; *at;) {
                _free_ char *line = str_cut(&at, "\n");
                line[strcspn(line, "#")] = 0;
                _free_ char *word = str_strip(line);
                if (startswith(word, "include") && strspn(word + 7, " \t") > 0) {
                        if (include)
                                read_included(root, word + 7 + strspn(word + 7, " \t"), to);
                } else
                        add_directory(to, word);
        }
}

char **library_directories(const Image *image) {
        static const char standard[][12] = { "/lib64", "/usr/lib64", "/lib", "/usr/lib" };
        const char *triplet = image->machine == ELF_X86_64    ? "x86_64-linux-gnu"
                              : image->machine == ELF_AARCH64 ? "aarch64-linux-gnu"
                                                              : NULL;
        char **found = NULL;
        read_configuration(image->root, "/etc/ld.so.conf", true, &found);
        for (size_t i = 0; triplet && i < 2; i++) {
                _free_ char *path = xasprintf("%s/lib/%s", i == 0 ? "" : "/usr", triplet);
                add_directory(&found, path);
        }
        for (size_t i = 0; i < ARRAY_SIZE(standard); i++)
                add_directory(&found, standard[i]);
        return found;
}

static bool try_library(const Look *l, const char *directory, const char *rest, const char *name,
                        unsigned machine, char **ret_path, Elf *ret) {
        _free_ char *path = xasprintf("%s%s%s%s", directory, rest, *directory || *rest ? "/" : "", name);
        _cleanup_(elf_done) Elf e = {};
        _cleanup_(close_fd) int fd = image_file(l->root, path);
        if (fd < 0 || elf_read(fd, &e) < 0 || (machine != 0 && e.machine != machine))
                return false;
        *ret_path = TAKE_PTR(path);
        *ret = e;
        e = (Elf){};
        return true;
}

/* As ld.so(8) finds a library for an object, and then in trees. */
static bool find_library(const Look *l, const char *name, const char *object, char *const *search,
                         unsigned machine, char **ret_path, Elf *ret) {
        _free_ char *origin = parent_of(object);
        if (strchr(name, '/'))
                return try_library(l, "", "", name, machine, ret_path, ret);
        STRV_FOREACH(d, search) {
                size_t n = startswith(*d, "$ORIGIN") ? 7 : startswith(*d, "${ORIGIN}") ? 9 : 0;
                if (try_library(l, n > 0 ? origin : "", *d + n, name, machine, ret_path, ret))
                        return true;
        }
        STRV_FOREACH(d, l->directories)
                if (try_library(l, *d, "", name, machine, ret_path, ret))
                        return true;
        STRV_FOREACH(tree, l->image->trees)
                if (try_library(l, *tree, "/usr/lib64", name, machine, ret_path, ret))
                        return true;
        return false;
}

typedef struct Object {
        char *name;     /* as another object needs it; NULL: the first */
        char *path;
        Elf elf;
} Object;

typedef struct Objects { Object *items; size_t n; } Objects;

static void objects_done(Objects *o) {
        for (size_t i = 0; i < o->n; i++) {
                FREE_ALL(o->items[i].name, o->items[i].path);
                elf_done(&o->items[i].elf);
        }
        free(o->items);
}

static const Object *objects_find(const Objects *o, const char *name) {
        for (size_t i = 1; i < o->n; i++)
                if (streq(o->items[i].name, name))
                        return &o->items[i];
        return NULL;
}

/* Adds what an object needs; a message if a library is missing. */
static char *load_needed(const Look *l, Objects *all, size_t which) {
        const Object *o = &all->items[which];
        for (char **name = o->elf.needed; name && *name && all->n < MAX_LIBRARIES; name++) {
                Object *next = &all->items[all->n];
                if (objects_find(all, *name))
                        continue;
                if (!find_library(l, *name, o->path, o->elf.search, all->items[0].elf.machine, &next->path,
                                  &next->elf))
                        return xasprintf("%s, which %s needs, is not in a library directory", *name,
                                         o->name ? o->path : "it");
                owners_look(l, next->path);
                next->name = xstrdup(*name);
                all->n++;
        }
        return NULL;
}

/* The newest that differs in its numbers only: "GLIBC_2.36" for "GLIBC_2.38"; NULL: none. */
static const char *newest_of_family(char *const *defines, const char *version) {
        const char *end = strrchr(version, '_'), *newest = NULL;
        size_t n = end ? (size_t)(end + 1 - version) : 0;
        STRV_FOREACH(d, defines)
                if (n > 0 && strncmp(*d, version, n) == 0 && is_digit((*d)[n]) &&
                    (!newest || version_compare(*d, newest) > 0))
                        newest = *d;
        return newest;
}

/* ld.so(8) refuses a program built with newer libraries: "version `GLIBC_2.38' not found". It accepts a
 * library without versions (sourceware.org/git/?p=glibc.git;f=elf/dl-version.c). */
static char *version_fault(const Objects *all, const Object *o) {
        for (size_t i = 0; i < o->elf.n_wants; i++) {
                const ElfVersion *v = &o->elf.wants[i];
                const Object *library = objects_find(all, v->library);
                if (!library || !library->elf.defines || strv_contains(library->elf.defines, v->name))
                        continue;
                const char *newest = newest_of_family(library->elf.defines, v->name);
                return xasprintf("%s needs %s, but %s has %s%s: install a build for this image",
                                 o->name ? o->path : "it", v->name, library->path,
                                 newest ? "only " : "no such version", newest ?: "");
        }
        return NULL;
}

/* Why an object cannot be loaded: a library is missing or too old, for it or for one that it needs. Consumes
 * first. NULL: it can; the caller frees it. */
static char *loading_fault(const Look *l, Object first) {
        _cleanup_(objects_done) Objects all = { xcalloc(MAX_LIBRARIES, sizeof(Object)), 1 };
        char *fault = NULL;
        all.items[0] = first;
        for (size_t i = 0; i < all.n && !fault; i++)
                fault = load_needed(l, &all, i);
        for (size_t i = 0; i < all.n && !fault; i++)
                fault = version_fault(&all, &all.items[i]);
        return fault;
}

/* ---- can it run? ---- */

/* A script, by its first line (execve(2)). */
static char *script_fault(const Root *root, char *line, const char **ret_code) {
        char *rest = line;
        const char *interpreter = strsep(&rest, " \t\r");
        bool env = endswith(interpreter, "/env") && rest && *rest && *rest != '-';
        if (env)
                interpreter = strsep(&rest, " \t\r");
        _free_ char *odd = NULL, *path = program_find(root, "", interpreter, &odd);
        *ret_code = "program-interpreter";
        return path ? NULL
                    : xasprintf("its interpreter %s is %s", interpreter,
                                odd ? "not executable" : "missing");
}

static char *elf_fault(const Look *l, const char *path, Elf *e, const char **ret_code) {
        unsigned want = l->image->machine;
        if (want != 0 && e->machine != want) {
                _free_ char *is = elf_machine_text(e->machine), *image = elf_machine_text(want);
                *ret_code = "program-architecture";
                return xasprintf("it is built for %s, but the image for %s", is, image);
        }
        if (e->interpreter && root_exists(l->root, e->interpreter) == 0) {
                *ret_code = "program-interpreter";
                return xasprintf("its loader %s is missing", e->interpreter);
        }
        *ret_code = "program-library";
        Object o = { .path = xstrdup(path), .elf = *e };
        *e = (Elf){};
        return loading_fault(l, o);
}

char *program_fault(const Look *l, const char *path, const char **ret_code) {
        char start[256];
        _cleanup_(elf_done) Elf e = {};
        _cleanup_(close_fd) int fd = image_file(l->root, path);
        owners_look(l, path);
        if (fd < 0)
                return NULL; /* this user may not read it, so this says nothing */
        ssize_t n = pread(fd, start, sizeof start - 1, 0);
        if (n < 0)
                return NULL;
        start[n] = 0;
        if (startswith(start, "#!")) {
                start[strcspn(start, "\n")] = 0;
                return script_fault(l->root, start + 2 + strspn(start + 2, " \t"), ret_code);
        }
        int r = elf_read(fd, &e);
        if (r == 0)
                return elf_fault(l, path, &e, ret_code);
        *ret_code = "program-damaged";
        return r == -ENOEXEC   ? xstrdup("it is neither a program nor a script with an interpreter line")
               : r == -EBADMSG ? xstrdup("its ELF headers are damaged, or the file is truncated")
                               : NULL;
}

static void tell_missing_program(Look *l, const Need *need, const char *odd) {
        if (odd) {
                FAULT(l, need, "program-mode", odd, "it is not executable: chmod 0755 %s", odd);
                return;
        }
        _strv_ char **paths = program_paths(need->name);
        STRV_FOREACH(path, paths)
                if (look_is_closed(l, need, "program", *path))
                        return;
        if (!look_is_later(l, need, "program"))
                FAULT(l, need, "program", NULL, "it is missing%s: install %s",
                      *need->name == '/' ? "" : " from the PATH of systemd", package_of(need->name));
}

void look_program(Look *l, const Need *need) {
        _free_ char *odd = NULL, *path = image_program(l->image, need->name, &odd), *fault = NULL;
        const char *code = "program";
        if (!path) {
                tell_missing_program(l, need, odd);
                return;
        }
        labels_look(l->labels, l->root, path);
        fault = program_fault(l, path, &code);
        if (fault)
                FAULT(l, need, code, path, "it cannot run: %s", fault);
        else
                look_well(l, need, "program", path);
}

void look_library(Look *l, const Need *need) {
        Object o = {};
        if (!find_library(l, need->name, "/", NULL, l->image->machine, &o.path, &o.elf)) {
                STRV_FOREACH(d, l->directories) {
                        _free_ char *path = xasprintf("%s/%s", *d, need->name);
                        if (look_is_closed(l, need, "library", path))
                                return;
                }
                if (!look_is_later(l, need, "library"))
                        FAULT(l, need, "library", NULL, "it is not in a library directory: install %s",
                              package_of(need->name));
                return;
        }
        owners_look(l, o.path);
        _free_ char *path = xstrdup(o.path), *soname = xstrdup_or_null(o.elf.soname),
                    *fault = loading_fault(l, o);
        if (fault)
                FAULT(l, need, "program-library", path, "it cannot be loaded: %s", fault);
        else if (soname && !strchr(need->name, '/') && !streq(soname, need->name))
                TELL(l->checks, CHECK_WARNING, "library", need->name, path, need,
                     "its soname is %s: this is another library, or a wrong link", soname);
        else
                look_well(l, need, "library", path);
}
