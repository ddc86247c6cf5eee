/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* containerd by version: the keys of its TOML and of an OCI runtime spec, out of
 * conf/containerd-settings.csv. */
#include "base/json.h"
#include "base/str.h"
#include "config/config.h"
#include <stdbool.h>

extern const unsigned char containerd_known_settings[];         /* packed */
extern const size_t containerd_known_settings_size;

/* All that containerd is given. */
typedef struct ContainerdGiven {
        const json_t *all;              /* its TOML, as it is written, or the user's alone */
        const json_t *user;             /* spec.containerd.config as JSON; or NULL */
        const json_t *spec;             /* spec.containerd.baseRuntimeSpec; or NULL */
        unsigned version;               /* 201: containerd 2.1; 0: not known */
        unsigned schema;                /* 2 or 3, of all; 0: not known */
        bool whole;                     /* all is with ours */
        bool partial;                   /* other documents will come to it */
} ContainerdGiven;
/* "2.1.9" → 201; 0 where it is not known, or newer than the 2.4 of the table. */
unsigned containerd_version(const char *version);
/* The same TOML with each known key in the spelling of the table: containerd 2 reads it whatever its case,
 * and it would be there twice beside ours. A new reference. */
_must_check_ _nonnull_ json_t *containerd_folded(const json_t *toml);
/* path: "spec.containerd.config.debug.level"; fault: without its consequence. certain: so it is, and not only
 * for some containerd of those that may be meant. */
typedef void ContainerdTell(void *context, const char *path, const char *fault, bool certain);
/* So many sentences about one TOML are read; a generated one may have thousands of the same. */
#define CONTAINERD_MOST 20
/* Tells of each value and each broken rule at which containerd ends, is without CRI, or starts no pod; false
 * where there is one. */
_nonnull(1, 2) bool containerd_judge(const ContainerdGiven *g, ContainerdTell *tell, void *context);
/* Goes behind a fault: the consequence. */
const char *containerd_consequence(const char *fault);
/* Tells of each key of the user's below a known table that no containerd knows; near: the nearest one, or
 * NULL. Where the version is known, it tells of those instead that this one passes over. */
typedef void ContainerdUnknown(void *context, const char *path, const char *fault, const char *near);
_nonnull(1, 2) void containerd_look(const ContainerdGiven *g, ContainerdUnknown *tell, void *context);

/* Of the plugins. */
#define CONTAINERD_CRI      "io.containerd.grpc.v1.cri"
#define CONTAINERD_RUNTIME  "io.containerd.cri.v1.runtime"
#define CONTAINERD_IMAGES   "io.containerd.cri.v1.images"
#define CONTAINERD_SERVER   "io.containerd.server.v1.grpc"
#define CONTAINERD_TRANSFER "io.containerd.transfer.v1.local"

/* Of its values each by itself. */
_nonnull(1, 2) bool containerd_judge_values(const ContainerdGiven *g, ContainerdTell *tell, void *context);
typedef enum ContainerdPlugin { PLUGIN_UNKNOWN, PLUGIN_KNOWN, PLUGIN_NEEDED } ContainerdPlugin;
/* Has this containerd a plugin "io.containerd.…", and is its CRI not loaded without it? */
_nonnull(1, 2) ContainerdPlugin containerd_plugin(const ContainerdGiven *g, const char *id);
