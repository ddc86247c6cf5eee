/* SPDX-License-Identifier: Apache-2.0
 * How fast a fleet gets its names from an EC2 API that throttles: every node asks once and again until it has
 * its answer, in a time that only this program counts. Ours is the policy and the backoff of src/aws; the
 * peer's is nodeadm's, as its source has it.
 * usage: fleet    - a table on stdout */
#include "aws/internal.h"
#include "base/time.h"

#include <stdio.h>

/* Token bucket of non-mutating EC2 actions that name what they ask for, of an account in a region:
 * https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html */
#define BUCKET  100.0
#define REFILL  20.0                            /* a second */
#define LATENCY (100 * USEC_PER_MSEC)           /* of an answer, throttled or not: assumed */
#define SPREAD  (60 * USEC_PER_SEC)             /* all boot within */

/* The peer: a waiter that pauses 15 to 120 s between calls (awslabs/amazon-eks-ami,
 * nodeadm/internal/aws/ec2/instance_waiter.go) for ten minutes (awslabs/amazon-eks-ami#2423 shows it; older
 * sources say three), around the AWS SDK for Go's standard retryer: three attempts, full jitter below
 * min(2^n, 20) s (aws/aws-sdk-go-v2, aws/retry). A node that gives up stays without a name: its unit is not
 * started again. */
#define PEER_ATTEMPTS  3u
#define PEER_WAIT_MIN  (15 * USEC_PER_SEC)
#define PEER_WAIT_MAX  (120 * USEC_PER_SEC)
#define PEER_TOTAL     (600 * USEC_PER_SEC)

typedef struct Node { uint64_t next_usec, begin_usec; unsigned tries, waits; } Node;
typedef struct Bucket { double tokens; uint64_t usec; } Bucket;
/* When to ask again after a throttled answer at `now`; 0: never. */
typedef uint64_t (*Policy)(Node *n, uint64_t now);

static uint64_t ours(Node *n, uint64_t now) {
        const RetryPolicy *p = &ec2_retry_policy;
        uint64_t next = now + backoff_usec(n->tries++, p->base_usec, p->cap_usec);
        return n->tries < p->attempts && next < n->begin_usec + p->total_usec ? next : 0;
}

static uint64_t peers(Node *n, uint64_t now) {
        uint64_t left = n->begin_usec + PEER_TOTAL - now, next;
        if (now >= n->begin_usec + PEER_TOTAL)
                return 0;
        if (++n->tries % PEER_ATTEMPTS != 0)
                return now + backoff_usec(n->tries % PEER_ATTEMPTS - 1, USEC_PER_SEC, 20 * USEC_PER_SEC);
        if (left < PEER_WAIT_MIN)
                return 0;
        /* smithy-go's waiter: anything between the least pause and one that doubles */
        next = PEER_WAIT_MIN + backoff_usec(n->waits++, PEER_WAIT_MIN, PEER_WAIT_MAX) *
                                       (PEER_WAIT_MAX - PEER_WAIT_MIN) / PEER_WAIT_MAX;
        return next < left ? now + next : 0;
}

static bool bucket_take(Bucket *b, uint64_t now) {
        b->tokens = MIN(BUCKET, b->tokens + (double)(now - b->usec) / USEC_PER_SEC * REFILL);
        b->usec = now;
        if (b->tokens < 1)
                return false;
        b->tokens--;
        return true;
}

/* ---- a heap of nodes by the time of their next request ---- */

static void sift_down(Node *heap, size_t n, size_t i) {
        for (size_t child; (child = 2 * i + 1) < n; i = child) {
                Node held = heap[i];
                child += child + 1 < n && heap[child + 1].next_usec < heap[child].next_usec;
                if (held.next_usec <= heap[child].next_usec)
                        return;
                heap[i] = heap[child];
                heap[child] = held;
        }
}

static size_t heap_drop(Node *heap, size_t n) {
        heap[0] = heap[n - 1];
        sift_down(heap, n - 1, 0);
        return n - 1;
}

static void simulate(const char *name, Policy policy, size_t nodes) {
        static const uint64_t marks[] = { 120 * USEC_PER_SEC, 300 * USEC_PER_SEC, 600 * USEC_PER_SEC };
        size_t ready[ARRAY_SIZE(marks)] = {}, left = nodes, requests = 0, lost = 0;
        Node *heap = xcalloc(nodes, sizeof *heap);
        Bucket bucket = { .tokens = BUCKET };
        for (size_t i = 0; i < nodes; i++)      /* evenly: sorted, and so a heap */
                heap[i].next_usec = heap[i].begin_usec = SPREAD * i / nodes;
        while (left > 0) {
                uint64_t now = heap[0].next_usec, answer = now + LATENCY;
                requests++;
                if (bucket_take(&bucket, now)) {
                        for (size_t m = 0; m < ARRAY_SIZE(marks); m++)
                                ready[m] += answer <= marks[m];
                        left = heap_drop(heap, left);
                } else if ((heap[0].next_usec = policy(&heap[0], answer)))
                        sift_down(heap, left, 0);
                else {
                        lost++;
                        left = heap_drop(heap, left);
                }
        }
        printf("  %6zu  %-10s", nodes, name);
        for (size_t m = 0; m < ARRAY_SIZE(marks); m++)
                printf("  %6.1f %%", 100 * (double)ready[m] / (double)nodes);
        printf("  %6.1f %%  %8.1f\n", 100 * (double)lost / (double)nodes, (double)requests / (double)nodes);
        free(heap);
}

int main(void) {
        static const size_t fleets[] = { 18, 1000, 10000 };
        printf("simulated: nodes that boot within %.0f s and ask a bucket of %.0f tokens, refilled by %.0f a "
               "second\n",
               (double)SPREAD / USEC_PER_SEC, BUCKET, REFILL);
        printf("  %6s  %-10s  %8s  %8s  %8s  %8s  %8s\n", "nodes", "policy", "2 min", "5 min", "10 min",
               "gave up", "requests");
        for (size_t i = 0; i < ARRAY_SIZE(fleets); i++) {
                simulate("nodestrap", ours, fleets[i]);
                simulate("nodeadm", peers, fleets[i]);
        }
        return 0;
}
