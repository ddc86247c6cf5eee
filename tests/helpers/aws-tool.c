/* SPDX-License-Identifier: Apache-2.0
 * The two services from a command line, for the shell tests:
 *   aws-tool imds BUDGET PATH...    each PATH's bytes on stdout, one after the other, by one Imds; BUDGET in
 *                                   seconds
 *   aws-tool source BUDGET URI...   "NAME BYTES" of each blob
 *   aws-tool name ID                PrivateDnsName
 *   aws-tool limits TYPE            "ENIS ADDRESSES"
 *   aws-tool tagged ID MAC          "yes" or "no": is this interface of the instance tagged no_manage?
 *   aws-tool enis CARDS [AGAIN...]  what is known of interfaces after one question, as it is kept
 *   aws-tool endpoint ec2|sts REGION...     the host of each, or what is wrong with it
 * Errors go to stderr as a person would see them; exit 1. Request counts are the last line on stderr. */
#include "aws/internal.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "nic/enis.h"
#include "source/source.h"

#include <errno.h>
#include <stdio.h>

static int tool_imds(Imds *imds, char **paths, Diag *diag) {
        for (; *paths; paths++) {
                _free_ char *data = NULL;
                size_t size = 0;
                int r = imds_get(imds, *paths, &data, &size, diag);
                if (r == -ENOENT)
                        fprintf(stderr, "404 %s\n", *paths);
                if (r < 0)
                        return r;
                fwrite(data, 1, size, stdout);
        }
        return 0;
}

static int tool_source(Imds *imds, char **uris, Diag *diag) {
        _cleanup_(root_freep) Root *root = NULL;
        _cleanup_(blobs_done) Blobs blobs = {};
        int r = root_new("/", &root);
        if (r >= 0)
                r = source_read(root, uris, imds, 0, &blobs, diag);
        for (size_t i = 0; i < blobs.n; i++)
                printf("%s %zu\n", blobs.items[i].at.source, blobs.items[i].size);
        return r;
}

static int tool_name(const Ec2 *ec2, const char *id, Diag *diag) {
        _free_ char *name = NULL;
        int r = ec2_private_dns_name(ec2, id, &name, diag);
        if (r >= 0)
                puts(name);
        return r;
}

static int tool_limits(const Ec2 *ec2, const char *type, Diag *diag) {
        unsigned enis = 0, addresses = 0;
        int r = ec2_eni_limits(ec2, type, &enis, &addresses, diag);
        if (r >= 0)
                printf("%u %u\n", enis, addresses);
        return r;
}

static int tool_tagged(const Ec2 *ec2, const char *id, const char *mac, Diag *diag) {
        bool tagged = false;
        int r = ec2_interface_is_tagged(ec2, id, mac, &tagged, diag);
        if (r == -EACCES)
                fputs("may not ask\n", stderr);
        if (r >= 0)
                puts(tagged ? "yes" : "no");
        return r;
}

static int tool_enis(Imds *imds, const char *cards, char **again, Diag *diag) {
        _cleanup_(enis_done) Enis enis = {};
        uint64_t n = 0;
        if (parse_u64(cards, &n) < 0)
                return -EINVAL;
        int r = enis_ask(imds, &(EniQuestion){ .cards = (unsigned)n, .again = again }, &enis, diag);
        json_t *json = enis_to_json(&enis);
        json_dumpf(json, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(json);
        return r;
}

static int tool_endpoint(const char *service, char **regions) {
        for (; *regions; regions++) {
                _cleanup_(diag_done) Diag diag = {};
                _cleanup_(query_endpoint_done) QueryEndpoint e = {};
                int r = query_endpoint(streq(service, "ec2") ? &ec2_api : &sts_api, *regions, NULL, &e, &diag);
                puts(r < 0 ? diag_first_error(&diag)->text : e.host);
        }
        return 0;
}

int main(int argc, char **argv) {
        _cleanup_(diag_done) Diag diag = {};
        uint64_t budget = 0;
        if (argc < 3 ||
            ((streq(argv[1], "imds") || streq(argv[1], "source")) && parse_timespan(argv[2], &budget) < 0))
                return 2;
        _cleanup_(imds_freep) Imds *imds = imds_new(budget ?: 5 * USEC_PER_SEC);
        Ec2 ec2 = { .region = "us-west-2", .domain = "amazonaws.com", .imds = imds };

        int r = streq(argv[1], "imds") ? tool_imds(imds, argv + 3, &diag)
              : streq(argv[1], "source") ? tool_source(imds, argv + 3, &diag)
              : streq(argv[1], "name") ? tool_name(&ec2, argv[2], &diag)
              : streq(argv[1], "tagged") && argc > 3 ? tool_tagged(&ec2, argv[2], argv[3], &diag)
              : streq(argv[1], "enis") ? tool_enis(imds, argv[2], argv + 3, &diag)
              : streq(argv[1], "endpoint") ? tool_endpoint(argv[2], argv + 3)
              : streq(argv[1], "limits") ? tool_limits(&ec2, argv[2], &diag) : -EINVAL;
        for (size_t i = 0; i < diag.n; i++) {
                _free_ char *text = diagnostic_format(&diag.items[i]);
                fprintf(stderr, "%s: %s\n",
                        diag.items[i].warning ? "warning" : cause_word(diag.items[i].cause), text);
        }
        fprintf(stderr, "requests imds=%u ec2=%u\n", imds_requests(imds), ec2_requests());
        return r < 0;
}
