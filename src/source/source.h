/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sources of the configuration: imds://user-data, file://PATH (file or directory), and SourceFlags. */
#include "aws/aws.h"
#include "base/paths.h"
#include "base/root.h"
#include "doc/doc.h"

#define NODECONFIG_TYPE "application/node.eks.aws"      /* of a MIME part */

/* More sources, for commands that change nothing. */
typedef enum SourceFlags {
        SOURCE_GUARD   = 1 << 0,        /* sets Blob.guarded */
        SOURCE_STREAMS = 1 << 1,        /* pipes and our own descriptors (/dev/stdin, /dev/fd/63), without
                                         * --root; the boot refuses them, as they might never end */
        SOURCE_BARE    = 1 << 2,        /* PATH without file://, and - for stdin: not for nodeadm */
        SOURCE_PARTIAL = 1 << 3,        /* a file that this user may not read is a warning */
} SourceFlags;

/* Reads all sources into blobs, undecoded. Missing user data (404) and an empty directory add nothing. imds
 * may be NULL where no source is imds://. at.source of a blob is "user-data", "stdin", or the path. */
_must_check_ _nonnull(1, 2, 5, 6) int source_read(const Root *root, char *const *uris, Imds *imds,
                                                  SourceFlags flags, Blobs *ret, Diag *diag);
bool source_is_imds(const char *uri);
/* The path of file://PATH or PATH, new; NULL: neither. */
_must_check_ _nonnull_ char *source_file_path(const char *uri);

/* A copy for messages, which name sources until the program ends. */
_nonnull_ const char *source_keep_name(const char *name);

/* ---- list.c: the sources of a command without -c ---- */
#define SOURCES_OF_BOOT  RUN_DIR "/sources"             /* the units of this boot record it */
#define SOURCES_OF_IMAGE "/etc/nodestrap/sources"       /* the builder of the image writes it */
typedef struct SourceList {
        char **uris;
        char *cache;            /* of --config-cache, or NULL */
        const char *from;       /* the path of the list; NULL: there is none */
} SourceList;
void source_list_done(SourceList *l);
/* Adds the lines of text to list; path is for messages. */
_must_check_ _nonnull_ int source_list_parse(const char *text, const char *path, SourceList *list,
                                             Diag *diag);
/* The list of the boot, else that of the image. Refuses one that non-root users can write. */
_must_check_ _nonnull_ int source_list_read(const Root *root, SourceList *ret, Diag *diag);
_must_check_ _nonnull(1) int source_list_record(const Root *root, char *const *uris, const char *cache);

/* Blobs → documents of all kinds: unpacks, splits messages, parses. config_load() picks the NodeConfigs. */
_must_check_ _nonnull_ int source_decode(Blobs *blobs, Documents *ret, Diag *diag);
/* Does its first line say that it is for cloud-init: a script, a cloud-config, …? */
_nonnull_ bool source_is_foreign(const Blob *blob);
