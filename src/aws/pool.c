/* SPDX-License-Identifier: Apache-2.0
 * autoscaling/target-lifecycle-state: does a warm pool of EC2 Auto Scaling prepare this instance?
 * docs.aws.amazon.com/autoscaling/ec2/userguide/retrieving-target-lifecycle-state-through-imds.html */
#include "aws/aws.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>

#define BUDGET_USEC (3 * USEC_PER_SEC) /* a boot must not wait for a fact that few nodes have */
#define SHOWN_MAX   40

/* kubelet of a Terminated instance may have pods to end. One in Warmed:Terminated has had none. */
static const struct { char name[18]; char state; } states[] = {
        { "InService", POOL_NONE },          { "Standby", POOL_NONE },
        { "Detached", POOL_NONE },           { "Terminated", POOL_NONE },
        { "Warmed:Stopped", POOL_PREPARES }, { "Warmed:Terminated", POOL_PREPARES },
        { "Warmed:Running", POOL_RESUMES },  { "Warmed:Hibernated", POOL_RESUMES },
};

static PoolState judge(char **text) {
        char *state = *text;
        size_t n = 0;
        while (n < SHOWN_MAX && state[n] > ' ' && state[n] <= '~')
                n++;
        state[n] = 0;
        __auto_type row = FIND(s, states, ARRAY_SIZE(states), streq(s->name, state));
        if (row)
                return (PoolState)row->state;
        RENEW(*text, xasprintf("the target lifecycle state \"%s\" is not known", state));
        return POOL_UNKNOWN;
}

PoolState imds_pool_state(Imds *imds, char **ret) {
        _cleanup_(diag_done) Diag diag = {};
        int r = imds_get_within(imds, BUDGET_USEC, IMDS_POOL_STATE, ret, &diag);
        PoolState state = r >= 0 ? judge(ret) : r == -ENOENT ? POOL_NONE : POOL_UNKNOWN;
        const Diagnostic *error = diag_first_error(&diag);
        if (r < 0)
                *ret = error ? xstrdup(error->text) : NULL;
        if (state != POOL_NONE && state != POOL_PREPARES)
                imds_forget(imds, IMDS_POOL_STATE);
        return state;
}
