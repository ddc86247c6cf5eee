/* SPDX-License-Identifier: Apache-2.0
 * dynamic/instance-identity/rsa2048 → the document inside, if its PKCS #7 signature (RFC 2315) is by one of
 * the certificates that AWS publishes and the image holds.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/regions-certs.html */
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

/* All that can be read of it; the caller frees them. */
static STACK_OF(X509) * certificates_read(const char *pem) {
        STACK_OF(X509) *all = sk_X509_new_null();
        BIO *from = BIO_new_mem_buf(pem, -1);
        X509 *one;
        while (all && from && (one = PEM_read_bio_X509(from, NULL, NULL, NULL)))
                if (sk_X509_push(all, one) == 0)
                        X509_free(one);
        BIO_free(from);
        return all;
}

/* Not the certificates that it brings along (PKCS7_NOINTERN): the signer is one of ours, which needs nobody
 * else to vouch for it (PKCS7_NOVERIFY). NULL where it is not. */
static char *document_inside(const char *text, size_t size, STACK_OF(X509) * certificates) {
        _cleanup_(freep) char *der = NULL, *document = NULL;
        size_t n = 0;
        if (base64_decode(text, size, true, &der, &n) < 0)
                return NULL;
        const unsigned char *p = (const unsigned char *)der;
        PKCS7 *signature = d2i_PKCS7(NULL, &p, (long)n);
        BIO *out = BIO_new(BIO_s_mem());
        char *data = NULL;
        if (signature && out &&
            PKCS7_verify(signature, certificates, NULL, NULL, out,
                         PKCS7_NOVERIFY | PKCS7_NOINTERN | PKCS7_BINARY) == 1) {
                long length = BIO_get_mem_data(out, &data);
                document = xstrndup(data, (size_t)MAX(length, 0));
        }
        BIO_free(out);
        PKCS7_free(signature);
        return TAKE_PTR(document);
}

static int refuse(Diag *diag, const char *why) {
        return diag_error(diag, -EKEYREJECTED, CAUSE_BINDING,
                          "nothing proves in which account and region this instance is, which its signed "
                          "configuration is bound to: %s",
                          why);
}

int imds_verify_identity(Imds *i, const char *certificates, char **ret_account, char **ret_region,
                         Diag *diag) {
        _cleanup_(freep) char *text = NULL, *document = NULL;
        size_t size = 0;
        int r = imds_get(i, SIGNED, &text, &size, diag);
        if (r == -ENOENT)
                return refuse(diag, "the metadata service has no /latest/" SIGNED " (404)");
        if (r < 0)
                return r;
        library_settle_libcrypto();
        STACK_OF(X509) *all = certificates_read(certificates);
        int n = all ? sk_X509_num(all) : 0;
        if (n > 0)
                document = document_inside(text, size, all);
        sk_X509_pop_free(all, X509_free);
        if (n <= 0)
                return refuse(diag, "none of the *.pem beside the trusted keys holds a certificate");
        if (!document)
                return refuse(diag, "its identity document (/latest/" SIGNED ") is signed by none of the "
                                    "certificates in the *.pem beside the trusted keys; AWS has one for each "
                                    "region");
        _cleanup_(json_decrefp) json_t *json = json_loads(document, JSON_REJECT_DUPLICATES, NULL);
        _cleanup_(freep) char *account = json_copy_text(json, "accountId"),
                              *region = json_copy_text(json, "region");
        if (!account || !region)
                return refuse(diag, "its signed identity document lacks them");
        imds_know(i, DOCUMENT, document, strlen(document));
        *ret_account = TAKE_PTR(account);
        *ret_region = TAKE_PTR(region);
        return 0;
}
