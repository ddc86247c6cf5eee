/* SPDX-License-Identifier: Apache-2.0
 * kubeconfig (https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/) and the environment file of
 * kubelet → KubeAccess. It reads what kubelet reads, not the NodeConfig: scripts may have changed the
 * files since init wrote them. */
#include "base/json.h"
#include "base/paths.h"
#include "base/str.h"
#include "doc/doc.h"
#include "doc/env-file.h"
#include "kube/kube.h"

#include <errno.h>
#include <jansson.h>

#define ARGUMENTS   "NODEADM_KUBELET_ARGS"
#define OVERRIDE    "--hostname-override"
#define FILE_MAX    (1u << 20)

/* On Outposts kubelet makes the first one, with a certificate; the second one has the plugin. */
static const char *const kubeconfigs[] = { KUBECONFIG, KUBECONFIG_BOOTSTRAP };

void kube_access_done(KubeAccess *a) {
        FREE_ALL(a->server, a->host, a->ca, a->ca_path, a->cluster, a->region, a->role, a->node, a->boot_id);
        *a = (KubeAccess){};
}

/* [{name: NAME, KIND: {…}}] → {…} */
static const json_t *find_named(const json_t *config, const char *list, const char *kind, const char *name) {
        const json_t *item;
        size_t i;
        json_array_foreach(json_object_get(config, list), i, item) {
                const char *its_name = json_string_value(json_object_get(item, "name"));
                if (name && its_name && streq(its_name, name))
                        return json_object_get(item, kind);
        }
        return NULL;
}

/* "--NAME", "VALUE" or "--NAME=VALUE" → VALUE; NULL: not there. */
static char *find_argument(const json_t *arguments, const char *name) {
        size_t n = strlen(name), i;
        const json_t *item;
        json_array_foreach(arguments, i, item) {
                const char *word = json_string_value(item) ?: "",
                           *next = json_string_value(json_array_get(arguments, i + 1));
                if (streq(word, name) && next)
                        return xstrdup(next);
                if (startswith(word, name) && word[n] == '=')
                        return xstrdup(word + n + 1);
        }
        return NULL;
}

#define FIND_ANY(arguments, ...)                                                               \
        find_any(arguments, (const char *const[]){ __VA_ARGS__, NULL })
static char *find_any(const json_t *arguments, const char *const *names) {
        char *value = NULL;
        for (; *names && !value; names++)
                value = find_argument(arguments, *names);
        return value;
}

/* Spellings of aws, nodestrap, aws-iam-authenticator. */
static bool take_plugin(const json_t *arguments, KubeAccess *a) {
        a->cluster = FIND_ANY(arguments, "--cluster-name", "--cluster-id", "-i");
        a->region = find_argument(arguments, "--region");
        a->role = FIND_ANY(arguments, "--role-arn", "--role", "-r");
        return a->cluster;
}

static int take_authority(const Root *root, const json_t *cluster, const char *path, KubeAccess *a,
                          Diag *diag) {
        const char *data = json_string_value(json_object_get(cluster, "certificate-authority-data"));
        a->ca_path = json_copy_text(cluster, "certificate-authority");
        int r = -ENOENT;
        if (data)
                r = base64_decode(data, strlen(data), true, &a->ca, &a->ca_size);
        else if (a->ca_path)
                r = root_read(root, a->ca_path, FILE_MAX, &a->ca, &a->ca_size);
        if (!a->ca_path)
                a->ca_path = xstrdup(path);
        if (r >= 0 && strstr(a->ca, "-----BEGIN CERTIFICATE-----"))
                return 0;
        return diag_error(diag, -EBADMSG, CAUSE_API_CERT,
                          "the CA of the API server in %s: %s; run nodestrap init, or check "
                          "spec.cluster.certificateAuthority",
                          a->ca_path, r < 0 ? strerror(-r) : "not a certificate in PEM form");
}

/* kubelet also uses http, and validation accepts it. Schemes ignore case. */
static int take_server(const json_t *cluster, const char *path, KubeAccess *a, Diag *diag) {
        a->server = json_copy_text(cluster, "server");
        const char *server = a->server ?: "";
        if (strncasecmp(server, "http://", strlen("http://")) == 0)
                return diag_error(diag, -EBADMSG, CAUSE_NO_KUBECONFIG,
                                  "the server in %s is http: kubelet uses it, but nodestrap does not send a "
                                  "token in clear text and cannot watch this node. If the server also "
                                  "answers https, correct spec.cluster.apiServerEndpoint and run "
                                  "nodestrap init",
                                  path);
        if (strncasecmp(server, "https://", strlen("https://")) != 0)
                return diag_error(diag, -EBADMSG, CAUSE_NO_KUBECONFIG,
                                  "the server in %s does not begin with https://; correct "
                                  "spec.cluster.apiServerEndpoint and run nodestrap init",
                                  path);
        a->server[strlen(a->server) - endswith(a->server, "/")] = 0;
        a->host = url_host(a->server);
        return 0;
}

static json_t *parse_file(const char *path, char *text, size_t size) {
        _cleanup_(diag_done) Diag ignored = {};
        Documents documents = {};
        json_t *json = NULL;
        Blob blob = { .at = { .source = path, .line = 1 }, .data = text, .size = size };
        if (yaml_parse(&blob, &documents, &ignored) >= 0 && documents.n == 1 && documents.items[0].root)
                (void)!yaml_to_json(documents.items[0].root, &json);
        documents_done(&documents);
        return json;
}

/* 1: the file has everything; 0: another one may. */
static int try_kubeconfig(const Root *root, const char *path, KubeAccess *a, Diag *diag) {
        _free_ char *text = NULL;
        size_t size = 0;
        int r = root_read(root, path, FILE_MAX, &text, &size);
        if (r == -ENOENT)
                return 0;
        _cleanup_(json_decrefp) json_t *config = r >= 0 ? parse_file(path, text, size) : NULL;
        if (!config)
                return diag_error(diag, r < 0 ? r : -EBADMSG, CAUSE_NO_KUBECONFIG,
                                  "%s cannot be read: %s; run nodestrap init, which writes it", path,
                                  r < 0 ? strerror(-r) : "not YAML");
        const char *current = json_string_value(json_object_get(config, "current-context"));
        const json_t *context = find_named(config, "contexts", "context", current);
        const json_t *cluster = find_named(config, "clusters", "cluster",
                                           json_string_value(json_object_get(context, "cluster")));
        const json_t *user =
                find_named(config, "users", "user", json_string_value(json_object_get(context, "user")));
        if (!take_plugin(json_object_get(json_object_get(user, "exec"), "args"), a))
                return 0;
        r = take_server(cluster, path, a, diag);
        THEN(r, take_authority(root, cluster, path, a, diag));
        return r < 0 ? r : 1;
}

static int take_kubeconfig(const Root *root, KubeAccess *a, Diag *diag) {
        for (size_t i = 0; i < ARRAY_SIZE(kubeconfigs); i++) {
                int r = try_kubeconfig(root, kubeconfigs[i], a, diag);
                if (r != 0)
                        return r;
        }
        return diag_error(diag, -ENOENT, CAUSE_NO_KUBECONFIG,
                          "%s is missing, or does not say how to get a token for the cluster: perhaps "
                          "nodestrap init has not run here; see nodestrap status",
                          kubeconfigs[0]);
}

/* The last --hostname-override, as systemd splits the arguments; NULL: none, or empty. */
static char *find_override(const char *text) {
        _free_ char *value = assignment_in_environment(text, ARGUMENTS);
        _strv_ char **words = assignment_split(value ?: "");
        const char *name = NULL;
        STRV_FOREACH(w, words)
                if (startswith(*w, OVERRIDE "="))
                        name = *w + strlen(OVERRIDE "=");
                else if (streq(*w, OVERRIDE) && w[1])
                        name = *++w;
        return name && *name ? xstrdup(name) : NULL;
}

/* As kubelet does: the flag, else the host name; always in lower case (kubernetes/kubernetes
 * staging/src/k8s.io/component-helpers/node/util/hostname.go: GetHostname()). */
static int take_node_name(const Root *root, KubeAccess *a, Diag *diag) {
        _free_ char *text = NULL, *name = NULL;
        if (root_read(root, KUBELET_ENVIRONMENT, FILE_MAX, &text, NULL) >= 0)
                name = find_override(text);
        bool given = name;
        if (!name && root_read_line(root, "/proc/sys/kernel/hostname", &name) < 0)
                return diag_error(diag, -ENOENT, CAUSE_NO_KUBECONFIG,
                                  KUBELET_ENVIRONMENT " does not name this node (" OVERRIDE "), and the "
                                              "machine has no host name; run nodestrap init");
        bool valid = !name[strspn(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-")];
        if (!valid && given)
                return diag_error(diag, -EINVAL, CAUSE_NO_KUBECONFIG,
                                  KUBELET_ENVIRONMENT ": the name of this node (" OVERRIDE
                                  ") has characters that are not allowed: correct it");
        if (!valid)
                return diag_error(diag, -EINVAL, CAUSE_NO_KUBECONFIG,
                                  "the host name is not a valid Node name, and " KUBELET_ENVIRONMENT
                                  " does not set another (" OVERRIDE "): run nodestrap init");
        a->node = str_lower(name);
        return 0;
}

int kube_access_read(const Root *root, KubeAccess *ret, Diag *diag) {
        *ret = (KubeAccess){};
        int r = take_kubeconfig(root, ret, diag);
        THEN(r, take_node_name(root, ret, diag));
        if (r < 0)
                kube_access_done(ret);
        else if (root_boot_id(root, &ret->boot_id) < 0)
                ret->boot_id = xstrdup("");     /* then a Node of any boot counts as ours */
        return MIN(r, 0);
}

int kube_access_take(const Root *root, const json_t *given, KubeAccess *ret, Diag *diag) {
        *ret = (KubeAccess){ .node = json_copy_text(given, "node"), .boot_id = xstrdup("") };
        int r = -EINVAL;
        if (ret->node && take_plugin(json_object_get(given, "args"), ret))
                r = take_server(given, "the NodeConfig", ret, diag);
        THEN(r, take_authority(root, given, "the NodeConfig", ret, diag));
        if (r < 0)
                kube_access_done(ret);
        return r;
}
