/* SPDX-License-Identifier: Apache-2.0
 * An action has three places: enum, row, executor. These tests walk through all types, so that a forgotten
 * place fails a test and not a boot. */
#include "plan/action.h"

#include "apply/engine.h"
#include "base/str.h"
#include "doctor/checks.h"
#include "test.h"

#define EACH(type) for (ActionType type = 0; type < _ACTION_MAX; type++)

static const Executor *executor_of(ActionType type) {
        return &executors[type];
}

/* If this test stops in action_row(), a type has no row. */
TEST(every_type_has_a_row) {
        EACH(type) {
                const ActionRow *row = action_row(type);
                ASSERT_TRUE(*row->name && row->family && row->seconds > 0);
                ASSERT_EQ(action_type_from_string(row->name), type);
        }
}

TEST(every_type_has_an_executor) {
        EACH(type) {
                const Executor *e = executor_of(type);
                if (!e->stage == !(e->course || e->check))
                        FAIL("%s has no executor, or two", action_row(type)->name);
                if (e->course && e->course->start == executor_of(ACTION_LOAD_MODULE)->course->start && !e->work)
                        FAIL("%s has no function for its thread", action_row(type)->name);
                if (e->course && !e->course->waiting)
                        FAIL("%s does not say what it waits for", action_row(type)->name);
        }
}

/* True if an action with all its words set needs something of an image. */
static bool needs_anything(ActionType type) {
        Action a = { .type = type, .id = (char *)"id", .target = (char *)"/etc/some/name", .with = (char *)"xfs" };
        char *words[] = { (char *)"nvidia-imex", NULL };
        if (action_row(type)->asks == ASKS_PROGRAMS)
                a.words = words;
        const Plan plan = { .actions = &a, .n = 1 };
        Needs needs = {};
        bool any = false;
        needs_of_plan(&plan, "m5.large", &needs);
        for (size_t i = 0; i < needs.n; i++)
                any |= needs.items[i].step != NULL;
        needs_done(&needs);
        return any;
}

TEST(every_type_says_what_it_needs) {
        EACH(type) {
                const ActionRow *row = action_row(type);
                if (row->asks == 0 || (row->asks == ASKS_KERNEL && row->needs) || (row->asks == ASKS_NEEDS && !row->needs))
                        FAIL("%s does not say what it needs of an image", row->name);
                if (needs_anything(type) != (row->asks != ASKS_KERNEL))
                        FAIL("%s needs something, and doctor asks for nothing", row->name);
        }
}

/* A failure that is only a warning has a code word; nodestrap-codes(7) explains each. */
TEST(every_word_is_in_the_manual) {
        _cleanup_(root_freep) Root *here = NULL;
        _free_ char *page = NULL;
        ASSERT_OK(root_new(".", &here));
        ASSERT_OK(root_read(here, "/debian/nodestrap-codes.7", 1 << 20, &page, NULL));
        EACH(type) {
                const Executor *e = executor_of(type);
                const ActionRow *row = action_row(type);
                const char *word = e->missed ?: row->lenient ? row->name : NULL;
                if (!word)
                        continue;
                Text entry = {};
                text_add(&entry, "\n.TP\n.B ");
                for (const char *p = word; *p; p++)
                        text_add(&entry, *p == '-' ? "\\-" : "%c", *p);
                text_add(&entry, "\n");
                if (!strstr(page, entry.data))
                        FAIL("%s has the word %s, which has no entry in nodestrap-codes(7)", row->name, word);
                text_done(&entry);
        }
}

TEST_MAIN
