/* SPDX-License-Identifier: Apache-2.0
 * Messages of the NVIDIA driver in the kernel log, by their forms in NVIDIA/open-gpu-kernel-modules (OGKM
 * below). Each number counts once per device.
 *
 * A message stays after its cause is gone: the log does not show a reset of a GPU. On A100 the bring-up
 * resets GPUs for MIG. So
 * - if the driver knows the recovery action of a GPU, that counts, not the log (gpu.c);
 * - "GPU recovery action changed … to 0x0 (None)" (Xid 154) clears earlier messages of that GPU;
 * - a message of a driver that was unloaded since is not a failure: the next one initialised the GPUs again.
 *   If that driver could not start a GPU, this is ignored: images try several drivers;
 * - SXid is never a failure: a switch reports fatal link errors at each reset of a GPU. */
#include "health/health.h"

#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define KMSG         "/dev/kmsg"
#define LOG_MAX      (8 << 20)
#define EVENTS_MAX   256
#define RECOVERY_XID 154

typedef struct Event {
        const char *word;
        char address[24]; /* or "" */
        unsigned number, count, life;
        uint64_t first; /* µs since the kernel started */
        bool reset, fatal;
        bool follows; /* the consequence of an error, which an Xid may report with its GPU */
        char what[64];
} Event;

/* life: drivers loaded before; gpu: named in the first line of a message. */
typedef struct Log {
        Event events[EVENTS_MAX];
        size_t n;
        unsigned life;
        uint64_t now;
        char gpu[24];
        char *const *gpus;
} Log;

/* least to most hexadecimal digits, then stop; else NULL. */
static const char *hex_field(const char *s, size_t least, size_t most, char stop, unsigned *ret) {
        size_t n = strspn(s, "0123456789abcdefABCDEF");
        if (n < least || n > most || (stop && s[n] != stop))
                return NULL;
        *ret = 0;
        for (size_t i = 0; i < n; i++) /* strtoul() accepts "0x" */
                *ret = *ret << 4 | (unsigned)hex_digit(s[i]);
        return s + n + (stop != 0);
}

/* "0000:86:00", "00000000:86:00.0", "PCI:0000:…" → as in sysfs. Default function: of the GPU there, or
 * 0. */
static bool parse_address(const Log *l, const char *s, char *to, size_t room) {
        unsigned domain = 0, bus = 0, device = 0, function = 0;
        if (startswith(s, "PCI:"))
                s += strlen("PCI:");
        s = hex_field(s, 4, 8, ':', &domain);
        s = s ? hex_field(s, 2, 2, ':', &bus) : NULL;
        s = s ? hex_field(s, 2, 2, 0, &device) : NULL;
        if (!s)
                return false;
        if (*s == '.' && hex_field(s + 1, 1, 1, 0, &function))
                return snprintf(to, room, "%04x:%02x:%02x.%x", domain, bus, device, function) > 0;
        int n = snprintf(to, room, "%04x:%02x:%02x.0", domain, bus, device);
        for (char *const *gpu = l->gpus; gpu && *gpu; gpu++)
                if (n > 0 && strncmp(*gpu, to, (size_t)n - 1) == 0)
                        snprintf(to, room, "%s", *gpu);
        return true;
}

/* The first address after a word GPU: "NVRM: GPU 0000:86:00.0: …", "The NVIDIA GPU 0000:86:00.0". */
static bool find_gpu(const Log *l, const char *text, char *to, size_t room) {
        for (const char *p = strstr(text, "GPU "); p; p = strstr(p + 1, "GPU ")) {
                const char *at = p + strlen("GPU ");
                if (parse_address(l, startswith(at, "at ") ? at + strlen("at ") : at, to, room))
                        return true;
        }
        return false;
}

static Event *event_at(Log *l, const char *word, const char *address, unsigned number) {
        for (size_t i = 0; i < l->n; i++)
                if (streq(l->events[i].word, word) && streq(l->events[i].address, address) &&
                    l->events[i].number == number)
                        return &l->events[i];
        if (l->n == EVENTS_MAX)
                return NULL;
        Event *e = &l->events[l->n++];
        *e = (Event){ .word = word, .number = number, .first = l->now };
        snprintf(e->address, sizeof e->address, "%s", address);
        return e;
}

static Event *add_event(Log *l, const char *word, const char *address, unsigned number, const char *what) {
        Event *e = event_at(l, word, address, number);
        if (!e)
                return NULL;
        e->count++;
        e->life = l->life;
        snprintf(e->what, sizeof e->what, "%s", what);
        return e;
}

/* OGKM src/nvidia/src/kernel/gpu/gpu.c: "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset
 * Required)". Any but 0 bars new work (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt, "Error Recovery"). */
static void recovery_changed(Log *l, const char *address, const char *text) {
        const char *to = strstr(text, ") to 0x"), *name = NULL;
        unsigned action = 0;
        if (to)
                name = hex_field(to + strlen(") to 0x"), 1, 8, ' ', &action);
        if (!name || *name != '(')
                return;
        for (size_t i = 0; i < l->n && action == 0; i++)
                if (streq(l->events[i].address, address)) {
                        l->events[i].reset = false;
                        if (l->events[i].number == RECOVERY_XID)
                                l->events[i].count = 0;
                } else if (streq(l->events[i].word, "reset-required")) {
                        l->events[i].count = 0;
                }
        if (action == 0)
                return;
        Event *e = add_event(l, "xid", address, RECOVERY_XID, "");
        if (!e)
                return;
        e->reset = true;
        Text shown = {};
        text_add_shown(&shown, name + 1, strcspn(name + 1, ")"), 40, 0);
        snprintf(e->what, sizeof e->what, "recovery action: %s", shown.data ?: "");
        text_done(&shown);
}

/* "NVRM: Xid (PCI:0000:86:00): 79, pid=…", with MIG "Xid (PCI:0000:86:00 GPU-I:05): 94, …" (OGKM
 * kern_gpu_error_cont_ga100.c). Blackwell NVLink has a severity: "149, NETIR_LINK_EVT Fatal XC0 i0 Link 09
 * (0x…)" needs a reset, "Nonfatal" only what Xid 154 then says (leptonai/gpud#1160). */
static void add_xid(Log *l, const char *text) {
        char address[24];
        const char *end = strstr(text, "): ");
        if (!end || !is_digit(end[3]) || !parse_address(l, text + strlen("Xid ("), address, sizeof address))
                return;
        unsigned number = (unsigned)strtoul(end + 3, NULL, 10);
        const Xid *xid = xid_find(number);
        bool graded = number >= 144 && number <= 150;
        if (number == RECOVERY_XID)
                recovery_changed(l, address, end);
        if (!xid || (graded && strstr(end, " Nonfatal ")))
                return;
        Event *e = add_event(l,
                             number == 79                     ? "off-the-bus"
                             : number == 119 || number == 120 ? "gsp-timeout"
                                                              : "xid", address, number, xid->what);
        if (e && (xid->reset || (graded && strstr(end, " Fatal "))))
                e->reset = true;
}

/* OGKM src/common/nvswitch/kernel/inc/common_nvswitch.h: "nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034,
 * Fatal, Link 30 LTSSM"; lines with "Severity 0" or "Data {0x0" continue one. */
static void add_sxid(Log *l, const char *text) {
        char address[24];
        const char *end = strstr(text, "): ");
        if (!end || !is_digit(end[3]) || !parse_address(l, text + strlen("SXid ("), address, sizeof address))
                return;
        unsigned number = (unsigned)strtoul(end + 3, NULL, 10);
        const char *what = end + 3 + strspn(end + 3, "0123456789");
        what += strspn(what, ", ");
        bool fatal = startswith(what, "Fatal");
        if (startswith(what, "Severity ") || startswith(what, "Data {") ||
            (!fatal && sxid_is_harmless(number)))
                return;
        Event *e = add_event(l, "sxid", address, number, "");
        if (e && fatal)
                e->fatal = true;
}

/* Forms without a number. Most name no GPU, or only "GPU0" as the driver counts, so each is a finding of the
 * machine. It is only a warning, since NVML has the recovery action of each GPU. */
static const struct Form { char has[38], also[7], word[15]; bool follows; char what[47]; } forms[] = {
        /* scitix/sichek#51, kubernetes-sigs/dra-driver-nvidia-gpu#982; "Check failed": OGKM#1045 */
        { "[NV_ERR_RESET_REQUIRED]", "", "reset-required", true, "a GPU accepts no work until it is reset" },
        /* OGKM#688, OGKM#1342, openwall/john#5835 */
        { "[NV_ERR_GPU_IS_LOST]", "", "off-the-bus", true, "a GPU no longer answers on the PCI bus" },
        /* OGKM#1342, src/nvidia/src/kernel/rmapi/nv_gpu_ops.c: nvidia_uvm serves no GPU any more */
        { "uvm encountered global fatal error", "", "uvm-error", true, "CUDA memory (UVM) fails until a "
                                                                       "reboot" },
        /* leptonai/gpud#1271, #1272: no NVLink to a peer is found then */
        { "postRxDetLinkMask failed", "", "nvlink-error", false, "it cannot tell which NVLinks are up" },
        { "Failed to update Rx Detect Link mask", "", "nvlink-error", false,
          "it cannot tell which NVLinks are up" },
        { "GSP", "imeout", "gsp-timeout", true, "the GPU system processor (GSP) does not answer" },
        /* OGKM#1080, OGKM#1200: "GSP RM heartbeat timed out", "LibOS heartbeat timed out", "Heartbeat …" */
        { "eartbeat timed out", "", "gsp-timeout", true, "the GPU system processor (GSP) does not answer" },
        /* forums.developer.nvidia.com/t/371272 */
        { "GSP-CrashCat", "", "gsp-timeout", true, "the GPU system processor (GSP) has crashed" },
        /* OGKM#1080, src/nvidia/src/kernel/gpu/rc/kernel_rc_watchdog_callback.c */
        { "GPU is probably locked", "", "gpu-locked", true, "a GPU hangs: it has stopped processing" },
};

/* "NVRM: …" without a number; numbered events replace these. One form quotes a process, which could fake a
 * message: "NVRM: API mismatch: the client 'GSP timeout' has the version …". */
static void add_driver_message(Log *l, const char *text) {
        char address[24] = "";
        if (startswith(text, "NVRM: API mismatch: "))
                return;
        bool named = find_gpu(l, text, address, sizeof address);
        if (named)
                snprintf(l->gpu, sizeof l->gpu, "%s", address);
        if (strstr(text, "fallen off the bus")) {
                /* OGKM osapi.c, at driver start: the address is two lines above */
                Event *e = event_at(l, "off-the-bus", named ? address : l->gpu, 79);
                if (!e)
                        return;
                e->reset = true;
                e->life = l->life;
                e->count = MAX(e->count, 1U);
                snprintf(e->what, sizeof e->what, "%s", xid_find(79)->what);
                return;
        }
        for (const struct Form *form = forms; form < forms + ARRAY_SIZE(forms); form++) {
                if (!strstr(text, form->has) || !strstr(text, form->also))
                        continue;
                Event *e = add_event(l, form->word, address, 0, form->what);
                if (e)
                        e->follows = form->follows;
                return;
        }
        if (named && (strstr(text, "RmInitAdapter failed") || strstr(text, "rm_init_adapter failed")))
                add_event(l, "gpu-init", address, 0, "");
}

/* drivers/base/dd.c: "nvidia: probe of 0000:86:00.0 failed with error -1", since Linux 6.11 "nvidia
 * 0000:86:00.0: probe with driver nvidia failed with error -1" */
static void add_probe(Log *l, const char *text) {
        char address[24];
        const char *of = strstr(text, "probe of ");
        if (strstr(text, " failed with error ") && (of || strstr(text, ": probe with driver nvidia ")) &&
            parse_address(l, of ? of + strlen("probe of ") : text + strlen("nvidia "), address,
                          sizeof address))
                add_event(l, "gpu-init", address, 0, "");
}

static void add_message(Log *l, const char *text) {
        const char *sxid = startswith(text, "nvidia-nvswitch") ? strstr(text, "SXid (") : NULL;
        if (startswith(text, "NVRM: Xid ("))
                add_xid(l, text + strlen("NVRM: "));
        else if (startswith(text, "NVRM: "))
                add_driver_message(l, text);
        else if (sxid)
                add_sxid(l, sxid);
        else if (startswith(text, "nvidia: probe of ") || startswith(text, "nvidia 0"))
                add_probe(l, text);
        else if (startswith(text, "nvidia-nvlink: Nvlink Core is being initialized"))
                l->life++; /* OGKM nvlink_linux.c: the first message of a driver */
}

/* A record escapes a line end as "\x0a". */
static void unescape(char *text) {
        char *to = text;
        for (const char *p = text; *p; p++) {
                int high = p[0] == '\\' && p[1] == 'x' ? hex_digit(p[2]) : -1,
                    low = high < 0 ? -1 : hex_digit(p[3]);
                *to++ = low < 0 ? *p : high * 16 + low > 0 ? (char)(high * 16 + low) : ' ';
                if (low >= 0)
                        p += 3;
        }
        *to = 0;
}

static void add_xid_finding(const Event *e, const char *when, bool unusable, Findings *f) {
        char number[24] = "";
        if (e->number > 0)
                snprintf(number, sizeof number, " (Xid %u)", e->number);
        _free_ char *fact = xasprintf("NVIDIA driver: %s%s, %s", e->what, number, when);
        finding_add(f, e->word, e->address, unusable, "%s. %s%s", fact,
                *e->address ? "" : "The message names no GPU: `nvidia-smi -q` may show it. ",
                unusable ? "Reboot, since the GPU needs a reset before use; replace the instance if it "
                           "happens again"
                         : "Replace the instance if it happens again");
        f->items[f->n - 1].fact = strlen(fact);
        f->items[f->n - 1].xid = e->number;
}

static void add_finding(const Log *l, const Event *e, Findings *f) {
        _free_ char *times = e->count > 1 ? xasprintf("%u times, first at", e->count) : xstrdup("at");
        _free_ char *when =
                xasprintf("%s %llu.%06llu in dmesg%s", times, (unsigned long long)(e->first / 1000000),
                          (unsigned long long)(e->first % 1000000),
                          e->life < l->life ? ", by a driver that was reloaded since" : "");
        bool unusable = e->reset && e->life == l->life;
        if (streq(e->word, "sxid"))
                finding_add(f, e->word, e->address, false,
                            "an NVSwitch reports SXid error %u%s, %s; a reset of a linked GPU may be "
                            "the cause; replace the instance if it happens again",
                            e->number, e->fatal ? ", fatal for a link" : "", when);
        else if (streq(e->word, "gpu-init"))
                finding_add(f, e->word, e->address, false,
                            "the NVIDIA driver could not start this device, %s; see dmesg (NVRM). The driver "
                            "may be too old for it; if the device is broken, replace the instance", when);
        else
                add_xid_finding(e, when, unusable, f);
}

/* Another event covers it, or it does not count any more. */
static bool is_told(const Log *l, const Event *e) {
        if (e->count == 0 || (streq(e->word, "gpu-init") && e->life < l->life))
                return true;
        return e->follows && ANY(event, l->events, l->n,
                                 (event->number > 0 && streq(event->word, e->word)) ||
                                         (event->reset && event->life == e->life &&
                                          (!*e->address || streq(event->address, e->address))));
}

void kernel_log_findings(char *text, size_t size, char *const *gpus, Findings *f) {
        _free_ Log *l = xcalloc(1, sizeof *l);
        l->gpus = gpus;
        for (char *line = text, *end; line < text + size; line = end + 1) {
                end = memchr(line, '\n', (size_t)(text + size - line));
                if (!end)
                        break; /* an incomplete record */
                *end = 0;
                /* "4,1234,12345678,-;message": level and facility (0: the kernel), number, µs, flags */
                char *said = strchr(line, ';'), *at = NULL;
                if (!said || !is_digit(*line) || strtoul(line, &at, 10) > 7 || *at != ',')
                        continue;
                *said++ = 0;
                at = strchr(at + 1, ',');
                l->now = at ? strtoull(at + 1, NULL, 10) : 0;
                unescape(said);
                add_message(l, said);
        }
        for (size_t i = 0; i < l->n; i++)
                if (!is_told(l, &l->events[i]))
                        add_finding(l, &l->events[i], f);
}

/* A read returns one record, or several from a dump of a machine. EPIPE: lost records, read on. */
static void read_records(int fd, Text *text) {
        _free_ char *buffer = xcalloc(1, 64 << 10);
        while (text->size < LOG_MAX) {
                ssize_t n = read(fd, buffer, 64 << 10);
                if (n > 0)
                        text_add_bytes(text, buffer, (size_t)n);
                else if (n == 0 || (errno != EPIPE && errno != EINTR))
                        return; /* EAGAIN: end */
        }
}

void health_kernel_log(const Root *root, char *const *gpus, Findings *f) {
        _cleanup_(close_fd) int fd = root_open(root, KMSG, O_RDONLY | O_NONBLOCK);
        Text text = {};
        if (fd >= 0)
                read_records(fd, &text);
        if (text.size > 0)
                kernel_log_findings(text.data, text.size, gpus, f);
        text_done(&text);
}
