/* SPDX-License-Identifier: Apache-2.0
 * Tables and texts of conf/, which the build packs to a third of their size. */
#include "doc/doc.h"

#include <stdlib.h>
#include <string.h>

const char *table_text(Table *t) {
        if (t->text)
                return t->text;
        _cleanup_(diag_done) Diag unused = {};
        Blob blob = { .data = xmemdup((const char *)t->packed, *t->size), .size = *t->size };
        if (doc_unpack(&blob, &unused) < 0)
                abort();                /* the build has packed them */
        for (char *p = blob.data; (p = strchr(p, '\n')); p++)
                *p = 0;
        return t->text = blob.data;
}
