/* SPDX-License-Identifier: Apache-2.0
 * Files of earlier runs below /run and /var (a tree, tree.h) → reports for people and machines, and the
 * state for the next run. Another case is the manifest for prune-files. The files may be damaged. */
#include "tree.h"

#include "apply/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/time.h"
#include "commands/sources.h"
#include "nic/enis.h"
#include "config/config.h"
#include "report/event.h"
#include "report/status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Its output goes nowhere. */
static void show(const Root *root, const Status *status) {
        FILE *before = stdout, *nowhere = fopen("/dev/null", "we");
        if (!nowhere)
                abort();
        stdout = nowhere;
        status_show(root, status, false);
        status_show(root, status, true);
        stdout = before;
        fclose(nowhere);
}

static void read_status(const Root *root) {
        _cleanup_(status_done) Status status = {};
        _cleanup_(ongoing_done) Ongoing ongoing = { .now_usec = 77 };
        if (status_read(root, &status) < 0)
                return;
        show(root, &status);
        ongoing.processes = progress_read(root);
        phases_put(&status, &ongoing);
        next_put(&status);
        longest_put(&status);
        if (status.runs)
                critical_put(status.json, &status);
        status_take(&status, json_incref(status.json));
        show(root, &status);
        _free_ char *metrics = metrics_make(&status, true), *found = found_text(&status),
                    *drawing = status_draw(&status);
        if (!metrics || !found || !drawing)
                abort();
}

/* Writes a run of this boot beside the files of other runs. */
static void write_status(const Root *root, const char *phases) {
        _cleanup_(diag_done) Diag diag = {};
        Report report = { .command = "init", .phases = phases, .diag = &diag, .begin_usec = 5 };
        Verdict v = { .word = "failed", .code = "EFACTS", .exit_code = EXIT_FACTS, .step = "detect",
                      .text = (char *)"text" };
        (void)diag_error(&diag, -1, CAUSE_FACTS, "text");
        _cleanup_(status_done) Status status = {};
        status_make(root, &report, &v, 9, &status);
        _free_ char *text = json_dumps(status.json, 0);
        if (!text)
                abort();
        show(root, &status);
        event_of_run(root, &report, &v, false);
        v.exit_code = EXIT_DONE;
        event_of_run(root, &report, &v, true);
}

static void read_kept(const Root *root) {
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(kept_done) Kept kept = {};
        _cleanup_(snapshot_done) Snapshot snapshot = {};
        _cleanup_(json_decrefp) json_t *spec = NULL, *status = NULL;
        if (kept_read(root, &kept) >= 0 && kept_write(root, &kept) < 0)
                abort();
        if (config_cache_read(root, RUN_CONFIG_CACHE, &spec, &status, &diag) >= 0) {
                _cleanup_(config_freep) Config *config = NULL;
                if (!config_cache_matches(spec, spec))
                        abort();
                if (config_from_json(spec, "cache", &config, &diag) >= 0 &&
                    config_cache_write(root, RUN_CONFIG_CACHE, config, status, &diag) < 0)
                        abort();
        }
        snapshot_read(root, &snapshot, &diag);
        snapshot_write(root, &snapshot, &diag);
}

/* Any bytes as the manifest of prune-files. */
static void prune(const Root *root) {
        _cleanup_(diag_done) Diag diag = {};
        Action actions[] = {
                { .id = (char *)"write-file:/etc/ours", .type = ACTION_WRITE_FILE, .target = (char *)"/etc/ours",
                  .deadline_usec = 10 * USEC_PER_SEC,
                  .file = { .content = (char *)"x", .size = 1, .mode = 0644 } },
                { .id = (char *)"prune-files", .type = ACTION_PRUNE_FILES, .target = (char *)MANIFEST_FILE,
                  .deadline_usec = 10 * USEC_PER_SEC },
        };
        Plan plan = { .actions = actions, .n = ARRAY_SIZE(actions) };
        Results results = {};
        (void)!apply_plan(root, &plan, &results, &diag);
        results_done(&results);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(diag_done) Diag diag = {};
        if (size < 1 || size > MAX_INPUT)
                return 0;
        log_set_level(LOG_EMERG);
        if (hash_load(&diag) < 0)
                abort();
        Tree tree = tree_new();
        tree_unpack(&tree, (const char *)data + 1, (const char *)data + size);
        switch (data[0] & 3) {
        case 0: read_status(tree.root); break;
        case 1: write_status(tree.root, data[0] & 4 ? "run" : "config,devices"); break;
        case 2: read_kept(tree.root); break;
        default: prune(tree.root);
        }
        tree_done(&tree);
        return 0;
}
