/* SPDX-License-Identifier: Apache-2.0 */
/* The plan as a container: planners add actions, plan_finish() orders them and computes the id. plan_make()
 * lists the planners. `make pure` checks that no file here reaches a machine. */
#include "plan/planner.h"
#include "base/hash.h"
#include "base/str.h"
#include "plan/devices.h"
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

DEFINE_STRING_TABLE(credential_plugin, CredentialPlugin, "aws", "nodestrap")

Plan *plan_ref(const Plan *p) {
        Plan *plan = (Plan *)p;
        atomic_fetch_add(&plan->more_refs, 1);
        return plan;
}

Plan *plan_free(Plan *p) {
        if (!p || atomic_fetch_sub(&p->more_refs, 1) > 0)
                return NULL;
        for (size_t i = 0; i < p->n; i++)
                action_done(&p->actions[i]);
        free(p->actions);
        json_decref(p->facts);
        json_decref(p->node);
        free(p->machine);
        diag_done(&p->warnings);
        free(p);
        return NULL;
}

Action *plan_add(Plan *plan, ActionType type, Phase phase, const char *group, const char *target,
                 const char *why) {
        plan->actions = xrealloc(plan->actions, plan->n + 1, sizeof(Action));
        Action *a = &plan->actions[plan->n++];
        *a = (Action) {
                .id = xasprintf("%s:%s", action_type_to_string(type), target),
                .type = type, .phase = phase,
                .group = xstrdup(group), .target = xstrdup(target), .why = xstrdup(why),
                .deadline_usec = action_row(type)->seconds * USEC_PER_SEC,
        };
        return a;
}

Action *plan_file(Plan *plan, Phase phase, const char *group, const char *path, const char *why,
                  const char *content, mode_t mode) {
        Action *a = plan_add(plan, ACTION_WRITE_FILE, phase, group, path, why);
        action_content(a, content, strlen(content));
        a->file.mode = mode;
        return a;
}

Action *plan_users_file(Plan *plan, const char *group, const char *path, const char *why, const char *content,
                        bool users, bool told) {
        Action *a = plan_file(plan, PHASE_CONFIG, group, path, why, content,
                              users && (told || !plan->as_nodeadm) ? 0600 : 0644);
        a->secret = users;
        return a;
}

void action_after(Action *a, const char *id) {
        if (!strv_contains(a->after, id))
                strv_add(&a->after, id);
}

void action_after_any(Action *a, const char *id) {
        if (!strv_contains(a->after_any, id) && !strv_contains(a->after, id))
                strv_add(&a->after_any, id);
}

void action_content(Action *a, const void *data, size_t size) {
        assert(action_is(a, ACTION_OF_FILES));
        RENEW(a->file.content, xmemdup(data, size));
        a->file.size = size;
}

void action_reads(const Plan *plan, Action *start, bool (*is_read)(const Action *file, const char *unit)) {
        _cleanup_(text_done) Text inputs = {};
        assert(start->type == ACTION_START_UNIT || start->type == ACTION_RESTART_UNIT);
        for (const Action *a = plan->actions; a < plan->actions + plan->n; a++) {
                char digest[65];
                if (a == start || a->type != ACTION_WRITE_FILE || !is_read(a, start->target))
                        continue;
                sha256_hex(a->file.content, a->file.size, digest);
                text_add(&inputs, "%s %s\n", digest, a->target);
                strv_add(&start->unit.reads, a->target);
                start->secret = start->secret || a->secret;
                action_after(start, a->id);
        }
        sha256_hex(inputs.data ?: "", inputs.size, start->unit.inputs);
}

const Action *plan_find(const Plan *plan, const char *id) {
        return FIND(a, plan->actions, plan->n, streq(a->id, id));
}

json_t *plan_index(const Plan *plan) {
        json_t *index = json_object();
        for (size_t i = 0; i < plan->n; i++)
                json_object_set_new(index, plan->actions[i].id, json_integer((json_int_t)i));
        return index;
}

bool plan_has_phase(const Plan *plan, Phase phase) {
        return ANY(a, plan->actions, plan->n, a->phase == phase);
}

size_t plan_count(const Plan *plan, Live live) {
        size_t n = 0;
        for (size_t i = 0; i < plan->n; i++)
                n += plan->actions[i].live == live;
        return n;
}

bool plan_is_done(const Plan *plan) {
        return plan->looked && plan_count(plan, LIVE_NONE) + plan_count(plan, LIVE_KEEP) == plan->n;
}

typedef struct Order {
        size_t **waits_for;     /* per action the indexes of its dependencies, then SIZE_MAX */
        bool *done;
        size_t n;
        size_t from[_PHASE_MAX];        /* all before it are done */
} Order;

static void order_done(Order *o) {
        for (size_t i = 0; i < o->n; i++)
                free(o->waits_for[i]);
        FREE_ALL(o->waits_for, o->done);
}

/* false: a dependency does not exist, or an id is not unique. */
static bool order_init(Order *o, const Plan *plan) {
        *o = (Order) { xcalloc(plan->n + 1, sizeof(size_t *)), xcalloc(plan->n + 1, sizeof(bool)), plan->n,
                       {} };
        json_t *index = plan_index(plan);
        bool found = json_object_size(index) == plan->n;
        for (size_t i = 0; i < plan->n; i++) {
                const Action *a = &plan->actions[i];
                size_t n = strv_length(a->after), k = n + strv_length(a->after_any);
                o->waits_for[i] = xcalloc(k + 1, sizeof(size_t));
                o->waits_for[i][k] = SIZE_MAX;
                while (k-- > 0) {
                        json_t *at = json_object_get(index, k < n ? a->after[k] : a->after_any[k - n]);
                        found = found && at;
                        o->waits_for[i][k] = (size_t)json_integer_value(at);
                }
        }
        json_decref(index);
        return found;
}

static size_t next_of(Order *o, const Plan *plan, int phase) {
        size_t i = o->from[phase];
        while (i < plan->n && (o->done[i] || (int)plan->actions[i].phase != phase))
                i++;
        return o->from[phase] = i;
}

/* The first action without open dependencies, by phase, then in the order of planners. */
static size_t next_ready(Order *o, const Plan *plan) {
        for (int phase = 0; phase < _PHASE_MAX; phase++)
                for (size_t i = next_of(o, plan, phase); i < plan->n; i++) {
                        const size_t *wait = o->waits_for[i];
                        if (o->done[i] || (int)plan->actions[i].phase != phase)
                                continue;
                        while (*wait != SIZE_MAX && o->done[*wait])
                                wait++;
                        if (*wait == SIZE_MAX)
                                return i;
                }
        return SIZE_MAX;
}

static int plan_sort(Plan *plan, Diag *diag) {
        _cleanup_(order_done) Order o = {};
        bool ok = order_init(&o, plan);
        _free_ Action *sorted = xcalloc(plan->n + 1, sizeof(Action));
        for (size_t n = 0; n < plan->n; n++) {
                size_t i = ok ? next_ready(&o, plan) : SIZE_MAX;
                if (i == SIZE_MAX)
                        return diag_error(diag, -ELOOP, CAUSE_INTERNAL,
                                          "the plan has a dependency cycle, a missing dependency or a "
                                          "duplicate id: report this nodestrap bug");
                o.done[i] = true;
                sorted[n] = plan->actions[i];
        }
        RENEW(plan->actions, TAKE_PTR(sorted));
        return 0;
}

int plan_finish(Plan *plan, Diag *diag) {
        int r = plan_sort(plan, diag);
        if (r < 0)
                return r;
        json_t *all = json_array();
        for (size_t i = 0; i < plan->n; i++)
                json_array_append_new(all, action_canonical(&plan->actions[i]));
        _free_ char *text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
        json_decref(all);
        char digest[65];
        sha256_hex(text, strlen(text), digest);
        snprintf(plan->id, sizeof(plan->id), "sha256:%s", digest);
        /* Not in the id: the next boot may have other data to move. */
        for (size_t i = 0; i < plan->n; i++)
                plan->actions[i].deadline_usec += action_more_usec(&plan->actions[i]);
        return 0;
}

/* Groups that --daemon selects from; as in nodeadm all others stay. */
static const char *const daemons_known[] = { "containerd", "kubelet", NULL };

static bool is_kept(const Action *a, const bool skip[_PHASE_MAX], char *const *daemons) {
        if (skip[a->phase])
                return false;
        if (!daemons || !*daemons)
                return true;
        if (a->type == ACTION_PRUNE_FILES)      /* files of other daemons are not stale */
                return false;
        return !strv_contains((char *const *)daemons_known, a->group) || strv_contains(daemons, a->group);
}

static void forget(char ***ids, const json_t *index) {
        char **kept = NULL;
        size_t n = 0;
        for (char **id = *ids; id && *id; id++)
                if (json_object_get(index, *id))
                        strv_push_at(&kept, n++, xstrdup(*id));
        strv_free(*ids);
        *ids = kept;
}

void plan_filter(Plan *plan, const bool skip[_PHASE_MAX], char *const *daemons) {
        size_t n = 0;
        assert(plan->more_refs == 0);
        for (size_t i = 0; i < plan->n; i++)
                if (is_kept(&plan->actions[i], skip, daemons))
                        plan->actions[n++] = plan->actions[i];
                else
                        action_done(&plan->actions[i]);
        plan->n = n;
        _cleanup_(json_decrefp) json_t *index = plan_index(plan);
        for (size_t i = 0; i < plan->n; i++) {
                forget(&plan->actions[i].after, index);
                forget(&plan->actions[i].after_any, index);
        }
}

static void warn_of_host(Plan *plan, const Config *config, const Host *host) {
        unsigned gpus = host->gpus.count;
        size_t stores = host_instance_stores(host);
        if (gpus > 0 && !host->nvidia_runtime)
                diag_warn(&plan->warnings, "no-nvidia-runtime",
                          NVIDIA_RUNTIME " is missing: containers run with runc and get GPUs through CDI "
                          "only; install nvidia-container-toolkit");
        if (stores > 0 && config->instance.storage.strategy == STORAGE_NONE) {
                bool known = !strv_contains(host->assumed, "disks");
                _free_ char *which = !known       ? xstrdup("the instance stores are")
                                     : stores > 1 ? xasprintf("%zu instance stores are", stores)
                                                  : xstrdup("1 instance store is");
                diag_warn_at(&plan->warnings, "unused-instance-store", NULL,
                             "spec.instance.localStorage.strategy", "%s not used: no strategy is set", which);
        }
        if (!host->type && gpus > 0)
                diag_warn(&plan->warnings, "unknown-instance-type",
                          "%s is not a known accelerated type: the plan uses the devices found and cannot "
                          "detect missing ones", host->instance.type ?: "the instance type");
        if (host->type && host->type->unconfirmed)
                diag_warn(&plan->warnings, "type-unconfirmed",
                          "the plan knows only the GPUs of %s, and assumes the rest; at boot, nodestrap "
                          "looks at the machine itself", host->type->name);
        for (char **link = host->dead_links; link && *link; link++)
                diag_warn(&plan->warnings, "dead-link",
                          "%s, so no daemon can write there: make the directory, or remove the link", *link);
        if (host->bootstrappers) {
                _free_ char *names = strv_join(host->bootstrappers, " and "),
                            *words = strv_join(host->bootstrappers, " ");
                diag_warn(&plan->warnings, "two-bootstrappers",
                          "%s %s enabled, too; nodestrap boots this node. Run systemctl disable %s, so that "
                          "only nodestrap is enabled. To return to nodeadm, see nodestrap-nodeadm(7)",
                          names, host->bootstrappers[1] ? "are" : "is", words);
        }
        if (host->tuning.network)
                diag_warn(&plan->warnings, "network-file", "%s. %s", host->tuning.network,
                          config->instance.mtu > 0 ? "The MTU comes from spec.instance.network.mtu"
                                                   : host->tuning.network_remedy);
        if (strv_length(host->assumed) > (host->name_assumed ? 1 : 0))
                diag_warn(&plan->warnings, "assumed-facts",
                          "this plan assumes some facts, so the plan and its sha256 may differ on a real "
                          "node. Run nodestrap plan --diff FILE on the node to see what differs");
}

static int check_facts(const Host *host, Diag *diag) {
        const struct { const char *value, *what, *source; } needed[] = {
                { host->kubelet_version, "kubelet version",
                  "the version file of the AMI and `kubelet --version`" },
                { host->containerd_version, "containerd version",
                  "the version file of the AMI and `containerd --version`" },
                { host->instance.id, "instance id", "the metadata service" },
                { host->instance.region, "region", "the metadata service" },
                { host->instance.zone, "availability zone", "the metadata service" },
        };
        int r = 0;
        for (size_t i = 0; i < ARRAY_SIZE(needed); i++)
                if (!needed[i].value)
                        r = diag_error(diag, -EINVAL, CAUSE_FACTS,
                                       "the %s is not known, and no plan can be made without it; check %s",
                                       needed[i].what, needed[i].source);
        return r;
}

int plan_promise(Plan *plan, const Host *host, const Promise *p, Diag *diag) {
        const char *what = p->cause == CAUSE_EFA ? "EFA device" : "instance store";
        const char *type = host->type ? host->type->name : host->instance.type;
        const char *then = p->cause == CAUSE_DISKS && p->joins ? "only warns, as no strategy uses them"
                                                               : "fails";
        if (p->said == 0 || !host->modelled || (p->has >= 0 && (unsigned)p->has >= p->said))
                return 0;
        if (p->has < 0) {
                diag_warn_at(&plan->warnings, p->cause == CAUSE_EFA ? "efa-unknown" : "disks-unknown", NULL,
                             p->path, "a boot that finds fewer than %u %ss %s, and nodestrap does not know "
                                      "how many %s has; check this number", p->said, what, then, type);
                return 0;
        }
        _free_ char *text = xasprintf("expects %u %s%s, but %s has %s%.0d: the boot %s", p->said, what,
                                      p->said == 1 ? "" : "s", type, p->has > 0 ? "at most " : "none",
                                      p->has, then);
        if (!p->joins)
                return diag_error_at(diag, -EINVAL, p->cause, NULL, p->path, "%s", text);
        diag_warn_at(&plan->warnings, p->cause == CAUSE_EFA ? "too-many-efa" : "expected-disks", NULL,
                     p->path, "%s", text);
        return 0;
}

/* nodestrap-codes(7) says what to do for each. */
bool plan_warning_fails(const Diagnostic *warning) {
        static const char codes[][20] = {
                "containerd-too-old",  "driver-version",   "environment-name",  "expected-disks",
                "fabric-gate",         "imex-nodes",       "imex-without-domain", "kernel-settings",
                "kernel-too-old",      "kubelet-setting",  "kubelet-too-old",  "max-pods-expression",
                "no-cdi",              "no-effect",
                "no-fast-image-pull",  "no-huge-pages",    "no-instance-stores", "no-license-daemon",
                "no-memory-left",      "not-executable",   "numa-nodes",        "numa-stall",
                "reserved-too-much",   "swap",             "too-many-efa"
        };
        return warning->warning && ANY(code, codes, ARRAY_SIZE(codes), streq(*code, warning->code));
}

static bool reads_secret(const Plan *plan, const Action *a) {
        bool starts = a->type == ACTION_START_UNIT || a->type == ACTION_RESTART_UNIT;
        for (char **path = starts ? a->unit.reads : NULL; path && *path; path++) {
                _free_ char *id = xasprintf("write-file:%s", *path);
                const Action *file = plan_find(plan, id);
                if (file && file->secret)
                        return true;
        }
        _free_ char *id = xasprintf("write-file:" UNIT_DIR "/%s.d/environment.conf", a->target);
        return plan_find(plan, id) || plan_find(plan, "write-file:" SYSTEM_ENVIRONMENT);
}

/* Output of NVIDIA daemons may be quoted: they read files of the image and of this program, unless the user
 * gave them variables. Others read certificates, credentials and imports. ctr repeats containerd. */
static void quieten(Plan *plan) {
        const Action *config = plan_find(plan, "write-file:" CONTAINERD_CONFIG);
        for (Action *a = plan->actions; a < plan->actions + plan->n; a++) {
                if (action_is(a, ACTION_OF_UNITS))
                        a->quiet = !streq(a->group, NVIDIA_GROUP) || reads_secret(plan, a);
                else if (a->type == ACTION_IMPORT_IMAGE || a->type == ACTION_PIN_IMAGE)
                        a->quiet = config && config->secret;
        }
}

static int make(const Config *config, const Host *host, const PlanOptions *options, Plan **ret, Diag *diag) {
        _cleanup_(plan_freep) Plan *plan = xcalloc(1, sizeof(Plan));
        int r = check_facts(host, diag);
        if (r < 0)
                return r;
        plan->as_nodeadm = options->as_nodeadm;
        plan->facts = host_to_json(host);
        plan->machine = plan_describe_host(config, host);
        r = options->interfaces > 0 ? plan_placement(plan, host, options->interfaces, diag) : 0;
        if (r >= 0 && options->efa)
                r = plan_efa_cards(plan, host, options->efa, diag);
        if (r < 0)
                return r;
        warn_of_host(plan, config, host);

        r = plan_system(plan, config, host, diag);
        THEN(r, plan_containerd(plan, config, host, diag));
        THEN(r, plan_kubelet(plan, config, host, options, diag));
        THEN(r, plan_storage(plan, config, host, diag));
        THEN(r, plan_devices(plan, config, host, diag));
        THEN(r, plan_nvidia(plan, config, host, diag));
        if (r < 0)
                return r;
        plan_requirements(plan, config, host);
        plan_add(plan, ACTION_PRUNE_FILES, PHASE_CONFIG, "system", MANIFEST_FILE,
                 "list of written files, to remove stale ones");
        plan_take_turn(plan);
        plan_units(plan, config, host);
        plan_node(plan, config, host);
        quieten(plan);
        r = plan_finish(plan, diag);
        if (r >= 0 && !options->foretell) {
                r = diag_judge(&plan->warnings);
                if (r < 0)
                        diag_move(diag, &plan->warnings);
        }
        if (r >= 0)
                *ret = TAKE_PTR(plan);
        return r;
}

int plan_make(const Config *config, const Host *host, const PlanOptions *options, Plan **ret, Diag *diag) {
        size_t before = diag->n;
        int r = make(config, host, options, ret, diag);
        /* Planners name only the field; this adds its position. */
        for (size_t i = before; i < diag->n; i++) {
                const char *path = diag->items[i].path;
                const Position *at = path && startswith(path, "spec.") ? config_position(config, path) : NULL;
                if (at && !diag->items[i].warning)
                        diagnostic_locate(&diag->items[i], at);
        }
        return r;
}
