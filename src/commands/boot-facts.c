/* SPDX-License-Identifier: Apache-2.0
 * Kept ⇄ /run/nodestrap/facts.json, with the boot id: below --root or in an image the file may be older. */
#include "commands/sources.h"

#include "base/hash.h"
#include "base/str.h"

#include <errno.h>

#define KEPT_LIMIT (8u << 20)

void kept_done(Kept *k) {
        json_decref(k->answers);
        json_decref(k->status);
        *k = (Kept){};
}

void spec_digest(const json_t *spec, char ret[static 65]) {
        _free_ char *text = json_dumps(spec, JSON_COMPACT | JSON_SORT_KEYS);
        sha256_hex(text, strlen(text), ret);
}

int kept_read(const Root *root, Kept *ret) {
        _free_ char *boot = NULL, *text = NULL;
        const char *there = NULL, *spec = NULL;
        json_t *answers = NULL, *status = NULL;
        size_t size = 0;

        int r = root_boot_id(root, &boot);
        THEN(r, root_read(root, KEPT_FILE, KEPT_LIMIT, &text, &size));
        if (r < 0)
                return -ENOENT;
        _cleanup_(json_decrefp) json_t *json = json_loadb(text, size, 0, NULL);
        if (!json ||
            json_unpack(json, "{s:s, s:s, s:o, s:o}", "bootId", &there, "spec", &spec, "answers", &answers,
                        "status", &status) < 0 ||
            !streq(there, boot) || strlen(spec) != 64)
                return -ENOENT;
        *ret = (Kept){ .answers = json_is_object(answers) ? json_incref(answers) : NULL,
                       .status = json_is_object(status) ? json_incref(status) : NULL };
        memcpy(ret->spec, spec, sizeof ret->spec);
        return 0;
}

int kept_write(const Root *root, const Kept *kept) {
        _free_ char *boot = NULL, *text = NULL;
        int r = root_boot_id(root, &boot);
        if (r < 0)
                return r;
        _cleanup_(json_decrefp) json_t *json =
                json_pack("{s:s, s:s, s:O?, s:O?}", "bootId", boot, "spec", kept->spec, "answers",
                          kept->answers, "status", kept->status);
        text = json_dumps(json, JSON_COMPACT);
        return root_replace_volatile(root, KEPT_FILE, text, strlen(text), 0600);
}
