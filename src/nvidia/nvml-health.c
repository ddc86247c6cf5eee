/* SPDX-License-Identifier: Apache-2.0
 * Health functions of libnvidia-ml.so.1. Numbers and layouts: nvml.h (NVIDIA/go-nvml:gen/nvml/nvml.h). */
#include "nvidia/nvml.h"

#include "base/library.h"

#include <pthread.h>

/* NVML_FI_DEV_GET_GPU_RECOVERY_ACTION; NVML_VALUE_TYPE_UNSIGNED_INT, …_LONG, …_LONG_LONG: the driver
 * chooses */
enum { FIELD_RECOVERY = 230, TYPE_UINT = 1, TYPE_ULONG, TYPE_ULLONG };
/* nvmlMemoryErrorType_t, nvmlEccCounterType_t */
enum { ERROR_UNCORRECTED = 1, COUNTER_VOLATILE = 0 };

/* nvmlFieldValue_t */
typedef struct FieldValue {
        unsigned field, scope;
        long long timestamp, latency;
        unsigned type, code;
        union { unsigned u; unsigned long long ull; } value;
} FieldValue;
_Static_assert(sizeof(FieldValue) == 40, "as nvml.h has it");

/* columns as in nvml.c */
#define HEALTH_FUNCTIONS(X)                                                                               \
        X(unsigned, fields, "?nvmlDeviceGetFieldValues", (NvmlDevice device, int n, FieldValue *values))  \
        X(unsigned, rows, "?nvmlDeviceGetRemappedRows",                                                   \
          (NvmlDevice device, unsigned *ret_corrected, unsigned *ret_uncorrected, unsigned *ret_pending,  \
           unsigned *ret_failed))                                                                         \
        X(unsigned, pages, "?nvmlDeviceGetRetiredPagesPendingStatus", (NvmlDevice device, unsigned *ret)) \
        X(unsigned, errors, "?nvmlDeviceGetTotalEccErrors",                                               \
          (NvmlDevice device, unsigned type, unsigned counter, unsigned long long *ret))                  \
        X(unsigned, link, "?nvmlDeviceGetNvLinkState", (NvmlDevice device, unsigned link, unsigned *ret)) \
        X(unsigned, reasons, "?nvmlDeviceGetCurrentClocksEventReasons",                                   \
          (NvmlDevice device, unsigned long long *ret))                                                   \
        X(unsigned, old_reasons, "?nvmlDeviceGetCurrentClocksThrottleReasons",                            \
          (NvmlDevice device, unsigned long long *ret))
#define POINTER(type, member, name, parameters) type(*member) parameters;
#define NAME(type, member, name, parameters) name "\0"
static struct { HEALTH_FUNCTIONS(POINTER) } nvml;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* nvml_open() has loaded the library, and it may lack each of these functions. */
static void load(void) {
        char *why = NULL;
        (void)!library_load("libnvidia-ml.so.1", HEALTH_FUNCTIONS(NAME), NULL, &nvml, &why);
        free(why);
}

#define CALL(member, ...)                                                                               \
        ({                                                                                              \
                (void)pthread_once(&once, load);                                                        \
                nvml.member ? (int)nvml.member(__VA_ARGS__) : NVML_FUNCTION_NOT_FOUND;                  \
        })

int nvml_recovery(NvmlDevice device, unsigned *ret) {
        FieldValue value = { .field = FIELD_RECOVERY };
        int code = CALL(fields, device, 1, &value);
        if (code == NVML_OK)
                code = (int)value.code;
        if (code == NVML_OK && (value.type < TYPE_UINT || value.type > TYPE_ULLONG))
                code = NVML_NOT_SUPPORTED;
        if (code == NVML_OK)
                *ret = value.type == TYPE_UINT ? value.value.u : (unsigned)value.value.ull;
        return code;
}

int nvml_remapped_rows(NvmlDevice device, bool *ret_pending, bool *ret_failed) {
        unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
        int code = CALL(rows, device, &corrected, &uncorrected, &pending, &failed);
        if (code == NVML_OK) {
                *ret_pending = pending;
                *ret_failed = failed;
        }
        return code;
}

int nvml_retired_pages(NvmlDevice device, bool *ret_pending) {
        unsigned pending = 0;
        int code = CALL(pages, device, &pending);
        if (code == NVML_OK)
                *ret_pending = pending == 1;
        return code;
}

int nvml_uncorrected_errors(NvmlDevice device, uint64_t *ret) {
        unsigned long long n = 0;
        int code = CALL(errors, device, ERROR_UNCORRECTED, COUNTER_VOLATILE, &n);
        if (code == NVML_OK)
                *ret = n;
        return code;
}

int nvml_link_is_up(NvmlDevice device, unsigned link, bool *ret) {
        unsigned up = 0;
        int code = CALL(link, device, link, &up);
        if (code == NVML_OK)
                *ret = up == 1;
        return code;
}

/* Drivers before R535 have the old name. */
int nvml_clock_reasons(NvmlDevice device, uint64_t *ret) {
        unsigned long long reasons = 0;
        int code = CALL(reasons, device, &reasons);
        if (code == NVML_FUNCTION_NOT_FOUND)
                code = CALL(old_reasons, device, &reasons);
        if (code == NVML_OK)
                *ret = reasons;
        return code;
}
