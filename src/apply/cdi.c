/* SPDX-License-Identifier: Apache-2.0
 * generate-cdi: nvidia-ctk writes the file by which container runtimes find the GPUs. Runtimes read each
 * .yaml in their directory, so the draft lies elsewhere and replaces the file with one rename. nvidia-ctk
 * omits missing devices and still exits with 0, so the draft is compared with the list of NVML. */
#include "apply/device.h"
#include "apply/gpus.h"
#include "nvidia/cdi.h"

#include "base/hash.h"
#include "base/str.h"
#include "doc/doc.h"

#include <errno.h>

#define DRAFT     RUN_DIR "/nvidia-cdi.yaml"
#define DRAFT_MAX (16U << 20)
#define NODES_MAX 200000U       /* 56 MIG devices, 3 names each, need 12 000 */
#define STAMP     RUN_DIR "/cdi-published"
#define MODESET   "/dev/nvidia-modeset"
#define NAMED_MAX 4             /* missing things in a message */
#define SHOWN_MAX 200

static int draft_unusable(Work *w, int r, const char *why) {
        return work_fail(w, r, CAUSE_CDI, DRAFT ", written by nvidia-ctk, cannot be used: %s", why);
}

static int parse(Work *w, const char *text, size_t size, json_t **ret) {
        _cleanup_(documents_done) Documents documents = {};
        _cleanup_(diag_done) Diag diag = {};
        Blob blob = { .at = { .source = DRAFT, .line = 1 },
                      .data = (char *)text,
                      .size = size,
                      .max_nodes = NODES_MAX };
        int r = yaml_parse(&blob, &documents, &diag);
        if (r >= 0 && documents.n != 1)
                return draft_unusable(w, -EBADMSG, "it is not a single YAML document");
        THEN(r, yaml_to_json(documents.items[0].root, ret));
        if (r >= 0)
                return 0;
        const Diagnostic *first = diag_first_error(&diag);
        return draft_unusable(w, r, first ? first->text : strerror(-r));
}

/* Each GPU that containers can get whole, and each MIG device. */
static char **what_it_lacks(const Work *w, const GpuNames *names, const json_t *spec) {
        _free_ CdiWanted *wanted = xcalloc(names->n + 1, sizeof *wanted);
        bool modeset = root_exists(w->root, MODESET) == 1;
        const char *const nodes[] = { "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                                      modeset ? MODESET : NULL, NULL };
        size_t n = 0;
        for (size_t i = 0; i < names->n; i++) {
                const GpuName *name = &names->items[i];
                if (!name->divided)
                        wanted[n++] = (CdiWanted){ .index = name->index, .uuid = name->uuid.text,
                                                   .node = name->node, .mig = name->mig };
        }
        return cdi_lacks(spec, wanted, n, nodes);
}

/* nvidia-ctk line about it: time="…" level=warning msg="Could not locate /dev/nvidia-uvm: …". */
static char *words_about(const char *words, const char *missing) {
        size_t n = strcspn(missing, " \xe2");   /* up to " in device 0", or "…" */
        for (const char *line = words; *missing == '/' && *line;) {
                size_t size = strcspn(line, "\n");
                _free_ char *text = xstrndup(line, size), *path = xstrndup(missing, n);
                const char *at = strstr(text, path), *said = strstr(text, "msg=\"");
                if (at && !strstr(text, "level=info") && (!at[n] || !strchr("-0123456789", at[n])))
                        return xstrdup(said ? said + strlen("msg=\"") : text);
                line += size + (line[size] == '\n');
        }
        return NULL;
}

static int lacks(Work *w, char **missing, const char *words) {
        _free_ char *said = NULL;
        _cleanup_(text_done) Text t = {};
        size_t n = strv_length(missing);
        text_add(&t, "the output of nvidia-ctk lacks ");
        for (size_t i = 0; i < n && !said; i++)
                said = words_about(words, missing[i]);
        for (size_t i = 0; i < MIN(n, NAMED_MAX); i++)
                text_add(&t, "%s%s", i == 0 ? "" : i + 1 == n ? " and " : ", ", missing[i]);
        if (n > NAMED_MAX)
                text_add(&t, " and %zu more", n - NAMED_MAX);
        if (said) {
                text_add(&t, "; nvidia-ctk said \"");
                text_add_shown(&t, said, strcspn(said, "\"\n"), SHOWN_MAX, '"');
                text_add(&t, "\"");
        }
        return work_fail(w, -ENXIO, CAUSE_CDI,
                         "%s. Containers would find no GPU, so %s stays as it was; look at the warnings of "
                         "`nvidia-ctk cdi generate`, and at ls -l /dev/nvidia* /dev/nvidia-caps",
                         t.data, w->action->target);
}

static int check(Work *w, const GpuNames *names, const char *text, size_t size, const char *words) {
        json_auto_t *spec = NULL;
        _strv_ char **missing = NULL;
        int r = parse(w, text, size, &spec);
        if (r < 0)
                return r;
        const char *fault = cdi_fault(spec);
        if (fault)
                return draft_unusable(w, -EBADMSG, fault);
        missing = what_it_lacks(w, names, spec);
        return missing ? lacks(w, missing, words) : 0;
}

static void stamp_of(const Work *w, const GpuNames *names, const char *text, size_t size,
                     char ret[static 65]) {
        char file[65];
        gpu_names_digest(w, names, ret);
        sha256_hex(text, size, file);
        _free_ char *both = xasprintf("%s %s", ret, file);
        sha256_hex(both, strlen(both), ret);
}

static int publish(Work *w, const GpuNames *names, const char *words) {
        const char *target = w->action->target;
        _free_ char *text = NULL;
        size_t size = 0;
        char stamp[65];
        int r = root_read(w->root, DRAFT, DRAFT_MAX, &text, &size);
        if (r >= 0 && size == 0)
                r = -ENODATA;
        if (r < 0)
                return draft_unusable(w, r, strerror(-r));
        r = check(w, names, text, size, words);
        if (r < 0)
                return r;
        r = root_replace_volatile(w->root, target, text, size, 0644);
        if (r < 0)
                return work_fail(w, r, CAUSE_CDI, "%s cannot be written: %m", target);
        stamp_of(w, names, text, size, stamp);
        stamp_write(w, STAMP, stamp);
        return r;
}

/* Configured instances exist by now. Others come later, e.g. from the NVIDIA MIG manager, which needs kubelet
 * and then writes the file itself. */
static int generator_failed(Work *w, const GpuNames *names, int r) {
        const GpuName *gpu = FIND(g, names->items, r == -EIO ? names->n : 0,
                                  g->divided && (g + 1 == names->items + names->n || !g[1].mig));
        if (!gpu)
                return r;
        diag_warn_at(&w->warnings, "cdi", NULL, w->action->id,
                     "no CDI file was made: GPU %s (%s) is in MIG mode without an instance, and nvidia-ctk "
                     "fails on that. Create instances and run nodestrap init again, or list them in "
                     "spec.accelerator.nvidia.mig",
                     gpu->index, gpu->address);
        return 0;
}

static int generate(Work *w, const GpuNames *names) {
        const char *root = root_is_host(w->root) ? "" : root_path(w->root);
        _free_ char *output = xasprintf("--output=%s" DRAFT, root), *words = NULL;
        _strv_ char **argv = command("nvidia-ctk", "cdi", "generate", output, NULL);
        int r = root_make_dirs(w->root, RUN_DIR, 0755);
        if (r < 0)
                return work_fail(w, r, CAUSE_CDI, RUN_DIR " cannot be made: %m");
        r = work_hear(w, CAUSE_CDI, "containers get no GPU", argv, &words);
        if (r == -ENOENT) {
                /* Pods still get GPUs here, through the NVIDIA runtime of containerd. */
                diag_warn_at(&w->warnings, "cdi", NULL, w->action->id,
                             "no CDI file was made: nvidia-ctk is missing (package "
                             "nvidia-container-toolkit); containers get GPUs only through the legacy nvidia "
                             "runtime");
                r = 0;
        } else
                r = r < 0 ? generator_failed(w, names, r) : publish(w, names, words);
        (void)!root_remove(w->root, DRAFT);
        return r;
}

int cdi_work(Work *w) {
        _cleanup_(nvml_trouble_done) NvmlTrouble trouble = {};
        _cleanup_(gpu_names_done) GpuNames names = {};
        _free_ char *text = NULL;
        size_t size = 0;
        char stamp[65];
        if (gpu_names_read(w, &names, &trouble) < 0)
                return gpus_fail(w, &trouble);
        if (root_read(w->root, w->action->target, DRAFT_MAX, &text, &size) >= 0) {
                stamp_of(w, &names, text, size, stamp);
                if (stamp_same(w, STAMP, stamp))
                        return 0;
        }
        return generate(w, &names);
}
