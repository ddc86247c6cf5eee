/* SPDX-License-Identifier: Apache-2.0 */
/* The containerd configuration: schema 2 for 1.x, 3 for 2.x, merged with the TOML of the user; SOCI for
 * FastImagePull on a large machine. Settings as in nodeadm (internal/containerd), names as in containerd
 * docs/cri/config.md. Tests compare `containerd config dump`, since containerd ignores unknown keys. */
#include "plan/planner.h"
#include "base/str.h"
#include "config/containerd.h"
#include "redact/secret.h"
#include <errno.h>

#define SOCI_DROP_IN     UNIT_DIR "/containerd.service.d/10-soci-snapshotter.conf"
#define MEMLOCK_DROP_IN  UNIT_DIR "/containerd.service.d/40-nodestrap-memlock.conf"
#define GIBIBYTE         (1ULL << 30)

#define CRI_2     CONTAINERD_CRI
#define RUNTIME_3 CONTAINERD_RUNTIME
#define IMAGES_3  CONTAINERD_IMAGES
#define P2        "plugins/\"" CRI_2 "\""
#define R3        "plugins/'" RUNTIME_3 "'"
#define I3        "plugins/'" IMAGES_3 "'"

/* Condition: with SOCI, and by containerd version. */
typedef enum Need { NEED_NOTHING, NEED_SOCI = 1, NEED_2_1 = 2, NEED_UP_TO_2_0 = 4 } Need;
/* Order and quotes of the nodeadm file, which people compare, grep and patch. value is TOML and JSON alike,
 * or one of the $words below; '%' in a path is the runtime. */
typedef struct Row { const char *path, *value; Need need; } Row;
static const Row top[] = {      /* top and bottom are the same in schema 2 and 3 */
        { "version",                                         "$version" },
        { "root",                                            "\"" CONTAINERD_DIR "\"" },
        { "state",                                           "\"/run/containerd\"" },
        { "grpc/address",                                    "\"" CONTAINERD_SOCKET "\"" },
        { NULL }
};
static const Row schema_2[] = {
        { P2 "/containerd/default_runtime_name",             "$runtime" },
        { P2 "/containerd/discard_unpacked_layers",          "true" },
        { P2 "/containerd/snapshotter",                      "\"soci\"", NEED_SOCI },
        { P2 "/containerd/disable_snapshot_annotations",     "false", NEED_SOCI },
        { P2 "/sandbox_image",                               "$sandbox" },
        { P2 "/enable_cdi",                                  "$cdi" },
        { P2 "/registry/config_path",                        "$certs" },
        { P2 "/containerd/runtimes/%/runtime_type",          "\"io.containerd.runc.v2\"" },
        { P2 "/containerd/runtimes/%/base_runtime_spec",     "$spec" },
        { P2 "/containerd/runtimes/%/options/BinaryName",    "$binary" },
        { P2 "/containerd/runtimes/%/options/SystemdCgroup", "true" },
        { P2 "/cni/bin_dir",                                 "\"/opt/cni/bin\"" },
        { P2 "/cni/conf_dir",                                "\"/etc/cni/net.d\"" },
        { NULL }
};
static const Row schema_3[] = {
        { I3 "/discard_unpacked_layers",                     "true" },
        { I3 "/snapshotter",                                 "\"soci\"", NEED_SOCI },
        { I3 "/disable_snapshot_annotations",                "false", NEED_SOCI },
        { I3 "/pinned_images/sandbox",                       "$sandbox" },
        { "plugins/\"" IMAGES_3 "\"/registry/config_path",   "$certs" },
        { R3 "/enable_cdi",                                  "$cdi" },
        { R3 "/containerd/default_runtime_name",             "$runtime" },
        { R3 "/containerd/runtimes/%/runtime_type",          "\"io.containerd.runc.v2\"" },
        { R3 "/containerd/runtimes/%/base_runtime_spec",     "$spec" },
        { R3 "/containerd/runtimes/%/options/BinaryName",    "$binary" },
        { R3 "/containerd/runtimes/%/options/SystemdCgroup", "true" },
        { R3 "/cni/bin_dir",                                 "\"/opt/cni/bin\"", NEED_UP_TO_2_0 },
        /* 2.1 warns about bin_dir at start */
        { R3 "/cni/bin_dirs",                                "[\"/opt/cni/bin\"]", NEED_2_1 },
        { R3 "/cni/conf_dir",                                "\"/etc/cni/net.d\"" },
        { NULL }
};
static const Row bottom[] = {
        { "proxy_plugins/soci/type",                         "\"snapshot\"", NEED_SOCI },
        { "proxy_plugins/soci/address",                      "\"" SOCI_SOCKET "\"", NEED_SOCI },
        { "proxy_plugins/soci/exports/root",                 "\"" SOCI_DIR "\"", NEED_SOCI },
        { NULL }
};
static const Row soci_settings[] = {    /* of the snapshotter; TOML only */
        { "debug",                                                              "false" },
        { "content_store/type",                                                 "'containerd'" },
        { "cri_keychain/enable_keychain",                                       "true" },
        { "cri_keychain/image_service_path",                                    "$socket" },
        { "pull_modes/parallel_pull_unpack/enable",                             "true" },
        { "pull_modes/parallel_pull_unpack/concurrent_download_chunk_size",     "\"16mb\"" },
        { "pull_modes/parallel_pull_unpack/discard_unpacked_layers",            "true" },
        { "pull_modes/parallel_pull_unpack/max_concurrent_downloads",           "-1" },
        { "pull_modes/parallel_pull_unpack/max_concurrent_downloads_per_image", "20" },
        { "pull_modes/parallel_pull_unpack/max_concurrent_unpacks",             "-1" },
        { "pull_modes/parallel_pull_unpack/max_concurrent_unpacks_per_image",   "12" },
        { "pull_modes/parallel_pull_unpack/decompress_streams/\"gzip\"/path",   "'/usr/bin/unpigz'" },
        { "pull_modes/parallel_pull_unpack/decompress_streams/\"gzip\"/args",   "['-d', '-c']" },
        { NULL }
};

typedef struct Choice {
        unsigned schema;
        Need has;
        const char *runtime, *binary, *socket;
        bool cdi, soci, modern;         /* modern: 1.7 or later, with CDI and exports */
} Choice;

static char *row_value(const Row *row, const Choice *c) {
        const struct { const char *word, *text; } words[] = {
                { "$sandbox", SANDBOX_IMAGE }, { "$runtime", c->runtime }, { "$binary", c->binary },
                { "$spec", RUNTIME_SPEC }, { "$certs", "/etc/containerd/certs.d:/etc/docker/certs.d" },
        };
        if (streq(row->value, "$version"))
                return xasprintf("%u", c->schema);
        if (streq(row->value, "$socket"))
                return xasprintf("'%s'", c->socket);
        if (streq(row->value, "$cdi"))
                return xstrdup(c->cdi ? "true" : "false");
        return PICK(w, words, ARRAY_SIZE(words), streq(row->value, w->word), xasprintf("\"%s\"", w->text),
                    xstrdup(row->value));
}

/* Replaces '%'; drops quotes unless they are kept. */
static char *row_path(const Row *row, const Choice *c, bool quotes) {
        Text t = {};
        for (const char *p = row->path; *p; p++)
                if (*p == '%')
                        text_add(&t, "%s", c->runtime);
                else if (quotes || (*p != '"' && *p != '\''))
                        text_add_bytes(&t, p, 1);
        return text_take(&t);
}

static void put_rows(json_t *into, const Row *rows, const Choice *c) {
        for (const Row *row = rows; row->path; row++) {
                _free_ char *path = row_path(row, c, false), *value = row_value(row, c);
                if ((row->need & ~c->has) == 0)
                        json_put(into, path, json_loads(value, JSON_DECODE_ANY, NULL));
        }
}

/* Starts each table with an empty line and a header. */
static void add_rows(Text *t, const Row *rows, const Choice *c) {
        _free_ char *table = xstrdup("");
        for (const Row *row = rows; row->path; row++) {
                if ((row->need & ~c->has) != 0)
                        continue;
                _free_ char *path = row_path(row, c, true), *value = row_value(row, c);
                char *slash = strrchr(path, '/'), *key = slash ? slash + 1 : path;
                if (slash) {
                        *slash = 0;
                        for (char *p = strchr(path, '/'); p; p = strchr(p, '/'))
                                *p = '.';
                        if (!streq(path, table)) {
                                text_add(t, "\n[%s]\n", path);
                                RENEW(table, xstrdup(path));
                        }
                }
                text_add(t, "%s = %s\n", key, value);
        }
}

static json_t *find_plugin(const json_t *settings, const char *name) {
        return json_object_get(json_object_get(settings, "plugins"), name);
}

/* The user may have TOML for the other schema. containerd 2 converts schema 2 when it reads it, so the whole
 * file is then schema 2. nodeadm runs `containerd config migrate`, which freezes all defaults of that build.
 * containerd 1 silently ignores the tables of schema 3. */
static int choose_schema(const json_t *user, const Host *host, unsigned *ret, Diag *warnings, Diag *diag) {
        bool two = find_plugin(user, CRI_2),
             three = find_plugin(user, RUNTIME_3) || find_plugin(user, IMAGES_3);
        json_int_t said = json_integer_value(json_object_get(user, "version"));
        const char *path = "spec.containerd.config";
        *ret = 2;
        if (!version_at_least(host->containerd_version, 2, 0))
                return !three && said <= 2 ? 0
                        : diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, path,
                                        "is for containerd 2 (schema 3), but containerd %s ignores %s; write "
                                        "it for schema 2 (%s)", host->containerd_version ?: "1",
                                        three ? "its io.containerd.cri.v1 tables" : "settings of schema 3",
                                        CRI_2);
        if (!three && (two || said == 2)) {
                diag_warn_at(warnings, "containerd-schema", NULL, path,
                             "is for containerd 1 (schema 2), so nodestrap writes the whole file in schema "
                             "2, which containerd %s converts at each start. Write it for schema 3 "
                             "(io.containerd.cri.v1.images and .runtime)", host->containerd_version);
                return 0;
        }
        if (two && three)
                diag_warn_at(warnings, "containerd-schema", NULL, path,
                             "has tables of both schemas: tables of io.containerd.grpc.v1.cri that moved to "
                             "io.containerd.cri.v1 have no effect; write it for schema 3");
        *ret = 3;
        return 0;
}

bool plan_sandbox_is_users(const Config *config, const Host *host) {
        const json_t *user = containerd_settings(config, host->containerd_version),
                     *images = find_plugin(user, IMAGES_3),
                     *two = json_object_get(find_plugin(user, CRI_2), "sandbox_image"),
                     *three = json_object_get(json_object_get(images, "pinned_images"), "sandbox");
        const char *name = json_string_value(images || find_plugin(user, RUNTIME_3) ? three : two);
        return name && !streq(name, SANDBOX_IMAGE);
}

bool plan_uses_soci(const Config *config, const Host *host, const char **ret_reason) {
        /* 0 in a model: not known */
        bool small = host->memory_bytes < 7 * GIBIBYTE && !(host->modelled && host->memory_bytes == 0),
             few = host->cpus < 4 && !(host->modelled && host->cpus == 0);
        const char *why_not = few ? "it needs 4 CPUs" : small ? "it needs 7 GiB of memory"
                : !host->soci_snapshotter ? "the SOCI snapshotter is not installed" : NULL;
        *ret_reason = config->gates.fast_image_pull ? why_not : NULL;
        return config->gates.fast_image_pull && !why_not;
}

static void plan_soci(Plan *plan, const Choice *c) {
        _cleanup_(text_done) Text t = {};
        if (!c->soci)
                return;
        add_rows(&t, soci_settings, c);
        plan_file(plan, PHASE_CONFIG, "containerd", SOCI_CONFIG,
                  "FastImagePull: parallel image pulls", t.data, 0644);
        /* SOCI reports that it is ready (Type=notify) before containerd uses it. */
        plan_file(plan, PHASE_CONFIG, "containerd", SOCI_DROP_IN, "start containerd after SOCI",
                  "[Unit]\nRequires=soci-snapshotter.service\nAfter=soci-snapshotter.service\n", 0644);
}

static int choose(Plan *plan, const Config *config, const Host *host, Choice *ret, Diag *diag) {
        const char *reason = NULL;
        Choice c = {
                .runtime = host->nvidia_runtime ? "nvidia" : "runc",
                .binary = host->nvidia_runtime ? NVIDIA_RUNTIME : "/usr/sbin/runc",
                .socket = plan_containerd_socket(config, host, plan->as_nodeadm),
                .cdi = version_at_least(host->kubelet_version, 1, 32),
                .modern = version_at_least(host->containerd_version, 1, 7),
                .soci = plan_uses_soci(config, host, &reason),
        };
        c.has = (c.soci ? NEED_SOCI : 0) |
                (version_at_least(host->containerd_version, 2, 1) ? NEED_2_1 : NEED_UP_TO_2_0);
        if (c.cdi && !c.modern)
                diag_warn(&plan->warnings, "no-cdi",
                          "containerd %s does not know CDI: containers get no devices by CDI; install 1.7 or "
                          "later", host->containerd_version);
        if (reason)
                diag_warn_at(&plan->warnings, "no-fast-image-pull", NULL, "spec.featureGates.FastImagePull",
                             "has no effect here: %s", reason);
        const json_t *user = containerd_settings(config, host->containerd_version);
        int r = choose_schema(user, host, &c.schema, &plan->warnings, diag);
        if (r >= 0)
                *ret = c;
        return r;
}

/* Without TOML of the user: the layout of nodeadm, to the byte. */
static char *own_text(const Choice *c) {
        Text t = {};
        add_rows(&t, top, c);
        add_rows(&t, c->schema == 2 ? schema_2 : schema_3, c);
        text_add(&t, "\n");
        add_rows(&t, bottom, c);
        if (c->soci)
                t.data[--t.size] = 0;
        return text_take(&t);
}

static json_t *images_of(const json_t *settings, const Choice *c, const char *key) {
        return json_object_get(find_plugin(settings, c->schema == 2 ? CRI_2 : IMAGES_3), key);
}

/* Since 2.1 containerd pulls via the transfer service unless a setting prevents it
 * (internal/cri/config/config.go: CheckLocalImagePullConfigs()). */
static bool uses_transfer(const json_t *all, const Choice *c) {
        static const char tables[][8] = { "mirrors", "configs", "auths" };
        const json_t *images = find_plugin(all, c->schema == 2 ? CRI_2 : IMAGES_3),
                     *snapshots = c->schema == 2 ? json_object_get(images, "containerd") : images,
                     *downloads = json_object_get(images, "max_concurrent_downloads");
        for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
                if (json_object_size(json_object_get(json_object_get(images, "registry"), tables[i])) > 0)
                        return false;
        return c->has & NEED_2_1 && !json_is_true(json_object_get(snapshots, "discard_unpacked_layers")) &&
               !json_is_false(json_object_get(snapshots, "disable_snapshot_annotations")) &&
               !json_is_true(json_object_get(images, "image_pull_with_sync_fs")) &&
               /* only in schema 3 (plugins/cri/images/plugin.go: migrateConfig()) */
               !(c->schema == 3 && json_is_true(json_object_get(images, "use_local_image_pull"))) &&
               (!downloads || json_integer_value(downloads) == 3);
}

/* Drops our settings that disable CRI beside those of the user; said gets the reasons. */
static void yield_to_user(const Plan *plan, json_t *all, const json_t *user, const Choice *c, Text *said) {
        static const char *const tables[] = { "mirrors", "configs" };
        const json_t *registry = images_of(user, c, "registry");
        /* from 2.1 on a setting has two names; in schema 2 the older wins */
        const char *plugin = c->schema == 2 ? CRI_2 : RUNTIME_3,
                   *theirs = c->schema == 2 ? "bin_dirs" : "bin_dir",
                   *ours = c->schema == 2 ? "bin_dir" : "bin_dirs";
        const json_t *cni = json_object_get(find_plugin(user, plugin), "cni");
        if (c->has & NEED_2_1 && json_object_get(cni, theirs) && !json_object_get(cni, ours) &&
            json_object_del(json_object_get(find_plugin(all, plugin), "cni"), ours) == 0)
                text_add(said, "; cni.%s left out because of cni.%s", ours, theirs);
        if (plan->as_nodeadm || json_object_get(registry, "config_path"))
                return;                 /* a warning says so */
        for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
                if (json_object_size(json_object_get(registry, tables[i])) > 0 &&
                    json_object_del(images_of(all, c, "registry"), "config_path") == 0)
                        text_add(said, "; without registry.config_path because of registry.%s", tables[i]);
}

/* containerd/containerd#12415, #12808: the transfer service takes a list of folders for one folder. */
static void yield_to_transfer(json_t *all, const json_t *user, const Choice *c, Text *said) {
        json_t *registry = images_of(all, c, "registry");
        if (!json_object_get(registry, "config_path") ||
            json_object_get(images_of(user, c, "registry"), "config_path") || !uses_transfer(all, c))
                return;
        text_add(said, "; one folder in registry.config_path for the transfer service");
        json_set_text(registry, "config_path", "/etc/containerd/certs.d");
}

/* From 2.3 on the table of the server plugin replaces [grpc] (cmd/containerd/server/config/config.go:
 * serviceMigrate()). With as_nodeadm, kubelet gets the nodeadm path. */
const char *plan_containerd_socket(const Config *config, const Host *host, bool as_nodeadm) {
        const json_t *user = as_nodeadm ? NULL : containerd_settings(config, host->containerd_version);
        const json_t *server = version_at_least(host->containerd_version, 2, 3)
                                       ? find_plugin(user, CONTAINERD_SERVER) : NULL;
        const char *socket = json_get_text(server ?: json_object_get(user, "grpc"), "address");
        return *socket ? socket : CONTAINERD_SOCKET;
}

static json_t *merged(const Plan *plan, const json_t *user, const Choice *c, Text *said) {
        json_t *all = json_object();
        put_rows(all, top, c);
        put_rows(all, c->schema == 2 ? schema_2 : schema_3, c);
        put_rows(all, bottom, c);
        yield_to_user(plan, all, user, c, said);
        if (user)
                json_merge_deep(all, user);
        if (!plan->as_nodeadm)
                yield_to_transfer(all, user, c, said);
        json_object_set_new(all, "version", json_integer(c->schema));
        return all;
}

static void foretell(void *context, const char *path, const char *fault, bool certain) {
        Plan *plan = context;
        diag_warn_at(&plan->warnings, "containerd-setting", NULL, path, "%s%s", fault,
                     containerd_consequence(fault));
        if (certain && !plan->as_nodeadm)       /* nodeadm writes it anyway */
                diag_foretell(&plan->warnings, CAUSE_INVALID);
}

static void tell_passed_over(void *context, const char *path, const char *fault, _unused_ const char *near) {
        Plan *plan = context;
        diag_warn_at(&plan->warnings, "containerd-setting", NULL, path, "%s", fault);
}

static void judge(Plan *plan, const Config *config, const Host *host, const Choice *c, const json_t *all) {
        ContainerdGiven given = { .all = all, .user = containerd_settings(config, host->containerd_version),
                                  .spec = config->containerd.base_runtime_spec, .schema = c->schema,
                                  .version = containerd_version(host->containerd_version), .whole = true };
        if (!given.user && !given.spec)
                return;
        const char *path = "spec.containerd.config.grpc.address";
        if (!streq(plan_containerd_socket(config, host, false), c->socket))
                diag_warn_at(&plan->warnings, "containerd-setting", NULL, path,
                             "differs from %s, the socket that kubelet uses under the name nodeadm",
                             c->socket);
        (void)!containerd_judge(&given, foretell, plan);
        if (given.version)
                containerd_look(&given, tell_passed_over, plan);
}

static int plan_config(Plan *plan, const Config *config, const Host *host, const Choice *c, Diag *diag) {
        const json_t *user = containerd_settings(config, host->containerd_version);
        _cleanup_(text_done) Text said = {};
        _cleanup_(json_decrefp) json_t *all = merged(plan, user, c, &said);
        _free_ char *text = NULL;
        if (json_object_size(user) == 0)
                text = own_text(c);
        else {
                int r = toml_format(all, &text);
                if (r < 0)
                        return diag_error_at(diag, r, CAUSE_INVALID, NULL, "spec.containerd.config",
                                             "cannot be written as TOML: %s",
                                             r == -E2BIG ? "each table repeats the names of the tables "
                                                           "above it, and the text becomes too long; "
                                                           "shorten those names"
                                                         : "remove any null from it");
        }
        _free_ char *why =
                xasprintf("containerd %s, schema %u; runtime %s%s%s%s%s", host->containerd_version, c->schema,
                          c->runtime, c->cdi ? ", CDI" : "", c->soci ? ", SOCI" : "",
                          json_object_size(user) > 0 ? "; merged with user TOML" : "", said.data ?: "");
        plan_users_file(plan, "containerd", CONTAINERD_CONFIG, why, text, json_object_size(user) > 0,
                        json_holds_secret(user));
        judge(plan, config, host, c, all);
        return 0;
}

/* For src/pull. It asks SOCI for images, as kubelet does, where SOCI runs and must see the login. */
static void plan_images(Plan *plan, const Config *config, const Host *host, const Choice *c) {
        const char *provider = host->image_credential_provider;
        if (!config->containerd.pre_pull)
                return;
        json_t *all = json_pack("{so ss ss*}", "images", json_list(config->containerd.pre_pull), "socket",
                                c->soci ? SOCI_SOCKET : c->socket, "provider",
                                provider && strchr(provider, '/') ? provider : NULL);
        _free_ char *text = json_text(all, 2, false), *list = strv_join(config->containerd.pre_pull, ", ");
        json_decref(all);
        plan_file(plan, PHASE_CONFIG, "containerd", PRE_PULL_CONFIG, list, text, 0644);
}

int plan_containerd(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        Choice c = {};
        int r = choose(plan, config, host, &c, diag);
        THEN(r, plan_config(plan, config, host, &c, diag));
        if (r < 0)
                return r;
        plan_runtime_spec(plan, config->containerd.base_runtime_spec, plan_uses_efa(config, host));
        if (plan_uses_efa(config, host))
                plan_file(plan, PHASE_CONFIG, "containerd", MEMLOCK_DROP_IN,
                          "let containers lock memory for EFA", "[Service]\nLimitMEMLOCK=infinity\n", 0644);
        plan_soci(plan, &c);
        plan_images(plan, config, host, &c);
        return 0;
}
