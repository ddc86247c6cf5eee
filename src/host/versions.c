/* SPDX-License-Identifier: Apache-2.0
 * Versions of kubelet, containerd and driver: of AMI version files, else of the program itself, which takes
 * 50 ms. The files: awslabs/amazon-eks-ami, nodeadm/internal/{kubelet,containerd}/version.go */
#include "host/detect.h"

#include "base/paths.h"
#include "base/run.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>

typedef struct Program { const char *name, *option, *file; } Program;
static const Program kubelet = { "kubelet", "--kubelet-version", "/etc/eks/kubelet-version.txt" };
static const Program containerd = { "containerd", "--containerd-version", "/etc/eks/containerd-version.txt" };

static size_t count_digits(const char *s) {
        return strspn(s, "0123456789");
}

/* The length of "1.33.4" at s (patch_optional: also "1.33"), or 0. */
static size_t version_length(const char *s, bool patch_optional) {
        size_t n = 0;
        for (int part = 0; part < 3; part++) {
                if (part > 0 && s[n] != '.')
                        return part == 2 && patch_optional ? n : 0;
                n += part > 0;
                size_t digits = count_digits(s + n);
                if (digits == 0 || digits > 6)
                        return 0;
                n += digits;
        }
        return n;
}

/* The first "1.33.4" in text, or NULL. */
static char *version_find(const char *text) {
        for (const char *p = text; *p; p += MAX(count_digits(p), 1U)) {
                size_t n = version_length(p, false);
                if (n > 0)
                        return xstrndup(p, n);
        }
        return NULL;
}

static const char *sample_version(const char *option) {
        return streq(option, "--driver-version")       ? "580.159.04"
               : streq(option, "--containerd-version") ? "2.1.5" : "1.33.4";
}

int version_option(const char *option, const char *text, char **ret, Diag *diag) {
        const char *digits = text + (*text == 'v');
        size_t n = version_length(digits, true);
        /* A build may follow: 1.33.4-eks-99d6cc0, 2.1.5~1. */
        if (n == 0 || (digits[n] && !strchr("-+~", digits[n])) || digits[strcspn(digits, " \t\r\n")])
                return diag_error_at(diag, -EINVAL, CAUSE_USAGE, NULL, option,
                                     "cannot read \"%s\" as a version; write one such as %s", text,
                                     sample_version(option));
        _free_ char *version = xstrndup(digits, n);
        *ret = version_length(version, false) > 0 ? TAKE_PTR(version) : xasprintf("%s.0", version);
        return 0;
}

/* The first start reads tens of MB; an EBS volume may stall for a minute. */
#define PROGRAM_SEC 120

static int ask_program(const Program *p, char **ret, Diag *diag) {
        _cleanup_(child_result_done) ChildResult c = {};
        char *argv[] = { (char *)p->name, (char *)"--version", NULL };
        int r = child_run(argv, PROGRAM_SEC * USEC_PER_SEC, 64 << 10, &c);

        if (r < 0)
                return diag_error(
                        diag, r, CAUSE_FACTS,
                        "the version of %s is not known: %s does not exist, and %s does not run (%s). "
                        "Install %s, give its version with %s, or plan for another machine with "
                        "--instance-type",
                        p->name, p->file, p->name, strerror(-r), p->name, p->option);
        if (c.timed_out)
                return diag_error(
                        diag, -ETIMEDOUT, CAUSE_FACTS,
                        "%s --version did not end within %d s and was killed; write the version to %s",
                        p->name, PROGRAM_SEC, p->file);
        *ret = c.status == 0 ? version_find(c.output) : NULL;
        if (!*ret)
                return diag_error(
                        diag, -EBADMSG, CAUSE_FACTS,
                        "%s --version exited with status %d and printed no version%s%s; write the version "
                        "to %s",
                        p->name, c.status, *c.errors ? ": " : "", c.errors, p->file);
        return 0;
}

static int detect_version(const Root *root, const Program *p, const char *given, char **ret, Diag *diag) {
        _free_ char *text = NULL;
        if (given)
                return version_option(p->option, given, ret, diag);
        int r = root_read(root, p->file, 4096, &text, NULL);
        if (r == -ENOENT && root_is_host(root))
                return ask_program(p, ret, diag);
        if (r == -ENOENT)
                return diag_error(diag, r, CAUSE_FACTS,
                                  "the version of %s is not known: %s does not exist below %s, and "
                                  "nodestrap runs no programs there. Write it to that file, or plan with %s",
                                  p->name, p->file, root_path(root), p->option);
        if (r < 0)
                return fact_error(diag, r, p->file, "the version is not known");
        *ret = version_find(text);
        return *ret ? 0
                    : fact_error(diag, -EBADMSG, p->file,
                                 "it has no version such as 1.33.4; write the version of the program there");
}

int host_program_version(const Root *root, const char *program, const char *given, char **ret, Diag *diag) {
        return detect_version(root, streq(program, kubelet.name) ? &kubelet : &containerd, given, ret, diag);
}

/* Of the loaded module; most machines have none. */
static int detect_driver(const Root *root, const char *given, Host *h, Diag *diag) {
        if (given)
                return version_option("--driver-version", given, &h->driver_version, diag);
        int r = root_read_line(root, "/sys/module/nvidia/version", &h->driver_version);
        if (r < 0 && r != -ENOENT)
                return fact_error(diag, r, "/sys/module/nvidia/version",
                                  "the version of the NVIDIA driver is not known");
        return 0;
}

/* 1, 0 or an error. */
static int program_exists(const Root *root, const char *path, Diag *diag) {
        int r = root_executable(root, path);
        return r < 0 ? fact_error(diag, r, path, "cannot tell if this program exists") : r;
}

/* The same for files that nodeadm configures as soon as they exist (os.Stat in
 * internal/containerd/runtime_config_nvidia.go and internal/kubelet/image-credential-provider.go). */
static int file_exists(const Root *root, const char *path, const char *consequence, Diag *diag) {
        int runs = program_exists(root, path, diag), there = runs == 0 ? root_exists(root, path) : runs;
        if (runs == 0 && there > 0)
                diag_warn_at(diag, "not-executable", NULL, path, "exists but is not executable, %s",
                             consequence);
        return there;
}

static int detect_provider(const Root *root, Host *h, Diag *diag) {
        const char *given = getenv("ECR_CREDENTIAL_PROVIDER_BIN_PATH");
        bool named = given && *given;
        const char *path = named ? given : ECR_PROVIDER, *why = "it names a path that does not exist";
        _strv_ char **names = NULL;
        int r = 0;

        if (root_list(root, path, &names) >= 0)
                why = "it names a directory instead of the program";
        else
                r = file_exists(root, path, "so kubelet cannot pull from private ECR registries, and "
                                            "recent kubelets do not start: chmod 0755", diag);
        if (r == 0 && named)
                return diag_error_at(diag, -ENOENT, CAUSE_FACTS, NULL, "ECR_CREDENTIAL_PROVIDER_BIN_PATH",
                                     "%s, and kubelet cannot pull from ECR without the provider; correct or "
                                     "unset the variable", why);
        if (r > 0)
                h->image_credential_provider = xstrdup(path);
        return r < 0 ? r : 0;
}

int detect_programs(const Root *root, Host *h, Diag *diag) {
        static const char *const soci[] = { "/usr/local/bin/soci-snapshotter-grpc",
                                            "/usr/bin/soci-snapshotter-grpc" };
        int r = file_exists(root, NVIDIA_RUNTIME,
                            "and containerd runs every container with it: no container will start", diag);
        if (r < 0)
                return r;
        h->nvidia_runtime = r;
        for (size_t i = 0; i < ARRAY_SIZE(soci) && !h->soci_snapshotter; i++) {
                r = program_exists(root, soci[i], diag);
                if (r < 0)
                        return r;
                h->soci_snapshotter = r;
        }
        return detect_provider(root, h, diag);
}

int detect_versions(const Root *root, const HostOptions *options, Host *h, Diag *diag) {
        /* Looks for both before it fails: one list of what is missing. */
        int r = detect_version(root, &kubelet, options->kubelet_version, &h->kubelet_version, diag);
        int q = detect_version(root, &containerd, options->containerd_version, &h->containerd_version, diag);
        if (r < 0 || q < 0)
                return r < 0 ? r : q;
        return detect_driver(root, options->driver_version, h, diag) ?: detect_programs(root, h, diag);
}
