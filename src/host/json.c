/* SPDX-License-Identifier: Apache-2.0
 * Host → the facts section of a plan, and .status in the nodeadm cache, both without configuration. */
#include "host/host.h"

#include "base/json.h"
#include "base/paths.h"
#include "base/str.h"
#include "disk/disk.h"

typedef struct Pair { const char *key; json_t *value; } Pair;

/* Takes the values, and leaves out pairs without one. */
static json_t *object_of(const Pair *pairs) {
        json_t *o = json_object();
        for (; pairs->key; pairs++)
                json_object_set_new(o, pairs->key, pairs->value);
        return o;
}
#define OBJECT(...) object_of((const Pair[]){ __VA_ARGS__, { NULL } })

/* The value for each item; in value, item points to it. NULL adds nothing. */
#define LIST(item, items, n, value)                                                            \
        ({ json_t *_list = json_array();                                                       \
           for (size_t _i = 0; _i < (n); _i++) {                                               \
                   __auto_type item = &(items)[_i];                                            \
                   json_array_append_new(_list, value);                                        \
           }                                                                                   \
           _list; })

/* Disks may hold any bytes; JSON is UTF-8. */
static json_t *shown(const char *value) {
        Text t = {};
        text_add_shown(&t, value, strlen(value), 4096, 0);
        _free_ char *text = text_take(&t);
        return json_string(text);
}

static json_t *number(uint64_t value) {
        return json_integer((json_int_t)value);
}

static json_t *number_from(int64_t least, int64_t value) {
        return value >= least ? json_integer(value) : NULL;
}

static json_t *true_or_null(bool value) {
        return value ? json_true() : NULL;
}

static json_t *list_or_null(char *const *texts) {
        return texts ? json_list(texts) : NULL;
}

static json_t *content_json(const Content *c) {
        _free_ char *text = content_describe(c);
        return c->kind != CONTENT_UNKNOWN ? shown(text) : NULL;
}

/* NodeConfigStatus of awslabs/amazon-eks-ami, nodeadm/internal/api/types.go. One key is ours: limits of a new
 * type, to ask EC2 once, and whether the name is assumed, to ask again. */
json_t *host_status(const Host *host) {
        const Instance *i = &host->instance;
        unsigned enis, addresses;
        bool own_limits = host->eni_limits_known && !eni_limits_find(i->type, &enis, &addresses);
        json_t *instance = OBJECT({ "id", json_string(i->id) }, { "region", json_string(i->region) },
                                  { "type", json_string(i->type) },
                                  { "availabilityZone", json_string(i->zone) },
                                  { "mac", json_string(i->mac) },
                                  { "privateDnsName", json_string(i->private_dns_name) });
        json_t *own = OBJECT({ "enis", own_limits ? number(host->max_enis) : NULL },
                             { "addressesPerEni", own_limits ? number(host->addresses_per_eni) : NULL },
                             { "nameAssumed", true_or_null(host->name_assumed) });
        json_t *status = OBJECT({ "instance", instance },
                                { "default", json_pack("{s:s}", "sandboxImage", SANDBOX_IMAGE) },
                                { "kubeletVersion", host->kubelet_version
                                                            ? json_sprintf("v%s", host->kubelet_version)
                                                            : NULL });
        if (json_object_size(own) > 0)
                json_object_set(status, "nodestrap", own);
        json_decref(own);
        return status;
}

static json_t *instance_json(const Host *h) {
        const Instance *i = &h->instance;
        bool known = h->eni_limits_known;
        return OBJECT({ "id", json_string(i->id) }, { "type", json_string(i->type) },
                      { "region", json_string(i->region) }, { "zone", json_string(i->zone) },
                      { "domain", json_string(i->domain) }, { "mac", json_string(i->mac) },
                      { "ipv4", json_string(i->ipv4) }, { "ipv6", json_string(i->ipv6) },
                      { "privateDnsName", json_string(i->private_dns_name) },
                      { "enis", known ? number(h->max_enis) : NULL },
                      { "addressesPerEni", known ? number(h->addresses_per_eni) : NULL });
}

static json_t *pci_kind(const PciDevice *d) {
        return OBJECT({ "id", json_sprintf("%04x:%04x", d->vendor, d->device) },
                      { "class", json_sprintf("%06x", d->class) },
                      { "subsystem", d->subsystem_vendor ? json_sprintf("%04x:%04x", d->subsystem_vendor,
                                                                        d->subsystem_device)
                                                         : NULL },
                      { "driver", json_string(d->driver) }, { "numaNode", number_from(0, d->numa_node) },
                      { "switchManagement", true_or_null(d->switch_management) });
}

/* A row for each kind, in the order of first devices, with all addresses in one text. */
static json_t *pci_json(const Host *h) {
        json_t *rows = json_array();
        _cleanup_(json_decrefp) json_t *kinds = json_array();
        for (size_t i = 0; i < h->n_pci; i++) {
                json_t *kind = pci_kind(&h->pci[i]), *row;
                size_t k = 0;
                while (k < json_array_size(kinds) && !json_equal(json_array_get(kinds, k), kind))
                        k++;
                if (k == json_array_size(kinds)) {
                        json_array_append(kinds, kind);
                        json_array_append_new(rows, json_copy(kind));
                }
                json_decref(kind);
                row = json_array_get(rows, k);
                const char *before = json_get_text(row, "addresses");
                _free_ char *all =
                        xasprintf("%s%s%s", before, *before ? " " : "", h->pci[i].address);
                json_object_set_new(row, "count",
                                    json_integer(json_integer_value(json_object_get(row, "count")) + 1));
                json_set_text(row, "addresses", all);
        }
        return rows;
}

static json_t *gpus_json(const Gpus *g) {
        return OBJECT({ "class", json_string(gpu_class_to_string(g->class)) }, { "count", number(g->count) },
                      { "expected", number(g->expected) },
                      { "model", json_string(g->model ? g->model->name : NULL) },
                      { "doubt", json_string(g->doubt) }, { "unread", json_string(g->unread) },
                      { "part", true_or_null(g->part) }, { "migDefault", json_string(g->mig_default) });
}

static json_t *pools_json(const Host *h) {
        json_t *pools = LIST(p, h->pools, h->n_pools,
                             OBJECT({ "bytes", number(p->size) }, { "node", number_from(0, p->node) },
                                    { "count", number(p->count) }));
        return OBJECT({ "defaultBytes", number_from(1, (int64_t)h->page_size) }, { "pools", pools });
}

static json_t *disk_json(const Disk *d, bool looked) {
        static const char *const kinds[] = {
                [DISK_OTHER] = "other", [DISK_INSTANCE_STORE] = "instance-store", [DISK_EBS] = "ebs",
        };
        return OBJECT({ "name", json_string(d->name) }, { "kind", json_string(kinds[d->kind]) },
                      { "model", json_string(d->model) }, { "serial", json_string(d->serial) },
                      { "bytes", number(d->bytes) }, { "inUse", json_boolean(d->in_use) },
                      { "names", list_or_null(d->names) },
                      { "readOnly", looked ? json_boolean(d->read_only) : NULL },
                      { "partitions", looked ? list_or_null(d->partitions) : NULL },
                      { "holders", looked ? list_or_null(d->holders) : NULL },
                      { "content", looked ? content_json(&d->content) : NULL });
}

static json_t *array_json(const Array *a) {
        return OBJECT({ "name", json_string(a->name) }, { "level", json_string(a->level) },
                      { "disks", number(a->disks) }, { "active", json_boolean(a->active) },
                      { "degraded", json_boolean(a->degraded) }, { "bytes", number(a->bytes) },
                      { "members", json_list(a->members) }, { "partitions", list_or_null(a->partitions) },
                      { "holders", list_or_null(a->holders) }, { "content", content_json(&a->content) });
}

/* Is the mount of an instance store, a volume or an array, or at a planned place? */
static bool concerns_storage(const Host *h, const Mount *m) {
        const Storage *s = &h->storage;
        return storage_directory(s, m->target) ||
               ANY(d, h->disks, h->n_disks,
                   (d->kind == DISK_INSTANCE_STORE || d->content.kind != CONTENT_UNKNOWN) && d->number &&
                           streq(d->number, m->number)) ||
               ANY(a, s->arrays, s->n_arrays, a->number && streq(a->number, m->number));
}

static json_t *mount_json(const Mount *m) {
        return OBJECT({ "target", shown(m->target) }, { "source", shown(m->source) },
                      { "root", shown(m->root) }, { "type", shown(m->type) },
                      { "readOnly", json_boolean(m->read_only) });
}

/* Only those that matter to a plan. */
static json_t *directory_json(const Directory *d) {
        bool is_directory = d->kind != DIRECTORY_NO_DIRECTORY;
        if (d->empty && is_directory && !d->read_only && !d->on && !d->foreign)
                return NULL;
        return OBJECT({ "path", shown(d->path) }, { "isDirectory", json_boolean(is_directory) },
                      { "empty", json_boolean(d->empty) }, { "readOnly", json_boolean(d->read_only) },
                      { "on", json_string(d->on) }, { "foreign", json_string(d->foreign) },
                      { "bytes", number_from(1, (int64_t)d->bytes) });
}

static json_t *storage_json(const Host *h) {
        const Storage *s = &h->storage;
        json_t *o = OBJECT({ "looked", json_boolean(s->looked) },
                           { "notLooked", json_string(s->not_looked) });
        if (!s->looked)
                return o;
        json_object_set_new(o, "arrays", LIST(a, s->arrays, s->n_arrays, array_json(a)));
        json_object_set_new(o, "mounts", LIST(m, s->mounts, s->n_mounts,
                                              concerns_storage(h, m) ? mount_json(m) : NULL));
        json_object_set_new(o, "directories",
                            LIST(d, s->directories, s->n_directories, directory_json(d)));
        json_object_set_new(o, "programs", json_list(s->programs));
        return o;
}

static json_t *nic_json(const Nic *n) {
        return OBJECT({ "name", json_string(n->name) }, { "mac", json_string(n->mac) },
                      { "driver", json_string(n->driver) }, { "device", json_string(n->pci_address) },
                      { "mtu", number(n->mtu) });
}

/* A missing key is not known. */
static json_t *expected_json(const InstanceType *t) {
        return OBJECT({ "vcpus", number_from(1, t->vcpus) }, { "memoryGib", number_from(1, t->memory_gib) },
                      { "gpus", number_from(1, t->gpus) },
                      { "gpuModel", *t->gpu_model ? json_string(t->gpu_model) : NULL },
                      { "networkCards", number_from(0, t->network_cards) },
                      { "maxEfa", number_from(0, t->max_efa) }, { "disks", number_from(0, t->disks) },
                      { "diskGb", t->disks >= 0 ? number(t->disk_gb) : NULL },
                      { "nvswitch", json_string(t->nvswitch) },
                      { "arch", *t->arch ? json_string(t->arch) : NULL },
                      { "numaNodes", number_from(0, t->numa_nodes) });
}

static json_t *programs_json(const Host *h) {
        return OBJECT({ "kubelet", json_string(h->kubelet_version) },
                      { "containerd", json_string(h->containerd_version) },
                      { "nvidiaDriver", json_string(h->driver_version) },
                      { "nvidiaContainerRuntime", json_boolean(h->nvidia_runtime) },
                      { "sociSnapshotter", json_boolean(h->soci_snapshotter) },
                      { "imageCredentialProvider", json_string(h->image_credential_provider) });
}

json_t *host_to_json(const Host *h) {
        const Neuron *n = &h->neuron;
        json_t *nodes = LIST(node, h->nodes, h->n_nodes,
                             OBJECT({ "id", number(node->id) }, { "cpus", number(node->cpus) },
                                    { "memoryBytes", number(node->memory_bytes) }));
        json_t *shortfalls = LIST(s, h->shortfalls, h->n_shortfalls,
                                  OBJECT({ "code", json_string(cause_word(s->cause)) },
                                         { "text", json_string(s->text) }));
        json_t *disks = LIST(d, h->disks, h->n_disks, disk_json(d, h->storage.looked));
        json_t *nics = LIST(nic, h->nics, h->n_nics, nic_json(nic));
        return OBJECT(
                { "modelled", json_boolean(h->modelled) }, { "assumed", json_list(h->assumed) },
                { "instance", instance_json(h) }, { "expected", h->type ? expected_json(h->type) : NULL },
                { "cpus", number(h->cpus) }, { "memoryBytes", number(h->memory_bytes) },
                { "productName", json_string(h->product_name) }, { "kernel", json_string(h->kernel) },
                { "arch", json_string(h->arch) }, { "programs", programs_json(h) },
                { "numaNodes", nodes }, { "hugePages", pools_json(h) },
                { "swap", json_string(h->kernel_state.swap) },
                { "ptraceScope", number_from(0, h->ptrace_scope) },
                { "otherBootstrappers", list_or_null(h->bootstrappers) }, { "gpus", gpus_json(&h->gpus) },
                { "neuron", n->expected > 0 ? OBJECT({ "count", number(n->count) },
                                                     { "expected", number(n->expected) })
                                            : NULL },
                { "shortfalls", shortfalls }, { "disks", disks },
                { "storage", h->storage.looked || h->storage.not_looked ? storage_json(h) : NULL },
                { "nics", nics }, { "pci", pci_json(h) },
                { "apiServerAddresses", list_or_null(h->api_server_addresses) });
}
