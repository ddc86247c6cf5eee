/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What was found wrong → JSON, for editors, pipelines and dashboards. */
#include "base/error.h"
#include <jansson.h>

/* [{"severity": "error" or "warning", "code", "exit" (of errors: the exit code that they come to), "source",
 * "part", "line", "column", "path", "message", "suggestion"}] in the order of diag; what is not known is left
 * out. Texts are UTF-8 in one line, whatever bytes were in the input. */
_nonnull_ json_t *findings_to_json(const Diag *diag);
/* The same as a document of SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html),
 * of a check that ended with that code. Its rules are the codes, with the entries of explain_read(). */
_nonnull_ json_t *findings_to_sarif(const Diag *diag, ExitCode code, const char *manual);
/* "unknown-field", "EINVALID" */
_nonnull_ const char *finding_code(const Diagnostic *item);
