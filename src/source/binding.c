/* SPDX-License-Identifier: Apache-2.0
 * Compares the fields of a signature with the cluster of the configuration, the account and region of the
 * instance, and SERIALS_FILE: source → the serial applied last. It does not depend on a clock. */
#include "source/signature.h"

#include "base/json.h"
#include "base/paths.h"
#include "base/str.h"

#include <errno.h>

#define SERIALS_LIMIT (64u << 10)

static int refuse(const Signature *s, const char *what, const char *bound, const char *here, Diag *diag) {
        return diag_error_in(diag, -EKEYREJECTED, CAUSE_BINDING, s->source,
                             "is signed for %s %s, but this is %s; sign the original for this one, or "
                             "launch the instance there",
                             what, bound, here);
}

/* cluster: of all sources merged, with the drop-ins of the image. */
static int check_cluster(const Signature *s, const char *cluster, Diag *diag) {
        if (!s->cluster || streq(s->cluster, cluster))
                return 0;
        if (*cluster)
                return refuse(s, "cluster", s->cluster, cluster, diag);
        return diag_error_in(diag, -EKEYREJECTED, CAUSE_BINDING, s->source,
                             "is signed for cluster %s, but no source names a cluster: set spec.cluster.name",
                             s->cluster);
}

static int check_identity(const Signature *s, const Trust *trust, Imds *imds, bool only_looks, Diag *diag) {
        const Position at = { .source = s->source };
        _free_ char *account = NULL, *region = NULL;
        if (!s->account && !s->region)
                return 0;
        if (!imds && only_looks) {
                diag_warn_at(diag, "binding-not-checked", &at, NULL,
                             "is bound to an account or a region; nodestrap checks that only if a source is "
                             "imds://");
                return 0;
        }
        if (!trust->certificates || !imds)
                return diag_error_in(diag, -ENOKEY, CAUSE_BINDING, s->source,
                                     "is bound to an account or a region, but " TRUSTED_DIR " has no AWS "
                                     "certificate (*.pem) to check them; add those that AWS publishes");
        int r = imds_verify_identity(imds, trust->certificates, &account, &region, diag);
        if (r >= 0 && s->account && !streq(s->account, account))
                r = refuse(s, "account", s->account, account, diag);
        if (r >= 0 && s->region && !streq(s->region, region))
                r = refuse(s, "region", s->region, region, diag);
        return r;
}

/* An empty object for a missing file. */
static int serials_read(const Root *root, json_t **ret) {
        _free_ char *text = NULL;
        size_t size = 0;
        int r = root_read(root, SERIALS_FILE, SERIALS_LIMIT, &text, &size);
        if (r < 0 && r != -ENOENT)
                return r;
        _cleanup_(json_decrefp) json_t *json = text ? json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL)
                                                    : json_object();
        if (!json_is_object(json))
                return -EBADMSG;
        *ret = TAKE_PTR(json);
        return 0;
}

static int report_unreadable(int r, Diag *diag) {
        return diag_error(diag, r, CAUSE_DOWNGRADE,
                          SERIALS_FILE ": cannot read this record of serials (%s); without it "
                                       "nodestrap would accept an older signed configuration. To accept "
                                       "that once, remove the file and run nodestrap init again",
                          r == -EBADMSG ? "it has no valid serial number" : strerror(-r));
}

static int check_serial(const Signature *s, const json_t *serials, Diag *diag) {
        const json_t *last = json_object_get(serials, s->source);
        if (last && !json_is_integer(last))
                return report_unreadable(-EBADMSG, diag);
        if (s->serial >= (uint64_t)json_integer_value(last))
                return 0;
        return diag_error_in(diag, -EKEYEXPIRED, CAUSE_DOWNGRADE, s->source,
                             "is signed with the serial %llu, but this machine has applied %lld already "
                             "(" SERIALS_FILE "); sign the original again",
                             (unsigned long long)s->serial, (long long)json_integer_value(last));
}

int signatures_check(const Root *root, const Signatures *signatures, const Trust *trust, const Config *config,
                     Imds *imds, bool only_looks, Diag *diag) {
        const json_t *spec = json_object_get(config->document, "spec");
        const char *cluster = json_get_text(json_object_get(spec, "cluster"), "name");
        _cleanup_(json_decrefp) json_t *serials = NULL;
        int r = signatures->n > 0 ? serials_read(root, &serials) : 0;
        if (r == -EACCES && only_looks) {
                diag_warn(diag, "serial-not-checked",
                          SERIALS_FILE " is readable only by root, so nodestrap cannot tell if this "
                                       "configuration is older than the one applied last; run nodestrap as "
                                       "root");
                r = 0;
        }
        if (r < 0)
                return report_unreadable(r, diag);
        for (size_t i = 0; r >= 0 && i < signatures->n; i++) {
                const Signature *s = &signatures->items[i];
                r = check_serial(s, serials, diag);
                THEN(r, check_cluster(s, cluster, diag));
                THEN(r, check_identity(s, trust, imds, only_looks, diag));
        }
        return r;
}

int signatures_keep(const Root *root, const Signatures *signatures, Diag *diag) {
        _cleanup_(json_decrefp) json_t *serials = NULL;
        if (signatures->n == 0)
                return 0;
        int r = serials_read(root, &serials);
        if (r < 0)
                return report_unreadable(r, diag);
        for (size_t i = 0; i < signatures->n; i++)
                json_object_set_new(serials, signatures->items[i].source,
                                    json_integer((json_int_t)signatures->items[i].serial));
        _free_ char *text = json_dumps(serials, JSON_COMPACT | JSON_SORT_KEYS);
        r = text ? root_replace(root, SERIALS_FILE, text, strlen(text), 0600) : -EILSEQ;
        return r < 0 ? diag_error(diag, r, CAUSE_FILE,
                                  SERIALS_FILE ", which keeps older configurations out, cannot be written: "
                                  "%s", strerror(-r))
                     : 0;
}
