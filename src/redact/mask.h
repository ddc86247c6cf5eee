/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Hides secrets in documents that leave the machine, by their keys, and adds them to Secrets, so that
 * secrets_scrub() finds them in other texts. */
#include "redact/scrub.h"
#include <jansson.h>

typedef enum MaskFormat {
        MASK_TEXT, MASK_JSON, MASK_TOML, MASK_YAML,
        MASK_UNIT,              /* has Environment= or DefaultEnvironment= */
        MASK_VARIABLES,         /* our EnvironmentFile=, one variable per line */
        MASK_ARGUMENTS,         /* the environment file of kubelet, which stays as it is */
} MaskFormat;

/* A copy with HIDDEN in place of secrets; a new reference. */
json_t *mask_json(Secrets *s, const json_t *json) _nonnull_;
/* The same of a NodeConfig ({"spec"}), without any environment variables. */
json_t *mask_config(Secrets *s, const json_t *document) _nonnull_;
/* The same without texts of free-form parts, which may be secret. It adds all but common words. */
json_t *mask_config_whole(Secrets *s, const json_t *document) _nonnull_;
/* The same of a file, which stays as it is if it has no secrets. -EBADMSG: not of its format, so it might
 * hold anything. The caller frees *ret. */
_must_check_ _nonnull_ int mask_file(Secrets *s, MaskFormat format, const char *text, size_t size, char **ret,
                                     size_t *ret_size);
