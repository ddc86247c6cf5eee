/* SPDX-License-Identifier: Apache-2.0
 * PCI bus and instance type → the class of GPU machine. Devices decide in the order of AWS
 * (awslabs/amazon-eks-ami, nvidia-fabricmanager-condition.sh). A GPU id alone does not: an H100 may be alone
 * or behind NVSwitches. If devices are missing, the type decides, with a doubt. */
#include "host/detect.h"

#include "base/paths.h"
#include "base/str.h"
#include "base/time.h"
#include "doc/env-file.h"
#include "host/tables.h"

#include <errno.h>

#define VPD_TIMEOUT (5 * USEC_PER_SEC)  /* for all; an answer takes milliseconds */

DEFINE_STRING_TABLE(gpu_class, GpuClass, "none", "tray", "nvswitch", "nvlink5", "single")

/* For "its devices show …". */
static const char class_shows[][76] = {
        [GPU_CLASS_NONE]     = "no NVIDIA GPU",
        [GPU_CLASS_TRAY]     = "GPUs with NVLink switches in the rack",
        [GPU_CLASS_NVSWITCH] = "GPUs behind NVSwitches on the PCI bus",
        [GPU_CLASS_NVLINK5]  = "GPUs behind NVLink 5 switches with ConnectX functions that lead to them",
        [GPU_CLASS_SINGLE]   = "GPUs that no switch connects",
};

static int compare_model(const void *device, const void *row) {
        unsigned a = *(const unsigned *)device, b = ((const GpuModel *)row)->device;
        return (a > b) - (a < b);
}

const GpuModel *gpu_model_find(unsigned device) {
        return bsearch(&device, gpu_models, n_gpu_models, sizeof *gpu_models, compare_model);
}

const Requirement *requirement_find(const char *what, Component component) {
        return FIND(r, requirements, n_requirements, r->component == component && streq(r->what, what));
}

char *requirement_advice(const Requirement *r) {
        return r->advice ? xstrdup(r->advice) : xasprintf("install %s or newer", r->before);
}

bool requirement_misses(const Requirement *r, const char *version) {
        size_t n = version ? strlen(version) : 0;
        bool cut = n > 0 && startswith(r->before, version) && r->before[n] == '.';
        return n > 0 && !cut && version_compare(version, r->from) >= 0 &&
               version_compare(version, r->before) < 0;
}

static const GpuModel *model_of_type(const InstanceType *t) {
        return t ? gpu_model_find(*t->gpu_devices) : NULL;
}

static const GpuModel *common_model(const Host *h) {
        const PciDevice *first = FIND(d, h->pci, h->n_pci, pci_is_gpu(d));
        bool differ = ANY(d, h->pci, h->n_pci, pci_is_gpu(d) && d->device != first->device);
        return first && !differ ? gpu_model_find(first->device) : NULL;
}

static bool is_tray_gpu(const PciDevice *d) {
        const GpuModel *m = pci_is_gpu(d) ? gpu_model_find(d->device) : NULL;
        return m && m->board == GPU_CLASS_TRAY;
}

static bool manages_switches(const PciDevice *d) {
        return d->switch_management;
}

/* InfiniBand ConnectX-7, as NVLink 5 switches appear on EC2 (NVIDIA/gpu-driver-container#606). */
static bool is_bridge(const PciDevice *d) {
        return pci_is_connectx(d) && d->device == 0x1021 && d->class >> 8 == 0x0207;
}

static GpuClass class_of_devices(const Host *h) {
        if (count_devices(h, pci_is_gpu) == 0)
                return GPU_CLASS_NONE;
        if (count_devices(h, is_tray_gpu) > 0)
                return GPU_CLASS_TRAY;
        if (count_devices(h, pci_is_nvswitch) > 0)
                return GPU_CLASS_NVSWITCH;
        return count_devices(h, manages_switches) > 0 ? GPU_CLASS_NVLINK5 : GPU_CLASS_SINGLE;
}

const InstanceType *machine_type(const Host *h) {
        return instance_type_find(h->product_name) ?: h->type;
}

static GpuClass class_of_type(const InstanceType *t) {
        static const struct { const char *nvswitch; GpuClass class; } words[] = {
                { "pci",          GPU_CLASS_NVSWITCH },
                { "nvl5-host",    GPU_CLASS_NVLINK5  },
                { "nvl5-offhost", GPU_CLASS_TRAY     },
        };
        return !*t->gpu_devices ? GPU_CLASS_NONE
                                : PICK(w, words, ARRAY_SIZE(words), streq(w->nvswitch, t->nvswitch), w->class,
                                  GPU_CLASS_SINGLE);
}

/* text: the first unreadable function; bridges: how many may lead to switches. */
typedef struct Unread { char *text; unsigned bridges; } Unread;

/* Marks functions that lead to NVLink 5 switches. */
static void find_switch_management(const Root *root, Host *h, Unread *u) {
        uint64_t until = now_usec() + VPD_TIMEOUT;
        for (size_t i = 0; i < h->n_pci; i++) {
                PciDevice *d = &h->pci[i];
                int r = pci_is_connectx(d) ? pci_vpd_has(root, d->address, "SW_MNG", until) : 0;
                d->switch_management = r > 0;
                if (r >= 0)
                        continue;
                u->bridges += is_bridge(d);
                if (!u->text)
                        u->text = xasprintf("%s/vpd cannot be read: %s%s", d->address, strerror(-r),
                                            r == -EACCES || r == -EPERM ? ONLY_ROOT : "");
        }
}

/* The class of the type, or of a whole board of GPUs, and its name; NULL: not known. */
static char *class_wanted(const Host *h, GpuClass *ret) {
        const InstanceType *t = machine_type(h);
        const Gpus *g = &h->gpus;
        if (t) {
                *ret = class_of_type(t);
                return xstrdup(t->name);
        }
        if (g->class != GPU_CLASS_SINGLE || g->count < BOARD || !g->model ||
            g->model->board == GPU_CLASS_NONE)
                return NULL;
        *ret = g->model->board;
        return xasprintf("a machine with %u %s", g->count, g->model->name);
}

/* The missing devices, if known. */
static const char *missing_devices(const Host *h, GpuClass wanted, const char *unread) {
        if (wanted == GPU_CLASS_NVSWITCH)
                return "the PCI bus has no NVIDIA bridge of class 0680";
        if (wanted != GPU_CLASS_NVLINK5)
                return "one of the two is wrong";
        return unread ?: count_devices(h, pci_is_connectx) > 0
                                 ? "no ConnectX function (15b3) has SW_MNG in its vital product data"
                                 : "the PCI bus has no ConnectX function (15b3)";
}

/* Some images cannot read vital product data: then type and number decide, and the fabric gate proves it. */
static bool takes_for_bridges(Host *h, GpuClass wanted, const char *who, const Unread *unread) {
        Gpus *g = &h->gpus;
        if (wanted != GPU_CLASS_NVLINK5 || g->class != GPU_CLASS_SINGLE || !g->model ||
            unread->bridges < MAX(g->model->switches, 1U))
                return false;
        g->unread = xasprintf("%s; as %s has %u functions 15b3:1021 of class 0207, nodestrap assumes that "
                              "they lead to its NVLink 5 switches, until the fabric gate decides",
                              unread->text, who, unread->bridges);
        return true;
}

/* Compares devices with the wanted class. Without any GPU the census reports, not this. */
static void cross_check(Host *h, const Unread *unread) {
        const InstanceType *t = machine_type(h);
        Gpus *g = &h->gpus;
        GpuClass wanted = g->class;
        _free_ char *who = class_wanted(h, &wanted);

        if (wanted != g->class && g->count > 0 && !takes_for_bridges(h, wanted, who, unread))
                g->doubt = xasprintf("%s should have %s (class %s), but its devices show %s (class %s): %s",
                                     who, class_shows[wanted], gpu_class_to_string(wanted),
                                     class_shows[g->class], gpu_class_to_string(g->class),
                                     missing_devices(h, wanted, unread->text));
        g->class = wanted;
        g->expected = t && *t->gpu_devices && t->gpus ? t->gpus : g->count;
}

bool image_has_module(const Root *root, const char *kernel, const char *name) {
        _free_ char *path = xasprintf("/lib/modules/%s/modules.dep", kernel ?: ""), *text = NULL;
        return kernel && root_read(root, path, 8 << 20, &text, NULL) >= 0 && strstr(text, name);
}

bool image_has_unit(const Root *root, const char *const *names) {
        static const char *const places[] = { "/usr/lib/systemd/system", UNIT_DIR };
        for (size_t i = 0; names[i]; i++)
                for (size_t k = 0; k < ARRAY_SIZE(places); k++) {
                        _free_ char *path = xasprintf("%s/%s", places[k], names[i]);
                        if (root_exists(root, path) > 0)
                                return true;
                }
        return false;
}

/* Ignores loaded modules: if a pod of the NVIDIA operator loads the driver, the next plan must be the same.
 * The units are those of EKS images (awslabs/amazon-eks-ami: nvidia-kmod-load.service, later
 * nvidia-setup.service), whose program comes later in the boot. */
bool image_has_nvidia(const Root *root, const char *kernel) {
        static const char *const loaders[] = { "nvidia-setup.service", "nvidia-kmod-load.service", NULL };
        return root_exists(root, "/usr/bin/nvidia-smi") > 0 || image_has_unit(root, loaders) ||
               image_has_module(root, kernel, "/nvidia.ko");
}

/* By the subsystem of the GPU, or of the type in a model. */
static bool is_part(const PciDevice *d) {
        const GpuModel *m = pci_is_gpu(d) && d->subsystem_device ? gpu_model_find(d->device) : NULL;
        return m && ANY(t, instance_types, n_instance_types,
                        t->gpu_subsystem == d->subsystem_device && model_of_type(t) == m);
}

/* On newer EKS images the driver brings the unit at boot. */
static void find_parts(const Root *root, Host *h) {
        static const char *const units[] = { "nvidia-gridd.service", "nvidia-setup.service", NULL };
        const InstanceType *t = machine_type(h);
        Gpus *g = &h->gpus;
        g->part = g->count == 0 ? t && t->gpu_subsystem : count_devices(h, is_part) > 0;
        g->license_daemon = g->part && (image_assumed(h) || image_has_unit(root, units));
}

static int read_mig_default(const Root *root, const Config *config, Gpus *g, Diag *diag) {
        _free_ char *text = NULL;
        if (config->nvidia.n_mig > 0 || config->nvidia.mode == NVIDIA_OFF || g->class == GPU_CLASS_NONE ||
            (g->model && !*g->model->mig))
                return 0;
        int r = root_read(root, MIG_DEFAULTS, 64 << 10, &text, NULL);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return fact_error(diag, r, MIG_DEFAULTS, "the MIG partitions of the GPUs are not known");
        r = assignment_in_shell(text, "MIG_PARTITION", &g->mig_default);
        if (r < 0)
                return fact_error(
                        diag, r, MIG_DEFAULTS,
                        "MIG_PARTITION is not one plain word; set it in spec.accelerator.nvidia.mig");
        return 0;
}

int detect_gpus(const Root *root, const Config *config, Host *h, Diag *diag) {
        Unread unread = {};
        Gpus *g = &h->gpus;

        g->count = count_devices(h, pci_is_gpu);
        g->model = g->count > 0 ? common_model(h) : model_of_type(machine_type(h));
        g->class = class_of_devices(h);
        if (g->class == GPU_CLASS_SINGLE && !h->modelled) {
                find_switch_management(root, h, &unread);
                g->class = class_of_devices(h);
        }
        cross_check(h, &unread);
        free(unread.text);
        g->driver = g->class != GPU_CLASS_NONE && (image_assumed(h) || image_has_nvidia(root, h->kernel));
        find_parts(root, h);
        if (image_assumed(h))
                return 0;
        if (!h->modelled)
                take_census(config, h);
        return read_mig_default(root, config, g, diag);
}

/* Units of EKS images, which choose a driver at boot (awslabs/amazon-eks-ami#2486, #2579). */
bool image_has_neuron(const Root *root, const char *kernel) {
        static const char *const loaders[] = { "neuron-kmod-load.service", "neuron-package-install.service",
                                               NULL };
        return image_has_module(root, kernel, "/neuron.ko") || image_has_unit(root, loaders);
}

void detect_neuron(const Root *root, Host *h) {
        const InstanceType *t = machine_type(h);
        Neuron *n = &h->neuron;
        n->count = n->expected = count_devices(h, pci_is_neuron);
        if (t && startswith(t->gpu_model, "aws-") && t->gpus > 0)
                n->expected = t->gpus;
        n->driver = n->expected > 0 && (image_assumed(h) || image_has_neuron(root, h->kernel));
}
