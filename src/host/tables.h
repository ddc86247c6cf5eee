/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Tables that conf/tables.awk makes. The long one has no pointers, which each start would relocate. */
#include "host/host.h"

/* "gpus 2026-11-28\n…": each table, and the day on which it was last compared with its source. */
extern const char table_ages[];

typedef struct EniShape { char size[11]; uint8_t enis, addresses, cards; } EniShape;
typedef struct EniLimit { uint8_t family, shape; } EniLimit;
extern const char eni_families[][13];
extern const EniShape eni_shapes[];
extern const EniLimit eni_limits[];             /* sorted by type */
extern const size_t n_eni_limits;
/* The caller frees the list. */
_must_check_ char **eni_limits_types(void);

extern const InstanceType instance_types[];     /* sorted by name */
extern const size_t n_instance_types;

extern const MigProfile mig_profiles[];         /* by GPU, largest first in each */
extern const size_t n_mig_profiles;

extern const GpuModel gpu_models[];             /* sorted by device */
extern const size_t n_gpu_models;

extern const Requirement requirements[];
extern const size_t n_requirements;

/* Device places on the PCI bus in domain 0: "10:1c.0|10:1d.0". Sorted by type and part. */
typedef struct PciLayout { char type[20], part[8]; const char *addresses; } PciLayout;
extern const PciLayout pci_layout[];
extern const size_t n_pci_layout;

extern const NetworkCards network_cards[];      /* sorted by type and first card */
extern const size_t n_network_cards;

/* A device of a model, sorted by name. */
typedef struct PciId { const char *name; unsigned vendor, device, class; const char *driver; } PciId;
extern const PciId pci_devices[];
extern const size_t n_pci_devices;
