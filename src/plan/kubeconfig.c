/* SPDX-License-Identifier: Apache-2.0 */
/* Access of kubelet to the API server and to image registries: kubeconfig with its exec plugin, the cluster
 * CA, and the configuration of ecr-credential-provider. */
#include "plan/planner.h"
#include "base/str.h"

/* JSON quoting is valid YAML. */
static char *quoted(const char *text) {
        json_t *s = json_string(text);
        char *r = json_dumps(s, JSON_ENCODE_ANY);
        json_decref(s);
        return r;
}

/* Old AWS CLIs lack --cluster-id, a synonym of --cluster-name. */
static const struct { const char *command, *id_flag; } plugins[] = {
        [PLUGIN_AWS] = {
                "        command: aws\n        args:\n          - \"eks\"\n          - \"get-token\"\n",
                "--cluster-name",
        },
        [PLUGIN_NODESTRAP] = {
                "        command: /usr/bin/nodestrap\n        args:\n          - \"token\"\n",
                "--cluster-id",
        },
};

/* Plain as in the nodeadm file, if YAML reads it back; addresses have no blanks, which begin comments. */
static char *plain_or_quoted(const char *address) {
        return *address && !endswith(address, ":") && !strpbrk(address, " \t\"'{}") ? xstrdup(address)
                                                                                : quoted(address);
}

/* YAML, line by line as nodeadm writes it: people read and patch this file. */
static char *kubeconfig(const Config *config, const Host *host, CredentialPlugin plugin) {
        const Cluster *c = &config->cluster;
        _free_ char *server = plain_or_quoted(c->endpoint ?: ""), *region = quoted(host->instance.region),
                    *cluster = quoted((c->outpost ? c->id : c->name) ?: "");
        Text t = {};
        text_add(&t,
                 "---\napiVersion: v1\nkind: Config\nclusters:\n  - name: kubernetes\n    cluster:\n      "
                 "certificate-authority: " CLUSTER_CA "\n      server: %s\n"
                 "current-context: kubelet\ncontexts:\n  - name: kubelet\n    context:\n      "
                 "cluster: kubernetes\n      user: kubelet\n"
                 "users:\n  - name: kubelet\n    user:\n      exec:\n        apiVersion: "
                 "client.authentication.k8s.io/v1beta1\n%s", server, plugins[plugin].command);
        text_add(&t, "          - \"%s\"\n          - %s\n          - \"--region\"\n          - %s\n",
                 c->outpost ? plugins[plugin].id_flag : "--cluster-name", cluster, region);
        return text_take(&t);
}

/* On Outposts kubelet uses the plugin once, to get a client certificate, and then writes the kubeconfig
 * itself (TLS bootstrapping). The certificate works while the link to the region is down. */
static void plan_kubeconfig(Plan *plan, const Config *config, const Host *host, CredentialPlugin plugin,
                            char ***flags) {
        bool outpost = config->cluster.outpost;
        _free_ char *text = kubeconfig(config, host, plugin);
        _free_ char *why =
                xasprintf("cluster \"%s\" in %s; credentials from %s",
                          (outpost ? config->cluster.id : config->cluster.name) ?: "?", host->instance.region,
                          plugin == PLUGIN_AWS ? "`aws eks get-token`" : "`nodestrap token`");
        plan_file(plan, PHASE_CONFIG, "kubelet", outpost ? KUBECONFIG_BOOTSTRAP : KUBECONFIG, why, text,
                  0644);
        strv_add(flags, "--kubeconfig=" KUBECONFIG);
        if (outpost)
                strv_add(flags, "--bootstrap-kubeconfig=" KUBECONFIG_BOOTSTRAP);
}

/* Registries with ECR credentials. The last needs a provider of 1.32 (kubernetes/cloud-provider-aws#1332). */
static const struct { const char *pattern; unsigned from; } registries[] = {
        { "*.dkr.ecr.*.amazonaws.com", 0 },             { "*.dkr-ecr.*.on.aws", 0 },
        { "*.dkr.ecr.*.amazonaws.com.cn", 0 },          { "*.dkr-ecr.*.on.amazonwebservices.com.cn", 0 },
        { "*.dkr.ecr-fips.*.amazonaws.com", 0 },        { "*.dkr-ecr-fips.*.on.aws", 0 },
        { "*.dkr.ecr.*.c2s.ic.gov", 0 },                { "*.dkr.ecr.*.sc2s.sgov.gov", 0 },
        { "*.dkr.ecr.*.cloud.adc-e.uk", 0 },            { "*.dkr.ecr.*.csp.hci.ic.gov", 0 },
        { "*.dkr.ecr.*.amazonaws.eu", 0 },              { "public.ecr.aws", 0 },
        { "ecr-public.aws.com", 32 },
};

static json_t *provider_config(const char *kubelet_version, const char *name) {
        const char *version = version_at_least(kubelet_version, 1, 27) ? "v1" : "v1alpha1";
        json_t *images = json_array();
        for (size_t i = 0; i < ARRAY_SIZE(registries); i++)
                if (version_at_least(kubelet_version, 1, registries[i].from))
                        json_array_append_new(images, json_string(registries[i].pattern));
        return json_pack("{ss ss+ s[{ss so ss ss+}]}", "kind", "CredentialProviderConfig",
                         "apiVersion", "kubelet.config.k8s.io/", version, "providers",
                         "name", name, "matchImages", images, "defaultCacheDuration", "12h0m0s",
                         "apiVersion", "credentialprovider.kubelet.k8s.io/", version);
}

static void plan_provider(Plan *plan, const Host *host, char ***flags) {
        const char *path = host->image_credential_provider;
        if (!path || !strchr(path, '/')) {
                diag_warn(&plan->warnings, "no-image-credential-provider",
                          "kubelet cannot pull from private ECR registries: nodestrap did not find "
                          "ecr-credential-provider; install it as " ECR_PROVIDER ", or set "
                          "ECR_CREDENTIAL_PROVIDER_BIN_PATH to its path");
                return;
        }
        const char *slash = strrchr(path, '/');
        json_t *all = provider_config(host->kubelet_version, slash + 1);
        _free_ char *text = json_text(all, 2, false), *why = xasprintf("ECR credentials from %s", path);
        json_decref(all);
        plan_file(plan, PHASE_CONFIG, "kubelet", PROVIDER_CONFIG, why, text, 0644);
        strv_push(flags, xasprintf("--image-credential-provider-bin-dir=%.*s",
                                   slash == path ? 1 : (int)(slash - path), path));
        strv_add(flags, "--image-credential-provider-config=" PROVIDER_CONFIG);
}

void kubelet_access(Plan *plan, const Config *config, const Host *host, const PlanOptions *options,
                    char ***flags) {
        plan_kubeconfig(plan, config, host, options->plugin, flags);
        Action *a = plan_file(plan, PHASE_CONFIG, "kubelet", CLUSTER_CA,
                              "cluster certificate authority", "", 0644);
        action_content(a, config->cluster.certificate_authority ?: "",
                       config->cluster.certificate_authority_size);
        plan_provider(plan, host, flags);
}
