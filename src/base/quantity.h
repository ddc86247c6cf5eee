/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Quantities of resources as Kubernetes writes them ("90m", "1Gi", "1.5e3"), in thousandths of a unit: a CPU,
 * a byte, a pod. That is as fine as kubelet counts CPUs, and reaches over nine petabytes. Syntax:
 * kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity. */
#include "base/macro.h"

/* -EINVAL where it is none. Finer than a thousandth is rounded away from zero, and what is too large becomes
 * INT64_MAX, as in kubelet. */
_must_check_ _nonnull_ int quantity_parse(const char *text, int64_t *ret_thousandths);
/* In its canonical form, with the largest suffix without a fraction: "191570m", "128k"; binary: with Ki, Mi
 * … where it is a multiple of 1024. Not negative. */
_malloc_ char *quantity_text(int64_t thousandths, bool binary);
