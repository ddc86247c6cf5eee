/* SPDX-License-Identifier: Apache-2.0
 * Compares a CDI file with the machine: nvidia-ctk omits what it cannot find and still exits 0
 * (NVIDIA/nvidia-container-toolkit:internal/discover/mounts.go). */
#include "nvidia/cdi.h"

#include "base/str.h"

#define CAPABILITIES      "/dev/nvidia-caps/"
#define CAPABILITIES_EACH 2     /* of a MIG device: GPU instance and compute instance */

/* By the path in the container; the host path differs if the driver has another root. */
static size_t count_nodes(const json_t *edited, const char *path, bool below) {
        size_t n = 0, i;
        json_t *node;
        json_array_foreach(json_object_get(json_object_get(edited, "containerEdits"), "deviceNodes"), i,
                           node) {
                const char *is = json_string_value(json_object_get(node, "path"));
                n += is && (below ? startswith(is, path) : streq(is, path));
        }
        return n;
}

const char *cdi_fault(const json_t *spec) {
        if (!json_is_object(spec))
                return "it is not a map";
        if (!json_string_value(json_object_get(spec, "cdiVersion")))
                return "it has no cdiVersion";
        if (!streq(json_string_value(json_object_get(spec, "kind")) ?: "", "nvidia.com/gpu"))
                return "its kind is not nvidia.com/gpu";
        return json_is_array(json_object_get(spec, "devices")) ? NULL : "it has no list of devices";
}

/* All names of the toolkit: index, type-index, uuid (pkg/nvcdi/namer.go). */
static bool is_name_of(const char *name, const CdiWanted *w) {
        const char *index = startswith(name, w->mig ? "mig" : "gpu") ? name + strlen("gpu") : name;
        return streq(index, w->index) || (*w->uuid && streq(name, w->uuid));
}

static void add_missing(const json_t *spec, const CdiWanted *w, char ***to) {
        size_t i;
        json_t *device;
        json_array_foreach(json_object_get(spec, "devices"), i, device) {
                const char *name = json_string_value(json_object_get(device, "name"));
                if (!name || !is_name_of(name, w))
                        continue;
                /* The toolkit may move common nodes out of the devices. */
                if (w->node && count_nodes(device, w->node, false) == 0 &&
                    count_nodes(spec, w->node, false) == 0)
                        strv_push(to, xasprintf("%s in device %s", w->node, w->index));
                if (w->mig &&
                    count_nodes(device, CAPABILITIES, true) + count_nodes(spec, CAPABILITIES, true) <
                            CAPABILITIES_EACH)
                        strv_push(to, xasprintf(CAPABILITIES "… in device %s", w->index));
                return;         /* other names are aliases */
        }
        strv_push(to, xasprintf("device %s", w->index));
}

char **cdi_lacks(const json_t *spec, const CdiWanted *wanted, size_t n, const char *const *nodes) {
        char **missing = NULL;
        for (; nodes && *nodes; nodes++)
                if (count_nodes(spec, *nodes, false) == 0)
                        strv_add(&missing, *nodes);
        for (size_t i = 0; i < n; i++)
                add_missing(spec, &wanted[i], &missing);
        return missing;
}
