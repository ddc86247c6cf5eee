/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The computations of nodestrap-prove on a GPU (kernels.ptx), and the same in C. */
#include "base/macro.h"

/* kernels.ptx with a NUL after it, for cuModuleLoadDataEx(). Grids and blocks have one dimension. Its entry
 * points:
 *   ns_fill(u64 base, u64 words, u64 salt)
 *     writes prove_pattern(i, salt) to word i, of 64 bits, for all i < words.
 *   ns_verify(u64 base, u64 words, u64 salt, u64 result)
 *     compares them with it. result: three words, which the caller sets to 0, UINT64_MAX and 0. The kernel
 *     adds the number of wrong words to the first and lowers the second to the smallest wrong i. In the third
 *     it sets each bit that was wrong anywhere.
 *   ns_product(u64 out, u32 rounds, u32 seed)
 *     each warp ADDS its checksum, prove_expected(warp, rounds, seed), to out[warp]: set that to 0 first. A
 *     block has a multiple of 32 threads. Number of a warp: (block * threads of a block + thread) / 32. */
extern const char prove_ptx[];

/* Each i has its own value. Filling with salt, then ~salt, sets each bit to both 0 and 1. */
uint64_t prove_pattern(uint64_t i, uint64_t salt);

/* Warps with the same number modulo this compute the same. */
#define PROVE_KINDS 8
/* 8192 multiplications a round. */
uint64_t prove_expected(uint32_t warp, uint32_t rounds, uint32_t seed);
