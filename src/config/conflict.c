/* SPDX-License-Identifier: Apache-2.0
 * What is valid and may still not do what its writer expects. */
#include "config/fields.h"

#include "base/json.h"
#include "base/str.h"

/* kubelet takes it, and nodeadm writes it; EKS serves nothing there, and what kubelet says who it is by could
 * be read on the way. */
static void warn_of_endpoint(const Merge *m, Diag *diag) {
        const char *path = "spec.cluster.apiServerEndpoint";
        const json_t *cluster = json_object_get(json_object_get(m->document, "spec"), "cluster");
        if (strncasecmp(json_get_text(cluster, "apiServerEndpoint"), "http://", strlen("http://")) == 0)
                diag_warn_at(diag, "plain-http", origins_find(&m->origins, path), path,
                             "is http: kubelet's token crosses the network in clear text, and an API server "
                             "of EKS only answers to https");
}

/* As nodeadm, which writes NAME=VALUE whatever the name is. */
static void warn_of_variables(const Merge *m, Diag *diag) {
        const json_t *environment = json_object_get(
                json_object_get(json_object_get(m->document, "spec"), "instance"), "environment");
        const char *service, *name;
        json_t *variables, *unused;
        json_object_foreach((json_t *)environment, service, variables) {
                _cleanup_(freep) char *path = xasprintf("spec.instance.environment.%s", service);
                json_object_foreach(variables, name, unused) {
                        if (strchr(name, '='))
                                diag_warn_at(diag, "no-effect", origins_find(&m->origins, path), path,
                                             "a variable's name holds an equals sign, and ends there");
                }
        }
}

/* systemd-resolved leaves out what it cannot read as an address or a name, and says so in its own log alone
 * (resolved.conf(5)). */
static void warn_of_resolver(const Merge *m, Diag *diag) {
        static const char *const lists[] = { "nameservers", "domains" };
        const json_t *network = json_object_get(
                json_object_get(json_object_get(m->document, "spec"), "instance"), "network");
        json_t *item;
        size_t k;
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                json_array_foreach(json_object_get(network, lists[i]), k, item) {
                        const char *word = json_string_value(item) ?: "";
                        _cleanup_(freep) char *path = xasprintf("spec.instance.network.%s[%zu]", lists[i], k);
                        if (!*word || strpbrk(word, ",;'\"\\"))
                                diag_warn_at(diag, "no-effect", origins_find(&m->origins, path), path,
                                             "is no %s, and systemd-resolved passes over it",
                                             i == 0 ? "address" : "domain name");
                }
}

/* Pages that are listed in a mode that does not look at the list. */
static void warn_of_pages(const Merge *m, Diag *diag) {
        const json_t *huge = json_object_get(
                json_object_get(json_object_get(m->document, "spec"), "instance"), "hugePages");
        const char *mode = json_get_text(huge, "mode"), *path = "spec.instance.hugePages.pages";
        if (json_array_size(json_object_get(huge, "pages")) > 0 && !streq(mode, "explicit"))
                diag_warn_at(diag, "no-effect", origins_find(&m->origins, path), path,
                             "has no effect without mode: explicit");
}

static void warn_of_mig(const Merge *m, Diag *diag) {
        const char *path = "spec.accelerator.nvidia.mig";
        const json_t *spec = json_object_get(m->document, "spec"),
                     *nvidia = json_object_get(json_object_get(spec, "accelerator"), "nvidia"),
                     *mig = json_object_get(nvidia, "mig");
        if (json_is_array(mig) && json_array_size(mig) == 0)
                diag_warn_at(diag, "no-effect", origins_find(&m->origins, path), path,
                             "is an empty list, which is as if it were not there: the GPUs stay divided as "
                             "they are; to turn MIG off write off");
}

void conflicts_warn(const Merge *m, Diag *diag) {
        warn_of_endpoint(m, diag);
        warn_of_variables(m, diag);
        warn_of_resolver(m, diag);
        warn_of_pages(m, diag);
        warn_of_mig(m, diag);
        kubelet_warn(m, diag);
}
