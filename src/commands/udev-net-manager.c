/* SPDX-License-Identifier: Apache-2.0
 * `nodestrap udev-net-manager`: a network interface came or went. facts → judge → plan (nic/net-event.h)
 * → apply. */
#include "commands/commands.h"
#include "commands/output.h"
#include "commands/run.h"

#include "apply/apply.h"
#include "base/log.h"
#include "base/stop.h"
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

static size_t count_removed(const Results *r) {
        size_t n = 0;
        for (size_t i = 0; i < r->n; i++)
                n += r->items[i].outcome == OUTCOME_DONE && r->items[i].action->type == ACTION_REMOVE_FILE &&
                     startswith(r->items[i].action->target, NETWORK_DIR "/");
        return n;
}

static void tell(const NetEvent *e, const Results *r) {
        const Interface *i = e->facts.interface;
        const Eni *eni = eni_find(&e->snapshot.enis, i->mac);
        Manager manager = net_event_manager(e, i);
        size_t done = results_count(r, OUTCOME_DONE), removed = count_removed(r);
        if (manager == MANAGER_CNI && removed > 0)
                log_info("%s (%s): the CNI's; what systemd-networkd managed by this name is removed (%zu "
                         "files and links).",
                         e->name, i->mac, removed);
        else if (manager == MANAGER_CNI)
                log_info("%s (%s): the CNI's; nothing is configured here.", e->name, i->mac);
        else if (streq(i->mac, e->snapshot.enis.primary))
                log_info("%s (%s): systemd-networkd's, the primary one; %zu done, %zu unchanged.", e->name,
                         i->mac, done, results_count(r, OUTCOME_UNCHANGED));
        else if (eni)
                log_info("%s (%s): systemd-networkd's, card %d, device %d; %zu done, %zu unchanged.", e->name,
                         i->mac, MAX(eni->card, 0), eni->device, done, results_count(r, OUTCOME_UNCHANGED));
}

static int check_words(const Options *o, Diag *diag) {
        if (!o->interface || !interface_name_is_valid(o->interface))
                return diag_error(diag, -EINVAL, CAUSE_USAGE,
                                  "%s: udev-net-manager takes --action add or remove, and --interface NAME",
                                  o->interface && *o->interface ? "no interface can have that name"
                                                                : "the name of the interface is missing");
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
