/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What conf/tables.awk makes of conf/. The long table holds no pointers: 1384 rows need no relocation at start. */
#include "host/host.h"

typedef struct EniLimit { char type[20]; uint8_t enis, addresses; } EniLimit;
extern const EniLimit eni_limits[];             /* sorted by type */
extern const size_t n_eni_limits;

extern const InstanceType instance_types[];     /* sorted by name */
extern const size_t n_instance_types;

extern const MigProfile mig_profiles[];         /* by GPU, of each the largest first */
extern const size_t n_mig_profiles;
