/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The executor of import-image. */
#include "apply/work.h"

_must_check_ _nonnull_ int image_check(Task *t);
_must_check_ _nonnull_ int image_start(Task *t);
