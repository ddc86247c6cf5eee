/* SPDX-License-Identifier: Apache-2.0
 * Modules and features of every kernel of the image. If only kernels that do not boot lack one, that is a
 * warning. modprobe finds only what depmod(8) has listed (modules.dep(5)). */
#include "doctor/look.h"

#include "base/str.h"

#include <errno.h>

#define BUILTIN_MAX (2U << 20)
#define MAX_FILES   256u
#define RULES_MAX   (8U << 20) /* bytes of all of them together */

static char *read_of(const Root *root, const char *prefix, const char *kernel, size_t limit) {
        _free_ char *path = xasprintf("%s%s", prefix, kernel);
        char *text = NULL;
        return image_read(root, path, limit, &text, NULL) < 0 ? NULL : text;
}

/* If the kernel that boots is not known: all of them lack it. */
static bool decides(const Look *l, const KernelLook *k, size_t lacking) {
        return l->image->kernel ? streq(l->image->kernel, k->version) : lacking == l->n_kernels;
}

/* ---- modprobe.d(5) ---- */

typedef struct Rule { char *file; bool never; } Rule;

/* "install X /bin/false" blocks every load; "blacklist X" only the load for a device. */
static void read_rules(const char *text, const char *path, const char *module, Rule *r) {
        for (const char *line = text; *line;) {
                size_t size = strcspn(line, "\n"), skip = strspn(line, " \t");
                const char *word = line + skip, *end = line + size;
                size_t n = MIN(strcspn(word, " \t\n"), (size_t)(end - word));
                const char *name = word + n + strspn(word + n, " \t");
                size_t m = name < end ? strcspn(name, " \t\n") : 0;
                bool blacklist = n == 9 && strncmp(word, "blacklist", 9) == 0;
                bool install = n == 7 && strncmp(word, "install", 7) == 0;
                if (skip < size && (blacklist || install) && same_module(name, m, module)) {
                        const char *rest = name + m;
                        bool never = install && (memmem(rest, (size_t)(end - rest), "bin/false", 9) ||
                                                 memmem(rest, (size_t)(end - rest), "bin/true", 8));
                        if (blacklist || never) {
                                RENEW(r->file, xstrdup(path));
                                r->never = never;
                        }
                        if (never)
                                return;
                }
                line += size + (line[size] == '\n');
        }
}

static void rules_read(Look *l) {
        static const char *const folders[] = { "/etc/modprobe.d", "/usr/local/lib/modprobe.d",
                                               "/usr/lib/modprobe.d", "/lib/modprobe.d" };
        _strv_ char **seen = NULL;
        size_t rest = RULES_MAX, size;
        l->rules = xcalloc(MAX_FILES, sizeof *l->rules);
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                _strv_ char **files = root_names(l->root, folders[i]);
                for (char **f = files; f && *f && strv_length(seen) < MAX_FILES; f++) {
                        _free_ char *path = xasprintf("%s/%s", folders[i], *f);
                        RuleFile *file = &l->rules[l->n_rules];
                        if (!endswith(*f, ".conf") || strv_contains(seen, *f))
                                continue;
                        strv_add(&seen, *f);
                        if (image_read(l->root, path, MIN(rest, (size_t)IMAGE_TEXT_MAX), &file->text, &size) <
                            0)
                                continue;
                        rest -= size;
                        file->path = TAKE_PTR(path);
                        l->n_rules++;
                }
        }
}

/* ---- what is read once ---- */

void kernels_read(Look *l) {
        size_t rest = MODULES_MAX;
        l->n_kernels = strv_length(l->image->kernels);
        rules_read(l);
        l->kernels = xcalloc(l->n_kernels + 1, sizeof *l->kernels);
        for (size_t i = 0; i < l->n_kernels; i++) {
                KernelLook *k = &l->kernels[i];
                k->version = l->image->kernels[i];
                _free_ char *builtin = xasprintf("%s/modules.builtin", k->version),
                            *config = xasprintf("%s/config", k->version);
                int r = modules_list(l->root, k->version, &rest, &k->modules);
                k->error = r == -ENOENT ? 0 : MIN(r, 0);
                k->builtin = read_of(l->root, "/lib/modules/", builtin, BUILTIN_MAX);
                k->features = read_of(l->root, "/boot/config-", k->version, IMAGE_TEXT_MAX);
                if (!k->features)
                        k->features = read_of(l->root, "/lib/modules/", config, IMAGE_TEXT_MAX);
        }
}

void kernels_done(Look *l) {
        for (size_t i = 0; i < l->n_kernels; i++)
                FREE_ALL(l->kernels[i].modules, l->kernels[i].builtin, l->kernels[i].features);
        free(l->kernels);
        for (size_t i = 0; i < l->n_rules; i++)
                FREE_ALL(l->rules[i].path, l->rules[i].text);
        free(l->rules);
}

/* ---- one module ---- */

typedef struct Finding {
        bool builtin;
        bool listed;    /* in modules.dep, with or without its file */
        bool unlisted;  /* the file exists, but not in modules.dep */
        char *path;     /* NULL: no file */
        char *made_for; /* another kernel, of its vermagic */
} Finding;

static void finding_done(Finding *f) {
        FREE_ALL(f->path, f->made_for);
}

/* A file in the directories of installers that depmod has not listed. */
static bool lies_unlisted(const Look *l, const char *kernel, const char *name) {
        static const char *const folders[] = { "extra", "updates", "updates/dkms", "weak-updates" };
        static const char *const ends[] = { "", ".xz", ".zst", ".gz" };
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
                for (size_t k = 0; k < ARRAY_SIZE(ends); k++) {
                        _free_ char *path =
                                xasprintf("/lib/modules/%s/%s/%s.ko%s", kernel, folders[i], name, ends[k]);
                        if (root_exists(l->root, path) > 0)
                                return true;
                }
        return false;
}

static Finding find_module(const Look *l, const KernelLook *k, const char *name) {
        Finding f = {};
        _free_ char *builtin = k->builtin ? module_path(k->version, k->builtin, name) : NULL;
        f.builtin = builtin != NULL;
        if (f.builtin)
                return f;
        _free_ char *path = k->modules ? module_path(k->version, k->modules, name) : NULL;
        f.listed = path != NULL;
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
                check_tell(c, need,
                           "it is made for kernel %s and lies among the modules of %s%s: install the one for "
                           "that",
                           f->made_for, k->version, which);
        else if (f->unlisted)
                check_tell(
                        c, need,
                        "it is there for kernel %s%s, and modules.dep does not list it, so modprobe does not "
                        "find it: depmod -a %s",
                        k->version, which, k->version);
        else if (f->listed)
                check_tell(c, need,
                           "modules.dep of kernel %s%s lists it, and its file is gone: install it again",
                           k->version, which);
        else
                check_tell(c, need,
                           "kernel %s%s has no such module, neither as a file nor built in: install %s",
                           k->version, which,
                           startswith(need->name, "nvidia")
                                   ? "NVIDIA's driver for it"
                                   : "the package with the rest of its modules, or another kernel");
}

static bool is_loaded(const Look *l, const char *name) {
        _free_ char *path = xasprintf("/sys/module/%s", name);
        for (char *p = path + strlen("/sys/module/"); *p; p++)
                if (*p == '-')
                        *p = '_';
        return l->image->running && root_exists(l->root, path) > 0;
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
                read_rules(l->rules[i].text, l->rules[i].path, need->name, &rule);
        if (rule.file && rule.never)
                check_tell(look_fault(l, need, "module-blacklisted", rule.file), need,
                           "an \"install\" line in that file keeps it from being loaded: remove the line");
        else if (rule.file)
                check_tell(checks_add(l->checks, CHECK_WARNING, "module-blacklisted", need->name, rule.file),
                           need,
                           "a \"blacklist\" line in that file keeps it from being loaded for its devices: "
                           "what does not load it by name has to do without. Remove the line");
        free(rule.file);
        return rule.never;
}

static void tell_no_kernels(Look *l, const Need *need) {
        _strv_ char **names = NULL;
        if (l->no_kernels)
                return;
        int r = root_list(l->root, "/lib/modules", &names);
        Check *c = checks_add(l->checks, CHECK_UNKNOWN, "module", "kernels", NULL);
        if (r == -EACCES)
                check_tell(c, NULL,
                           "/lib/modules is closed to this user: whether it has %s and others root can say",
                           need->name);
        else
                check_tell(
                        c, NULL,
                        "there is no kernel in /lib/modules, so whether it has %s and others is seen at boot",
                        need->name);
        l->no_kernels = true;
}

/* An unreadable list does not say what is missing. Reported once. */
static bool look_unread(Look *l, const Need *need) {
        for (size_t i = 0; i < l->n_kernels; i++) {
                const KernelLook *k = &l->kernels[i];
                if (k->error == 0)
                        continue;
                if (!l->no_kernels)
                        check_tell(
                                checks_add(l->checks, CHECK_UNKNOWN, "module", k->version, NULL), NULL,
                                "the lists of its modules in /lib/modules cannot be read (%s), so whether it "
                                "has %s and others is not known",
                                strerror(-k->error), need->name);
                l->no_kernels = true;
                return true;
        }
        return false;
}

void look_module(Look *l, const Need *need) {
        size_t lacking = 0;
        _free_ char *found = NULL, *tree = NULL;
        Finding *all = xcalloc(l->n_kernels + 1, sizeof *all);
        for (size_t i = 0; i < l->n_kernels; i++) {
                all[i] = find_module(l, &l->kernels[i], need->name);
                lacking += !is_well(&all[i]);
                if (is_well(&all[i]) && (!found || decides(l, &l->kernels[i], lacking))) {
                        RENEW(found, all[i].builtin ? xstrdup("built in") : xstrdup(all[i].path));
                }
        }
        /* modprobe.d does not apply to built-in modules. */
        bool never = !(found && streq(found, "built in") && lacking == 0) && look_rule(l, need);
        if (lacking > 0)
                tree = find_in_trees(l, need->name);
        if (tree)
                look_well(l, need, "module", tree);
        else if ((lacking > 0 || l->n_kernels == 0) && is_loaded(l, need->name))
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
                finding_done(&all[i]);
        free(all);
}

/* ---- features ---- */

/* The text behind "CONFIG_X=", with the following lines; "" if not set. */
static const char *feature_line(const char *text, const char *name) {
        _free_ char *begin = xasprintf("%s=", name);
        size_t n = strlen(begin);
        for (const char *line = text; *line;) {
                if (strncmp(line, begin, n) == 0)
                        return line + n;
                line += strcspn(line, "\n");
                line += *line == '\n';
        }
        return "";
}

static char feature_value(const char *text, const char *name) {
        char value = *feature_line(text, name);
        return value == 'y' || value == 'm' ? value : 0;
}

char *feature_text(const Look *l, const char *name) {
        const char *text = NULL;
        for (size_t i = 0; i < l->n_kernels; i++)
                if (!l->image->kernel || streq(l->image->kernel, l->kernels[i].version))
                        text = l->kernels[i].features;
        const char *value = text ? feature_line(text, name) : NULL;
        return value ? xstrndup(value, strcspn(value, "\n")) : NULL;
}

void look_feature(Look *l, const Need *need) {
        size_t lacking = 0, known = 0;
        const char *found = NULL;
        for (size_t i = 0; i < l->n_kernels; i++) {
                const char *text = l->kernels[i].features;
                known += text != NULL;
                char value = text ? feature_value(text, need->name) : 0;
                lacking += text && value == 0;
                found = value ? (value == 'y' ? "=y" : "=m") : found;
        }
        if (known == 0 && l->n_kernels == 0)
                tell_no_kernels(l, need);
        else if (known == 0 && !l->features_unknown) {
                l->features_unknown = true;
                check_tell(checks_add(l->checks, CHECK_UNKNOWN, "feature", "kernel configuration", NULL),
                           NULL,
                           "no kernel of the image has its configuration in /boot/config-VERSION or "
                           "/lib/modules/VERSION/config that this user may read, so whether it has %s and "
                           "others is seen at boot",
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
                           need, "kernel %s%s is built without it: boot another", k->version,
                           decisive ? "" : " (not the one that boots)");
        }
}
