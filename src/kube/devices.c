/* SPDX-License-Identifier: Apache-2.0
 * Devices of this machine against those that pods can get → a sentence. A device plugin makes kubelet
 * report resources, a DRA driver publishes ResourceSlices. kubelet keeps the capacity of a plugin that has
 * ended for five minutes, and offers none of it (kubernetes: pkg/kubelet/cm/devicemanager/manager.go,
 * GetCapacity()). */
#include "kube/internal.h"

#include "base/json.h"

/* The attribute tells a device from what else a driver offers: VFIO, network interfaces without RDMA
 * (kubernetes-sigs/dra-driver-nvidia-gpu: cmd/gpu-kubelet-plugin; kubernetes-sigs/dranet: pkg/apis). */
static const struct Driver { const char *resource, *name, *attribute; } drivers[] = {
        { "nvidia.com/",           "gpu.nvidia.com", "type" },
        { "vpc.amazonaws.com/efa", "dra.net",        "dra.net/rdma" },
};

/* A plugin that shares GPUs, or offers MIG devices, has other names for them (NVIDIA/k8s-device-plugin:
 * README.md). */
static int64_t sum_of(const json_t *status, const char *list, const char *expected) {
        bool gpus = startswith(expected, "nvidia.com/");
        const char *name;
        json_t *value;
        int64_t n = 0, thousandths;
        json_object_foreach(json_object_get(status, list), name, value)
                if ((streq(name, expected) || (gpus && (startswith(name, "nvidia.com/gpu") ||
                                                        startswith(name, "nvidia.com/mig-")))) &&
                    quantity_parse(json_string_value(value) ?: "", &thousandths) >= 0)
                        n += MAX(thousandths, 0) / 1000;
        return n;
}

/* v1, or v1beta1 with one more level. A device with a taint gets no pods. */
static bool is_device(const json_t *device, const struct Driver *d, bool mig) {
        const json_t *inner = json_object_get(device, "basic") ?: device;
        const json_t *value = json_object_get(json_object_get(inner, "attributes"), d->attribute);
        const char *kind = json_get_text(value, "string");
        return json_array_size(json_object_get(inner, "taints")) == 0 &&
               (json_is_true(json_object_get(value, "bool")) || streq(kind, "gpu") ||
                (mig && streq(kind, "mig")));
}

static int64_t count_of(const json_t *slices, const struct Driver *d, bool mig) {
        const char *name;
        json_t *spec;
        const json_t *device;
        int64_t n = 0;
        size_t i;
        json_object_foreach((json_t *)slices, name, spec)
                if (streq(json_get_text(spec, "driver"), d->name))
                        json_array_foreach(json_object_get(spec, "devices"), i, device)
                                n += is_device(device, d, mig);
        return n;
}

static char *judge_one(const char *name, int64_t expected, int64_t plugin, int64_t dra, int64_t capacity) {
        bool pages = startswith(name, "hugepages-");
        if (plugin > 0 && dra > 0)
                return xasprintf("a device plugin offers %lld of %s and a DRA driver %lld, so two pods may "
                                 "get the same device. Remove the plugin or the DRA driver from this node",
                                 (long long)plugin, name, (long long)dra);
        if (plugin + dra >= expected)
                return NULL;
        _free_ char *have = quantity_text((plugin + dra) * 1000, pages),
                    *want = quantity_text(expected * 1000, pages);
        const char *why = pages ? "kubelet counts them when it starts; run systemctl restart kubelet"
                          : dra > 0 ? "the DRA driver offers no more untainted devices"
                          : capacity > plugin ? "the device plugin has exited, or finds the others "
                                                "unhealthy; see the log of its pod"
                          : plugin > 0 ? "the device plugin has registered no more"
                                       : "no device plugin or DRA driver has registered them";
        return xasprintf("pods can get %s of %s %s: %s", have, want, name, why);
}

char *devices_judge(const json_t *expected, const json_t *status, const json_t *slices, json_t *seen) {
        const char *name;
        json_t *n;
        char *first = NULL;
        json_object_foreach((json_t *)expected, name, n) {
                const struct Driver *d = FIND(one, drivers, ARRAY_SIZE(drivers),
                                              startswith(name, one->resource));
                int64_t plugin = sum_of(status, "allocatable", name),
                        dra = d ? count_of(slices, d, startswith(name, "nvidia.com/mig-")) : 0;
                json_object_set_new(seen, name, json_integer(plugin + dra));
                if (!first)
                        first = judge_one(name, json_integer_value(n), plugin, dra,
                                          sum_of(status, "capacity", name));
        }
        return first;
}
