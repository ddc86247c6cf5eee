/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs to the machine and not to a daemon: environment drop-ins for systemd, the resolver's servers,
 * names in /etc/hosts. */
#include "plan/planner.h"
#include "base/hash.h"
#include "base/str.h"
#include "doc/assignment.h"
#include <errno.h>

#define RESOLVED_CONFIG "/run/systemd/resolved.conf.d/40-eks.conf"
#define RESOLVED_UNIT   "systemd-resolved.service"

/* ---- environment ---- */

/* What systemd takes for a variable's name (env_name_is_valid() of its env-util.c); it drops any other
 * assignment with a line in the journal that nobody reads. */
static bool is_variable_name(const char *name) {
        static const char valid[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
        return *name && !(*name >= '0' && *name <= '9') && !name[strspn(name, valid)];
}

static int check_variables(Plan *plan, const ServiceEnvironment *e, Diag *diag) {
        int r = 0;
        for (size_t i = 0; i < e->n; i++) {
                _cleanup_(freep) char *path =
                        xasprintf("spec.instance.environment.%s.%s", e->service, e->variables[i].name);
                if (strpbrk(e->variables[i].value, "\n\r"))
                        r = diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, path,
                                          "a line break cannot stand in a unit's environment; write the text "
                                          "to a file and name the file here");
                if (!is_variable_name(e->variables[i].name))
                        diag_warn_at(&plan->warnings, "environment-name", NULL, path,
                                     "systemd ignores this variable: a name has letters, digits and "
                                     "underscores only, and no digit in front");
        }
        return r;
}

static int plan_environment(Plan *plan, const ServiceEnvironment *e, Diag *diag) {
        if (e->n == 0)
                return 0;
        int r = check_variables(plan, e, diag);
        if (r < 0)
                return r;
        bool machine = streq(e->service, "default");
        _cleanup_(text_done) Text t = {};
        text_add(&t, machine ? "[Manager]\n" : "[Service]\n");
        for (size_t i = 0; i < e->n; i++) {
                _cleanup_(freep) char *assignment =
                        assignment_quote(e->variables[i].name, e->variables[i].value);
                text_add(&t, "%s=%s\n", machine ? "DefaultEnvironment" : "Environment", assignment);
        }
        _cleanup_(freep) char *file =
                machine ? xstrdup(SYSTEM_ENVIRONMENT)
                        : xasprintf(UNIT_DIR "/%s%s.d/environment.conf", e->service,
                                    endswith(e->service, ".service") ? "" : ".service");
        _cleanup_(freep) char *why = xasprintf("%zu variable%s for %s", e->n, e->n == 1 ? "" : "s",
                                               machine ? "every service" : e->service);
        _cleanup_(freep) char *id = xasprintf("write-file:%s", file),
                              *path = xasprintf("spec.instance.environment.%s", e->service);
        if (plan_find(plan, id))
                return diag_error_at(diag, -EINVAL, CAUSE_INVALID, NULL, path,
                                     "means a service that has variables under another name, with or without "
                                     "\".service\"; put them under one");
        /* PID 1 reads it as root; proxies carry passwords */
        plan_file(plan, PHASE_CONFIG, "system", file, why, t.data, 0600);
        return 0;
}

/* ---- resolver ---- */

/* resolved.conf(5). Domains and addresses hold no blanks: validated. */
static void plan_resolver(Plan *plan, const InstanceOptions *instance) {
        size_t servers = strv_length(instance->nameservers), domains = strv_length(instance->domains);
        if (servers + domains == 0)
                return;
        _cleanup_(text_done) Text t = {};
        _cleanup_(freep) char *dns = strv_join(instance->nameservers, " "),
                              *search = strv_join(instance->domains, " ");
        /* an empty line for the one that is not set, as in nodeadm's */
        text_add(&t, "[Resolve]\n%s%s\n%s%s\n", servers > 0 ? "DNS=" : "", servers > 0 ? dns : "",
                 domains > 0 ? "Domains=" : "", domains > 0 ? search : "");
        _cleanup_(freep) char *why = xasprintf("name servers: %zu, search domains: %zu", servers, domains);
        plan_file(plan, PHASE_CONFIG, "system", RESOLVED_CONFIG, why, t.data, 0644);
        Action *restart = plan_add(plan, ACTION_RESTART_UNIT, PHASE_CONFIG, "system", RESOLVED_UNIT,
                                   "if it runs: it reads its configuration at start only");
        action_after(restart, "write-file:" RESOLVED_CONFIG);
        strv_add(&restart->unit.reads, RESOLVED_CONFIG);
        sha256_hex(t.data, t.size, restart->unit.inputs);
}

/* ---- names ---- */

/* On Outposts kubelet must find the API server while the link to the region is down, so its addresses stand
 * in /etc/hosts (nodeadm: internal/kubelet/config.go, which appends them at each start). */
static int plan_hosts(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        const char *path = "spec.cluster.apiServerEndpoint";
        if (!config->cluster.outpost)
                return 0;
        if (!host->api_server_addresses && !host->modelled)
                return diag_error_at(diag, -EINVAL, CAUSE_FACTS, NULL, path,
                                     "no address is known for its host name, and on Outposts it must stand "
                                     "in /etc/hosts; is the resolver up?");
        if (!host->api_server_addresses)
                diag_warn_at(
                        &plan->warnings, "assumed", NULL, path,
                        "its addresses are looked up on the node; here the block for /etc/hosts is empty");
        _cleanup_(freep) char *name = url_host(config->cluster.endpoint ?: "");
        _cleanup_(text_done) Text t = {};
        for (char **a = host->api_server_addresses; a && *a; a++)
                text_add(&t, "%s\t%s\n", *a, name);
        Action *block = plan_add(plan, ACTION_WRITE_BLOCK, PHASE_CONFIG, "system", "/etc/hosts",
                                 "the API server's addresses, for when the Outpost is cut off");
        action_content(block, t.data ?: "", t.size);
        block->file.mode = 0644;
        return 0;
}

/* ---- interfaces ---- */

/* Before the run phase begins: until then all interfaces are networkd's. */
static void plan_no_manage(Plan *plan, const FeatureGates *gates) {
        if (gates->no_manage_enis)
                plan_file(plan, PHASE_CONFIG, "system", NO_MANAGE_MARKER,
                          "interfaces tagged no_manage are networkd's, whenever they come", "", 0644);
}

int plan_system(Plan *plan, const Config *config, const Host *host, Diag *diag) {
        const InstanceOptions *instance = &config->instance;
        int r = 0;
        for (size_t i = 0; i < instance->n_environment; i++) {
                int k = plan_environment(plan, &instance->environment[i], diag);
                r = r < 0 ? r : k;
        }
        if (r < 0)
                return r;
        plan_resolver(plan, instance);
        plan_no_manage(plan, &config->gates);
        return plan_hosts(plan, config, host, diag);
}
