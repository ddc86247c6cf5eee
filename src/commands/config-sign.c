/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap config sign` and `config verify`. Neither validates the configuration; `config check` does. */
#include "commands/output.h"
#include "commands/run.h"
#include "commands/sources.h"

#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <sys/stat.h>
#include <time.h>

/* before base64 (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/user-data.html) */
#define USER_DATA_MAX 16384
#define KEY_LIMIT     4096

void tell_signatures(const Run *run) {
        const Sources *from = run->sources;
        for (size_t i = 0; i < from->signatures.n; i++) {
                _free_ char *text = signature_text(&from->signatures.items[i]);
                log_info("%s.", text);
        }
        for (size_t i = 0; i < from->blobs.n && !from->trust; i++)
                if (signature_is_there(&from->blobs.items[i]))
                        log_info("this machine does not check the signature of %s: " TRUSTED_DIR
                                 " is missing or empty; to have it checked, put the public key there.",
                                 from->blobs.items[i].at.source);
}

static int check_fields(const Options *o, Signature *ret, Diag *diag) {
        const char *const fields[] = { "account", o->account, "region", o->region, "cluster", o->cluster };
        uint64_t serial = (uint64_t)time(NULL);
        if (!o->key)
                return diag_error(
                        diag, -EINVAL, CAUSE_USAGE,
                        "config sign needs a private key: -k KEY.pem; make one: openssl genpkey -algorithm "
                        "ed25519 -out KEY.pem");
        if (o->serial && (parse_u64(o->serial, &serial) < 0 || serial > INT64_MAX))
                return diag_error(diag, -EINVAL, CAUSE_USAGE, "--serial takes a number, not \"%s\"",
                                  o->serial);
        for (size_t i = 0; i < ARRAY_SIZE(fields); i += 2)
                if (fields[i + 1] && !signature_field_is_valid(fields[i], fields[i + 1]))
                        return diag_error(diag, -EINVAL, CAUSE_USAGE, "--%s \"%s\": %s", fields[i],
                                          fields[i + 1],
                                          streq(fields[i], "account") ? "an AWS account id has 12 digits"
                                                                      : "not a valid name");
        *ret = (Signature){ .serial = serial };
        ret->account = xstrdup_or_null(o->account);
        ret->region = xstrdup_or_null(o->region);
        ret->cluster = xstrdup_or_null(o->cluster);
        return 0;
}

static int read_key(const Root *root, const char *file, Ed25519Key *ret, Diag *diag) {
        _free_ char *path = root_absolute(root, file), *text = NULL;
        const Position at = { .source = file };
        const char *why = NULL;
        struct stat st = {};
        size_t size = 0;
        int r = path ? root_read(root, path, KEY_LIMIT, &text, &size) : -ENOENT;
        THEN(r, ed25519_parse_private(text, size, ret, &why));
        if (text)
                OPENSSL_cleanse(text, size);
        if (r < 0)
                return diag_error_at(diag, r, CAUSE_USAGE, &at, NULL, "cannot sign with this key: %s",
                                     why ?: strerror(-r));
        _cleanup_(close_fd) int fd = root_open(root, path, O_PATH);
        if (fd >= 0 && fstat(fd, &st) == 0 && st.st_mode & (S_IRWXG | S_IRWXO))
                diag_warn_at(diag, "key-readable", &at, NULL,
                             "other users may read this private key: chmod 600 %s",
                             file);
        return 0;
}

/* Refuses text that no node can read, and a configuration for another cluster than --cluster. A part may be
 * missing here, because drop-ins of the image may have it. */
static int check_content(Blobs *blobs, const char *cluster, Diag *diag) {
        _cleanup_(documents_done) Documents documents = {};
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_(diag_done) Diag ignored = {};
        int r = source_decode(blobs, &documents, diag);
        if (r < 0)
                return r;
        if (config_load_unchecked(&documents, &config, &ignored) < 0) {
                diag_warn(diag, "no-config",
                          "the sources have no valid NodeConfig; see nodestrap config check");
                return 0;
        }
        json_t *spec = json_object_get(config->document, "spec");
        const char *name = json_string_value(json_object_get(json_object_get(spec, "cluster"), "name"));
        if (cluster && name && !streq(name, cluster))
                return diag_error(
                        diag, -EINVAL, CAUSE_USAGE,
                        "--cluster %s: the configuration is for the cluster %s, so every node would refuse "
                        "it",
                        cluster, name);
        return 0;
}

/* Checks the output as a node would. */
static int check_signed(const char *text, const Options *o, Diag *diag) {
        _cleanup_(blobs_done) Blobs blobs = {};
        size_t size = strlen(text);
        blobs_add(&blobs, (Position){ .source = "signed text" }, xmemdup(text, size), size);
        if (size > USER_DATA_MAX)
                diag_warn(diag, "user-data-large",
                          "the output is %zu bytes, but EC2 accepts at most %d as user data: compress it "
                          "(gzip -9); nodestrap, nodeadm and cloud-init can read gzip",
                          size, USER_DATA_MAX);
        return check_content(&blobs, o->cluster, diag);
}

int command_config_sign(Run *run) {
        Sources *from = run->sources;
        const Options *o = &run->options;
        _cleanup_(signature_done) Signature fields = {};
        _free_ char *text = NULL;
        Ed25519Key key = {};
        run->step = "sign";
        int r = check_fields(o, &fields, &run->diag);
        THEN(r, read_key(run->root, o->key, &key, &run->diag));
        for (char **s = o->sources; r >= 0 && *s; s++)
                if (source_is_imds(*s))
                        r = diag_error(
                                &run->diag, -EINVAL, CAUSE_USAGE,
                                "config sign does not take %s: name a file that you vouch for, -c "
                                "file://PATH",
                                *s);
        THEN(r, source_read(run->root, o->sources, NULL, SOURCE_STREAMS | SOURCE_BARE, &from->blobs,
                            &run->diag));
        if (r >= 0 && from->blobs.n == 0)
                r = diag_error(&run->diag, -ENODATA, CAUSE_NO_CONFIG,
                               "config sign found no user data: the sources are empty; name others with -c");
        THEN(r, signature_make(&from->blobs, &key, &fields, &text, &run->diag));
        OPENSSL_cleanse(&key, sizeof key);
        THEN(r, check_signed(text, o, &run->diag));
        if (r < 0)
                return r;
        return o->output_file ? output_file(o->output_file, text, strlen(text), &run->diag)
                              : output_text(text, &run->diag);
}

int command_config_verify(Run *run) {
        Sources *from = run->sources;
        const Options *o = &run->options;
        run->step = "verify";
        for (char **s = o->sources; *s && !run->imds; s++)
                if (source_is_imds(*s))
                        run->imds = imds_new(0);
        int r = o->key ? trust_load_file(run->root, o->key, &from->trust, &run->diag)
                       : trust_load(run->root, &from->trust, &run->diag);
        if (r >= 0 && !from->trust)
                r = diag_error(&run->diag, -ENOKEY, CAUSE_USAGE,
                               TRUSTED_DIR " has no key; name the public key of the signer: -k KEY.pub");
        THEN(r, source_read(run->root, o->sources, run->imds, SOURCE_STREAMS | SOURCE_BARE, &from->blobs,
                            &run->diag));
        THEN(r, signatures_verify(&from->blobs, from->trust, &from->signatures, &run->diag));
        if (r >= 0 && from->signatures.n == 0)
                r = diag_error(&run->diag, -ENODATA, CAUSE_SIGNATURE,
                               "config verify found no signature: the sources are empty; name others with "
                               "-c");
        if (r >= 0)
                tell_signatures(run);
        return r;
}
