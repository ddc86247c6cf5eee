/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* status.json: the runs of this boot, for people and programs. */
#include "base/error.h"
#include "base/paths.h"
#include "base/root.h"
#include "base/str.h"
#include <jansson.h>

#define REPORT_STATUS  RUN_DIR "/status.json"
#define REPORT_METRICS RUN_DIR "/metrics.prom"
#define REPORT_MODE    0640     /* for root and the group of RUN_DIR, which units/nodestrap.tmpfiles sets:
                                 * journal readers. Both quote output of daemons. */

/* ---- content ---- Old and new programs share one rule: a member keeps its meaning, and a new meaning gets
 * a new name. So every version is accepted. A reader ignores unknown members; a writer keeps them in parts
 * of other runs. "version" is of the last writer. A missing member is "", 0 or NULL. Numbers are 0 to 2^52,
 * so that no damaged file makes arithmetic overflow. _usec is µs of CLOCK_MONOTONIC, 0: never. A list ends
 * with an element whose first member is 0. */

typedef struct StatusWord { const char *text; } StatusWord;

/* Of the critical path, of the longest, or current. */
typedef struct StatusStep {
        const char *id, *run;           /* run: its key; "" for a current step */
        const char *phase;              /* critical path only; "" for the wait for cloud-init */
        int64_t begin_usec, end_usec;
        int64_t usec;                   /* longest only: duration in µs */
} StatusStep;

typedef struct StatusAction {
        const char *id, *phase, *outcome;
        const char *text;               /* of a failure or a skip */
        int64_t begin_usec, end_usec;
        StatusWord *after;              /* ids of the same run */
        json_t *found;                  /* Result.found, or NULL */
        bool critical;                  /* on the critical path */
} StatusAction;

typedef struct StatusRun {
        const char *phases;             /* its key, "devices,run": never missing */
        const char *verdict, *ended_at; /* "2026-01-02T03:04:05Z" */
        const char *phase;              /* in which it failed, or "" */
        int64_t begin_usec, end_usec;
        int64_t tries;
        int64_t imds_requests, ec2_requests;    /* -1: missing */
        StatusWord *errors, *warnings;
        StatusAction *actions;
} StatusRun;

typedef struct StatusPhase {
        const char *phase, *verdict;
        int64_t begin_usec, end_usec;
        StatusStep *steps;              /* current; NULL: not known */
} StatusPhase;

/* joined.json. */
typedef struct StatusJoin {
        const char *verdict, *code, *step, *text, *node, *cluster;
        const char *devices, *lack;     /* of the last wait for devices: its code, "": none, and its text */
        int64_t exit, begin_usec, end_usec, registered_usec, ready_usec;
} StatusJoin;

/* Count: GPUs in this state. Gpu: health is NULL without a check; tested: by prove-gpus, and rates in bytes a
 * second, 0: not measured. Finding: gpu is -1 for another device. */
enum { STATUS_RATES = 4 };
extern const char *const status_rates[STATUS_RATES];    /* the kinds, as metrics have them */
typedef struct StatusCount { const char *state; int64_t n; } StatusCount;
typedef struct StatusGpu {
        const char *address;
        int64_t index;
        StatusWord *health;
        int64_t tested, rates[STATUS_RATES];
} StatusGpu;
typedef struct StatusFinding {
        const char *word, *text, *address;
        const char *reason;             /* of a repair, or "" */
        int64_t gpu;
} StatusFinding;
typedef struct StatusHealth {
        const char *gpudirect;
        bool complete;
        StatusFinding *findings;
        StatusWord *looks;
} StatusHealth;
/* size in bytes; node -1: all NUMA nodes. */
typedef struct StatusPages { int64_t size, requested, got, node; } StatusPages;

typedef struct Status {
        json_t *json;                   /* owns all texts; or NULL */
        void *memory;
        const char *version, *boot_id, *booted_at, *plan_id, *next;
        const char *verdict, *code, *step, *text;
        const char *phase;              /* in which it failed, or "" */
        int64_t exit, now_usec;         /* now_usec: set by phases_put() on the machine itself */
        struct { const char *host, *instance_id, *instance_type, *region, *cluster, *name; } node;
        StatusRun *runs;                /* in the order of their ends */
        StatusStep *path, *longest;     /* path: the critical path */
        StatusPhase *phases;
        StatusJoin *joined;             /* or NULL */
        struct {
                const char *driver, *cluster_uuid;
                int64_t listed, clique_id;      /* -1: missing */
                int64_t mig_devices;
                bool expects;                   /* spec.cluster.expectDevices */
                StatusCount *states;
                StatusGpu *gpus;
                StatusHealth *health, *prove; /* or NULL */
        } accelerator;
        StatusPages *pages;
} Status;

/* Takes the reference of json; releases what s had. */
_nonnull(1) void status_take(Status *s, json_t *json);
void status_done(Status *s);
/* status.json with joined.json of this boot. -ENOENT: no file, -EBADMSG: damaged; then ret is empty. */
_must_check_ _nonnull_ int status_read(const Root *root, Status *ret);
/* The run of that key, and the last one with this phase; or NULL. */
_nonnull_ StatusRun *status_run(const Status *s, const char *phases);
_nonnull_ StatusRun *status_last(const Status *s, const char *phase);
/* The wait of a boot that itself went well, but whose node is missing or not Ready; or NULL. */
_nonnull_ const StatusJoin *status_not_joined(const Status *s);
/* Of a boot that went well, and left kubelet down for a warm pool: the sentence; or NULL. */
_nonnull_ const char *status_pool(const Status *s);
/* Has the node joined, without all its devices? */
_nonnull_ bool join_lacks_devices(const StatusJoin *joined);
/* The devices that init counted, for JoinTask; NULL: no run phase has ended yet. */
_nonnull_ json_t *status_devices(const Root *root);
/* Counts actions by Outcome; a step that one phase did and a later one found done counts as done. */
_nonnull_ void status_count(const Status *s, size_t counts[static 5]);

/* ---- how it is made ---- */

extern const char status_version[];

/* The keys of "runs": the phases of one process. */
extern const char status_phases[7][19];
/* Holds off other writers until closed; < 0: no lock, write anyway. */
_must_check_ _nonnull_ int status_lock(const Root *root);
struct Report;
struct Verdict;
/* The new content: this run, and other runs of this boot. */
_nonnull_ void status_make(const Root *root, const struct Report *report, const struct Verdict *v,
                           uint64_t end_usec, Status *ret);
/* The host name of the system below root; "": not known. */
_malloc_ _nonnull_ char *status_host(const Root *root);
/* "accelerator" and "hugepages", from actions[].found of all runs, if there are any. */
_nonnull_ void found_put(json_t *status, const Status *runs);
/* "criticalPath": {run, id, phase, beginUsec, endUsec}, back from the start of kubelet, each time to the
 * predecessor that ended last. "cloud-init" stands for the wait between the config and run phases. Nothing
 * if kubelet was not started. */
_nonnull_ void critical_put(json_t *status, const Status *runs);
/* "longest": {run, id, usec}. */
_nonnull_ void longest_put(Status *s);

/* ---- current work ---- */

typedef enum UnitWork { UNIT_IDLE, UNIT_WAITS, UNIT_WORKS } UnitWork;
/* The phases, and the wait for the cluster. */
enum { ONGOING_CONFIG, ONGOING_DEVICES, ONGOING_RUN, ONGOING_JOIN, _ONGOING_MAX };
typedef struct Ongoing {
        UnitWork units[_ONGOING_MAX];
        json_t *processes;              /* progress_read() */
        int64_t now_usec;               /* CLOCK_MONOTONIC; 0: not known */
} Ongoing;
/* "phases", and with them "verdict" of the boot. A phase is ok, tainted, failed, held (an earlier one
 * failed), not begun, waiting or running. A boot is ok, tainted, failed, unfinished, waiting or running.
 * ongoing NULL: by the file only. */
_nonnull(1) void phases_put(Status *s, const Ongoing *ongoing);
/* "next": a command to find out more; nothing if all is well. */
_nonnull_ void next_put(Status *s);

/* ---- for people and programs ---- */

/* `nodestrap status`, on stdout: eight lines at most, or everything. */
_nonnull_ void status_show(const Root *root, const Status *s, bool whole);
/* SVG 1.1: time since the kernel started, a line for each phase, action and wait, with a title that has
 * everything about it. */
_malloc_ _nonnull_ char *status_draw(const Status *s);
/* For the textfile collector of node_exporter. actions: also a series for each action, maybe a hundred. */
_malloc_ _nonnull_ char *metrics_make(const Status *s, bool actions);
/* The two lines above a gauge. */
_nonnull_ void metric_head(Text *t, const char *name, const char *help);
/* Lines, or "". */
_nonnull_ _malloc_ char *found_text(const Status *s);
/* A line with the longest steps of the critical path, or "". */
_nonnull_ _malloc_ char *critical_text(const Status *s);
/* On the critical path: time in "config", "devices", "run" or "cloud-init", */
_must_check_ _nonnull_ int64_t critical_share(const Status *s, const char *part);
/* and its end, both in µs. */
_must_check_ _nonnull_ int64_t critical_end(const Status *s);
/* -1 becomes "". */
_malloc_ char *number_or_none(int64_t n);

/* ---- progress.c: lines of base/progress.h ---- */

typedef struct ProgressLine {
        int64_t usec;
        int pid;
        const char *word, *what;        /* point into the text */
} ProgressLine;
/* Passes each well-formed line of text to f, and writes NULs into the text. Returns the size of the whole
 * lines. */
_nonnull(1, 2) size_t progress_parse(char *text, void (*f)(const ProgressLine *line, void *userdata),
                                     void *userdata);
/* userdata: a JSON object with the processes that have not ended, by pid. */
_nonnull_ void progress_take(const ProgressLine *line, void *userdata);
/* A current step of the process, or NULL. */
_nonnull(2) const json_t *progress_step(const json_t *process, const char *id);
/* Each init that runs now, with its current steps: [{"pid", "phases", "beginUsec", "steps": [{"id",
 * "beginUsec"}]}]. A new reference. */
_nonnull_ json_t *progress_read(const Root *root);

/* ---- outlook.c: what `nodestrap wait` can still expect ---- */

/* Does init run now, or will a unit of this boot run it? */
_must_check_ _nonnull_ bool outlook_has_init(const Root *root);
struct JoinOutcome;
/* true: init has failed, or prepares a warm pool (CAUSE_NONE), and will not run again in this boot, so
 * kubelet does not start. Replaces cause and text of ret. */
_must_check_ _nonnull_ bool outlook_is_lost(const Root *root, struct JoinOutcome *ret);
_nonnull_ void ongoing_done(Ongoing *ongoing);
/* status.json and current work. If no init has ended: empty on the machine itself or with any, else -ENOENT.
 * Errors have a diagnostic. */
_must_check_ _nonnull_ int status_now(const Root *root, bool any, Status *ret, Diag *diag);
/* The exit code of init: a tainted node is ok. EXIT_UNFINISHED: no verdict yet. */
_must_check_ _nonnull_ ExitCode status_exit(const Status *s);
