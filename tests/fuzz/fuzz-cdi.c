/* SPDX-License-Identifier: Apache-2.0
 * The check of a CDI file takes any document that parses. A file that lacks nothing has all wanted
 * devices. */
#include "base/str.h"
#include "doc/doc.h"
#include "nvidia/cdi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void judge(const json_t *spec) {
        static const CdiWanted wanted[] = {
                { .index = "0", .uuid = "GPU-a", .node = "/dev/nvidia0" },
                { .index = "1:0", .uuid = "MIG-b", .node = "/dev/nvidia1", .mig = true },
                { .index = "2", .uuid = "" },
        };
        static const char *const nodes[] = { "/dev/nvidiactl", NULL };
        const char *fault = cdi_fault(spec);
        char **all = cdi_lacks(spec, wanted, ARRAY_SIZE(wanted), nodes);
        char **none = cdi_lacks(spec, NULL, 0, NULL);
        if (none || strv_length(all) > 1 + 2 * ARRAY_SIZE(wanted))
                abort();
        if (!all && (!json_is_array(json_object_get(spec, "devices")) ||
                     json_array_size(json_object_get(spec, "devices")) < ARRAY_SIZE(wanted)))
                abort();
        if (fault && !*fault)
                abort();
        strv_free(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Blob b = { .at = { "fuzz", 0, 1 }, .data = xmemdup(data, size), .size = size };
        _cleanup_(documents_done) Documents documents = {};
        _cleanup_(diag_done) Diag diag = {};
        int r = yaml_parse(&b, &documents, &diag);
        for (size_t i = 0; r >= 0 && i < documents.n; i++) {
                json_auto_t *spec = NULL;
                if (yaml_to_json(documents.items[i].root, &spec) >= 0)
                        judge(spec);
        }
        free(b.data);
        return 0;
}
