/* SPDX-License-Identifier: Apache-2.0
 * The stages up to the plan, as main.c calls them. Between them: the cache of --config-cache, facts of the
 * other phase, the environment of our requests, and the lock. */
#include "commands/run.h"
#include "commands/sources.h"
#include "doctor/checks.h"

#include "apply/apply.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/str.h"
#include "base/time.h"
#include "nic/enis.h"
#include "report/status.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>

/* for instance stores that come late; a plan shows the present ones */
#define DISKS_USEC (30 * USEC_PER_SEC)
/* For EBS volumes that user scripts attach. They take some seconds, but EC2 promises no time. */
#define VOLUMES_USEC (120 * USEC_PER_SEC)
/* Only a warning depends on network cards. */
#define CARDS_USEC (3 * USEC_PER_SEC)
#define TYPES_MAX  (64 << 20)           /* the EC2 answer on all types is 7 MB */
/* Longer than the longest init, which may move files to the disks for four hours. */
#define LOCK_USEC  (6 * 3600ULL * USEC_PER_SEC)

void run_release_locks(Run *run) {
        lock_release(&run->results->turn_fd);
        lock_release(&run->devices_fd);
        lock_release(&run->lock_fd);
}

void run_forget_config(Run *run) {
        Sources *from = run->sources;
        run->config = config_free(run->config);
        documents_done(&from->documents);
        wrapped_done(&from->wrapped);
        from->chosen = NULL;
        blobs_done(&from->blobs);
        signatures_done(&from->signatures);
        from->trust = trust_free(from->trust);
        run->imds = imds_free(run->imds);
        diag_done(&run->diag);
}

void run_done(Run *run) {
        run_release_locks(run);
        results_done(run->results);
        plan_free(run->plan);
        host_free(run->host);
        json_decref(run->cached_status);
        kept_done(&run->sources->kept);
        run_forget_config(run);
        diag_done(&run->tried);
        free(run->cache);
        source_list_done(&run->sources->list);
        root_free(run->root);
        options_done(&run->options);
}

bool run_changes_machine(const Run *run) {
        return run->options.command->last == STAGE_APPLY;
}

int run_enter(Run *run, const char *step) {
        int signal = stop_signal();
        if (signal != 0)
                return diag_error(&run->diag, -EINTR, CAUSE_INTERRUPTED, "stopped by %s; nothing was changed",
                                  stop_name(signal));
        run->step = step;
        return 0;
}

int run_open_root(Run *run) {
        const Options *o = &run->options;
        int r = root_new(o->root, &run->root);
        if (r == -ENOSYS)
                return diag_error(&run->diag, r, CAUSE_FACTS,
                                  "openat2(2), which nodestrap needs, is missing: use Linux 5.6 or later "
                                  "(for user emulation, QEMU 9.2 or later) without a seccomp filter that "
                                  "blocks it");
        if (r < 0)
                return diag_error(&run->diag, r, CAUSE_USAGE, "--root %s: %s", o->root, strerror(-r));
        run->cache = o->cache ? root_absolute(run->root, o->cache) : NULL;
        if (!run_changes_machine(run))
                return 0;
        if (root_is_host(run->root) && geteuid() != 0)
                return diag_error(&run->diag, -EPERM, CAUSE_USAGE,
                                  "init changes the machine and needs root; nodestrap plan shows what it "
                                  "would do, without root");
        stop_catch();                   /* from here on a report is due */
        return 0;
}

static bool asks_imds(const Options *o) {
        STRV_FOREACH(s, o->sources)
                if (source_is_imds(*s))
                        return true;
        return false;
}

/* nodestrap-devices does, beside cloud-init and perhaps beside the run phase. */
static bool does_devices_alone(const Options *o) {
        return o->skip_config && o->skip_run && !o->skip_devices;
}

/* Uses the cache as nodeadm does: instead of empty sources, or for its facts if the configuration is the
 * same. A changed one brings back a skipped config phase, but not beside cloud-init, whose scripts change the
 * same files. */
static int consult_cache(Run *run, int loaded, Diag *found) {
        _cleanup_(json_decrefp) json_t *spec = NULL, *status = NULL;
        int r = config_cache_read(run->root, run->cache, &spec, &status, &run->diag);

        if (r < 0)                      /* none yet, or unreadable, with a warning */
                return loaded;
        /* the cache has no signature, and may be older than the signed configuration */
        if (loaded == -ENODATA && run->sources->trust)
                return loaded;
        if (loaded == -ENODATA) {
                _cleanup_(json_decrefp) json_t *document =
                        json_pack("{s:s, s:s, s:O}", "apiVersion", CONFIG_API_VERSION, "kind", CONFIG_KIND,
                                  "spec", spec);
                r = config_from_json(document, run->cache, &run->config, &run->diag);
                if (r < 0)
                        return r;
                diag_done(found);
                diag_warn(&run->diag, "config-from-cache", "no source has a NodeConfig; using %s instead",
                          run->cache);
        } else if (!config_cache_matches(json_object_get(run->config->document, "spec"), spec)) {
                if (!does_devices_alone(&run->options))
                        run->options.skip_config = false;
                return loaded;
        }
        run->cached_status = TAKE_PTR(status);
        return 0;
}

/* --strict: each warning becomes an error, except one about a setting that only the user can judge. */
static int promote_warnings(Diag *diag) {
        for (size_t i = 0; i < diag->n; i++)
                if (diag->items[i].warning && !streq(diag->items[i].code, "api-by-proxy"))
                        diag->items[i].cause = CAUSE_STRICT;
        return diag_judge(diag);
}

/* Only the metadata service knows the instance, also with a file as source. */
static void open_imds(Run *run) {
        Kept *kept = &run->sources->kept;
        bool there = run->imds;         /* of the try before this one */
        if (PORTABLE || there || (!asks_imds(&run->options) && run->options.command->last < STAGE_APPLY))
                return;
        run->imds = imds_new(0);
        if (run_is_by_hand(run))
                imds_take_refusal(run->imds);
        /* as nodeadm without --config-cache it asks again: a person is testing, and its units name one */
        bool recalls = run_changes_machine(run) && (run->cache || run->options.name == PROGRAM_NODESTRAP);
        if (recalls && kept_read(run->root, kept) >= 0 && kept->answers)
                imds_recall(run->imds, kept->answers);
        /* The config phase asks, with its session, and the run phase takes its answer. After a soft reboot
         * the answer is old. */
        if (!run->options.skip_config)
                imds_forget(run->imds, IMDS_POOL_STATE);
}

/* A boot names files and the metadata service. A command that only reads takes more, but not as nodeadm. */
static SourceFlags source_flags(const Run *run) {
        SourceFlags looks = run_changes_machine(run)                   ? 0
                            : run->options.name == PROGRAM_NODESTRAP ? SOURCE_STREAMS | SOURCE_BARE
                                                                      : SOURCE_STREAMS;
        bool partial = run->sources->list.from && geteuid() != 0;
        return looks | (run->sources->trust ? SOURCE_GUARD : 0) | (partial ? SOURCE_PARTIAL : 0);
}

/* A plan is for one type, which the file may have. */
static int choose_type(Run *run, const Wrapped *w) {
        Options *o = &run->options;
        bool wanted = o->command->last == STAGE_PLAN && !o->matrix && !o->instance_type;
        if (!o->instance_types)
                strv_extend(&o->instance_types, w->types);
        if (!wanted)
                return 0;
        if (strv_length(w->types) == 1) {
                o->instance_type = o->instance_types[0];
                return 0;
        }
        _free_ char *list = w->types ? strv_join(w->types, ",") : xstrdup("TYPE,TYPE");
        return diag_error_at(
                &run->diag, -EINVAL, CAUSE_USAGE, &w->at, NULL,
                "a plan is for one instance type, and this file names %s; add --instance-type %s, "
                "or --matrix %s",
                w->types ? "several" : "none (a family is not a type)", w->types ? *w->types : "TYPE", list);
}

/* Replaces the file of another tool by the user data in it. */
static int unwrap(Run *run, Blob *b) {
        Sources *from = run->sources;
        _cleanup_(wrapped_done) WrappedFile file = {};
        Wrapped *w = NULL;
        int r = wrapped_read(b, &file, &run->diag);
        if (r < 0 || file.n == 0)
                return r;
        if (from->chosen)
                return diag_error_in(&run->diag, -EINVAL, CAUSE_USAGE, b->at.source,
                                     "is for a different node than the files before it; run the command once "
                                     "for each file");
        from->wrapped = file;
        file = (WrappedFile){};
        from->turns = b->choice ? 1 : from->wrapped.n;
        r = wrapped_choose(&from->wrapped, b->choice, from->turn, b->at.source, &w, &run->diag);
        THEN(r, choose_type(run, w));
        if (r < 0)
                return r;
        from->chosen = w;
        free(b->data);
        b->data = xmemdup(w->blob.data ?: "", w->blob.size);
        b->size = w->blob.size;
        b->at = w->blob.data ? w->blob.at : w->at;
        return 0;
}

static int read_documents(Run *run) {
        Sources *from = run->sources;
        int r = trust_load(run->root, &from->trust, &run->diag);
        THEN(r, source_read(run->root, run->options.sources, run->imds, source_flags(run), &from->blobs,
                            &run->diag));
        THEN(r, run_enter(run, "decode"));
        for (size_t i = 0; r >= 0 && source_flags(run) & SOURCE_BARE && i < from->blobs.n; i++)
                r = unwrap(run, &from->blobs.items[i]);
        if (r >= 0 && from->trust)
                r = signatures_verify(&from->blobs, from->trust, &from->signatures, &run->diag);
        THEN(r, source_decode(&from->blobs, &from->documents, &run->diag));
        if (r >= 0 && from->chosen && from->chosen->keys == WRAP_EKSCTL)
                config_warn_dropped(&from->documents, &run->diag);
        if (r >= 0 && from->chosen && from->chosen->added)
                r = wrapped_complete(from->chosen, &from->documents, &run->diag);
        return r < 0 ? r : run_enter(run, "validate");
}

/* The launch template around the user data. An instance of Terraform has other keys. */
static int check_template(Run *run) {
        const Wrapped *w = run->sources->chosen;
        char *given[] = { (char *)run->options.instance_type, NULL };
        if (!w || (w->keys != WRAP_EC2 && w->keys != WRAP_TERRAFORM))
                return 0;
        const char *end = strrchr(w->place, '.');
        _free_ char *path = xstrndup(w->place, end ? (size_t)(end - w->place) : 0);
        const Template t = { .data = w->template, .source = w->at.source, .path = path,
                             .terraform = w->keys == WRAP_TERRAFORM, .user_data = w->blob.size,
                             .types = w->types ?: *given ? given : NULL, .config = run->config };
        return template_check(&t, &run->diag);
}

static int learn_types(Run *run) {
        const char *path = run->options.instance_type_file;
        if (!path)
                return 0;
        _cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        _free_ char *text = NULL;
        size_t size = 0;
        int r = fd < 0 ? -errno : fd_read(fd, TYPES_MAX, &text, &size);
        if (!text)
                return diag_error_in(&run->diag, r, CAUSE_USAGE, path, "cannot be read: %s", strerror(-r));
        return instance_types_learn(text, size, path, &run->diag);
}

int run_load_config(Run *run) {
        Sources *from = run->sources;
        Diag found = {};
        run->step = "source";
        open_imds(run);
        int r = learn_types(run);
        THEN(r, read_documents(run));
        if (r < 0)
                return r;
        const Options *o = &run->options;
        bool unchecked = o->command->unchecked && o->name != PROGRAM_NODESTRAP;
        r = (unchecked    ? config_load_unchecked
             : o->partial ? config_load_partial
                          : config_load)(&from->documents, &run->config, &found);
        if (run->cache && (r >= 0 || r == -ENODATA))
                r = consult_cache(run, r, &found);
        diag_move(&run->diag, &found);
        int fits = o->command->unchecked ? 0 : check_template(run);     /* dump prints only the NodeConfig */
        THEN(r, fits);
        if (r >= 0 && from->trust && !o->partial)       /* a drop-in alone names no cluster */
                r = signatures_check(run->root, &from->signatures, from->trust, run->config, run->imds,
                                     !run_changes_machine(run), &run->diag);
        if (r == -ENODATA)
                run->step = "source";   /* the sources hold other data */
        if (r < 0)
                return r;
        if (run->options.strict)
                r = config_check_expression(run->config, &run->diag);
        return run->options.strict ? promote_warnings(&run->diag) : r;
}

/* nodeadm puts all of "default" into its own environment before its first EC2 request. This takes over what
 * our requests and files need: proxies, settings of the AWS SDKs, and the place of the image credential
 * provider. It leaves out the place of the metadata service: the configuration came from there, and the
 * client of nodeadm is also older than its configuration. */
static bool is_adopted(const char *name) {
        static const char *const names[] = { "HTTP_PROXY",  "HTTPS_PROXY", "NO_PROXY",
                                             "http_proxy",  "https_proxy", "no_proxy",
                                             "ECR_CREDENTIAL_PROVIDER_BIN_PATH", NULL };
        return strv_contains((char *const *)names, name) ||
               (startswith(name, "AWS_") && !startswith(name, "AWS_EC2_METADATA_"));
}

static void adopt_environment(const Config *config) {
        for (size_t i = 0; i < config->instance.n_environment; i++) {
                const ServiceEnvironment *e = &config->instance.environment[i];
                for (size_t v = 0; streq(e->service, "default") && v < e->n; v++)
                        if (is_adopted(e->variables[v].name))
                                setenv(e->variables[v].name, e->variables[v].value, 1);
        }
}

/* Facts of an earlier run hold for the same spec. */
static void recall_facts(Run *run) {
        const Kept *kept = &run->sources->kept;
        char spec[65];
        spec_digest(json_object_get(run->config->document, "spec"), spec);
        if (!run->cached_status && kept->status && streq(kept->spec, spec))
                run->cached_status = json_incref(kept->status);
}

static int detect(Run *run) {
        const Options *o = &run->options;
        bool waits = run_changes_machine(run) && !o->skip_run;
        recall_facts(run);
        adopt_environment(run->config);
        HostOptions options = {
                .instance_type = o->instance_type, .kubelet_version = o->kubelet_version,
                .containerd_version = o->containerd_version, .driver_version = o->driver_version,
                .imds = run->imds, .cached_status = run->cached_status,
                .strict_node_name = o->strict_node_name,
                .name_again = run_changes_machine(run) && !does_devices_alone(o) && run->tried.n == 0,
                .turns = run_changes_machine(run) ? run->root : NULL,
                .storage = !o->skip_run,
                /* nodeadm always joins */
                .pool = run->imds && !(o->skip_config && o->skip_run) && o->name == PROGRAM_NODESTRAP,
                .joins = !o->skip_run,
                .disks_timeout_usec = waits ? DISKS_USEC : 0,
                .volumes_timeout_usec = waits ? VOLUMES_USEC : 0,
        };
        return host_detect(run->root, run->config, &options, &run->host, &run->diag);
}

/* At boot a udev process has usually asked for them. All are needed to judge any. */
static void detect_cards(const Run *run) {
        Host *h = run->host;
        _cleanup_(snapshot_done) Snapshot known = {};
        _cleanup_(imds_freep) Imds *imds = NULL;
        _cleanup_(diag_done) Diag ignored = {};
        const EniQuestion question = { .cards = network_cards_find(h->instance.type) };
        if (h->modelled || h->gpus.count == 0 || host_efa(h) == 0 || question.cards == 1)
                return;
        snapshot_read(run->root, &known, &ignored);
        if (run->imds && !run->options.skip_devices) {
                imds = imds_new(CARDS_USEC);
                (void)!enis_ask(imds, &question, &known.enis, &ignored);
        }
        const Enis *enis = &known.enis;
        if (ANY(eni, enis->items, enis->n, eni->card < 0 || eni->asked_usec == 0))
                return;
        for (const Eni *eni = enis->items; eni < enis->items + enis->n; eni++)
                *APPEND(h->cards, h->n_cards) =
                        (CardUse){ (uint8_t)eni->card,
                                   eni->ipv4s || eni->ipv6s || streq(eni->mac, enis->primary ?: "") };
}

/* Writes the files with the wrong name again before kubelet starts. */
static void correct_name(Run *run) {
        const Host *h = run->host;
        if (!h->name_before || streq(h->name_before, h->instance.private_dns_name))
                return;
        diag_warn(&run->diag, "node-name-corrected",
                  "EC2 names this node %s, but nodestrap assumed %s; the config phase runs again",
                  h->instance.private_dns_name, h->name_before);
        run->options.skip_config = false;
}

char *run_phases(const Options *o) {
        const struct { bool skipped; const char *name; } phases[] = {
                { o->skip_config, "config" }, { o->skip_devices, "devices" }, { o->skip_run, "run" },
        };
        _strv_ char **names = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(phases); i++)
                if (!phases[i].skipped)
                        strv_add(&names, phases[i].name);
        return names ? strv_join(names, ",") : xstrdup("none");
}

/* Before it reads anything, because another init may change that. An init of the devices alone runs beside
 * one of the rest, which waits for its end (apply/devices-lock.c). */
static int take_locks(Run *run) {
        const Options *o = &run->options;
        uint64_t deadline_usec = now_usec() + LOCK_USEC;
        int r = 0;
        if (!does_devices_alone(o))
                r = run->lock_fd = lock_take(run->root, RUN_LOCK, deadline_usec, &run->diag);
        if (r >= 0 && o->skip_run && !o->skip_devices)
                r = run->devices_fd = lock_take(run->root, DEVICES_LOCK, deadline_usec, &run->diag);
        _free_ char *phases = run_phases(o);
        progress_note(run->root, "start", phases);
        return r;
}

/* A warning and not an error: the user asked for it. */
static void warn_of_gate(Run *run) {
        _cleanup_(status_done) Status status = {};
        const Options *o = &run->options;
        if (!run_changes_machine(run) || !o->skip_devices || o->skip_run ||
            !plan_has_phase(run->plan, PHASE_DEVICES))
                return;
        (void)!status_read(run->root, &status);
        for (const StatusRun *one = status.runs; one && one->phases; one++)
                if (strstr(one->phases, "devices") && streq(one->verdict, "ok"))
                        return;
        diag_warn(&run->diag, "devices-skipped",
                  "--skip devices: kubelet starts without a check of the devices, and no run has found them "
                  "healthy; without --skip devices kubelet waits for them");
}

int run_make_plan(Run *run) {
        const Options *o = &run->options;
        int plugin = credential_plugin_from_string(o->credential_plugin), r = run_enter(run, "detect");
        assert(plugin >= 0);            /* the command line takes no others */
        PlanOptions options = { .plugin = (CredentialPlugin)plugin,
                                .as_nodeadm = o->name != PROGRAM_NODESTRAP,
                                .interfaces = o->interfaces,
                                .efa = o->efa };
        THEN(r, hash_load(&run->diag));
        if (r >= 0 && run_changes_machine(run))
                r = take_locks(run);
        THEN(r, detect(run));
        if (r >= 0) {
                detect_cards(run);
                correct_name(run);
                r = run_enter(run, "plan");
        }
        THEN(r, plan_make(run->config, run->host, &options, &run->plan, &run->diag));
        if (r < 0)
                return r;
        const bool skip[_PHASE_MAX] = { o->skip_config, o->skip_devices, o->skip_run };
        warn_of_gate(run);
        plan_filter(run->plan, skip, o->daemons);
        return 0;
}
