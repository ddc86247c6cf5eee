/* SPDX-License-Identifier: Apache-2.0
 * The identity of the instance: of the cache of an earlier phase, else of IMDS. The identity document has
 * most of it, and one to three more values have the rest. Without IMDS all is assumed and listed as such.
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-identity-documents.html */
#include "host/detect.h"

#include "base/time.h"
#include "base/str.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>

#define DOCUMENT "dynamic/instance-identity/document"
#define NOT_EC2  "the metadata service does not have it (404); is this an EC2 instance?"

/* A fact in Instance, in the document, in .instance of the nodeadm cache, and as assumed; or NULL. */
typedef struct Fact { size_t offset; const char *name, *document, *cache, *assumed; } Fact;
#define AT(member) offsetof(Instance, member)
static const Fact facts[] = {
        { AT(id),     "instance.id",     "instanceId",       "id",               "i-0123456789abcdef0" },
        { AT(type),   "instance.type",   "instanceType",     "type",             "m5.large"            },
        { AT(region), "instance.region", "region",           "region",           "us-west-2"           },
        { AT(zone),   "instance.zone",   "availabilityZone", "availabilityZone", "us-west-2a"          },
        { AT(ipv4),   "instance.ipv4",   "privateIp",        NULL,               "10.0.0.10"           },
        { AT(mac),    "instance.mac",    NULL,               "mac",              "02:00:00:00:00:01"   },
        { AT(private_dns_name), "instance.privateDnsName", NULL, "privateDnsName", NULL },
};

static char **fact_slot(Host *h, const Fact *f) {
        return (char **)(void *)((char *)&h->instance + f->offset);
}

static bool cluster_is_ipv6(const Config *config) {
        return config->cluster.cidr && strchr(config->cluster.cidr, ':');
}

void assume(Host *h, const char *fact) {
        if (!strv_contains(h->assumed, fact))
                strv_add(&h->assumed, fact);
}

static void assume_value(Host *h, const char *fact, char **slot, const char *value) {
        if (*slot)
                return;
        *slot = xstrdup(value);
        assume(h, fact);
}

void assume_identity(const Config *config, Host *h) {
        Instance *i = &h->instance;

        for (size_t k = 0; k < ARRAY_SIZE(facts); k++)
                if (facts[k].assumed)
                        assume_value(h, facts[k].name, fact_slot(h, &facts[k]), facts[k].assumed);
        _free_ char *name = xasprintf("ip-10-0-0-10.%s.compute.internal", i->region);
        assume_value(h, "instance.domain", &i->domain, partition_find(i->region)->domain);
        if (cluster_is_ipv6(config))
                assume_value(h, "instance.ipv6", &i->ipv6, "2001:db8::10");
        if (!config->gates.instance_id_node_name)
                assume_value(h, "instance.privateDnsName", &i->private_dns_name, name);
}

/* A string without blanks and control characters, safe in files; or NULL. */
static const char *fact_string(const json_t *object, const char *key) {
        const char *s = key ? json_string_value(json_object_get(object, key)) : NULL;
        for (const char *p = s; p && *p; p++)
                if ((unsigned char)*p <= ' ' || *p == 0x7f)
                        return NULL;
        return s && *s ? s : NULL;
}

/* An AMI of a running node has its cache. On Nitro the DMI asset tag is the instance id to compare. */
static bool cache_is_ours(const Root *root, const json_t *status, Diag *diag) {
        _free_ char *tag = NULL;
        const char *id = fact_string(json_object_get(status, "instance"), "id");
        int r = root_read_line(root, "/sys/devices/virtual/dmi/id/board_asset_tag", &tag);

        if (!id)
                return false;
        if (r < 0 || !startswith(tag, "i-") || streq(tag, id))
                return true;
        diag_warn_at(diag, "stale-cache", NULL, "status.instance.id",
                     "ignoring the cached status: it belongs to instance %s, but this instance is %s", id,
                     tag);
        return false;
}

static void take_cache(const Config *config, const HostOptions *options, Host *h) {
        const json_t *status = options->cached_status;
        const json_t *instance = json_object_get(status, "instance"),
                     *own = json_object_get(status, "nodestrap");
        for (size_t k = 0; k < ARRAY_SIZE(facts); k++) {
                const char *s = fact_string(instance, facts[k].cache);
                if (s)
                        *fact_slot(h, &facts[k]) = xstrdup(s);
        }
        json_int_t enis = json_integer_value(json_object_get(own, "enis"));
        json_int_t addresses = json_integer_value(json_object_get(own, "addressesPerEni"));
        if (enis > 0 && enis < 1000 && addresses > 0 && addresses < 1000) {
                h->max_enis = (unsigned)enis;
                h->addresses_per_eni = (unsigned)addresses;
                h->eni_limits_known = true;
        }
        h->name_assumed = h->instance.private_dns_name && json_is_true(json_object_get(own, "nameAssumed"));
        /* the configuration may differ now */
        if (config->gates.instance_id_node_name || (h->name_assumed && name_is_strict(config, options))) {
                RENEW(h->instance.private_dns_name, NULL);
                h->name_assumed = false;
        }
}

/* The document must have all facts but the address, which has other sources. */
static int ask_document(Imds *imds, Host *h, Diag *diag) {
        static const Position at = { .source = "instance identity document" };
        _free_ char *text = NULL;
        json_error_t e;
        size_t size = 0;
        int r = imds_get(imds, DOCUMENT, &text, &size, diag);

        if (r == -ENOENT)
                return diag_error_in(diag, r, CAUSE_IMDS, "instance identity document", NOT_EC2);
        if (r < 0)
                return r;
        json_t *document = json_loadb(text, size, 0, &e);
        if (!document)
                return diag_error_in(diag, -EBADMSG, CAUSE_IMDS, "instance identity document",
                                     "it is not JSON: error on line %d (%zu bytes in all)", e.line, size);
        for (size_t k = 0; k < ARRAY_SIZE(facts) && r >= 0; k++) {
                const char *s = fact_string(document, facts[k].document);
                char **slot = fact_slot(h, &facts[k]);
                if (!facts[k].document || *slot)
                        continue;
                if (s)
                        *slot = xstrdup(s);
                else if (slot != &h->instance.ipv4)
                        r = diag_error_at(diag, -EBADMSG, CAUSE_IMDS, &at, facts[k].document,
                                          "it is missing, or not a plain word");
        }
        json_decref(document);
        return r;
}

int metadata_line(Imds *imds, const char *path, char **ret, Diag *diag) {
        _free_ char *text = NULL;
        int r = imds_get(imds, path, &text, NULL, diag);
        if (r < 0)
                return r;
        text[strcspn(text, "\r\n")] = 0;
        _free_ char *line = str_strip(text);
        if (!*line || strpbrk(line, " \t"))
                return diag_error_at(diag, -EBADMSG, CAUSE_IMDS, NULL, path,
                                     "the answer of the metadata service is not exactly one word");
        *ret = TAKE_PTR(line);
        return 0;
}

/* The same, but a 404 is an error. */
static int ask_line(Imds *imds, const char *path, char **ret, Cause cause, const char *of, const char *why,
                    Diag *diag) {
        int r = metadata_line(imds, path, ret, diag);
        return r == -ENOENT ? diag_error_at(diag, r, cause, NULL, of, "%s", why) : r;
}

static int ask_domain(Imds *imds, Instance *i, Diag *diag) {
        const char *region = i->region ?: "";
        int r = region_tells_partition(region)
                        ? -ENOENT
                        : metadata_line(imds, "meta-data/services/domain", &i->domain, diag);
        if (r == -ENOENT)
                i->domain = xstrdup(partition_find(region)->domain);
        return r == -ENOENT ? 0 : r;
}

static int ask_ipv6(Imds *imds, Host *h, Diag *diag) {
        _free_ char *path =
                xasprintf("meta-data/network/interfaces/macs/%s/ipv6s", h->instance.mac);
        _free_ char *why = xasprintf(
                "the cluster is IPv6, but the primary interface %s has no IPv6 address; assign one in the "
                "launch template, or let the subnet do it", h->instance.mac);
        return ask_line(imds, path, &h->instance.ipv6, CAUSE_FACTS, "spec.cluster.cidr", why, diag);
}

static int ask(const Config *config, const HostOptions *options, Host *h, Diag *diag) {
        Instance *i = &h->instance;
        int r = 0;

        if (!i->id || !i->type || !i->region || !i->zone || (!i->ipv4 && !cluster_is_ipv6(config)))
                r = ask_document(options->imds, h, diag);
        if (r >= 0 && !i->ipv4 && !cluster_is_ipv6(config))
                r = ask_line(options->imds, "meta-data/local-ipv4", &i->ipv4, CAUSE_FACTS,
                             "spec.cluster.cidr",
                             "the cluster is IPv4, and the metadata service has no IPv4 address for this "
                             "instance", diag);
        if (r >= 0 && !i->mac)
                r = ask_line(options->imds, "meta-data/mac", &i->mac, CAUSE_IMDS, "meta-data/mac", NOT_EC2,
                             diag);
        if (r >= 0 && !i->domain)
                r = ask_domain(options->imds, i, diag);
        if (r >= 0 && !i->ipv6 && cluster_is_ipv6(config))
                r = ask_ipv6(options->imds, h, diag);
        return MIN(r, 0);
}

void move_facts(Diag *to, Diag *from) {
        for (size_t i = 0; i < from->n; i++)
                if (from->items[i].cause == CAUSE_IMDS)
                        from->items[i].cause = CAUSE_FACTS;
        diag_move(to, from);
}

int detect_identity(const Root *root, const Config *config, const HostOptions *options, Host *h, Diag *diag) {
        if (options->cached_status && cache_is_ours(root, options->cached_status, diag))
                take_cache(config, options, h);
        if (options->imds) {
                Diag found = {};
                int r = ask(config, options, h, &found);
                move_facts(diag, &found);
                return r;
        }
        const char *name = h->product_name;     /* the type, in EC2 firmware */
        if (!h->instance.type && name && instance_type_is_known(name))
                h->instance.type = xstrdup(name);
        assume_identity(config, h);
        return 0;
}

Host *host_recall(const Config *config, Imds *imds) {
        _cleanup_(diag_done) Diag ignored = {};
        Host *h = xcalloc(1, sizeof *h);
        Instance *i = &h->instance;
        bool known = ask_document(imds, h, &ignored) >= 0 && !config->gates.instance_id_node_name;
        if (known && imds_get(imds, "meta-data/local-hostname", &i->private_dns_name, NULL, &ignored) >= 0) {
                /* DHCP options may add domains */
                i->private_dns_name[strcspn(i->private_dns_name, " \t\r\n")] = 0;
                h->name_assumed = !name_is_regional(i, i->private_dns_name);
        }
        return h;
}
