/* SPDX-License-Identifier: Apache-2.0
 * TRUSTED_DIR → Trust. Any file in it turns the check on, and an unusable one is an error. */
#include "source/signature.h"

#include "base/root.h"
#include "base/hash.h"
#include "base/paths.h"
#include "base/str.h"

#include <errno.h>

#define KEY_LIMIT         4096u
#define CERTIFICATE_LIMIT (256u << 10)

Trust *trust_free(Trust *t) {
        if (!t)
                return NULL;
        for (size_t i = 0; i < t->n; i++)
                FREE_ALL(t->keys[i].file, t->keys[i].name);
        FREE_ALL(t->keys, t->certificates, t);
        return NULL;
}

static int add_key(const Root *root, const char *path, Trust *t, Diag *diag) {
        _free_ char *text = NULL;
        const char *why = NULL;
        Ed25519Key key = {};
        size_t size = 0;
        int r = root_read(root, path, KEY_LIMIT, &text, &size) ?:
                ed25519_parse_public(text, size, &key, &why);
        if (r < 0)
                return diag_error_in(diag, r, CAUSE_TRUST, path,
                                     "cannot be used as the key of a signer: %s",
                                     why ?: strerror(-r));
        *APPEND(t->keys, t->n) = (TrustedKey){ xstrdup(path_last(path)), ed25519_name(&key), key };
        return 0;
}

static int add_certificates(const Root *root, const char *path, Trust *t, Diag *diag) {
        _free_ char *text = NULL;
        int r = root_read(root, path, CERTIFICATE_LIMIT, &text, NULL);
        if (r < 0)
                return diag_error_in(diag, r, CAUSE_TRUST, path,
                                     "cannot be read as AWS certificates: %s", strerror(-r));
        RENEW(t->certificates, xasprintf("%s%s\n", t->certificates ?: "", text));
        return 0;
}

static int add_file(const Root *root, const char *name, Trust *t, Diag *diag) {
        _free_ char *path = xasprintf(TRUSTED_DIR "/%s", name), *why = NULL;
        bool key = endswith(name, ".pub");
        if (*name == '.' || (!key && !endswith(name, ".pem")))
                return 0;
        int r = path_is_guarded(root, path, &why);
        if (r <= 0)
                return diag_error(diag, r < 0 ? r : -EPERM, CAUSE_TRUST, "%s cannot be trusted: %s", path,
                                  why ?: strerror(-r));
        return key ? add_key(root, path, t, diag) : add_certificates(root, path, t, diag);
}

/* A dead link, like one to a file system mounted later, shows that the builder wants the check. */
static int check_absent(const Root *root, Diag *diag) {
        static const char *const paths[] = { "/etc/nodestrap", TRUSTED_DIR };
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                _free_ char *to = NULL;
                if (root_read_link(root, paths[i], &to) >= 0 && root_exists(root, paths[i]) <= 0)
                        return diag_error(diag, -ENOKEY, CAUSE_TRUST,
                                          "%s is a dangling symbolic link, so the keys of signers are "
                                          "unknown; make " TRUSTED_DIR " a directory in the image, or "
                                          "remove the link",
                                          paths[i]);
        }
        return 0;
}

/* ".keep" keeps a directory in git. A hidden key is not used, but turns the check on. */
static bool counts(const char *name) {
        return *name != '.' || endswith(name, ".pub") || endswith(name, ".pem");
}

int trust_load(const Root *root, Trust **ret, Diag *diag) {
        _strv_ char **names = NULL;
        _cleanup_(trust_freep) Trust *t = NULL;
        int r = root_list(root, TRUSTED_DIR, &names);
        if (r == -ENOENT)
                r = check_absent(root, diag);
        else if (r < 0)
                diag_error(diag, r, CAUSE_TRUST,
                           TRUSTED_DIR ", with the keys of signers, cannot be read: %s", strerror(-r));
        if (r < 0)
                return r;
        STRV_FOREACH(name, names) {
                if (!counts(*name))
                        continue;
                r = t ? 0 : hash_load(diag);
                t = t ?: xcalloc(1, sizeof *t);
                THEN(r, add_file(root, *name, t, diag));
                if (r < 0)
                        return r;
        }
        if (t && t->n == 0)
                return diag_error(diag, -ENOKEY, CAUSE_TRUST,
                                  TRUSTED_DIR " is not empty, so configurations must be signed, but it has "
                                              "no key (*.pub); add one, or remove the directory");
        *ret = TAKE_PTR(t);
        return 0;
}

int trust_load_file(const Root *root, const char *path, Trust **ret, Diag *diag) {
        _cleanup_(trust_freep) Trust *t = xcalloc(1, sizeof *t);
        _free_ char *absolute = root_absolute(root, path);
        int r = hash_load(diag) ?: add_key(root, absolute ?: path, t, diag);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(t);
        return 0;
}
