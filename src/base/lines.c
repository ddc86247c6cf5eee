/* SPDX-License-Identifier: Apache-2.0
 * The longest common subsequence by the textbook table; beyond TABLE_MAX all lines are removed and added. */
#include "base/str.h"

#include <string.h>

#define AROUND    3             /* lines of context */
#define APART     (2 * AROUND + 1)
#define TABLE_MAX (4 << 20)     /* 2048 changed lines on both sides */

typedef struct Line { const char *text; size_t size; } Line;    /* with its newline */
typedef struct Lines { Line *items; size_t n; } Lines;
/* mark: ' ', '-' or '+' */
typedef struct Edit { char mark; Line line; } Edit;
typedef struct Edits { Edit *items; size_t n; } Edits;

static Lines lines_of(const char *text, size_t size) {
        Lines l = {};
        size_t n = 1;
        for (size_t i = 0; i < size; i++)
                n += text[i] == '\n';
        l.items = xcalloc(n, sizeof(Line));
        for (const char *p = text, *end = text + size; p < end; p += l.items[l.n++].size) {
                const char *newline = memchr(p, '\n', (size_t)(end - p));
                l.items[l.n] = (Line){ p, (size_t)((newline ? newline + 1 : end) - p) };
        }
        return l;
}

static bool same(Line a, Line b) {
        return a.size == b.size && memcmp(a.text, b.text, a.size) == 0;
}

static void add(Edits *e, char mark, const Line *lines, size_t n) {
        for (size_t i = 0; i < n; i++)
                e->items[e->n++] = (Edit){ mark, lines[i] };
}

/* length[i][j]: of the longest common subsequence from a[i] and b[j]. */
static void compare(Edits *e, const Line *a, size_t n, const Line *b, size_t m) {
        size_t width = m + 1, i = 0, j = 0;
        if (n > 0 && m > 0 && n + 1 <= TABLE_MAX / width) {
                _free_ unsigned *length = xcalloc((n + 1) * width, sizeof(unsigned));
                for (size_t x = n; x-- > 0;)
                        for (size_t y = m; y-- > 0;)
                                length[x * width + y] =
                                        same(a[x], b[y]) ? length[(x + 1) * width + y + 1] + 1
                                                         : MAX(length[(x + 1) * width + y],
                                                               length[x * width + y + 1]);
                while (i < n && j < m)
                        if (same(a[i], b[j])) {
                                add(e, ' ', a + i++, 1);
                                j++;
                        } else if (length[(i + 1) * width + j] >= length[i * width + j + 1])
                                add(e, '-', a + i++, 1);
                        else
                                add(e, '+', b + j++, 1);
        }
        add(e, '-', a + i, n - i);
        add(e, '+', b + j, m - j);
}

static Edits edits_of(const Lines *a, const Lines *b) {
        Edits e = { .items = xcalloc(a->n + b->n + 1, sizeof(Edit)) };
        size_t begin = 0, end = 0, least = MIN(a->n, b->n);
        while (begin < least && same(a->items[begin], b->items[begin]))
                begin++;
        while (end < least - begin && same(a->items[a->n - 1 - end], b->items[b->n - 1 - end]))
                end++;
        add(&e, ' ', a->items, begin);
        compare(&e, a->items + begin, a->n - begin - end, b->items + begin, b->n - begin - end);
        add(&e, ' ', a->items + a->n - end, end);
        return e;
}

static size_t count(const Edit *e, size_t n, char mark) {
        size_t all = 0;
        for (size_t i = 0; i < n; i++)
                all += e[i].mark == ' ' || e[i].mark == mark;
        return all;
}

/* Keeps tabs, for alignment. */
static void add_shown(Text *to, const char *text, size_t size) {
        for (const char *end = text + size, *p = text; p < end;) {
                const char *tab = memchr(p, '\t', (size_t)(end - p)) ?: end;
                text_add_shown(to, p, (size_t)(tab - p), SIZE_MAX, 0);
                text_add(to, "%s", tab < end ? "\t" : "");
                p = tab + (tab < end);
        }
}

static void add_hunk(Text *to, const Edits *e, size_t begin, size_t end, const char *indent) {
        size_t from = count(e->items, begin, '-'), at = count(e->items, begin, '+');
        size_t removed = count(e->items + begin, end - begin, '-'),
               added = count(e->items + begin, end - begin, '+');
        text_add(to, "%s@@ -%zu,%zu +%zu,%zu @@\n", indent, from + (removed > 0), removed, at + (added > 0),
                 added);
        for (const Edit *i = e->items + begin; i < e->items + end; i++) {
                bool ends = i->line.text[i->line.size - 1] == '\n';
                text_add(to, "%s%c", indent, i->mark);
                add_shown(to, i->line.text, i->line.size - ends);
                text_add(to, "\n");
                if (!ends)              /* as in diff(1) */
                        text_add(to, "%s\\ No newline at end of file\n", indent);
        }
}

void lines_diff(Text *to, const char *old, size_t old_size, const char *new, size_t new_size,
                const char *indent) {
        Lines a = lines_of(old, old_size), b = lines_of(new, new_size);
        Edits e = edits_of(&a, &b);
        for (size_t i = 0; i < e.n; i++) {
                size_t last = i;
                if (e.items[i].mark == ' ')
                        continue;
                /* grows the hunk to nearby changes */
                for (size_t end = i; end < e.n && end - last <= APART; end++)
                        if (e.items[end].mark != ' ')
                                last = end;
                add_hunk(to, &e, i > AROUND ? i - AROUND : 0, MIN(last + 1 + AROUND, e.n), indent);
                i = last;
        }
        FREE_ALL(e.items, a.items, b.items);
}
