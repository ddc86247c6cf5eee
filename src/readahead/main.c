/* SPDX-License-Identifier: Apache-2.0
 * nodestrap-read-ahead LIST: brings the files of a list into the page cache while the disk is idle.
 * units/nodestrap-read-ahead.service runs it beside the phases; nothing waits for it, and it never fails.
 *
 * It asks for a file in pieces of one request each; readahead(2) does not wait for them. So it can tell the
 * requests of others: the disk has more under way (inflight in sysfs) than pieces are missing. Then it waits
 * until that is over. I/O priorities have no effect: the disks of EC2 have no scheduler that heeds them.
 *
 * As many pieces are under way as do not slow each other down. A volume with a long latency gets many. A
 * volume with a limit of bytes gets few, so a request of others finds a short queue there. */
#include "base/log.h"
#include "base/paths.h"
#include "base/root.h"
#include "base/str.h"
#include "base/time.h"
#include "readahead/list.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <glob.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define LIST_MAX    (1 << 20)
#define PIECE_MAX   (256U << 10)        /* EBS counts up to this as one request */
#define PIECE_MIN   (16U << 10)
#define PAGE_MIN    4096U
#define DEPTH_MAX   64
#define SHARE       4                   /* at most 1/SHARE of MemAvailable */
#define TIME        (180 * USEC_PER_SEC)
#define TICK_MIN    (2 * USEC_PER_MSEC)
#define TICK_MAX    (10 * USEC_PER_MSEC)
#define LOOK        (100 * USEC_PER_MSEC)       /* between checks for kubelet */
#define QUIET_MIN   (20 * USEC_PER_MSEC)        /* a program may think between two of its reads */
#define QUIET_MAX   (50 * USEC_PER_MSEC)
#define NOISE       (5 * USEC_PER_MSEC)         /* of a latency: half of TICK_MAX */
#define STUCK       (2 * USEC_PER_SEC)
#define PRESSURE    30                  /* per cent, where the disk does not count its requests */

typedef struct File {
        int fd;
        unsigned char *map;             /* for mincore(2): never touched */
        size_t size;
        size_t users;                   /* pieces under way, and file_read() */
} File;

typedef struct Piece {
        File *file;
        size_t at, size, had;           /* had: bytes that were there already */
        uint64_t since_usec;
        bool alone;                     /* no other one was under way */
        bool again;                     /* asked for twice */
} Piece;

/* The one that the current file lies on. */
typedef struct Disk {
        dev_t device;
        int inflight_fd;                /* -1: no counter, as on an overlay */
        size_t piece;                   /* bytes */
        unsigned depth;
        uint64_t base_usec;             /* the latency of a piece alone */
        uint64_t last_usec;             /* what the last piece took, in the queue as it is */
        uint64_t busy_usec;             /* when others last waited */
} Disk;

typedef struct Reader {
        const Root *root;
        size_t page;
        uint64_t begin_usec, until_usec, look_usec;
        Disk disk;
        Piece pieces[DEPTH_MAX];        /* a ring */
        size_t first, n;
        struct { dev_t device; ino_t inode; } *seen;
        size_t n_seen;
        uint64_t limit, asked, brought, present;        /* bytes */
        const char *ended;              /* why, or NULL */
} Reader;

/* ---- the page cache ---- */

/* How much of a range is cached. For files of others, mincore(2) may claim all of it. */
static size_t bytes_in(const Reader *r, const File *f, size_t at, size_t size) {
        unsigned char pages[PIECE_MAX / PAGE_MIN];
        size_t n = (size + r->page - 1) / r->page, in = 0;
        if (mincore(f->map + at, size, pages) < 0)
                return size;
        for (size_t i = 0; i < n; i++)
                in += pages[i] & 1 ? MIN(r->page, size - i * r->page) : 0;
        return in;
}

static void file_release(File *f) {
        if (--f->users > 0)
                return;
        munmap(f->map, f->size);
        close(f->fd);
        free(f);
}

/* ---- the disk ---- */

/* A partition has the attributes of its disk in the folder above. */
static int disk_open(const Reader *r, dev_t device, const char *name) {
        static const char parts[][4] = { "../", "" };
        int fd = -ENOENT;
        for (size_t i = 0; fd < 0 && i < ARRAY_SIZE(parts); i++) {
                _free_ char *path =
                        xasprintf("/sys/dev/block/%u:%u/%s%s", major(device), minor(device), parts[i], name);
                fd = root_open(r->root, path, O_RDONLY);
        }
        return fd;
}

/* Reads two numbers; returns how many it found. */
static int numbers_read(int fd, unsigned *ret_first, unsigned *ret_second) {
        char text[64];
        ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
        text[MAX(n, 0)] = 0;
        return sscanf(text, "%u %u", ret_first, ret_second);
}

/* The kernel cuts what one readahead(2) asks for to the largest request of the disk, or to its read_ahead_kb
 * (mm/readahead.c, force_page_cache_ra()). */
static void disk_enter(Reader *r, dev_t device) {
        unsigned kib, none;
        _cleanup_(close_fd) int fd = disk_open(r, device, "queue/max_sectors_kb");
        size_t most = numbers_read(fd, &kib, &none) == 1 ? (size_t)kib << 10 : PIECE_MAX / 2;
        close_fd(&r->disk.inflight_fd);
        r->disk = (Disk){ .device = device,
                          .inflight_fd = disk_open(r, device, "inflight"),
                          .depth = 1,
                          .piece = MIN(MAX(most, MAX(PIECE_MIN, r->page)), PIECE_MAX) / r->page * r->page };
}

static double pressure(const Reader *r) {
        _free_ char *text = NULL;
        double some = 0;
        if (root_read_line(r->root, "/proc/pressure/io", &text) >= 0)
                (void)!sscanf(text, "some avg10=%lf", &some);
        return some;
}

static bool others_wait(Reader *r) {
        Disk *d = &r->disk;
        unsigned reads = 0, writes = 0, own = 0;
        /* first ours, which may end meanwhile: else they would pass for those of others */
        for (size_t i = 0; i < r->n; i++) {
                const Piece *p = &r->pieces[(r->first + i) % DEPTH_MAX];
                own += bytes_in(r, p->file, p->at, p->size) < p->size;
        }
        uint64_t now = now_usec();
        bool busy = numbers_read(d->inflight_fd, &reads, &writes) == 2 ? reads + writes > own
                                                                       : pressure(r) > PRESSURE;
        if (busy) {
                d->busy_usec = now;
                d->depth = 1;           /* where others work, the queue stays short */
        }
        /* the slower the disk, the more a piece costs the next reader */
        return d->busy_usec > 0 && now - d->busy_usec < MIN(MAX(2 * d->base_usec, QUIET_MIN), QUIET_MAX);
}

/* ---- pieces ---- */

static void ask(const Piece *p) {
        (void)!readahead(p->file->fd, (off_t)p->at, p->size);
}

/* Short pieces say nothing about the disk. The initial burst of a volume overstates it, so each piece that is
 * under way alone sets the base again. */
static void depth_fit(Disk *d, const Piece *p, uint64_t took) {
        if (p->size < d->piece)
                return;
        d->last_usec = took;
        if (p->alone || d->base_usec == 0)
                d->base_usec = took;
        d->base_usec = MIN(d->base_usec, took);
        if (took <= 2 * d->base_usec + NOISE)
                d->depth = MIN(d->depth + 1, DEPTH_MAX);
        else
                d->depth -= d->depth / 4 + (d->depth > 1);
}

/* The oldest first. The kernel may drop a request, so ask once more for a piece that is late. */
static void reap(Reader *r) {
        while (r->n > 0) {
                Piece *p = &r->pieces[r->first];
                size_t in = bytes_in(r, p->file, p->at, p->size);
                uint64_t took = now_usec() - p->since_usec;
                if (in < p->size && !r->ended && took < STUCK)
                        return;
                if (in < p->size && !r->ended && !p->again) {
                        p->again = true;
                        p->since_usec = now_usec();
                        ask(p);
                        return;
                }
                if (in == p->size && !p->again)
                        depth_fit(&r->disk, p, took);
                r->brought += in > p->had ? in - p->had : 0;
                file_release(p->file);
                r->first = (r->first + 1) % DEPTH_MAX;
                r->n--;
        }
}

static bool is_over(Reader *r) {
        if (!r->ended && stop_signal() != 0)
                r->ended = "stopped";
        uint64_t now = now_usec();
        if (!r->ended && now >= r->until_usec)
                r->ended = "time";
        if (!r->ended && now >= r->look_usec) {
                r->look_usec = now + LOOK;
                if (root_exists(r->root, KUBELET_TURN) == 1)
                        r->ended = "kubelet";
        }
        return r->ended;
}

/* With none under way others have the disk, and maybe need the processor. With all of them under way the
 * oldest rarely ends before three quarters of the time that the last one took. */
static uint64_t pause_usec(const Reader *r, uint64_t now) {
        uint64_t due = r->pieces[r->first].since_usec + r->disk.last_usec / 4 * 3;
        if (r->n == 0)
                return TICK_MAX;
        if (r->n >= r->disk.depth && due > now)
                return MIN(MAX(due - now, TICK_MIN), LOOK);
        return MIN(MAX(r->disk.base_usec / 2, TICK_MIN), TICK_MAX);
}

static bool wait_turn(Reader *r) {
        for (;; sleep_usec(pause_usec(r, now_usec()))) {
                reap(r);
                if (is_over(r))
                        return false;
                if (r->n < r->disk.depth && !others_wait(r))
                        return true;
        }
}

static void drain(Reader *r) {
        for (reap(r); r->n > 0 && !is_over(r); reap(r))
                sleep_usec(pause_usec(r, now_usec()));
        reap(r);
}

/* ---- files ---- */

static uint64_t memory_available(const Root *root) {
        _free_ char *text = NULL;
        const char *line = root_read(root, "/proc/meminfo", 1 << 16, &text, NULL) >= 0
                                   ? strstr(text, "MemAvailable:")
                                   : NULL;
        return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) << 10 : 0;
}

static bool is_seen(Reader *r, const struct stat *st) {
        if (ANY(s, r->seen, r->n_seen, s->device == st->st_dev && s->inode == st->st_ino))
                return true;
        __auto_type new = APPEND(r->seen, r->n_seen);
        new->device = st->st_dev;
        new->inode = st->st_ino;
        return false;
}

static void file_read(Reader *r, File *f) {
        for (size_t at = 0, size; at < f->size; at += size) {
                size = MIN(r->disk.piece, f->size - at);
                size_t in = bytes_in(r, f, at, size);
                r->present += in;
                if (in == size)
                        continue;
                if (r->asked + size > r->limit) {
                        drain(r);
                        r->ended = r->ended ?: "memory";
                }
                if (!wait_turn(r))
                        return;
                r->asked += size;
                f->users++;
                Piece *p = &r->pieces[(r->first + r->n) % DEPTH_MAX];
                *p = (Piece){ f, at, size, in, now_usec(), r->n == 0, false };
                r->n++;
                ask(p);
        }
}

static void path_read(Reader *r, const char *path) {
        struct stat st;
        _cleanup_(close_fd) int fd = root_open(r->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0 || is_seen(r, &st))
                return;
        void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return;
        if (st.st_dev != r->disk.device) {
                drain(r);
                disk_enter(r, st.st_dev);
        }
        r->limit = MIN(r->limit, r->asked + memory_available(r->root) / SHARE);
        File *f = xcalloc(1, sizeof *f);
        *f = (File){ TAKE_FD(fd), map, (size_t)st.st_size, 1 };
        file_read(r, f);
        file_release(f);
}

static void pattern_read(Reader *r, const char *pattern) {
        const char *below = streq(root_path(r->root), "/") ? "" : root_path(r->root);
        _free_ char *whole = xasprintf("%s%s", below, pattern);
        glob_t found = {};
        if (glob(whole, GLOB_BRACE, NULL, &found) == 0)
                for (size_t i = 0; i < found.gl_pathc && !is_over(r); i++)
                        path_read(r, found.gl_pathv[i] + strlen(below));
        globfree(&found);
}

static void list_read(Reader *r, const char *list) {
        _free_ char *text = NULL, *release = NULL;
        int e = root_read(r->root, list, LIST_MAX, &text, NULL);
        if (e < 0) {
                log_line_errno(LOG_NOTICE, e, "%s cannot be read, so nothing is read ahead from it", list);
                return;
        }
        (void)!root_read_line(r->root, "/proc/sys/kernel/osrelease", &release);
        ListRow row = {};
        for (char *at = text; !is_over(r) && list_next(&at, &row);) {
                _free_ char *pattern = list_pattern(row.path, release ?: "*");
                int holds = list_condition(r->root, row.condition);
                if (holds < 0 || *pattern != '/')
                        log_info("%s:%u: expected a condition and an absolute path; ignored", list, row.line);
                else if (holds > 0)
                        pattern_read(r, pattern);
        }
}

static void tell(const Reader *r) {
        uint64_t end = now_usec();
        _free_ char *took = usec_text((int64_t)(end - r->begin_usec)),
                    *text = xasprintf("{\"beginUsec\": %ju, \"endUsec\": %ju, \"bytesBrought\": %ju, "
                                      "\"bytesPresent\": %ju, \"ended\": \"%s\"}\n",
                                      (uintmax_t)r->begin_usec, (uintmax_t)end, (uintmax_t)r->brought,
                                      (uintmax_t)r->present, r->ended);
        int e = root_replace_volatile(r->root, READ_AHEAD_FILE, text, strlen(text), 0644);
        if (e < 0)
                log_line_errno(LOG_NOTICE, e, READ_AHEAD_FILE " cannot be written");
        log_info("%.1f MiB read ahead in %s, %.1f MiB were in memory already; exit reason: %s",
                 (double)r->brought / (1 << 20), took, (double)r->present / (1 << 20), r->ended);
}

int main(int argc, char **argv) {
        static const struct option options[] = { { "root", required_argument, NULL, 'r' },
                                                 { "for", required_argument, NULL, 'f' },
                                                 {} };
        _cleanup_(root_freep) Root *root = NULL;
        const char *path = "/";
        uint64_t span = TIME;
        int e = 0, c;
        while (e >= 0 && (c = getopt_long(argc, argv, "", options, NULL)) != -1)
                if (c == 'f')
                        e = parse_timespan(optarg, &span);
                else if (c == 'r')
                        path = optarg;
                else
                        e = -EINVAL;
        if (e < 0 || optind == argc) {
                fprintf(stderr, "usage: nodestrap-read-ahead [--root DIRECTORY] [--for TIME] LIST...\n"
                                "Brings the files of a list into memory; nodestrap-read-ahead.service "
                                "runs it.\n");
                return 2;
        }
        stop_catch();
        e = root_new(path, &root);
        if (e < 0) {
                log_line_errno(LOG_NOTICE, e, "%s cannot be opened, so nothing is read ahead", path);
                return 0;
        }
        Reader r = { .root = root,
                     .page = (size_t)sysconf(_SC_PAGESIZE),
                     .begin_usec = now_usec(),
                     .limit = memory_available(root) / SHARE,
                     .disk.inflight_fd = -1 };
        r.until_usec = r.begin_usec + span;
        for (int i = optind; i < argc && !is_over(&r); i++)
                list_read(&r, argv[i]);
        drain(&r);
        r.ended = r.ended ?: "done";
        tell(&r);
        close_fd(&r.disk.inflight_fd);
        free(r.seen);
        return 0;
}
