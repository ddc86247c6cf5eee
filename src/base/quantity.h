/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Kubernetes quantities ("90m", "1Gi", "1.5e3") in thousandths of a CPU, byte or pod: as fine as kubelet
 * counts CPUs, up to nine petabytes. Syntax:
 * kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity. */
#include "base/macro.h"

/* Rounds away from zero, and up to INT64_MAX, as kubelet does; -EINVAL: not a quantity. */
_must_check_ _nonnull_ int quantity_parse(const char *text, int64_t *ret_thousandths);
/* The canonical form: "191570m", "128k"; binary: with Ki, Mi … for a multiple of 1024. Not negative. */
_malloc_ char *quantity_text(int64_t thousandths, bool binary);
