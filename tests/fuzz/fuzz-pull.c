/* SPDX-License-Identifier: Apache-2.0
 * Answers of containerd and of a credential provider to nodestrap-pre-pull. A login has both parts, and a
 * message for people is one line. */
#include "pull/pull.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(cri_reply_done) CriReply reply = { .status = -1 };
        _cleanup_(login_done) Login login = {};
        _free_ char *text = xmemdup(data, size), *repository = image_repository(text), *why = NULL;
        uint64_t bytes = 0;
        int r = cri_image_status(data, size, &bytes);
        if (r != 0 && r != 1 && r != -EBADMSG)
                abort();
        cri_take_header(&reply, text, strlen(text));
        if (reply.status < -1)
                abort();
        (void)!image_matches(text, repository);
        if (login_parse(text, "v1", "a.b/c", &login, &why) > 0 && (!login.username || !login.password))
                abort();
        _free_ char *shown = told(reply.message ?: text, &login);
        if (strpbrk(shown, "\n\r\033"))
                abort();
        return 0;
}
