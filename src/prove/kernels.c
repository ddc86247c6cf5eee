/* SPDX-License-Identifier: Apache-2.0
 * kernels.ptx in C, and its text. The places of matrix elements in the lanes of a warp: PTX ISA, "Matrix
 * Fragments for mma.m16n8k16 with floating point type"
 * (https://docs.nvidia.com/cuda/parallel-thread-execution/#warp-level-matrix-fragment-mma-16816-float). */
#include "prove/kernels.h"

#include <string.h>

__asm__(".section .rodata\n"
        ".globl prove_ptx\n"
        ".type prove_ptx, %object\n"
        "prove_ptx:\n"
        ".incbin \"src/prove/kernels.ptx\"\n"
        ".byte 0\n"
        ".size prove_ptx, . - prove_ptx\n"
        ".text\n");

#define LANES 32
#define LANE_WORDS 6    /* four with the elements of A, two with those of B */
#define ROWS 16
#define COLUMNS 8
#define DEPTH 16

uint64_t prove_pattern(uint64_t i, uint64_t salt) {
        i *= UINT64_C(0x9e3779b97f4a7c15);
        i = (i ^ i >> 32) * UINT64_C(0xbf58476d1ce4e5b9);
        return i ^ i >> 29 ^ salt;
}

/* The f16 that kernels.ptx makes of these bits, in units of 1/16: sign and top four fraction bits. */
static int small(uint32_t half) {
        int n = 16 + (int)(half >> 6 & 15);
        return half & 0x8000 ? -n : n;
}

/* Start value of a sum, in units of 1/256. */
static int sum_of(uint32_t state) {
        return (512 << 8) + (int)((state & 0x003fffc0) >> 6);
}

static uint32_t float_bits(int sum) {
        float f = (float)sum / 256;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        return bits;
}

/* first: the word of A, and of B, that is the first operand; the others follow cyclically. */
static void multiply(const uint32_t state[LANES][LANE_WORDS], unsigned first, int sums[ROWS][COLUMNS]) {
        int a[ROWS][DEPTH], b[DEPTH][COLUMNS];
        for (unsigned lane = 0; lane < LANES; lane++) {
                unsigned group = lane / 4, pair = lane % 4 * 2;
                for (unsigned e = 0; e < 8; e++) {
                        uint32_t word = state[lane][(e / 2 + first) % 4];
                        unsigned row = group + (e / 2 % 2 ? 8 : 0), k = pair + e % 2 + (e < 4 ? 0 : 8);
                        a[row][k] = small(word >> e % 2 * 16);
                }
                for (unsigned e = 0; e < 4; e++) {
                        uint32_t word = state[lane][4 + (e / 2 + first) % 2];
                        b[pair + e % 2 + (e < 2 ? 0 : 8)][group] = small(word >> e % 2 * 16);
                }
        }
        for (unsigned row = 0; row < ROWS; row++)
                for (unsigned k = 0; k < DEPTH; k++)
                        for (unsigned column = 0; column < COLUMNS; column++)
                                sums[row][column] += a[row][k] * b[k][column];
}

static void round_of(uint32_t state[LANES][LANE_WORDS]) {
        int sums[ROWS][COLUMNS];
        for (unsigned lane = 0; lane < LANES; lane++)
                for (unsigned e = 0; e < 4; e++)
                        sums[lane / 4 + (e < 2 ? 0 : 8)][lane % 4 * 2 + e % 2] = sum_of(state[lane][e]);
        for (unsigned first = 0; first < 4; first++)
                multiply(state, first, sums);
        for (unsigned lane = 0; lane < LANES; lane++)
                for (unsigned word = 0; word < LANE_WORDS; word++) {
                        unsigned e = word < 4 ? word : word - 3;        /* B takes the second and third sum */
                        int sum = sums[lane / 4 + (e < 2 ? 0 : 8)][lane % 4 * 2 + e % 2];
                        state[lane][word] = state[lane][word] * 1664525 + float_bits(sum);
                }
}

uint64_t prove_expected(uint32_t warp, uint32_t rounds, uint32_t seed) {
        uint32_t state[LANES][LANE_WORDS];
        uint64_t all = 0;
        for (unsigned lane = 0; lane < LANES; lane++) {
                uint32_t s = (warp % PROVE_KINDS * LANES + lane + seed) * 0x9e3779b1;
                s = (s ^ s >> 16) * 0x85ebca6b;
                for (unsigned word = 0; word < LANE_WORDS; word++, s = s * 1664525 + 1013904223)
                        state[lane][word] = s;
        }
        for (uint32_t i = 0; i < rounds; i++)
                round_of(state);
        for (unsigned lane = 0; lane < LANES; lane++) {
                uint64_t sum = 0;
                for (unsigned word = 0; word < LANE_WORDS; word++)
                        sum = sum * UINT64_C(0x9e3779b97f4a7c15) + state[lane][word];
                all += sum;
        }
        return all;
}
