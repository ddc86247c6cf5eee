/* SPDX-License-Identifier: Apache-2.0
 * kubelet ends at its start if there is swap and failSwapOn is true, or if settings differ from those of
 * protectKernelDefaults (kubernetes/kubernetes pkg/kubelet/cm/container_manager_linux.go:
 * NewContainerManager(), setupKernelTunables()). */
#include "host/host.h"

#include "base/str.h"
#include "base/sysctl.h"
#include "config/kubelet.h"

#define SWAPS_MAX (64 << 10)

/* proc_swaps(5) has a header line. kubelet takes any second line for swap
 * (pkg/kubelet/util/swap/swap_util.go: isSwapOnAccordingToProcSwaps()). */
char *kernel_swap(const Root *root) {
        _free_ char *text = NULL;
        if (root_read(root, "/proc/swaps", SWAPS_MAX, &text, NULL) < 0)
                return NULL;
        const char *line = text + strcspn(text, "\n");
        return *line && line[1] ? xstrndup(line + 1, strcspn(line + 1, " \t\n")) : NULL;
}

void kernel_read(const Root *root, KernelState *ret) {
        *ret = (KernelState){ .swap = kernel_swap(root) };
        for (size_t i = 0; i < n_kubelet_tunables; i++) {
                _free_ char *value = NULL;
                (void)!root_read_line(root, kubelet_tunables[i].path, &value);
                strv_add(&ret->tunables, value ?: "");
        }
}

void kernel_done(KernelState *k) {
        free(k->swap);
        strv_free(k->tunables);
}

char *kernel_swap_fault(const KernelState *k) {
        return k->swap ? xasprintf("kubelet does not start with swap (%s, in /proc/swaps): "
                                   "failSwapOn is true; swapoff -a and remove it from /etc/fstab, or set "
                                   "spec.kubelet.config.failSwapOn: false",
                                   k->swap)
                       : NULL;
}

char *kernel_settings_fault(const KernelState *k, const bool *given) {
        _cleanup_(text_done) Text t = {};
        for (size_t i = 0; k->tunables && i < n_kubelet_tunables; i++) {
                const char *value = k->tunables[i];
                if (!*value || (given && given[i]) || streq(value, kubelet_tunables[i].value))
                        continue;
                _free_ char *name = sysctl_name(kubelet_tunables[i].path);
                text_add(&t, "%s%s is %.20s and not %s", t.size > 0 ? ", " : "", name, value,
                         kubelet_tunables[i].value);
        }
        return t.size > 0 ? xasprintf("kubelet does not start: protectKernelDefaults requires other "
                                      "kernel settings (%s); set them in a file in /etc/sysctl.d, or in "
                                      "spec.instance.sysctl",
                                      t.data)
                          : NULL;
}
