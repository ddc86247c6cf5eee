/* SPDX-License-Identifier: Apache-2.0
 * dynamic/instance-identity/rsa2048 → its document, if the image has the certificate of its PKCS #7
 * signature (RFC 2315). https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/regions-certs.html */
#include "aws/aws.h"

#include "base/json.h"
#include "base/library.h"
#include "base/str.h"
#include "doc/doc.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <openssl/pkcs7.h>

#define SIGNED   "dynamic/instance-identity/rsa2048"
#define DOCUMENT "dynamic/instance-identity/document"

/* Without other certificates in the signature (PKCS7_NOINTERN) and above this one (PKCS7_NOVERIFY). */
static char *verify_by(PKCS7 *signature, X509 *certificate) {
        STACK_OF(X509) *only = sk_X509_new_null();
        BIO *out = BIO_new(BIO_s_mem());
        char *data = NULL, *document = NULL;
        if (only && out && sk_X509_push(only, certificate) > 0 &&
            PKCS7_verify(signature, only, NULL, NULL, out, PKCS7_NOVERIFY | PKCS7_NOINTERN | PKCS7_BINARY) ==
                    1) {
                long length = BIO_get_mem_data(out, &data);
                document = xstrndup(data, (size_t)MAX(length, 0));
        }
        BIO_free(out);
        sk_X509_free(only);
        return document;
}

/* One at a time: several certificates may share issuer and number. *ret_n: readable ones. */
static char *find_document(const char *text, size_t size, const char *certificates, unsigned *ret_n) {
        _free_ char *der = NULL;
        char *document = NULL;
        size_t n = 0;
        int r = base64_decode(text, size, true, &der, &n);
        const unsigned char *p = (const unsigned char *)der;
        PKCS7 *signature = r >= 0 ? d2i_PKCS7(NULL, &p, (long)n) : NULL;
        BIO *from = BIO_new_mem_buf(certificates, -1);
        X509 *one;
        while (from && (one = PEM_read_bio_X509(from, NULL, NULL, NULL))) {
                ++*ret_n;
                if (signature && !document)
                        document = verify_by(signature, one);
                X509_free(one);
        }
        BIO_free(from);
        PKCS7_free(signature);
        return document;
}

static int refuse(Diag *diag, const char *why) {
        return diag_error(diag, -EKEYREJECTED, CAUSE_BINDING,
                          "cannot prove that this instance is in the account and region for which its "
                          "configuration is signed: %s",
                          why);
}

int imds_verify_identity(Imds *i, const char *certificates, char **ret_account, char **ret_region,
                         Diag *diag) {
        _free_ char *text = NULL, *document = NULL;
        unsigned n = 0;
        size_t size = 0;
        int r = imds_get(i, SIGNED, &text, &size, diag);
        if (r == -ENOENT)
                return refuse(diag, "the metadata service has no /latest/" SIGNED " (404)");
        if (r < 0)
                return r;
        library_settle_libcrypto();
        document = find_document(text, size, certificates, &n);
        if (n == 0)
                return refuse(diag, "the *.pem files beside the trusted keys contain no certificate; add "
                                    "the AWS certificate for this region");
        if (!document)
                return refuse(diag, "its identity document (/latest/" SIGNED ") is not signed by a "
                                    "certificate in the *.pem files beside the trusted keys; add the AWS "
                                    "certificate for this region");
        _cleanup_(json_decrefp) json_t *json = json_loads(document, JSON_REJECT_DUPLICATES, NULL);
        _free_ char *account = json_copy_text(json, "accountId"),
                    *region = json_copy_text(json, "region");
        if (!account || !region)
                return refuse(diag, "its signed identity document lacks the account or the region");
        imds_know(i, DOCUMENT, document, strlen(document));
        *ret_account = TAKE_PTR(account);
        *ret_region = TAKE_PTR(region);
        return 0;
}
