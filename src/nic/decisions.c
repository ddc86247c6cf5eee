/* SPDX-License-Identifier: Apache-2.0
 * Earlier decisions about interfaces: files below /etc, so that a reboot changes nothing. nodeadm keeps one
 * for each name, and trusts it after the name has moved to another interface. So nodestrap adds one for each
 * MAC. It reads both, because either program may have booted the node. */
#include "nic/nic.h"

#include "base/json.h"
#include "base/str.h"

#include <errno.h>

#define BY_MAC   "by-mac"
#define FILE_MAX 4096
#define NAME_MAX_BYTES 15       /* IFNAMSIZ without its NUL */

DEFINE_STRING_TABLE(manager, Manager, "", "io.systemd.Network", "cni")

void decision_done(Decision *d) {
        FREE_ALL(d->mac, d->name);
        *d = (Decision){};
}

void decisions_done(Decisions *d) {
        for (size_t i = 0; i < d->n; i++)
                decision_done(&d->items[i]);
        free(d->items);
        *d = (Decisions){};
}

bool instance_id_is_valid(const char *id) {
        size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-");
        return n > 0 && n <= 64 && !id[n] && !streq(id, BY_MAC);
}

/* Like the kernel (dev_valid_name() of net/core/dev.c), but only printable ASCII. */
bool interface_name_is_valid(const char *name) {
        size_t n = strlen(name);
        for (const char *c = name; *c; c++)
                if (*c <= ' ' || *c > '~' || *c == '/' || *c == ':')
                        return false;
        return n > 0 && n <= NAME_MAX_BYTES && !streq(name, ".") && !streq(name, "..");
}

bool mac_is_valid(const char *mac) {
        for (size_t i = 0; i < 17; i++)
                if (i % 3 == 2 ? mac[i] != ':' : hex_digit(mac[i]) < 0 || (mac[i] >= 'A' && mac[i] <= 'F'))
                        return false;
        return !mac[17];
}

/* Callers check the words; an unchecked one stays below the folder anyway. */
static char *component(const char *word) {
        char *c = xstrdup(word);
        for (char *slash = c; (slash = strchr(slash, '/'));)
                *slash = '_';
        if (*c == '.')
                *c = '_';
        return c;
}

static char *decision_path(const char *folder, const char *instance_id, const char *word) {
        _free_ char *id = component(instance_id), *file = component(word);
        return xasprintf("%s/%s/%s", folder, id, file);
}

char *decision_name_path(const char *instance_id, const char *name) {
        return decision_path(DECISIONS_DIR, instance_id, name);
}

char *decision_mac_path(const char *instance_id, const char *mac) {
        return decision_path(DECISIONS_DIR "/" BY_MAC, instance_id, mac);
}

static int parse_object(const char *text, size_t size, Decision *ret) {
        _cleanup_(json_decrefp) json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
        _free_ char *mac = str_lower(json_get_text(json, "mac"));
        const char *name = json_get_text(json, "interface");
        int manager = manager_from_string(json_get_text(json, "manager"));
        if (manager <= MANAGER_NONE || (*mac && !mac_is_valid(mac)) ||
            (*name && !interface_name_is_valid(name)))
                return -EBADMSG;
        *ret = (Decision){ .manager = (Manager)manager, .json = true };
        ret->mac = *mac ? TAKE_PTR(mac) : NULL;
        ret->name = *name ? xstrdup(name) : NULL;
        return 0;
}

int decision_parse(const char *text, size_t size, Decision *ret) {
        _free_ char *copy = xstrndup(text, size), *word = str_strip(copy);
        if (strlen(copy) != size)
                return -EBADMSG;
        if (*word == '{')
                return parse_object(word, strlen(word), ret);
        int manager = manager_from_string(word);
        if (manager <= MANAGER_NONE)
                return -EBADMSG;
        *ret = (Decision){ .manager = (Manager)manager };
        return 0;
}

static void warn_of(Diag *diag, const char *path, const char *why) {
        _cleanup_(text_done) Text shown = {};
        text_add_shown(&shown, path, strlen(path), 200, 0);
        diag_warn(diag, "interface-decision",
                  "%s is ignored: %s; nodestrap decides again who manages the interface. Remove the file: "
                  "rm %s", shown.data, why, shown.data);
}

static int read_decision(const Root *root, const char *path, Decision *ret, Diag *diag) {
        _free_ char *text = NULL;
        size_t size = 0;
        int r = root_read(root, path, FILE_MAX, &text, &size);
        if (r < 0) {
                if (r != -ENOENT)       /* it has just gone */
                        warn_of(diag, path, strerror(-r));
                return r;
        }
        r = decision_parse(text, size, ret);
        if (r < 0)
                warn_of(diag, path, "it holds neither io.systemd.Network nor cni");
        return r;
}

static void add_decision(Decisions *to, Decision *d) {
        *APPEND(to->items, to->n) = *d;
        *d = (Decision){};
}

static void add_by_mac(Decisions *to, const char *path, const char *mac, Decision *d, Diag *diag) {
        if (!mac_is_valid(mac) || !d->name) {
                warn_of(diag, path, mac_is_valid(mac) ? "it names no interface" : "its name is not a MAC");
                return;
        }
        RENEW(d->mac, xstrdup(mac));
        d->json = false;                /* in the file by name, json tells the form of that file */
        add_decision(to, d);
}

/* A bare word is from the MAC whose own file names this interface. */
static void add_by_name(Decisions *to, const char *path, const char *name, Decision *d, Diag *diag) {
        if (!interface_name_is_valid(name)) {
                warn_of(diag, path, "its name is not a valid interface name");
                return;
        }
        Decision *own = FIND(k, to->items, to->n,
                             k->mac && streq(k->name, name) && (!d->mac || streq(d->mac, k->mac)));
        if (own) {
                own->json = d->json;
                return;
        }
        RENEW(d->name, xstrdup(name));
        add_decision(to, d);
}

typedef void (*AddDecision)(Decisions *to, const char *path, const char *name, Decision *d, Diag *diag);

static int read_folder(const Root *root, const char *folder, AddDecision add, Decisions *to, Diag *diag) {
        _strv_ char **names = NULL;
        int r = root_list(root, folder, &names);
        if (r < 0 && r != -ENOENT)
                return diag_error(diag, r, CAUSE_INTERFACE,
                                  "%s, the directory of decisions about interfaces, cannot be read: "
                                  "%s", folder,
                                  strerror(-r));
        STRV_FOREACH(name, names) {
                _free_ char *path = xasprintf("%s/%s", folder, *name);
                _cleanup_(decision_done) Decision d = {};
                if (**name == '.')      /* a killed run left it */
                        continue;
                if (read_decision(root, path, &d, diag) >= 0)
                        add(to, path, *name, &d, diag);
        }
        return 0;
}

int decisions_read(const Root *root, const char *instance_id, Decisions *ret, Diag *diag) {
        if (!instance_id_is_valid(instance_id))
                return diag_error(diag, -EINVAL, CAUSE_INTERFACE,
                                  "the instance id from the metadata service does not look like "
                                  "i-0123456789abcdef0");
        _free_ char *names = xasprintf(DECISIONS_DIR "/%s", instance_id),
                    *macs = xasprintf(DECISIONS_DIR "/" BY_MAC "/%s", instance_id);
        *ret = (Decisions){};
        int r = read_folder(root, macs, add_by_mac, ret, diag);
        THEN(r, read_folder(root, names, add_by_name, ret, diag));
        if (r < 0)
                decisions_done(ret);
        return r;
}

const Decision *decision_find(const Decisions *d, const char *mac, const char *name) {
        return FIND(k, d->items, d->n, k->mac && streq(k->mac, mac))
                       ?: FIND(k, d->items, d->n, !k->mac && streq(k->name, name));
}
