/* SPDX-License-Identifier: Apache-2.0 */
/* The kubelet command line, as kubelet.service of EKS reads it: EnvironmentFile=/etc/eks/kubelet/environment,
 * ExecStart=kubelet $NODEADM_KUBELET_ARGS.
 *
 * nodeadm joins the flags with blanks, and systemd splits and unquotes the line. Words keep their meaning for
 * nodeadm (config/kubelet-flags.c). Here they also keep what systemd would damage: backslashes, inner quotes,
 * and blanks in a value, after which kubelet would see a command. */
#include "plan/planner.h"
#include "base/str.h"
#include "config/kubelet.h"
#include "doc/env-file.h"
#include "redact/secret.h"

#define ARGUMENTS "NODEADM_KUBELET_ARGS"

/* The line of nodeadm, which people grep and patch. NULL if systemd would not split it into words. */
static char *plain_line(char *const *flags, char *const *user, char *const *words) {
        _strv_ char **all = strv_copy(flags);
        strv_extend(&all, user);
        _free_ char *value = strv_join(all, " "), *line = xasprintf(ARGUMENTS "=%s", value);
        _free_ char *read = assignment_in_environment(line, ARGUMENTS);
        _strv_ char **split = assignment_split(read ?: "");
        size_t n = strv_length(split);
        if (n != strv_length(words))
                return NULL;
        for (size_t i = 0; i < n; i++)
                if (!streq(split[i], words[i]))
                        return NULL;
        return TAKE_PTR(line);
}

/* systemd also passes the line as one variable, with a limit of the kernel. */
static void check_length(Plan *plan, const char *text) {
        _free_ char *value = assignment_in_environment(text, ARGUMENTS);
        if (strlen(ARGUMENTS "=") + strlen(value ?: "") < VARIABLE_MAX)
                return;
        diag_warn_at(&plan->warnings, "kubelet-flag", NULL, "spec.kubelet.flags",
                     "the command line is over 128 KiB, and systemd cannot start kubelet with it; use "
                     "spec.kubelet.config instead");
        diag_foretell(&plan->warnings, CAUSE_INVALID);
}

void kubelet_arguments(Plan *plan, const Config *config, const Host *host, char *const *flags) {
        _strv_ char **words = strv_copy(flags);
        _strv_ char **user = kubelet_words(config->kubelet.flags);
        strv_extend(&words, user);
        _free_ char *value = assignment_join(words), *plain = plain_line(flags, config->kubelet.flags, words);
        _cleanup_(text_done) Text t = {};
        text_add(&t, plain ? "%s\n" : ARGUMENTS "=%s\n", plain ?: value);
        check_length(plan, t.data);
        /* kubernetes KEP-3983: in 1.28 and 1.29 --config-dir is alpha and needs this */
        if (!version_at_least(host->kubelet_version, 1, 30) &&
            plan_find(plan, "write-file:/etc/kubernetes/kubelet/config.json.d/40-nodeadm.conf"))
                text_add(&t, "KUBELET_CONFIG_DROPIN_DIR_ALPHA=on\n");
        _free_ char *why = xasprintf("%zu arguments, %zu of them from the user", strv_length(words),
                                     strv_length(user));
        plan_users_file(plan, "kubelet", KUBELET_ENVIRONMENT, why, t.data, user, words_hold_secret(user));
}
