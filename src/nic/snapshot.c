/* SPDX-License-Identifier: Apache-2.0
 * Snapshot ⇄ /run/nodestrap/interfaces.json. The boot id guards it, because its stamps are of one boot. */
#include "nic/enis.h"

#include "base/json.h"
#include "base/str.h"
#include "base/time.h"
#include "nic/nic.h"

#include <errno.h>

#define SNAPSHOT_LIMIT (4u << 20)

void snapshot_done(Snapshot *s) {
        enis_done(&s->enis);
        free(s->failure);
        *s = (Snapshot){};
}

/* A future instant is of another boot. */
static uint64_t stamp_get(const json_t *json, const char *key) {
        json_int_t usec = json_integer_value(json_object_get(json, key));
        return usec > 0 && (uint64_t)usec <= now_usec() ? (uint64_t)usec : 0;
}

/* Another root may have no boot id. */
static char *boot_name(const Root *root) {
        char *boot = NULL;
        return root_boot_id(root, &boot) < 0 ? xstrdup("") : boot;
}

void snapshot_read(const Root *root, Snapshot *ret, Diag *diag) {
        _free_ char *boot = boot_name(root), *text = NULL;
        json_error_t error = {};
        size_t size = 0;

        *ret = (Snapshot){};
        int r = root_read(root, SNAPSHOT_FILE, SNAPSHOT_LIMIT, &text, &size);
        if (r == -ENOENT)
                return;
        _cleanup_(json_decrefp) json_t *json = r < 0 ? NULL : json_loadb(text, size, 0, &error);
        if (!json_is_object(json)) {
                diag_warn(diag, "snapshot",
                          SNAPSHOT_FILE " cannot be read: %s; nodestrap asks the metadata service again",
                          r < 0  ? strerror(-r)
                          : json ? "not an object"
                                 : error.text);
                return;
        }
        if (!streq(json_get_text(json, "bootId"), boot))
                return;
        enis_from_json(json_object_get(json, "interfaces"), &ret->enis);
        ret->listed_usec = stamp_get(json, "listedUsec");
        ret->failed_usec = stamp_get(json, "failedUsec");
        ret->failure = json_copy_text(json, "failure");
}

void snapshot_write(const Root *root, const Snapshot *s, Diag *diag) {
        _free_ char *boot = boot_name(root), *text = NULL;
        _cleanup_(json_decrefp) json_t *json =
                json_pack("{sI sI so}", "listedUsec", (json_int_t)s->listed_usec, "failedUsec",
                          (json_int_t)s->failed_usec, "interfaces", enis_to_json(&s->enis));
        json_set_text(json, "bootId", boot);
        json_set_text(json, "failure", s->failure);
        text = json_text(json, 1, false);
        int r = root_replace_volatile(root, SNAPSHOT_FILE, text, strlen(text), 0600);
        if (r < 0)
                diag_warn(diag, "snapshot",
                          SNAPSHOT_FILE " cannot be written: %s; each interface asks the metadata service "
                          "itself",
                          strerror(-r));
}

static void note(Snapshot *s, int r, const Diag *found) {
        const Diagnostic *error = diag_first_error(found);
        free(s->failure);
        s->failed_usec = r < 0 ? now_usec() : 0;
        s->failure = r < 0 ? xstrdup(error ? error->text : strerror(-r)) : NULL;
}

/* A 404 is an answer, and the value may come later. enis_ask() complains of an invalid id. */
int snapshot_identify(Snapshot *s, Imds *imds, Diag *diag) {
        _free_ char *text = NULL;
        Diag found = {};
        int r = imds_get(imds, "meta-data/instance-id", &text, NULL, &found);
        _free_ char *id = r >= 0 ? str_strip(text) : NULL;
        if (id && !s->enis.instance_id && instance_id_is_valid(id))
                s->enis.instance_id = TAKE_PTR(id);
        r = r == -ENOENT ? 0 : r;
        note(s, r, &found);
        diag_move(diag, &found);
        return r;
}

int snapshot_ask(Snapshot *s, Imds *imds, const EniQuestion *question, Diag *diag) {
        Diag found = {};
        unsigned answers = s->enis.answers;
        bool list = enis_want_list(&s->enis, question), of_one = s->enis.primary && !list;
        int r = enis_ask(imds, question, &s->enis, &found);
        bool cut = r == -ETIMEDOUT && s->enis.answers > answers;
        of_one = of_one || (r == -EBADMSG && s->enis.primary);
        if (list)
                s->listed_usec = cut && enis_want_list(&s->enis, question) ? 0 : now_usec();
        if (r >= 0 || s->enis.answers > answers)
                note(s, 0, &found);
        else if (!of_one)
                note(s, r, &found);
        if (!cut) {
                diag_move(diag, &found);
                return r;
        }
        for (size_t i = 0; i < found.n; i++)
                if (found.items[i].warning)
                        diag_warn(diag, found.items[i].code, "%s", found.items[i].text);
        diag_done(&found);
        return 2;
}

void snapshot_drop(Snapshot *s, const char *mac) {
        const Eni *found = eni_find(&s->enis, mac);
        size_t i = found ? (size_t)(found - s->enis.items) : 0;
        if (!found)
                return;
        eni_done(&s->enis.items[i]);
        s->enis.n--;
        memmove(&s->enis.items[i], &s->enis.items[i + 1], (s->enis.n - i) * sizeof(Eni));
}
