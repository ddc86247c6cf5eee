/* SPDX-License-Identifier: Apache-2.0
 * Image → the instance types that it serves: those of its architecture and drivers, and two plain ones. */
#include "doctor/checks.h"

#include "host/detect.h"
#include "host/tables.h"

#include <elf.h>

#define PRODUCT_NAME "/sys/devices/virtual/dmi/id/product_name"

/* Without and with instance stores: examples of general purpose types, which no table lists. */
static const char *const plain_x86[] = { "m6i.4xlarge", "m6id.8xlarge" };
static const char *const plain_arm[] = { "m6g.4xlarge", "m6gd.8xlarge" };

const char *machine_name(unsigned machine) {
        return machine == EM_X86_64 ? "x86_64" : machine == EM_AARCH64 ? "arm64" : NULL;
}

bool image_serves(const Image *image, const char *type) {
        const InstanceType *t = instance_type_find(type);
        const char *arch = machine_name(image->machine), *wanted = t ? t->arch : "";
        return !arch || !*wanted || streq(arch, wanted);
}

bool type_has_stores(const char *type) {
        size_t letters = strspn(type, "abcdefghijklmnopqrstuvwxyz"), digits = letters;
        digits += strspn(type + letters, "0123456789");
        bool storage = letters > 0 && strchr("idh", type[0]) && is_digit(type[1]);
        return storage || memchr(type + digits, 'd', strcspn(type + digits, "."));
}

static bool brings(const Image *image, bool (*has)(const Root *root, const char *kernel)) {
        bool found = has(image->root, NULL);
        for (char **kernel = image->kernels; kernel && *kernel && !found; kernel++)
                found = has(image->root, *kernel);
        return found;
}

char **image_types(const Image *image, char **ret_why) {
        char **types = NULL;
        _free_ char *own = NULL;
        /* Only types in our tables: a laptop has a product name, too. */
        if (image->running && root_read_line(image->root, PRODUCT_NAME, &own) >= 0 &&
            instance_type_is_known(own)) {
                strv_push(&types, TAKE_PTR(own));
                *ret_why = xstrdup("this machine");
                return types;
        }
        _strv_ char **unknown = NULL;
        bool nvidia = image->driver || brings(image, image_has_nvidia),
             neuron = brings(image, image_has_neuron);
        for (size_t i = 0; i < n_instance_types; i++) {
                const InstanceType *t = &instance_types[i];
                bool wanted = t->gpu_pci ? nvidia
                                         : neuron && t->gpu_model && startswith(t->gpu_model, "aws-");
                bool known = *t->arch || image->machine == EM_NONE;
                if (wanted && known && image_serves(image, t->name))
                        strv_add(image_drives(image, t->name) ? &types : &unknown, t->name);
        }
        for (size_t i = 0; i < ARRAY_SIZE(plain_x86) && image->machine != EM_AARCH64; i++)
                strv_add(&types, plain_x86[i]);
        for (size_t i = 0; i < ARRAY_SIZE(plain_arm) && image->machine != EM_X86_64; i++)
                strv_add(&types, plain_arm[i]);
        _free_ char *others = types_text(unknown);
        const char *arch = machine_name(image->machine) ?: "", *blank = *arch ? " " : "",
                   *drivers = nvidia && neuron ? "NVIDIA or AWS Neuron" : nvidia ? "NVIDIA" : "AWS Neuron";
        *ret_why = nvidia || neuron
                           ? xasprintf("all %s%stypes for its %s driver, and plain ones%s%s%s (--instance-type "
                                       "names others)",
                                       arch, blank, drivers, unknown ? ", but not " : "", others,
                                       unknown ? ", whose GPUs the driver does not support" : "")
                           : xasprintf("plain %s%stypes only: the image has neither NVIDIA nor AWS Neuron "
                                       "driver (--instance-type names others)",
                                       arch, blank);
        return types;
}
