/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap explain WORD`: the manual entry for a code, a warning or a key, on a machine without man(1). */
#include "commands/output.h"
#include "commands/run.h"
#include "report/explain.h"

#include "base/str.h"

#include <errno.h>

static int explain(const char *entries, const char *word, Text *t, Diag *diag) {
        _free_ char *entry = explain_find(entries, word),
                    *near = entry ? NULL : explain_nearest(entries, word);
        if (!entry)
                return diag_error(diag, -ENOENT, CAUSE_USAGE,
                                  "\"%s\" is neither a code nor a key%s%s; see man 7 nodestrap-codes and man "
                                  "5 NodeConfig",
                                  word, near ? "; the nearest is " : "", near ?: "");
        bool term = true;
        text_add(t, t->size > 0 ? "\n" : "");
        for (char *rest = entry, *line = strsep(&rest, "\n"); line && *line; line = strsep(&rest, "\n")) {
                if (term || *line == ' ')
                        text_add(t, "%s\n", line);
                else
                        text_add_folded(t, "    ", 4, line);
                term = false;
        }
        return 0;
}

int command_explain(Run *run) {
        _free_ char *entries = NULL;
        _cleanup_(text_done) Text t = {};
        if (!run->options.sources)
                return diag_error(&run->diag, -EINVAL, CAUSE_USAGE,
                                  "explain takes a code, a warning or a key: nodestrap explain EFABRIC");
        int r = explain_read(run->root, &entries);
        if (r < 0)
                return diag_error(&run->diag, r, CAUSE_SOURCE,
                                  EXPLAIN_FILE " cannot be read: %s; reinstall the nodestrap package",
                                  strerror(-r));
        for (char **word = run->options.sources; r >= 0 && *word; word++)
                r = explain(entries, *word, &t, &run->diag);
        return r < 0 ? r : output_text(t.data ?: "", &run->diag);
}
