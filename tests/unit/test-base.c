/* SPDX-License-Identifier: Apache-2.0
 * Strings, time spans, diagnostics: the part of base/ that needs no file. */
#include "base/error.h"
#include "base/hash.h"
#include "base/package.h"
#include "base/str.h"
#include "base/time.h"
#include "test.h"

TEST(string_vector_grows_and_sorts_by_bytes) {
        _strv_ char **v = NULL;
        for (int i = 99; i >= 0; i--)
                strv_push(&v, xasprintf("%02d", i));
        strv_add(&v, "Z");
        ASSERT_EQ(strv_length(v), 101);
        strv_sort(v);
        ASSERT_STREQ(v[0], "00");
        ASSERT_STREQ(v[100], "Z");
        ASSERT_TRUE(strv_contains(v, "42") && !strv_contains(v, "4"));
        ASSERT_TRUE(!strv_contains(NULL, "4"));
        strv_extend(&v, (char *[]){ (char *)"p", (char *)"q", NULL });
        strv_extend(&v, NULL);
        ASSERT_TRUE(strv_length(v) == 103 && streq(v[102], "q"));
        _free_ char *joined = strv_join((char *[]){ (char *)"a", (char *)"b", NULL }, ", ");
        ASSERT_STREQ(joined, "a, b");
}

TEST(text_keeps_zero_bytes_and_grows) {
        Text t = {};
        for (int i = 0; i < 1000; i++)
                text_add(&t, "%d,", i);
        ASSERT_EQ(t.size, 10 * 2 + 90 * 3 + 900 * 4);
        text_add_bytes(&t, "\0x", 2);
        ASSERT_EQ(t.data[t.size - 1], 'x');
        ASSERT_EQ(t.data[t.size], 0);
        text_done(&t);
        _free_ char *empty = text_take(&t);
        ASSERT_STREQ(empty, "");
}

TEST(unsigned_numbers_are_digits_alone) {
        uint64_t v = 7;
        ASSERT_OK(parse_u64("18446744073709551615", &v));
        ASSERT_TRUE(v == UINT64_MAX);
        ASSERT_ERROR(parse_u64("18446744073709551616", &v), ERANGE);
        static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "0x10", "1.0" };
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                ASSERT_ERROR(parse_u64(bad[i], &v), EINVAL);
        ASSERT_TRUE(v == UINT64_MAX);           /* untouched on failure */
}

TEST(time_spans_as_people_write_them) {
        static const struct { const char *text; uint64_t usec; } good[] = {
                { "90", 90000000 }, { "90s", 90000000 }, { "5m", 300000000 }, { "1h30m", 5400000000 }, { "250ms", 250000 }, { "0", 0 },
        };
        static const char *const bad[] = { "", "m", "5x", "-5s", "5 m", "1.5s", "9999999999" };
        uint64_t v = 1;
        for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
                ASSERT_OK(parse_timespan(good[i].text, &v));
                ASSERT_EQ(v, good[i].usec);
        }
        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                ASSERT_ERROR(parse_timespan(bad[i], &v), EINVAL);
}

TEST(seconds_in_a_sentence) {
        static const struct { uint64_t usec; const char *text; } cases[] = {
                { 1800000000, "1800" }, { 1800123456, "1800" }, { 35000000, "35" }, { 12345678, "12.3" }, { 2500000, "2.5" },
                { 2345678, "2.35" }, { 50000, "0.05" }, { 1, "1e-06" }, { 0, "0" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _free_ char *text = xasprintf("%g", usec_seconds(cases[i].usec));
                ASSERT_STREQ(text, cases[i].text);
        }
}

TEST(nearest_name_forgives_slips_and_case_but_not_strangers) {
        static const char *const names[] = { "apiServerEndpoint", "certificateAuthority", "cidr", "name", NULL };
        ASSERT_STREQ(nearest_name("apiserverendpoint", names), "apiServerEndpoint");
        ASSERT_STREQ(nearest_name("cird", names), "cidr");
        ASSERT_TRUE(nearest_name("flags", names) == NULL);
        ASSERT_TRUE(nearest_name("a", (const char *[]){ "v", NULL }) == NULL);
        ASSERT_STREQ(nearest_name("V", (const char *[]){ "v", NULL }), "v");
}

TEST(nearest_name_knows_the_first_words_of_camel_case) {
        static const char *const names[] = { "device", "mountTarget", "mountTargets", "registryPullQPS", "mountaineering", NULL };
        ASSERT_STREQ(nearest_name("mountPoint", names), "mountTarget");
        ASSERT_STREQ(nearest_name("MountPoint", names), "mountTarget");
        ASSERT_STREQ(nearest_name("mount", names), "mountTarget");
        ASSERT_STREQ(nearest_name("mountTargetz", names), "mountTarget");      /* by its letters, which are nearer */
        ASSERT_TRUE(nearest_name("mouOfVolume", names) == NULL);             /* not the whole word */
        ASSERT_STREQ(nearest_name("registryBurst", names), "registryPullQPS");
        ASSERT_TRUE(nearest_name("mountOptionsOfThisVolume", names) == NULL);  /* too little of it */
        ASSERT_TRUE(nearest_name("", names) == NULL);
}

TEST(sha256_of_the_empty_text) {
        char hex[65];
        sha256_hex("", 0, hex);
        ASSERT_STREQ(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(hmac_of_rfc_4231) {
        unsigned char mac[32], long_key[131];
        hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, mac);
        ASSERT_TRUE(mac[0] == 0x5b && mac[1] == 0xdc && mac[31] == 0x43);
        memset(long_key, 0xaa, sizeof long_key);        /* longer than a block: hashed first */
        hmac_sha256(long_key, sizeof long_key, "Test Using Larger Than Block-Size Key - Hash Key First", 54, mac);
        ASSERT_TRUE(mac[0] == 0x60 && mac[1] == 0xe4 && mac[31] == 0x54);
}

TEST(strip_and_lower_leave_the_middle_alone) {
        _free_ char *s = str_strip(" \t A b\r\n"), *l = str_lower("ABC-ä");
        ASSERT_STREQ(s, "A b");
        ASSERT_STREQ(l, "abc-ä");
}

TEST(diagnostics_name_place_and_path_and_keep_the_first_error) {
        Diag d = {}, more = {};
        Position at = { .source = "user-data", .part = 2, .line = 14 };
        diag_warn_at(&d, "unknown-field", &at, "spec.foo", "not a field of NodeConfig");
        ASSERT_TRUE(diag_first_error(&d) == NULL);
        ASSERT_ERROR(diag_error_at(&d, -EINVAL, CAUSE_INVALID, &at, "spec.cluster.cidr", "not a %s", "CIDR"), EINVAL);
        diag_error(&more, -EIO, CAUSE_FILE, "later");
        diag_move(&d, &more);
        ASSERT_EQ(diag_count(&d, true), 1);
        ASSERT_EQ(diag_count(&d, false), 2);
        _free_ char *w = diagnostic_format(&d.items[0]), *e = diagnostic_format(diag_first_error(&d));
        ASSERT_STREQ(w, "user-data, part 2, line 14: spec.foo: unknown-field: not a field of NodeConfig");
        ASSERT_STREQ(e, "user-data, part 2, line 14: spec.cluster.cidr: not a CIDR");
        diag_done(&d);
}

TEST(foreign_text_cannot_forge_a_line) {
        Diag d = {};
        Position at = { .source = "/a\nb\xff.yaml", .line = 3 };
        diag_error_at(&d, -EINVAL, CAUSE_USAGE, &at, "spec.\x1b[2J\xc2\x9b", "no \"%s\", no \r\x7f but é and \xf0\x9f\x98\x80", "x\ny");
        _free_ char *line = diagnostic_format(&d.items[0]);
        ASSERT_STREQ(line, "/a\\x0ab\\xff.yaml, line 3: spec.\\x1b[2J\\x9b: no \"x\\x0ay\", no \\x0d\\x7f but é and \xf0\x9f\x98\x80");
        diag_done(&d);
        _cleanup_(text_done) Text t = {};
        text_add_shown(&t, "a\"\\é\xc3", 6, 5, '"');
        text_add_shown(&t, "éé!", 5, 2, 0);
        ASSERT_STREQ(t.data, "a\\\"\\\\é\\xc3éé…");
}

TEST(every_cause_has_its_own_word_and_an_exit_code) {
        for (int c = 0; c < _CAUSE_MAX; c++) {
                ASSERT_TRUE(cause_word((Cause)c));
                ASSERT_TRUE(c == CAUSE_NONE || cause_exit_code((Cause)c) != EXIT_DONE);
                for (int b = 0; b < c; b++)
                        ASSERT_TRUE(!streq(cause_word((Cause)b), cause_word((Cause)c)));
        }
}

/* All causes that may pass. The configuration or the hardware is to blame for none of them. */
TEST(only_the_listed_causes_may_pass) {
        static const Cause always[] = { CAUSE_STALLED, CAUSE_VOLUME, CAUSE_DISK_ERROR }, silent[] = { CAUSE_IMDS, CAUSE_EC2, CAUSE_FACTS };
        for (int c = -1; c <= _CAUSE_MAX; c++) {
                bool in_always = ANY(a, always, ARRAY_SIZE(always), (int)*a == c), in_silent = ANY(s, silent, ARRAY_SIZE(silent), (int)*s == c);
                ASSERT_EQ(cause_passes((Cause)c, -ETIMEDOUT), in_always || in_silent);
                ASSERT_EQ(cause_passes((Cause)c, -EHOSTUNREACH), in_always || in_silent);
                static const int others[] = { -EINVAL, -EPERM, -EACCES, -EKEYREJECTED, -EBADMSG, -EIO, 0, 1 };
                for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                        ASSERT_EQ(cause_passes((Cause)c, others[i]), in_always);
        }
}
TEST(hosts_of_urls) {
        static const struct { const char *url, *host; } urls[] = {
                { "https://a.b:443/c", "a.b" }, { "https://a.b", "a.b" }, { "https://a.b/c:d", "a.b" }, { "https://[::1]:443/", "::1" }, { "a.b", "a.b" },
                { "https://[::1", "::1" }, { "", "" }, { "https://", "" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
                _free_ char *host = url_host(urls[i].url);
                ASSERT_STREQ(host, urls[i].host);
        }
}

/* ---- packages ---- */

TEST(packages_of_programs_units_and_libraries) {
        ASSERT_STREQ(package_of("/usr/sbin/mkfs.xfs"), "xfsprogs");
        ASSERT_STREQ(package_of("unpigz"), "pigz");
        ASSERT_STREQ(package_of("nvidia-gridd"), "the NVIDIA GRID driver");
        ASSERT_STREQ(package_of("nodestrap-run.service"), "nodestrap");
        ASSERT_STREQ(package_of("libcurl.so.4"), CURL_PACKAGE);
        ASSERT_CONTAINS(package_of("libmount.so.1"), "libmount1 (Debian)");
        ASSERT_CONTAINS(package_of("libblkid.so.1"), "libblkid1 (Debian)");
        ASSERT_STREQ(package_of("/opt/nvidia/nvlsm/sbin/nvlsm"), "nvlsm");
}

TEST_MAIN
