/* SPDX-License-Identifier: Apache-2.0 */
/* Instance type + number of network interfaces → card, device, metric and route table of each, for a launch
 * template. AWS places the primary one as device 0 of card 0 and each other as device 1 of the next card
 * (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-acc-inst-types.html). Also network cards with EFA
 * → the rate of each and the GPUs near it. Neither is part of the plan id. */
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
                                     "%s has no room for %u interfaces: it takes %u, %u on %s; ask for "
                                     "fewer, or for another --instance-type",
                                     type, n, cards->n * cards->limit, cards->limit, on);
        return diag_error_at(diag, -EINVAL, CAUSE_USAGE, NULL, "--interfaces",
                             "the number of interfaces that a network card of %s takes is not known, so one "
                             "goes on %s; ask for at most %u", type, on, cards->n);
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
                text_add(text, "no route table and no rules: the primary interface\n");
        else
                text_add(text, "table %5u, rules for each of its addresses\n", table);
}

static void show_all(Plan *plan, const Cards *cards, const char *type, unsigned n) {
        _cleanup_(text_done) Text text = {};
        json_t *places = json_array();
        text_add(&text, "%sinterfaces %u of %s, on network cards as the AWS guide places them\n",
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

static bool type_is_known(const Host *host, const char *option, Diag *diag) {
        if (host->instance.type && !strv_contains(host->assumed, "instance.type"))
                return true;
        diag_error_at(diag, -EINVAL, CAUSE_USAGE, NULL, option,
                      "the type of this machine is not known; name it with --instance-type");
        return false;
}

int plan_placement(Plan *plan, const Host *host, unsigned n, Diag *diag) {
        const char *type = host->instance.type;
        Cards cards = cards_of(host);
        if (!type_is_known(host, "--interfaces", diag))
                return -EINVAL;
        if (n > cards.n * (cards.limit ?: 1))
                return refuse(&cards, type, n, diag);
        if (!cards.known)
                diag_warn(&plan->warnings, "network-cards-unknown",
                          "the number of network cards of %s is not known here: the plan shows its "
                          "interfaces on one card", type);
        show_all(plan, &cards, type, n);
        return 0;
}

/* ---- EFA ---- */

typedef struct EfaCards {
        const char *type;
        const NetworkCards *rows; size_t n_rows;
        bool taken[UINT8_MAX + 1];      /* by card */
        unsigned n;
        json_t *cards, *gpus;           /* of the facts */
        Text text, far;                 /* far: GPUs with no device nearby */
} EfaCards;

static bool has_card(const NetworkCards *row, uint64_t card) {
        return card >= row->first && card <= row->last && (card - row->first) % row->step == 0;
}

static const NetworkCards *row_of(const EfaCards *e, uint64_t card) {
        return FIND(row, e->rows, e->n_rows, has_card(row, card));
}

static int refuse_card(const EfaCards *e, uint64_t card, const char *why, Diag *diag) {
        unsigned lowest = UINT8_MAX, highest = 0;
        for (const NetworkCards *row = e->rows; row < e->rows + e->n_rows; row++)
                if (row->efa) {
                        lowest = MIN(lowest, row->first);
                        highest = MAX(highest, row->last);
                }
        return diag_error_at(diag, -EINVAL, CAUSE_USAGE, NULL, "--efa",
                             "network card %llu of %s %s; choose from %u to %u", (unsigned long long)card,
                             e->type, why, lowest, highest);
}

static int take_card(EfaCards *e, uint64_t card, Diag *diag) {
        const NetworkCards *row = row_of(e, card);
        if (!row)
                return refuse_card(e, card, "does not exist", diag);
        if (!row->efa)
                return refuse_card(e, card, "takes no EFA device", diag);
        if (e->taken[card])
                return refuse_card(e, card, "is listed twice, but takes only one EFA device", diag);
        e->taken[card] = true;
        e->n++;
        return 0;
}

/* "1,5-7" */
static int take_cards(EfaCards *e, const char *list, Diag *diag) {
        int r = 0;
        do {
                _free_ char *word = str_cut(&list, ",");
                char *dash = strchr(word, '-');
                uint64_t first = 0, last = 0;
                if (dash)
                        *dash++ = 0;
                if (parse_u64(word, &first) < 0 || parse_u64(dash ?: word, &last) < 0 || first > last)
                        return diag_error_at(diag, -EINVAL, CAUSE_USAGE, NULL, "--efa",
                                             "takes network cards, such as 1,5,9 or 0-7, not "
                                             "\"%s%s%s\"",
                                             word, dash ? "-" : "", dash ?: "");
                for (uint64_t card = first; r >= 0 && card <= last; card++)
                        r = take_card(e, card, diag);
        } while (r >= 0 && *list);
        return r;
}

static void show_card(EfaCards *e, unsigned card, bool placed, bool line) {
        const NetworkCards *row = row_of(e, card);
        json_t *o = json_pack("{si sb si}", "card", card, "ena", row->ena, "efaGbps", row->efa_gbps);
        if (row->ena_gbps > 0)
                json_object_set_new(o, "enaGbps", json_integer(row->ena_gbps));
        json_array_append_new(e->cards, o);
        if (!line)
                return;
        text_add(&e->text, "           card %2u: EFA up to %u Gbps", card, row->efa_gbps);
        if (row->ena_gbps > 0)
                text_add(&e->text, ", ENA up to %u", row->ena_gbps);
        else
                text_add(&e->text, row->ena ? ", or ENA" : ", no ENA");
        if (row->gpu >= 0)
                text_add(&e->text, ", near GPU %d\n", row->gpu);
        else
                text_add(&e->text, placed ? ", near no GPU\n" : "\n");
}

/* Does it lack a near device? */
static bool show_gpu(EfaCards *e, const NetworkCards *row) {
        json_t *near = json_array(), *has = json_array();
        _cleanup_(text_done) Text cards = {}, taken = {};
        for (unsigned card = row->first; card <= row->last; card += row->step) {
                text_add(&cards, "%s%u", card > row->first ? ", " : "", card);
                json_array_append_new(near, json_integer(card));
                if (!e->taken[card])
                        continue;
                text_add(&taken, "%s%u", taken.size > 0 ? ", " : "", card);
                json_array_append_new(has, json_integer(card));
        }
        bool far = taken.size == 0;
        text_add(&e->text, "           GPU %d, near cards %s: %s%s\n", row->gpu, cards.data,
                 far ? "no EFA" : "EFA on ", taken.data ?: "");
        if (far)
                text_add(&e->far, "%sGPU %d (network cards %s)", e->far.size > 0 ? ", " : "", row->gpu,
                         cards.data);
        json_array_append_new(e->gpus,
                              json_pack("{si so so}", "gpu", row->gpu, "nearCards", near, "efaOn", has));
        return far;
}

/* lines: even if no GPU data is public. far: as in plan_cards_here() */
static bool show_cards(Plan *plan, EfaCards *e, bool lines, char *const *far) {
        bool placed = ANY(row, e->rows, e->n_rows, row->gpu >= 0);
        unsigned n_far = 0;
        e->cards = json_array();
        e->gpus = json_array();
        text_add(&e->text, "%sEFA        %u device%s of %s, by network card\n", plan->machine, e->n,
                 e->n == 1 ? "" : "s", e->type);
        for (unsigned card = 0; card < ARRAY_SIZE(e->taken); card++)
                if (e->taken[card])
                        show_card(e, card, placed, placed || lines);
        for (const NetworkCards *row = e->rows; row < e->rows + e->n_rows; row++)
                if (row->gpu >= 0)
                        n_far += show_gpu(e, row);
        if (!placed)
                text_add(&e->text,
                         "           AWS does not publish which GPU is near which of these cards\n");
        if (n_far > 0) {
                _free_ char *list = strv_length(far) == n_far ? strv_join(far, ", ") : NULL;
                diag_warn(&plan->warnings, "efa-far",
                          "no EFA device is near %s%s%s: data to other nodes takes a longer path. Add "
                          "an EFA interface on a network card near each of these GPUs",
                          e->far.data, list ? ", on PCI " : "", list ?: "");
        }
        RENEW(plan->machine, text_take(&e->text));
        text_done(&e->far);
        json_object_set_new(plan->facts, "efaCards", e->cards);
        if (placed)
                json_object_set_new(plan->facts, "efaGpus", e->gpus);
        else
                json_decref(e->gpus);
        return n_far > 0;
}

int plan_efa_cards(Plan *plan, const Host *host, const char *cards, Diag *diag) {
        EfaCards e = { .type = host->instance.type };
        if (!type_is_known(host, "--efa", diag))
                return -EINVAL;
        e.rows = network_cards_of(e.type, &e.n_rows);
        if (!e.rows)
                return diag_error_at(diag, -EINVAL, CAUSE_USAGE, NULL, "--efa",
                                     "no table lists the network cards of %s that take EFA: leave out "
                                     "--efa, or name another --instance-type", e.type);
        int r = take_cards(&e, cards, diag);
        if (r < 0)
                return r;
        (void)show_cards(plan, &e, true, NULL);
        return 0;
}

static void note_cards(Plan *plan, char *text) {
        RENEW(plan->machine, xasprintf("%sEFA        %s\n", plan->machine, text));
        free(text);
}

/* An interface with an address may be ENA alone, or with EFA: the number of devices on PCI decides. */
bool plan_cards_here(Plan *plan, const Host *host, char *const *far) {
        EfaCards e = { .type = host->instance.type };
        bool maybe[ARRAY_SIZE(e.taken)] = {};
        unsigned efa = host_efa(host), more = 0;
        if (host->n_cards == 0 || json_object_get(plan->facts, "efaCards"))
                return false;
        e.rows = network_cards_of(e.type, &e.n_rows);
        if (!e.rows)
                note_cards(plan, xasprintf("not checked for each network card: no table lists the network "
                                           "cards of %s", e.type));
        for (const CardUse *use = host->cards; e.rows && use < host->cards + host->n_cards; use++) {
                const NetworkCards *row = row_of(&e, use->card);
                if (!row) {
                        diag_warn(&plan->warnings, "network-cards-unknown",
                                  "the metadata service names network card %u, but the built-in table does "
                                  "not list it for %s. So the plan does not check which EFA "
                                  "devices are near which GPU", use->card, e.type);
                        return false;
                }
                *(use->addressed && row->ena ? &maybe[use->card] : &e.taken[use->card]) |= row->efa;
        }
        for (unsigned card = 0; card < ARRAY_SIZE(maybe); card++) {
                e.n += e.taken[card];
                more += maybe[card] && !e.taken[card];
        }
        for (unsigned card = 0; card < ARRAY_SIZE(maybe) && e.n + more == efa; card++)
                e.taken[card] |= maybe[card];
        if (e.rows && e.n != efa && e.n + more != efa)
                note_cards(plan, xasprintf("not checked for each network card: %u EFA devices on PCI, but "
                                           "the interfaces account for %u to %u", efa, e.n, e.n + more));
        else if (e.rows) {
                e.n = efa;
                return show_cards(plan, &e, false, far);
        }
        return false;
}
