/* SPDX-License-Identifier: Apache-2.0
 * yaml_parse(), yaml_resolve(), yaml_to_json(): rules D1, D3 to D5, T1, T2, T5, T7, L1, L2, N2. */
#include "base/str.h"
#include "doc/doc.h"
#include "test.h"

/* One parse: all documents, or its errors. */
typedef struct Parsed { Documents documents; Diag diag; int r; } Parsed;

static void parsed_done(Parsed *p) {
        documents_done(&p->documents);
        diag_done(&p->diag);
}

static Parsed parse_bytes(const char *data, size_t size, unsigned line) {
        _free_ char *copy = xmemdup(data, size);
        Blob blob = { .at = { "user-data", 0, line }, .data = copy, .size = size };
        Parsed p = {};
        p.r = yaml_parse(&blob, &p.documents, &p.diag);
        return p;
}

static Parsed parse(const char *text) {
        return parse_bytes(text, strlen(text), 1);
}

static char *documents_text(const Documents *d) {
        Text t = {};
        for (size_t i = 0; i < d->n; i++) {
                json_auto_t *value = NULL;
                _free_ char *text = NULL;
                ASSERT_OK(yaml_to_json(d->items[i].root, &value));
                text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
                text_add(&t, "%s%s", i > 0 ? " " : "", text);
        }
        return text_take(&t);
}

#define ASSERT_YAML(text, json) ({                                                             \
        _cleanup_(parsed_done) Parsed _p = parse(text);                                        \
        _free_ char *_got = NULL, *_e = _p.r < 0 ? diagnostic_format(diag_first_error(&_p.diag)) : NULL; \
        if (_p.r < 0) FAIL("%s: %s", #text, _e);                                               \
        _got = documents_text(&_p.documents);                                                  \
        ASSERT_STREQ(_got, json); })

#define ASSERT_REFUSED(text, error, cause_wanted, part_of_message) ({                          \
        _cleanup_(parsed_done) Parsed _p = parse(text);                                        \
        _free_ char *_e = NULL;                                                      \
        ASSERT_ERROR(_p.r, error);                                                             \
        _e = diagnostic_format(diag_first_error(&_p.diag));                                    \
        ASSERT_EQ(diag_first_error(&_p.diag)->cause, cause_wanted);                            \
        ASSERT_CONTAINS(_e, part_of_message); })

static char *repeat(const char *s, size_t n) {
        Text t = {};
        for (size_t i = 0; i < n; i++)
                text_add(&t, "%s", s);
        return text_take(&t);
}

TEST(d1_stream_of_documents) {
        ASSERT_YAML("a: b\n---\n# only a comment\n---\n- c\n...\n---\n~\n--- d\n", "{\"a\":\"b\"} [\"c\"] \"d\"");
        ASSERT_YAML("", "");
        ASSERT_YAML("\n\n# nothing\n", "");
        ASSERT_YAML("\xef\xbb\xbf\r\na: b\r\nc:\r\n  - d\r\n", "{\"a\":\"b\",\"c\":[\"d\"]}");
        ASSERT_YAML("\xef\xbb\xbf{\"a\": 1}", "{\"a\":1}");
}

TEST(d1_utf16_is_read) {
        _cleanup_(parsed_done) Parsed p = parse_bytes("\xff\xfe" "a\0:\0 \0b\0\n\0", 12, 1);
        ASSERT_OK(p.r);
        ASSERT_STREQ(node_get(p.documents.items[0].root, "a")->text, "b");
}

TEST(d1_json_is_read) {
        ASSERT_YAML("{\"a\":{\"b\":[1,2.5,-3e2,true,null,\"x\"]},\"c\":[],\"d\":{}}",
                    "{\"a\":{\"b\":[1,2.5,-300.0,true,null,\"x\"]},\"c\":[],\"d\":{}}");
        ASSERT_YAML(" [\n\t{\"a\"\n\t:\n1 }]", "[{\"a\":1}]");
}

TEST(d1_json_escapes_are_decoded) {
        ASSERT_YAML("{\"a\": \"\\ud83d\\ude00 \\/ \\u00e9\\n\"}", "{\"a\":\"\xf0\x9f\x98\x80 / \xc3\xa9\\n\"}");
        ASSERT_YAML("{\"a\": \"\\ud83d!\"}", "{\"a\":\"\xef\xbf\xbd!\"}");
        ASSERT_YAML("{\"a\": \"\\ude00\\ud83d\\u0041\"}", "{\"a\":\"\xef\xbf\xbd\xef\xbf\xbd" "A\"}");
        ASSERT_YAML("{\"<<\": {\"a\": 1}}", "{\"<<\":{\"a\":1}}");
}

TEST(d1_a_json_key_may_have_any_length) {
        _free_ char *key = repeat("k", 5000), *text = xasprintf("{\"%s\"\n: 1}", key), *want = xasprintf("{\"%s\":1}", key);
        ASSERT_YAML(text, want);
}

TEST(d1_flow_style_that_is_not_json_is_read) {
        ASSERT_YAML("{a: b, 'c': [d, e], f: }\n", "{\"a\":\"b\",\"c\":[\"d\",\"e\"],\"f\":null}");
        ASSERT_YAML("{\"a\": 1}\n---\n{\"b\": 2}\n", "{\"a\":1} {\"b\":2}");
        ASSERT_YAML("{\"a\": 1} # done\n", "{\"a\":1}");
}

TEST(d3_directives_are_allowed) {
        ASSERT_YAML("%YAML 1.1\n---\na: yes\n", "{\"a\":true}");
        ASSERT_YAML("%YAML 1.2\n---\na: yes\n", "{\"a\":true}");
        ASSERT_YAML("%YAML 1.2\n%TAG ! tag:example.com,2024:\n---\na: b\n...\n%YAML 1.1\n---\nc: d\n", "{\"a\":\"b\"} {\"c\":\"d\"}");
}

TEST(d4_an_alias_needs_an_anchor_before_it) {
        ASSERT_YAML("a: &x {b: [1, 2]}\nc: *x\nd: &x e\nf: *x\n*x : g\n",
                    "{\"a\":{\"b\":[1,2]},\"c\":{\"b\":[1,2]},\"d\":\"e\",\"f\":\"e\",\"e\":\"g\"}");
        ASSERT_REFUSED("a: *x\n", EBADMSG, CAUSE_SYNTAX, "user-data, line 1, column 4: an alias");
        ASSERT_REFUSED("a: b\nc: &x [*x]\n", EBADMSG, CAUSE_SYNTAX, "user-data, line 2, column 8: an alias");
        ASSERT_REFUSED("a: &x b\n---\nc: *x\n", EBADMSG, CAUSE_SYNTAX, "line 3");
}

TEST(d4_many_anchors) {
        Text t = {};
        for (int i = 0; i < 1000; i++)
                text_add(&t, "- &a%d %d\n- *a%d\n", i, i, i);
        _free_ char *text = text_take(&t);
        _cleanup_(parsed_done) Parsed p = parse(text);
        ASSERT_OK(p.r);
        for (size_t i = 0; i < 2000; i++)
                ASSERT_EQ(atoi(p.documents.items[0].root->items[i]->text), i / 2);
}

TEST(d4_merge_keys_add_only_missing_keys) {
        ASSERT_YAML("a: &a {x: 1, y: 2}\nb:\n  y: 3\n  <<: *a\n", "{\"a\":{\"x\":1,\"y\":2},\"b\":{\"y\":3,\"x\":1}}");
        ASSERT_YAML("a: &a {x: 1}\nb: &b {x: 2, y: 3}\nc:\n  <<: [*a, *b, {z: 4}]\n  y: 0\n",
                    "{\"a\":{\"x\":1},\"b\":{\"x\":2,\"y\":3},\"c\":{\"y\":0,\"x\":1,\"z\":4}}");
        ASSERT_YAML("a: {'<<': {x: 1}}\n", "{\"a\":{\"<<\":{\"x\":1}}}");
        ASSERT_REFUSED("a: b\nc:\n  <<: d\n", EBADMSG, CAUSE_SYNTAX, "line 3, column 3: the merge key");
        ASSERT_REFUSED("<<: [{a: b}, c]\n", EBADMSG, CAUSE_SYNTAX, "line 1, column 1: the merge key");
}

TEST(a_no_break_space_at_the_start_is_named) {
        ASSERT_REFUSED("\u00a0a: b\n  c: d\n", EBADMSG, CAUSE_SYNTAX, "line 1, column 1: not YAML: a no-break space");
        ASSERT_REFUSED("\ufeff\u00a0a: b\n  c: d\n", EBADMSG, CAUSE_SYNTAX, "line 1, column 2: not YAML: a no-break space");
        ASSERT_REFUSED("\ufeffa: b\n  c: d\n", EBADMSG, CAUSE_SYNTAX, "line 2, column 4: not YAML: ");
}

TEST(d5_tabs_that_are_refused) {
        ASSERT_REFUSED("a:\n\tb: c\n", EBADMSG, CAUSE_SYNTAX, "line 2, column 1: not YAML: a tab");
        ASSERT_REFUSED("a:\n  b: c\n\td: e\n", EBADMSG, CAUSE_SYNTAX, "line 3, column 1: not YAML: a tab");
        ASSERT_REFUSED("a:\n  \tb: c\n", EBADMSG, CAUSE_SYNTAX, "line 2, column 3: not YAML: a tab");
        ASSERT_REFUSED("a:\n- b\n\t- c\n", EBADMSG, CAUSE_SYNTAX, "line 3, column 1: not YAML: a tab");
        ASSERT_REFUSED("- x[\n\t- b\n", EBADMSG, CAUSE_SYNTAX, "line 2, column 1: not YAML: a tab");
        ASSERT_REFUSED("a: {}\n\tb: c\n", EBADMSG, CAUSE_SYNTAX, "line 2, column 1: not YAML: a tab");
        ASSERT_REFUSED("a: [b]\n\tb: c\n", EBADMSG, CAUSE_SYNTAX, "line 2, column 1: not YAML: a tab");
        ASSERT_REFUSED("a: {\n\t\"b\": 1\n\t}\n\tc: d\n", EBADMSG, CAUSE_SYNTAX, "line 4, column 1: not YAML: a tab");
}

TEST(d5_tabs_that_are_allowed) {
        ASSERT_YAML("a:\tb\nc: \td\t\ne: [1,\t2]\n", "{\"a\":\"b\",\"c\":\"d\",\"e\":[1,2]}");
        ASSERT_YAML("a:\n  b: {\n\t\"c\": 110\n\t,\n\t\"d\": [x,\n\t\tz\n\t]\n\t}\ne: f\n", "{\"a\":{\"b\":{\"c\":110,\"d\":[\"x\",\"z\"]}},\"e\":\"f\"}");
        ASSERT_YAML("a: {b\n\t, c: z}\nd: [e\n\t]\nf: [[\n\tg\n\t],[h\n\t]\n\t]\n", "{\"a\":{\"b\":null,\"c\":\"z\"},\"d\":[\"e\"],\"f\":[[\"g\"],[\"h\"]]}");
        ASSERT_YAML("a: \"b\n\tc\"\n", "{\"a\":\"b c\"}");
}

TEST(d5_tabs_on_blank_and_comment_lines) {
        ASSERT_YAML("a: b\n\t\nc: d\n \t # e\nf:\n\t\n  g: \"h\"\n\t\n\t\t\ni: j\n", "{\"a\":\"b\",\"c\":\"d\",\"f\":{\"g\":\"h\"},\"i\":\"j\"}");
        ASSERT_YAML("\t\na: b\n", "{\"a\":\"b\"}");
}

TEST(d5_block_scalars_keep_their_tabs) {
        ASSERT_YAML("a: |\n  x\n  \t\n  \t# y\n  z\nb: c\n", "{\"a\":\"x\\n\\t\\n\\t# y\\nz\\n\",\"b\":\"c\"}");
        ASSERT_YAML("- \"k #\": |2-  # c\n    \tx\n    \t\n    y\n", "[{\"k #\":\"\\tx\\n\\t\\ny\"}]");
}

TEST(keys_that_are_not_text_are_refused) {
        ASSERT_REFUSED("a: b\n? [c]\n: d\n", EBADMSG, CAUSE_SYNTAX, "line 2, column 3: a key must be a string");
        ASSERT_REFUSED("a: {{b: c}: d}\n", EBADMSG, CAUSE_SYNTAX, "line 1, column 5: a key must be a string");
        ASSERT_REFUSED("a: &a [b]\n*a : c\n", EBADMSG, CAUSE_SYNTAX, "line 2, column 1: a key must be a string, but this one is a list");
        ASSERT_REFUSED("- {{d: 1, d: 2}: a}\n", EBADMSG, CAUSE_SYNTAX, "line 1, column 4: a key must be a string, but this one is a map: {{ }} is an unfilled placeholder");
        ASSERT_REFUSED("\"a\\0b\": c\n", EBADMSG, CAUSE_SYNTAX, "line 1, column 1: a key has a NUL");
        ASSERT_REFUSED("{\"a\\u0000b\": 1}\n", EBADMSG, CAUSE_SYNTAX, "line 1, column 2: a key has a NUL");
}

TEST(t1_scalars_keep_their_text) {
        static const struct { const char *yaml, *text; bool plain; } cases[] = {
                { "y", "y", true }, { "8080", "8080", true }, { "0123", "0123", true }, { "1.50", "1.50", true }, { "~", "~", true },
                { "'yes'", "yes", false }, { "\"1\"", "1", false }, { "!!str 1", "1", false }, { "!!int '1'", "1", true },
                { "!mine 1", "1", false }, { "! 1", "1", false }, { "|\n  1", "1", false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *text = xasprintf("k: %s", cases[i].yaml);
                _cleanup_(parsed_done) Parsed p = parse(text);
                const Node *n;
                ASSERT_OK(p.r);
                n = node_get(p.documents.items[0].root, "k");
                ASSERT_STREQ(n->text, cases[i].text);
                ASSERT_EQ(n->plain, cases[i].plain);
        }
}

TEST(t1_json_keeps_the_text_of_numbers) {
        _cleanup_(parsed_done) Parsed p = parse("{\"a\": 1.50, \"b\": 1E2,\n\"c\": \"7\", \"d\": true}");
        const Node *root;
        ASSERT_OK(p.r);
        root = p.documents.items[0].root;
        ASSERT_STREQ(node_get(root, "a")->text, "1.50");
        ASSERT_STREQ(node_get(root, "b")->text, "1E2");
        ASSERT_TRUE(node_get(root, "b")->plain);
        ASSERT_TRUE(!node_get(root, "c")->plain);
        ASSERT_EQ(node_get(root, "c")->at.line, 2);
        ASSERT_STREQ(node_get(root, "d")->text, "true");
}

TEST(t2_keys_keep_their_text) {
        ASSERT_YAML("n: 1\non: 2\n8080: 3\n~: 4\n0x1: 5\n1.0: 6\n?\n: 7\n",
                    "{\"n\":1,\"on\":2,\"8080\":3,\"~\":4,\"0x1\":5,\"1.0\":6,\"\":7}");
}

TEST(t5_plain_scalars_get_their_types) {
        static const struct { const char *yaml, *json; } cases[] = {
                { "yes", "true" }, { "On", "true" }, { "y", "true" }, { "TRUE", "true" }, { "tRUE", "\"tRUE\"" },
                { "off", "false" }, { "N", "false" }, { "null", "null" }, { "", "null" }, { "nULL", "\"nULL\"" },
                { "0", "0" }, { "-0", "0" }, { "+12", "12" }, { "1_000", "1000" }, { "_1", "\"_1\"" }, { "0x1F", "31" }, { "-0x1f", "-31" },
                { "0o17", "15" }, { "017", "15" }, { "0b101", "5" }, { "-0b101", "-5" }, { "08", "8.0" }, { "0x", "\"0x\"" },
                { "0x0x1", "\"0x0x1\"" }, { "0b2", "\"0b2\"" }, { "9223372036854775807", "9223372036854775807" },
                { "-9223372036854775808", "-9223372036854775808" }, { "9223372036854775808", "9.2233720368547758e18" },
                { "0xffffffffffffffff", "1.8446744073709552e19" }, { "0x1ffffffffffffffff", "\"0x1ffffffffffffffff\"" },
                { "1.5", "1.5" }, { "1.", "1.0" }, { ".5", "0.5" }, { "-.5", "-0.5" }, { "1e3", "1000.0" }, { "1e", "\"1e\"" },
                { "1e999", "\"1e999\"" }, { ".", "\".\"" }, { "-", "\"-\"" }, { "0x1p3", "\"0x1p3\"" }, { "inf", "\"inf\"" }, { "nan", "\"nan\"" },
                { "12:30:45", "\"12:30:45\"" }, { "2024-01-02", "\"2024-01-02\"" }, { "2024-01-02T03:04:05Z", "\"2024-01-02T03:04:05Z\"" },
                { "1.2.3", "\"1.2.3\"" }, { "10.0.0.0/16", "\"10.0.0.0/16\"" }, { "'1'", "\"1\"" }, { "\"yes\"", "\"yes\"" }, { "=", "\"=\"" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *text = xasprintf("[a, %s]", cases[i].yaml), *want = xasprintf("[\"a\",%s]", cases[i].json);
                if (cases[i].yaml[0] == '\0')
                        ASSERT_YAML("- a\n-\n", want);
                else if (streq(cases[i].yaml, "-"))
                        ASSERT_YAML("- a\n- !!int '-'\n", want);
                else
                        ASSERT_YAML(text, want);
        }
}

TEST(t5_json_has_no_infinity) {
        static const char *const words[] = { "a: .inf", "a: -.Inf", "a: [.NaN]" };
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                _cleanup_(parsed_done) Parsed p = parse(words[i]);
                json_t *value = NULL;
                ASSERT_OK(p.r);
                ASSERT_ERROR(yaml_to_json(p.documents.items[0].root, &value), EINVAL);
                ASSERT_TRUE(value == NULL);
        }
}

TEST(t7_a_duplicate_key_is_a_warning_and_the_last_one_counts) {
        _cleanup_(parsed_done) Parsed p = parse("spec:\n  a: {x: 1}\n  b: 2\n  a: {y: 3}\n  list:\n  - c: 4\n  - d: 5\n    d: 6\n    \"d\": 7\n");
        _free_ char *got = documents_text(&p.documents), *first = NULL, *second = NULL;
        ASSERT_STREQ(got, "{\"spec\":{\"a\":{\"y\":3},\"b\":2,\"list\":[{\"c\":4},{\"d\":7}]}}");
        ASSERT_EQ(p.diag.n, 3);
        /* Inner maps are complete before the ones around them. */
        first = diagnostic_format(&p.diag.items[0]);
        second = diagnostic_format(&p.diag.items[2]);
        ASSERT_CONTAINS(first, "user-data, line 8: spec.list[1].d: duplicate-key: ");
        ASSERT_CONTAINS(second, "user-data, line 4: spec.a: duplicate-key: ");
        ASSERT_STREQ(p.diag.items[0].code, "duplicate-key");
        ASSERT_STREQ(p.diag.items[0].path, "spec.list[1].d");
}

TEST(t7_duplicate_keys_in_json_and_in_large_maps) {
        Text t = {};
        text_add(&t, "{\"a\": [0, {");
        for (int i = 0; i < 500; i++)
                text_add(&t, "\"k%d\": %d,\n", i % 250, i);
        text_add(&t, "\"z\": 0}]}");
        _free_ char *text = text_take(&t);
        _cleanup_(parsed_done) Parsed p = parse(text);
        const Node *map;
        ASSERT_OK(p.r);
        map = node_get(p.documents.items[0].root, "a")->items[1];
        ASSERT_EQ(map->n, 251);
        ASSERT_STREQ(node_get(map, "k7")->text, "257");
        ASSERT_EQ(p.diag.n, 100);       /* no more are listed */
        ASSERT_STREQ(p.diag.items[0].path, "a[1].k0");
}

TEST(l1_more_than_10000_nodes_are_refused) {
        _free_ char *most = repeat("- a\n", 9999), *more = repeat("- a\n", 10000);
        _cleanup_(parsed_done) Parsed p = parse(most);
        ASSERT_OK(p.r);
        ASSERT_EQ(p.documents.items[0].root->n, 9999);
        ASSERT_REFUSED(more, E2BIG, CAUSE_LIMIT, "line 10000: this document exceeds the limit of 10000 nodes");
}

TEST(l1_nodes_of_aliases_count) {
        _free_ char *small = repeat("- *a\n", 40), *text = xasprintf("- &a [1, 2, 3]\n%s", small);
        _cleanup_(parsed_done) Parsed p = parse(text);
        ASSERT_OK(p.r);
        ASSERT_EQ(p.documents.items[0].root->n, 41);
        ASSERT_REFUSED("a: &a [1,2,3,4,5,6,7,8,9,0]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
                       "d: [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n", E2BIG, CAUSE_LIMIT, "line 4: with its aliases");
        ASSERT_REFUSED("a: &a {x: {y: [1,2,3,4,5,6,7,8,9,0]}}\nb: &b {q: *a, r: *a, s: *a, t: *a}\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
                       "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: {<<: *d}\n", E2BIG, CAUSE_LIMIT, "alias");
}

TEST(l2_nesting_over_the_depth_limit_is_refused) {
        _free_ char *open = repeat("[", 100), *close = repeat("]", 100), *flow = xasprintf("%s%s", open, close);
        _free_ char *yaml = xasprintf("%sa%s # YAML\n", open, close), *deeper = xasprintf("a: %sb%s\n", open, close);
        _free_ char *deep = repeat("[", 2000), *dashes = repeat("- ", 2000), *json = repeat("{\"a\":", 101);
        _cleanup_(parsed_done) Parsed p = parse(flow), q = parse(yaml);
        ASSERT_OK(p.r);
        ASSERT_OK(q.r);
        ASSERT_REFUSED(deeper, E2BIG, CAUSE_LIMIT, "line 1: maps and lists are nested deeper here than the depth limit");
        ASSERT_REFUSED(deep, E2BIG, CAUSE_LIMIT, "depth");
        ASSERT_REFUSED(dashes, E2BIG, CAUSE_LIMIT, "depth");
        ASSERT_REFUSED(json, E2BIG, CAUSE_LIMIT, "depth");
}

TEST(l2_nesting_by_aliases_counts) {
        ASSERT_REFUSED("- &a [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]\n- &b [[[[[[[[[[[[[[[[[[[[*a]]]]]]]]]]]]]]]]]]]]\n"
                       "- &c [[[[[[[[[[[[[[[[[[[[*b]]]]]]]]]]]]]]]]]]]]\n- &d [[[[[[[[[[[[[[[[[[[[*c]]]]]]]]]]]]]]]]]]]]\n"
                       "- &e [[[[[[[[[[[[[[[[[[[[*d]]]]]]]]]]]]]]]]]]]]\n", E2BIG, CAUSE_LIMIT, "line 5: maps and lists are nested deeper");
}

TEST(n2_nodes_and_errors_have_lines) {
        _cleanup_(parsed_done) Parsed p = parse_bytes("a: b\r\nc: [\r\n  d,\r\n  e]\r\n", 24, 10);
        const Node *root;
        ASSERT_OK(p.r);
        root = p.documents.items[0].root;
        ASSERT_EQ(p.documents.items[0].at.line, 10);
        ASSERT_EQ(root->members[1].at.line, 11);
        ASSERT_EQ(root->members[1].value->items[1]->at.line, 13);
        ASSERT_REFUSED("a: b\nc: [\n\n", EBADMSG, CAUSE_SYNTAX, "line 2: not");
        ASSERT_REFUSED("a: b\nc: [", EBADMSG, CAUSE_SYNTAX, "line 2: ");
        ASSERT_REFUSED("a: \"b\nc: d\ne: f\n", EBADMSG, CAUSE_SYNTAX, "line 3: not YAML: found unexpected end of stream (while scanning a quoted scalar that begins on line 1)");
        ASSERT_REFUSED("a: b\nc: d: e\n", EBADMSG, CAUSE_SYNTAX, "line 2");
        ASSERT_REFUSED("{\"a\": 1,\n \"b\": 2\n \"c\": 3}\n", EBADMSG, CAUSE_SYNTAX, "line 3");
        ASSERT_REFUSED("a: b\nc: d\x01\n", EBADMSG, CAUSE_SYNTAX, "line 2");
        ASSERT_REFUSED("\xef\xbb\xbf" "a: b\nc: \xff\n", EBADMSG, CAUSE_SYNTAX, "line 2");
}

TEST(n2_nodes_and_errors_have_columns) {
        _cleanup_(parsed_done) Parsed p = parse("\xef\xbb\xbf" "a: b\n  \nc:\n- é: x\n  ü : [y, z]\n"),
                                      q = parse("\xef\xbb\xbf{\"é\": [1,\r\n \"\\u00e9\", true], \"b\": {}}");
        const Node *root, *item;
        ASSERT_OK(p.r);
        root = p.documents.items[0].root;
        item = root->members[1].value->items[0];
        ASSERT_EQ(root->members[0].at.column, 1);
        ASSERT_EQ(root->members[0].value->at.column, 4);
        ASSERT_EQ(item->at.column, 3);
        ASSERT_EQ(item->members[0].value->at.column, 6);
        ASSERT_EQ(item->members[1].at.line, 5);
        ASSERT_EQ(item->members[1].value->items[1]->at.column, 11);
        ASSERT_OK(q.r);
        root = q.documents.items[0].root;
        ASSERT_EQ(root->members[0].at.column, 2);
        ASSERT_EQ(root->members[0].value->items[0]->at.column, 8);
        ASSERT_EQ(root->members[0].value->items[1]->at.line, 2);
        ASSERT_EQ(root->members[0].value->items[1]->at.column, 2);
        ASSERT_EQ(root->members[0].value->items[2]->at.column, 12);
        ASSERT_EQ(root->members[1].at.column, 19);
        ASSERT_REFUSED("é: b\nü: é: e\n", EBADMSG, CAUSE_SYNTAX, "line 2, column 5: not YAML");
        ASSERT_REFUSED("a: b\né\xff\n", EBADMSG, CAUSE_SYNTAX, "line 2, column 2: not YAML");
        ASSERT_REFUSED("a: b\nc: [\n", EBADMSG, CAUSE_SYNTAX, "line 2: not YAML");        /* no column */
}

TEST(a_syntax_error_does_not_show_the_input) {
        _cleanup_(parsed_done) Parsed p = parse("password: s3cret\n  bad: \"s3cret\n");
        _free_ char *e = NULL;
        ASSERT_ERROR(p.r, EBADMSG);
        e = diagnostic_format(diag_first_error(&p.diag));
        ASSERT_TRUE(!strstr(e, "s3cret"));
}

TEST(resolve_refuses_a_list) {
        _cleanup_(parsed_done) Parsed p = parse("[]");
        json_t *value = NULL;
        ASSERT_OK(p.r);
        ASSERT_ERROR(yaml_resolve(p.documents.items[0].root, &value), EINVAL);
        ASSERT_TRUE(node_get(p.documents.items[0].root, "a") == NULL);
}

TEST(syntax_errors_say_what_is_wrong_and_where) {
        static const struct { const char *text, *says; } cases[] = {
                { "kind:NodeConfig\nspec: {}\n",   "line 2, column 5: not YAML: a space is missing after the colon on line 1" },
                { "a:\n  b:c\n  d: e\n",          "line 3, column 4: not YAML: a space is missing after the colon on line 2" },
                { "a:\n  config:\n    [x.'y']\n    z = 1\n",       "line 4, column 5: not YAML: the TOML after config: on line 2 must be a block of text; write config: |" },
                { "a:\n  config:\n    [debug]\n    l = 1\n  b: c\n",  "not YAML: the TOML after config: on line 2 must be a block of text; write config: |" },
                { "a:\n  config: [x]\n    z = 1\n",             "line 3, column 5: not YAML: the TOML after config: on line 2 must be a block of text; write config: |" },
                { "a:\n  configs:\n    [debug]\n    l = 1\n",  "line 4, column 5: not YAML: " },
                { "a:\n  b: c\n   d: e\n",        "line 3, column 5: not YAML: 3 spaces are before the key, but 2 on line 2: the keys" },
                { "a:\n  b:\n    c: d\n   e: f\n", "line 4, column 4: not YAML: 3 spaces are before the key, but 2 on line 2: the keys" },
                { "a: b: c\n",                     "line 1, column 5: not YAML: two keys are on one line" },
                { "a: @b\n",                       "line 1, column 4: not YAML: a string that begins with @ needs quotes" },
                { "a: `b\n",                       "line 1, column 4: not YAML: a string that begins with ` needs quotes" },
                { "a: %(b)s\n",                    "line 1, column 4: not YAML: a string that begins with % needs quotes" },
                { "a: {{ .b }}\n",                 "line 1, column 5: a key must be a string, but this one is a map: {{ }} is an unfilled placeholder" },
                { "a: b\n   c: d # e: f\n",         "line 2, column 5: not YAML: 3 spaces are before the key, but 0 on line 1" },
                { "a:\n{{- if .Values.x }}\nb: c\n", "line 3, column 1: not YAML: {{- if .Values.x }} on line 2 is an unfilled placeholder; render the file first" },
                { "a: {% b | c %}\n",             "line 1, column 5: not YAML: {% b on line 1 is an unfilled placeholder" },
                { "a: [--b=${c}]\n",              "line 1, column 10: not YAML: ${c} on line 1 is an unfilled placeholder" },
                { "a: b\n<%= secret('c') %>\n",   "not YAML: <% on line 2 is an unfilled placeholder" },
                /* no special message if the cause may be another one */
                { "a: \"b: c\n",                   "line 1: not YAML: found unexpected end of stream" },
                { "a:\n- b\nc\n",                  "not YAML: could not find expected ':'" },
                { "u: http://x: y\n  v: w\n",      "not YAML: two keys" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                ASSERT_REFUSED(cases[i].text, EBADMSG, CAUSE_SYNTAX, cases[i].says);
}

/* The key with the other indentation may be a million lines above. */
TEST(a_syntax_error_names_a_line_far_above) {
        _free_ char *blanks = repeat("\n", 1000000), *text = xasprintf("a:\n  b: c\n%s   d: e\n", blanks);
        ASSERT_REFUSED(text, EBADMSG, CAUSE_SYNTAX, "line 1000003, column 5: not YAML: 3 spaces are before the key, but 2 on line 2");
}

/* A block of text in another file: blob.at.column blanks are in front of each line. */
TEST(lines_and_columns_of_a_block_count_in_its_file) {
        static const char *const texts[] = { "a:\n  b: c\n", "{\"a\":\n {\"b\": \"c\"}}\n" };
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                Blob blob = { { "test", 0, 10, 4 }, (char *)texts[i], strlen(texts[i]) };
                _cleanup_(documents_done) Documents documents = {};
                _cleanup_(diag_done) Diag diag = {};
                ASSERT_OK(yaml_parse(&blob, &documents, &diag));
                const Node *a = node_get(documents.items[0].root, "a");
                ASSERT_EQ(a->members[0].at.line, 11);
                ASSERT_EQ(a->members[0].at.column, 7);
        }
        Blob bad = { { "test", 0, 10, 4 }, (char *)"a: @b\n", 6 };
        _cleanup_(documents_done) Documents none = {};
        _cleanup_(diag_done) Diag diag = {};
        ASSERT_ERROR(yaml_parse(&bad, &none, &diag), EBADMSG);
        ASSERT_EQ(diag.items[0].line, 10);
        ASSERT_EQ(diag.items[0].column, 8);
}

TEST_MAIN
