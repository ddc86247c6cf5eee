/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A fleet gets its names from an EC2 API that throttles, in a time that only this program counts. Every
 * node boots and asks with the policies and pauses of src/aws, as query.c does. Where it may, it goes on
 * with the name of the metadata service, and asks again in its run phase. The peer is nodeadm, as its
 * source has
 * it. */
#include "aws/internal.h"
#include "base/time.h"

/* Token bucket of non-mutating EC2 actions that name what they ask for, of an account in a region:
 * https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html */
#define BUCKET  100.0
#define REFILL  20.0                            /* a second */
#define LATENCY (100 * USEC_PER_MSEC)           /* of an answer, throttled or not: assumed */
#define SPREAD  (60 * USEC_PER_SEC)             /* all boot within */
#define BETWEEN (10 * USEC_PER_SEC)             /* the two phases of a boot, the work of cloud-init: assumed
#*/

/* The peer: a waiter that pauses 15 to 120 s between calls (awslabs/amazon-eks-ami,
 * nodeadm/internal/aws/ec2/instance_waiter.go) for ten minutes (awslabs/amazon-eks-ami#2423 shows it; older
 * sources say three). It stands around the standard retryer of the AWS SDK for Go: three attempts, full
 * jitter below min(2^n, 20) s (aws/aws-sdk-go-v2, aws/retry). A node that gives up stays without a name:
 * its unit is not
 * started again. */
#define PEER_ATTEMPTS  3u
#define PEER_WAIT_MIN  (15 * USEC_PER_SEC)
#define PEER_WAIT_MAX  (120 * USEC_PER_SEC)
#define PEER_TOTAL     (600 * USEC_PER_SEC)

typedef struct FleetNode {
        uint64_t next_usec;             /* of its next request */
        uint64_t begin_usec, ask_usec;  /* when it booted, when this question was asked first */
        uint64_t pause_usec;
        unsigned tries, waits, requests;
        bool assumed;
} FleetNode;
/* The next state of a node that was throttled at `now`: it asks again, is ready with an assumed name, or
 * stays without one for good. */
typedef enum FleetStep { FLEET_ASKS, FLEET_READY, FLEET_LOST } FleetStep;
typedef FleetStep (*FleetPolicy)(FleetNode *n, uint64_t now);

#define FLEET_MARKS 3
static const uint64_t fleet_marks[FLEET_MARKS] = { 120 * USEC_PER_SEC, 300 * USEC_PER_SEC, 600 * USEC_PER_SEC };
typedef struct FleetResult {
        size_t nodes;
        size_t ready[FLEET_MARKS];      /* kubelet can start, by then */
        size_t assumed;                 /* of them, with a name that EC2 has not said */
        size_t lost, requests;
        unsigned most;                  /* requests of one node */
} FleetResult;

/* As attempt_until() in aws/query.c decides, of a service that does nothing but throttle. */
static bool fleet_pauses(const RetryPolicy *p, FleetNode *n, uint64_t now) {
        uint64_t end = n->ask_usec + p->total_usec, left = end - MIN(now, end);
        uint64_t pause = retry_pause(p, n->tries, true, 0, &n->pause_usec);
        n->next_usec = now + MIN(pause, left);
        return ++n->tries < p->attempts && left > 0 && !(p->brief && pause > left);
}

static FleetStep fleet_strict(FleetNode *n, uint64_t now) {
        return fleet_pauses(&ec2_retry_policy, n, now) ? FLEET_ASKS : FLEET_LOST;
}

static FleetStep fleet_ours(FleetNode *n, uint64_t now) {
        uint64_t patience_end = n->begin_usec + ec2_retry_policy.patience_usec;
        if (n->assumed)
                return fleet_pauses(&ec2_again_policy, n, now) ? FLEET_ASKS : FLEET_READY;
        if (fleet_pauses(&ec2_retry_policy, n, now) && n->next_usec < patience_end)
                return FLEET_ASKS;
        n->assumed = true;
        n->ask_usec = n->next_usec = MAX(now, patience_end) + BETWEEN;
        n->tries = 0;
        n->pause_usec = 0;
        return FLEET_ASKS;
}

_unused_ static FleetStep fleet_peers(FleetNode *n, uint64_t now) {
        uint64_t end = n->begin_usec + PEER_TOTAL, left = end - MIN(now, end), pause;
        if (left == 0)
                return FLEET_LOST;
        if (++n->tries % PEER_ATTEMPTS != 0) {
                n->next_usec = now + backoff_usec(n->tries % PEER_ATTEMPTS - 1, USEC_PER_SEC, 20 * USEC_PER_SEC);
                return FLEET_ASKS;
        }
        if (left < PEER_WAIT_MIN)
                return FLEET_LOST;
        /* smithy-go's waiter: anything between the least pause and one that doubles */
        pause = PEER_WAIT_MIN + backoff_usec(n->waits++, PEER_WAIT_MIN, PEER_WAIT_MAX) *
                                        (PEER_WAIT_MAX - PEER_WAIT_MIN) / PEER_WAIT_MAX;
        n->next_usec = now + pause;
        return pause < left ? FLEET_ASKS : FLEET_LOST;
}

typedef struct FleetBucket { double tokens; uint64_t usec; } FleetBucket;
static bool bucket_take(FleetBucket *b, uint64_t now) {
        b->tokens = MIN(BUCKET, b->tokens + (double)(now - b->usec) / USEC_PER_SEC * REFILL);
        b->usec = now;
        if (b->tokens < 1)
                return false;
        b->tokens--;
        return true;
}

/* ---- a heap of nodes by the time of their next request ---- */

static void sift_down(FleetNode *heap, size_t n, size_t i) {
        for (size_t child; (child = 2 * i + 1) < n; i = child) {
                FleetNode held = heap[i];
                child += child + 1 < n && heap[child + 1].next_usec < heap[child].next_usec;
                if (held.next_usec <= heap[child].next_usec)
                        return;
                heap[i] = heap[child];
                heap[child] = held;
        }
}

static size_t heap_drop(FleetNode *heap, size_t n) {
        heap[0] = heap[n - 1];
        sift_down(heap, n - 1, 0);
        return n - 1;
}

static FleetResult fleet_boot(FleetPolicy policy, size_t nodes) {
        FleetResult result = { .nodes = nodes };
        FleetNode *heap = xcalloc(nodes, sizeof *heap);
        FleetBucket bucket = { .tokens = BUCKET };
        for (size_t i = 0; i < nodes; i++)      /* evenly: sorted, and so a heap */
                heap[i].next_usec = heap[i].begin_usec = heap[i].ask_usec = SPREAD * i / nodes;
        for (size_t left = nodes; left > 0;) {
                uint64_t now = heap[0].next_usec, answer = now + LATENCY;
                bool answered = bucket_take(&bucket, now);
                FleetStep step = answered ? FLEET_READY : policy(&heap[0], answer);
                result.requests++;
                heap[0].requests++;
                result.most = MAX(result.most, heap[0].requests);
                if (step == FLEET_ASKS) {
                        sift_down(heap, left, 0);
                        continue;
                }
                result.lost += step == FLEET_LOST;
                result.assumed += step == FLEET_READY && !answered;
                for (size_t m = 0; m < FLEET_MARKS && step == FLEET_READY; m++)
                        result.ready[m] += answer <= fleet_marks[m];
                left = heap_drop(heap, left);
        }
        free(heap);
        return result;
}
