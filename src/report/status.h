/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* status.json: what the runs of this boot did, and what that makes of the boot; for people and programs. */
#include "base/paths.h"
#include "base/root.h"
#include "base/str.h"
#include <jansson.h>

#define REPORT_STATUS  RUN_DIR "/status.json"
#define REPORT_METRICS RUN_DIR "/metrics.prom"
#define REPORT_MODE    0640     /* for root and the group of RUN_DIR, which units/nodestrap.tmpfiles gives to
                                 * those who may read the journal: a daemon's last words are in both */

/* ---- what it says ----
 * Older and newer programs read it by one rule: a member never changes its meaning, and another meaning gets
 * a new name. So no version is refused. A reader passes over members that it does not know. They stay in the
 * parts of other runs when a run writes its own. "version" is of the last writer.
 * Any member may be missing: a text is "" then, a number 0, a list NULL. Numbers are 0 to 2^52, so that none
 * that a damaged file holds overflows when it is reckoned with. _usec is µs of CLOCK_MONOTONIC: 0 where it
 * never came to that. A list ends with an element whose first member is 0. */

typedef struct StatusWord { const char *text; } StatusWord;

/* Of the critical path, of the longest, or in hand. */
typedef struct StatusStep {
        const char *id, *run;           /* run: its key; "" of one in hand */
        const char *phase;              /* of the critical path alone; "" of its wait for cloud-init */
        int64_t begin_usec, end_usec;
        int64_t usec;                   /* of the longest alone: µs that it took */
} StatusStep;

typedef struct StatusAction {
        const char *id, *phase, *outcome;
        const char *text;               /* of a failure or a skip, lines */
        int64_t begin_usec, end_usec;
        StatusWord *after;              /* ids of the same run */
        json_t *found;                  /* Result.found, or NULL */
        bool critical;                  /* on the critical path */
} StatusAction;

typedef struct StatusRun {
        const char *phases;             /* its key, "devices,run": never missing */
        const char *verdict, *ended_at; /* "2026-01-02T03:04:05Z" */
        const char *phase;              /* in which it failed; "" where it did not */
        int64_t begin_usec, end_usec;
        int64_t tries;
        int64_t imds_requests, ec2_requests;    /* -1: missing */
        StatusWord *errors, *warnings;
        StatusAction *actions;
} StatusRun;

typedef struct StatusPhase {
        const char *phase, *verdict;
        int64_t begin_usec, end_usec;
        StatusStep *steps;              /* in hand; NULL where no process says so */
} StatusPhase;

/* joined.json. */
typedef struct StatusJoin {
        const char *verdict, *code, *step, *text, *node, *cluster;
        int64_t exit, begin_usec, end_usec, registered_usec, ready_usec;
} StatusJoin;

/* How many GPUs are in that state. Of one GPU the words that were found; NULL: none were looked for. A
 * finding: gpu is -1 where it is about another device. */
typedef struct StatusCount { const char *state; int64_t n; } StatusCount;
typedef struct StatusGpu { const char *address; int64_t index; StatusWord *health; } StatusGpu;
typedef struct StatusFinding { const char *word, *text, *address; int64_t gpu; } StatusFinding;
typedef struct StatusHealth {
        const char *gpudirect;
        bool complete;
        StatusFinding *findings;
        StatusWord *looks;
} StatusHealth;
/* Bytes of one, how many of them, and of which NUMA node; -1: over all. */
typedef struct StatusPages { int64_t size, requested, got, node; } StatusPages;

typedef struct Status {
        json_t *json;                   /* the whole of it, which all texts are borrowed from; or NULL */
        void *memory;                   /* of the lists */
        const char *version, *boot_id, *booted_at, *plan_id, *next;
        const char *verdict, *code, *step, *text;
        const char *phase;              /* in which it failed; "" */
        int64_t exit, now_usec;         /* now_usec: by phases_put(), of the machine itself alone */
        struct { const char *host, *instance_id, *instance_type, *region, *cluster, *name; } node;
        StatusRun *runs;                /* in the order in which they ended */
        StatusStep *path, *longest;     /* path: the critical one, first to last */
        StatusPhase *phases;
        StatusJoin *joined;             /* or NULL */
        struct {
                const char *driver, *cluster_uuid;
                int64_t listed, clique_id;      /* -1: missing */
                int64_t mig_devices;
                StatusCount *states;
                StatusGpu *gpus;
                StatusHealth *health;   /* or NULL */
        } accelerator;
        StatusPages *pages;
} Status;

/* What json says, whose reference it takes; what s held before is released. */
_nonnull(1) void status_take(Status *s, json_t *json);
void status_done(Status *s);
/* What the last run left, with joined.json of this boot. -ENOENT where there was none, -EBADMSG where it is
 * damaged: then ret is as of nothing. */
_must_check_ _nonnull_ int status_read(const Root *root, Status *ret);
/* The run of that key, and the last one that did this phase, or tried to; or NULL. */
_nonnull_ StatusRun *status_run(const Status *s, const char *phases);
_nonnull_ StatusRun *status_last(const Status *s, const char *phase);
/* The wait of a boot that went well by itself, and whose node the cluster lacks or has not Ready; or NULL. */
_nonnull_ const StatusJoin *status_not_joined(const Status *s);
/* How many actions ended how, by Outcome; a step that one phase has done and a later one found done is one
 * that was done. */
_nonnull_ void status_count(const Status *s, size_t counts[static 5]);

/* ---- how it is made ---- */

/* Of this program, as a status has it. */
extern const char status_version[];

/* The keys of "runs", in the order of the phases: which of them one process did. */
extern const char status_phases[7][19];
/* Until the descriptor is closed no other process makes and writes a status; < 0: it is made all the same. */
_must_check_ _nonnull_ int status_lock(const Root *root);
struct Report;
struct Verdict;
/* The file's new content: this run, beside what is there of other phases of the same boot. */
_nonnull_ void status_make(const Root *root, const struct Report *report, const struct Verdict *v,
                           uint64_t end_usec, Status *ret);
/* What this machine, or that below root, calls itself; "" where it does not say. */
_malloc_ _nonnull_ char *status_host(const Root *root);
/* "accelerator" and "hugepages", from actions[].found of all runs; nothing is put where nothing was found. */
_nonnull_ void found_put(json_t *status, const Status *runs);
/* "criticalPath": {run, id, phase, beginUsec, endUsec}. It leads from the start of kubelet back, always to
 * the step that had to end before and ended last. "cloud-init" is not an action: it is the wait between the
 * configuration phase and the run phase. Nothing is put where no kubelet was started. */
_nonnull_ void critical_put(json_t *status, const Status *runs);
/* The longest steps: "longest", a list of {run, id, usec}. */
_nonnull_ void longest_put(Status *s);

/* ---- what goes on now ---- */

typedef enum UnitWork { UNIT_IDLE, UNIT_WAITS, UNIT_WORKS } UnitWork;
/* Of the phases, and of the wait for the cluster behind them. */
enum { ONGOING_CONFIG, ONGOING_DEVICES, ONGOING_RUN, ONGOING_JOIN, _ONGOING_MAX };
typedef struct Ongoing {
        UnitWork units[_ONGOING_MAX];
        json_t *processes;              /* progress_read() */
        int64_t now_usec;               /* by the clock of the status; 0: not known */
} Ongoing;
/* "phases", and what they make of the "verdict" of the boot: one that is not over is not ok. A phase is ok,
 * tainted, failed, held (one before it has failed), not begun, waiting or running. A boot is ok, tainted,
 * failed, unfinished, waiting or running. ongoing NULL: by what was written alone. */
_nonnull(1) void phases_put(Status *s, const Ongoing *ongoing);
/* What to look at first, as a command: "next"; nothing where all is well. */
_nonnull_ void next_put(Status *s);

/* ---- for people and programs ---- */

/* `nodestrap status`, on stdout: eight lines at most, or with all that there is. */
_nonnull_ void status_show(const Root *root, const Status *s, bool whole);
/* A document of its own (SVG 1.1): time since the kernel started from left to right, a line for each phase,
 * action and wait. A title of each has all that is known of it. */
_malloc_ _nonnull_ char *status_draw(const Status *s);
/* For the textfile collector of node_exporter. actions: also a series for each of them, of which there may be
 * a hundred. */
_malloc_ _nonnull_ char *metrics_make(const Status *s, bool actions);
/* The two lines above a gauge's values. */
_nonnull_ void metric_head(Text *t, const char *name, const char *help);
/* Whole lines, or "". */
_nonnull_ _malloc_ char *found_text(const Status *s);
/* A line, which took longest on the critical path; or "". */
_nonnull_ _malloc_ char *critical_text(const Status *s);
/* Of the critical path: how long the others waited for "config", "devices", "run" or "cloud-init", */
_must_check_ _nonnull_ int64_t critical_share(const Status *s, const char *part);
/* and when it ended, both in µs. */
_must_check_ _nonnull_ int64_t critical_end(const Status *s);
/* The digits of one that may be -1: "". */
_malloc_ char *number_or_none(int64_t n);
