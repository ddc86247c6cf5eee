/* SPDX-License-Identifier: Apache-2.0
 * check-pool: right before kubelet, is the instance still on its way into a warm pool? Then kubelet stays
 * down: the Node of a stopped instance stays in the cluster, NotReady, as long as the instance exists
 * (kubernetes/kops#11216). Without an answer the last one holds. */
#include "apply/device.h"

#include "aws/aws.h"

int pool_work(Work *w) {
        _cleanup_(imds_freep) Imds *imds = imds_new(0);
        _free_ char *text = NULL;
        if (root_exists(w->root, KUBELET_TURN) == 1)
                return 0;               /* kubelet may have run in this boot; a scale-in may reuse a node */
        PoolState state = imds_pool_state(imds, &text);
        w->skips = state == POOL_PREPARES || state == POOL_UNKNOWN;
        if (w->skips)
                w->text = xasprintf("prepared for the warm pool (%s); the node joins at its next start",
                                    w->action->with);
        return 0;
}
