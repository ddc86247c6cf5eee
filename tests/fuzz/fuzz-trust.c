/* SPDX-License-Identifier: Apache-2.0
 * Trusted keys of a machine and the signed identity document (a tree, tree.h: keys, certificates, serials,
 * /document). A configuration for an account never passes without proof that this is the account. The same
 * text is also read as a key. */
#include "tree.h"

#include "source/signature.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct Imds { const Root *root; };

int imds_get(Imds *i, const char *path, char **ret, size_t *ret_size, Diag *diag) {
        (void)path, (void)diag;
        return root_read(i->root, "/document", MAX_BYTES, ret, ret_size);
}

void imds_know(Imds *i, const char *path, const void *data, size_t size) {
        (void)i, (void)path, (void)data, (void)size;
}

static void check(const char *text, const char *end) {
        _cleanup_(config_freep) Config *config = xcalloc(1, sizeof *config);
        _cleanup_(trust_freep) Trust *trust = NULL;
        _cleanup_(diag_done) Diag diag = {};
        Signature bound = { .source = (char *)"user-data", .serial = 5, .account = (char *)"123456789012" };
        const Signatures all = { .items = &bound, .n = 1 };
        Tree tree = tree_new();
        Imds imds = { tree.root };
        tree_unpack(&tree, text, end);
        config->document = json_object();
        int r = trust_load(tree.root, &trust, &diag);
        if ((r < 0) != (diag_first_error(&diag) != NULL) || (trust && !trust->n))
                abort();
        if (trust && signatures_check(tree.root, &all, trust, config, &imds, false, &diag) >= 0)
                abort();
        tree_done(&tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Ed25519Key key;
        const char *why = NULL;
        if (size > MAX_INPUT)
                return 0;
        _free_ char *text = xmemdup(data, size);
        if (ed25519_parse_public(text, size, &key, &why) < 0 && !why)
                abort();
        if (ed25519_parse_private(text, size, &key, &why) < 0 && !why)
                abort();
        check(text, text + size);
        return 0;
}
