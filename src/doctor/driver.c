/* SPDX-License-Identifier: Apache-2.0
 * Image → its NVIDIA drivers: from modules of its kernels, or from each tree. Compressed modules, and
 * those built at boot, do not show a version; names of files beside them do. */
#include "doctor/look.h"

#include "base/str.h"

void drivers_done(Image *i) {
        for (size_t k = 0; k < i->n_drivers; k++)
                FREE_ALL(i->drivers[k].tree, i->drivers[k].version, i->drivers[k].where,
                         i->drivers[k].license);
        FREE_ALL(i->drivers, i->driver);
        i->drivers = NULL;
        i->n_drivers = 0;
        i->driver = NULL;
}

static bool find_in_kernel(const Root *root, const char *kernel, size_t *rest, Driver *ret) {
        _free_ char *list = NULL, *path = NULL, *version = NULL;
        if (modules_list(root, kernel, rest, &list) >= 0)
                path = module_path(kernel, list, "nvidia");
        if (path)
                version = module_information(root, path, "version");
        if (!version)
                return false;
        char *license = module_information(root, path, "license");
        *ret = (Driver){ xstrdup(""), TAKE_PTR(version), TAKE_PTR(path), license };
        return true;
}

static bool find_in_kernels(const Image *i, Driver *ret) {
        size_t rest = MODULES_MAX;
        if (i->kernel && find_in_kernel(i->root, i->kernel, &rest, ret))
                return true;
        for (size_t k = strv_length(i->kernels); k > 0; k--) /* newest first */
                if (!(i->kernel && streq(i->kernels[k - 1], i->kernel)) &&
                    find_in_kernel(i->root, i->kernels[k - 1], &rest, ret))
                        return true;
        return false;
}

char *tree_module(const Root *root, const char *tree, const char *kernel, const char *name) {
        static const char flavors[][12] = { "open", "proprietary", "grid" };
        for (size_t i = 0; i < ARRAY_SIZE(flavors); i++) {
                _free_ char *folder =
                        xasprintf("%s/flavors/%s/lib/modules/%s/extra", tree, flavors[i], kernel);
                _strv_ char **files = root_names(root, folder);
                for (char **f = files; f && *f; f++) {
                        const char *suffix = strstr(*f, ".ko");
                        if (suffix && same_module(*f, (size_t)(suffix - *f), name))
                                return xasprintf("%s/%s", folder, *f);
                }
        }
        return NULL;
}

/* "580.126.09" and "nvidia-open-580.126.09-kernel6.12.46-x86_64…" have one, not "nvidia-fs-2.24.3". The
 * caller frees it. */
static char *version_in_name(const char *name) {
        for (const char *part = name;; part++) {
                size_t n = strcspn(part, "-");
                if (driver_is_version(part, n))
                        return xstrndup(part, n);
                part += n;
                if (!*part)
                        return NULL;
        }
}

/* The newest version among the names with this prefix. */
static bool find_in_names(const Root *root, const char *folder, const char *prefix, Driver *ret) {
        _free_ char *newest = NULL, *where = NULL;
        _strv_ char **names = root_names(root, folder);
        STRV_FOREACH(name, names) {
                _free_ char *version =
                        startswith(*name, prefix) ? version_in_name(*name + strlen(prefix)) : NULL;
                if (!version || (newest && version_compare(version, newest) <= 0))
                        continue;
                RENEW(newest, TAKE_PTR(version));
                RENEW(where, xasprintf("%s/%s", folder, *name));
        }
        *ret = newest ? (Driver){ xstrdup(""), TAKE_PTR(newest), TAKE_PTR(where), NULL } : *ret;
        return ret->version;
}

/* Sources, archives and libraries with the driver version in their names. */
static bool find_in_places(const Root *root, Driver *ret) {
        static const char *const places[][2] = {
                { "/usr/src", "nvidia-" },
                { "/var/lib/dkms/nvidia", "" },
                { "/var/lib/dkms/nvidia-open", "" },
                { "/var/lib/dkms-archive/nvidia-open", "" },
                { "/var/lib/dkms-archive/nvidia", "" },
                { "/usr/lib64", "libnvidia-ml.so." },
                { "/usr/lib/x86_64-linux-gnu", "libnvidia-ml.so." },
                { "/usr/lib/aarch64-linux-gnu", "libnvidia-ml.so." },
        };
        return ANY(p, places, ARRAY_SIZE(places), find_in_names(root, (*p)[0], (*p)[1], ret));
}

/* All flavors have one version, which the build writes to .version (awslabs/amazon-eks-ami:
 * setup-nvidia.sh). */
static bool find_in_tree(const Image *i, const char *tree, Driver *ret) {
        _free_ char *noted = xasprintf("%s/.version", tree), *folder = NULL, *version = NULL;
        for (size_t k = strv_length(i->kernels); k > 0; k--) {
                const char *kernel = i->kernel ?: i->kernels[k - 1];
                _free_ char *path = tree_module(i->root, tree, kernel, "nvidia");
                version = path ? module_information(i->root, path, "version") : NULL;
                if (version) {
                        *ret = (Driver){ .version = TAKE_PTR(version), .where = TAKE_PTR(path) };
                        return true;
                }
                if (i->kernel)
                        break;
        }
        if (image_read_line(i->root, noted, &version) >= 0 && driver_is_version(version, strlen(version))) {
                *ret = (Driver){ .version = TAKE_PTR(version), .where = TAKE_PTR(noted) };
                return true;
        }
        folder = xasprintf("%s/usr/lib64", tree);
        return find_in_names(i->root, folder, "libnvidia-ml.so.", ret);
}

static bool find_running(const Image *i, Driver *ret) {
        static const char path[] = "/sys/module/nvidia/version";
        char *version = NULL;
        if (!i->running || root_read_line(i->root, path, &version) < 0)
                return false;
        *ret = (Driver){ .tree = xstrdup(""), .version = version, .where = xstrdup(path) };
        return true;
}

static void settle(Image *i) {
        const char *version = i->n_drivers > 0 ? i->drivers[0].version : NULL;
        for (size_t k = 1; k < i->n_drivers && version; k++)
                if (!streq(i->drivers[k].version, version))
                        version = NULL;
        RENEW(i->driver, xstrdup_or_null(version));
}

void drivers_find(Image *i) {
        Driver driver = {};
        if (find_in_kernels(i, &driver) || find_running(i, &driver))
                *APPEND(i->drivers, i->n_drivers) = driver;
        if (i->n_drivers == 0) {
                for (char **tree = i->trees; tree && *tree; tree++) {
                        Driver its = {};
                        if (!find_in_tree(i, *tree, &its))
                                continue;
                        RENEW(its.tree, xstrdup(*tree));
                        *APPEND(i->drivers, i->n_drivers) = its;
                }
        }
        if (i->n_drivers == 0 && find_in_places(i->root, &driver))
                *APPEND(i->drivers, i->n_drivers) = driver;
        settle(i);
}

void image_set_driver(Image *i, const char *version) {
        Driver driver = {};
        for (size_t k = 0; k < i->n_drivers && !driver.version; k++)
                if (streq(i->drivers[k].version, version)) {
                        driver = i->drivers[k];
                        i->drivers[k] = (Driver){};
                }
        if (!driver.version)
                driver = (Driver){ .tree = xstrdup(""), .version = xstrdup(version) };
        drivers_done(i);
        *APPEND(i->drivers, i->n_drivers) = driver;
        settle(i);
}

char *image_drivers_text(const Image *i) {
        _strv_ char **versions = NULL;
        for (size_t k = 0; k < i->n_drivers; k++)
                if (!strv_contains(versions, i->drivers[k].version))
                        strv_add(&versions, i->drivers[k].version);
        return versions ? strv_join(versions, " or ") : NULL;
}
