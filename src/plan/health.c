/* SPDX-License-Identifier: Apache-2.0 */
/* Which health checks a machine with NVIDIA GPUs gets: by class, model and EFA devices. */
#include "plan/devices.h"
#include "base/str.h"
#include "health/health.h"

/* NVLinks lead to switches, or from GPU to GPU on a board. Links to GPUs of other instances are down, so all
 * eight must be here. Without fabric manager on this host the links may be down, too. */
static unsigned nvlinks_of(const Stack *s) {
        const GpuModel *m = s->host->gpus.model;
        if (!m || (s->switches && !s->manager))
                return 0;
        bool board = s->class != GPU_CLASS_SINGLE || (m->board == GPU_CLASS_NONE && s->gpus == 8);
        return board ? m->nvlinks : 0;
}

/* "fabric, recovery, memory, nvlink x 18, …" */
static void describe(const Stack *s, Action *a) {
        Text with = {};
        for (char **look = a->device.parameters; *look; look++) {
                text_add(&with, "%s%s", with.size > 0 ? ", " : "", *look);
                if (streq(*look, health_look_to_string(HEALTH_LOOK_NVLINK)))
                        text_add(&with, " x %u", a->device.nvlinks);
        }
        a->with = text_take(&with);
        static const char *const why[] = {
                [HEALTH_WARN] = "check hardware; fail only if unusable",
                [HEALTH_REQUIRE] = "check the hardware; a fault fails this step",
                [HEALTH_OFF] = "check what gpuDirect requires",
        };
        RENEW(a->why, xstrdup(why[s->want->health]));
}

void stack_fill_prove(Stack *s, Action *a) {
        a->device.count = s->gpus;
        a->device.nvlinks = nvlinks_of(s);
        a->device.bandwidth = s->host->gpus.model ? s->host->gpus.model->bandwidth : 0;
        a->lenient = s->want->health != HEALTH_REQUIRE;
        a->deadline_usec = s->want->prove_timeout_usec / USEC_PER_SEC * USEC_PER_SEC +
                           PROVE_MORE_SEC * USEC_PER_SEC;
        a->with = xstrdup(a->device.nvlinks > 0 ? "quick, with links" : "quick");
}

void stack_fill_health(Stack *s, Action *a) {
        a->device.count = s->gpus;
        a->device.nvlinks = nvlinks_of(s);
        a->lenient = s->want->health != HEALTH_REQUIRE;
        devices_seen(a, s->host, pci_is_gpu);
        for (size_t i = 0; s->efa && i < s->host->n_pci && !s->host->modelled; i++)
                if (pci_is_efa(&s->host->pci[i]))
                        strv_add(&a->device.efa, s->host->pci[i].address);
        const bool skipped[_HEALTH_LOOK_MAX] = {
                [HEALTH_LOOK_FABRIC] = !s->registers,
                [HEALTH_LOOK_NVLINK] = a->device.nvlinks == 0,
                [HEALTH_LOOK_EFA] = !s->efa,
                [HEALTH_LOOK_GPUDIRECT] = s->want->gpu_direct != GPU_DIRECT_AUTO ||
                                          (!s->efa && !(s->host->type && s->host->type->max_efa > 0)),
                [HEALTH_LOOK_GPUDIRECT_REQUIRED] = s->want->gpu_direct != GPU_DIRECT_ON,
                [HEALTH_LOOK_REPAIR] = !s->repairs || s->want->health == HEALTH_OFF,
        };
        int first = s->want->health == HEALTH_OFF ? HEALTH_LOOK_GPUDIRECT_REQUIRED : 0;
        for (int look = first; look < _HEALTH_LOOK_MAX; look++)
                if (!skipped[look])
                        strv_add(&a->device.parameters, health_look_to_string((HealthLook)look));
        describe(s, a);
        /* Also after their failure: broken hardware may be the cause. */
        static const char *const before[] = { "start-unit:nvidia-fabricmanager.service",
                                              "await-fabric:fabric", "check-efa:efa" };
        for (size_t i = 0; i < ARRAY_SIZE(before); i++)
                if (plan_find(s->plan, before[i]))
                        action_after_any(a, before[i]);
}
