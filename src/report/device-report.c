/* SPDX-License-Identifier: Apache-2.0
 * Results (Result.found) about GPUs and huge pages → "accelerator" and "hugepages" of status.json, with all
 * about each GPU in one place. From there come the texts for people. */
#include "report/status.h"

#include "apply/apply.h"
#include "base/json.h"

static json_t *gpu_of(json_t *gpus, json_int_t index) {
        json_t *gpu;
        size_t i;
        json_array_foreach(gpus, i, gpu) {
                if (json_integer_value(json_object_get(gpu, "index")) == index)
                        return gpu;
        }
        gpu = json_pack("{s:I}", "index", index);
        json_array_append_new(gpus, gpu);
        return gpu;
}

static void gpus_merge(json_t *accelerator, const json_t *found) {
        const json_t *list = json_object_get(found, "gpus"), *one;
        json_t *gpus = json_object_get(accelerator, "gpus");
        size_t i;
        if (!json_is_array(list))
                return;
        if (!gpus) {
                gpus = json_array();
                json_object_set_new(accelerator, "gpus", gpus);
        }
        json_array_foreach(list, i, one) {
                json_object_update(gpu_of(gpus, json_integer_value(json_object_get(one, "index"))),
                                   (json_t *)one);
        }
}

static void states_count(json_t *accelerator) {
        _cleanup_(json_decrefp) json_t *states = json_object();
        json_t *gpu;
        size_t i;
        json_array_foreach(json_object_get(accelerator, "gpus"), i, gpu) {
                const char *state = json_string_value(json_object_get(gpu, "state"));
                if (state)
                        json_object_set_new(
                                states, state,
                                json_integer(json_integer_value(json_object_get(states, state)) + 1));
        }
        if (json_object_size(states) > 0)
                json_object_set(accelerator, "states", states);
}

/* Without the words of each GPU, which gpus_merge() adds. A later check replaces an earlier one even if it
 * failed: a GPU that does not answer is not healthy. */
static void health_take(json_t *accelerator, const json_t *found) {
        json_t *health = json_copy((json_t *)found) ?: json_pack("{sb s[]}", "complete", 0, "findings"), *gpu;
        size_t i;
        json_object_del(health, "gpus");
        json_object_set_new(accelerator, "health", health);
        json_array_foreach(json_object_get(accelerator, "gpus"), i, gpu)
                json_object_del(gpu, "health");
}

/* Replaces the result of an earlier phase. */
static void pages_put(json_t *pages, json_t *found) {
        json_t *one;
        size_t i;
        json_array_foreach(pages, i, one) {
                if (json_equal(json_object_get(one, "size"), json_object_get(found, "size")) &&
                    json_equal(json_object_get(one, "node"), json_object_get(found, "node"))) {
                        json_array_set(pages, i, found);
                        return;
                }
        }
        json_array_append(pages, found);
}

static void action_take(const StatusAction *action, json_t *accelerator, json_t *pages) {
        json_t *found = action->found;
        _free_ char *name = xstrndup(action->id, strcspn(action->id, ":"));
        int type = action_type_from_string(name);
        if (type < 0)                   /* of another version of nodestrap */
                return;
        const ActionRow *row = action_row((ActionType)type);
        if (row->reports & REPORTS_HEALTH && outcome_from_string(action->outcome) != OUTCOME_PENDING)
                health_take(accelerator, found);
        if (!json_is_object(found))
                return;
        if (row->reports & REPORTS_PAGES)
                pages_put(pages, found);
        for (const ActionTold *t = row->tells; t && *t->from; t++)
                json_object_set(accelerator, t->to, json_object_get(found, t->from));
        if (row->reports & REPORTS_GPUS)
                gpus_merge(accelerator, found);
}

void found_put(json_t *status, const Status *s) {
        _cleanup_(json_decrefp) json_t *accelerator = json_object(), *pages = json_array();
        for (const StatusRun *run = s->runs; run && run->phases; run++)
                for (const StatusAction *a = run->actions; a && a->id; a++)
                        action_take(a, accelerator, pages);
        states_count(accelerator);
        if (json_object_size(accelerator) > 0)
                json_object_set(status, "accelerator", accelerator);
        if (json_array_size(pages) > 0)
                json_object_set(status, "hugepages", pages);
}

static void put_count(json_t *counts, const char *name, int64_t n) {
        int64_t before = json_integer_value(json_object_get(counts, name));
        if (n > 0)
                json_object_set_new(counts, name, json_integer(before + n));
}

/* "counted" and "efa" come from the PCI bus, "migDevices" from nvidia-smi. If another program divided GPUs,
 * it is unknown which, so only the instances count. */
json_t *status_devices(const Root *root) {
        _cleanup_(status_done) Status s = {};
        if (status_read(root, &s) < 0 || !status_last(&s, "run"))
                return NULL;
        const json_t *a = json_object_get(s.json, "accelerator"), *gpu;
        json_t *devices = json_object();
        int64_t mig = s.accelerator.mig_devices, whole = json_integer_value(json_object_get(a, "counted")),
                divided = 0;
        size_t i;
        json_array_foreach(json_object_get(a, "gpus"), i, gpu)
                divided += json_is_true(json_object_get(gpu, "mig"));
        whole = mig > 0 && divided == 0 ? 0 : whole - divided;
        put_count(devices, mig > 0 ? "nvidia.com/mig-*" : "nvidia.com/gpu", mig + MAX(whole, 0));
        put_count(devices, "vpc.amazonaws.com/efa", json_integer_value(json_object_get(a, "efa")));
        for (const StatusPages *p = s.pages; p && p->size > 0; p++) {
                _free_ char *size = bytes_text((uint64_t)p->size), *name = xasprintf("hugepages-%s", size);
                put_count(devices, name, p->got * p->size);
        }
        return devices;
}

static void accelerator_text(Text *t, const Status *s) {
        const char *driver = s->accelerator.driver, *uuid = s->accelerator.cluster_uuid;
        size_t before = t->size, gpus = 0;
        while (s->accelerator.gpus && s->accelerator.gpus[gpus].address)
                gpus++;
        text_add(t, "GPUs: ");
        if (s->accelerator.listed >= 0)
                text_add(t, "%lld listed, ", (long long)s->accelerator.listed);
        /* 0: NVML gave no answer, so the number is not known */
        else if (gpus > 0)
                text_add(t, "%zu, ", gpus);
        if (s->accelerator.mig_devices > 0)
                text_add(t, "%lld MIG devices, ", (long long)s->accelerator.mig_devices);
        if (*driver)
                text_add(t, "driver %s, ", driver);
        for (const StatusCount *c = s->accelerator.states; c && c->state; c++)
                text_add(t, "%lld in fabric state %s, ", (long long)c->n, c->state);
        if (s->accelerator.clique_id >= 0)
                text_add(t, "clique %s%s%lld, ", uuid, *uuid ? "." : "", (long long)s->accelerator.clique_id);
        bool known = t->data[t->size - 2] == ',';
        t->data[t->size - 2] = '\n';
        t->size = known ? t->size - 1 : before;
        t->data[t->size] = 0;
}

static void health_text(Text *t, const StatusHealth *health) {
        size_t n = 0;
        while (health->findings && health->findings[n].word)
                n++;
        if (n > 0)
                text_add(t, "Health: %zu finding%s\n", n, n == 1 ? "" : "s");
        for (size_t i = 0; i < n; i++)
                text_add(t, "  %s: %s\n", health->findings[i].word, health->findings[i].text);
        if (n == 0 && !health->complete)
                text_add(t, "Health: not known, the GPUs did not answer\n");
        else if (n == 0) {
                text_add(t, "Health: good, checked");
                for (const StatusWord *look = health->looks; look && look->text; look++)
                        text_add(t, "%s %s", look > health->looks ? "," : "", look->text);
                text_add(t, "\n");
        }
        if (*health->gpudirect)
                text_add(t, "GPUDirect: %s\n", health->gpudirect);
}

/* Of the slowest and the fastest GPU, since few differ. */
static void prove_text(Text *t, const StatusHealth *prove, const StatusGpu *gpus) {
        const StatusFinding *f = prove->findings;
        long long tested = 0;
        text_add(t, "Test: %s\n", f && f->word ? "with findings"
                                  : prove->complete ? "passed" : "not complete");
        for (; f && f->word; f++)
                text_add(t, "  %s: %s\n", f->word, f->text);
        for (const StatusGpu *g = gpus; g && g->address; g++)
                tested += g->tested;
        if (tested > 0)
                text_add(t, "  %.1f GiB of GPU memory", (double)tested / (1 << 30));
        for (int i = 0; i < STATUS_RATES && tested > 0; i++) {
                int64_t low = 0, high = 0;
                for (const StatusGpu *g = gpus; g->address; g++)
                        if (g->rates[i] > 0) {
                                low = low > 0 ? MIN(low, g->rates[i]) : g->rates[i];
                                high = MAX(high, g->rates[i]);
                        }
                if (high > 0)
                        text_add(t, ", %s %.4g to %.4g GB/s", status_rates[i], (double)low / 1e9,
                                 (double)high / 1e9);
        }
        text_add(t, "%s", tested > 0 ? "\n" : "");
}

char *found_text(const Status *s) {
        const StatusPages *pages = s->pages;
        Text t = {};
        accelerator_text(&t, s);
        if (s->accelerator.health)
                health_text(&t, s->accelerator.health);
        if (s->accelerator.prove)
                prove_text(&t, s->accelerator.prove, s->accelerator.gpus);
        for (; pages && pages->size > 0; pages++) {
                _free_ char *size = bytes_text((uint64_t)pages->size),
                            *node = number_or_none(pages->node);
                text_add(&t, "%s%lld of %lld (%s%s%s)", pages == s->pages ? "huge pages: " : ", ",
                         (long long)pages->got, (long long)pages->requested, size, *node ? " on node " : "",
                         node);
        }
        text_add(&t, "%s", pages > s->pages ? "\n" : "");
        return text_take(&t);
}
