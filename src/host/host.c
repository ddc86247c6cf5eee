/* SPDX-License-Identifier: Apache-2.0
 * Configuration and machine → Host. Local facts take microseconds, so they fail before a wait for EC2. */
#include "host/host.h"

#include "base/str.h"
#include "host/detect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <sys/utsname.h>

int fact_error(Diag *diag, int r, const char *path, const char *meaning) {
        bool nonsense = r == -EINVAL || r == -ERANGE || r == -ENODATA || r == -EBADMSG;
        return diag_error_in(diag, r, CAUSE_FACTS, path, "%s: %s",
                             nonsense ? "its content is not valid" : strerror(-r), meaning);
}

/* No plan depends on these names, so they may be missing. */
static void detect_names(const Root *root, Host *h) {
        struct utsname names;
        if (root_is_host(root) && uname(&names) == 0) {
                h->kernel = xstrdup(names.release);
                h->arch = xstrdup(names.machine);
        } else {
                (void)!root_read_line(root, "/proc/sys/kernel/osrelease", &h->kernel);
                (void)!root_read_line(root, "/proc/sys/kernel/arch", &h->arch);
        }
        (void)!root_read_line(root, "/sys/devices/virtual/dmi/id/product_name", &h->product_name);
        uint64_t scope = 0;
        int r = root_read_u64(root, "/proc/sys/kernel/yama/ptrace_scope", &scope);
        h->ptrace_scope = r >= 0 && scope <= 3 ? (int)scope : -1;
}

/* If not, no disks to wait for: asks for the name at once, starts no prober. */
static bool has_stores(const Config *config, const HostOptions *options, const Host *h) {
        bool stores = config->instance.storage.strategy != STORAGE_NONE &&
                      (host_instance_stores(h) > 0 || host_expected_stores(config, h) > 0);
        return storage_wanted(config, options) && (stores || config->instance.n_volumes > 0);
}

static int read_machine(const Root *root, const Config *config, const HostOptions *options, Host *h,
                        Diag *diag) {
        _cleanup_(prober_end) Prober prober = {};
        NameQuestion name;
        int r, answered;

        detect_names(root, h);
        if (options->storage)           /* before the run phase, sysctl.d may not be applied */
                kernel_read(root, &h->kernel_state), tuning_read(root, &h->tuning);
        h->bootstrappers = detect_bootstrappers(root);
        r = detect_memory(root, h, diag) ?: detect_pci(root, h, diag) ?: detect_disks(root, h, diag) ?:
                detect_nics(root, h, diag) ?: detect_versions(root, options, h, diag) ?:
                detect_identity(root, config, options, h, diag) ?: name_check(config, options, h, diag);
        if (r < 0)
                return r;
        h->type = instance_type_find(h->instance.type);
        detect_places(root, config, h);         /* by the version of containerd */
        bool stores = has_stores(config, options, h);
        r = stores ? prober_start(root, &prober, diag) : 0;
        if (r < 0)
                return r;
        name_ask(config, options, h, stores, &name);
        r = detect_storage(root, config, options, &prober, h, diag);
        prober_end(&prober);            /* the name may take minutes */
        answered = name_take(&name, h, diag);
        return r < 0 ? r : answered;
}

/* maxPods inputs: from the table, from EC2, or the kubelet default. Never an error: 110 pods are better than
 * no node (nodeadm/internal/kubelet/eni_max_pods.go). */
static void find_eni_limits(const HostOptions *options, Host *h) {
        _cleanup_(diag_done) Diag tried = {};
        const char *why = "the built-in table of pod limits does not list it, and EC2 was not asked";

        if (h->eni_limits_known)        /* from the cache */
                return;
        h->eni_limits_known = eni_limits_find(h->instance.type, &h->max_enis, &h->addresses_per_eni);
        if (h->eni_limits_known)
                return;
        if (options->imds && !h->modelled) {
                Ec2 ec2 = ec2_of(options, h);
                h->eni_limits_known = ec2_eni_limits(&ec2, h->instance.type, &h->max_enis,
                                                     &h->addresses_per_eni, &tried) >= 0;
                const Diagnostic *e = diag_first_error(&tried);
                why = e ? e->text : "EC2 does not know it either";
        }
        if (!h->eni_limits_known)
                h->eni_limits_why = xstrdup(why);
}

/* The node joins where this is unknown, or where no boot follows. Else an instance in service might never
 * join, at full cost and without a sign. A wrong Node of a stopped instance shows as NotReady. */
static void find_pool(const HostOptions *options, Host *h, Diag *diag) {
        if (options->pool && !h->modelled)
                h->pool = imds_pool_state(options->imds, &h->pool_text);
        if (!options->joins)
                return;
        if (h->pool == POOL_RESUMES)
                diag_warn(diag, "warm-pool-resumes",
                          "an instance in %s enters service without another boot, so the node joins now; to "
                          "join later, set the warm pool state to Stopped",
                          h->pool_text);
        else if (h->pool == POOL_UNKNOWN)
                diag_warn(diag, "warm-pool-unknown",
                          "%s; the node joins. If a warm pool prepares the instance, run kubectl delete node "
                          "NAME when it has stopped",
                          h->pool_text);
}

static void add_address(char ***addresses, const struct sockaddr *a) {
        char text[INET6_ADDRSTRLEN] = "";
        const void *bytes =
                a->sa_family == AF_INET
                        ? (const void *)&((const struct sockaddr_in *)(const void *)a)->sin_addr
                        : (const void *)&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
        if ((a->sa_family == AF_INET || a->sa_family == AF_INET6) &&
            inet_ntop(a->sa_family, bytes, text, sizeof text) && !strv_contains(*addresses, text))
                strv_add(addresses, text);
}

/* An Outpost finds its API server without the link to the region, by /etc/hosts. */
static int find_api_servers(const Config *config, const HostOptions *options, Host *h, Diag *diag) {
        struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM }, *list = NULL;

        if (!config->cluster.outpost)
                return 0;
        if (h->modelled || !options->imds) {
                strv_add(&h->api_server_addresses, "192.0.2.1");
                assume(h, "apiServerAddresses");
                return 0;
        }
        _free_ char *name = url_host(config->cluster.endpoint ?: "");
        int e = getaddrinfo(name, NULL, &hints, &list);
        if (e != 0)
                return diag_error_at(diag, -ENOENT, CAUSE_FACTS, NULL, "spec.cluster.apiServerEndpoint",
                                     "its host name does not resolve (%s), but a node on an Outpost needs "
                                     "that host in /etc/hosts; check the DNS settings of the VPC",
                                     gai_strerror(e));
        for (struct addrinfo *a = list; a; a = a->ai_next)
                add_address(&h->api_server_addresses, a->ai_addr);
        freeaddrinfo(list);
        strv_sort(h->api_server_addresses);
        return 0;
}

int host_detect(const Root *root, const Config *config, const HostOptions *options, Host **ret, Diag *diag) {
        _cleanup_(host_freep) Host *h = xcalloc(1, sizeof *h);
        int r = options->instance_type ? model_host(root, config, options, h, diag)
                                       : read_machine(root, config, options, h, diag);
        THEN(r, h->imaged ? detect_programs(root, h, diag) : 0);
        if (r < 0)
                return r;
        if (!h->modelled || h->imaged)
                tuning_read_image(root, &h->tuning);
        detect_neuron(root, h);
        r = detect_gpus(root, config, h, diag);
        if (r < 0)
                return r;
        find_eni_limits(options, h);
        find_pool(options, h, diag);
        r = find_api_servers(config, options, h, diag);
        if (r < 0)
                return r;
        if (h->name_assumed)
                assume(h, "instance.privateDnsName");
        strv_sort(h->assumed);
        *ret = TAKE_PTR(h);
        return 0;
}

Host *host_free(Host *h) {
        if (!h)
                return NULL;
        const Instance *i = &h->instance;
        FREE_ALL(i->id, i->type, i->region, i->zone, i->domain, i->mac, i->ipv4, i->ipv6,
                 i->private_dns_name, h->name_before, h->product_name, h->kernel, h->arch,
                 h->kubelet_version, h->containerd_version, h->driver_version, h->eni_limits_why,
                 h->image_credential_provider, h->pool_text, h->gpus.doubt, h->gpus.unread,
                 h->gpus.mig_default);
        for (PciDevice *d = h->pci; d < h->pci + h->n_pci; d++)
                FREE_ALL(d->address, d->driver);
        for (size_t k = 0; k < h->n_shortfalls; k++)
                free(h->shortfalls[k].text);
        disks_clear(h);
        storage_clear(&h->storage);
        nics_clear(h);
        kernel_done(&h->kernel_state);
        tuning_done(&h->tuning);
        strv_free(h->assumed);
        strv_free(h->api_server_addresses);
        strv_free(h->bootstrappers);
        strv_free(h->dead_links);
        FREE_ALL(h->pci, h->cards, h->nodes, h->pools, h->shortfalls, h);
        return NULL;
}
