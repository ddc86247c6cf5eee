/* SPDX-License-Identifier: Apache-2.0
 * import-image → ctr(8): the sandbox image, without which no pod starts, from the archive that the AMI
 * keeps beside the copy in containerd's own store. That copy has moved to the local disks, and they come back
 * blank when the instance was stopped and started. containerd is asked each time that its store was bound:
 * what is there need not be imported. */
#include "apply/storage.h"

#include "base/run.h"
#include "base/str.h"

#include <errno.h>

#define NAMES_LIMIT 4096U       /* one name would do */
#define ADVICE "; without it no pod starts on this node: try `ctr --namespace k8s.io images import "

static int ask_containerd(Work *w, bool *ret_there) {
        _cleanup_(freep) char *filter = xasprintf("name~=^%s(:|@|$)", w->action->with);
        _cleanup_(strv_freep) char **argv =
                command("ctr", "--namespace", "k8s.io", "images", "ls", "--quiet", filter, NULL);
        _cleanup_(child_result_done) ChildResult c = {};
        work_at(w, "ctr was asking containerd for its images");
        int r = child_run_until(argv, w->deadline_usec, w->cancel_fd, NAMES_LIMIT, &c);
        if (r < 0)
                return work_fail(
                        w, r, CAUSE_COMMAND,
                        "whether containerd has the image %s is not known: ctr cannot be started: %s",
                        w->action->with, strerror(-r));
        if (c.status != 0)
                return work_fail(
                        w, -EIO, CAUSE_COMMAND,
                        "whether containerd has the image %s is not known: ctr exited with status %d\n%s",
                        w->action->with, c.status, c.errors);
        *ret_there = c.size > 0;
        return 0;
}

static int image_work(Work *w) {
        const Action *a = w->action;
        _cleanup_(freep) char *what =
                xasprintf("%s holds no image that containerd takes" ADVICE "%s`", a->target, a->target);
        _cleanup_(strv_freep) char **argv =
                command("ctr", "--namespace", "k8s.io", "images", "import", a->target, NULL);
        bool there = false;
        int r = ask_containerd(w, &there);
        if (r < 0 || there)
                return r;
        r = work_run(w, CAUSE_COMMAND, what, argv);
        if (r >= 0)
                r = ask_containerd(w, &there);
        if (r >= 0 && !there)
                r = work_fail(w, -ENOENT, CAUSE_COMMAND,
                              "%s was imported, and the image %s is not in it" ADVICE
                              "FILE` with one that has it",
                              a->target, a->with);
        return r < 0 ? r : 1;
}

/* An image without the archive is somebody's own: then its sandbox image is pulled, or it is not there either
 * way. */
int image_check(Task *t) {
        if (t->action->storage.state == STEP_KEEP)
                return CHECK_DONE_ALREADY;
        int r = root_exists(t->apply->root, t->action->target);
        if (r < 0)
                return task_fail(t, r, CAUSE_COMMAND, "%s: %s", t->action->target, strerror(-r));
        return r > 0 ? CHECK_NEEDED : CHECK_DONE_ALREADY;
}

int image_start(Task *t) {
        return work_start(t, image_work);
}
