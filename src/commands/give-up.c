/* SPDX-License-Identifier: Apache-2.0
 * Command and its line → the powers that this process goes on with. `sudo nodestrap config check -c
 * file://mine` means a file of the caller's own, which root reads by one of them; so the paths are tried
 * without, and what they take is kept. */
#include "commands/run.h"

#include "base/str.h"

static uint64_t needed(const Options *o, const char *path, bool below, int mode) {
        bool other = below && !streq(o->root, "/");
        _cleanup_(freep) char *place = other ? xasprintf("%s/%s", o->root, path) : NULL;
        return path ? power_needed(place ?: path, mode) : 0;
}

/* Another root is read and written as its own root would. */
static uint64_t needed_by_line(const Options *o) {
        uint64_t all = streq(o->root, "/") ? 0 : power_needed(o->root, W_OK);
        for (char **uri = o->sources; uri && *uri; uri++) {
                _cleanup_(freep) char *path = source_file_path(*uri);
                all |= needed(o, path, true, R_OK);
        }
        return all | needed(o, o->cache, true, R_OK) | needed(o, o->output_file, false, W_OK) |
               needed(o, o->write_to, false, W_OK) | needed(o, o->bundle, false, W_OK);
}

void run_give_up(const Options *o) {
        const Command *command = o->command;
        uint64_t keep = command->powers;
        if (keep == POWER_ALL)
                return;
        if (o->bundle)                  /* where each process waits, and what the kernel has said */
                keep |= POWER_READ | POWER_LOOK | POWER_LOG;
        power_lower();
        power_drop(keep | needed_by_line(o), command->starts_programs || o->bundle);
}
