/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Diagnostics → JSON, for editors, pipelines and dashboards. */
#include "base/error.h"
#include <jansson.h>

/* A list of {"severity": "error" or "warning", "code", "exit" (of errors), "source", "part", "line",
 * "column", "path", "message", "suggestion"}, in the order of diag. Unknown members are missing. Texts are
 * one line of UTF-8. */
_nonnull_ json_t *findings_to_json(const Diag *diag);
/* The same as SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html). Its rules are
 * the codes, with the entries of explain_read(). */
_nonnull_ json_t *findings_to_sarif(const Diag *diag, ExitCode code, const char *manual);
/* "unknown-field", "EINVALID" */
_nonnull_ const char *finding_code(const Diagnostic *item);
