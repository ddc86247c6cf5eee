/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* kubelet by version: its configuration file, its command line and its feature gates, from
 * conf/kubelet-settings.csv, conf/kubelet-flags.csv and conf/feature-gates.csv, each packed. */
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"
#include <stdbool.h>

/* Minor versions of Kubernetes. */
#define KUBELET_TABLES_FROM 28
#define KUBELET_TABLES_TO   37

extern const unsigned char kubelet_known_settings[], kubelet_known_flags[], kubelet_known_gates[];
extern const size_t kubelet_known_settings_size, kubelet_known_flags_size, kubelet_known_gates_size;

/* With protectKernelDefaults, as EKS sets it, kubelet starts only with these values. */
typedef struct Tunable { const char *path, *value; } Tunable;
extern const Tunable kubelet_tunables[];
extern const size_t n_kubelet_tunables;

/* type: a letter of the CSV; since: the first 1.N that has it, 0: all; limits: may be "" */
typedef struct KubeletSetting { char type; unsigned since; const char *name, *limits; } KubeletSetting;
_nonnull_ bool kubelet_setting_find(const char *name, KubeletSetting *ret);

/* From 1.from to before 1.until; 0: no end. key: of the configuration file, with dots, or "". */
typedef struct KubeletFlag {
        const char *name, *key;
        unsigned from, until;
        bool deprecated;                /* by the newest version */
} KubeletFlag;
/* name: a word of a command line, "--max_pods=5"; false also where it is not a flag. */
_nonnull_ bool kubelet_flag_find(const char *name, KubeletFlag *ret);
/* "--max_pods=5" → "max-pods": kubelet takes underscores for hyphens. NULL: not a flag. */
_must_check_ _nonnull_ char *kubelet_flag_name(const char *flag);
/* The nearest name, or NULL. */
_nonnull_ const char *kubelet_flag_nearest(const char *name);
/* A list of flags written for nodeadm → a new argument vector, or NULL; see kubelet-flags.c. */
char **kubelet_words(char *const *flags);

/* A feature gate in one version. on: its default; locked: kubelet accepts no other value. */
typedef struct KubeletGate { const char *name; bool on, locked; } KubeletGate;
/* false: not known to it. minor: from KUBELET_TABLES_FROM to _TO. */
_nonnull_ bool kubelet_gate_find(const char *name, unsigned minor, KubeletGate *ret);
/* From 1.from to before 1.until; 0: no end. false: known to none. */
_nonnull_ bool kubelet_gate_versions(const char *name, unsigned *ret_from, unsigned *ret_until);
/* 1: on, 0: off with these gates (an object or NULL), by AllAlpha and AllBeta, too. -1: not known. */
_nonnull(2) int kubelet_gate_state(const json_t *gates, const char *name, unsigned minor);
/* The nearest name of all versions, or NULL. */
_nonnull_ const char *kubelet_gate_nearest(const char *name);
/* Does one of spec.kubelet.flags turn it off? */
_nonnull(2) bool kubelet_flags_turn_off(char *const *flags, const char *name);
/* Does kubelet of this version start with the gates of spec.kubelet.config and spec.kubelet.flags? -EINVAL
 * with errors in diag; 0 also for a version outside the tables. refuse false: warnings. */
_must_check_ _nonnull_ int kubelet_gate_check(const Config *config, const char *version, bool refuse,
                                              Diag *diag);
/* Of a label or a taint: a name, maybe after a domain and a slash, and a value that may be ""
 * (k8s.io/apimachinery pkg/util/validation). */
_nonnull_ bool kubelet_label_is_valid(const char *key, const char *value);
/* Merges flags over settings, an object of KubeletConfiguration, as kubelet does. A text becomes the type
 * that the file has there, if it can. Flags without a key there become nodeLabels, hostnameOverride,
 * rootDirectory and ignoreEviction. */
_nonnull(1) void kubelet_flags_merge(json_t *settings, char *const *words);
/* A Go duration: "1h30m", "0.5s" (pkg.go.dev/time#ParseDuration), in seconds. */
_nonnull_ bool kubelet_parse_duration(const char *s, double *ret);
/* Where the user sets it: "spec.kubelet.flags[2]", which wins, or "spec.kubelet.config.maxPods"; or NULL. */
_nonnull(3) char *kubelet_setting_path(const json_t *config, char *const *flags, const char *key);

/* ---- kubelet-rules.c ---- */
/* All settings of kubelet, and its machine. */
typedef struct KubeletGiven {
        const json_t *all;              /* merged, by the keys of the configuration file */
        const json_t *user;             /* spec.kubelet.config; or NULL */
        char *const *flags;             /* spec.kubelet.flags */
        unsigned minor;                 /* of Kubernetes 1.N; 0: not known, and our settings are not in all */
        unsigned cpus, nodes;           /* CPUs and NUMA nodes of the machine; 0: not known */
        bool whole;                     /* no other document follows */
        const char *key; Text *room;    /* for a rule: its setting, and room for its message */
} KubeletGiven;
/* path: of the setting; NULL: the user does not set it. */
typedef void KubeletTell(void *context, const char *path, const char *fault);
/* Reports each broken rule; false where there is one. */
_nonnull(1, 2) bool kubelet_judge_together(const KubeletGiven *g, KubeletTell *tell, void *context);

/* ---- kubelet.c ---- */
/* The same, and each wrong value. */
_nonnull(1, 2) bool kubelet_judge(const KubeletGiven *g, KubeletTell *tell, void *context);
