/* SPDX-License-Identifier: Apache-2.0
 * Tables of conf/ as conf/tables.awk packs them: names of settings take a third of their room so. */
#include "config/table.h"

#include "doc/doc.h"

#include <stdlib.h>
#include <string.h>

const char *table_text(Table *t) {
        if (t->text)
                return t->text;
        _cleanup_(diag_done) Diag unused = {};
        Blob blob = { .data = xmemdup((const char *)t->packed, *t->size), .size = *t->size };
        if (doc_unpack(&blob, &unused) < 0)
                abort();                /* gzip of the build is another one */
        for (char *p = blob.data; (p = strchr(p, '\n')); p++)
                *p = 0;
        return t->text = blob.data;
}
