/* SPDX-License-Identifier: Apache-2.0 */
/* kubelet's command line, as EKS's kubelet.service reads it: EnvironmentFile=/etc/eks/kubelet/environment,
 * ExecStart=kubelet $NODEADM_KUBELET_ARGS.
 *
 * nodeadm joins the flags with blanks and lets systemd split and unquote the line, so people have written
 * several flags into one list element, a flag and its value apart, and values in quotes (Karpenter does:
 * --node-labels="a=b"). All three keep their meaning. What systemd would damage survives: backslashes, quotes
 * inside a value, and blanks in a value, where kubelet would refuse the rest as a command. */
#include "plan/planner.h"
#include "base/str.h"
#include "doc/assignment.h"
#include <ctype.h>

#define BLANKS    " \t\r\n"
#define ARGUMENTS "NODEADM_KUBELET_ARGS"

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

/* The line as nodeadm writes it, flags and the user's text joined with blanks, where systemd makes the words
 * of it that are meant; people know, grep and patch that one. NULL where it does not. */
static char *plain_line(char *const *flags, char *const *user, char *const *words) {
        _cleanup_(strv_freep) char **all = strv_copy(flags);
        strv_extend(&all, user);
        _cleanup_(freep) char *value = strv_join(all, " "), *line = xasprintf(ARGUMENTS "=%s", value);
        _cleanup_(freep) char *read = assignment_in_environment(line, ARGUMENTS);
        _cleanup_(strv_freep) char **split = assignment_split(read ?: "");
        size_t n = strv_length(split);
        if (n != strv_length(words))
                return NULL;
        for (size_t i = 0; i < n; i++)
                if (!streq(split[i], words[i]))
                        return NULL;
        return TAKE_PTR(line);
}

void kubelet_arguments(Plan *plan, const Config *config, const Host *host, char *const *flags) {
        _cleanup_(strv_freep) char **words = strv_copy(flags);
        _cleanup_(strv_freep) char **user = kubelet_words(config->kubelet.flags);
        strv_extend(&words, user);
        _cleanup_(freep) char *value = assignment_join(words),
                              *plain = plain_line(flags, config->kubelet.flags, words);
        _cleanup_(text_done) Text t = {};
        text_add(&t, plain ? "%s\n" : ARGUMENTS "=%s\n", plain ?: value);
        /* kubernetes KEP-3983: --config-dir was alpha in 1.28 and 1.29, and only read with this set */
        if (!version_at_least(host->kubelet_version, 1, 30) &&
            plan_find(plan, "write-file:/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf"))
                text_add(&t, "KUBELET_CONFIG_DROPIN_DIR_ALPHA=on\n");
        _cleanup_(freep) char *why = xasprintf("%zu arguments; %zu of them the user's, last",
                                               strv_length(words), strv_length(user));
        plan_users_file(plan, "kubelet", KUBELET_ENVIRONMENT, why, t.data, user, words_hold_secret(user));
}
