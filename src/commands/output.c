/* SPDX-License-Identifier: Apache-2.0
 * Texts and documents → stdout, or a file of the reader's choice. */
#include "commands/output.h"

#include "base/root.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>

void output_begin(void) {
        signal(SIGPIPE, SIG_DFL);
}

int output_end(Diag *diag) {
        return fflush(stdout) == 0 && !ferror(stdout)
                       ? 0
                       : diag_error(diag, -EIO, CAUSE_FILE, "stdout cannot be written");
}

int output_text(const char *text, Diag *diag) {
        output_begin();
        fputs(text, stdout);
        return output_end(diag);
}

/* Pipes and devices: there is nothing to be replaced. */
static int write_into(const char *path, const char *text) {
        _cleanup_(close_fd) int fd = open(path, O_WRONLY | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 || dprintf(fd, "%s\n", text) < 0)
                return -errno;
        return 0;
}

static int write_file(const char *path, const char *text) {
        _cleanup_(root_freep) Root *here = NULL;
        _cleanup_(freep) char *line = xasprintf("%s\n", text), *absolute = NULL;
        struct stat st;
        bool exists = lstat(path, &st) == 0;
        if (exists && S_ISLNK(st.st_mode))
                return -ELOOP;
        if (exists && !S_ISREG(st.st_mode))
                return write_into(path, text);
        int r = root_new("/", &here);
        if (r < 0)
                return r;
        absolute = root_absolute(here, path);
        return absolute ? root_replace(here, absolute, line, strlen(line), 0600) : -ENOENT;
}

int output_json(const json_t *json, const char *file, Diag *diag) {
        _cleanup_(freep) char *text = json_dumps(json, JSON_INDENT(2) | JSON_ENCODE_ANY);
        if (!file) {
                output_begin();
                puts(text);
                return output_end(diag);
        }
        int r = write_file(file, text);
        if (r == -ELOOP)
                return diag_error(diag, r, CAUSE_FILE,
                                  "%s is a link, which is not followed, as what is written may hold secrets: "
                                  "name the file itself",
                                  file);
        return r < 0 ? diag_error(diag, r, CAUSE_FILE, "%s cannot be written: %s", file, strerror(-r)) : 0;
}
