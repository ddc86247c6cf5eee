/* SPDX-License-Identifier: Apache-2.0 */
#include "health/health.h"

#include "base/str.h"

DEFINE_STRING_TABLE(health_look, HealthLook, "fabric", "recovery", "memory", "nvlink", "clocks", "pcie",
                    "kernel-log", "efa", "gpudirect", "gpudirect-required", "repair-condition")

void findings_done(Findings *f) {
        for (size_t i = 0; i < f->n; i++)
                FREE_ALL(f->items[i].address, f->items[i].text);
        free(f->items);
        *f = (Findings){};
}

void finding_add(Findings *f, const char *word, const char *address, bool unusable, const char *format, ...) {
        char *text = FORMATTED(format);
        *APPEND(f->items, f->n) = (Finding){
                .word = word, .address = xstrdup(address), .text = text, .unusable = unusable
        };
}

/* Reasons of the EKS node monitoring agent, by which auto repair and Karpenter choose the action
 * (aws/eks-node-monitoring-agent:docs/node-health-issues.adoc, aws/karpenter-provider-aws:
 * pkg/cloudprovider/cloudprovider.go, RepairPolicies()). Fatal Xids 144 to 150 mean NVLink. The rest is what
 * the driver demands: Xid 154 reports that. */
char *finding_reason(const Finding *f) {
        if (!f->unusable || streq(f->word, "peer-memory"))
                return NULL;
        unsigned xid = f->xid > 0 ? f->xid : streq(f->word, "off-the-bus") ? 79 : 154;
        return xid >= 144 && xid <= 150 ? xstrdup("NvidiaNVLinkError") : xasprintf("NvidiaXID%uError", xid);
}

void findings_excuse(Findings *f, const char *address) {
        for (Finding *one = f->items; one < f->items + f->n; one++) {
                if (!one->unusable || !streq(one->address, address))
                        continue;
                RENEW(one->text, xasprintf("%.*s. The driver asks for no action now; replace the instance if "
                                           "this happens again",
                                           (int)(one->fact ?: strlen(one->text)), one->text));
                one->unusable = false;
        }
}
