/* SPDX-License-Identifier: Apache-2.0
 * NVIDIA error numbers (Xid) that mean a hardware fault. Meaning and reset as in the catalogue
 * (https://docs.nvidia.com/deploy/xid-errors, "Analyzing Xid Errors with the Xid Catalog"), names as in
 * NVIDIA/open-gpu-kernel-modules:src/common/sdk/nvidia/inc/nverror.h. Errors that a program causes (13, 31,
 * 43, 45, 68 …) are left out. */
#include "health/health.h"

static const Xid xids[] = {
        { 46, true, "the GPU has stopped processing" },
        { 48, false, "an uncorrectable memory error" },
        { 62, true, "a controller inside the GPU has halted" },
        { 63, false, "a memory row awaits remapping" },
        { 64, true, "a memory row cannot be remapped" },
        { 74, false, "an NVLink error" },
        { 79, true, "the GPU has fallen off the bus" },
        { 92, false, "many corrected memory errors" },
        { 94, false, "a memory error that was contained" },
        { 95, true, "a memory error that was not contained" },
        { 109, true, "a context switch timeout" },
        { 110, true, "a security fault" },
        { 119, true, "the GPU system processor (GSP) does not answer" },
        { 120, true, "an error in the GPU system processor (GSP)" },
        { 121, false, "an error on the link to the CPU (C2C)" },
        { 136, true, "an NVLink that could not be trained" },
        { 140, true, "an uncorrectable memory error" },
        { 143, true, "the GPU could not be initialised" },
        { 144, false, "an NVLink error (SAW)" },
        { 145, false, "an NVLink error (RLW)" },
        { 146, false, "an NVLink error (TLW)" },
        { 147, false, "an NVLink error (TREX)" },
        { 148, false, "an NVLink error (NVLPW_CTRL)" },
        { 149, false, "an NVLink error (NETIR)" },
        { 150, false, "an NVLink error (MSE)" },
        { 155, true, "an NVLink error" },
        { 156, true, "a part of the GPU was retired" },
        { 157, false, "a part of the GPU could not be retired" },
        { 158, true, "a fatal GPU timeout" },
        { 167, false, "a fatal PCIe timeout" },
        { 168, false, "less memory than the GPU should have" },
        { 173, false, "a fatal error on the link to the CPU (C2C)" },
};

const Xid *xid_find(unsigned number) {
        return FIND(x, xids, ARRAY_SIZE(xids), x->number == number);
}

/* DU-09883, NVIDIA fabric manager guide, "Non-Fatal NVSwitch SXid Errors": harmless, such as corrected
 * single-bit errors, and 22013, which occurs while links train (NVIDIA/nvtrust#124). */
bool sxid_is_harmless(unsigned number) {
        static const unsigned harmless[] = { 11012, 11021, 11022, 11023, 12021, 12023, 15008,
                                             15011, 19049, 19055, 19057, 19059, 19062, 19065,
                                             19068, 19071, 22013, 24001, 24002, 24003 };
        return ANY(h, harmless, ARRAY_SIZE(harmless), *h == number);
}
