/* SPDX-License-Identifier: Apache-2.0
 * Checks the merged document: names and numbers by the field table, all else by a table of {path, predicate,
 * message}. Reports all failures. Messages hold no value, which may be a secret, but for words of a list. */
#include "config/fields.h"

#include "base/str.h"
#include "base/sysctl.h"
#include "base/time.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <strings.h>

typedef struct Validator { const Merge *merge; const json_t *spec; Diag *diag; bool broken; } Validator;

_printf_(3, 4) static void report(Validator *v, const Path *path, const char *format, ...) {
        _free_ char *name = path_format(path), *text = FORMATTED(format);
        v->broken = true;
        config_report(v->merge, v->diag, name, text);
}

/* ---- small predicates over text ---- */

/* Does it mean the same in plain YAML, a path and a line of a unit? go-yaml ends a line at U+2028 and U+2029
 * (yaml/go-yaml yamlprivateh.go: is_break()). It takes no U+FFFE (readerc.go). */
static bool is_plain_text(const char *s) {
        return !has_control(s, "") && !strstr(s, "\xe2\x80\xa8") && !strstr(s, "\xe2\x80\xa9") &&
               utf8_is_for_systemd(s);
}

/* Where systemd ends a line (systemd src/basic/fileio.c: read_line_full()): not at U+2028. */
static bool is_on_one_line(const char *s) {
        return !strpbrk(s, "\n\r");
}

/* ---- predicates of the rules: value is NULL where the path has none; "" counts as absent, too ---- */

static const char *text_of(const json_t *value) {
        return json_string_value(value) ?: "";
}

static const json_t *at(const json_t *spec, const char *a, const char *b, const char *c) {
        return json_object_get(json_object_get(json_object_get(spec, a), b), c);
}

static bool is_given(const char *s) {
        return *s;
}

static bool is_given_on_outposts(const json_t *value, const json_t *spec) {
        return *text_of(value) ||
               !json_is_true(json_object_get(json_object_get(spec, "cluster"), "enableOutpost"));
}

/* Allows tabs. is_on_one_line() reports a line end. */
static bool is_readable(const char *s) {
        return !is_on_one_line(s) || (!has_control(s, "\t") && utf8_is_for_systemd(s));
}

/* No text of spec.cluster can hold these characters. */
static bool is_filled_in(const char *s) {
        return !strpbrk(s, "$<") && !strstr(s, "{{");
}

static bool is_rendered(const char *s) {
        return !has_placeholder(s);
}

static bool is_image(const char *s) {
        size_t n = 0;
        while (s[n] > ' ' && s[n] <= '~')
                n++;
        return n > 0 && !s[n] && is_filled_in(s);
}

static bool is_base64(const char *s) {
        _free_ char *pem = NULL;
        size_t size = 0;
        return !*s || !is_filled_in(s) || (base64_decode(s, strlen(s), true, &pem, &size) >= 0 && size > 0);
}

static bool is_cidr(const char *s) {
        return !*s || !is_filled_in(s) || cidr_is_valid(s);
}

static bool is_host(const char *host, size_t size) {
        _free_ char *text = xstrndup(host, size);
        unsigned char address[16];
        if (size > 2 && text[0] == '[' && text[size - 1] == ']') {
                text[size - 1] = 0;
                return inet_pton(AF_INET6, text + 1, address) == 1;
        }
        return size > 0 && size <= 253 && text[0] != '.' && !strstr(text, "..") &&
                strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == size;
}

static bool is_port(const char *text) {
        uint64_t port;
        return strlen(text) <= 5 && parse_u64(text, &port) >= 0 && port > 0 && port < 65536;
}

static bool is_endpoint(const char *url) {
        size_t scheme = strncasecmp(url, "https://", 8) == 0 ? 8
                        : strncasecmp(url, "http://", 7) == 0 ? 7 : 0;
        const char *host = url + scheme;
        size_t all = strcspn(host, "/"), size = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/");
        if (!*url || !is_filled_in(url) || !is_plain_text(url))
                return true;
        if (scheme == 0 || size > all || !is_host(host, size))
                return false;
        _free_ char *port = size < all ? xstrndup(host + size + 1, all - size - 1) : xstrdup("443");
        return (size == all || host[size] == ':') && is_port(port) &&
               !strpbrk(host + all, " ?#\"'\\<>`{|}");
}

static bool is_mount_path(const char *s) {
        return !*s || mount_path_is_valid(s);
}

/* For names of files, and of variables in units (V8 of tests/userdata/README.md). */
static bool is_safe_name(const char *s) {
        return *s && !strpbrk(s, "/'\"") && !strstr(s, "..") && is_plain_text(s);
}

static bool is_one_word(const char *s) {
        return *s && !strpbrk(s, " ,;'\"\\") && !has_control(s, "");
}

/* IMEX takes names, too (kubernetes-sigs/dra-driver-nvidia-gpu#289), but not of digits and dots. */
static bool is_node(const char *s) {
        bool number = !s[strspn(s, "0123456789.")] || strchr(s, ':');
        return !is_one_word(s) || (!strchr(s, '/') && (!number || address_is_valid(s)));
}

/* An address in canonical form, a name in lower case. ret_self: each host reaches only itself by it. */
static char *node_canonical(const char *s, bool *ret_self) {
        struct in6_addr a = { .s6_addr = { [10] = 0xff, [11] = 0xff } };
        char text[INET6_ADDRSTRLEN];
        bool number = inet_pton(AF_INET, s, &a.s6_addr[12]) == 1 || inet_pton(AF_INET6, s, &a) == 1,
             four = number && IN6_IS_ADDR_V4MAPPED(&a);
        *ret_self = number ? IN6_IS_ADDR_LOOPBACK(&a) || IN6_IS_ADDR_UNSPECIFIED(&a) ||
                                     (four && (a.s6_addr[12] == 127 || a.s6_addr[12] == 0))
                           : strcasecmp(s, "localhost") == 0;
        char *name = xstrdup(number ? inet_ntop(AF_INET6, &a, text, sizeof text) : s);
        for (char *p = name; *p; p++)
                *p = (char)tolower((unsigned char)*p);
        return name;
}

static bool is_others_too(const char *s) {
        bool self;
        free(node_canonical(s, &self));
        return !self;
}

static bool names_each_node_once(const json_t *nodes, _unused_ const json_t *spec) {
        _cleanup_(json_decrefp) json_t *seen = json_object();
        json_t *node;
        bool once = true, self;
        size_t i;
        json_array_foreach(nodes, i, node) {
                _free_ char *name = node_canonical(text_of(node), &self);
                once = once && !json_object_get(seen, name);
                json_object_set_new(seen, name, json_true());
        }
        return once;
}

static bool is_address(const json_t *value, _unused_ const json_t *spec) {
        return !json_is_string(value) || kubelet_address_is_valid(text_of(value));
}

/* ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT, with %INTERFACE and #NAME after it (systemd
 * src/shared/socket-netlink.c: in_addr_port_ifindex_name_from_string_auto()). */
static bool is_server(char *word) {
        for (const char *mark = "#%"; *mark; mark++) {
                char *rest = strchr(word, *mark);
                if (rest && !rest[1])
                        return false;
                if (rest)
                        *rest = 0;
        }
        char *colon = strrchr(word, ':');
        if (address_is_valid(word))
                return true;
        if (!colon || !is_port(colon + 1))
                return false;
        *colon = 0;
        if (*word == '[' && colon[-1] == ']') {
                colon[-1] = 0;
                return strchr(word, ':') && address_is_valid(word + 1);
        }
        return !strchr(word, ':') && address_is_valid(word);
}

/* nodeadm writes all entries on one line, so a blank within one divides it. */
static bool is_servers(const char *s) {
        for (s += strspn(s, " \t"); *s && is_on_one_line(s);) {
                _free_ char *word = str_cut(&s, " \t");
                if (!is_server(word))
                        return false;
        }
        return true;
}

static bool is_page_size(const char *s) {
        uint64_t size;
        return parse_page_size(s, &size) >= 0 && size >= 64 << 10 && size <= 16ULL << 30;
}

static bool is_present(const json_t *value, _unused_ const json_t *spec) {
        return value != NULL;
}

static bool is_timespan(const char *s) {
        uint64_t usec;
        return !*s || (parse_timespan(s, &usec) >= 0 && usec > 0);
}

/* Long enough for CUDA to start, and at most what a person waits for. */
static bool is_test_time(const char *s) {
        uint64_t usec;
        return !*s ||
               (parse_timespan(s, &usec) >= 0 && usec >= 5 * USEC_PER_SEC && usec <= 3600 * USEC_PER_SEC);
}

/* "19,19,19": profiles as nvidia-smi takes them, by name or by number. */
static bool is_profile(const char *s, size_t n) {
        _free_ char *word = xstrndup(s, n);
        return n > 0 && n <= 32 && word[0] >= '0' && word[0] <= '9' &&
               strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789.+-") == n;
}

static bool is_mig(const char *s) {
        if (streq(s, "off"))
                return true;
        for (bool more = *s; more; more = *s == ',', s += more) {
                s += strspn(s, " ");
                size_t n = strcspn(s, ", ");
                if (!is_profile(s, n))
                        return false;
                s += n + strspn(s + n, " ");
        }
        return !*s;
}

/* A user who writes it hardly means the profile of that number. */
static bool is_not_zero(const char *s) {
        return !streq(s, "0");
}

static bool is_profile_name(const char *s) {
        return is_profile(s, strlen(s));
}

static bool is_not_empty(const json_t *map, _unused_ const json_t *spec) {
        return json_object_size(map) > 0;
}

static bool is_all(const char *s) {
        return !*s || streq(s, "all");
}

/* ---- combinations ---- */

static bool names_each_gpu_once(const json_t *mig, _unused_ const json_t *spec) {
        uint64_t seen = 0;
        size_t i, k, all = 0;
        json_t *entry, *index;
        json_array_foreach(mig, i, entry) {
                json_t *devices = json_object_get(entry, "devices");
                all += !json_is_array(devices) || json_array_size(devices) == 0;
                json_array_foreach(devices, k, index) {
                        json_int_t n = json_integer_value(index);
                        if (n < 0 || n > 63)
                                continue;       /* check_field() reports it */
                        if (seen & 1ULL << n)
                                return false;
                        seen |= 1ULL << n;
                }
        }
        return all == 0 || json_array_size(mig) <= 1;
}

static bool is_without_driver_memory(const json_t *mig, const json_t *spec) {
        bool wanted = json_is_array(mig) ? json_array_size(mig) > 0
                                         : *text_of(mig) && !streq(text_of(mig), "off");
        return !wanted || !streq(text_of(at(spec, "accelerator", "nvidia", "memoryMode")), "driver");
}

static bool is_with_efa(const json_t *direct, const json_t *spec) {
        const json_t *efa = at(spec, "instance", "network", "efa");
        return !streq(text_of(direct), "on") || !streq(text_of(json_object_get(efa, "mode")), "off");
}

static bool is_given_for_imex_host(const json_t *nodes, const json_t *spec) {
        return json_array_size(nodes) > 0 ||
                !streq(text_of(json_object_get(at(spec, "accelerator", "nvidia", "imex"), "mode")), "host");
}

static bool is_enough_for_channel0(const json_t *channels, const json_t *spec) {
        const json_t *imex = at(spec, "accelerator", "nvidia", "imex");
        return !json_is_integer(channels) || json_integer_value(channels) > 0 ||
               (!json_is_true(json_object_get(imex, "createChannel0")) &&
                !streq(text_of(json_object_get(imex, "mode")), "host"));
}

static bool is_given_for_explicit(const json_t *pages, const json_t *spec) {
        return json_array_size(pages) > 0 ||
               !streq(text_of(at(spec, "instance", "hugePages", "mode")), "explicit");
}

/* "2048Ki" is 2Mi; without a numaNode it is all nodes. */
static bool is_same_pool(const json_t *a, const json_t *b) {
        const json_t *x = json_object_get(a, "numaNode"), *y = json_object_get(b, "numaNode");
        uint64_t size[2];
        return parse_page_size(text_of(json_object_get(a, "size")), &size[0]) >= 0 &&
               parse_page_size(text_of(json_object_get(b, "size")), &size[1]) >= 0 && size[0] == size[1] &&
               (!x || !y || json_equal(x, y));
}

static bool names_each_pool_once(const json_t *pages, _unused_ const json_t *spec) {
        for (size_t i = 0; i < json_array_size(pages); i++)
                for (size_t k = 0; k < i; k++)
                        if (is_same_pool(json_array_get(pages, i), json_array_get(pages, k)))
                                return false;
        return true;
}

static bool is_enough_for_raid10(const json_t *disks, const json_t *spec) {
        json_int_t n = json_integer_value(disks);
        return storage_strategy_from_string(text_of(at(spec, "instance", "localStorage", "strategy"))) !=
                       STORAGE_RAID10 ||
               n < 1 || n > 3;
}

/* kubelet counts all huge pages as allocatable, and does not start if told to reserve some
 * (kubernetes/kubernetes pkg/kubelet/cm/memorymanager/memory_manager.go: validateReservedMemory). */
static bool is_without_huge_pages(const json_t *limits, _unused_ const json_t *spec) {
        const char *name;
        json_t *limit;
        json_object_foreach((json_t *)limits, name, limit) {
                if (startswith(name, "hugepages-") &&
                    !(json_is_integer(limit) && json_integer_value(limit) == 0) &&
                    !streq(text_of(limit), "0"))
                        return false;
        }
        return true;
}

static bool is_flag_without_huge_pages(const char *flag) {
        return !startswith(flag, "--reserved-memory") || !strstr(flag, "hugepages-");
}

/* ---- the rules; "*" is any key, "[]" any item; a TEXT after "{}" is each name of a map ---- */

#define LINE_END "contains a line break: the rest would be another setting"
#define CONTROL "contains a line break, a control character, or a Unicode noncharacter such as U+FFFE"
#define NOT_FOR_SYSTEMD \
        "contains a Unicode noncharacter such as U+FFFE; remove it: systemd ignores a file with one"
#define HUGE_PAGES "reserves huge pages, and kubelet does not start with these in its reserved memory"
#define UNSAFE_NAME \
        "name is empty, or contains a slash, \"..\", a quote, a control character or a noncharacter"

typedef struct Rule {
        bool (*holds)(const json_t *value, const json_t *spec);
        const char *message;
        bool (*text)(const char *s);            /* instead of holds, for a text */
} Rule;
/* Can another document still satisfy it? */
static bool is_of_the_whole(const Rule *rule) {
        return rule->text == is_given || rule->holds == is_given_on_outposts ||
               rule->holds == is_given_for_explicit || rule->holds == is_given_for_imex_host;
}

/* rest: what is left of the rule path. A missing key gives NULL, which the rule may refuse. */
static void walk_rule(Validator *v, const Rule *rule, const char *rest, const json_t *value,
                      const Path *path) {
        const char *key;
        json_t *member;
        size_t i;
        if (!*rest || *rest == '{') {
                bool holds = *rest || (rule->text ? rule->text(text_of(value)) : rule->holds(value, v->spec));
                json_object_foreach((json_t *)value, key, member)
                        holds = holds && (!*rest || rule->text(key));
                if (!holds)
                        report(v, path, "%s", rule->message);
                return;
        }
        if (startswith(rest, "[]")) {
                json_array_foreach(value, i, member)
                        walk_rule(v, rule, rest + 2, member, &(Path){ path, NULL, i });
                return;
        }
        rest += *rest == '.';
        size_t n = strcspn(rest, ".[{");
        _free_ char *name = xstrndup(rest, n);
        if (streq(name, "*")) {
                json_object_foreach((json_t *)value, key, member) {
                        walk_rule(v, rule, rest + n, member, &(Path){ path, key, 0 });
                }
        } else
                walk_rule(v, rule, rest + n, json_object_get(value, name), &(Path){ path, name, 0 });
}

static void check(Validator *v, const char *path, bool (*holds)(const json_t *value, const json_t *spec),
                  bool (*text)(const char *s), const char *message) {
        const Rule rule = { holds, message, text };
        if (!v->merge->partial || !is_of_the_whole(&rule))
                walk_rule(v, &rule, path, v->merge->document, NULL);
}

/* Calls, since each start would relocate the pointers of a table. */
#define TEXT(path, is, message)     check(v, path, NULL, is, message)
#define VALUE(path, holds, message) check(v, path, holds, NULL, message)
static void check_rules(Validator *v) {
        TEXT("spec.cluster.name", is_given, "is missing: the name of the EKS cluster that this node joins");
        TEXT("spec.cluster.apiServerEndpoint", is_given, "is missing: the https URL of the API server");
        TEXT("spec.cluster.certificateAuthority", is_given,
             "is missing: write the CA certificate of the cluster, as base64-encoded PEM");
        TEXT("spec.cluster.cidr", is_given,
             "is missing: the service range of the cluster, such as 10.100.0.0/16");
        VALUE("spec.cluster.id", is_given_on_outposts, "is missing: enableOutpost: true needs it");
        TEXT("spec.cluster.*", is_filled_in, "is" AN_OPEN_PLACEHOLDER);
        TEXT("spec.cluster.name", is_plain_text, CONTROL);
        TEXT("spec.cluster.apiServerEndpoint", is_plain_text, CONTROL);
        TEXT("spec.cluster.apiServerEndpoint", is_endpoint,
             "must be an https:// URL with a host; a port and a path may follow");
        TEXT("spec.cluster.certificateAuthority", is_base64,
             "must be padded base64 and not empty: take it from aws eks describe-cluster");
        TEXT("spec.cluster.certificateAuthority", authority_is_encoded_once,
             "is a certificate that is base64-encoded twice: copy it unchanged from aws eks "
             "describe-cluster");
        TEXT("spec.cluster.certificateAuthority", authority_is_public,
             "is a private key instead of a certificate: take it from aws eks describe-cluster");
        TEXT("spec.cluster.cidr", is_cidr,
             "must be an IPv4 or IPv6 address and a prefix length, such as 10.100.0.0/16");
        TEXT("spec.cluster.id", is_plain_text, CONTROL);
        TEXT("spec.kubelet.flags[]", is_on_one_line, LINE_END);
        TEXT("spec.kubelet.flags[]", utf8_is_for_systemd, NOT_FOR_SYSTEMD);
        TEXT("spec.kubelet.flags[]", is_rendered, PLACEHOLDER);
        TEXT("spec.kubelet.flags[]", is_flag_without_huge_pages, HUGE_PAGES);
        /* One level alone: kubelet.c checks the quantities below it, and another server reads
         * staticPodURLHeader. baseRuntimeSpec has no row: a hook or an argument may be shell text. */
        TEXT("spec.kubelet.config.*", is_rendered, PLACEHOLDER);
        TEXT("spec.kubelet.config.*[]", is_rendered, PLACEHOLDER);
        VALUE("spec.kubelet.config.clusterDNS[]", is_address,
              "is not an address (write one like 10.100.0.10), so kubelet ignores it and pods cannot resolve "
              "the names of services");
        VALUE("spec.kubelet.config.reservedMemory[].limits", is_without_huge_pages, HUGE_PAGES);
        TEXT("spec.containerd.prePull[]", is_image,
             "is not the name of an image, such as public.ecr.aws/docker/library/busybox:1.36");
        TEXT("spec.instance.localStorage.mountPath", is_mount_path,
             "must be absolute, without \"..\" or control characters, and outside system directories");
        VALUE("spec.instance.localStorage.expectedDisks", is_enough_for_raid10,
              "RAID10 needs at least four disks");
        TEXT("spec.instance.environment{}", is_safe_name, "a service " UNSAFE_NAME);
        TEXT("spec.instance.environment.*{}", is_safe_name, "a variable " UNSAFE_NAME);
        TEXT("spec.instance.environment.*.*", is_on_one_line, LINE_END);
        TEXT("spec.instance.environment.*.*", utf8_is_for_systemd, NOT_FOR_SYSTEMD);
        TEXT("spec.instance.environment.*.*", is_rendered, PLACEHOLDER);
        TEXT("spec.instance.network.nameservers[]", is_on_one_line, LINE_END);
        TEXT("spec.instance.network.nameservers[]", is_servers,
             "is not the address of a name server, such as 10.0.0.2: systemd-resolved would ignore it");
        TEXT("spec.instance.network.domains[]", is_on_one_line, LINE_END);
        TEXT("spec.instance.network.domains[]", is_readable,
             "contains a control character or a Unicode noncharacter: systemd-resolved would ignore it");
        TEXT("spec.instance.network.domains[]", is_rendered, PLACEHOLDER);
        TEXT("spec.instance.sysctl{}", sysctl_name_is_valid,
             "contains a name that is not a kernel setting; write, for example, vm.max_map_count");
        TEXT("spec.instance.sysctl.*", is_on_one_line, LINE_END);
        TEXT("spec.instance.sysctl.*", is_rendered, PLACEHOLDER);
        VALUE("spec.instance.hugePages.pages", is_given_for_explicit,
              "is missing or empty: mode explicit needs at least one {size, count}");
        VALUE("spec.instance.hugePages.pages", names_each_pool_once,
              "sets one size twice: set it once for all NUMA nodes, or once for each");
        TEXT("spec.instance.hugePages.pages[].size", is_page_size,
             "must be a power of two with a unit, from 64Ki to 16Gi, such as 2Mi");
        VALUE("spec.instance.hugePages.pages[].count", is_present, "is missing: the number of pages");
        TEXT("spec.accelerator.nvidia.fabric.timeout", is_timespan,
             "must be a time span above zero, such as 90s or 5m");
        TEXT("spec.accelerator.nvidia.proveTimeout", is_test_time,
             "must be a time span from 5s to 1h, such as 90s");
        VALUE("spec.accelerator.nvidia.imex.nodes", is_given_for_imex_host,
              "is missing or empty: mode host needs the addresses of all nodes of the domain");
        VALUE("spec.accelerator.nvidia.imex.nodes", names_each_node_once,
              "names a node twice: IMEX would wait for more nodes than there are");
        TEXT("spec.accelerator.nvidia.imex.nodes[]", is_one_word, "must be one address");
        TEXT("spec.accelerator.nvidia.imex.nodes[]", is_others_too,
             "is an address by which a node reaches only itself: use one that other nodes reach");
        TEXT("spec.accelerator.nvidia.imex.nodes[]", is_node,
             "is not an address for IMEX: write an IPv4 or IPv6 address without a prefix length, or a host "
             "name");
        VALUE("spec.accelerator.nvidia.imex.channels", is_enough_for_channel0,
              "is 0, but createChannel0 and mode host need channel 0");
        TEXT("spec.accelerator.nvidia.mig", is_mig,
             "must be off, a list of {devices, profiles}, or profiles separated by commas, such as "
             "1g.5gb,1g.5gb or 19,19");
        TEXT("spec.accelerator.nvidia.mig", is_not_zero,
             "is 0, which is ambiguous: write \"off\" to turn MIG off, or a profile, such as 7g.40gb");
        VALUE("spec.accelerator.nvidia.mig", names_each_gpu_once, "configures a GPU twice");
        VALUE("spec.accelerator.nvidia.mig", is_without_driver_memory,
              "contradicts memoryMode: driver (CDMM), which excludes MIG: set memoryMode: numa");
        VALUE("spec.accelerator.nvidia.gpuDirect", is_with_efa,
              "is on, which contradicts spec.instance.network.efa.mode off");
        TEXT("spec.accelerator.nvidia.mig[].devices", is_all, "must be all, or a list of indexes");
        VALUE("spec.accelerator.nvidia.mig[].profiles", is_not_empty,
              "is missing or empty: name a profile, such as 1g.5gb");
        TEXT("spec.accelerator.nvidia.mig[].profiles{}", is_profile_name,
             "must name a profile, such as 1g.5gb");
}

/* The key or text with a placeholder, or NULL. Passwords and headers may hold any bytes. */
static const char *toml_placeholder(const json_t *value) {
        static const char *const opaque[] = { "auth", "headers", "identitytoken", "password", NULL };
        const char *key, *found = has_placeholder(text_of(value)) ? text_of(value) : NULL;
        json_t *member;
        size_t i;
        json_array_foreach(value, i, member)
                found = found ?: toml_placeholder(member);
        json_object_foreach((json_t *)value, key, member)
                if (!found)
                        found = has_placeholder(key) ? key
                                : strv_contains((char *const *)opaque, key) ? NULL : toml_placeholder(member);
        return found;
}

/* Names the very line where the TOML is a literal block ("config: |"). */
static void check_toml(Validator *v) {
        const char *open = toml_placeholder(v->merge->toml), *text = text_of(merge_find(v->merge, TOML_PATH)),
                   *place = open ? strstr(text, open) : NULL;
        unsigned line = place ? 1 : 0;
        for (const char *p = text; place && p < place; p++)
                line += *p == '\n';
        const Position at = origins_toml(&v->merge->origins, line);
        v->broken |= open != NULL;
        if (open)
                diag_error_at(v->diag, -EINVAL, CAUSE_INVALID, &at, TOML_PATH, "%s", PLACEHOLDER);
}

static void check_enum(Validator *v, const Field *f, const json_t *value, const Path *path) {
        const char *text = text_of(value);
        _free_ char *is = text_quote(text, json_string_length(value)), *list = field_enum_list(f);
        if (field_enum_index(f, text) < 0 && (*text || !*f->key))
                report(v, path, "%s is not one of %s", is, list);
}

static void check_field(Validator *v, const Field *f, const json_t *value, const Path *path) {
        json_int_t n = json_integer_value(value);
        const char *key;
        json_t *member;
        size_t i;
        if (f->type == FIELD_MAP || f->type == FIELD_DICT)
                json_object_foreach((json_t *)value, key, member) {
                        const Field *known = f->type == FIELD_MAP ? fields_find(f->fields, key) : f->fields;
                        if (known)
                                check_field(v, known, member, &(Path){ path, key, 0 });
                }
        else if (f->type == FIELD_LIST)
                json_array_foreach(value, i, member) {
                        check_field(v, f->fields, member, &(Path){ path, NULL, i });
                }
        else if (f->type == FIELD_ENUM)
                check_enum(v, f, value, path);
        else if (f->type == FIELD_INTEGER && (n < f->min || n > f->max))
                report(v, path, "must be from %lld to %lld", (long long)f->min, (long long)f->max);
}

int config_validate(const Merge *m, Diag *diag) {
        const Field whole = { .type = FIELD_MAP, .fields = nodeconfig_fields };
        Validator v = { .merge = m, .spec = json_object_get(m->document, "spec"), .diag = diag };
        check_rules(&v);
        check_toml(&v);
        check_field(&v, &whole, m->document, NULL);
        v.broken = !sysctl_validate(m, diag) || v.broken;
        v.broken = !volumes_validate(m, diag) || v.broken;
        v.broken = !kubelet_validate(m, diag) || v.broken;
        v.broken = !containerd_validate(m, diag) || v.broken;
        return v.broken ? -EINVAL : 0;
}
