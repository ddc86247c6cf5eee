/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A fleet gets its names from an EC2 API that throttles, in a time that only this program counts. Every
 * node boots and asks with the policies and pauses of src/aws, as query.c does. Where it may, it goes on
 * with the name of the metadata service, and asks again in its run phase. The peer is nodeadm, as its
 * source has it. Beside kubelet, which pulls for the first pods, nodes pull images of spec.containerd.prePull
 * at the pace of src/pull. */
#include "aws/internal.h"
#include "base/time.h"
#include "pull/pull.h"

/* Token bucket of non-mutating EC2 actions that name what they ask for, of an account in a region:
 * https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html */
#define BUCKET  100.0
#define REFILL  20.0                            /* a second */
#define LATENCY (100 * USEC_PER_MSEC)           /* of an answer, throttled or not: assumed */
#define SPREAD  (60 * USEC_PER_SEC)             /* all boot within */
#define BETWEEN (10 * USEC_PER_SEC)             /* the two phases, the work of cloud-init: assumed */

/* The peer: a waiter that pauses 15 to 120 s between calls (awslabs/amazon-eks-ami,
 * nodeadm/internal/aws/ec2/instance_waiter.go) for ten minutes (awslabs/amazon-eks-ami#2423 shows it; older
 * sources say three). It stands around the standard retryer of the AWS SDK for Go: three attempts, full
 * jitter below min(2^n, 20) s (aws/aws-sdk-go-v2, aws/retry). A node that gives up stays without a name:
 * its unit is not started again. */
#define PEER_ATTEMPTS  3u
#define PEER_WAIT_MIN  (15 * USEC_PER_SEC)
#define PEER_WAIT_MAX  (120 * USEC_PER_SEC)
#define PEER_TOTAL     (600 * USEC_PER_SEC)

/* The services, with the most that an account may ask them in a region. Those of ECR:
 * https://docs.aws.amazon.com/AmazonECR/latest/userguide/service-quotas.html. That page has no burst; a
 * second of the rate is assumed. HEAD and GET of a manifest count as BatchGetImage, a layer or the
 * configuration of an image as GetDownloadUrlForLayer. */
typedef enum FleetService {
        FLEET_EC2, FLEET_TOKENS, FLEET_MANIFESTS, FLEET_BLOBS,
        FLEET_OWN,                      /* a registry of one's own that is bound by its network: its blobs */
        FLEET_SERVICES,
} FleetService;
typedef struct FleetQuota { double burst, rate; } FleetQuota;
#define OWN_BYTES  12.5e9               /* a second: 100 Gbit */
#define BLOB_BYTES 333e6                /* an image of 10 GB has 30 */
static const FleetQuota fleet_quotas[FLEET_SERVICES] = {
        [FLEET_EC2] = { BUCKET, REFILL },
        [FLEET_TOKENS] = { 500, 500 },          /* GetAuthorizationToken */
        [FLEET_MANIFESTS] = { 2000, 2000 },     /* BatchGetImage */
        [FLEET_BLOBS] = { 3000, 3000 },         /* GetDownloadUrlForLayer */
        [FLEET_OWN] = { OWN_BYTES / BLOB_BYTES, OWN_BYTES / BLOB_BYTES },
};

/* A pull by containerd 2.1.9, seen beside tests/mock/registry.py: HEAD and GET of the manifest, then the
 * blobs. It asks six times without a pause after status 429 (core/remotes/docker/resolver.go), then the pull
 * ends, and what it has fetched is deleted. */
#define MANIFESTS   2u
#define AT_ONCE     6u
/* Of kubelet, which pulls one image at a time, the images of aws-node and kube-proxy: their number and that
 * of their blobs is assumed. Its pauses: 10 s, doubled up to 300 s (pkg/kubelet/kubelet.go: imageBackOff). */
#define POD_IMAGES  2u
#define POD_BLOBS   6u
#define POD_PAUSE   (10 * USEC_PER_SEC)
#define POD_LONGEST (300 * USEC_PER_SEC)

typedef struct FleetLoad {
        unsigned images, blobs;         /* of spec.containerd.prePull; blobs of each */
        double seconds;                 /* until a node has the bytes of a blob */
        bool own;                       /* of FLEET_OWN, which has no login */
        bool warmed;                    /* in a warm pool: no kubelet */
} FleetLoad;

typedef enum FleetWork { FLEET_NAMES, FLEET_PODS, FLEET_PULLS } FleetWork;
typedef struct FleetNode {
        uint64_t next_usec;             /* of its next request */
        uint64_t begin_usec, ask_usec;  /* when it booted, and when it first asked this question */
        uint64_t pause_usec;
        unsigned tries, waits, requests;
        bool assumed;
        char work;                      /* FleetWork */
        unsigned node, image, step, refusals;
} FleetNode;
/* The next state of a node that was throttled at `now`: it asks again, is ready with an assumed name, or
 * stays without one for good. */
typedef enum FleetStep { FLEET_ASKS, FLEET_READY, FLEET_LOST } FleetStep;
typedef FleetStep (*FleetPolicy)(FleetNode *n, uint64_t now);

#define FLEET_MARKS   3
#define FLEET_SECONDS 1200
static const uint64_t fleet_marks[] = { 120 * USEC_PER_SEC, 300 * USEC_PER_SEC, 600 * USEC_PER_SEC };
typedef struct FleetResult {
        size_t nodes;
        size_t ready[FLEET_MARKS];      /* kubelet can start, by then */
        size_t assumed;                 /* of them, with a name that EC2 has not said */
        size_t lost, requests;
        unsigned most;                  /* requests of one node */
        size_t pods[FLEET_MARKS];       /* its first pods have their images */
        size_t pulled[FLEET_MARKS];     /* so many images of prePull are there */
        size_t failed;                  /* and of so many kubelet has the pull to do */
        double last;                    /* when the last one was there, in seconds */
        unsigned asked[FLEET_SERVICES][FLEET_SECONDS], refused[FLEET_SERVICES][FLEET_SECONDS];
} FleetResult;

_unused_ static size_t fleet_sum(const unsigned of[FLEET_SECONDS]) {
        size_t sum = 0;
        for (size_t i = 0; i < FLEET_SECONDS; i++)
                sum += of[i];
        return sum;
}

_unused_ static unsigned fleet_peak(const unsigned of[FLEET_SECONDS]) {
        unsigned most = 0;
        for (size_t i = 0; i < FLEET_SECONDS; i++)
                most = MAX(most, of[i]);
        return most;
}

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
static bool bucket_take(FleetBucket *b, const FleetQuota *q, uint64_t now) {
        b->tokens = MIN(q->burst, b->tokens + (double)(now - b->usec) / USEC_PER_SEC * q->rate);
        b->usec = now;
        if (b->tokens < 1)
                return false;
        b->tokens--;
        return true;
}

/* ---- a heap of what nodes do, by the time of the next request ---- */

typedef struct Fleet {
        FleetNode *heap;
        size_t n;
        const FleetLoad *load;
        uint8_t *logins;                /* of nodes: a bit for each FleetWork */
        FleetBucket buckets[FLEET_SERVICES];
        FleetResult result;
} Fleet;

static void heap_settle(Fleet *f) {
        FleetNode *heap = f->heap;
        for (size_t i = 0, child; (child = 2 * i + 1) < f->n; i = child) {
                FleetNode held = heap[i];
                child += child + 1 < f->n && heap[child + 1].next_usec < heap[child].next_usec;
                if (held.next_usec <= heap[child].next_usec)
                        return;
                heap[i] = heap[child];
                heap[child] = held;
        }
}

static void heap_add(Fleet *f, FleetNode node) {
        size_t i = f->n++;
        for (; i > 0 && f->heap[(i - 1) / 2].next_usec > node.next_usec; i = (i - 1) / 2)
                f->heap[i] = f->heap[(i - 1) / 2];
        f->heap[i] = node;
}

static void heap_drop(Fleet *f) {
        f->heap[0] = f->heap[--f->n];
        heap_settle(f);
}

static bool fleet_ask(Fleet *f, FleetService service, uint64_t now) {
        size_t second = MIN(now / USEC_PER_SEC, FLEET_SECONDS - 1ULL);
        bool answered = bucket_take(&f->buckets[service], &fleet_quotas[service], now);
        f->result.asked[service][second]++;
        f->result.refused[service][second] += !answered;
        return answered;
}

static void mark(size_t marks[FLEET_MARKS], uint64_t usec) {
        for (size_t m = 0; m < FLEET_MARKS; m++)
                marks[m] += usec <= fleet_marks[m];
}

/* ---- images ---- */

/* kubelet starts, and containerd has served for a moment. */
static void fleet_pull(Fleet *f, unsigned node, uint64_t now) {
        if (!f->load->warmed)
                heap_add(f, (FleetNode){ .next_usec = now, .begin_usec = now, .node = node, .work = FLEET_PODS });
        uint64_t begin = now + backoff_usec(0, PULL_JITTER_USEC, PULL_JITTER_USEC);
        for (unsigned i = 0; i < MIN(f->load->images, (unsigned)PULL_THREADS); i++)
                heap_add(f, (FleetNode){ .next_usec = begin, .begin_usec = now, .node = node, .image = i,
                                         .work = FLEET_PULLS });
}

/* The image is there, or given up: is there another? */
static bool next_image(const Fleet *f, FleetNode *n) {
        bool pods = n->work == FLEET_PODS;
        n->image += pods ? 1 : PULL_THREADS;
        n->step = n->tries = n->refusals = 0;
        return n->image < (pods ? POD_IMAGES : f->load->images);
}

/* A pull has failed: when the next one begins, unless this was the last. */
static bool image_again(Fleet *f, FleetNode *n, uint64_t now) {
        uint64_t end = n->begin_usec + PULL_USEC, left = end - MIN(now, end), pause = 0;
        n->step = n->refusals = 0;
        n->next_usec = now;
        if (n->work == FLEET_PODS)
                pause = MIN(POD_PAUSE << MIN(n->tries, 5U), POD_LONGEST);
        else if (!pull_pause(n->tries, true, left, &pause)) {
                f->result.failed++;
                return next_image(f, n);
        }
        n->tries++;
        n->next_usec += pause;
        return true;
}

/* One request; false: all is done. Step 0 asks for a login, which kubelet and src/pull keep each. */
static bool fleet_image(Fleet *f, FleetNode *n) {
        uint64_t now = n->next_usec;
        bool pods = n->work == FLEET_PODS;
        unsigned blobs = pods ? POD_BLOBS : f->load->blobs;
        bool own = f->load->own && !pods;
        n->step += n->step == 0 && (own || (f->logins[n->node] & 1U << n->work));
        FleetService service = n->step == 0           ? FLEET_TOKENS
                               : n->step <= MANIFESTS ? FLEET_MANIFESTS
                                                      : FLEET_BLOBS;
        n->next_usec = now + LATENCY;
        if (!(own && service == FLEET_MANIFESTS) && !fleet_ask(f, own ? FLEET_OWN : service, now))
                return ++n->refusals < AT_ONCE || image_again(f, n, now + LATENCY);
        n->refusals = 0;
        n->step++;
        if (service == FLEET_TOKENS)
                f->logins[n->node] |= (uint8_t)(1U << n->work);
        if (service == FLEET_BLOBS && !pods)
                n->next_usec += (uint64_t)(f->load->seconds * USEC_PER_SEC);
        if (n->step <= MANIFESTS + blobs)
                return true;
        if (!pods) {
                mark(f->result.pulled, n->next_usec);
                f->result.last = (double)n->next_usec / USEC_PER_SEC;
        } else if (n->image + 1 == POD_IMAGES)
                mark(f->result.pods, n->next_usec);
        return next_image(f, n);
}

/* ---- the whole ---- */

/* One request; false: this node has a name, or none for good. */
static bool fleet_name(Fleet *f, FleetNode *n, FleetPolicy policy) {
        FleetResult *r = &f->result;
        uint64_t now = n->next_usec, answer = now + LATENCY;
        bool answered = fleet_ask(f, FLEET_EC2, now);
        FleetStep step = answered ? FLEET_READY : policy(n, answer);
        r->requests++;
        n->requests++;
        r->most = MAX(r->most, n->requests);
        if (step == FLEET_READY)
                mark(r->ready, answer);
        r->lost += step == FLEET_LOST;
        r->assumed += step == FLEET_READY && !answered;
        n->next_usec = step == FLEET_ASKS ? n->next_usec : answer;
        return step == FLEET_ASKS;
}

/* load: NULL: names alone. */
static FleetResult fleet_boot(FleetPolicy policy, size_t nodes, const FleetLoad *load) {
        Fleet f = { .load = load, .result = { .nodes = nodes } };
        f.heap = xcalloc(nodes * (2 + PULL_THREADS), sizeof *f.heap);
        f.logins = xcalloc(nodes, sizeof *f.logins);
        for (size_t i = 0; i < FLEET_SERVICES; i++)
                f.buckets[i].tokens = fleet_quotas[i].burst;
        for (size_t i = 0; i < nodes; i++) {
                uint64_t now = SPREAD * i / nodes;
                heap_add(&f, (FleetNode){ .next_usec = now, .begin_usec = now, .ask_usec = now,
                                          .node = (unsigned)i });
        }
        while (f.n > 0) {
                FleetNode *n = &f.heap[0], was = *n;
                bool more = n->work == FLEET_NAMES ? fleet_name(&f, n, policy) : fleet_image(&f, n);
                uint64_t then = n->next_usec;
                if (more)
                        heap_settle(&f);
                else
                        heap_drop(&f);
                if (!more && was.work == FLEET_NAMES && load)
                        fleet_pull(&f, was.node, then);
        }
        free(f.heap);
        free(f.logins);
        return f.result;
}
