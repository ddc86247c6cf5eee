/* SPDX-License-Identifier: Apache-2.0 */
/* Trainium and Inferentia: the driver, and its node below /dev for each device. A device that the driver
 * cannot start gets no node, and nothing else shows it. */
#include "plan/devices.h"
#include "base/str.h"

#define GROUP "accelerator"
/* The driver makes the nodes while it loads. */
#define NODES_TIMEOUT (10 * USEC_PER_SEC)

/* On inf1 one unit replaces the driver with an older one, the other builds it (awslabs/amazon-eks-ami#2579,
 * #2486). Before that the wrong driver would be loaded. */
static const char *const loaders[] = { "neuron-package-install.service", "neuron-kmod-load.service" };

void plan_neuron(Plan *plan, const Host *host) {
        unsigned n = host->neuron.expected;
        if (n == 0)
                return;
        if (!host->neuron.driver) {
                diag_warn(&plan->warnings, "no-driver",
                          "this image has no AWS Neuron driver (no neuron.ko, no unit that loads it): %u "
                          "Neuron device%s not set up. kubelet does not wait; install aws-neuronx-dkms, or "
                          "let a pod install the driver", n, n == 1 ? " is" : "s are");
                return;
        }
        _free_ char *before = xstrdup(CENSUS_ID);
        for (size_t i = 0; i < ARRAY_SIZE(loaders); i++) {
                Action *loader = plan_add(plan, ACTION_AWAIT_UNIT, PHASE_DEVICES, GROUP, loaders[i],
                                          i == 0 ? "wait while the image installs its driver"
                                                 : "wait while the image loads its driver");
                loader->optional = loader->lenient = true;
                action_after(loader, before);
                RENEW(before, xstrdup(loader->id));
        }
        Action *load = plan_add(plan, ACTION_LOAD_MODULE, PHASE_DEVICES, GROUP, "neuron",
                                "driver for Trainium and Inferentia");
        action_after(load, before);
        Action *nodes = plan_add(plan, ACTION_AWAIT_DEVICES, PHASE_DEVICES, GROUP, "/dev/neuron*",
                                 "wait for the device file of each device");
        nodes->device.count = n;
        nodes->deadline_usec = NODES_TIMEOUT;
        nodes->with = xasprintf("x %u", n);
        devices_seen(nodes, host, pci_is_neuron);
        action_after(nodes, "load-module:neuron");
}
