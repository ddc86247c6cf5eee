/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the machine, not of a daemon: environments of services, the resolver, /etc/hosts. */
#include "plan/planner.h"
#include "base/hash.h"
#include "base/str.h"
#include "doc/env-file.h"
#include <errno.h>

#define RESOLVED_CONFIG "/run/systemd/resolved.conf.d/40-eks.conf"
#define RESOLVED_UNIT   "systemd-resolved.service"

/* systemd would read these after ours and replace the kubelet flags. */
static bool is_kubelets(const char *name) {
        return streq(name, "NODEADM_KUBELET_ARGS") || streq(name, "KUBELET_CONFIG_DROPIN_DIR_ALPHA");
}

static int check_variables(Plan *plan, const ServiceEnvironment *e, Diag *diag) {
        int r = 0;
        for (size_t i = 0; i < e->n; i++) {
                const char *name = e->variables[i].name;
                _free_ char *path = xasprintf("spec.instance.environment.%s.%s", e->service, name);
                if (strpbrk(e->variables[i].value, "\n\r"))
                        r = diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, path,
                                          "a line break is not allowed in a unit environment; write the text "
                                          "to a file and name the file here");
                if (!variable_name_is_valid(name))
                        continue;               /* conflict.c reports it */
                if (strlen(name) + strlen("=") + strlen(e->variables[i].value) >= VARIABLE_MAX)
                        r = diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, path,
                                          "is longer than 128 KiB with its name: the kernel cannot start a "
                                          "program with it; name a file that holds the text");
                else if (is_kubelets(name))
                        diag_warn_at(&plan->warnings, "environment-name", NULL, path,
                                     "has no effect: nodestrap builds the kubelet command line from "
                                     "spec.kubelet");
        }
        return r;
}

/* As in nodeadm. Every user can ask systemd for Environment= of a unit or of PID 1. */
static void add_setting(Text *t, const ServiceEnvironment *e, const char *setting) {
        for (size_t i = 0; e && i < e->n; i++) {
                _free_ char *assignment = assignment_quote(e->variables[i].name, e->variables[i].value);
                text_add(t, "%s=%s\n", setting, assignment);
        }
}

/* For root alone: PID 1 reads it at the start of a service and passes it to that one only. systemd writes
 * invalid values to the journal, so validate.c refuses them. */
static void plan_variables(Plan *plan, const ServiceEnvironment *e, const char *file, const char *why) {
        _cleanup_(text_done) Text t = {};
        for (const Variable *v = e->variables; v < e->variables + e->n; v++) {
                _free_ char *line = assignment_line(v->name, v->value);
                if (variable_name_is_valid(v->name) && !is_kubelets(v->name))
                        text_add(&t, "%s", line);
        }
        plan_file(plan, PHASE_CONFIG, "system", file, why, t.data ?: "", 0600)->secret = true;
}

/* Doubles percent signs (systemd.unit(5)). */
static void add_file(Text *t, const char *name) {
        text_add(t, "EnvironmentFile=-" ENVIRONMENT_DIR "/");
        for (const char *p = name; *p; p++)
                text_add(t, "%.*s%c", *p == '%', "%", *p);
        text_add(t, "\n");
}

/* all: add the variables for all services. own: those of the unit, or NULL. */
static void plan_drop_in(Plan *plan, const char *unit, bool all, const ServiceEnvironment *own) {
        _free_ char *path = xasprintf(UNIT_DIR "/%s.d/environment.conf", unit),
                    *file = xasprintf(ENVIRONMENT_DIR "/%s", unit),
                    *why = xasprintf("%zu variable%s for %s", own ? own->n : 0, own && own->n == 1 ? "" : "s",
                                     unit);
        _cleanup_(text_done) Text t = {};
        text_add(&t, "[Service]\n");
        if (plan->as_nodeadm) {
                add_setting(&t, own, "Environment");
                plan_file(plan, PHASE_CONFIG, "system", path, why, t.data, 0600)->secret = true;
                return;
        }
        if (own)
                plan_variables(plan, own, file, why);
        if (all)
                add_file(&t, "default");
        if (own)
                add_file(&t, unit);
        plan_file(plan, PHASE_CONFIG, "system", path, "set the environment files of this service", t.data,
                  0644);
}

static int plan_service(Plan *plan, const ServiceEnvironment *e, bool all, Diag *diag) {
        _free_ char *unit = xasprintf("%s%s", e->service, endswith(e->service, ".service") ? "" : ".service"),
                    *id = xasprintf("write-file:" UNIT_DIR "/%s.d/environment.conf", unit),
                    *path = xasprintf("spec.instance.environment.%s", e->service);
        if (plan_find(plan, id))
                return diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, path,
                                     "has variables under two names, with and without \".service\"; use one "
                                     "name");
        plan_drop_in(plan, unit, all, e);
        return 0;
}

static int plan_environment(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        const InstanceOptions *instance = &config->instance;
        bool all = false;
        int r = 0;
        for (size_t i = 0; i < instance->n_environment; i++) {
                const ServiceEnvironment *e = &instance->environment[i];
                int k = check_variables(plan, e, diag);
                r = r < 0 ? r : k;
                if (r < 0 || e->n == 0 || !streq(e->service, "default"))
                        continue;
                _free_ char *why = xasprintf("%zu variable%s for %s", e->n, e->n == 1 ? "" : "s",
                        plan->as_nodeadm
                                ? "all services"
                                : "EKS daemons and configured services");
                all = true;
                if (plan->as_nodeadm) {
                        _cleanup_(text_done) Text t = {};
                        text_add(&t, "[Manager]\n");
                        add_setting(&t, e, "DefaultEnvironment");
                        plan_file(plan, PHASE_CONFIG, "system", SYSTEM_ENVIRONMENT, why, t.data, 0600)
                                ->secret = true;
                } else
                        plan_variables(plan, e, ENVIRONMENT_DIR "/default", why);
        }
        for (size_t i = 0; r >= 0 && i < instance->n_environment; i++) {
                const ServiceEnvironment *e = &instance->environment[i];
                if (e->n > 0 && !streq(e->service, "default"))
                        r = plan_service(plan, e, all, diag);
        }
        if (r >= 0 && all && !plan->as_nodeadm) {
                /* Variables for all services go to our daemons and to configured services. */
                const char *reason, *const units[] = { "containerd.service", "kubelet.service", SOCI_UNIT };
                for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
                        _free_ char *id =
                                xasprintf("write-file:" UNIT_DIR "/%s.d/environment.conf", units[i]);
                        if (!plan_find(plan, id) && (i < 2 || plan_uses_soci(config, host, &reason)))
                                plan_drop_in(plan, units[i], true, NULL);
                }
        }
        return r;
}

/* resolved.conf(5). Validation keeps blanks out of domains and addresses. */
static void plan_resolver(Plan *plan, const InstanceOptions *instance) {
        size_t servers = strv_length(instance->nameservers), domains = strv_length(instance->domains);
        if (servers + domains == 0)
                return;
        _cleanup_(text_done) Text t = {};
        _free_ char *dns = strv_join(instance->nameservers, " "), *search = strv_join(instance->domains, " ");
        /* an empty line for an unset one, as in nodeadm */
        text_add(&t, "[Resolve]\n%s%s\n%s%s\n", servers > 0 ? "DNS=" : "", servers > 0 ? dns : "",
                 domains > 0 ? "Domains=" : "", domains > 0 ? search : "");
        _free_ char *why = xasprintf("name servers: %zu, search domains: %zu", servers, domains);
        plan_file(plan, PHASE_CONFIG, "system", RESOLVED_CONFIG, why, t.data, 0644);
        Action *restart = plan_add(plan, ACTION_RESTART_UNIT, PHASE_CONFIG, "system", RESOLVED_UNIT,
                                   "restart if running, to read its configuration");
        action_after(restart, "write-file:" RESOLVED_CONFIG);
        strv_add(&restart->unit.reads, RESOLVED_CONFIG);
        sha256_hex(t.data, t.size, restart->unit.inputs);
}

/* A drop-in: our network file has the bytes of nodeadm, and udev writes it before there is a configuration.
 * networkd reacquires the address when it reads a changed MTU, so this comes before kubelet, not later.
 * Without the key prune-files removes the drop-in of an earlier run, and networkd must read that, too. */
static void plan_mtu(Plan *plan, const InstanceOptions *instance, const Host *host) {
        _free_ char *text = xasprintf("[Link]\nMTUBytes=%u\n", instance->mtu);
        _strv_ char **ids = NULL;
        for (const Nic *n = host->nics; n < host->nics + host->n_nics; n++) {
                if (instance->mtu == 0 && n->mtu_drop_in && !ids)
                        strv_add(&ids, "prune-files:" MANIFEST_FILE);
                if (instance->mtu == 0 || !n->driver || !streq(n->driver, "ena"))
                        continue;
                _free_ char *path = xasprintf(NETWORK_DIR "/70-eks-%s.network.d/" MTU_DROP_IN, n->name);
                const Action *file =
                        plan_file(plan, PHASE_CONFIG, "network", path, "configured MTU", text, 0644);
                strv_add(&ids, file->id);
        }
        if (!ids)
                return;
        Action *reload = plan_add(plan, ACTION_RELOAD_NETWORKD, PHASE_CONFIG, "network", "systemd-networkd",
                                  "read the changed network files");
        STRV_FOREACH(id, ids)
                action_after(reload, *id);
}

/* Outposts need the API server while the region is not reachable (nodeadm: internal/kubelet/config.go). */
static int plan_hosts(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        const char *path = "spec.cluster.apiServerEndpoint";
        if (!config->cluster.outpost)
                return 0;
        if (!host->api_server_addresses && !host->modelled)
                return diag_error_at(diag, -EINVAL, CAUSE_FACTS, NULL, path,
                                     "no address for its host name is known, but on Outposts /etc/hosts "
                                     "needs one; check the resolver");
        if (!host->api_server_addresses)
                diag_warn_at(&plan->warnings, "assumed", NULL, path,
                             "a boot looks up the API server addresses; in this plan, the block for "
                             "/etc/hosts is empty");
        _free_ char *name = url_host(config->cluster.endpoint ?: "");
        _cleanup_(text_done) Text t = {};
        for (char **a = host->api_server_addresses; a && *a; a++)
                text_add(&t, "%s\t%s\n", *a, name);
        Action *block = plan_add(plan, ACTION_WRITE_BLOCK, PHASE_CONFIG, "system", "/etc/hosts",
                                 "API server addresses for a disconnected Outpost");
        action_content(block, t.data ?: "", t.size);
        block->file.mode = 0644;
        return 0;
}

int plan_system(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        const InstanceOptions *instance = &config->instance;
        int r = plan_environment(plan, config, host, diag);
        if (r < 0)
                return r;
        plan_resolver(plan, instance);
        plan_mtu(plan, instance, host);
        /* Before the run phase: until then networkd has all interfaces. */
        if (config->gates.no_manage_enis)
                plan_file(plan, PHASE_CONFIG, "system", NO_MANAGE_MARKER,
                          "leave no_manage interfaces to networkd", "", 0644);
        return plan_hosts(plan, config, host, diag);
}
