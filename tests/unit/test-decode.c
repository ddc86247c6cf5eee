/* SPDX-License-Identifier: Apache-2.0
 * source_decode() on whole user data: documents, notes and errors.
 * Rules N1, N2, M7, M10, E1 to E4, L1 to L4. */
#include "base/str.h"
#include "source/source.h"
#include "test.h"

#define OURS "Content-Type: application/node.eks.aws\n"
#define HEAD "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n"
#define CONFIG "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"

typedef struct Decoded { Documents documents; Diag diag; int r; char *text; } Decoded;

static void decoded_done(Decoded *d) {
        documents_done(&d->documents);
        diag_done(&d->diag);
        free(d->text);
}

/* text: all messages, one line each. */
static Decoded decode_blobs(Blobs *blobs) {
        Decoded d = {};
        Text t = {};

        d.r = source_decode(blobs, &d.documents, &d.diag);
        for (size_t i = 0; i < d.diag.n; i++) {
                _free_ char *line = diagnostic_format(&d.diag.items[i]);
                text_add(&t, "%s%s\n", d.diag.items[i].warning ? "warning: " : "error: ", line);
        }
        d.text = text_take(&t);
        blobs_done(blobs);
        return d;
}

static Decoded decode_bytes(const char *data, size_t size) {
        Blobs blobs = {};
        blobs_add(&blobs, (Position){ "user-data", 0, 1 }, xmemdup(data, size), size);
        return decode_blobs(&blobs);
}

static Decoded decode(const char *text) {
        return decode_bytes(text, strlen(text));
}

/* No documents, no error, and this message. */
#define ASSERT_NOTHING(data, said) ({                                                          \
        _cleanup_(decoded_done) Decoded _d = decode(data);                                     \
        if (_d.r < 0) FAIL("%s: %s", #data, _d.text);                                          \
        ASSERT_EQ(_d.documents.n, 0);                                                          \
        ASSERT_CONTAINS(_d.text, said); })

#define ASSERT_DOCUMENTS(data, count) ({                                                       \
        _cleanup_(decoded_done) Decoded _d = decode(data);                                     \
        if (_d.r < 0) FAIL("%s: %s", #data, _d.text);                                          \
        ASSERT_EQ(_d.documents.n, count); })

#define ASSERT_FAILS(data, cause_wanted, said) ({                                              \
        _cleanup_(decoded_done) Decoded _d = decode(data);                                     \
        ASSERT_TRUE(_d.r < 0);                                                                 \
        ASSERT_EQ(_d.documents.n, 0);                                                          \
        ASSERT_EQ(diag_first_error(&_d.diag)->cause, cause_wanted);                            \
        ASSERT_CONTAINS(_d.text, said); })

TEST(n1_user_data_without_documents) {
        ASSERT_NOTHING("", "");
        ASSERT_NOTHING("\n\n# text\n---\n...\n", "");
        ASSERT_NOTHING(HEAD "--B\nContent-Type: text/yaml\n\n" CONFIG "--B--\n", "");
        ASSERT_NOTHING(HEAD "--B\n" OURS "\n# nothing\n--B--\n", "");
}

TEST(n1_foreign_kinds) {
        ASSERT_NOTHING("#!/bin/sh\ncat >x <<EOF\n" CONFIG "EOF\n", "foreign-data: the first line marks this as a script");
        ASSERT_NOTHING("\n#!/bin/sh\n" CONFIG, "a script");
        ASSERT_NOTHING("#cloud-config\nruncmd: [ls]\n", "a cloud-config");
        ASSERT_NOTHING("#cloud-config\nwrite_files:\n- content: |\n    " CONFIG, "a cloud-config");
        ASSERT_NOTHING("#Cloud-Config-Archive\r\n- x\r\n", "archive");
        ASSERT_NOTHING("## template: jinja\n#cloud-config\n{% if x %}\n" CONFIG, "a template");
        ASSERT_NOTHING("#include\nhttps://example.com/a\n", "an include file");
        ASSERT_NOTHING("#cloud-boothook\n#!/bin/sh\n", "a boot hook");
        ASSERT_DOCUMENTS("#cloud-configuration of ours\n" CONFIG, 1);
        ASSERT_DOCUMENTS("#included by us\n" CONFIG, 1);
}

TEST(n1_notes_only_when_nothing_is_found) {
        Blobs blobs = {};
        blobs_add(&blobs, (Position){ "user-data", 0, 1 }, xstrdup("#!/bin/sh\n"), 10);
        blobs_add(&blobs, (Position){ "/etc/a.yaml", 0, 1 }, xstrdup(CONFIG), strlen(CONFIG));
        _cleanup_(decoded_done) Decoded d = decode_blobs(&blobs);
        ASSERT_OK(d.r);
        ASSERT_EQ(d.documents.n, 1);
        ASSERT_STREQ(d.documents.items[0].at.source, "/etc/a.yaml");
        ASSERT_STREQ(d.text, "");
}

TEST(n1_text_that_is_not_yaml) {
        ASSERT_NOTHING("Hello\n" CONFIG, "user-data, line 2, column 11: not-yaml");
        ASSERT_NOTHING("[settings.kubernetes]\napi-server = \"x\"\n", "user-data, line 2, column 1: not-yaml");
        ASSERT_NOTHING("<powershell>\n" CONFIG "</powershell>\n", "not-yaml");
        ASSERT_NOTHING("MIME-Version: 1.0\n\n--B\n" OURS "\n" CONFIG "\tx\n", "not-yaml");
        ASSERT_NOTHING("Content-Type: text/plain\n--B\n" OURS CONFIG "\tx\n", "not-yaml");
        ASSERT_NOTHING("a:\n\tb: c\n", "line 2, column 1: not-yaml");
        ASSERT_NOTHING("a: |\n  kind: NodeConfig\nb: [\n", "not-yaml");
        ASSERT_NOTHING("{\"data\": \"\\\"kind\\\": \\\"NodeConfig\\\"\",\n", "not-yaml");
        ASSERT_NOTHING("\x01\x02\xff\xfe", "line 1, column 1: not-yaml");
}

TEST(n1_limits_of_text_that_is_not_ours) {
        Text t = {};
        for (int i = 0; i < 2000; i++)
                text_add(&t, "[");
        _free_ char *deep = text_take(&t);
        ASSERT_NOTHING(deep, "depth");
}

TEST(n2_broken_text_that_names_a_nodeconfig) {
        ASSERT_FAILS(CONFIG "spec:\n\ta: b\n", CAUSE_SYNTAX, "user-data, line 4, column 1: ");
        ASSERT_FAILS("# mine\n\nspec:\n\ta: b\nkind: \"NodeConfig\"\n", CAUSE_SYNTAX, "user-data, line 4, column 1: ");
        ASSERT_FAILS("---\nspec: [\n'apiVersion' : 'node.eks.aws/v1'\n", CAUSE_SYNTAX, "error: user-data, line ");
        ASSERT_FAILS("--- # mine\nx: &x {}\nspec: [\nkind: NodeConfig\n", CAUSE_SYNTAX, "error: user-data, line ");
        ASSERT_FAILS("  spec: [\n  kind: NodeConfig\n", CAUSE_SYNTAX, "error: user-data, line ");
        ASSERT_FAILS("\xef\xbb\xbf" "kind: NodeConfig\r\nspec: {\r\n", CAUSE_SYNTAX, "line 2");
        ASSERT_FAILS("{\n  \"kind\": \"NodeConfig\",\n  \"spec\": {\n  }\n", CAUSE_SYNTAX, "error: user-data, line 4");
        ASSERT_FAILS("{\"spec\": {}, \"apiVersion\":\"node.eks.aws/v1alpha1\" \"a\"}", CAUSE_SYNTAX, "line 1");
        ASSERT_FAILS(CONFIG "---\nHello\nworld: x\n", CAUSE_SYNTAX, "line 5");
}

TEST(n2_lines_of_parts) {
        ASSERT_FAILS(HEAD "--B\nContent-Type: text/plain\n\nx\n--B\n" OURS "\n" CONFIG "spec: ]\n--B--\n", CAUSE_SYNTAX, "user-data, part 2, line 13, column 7: ");
        ASSERT_FAILS(HEAD "--B\n" OURS "Content-Transfer-Encoding: quoted-printable\n\na: b\nc: =\n]\n--B--\n", CAUSE_SYNTAX, "user-data, part 1, line 2, column 4: ");
        ASSERT_FAILS(HEAD "--B\n" OURS "\na: b\n--B\n" OURS "\nkind: [\n--B--\n", CAUSE_SYNTAX, "user-data, part 2, line 11: ");
}

TEST(n2_lines_behind_the_outer_layer) {
        _free_ char *text = base64_encode(CONFIG "]\n", strlen(CONFIG) + 2);
        ASSERT_FAILS(text, CAUSE_SYNTAX, "user-data, line 3, column 1: ");
}

TEST(m7_boundary_is_named) {
        ASSERT_NOTHING("Content-Type: multipart/mixed\n\n--B\n" OURS "\n" CONFIG "--B--\n", "boundary");
}

TEST(m10_labelled_parts_decode) {
        ASSERT_FAILS(HEAD "--B\n" OURS "\necho hi\n--B--\n", CAUSE_SYNTAX, "user-data, part 1, line 7: this part is labelled");
        ASSERT_FAILS(HEAD "--B\n" OURS "\n- a\n--B\n" OURS "\n" CONFIG "--B--\n", CAUSE_SYNTAX, "part 1");
        ASSERT_FAILS(HEAD "--B\n" OURS "\n" CONFIG "--B\n" OURS "\na: [\n--B--\n", CAUSE_SYNTAX, "part 2");
        ASSERT_DOCUMENTS(HEAD "--B\n" OURS "\n" CONFIG "--B\n" OURS "\n\n# none\n--B\n" OURS "\n" CONFIG "---\na: b\n--B--\n", 3);
}

TEST(all_errors_are_reported) {
        _cleanup_(decoded_done) Decoded d = decode(HEAD "--B\n" OURS "\na: [\n--B\n" OURS "\nb: ]\n--B--\n");
        ASSERT_TRUE(d.r < 0);
        ASSERT_EQ(diag_count(&d.diag, false), 2);
}

TEST(e4_double_base64) {
        _free_ char *once = base64_encode(CONFIG, strlen(CONFIG)), *twice = base64_encode(once, strlen(once));
        _cleanup_(decoded_done) Decoded d = decode(twice);
        ASSERT_DOCUMENTS(once, 1);
        ASSERT_OK(d.r);
        ASSERT_EQ(d.documents.n, 0);
        ASSERT_STREQ(d.documents.unread, "user-data: still base64 after decoding; encode it only once");
}

TEST(e3_l3_outer_layer) {
        _cleanup_(decoded_done) Decoded d = decode_bytes("\x1f\x8b\x08\x00", 4);
        _free_ char *large = xcalloc(DOC_MAX_BYTES + 2, 1);
        ASSERT_ERROR(d.r, EBADMSG);
        ASSERT_CONTAINS(d.text, "error: user-data: the gzip data");
        memset(large, '\n', DOC_MAX_BYTES + 1);
        large[0] = '#';
        ASSERT_FAILS(large, CAUSE_LIMIT, "limit");
}

TEST(documents_know_their_position) {
        _cleanup_(decoded_done) Decoded d = decode(HEAD "--B\nContent-Type: text/plain\n\n--B\n" OURS "\n# x\na: b\n---\n\nc: d\n--B--\n");
        ASSERT_OK(d.r);
        ASSERT_EQ(d.documents.n, 2);
        ASSERT_EQ(d.documents.items[0].at.part, 2);
        ASSERT_EQ(d.documents.items[0].at.line, 11);
        ASSERT_EQ(d.documents.items[1].at.line, 14);
        ASSERT_STREQ(d.documents.items[1].at.source, "user-data");
}

TEST_MAIN
