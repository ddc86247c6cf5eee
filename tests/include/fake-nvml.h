/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A machine with NVIDIA GPUs that a script describes (tests/fakes/libnvidia-ml.c), and a Work to run an
 * executor with. The library is loaded by its path first: dlopen() of its name then finds it, without a way
 * past the real one in the product. */
#include "apply/apply.h"
#include "apply/device.h"
#include "base/str.h"
#include "base/time.h"
#include "test.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

typedef struct Machine { char path[32]; char *script, *state; Root *root; Action action; Work work; } Machine;

/* A file by its path from the folder of this program. */
static char *beside_program(const char *file) {
        char exe[4096] = "";
        ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
        ASSERT_TRUE(n > 0);
        exe[n] = 0;                     /* valgrind writes behind it */
        *strrchr(exe, '/') = 0;
        return xasprintf("%s/%s", exe, file);
}

static void fake_load(void) {
        static void *library;
        if (library)
                return;
        _free_ char *path = beside_program("../fakes/libnvidia-ml.so.1");
        library = dlopen(path, RTLD_NOW);
        if (!library)
                FAIL("%s", dlerror());
}

static void write_file(const char *path, const char *text) {
        FILE *f = fopen(path, "we");
        ASSERT_TRUE(f);
        fputs(text, f);
        fclose(f);
}

_unused_ static void machine_says(Machine *m, const char *script) {
        write_file(m->script, script);
}

static void machine_clear(Machine *m) {
        free(TAKE_PTR(m->work.text));
        json_decref(TAKE_PTR(m->work.found));
        diag_done(&m->work.warnings);
        m->work.warnings = (Diag){};
        m->work.cause = CAUSE_NONE;
}

static int remove_one(const char *path, _unused_ const struct stat *st, _unused_ int flag,
                      _unused_ struct FTW *ftw) {
        return remove(path);
}

static void machine_done(Machine *m) {
        machine_clear(m);
        for (size_t i = 0; i < m->action.device.n_layouts; i++)
                strv_free(m->action.device.layouts[i].profiles);
        free(m->action.device.layouts);
        strv_free(m->action.device.seen);
        free(m->action.with);
        root_free(m->root);
        nftw(m->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        free(m->script);
        free(m->state);
}

static void machine_init(Machine *m, const char *script) {
        *m = (Machine){ .path = "/tmp/test-gpus.XXXXXX" };
        fake_load();
        ASSERT_TRUE(mkdtemp(m->path));
        m->script = xasprintf("%s/script", m->path);
        m->state = xasprintf("%s/script.state", m->path);
        setenv("FAKE_NVML", m->script, 1);
        machine_says(m, script);
        ASSERT_OK(root_new(m->path, &m->root));
        m->action.id = (char *)"await-fabric:fabric";
        m->work = (Work){ .root = m->root,
                          .action = &m->action,
                          .cancel_fd = -1,
                          .deadline_usec = now_usec() + 60 * USEC_PER_SEC };
        alarm(120);
}
#define MACHINE(name, script) _cleanup_(machine_done) Machine name; machine_init(&name, script)

#define ASSERT_FAILS(x, wanted, words) ({                                                      \
        machine_clear(&m);                                                                     \
        ASSERT_TRUE((x) < 0);                                                                  \
        ASSERT_STREQ(cause_word(m.work.cause), cause_word(wanted));                            \
        ASSERT_CONTAINS(m.work.text, words); })

/* How often a call was made, by the state: -1 for calls without a GPU. */
_unused_ static unsigned calls_of(const Machine *m, const char *call, int gpu) {
        _free_ char *text = NULL, *words = xasprintf("calls %s %d ", call, gpu);
        unsigned n = 0;
        ASSERT_OK(root_read(m->root, "/script.state", 1 << 20, &text, NULL));
        for (char *save = NULL, *line = strtok_r(text, "\n", &save); line && n == 0;
             line = strtok_r(NULL, "\n", &save))
                if (startswith(line, words))
                        n = (unsigned)atoi(line + strlen(words));
        return n;
}

/* The whole task, of a lenient action and within three seconds: it ends well, changes nothing, and says so. */
_unused_ static void assert_only_warns(Machine *m, ActionType type, const char *code, const char *words) {
        _cleanup_(root_freep) Root *host = NULL;
        _cleanup_(results_done) Results results = {};
        _cleanup_(diag_done) Diag diag = {};
        m->action.type = type;
        m->action.target = (char *)"target";
        m->action.lenient = true;
        m->action.deadline_usec = 3 * USEC_PER_SEC;
        Plan plan = { .actions = &m->action, .n = 1 };
        ASSERT_OK(root_new("/", &host));        /* it is run on a real machine alone */
        ASSERT_OK(apply_plan(host, &plan, &results, &diag));
        ASSERT_STREQ(outcome_to_string(results.items[0].outcome), "unchanged");
        ASSERT_EQ(diag.n, 1);
        ASSERT_TRUE(diag.items[0].warning);
        ASSERT_STREQ(diag.items[0].code, code);
        ASSERT_CONTAINS(diag.items[0].text, words);
        machine_clear(m);
        m->work.found = json_incref(results.items[0].found);
}
