/* SPDX-License-Identifier: Apache-2.0
 * Digests of the inputs of each started unit, below STARTED_DIR. */
#include "apply/units/unit.h"

#include "base/hash.h"
#include "base/str.h"

#include <fcntl.h>
#include <sys/stat.h>

/* Covers the plan and the identity of the files, to detect later edits and overwrites. Only root may read it:
 * a digest of a 0600 file allows guesses. */
void inputs_find(const Root *root, const Action *a, char inputs[static 65]) {
        Text all = {};
        text_add(&all, "%s\n", a->unit.inputs);
        for (char **path = a->unit.reads; path && *path; path++) {
                struct stat st = {};
                int fd = root_open(root, *path, O_PATH);
                if (fd >= 0 && fstat(fd, &st) == 0)
                        text_add(&all, "%s %ju %jd %jd.%09ld\n", *path, (uintmax_t)st.st_ino,
                                 (intmax_t)st.st_size, (intmax_t)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
                close_fd(&fd);
        }
        sha256_hex(all.data, all.size, inputs);
        text_done(&all);
}

static char *record_path(const char *unit) {
        return xasprintf(STARTED_DIR "/%s", unit);
}

static int record_is(const Root *root, const char *unit, const char *inputs) {
        _free_ char *path = record_path(unit), *line = NULL;
        int r = root_read_line(root, path, &line);
        return r < 0 ? r : streq(line, inputs);
}

int unit_record(const Root *root, const Action *a) {
        char inputs[65];
        inputs_find(root, a, inputs);
        return record_is(root, a->target, inputs);
}

bool record_same(const Unit *u) {
        return record_is(u->task->apply->root, u->name, u->inputs) > 0;
}

void record_write(const Unit *u) {
        _free_ char *path = record_path(u->name), *line = xasprintf("%s\n", u->inputs);
        int r = root_replace_volatile(u->task->apply->root, path, line, strlen(line), 0600);
        if (r < 0)
                diag_warn_at(u->task->apply->diag, "record-not-written", NULL, path,
                             "%s; the next run restarts %s again", strerror(-r), u->name);
}

void unit_forget_record(const Unit *u) {
        _free_ char *path = record_path(u->name);
        (void)!root_remove(u->task->apply->root, path);
}

/* No file of ours changes such a unit, so a running one is left alone: stopping fabric manager also ends CUDA
 * jobs (ABORT_CUDA_JOBS_ON_FM_EXIT, docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide). */
bool unit_reads_nothing(const Action *a) {
        return !a->unit.inputs[0] && !a->unit.reads;
}
