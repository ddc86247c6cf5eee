/* SPDX-License-Identifier: Apache-2.0
 * The name of a unit → what systemd would make of it in this image (systemd.unit(5), "Load path"): the
 * first directory that has it counts, a mask is a link to /dev/null or an empty file, drop-ins are read
 * in the order of their names, and an empty assignment takes back those before it. */
#include "doctor/look.h"

#include "base/package.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>

#define MAX_DROP_INS 128u
#define MAX_COMMANDS 64u

/* Beside those that are made anew at each boot. */
static const char *const folders[] = { "/etc/systemd/system", "/run/systemd/system",
                                       "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
                                       "/lib/systemd/system" };

/* /run of an image is of no boot to come. */
static bool counts(const Look *l, const char *folder) {
        return l->image->running || !startswith(folder, "/run/");
}

/* "foo@bar.service" → "foo@.service"; NULL: no instance. */
static char *template_of(const char *name) {
        const char *at = strchr(name, '@'), *dot = strrchr(name, '.');
        return at && dot && dot > at + 1 ? xasprintf("%.*s%s", (int)(at + 1 - name), name, dot) : NULL;
}

typedef enum UnitState { UNIT_NONE, UNIT_MASKED, UNIT_DANGLING, UNIT_READ } UnitState;

/* One file of it. *ret_text is set where it was read. */
static UnitState unit_read(const Look *l, const char *path, char **ret_text) {
        _cleanup_(freep) char *target = NULL;
        size_t size = 0;
        bool link = root_read_link(l->root, path, &target) >= 0;
        if (link && streq(target, "/dev/null"))
                return UNIT_MASKED;
        int r = root_read(l->root, path, IMAGE_TEXT_MAX, ret_text, &size);
        if (r < 0)
                return link && r == -ENOENT ? UNIT_DANGLING : UNIT_NONE;
        return size == 0 ? UNIT_MASKED : UNIT_READ;
}

/* It is there, and a start of it fails: that is not the cause of one that is missing. */
static void fails_to_start(Check *c) {
        if (c->verdict == CHECK_FAILED)
                c->cause = CAUSE_UNIT;
}

/* ---- its commands ---- */

typedef struct Commands {
        char **items;
        size_t n;
        char *type;
} Commands;

static void commands_done(Commands *c) {
        strv_free(c->items);
        free(c->type);
}

/* A line with its continuations, "\" at the end taken off; *at moves behind it. The caller's. */
static char *next_line(const char **at) {
        Text t = {};
        for (bool more = true; more && **at;) {
                size_t n = strcspn(*at, "\n"), size = n;
                more = n > 0 && (*at)[n - 1] == '\\';
                text_add_bytes(&t, *at, more ? n - 1 : n);
                *at += size + ((*at)[size] == '\n');
        }
        return text_take(&t);
}

/* All of the section [Service] that starts something. */
static void add_commands(Commands *c, const char *text) {
        static const char *const keys[] = { "ExecStartPre", "ExecStart", "ExecCondition" };
        bool service = false;
        for (const char *at = text; *at;) {
                _cleanup_(freep) char *raw = next_line(&at), *line = str_strip(raw);
                char *equals = strchr(line, '=');
                if (*line == '[')
                        service = streq(line, "[Service]");
                if (!service || !equals || *line == '#' || *line == ';')
                        continue;
                *equals = 0;
                _cleanup_(freep) char *key = str_strip(line), *value = str_strip(equals + 1);
                for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
                        if (!streq(key, keys[i]))
                                continue;
                        if (!*value) /* of this key only; it is ExecStart= that is overridden */
                                for (size_t k = 0; k < c->n; k++)
                                        if (c->items[k][0] == (char)('0' + i))
                                                c->items[k][0] = ' ';
                        if (*value && c->n < MAX_COMMANDS)
                                strv_push_at(&c->items, c->n++, xasprintf("%c%s", (int)('0' + i), value));
                }
        }
}

/* The drop-ins of this name: of files of the same name the one of the first directory. */
static void add_drop_ins(const Look *l, const char *name, Commands *c) {
        _cleanup_(strv_freep) char **files = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                _cleanup_(freep) char *folder = xasprintf("%s/%s.d", folders[i], name);
                _cleanup_(strv_freep) char **names = NULL;
                if (!counts(l, folder) || root_list(l->root, folder, &names) < 0)
                        continue;
                for (char **n = names; n && *n && strv_length(files) < MAX_DROP_INS; n++)
                        if (endswith(*n, ".conf") && !strv_contains(files, *n))
                                strv_add(&files, *n);
        }
        strv_sort(files);
        for (char **file = files; file && *file; file++)
                for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                        _cleanup_(freep) char *path = xasprintf("%s/%s.d/%s", folders[i], name, *file),
                                              *text = NULL;
                        UnitState state = counts(l, folders[i]) ? unit_read(l, path, &text) : UNIT_NONE;
                        if (state == UNIT_READ) {
                                owners_look(l, path);
                                add_commands(c, text);
                        }
                        if (state != UNIT_NONE)
                                break;
                }
}

/* The program of a command line (systemd.service(5), "Command lines"): prefixes and quotes taken off. NULL:
 * its failure does not matter, or only systemd knows what "%i" and "$X" are. The caller's. */
static char *command_program(const char *command) {
        static const char *const quotes = "\"'";
        bool lenient = false;
        for (; *command && strchr("@-:+!|", *command); command++)
                lenient |= *command == '-';
        const char *quote = *command ? strchr(quotes, *command) : NULL;
        const char stop[] = { quote ? *quote : ' ', quote ? *quote : '\t', 0 };
        command += quote != NULL;
        size_t n = strcspn(command, stop);
        if (lenient || n == 0 || memchr(command, '%', n) || memchr(command, '$', n) ||
            memchr(command, '\\', n))
                return NULL;
        return xstrndup(command, n);
}

static char *started_program(const Commands *c, size_t i) {
        return c->items[i][0] == ' ' ? NULL : command_program(c->items[i] + 1);
}

/* false, and a check that says so: something that it starts cannot be run. */
static bool look_commands(Look *l, const Need *need, const char *path, const Commands *commands) {
        for (size_t i = 0; i < commands->n; i++) {
                _cleanup_(freep) char *name = started_program(commands, i), *odd = NULL, *fault = NULL;
                const char *code = NULL;
                if (!name)
                        continue;
                _cleanup_(freep) char *program = image_program(l->image, name, &odd);
                if (program)
                        labels_look(l->labels, l->root, program);
                fault = program ? program_fault(l, program, &code) : NULL;
                if (program && !fault)
                        continue;
                if (!program && look_is_later(l, need, "unit-program"))
                        return false;
                Check *c = look_fault(l, need, "unit-program", path);
                check_tell(c, need, "it starts %s, %s%s", name, program ? "and that cannot run: " : "which ",
                           program ? fault
                           : odd   ? "nobody may execute"
                                   : "is not there");
                fails_to_start(c);
                return false;
        }
        return true;
}

/* ---- is it enabled? ---- */

static bool has_link(const Look *l, const char *folder, const char *suffix, const char *unit) {
        _cleanup_(strv_freep) char **names = NULL;
        if (root_list(l->root, folder, &names) < 0)
                return false;
        for (char **name = names; name && *name; name++) {
                _cleanup_(freep) char *path = xasprintf("%s/%s/%s", folder, *name, unit), *target = NULL;
                if (endswith(*name, suffix) && root_read_link(l->root, path, &target) >= 0)
                        return true;
        }
        return false;
}

bool unit_is_enabled(const Look *l, const char *unit) {
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
                if (counts(l, folders[i]) &&
                    (has_link(l, folders[i], ".wants", unit) || has_link(l, folders[i], ".requires", unit)))
                        return true;
        return false;
}

/* machine-id(5), "First Boot Semantics" */
bool boots_first(const Look *l) {
        _cleanup_(freep) char *line = NULL;
        int r = root_read_line(l->root, "/etc/machine-id", &line);
        return r == -ENOENT || (r >= 0 && streq(line, "uninitialized"));
}

/* Units that nothing else starts. */
static bool look_enabled(Look *l, const Need *need, const char *path, const char *text) {
        if (need->step || !startswith(need->name, "nodestrap-") || !strstr(text, "\n[Install]") ||
            unit_is_enabled(l, need->name))
                return true;
        if (boots_first(l))
                check_tell(checks_add(l->checks, CHECK_UNKNOWN, "unit-disabled", need->name, path), need,
                           "it is not enabled; the image has no machine-id, so its first boot applies "
                           "presets, and ours "
                           "enable it where no other preset comes before: systemctl enable %s makes sure",
                           need->name);
        else {
                Check *c = look_fault(l, need, "unit-disabled", path);
                check_tell(c, need, "it is not enabled, so nothing starts it: systemctl enable %s",
                           need->name);
                fails_to_start(c);
        }
        return false;
}

/* ---- the whole ---- */

static UnitState find_unit(const Look *l, const char *name, char **ret_path, char **ret_text) {
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                _cleanup_(freep) char *path = xasprintf("%s/%s", folders[i], name);
                UnitState state = counts(l, path) ? unit_read(l, path, ret_text) : UNIT_NONE;
                if (state == UNIT_NONE)
                        continue;
                *ret_path = TAKE_PTR(path);
                return state;
        }
        return UNIT_NONE;
}

static UnitState find_in_trees(const Look *l, const char *name, char **ret_path, char **ret_text) {
        for (char **tree = l->image->trees; tree && *tree; tree++) {
                _cleanup_(freep) char *path = xasprintf("%s/usr/lib/systemd/system/%s", *tree, name);
                if (unit_read(l, path, ret_text) != UNIT_READ)
                        continue;
                *ret_path = TAKE_PTR(path);
                return UNIT_READ;
        }
        return UNIT_NONE;
}

bool unit_is_masked(const Look *l, const char *name, char **ret_path) {
        _cleanup_(freep) char *text = NULL;
        return find_unit(l, name, ret_path, &text) == UNIT_MASKED;
}

bool unit_exists(const Look *l, const char *name) {
        _cleanup_(freep) char *text = NULL, *path = NULL;
        return find_unit(l, name, &path, &text) == UNIT_READ;
}

static bool same_file(const Root *root, const char *a, const char *b) {
        struct stat one, other;
        _cleanup_(close_fd) int fd = root_open(root, a, O_PATH), fd_b = root_open(root, b, O_PATH);
        return fd >= 0 && fd_b >= 0 && fstat(fd, &one) == 0 && fstat(fd_b, &other) == 0 &&
               one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool unit_starts(const Look *l, const char *unit, const char *program) {
        _cleanup_(freep) char *text = NULL, *path = NULL;
        _cleanup_(commands_done) Commands c = {};
        bool does = false;
        if (find_unit(l, unit, &path, &text) != UNIT_READ)
                return false;
        add_commands(&c, text);
        add_drop_ins(l, unit, &c);
        for (size_t i = 0; i < c.n && !does; i++) {
                _cleanup_(freep) char *name = started_program(&c, i), *odd = NULL,
                                      *its = name ? program_find(l->root, name, &odd) : NULL;
                does = its && same_file(l->root, its, program);
        }
        return does;
}

static void look_read_unit(Look *l, const Need *need, const char *template, const char *path,
                           const char *text) {
        _cleanup_(commands_done) Commands c = {};
        labels_look(l->labels, l->root, path);
        owners_look(l, path);
        add_commands(&c, text);
        if (template)
                add_drop_ins(l, template, &c);
        add_drop_ins(l, need->name, &c);
        if (look_commands(l, need, path, &c) && look_enabled(l, need, path, text))
                look_well(l, need, "unit", path);
}

void look_unit(Look *l, const Need *need) {
        _cleanup_(freep) char *template = template_of(need->name), *path = NULL, *text = NULL;
        UnitState state = find_unit(l, need->name, &path, &text);
        if (state == UNIT_NONE && template)
                state = find_unit(l, template, &path, &text);
        if (state == UNIT_NONE)
                state = find_in_trees(l, need->name, &path, &text);
        if (state == UNIT_READ)
                look_read_unit(l, need, template, path, text);
        else if (state == UNIT_MASKED) {
                Check *c = look_fault(l, need, "unit-masked", path);
                check_tell(c, need, "it is masked, so that nobody can start it: systemctl unmask %s",
                           need->name);
                fails_to_start(c);
        } else if (state == UNIT_DANGLING)
                check_tell(
                        look_fault(l, need, "unit", path), need,
                        "that is a link which leads nowhere: install what has the unit, or remove the link");
        else if (!look_is_later(l, need, "unit"))
                check_tell(look_fault(l, need, "unit", NULL), need,
                           "no directory of systemd's has it: install %s",
                           streq(package_of(need->name), need->name) ? "the package that brings it"
                                                                     : package_of(need->name));
}
