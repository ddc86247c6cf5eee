/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside units/: unit.c, mask.c, await.c and alive.c say which call comes when, bus.c how systemd is called
 * and what it answers. */
#include "apply/engine.h"
#include "apply/units/units.h"

#include <systemd/sd-bus.h>

#define SYSTEMD      "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define UNIT_PATH    MANAGER_PATH "/unit"
#define MANAGER      SYSTEMD ".Manager"
#define ANSWER_USEC  (200 * USEC_PER_MSEC)      /* for a call that the loop waits for */
#define BLOCKERS_MAX 32         /* jobs looked at in search of one that waits for us */

typedef struct UnitState {
        char *load, *active, *sub, *result, *type; /* never NULL once unit_read_all() was called, nor are the
                                                    * next three */
        char *id;                               /* the name that systemd speaks of it by: where the task has
                                                 * an alias, another one */
        char *file;                             /* UnitFileState: "masked", "masked-runtime", "enabled" … */
        char *job;                              /* the D-Bus object of a job that is queued or runs, whoever
                                                 * asked for it; "" */
        uint32_t restarts;
        uint64_t since;                         /* CLOCK_MONOTONIC: when it became active */
        int code, status;                       /* of the main process: CLD_*, exit status or signal */
        bool condition;                         /* the unit's Condition…= were met at the last start */
        bool remains;                           /* RemainAfterExit= */
} UnitState;
void unit_state_done(UnitState *s);

typedef struct Unit Unit;
typedef struct UnitKind {               /* what becomes of the task's unit, and how that is said */
        void (*ended)(Unit *u);         /* the job is gone; job_result and state say how */
        void (*changed)(Unit *u);       /* some of its state has changed; or NULL */
        void (*serves)(Unit *u);        /* containerd serves CRI */
        const char *failed;             /* "did not stay up" */
        bool history;                   /* its words from before this task count, too */
} UnitKind;

struct Unit {
        Task *task;
        const UnitKind *kind;
        const char *name;
        char *path, *job;               /* D-Bus objects; job only while it is queued or runs */
        char *job_result;
        const char *method;
        unsigned written;               /* masks that were, or were taken away */
        bool foreign;                   /* the job is somebody else's: it is waited for and never withdrawn */
        char inputs[65];                /* digest of what it is started with */
        UnitState state;
        uint32_t restarts_before;
        uint64_t begun_usec;            /* when it was started last */
        unsigned calls;                 /* starts that failed; steps of a mask */
        sd_bus_slot *call, *changed, *blockers[BLOCKERS_MAX];
        sd_bus_message *message;        /* of the call, until it is answered */
        sd_bus_message_handler_t reply; /* to that; without a Unit: unit_leave_call() */
        size_t n_blockers;
        sd_event_source *timer;         /* of a look a little later, or of another start */
        bool asks, same;                /* containerd, for CRI; it was up with all it reads */
        sd_event_source *io;
        unsigned char answer[512];
        size_t n_answer;
};

/* A Unit for the task, and systemd asked for its properties: reply calls unit_read_all(). CHECK_LATER, or the
 * task has failed. */
_must_check_ int unit_look(Task *t, const UnitKind *kind, sd_bus_message_handler_t reply);
bool state_runs(const UnitState *s);
/* Keeps the job that the reply names, and ends the task where that job would wait for us. Without a Unit, of
 * a task that is over: withdraws it. */
int unit_on_queued(sd_bus_message *m, void *userdata, sd_bus_error *e);

/* sender: systemd's name on a bus; NULL on the direct line, where nobody else can speak and messages carry no
 * name. lost_usec: since when nothing has come from it; 0: it answers. */
struct Bus {
        sd_bus *bus;
        const char *sender;
        char *own_unit;
        uint64_t lost_usec;
        bool broken;
        bool left;              /* calls of tasks that are over may not be answered yet */
};
bool bus_is_open(const Bus *b);
/* For systemd to take connections again: one with thousands of units needs a second or two. */
#define BUS_RENEW_USEC (15 * USEC_PER_SEC)
/* The task is about to end; reply is called all the same, with no Unit. */
void unit_leave_call(Unit *u);

/* Opens the bus if it is not open yet; with signals, PropertiesChanged of the unit leads to
 * unit_changed(). */
_must_check_ int unit_connect(Unit *u, bool signals);
void unit_disconnect(Unit *u);
/* The call that the unit waits for; an earlier one is forgotten. Fails the task where it cannot be made. */
_must_check_ int unit_call(Unit *u, const char *path, const char *interface, const char *member,
                           sd_bus_message_handler_t reply, const char *types, ...);
_must_check_ int unit_get_all(Unit *u, sd_bus_message_handler_t reply);
/* 0, or the task has failed with what the reply says. */
_must_check_ int unit_reply(Unit *u, sd_bus_message *m);
/* The same, and takes all properties of the unit. */
_must_check_ int unit_read_all(Unit *u, sd_bus_message *m);
void unit_tell(Unit *u, const char *member, const char *name);  /* a call whose answer does not matter */
void job_cancel(sd_bus *bus, const char *job);
/* "a.service, b.mount": whose jobs must end before this one begins; NULL when none. Waits up to 200 ms for
 * the answer. */
char *job_blockers(Unit *u);
/* Is the job, over whatever others, waiting for the unit that this process runs in, which waits for the job?
 * Fails the task. */
void unit_look_for_deadlock(Unit *u, const char *job);
/* Ends the task with what is known of the failure: the unit's result and, unless the action is quiet, the
 * last lines of its journal. */
void unit_fail(Unit *u);
/* The first line of that, about what happened since that instant. */
_malloc_ char *unit_failure(const Unit *u, uint64_t since_usec);
/* Was its last start skipped, because a condition was not met? */
bool unit_was_skipped(const Unit *u);
/* What it means when this unit fails: CAUSE_UNIT, or of some that are known by name something that says
 * more. */
Cause unit_cause(const char *name);

/* cri.c: asks containerd, which is up, whether it serves CRI. Ends in UnitKind.serves(), or fails
 * the task. */
void cri_ask(Unit *u);
/* Of the bytes that containerd has sent so far: 1: it serves CRI, 0: it has none; -EBUSY: not yet; -EAGAIN:
 * more must come. */
int cri_answer(const unsigned char *p, size_t n);

/* record.c: the digest of what it is started with; whether that is what it was started with last; note it. */
void inputs_find(const Root *root, const Action *a, char inputs[static 65]);
bool record_same(const Unit *u);
void record_write(const Unit *u);
/* It goes: the next run starts it again. */
void unit_forget_record(const Unit *u);
