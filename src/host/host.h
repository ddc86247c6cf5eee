/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The facts of a machine: sysfs, procfs, version files, metadata, EC2. host_detect() only looks. A planner
 * finds every fact here, so plan/ stays pure and can plan for another machine. */
#include "aws/aws.h"
#include "base/root.h"
#include "config/config.h"
#include "disk/disk.h"

typedef struct PciDevice {
        char *address;                  /* "0000:53:00.0", the sort key */
        unsigned vendor, device;
        unsigned class;                 /* 24 bits: 0x030200 */
        unsigned subsystem_vendor, subsystem_device;
        int numa_node;                  /* -1: none, or not known */
        char *driver;                   /* NULL: not bound */
        bool switch_management;         /* SW_MNG in its vital product data: it leads to an NVLink 5 switch
                                         * (docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide) */
} PciDevice;

typedef struct Disk {
        char *name, *model, *serial;    /* model and serial without padding, or NULL */
        DiskKind kind;
        uint64_t bytes;                 /* 0: not in the table */
        bool in_use;                    /* by partitions, md or dm */
        bool read_only;
        char *number;                   /* "259:3" as in mountinfo; with storage only */
        char **partitions, **holders;   /* kernel names, or NULL */
        char **names;                   /* with volumes: all names (volume_canonical()) */
        bool root;                      /* it holds /; with storage only */
        Content content;                /* of instance stores and configured volumes */
} Disk;

/* An md array of any disks: /sys/block/mdN */
typedef struct Array {
        char *name, *number;            /* "md127", "9:127" */
        char *level;                    /* "raid0"; NULL: not known to md yet */
        unsigned disks;                 /* when complete */
        bool active;                    /* readable: not "inactive", not "clear" */
        bool degraded;
        uint64_t bytes;
        char **members;                 /* kernel names, sorted; maybe fewer than disks */
        char **holders, **partitions;
        Content content;                /* of arrays with an instance store */
} Array;
/* A line of /proc/self/mountinfo (proc(5)), unescaped */
typedef struct Mount {
        char *target, *source, *number, *root, *type;
        bool read_only;
        unsigned id, parent;            /* 0: not known; then the last mount of a target is on top */
        size_t before;                  /* the previous one at this target, from 1; 0: none */
} Mount;
/* A path that matters to storage. */
typedef enum DirectoryKind { DIRECTORY_MISSING, DIRECTORY_THERE, DIRECTORY_NO_DIRECTORY } DirectoryKind;
typedef struct Directory {
        char *path;                     /* as configured or planned */
        char *real;                     /* without links, as in mountinfo; NULL: not a directory */
        DirectoryKind kind;
        bool empty;                     /* true also for a missing one */
        bool read_only;                 /* its file system, or that of its parent, is read-only */
        char *dead;                     /* a sentence about a dead link on the way, or NULL */
        char *on;                       /* the type of a file system not for data (proc, …), or NULL */
        /* below it on its file system; 0 if that holds less than the smallest instance store */
        uint64_t bytes;
        uint64_t used;                  /* used on its file system: an upper bound */
        uint64_t size;                  /* of that file system; 0: not on this machine */
        /* "/tmp is writable by users other than root (mode 1777)": the first such one on the way; or NULL */
        char *foreign;
        bool foreign_itself;            /* it is about this one */
} Directory;
/* A mount unit in /etc/systemd/system */
typedef struct MountUnit {
        char *name;                     /* "mnt-k8s\\x2ddisks-0.mount" */
        char *what, *where;
        bool missing;                   /* `what` is a missing device */
} MountUnit;
/* Filled for a run phase with instance stores or volumes. */
typedef struct Storage {
        bool looked;                    /* false: contents of disks and all here are unknown */
        char *not_looked;               /* why not: "only root can read disks", or NULL */
        Array *arrays; size_t n_arrays; /* sorted by name */
        Mount *mounts; size_t n_mounts; /* in kernel order: later ones are on top */
        json_t *seen;                   /* target → its last mount, "#ID" → mount, both from 1; or NULL */
        /* mountPath, mounts below it, storage_binds, places and targets of volumes */
        Directory *directories; size_t n_directories;
        json_t *index;                  /* normal path → index, or NULL */
        MountUnit *units; size_t n_units;               /* sorted by name */
        char *named;                    /* the target of RAID_DEVICE: "md127", or NULL */
        char **idle;                    /* PCI addresses of instance store controllers without a disk */
        char **programs;                /* of "cp", "mdadm", "mkfs.ext4", "mkfs.xfs" those in PATH */
        /* a random UUID of this detection, the base of file system UUIDs; NULL without a kernel */
        char *chance;
} Storage;
/* The data of daemons, in bind order; each moves to the disks unless disabledMounts names it. */
/* name: below mountPath/0, as in nodeadm; given: the setting that moves it, or NULL */
typedef struct StorageBind { const char *path, *name, *unit, *word, *given; } StorageBind;
extern const StorageBind storage_binds[4];
/* The data of daemons in this configuration: those four, then places in containerd settings. */
typedef struct StoragePlaces {
        StorageBind all[ARRAY_SIZE(storage_binds) + 5]; size_t n;
        char **owned;                   /* allocated paths */
} StoragePlaces;
enum { PLACE_KUBELET, PLACE_CONTAINERD, PLACE_POD_LOGS };       /* of all */
/* containerd: its version, or NULL. */
_must_check_ _nonnull(1) StoragePlaces storage_binds_of(const Config *config, const char *containerd);
_nonnull_ void storage_places_done(StoragePlaces *p);
/* the mount on top there, following resolved links; or NULL */
const Mount *storage_mount_at(const Storage *s, const char *target);
/* the mount that holds path, which has no links; or NULL */
const Mount *storage_mount_of(const Storage *s, const char *path);
const Directory *storage_directory(const Storage *s, const char *path); /* NULL: not detected */
/* with hardware behind it */
typedef struct Nic {
        char *name, *mac, *driver, *pci_address;
        unsigned mtu;
        bool mtu_drop_in;               /* an earlier run had spec.instance.network.mtu */
} Nic;
typedef struct NumaNode { unsigned id, cpus; uint64_t memory_bytes; } NumaNode;

/* The first class that fits the devices (awslabs/amazon-eks-ami, nvidia-fabricmanager-condition.sh). */
typedef enum GpuClass {
        GPU_CLASS_NONE,                 /* no display function of NVIDIA */
        GPU_CLASS_TRAY,                 /* GB200, GB300: switches and fabric manager are in the rack */
        GPU_CLASS_NVSWITCH,             /* HGX A100, H100, H200: NVSwitches on PCI, fabric manager here */
        /* HGX B200, B300: switches behind ConnectX bridges, NVLSM and fabric manager here */
        GPU_CLASS_NVLINK5,
        GPU_CLASS_SINGLE,               /* GPUs without a switch */
        _GPU_CLASS_INVALID = -22,
} GpuClass;
DECLARE_STRING_TABLE(gpu_class, GpuClass);
/* conf/gpus.csv */
typedef struct GpuModel {
        uint16_t device;                /* 0x2330 */
        char name[13];                  /* "h100" */
        char generation[10];            /* "ampere" */
        char mig[13];                   /* its rows in conf/mig-profiles; "": no MIG */
        bool coherent;                  /* the CPU can own its memory (CDMM) */
        char modules[12];               /* those that fit, "open" or "proprietary"; "": both */
        bool no_gsp;                    /* EKS uses the proprietary module without GSP firmware */
        GpuClass board;        /* the class of eight (NVSWITCH, NVLINK5), of even one (TRAY), or NONE */
        uint8_t switches; /* on the PCI bus of such a board: NVSwitches, or ConnectX functions to them */
        bool fabric;                    /* NVML has its fabric state */
        bool mig_resets;                /* a change of MIG mode needs a reset */
        uint8_t nvlinks;                /* of each; 0: none */
        uint16_t bandwidth;             /* of its memory by the data sheet, GB/s; 0: not known */
} GpuModel;
/* NULL: not in the table */
const GpuModel *gpu_model_find(unsigned device);
/* conf/requirements.csv: bad for what: versions >= from ("": all) and < before. "=driver": all but that of
 * the driver. */
typedef enum Component {
        COMPONENT_KUBELET, COMPONENT_CONTAINERD, COMPONENT_DRIVER, COMPONENT_KERNEL, COMPONENT_TOOLKIT,
        COMPONENT_FABRICMANAGER, COMPONENT_IMEX, COMPONENT_PERSISTENCED, COMPONENT_NVML, COMPONENT_MODULE,
        _COMPONENT_MAX
} Component;
typedef struct Requirement {
        char what[16], from[12], before[12];
        uint8_t component;
        bool fails;                     /* it cannot work; false: a warning */
        const char *why, *advice;       /* advice NULL: requirement_advice() makes it */
} Requirement;
/* The first row that has just this in its first column; NULL: none. */
const Requirement *requirement_find(const char *what, Component component);
_malloc_ _nonnull_ char *requirement_advice(const Requirement *r);
/* false for NULL, and for "580" where 580.65.06 decides. */
_must_check_ _nonnull(1) bool requirement_misses(const Requirement *r, const char *version);
/* conf/mig-profiles.csv */
typedef struct MigProfile {
        char gpu[13], name[15];         /* GpuModel.mig; "3g.20gb" */
        int id;                         /* the nvidia-smi ID; -1: not certain */
        uint8_t most, compute, memory;  /* most on a GPU; slices of one */
        uint8_t starts;                 /* bits: possible first memory slices */
        bool documented;                /* false: starts are inferred from other GPUs */
} MigProfile;
/* the largest first; NULL: nothing is known */
const MigProfile *mig_profiles_of(const char *gpu, size_t *ret_n);
typedef struct Gpus {
        GpuClass class;
        char *doubt;        /* why devices contradict the type, whose class counts then; or NULL */
        char *unread;        /* the unreadable devices, if type and number decided instead; or NULL */
        unsigned count;                 /* display functions of NVIDIA */
        unsigned expected;              /* of the instance type, else count */
        const GpuModel *model;          /* of all GPUs, else of the type; NULL: unknown, or they differ */
        bool driver;                    /* in the image, loaded or not */
        bool part;                      /* parts of GPUs, with the GRID driver and a licence */
        bool license_daemon;            /* in the image, or installed at boot */
        char *mig_default;              /* MIG_PARTITION of /etc/default/mig, or NULL */
} Gpus;
/* Neuron devices of Amazon: Trainium and Inferentia */
typedef struct Neuron {
        unsigned count;                 /* on the PCI bus */
        unsigned expected;              /* of the instance type, else count */
        bool driver;                    /* in the image, loaded or not */
} Neuron;
/* A sentence about a missing part, by the instance type or the configuration. */
typedef struct Shortfall { Cause cause; char *text; } Shortfall;
/* reserved huge pages of a NUMA node */
typedef struct PagePool { uint64_t size; int node; uint64_t count; } PagePool;

/* conf/instance-types.csv; zero and "": not known. Arrays, since each start would relocate pointers. */
typedef struct InstanceType {
        char name[20], nvswitch[13], arch[7];   /* nvswitch: none | pci | nvl5-host | nvl5-offhost */
        char gpu_model[21];             /* "nvidia-h100-80gb", "aws-…", "" */
        uint16_t gpu_devices[2];        /* NVIDIA's PCI devices: 0x2330, and an alternative; or 0 */
        uint16_t vcpus, memory_gib, gpus;
        int16_t network_cards, max_efa, disks;  /* -1: not known */
        uint16_t disk_gb;
        int16_t numa_nodes;             /* with CPUs; -1: not known */
        uint16_t gpu_subsystem;         /* of a part of a GPU; 0: a whole one */
        int16_t card_step; /* n: every nth card, from 0 on, takes addresses; the others are for EFA alone */
        bool unconfirmed;               /* no EC2 listing has it */
} InstanceType;
/* NULL: not in the table */
const InstanceType *instance_type_find(const char *name);
/* Takes the types of aws ec2 describe-instance-types that no table has; path is for messages. */
_must_check_ _nonnull_ int instance_types_learn(const char *text, size_t size, const char *path, Diag *diag);
/* Is it in any table? */
_must_check_ bool instance_type_is_known(const char *name);
/* 0: yes; else -EINVAL, with a diagnostic of where (or NULL) and the nearest type. */
_must_check_ _nonnull(1, 3) int instance_type_check(const char *name, const char *where, Diag *diag);
/* The inputs of maxPods (conf/eni-limits.csv); false: not in the table. */
bool eni_limits_find(const char *type, unsigned *ret_enis, unsigned *ret_addresses);
/* By either table; 0: not known. */
unsigned network_cards_find(const char *type);
/* conf/network-cards.csv: the cards first, first + step, … up to last */
typedef struct NetworkCards {
        char type[20];
        uint8_t first, last, step;
        bool efa, ena;                  /* what they take: EFA devices, interfaces with addresses */
        uint16_t efa_gbps, ena_gbps;    /* at most; 0: not known */
        int8_t gpu;                     /* the GPU near them, in the order of cards; -1: none, or not known */
} NetworkCards;
/* the rows of a type; NULL: nothing is known */
const NetworkCards *network_cards_of(const char *type, size_t *ret_n);

typedef struct Instance {
        char *id, *type, *region, *zone;
        char *domain;                   /* DNS suffix of the partition: "amazonaws.com" */
        char *mac;                      /* of the primary interface */
        char *ipv4, *ipv6;              /* of it; ipv6 only for an IPv6 cluster; or NULL */
        char *private_dns_name;         /* NULL with InstanceIdNodeName */
} Instance;

/* kubelet checks these at its start. */
typedef struct KernelState {
        char *swap;                     /* the first of /proc/swaps: "/dev/zram0", or NULL */
        char **tunables; /* of kubelet_tunables, "": unreadable; NULL: of another machine, or not read */
} KernelState;
_must_check_ _nonnull_ char *kernel_swap(const Root *root);
_nonnull_ void kernel_read(const Root *root, KernelState *ret);
_nonnull_ void kernel_done(KernelState *k);
/* Why kubelet does not start, a sentence or NULL. given: kubelet_tunables to be set before, or NULL. */
_must_check_ _nonnull_ char *kernel_swap_fault(const KernelState *k);
_must_check_ _nonnull(1) char *kernel_settings_fault(const KernelState *k, const bool *given);

/* A kernel setting that costs GPUs or NCCL time: tuning.c has the rows. */
typedef struct TuningRule {
        const char *name, *path, *right; /* path below the root; right: words, each of which is good */
        const char *remedy;
        const char *if_path, *if_value; /* applies only where that file has this value; or NULL */
        bool ours;                      /* spec.instance.tuning: gpu sets it */
} TuningRule;
typedef struct HostTuning {
        struct { const TuningRule *rule; char *text; } *faults; size_t n_faults;
        char *owner;                    /* an enabled unit of the image that sets governors; or NULL */
        char *network;                  /* a sentence about a file of networkd without effect; or NULL */
        const char *network_remedy;     /* of it, without spec.instance.network.mtu */
        bool known;                     /* the kernel of this machine was read */
        bool set;                       /* an earlier run of this boot set TUNING_FILE */
} HostTuning;
/* An idle state that takes longer to leave costs latency. On servers since Haswell C1 and C1E take up to
 * 10 us, C3 33 us and C6 133 us or more (torvalds/linux:drivers/idle/intel_idle.c). C2 of an EPYC takes about
 * 400 us (reviews.freebsd.org/D47444). */
#define TUNING_IDLE_USEC 10
#define TUNING_CPUS      "/sys/devices/system/cpu"
#define TUNING_POLICIES  TUNING_CPUS "/cpufreq"
/* The faults of the running kernel. */
_nonnull_ void tuning_read(const Root *root, HostTuning *t);
/* owner and network, from the files of an image or machine. */
_nonnull_ void tuning_read_image(const Root *root, HostTuning *t);
_nonnull_ void tuning_done(HostTuning *t);

/* A network interface as the metadata service has it. One for EFA alone has no address. */
typedef struct CardUse { uint8_t card; bool addressed; } CardUse;

typedef struct Host {
        bool modelled;                  /* --instance-type: not this machine */
        bool imaged;                    /* modelled, with the programs and drivers of an image */
        char **assumed;                 /* assumed facts, for the reader of a plan: "instance.id" … */
        Instance instance;
        bool name_assumed;              /* its private_dns_name is from IMDS, not EC2 */
        char *name_before;        /* the name that an earlier run assumed, if init asked EC2 since; or NULL */
        const InstanceType *type;       /* NULL: not in the table */
        bool eni_limits_known; unsigned max_enis, addresses_per_eni;    /* from the table or EC2 */
        char *eni_limits_why;           /* why they are not known, or NULL */
        char *pool_text;                /* from imds_pool_state() */
        unsigned cpus;
        Neuron neuron;
        uint64_t memory_bytes;          /* MemTotal; in a model, table value; 0: not known */
        char *product_name, *kernel, *arch;
        PciDevice *pci; size_t n_pci;
        Disk *disks; size_t n_disks;
        Storage storage;
        Nic *nics; size_t n_nics;
        CardUse *cards; size_t n_cards; /* with EFA and GPUs; empty: a card is not known */
        NumaNode *nodes; size_t n_nodes;
        Gpus gpus;
        Shortfall *shortfalls; size_t n_shortfalls;     /* the census; empty in a model */
        PagePool *pools; size_t n_pools;                /* by size, the largest first, then by node */
        uint64_t page_size;             /* the default huge page; 0: not known */
        uint64_t kubelet_bytes;         /* of the file system of kubelet data; 0: not known */
        KernelState kernel_state;       /* of a run phase for this machine */
        HostTuning tuning;
        PoolState pool;                 /* POOL_NONE without HostOptions.pool */
        int ptrace_scope;               /* kernel.yama.ptrace_scope; -1: not known */
        char *kubelet_version;          /* "1.33.4" */
        char *containerd_version;
        char *driver_version;           /* of NVIDIA, or NULL */
        bool nvidia_runtime;            /* in the image, even without GPUs */
        bool soci_snapshotter;          /* in the image */
        char *image_credential_provider; /* path of ecr-credential-provider, or NULL */
        char **dead_links;              /* sentences about places of daemon data, or NULL */
        char **bootstrappers;           /* enabled units of nodeadm beside ours, or NULL */
        char **api_server_addresses;    /* Outposts: addresses of the endpoint, sorted */
} Host;
Host *host_free(Host *h);
DEFINE_CLEANUP(Host *, host_free)
unsigned host_efa(const Host *host);                            /* EFA functions */
bool host_efa_is_known(const Host *host);                       /* or assumed, in a model */
/* Addresses of the GPUs with no EFA device near: behind their PCIe switch, or if the layout is unknown
 * (!*ret_placed), on their NUMA node. A new vector; NULL: none, or no EFA, or a model. */
_nonnull_ char **host_far_gpus(const Host *host, bool *ret_placed);
bool pci_is_efa(const PciDevice *d);                            /* vendor 1d0f, device efaX */
bool pci_is_neuron(const PciDevice *d);                         /* Trainium, Inferentia */
bool pci_is_store(const PciDevice *d);                          /* the controller of an instance store */
bool pci_is_gpu(const PciDevice *d);                            /* an NVIDIA display controller */
/* An EBS volume by its model, or a Xen disk, which has no model. */
_nonnull_ bool disk_is_volume(const Disk *d);
/* The disk with this name of the configuration, or NULL. *ret_second: another such disk, or NULL. */
_nonnull_ const Disk *host_volume(const Host *host, const char *device, const Disk **ret_second);
/* Asks NVMe controllers for volume names without udev links, for a later detection in this process: until
 * Linux 6.2 that needs a capability (drivers/nvme/host/ioctl.c, nvme_cmd_allowed()). */
_nonnull_ void volume_names_remember(const Root *root);
/* The parent directory of volume mounts. */
#define VOLUMES_PLACE "/mnt/k8s-volumes"
_nonnull_ size_t host_instance_stores(const Host *host);
/* The expected instance stores: configured, else max(table, controllers); 0: not known. */
_nonnull_ unsigned host_expected_stores(const Config *config, const Host *host);
/* the source of that number */
_nonnull_ const char *host_expected_by(const Config *config, const Host *host);

typedef struct HostOptions {            /* of `plan`; NULL: of this machine */
        const char *instance_type, *kubelet_version, *containerd_version, *driver_version;
        /* with instance_type: the kernel of the image below root ("": not known); NULL: the image of EKS */
        const char *image_kernel;
        unsigned stores;                /* instance stores of an unknown type */
        Imds *imds;                     /* NULL: assume instance facts */
        json_t *cached_status;          /* .status in --config-cache of nodeadm, used first; or NULL */
        bool strict_node_name;          /* wait for the name of EC2 without limit */
        bool name_again;                /* ask again for an assumed name */
        const Root *turns;              /* Ec2.turns */
        bool storage;                   /* look at the contents of disks to use */
        bool pool;                      /* ask whether a warm pool prepares the instance */
        bool joins;                     /* this run starts kubelet: warn where that may be wrong */
        uint64_t disks_timeout_usec;    /* wait for expected disks; 0: do not wait */
        uint64_t volumes_timeout_usec;  /* wait for volumes; at least as long */
        uint64_t answer_timeout_usec;   /* wait for all contents together; 0: 40 s */
} HostOptions;
/* The version of kubelet or containerd: given, of the image, or of the program on this machine. */
_must_check_ _nonnull(1, 2, 4, 5) int host_program_version(const Root *root, const char *program,
                                                           const char *given, char **ret, Diag *diag);
_must_check_ _nonnull_ int host_detect(const Root *root, const Config *config, const HostOptions *options,
                                       Host **ret, Diag *diag);
/* The identity of the instance and its Node name by imds, for a failure before host_detect() ends.
 * name_assumed: EC2 may have a name other than local-hostname. All else is unknown. */
_nonnull_ Host *host_recall(const Config *config, Imds *imds);
/* The .status in the cache of nodeadm; a new reference. */
json_t *host_status(const Host *host);
/* The facts section of a plan, without secrets; a new reference. */
json_t *host_to_json(const Host *host);
