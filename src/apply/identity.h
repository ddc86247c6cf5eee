/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who this node is to its cluster: kube/ knows nothing of AWS, and aws/ nothing of clusters. */
#include "kube/kube.h"

/* The caller's, for as long as the KubeIdentity is used. */
typedef struct ClusterIdentity {
        const KubeAccess *access;
        uint64_t deadline_usec; /* now_usec(): a token is asked for until then, but for a second at least */
} ClusterIdentity;
/* Tokens as kubelet's own, by the role of the instance or the one that the exec plugin's arguments name, and
 * the ARN that has to be mapped. */
_nonnull_ KubeIdentity cluster_identity(ClusterIdentity *i);
