/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "doc/doc.h"
#include "test.h"

/* The texts at path, joined by '|'; an error as "-". */
static char *texts(const char *xml, const char *path) {
        _strv_ char **found = NULL;
        int r = xml_texts(xml, strlen(xml), path, &found);
        if (r < 0) {
                ASSERT_EQ(r, -EBADMSG);
                ASSERT_TRUE(!found);
                return xstrdup("-");
        }
        return found ? strv_join(found, "|") : xstrdup("nothing");
}

#define ASSERT_TEXTS(xml, path, wanted) ({ _free_ char *_t = texts(xml, path); ASSERT_STREQ(_t, wanted); })

TEST(only_elements_at_the_exact_path_are_found) {
        const char *xml = "<?xml version='1.0'?><a xmlns='urn:x'><i><n>1</n><m><n>no</n></m></i><i><n>2</n><n/></i><n>no</n>"
                          "<j><i><n>no</n></i></j><i/></a>";
        ASSERT_TEXTS(xml, "a/i/n", "1|2|");
        ASSERT_TEXTS(xml, "a/n", "no");
        ASSERT_TEXTS(xml, "a/i/n/x", "nothing");
        ASSERT_TEXTS(xml, "i/n", "nothing");
        ASSERT_TEXTS(xml, "a/i/nn", "nothing");
        ASSERT_TEXTS(xml, "a/i/", "nothing");
        ASSERT_TEXTS(xml, "", "nothing");
}

TEST(the_text_of_child_elements_does_not_count) {
        ASSERT_TEXTS("<a><n>one <b>not</b>two &amp; &#x41;<![CDATA[<3>]]></n></a>", "a/n", "one two & A<3>");
        ASSERT_TEXTS("<a><n><n>inner</n></n></a>", "a/n", "");
        ASSERT_TEXTS("<a><n><n>inner</n></n></a>", "a/n/n", "inner");
        ASSERT_TEXTS("<a> x </a>", "a", " x ");
}

TEST(text_that_is_not_xml_is_an_error) {
        ASSERT_TEXTS("", "a", "-");
        ASSERT_TEXTS("<html>welcome", "html", "-");
        ASSERT_TEXTS("<a><n>1</n>", "a/n", "-");
        ASSERT_TEXTS("<a>&unknown;</a>", "a", "-");
        ASSERT_TEXTS("{\"a\": 1}", "a", "-");
}

TEST(document_type_is_refused) {
        ASSERT_TEXTS("<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", "a", "-");
        ASSERT_TEXTS("<!DOCTYPE a SYSTEM 'file:///etc/passwd'><a/>", "a", "-");
}

TEST(xml_deeper_than_the_limit_is_an_error) {
        Text t = {};
        for (unsigned i = 0; i < DOC_MAX_DEPTH; i++)
                text_add(&t, "<a>");
        for (unsigned i = 0; i < DOC_MAX_DEPTH; i++)
                text_add(&t, "</a>");
        _free_ char *fits = text_take(&t), *deeper = xasprintf("<a>%s</a>", fits);
        ASSERT_TEXTS(fits, "x", "nothing");
        ASSERT_TEXTS(deeper, "x", "-");
}

TEST_MAIN
