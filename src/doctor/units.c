/* SPDX-License-Identifier: Apache-2.0
 * A unit as systemd would load it from this image (systemd.unit(5), "Load path"). The first directory
 * that has it wins. A link to /dev/null or an empty file masks it. Drop-ins apply in the order of their
 * names; an empty assignment resets a list. */
#include "doctor/look.h"

#include "base/package.h"
#include "base/paths.h"
#include "doc/env-file.h"

#include <errno.h>
#include <fcntl.h>

#define MAX_DROP_INS 128u
#define MAX_COMMANDS 64u

/* Without generated units. */
static const char *const folders[] = { "/etc/systemd/system", "/run/systemd/system",
                                       "/usr/local/lib/systemd/system", "/usr/lib/systemd/system",
                                       "/lib/systemd/system" };

typedef enum UnitState { UNIT_NONE, UNIT_MASKED, UNIT_DANGLING, UNIT_ODD, UNIT_READ } UnitState;

/* Sets *ret_text if UNIT_READ. */
static UnitState unit_read(const Look *l, const char *path, char **ret_text) {
        _free_ char *target = NULL;
        size_t size = 0;
        bool link = root_read_link(l->root, path, &target) >= 0;
        if (link && streq(target, "/dev/null"))
                return UNIT_MASKED;
        int r = image_read(l->root, path, IMAGE_TEXT_MAX, ret_text, &size);
        if (r == -EINVAL)
                return UNIT_ODD;
        if (r < 0)
                return link && r == -ENOENT ? UNIT_DANGLING : UNIT_NONE;
        return size == 0 ? UNIT_MASKED : UNIT_READ;
}

/* The unit exists and fails: CAUSE_UNIT, not CAUSE_UNIT_MISSING. */
static void fails_to_start(Check *c) {
        if (c->verdict == CHECK_FAILED)
                c->cause = CAUSE_UNIT;
}
#define UNIT_FAULT(...) fails_to_start(FAULT(__VA_ARGS__))

/* ---- its settings ---- */

static const char starters[][16] = { "ExecCondition", "ExecStartPre", "ExecStart", "EnvironmentFile" };
#define MAIN_STARTER 2u                 /* ExecStart=, the last command of these */
#define ENVIRONMENTS 3u

/* Unit and drop-ins merged: commands add up, other settings are replaced. */
typedef struct Service {
        char **commands[ARRAY_SIZE(starters)];
        char *type, *from;              /* from: the file with its ExecStart= */
        bool stops, remains, acts;      /* ExecStop=, RemainAfterExit=, SuccessAction= */
} Service;

static void service_done(Service *s) {
        for (size_t i = 0; i < ARRAY_SIZE(starters); i++)
                strv_free(s->commands[i]);
        FREE_ALL(s->type, s->from);
}

static void add_setting(Service *s, const char *name, const char *value) {
        for (size_t i = 0; i < ARRAY_SIZE(starters); i++) {
                if (!streq(name, starters[i]))
                        continue;
                if (!*value)
                        s->commands[i] = strv_free(s->commands[i]);
                else if (strv_length(s->commands[i]) < MAX_COMMANDS)
                        strv_add(&s->commands[i], value);
        }
        if (streq(name, "ExecStop"))
                s->stops = *value;
        else if (streq(name, "RemainAfterExit"))
                s->remains = ONE_OF(value, "1", "yes", "y", "true", "t", "on");
        else if (streq(name, "Type"))
                RENEW(s->type, xstrdup(value));
}

static void service_add(Service *s, const char *path, const char *text) {
        _strv_ char **settings = assignments_in_unit(text, "Service");
        _free_ char *action = assignment_in_unit(text, "Unit", "SuccessAction");
        for (char **setting = settings; setting && *setting; setting += 2) {
                add_setting(s, setting[0], setting[1]);
                if (streq(setting[0], starters[MAIN_STARTER]))
                        RENEW(s->from, xstrdup(path));
        }
        if (action)
                s->acts = *action && !streq(action, "none");
}

static void add_drop_ins(const Look *l, const char *name, Service *s) {
        _free_ char *below = xasprintf("/%s.d", name);
        _strv_ char **files = look_conf_files(l, folders, ARRAY_SIZE(folders), below, MAX_DROP_INS);
        STRV_FOREACH(file, files) {
                _free_ char *text = NULL;
                if (unit_read(l, *file, &text) != UNIT_READ)
                        continue;
                owners_look(l, *file);
                service_add(s, *file, text);
        }
}

/* The program of a command line (systemd.service(5), "Command lines"), without prefixes and quotes. NULL: it
 * may fail, or has "%i" or "$X". The caller frees it. */
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

/* A new list. */
static char **started_programs(const Service *s) {
        char **all = NULL;
        for (size_t i = 0; i <= MAIN_STARTER; i++)
                for (char **command = s->commands[i]; command && *command; command++) {
                        char *program = command_program(*command);
                        if (program)
                                strv_push(&all, program);
                }
        return all;
}

/* false, and a check: a program cannot run. */
static bool look_commands(Look *l, const Need *need, const char *path, const Service *service) {
        _strv_ char **all = started_programs(service);
        STRV_FOREACH(name, all) {
                _free_ char *odd = NULL, *fault = NULL;
                const char *code = NULL;
                _free_ char *program = image_program(l->image, *name, &odd);
                if (program)
                        labels_look(l->labels, l->root, program);
                fault = program ? program_fault(l, program, &code) : NULL;
                if (program && !fault)
                        continue;
                if (!program && look_is_later(l, need, "unit-program"))
                        return false;
                UNIT_FAULT(l, need, "unit-program", path, "it starts %s, which %s%s", *name,
                           program ? "cannot run: " : "",
                           program ? fault
                           : odd   ? "is not executable"
                                   : "is missing");
                return false;
        }
        return true;
}

/* false, and a check: systemd refuses a service without a command: systemd:src/core/service.c:
 * service_verify(). */
static bool look_service(Look *l, const Need *need, const char *path, const Service *s) {
        bool once = !s->type || streq(s->type, "oneshot");
        size_t n = strv_length(s->commands[MAIN_STARTER]);
        bool empty = n == 0 && !(once && (s->stops || s->acts) && (s->remains || s->acts));
        bool well = !endswith(need->name, ".service") || !(empty || (n > 1 && !(s->type && once)));
        if (!well)
                UNIT_FAULT(l, need, "unit", path, "systemd cannot load this unit with its drop-ins: %s",
                           empty ? "it has no ExecStart="
                                 : "several ExecStart= need Type=oneshot; begin the drop-in with an empty "
                                   "ExecStart=");
        return well;
}

/* ---- does it read what is written? ---- */

#define ARGUMENTS "$NODEADM_KUBELET_ARGS"

/* The value of an option for the configuration file, or NULL. containerd takes -c, and one dash or two (Go
 * flag, urfave/cli). */
static const char *config_option(char *const *word, bool kubelet) {
        size_t dashes = strspn(*word, "-"), n = strcspn(*word, "=");
        _free_ char *name = xstrndup(*word + dashes, n - dashes);
        bool is = kubelet ? dashes == 2 && streq(name, "config")
                          : dashes > 0 && dashes <= 2 && ONE_OF(name, "config", "c");
        return !is ? NULL : (*word)[n] ? *word + n + 1 : word[1];
}

/* The file of another --config; NULL: none, or it has "%i" or "$X". ret_ours: our arguments follow it. */
static const char *other_config(char *const *words, bool kubelet, bool *ret_ours) {
        const char *file = NULL;
        STRV_FOREACH(w, words) {
                const char *value = config_option(w, kubelet);
                if (kubelet && streq(*w, ARGUMENTS)) {
                        *ret_ours = true;
                        file = NULL;            /* the last one wins */
                } else if (value)
                        file = strpbrk(value, "$%") || (!kubelet && streq(value, CONTAINERD_CONFIG)) ? NULL
                                                                                                     : value;
        }
        return file;
}

/* Why a daemon reads other settings than the planned ones; NULL: it does not, or a wrapper decides. Unit of
 * EKS: awslabs/amazon-eks-ami, templates/al2023/runtime/rootfs/etc/systemd/system/kubelet.service. */
static char *reading_fault(const char *unit, const Service *s) {
        char **commands = s->commands[MAIN_STARTER], **files = s->commands[ENVIRONMENTS];
        _free_ char *program = commands ? command_program(commands[0]) : NULL;
        _strv_ char **words = commands ? assignment_split(commands[0]) : NULL;
        const char *name = program ? path_last(program) : "";
        bool kubelet = streq(name, "kubelet") && streq(unit, "kubelet.service"), ours = false;
        if (!kubelet && !(streq(name, "containerd") && streq(unit, "containerd.service")))
                return NULL;
        const char *file = other_config(words, kubelet, &ours);
        if (kubelet && !ours)
                return xasprintf("%s starts kubelet without " ARGUMENTS ", so it ignores the planned files: "
                                 "add that to ExecStart=", s->from);
        if (file)
                return xasprintf("%s makes %s read %s instead of the planned file: remove that option "
                                 "from ExecStart=", s->from, name, file);
        if (kubelet && !strv_contains(files, KUBELET_ENVIRONMENT) &&
            !strv_contains(files, "-" KUBELET_ENVIRONMENT))
                return xasprintf("%s starts kubelet with " ARGUMENTS ", which is empty: add "
                                 "EnvironmentFile=" KUBELET_ENVIRONMENT, s->from);
        return NULL;
}

static bool look_reading(Look *l, const Need *need, const Service *s) {
        _free_ char *fault = reading_fault(need->name, s);
        if (fault)
                UNIT_FAULT(l, need, "unit-reads", s->from, "%s", fault);
        return !fault;
}

/* ---- is it enabled? ---- */

static bool has_links(const char *directory) {
        return endswith(directory, ".wants") || endswith(directory, ".requires");
}

static bool has_link(const Look *l, const char *folder, const char *unit) {
        _strv_ char **names = look_counts(l, folder) ? root_names(l->root, folder) : NULL;
        STRV_FOREACH(name, names) {
                _free_ char *path = xasprintf("%s/%s/%s", folder, *name, unit), *target = NULL;
                if (has_links(*name) && root_read_link(l->root, path, &target) >= 0)
                        return true;
        }
        return false;
}

bool unit_is_enabled(const Look *l, const char *unit) {
        return ANY(folder, folders, ARRAY_SIZE(folders), has_link(l, *folder, unit));
}

static char *closed_link(const Look *l, const char *folder, const char *unit) {
        _strv_ char **names = NULL;
        int r = root_list(l->root, folder, &names);
        if (r == -EACCES || r == -EPERM)
                return xstrdup(folder);
        STRV_FOREACH(name, names) {
                _free_ char *path = xasprintf("%s/%s", folder, *name), *link = xasprintf("%s/%s", path, unit);
                if (has_links(*name) && root_exists(l->root, link) < 0)
                        return TAKE_PTR(path);
        }
        return NULL;
}

char *unit_closed(const Look *l, const char *unit) {
        char *closed = NULL;
        for (size_t i = 0; i < ARRAY_SIZE(folders) && !closed; i++)
                closed = look_counts(l, folders[i]) ? closed_link(l, folders[i], unit) : NULL;
        return closed;
}

/* For units that nothing else starts. A first boot applies presets (machine-id(5)), and ours enables none. */
static bool look_enabled(Look *l, const Need *need, const char *path, const char *text) {
        if (need->step || !startswith(need->name, "nodestrap-") || !strstr(text, "\n[Install]") ||
            unit_is_enabled(l, need->name))
                return true;
        _free_ char *closed = unit_closed(l, need->name);
        if (closed)
                TELL(l->checks, CHECK_UNKNOWN, "unit-disabled", need->name, path, need,
                     "%s is not readable by this user: run this as root to see if the unit is "
                     "enabled", closed);
        else
                FAULT(l, need, "unit-disabled", path,
                      "it is not enabled, so nothing starts it: run systemctl enable %s", need->name);
        return false;
}

static UnitState find_unit(const Look *l, const char *name, char **ret_path, char **ret_text) {
        for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
                _free_ char *path = xasprintf("%s/%s", folders[i], name);
                UnitState state = look_counts(l, path) ? unit_read(l, path, ret_text) : UNIT_NONE;
                if (state == UNIT_NONE)
                        continue;
                *ret_path = TAKE_PTR(path);
                return state;
        }
        return UNIT_NONE;
}

static UnitState find_in_trees(const Look *l, const char *name, char **ret_path, char **ret_text) {
        for (char **tree = l->image->trees; tree && *tree; tree++) {
                _free_ char *path = xasprintf("%s/usr/lib/systemd/system/%s", *tree, name);
                if (unit_read(l, path, ret_text) != UNIT_READ)
                        continue;
                *ret_path = TAKE_PTR(path);
                return UNIT_READ;
        }
        return UNIT_NONE;
}

bool unit_exists(const Look *l, const char *name) {
        _free_ char *text = NULL, *path = NULL;
        return find_unit(l, name, &path, &text) == UNIT_READ;
}

void units_warn(const Root *root, Diag *warnings) {
        static const char *const units[] = { "kubelet.service", "containerd.service" };
        const Image image = { .root = root, .running = true };
        const Look l = { .root = root, .image = &image };
        for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
                _free_ char *text = NULL, *path = NULL;
                _cleanup_(service_done) Service s = {};
                if (find_unit(&l, units[i], &path, &text) != UNIT_READ)
                        continue;
                service_add(&s, path, text);
                add_drop_ins(&l, units[i], &s);
                _free_ char *fault = reading_fault(units[i], &s);
                if (fault)
                        diag_warn(warnings, "unit-reads", "%s", fault);
        }
}

static bool same_file(const Root *root, const char *a, const char *b) {
        struct stat one, other;
        _cleanup_(close_fd) int fd = root_open(root, a, O_PATH), fd_b = root_open(root, b, O_PATH);
        return fd >= 0 && fd_b >= 0 && fstat(fd, &one) == 0 && fstat(fd_b, &other) == 0 &&
               one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

bool unit_starts(const Look *l, const char *unit, const char *program) {
        _free_ char *text = NULL, *path = NULL;
        _cleanup_(service_done) Service s = {};
        bool does = false;
        if (find_unit(l, unit, &path, &text) != UNIT_READ)
                return false;
        service_add(&s, path, text);
        add_drop_ins(l, unit, &s);
        _strv_ char **all = started_programs(&s);
        for (char **name = all; name && *name && !does; name++) {
                _free_ char *its = program_find(l->root, "", *name, NULL);
                does = its && same_file(l->root, its, program);
        }
        return does;
}

static void look_read_unit(Look *l, const Need *need, const char *template, const char *path,
                           const char *text) {
        _cleanup_(service_done) Service s = {};
        labels_look(l->labels, l->root, path);
        owners_look(l, path);
        service_add(&s, path, text);
        if (template)
                add_drop_ins(l, template, &s);
        add_drop_ins(l, need->name, &s);
        if (look_service(l, need, path, &s) && look_commands(l, need, path, &s) &&
            look_reading(l, need, &s) && look_enabled(l, need, path, text))
                look_well(l, need, "unit", path);
}

static bool is_closed(Look *l, const Need *need) {
        bool closed = false;
        for (size_t i = 0; i < ARRAY_SIZE(folders) && !closed; i++) {
                _free_ char *path = xasprintf("%s/%s", folders[i], need->name);
                closed = look_counts(l, path) && look_is_closed(l, need, "unit", path);
        }
        return closed;
}

void look_unit(Look *l, const Need *need) {
        /* "foo@bar.service" → "foo@.service"; NULL: not an instance. */
        const char *at = strchr(need->name, '@'), *dot = strrchr(need->name, '.');
        _free_ char *template = at && dot && dot > at + 1
                                        ? xasprintf("%.*s%s", (int)(at + 1 - need->name), need->name, dot)
                                        : NULL,
                    *path = NULL, *text = NULL;
        UnitState state = find_unit(l, need->name, &path, &text);
        if (state == UNIT_NONE && template)
                state = find_unit(l, template, &path, &text);
        if (state == UNIT_NONE)
                state = find_in_trees(l, need->name, &path, &text);
        if (state == UNIT_READ)
                look_read_unit(l, need, template, path, text);
        else if (state == UNIT_MASKED)
                UNIT_FAULT(l, need, "unit-masked", path,
                           "it is masked, so systemd cannot start it: systemctl unmask %s", need->name);
        else if (state == UNIT_ODD)
                FAULT(l, need, "unit", path, "it is not a regular file: remove it, or install the unit");
        else if (state == UNIT_DANGLING)
                FAULT(l, need, "unit", path, "it is a dangling link: install the unit, or remove the link");
        else if (!is_closed(l, need) && !look_is_later(l, need, "unit"))
                FAULT(l, need, "unit", NULL, "unit not found: install %s",
                      streq(package_of(need->name), need->name) ? "its package" : package_of(need->name));
}
