/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Inside units/: bus.c makes calls and reads replies; the other files decide which. */
#include "apply/engine.h"
#include "apply/units/units.h"

#include <systemd/sd-bus.h>

#define SYSTEMD      "org.freedesktop.systemd1"
#define MANAGER_PATH "/org/freedesktop/systemd1"
#define UNIT_PATH    MANAGER_PATH "/unit"
#define MANAGER      SYSTEMD ".Manager"
#define ANSWER_USEC  (200 * USEC_PER_MSEC)      /* for synchronous calls */
#define BLOCKERS_MAX 32         /* jobs followed in search of a deadlock */

typedef struct UnitState {
        char *load, *active, *sub, *result, *type; /* all strings non-NULL after unit_read_all() */
        char *id;                               /* primary name; the task may use an alias */
        char *file;                             /* UnitFileState: "masked", "masked-runtime", "enabled" … */
        char *job;                              /* object path of the current job of any client; or "" */
        uint32_t restarts;
        uint64_t since;                         /* CLOCK_MONOTONIC: when it became active */
        int code, status;                       /* of the main process: CLD_*, exit status or signal */
        bool condition;                         /* Condition…= were met at the last start */
        bool remains;                           /* RemainAfterExit= */
} UnitState;
void unit_state_done(UnitState *s);

typedef struct Unit Unit;
typedef struct UnitKind {               /* callbacks and words of an action */
        void (*ended)(Unit *u);         /* the job ended; see job_result and state */
        void (*changed)(Unit *u);       /* state changed; or NULL */
        void (*serves)(Unit *u);        /* containerd serves CRI */
        const char *failed;             /* "did not stay up" */
        bool history;                   /* quote journal lines from before this task */
} UnitKind;

struct Unit {
        Task *task;
        const UnitKind *kind;
        const char *name;
        char *path, *job;               /* D-Bus objects; job: while queued or running */
        char *job_result;
        const char *method;
        unsigned written;               /* masks written or removed */
        bool foreign;                   /* the job belongs to another client: never cancel it */
        char inputs[65];                /* digest of its start */
        UnitState state;
        uint32_t restarts_before;
        uint64_t begun_usec;            /* last start */
        unsigned calls;                 /* failed starts; steps of a mask */
        sd_bus_slot *call, *changed, *blockers[BLOCKERS_MAX];
        sd_bus_message *message;        /* of the call, until its reply */
        sd_bus_message_handler_t reply; /* handler; without a Unit: unit_leave_call() */
        size_t n_blockers;
        sd_event_source *timer;         /* for a later check or start */
        bool asks, same;                /* containerd: CRI check; unchanged */
        sd_event_source *io;
        unsigned char answer[512];
        size_t n_answer;
};

/* Makes a Unit and requests its properties; reply must call unit_read_all(). CHECK_LATER, or the task has
 * failed. */
_must_check_ int unit_look(Task *t, const UnitKind *kind, sd_bus_message_handler_t reply);
bool state_runs(const UnitState *s);
/* Includes the pause between restarts, where the state may be "failed" for a moment since v254. */
bool state_is_busy(const UnitState *s);
/* Keeps the job of the reply, and fails the task on a deadlock. Without a Unit: cancels the job. */
int unit_on_queued(sd_bus_message *m, void *userdata, sd_bus_error *e);

/* sender: NULL on the private socket, whose messages have no sender. lost_usec: since when the connection is
 * lost; or 0. */
struct Bus {
        sd_bus *bus;
        const char *sender;
        char *own_unit;
        uint64_t lost_usec;
        bool broken;
        bool left;              /* calls of ended tasks may be pending */
};
bool bus_is_open(const Bus *b);
/* systemd with thousands of units needs a second or two. */
#define BUS_RENEW_USEC (15 * USEC_PER_SEC)
/* The task is about to end; reply still runs, without a Unit. */
void unit_leave_call(Unit *u);

/* Opens the bus. signals: PropertiesChanged calls on_changed(). */
_must_check_ int unit_connect(Unit *u, bool signals);
void unit_disconnect(Unit *u);
/* Replaces an earlier call. Fails the task on error. */
_must_check_ int unit_call(Unit *u, const char *path, const char *interface, const char *member,
                           sd_bus_message_handler_t reply, const char *types, ...);
_must_check_ int unit_get_all(Unit *u, sd_bus_message_handler_t reply);
/* 0, or the task has failed with the error of the reply. */
_must_check_ int unit_reply(Unit *u, sd_bus_message *m);
_must_check_ int unit_read_all(Unit *u, sd_bus_message *m);
void unit_tell(Unit *u, const char *member, const char *name);  /* ignores the reply */
void job_cancel(sd_bus *bus, const char *job);
/* "a.service, b.mount": jobs that must end before this one; or NULL. Waits up to 200 ms. */
char *job_blockers(Unit *u);
/* Fails the task if the job waits, also indirectly, for the unit of this process. */
void unit_look_for_deadlock(Unit *u, const char *job);
/* Fails the task with the result of the unit and, unless quiet, its last journal lines. */
void unit_fail(Unit *u);
_malloc_ char *unit_failure(const Unit *u, uint64_t since_usec);
bool unit_was_skipped(const Unit *u);
Cause unit_cause(const char *name);

/* cri.c: asks a running containerd for CRI; calls UnitKind.serves() or fails the task. */
void cri_ask(Unit *u);
/* 1: serves CRI, 0: no CRI, -EBUSY: not yet, -EAGAIN: incomplete. */
int cri_answer(const unsigned char *p, size_t n);

/* record.c: digest of the inputs; compares and writes the record. */
void inputs_find(const Root *root, const Action *a, char inputs[static 65]);
bool record_same(const Unit *u);
void record_write(const Unit *u);
void unit_forget_record(const Unit *u);
