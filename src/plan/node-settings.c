/* SPDX-License-Identifier: Apache-2.0 */
/* Planned kubelet files and arguments → settings, merged as kubelet does: drop-in over file by RFC 7386,
 * flags over both (kubernetes/kubernetes:cmd/kubelet/app/server.go). */
#include "plan/planner.h"
#include "base/str.h"
#include "config/kubelet.h"
#include "doc/doc.h"
#include "doc/env-file.h"

#define FILE_ID    "write-file:/etc/kubernetes/kubelet/config.json"
#define DROP_IN_ID "write-file:/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf"

static json_t *file_json(const Plan *plan, const char *id) {
        const Action *a = plan_find(plan, id);
        json_t *json = a ? json_loads(a->file.content, 0, NULL) : NULL;
        return json ?: json_object();
}

static json_t *read_settings(const Plan *plan) {
        json_t *settings = file_json(plan, FILE_ID), *drop_in = file_json(plan, DROP_IN_ID);
        const Action *a = plan_find(plan, "write-file:" KUBELET_ENVIRONMENT);
        _free_ char *line = a ? assignment_in_environment(a->file.content, "NODEADM_KUBELET_ARGS") : NULL;
        _strv_ char **words = assignment_split(line ?: "");
        json_merge_patch(settings, drop_in);
        json_decref(drop_in);
        kubelet_flags_merge(settings, words);
        return settings;
}

json_t *node_settings(const Plan *plan, const Host *host) {
        json_t *settings = read_settings(plan);
        /* kubelet before 1.26 asks EC2 for its name */
        if (!json_object_get(settings, "hostnameOverride"))
                json_set_text(settings, "hostnameOverride", host->instance.private_dns_name ?: "");
        return settings;
}

uint64_t node_setting_number(const json_t *settings, const char *name) {
        const json_t *value = json_object_get(settings, name);
        uint64_t n = 0;
        if (json_is_integer(value))
                return (uint64_t)MAX(json_integer_value(value), 0);
        return parse_u64(json_get_text(settings, name), &n) < 0 ? 0 : n;
}

int node_setting_flag(const json_t *settings, const char *name) {
        const json_t *value = json_object_get(settings, name);
        const char *text = json_get_text(settings, name);
        if (!value || json_is_null(value))
                return -1;
        return json_is_true(value) || streq(text, "true") || streq(text, "1") || streq(text, "t");
}

bool plan_kubelet_switch(const Plan *plan, const char *name, bool otherwise) {
        _cleanup_(json_decrefp) json_t *settings = read_settings(plan);
        int flag = node_setting_flag(settings, name);
        return flag < 0 ? otherwise : flag > 0;
}

unsigned cpu_list_count(const char *list) {
        unsigned n = 0;
        for (const char *s = list; *s;) {
                size_t size = strcspn(s, ",");
                _free_ char *range = xstrndup(s, size);
                char *dash = strchr(range, '-');
                uint64_t first, last;
                if (dash)
                        *dash = 0;
                if (parse_u64(range, &first) < 0 || parse_u64(dash ? dash + 1 : range, &last) < 0 ||
                    last < first || last > UINT16_MAX)
                        return 0;
                n += (unsigned)(last - first) + 1;
                s += size + (s[size] == ',');
        }
        return n;
}
