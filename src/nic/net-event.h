/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A network interface came or went: its facts, the questions that they need, and the plan. */
#include "nic/plan/interface.h"

#define NET_EVENT_USEC (30 * USEC_PER_SEC)      /* from begin_usec to the deadline */

typedef struct NetEvent {
        const Root *root;
        const char *name;               /* of the interface */
        bool dry_run;                   /* writes and locks nothing */
        Diag *diag;                     /* takes all messages */
        uint64_t begin_usec;            /* of the event; the caller sets it, and all above */
        uint64_t span_usec, deadline_usec;      /* net_event_set_deadline() */
        Imds *imds;
        int lock_fd;                    /* of the interface; <= 0: not held. net_event_done() releases it */
        bool gate;                      /* OSManagedNoManageENIs at the time of the event */
        bool type_known;                /* the instance type is in our table, with its cards */
        Snapshot snapshot;
        Interfaces interfaces;
        Decisions decisions;
        char **files, **drop_ins, **early, **managed;
        InterfaceFacts facts;           /* points into all of these */
        char *why;                      /* the missing fact */
        char *failure;                  /* of the last question */
        bool alone;                     /* without the lock of the snapshot, it asks for itself alone */
        bool goes_on;                   /* the time ended between answers: no pause */
} NetEvent;
void net_event_done(NetEvent *e);
/* Below another root the file deadline-ms replaces NET_EVENT_USEC; tests write it before or during an
 * event. */
_nonnull_ void net_event_set_deadline(NetEvent *e);
/* Reads the markers and the instance type. */
_must_check_ _nonnull_ int net_event_begin(NetEvent *e);
/* Adds an error with the name of the interface; returns r. */
int net_event_error(NetEvent *e, int r, const char *format, ...) _nonnull(1, 3) _printf_(3, 4);
/* The same for a negative r, with the error in found. Passes on each warning once, empties found, returns
 * r. */
_nonnull_ int net_event_pass(NetEvent *e, int r, Diag *found);
/* Reads all interfaces again, and sets facts.interface. -ENODEV: it does not exist. */
_must_check_ _nonnull_ int net_event_read_interfaces(NetEvent *e);
/* Needs the instance id. */
_must_check_ _nonnull_ int net_event_read_decisions(NetEvent *e);
/* Also for other interfaces. Those whose tags are not known count as those of the CNI. */
_nonnull_ Manager net_event_manager(const NetEvent *e, const Interface *interface);
/* Asks until the facts suffice; a failure at the deadline. *ret is not JUDGEMENT_LATE. */
_must_check_ _nonnull_ int net_event_look(NetEvent *e, Judgement *ret);

/* *ret stays NULL for an interface that is left alone; e->why says why. */
_must_check_ _nonnull_ int net_event_plan_addition(NetEvent *e, Plan **ret);
/* The interface has gone, or another one has its name. */
_must_check_ _nonnull_ int net_event_plan_removal(NetEvent *e, Plan **ret);
