/* SPDX-License-Identifier: Apache-2.0
 * mime_split(): rules M1 to M12, E2, L4, N2. */
#include "base/str.h"
#include "doc/doc.h"
#include "test.h"

#define TYPE "application/node.eks.aws"
#define OURS "Content-Type: " TYPE "\n"

typedef struct Split { Blobs parts; Diag diag; bool is_mime; int r; char *text; } Split;

static void split_done(Split *s) {
        blobs_done(&s->parts);
        diag_done(&s->diag);
        free(s->text);
}

/* text: all parts as "PART:LINE:BODY|", or the message of a failure. */
static Split split_bytes(const char *data, size_t size) {
        _free_ char *copy = xmemdup(data, size);
        Blob message = { .at = { "user-data", 0, 1 }, .data = copy, .size = size };
        Split s = {};
        Text t = {};

        s.r = mime_split(&message, TYPE, &s.parts, &s.is_mime, &s.diag);
        for (size_t i = 0; i < s.parts.n; i++)
                text_add(&t, "%u:%u:%s|", s.parts.items[i].at.part, s.parts.items[i].at.line, s.parts.items[i].data);
        s.text = s.r < 0 ? diagnostic_format(diag_first_error(&s.diag)) : text_take(&t);
        return s;
}

#define ASSERT_PARTS(message, want) ({                                                         \
        _cleanup_(split_done) Split _s = split_bytes(message, strlen(message));                \
        if (_s.r < 0) FAIL("%s", _s.text);                                                     \
        ASSERT_TRUE(_s.is_mime);                                                               \
        ASSERT_STREQ(_s.text, want); })

#define ASSERT_BARE(bytes) ({                                                                  \
        _cleanup_(split_done) Split _s = split_bytes(bytes, strlen(bytes));                    \
        ASSERT_OK(_s.r);                                                                       \
        ASSERT_TRUE(!_s.is_mime);                                                              \
        ASSERT_EQ(_s.parts.n, 1);                                                              \
        ASSERT_EQ(_s.parts.items[0].at.part, 0);                                               \
        ASSERT_EQ(_s.parts.items[0].at.line, 1);                                               \
        ASSERT_EQ(_s.diag.n, 0);                                                               \
        ASSERT_STREQ(_s.parts.items[0].data, bytes); })

#define ASSERT_WARNED(message, code_wanted, part_of_message) ({                                \
        _cleanup_(split_done) Split _s = split_bytes(message, strlen(message));                \
        _free_ char *_w = NULL;                                                      \
        ASSERT_OK(_s.r);                                                                       \
        ASSERT_EQ(_s.diag.n, 1);                                                               \
        ASSERT_STREQ(_s.diag.items[0].code, code_wanted);                                      \
        _w = diagnostic_format(&_s.diag.items[0]);                                             \
        ASSERT_CONTAINS(_w, part_of_message); })

#define HEAD "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n"

TEST(m1_multipart_messages_are_recognized) {
        ASSERT_PARTS(HEAD "--B\n" OURS "\na: b\n--B--\n", "1:7:a: b|");
        ASSERT_PARTS("Content-Type: multipart/mixed; boundary=B\nMIME-Version: 1.0\n\n--B\n" OURS "\na: b\n--B--\n", "1:7:a: b|");
        ASSERT_PARTS("content-type:MULTIPART/related;BOUNDARY=B\n\n--B\n" OURS "\na: b\n--B--\n", "1:6:a: b|");
        ASSERT_PARTS("\xef\xbb\xbf" HEAD "--B\n" OURS "\na: b\n--B--\n", "1:7:a: b|");
        ASSERT_PARTS("From me Mon Jan  1 00:00:00 2024\n" HEAD "--B\n" OURS "\na: b\n--B--\n", "1:8:a: b|");
        ASSERT_PARTS("Subject: x\nContent-Type:\n  multipart/mixed;\n\tboundary=\"B\"\n\n--B\nContent-Type:\n " TYPE "\n\na: b\n--B--\n", "1:10:a: b|");
        ASSERT_PARTS("MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=B\r\n\r\n--B\r\nContent-Type: " TYPE "\r\n\r\na: b\r\nc: d\r\n--B--\r\n",
                     "1:7:a: b\r\nc: d|");
        ASSERT_PARTS("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\r\n\n--B\n" OURS "\r\na: b\r\n--B--", "1:7:a: b|");
}

TEST(m1_other_texts_are_not_messages) {
        ASSERT_BARE("");
        ASSERT_BARE("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n");
        ASSERT_BARE("MIME-Version: 1.0\nContent-Type: text/plain\n\n" OURS "\n");
        ASSERT_BARE("\n\nMIME-Version: 1.0\n\nContent-Type: multipart/mixed; boundary=B\n\n--B\n");
        ASSERT_BARE("#!/bin/sh\ncat <<X\nContent-Type: multipart/mixed; boundary=B\nX\n");
        ASSERT_BARE("  indented: yes\n  text: too\n");
}

TEST(m2_leading_blanks_are_removed) {
        ASSERT_PARTS("\n \n\t\n" HEAD "--B\n" OURS "\na: b\n--B--\n", "1:10:a: b|");
        ASSERT_PARTS("    Content-Type: multipart/mixed; boundary=B\n\n    --B\n    " OURS "\n    a:\n      b: c\n \n    d: e\n    --B--\n",
                     "1:6:a:\n  b: c\n\nd: e|");
        ASSERT_PARTS("\t\tContent-Type: multipart/mixed; boundary=B\n\n\t\t--B\n\t\t" OURS "\n\t\ta: b\n\t\t--B--\n", "1:6:a: b|");
        ASSERT_PARTS("  Content-Type: multipart/mixed; boundary=B\n\n--B\n" OURS "\na: b\n--B--\n", "1:6:a: b|");
}

TEST(m3_headers_end_at_a_blank_line_or_at_yaml) {
        ASSERT_PARTS("Content-Type: multipart/mixed; boundary=B\n--B\n" OURS "\na: b\n--B--\n", "1:5:a: b|");
        ASSERT_PARTS("Content-Type: multipart/mixed; boundary=B\n \t\n--B\n" OURS "  \na: b\n--B--\n", "1:6:a: b|");
        ASSERT_PARTS(HEAD "--B\n" OURS "apiVersion: x\nkind: y\n--B--\n", "1:6:apiVersion: x\nkind: y|");
        ASSERT_PARTS(HEAD "--B\n" OURS "kind: y\n--B--\n", "1:6:kind: y|");
        ASSERT_PARTS(HEAD "--B\n" OURS "metadata: {}\n--B--\n", "1:6:metadata: {}|");
        ASSERT_PARTS(HEAD "--B\n" OURS "spec:\n  a: b\n--B--\n", "1:6:spec:\n  a: b|");
        ASSERT_PARTS(HEAD "--B\n" OURS "\"apiVersion\": x\n--B--\n", "1:6:\"apiVersion\": x|");
        ASSERT_PARTS(HEAD "--B\n" OURS "'kind': x\n--B--\n", "1:6:'kind': x|");
        ASSERT_PARTS(HEAD "--B\n" OURS "{\"kind\": 1}\n--B--\n", "1:6:{\"kind\": 1}|");
        ASSERT_PARTS(HEAD "--B\n" OURS "# text\n--B--\n", "1:6:# text|");
        ASSERT_PARTS(HEAD "--B\n" OURS "X-Kind: y\nspecial: z\n\na: b\n--B--\n", "1:9:a: b|");
        ASSERT_PARTS("Content-Type: multipart/mixed; boundary=\"a:b\"\n--a:b\n" OURS "\na: b\n--a:b--\n", "1:5:a: b|");
}

/* The results follow the email package of Python: does it take the line as a header? */
TEST(m3_a_missing_blank_line_is_a_warning) {
#define LOST  "a blank line is missing above this line: cloud-init takes this line for a header"
#define READ  "a blank line is missing above this line: cloud-init accepts such a MIME message"
        static const struct { const char *text, *says; } cases[] = {
                { OURS "apiVersion: x\nkind: y", LOST }, { OURS "spec:\n  a: b", LOST }, { OURS "'kind': x", LOST }, { OURS "{\"kind\": 1}", LOST },
                { OURS "# text", READ }, { OURS "- a: b", READ }, { OURS "{ \"kind\": 1}", READ },
                { "Content-Type: text/x-shellscript\n#!/bin/sh\necho a: b", READ }, { "Content-Type: text/cloud-config\nruncmd:\n- a", READ },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *m = xasprintf(HEAD "--B\n%s\n--B--\n", cases[i].text);
                ASSERT_WARNED(m, "missing-blank-line", cases[i].says);
        }
        ASSERT_WARNED(HEAD "--B\nContent-Type: text/plain\n\nx\n--B\n" OURS "kind: x\n--B--\n", "missing-blank-line", "user-data, part 2, line 10: missing-blank-line");
        ASSERT_WARNED(HEAD "--B\n#!/bin/sh\n--B--\n", "missing-blank-line", READ);
        ASSERT_WARNED("Content-Type: multipart/mixed; boundary=B\n--B\n" OURS "\na: b\n--B--\n", "missing-blank-line", "user-data, line 2: missing-blank-line: a blank line is missing");
        ASSERT_WARNED(OURS "spec: {}\n", "missing-blank-line", LOST);
        for (size_t i = 0; i < 3; i++) {        /* nothing behind the headers, or a blank line: nothing is missing */
                _free_ char *m = xasprintf(HEAD "--B\n" OURS "%s", i == 0 ? "" : i == 1 ? "--B--\n" : " \t\nspec: {}\n--B--");
                _cleanup_(split_done) Split s = split_bytes(m, strlen(m));
                ASSERT_EQ(s.diag.n, 0);
        }
}

TEST(m4_boundary_parameters_are_parsed) {
        static const struct { const char *parameter, *boundary; } cases[] = {
                { "boundary=\"B\"", "B" }, { "boundary=B", "B" }, { "boundary=//", "//" }, { "boundary===B==", "==B==" }, { "boundary=?x?", "?x?" },
                { "boundary=\"a b;c\"", "a b;c" }, { "boundary=\"a\\\"b\\\\\"", "a\"b\\" }, { "boundary='B'", "'B'" }, { "charset=utf-8; boundary=B; x=y", "B" },
                { "boundary = B", "B" }, { "Boundary=B;", "B" }, { "charset; boundary=B", "B" }, { "boundary=B (comment)", "B" },
                { "x=\"boundary=C\"; boundary=B", "B" }, { "boundary=\"B  \"", "B" }, { "boundary=(a)<b>@,:[c]=", "(a)<b>@,:[c]=" },
                { "x=\"y; boundary=B", "B" }, { "boundary=B; boundary=C", "B" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const char *b = cases[i].boundary;
                _free_ char *m = xasprintf("Content-Type: multipart/mixed; %s\n\n--%s\n" OURS "\na: b\n--%s--\n", cases[i].parameter, b, b);
                ASSERT_PARTS(m, "1:6:a: b|");
        }
}

TEST(m5_only_exact_delimiter_lines_count) {
        ASSERT_PARTS(HEAD "--B \t\n" OURS "\na: b\n--B-- and so on\nc: d\n", "1:7:a: b|");
        ASSERT_PARTS(HEAD "--B\n" OURS "\na: |\n  --B\n --B--\n--Bx\n--BB--\n-- B\n--b\n--B--\n", "1:7:a: |\n  --B\n --B--\n--Bx\n--BB--\n-- B\n--b|");
        ASSERT_PARTS(HEAD "--B\n" OURS "\na: b\n\n--B\n" OURS "\n\nc: d\n--B--", "1:7:a: b\n|2:12:\nc: d|");
}

TEST(m6_a_missing_end_is_tolerated) {
        ASSERT_PARTS(HEAD "--B\n" OURS "\na: b\n", "1:7:a: b\n|");
        ASSERT_PARTS(HEAD "--B\n" OURS "\na: b\n--B", "1:7:a: b|");
        ASSERT_PARTS(HEAD "--B\n" OURS "\na: b\n--B\n\n", "1:7:a: b|");
        ASSERT_PARTS(HEAD "--B\n" OURS, "1:6:|");
}

TEST(m7_a_missing_boundary_is_a_warning) {
        ASSERT_WARNED("Content-Type: multipart/mixed\n\n--B\n" OURS "\na: b\n--B--\n", "no-parts", "boundary");
        ASSERT_WARNED("Content-Type: multipart/mixed; boundary=\n\n--B\n" OURS "\na: b\n--B--\n", "no-parts", "boundary");
        ASSERT_WARNED("Content-Type: multipart/mixed; boundary=\"\"\n\n--\n" OURS "\na: b\n----\n", "no-parts", "boundary");
        ASSERT_WARNED("Content-Type: multipart/mixed; boundary='B'\n\n--B\n" OURS "\na: b\n--B--\n", "no-parts", "user-data, line 3: no-parts: the boundary");
        ASSERT_PARTS("Content-Type: multipart/mixed; boundary=C\n\n--B\n" OURS "\na: b\n--B--\n", "");
}

TEST(a_nodeconfig_in_a_part_of_another_type_is_a_warning) {
        static const char *const types[] = { "text/cloud-config", "text/x-shellscript", "text/jinja2", "text/plain" };
#define PART(type, body) HEAD "--B\nContent-Type: " type "\n\n" body "--B--\n"
#define CONFIG "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n"
        for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
                _free_ char *m = xasprintf(PART("%s", "# ours\n\n---\n" CONFIG), types[i]);
                ASSERT_WARNED(m, MIME_NEAR, "so it is not read as a NodeConfig; did you mean " TYPE "?");
        }
        static const char *const others[] = {
                PART("text/x-shellscript", "#!/bin/sh\ncat <<E\n" CONFIG), PART("text/cloud-config", "#cloud-config\nwrite_files:\n- content: |\n" CONFIG),
                PART("text/x-shellscript", "\n#! /bin/sh\nkind: x\n" CONFIG), PART("text/jinja2", "apiVersion:\n"),
        };
        for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
                _cleanup_(split_done) Split s = split_bytes(others[i], strlen(others[i]));
                ASSERT_OK(s.r);
                ASSERT_EQ(s.diag.n, 0);
        }
}

TEST(m8_only_the_nodeconfig_type_counts) {
        static const char *const good[] = { TYPE, "APPLICATION/Node.EKS.aws", TYPE ";", TYPE "; charset", TYPE "; charset=\"utf-8", TYPE " ; x=y", "\t" TYPE " " };
        static const char *const bad[] = { "text/yaml", "application/node.eks.aws.x", "application/yaml", "", "text/plain; x=" TYPE, "\"" TYPE "\"" };

        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                _free_ char *m = xasprintf(HEAD "--B\nContent-Type:%s\n\na: b\n--B--\n", good[i]);
                ASSERT_PARTS(m, "1:7:a: b|");
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                _free_ char *m = xasprintf(HEAD "--B\nContent-Type:%s\n\na: b\n--B--\n", bad[i]);
                ASSERT_PARTS(m, "");
        }
        ASSERT_PARTS(HEAD "--B\n\n" OURS "\na: b\n--B--\n", "");
        ASSERT_PARTS(HEAD "--B\nContent-Type : " TYPE "\n\na: b\n--B--\n", "");
        ASSERT_PARTS(HEAD "--B\nContent-Type: text/plain\n" OURS "\na: b\n--B--\n", "");
        ASSERT_PARTS(HEAD "--B\n" OURS "Content-Type: text/plain\n\na: b\n--B--\n", "1:8:a: b|");
}

TEST(m9_nested_messages_are_split) {
        ASSERT_PARTS(HEAD "--B\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n--B\nContent-Type: multipart/alternative; boundary=C\n\n--C\n" OURS
                     "\na: b\n--C\n" OURS "\nc: d\n--C--\n--B\n" OURS "\ne: f\n--B--\n", "2:14:a: b|3:18:c: d|4:23:e: f|");
        /* The outer boundary ends an inner part that is still open. */
        ASSERT_PARTS(HEAD "--B\nContent-Type: multipart/mixed; boundary=C\n\n--C\n" OURS "\na: b\n--B\n" OURS "\nc: d\n--B--\n", "1:10:a: b|2:14:c: d|");
        ASSERT_PARTS(HEAD "--B\nContent-Type: message/rfc822\n\nContent-Type: multipart/mixed; boundary=C\n\n--C\n" OURS "\na: b\n--C--\n--B--\n", "");
}

TEST(m10_damage_in_other_parts_is_ignored) {
        ASSERT_PARTS(HEAD "--B\nContent-Type: text/plain\nno header\n--B\nContent-Type: text/x; x\n\n\x01\xff\n--B\n\n--B\n--B\n" OURS "\na: b\n--B--\n", "5:17:a: b|");
        ASSERT_PARTS(HEAD "--B\nContent-Type: multipart/mixed\n\nx\n--B\n" OURS "\na: b\n--B--\n", "1:11:a: b|");
        ASSERT_PARTS(HEAD "--B\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\n\x1f\x8b\n--B\n" OURS "\na: b\n--B--\n", "2:12:a: b|");
}

TEST(m11_a_config_after_the_closing_boundary_is_a_warning) {
        ASSERT_WARNED(HEAD "--B\n" OURS "\na: b\n--B--\n--B\n" OURS "\nc: d\n--B--\napiVersion: node.eks.aws/v1alpha1\n",
                      "config-after-closing-boundary", "user-data, line 10: config-after-closing-boundary");
        ASSERT_WARNED(HEAD "--B--\napiVersion: v1\n", "no-parts", "boundary");
        ASSERT_WARNED(HEAD "--B\n" OURS "\na: b\n--B--\ncontent-type: application/NODE.eks.aws; x\n", "config-after-closing-boundary", "line 9");
}

TEST(m11_an_ordinary_epilogue_has_no_warning) {
        static const char *const epilogues[] = { "", "\n\nthe end\n", "Content-Type: text/plain\n", " apiVersion: node.eks.aws/v1alpha1\n",
                                                 "apiVersion: v1\n", "kind: NodeConfig\n", "# Content-Type: " TYPE "\n" };
        for (size_t i = 0; i < ARRAY_SIZE(epilogues); i++) {
                _free_ char *m = xasprintf(HEAD "preamble\n--B\n" OURS "\na: b\n--B--\n%s", epilogues[i]);
                _cleanup_(split_done) Split s = split_bytes(m, strlen(m));
                ASSERT_STREQ(s.text, "1:8:a: b|");
                ASSERT_EQ(s.diag.n, 0);
        }
}

TEST(m12_a_message_without_parts_is_the_part) {
        ASSERT_PARTS("MIME-Version: 1.0\n" OURS "\na: b\n", "1:4:a: b\n|");
        ASSERT_PARTS(OURS "Content-Transfer-Encoding: base64\n\nYTog\nYg==\n", "1:1:a: b|");
        ASSERT_PARTS(OURS "apiVersion: x\n", "1:2:apiVersion: x\n|");
}

TEST(e2_transfer_encodings_are_decoded) {
        ASSERT_PARTS(HEAD "--B\n" OURS "Content-Transfer-Encoding: Quoted-Printable\n\na: =62=\nc  \r\nd=3A e=\n=\r\n=zz=4\n--B--\n",
                     "1:1:a: bc\r\nd: e=zz=4|");
        ASSERT_PARTS(HEAD "--B\nContent-Transfer-Encoding: base64\n" OURS "\nYTog\nYg==\n--B--\n", "1:1:a: b|");
        ASSERT_PARTS(HEAD "--B\n" OURS "\nYTogYg==\n--B--\n", "1:1:a: b|");
        ASSERT_PARTS(HEAD "--B\n" OURS "Content-Transfer-Encoding: base64\n\n  YTog\t\n  Yg==\n--B--\n", "1:1:a: b|");
        ASSERT_PARTS(HEAD "--B\n" OURS "Content-Transfer-Encoding: base64\n\na: b\n--B--\n", "1:8:a: b|");
        ASSERT_PARTS(HEAD "--B\n" OURS "Content-Transfer-Encoding: 7bit\n\na: =62\n--B--\n", "1:8:a: =62|");
        ASSERT_PARTS(HEAD "--B\n" OURS "Content-Transfer-Encoding: base64\n\nWVRvZ1lnPT0=\n--B--\n", "1:1:YTogYg==|");
}

TEST(e2_gzip_in_base64_is_unpacked) {
        static const char gz[] = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\xb4\x52\x48\xe2\x02\x00\xfe\x17\xb5\x72\x05\x00\x00\x00";
        _free_ char *text = base64_encode(gz, sizeof gz - 1), *m = xasprintf(HEAD "--B\n" OURS "\n%s\n--B--\n", text);
        ASSERT_PARTS(m, "1:1:a: b\n|");
}

TEST(e3_raw_gzip_in_a_part_is_refused) {
        _cleanup_(split_done) Split s = split_bytes(HEAD "--B\n" OURS "\na: b\n--B\n" OURS "\n\x1f\x8bxx\n--B--\n", strlen(HEAD "--B\n" OURS "\na: b\n--B\n" OURS "\n\x1f\x8bxx\n--B--\n"));
        ASSERT_ERROR(s.r, EBADMSG);
        ASSERT_EQ(s.parts.n, 0);
        ASSERT_CONTAINS(s.text, "user-data, part 2, line 11: the gzip");
}

static char *nested(unsigned depth) {
        Text t = {};
        for (unsigned i = 0; i < depth; i++)
                text_add(&t, "Content-Type: multipart/mixed; boundary=b%u\n\n--b%u\n", i, i);
        text_add(&t, OURS "\na: b\n");
        return text_take(&t);
}

TEST(l4_nesting_is_limited) {
        _free_ char *most = nested(8), *more = nested(9), *many = nested(2000);
        _cleanup_(split_done) Split s = split_bytes(more, strlen(more)), t = split_bytes(many, strlen(many));
        ASSERT_PARTS(most, "1:27:a: b\n|");
        ASSERT_ERROR(s.r, E2BIG);
        ASSERT_CONTAINS(s.text, "limit");
        ASSERT_ERROR(t.r, E2BIG);
}

TEST(the_number_of_warnings_about_parts_is_limited) {
        _cleanup_(text_done) Text t = {};
        text_add(&t, HEAD);
        for (unsigned i = 0; i < 5000; i++)
                text_add(&t, "--B\nContent-Type: multipart/mixed\n\n");
        _cleanup_(split_done) Split s = split_bytes(t.data, t.size);
        ASSERT_OK(s.r);
        ASSERT_EQ(s.diag.n, 11);
        ASSERT_STREQ(s.diag.items[10].code, "more-warnings");
        ASSERT_CONTAINS(s.diag.items[10].text, "further parts like those above are not shown: 4990");
}
TEST_MAIN
