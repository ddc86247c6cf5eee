/* SPDX-License-Identifier: Apache-2.0
 * Settings that cost GPUs time. Those of the running kernel come from the rows of host/tuning.c, those of an
 * image from the kernel command line in its boot entry. An unreadable setting gives no verdict. */
#include "doctor/look.h"

#include "host/detect.h"
#include "host/host.h"

#include <elf.h>

#define LIMIT "intel_idle.max_cstate=1 processor.max_cstate=1"

/* Is one of these words in the line? "processor.max_cstate=1" */
static bool has_word(const char *line, const char *const *words) {
        for (const char *rest = line; *rest;) {
                _free_ char *word = str_cut(&rest, " \t");
                if (strv_contains((char *const *)words, word))
                        return true;
        }
        return false;
}

static void look_running(Look *l, const Need *need) {
        _cleanup_(tuning_done) HostTuning t = {};
        bool cpus = streq(need->name, TUNED_SETTINGS);
        size_t before = l->checks->n;
        tuning_read(l->root, &t);
        for (size_t i = 0; i < t.n_faults; i++)
                if ((cpus || !t.faults[i].rule->ours) && !startswith(t.faults[i].rule->name, "kernel."))
                        FAULT(l, need, "tuning", t.faults[i].rule->name, "%s", t.faults[i].text);
        if (l->checks->n == before)
                look_well(l, need, "tuning", "running kernel");
}

/* awslabs/amazon-eks-ami#2741: an image lost the limit of templates/al2023/provisioners/limit-c-states.sh. */
static void look_at_line(Look *l, const Need *need) {
        /* intel_idle is for Intel, processor for AMD; each drops the limit that the other lacks */
        static const char *const limits[] = { "intel_idle.max_cstate=0", "intel_idle.max_cstate=1",
                                              "processor.max_cstate=0", "processor.max_cstate=1",
                                              "idle=poll", NULL };
        static const char *const clocks[] = { "clocksource=xen", "clocksource=hpet", "clocksource=acpi_pm",
                                              "clocksource=jiffies", NULL };
        _free_ char *line = image_command_line(l->image);
        size_t before = l->checks->n;
        if (!line)
                return;
        if (streq(need->name, TUNED_SETTINGS) && l->image->machine == EM_X86_64 && !has_word(line, limits))
                FAULT(l, need, "tuning", "no limit on CPU idle states",
                      "the kernel command line has none, so NCCL latency doubles: set "
                      "spec.instance.tuning: gpu, or run grubby --update-kernel ALL --args \"" LIMIT "\"");
        if (has_word(line, clocks))
                FAULT(l, need, "tuning", "clocksource",
                      "the kernel command line names a slow clock source: remove clocksource=");
        if (l->checks->n == before)
                look_well(l, need, "tuning", "kernel command line");
}

void look_tuning(Look *l, const Need *need) {
        if (l->image->running)
                look_running(l, need);
        else
                look_at_line(l, need);
        if (unit_is_on(l->root, "irqbalance.service"))
                checks_add(l->checks, CHECK_OK, "tuning", "irqbalance.service",
                           "enabled: nodestrap leaves the placement of interrupts to it");
}
