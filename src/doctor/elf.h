/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What an ELF file says of itself, as far as it decides whether it can run here: elf(5), "System V ABI,
 * gABI" (refspecs.linuxfoundation.org/elf/gabi4+/contents.html), versions of symbols as in the Linux Standard
 * Base (refspecs.linuxfoundation.org/LSB_5.0.0/LSB-Core-generic/LSB-Core-generic/symversion.html). The file
 * may be anybody's: no size or offset of it is believed, and it is read in pieces of a limited number. */
#include "base/macro.h"

#define ELF_X86_64  62u                 /* EM_X86_64, EM_AARCH64 */
#define ELF_AARCH64 183u

/* A version of symbols, and the library that has to define it. */
typedef struct ElfVersion { char *name, *library; } ElfVersion;         /* "GLIBC_2.38", "libc.so.6" */

typedef struct Elf {
        bool wide;              /* of 64 bits */
        unsigned machine;       /* e_machine */
        char *interpreter;      /* what loads it: "/lib64/ld-linux-x86-64.so.2"; NULL: it is static, or a
                                 * library */
        char *soname;           /* or NULL */
        char **needed;          /* "libc.so.6" */
        char **search;          /* of DT_RUNPATH, else DT_RPATH: directories, $ORIGIN still in them */
        ElfVersion *wants;      /* of DT_VERNEED, without those that are weak */
        size_t n_wants;
        char **defines;         /* of DT_VERDEF; NULL: it has no versions, and ld.so(8) then asks for none */
} Elf;
/* -ENOEXEC: no ELF file; -EBADMSG: one that says of itself what cannot be. Of files of 32 bits or of the
 * other byte order there is the machine and no more. */
_must_check_ _nonnull_ int elf_read(int fd, Elf *ret);
_nonnull_ void elf_done(Elf *e);
/* The content of the first section of that name, a NUL behind it; -ENOENT: there is none; -EFBIG: it is
 * longer than limit. The caller's. */
_must_check_ _nonnull_ int elf_section(int fd, const char *name, size_t limit, char **ret, size_t *ret_size);
/* "x86_64", "aarch64", or "machine 243 of elf(5)"; the caller's. */
_malloc_ char *elf_machine_text(unsigned machine);
