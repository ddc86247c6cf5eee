/* SPDX-License-Identifier: Apache-2.0
 * The nodes of a document: a memory pool, a stack of open lists and maps, anchors, merge keys
 * (https://yaml.org/type/merge.html), duplicate keys, and the limits. An alias counts as all nodes and the
 * depth of its target, although it shares their memory. */
#include "doc/node.h"

#include "base/str.h"

#include <errno.h>
#include <stdalign.h>

#define MAX_DUPLICATE_WARNINGS 100u

typedef struct Chunk { struct Chunk *next; size_t used, size; alignas(max_align_t) char data[]; } Chunk;

static void pool_free(void *pool) {
        for (Chunk *c = pool, *next; c; c = next) {
                next = c->next;
                free(c);
        }
}

static void *pool_new(void **pool, size_t size) {
        Chunk *c = *pool;
        size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
        if (!c || c->size - c->used < size) {
                size_t room = MAX(size, c ? MIN(2 * c->size, (size_t)128 << 10) : (size_t)512);
                Chunk *next = c;
                c = xcalloc(1, sizeof *c + room);
                c->next = next;
                c->size = room;
                *pool = c;
        }
        c->used += size;
        return c->data + c->used - size;
}

static const char *pool_text(void **pool, const char *text, size_t n) {
        char *copy = pool_new(pool, n + 1);
        if (n > 0)
                memcpy(copy, text, n);
        return copy;
}

static const char *index_key(const void *items, size_t stride, size_t i) {
        return *(const char *const *)(const void *)((const char *)items + i * stride);
}

/* The slot of key: the position of its item + 1, or 0. */
static uint32_t *index_slot(const Index *x, const void *items, size_t stride, const char *key) {
        uint32_t hash = 2166136261u;    /* FNV-1a */
        for (const char *c = key; *c; c++)
                hash = (hash ^ (unsigned char)*c) * 16777619u;
        for (size_t i = hash & (x->room - 1);; i = (i + 1) & (x->room - 1))
                if (x->slots[i] == 0 || streq(index_key(items, stride, x->slots[i] - 1), key))
                        return &x->slots[i];
}

/* Empties the index, with room for n items. */
static void index_reset(Index *x, size_t n) {
        size_t room = 8;
        while (room < 2 * n)
                room *= 2;
        if (room > x->allocated) {
                free(x->slots);
                x->slots = xcalloc(room, sizeof *x->slots);
                x->allocated = room;
        } else
                memset(x->slots, 0, room * sizeof *x->slots);
        x->room = room;
}

void builder_done(Builder *b) {
        pool_free(b->pool);
        FREE_ALL(b->frames, b->pending, b->anchors, b->anchor_index.slots, b->member_index.slots);
        *b = (Builder){};
}

static Position builder_position(const Builder *b, Mark at) {
        return (Position){ b->at.source, b->at.part, at.line, at.column };
}

_printf_(5, 6) static int fail(const Builder *b, Mark at, int r, Cause cause, const char *format, ...) {
        Position where = builder_position(b, at);
        _free_ char *text = FORMATTED(format);
        return diag_error_at(b->diag, r, cause, &where, NULL, "%s", text);
}

/* Messages show keys, never values. */
static void path_add_key(Text *path, const char *key) {
        if (path->size > 0)
                text_add(path, ".");
        text_add_shown(path, key, strlen(key), 80, 0);
}

/* The path of key in the innermost open map. */
static char *builder_path(const Builder *b, const char *key) {
        Text path = {};
        for (size_t i = 0; i + 1 < b->n_frames; i++) {
                const Frame *f = &b->frames[i];
                if (f->node->type == NODE_LIST)
                        text_add(&path, "[%zu]", b->frames[i + 1].first - f->first);
                else
                        path_add_key(&path, f->key->text);
        }
        path_add_key(&path, key);
        return text_take(&path);
}

static int nodes_add(Builder *b, Mark at, size_t n, bool by_alias) {
        unsigned max = b->max_nodes ?: DOC_MAX_NODES;
        b->nodes += n;
        b->alias_nodes += by_alias ? n : 0;
        if (b->nodes <= max)
                return 0;
        if (b->alias_nodes > 0)
                return fail(b, at, -E2BIG, CAUSE_LIMIT,
                            "with its aliases expanded, this document exceeds the limit of %u YAML nodes "
                            "at this line; use fewer aliases (*name)", max);
        return fail(b, at, -E2BIG, CAUSE_LIMIT,
                    "this document exceeds the limit of %u nodes (keys, values, lists and maps) at this "
                    "line", max);
}

static int check_depth(Builder *b, Mark at, size_t height) {
        if (b->n_frames + height <= DOC_MAX_DEPTH)
                return 0;
        return fail(b, at, -E2BIG, CAUSE_LIMIT,
                    "maps and lists are nested deeper here than the depth limit of %u allows", DOC_MAX_DEPTH);
}

/* Returns its number + 1. The newest anchor of a name counts, even while its node is open. */
static size_t anchor_add(Builder *b, const char *name, Node *node) {
        if (!name)
                return 0;
        *APPEND(b->anchors, b->n_anchors) = (Anchor){ .name = pool_text(&b->pool, name, strlen(name)),
                                                      .node = node, .size = 1,
                                                      .open = node->type != NODE_SCALAR };
        if (b->n_anchors == 1 || 2 * b->n_anchors > b->anchor_index.room) {
                index_reset(&b->anchor_index, 2 * b->n_anchors);
                for (size_t i = 0; i < b->n_anchors; i++)
                        *index_slot(&b->anchor_index, b->anchors, sizeof *b->anchors, b->anchors[i].name) =
                                (uint32_t)(i + 1);
        } else
                *index_slot(&b->anchor_index, b->anchors, sizeof *b->anchors, name) = (uint32_t)b->n_anchors;
        return b->n_anchors;
}

static bool wants_key(const Builder *b) {
        const Frame *f = b->n_frames > 0 ? &b->frames[b->n_frames - 1] : NULL;
        return f && f->node->type == NODE_MAP && !f->key;
}

static int check_key(Builder *b, NodeType type, Mark at) {
        if (type == NODE_SCALAR || !wants_key(b))
                return 0;
        return fail(b, at, -EBADMSG, CAUSE_SYNTAX, "a key must be a string, but this one is a %s",
                    type == NODE_MAP ? "map: {{ }} is an unfilled placeholder, or needs quotes"
                                     : "list");
}

/* A finished node becomes the root, an item, a key, or the value of the last key. */
static int place(Builder *b, Node *node, Mark at, unsigned height) {
        if (b->n_frames == 0) {
                b->root = node;
                return 0;
        }
        Frame *f = &b->frames[b->n_frames - 1];
        if (wants_key(b)) {
                if (strlen(node->text) != node->n)
                        return fail(b, at, -EBADMSG, CAUSE_SYNTAX, "a key has a NUL character in it");
                f->key = node;
                return 0;
        }
        *APPEND(b->pending, b->n_pending) = (Pending){ .key = TAKE_PTR(f->key), .value = node };
        f->height = MAX(f->height, height);
        return 0;
}

int builder_scalar(Builder *b, Mark at, bool plain, char block, const char *text, size_t n,
                   const char *anchor) {
        int r = nodes_add(b, at, 1, false);
        if (r < 0)
                return r;
        Node *node = pool_new(&b->pool, sizeof *node);
        *node = (Node){ .type = NODE_SCALAR, .plain = plain, .block = block, .at = at, .n = n,
                        .text = pool_text(&b->pool, text, n) };
        anchor_add(b, anchor, node);
        return place(b, node, at, 0);
}

int builder_open(Builder *b, NodeType type, Mark at, const char *anchor) {
        int r = check_key(b, type, at) ?: check_depth(b, at, 1) ?: nodes_add(b, at, 1, false);
        if (r < 0)
                return r;
        Node *node = pool_new(&b->pool, sizeof *node);
        *node = (Node){ .type = type, .at = at };
        *APPEND(b->frames, b->n_frames) = (Frame){ .node = node, .first = b->n_pending, .nodes = b->nodes - 1,
                                                   .anchor = anchor_add(b, anchor, node) };
        return 0;
}

int builder_alias(Builder *b, Mark at, const char *name) {
        size_t i = b->n_anchors > 0 ? *index_slot(&b->anchor_index, b->anchors, sizeof *b->anchors, name) : 0;
        if (i == 0)
                return fail(b, at, -EBADMSG, CAUSE_SYNTAX,
                            "an alias (*name) without an anchor (&name) before it");
        const Anchor *a = &b->anchors[i - 1];
        if (a->open)
                return fail(b, at, -EBADMSG, CAUSE_SYNTAX,
                            "an alias (*name) is inside the node that its anchor names");
        return check_key(b, a->node->type, at) ?: check_depth(b, at, a->height) ?:
                nodes_add(b, at, a->size, true) ?: place(b, a->node, at, a->height);
}

static bool is_merge_key(const Node *key) {
        return key->plain && streq(key->text, "<<");
}

static void warn_duplicate(Builder *b, const Node *key, unsigned first) {
        Position where = builder_position(b, key->at);
        if (++b->duplicates > MAX_DUPLICATE_WARNINGS)
                return;
        _free_ char *path = builder_path(b, key->text);
        diag_warn_at(b->diag, "duplicate-key", &where, path,
                     "this key is also on line %u; nodestrap uses only the last one%s", first,
                     b->duplicates == MAX_DUPLICATE_WARNINGS ? " (further duplicates are not listed)" : "");
}

/* Adds the members of `from` that node lacks. */
static void merge_map(Builder *b, Node *node, const Node *from) {
        for (size_t i = 0; i < from->n; i++) {
                uint32_t *slot = index_slot(&b->member_index, node->members, sizeof *node->members,
                                            from->members[i].key);
                if (*slot > 0)
                        continue;
                node->members[node->n++] = from->members[i];
                *slot = (uint32_t)node->n;
        }
}

static int merge_value(Builder *b, Node *node, const Node *value, Mark at) {
        bool list = value->type == NODE_LIST;
        for (size_t i = 0; i < (list ? value->n : 1); i++) {
                const Node *from = list ? value->items[i] : value;
                if (from->type != NODE_MAP)
                        return fail(b, at, -EBADMSG, CAUSE_SYNTAX,
                                    "the merge key << needs a map or a list of maps");
                merge_map(b, node, from);
        }
        return 0;
}

/* An upper bound on the members of a merge key. */
static size_t merge_size(const Node *value) {
        size_t n = 0;
        if (value->type == NODE_MAP)
                return value->n;
        for (size_t i = 0; value->type == NODE_LIST && i < value->n; i++)
                n += value->items[i]->type == NODE_MAP ? value->items[i]->n : 0;
        return n;
}

static int complete_map(Builder *b, Node *node, const Pending *pending, size_t n) {
        const Pending *merge = NULL;
        size_t room = n;
        for (size_t i = 0; i < n; i++)
                room += is_merge_key(pending[i].key) ? merge_size(pending[i].value) : 0;
        index_reset(&b->member_index, room);
        node->members = pool_new(&b->pool, room * sizeof *node->members);
        for (size_t i = 0; i < n; i++) {
                const Node *key = pending[i].key;
                uint32_t *slot;
                if (is_merge_key(key)) {
                        if (merge)
                                warn_duplicate(b, key, merge->key->at.line);
                        merge = &pending[i];
                        continue;
                }
                slot = index_slot(&b->member_index, node->members, sizeof *node->members, key->text);
                if (*slot > 0)
                        warn_duplicate(b, key, node->members[*slot - 1].at.line);
                else
                        *slot = (uint32_t)++node->n;
                node->members[*slot - 1] =
                        (Member){ .key = key->text, .at = key->at, .value = pending[i].value };
        }
        return merge ? merge_value(b, node, merge->value, merge->key->at) : 0;
}

int builder_close(Builder *b) {
        Frame f = b->frames[b->n_frames - 1];
        size_t n = b->n_pending - f.first;
        const Pending *pending = n > 0 ? b->pending + f.first : NULL;
        if (f.node->type == NODE_MAP) {
                int r = complete_map(b, f.node, pending, n);
                if (r < 0)
                        return r;
        } else {
                f.node->items = pool_new(&b->pool, n * sizeof(Node *));
                for (; f.node->n < n; f.node->n++)
                        f.node->items[f.node->n] = pending[f.node->n].value;
        }
        if (f.anchor > 0) {
                Anchor *a = &b->anchors[f.anchor - 1];
                a->size = b->nodes - f.nodes;
                a->height = f.height + 1;
                a->open = false;
        }
        b->n_pending = f.first;
        b->n_frames--;
        return place(b, f.node, f.node->at, f.height + 1);
}

Document builder_take(Builder *b) {
        Document d = { .at = b->at, .root = b->root, .pool = b->pool };
        if (d.root)
                d.at.line = d.root->at.line;
        b->pool = b->root = NULL;       /* the arrays stay for the next document */
        b->n_frames = b->n_pending = b->n_anchors = 0;
        b->nodes = b->alias_nodes = b->duplicates = 0;
        return d;
}

void documents_add(Documents *d, Document item) {
        *APPEND(d->items, d->n) = item;
}

void documents_done(Documents *d) {
        for (size_t i = 0; i < d->n; i++)
                pool_free(d->items[i].pool);
        FREE_ALL(d->items, d->origin, d->unread);
        *d = (Documents){};
}

void documents_move(Documents *to, Documents *from) {
        to->items = xrealloc(to->items, to->n + from->n, sizeof *to->items);
        if (from->n > 0)
                memcpy(to->items + to->n, from->items, from->n * sizeof *from->items);
        to->n += from->n;
        from->n = 0;
        documents_done(from);
}

const Node *node_get(const Node *map, const char *key) {
        return map && map->type == NODE_MAP
                       ? PICK(m, map->members, map->n, streq(m->key, key), m->value, NULL) : NULL;
}
