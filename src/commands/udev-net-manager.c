/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap udev-net-manager`: an interface came or went. facts → judge → plan (nic/net-event.h) →
 * apply. */
#include "commands/output.h"
#include "commands/run.h"

#include "apply/apply.h"
#include "base/log.h"
#include "base/str.h"
#include "base/time.h"
#include "nic/net-event.h"

#include <errno.h>

static int carry_out(Run *run) {
        diag_move(&run->diag, &run->plan->warnings);
        if (run->options.dry_run) {
                _free_ char *text = plan_to_text(run->plan);
                return output_text(text, &run->diag);
        }
        run->step = "apply";
        run->applied = true;
        return apply_plan(run->root, run->plan, run->results, &run->diag);
}

static void tell(const NetEvent *e, const Results *r) {
        const Interface *i = e->facts.interface;
        const Eni *eni = eni_find(&e->snapshot.enis, i->mac);
        Manager manager = net_event_manager(e, i);
        size_t done = results_count(r, OUTCOME_DONE), same = results_count(r, OUTCOME_UNCHANGED), removed = 0;
        for (size_t k = 0; k < r->n; k++)
                removed += r->items[k].outcome == OUTCOME_DONE &&
                           r->items[k].action->type == ACTION_REMOVE_FILE &&
                           startswith(r->items[k].action->target, NETWORK_DIR "/");
        if (manager == MANAGER_CNI)
                log_info("%s (%s): the CNI manages it; removed configuration files of systemd-networkd: %zu.",
                         e->name, i->mac, removed);
        else if (streq(i->mac, e->snapshot.enis.primary))
                log_info("%s (%s): systemd-networkd manages it (primary interface): %zu steps done, %zu "
                         "unchanged.",
                         e->name, i->mac, done, same);
        else if (eni)
                log_info("%s (%s): systemd-networkd manages it (card %d, device %d): %zu steps done, %zu "
                         "unchanged.",
                         e->name, i->mac, MAX(eni->card, 0), eni->device, done, same);
}

static int check_words(const Options *o, Diag *diag) {
        if (!o->interface || !interface_name_is_valid(o->interface))
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "--interface %s; give --action add or remove, and --interface NAME",
                                  o->interface && *o->interface ? "is not the name of an interface"
                                                                : "is missing");
        if (!o->action || (!streq(o->action, "add") && !streq(o->action, "remove")))
                return diag_error(diag, -EINVAL, CAUSE_USAGE, "--action takes add or remove%s%s%s",
                                  o->action ? ", not \"" : "", o->action ?: "", o->action ? "\"" : "");
        return 0;
}

int command_udev_net_manager(Run *run) {
        const Options *o = &run->options;
        _cleanup_(net_event_done) NetEvent e = { .root = run->root,
                                                 .name = o->interface,
                                                 .dry_run = o->dry_run,
                                                 .diag = &run->diag,
                                                 .begin_usec = now_usec() };
        int r = check_words(o, &run->diag);
        if (r < 0)
                return r;
        if (root_is_host(run->root) && geteuid() != 0 && !o->dry_run)
                return diag_error(&run->diag, -EPERM, CAUSE_USAGE,
                                  "udev-net-manager changes the machine and needs root");
        stop_catch();
        run->step = "interface";
        bool removal = streq(o->action, "remove");
        r = removal ? net_event_plan_removal(&e, &run->plan) : net_event_plan_addition(&e, &run->plan);
        if (r < 0)
                return r;
        if (!run->plan) {
                log_info("%s (%s) is left alone: %s.", e.name, e.facts.interface->mac, e.why ?: "");
                return 0;
        }
        r = carry_out(run);
        if (r >= 0 && !removal && !o->dry_run)
                tell(&e, run->results);
        return r;
}
