/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Facts about one network interface → do they suffice, and its plan. All here is pure. */
#include "nic/enis.h"
#include "nic/nic.h"
#include "plan/plan.h"

/* The tag of an interface of the CNI, with spec.featureGates.OSManagedNoManageENIs. */
typedef enum NoManage {
        NO_MANAGE_NOT_ASKED,
        NO_MANAGE_TAGGED,
        NO_MANAGE_UNTAGGED,
        NO_MANAGE_UNKNOWN,
} NoManage;

typedef struct InterfaceFacts {
        const Interface *interface;
        const Enis *enis;
        const Decisions *decisions;
        const Interfaces *interfaces;   /* all, to find renamed ones */
        bool init_ran;                  /* the run phase of this boot has begun (/run/nodeadm/init) */
        char *const *early;             /* MACs that came before that; or NULL */
        char *const *managed;           /* MACs in our files of /run/systemd/network; or NULL */
        NoManage no_manage;
        unsigned cards;                 /* of the instance type; 0: not known */
        /* names in /run/systemd/network, and our files in folders there: 70-eks-eth1.network.d/eni.conf */
        char *const *files;
        char *const *drop_ins;          /* *.conf files of the image for this interface, or NULL */
} InterfaceFacts;

typedef enum Judgement {
        JUDGEMENT_LATE,                 /* the metadata service has not answered all yet */
        JUDGEMENT_IGNORED,              /* no manager: it has no address */
        JUDGEMENT_DECIDED,
} Judgement;
/* ret_why, of the caller: the missing fact, or why it is ignored; NULL if decided. */
_must_check_ _nonnull_ Judgement interface_judge(const InterfaceFacts *f, char **ret_why);
/* Needs only instance id and primary MAC of enis. A link that networkd has in this boot stays with it. */
_nonnull_ Manager interface_manager(const InterfaceFacts *f);
/* Its files below /run/systemd/network, rp_filter, the decision, the reload. Empty if judged late. */
_must_check_ _nonnull_ int interface_plan(const InterfaceFacts *f, Plan **ret, Diag *diag);
/* Removes the files of a name, and the decision by MAC of a gone interface of the CNI; other decisions stay.
 * Needs neither an interface nor the instance id in the facts. */
_must_check_ _nonnull_ int interface_plan_removal(const char *name, const InterfaceFacts *f, Plan **ret,
                                                  Diag *diag);

/* The .network file; that of the primary interface (eni->mac is enis->primary) has the bytes of nodeadm. */
_malloc_ char *network_file(const Eni *eni, bool primary);
/* The MAC in such a file, new; or NULL. */
_nonnull_ char *network_file_mac(const char *text);
