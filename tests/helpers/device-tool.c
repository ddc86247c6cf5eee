/* SPDX-License-Identifier: Apache-2.0
 * usage: device-tool [ROOT]
 *
 * Prints what our readers see of the NVIDIA GPUs of this machine, a line `GPU KEY VALUE` each. GPU is a PCI address as in sysfs, or "-"
 * for the machine. A value that the driver does not give is the sentence of its code, in brackets. It only reads. tests/oracles/device.py
 * compares the lines with nvidia-smi. */
#include "base/str.h"
#include "health/health.h"
#include "nvidia/nvml.h"

#include <inttypes.h>
#include <stdio.h>

#define LINKS 18U       /* of a GPU on NVLink 4 and 5, the most */

_printf_(4, 5) static void say(const char *gpu, const char *key, int code, const char *format, ...) {
        va_list ap;
        printf("%s %s ", gpu, key);
        if (code != NVML_OK) {
                _free_ char *why = nvml_text(code);
                printf("[%s]\n", why);
                return;
        }
        va_start(ap, format);
        vprintf(format, ap);
        va_end(ap);
        putchar('\n');
}

static const char *yes(bool b) {
        return b ? "yes" : "no";
}

static void tell_fabric(const NvmlGpu *g) {
        NvmlFabric f = {};
        int code = nvml_fabric(g->device, &f);
        say(g->address, "fabric-state", code, "%s", nvml_fabric_state_to_string(f.state) ?: "unknown");
        if (code != NVML_OK || f.state != NVML_FABRIC_COMPLETED)
                return;
        say(g->address, "fabric-status", NVML_OK, "%d", f.status);
        say(g->address, "fabric-clique", NVML_OK, "%u", f.clique);
        printf("%s fabric-uuid ", g->address);
        for (size_t i = 0; i < sizeof f.uuid; i++)
                printf("%02x", f.uuid[i]);
        printf("\n%s fabric-health 0x%x\n%s fabric-summary %u\n", g->address, f.health, g->address, f.summary);
}

static void tell_links(const NvmlGpu *g) {
        unsigned up = 0;
        int code = NVML_OK;
        for (unsigned link = 0; link < LINKS && code == NVML_OK; link++) {
                bool is_up = false;
                code = nvml_link_is_up(g->device, link, &is_up);
                up += is_up;
                if (code != NVML_OK && link > 0) {     /* the GPU has no more */
                        code = NVML_OK;
                        break;
                }
        }
        say(g->address, "links-up", code, "%u", up);
}

static void tell_clocks(const NvmlGpu *g) {
        static const struct { const char *key; int (*ask)(NvmlDevice, unsigned *, unsigned *); } clocks[] = {
                { "clocks-highest", nvml_highest_clocks },
                { "clocks-applications", nvml_application_clocks },
                { "clocks-default", nvml_default_clocks },
        };
        for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
                unsigned memory = 0, graphics = 0;
                int code = clocks[i].ask(g->device, &memory, &graphics);
                say(g->address, clocks[i].key, code, "%u,%u", memory, graphics);
        }
        uint64_t reasons = 0;
        int code = nvml_clock_reasons(g->device, &reasons);
        say(g->address, "clock-reasons", code, "0x%" PRIx64, reasons);
}

static void tell_gpu(const NvmlGpu *g) {
        NvmlUuid uuid = {};
        bool a = false, b = false;
        unsigned action = 0;
        uint64_t errors = 0;
        int code = nvml_uuid(g->device, &uuid);
        say(g->address, "uuid", code, "%s", uuid.text);
        tell_fabric(g);
        code = nvml_mig_mode(g->device, &a, &b);
        say(g->address, "mig", code, "%s,%s", yes(a), yes(b));
        code = nvml_persistence(g->device, &a);
        say(g->address, "persistence", code, "%s", yes(a));
        code = nvml_recovery(g->device, &action);
        say(g->address, "recovery", code, "%u", action);
        code = nvml_remapped_rows(g->device, &a, &b);
        say(g->address, "rows", code, "%s,%s", yes(a), yes(b));
        code = nvml_retired_pages(g->device, &a);
        say(g->address, "pages", code, "%s", yes(a));
        code = nvml_uncorrected_errors(g->device, &errors);
        say(g->address, "ecc-uncorrected", code, "%" PRIu64, errors);
        tell_links(g);
        tell_clocks(g);
}

int main(int argc, char **argv) {
        _cleanup_(root_freep) Root *root = NULL;
        _cleanup_(nvml_trouble_done) NvmlTrouble trouble = {};
        NvmlGpus gpus = {};
        Findings findings = {};
        if (argc > 2 || root_new(argc > 1 ? argv[1] : "/", &root) < 0)
                return 2;
        if (nvml_open(&gpus, &trouble) < 0) {
                fprintf(stderr, "device-tool: libnvidia-ml.so.1: %s\n", trouble.text);
                return 1;
        }
        _strv_ char **addresses = NULL;
        for (size_t i = 0; i < gpus.n; i++) {
                tell_gpu(gpus.items + i);
                strv_add(&addresses, gpus.items[i].address);
                printf("%s pci-id 0x%08x\n", gpus.items[i].address, pci_id_at(root, gpus.items[i].address));
        }
        health_pcie(root, "GPU", addresses, &findings);
        health_kernel_log(root, addresses, &findings);
        _free_ char *gpudirect = health_gpudirect(root, false, false, false, &findings);
        printf("- gpudirect %s\n", gpudirect);
        for (size_t i = 0; i < findings.n; i++)
                printf("%s finding %s: %s\n", findings.items[i].address[0] ? findings.items[i].address : "-", findings.items[i].word,
                       findings.items[i].text);
        findings_done(&findings);
        nvml_close(&gpus);
        return 0;
}
