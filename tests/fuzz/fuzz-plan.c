/* SPDX-License-Identifier: Apache-2.0
 * User data → a plan for machines of several types, or why there is none. The first byte says which type. */
#include "base/str.h"
#include "host/detect.h"
#include "plan/plan.h"
#include "source/source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const Plan *plan) {
        _cleanup_(json_decrefp) json_t *json = plan_to_json(plan);
        _free_ char *text = plan_to_text(plan), *dump = json_dumps(json, 0);
        _free_ size_t *path = NULL;
        uint64_t usec;
        if (!text || !dump || plan_critical_path(plan, &path, &usec) > plan->n)
                abort();
        for (size_t i = 0; i < plan->n; i++) {
                const Action *a = &plan->actions[i];
                if (plan_find(plan, a->id) != a)
                        abort();        /* two of one name */
                if (a->type == ACTION_WRITE_FILE && (a->target[0] != '/' || strstr(a->target, "/../")))
                        abort();
        }
}

static void plan_for(const char *type, const Config *config, Diag *diag) {
        static Root *root;
        const HostOptions options = { .instance_type = type, .kubelet_version = "1.34.2",
                                      .containerd_version = "2.1.5" };
        const PlanOptions plan_options = { .plugin = PLUGIN_AWS };
        _cleanup_(host_freep) Host *host = NULL;
        _cleanup_(plan_freep) Plan *plan = NULL;
        if (!root && root_new("/", &root) < 0)
                abort();
        int r = host_detect(root, config, &options, &host, diag);
        if (r >= 0)
                r = plan_make(config, host, &plan_options, &plan, diag);
        if (r < 0 ? !diag_first_error(diag) : !plan)
                abort();
        if (plan)
                check(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char *const types[] = { "m5.large", "p5.48xlarge", "p6e-gb200.36xlarge", "m6id.8xlarge",
                                             "g6.xlarge", "trn2.48xlarge", "p4d.24xlarge", "i4i.large" };
        _cleanup_(blobs_done) Blobs blobs = {};
        _cleanup_(documents_done) Documents documents = {};
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_(diag_done) Diag diag = {};
        if (size < 1)
                return 0;
        blobs_add(&blobs, (Position){ "fuzz", 0, 1 }, xmemdup(data + 1, size - 1), size - 1);
        int r = source_decode(&blobs, &documents, &diag);
        if (r >= 0)
                r = config_load(&documents, &config, &diag);
        if (r >= 0)
                plan_for(types[data[0] % ARRAY_SIZE(types)], config, &diag);
        return 0;
}
