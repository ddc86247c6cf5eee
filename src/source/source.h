/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Where configuration comes from: imds://user-data, file://PATH (file or directory), in the order given. */
#include "aws/aws.h"
#include "base/root.h"
#include "doc/doc.h"

#define NODECONFIG_TYPE "application/node.eks.aws"      /* of a MIME part */

/* Reads every source into blobs, undecoded. User data that does not exist (404) and an empty directory add
 * nothing. imds may be NULL where no source is imds://; each blob's at.source is what messages call it
 * ("user-data", or the path). guard: says of each file whether others than root could have written it. */
_must_check_ _nonnull(1, 2, 5, 6) int source_read(const Root *root, char *const *uris, Imds *imds, bool guard,
                                                  Blobs *ret, Diag *diag);
bool source_is_imds(const char *uri);
/* The path of a file://PATH, new; NULL: it is none. */
_must_check_ _nonnull_ char *source_file_path(const char *uri);
/* Blobs → documents: unpack, split messages, parse. Everything found, of whatever kind; config_load() picks
 * its own. */
_must_check_ _nonnull_ int source_decode(Blobs *blobs, Documents *ret, Diag *diag);
/* Is this by its first line what cloud-init acts on: a script, a cloud-config, …? */
_nonnull_ bool source_is_foreign(const Blob *blob);
