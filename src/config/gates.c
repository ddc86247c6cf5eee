/* SPDX-License-Identifier: Apache-2.0
 * The feature gates of kubelet, by version: conf/feature-gates.csv. kubelet does not start with a gate that
 * it does not know or that is locked to the other value (k8s.io/component-base
 * featuregate/feature_gate.go:SetFromMap). */
#include "base/str.h"
#include "config/fields.h"

#include <ctype.h>
#include <errno.h>

static Table all_gates = { kubelet_known_gates, &kubelet_known_gates_size, NULL };

typedef struct Row { unsigned from, until; const char *name, *states, *needs; } Row;

static bool row_next(const char **at, Row *ret) {
        if (!**at)
                return false;
        *ret = (Row){ .from = two_digits(*at), .until = two_digits(*at + 2) };
        ret->name = table_cell(at) + 4;
        ret->states = table_cell(at);
        ret->needs = table_cell(at);
        return true;
}

static bool row_find(const char *name, Row *ret) {
        for (const char *at = table_text(&all_gates); row_next(&at, ret);)
                if (streq(ret->name, name))
                        return true;
        return false;
}

static bool has_row(const Row *row, unsigned minor) {
        return minor >= row->from && !(row->until && minor >= row->until);
}

/* A letter: alpha, beta, generally available, locked; a capital where it is on. */
static char state_at(const Row *row, unsigned minor) {
        char letter = row->states[2];
        for (const char *state = row->states; *state && two_digits(state) <= minor; state += 3)
                letter = state[2];
        return letter;
}

bool kubelet_gate_find(const char *name, unsigned minor, KubeletGate *ret) {
        Row row;
        if (!row_find(name, &row) || !has_row(&row, minor))
                return false;
        char letter = state_at(&row, minor);
        *ret = (KubeletGate){ .name = row.name, .on = isupper((unsigned char)letter),
                              .locked = tolower((unsigned char)letter) == 'l' };
        return true;
}

int kubelet_gate_state(const json_t *gates, const char *name, unsigned minor) {
        Row row;
        bool known = minor >= KUBELET_TABLES_FROM && minor <= KUBELET_TABLES_TO && row_find(name, &row) &&
                     has_row(&row, minor);
        char letter = known ? state_at(&row, minor) : 0;
        const json_t *set = json_object_get(gates, name),
                     *all = json_object_get(gates, tolower((unsigned char)letter) == 'a' ? "AllAlpha"
                                                   : tolower((unsigned char)letter) == 'b' ? "AllBeta" : "");
        set = json_is_boolean(set) ? set : all;
        if (json_is_boolean(set))
                return json_is_true(set);
        return letter ? isupper((unsigned char)letter) != 0 : -1;
}

bool kubelet_gate_versions(const char *name, unsigned *ret_from, unsigned *ret_until) {
        Row row;
        if (!row_find(name, &row))
                return false;
        *ret_from = row.from;
        *ret_until = row.until;
        return true;
}

const char *kubelet_gate_nearest(const char *name) {
        Nearest near = { .text = name };
        Row row;
        for (const char *at = table_text(&all_gates); row_next(&at, &row);)
                nearest_try(&near, row.name);
        return near.best;
}

/* A gate that the file or --feature-gates sets, and where. */
typedef struct Said { char *name, *path; bool on, by_flag; } Said;
typedef struct Gates { Said *said; size_t n; } Gates;

static void gates_done(Gates *g) {
        for (Said *s = g->said; s < g->said + g->n; s++)
                FREE_ALL(s->name, s->path);
        free(g->said);
}

static Said *gates_find(const Gates *g, const char *name, bool by_flag) {
        return FIND(s, g->said, g->n, s->by_flag == by_flag && streq(s->name, name));
}

/* The last word counts. Takes the path. */
static void gates_say(Gates *g, const char *name, bool on, char *path, bool by_flag) {
        Said *s = gates_find(g, name, by_flag);
        if (!s) {
                s = APPEND(g->said, g->n);
                *s = (Said){ .name = xstrdup(name), .by_flag = by_flag };
        }
        RENEW(s->path, path);
        s->on = on;
}

static void read_list(Gates *g, const char *list, size_t element) {
        while (*list) {
                _free_ char *pair = str_cut(&list, ",");
                char *equals = strchr(pair, '=');
                if (!equals)
                        continue;
                *equals = 0;
                _free_ char *name = str_strip(pair), *value = str_strip(equals + 1);
                int on = parse_bool(value);
                if (on >= 0)
                        gates_say(g, name, on, xasprintf("spec.kubelet.flags[%zu]", element), true);
        }
}

static void read_flags(Gates *g, char *const *flags) {
        bool behind = false;            /* is the next word its value? */
        for (size_t i = 0; flags && flags[i]; i++) {
                char *one[] = { flags[i], NULL };
                _strv_ char **words = has_placeholder(flags[i]) ? NULL : kubelet_words(one);
                STRV_FOREACH(w, words) {
                        _free_ char *name = behind ? NULL : kubelet_flag_name(*w);
                        const char *equals = strchr(*w, '=');
                        if (!behind && (!name || !streq(name, "feature-gates")))
                                continue;
                        if (behind || equals)
                                read_list(g, behind ? *w : equals + 1, i);
                        behind = !behind && !equals;
                }
        }
}

bool kubelet_flags_turn_off(char *const *flags, const char *name) {
        Gates g = {};
        read_flags(&g, flags);
        const Said *said = gates_find(&g, name, true);
        bool off = said && !said->on;
        gates_done(&g);
        return off;
}

static Gates gates_read(const json_t *config, char *const *flags) {
        const Path gates = { &kubelet_config_path, "featureGates", 0 };
        Gates g = {};
        const char *name;
        json_t *on;
        json_object_foreach(json_object_get(config, "featureGates"), name, on)
                if (json_is_boolean(on))
                        gates_say(&g, name, json_is_true(on), path_format(&(Path){ &gates, name, 0 }), false);
        read_flags(&g, flags);
        return g;
}

/* From 1.32 on kubelet checks the gates of its file before flags replace them
 * (pkg/kubelet/apis/config/v1beta1/defaults.go). */
static bool takes(const Gates *g, const Said *s, unsigned minor) {
        KubeletGate gate;
        return (minor < 32 && !s->by_flag && gates_find(g, s->name, true)) ||
               (kubelet_gate_find(s->name, minor, &gate) && !(gate.locked && gate.on != s->on));
}

/* Why 1.minor refuses a gate of the table. who: "kubelet 1.33.2 exits" */
static char *refusal(const Said *s, const char *who, unsigned minor) {
        unsigned from, until = 0;
        KubeletGate gate;
        if (kubelet_gate_find(s->name, minor, &gate))
                return xasprintf("%s with the feature gate %s=%s: it is locked to %s", who, s->name,
                                 s->on ? "true" : "false", s->on ? "false" : "true");
        if (kubelet_gate_versions(s->name, &from, &until) && minor < from)
                return xasprintf("%s with the feature gate %s, which needs kubelet 1.%u or newer", who,
                                 s->name, from);
        return xasprintf("%s with the feature gate %s, which kubelet 1.%u removed", who, s->name,
                         until);
}

_printf_(4, 5) static void tell(const Said *s, const Position *at, Diag *diag, const char *format, ...) {
        _free_ char *text = FORMATTED(format);
        diag_warn_at(diag, s->by_flag ? "kubelet-flag" : "kubelet-setting", at, s->path, "%s", text);
}

/* kubelet checks before it reads its file, with the file over the flags, and with the flags over the file
 * (cmd/kubelet/app/server.go:NewKubeletCommand). */
typedef enum View { FLAGS_ALONE, FILE_OVER_FLAGS, FLAGS_OVER_FILE, _VIEW_MAX } View;

static const Said *view_find(const Gates *g, View view, const char *name) {
        const Said *flag = gates_find(g, name, true),
                   *file = view == FLAGS_ALONE ? NULL : gates_find(g, name, false);
        return view == FILE_OVER_FLAGS ? file ?: flag : flag ?: file;
}

typedef struct Check {
        const Config *config;
        const Gates *gates;
        View view;
        unsigned minor; const char *version;
        bool refuse; Diag *diag;
} Check;
_printf_(3, 4) static void report(const Check *c, const Said *s, const char *format, ...) {
        const Position *at = config_position(c->config, s->path);
        _free_ char *text = FORMATTED(format);
        if (c->refuse)
                diag_error_at(c->diag, -EINVAL, CAUSE_INVALID, at, s->path, "%s", text);
        else
                tell(s, at, c->diag, "%s", text);
}

static void report_refused(const Check *c, const Said *s) {
        unsigned from, until;
        if (kubelet_gate_versions(s->name, &from, &until)) {
                _free_ char *who = xasprintf("kubelet %s exits", c->version),
                            *text = refusal(s, who, c->minor);
                report(c, s, "%s; remove it", text);
                return;
        }
        _free_ char *shown = text_quote(s->name, strlen(s->name));
        report(c, s, "kubelet %s exits: it does not know the feature gate %s", c->version, shown);
        diag_suggest_name(c->diag, "", kubelet_gate_nearest(s->name));
}

/* AllAlpha and AllBeta hold for a gate of that stage that is not set itself. NULL: neither is set. */
static const Said *said_of(const Check *c, const Row *row) {
        int stage = tolower((unsigned char)state_at(row, c->minor));
        return view_find(c->gates, c->view, row->name) ?:
               stage == 'a' ? view_find(c->gates, c->view, "AllAlpha") :
               stage == 'b' ? view_find(c->gates, c->view, "AllBeta") : NULL;
}

static bool is_on(const Check *c, const Row *row) {
        const Said *s = said_of(c, row);
        return s ? s->on : isupper((unsigned char)state_at(row, c->minor)) != 0;
}

/* need: of "3500NAME,3637NAME", from 1.35 on, and in 1.36 alone. False: not met. The unit test of this table
 * shows that our own settings meet all of them. */
static bool check_need(const Check *c, const Row *row, const char *need) {
        unsigned until = two_digits(need + 2);
        _free_ char *name = xstrndup(need + 4, strcspn(need + 4, ","));
        Row other;
        if (c->minor < two_digits(need) || (until && c->minor >= until) || !row_find(name, &other) ||
            is_on(c, &other))
                return true;
        const Said *s = view_find(c->gates, c->view, row->name) ?: view_find(c->gates, c->view, name) ?:
                        said_of(c, row) ?: said_of(c, &other);
        if (s)
                report(c, s, "kubelet %s exits: the feature gate %s is on and needs %s, which is off; turn "
                             "both on or both off", c->version, row->name, name);
        return !s;
}

static bool check_needs(const Check *c) {
        bool met = true;
        Row row;
        for (const char *at = table_text(&all_gates); row_next(&at, &row);)
                for (const char *need = row.needs; *need && has_row(&row, c->minor) && is_on(c, &row);
                     need += strcspn(need, ","), need += *need == ',')
                        met = check_need(c, &row, need) && met;
        return met;
}

int kubelet_gate_check(const Config *config, const char *version, bool refuse, Diag *diag) {
        _cleanup_(gates_done) Gates g = gates_read(config->kubelet.config, config->kubelet.flags);
        Check c = { .config = config, .gates = &g, .minor = KUBELET_TABLES_TO, .version = version,
                    .refuse = refuse, .diag = diag };
        bool good = true;
        while (c.minor > KUBELET_TABLES_FROM && !version_at_least(version, 1, c.minor))
                c.minor--;
        if (!version_at_least(version, 1, c.minor) || version_at_least(version, 1, KUBELET_TABLES_TO + 1))
                return 0;
        for (size_t i = 0; i < g.n; i++)
                if (!takes(&g, &g.said[i], c.minor)) {
                        report_refused(&c, &g.said[i]);
                        good = false;
                }
        for (; good && c.view < _VIEW_MAX; c.view++)
                good = check_needs(&c);
        return good || !refuse ? 0 : -EINVAL;
}

static Gates gates_of(const Merge *m) {
        _strv_ char **flags = merge_flags(m);
        return gates_read(merge_find(m, "spec.kubelet.config"), flags);
}

/* The first version after the newest that takes it; 0: none takes it. */
static unsigned refused_from(const Gates *g, const Said *s) {
        unsigned minor = KUBELET_TABLES_TO;
        while (minor >= KUBELET_TABLES_FROM && !takes(g, s, minor))
                minor--;
        return minor < KUBELET_TABLES_FROM ? 0 : minor + 1;
}

bool gates_validate(const Merge *m, Diag *diag) {
        _cleanup_(gates_done) Gates g = gates_of(m);
        unsigned from, until;
        bool good = true;
        for (size_t i = 0; i < g.n; i++) {
                const Said *s = &g.said[i];
                if (refused_from(&g, s) > 0 || !kubelet_gate_versions(s->name, &from, &until))
                        continue;
                from = MAX(from, KUBELET_TABLES_FROM);
                _free_ char *why = refusal(s, "every kubelet exits", from),
                            *text = xasprintf("%s; remove it", why);
                config_report(m, diag, s->path, text);
                good = false;
        }
        return good;
}

void gates_warn(const Merge *m, Diag *diag) {
        _cleanup_(gates_done) Gates g = gates_of(m);
        for (size_t i = 0; i < g.n; i++) {
                const Said *s = &g.said[i];
                const Position *at = origins_find(&m->origins, s->path);
                unsigned from, until, minor = refused_from(&g, s);
                if (!kubelet_gate_versions(s->name, &from, &until)) {
                        _free_ char *shown = text_quote(s->name, strlen(s->name));
                        tell(s, at, diag, "%s is not a feature gate of kubelet 1.%d to 1.%d: kubelet exits "
                             "on an unknown gate", shown, KUBELET_TABLES_FROM, KUBELET_TABLES_TO);
                        diag_suggest_name(diag, "", kubelet_gate_nearest(s->name));
                } else if (minor > 0 && minor <= KUBELET_TABLES_TO) {
                        _free_ char *who = xasprintf("kubelet 1.%u or newer exits", minor),
                                    *text = refusal(s, who, minor);
                        tell(s, at, diag, "%s", text);
                }
        }
}
