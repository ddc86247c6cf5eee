/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Managers of network interfaces, earlier decisions about them, and interfaces of the kernel. */
#include "base/error.h"
#include "base/root.h"

typedef enum Manager {
        MANAGER_NONE,                   /* undecided */
        MANAGER_NETWORKD,
        MANAGER_CNI,
        _MANAGER_INVALID = -22,
} Manager;
/* "", "io.systemd.Network", "cni": as in nodeadm; the second: systemd (ID_NET_MANAGED_BY=,
 * systemd/systemd#29782) */
DECLARE_STRING_TABLE(manager, Manager);

/* ---- earlier decisions ---- */

/* A folder for each instance id has a file for each interface name, as nodeadm writes it. It has the bare
 * word, or since autumn 2026 {"mac": …, "manager": …} (awslabs/amazon-eks-ami#2791). Names move between
 * interfaces. So other folders, for nodestrap alone, have a file for each MAC: {"interface": …, "manager":
 * …}. */
#define DECISIONS_DIR "/etc/eks/nodeadm/udev-net-manager"

typedef struct Decision {
        char *mac;                      /* NULL: a bare word of nodeadm, and no file by MAC names it */
        char *name;                     /* of the interface at that time */
        Manager manager;
        bool json;                      /* the file of nodeadm has the newer form */
} Decision;
typedef struct Decisions { Decision *items; size_t n; } Decisions;
void decisions_done(Decisions *d);
/* All of this instance. Warns of a file without a decision, and ignores it. */
_must_check_ _nonnull_ int decisions_read(const Root *root, const char *instance_id, Decisions *ret,
                                          Diag *diag);
/* By MAC; else by name, from a file that no other MAC has written. NULL: none. */
_nonnull_ const Decision *decision_find(const Decisions *d, const char *mac, const char *name);
/* Paths of the two files, new. Any word stays below DECISIONS_DIR. */
_malloc_ char *decision_name_path(const char *instance_id, const char *name);
_malloc_ char *decision_mac_path(const char *instance_id, const char *mac);
/* Either form, with mac and name if the file has them. -EBADMSG: not a decision. */
_must_check_ _nonnull_ int decision_parse(const char *text, size_t size, Decision *ret);
_nonnull_ void decision_done(Decision *d);
/* As EC2 and the kernel have them, and safe in a path. */
_nonnull_ bool instance_id_is_valid(const char *id);
_nonnull_ bool interface_name_is_valid(const char *name);
_nonnull_ bool mac_is_valid(const char *mac);   /* of Ethernet, lower case */

/* ---- interfaces of the kernel ---- */

typedef struct Interface {
        char *name, *mac;
        unsigned index;
        char *driver;                   /* NULL: no hardware */
        bool ours;                      /* our udev rule set INTERFACE_PROPERTY */
        uint64_t since_usec;            /* CLOCK_MONOTONIC when udev first saw it; 0: not known */
} Interface;
#define INTERFACE_PROPERTY "NODESTRAP_INTERFACE"
typedef struct Interfaces { Interface *items; size_t n; } Interfaces;
void interfaces_done(Interfaces *i);
/* All that exist, loopback too, by name. */
_must_check_ _nonnull_ int interfaces_read(const Root *root, Interfaces *ret, Diag *diag);
_nonnull_ const Interface *interface_by_name(const Interfaces *i, const char *name);     /* or NULL */
/* One with hardware, else any (a VLAN has the MAC of its parent), or NULL. */
_nonnull_ const Interface *interface_by_mac(const Interfaces *i, const char *mac);

/* ---- the network of a boot (boot-network.c) ---- */

/* Waits until systemd-networkd has configured the primary interface and those decided for it, and leaves all
 * others unmanaged. begin_usec: start of the process, from which the metadata service gets its time.
 * ret_configured: "eth0, eth1"; the caller frees it. At the deadline, -ETIMEDOUT with an error for each link;
 * after a signal, -EINTR with one. */
_must_check_ _nonnull_ int boot_network_wait(const Root *root, uint64_t begin_usec, uint64_t deadline_usec,
                                             char **ret_configured, Diag *diag);
