/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's stack in the order that the machine's class wants (facts: nvidia.md, sections 0 and 8). */
#include "plan/plan.h"

int plan_nvidia(_unused_ Plan *plan, _unused_ const Config *config, _unused_ const Host *host, _unused_ Diag *diag) {
        return 0;
}
