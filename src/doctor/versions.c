/* SPDX-License-Identifier: Apache-2.0
 * Versions that contradict each other, as their makers say: NVIDIA's programs and libraries work with no
 * other driver than that of their own version (docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide,
 * docs.nvidia.com/multi-node-nvlink-systems/imex-guide), GPUs need drivers that know them, and what the plans
 * ask of kubelet and containerd came with some version of them. What is not known contradicts nothing. */
#include "doctor/look.h"
#include "doctor/packages.h"

#include "base/str.h"
#include "host/host.h"

typedef struct Comparison {
        const Image *image;
        const Needs *needs;
        Checks *checks;
        char *where; /* that the driver's version comes from; or NULL */
} Comparison;

/* The number at place n (from 0) of "1.34.2", or of "580.126.09". */
static unsigned version_part(const char *version, int n) {
        for (; n > 0 && version; n--) {
                version = strchr(version, '.');
                version = version ? version + 1 : NULL;
        }
        unsigned value = 0;
        for (const char *p = version; p && is_digit(*p) && value < 100000; p++)
                value = 10 * value + (unsigned)(*p - '0');
        return value;
}

static bool is_before(const char *version, unsigned major, unsigned minor) {
        unsigned a = version_part(version, 0), b = version_part(version, 1);
        return a != major ? a < major : b < minor;
}

/* ---- parts of the driver's own version ---- */

typedef struct Part {
        const char *need; /* a program, or a library: of the first of its kind that is needed */
        NeedKind kind;
        Cause cause; /* where it differs */
        char *const packages[3];
} Part;
static const Part parts[] = {
        { "nv-fabricmanager",
          NEED_PROGRAM,
          CAUSE_VERSION,
          { (char *)"nvidia-fabricmanager", (char *)"nvidia-fabric-manager" } },
        { "nvidia-imex", NEED_PROGRAM, CAUSE_VERSION, { (char *)"nvidia-imex" } },
        { "nvidia-persistenced", NEED_PROGRAM, CAUSE_NONE, { (char *)"nvidia-persistenced" } },
};

static Check *add_of(const Comparison *c, CheckVerdict verdict, const char *code, const char *subject,
                     const char *found) {
        return checks_add(c->checks, verdict, code, subject, found);
}

static void compare_part(const Comparison *c, const Part *p) {
        const Image *i = c->image;
        const Need *need = needs_find(c->needs, p->kind, p->need);
        _cleanup_(freep) char *odd = NULL, *path = program_find(i->root, p->need, &odd), *version = NULL;
        if (!path || (!need && !i->driver))
                return;
        version = package_version(i->root, p->packages);
        if (!version)
                version = program_version(i->root, path, i->driver);
        if (version && i->driver && streq(version, i->driver)) {
                check_tell(add_of(c, CHECK_OK, "version", p->need, version), NULL, "it is the driver's");
                return;
        }
        if (!version || !i->driver) {
                if (need)
                        check_tell(add_of(c, CHECK_UNKNOWN, "version", p->need, version), need,
                                   "whether it is of the driver's version cannot be told from files: %s "
                                   "--version and "
                                   "/sys/module/nvidia/version say it on a machine that has booted",
                                   path);
                return;
        }
        bool fails = need && !need->optional && p->cause != CAUSE_NONE;
        Check *check = add_of(c, fails ? CHECK_FAILED : CHECK_WARNING, "version", p->need, version);
        check_tell(check, need,
                   "NVIDIA's driver is %s (%s), and it works with no other version than its own: install "
                   "all of NVIDIA's packages in one version",
                   i->driver, c->where ?: "as given");
        if (fails)
                check->cause = p->cause;
}

/* NVML answers with NVML_ERROR_LIB_RM_VERSION_MISMATCH where it and the driver differ:
 * docs.nvidia.com/deploy/nvml-api, nvmlReturn_t. */
static void compare_nvml(const Comparison *c) {
        static const char *const prefix = "libnvidia-ml.so.";
        const Image *i = c->image;
        const Need *need = needs_find(c->needs, NEED_LIBRARY, "libnvidia-ml.so.1");
        _cleanup_(strv_freep) char **folders = library_directories(i);
        for (char **folder = folders; folder && *folder && i->driver; folder++) {
                _cleanup_(freep) char *path = xasprintf("%s/%s1", *folder, prefix), *target = NULL;
                if (root_link_name(i->root, path, &target) < 0 || !startswith(target, prefix))
                        continue;
                const char *version = target + strlen(prefix);
                if (streq(version, i->driver) || !is_digit(*version)) {
                        checks_add(c->checks, CHECK_OK, "version", "libnvidia-ml.so.1", version);
                        return;
                }
                Check *check = add_of(c, need ? CHECK_FAILED : CHECK_WARNING, "version", "libnvidia-ml.so.1",
                                      version);
                check_tell(check, need,
                           "NVIDIA's driver is %s (%s), and this library answers with an error to every "
                           "question about another: install all of NVIDIA's packages in one version",
                           i->driver, c->where ?: "as given");
                if (need)
                        check->cause = CAUSE_VERSION;
                return;
        }
}

static void tell_driver(const Comparison *c) {
        const Image *i = c->image;
        const Need *need = needs_find(c->needs, NEED_MODULE, "nvidia");
        if (i->driver) {
                _cleanup_(freep) char *found =
                        c->where ? xasprintf("%s (%s)", i->driver, c->where) : xstrdup(i->driver);
                checks_add(c->checks, CHECK_OK, "driver", "NVIDIA's driver", found);
                return;
        }
        if (need && !image_loader(i, "nvidia"))
                check_tell(add_of(c, CHECK_UNKNOWN, "driver", "NVIDIA's driver", NULL), need,
                           "no file of the image tells its version, so nothing is compared with it: "
                           "give --driver-version");
}

/* ---- what GPUs want of the driver ---- */

typedef struct Minimum {
        unsigned device, major, minor;
        const char *version;
} Minimum;
/* A100, H100, B200 and B300: fabric manager's guide, "Supported platforms"; H200, RTX PRO 6000: MIG's guide,
 * "Deployment considerations"; RTX PRO 4500: Amazon EKS user guide, "ml-eks-optimized-ami"; GB200: DRA
 * driver's prerequisites (kubernetes-sigs/dra-driver-nvidia-gpu); GB300: awslabs/amazon-eks-ami,
 * nvidia-fabricmanager-condition.sh. */
static const Minimum minima[] = {
        { 0x20b0, 450, 80, "450.80" }, { 0x20b2, 450, 80, "450.80" }, { 0x2330, 525, 85, "525.85" },
        { 0x2335, 550, 90, "550.90" }, { 0x2901, 570, 0, "570" },     { 0x3182, 570, 0, "570" },
        { 0x2941, 565, 0, "565" },     { 0x31c2, 580, 0, "580" },     { 0x2bb5, 575, 51, "575.51" },
        { 0x2c3a, 595, 0, "595" },
};

static unsigned gpu_of(const char *type) {
        const InstanceType *t = instance_type_find(type);
        const char *colon = t && t->gpu_pci ? strchr(t->gpu_pci, ':') : NULL;
        return colon ? (unsigned)strtoul(colon + 1, NULL, 16) : 0;
}

/* Which of the types a rule is broken for. */
static char **types_where(const Comparison *c, const Need *need,
                          bool (*broken)(const Comparison *, unsigned)) {
        char **types = NULL;
        for (char **type = need->types; type && *type; type++) {
                unsigned device = gpu_of(*type);
                if (device != 0 && broken(c, device))
                        strv_add(&types, *type);
        }
        return types;
}

static const Minimum *minimum_of(unsigned device) {
        for (size_t i = 0; i < ARRAY_SIZE(minima); i++)
                if (minima[i].device == device)
                        return &minima[i];
        return NULL;
}

static bool driver_is_old(const Comparison *c, unsigned device) {
        const Minimum *m = minimum_of(device);
        return m && is_before(c->image->driver, m->major, m->minor);
}

static bool is_generation(unsigned device, const char *generation) {
        const GpuModel *m = gpu_model_find(device);
        return m && m->generation && streq(m->generation, generation);
}

/* The open modules are the only ones for Blackwell, and know no Volta (NVIDIA/open-gpu-kernel-modules:
 * README.md, "Compatible GPUs";
 * docs.nvidia.com/datacenter/tesla/driver-installation-guide/kernel-modules.html). */
static bool wants_open(_unused_ const Comparison *c, unsigned device) {
        return is_generation(device, "blackwell");
}

static bool wants_closed(_unused_ const Comparison *c, unsigned device) {
        return is_generation(device, "volta");
}

/* NVSwitches of the fourth generation want it: fabric manager's guide, "Other NVIDIA software packages". */
static bool wants_new_kernel(_unused_ const Comparison *c, unsigned device) {
        return device == 0x2901 || device == 0x3182;
}

static void tell_types(const Comparison *c, const Need *need, char **types, Cause cause, const char *subject,
                       const char *found, const char *text) {
        if (!types)
                return;
        Check *check = add_of(c, CHECK_FAILED, "version", subject, found);
        check_tell(check, need, "%s", text);
        check->cause = cause;
        strv_free(check->types);
        check->types = strv_copy(types);
}

static void compare_minima(const Comparison *c, const Need *need) {
        _cleanup_(strv_freep) char **types = c->image->driver ? types_where(c, need, driver_is_old) : NULL;
        const Minimum *highest = NULL;
        for (char **type = types; type && *type; type++) {
                const Minimum *m = minimum_of(gpu_of(*type));
                if (!highest || m->major > highest->major)
                        highest = m;
        }
        if (!highest)
                return;
        _cleanup_(freep) char *text = xasprintf(
                "it does not know the GPUs of these types: they want %s or newer", highest->version);
        tell_types(c, need, types, CAUSE_DRIVER, "NVIDIA's driver", c->image->driver, text);
}

/* Of the modules for the kernels of the image; NULL: not known. The caller's. */
static char *flavor_of(const Comparison *c) {
        return c->where && startswith(c->where, "/lib/modules/")
                       ? module_information(c->image->root, c->where, "license")
                       : NULL;
}

static void compare_flavor(const Comparison *c, const Need *need) {
        _cleanup_(freep) char *license = flavor_of(c);
        if (!license)
                return;
        bool closed = streq(license, "NVIDIA");
        _cleanup_(strv_freep) char **types = types_where(c, need, closed ? wants_open : wants_closed);
        tell_types(c, need, types, CAUSE_DRIVER, "NVIDIA's modules", c->where,
                   closed ? "they are the proprietary ones, which have no driver for the GPUs of these "
                            "types: install the "
                            "open ones (kmod-nvidia-open-dkms)"
                          : "they are the open ones, which have no driver for the GPUs of these types: "
                            "install the "
                            "proprietary ones");
}

static void compare_kernel(const Comparison *c, const Need *need) {
        const char *kernel = c->image->kernel;
        if (!kernel || !is_before(kernel, 5, 17))
                return;
        _cleanup_(strv_freep) char **types = types_where(c, need, wants_new_kernel);
        tell_types(c, need, types, CAUSE_FABRIC_MANAGER, "kernel", kernel,
                   "the NVSwitches of these types want Linux 5.17 or newer");
}

/* ---- kubelet, containerd, toolkit ---- */

static void warn(const Comparison *c, const Need *need, const char *subject, const char *found,
                 const char *text) {
        check_tell(add_of(c, CHECK_WARNING, "version", subject, found), need, "%s", text);
}

static void compare_kubelet(const Comparison *c) {
        const Image *i = c->image;
        const Need *imex = needs_find(c->needs, NEED_PROGRAM, "nvidia-imex"),
                   *cdi = needs_find(c->needs, NEED_PROGRAM, "nvidia-ctk");
        /* Amazon EKS user guide, "device-management-nvidia": DRA's gates are there from 1.33 on. */
        if (imex && i->kubelet && is_before(i->kubelet, 1, 33))
                warn(c, imex, "kubelet", i->kubelet,
                     "it has no DRA that ComputeDomains could use: 1.33 or newer has");
        /* kubernetes-sigs/dra-driver-nvidia-gpu: cmd/compute-domain-daemon/main.go */
        if (imex && i->driver && is_before(i->driver, 570, 158))
                warn(c, imex, "NVIDIA's driver", i->driver,
                     "the DRA driver's ComputeDomains want 570.158.01 or newer");
        /* kubernetes/kubernetes#139121: it asks containerd for the cgroup driver, which 1.x does not answer.
         */
        if (i->kubelet && i->containerd && !is_before(i->kubelet, 1, 38) && is_before(i->containerd, 2, 0))
                warn(c, needs_find(c->needs, NEED_PROGRAM, "kubelet"), "containerd", i->containerd,
                     "kubelet 1.38 and newer want containerd 2: with 1.x they do not start");
        /* kubernetes/kubernetes#125210 */
        if (cdi && i->containerd && is_before(i->containerd, 1, 7))
                warn(c, cdi, "containerd", i->containerd,
                     "it knows no CDI, by which pods get GPUs: 1.7 or newer does");
}

/* docs.nvidia.com/datacenter/cloud-native/container-toolkit, "Support for Container Device Interface". */
static void compare_toolkit(const Comparison *c) {
        static char *const names[] = { (char *)"nvidia-container-toolkit-base",
                                       (char *)"nvidia-container-toolkit", NULL };
        const Need *need = needs_find(c->needs, NEED_PROGRAM, "nvidia-ctk");
        _cleanup_(freep) char *version = need ? package_version(c->image->root, names) : NULL;
        if (!version)
                return;
        if (!is_before(version, 1, 12)) {
                checks_add(c->checks, CHECK_OK, "version", "nvidia-ctk", version);
                return;
        }
        Check *check = add_of(c, CHECK_FAILED, "version", "nvidia-ctk", version);
        check_tell(check, need, "it makes no CDI specifications: 1.12 or newer does");
        check->cause = CAUSE_CDI;
}

static void comparison_done(Comparison *c) {
        free(c->where);
}

static Comparison begin(const Image *image, const Needs *needs, Checks *checks) {
        Comparison c = { .image = image, .needs = needs, .checks = checks };
        _cleanup_(freep) char *where = NULL, *there = driver_find(image, &where);
        if (there && image->driver && streq(there, image->driver))
                c.where = TAKE_PTR(where);
        return c;
}

bool image_drives(const Image *image, const char *type) {
        unsigned device = gpu_of(type);
        if (device == 0 || !image->driver)
                return true;
        const Needs needs = {};
        Checks checks = {};
        _cleanup_(comparison_done) Comparison c = begin(image, &needs, &checks);
        _cleanup_(freep) char *license = flavor_of(&c);
        bool closed = license && streq(license, "NVIDIA");
        return !driver_is_old(&c, device) &&
               !(license && (closed ? wants_open(&c, device) : wants_closed(&c, device)));
}

void image_compare(const Image *image, const Needs *needs, Checks *checks) {
        _cleanup_(comparison_done) Comparison c = begin(image, needs, checks);
        const Need *nvidia = needs_find(needs, NEED_MODULE, "nvidia");
        tell_driver(&c);
        for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
                compare_part(&c, &parts[i]);
        compare_nvml(&c);
        if (nvidia) {
                compare_minima(&c, nvidia);
                compare_flavor(&c, nvidia);
                compare_kernel(&c, nvidia);
        }
        compare_kubelet(&c);
        compare_toolkit(&c);
}
