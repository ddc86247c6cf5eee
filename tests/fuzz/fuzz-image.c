/* SPDX-License-Identifier: Apache-2.0
 * Any root directory (tree.h) → the checks of doctor on it, for a fixed set of plans. */
#include "sample.h"
#include "tree.h"

#include "base/json.h"
#include "doctor/checks.h"
#include "host/detect.h"
#include "host/host.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- questions about the image ---- */

static const Needs *wanted(void) {
        static const char *const types[] = { "p6-b200.48xlarge", "p6e-gb200.36xlarge", "m6id.8xlarge",
                                             "trn2.48xlarge" };
        static char place[] = "/mnt/k8s-disks";
        static Needs needs;
        _cleanup_(root_freep) Root *root = NULL;
        if (needs.n == 0 && root_new("/", &root) < 0)
                abort();
        for (size_t i = 0; root && i < ARRAY_SIZE(types); i++) {
                HostOptions options = { .instance_type = types[i], .kubelet_version = "1.34.2",
                                        .containerd_version = "2.1.5", .stores = 2 };
                Sample s = sample_new();
                Host *host = NULL;
                s.config.instance.storage.strategy = STORAGE_RAID0;
                s.config.instance.storage.mount_path = place;
                s.config.nvidia.fabric_timeout_usec = 300 * USEC_PER_SEC;
                s.config.nvidia.imex_channels = 2048;
                if (host_detect(root, &s.config, &options, &host, &s.diag) < 0 ||
                    plan_make(&s.config, host, &s.options, &s.plan, &s.diag) < 0 || !s.plan)
                        abort();
                needs_of_plan(s.plan, types[i], &needs);
                host_free(host);
                sample_done(&s);
        }
        return &needs;
}

/* Each pipeline may rely on this for any image. */
static void check(const Checks *checks) {
        for (size_t i = 0; i < checks->n; i++) {
                const Check *c = &checks->items[i];
                if (!*c->code || !*c->subject || (c->verdict != CHECK_OK && !(c->text && *c->text)) ||
                    (c->verdict == CHECK_FAILED) != (c->cause != CAUSE_NONE))
                        abort();
        }
        _free_ char *table = checks_to_text(checks, checks->n % 2);
        for (const char *p = table, *end = p + strlen(p); p < end;) {
                size_t n = utf8_length(p, (size_t)(end - p));
                if (n == 0 || ((unsigned char)*p < ' ' && *p != '\n'))
                        abort();        /* this would garble a terminal */
                p += n;
        }
        json_auto_t *json = checks_to_json(checks);
        _free_ char *text = json_dumps(json, 0);
        if (!text || json_array_size(json) != checks->n)
                abort();
}

static void ask(const Image *image) {
        static const char *const programs[] = { "kubelet", "containerd" };
        _cleanup_(checks_done) Checks checks = {};
        _free_ char *why = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
                _cleanup_(diag_done) Diag diag = {};
                _free_ char *version = NULL;
                if (host_program_version(image->root, programs[i], NULL, &version, &diag) >= 0 && !version)
                        abort();
        }
        char **types = image_types(image, &why);
        if (!types || !why || (image->kernel && !strv_contains(image->kernels, image->kernel)))
                abort();
        strv_free(types);
        image_look(image, wanted(), &checks);
        image_compare(image, wanted(), &checks);
        image_search(image, &checks);
        check(&checks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(diag_done) Diag diag = {};
        Image image = {};
        if (size > MAX_INPUT)
                return 0;
        int before = dup(STDOUT_FILENO);
        Tree tree = tree_new();
        tree_unpack(&tree, (const char *)data, (const char *)data + size);
        int r = image_open(tree.root, false, &image, &diag);
        if ((r < 0) != (diag_count(&diag, false) > 0))
                abort();
        if (r >= 0) {
                ask(&image);
                image_done(&image);
        }
        tree_done(&tree);
        close(before);
        int after = dup(STDOUT_FILENO);
        if (before < 0 || after != before)
                abort();        /* files are left open */
        close(after);
        return 0;
}
