/* SPDX-License-Identifier: Apache-2.0
 * Neuron devices: Trainium and Inferentia */
#include "host/detect.h"

#include "base/str.h"

/* Units of EKS images, which choose a driver version at boot: inf1 needs an older one
 * (awslabs/amazon-eks-ami#2486, #2579). */
bool image_has_neuron(const Root *root, const char *kernel) {
        static const char *const loaders[] = { "neuron-kmod-load.service", "neuron-package-install.service",
                                               NULL };
        return image_has_module(root, kernel, "/neuron.ko") || image_has_unit(root, loaders);
}

void detect_neuron(const Root *root, Host *h) {
        const InstanceType *t = machine_type(h);
        Neuron *n = &h->neuron;
        n->count = n->expected = count_devices(h, pci_is_neuron);
        if (t && t->gpu_model && startswith(t->gpu_model, "aws-") && t->gpus > 0)
                n->expected = t->gpus;
        n->driver = n->expected > 0 && (image_assumed(h) || image_has_neuron(root, h->kernel));
}
