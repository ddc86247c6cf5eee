/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Documents that leave the machine: their keys say where secrets are. Those are noted on the way, so that
 * secrets_scrub() finds them in other texts, too. */
#include "redact/scrub.h"
#include <jansson.h>

typedef enum MaskFormat {
        MASK_TEXT, MASK_JSON, MASK_TOML, MASK_YAML,
        MASK_UNIT,              /* with Environment= or DefaultEnvironment= in it */
        MASK_VARIABLES,         /* an EnvironmentFile= of ours, a variable a line */
        MASK_ARGUMENTS,         /* kubelet's, in its environment file: stays as it is */
} MaskFormat;

/* A copy with HIDDEN in the place of secrets; a new reference. */
json_t *mask_json(Secrets *s, const json_t *json) _nonnull_;
/* The same of a NodeConfig ({"spec"}): no variable of a service's environment stays. */
json_t *mask_config(Secrets *s, const json_t *document) _nonnull_;
/* The same without any text of the free-form parts, which may be secret whatever its key is; all of them are
 * noted, but for common words. */
json_t *mask_config_whole(Secrets *s, const json_t *document) _nonnull_;
/* The same of a file. One without secrets is given back as it is, another is written anew. -EBADMSG for what
 * is not of its format: it might hold anything. ret is the caller's. */
_must_check_ _nonnull_ int mask_file(Secrets *s, MaskFormat format, const char *text, size_t size, char **ret,
                                     size_t *ret_size);
