/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The network interfaces of this instance, from the metadata service
 * (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-categories.html). It lags: an
 * interface may exist for seconds before it is listed, or before its card and device number are
 * (amazonlinux/amazon-ec2-net-utils#105, #153). */
#include "aws/aws.h"
#include "base/paths.h"

typedef struct Eni {
        char *mac;                      /* "0a:1b:2c:3d:4e:5f" */
        int card, device;               /* -1: no answer (yet) */
        char **ipv4s, **ipv6s;          /* its addresses, the primary one first; NULL: none (yet) */
        char **ipv4_prefixes, **ipv6_prefixes;  /* its delegated prefixes: "10.0.1.16/28"; NULL: none */
        /* CLOCK_MONOTONIC: when the last complete round of questions ended; 0: none has */
        uint64_t asked_usec;
        uint64_t begun_usec;            /* when the last round began */
        unsigned answered;              /* a bit for each answer since, to continue after an interruption */
        /* with this MAC; 0: not known. The caller sets it */
        unsigned ifindex;
} Eni;
typedef struct Enis {
        char *instance_id, *primary;    /* its MAC */
        bool ipv6;                      /* the VPC has IPv6, so nodestrap asks each for its addresses */
        uint64_t ipv6_usec;             /* of the last such question */
        unsigned answers;               /* of the service, 404 too, since this began; not kept */
        Eni *items; size_t n;           /* in the order of their MACs */
} Enis;
void eni_done(Eni *eni);
void enis_done(Enis *e);
/* The last round of questions was interrupted. */
_nonnull_ bool eni_is_partial(const Eni *eni);
_nonnull_ const Eni *eni_find(const Enis *e, const char *mac);         /* NULL: not listed */

typedef struct EniQuestion {
        /* network cards of this instance type; 0: not known. With one, no question for the card is needed */
        unsigned cards;
        char *const *skip;              /* MACs that need only be listed; or NULL */
        uint64_t older_usec;            /* asks again where answers are older */
        /* asks again what was missing in older answers, and for IPv6 if there was none */
        uint64_t late_usec;
        uint64_t until_usec;            /* from then on asks only those of `again`; 0: no limit */
        /* MACs to ask first, even with recent answers, for what they lack, or for all; or NULL */
        char *const *again;
} EniQuestion;
/* Will it ask for the list? */
_nonnull_ bool enis_want_list(const Enis *e, const EniQuestion *question);
/* Completes what is known: instance id, primary MAC and IPv6 once, and the list if it lacks a MAC of `again`.
 * Then it asks for every interface that is not in `skip`: three requests each, and two more with IPv6. The
 * primary one is card 0, device 0 by definition. A 404 is not an error: the value stays -1 or NULL. Without
 * the primary MAC it asks nothing further. It asks for IPv4 prefixes on card 0, or with up to four
 * interfaces. A failure has a diagnostic, and all answers stay. Garbage about the instance is a failure
 * (-EBADMSG); about a MAC of `again` too, after all other questions; about another interface, a warning. 1:
 * until_usec left some unasked. */
_must_check_ _nonnull_ int enis_ask(Imds *imds, const EniQuestion *question, Enis *e, Diag *diag);
/* For the next process; enis_from_json() ignores invalid data. */
json_t *enis_to_json(const Enis *e);
_nonnull(2) void enis_from_json(const json_t *json, Enis *ret);

/* The answers of the metadata service about interfaces. At boot each interface has a process; the first asks
 * for all. */
#define SNAPSHOT_FILE RUN_DIR "/interfaces.json"
#define SNAPSHOT_LOCK RUN_DIR "/interfaces.lock" /* held (lock_take()) from the read to the write */

typedef struct Snapshot {
        Enis enis;
        /* CLOCK_MONOTONIC: the last question for the list; 0: none yet */
        uint64_t listed_usec;
        uint64_t failed_usec; /* when the service last failed; 0: it has answered since */
        char *failure;        /* the error */
} Snapshot;
void snapshot_done(Snapshot *s);
/* Empty, with a warning, if it cannot be read; without one if none is kept, or only of another boot. */
_nonnull_ void snapshot_read(const Root *root, Snapshot *ret, Diag *diag);
/* Warns if it cannot be written: the next process asks again. */
_nonnull_ void snapshot_write(const Root *root, const Snapshot *s, Diag *diag);
/* Asks for the instance id, if it is not known. 0 also without an answer. */
_must_check_ _nonnull_ int snapshot_identify(Snapshot *s, Imds *imds, Diag *diag);
/* enis_ask(). Notes a failure of the service with its diagnostic, but not one about a single interface. An
 * answer clears the note. 1: others are unasked; 2: the time ended after some answers, go on at once. */
_must_check_ _nonnull_ int snapshot_ask(Snapshot *s, Imds *imds, const EniQuestion *question, Diag *diag);
/* Forgets that interface. */
_nonnull_ void snapshot_drop(Snapshot *s, const char *mac);
