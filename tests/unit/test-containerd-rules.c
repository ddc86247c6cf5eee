/* SPDX-License-Identifier: Apache-2.0
 * Each rule of config/containerd-rules.c has an accepted and a refused case, and so has each type of the
 * table. tests/oracles/containerd.py asks the real containerd for its verdicts. */
#include "config/containerd.h"
#include "sample.h"

typedef struct Case { const char *version, *toml, *spec, *path, *words; } Case;

static const char *said_at(const Sample *s, const char *path, Cause cause) {
        for (size_t i = 0; i < s->plan->warnings.n; i++) {
                const Diagnostic *d = &s->plan->warnings.items[i];
                if (streq(d->code, "containerd-setting") && d->cause == cause && (!path || streq(d->path ?: "", path)))
                        return d->text;
        }
        return NULL;
}

static json_t *parsed(Sample *s, const char *toml) {
        json_t *all = NULL;
        unsigned line = 0;
        const char *why = NULL;
        if (toml_parse(toml, strlen(toml), &all, &line, &why) < 0)
                FAIL("%s:%u: %s", toml, line, why);
        _free_ char *text = json_dumps(all, 0);
        json_decref(all);
        return sample_json(s, text);
}

static void check(const Case *c) {
        _cleanup_(sample_done) Sample s = sample_new();
        _free_ char *version = xstrdup(c->version);
        s.host.containerd_version = version;
        if (c->toml)
                s.config.containerd.config = parsed(&s, c->toml);
        if (c->spec)
                s.config.containerd.base_runtime_spec = sample_json(&s, c->spec);
        s.options.foretell = true;
        sample_plan(&s);
        const char *said = said_at(&s, c->words ? c->path : NULL, CAUSE_INVALID);
        if (!c->words && said)
                FAIL("%s %s%s: \"%s\"", c->version, c->toml ?: "", c->spec ?: "", said);
        if (c->words && (!said || !strstr(said, c->words)))
                FAIL("%s %s%s: %s, and not %s", c->version, c->toml ?: "", c->spec ?: "", said ?: "nothing", c->words);
}

#define OF(key) "spec.containerd.config." key
#define BAD(version, toml, key, words) { version, toml, NULL, OF(key), words }
#define GOOD(version, toml) { version, toml, NULL, NULL, NULL }
#define BAD_SPEC(spec, key, words) { "2.1.9", NULL, spec, "spec.containerd.baseRuntimeSpec." key, words }
#define GOOD_SPEC(spec) { "2.1.9", NULL, spec, NULL, NULL }
#define P2 "plugins.'io.containerd.grpc.v1.cri'"
#define I3 "plugins.'io.containerd.cri.v1.images'"
#define R3 "plugins.'io.containerd.cri.v1.runtime'"
#define CRI "plugins.io.containerd.grpc.v1.cri."
#define IMAGES "plugins.io.containerd.cri.v1.images."
#define RUNTIME "plugins.io.containerd.cri.v1.runtime."

/* 87 bytes: with /run/ and .sock 97 */
#define LONG "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

TEST(settings_that_containerd_accepts_or_refuses) {
        static const Case cases[] = {
                /* types: each schema, each kind */
                BAD("2.1.9", "[" I3 "]\nmax_concurrent_downloads = \"16\"", IMAGES "max_concurrent_downloads", "must be a whole number"), GOOD("2.1.9", "[" I3 "]\nmax_concurrent_downloads = 16"),
                BAD("1.7.24", "[" P2 "]\nmax_concurrent_downloads = 3.0", CRI "max_concurrent_downloads", "must be a whole number"), GOOD("1.7.24", "[" P2 "]\nmax_concurrent_downloads = 3"),
                BAD("2.1.9", "[" P2 "]\nmax_concurrent_downloads = true", CRI "max_concurrent_downloads", "must be a whole number"), BAD("2.1.9", "[" R3 "]\nenable_selinux = 1", RUNTIME "enable_selinux", "must be true or false"),
                BAD("2.1.9", "[" R3 "]\nunset_seccomp_profile = 5", RUNTIME "unset_seccomp_profile", "must be a string"), BAD("2.1.9", "[" R3 "]\ncdi_spec_dirs = [1]", RUNTIME "cdi_spec_dirs", "must be a list of strings"),
                BAD("2.1.9", "[" R3 "]\ncni = 5", RUNTIME "cni", "must be a table"), BAD("2.1.9", "[" R3 ".containerd.runtimes]\nkata = 5", RUNTIME "containerd.runtimes.kata", "must be a table"),
                BAD("2.1.9", "[" R3 "]\ndrain_exec_sync_io_timeout = \"5\"", RUNTIME "drain_exec_sync_io_timeout", "must be a duration"), GOOD("2.1.9", "[" R3 "]\ndrain_exec_sync_io_timeout = \"\""),
                BAD("2.1.9", "[plugins.'io.containerd.gc.v1.scheduler']\nschedule_delay = \"\"", "plugins.io.containerd.gc.v1.scheduler.schedule_delay", "must be a duration"),
                BAD("1.7.24", "[plugins.'io.containerd.gc.v1.scheduler']\nschedule_delay = 5", "plugins.io.containerd.gc.v1.scheduler.schedule_delay", "must be a duration"),
                GOOD("2.1.9", "[plugins.'io.containerd.gc.v1.scheduler']\nschedule_delay = 5\npause_threshold = 0"),
                BAD("1.7.24", "[plugins.'io.containerd.gc.v1.scheduler']\npause_threshold = 0", "plugins.io.containerd.gc.v1.scheduler.pause_threshold", "with a decimal point"),
                BAD("2.1.9", "[" I3 ".registry.headers]\nx = 'a'", IMAGES "registry.headers.x", "must be a list of strings"), BAD("2.1.9", "[" I3 ".pinned_images]\nsandbox = 5", IMAGES "pinned_images.sandbox", "must be a string"),
                BAD("2.1.9", "[timeouts]\nx = '5'", "timeouts.x", "must be a duration"), BAD("2.1.9", "[timeouts]\nx = 5", "timeouts.x", "must be a duration"), GOOD("2.1.9", "[timeouts]\nx = '5s'"), BAD("2.1.9", "imports = 'x'", "imports", "must be a list of strings"),
                BAD("2.1.9", "[plugins.'io.containerd.transfer.v1.local']\nunpack_config = [5]", "plugins.io.containerd.transfer.v1.local.unpack_config[0]", "must be a table"),
                BAD("2.1.9", "[" R3 ".containerd.runtimes.runc.options]\nSystemdCgroup = 'true'", RUNTIME "containerd.runtimes.runc.options.SystemdCgroup", "must be true or false"),
                GOOD("2.1.9", "[" R3 ".containerd.runtimes.kata]\nruntime_type = 'io.containerd.kata.v2'\noptions = { SystemdCgroup = 'yes' }"),
                BAD("2.1.9", "[" I3 "]\nMAX_CONCURRENT_DOWNLOADS = 'x'", IMAGES "MAX_CONCURRENT_DOWNLOADS", "must be a whole number"), GOOD("2.1.9", "[plugins.'com.example.x']\na = 1"),
                /* limits */
                BAD("2.1.9", "[debug]\nlevel = 'verbose'", "debug.level", "is not one of trace, debug"), GOOD("2.1.9", "[debug]\nlevel = 'INFO'\nformat = 'json'"), BAD("2.1.9", "[debug]\nformat = 'JSON'", "debug.format", "text, json"),
                BAD("2.1.9", "[metrics]\naddress = 'x'", "metrics.address", "an address and a port"), GOOD("2.1.9", "[metrics]\naddress = '127.0.0.1:1338'"), GOOD("2.1.9", "[metrics]\naddress = ''"),
                BAD("2.1.9", "[" I3 "]\nstats_collect_period = 0", IMAGES "stats_collect_period", "at least 1"), BAD("2.4.2", "[" R3 "]\nstats_collect_period = '0s'", RUNTIME "stats_collect_period", "at least 1ns"),
                BAD("2.1.9", "[plugins.'io.containerd.runtime.v2.task']\nplatforms = ['x/y/z/a']", "plugins.io.containerd.runtime.v2.task.platforms", "a platform"),
                BAD("2.1.9", "[plugins.'io.containerd.runtime.v2.task']\nplatforms = ['linux(']", "plugins.io.containerd.runtime.v2.task.platforms", "a platform"),
                GOOD("2.1.9", "[plugins.'io.containerd.runtime.v2.task']\nplatforms = ['linux/amd64', 'windows(10.0.17763)/amd64', 'linux/arm64/v8']"),
                BAD("2.1.9", "[" P2 "]\nstream_server_port = '65536'", CRI "stream_server_port", "a port"), GOOD("2.1.9", "[" P2 "]\nstream_server_port = '10010'\n[" R3 "]\nenable_selinux = false"),
                BAD("1.7.24", "[" P2 "]\nsystemd_cgroup = true", CRI "systemd_cgroup", "must be false"), GOOD("1.7.24", "[" P2 "]\nsystemd_cgroup = false"),
                BAD("2.4.2", "[plugins.'io.containerd.snapshotter.v1.erofs']\nlayer_content_caches = ['/a', '']", "plugins.io.containerd.snapshotter.v1.erofs.layer_content_caches", "an absolute path"),
                BAD("2.4.2", "[plugins.'io.containerd.shim.v1.manager']\nsocket_dir = 'x'", "plugins.io.containerd.shim.v1.manager.socket_dir", "an absolute path"),
                /* registries */
                GOOD("2.1.9", "[" I3 ".registry.mirrors.'docker.io']\nendpoint = ['https://m']"), GOOD("1.7.24", "[" P2 ".registry.configs.x.tls]\ninsecure_skip_verify = true"),
                BAD("2.1.9", "[" I3 ".registry]\nconfig_path = '/a'\nmirrors.x.endpoint = ['https://m']", IMAGES "registry.mirrors", "with config_path"),
                BAD("1.7.24", "[" P2 ".registry]\nconfig_path = '/a'\nconfigs.x.tls = {}", CRI "registry.configs.x.tls", "with config_path"),
                BAD("1.7.24", "[" P2 ".registry]\nconfig_path = '/a'\nconfigs.'https://u:p@r'.tls = {}", CRI "registry.configs.https://(hidden)@r.tls", "with config_path"),
                BAD("2.1.9", "[grpc]\naddress = '/run/" LONG "12.sock'", "grpc.address", "98 bytes"), GOOD("2.1.9", "[grpc]\naddress = '/run/" LONG "1.sock'"),
                GOOD("2.1.9", "[grpc]\naddress = '/run/" LONG "1234567.sock'\n[ttrpc]\naddress = '/run/x'"), BAD("1.7.24", "[ttrpc]\naddress = '/run/" LONG "12345678.sock'", "ttrpc.address", "104 bytes"),
                BAD("2.1.9", "[debug]\naddress = '/run/" LONG "12345678.sock'", "debug.address", "104 bytes"), BAD("2.1.9", "[cgroup]\npath = 'x'", "cgroup.path", "absolute path"),
                BAD("2.2.9", "[" I3 "]\nstats_collect_period = 0", IMAGES "stats_collect_period", "at least 1"), GOOD("2.4.2", "[" I3 "]\nstats_collect_period = 0"),
                BAD("2.1.9", "[" R3 ".containerd.runtimes.runc.options]\nSystemdCgroup = 'x'", RUNTIME "containerd.runtimes.runc.options.SystemdCgroup", "quotes; no pod of this runtime would start"),
                GOOD("1.7.24", "State = 5\nDisabled_Plugins = ['io.containerd.grpc.v1.cri']\n[Grpc]\naddress = 'x'"), GOOD("1.7.24", "[" P2 ".registry]\nconfig_path = '/a'\nconfigs.x.auth = {}"),
                /* runtimes and snapshotters */
                BAD("2.1.9", "[" R3 ".containerd]\ndefault_runtime_name = 'kata'", RUNTIME "containerd.default_runtime_name", "not a runtime"), GOOD("2.1.9", "[" R3 ".containerd]\ndefault_runtime_name = 'kata'\nruntimes.kata = {}"),
                BAD("1.7.24", "[" P2 ".containerd]\ndefault_runtime_name = ''", CRI "containerd.default_runtime_name", "not a runtime"),
                BAD("2.1.9", "[" I3 "]\nsnapshotter = 'stargz'", IMAGES "snapshotter", "or in proxy_plugins"), GOOD("2.1.9", "[" I3 "]\nsnapshotter = 'stargz'\n[proxy_plugins.stargz]\ntype = 'snapshot'"),
                BAD("1.7.24", "[" P2 ".containerd]\nsnapshotter = 'stargz'", CRI "containerd.snapshotter", "or in proxy_plugins"), GOOD("1.7.24", "[" P2 ".containerd]\nsnapshotter = ''"), BAD("2.1.9", "[" I3 "]\nsnapshotter = ''", IMAGES "snapshotter", "snapshotter"),
                GOOD("2.1.9", "[" R3 ".containerd.runtimes.runc]\nsnapshotter = ''"), GOOD("2.4.2", "[" P2 ".containerd.runtimes.runc]\nsnapshotter = ''"), GOOD("1.7.24", "[" P2 ".containerd.runtimes.runc]\nsnapshotter = ''"),
                BAD("2.1.9", "[" R3 ".containerd.runtimes.runc]\nsnapshotter = 'stargz'", RUNTIME "containerd.runtimes.runc.snapshotter", "no pod of this runtime would start"),
                BAD("2.1.9", "[" R3 ".containerd.runtimes.runc]\nprivileged_without_host_devices_all_devices_allowed = true", RUNTIME "containerd.runtimes.runc.privileged_without_host_devices_all_devices_allowed", "needs"),
                BAD("2.1.9", "[" R3 ".containerd.runtimes.runc]\nio_type = 'pipe'", RUNTIME "containerd.runtimes.runc.io_type", "fifo, streaming"),
                BAD("2.1.9", "[" R3 ".cni]\nbin_dir = '/a'\nbin_dirs = ['/b']", RUNTIME "cni.bin_dir", "with bin_dirs"), GOOD("2.1.9", "[" R3 ".cni]\nbin_dir = '/a'"), GOOD("2.4.2", "[" R3 ".cni]\nbin_dir = '/a'\nbin_dirs = ['/b']"),
                GOOD("2.1.9", "version = 2\n[" P2 ".cni]\nbin_dirs = ['/b']"), GOOD("2.1.9", "version = 2\n[" P2 ".cni]\nbin_dir = '/a'\nbin_dirs = ['/b']"),
                BAD("2.1.9", "[plugins.'io.containerd.transfer.v1.local']\nunpack_config = [{ snapshotter = 'x' }]", "plugins.io.containerd.transfer.v1.local.unpack_config[0].snapshotter", "snapshotter"),
                BAD("2.1.9", "[plugins.'io.containerd.transfer.v1.local']\nunpack_config = [{ differ = 'x' }]", "plugins.io.containerd.transfer.v1.local.unpack_config[0].differ", "differ"),
                BAD("2.1.9", "[plugins.'io.containerd.transfer.v1.local']\nunpack_config = [{ snapshotter = 'overlayfs' }]", "plugins.io.containerd.transfer.v1.local.unpack_config[0]", "needs a platform"),
                BAD("2.1.9", "[plugins.'io.containerd.transfer.v1.local']\nunpack_config = [{ platform = 'foo' }]", "plugins.io.containerd.transfer.v1.local.unpack_config[0].platform", "a platform"),
                BAD("2.1.9", "[plugins.'io.containerd.transfer.v1.local']\nunpack_config = [{ platform = 'linux' }]", "plugins.io.containerd.transfer.v1.local.unpack_config[0]", "needs a snapshotter"),
                GOOD("2.4.2", "[plugins.'io.containerd.transfer.v1.local']\nunpack_config = [{ platform = 'linux', snapshotter = 'x', differ = 'x', optional = true }]"),
                BAD("2.1.9", "[plugins.'io.containerd.transfer.v1.local']\nunpack_config = [{ platform = 'linux', snapshotter = 'x', optional = true }]", "plugins.io.containerd.transfer.v1.local.unpack_config[0].snapshotter", "or in proxy_plugins"),
                BAD("2.1.9", "[" I3 "]\nsnapshotter = 'devmapper'", IMAGES "snapshotter", "without its pool_name"), GOOD("2.1.9", "[" I3 "]\nsnapshotter = 'devmapper'\n[plugins.'io.containerd.snapshotter.v1.devmapper']\npool_name = 'p'"),
                BAD("1.7.24", "[" P2 ".containerd]\nsnapshotter = 'blockfile'", CRI "containerd.snapshotter", "without its scratch_file"), BAD("1.7.24", "[" P2 ".containerd]\nsnapshotter = 'erofs'", CRI "containerd.snapshotter", "is neither a snapshotter of"),
                BAD("2.1.9", "disabled_plugins = ['io.containerd.snapshotter.v1.native']\n[" I3 "]\nsnapshotter = 'native'", IMAGES "snapshotter", "turned off by disabled_plugins"),
                GOOD("1.7.24", "disabled_plugins = ['io.containerd.snapshotter.v1.overlayfs']\n[" P2 ".containerd]\nsnapshotter = 'native'"), BAD("1.7.24", "disabled_plugins = ['io.containerd.snapshotter.v1.overlayfs']", "disabled_plugins[0]", "CRI needs"),
                BAD("2.1.9", "disabled_plugins = ['io.containerd.snapshotter.v1.overlayfs']\n[" I3 "]\nsnapshotter = 'native'", "disabled_plugins[0]", "CRI needs"),
                GOOD("2.1.9", "disabled_plugins = ['io.containerd.snapshotter.v1.overlayfs']\n[" I3 "]\nsnapshotter = 'native'\n[plugins.'io.containerd.transfer.v1.local']\nunpack_config = [{ platform = 'linux', snapshotter = 'native' }]"),
                BAD("2.1.9", "[plugins.'io.containerd.service.v1.diff-service']\ndefault = ['x']", "plugins.io.containerd.service.v1.diff-service.default[0]", "differ"),
                BAD("1.7.24", "[plugins.'io.containerd.service.v1.diff-service']\ndefault = ['erofs']", "plugins.io.containerd.service.v1.diff-service.default[0]", "differ"),
                GOOD("2.1.9", "[plugins.'io.containerd.service.v1.diff-service']\ndefault = ['x', 'walking']\n[proxy_plugins.x]\ntype = 'diff'"),
                BAD("2.1.9", "[plugins.'io.containerd.runtime.v2.task']\nplatforms = ['amd46']", "plugins.io.containerd.runtime.v2.task.platforms", "a platform"),
                GOOD("2.1.9", "[plugins.'io.containerd.runtime.v2.task']\nplatforms = ['x86_64', 'Linux', 'windows(10.0)', 'foo/bar']"),
                /* plugins */
                BAD("2.1.9", "required_plugins = ['io.containerd.nri.v1.nri']\ndisabled_plugins = ['io.containerd.nri.v1.nri']", "required_plugins[0]", "turned off by"), BAD("2.1.9", "required_plugins = ['io.containerd.snapshotter.v1.devmapper']", "required_plugins[0]", "pool_name"),
                GOOD("2.1.9", "required_plugins = ['io.containerd.snapshotter.v1.x', 'io.containerd.differ.v1.y']\n[proxy_plugins]\nx = { type = 'io.containerd.snapshotter.v1' }\ny = { type = 'diff' }"),
                BAD("2.1.9", "required_plugins = ['io.containerd.differ.v1.x']\n[proxy_plugins.x]\ntype = 'snapshot'", "required_plugins[0]", "does not have"),
                GOOD("2.1.9", "[" I3 "]\nsnapshotter = 'x'\n[proxy_plugins.x]\ntype = 'io.containerd.snapshotter.v1'"), BAD("2.1.9", "[" I3 "]\nsnapshotter = 'x'\n[proxy_plugins.x]\ntype = 'diff'", IMAGES "snapshotter", "or in proxy_plugins"),
                BAD("1.7.24", "[proxy_plugins.x]\ntype = 'sandbox'", "proxy_plugins.x.type", "containerd 1"), GOOD("2.1.9", "[proxy_plugins.x]\ntype = 'sandbox'"),
                BAD("2.1.9", "[proxy_plugins.overlayfs]\ntype = 'snapshot'", "proxy_plugins.overlayfs", "of a containerd plugin"), GOOD("2.1.9", "[proxy_plugins.overlayfs]\ntype = 'diff'"),
                BAD("2.1.9", "disabled_plugins = ['io.containerd.grpc.v1.cri']", "disabled_plugins[0]", "CRI needs"), BAD("2.1.9", "disabled_plugins = ['io.containerd.transfer.v1.local']", "disabled_plugins[0]", "CRI needs"),
                GOOD("1.7.24", "disabled_plugins = ['io.containerd.transfer.v1.local', 'io.containerd.snapshotter.v1.aufs']"), BAD("2.1.9", "disabled_plugins = ['cri']", "disabled_plugins[0]", "full name"),
                BAD("1.7.24", "disabled_plugins = ['a.b']", "disabled_plugins[0]", "full name"), GOOD("2.1.9", "disabled_plugins = ['a.b']"),
                BAD("2.1.9", "required_plugins = ['io.containerd.grpc.v1.nri']", "required_plugins[0]", "does not have"), GOOD("2.1.9", "required_plugins = ['io.containerd.grpc.v1.cri']"),
                BAD("1.7.24", "required_plugins = ['io.containerd.cri.v1.images']", "required_plugins[0]", "does not have"),
                BAD("1.7.24", "[plugins.nope]\na = 1", "plugins.nope", "full name"), GOOD("2.1.9", "[plugins.nope]\na = 1"),
                BAD("2.1.9", "[proxy_plugins.x]\ntype = 'x'", "proxy_plugins.x.type", "snapshot, content"), BAD("2.1.9", "[proxy_plugins.x]\naddress = '/x'", "proxy_plugins.x", "no type"),
                BAD("2.1.9", "[proxy_plugins.x]\ntype = 'content'", "proxy_plugins.x.type", "second content store"), GOOD("1.7.24", "[proxy_plugins.x]\ntype = 'content'"),
                /* sockets and paths */
                BAD("2.4.2", "[plugins.'io.containerd.server.v1.grpc']\naddress = 'c.sock'", "plugins.io.containerd.server.v1.grpc.address", "absolute path"), BAD("2.4.2", "[plugins.'io.containerd.server.v1.grpc']\naddress = ''", "plugins.io.containerd.server.v1.grpc.address", "absolute path"),
                GOOD("2.1.9", "[plugins.'io.containerd.server.v1.grpc']\naddress = 'c.sock'"), BAD("2.4.2", "disabled_plugins = ['io.containerd.server.v1.grpc']", "disabled_plugins[0]", "CRI needs"),
                BAD("2.1.9", "[metrics]\naddress = '10.0.1.300:1338'", "metrics.address", "an address and a port"), BAD("2.4.2", "[metrics]\naddress = '::1:1338'", "metrics.address", "an address and a port"), BAD("2.1.9", "[metrics]\naddress = 'a b:80'", "metrics.address", "an address"),
                GOOD("2.1.9", "[metrics]\naddress = '[::1]:1338'"), GOOD("2.1.9", "[metrics]\naddress = ':1338'"), GOOD("2.1.9", "[metrics]\naddress = 'localhost:1338'"),
                BAD("2.1.9", "[grpc]\ntcp_address = '10.0.1.300:1'", "grpc.tcp_address", "an address and a port"), GOOD("2.4.2", "[grpc]\ntcp_address = '10.0.1.300:1'"), BAD("2.1.9", "[debug]\naddress = 'x:y'", "debug.address", "a socket"), GOOD("2.1.9", "[debug]\naddress = '127.0.0.1:0'"),
                BAD("2.1.9", "[debug]\nformat = 'text|json'", "debug.format", "text, json"), BAD("2.1.9", "[timeouts]\nx = '9999999999h'", "timeouts.x", "must be a duration"), GOOD("2.1.9", "[timeouts]\nx = '2000000h'"),
                BAD("2.4.2", "[plugins.'io.containerd.nri.v1.nri'.default_validator]\nreject_oci_hook_adjustment = 'yes'", "plugins.io.containerd.nri.v1.nri.default_validator.reject_oci_hook_adjustment", "true or false"),
                BAD("2.1.9", "[grpc]\naddress = 'x.sock'", "grpc.address", "absolute path"), GOOD("2.1.9", "[grpc]\naddress = '/run/x.sock'"), BAD("2.1.9", "[debug]\naddress = 'x'", "debug.address", "absolute path"),
                BAD("2.1.9", "root = '/run/containerd'", "root", "same path"), BAD("2.1.9", "[" P2 "]\nstream_server_address = 'x'\n[" R3 "]", CRI "stream_server_address", "IP address"),
                BAD("2.1.9", "[" P2 ".x509_key_pair_streaming]\ntls_cert_file = '/x'\n[" R3 "]", CRI "x509_key_pair_streaming", "tls_key_file"),
                /* the file */
                BAD("2.5.0", "[" I3 "]\nmax_concurrent_downloads = 'x'", IMAGES "max_concurrent_downloads", "a whole number"), BAD("2.5.0", "[" I3 "]\nsnapshotter = 'stargz'", IMAGES "snapshotter", "or in proxy_plugins"),
                GOOD("2.5.0", "version = 5"), GOOD("2.5.0", "required_plugins = ['io.containerd.new.v1.x']"), GOOD("2.5.0", "[" R3 "]\nenable_cdi = 'x'"), GOOD("2.5.0", "[" R3 ".cni]\nbin_dir = '/a'\nbin_dirs = ['/b']"),
                BAD("2.1.9", "version = 1", "version", "schema 2 or 3"), BAD("2.1.9", "version = 4", "version", "may know"), GOOD("2.4.2", "version = 4"), BAD("2.4.2", "version = 5", "version", "may know"),
                /* the runtime spec */
                BAD_SPEC("{'linux':{'resources':{'pids':{'limit':9223372036854775808.0}}}}", "linux.resources.pids.limit", "a 64-bit number"), GOOD_SPEC("{'linux':{'resources':{'pids':{'limit':9223372036854775807}}}}"),
                BAD_SPEC("{'windows':'x'}", "windows", "must be a table"), BAD_SPEC("{'vm':5}", "vm", "must be a table"), BAD_SPEC("{'solaris':5}", "solaris", "must be a table"), GOOD_SPEC("{'vm':{},'windows':{'layerFolders':['/a']},'solaris':{}}"),
                BAD_SPEC("{'process':{'rlimits':[{'type':'RLIMIT_NOFILE','hard':'65536','soft':1}]}}", "process.rlimits[0].hard", "must be a whole number"),
                BAD_SPEC("{'process':{'rlimits':[{'type':'RLIMIT_NOFILE','hard':-1,'soft':-1}]}}", "process.rlimits[0].hard", "from 0 to 18446744073709551615"),
                BAD_SPEC("{'process':{'rlimits':[{'type':'NOFILE','hard':2,'soft':1}]}}", "process.rlimits[0]", "is not a known limit"), BAD_SPEC("{'process':{'rlimits':[{'type':'RLIMIT_CPU','hard':1,'soft':2}]}}", "process.rlimits[0]", "above the hard one"),
                GOOD_SPEC("{'process':{'rlimits':[{'type':'RLIMIT_NOFILE','hard':18446744073709551615.0,'soft':1e6}],'oomScoreAdj':-5}}"), BAD_SPEC("{'process':{'oomScoreAdj':'5'}}", "process.oomScoreAdj", "must be a whole number"),
                BAD_SPEC("{'PROCESS':{'Env':[1]}}", "PROCESS.Env", "must be a list of strings"), BAD_SPEC("{'process':{'user':{'additionalGids':[-1]}}}", "process.user.additionalGids", "from 0 to 4294967295"),
                BAD_SPEC("{'linux':{'resources':{'blockIO':{'weight':65536}}}}", "linux.resources.blockIO.weight", "from 0 to 65535"), BAD_SPEC("{'process':{'scheduler':{'nice':2147483648}}}", "process.scheduler.nice", "2147483647"),
                BAD_SPEC("{'linux':{'sysctl':{'a':1}}}", "linux.sysctl.a", "must be a string"), BAD_SPEC("{'hooks':{'prestart':[{'args':'a'}]}}", "hooks.prestart[0].args", "must be a list of strings"), GOOD_SPEC("{'x':5,'linux':{'namespaces':[{'type':'pid'}]}}"),
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
                check(&cases[i]);
}

TEST(settings_that_a_version_ignores) {
        static const Case cases[] = {
                BAD("2.0.7", "[" R3 ".cni]\nbin_dirs = ['/a']", RUNTIME "cni.bin_dirs", "new in 2.1"), BAD("2.4.2", "[" R3 ".cni]\nbin_dir = '/a'", RUNTIME "cni.bin_dir", "removed in 2.4"),
                BAD("1.7.24", "[" P2 ".containerd.runtimes.runc]\nsandboxer = 'x'", CRI "containerd.runtimes.runc.sandboxer", "new in 2.0"),
                BAD("1.7.24", "State = '/a'", "State", "ignores it and reads state"), GOOD("1.7.24", "[" P2 ".containerd.runtimes.x]\nruntime_type = 'y'\noptions = {A = 1}"),
                /* an unknown version: a rule of some versions is a warning */
                BAD("2.5.0", "version = 5", "version", "may know"), BAD("2.5.0", "[" R3 "]\nenable_cdi = 'x'", RUNTIME "enable_cdi", "must be true or false"),
                BAD("2.5.0", "required_plugins = ['io.containerd.new.v1.x']", "required_plugins[0]", "does not have"),
                GOOD("2.1.9", "[" I3 "]\nmax_concurrent_downloads = 3"),
                BAD("2.1.9", "[" R3 "]\ncdi_spec_dirs = ['/etc/cdi']", RUNTIME "cdi_spec_dirs", "lacks /var/run/cdi"), GOOD("2.1.9", "[" R3 "]\ncdi_spec_dirs = ['/etc/cdi', '/run/cdi']"),
                BAD("1.7.24", "[" P2 "]\ncdi_spec_dirs = []", CRI "cdi_spec_dirs", "otherwise containers get no GPU through CDI"),
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const Case *c = &cases[i];
                _cleanup_(sample_done) Sample s = sample_new();
                _free_ char *version = xstrdup(c->version);
                s.host.containerd_version = version;
                s.config.containerd.config = parsed(&s, c->toml);
                sample_plan(&s);
                const char *said = said_at(&s, c->words ? c->path : NULL, CAUSE_NONE);
                if (c->words ? !said || !strstr(said, c->words) : !!said)
                        FAIL("%s: %s", c->toml, said ?: "nothing");
        }
}

/* Under the name nodeadm the program writes the same bytes as nodeadm, and a warning. */
TEST(faults_are_warnings_under_the_name_nodeadm) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.config.containerd.config = parsed(&s, "[" I3 ".registry.mirrors.'docker.io']\nendpoint = ['https://m']\n[grpc]\naddress = '/run/x.sock'");
        s.options.as_nodeadm = true;
        sample_plan(&s);
        ASSERT_CONTAINS(sample_file(&s, "/etc/containerd/config.toml")->file.content, "config_path = '/etc/containerd/certs.d:/etc/docker/certs.d'");
        ASSERT_CONTAINS(sample_file(&s, "/etc/kubernetes/kubelet/config.json")->file.content, "unix:///run/containerd/containerd.sock");
        ASSERT_CONTAINS(said_at(&s, OF(IMAGES "registry.mirrors"), CAUSE_NONE), "with config_path");
        ASSERT_CONTAINS(said_at(&s, OF("grpc.address"), CAUSE_NONE), ", the socket that kubelet uses under the name nodeadm");
}

TEST(registry_config_path_yields_to_settings_of_the_user) {
        static const struct { const char *version, *toml, *path, *why; } cases[] = {
                { "2.1.9", "[" I3 ".registry.mirrors.x]\nendpoint = ['https://m']", NULL, "without registry.config_path because of registry.mirrors" },
                { "1.7.24", "[" P2 ".registry.configs.x.auth]\nusername = 'u'", NULL, "without registry.config_path because of registry.configs" },
                { "2.1.9", "[" I3 ".registry]\nconfig_path = '/a'\nmirrors = {}", "/a", NULL },
                { "2.1.9", "[" I3 "]\ndiscard_unpacked_layers = false", "/etc/containerd/certs.d", "one folder in registry.config_path" },
                { "2.1.9", "[" P2 ".containerd]\ndiscard_unpacked_layers = false", "/etc/containerd/certs.d", "one folder in registry.config_path" },
                { "2.0.7", "[" I3 "]\ndiscard_unpacked_layers = false", "/etc/containerd/certs.d:/etc/docker/certs.d", NULL },
                { "2.1.9", "[" I3 "]\ndiscard_unpacked_layers = false\nmax_concurrent_downloads = 9", "/etc/containerd/certs.d:/etc/docker/certs.d", NULL },
                { "2.1.9", "[" I3 "]\ndiscard_unpacked_layers = false\nuse_local_image_pull = true", "/etc/containerd/certs.d:/etc/docker/certs.d", NULL },
                { "2.1.9", "[" P2 "]\nuse_local_image_pull = true\n[" P2 ".containerd]\ndiscard_unpacked_layers = false", "/etc/containerd/certs.d", "one folder in registry.config_path" },
                { "2.1.9", "[" I3 "]\ndiscard_unpacked_layers = false\nregistry.config_path = '/a:/b'", "/a:/b", NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                _free_ char *version = xstrdup(cases[i].version);
                s.host.containerd_version = version;
                s.config.containerd.config = parsed(&s, cases[i].toml);
                sample_plan(&s);
                const Action *a = sample_file(&s, "/etc/containerd/config.toml");
                _free_ char *line = xasprintf("config_path = '%s'\n", cases[i].path ?: "");
                if (cases[i].path ? !strstr(a->file.content, line) : !!strstr(a->file.content, "config_path"))
                        FAIL("%s: %s", cases[i].toml, a->file.content);
                if (cases[i].why ? !strstr(a->why, cases[i].why) : !!strstr(a->why, "config_path"))
                        FAIL("%s: %s", cases[i].toml, a->why);
        }
}

TEST(cni_directories_yield_to_settings_of_the_user) {
        static const struct { const char *version, *toml, *path, *why; } cases[] = {
                { "2.1.9", "version = 2\n[" P2 ".cni]\nbin_dirs = ['/a']", "bin_dirs", "cni.bin_dir left out because of cni.bin_dirs" },
                { "2.4.2", "version = 2\n[" P2 ".cni]\nbin_dirs = ['/a']", "bin_dirs", "cni.bin_dir left out because of cni.bin_dirs" },
                { "2.1.9", "version = 2\n[" P2 ".cni]\nbin_dir = '/a'", "bin_dir", NULL },
                { "2.1.9", "[" R3 ".cni]\nbin_dir = '/a'", "bin_dir", "cni.bin_dirs left out because of cni.bin_dir" },
                { "2.1.9", "[" R3 ".cni]\nbin_dirs = ['/a']", "bin_dirs", NULL },
                { "2.0.7", "[" R3 ".cni]\nbin_dir = '/a'", "bin_dir", NULL },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                _free_ char *version = xstrdup(cases[i].version);
                s.host.containerd_version = version;
                s.config.containerd.config = parsed(&s, cases[i].toml);
                sample_plan(&s);
                const Action *a = sample_file(&s, "/etc/containerd/config.toml");
                bool both = strstr(a->file.content, "bin_dirs = ") && strstr(a->file.content, "bin_dir = ");
                if (both || !strstr(a->file.content, cases[i].path) || (cases[i].why ? !strstr(a->why, cases[i].why) : !!strstr(a->why, "cni.")))
                        FAIL("%s: %s: %s", cases[i].toml, a->why, a->file.content);
        }
}

TEST(the_socket_of_a_server_plugin) {
        static const char server[] = "[grpc]\naddress = '/run/a.sock'\n[plugins.'io.containerd.server.v1.grpc']\n";
        static const struct { const char *version, *more, *socket; } cases[] = {
                { "2.4.2", "address = '/run/b.sock'", "unix:///run/b.sock" }, { "2.4.2", "max_recv_message_size = 1", "unix:///run/containerd/containerd.sock" },
                { "2.1.9", "address = '/run/b.sock'", "unix:///run/a.sock" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                _cleanup_(sample_done) Sample s = sample_new();
                _free_ char *version = xstrdup(cases[i].version), *toml = xasprintf("%s%s", server, cases[i].more);
                s.host.containerd_version = version;
                s.config.containerd.config = parsed(&s, toml);
                sample_plan(&s);
                ASSERT_CONTAINS(sample_file(&s, "/etc/kubernetes/kubelet/config.json")->file.content, cases[i].socket);
        }
}

TEST(kubelet_and_soci_use_another_socket_of_containerd) {
        _cleanup_(sample_done) Sample s = sample_new();
        s.config.containerd.config = parsed(&s, "[grpc]\naddress = '/run/lab/x.sock'");
        s.config.gates.fast_image_pull = s.host.soci_snapshotter = true;
        sample_plan(&s);
        ASSERT_CONTAINS(sample_file(&s, "/etc/containerd/config.toml")->file.content, "address = '/run/lab/x.sock'");
        ASSERT_CONTAINS(sample_file(&s, "/etc/kubernetes/kubelet/config.json")->file.content, "\"containerRuntimeEndpoint\": \"unix:///run/lab/x.sock\"");
        ASSERT_CONTAINS(sample_file(&s, "/etc/soci-snapshotter-grpc/config.toml")->file.content, "image_service_path = '/run/lab/x.sock'");
}

TEST_MAIN
