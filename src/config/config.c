/* SPDX-License-Identifier: Apache-2.0
 * Documents → decode, each alone for the lines of its errors → merge → validate → bind. */
#include "config/fields.h"

#include "base/str.h"

#include <errno.h>

/* Faults go to diag, and to the origins that the merge takes over. */
static void add_document(Merge *m, const Node *root, Position at, Diag *diag) {
        Origins origins = {};
        json_t *document = document_decode(root, at, &origins, diag);
        merge_add(m, document, &origins, diag);
}

static int config_finish(Merge *m, size_t errors_before, Config **ret, Diag *diag) {
        merge_finish(m, diag);
        /* a document of another version was not read and may hold what the others lack */
        if (!origins_failed(&m->origins, "apiVersion")) {
                conflicts_warn(m, diag);
                int r = config_validate(m, diag);
                if (r < 0)
                        return r;
        }
        if (diag_count(diag, false) > errors_before)
                return -EINVAL;
        *ret = config_bind(m);
        return 0;
}

/* Names the kind of the first document, which is not a secret. */
static int fail_without(const Documents *documents, Diag *diag) {
        const Document *first = documents->n > 0 ? &documents->items[0] : NULL;
        const char *origin = documents->origin && *documents->origin ? documents->origin : "any source";
        if (documents->unread)
                return diag_error_at(diag, -ENODATA, CAUSE_NO_CONFIG, NULL, NULL,
                                     "no NodeConfig found in %s: %s", origin, documents->unread);
        const Node *kind = first && first->root ? node_get(first->root, "kind") : NULL;
        _free_ char *other = kind && kind->type == NODE_SCALAR ? text_quote(kind->text, kind->n) : NULL;
        return diag_error_at(diag, -ENODATA, CAUSE_NO_CONFIG, first ? &first->at : NULL, NULL,
                             "no NodeConfig found in %s: no document has kind " CONFIG_KIND
                             " and apiVersion " CONFIG_API_VERSION "%s%s; add a NodeConfig, bare or as MIME "
                             "type application/node.eks.aws",
                             origin, other ? "; the first one is of kind " : "", other ?: "");
}

static int merge_documents(const Documents *documents, Merge *m, Diag *diag) {
        size_t ours = 0;
        for (size_t i = 0; i < documents->n; i++) {
                const Document *d = &documents->items[i];
                if (document_is_ours(d->root)) {
                        ours++;
                        add_document(m, d->root, d->at, diag);
                }
        }
        return ours > 0 ? 0 : fail_without(documents, diag);
}

static int load(const Documents *documents, bool partial, Config **ret, Diag *diag) {
        _cleanup_(merge_done) Merge m = { .partial = partial };
        size_t errors = diag_count(diag, false);
        return merge_documents(documents, &m, diag) ?: config_finish(&m, errors, ret, diag);
}

int config_load(const Documents *documents, Config **ret, Diag *diag) {
        return load(documents, false, ret, diag);
}

int config_load_partial(const Documents *documents, Config **ret, Diag *diag) {
        return load(documents, true, ret, diag);
}

int config_load_unchecked(const Documents *documents, Config **ret, Diag *diag) {
        _cleanup_(merge_done) Merge m = {};
        Diag faults = {};
        size_t errors = diag_count(diag, false);
        int r = merge_documents(documents, &m, diag);
        if (r < 0)
                return r;
        merge_finish(&m, diag);
        if (diag_count(diag, false) > errors)
                return -EINVAL;
        if (config_validate(&m, &faults) < 0)
                for (size_t i = 0; i < faults.n; i++)
                        faults.items[i].warning = true;
        diag_move(diag, &faults);
        Config *c = xcalloc(1, sizeof *c);
        c->document = json_incref(m.document);
        *ret = c;
        return 0;
}

static void warn_dropped(const Node *n, const Field *fields, const Path *up, const char *source, Diag *diag) {
        for (size_t i = 0; n->type == NODE_MAP && i < n->n; i++) {
                const Member *m = &n->members[i];
                const Field *f = fields_find(fields, m->key);
                const Position at = { source, 0, m->at.line, m->at.column };
                const Path own = { up, m->key, 0 };
                _free_ char *path = path_format(&own);
                if (f && *f->since)
                        diag_warn_at(diag, "eksctl-drops", &at, path,
                                     "eksctl drops this key, which nodeadm does not have; put it into a "
                                     "file in /etc/eks/nodeadm.d of the image");
                else if (f && f->type == FIELD_MAP)
                        warn_dropped(m->value, f->fields, &own, source, diag);
        }
}

void config_warn_dropped(const Documents *documents, Diag *diag) {
        for (const Document *d = documents->items; d < documents->items + documents->n; d++)
                if (document_is_ours(d->root))
                        warn_dropped(d->root, nodeconfig_fields, NULL, d->at.source, diag);
}

/* "sample" in PEM, so that no warning is about it */
#define SAMPLE_AUTHORITY \
        "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCnNhbXBsZQotLS0tLUVORCBDRVJUSUZJQ0FURS0tLS0tCg=="

json_t *config_sample(const char *name) {
        return json_pack("{ss ss s{s{ss ss ss ss}}}", "apiVersion", CONFIG_API_VERSION, "kind", CONFIG_KIND,
                         "spec", "cluster", "name", name, "apiServerEndpoint", "https://cluster.invalid",
                         "certificateAuthority", SAMPLE_AUTHORITY, "cidr", "10.100.0.0/16");
}

typedef struct NodePool { void **items; size_t n; } NodePool;

static void node_pool_done(NodePool *p) {
        for (size_t i = 0; i < p->n; i++)
                free(p->items[i]);
        free(p->items);
}

static void *node_pool_add(NodePool *p, void *item) {
        return *APPEND(p->items, p->n) = item;
}

static Node *node_from_json(NodePool *pool, const json_t *value) {
        Node *node = node_pool_add(pool, xcalloc(1, sizeof *node));
        const char *key;
        json_t *item;
        size_t i;
        if (json_is_object(value)) {
                Member *m = node_pool_add(pool, xcalloc(json_object_size(value), sizeof *node->members));
                node->type = NODE_MAP;
                node->members = m;
                json_object_foreach((json_t *)value, key, item)
                        m[node->n++] = (Member){ .key = key, .value = node_from_json(pool, item) };
        } else if (json_is_array(value)) {
                node->type = NODE_LIST;
                node->items = node_pool_add(pool, xcalloc(json_array_size(value), sizeof(Node *)));
                json_array_foreach(value, i, item)
                        node->items[node->n++] = node_from_json(pool, item);
        } else {
                node->plain = !json_is_string(value);
                node->text = json_is_string(value) ? json_string_value(value)
                                                   : node_pool_add(pool, json_dumps(value, JSON_ENCODE_ANY));
                node->n = json_is_string(value) ? json_string_length(value) : strlen(node->text);
        }
        return node;
}

int config_from_json(json_t *document, const char *source, Config **ret, Diag *diag) {
        _cleanup_(node_pool_done) NodePool pool = {};
        _cleanup_(merge_done) Merge m = {};
        size_t errors = diag_count(diag, false);
        add_document(&m, node_from_json(&pool, document), (Position){ .source = source }, diag);
        return config_finish(&m, errors, ret, diag);
}
