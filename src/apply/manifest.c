/* SPDX-License-Identifier: Apache-2.0
 * prune-files: the manifest lists the files of this tool: {"version": 1, "files": [{"path", "sha256",
 * "phase"[, "block"]}]}. Files of an earlier plan that this one lacks are removed; then the new manifest is
 * published. New files are listed first as "intended", so the manifest never lists less than exists, wherever
 * a run ends. Both phases of a boot share the manifest, and only the phase that wrote an entry may drop it.
 * Older programs leave a manifest of a newer version alone. */
#include "apply/file.h"

#include "base/hash.h"
#include "base/json.h"
#include "base/log.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <unistd.h>

#define MANIFEST_VERSION 1
#define MANIFEST_MAX (4 << 20)
#define MANIFEST_MODE 0600
#define OWNED_FILE_MAX (4 << 20)

/* Listed files are removed, so a path must not lead elsewhere. */
static bool path_is_plain(const char *path) {
        if (path[0] != '/' || endswith(path, "/"))
                return false;
        for (const char *p = path; *p; p += 1 + strcspn(p + 1, "/")) {
                size_t n = strcspn(p + 1, "/");
                if (n == 0 || (n == 1 && p[1] == '.') || (n == 2 && p[1] == '.' && p[2] == '.'))
                        return false;
        }
        return true;
}

/* The valid entries; NULL for a manifest of another version. */
static json_t *manifest_read(const Root *root, const char *path, Diag *diag) {
        _free_ char *text = NULL;
        json_t *files = json_array(), *entry;
        size_t size = 0, i;
        json_error_t e;
        int r = root_read(root, path, MANIFEST_MAX, &text, &size);
        json_t *manifest = r < 0 ? NULL : json_loadb(text, size, 0, &e);
        if (r < 0 ? r != -ENOENT && r != -ENOTDIR : !json_is_array(json_object_get(manifest, "files")))
                diag_warn_at(diag, "manifest-unreadable", NULL, path,
                             "it cannot be read, so files of an earlier configuration are not removed (%s)",
                             r < 0 ? strerror(-r) : "not a manifest");
        const json_t *version = json_object_get(manifest, "version");
        if (version && json_integer_value(version) != MANIFEST_VERSION) {
                diag_warn_at(diag, "manifest-newer", NULL, path,
                             "its version is unknown to this nodestrap, so no listed file is removed; "
                             "install a newer nodestrap, or remove this file");
                json_decref(manifest);
                json_decref(files);
                return NULL;
        }
        json_array_foreach(json_object_get(manifest, "files"), i, entry) {
                if (path_is_plain(json_get_text(entry, "path")))
                        json_array_append(files, entry);
                else
                        diag_warn_at(diag, "manifest-path", NULL, path,
                                     "entry %zu is not a plain absolute path; ignored", i);
        }
        json_decref(manifest);
        return files;
}

static bool files_have(const json_t *files, const char *path) {
        bool have = false;
        for (size_t i = 0; i < json_array_size(files) && !have; i++)
                have = streq(json_get_text(json_array_get(files, i), "path"), path);
        return have;
}

/* 1: as written, 0: changed, or a negative errno; -EISDIR and -ELOOP: not a file. */
static int file_is_unchanged(const Root *root, const char *path, const char *sha256) {
        _free_ char *data = NULL;
        char digest[65];
        size_t size = 0;
        int fd = root_open(root, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (fd < 0)
                return fd;
        close(fd);
        int r = root_read(root, path, OWNED_FILE_MAX, &data, &size);
        if (r < 0)
                return r == -EFBIG ? 0 : r;
        sha256_hex(data, size, digest);
        return streq(digest, sha256);
}

/* An empty "kubelet.service.d" is useless; other directories stay. */
static int remove_empty_dropin_dir(const Root *root, const char *path) {
        _free_ char *dir = xstrndup(path, (size_t)(strrchr(path, '/') - path));
        int r = endswith(dir, ".d") ? root_remove_dir(root, dir) : 0;
        if (r > 0)
                log_debug("removed the empty %s", dir);
        return r == -EBUSY || r == -ENOTDIR ? 0 : r;    /* a mount point; a link or a file */
}

/* An owned file goes even if it was changed, as a write would have replaced it. An intended one goes only if
 * it has the intended content. */
static int remove_entry(Work *w, const json_t *entry) {
        const char *path = json_get_text(entry, "path");
        if (json_is_true(json_object_get(entry, "block"))) {
                RootTmp tmp = { .dir_fd = -1, .fd = -1 };
                int r = block_prepare(w->root, path, "", &tmp);
                if (r > 0)
                        r = root_tmp_sync(&tmp);
                THEN(r, root_tmp_publish(&tmp));
                root_tmp_release(&tmp);
                return r;
        }
        int r = file_is_unchanged(w->root, path, json_get_text(entry, "sha256"));
        if (r == -ENOENT || r == -ENOTDIR)      /* a killed run got no further */
                return remove_empty_dropin_dir(w->root, path);
        if (r == -EISDIR || r == -ELOOP) {
                diag_warn_at(&w->warnings, "file-kept", NULL, path,
                             "no longer configured; kept, because it is not the file that nodestrap wrote");
                return 0;
        }
        if (r == 0 && json_is_true(json_object_get(entry, "intended")))
                return 0;
        if (r == 0)
                diag_warn_at(&w->warnings, "file-changed", NULL, path,
                             "no longer configured: removed, although it was changed after nodestrap wrote "
                             "it");
        THEN(r, manager_expect(w->root, path));
        THEN(r, root_remove(w->root, path));
        if (r < 0)
                return r;
        log_info("removed %s: the plan does not list it", path);
        return remove_empty_dropin_dir(w->root, path);
}

static int by_path(const void *a, const void *b) {
        return strcmp(json_get_text(*(json_t *const *)a, "path"), json_get_text(*(json_t *const *)b, "path"));
}

/* Sorted: the same files give the same bytes in any order of the phases. */
static char *manifest_format(json_t *files) {
        size_t n = json_array_size(files);
        _free_ json_t **sorted = xcalloc(n, sizeof(json_t *));
        json_t *list = json_array();
        for (size_t i = 0; i < n; i++)
                sorted[i] = json_array_get(files, i);
        qsort(sorted, n, sizeof(json_t *), by_path);
        for (size_t i = 0; i < n; i++)
                json_array_append(list, sorted[i]);
        json_t *manifest = json_pack("{si so}", "version", MANIFEST_VERSION, "files", list);
        char *text = json_dumps(manifest, JSON_INDENT(1));
        json_decref(manifest);
        return text;
}

static json_t *manifest_of_plan(const Plan *plan, Phase phase) {
        json_t *files = json_array();
        for (size_t i = 0; i < plan->n; i++) {
                const Action *a = &plan->actions[i];
                bool block = a->type == ACTION_WRITE_BLOCK && a->file.size > 0;
                char digest[65];
                if (a->phase != phase || (a->type != ACTION_WRITE_FILE && !block))
                        continue;
                sha256_hex(a->file.content ?: "", a->file.size, digest);
                json_t *entry = json_pack("{ss ss ss}", "path", a->target, "sha256", digest, "phase",
                                          phase_to_string(a->phase));
                if (block)
                        json_object_set_new(entry, "block", json_true());
                json_array_append_new(files, entry);
        }
        return files;
}

typedef struct Pruning { json_t *old, *stale; } Pruning;

static Pruning *pruning_get(Work *w) {
        if (!w->pruning) {
                w->pruning = xcalloc(1, sizeof *w->pruning);
                w->pruning->old = manifest_read(w->root, w->action->target, &w->warnings);
                w->pruning->stale = json_array();
        }
        return w->pruning;
}

Pruning *pruning_free(Pruning *p) {
        if (p) {
                json_decref(p->old);
                json_decref(p->stale);
        }
        free(p);
        return NULL;
}

static int manifest_write(const Work *w, json_t *files, RootTmp *ret) {
        _free_ char *text = manifest_format(files);
        return root_tmp_stage(w->root, w->action->target, text, strlen(text), MANIFEST_MODE,
                              ROOT_ANYBODY, ret);
}

int manifest_announce(Work *w, RootTmp *ret) {
        json_t *all = json_copy(pruning_get(w)->old),
               *new = manifest_of_plan(w->plan, w->action->phase), *entry;
        size_t i, known = json_array_size(all);
        json_array_foreach(new, i, entry) {
                if (files_have(all, json_get_text(entry, "path")))
                        continue;
                json_object_set_new(entry, "intended", json_true());
                json_array_append(all, entry);
        }
        int r = all && json_array_size(all) > known ? manifest_write(w, all, ret) : 0;
        json_decref(all);
        json_decref(new);
        return r;
}

/* Adds entries of old that stay to new, and entries to remove to stale. */
static void manifest_sort(const Plan *plan, Phase phase, const json_t *old, json_t *new, json_t *stale) {
        json_t *entry;
        size_t i;
        json_array_foreach(old, i, entry) {
                const char *path = json_get_text(entry, "path");
                if (files_have(new, path))
                        continue;
                if (!streq(json_get_text(entry, "phase"), phase_to_string(phase)))
                        json_array_append(new, entry);
                else if (!ANY(a, plan->actions, plan->n,
                              action_is(a, ACTION_OF_FILES) && streq(a->target, path)))
                        json_array_append(stale, entry);        /* no phase writes it */
        }
}

int manifest_stage(Work *w, RootTmp *ret) {
        Pruning *p = pruning_get(w);
        if (!p->old)
                return 0;
        json_t *new = manifest_of_plan(w->plan, w->action->phase);
        manifest_sort(w->plan, w->action->phase, p->old, new, p->stale);
        int r = manifest_write(w, new, ret);
        json_decref(new);
        return r;
}

int manifest_look(const Root *root, const Plan *plan, const Action *a, char ***ret_stale) {
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(json_decrefp) json_t *old = manifest_read(root, a->target, &diag),
                                       *new = manifest_of_plan(plan, a->phase), *stale = json_array();
        json_t *entry;
        size_t i;
        if (diag.n > 0)
                return -EBADMSG;
        manifest_sort(plan, a->phase, old, new, stale);
        json_array_foreach(stale, i, entry) {
                const char *path = json_get_text(entry, "path");
                if (root_exists(root, path) > 0)
                        strv_add(ret_stale, path);
        }
        _free_ char *text = manifest_format(new);
        return root_compare(root, a->target, text, strlen(text), MANIFEST_MODE, ROOT_ANYBODY);
}

int manifest_publish(Work *w, RootTmp *tmp) {
        json_t *entry;
        size_t i;
        json_array_foreach(pruning_get(w)->stale, i, entry) {
                if (!work_at(w, "removing a file that the plan does not list"))
                        return -ECANCELED;
                int r = remove_entry(w, entry);
                if (r < 0)
                        return file_fail(w, r, "removed", json_get_text(entry, "path"));
        }
        return work_at(w, "renaming it into place") ? root_tmp_publish(tmp) : -ECANCELED;
}
