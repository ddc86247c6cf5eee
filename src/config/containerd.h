/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* containerd by version: the keys of its TOML and of an OCI runtime spec
 * (conf/containerd-settings.csv). */
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"
#include <stdbool.h>

extern const unsigned char containerd_known_settings[];         /* packed */
extern const size_t containerd_known_settings_size;

typedef struct ContainerdGiven {
        const json_t *all;              /* its whole TOML, or that of the user alone */
        const json_t *user;             /* spec.containerd.config as JSON, or NULL */
        const json_t *spec;             /* spec.containerd.baseRuntimeSpec, or NULL */
        unsigned version;               /* 201: containerd 2.1; 0: not known */
        unsigned schema;                /* 2 or 3, of all; 0: not known */
        bool whole;                     /* all has our settings */
        bool partial;                   /* other documents follow */
} ContainerdGiven;
/* "2.1.9" → 201; 0: not known, or newer than the 2.4 of the table. */
unsigned containerd_version(const char *version);
/* Spells known keys as the table does, if containerd 2, or 1 (one), reads them so: in another case they would
 * stand beside ours. A new reference. */
_must_check_ _nonnull_ json_t *containerd_folded(const json_t *toml, bool one);
/* spec.containerd.config as the containerd of this version reads it, or NULL. */
_nonnull(1) const json_t *containerd_settings(const Config *config, const char *version);
/* path: "spec.containerd.config.debug.level"; certain: wrong for each possible containerd. */
typedef void ContainerdTell(void *context, const char *path, const char *fault, bool certain);
/* Most messages for one TOML: a generated one may have thousands of faults. */
#define CONTAINERD_MOST 20
/* Reports each fault that makes containerd exit, lose CRI or start no pod; false where there is one. */
_nonnull(1, 2) bool containerd_judge(const ContainerdGiven *g, ContainerdTell *tell, void *context);
/* The text to append to a fault. */
const char *containerd_consequence(const char *fault);
/* Reports each key of the user, below a known table, that no containerd knows; near: the nearest key, or
 * NULL. Where the version is known, it reports the keys that this containerd ignores instead. */
typedef void ContainerdUnknown(void *context, const char *path, const char *fault, const char *near);
_nonnull(1, 2) void containerd_look(const ContainerdGiven *g, ContainerdUnknown *tell, void *context);

/* Ids of plugins. */
#define CONTAINERD_CRI      "io.containerd.grpc.v1.cri"
#define CONTAINERD_RUNTIME  "io.containerd.cri.v1.runtime"
#define CONTAINERD_IMAGES   "io.containerd.cri.v1.images"
#define CONTAINERD_SERVER   "io.containerd.server.v1.grpc"
#define CONTAINERD_TRANSFER "io.containerd.transfer.v1.local"

/* The part of containerd_judge() that looks at each value by itself. */
_nonnull(1, 2) bool containerd_judge_values(const ContainerdGiven *g, ContainerdTell *tell, void *context);
typedef enum ContainerdPlugin { PLUGIN_UNKNOWN, PLUGIN_KNOWN, PLUGIN_NEEDED } ContainerdPlugin;
/* Does this containerd have a plugin "io.containerd.…", and does CRI need it? */
_nonnull(1, 2) ContainerdPlugin containerd_plugin(const ContainerdGiven *g, const char *id);
