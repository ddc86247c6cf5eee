/* SPDX-License-Identifier: Apache-2.0 */
#include "source/source.h"

#include "base/str.h"
#include "test.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Fixture { Root *root; char *dir; Blobs blobs; Diag diag; } Fixture;

static Fixture fixture_new(void) {
        Fixture f = {};
        char dir[] = "/tmp/test-source.XXXXXX";
        ASSERT_TRUE(mkdtemp(dir));
        f.dir = xstrdup(dir);
        ASSERT_OK(root_new(dir, &f.root));
        return f;
}

static int remove_one(const char *path, const struct stat *st _unused_, int type _unused_, struct FTW *at _unused_) {
        return remove(path);
}

static void fixture_done(Fixture *f) {
        ASSERT_EQ(nftw(f->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
        root_free(f->root);
        blobs_done(&f->blobs);
        diag_done(&f->diag);
        free(f->dir);
}

static void write_file(Fixture *f, const char *path, const char *text) {
        ASSERT_OK(root_replace(f->root, path, text, strlen(text), 0644));
}

static int read_one(Fixture *f, const char *uri) {
        char *uris[] = { (char *)uri, NULL };
        return source_read(f->root, uris, NULL, 0, &f->blobs, &f->diag);
}

#define ASSERT_FAILED(f, uri, e, wanted_cause, word) ({                                        \
        ASSERT_ERROR(read_one(f, uri), e);                                                     \
        ASSERT_EQ((f)->diag.n, 1);                                                             \
        ASSERT_EQ((f)->diag.items[0].cause, wanted_cause);                                     \
        _free_ char *_text = diagnostic_format(&(f)->diag.items[0]);                 \
        ASSERT_CONTAINS(_text, word);                                                          \
        ASSERT_EQ((f)->blobs.n, 0);                                                            \
        diag_done(&(f)->diag); })

TEST(a_file_is_one_blob_named_by_its_path) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        write_file(&f, "/etc/node.conf", "a: 1\n");
        ASSERT_OK(read_one(&f, "file:///etc/node.conf"));
        ASSERT_EQ(f.blobs.n, 1);
        ASSERT_STREQ(f.blobs.items[0].data, "a: 1\n");
        ASSERT_EQ(f.blobs.items[0].size, 5);
        ASSERT_STREQ(f.blobs.items[0].at.source, "/etc/node.conf");
        ASSERT_EQ(f.blobs.items[0].at.line, 1);
        ASSERT_EQ(f.blobs.items[0].at.part, 0);
}

TEST(sources_are_read_in_the_order_given) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        char *uris[] = { (char *)"file:///b", (char *)"file:///a", NULL };
        write_file(&f, "/a", "1");
        write_file(&f, "/b", "2");
        ASSERT_OK(source_read(f.root, uris, NULL, 0, &f.blobs, &f.diag));
        ASSERT_EQ(f.blobs.n, 2);
        ASSERT_STREQ(f.blobs.items[0].data, "2");
        ASSERT_STREQ(f.blobs.items[1].data, "1");
}

TEST(a_directory_is_read_in_the_order_of_names) {
        static const char *const others[] = { "/d/README", "/d/a.yaml.bak", "/d/c.toml", "/d/yaml" };
        _cleanup_(fixture_done) Fixture f = fixture_new();
        write_file(&f, "/d/20.yaml", "second");
        write_file(&f, "/d/10.json", "first");
        write_file(&f, "/d/3.yml", "third");
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                write_file(&f, others[i], "never");
        ASSERT_OK(read_one(&f, "file:///d/"));
        ASSERT_EQ(f.blobs.n, 3);
        ASSERT_STREQ(f.blobs.items[0].at.source, "/d/10.json");
        ASSERT_STREQ(f.blobs.items[1].data, "second");
        ASSERT_STREQ(f.blobs.items[2].data, "third");
}

TEST(empty_directory_adds_nothing) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        ASSERT_OK(root_make_dirs(f.root, "/d", 0755));
        ASSERT_OK(read_one(&f, "file:///d"));
        ASSERT_EQ(f.blobs.n, 0);
        ASSERT_EQ(f.diag.n, 0);
}

TEST(relative_paths_are_read) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        _cleanup_(root_freep) Root *host = NULL;
        char *uris[] = { (char *)"file://n.yaml", NULL };
        write_file(&f, "/n.yaml", "x");
        ASSERT_OK(read_one(&f, "file://n.yaml"));
        ASSERT_EQ(f.blobs.n, 1);
        blobs_done(&f.blobs);

        ASSERT_OK(root_new("/", &host));
        ASSERT_OK(chdir(f.dir));
        int r = source_read(host, uris, NULL, 0, &f.blobs, &f.diag);
        ASSERT_OK(chdir("/"));
        ASSERT_OK(r);
        ASSERT_EQ(f.blobs.n, 1);
        ASSERT_STREQ(f.blobs.items[0].data, "x");
}

TEST(unreadable_sources_are_errors) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        write_file(&f, "/d/a.yaml", "good");
        ASSERT_OK(root_make_dirs(f.root, "/d/b.yaml", 0755));
        ASSERT_FAILED(&f, "file:///none", ENOENT, CAUSE_SOURCE, "/none: ");
        ASSERT_FAILED(&f, "imds://user-data", ENOTCONN, CAUSE_SOURCE, "imds://user-data");
        ASSERT_FAILED(&f, "imds://else", ENOTCONN, CAUSE_SOURCE, "imds://else");
        ASSERT_FAILED(&f, "file:d/a.yaml", EINVAL, CAUSE_USAGE, "file://PATH");
        ASSERT_FAILED(&f, "file://?x", EINVAL, CAUSE_USAGE, "file://PATH");
        ASSERT_FAILED(&f, "/etc/passwd", EINVAL, CAUSE_USAGE, "file://PATH");
        ASSERT_FAILED(&f, "file://", EINVAL, CAUSE_USAGE, "file://PATH");
        ASSERT_EQ(cause_exit_code(CAUSE_SOURCE), 12);
}

/* nodeadm uses net/url and os.ReadDir of Go. */
TEST(uris_are_read_as_nodeadm_reads_them) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        static const char *const same[] = {
                "file:///d/a%20b.yaml", "file:/d/a b.yaml", "FILE:///d/a%20b.yaml?x#y", "file:///d/a b.yaml#x", "file:///d", "file:///d/",
        };
        write_file(&f, "/d/a b.yaml", "good");
        ASSERT_OK(root_make_dirs(f.root, "/d/b.yaml", 0755));
        for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
                ASSERT_OK(read_one(&f, same[i]));
                ASSERT_EQ(f.blobs.n, 1);
                ASSERT_STREQ(f.blobs.items[0].data, "good");
                blobs_done(&f.blobs);
        }
        write_file(&f, "/d/B.YML", "more");
        ASSERT_OK(read_one(&f, "file:///d"));
        ASSERT_EQ(f.blobs.n, 2);
        blobs_done(&f.blobs);
        write_file(&f, "/e/100%.yaml", "good");
        ASSERT_OK(read_one(&f, "file:///e/100%.yaml"));
        blobs_done(&f.blobs);
        /* 0x14 and 0x10 differ from "4" and "0" in one bit, and are not hex digits */
        write_file(&f, "/e/%\x14\x10.yaml", "good");
        ASSERT_OK(read_one(&f, "file:///e/%\x14\x10.yaml"));
        blobs_done(&f.blobs);
}

TEST(a_source_over_4_mib_is_refused) {
        _cleanup_(fixture_done) Fixture f = fixture_new();
        _free_ char *text = xcalloc((4 << 20) + 1, 1);
        memset(text, '#', (4 << 20) + 1);
        ASSERT_OK(root_replace(f.root, "/fits", text, 4 << 20, 0644));
        ASSERT_OK(root_replace(f.root, "/big", text, (4 << 20) + 1, 0644));
        ASSERT_FAILED(&f, "file:///big", EFBIG, CAUSE_LIMIT, "limit");
        ASSERT_OK(read_one(&f, "file:///fits"));
        ASSERT_EQ(f.blobs.items[0].size, 4 << 20);
}

TEST(only_uris_of_the_scheme_imds_are_imds_sources) {
        ASSERT_TRUE(source_is_imds("imds://user-data"));
        ASSERT_TRUE(!source_is_imds("file://imds://user-data"));
}

TEST_MAIN
