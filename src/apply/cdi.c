/* SPDX-License-Identifier: Apache-2.0
 * generate-cdi → nvidia-ctk: the file by which container runtimes know the GPUs. It is made outside of the directory that they watch,
 * for they read whatever ends in .yaml there, and takes its place with one rename, only where it differs. */
#include "apply/device.h"

#include "apply/storage.h"
#include "base/str.h"

#include <errno.h>

#define DRAFT     APPLY_RUN_DIR "/nvidia-cdi.yaml"
#define DRAFT_MAX (16U << 20)

static int publish(Work *w) {
        const char *target = w->action->target;
        _cleanup_(freep) char *text = NULL;
        size_t size = 0;
        int r = root_read(w->root, DRAFT, DRAFT_MAX, &text, &size);
        if (r >= 0 && size == 0)
                r = -ENODATA;
        if (r < 0)
                return work_fail(w, r, CAUSE_CDI, "nvidia-ctk ended well, but what it was to write to " DRAFT " cannot be used: %s", strerror(-r));
        r = root_replace_volatile(w->root, target, text, size, 0644);
        return r < 0 ? work_fail(w, r, CAUSE_CDI, "%s cannot be written: %s", target, strerror(-r)) : r;
}

int cdi_work(Work *w) {
        const char *root = root_is_host(w->root) ? "" : root_path(w->root);
        _cleanup_(freep) char *output = xasprintf("--output=%s" DRAFT, root);
        _cleanup_(strv_freep) char **argv = command("nvidia-ctk", "cdi", "generate", output, NULL);
        int r = root_make_dirs(w->root, APPLY_RUN_DIR, 0755);
        if (r < 0)
                return work_fail(w, r, CAUSE_CDI, APPLY_RUN_DIR " cannot be made: %s", strerror(-r));
        r = work_run(w, CAUSE_CDI, "containers get no GPU", argv);
        if (r >= 0)
                r = publish(w);
        (void)!root_remove(w->root, DRAFT);
        return r;
}
