/* SPDX-License-Identifier: Apache-2.0
 * Links, interfaces, decisions → a sentence for each problem. As the boot-hook of nodeadm
 * (awslabs/amazon-eks-ami:nodeadm/internal/system/networking.go), but by MAC and not by name, and without
 * decisions about interfaces that this instance no longer has. */
#include "nic/plan/links.h"

#include "base/str.h"

#define UNIT        "nodestrap-udev-net-manager@"

typedef enum Want { WANT_UNMANAGED, WANT_PRIMARY, WANT_DECIDED, WANT_DECISION } Want;

/* For a moment, networkd still lists an interface that went, while another has its name and MAC. */
static const Link *link_of(const Links *links, const Interface *i) {
        return FIND(l, links->items, links->n,
                    streq(l->name, i->name) && (!l->index || l->index == i->index));
}

typedef enum Origin { ORIGIN_OURS, ORIGIN_DEFAULT, ORIGIN_FOREIGN } Origin;

static char *link_own_file(const char *name) {
        return xasprintf(NETWORK_DIR "/70-eks-%s.network", name);
}

/* Of all files that match a link the first name wins, in any directory; for one name, /etc does
 * (systemd.network(5)). A later one, as 80-ec2.network of the image, counts until networkd reads ours. */
static Origin link_origin(const Link *link) {
        _free_ char *own = link_own_file(link->name);
        const char *slash = link->file ? strrchr(link->file, '/') : NULL;
        if (!slash || streq(link->file, own))
                return ORIGIN_OURS;
        return strcmp(slash, strrchr(own, '/')) > 0 ? ORIGIN_DEFAULT : ORIGIN_FOREIGN;
}

static bool want_is_ours(Want want) {
        return want == WANT_PRIMARY || want == WANT_DECIDED;
}

/* "configuring, no-carrier" */
static char *link_state(const Link *link) {
        if (!link)
                return xstrdup("not known to systemd-networkd");
        return xasprintf("%s%s%s%s%s", *link->setup ? link->setup : "in an unknown state",
                         *link->operational ? ", " : "", link->operational, link->file ? " by " : "",
                         link->file ?: "");
}

/* EC2 gives each interface an address, except those for EFA alone. One without an address has no manager. */
static bool interface_is_ignored(const LinkFacts *f, const Interface *i) {
        const Eni *eni = eni_find(f->enis, i->mac);
        return f->settled && i->since_usec <= f->settled_usec && eni && eni->asked_usec && !eni->ipv4s &&
               !eni->ipv6s;
}

/* A VLAN or bridge has the MAC of an interface, but no decision. */
static Want interface_want(const LinkFacts *f, const Interface *i) {
        if (!i->mac || interface_by_mac(f->interfaces, i->mac) != i)
                return WANT_UNMANAGED;
        if (streq(i->mac, f->enis->primary))
                return WANT_PRIMARY;
        const Decision *d = decision_find(f->decisions, i->mac, i->name);
        Manager manager = d ? d->manager : MANAGER_NONE;
        if (manager == MANAGER_NETWORKD)
                return WANT_DECIDED;
        return manager == MANAGER_NONE && i->ours && !interface_is_ignored(f, i) ? WANT_DECISION
                                                                                      : WANT_UNMANAGED;
}

/* networkd does not manage a link that it does not know. */
static bool link_is_ready(const Link *link, Want want) {
        if (want == WANT_UNMANAGED)
                return !link || streq(link->setup, "unmanaged");
        return want_is_ours(want) && link && streq(link->setup, "configured") &&
               link_origin(link) != ORIGIN_DEFAULT;
}

/* systemd-escape(1) has "\\x2d" for "-", so the shell needs quotes. */
static char *unit_of(const char *name) {
        Text t = {};
        for (const char *c = name; *c; c++)
                if (*c == '-')
                        text_add(&t, "\\x2d");
                else
                        text_add(&t, "%c", *c);
        _free_ char *instance = text_take(&t);
        const char *quote = strchr(name, '-') ? "'" : "";
        return xasprintf("%s" UNIT "%s%s", quote, instance, quote);
}

static char *link_sentence(const Link *link, const char *name, const char *mac, Want want) {
        bool early = link && link_origin(link) == ORIGIN_DEFAULT;
        _free_ char *state = link_state(link), *by = early ? link_own_file(name) : xstrdup(""),
                    *unit = unit_of(name);
        _free_ char *who = mac ? xasprintf("%s (%s)", name, mac) : xstrdup(name);
        if (want == WANT_DECISION)
                return xasprintf("%s is not ready: its unit has left no decision; see journalctl -u "
                                 "%s", who, unit);
        if (want == WANT_UNMANAGED)
                return xasprintf("%s is %s, instead of unmanaged; `networkctl status %s` names the file "
                                 "that makes it so",
                                 who, state, name);
        return xasprintf("%s, %s, is %s, instead of configured%s%s; see `networkctl status %s` and "
                         "journalctl -u systemd-networkd",
                         who, want == WANT_PRIMARY ? "the primary interface" : "decided for systemd-networkd",
                         state, early ? " by " : "", by, name);
}

static char *foreign_sentence(const Link *link) {
        return xasprintf("%s is configured by %s, which comes before 70-eks-%s.network; remove the former "
                         "from the image, or have it match other interfaces (systemd.network(5)). Until "
                         "then %s lacks the MTU, metric, table and rules of nodestrap",
                         link->name, link->file, link->name, link->name);
}

static void judge_link(const Link *link, const char *name, const char *mac, Want want, char ***sentences) {
        if (!link_is_ready(link, want))
                strv_push(sentences, link_sentence(link, name, mac, want));
}

/* Interfaces that the metadata lists and the kernel lacks. */
static void judge_missing(const LinkFacts *f, char ***sentences) {
        if (!interface_by_mac(f->interfaces, f->enis->primary))
                strv_push(sentences,
                          xasprintf("the primary interface (%s) has not appeared; see dmesg, and compare "
                                    "/sys/class/net/*/address",
                                    f->enis->primary));
        for (size_t i = 0; i < f->decisions->n; i++) {
                const Decision *d = &f->decisions->items[i];
                if (d->manager != MANAGER_NETWORKD || !d->mac || streq(d->mac, f->enis->primary) ||
                    !eni_find(f->enis, d->mac) || interface_by_mac(f->interfaces, d->mac))
                        continue;
                strv_push(sentences,
                          xasprintf("%s (%s), decided for systemd-networkd, has not appeared; see dmesg",
                                    d->name ?: "an interface", d->mac));
        }
}

/* Links that networkd knows and /sys lacks: only by name. */
static Want stray_want(const LinkFacts *f, const char *name) {
        const Decision *d = decision_find(f->decisions, "", name);
        return d && d->manager == MANAGER_NETWORKD ? WANT_DECIDED : WANT_UNMANAGED;
}

char **links_find_unready(const LinkFacts *f) {
        char **sentences = NULL;
        for (size_t i = 0; i < f->interfaces->n; i++) {
                const Interface *one = &f->interfaces->items[i];
                judge_link(link_of(f->links, one), one->name, one->mac, interface_want(f, one), &sentences);
        }
        judge_missing(f, &sentences);
        for (size_t i = 0; i < f->links->n; i++) {
                const Link *link = &f->links->items[i];
                if (!interface_by_name(f->interfaces, link->name))
                        judge_link(link, link->name, NULL, stray_want(f, link->name), &sentences);
        }
        return sentences;
}

char **links_find_foreign(const LinkFacts *f) {
        char **sentences = NULL;
        for (size_t i = 0; i < f->interfaces->n; i++) {
                const Interface *one = &f->interfaces->items[i];
                const Link *link = link_of(f->links, one);
                if (link && want_is_ours(interface_want(f, one)) && streq(link->setup, "configured") &&
                    link_origin(link) == ORIGIN_FOREIGN)
                        strv_push(&sentences, foreign_sentence(link));
        }
        return sentences;
}
