/* SPDX-License-Identifier: Apache-2.0
 * spec.containerd as containerd reads it, and its table. A value of a wrong type ends containerd, or its CRI
 * plugin where it is in baseRuntimeSpec. A key outside the table is a warning, since a newer containerd may
 * have it. Keys match in any case, as containerd 2 reads TOML, and each reads JSON (pelletier/go-toml
 * unmarshaler.go, Go encoding/json). */
#include "config/containerd.h"

#include "base/str.h"
#include "config/fields.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* ---- the table ---- */

/* versions: ' ' all; '2' from 2.2 on; 'C' before 2.2; 's', 't' in a file of schema 2, 3 */
typedef struct Row { char type, versions; const char *key, *limits; } Row;

/* An empty row ends each section. */
static const char *section_at(size_t index) {
        static Table table = { containerd_known_settings, &containerd_known_settings_size, NULL };
        static const char *found[96];           /* kept, since a file may have thousands of tables */
        const char *p = table_text(&table);
        for (size_t i = 0; !found[index]; i++) {
                found[i] = p;
                for (; *p; p += strlen(p) + 1)
                        p += strlen(p) + 1;
                p++;
        }
        return found[index];
}

static bool row_next(const char **at, Row *ret) {
        if (!**at)
                return false;
        *ret = (Row){ .type = (*at)[0], .versions = (*at)[1] };
        ret->key = table_cell(at) + 2;
        ret->limits = table_cell(at);
        return true;
}

static size_t row_section(const Row *row) {
        return (size_t)(row->limits[0] - '!');
}

static bool has_row(const ContainerdGiven *g, const Row *row) {
        char c = row->versions;
        if (c == 's' || c == 't')
                return g->schema == 0 || g->schema == (c == 's' ? 2u : 3u);
        if (c == ' ' || g->version == 0)
                return true;
        return is_digit(c) ? g->version >= 200u + (unsigned)(c - '0')
                           : g->version < 200u + (unsigned)(c - 'A');
}

/* Does the row hold for each possible containerd? The schema of a file tells 1.x from 2.x. */
static bool is_for_all(const ContainerdGiven *g, const Row *row) {
        static const char versions[][8] = { " st", " st", " stA", " st0" };
        return g->version > 0 || strchr(versions[g->schema], row->versions);
}

/* The row of this version, or, with known false, of another. */
static bool row_find(const ContainerdGiven *g, const char *section, const char *key, Row *ret, bool *known) {
        Row row;
        bool found = false;
        *known = false;
        while (!*known && row_next(&section, &row)) {
                if (row.type == '+') {
                        Row inner;
                        if (!row_find(g, section_at(row_section(&row)), key, &inner, known))
                                continue;
                        row = inner;
                } else if (strcasecmp(row.key, key) != 0)
                        continue;
                else
                        *known = has_row(g, &row);
                found = true;
                *ret = row;
        }
        return found;
}

static void try_rows(const ContainerdGiven *g, const char *section, Nearest *near) {
        Row row;
        while (row_next(&section, &row))
                if (row.type == '+')
                        try_rows(g, section_at(row_section(&row)), near);
                else if (has_row(g, &row))
                        nearest_try(near, row.key);
}

/* Does containerd 1 read a key that differs in case alone? pelletier/go-toml 1.9 marshal.go: valueFromTree()
 * tries four spellings. */
static bool one_reads(const char *name, const char *key) {
        bool lower = false, upper = false;
        for (const char *p = key; *p; p++) {
                lower |= *p >= 'a' && *p <= 'z';
                upper |= *p >= 'A' && *p <= 'Z';
        }
        return !lower || !upper || (streq(key + 1, name + 1) && (*key == *name || *key >= 'a'));
}

/* conf/tables.awk counts the sections: the top of the file is 0, the spec is 1. */
static const char *plugins_section(void) {
        Row row = { .limits = "!" };
        bool known;
        row_find(&(ContainerdGiven){}, section_at(0), "plugins", &row, &known);
        return section_at(row_section(&row));
}

static const char *plugin_name(const char *id) {
        return startswith(id, "io.containerd.") ? id + strlen("io.containerd.") : id;
}

ContainerdPlugin containerd_plugin(const ContainerdGiven *g, const char *id) {
        Row row;
        bool known;
        if (!startswith(id, "io.containerd.") ||
            !row_find(g, plugins_section(), plugin_name(id), &row, &known) || !known)
                return PLUGIN_UNKNOWN;
        return row.limits[row.type != 'n'] == '!' && is_for_all(g, &row) ? PLUGIN_NEEDED : PLUGIN_KNOWN;
}

unsigned containerd_version(const char *version) {
        return !version_at_least(version, 1, 0) || version_at_least(version, 2, 5) ? 0
                       : version_at_least(version, 2, 0) ? 200 + version_minor(version)
                                                         : 100 + version_minor(version);
}

/* ---- values ---- */

static bool is_one(const ContainerdGiven *g) {
        return g->version > 0 && g->version < 200;
}

/* github.com/containerd/platforms database.go */
static bool is_system_or_architecture(const char *text) {
        static const char systems[] =
                "aix|android|darwin|dragonfly|freebsd|hurd|illumos|ios|js|linux|macos|nacl|netbsd|openbsd|"
                "plan9|solaris|windows|zos";
        static const char architectures[] =
                "386|i386|amd64|x86_64|x86-64|amd64p32|arm|armel|armhf|armbe|arm64|aarch64|arm64be|ppc64|"
                "ppc64le|loong64|mips|mipsle|mips64|mips64le|mips64p32|mips64p32le|ppc|riscv|riscv64|s390|"
                "s390x|sparc|sparc64|wasm";
        _free_ char *word = str_lower(text), *system = xstrndup(word, strcspn(word, "("));
        return word_is_among(system, systems) || word_is_among(word, architectures);
}

/* github.com/containerd/platforms platforms.go: Parse(). The system may have a version in brackets. */
static bool is_platform(const char *text) {
        if (!strchr(text, '/') && !is_system_or_architecture(text))
                return false;
        for (size_t parts = 0;; text++) {
                size_t n = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.");
                if (parts == 0 && text[n] == '(')
                        n = strchr(text, ')') ? strcspn(text, ")") + 1 : 0;
                if (n == 0 || ++parts > 3)
                        return false;
                text += n;
                if (*text != '/')
                        return !*text;
        }
}

static bool is_port(const char *text) {
        uint64_t port;
        return strlen(text) <= 5 && parse_u64(text, &port) >= 0 && port <= UINT16_MAX;
}

/* As net.Listen() of Go takes it: a host of digits is an address, and one with colons stands in brackets. */
static bool is_host_and_port(const char *text) {
        const char *colon = strrchr(text, ':');
        if (!colon || !is_port(colon + 1))
                return false;
        size_t n = (size_t)(colon - text);
        bool six = n > 2 && text[0] == '[' && colon[-1] == ']';
        _free_ char *host = six ? xstrndup(text + 1, n - 2) : xstrndup(text, n);
        return six || (n > 0 && strspn(host, "0123456789.") == n) ? address_is_valid(host)
                                                                  : !strpbrk(host, ": \t[]");
}

/* An empty text is the default, but not in a list. */
static const char *text_fault(const char *text, const char *limits, bool listed, Text *room) {
        bool level = streq(limits, "@level");
        if (!*limits || (!*text && !listed && !streq(limits, "@platform")))
                return NULL;
        if (streq(limits, "@absolute"))
                return *text == '/' ? NULL : "must be an absolute path";
        if (streq(limits, "@address"))
                return is_host_and_port(text)
                               ? NULL : "must be an address and a port, such as 127.0.0.1:1338";
        if (streq(limits, "@socket"))
                return *text == '/' || is_host_and_port(text)
                               ? NULL : "must be the absolute path of a socket, or an address and a port";
        if (streq(limits, "@port"))
                return is_port(text) ? NULL : "must be a port from 0 to 65535, in quotes";
        if (streq(limits, "@platform"))
                return is_platform(text) ? NULL : "must be a platform, such as linux/amd64";
        _free_ char *word = level ? str_lower(text) : xstrdup(text);
        return word_fault(word, level ? "trace|debug|info|warn|warning|error|fatal|panic" : limits, room);
}

/* In JSON 20.0 is whole: the plan writes 20. */
static bool is_whole(const json_t *value, bool json) {
        double whole;
        return json_is_integer(value) ||
               (json && json_is_real(value) && modf(json_real_value(value), &whole) == 0.0);
}

static const char *number_fault(char type, const json_t *value, const char *limits, bool json,
                                Text *room) {
        static const struct { char type; double low, high; const char *range; } ranges[] = {
                { 'h', 0, UINT16_MAX, "from 0 to 65535" },
                { 'i', -0x1p63, 0x1p63, "a 64-bit number" },
                { 'j', INT32_MIN, INT32_MAX, "from -2147483648 to 2147483647" },
                { 'u', 0, UINT32_MAX, "from 0 to 4294967295" },
                { 'w', 0, 0x1p64, "from 0 to 18446744073709551615" },
        };
        double n = json_number_value(value);
        __auto_type range = FIND(r, ranges, ARRAY_SIZE(ranges), r->type == type);
        if (!is_whole(value, json))
                return "must be a whole number, without quotes";
        bool over = type == 'i' && json_is_real(value) && fabs(n) >= 0x1p63;
        if (n >= range->low && n <= range->high && !over && (!*limits || n >= strtod(limits, NULL)))
                return NULL;
        return *limits ? text_say(room, "must be at least %.*s", (int)strcspn(limits, ":"), limits)
                       : text_say(room, "must be %s", range->range);
}

/* time.ParseDuration() of Go. 2.x also takes a number, of nanoseconds. */
static const char *interval_fault(const ContainerdGiven *g, const json_t *value, bool numbers) {
        double unused;
        if (json_is_integer(value) && numbers && !is_one(g))
                return NULL;
        return json_is_string(value) && *json_string_value(value) &&
                               kubelet_parse_duration(json_string_value(value), &unused)
                       ? NULL : "must be a duration with a unit, such as 10s or 1h30m";
}

static const char *list_fault(char type, const json_t *value, const char *limits, Text *room) {
        const char *fault = json_is_array(value) ? NULL
                            : type == 'l' ? "must be a list of strings" : "must be a list of numbers";
        json_t *item;
        size_t i;
        json_array_foreach(value, i, item)
                if (!fault)
                        fault = type == 'U' ? number_fault('u', item, "", true, room)
                                : !json_is_string(item) ? "must be a list of strings"
                                : text_fault(json_string_value(item), limits, true, room);
        return fault;
}

static const char *value_fault(const ContainerdGiven *g, const Row *row, const json_t *value, bool json,
                               Text *room) {
        switch (row->type) {
        case 's':
                return json_is_string(value) ? text_fault(json_string_value(value), row->limits, false, room)
                                             : "must be a string: put it in quotes";
        case 'b':
                if (json_is_true(value) && *row->limits)
                        return "must be false: only io.containerd.runtime.v1.linux takes it";
                return json_is_boolean(value) ? NULL : "must be true or false, without quotes";
        case 'f':
                return json_is_real(value) || (json_is_integer(value) && !is_one(g))
                               ? NULL : "must be a number with a decimal point, without quotes";
        case 'd':
                if (json_is_string(value) && !json_string_length(value))
                        return NULL;
                return kubelet_value_fault(&(KubeletSetting){ .type = 'd', .limits = row->limits }, value,
                                           room);
        case 'D':
        case 'e':
                return interval_fault(g, value, row->type == 'D');
        case 'l':
        case 'U':
                return list_fault(row->type, value, row->limits, room);
        case 'a':
                return json_is_array(value) ? NULL : "must be a list of tables";
        case 'n':
                return NULL;
        default:
                return !strchr("mMLtT", row->type) ? number_fault(row->type, value, row->limits, json, room)
                       : json_is_object(value)     ? NULL
                                                   : "must be a table";
        }
}

/* ---- a table and what is in it ---- */

typedef struct Reading {
        const ContainerdGiven *given;
        ContainerdTell *tell;
        ContainerdUnknown *unknown;
        void *context;
        size_t *told;                   /* calls of unknown */
        bool json, certain;
        const char *then;               /* the consequence of a fault, if not the usual one; or NULL */
} Reading;
static bool report(const Reading *r, const Path *path, const char *fault) {
        _free_ char *name = path_format(path), *whole = xasprintf("%s%s", fault, r->then ?: "");
        if (r->tell)
                r->tell(r->context, name, whole, r->certain);
        return !r->certain;
}

static void report_unknown(const Reading *r, const char *section, const char *key, const Row *row,
                           const Path *path) {
        _free_ char *name = NULL, *fault = NULL;
        if (!r->unknown || !row != !r->given->version)
                return;
        if (*r->told >= CONTAINERD_MOST) {
                *r->told += row || section != section_at(0);
                return;
        }
        name = path_format(path);
        if (row && has_row(r->given, row))      /* known, in another case */
                fault = xasprintf("this containerd ignores it and reads %s", row->key);
        else if (row)
                fault = xasprintf("this containerd ignores it: it is %s 2.%d",
                                  is_digit(row->versions) ? "new in" : "removed in",
                                  row->versions - (is_digit(row->versions) ? '0' : 'A'));
        Nearest near = { .text = key };
        if (!row)
                try_rows(r->given, section, &near);
        if (!row && !near.best && section == section_at(0))     /* a table of another program */
                return;
        ++*r->told;
        r->unknown(r->context, name, fault ?: "is not a key that containerd 1.7 to 2.4 knows here",
                   near.best);
}

static bool read_table(const Reading *r, const char *section, const json_t *table, const Path *path);

/* The table knows the options of runc, not those of another runtime. */
static bool is_open(const Row *row, const json_t *table) {
        const char *type = json_get_text(table, "runtime_type");
        return streq(row->key, "options") && !streq(type, "io.containerd.runc.v2") && *type;
}

/* Each value of a map or list is judged by a row of another type. */
static bool read_members(const Reading *r, const Row *row, const json_t *value, const Path *path) {
        const char *key, *section = strchr("Ta", row->type) ? section_at(row_section(row)) : NULL;
        Row one = { .type = row->type == 'm' ? 's' : row->type == 'M' ? 'e' : row->type == 'L' ? 'l' : 't',
                    .limits = "", .key = "" };
        bool good = true;
        json_t *member;
        size_t i;
        json_array_foreach(value, i, member) {
                const Path item = { path, NULL, i };
                good = (json_is_object(member) ? read_table(r, section, member, &item)
                                               : report(r, &item, "must be a table")) && good;
        }
        json_object_foreach((json_t *)value, key, member) {
                _cleanup_(text_done) Text room = {};
                const Path item = { path, key, 0 };
                const char *fault =
                        json_is_null(member) ? NULL : value_fault(r->given, &one, member, r->json, &room);
                if (fault)
                        good = report(r, &item, fault);
                else if (section)
                        good = read_table(r, section, member, &item) && good;
        }
        return good;
}

static bool read_value(const Reading *r, const Row *row, const json_t *value, const Path *path) {
        _cleanup_(text_done) Text room = {};
        if (!r->json && has_placeholder(json_string_value(value) ?: ""))
                return true;            /* validate.c reports it */
        const char *fault = json_is_null(value) ? NULL : value_fault(r->given, row, value, r->json, &room);
        if (fault)
                return report(r, path, fault);
        if (row->type == 't')
                return read_table(r, section_at(row_section(row)), value, path);
        return !strchr("amMLT", row->type) || read_members(r, row, value, path);
}

static bool read_table(const Reading *r, const char *section, const json_t *table, const Path *path) {
        bool good = true, plugins = section == plugins_section(),
             exact = is_one(r->given) && !r->json && !plugins;
        const char *key;
        json_t *value;
        json_object_foreach((json_t *)table, key, value) {
                const Path own = { path, key, 0 };
                Row row;
                bool known;
                if (!row_find(r->given, section, plugins ? plugin_name(key) : key, &row, &known)) {
                        if (!plugins)           /* a plugin may be external */
                                report_unknown(r, section, key, NULL, &own);
                } else if (!known || (exact && !streq(row.key, key)))
                        report_unknown(r, section, key, &row, &own);
                else if (!is_open(&row, table)) {
                        Reading inner = *r;
                        inner.certain = r->certain && is_for_all(r->given, &row);
                        if (streq(row.key, "options"))  /* read when a pod starts */
                                inner.then = "; no pod of this runtime would start";
                        good = read_value(&inner, &row, value, &own) && good;
                }
        }
        return good;
}

/* ---- keys in the spelling of the table ---- */

static json_t *folded(const char *section, const json_t *table, bool one);

static json_t *folded_value(const Row *row, const json_t *value, bool one) {
        const char *inner = strchr("tTa", row->type) ? section_at(row_section(row)) : NULL, *key;
        json_t *member, *all;
        size_t i;
        if (inner && row->type == 't' && json_is_object(value))
                return folded(inner, value, one);
        if (!inner || row->type == 't' || json_is_object(value) != (row->type == 'T'))
                return json_incref((json_t *)value);
        all = row->type == 'T' ? json_object() : json_array();
        json_object_foreach((json_t *)value, key, member)
                json_object_set_new(all, key, folded(inner, member, one));
        json_array_foreach(value, i, member)
                json_array_append_new(all, folded(inner, member, one));
        return all;
}

/* Keeps the order. A name in two spellings stays two. */
static json_t *folded(const char *section, const json_t *table, bool one) {
        const ContainerdGiven any = {};
        bool plugins = section == plugins_section(), known;
        const char *key;
        json_t *value;
        Row row;
        if (!json_is_object(table))
                return json_incref((json_t *)table);
        json_t *all = json_object();
        json_object_foreach((json_t *)table, key, value) {
                bool renames = !plugins && row_find(&any, section, key, &row, &known) &&
                               (!one || one_reads(row.key, key)) &&
                               !json_object_get(table, row.key) && !json_object_get(all, row.key);
                json_object_set(all, renames ? row.key : key, value);
        }
        json_object_foreach(all, key, value) {
                if (row_find(&any, section, plugins ? plugin_name(key) : key, &row, &known) &&
                    !is_open(&row, all))
                        json_object_set_new(all, key, folded_value(&row, value, one));
        }
        return all;
}

json_t *containerd_folded(const json_t *toml, bool one) {
        return folded(section_at(0), toml, one);
}

const json_t *containerd_settings(const Config *config, const char *version) {
        bool one = version && version_at_least(version, 1, 0) && !version_at_least(version, 2, 0);
        return one && config->containerd.as_one ? config->containerd.as_one : config->containerd.config;
}

/* ---- all of it ---- */

bool containerd_judge_values(const ContainerdGiven *g, ContainerdTell *tell, void *context) {
        Reading r = { .given = g, .tell = tell, .context = context, .certain = true };
        bool good = read_table(&r, section_at(0), g->all, &containerd_config_path);
        r.json = true;
        return read_table(&r, section_at(1), g->spec, &runtime_spec_path) && good;
}

void containerd_look(const ContainerdGiven *g, ContainerdUnknown *tell, void *context) {
        size_t told = 0;
        const Reading r = { .given = g, .unknown = tell, .context = context, .told = &told };
        (void)!read_table(&r, section_at(0), g->user, &containerd_config_path);
        _free_ char *more = xasprintf("contains %zu more keys that are unknown, or that this containerd "
                                      "ignores", told - CONTAINERD_MOST);
        if (told > CONTAINERD_MOST)
                tell(context, "spec.containerd.config", more, NULL);
}

const char *containerd_consequence(const char *fault) {
        return strstr(fault, "otherwise") || strstr(fault, " would start")
                       ? "" : "; as it is, containerd would exit, or would not serve CRI";
}
