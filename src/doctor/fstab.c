/* SPDX-License-Identifier: Apache-2.0
 * fstab(5) and mount units → mounts of disks that other machines lack, and swap, with which kubelet does
 * not start. */
#include "doctor/look.h"

#include "base/paths.h"
#include "doc/env-file.h"

#define MAX_ENTRIES 1024u

/* An array, or an NVMe device other than the first, which is the root volume. Partitions have a "p" after
 * "n1". */
static bool is_of_a_machine(const char *device) {
        if (startswith(device, "/dev/nvme"))
                return !startswith(device, "/dev/nvme0n1");
        return startswith(device, "/dev/md") || strstr(device, "_Instance_Storage_") ||
               strstr(device, "/md-");
}

static bool has_option(const char *options, const char *word) {
        size_t n = strlen(word);
        for (const char *at = strstr(options, word); at; at = strstr(at + 1, word))
                if ((at == options || at[-1] == ',') && (at[n] == ',' || !at[n]))
                        return true;
        return false;
}

static void tell_mount(Checks *checks, const char *path, const char *device, bool lenient) {
        Check *c = TELL(checks, lenient ? CHECK_WARNING : CHECK_FAILED, "leftover-mount", path, device, NULL,
                        "this disk belongs to the machine that the image was made on; %s: remove this mount",
                        lenient ? "others lack it, or have another disk there"
                                : "without it and without nofail, systemd waits 90 s and stops the boot");
        c->cause = lenient ? CAUSE_NONE : CAUSE_MOUNT;
}

typedef struct Entry { char *device, *place, *type, *options; } Entry;

/* Writes NULs into the text. */
static bool next_entry(char **rest, Entry *ret) {
        for (char *line = strsep(rest, "\n"); line; line = strsep(rest, "\n")) {
                char *words[4] = { NULL };
                for (size_t i = 0; i < ARRAY_SIZE(words) && line;) {
                        char *word = strsep(&line, " \t");
                        if (*word)
                                words[i++] = word;
                }
                if (!words[1] || *words[0] == '#')
                        continue;
                *ret = (Entry){ words[0], words[1], words[2], words[3] };
                return true;
        }
        return false;
}

static bool is_swap(const Entry *e) {
        return e->type && streq(e->type, "swap");
}

static bool is_lenient(const Entry *e) {
        return e->options && (has_option(e->options, "nofail") || has_option(e->options, "noauto"));
}

/* A name that any disk may have, and a mount point unusual for a root volume. */
static bool is_doubtful(const Entry *e) {
        static const char devices[][16] = { "UUID=",         "LABEL=",   "PARTUUID=", "PARTLABEL=",
                                            "/dev/disk/by-", "/dev/xvd", "/dev/sd" };
        static const char *const roots[] = { "/dev/xvda", "/dev/sda" };
        const char *top = e->place + (*e->place == '/');
        _free_ char *first = str_cut(&top, "/");
        return ANY(d, devices, ARRAY_SIZE(devices), startswith(e->device, *d)) &&
               !ANY(r, roots, ARRAY_SIZE(roots), startswith(e->device, *r)) &&
               !ONE_OF(first, "", "boot", "efi", "home", "opt", "root", "srv", "tmp", "usr", "var");
}

/* look_swap() handles swap: systemd boots without it. */
static void search_fstab(const Look *l) {
        _free_ char *text = image_text(l->root, IMAGE_TEXT_MAX, "/etc/fstab");
        char *rest = text;
        Entry e;
        for (unsigned n = 0; rest && n < MAX_ENTRIES && next_entry(&rest, &e); n++)
                if (is_of_a_machine(e.device) && !is_swap(&e))
                        tell_mount(l->checks, "/etc/fstab", e.device, is_lenient(&e));
                else if (is_doubtful(&e) && !is_swap(&e) && !is_lenient(&e))
                        TELL(l->checks, CHECK_WARNING, "leftover-mount", "/etc/fstab", e.device, NULL,
                             "it is mounted on %s: a machine without this disk waits 90 s and stops the "
                             "boot. Remove the entry, or add nofail",
                             e.place);
}

/* The caller frees it. */
static char *swap_in_fstab(const Look *l) {
        _free_ char *text = image_text(l->root, IMAGE_TEXT_MAX, "/etc/fstab");
        char *rest = text;
        Entry e;
        while (rest && next_entry(&rest, &e))
                if (is_swap(&e) && !(e.options && has_option(e.options, "noauto")))
                        return xstrdup(e.device);
        return NULL;
}

/* Swap on a disk of another machine: a boot goes on without it. */
void look_swap(Look *l, const Need *need) {
        _free_ char *device = l->image->running ? kernel_swap(l->root) : swap_in_fstab(l);
        if (!device) {
                look_well(l, need, "swap", "none");
                return;
        }
        bool running = l->image->running, lacks = !running && is_of_a_machine(device);
        TELL(l->checks, lacks ? CHECK_WARNING : CHECK_FAILED, "swap", need->name, device, need,
             "kubelet does not start with swap (spec.kubelet.config.failSwapOn): %s",
             running ? "swapoff -a, and remove it from /etc/fstab"
             : lacks ? "a boot without this disk also waits 90 s for it. Remove it from /etc/fstab"
                     : "remove it from /etc/fstab");
}

/* Only units in /etc: packages put theirs in /usr. */
static void search_mount_units(const Look *l) {
        _strv_ char **names = root_names(l->root, UNIT_DIR);
        for (char **name = names; name && *name && name < names + MAX_ENTRIES; name++) {
                _free_ char *path = xasprintf(UNIT_DIR "/%s", *name), *target = NULL;
                if (!endswith(*name, ".mount") || root_read_link(l->root, path, &target) >= 0)
                        continue;
                _free_ char *text = image_text(l->root, IMAGE_TEXT_MAX, "%s", path),
                            *what = text ? assignment_in_unit(text, "Mount", "What") : NULL;
                if (what && (is_of_a_machine(what) || startswith(what, "UUID=") ||
                             startswith(what, "/dev/disk/by-uuid/")))
                        tell_mount(l->checks, path, what, true);
        }
}

void search_mounts(const Look *l) {
        search_fstab(l);
        search_mount_units(l);
}
