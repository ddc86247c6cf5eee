# SPDX-License-Identifier: Apache-2.0
# make | make deps | make check | make SAN=1 check | make fuzz F=fuzz-toml T=60 | make bench [PEER=NODEADM] | make picture | make install DESTDIR=…
# make CC=aarch64-linux-gnu-gcc (make deps ARCH=arm64 brings what that needs) | make deb [ARCH=arm64] | make rpm [ARCH=arm64] [RELEASE=2]
# make portable [ARCH=arm64] | make portable-image
# make deps-test images | make lint | make check-boot | make check-vm | make check-cluster | make check-arm64 | make package
# make check-everyday | make check-rest [PART=2] (both are what CI runs) | make torture | make test T="tests/unit/test-toml.c tests/boot/no-config.sh" (tests/README.md)
prefix       ?= /usr
bindir       ?= $(prefix)/bin
libexecdir   ?= $(prefix)/libexec
unitdir      ?= $(prefix)/lib/systemd/system
presetdir    ?= $(prefix)/lib/systemd/system-preset
rulesdir     ?= $(prefix)/lib/udev/rules.d
mandir       ?= $(prefix)/share/man
completiondir ?= $(prefix)/share/bash-completion/completions
zshdir       ?= $(prefix)/share/zsh/site-functions
docdir       ?= $(prefix)/share/doc/nodestrap
# In a cross build the other tools share the triplet prefix of the compiler, such as aarch64-linux-gnu-gcc.
TRIPLET      := $(strip $(foreach word,$(notdir $(CC)),$(if $(findstring -linux-gnu-gcc,$(word)),$(firstword $(subst -gcc, ,$(word))))))
ifdef TRIPLET
ifeq ($(origin AR),default)
AR           := $(TRIPLET)-ar
endif
NM           ?= $(TRIPLET)-nm
PKG_CONFIG   ?= $(or $(notdir $(shell command -v $(TRIPLET)-pkg-config)),\
                  PKG_CONFIG_LIBDIR=/usr/lib/$(TRIPLET)/pkgconfig:/usr/share/pkgconfig pkg-config)
endif
NM           ?= nm
PKG_CONFIG   ?= pkg-config
INSTALL      ?= install
CLANG_TIDY   ?= clang-tidy
CPPCHECK     ?= cppcheck
VERSION      ?= $(eval VERSION := $(shell git describe --tags --always --dirty --abbrev=12 2>/dev/null || echo 0))$(VERSION)
# --version prints this too; deb.sh and rpm.sh pass it to packages, since their copy of the tree has no git.
COMMIT       ?= $(eval COMMIT := $(shell git describe --always --exclude='*' --dirty --abbrev=12 2>/dev/null))$(COMMIT)
O            ?= build$(addprefix -,$(patsubst aarch64-linux-gnu,arm64,$(TRIPLET)))$(if $(SAN),-san)
# Small code: the program runs for milliseconds, and at boot the time goes into reading it from a cold disk.
# gcc 11 of Amazon Linux has only -Os.
SMALL         = $(eval SMALL := $(shell $(CC) -Oz -E -x c -o /dev/null /dev/null 2>/dev/null && echo -Oz || echo -Os))$(SMALL)
CFLAGS       ?= $(if $(SAN),-O1,$(SMALL)) -g
PKGS         := jansson yaml-0.1 expat zlib libsystemd libcrypto libcurl blkid mount
# The program loads these only when needed, and does not link them: libcurl with its thirty libraries for TLS (src/base/curl.c), libblkid and
# libmount on nodes with local disks (src/disk/content.c, src/disk/libmount.c).
LINK_PKGS    := $(filter-out libcurl blkid mount,$(PKGS))

WARNINGS     := -Wall -Wextra -Wshadow -Wundef -Wvla -Wpointer-arith -Wwrite-strings -Wmissing-prototypes -Wstrict-prototypes \
                -Wold-style-definition -Wformat=2 -Wimplicit-fallthrough -Wcast-align -Wdate-time -Wno-missing-field-initializers \
                -Werror=return-type -Werror=int-conversion -Werror=implicit-function-declaration \
                -Werror=incompatible-pointer-types $(if $(WERROR),-Werror)
ifeq ($(findstring clang,$(shell $(CC) --version 2>/dev/null)),)     # gcc alone knows these; `make deps` may have to bring it first
GCC_WARNINGS := -Wlogical-op -Wduplicated-cond -Wduplicated-branches
endif
ifdef SAN
SANFLAGS     := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else
CPPFLAGS     ?= -D_FORTIFY_SOURCE=2
endif
HARDENING    := -fstack-protector-strong -fstack-clash-protection -fPIE -fno-common
# Nothing unwinds its own stack; a debugger has .debug_frame. On arm64 gcc keeps frame pointers unless it is told otherwise: 22 kB.
HARDENING    += $(if $(SAN),,-fno-asynchronous-unwind-tables -fno-unwind-tables -fomit-frame-pointer)
# Where the processor can (CET; PAC and BTI), it enforces that returns and indirect jumps land on compiler marks. It does so
# only for a program with marks in all objects, also those of the C library: tests/check/libraries.sh. On x86-64 Debian 12's start files have
# none, so a program linked there is not marked, whatever its own objects have.
PROTECTION    = $(eval MACHINE := $(shell $(CC) -dumpmachine 2>/dev/null))$(eval PROTECTION := $(if $(filter x86_64%,$(MACHINE)),\
                  -fcf-protection,$(if $(filter aarch64%,$(MACHINE)),-mbranch-protection=standard)))$(PROTECTION)
# On arm64 gcc saves 55 kB of code if it sees the whole program; on x86-64 only a fifth of that, and linking takes seconds. Tests use the code
# that each object has besides. The linker calls the compiler, so it needs the flags that make code.
# gcc does not map the directory of a fat object for the assembler.
FAT_MAP      := -Wa,--debug-prefix-map,$(CURDIR)=.
LTO           = $(eval LTO := $(if $(SAN),,$(if $(GCC_WARNINGS),$(if $(filter -mbranch%,$(PROTECTION)),-flto -flto-partition=one -ffat-lto-objects $(FAT_MAP)))))$(LTO)
SECTIONS     := -ffunction-sections -fdata-sections     # so that the linker drops uncalled functions
# Run pkg-config once, but not before the first compilation: `make deps demo` first installs the libraries that it must find.
PKG_LIBS      = $(eval PKG_LIBS := $(shell $(PKG_CONFIG) --libs $(LINK_PKGS)))$(PKG_LIBS)
INCLUDES      = $(eval INCLUDES := -Isrc -Itests/include $(shell $(PKG_CONFIG) --cflags $(PKGS)))$(INCLUDES)
# Same bytes for any path of the tree and any build directory: debug information names neither.
MAPS         := -ffile-prefix-map=$(CURDIR)=. -ffile-prefix-map=$(O)/conf/=conf/
COMPILE       = $(CC) -std=gnu17 -D_GNU_SOURCE -DVERSION='"$(VERSION)"' $(INCLUDES) $(WARNINGS) $(GCC_WARNINGS) $(HARDENING) $(PROTECTION) $(LTO) $(SECTIONS) \
                $(SANFLAGS) $(MAPS) -MMD -MP $(CPPFLAGS) $(CFLAGS)
LINK          = $(CC) -pie -Wl,-z,relro,-z,now,--as-needed,--gc-sections $(or $(WHOLE),-fno-lto) $(SANFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(PKG_LIBS) -ldl $(LDLIBS)

TABLES       := $(patsubst conf/%.csv,$(O)/conf/%.o,$(sort $(wildcard conf/*.csv))) $(O)/conf/ages.o $(O)/conf/schemas.o $(O)/conf/help.o
OBJS         := $(patsubst %.c,$(O)/%.o,$(sort $(wildcard src/*.c src/*/*.c src/*/*/*.c)))
LIB          := $(O)/libnodestrap.a
TESTS        := $(patsubst %.c,$(O)/%,$(sort $(wildcard tests/unit/test-*.c)))
HELPERS      := $(patsubst %.c,$(O)/%,$(sort $(wildcard tests/helpers/*.c)))    # programs that tests/check/*.sh call
FAKES        := $(patsubst %.c,$(O)/%.so.1,$(sort $(wildcard tests/fakes/lib*.c)))      # stand-ins for libraries that this machine lacks
FUZZ         := $(patsubst %.c,$(O)/%,$(sort $(wildcard tests/fuzz/fuzz-*.c)))
ifneq ($(V),1)
Q            := @
say           = @printf '  %-5s %s\n' $(1) $(2);
endif

PROGRAMS     := $(O)/nodestrap $(O)/nodestrap-prove $(O)/nodestrap-read-ahead $(O)/nodestrap-pre-pull
all: $(PROGRAMS)
.PHONY: all demo check check-unit check-plain check-files check-guests check-boot check-vm check-cluster check-arm64 check-everyday check-rest torture test test-programs guest-programs \
        images package deb rpm portable portable-image bench picture check-device fuzz install clean sizes pure lint words valgrind deps deps-test
$(LIB): $(filter-out $(O)/src/main.o $(O)/src/prove/main.o $(O)/src/readahead/main.o $(O)/src/pull/main.o,$(OBJS)) $(TABLES)
	$(Q)rm -f $@ && $(AR) rcsD $@ $^
$(O)/nodestrap: WHOLE = $(if $(LTO),$(HARDENING) $(PROTECTION) $(LTO) $(MAPS))
$(O)/nodestrap: $(O)/src/main.o $(LIB)
$(O)/nodestrap-prove: $(filter $(O)/src/prove/%,$(OBJS))        # a separate process: only this one loads libcuda
$(O)/nodestrap-read-ahead: $(O)/src/readahead/main.o $(LIB)
$(O)/nodestrap-pre-pull: $(O)/src/pull/main.o $(LIB)
$(TESTS) $(HELPERS): %: %.o $(LIB)
$(FUZZ): %: %.o $(O)/tests/fuzz/replay.o $(LIB)
$(PROGRAMS) $(TESTS) $(HELPERS) $(FUZZ):
	$(call say,LD,$@)$(LINK)
$(TESTS): | $(FAKES) $(O)/nodestrap-prove
$(FAKES): $(O)/%.so.1: %.c Makefile
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)$(COMPILE) -MF $@.d -fPIC -fvisibility=hidden -shared -Wl,-soname,$(@F) -o $@ $<
$(O)/tests/fakes/libcuda.so.1: CFLAGS += -O3          # it executes kernels
$(O)/src/prove/kernels.o: src/prove/kernels.ptx       # the assembler includes it, and -MMD does not see that
$(O)/src/commands/help.o: CPPFLAGS += -DCOMMIT='"$(COMMIT)"'
$(O)/%.o: %.c Makefile
	$(Q)mkdir -p $(@D)
	$(call say,CC,$<)$(COMPILE) -c -o $@ $<
$(O)/conf/%.o: $(O)/conf/%.c Makefile
	$(call say,CC,$<)$(COMPILE) -c -o $@ $<
$(O)/conf/%.c: conf/%.csv conf/tables.awk
	$(Q)mkdir -p $(@D)
	$(call say,TABLE,$<)awk -f conf/tables.awk -v table=$* $< >$@.tmp && mv $@.tmp $@
$(O)/conf/ages.c: $(sort $(wildcard conf/*.csv)) conf/tables.awk
	$(Q)mkdir -p $(@D)
	$(call say,TABLE,$@)awk -f conf/tables.awk -v table=ages $(filter %.csv,$^) >$@.tmp && mv $@.tmp $@
# Lines → an array of their bytes, packed as conf/tables.awk packs tables.
packed        = { echo 'const unsigned char $(1)[] = {'; gzip -9n | od -An -v -tu1 | sed 's/[0-9][0-9]*/&,/g'; printf '};\nconst size_t $(1)_size = sizeof $(1);\n'; }
$(O)/conf/schemas.c: conf/nodeconfig.schema.json conf/nodeconfig-strict.schema.json Makefile
	$(Q)mkdir -p $(@D)
	$(call say,TABLE,$@){ printf '#include "config/fields.h"\n\n'; for f in $(filter conf/%,$^); do sed 's/^ *//' $$f | tr -d '\n'; echo; done \
	  | $(call packed,config_schemas); } >$@.tmp && mv $@.tmp $@
$(O)/conf/help.c: conf/help.txt Makefile
	$(Q)mkdir -p $(@D)
	$(call say,TABLE,$@){ printf '#include "cli/cli.h"\n\n'; awk '/^#/ || !NF { next } { sub(/^[ \t]+/, " "); printf "%s%s", /^ / ? "" : end, $$0; end = "\n" } END { print "" }' $< \
	  | $(call packed,help_texts); } >$@.tmp && mv $@.tmp $@
# The static program for laptops. Files that test PORTABLE are compiled again for it. It shares all other objects with nodestrap, and the
# linker takes what its commands need. The linker warns of functions of glibc that would load libraries: here that is an error.
PORTABLE     := $(patsubst %.c,$(O)/static/%.o,$(shell grep -lwE 'PORTABLE|installed_read' src/*.c src/*/*.c 2>/dev/null))
PORTABLE_PKGS := jansson yaml-0.1 expat zlib libcrypto
EXAMPLES     := $(wildcard conf/examples/*.userdata) conf/examples/types
INSTALLED    := /usr/lib/nodestrap
ABSENT       := dlopen dlsym dlclose dladdr dlerror getaddrinfo getnameinfo freeaddrinfo gethostbyname     # src/base/portable.c
$(PORTABLE) $(O)/static/texts.o: CPPFLAGS += -DPORTABLE=1
$(O)/static/%.o: %.c Makefile
	$(Q)mkdir -p $(@D)
	$(call say,CC,$@)$(COMPILE) -c -o $@ $<
$(O)/static/explain: conf/explain.awk debian/nodestrap-codes.7 debian/NodeConfig.5
	$(Q)mkdir -p $(@D)
	$(Q)awk -f $^ >$@.tmp && mv $@.tmp $@
$(O)/static/texts.c: conf/texts.awk $(O)/static/explain $(EXAMPLES)
	$(Q)awk -f $< $(INSTALLED)/explain=$(O)/static/explain $(foreach e,$(EXAMPLES),$(INSTALLED)/examples/$(notdir $e)=$e) >$@.tmp && mv $@.tmp $@
$(O)/static/texts.o: $(O)/static/texts.c
	$(call say,CC,$<)$(COMPILE) -c -o $@ $<
$(O)/static/nodestrap: $(PORTABLE) $(O)/static/texts.o $(LIB)
	$(call say,LD,$@)$(CC) -static-pie -Wl,-z,relro,-z,now,--gc-sections,--fatal-warnings $(ABSENT:%=-Wl,--wrap=%) -fno-lto $(CFLAGS) $(LDFLAGS) -o $@ $^ \
	  $$($(PKG_CONFIG) --static --libs $(PORTABLE_PKGS)) $(LDLIBS)

# Test scripts find the programs by these variables.
TEST_ENV     := NODESTRAP=$(abspath $(O)/nodestrap) HELPERS=$(abspath $(O)/tests/helpers) FAKES=$(abspath $(O)/tests/fakes)
TAP          := $(TEST_ENV) tests/run/tap.sh
# Long tests start first: these, until tap.sh has measured each.
SLOW         := %/storage-vm.sh %/gpu-failures.sh %/gpu-naive.sh %/storage-bad.sh %-cuts.sh %-matrix-raid0.sh %-matrix-raid10.sh
in_order      = $(filter $(SLOW),$(1)) $(filter-out $(SLOW),$(1))
# These mostly wait, for a timeout or for a peer that never answers: in parallel with the others they cost nothing.
WAITING      := %/check/accel.sh %/check/bad-services.sh %/check/bundle.sh %/check/boot-hook.sh %/check/interfaces.sh %/check/plan-diff.sh %/check/pre-pull.sh %/check/token.sh %/check/wait.sh \
                %/test-apply %/test-fabric %/test-health-gpu %/test-mig %/test-prove %/test-prove-clock %/test-prove-gpus %/test-run %/test-storage-host %/test-sysctl %/test-unit %/test-work \
                %/gpu-hangs.sh %/gpu-license.sh %/network-never.sh %/imds-down.sh %/devices-fabric-never.sh %/volumes-never.sh \
                %/cluster/wait.sh %/cluster/tainted.sh %/vm/frozen-disk.sh %/kubelet-recovers.sh %/interfaces-bookworm.sh
# LEFT_OUT names scripts that another run covers.
scripts       = $(filter-out $(LEFT_OUT),$(sort $(wildcard tests/$(1)/*.sh)))
# Guests leave CPUs idle now and then, so three run at a time.
JOBS          = 2
check-boot check-vm check-cluster check-guests check-files: JOBS = 3
run_all       = $(TAP) -j $(JOBS) -w "$(filter $(WAITING),$(1))" $(call in_order,$(filter-out $(WAITING),$(1)))

guest-programs: $(PROGRAMS) $(HELPERS) $(FAKES)
test-programs: guest-programs $(TESTS) $(FUZZ)
check: test-programs pure                # builds no missing guest image, unless NODESTRAP_TEST_REQUIRE=1 forbids skips
	$(Q)NODESTRAP_TEST_NO_BUILD=$${NODESTRAP_TEST_NO_BUILD-$$((1 - $${NODESTRAP_TEST_REQUIRE:-0}))} \
	  $(call run_all,$(call scripts,check) $(TESTS) $(FUZZ))
check-unit: test-programs pure
	$(Q)$(call run_all,$(TESTS) $(FUZZ))
# Checks of the program itself: how it is linked, its cost, the limits of its units. A build with SAN=1 skips them or tells nothing.
PLAIN        := endurance libraries portable protections
check-plain: guest-programs pure
	$(Q)$(call run_all,$(PLAIN:%=tests/check/%.sh))
REPEATED      = $(if $(filter %/exhaustive/prove-gpus.sh,$(T)),$(filter %/test-prove %/test-prove-gpus,$(TESTS)))   # by that script
check-files: guest-programs $(REPEATED) $(patsubst %.c,$(O)/%,$(filter %.c,$(T)))  # make check-files T="tests/vm/modules.sh tests/boot/slice.sh": as the suites run them
	$(Q)$(call run_all,$(patsubst %.c,$(O)/%,$(T)))
test: guest-programs $(REPEATED) $(patsubst %.c,$(O)/%,$(filter %.c,$(T)))  # make test T="tests/unit/test-toml.c tests/check/token.sh": only these, with all output lines
	$(if $(T),,$(error make test T="tests/unit/test-toml.c tests/check/token.sh"))
	$(Q)$(TAP) -v $(patsubst %.c,$(O)/%,$(T))
valgrind: test-programs
	$(Q)$(TEST_ENV) TESTS="$(filter-out $(WAITING),$(TESTS) $(FUZZ))" WAITING="$(filter $(WAITING),$(TESTS) $(FUZZ))" tests/run/tap.sh tests/run/valgrind.sh
# Planners must not touch the machine: besides each other, they may call only these. Memory, text and sorting; jansson, but not from
# or to files; functions of base/, doc/, config/ and host/ that work only in memory; and calls that compilers and sanitizers add.
PURE         := mem(chr|cmp|cpy|move|set) (str|strv_|str_|text_|diag_|cause_|x(v?asprintf|calloc|realloc|mem|str))[a-z_]* free qsort v?(sn|as)printf inet_(ntop|pton) \
                json_(array|copy|object|string|integer|number|real|true|false|null|pack|get|set|list|put|text|merge)[a-z_]* \
                json_(deep_copy|delete|equal|dumps|loads|sprintf) [a-z_]*_to_string sha256_hex parse_u64 utf8_length version_(at_least|compare|minor) quantity_[a-z]* (n_)?kubelet_tunables kernel_(swap|settings)_fault kubelet_((flag|flags|gate|setting)_[a-z]*|words|judge|parse_duration) containerd_(consequence|judge|look|settings|version) bytes_text url_host address_is_valid expr_evaluate diagnostic_locate config_(position|says) variable_name_is_valid \
                toml_format sysctl_path host_(efa|efa_is_known|far_gpus|expected_(by|stores)|instance_stores|to_json|volume) storage_(binds(_of)?|directory|mount_at|places_done) pci_is_[a-z]* \
                disk_is_volume volume_canonical mount_target_fault mig_profiles_of (n_)?requirements requirement_(advice|find|misses) network_cards_(find|of) content_(describe|unfinished) (json_holds|words_hold|key_is)_secret raid_(is_ours|short_name) assignment_[a-z_]* \
                eni_(find|is_partial) decision_(find|name_path|mac_path) interface_(by_(name|mac)|name_is_valid) (mac|instance_id)_is_valid \
                _GLOBAL_OFFSET_TABLE_ __assert_fail __stack_chk_(fail|guard) __[a-z]*printf_chk __mem[a-z]*_chk __ctype_b_loc bcmp __(a|ub)san_[a-z0-9_]* __aarch64_[a-z]*[1-8]_[a-z_]*
empty        :=
pure: $(filter $(O)/src/plan/% $(O)/src/nic/plan/%,$(OBJS))
	$(Q)$(NM) -A $(filter %.o,$^) | awk -v pure='^($(subst $(empty) $(empty),|,$(strip $(PURE))))$$' \
	  '$$2 ~ /^[Uw]$$/ { called[$$3] = $$1; next } { made[$$3] } \
	  END { for (s in called) if (!(s in made) && s !~ pure) { bad = 1; print called[s] " calls " s ", which PURE does not list" } exit bad }'
# Calls between files of a directory must form no cycle: tsort names the files in one.
pure: circles-apply circles-config circles-nic
circles-%: $(OBJS)
	$(Q)$(NM) -A $(filter $(O)/src/$*/%,$^) | awk '{ file = $$1; sub(/:.*/, "", file) } $$2 ~ /^[BDRTV]$$/ { made[$$3] = file } \
	  $$2 == "U" { calls[file " " $$3] } END { for (c in calls) { split(c, p, " "); if (p[2] in made) print p[1], made[p[2]] } }' | tsort >/dev/null
# An empty array is NULL here, and NULL + 0, which clang calls undefined, is harmless
# (https://www.open-std.org/jtc1/sc22/wg14/www/docs/n3322.pdf).
$(O)/fuzzers/%: SANFLAGS := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=pointer-overflow -fno-sanitize-recover=all -fno-omit-frame-pointer
$(O)/fuzzers/%: $(O)/tests/fuzz/%.o $(LIB)
	$(Q)mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(SANFLAGS) -fsanitize=fuzzer -o $@ $^ $(PKG_LIBS) -ldl
fuzz: $(O)/fuzzers/$(F)                  # make fuzz CC=clang O=build-fuzz F=fuzz-toml T=60; tests/torture/fuzz.sh runs them all
	$(Q)mkdir -p $(O)/corpus/$(F)
	$(O)/fuzzers/$(F) -max_total_time=$(or $(T),60) -timeout=10 -artifact_prefix=$(O)/found-$(F)- $(O)/corpus/$(F) tests/fuzz/corpus/$(F)
sizes:                                   # the ten longest functions, then count, median, p90
	@ctags -x --c-kinds=f --fields=+e --_xformat='%{end} %n %N %F' -R src | awk '{print $$1-$$2+1, $$3, $$4}' | sort -n \
	  | awk '{n[NR]=$$1; l[NR]=$$0} END {for (i=NR; i>NR-10 && i>0; i--) print l[i]; print NR, n[int(NR/2)+1], n[int(NR*.9)+1]}'
BINARY       ?= $(O)/nodestrap
beside        = $(or $(firstword $(wildcard $(BINARY)-$(1) $(dir $(BINARY))../libexec/nodestrap/nodestrap-$(1))),$(O)/nodestrap-$(1))
HELPER_BINARIES = $(call beside,prove) $(call beside,read-ahead) $(call beside,pre-pull)
install: $(BINARY) $(HELPER_BINARIES)
	$(INSTALL) -D -m 0755 $(BINARY) $(DESTDIR)$(bindir)/nodestrap
	$(INSTALL) -D -m 0755 -t $(DESTDIR)$(libexecdir)/nodestrap $(HELPER_BINARIES)
	$(INSTALL) -D -m 0644 conf/read-ahead $(DESTDIR)$(prefix)/lib/nodestrap/read-ahead
	$(INSTALL) -D -m 0644 -t $(DESTDIR)$(unitdir) units/*.service units/*.path units/*.timer units/*.target
	for d in units/*.service.d; do $(INSTALL) -D -m 0644 -t $(DESTDIR)$(unitdir)/$${d#units/} $$d/*.conf || exit; done
	cd units/systemd && find . -name '*.conf' -exec $(INSTALL) -D -m 0644 {} $(DESTDIR)$(prefix)/lib/nodestrap/systemd/{} \;
	$(INSTALL) -D -m 0644 units/90-nodestrap.rules $(DESTDIR)$(rulesdir)/90-nodestrap.rules
	$(INSTALL) -D -m 0644 units/nodestrap.preset $(DESTDIR)$(presetdir)/80-nodestrap.preset
	$(INSTALL) -D -m 0644 units/nodestrap.tmpfiles $(DESTDIR)$(prefix)/lib/tmpfiles.d/nodestrap.conf
	$(INSTALL) -D -m 0644 /dev/null $(DESTDIR)$(prefix)/lib/nodestrap/explain
	awk -f conf/explain.awk debian/nodestrap-codes.7 debian/NodeConfig.5 >$(DESTDIR)$(prefix)/lib/nodestrap/explain
	$(INSTALL) -D -m 0644 -t $(DESTDIR)$(prefix)/lib/nodestrap/examples conf/examples/types conf/examples/*.userdata
	$(INSTALL) -m 0644 /dev/null $(DESTDIR)$(prefix)/lib/nodestrap/instance-types
	awk -F, '!/^#/ && n++ { print $$1 }' conf/instance-types.csv >$(DESTDIR)$(prefix)/lib/nodestrap/instance-types
	for p in debian/*.[1578]; do $(INSTALL) -D -m 0644 $$p $(DESTDIR)$(mandir)/man$${p##*.}/$${p##*/} || exit; done
	$(INSTALL) -D -m 0644 debian/nodestrap.bash-completion $(DESTDIR)$(completiondir)/nodestrap
	$(INSTALL) -D -m 0644 debian/nodestrap.zsh-completion $(DESTDIR)$(zshdir)/_nodestrap
	$(INSTALL) -D -m 0644 -t $(DESTDIR)$(docdir) README.md conf/*.schema.json debian/boot.svg
	sed -i 's,conf/examples,examples,g; s,debian/boot\.svg,boot.svg,g' $(DESTDIR)$(docdir)/README.md       # as installed there
	$(INSTALL) -D -m 0644 -t $(DESTDIR)$(docdir)/examples conf/examples/*
	$(INSTALL) -D -m 0644 -t $(DESTDIR)$(docdir)/monitoring conf/monitoring/*
	$(INSTALL) -d $(DESTDIR)/etc/eks/nodeadm.d

# The target architecture of deps, deb and rpm, if not this machine. ARCH from the environment does not count: it is meant for kernel builds.
ifneq ($(filter environment,$(origin ARCH)),)
ARCH         :=
endif
override ARCH := $(patsubst aarch64,arm64,$(ARCH))
ifneq ($(filter-out arm64,$(ARCH)),)
$(error ARCH=$(ARCH): the other machine is arm64)
endif
OTHER         = $(if $(ARCH),$(filter-out $(shell dpkg --print-architecture),$(ARCH)))
APT          := DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends
NEEDED       := pkg-config libjansson-dev libyaml-dev libexpat1-dev zlib1g-dev libsystemd-dev libssl-dev libcurl4-openssl-dev libblkid-dev libmount-dev
deps:                                    # what `make` needs; ARCH=arm64: also the cross tools for arm64
	$(if $(OTHER),dpkg --add-architecture $(OTHER) && apt-get -q update)
	$(APT) gcc libc6-dev $(NEEDED) $(if $(OTHER),crossbuild-essential-$(OTHER) $(NEEDED:=:$(OTHER)))
deps-test: deps                          # what the tests, the package, the boots and the cluster need; guests and Kubernetes are built during the first suites
	$(APT) clang libclang-rt-dev llvm clang-tidy clang-format cppcheck shellcheck libc6-dbg universal-ctags python3 python3-botocore python3-jsonschema python3-pip containerd \
	  build-essential debhelper lintian rpm cpio bash-completion zsh man-db mandoc systemd faketime procps chromium-headless-shell \
	  cmark-gfm pre-commit git
	tests/tools/vmboot.sh --deps

lint:                                    # clang-tidy with the warnings of clang, cppcheck, shellcheck, on files changed since their last clean run; FULL=1: on all
	$(Q)CLANG_TIDY=$(CLANG_TIDY) CPPCHECK=$(CPPCHECK) WARNINGS='$(WARNINGS)' FULL=$(FULL) tests/run/tap.sh tests/run/lint.sh
words:                                   # the word forms that `make lint` counts; UPDATE=1 lowers the numbers in tests/oracles/words.csv
	$(Q)UPDATE=$(UPDATE) python3 tests/oracles/words.py
package:                                 # both packages for this machine, installed into and removed from separate roots; TWICE=1: built twice, must give the same bytes
	$(Q)TWICE=$(TWICE) tests/run/tap.sh tests/run/package.sh tests/run/rpm.sh
deb:                                     # build/package/nodestrap_*.deb for this machine, or for ARCH=arm64
	$(Q)conf/packaging/deb.sh $(addprefix -a ,$(ARCH))
rpm:                                     # build/package/nodestrap-*.rpm, likewise; dnf upgrade replaces RELEASE=1 with RELEASE=2
	$(Q)conf/packaging/rpm.sh $(addprefix -a ,$(ARCH)) -- --without check $(if $(filter command,$(origin RELEASE)),--define 'release $(RELEASE)')
# For laptops: a static program without the node commands, and a container image of the programs built so far. A foreign one needs its own make run.
PORTABLE_DIR ?= build/portable
FOREIGN       = $(if $(OTHER),$(if $(TRIPLET),,y))
portable: $(if $(FOREIGN),,$(O)/static/nodestrap)       # build/portable/nodestrap-linux-amd64, or with ARCH=arm64 -arm64
	$(Q)$(if $(FOREIGN),$(MAKE) --no-print-directory CC=aarch64-linux-gnu-gcc $@,mkdir -p $(PORTABLE_DIR) && \
	  $(TRIPLET:%=%-)strip -o $(PORTABLE_DIR)/nodestrap-linux-$(if $(filter aarch64%,$(shell $(CC) -dumpmachine)),arm64,amd64) $<)
portable-image: portable                 # build/portable/nodestrap-VERSION-oci.tar
	$(Q)VERSION=$(VERSION) conf/packaging/image.sh -o $(PORTABLE_DIR) $(PORTABLE_DIR)/nodestrap-linux-*[46]
images:                                  # builds, once, the guest images and the test files in them
	$(Q)tests/run/images.sh
check-boot: guest-programs               # containers, three at a time
	$(Q)$(call run_all,$(call scripts,boot))
check-vm: guest-programs                 # virtual machines, three at a time
	$(Q)$(call run_all,$(call scripts,vm))
CLUSTER       = $(filter-out $(LEFT_OUT),$(shell tests/run/cluster.sh --list))
check-cluster: guest-programs            # beside a real API server, three at a time; NODESTRAP_TEST_KUBE=1.37.0 limits the versions
	$(Q)$(call run_all,$(CLUSTER))
check-guests: guest-programs             # all three
	$(Q)$(call run_all,$(CLUSTER) $(call scripts,vm) $(call scripts,boot))
# As arm64, under qemu-user (tests/tools/cross.sh): unit tests, plans compared with those of x86-64, and input from outside
# (ARM64_CHECKS=all: every check); or the make arguments in ARM64="SAN=1 check-unit".
ARM64_CHECKS ?= cases examples imds toml
check-arm64: $(O)/nodestrap
	$(Q)VERSION=$(VERSION) NATIVE=$(abspath $(O)/nodestrap) tests/run/arm64.sh $(or $(ARM64),check-emulated)
check-emulated: test-programs pure
	$(Q)$(call run_all,$(call scripts,arm64) $(if $(filter all,$(ARM64_CHECKS)),$(call scripts,check),$(ARM64_CHECKS:%=tests/check/%.sh)) $(TESTS) $(FUZZ))
check-everyday:                          # the daily tests of README: half an hour at most
	$(Q)tests/run/proof.sh everyday
check-rest:                              # the other tests (tests/run/rest): PART=2, or all parts in turn
	$(Q)tests/run/proof.sh rest $(PART)
torture: guest-programs                  # runs of several hours (tests/torture): killed system calls, injected faults, power cuts, fuzzing
	$(Q)$(TEST_ENV) tests/run/torture.sh $(call scripts,torture)
# Compares our NVIDIA driver readers with nvidia-smi, on a machine with a GPU. REPORT=DIR keeps both outputs.
check-device: $(O)/tests/helpers/device-tool
	$(Q)python3 tests/oracles/device.py --tool $< $(if $(REPORT),--report $(REPORT))
BENCH        := $(patsubst %.c,$(O)/%,$(wildcard tests/bench/*.c))
bench: guest-programs $(BENCH)
	$(Q)python3 tests/bench/bench.py --nodestrap $(O)/nodestrap --build $(O)/tests/bench
	$(Q)python3 tests/bench/boot.py --nodestrap $(O)/nodestrap
	$(Q)$(O)/tests/bench/fleet
	$(Q)tests/bench/storage.sh $(O)/nodestrap $(O)/tests/bench
	$(Q)python3 tests/bench/cluster.py --nodestrap $(O)/nodestrap $(if $(PEER),--peer $(PEER))
	$(Q)for disk in 20 60 1ms 10ms; do python3 tests/bench/cluster.py --nodestrap $(O)/nodestrap --runs 1 --disk $$disk $(if $(PEER),--peer $(PEER),--only nodestrap) || exit; done
picture: guest-programs                  # draws a boot of conf/examples/p5-48xlarge.userdata, in real time: the full picture, and the small one for README
	$(Q)python3 tests/bench/boot.py --nodestrap $(O)/nodestrap --speed 1 --picture tests/fixtures/boot-p5.json
	$(Q)install -D -m 644 tests/fixtures/boot-p5.json $(O)/picture/run/nodestrap/status.json
	$(Q)$(O)/nodestrap status --root $(O)/picture --output svg >conf/examples/p5-48xlarge-boot.svg
	$(Q)python3 conf/picture.py conf/examples/p5-48xlarge-boot.svg >debian/boot.svg
$(BENCH): %: %.o $(LIB)
	$(call say,LD,$@)$(LINK)
demo: $(O)/nodestrap                     # what init would do on a tray of a GB200 rack
	$(Q)$(O)/nodestrap plan -c file://conf/examples/p6e-gb200.userdata --instance-type p6e-gb200.36xlarge \
	  --kubelet-version 1.34.2 --containerd-version 2.1.5 --driver-version 580.159.04
clean:
	$(RM) -r build build-*
-include $(OBJS:.o=.d) $(PORTABLE:.o=.d) $(O)/static/texts.d $(TABLES:.o=.d) $(FAKES:=.d) $(TESTS:=.d) $(HELPERS:=.d) $(FUZZ:=.d) $(BENCH:=.d)
.SECONDARY:
