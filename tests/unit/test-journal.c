/* SPDX-License-Identifier: Apache-2.0
 * log_error(): the sentence in a line of a log, as klog, logrus and their JSON write it. */
#include "base/journal.h"
#include "test.h"

static void assert_error(const char *line, const char *want) {
        _free_ char *error = log_error(line);
        ASSERT_STREQ(error, want);
}

TEST(err_and_error_fields_give_the_message) {
        assert_error("E1127 02:46:12.3 5484 run.go:72] \"command failed\" err=\"no key\"", "no key");
        assert_error("time=\"2026\" level=fatal msg=\"bad\" error=\"no \\\"cri\\\" here\" id=x", "no \"cri\" here");
        assert_error("{\"ts\":1.5,\"msg\":\"command failed\",\"err\":\"no \\\"such\\\" key\"}", "no \"such\" key");
        assert_error("{\"error\":\"of logrus\",\"level\":\"fatal\"}", "of logrus");
}

TEST(a_line_without_an_error_field_is_the_message) {
        assert_error("F1127 02:46:12.3 5484 server.go:7] it ends", "it ends");
        assert_error("panic: [a] b", "panic: [a] b");
        assert_error("has err=5", "has err=5");
        assert_error("", "");
}

/* A secret must have its original form here, or the scrubber does not recognize it. */
TEST(escapes_in_errors_are_decoded) {
        assert_error("x err=\"a\\u003cb\\tc\\nd\\\\e\"", "a<b c d\\e");
        assert_error("x err=\"of Go: \\x1b \\\"q\\\" end\" more", "of Go: \\x1b \\\"q\\\" end");
        assert_error("x err=\"cut in the mid", "cut in the mid");
        assert_error("x err=\"cut \\", "cut \\");
        assert_error("x err=\"", "");
}

TEST(long_errors_are_cut_between_words) {
        char line[1024] = "x err=\"";
        size_t n = strlen(line);
        memset(line + n, 'a', 590);
        memcpy(line + n + 590, " the-secret-of-many-bytes end\"", sizeof(" the-secret-of-many-bytes end\""));
        _free_ char *error = log_error(line);
        ASSERT_EQ(strlen(error), 590);
        memset(line + n, 'a', 700);
        memcpy(line + n + 700, "\"", sizeof("\""));
        assert_error(line, "(one word of 700 bytes)");
}
TEST_MAIN
