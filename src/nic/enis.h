/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The network interfaces of this instance, as the metadata service has them
 * (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-categories.html). It has them late:
 * an interface may be in the machine for seconds before it is listed, or before its card and device number
 * are told (amazonlinux/amazon-ec2-net-utils#105, #153). */
#include "aws/aws.h"

typedef struct Eni {
        char *mac;                      /* "0a:1b:2c:3d:4e:5f" */
        int card, device;               /* -1: not told (yet) */
        char **ipv4s, **ipv6s;          /* its addresses, the primary one first; NULL: none (yet) */
        char **ipv4_prefixes, **ipv6_prefixes;  /* delegated to it: "10.0.1.16/28"; NULL: none */
        uint64_t asked_usec;            /* CLOCK_MONOTONIC of this boot: when all had been asked for that was
                                         * to be; 0: it is listed, and nobody has got so far */
        uint64_t begun_usec;            /* when that was begun last */
        unsigned answered;              /* and a bit for each answer since, so that who goes on where somebody
                                         * was cut off does not ask for it again */
        unsigned ifindex;               /* of the interface that had the MAC then; 0: not known. For who keeps
                                         * it: enis_ask() knows nothing of the machine */
} Eni;
typedef struct Enis {
        char *instance_id, *primary;    /* primary: the MAC */
        bool ipv6;                      /* their VPC has IPv6, so that each is asked for its addresses */
        uint64_t ipv6_usec;             /* when that was asked for */
        unsigned answers;               /* of the service, 404 too, since this was made; it is not kept */
        Eni *items; size_t n;           /* in the order of their MACs */
} Enis;
void enis_done(Enis *e);
/* Somebody was cut off before all that was to be asked for had been. */
_nonnull_ bool eni_is_partial(const Eni *eni);
_nonnull_ const Eni *eni_find(const Enis *e, const char *mac);         /* NULL: it is not listed */

typedef struct EniQuestion {
        unsigned cards;                 /* network cards of this instance type; 0: not known. With one, nobody
                                         * needs to ask on which an interface is */
        char *const *skip;              /* MACs of which nothing but that they are there need be known; or
                                         * NULL */
        uint64_t older_usec;            /* those that were asked before this instant are asked again */
        uint64_t late_usec;             /* of those that lack something, and were asked before this instant,
                                         * that is asked again; and whether there is IPv6, where there was
                                         * none */
        uint64_t until_usec;            /* from then on only those of `again` are asked; 0: there is time */
        char *const *again;             /* MACs that are asked first, however young their answers, for what
                                         * they lack, or for all where they lack nothing; or NULL */
} EniQuestion;
/* Completes what is known: instance id, primary MAC and whether there is IPv6 once; the list, where a MAC of
 * `again` is not in it; then every interface that is not to be skipped, with three requests each and two more
 * where there is IPv6. The primary one is card 0, device 0 by definition and needs none. A 404 is no error:
 * that stays -1 or NULL, and where the primary MAC is not told, nothing further is asked. IPv4 prefixes are
 * asked for where an interface is on card 0, or there are four at most. On a failure, with a diagnostic, what
 * is known already stays, each answer of an interface, too. Garbage is a failure (-EBADMSG) about the
 * instance and, once all others have been asked, about a MAC of `again`; of another one it is a warning and
 * stays -1 or NULL, for whoever needs it to ask again. 1 where until_usec has left some unasked. */
_must_check_ _nonnull_ int enis_ask(Imds *imds, const EniQuestion *question, Enis *e, Diag *diag);
/* As it is kept for the next process; enis_from_json() takes what it does not understand for not known. */
json_t *enis_to_json(const Enis *e);
_nonnull(2) void enis_from_json(const json_t *json, Enis *ret);
