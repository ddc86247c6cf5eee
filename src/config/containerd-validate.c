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

typedef struct Judgement { const Merge *merge; Diag *diag; } Judgement;

static void refuse(void *context, const char *path, const char *fault, bool certain) {
        const Judgement *j = context;
        _free_ char *text = xasprintf("%s%s", fault, containerd_consequence(fault));
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

bool containerd_validate(const Merge *m, Diag *diag) {
        const ContainerdGiven given = given_of(m);
        return containerd_judge(&given, refuse, &(Judgement){ m, diag });
}

void containerd_warn(const Merge *m, Diag *diag) {
        const ContainerdGiven given = given_of(m);
        containerd_look(&given, warn, &(Judgement){ m, diag });
}
