/* SPDX-License-Identifier: Apache-2.0
 * Texts of an API server: a line of a watch, the body of an error, and a Node. */
#include "kube/internal.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        static const char boot_id[] = "11111111-2222-3333-4444-555555555555";
        _cleanup_(kube_node_done) KubeNode node = {};
        _cleanup_(text_done) Text body = {};
        char *why = NULL;
        int r = kube_event_parse((const char *)data, size, boot_id, &node, &why);
        if ((r == -EREMOTEIO) != (why != NULL) || (r < 0 && r != -EREMOTEIO && r != -EBADMSG))
                abort();
        if (r < 0 && (node.reason || node.message || node.state != KUBE_NODE_ABSENT))
                abort();
        text_add_bytes(&body, data, size);
        free(kube_status_message(&body));
        for (int found = 0; found < 2; found++) {
                _cleanup_(node_look_done) NodeLook look = {};
                r = node_look_parse(&body, found, "n", "nodestrap/unhealthy", &look);
                if ((r < 0 && r != -EBADMSG) || (look.there != (r == 0 && found)) || (!look.there && (look.taint || look.provider_id)))
                        abort();
        }
        free(why);
        return 0;
}
