/* SPDX-License-Identifier: Apache-2.0
 * status.json → metrics.prom, in the text format of Prometheus
 * (prometheus.io/docs/instrumenting/exposition_formats). */
#include "report/metrics.h"

#include "apply/apply.h"
#include "base/json.h"
#include "base/time.h"
#include "report/critical.h"
#include "report/device-report.h"
#include "report/status.h"

#include <stdio.h>
#include <time.h>

static char *label_escape(const char *value) {
        Text t = {};
        for (; *value; value++)
                if (*value == '\n')
                        text_add(&t, "\\n");
                else
                        text_add(&t, "%s%c", *value == '"' || *value == '\\' ? "\\" : "", *value);
        return text_take(&t);
}

static double seconds_of(const json_t *object) {
        json_int_t begin = json_integer_value(json_object_get(object, "beginUsec")),
                   end = json_integer_value(json_object_get(object, "endUsec"));
        return begin > 0 && end > begin ? (double)(end - begin) / USEC_PER_SEC : 0;
}

void metric_head(Text *t, const char *name, const char *help) {
        text_add(t, "# HELP nodestrap_%s %s\n# TYPE nodestrap_%s gauge\n", name, help, name);
}

static void metrics_verdict(Text *t, const json_t *status) {
        _cleanup_(freep) char *step = label_escape(json_get_text(status, "step"));
        metric_head(t, "verdict", "1 for the verdict of this boot");
        text_add(t, "nodestrap_verdict{verdict=\"%s\",code=\"%s\",step=\"%s\"} 1\n",
                 json_get_text(status, "verdict"), json_get_text(status, "code"), step);
        metric_head(t, "info", "version and plan of this boot");
        text_add(t, "nodestrap_info{version=\"%s\",plan=\"%s\"} 1\n", json_get_text(status, "version"),
                 json_get_text(status, "planId"));
        metric_head(t, "exit_code", "exit status of the root cause, 0 if there is none");
        text_add(t, "nodestrap_exit_code %lld\n",
                 (long long)json_integer_value(json_object_get(status, "exit")));
        metric_head(t, "tainted",
                    "1 where the node joins with a taint, because a step failed that its policy tolerates");
        text_add(t, "nodestrap_tainted %d\n", streq(json_get_text(status, "verdict"), "tainted"));
}

static void metrics_runs(Text *t, json_t *runs) {
        const char *phases, *name;
        json_t *run, *count;
        metric_head(t, "phase_duration_seconds", "time from the start of the process to its report");
        json_object_foreach(runs, phases, run) {
                text_add(t, "nodestrap_phase_duration_seconds{phase=\"%s\"} %.6f\n", phases, seconds_of(run));
        }
        metric_head(t, "requests", "requests sent, retries counted");
        json_object_foreach(runs, phases, run) {
                json_object_foreach(json_object_get(run, "requests"), name, count) {
                        text_add(t, "nodestrap_requests{phase=\"%s\",service=\"%s\"} %lld\n", phases, name,
                                 (long long)json_integer_value(count));
                }
        }
        metric_head(t, "warnings", "warnings about the input and the machine");
        json_object_foreach(runs, phases, run) {
                text_add(t, "nodestrap_warnings{phase=\"%s\"} %zu\n", phases,
                         json_array_size(json_object_get(run, "warnings")));
        }
}

/* One that is not over is told by its verdict alone: who scrapes comes again. */
static void metrics_phases(Text *t, const json_t *status) {
        const json_t *entry;
        size_t i;
        metric_head(t, "phase_verdict", "1 for what became of each phase of this boot");
        json_array_foreach(json_object_get(status, "phases"), i, entry)
                text_add(t, "nodestrap_phase_verdict{phase=\"%s\",verdict=\"%s\"} 1\n",
                         json_get_text(entry, "phase"), json_get_text(entry, "verdict"));
}

/* "2026-01-02T03:04:05Z" */
static void metrics_time(Text *t, const char *name, const char *help, const char *when) {
        struct tm utc = {};
        if (!strptime(when, "%Y-%m-%dT%H:%M:%SZ", &utc))
                return;
        metric_head(t, name, help);
        text_add(t, "nodestrap_%s %lld\n", name, (long long)timegm(&utc));
}

static void metrics_times(Text *t, const json_t *status) {
        const char *last = "", *key;
        json_t *run;
        json_object_foreach(json_object_get(status, "runs"), key, run) {
                last = json_get_text(run, "endedAt");
        }
        metrics_time(t, "boot_timestamp_seconds", "when the kernel started, seconds since 1970",
                     json_get_text(status, "bootedAt"));
        metrics_time(t, "last_run_timestamp_seconds", "when init ended last, seconds since 1970", last);
}

/* The chain of steps that kubelet waited for, summed up by who had it in hand. */
static void metrics_chain(Text *t, const json_t *status) {
        static const char *const links[] = { "config", "devices", "run", "cloud-init" };
        const json_t *path = json_object_get(status, "criticalPath");
        if (json_array_size(path) == 0)
                return;
        metric_head(t, "critical_path_seconds", "how much of the time until kubelet's start each part took");
        for (size_t i = 0; i < ARRAY_SIZE(links); i++)
                text_add(t, "nodestrap_critical_path_seconds{part=\"%s\"} %.6f\n", links[i],
                         (double)critical_share(path, links[i]) / USEC_PER_SEC);
        metric_head(t, "kubelet_started_seconds", "from the start of the kernel until kubelet was started");
        text_add(t, "nodestrap_kubelet_started_seconds %.6f\n", (double)critical_end(path) / USEC_PER_SEC);
}

static void metrics_actions(Text *t, json_t *runs) {
        const char *phases;
        size_t i;
        json_t *run, *action;
        metric_head(t, "action_duration_seconds", "how long each action took");
        json_object_foreach(runs, phases, run) {
                json_array_foreach(json_object_get(run, "actions"), i, action) {
                        int outcome = outcome_from_string(json_get_text(action, "outcome"));
                        _cleanup_(freep) char *id = label_escape(json_get_text(action, "id"));
                        if (outcome != OUTCOME_SKIPPED)
                                text_add(t,
                                         "nodestrap_action_duration_seconds{phase=\"%s\",action=\"%s\"} "
                                         "%.6f\n",
                                         phases, id, seconds_of(action));
                }
        }
}

static void metrics_outcomes(Text *t, json_t *runs) {
        size_t counts[OUTCOME_FAILED + 1] = {}, i;
        status_count(runs, counts);
        metric_head(t, "actions", "actions by outcome");
        for (i = OUTCOME_UNCHANGED; i < ARRAY_SIZE(counts); i++)
                text_add(t, "nodestrap_actions{outcome=\"%s\"} %zu\n", outcome_to_string((Outcome)i),
                         counts[i]);
}

/* ---- what was found; GPU states, NVIDIA's words, need no escapes ---- */

static void metrics_accelerator(Text *t, json_t *accelerator) {
        const char *uuid = json_string_value(json_object_get(accelerator, "clusterUuid")), *state;
        json_t *states = json_object_get(accelerator, "states"), *count;
        if (json_is_integer(json_object_get(accelerator, "cliqueId"))) {
                metric_head(
                        t, "fabric_info",
                        "the NVLink fabric that all GPUs have joined, no UUID where it ends with this node");
                text_add(t, "nodestrap_fabric_info{cluster_uuid=\"%s\",clique_id=\"%lld\"} 1\n", uuid ?: "",
                         found_number(accelerator, "cliqueId"));
        }
        if (states)
                metric_head(t, "gpus", "GPUs by their state in the NVLink fabric");
        json_object_foreach(states, state, count) {
                text_add(t, "nodestrap_gpus{state=\"%s\"} %lld\n", state,
                         (long long)json_integer_value(count));
        }
        if (json_object_get(accelerator, "listed")) {
                metric_head(t, "gpus_listed", "GPUs that nvidia-smi lists");
                text_add(t, "nodestrap_gpus_listed %lld\n", found_number(accelerator, "listed"));
        }
}

/* Nobody may see the same labels twice, and the kernel may have said one thing of a GPU twice. */
static void metrics_findings(Text *t, const json_t *findings) {
        _cleanup_(strv_freep) char **lines = NULL;
        const json_t *f;
        size_t i;
        metric_head(t, "gpu_health", "1 for each word that was found for a GPU or another device");
        json_array_foreach(findings, i, f) {
                const json_t *gpu = json_object_get(f, "gpu");
                char number[24] = "";
                if (json_is_integer(gpu))
                        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(gpu));
                _cleanup_(freep) char *line = xasprintf(
                        "nodestrap_gpu_health{gpu=\"%s\",address=\"%s\",word=\"%s\"} 1\n", number,
                        json_get_text(f, "address"), json_get_text(f, "word"));
                if (!strv_contains(lines, line))
                        text_add(t, "%s", line);
                strv_add(&lines, line);
        }
}

static void metrics_health(Text *t, const json_t *accelerator) {
        const json_t *health = json_object_get(accelerator, "health"), *gpu;
        const char *gpudirect = json_get_text(health, "gpudirect");
        size_t i;
        if (!health)
                return;
        metrics_findings(t, json_object_get(health, "findings"));
        metric_head(t, "gpu_healthy", "1 for a GPU of which nothing was found, 0 for another");
        json_array_foreach(json_object_get(accelerator, "gpus"), i, gpu) {
                const json_t *words = json_object_get(gpu, "health");
                if (words)
                        text_add(t, "nodestrap_gpu_healthy{gpu=\"%lld\",address=\"%s\"} %d\n",
                                 found_number(gpu, "index"), json_get_text(gpu, "address"),
                                 json_array_size(words) == 0);
        }
        if (!*gpudirect)
                return;
        metric_head(t, "gpudirect", "1 where network devices can reach the memory of GPUs");
        text_add(t, "nodestrap_gpudirect %d\n", startswith(gpudirect, "yes"));
}

static void metrics_pages(Text *t, const json_t *list) {
        static const char *const kinds[] = { "requested", "got" };
        json_t *pages;
        size_t i;
        if (list)
                metric_head(t, "hugepages", "huge pages, of a NUMA node or over all of them");
        json_array_foreach(list, i, pages) {
                _cleanup_(freep) char *size = bytes_text((uint64_t)found_number(pages, "size")),
                                      *node = found_node(pages);
                for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
                        text_add(t, "nodestrap_hugepages{size=\"%s\",node=\"%s\",kind=\"%s\"} %lld\n", size,
                                 node, kinds[k], found_number(pages, kinds[k]));
        }
}

char *metrics_make(const json_t *status, bool actions) {
        Text t = {};
        json_t *runs = json_object_get(status, "runs");
        metrics_verdict(&t, status);
        metrics_phases(&t, status);
        metrics_times(&t, status);
        metrics_runs(&t, runs);
        metrics_chain(&t, status);
        metrics_outcomes(&t, runs);
        if (actions)
                metrics_actions(&t, runs);
        metrics_accelerator(&t, json_object_get(status, "accelerator"));
        metrics_health(&t, json_object_get(status, "accelerator"));
        metrics_pages(&t, json_object_get(status, "hugepages"));
        return text_take(&t);
}
