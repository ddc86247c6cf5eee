/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who manages which network interface, and what systemd-networkd says of its links. */
#include "base/error.h"
#include "base/root.h"

typedef enum Manager {
        MANAGER_NONE,                   /* undecided */
        MANAGER_NETWORKD,
        MANAGER_CNI,
        _MANAGER_INVALID = -22,
} Manager;
/* "", "io.systemd.Network", "cni": nodeadm's words, of which the second is systemd's own (ID_NET_MANAGED_BY=,
 * systemd/systemd#29782) */
DECLARE_STRING_TABLE(manager, Manager);

/* ---- what was decided before ---- */

/* A folder for each instance id, a file for each interface name, as nodeadm writes it: the bare word, or
 * since autumn 2026 {"mac": …, "manager": …} (awslabs/amazon-eks-ami#2791). Names change hands; so beside
 * those folders, where nodeadm does not look, is a file for each MAC: {"interface": …, "manager": …}. */
#define DECISIONS_DIR "/etc/eks/nodeadm/udev-net-manager"

typedef struct Decision {
        char *mac;                      /* NULL: a bare word of nodeadm's, and no file by MAC names it */
        char *name;                     /* of the interface, when it was decided */
        Manager manager;
        bool json;                      /* nodeadm's file is of the newer form */
} Decision;
typedef struct Decisions { Decision *items; size_t n; } Decisions;
void decisions_done(Decisions *d);
/* All of this instance. A file that holds no decision is left out, with a warning that says which. */
_must_check_ _nonnull_ int decisions_read(const Root *root, const char *instance_id, Decisions *ret,
                                          Diag *diag);
/* That of a MAC; else the one that stands under the name and that no other MAC has made. NULL: none. */
_nonnull_ const Decision *decision_find(const Decisions *d, const char *mac, const char *name);
/* Paths of the two files, new; whatever the words say, they stay below DECISIONS_DIR. */
_malloc_ char *decision_name_path(const char *instance_id, const char *name);
_malloc_ char *decision_mac_path(const char *instance_id, const char *mac);
/* What such a file holds, in either form: mac and name, where it says them. -EBADMSG: no decision. */
_must_check_ _nonnull_ int decision_parse(const char *text, size_t size, Decision *ret);
_nonnull_ void decision_done(Decision *d);
/* As EC2 and the kernel have them, and fit to be a component of a path. */
_nonnull_ bool instance_id_is_valid(const char *id);
_nonnull_ bool interface_name_is_valid(const char *name);
_nonnull_ bool mac_is_valid(const char *mac);   /* of Ethernet, lower case */

/* ---- interfaces of the kernel ---- */

typedef struct Interface {
        char *name, *mac;
        unsigned index;
        char *driver;                   /* NULL: no hardware behind it */
        bool ours;                      /* udev's rule has handed it to us (INTERFACE_PROPERTY=1) */
        uint64_t since_usec;            /* CLOCK_MONOTONIC at which udev had it first; 0: not known */
} Interface;
#define INTERFACE_PROPERTY "NODESTRAP_INTERFACE"
typedef struct Interfaces { Interface *items; size_t n; } Interfaces;
void interfaces_done(Interfaces *i);
/* All that are there, loopback too, by name. One that goes away meanwhile is not there. */
_must_check_ _nonnull_ int interfaces_read(const Root *root, Interfaces *ret, Diag *diag);
_nonnull_ const Interface *interface_by_name(const Interfaces *i, const char *name);     /* or NULL */
/* One with hardware, else any (a VLAN has its parent's), or NULL. */
_nonnull_ const Interface *interface_by_mac(const Interfaces *i, const char *mac);
