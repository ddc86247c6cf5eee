/* SPDX-License-Identifier: Apache-2.0
 * The contents of a support bundle, as tables of files, programs and journals. A missing file, or a
 * program that fails or hangs, is a line in errors.txt. */
#include "report/bundle.h"

#include "base/json.h"
#include "base/paths.h"
#include "base/run.h"
#include "base/time.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX     (1U << 20)
#define ATTRIBUTE_MAX 4096U
#define OUTPUT_MAX   (8U << 20)
#define PROGRAM_USEC (10 * USEC_PER_SEC)
#define FILE_USEC    (3 * USEC_PER_SEC)

/* Below files/ in the bundle, with the files of the manifest. '*' works as in a shell; '-' before the path:
 * may be missing. */
static const char files[][48] = {
        "/etc/kubernetes/kubelet/config.json", "-/etc/kubernetes/kubelet/config.json.d/*",
        /* NOLINTNEXTLINE(bugprone-suspicious-missing-comma): "-" and a path */
        KUBELET_ENVIRONMENT, "-" TAINT_FILE, KUBECONFIG, "-" KUBECONFIG_BOOTSTRAP, CLUSTER_CA,
        "/etc/eks/image-credential-provider/config.json", "/etc/containerd/config.toml", RUNTIME_SPEC,
        "-/etc/containerd/config.d/*", "-" SOCI_CONFIG, "-" SYSTEM_ENVIRONMENT, "-" ENVIRONMENT_DIR "/*",
        "-" UNIT_DIR "/*.service.d/*.conf", "-/run/systemd/system/*.service.d/*.conf",
        "-" UNIT_DIR "/*.mount", "-/run/systemd/resolved.conf.d/*.conf", "-/etc/modprobe.d/*.conf",
        "-/etc/nvidia-imex/*.cfg", "-" MIG_DEFAULTS, "-/run/cdi/*", "-/etc/cdi/*", "-/etc/eks/*.txt",
        "/etc/os-release", "-/etc/resolv.conf", "-/etc/hosts", "-/etc/fstab", "-/etc/mdadm.conf",
        "-/etc/mdadm/mdadm.conf", "/proc/version", "/proc/cmdline", "/proc/uptime", "/proc/meminfo",
        "/proc/mounts", "-/proc/mdstat", "/proc/modules", "/proc/devices", "/proc/partitions",
        "/proc/sys/kernel/random/boot_id", "-/proc/pressure/*",
        "-/sys/devices/virtual/dmi/id/product_name", "-/sys/devices/virtual/dmi/id/board_asset_tag",
        "-/sys/devices/virtual/dmi/id/bios_version", "-/var/log/nvidia-imex.log",
        "-/var/log/fabricmanager.log",
};
static const char *const driver_files[] = {
        "-/proc/driver/nvidia/version", "-/proc/driver/nvidia/params",
        "-/proc/driver/nvidia/gpus/*/information",
};

/* At the top of the bundle. */
static const char own_files[][36] = {
        RUN_DIR "/status.json", RUN_DIR "/metrics.prom", "-" RUN_DIR "/joined.json",
        "-" RUN_DIR "/joined.prom", "-" READ_AHEAD_FILE, "-" RUN_DIR "/plan.txt",
        "-" RUN_DIR "/plan-config.txt", "-" RUN_DIR "/plan-devices.txt", "-" RUN_DIR "/plan-run.txt",
        "-" RUN_DIR "/devices.json", "-" RUN_DIR "/driver-options",
        "-/var/lib/nodestrap/events.json", "-" RUN_DIR "/progress",
        "-" PRE_PULL_RESULT,
};

/* Names, modes, sizes and times for listing.txt, without contents. */
static const char directories[][40] = {
        RUN_DIR, "/run/nodestrap/started", "/run/nodestrap/events", "/run/eks/nodeadm", "/run/nodeadm",
        "/var/lib/nodestrap", "/etc/eks", "/etc/eks/nodeadm.d", "/etc/eks/image-credential-provider",
        "/etc/kubernetes/kubelet", "/etc/kubernetes/kubelet/config.json.d", "/etc/containerd",
        "/etc/containerd/certs.d",
        "/etc/cni/net.d", "/opt/cni/bin", KUBELET_DIR, "/var/lib/kubelet/pki", CONTAINERD_DIR, SOCI_DIR,
        "/run/containerd", "/mnt/k8s-disks", "/dev/md", "/dev/nvidia-caps", "/dev/nvidia-caps-imex-channels",
        "/dev/infiniband", "/sys/class/infiniband",
};

/* A line for each entry of the directory: its name, and the contents of these files below it. */
static const struct ListRow { char name[24]; const char *directory, *attributes; } lists[] = {
        { "machine/block.txt", "/sys/block",
          "size ro removable queue/rotational device/model device/serial device/state md/array_state "
          "md/level" },
        { "machine/net.txt", "/sys/class/net", "address operstate mtu speed device/uevent" },
        { "machine/pci.txt", "/sys/bus/pci/devices", "uevent numa_node" },
        { "machine/hugepages.txt", "/sys/kernel/mm/hugepages",
          "nr_hugepages free_hugepages surplus_hugepages" },
        { "machine/numa.txt", "/sys/devices/system/node", "cpulist" },
};

#define NODE_UNITS                                                                             \
        "nodestrap-config nodestrap-devices nodestrap-run nodestrap-joined nodestrap-event "   \
        "nodestrap-event.path nodeadm-config nodeadm-run containerd kubelet soci-snapshotter"
#define GPU_UNITS                                                                              \
        "nvidia-persistenced nvidia-fabricmanager nvidia-imex nvidia-setup nvidia-kmod-load "  \
        "nvidia-driver-resolve nvidia-cdi-refresh.path nvidia-cdi-refresh set-nvidia-clocks "  \
        "nodestrap-prove@*"

/* Argument vectors, split at blanks; never a shell. The slowest come last. */
static const struct ProgramRow { char name[24]; const char *command; } programs[] = {
        { "systemd/units.txt", "systemctl --no-pager --full --all list-units" },
        { "systemd/failed.txt", "systemctl --no-pager --full --failed list-units" },
        { "systemd/jobs.txt", "systemctl --no-pager --full list-jobs" },
        { "systemd/unit-files.txt", "systemctl --no-pager --full list-unit-files" },
        { "systemd/state.txt", "systemctl is-system-running" },
        { "systemd/show.txt",
          "systemctl --no-pager show -p Id,LoadState,ActiveState,SubState,Result,UnitFileState,FragmentPath,"
          "DropInPaths,NRestarts,ConditionResult,ExecMainStatus,ExecMainStartTimestampMonotonic,"
          "ExecMainExitTimestampMonotonic,ActiveEnterTimestampMonotonic " NODE_UNITS " " GPU_UNITS
          " cloud-init cloud-init-network cloud-config cloud-final" },
        { "systemd/cat.txt",
          "systemctl --no-pager cat nodestrap-config nodestrap-devices nodestrap-run nodestrap-joined "
          "containerd kubelet" },
        { "machine/df.txt", "df -h -l -T" },
        { "machine/inodes.txt", "df -i -l" },
        { "machine/lsblk.txt", "lsblk -o NAME,TYPE,SIZE,FSTYPE,UUID,MOUNTPOINT,MODEL,SERIAL,STATE" },
        { "machine/addresses.txt", "ip -s address" },
        { "machine/routes.txt", "ip route show table all" },
        { "machine/rules.txt", "ip rule" },
        { "machine/ps.txt", "ps -e -o pid,ppid,stat,etimes,rss,wchan:24,comm" },
        { "versions/kubelet.txt", "kubelet --version" },
        { "versions/containerd.txt", "containerd --version" },
        { "versions/runc.txt", "runc --version" },
        { "versions/systemd.txt", "systemctl --version" },
        { "containerd/images.txt", "ctr --connect-timeout 2s --namespace k8s.io images list" },
        { "containerd/plugins.txt", "ctr --connect-timeout 2s plugins list" },
        { "journal" },          /* add_journals() */
        { "versions/nvidia-ctk.txt", "nvidia-ctk --version" },
        { "nvidia/list.txt", "nvidia-smi -L" },
        { "nvidia/query.txt", "nvidia-smi -q" },
        { "nvidia/topology.txt", "nvidia-smi topo -m" },
        { "nvidia/imex.txt", "nvidia-imex-ctl -N" },
};

/* Of this boot; the newest lines of each. */
static const struct JournalRow { char name[24]; const char *matches; unsigned lines; } journals[] = {
        { "journal/nodestrap.txt", "-u nodestrap-*", 20000 },
        { "journal/verdicts.txt", "-t nodestrap -o verbose", 200 },
        { "journal/nodeadm.txt", "-u nodeadm-* -u udev-net-manager@*", 5000 },
        { "journal/containerd.txt", "-u containerd", 10000 },
        { "journal/kubelet.txt", "-u kubelet", 20000 },
        { "journal/soci.txt", "-u soci-snapshotter", 5000 },
        { "journal/nvidia.txt", "-u nvidia-* -u set-nvidia-clocks", 10000 },
        /* Without output of user scripts, such as "set -x" of a login, which comes from the same units. Only
         * lines that begin like those of PID 1 and cloud-init itself match. __init__.py does not: it shows
         * the first bytes of unknown user data (canonical/cloud-init:cloudinit/handlers/__init__.py). */
        { "journal/cloud-init.txt",
          "-u cloud-init* -u cloud-config -u cloud-final "
          "--grep=^(Cloud-init.v|cloud-[a-z-]+[.]service:|"
          "20[-0-9]+.[0-9:,]+.-.[a-z][a-z_]*[.]py.[A-Z]+.:)",
          5000 },
        { "journal/system.txt",
          "-u systemd-modules-load -u systemd-networkd -u systemd-resolved -u systemd-udevd -u chronyd",
          5000 },
        { "journal/kernel.txt", "-k", 20000 },
};

/* ---- files ---- */

static MaskFormat format_of(const char *path, const char *text) {
        if (endswith(path, ".toml"))
                return MASK_TOML;
        if (streq(path, KUBECONFIG) || streq(path, KUBECONFIG_BOOTSTRAP))
                return MASK_YAML;
        if (streq(path, KUBELET_ENVIRONMENT) || streq(path, TAINT_FILE))
                return MASK_ARGUMENTS;
        if (startswith(path, ENVIRONMENT_DIR "/"))
                return MASK_VARIABLES;
        if (text[strspn(text, " \t\r\n")] == '{')
                return MASK_JSON;
        return startswith(path, UNIT_DIR "/") || startswith(path, "/run/systemd/") ||
                               startswith(path, "/etc/systemd/")
                       ? MASK_UNIT
                       : MASK_TEXT;
}

/* A driver answers under its locks, and a disk may hang, so a child process reads, which this can kill or
 * leave. */
typedef struct Reading {
        int (*read)(const Root *root, const void *row, Text *out);      /* 0 or a negative errno */
        const Root *root; const void *row;
} Reading;

static int read_row(void *argument) {
        const Reading *reading = argument;
        Text out = {};
        int r = reading->read(reading->root, reading->row, &out);
        for (size_t done = 0; done < out.size;) {
                ssize_t n = write(STDOUT_FILENO, out.data + done, out.size - done);
                if (n < 0)
                        return errno;
                done += (size_t)n;
        }
        return -r;
}

/* -ETIME, or the result of read. The caller frees *ret. */
static int read_apart(const Bundle *b, int (*read)(const Root *, const void *, Text *), const void *row,
                      char **ret, size_t *ret_size) {
        Reading reading = { .read = read, .root = b->root, .row = row };
        _cleanup_(child_result_done) ChildResult result = {};
        uint64_t now = now_usec(), left = b->deadline_usec - MIN(b->deadline_usec, now);
        int r = left == 0 ? -ETIME
                          : child_call(read_row, &reading, MIN(FILE_USEC, left), OUTPUT_MAX, &result);
        if (r < 0 || result.timed_out)
                return r < 0 ? r : -ETIME;
        *ret = TAKE_PTR(result.output);
        *ret_size = result.size;
        return -result.status;
}

/* Of a log the last MiB and one byte, which shows that there is more. */
static int read_file(const Root *root, const void *path, Text *out) {
        _cleanup_(close_fd) int fd = root_open(root, path, O_RDONLY | O_NOCTTY | O_NONBLOCK);
        bool is_log = endswith(path, ".log");
        if (fd >= 0 && is_log)
                (void)lseek(fd, -(off_t)(FILE_MAX + 1), SEEK_END);      /* fails for a shorter one, which
                                                                         * stays whole */
        return fd < 0 ? fd : fd_read(fd, is_log ? 2 * FILE_MAX : FILE_MAX, &out->data, &out->size);
}

/* Cuts at the start of a line. */
static void cut_log(Bundle *b, const char *name, char *text, size_t *size) {
        const char *end = memchr(text, '\n', *size);
        size_t skip = end ? (size_t)(end + 1 - text) : 0;
        memmove(text, text + skip, *size - skip + 1);
        *size -= skip;
        bundle_miss(b, name, "only its last %u MiB", FILE_MAX >> 20);
}

/* -EACCES: only root may read it. */
static int mode_of_all(const Root *root, const void *path, _unused_ Text *out) {
        _cleanup_(close_fd) int fd = root_open(root, path, O_PATH | O_NOFOLLOW);
        struct stat st;
        return fd < 0 ? fd : fstat(fd, &st) == 0 && st.st_mode & 0044 ? 0 : -EACCES;
}

/* 0, -EACCES: only root may read it, or another error. */
static int is_readable(const Bundle *b, const char *path) {
        _free_ char *nothing = NULL;
        size_t size = 0;
        return read_apart(b, mode_of_all, path, &nothing, &size);
}

static void add_file(Bundle *b, const char *name, const char *path) {
        _free_ char *text = NULL;
        char *masked;
        size_t size = 0, masked_size;
        bool optional = *path == '-';
        path += optional;
        if (bundle_has(b, name))
                return;
        int r = b->blind && is_readable(b, path) == -EACCES
                        ? -EKEYREJECTED
                        : read_apart(b, read_file, path, &text, &size);
        if (r == -ENOENT || r == -ENOTDIR) {
                if (!optional)
                        bundle_miss(b, name, "%s is missing", path);
                return;
        }
        if (r >= 0 && endswith(path, ".log") && size > FILE_MAX)
                cut_log(b, name, text, &size);
        if (r >= 0)
                r = mask_file(&b->secrets, format_of(path, text), text, size, &masked, &masked_size);
        if (r >= 0)
                bundle_add(b, name, masked, masked_size);
        else if (r == -EKEYREJECTED)
                bundle_miss(b, name, "%s is readable only by root, and its secrets are not known; left out",
                            path);
        else if (r == -EBADMSG)
                bundle_miss(b, name, "%s cannot be parsed, so its secrets are not known; left out", path);
        else
                bundle_miss(b, name, "%s cannot be read: %s", path, strerror(-r));
}

/* Recursive: expands the first '*'. */
static void add_matching(Bundle *b, const char *pattern) {
        const char *star = strchr(pattern, '*');
        if (!star) {
                _free_ char *name = xasprintf("files%s", pattern + (*pattern == '-'));
                add_file(b, name, pattern);
                return;
        }
        const char *begin = star, *end = star + strcspn(star, "/");
        while (begin[-1] != '/')
                begin--;
        _free_ char *directory = xstrndup(pattern, (size_t)(begin - pattern)),
                    *part = xstrndup(begin, (size_t)(end - begin));
        _strv_ char **names = root_names(b->root, directory + (*directory == '-'));
        STRV_FOREACH(name, names)
                if (fnmatch(part, *name, FNM_PERIOD) == 0) {
                        _free_ char *path = xasprintf("%s%s%s", directory, *name, end);
                        add_matching(b, path);
                }
}

/* The digest of a short file would reveal its content. */
static void add_manifest(Bundle *b) {
        _free_ char *text = NULL;
        size_t size = 0, i;
        json_t *entry;
        int r = read_apart(b, read_file, MANIFEST_FILE, &text, &size);
        _cleanup_(json_decrefp) json_t *manifest = r < 0 ? NULL : json_loadb(text, size, 0, NULL);
        if (!manifest) {
                bundle_miss(b, "manifest.json", MANIFEST_FILE ": %s", r < 0 ? strerror(-r) : "not JSON");
                return;
        }
        json_array_foreach(json_object_get(manifest, "files"), i, entry) {
                const char *path = json_get_text(entry, "path");
                _free_ char *name = xasprintf("files%s", path);
                if (path[0] == '/')
                        add_file(b, name, path);
                if (json_is_object(entry) && is_readable(b, path) < 0)
                        json_object_set_new(entry, "sha256", json_string(HIDDEN));      /* a short content
                                                                                         * shows through */
        }
        char *shown = json_text(manifest, 4, false);
        bundle_add(b, "manifest.json", shown, strlen(shown));
}

/* ---- directories ---- */

static void list_entry(const Root *root, const char *directory, const char *name, Text *out) {
        _free_ char *path = xasprintf("%s/%s", directory, name);
        struct stat st;
        _cleanup_(close_fd) int fd = root_open(root, path, O_PATH | O_NOFOLLOW);
        if (fd >= 0 && fstat(fd, &st) == 0)
                text_add(out, "  %06o %5u %5u %12lld %lld  ", st.st_mode, st.st_uid, st.st_gid,
                         (long long)st.st_size, (long long)st.st_mtime);
        text_add_shown(out, name, strlen(name), 200, 0);
        text_add(out, "\n");
}

static int read_directory(const Root *root, const void *directory, Text *out) {
        _strv_ char **names = NULL;
        int r = root_list(root, directory, &names);
        for (char **name = names; name && *name; name++)
                list_entry(root, directory, *name, out);
        return r;
}

static void add_listing(Bundle *b) {
        Text out = {};
        text_add(&out, "mode, owner, group, size, seconds since 1970, name\n");
        for (size_t i = 0; i < ARRAY_SIZE(directories); i++) {
                _free_ char *lines = NULL;
                size_t n;
                int r = read_apart(b, read_directory, directories[i], &lines, &n);
                text_add(&out, "\n%s%s%s\n%s", directories[i], r < 0 ? ": " : "",
                         r < 0 ? strerror(-r) : "", lines ?: "");
        }
        size_t size = out.size;
        bundle_add(b, "listing.txt", text_take(&out), size);
}

static void list_attributes(const Root *root, const struct ListRow *row, const char *entry, Text *out) {
        text_add(out, "%s", entry);
        for (const char *at = row->attributes; *at;) {
                _free_ char *word = str_cut(&at, " "), *value = NULL,
                            *path = xasprintf("%s/%s/%s", row->directory, entry, word);
                if (root_read(root, path, ATTRIBUTE_MAX, &value, NULL) < 0)
                        continue;
                _free_ char *bare = str_strip(value);
                for (char *end = strchr(bare, '\n'); end; end = strchr(end, '\n'))
                        *end = ' ';
                text_add(out, "  %s=%s", word, bare);
        }
        text_add(out, "\n");
}

static int read_list(const Root *root, const void *list, Text *out) {
        _strv_ char **entries = NULL;
        const struct ListRow *row = list;
        int r = root_list(root, row->directory, &entries);
        for (char **entry = entries; entry && *entry; entry++)
                list_attributes(root, row, *entry, out);
        return r;
}

static void add_list(Bundle *b, const struct ListRow *row) {
        _free_ char *text = NULL;
        size_t size;
        int r = read_apart(b, read_list, row, &text, &size);
        if (r < 0)
                bundle_miss(b, row->name, "%s: %s", row->directory, strerror(-r));
        else
                bundle_add(b, row->name, TAKE_PTR(text), size);
}

/* ---- programs ---- */

/* Half a line might be half a secret. */
static size_t whole_lines(const ChildResult *result) {
        if (!result->cut && !result->timed_out)
                return result->size;
        const char *last = memrchr(result->output, '\n', result->size);
        return last ? (size_t)(last - result->output) + 1 : 0;
}

static void add_output(Bundle *b, const char *name, const char *command) {
        _strv_ char **argv = NULL;
        _cleanup_(child_result_done) ChildResult result = {};
        do
                strv_push(&argv, str_cut(&command, " "));
        while (*command);
        uint64_t now = now_usec();
        if (now >= b->deadline_usec) {
                bundle_miss(b, name, "%s did not run: no time left", argv[0]);
                return;
        }
        int r = child_run(argv, MIN(PROGRAM_USEC, b->deadline_usec - now), OUTPUT_MAX, &result);
        if (r < 0) {
                bundle_miss(b, name, "%s %s", argv[0],
                            r == -ENOENT ? "is not on this machine" : "cannot be run");
                return;
        }
        if (result.timed_out)
                bundle_miss(b, name, "%s timed out and was killed", argv[0]);
        else if (strstr(result.errors, "No data available"))    /* journalctl, if no unit matches */
                bundle_miss(b, name, "no entries");
        else if (result.status != 0)
                bundle_miss(b, name, "%s: exit status %d%s%s", argv[0], result.status,
                            *result.errors ? ": " : "", result.errors);
        if (result.cut)
                bundle_miss(b, name, "only its first %u MiB (for a journal, the newest)", OUTPUT_MAX >> 20);
        size_t size = whole_lines(&result);
        if (size > 0)
                bundle_add(b, name, TAKE_PTR(result.output), size);
}

static void add_journal(Bundle *b, const struct JournalRow *row) {
        const char *root = root_is_host(b->root) ? "" : root_path(b->root);
        _free_ char *command =
                /* the oldest lines are cut off */
                xasprintf("journalctl --no-pager --quiet --utc --reverse -b -n %u%s%s %s%s", row->lines,
                          *root ? " --root=" : "", root,
                          strstr(row->matches, "-o ") ? "" : "-o short-iso-precise ", row->matches);
        if (strchr(root, ' '))
                bundle_miss(b, row->name, "--root contains a space");
        else
                add_output(b, row->name, command);
}

/* The listing, too, may hang on a disk that does not answer. */
static void add_journals(Bundle *b) {
        add_listing(b);
        for (size_t i = 0; i < ARRAY_SIZE(journals); i++)
                add_journal(b, &journals[i]);
}

void bundle_gather(Bundle *b) {
        b->blind = !bundle_has(b, "config.json") && b->secrets.n == 0;
        for (size_t i = 0; i < ARRAY_SIZE(own_files); i++)
                add_file(b, path_last(own_files[i]), own_files[i]);
        for (size_t i = 0; i < ARRAY_SIZE(files); i++)
                add_matching(b, files[i]);
        add_manifest(b);
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                add_list(b, &lists[i]);
        for (size_t i = 0; i < ARRAY_SIZE(programs); i++) {
                if (!programs[i].command)
                        add_journals(b);
                else if (root_is_host(b->root))
                        add_output(b, programs[i].name, programs[i].command);
        }
        for (size_t i = 0; i < ARRAY_SIZE(driver_files); i++)
                add_matching(b, driver_files[i]);
        if (!root_is_host(b->root))
                bundle_miss(b, "systemd, machine, nvidia, versions, containerd",
                            "not run: programs describe the running machine, not the files below --root");
}
