/* SPDX-License-Identifier: Apache-2.0 */
/* Instance type + number of network interfaces → card, device, metric and route table of each, for a launch
 * template. AWS places the primary one as device 0 of card 0 and each other as device 1 of the next card
 * (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html). Not part of the plan id. */
#include "base/str.h"
#include "plan/planner.h"
#include <errno.h>

/* Room for interfaces with IP addresses. */
typedef struct Cards {
        unsigned n, step;               /* cards 0, step, 2 step, … take them */
        unsigned limit;                 /* per card; 0: not known */
        bool known;                     /* the number of cards is known */
} Cards;

/* EC2 gives the limit of the default card only; a type whose cards differ (P6e-GB200) is in no table. */
static Cards cards_of(const Host *host) {
        const InstanceType *t = host->type;
        unsigned n = network_cards_find(host->instance.type),
                 step = t && t->card_step > 0 ? (unsigned)t->card_step : 1;
        return (Cards) {
                .n = n > 0 ? (n + step - 1) / step : 1,
                .step = step,
                .limit = host->eni_limits_known ? host->max_enis : 0,
                .known = n > 0,
        };
}

static int refuse(const Cards *cards, const char *type, unsigned n, Diag *diag) {
        _free_ char *on = cards->n == 1 ? xstrdup("its network card")
                                        : xasprintf("each of %u network cards%s", cards->n,
                                                    cards->step > 1 ? " that take addresses" : "");
        if (cards->limit > 0)
                return diag_error_at(diag, -EINVAL, CAUSE_USAGE, NULL, "--interfaces",
                                     "%s has no room for %u: it takes %u, %u on %s; ask for fewer, or for "
                                     "another --instance-type",
                                     type, n, cards->n * cards->limit, cards->limit, on);
        return diag_error_at(diag, -EINVAL, CAUSE_USAGE, NULL, "--interfaces",
                             "the limit per network card of %s is not known: up to %u interfaces can be "
                             "placed, one on %s; ask for fewer than %u", type, cards->n, on, n);
}

static void show(json_t *places, Text *text, unsigned card, unsigned device) {
        bool primary = card == 0 && device == 0;
        unsigned metric = INTERFACE_METRIC(card, device), table = INTERFACE_TABLE(card, device);
        json_t *o = json_pack("{si si si sb}", "card", card, "device", device, "metric", metric, "rules",
                              !primary);
        if (!primary)
                json_object_set_new(o, "table", json_integer(table));
        json_array_append_new(places, o);
        text_add(text, "           card %2u, device %2u: metric %4u, ", card, device, metric);
        if (primary)
                text_add(text, "no table and no rules: the primary interface\n");
        else
                text_add(text, "table %5u, rules for each of its addresses\n", table);
}

static void show_all(Plan *plan, const Cards *cards, const char *type, unsigned n) {
        _cleanup_(text_done) Text text = {};
        json_t *places = json_array();
        text_add(&text, "%sinterfaces %u of %s, on network cards as AWS's guide places them\n",
                 plan->machine, n, type);
        /* round by round over the cards; device 0 of cards beyond the first comes second */
        for (unsigned i = 0; i < n; i++) {
                unsigned at = i % cards->n, round = i / cards->n;
                show(places, &text, at * cards->step,
                     at > 0 && round < 2 && cards->limit != 1 ? 1 - round : round);
        }
        RENEW(plan->machine, text_take(&text));
        json_object_set_new(plan->facts, "interfaces", places);
}

int plan_placement(Plan *plan, const Host *host, unsigned n, Diag *diag) {
        const char *type = host->instance.type;
        Cards cards = cards_of(host);
        if (!type || strv_contains(host->assumed, "instance.type"))
                return diag_error_at(diag, -EINVAL, CAUSE_USAGE, NULL, "--interfaces",
                                     "the type of this machine is not known; name it with --instance-type");
        if (n > cards.n * (cards.limit ?: 1))
                return refuse(&cards, type, n, diag);
        if (!cards.known)
                diag_warn(&plan->warnings, "network-cards-unknown",
                          "the number of network cards of %s is not known here: the plan shows its "
                          "interfaces on one card", type);
        show_all(plan, &cards, type, n);
        return 0;
}
