/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* ELF headers that decide if a file can run: elf(5), "System V ABI, gABI"
 * (refspecs.linuxfoundation.org/elf/gabi4+/contents.html), Linux Standard Base
 * (refspecs.linuxfoundation.org/LSB_5.0.0/LSB-Core-generic/LSB-Core-generic/symversion.html). The file may
 * be hostile: sizes and offsets are checked. */
#include "base/macro.h"

#define ELF_X86_64  62u                 /* EM_X86_64, EM_AARCH64 */
#define ELF_AARCH64 183u

/* A symbol version, and the library that must define it. */
typedef struct ElfVersion { char *name, *library; } ElfVersion;         /* "GLIBC_2.38", "libc.so.6" */

typedef struct Elf {
        bool wide;              /* of 64 bits */
        unsigned machine;       /* e_machine */
        char *interpreter;      /* "/lib64/ld-linux-x86-64.so.2"; NULL: static, or a library */
        char *soname;           /* or NULL */
        char **needed;          /* "libc.so.6" */
        char **search;          /* of DT_RUNPATH, else DT_RPATH, with $ORIGIN */
        ElfVersion *wants;      /* of DT_VERNEED, without weak ones */
        size_t n_wants;
        char **defines;         /* of DT_VERDEF; NULL: no versions */
} Elf;
/* -ENOEXEC: not an ELF file; -EBADMSG: damaged. A 32-bit or foreign-endian file gets only a machine. */
_must_check_ _nonnull_ int elf_read(int fd, Elf *ret);
_nonnull_ void elf_done(Elf *e);
/* The first section of that name, with a NUL after it. -ENOENT: none; -EFBIG: longer than limit. The caller
 * frees it. */
_must_check_ _nonnull_ int elf_section(int fd, const char *name, size_t limit, char **ret, size_t *ret_size);
/* "x86_64", "aarch64", "machine 243 of elf(5)"; the caller frees it. */
_malloc_ char *elf_machine_text(unsigned machine);
