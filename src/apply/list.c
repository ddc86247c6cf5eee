/* SPDX-License-Identifier: Apache-2.0
 * list-gpus: nvidia-smi -L shows that the driver answers for every GPU, and makes the device nodes of GPUs
 * and MIG instances (NVIDIA/mig-parted#82). */
#include "apply/device.h"
#include "apply/gpus.h"

#include "base/str.h"

#include <errno.h>

#define SHOWN_MAX 200
#define STAMP     RUN_DIR "/gpus-listed"

/* *ret_other: the first other line, which usually says why one is missing. */
static unsigned count_gpus(char *output, unsigned *ret_instances, const char **ret_other) {
        unsigned n = 0;
        for (char *line = strsep(&output, "\n"); line; line = strsep(&output, "\n")) {
                /* "GPU 0: NVIDIA H100 80GB HBM3 (UUID: …)"; its instances follow, indented. */
                const char *text = line + strspn(line, " \t");
                size_t digits = startswith(line, "GPU ") ? strspn(line + 4, "0123456789") : 0;
                if (digits > 0 && line[4 + digits] == ':')
                        n++;
                else if (startswith(text, "MIG "))
                        ++*ret_instances;
                else if (*text && !*ret_other)
                        *ret_other = text;
        }
        return n;
}

static void found(Work *w, unsigned gpus, unsigned instances) {
        w->found = json_pack("{s:i, s:i}", "gpus", (int)gpus, "migDevices", (int)instances);
}

/* The same GPUs and nodes as when all answered. */
static bool is_as_listed(Work *w, unsigned want) {
        _cleanup_(nvml_trouble_done) NvmlTrouble trouble = {};
        _cleanup_(gpu_names_done) GpuNames names = {};
        char digest[65];
        if (root_exists(w->root, STAMP) != 1 || gpu_names_read(w, &names, &trouble) < 0 || names.gpus < want)
                return false;
        gpu_names_digest(w, &names, digest);
        if (!stamp_same(w, STAMP, digest))
                return false;
        found(w, (unsigned)names.gpus, (unsigned)(names.n - names.gpus));
        return true;
}

int list_work(Work *w) {
        _strv_ char **argv = command("nvidia-smi", "-L", NULL);
        _free_ char *output = NULL;
        unsigned want = MAX(w->action->device.count, 1U), instances = 0;
        const char *other = NULL;
        if (is_as_listed(w, want))
                return 0;
        int r = work_ask(w, CAUSE_NVIDIA_SMI, "the GPUs cannot be listed", argv, &output);
        if (r < 0)
                return r;
        unsigned n = count_gpus(output, &instances, &other);
        found(w, n, instances);
        if (n >= want) {        /* more than the type has is fine */
                _cleanup_(nvml_trouble_done) NvmlTrouble trouble = {};
                _cleanup_(gpu_names_done) GpuNames names = {};
                char digest[65];
                if (gpu_names_read(w, &names, &trouble) >= 0) {
                        gpu_names_digest(w, &names, digest);
                        stamp_write(w, STAMP, digest);
                }
                return 0;
        }
        _cleanup_(text_done) Text t = {};
        text_add(&t, "nvidia-smi -L lists %u of %u GPUs", n, want);
        if (other) {
                text_add(&t, " and says \"");
                text_add_shown(&t, other, strlen(other), SHOWN_MAX, '"');
                text_add(&t, "\"");
        }
        return work_fail(
                w, -ENODEV, CAUSE_NVIDIA_SMI,
                "%s; dmesg (NVRM, Xid) shows what happened to the missing GPUs; if a GPU is broken, replace "
                "the instance",
                t.data);
}
