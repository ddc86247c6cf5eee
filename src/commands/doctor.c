/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap doctor`: would a boot of this machine or image go well? A plan for a model of each type that the
 * image serves → its needs → what is there. Asks no service, unless a source is imds://. */
#include "commands/output.h"
#include "commands/run.h"

#include "base/hash.h"
#include "base/journal.h"
#include "base/paths.h"
#include "base/json.h"
#include "base/str.h"
#include "config/kubelet.h"
#include "doctor/checks.h"
#include "host/detect.h"
#include "redact/mask.h"
#include "source/signature.h"

#include <errno.h>
#include <unistd.h>

#define STORES 2                /* of a type with instance stores, where no table has their number */

/* Without a source: an invented cluster, and the setting that most steps are for. */
#define SAMPLE_SOURCE "a minimal NodeConfig with localStorage RAID0"
typedef struct Doctor {
        Run *run;
        Image image;
        char **types, *types_why;
        Needs needs;
        Checks checks;
} Doctor;

static void doctor_done(Doctor *d) {
        image_done(&d->image);
        strv_free(d->types);
        free(d->types_why);
        needs_done(&d->needs);
        checks_done(&d->checks);
}

static int load_config(Run *run) {
        if (run->options.sources)
                return run_load_config(run);
        _cleanup_(json_decrefp) json_t *document = config_sample("doctor");
        json_put(document, "spec/instance/localStorage/strategy", json_string("RAID0"));
        return config_from_json(document, SAMPLE_SOURCE, &run->config, &run->diag);
}

/* "a,b" and "c" → a, b, c, each once. */
static int choose_types(Doctor *d) {
        if (!d->run->options.instance_types) {
                d->types = image_types(&d->image, &d->types_why);
                return 0;
        }
        STRV_FOREACH(list, d->run->options.instance_types) {
                _free_ char *copy = xstrdup(*list);
                for (char *rest = copy, *name = strsep(&rest, ","); name; name = strsep(&rest, ","))
                        if (*name && !strv_contains(d->types, name))
                                strv_add(&d->types, name);
        }
        d->types_why = xstrdup("given");
        return d->types ? 0 : diag_error(&d->run->diag, -EINVAL, CAUSE_USAGE,
                                         "--instance-type takes types: --instance-type "
                                         "p5.48xlarge,g6.xlarge");
}

/* An unknown version is a check, and the other checks go on. */
static int find_version(Doctor *d, const char *program, const char *given, char **ret) {
        _cleanup_(diag_done) Diag tried = {};
        int r = host_program_version(d->image.root, program, given, ret, &tried);
        if (r < 0 && given) {
                diag_move(&d->run->diag, &tried);
                return r;
        }
        if (r < 0)
                check_tell(checks_add(&d->checks, CHECK_UNKNOWN, "version", program, NULL), NULL,
                           "/etc/eks/%s-version.txt does not give the version%s: the plans assume a recent "
                           "one; give the version with --%s-version",
                           program, d->image.running ? ", nor does the program" : "", program);
        return 0;
}

static int find_versions(Doctor *d) {
        const Options *o = &d->run->options;
        int r = find_version(d, "kubelet", o->kubelet_version, &d->image.kubelet);
        THEN(r, find_version(d, "containerd", o->containerd_version, &d->image.containerd));
        _free_ char *driver = NULL;
        if (r >= 0 && o->driver_version)
                r = version_option("--driver-version", o->driver_version, &driver, &d->run->diag);
        if (driver)
                image_set_driver(&d->image, driver);
        return r;
}

/* Warnings about the model of a machine, which need not hold for the real one. */
static bool is_of_model(const Diagnostic *item) {
        static const char *const codes[] = { "assumed-facts", "assumed", "disks-unknown",
                                             "unknown-eni-limits", NULL };
        return strv_contains((char *const *)codes, item->code);
}

/* The same sentence about several types is one check. */
static void tell(Doctor *d, CheckVerdict verdict, const char *code, const Diagnostic *item,
                 const char *type) {
        const char *subject = item->path ?: item->where ?: "plan";
        Check *c = FIND(k, d->checks.items, d->checks.n,
                        k->verdict == verdict && streq(k->code, code) && streq(k->subject, subject) &&
                                k->text && streq(k->text, item->text));
        if (!c) {
                c = checks_add(&d->checks, verdict, code, subject, NULL);
                check_tell(c, NULL, "%s", item->text);
                c->cause = verdict == CHECK_FAILED ? item->cause : CAUSE_NONE;
        }
        if (!strv_contains(c->types, type))
                strv_add(&c->types, type);
}

static void tell_warnings(Doctor *d, const Diag *diag, const char *type) {
        for (size_t i = 0; i < diag->n; i++)
                if (diag->items[i].warning && !is_of_model(&diag->items[i]))
                        tell(d, diag->items[i].cause == CAUSE_NONE ? CHECK_WARNING : CHECK_FAILED,
                             diag->items[i].code, &diag->items[i], type);
}

static int make_plan(Doctor *d, const char *type, Host **ret_host, Plan **ret_plan, Diag *diag) {
        const Image *image = &d->image;
        size_t kernels = strv_length(image->kernels);
        const char *newest = kernels > 0 ? image->kernels[kernels - 1] : "";
        HostOptions options = {
                .instance_type = type,
                .kubelet_version = image->kubelet,
                .containerd_version = image->containerd,
                .driver_version = image->driver,
                .image_kernel = image->kernel ?: newest,
                .stores = type && type_has_stores(type) ? STORES : 0,
                .storage = true,
        };
        int r = host_detect(image->root, d->run->config, &options, ret_host, diag);
        PlanOptions how = { .plugin = PLUGIN_NODESTRAP, .foretell = true };
        return r < 0 ? r : plan_make(d->run->config, *ret_host, &how, ret_plan, diag);
}

/* An unknown type or version is an error of the caller. Another failure would also stop a boot: a check. */
static int plan_type(Doctor *d, const char *type) {
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(host_freep) Host *host = NULL;
        _cleanup_(plan_freep) Plan *plan = NULL;
        if (!image_serves(&d->image, type)) {
                Check *c = checks_add(&d->checks, CHECK_FAILED, "architecture", type,
                                      machine_name(d->image.machine));
                check_tell(c, NULL, "the image is built for another CPU architecture, so this type cannot "
                                    "boot it; choose a matching image");
                strv_add(&c->types, type);
                return 0;
        }
        int r = make_plan(d, type, &host, &plan, &diag);
        const Diagnostic *error = diag_first_error(&diag);
        if (r < 0 && (!error || error->cause == CAUSE_USAGE || error->cause == CAUSE_INTERNAL)) {
                diag_move(&d->run->diag, &diag);
                return r;
        }
        if (r < 0)
                tell(d, r == -EACCES || r == -EPERM ? CHECK_UNKNOWN : CHECK_FAILED, "plan", error, type);
        tell_warnings(d, &diag, type);
        if (r < 0)
                return 0;
        tell_warnings(d, &plan->warnings, type);
        needs_of_plan(plan, type, &d->needs);
        if (host->gpus.expected > 0 && d->run->config->instance.tuning != TUNING_OFF)
                needs_of_tuning(plan, type, &d->needs);
        return 0;
}

/* An error there stops every boot. */
static void look_at_trust(Doctor *d) {
        _cleanup_(trust_freep) Trust *trust = NULL;
        _cleanup_(diag_done) Diag diag = {};
        int r = trust_load(d->run->root, &trust, &diag);
        if (r >= 0 && !trust)
                return;
        _free_ char *text = r < 0 ? diagnostic_format(diag_first_error(&diag)) : NULL;
        Check *c = checks_add(&d->checks,
                              r >= 0         ? CHECK_OK
                              : r == -EACCES ? CHECK_UNKNOWN
                                             : CHECK_FAILED,
                              "trust", TRUSTED_DIR, r < 0 ? NULL : "configurations must be signed");
        if (r < 0) {
                check_tell(c, NULL, "%s", text);
                c->cause = r == -EACCES ? CAUSE_NONE : CAUSE_TRUST;
        }
}

static void look(Doctor *d) {
        look_at_trust(d);
        image_settle(&d->image, &d->needs);
        image_look(&d->image, &d->needs, &d->checks);
        image_compare(&d->image, &d->needs, &d->checks);
        image_search(&d->image, &d->checks);
        if (geteuid() != 0)
                check_tell(checks_add(&d->checks, CHECK_UNKNOWN, "rights", "this user", NULL), NULL,
                           "is not root: files that only root may read were not checked, and may still fail");
        size_t n = strv_length(d->types);
        for (size_t i = 0; i < d->checks.n; i++)        /* a check about all types names none */
                if (strv_length(d->checks.items[i].types) == n)
                        d->checks.items[i].types = strv_free(d->checks.items[i].types);
}

/* Names *word*, longer than *best: short words are in every sentence, and the longest match tells most. */
static bool is_named(const char *said, const char *word, size_t *best) {
        size_t n = word ? strlen(word) : 0;
        if (n <= *best || !strcasestr(said, word))
                return false;
        *best = n;
        return true;
}

/* The setting whose name or value is in the sentence. kubelet prints some names as its source has them. */
static char *blamed(const Config *config, bool kubelet, const char *said) {
        char *path = xstrdup(kubelet ? "spec.kubelet" : "spec.containerd.config"), *found = NULL;
        size_t best = 4;
        const char *key;
        json_t *value;
        if (!kubelet && (strstr(said, RUNTIME_SPEC) || strstr(said, "OCI spec")))
                found = xstrdup("spec.containerd.baseRuntimeSpec");
        json_object_foreach(kubelet ? config->kubelet.config : NULL, key, value) {
                if (!is_named(said, key, &best) && !is_named(said, json_string_value(value), &best))
                        continue;
                free(found);
                found = xasprintf("spec.kubelet.config.%s", key);
        }
        for (size_t i = 0; kubelet && config->kubelet.flags && config->kubelet.flags[i]; i++) {
                const char *flag = config->kubelet.flags[i], *equals = strchr(flag, '=');
                _free_ char *name = kubelet_flag_name(flag);
                if (!is_named(said, name, &best) && !is_named(said, equals ? equals + 1 : NULL, &best))
                        continue;
                free(found);
                found = xasprintf("spec.kubelet.flags[%zu]", i);
        }
        if (found)
                free(path);
        return found ?: path;
}

static void tell_asked(Doctor *d, bool kubelet, const Asked *asked) {
        const char *name = kubelet ? "kubelet" : "containerd";
        const Config *config = d->run->config;
        bool failed = asked->verdict == CHECK_FAILED;
        Check *c = checks_add(&d->checks, asked->verdict, "asked", name,
                              asked->verdict == CHECK_OK ? "accepts the planned files" : NULL);
        if (!asked->said)
                return;
        size_t size;
        _cleanup_(secrets_done) Secrets secrets = {};
        _cleanup_(diag_done) Diag diag = {};
        json_decref(mask_config(&secrets, config->document));
        /* scrub first: a secret that lost its escapes would not match */
        _free_ char *line = secrets_scrub(&secrets, asked->said, strlen(asked->said), &size),
                    *said = failed ? log_error(line) : xstrdup(line),
                    *path = failed ? blamed(config, kubelet, said) : NULL;
        (void)diag_error_at(&diag, -EBADMSG, CAUSE_UNIT, path ? config_position(config, path) : NULL, path,
                            "%s%s%s", failed ? name : "", failed ? " refuses it: " : "", said);
        _free_ char *text = diagnostic_format(diag.items);
        check_tell(c, NULL, "%s", text);
        c->cause = failed ? CAUSE_UNIT : CAUSE_NONE;
}

static void tell_unasked(Doctor *d, const char *why) {
        check_tell(checks_add(&d->checks, CHECK_UNKNOWN, "asked", "kubelet and containerd", NULL), NULL, "%s",
                   why);
}

/* Uses the plan of the first type; others differ in numbers. Without an answer, other checks still run. */
static int ask(Doctor *d) {
        _cleanup_(diag_done) Diag told = {}, none = {};
        _cleanup_(host_freep) Host *host = NULL;
        _cleanup_(plan_freep) Plan *plan = NULL;
        Asked asked[2] = {};
        if (!d->types)
                tell_unasked(d, "no plan without an instance type: add --instance-type TYPE");
        if (!d->types || make_plan(d, d->types[0], &host, &plan, &told) < 0)
                return 0;               /* a check says why */
        int r = daemons_ask(&d->image, d->run->config, plan, asked, &none);
        for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
                if (r >= 0)
                        tell_asked(d, i == 1, &asked[i]);
                free(asked[i].said);
        }
        if (r == -EINTR)
                diag_move(&d->run->diag, &none);
        else if (r < 0)
                tell_unasked(d, diag_first_error(&none)->text);
        return r == -EINTR ? r : 0;
}

static int print_text(const Doctor *d) {
        const Image *image = &d->image;
        _free_ char *sources = strv_join(d->run->options.sources, " "), *types = types_text(d->types),
                    *which = xasprintf("%s: %s", types, d->types_why),
                    *kernels = strv_join(image->kernels, ", ");
        _free_ char *drivers = image_drivers_text(image);
        _free_ char *software =
                xasprintf("kubelet %s, containerd %s, NVIDIA driver %s", image->kubelet ?: "unknown",
                          image->containerd ?: "unknown", drivers ?: "none known");
        _free_ char *checks = checks_to_text(&d->checks, d->run->options.development);
        _cleanup_(text_done) Text t = {};
        facts_add(&t, "image", image->running ? "this machine" : root_path(image->root));
        facts_add(&t, "programs", machine_name(image->machine) ?: "of an unknown architecture");
        facts_add(&t, "kernels", *kernels ? kernels : "none");
        facts_add(&t, "software", software);
        facts_add(&t, "types", which);
        facts_add(&t, "config", *sources ? sources : SAMPLE_SOURCE " (-c names another)");
        text_add(&t, "\n%s", checks);
        return output_text(t.data, &d->run->diag);
}

/* A type that this user may not plan for, or a daemon that did not answer --ask. NULL: none. */
static const Check *unanswered(const Doctor *d) {
        const Checks *all = &d->checks;
        return FIND(c, all->items, all->n, c->verdict == CHECK_UNKNOWN && streq(c->code, "plan"))
                       ?: FIND(c, all->items, all->n, c->verdict == CHECK_UNKNOWN && streq(c->code, "asked"));
}

static const char *verdict_word(const Doctor *d) {
        return check_verdict_to_string(checks_count(&d->checks, CHECK_FAILED) > 0    ? CHECK_FAILED
                                       : unanswered(d)                                ? CHECK_UNKNOWN
                                       : checks_count(&d->checks, CHECK_WARNING) > 0 ? CHECK_WARNING
                                                                                     : CHECK_OK);
}

static json_t *image_json(const Image *image) {
        json_t *j =
                json_pack("{sb so}", "running", image->running, "kernels", json_list_shown(image->kernels));
        json_set_text(j, "arch", machine_name(image->machine));
        json_set_shown(j, "kernel", image->kernel);
        json_set_shown(j, "kubelet", image->kubelet);
        json_set_shown(j, "containerd", image->containerd);
        json_set_shown(j, "driver", image->driver);
        return j;
}

static int print_json(const Doctor *d) {
        _cleanup_(json_decrefp) json_t *all = json_pack("{ss}", "version", VERSION);
        json_set_shown(all, "root", root_path(d->image.root));
        json_set_text(all, "verdict", verdict_word(d));
        json_object_set_new(all, "image", image_json(&d->image));
        json_object_set_new(all, "types", json_list_shown(d->types));
        json_set_shown(all, "typesWhy", d->types_why);
        json_object_set_new(all, "sources", json_list_shown(d->run->options.sources));
        json_t *counts = json_object();
        for (CheckVerdict v = 0; v < _CHECK_VERDICT_MAX; v++)
                json_object_set_new(counts, check_verdict_to_string(v),
                                    json_integer((json_int_t)checks_count(&d->checks, v)));
        json_object_set_new(all, "counts", counts);
        json_object_set_new(all, "checks", checks_to_json(&d->checks));
        return output_json(all, NULL, &d->run->diag);
}

/* The exit code, and the last line on stderr, for pipelines that show only that. */
static int conclude(const Doctor *d) {
        size_t failed = checks_count(&d->checks, CHECK_FAILED);
        bool strict = d->run->options.strict;
        if (strict)
                failed += checks_count(&d->checks, CHECK_WARNING);
        const Checks *all = &d->checks;
        const Check *none = unanswered(d),
                    *first = FIND(c, all->items, all->n, c->verdict == CHECK_FAILED)
                                     ?: none ?: FIND(c, all->items, all->n, c->verdict == CHECK_WARNING);
        if ((failed == 0 && !none) || !first)
                return 0;
        _cleanup_(text_done) Text what = {};
        text_add_shown(&what, first->subject, strlen(first->subject), 200, 0);
        if (first->text) {
                text_add(&what, ": ");
                text_add_shown(&what, first->text, strlen(first->text), 400, 0);
        }
        if (first == none && streq(first->code, "asked"))
                return diag_error(&d->run->diag, -ENODATA, CAUSE_IMAGE, "--ask got no answer: %s %s",
                                  first->code, what.data);
        if (first == none)
                return diag_error(
                        &d->run->diag, -EACCES, CAUSE_IMAGE,
                        "doctor did not check what a plan needs, as this user cannot read enough for a "
                        "plan: %s %s",
                        first->code, what.data);
        return diag_error(&d->run->diag, -EBADMSG, CAUSE_IMAGE, "%zu of %zu checks failed%s: %s %s", failed,
                          d->checks.n, strict ? " or warned" : "", first->code, what.data);
}

int command_doctor(Run *run) {
        _cleanup_(doctor_done) Doctor d = { .run = run };
        bool running = image_is_running(run->root);
        if (run->options.ask && !run->options.sources)
                return diag_error(&run->diag, -EINVAL, CAUSE_USAGE,
                                  "--ask starts the daemons with the files of a plan: name a NodeConfig "
                                  "with -c FILE");
        if (run->options.ask && (geteuid() != 0 || !root_is_host(run->root)))
                return diag_error(&run->diag, -EINVAL, CAUSE_USAGE,
                                  "--ask starts the daemons of this machine: run it as root, without --root");
        if (!run->options.ask)
                power_drop_one(POWER_LOOK);     /* before anything is parsed */
        int r = load_config(run);
        run->step = "doctor";
        THEN(r, hash_load(&run->diag));
        THEN(r, image_open(run->root, running, &d.image, &run->diag));
        THEN(r, find_versions(&d));
        THEN(r, choose_types(&d));
        for (char **type = d.types; r >= 0 && type && *type; type++)
                r = plan_type(&d, *type);
        if (r >= 0 && run->options.ask)
                r = ask(&d);
        if (r < 0)
                return r;
        look(&d);
        r = run->options.output == OUTPUT_JSON ? print_json(&d) : print_text(&d);
        return r < 0 ? r : conclude(&d);
}
