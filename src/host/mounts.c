/* SPDX-License-Identifier: Apache-2.0
 * /proc/self/mountinfo → Mounts (proc(5)): "36 35 98:0 /root /mnt rw,noatime master:1 - ext3 /dev/root
 * rw,errors=continue", where blanks and backslashes in a field are written as octal numbers, and any number
 * of fields may stand before the dash. */
#include "host/detect.h"

#include "base/str.h"

#include <errno.h>

/* \040 → ' ', in place. */
static void unescape(char *s) {
        char *to = s;
        for (; *s; s++)
                if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' && s[3] >= '0' &&
                    s[3] <= '7') {
                        *to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
                        s += 3;
                } else
                        *to++ = *s;
        *to = 0;
}

static bool has_option(const char *options, const char *name) {
        size_t n = strlen(name);
        for (const char *o = options; o; o = strchr(o, ',') ? strchr(o, ',') + 1 : NULL)
                if (strncmp(o, name, n) == 0 && (o[n] == ',' || o[n] == 0))
                        return true;
        return false;
}

static bool parse_id(const char *text, unsigned *ret) {
        uint64_t n = 0;
        if (!text || parse_u64(text, &n) < 0 || n > UINT32_MAX)
                return false;
        *ret = (unsigned)n;
        return true;
}

static bool is_number(const char *text) {
        size_t major = strspn(text, "0123456789"),
               minor = text[major] == ':' ? strspn(text + major + 1, "0123456789") : 0;
        return major > 0 && minor > 0 && text[major + 1 + minor] == 0;
}

/* The fields of a line → *ret, which points into the line; false where they are not those of a mount. */
static bool split_line(char *line, Mount *ret) {
        enum { ID, PARENT, NUMBER, ROOT, TARGET, OPTIONS, BEFORE, TYPE = BEFORE, SOURCE, ALL };
        char *fields[ALL] = {}, *word;
        size_t n = 0;

        while (n < BEFORE && (word = strsep(&line, " ")))
                fields[n++] = word;
        while ((word = strsep(&line, " ")) && !streq(word, "-"))
                ;                       /* shared:1 and the like */
        while (n >= BEFORE && n < ALL && (word = strsep(&line, " ")))
                fields[n++] = word;
        if (n < ALL || !line || !parse_id(fields[ID], &ret->id) || !parse_id(fields[PARENT], &ret->parent) ||
            !is_number(fields[NUMBER]) || fields[TARGET][0] != '/' || !*fields[TYPE])
                return false;
        ret->number = fields[NUMBER];
        ret->root = fields[ROOT];
        ret->target = fields[TARGET];
        ret->type = fields[TYPE];
        ret->source = fields[SOURCE];
        ret->read_only = has_option(fields[OPTIONS], "ro") || has_option(line, "ro");
        return true;
}

static void own_strings(Mount *m) {
        char **strings[] = { &m->target, &m->source, &m->number, &m->root, &m->type };
        for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
                unescape(*strings[i]);
                *strings[i] = xstrdup(*strings[i]);
        }
}

int mounts_parse(const char *text, Storage *s, Diag *diag) {
        _cleanup_(freep) char *copy = xstrdup(text);
        size_t room = s->n_mounts;
        unsigned number = 0;

        for (char *next = copy, *line; (line = strsep(&next, "\n")) && (next || *line);) {
                Mount m = {};
                number++;
                if (!split_line(line, &m))
                        return diag_error_at(
                                diag, -EBADMSG, CAUSE_FACTS,
                                &(Position){ .source = "/proc/self/mountinfo", .line = number }, NULL,
                                "this is no mount as proc(5) describes it; what is mounted is not known");
                own_strings(&m);
                if (s->n_mounts == room) {
                        room = room ? 2 * room : 64;
                        s->mounts = xrealloc(s->mounts, room, sizeof *s->mounts);
                }
                s->mounts[s->n_mounts++] = m;
        }
        return 0;
}

int detect_mounts(const Root *root, Storage *s, Diag *diag) {
        _cleanup_(freep) char *text = NULL;
        int r = root_read(root, "/proc/self/mountinfo", 64 << 20, &text, NULL);
        if (r < 0)
                return r == -ENOENT
                               ? 0
                               : fact_error(diag, r, "/proc/self/mountinfo", "what is mounted is not known");
        return mounts_parse(text, s, diag);
}

/* The rest of path below dir ("" where they are the same), NULL if it lies elsewhere; "//", "/./" and a slash
 * at the end say nothing. */
static const char *path_below(const char *path, const char *dir) {
        for (;;) {
                while (*dir == '/' || (dir[0] == '.' && (dir[1] == '/' || dir[1] == 0)))
                        dir++;
                while (*path == '/' || (path[0] == '.' && (path[1] == '/' || path[1] == 0)))
                        path++;
                if (!*dir)
                        return path;
                size_t n = strcspn(dir, "/");
                if (strcspn(path, "/") != n || strncmp(path, dir, n) != 0)
                        return NULL;
                path += n;
                dir += n;
        }
}

bool path_same(const char *a, const char *b) {
        const char *rest = path_below(a, b);
        return rest && !*rest;
}

static const Mount *mount_by_id(const Storage *s, unsigned id) {
        for (size_t i = 0; id && i < s->n_mounts; i++)
                if (s->mounts[i].id == id)
                        return &s->mounts[i];
        return NULL;
}

/* Was something else mounted on the same file system at a directory above m's, so that no path leads to m any
 * more? */
static bool is_hidden(const Storage *s, const Mount *m) {
        for (const Mount *n = s->mounts; m->id && n < s->mounts + s->n_mounts; n++)
                if (n != m && n->id != m->parent && n->parent == m->parent &&
                    path_below(m->target, n->target) && !path_same(m->target, n->target))
                        return true;
        return false;
}

static bool is_reachable(const Storage *s, const Mount *m) {
        /* ids that go in a circle are nonsense, but no trap */
        for (size_t steps = 0; m && steps < s->n_mounts; steps++) {
                if (is_hidden(s, m))
                        return false;
                m = mount_by_id(s, m->parent == m->id ? 0 : m->parent);
        }
        return true;
}

/* Is something mounted on top of m, at the same directory? */
static bool is_covered(const Storage *s, const Mount *m) {
        for (const Mount *n = s->mounts; m->id && n < s->mounts + s->n_mounts; n++)
                if (n != m && n->parent == m->id && path_same(n->target, m->target))
                        return true;
        return false;
}

const Mount *storage_mount_at(const Storage *s, const char *target) {
        const Directory *d = storage_directory(s, target);
        if (d && d->real)
                target = d->real;
        for (size_t i = s->n_mounts; i-- > 0;)
                if (path_same(s->mounts[i].target, target) && !is_covered(s, &s->mounts[i]) &&
                    is_reachable(s, &s->mounts[i]))
                        return &s->mounts[i];
        return NULL;
}

const Mount *storage_mount_of(const Storage *s, const char *path) {
        const Mount *nearest = NULL;
        for (size_t i = s->n_mounts; i-- > 0;)
                if (path_below(path, s->mounts[i].target) &&
                    (!nearest || path_below(s->mounts[i].target, nearest->target)) &&
                    storage_mount_at(s, s->mounts[i].target) == &s->mounts[i])
                        nearest = &s->mounts[i];
        return nearest;
}
