/* SPDX-License-Identifier: Apache-2.0
 * Planned files → a directory of the caller, with a list of what was written. The list tells own files from
 * foreign ones; where there is a foreign file, nothing is written. The list is written before the first file,
 * and names stale files until they are gone. So the next run can continue after any interruption. */
#include "commands/run.h"

#include "base/json.h"
#include "base/str.h"
#include "plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define LIST     "/.nodestrap-plan.json"
#define LIST_MAX (4 << 20)
#define DEPTH_MAX 64

/* NULL: none */
static json_t *list_read(const Root *dir) {
        _free_ char *text = NULL;
        json_t *list = root_read(dir, LIST, LIST_MAX, &text, NULL) >= 0 ? json_loads(text, 0, NULL) : NULL;
        json_t *files = json_incref(json_object_get(list, "files"));
        json_decref(list);
        return files;
}

static int list_write(const Root *dir, json_t *files) {
        _cleanup_(json_decrefp) json_t *list =
                json_pack("{si sO}", "formatVersion", PLAN_FORMAT, "files", files);
        _free_ char *text = json_dumps(list, JSON_INDENT(1));
        return root_replace(dir, LIST, text, strlen(text), 0644);
}

static bool list_has(const json_t *files, const char *path) {
        const json_t *entry;
        size_t i;
        json_array_foreach(files, i, entry)
                if (streq(json_string_value(entry) ?: "", path))
                        return true;
        return false;
}

/* Is a listed file in this directory? */
static bool list_has_directory(const json_t *files, const char *path) {
        const json_t *entry;
        size_t i, n = strlen(path);
        json_array_foreach(files, i, entry) {
                const char *file = json_string_value(entry) ?: "";
                if (startswith(file, path) && file[n] == '/')
                        return true;
        }
        return false;
}

/* The first thing below path that is a link or not on the list: 1 with its name, 0, or negative errno. */
static int find_foreign(const Root *dir, const char *path, const json_t *files, unsigned depth, char **ret) {
        _strv_ char **names = NULL;
        int r = depth > DEPTH_MAX ? -ELOOP : root_list(dir, *path ? path : "/", &names);
        for (char **name = names; r == 0 && name && *name; name++) {
                _free_ char *below = xasprintf("%s/%s", path, *name);
                struct stat st;
                _cleanup_(close_fd) int fd = root_open(dir, below, O_PATH | O_NOFOLLOW);
                if (fd < 0 || fstat(fd, &st) < 0)
                        return fd < 0 ? fd : -errno;
                if (S_ISDIR(st.st_mode) && list_has_directory(files, below))
                        r = find_foreign(dir, below, files, depth + 1, ret);
                else if (!S_ISREG(st.st_mode) || !(streq(below, LIST) || list_has(files, below))) {
                        *ret = TAKE_PTR(below);
                        r = 1;
                }
        }
        return r;
}

static json_t *list_of_plan(const Plan *plan) {
        json_t *files = json_array();
        for (size_t i = 0; i < plan->n; i++)
                if (action_is(&plan->actions[i], ACTION_OF_FILES))
                        json_array_append_new(files, json_string(plan->actions[i].target));
        return files;
}

static void remove_directories(const Root *dir, const char *path) {
        _free_ char *above = xstrdup(path);
        for (char *slash = strrchr(above, '/'); slash && slash > above; slash = strrchr(above, '/')) {
                *slash = 0;
                if (root_remove_dir(dir, above) <= 0)
                        return;
        }
}

static int remove_stale(const Root *dir, const json_t *old, const json_t *new) {
        const json_t *entry;
        size_t i;
        int r = 0;
        json_array_foreach(old, i, entry) {
                const char *path = json_string_value(entry) ?: "";
                if (r < 0 || path[0] != '/' || list_has(new, path))
                        continue;
                r = root_remove(dir, path);
                if (r > 0)
                        remove_directories(dir, path);
        }
        return MIN(r, 0);
}

/* A file with secrets gets 0600, whatever its mode on the node. */
static int write_files(const Root *dir, const Plan *plan) {
        int r = 0;
        for (size_t i = 0; r >= 0 && i < plan->n; i++) {
                const Action *a = &plan->actions[i];
                if (action_is(a, ACTION_OF_FILES))
                        r = root_replace(dir, a->target, a->file.content ?: "", a->file.size,
                                         a->secret ? 0600 : a->file.mode);
        }
        return r;
}

static int write_below(const Root *dir, const Plan *plan, char **ret_foreign) {
        _cleanup_(json_decrefp) json_t *old = list_read(dir), *new = list_of_plan(plan),
                                       *all = json_copy(new);
        json_t *entry;
        size_t i;
        json_array_foreach(old, i, entry) {
                const char *path = json_string_value(entry) ?: "";
                if (path[0] == '/')     /* from a write that was interrupted */
                        (void)!root_tmp_sweep(dir, path);
                if (!list_has(new, path))
                        json_array_append(all, entry);
        }
        int r = find_foreign(dir, "", old, 0, ret_foreign);
        if (r == 0)
                r = list_write(dir, all);
        if (r < 0 || *ret_foreign)
                return r;
        r = write_files(dir, plan);
        THEN(r, remove_stale(dir, old, new));
        return r < 0 ? r : list_write(dir, new);
}

int plan_write(const char *target, const Plan *plan, Diag *diag) {
        _cleanup_(root_freep) Root *dir = NULL, *here = NULL;
        _free_ char *path = NULL, *foreign = NULL;
        int r = root_new("/", &here);
        path = r >= 0 ? root_absolute(here, target) : NULL;
        THEN(r, path ? root_make_dirs(here, path, 0755) : -ENOENT);
        THEN(r, root_new(path, &dir));
        THEN(r, write_below(dir, plan, &foreign));
        if (r > 0 && foreign)
                return diag_error(diag, -EEXIST, CAUSE_USAGE,
                                  "--write-to %s: %s%s is not from an earlier --write-to, so nothing is "
                                  "written; name a new or empty directory",
                                  target, target, endswith(target, "/") ? foreign + 1 : foreign);
        return r < 0 ? diag_error(diag, r, CAUSE_FILE, "%s: cannot write the planned files: %s",
                                  target, strerror(-r))
                     : 0;
}
