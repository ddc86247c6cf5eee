/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap status --bundle FILE`: collects, masks secrets, packs. A missing file is a line of errors.txt
 * and never a failure, because the machines that need a bundle most lack something. */
#include "commands/output.h"
#include "commands/run.h"
#include "commands/sources.h"

#include "base/json.h"
#include "base/log.h"
#include "config/config.h"
#include "report/bundle.h"
#include "report/status.h"

#include <errno.h>
#include <sys/utsname.h>

#define DROP_INS   "/etc/eks/nodeadm.d"
#define KEPT_MAX   (8U << 20)

static void pack_json(Bundle *b, const char *name, const json_t *json) {
        char *text = json_text(json, 4, false);
        bundle_add(b, name, text, strlen(text));
}

static void add_cached_config(Bundle *b) {
        _cleanup_(json_decrefp) json_t *spec = NULL, *status = NULL;
        _cleanup_(diag_done) Diag ignored = {};
        int r = config_cache_read(b->root, RUN_CONFIG_CACHE, &spec, &status, &ignored);
        if (r < 0) {
                bundle_miss(b, "config.json", RUN_CONFIG_CACHE ": %s",
                            r == -EBADMSG ? "no configuration" : strerror(-r));
                return;
        }
        _cleanup_(json_decrefp) json_t *document = json_pack("{sO}", "spec", spec);
        _cleanup_(json_decrefp) json_t *masked = mask_config_whole(&b->secrets, document);
        pack_json(b, "config.json", masked);
}

/* Learns the secrets of all sources, also of an invalid configuration. */
static void note_sources(Bundle *b, json_t *answers) {
        _cleanup_(imds_freep) Imds *imds = imds_new(1);
        _cleanup_(source_list_done) SourceList list = {};
        _cleanup_(diag_done) Diag unread = {};
        if (source_list_read(b->root, &list, &unread) < 0 || !list.from) {
                strv_add(&list.uris, "imds://user-data");
                strv_add(&list.uris, "file://" DROP_INS);
        }
        imds_recall(imds, answers);
        /* one by one: a source that cannot be read leaves the others */
        for (char **uri = list.uris; *uri; uri++) {
                char *uris[] = { *uri, NULL };
                _cleanup_(blobs_done) Blobs blobs = {};
                _cleanup_(documents_done) Documents documents = {};
                _cleanup_(diag_done) Diag ignored = {};
                if (source_is_imds(*uri) && !json_is_string(json_object_get(answers, "user-data")))
                        continue;       /* asks no service */
                if (source_read(b->root, uris, imds, 0, &blobs, &ignored) < 0 ||
                    source_decode(&blobs, &documents, &ignored) < 0)
                        continue;
                for (size_t k = 0; k < documents.n; k++) {
                        const Node *root = documents.items[k].root;
                        _cleanup_(json_decrefp) json_t *document = NULL;
                        if (root && yaml_to_json(root, &document) >= 0)
                                json_decref(mask_config_whole(&b->secrets, document));
                }
        }
}

/* An answer, decoded for a reader. User data may hold anything, so a bundle never has it. */
static json_t *answer_shown(const char *path, const json_t *answer) {
        _free_ char *text = NULL;
        size_t size;
        if (!json_is_string(answer))
                return json_null();
        if (streq(path, "user-data") ||
            base64_decode(json_string_value(answer), json_string_length(answer), false, &text, &size) < 0)
                return json_string(HIDDEN);
        return json_stringn(text, size) ?: json_string(HIDDEN);
}

/* The file may be of another boot. */
static void add_facts(Bundle *b) {
        _free_ char *text = NULL;
        size_t size = 0;
        const char *path;
        json_t *answer;
        int r = root_read(b->root, KEPT_FILE, KEPT_MAX, &text, &size);
        _cleanup_(json_decrefp) json_t *facts = r < 0 ? NULL : json_loadb(text, size, 0, NULL);
        json_t *answers = json_object_get(facts, "answers");
        note_sources(b, answers);
        if (!json_is_object(facts)) {
                bundle_miss(b, "facts.json", KEPT_FILE ": %s", r < 0 ? strerror(-r) : "not JSON");
                return;
        }
        _cleanup_(json_decrefp) json_t *shown = json_object();
        json_object_foreach(answers, path, answer)
                json_object_set_new(shown, path, answer_shown(path, answer));
        json_object_set(facts, "answers", shown);
        json_object_set_new(facts, "spec", json_string(HIDDEN));        /* a digest allows guesses */
        _cleanup_(json_decrefp) json_t *masked = mask_json(&b->secrets, facts);
        pack_json(b, "facts.json", masked);
}

/* Drawn from scrubbed text: a secret in a folded line would escape the scrub. */
static void add_picture(Bundle *b) {
        _cleanup_(status_done) Status status = {};
        if (status_read(b->root, &status) < 0)
                return;
        _free_ char *text = json_dumps(status.json, 0);
        size_t size = 0;
        _free_ char *scrubbed =
                secrets_scrub(&b->secrets, text ?: "", text ? strlen(text) : 0, &size);
        status_take(&status, json_loadb(scrubbed, size, 0, NULL));
        if (!status.json) {
                bundle_miss(b, "status.svg", "status.json cannot be rendered");
                return;
        }
        char *drawing = status_draw(&status);
        bundle_add(b, "status.svg", drawing, strlen(drawing));
}

static const char *verdict_of(const Root *root, const Status *s) {
        _free_ char *boot = NULL;
        if (!s->json)
                return "nodestrap init has not run since this machine booted, or its report cannot be read";
        if (root_boot_id(root, &boot) < 0 || !streq(boot, s->boot_id))
                return "the report is from another boot";
        return s->text;
}

static void add_about(Bundle *b) {
        _cleanup_(status_done) Status status = {};
        struct utsname name = {};
        Text t = {};
        int r = status_read(b->root, &status);
        (void)uname(&name);
        text_add(&t, "nodestrap %s, %s\nroot %s, user %u, kernel %s %s\n", VERSION, b->top,
                 root_path(b->root), geteuid(), name.release, name.machine);
        text_add(&t, "verdict: %s %s %s\n%s\n\n", r < 0 ? "none" : status.verdict, status.code,
                 status.step, verdict_of(b->root, &status));
        text_add(&t, "%s\n\n",
                 bundle_has(b, "config.json")
                         ? "The secrets of the NodeConfig are hidden in every file."
                         : "Without a NodeConfig, only text that looks like a secret is hidden.");
        text_add(&t, "errors.txt lists missing files, with the reason. Look at status.svg first, then at "
                     "status.json, plan*.txt,\njournal/nodestrap.txt and systemd/failed.txt.\n");
        size_t size = t.size;
        bundle_add(b, "about.txt", text_take(&t), size);
}

int status_bundle(Run *run) {
        const char *file = run->options.bundle;
        _cleanup_(bundle_done) Bundle b = {};
        size_t size;
        /* fails before the long work if the file cannot be written */
        int r = streq(file, "-") ? output_bytes("", 0, &run->diag)
                                 : output_file(file, NULL, 0, &run->diag);
        if (r < 0)
                return r;
        bundle_begin(&b, run->root);
        add_cached_config(&b);
        add_facts(&b);
        bundle_gather(&b);
        add_picture(&b);
        add_about(&b);
        _free_ char *packed = bundle_pack(&b, &size);
        r = streq(file, "-") ? output_bytes(packed, size, &run->diag)
                             : output_file(file, packed, size, &run->diag);
        if (r >= 0)
                log_info("%s: %zu files in %s, %zu KiB; errors.txt names what is missing (%zu).",
                         streq(file, "-") ? "stdout" : file, b.n + 1, b.top, size >> 10, b.n_missing);
        return r;
}
