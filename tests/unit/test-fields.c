/* SPDX-License-Identifier: Apache-2.0
 * Each field of the table changes some plan. If `mode: off` beside or above a field makes it idle, there is a
 * warning: a row of dependents in config/conflict.c. */
#include "config/fields.h"
#include "host/host.h"
#include "plan/plan.h"
#include "test.h"

#define CLUSTER                                                                                                       \
        "{\"name\": \"c\", \"apiServerEndpoint\": \"https://e\", \"cidr\": \"172.20.0.0/16\", \"certificateAuthority\": " \
        "\"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCmFub3RoZXIKLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=\"}"

/* A field may need one of these beside it, and one of these machines. */
static const char *const bases[] = {
        "{}",
        "{\"cluster\": {\"enableOutpost\": true, \"id\": \"an-id\"}}",
        "{\"instance\": {\"localStorage\": {\"strategy\": \"RAID0\"}}}",
        "{\"instance\": {\"hugePages\": {\"mode\": \"explicit\"}}}",
        "{\"instance\": {\"hugePages\": {\"mode\": \"auto\"}, \"network\": {\"efa\": {\"mode\": \"require\"}}}}",
        "{\"accelerator\": {\"nvidia\": {\"imex\": {\"mode\": \"host\", \"nodes\": [\"10.0.0.7\"]}}}}",
        "{\"accelerator\": {\"nvidia\": {\"imex\": {\"mode\": \"host\"}}}}",
        "{\"accelerator\": {\"nvidia\": {\"prove\": \"quick\"}}}",
};
static const char *const machines[] = { "p5.48xlarge", "p4d.24xlarge", "p6e-gb200.36xlarge", "m5.large" };

/* host_detect() reads this one, before there is a plan. */
static const char *const not_planned[] = { "spec.instance.strictNodeName", NULL };

typedef struct Planned { char *plan; bool told; } Planned;
static void planned_done(Planned *p) {
        free(p->plan);
}

static json_t *spec_of(const char *base) {
        _cleanup_(json_decrefp) json_t *more = json_loads(base, 0, NULL);
        json_t *spec = json_pack("{so}", "cluster", json_loads(CLUSTER, 0, NULL));
        ASSERT_OK(json_object_update_recursive(spec, more));
        return spec;
}

/* value NULL: removes the key */
static void spec_set(json_t *spec, const char *path, json_t *value) {
        ASSERT_TRUE(startswith(path, "spec."));
        _free_ char *rest = xstrdup(path + strlen("spec."));
        char *key = strtok(rest, "."), *next;
        for (json_t *at = spec; key; key = next) {
                next = strtok(NULL, ".");
                json_t *down = json_object_get(at, key);
                if (!next && value)
                        json_object_set(at, key, value);
                else if (!next)
                        json_object_del(at, key);
                else if (!down)
                        json_object_set_new(at, key, down = json_object());
                at = down;
        }
}

/* The text of the plan, or of its error; told: a warning says that the path has no effect. */
static Planned plan_of(const json_t *spec, const char *machine, const char *path) {
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(documents_done) Documents documents = {};
        _cleanup_(config_freep) Config *config = NULL;
        _cleanup_(host_freep) Host *host = NULL;
        _cleanup_(plan_freep) Plan *plan = NULL;
        _cleanup_(root_freep) Root *root = NULL;
        _free_ char *text = json_dumps(spec, 0);
        char *whole = xasprintf("{apiVersion: " CONFIG_API_VERSION ", kind: " CONFIG_KIND ", spec: %s}", text);
        const Blob blob = { .data = whole, .size = strlen(whole) };
        const HostOptions options = { .instance_type = machine, .kubelet_version = "1.34.2", .containerd_version = "2.1.5" };
        Planned p = {};
        ASSERT_OK(root_new("/", &root));
        ASSERT_OK(yaml_parse(&blob, &documents, &diag));
        free(whole);
        int r = config_load(&documents, &config, &diag);
        for (size_t i = 0; i < diag.n; i++)
                p.told |= streq(diag.items[i].code ?: "", "no-effect") && startswith(path, diag.items[i].path ?: "?");
        if (r >= 0)
                r = host_detect(root, config, &options, &host, &diag);
        if (r >= 0)
                r = plan_make(config, host, &(const PlanOptions){}, &plan, &diag);
        Text t = {};
        if (r < 0)
                text_add(&t, "%s", diag_first_error(&diag)->text);
        for (size_t i = 0; plan && i < plan->n; i++) {
                _cleanup_(json_decrefp) json_t *j = action_to_json(&plan->actions[i]);
                _free_ char *line = json_dumps(j, JSON_COMPACT);
                text_add(&t, "%s\n", line);
        }
        for (size_t i = 0; plan && i < plan->warnings.n; i++)
                text_add(&t, "%s\n", plan->warnings.items[i].text);
        p.plan = text_take(&t);
        return p;
}

static json_t *example_of(const char *path) {
        _cleanup_(json_decrefp) json_t *schema = config_schema(false);
        const json_t *at = schema;
        while (*path) {
                _free_ char *key = str_cut(&path, ".");
                at = json_object_get(json_object_get(at, "properties"), key);
        }
        return json_deep_copy(json_array_get(json_object_get(at, "examples"), 0));
}

/* Values that differ from the default: one after another, then NULL. */
static json_t *value_of(const Field *f, const char *path, size_t i) {
        if (f->type == FIELD_ENUM)
                return i < f->n_names ? json_string(f->names[i] ?: "") : NULL;
        if (i > 0)
                return NULL;
        json_t *value = example_of(path);
        if (f->type == FIELD_INTEGER)
                json_integer_set(value, json_integer_value(value) - 1);
        return value;
}

/* True if the field changes any plan; off, if it is not NULL, is a path that is set to "off". */
static bool changes_a_plan(const Field *f, const char *path, const char *off, bool *ret_told) {
        *ret_told = false;
        for (size_t b = 0; b < ARRAY_SIZE(bases); b++)
                for (size_t m = 0; m < ARRAY_SIZE(machines); m++) {
                        _cleanup_(json_decrefp) json_t *spec = spec_of(bases[b]), *mode = json_string("off");
                        json_t *value;
                        if (off)
                                spec_set(spec, off, mode);
                        _cleanup_(planned_done) Planned with = plan_of(spec, machines[m], path);
                        for (size_t i = 0; (value = value_of(f, path, i)); i++) {
                                spec_set(spec, path, value);
                                json_decref(value);
                                _cleanup_(planned_done) Planned is = plan_of(spec, machines[m], path);
                                *ret_told |= is.told;
                                if (!streq(with.plan, is.plan))
                                        return true;
                        }
                }
        return false;
}

/* Each field of these, and of the maps below; off: the path of the nearest mode above it that can be off. */
static void each(const Field *fields, const char *above, const char *off, void (*call)(const Field *, const char *, const char *)) {
        const Field *mode = fields_find(fields, "mode");
        _free_ char *own = xasprintf("%s.mode", above);
        if (mode && field_enum_index(mode, "off") >= 0)
                off = own;
        for (const Field *f = fields; *f->key; f++) {
                _free_ char *path = xasprintf("%s.%s", above, f->key);
                if (f->type == FIELD_MAP)
                        each(f->fields, path, off, call);
                else
                        call(f, path, f == mode ? NULL : off);
        }
}

static const Field *spec_fields(void) {
        return fields_find(nodeconfig_fields, "spec")->fields;
}

static void is_planned(const Field *f, const char *path, _unused_ const char *off) {
        bool told;
        if (changes_a_plan(f, path, NULL, &told) == strv_contains((char *const *)not_planned, path))
                FAIL("%s %s", path, strv_contains((char *const *)not_planned, path) ? "is planned" : "changes no plan");
}

TEST(every_field_changes_a_plan) {
        each(spec_fields(), "spec", NULL, is_planned);
}

static void is_told_of(const Field *f, const char *path, const char *off) {
        bool told;
        if (off && !changes_a_plan(f, path, off, &told) && !told)
                FAIL("%s does nothing with %s: off, and config/conflict.c has no row of it in dependents", path, off);
}

TEST(fields_that_mode_off_makes_idle_give_a_warning) {
        each(spec_fields(), "spec", NULL, is_told_of);
}

TEST_MAIN
