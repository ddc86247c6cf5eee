/* SPDX-License-Identifier: Apache-2.0
 * Rules of containerd over all settings merged, ours and those of the user. If one is broken, containerd
 * ends, does not load its CRI plugin, or starts no pod. A rule passes where the version or our settings are
 * not known. From containerd/containerd, 1.7 to 2.4: internal/cri/config/config.go (1.x:
 * pkg/cri/config/config.go), unless a rule names another place. */
#include "config/containerd.h"

#include "config/fields.h"

#include <string.h>

typedef struct Judgement {
        const ContainerdGiven *given;
        ContainerdTell *tell;
        void *context;
        bool broken;
        const char *images, *runtime;   /* the plugins with the settings of images and of runtimes */
        const json_t *snapshots;        /* the table with the snapshotter of images */
        json_t *disabled;               /* disabled_plugins as keys */
} Judgement;
_printf_(4, 5)
static void tell_of(Judgement *j, bool certain, const char *fault, const char *format, ...) {
        _free_ char *rest = FORMATTED(format), *path = xasprintf("spec.containerd.%s", rest);
        j->tell(j->context, path, fault, certain);
        j->broken |= certain;
}

#define tell(j, fault, ...) tell_of(j, true, fault, __VA_ARGS__)

static const json_t *plugin(const Judgement *j, const char *id) {
        return json_object_get(json_object_get(j->given->all, "plugins"), id);
}

static const json_t *cri(const Judgement *j, const char *id, const char *key) {
        return json_object_get(plugin(j, id), key);
}

/* Also true where the version is not known. */
static bool may_be(const Judgement *j, unsigned from, unsigned until) {
        unsigned version = j->given->version;
        return version == 0 || (version >= from && version < until);
}

static bool is(const Judgement *j, unsigned from, unsigned until) {
        return j->given->version && may_be(j, from, until);
}

#define BESIDE(other) "cannot be used with " other ": set only one of them"
#define WHOLE_NAME    "is not the full name of a plugin, such as io.containerd.snapshotter.v1.zfs"

/* ---- snapshotters and other plugins ---- */

#define SNAPSHOTTER "io.containerd.snapshotter.v1"
#define DIFFER      "io.containerd.differ.v1"

/* Each type has two names (cmd/containerd/server/server.go: LoadPlugins()). */
static const char *proxy_type(const json_t *proxy) {
        static const char *const types[][2] = { { "snapshot", SNAPSHOTTER },
                                                { "content", "io.containerd.content.v1" },
                                                { "diff", DIFFER },
                                                { "sandbox", "io.containerd.sandbox.controller.v1" } };
        const char *type = json_get_text(proxy, "type");
        return PICK(t, types, ARRAY_SIZE(types), streq(type, (*t)[0]), (*t)[1], type);
}

#define UNKNOWN_PLUGIN "is a plugin that containerd does not have"
/* Why containerd certainly does not load a plugin, or NULL. devmapper and blockfile need a setting
 * (plugins/snapshots/devmapper/plugin/plugin.go, …/blockfile/blockfile.go). */
static const char *why_absent(const Judgement *j, const char *type, const char *name) {
        _free_ char *id = xasprintf("%s.%s", type, name);
        const json_t *proxy = json_object_get(json_object_get(j->given->all, "proxy_plugins"), name);
        bool snapshotter = streq(type, SNAPSHOTTER);
        if (json_object_get(j->disabled, id))
                return "is turned off by disabled_plugins";
        if ((proxy && streq(proxy_type(proxy), type)) ||
            (snapshotter && !j->given->whole && streq(name, "soci")))
                return NULL;
        if (containerd_plugin(j->given, id) == PLUGIN_UNKNOWN)
                return UNKNOWN_PLUGIN;
        if (snapshotter && streq(name, "devmapper") && !*json_get_text(plugin(j, id), "pool_name"))
                return "is not loaded without its pool_name";
        if (snapshotter && streq(name, "blockfile") && !*json_get_text(plugin(j, id), "scratch_file"))
                return "is not loaded without its scratch_file";
        return NULL;
}

static void judge_snapshotter(Judgement *j, const json_t *table, const char *path, const char *then) {
        const char *name = json_string_value(json_object_get(table, "snapshotter")),
                   *fault = name && !j->given->partial ? why_absent(j, SNAPSHOTTER, name) : NULL;
        if (!fault)
                return;
        if (streq(fault, UNKNOWN_PLUGIN))
                fault = "is neither a snapshotter of this containerd nor in proxy_plugins";
        _free_ char *whole = xasprintf("%s%s", fault, then);
        tell(j, whole, "config.plugins.%s.snapshotter", path);
}

/* ValidateV2() and ValidateVersion() of the configuration. */
static bool is_plugin_name(const Judgement *j, const char *id) {
        return !is(j, 100, 200) ? strchr(id, '.') != NULL
                                : startswith(id, "io.containerd.") && strchr(id + 14, '.');
}

/* Found by starting containerd without each plugin in turn. It does not need overlayfs where CRI and the
 * transfer service use another snapshotter. */
static bool is_needed(const Judgement *j, const char *id) {
        const char *name = json_get_text(j->snapshots, "snapshotter");
        bool other = streq(id, SNAPSHOTTER ".overlayfs") && *name && !streq(name, "overlayfs") &&
                     (!is(j, 200, 300) || cri(j, CONTAINERD_TRANSFER, "unpack_config"));
        return containerd_plugin(j->given, id) == PLUGIN_NEEDED && !other;
}

static const char *required_fault(const Judgement *j, const char *id) {
        const char *name = strrchr(id, '.');
        _free_ char *type = xstrndup(id, (size_t)(name - id));
        return j->given->partial ? NULL : why_absent(j, type, name + 1);
}

static void judge_plugin_lists(Judgement *j) {
        static const char *const lists[] = { "disabled_plugins", "required_plugins" };
        json_t *item;
        size_t i;
        for (size_t k = 0; k < ARRAY_SIZE(lists); k++)
                json_array_foreach(json_object_get(j->given->all, lists[k]), i, item) {
                        const char *id = json_string_value(item);
                        if (!id)
                                continue;
                        const char *fault = !is_plugin_name(j, id) ? WHOLE_NAME
                                            : k == 1               ? required_fault(j, id)
                                            : is_needed(j, id)     ? "turns off a plugin that CRI needs"
                                                                   : NULL;
                        /* a newer containerd may have this plugin */
                        if (fault)
                                tell_of(j, j->given->version || !streq(fault, UNKNOWN_PLUGIN), fault,
                                        "config.%s[%zu]", lists[k], i);
                }
}

/* Only 1.x refuses them (ValidateV2()). */
static void judge_plugin_names(Judgement *j) {
        const char *id;
        json_t *value;
        if (is(j, 100, 200))
                json_object_foreach(json_object_get(j->given->all, "plugins"), id, value)
                        if (!is_plugin_name(j, id) || !json_is_object(value)) {
                                _free_ char *shown = path_key(id);
                                tell(j, is_plugin_name(j, id) ? "must be a table" : WHOLE_NAME,
                                     "config.plugins.%s", shown);
                        }
}

/* cmd/containerd/server/server.go: LoadPlugins(). There can be only one content store. */
static void judge_proxies(Judgement *j) {
        const char *name;
        json_t *proxy;
        json_object_foreach(json_object_get(j->given->all, "proxy_plugins"), name, proxy) {
                const char *type = proxy_type(proxy);
                _free_ char *id = xasprintf("%s.%s", type, name), *shown = path_key(name);
                if (!*type)
                        tell(j, "has no type: set snapshot, content, sandbox or diff",
                             "config.proxy_plugins.%s", shown);
                else if (is(j, 200, 300) && streq(type, "io.containerd.content.v1"))
                        tell(j, "is a second content store, but containerd takes only one",
                             "config.proxy_plugins.%s.type", shown);
                else if (is(j, 100, 200) && startswith(type, "io.containerd.sandbox."))
                        tell(j, "is not a type that containerd 1 has", "config.proxy_plugins.%s.type", shown);
                else if (j->given->version && containerd_plugin(j->given, id) != PLUGIN_UNKNOWN)
                        tell(j, "has the name of a containerd plugin: rename it",
                             "config.proxy_plugins.%s", shown);
        }
}

/* ---- runtimes ---- */

#define ALL_DEVICES "privileged_without_host_devices_all_devices_allowed"
static void judge_runtimes(Judgement *j) {
        const json_t *containerd = cri(j, j->runtime, "containerd"),
                     *all = json_object_get(containerd, "runtimes"),
                     *chosen = json_object_get(containerd, "default_runtime_name");
        const char *name = json_string_value(chosen), *key;
        json_t *runtime;
        bool ours = !j->given->whole && name && (streq(name, "runc") || streq(name, "nvidia"));
        if (name && !ours && !j->given->partial && !json_object_get(all, name) &&
            !json_object_get(containerd, "default_runtime"))
                tell(j, "is not a runtime in containerd.runtimes",
                     "config.plugins.%s.containerd.default_runtime_name", j->runtime);
        json_object_foreach((json_t *)all, key, runtime) {
                _free_ char *shown = path_key(key),
                            *path = xasprintf("%s.containerd.runtimes.%s", j->runtime, shown);
                if (json_is_true(json_object_get(runtime, ALL_DEVICES)) &&
                    !json_is_true(json_object_get(runtime, "privileged_without_host_devices")))
                        tell(j, "needs privileged_without_host_devices", "config.plugins.%s.%s", path,
                             ALL_DEVICES);
                if (*json_get_text(runtime, "snapshotter"))     /* "": that of the images */
                        judge_snapshotter(j, runtime, path, "; no pod of this runtime would start");
        }
}

/* bin_dirs exists from 2.1 on, bin_dir up to 2.3. containerd merges both in schema 2
 * (plugins/cri/runtime/plugin.go: migrateConfig()). */
static void judge_cni(Judgement *j) {
        const json_t *cni = cri(j, j->runtime, "cni");
        if (is(j, 201, 204) && j->given->schema != 2 && *json_get_text(cni, "bin_dir") &&
            json_array_size(json_object_get(cni, "bin_dirs")) > 0)
                tell(j, BESIDE("bin_dirs"), "config.plugins.%s.cni.bin_dir", j->runtime);
}

/* init, DRA drivers and NVIDIA's device plugin write CDI specifications there. */
static void judge_cdi(Judgement *j) {
        const json_t *folders = cri(j, j->runtime, "cdi_spec_dirs"), *folder;
        size_t i;
        json_array_foreach(folders, i, folder)
                if (ONE_OF(json_string_value(folder) ?: "", "/var/run/cdi", "/run/cdi"))
                        return;
        if (json_is_array(folders))
                tell_of(j, false, "lacks /var/run/cdi: add it, otherwise containers get no GPU through CDI",
                        "config.plugins.%s.cdi_spec_dirs", j->runtime);
}

/* ---- images ---- */

static void judge_registry(Judgement *j) {
        const json_t *registry = cri(j, j->images, "registry");
        const char *host;
        json_t *config;
        if (!*json_get_text(registry, "config_path"))
                return;
        if (json_object_size(json_object_get(registry, "mirrors")) > 0)
                tell(j, BESIDE("config_path"), "config.plugins.%s.registry.mirrors", j->images);
        if (is(j, 100, 200))
                json_object_foreach(json_object_get(registry, "configs"), host, config)
                        if (json_object_get(config, "tls")) {
                                _free_ char *shown = path_key(host);
                                tell(j, BESIDE("config_path"),
                                     "config.plugins.%s.registry.configs.%s.tls", j->images, shown);
                        }
}

static const char *differ_fault(const Judgement *j, const char *name) {
        const char *fault = why_absent(j, DIFFER, name);
        return fault && streq(fault, UNKNOWN_PLUGIN) ? "is a differ that containerd does not have" : fault;
}

/* plugins/transfer/plugin.go */
static void judge_transfer(Judgement *j) {
        json_t *unpack;
        size_t i;
        if (is(j, 200, 300))
                json_array_foreach(cri(j, CONTAINERD_TRANSFER, "unpack_config"), i, unpack) {
                        const char *differ = json_get_text(unpack, "differ"), *fault = NULL;
                        _free_ char *path = xasprintf("%s.unpack_config[%zu]", CONTAINERD_TRANSFER, i);
                        if (!json_object_get(unpack, "platform"))
                                tell(j, "needs a platform, such as linux/amd64", "config.plugins.%s", path);
                        if (is(j, 203, 300) && json_is_true(json_object_get(unpack, "optional")))
                                continue;
                        if (!json_object_get(unpack, "snapshotter"))
                                tell(j, "needs a snapshotter", "config.plugins.%s", path);
                        judge_snapshotter(j, unpack, path, "");
                        fault = *differ ? differ_fault(j, differ) : NULL;
                        if (fault)
                                tell(j, fault, "config.plugins.%s.differ", path);
                }
}

/* plugins/services/diff/local.go */
static void judge_differs(Judgement *j) {
        static const char id[] = "io.containerd.service.v1.diff-service";
        json_t *item;
        size_t i;
        json_array_foreach(cri(j, id, "default"), i, item) {
                const char *name = json_string_value(item),
                           *fault = name && !j->given->partial ? differ_fault(j, name) : NULL;
                if (fault)
                        tell(j, fault, "config.plugins.%s.default[%zu]", id, i);
        }
}

/* ---- servers ---- */

/* internal/cri/server/streaming.go */
static void judge_streaming(Judgement *j) {
        const json_t *server = plugin(j, CONTAINERD_CRI),
                     *pair = json_object_get(server, "x509_key_pair_streaming");
        const char *address = json_get_text(server, "stream_server_address");
        bool cert = *json_get_text(pair, "tls_cert_file"), key = *json_get_text(pair, "tls_key_file"),
             on = json_is_true(json_object_get(server, "enable_tls_streaming"));
        if (cert != key || (cert && !on))
                tell(j, cert != key ? "needs tls_cert_file and tls_key_file" : "needs enable_tls_streaming",
                     "config.plugins.%s.x509_key_pair_streaming", CONTAINERD_CRI);
        if (*address && !streq(address, "localhost") && !address_is_valid(address))
                tell(j, "must be an IP address", "config.plugins.%s.stream_server_address", CONTAINERD_CRI);
}

/* pkg/sys/socket_unix.go: CreateUnixSocket(). more: what containerd adds for its second socket. */
static void judge_length(Judgement *j, const char *address, size_t more, const char *path) {
        if (*address == '/' && strlen(address) + more > 104)
                tell(j, more ? "is too long: the limit is 98 bytes, because containerd adds .ttrpc"
                             : "is too long for a socket: the limit is 104 bytes", "%s", path);
}

static void judge_socket(Judgement *j, const char *address, const char *path) {
        if (*address != '/' || strpbrk(address, " \t\n\"'\\$"))
                tell(j, "must be the absolute path of a socket, for kubelet", "config.%s", path);
}

static void judge_sockets(Judgement *j) {
        const char *address = json_get_text(json_object_get(j->given->all, "grpc"), "address"),
                   *own = json_string_value(cri(j, CONTAINERD_SERVER, "address")),
                   *root = json_get_text(j->given->all, "root");
        if (*address)
                judge_socket(j, address, "grpc.address");
        if (is(j, 203, 300) && own)
                judge_socket(j, own, "plugins." CONTAINERD_SERVER ".address");
        const char *second = json_get_text(json_object_get(j->given->all, "ttrpc"), "address");
        judge_length(j, address, *second ? 0 : strlen(".ttrpc"), "config.grpc.address");
        judge_length(j, second, 0, "config.ttrpc.address");
        judge_length(j, json_get_text(json_object_get(j->given->all, "debug"), "address"), 0,
                     "config.debug.address");
        if (*root && streq(root, json_get_text(j->given->all, "state")))
                tell(j, "is the same path as state", "config.root");
}

/* ---- the file ---- */

/* version/version.go: ConfigVersion. The planned file has schema 2 or 3; the names in schema 1 differ. */
static void judge_version(Judgement *j) {
        const json_t *said = json_object_get(j->given->user, "version");
        json_int_t version = json_integer_value(said);
        if (!json_is_integer(said))
                return;
        if (version < 2)
                tell(j, "selects a schema with other plugin names; write the TOML for schema 2 or 3",
                     "config.version");
        else if (version > (may_be(j, 203, 300) ? 4 : 3))
                tell_of(j, j->given->version,
                        "selects a schema that only a newer containerd may know; write the TOML for schema "
                        "2 or 3",
                     "config.version");
}

/* runc starts nothing with another limit, or with a soft one above the hard one (opencontainers/runc
 * libcontainer/specconv/spec_linux.go: strToRlimit()). */
static void judge_limits(Judgement *j) {
        static const char known[] = "AS|CORE|CPU|DATA|FSIZE|LOCKS|MEMLOCK|MSGQUEUE|NICE|NOFILE|NPROC|RSS|"
                                    "RTPRIO|RTTIME|SIGPENDING|STACK";
        json_t *limit;
        size_t i;
        json_array_foreach(json_object_get(json_object_get(j->given->spec, "process"), "rlimits"), i, limit) {
                const char *type = json_get_text(limit, "type");
                const json_t *soft = json_object_get(limit, "soft"), *hard = json_object_get(limit, "hard");
                bool valid = startswith(type, "RLIMIT_") && word_is_among(type + strlen("RLIMIT_"), known);
                if (!valid || (json_is_number(soft) && json_number_value(soft) > json_number_value(hard)))
                        tell(j, valid ? "has a soft limit above the hard one: lower it, otherwise no "
                                        "pod starts"
                                      : "is not a known limit: write one such as RLIMIT_NOFILE, otherwise no "
                                        "pod starts",
                             "baseRuntimeSpec.process.rlimits[%zu]", i);
        }
}

static bool judge(const ContainerdGiven *g, ContainerdTell *to, void *context) {
        bool three = g->schema != 2, good = containerd_judge_values(g, to, context);
        Judgement j = { .given = g, .tell = to, .context = context,
                        .images = three ? CONTAINERD_IMAGES : CONTAINERD_CRI,
                        .runtime = three ? CONTAINERD_RUNTIME : CONTAINERD_CRI };
        json_t *item;
        size_t i;
        j.snapshots = three ? plugin(&j, CONTAINERD_IMAGES) : cri(&j, CONTAINERD_CRI, "containerd");
        j.disabled = json_object();
        json_array_foreach(json_object_get(g->all, "disabled_plugins"), i, item)
                if (json_is_string(item))
                        json_object_set_new(j.disabled, json_string_value(item), json_true());
        judge_version(&j);
        judge_plugin_names(&j);
        judge_plugin_lists(&j);
        judge_proxies(&j);
        judge_runtimes(&j);
        judge_cni(&j);
        judge_cdi(&j);
        if (*json_get_text(j.snapshots, "snapshotter") || is(&j, 200, 300))
                judge_snapshotter(&j, j.snapshots, three ? CONTAINERD_IMAGES : CONTAINERD_CRI ".containerd",
                                  "");
        judge_registry(&j);
        judge_transfer(&j);
        judge_differs(&j);
        judge_streaming(&j);
        judge_sockets(&j);
        judge_limits(&j);
        json_decref(j.disabled);
        return good && !j.broken;
}

typedef struct Few { ContainerdTell *to; void *context; size_t n; bool certain; } Few;

static void tell_few(void *context, const char *path, const char *fault, bool certain) {
        Few *few = context;
        if (few->n++ < CONTAINERD_MOST)
                few->to(few->context, path, fault, certain);
        else
                few->certain |= certain;
}

bool containerd_judge(const ContainerdGiven *g, ContainerdTell *to, void *context) {
        Few few = { to, context, 0, false };
        bool good = judge(g, tell_few, &few);
        _free_ char *more = xasprintf("contains %zu more wrong settings: correct them, too",
                                      few.n - CONTAINERD_MOST);
        if (few.n > CONTAINERD_MOST)
                to(context, "spec.containerd", more, few.certain);
        return good;
}

/* ---- of the merged document, for any version ---- */

static ContainerdGiven given_of(const Merge *m) {
        const json_t *plugins = json_object_get(m->toml, "plugins");
        bool three = json_object_get(plugins, CONTAINERD_IMAGES) ||
                     json_object_get(plugins, CONTAINERD_RUNTIME),
             two = json_object_get(plugins, CONTAINERD_CRI);
        return (ContainerdGiven){ .all = m->toml, .user = m->toml,
                                  .spec = merge_find(m, "spec.containerd.baseRuntimeSpec"),
                                  .schema = three ? 3 : two ? 2 : 0, .partial = m->partial };
}

typedef struct Report {
        const Merge *merge;
        Diag *diag;
        json_t *told;           /* the paths that containerd 1 refuses; NULL: it reads the same */
        bool broken;
} Report;

static void refuse(void *context, const char *path, const char *fault, bool certain) {
        Report *j = context;
        _free_ char *text = xasprintf("%s%s", fault, containerd_consequence(fault));
        if (j->told && !json_object_get(j->told, path))
                certain = false;
        j->broken |= certain;
        if (certain)
                config_report(j->merge, j->diag, path, text);
        else
                merge_warn(j->merge, j->diag, "containerd-setting", path, "%s", text);
}

static void warn(void *context, const char *path, const char *fault, const char *near) {
        const Report *j = context;
        merge_warn(j->merge, j->diag, "containerd-setting", path, "%s", fault);
        diag_suggest_name(j->diag, "", near);
}

static void note(void *context, const char *path, _unused_ const char *fault, bool certain) {
        if (certain)
                json_object_set_new(context, path, json_true());
}

/* containerd 1 ignores some keys that differ in case, and a fault only in 2 is a warning. */
bool containerd_validate(const Merge *m, Diag *diag) {
        const ContainerdGiven given = given_of(m);
        ContainerdGiven one = given;
        bool both = m->toml_one && given.schema != 3 &&
                    json_integer_value(json_object_get(m->toml, "version")) < 3;
        _cleanup_(json_decrefp) json_t *told = both ? json_object() : NULL;
        Report j = { m, diag, told, false };
        one.all = m->toml_one;
        (void)!(both && containerd_judge(&one, note, told));
        (void)!containerd_judge(&given, refuse, &j);
        return !j.broken;
}

void containerd_warn(const Merge *m, Diag *diag) {
        const ContainerdGiven given = given_of(m);
        containerd_look(&given, warn, &(Report){ m, diag, NULL, false });
}
