/* SPDX-License-Identifier: Apache-2.0
 * The rules of containerd over all that it is given, ours and the user's merged. Where one is broken it ends,
 * does not load its CRI plugin, or starts no pod. Each says nothing where it cannot know: of another
 * version, of what ours adds. From containerd/containerd, 1.7 to 2.4: internal/cri/config/config.go (1.x:
 * pkg/cri/config/config.go), unless a rule names another place. */
#include "config/containerd.h"

#include "config/fields.h"

#include <string.h>

typedef struct Judgement {
        const ContainerdGiven *given;
        ContainerdTell *tell;
        void *context;
        bool broken;
        const char *images, *runtime;   /* the plugins that have the settings of images and of runtimes */
} Judgement;

__attribute__((format(printf, 4, 5)))
static void tell_of(Judgement *j, bool certain, const char *fault, const char *format, ...) {
        Text path = {};
        _cleanup_(freep) char *rest = FORMATTED(format);
        text_add(&path, "spec.containerd.%s", rest);
        j->tell(j->context, path.data, fault, certain);
        j->broken = j->broken || certain;
        text_done(&path);
}

#define tell(j, fault, ...) tell_of(j, true, fault, __VA_ARGS__)

static const json_t *plugin(const Judgement *j, const char *id) {
        return json_object_get(json_object_get(j->given->all, "plugins"), id);
}

static const json_t *cri(const Judgement *j, const char *id, const char *key) {
        return json_object_get(plugin(j, id), key);
}

/* Of this version, or of one that is not known. */
static bool may_be(const Judgement *j, unsigned from, unsigned until) {
        unsigned version = j->given->version;
        return version == 0 || (version >= from && version < until);
}

static bool is(const Judgement *j, unsigned from, unsigned until) {
        return j->given->version && may_be(j, from, until);
}

#define BESIDE(other) "cannot stand beside " other ": give the one or the other"
#define WHOLE_NAME    "is not the whole name of a plugin, such as io.containerd.snapshotter.v1.zfs"

/* ---- snapshotters and other plugins ---- */

/* Those of all builds, and what proxy_plugins adds. */
static bool has_snapshotter(const Judgement *j, const char *name) {
        static const char *const known[] = { "overlayfs", "native",    "btrfs", "zfs",
                                             "devmapper", "blockfile", "erofs", NULL };
        const json_t *proxy = json_object_get(json_object_get(j->given->all, "proxy_plugins"), name);
        return streq(json_get_text(proxy, "type"), "snapshot") || (!j->given->whole && streq(name, "soci")) ||
               strv_contains((char *const *)known, name);
}

#define NO_SNAPSHOTTER "is a snapshotter that no containerd has, and proxy_plugins adds none of this name"
static void judge_snapshotter(Judgement *j, const json_t *table, const char *path, const char *fault) {
        const char *name = json_string_value(json_object_get(table, "snapshotter"));
        if (!name || j->given->partial || has_snapshotter(j, name))
                return;
        tell(j, fault, "config.plugins.%s.snapshotter", path);
}

/* ValidateV2() and ValidateVersion() of the configuration. Those that CRI needs: a containerd without each of
 * them in turn. */
static bool is_plugin_name(const Judgement *j, const char *id) {
        return !is(j, 100, 200) ? strchr(id, '.') != NULL
                                : startswith(id, "io.containerd.") && strchr(id + 14, '.');
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
                        ContainerdPlugin has = containerd_plugin(j->given, id);
                        const char *fault = NULL;
                        if (!is_plugin_name(j, id))
                                fault = WHOLE_NAME;
                        else if (k == 0 && has == PLUGIN_NEEDED)
                                fault = "turns off a plugin that CRI needs";
                        else if (k == 1 && has == PLUGIN_UNKNOWN)
                                fault = "is a plugin that containerd does not have";
                        if (fault)      /* a newer one may have a plugin more, or need one less */
                                tell_of(j, j->given->version || has != PLUGIN_UNKNOWN, fault,
                                        "config.%s[%zu]", lists[k], i);
                }
}

/* 1.x reads each as a table of a name that is whole (ValidateV2()). */
static void judge_plugin_names(Judgement *j) {
        const char *id;
        json_t *value;
        if (is(j, 100, 200))
                json_object_foreach(json_object_get(j->given->all, "plugins"), id, value)
                        if (!is_plugin_name(j, id) || !json_is_object(value))
                                tell(j, is_plugin_name(j, id) ? "must be a table" : WHOLE_NAME,
                                     "config.plugins.%s", id);
}

/* cmd/containerd/server/server.go: LoadPlugins(); of content there can be one store. */
static void judge_proxies(Judgement *j) {
        const char *name;
        json_t *proxy;
        json_object_foreach(json_object_get(j->given->all, "proxy_plugins"), name, proxy) {
                const char *type = json_get_text(proxy, "type");
                if (!*type)
                        tell(j, "has no type: snapshot, content, sandbox or diff", "config.proxy_plugins.%s",
                             name);
                else if (is(j, 200, 300) && streq(type, "content"))
                        tell(j, "is a second store of content, and containerd takes one",
                             "config.proxy_plugins.%s.type", name);
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
                tell(j, "is not a runtime of containerd.runtimes",
                     "config.plugins.%s.containerd.default_runtime_name", j->runtime);
        json_object_foreach((json_t *)all, key, runtime) {
                _cleanup_(freep) char *path = xasprintf("%s.containerd.runtimes.%s", j->runtime, key);
                if (json_is_true(json_object_get(runtime, ALL_DEVICES)) &&
                    !json_is_true(json_object_get(runtime, "privileged_without_host_devices")))
                        tell(j, "needs privileged_without_host_devices", "config.plugins.%s.%s", path,
                             ALL_DEVICES);
                if (*json_get_text(runtime, "snapshotter"))     /* without a name it is that of the images */
                        judge_snapshotter(j, runtime, path, NO_SNAPSHOTTER "; otherwise no pod of it starts");
        }
}

/* From 2.1 on bin_dirs, up to 2.3 bin_dir. Of schema 2 containerd makes one of both (plugins/cri/runtime/
 * plugin.go: migrateConfig()). */
static void judge_cni(Judgement *j) {
        const json_t *cni = cri(j, j->runtime, "cni");
        if (is(j, 201, 204) && j->given->schema != 2 && *json_get_text(cni, "bin_dir") &&
            json_array_size(json_object_get(cni, "bin_dirs")) > 0)
                tell(j, BESIDE("bin_dirs"), "config.plugins.%s.cni.bin_dir", j->runtime);
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
                        if (json_object_get(config, "tls"))
                                tell(j, BESIDE("config_path"),
                                     "config.plugins.%s.registry.configs.%s.tls", j->images, host);
}

/* plugins/transfer/plugin.go */
static void judge_transfer(Judgement *j) {
        static const char id[] = "io.containerd.transfer.v1.local";
        json_t *unpack;
        size_t i;
        if (is(j, 200, 300))
                json_array_foreach(cri(j, id, "unpack_config"), i, unpack) {
                        const char *differ = json_get_text(unpack, "differ");
                        _cleanup_(freep) char *path = xasprintf("%s.unpack_config[%zu]", id, i);
                        judge_snapshotter(j, unpack, path, NO_SNAPSHOTTER);
                        if (*differ && !streq(differ, "walking") && !streq(differ, "erofs") &&
                            !json_object_get(json_object_get(j->given->all, "proxy_plugins"), differ))
                                tell(j, "is a differ that containerd does not have",
                                     "config.plugins.%s.differ", path);
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
                tell(j,
                     cert != key ? "needs a tls_cert_file and a tls_key_file" : "needs enable_tls_streaming",
                     "config.plugins.%s.x509_key_pair_streaming", CONTAINERD_CRI);
        if (*address && !streq(address, "localhost") && !address_is_valid(address))
                tell(j, "must be an IP address", "config.plugins.%s.stream_server_address", CONTAINERD_CRI);
}

static void judge_sockets(Judgement *j) {
        const char *address = json_get_text(json_object_get(j->given->all, "grpc"), "address"),
                   *debug = json_get_text(json_object_get(j->given->all, "debug"), "address"),
                   *root = json_get_text(j->given->all, "root"),
                   *state = json_get_text(j->given->all, "state");
        if (*address && (*address != '/' || strpbrk(address, " \t\n\"'\\$")))
                tell(j, "must be the absolute path of a socket, which kubelet can be given",
                     "config.grpc.address");
        if (*debug && *debug != '/' && !strchr(debug, ':'))
                tell(j, "must be the absolute path of a socket", "config.debug.address");
        if (*root && streq(root, state))
                tell(j, "is the same path as state", "config.root");
}

/* ---- the file ---- */

/* version/version.go: ConfigVersion. The planned file is of schema 2 or 3; one of 1 has other names. */
static void judge_version(Judgement *j) {
        const json_t *said = json_object_get(j->given->user, "version");
        json_int_t version = json_integer_value(said);
        if (!json_is_integer(said))
                return;
        if (version < 2)
                tell(j, "is a schema whose names of plugins differ: write it for schema 2 or 3",
                     "config.version");
        else if (version > (may_be(j, 203, 300) ? 4 : 3))
                tell_of(j, j->given->version, "is a schema that this containerd does not know: write it for schema 3",
                     "config.version");
}

/* The kernel has no other limits, and none whose soft one is above the hard one: runc then starts nothing
 * (opencontainers/runc libcontainer/specconv/spec_linux.go: strToRlimit()). */
static void judge_limits(Judgement *j) {
        static const char known[] = " AS CORE CPU DATA FSIZE LOCKS MEMLOCK MSGQUEUE NICE NOFILE NPROC RSS "
                                    "RTPRIO RTTIME SIGPENDING STACK ";
        json_t *limit;
        size_t i;
        json_array_foreach(json_object_get(json_object_get(j->given->spec, "process"), "rlimits"), i, limit) {
                const char *type = json_get_text(limit, "type");
                const json_t *soft = json_object_get(limit, "soft"), *hard = json_object_get(limit, "hard");
                _cleanup_(freep) char *word = xasprintf(" %s ", startswith(type, "RLIMIT_") ? type + 7 : "?");
                if (!strstr(known, word))
                        tell(j, "is not a limit, such as RLIMIT_NOFILE; otherwise no pod starts",
                             "baseRuntimeSpec.process.rlimits[%zu]", i);
                else if (json_is_number(soft) && json_number_value(soft) > json_number_value(hard))
                        tell(j, "has a soft limit above the hard one; otherwise no pod starts",
                             "baseRuntimeSpec.process.rlimits[%zu]", i);
        }
}

static bool judge(const ContainerdGiven *g, ContainerdTell *to, void *context) {
        bool three = g->schema != 2, good = containerd_judge_values(g, to, context);
        Judgement j = { .given = g, .tell = to, .context = context,
                        .images = three ? CONTAINERD_IMAGES : CONTAINERD_CRI,
                        .runtime = three ? CONTAINERD_RUNTIME : CONTAINERD_CRI };
        const json_t *images = three ? plugin(&j, CONTAINERD_IMAGES) : cri(&j, CONTAINERD_CRI, "containerd");
        judge_version(&j);
        judge_plugin_names(&j);
        judge_plugin_lists(&j);
        judge_proxies(&j);
        judge_runtimes(&j);
        judge_cni(&j);
        if (*json_get_text(images, "snapshotter") || is(&j, 200, 300))
                judge_snapshotter(&j, images, three ? CONTAINERD_IMAGES : CONTAINERD_CRI ".containerd",
                                  NO_SNAPSHOTTER);
        judge_registry(&j);
        judge_transfer(&j);
        judge_streaming(&j);
        judge_sockets(&j);
        judge_limits(&j);
        return good && !j.broken;
}

#define MORE_FAULTS "holds %zu more settings that are wrong: mend them, too"

typedef struct Few { ContainerdTell *tell; void *context; size_t n; bool certain; } Few;

static void tell_few(void *context, const char *path, const char *fault, bool certain) {
        Few *few = context;
        if (few->n++ < CONTAINERD_MOST)
                few->tell(few->context, path, fault, certain);
        else
                few->certain |= certain;
}

bool containerd_judge(const ContainerdGiven *g, ContainerdTell *to, void *context) {
        Few few = { to, context, 0, false };
        bool good = judge(g, tell_few, &few);
        _cleanup_(freep) char *more =
                few.n > CONTAINERD_MOST ? xasprintf(MORE_FAULTS, few.n - CONTAINERD_MOST) : NULL;
        if (more)
                to(context, "spec.containerd", more, few.certain);
        return good;
}
