/* SPDX-License-Identifier: Apache-2.0 */
/* containerd's configuration: schema 2 for 1.x, 3 for 2.x, the user's TOML merged over it; the SOCI
 * snapshotter where FastImagePull asks for it and the machine is large enough. Settings as nodeadm's
 * (internal/containerd); names as in containerd's docs/cri/config.md. The files' effect is checked against
 * `containerd config dump`, since containerd ignores what it does not know. */
#include "plan/planner.h"
#include "base/str.h"
#include <errno.h>

#define CONFIG_FILE      "/etc/containerd/config.toml"
#define SOCI_DROP_IN     UNIT_DIR "/containerd.service.d/10-soci-snapshotter.conf"
#define MEMLOCK_DROP_IN  UNIT_DIR "/containerd.service.d/40-nodestrap-memlock.conf"
#define GIBIBYTE         (1ULL << 30)

#define CRI_2     "plugins/io.containerd.grpc.v1.cri"
#define RUNTIME_3 "plugins/io.containerd.cri.v1.runtime"
#define IMAGES_3  "plugins/io.containerd.cri.v1.images"

/* From which version on containerd knows it: 1.6 knows neither CDI nor exports. */
typedef enum Need { NEED_NOTHING, NEED_SOCI = 1, NEED_1_7 = 2, NEED_2_1 = 4 } Need;
/* value is JSON, or one of the $words below; '%' in a path is the runtime's name. */
typedef struct Row { const char *path, *value; Need need; } Row;
/* In schema 2 and 3 alike. */
static const Row both[] = {
        { "root",                         "\"" CONTAINERD_DIR "\"" },
        { "state",                        "\"/run/containerd\"" },
        { "grpc/address",                 "\"" CONTAINERD_SOCKET "\"" },
        { "proxy_plugins/soci/type",      "\"snapshot\"", NEED_SOCI },
        { "proxy_plugins/soci/address",
          "\"/run/soci-snapshotter-grpc/soci-snapshotter-grpc.sock\"", NEED_SOCI },
        { "proxy_plugins/soci/exports/root", "\"" SOCI_DIR "\"", NEED_SOCI | NEED_1_7 },
        { NULL }
};
static const Row schema_2[] = {
        { CRI_2 "/sandbox_image",                                               "$sandbox" },
        { CRI_2 "/enable_cdi",                                                  "$cdi", NEED_1_7 },
        { CRI_2 "/registry/config_path",                                        "$certs" },
        { CRI_2 "/cni/bin_dir",                                                 "\"/opt/cni/bin\"" },
        { CRI_2 "/cni/conf_dir",                                                "\"/etc/cni/net.d\"" },
        { CRI_2 "/containerd/default_runtime_name",                             "$runtime" },
        { CRI_2 "/containerd/discard_unpacked_layers",                          "true" },
        { CRI_2 "/containerd/snapshotter",                                      "\"soci\"", NEED_SOCI },
        { CRI_2 "/containerd/disable_snapshot_annotations",                     "false", NEED_SOCI },
        { CRI_2 "/containerd/runtimes/%/runtime_type",                          "\"io.containerd.runc.v2\"" },
        { CRI_2 "/containerd/runtimes/%/base_runtime_spec",                     "$spec" },
        { CRI_2 "/containerd/runtimes/%/options/BinaryName",                    "$binary" },
        { CRI_2 "/containerd/runtimes/%/options/SystemdCgroup",                 "true" },
        { NULL }
};
static const Row schema_3[] = {
        { IMAGES_3 "/discard_unpacked_layers",                                  "true" },
        { IMAGES_3 "/snapshotter",                                              "\"soci\"", NEED_SOCI },
        { IMAGES_3 "/disable_snapshot_annotations",                             "false", NEED_SOCI },
        { IMAGES_3 "/pinned_images/sandbox",                                    "$sandbox" },
        { IMAGES_3 "/registry/config_path",                                     "$certs" },
        { RUNTIME_3 "/enable_cdi",                                              "$cdi" },
        /* containerd 2.0 has this by default */
        { RUNTIME_3 "/cni/bin_dirs",                        "[\"/opt/cni/bin\"]", NEED_2_1 },
        { RUNTIME_3 "/cni/conf_dir",                                            "\"/etc/cni/net.d\"" },
        { RUNTIME_3 "/containerd/default_runtime_name",                         "$runtime" },
        { RUNTIME_3 "/containerd/runtimes/%/runtime_type",                      "\"io.containerd.runc.v2\"" },
        { RUNTIME_3 "/containerd/runtimes/%/base_runtime_spec",                 "$spec" },
        { RUNTIME_3 "/containerd/runtimes/%/options/BinaryName",                "$binary" },
        { RUNTIME_3 "/containerd/runtimes/%/options/SystemdCgroup",             "true" },
        { NULL }
};
static const Row soci_settings[] = {    /* of the snapshotter's own file */
        { "debug",                                                              "false" },
        { "content_store/type",                                                 "\"containerd\"" },
        { "cri_keychain/enable_keychain",                                       "true" },
        { "cri_keychain/image_service_path",                                    "\"" CONTAINERD_SOCKET "\"" },
        { "pull_modes/parallel_pull_unpack/enable",                             "true" },
        { "pull_modes/parallel_pull_unpack/concurrent_download_chunk_size",     "\"16mb\"" },
        { "pull_modes/parallel_pull_unpack/discard_unpacked_layers",            "true" },
        { "pull_modes/parallel_pull_unpack/max_concurrent_downloads",           "-1" },
        { "pull_modes/parallel_pull_unpack/max_concurrent_downloads_per_image", "20" },
        { "pull_modes/parallel_pull_unpack/max_concurrent_unpacks",             "-1" },
        { "pull_modes/parallel_pull_unpack/max_concurrent_unpacks_per_image",   "12" },
        { "pull_modes/parallel_pull_unpack/decompress_streams/gzip/path",       "\"/usr/bin/unpigz\"" },
        { "pull_modes/parallel_pull_unpack/decompress_streams/gzip/args",       "[\"-d\", \"-c\"]" },
        { NULL }
};

typedef struct Choice { unsigned schema; Need has; const char *runtime, *binary; bool cdi, soci; } Choice;

static json_t *row_value(const Row *row, const Choice *c) {
        const struct { const char *word, *text; } words[] = {
                { "$sandbox", SANDBOX_IMAGE }, { "$runtime", c->runtime }, { "$binary", c->binary },
                { "$spec", RUNTIME_SPEC }, { "$certs", "/etc/containerd/certs.d:/etc/docker/certs.d" },
        };
        if (streq(row->value, "$cdi"))
                return json_boolean(c->cdi);
        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
                if (streq(row->value, words[i].word))
                        return json_string(words[i].text);
        return json_loads(row->value, JSON_DECODE_ANY, NULL);
}

static void put_rows(json_t *into, const Row *rows, const Choice *c) {
        for (const Row *row = rows; row->path; row++) {
                const char *name = strchr(row->path, '%');
                _cleanup_(freep) char *path = !name ? xstrdup(row->path)
                        : xasprintf("%.*s%s%s", (int)(name - row->path), row->path, c->runtime, name + 1);
                if ((row->need & ~c->has) == 0)
                        json_put(into, path, row_value(row, c));
        }
}

/* ---- which schema ---- */

/* path: as in the rows above. */
static json_t *find_plugin(const json_t *settings, const char *path) {
        return json_object_get(json_object_get(settings, "plugins"), path + strlen("plugins/"));
}

/* The user may have written TOML for the other schema. containerd 2 converts schema 2 as it reads it, so that
 * is then what the whole file is written in, as nodeadm does too; containerd 1 knows no schema 3 and would
 * ignore those tables without a word. */
static unsigned choose_schema(const json_t *user, const Host *host, Diag *warnings) {
        bool two = find_plugin(user, CRI_2),
             three = find_plugin(user, RUNTIME_3) || find_plugin(user, IMAGES_3);
        json_int_t said = json_integer_value(json_object_get(user, "version"));
        const char *path = "spec.containerd.config";
        if (!version_at_least(host->containerd_version, 2, 0)) {
                if (three || said > 2)
                        diag_warn_at(warnings, "containerd-schema", NULL, path,
                                     "is written for containerd 2 (schema 3), and containerd %s ignores %s; "
                                     "write it for schema 2 (%s)",
                                     host->containerd_version,
                                     three ? "its io.containerd.cri.v1 tables" : "settings of that schema",
                                     "io.containerd.grpc.v1.cri");
                return 2;
        }
        if (!three && (two || said == 2)) {
                diag_warn_at(warnings, "containerd-schema", NULL, path,
                             "is written for containerd 1 (schema 2), so the whole file is; containerd %s "
                             "converts it each time it starts. Write it for "
                             "schema 3 (io.containerd.cri.v1.images and .runtime)",
                             host->containerd_version);
                return 2;
        }
        if (two && three)
                diag_warn_at(warnings, "containerd-schema", NULL, path,
                             "has tables of both schemas; those of io.containerd.grpc.v1.cri that moved to "
                             "io.containerd.cri.v1 have no effect");
        return 3;
}

/* ---- SOCI ---- */

bool plan_uses_soci(const Config *config, const Host *host, const char **ret_reason) {
        /* 0: not known */
        bool small = host->memory_bytes < 7 * GIBIBYTE && !(host->modelled && host->memory_bytes == 0);
        const char *why_not = host->cpus < 4 ? "it needs 4 CPUs" : small ? "it needs 7 GiB of memory"
                : !host->soci_snapshotter ? "the SOCI snapshotter is not installed" : NULL;
        *ret_reason = config->gates.fast_image_pull ? why_not : NULL;
        return config->gates.fast_image_pull && !why_not;
}

static int format_toml(const json_t *object, const char *path, char **ret, Diag *diag) {
        int r = toml_format(object, ret);
        if (r < 0)
                return diag_error_at(diag, r, CAUSE_INVALID, NULL, path, "cannot be written as TOML: %s",
                                     r == -E2BIG ? "its tables have names too long to repeat them that often"
                                                 : "is there a null in it?");
        return 0;
}

/* SOCI says that it is ready (Type=notify) before containerd asks it for the first time. */
static void plan_soci_drop_in(Plan *plan) {
        plan_file(plan, PHASE_CONFIG, "containerd", SOCI_DROP_IN, "containerd starts behind SOCI",
                  "[Unit]\nRequires=soci-snapshotter.service\nAfter=soci-snapshotter.service\n", 0644);
}

static int plan_soci(Plan *plan, const Choice *c, Diag *diag) {
        if (!c->soci)
                return 0;
        json_t *all = json_object();
        put_rows(all, soci_settings, c);
        _cleanup_(freep) char *text = NULL;
        int r = format_toml(all, "spec.featureGates.FastImagePull", &text, diag);
        json_decref(all);
        if (r < 0)
                return r;
        plan_file(plan, PHASE_CONFIG, "containerd", SOCI_CONFIG,
                  "FastImagePull: images are fetched and unpacked in parallel", text, 0644);
        plan_soci_drop_in(plan);
        return 0;
}

/* ---- the file ---- */

static Choice choose(Plan *plan, const Config *config, const Host *host) {
        const char *reason = NULL;
        Choice c = {
                .schema = choose_schema(config->containerd.config, host, &plan->warnings),
                .runtime = host->nvidia_runtime ? "nvidia" : "runc",
                .binary = host->nvidia_runtime ? NVIDIA_RUNTIME : "/usr/sbin/runc",
                .cdi = version_at_least(host->kubelet_version, 1, 32),
                .soci = plan_uses_soci(config, host, &reason),
        };
        bool modern = version_at_least(host->containerd_version, 1, 7);
        c.has = (c.soci ? NEED_SOCI : 0) | (modern ? NEED_1_7 : 0) |
                (version_at_least(host->containerd_version, 2, 1) ? NEED_2_1 : 0);
        if (c.cdi && !modern)
                diag_warn(&plan->warnings, "no-cdi",
                          "containerd %s knows no CDI; devices that are given to containers by it need 1.7",
                          host->containerd_version);
        c.cdi = c.cdi && modern;
        if (reason)
                diag_warn_at(&plan->warnings, "no-fast-image-pull", NULL, "spec.featureGates.FastImagePull",
                             "has no effect here: %s", reason);
        return c;
}

/* containerd loads no CRI at all when both bin_dir, which 2.1 made another name for, and bin_dirs are set. */
static void yield_to_user(json_t *all, const json_t *user) {
        if (json_object_get(json_object_get(find_plugin(user, RUNTIME_3), "cni"), "bin_dir"))
                json_object_del(json_object_get(find_plugin(all, RUNTIME_3), "cni"), "bin_dirs");
}

static int plan_config(Plan *plan, const Config *config, const Host *host, const Choice *c, Diag *diag) {
        json_t *user = config->containerd.config, *all = json_pack("{si}", "version", (int)c->schema);
        put_rows(all, both, c);
        put_rows(all, c->schema == 2 ? schema_2 : schema_3, c);
        if (user) {
                yield_to_user(all, user);
                json_merge_deep(all, user);
                json_object_set_new(all, "version", json_integer(c->schema));
        }
        _cleanup_(freep) char *text = NULL;
        int r = format_toml(all, "spec.containerd.config", &text, diag);
        json_decref(all);
        if (r < 0)
                return r;
        _cleanup_(freep) char *why = xasprintf(
                "containerd %s, schema %u; runtime %s%s%s%s", host->containerd_version, c->schema, c->runtime,
                c->cdi ? ", CDI" : "", c->soci ? ", SOCI" : "", user ? "; the user's TOML merged in" : "");
        plan_file(plan, PHASE_CONFIG, "containerd", CONFIG_FILE, why, text,
                  json_holds_secret(user) ? 0600 : 0644);
        return 0;
}

int plan_containerd(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        Choice c = choose(plan, config, host);
        int r = plan_config(plan, config, host, &c, diag);
        if (r < 0)
                return r;
        plan_runtime_spec(plan, config->containerd.base_runtime_spec, plan_uses_efa(config, host));
        if (plan_uses_efa(config, host))
                plan_file(plan, PHASE_CONFIG, "containerd", MEMLOCK_DROP_IN,
                          "EFA: no limit on the memory that containers lock",
                          "[Service]\nLimitMEMLOCK=infinity\n", 0644);
        return plan_soci(plan, &c, diag);
}
