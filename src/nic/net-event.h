/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A network interface has come or gone: what is known of it, what has to be asked for first, and the plan. */
#include "nic/plan/interface.h"
#include "nic/snapshot.h"

#define NET_EVENT_USEC (30 * USEC_PER_SEC)      /* from its begin to its deadline */

typedef struct NetEvent {
        const Root *root;
        const char *name;               /* of the interface */
        bool dry_run;                   /* nothing is written or locked */
        Diag *diag;                     /* takes all that there is to say of it */
        uint64_t begin_usec;            /* when it came: the caller sets it, and all above */
        uint64_t span_usec, deadline_usec;      /* net_event_set_deadline() */
        Imds *imds;
        int lock_fd;                    /* of the interface; <= 0: not held. net_event_done() releases it */
        bool gate;                      /* OSManagedNoManageENIs; like facts.init_ran as it was when the event
                                         * came */
        bool type_known;                /* the instance type, and with it how many cards there are */
        Snapshot snapshot;
        Interfaces interfaces;
        Decisions decisions;
        char **files, **drop_ins, **early, **managed;
        InterfaceFacts facts;           /* points into all of these */
        char *why;                      /* what is missing yet */
        char *failure;                  /* of its last question, if that failed */
        bool alone;                     /* it could not have the snapshot's lock, and asks for itself alone */
        bool goes_on;                   /* the time ended between answers: no pause */
} NetEvent;
void net_event_done(NetEvent *e);
/* NET_EVENT_USEC from its begin. Below another root the file deadline-ms says how long: tests write that
 * before an event, or in its middle, when they have seen enough. */
_nonnull_ void net_event_set_deadline(NetEvent *e);
/* The first look at the machine: the markers, the instance type. */
_must_check_ _nonnull_ int net_event_begin(NetEvent *e);
/* Adds an error of the interface's, which is what all failures end as, and returns r. */
int net_event_error(NetEvent *e, int r, const char *format, ...) _nonnull(1, 3) _printf_(3, 4);
/* The same where r is one, with what found says; a signal stays one. Passes on warnings, each once; found is
 * empty then. Returns r. */
_nonnull_ int net_event_pass(NetEvent *e, int r, Diag *found);
/* Anew: facts.interface, and all others. One that is not there is a failure. */
_must_check_ _nonnull_ int net_event_read_interfaces(NetEvent *e);
/* Anew; the instance's id must be known. */
_must_check_ _nonnull_ int net_event_read_decisions(NetEvent *e);
/* Whose is it, or one of the others? Those whose tags would have to be asked for first are the CNI's here. */
_nonnull_ Manager net_event_manager(const NetEvent *e, const Interface *interface);
/* Asks until enough is known, never longer than until the deadline: then it is a failure. Not
 * JUDGEMENT_LATE. */
_must_check_ _nonnull_ int net_event_look(NetEvent *e, Judgement *ret);

/* ---- the plan (net-event-plan.c) ---- */

/* It has come: *ret stays NULL where it is left alone, and e->why says why. */
_must_check_ _nonnull_ int net_event_plan_addition(NetEvent *e, Plan **ret);
/* It has gone, or there is another one of its name. */
_must_check_ _nonnull_ int net_event_plan_removal(NetEvent *e, Plan **ret);
