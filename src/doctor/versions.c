/* SPDX-License-Identifier: Apache-2.0
 * Versions that contradict each other, by conf/requirements.csv. Plans warn of those that they know
 * (plan/requirements.c). An unknown version contradicts nothing. */
#include "doctor/look.h"

#include "base/paths.h"
#include "base/str.h"
#include "host/host.h"

typedef struct Comparison {
        const Image *image;
        const Needs *needs;
        Checks *checks;
        const Driver *driver; /* to compare with; NULL: none is known */
} Comparison;

/* Sets the cause; types: NULL keeps those of the need, others are taken over. */
static void check_settle(Check *check, Cause cause, char **types) {
        check->cause = cause;
        if (types)
                strv_free(check->types);
        check->types = types ?: check->types;
}

/* ---- what GPUs want of the driver ---- */

static unsigned gpu_of(const char *type) {
        const InstanceType *t = instance_type_find(type);
        return t ? *t->gpu_devices : 0;
}

/* NULL: not known */
static const char *minimum_of(unsigned device) {
        const GpuModel *m = gpu_model_find(device);
        const Requirement *r = m ? requirement_find(m->name, COMPONENT_DRIVER) : NULL;
        return r ? r->before : NULL;
}

/* The first that supports the GPU, as a boot chooses; NULL: none does, or none is known. */
static const Driver *driver_for(const Image *image, unsigned device) {
        const char *m = minimum_of(device);
        return FIND(d, image->drivers, image->n_drivers,
                    !(m && d->version && version_compare(d->version, m) < 0));
}

static bool drivers_are_old(const Comparison *c, unsigned device) {
        return c->image->n_drivers > 0 && !driver_for(c->image, device);
}

static bool is_closed(const char *license) {
        return streq(license, "NVIDIA");
}

/* ---- parts that must match the driver ---- */

typedef struct Part {
        const char *name;       /* a program */
        Component component;
        const char *packages[3];
} Part;
static const Part parts[] = {
        { "nv-fabricmanager",    COMPONENT_FABRICMANAGER,
          { "nvidia-fabricmanager", "nvidia-fabric-manager" } },
        { "nvidia-imex",         COMPONENT_IMEX,         { "nvidia-imex" } },
        { "nvidia-persistenced", COMPONENT_PERSISTENCED, { "nvidia-persistenced" } },
};

/* Types of the need that get this driver: a new list. */
static char **types_of_driver(const Comparison *c, const Need *need) {
        char **types = NULL;
        STRV_FOREACH(type, need->types) {
                const Driver *chosen = driver_for(c->image, gpu_of(*type));
                if (!chosen || chosen == c->driver)
                        strv_add(&types, *type);
        }
        return types;
}

/* Compares a part with the driver. An unknown version (NULL) is reported only if a plan needs the part. */
static void tell_part(const Comparison *c, const Need *need, const char *subject, const char *path,
                      const char *version, Component component, Cause cause) {
        const Driver *d = c->driver;
        const Requirement *r = requirement_find("driver", component);
        _strv_ char **types = need ? types_of_driver(c, need) : NULL;
        if (need && need->types && !types)
                need = NULL; /* none of these types gets this driver */
        if (version && d && streq(version, d->version)) {
                checks_add(c->checks, CHECK_OK, "version", subject, version);
                return;
        }
        if (!version || !d) {
                if (need)
                        TELL(c->checks, CHECK_UNKNOWN, "version", subject, version, need,
                             "files cannot tell whether %s matches the driver: after a boot, compare the "
                             "output of its --version, or of nvidia-smi, with /sys/module/nvidia/version",
                             path);
                return;
        }
        bool fails = r->fails && need && !need->optional && cause != CAUSE_NONE;
        _free_ char *advice = requirement_advice(r);
        Check *check = TELL(c->checks, fails ? CHECK_FAILED : CHECK_WARNING, "version", subject, version,
                            need,
                            "the NVIDIA driver is %s (%s), but %s (%s) %s; %s", d->version,
                            d->where ?: "as given", subject, path, r->why, advice);
        check_settle(check, fails ? cause : CAUSE_NONE, TAKE_PTR(types));
}

/* look_program() has found it, but not in the tree that these types get. */
static void tell_missing(const Comparison *c, const Need *need) {
        _free_ char *other = image_program(c->image, need->name, NULL);
        _strv_ char **types = types_of_driver(c, need);
        if (!other || (need->types && !types))
                return;
        Check *check = TELL(c->checks, need->optional ? CHECK_WARNING : CHECK_FAILED, "program", need->name,
                            other, need,
                            "it is installed, but not in %s, which these types use: install all NVIDIA "
                            "packages there",
                            c->driver->tree);
        check_settle(check, check->cause, TAKE_PTR(types));
}

/* Only the boot that chooses a tree registers its packages. */
static void compare_part(const Comparison *c, const Part *p) {
        const Root *root = c->image->root;
        const Need *need = needs_find(c->needs, NEED_PROGRAM, p->name);
        bool tree = c->driver && *c->driver->tree;
        /* a boot adds the programs of the tree to those of the image */
        _free_ char *path = tree ? program_find(root, c->driver->tree, p->name, NULL)
                                           ?: program_find(root, "", p->name, NULL)
                                 : image_program(c->image, p->name, NULL),
                    *version = NULL;
        if (!path && need && c->driver)
                tell_missing(c, need);
        if (!path || (!need && !c->driver))
                return;
        if (!tree)
                version = package_version(root, p->packages);
        if (!version)
                version = program_version(root, path, c->driver ? c->driver->version : NULL);
        tell_part(c, need, p->name, path, version, p->component, CAUSE_VERSION);
}

#define NVML "libnvidia-ml.so."
/* From the target of the link, or from the file. Sets *ret_path if it exists. */
static char *nvml_version(const Comparison *c, const char *folder, char **ret_path) {
        const Root *root = c->image->root;
        _free_ char *path = xasprintf("%s/" NVML "1", folder), *target = NULL;
        if (root_link_name(root, path, &target) < 0 && root_exists(root, path) <= 0)
                return NULL;
        const char *behind = target && startswith(target, NVML) ? target + strlen(NVML) : "";
        char *version = driver_is_version(behind, strlen(behind))
                                ? xstrdup(behind)
                                : program_version(root, path, c->driver ? c->driver->version : NULL);
        *ret_path = TAKE_PTR(path);
        return version;
}

static void compare_nvml(const Comparison *c) {
        const Need *need = needs_find(c->needs, NEED_LIBRARY, NVML "1");
        _strv_ char **folders = library_directories(c->image);
        _free_ char *path = NULL, *version = NULL;
        if (c->driver && *c->driver->tree) {
                _free_ char *folder = xasprintf("%s/usr/lib64", c->driver->tree);
                version = nvml_version(c, folder, &path);
        }
        for (char **folder = folders; folder && *folder && !path; folder++)
                version = nvml_version(c, *folder, &path);
        if (path)
                tell_part(c, need, NVML "1", path, version, COMPONENT_NVML, CAUSE_VERSION);
}

/* ---- modules and firmware ---- */

static void compare_modules(const Comparison *c) {
        static const char *const modules[] = { "nvidia_uvm", "nvidia_modeset", "nvidia_drm" };
        const Root *root = c->image->root;
        const Driver *d = c->driver;
        size_t rest = MODULES_MAX;
        /* "/lib/modules/6.12.46/extra/nvidia.ko" → "6.12.46"; NULL: the version is not from a module. */
        static const char folder[] = "/lib/modules/";
        const char *at = d->where ? strstr(d->where, folder) : NULL;
        _free_ char *kernel = at ? xstrndup(at + strlen(folder), strcspn(at + strlen(folder), "/")) : NULL,
                    *list = NULL;
        if (!kernel || (!*d->tree && modules_list(root, kernel, &rest, &list) < 0))
                return;
        for (size_t i = 0; i < ARRAY_SIZE(modules); i++) {
                _free_ char *path = *d->tree ? tree_module(root, d->tree, kernel, modules[i])
                                    : list   ? module_path(kernel, list, modules[i])
                                             : NULL;
                _free_ char *version = path ? module_information(root, path, "version") : NULL;
                const Need *need = needs_find(c->needs, NEED_MODULE, modules[i]);
                if (version || (path && need && root_exists(root, path) > 0))
                        tell_part(c, need, modules[i], path, version, COMPONENT_MODULE,
                                  need ? need->cause : CAUSE_NONE);
        }
}

static bool has_firmware(const Root *root, const char *folder) {
        bool has = false;
        _strv_ char **names = root_names(root, folder);
        STRV_FOREACH(name, names)
                has |= startswith(*name, "gsp_");
        return has;
}

/* The open modules need firmware of exactly their version (NVIDIA/open-gpu-kernel-modules: README.md,
 * "Firmware"). A boot fails where a tree has none to copy. */
static void compare_firmware(const Comparison *c, const Need *nvidia) {
        static const char *const folders[] = { "/usr/lib/firmware", "/lib/firmware" };
        const Driver *d = c->driver;
        _strv_ char **types = types_of_driver(c, nvidia);
        if ((nvidia->types && !types) || (!*d->tree && (!d->license || is_closed(d->license))))
                return;
        _free_ char *first = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                _free_ char *path = xasprintf("%s%s/nvidia/%s", d->tree, folders[i], d->version);
                if (has_firmware(c->image->root, path)) {
                        checks_add(c->checks, CHECK_OK, "firmware", "NVIDIA firmware", path);
                        return;
                }
                first = first ?: TAKE_PTR(path);
        }
        Check *check = TELL(c->checks, CHECK_FAILED, "firmware", "NVIDIA firmware", NULL, nvidia,
                            "the NVIDIA driver is %s (%s), and needs firmware of the same version: "
                            "%s/gsp_*.bin are missing; install the same version of all NVIDIA packages",
                            d->version, d->where ?: "as given", first);
        check_settle(check, CAUSE_DRIVER, TAKE_PTR(types));
}

static void tell_driver(const Comparison *c) {
        const Driver *d = c->driver;
        const Need *need = needs_find(c->needs, NEED_MODULE, "nvidia");
        if (d) {
                _free_ char *found =
                        d->where ? xasprintf("%s (%s)", d->version, d->where) : xstrdup(d->version);
                checks_add(c->checks, CHECK_OK, "driver", "NVIDIA driver", found);
        } else if (need)
                TELL(c->checks, CHECK_UNKNOWN, "driver", "NVIDIA driver", NULL, need,
                     "no file in the image shows its version: give --driver-version");
}

/* ---- what GPUs want ---- */

/* A new list. */
static char **types_where(const Comparison *c, const Need *need,
                          bool (*broken)(const Comparison *, unsigned)) {
        char **types = NULL;
        STRV_FOREACH(type, need->types) {
                unsigned device = gpu_of(*type);
                if (device != 0 && broken(c, device))
                        strv_add(&types, *type);
        }
        return types;
}

/* NULL: not known, or chosen at boot. */
static const char *license_of(const Image *image) {
        return image->n_drivers == 1 ? image->drivers[0].license : NULL;
}

static bool wants_other_modules(const Comparison *c, unsigned device) {
        const char *license = license_of(c->image);
        const GpuModel *m = gpu_model_find(device);
        return license && m && *m->modules && streq(m->modules, is_closed(license) ? "open" : "proprietary");
}

/* The highest version that the GPUs of these types need; NULL: not known. */
static const char *highest_of(char **types, const char *(*of)(unsigned device)) {
        const char *highest = NULL;
        STRV_FOREACH(type, types) {
                const char *version = of(gpu_of(*type));
                if (!highest || version_compare(version, highest) > 0)
                        highest = version;
        }
        return highest;
}

static void compare_minima(const Comparison *c, const Need *need) {
        char **types = types_where(c, need, drivers_are_old);
        if (!types)
                return;
        _free_ char *found = image_drivers_text(c->image);
        Check *check = TELL(c->checks, CHECK_FAILED, "version", "NVIDIA driver", found, need,
                            "it does not support the GPUs of these types: install %s or newer",
                            highest_of(types, minimum_of));
        check_settle(check, CAUSE_DRIVER, types);
}

static void compare_flavor(const Comparison *c, const Need *need) {
        char **types = types_where(c, need, wants_other_modules);
        if (!types)
                return;
        bool closed = is_closed(license_of(c->image));
        Check *check = TELL(c->checks, CHECK_FAILED, "version", "NVIDIA modules",
                            c->image->drivers[0].where, need,
                            "the %s modules do not support the GPUs of these types: install the %s",
                            closed ? "proprietary" : "open",
                            closed ? "open ones (kmod-nvidia-open-dkms)" : "proprietary ones");
        check_settle(check, CAUSE_DRIVER, types);
}

/* ---- toolkit ---- */

/* The plan does not know its version, so these rows of conf/requirements.csv are read here. */
static void compare_toolkit(const Comparison *c) {
        static const char *const names[] = { "nvidia-container-toolkit-base", "nvidia-container-toolkit",
                                             NULL };
        static const struct { const char *what, *program; } uses[] = {
                { "cdi", "nvidia-ctk" }, { "compute-domains", "nvidia-imex" },
        };
        _free_ char *version = package_version(c->image->root, names);
        bool bad = false;
        for (size_t i = 0; i < ARRAY_SIZE(uses) && version && !bad; i++) {
                const Requirement *r = requirement_find(uses[i].what, COMPONENT_TOOLKIT);
                const Need *need = needs_find(c->needs, NEED_PROGRAM, uses[i].program);
                _free_ char *advice = requirement_advice(r);
                bad = need && requirement_misses(r, version);
                if (bad)
                        TELL(c->checks, r->fails ? CHECK_FAILED : CHECK_WARNING, "version", "nvidia-ctk",
                             version, need, "it %s; %s", r->why, advice)
                                ->cause = r->fails ? CAUSE_CDI : CAUSE_NONE;
        }
        if (version && !bad && needs_find(c->needs, NEED_PROGRAM, "nvidia-ctk"))
                checks_add(c->checks, CHECK_OK, "version", "nvidia-ctk", version);
}

bool image_drives(const Image *image, const char *type) {
        const Comparison c = { .image = image };
        unsigned device = gpu_of(type);
        return device == 0 || !(drivers_are_old(&c, device) || wants_other_modules(&c, device));
}

static void compare_driver(const Comparison *c, const Need *nvidia) {
        tell_driver(c);
        if (c->driver)
                compare_modules(c);
        if (c->driver && nvidia)
                compare_firmware(c, nvidia);
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
                compare_part(c, &parts[i]);
        compare_nvml(c);
}

void image_compare(const Image *image, const Needs *needs, Checks *checks) {
        Comparison c = { .image = image, .needs = needs, .checks = checks };
        const Need *nvidia = needs_find(needs, NEED_MODULE, "nvidia");
        if (image->n_drivers == 0)
                compare_driver(&c, nvidia);
        for (size_t i = 0; i < image->n_drivers; i++) {
                c.driver = &image->drivers[i];
                compare_driver(&c, nvidia);
        }
        if (nvidia) {
                compare_minima(&c, nvidia);
                compare_flavor(&c, nvidia);
        }
        compare_toolkit(&c);
        static const char *const names[] = { "nvlsm", NULL };   /* without a row: nothing is public */
        const Need *need = needs_find(c.needs, NEED_PROGRAM, NVLSM_PROGRAM);
        _free_ char *version = need ? package_version(c.image->root, names) : NULL;
        if (version)
                checks_add(checks, CHECK_OK, "version", "nvlsm", version);
}
