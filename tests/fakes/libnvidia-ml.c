/* SPDX-License-Identifier: Apache-2.0
 * libnvidia-ml.so.1 without a GPU: it does what a script says. FAKE_NVML names it, else it is
 * /etc/fake-nvml. Every call reads it again, so that a test may change the machine under a reader. Lines, #
 * begins a comment, GPUs count from 0 in the script's order, "all" is every one:
 *
 *   state PATH                     what changes lies here, for all processes; default: the script's name and
 *                                  ".state"
 *   model NAME                     of the table below; default h100
 *   gpus N                         that many, at 0000:10:00.0, 0000:20:00.0 …
 *   gpu ADDRESS                    one more: gpu 0000:86:00.0
 *   fabric GPU STATE [STATUS] [for 2.5s | for 3x] [then STATE …]
 *                                  not-supported, not-started, in-progress, completed; STATUS is a number of
 *                                  nvmlReturn_t; for so long, or for so many asks of this GPU, and then the
 *                                  next; the last one stays. Without such a line: completed, on models
 *                                  without fabric registration not-supported
 *   fabric-needs PATH              until it is there, GPUs are not-started and time does not count (a fake
 *                                  fabric manager makes it)
 *   cluster UUID CLIQUE [GPU]      32 hexadecimal digits; without it zero, as on HGX
 *   health GPU MASK [SUMMARY]      NVML_GPU_FABRIC_HEALTH_MASK_*, for asks of version 2 and later, and
 *                                  …_SUMMARY_*, from version 3 on. Without such a line 0 and healthy (1)
 *   recovery GPU ACTION [TYPE]     NVML_GPU_RECOVERY_ACTION_*, a number; default 0; as NVML_VALUE_TYPE_*,
 *                                  default 1; recovery none: a driver before R570, which does not know the
 *                                  field
 *   rows GPU pending | failed      row remapping (not on models before Ampere, nor in MIG mode)
 *   pages GPU pending              retirement of pages (only there)
 *   ecc GPU N                      uncorrected errors since the driver was loaded
 *   recoveries GPU N               of each NVLink from errors, since the driver was loaded
 *   links GPU 4,5 | all [20x]      NVLinks that are down, always or in the first so many answers
 *   links-need PATH                all are, until it is there: A100's are trained by fabric manager; in MIG
 *                                  mode A100's are down in any case
 *   reasons GPU MASK [3x]          nvmlClocksEventReason*, always or in the first so many answers
 *   error CALL CODE [GPU] [3x]     CALL as in nvml.h without _v2, _v3; always, or the first so many times (of
 *                                  that GPU)
 *   hang CALL [GPU] [after 3x]     it does not return, at once or once it has been called so often
 *   mig activates | reset | stuck  what setting the mode does: at once (default from Hopper on), after a
 *                                  reset (default on Ampere), or not even then: see fakeNvmlReset()
 *   profile ID NAME                what the GPU instance profile is called, as the library says it, blanks
 *                                  and all: "MIG 1g.10gb"; 96 bytes leave no room for a NUL
 *   mig in-use [3x]                activation fails with NVML_ERROR_IN_USE, always or so often, and the mode
 *                                  is not pending: of a CUDA program, on any model
 *   held-by PATH                   so it does while another process holds flock(2) on this file
 *   attached PATH                  so it does on Ampere while another process holds flock(2) on this file, or
 *                                  this directory is there: persistenced, fabric manager, nvidia_drm; may
 *                                  stand several times
 *   clocks M,M… G,G…               supported memory and graphics clocks in MHz; the default are the first of
 *                                  each
 *   clocks none                    the GPU knows no application clocks
 *   clocks deprecated              it knows which there are, and setting them is NVML_ERROR_DEPRECATED
 *   auto-boost none                nor auto boost
 *   license WORD PATH              GPUs are parts of one, and licensed for the product WORD while PATH is there
 *
 * The state is text too; another player (nvidia-smi --gpu-reset, a reboot) may edit it, holding flock(2) on
 * it:
 *   since USEC                     CLOCK_REALTIME of the first ask for the fabric
 *   calls CALL GPU N               how often it was called; GPU is -1 for calls without one
 *   mig GPU CURRENT PENDING        0 or 1
 *   instance GPU ID PROFILE START SIZE COMPUTE     COMPUTE: 0, or 1 where a compute instance takes all of it
 *   persistence GPU ON, auto-boost GPU NOW DEFAULT, clocks GPU MEMORY GRAPHICS
 *
 * Where activation is IN_USE on Ampere by others the mode is pending anyway (MIGUG, of monitoring agents;
 * NVIDIA/gpu-operator#118, #1845). NVIDIA/mig-parted:pkg/mig/mode/nvml.go looks at the pending mode alone,
 * not at that status. A reset is refused as long as anybody holds a GPU, also by its persistence
 * mode (NVIDIA/NVSentinel#1690).
 *
 * Sources. Fabric: https://docs.nvidia.com/deploy/nvml-api/group__nvmlFabricDefs.html. MIG:
 * https://docs.nvidia.com/datacenter/tesla/mig-user-guide/ (MIGUG). Clocks: awslabs/amazon-eks-ami at
 * 861b140. Places of GPU instances on GPUs with eight memory slices:
 * NVIDIA/go-nvml:pkg/nvml/mock/gpus/a100.go. Zeros of HGX:
 * pytorch/ci-infra:osdc/docs/h100-fabric-handles-imex-channels.md. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define GPUS_MAX 16
#define STEPS_MAX 8
#define RULES_MAX 32
#define INSTANCES_MAX 8
#define CALLS_MAX 1024
#define CLOCKS_MAX 16
#define PROFILE_NAME 96         /* NVML_DEVICE_NAME_V2_BUFFER_SIZE */
#define USEC 1000000ULL

enum {
        OK = 0,
        UNINITIALIZED = 1,
        INVALID_ARGUMENT = 2,
        NOT_SUPPORTED = 3,
        NOT_FOUND = 6,
        INSUFFICIENT_SIZE = 7,
        RESET_REQUIRED = 16,
        IN_USE = 19,
        INSUFFICIENT_RESOURCES = 23,
        ARGUMENT_VERSION_MISMATCH = 25,
        DEPRECATED = 26
};

/* ---- models ---- */

typedef struct Profile {
        unsigned index, id, slices, instances, size;
        bool low;
        unsigned starts[8], n_starts;
} Profile;
/* low: the driver takes the lowest free place, else the highest. The choice of real drivers is not
 * documented. But small ones first leave no room for a 3g (MIGUG), as here: 1g,2g,3g does not fit, 3g,2g,1g
 * does. */
static const Profile slices8[] = {
        { 0, 19, 1, 7, 1, false, { 0, 1, 2, 3, 4, 5, 6 }, 7 },
        { 7, 20, 1, 1, 1, false, { 0, 1, 2, 3, 4, 5, 6 }, 7 },
        { 9, 15, 1, 4, 2, false, { 0, 2, 4, 6 }, 4 },
        { 1, 14, 2, 3, 2, true, { 0, 2, 4 }, 3 },
        { 2, 9, 3, 2, 4, true, { 0, 4 }, 2 },
        { 3, 5, 4, 1, 4, true, { 0 }, 1 },
        { 4, 0, 7, 1, 8, true, { 0 }, 1 },
};
static const char *const names8[][7] = { /* in the order of slices8; EKS user guide, NVIDIA/mig-parted */
        { "1g.5gb", "1g.5gb+me", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb" },
        { "1g.10gb", "1g.10gb+me", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb" },
        { "1g.18gb", "1g.18gb+me", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb" },
        { "1g.23gb", "1g.23gb+me", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb" },
        { "1g.34gb", "1g.34gb+me", "1g.67gb", "2g.67gb", "3g.135gb", "4g.135gb", "7g.269gb" },
        { "1g.23gb", "1g.23gb+me", "1g.47gb", "2g.47gb", "3g.93gb", "4g.93gb", "7g.186gb" },
        { "1g.35gb", "1g.35gb+me", "1g.70gb", "2g.70gb", "3g.139gb", "4g.139gb", "7g.278gb" },
};
/* RTX PRO 6000: id 14 is 1g there (MIGUG); the other ids and the places are ours. */
static const Profile slices4[] = {
        { 0, 14, 1, 4, 1, false, { 0, 1, 2, 3 }, 4 },
        { 7, 21, 1, 1, 1, false, { 0, 1, 2, 3 }, 4 },
        { 1, 5, 2, 2, 2, true, { 0, 2 }, 2 },
        { 3, 0, 4, 1, 4, true, { 0 }, 1 },
};
static const char *const names4[] = { "1g.24gb", "1g.24gb+me", "2g.48gb", "4g.96gb" };
typedef struct Model {
        const char *name;
        const Profile *profiles; size_t n; const char *const *names;
        bool ampere;            /* MIG mode needs a reset and survives a reboot (MIGUG) */
        bool registers;         /* with a fabric: A100 has no such thing */
        unsigned nvlinks;
        unsigned memory, graphics;
} Model;
static const Model models[] = {
        { "h100", slices8, 7, names8[1], false, true, 18, 2619, 1980 },
        { "h200", slices8, 7, names8[2], false, true, 18, 3201, 1980 },
        { "a100-40", slices8, 7, names8[0], true, false, 12, 1215, 1410 },
        { "a100-80", slices8, 7, names8[1], true, false, 12, 1593, 1410 },
        { "b200", slices8, 7, names8[3], false, true, 18, 3996, 1965 },
        { "b300", slices8, 7, names8[4], false, true, 18, 3996, 1965 },
        { "gb200", slices8, 7, names8[5], false, true, 18, 3996, 1965 },
        { "gb300", slices8, 7, names8[6], false, true, 18, 3996, 1965 },
        { "rtx-pro-6000", slices4, 4, names4, false, false, 0, 12481, 2430 },
        { "l4", NULL, 0, NULL, false, false, 0, 6251, 2040 },
        { "t4", NULL, 0, NULL, false, false, 0, 5001, 1590 },
};

/* ---- script and state ---- */

typedef struct Step { unsigned state, status; uint64_t usec; unsigned asks; } Step;
/* gpu -1: all; times 0: always */
/* times: 0 for always; of one that hangs, the calls before that. */
typedef struct Rule { char call[64]; bool hang; unsigned code; int gpu; unsigned times; } Rule;
typedef struct Instance { unsigned id, profile, start, size, compute; } Instance;
typedef struct Gpu {
        char address[16];
        Step steps[STEPS_MAX]; unsigned n_steps;
        unsigned char uuid[16]; unsigned clique, health, summary;
        unsigned recovery, recovery_type, pending_rows, failed_rows, pages, ecc, recoveries;
        unsigned links_down, links_times, reasons, reasons_times;
        unsigned current, pending, persistence, boost, boost_default, memory, graphics;
        Instance instances[INSTANCES_MAX]; unsigned n_instances;
} Gpu;
typedef struct Calls { char call[64]; int gpu; unsigned n; } Calls;
typedef struct Fake {
        char state[256], needs[256], held[256], links_need[256], attached[4][256], product[64], license[256];
        unsigned n_attached;
        const Model *model;
        Gpu gpus[GPUS_MAX]; unsigned n;
        Rule rules[RULES_MAX]; unsigned n_rules;
        Calls calls[CALLS_MAX]; unsigned n_calls;
        unsigned memory[CLOCKS_MAX], n_memory, graphics[CLOCKS_MAX], n_graphics;
        bool no_clocks, no_boost, old_clocks, no_recovery, stuck, at_once, after_reset;
        int in_use;             /* -1: always */
        unsigned named; char name[PROFILE_NAME + 1];    /* the profile of that id; "": as the model has it */
        unsigned long long since;
        int fd;
} Fake;

static unsigned initialised;

_Noreturn static void broken(const char *what, const char *line) {
        fprintf(stderr, "fake libnvidia-ml: %s: %s\n", what, line);
        abort();
}

static uint64_t now(void) {
        struct timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        return (uint64_t)t.tv_sec * USEC + (uint64_t)t.tv_nsec / 1000;
}

static int gpu_number(const char *word) {
        return strcmp(word, "all") == 0 ? -1 : atoi(word);
}

static unsigned state_number(const char *word) {
        static const char *const names[] = { "not-supported", "not-started", "in-progress", "completed" };
        for (unsigned i = 0; i < COUNT(names); i++)
                if (strcmp(names[i], word) == 0)
                        return i;
        broken("no such fabric state", word);
}

/* "in-progress for 2.5s then completed 10" */
static unsigned parse_steps(char *rest, Step *steps) {
        unsigned n = 0;
        char *save = NULL;
        for (char *word = strtok_r(rest, " ", &save); word && n < STEPS_MAX;
             word = strtok_r(NULL, " ", &save)) {
                if (strcmp(word, "then") == 0)
                        continue;
                if (strcmp(word, "for") == 0) {
                        word = strtok_r(NULL, " ", &save);
                        if (!word || n == 0)
                                broken("for what?", rest);
                        if (strchr(word, 'x'))
                                steps[n - 1].asks = (unsigned)atoi(word);
                        else
                                steps[n - 1].usec = (uint64_t)(atof(word) * (double)USEC);
                } else if (*word >= '0' && *word <= '9' && n > 0)
                        steps[n - 1].status = (unsigned)atoi(word);
                else
                        steps[n++] = (Step){ .state = state_number(word) };
        }
        return n;
}

static void set_steps(Fake *f, const char *gpu, char *rest) {
        Step steps[STEPS_MAX] = {};
        unsigned n = parse_steps(rest, steps);
        int which = gpu_number(gpu);
        for (unsigned i = 0; i < f->n; i++)
                if (which < 0 || (unsigned)which == i) {
                        memcpy(f->gpus[i].steps, steps, sizeof steps);
                        f->gpus[i].n_steps = n;
                }
}

static void set_cluster(Fake *f, const char *uuid, unsigned clique, int which) {
        for (unsigned i = 0; i < f->n; i++)
                for (unsigned b = 0; (which < 0 || (unsigned)which == i) && b < 16; b++) {
                        unsigned byte = 0;
                        if (sscanf(uuid + 2 * (size_t)b, "%2x", &byte) != 1)
                                broken("no UUID of 32 digits", uuid);
                        f->gpus[i].uuid[b] = (unsigned char)byte;
                        f->gpus[i].clique = clique;
                }
}

static unsigned parse_list(char *text, unsigned *to) {
        unsigned n = 0;
        char *save = NULL;
        for (char *word = strtok_r(text, ",", &save); word && n < CLOCKS_MAX;
             word = strtok_r(NULL, ",", &save))
                to[n++] = (unsigned)atoi(word);
        return n;
}

static void set_model(Fake *f, const char *name) {
        for (size_t i = 0; i < COUNT(models); i++)
                if (strcmp(models[i].name, name) == 0) {
                        f->model = &models[i];
                        f->memory[0] = models[i].memory;
                        f->graphics[0] = models[i].graphics - 300;
                        f->graphics[1] = models[i].graphics;
                        f->n_memory = 1;
                        f->n_graphics = 2;
                        return;
                }
        broken("no such model", name);
}

static void set_mig(Fake *f, const char *word, const char *times) {
        f->stuck |= strcmp(word, "stuck") == 0;
        f->after_reset |= strcmp(word, "reset") == 0;
        f->at_once |= strcmp(word, "activates") == 0;
        if (strcmp(word, "in-use") == 0)
                f->in_use = times ? atoi(times) : -1;
}

static void add_rule(Fake *f, const char *call, bool hang, unsigned code, char *const words[static 3]) {
        Rule r = { .hang = hang, .code = code, .gpu = -1 };
        snprintf(r.call, sizeof r.call, "%s", call);
        for (int i = 0; i < 3 && words[i]; i++) {
                const char *word = words[i];
                if (strcmp(word, "after") == 0)
                        continue;
                if (strchr(word, 'x'))
                        r.times = (unsigned)atoi(word);
                else
                        r.gpu = gpu_number(word);
        }
        if (f->n_rules < RULES_MAX)
                f->rules[f->n_rules++] = r;
}

static void add_gpu(Fake *f, const char *address) {
        if (f->n == GPUS_MAX)
                return;
        snprintf(f->gpus[f->n].address, sizeof f->gpus[0].address, "%s", address);
        f->gpus[f->n].recovery_type = 1;
        f->gpus[f->n++].summary = 1;
}

static bool is_health(const char *key) {
        static const char *const keys[] = { "health", "recovery", "rows", "pages", "ecc", "recoveries", "links", "reasons" };
        for (size_t i = 0; i < COUNT(keys); i++)
                if (strcmp(keys[i], key) == 0)
                        return true;
        return false;
}

/* "4,5" → bits */
static unsigned parse_bits(const char *text) {
        unsigned bits = strcmp(text, "all") == 0 ? ~0U : 0;
        for (const char *at = text; bits != ~0U && at; at = strchr(at, ','))
                bits |= 1U << atoi(at += *at == ',');
        return bits;
}

static void set_health(Fake *f, const char *key, int which, const char *value, const char *more) {
        for (unsigned i = 0; i < f->n; i++) {
                Gpu *g = &f->gpus[i];
                unsigned number = (unsigned)strtoul(value, NULL, 0);
                if (which >= 0 && (unsigned)which != i)
                        continue;
                if (strcmp(key, "health") == 0) {
                        g->health = number;
                        g->summary = more ? (unsigned)atoi(more) : g->summary;
                } else if (strcmp(key, "recovery") == 0) {
                        g->recovery = number;
                        g->recovery_type = more ? (unsigned)atoi(more) : 1;
                } else if (strcmp(key, "rows") == 0) {
                        g->pending_rows |= strcmp(value, "pending") == 0;
                        g->failed_rows |= strcmp(value, "failed") == 0;
                } else if (strcmp(key, "pages") == 0)
                        g->pages = 1;
                else if (strcmp(key, "ecc") == 0)
                        g->ecc = number;
                else if (strcmp(key, "recoveries") == 0)
                        g->recoveries = number;
                else if (strcmp(key, "links") == 0) {
                        g->links_down = parse_bits(value);
                        g->links_times = more ? (unsigned)atoi(more) : 0;
                } else {
                        g->reasons = number;
                        g->reasons_times = more ? (unsigned)atoi(more) : 0;
                }
        }
}

static void script_line(Fake *f, char *line) {
        char *words[6] = {}, all[512];
        snprintf(all, sizeof all, "%s", line);
        unsigned n = 0;
        char *save = NULL;
        for (char *word = strtok_r(line, " ", &save); word && n < COUNT(words);
             word = strtok_r(NULL, " ", &save))
                words[n++] = word;
        const char *key = words[0];
        if (!key || *key == '#')
                return;
        if (!words[1])
                broken("a word is missing", all);
        if (strcmp(key, "state") == 0)
                snprintf(f->state, sizeof f->state, "%s", words[1]);
        else if (strcmp(key, "held-by") == 0)
                snprintf(f->held, sizeof f->held, "%s", words[1]);
        else if (strcmp(key, "attached") == 0 && f->n_attached < COUNT(f->attached))
                snprintf(f->attached[f->n_attached++], sizeof f->attached[0], "%s", words[1]);
        else if (strcmp(key, "model") == 0)
                set_model(f, words[1]);
        else if (strcmp(key, "gpus") == 0)
                for (int i = 0; i < atoi(words[1]); i++) {
                        char address[40];
                        snprintf(address, sizeof address, "0000:%x0:00.0", i + 1);
                        add_gpu(f, address);
                }
        else if (strcmp(key, "gpu") == 0)
                add_gpu(f, words[1]);
        else if (strcmp(key, "fabric") == 0 && words[2])
                set_steps(f, words[1], all + (words[2] - line));
        else if (strcmp(key, "fabric-needs") == 0)
                snprintf(f->needs, sizeof f->needs, "%s", words[1]);
        else if (strcmp(key, "cluster") == 0 && words[2])
                set_cluster(f, words[1], (unsigned)atoi(words[2]), words[3] ? gpu_number(words[3]) : -1);
        else if (strcmp(key, "links-need") == 0)
                snprintf(f->links_need, sizeof f->links_need, "%s", words[1]);
        else if (strcmp(key, "recovery") == 0 && !words[2])
                f->no_recovery = true;
        else if (words[2] && is_health(key))
                set_health(f, key, gpu_number(words[1]), words[2], words[3]);
        else if (strcmp(key, "profile") == 0 && words[2]) {
                f->named = (unsigned)atoi(words[1]);
                snprintf(f->name, sizeof f->name, "%s", all + (words[2] - line));
        } else if (strcmp(key, "error") == 0 && words[2])
                add_rule(f, words[1], false, (unsigned)atoi(words[2]), words + 3);
        else if (strcmp(key, "hang") == 0)
                add_rule(f, words[1], true, OK, words + 2);
        else if (strcmp(key, "license") == 0) {
                snprintf(f->product, sizeof f->product, "%s", words[1]);
                snprintf(f->license, sizeof f->license, "%s", words[2] ? words[2] : "");
        } else if (strcmp(key, "mig") == 0)
                set_mig(f, words[1], words[2]);
        else if (strcmp(key, "auto-boost") == 0)
                f->no_boost = true;
        else if (strcmp(key, "clocks") == 0 && !words[2])
                *(strcmp(words[1], "deprecated") == 0 ? &f->old_clocks : &f->no_clocks) = true;
        else if (strcmp(key, "clocks") == 0) {
                f->n_memory = parse_list(words[1], f->memory);
                f->n_graphics = parse_list(words[2], f->graphics);
        } else
                broken("what is this?", all);
}

static void read_lines(FILE *from, Fake *f, void (*take)(Fake *f, char *line)) {
        char line[512];
        while (fgets(line, sizeof line, from)) {
                line[strcspn(line, "\n")] = 0;
                take(f, line);
        }
        fclose(from);
}

static void state_line(Fake *f, char *line) {
        unsigned i, a[5];
        int gpu;
        Calls c;
        Instance in;
        if (sscanf(line, "since %llu", &f->since) == 1)
                return;
        if (sscanf(line, "calls %63s %d %u", c.call, &c.gpu, &c.n) == 3 && f->n_calls < CALLS_MAX)
                f->calls[f->n_calls++] = c;
        else if (sscanf(line, "instance %d %u %u %u %u %u", &gpu, &in.id, &in.profile, &in.start, &in.size,
                        &in.compute) == 6)
                f->gpus[gpu].instances[f->gpus[gpu].n_instances++] = in;
        else if (sscanf(line, "mig %u %u %u", &i, &a[0], &a[1]) == 3) {
                f->gpus[i].current = a[0];
                f->gpus[i].pending = a[1];
        } else if (sscanf(line, "persistence %u %u", &i, &a[0]) == 2)
                f->gpus[i].persistence = a[0];
        else if (sscanf(line, "auto-boost %u %u %u", &i, &a[0], &a[1]) == 3) {
                f->gpus[i].boost = a[0];
                f->gpus[i].boost_default = a[1];
        } else if (sscanf(line, "clocks %u %u %u", &i, &a[0], &a[1]) == 3) {
                f->gpus[i].memory = a[0];
                f->gpus[i].graphics = a[1];
        }
}

static void state_write(const Fake *f) {
        FILE *to = fdopen(fcntl(f->fd, F_DUPFD_CLOEXEC, 0), "w");
        if (!to || ftruncate(f->fd, 0) < 0)
                broken("the state cannot be written", f->state);
        rewind(to);
        if (f->since)
                fprintf(to, "since %llu\n", f->since);
        for (unsigned i = 0; i < f->n_calls; i++)
                fprintf(to, "calls %s %d %u\n", f->calls[i].call, f->calls[i].gpu, f->calls[i].n);
        for (unsigned i = 0; i < f->n; i++) {
                const Gpu *g = &f->gpus[i];
                fprintf(to, "mig %u %u %u\npersistence %u %u\nauto-boost %u %u %u\nclocks %u %u %u\n", i,
                        g->current, g->pending, i, g->persistence, i, g->boost, g->boost_default, i,
                        g->memory, g->graphics);
                for (unsigned k = 0; k < g->n_instances; k++)
                        fprintf(to, "instance %u %u %u %u %u %u\n", i, g->instances[k].id,
                                g->instances[k].profile, g->instances[k].start, g->instances[k].size,
                                g->instances[k].compute);
        }
        fclose(to);
}

static void fake_read(Fake *f) {
        const char *script = getenv("FAKE_NVML") ?: "/etc/fake-nvml";
        FILE *from = fopen(script, "re");
        if (!from)
                broken("no script", script);
        *f = (Fake){};
        snprintf(f->state, sizeof f->state, "%s.state", script);
        set_model(f, "h100");
        read_lines(from, f, script_line);
        for (unsigned i = 0; i < f->n; i++) {
                Gpu *g = &f->gpus[i];
                g->memory = f->memory[0];
                g->graphics = f->graphics[0];
                g->boost = g->boost_default = 1;
        }
        f->fd = open(f->state, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
        if (f->fd < 0 || flock(f->fd, LOCK_EX) < 0 || !(from = fdopen(fcntl(f->fd, F_DUPFD_CLOEXEC, 0), "r")))
                broken("the state cannot be opened", f->state);
        read_lines(from, f, state_line);
}

/* Closes it for others too; what is changed later stays in this process alone. */
static unsigned fake_end(Fake *f, unsigned code) {
        state_write(f);
        close(f->fd);
        return code;
}

static unsigned count_call(Fake *f, const char *call, int gpu) {
        for (unsigned i = 0; i < f->n_calls; i++)
                if (strcmp(f->calls[i].call, call) == 0 && f->calls[i].gpu == gpu)
                        return ++f->calls[i].n;
        if (f->n_calls == CALLS_MAX)
                broken("too many calls to count", call);
        f->calls[f->n_calls] = (Calls){ .gpu = gpu, .n = 1 };
        snprintf(f->calls[f->n_calls++].call, sizeof f->calls[0].call, "%s", call);
        return 1;
}

/* Begins a call: OK with the state locked until fake_end(), or what the script says it answers. *ret_n: how
 * often it was called. */
static unsigned fake_begin(Fake *f, const char *call, int gpu, unsigned *ret_n) {
        fake_read(f);
        unsigned n = count_call(f, call, gpu);
        if (!initialised && strcmp(call, "nvmlInit") != 0)
                return fake_end(f, UNINITIALIZED);
        if (gpu >= 0 && (unsigned)gpu >= f->n)
                return fake_end(f, INVALID_ARGUMENT);
        for (unsigned i = 0; i < f->n_rules; i++) {
                const Rule *r = &f->rules[i];
                if (strcmp(r->call, call) != 0 || (r->gpu >= 0 && r->gpu != gpu) ||
                    (r->times && (n > r->times) != r->hang))
                        continue;
                (void)fake_end(f, OK);
                while (r->hang)
                        pause();
                return r->code;
        }
        if (ret_n)
                *ret_n = n;
        return OK;
}
#define BEGIN(call, gpu, ret_n)                                                                 \
        Fake f; unsigned begun = fake_begin(&f, call, gpu, ret_n); if (begun != OK) return begun
#define END(code) return fake_end(&f, code)

/* ---- what other fakes may call ---- */

static bool is_locked(const char *path) {
        int fd = *path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        struct stat st;
        bool locked = fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) < 0 || (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)));
        if (fd >= 0)
                close(fd);
        return locked;
}

static bool is_attached(const Fake *fake) {
        for (unsigned i = 0; i < fake->n_attached; i++)
                if (is_locked(fake->attached[i]))
                        return true;
        return false;
}

API int fakeNvmlReset(int gpu);
/* A reset, of all GPUs (-1) or one: the pending MIG mode becomes the current one, instances are gone;
 * IN_USE where a process holds them. -2: power-on, after which only the InfoROM remembers. */
API int fakeNvmlReset(int gpu) {
        Fake f;
        bool persistent = false;
        fake_read(&f);
        for (unsigned i = 0; i < f.n; i++)
                persistent |= f.gpus[i].persistence && (gpu < 0 || (unsigned)gpu == i);
        if (gpu != -2 && (persistent || is_locked(f.held) || is_attached(&f)))
                return (int)fake_end(&f, IN_USE);
        for (unsigned i = 0; i < f.n; i++)
                if (gpu < 0 || (unsigned)gpu == i) {
                        f.gpus[i].current = f.stuck ? f.gpus[i].current : f.gpus[i].pending;
                        f.gpus[i].n_instances = f.gpus[i].persistence = 0;
                }
        return (int)fake_end(&f, OK);
}

/* ---- the library ---- */

typedef void *Device;
static char devices[GPUS_MAX], instances[GPUS_MAX][256];       /* handles point in here */
static Device device_of(unsigned i) { return &devices[i < GPUS_MAX ? i : 0]; }
static int gpu_of(Device d) { return (int)((char *)d - devices); }
static void *instance_of(int gpu, unsigned id) { return &instances[gpu][id]; }
static int instance_gpu(void *h) { return (int)(((char *)h - instances[0]) / 256); }
static unsigned instance_id(void *h) { return (unsigned)(((char *)h - instances[0]) % 256); }

#define FUNCTION(name, ...) API unsigned name(__VA_ARGS__); API unsigned name(__VA_ARGS__)

FUNCTION(nvmlInit_v2, void) {
        BEGIN("nvmlInit", -1, NULL);
        initialised++;
        END(OK);
}

FUNCTION(nvmlShutdown, void) {
        BEGIN("nvmlShutdown", -1, NULL);
        initialised--;
        END(OK);
}

API const char *nvmlErrorString(unsigned code);
API const char *nvmlErrorString(unsigned code) {
        /* nvml.h's names of them in plain words */
        static const struct { unsigned code; const char *text; } texts[] = {
                { OK, "Success" }, { UNINITIALIZED, "Uninitialized" },
                { INVALID_ARGUMENT, "Invalid Argument" }, { NOT_SUPPORTED, "Not Supported" },
                { 4, "Insufficient Permissions" }, { NOT_FOUND, "Not Found" },
                { INSUFFICIENT_SIZE, "Insufficient Size" }, { 9, "Driver Not Loaded" },
                { 10, "Timeout" }, { 13, "Function Not Found" }, { 15, "GPU is lost" },
                { RESET_REQUIRED, "GPU requires reset" },
                { 18, "Driver/library version mismatch" }, { IN_USE, "In use by another client" },
                { INSUFFICIENT_RESOURCES, "Insufficient Resources" },
                { ARGUMENT_VERSION_MISMATCH, "Argument version mismatch" },
                { DEPRECATED, "Deprecated" },
        };
        for (size_t i = 0; i < COUNT(texts); i++)
                if (texts[i].code == code)
                        return texts[i].text;
        return "Unknown Error";
}

FUNCTION(nvmlDeviceGetCount_v2, unsigned *ret) {
        BEGIN("nvmlDeviceGetCount", -1, NULL);
        *ret = f.n;
        END(OK);
}

FUNCTION(nvmlDeviceGetHandleByIndex_v2, unsigned i, Device *ret) {
        BEGIN("nvmlDeviceGetHandleByIndex", (int)i, NULL);
        *ret = device_of(i);
        END(OK);
}

typedef struct PciInfo {
        char legacy_id[16];
        unsigned domain, bus, device, device_id, subsystem_id;
        char id[32];
} PciInfo;
FUNCTION(nvmlDeviceGetPciInfo_v3, Device d, PciInfo *ret) {
        BEGIN("nvmlDeviceGetPciInfo", gpu_of(d), NULL);
        *ret = (PciInfo){};
        (void)sscanf(f.gpus[gpu_of(d)].address, "%x:%x:%x", &ret->domain, &ret->bus, &ret->device);
        snprintf(ret->id, sizeof ret->id, "%08X:%02X:%02X.0", ret->domain, ret->bus & 0xff,
                 ret->device & 0xff);
        END(OK);
}

/* ---- fabric ---- */

/* The part of the line that holds at this question, so long after the beginning. */
static const Step *step_now(const Gpu *g, unsigned asks, uint64_t usec) {
        for (unsigned i = 0; i < g->n_steps; i++) {
                const Step *s = &g->steps[i];
                if (i + 1 == g->n_steps || (s->asks && asks <= s->asks) || (s->usec && usec < s->usec))
                        return s;
                asks -= s->asks;
                usec -= s->usec;
        }
        return NULL;
}

static Step fabric_now(Fake *f, int gpu, unsigned asks) {
        struct stat st;
        if (!f->model->registers && f->gpus[gpu].n_steps == 0)
                return (Step){ .state = 0 };
        if (*f->needs && stat(f->needs, &st) < 0)
                return (Step){ .state = 1 };
        if (*f->needs)
                f->since = (unsigned long long)st.st_mtim.tv_sec * USEC +
                           (unsigned long long)st.st_mtim.tv_nsec / 1000;
        if (!f->since)
                f->since = now();
        const Step *s = step_now(&f->gpus[gpu], asks, now() - f->since);
        return s ? *s : (Step){ .state = 3 };
}

typedef struct FabricInfo {
        unsigned char uuid[16];
        unsigned status, clique;
        unsigned char state;
} FabricInfo;
typedef struct FabricInfoV {
        unsigned version;
        unsigned char uuid[16];
        unsigned status, clique;
        unsigned char state;
        unsigned health;
        unsigned char summary;
} FabricInfoV;

FUNCTION(nvmlDeviceGetGpuFabricInfo, Device d, FabricInfo *ret) {
        unsigned n = 0;
        BEGIN("nvmlDeviceGetGpuFabricInfo", gpu_of(d), &n);
        Step s = fabric_now(&f, gpu_of(d), n);
        *ret = (FabricInfo){ .status = s.status,
                             .clique = f.gpus[gpu_of(d)].clique,
                             .state = (unsigned char)s.state };
        if (s.state == 3)
                memcpy(ret->uuid, f.gpus[gpu_of(d)].uuid, sizeof ret->uuid);
        END(OK);
}

/* script "error nvmlDeviceGetGpuFabricInfoV3 25": a library that knows version 2 alone. */
FUNCTION(nvmlDeviceGetGpuFabricInfoV, Device d, FabricInfoV *ret) {
        unsigned n = 0;
        bool third = ret->version == 0x03000028;
        if (!third && ret->version != 0x02000024)
                return ARGUMENT_VERSION_MISMATCH;
        if (third) {
                BEGIN("nvmlDeviceGetGpuFabricInfoV3", gpu_of(d), NULL);
                (void)fake_end(&f, OK);
        }
        BEGIN("nvmlDeviceGetGpuFabricInfoV", gpu_of(d), &n);
        const Gpu *g = &f.gpus[gpu_of(d)];
        Step s = fabric_now(&f, gpu_of(d), n);
        memset(ret->uuid, 0, sizeof ret->uuid);
        if (s.state == 3)
                memcpy(ret->uuid, g->uuid, sizeof ret->uuid);
        ret->status = s.status;
        ret->clique = g->clique;
        ret->state = (unsigned char)s.state;
        ret->health = g->health;
        if (third)
                ret->summary = (unsigned char)(s.state == 3 || g->summary != 1 ? g->summary : 0);
        END(OK);
}

/* ---- MIG ---- */

FUNCTION(nvmlDeviceGetMigMode, Device d, unsigned *current, unsigned *pending) {
        BEGIN("nvmlDeviceGetMigMode", gpu_of(d), NULL);
        *current = f.gpus[gpu_of(d)].current;
        *pending = f.gpus[gpu_of(d)].pending;
        END(f.model->profiles ? OK : NOT_SUPPORTED);
}

/* Does a change of mode take a reset on this GPU? */
static bool needs_reset(const Fake *f) {
        return !f->at_once && (f->stuck || f->after_reset || f->model->ampere);
}

FUNCTION(nvmlDeviceSetMigMode, Device d, unsigned mode, unsigned *activation) {
        unsigned n = 0;
        BEGIN("nvmlDeviceSetMigMode", gpu_of(d), &n);
        Gpu *g = &f.gpus[gpu_of(d)];
        if (!f.model->profiles)
                END(NOT_SUPPORTED);
        *activation = OK;
        bool waits = g->current != mode && needs_reset(&f);
        bool busy = (g->n_instances > 0 && !mode) || f.in_use < 0 || n <= (unsigned)f.in_use;
        if (busy || is_locked(f.held) || (waits && is_attached(&f))) {
                g->pending = waits && !busy ? mode : g->pending;
                *activation = IN_USE;
                END(OK);
        }
        g->pending = mode;
        if (waits)
                *activation = RESET_REQUIRED;
        else
                g->current = mode;
        END(OK);
}

static const Profile *profile_by_id(const Fake *f, unsigned id) {
        for (size_t i = 0; i < f->model->n; i++)
                if (f->model->profiles[i].id == id)
                        return &f->model->profiles[i];
        return NULL;
}

typedef struct ProfileInfo {
        unsigned version, id, p2p, slices, instances, processors, copy, decoders, encoders, jpeg, ofa;
        unsigned long long memory;
        char name[PROFILE_NAME];
} ProfileInfo;
FUNCTION(nvmlDeviceGetGpuInstanceProfileInfoV, Device d, unsigned index, ProfileInfo *ret) {
        BEGIN("nvmlDeviceGetGpuInstanceProfileInfoV", gpu_of(d), NULL);
        if (ret->version != 0x02000098)
                END(ARGUMENT_VERSION_MISMATCH);
        for (size_t i = 0; i < f.model->n; i++)
                if (f.model->profiles[i].index == index) {
                        const Profile *p = &f.model->profiles[i];
                        *ret = (ProfileInfo){ .version = ret->version,
                                              .id = p->id,
                                              .slices = p->slices,
                                              .instances = p->instances };
                        if (!*f.name || f.named != p->id)
                                snprintf(f.name, sizeof f.name, "MIG %s", f.model->names[i]);
                        memcpy(ret->name, f.name, sizeof ret->name);
                        END(OK);
                }
        END(index < 17 ? NOT_SUPPORTED : INVALID_ARGUMENT);
}

static bool overlaps(const Gpu *g, unsigned start, unsigned size) {
        for (unsigned i = 0; i < g->n_instances; i++)
                if (start < g->instances[i].start + g->instances[i].size &&
                    g->instances[i].start < start + size)
                        return true;
        return false;
}

static unsigned slices_used(const Fake *f, const Gpu *g) {
        unsigned used = 0;
        for (unsigned i = 0; i < g->n_instances; i++)
                used += profile_by_id(f, g->instances[i].profile)->slices;
        return used;
}

static unsigned count_of(const Gpu *g, unsigned profile) {
        unsigned n = 0;
        for (unsigned i = 0; i < g->n_instances; i++)
                n += g->instances[i].profile == profile;
        return n;
}

/* Memory slices must not overlap; compute slices, seven of eight, must suffice; -me and +me have their own
 * limit. */
static unsigned create(Fake *f, Device d, unsigned id, const unsigned *start, void **ret) {
        Gpu *g = &f->gpus[gpu_of(d)];
        const Profile *p = profile_by_id(f, id);
        if (!g->current)
                return NOT_SUPPORTED;
        if (!p)
                return INVALID_ARGUMENT;
        unsigned all = f->model->profiles == slices8 ? 7 : 4;
        if (count_of(g, id) == p->instances || slices_used(f, g) + p->slices > all)
                return INSUFFICIENT_RESOURCES;
        for (unsigned i = 0; i < p->n_starts; i++) {
                unsigned at = p->starts[p->low ? i : p->n_starts - 1 - i];
                if ((start && *start != at) || overlaps(g, at, p->size))
                        continue;
                unsigned number = 1;
                for (unsigned k = 0; k < g->n_instances; k++)
                        number = g->instances[k].id >= number ? g->instances[k].id + 1 : number;
                g->instances[g->n_instances++] =
                        (Instance){ .id = number, .profile = id, .start = at, .size = p->size };
                *ret = instance_of(gpu_of(d), number);
                return OK;
        }
        return INSUFFICIENT_RESOURCES;
}

FUNCTION(nvmlDeviceCreateGpuInstance, Device d, unsigned id, void **ret) {
        BEGIN("nvmlDeviceCreateGpuInstance", gpu_of(d), NULL);
        END(create(&f, d, id, NULL, ret));
}

typedef struct Placement { unsigned start, size; } Placement;
FUNCTION(nvmlDeviceCreateGpuInstanceWithPlacement, Device d, unsigned id, const Placement *at, void **ret) {
        BEGIN("nvmlDeviceCreateGpuInstanceWithPlacement", gpu_of(d), NULL);
        END(create(&f, d, id, &at->start, ret));
}

FUNCTION(nvmlDeviceGetGpuInstancePossiblePlacements_v2, Device d, unsigned id, Placement *ret,
         unsigned *count) {
        BEGIN("nvmlDeviceGetGpuInstancePossiblePlacements", gpu_of(d), NULL);
        const Profile *p = profile_by_id(&f, id);
        if (!p)
                END(INVALID_ARGUMENT);
        if (ret && *count < p->n_starts)
                END(INSUFFICIENT_SIZE);
        *count = p->n_starts;
        for (unsigned i = 0; ret && i < p->n_starts; i++)
                ret[i] = (Placement){ p->starts[i], p->size };
        END(OK);
}

FUNCTION(nvmlDeviceGetGpuInstances, Device d, unsigned id, void **ret, unsigned *count) {
        BEGIN("nvmlDeviceGetGpuInstances", gpu_of(d), NULL);
        const Gpu *g = &f.gpus[gpu_of(d)];
        if (!g->current)
                END(NOT_SUPPORTED);
        *count = 0;
        for (unsigned i = 0; i < g->n_instances; i++)
                if (g->instances[i].profile == id)
                        ret[(*count)++] = instance_of(gpu_of(d), g->instances[i].id);
        END(OK);
}

static Instance *instance_find(Fake *f, void *h) {
        Gpu *g = &f->gpus[instance_gpu(h)];
        for (unsigned i = 0; i < g->n_instances; i++)
                if (g->instances[i].id == instance_id(h))
                        return &g->instances[i];
        return NULL;
}

typedef struct InstanceInfo { Device device; unsigned id, profile; Placement at; } InstanceInfo;
FUNCTION(nvmlGpuInstanceGetInfo, void *h, InstanceInfo *ret) {
        BEGIN("nvmlGpuInstanceGetInfo", instance_gpu(h), NULL);
        const Instance *i = instance_find(&f, h);
        if (!i)
                END(NOT_FOUND);
        *ret = (InstanceInfo){
                device_of((unsigned)instance_gpu(h)), i->id, i->profile, { i->start, i->size }
        };
        END(OK);
}

FUNCTION(nvmlGpuInstanceDestroy, void *h) {
        BEGIN("nvmlGpuInstanceDestroy", instance_gpu(h), NULL);
        Gpu *g = &f.gpus[instance_gpu(h)];
        Instance *i = instance_find(&f, h);
        if (!i)
                END(NOT_FOUND);
        if (i->compute)
                END(IN_USE);
        *i = g->instances[--g->n_instances];
        END(OK);
}

/* Compute profiles have the indexes of GPU instance profiles; the id is the number of slices. */
typedef struct ComputeInfo { unsigned id, slices, instances, processors, shared[5]; } ComputeInfo;
FUNCTION(nvmlGpuInstanceGetComputeInstanceProfileInfo, void *h, unsigned index, unsigned engines,
         ComputeInfo *ret) {
        static const unsigned slices[] = { 1, 2, 3, 4, 7 };
        BEGIN("nvmlGpuInstanceGetComputeInstanceProfileInfo", instance_gpu(h), NULL);
        const Instance *i = instance_find(&f, h);
        if (!i)
                END(NOT_FOUND);
        if (index >= 8 || engines != 0)
                END(INVALID_ARGUMENT);
        if (index >= COUNT(slices) || slices[index] > profile_by_id(&f, i->profile)->slices)
                END(NOT_SUPPORTED);
        *ret = (ComputeInfo){ .id = slices[index], .slices = slices[index], .instances = 1 };
        END(OK);
}

FUNCTION(nvmlGpuInstanceCreateComputeInstance, void *h, unsigned id, void **ret) {
        BEGIN("nvmlGpuInstanceCreateComputeInstance", instance_gpu(h), NULL);
        Instance *i = instance_find(&f, h);
        if (!i || id != profile_by_id(&f, i->profile)->slices)
                END(NOT_SUPPORTED);
        if (i->compute)
                END(INSUFFICIENT_RESOURCES);
        i->compute = 1;
        *ret = h;
        END(OK);
}

FUNCTION(nvmlGpuInstanceGetComputeInstances, void *h, unsigned id, void **ret, unsigned *count) {
        BEGIN("nvmlGpuInstanceGetComputeInstances", instance_gpu(h), NULL);
        const Instance *i = instance_find(&f, h);
        *count = i && i->compute && id == profile_by_id(&f, i->profile)->slices;
        if (*count)
                *ret = h;
        END(i ? OK : NOT_FOUND);
}

FUNCTION(nvmlComputeInstanceDestroy, void *h) {
        BEGIN("nvmlComputeInstanceDestroy", instance_gpu(h), NULL);
        Instance *i = instance_find(&f, h);
        if (i)
                i->compute = 0;
        END(i ? OK : NOT_FOUND);
}

/* ---- names, of GPUs and MIG devices ---- */

static bool is_mig_device(Device d) {
        return (char *)d >= instances[0] && (char *)d < instances[0] + sizeof instances;
}

/* Places and numbers make it, so that a machine has the same in each test. */
FUNCTION(nvmlDeviceGetUUID, Device d, char *ret, unsigned size) {
        bool mig = is_mig_device(d);
        int gpu = mig ? instance_gpu(d) : gpu_of(d);
        unsigned a[3] = {};
        BEGIN("nvmlDeviceGetUUID", gpu, NULL);
        (void)sscanf(f.gpus[gpu].address, "%x:%x:%x", &a[0], &a[1], &a[2]);
        if (size < 41)
                END(INSUFFICIENT_SIZE);
        snprintf(ret, size, "%s-0000%04x-0000-0000-0000-%08x%02x%02x", mig ? "MIG" : "GPU",
                 mig ? instance_id(d) : 0, a[0], a[1] & 0xff, a[2] & 0xff);
        END(OK);
}

FUNCTION(nvmlDeviceGetMaxMigDeviceCount, Device d, unsigned *ret) {
        BEGIN("nvmlDeviceGetMaxMigDeviceCount", gpu_of(d), NULL);
        *ret = f.model->profiles ? f.model->profiles[0].instances : 0;
        END(OK);
}

FUNCTION(nvmlDeviceGetMigDeviceHandleByIndex, Device d, unsigned index, Device *ret) {
        BEGIN("nvmlDeviceGetMigDeviceHandleByIndex", gpu_of(d), NULL);
        const Gpu *g = &f.gpus[gpu_of(d)];
        for (unsigned i = 0; g->current && i < g->n_instances; i++)
                if (g->instances[i].compute && index-- == 0) {
                        *ret = instance_of(gpu_of(d), g->instances[i].id);
                        END(OK);
                }
        END(g->current ? NOT_FOUND : INVALID_ARGUMENT);
}

FUNCTION(nvmlDeviceGetGpuInstanceId, Device d, unsigned *ret) {
        BEGIN("nvmlDeviceGetGpuInstanceId", instance_gpu(d), NULL);
        *ret = instance_id(d);
        END(is_mig_device(d) ? OK : INVALID_ARGUMENT);
}

/* ---- clocks ---- */

FUNCTION(nvmlDeviceGetPersistenceMode, Device d, unsigned *ret) {
        BEGIN("nvmlDeviceGetPersistenceMode", gpu_of(d), NULL);
        *ret = f.gpus[gpu_of(d)].persistence;
        END(OK);
}

FUNCTION(nvmlDeviceSetPersistenceMode, Device d, unsigned on) {
        BEGIN("nvmlDeviceSetPersistenceMode", gpu_of(d), NULL);
        f.gpus[gpu_of(d)].persistence = on;
        END(OK);
}

FUNCTION(nvmlDeviceGetAutoBoostedClocksEnabled, Device d, unsigned *ret, unsigned *ret_default) {
        BEGIN("nvmlDeviceGetAutoBoostedClocksEnabled", gpu_of(d), NULL);
        *ret = f.gpus[gpu_of(d)].boost;
        *ret_default = f.gpus[gpu_of(d)].boost_default;
        END(f.no_boost ? NOT_SUPPORTED : OK);
}

FUNCTION(nvmlDeviceSetAutoBoostedClocksEnabled, Device d, unsigned on) {
        BEGIN("nvmlDeviceSetAutoBoostedClocksEnabled", gpu_of(d), NULL);
        f.gpus[gpu_of(d)].boost = on;
        END(f.no_boost ? NOT_SUPPORTED : OK);
}

FUNCTION(nvmlDeviceSetDefaultAutoBoostedClocksEnabled, Device d, unsigned on, unsigned flags) {
        BEGIN("nvmlDeviceSetDefaultAutoBoostedClocksEnabled", gpu_of(d), NULL);
        f.gpus[gpu_of(d)].boost_default = on;
        END(flags ? INVALID_ARGUMENT : f.no_boost ? NOT_SUPPORTED : OK);
}

static unsigned give_list(const unsigned *from, unsigned n, unsigned *count, unsigned *ret) {
        if (*count < n)
                return INSUFFICIENT_SIZE;
        *count = n;
        memcpy(ret, from, n * sizeof *from);
        return OK;
}

FUNCTION(nvmlDeviceGetSupportedMemoryClocks, Device d, unsigned *count, unsigned *ret) {
        BEGIN("nvmlDeviceGetSupportedMemoryClocks", gpu_of(d), NULL);
        END(f.no_clocks ? NOT_SUPPORTED : give_list(f.memory, f.n_memory, count, ret));
}

FUNCTION(nvmlDeviceGetSupportedGraphicsClocks, Device d, unsigned memory, unsigned *count, unsigned *ret) {
        BEGIN("nvmlDeviceGetSupportedGraphicsClocks", gpu_of(d), NULL);
        bool known = false;
        for (unsigned i = 0; i < f.n_memory; i++)
                known |= f.memory[i] == memory;
        END(f.no_clocks ? NOT_SUPPORTED
            : !known    ? NOT_FOUND
                        : give_list(f.graphics, f.n_graphics, count, ret));
}

static unsigned application_clocks(const Fake *f, bool known) {
        return f->no_clocks ? NOT_SUPPORTED : f->old_clocks ? DEPRECATED : known ? OK : INVALID_ARGUMENT;
}

FUNCTION(nvmlDeviceGetApplicationsClock, Device d, unsigned type, unsigned *ret) {
        BEGIN("nvmlDeviceGetApplicationsClock", gpu_of(d), NULL);
        *ret = type == 0 ? f.gpus[gpu_of(d)].graphics : f.gpus[gpu_of(d)].memory;
        END(application_clocks(&f, type == 0 || type == 2));
}

FUNCTION(nvmlDeviceGetDefaultApplicationsClock, Device d, unsigned type, unsigned *ret) {
        BEGIN("nvmlDeviceGetDefaultApplicationsClock", gpu_of(d), NULL);
        *ret = type == 0 ? f.graphics[0] : f.memory[0];
        END(application_clocks(&f, type == 0 || type == 2));
}

FUNCTION(nvmlDeviceSetApplicationsClocks, Device d, unsigned memory, unsigned graphics) {
        BEGIN("nvmlDeviceSetApplicationsClocks", gpu_of(d), NULL);
        f.gpus[gpu_of(d)].memory = memory;
        f.gpus[gpu_of(d)].graphics = graphics;
        END(application_clocks(&f, true));
}

FUNCTION(nvmlDeviceResetApplicationsClocks, Device d) {
        BEGIN("nvmlDeviceResetApplicationsClocks", gpu_of(d), NULL);
        f.gpus[gpu_of(d)].memory = f.memory[0];
        f.gpus[gpu_of(d)].graphics = f.graphics[0];
        END(application_clocks(&f, true));
}

/* ---- health ---- */

typedef struct FieldValue {
        unsigned field, scope;
        long long timestamp, latency;
        unsigned type, code;
        union { double d; unsigned u; unsigned long long ull; } value;
} FieldValue;
FUNCTION(nvmlDeviceGetFieldValues, Device d, int n, FieldValue *values) {
        BEGIN("nvmlDeviceGetFieldValues", gpu_of(d), NULL);
        for (int i = 0; i < n; i++) {
                bool known = values[i].field == 230 && !f.no_recovery;
                values[i].code = known ? OK : NOT_SUPPORTED;
                const Gpu *g = &f.gpus[gpu_of(d)];
                values[i].type = g->recovery_type;
                values[i].value.ull = ~0ULL;    /* an unset member is not zero */
                if (known && g->recovery_type == 1)
                        values[i].value.u = g->recovery;
                else if (known && g->recovery_type <= 3)
                        values[i].value.ull = g->recovery;
                else if (known)
                        values[i].value.d = g->recovery;
        }
        END(n > 0 ? OK : INVALID_ARGUMENT);
}

static bool has_pages(const Fake *f) {
        return strcmp(f->model->name, "t4") == 0;
}

FUNCTION(nvmlDeviceGetRemappedRows, Device d, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
         unsigned *failed) {
        BEGIN("nvmlDeviceGetRemappedRows", gpu_of(d), NULL);
        const Gpu *g = &f.gpus[gpu_of(d)];
        *corrected = 0;
        *uncorrected = g->pending_rows + g->failed_rows;
        *pending = g->pending_rows;
        *failed = g->failed_rows;
        END(has_pages(&f) || g->current ? NOT_SUPPORTED : OK);
}

FUNCTION(nvmlDeviceGetRetiredPagesPendingStatus, Device d, unsigned *ret) {
        BEGIN("nvmlDeviceGetRetiredPagesPendingStatus", gpu_of(d), NULL);
        *ret = f.gpus[gpu_of(d)].pages;
        END(has_pages(&f) ? OK : NOT_SUPPORTED);
}

FUNCTION(nvmlDeviceGetTotalEccErrors, Device d, unsigned type, unsigned counter, unsigned long long *ret) {
        BEGIN("nvmlDeviceGetTotalEccErrors", gpu_of(d), NULL);
        *ret = type == 1 && counter == 0 ? f.gpus[gpu_of(d)].ecc : 1234;        /* corrected ones happen */
        END(OK);
}

FUNCTION(nvmlDeviceGetNvLinkState, Device d, unsigned link, unsigned *ret) {
        unsigned n = 0;
        BEGIN("nvmlDeviceGetNvLinkState", gpu_of(d), &n);
        const Gpu *g = &f.gpus[gpu_of(d)];
        bool down = (g->links_down >> link & 1) && (g->links_times == 0 || n <= g->links_times);
        struct stat st;
        bool trained = !*f.links_need || stat(f.links_need, &st) == 0;
        if (f.model->nvlinks == 0)
                END(NOT_SUPPORTED);
        if (link >= f.model->nvlinks)
                END(INVALID_ARGUMENT);
        *ret = trained && !down && !(f.model->ampere && g->current);
        END(OK);
}

FUNCTION(nvmlDeviceGetNvLinkErrorCounter, Device d, unsigned link, unsigned counter, unsigned long long *ret) {
        BEGIN("nvmlDeviceGetNvLinkErrorCounter", gpu_of(d), NULL);
        if (link >= f.model->nvlinks)
                END(INVALID_ARGUMENT);
        *ret = counter == 1 ? f.gpus[gpu_of(d)].recoveries : 1234;      /* replays happen */
        END(OK);
}

static unsigned give_reasons(Fake *f, unsigned gpu, unsigned n, unsigned long long *ret) {
        const Gpu *g = &f->gpus[gpu];
        *ret = 1 | (g->reasons_times == 0 || n <= g->reasons_times ? g->reasons : 0);   /* idle, too */
        return OK;
}

FUNCTION(nvmlDeviceGetCurrentClocksEventReasons, Device d, unsigned long long *ret) {
        unsigned n = 0;
        BEGIN("nvmlDeviceGetCurrentClocksEventReasons", gpu_of(d), &n);
        END(give_reasons(&f, (unsigned)gpu_of(d), n, ret));
}

FUNCTION(nvmlDeviceGetCurrentClocksThrottleReasons, Device d, unsigned long long *ret) {
        unsigned n = 0;
        BEGIN("nvmlDeviceGetCurrentClocksThrottleReasons", gpu_of(d), &n);
        END(give_reasons(&f, (unsigned)gpu_of(d), n, ret));
}

/* ---- licences ---- */

typedef struct Features {
        int supported;
        unsigned n;
        struct {
                unsigned code, licensed;
                char info[128], product[128];
                unsigned enabled, year;
                unsigned short date[5];
                unsigned char status;
        } items[3];
} Features;
/* Of a part of a GPU: the feature of a virtual GPU and of a workstation (1, 2 in
 * nvmlGridLicenseFeatureCode_t). */
FUNCTION(nvmlDeviceGetGridLicensableFeatures_v4, Device d, Features *ret) {
        BEGIN("nvmlDeviceGetGridLicensableFeatures", gpu_of(d), NULL);
        *ret = (Features){};
        if (!*f.license)
                END(OK);
        ret->supported = 1;
        ret->n = 2;
        ret->items[0].code = 1;
        ret->items[1].code = 2;
        ret->items[1].enabled = 1;
        ret->items[1].licensed = access(f.license, F_OK) == 0;
        snprintf(ret->items[1].product, sizeof ret->items[1].product, "NVIDIA %s", f.product);
        END(OK);
}
