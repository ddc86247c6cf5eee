/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The detectors of this folder; host_detect() calls them in turn. Each fills its own part of Host and only
 * looks. What a plain container lacks (PCI, NUMA, disks) may be missing; what is there and cannot be
 * understood is an error with the path and why. */
#include "host/host.h"
#include "host/probe.h"

#include <pthread.h>
#include <stdio.h>

_must_check_ _nonnull_ int detect_pci(const Root *root, Host *h, Diag *diag);
/* Is the word in the device's vital product data? 1, 0, or why that is not known: -ENODATA where there is
 * none, -ETIMEDOUT where reading takes longer than `until`. */
_must_check_ _nonnull_ int pci_vpd_has(const Root *root, const char *address, const char *word,
                                       uint64_t until);
/* h->gpus and h->shortfalls, from what the other detectors found and the instance type; of the machine itself
 * it reads no more than vital product data, where that decides, and /etc/default/mig. Wants everything else
 * of h. */
_must_check_ _nonnull_ int detect_gpus(const Root *root, const Config *config, Host *h, Diag *diag);
/* h->neuron; of the machine itself it reads no more than which modules and units the image has. */
_nonnull_ void detect_neuron(const Root *root, Host *h);
/* Is "/nvidia.ko" among the modules of this kernel? */
_nonnull(1, 3) bool image_has_module(const Root *root, const char *kernel, const char *name);
/* A model's is EKS's own for such a machine, unless there is one to look at. */
static inline bool image_assumed(const Host *h) {
        return h->modelled && !h->imaged;
}
/* Does the image bring NVIDIA's driver, or AWS Neuron's? By what it has, never by what is loaded. kernel:
 * whose modules count; or NULL. */
_nonnull(1) bool image_has_nvidia(const Root *root, const char *kernel);
_nonnull(1) bool image_has_neuron(const Root *root, const char *kernel);
/* Has the image one of these units, which list ends with NULL? */
_nonnull_ bool image_has_unit(const Root *root, const char *const *names);
#define ONLY_ROOT ", only root can"     /* ends a doubt of the GPUs' class that says
                                         * nothing of the machine, but of who looked */
#define BOARD 8                 /* GPUs of a machine that has a whole board of them */
/* by the firmware's word, else the metadata service's; or NULL */
const InstanceType *machine_type(const Host *h);
bool pci_is_nvswitch(const PciDevice *d);
/* on NVLink 5 boards some of them lead to the switches */
bool pci_is_connectx(const PciDevice *d);
unsigned count_devices(const Host *h, bool (*is)(const PciDevice *));
/* What the machine should have and has not → h->shortfalls. Wants h->gpus. */
_nonnull_ void take_census(const Config *config, Host *h);
_must_check_ _nonnull_ int detect_disks(const Root *root, Host *h, Diag *diag);
_nonnull_ void disks_clear(Host *h);
/* What only storage wants to know of them: number and read_only. */
_must_check_ _nonnull_ int disks_look_closer(const Root *root, Host *h, Diag *diag);
/* Of any whole block device: kernel names of its partitions and of what is built on it (md, dm); NULL where
 * there are none. */
_must_check_ _nonnull_ int block_use(const Root *root, const char *name, char ***ret_partitions,
                                     char ***ret_holders, Diag *diag);
_must_check_ _nonnull_ int block_bytes(const Root *root, const char *name, uint64_t *ret, Diag *diag);
/* A line of sysfs that not every device has: *ret is NULL where it is not there, or blank. */
_must_check_ _nonnull_ int read_optional(const Root *root, const char *path, char **ret, const char *meaning,
                                         Diag *diag);
/* Disk.names of all disks: the kernel's name, the volume id, what the launch template called it, and the
 * names of the configuration that lead to it in /dev. What cannot be had is not there. */
_nonnull_ void detect_volume_names(const Root *root, const Config *config, Host *h);
/* Is its controller to be asked: may it have a name that no link in /dev tells? Only where a device of the
 * configuration leads nowhere yet. */
_nonnull_ bool volume_to_ask(const Disk *d);
_nonnull_ bool volumes_unresolved(const Config *config, const Host *h);
/* What the vendor's part of the page that an NVMe controller identifies itself with says: a name as it stands
 * in the launch template, "/dev/sdf", "xvdf"; NULL where it says none. */
#define NVME_IDENTIFY_SIZE 4096
_must_check_ _nonnull_ char *volume_name_parse(const void *page);
/* The same from the controller behind a block device that is open; a negative errno where it is no NVMe. */
_must_check_ _nonnull_ int volume_name_read(int fd, char **ret);
/* h->storage and the contents of h->disks; waits for the expected disks first, where the options say so (and
 * reads the disks anew then). Fewer than expected is no error here: the planner says which. Wants h->type. */
_must_check_ _nonnull_ int detect_storage(const Root *root, const Config *config, const HostOptions *options,
                                          Prober *prober, Host *h, Diag *diag);
_nonnull_ void storage_clear(Storage *s);
/* The parts of it. detect_arrays(): sysfs alone. detect_mounts(): /proc/self/mountinfo. */
_must_check_ _nonnull_ int detect_arrays(const Root *root, Storage *s, Diag *diag);
_must_check_ _nonnull_ int detect_mounts(const Root *root, Storage *s, Diag *diag);
/* Reads a file in the format of mountinfo; -ELIBACC where libmount cannot be loaded. For a source "/dev/root"
 * libmount takes the device of that number on the running machine, also where the file is another's. */
_must_check_ _nonnull_ int mounts_read(FILE *file, Storage *s, Diag *diag);
_nonnull_ void detect_mount_units(const Root *root, Storage *s);        /* /etc/systemd/system */
_nonnull_ void mount_units_clear(Storage *s);
/* Do two paths name the same place, as text: "//", "/./" and a slash at the end say nothing? */
_nonnull_ bool path_same(const char *a, const char *b);
/* One path, with its mount looked up in s. What lies below it is counted where its file system holds at least
 * `from` bytes. */
_must_check_ _nonnull_ int detect_directory(const Root *root, const char *path, const Storage *s,
                                            uint64_t from, Directory *ret, Diag *diag);
/* Fills Host.dead_links and, where this machine is looked at, kubelet_bytes. */
_nonnull_ void detect_places(const Root *root, const Config *config, Host *h);
/* Units of nodeadm that are enabled beside ours, a new vector; NULL: none, or ours are not. */
_nonnull_ char **detect_bootstrappers(const Root *root);
/* Is storage to be looked at? */
_nonnull_ bool storage_wanted(const Config *config, const HostOptions *options);
_must_check_ _nonnull_ int detect_nics(const Root *root, Host *h, Diag *diag);
_nonnull_ void nics_clear(Host *h);
/* CPUs, MemTotal, NUMA nodes, huge pages */
_must_check_ _nonnull_ int detect_memory(const Root *root, Host *h, Diag *diag);
/* kubelet, containerd, driver, and which optional programs are there. */
_must_check_ _nonnull_ int detect_versions(const Root *root, const HostOptions *options, Host *h, Diag *diag);
/* The last part of it alone. */
_must_check_ _nonnull_ int detect_programs(const Root *root, Host *h, Diag *diag);
/* h->instance from the cache and the metadata service, or assumed; all but the private DNS name. Wants
 * h->product_name. */
_must_check_ _nonnull_ int detect_identity(const Root *root, const Config *config, const HostOptions *options,
                                           Host *h, Diag *diag);
/* One line of metadata. -ENOENT without a diagnostic for a 404: the caller decides what that means. */
_must_check_ _nonnull_ int metadata_line(Imds *imds, const char *path, char **ret, Diag *diag);
/* There is a configuration already: what the service does not tell now is a missing fact, with the exit code
 * of those, and no missing source. */
_nonnull_ void move_facts(Diag *to, Diag *from);
/* The private DNS name, where kubelet is to have it and no cache knew it for sure: one question to EC2.
 * aside: on a thread of its own, while the disks are waited for and looked at; no other call of aws/ until
 * name_take(), which must follow and waits for the answer. */
typedef struct NameQuestion {
        Ec2 ec2;
        const Instance *instance;
        char *name;                     /* EC2's answer */
        char *assumed, *why;            /* the name where there is none, and why there is none */
        bool again;                     /* ask once more when it has been assumed */
        int result;
        Diag diag;
        bool running;
        pthread_t thread;
} NameQuestion;
/* Who asks EC2 about this machine. */
_nonnull_ Ec2 ec2_of(const HostOptions *options, const Host *h);
/* Does this node wait for EC2, however long it takes? */
_nonnull_ bool name_is_strict(const Config *config, const HostOptions *options);
/* Is it what EC2 calls this instance where nobody has given its VPC a domain of another name? */
_nonnull_ bool name_is_regional(const Instance *instance, const char *name);
/* Can EC2 be asked as the environment wants it to be? Before anybody is. */
_must_check_ _nonnull_ int name_check(const Config *config, const HostOptions *options, const Host *h,
                                      Diag *diag);
_nonnull_ void name_ask(const Config *config, const HostOptions *options, const Host *h, bool aside,
                        NameQuestion *q);
_must_check_ _nonnull_ int name_take(NameQuestion *q, Host *h, Diag *diag);
/* Everything of h for a machine of options->instance_type; versions of programs are the image's below root,
 * where that is not this machine's. */
_must_check_ _nonnull_ int model_host(const Root *root, const Config *config, const HostOptions *options,
                                       Host *h, Diag *diag);

/* Instance facts nobody was asked for; each goes to h->assumed. What is set already stays. */
_nonnull_ void assume_identity(const Config *config, Host *h);
_nonnull_ void assume(Host *h, const char *fact);
/* Takes a version given by option, or -EINVAL with CAUSE_USAGE; "v1.33.4" and "1.33" are accepted. */
_must_check_ _nonnull_ int version_option(const char *option, const char *text, char **ret, Diag *diag);
/* "path: cannot be read: why; meaning" as CAUSE_FACTS; returns r. */
_nonnull_ int fact_error(Diag *diag, int r, const char *path, const char *meaning);
