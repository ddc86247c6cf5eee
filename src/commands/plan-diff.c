/* SPDX-License-Identifier: Apache-2.0
 * An earlier `plan --output json` and the present plan → actions that were added, removed, changed or
 * moved, down to the lines of files. Secrets may differ where the plan ids do. No more is known: a digest
 * would allow guesses. The state of the machine (live) is not compared. */
#include "commands/run.h"

#include "base/json.h"
#include "base/str.h"
#include "base/root.h"
#include "commands/output.h"
#include "plan/plan.h"
#include "redact/scrub.h"

#include <errno.h>
#include <fcntl.h>

#define OLD_MAX   (64 << 20)
#define VALUE_MAX 200           /* characters of a value in a text */

static int _printf_(3, 4) refuse(Diag *diag, const char *path, const char *format, ...) {
        _free_ char *why = FORMATTED(format);
        return diag_error(diag, -EINVAL, CAUSE_USAGE, "--diff %s: %s; make a plan file: nodestrap plan "
                                                      "--output json",
                          path, why);
}

static int parse(const char *path, const char *text, size_t size, json_t **ret, Diag *diag) {
        json_error_t e;
        *ret = json_loadb(text, size, JSON_REJECT_DUPLICATES, &e);
        if (*ret)
                return 0;
        if (size == 0)
                return refuse(diag, path, "it is empty");
        bool cut = json_error_code(&e) == json_error_premature_end_of_input;
        return refuse(diag, path, "it %s, at line %d", cut ? "is cut off" : "is not JSON", e.line);
}

static int check(const char *path, const json_t *old, Diag *diag) {
        const json_t *version = json_object_get(old, "formatVersion"), *action;
        size_t i;
        if (json_is_integer(version) && json_integer_value(version) != PLAN_FORMAT)
                return refuse(diag, path, "its formatVersion is %lld, but this nodestrap reads only %d",
                              (long long)json_integer_value(version), PLAN_FORMAT);
        if (json_object_get(old, "findings"))
                return refuse(diag, path, "it is the report of a failure, without a plan");
        if (!json_is_integer(version) || !*json_get_text(old, "planId") ||
            !json_is_array(json_object_get(old, "actions")) || !json_is_array(json_object_get(old, "files")))
                return refuse(diag, path, "it is %s",
                              json_object_get(old, "types") ? "a --matrix table" : "not a plan");
        json_array_foreach(json_object_get(old, "actions"), i, action)
                if (!*json_get_text(action, "id"))
                        return refuse(diag, path, "an action in it has no id");
        return 0;
}

/* Also reads a pipe, up to OLD_MAX. */
static int read_old(const char *path, json_t **ret, Diag *diag) {
        _cleanup_(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        _free_ char *text = NULL;
        size_t size = 0;
        int r = fd < 0 ? -errno : fd_read(fd, OLD_MAX, &text, &size);
        if (r < 0)
                return refuse(diag, path, "%s", r == -EFBIG ? "it is too large for a plan" : strerror(-r));
        r = parse(path, text, size, ret, diag);
        return r < 0 ? r : check(path, *ret, diag);
}

static json_t *actions_of(const json_t *plan) {
        return json_object_get(plan, "actions");
}

/* By id or path; the references belong to the plan. */
static json_t *index_of(const json_t *list, const char *key) {
        json_t *index = json_object(), *item;
        size_t i;
        json_array_foreach(list, i, item)
                json_object_set(index, json_get_text(item, key), item);
        return index;
}

/* A key that tells who made the plan says nothing of the node. */
static bool is_compared(const char *key, bool hidden) {
        static const char *const never[] = { "live", "content", "secret", "revealed", NULL },
                                 *const secrets[] = { "with", "sha256", "size", "inputs", NULL };
        return !strv_contains((char *const *)never, key) &&
               !(hidden && strv_contains((char *const *)secrets, key));
}

/* {"mode": {"old": "0644", "new": "0600"}}; a missing key is null. */
static json_t *changed_fields(json_t *old, json_t *new, bool hidden) {
        json_t *fields = json_object(), *value;
        const char *key;
        json_object_foreach(old, key, value) {
                json_t *other = json_object_get(new, key);
                if (is_compared(key, hidden) && !json_equal(value, other))
                        json_object_set_new(fields, key,
                                            json_pack("{sO so}", "old", value, "new",
                                                      other ? json_incref(other) : json_null()));
        }
        json_object_foreach(new, key, value)
                if (is_compared(key, hidden) && !json_object_get(old, key))
                        json_object_set_new(fields, key, json_pack("{sn sO}", "old", "new", value));
        return fields;
}

typedef struct Side {
        json_t *plan, *actions, *files;
        bool show_secrets;
} Side;

static Side side_of(json_t *plan, bool show_secrets) {
        return (Side){ .plan = plan,
                       .show_secrets = show_secrets,
                       .actions = index_of(actions_of(plan), "id"),
                       .files = index_of(json_object_get(plan, "files"), "path") };
}

static void side_done(Side *s) {
        json_decref(s->actions);
        json_decref(s->files);
}

static bool is_secret(const Side *s, const json_t *action) {
        return json_is_true(json_object_get(action, "secret")) ||
               (!s->show_secrets && json_is_true(json_object_get(action, "revealed")));
}

/* NULL: hidden, or the action has none. */
static const json_t *content_of(const Side *s, const json_t *action) {
        const json_t *in = json_object_get(action, "content") ? action
                           : streq(json_get_text(action, "type"), "write-file")
                                   ? json_object_get(s->files, json_get_text(action, "target"))
                                   : NULL;
        const json_t *content = json_object_get(in, "content");
        return json_is_string(content) ? content : NULL;
}

/* Binary content has digests in its fields. A block has none, so nothing is known of it. */
static void compare_contents(const Side *a, const Side *b, json_t *old, json_t *new, json_t *into) {
        const json_t *was = content_of(a, old), *is = content_of(b, new);
        bool digest = json_object_get(old, "sha256") && json_object_get(new, "sha256"),
             differs = digest && !json_equal(json_object_get(old, "sha256"), json_object_get(new, "sha256"));
        if (was && is) {
                _cleanup_(text_done) Text diff = {};
                lines_diff(&diff, json_string_value(was), json_string_length(was), json_string_value(is),
                           json_string_length(is), "");
                if (diff.size > 0)
                        json_set_text(into, "diff", diff.data);
        } else if (differs)
                json_set_text(into, "content", "hidden, differs");
        else if (!digest && (json_object_get(old, "content") || json_object_get(new, "content")))
                json_set_text(into, "content", "hidden, not known");
}

/* Files and settings. The secrets of a unit are digests of such files. */
static bool may_differ(const Side *a, const Side *b, const json_t *old, const json_t *new) {
        const char *type = json_get_text(new, "type");
        bool same = streq(json_get_text(a->plan, "planId"), json_get_text(b->plan, "planId"));
        return !same && (is_secret(a, old) || is_secret(b, new)) && !endswith(type, "-unit");
}

/* NULL: nothing that is shown differs. */
static json_t *compare_action(const Side *a, const Side *b, json_t *old, json_t *new) {
        json_t *change = json_pack("{ss}", "id", json_get_text(new, "id"));
        bool hidden = is_secret(a, old) || is_secret(b, new);
        _cleanup_(json_decrefp) json_t *fields = changed_fields(old, new, hidden);
        if (!hidden)
                compare_contents(a, b, old, new, change);
        else if (may_differ(a, b, old, new))
                json_set_text(change, "content", "hidden, not known");
        if (json_object_get(change, "diff")) {  /* the diff has more */
                json_object_del(fields, "sha256");
                json_object_del(fields, "size");
        }
        bool unknown = streq(json_get_text(change, "content"), "hidden, not known");
        if (json_object_size(fields) > 0)
                json_object_set(change, "fields", fields);
        if (json_object_size(change) > (unknown ? 2 : 1))
                return change;
        json_decref(change);
        return NULL;
}

static json_t *moved_to(const json_t *actions, size_t i) {
        const char *before = i > 0 ? json_get_text(json_array_get(actions, i - 1), "id") : NULL;
        return json_pack("{ss ss*}", "id", json_get_text(json_array_get(actions, i), "id"), "behind", before);
}

/* The common actions outside of a longest sequence in the same order. */
static json_t *moved_actions(const Side *a, const Side *b) {
        size_t n = json_array_size(actions_of(b->plan)), best = SIZE_MAX, i;
        _free_ size_t *at = xcalloc(n + 1, sizeof(size_t)),
                      *length = xcalloc(n + 1, sizeof(size_t)),
                      *before = xcalloc(n + 1, sizeof(size_t));
        _free_ bool *kept = xcalloc(n + 1, sizeof(bool));
        json_t *moved = json_array(), *action;
        _cleanup_(json_decrefp) json_t *places = json_object();
        json_array_foreach(actions_of(a->plan), i, action)
                json_object_set_new(places, json_get_text(action, "id"), json_integer((json_int_t)i));
        json_array_foreach(actions_of(b->plan), i, action) {
                json_t *place = json_object_get(places, json_get_text(action, "id"));
                at[i] = place ? (size_t)json_integer_value(place) : SIZE_MAX;
                before[i] = SIZE_MAX;
                for (size_t k = 0; k < i && place; k++)
                        if (at[k] != SIZE_MAX && at[k] < at[i] && length[k] > length[i]) {
                                length[i] = length[k];
                                before[i] = k;
                        }
                length[i] += place != NULL;
                if (place && (best == SIZE_MAX || length[i] > length[best]))
                        best = i;
        }
        for (; best != SIZE_MAX; best = before[best])
                kept[best] = true;
        json_array_foreach(actions_of(b->plan), i, action)
                if (at[i] != SIZE_MAX && !kept[i])
                        json_array_append_new(moved, moved_to(actions_of(b->plan), i));
        return moved;
}

static json_t *missing_in(const Side *from, const Side *in) {
        json_t *list = json_array(), *action;
        size_t i;
        json_array_foreach(actions_of(from->plan), i, action)
                if (!json_object_get(in->actions, json_get_text(action, "id")))
                        json_array_append_new(list, json_pack("{ss ss}", "id", json_get_text(action, "id"),
                                                              "why", json_get_text(action, "why")));
        return list;
}

static json_t *named(const json_t *plan) {
        const json_t *instance = json_object_get(json_object_get(plan, "facts"), "instance");
        const char *type = json_get_text(instance, "type");
        return json_pack("{ss ss*}", "planId", json_get_text(plan, "planId"), "type", *type ? type : NULL);
}

/* The node as the cluster sees it, leaf by leaf: {"labels.nodegroup": {"old": "a", "new": "b"}}. */
static void compare_node(const char *path, json_t *old, json_t *new, json_t *into) {
        _cleanup_(json_decrefp) json_t *both = json_is_object(old) ? json_copy(old) : json_object();
        const char *key;
        json_t *value;
        if (!json_is_object(old) && !json_is_object(new)) {
                if (!old != !new || !json_equal(old, new))
                        json_object_set_new(into, path,
                                            json_pack("{sO? sO?}", "old", old, "new", new));
                return;
        }
        if (json_is_object(new))
                json_object_update(both, new);
        json_object_foreach(both, key, value) {
                _free_ char *below = xasprintf("%s%s%s", path, *path ? "." : "", key);
                compare_node(below, json_object_get(old, key), json_object_get(new, key), into);
        }
}

json_t *plan_compare(json_t *old, json_t *new, bool show_secrets) {
        _cleanup_(side_done) Side a = side_of(old, show_secrets), b = side_of(new, show_secrets);
        json_t *changed = json_array(), *hidden = json_array(), *node = json_object(), *action,
               *added = missing_in(&b, &a), *removed = missing_in(&a, &b), *moved = moved_actions(&a, &b);
        size_t i;
        json_array_foreach(actions_of(new), i, action) {
                json_t *was = json_object_get(a.actions, json_get_text(action, "id")),
                       *change = was ? compare_action(&a, &b, was, action) : NULL;
                if (change)
                        json_array_append_new(changed, change);
                else if (was && may_differ(&a, &b, was, action))
                        json_array_append_new(hidden, json_pack("{ss}", "id", json_get_text(action, "id")));
        }
        bool same = json_array_size(changed) + json_array_size(added) + json_array_size(removed) +
                            json_array_size(moved) + json_array_size(hidden) == 0;
        /* an earlier version wrote no settings */
        if (json_object_get(json_object_get(old, "node"), "settings"))
                compare_node("", json_object_get(old, "node"), json_object_get(new, "node"), node);
        return json_pack("{si sb so so so so so so so so}", "formatVersion", PLAN_FORMAT, "same", same, "old",
                         named(old), "new", named(new), "added", added, "removed", removed, "changed",
                         changed, "moved", moved, "hidden", hidden, "node", node);
}

/* The earlier plan may be a file of another user. */
static char *shown(const char *text, size_t limit) {
        Text t = {};
        text_add_shown(&t, text, strlen(text), limit, 0);
        return text_take(&t);
}

static char *shown_of(const json_t *object, const char *key) {
        return shown(json_get_text(object, key), SIZE_MAX);
}

static char *value_text(const json_t *value) {
        _free_ char *text = json_is_string(value) ? xstrdup(json_string_value(value))
                            : json_is_null(value)
                                    ? xstrdup("none")
                                    : json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
        return shown(text, VALUE_MAX);
}

static bool array_has(const json_t *array, const json_t *value) {
        const json_t *item;
        size_t i;
        json_array_foreach(array, i, item)
                if (json_equal(item, value))
                        return true;
        return false;
}

/* Items of one list that the other lacks. */
static void add_only(Text *t, const char *mark, const json_t *one, const json_t *other) {
        const json_t *item;
        size_t i;
        json_array_foreach(one, i, item) {
                _free_ char *text = array_has(other, item) ? NULL : value_text(item);
                if (text)
                        text_add(t, " %s%s", mark, text);
        }
}

static void add_field(Text *t, const char *key, const json_t *old, const json_t *new) {
        _free_ char *was = value_text(old), *is = value_text(new), *name = shown(key, VALUE_MAX);
        _free_ char *lead = xasprintf("    %s: ", name);
        _cleanup_(text_done) Text all = {};
        if (json_is_array(old) && json_is_array(new)) {
                add_only(&all, "-", old, new);
                add_only(&all, "+", new, old);
        } else
                text_add(&all, " %s -> %s", was, is);
        text_add_folded(t, lead, 8, all.size > 0 ? all.data + 1 : "in another order");
}

static void add_change(Text *t, const json_t *change) {
        json_t *value;
        const char *key, *content = json_get_text(change, "content");
        _free_ char *id = shown_of(change, "id");
        text_add(t, "~ %s\n", id);
        json_object_foreach(json_object_get(change, "fields"), key, value)
                add_field(t, key, json_object_get(value, "old"), json_object_get(value, "new"));
        if (*content)
                text_add(t, "    content: %s\n", content);
        text_add(t, "%s", json_get_text(change, "diff"));
}

static void add_list(Text *t, const json_t *all, const char *key, const char *mark, const char *with) {
        const json_t *item;
        size_t i;
        json_array_foreach(json_object_get(all, key), i, item) {
                _free_ char *id = shown_of(item, "id"), *more = shown_of(item, with);
                bool place = *more && streq(with, "behind");
                _free_ char *lead = xasprintf("%s %s%s", mark, id, *more ? ": " : ""),
                            *text = xasprintf("%s%s", place ? "now after " : "", more);
                text_add_folded(t, lead, 4, text);
        }
}

static void add_counts(Text *t, const json_t *all) {
        static const char keys[][8] = { "added", "removed", "changed", "moved", "hidden" };
        size_t shown = 0;
        text_add(t, "\n");
        for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
                size_t n = json_array_size(json_object_get(all, keys[k]));
                bool hidden = k + 1 == ARRAY_SIZE(keys);
                shown += hidden ? 0 : n;
                if (n > 0 || !hidden)
                        text_add(t, "%s%zu %s", k > 0 ? ", " : "", n, keys[k]);
        }
        shown += json_object_size(json_object_get(all, "node"));
        text_add(t, "\n%s",
                 shown > 0 ? "" : "Only hidden values differ.\n");
}

static void add_node(Text *t, const json_t *node) {
        json_t *value;
        const char *key;
        if (json_object_size(node) > 0)
                text_add(t, "~ the node, as the cluster sees it\n");
        json_object_foreach((json_t *)node, key, value)
                add_field(t, key, json_object_get(value, "old"), json_object_get(value, "new"));
}

char *plan_compare_text(const json_t *all) {
        const json_t *change;
        size_t i;
        Text t = {};
        for (size_t k = 0; k < 2; k++) {
                const json_t *side = json_object_get(all, k == 0 ? "old" : "new");
                _free_ char *id = shown_of(side, "planId"), *type = shown_of(side, "type");
                text_add(&t, "%s  %s %s\n", k == 0 ? "old" : "new", id, type);
        }
        text_add(&t, "\n");
        add_list(&t, all, "removed", "-", "why");
        add_list(&t, all, "added", "+", "why");
        json_array_foreach(json_object_get(all, "changed"), i, change)
                add_change(&t, change);
        add_list(&t, all, "moved", ">", "behind");
        json_array_foreach(json_object_get(all, "hidden"), i, change) {
                _free_ char *id = shown_of(change, "id");
                text_add(&t, "? %s: hidden, not known\n", id);
        }
        add_node(&t, json_object_get(all, "node"));
        if (json_is_true(json_object_get(all, "same")))
                text_add(&t, "Nothing differs.\n");
        else
                add_counts(&t, all);
        return text_take(&t);
}

int plan_diff(Run *run) {
        const Options *o = &run->options;
        _cleanup_(json_decrefp) json_t *old = NULL, *new = plan_to_json(run->plan);
        int r = read_old(o->diff, &old, &run->diag);
        if (r < 0 || !old)
                return r;
        _cleanup_(json_decrefp) json_t *all = plan_compare(old, new, o->show_secrets);
        if (o->detailed_exitcode && !json_is_true(json_object_get(all, "same")))
                run->exit_code = EXIT_CHANGES;
        if (o->output == OUTPUT_JSON)
                return output_json(all, NULL, &run->diag);
        _free_ char *text = plan_compare_text(all);
        return plan_show(run, "Plan changes for", run->host->instance.type ?: "unknown type",
                         &run->plan->warnings, "diff", text);
}
