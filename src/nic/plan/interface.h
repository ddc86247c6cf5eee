/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What becomes of one network interface: facts → whether they suffice, and the plan. Pure, as all here. */
#include "nic/enis.h"
#include "nic/nic.h"
#include "plan/plan.h"

/* Asked where spec.featureGates.OSManagedNoManageENIs is on and the CNI would have the interface. */
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
        const Interfaces *interfaces;   /* all, for those that have changed their names */
        bool init_ran;                  /* the run phase of this boot has begun (/run/nodeadm/init) */
        char *const *early;             /* MACs of interfaces that came before it did; or NULL */
        char *const *managed;           /* MACs that files of ours in /run/systemd/network match; or NULL */
        NoManage no_manage;
        unsigned cards;                 /* of the instance type; 0: not known */
        char *const *files;             /* names in /run/systemd/network, and of links of ours in its
                                         * folders for drop-ins: "70-eks-eth1.network.d/eni.conf" */
        char *const *drop_ins;          /* paths of the image's own *.conf for this interface, or NULL */
} InterfaceFacts;

typedef enum Judgement {
        JUDGEMENT_LATE,                 /* the metadata service has not told all yet */
        JUDGEMENT_IGNORED,              /* nobody's: it has no address */
        JUDGEMENT_DECIDED,
} Judgement;
/* Do the facts suffice? ret_why, the caller's: what is missing, or why it is ignored; NULL where decided. */
_must_check_ _nonnull_ Judgement interface_judge(const InterfaceFacts *f, char **ret_why);
/* Who manages it. Needs no facts of aws/enis.h but the instance id and the primary MAC. What was networkd's
 * in this boot stays so, also where nothing could be kept. */
_nonnull_ Manager interface_manager(const InterfaceFacts *f);
/* Its files below /run/systemd/network, rp_filter, the decision to keep, the reload. Of one that was judged
 * late the plan is empty. */
_must_check_ _nonnull_ int interface_plan(const InterfaceFacts *f, Plan **ret, Diag *diag);
/* Takes away what interface_plan() made for a name, and what was decided by MAC for one of the CNI's that has
 * gone; all else that was decided stays. No interface is needed in the facts, nor the instance's id. */
_must_check_ _nonnull_ int interface_plan_removal(const char *name, const InterfaceFacts *f, Plan **ret,
                                                  Diag *diag);

/* The .network file, byte for byte nodeadm's for the primary interface (eni->mac is enis->primary). */
_malloc_ char *network_file(const Eni *eni, bool primary);
/* The MAC that such a file is for, new; NULL: none. */
_nonnull_ char *network_file_mac(const char *text);
