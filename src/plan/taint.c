/* SPDX-License-Identifier: Apache-2.0 */
/* Taints that the node would register with anyway: --register-with-taints of a tainted node replaces them, so
 * it repeats them. In kubelet the last flag wins, and flags win over registerWithTaints
 * (kubernetes/kubernetes pkg/util/taints: taintsVar). */
#include "plan/planner.h"
#include "base/json.h"
#include "base/str.h"
#include "config/kubelet.h"

#define FLAG "--register-with-taints"

static char **split(const char *list) {
        char **words = NULL;
        for (const char *s = list; *s; s += strspn(s, ",")) {
                size_t n = strcspn(s, ",");
                if (n > 0)
                        strv_push(&words, xstrndup(s, n));
                s += n;
        }
        return words;
}

static char **taints_of_settings(const json_t *taints) {
        char **words = NULL;
        json_t *taint;
        size_t i;
        json_array_foreach(taints, i, taint) {
                const char *value = json_get_text(taint, "value");
                strv_push(&words, xasprintf("%s%s%s:%s", json_get_text(taint, "key"), *value ? "=" : "",
                                            value, json_get_text(taint, "effect")));
        }
        return words;
}

char **kubelet_taints(const Config *config) {
        _strv_ char **flags = kubelet_words(config->kubelet.flags);
        const char *last = NULL;
        for (char **f = flags; f && *f; f++)
                if (startswith(*f, FLAG "="))
                        last = *f + strlen(FLAG "=");
                else if (streq(*f, FLAG) && f[1])
                        last = f[1];
        return last ? split(last)
                    : taints_of_settings(json_object_get(config->kubelet.config, "registerWithTaints"));
}
