/* SPDX-License-Identifier: Apache-2.0
 * spec.instance.storage.volumes: checks its entries and binds them to struct Config. Messages name devices
 * and paths, which are not secrets, so that a user finds the volume. */
#include "config/fields.h"

#include "base/json.h"
#include "base/str.h"

#define VOLUMES "spec.instance.storage.volumes"
#define STATE   "/var/lib/nodestrap"

typedef struct Check {
        const Merge *merge;
        const json_t *list;
        json_t *devices, *folders;      /* a name → the first entry, or target, that has it */
        Diag *diag;
        bool broken;
} Check;
_printf_(4, 5) static void complain(Check *c, size_t i, const char *key, const char *format, ...) {
        _free_ char *path = xasprintf(VOLUMES "[%zu].%s", i, key), *text = FORMATTED(format);
        c->broken = true;
        config_report(c->merge, c->diag, path, text);
}

static bool is_lower_or_digit(char c) {
        return (c >= 'a' && c <= 'z') || is_digit(c);
}

/* As the udev rules of amazon-ec2-utils: /dev/sdb of a launch template is /dev/xvdb on the machine
 * (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/device_naming.html). */
char *volume_canonical(const char *device) {
        if (startswith(device, "/dev/"))
                device += strlen("/dev/");
        if (startswith(device, "sd") && device[2] >= 'a' && device[2] <= 'z')
                return xasprintf("xvd%s", device + 2);
        if (startswith(device, "vol") && hex_digit(device[3]) >= 0)
                return xasprintf("vol-%s", device + 3);
        return xstrdup(device);
}

/* "xvdb", "vol-0123", "disk/by-id/nvme-…": a path that stays below /dev. */
static bool is_device(const char *device) {
        _free_ char *name = volume_canonical(device);
        const char *p = name;
        if (!is_lower_or_digit(*p))
                return false;
        for (; *p; p++)
                if (!is_lower_or_digit(*p) && !(*p >= 'A' && *p <= 'Z') && !strchr("/._:+-", *p))
                        return false;
        return !strstr(name, "..") && !strstr(name, "//") && p[-1] != '/' && p - name < 200 &&
               (startswith(device, "/dev/") || !strchr(name, '/'));
}

/* The first entry of this name; i where it is this one. */
static size_t first_of(json_t *names, const char *name, size_t i) {
        json_t *first = json_object_get(names, name);
        if (!first)
                json_object_set_new(names, name, json_integer((json_int_t)i));
        return first ? (size_t)json_integer_value(first) : i;
}

static void check_device(Check *c, size_t i) {
        const char *device = json_get_text(json_array_get(c->list, i), "device");
        _free_ char *name = volume_canonical(device), *shown = text_quote(device, strlen(device));
        size_t before = first_of(c->devices, path_last(name), i);
        if (!*device)
                complain(c, i, "device", "is missing: the name of the volume in the launch template, such as "
                                         "/dev/xvdb, or its id, vol-…");
        else if (!is_device(device))
                complain(c, i, "device", "%s is not a device: write /dev/xvdb, /dev/nvme1n1 or an id, "
                                         "vol-…", shown);
        else if (before != i)
                complain(c, i, "device", "%s is also the device of " VOLUMES "[%zu]: write one entry with "
                                         "several mountTargets", shown, before);
}

static bool lies_below(const char *path, const char *above) {
        size_t n = strlen(above);
        return startswith(path, above) && path[n] == '/';
}

char *mount_target_fault(const char *target) {
        _free_ char *path = path_normalise(target), *shown = text_quote(target, strlen(target));
        if (*target != '/')
                return xasprintf("%s is not an absolute path: begin it with a slash", shown);
        if (!*path)
                return xasprintf("%s is the root directory: the machine runs from it already", shown);
        if (!mount_path_is_valid(target) || startswith(target, "/proc/") || startswith(target, "/sys/"))
                return xasprintf("%s has \"..\" or control characters, or is in a system directory", shown);
        if (streq(path, STATE) || lies_below(path, STATE))
                return xasprintf("%s holds the state of nodestrap: name another directory", shown);
        /* programs use them while nodestrap would move them */
        if (ONE_OF(path, "/var", "/var/lib", "/var/log", "/var/run", "/var/lock", "/var/tmp", "/tmp", "/mnt"))
                return xasprintf("%s is in use by the whole system: name a directory below it", shown);
        return NULL;
}

/* The folder of a target on a volume that has several: "var-lib-containerd". */
static char *folder_of(const char *target) {
        char *name = path_normalise(target);
        for (char *p = name; *p; p++)
                *p = *p == '/' ? '-' : *p;
        return name;
}

typedef struct Target Target;
struct Target {
        size_t entry;
        char key[40];
        const char *text;
        char *path;                     /* NULL: not valid */
        Target *up;                     /* the nearest one that it lies in or equals */
        Target *above, *below;          /* the first of those, and of those that lie in it; or itself */
};
static void check_pair(Check *c, const Target *t, const Target *before) {
        const char *a = t->path, *b = before->path;
        _free_ char *folder = folder_of(a);
        if (streq(a, b))
                complain(c, t->entry, t->key, "%s is also a target of " VOLUMES "[%zu]: name each directory "
                                              "only once", a, before->entry);
        else if (lies_below(a, b) || lies_below(b, a))
                complain(c, t->entry, t->key, "%s and %s, a target of " VOLUMES "[%zu], overlap, so "
                                              "one would hide files of the other: put them side by side",
                         a, b, before->entry);
        else
                complain(c, t->entry, t->key, "%s and %s would share the directory %s of the volume", a, b,
                         folder + 1);
}

/* A directory comes right before all that lies in it. Equal ones keep their order. */
static int compare_targets(const void *x, const void *y) {
        const Target *s = *(Target *const *)x, *t = *(Target *const *)y;
        const char *a = s->path, *b = t->path;
        for (; *a && *a == *b; a++)
                b++;
        int m = *a == '/' ? 1 : (unsigned char)*a, n = *b == '/' ? 1 : (unsigned char)*b;
        return m != n ? m - n : s < t ? -1 : s > t;
}

/* Reports each with the first one before it that it conflicts with. */
static void check_pairs(Check *c, Target *all, size_t n) {
        _free_ Target **sorted = xcalloc(n, sizeof(Target *));
        size_t m = 0;
        for (Target *t = all; t < all + n; t++)
                if (t->path)
                        sorted[m++] = t->above = t->below = t;
        if (m > 0)
                qsort((void *)sorted, m, sizeof(Target *), compare_targets);
        for (size_t i = 0; i < m; i++) {
                Target *t = sorted[i], *up = i > 0 ? sorted[i - 1] : NULL;
                while (up && !streq(t->path, up->path) && !lies_below(t->path, up->path))
                        up = up->up;
                t->up = up;
                t->above = up ? MIN(t, up->above) : t;
        }
        for (size_t i = m; i-- > 0;)
                if (sorted[i]->up)
                        sorted[i]->up->below = MIN(sorted[i]->up->below, sorted[i]->below);
        for (Target *t = all; t < all + n; t++) {
                if (!t->path)
                        continue;
                _free_ char *path = folder_of(t->path),
                            *folder = xasprintf("%zu%s", t->entry, path);
                const Target *same = &all[first_of(c->folders, folder, (size_t)(t - all))],
                             *first = MIN(MIN(t->above, t->below), same);
                if (first < t)
                        check_pair(c, t, first);
        }
}

static Target *targets_of(const json_t *list, size_t *ret_n) {
        json_t *volume, *item;
        size_t i, k, room = 1, n = 0;
        json_array_foreach(list, i, volume)
                room += 1 + json_array_size(json_object_get(volume, "mountTargets"));
        Target *all = xcalloc(room, sizeof *all);
        json_array_foreach(list, i, volume) {
                if (*json_get_text(volume, "mountTarget"))
                        all[n++] = (Target){ i, "mountTarget", json_get_text(volume, "mountTarget"), NULL };
                json_array_foreach(json_object_get(volume, "mountTargets"), k, item) {
                        all[n] = (Target){ .entry = i, .text = json_string_value(item) ?: "" };
                        snprintf(all[n].key, sizeof all[n].key, "mountTargets[%zu]", k);
                        n++;
                }
        }
        *ret_n = n;
        return all;
}

static void check_targets(Check *c) {
        size_t n = 0;
        _free_ Target *all = targets_of(c->list, &n);
        for (size_t i = 0; i < n; i++) {
                _free_ char *why = mount_target_fault(all[i].text);
                if (why)
                        complain(c, all[i].entry, all[i].key, "%s", why);
                else
                        all[i].path = path_normalise(all[i].text);
        }
        check_pairs(c, all, n);
        for (size_t i = 0; i < n; i++)
                free(all[i].path);
}

bool volumes_validate(const Merge *m, Diag *diag) {
        _cleanup_(json_decrefp) json_t *devices = json_object(), *folders = json_object();
        Check c = { .merge = m, .diag = diag, .devices = devices, .folders = folders,
                    .list = merge_find(m, VOLUMES) };
        json_t *volume;
        size_t i;
        json_array_foreach(c.list, i, volume) {
                bool one = *json_get_text(volume, "mountTarget"),
                     several = json_array_size(json_object_get(volume, "mountTargets")) > 0;
                check_device(&c, i);
                if (!one && !several)
                        complain(&c, i, "mountTarget", "is missing: the directory to mount it on");
                else if (one && several)
                        complain(&c, i, "mountTargets",
                                 "cannot be set together with mountTarget: use mountTarget for one "
                                 "directory, mountTargets for several");
        }
        check_targets(&c);
        return !c.broken;
}

static void add_target(Volume *v, size_t n, const char *target) {
        _free_ char *folder = folder_of(target);
        strv_push_at(&v->targets, n, path_normalise(target));
        json_object_set_new(v->index, v->targets[n], json_integer((json_int_t)n));
        strv_push_at(&v->folders, n, xstrdup(v->whole ? "" : folder + 1));
}

void bind_volumes(_unused_ const Field *f, const json_t *value, void *into) {
        InstanceOptions *o = into;
        json_t *item, *target;
        size_t i, k;
        o->volumes = xcalloc(json_array_size(value) + 1, sizeof *o->volumes);
        json_array_foreach(value, i, item) {
                Volume *v = &o->volumes[o->n_volumes++];
                _free_ char *name = volume_canonical(json_get_text(item, "device"));
                v->device = xstrdup(json_get_text(item, "device"));
                v->key = xstrdup(path_last(name));
                v->whole = *json_get_text(item, "mountTarget");
                v->index = json_object();
                v->filesystem = streq(json_get_text(item, "fsType"), "ext4") ? FILESYSTEM_EXT4
                                                                             : FILESYSTEM_XFS;
                if (v->whole)
                        add_target(v, 0, json_get_text(item, "mountTarget"));
                json_array_foreach(json_object_get(item, "mountTargets"), k, target)
                        add_target(v, k, json_string_value(target) ?: "");
        }
}

void volumes_free(Volume *list, size_t n) {
        for (size_t i = 0; i < n; i++) {
                FREE_ALL(list[i].device, list[i].key);
                strv_free(list[i].targets);
                strv_free(list[i].folders);
                json_decref(list[i].index);
        }
        free(list);
}
