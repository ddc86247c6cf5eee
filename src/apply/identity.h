/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The identity of this node for its cluster; kube/ does not depend on AWS, nor aws/ on clusters. */
#include "kube/kube.h"

/* The caller keeps it as long as the KubeIdentity. */
typedef struct ClusterIdentity {
        const KubeAccess *access;
        uint64_t deadline_usec; /* now_usec(): for tokens, at least one second */
} ClusterIdentity;
/* Tokens of the instance role or the role in the exec plugin arguments, and the ARN that must be mapped. */
_nonnull_ KubeIdentity cluster_identity(ClusterIdentity *i);
