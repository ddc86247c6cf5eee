/* SPDX-License-Identifier: Apache-2.0
 * A row of the table → the Host of such a machine. Host.assumed names what the table does not know. */
#include "host/tables.h"

#include "base/paths.h"
#include "base/str.h"
#include "host/detect.h"

#include <assert.h>
#include <errno.h>

/* of a recent EKS AMI */
#define KUBELET_VERSION    "1.35.0"
#define CONTAINERD_VERSION "2.1.5"

static void add_pci(Host *h, const PciDevice *like, unsigned count) {
        h->pci = xrealloc(h->pci, h->n_pci + count, sizeof *h->pci);
        for (unsigned i = 0; i < count; i++) {
                PciDevice *d = &h->pci[h->n_pci];
                *d = *like;
                d->address = xasprintf("0000:%02zx:%02zx.0", h->n_pci / 32, h->n_pci % 32);
                d->driver = xstrdup_or_null(like->driver);
                d->numa_node = (int)(i * h->n_nodes / count);
                h->n_pci++;
        }
}

/* of conf/pci-devices.csv */
static void add_devices(Host *h, const char *name, unsigned count) {
        const PciId *id = FIND(i, pci_devices, n_pci_devices, streq(i->name, name));
        assert(id);
        add_pci(h,
                &(PciDevice){ .vendor = id->vendor,
                              .device = id->device,
                              .class = id->class,
                              .driver = (char *)id->driver,
                              .switch_management = streq(name, "connectx") },
                count);
}

static void add_gpus(Host *h, const InstanceType *t) {
        PciDevice gpu = { .class = 0x030200, .vendor = 0x10de, .device = *t->gpu_devices };
        if (startswith(t->gpu_model, "aws-"))
                add_devices(h, t->gpu_model, t->gpus);
        if (!gpu.device)
                return;         /* ids of other accelerators are unknown */
        gpu.subsystem_device = t->gpu_subsystem;
        gpu.subsystem_vendor = t->gpu_subsystem ? gpu.vendor : 0;
        if (t->gpus == 0)
                assume(h, "gpus");      /* at least one, by the name of the type */
        add_pci(h, &gpu, t->gpus ?: 1);
        const GpuModel *m = gpu_model_find(gpu.device);
        /* NVLink 5 boards show ConnectX functions of switches instead of bridges. */
        _free_ char *bridge = m ? xasprintf("nvswitch-%s", m->generation) : NULL;
        if (m && streq(t->nvswitch, "pci"))
                add_devices(h, bridge, m->switches);
        if (m && streq(t->nvswitch, "nvl5-host"))
                add_devices(h, "connectx", m->switches);
}

static void add_network(Host *h, const InstanceType *t) {
        h->nics = xcalloc(1, sizeof *h->nics);
        h->nics[h->n_nics++] = (Nic){
                .name = xstrdup("ens5"), .mac = xstrdup(h->instance.mac), .driver = xstrdup("ena"),
                .pci_address = xasprintf("0000:%02zx:%02zx.0", h->n_pci / 32, h->n_pci % 32), .mtu = 9001,
        };
        add_devices(h, "ena", 1);
        if (t && t->max_efa > 0)
                add_devices(h, "efa", (unsigned)t->max_efa);
        /* one for each GPU, as in awsdocs/amazon-eks-user-guide, ml-eks-nvidia-ultraserver.adoc */
        if (t && t->max_efa < 0 && t->network_cards != 1 && *t->gpu_devices)
                add_devices(h, "efa", t->gpus ?: 1);
        if (t && t->max_efa != 0)
                assume(h, "efa");       /* the launch template decides */
}

static void add_disk(Host *h, DiskKind kind, const char *model, const char *serial_prefix, uint64_t bytes) {
        h->disks[h->n_disks] = (Disk){
                .name = xasprintf("nvme%zun1", h->n_disks),
                .model = xstrdup(model),
                .kind = kind,
                .bytes = bytes,
                .serial = xasprintf("%s%017zX", serial_prefix, h->n_disks),
                .in_use = kind == DISK_EBS,
        };
        h->n_disks++;
        add_devices(h, kind == DISK_EBS ? "ebs" : "store", 1);
}

static void add_disks(Host *h, const InstanceType *t, unsigned otherwise) {
        int stores = t ? t->disks : (int)otherwise;
        if (stores < 0 || (!t && stores == 0))  /* unknown count: assume one, or none for an unknown type */
                assume(h, "disks");
        stores = stores < 0 ? 1 : stores;
        h->disks = xcalloc((size_t)stores + 1, sizeof *h->disks);
        add_disk(h, DISK_EBS, "Amazon Elastic Block Store", "vol", 0);
        for (int i = 0; i < stores; i++)
                add_disk(h, DISK_INSTANCE_STORE, "Amazon EC2 NVMe Instance Storage", "AWS",
                         t ? t->disk_gb * 1000000000ULL : 0);
}

/* vCPUs by the size in the name: "large" 2, "xlarge" 4, "12xlarge" 48; 0: not known, as for "metal". */
static unsigned size_cpus(const char *type) {
        const char *size = strchr(type, '.');
        char *end = NULL;
        if (!size)
                return 0;
        if (streq(size, ".medium"))
                return 1;
        if (streq(size, ".large"))
                return 2;
        unsigned long n = strtoul(size + 1, &end, 10);
        return streq(end, "xlarge") && n < 1000 ? 4 * (n ? (unsigned)n : 1) : 0;
}

static void add_processors(Host *h, const InstanceType *t) {
        h->cpus = t && t->vcpus ? t->vcpus : size_cpus(h->instance.type);
        if (!t || !t->vcpus)
                assume(h, "cpus");
        h->memory_bytes = t ? (uint64_t)t->memory_gib << 30 : 0;
        if (h->memory_bytes > 0)        /* 0: not known */
                assume(h, "memoryBytes");       /* includes kernel memory */
        unsigned nodes = t && t->numa_nodes > 0 ? (unsigned)t->numa_nodes : 1;
        if (!t || t->numa_nodes < 0)
                assume(h, "numaNodes");
        h->nodes = xcalloc(nodes, sizeof *h->nodes);
        for (; h->n_nodes < nodes; h->n_nodes++)
                h->nodes[h->n_nodes] = (NumaNode){ .id = (unsigned)h->n_nodes,
                                                   .cpus = MAX(h->cpus / nodes, 1U),
                                                   .memory_bytes = h->memory_bytes / nodes };
        h->arch = xstrdup(t && streq(t->arch, "arm64") ? "aarch64" : "x86_64");
        if (!t || !*t->arch)
                assume(h, "arch");
}

/* Huge page sizes of a kernel, largest first; the default. */
typedef struct PageSizes { uint64_t sizes[4], usual; } PageSizes;

static bool has_sizes(const PageSizes *p, const HugePages *want) {
        return !ANY(page, want->pages, want->n_pages,
                    !ANY(size, p->sizes, ARRAY_SIZE(p->sizes), *size == page->size));
}

/* The first kernel with all configured sizes, else that of Amazon Linux: 4 KiB base pages on both
 * architectures (aws/aws-graviton-getting-started, os.md). On Grace, NVIDIA recommends 64 KiB
 * (https://docs.nvidia.com/grace-perf-tuning-guide/os-settings.html).
 * https://docs.kernel.org/arch/arm64/hugetlbpage.html */
static const PageSizes *page_sizes(const Config *config, bool arm) {
        static const PageSizes x86 = { { 1ULL << 30, 2ULL << 20 }, 2ULL << 20 },
                               arms[] = {
                                       { { 1ULL << 30, 32ULL << 20, 2ULL << 20, 64ULL << 10 }, 2ULL << 20 },
                                       { { 16ULL << 30, 512ULL << 20, 2ULL << 20 }, 512ULL << 20 },
                               };
        for (size_t i = 0; arm && i < ARRAY_SIZE(arms); i++)
                if (has_sizes(&arms[i], &config->instance.hugepages))
                        return &arms[i];
        return arm ? arms : &x86;
}

/* Without reserved pages. */
static void add_pools(const Config *config, Host *h) {
        const PageSizes *p = page_sizes(config, streq(h->arch, "aarch64"));
        h->page_size = p->usual;
        h->pools = xcalloc(ARRAY_SIZE(p->sizes) * h->n_nodes, sizeof *h->pools);
        for (const uint64_t *size = p->sizes; size < p->sizes + ARRAY_SIZE(p->sizes) && *size; size++)
                for (size_t k = 0; k < h->n_nodes; k++)
                        h->pools[h->n_pools++] = (PagePool){ .size = *size, .node = (int)h->nodes[k].id };
        assume(h, "hugePages");
}

/* The version in a mounted image; this machine says nothing about the model. */
static char *image_version(const Root *root, const char *program) {
        _cleanup_(diag_done) Diag tried = {};
        char *version = NULL;
        return !root_is_host(root) && host_program_version(root, program, NULL, &version, &tried) >= 0
                       ? version : NULL;
}

/* The given, image or assumed version. */
static int add_version(const Root *root, Host *h, const char *program, const char *given,
                       const char *assumed, char **slot, Diag *diag) {
        _free_ char *option = xasprintf("--%s-version", program), *fact = xasprintf("programs.%s", program);
        if (given)
                return version_option(option, given, slot, diag);
        *slot = image_version(root, program);
        if (*slot)
                return 0;
        *slot = xstrdup(assumed);
        assume(h, fact);
        return 0;
}

static int add_programs(const Root *root, Host *h, const HostOptions *o, Diag *diag) {
        int r = add_version(root, h, "kubelet", o->kubelet_version, KUBELET_VERSION, &h->kubelet_version,
                            diag) ?:
                add_version(root, h, "containerd", o->containerd_version, CONTAINERD_VERSION,
                            &h->containerd_version, diag);
        if (r >= 0 && o->driver_version)
                r = version_option("--driver-version", o->driver_version, &h->driver_version, diag);
        if (r < 0)
                return r;
        h->imaged = o->image_kernel;
        if (h->imaged) {
                h->kernel = *o->image_kernel ? xstrdup(o->image_kernel) : NULL;
                return 0;               /* host_detect() finds them */
        }
        /* As on the EKS AMI for such a type. */
        h->nvidia_runtime = h->type && *h->type->gpu_devices;
        h->soci_snapshotter = true;
        h->image_credential_provider = xstrdup(ECR_PROVIDER);
        assume(h, "programs");
        return 0;
}

int model_host(const Root *root, const Config *config, const HostOptions *options, Host *h, Diag *diag) {
        int r = instance_type_check(options->instance_type, "--instance-type", diag);

        if (r < 0)
                return r;
        h->modelled = true;
        h->type = instance_type_find(options->instance_type);
        h->instance.type = xstrdup(options->instance_type);
        h->product_name = xstrdup(options->instance_type);
        assume_identity(config, h);
        add_processors(h, h->type);
        add_pools(config, h);
        h->ptrace_scope = -1;
        add_network(h, h->type);
        if (h->type)
                add_gpus(h, h->type);
        add_disks(h, h->type, options->stores);
        if (storage_wanted(config, options))
                h->storage.not_looked = xstrdup("a machine given with --instance-type has no disks to look "
                                                "at");
        return add_programs(root, h, options, diag);
}
