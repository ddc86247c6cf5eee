/* SPDX-License-Identifier: Apache-2.0
 * Answers of the metadata service → Instance. The input is the identity document, and again the cached
 * status. */
#include "base/str.h"
#include "host/detect.h"

#include <errno.h>
#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct Imds { const uint8_t *data; size_t size; };

int imds_get(Imds *i, const char *path, char **ret, size_t *ret_size, Diag *diag) {
        (void)diag;
        if (streq(path, "meta-data/services/domain"))
                return -ENOENT;
        *ret = xmemdup(i->data, i->size);
        if (ret_size)
                *ret_size = i->size;
        return 0;
}

PoolState imds_pool_state(Imds *imds, char **ret) {
        (void)imds;
        *ret = NULL;
        return POOL_NONE;
}

int ec2_check_endpoints(const Ec2 *ec2, bool asks_ec2, Diag *diag) {
        (void)ec2, (void)asks_ec2, (void)diag;
        return 0;
}

int ec2_private_dns_name(const Ec2 *ec2, const char *instance_id, char **ret, Diag *diag) {
        (void)diag;
        *ret = xasprintf("%s.%s", instance_id, ec2->region);
        return 0;
}

int ec2_eni_limits(const Ec2 *ec2, const char *instance_type, unsigned *ret_enis, unsigned *ret_addresses,
                   Diag *diag) {
        (void)ec2, (void)instance_type, (void)ret_enis, (void)ret_addresses, (void)diag;
        return -ENOENT;
}

static void detect(const Root *root, const HostOptions *options) {
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(host_freep) Host *h = xcalloc(1, sizeof *h);
        Config config = { .cluster.cidr = (char *)"fd00::/108" };
        int r = detect_identity(root, &config, options, h, &diag);
        if (r < 0 && !diag_first_error(&diag))
                abort();        /* a failure without a message */
        if (r >= 0 && (!h->instance.id || !h->instance.type || !h->instance.region || !h->instance.domain ||
                       strchr(h->instance.id, '\n')))
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static Root *root;
        Imds imds = { data, size };

        if (!root && root_new("tests/fixtures", &root) < 0)
                abort();
        detect(root, &(HostOptions){ .imds = &imds });
        json_t *status = json_loadb((const char *)data, size, 0, NULL);
        detect(root, &(HostOptions){ .cached_status = status });
        json_decref(status);
        return 0;
}
