/* SPDX-License-Identifier: Apache-2.0
 * Modules and features of every kernel of the image. If only kernels that do not boot lack one, that is a
 * warning. modprobe finds only what depmod(8) has listed (modules.dep(5)). */
#include "doctor/look.h"

#include <errno.h>

#define MODULES     "/lib/modules"
#define BUILTIN_MAX (2U << 20)
#define MODINFO_MAX (1U << 20)
#define DEP_MAX     (16U << 20) /* about 1 MiB on Debian 13 */
#define MAX_FILES   256u
#define RULES_MAX   (8U << 20) /* bytes of all of them together */

int modules_list(const Root *root, const char *kernel, size_t *rest, char **ret) {
        _free_ char *path = xasprintf(MODULES "/%s/modules.dep", kernel);
        size_t size = 0;
        int r = image_read(root, path, MIN(*rest, (size_t)DEP_MAX), ret, &size);
        *rest -= size;
        return r;
}

char *module_name(const char *name) {
        char *copy = xstrdup(name);
        for (char *p = strchr(copy, '-'); p; p = strchr(p, '-'))
                *p = '_';
        return copy;
}

bool same_module(const char *s, size_t size, const char *name) {
        for (size_t i = 0; i < size; i++)
                if (!name[i] || (s[i] == '-' ? '_' : s[i]) != (name[i] == '-' ? '_' : name[i]))
                        return false;
        return !name[size];
}

char *module_path(const char *kernel, const char *list, const char *name) {
        for (const char *line = list; *line; line += *line == '\n') {
                size_t path = strcspn(line, ":\n");
                const char *base = memrchr(line, '/', path);
                base = base ? base + 1 : line;
                const char *suffix = memmem(base, (size_t)(line + path - base), ".ko", 3);
                if (suffix && same_module(base, (size_t)(suffix - base), name))
                        return *line == '/'
                                       ? xstrndup(line, path)
                                       : xasprintf(MODULES "/%s/%.*s", kernel, (int)MIN(path, 4096U), line);
                line += strcspn(line, "\n");
        }
        return NULL;
}

char *module_information(const Root *root, const char *path, const char *key) {
        _free_ char *data = NULL;
        size_t size = 0, n = strlen(key);
        _cleanup_(close_fd) int fd = image_file(root, path);
        if (fd < 0 || elf_section(fd, ".modinfo", MODINFO_MAX, &data, &size) < 0)
                return NULL;
        for (size_t at = 0; at < size; at += strlen(data + at) + 1)
                if (strncmp(data + at, key, n) == 0 && data[at + n] == '=')
                        return xstrdup(data + at + n + 1);
        return NULL;
}

/* The kernel that boots; if not known, all must lack it. */
static bool decides(const Look *l, const KernelLook *k, size_t lacking) {
        return l->image->kernel ? streq(l->image->kernel, k->version) : lacking == l->n_kernels;
}

typedef struct Rule { const char *file; bool never; } Rule;

/* "install X /bin/false" blocks every load; "blacklist X" only the load for a device. */
static void read_rules(const RuleFile *file, const char *module, Rule *r) {
        for (const char *at = file->text; *at && !r->never;) {
                _free_ char *line = str_cut(&at, "\n");
                const char *rest = line + strspn(line, " \t");
                _free_ char *word = str_cut(&rest, " \t"), *name = str_cut(&rest, " \t");
                bool never = streq(word, "install") &&
                             (strstr(rest, "bin/false") || strstr(rest, "bin/true"));
                if (same_module(name, strlen(name), module) && (never || streq(word, "blacklist")))
                        *r = (Rule){ file->path, never };
        }
}

static void rules_read(Look *l) {
        static const char *const folders[] = { "/etc/modprobe.d", "/usr/local/lib/modprobe.d",
                                               "/usr/lib/modprobe.d", "/lib/modprobe.d" };
        _strv_ char **files = look_conf_files(l, folders, ARRAY_SIZE(folders), "", MAX_FILES);
        size_t rest = RULES_MAX, size;
        STRV_FOREACH(file, files) {
                char *text;
                if (image_read(l->root, *file, MIN(rest, (size_t)IMAGE_TEXT_MAX), &text, &size) < 0)
                        continue;
                rest -= size;
                *APPEND(l->rules, l->n_rules) = (RuleFile){ xstrdup(*file), text };
        }
}

void kernels_read(Look *l) {
        size_t rest = MODULES_MAX;
        rules_read(l);
        STRV_FOREACH(version, l->image->kernels) {
                KernelLook *k = APPEND(l->kernels, l->n_kernels);
                *k = (KernelLook){ .version = *version };
                int r = modules_list(l->root, *version, &rest, &k->modules);
                k->error = r == -ENOENT ? 0 : MIN(r, 0);
                k->builtin = image_text(l->root, BUILTIN_MAX, MODULES "/%s/modules.builtin", *version);
                k->features = image_text(l->root, IMAGE_TEXT_MAX, "/boot/config-%s", *version)
                              ?: image_text(l->root, IMAGE_TEXT_MAX, MODULES "/%s/config", *version);
        }
}

void kernels_done(Look *l) {
        for (size_t i = 0; i < l->n_kernels; i++)
                FREE_ALL(l->kernels[i].modules, l->kernels[i].builtin, l->kernels[i].features);
        for (size_t i = 0; i < l->n_rules; i++)
                FREE_ALL(l->rules[i].path, l->rules[i].text);
        FREE_ALL(l->kernels, l->rules);
}

typedef struct Finding {
        bool builtin;
        bool listed;    /* in modules.dep, with or without its file */
        bool unlisted;  /* the file exists, but not in modules.dep */
        char *path;     /* NULL: no file */
        char *made_for; /* another kernel, of its vermagic */
} Finding;

/* A file that depmod has not listed, in directories of installers. */
static bool lies_unlisted(const Look *l, const char *kernel, const char *name) {
        static const char *const folders[] = { "extra", "updates", "updates/dkms", "weak-updates" };
        static const char ends[][8] = { "", ".xz", ".zst", ".gz" };
        for (size_t i = 0; i < ARRAY_SIZE(folders) * ARRAY_SIZE(ends); i++)
                if (image_has(l->root, MODULES "/%s/%s/%s.ko%s", kernel, folders[i / ARRAY_SIZE(ends)], name,
                              ends[i % ARRAY_SIZE(ends)]))
                        return true;
        return false;
}

static Finding find_module(const Look *l, const KernelLook *k, const char *name) {
        _free_ char *builtin = k->builtin ? module_path(k->version, k->builtin, name) : NULL;
        if (builtin)
                return (Finding){ .builtin = true };
        _free_ char *path = k->modules ? module_path(k->version, k->modules, name) : NULL;
        Finding f = { .listed = path };
        if (path && root_exists(l->root, path) > 0) {
                _free_ char *magic = module_information(l->root, path, "vermagic");
                if (magic)
                        magic[strcspn(magic, " ")] = 0;
                if (magic && !streq(magic, k->version))
                        f.made_for = TAKE_PTR(magic);
                f.path = TAKE_PTR(path);
        } else
                f.unlisted = !path && lies_unlisted(l, k->version, name);
        return f;
}

static bool is_well(const Finding *f) {
        return f->builtin || (f->path && !f->made_for);
}

static void tell_fault(Look *l, const Need *need, const KernelLook *k, const Finding *f, bool decisive) {
        Check *c = decisive ? look_fault(l, need, "module", f->path)
                            : checks_add(l->checks, CHECK_WARNING, "module", need->name, f->path);
        const char *which = !decisive          ? " (not the one that boots)"
                            : l->image->kernel ? " (which boots)"
                                               : "";
        if (f->made_for)
                check_tell(c, need, "it is built for kernel %s but installed for %s%s: install the build "
                                    "for the latter",
                           f->made_for, k->version, which);
        else if (f->unlisted)
                check_tell(c, need,
                           "its file exists for kernel %s%s, but modules.dep does not list it, so modprobe "
                           "does not find it: run depmod -a %s",
                           k->version, which, k->version);
        else if (f->listed)
                check_tell(c, need, "modules.dep of kernel %s%s lists it, but its file is missing: reinstall "
                                    "its package",
                           k->version, which);
        else
                check_tell(c, need, "kernel %s%s has it neither as a file nor built in: install "
                                    "%s",
                           k->version, which,
                           startswith(need->name, "nvidia")
                                   ? "the NVIDIA driver for this kernel"
                                   : "the package with the rest of its modules, or another kernel");
}

/* One flavor of a tree is enough: the boot chooses. The caller frees it. */
static char *find_in_trees(const Look *l, const char *name) {
        char *path = NULL;
        for (size_t i = 0; i < l->n_kernels && !path; i++)
                for (char **tree = l->image->trees; tree && *tree && !path; tree++)
                        if (decides(l, &l->kernels[i], l->n_kernels))
                                path = tree_module(l->root, *tree, l->kernels[i].version, name);
        return path;
}

/* true, and a check: it is never loaded. */
static bool look_rule(Look *l, const Need *need) {
        Rule rule = {};
        for (size_t i = 0; i < l->n_rules && !rule.never; i++)
                read_rules(&l->rules[i], need->name, &rule);
        if (rule.never)
                FAULT(l, need, "module-blacklisted", rule.file,
                      "an \"install\" line in this file blocks it: remove the line");
        else if (rule.file)
                TELL(l->checks, CHECK_WARNING, "module-blacklisted", need->name, rule.file, need,
                     "a \"blacklist\" line in this file stops devices from loading the module; only a "
                     "load by name works. Remove the line");
        return rule.never;
}

/* Reported once. */
static void tell_no_kernels(Look *l, const Need *need) {
        _strv_ char **names = NULL;
        if (l->no_kernels)
                return;
        l->no_kernels = true;
        TELL(l->checks, CHECK_UNKNOWN, "module", "kernels", NULL, NULL,
             root_list(l->root, MODULES, &names) == -EACCES
                     ? MODULES " is not readable by this user: run this as root to check %s and others"
                     : MODULES " has no kernel, so only a boot can check %s and others",
             need->name);
}

/* An unreadable list does not say what is missing. Reported once. */
static bool look_unread(Look *l, const Need *need) {
        const KernelLook *k = FIND(one, l->kernels, l->n_kernels, one->error != 0);
        if (k && !l->no_kernels)
                TELL(l->checks, CHECK_UNKNOWN, "module", k->version, NULL, NULL,
                     "its module lists in " MODULES " are not readable (%s), so nodestrap cannot tell if "
                                                    "it has "
                     "%s and others",
                     strerror(-k->error), need->name);
        l->no_kernels |= k != NULL;
        return k;
}

void look_module(Look *l, const Need *need) {
        size_t lacking = 0;
        _free_ char *found = NULL, *tree = NULL, *name = module_name(need->name);
        Finding *all = xcalloc(l->n_kernels + 1, sizeof *all);
        for (size_t i = 0; i < l->n_kernels; i++) {
                all[i] = find_module(l, &l->kernels[i], need->name);
                lacking += !is_well(&all[i]);
                if (is_well(&all[i]) && (!found || decides(l, &l->kernels[i], lacking)))
                        RENEW(found, xstrdup(all[i].builtin ? "built in" : all[i].path));
        }
        /* modprobe.d does not apply to built-in modules. */
        bool never = !(found && streq(found, "built in") && lacking == 0) && look_rule(l, need);
        if (lacking > 0)
                tree = find_in_trees(l, need->name);
        if (tree)
                look_well(l, need, "module", tree);
        else if ((lacking > 0 || l->n_kernels == 0) && l->image->running &&
                 image_has(l->root, "/sys/module/%s", name))
                look_well(l, need, "module", "loaded");
        else if (l->n_kernels == 0)
                tell_no_kernels(l, need);
        else if (lacking == 0 && !never)
                look_well(l, need, "module", found ?: "");
        else if (lacking > 0 && !look_unread(l, need) && !look_is_later(l, need, "module"))
                for (size_t i = 0; i < l->n_kernels; i++)
                        if (!is_well(&all[i]))
                                tell_fault(l, need, &l->kernels[i], &all[i],
                                           decides(l, &l->kernels[i], lacking));
        for (size_t i = 0; i < l->n_kernels; i++)
                FREE_ALL(all[i].path, all[i].made_for);
        free(all);
}

/* 'y', 'm', or 0. */
static char feature_value(const char *text, const char *name) {
        _free_ char *value = text ? line_value(text, name, "=") : NULL;
        return value && is_char_of(*value, "ym") ? *value : 0;
}

char *feature_text(const Look *l, const char *name) {
        const char *text = NULL;
        for (size_t i = 0; i < l->n_kernels; i++)
                if (!l->image->kernel || streq(l->image->kernel, l->kernels[i].version))
                        text = l->kernels[i].features;
        return text ? line_value(text, name, "=") ?: xstrdup("") : NULL;
}

void look_feature(Look *l, const Need *need) {
        size_t lacking = 0, known = 0;
        const char *found = NULL;
        for (size_t i = 0; i < l->n_kernels; i++) {
                const char *text = l->kernels[i].features;
                char value = feature_value(text, need->name);
                known += text != NULL;
                lacking += text && value == 0;
                found = value ? (value == 'y' ? "=y" : "=m") : found;
        }
        if (known == 0 && l->n_kernels == 0)
                tell_no_kernels(l, need);
        else if (known == 0 && !l->features_unknown) {
                l->features_unknown = true;
                TELL(l->checks, CHECK_UNKNOWN, "feature", "kernel configuration", NULL, NULL,
                     "/boot/config-VERSION and " MODULES "/VERSION/config are not readable for any kernel, "
                     "so only a boot can check %s and others",
                     need->name);
        }
        if (known > 0 && lacking == 0)
                look_well(l, need, "feature", found ?: "");
        for (size_t i = 0; i < l->n_kernels && lacking > 0; i++) {
                const KernelLook *k = &l->kernels[i];
                if (!k->features || feature_value(k->features, need->name))
                        continue;
                bool decisive = decides(l, k, lacking);
                check_tell(decisive ? look_fault(l, need, "feature", NULL)
                                    : checks_add(l->checks, CHECK_WARNING, "feature", need->name, NULL),
                           need, "kernel %s%s lacks it; boot a kernel that has it", k->version,
                           decisive ? "" : " (not the one that boots)");
        }
}
