/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is true here. host_detect() only looks: sysfs, procfs, version files, metadata, EC2. Everything a planner may want to
 * know stands in Host, so that plan/ stays pure and a plan can be made for a machine that is not this one. */
#include "aws/aws.h"
#include "base/root.h"
#include "config/config.h"

typedef struct PciDevice {
        char *address;                  /* "0000:53:00.0"; devices are sorted by it */
        unsigned vendor, device;
        unsigned class;                 /* 24 bits: 0x030200 */
        unsigned subsystem_vendor, subsystem_device;
        int numa_node;                  /* -1: none, or not known */
        char *driver;                   /* NULL: none is bound */
} PciDevice;
typedef enum DiskKind { DISK_OTHER, DISK_INSTANCE_STORE, DISK_EBS } DiskKind;
typedef struct Disk {
        char *name, *model, *serial;    /* model and serial without padding, or NULL */
        DiskKind kind;
        uint64_t bytes;                 /* 0 in a model whose table does not say */
        bool in_use;                    /* it has partitions, or md or dm holds it */
} Disk;
typedef struct Nic { char *name, *mac, *driver, *pci_address; unsigned mtu; } Nic;         /* with hardware behind it */
typedef struct NumaNode { unsigned id, cpus; uint64_t memory_bytes; } NumaNode;

/* What conf/ knows of an EC2 instance type; zero and NULL: no expectation. */
typedef struct InstanceType {
        const char *name;
        unsigned vcpus, memory_gib, gpus;
        const char *gpu_model;          /* "nvidia-h100-80gb", "aws-…", NULL */
        const char *gpu_pci;            /* "10de:2330", alternatives behind '|' */
        int network_cards, max_efa;     /* -1: not known */
        int disks; unsigned disk_gb;    /* -1: not known */
        const char *nvswitch;           /* none | pci | nvl5-host | nvl5-offhost */
        const char *arch;
} InstanceType;
const InstanceType *instance_type_find(const char *name);       /* NULL for a type that the table does not know */
const InstanceType *instance_type_all(size_t *ret_n);
/* maxPods' two inputs (conf/eni-limits); false if the type is not in the table. */
bool eni_limits_find(const char *type, unsigned *ret_enis, unsigned *ret_addresses);
/* The DNS suffix of a region's AWS partition ("amazonaws.com.cn"), from conf/; the metadata service is asked first. */
const char *partition_domain(const char *region);

typedef struct Instance {
        char *id, *type, *region, *zone;
        char *domain;                   /* meta-data/services/domain */
        char *mac;                      /* of the primary interface */
        char *ipv4, *ipv6;              /* of it; ipv6 only asked for where the cluster is IPv6; or NULL */
        char *private_dns_name;         /* NULL with InstanceIdNodeName */
} Instance;

typedef struct Host {
        bool modelled;                  /* --instance-type: not this machine */
        char **assumed;                 /* facts that were not looked at but assumed, for the plan's reader: "instance.id" … */
        Instance instance;
        const InstanceType *type;       /* NULL: unknown to the table */
        bool eni_limits_known; unsigned max_enis, addresses_per_eni;    /* from the table or EC2 */
        char *eni_limits_why;           /* why they are not known, where they are not */
        unsigned cpus;
        uint64_t memory_bytes;          /* MemTotal; in a model the table's, or 0: not known */
        char *product_name, *kernel, *arch;
        PciDevice *pci; size_t n_pci;
        Disk *disks; size_t n_disks;
        Nic *nics; size_t n_nics;
        NumaNode *nodes; size_t n_nodes;
        char *kubelet_version;          /* "1.33.4", no v */
        char *containerd_version;       /* "2.1.5" */
        char *driver_version;           /* NVIDIA's, or NULL */
        bool nvidia_runtime;            /* /usr/bin/nvidia-container-runtime is there */
        bool soci_snapshotter;          /* its binary is there */
        char *image_credential_provider; /* path of ecr-credential-provider, or NULL */
        char **api_server_addresses;    /* Outposts: what the endpoint's name resolves to, sorted */
} Host;
Host *host_free(Host *h);
DEFINE_CLEANUP(Host *, host_free)

typedef struct HostOptions {            /* of `plan`: NULL where this machine is looked at */
        const char *instance_type, *kubelet_version, *containerd_version, *driver_version;
        Imds *imds;                     /* NULL: instance facts are assumed and listed in host->assumed */
        json_t *cached_status;          /* nodeadm's .status of --config-cache: used instead of asking; or NULL */
} HostOptions;
_must_check_ _nonnull_ int host_detect(const Root *root, const Config *config, const HostOptions *options, Host **ret, Diag *diag);
/* The .status of nodeadm's cache for this host; a new reference. */
json_t *host_status(const Host *host);
/* The facts section of a plan; a new reference. Holds nothing secret. */
json_t *host_to_json(const Host *host);
