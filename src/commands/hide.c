/* SPDX-License-Identifier: Apache-2.0
 * Removes secrets from texts for the report, the console and the journal. Where kubelet refuses a setting,
 * adds its place. Without a finding it does nothing. */
#include "commands/run.h"

#include "apply/apply.h"
#include "base/journal.h"
#include "config/config.h"
#include "kube/kube.h"
#include "redact/mask.h"

#include <ctype.h>

static void hide_text(Secrets *s, char **text) {
        RENEW(*text, *text ? secrets_hide(s, *text) : NULL);
}

static bool has_word(const char *text, const char *word, size_t n) {
        for (const char *p = text; (p = memmem(p, strlen(p), word, n)); p++)
                if ((p == text || !isalnum((unsigned char)p[-1])) && !isalnum((unsigned char)p[n]))
                        return true;
        return false;
}

/* Words in lower case alone, such as "memory", are too common. */
static bool is_name(const char *key) {
        return key[strcspn(key, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")];
}

/* The path of the innermost key, or of the flag, that the text names; NULL: none. */
static char *find_setting(const json_t *value, const char *path, const char *text) {
        const json_t *child;
        const char *key;
        char *found = NULL;
        size_t i;
        json_object_foreach((json_t *)value, key, child) {
                _free_ char *below = xasprintf("%s.%s", path, key);
                found = found ?: find_setting(child, below, text);
                if (!found && is_name(key) && has_word(text, key, strlen(key)))
                        found = xstrdup(below);
        }
        json_array_foreach(value, i, child) {
                const char *flag = json_string_value(child) ?: "";
                if (!found && startswith(flag, "--") && has_word(text, flag, strcspn(flag, "=")))
                        found = xasprintf("%s[%zu]", path, i);
        }
        return found;
}

/* config: for the line; or NULL. */
static void place(const json_t *document, const Config *config, Cause cause, char **text) {
        const json_t *kubelet = json_object_get(json_object_get(document, "spec"), "kubelet");
        _free_ char *path =
                cause == CAUSE_KUBELET ? find_setting(kubelet, "spec.kubelet", *text) : NULL;
        const Position *at = path && config ? config_position(config, path) : NULL;
        _free_ char *where = at ? position_format(at, false) : NULL, *before = *text;
        *text = path ? xasprintf("%s; %s sets %s", before, where ?: "the NodeConfig", path)
                     : TAKE_PTR(before);
}

static void learn(Secrets *s, const json_t *document) {
        if (document)
                json_decref(mask_config(s, document));
}

void hide_in_run(Run *run) {
        _cleanup_(secrets_done) Secrets s = {};
        const json_t *document = run->config ? run->config->document : NULL;
        if (run->diag.n == 0)
                return;
        learn(&s, document);
        for (size_t i = 0; i < run->diag.n; i++) {
                hide_text(&s, &run->diag.items[i].text);
                hide_text(&s, &run->diag.items[i].suggestion);
                place(document, run->config, run->diag.items[i].cause, &run->diag.items[i].text);
        }
        for (size_t i = 0; i < run->results->n; i++) {
                hide_text(&s, &run->results->items[i].text);
                place(document, run->config, run->results->items[i].cause, &run->results->items[i].text);
        }
}

/* The NodeConfig of this boot, or NULL. */
static json_t *cached_document(const Root *root) {
        _cleanup_(json_decrefp) json_t *spec = NULL, *status = NULL;
        _cleanup_(diag_done) Diag ignored = {};
        return config_cache_read(root, RUN_CONFIG_CACHE, &spec, &status, &ignored) >= 0
                       ? json_pack("{sO}", "spec", spec) : NULL;
}

static char *hide_line(void *context, const char *line) {
        const Run *run = context;
        _cleanup_(secrets_done) Secrets s = {};
        _cleanup_(json_decrefp) json_t *document =
                run->config ? json_incref(run->config->document) : cached_document(run->root);
        size_t size;
        learn(&s, document);
        return secrets_scrub(&s, line, strlen(line), &size);
}

void hide_in_journal(Run *run) {
        journal_hide_with(hide_line, run);
}

void hide_in_join(const Root *root, JoinOutcome *outcome) {
        _cleanup_(secrets_done) Secrets s = {};
        _cleanup_(json_decrefp) json_t *document = NULL;
        if (!outcome->text)
                return;
        document = cached_document(root);
        learn(&s, document);
        hide_text(&s, &outcome->text);
        place(document, NULL, outcome->cause, &outcome->text);
}
