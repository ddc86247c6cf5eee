/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The detectors of host_detect(). Each fills its own part of Host and only looks. PCI, NUMA and disks may be
 * missing, as in containers; unreadable facts are errors with path and reason. */
#include "host/host.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/types.h>

_must_check_ _nonnull_ int detect_pci(const Root *root, Host *h, Diag *diag);
/* Is this word in vital product data? 1, 0, or an error: -ENODATA: none, -ETIMEDOUT after `until`. */
_must_check_ _nonnull_ int pci_vpd_has(const Root *root, const char *address, const char *word,
                                       uint64_t until);
/* h->gpus and h->shortfalls, from all other facts of h, vital product data and /etc/default/mig. */
_must_check_ _nonnull_ int detect_gpus(const Root *root, const Config *config, Host *h, Diag *diag);
/* h->neuron; it reads only modules and units of the image. */
_nonnull_ void detect_neuron(const Root *root, Host *h);
/* name: "/nvidia.ko" */
_nonnull(1, 3) bool image_has_module(const Root *root, const char *kernel, const char *name);
/* A model has the EKS image, unless there is one to look at. */
static inline bool image_assumed(const Host *h) {
        return h->modelled && !h->imaged;
}
/* Is the driver in the image, loaded or not? kernel: the owner of the modules, or NULL. */
_nonnull(1) bool image_has_nvidia(const Root *root, const char *kernel);
_nonnull(1) bool image_has_neuron(const Root *root, const char *kernel);
/* names ends with NULL. */
_nonnull_ bool image_has_unit(const Root *root, const char *const *names);
#define ONLY_ROOT ", only root can"     /* suffix of Gpus.doubt if only permissions are missing */
#define BOARD 8                 /* GPUs of a whole board */
/* by the firmware, else by the metadata service; or NULL */
const InstanceType *machine_type(const Host *h);
bool pci_is_nvswitch(const PciDevice *d);
/* some lead to switches on NVLink 5 boards */
bool pci_is_connectx(const PciDevice *d);
unsigned count_devices(const Host *h, bool (*is)(const PciDevice *));
/* Fills h->shortfalls; needs h->gpus. */
_nonnull_ void take_census(const Config *config, Host *h);
_must_check_ _nonnull_ int detect_disks(const Root *root, Host *h, Diag *diag);
_nonnull_ void disks_clear(Host *h);
/* number and read_only, for storage */
_must_check_ _nonnull_ int disks_look_closer(const Root *root, Host *h, Diag *diag);
/* *ret is NULL for a missing or blank line. */
_must_check_ _nonnull_ int read_optional(const Root *root, const char *path, char **ret, const char *meaning,
                                         Diag *diag);
/* *ret is NULL for a missing directory. */
_must_check_ _nonnull_ int list_optional(const Root *root, const char *path, char ***ret, const char *meaning,
                                         Diag *diag);
/* Is n in a list like "0-3,8,10-11" (NULL: all)? -EINVAL: not a list. */
_must_check_ int cpulist_has(const char *list, unsigned n);
/* Fills Disk.names: kernel name, volume id, launch template name, configured names for it in /dev. */
_nonnull_ void detect_volume_names(const Root *root, const Config *config, Host *h);
/* Asks a controller only for a volume without a name in /dev, if a configured device is unresolved. */
_nonnull_ bool volume_to_ask(const Disk *d);
_nonnull_ bool volumes_unresolved(const Config *config, const Host *h);
/* The launch template name in an identify page of NVMe: "/dev/sdf", "xvdf"; or NULL. */
#define NVME_IDENTIFY_SIZE 4096
_must_check_ _nonnull_ char *volume_name_parse(const void *page);
/* The same from an open block device; a negative errno: not NVMe. */
_must_check_ _nonnull_ int volume_name_read(int fd, char **ret);

/* ---- probe.c ---- */
/* content_probe() of several devices in a process of its own. A read of a dead disk may never return (EC2
 * raises nvme_core.io_timeout). It must not stop the boot or hide the contents of other disks. */
typedef struct Prober {
        pid_t child;                    /* 0: none */
        int fd;                         /* our end of the socket */
        uint64_t timeout_usec, until_usec;
        bool pending;                   /* the answers are not complete */
} Prober;

typedef struct Probed {
        char *path;                     /* of the caller */
        int result;                     /* of content_probe(); -EINTR: a stop signal */
        Content content;                /* CONTENT_UNREADABLE: no answer in time */
} Probed;

/* Call it before any thread: a fork copies their locks (malloc, dlopen). Call prober_end() in any case. */
_must_check_ _nonnull_ int prober_start(const Root *root, Prober *ret, Diag *diag);
/* Sends all devices, without waiting for answers. */
_nonnull_ void prober_ask(Prober *p, const Probed *all, size_t n, uint64_t timeout_usec);
/* Waits for the answers; errors of a device are in its result and in diag. < 0: the process failed. */
_must_check_ _nonnull_ int prober_take(Prober *p, Probed *all, size_t n, Diag *diag);
void prober_end(Prober *p);

/* ---- wait.c ---- */
/* Waits for `expected` instance stores, namespaces of their controllers, and configured volumes. Then udev
 * must know all of them with their arrays, and have an empty queue. udev wakes it, without polling; ends at
 * the timeouts of the options. Logs after a second, then every 10 s. 1: all came, 0: not; -EINTR: a signal.
 * Does not wait below another root or without udev (/run/udev/control). */
_must_check_ _nonnull_ int wait_for_disks(const Root *root, const Config *config, unsigned expected,
                                          const HostOptions *options, Diag *diag);
/* The deadline for missing volumes, or for udev, whose time restarts when the last volume has come. begin: of
 * the wait; seen: the last time that one was missing, else begin. */
_nonnull_ uint64_t wait_deadline(uint64_t begin, uint64_t seen, bool missing, const HostOptions *options);

/* ---- storage.c ---- */
/* Fills h->storage and contents of h->disks; needs h->type. If the options say so, it first waits for the
 * expected disks and reads h->disks again. The planner reports missing ones. */
_must_check_ _nonnull_ int detect_storage(const Root *root, const Config *config, const HostOptions *options,
                                          Prober *prober, Host *h, Diag *diag);
_nonnull_ void storage_clear(Storage *s);
/* Parts of it; detect_arrays() reads sysfs, detect_mounts() /proc/self/mountinfo. */
_must_check_ _nonnull_ int detect_arrays(const Root *root, Storage *s, Diag *diag);
_must_check_ _nonnull_ int detect_mounts(const Root *root, Storage *s, Diag *diag);
/* Reads a file like mountinfo; -ELIBACC: no libmount, which replaces "/dev/root" by a local device. */
_must_check_ _nonnull_ int mounts_read(FILE *file, Storage *s, Diag *diag);
_nonnull_ void detect_mount_units(const Root *root, Storage *s);        /* /etc/systemd/system */
_nonnull_ void mount_units_clear(Storage *s);
/* Equal paths, but for "//", "/./" and a slash at the end? */
_nonnull_ bool path_same(const char *a, const char *b);
/* Counts what lies below path if its file system holds at least `from` bytes; needs the mounts of s. */
_must_check_ _nonnull_ int detect_directory(const Root *root, const char *path, const Storage *s,
                                            uint64_t from, Directory *ret, Diag *diag);
/* Fills Host.dead_links and, on this machine, kubelet_bytes. */
_nonnull_ void detect_places(const Root *root, const Config *config, Host *h);
/* Enabled units of nodeadm beside ours, or NULL; the caller frees them. */
_nonnull_ char **detect_bootstrappers(const Root *root);
/* Is a unit enabled below UNIT_DIR, and not masked? */
_nonnull_ bool unit_is_on(const Root *root, const char *unit);
_nonnull_ bool storage_wanted(const Config *config, const HostOptions *options);
_must_check_ _nonnull_ int detect_nics(const Root *root, Host *h, Diag *diag);
_nonnull_ void nics_clear(Host *h);
/* CPUs, MemTotal, NUMA nodes, huge pages */
_must_check_ _nonnull_ int detect_memory(const Root *root, Host *h, Diag *diag);
/* The versions, then detect_programs(). */
_must_check_ _nonnull_ int detect_versions(const Root *root, const HostOptions *options, Host *h, Diag *diag);
_must_check_ _nonnull_ int detect_programs(const Root *root, Host *h, Diag *diag);
/* h->instance except private DNS name: cached, from IMDS, or assumed; needs h->product_name. */
_must_check_ _nonnull_ int detect_identity(const Root *root, const Config *config, const HostOptions *options,
                                           Host *h, Diag *diag);
/* One line of metadata; -ENOENT without a diagnostic: 404. */
_must_check_ _nonnull_ int metadata_line(Imds *imds, const char *path, char **ret, Diag *diag);
/* With a configuration, an answer that IMDS lacks is a missing fact instead of a missing source. */
_nonnull_ void move_facts(Diag *to, Diag *from);
/* Asks EC2 for the private DNS name, if kubelet needs it and no cache has it. aside: in a thread during the
 * wait for disks; then name_take() must follow, and no aws/ call before it. */
typedef struct NameQuestion {
        Ec2 ec2;
        const Instance *instance;
        char *name;                     /* of EC2 */
        char *assumed, *why;            /* the name without an answer, and why */
        bool again;                     /* retry after an assumption */
        int result;
        Diag diag;
        bool running;
        pthread_t thread;
} NameQuestion;
_nonnull_ Ec2 ec2_of(const HostOptions *options, const Host *h);
/* Does the node wait for EC2 without limit? */
_nonnull_ bool name_is_strict(const Config *config, const HostOptions *options);
/* The name that EC2 has for an instance in a VPC without its own domain. */
_nonnull_ bool name_is_regional(const Instance *instance, const char *name);
/* Checks the endpoint settings before the first request. */
_must_check_ _nonnull_ int name_check(const Config *config, const HostOptions *options, const Host *h,
                                      Diag *diag);
_nonnull_ void name_ask(const Config *config, const HostOptions *options, const Host *h, bool aside,
                        NameQuestion *q);
_must_check_ _nonnull_ int name_take(NameQuestion *q, Host *h, Diag *diag);
/* All of h for options->instance_type; the versions of the image below root, unless root is this machine. */
_must_check_ _nonnull_ int model_host(const Root *root, const Config *config, const HostOptions *options,
                                       Host *h, Diag *diag);

/* Assumes missing instance facts, and adds each to h->assumed. */
_nonnull_ void assume_identity(const Config *config, Host *h);
_nonnull_ void assume(Host *h, const char *fact);
/* A version of an option, also "v1.33.4" and "1.33"; -EINVAL with CAUSE_USAGE. */
_must_check_ _nonnull_ int version_option(const char *option, const char *text, char **ret, Diag *diag);
/* Adds "path: reason: meaning" as CAUSE_FACTS; returns r. */
_nonnull_ int fact_error(Diag *diag, int r, const char *path, const char *meaning);
