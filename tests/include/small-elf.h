/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Small ELF files of 64 bits, for tests of what reads them: one segment that is the whole file, a dynamic section,
 * .modinfo. They say what they need and hold no code. */
#include "base/str.h"
#include <elf.h>

typedef struct ElfSpec {
        unsigned machine;               /* 0: this one's x86_64 */
        const char *interpreter, *soname, *runpath;
        const char *needed[4];
        const char *wants[3], *defines[4];              /* versions of symbols; "?": a weak one. They want them of the first of needed */
        const char *info; size_t info_size;     /* .modinfo */
        const char *strings; size_t strings_size;       /* at its end */
} ElfSpec;

static inline uint64_t elf_string(Text *strings, const char *text) {
        size_t at = strings->size;
        text_add_bytes(strings, text, strlen(text) + 1);
        return at;
}

/* The file; the caller's. */
_unused_ static char *elf_make(const ElfSpec *s, size_t *ret_size) {
        static const char names[] = "\0.modinfo\0.shstrtab";
        Text strings = {}, file = {};
        Elf64_Dyn dynamic[12] = {};
        struct { Elf64_Verneed need; Elf64_Vernaux versions[3]; } wants = { .need = { .vn_version = 1, .vn_aux = sizeof wants.need } };
        struct { Elf64_Verdef definition; Elf64_Verdaux name; } defines[4] = {};
        Elf64_Phdr segments[3] = {};
        size_t n = 0, p = 1;
        text_add_bytes(&strings, "", 1);
        for (size_t i = 0; i < 4 && s->needed[i]; i++)
                dynamic[n++] = (Elf64_Dyn){ .d_tag = DT_NEEDED, .d_un.d_val = elf_string(&strings, s->needed[i]) };
        if (s->soname)
                dynamic[n++] = (Elf64_Dyn){ .d_tag = DT_SONAME, .d_un.d_val = elf_string(&strings, s->soname) };
        if (s->runpath)
                dynamic[n++] = (Elf64_Dyn){ .d_tag = DT_RUNPATH, .d_un.d_val = elf_string(&strings, s->runpath) };
        for (size_t i = 0; i < 3 && s->wants[i]; i++) {
                bool weak = *s->wants[i] == '?';
                wants.versions[i] = (Elf64_Vernaux){ .vna_flags = weak ? VER_FLG_WEAK : 0,
                                                     .vna_name = (Elf64_Word)elf_string(&strings, s->wants[i] + weak) };
                if (i > 0)
                        wants.versions[i - 1].vna_next = sizeof *wants.versions;
                wants.need.vn_file = (Elf64_Word)dynamic[0].d_un.d_val;
                wants.need.vn_cnt++;
        }
        for (size_t i = 0; i < 4 && s->defines[i]; i++) {
                defines[i].definition = (Elf64_Verdef){ .vd_version = 1, .vd_ndx = (Elf64_Half)(i + 1), .vd_cnt = 1,
                                                        .vd_aux = sizeof defines->definition };
                defines[i].name.vda_name = (Elf64_Word)elf_string(&strings, s->defines[i]);
                if (i > 0)
                        defines[i - 1].definition.vd_next = sizeof *defines;
        }
        size_t at_dynamic = sizeof(Elf64_Ehdr) + sizeof segments, at_wants = at_dynamic + sizeof dynamic,
               at_defines = at_wants + sizeof wants, at_strings = at_defines + sizeof defines;
        if (s->wants[0])
                dynamic[n++] = (Elf64_Dyn){ .d_tag = DT_VERNEED, .d_un.d_val = at_wants };
        if (s->defines[0])
                dynamic[n++] = (Elf64_Dyn){ .d_tag = DT_VERDEF, .d_un.d_val = at_defines };
        dynamic[n++] = (Elf64_Dyn){ .d_tag = DT_STRTAB, .d_un.d_val = at_strings };
        dynamic[n++] = (Elf64_Dyn){ .d_tag = DT_STRSZ, .d_un.d_val = strings.size };
        size_t at_interpreter = at_strings + strings.size;
        text_add_bytes(&strings, s->interpreter ?: "", strlen(s->interpreter ?: "") + 1);
        size_t at_info = at_strings + strings.size, at_names = at_info + s->info_size,
               at_sections = at_names + sizeof names, size = at_sections + 3 * sizeof(Elf64_Shdr);
        segments[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_filesz = size, .p_memsz = size };
        if (s->interpreter)
                segments[p++] = (Elf64_Phdr){ .p_type = PT_INTERP, .p_offset = at_interpreter };
        if (n > 2)
                segments[p++] = (Elf64_Phdr){ .p_type = PT_DYNAMIC, .p_offset = at_dynamic, .p_filesz = sizeof dynamic };
        Elf64_Shdr sections[3] = {
                {},
                { .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = at_info, .sh_size = s->info_size },
                { .sh_name = 10, .sh_type = SHT_STRTAB, .sh_offset = at_names, .sh_size = sizeof names },
        };
        const Elf64_Ehdr header = {
                .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
                .e_type = ET_DYN, .e_machine = (Elf64_Half)(s->machine ?: EM_X86_64), .e_version = EV_CURRENT,
                .e_ehsize = sizeof header, .e_phoff = sizeof header, .e_phentsize = sizeof *segments,
                .e_phnum = (Elf64_Half)p, .e_shoff = at_sections, .e_shentsize = sizeof *sections,
                .e_shnum = s->info ? 3 : 0, .e_shstrndx = 2,
        };
        text_add_bytes(&file, &header, sizeof header);
        text_add_bytes(&file, segments, sizeof segments);
        text_add_bytes(&file, dynamic, sizeof dynamic);
        text_add_bytes(&file, &wants, sizeof wants);
        text_add_bytes(&file, defines, sizeof defines);
        text_add_bytes(&file, strings.data, strings.size);
        text_add_bytes(&file, s->info ?: "", s->info_size);
        text_add_bytes(&file, names, sizeof names);
        text_add_bytes(&file, sections, sizeof sections);
        text_add_bytes(&file, s->strings ?: "", s->strings_size);
        text_done(&strings);
        *ret_size = file.size;
        return text_take(&file);
}
