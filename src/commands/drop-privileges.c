/* SPDX-License-Identifier: Apache-2.0
 * Command line → the capabilities that this process keeps. `sudo nodestrap config check -c file://mine`
 * needs one for a file of the caller, so it tries each path without. */
#include "commands/run.h"

#include "base/str.h"
#include "host/host.h"
#include "source/source.h"

#include <sys/utsname.h>

static uint64_t needed(const Options *o, const char *path, bool below, int mode) {
        bool other = below && !streq(o->root, "/");
        _free_ char *place = other ? xasprintf("%s/%s", o->root, path) : NULL;
        return path ? power_needed(place ?: path, mode) : 0;
}

/* Files that the environment names (aws/credentials.c, aws/https.c). */
static uint64_t needed_by_environment(void) {
        static const char *const names[] = { "AWS_WEB_IDENTITY_TOKEN_FILE",
                                             "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_CA_BUNDLE",
                                             "SSL_CERT_FILE" };
        uint64_t all = 0;
        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                const char *path = getenv(names[i]);
                all |= path && *path ? power_needed(path, R_OK) : 0;
        }
        return all;
}

static uint64_t needed_by_sources(const Options *o, char *const *uris) {
        uint64_t all = 0;
        for (; uris && *uris; uris++) {
                _free_ char *path = source_file_path(*uris);
                all |= needed(o, path, true, R_OK);
        }
        return all;
}

/* The sources that sources.c chooses by default. */
static uint64_t needed_by_list(const Options *o) {
        _cleanup_(source_list_done) SourceList list = {};
        _cleanup_(diag_done) Diag ignored = {};
        _cleanup_(root_freep) Root *root = NULL;
        if (o->sources || o->name != PROGRAM_NODESTRAP || root_new(o->root, &root) < 0 ||
            source_list_read(root, &list, &ignored) < 0)
                return 0;
        return needed_by_sources(o, list.uris) | needed(o, list.cache, true, R_OK);
}

/* Another root is read and written with the rights of its root user. */
static uint64_t needed_by_line(const Options *o) {
        uint64_t all = streq(o->root, "/") ? 0 : power_needed(o->root, W_OK);
        return all | needed_by_sources(o, o->sources) | needed_by_list(o) | needed_by_environment() |
               needed(o, o->cache, true, R_OK) |
               needed(o, o->key, true, R_OK) | needed(o, o->diff, false, R_OK) |
               needed(o, o->matrix && strchr(o->matrix, '/') ? o->matrix : NULL, false, R_OK) |
               needed(o, o->output_file, false, W_OK) | needed(o, o->write_to, false, W_OK) |
               needed(o, o->bundle, false, W_OK);
}

/* Asks for the names of EBS volumes now, where the kernel later refuses that. */
static void look_ahead(const Options *o) {
        _cleanup_(root_freep) Root *root = NULL;
        struct utsname kernel;
        if (o->command->last != STAGE_PLAN || o->instance_type || !streq(o->root, "/") ||
            uname(&kernel) < 0 || version_at_least(kernel.release, 6, 2))
                return;
        if (root_new(o->root, &root) >= 0)
                volume_names_remember(root);
}

void run_give_up(const Options *o) {
        const Command *command = o->command;
        uint64_t keep = command->powers;
        if (keep == POWER_ALL || o->ask)        /* --ask makes namespaces */
                return;
        if (o->bundle)                  /* wait channels of processes, and the kernel log */
                keep |= POWER_READ | POWER_LOOK | POWER_LOG;
        look_ahead(o);
        power_lower();
        power_drop(keep | needed_by_line(o), command->starts_programs || o->bundle);
}
