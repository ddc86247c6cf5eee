/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One ordinary node, as planners see it: a configuration and a machine made by hand, which a test changes
 * where it looks. */
#include "base/str.h"
#include "plan/planner.h"
#include "test.h"

static const InstanceType sample_type = { .name = "g6.4xlarge",
                                          .vcpus = 16,
                                          .gpus = 1,
                                          .gpu_model = "nvidia-l4-24gb",
                                          .network_cards = 1,
                                          .max_efa = 0,
                                          .disks = 1,
                                          .disk_gb = 600,
                                          .nvswitch = "none",
                                          .arch = "x86_64" };

/* A copy on the heap of what a literal says, so that it is a char *. */
static inline char **sample_list(const char *const *items) {
        char **list = NULL;
        for (; *items; items++)
                strv_add(&list, *items);
        return list;
}
#define LIST(...) sample_list((const char *const[]){ __VA_ARGS__, NULL })

typedef struct Sample {
        Config config;
        Host host;
        PlanOptions options;
        Plan *plan;
        Diag diag;
        json_t *parsed[8];
} Sample;

static inline Sample sample_new(void) {
        static char name[] = "prod", endpoint[] = "https://ABC123.gr7.us-west-2.eks.amazonaws.com",
                    cidr[] = "10.100.0.0/16",
                    ca[] = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
                    id[] = "i-0123456789abcdef0", type[] = "g6.4xlarge", region[] = "us-west-2",
                    zone[] = "us-west-2b", domain[] = "amazonaws.com", mac[] = "06:00:00:00:00:01",
                    ipv4[] = "10.0.3.7", dns[] = "ip-10-0-3-7.us-west-2.compute.internal",
                    kubelet[] = "1.33.4", containerd[] = "2.1.5",
                    provider[] = "/etc/eks/image-credential-provider/ecr-credential-provider";
        return (Sample) {
                .config.cluster = {
                        .name = name, .endpoint = endpoint, .certificate_authority = ca,
                        .certificate_authority_size = sizeof(ca) - 1, .cidr = cidr
                },
                .host = {
                        .instance = {
                                .id = id, .type = type, .region = region, .zone = zone, .domain = domain,
                                .mac = mac, .ipv4 = ipv4, .private_dns_name = dns
                        },
                        .type = &sample_type, .eni_limits_known = true, .max_enis = 8,
                        .addresses_per_eni = 30, .cpus = 16, .memory_bytes = 64ULL << 30,
                        .kubelet_version = kubelet, .containerd_version = containerd,
                        .image_credential_provider = provider,
                },
                .options.plugin = PLUGIN_AWS,
        };
}

static inline void sample_done(Sample *s) {
        s->plan = plan_free(s->plan);
        diag_done(&s->diag);
        for (size_t i = 0; i < ARRAY_SIZE(s->parsed); i++)
                json_decref(s->parsed[i]);
}

/* JSON written with ' for ", owned by the sample. */
static inline json_t *sample_json(Sample *s, const char *text) {
        _free_ char *copy = xstrdup(text);
        for (char *p = copy; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        size_t i = 0;
        while (s->parsed[i])
                ASSERT_TRUE(++i < ARRAY_SIZE(s->parsed));
        s->parsed[i] = json_loads(copy, JSON_DECODE_ANY, NULL);
        ASSERT_TRUE(s->parsed[i]);
        return s->parsed[i];
}

static inline Plan *sample_plan(Sample *s) {
        s->plan = plan_free(s->plan);
        int r = plan_make(&s->config, &s->host, &s->options, &s->plan, &s->diag);
        if (r < 0) {
                const Diagnostic *first = diag_first_error(&s->diag);
                FAIL("no plan (%d): %s", r, first && first->text ? first->text : "no reason given");
        }
        return s->plan;
}

static inline const Action *sample_file(const Sample *s, const char *path) {
        _free_ char *id = xasprintf("write-file:%s", path);
        const Action *a = plan_find(s->plan, id);
        if (!a)
                FAIL("the plan does not write %s", path);
        return a;
}

static inline bool sample_warned(const Sample *s, const char *code) {
        for (size_t i = 0; i < s->plan->warnings.n; i++)
                if (streq(s->plan->warnings.items[i].code, code))
                        return true;
        return false;
}

/* The value in a planned JSON file at a path with slashes, as compact JSON; owned by the caller. */
static inline char *sample_setting(const Sample *s, const char *file, const char *path) {
        json_t *all = json_loads(sample_file(s, file)->file.content, 0, NULL), *at = all;
        _free_ char *rest = xstrdup(path);
        for (char *key = strtok(rest, "/"); key; key = strtok(NULL, "/"))
                at = json_object_get(at, key);
        char *text = at ? json_dumps(at, JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS) : xstrdup("absent");
        json_decref(all);
        return text;
}
#define ASSERT_SETTING(s, file, path, want) ({                                                  \
        _free_ char *_t = sample_setting(s, file, path); ASSERT_STREQ(_t, want); })
