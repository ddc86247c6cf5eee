/* SPDX-License-Identifier: Apache-2.0
 * Host → the facts section of a plan, and .status in the nodeadm cache, both without configuration. */
#include "host/host.h"

#include "base/json.h"
#include "base/paths.h"
#include "base/str.h"
#include "disk/disk.h"

#include <jansson.h>

/* Disks may hold any bytes; JSON is UTF-8. */
static json_t *string_shown(const char *value) {
        Text t = {};
        text_add_shown(&t, value, strlen(value), 4096, 0);
        _free_ char *text = text_take(&t);
        return json_string(text);
}

static void set_shown(json_t *object, const char *key, const char *value) {
        json_object_set_new(object, key, string_shown(value));
}

static void set_bool(json_t *object, const char *key, bool value) {
        json_object_set_new(object, key, json_boolean(value));
}

static void set_number(json_t *object, const char *key, uint64_t value) {
        json_object_set_new(object, key, json_integer((json_int_t)value));
}

static void set_content(json_t *object, const Content *c) {
        _free_ char *text = content_describe(c);
        if (c->kind != CONTENT_UNKNOWN)
                set_shown(object, "content", text);
}

/* NodeConfigStatus of awslabs/amazon-eks-ami, nodeadm/internal/api/types.go. One key is ours: limits of a new
 * type and an assumed name, so that EC2 is asked once and again. */
json_t *host_status(const Host *host) {
        json_t *instance = json_object(), *status = json_object();
        _cleanup_(json_decrefp) json_t *own = json_object();
        const Instance *i = &host->instance;
        unsigned enis, addresses;

        json_set_text(instance, "id", i->id);
        json_set_text(instance, "region", i->region);
        json_set_text(instance, "type", i->type);
        json_set_text(instance, "availabilityZone", i->zone);
        json_set_text(instance, "mac", i->mac);
        json_set_text(instance, "privateDnsName", i->private_dns_name);
        json_object_set_new(status, "instance", instance);
        json_object_set_new(status, "default",
                            json_pack("{s:s}", "sandboxImage", SANDBOX_IMAGE));
        if (host->kubelet_version)
                json_object_set_new(status, "kubeletVersion", json_sprintf("v%s", host->kubelet_version));
        if (host->eni_limits_known && !eni_limits_find(i->type, &enis, &addresses)) {
                set_number(own, "enis", host->max_enis);
                set_number(own, "addressesPerEni", host->addresses_per_eni);
        }
        if (host->name_assumed)
                json_object_set_new(own, "nameAssumed", json_true());
        if (json_object_size(own) > 0)
                json_object_set(status, "nodestrap", own);
        return status;
}

static json_t *instance_json(const Host *h) {
        json_t *o = json_object();
        json_set_text(o, "id", h->instance.id);
        json_set_text(o, "type", h->instance.type);
        json_set_text(o, "region", h->instance.region);
        json_set_text(o, "zone", h->instance.zone);
        json_set_text(o, "domain", h->instance.domain);
        json_set_text(o, "mac", h->instance.mac);
        json_set_text(o, "ipv4", h->instance.ipv4);
        json_set_text(o, "ipv6", h->instance.ipv6);
        json_set_text(o, "privateDnsName", h->instance.private_dns_name);
        if (h->eni_limits_known) {
                set_number(o, "enis", h->max_enis);
                set_number(o, "addressesPerEni", h->addresses_per_eni);
        }
        return o;
}

static json_t *pci_kind(const PciDevice *d) {
        json_t *o = json_object();
        json_object_set_new(o, "id", json_sprintf("%04x:%04x", d->vendor, d->device));
        json_object_set_new(o, "class", json_sprintf("%06x", d->class));
        if (d->subsystem_vendor)
                json_object_set_new(o, "subsystem",
                                    json_sprintf("%04x:%04x", d->subsystem_vendor, d->subsystem_device));
        json_set_text(o, "driver", d->driver);
        if (d->numa_node >= 0)
                set_number(o, "numaNode", (uint64_t)d->numa_node);
        if (d->switch_management)
                json_object_set_new(o, "switchManagement", json_true());
        return o;
}

/* A row for each kind, in the order of first devices, with all addresses in one text. 32 EFA devices are two
 * kinds, one for each NUMA node. */
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
                set_number(row, "count", (uint64_t)json_integer_value(json_object_get(row, "count")) + 1);
                json_set_text(row, "addresses", all);
        }
        return rows;
}

static json_t *gpus_json(const Gpus *g) {
        json_t *o = json_object();
        json_set_text(o, "class", gpu_class_to_string(g->class));
        set_number(o, "count", g->count);
        set_number(o, "expected", g->expected);
        json_set_text(o, "model", g->model ? g->model->name : NULL);
        json_set_text(o, "doubt", g->doubt);
        json_set_text(o, "unread", g->unread);
        if (g->part)
                json_object_set_new(o, "part", json_true());
        json_set_text(o, "migDefault", g->mig_default);
        return o;
}

static json_t *missing_json(const Host *h) {
        json_t *list = json_array();
        for (size_t i = 0; i < h->n_shortfalls; i++)
                json_array_append_new(list,
                                      json_pack("{s:s, s:s}", "code", cause_word(h->shortfalls[i].cause),
                                                "text", h->shortfalls[i].text));
        return list;
}

static json_t *pools_json(const Host *h) {
        json_t *o = json_object(), *pools = json_array();
        if (h->page_size)
                set_number(o, "defaultBytes", h->page_size);
        for (size_t i = 0; i < h->n_pools; i++) {
                json_t *pool = json_object();
                set_number(pool, "bytes", h->pools[i].size);
                if (h->pools[i].node >= 0)
                        set_number(pool, "node", (uint64_t)h->pools[i].node);
                set_number(pool, "count", h->pools[i].count);
                json_array_append_new(pools, pool);
        }
        json_object_set_new(o, "pools", pools);
        return o;
}

static json_t *disks_json(const Host *h) {
        static const char *const kinds[] = {
                [DISK_OTHER] = "other", [DISK_INSTANCE_STORE] = "instance-store", [DISK_EBS] = "ebs",
        };
        json_t *list = json_array();
        for (size_t i = 0; i < h->n_disks; i++) {
                const Disk *d = &h->disks[i];
                json_t *o = json_object();
                json_set_text(o, "name", d->name);
                json_set_text(o, "kind", kinds[d->kind]);
                json_set_text(o, "model", d->model);
                json_set_text(o, "serial", d->serial);
                set_number(o, "bytes", d->bytes);
                set_bool(o, "inUse", d->in_use);
                json_set_list(o, "names", d->names);
                if (h->storage.looked) {
                        set_bool(o, "readOnly", d->read_only);
                        json_set_list(o, "partitions", d->partitions);
                        json_set_list(o, "holders", d->holders);
                        set_content(o, &d->content);
                }
                json_array_append_new(list, o);
        }
        return list;
}

static json_t *arrays_json(const Storage *s) {
        json_t *list = json_array();
        for (const Array *a = s->arrays; a < s->arrays + s->n_arrays; a++) {
                json_t *o = json_object();
                json_set_text(o, "name", a->name);
                json_set_text(o, "level", a->level);
                set_number(o, "disks", a->disks);
                set_bool(o, "active", a->active);
                set_bool(o, "degraded", a->degraded);
                set_number(o, "bytes", a->bytes);
                json_object_set_new(o, "members", json_list(a->members));
                json_set_list(o, "partitions", a->partitions);
                json_set_list(o, "holders", a->holders);
                set_content(o, &a->content);
                json_array_append_new(list, o);
        }
        return list;
}

/* Is the mount of an instance store, a volume or an array, or at a planned place? */
static bool concerns_storage(const Host *h, const Mount *m) {
        bool concerns = storage_directory(&h->storage, m->target) != NULL;
        for (size_t i = 0; i < h->n_disks; i++)
                concerns |= (h->disks[i].kind == DISK_INSTANCE_STORE ||
                             h->disks[i].content.kind != CONTENT_UNKNOWN) &&
                            h->disks[i].number && streq(h->disks[i].number, m->number);
        for (size_t i = 0; i < h->storage.n_arrays; i++)
                concerns |= h->storage.arrays[i].number && streq(h->storage.arrays[i].number, m->number);
        return concerns;
}

static json_t *mounts_json(const Host *h) {
        json_t *list = json_array();
        for (size_t i = 0; i < h->storage.n_mounts; i++) {
                const Mount *m = &h->storage.mounts[i];
                if (!concerns_storage(h, m))
                        continue;
                json_t *o = json_object();
                set_shown(o, "target", m->target);
                set_shown(o, "source", m->source);
                set_shown(o, "root", m->root);
                set_shown(o, "type", m->type);
                set_bool(o, "readOnly", m->read_only);
                json_array_append_new(list, o);
        }
        return list;
}

/* Only those that matter to a plan. */
static json_t *directories_json(const Storage *s) {
        json_t *list = json_array();
        for (const Directory *d = s->directories; d < s->directories + s->n_directories; d++) {
                if (d->empty && d->kind != DIRECTORY_NO_DIRECTORY && !d->read_only && !d->on && !d->foreign)
                        continue;
                json_t *o = json_object();
                set_shown(o, "path", d->path);
                set_bool(o, "isDirectory", d->kind != DIRECTORY_NO_DIRECTORY);
                set_bool(o, "empty", d->empty);
                set_bool(o, "readOnly", d->read_only);
                json_set_text(o, "on", d->on);
                json_set_text(o, "foreign", d->foreign);
                if (d->bytes)
                        set_number(o, "bytes", d->bytes);
                json_array_append_new(list, o);
        }
        return list;
}

static json_t *storage_json(const Host *h) {
        const Storage *s = &h->storage;
        json_t *o = json_object();
        set_bool(o, "looked", s->looked);
        json_set_text(o, "notLooked", s->not_looked);
        if (s->looked) {
                json_object_set_new(o, "arrays", arrays_json(s));
                json_object_set_new(o, "mounts", mounts_json(h));
                json_object_set_new(o, "directories", directories_json(s));
                json_object_set_new(o, "programs", json_list(s->programs));
        }
        return o;
}

static json_t *nics_json(const Host *h) {
        json_t *list = json_array();
        for (size_t i = 0; i < h->n_nics; i++) {
                const Nic *n = &h->nics[i];
                json_t *o = json_object();
                json_set_text(o, "name", n->name);
                json_set_text(o, "mac", n->mac);
                json_set_text(o, "driver", n->driver);
                json_set_text(o, "device", n->pci_address);
                set_number(o, "mtu", n->mtu);
                json_array_append_new(list, o);
        }
        return list;
}

static json_t *nodes_json(const Host *h) {
        json_t *list = json_array();
        for (size_t i = 0; i < h->n_nodes; i++) {
                json_t *o = json_object();
                set_number(o, "id", h->nodes[i].id);
                set_number(o, "cpus", h->nodes[i].cpus);
                set_number(o, "memoryBytes", h->nodes[i].memory_bytes);
                json_array_append_new(list, o);
        }
        return list;
}

/* A missing key is not known. */
static json_t *expected_json(const InstanceType *t) {
        json_t *o = json_object();
        if (t->vcpus)
                set_number(o, "vcpus", t->vcpus);
        if (t->memory_gib)
                set_number(o, "memoryGib", t->memory_gib);
        if (t->gpus)
                set_number(o, "gpus", t->gpus);
        json_set_text(o, "gpuModel", t->gpu_model);
        if (t->network_cards >= 0)
                set_number(o, "networkCards", (uint64_t)t->network_cards);
        if (t->max_efa >= 0)
                set_number(o, "maxEfa", (uint64_t)t->max_efa);
        if (t->disks >= 0) {
                set_number(o, "disks", (uint64_t)t->disks);
                set_number(o, "diskGb", t->disk_gb);
        }
        json_set_text(o, "nvswitch", t->nvswitch);
        json_set_text(o, "arch", *t->arch ? t->arch : NULL);
        if (t->numa_nodes >= 0)
                set_number(o, "numaNodes", (uint64_t)t->numa_nodes);
        return o;
}

static json_t *programs_json(const Host *h) {
        json_t *o = json_object();
        json_set_text(o, "kubelet", h->kubelet_version);
        json_set_text(o, "containerd", h->containerd_version);
        json_set_text(o, "nvidiaDriver", h->driver_version);
        set_bool(o, "nvidiaContainerRuntime", h->nvidia_runtime);
        set_bool(o, "sociSnapshotter", h->soci_snapshotter);
        json_set_text(o, "imageCredentialProvider", h->image_credential_provider);
        return o;
}

json_t *host_to_json(const Host *host) {
        json_t *o = json_object();
        set_bool(o, "modelled", host->modelled);
        json_object_set_new(o, "assumed", json_list(host->assumed));
        json_object_set_new(o, "instance", instance_json(host));
        if (host->type)
                json_object_set_new(o, "expected", expected_json(host->type));
        set_number(o, "cpus", host->cpus);
        set_number(o, "memoryBytes", host->memory_bytes);
        json_set_text(o, "productName", host->product_name);
        json_set_text(o, "kernel", host->kernel);
        json_set_text(o, "arch", host->arch);
        json_object_set_new(o, "programs", programs_json(host));
        json_object_set_new(o, "numaNodes", nodes_json(host));
        json_object_set_new(o, "hugePages", pools_json(host));
        json_set_text(o, "swap", host->kernel_state.swap);
        if (host->ptrace_scope >= 0)
                set_number(o, "ptraceScope", (uint64_t)host->ptrace_scope);
        json_set_list(o, "otherBootstrappers", host->bootstrappers);
        json_object_set_new(o, "gpus", gpus_json(&host->gpus));
        if (host->neuron.expected > 0)
                json_object_set_new(o, "neuron",
                                    json_pack("{si si}", "count", (int)host->neuron.count, "expected",
                                              (int)host->neuron.expected));
        json_object_set_new(o, "shortfalls", missing_json(host));
        json_object_set_new(o, "disks", disks_json(host));
        if (host->storage.looked || host->storage.not_looked)
                json_object_set_new(o, "storage", storage_json(host));
        json_object_set_new(o, "nics", nics_json(host));
        json_object_set_new(o, "pci", pci_json(host));
        if (host->api_server_addresses)
                json_object_set_new(o, "apiServerAddresses", json_list(host->api_server_addresses));
        return o;
}
