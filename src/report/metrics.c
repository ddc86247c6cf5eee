/* SPDX-License-Identifier: Apache-2.0
 * status.json → metrics.prom, the text format of Prometheus
 * (prometheus.io/docs/instrumenting/exposition_formats). */
#include "report/status.h"

#include "apply/apply.h"
#include "base/time.h"

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

static double seconds_of(int64_t begin, int64_t end) {
        return begin > 0 && end > begin ? (double)(end - begin) / USEC_PER_SEC : 0;
}

void metric_head(Text *t, const char *name, const char *help) {
        text_add(t, "# HELP nodestrap_%s %s\n# TYPE nodestrap_%s gauge\n", name, help, name);
}

/* A metric with a single value: its labels and value, as a format. */
#define GAUGE(t, name, help, format, ...)                                                      \
        ({ metric_head(t, name, help);                                                         \
           text_add(t, "nodestrap_" name format "\n", __VA_ARGS__); })

static void metrics_verdict(Text *t, const Status *s) {
        _free_ char *step = label_escape(s->step);
        GAUGE(t, "verdict", "1 for the verdict of this boot", "{verdict=\"%s\",code=\"%s\",step=\"%s\"} 1",
              s->verdict, s->code, step);
        GAUGE(t, "info", "version and plan of this boot", "{version=\"%s\",plan=\"%s\"} 1", s->version,
              s->plan_id);
        GAUGE(t, "exit_code", "exit status of the root cause, 0 if there is none", " %lld",
              (long long)s->exit);
        GAUGE(t, "tainted", "1 if the node joins with a taint, because a step failed that its policy "
                            "tolerates",
              " %d", streq(s->verdict, "tainted"));
}

static void add_requests(Text *t, const StatusRun *run, const char *service, int64_t n) {
        if (n >= 0)
                text_add(t, "nodestrap_requests{phase=\"%s\",service=\"%s\"} %lld\n", run->phases, service,
                         (long long)n);
}

static void metrics_runs(Text *t, const StatusRun *runs) {
        metric_head(t, "phase_duration_seconds", "time from the start of the process to its report");
        for (const StatusRun *run = runs; run && run->phases; run++)
                text_add(t, "nodestrap_phase_duration_seconds{phase=\"%s\"} %.6f\n", run->phases,
                         seconds_of(run->begin_usec, run->end_usec));
        metric_head(t, "tries", "how many times the process has tried its phases");
        for (const StatusRun *run = runs; run && run->phases; run++)
                text_add(t, "nodestrap_tries{phase=\"%s\"} %lld\n", run->phases,
                         (long long)MAX(run->tries, 1));
        metric_head(t, "requests", "requests sent, including retries");
        for (const StatusRun *run = runs; run && run->phases; run++) {
                add_requests(t, run, "imds", run->imds_requests);
                add_requests(t, run, "ec2", run->ec2_requests);
        }
        metric_head(t, "warnings", "warnings about the input and the machine");
        for (const StatusRun *run = runs; run && run->phases; run++) {
                size_t n = 0;
                while (run->warnings && run->warnings[n].text)
                        n++;
                text_add(t, "nodestrap_warnings{phase=\"%s\"} %zu\n", run->phases, n);
        }
}

/* A phase that has not ended has only a verdict. */
static void metrics_phases(Text *t, const StatusPhase *phase) {
        metric_head(t, "phase_verdict", "1 for the verdict of each phase of this boot");
        for (; phase && phase->phase; phase++)
                text_add(t, "nodestrap_phase_verdict{phase=\"%s\",verdict=\"%s\"} 1\n", phase->phase,
                         phase->verdict);
}

/* "2026-01-02T03:04:05Z" */
static void metrics_time(Text *t, const char *name, const char *help, const char *when) {
        struct tm utc = {};
        if (!strptime(when, "%Y-%m-%dT%H:%M:%SZ", &utc))
                return;
        metric_head(t, name, help);
        text_add(t, "nodestrap_%s %lld\n", name, (long long)timegm(&utc));
}

static void metrics_times(Text *t, const Status *s) {
        const char *last = "";
        for (const StatusRun *run = s->runs; run && run->phases; run++)
                last = run->ended_at;
        metrics_time(t, "boot_timestamp_seconds", "when the kernel started, in seconds since 1970",
                     s->booted_at);
        metrics_time(t, "last_run_timestamp_seconds", "when init last ended, in seconds since 1970", last);
}

/* The critical path of kubelet, by part of the boot. */
static void metrics_chain(Text *t, const Status *s) {
        static const char links[][12] = { "config", "devices", "run", "cloud-init" };
        if (!s->path || !s->path->id)
                return;
        metric_head(t, "critical_path_seconds", "time on the critical path, by part of the boot");
        for (size_t i = 0; i < ARRAY_SIZE(links); i++)
                text_add(t, "nodestrap_critical_path_seconds{part=\"%s\"} %.6f\n", links[i],
                         (double)critical_share(s, links[i]) / USEC_PER_SEC);
        GAUGE(t, "kubelet_started_seconds", "from the start of the kernel until kubelet was started", " %.6f",
              (double)critical_end(s) / USEC_PER_SEC);
}

static void metrics_actions(Text *t, const StatusRun *run) {
        metric_head(t, "action_duration_seconds", "how long each action took");
        for (; run && run->phases; run++)
                for (const StatusAction *a = run->actions; a && a->id; a++) {
                        _free_ char *id = label_escape(a->id);
                        if (outcome_from_string(a->outcome) == OUTCOME_SKIPPED)
                                continue;
                        text_add(t, "nodestrap_action_duration_seconds{phase=\"%s\",action=\"%s\"} %.6f\n",
                                 run->phases, id, seconds_of(a->begin_usec, a->end_usec));
                }
}

static void metrics_outcomes(Text *t, const Status *s) {
        size_t counts[OUTCOME_FAILED + 1] = {}, i;
        status_count(s, counts);
        metric_head(t, "actions", "actions by outcome");
        for (i = OUTCOME_UNCHANGED; i < ARRAY_SIZE(counts); i++)
                text_add(t, "nodestrap_actions{outcome=\"%s\"} %zu\n", outcome_to_string((Outcome)i),
                         counts[i]);
}

/* results; GPU states are words of NVML that need no escapes */

static void metrics_accelerator(Text *t, const Status *s) {
        if (s->accelerator.clique_id >= 0)
                GAUGE(t, "fabric_info",
                      "the NVLink fabric that all GPUs have joined; no UUID if only this node is in it",
                      "{cluster_uuid=\"%s\",clique_id=\"%lld\"} 1", s->accelerator.cluster_uuid,
                      (long long)s->accelerator.clique_id);
        if (s->accelerator.states)
                metric_head(t, "gpus", "GPUs by their state in the NVLink fabric");
        for (const StatusCount *c = s->accelerator.states; c && c->state; c++)
                text_add(t, "nodestrap_gpus{state=\"%s\"} %lld\n", c->state, (long long)c->n);
        if (s->accelerator.listed >= 0)
                GAUGE(t, "gpus_listed", "GPUs that nvidia-smi lists", " %lld",
                      (long long)s->accelerator.listed);
}

/* Labels must be unique, and the kernel may report one thing twice. */
static void metrics_findings(Text *t, const char *name, const char *help, const StatusFinding *f) {
        _strv_ char **lines = NULL;
        metric_head(t, name, help);
        for (; f && f->word; f++) {
                _free_ char *gpu = number_or_none(f->gpu);
                _free_ char *line =
                        xasprintf("nodestrap_%s{gpu=\"%s\",address=\"%s\",word=\"%s\"} 1\n", name, gpu,
                                  f->address, f->word);
                if (!strv_contains(lines, line))
                        text_add(t, "%s", line);
                strv_add(&lines, line);
        }
}

static void metrics_health(Text *t, const StatusHealth *health, const StatusGpu *gpu) {
        if (!health)
                return;
        metrics_findings(t, "gpu_health", "1 for each finding about a GPU or another device",
                         health->findings);
        metric_head(t, "gpu_healthy", "1 for a GPU without a finding, else 0");
        for (; gpu && gpu->address; gpu++)
                if (gpu->health)
                        text_add(t, "nodestrap_gpu_healthy{gpu=\"%lld\",address=\"%s\"} %d\n",
                                 (long long)gpu->index, gpu->address, !gpu->health->text);
        if (*health->gpudirect)
                GAUGE(t, "gpudirect", "1 if network devices can reach the memory of GPUs", " %d",
                      startswith(health->gpudirect, "yes"));
}

static void metrics_prove(Text *t, const StatusHealth *prove, const StatusGpu *gpus) {
        if (!prove)
                return;
        metrics_findings(t, "gpu_prove", "1 for each finding of the GPU test", prove->findings);
        metric_head(t, "gpu_prove_tested_bytes", "GPU memory that was written and read back");
        for (const StatusGpu *g = gpus; g && g->address; g++)
                if (g->tested > 0)
                        text_add(t, "nodestrap_gpu_prove_tested_bytes{gpu=\"%lld\",address=\"%s\"} %lld\n",
                                 (long long)g->index, g->address, (long long)g->tested);
        metric_head(t, "gpu_prove_bytes_per_second", "measured bandwidth; for links, that of the slowest");
        for (const StatusGpu *g = gpus; g && g->address; g++)
                for (int i = 0; i < STATUS_RATES; i++)
                        if (g->rates[i] > 0)
                                text_add(t,
                                         "nodestrap_gpu_prove_bytes_per_second{gpu=\"%lld\",address=\"%s\","
                                         "kind=\"%s\"} %lld\n",
                                         (long long)g->index, g->address, status_rates[i],
                                         (long long)g->rates[i]);
}

static void metrics_pages(Text *t, const StatusPages *pages) {
        if (pages)
                metric_head(t, "hugepages", "huge pages, per NUMA node or in total");
        for (; pages && pages->size > 0; pages++) {
                const struct { const char *kind; int64_t n; } values[] = {
                        { "requested", pages->requested }, { "got", pages->got }
                };
                _free_ char *size = bytes_text((uint64_t)pages->size),
                            *node = number_or_none(pages->node);
                for (size_t i = 0; i < ARRAY_SIZE(values); i++)
                        text_add(t, "nodestrap_hugepages{size=\"%s\",node=\"%s\",kind=\"%s\"} %lld\n", size,
                                 node, values[i].kind, (long long)values[i].n);
        }
}

char *metrics_make(const Status *s, bool actions) {
        Text t = {};
        metrics_verdict(&t, s);
        metrics_phases(&t, s->phases);
        metrics_times(&t, s);
        metrics_runs(&t, s->runs);
        metrics_chain(&t, s);
        metrics_outcomes(&t, s);
        if (actions)
                metrics_actions(&t, s->runs);
        metrics_accelerator(&t, s);
        metrics_health(&t, s->accelerator.health, s->accelerator.gpus);
        metrics_prove(&t, s->accelerator.prove, s->accelerator.gpus);
        metrics_pages(&t, s->pages);
        return text_take(&t);
}
