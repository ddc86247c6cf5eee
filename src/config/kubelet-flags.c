/* SPDX-License-Identifier: Apache-2.0
 * spec.kubelet.flags as kubelet reads them. nodeadm joins them with blanks, and systemd splits and unquotes
 * the line. So users write several flags into one element, a flag and its value apart, and values in quotes
 * (Karpenter: --node-labels="a=b"): all three keep their meaning. A flag that no kubelet can read is an
 * error; where the version or another flag decides it is a warning. */
#include "base/str.h"
#include "config/fields.h"

#include <ctype.h>
#include <errno.h>

#define CONFIG "spec.kubelet.config"
#define FLAGS  "spec.kubelet.flags"
#define BLANKS " \t\r\n"

/* ---- words ---- */

/* Takes the quotes from --name="value" and from "word"; a quote anywhere else is data. */
static void unquote(char *word) {
        char *equals = *word == '-' ? strchr(word, '=') : NULL, *value = equals ? equals + 1 : word;
        size_t n = strlen(value);
        if (n >= 2 && (*value == '"' || *value == '\'') && strchr(value + 1, *value) == value + n - 1) {
                memmove(value, value + 1, n - 2);
                value[n - 2] = 0;
        }
}

/* A blank ends the word before it where a flag follows, or where the word is a flag without a value. */
static bool is_end(const char *word, size_t size, const char *next) {
        return *next == 0 || (*next == '-' && (next[1] == '-' || isalpha((unsigned char)next[1]))) ||
               (size > 0 && *word == '-' && !memchr(word, '=', size));
}

/* Quotes hide blanks, if they are closed. */
static size_t word_length(const char *s) {
        size_t i = 0;
        while (s[i]) {
                const char *close = s[i] == '"' || s[i] == '\'' ? strchr(s + i + 1, s[i]) : NULL;
                size_t blanks = strspn(s + i, BLANKS);
                if (blanks > 0 && is_end(s, i, s + i + blanks))
                        return i;
                i = close ? (size_t)(close - s) + 1 : i + MAX(blanks, (size_t)1);
        }
        return i;
}

char **kubelet_words(char *const *flags) {
        char **words = NULL;
        size_t n_words = 0;
        STRV_FOREACH(f, flags)
                for (const char *s = *f + strspn(*f, BLANKS); *s; s += strspn(s, BLANKS)) {
                        size_t n = word_length(s);
                        char *word = xstrndup(s, n);
                        unquote(word);
                        strv_push_at(&words, n_words++, word);
                        s += n;
                }
        return words;
}

/* ---- messages ---- */

/* Two readings: certain finds the errors, the other one warns. */
typedef struct Reading { const Merge *merge; Diag *diag; bool certain, found; } Reading;

/* False where it belongs to the other reading. */
_printf_(4, 5)
static bool reading_report(Reading *r, bool certain, const char *path, const char *format, ...) {
        const Position *at = origins_find(&r->merge->origins, path);
        _free_ char *text = FORMATTED(format);
        if (certain != r->certain)
                return false;
        r->found = true;
        if (certain)
                diag_error_at(r->diag, -EINVAL, CAUSE_INVALID, at, path, "%s", text);
        else
                diag_warn_at(r->diag, "kubelet-flag", at, path, "%s", text);
        return true;
}

/* Flags that nodestrap sets itself: those of the user follow them, and kubelet takes the last one. */
static const char *overridden(const char *name) {
        static const struct { const char *flag, *what; } ours[] = {
                { "bootstrap-kubeconfig", "how kubelet reaches the API server" },
                { "cloud-provider", "the external cloud provider" },
                { "config", "the file with all kubelet settings of nodestrap" },
                { "config-dir", "the directory with spec.kubelet.config" },
                { "hostname-override", "the name of the node, by which the cluster admits it" },
                { "image-credential-provider-bin-dir", "where the program for the ECR login is" },
                { "image-credential-provider-config", "which program does the ECR login" },
                { "kubeconfig", "how kubelet reaches the API server" },
                { "node-ip", "the address of the node, in the IP family of the services" },
                { "provider-id", "which instance the node is" },
                { "runtime-cgroups", "the cgroup of containerd, for its metrics" },
        };
        return PICK(o, ours, ARRAY_SIZE(ours), streq(o->flag, name), o->what, NULL);
}

/* ---- values ---- */

/* Flags without a key that are not texts (kubelet --help). */
static const struct { char flag[38], type; } typed_flags[] = {
        { "application-metrics-count-limit",       'i' },
        { "enable-load-reader",                    'b' },
        { "exit-on-lock-contention",               'b' },
        { "global-housekeeping-interval",          'd' },
        { "housekeeping-interval",                 'd' },
        { "log-cadvisor-usage",                    'b' },
        { "log-flush-frequency",                   'd' },
        { "log-json-split-stream",                 'b' },
        { "log-text-split-stream",                 'b' },
        { "maximum-dead-containers",               'i' },
        { "maximum-dead-containers-per-container", 'i' },
        { "minimum-container-ttl-duration",        'd' },
        { "storage-driver-buffer-duration",        'd' },
        { "storage-driver-secure",                 'b' },
};

/* The setting that a flag sets, for its type; false where the table has none. */
static bool flag_setting(const KubeletFlag *f, KubeletSetting *ret) {
        *ret = (KubeletSetting){ .type = 'i', .name = f->name, .limits = "0:" };
        for (size_t i = 0; i < ARRAY_SIZE(typed_flags); i++)
                if (streq(f->name, typed_flags[i].flag)) {
                        ret->type = typed_flags[i].type;
                        ret->limits = "";
                        return true;
                }
        return streq(f->name, "v") || (*f->key && kubelet_setting_find(f->key, ret));
}

static bool is_past_64_bits(const char *text) {
        char *end;
        errno = 0;
        (void)strtoll(text, &end, 0);
        return errno == ERANGE && !*end;
}

/* As strconv of Go reads it for pkg.go.dev/github.com/spf13/pflag, 0x included; NULL where it does not. */
static json_t *flag_json(char type, const char *text, int base) {
        char *end;
        errno = 0;
        long long n = strtoll(text, &end, base);
        int on = parse_bool(text);
        if (type == 'i')
                return *text && !*end && errno == 0 && !isspace((unsigned char)*text) ? json_integer(n)
                                                                                      : NULL;
        if (type == 'b')
                return on < 0 ? NULL : json_boolean(on);
        return strchr("dsz", type) ? json_string(text) : NULL;
}

/* ---- flags over settings ---- */

/* Flags that shape the Node without a key of the configuration file, and our names for them. */
static const struct { const char *flag, *name; char type; } unkeyed[] = {
        { "experimental-allocatable-ignore-eviction", "ignoreEviction", 'b' },
        { "hostname-override", "hostnameOverride", 's' },
        { "node-labels", "nodeLabels", 'm' },
        { "root-dir", "rootDirectory", 's' },
};

static bool word_setting(const char *word, KubeletSetting *ret) {
        KubeletFlag f;
        if (!kubelet_flag_find(word, &f))
                return false;
        __auto_type own = FIND(u, unkeyed, ARRAY_SIZE(unkeyed), streq(u->flag, f.name));
        if (own)
                *ret = (KubeletSetting){ .type = own->type, .name = own->name, .limits = "" };
        return own || (*f.key && kubelet_setting_find(f.key, ret));
}

/* "a=b,c=d" (component-base cli/flag/map_string_string.go) */
static void add_pairs(json_t *map, const char *text, char between, bool switches) {
        while (*text) {
                _free_ char *pair = str_cut(&text, ",");
                bool any = *pair;
                char *at = strchr(pair, between);
                if (at)
                        *at++ = 0;
                _free_ char *key = str_strip(pair), *value = str_strip(at ?: "");
                json_t *yes = switches ? flag_json('b', value, 0) : NULL;
                if (any)
                        json_object_set_new(map, key, yes ?: json_string(value));
        }
}

/* "0:memory=1Gi,hugepages-2Mi=2Gi;1:memory=1Gi" (kubernetes/kubernetes:pkg/util/flag/flags.go) */
static void add_reservations(json_t *list, const char *text) {
        while (*text) {
                _free_ char *entry = str_cut(&text, ";");
                char *limits = strchr(entry, ':');
                uint64_t node = 0;
                if (limits)
                        *limits++ = 0;
                json_t *map = json_object();
                add_pairs(map, limits ?: "", '=', false);
                if (limits && parse_u64(entry, &node) >= 0)
                        json_array_append_new(list, json_pack("{s:I, s:O}", "numaNode", (json_int_t)node,
                                                              "limits", map));
                json_decref(map);
        }
}

static void add_words(json_t *list, const char *text) {
        for (const char *s = text; *s; s += strcspn(s, ","), s += *s == ',')
                json_array_append_new(list, json_stringn(s, strcspn(s, ",")));
}

/* first: the flag replaces the value of the files. Gates always add to those of the files
 * (kubernetes/kubernetes:cmd/kubelet/app/server.go:kubeletConfigFlagPrecedence). */
static void merge_flag(json_t *settings, const KubeletSetting *s, const char *text, bool first) {
        bool map = strchr("mqeg", s->type), list = strchr("la", s->type);
        _free_ char *path = xstrdup(s->name);
        for (char *p = path; *p; p++)
                *p = *p == '.' ? '/' : *p;
        if (s->type == 'o')             /* its text is not JSON */
                json_object_del(settings, s->name);
        else if (!map && !list)
                json_put(settings, path, flag_json(s->type, text, 0) ?: json_string(text));
        if (!map && !list)
                return;
        json_t *old = json_object_get(settings, s->name);
        if ((first && s->type != 'g') || !(map ? json_is_object(old) : json_is_array(old)))
                json_object_set_new(settings, s->name, old = map ? json_object() : json_array());
        if (map)
                add_pairs(old, text, s->type == 'e' ? '<' : '=', s->type == 'g');
        else if (s->type == 'l')
                add_words(old, text);
        else if (streq(s->name, "reservedMemory"))
                add_reservations(old, text);
}

void kubelet_flags_merge(json_t *settings, char *const *words) {
        _strv_ char **given = NULL;
        KubeletSetting s;
        STRV_FOREACH(w, words) {
                const char *equals = strchr(*w, '='), *text = equals ? equals + 1 : NULL;
                bool known = word_setting(*w, &s);
                if (!equals && startswith(*w, "-v"))
                        text = (*w)[2] && (*w)[2] != '=' ? *w + 2 : NULL;
                if (!known)
                        continue;
                if (!text && s.type == 'b')
                        text = "true";
                if (!text && !(text = *++w))
                        return;
                merge_flag(settings, &s, text, !strv_contains(given, s.name));
                strv_push(&given, xstrdup(s.name));
        }
}

static bool is_label_word(const char *s, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (!isalnum((unsigned char)s[i]) && (i == 0 || i == n - 1 || !strchr("-_.", s[i])))
                        return false;
        return n > 0 && n <= 63;
}

bool kubelet_label_is_valid(const char *key, const char *value) {
        const char *slash = strchr(key, '/'), *name = slash ? slash + 1 : key;
        for (const char *s = key; slash && s < slash; s++)      /* a DNS name */
                if (!islower((unsigned char)*s) && !is_digit(*s) &&
                    (s == key || s + 1 == slash || !strchr("-.", *s)))
                        return false;
        return slash != key && is_label_word(name, strlen(name)) &&
               (!*value || is_label_word(value, strlen(value)));
}

static bool in_domain(const char *name, size_t n, const char *domain) {
        size_t length = strlen(domain);
        return n >= length && strncmp(name + n - length, domain, length) == 0 &&
               (n == length || name[n - length - 1] == '.');
}

/* k8s.io/kubelet pkg/apis/well_known_labels.go */
static bool is_kept_from_kubelet(const char *key, size_t prefix) {
        if (ONE_OF(key, "beta.kubernetes.io/arch", "beta.kubernetes.io/instance-type",
                   "beta.kubernetes.io/os", "failure-domain.beta.kubernetes.io/region",
                   "failure-domain.beta.kubernetes.io/zone", "kubernetes.io/arch", "kubernetes.io/hostname",
                   "kubernetes.io/os", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"))
                return false;
        return (in_domain(key, prefix, "kubernetes.io") || in_domain(key, prefix, "k8s.io")) &&
               !in_domain(key, prefix, "node.kubernetes.io") &&
               !in_domain(key, prefix, "kubelet.kubernetes.io");
}

/* "key=value", "key=" or "key" */
static const char *label_fault(const char *label) {
        const char *equals = strchrnul(label, '=');
        _free_ char *raw = xstrndup(label, (size_t)(equals - label)), *key = str_strip(raw),
                    *value = str_strip(*equals ? equals + 1 : equals);
        const char *slash = strchr(key, '/');
        if (slash && is_kept_from_kubelet(key, (size_t)(slash - key)))
                return "names a label of kubernetes.io or k8s.io that a node must not set (use another "
                       "prefix, or kubectl label)";
        return !kubelet_label_is_valid(key, value)
                       ? "contains an invalid label (key and value each take up to 63 letters, digits, "
                         "- _ and .; the key may have a prefix, as in example.com/key)"
                       : NULL;
}

/* "key=value:effect" or "key:effect"; "key:effect-" removes one */
static const char *taint_fault(const char *taint) {
        const char *colon = strchr(taint, ':'), *effect = colon ? colon + 1 : "";
        _free_ char *word = xstrndup(taint, strcspn(taint, ":"));
        char *value = strchr(word, '=');
        if (value)
                *value++ = 0;
        if (colon && !endswith(taint, "-") && !kubelet_label_is_valid(word, value ?: ""))
                return "contains an invalid taint (write it like nvidia.com/gpu=present:NoSchedule)";
        return endswith(taint, "-") || ONE_OF(effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
                       ? NULL
                       : "contains a taint without a valid effect: use NoSchedule, PreferNoSchedule or "
                         "NoExecute";
}

/* "name=true" (k8s.io/component-base cli/flag/map_string_bool.go:Set) */
static const char *gate_fault(const char *gate) {
        _free_ char *value = str_strip(strchr(gate, '=') ?: gate);
        return *value == '=' && parse_bool(value + 1 + strspn(value + 1, BLANKS)) >= 0
                       ? NULL : "must set feature gates to true or false, such as A=true,B=false";
}

static const char *dns_fault(const char *address) {
        return kubelet_address_is_valid(address) ? NULL : "contains an item that is not an address";
}

/* k8s.io/component-base:logs/api/v1/pflags.go */
static const char *verbosity_fault(const char *item) {
        const char *level = strchr(item, '=');
        uint64_t n;
        bool known = level && level > item && parse_u64(level + 1, &n) >= 0 && n <= INT32_MAX;
        return known ? NULL : "must be FILE=NUMBER, such as kubelet=4";
}

/* cmd/kubelet/app/server.go, by k8s.io/component-helpers node/util/ips.go, which ignores other texts. */
static const char *node_ip_fault(const char *list) {
        size_t four = 0, six = 0;
        while (*list) {
                _free_ char *raw = str_cut(&list, ","), *address = str_strip(raw);
                bool valid = address_is_valid(address);
                six += valid && strchr(address, ':');
                four += valid && !strchr(address, ':');
        }
        return four > 1 || six > 1 ? "must be one address, or one of each family" : NULL;
}

/* "0:memory=1Gi,hugepages-2Mi=4Mi;1:memory=1Gi" (pkg/util/flag/flags.go: ReservedMemoryVar). */
static const char *reserved_memory_fault(const char *list) {
        while (*list) {
                _free_ char *node = str_cut(&list, ";");
                const char *limits = strchr(node, ':'), *rest = limits ? limits + 1 : "";
                bool good = node[strspn(node, "0123456789")] == ':' && *node != ':' && *rest;
                while (good && *rest) {
                        _free_ char *limit = str_cut(&rest, ",");
                        const char *equals = strchr(limit, '=');
                        good = equals && equals > limit && equals[1];
                }
                if (!good)
                        return "must look like 0:memory=1Gi, with a semicolon before each further NUMA node";
        }
        return NULL;
}

static const char *list_fault(const char *list, const char *(*fault)(const char *)) {
        const char *found = NULL;
        while (*list && !found) {
                _free_ char *raw = str_cut(&list, ","), *item = str_strip(raw);
                found = *raw ? fault(item) : NULL;
        }
        return found;
}

/* Why kubelet refuses the value, or NULL; room holds a formatted text. Certain where kubelet already fails to
 * read the flag, which no later flag mends, and for labels (kubernetes/kubernetes
 * cmd/kubelet/app/options/options.go:ValidateKubeletFlags). */
static const char *flag_fault(const KubeletFlag *f, const char *value, Text *room, bool *ret_certain) {
        KubeletSetting s;
        *ret_certain = true;
        if (streq(f->name, "node-labels"))
                return list_fault(value, label_fault);
        if (streq(f->name, "register-with-taints"))
                return list_fault(value, taint_fault);
        if (streq(f->name, "feature-gates"))
                return list_fault(value, gate_fault);
        if (streq(f->name, "cluster-dns"))
                return list_fault(value, dns_fault);
        if (streq(f->name, "vmodule"))
                return list_fault(value, verbosity_fault);
        if (streq(f->name, "node-ip"))
                return node_ip_fault(value);
        if (streq(f->name, "reserved-memory"))
                return reserved_memory_fault(value);
        if (streq(f->name, "root-dir"))
                return *value == '/' ? NULL : "must be an absolute path";
        if (streq(f->name, "cloud-provider"))
                return !*value || streq(value, "external")
                               ? NULL : "must be external: kubelet has no other cloud provider";
        if (streq(f->name, "address") || streq(f->name, "healthz-bind-address"))
                return !*value || kubelet_address_is_valid(value) ? NULL : "must be an IP address";
        if (streq(f->name, "client-ca-file") && *value && *value != '/')
                return "must be an absolute path";
        if (!flag_setting(f, &s) || !strchr("bidsz", s.type))
                return NULL;
        double duration = 1;
        if (streq(f->name, "log-flush-frequency") && kubelet_parse_duration(value, &duration) &&
            duration <= 0)
                return "must be a duration above 0";
        /* empty means the default in the file, but not on the command line */
        if (s.type == 's' && !*value && *s.limits && !streq(f->name, "tls-min-version"))
                return "must not be empty: give it a valid value, or remove it";
        json_t *json = flag_json(s.type, value, streq(f->name, "v") ? 10 : 0);
        /* 0 means the default in the file, but not on the command line */
        bool zero_port = streq(f->name, "port") && json_is_integer(json) && json_integer_value(json) == 0;
        const char *fault = zero_port                ? "must be from 1 to 65535"
                            : json                   ? kubelet_value_fault(&s, json, room)
                            : s.type == 'b'          ? "must be true or false"
                            : is_past_64_bits(value) ? "must fit into 64 bits"
                                                     : "must be a whole number";
        double unused;
        /* Go reads numbers that flag_json() does not, such as 1_000 and 0b1 */
        *ret_certain = zero_port ? true
                       : json    ? s.type == 'd' && !kubelet_parse_duration(value, &unused)
                                 : s.type == 'b' || !is_digit(value[*value == '-' || *value == '+']) ||
                                           is_past_64_bits(value);
        json_decref(json);
        return fault;
}

/* pflag reads each letter after one dash as a flag, and knows only v and h (help). */
static bool is_one_dash(const char *word) {
        const char *name = word + 1;
        size_t n = strcspn(name, "=");
        return word[0] == '-' && isalpha((unsigned char)*name) && n > 1 &&
               !(*name == 'v' && 1 + strspn(name + 1, "0123456789") == n);
}

static void check_dash(Reading *r, const char *word, const char *path) {
        _free_ char *flag = xasprintf("-%s", word), *name = kubelet_flag_name(flag);
        if (reading_report(r, true, path, "begins with one dash: kubelet reads each letter as a flag, "
                                          "knows only v and h, and exits; begin the flag with --"))
                diag_suggest_name(r->diag, "--", kubelet_flag_nearest(name));
}

static void warn_of_flag(const Merge *m, const char *flag, const char *path, Diag *diag) {
        const Position *at = origins_find(&m->origins, path);
        _free_ char *name = kubelet_flag_name(flag);
        KubeletFlag f;
        if (!name || !*name)
                return;
        if (!kubelet_flag_find(flag, &f)) {
                _free_ char *shown = text_quote(name, strlen(name));
                diag_warn_at(diag, "kubelet-flag", at, path,
                             "%s is not a flag of kubelet 1.%d to 1.%d: kubelet exits on an unknown flag, "
                             "and plan --kubelet-version refuses it",
                             shown, KUBELET_TABLES_FROM, KUBELET_TABLES_TO);
                diag_suggest_name(diag, "--", kubelet_flag_nearest(name));
                return;
        }
        _free_ char *setting = xasprintf(CONFIG ".%s", f.key);
        if (overridden(f.name))
                diag_warn_at(diag, "kubelet-flag", at, path, "--%s replaces a flag of nodestrap: %s", f.name,
                             overridden(f.name));
        if (*f.key && merge_find(m, setting))
                diag_warn_at(diag, "flag-and-config", at, path,
                             "--%s and %s set the same thing; kubelet uses the flag", f.name, setting);
        else if (f.until)
                diag_warn_at(diag, "kubelet-flag", at, path,
                             "kubelet 1.%u or newer exits: it does not know --%s", f.until, f.name);
        else if (f.deprecated) {
                diag_warn_at(diag, "deprecated-flag", at, path, "kubelet deprecates --%s", f.name);
                if (*f.key)
                        diag_instead(diag, "%s", setting);
        }
}

/* ---- one after another ---- */

/* The words of all elements, and the element of each. */
typedef struct Words { char **text; size_t *element, n; } Words;

static void words_done(Words *w) {
        strv_free(w->text);
        free(w->element);
}

static void words_add(Words *w, const char *text, size_t element) {
        _strv_ char **more = kubelet_words((char *[]){ (char *)text, NULL });
        strv_extend(&w->text, more);
        STRV_FOREACH(word, more)
                *APPEND(w->element, w->n) = element;
}

/* A number in the list is only a warning, as nodeadm takes it (T1 of tests/userdata/README.md). */
static void check_word(Reading *r, const char *word, const char *path) {
        _free_ char *flag = xasprintf("--%s", word);
        bool certain = !r->merge->partial && word[strspn(word, "0123456789.")];
        KubeletFlag f;
        if (reading_report(r, certain, path, "is neither a flag, which begins with --, nor the value of one, "
                                           "so kubelet would exit; remove it") && kubelet_flag_find(flag, &f))
                diag_suggest(r->diag, "--%s", f.name);
}

/* How many words the flag and its value take: the value may be the next word. */
static size_t check_value(Reading *r, const char *word, const char *next, const char *path) {
        const char *equals = strchr(word, '='), *value = equals ? equals + 1 : NULL, *fault = NULL;
        bool apart = false, typed, certain = false;
        _cleanup_(text_done) Text room = {};
        KubeletFlag f;
        KubeletSetting s;
        if (!equals && startswith(word, "-v"))
                value = word[2] ? word + 2 : NULL;
        if (!kubelet_flag_find(word, &f))
                return !equals && next && *next != '-' ? 2 : 1;
        typed = flag_setting(&f, &s);
        if (!value && !(typed && s.type == 'b')) {
                apart = next && (*next != '-' || (typed && !startswith(next, "--")));
                value = apart ? next : NULL;
                fault = !apart && (typed || streq(f.name, "node-labels")) ? "has no value" : NULL;
                /* no word follows those of a whole NodeConfig */
                certain = next ? typed && strchr("id", s.type) : !r->merge->partial;
        }
        if (value)
                fault = flag_fault(&f, value, &room, &certain);
        const char *then = streq(f.name, "cluster-dns") ? "pods could not resolve service names"
                                                        : "kubelet would exit";
        if (fault)
                reading_report(r, certain, path, "%s: --%s %s", then, f.name, fault);
        return apart ? 2 : 1;
}

/* k8s.io/component-base:version/verflag; cmd/kubelet/app/server.go */
static bool check_end(Reading *r, const char *word, const char *path) {
        _free_ char *name = kubelet_flag_name(word);
        const char *equals = strchr(word, '=');
        bool ends = streq(word, "-h") || (name && ONE_OF(name, "help", "version"));
        if (ends && !(name && streq(name, "version") && equals && parse_bool(equals + 1) == 0))
                reading_report(r, true, path, "makes kubelet print a message and exit; remove it");
        return ends;
}

/* A flag that is on, and kubelet exits without another one (cmd/kubelet/app/server.go:run; k8s.io/
 * component-base:logs/api/v1/options.go). */
static void check_needs(Reading *r, const Words *w) {
        static const struct { const char *flag, *needs, *said; } pairs[] = {
                { "exit-on-lock-contention", "lock-file", "needs --lock-file: kubelet exits without it" },
                { "log-json-split-stream", "feature-gates",
                  "needs the feature gate LoggingAlphaOptions: kubelet exits without it" },
                { "log-text-split-stream", "feature-gates",
                  "needs the feature gate LoggingAlphaOptions: kubelet exits without it" },
        };
        for (size_t k = 0; k < ARRAY_SIZE(pairs) && !r->merge->partial; k++) {
                size_t at = w->n;
                bool has = k > 0 && merge_find(r->merge, CONFIG ".featureGates");
                for (size_t i = 0; i < w->n; i++) {
                        _free_ char *name = kubelet_flag_name(w->text[i]);
                        const char *equals = strchr(w->text[i], '=');
                        if (name && streq(name, pairs[k].flag))
                                at = equals && parse_bool(equals + 1) <= 0 ? w->n : i;
                        has = has || (name && streq(name, pairs[k].needs));
                }
                _free_ char *path = xasprintf(FLAGS "[%zu]", at < w->n ? w->element[at] : 0);
                if (at < w->n && !has)
                        reading_report(r, true, path, "--%s %s", pairs[k].flag, pairs[k].said);
        }
}

static void read_words(Reading *r, const Words *w) {
        check_needs(r, w);
        for (size_t i = 0; i < w->n && w->text[i];) {
                _free_ char *path = xasprintf(FLAGS "[%zu]", w->element[i]);
                const char *word = w->text[i];
                if (*word != '-') {
                        check_word(r, word, path);
                        i++;
                } else if (check_end(r, word, path))
                        i++;
                else if (is_one_dash(word)) {
                        check_dash(r, word, path);
                        i += !strchr(word, '=') && w->text[i + 1] && *w->text[i + 1] != '-' ? 2 : 1;
                } else {
                        if (!r->certain)
                                warn_of_flag(r->merge, word, path, r->diag);
                        i += check_value(r, word, w->text[i + 1], path);
                }
        }
}

/* validate.c reports a flag with a placeholder. */
static void read_flags(Reading *r) {
        _cleanup_(words_done) Words w = {};
        json_t *flag;
        size_t i;
        json_array_foreach(merge_find(r->merge, FLAGS), i, flag) {
                const char *text = json_string_value(flag) ?: "";
                _free_ char *path = xasprintf(FLAGS "[%zu]", i);
                if (strstr(text, " - -"))
                        reading_report(r, false, path, "contains \" - -\": YAML joined two list items "
                                                       "into one; indent both items equally");
                else if (!has_placeholder(text))
                        words_add(&w, text, i);
        }
        read_words(r, &w);
}

bool kubelet_flags_set(const Merge *m, const char *key) {
        _cleanup_(words_done) Words w = {};
        json_t *flag;
        KubeletFlag f;
        size_t i;
        json_array_foreach(merge_find(m, FLAGS), i, flag)
                words_add(&w, json_string_value(flag) ?: "", i);
        return ANY(word, w.text, w.n, kubelet_flag_find(*word, &f) && streq(f.key, key));
}

bool kubelet_validate_flags(const Merge *m, Diag *diag) {
        Reading r = { .merge = m, .diag = diag, .certain = true };
        read_flags(&r);
        return !r.found;
}

void kubelet_warn_of_flags(const Merge *m, Diag *diag) {
        read_flags(&(Reading){ .merge = m, .diag = diag });
}

char *kubelet_setting_path(const json_t *config, char *const *flags, const char *key) {
        KubeletFlag f;
        for (size_t i = strv_length(flags); i-- > 0;) {
                _strv_ char **words = kubelet_words((char *[]){ flags[i], NULL });
                STRV_FOREACH(w, words)
                        if (kubelet_flag_find(*w, &f) && startswith(f.key, key) &&
                            strchr(".", f.key[strlen(key)]))    /* or a key below it */
                                return xasprintf("spec.kubelet.flags[%zu]", i);
        }
        return json_object_get(config, key) ? xasprintf(CONFIG ".%s", key) : NULL;
}
