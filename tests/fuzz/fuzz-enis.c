/* SPDX-License-Identifier: Apache-2.0
 * Answers of the metadata service about interfaces → Enis, and again from the kept snapshot. The input is
 * lines "KEY VALUE", answers to the paths that end with KEY, with "|" for line ends. As JSON it is a
 * foreign snapshot. */
#include "nic/enis.h"
#include "base/str.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct Imds { const char *text; unsigned requests; };

void imds_forget(Imds *i, const char *path) {
        (void)i, (void)path;
}

int imds_get(Imds *i, const char *path, char **ret, size_t *ret_size, Diag *diag) {
        (void)diag;
        i->requests++;
        for (const char *line = i->text, *end; *line; line = end + (*end == '\n')) {
                end = line + strcspn(line, "\n");
                size_t n = strcspn(line, " \n");
                _free_ char *key = xstrndup(line, n);
                if (n == 0 || line + n >= end || !endswith(path, key))
                        continue;
                *ret = xstrndup(line + n + 1, (size_t)(end - line) - n - 1);
                *ret_size = strlen(*ret);
                for (char *c = *ret; *c; c++)
                        if (*c == '|' || *c == '~')
                                *c = *c == '|' ? '\n' : '\0';
                return 0;
        }
        return -ENOENT;
}

static void check_words(char *const *v, bool prefixes) {
        for (; v && *v; v++)
                if (!**v || strspn(*v, "0123456789abcdef.:/") != strlen(*v) || !strchr(*v, '/') == prefixes)
                        abort();
}

static void check(const Enis *e) {
        if (e->instance_id && (!*e->instance_id || strpbrk(e->instance_id, "/. \n")))
                abort();
        if (e->primary && strlen(e->primary) != 17)
                abort();
        for (size_t i = 0; i < e->n; i++) {
                const Eni *eni = &e->items[i];
                if (strlen(eni->mac) != 17 || eni_find(e, eni->mac) != eni || eni->card < -1 ||
                    eni->card > 255 || eni->device < -1 || eni->device > 255 ||
                    (i > 0 && strcmp(e->items[i - 1].mac, eni->mac) >= 0))
                        abort();
                check_words(eni->ipv4s, false);
                check_words(eni->ipv6s, false);
                check_words(eni->ipv4_prefixes, true);
                check_words(eni->ipv6_prefixes, true);
        }
}

/* The snapshot keeps all that was known. */
static void keep(const Enis *e) {
        _cleanup_(enis_done) Enis again = {};
        json_t *kept = enis_to_json(e), *second = NULL;
        check(e);
        enis_from_json(kept, &again);
        check(&again);
        second = enis_to_json(&again);
        if (!json_equal(kept, second))
                abort();
        json_decref(kept);
        json_decref(second);
}

static void ask(const char *text, const EniQuestion *question) {
        _cleanup_(enis_done) Enis enis = {};
        for (unsigned n = 0; n < 2; n++) {
                _cleanup_(diag_done) Diag diag = {};
                Imds imds = { .text = text };
                int r = enis_ask(&imds, question, &enis, &diag);
                if ((r < 0) != (diag_first_error(&diag) != NULL))
                        abort();
                if (imds.requests > 4 + enis.n * 6)
                        abort();
        }
        /* without a primary interface IPv6 is not known either, and the snapshot does not keep that */
        if (enis.primary)
                keep(&enis);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char *again[] = { (char *)"0a:00:00:00:00:0b", NULL };
        _free_ char *text = xmemdup(data, size);
        if (strlen(text) == size) {
                ask(text, &(EniQuestion){ .again = again });
                ask(text, &(EniQuestion){ .cards = 1 });
                ask(text, &(EniQuestion){ .cards = 4, .again = again, .skip = again });
        }
        json_t *json = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
        _cleanup_(enis_done) Enis enis = {};
        enis_from_json(json, &enis);
        check(&enis);
        json_decref(json);
        return 0;
}
