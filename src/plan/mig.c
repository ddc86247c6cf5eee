/* SPDX-License-Identifier: Apache-2.0 */
/* MIG: the instances of each GPU and their order. An instance takes adjacent memory slices at one of a few
 * places, and compute slices. Where the places are documented, a misfit is refused here; else the driver
 * decides. Large ones come first: on A100 a 3g after smaller ones finds no place (MIG user guide). */
#include "plan/devices.h"
#include "base/str.h"
#include <errno.h>

#define PATH         NVIDIA_PATH ".mig"
#define MOST         16                 /* instances of one GPU to try; the largest GPUs hold eight */

/* profile NULL: not in the table */
typedef struct Wish { const char *word; const MigProfile *profile; } Wish;
typedef struct Mig {
        const Host *host;
        const char *where;              /* configuration path or file */
        const MigProfile *known; size_t n_known;
        Diag *warnings, *diag;
} Mig;

static const MigProfile *profile_find(const Mig *m, const char *word) {
        uint64_t id = 0;
        bool by_id = parse_u64(word, &id) >= 0;
        return FIND(k, m->known, m->n_known,
                    by_id ? k->id >= 0 && (uint64_t)k->id == id : streq(k->name, word));
}

static bool is_documented(const Mig *m) {
        return m->n_known > 0 && m->known[0].documented;
}

/* "1g.10gb+me.all": a newer driver may have more variants than the table. */
static bool is_variant(const Mig *m, const char *word) {
        _free_ char *plain = xstrndup(word, strcspn(word, "+-"));
        return word[strlen(plain)] && profile_find(m, plain);
}

static int check_known(const Mig *m, const char *word) {
        bool number = strspn(word, "0123456789") == strlen(word);
        Text t = {};
        for (size_t i = 0; i < m->n_known; i++)
                text_add(&t, "%s%s", i > 0 ? ", " : "", m->known[i].name);
        _free_ char *names = text_take(&t);
        if (profile_find(m, word) || m->n_known == 0 || is_variant(m, word) ||
            (number && ANY(k, m->known, m->n_known, k->id < 0)))
                return 0;
        if (is_documented(m))
                return diag_error_at(m->diag, -EINVAL, CAUSE_MIG, NULL, m->where,
                                     "%s is not a profile of this GPU (%s); use one of %s", word,
                                     m->host->gpus.model->name, names);
        diag_warn_at(m->warnings, "mig-profile", NULL, m->where,
                     "%s is not a known profile of this GPU (%s); known profiles: %s. The driver decides at "
                     "boot",
                     word, m->host->gpus.model->name, names);
        return 0;
}

/* "3g.20gb" → 3 and 20 */
static void name_size(const char *word, unsigned *ret_slices, unsigned *ret_memory) {
        const char *dot = strstr(word, "g.");
        *ret_slices = dot ? (unsigned)strtoul(word, NULL, 10) : 0;
        *ret_memory = dot ? (unsigned)strtoul(dot + 2, NULL, 10) : 0;
}

/* Memory before compute: a 1g with two memory slices is harder to place than with one. */
static int compare_wishes(const void *a, const void *b) {
        const Wish *x = a, *y = b;
        unsigned slices[2], memory[2];
        name_size(x->word, &slices[0], &memory[0]);
        name_size(y->word, &slices[1], &memory[1]);
        if (memory[0] != memory[1])
                return memory[0] < memory[1] ? 1 : -1;
        if (slices[0] != slices[1])
                return slices[0] < slices[1] ? 1 : -1;
        return strcmp(y->word, x->word);
}

/* Is there a place for each of wishes[i…] beside what is taken? Tries all, about four per profile. */
static bool places_found(const Wish *wishes, size_t n, size_t i, unsigned taken) {
        if (i == n)
                return true;
        const MigProfile *p = wishes[i].profile;
        unsigned slices = (1u << p->memory) - 1;
        for (unsigned start = 0; start < 8; start++)
                if (p->starts & 1u << start && !(taken & slices << start) &&
                    places_found(wishes, n, i + 1, taken | slices << start))
                        return true;
        return false;
}

static bool fits(const Mig *m, const Wish *wishes, size_t n) {
        unsigned compute = 0;
        for (size_t i = 0; i < n; i++) {
                unsigned same = 0;
                for (size_t k = 0; k < n; k++)
                        same += wishes[k].profile == wishes[i].profile;
                if (same > wishes[i].profile->most)
                        return false;
                compute += wishes[i].profile->compute;
        }
        unsigned most = 0;
        for (size_t i = 0; i < m->n_known; i++)
                most = MAX(most, (unsigned)m->known[i].most);
        return compute <= most && places_found(wishes, n, 0, 0);
}

/* "2 x 3g.20gb, 1g.5gb", of sorted wishes */
static char *wishes_text(const Wish *wishes, size_t n) {
        Text t = {};
        for (size_t i = 0, k; i < n; i = k) {
                const char *name = wishes[i].word;
                for (k = i; k < n && streq(name, wishes[k].word);)
                        k++;
                text_add(&t, "%s", i > 0 ? ", " : "");
                if (k - i > 1)
                        text_add(&t, "%zu x ", k - i);
                text_add(&t, "%s", name);
        }
        return text_take(&t);
}

static int check_fit(const Mig *m, const Wish *wishes, size_t n, const char *gpus) {
        Wish room[MOST];
        size_t held = 0;
        for (size_t i = 0; i < n; i++)
                if (!wishes[i].profile)
                        return 0;       /* only the driver can tell */
        if (n <= MOST && fits(m, wishes, n))
                return 0;
        for (size_t i = 0; i < n && held < MOST; i++) {
                room[held] = wishes[i];
                held += fits(m, room, held + 1);
        }
        _free_ char *all = wishes_text(wishes, n), *some = wishes_text(room, held);
        const char *name = m->host->gpus.model->name;
        if (is_documented(m))
                return diag_error_at(m->diag, -EINVAL, CAUSE_MIG, NULL, m->where,
                                     "%s holds at most %s, not %s (devices: %s)", name, some, all, gpus);
        diag_warn_at(m->warnings, "mig-fit", NULL, m->where,
                     "%s probably holds at most %s, not %s (devices: %s); the driver decides at boot",
                     name, some, all, gpus);
        return 0;
}

static size_t wishes_make(const Mig *m, const MigRequest *request, Wish **ret) {
        size_t n = 0;
        *ret = NULL;
        for (size_t i = 0; i < request->n_profiles; i++) {
                uint64_t count = 0;
                /* the field table has checked it */
                (void)!parse_u64(request->profiles[i].value, &count);
                *ret = xrealloc(*ret, n + count + 1, sizeof **ret);
                const MigProfile *profile = profile_find(m, request->profiles[i].name);
                for (; count > 0; count--)
                        (*ret)[n++] = (Wish){ profile ? profile->name : request->profiles[i].name, profile };
        }
        if (n > 0)
                qsort(*ret, n, sizeof **ret, compare_wishes);
        return n;
}

static char *gpus_text(const MigRequest *request) {
        Text t = {};
        for (size_t i = 0; i < request->n_gpus; i++)
                text_add(&t, "%s%u", i > 0 ? ", " : "", request->gpus[i]);
        if (request->n_gpus == 0)
                text_add(&t, "all");
        return text_take(&t);
}

static int check_request(const Mig *m, const MigRequest *request, const Wish *wishes, size_t n,
                         unsigned gpus) {
        _free_ char *which = gpus_text(request);
        int r = 0;
        for (size_t i = 0; i < request->n_gpus; i++)
                if (request->gpus[i] >= gpus)
                        r = diag_error_at(m->diag, -EINVAL, CAUSE_MIG, NULL, m->where,
                                          "names GPU %u, but this machine has only %u, numbered from 0",
                                          request->gpus[i], gpus);
        for (size_t i = 0; i < request->n_profiles; i++)
                if (check_known(m, request->profiles[i].name) < 0)
                        r = -EINVAL;
        return r < 0 ? r : check_fit(m, wishes, n, which);
}

static int add_request(const Mig *m, const MigRequest *request, unsigned gpus, MigLayout **layouts,
                       size_t *n_layouts, Text *text) {
        _free_ Wish *wishes = NULL;
        size_t n = wishes_make(m, request, &wishes);
        int r = check_request(m, request, wishes, n, gpus);
        if (r < 0)
                return r;
        for (unsigned i = 0; i < (request->n_gpus > 0 ? request->n_gpus : gpus); i++) {
                MigLayout *l = APPEND(*layouts, *n_layouts);
                *l = (MigLayout){ .gpu = request->n_gpus > 0 ? request->gpus[i] : i };
                for (size_t k = 0; k < n; k++)
                        strv_add(&l->profiles, wishes[k].word);
        }
        _free_ char *which = gpus_text(request), *what = wishes_text(wishes, n);
        const char *noun[] = { "", "GPU ", "GPUs " };
        text_add(text, "%s%s%s: %s", text->size > 0 ? "; " : "", noun[MIN(request->n_gpus, 2U)],
                 request->n_gpus > 0 ? which : "all GPUs", n > 0 ? what : "off");
        return 0;
}

static int compare_layouts(const void *a, const void *b) {
        const MigLayout *x = a, *y = b;
        return (x->gpu > y->gpu) - (x->gpu < y->gpu);
}

/* Can these GPUs use MIG? 1: yes, 0: no effect, as for a default file of an image on other machines. */
static int check_machine(const Mig *m, const Config *config, bool file) {
        const GpuModel *model = m->host->gpus.model;
        /* MIG and driver-managed coherent memory exclude each other
         * (NVIDIA/cloud-native-docs:gpu-operator/release-notes.rst). */
        bool driver = gpus_are_coherent(m->host) && config->nvidia.memory != MEMORY_NUMA;
        if (!driver && (!model || *model->mig))
                return 1;
        if (nvidia_mig_is_off(&config->nvidia))
                return 0;
        if (file) {
                diag_warn_at(m->warnings, "no-effect", NULL, m->where, "has no effect here: %s",
                             driver ? "memoryMode is not numa: CDMM excludes MIG"
                                    : "this GPU does not support MIG");
                return 0;
        }
        if (driver)
                return diag_error_at(m->diag, -EINVAL, CAUSE_INVALID, NULL, m->where,
                                     "contradicts memoryMode %s, which here means CDMM: the driver cannot "
                                     "partition coherent memory that it manages itself; set " NVIDIA_PATH
                                     ".memoryMode: numa, or leave MIG out",
                                     config->nvidia.memory == MEMORY_AUTO ? "auto" : "driver");
        return diag_error_at(m->diag, -EINVAL, CAUSE_MIG, NULL, m->where,
                             "this GPU (%s) does not support MIG; remove the key", model->name);
}

/* "19,19,19": profiles of all GPUs */
static MigRequest *request_from_text(const char *text) {
        MigRequest *request = xcalloc(1, sizeof *request);
        for (const char *s = text; *s; s += strspn(s, ", \t")) {
                size_t n = strcspn(s, ", \t");
                if (n > 0)
                        *APPEND(request->profiles, request->n_profiles) =
                                (Variable){ xstrndup(s, n), xstrdup("1") };
                s += n;
        }
        return request;
}

static void request_free(MigRequest *request) {
        for (size_t i = 0; i < request->n_profiles; i++)
                FREE_ALL(request->profiles[i].name, request->profiles[i].value);
        FREE_ALL(request->profiles, request);
}
DEFINE_CLEANUP(MigRequest *, request_free)

int mig_layouts(Plan *plan, const Config *config, const Host *host, unsigned gpus, MigLayout **ret_layouts,
                size_t *ret_n, char **ret_text, Diag *diag) {
        const Nvidia *want = &config->nvidia;
        _cleanup_(request_freep) MigRequest *file =
                want->n_mig == 0 && host->gpus.mig_default ? request_from_text(host->gpus.mig_default) : NULL;
        const MigRequest *requests = file ?: want->mig;
        size_t n = file ? file->n_profiles > 0 : want->n_mig;
        Mig m = {
                .host = host, .where = file ? MIG_DEFAULTS : PATH, .warnings = &plan->warnings, .diag = diag
        };
        _cleanup_(text_done) Text text = {};
        if (n == 0)
                return 0;
        int r = check_machine(&m, config, file != NULL);
        if (r <= 0)
                return r;
        if (host->gpus.model)
                m.known = mig_profiles_of(host->gpus.model->mig, &m.n_known);
        for (size_t i = 0; i < n && r >= 0; i++)
                r = add_request(&m, &requests[i], gpus, ret_layouts, ret_n, &text);
        if (r >= 0 && *ret_n > 1)
                qsort(*ret_layouts, *ret_n, sizeof **ret_layouts, compare_layouts);
        *ret_text = text_take(&text);
        return r;
}
