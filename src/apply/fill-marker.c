/* SPDX-License-Identifier: Apache-2.0
 * Identifies the root disk from which a volume is being filled: the rest of an interrupted copy lies only
 * there. Both keep the same random word. An instance id would not do: a root disk can be replaced or attached
 * elsewhere. Also detects a volume that was filled under another layout. */
#include "apply/storage.h"
#include "apply/tree.h"

#include "base/str.h"

#include <errno.h>
#include <sys/random.h>

#define STATE "/var/lib/nodestrap/filling-" /* + last part of the mount path */

static char *state_path(const char *place) {
        return xasprintf(STATE "%s", strrchr(place, '/') + 1);
}

static int fail(Work *w, int r, const char *what, const char *path) {
        (void)work_fail(w, r, CAUSE_MOVE, "%s cannot be %s: %m", path, what);
        return r;
}

static int word_read(Work *w, const char *path, char **ret) {
        _free_ char *word = NULL;
        int r = root_read_line(w->root, path, &word);
        if (r < 0 && r != -ENOENT && r != -ENOTDIR)
                return fail(w, r, "read", path);
        *ret = word && *word ? TAKE_PTR(word) : NULL;
        return 0;
}

static int word_write(Work *w, const char *path, const char *word) {
        _free_ char *line = xasprintf("%s\n", word);
        int r = root_replace(w->root, path, line, strlen(line), 0600);
        return r < 0 ? fail(w, r, "written", path) : 0;
}

int filling_begin(Work *w, const char *place, const char *mark) {
        _free_ char *state = state_path(place), *path = xasprintf("%s/%s", place, mark), *word = NULL;
        uint64_t chance[2];
        int r = word_read(w, state, &word);
        if (r < 0)
                return r;
        if (!word) {
                if (getrandom(chance, sizeof chance, 0) != (ssize_t)sizeof chance)
                        return fail(w, -EIO, "written: getrandom() failed", state);
                word = xasprintf("%016llx%016llx", (unsigned long long)chance[0],
                                 (unsigned long long)chance[1]);
                r = word_write(w, state, word);
        }
        return r < 0 ? r : word_write(w, path, word);
}

int filling_check(Work *w, const char *place, const char *mark) {
        _free_ char *state = state_path(place), *path = xasprintf("%s/%s", place, mark), *there = NULL,
                    *here = NULL;
        int r = word_read(w, path, &there);
        THEN(r, word_read(w, state, &here));
        if (r < 0 || (there && here && streq(there, here)))
                return r;
        return work_fail(w, -ESTALE, CAUSE_MOVE,
                         "the volume at %s is incomplete: a copy from the root disk of another machine was "
                         "interrupted. Attach the volume to that machine, and its next boot completes the "
                         "copy. If you need nothing on it, empty it (`find %s -xdev -mindepth 1 -delete`) "
                         "and run nodestrap init again",
                         place, place);
}

int filling_end(Work *w, const char *place) {
        _free_ char *state = state_path(place);
        int r = root_remove(w->root, state);
        return r < 0 ? fail(w, r, "removed", state) : 0;
}

/* A change between mountTarget and mountTargets moves where content is expected. */
int layout_check(Work *w, int fd, const Move *first, bool none) {
        _strv_ char **names = NULL;
        _free_ char *folder = xstrdup(first->from + 1);
        bool whole = !*first->name, other = false;
        /* like a volume with several targets (config/volumes.c) */
        for (char *p = folder; *p; p++)
                *p = *p == '/' ? '-' : *p;
        int r = tree_list(fd, &names);
        if (r < 0)
                return fail(w, r, "listed", w->action->target);
        for (char **name = names; name && *name; name++)
                other = other || !(streq(*name, "lost+found") || startswith(*name, ".nodestrap-"));
        if (whole ? strv_contains(names, folder) : other && none)
                diag_warn(&w->warnings, "volume-layout",
                          "the volume at %s holds files, but %s: probably mountTarget was set earlier and "
                          "mountTargets is set now, or the reverse. The files stay there, but programs do "
                          "not find them: restore the old setting, or move them by hand",
                          w->action->target,
                          whole ? "in a folder that mountTargets would make"
                                : "none of the folders of its mountTargets");
        return 0;
}
