/* SPDX-License-Identifier: Apache-2.0
 * Applies a plan that is described on stdin, for tests against a real systemd. A line an action:
 *     TYPE TARGET [inputs=TEXT] [reads=PATH] [deadline=5s] [after=ID,ID] [after-any=ID,ID] [timed-from=ID]
 *         [optional=yes] [retry=yes] [lenient=yes] [quiet=yes] [words=WORD,WORD] [mode=0600] [content=TEXT, the rest of the line, \n for
 *         newlines]
 * and for storage
 *     [state=make] [disks=NAME,NAME serials=SERIAL,SERIAL] [blank=NAME,NAME] [running=md127]
 *         [array-uuid=UUID] [array=yes] [level=raid0] [filesystem=xfs] [uuid=UUID] [with=noatime]
 *         [source=DIRECTORY] [moves=DIRECTORY:NAME,DIRECTORY:NAME] [snapshotter=NAME]
 *         [socket=PATH]
 * and for devices
 *     [size=2Mi count=12 node=1 if-none=yes] [lenient=yes]
 *         [number=2 words=KEY=VALUE,KEY=VALUE seen=ADDRESS,ADDRESS]
 * Prints "OUTCOME ID" for each action, with ": TEXT" behind it where there is one, and "found ID: JSON" for
 * a finding. Then it prints "wall SECONDS" and exits with the exit code. */
#include "apply/apply.h"
#include "report/report.h"

#include "config/fields.h"

#include "base/log.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/time.h"

static void content_set(Action *a, const char *text) {
        Text t = {};
        for (; *text; text++) {
                bool newline = text[0] == '\\' && text[1] == 'n';
                text_add(&t, "%c", newline ? '\n' : *text);
                text += newline;
        }
        a->file.content = text_take(&t);
        a->file.size = strlen(a->file.content);
}

static void list_read(char ***list, char *value) {
        for (char *word; (word = strsep(&value, ","));)
                strv_add(list, word);
}

static void moves_read(Action *a, char *value) {
        for (char *word; (word = strsep(&value, ","));) {
                char *from = strsep(&word, ":");
                a->storage.moves = xrealloc(a->storage.moves, a->storage.n_moves + 1, sizeof(Move));
                a->storage.moves[a->storage.n_moves++] =
                        (Move){ .from = xstrdup(from), .name = xstrdup(word) };
        }
}

static void device_option_set(Action *a, const char *name, const char *value) {
        if (streq(name, "size") && parse_page_size(value, &a->pages.size) < 0)
                abort();
        else if (streq(name, "count"))
                a->pages.count = strtoull(value, NULL, 10);
        else if (streq(name, "node"))
                a->pages.node = atoi(value);
        else if (streq(name, "if-none"))
                a->pages.if_none = streq(value, "yes");
        else if (streq(name, "number"))
                a->device.count = (unsigned)strtoul(value, NULL, 10);
}

static char ***words_of(Action *a) {
        return a->type == ACTION_CHECK_VERSIONS || a->type == ACTION_FORGET_STATE ? &a->words
               : a->type == ACTION_MARK_NODE   ? &a->node.taints
               : a->type == ACTION_IMPORT_IMAGE ? &a->image.options
                                                : &a->device.parameters;
}

/* Not inlined: gcc 12 takes the union to be as large as a pointer, and warns because the digest is longer. */
static __attribute__((noinline)) void option_set(Action *a, char *word) {
        const struct { const char *name; char **text; } texts[] = {
                { "running", &a->storage.running }, { "array-uuid", &a->storage.array_uuid },
                { "level", &a->storage.level },
                { "filesystem", &a->storage.filesystem }, { "uuid", &a->storage.uuid },
                { "source", &a->storage.source }, { "with", &a->with },
                { "snapshotter", &a->image.snapshotter }, { "socket", &a->image.socket }, { "store", &a->image.store }, { "timed-from", &a->timed_from },
        };
        const struct { const char *name; char ***list; } lists[] = {
                { "after", &a->after }, { "after-any", &a->after_any }, { "reads", &a->unit.reads },
                { "disks", &a->storage.disks },
                { "serials", &a->storage.serials }, { "blank", &a->storage.blank }, { "words", words_of(a) },
                { "seen", &a->device.seen },
        };
        const struct { const char *name; bool *flag; } flags[] = {
                { "optional", &a->optional }, { "retry", &a->retry }, { "lenient", &a->lenient }, { "quiet", &a->quiet },
                { "array", &a->storage.array },
        };
        char *value = strchr(word, '=');
        if (!value)
                return;
        *value++ = 0;
        if (streq(word, "deadline") && parse_timespan(value, &a->deadline_usec) < 0)
                abort();
        else if (streq(word, "mode"))
                a->file.mode = (mode_t)strtoul(value, NULL, 8);
        else if (streq(word, "state"))
                a->storage.state = (StepState)step_state_from_string(value);
        else if (streq(word, "moves"))
                moves_read(a, value);
        for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
                if (streq(word, flags[i].name))
                        *flags[i].flag = streq(value, "yes");
        device_option_set(a, word, value);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                if (streq(word, texts[i].name))
                        *texts[i].text = xstrdup(value);
        for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
                if (streq(word, lists[i].name))
                        list_read(lists[i].list, value);
}

static void line_read(Plan *p, char *line) {
        char *content = strstr(line, " content="), *type, *target, *word;
        if (content) {
                *content = 0;
                content += strlen(" content=");
        }
        type = strsep(&line, " ");
        target = strsep(&line, " ");
        p->actions = xrealloc(p->actions, p->n + 1, sizeof *p->actions);
        Action *a = &p->actions[p->n++];
        *a = (Action){ .id = xasprintf("%s:%s", type, target),
                       .phase = PHASE_RUN,
                       .target = xstrdup(target) };
        a->type = (ActionType)action_type_from_string(type);
        if ((int)a->type < 0)
                abort();
        if (a->type == ACTION_RESERVE_PAGES)
                a->pages.node = -1;
        if (action_is(a, ACTION_OF_FILES)) {
                a->file.mode = 0644;
                content_set(a, content ?: "");
        }
        while ((word = strsep(&line, " "))) {
                const char *inputs = word + strlen("inputs=");
                if (startswith(word, "inputs="))
                        sha256_hex(inputs, strlen(inputs), a->unit.inputs);
                else
                        option_set(a, word);
        }
}

static void plan_done(Plan *p) {
        for (size_t i = 0; i < p->n; i++)
                action_done(&p->actions[i]);
        free(p->actions);
}

int main(int argc, char **argv) {
        _cleanup_(plan_done) Plan plan = { .id = "sha256:test" };
        _cleanup_(results_done) Results results = {};
        _cleanup_(diag_done) Diag diag = {};
        _cleanup_(root_freep) Root *root = NULL;
        _free_ char *line = NULL;
        uint64_t begin = now_usec();
        size_t room = 0;

        while (getline(&line, &room, stdin) > 0) {
                line[strcspn(line, "\n")] = 0;
                if (*line)
                        line_read(&plan, line);
        }
        log_set_level(LOG_DEBUG);
        if (root_new(argc > 1 ? argv[1] : "/", &root) < 0)
                return 1;
        if (apply_plan(root, &plan, &results, &diag) < 0 && !diag_first_error(&diag))
                return 1;
        for (size_t i = 0; i < results.n; i++) {
                const Result *r = &results.items[i];
                printf("%s %s%s%s\n", outcome_to_string(r->outcome), r->action->id, r->text ? ": " : "",
                       r->text ?: "");
                char *found = json_dumps(r->found, JSON_SORT_KEYS);
                if (found)
                        printf("found %s: %s\n", r->action->id, found);
                free(found);
        }
        for (size_t i = 0; i < diag.n; i++)
                if (diag.items[i].warning)
                        printf("warning %s: %s\n", diag.items[i].code, diag.items[i].text);
        printf("wall %.3f\n", (double)(now_usec() - begin) / USEC_PER_SEC);
        fflush(stdout);
        Report report = { .command = "init",
                          .phases = "run",
                          .begin_usec = begin,
                          .plan = &plan,
                          .results = &results,
                          .diag = &diag };
        return (int)report_write(root, &report);
}
