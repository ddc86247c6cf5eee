/* SPDX-License-Identifier: Apache-2.0
 * Checks spec.containerd of the merged document, where the version of containerd is not known. */
#include "config/containerd.h"

#include "base/json.h"
#include "base/str.h"
#include "config/fields.h"

static ContainerdGiven given_of(const Merge *m) {
        const json_t *plugins = json_object_get(m->toml, "plugins");
        bool three = json_object_get(plugins, CONTAINERD_IMAGES) ||
                     json_object_get(plugins, CONTAINERD_RUNTIME),
             two = json_object_get(plugins, CONTAINERD_CRI);
        return (ContainerdGiven){ .all = m->toml, .user = m->toml,
                                  .spec = merge_find(m, "spec.containerd.baseRuntimeSpec"),
                                  .schema = three ? 3 : two ? 2 : 0, .partial = m->partial };
}

typedef struct Judgement {
        const Merge *merge;
        Diag *diag;
        json_t *told;           /* the paths of what containerd 1 refuses; NULL: it reads no different */
        bool broken;
} Judgement;

static void refuse(void *context, const char *path, const char *fault, bool certain) {
        Judgement *j = context;
        _free_ char *text = xasprintf("%s%s", fault, containerd_consequence(fault));
        if (j->told && !json_object_get(j->told, path))
                certain = false;
        j->broken |= certain;
        if (certain)
                config_report(j->merge, j->diag, path, text);
        else
                merge_warn(j->merge, j->diag, "containerd-setting", path, "%s", text);
}

static void warn(void *context, const char *path, const char *fault, const char *near) {
        const Judgement *j = context;
        merge_warn(j->merge, j->diag, "containerd-setting", path, "%s", fault);
        diag_suggest_name(j->diag, "", near);
}

static void note(void *context, const char *path, _unused_ const char *fault, bool certain) {
        if (certain)
                json_object_set_new(context, path, json_true());
}

/* containerd 1 ignores some keys that differ in case, and what holds for 2 alone is a warning. */
bool containerd_validate(const Merge *m, Diag *diag) {
        const ContainerdGiven given = given_of(m);
        ContainerdGiven one = given;
        bool both = m->toml_one && given.schema != 3 &&
                    json_integer_value(json_object_get(m->toml, "version")) < 3;
        _cleanup_(json_decrefp) json_t *told = both ? json_object() : NULL;
        Judgement j = { m, diag, told, false };
        one.all = m->toml_one;
        (void)!(both && containerd_judge(&one, note, told));
        (void)!containerd_judge(&given, refuse, &j);
        return !j.broken;
}

void containerd_warn(const Merge *m, Diag *diag) {
        const ContainerdGiven given = given_of(m);
        containerd_look(&given, warn, &(Judgement){ m, diag, NULL, false });
}
