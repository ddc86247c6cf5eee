/* SPDX-License-Identifier: Apache-2.0 */
/* tests/check/containerd.sh proves with real versions that containerd accepts each of these settings. */
#include "sample.h"

#define CONFIG "/etc/containerd/config.toml"
#define SPEC   "/etc/containerd/base-runtime-spec.json"

static void assert_toml(const Sample *s, const char *file, const char *path, const char *want) {
        const Action *a = sample_file(s, file);
        json_t *all = NULL;
        unsigned line = 0;
        const char *why = NULL;
        if (toml_parse(a->file.content, a->file.size, &all, &line, &why) < 0)
                FAIL("%s:%u: %s", file, line, why);
        const json_t *at = all;
        _free_ char *rest = xstrdup(path);
        for (char *key = strtok(rest, "/"); key; key = strtok(NULL, "/"))
                at = json_object_get(at, key);
        _free_ char *text = at ? json_dumps(at, JSON_COMPACT | JSON_ENCODE_ANY) : xstrdup("absent");
        if (!streq(text, want))
                FAIL("%s is %s, want %s", path, text, want);
        json_decref(all);
}

static void set_versions(Sample *s, const char *kubelet, const char *containerd) {
        static char k[16], c[16];
        snprintf(k, sizeof(k), "%s", kubelet);
        snprintf(c, sizeof(c), "%s", containerd);
        s->host.kubelet_version = k;
        s->host.containerd_version = c;
}

TEST(schema_2) {
        _cleanup_(sample_done) Sample s = sample_new();
        set_versions(&s, "1.31.9", "1.7.27");
        sample_plan(&s);
        assert_toml(&s, CONFIG, "version", "2");
        assert_toml(&s, CONFIG, "plugins/io.containerd.grpc.v1.cri/sandbox_image", "\"localhost/kubernetes/pause:latest\"");
        assert_toml(&s, CONFIG, "plugins/io.containerd.grpc.v1.cri/enable_cdi", "false");
        assert_toml(&s, CONFIG, "plugins/io.containerd.grpc.v1.cri/containerd/default_runtime_name", "\"runc\"");
        assert_toml(&s, CONFIG, "plugins/io.containerd.grpc.v1.cri/containerd/runtimes/runc/options", "{\"BinaryName\":\"/usr/sbin/runc\",\"SystemdCgroup\":true}");
        assert_toml(&s, CONFIG, "proxy_plugins", "absent");
        set_versions(&s, "1.32.0", "1.7.27");
        sample_plan(&s);
        assert_toml(&s, CONFIG, "plugins/io.containerd.grpc.v1.cri/enable_cdi", "true");
}

TEST(schema_3_with_nvidia) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.host.nvidia_runtime = true;
        sample_plan(&s);
        assert_toml(&s, CONFIG, "version", "3");
        assert_toml(&s, CONFIG, "plugins/io.containerd.cri.v1.images/pinned_images/sandbox", "\"localhost/kubernetes/pause:latest\"");
        assert_toml(&s, CONFIG, "plugins/io.containerd.cri.v1.runtime/containerd/default_runtime_name", "\"nvidia\"");
        assert_toml(&s, CONFIG, "plugins/io.containerd.cri.v1.runtime/containerd/runtimes/nvidia/base_runtime_spec", "\"" SPEC "\"");
        assert_toml(&s, CONFIG, "plugins/io.containerd.cri.v1.runtime/containerd/runtimes/nvidia/options/BinaryName", "\"/usr/bin/nvidia-container-runtime\"");
        assert_toml(&s, CONFIG, "plugins/io.containerd.cri.v1.runtime/containerd/runtimes/runc", "absent");
        assert_toml(&s, CONFIG, "plugins/io.containerd.cri.v1.runtime/cni/bin_dirs", "[\"/opt/cni/bin\"]");
}

/* kubelet, the CRI request and ctr use the socket of containerd, which from 2.3 on a plugin may set. */
TEST(the_plan_uses_another_socket_of_containerd) {
        static const struct { const char *version, *toml, *socket; } cases[] = {
                { "2.1.5", "{'grpc': {'address': '/run/a.sock'}}", "/run/a.sock" },
                { "2.1.5", "{'grpc': {'address': '/run/containerd/containerd.sock'}}", "" },
                { "2.1.5", "{'plugins': {'io.containerd.server.v1.grpc': {'address': '/run/b.sock'}}}", "" },
                { "2.3.0", "{'plugins': {'io.containerd.server.v1.grpc': {'address': '/run/b.sock'}}}", "/run/b.sock" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                set_versions(&s, "1.33.4", cases[i].version);
                s.config.containerd.config = sample_json(&s, cases[i].toml);
                sample_plan(&s);
                const Action *containerd = plan_find(s.plan, "start-unit:containerd.service"), *import = plan_find(s.plan, "import-image:/etc/eks/pause.tar");
                ASSERT_STREQ(containerd->with ?: "", cases[i].socket);
                ASSERT_STREQ(import->image.socket ?: "", cases[i].socket);
        }
}

TEST(toml_of_the_user_is_merged) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.config.containerd.config = sample_json(&s, "{'plugins': {'io.containerd.cri.v1.images': {'discard_unpacked_layers': false, 'max_concurrent_downloads': 9}}, 'metrics': {'address': '127.0.0.1:1'}}");
        sample_plan(&s);
        assert_toml(&s, CONFIG, "plugins/io.containerd.cri.v1.images/discard_unpacked_layers", "false");
        assert_toml(&s, CONFIG, "plugins/io.containerd.cri.v1.images/max_concurrent_downloads", "9");
        assert_toml(&s, CONFIG, "plugins/io.containerd.cri.v1.images/pinned_images/sandbox", "\"localhost/kubernetes/pause:latest\"");
        assert_toml(&s, CONFIG, "metrics/address", "\"127.0.0.1:1\"");
        ASSERT_TRUE(!sample_warned(&s, "containerd-schema"));
        ASSERT_TRUE(sample_file(&s, CONFIG)->secret && sample_file(&s, CONFIG)->file.mode == 0600);
}

TEST(toml_of_the_other_schema) {
        static const struct { const char *containerd, *user, *version; bool warned; } cases[] = {
                { "2.1.5",  "{'plugins': {'io.containerd.grpc.v1.cri': {'x': 1}}}",                            "2", true },     /* containerd converts it */
                { "2.1.5",  "{'version': 2, 'metrics': {'address': '127.0.0.1:1'}}",                                     "2", true },
                { "2.1.5",  "{'version': 3}",                                                                  "3", false },
                { "2.1.5",  "{'plugins': {'io.containerd.grpc.v1.cri': {}, 'io.containerd.cri.v1.images': {}}}", "3", true },
                { "2.1.5",  "{'debug': {'level': 'debug'}}",                                                   "3", false },
                { "1.7.27", "{'plugins': {'io.containerd.cri.v1.runtime': {'x': 1}}}",                         NULL, false },
                { "1.7.27", "{'plugins': {'io.containerd.cri.v1.images': {}}}",                                NULL, false },
                { "1.7.27", "{'version': 3}",                                                                  NULL, false },
                { "1.7.27", "{'version': 2, 'plugins': {'io.containerd.grpc.v1.cri': {'x': 1}}}",              "2", false },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                set_versions(&s, "1.33.4", cases[i].containerd);
                s.config.containerd.config = sample_json(&s, cases[i].user);
                if (!cases[i].version) {
                        ASSERT_ERROR(plan_make(&s.config, &s.host, &s.options, &(Plan *){ NULL }, &s.diag), EINVAL);
                        ASSERT_CONTAINS(diag_first_error(&s.diag)->text, "containerd 1.7.27");
                        continue;
                }
                sample_plan(&s);
                assert_toml(&s, CONFIG, "version", cases[i].version);
                if (sample_warned(&s, "containerd-schema") != cases[i].warned)
                        FAIL("case %zu: warned or not", i);
        }
}

TEST(sandbox_image) {
        static const struct { const char *version, *user; bool planned; } cases[] = {
                { "2.1.5", "{}", true },
                { "1.7.27", "{}", true },
                { "2.1.5", "{'plugins': {'io.containerd.cri.v1.images': {'pinned_images': {'sandbox': 'r/pause:1'}}}}", false },
                { "2.1.5", "{'plugins': {'io.containerd.cri.v1.images': {'pinned_images': {'sandbox': 'localhost/kubernetes/pause:latest'}}}}", true },
                { "2.1.5", "{'plugins': {'io.containerd.grpc.v1.cri': {'sandbox_image': 'r/pause:1'}}}", false },
                { "1.7.27", "{'plugins': {'io.containerd.grpc.v1.cri': {'sandbox_image': 'r/pause:1'}}}", false },
                /* sandbox_image has no effect there */
                { "2.1.5", "{'plugins': {'io.containerd.grpc.v1.cri': {'sandbox_image': 'r/pause:1'}, 'io.containerd.cri.v1.runtime': {'enable_cdi': true}}}", true },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                set_versions(&s, "1.33.4", cases[i].version);
                s.config.containerd.config = sample_json(&s, cases[i].user);
                if (!!plan_find(sample_plan(&s), "import-image:/etc/eks/pause.tar") != cases[i].planned)
                        FAIL("case %zu: planned or not", i);
                if (!cases[i].planned)
                        continue;
                ASSERT_TRUE(!strv_contains(plan_find(s.plan, "start-unit:containerd.service")->after, "import-image:/etc/eks/pause.tar"));
                ASSERT_TRUE(strv_contains(plan_find(s.plan, "write-file:/run/nodestrap/kubelet-may-start")->after, "import-image:/etc/eks/pause.tar"));
        }
}

TEST(soci) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.config.gates.fast_image_pull = true;
        sample_plan(&s);
        ASSERT_TRUE(sample_warned(&s, "no-fast-image-pull"));           /* not installed */
        s.host.soci_snapshotter = true;
        sample_plan(&s);
        ASSERT_TRUE(!sample_warned(&s, "no-fast-image-pull"));
        assert_toml(&s, CONFIG, "plugins/io.containerd.cri.v1.images/snapshotter", "\"soci\"");
        assert_toml(&s, CONFIG, "proxy_plugins/soci/type", "\"snapshot\"");
        assert_toml(&s, "/etc/soci-snapshotter-grpc/config.toml", "pull_modes/parallel_pull_unpack/max_concurrent_unpacks", "-1");
        const Action *containerd = plan_find(s.plan, "start-unit:containerd.service"), *soci = plan_find(s.plan, "start-unit:soci-snapshotter.service");
        ASSERT_TRUE(strv_contains(containerd->after, "write-file:/etc/systemd/system/containerd.service.d/10-soci-snapshotter.conf"));
        ASSERT_TRUE(!strv_contains(containerd->after, "write-file:/etc/soci-snapshotter-grpc/config.toml"));
        ASSERT_TRUE(strv_contains(soci->after, "write-file:/etc/soci-snapshotter-grpc/config.toml"));
        ASSERT_TRUE(strv_contains(containerd->after, "start-unit:soci-snapshotter.service"));
        ASSERT_STREQ(sample_file(&s, "/etc/systemd/system/containerd.service.d/10-soci-snapshotter.conf")->file.content,
                     "[Unit]\nRequires=soci-snapshotter.service\nAfter=soci-snapshotter.service\n");
        const Action *import = plan_find(s.plan, "import-image:/etc/eks/pause.tar"), *turn = plan_find(s.plan, "write-file:/run/nodestrap/kubelet-may-start");
        ASSERT_TRUE(strv_contains(import->after, "start-unit:containerd.service") && strv_contains(turn->after, "import-image:/etc/eks/pause.tar"));
        ASSERT_STREQ(import->with, "localhost/kubernetes/pause:latest");
        ASSERT_TRUE(!import->image.store);      /* the default directory */
        const Action *pin = plan_find(s.plan, "pin-image:localhost/kubernetes/pause:latest");
        ASSERT_TRUE(strv_contains(pin->after, "import-image:/etc/eks/pause.tar") && pin->lenient);
        ASSERT_TRUE(!strv_contains(turn->after, pin->id));      /* kubelet starts beside it */
        ASSERT_STREQ(import->image.snapshotter, "soci");
        ASSERT_STREQ(import->image.options[0], "--local");
        set_versions(&s, "1.33.4", "1.7.27");
        sample_plan(&s);
        assert_toml(&s, CONFIG, "plugins/io.containerd.grpc.v1.cri/containerd/snapshotter", "\"soci\"");
        s.host.memory_bytes = (7ULL << 30) - 1;
        sample_plan(&s);
        assert_toml(&s, CONFIG, "proxy_plugins", "absent");
        s.host.memory_bytes = 7ULL << 30;
        s.host.cpus = 3;
        sample_plan(&s);
        ASSERT_TRUE(sample_warned(&s, "no-fast-image-pull"));
}

/* No step waits for images, and their list does not restart containerd. */
TEST(images_are_pulled_before_pods_and_hold_up_nothing) {
        static char first[] = "a.io/b:1", second[] = "c", *images[] = { first, second, NULL };
        _cleanup_(sample_done) Sample s = sample_new();
        ASSERT_TRUE(!plan_find(sample_plan(&s), "start-unit:nodestrap-pre-pull.service"));
        s.config.containerd.pre_pull = images;
        sample_plan(&s);
        const Action *file = sample_file(&s, "/etc/nodestrap/pre-pull.json"), *pull = plan_find(s.plan, "start-unit:nodestrap-pre-pull.service");
        ASSERT_CONTAINS(file->file.content, "\"a.io/b:1\",\n    \"c\"\n");
        ASSERT_CONTAINS(file->file.content, "\"socket\": \"/run/containerd/containerd.sock\"");
        ASSERT_CONTAINS(file->file.content, "\"provider\": \"/etc/eks/image-credential-provider/ecr-credential-provider\"");
        ASSERT_STREQ(file->why, "a.io/b:1, c");
        ASSERT_TRUE(pull->lenient && strv_contains(pull->after, "start-unit:containerd.service") && strv_contains(pull->after, file->id));
        ASSERT_TRUE(strv_contains(pull->unit.reads, file->target));
        for (const Action *a = s.plan->actions; a < s.plan->actions + s.plan->n; a++)
                ASSERT_TRUE(!strv_contains(a->after, pull->id) && !strv_contains(a->after_any, pull->id));
        ASSERT_TRUE(!strv_contains(plan_find(s.plan, "start-unit:containerd.service")->unit.reads, file->target));
        /* SOCI has to see the login */
        s.config.gates.fast_image_pull = s.host.soci_snapshotter = true;
        sample_plan(&s);
        ASSERT_CONTAINS(sample_file(&s, "/etc/nodestrap/pre-pull.json")->file.content, "\"socket\": \"/run/soci-snapshotter-grpc/soci-snapshotter-grpc.sock\"");
        s.host.image_credential_provider = NULL;
        sample_plan(&s);
        ASSERT_TRUE(!strstr(sample_file(&s, "/etc/nodestrap/pre-pull.json")->file.content, "provider"));
        s.config.containerd.pre_pull = NULL;
}

TEST(runtime_spec) {
        _cleanup_(sample_done) Sample s = sample_new();
        sample_plan(&s);
        ASSERT_SETTING(&s, SPEC, "process/rlimits", "[{\"hard\":1048576,\"soft\":65536,\"type\":\"RLIMIT_NOFILE\"}]");
        ASSERT_SETTING(&s, SPEC, "linux/resources/devices", "[{\"access\":\"rwm\",\"allow\":false}]");
        s.config.containerd.base_runtime_spec = sample_json(&s, "{'process': {'rlimits': [{'type': 'RLIMIT_MEMLOCK', 'soft': 1, 'hard': 2}]}, 'hostname': 'h'}");
        sample_plan(&s);
        ASSERT_SETTING(&s, SPEC, "process/rlimits", "[{\"hard\":2,\"soft\":1,\"type\":\"RLIMIT_MEMLOCK\"}]");
        ASSERT_SETTING(&s, SPEC, "process/cwd", "\"/\"");
        ASSERT_SETTING(&s, SPEC, "hostname", "\"h\"");
}

/* Only a real can hold RLIM_INFINITY until it is written. */
TEST(runtime_spec_without_a_limit) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.options.foretell = true;      /* two of them are limits to nothing */
        s.config.containerd.base_runtime_spec = sample_json(
                &s, "{'process': {'rlimits': [{'type': 'RLIMIT_MEMLOCK', 'soft': 1.8446744073709552e19, 'hard': 1.8446744073709555e19},"
                    " {'type': 'RLIMIT_CORE', 'soft': -1.8446744073709552e19, 'hard': 1.8446744073709552e19}],"
                    " 'env': ['A=18446744073709552000x', '18446744073709552000', '\\\\\\'18446744073709552000', 'RLIM_INFINITY']}}");
        sample_plan(&s);
        const char *text = sample_file(&s, SPEC)->file.content;
        ASSERT_CONTAINS(text, "\"soft\": 18446744073709551615,");
        ASSERT_CONTAINS(text, "\"hard\": 18446744073709551615,");
        ASSERT_CONTAINS(text, "\"hard\": 18446744073709556000,");
        ASSERT_CONTAINS(text, "\"soft\": -18446744073709552000,");
        ASSERT_CONTAINS(text, "\"A=18446744073709552000x\"");
        ASSERT_CONTAINS(text, "\"18446744073709552000\"");
        ASSERT_CONTAINS(text, "\"\\\\\\\"18446744073709552000\"");
        ASSERT_CONTAINS(text, "\"RLIM_INFINITY\"");
}

TEST_MAIN
