/* SPDX-License-Identifier: Apache-2.0
 * signatures_verify() accepts from the input only the one message that our key has signed here, in any
 * encoding. It also accepts each message that signature_make() signs. */
#include "base/hash.h"
#include "base/str.h"
#include "source/signature.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const Ed25519Key private = { "this is the secret of our key .." };

static int take(const char *data, size_t size, Blobs *blobs) {
        static TrustedKey key;
        const Trust trust = { .keys = &key, .n = 1 };
        Signatures found = {};
        Diag diag = {};
        if (!key.name) {
                unsigned char ignored[ED25519_SIGNATURE];
                if (hash_load(&diag) < 0 || ed25519_sign(&private, "", 0, ignored, &key.key, &diag) < 0)
                        abort();
                key.name = ed25519_name(&key.key);
                key.file = xstrdup("ours.pub");
        }
        blobs_add(blobs, (Position){ "fuzz", 0, 1 }, xmemdup(data, size), size);
        int r = signatures_verify(blobs, &trust, &found, &diag);
        if ((r < 0) != (diag_count(&diag, false) > 0) || found.n != (r >= 0 && size > 0))
                abort();
        signatures_done(&found);
        diag_done(&diag);
        return r;
}

static char *sign(const void *data, size_t size) {
        const Signature fields = { .serial = 7, .cluster = (char *)"demo" };
        Blobs blobs = {};
        Diag diag = {};
        char *text = NULL;
        blobs_add(&blobs, (Position){ "fuzz", 0, 1 }, xmemdup(data, size), size);
        int r = signature_make(&blobs, &private, &fields, &text, &diag);
        if ((r < 0) != (diag_count(&diag, false) > 0))
                abort();
        blobs_done(&blobs);
        diag_done(&diag);
        return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static char *only;
        _cleanup_(blobs_done) Blobs blobs = {}, again = {};
        only = only ?: sign("kind: NodeConfig\n", 17);
        size_t n = strlen(only);
        if (take((const char *)data, size, &blobs) >= 0 && size > 0 &&
            (blobs.items[0].size + 1 < n || memcmp(blobs.items[0].data, only, n - 1) != 0))
                abort();
        _free_ char *text = sign(data, size);
        if (text && take(text, strlen(text), &again) < 0)
                abort();
        return 0;
}
