/* SPDX-License-Identifier: Apache-2.0
 * import-image: ctr(8) imports the sandbox image, without which no pod starts, from the archive of the AMI.
 * The copy in the containerd store moved to local disks, which are blank after a stop and start; SOCI has
 * none. nodestrap asks containerd each time, unless its store is blank. The image needs the exact name of the
 * containerd configuration.
 *
 * pin-image: the label that tells kubelet to keep it. Archives have none, and containerd 1.7 adds none to an
 * import. kubelet does not wait for it: it removes images only when a disk is full, and none in their first
 * two minutes (imageMinimumGCAge). */
#include "apply/storage.h"

#include "base/str.h"

#define PINNED "io.cri-containerd.pinned=pinned"
#define ADVICE "without it no pod starts on this node"

/* BARE: named without its tag, as in AMIs before May 2026. */
typedef enum Found { FOUND_NOTHING, FOUND_BARE, FOUND_TAGGED } Found;

#define BLOBS "/io.containerd.content.v1.content/blobs/sha256"

/* A new `ctr images` command with these words, which it frees. */
static char **images(const Action *a, char **words) {
        char **argv = a->image.socket ? command("ctr", "--address", a->image.socket, NULL)
                                      : command("ctr", NULL);
        strv_add(&argv, "--namespace");
        strv_add(&argv, "k8s.io");
        strv_add(&argv, "images");
        strv_extend(&argv, words);
        strv_free(words);
        return argv;
}

static char *find_row(const char *table, const char *name) {
        for (const char *line = table; *line; line += strcspn(line, "\n"), line += *line == '\n') {
                size_t n = strcspn(line, " \t\n");
                if (n == strlen(name) && strncmp(line, name, n) == 0)
                        return xstrndup(line, strcspn(line, "\n"));
        }
        return NULL;
}

static int ask_for_unpacked(Work *w, const char *what, const char *filter, bool *ret) {
        const Action *a = w->action;
        _free_ char *table = NULL, *row = NULL;
        _strv_ char **argv = images(a, command("check", "--snapshotter", a->image.snapshotter, filter, NULL));
        int r = work_ask(w, CAUSE_COMMAND, what, argv, &table);
        if (r < 0)
                return r;
        /* REF TYPE DIGEST STATUS SIZE UNPACKED; --quiet would also list images that are not unpacked. */
        row = find_row(table, a->with);
        _free_ char *words = str_strip(row ?: "");
        const char *last = strrchr(words, ' ');
        *ret = strstr(words, " complete ") && last && streq(last + 1, "true");
        return 0;
}

/* An image has at least one blob. kubelet waits for each call of ctr, so a blank store costs none. */
static bool store_is_blank(const Work *w) {
        _free_ char *path = xasprintf("%s" BLOBS, w->action->image.store ?: CONTAINERD_DIR);
        _strv_ char **blobs = root_names(w->root, path);
        return strv_length(blobs) == 0;
}

static int ask_containerd(Work *w, Found *ret) {
        const Action *a = w->action;
        _free_ char *filter = xasprintf("name==%s", a->with), *table = NULL, *row = NULL,
                    *bare = xstrndup(a->with, strcspn(a->with, ":")),
                    *second = xasprintf("name==%s", bare), *other = NULL,
                    *what = xasprintf("containerd cannot tell if it has the image %s", a->with);
        _strv_ char **argv = images(a, command("ls", filter, second, NULL));
        bool unpacked = true;
        int r = work_ask(w, CAUSE_COMMAND, what, argv, &table);
        if (r < 0)
                return r;
        row = find_row(table, a->with);
        other = find_row(table, bare);
        if (row && a->image.snapshotter)
                r = ask_for_unpacked(w, what, filter, &unpacked);
        if (r < 0)
                return r;
        *ret = row && unpacked                          ? FOUND_TAGGED
               : !row && other && !a->image.snapshotter ? FOUND_BARE
                                                        : FOUND_NOTHING;
        return 0;
}

static int tag(Work *w, const char *what) {
        _free_ char *bare = xstrndup(w->action->with, strcspn(w->action->with, ":"));
        _strv_ char **argv = images(w->action, command("tag", bare, w->action->with, NULL));
        return work_run(w, CAUSE_COMMAND, what, argv);
}

static int import(Work *w) {
        const Action *a = w->action;
        const char *snapshotter = a->image.snapshotter;
        _strv_ char **argv = images(a, command("import", NULL));
        if (snapshotter) {
                strv_add(&argv, "--snapshotter");
                strv_add(&argv, snapshotter);
        }
        for (char **option = a->image.options; option && *option; option++)
                strv_add(&argv, *option);
        strv_add(&argv, a->target);
        _free_ char *line = strv_join(argv, " "),
                    *what = xasprintf("%s cannot be imported%s%s (try `%s`); " ADVICE, a->target,
                                      snapshotter ? " for the snapshotter " : "", snapshotter ?: "", line);
        _free_ char *output = NULL, *name = xasprintf("%s ", a->with);
        int r = work_ask(w, CAUSE_COMMAND, what, argv, &output);
        if (r < 0 || strstr(output, name))
                return r;
        /* AMIs before May 2026 exported it without a tag. */
        Found found = FOUND_NOTHING;
        r = ask_containerd(w, &found);
        if (r < 0 || found == FOUND_TAGGED)
                return r;
        _free_ char *lost = xasprintf("%s was imported, but lacks the image %s (write that file again with "
                                      "`ctr --namespace k8s.io images export`); " ADVICE,
                                      a->target, a->with);
        return tag(w, lost);
}

int image_work(Work *w) {
        const Action *a = w->action;
        Found found = FOUND_NOTHING;
        int there = root_exists(w->root, a->target);
        if (there < 0)
                return work_fail(w, there, CAUSE_COMMAND, "%s: %m", a->target);
        int r = there > 0 && store_is_blank(w) ? 0 : ask_containerd(w, &found);
        if (found == FOUND_NOTHING && there == 0) {
                /* A custom AMI may use another sandbox image. */
                diag_warn_at(&w->warnings, "no-sandbox-archive", NULL, w->action->target,
                             "is missing, and %s the image %s%s; without that image no pod starts here, "
                             "unless spec.containerd.config names another sandbox image. The AMI must "
                             "contain the archive (`ctr --namespace k8s.io images export`)",
                             r < 0 ? "nodestrap cannot tell if containerd has" : "containerd does not have",
                             w->action->with,
                             w->action->image.snapshotter ? " where SOCI finds it" : "");
                return 0;
        }
        if (r < 0 || found == FOUND_TAGGED)
                return r;
        if (found == FOUND_BARE) {
                _free_ char *what =
                        xasprintf("the untagged image in containerd cannot be tagged %s; " ADVICE, a->with);
                r = tag(w, what);
        } else
                r = import(w);
        return r < 0 ? r : 1;
}

int pin_work(Work *w) {
        const char *name = w->action->target;
        _free_ char *filter = xasprintf("name==%s", name), *table = NULL,
                    *what = xasprintf("the image %s cannot be pinned, so kubelet may remove it when the disk "
                                      "is full",
                                      name);
        _strv_ char **ls = images(w->action, command("ls", filter, NULL)),
                    **label = images(w->action, command("label", name, PINNED, NULL));
        int r = work_ask(w, CAUSE_COMMAND, what, ls, &table);
        if (r < 0)
                return r;
        _free_ char *row = find_row(table, name);
        if (!row || strstr(row, PINNED))
                return 0;
        r = work_run(w, CAUSE_COMMAND, what, label);
        return r < 0 ? r : 1;
}
