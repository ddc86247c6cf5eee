/* SPDX-License-Identifier: Apache-2.0 */
/* The OCI runtime spec of every container (base_runtime_spec), merged with the spec of the user. It is the
 * default of containerd (pkg/oci/spec.go) with a higher limit of open files. */
#include "plan/planner.h"
#include "base/json.h"
#include "base/str.h"
#include "redact/secret.h"

/* A jansson integer cannot hold 2^64 - 1 (RLIM_INFINITY), so a real stands for it, which is one more. */
#define UNLIMITED       18446744073709551616.0
#define UNLIMITED_WORDS "18446744073709552000"  /* that real in JSON from Go and nodestrap */

static const char *const capabilities[] = {
        "AUDIT_WRITE", "CHOWN",   "DAC_OVERRIDE",     "FOWNER",     "FSETID",
        "KILL",        "MKNOD",   "NET_BIND_SERVICE", "NET_RAW",    "SETFCAP",
        "SETGID",      "SETPCAP", "SETUID",           "SYS_CHROOT", NULL
};
static const char *const namespaces[] = { "ipc", "mount", "network", "pid", "uts", NULL };
static const char *const masked[] = {
        "/proc/acpi",          "/proc/asound",      "/proc/kcore", "/proc/keys",
        "/proc/latency_stats", "/proc/sched_debug", "/proc/scsi",  "/proc/timer_list",
        "/proc/timer_stats",   "/sys/firmware",     NULL
};
static const char *const readonly[] = { "/proc/bus",           "/proc/fs", "/proc/irq", "/proc/sys",
                                        "/proc/sysrq-trigger", NULL };
static const struct { const char *type, *destination, *options[8]; } mounts[] = {
        { "tmpfs",  "/dev",        { "nosuid", "strictatime", "mode=755", "size=65536k" } },
        { "mqueue", "/dev/mqueue", { "nosuid", "noexec", "nodev" } },
        { "devpts", "/dev/pts",
          { "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5" } },
        { "proc",   "/proc",       { "nosuid", "noexec", "nodev" } },
        { "sysfs",  "/sys",        { "nosuid", "noexec", "nodev", "ro" } },
};

static json_t *strings(const char *const *list, const char *prefix) {
        json_t *all = json_array();
        for (; *list; list++)
                json_array_append_new(all, json_sprintf("%s%s", prefix, *list));
        return all;
}

static void put_process(json_t *spec) {
        const char *const sets[] = { "bounding", "effective", "permitted" };
        for (size_t i = 0; i < ARRAY_SIZE(sets); i++) {
                _free_ char *path = xasprintf("process/capabilities/%s", sets[i]);
                json_put(spec, path, strings(capabilities, "CAP_"));
        }
        json_put(spec, "process/cwd", json_string("/"));
        json_put(spec, "process/noNewPrivileges", json_true());
        json_put(spec, "process/rlimits",
                 json_pack("[{ss si si}]", "type", "RLIMIT_NOFILE", "soft", 65536, "hard", 1048576));
        json_put(spec, "process/user", json_pack("{si si}", "gid", 0, "uid", 0));
}

/* In the order of the nodeadm file. */
static json_t *default_spec(void) {
        json_t *spec = json_object(), *list = json_array(), *types = json_array();
        for (const char *const *n = namespaces; *n; n++)
                json_array_append_new(types, json_pack("{ss}", "type", *n));
        json_put(spec, "linux/maskedPaths", strings(masked, ""));
        json_put(spec, "linux/namespaces", types);
        json_put(spec, "linux/readonlyPaths", strings(readonly, ""));
        json_put(spec, "linux/resources/devices", json_pack("[{ss sb}]", "access", "rwm", "allow", 0));
        for (size_t i = 0; i < ARRAY_SIZE(mounts); i++)
                json_array_append_new(list, json_pack("{ss so ss ss}", "destination", mounts[i].destination,
                                                      "options", strings(mounts[i].options, ""), "source",
                                                      mounts[i].type, "type", mounts[i].type));
        json_put(spec, "mounts", list);
        json_put(spec, "ociVersion", json_string("1.1.0"));
        put_process(spec);
        json_put(spec, "root", json_pack("{ss}", "path", "rootfs"));
        return spec;
}

/* Less is too little for awslabs/libfabric-ci-scripts:efa-check.sh. With 64 KiB the EFA provider fails:
 * "Cannot allocate memory": awslabs/awsome-distributed-ai#647. */
#define EFA_MEMLOCK ((double)(16ULL << 30))

/* EFA and RDMA need locked memory; limits.d does not apply to containers. A limit of the user wins
 * (awslabs/amazon-eks-ami#595; Bottlerocket: bottlerocket-core-kit, generate_oci_resource_limits). */
static void allow_memlock(Plan *plan, json_t *spec) {
        json_t *limits = json_object_get(json_object_get(spec, "process"), "rlimits"), *limit;
        size_t i;
        json_array_foreach(limits, i, limit)
                if (streq(json_get_text(limit, "type"), "RLIMIT_MEMLOCK")) {
                        if (json_number_value(json_object_get(limit, "soft")) < EFA_MEMLOCK)
                                diag_warn(&plan->warnings, "efa-memlock",
                                          "RLIMIT_MEMLOCK in spec.containerd.baseRuntimeSpec is less than "
                                          "16 GiB, so libfabric may fail to lock memory for EFA; remove it "
                                          "to lift the limit");
                        return;
                }
        json_array_append_new(limits, json_pack("{ss sf sf}", "type", "RLIMIT_MEMLOCK", "soft", UNLIMITED,
                                                "hard", UNLIMITED));
}

/* Of a string or a number; else 1. */
static size_t token_size(const char *json) {
        size_t n = 1;
        if (*json != '"')
                return MAX(n, strspn(json, "0123456789+-.eE"));
        while (json[n] != '"')
                n += json[n] == '\\' ? 2 : 1;
        return n + 1;
}

/* As in nodeadm: indented by two; merged: by four, sorted. The YAML reader turned "no limit" into a real,
 * which does not fit 64 bits; with it no container would start. */
static char *spec_text(const json_t *spec, bool merged) {
        _free_ char *text = json_text(spec, merged ? 4 : 2, merged);
        Text t = {};
        for (size_t i = 0, n; text[i]; i += n) {
                n = token_size(text + i);
                if (n == strlen(UNLIMITED_WORDS) && startswith(text + i, UNLIMITED_WORDS))
                        text_add(&t, "%llu", (unsigned long long)UINT64_MAX);
                else
                        text_add_bytes(&t, text + i, n);
        }
        text_add(&t, "%s", merged ? "" : "\n");
        return text_take(&t);
}

void plan_runtime_spec(Plan *plan, const json_t *user, bool memlock) {
        json_t *spec = default_spec();
        if (json_object_size(user) == 0)
                user = NULL;
        if (user)
                json_merge_deep(spec, user);
        if (memlock)
                allow_memlock(plan, spec);
        _free_ char *text = spec_text(spec, user);
        json_decref(spec);
        _free_ char *why =
                xasprintf("containerd default, %s%s", user ? "merged with user settings" : "65536 open files",
                          memlock ? ", EFA memory locking" : "");
        plan_users_file(plan, "containerd", RUNTIME_SPEC, why, text, user, json_holds_secret(user));
}
