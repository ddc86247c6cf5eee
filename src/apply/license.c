/* SPDX-License-Identifier: Apache-2.0
 * await-license: g6f and gr6f have a part of a GPU, with the NVIDIA GRID driver and a licence from
 * nvidia-gridd. Without one CUDA fails after a day (bottlerocket-os/bottlerocket-kernel-kit#285,
 * awslabs/amazon-eks-ami#2450). */
#include "apply/device.h"
#include "apply/gpus.h"
#include "nvidia/nvml.h"

#include "base/str.h"
#include "base/time.h"

#include <errno.h>

#define STEP_USEC (250 * USEC_PER_MSEC)
#define DAEMON    "nvidia-gridd"
#define LATER     "without a licence, CUDA fails after some time (on EC2, after a day)"

/* *ret_text: the first GPU without a licence and the reason; or NULL. > 0: waiting may help. */
static int find_unlicensed(Work *w, const NvmlGpus *gpus, char **ret_text) {
        for (size_t i = 0; i < gpus->n; i++) {
                _free_ char *name = gpu_name(gpus, i);
                NvmlLicense license = {};
                work_at(w, "NVML did not answer when asked for the licence of %s", name);
                int code = nvml_license(gpus->items[i].device, &license);
                if (code == NVML_OK && license.licensed)
                        continue;
                _free_ char *error = nvml_text(code);
                if (code != NVML_OK)
                        *ret_text = xasprintf("the licence of %s cannot be read: %s", name, error);
                else if (!license.supported)
                        *ret_text = xasprintf("%s is a fractional GPU, and its driver does not support "
                                              "licensing: it needs the GRID driver for EC2", name);
                else
                        *ret_text = xasprintf("%s is a fractional GPU and has no licence%s%s", name,
                                              *license.product ? " for " : "", license.product);
                return code == NVML_OK ? license.supported
                                       : code != NVML_NOT_SUPPORTED && !nvml_is_final(code);
        }
        return 0;
}

/* Its directory exists while it runs (bottlerocket-os/bottlerocket-kernel-kit, nvidia-gridd.service). */
static int tell_unlicensed(Work *w, const char *text) {
        if (root_program(w->root, DAEMON) <= 0)
                return work_miss(w, -ENOENT, CAUSE_LICENSE, "no-license",
                                 "%s: this image lacks " DAEMON ", which gets the licence; " LATER ": "
                                 "install the GRID driver for EC2 with its licence daemon", text);
        bool runs = root_exists(w->root, "/run/" DAEMON) > 0;
        return work_miss(w, -EKEYEXPIRED, CAUSE_LICENSE, "no-license",
                         "%s; " LATER ". " DAEMON " must get the licence%s; journalctl -u " DAEMON
                         " shows why that failed",
                         text, runs ? "" : ", but does not run");
}

int license_work(Work *w) {
        NvmlGpus gpus = {};
        uint64_t patience = work_patience(w);
        int r = gpus_open(w, &gpus);
        for (bool waited = false; r >= 0; waited = true) {
                _free_ char *text = NULL;
                bool hope = find_unlicensed(w, &gpus, &text) > 0 && root_program(w->root, DAEMON) > 0;
                r = text ? r : waited;
                if (!text)
                        break;
                if (!hope || now_usec() >= patience) {
                        r = tell_unlicensed(w, text);
                        break;
                }
                work_draft(w, NULL, CAUSE_LICENSE, xstrdup(text));
                work_progress(w, "%s; waiting for " DAEMON, text);
                if (!work_pause(w, STEP_USEC))
                        r = work_fail(w, -ECANCELED, CAUSE_LICENSE, "stopped while waiting for a licence: "
                                                                    "%s", text);
        }
        if (gpus.items)
                nvml_close(&gpus);
        return r;
}
