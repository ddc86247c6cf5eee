/* SPDX-License-Identifier: Apache-2.0
 * Members in memory → a .tar.gz. Every byte goes through secrets_scrub(), even if masked before: one
 * place to trust. */
#include "report/bundle.h"

#include "base/archive.h"
#include "base/time.h"
#include "report/status.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#define BUNDLE_MAX  (96U << 20)                 /* unpacked */
#define BUNDLE_USEC (90 * USEC_PER_SEC)

static char *host_name(const Root *root) {
        char *host = status_host(root);
        for (char *p = host; *p; p++)
                if (!isalnum((unsigned char)*p) && (*p != '.' || p == host))
                        *p = '-';
        if (!*host)
                RENEW(host, xstrdup("unknown"));
        return host;
}

void bundle_begin(Bundle *b, const Root *root) {
        _free_ char *host = host_name(root);
        char when[32];
        time_t now = time(NULL);
        struct tm utc;
        strftime(when, sizeof when, "%Y%m%dT%H%M%SZ", gmtime_r(&now, &utc));
        *b = (Bundle){ .root = root, .top = xasprintf("nodestrap-%s-%s", host, when),
                       .deadline_usec = now_usec() + BUNDLE_USEC };
}

void bundle_done(Bundle *b) {
        for (size_t i = 0; i < b->n; i++)
                FREE_ALL(b->members[i].name, b->members[i].data);
        FREE_ALL(b->members, b->top);
        secrets_done(&b->secrets);
        text_done(&b->missing);
        *b = (Bundle){};
}

bool bundle_has(const Bundle *b, const char *name) {
        return ANY(member, b->members, b->n, streq(member->name, name));
}

void bundle_miss(Bundle *b, const char *name, const char *format, ...) {
        _free_ char *text = FORMATTED(format);
        for (char *p = strchr(text, '\n'); p; p = strchr(p, '\n'))      /* as in output of a program */
                *p = ' ';
        text_add(&b->missing, "%s: %s\n", name, text);
        b->n_missing++;
}

void bundle_add(Bundle *b, const char *name, char *data, size_t size) {
        bool there = bundle_has(b, name);
        if (there || size > BUNDLE_MAX - b->size) {
                if (!there)
                        bundle_miss(b, name, "left out: the bundle would exceed %u MiB", BUNDLE_MAX >> 20);
                free(data);
                return;
        }
        *APPEND(b->members, b->n) = (BundleMember){ xstrdup(name), data, size };
        b->size += size;
}

static void pack(Bundle *b, Archive *archive, const char *name, const char *data, size_t size) {
        _cleanup_(secrets_done) Secrets patterns = {};  /* a name like "kubelet" may be a secret value, too */
        size_t name_size, text_size;
        _free_ char *whole = xasprintf("%s/%s", b->top, name),
                    *shown = secrets_scrub(&patterns, whole, strlen(whole), &name_size),
                    *text = secrets_scrub(&b->secrets, data, size, &text_size);
        archive_add(archive, shown, text, text_size);
}

char *bundle_pack(Bundle *b, size_t *ret_size) {
        _cleanup_(archive_freep) Archive *archive = archive_new((int64_t)time(NULL));
        for (size_t i = 0; i < b->n; i++)
                pack(b, archive, b->members[i].name, b->members[i].data, b->members[i].size);
        pack(b, archive, "errors.txt", b->missing.data ?: "", b->missing.size);
        return archive_end(archive, ret_size);
}
