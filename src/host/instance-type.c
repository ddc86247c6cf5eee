/* SPDX-License-Identifier: Apache-2.0
 * Instance types and GPUs → rows of the compiled tables in conf/. */
#include "host/tables.h"

#include "base/json.h"
#include "base/str.h"

#include <errno.h>

/* of --instance-type-file */
typedef struct Learned { InstanceType type; unsigned enis, addresses; } Learned;
static Learned *learned;
static size_t n_learned;

static int compare_type(const void *name, const void *row) {
        return strcmp(name, ((const InstanceType *)row)->name);
}

const InstanceType *instance_type_find(const char *name) {
        const InstanceType *t =
                name ? bsearch(name, instance_types, n_instance_types, sizeof *instance_types, compare_type)
                     : NULL;
        return t || !name ? t : PICK(l, learned, n_learned, streq(l->type.name, name), &l->type, NULL);
}

static const EniShape *find_limit(const char *type) {
        size_t n = strcspn(type ?: "", ".");
        bool same = false;
        for (size_t i = 0; type && type[n] && i < n_eni_limits; i++) {
                const char *family = eni_families[eni_limits[i].family];
                const EniShape *shape = &eni_shapes[eni_limits[i].shape];
                if (i == 0 || eni_limits[i].family != eni_limits[i - 1].family)
                        same = strncmp(family, type, n) == 0 && !family[n];
                if (same && streq(shape->size, type + n + 1))
                        return shape;
        }
        return NULL;
}

char **eni_limits_types(void) {
        char **list = NULL;
        for (size_t i = 0; i < n_eni_limits; i++)
                strv_push_at(&list, i, xasprintf("%s.%s", eni_families[eni_limits[i].family],
                                                 eni_shapes[eni_limits[i].shape].size));
        return list;
}

bool eni_limits_find(const char *type, unsigned *ret_enis, unsigned *ret_addresses) {
        const EniShape *row = find_limit(type);
        const Learned *l = row ? NULL : FIND(one, learned, n_learned, streq(one->type.name, type));
        if (!row && !l)
                return false;
        *ret_enis = row ? row->enis : l->enis;
        *ret_addresses = row ? row->addresses : l->addresses;
        return true;
}

unsigned network_cards_find(const char *type) {
        const InstanceType *t = instance_type_find(type);
        const EniShape *row = find_limit(type);
        if (t && t->network_cards > 0)
                return (unsigned)t->network_cards;
        return row && !t ? row->cards : 0;
}

const NetworkCards *network_cards_of(const char *type, size_t *ret_n) {
        const NetworkCards *first = FIND(c, network_cards, n_network_cards, streq(c->type, type));
        size_t n = 0;
        while (first && first + n < network_cards + n_network_cards && streq(first[n].type, type))
                n++;
        *ret_n = n;
        return first;
}

bool instance_type_is_known(const char *name) {
        return instance_type_find(name) || find_limit(name);
}

/* The nearest of the same family first: p5.99xlarge does not mean c5.9xlarge. */
static int refuse_type(const char *type, const char *where, Diag *diag) {
        _strv_ char **names = eni_limits_types();
        Nearest any = { .text = type }, family = { .text = type };
        size_t n = strcspn(type, ".");
        for (size_t i = 0; i < n_instance_types; i++)
                strv_push_at(&names, n_eni_limits + i, xstrdup(instance_types[i].name));
        STRV_FOREACH(name, names) {
                nearest_try(&any, *name);
                if (strncmp(*name, type, n) == 0 && (*name)[n] == '.')
                        nearest_try(&family, *name);
        }
        int r = diag_error_at(diag, -EINVAL, CAUSE_USAGE, NULL, where,
                              "this version does not know the instance type \"%s\"", type);
        diag_suggest_name(diag, "", family.best ?: any.best);
        return r;
}

int instance_type_check(const char *name, const char *where, Diag *diag) {
        return instance_type_is_known(name) ? 0 : refuse_type(name, where, diag);
}

static const GpuModel *model_by_name(const char *name, int mib) {
        _free_ char *plain = str_lower(name), *sized = xasprintf("%s-%dgb", plain, mib / 1024);
        return FIND(m, gpu_models, n_gpu_models, streq(m->name, sized) || streq(m->name, plain));
}

/* An item of DescribeInstanceTypes → a row as in conf/instance-types.csv
 * (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html). */
static const char *learn(json_t *item, Learned *l, json_error_t *e) {
        enum { CPUS, MIB, CARDS, ENIS, ADDRESSES, EFA, DISKS, GB, GPUS, GPU_MIB, _N };
        static const char switches[][13] = { [GPU_CLASS_TRAY] = "nvl5-offhost",
                                             [GPU_CLASS_NVSWITCH] = "pci",
                                             [GPU_CLASS_NVLINK5] = "nvl5-host",
                                             [GPU_CLASS_SINGLE] = "none" };
        const char *name = "", *gpu = "", *maker = "", *arch = "";
        int v[_N] = { [CARDS] = 1 };
        if (json_unpack_ex(item, e, 0,
                           "{s:s s:{s:i} s:{s:i} s:{s:[s]} s:{s?i s?[{s:i}] s:i s?{s?i}} s?{s:[{s:i s:i}]}"
                           "s?{s:[{s:s s:s s:i s?{s?i}}]}}",
                           "InstanceType", &name, "VCpuInfo", "DefaultVCpus", &v[CPUS], "MemoryInfo",
                           "SizeInMiB", &v[MIB], "ProcessorInfo", "SupportedArchitectures", &arch,
                           "NetworkInfo", "MaximumNetworkCards", &v[CARDS], "NetworkCards",
                           "MaximumNetworkInterfaces", &v[ENIS], "Ipv4AddressesPerInterface", &v[ADDRESSES],
                           "EfaInfo", "MaximumEfaInterfaces", &v[EFA], "InstanceStorageInfo", "Disks",
                           "Count", &v[DISKS], "SizeInGB", &v[GB], "GpuInfo", "Gpus", "Name", &gpu,
                           "Manufacturer", &maker, "Count", &v[GPUS], "MemoryInfo", "SizeInMiB",
                           &v[GPU_MIB]) < 0)
                return e->text;
        bool nvidia = streq(maker, "NVIDIA");
        const GpuModel *m = nvidia ? model_by_name(gpu, v[GPU_MIB]) : NULL;
        v[MIB] /= 1024;
        v[GPU_MIB] = 0;
        if (strlen(name) >= sizeof l->type.name || ANY(n, v, _N, *n < 0 || *n > INT16_MAX))
                return "a number or a name in it is not valid";
        if (nvidia && !m)
                return "nodestrap does not know this GPU";
        InstanceType *t = &l->type;
        *t = (InstanceType){ .vcpus = (uint16_t)v[CPUS], .memory_gib = (uint16_t)v[MIB],
                             .gpus = (uint16_t)(m ? v[GPUS] : 0), .network_cards = (int16_t)v[CARDS],
                             .max_efa = (int16_t)v[EFA], .disks = (int16_t)v[DISKS],
                             .disk_gb = (uint16_t)v[GB], .numa_nodes = -1, .card_step = 1,
                             .gpu_devices = { m ? (uint16_t)m->device : 0 } };
        bool board = m && (v[GPUS] == 8 || m->board == GPU_CLASS_TRAY);
        snprintf(t->name, sizeof t->name, "%s", name);
        snprintf(t->arch, sizeof t->arch, "%s", arch);
        snprintf(t->gpu_model, sizeof t->gpu_model, "%s%s", m ? "nvidia-" : "", m ? m->name : "");
        snprintf(t->nvswitch, sizeof t->nvswitch, "%s", board && m->board ? switches[m->board] : "none");
        l->enis = (unsigned)v[ENIS];
        l->addresses = (unsigned)v[ADDRESSES];
        return NULL;
}

int instance_types_learn(const char *text, size_t size, const char *path, Diag *diag) {
        _cleanup_(json_decrefp) json_t *answer = json_loadb(text, size, 0, NULL);
        json_t *item, *list = json_object_get(answer, "InstanceTypes");
        json_error_t e;
        size_t i;
        learned = xrealloc(learned, json_array_size(list), sizeof *learned);
        n_learned = 0;
        json_array_foreach(list, i, item) {
                const char *why = learn(item, &learned[i], &e);
                if (why)
                        return diag_error_in(diag, -EINVAL, CAUSE_USAGE, path, "InstanceTypes[%zu]: %s", i,
                                             why);
                n_learned++;
        }
        return n_learned > 0 ? 0
                             : diag_error_in(diag, -EINVAL, CAUSE_USAGE, path,
                                             "is not the output of aws ec2 describe-instance-types "
                                             "--instance-types TYPE --output json");
}

const MigProfile *mig_profiles_of(const char *gpu, size_t *ret_n) {
        const MigProfile *first = NULL;
        *ret_n = 0;
        for (size_t i = 0; i < n_mig_profiles; i++)
                if (streq(mig_profiles[i].gpu, gpu)) {
                        first = first ?: &mig_profiles[i];
                        (*ret_n)++;
                }
        return first;
}
