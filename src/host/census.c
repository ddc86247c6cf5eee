/* SPDX-License-Identifier: Apache-2.0
 * Missing parts by the instance type or the configuration → Host.shortfalls, a sentence for each. */
#include "host/detect.h"
#include "host/tables.h"

#include "base/str.h"

/* A node cannot bring back a device that its bus does not show. */
#define ADVICE \
        "stop and start the instance, which moves it to another host and empties its instance stores, or " \
        "replace it"

typedef enum PartKind { PART_GPU, PART_NVSWITCH, PART_CONNECTX, PART_NEURON, PART_EFA } PartKind;
static const struct CountedPart {
        const char *layout;             /* in conf/pci-layout.csv */
        bool (*is)(const PciDevice *);
        Cause cause;
        const char *one, *many, *advice;
} counted_parts[] = {
        [PART_GPU]      = { "gpu",    pci_is_gpu,      CAUSE_GPU_MISSING, "GPU", "GPUs", ADVICE },
        [PART_NVSWITCH] = { "switch", pci_is_nvswitch, CAUSE_NVSWITCH, "NVSwitch", "NVSwitches", ADVICE },
        [PART_CONNECTX] = { "switch", pci_is_connectx, CAUSE_NVSWITCH,
                            "ConnectX function that leads to the NVSwitches",
                            "ConnectX functions that lead to the NVSwitches", ADVICE },
        [PART_NEURON]   = { "neuron", pci_is_neuron,   CAUSE_NEURON, "Neuron device", "Neuron devices",
                            ADVICE },
        [PART_EFA]      = { "efa",    pci_is_efa,      CAUSE_EFA, "EFA device", "EFA devices",
                            "check the number of EFA interfaces in the launch template; if it is right, "
                            ADVICE },
};

static void add(Host *h, Cause cause, char *text) {
        *APPEND(h->shortfalls, h->n_shortfalls) = (Shortfall){ cause, text };
}

static const PciLayout *layout_of(const InstanceType *t, const char *part) {
        return FIND(l, pci_layout, t ? n_pci_layout : 0, streq(l->type, t->name) && streq(l->part, part));
}

/* "10:1c.0|10:1d.0" → those not there. NULL: there are others, so the list is of another machine. */
static char **missing_from(const char *list, char *const *there) {
        char **missing = NULL;
        size_t known = 0;
        while (*list) {
                _free_ char *one = str_cut(&list, "|"), *address = xasprintf("0000:%s", one);
                if (strv_contains(there, address))
                        known++;
                else
                        strv_add(&missing, address);
        }
        return known == strv_length(there) ? missing : strv_free(missing);
}

static void count_part(Host *h, PartKind kind, unsigned expected, const char *by) {
        const struct CountedPart *part = &counted_parts[kind];
        const InstanceType *t = machine_type(h);
        _strv_ char **there = NULL, **missing = NULL;
        size_t have = 0;
        for (const PciDevice *d = h->pci; d < h->pci + h->n_pci; d++)
                if (part->is(d))
                        strv_push_at(&there, have++, xstrdup(d->address));
        if (have >= expected)
                return;
        size_t lack = expected - have;
        const PciLayout *layout = layout_of(t, part->layout);
        if (layout)
                missing = missing_from(layout->addresses, there);
        /* the configuration may expect fewer than the maximum */
        bool named = strv_length(missing) == lack;
        _free_ char *list = strv_join(named ? missing : there, ", ");
        add(h, part->cause,
            xasprintf("%zu of %u %s %s missing (%s): %s%s; %s", lack, expected,
                      expected == 1 ? part->one : part->many, lack == 1 ? "is" : "are", by,
                      named  ? ""
                      : have ? "present: "
                             : "none is present",
                      list, part->advice));
}

/* Of an unknown type: eight are a whole board. */
static void count_switches(Host *h, const InstanceType *t, const char *by) {
        const GpuModel *m = h->gpus.model;
        if (!m || m->board != h->gpus.class || (!t && h->gpus.count < BOARD))
                return;
        if (m->board == GPU_CLASS_NVSWITCH)
                count_part(h, PART_NVSWITCH, m->switches, by);
        if (m->board == GPU_CLASS_NVLINK5)
                count_part(h, PART_CONNECTX, m->switches, by);
}

/* With a strategy, the storage planner reports missing disks. */
static void count_stores(const Config *config, Host *h) {
        unsigned expected = host_expected_stores(config, h), have = 0;
        Text t = {};
        for (size_t i = 0; i < h->n_disks; i++)
                if (h->disks[i].kind == DISK_INSTANCE_STORE)
                        text_add(&t, "%s%s (%s)", have++ ? ", " : "", h->disks[i].name,
                                 h->disks[i].serial ?: "no serial number");
        _free_ char *list = text_take(&t);
        if (config->instance.storage.strategy != STORAGE_NONE || have >= expected)
                return;
        add(h, CAUSE_DISKS,
            xasprintf("%u of %u instance store%s %s missing (%s): %s%s; " ADVICE, expected - have, expected,
                      expected == 1 ? "" : "s", expected - have == 1 ? "is" : "are",
                      config->instance.storage.expected_disks ? "spec.instance.localStorage.expectedDisks"
                      : h->type && h->type->disks == (int)expected ? h->type->name
                                                                   : host_expected_by(config, h),
                      have ? "present: " : "none is present", list));
}

/* Nodes without CPUs are GPU memory; a kernel without nodes tells nothing. */
static void count_numa_nodes(Host *h, const InstanceType *t) {
        unsigned have = 0;
        Text ids = {};
        for (size_t i = 0; i < h->n_nodes; i++)
                if (h->nodes[i].cpus > 0)
                        text_add(&ids, "%s%u", have++ ? ", " : "", h->nodes[i].id);
        _free_ char *list = text_take(&ids);
        if (!t || have == 0 || t->numa_nodes < 0 || have >= (unsigned)t->numa_nodes)
                return;
        add(h, CAUSE_NUMA,
            xasprintf("%u of %d NUMA nodes with CPUs %s missing (%s): present: node %s, with %u CPUs; "
                      "if the kernel runs with numa=off, remove that; otherwise " ADVICE,
                      (unsigned)t->numa_nodes - have, t->numa_nodes,
                      t->numa_nodes - (int)have == 1 ? "is" : "are", t->name, list, h->cpus));
}

void take_census(const Config *config, Host *h) {
        const InstanceType *t = machine_type(h);
        const char *by = t ? t->name : h->gpus.model ? h->gpus.model->name : "";
        const InstanceOptions *o = &config->instance;

        if (h->gpus.doubt)
                add(h, CAUSE_GPU_CLASS,
                    xasprintf("%s; %s", h->gpus.doubt,
                              endswith(h->gpus.doubt, ONLY_ROOT) ? "run nodestrap as root to find out"
                                                                 : ADVICE));
        if (t && *t->gpu_devices)
                count_part(h, PART_GPU, h->gpus.expected, by);
        count_switches(h, t, by);
        count_part(h, PART_NEURON, h->neuron.expected, by);
        if (o->efa != EFA_OFF)
                count_part(h, PART_EFA, o->expected_efa, "spec.instance.network.efa.expectedDevices");
        count_stores(config, h);
        count_numa_nodes(h, t);
}

/* Maximum distance of buses behind one switch (conf/pci-layout.csv). */
#define SWITCH_BUSES 5

/* Is each of them where its type has it? */
static bool are_placed(const Host *h, PartKind kind) {
        const PciLayout *layout = layout_of(machine_type(h), counted_parts[kind].layout);
        return layout && !ANY(d, h->pci, h->n_pci,
                              counted_parts[kind].is(d) && (!startswith(d->address, "0000:") ||
                                                            !strstr(layout->addresses, d->address + 5)));
}

static bool is_near(const PciDevice *gpu, const PciDevice *efa, bool placed) {
        long apart = strtol(gpu->address + 5, NULL, 16) - strtol(efa->address + 5, NULL, 16);
        if (placed)
                return labs(apart) <= SWITCH_BUSES;
        return gpu->numa_node < 0 || efa->numa_node < 0 || gpu->numa_node == efa->numa_node;
}

char **host_far_gpus(const Host *h, bool *ret_placed) {
        bool placed = are_placed(h, PART_GPU) && are_placed(h, PART_EFA);
        char **far = NULL;
        for (const PciDevice *gpu = h->pci; gpu < h->pci + h->n_pci; gpu++)
                if (pci_is_gpu(gpu) && !h->modelled && host_efa(h) > 0 &&
                    !ANY(d, h->pci, h->n_pci, pci_is_efa(d) && is_near(gpu, d, placed)))
                        strv_add(&far, gpu->address);
        *ret_placed = placed;
        return far;
}
