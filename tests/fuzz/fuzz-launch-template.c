/* SPDX-License-Identifier: Apache-2.0
 * Any document as a launch template, of EC2 or of Terraform. Each finding has a place, and a refusal has an
 * error. */
#include "base/str.h"
#include "doctor/checks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static char *const types[] = { (char *)"p6e-gb200.36xlarge", NULL };
        Volume volume = { .device = (char *)"/dev/xvdb", .key = (char *)"xvdb" };
        const Config config = { .instance = { .expected_efa = 4, .volumes = &volume, .n_volumes = 1 } };
        Blob b = { .at = { "fuzz", 0, 1 }, .data = xmemdup(data, size), .size = size };
        _cleanup_(documents_done) Documents d = {};
        _cleanup_(diag_done) Diag ignored = {};
        for (size_t turn = 0; yaml_parse(&b, &d, &ignored) >= 0 && d.n > 0 && turn < 2; turn++) {
                _cleanup_(diag_done) Diag diag = {};
                const Template t = { .data = d.items[0].root, .source = "fuzz", .path = turn ? "a.b" : "",
                                     .terraform = turn == 1, .types = types, .user_data = size, .config = &config };
                int r = template_check(&t, &diag);
                if ((r < 0) != (diag_count(&diag, false) > 0))
                        abort();
                for (size_t i = 0; i < diag.n; i++)
                        if (diag.items[i].line == 0 || !diag.items[i].path || (turn && !startswith(diag.items[i].path, "a.b")))
                                abort();
                documents_done(&d);
        }
        free(b.data);
        return 0;
}
