/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where configuration comes from: imds://user-data, file://PATH (file or directory), in the order given; and
 * by hand also PATH alone, - and whatever else can be read. */
#include "aws/aws.h"
#include "base/paths.h"
#include "base/root.h"
#include "doc/doc.h"

#define NODECONFIG_TYPE "application/node.eks.aws"      /* of a MIME part */

/* What is taken beside that, by a command that changes nothing. */
typedef enum SourceFlags {
        SOURCE_GUARD   = 1 << 0,        /* says of each file whether others than root could have written it */
        SOURCE_STREAMS = 1 << 1,        /* pipes and this process's own descriptors (/dev/stdin, /dev/fd/63)
                                         * below the host's root, to their end, however long that takes: at
                                         * boot nobody may write into them, so elsewhere they are refused */
        SOURCE_BARE    = 1 << 2,        /* PATH without file://, and - for stdin: nodeadm takes neither */
        SOURCE_PARTIAL = 1 << 3,        /* a file that this user may not read is a warning */
} SourceFlags;

/* Reads every source into blobs, undecoded. User data that does not exist (404) and an empty directory add
 * nothing. imds may be NULL where no source is imds://; each blob's at.source is what messages call it
 * ("user-data", "stdin", or the path). */
_must_check_ _nonnull(1, 2, 5, 6) int source_read(const Root *root, char *const *uris, Imds *imds,
                                                  SourceFlags flags, Blobs *ret, Diag *diag);
bool source_is_imds(const char *uri);
/* The path of a file://PATH, or of a PATH alone, new; NULL: it is none. */
_must_check_ _nonnull_ char *source_file_path(const char *uri);

/* ---- list.c: the sources of a command that is given none ---- */
#define SOURCES_OF_BOOT  RUN_DIR "/sources"             /* what the units of this boot read */
#define SOURCES_OF_IMAGE "/etc/nodestrap/sources"       /* what an image says that they read */
typedef struct SourceList {
        char **uris;
        char *cache;            /* of --config-cache, or NULL */
        const char *from;       /* the path of the list; NULL: neither is there */
} SourceList;
void source_list_done(SourceList *l);
/* Adds the lines of text to list; path is what messages call it. */
_must_check_ _nonnull_ int source_list_parse(const char *text, const char *path, SourceList *list,
                                             Diag *diag);
/* The list of the boot, else that of the image. One that others than root can write is refused. */
_must_check_ _nonnull_ int source_list_read(const Root *root, SourceList *ret, Diag *diag);
_must_check_ _nonnull(1) int source_list_record(const Root *root, char *const *uris, const char *cache);

/* Blobs → documents: unpack, split messages, parse. Everything found, of whatever kind; config_load() picks
 * its own. */
_must_check_ _nonnull_ int source_decode(Blobs *blobs, Documents *ret, Diag *diag);
/* Is this by its first line what cloud-init acts on: a script, a cloud-config, …? */
_nonnull_ bool source_is_foreign(const Blob *blob);
