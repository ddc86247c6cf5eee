/* SPDX-License-Identifier: Apache-2.0
 * Warns of valid configuration that may not do what the user expects. */
#include "config/fields.h"

#include "base/json.h"
#include "base/str.h"

#include <arpa/inet.h>

/* kubelet and nodeadm accept http, but EKS does not serve it, and anyone on the way can read the token. */
static void warn_of_endpoint(const Merge *m, Diag *diag) {
        const char *path = "spec.cluster.apiServerEndpoint";
        if (strncasecmp(json_string_value(merge_find(m, path)) ?: "", "http://", strlen("http://")) == 0)
                merge_warn(m, diag, "plain-http", path,
                           "is http: the kubelet token would cross the network in clear text, and EKS "
                           "answers only over https");
}

/* docs.aws.amazon.com/eks/latest/APIReference/API_CreateCluster.html */
static void warn_of_name(const Merge *m, Diag *diag) {
        const char *path = "spec.cluster.name", *name = json_get_text(merge_find(m, "spec.cluster"), "name"),
                   *letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
        size_t n = strlen(name);
        if (strpbrk(name, "$<") || strstr(name, "{{"))  /* validate.c refuses it */
                return;
        if (n > 0 && (n > 100 || strspn(name, letters) < n || *name == '-' || *name == '_'))
                merge_warn(m, diag, "cluster-name", path,
                           "is not a valid name of an EKS cluster: write up to 100 letters, digits, - and "
                           "_, with a letter or a digit first");
}

#define CERTIFICATE "-----BEGIN CERTIFICATE-----"

/* Does the length of a certificate differ from its header (X.690, 8.1.3)? Real ones begin with a sequence
 * whose length takes two bytes, "MI" in base64. Anything else is a made-up sample and passes. */
static bool is_cut(const char *body, size_t size) {
        _free_ char *der = NULL, *text = xcalloc(size + 1, 1);
        size_t n = 0, length = 0;
        for (size_t i = 0; i < size; i++)       /* Go drops blanks, too */
                if (!strchr(" \t\r\n", body[i]))
                        text[length++] = body[i];
        if (length < 64 || !startswith(text, "MI"))
                return false;
        if (base64_decode(text, length, false, &der, &n) < 0 || n < 4)
                return true;
        const unsigned char *head = (const unsigned char *)der;
        return head[0] == 0x30 && head[1] == 0x82 && n - 4 != ((size_t)head[2] << 8 | head[3]);
}

/* Why kubelet finds none, or NULL. Go ignores a block without end (pkg.go.dev/encoding/pem#Decode). */
static const char *pem_fault(const char *pem, size_t size) {
        static const char end[] = "-----END CERTIFICATE-----";
        const char *body = memmem(pem, size, CERTIFICATE, strlen(CERTIFICATE));
        if (!body)
                return "contains no PEM certificate";
        body += strlen(CERTIFICATE);
        const char *stop = memmem(body, size - (size_t)(body - pem), end, strlen(end));
        if (!stop)
                return "contains a certificate without its END line";
        return is_cut(body, (size_t)(stop - body)) ? "contains a truncated or damaged certificate" : NULL;
}

/* Mistakes that users have made; kubelet does not start with them. */
bool authority_is_encoded_once(const char *text) {
        _free_ char *pem = NULL, *twice = NULL;
        size_t size = 0, n = 0;
        return base64_decode(text, strlen(text), true, &pem, &size) < 0 ||
               base64_decode(pem, size, true, &twice, &n) < 0 ||
               !memmem(twice, n, CERTIFICATE, strlen(CERTIFICATE));
}

bool authority_is_public(const char *text) {
        static const char key[] = "PRIVATE KEY-----";
        _free_ char *pem = NULL;
        size_t n = 0;
        return base64_decode(text, strlen(text), true, &pem, &n) < 0 ||
               memmem(pem, n, CERTIFICATE, strlen(CERTIFICATE)) || !memmem(pem, n, key, strlen(key));
}

/* kubelet reads it as its client CA (kubernetes/kubernetes cmd/kubelet/app/server.go). Only a warning, since
 * tests use made-up texts and nodeadm accepts any base64. */
static void warn_of_authority(const Merge *m, Diag *diag) {
        const char *path = "spec.cluster.certificateAuthority",
                   *text = json_string_value(merge_find(m, path)) ?: "";
        _free_ char *pem = NULL;
        size_t size = 0;
        if (base64_decode(text, strlen(text), true, &pem, &size) < 0 || size == 0)
                return;
        const char *fault = pem_fault(pem, size);
        if (fault && authority_is_encoded_once(text) && authority_is_public(text))
                merge_warn(m, diag, "no-certificate", path,
                           "%s, but kubelet needs a complete one to start; take it from aws eks "
                           "describe-cluster", fault);
}

/* Does an entry of NO_PROXY cover host? As Go reads it
 * (pkg.go.dev/golang.org/x/net/http/httpproxy#Config). */
static bool entry_covers(const char *entry, const char *host) {
        unsigned char base[16] = {}, address[16] = {};
        const char *slash = strchr(entry, '/');
        size_t n, length = strlen(host);
        uint64_t bits = 0;
        if (slash && parse_u64(slash + 1, &bits) >= 0) {
                _free_ char *net = xstrndup(entry, (size_t)(slash - entry));
                int family = strchr(net, ':') ? AF_INET6 : AF_INET;
                if (inet_pton(family, net, base) != 1 || inet_pton(family, host, address) != 1 || bits > 128)
                        return false;
                for (size_t i = 0; i < bits; i++)
                        if ((base[i / 8] ^ address[i / 8]) & 0x80 >> i % 8)
                                return false;
                return true;
        }
        entry += startswith(entry, "*.");
        n = strlen(entry);
        return streq(entry, "*") || strcasecmp(entry, host) == 0 ||
               (length > n && strcasecmp(host + length - n, entry) == 0 &&
                (*entry == '.' || host[length - n - 1] == '.'));
}

static bool list_covers(const char *list, const char *host) {
        while (*list) {
                _free_ char *entry = str_cut(&list, ", ");
                if (*entry && entry_covers(entry, host))
                        return true;
        }
        return false;
}

/* Go splits only at commas and strips each entry: one with a blank in it covers nothing
 * (golang.org/x/net/http/httpproxy: config.init()). */
static bool has_blank_within(const char *list) {
        while (*list) {
                _free_ char *raw = str_cut(&list, ","), *entry = str_strip(raw);
                if (strpbrk(entry, " \t"))
                        return true;
        }
        return false;
}

static const char *variable(const json_t *variables, const char *large, const char *small) {
        const char *value = json_get_text(variables, large);
        return *value ? value : json_get_text(variables, small);
}

/* Of kubelet, which also starts the ECR login. The metadata service speaks http, the API server https.
 * NO_PROXY of "default" holds here, too. */
static void warn_of_proxy(const Merge *m, const char *service, const json_t *all, Diag *diag) {
        const json_t *variables = json_object_get(all, service);
        const json_t *cluster = merge_find(m, "spec.cluster");
        const char *url = json_get_text(cluster, "apiServerEndpoint"), *slashes = strstr(url, "//"),
                   *host = slashes ? slashes + 2 : url, *none = variable(variables, "NO_PROXY", "no_proxy");
        if (!*none)
                none = variable(json_object_get(all, "default"), "NO_PROXY", "no_proxy");
        _free_ char *name = xstrndup(host, strcspn(host, ":/")),
                    *path = xasprintf("spec.instance.environment.%s", service);
        bool six = strchr(json_get_text(cluster, "cidr"), ':'),
             http = *variable(variables, "HTTP_PROXY", "http_proxy"),
             https = *variable(variables, "HTTPS_PROXY", "https_proxy");
        Text missing = {};
        if ((http || https) && has_blank_within(none))
                merge_warn(m, diag, "no-proxy", path,
                           "sets a proxy, but NO_PROXY has spaces between its entries: kubelet and the ECR "
                           "login split it only at commas");
        if (http && !list_covers(none, "169.254.169.254"))
                text_add(&missing, "169.254.169.254");
        if (http && six && !list_covers(none, "fd00:ec2::254"))
                text_add(&missing, "%sfd00:ec2::254", missing.size > 0 ? " and " : "");
        if (missing.size > 0)
                merge_warn(m, diag, "no-proxy", path,
                           "sets a proxy, but NO_PROXY lacks %s: kubelet and the ECR login would ask the "
                           "proxy for instance metadata", missing.data);
        if (https && *name && *host != '[' && !list_covers(none, name))
                merge_warn(m, diag, "api-by-proxy", path,
                           "sets a proxy, but NO_PROXY lacks the host of the API server: kubelet goes "
                           "through the proxy. Ignore this if only the proxy reaches the API server");
        text_done(&missing);
}

/* Other names may be right. A name that nearly is one of these is a typing mistake. */
static void warn_of_service(const Merge *m, const char *service, Diag *diag) {
        static const char *const known[] = {
                "default", "kubelet", "containerd", "soci-snapshotter", "nodestrap-config", "nodestrap-run",
                "nodestrap-devices", "chronyd", "crond", "sshd", "cloud-init", "nodeadm-config",
                "nodeadm-run", "docker", "crio", NULL
        };
        size_t n = strlen(service);
        _free_ char *name = xstrndup(service, endswith(service, ".service") ? n - 8 : n),
                    *path = xasprintf("spec.instance.environment.%s", service);
        const char *near = nearest_name(name, known);
        /* a typing mistake keeps the first letter or the length */
        if (strv_contains((char *const *)known, name) || startswith(name, "nvidia-") ||
            startswith(name, "systemd-") || startswith(name, "amazon-") || !near ||
            (*near != *name && strlen(near) != strlen(name)))
                return;
        merge_warn(m, diag, "unknown-service", path, "is not a service that nodestrap knows");
        diag_suggest(diag, "%s", near);
}

/* systemd drops an assignment to any other name (systemd src/basic/env-util.c: env_name_is_valid()). */
bool variable_name_is_valid(const char *name) {
        static const char valid[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
        return *name && !is_digit(*name) && !name[strspn(name, valid)];
}

/* Only warnings, as nodeadm writes NAME=VALUE whatever the name is. */
static void warn_of_variables(const Merge *m, const char *service, json_t *variables, Diag *diag) {
        _free_ char *path = xasprintf("spec.instance.environment.%s", service);
        const char *name;
        json_t *unused;
        json_object_foreach(variables, name, unused) {
                _free_ char *at = xasprintf("%s.%s", path, name);
                if (strchr(name, '='))
                        merge_warn(m, diag, "no-effect", path, "a variable name has an equals sign: systemd "
                                                               "ends the name there");
                else if (!variable_name_is_valid(name))
                        merge_warn(m, diag, "environment-name", at,
                                   "systemd ignores this variable: a name may have only letters, digits "
                                   "and underscores, and not begin with a digit");
        }
}

static void warn_of_environment(const Merge *m, Diag *diag) {
        json_t *environment = merge_find(m, "spec.instance.environment"), *variables;
        const char *service;
        json_object_foreach(environment, service, variables) {
                warn_of_variables(m, service, variables, diag);
                warn_of_service(m, service, diag);
                if (streq(service, "default") || streq(service, "kubelet") ||
                    streq(service, "kubelet.service"))
                        warn_of_proxy(m, service, environment, diag);
        }
}

/* systemd-resolved ignores an invalid name (resolved.conf(5)). validate.c refuses other name servers. */
static void warn_of_resolver(const Merge *m, Diag *diag) {
        static const char *const lists[] = { "nameservers", "domains" };
        const json_t *network = merge_find(m, "spec.instance.network");
        json_t *item;
        size_t k;
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                json_array_foreach(json_object_get(network, lists[i]), k, item) {
                        const char *word = json_string_value(item) ?: "";
                        _free_ char *path = xasprintf("spec.instance.network.%s[%zu]", lists[i], k);
                        if (!*word || (i == 1 && strpbrk(word, ",;'\"\\")))
                                merge_warn(m, diag, "no-effect", path,
                                           "is not %s, so systemd-resolved ignores it",
                                           i == 0 ? "an address" : "a domain name");
                }
}

#define NVIDIA "spec.accelerator.nvidia"
#define IMEX   NVIDIA ".imex"
#define REPAIR "spec.cluster.repairCondition"
/* "off", false and 0 do not contradict another "off". */
static bool says_something(const json_t *value) {
        return json_is_true(value) || json_integer_value(value) > 0 || json_array_size(value) > 0 ||
               (json_string_length(value) > 0 && !streq(json_string_value(value), "off"));
}

/* path is idle where `on` has (without: lacks) this word. Another document may still set what a drop-in
 * leaves out. */
static void warn_if_idle(const Merge *m, Diag *diag, const char *path, const char *on, const char *word,
                         bool without, const char *text) {
        const char *set = json_string_value(merge_find(m, on)) ?: "";
        bool idle = without ? !streq(set, word) && (*set || !m->partial) : streq(set, word);
        if (idle && says_something(merge_find(m, path)))
                merge_warn(m, diag, "no-effect", path, "%s", text);
}

/* Calls, since each start would relocate the pointers of a table. */
#define WITH(path, on, word, text)    warn_if_idle(m, diag, path, on, word, false, text)
#define WITHOUT(path, on, word, text) warn_if_idle(m, diag, path, on, word, true, text)
#define NVIDIA_OFF(path) WITH(NVIDIA path, NVIDIA ".mode", "off", "has no effect with nvidia.mode: off")
static void warn_of_idle(const Merge *m, Diag *diag) {
        WITHOUT("spec.instance.hugePages.pages", "spec.instance.hugePages.mode", "explicit",
                "has no effect without mode: explicit");
        WITH("spec.instance.network.efa.expectedDevices", "spec.instance.network.efa.mode", "off",
             "has no effect with mode: off");
        WITHOUT(IMEX ".nodes", IMEX ".mode", "host", "has no effect without mode: host");
        WITH(IMEX ".label", NVIDIA ".fabric.gate", "off",
             "has no effect with fabric.gate: off, as only the gate reads the clique");
        /* plan_hands_off() of plan/nvidia.c warns of the others, where there are GPUs */
        NVIDIA_OFF(".fabric.gate");
        NVIDIA_OFF(".fabric.timeout");
        NVIDIA_OFF(".memoryMode");
        NVIDIA_OFF(".health");
        NVIDIA_OFF(".gpuDirect");
        NVIDIA_OFF(".prove");
        NVIDIA_OFF(".proveTimeout");
        WITHOUT(NVIDIA ".proveTimeout", NVIDIA ".prove", "quick", "has no effect without prove: quick");
        WITH(REPAIR, NVIDIA ".mode", "off", "has no effect with nvidia.mode: off");
        WITH(REPAIR, NVIDIA ".health", "off", "has no effect with nvidia.health: off");
}

static void warn_of_mig(const Merge *m, Diag *diag) {
        const char *path = "spec.accelerator.nvidia.mig";
        const json_t *mig = merge_find(m, path);
        if (json_is_array(mig) && json_array_size(mig) == 0)
                merge_warn(m, diag, "no-effect", path,
                           "is an empty list, which changes nothing: the GPUs keep their partitions; write "
                           "mig: off to turn MIG off");
}

void conflicts_warn(const Merge *m, Diag *diag) {
        warn_of_endpoint(m, diag);
        warn_of_name(m, diag);
        warn_of_authority(m, diag);
        warn_of_environment(m, diag);
        warn_of_resolver(m, diag);
        warn_of_idle(m, diag);
        warn_of_mig(m, diag);
        kubelet_warn(m, diag);
        containerd_warn(m, diag);
}
