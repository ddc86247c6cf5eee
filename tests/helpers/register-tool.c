/* SPDX-License-Identifier: Apache-2.0
 * check-node of a machine whose root is not a running system: may its kubelet register with a taint for
 * CODE?
 * usage: register-tool ROOT INSTANCE-ID CODE SECONDS
 * It prints "ok" or "CAUSE: SENTENCE", "found JSON" for a finding, and "warning CODE: SENTENCE". The exit
 * status is that of the cause. */
#include "apply/device.h"

#include "base/log.h"
#include "base/str.h"
#include "base/time.h"

#include <jansson.h>

int main(int argc, char **argv) {
        _cleanup_(root_freep) Root *root = NULL;
        Action action = { .id = (char *)"check-node:" TAINT_KEY, .type = ACTION_CHECK_NODE, .target = (char *)TAINT_KEY };
        uint64_t seconds;
        if (argc != 5 || root_new(argv[1], &root) < 0 || parse_u64(argv[4], &seconds) < 0)
                return EXIT_USAGE;
        action.with = argv[2];
        Work w = { .root = root, .action = &action, .deadline_usec = now_usec() + seconds * USEC_PER_SEC, .cancel_fd = -1 };
        w.given = command(argv[3], "some-step:there", "", NULL);
        int r = register_work(&w);
        if (r < 0)
                printf("%s: %s\n", cause_word(w.cause), w.text);
        else
                puts("ok");
        char *found = json_dumps(w.found, JSON_SORT_KEYS);
        if (found)
                printf("found %s\n", found);
        for (size_t i = 0; i < w.warnings.n; i++)
                printf("warning %s: %s\n", w.warnings.items[i].code, w.warnings.items[i].text);
        int code = r < 0 ? (int)cause_exit_code(w.cause) : EXIT_DONE;
        free(found);
        free(w.text);
        json_decref(w.found);
        strv_free(w.given);
        diag_done(&w.warnings);
        return code;
}
