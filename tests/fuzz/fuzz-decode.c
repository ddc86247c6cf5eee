/* SPDX-License-Identifier: Apache-2.0
 * One stream of documents → Config. An accepted input must be accepted again from its own merged
 * document, and be the same. Each message about it fits into JSON, whatever it holds. */
#include "config/config.h"
#include "base/str.h"
#include "report/diag-json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes json. */
static void expect_text(json_t *json) {
        char *text = json_dumps(json, 0);
        if (!text)
                abort();
        free(text);
        json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(documents_done) Documents documents = {};
        _cleanup_(config_freep) Config *config = NULL, *again = NULL;
        _cleanup_(diag_done) Diag diag = {};
        Blob blob = { { "fuzz", 0, 1 }, xmemdup(data, size), size };

        int r = yaml_parse(&blob, &documents, &diag);
        free(blob.data);
        if (r >= 0)
                r = config_load(&documents, &config, &diag);
        if ((r < 0) != (diag_first_error(&diag) != NULL) || (r >= 0) != (config != NULL))
                abort();
        for (size_t i = 0; i < diag.n; i++)
                free(diagnostic_format(&diag.items[i]));
        expect_text(findings_to_json(&diag));
        expect_text(findings_to_sarif(&diag, EXIT_CONFIG_INVALID, ""));
        if (config && (config_from_json(config->document, "again", &again, &diag) < 0 ||
                       !json_equal(config->document, again->document)))
                abort();
        return 0;
}
