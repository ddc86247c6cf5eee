/* SPDX-License-Identifier: Apache-2.0
 * spec.kubelet.flags as kubelet will read them. nodeadm joins them with blanks and lets systemd split and
 * unquote the line, so people have written several flags into one list element, a flag and its value apart,
 * and values in quotes (Karpenter does: --node-labels="a=b"). All three keep their meaning. Whatever is wrong
 * is only warned of: nodeadm takes it, and kubelet alone says which it refuses. */
#include "base/str.h"
#include "config/fields.h"

#include <ctype.h>

#define CONFIG "spec.kubelet.config"
#define FLAGS  "spec.kubelet.flags"
#define BLANKS " \t\r\n"

/* ---- words ---- */

/* Takes the quotes from --name="value" and from "word"; a quote anywhere else is data. */
static void unquote(char *word) {
        char *equals = *word == '-' ? strchr(word, '=') : NULL, *value = equals ? equals + 1 : word;
        size_t n = strlen(value);
        if (n >= 2 && (*value == '"' || *value == '\'') && strchr(value + 1, *value) == value + n - 1) {
                memmove(value, value + 1, n - 2);
                value[n - 2] = 0;
        }
}

/* Does a blank end the word before it? If a flag follows, or if the word is a flag without a value. */
static bool is_end(const char *word, size_t size, const char *next) {
        return *next == 0 || (*next == '-' && (next[1] == '-' || isalpha((unsigned char)next[1]))) ||
               (size > 0 && *word == '-' && !memchr(word, '=', size));
}

/* The end of the word that starts here: quotes hide blanks, where there is a second one. */
static size_t word_length(const char *s) {
        size_t i = 0;
        while (s[i]) {
                const char *close = s[i] == '"' || s[i] == '\'' ? strchr(s + i + 1, s[i]) : NULL;
                size_t blanks = strspn(s + i, BLANKS);
                if (blanks > 0 && is_end(s, i, s + i + blanks))
                        return i;
                i = close ? (size_t)(close - s) + 1 : i + MAX(blanks, (size_t)1);
        }
        return i;
}

char **kubelet_words(char *const *flags) {
        char **words = NULL;
        size_t n_words = 0;
        for (char *const *f = flags; f && *f; f++)
                for (const char *s = *f + strspn(*f, BLANKS); *s; s += strspn(s, BLANKS)) {
                        size_t n = word_length(s);
                        char *word = xstrndup(s, n);
                        unquote(word);
                        strv_push_at(&words, n_words++, word);
                        s += n;
                }
        return words;
}

/* ---- what is doubtful ---- */

static bool has_key(const json_t *config, const char *key) {
        for (;;) {
                size_t n = strcspn(key, ".");
                _cleanup_(freep) char *part = xstrndup(key, n);
                config = json_object_get(config, part);
                if (!config || !key[n])
                        return config != NULL;
                key += n + 1;
        }
}

/* What nodestrap says itself on kubelet's command line: the user's words stand behind it, and kubelet takes
 * the last one. */
static const char *overridden(const char *name) {
        static const struct { const char *flag, *what; } ours[] = {
                { "bootstrap-kubeconfig", "how kubelet reaches the API server" },
                { "cloud-provider", "that another program looks after the cloud" },
                { "config", "the file with all settings of nodestrap, and spec.kubelet.config with it" },
                { "config-dir", "the folder that spec.kubelet.config is written to" },
                { "hostname-override", "the node's name, which the cluster lets it in by" },
                { "image-credential-provider-bin-dir", "where the program that logs in to ECR is" },
                { "image-credential-provider-config", "which program logs in to ECR" },
                { "kubeconfig", "how kubelet reaches the API server" },
                { "node-ip", "the node's address, of the family that the cluster's services have" },
                { "provider-id", "which instance the node is" },
                { "runtime-cgroups", "where containerd's metrics come from" },
        };
        for (size_t i = 0; i < ARRAY_SIZE(ours); i++)
                if (streq(ours[i].flag, name))
                        return ours[i].what;
        return NULL;
}

static void warn_of_flag(const Merge *m, const char *flag, const char *path, Diag *diag) {
        const Position *at = origins_find(&m->origins, path);
        const json_t *config = json_object_get(kubelet_options(m), "config");
        _cleanup_(freep) char *name = kubelet_flag_name(flag);
        KubeletFlag f;
        if (!name || !*name)
                return;
        if (!kubelet_flag_find(flag, &f)) {
                const char *near = kubelet_flag_nearest(name);
                _cleanup_(freep) char *shown = text_quote(name, strlen(name));
                diag_warn_at(diag, "kubelet-flag", at, path,
                             "%s is no flag of kubelet in Kubernetes 1.%d to 1.%d: with one that it does not "
                             "know kubelet exits",
                             shown, KUBELET_TABLES_FROM, KUBELET_TABLES_TO);
                if (near)
                        diag_suggest(diag, "--%s", near);
                return;
        }
        if (overridden(f.name))
                diag_warn_at(diag, "kubelet-flag", at, path, "--%s replaces what nodestrap gives kubelet: %s",
                             f.name, overridden(f.name));
        if (*f.key && has_key(config, f.key))
                diag_warn_at(diag, "flag-and-config", at, path,
                             "--%s sets the same as " CONFIG ".%s; kubelet takes the flag", f.name, f.key);
        else if (f.until)
                diag_warn_at(diag, "kubelet-flag", at, path,
                             "--%s is gone from kubelet 1.%u on, which exits with it", f.name, f.until);
        else if (f.deprecated && *f.key) {
                diag_warn_at(diag, "deprecated-flag", at, path, "kubelet calls --%s deprecated", f.name);
                diag_suggest(diag, CONFIG ".%s", f.key);
        } else if (f.deprecated)
                diag_warn_at(diag, "deprecated-flag", at, path, "kubelet calls --%s deprecated", f.name);
}

/* One element may hold several flags; a blank and two hyphens begin another one, but in quotes. */
void kubelet_warn_of_flags(const Merge *m, Diag *diag) {
        json_t *flag;
        size_t i;
        json_array_foreach(json_object_get(kubelet_options(m), "flags"), i, flag) {
                const char *text = json_string_value(flag) ?: "";
                _cleanup_(freep) char *path = xasprintf(FLAGS "[%zu]", i);
                char quote = 0;
                for (const char *s = text; *s; s++) {
                        if (!quote && (s == text || s[-1] == ' ' || s[-1] == '\t'))
                                warn_of_flag(m, s, path, diag);
                        if (*s == '"' || *s == '\'')
                                quote = !quote ? *s : quote == *s ? 0 : quote;
                }
        }
}
