/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* User data inside the files of other tools. Karpenter has an EC2NodeClass, eksctl a ClusterConfig. The AWS
 * CLI prints and takes launch templates. terraform show -json prints a plan or a state. */
#include "doc/doc.h"

typedef enum WrapKeys {                 /* the file, and so the names of the keys in Wrapped.template */
        WRAP_KARPENTER,                 /* spec of an EC2NodeClass */
        WRAP_EKSCTL,                    /* a group of a ClusterConfig */
        WRAP_EC2,                       /* ImageId, NetworkInterfaces: RequestLaunchTemplateData of EC2 */
        WRAP_TERRAFORM,                 /* image_id, network_interfaces: values of an aws_launch_template */
        WRAP_TERRAFORM_INSTANCE,        /* values of an aws_instance */
} WrapKeys;

typedef struct Wrapped {
        WrapKeys keys;
        char *name;                     /* in its file, to choose it: "gpu", "3", "aws_launch_template.gpu" */
        char *place;                    /* "LaunchTemplateVersions[0].LaunchTemplateData.UserData" */
        Position at;                    /* in the file: of the user data, or of what has none */
        const Node *template;           /* the map with the user data; WrappedFile.documents owns it */
        /* data NULL: without user data. Without base64, but maybe gzip or MIME. A literal block of YAML keeps
         * source, lines and columns (at.column blanks are in front of each line) of the file. Of any other
         * text the lines count from 1, and at.source is "FILE#PLACE". */
        Blob blob;
        const char *why; Cause cause;   /* why it cannot be read, or NULL: "is missing, …" */
        char **types;                   /* instance types that the file names for it */
        char *added;                    /* what its tool adds, as NodeConfigs with a stand-in for the cluster;
                                         * NULL: nothing */
} Wrapped;
typedef struct WrappedFile {
        Wrapped *items; size_t n;       /* in the order of the file; n 0: not a file of these kinds */
        Documents documents;            /* of the file */
} WrappedFile;
_nonnull_ void wrapped_done(WrappedFile *f);

/* Returns 0 with ret->n 0 for any other file. Of items without user data it keeps the first, if no item has
 * any. An error with a diagnostic: a file of these kinds that does not parse. */
_must_check_ _nonnull_ int wrapped_read(const Blob *file, WrappedFile *ret, Diag *diag);
/* The item named choice; with choice NULL, item number turn, from 1; with turn 0, the only one. An error with
 * a diagnostic: several, none, or one that cannot be read. */
_must_check_ _nonnull(1, 4, 5, 6) int wrapped_choose(WrappedFile *f, const char *choice, size_t turn,
                                                     const char *source, Wrapped **ret, Diag *diag);
/* Appends w->added, which is not NULL, to the documents of its user data. */
_must_check_ _nonnull_ int wrapped_complete(const Wrapped *w, Documents *documents, Diag *diag);
