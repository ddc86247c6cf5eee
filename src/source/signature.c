/* SPDX-License-Identifier: Apache-2.0
 * Checks that the owner of a trusted key has signed these bytes, before anything but outer base64 and gzip is
 * parsed. It accepts only the one form that it writes, so that no two texts have the same meaning. */
#include "source/signature.h"

#include "base/hash.h"
#include "base/str.h"
#include "source/source.h"

#include <errno.h>

#define HEADER     "Content-Type: " SIGNATURE_TYPE "\nMIME-Version: 1.0\n\nversion: 1\n"
#define VALUE      "\nsignature: "
#define VALUE_SIZE 88 /* of base64 */

void signature_done(Signature *s) {
        FREE_ALL(s->source, s->key, s->file, s->account, s->region, s->cluster);
        *s = (Signature){};
}

void signatures_done(Signatures *s) {
        for (size_t i = 0; i < s->n; i++)
                signature_done(&s->items[i]);
        free(s->items);
        *s = (Signatures){};
}

typedef struct Piece { const char *s; size_t n; } Piece;

static const char *find_last(Piece in, const char *text) {
        size_t n = strlen(text);
        for (size_t i = in.n >= n ? in.n - n + 1 : 0; i > 0; i--)
                if (memcmp(in.s + i - 1, text, n) == 0)
                        return in.s + i - 1;
        return NULL;
}

static Piece message_of(const Blob *blob) {
        Piece all = { blob->data, blob->size };
        while (all.n > 0 && strchr(" \t\r\n", all.s[all.n - 1]) && all.s[all.n - 1])
                all.n--;
        return all;
}

bool signature_is_there(const Blob *blob) {
        return find_last((Piece){ blob->data, blob->size }, "\nContent-Type: " SIGNATURE_TYPE);
}

static bool piece_cut(Piece *p, const char *text) {
        size_t n = strlen(text);
        if (p->n < n || memcmp(p->s, text, n) != 0)
                return false;
        *p = (Piece){ p->s + n, p->n - n };
        return true;
}

/* "NAME: VALUE\n" → VALUE; NULL: another text. */
static char *piece_cut_field(Piece *p, const char *name) {
        _free_ char *label = xasprintf("%s: ", name);
        Piece rest = *p;
        const char *end = piece_cut(&rest, label) ? memchr(rest.s, '\n', rest.n) : NULL;
        if (!end)
                return NULL;
        _free_ char *value = xstrndup(rest.s, (size_t)(end - rest.s));
        if (strlen(value) != (size_t)(end - rest.s) || !signature_field_is_valid(name, value))
                return NULL;
        *p = (Piece){ end + 1, rest.n - (size_t)(end + 1 - rest.s) };
        return TAKE_PTR(value);
}

/* The signed bytes end where *ret_value begins. */
static int parse(Piece all, Signature *ret, Piece *ret_value) {
        const char *value = find_last(all, VALUE), *header;
        if (!value)
                return -EBADMSG;
        Piece fields = { all.s, (size_t)(value + 1 - all.s) };
        header = find_last(fields, "\n" HEADER);
        if (!header)
                return -EBADMSG;
        fields = (Piece){ header + strlen("\n" HEADER), (size_t)(value + 1 - header) - strlen("\n" HEADER) };
        ret->key = piece_cut_field(&fields, "key");
        _free_ char *serial = piece_cut_field(&fields, "serial");
        ret->account = piece_cut_field(&fields, "account");
        ret->region = piece_cut_field(&fields, "region");
        ret->cluster = piece_cut_field(&fields, "cluster");
        if (!ret->key || !serial || parse_u64(serial, &ret->serial) < 0 || ret->serial > INT64_MAX ||
            fields.n > 0)
                return -EBADMSG;
        /* the line above the header is the delimiter; its closing form follows the value */
        const char *line = header;
        while (line > all.s && line[-1] != '\n')
                line--;
        _free_ char *close = xasprintf("\n%.*s--", (int)(header - line), line);
        Piece rest = { value + strlen(VALUE), all.n - (size_t)(value + strlen(VALUE) - all.s) };
        if (!startswith(close, "\n--") || strlen(close) != (size_t)(header - line) + 3 ||
            rest.n != VALUE_SIZE + strlen(close) || memcmp(rest.s + VALUE_SIZE, close, strlen(close)) != 0)
                return -EBADMSG;
        *ret_value = (Piece){ rest.s, VALUE_SIZE };
        return 0;
}

/* Only the one text that base64_encode() makes of these bytes. */
static int decode_value(Piece value, unsigned char ret[static ED25519_SIGNATURE]) {
        _free_ char *bytes = NULL;
        size_t n = 0;
        if (base64_decode(value.s, value.n, false, &bytes, &n) < 0 || n != ED25519_SIGNATURE)
                return -EBADMSG;
        _free_ char *again = base64_encode(bytes, n);
        memcpy(ret, bytes, n);
        return memcmp(again, value.s, value.n) == 0 ? 0 : -EBADMSG;
}

static char *signed_bytes(const char *begin, const char *end, size_t *ret_size) {
        Text t = {};
        text_add(&t, "%s", SIGNATURE_DOMAIN);
        text_add_bytes(&t, begin, (size_t)(end - begin));
        *ret_size = t.size;
        return text_take(&t);
}

static char *key_files(const Trust *trust) {
        Text t = {};
        for (size_t i = 0; i < trust->n; i++)
                text_add(&t, "%s%s", i > 0 ? ", " : "", trust->keys[i].file);
        return text_take(&t);
}

static int verify(Blob *blob, const Trust *trust, Signature *ret, Diag *diag) {
        unsigned char value[ED25519_SIGNATURE];
        Piece all = message_of(blob), text = {};
        size_t size = 0;
        if (!signature_is_there(blob))
                return diag_error_in(diag, -EKEYREJECTED, CAUSE_SIGNATURE, blob->at.source,
                                     "is not signed, but this machine requires a signature; sign it with "
                                     "nodestrap config sign -k KEY.pem -c file://PATH");
        int r = parse(all, ret, &text) ?: decode_value(text, value);
        if (r < 0)
                return diag_error_in(diag, r, CAUSE_SIGNATURE, blob->at.source,
                                     "has a damaged signature, or text after it: the file was changed after "
                                     "nodestrap config sign; check the change, then sign the original "
                                     "again");
        const TrustedKey *key = FIND(k, trust->keys, trust->n, streq(k->name, ret->key));
        _free_ char *files = key_files(trust);
        if (!key)
                return diag_error_in(diag, -ENOKEY, CAUSE_SIGNATURE, blob->at.source,
                                     "is signed with the key %s, but this machine trusts only %s; sign the "
                                     "original with one of these", ret->key, files);
        _free_ char *bytes = signed_bytes(all.s, text.s, &size);
        r = ed25519_verify(&key->key, bytes, size, value, diag);
        if (r == 0)
                return diag_error_in(diag, -EKEYREJECTED, CAUSE_SIGNATURE, blob->at.source,
                                     "was changed after it was signed, or its signature names %s, but "
                                     "another private key made it; sign the original again", key->file);
        ret->source = xstrdup(blob->at.source);
        ret->file = xstrdup(key->file);
        return r < 0 ? r : 0;
}

int signatures_verify(Blobs *blobs, const Trust *trust, Signatures *ret, Diag *diag) {
        Signatures all = {};
        for (size_t i = 0; i < blobs->n; i++) {
                Blob *b = &blobs->items[i];
                Signature one = {};
                if (b->size == 0 || b->guarded)
                        continue;
                int r = doc_unpack(b, diag);
                THEN(r, verify(b, trust, &one, diag));
                if (r < 0) {
                        signature_done(&one);
                        signatures_done(&all);
                        return r;
                }
                *APPEND(all.items, all.n) = one;
        }
        *ret = all;
        return 0;
}

char *signature_text(const Signature *s) {
        Text t = {};
        text_add(&t, "%s is signed with %s (%s), serial %llu", s->source, s->key, s->file,
                 (unsigned long long)s->serial);
        const char *const bound[] = { "account", s->account, "region", s->region, "cluster", s->cluster };
        for (size_t i = 0, n = 0; i < ARRAY_SIZE(bound); i += 2)
                if (bound[i + 1])
                        text_add(&t, "%s%s %s", n++ == 0 ? ", for " : ", ", bound[i], bound[i + 1]);
        return text_take(&t);
}

bool signature_field_is_valid(const char *field, const char *value) {
        static const char lower[] = "abcdefghijklmnopqrstuvwxyz0123456789-",
                          word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_:";
        size_t n = strlen(value);
        if (streq(field, "account"))
                return n == 12 && strspn(value, "0123456789") == n;
        if (streq(field, "region"))
                return n > 0 && n < 64 && strspn(value, lower) == n;
        return n > 0 && n <= 100 && strspn(value, word) == n;
}

/* Texts → a multipart of them. cloud-init looks into text/plain for its kind (cloudinit/user_data.py). */
static int make_multipart(const Blobs *blobs, Text *t, char **ret_boundary, Diag *diag) {
        _cleanup_(text_done) Text all = {};
        char digest[65];
        for (size_t i = 0; i < blobs->n; i++) {
                const Blob *b = &blobs->items[i];
                _cleanup_(blobs_done) Blobs ignored = {};
                bool is_mime = true;
                int r = mime_split(b, NODECONFIG_TYPE, &ignored, &is_mime, diag);
                if (r < 0)
                        return r;
                if (is_mime)
                        return diag_error_in(diag, -EINVAL, CAUSE_INVALID, b->at.source,
                                             "cannot be signed: give one multipart message with LF line "
                                             "endings, from its headers to its closing delimiter, or "
                                             "documents without headers");
                text_add_bytes(&all, b->data, b->size);
        }
        sha256_hex(all.data ?: "", all.size, digest);
        *ret_boundary = xasprintf("nodestrap-%.32s", digest);
        text_add(t, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"%s\"\n\n", *ret_boundary);
        for (size_t i = 0; i < blobs->n; i++) {
                const Blob *b = &blobs->items[i];
                text_add(t, "--%s\nContent-Type: %s\nMIME-Version: 1.0\n\n", *ret_boundary,
                         source_is_foreign(b) ? "text/plain" : NODECONFIG_TYPE);
                text_add_bytes(t, b->data, b->size);
                text_add(t, "\n");
        }
        return 0;
}

static int make_body(Blobs *blobs, Text *t, char **ret_boundary, Diag *diag) {
        for (size_t i = 0; i < blobs->n; i++) {
                int r = doc_unpack(&blobs->items[i], diag);
                if (r < 0)
                        return r;
                if (memchr(blobs->items[i].data, 0, blobs->items[i].size))
                        return diag_error_in(diag, -EINVAL, CAUSE_SYNTAX, blobs->items[i].at.source,
                                             "contains NUL bytes, so it is not text");
                if (signature_is_there(&blobs->items[i]))
                        return diag_error_in(diag, -EEXIST, CAUSE_INVALID, blobs->items[i].at.source,
                                             "is signed already; sign the original");
        }
        const Blob *first = &blobs->items[0];
        size_t end = 0;
        if (blobs->n != 1 || memchr(first->data, '\r', first->size) ||
            mime_find_end(first, &end, ret_boundary) <= 0)
                return make_multipart(blobs, t, ret_boundary, diag);
        text_add_bytes(t, first->data, end);
        return 0;
}

int signature_make(Blobs *blobs, const Ed25519Key *private, const Signature *fields, char **ret, Diag *diag) {
        _free_ char *boundary = NULL;
        _cleanup_(text_done) Text t = {};
        unsigned char signature[ED25519_SIGNATURE];
        Ed25519Key public = {};
        size_t size = 0;
        int r = hash_load(diag) ?: make_body(blobs, &t, &boundary, diag);
        THEN(r, ed25519_sign(private, "", 0, signature, &public, diag));        /* for the public key */
        if (r < 0)
                return r;
        _free_ char *name = ed25519_name(&public);
        text_add(&t, "--%s\n" HEADER "key: %s\nserial: %llu\n", boundary, name,
                 (unsigned long long)fields->serial);
        if (fields->account)
                text_add(&t, "account: %s\n", fields->account);
        if (fields->region)
                text_add(&t, "region: %s\n", fields->region);
        if (fields->cluster)
                text_add(&t, "cluster: %s\n", fields->cluster);
        text_add(&t, "%s", &VALUE[1]);        /* without its line end */
        _free_ char *bytes = signed_bytes(t.data, t.data + t.size, &size);
        r = ed25519_sign(private, bytes, size, signature, &public, diag);
        if (r < 0)
                return r;
        _free_ char *value = base64_encode(signature, sizeof signature);
        text_add(&t, "%s\n--%s--\n", value, boundary);
        *ret = text_take(&t);
        return 0;
}
