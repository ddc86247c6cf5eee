/* SPDX-License-Identifier: Apache-2.0
 * Texts on their way to the report, the console and the journal → the same without secrets. Where nothing
 * went wrong there is nothing to do, and nothing is done. */
#include "commands/hide.h"

#include "report/mask.h"

static void hide_text(Secrets *s, char **text) {
        char *hidden = *text ? secrets_hide(s, *text) : NULL;
        free(*text);
        *text = hidden;
}

static void learn(Secrets *s, const json_t *document) {
        if (document)
                json_decref(mask_config(s, document));
}

void hide_in_run(Run *run) {
        _cleanup_(secrets_done) Secrets s = {};
        if (run->diag.n == 0)
                return;
        learn(&s, run->config ? run->config->document : NULL);
        for (size_t i = 0; i < run->diag.n; i++) {
                hide_text(&s, &run->diag.items[i].text);
                hide_text(&s, &run->diag.items[i].suggestion);
        }
        for (size_t i = 0; i < run->results.n; i++)
                hide_text(&s, &run->results.items[i].text);
}

void hide_in_join(const Root *root, JoinOutcome *outcome) {
        _cleanup_(secrets_done) Secrets s = {};
        _cleanup_(json_decrefp) json_t *spec = NULL, *status = NULL, *document = NULL;
        _cleanup_(diag_done) Diag ignored = {};
        if (!outcome->text)
                return;
        if (config_cache_read(root, RUN_CONFIG_CACHE, &spec, &status, &ignored) >= 0)
                document = json_pack("{sO}", "spec", spec);
        learn(&s, document);
        hide_text(&s, &outcome->text);
}
