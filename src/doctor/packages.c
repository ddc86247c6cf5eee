/* SPDX-License-Identifier: Apache-2.0
 * Versions of programs in an image, without running them. They come from dpkg (deb-control(5)) or from rpm:
 * a header in an SQLite table has name, version and release in sequence (rpm:docs/manual/format_header.md).
 * Otherwise from the one string in the file that looks like an NVIDIA driver version. */
#include "doctor/look.h"

#include <errno.h>

#define STATUS_MAX   (32U << 20)    /* /var/lib/dpkg/status has some MiB */
#define DATABASE_MAX (512ULL << 20) /* of the rpm database, which is 30 MiB on an EKS image */
#define PROGRAM_MAX  (64ULL << 20)
#define WINDOW       (1U << 20)
#define OVERLAP      512U
#define VERSION_SIZE 64U

/* The rest of a package name: nothing, or a branch ("-580"). */
static bool is_branch(const char *s, size_t size) {
        if (size == 0)
                return true;
        for (size_t i = 1; i < size; i++)
                if (!is_digit(s[i]))
                        return false;
        return size > 1 && s[0] == '-';
}

static char *dpkg_version(const char *status, const char *name) {
        size_t n = strlen(name);
        for (const char *at = status, *end; *at; at = end + strspn(end, "\n")) {
                end = strstr(at, "\n\n") ?: at + strlen(at);
                _free_ char *paragraph = xstrndup(at, (size_t)(end - at)),
                            *package = line_value(paragraph, "Package", ":"), *state = NULL, *version = NULL;
                if (!package || !startswith(package, name) || !is_branch(package + n, strlen(package) - n))
                        continue;
                state = line_value(paragraph, "Status", ":");
                version = line_value(paragraph, "Version", ":");
                if (!state || !version || !strstr(state, " installed"))
                        continue;
                /* "3:580.126.09-1.amzn2023" → "580.126.09" */
                const char *colon = strchr(version, ':'), *begin = colon ? colon + 1 : version,
                           *dash = strrchr(begin, '-');
                return xstrndup(begin, dash ? (size_t)(dash - begin) : strlen(begin));
        }
        return NULL;
}

typedef bool (*WindowSeen)(const char *data, size_t size, void *to);

/* Each piece begins with the end of the one before. Ends when seen returns false. */
static void read_windows(const Root *root, const char *path, uint64_t limit, WindowSeen seen, void *to) {
        _cleanup_(close_fd) int fd = image_file(root, path);
        _free_ char *data = fd >= 0 ? xcalloc(OVERLAP + WINDOW + 1, 1) : NULL;
        size_t kept = 0;
        for (uint64_t done = 0; fd >= 0 && done < limit;) {
                ssize_t n = read(fd, data + kept, WINDOW);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return;
                size_t size = kept + (size_t)n;
                done += (uint64_t)n;
                if (!seen(data, size, to))
                        return;
                kept = MIN(size, (size_t)OVERLAP);
                memmove(data, data + size - kept, kept);
        }
}

/* Of a package of that name, or of a program: wanted ends the search. */
typedef struct VersionSearch { const char *name, *wanted; char *version; bool several; } VersionSearch;

static void search_take(VersionSearch *s, const char *version) {
        s->several |= s->version && !streq(s->version, version);
        if (!s->version)
                s->version = xstrdup(version);
}

/* The only version; NULL: none, or several. */
static char *search_end(VersionSearch *s) {
        if (s->several)
                free(TAKE_PTR(s->version));
        return s->version;
}

static bool version_is_plausible(const char *s, size_t size) {
        if (size == 0 || size > VERSION_SIZE || !is_digit(s[0]))
                return false;
        for (size_t i = 0; i < size; i++)
                if (s[i] <= ' ' || s[i] > '~')
                        return false;
        return true;
}

/* "C", the only language of the header, precedes the name. SQLite may keep a copy of a replaced package in a
 * free page; then there are several, and the version is not known. */
static bool rpm_seen(const char *data, size_t size, void *to) {
        VersionSearch *s = to;
        char begin[80] = "C";
        size_t n = strlen(s->name) + 2;
        if (n >= sizeof begin)
                return false;
        memcpy(begin + 2, s->name, n - 2);
        const char *end = data + size;
        for (const char *at = data; (at = memmem(at, (size_t)(end - at), begin, n)); at++) {
                const char *rest = at + n, *nul = memchr(rest, 0, (size_t)(end - rest));
                const char *version = nul ? nul + 1 : NULL;
                const char *stop = version ? memchr(version, 0, (size_t)(end - version)) : NULL;
                if (!stop || !is_branch(rest, (size_t)(nul - rest)) ||
                    !version_is_plausible(version, (size_t)(stop - version)))
                        continue;
                search_take(s, version);
        }
        return true;
}

static char *rpm_version(const Root *root, const char *name) {
        static const char *const databases[] = { "/usr/lib/sysimage/rpm/rpmdb.sqlite",
                                                 "/var/lib/rpm/rpmdb.sqlite" };
        VersionSearch s = { .name = name };
        for (size_t i = 0; i < ARRAY_SIZE(databases) && !s.version; i++)
                read_windows(root, databases[i], DATABASE_MAX, rpm_seen, &s);
        return search_end(&s);
}

char *package_version(const Root *root, const char *const *names) {
        _free_ char *status = image_text(root, STATUS_MAX, "/var/lib/dpkg/status");
        char *version = NULL;
        for (const char *const *name = names; *name && !version; name++)
                version = status ? dpkg_version(status, *name) : rpm_version(root, *name);
        return version;
}

bool driver_is_version(const char *s, size_t size) {
        size_t n = strspn(s, "0123456789");
        if (n != 3 || size < 6 || s[n] != '.')
                return false;
        size_t minor = strspn(s + n + 1, "0123456789"), at = n + 1 + minor;
        if (minor < 2 || minor > 3)
                return false;
        return at == size || (s[at] == '.' && size - at == 3 && strspn(s + at + 1, "0123456789") == 2);
}

static bool string_seen(const char *data, size_t size, void *to) {
        VersionSearch *s = to;
        const char *end = data + size;
        for (const char *nul = memchr(data, 0, size); nul;
             nul = memchr(nul + 1, 0, (size_t)(end - nul - 1))) {
                const char *next = memchr(nul + 1, 0, MIN((size_t)(end - nul - 1), (size_t)12));
                if (!next || !driver_is_version(nul + 1, (size_t)(next - nul - 1)))
                        continue;
                if (s->wanted && streq(nul + 1, s->wanted)) {
                        RENEW(s->version, xstrdup(s->wanted));
                        s->several = false;
                        return false;
                }
                search_take(s, nul + 1);
        }
        return true;
}

char *program_version(const Root *root, const char *path, const char *wanted) {
        VersionSearch s = { .wanted = wanted };
        read_windows(root, path, PROGRAM_MAX, string_seen, &s);
        return search_end(&s);
}
