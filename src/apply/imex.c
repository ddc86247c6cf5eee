/* SPDX-License-Identifier: Apache-2.0
 * make-channel: the device node for memory shared between hosts. Its number is dynamic, and the driver does
 * not make it (IMEX guide, "IMEX channels"). await-imex: waits until the daemon answers READY. */
#include "apply/device.h"

#include "base/run.h"
#include "base/str.h"
#include "base/time.h"

#include <errno.h>
#include <sys/sysmacros.h>

#define CHANNELS   "nvidia-caps-imex-channels"  /* driver name in /proc/devices */
#define ASK_USEC   (500 * USEC_PER_MSEC)
#define SHOWN_MAX  200
#define NODES_MAX  8            /* nodes in a message */
#define TABLE_MAX  (1 << 20)
#define TABLE_USEC USEC_PER_SEC /* work_patience() leaves more */

int channel_work(Work *w) {
        static const NodeRights rights = { .mode = 0666 };
        const char *target = w->action->target;
        unsigned number = 0;
        uint64_t channel = 0;
        int r = node_major(w->root, CHANNELS, &number);
        if (r < 0) {
                if (r != -ENXIO)
                        return work_fail(w, r, CAUSE_IMEX, "/proc/devices cannot be read: %m");
                return work_fail(w, r, CAUSE_IMEX,
                                 "the NVIDIA driver offers no IMEX channels (/proc/devices has no " CHANNELS
                                 "): it is not loaded, is too old, or was loaded with ImexChannelCount=0 "
                                 "(see /proc/driver/nvidia/params)");
        }
        const char *name = strrchr(target, '/') + 1;
        r = startswith(name, "channel") ? parse_u64(name + strlen("channel"), &channel) : -EINVAL;
        THEN(r, node_make(w->root, target, makedev(number, (unsigned)channel), &rights));
        return r < 0 ? work_fail(w, r, CAUSE_IMEX, "%s cannot be made: %s", target, node_error(r)) : r;
}

/* "INITIALIZING", "WAITING_FOR_PEERS" …, or the error of nvidia-imex-ctl: the daemon may not listen yet. */
static int ask_daemon(Work *w, char **ret_answer) {
        _strv_ char **argv = command("nvidia-imex-ctl", "-c", IMEX_CONFIG, "-q", NULL);
        _free_ char *output = NULL;
        int r = work_ask(w, CAUSE_IMEX, "the state of IMEX cannot be read", argv, &output);
        if (r < 0 && r != -EIO)         /* no such program, or given up */
                return r;
        *ret_answer = r < 0 ? xstrndup(w->text, strcspn(w->text, "\n")) : str_strip(output);
        return 0;
}

static char *nodes_not_ready(const char *output) {
        _strv_ char **names = NULL;
        const char *key;
        json_t *table = json_loads(output, 0, NULL), *node;
        json_object_foreach(json_object_get(table, "nodes"), key, node) {
                const char *host = json_string_value(json_object_get(node, "host")),
                           *status = json_string_value(json_object_get(node, "status"));
                if (host && (!status || !streq(status, "READY")) && strv_length(names) < NODES_MAX)
                        strv_push(&names, xasprintf("%s (%s)", host, status ?: "no status"));
        }
        json_decref(table);
        return strv_join(names, ", ");
}

static char *others(const Work *w) {
        _strv_ char **argv = command("nvidia-imex-ctl", "-c", IMEX_CONFIG, "-N", "-j", NULL);
        _cleanup_(child_result_done) ChildResult c = {};
        if (child_run_until(argv, now_usec() + TABLE_USEC, w->cancel_fd, TABLE_MAX, &c) < 0 || c.status != 0)
                return xstrdup("");
        _free_ char *list = nodes_not_ready(c.output);
        return *list ? xasprintf("; not ready per `nvidia-imex-ctl -N`: %s", list) : xstrdup("");
}

static int not_ready(Work *w, const char *answer) {
        _free_ char *nodes = others(w);
        _cleanup_(text_done) Text t = {};
        text_add_shown(&t, answer, strlen(answer), SHOWN_MAX, '"');
        return work_fail(w, -ETIMEDOUT, CAUSE_IMEX,
                         "IMEX is not ready; its last answer was \"%s\"%s. Every node of "
                         "spec.accelerator.nvidia.imex.nodes must run IMEX with the same list, and reach "
                         "TCP port 50000 on the others (security group); /var/log/nvidia-imex.log shows more",
                         t.data ?: "", nodes);
}

int imex_work(Work *w) {
        uint64_t patience = work_patience(w);
        for (bool asked = false;; asked = true) {
                _free_ char *answer = NULL;
                int r = ask_daemon(w, &answer);
                if (r < 0)
                        return r;
                if (streq(answer, "READY"))
                        return asked;
                if (now_usec() >= patience)
                        return not_ready(w, answer);
                work_progress(w, "waiting for IMEX to be ready; its answer is %s", answer);
                if (!work_pause(w, ASK_USEC))
                        return work_fail(w, -ECANCELED, CAUSE_IMEX, "stopped while waiting for IMEX; its "
                                                                    "answer was %s", answer);
        }
}
