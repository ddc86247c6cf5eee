/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is true here. host_detect() only looks: sysfs, procfs, version files, metadata, EC2. Everything a
 * planner may want to know stands in Host, so that plan/ stays pure and a plan can be made for a machine that
 * is not this one. */
#include "aws/aws.h"
#include "base/root.h"
#include "config/config.h"
#include "disk/disk.h"

typedef struct PciDevice {
        char *address;                  /* "0000:53:00.0"; devices are sorted by it */
        unsigned vendor, device;
        unsigned class;                 /* 24 bits: 0x030200 */
        unsigned subsystem_vendor, subsystem_device;
        int numa_node;                  /* -1: none, or not known */
        char *driver;                   /* NULL: none is bound */
        bool switch_management;         /* its vital product data says SW_MNG: a way to an NVLink 5 switch
                                         * (docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide) */
} PciDevice;

typedef struct Disk {
        char *name, *model, *serial;    /* model and serial without padding, or NULL */
        DiskKind kind;
        uint64_t bytes;                 /* 0 in a model whose table does not say */
        bool in_use;                    /* it has partitions, or md or dm holds it */
        bool read_only;
        char *number;                   /* "259:3", as mountinfo names it; like
                                         * read_only only where storage was looked at */
        char **partitions, **holders;   /* kernel names; NULL: none */
        char **names;                   /* where volumes are configured: all that it may be called by, in
                                         * the form of volume_canonical() */
        bool root;                      /* what is mounted at / lies on it; where storage was looked at */
        Content content;                /* of instance stores, and of volumes that are configured */
} Disk;

/* An md array, of whatever disks: /sys/block/mdN. */
typedef struct Array {
        char *name, *number;            /* "md127", "9:127" */
        char *level;                    /* "raid0"; NULL while it is inactive and md does not know yet */
        unsigned disks;                 /* that it wants to have */
        bool active;                    /* it can be read: not "inactive", not "clear" */
        bool degraded;
        uint64_t bytes;
        char **members;                 /* kernel names of what it is made of,
                                         * sorted; maybe fewer than disks */
        char **holders, **partitions;
        Content content;                /* of arrays that an instance store is part of */
} Array;
/* A line of /proc/self/mountinfo (proc(5)), unescaped. */
typedef struct Mount {
        char *target, *source, *number, *root, *type;
        bool read_only;
        unsigned id, parent;            /* 0: not known; then the last one at
                                         * a target is what is seen there */
        size_t before;                  /* the one before it at the same target, from 1; 0: none */
} Mount;
/* A path that storage has to do with. */
typedef enum DirectoryKind { DIRECTORY_MISSING, DIRECTORY_THERE, DIRECTORY_NO_DIRECTORY } DirectoryKind;
typedef struct Directory {
        char *path;                     /* as the configuration or the planner names it */
        char *real;                     /* without links in it, as mountinfo has
                                         * it; NULL where no directory is there */
        DirectoryKind kind;
        bool empty;                     /* true where it is missing */
        bool read_only;                 /* the file system that it, or its nearest parent
                                         * that exists, is on cannot be written */
        char *dead;                     /* a sentence: the link on the way that leads nowhere; or NULL */
        char *on;                       /* type of that file system, where it is none
                                         * for data (proc, sysfs, …); else NULL */
        uint64_t bytes;                 /* below it, on its own file system; 0 where that
                                         * whole file system holds less than the smallest
                                         * instance store, so that nobody needed to count */
        uint64_t used;                  /* by all that lies on its file system: no more can lie below it */
        uint64_t size;                  /* of that file system; 0: of a root that is not this machine's */
        char *foreign;                  /* "/tmp can be written by others than root (mode 1777)": the
                                         * first directory on the way to it, behind links too, that others
                                         * than root can put something else into; else NULL */
        bool foreign_itself;            /* and that is no other than this one */
} Directory;
/* A unit in /etc/systemd/system that mounts something at each boot. */
typedef struct MountUnit {
        char *name;                     /* "mnt-k8s\\x2ddisks-0.mount" */
        char *what, *where;             /* as it says */
        bool missing;                   /* what is a device, and is not here */
} MountUnit;
/* Looked at where instance stores or volumes are to be used and the run phase is planned. */
typedef struct Storage {
        bool looked;                    /* false: disks' contents and everything here are not known */
        char *not_looked;               /* why not: "only root can read disks";
                                         * NULL where nobody wanted to know */
        Array *arrays; size_t n_arrays; /* sorted by name */
        Mount *mounts; size_t n_mounts; /* in the kernel's order: a later one covers
                                         * an earlier one at the same target */
        json_t *seen;                   /* each target → the last of them there, and "#ID" → that one, from 1;
                                         * or NULL */
        Directory *directories; size_t n_directories;   /* mountPath, what will be mounted
                                                         * below it, storage_binds, and the
                                                         * places and targets of volumes */
        json_t *index;                  /* their paths → which of them; NULL: there is none */
        MountUnit *units; size_t n_units;               /* sorted by name */
        char *named;                    /* the array that RAID_DEVICE leads to: "md127"; or NULL */
        char **idle;                    /* controllers of instance stores that brought no disk, by their
                                         * addresses on the PCI bus */
        char **programs;                /* of "cp", "mdadm", "mkfs.ext4",
                                         * "mkfs.xfs" those that are in the path */
        char *chance;                   /* a random UUID of the kernel's, new in each detection, from which
                                         * the UUIDs of new file systems are made; NULL where no kernel
                                         * is there to be asked */
} Storage;
/* What the node writes much to, in the order in which it is bound: each moves to the disks unless
 * disabledMounts says otherwise. */
/* name: below mountPath/0, as nodeadm's script has it; given: the setting that moves it elsewhere; NULL */
typedef struct StorageBind { const char *path, *name, *unit, *word, *given; } StorageBind;
extern const StorageBind storage_binds[4];
/* Where this configuration has the daemons keep it: those four in their order, and then places that the
 * settings of containerd add. */
typedef struct StoragePlaces {
        StorageBind all[ARRAY_SIZE(storage_binds) + 5]; size_t n;
        char **owned;                   /* the paths that are not ours */
} StoragePlaces;
enum { PLACE_KUBELET, PLACE_CONTAINERD, PLACE_POD_LOGS };       /* of all */
_must_check_ _nonnull_ StoragePlaces storage_binds_of(const Config *config);
_nonnull_ void storage_places_done(StoragePlaces *p);
/* the one that is seen there, behind links that were looked through; NULL */
const Mount *storage_mount_at(const Storage *s, const char *target);
/* the one that path, without links in it, lies on; NULL */
const Mount *storage_mount_of(const Storage *s, const char *path);
const Directory *storage_directory(const Storage *s, const char *path); /* NULL: not looked at */
/* with hardware behind it */
typedef struct Nic { char *name, *mac, *driver, *pci_address; unsigned mtu; } Nic;
typedef struct NumaNode { unsigned id, cpus; uint64_t memory_bytes; } NumaNode;

/* What kind of machine its NVIDIA GPUs make it. By the devices alone and in this order, the first that holds
 * (awslabs/amazon-eks-ami, nvidia-fabricmanager-condition.sh). */
typedef enum GpuClass {
        GPU_CLASS_NONE,                 /* no display function of NVIDIA's */
        GPU_CLASS_TRAY,                 /* GB200, GB300: the switches, and the
                                         * fabric manager, are the rack's */
        GPU_CLASS_NVSWITCH,             /* HGX A100, H100, H200: NVSwitches on
                                         * PCI, fabric manager on this host */
        GPU_CLASS_NVLINK5,              /* HGX B200, B300: switches behind ConnectX bridges,
                                         * NVLSM and fabric manager on this host */
        GPU_CLASS_SINGLE,               /* GPUs that no switch connects */
        _GPU_CLASS_INVALID = -22,
} GpuClass;
DECLARE_STRING_TABLE(gpu_class, GpuClass);
/* What conf/gpus knows of a GPU by its PCI device id; NULL members: nothing is known. */
typedef struct GpuModel {
        unsigned device;                /* 0x2330; the vendor is NVIDIA */
        const char *name;               /* "h100" */
        const char *generation;         /* "ampere", … */
        const char *mig;                /* its rows in conf/mig-profiles; NULL: it has no MIG */
        bool coherent;                  /* its memory can be the CPU's: what CDMM is about */
        const char *modules;            /* the only ones that drive it, "open" or "proprietary"; NULL: both */
        bool no_gsp;                    /* EKS runs it with the proprietary module and without GSP firmware */
        GpuClass board;                 /* what eight of them are: GPU_CLASS_NVSWITCH,
                                         * GPU_CLASS_NVLINK5; GPU_CLASS_TRAY: what even one
                                         * of them is; GPU_CLASS_NONE: nothing special */
        unsigned switches;              /* that such a board shows on the PCI bus: NVSwitches,
                                         * or ConnectX functions that lead to them */
        const char *kernel;             /* the first Linux that these work with; NULL: any */
        bool fabric;                    /* NVML tells whether it has joined its fabric */
        bool mig_resets;                /* a change of MIG mode takes a reset */
        unsigned nvlinks;               /* of each of them; 0: it has none */
        const char *driver;             /* the first version that knows it; NULL: not documented */
} GpuModel;
/* NULL for one that the table does not know */
const GpuModel *gpu_model_find(unsigned device);
/* What conf/mig-profiles knows of an instance that MIG can make of a GPU. */
typedef struct MigProfile {
        char gpu[13], name[15];         /* GpuModel.mig; "3g.20gb" */
        int id;                         /* nvidia-smi's number of it; -1: not certain */
        uint8_t most, compute, memory;  /* how many fit on a GPU, and slices that one takes */
        uint8_t starts;                 /* bits: memory slices that one can begin at */
        bool documented;                /* false: where they begin is inferred from other GPUs */
} MigProfile;
/* the largest first; NULL: nothing is known of it */
const MigProfile *mig_profiles_of(const char *gpu, size_t *ret_n);
typedef struct Gpus {
        GpuClass class;
        char *doubt;                    /* why devices and instance type contradict each other about
                                         * the class, which then is the instance type's; or NULL */
        char *unread;                   /* what could not be read of the devices, where type and number
                                         * decided in its place; or NULL */
        unsigned count;                 /* display functions of NVIDIA's that are there */
        unsigned expected;              /* as many as the instance type promises; count where nobody says */
        const GpuModel *model;          /* of all of them, or of the instance type's where none
                                         * is there; NULL: not in the table, or they differ */
        bool driver;                    /* the image brings NVIDIA's driver, whether it is loaded or not */
        bool part;                      /* they are parts of a GPU, with the GRID driver and a licence */
        bool license_daemon;            /* the image brings what gets it, or installs its driver at boot */
        char *mig_default;              /* MIG_PARTITION of /etc/default/mig; or NULL */
} Gpus;
/* Trainium and Inferentia: Neuron devices, of Amazon's own. */
typedef struct Neuron {
        unsigned count;                 /* that are on the PCI bus */
        unsigned expected;              /* as many as the instance type promises; count where nobody says */
        bool driver;                    /* the image brings the driver, whether it is loaded or not */
} Neuron;
/* Something that this machine should have, by the instance type or the configuration, and has not: the
 * sentence names it. */
typedef struct Shortfall { Cause cause; char *text; } Shortfall;
/* huge pages of size bytes that a NUMA node has reserved */
typedef struct PagePool { uint64_t size; int node; uint64_t count; } PagePool;

/* What conf/ knows of an EC2 instance type; zero and NULL: no expectation. Names that each type has are no
 * pointers, which would be relocated at every start: "" is not known. */
typedef struct InstanceType {
        char name[20], nvswitch[14], arch[8];   /* nvswitch: none | pci | nvl5-host | nvl5-offhost */
        uint16_t vcpus, memory_gib, gpus;
        const char *gpu_model;          /* "nvidia-h100-80gb", "aws-…", NULL */
        const char *gpu_pci;            /* "10de:2330", alternatives behind '|' */
        int16_t network_cards, max_efa, disks;  /* -1: not known */
        uint16_t disk_gb;
        int16_t numa_nodes;             /* with CPUs; -1: not known */
        uint16_t gpu_subsystem;         /* PCI subsystem device of a part of a GPU; 0: a whole one */
        int16_t card_step;              /* every how many network cards, from card 0 on, one takes interfaces
                                         * with addresses; the others take EFA alone */
} InstanceType;
/* NULL for a type that the table does not know */
const InstanceType *instance_type_find(const char *name);
/* Does any of the tables know it? */
_must_check_ bool instance_type_is_known(const char *name);
/* 0 if so; else -EINVAL, with a diagnostic of where (or NULL) that has the nearest one. */
_must_check_ _nonnull(1, 3) int instance_type_check(const char *name, const char *where, Diag *diag);
/* maxPods' two inputs (conf/eni-limits); false if the type is not in the table. */
bool eni_limits_find(const char *type, unsigned *ret_enis, unsigned *ret_addresses);
/* How many network cards a type has, by either table; 0: not known. */
unsigned network_cards_find(const char *type);

typedef struct Instance {
        char *id, *type, *region, *zone;
        char *domain;                   /* meta-data/services/domain */
        char *mac;                      /* of the primary interface */
        char *ipv4, *ipv6;              /* of it; ipv6 only asked for where the cluster is IPv6; or NULL */
        char *private_dns_name;         /* NULL with InstanceIdNodeName */
} Instance;

/* kubelet asks the kernel for these at its start. */
typedef struct KernelState {
        char *swap;                     /* what /proc/swaps begins with: "/dev/zram0"; NULL: there is none */
        char **tunables;                /* the value of each of kubelet_tunables, "" where it cannot be read;
                                         * NULL: of another machine, or not read */
} KernelState;
_must_check_ _nonnull_ char *kernel_swap(const Root *root);     /* the first of it; the caller's */
_nonnull_ void kernel_read(const Root *root, KernelState *ret);
_nonnull_ void kernel_done(KernelState *k);
/* Why kubelet does not start, in a new sentence; NULL: it starts. given: which of kubelet_tunables are set
 * before; NULL: none. */
_must_check_ _nonnull_ char *kernel_swap_fault(const KernelState *k);
_must_check_ _nonnull(1) char *kernel_settings_fault(const KernelState *k, const bool *given);

typedef struct Host {
        bool modelled;                  /* --instance-type: not this machine */
        bool imaged;                    /* modelled, but with the programs and drivers of an image */
        char **assumed;                 /* facts that were not looked at but assumed,
                                         * for the plan's reader: "instance.id" … */
        Instance instance;
        bool name_assumed;              /* its private_dns_name is the metadata service's word, for want of
                                         * EC2's */
        char *name_before;              /* what an earlier run has assumed it to be, and EC2 has been
                                         * asked again since; else NULL */
        const InstanceType *type;       /* NULL: unknown to the table */
        bool eni_limits_known; unsigned max_enis, addresses_per_eni;    /* from the table or EC2 */
        char *eni_limits_why;           /* why they are not known, where they are not */
        unsigned cpus;
        Neuron neuron;
        uint64_t memory_bytes;          /* MemTotal; in a model the table's, or 0: not known */
        char *product_name, *kernel, *arch;
        PciDevice *pci; size_t n_pci;
        Disk *disks; size_t n_disks;
        Storage storage;
        Nic *nics; size_t n_nics;
        NumaNode *nodes; size_t n_nodes;
        Gpus gpus;
        Shortfall *shortfalls; size_t n_shortfalls;     /* the census: empty in a model */
        PagePool *pools; size_t n_pools;                /* by size, the largest first, then by node */
        uint64_t page_size;             /* of a huge page, where no size is named; 0: not known */
        uint64_t kubelet_bytes;         /* of the file system that kubelet keeps its data on; 0: not known */
        KernelState kernel_state;       /* where the run phase is planned for this machine */
        int ptrace_scope;               /* kernel.yama.ptrace_scope; -1: not known */
        char *kubelet_version;          /* "1.33.4", no v */
        char *containerd_version;       /* "2.1.5" */
        char *driver_version;           /* NVIDIA's, or NULL */
        bool nvidia_runtime;            /* /usr/bin/nvidia-container-runtime is there, with GPUs or
                                         * without */
        bool soci_snapshotter;          /* its binary is there */
        char *image_credential_provider; /* path of ecr-credential-provider, or NULL */
        char **dead_links;              /* in the places of what daemons keep: sentences; or NULL */
        char **bootstrappers;           /* units of nodeadm that are enabled beside ours; or NULL */
        char **api_server_addresses;    /* Outposts: what the endpoint's name resolves to, sorted */
} Host;
Host *host_free(Host *h);
DEFINE_CLEANUP(Host *, host_free)
unsigned host_efa(const Host *host);                            /* how many EFA functions */
bool host_efa_is_known(const Host *host);                       /* or, of a model, that many are assumed */
bool pci_is_efa(const PciDevice *d);                            /* vendor 1d0f, device efaX */
bool pci_is_neuron(const PciDevice *d);                         /* Trainium, Inferentia */
bool pci_is_store(const PciDevice *d);                          /* an instance store's controller */
bool pci_is_gpu(const PciDevice *d);                            /* NVIDIA's; a display controller */
/* Can it be an EBS volume: by its model, or a disk of Xen, which tells none? */
_nonnull_ bool disk_is_volume(const Disk *d);
/* The disk that the configuration calls so; NULL: it is not there. *ret_second: another one that is called
 * so, too, or NULL. */
_nonnull_ const Disk *host_volume(const Host *host, const char *device, const Disk **ret_second);
/* Asks the volumes that udev has no links for by what name they are attached, for a later detection by this
 * process: until Linux 6.2 that takes a capability (nvme_cmd_allowed() in its drivers/nvme/host/ioctl.c). */
_nonnull_ void volume_names_remember(const Root *root);
/* Where a volume is mounted before its targets are bound to it. */
#define VOLUMES_PLACE "/mnt/k8s-volumes"
_nonnull_ size_t host_instance_stores(const Host *host);        /* how many instance stores are there */
/* How many should be: the configuration's word, else the table's, or as many as there are controllers of them
 * on the PCI bus where that is more; 0: nobody says. */
_nonnull_ unsigned host_expected_stores(const Config *config, const Host *host);
_nonnull_ const char *host_expected_by(const Config *config, const Host *host);        /* who says it */

typedef struct HostOptions {            /* of `plan`: NULL where this machine is looked at */
        const char *instance_type, *kubelet_version, *containerd_version, *driver_version;
        const char *image_kernel;       /* with instance_type: such a machine with the image below root,
                                         * whose kernel is this ("": not known); NULL: with EKS's own */
        unsigned stores;                /* instance stores of a type that the table does not know */
        Imds *imds;                     /* NULL: instance facts are assumed and listed in host->assumed */
        json_t *cached_status;          /* nodeadm's .status of --config-cache:
                                         * used instead of asking; or NULL */
        bool strict_node_name;          /* wait for EC2 to say the name, as long as it takes */
        bool name_again;                /* ask once more for one that is assumed */
        bool storage;                   /* look at what the disks carry, where
                                         * the configuration wants them used */
        uint64_t disks_timeout_usec;    /* and wait so long for those that are
                                         * expected; 0: take what is there */
        uint64_t volumes_timeout_usec;  /* and so long for volumes that are not
                                         * attached yet; no less than that */
        uint64_t answer_timeout_usec;   /* and so long for what they carry, all together; 0: 40 s */
} HostOptions;
/* The version of kubelet or containerd: given, or of the image below root, else what the program itself says,
 * where root is the running system's. */
_must_check_ _nonnull(1, 2, 4, 5) int host_program_version(const Root *root, const char *program,
                                                           const char *given, char **ret, Diag *diag);
_must_check_ _nonnull_ int host_detect(const Root *root, const Config *config, const HostOptions *options,
                                       Host **ret, Diag *diag);
/* Who this instance is and what the cluster calls it, as far as imds says: for a failure before host_detect()
 * had all of it. name_assumed: EC2 may have another name than local-hostname. Everything else is unknown. */
_nonnull_ Host *host_recall(const Config *config, Imds *imds);
/* The .status of nodeadm's cache for this host; a new reference. */
json_t *host_status(const Host *host);
/* The facts section of a plan; a new reference. Holds nothing secret. */
json_t *host_to_json(const Host *host);
