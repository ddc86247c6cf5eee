/* SPDX-License-Identifier: Apache-2.0
 * yaml_parse() and what follows from it: documents keep to the limits with their aliases expanded, and
 * failures are explained. */
#include "base/str.h"
#include "doc/doc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Keys count as nodes, so a map that lost some to duplicates or merging may only be smaller than what was
 * counted. */
static size_t count(const Node *n, unsigned depth) {
        size_t sum = 1;

        if (depth > DOC_MAX_DEPTH)
                abort();
        if (n->type == NODE_SCALAR && n->text[n->n] != '\0')
                abort();
        for (size_t i = 0; n->type == NODE_LIST && i < n->n; i++)
                sum += count(n->items[i], depth + (n->items[i]->type != NODE_SCALAR));
        for (size_t i = 0; n->type == NODE_MAP && i < n->n; i++) {
                if (n->members[i].at.line == 0 || n->members[i].at.column == 0 || node_get(n, n->members[i].key) != n->members[i].value)
                        abort();
                sum += 1 + count(n->members[i].value, depth + (n->members[i].value->type != NODE_SCALAR));
        }
        return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Blob b = { .at = { "fuzz", 0, 1 }, .data = xmemdup(data, size), .size = size };
        _cleanup_(documents_done) Documents documents = {};
        _cleanup_(diag_done) Diag diag = {};
        int r = yaml_parse(&b, &documents, &diag);

        if ((r < 0) != (diag_count(&diag, false) > 0) || (r < 0 && documents.n > 0))
                abort();
        for (size_t i = 0; i < documents.n; i++) {
                json_t *value = NULL;
                if (count(documents.items[i].root, documents.items[i].root->type != NODE_SCALAR) >
                    DOC_MAX_NODES)
                        abort();
                if (yaml_to_json(documents.items[i].root, &value) >= 0)
                        json_decref(value);
        }
        free(b.data);
        return 0;
}
