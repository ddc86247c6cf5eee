/* SPDX-License-Identifier: Apache-2.0
 * The environment, a region and its domain → the endpoint of a service. The rules are those of the AWS SDKs
 * (boto/botocore: botocore/data/ec2 and sts, endpoint-rule-set-1.json). Endpoints are regional: interface
 * endpoints of a VPC can reach those. conf/partitions.csv adds the regions with FIPS endpoints.
 * https://docs.aws.amazon.com/sdkref/latest/guide/feature-endpoints.html */
#include "aws/internal.h"

#include <errno.h>
#include <strings.h>

typedef struct EndpointKind { bool fips, dual_stack, ignore_urls; } EndpointKind;

void query_endpoint_done(QueryEndpoint *e) {
        url_done(&e->url);
        free(e->host);
}

static int read_setting(const QueryService *service, const char *variable, bool *ret, Diag *diag) {
        const char *value = environment_value(variable);
        bool is_true = value && strcasecmp(value, "true") == 0;
        if (value && service->strict && !is_true && strcasecmp(value, "false") != 0)
                return diag_error(diag, -EINVAL, service->endpoint_cause,
                                  "%s in the environment is neither true nor false", variable);
        *ret = is_true;
        return 0;
}

/* https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html */
static int read_wanted(const QueryService *service, EndpointKind *ret, Diag *diag) {
        int r = read_setting(service, "AWS_USE_FIPS_ENDPOINT", &ret->fips, diag) ?:
                read_setting(service, "AWS_USE_DUALSTACK_ENDPOINT", &ret->dual_stack, diag) ?:
                read_setting(service, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", &ret->ignore_urls, diag);
        return r;
}

/* The variable with the endpoint, or NULL. */
static const char *endpoint_variable(const QueryService *service, const EndpointKind *w) {
        if (w->ignore_urls)
                return NULL;
        if (environment_value(service->url_variable))
                return service->url_variable;
        return environment_value("AWS_ENDPOINT_URL") ? "AWS_ENDPOINT_URL" : NULL;
}

/* By the table; an endpoint in a variable is never judged. */
static bool has_fips(const QueryService *service, const char *region) {
        const char *list = partition_find(region)->fips[service->service];
        for (const char *p = list; *p; p += strspn(p, "|")) {
                size_t n = strcspn(p, "|");
                if (strncmp(region, p, n) == 0)
                        return true;
                p += n;
        }
        return streq(list, "usual");
}

bool query_lacks_fips(const QueryService *service, const char *region) {
        _cleanup_(diag_done) Diag ignored = {};
        EndpointKind w = {};
        return read_wanted(service, &w, &ignored) >= 0 && w.fips && !endpoint_variable(service, &w) &&
               !has_fips(service, region);
}

static char *regional_endpoint(const QueryService *service, const EndpointKind *w, const char *region,
                               const char *domain) {
        const Partition *p = partition_find(region);
        /* usual endpoints of GovCloud are validated */
        bool usual = !w->fips || (!w->dual_stack && streq(p->fips[service->service], "usual"));
        return xasprintf("https://%s%s.%s.%s", service->id, usual ? "" : "-fips", region,
                         w->dual_stack ? p->dual_stack : domain ?: p->domain);
}

static char *make_host(const Url *url) {
        _free_ char *host = str_lower(url->host);
        bool literal = strchr(host, ':'), usual = streq(url->port, url->https ? "443" : "80");
        return xasprintf("%s%s%s%s%s", literal ? "[" : "", host, literal ? "]" : "", usual ? "" : ":",
                         usual ? "" : url->port);
}

/* *ret_variable: the variable of the address, or NULL. */
static int find_endpoint(const QueryService *service, const char *region, const char *domain, char **ret,
                         const char **ret_variable, const char **ret_kind, Diag *diag) {
        EndpointKind w = {};
        int r = read_wanted(service, &w, diag);
        if (r < 0)
                return r;
        const char *variable = endpoint_variable(service, &w);
        if (!variable && w.fips && service->strict && !has_fips(service, region))
                return diag_error(diag, -EINVAL, service->endpoint_cause,
                                  "AWS_USE_FIPS_ENDPOINT is true, in the environment or in "
                                  "spec.instance.environment, but %s has no known FIPS endpoint in %s. Unset "
                                  "it, or name the endpoint with %s",
                                  service->name, region, service->url_variable);
        *ret = variable ? xstrdup(getenv(variable)) : regional_endpoint(service, &w, region, domain);
        *ret_variable = variable;
        *ret_kind = variable                 ? NULL
                    : w.fips && w.dual_stack ? "FIPS and dual-stack"
                    : w.fips                 ? "FIPS"
                    : w.dual_stack           ? "dual-stack"
                                             : NULL;
        return 0;
}

int query_endpoint(const QueryService *service, const char *region, const char *domain, QueryEndpoint *ret,
                   Diag *diag) {
        _free_ char *text = NULL;
        const char *variable = NULL;
        QueryEndpoint e = {};
        if (!region_is_valid(region))
                return diag_error(diag, -EINVAL, service->endpoint_cause,
                                  "\"%s\" is not the name of a region; %s takes one like us-west-2", region,
                                  service->region_setting);
        int r = find_endpoint(service, region, domain, &text, &variable, &e.kind, diag);
        if (r < 0)
                return r;
        bool scheme = text && (startswith(text, "http://") || startswith(text, "https://"));
        if (!scheme || url_parse(text, &e.url) < 0) {
                _free_ char *what =
                        variable ? xasprintf("%s%s", variable, service->variable_place)
                                 : xasprintf("the endpoint of %s, built from region and domain,",
                                             service->name);
                return diag_error(diag, -EINVAL, service->endpoint_cause,
                                  "%s is not of the form http[s]://HOST[:PORT][/PATH]", what);
        }
        e.host = make_host(&e.url);
        e.path = *e.url.path ? e.url.path : "/";
        *ret = e;
        return 0;
}

char *query_endpoint_advice(const QueryService *service, const QueryEndpoint *e, const char *region) {
        bool fips = startswith(e->kind, "FIPS"), dual_stack = strstr(e->kind, "dual-stack");
        return xasprintf("%s may have no %s endpoint in %s: unset %s%s%s, or name the endpoint with %s. ",
                         service->name, e->kind, region, fips ? "AWS_USE_FIPS_ENDPOINT" : "",
                         fips && dual_stack ? " and " : "", dual_stack ? "AWS_USE_DUALSTACK_ENDPOINT" : "",
                         service->url_variable);
}
