/* SPDX-License-Identifier: Apache-2.0
 * Signed configurations: nodestrap takes the output of config sign and refuses it after any change. Also the
 * trusted keys of a machine, and what a signature is bound to. tests/check/signed.sh compares the Ed25519 of
 * libcrypto with that of openssl(1). */
#include "source/signature.h"
#include "source/source.h"

#include "base/root.h"
#include "base/hash.h"
#include "base/paths.h"
#include "base/str.h"
#include "files.h"
#include "test.h"

#define PUBLIC  "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA%s=\n-----END PUBLIC KEY-----\n"
#define NODE(name)                                                                             \
        "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster: {name: " name "}\n"
#define SCRIPT  "#!/bin/sh\necho one\n"

static const Ed25519Key ours = { "this is the secret of our key .." }, theirs = { "that is the secret of another .." };

/* Trusts this key alone. */
static Trust *trust_of(const Ed25519Key *private) {
        unsigned char ignored[ED25519_SIGNATURE];
        Diag diag = {};
        Trust *t = xcalloc(1, sizeof *t);
        t->keys = xcalloc(1, sizeof *t->keys);
        t->n = 1;
        ASSERT_OK(hash_load(&diag));
        ASSERT_OK(ed25519_sign(private, "", 0, ignored, &t->keys[0].key, &diag));
        t->keys[0].file = xstrdup("ours.pub");
        t->keys[0].name = ed25519_name(&t->keys[0].key);
        return t;
}

static void add(Blobs *b, const char *text, size_t size) {
        blobs_add(b, (Position){ .source = "user-data", .line = 1 }, xmemdup(text, size), size);
}

static char *sign(const Ed25519Key *key, const char *first, const char *second, Diag *diag) {
        _cleanup_(blobs_done) Blobs blobs = {};
        Signature fields = { .serial = 7, .region = (char *)"us-west-2", .cluster = (char *)"demo" };
        char *text = NULL;
        add(&blobs, first, strlen(first));
        if (second)
                add(&blobs, second, strlen(second));
        return signature_make(&blobs, key, &fields, &text, diag) < 0 ? NULL : text;
}

/* The verdict on this text with our key trusted; *ret_word is the cause. */
static int judge_with(const Trust *trust, const char *text, size_t size, const char **ret_word) {
        _cleanup_(signatures_done) Signatures found = {};
        _cleanup_(blobs_done) Blobs blobs = {};
        _cleanup_(diag_done) Diag diag = {};
        add(&blobs, text, size);
        int r = signatures_verify(&blobs, trust, &found, &diag);
        ASSERT_EQ(diag.n, r < 0);
        ASSERT_EQ(found.n, r >= 0);
        *ret_word = r < 0 ? cause_word(diag.items[0].cause) : "OK";
        return r;
}

#define ASSERT_REFUSED(trust, text, size) ({                                                   \
        const char *_word;                                                                     \
        if (judge_with(trust, text, size, &_word) >= 0)                                        \
                FAIL("taken: %.*s", (int)(size), text);                                        \
        ASSERT_STREQ(_word, "ESIGNATURE"); })
#define ASSERT_TAKEN(trust, text, size) ({                                                     \
        const char *_word;                                                                     \
        ASSERT_OK(judge_with(trust, text, size, &_word)); })

TEST(signed_documents_are_read) {
        _cleanup_(trust_freep) Trust *trust = trust_of(&ours);
        _cleanup_(signatures_done) Signatures found = {};
        _cleanup_(blobs_done) Blobs blobs = {};
        _cleanup_(documents_done) Documents documents = {};
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *text = sign(&ours, NODE("demo"), SCRIPT, &diag);
        add(&blobs, text, strlen(text));
        ASSERT_OK(signatures_verify(&blobs, trust, &found, &diag));
        ASSERT_EQ(found.items[0].serial, 7);
        ASSERT_STREQ(found.items[0].region, "us-west-2");
        ASSERT_STREQ(found.items[0].cluster, "demo");
        ASSERT_TRUE(!found.items[0].account);
        ASSERT_STREQ(found.items[0].file, "ours.pub");
        ASSERT_OK(source_decode(&blobs, &documents, &diag));
        ASSERT_EQ(documents.n, 1);
        ASSERT_EQ(documents.items[0].at.part, 1);
        ASSERT_EQ(diag.n, 0);
}

TEST(signing_a_text_twice_gives_the_same_output) {
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *one = sign(&ours, NODE("demo"), NULL, &diag);
        _free_ char *two = sign(&ours, NODE("demo"), NULL, &diag);
        ASSERT_STREQ(one, two);
}

TEST(a_change_of_any_bit_is_refused) {
        _cleanup_(trust_freep) Trust *trust = trust_of(&ours);
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *text = sign(&ours, NODE("demo"), SCRIPT, &diag);
        size_t size = strlen(text);
        ASSERT_TAKEN(trust, text, size);
        /* only the last byte, a line end, may be missing or be another blank */
        for (size_t i = 0; i + 1 < size; i++)
                for (unsigned bit = TRANSLATED_BY("") ? i % 8 : 0; bit < 8; bit += TRANSLATED_BY("") ? 8 : 1) {
                        text[i] = (char)(text[i] ^ 1 << bit);
                        ASSERT_REFUSED(trust, text, size);
                        text[i] = (char)(text[i] ^ 1 << bit);
                }
        ASSERT_TAKEN(trust, text, size);
}

TEST(a_cut_or_extended_text_is_refused_but_blanks_may_follow) {
        _cleanup_(trust_freep) Trust *trust = trust_of(&ours);
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *text = sign(&ours, NODE("demo"), SCRIPT, &diag);
        size_t size = strlen(text);
        for (size_t n = 1; n + 1 < size; n++) {
                ASSERT_REFUSED(trust, text, n);
                ASSERT_REFUSED(trust, text + n, size - n);
        }
        ASSERT_TAKEN(trust, text, size - 1);
        for (size_t at = 0; at + 1 < size; at++) {
                _free_ char *more = xasprintf("%.*s\n%s", (int)at, text, text + at);
                ASSERT_REFUSED(trust, more, size + 1);
        }
        _free_ char *blanks = xasprintf("%s\r\n \t\n", text), *behind = xasprintf("%sx", text),
                    *twice = xasprintf("%s%s", text, text);
        ASSERT_TAKEN(trust, blanks, strlen(blanks));
        ASSERT_REFUSED(trust, behind, strlen(behind));
        ASSERT_REFUSED(trust, twice, strlen(twice));
        ASSERT_REFUSED(trust, behind, strlen(behind) + 1);      /* NUL */
}

/* A message of these parts in this order. The last of the parts is the signature. */
static char *put_together(char *const *parts, const char *order) {
        Text t = {};
        text_add(&t, "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n");
        for (; *order; order++)
                text_add(&t, "--//\n%s\n", parts[*order - '0']);
        text_add(&t, "--//--\n");
        return text_take(&t);
}

TEST(missing_repeated_or_reordered_parts_are_refused) {
        static const char *const orders[] = { "12", "013", "023", "0213", "1023", "00123", "01123", "01223", "0122",
                                              "01233", "0132", "3012", "01", "3", "" };
        _cleanup_(trust_freep) Trust *trust = trust_of(&ours);
        _cleanup_(diag_done) Diag diag = {};
        char *parts[4] = { (char *)"Content-Type: application/node.eks.aws\n\n" NODE("demo"),
                           (char *)"Content-Type: application/node.eks.aws\n\n" NODE("other"),
                           (char *)"Content-Type: text/x-shellscript\n\n" SCRIPT };
        _free_ char *message = put_together(parts, "012"), *text = sign(&ours, message, NULL, &diag);
        char *begin = strstr(text, "Content-Type: " SIGNATURE_TYPE), *end = strstr(begin, "\n--//--");
        _free_ char *signature = xstrndup(begin, (size_t)(end - begin));
        parts[3] = signature;
        _free_ char *whole = put_together(parts, "0123");
        ASSERT_STREQ(text, whole);
        ASSERT_TAKEN(trust, whole, strlen(whole));
        for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
                _free_ char *other = put_together(parts, orders[i]);
                ASSERT_REFUSED(trust, other, strlen(other));
        }
}

/* A signed message within an unsigned one, or with unsigned text in front of it or behind it. */
TEST(a_message_that_is_signed_only_in_part_is_refused) {
        _cleanup_(trust_freep) Trust *trust = trust_of(&ours);
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *text = sign(&ours, NODE("demo"), NULL, &diag);
        const char *formats[] = {
                "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=xx\n\n--xx\n%s\n--xx--\n",
                "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=xx\n\n--xx\nContent-Type: "
                "application/node.eks.aws\n\n" NODE("evil") "--xx\n%s",
                NODE("evil") "---\n%s", "%s\n" NODE("evil"), "%s\nContent-Type: application/node.eks.aws\n\n" NODE("evil"),
                " %s", "\xef\xbb\xbf%s", "From me\n%s",
        };
        for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                _free_ char *other = xasprintf(formats[i], text);
#pragma GCC diagnostic pop
                ASSERT_REFUSED(trust, other, strlen(other));
        }
}

TEST(signatures_of_other_keys_and_unsigned_texts_are_refused) {
        _cleanup_(trust_freep) Trust *trust = trust_of(&ours);
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *text = sign(&theirs, NODE("demo"), NULL, &diag);
        ASSERT_REFUSED(trust, text, strlen(text));
        char *key = strstr(text, "sha256:");
        memcpy(key, trust->keys[0].name, strlen(trust->keys[0].name));
        ASSERT_REFUSED(trust, text, strlen(text));
        _free_ char *bare = xstrdup(NODE("demo"));
        ASSERT_REFUSED(trust, bare, strlen(bare));
        ASSERT_REFUSED(trust, "\n", 1);
}

/* The last digit of this base64 has bits that mean nothing, so 16 digits decode alike; only one is accepted. */
TEST(another_base64_spelling_of_the_signature_is_refused) {
        _cleanup_(trust_freep) Trust *trust = trust_of(&ours);
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *text = sign(&ours, NODE("demo"), NULL, &diag);
        char *last = strstr(strstr(text, "\nsignature: "), "==") - 1;
        ASSERT_TRUE(strchr("AQgw", *last));
        ++*last;
        ASSERT_REFUSED(trust, text, strlen(text));
}

TEST(a_signed_text_may_be_encoded_in_base64_once_but_not_twice) {
        _cleanup_(trust_freep) Trust *trust = trust_of(&ours);
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *text = sign(&ours, NODE("demo"), NULL, &diag);
        _free_ char *once = base64_encode(text, strlen(text)), *twice = base64_encode(once, strlen(once));
        ASSERT_TAKEN(trust, once, strlen(once));
        ASSERT_REFUSED(trust, twice, strlen(twice));
}

TEST(mime_that_a_node_could_not_verify_cannot_be_signed) {
        const char *const texts[] = {
                "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=xx\n\n--xx\n\na\n",         /* open */
                "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=xx\n\n--xx\n\na\n--xx--\nb\n",
                "MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=xx\r\n\r\n--xx\r\n\r\na\r\n--xx--\r\n",
                "  Content-Type: multipart/mixed; boundary=xx\n\n  --xx\n\n  a\n  --xx--\n",
        };
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_(diag_done) Diag diag = {};
                ASSERT_TRUE(!sign(&ours, texts[i], NULL, &diag));
                ASSERT_CONTAINS(diag.items[0].text, "cannot be signed");
        }
        _cleanup_(diag_done) Diag diag = {};
        _free_ char *once = sign(&ours, NODE("demo"), NULL, &diag);
        ASSERT_TRUE(!sign(&ours, once, NULL, &diag));
        ASSERT_CONTAINS(diag.items[0].text, "is signed already");
}

/* Even a text that looks like the end of a signature. */
TEST(any_text_can_be_a_part_of_a_signed_message) {
        const char *const texts[] = { "a: b\nsignature: c\n", "a: |\n  --x--\nsignature:\n", "", "\n\n",
                                      "#cloud-config\npackages: [a]\r\n", "a: \"\xc3\xa9\"" };
        _cleanup_(trust_freep) Trust *trust = trust_of(&ours);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                _cleanup_(diag_done) Diag diag = {};
                _free_ char *text = sign(&ours, texts[i], NODE("demo"), &diag);
                ASSERT_TRUE(text);
                ASSERT_TAKEN(trust, text, strlen(text));
        }
}

/* ---- trusted keys ---- */

typedef struct Fixture { char *dir; Root *root; Diag diag; Trust *trust; } Fixture;

static Fixture fixture_new(void) {
        char dir[] = "/tmp/test-signature.XXXXXX";
        Fixture f = {};
        ASSERT_TRUE(mkdtemp(dir));
        f.dir = xstrdup(dir);
        ASSERT_OK(root_new(dir, &f.root));
        return f;
}

static void fixture_done(Fixture *f) {
        ASSERT_EQ(tree_remove(f->dir), 0);
        root_free(f->root);
        trust_free(f->trust);
        diag_done(&f->diag);
        free(f->dir);
}

static void write_file(Fixture *f, const char *path, const char *text) {
        ASSERT_OK(root_replace(f->root, path, text, strlen(text), 0644));
}

static void write_key(Fixture *f, const char *path) {
        _free_ char *text = xasprintf(PUBLIC, "IqT2ioyJMvG1cj+hIsAjIkFs0nqiG9JgOlTHJyUvDFY");
        write_file(f, path, text);
}

static void change_mode(Fixture *f, const char *path, mode_t mode) {
        _free_ char *whole = xasprintf("%s%s", f->dir, path);
        ASSERT_EQ(chmod(whole, mode), 0);
}

#define ASSERT_DISTRUSTED(f, word) ({                                                          \
        ASSERT_TRUE(trust_load((f)->root, &(f)->trust, &(f)->diag) < 0);                       \
        ASSERT_TRUE(!(f)->trust);                                                              \
        ASSERT_EQ((f)->diag.n, 1);                                                             \
        ASSERT_EQ((f)->diag.items[0].cause, CAUSE_TRUST);                                      \
        _free_ char *_text = diagnostic_format(&(f)->diag.items[0]);                 \
        ASSERT_CONTAINS(_text, word);                                                          \
        diag_done(&(f)->diag); })

TEST(without_trusted_keys_signatures_are_not_required) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        ASSERT_OK(trust_load(f.root, &f.trust, &f.diag));
        ASSERT_TRUE(!f.trust);
        ASSERT_OK(root_make_dirs(f.root, TRUSTED_DIR, 0755));
        write_file(&f, TRUSTED_DIR "/.keep", "");
        ASSERT_OK(trust_load(f.root, &f.trust, &f.diag));
        ASSERT_TRUE(!f.trust);
}

TEST(keys_are_read_in_the_order_of_their_names) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        write_key(&f, TRUSTED_DIR "/b.pub");
        write_key(&f, TRUSTED_DIR "/a.pub");
        write_file(&f, TRUSTED_DIR "/x.pem", "one\n");
        write_file(&f, TRUSTED_DIR "/y.pem", "two\n");
        write_file(&f, TRUSTED_DIR "/a.pub.rpmsave", "no key\n");
        ASSERT_OK(trust_load(f.root, &f.trust, &f.diag));
        ASSERT_EQ(f.trust->n, 2);
        ASSERT_STREQ(f.trust->keys[0].file, "a.pub");
        ASSERT_STREQ(f.trust->keys[1].file, "b.pub");
        ASSERT_STREQ(f.trust->certificates, "one\n\ntwo\n\n");
}

TEST(a_bad_key_file_does_not_turn_signatures_off) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        write_file(&f, TRUSTED_DIR "/a.pem", "one\n");
        ASSERT_DISTRUSTED(&f, "has no key");
        write_key(&f, TRUSTED_DIR "/b.pub");
        write_file(&f, TRUSTED_DIR "/a.pub", "");
        ASSERT_DISTRUSTED(&f, TRUSTED_DIR "/a.pub: cannot be used as the key of a signer: it is not an Ed25519 public key");
        write_file(&f, TRUSTED_DIR "/a.pub", "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n");
        ASSERT_DISTRUSTED(&f, "it is not an Ed25519 public key");
        write_file(&f, TRUSTED_DIR "/a.pub", "-----BEGIN PUBLIC KEY-----");
        ASSERT_DISTRUSTED(&f, "it is not an Ed25519 public key");
        write_file(&f, TRUSTED_DIR "/a.pub", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n");
        ASSERT_DISTRUSTED(&f, "it is a private key");
        _free_ char *other = xasprintf(PUBLIC, "IqT2ioyJMvG1cj+hIsAjIkFs0nqiG9JgOlTHJyUvDF");
        write_file(&f, TRUSTED_DIR "/a.pub", other);
        ASSERT_DISTRUSTED(&f, "it is not an Ed25519 public key");
        _free_ char *one = xasprintf(PUBLIC, "IqT2ioyJMvG1cj+hIsAjIkFs0nqiG9JgOlTHJyUvDFY"),
                    *two = xasprintf("%s%s", one, one);
        write_file(&f, TRUSTED_DIR "/a.pub", two);
        ASSERT_DISTRUSTED(&f, "it is not an Ed25519 public key");
        ASSERT_OK(root_remove(f.root, TRUSTED_DIR "/a.pub"));
        ASSERT_OK(root_link(f.root, TRUSTED_DIR "/a.pub", "b.pub"));
        ASSERT_DISTRUSTED(&f, TRUSTED_DIR "/a.pub is a symbolic link");
        ASSERT_OK(root_remove(f.root, TRUSTED_DIR "/a.pub"));
        ASSERT_OK(root_make_dirs(f.root, TRUSTED_DIR "/a.pub", 0755));
        ASSERT_DISTRUSTED(&f, "a.pub");
        ASSERT_OK(root_remove_dir(f.root, TRUSTED_DIR "/a.pub"));
        ASSERT_OK(trust_load(f.root, &f.trust, &f.diag));
        ASSERT_TRUE(f.trust);
}

TEST(a_file_in_place_of_the_key_directory_is_an_error) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        write_file(&f, TRUSTED_DIR, "");
        ASSERT_DISTRUSTED(&f, "cannot be read");
}

TEST(a_dead_link_in_the_path_of_the_keys_is_an_error) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        ASSERT_OK(root_link(f.root, TRUSTED_DIR, "/nowhere"));
        ASSERT_DISTRUSTED(&f, TRUSTED_DIR " is a dangling symbolic link");
        ASSERT_OK(root_remove(f.root, TRUSTED_DIR));
        ASSERT_OK(trust_load(f.root, &f.trust, &f.diag));
        ASSERT_OK(root_remove_dir(f.root, "/etc/nodestrap"));
        ASSERT_OK(root_link(f.root, "/etc/nodestrap", "/mnt/conf"));
        ASSERT_DISTRUSTED(&f, "/etc/nodestrap is a dangling symbolic link");
        ASSERT_OK(root_make_dirs(f.root, "/mnt/conf", 0755));
        ASSERT_OK(trust_load(f.root, &f.trust, &f.diag));       /* it leads to a directory without a key */
        ASSERT_TRUE(!f.trust);
}

TEST(a_hidden_key_is_not_used_but_requires_signatures) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        write_key(&f, TRUSTED_DIR "/.a.pub");
        ASSERT_DISTRUSTED(&f, "has no key");
        write_key(&f, TRUSTED_DIR "/b.pub");
        write_file(&f, TRUSTED_DIR "/.x.pem", "one\n");
        ASSERT_OK(trust_load(f.root, &f.trust, &f.diag));
        ASSERT_EQ(f.trust->n, 1);
        ASSERT_STREQ(f.trust->keys[0].file, "b.pub");
        ASSERT_TRUE(!f.trust->certificates);
}

TEST(a_key_that_other_users_can_write_is_an_error) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        const char *const paths[] = { "/etc", "/etc/nodestrap", TRUSTED_DIR, TRUSTED_DIR "/a.pub" };
        write_key(&f, TRUSTED_DIR "/a.pub");
        for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
                _free_ char *text = xasprintf("trusted: %s is writable by users other than root", paths[i]);
                mode_t mode = i + 1 == ARRAY_SIZE(paths) ? 0644 : 0755;
                change_mode(&f, paths[i], mode | 020);
                ASSERT_DISTRUSTED(&f, text);
                change_mode(&f, paths[i], mode | 002);
                ASSERT_DISTRUSTED(&f, text);
                change_mode(&f, paths[i], mode);
        }
        change_mode(&f, "/etc", 01777);         /* sticky: other users cannot replace files of root there */
        ASSERT_OK(trust_load(f.root, &f.trust, &f.diag));
        ASSERT_TRUE(f.trust);
}

TEST(a_path_that_another_user_owns_is_not_guarded) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        _free_ char *why = NULL, *directory = xasprintf("%s/etc", f.dir), *file = xasprintf("%s/etc/a", f.dir);
        if (geteuid() != 0)
                SKIP("only root can give files away");
        write_file(&f, "/etc/a", "");
        ASSERT_EQ(path_is_guarded(f.root, "/etc/a", &why), 1);
        ASSERT_EQ(chown(file, 4711, 4711), 0);
        ASSERT_EQ(path_is_guarded(f.root, "/etc/a", &why), 0);
        ASSERT_STREQ(why, "/etc/a does not belong to root");
        why = (free(why), NULL);
        ASSERT_EQ(chown(directory, 4711, 4711), 0);
        ASSERT_EQ(path_is_guarded(f.root, "/etc/a", &why), 0);
        ASSERT_STREQ(why, "/etc does not belong to root");
        why = (free(why), NULL);
        ASSERT_EQ(chown(f.dir, 4711, 4711), 0); /* the owner of the root directory stands for root */
        ASSERT_EQ(path_is_guarded(f.root, "/etc/a", &why), 1);
        ASSERT_EQ(path_is_guarded(f.root, "/etc/b", &why), -ENOENT);
        ASSERT_OK(root_link(f.root, "/link", "/etc"));
        ASSERT_EQ(path_is_guarded(f.root, "/link/a", &why), 0);
        ASSERT_STREQ(why, "/link is a symbolic link");
        ASSERT_EQ(path_is_guarded(f.root, "/etc/../etc//a", &why), 1);
}

/* ---- what a signature is bound to ---- */

static int check(Fixture *f, const Signature *s) {
        Config config = { .document = json_pack("{s{s{ss}}}", "spec", "cluster", "name", "demo") };
        Signatures all = { .items = (Signature *)s, .n = 1 };
        Trust trust = {};
        diag_done(&f->diag);
        int r = signatures_check(f->root, &all, &trust, &config, NULL, false, &f->diag);
        json_decref(config.document);
        ASSERT_EQ(f->diag.n, r < 0);
        return r;
}

static int keep(Fixture *f, const Signature *s) {
        return signatures_keep(f->root, &(Signatures){ .items = (Signature *)s, .n = 1 }, &f->diag);
}

TEST(a_serial_below_the_last_one_is_refused) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        Signature s = { .source = (char *)"user-data", .serial = 5 },
                  other = { .source = (char *)"/x.yaml", .serial = 1 };
        ASSERT_OK(check(&f, &s));
        ASSERT_OK(keep(&f, &s));
        ASSERT_OK(keep(&f, &other));
        ASSERT_TRUE(file_is(f.root, SERIALS_FILE, "{\"/x.yaml\":1,\"user-data\":5}", 27, 0600));
        ASSERT_OK(check(&f, &s));
        ASSERT_OK(check(&f, &other));
        s.serial = 4;
        ASSERT_ERROR(check(&f, &s), EKEYEXPIRED);
        ASSERT_EQ(f.diag.items[0].cause, CAUSE_DOWNGRADE);
        s.serial = INT64_MAX;
        ASSERT_OK(check(&f, &s));
        ASSERT_OK(keep(&f, &s));
        s.serial--;
        ASSERT_ERROR(check(&f, &s), EKEYEXPIRED);
}

TEST(an_invalid_file_of_serials_is_an_error) {
        static const char *const texts[] = { "", "{", "[]", "{\"user-data\":\"5\"}", "{\"user-data\":5.5}",
                                             "{\"user-data\":9223372036854775808}", "{\"user-data\":1,\"user-data\":2}",
                                             "{\"user-data\":null}", "{\"user-data\":-1}" };
        _cleanup_(fixture_done) Fixture f = fixture_new();
        Signature s = { .source = (char *)"user-data", .serial = 5 };
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                write_file(&f, SERIALS_FILE, texts[i]);
                ASSERT_TRUE(check(&f, &s) < 0);
                ASSERT_EQ(f.diag.items[0].cause, CAUSE_DOWNGRADE);
        }
}

TEST(a_signature_for_another_cluster_or_unproven_account_is_refused) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        Signature s = { .source = (char *)"user-data", .cluster = (char *)"demo" };
        ASSERT_OK(check(&f, &s));
        s.cluster = (char *)"other";
        ASSERT_ERROR(check(&f, &s), EKEYREJECTED);
        ASSERT_EQ(f.diag.items[0].cause, CAUSE_BINDING);
        ASSERT_CONTAINS(f.diag.items[0].text, "is signed for cluster other, but this is demo");
        s.cluster = NULL;
        s.account = (char *)"123456789012";
        ASSERT_ERROR(check(&f, &s), ENOKEY);
        ASSERT_EQ(f.diag.items[0].cause, CAUSE_BINDING);
}

TEST_MAIN
