# SPDX-License-Identifier: Apache-2.0
# make | make deps | make check | make SAN=1 check | make fuzz F=fuzz-toml T=60 | make lint | make bench | make install DESTDIR=…
prefix       ?= /usr
bindir       ?= $(prefix)/bin
unitdir      ?= $(prefix)/lib/systemd/system
PKG_CONFIG   ?= pkg-config
INSTALL      ?= install
CLANG_TIDY   ?= clang-tidy
CPPCHECK     ?= cppcheck
VERSION      ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo 0)
O            ?= build$(if $(SAN),-san)
CFLAGS       ?= -O2 -g
PKGS         := jansson yaml-0.1 expat zlib libsystemd libcrypto libcurl
# libcurl and the thirty libraries it brings are loaded only by the process that asks EC2 (src/aws/ec2.c), so it is not linked.
LINK_PKGS    := $(filter-out libcurl,$(PKGS))

WARNINGS     := -Wall -Wextra -Wshadow -Wundef -Wvla -Wpointer-arith -Wwrite-strings -Wmissing-prototypes -Wstrict-prototypes \
                -Wold-style-definition -Wformat=2 -Wimplicit-fallthrough -Wcast-align -Wdate-time -Wno-missing-field-initializers \
                -Werror=return-type -Werror=int-conversion -Werror=implicit-function-declaration \
                -Werror=incompatible-pointer-types $(if $(WERROR),-Werror)
ifeq ($(findstring clang,$(shell $(CC) --version)),)     # gcc alone knows these
WARNINGS     += -Wlogical-op -Wduplicated-cond -Wduplicated-branches
endif
ifdef SAN
SANFLAGS     := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
else
CPPFLAGS     ?= -D_FORTIFY_SOURCE=2
endif
HARDENING    := -fstack-protector-strong -fstack-clash-protection -fPIE -fno-common
PKG_LIBS     := $(shell $(PKG_CONFIG) --libs $(LINK_PKGS) 2>/dev/null)
INCLUDES     := -Isrc $(shell $(PKG_CONFIG) --cflags $(PKGS) 2>/dev/null)
COMPILE       = $(CC) -std=gnu17 -D_GNU_SOURCE -DVERSION='"$(VERSION)"' $(INCLUDES) $(WARNINGS) $(HARDENING) $(SANFLAGS) \
                -MMD -MP $(CPPFLAGS) $(CFLAGS)
LINK          = $(CC) -pie -Wl,-z,relro,-z,now,--as-needed $(SANFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o %.a,$^) $(PKG_LIBS) -ldl $(LDLIBS)

TABLES       := $(patsubst conf/%.csv,$(O)/conf/%.o,$(wildcard conf/*.csv))
OBJS         := $(patsubst %.c,$(O)/%.o,$(sort $(wildcard src/*.c src/*/*.c)))
LIB          := $(O)/libnodestrap.a
TESTS        := $(patsubst %.c,$(O)/%,$(sort $(wildcard tests/unit/test-*.c)))
FUZZ         := $(patsubst %.c,$(O)/%,$(sort $(wildcard tests/fuzz/fuzz-*.c)))
HELPERS      := $(patsubst %.c,$(O)/%,$(sort $(wildcard tests/helpers/*.c)))   # programs that tests/check/*.sh call
ifneq ($(V),1)
Q            := @
say           = @printf '  %-5s %s\n' $(1) $(2);
endif

all: $(O)/nodestrap
.PHONY: all check fuzz install clean sizes pure lint deps deps-test
$(LIB): $(filter-out $(O)/src/main.o,$(OBJS)) $(TABLES)
	$(Q)rm -f $@ && ar rcs $@ $^
$(O)/nodestrap: $(O)/src/main.o $(LIB)
$(TESTS): %: %.o $(LIB)
$(HELPERS): %: %.o $(LIB)
$(FUZZ): %: %.o $(O)/tests/fuzz/replay.o $(LIB)
$(O)/nodestrap $(TESTS) $(HELPERS) $(FUZZ):
	$(call say,LD,$@)$(LINK)
$(O)/%.o: %.c Makefile
	$(Q)mkdir -p $(@D)
	$(call say,CC,$<)$(COMPILE) -c -o $@ $<
$(O)/conf/%.o: $(O)/conf/%.c
	$(call say,CC,$<)$(COMPILE) -c -o $@ $<
$(O)/conf/%.c: conf/%.csv conf/tables.awk
	$(Q)mkdir -p $(@D)
	$(call say,TABLE,$<)awk -f conf/tables.awk -v table=$* $< >$@.tmp && mv $@.tmp $@

check: $(TESTS) $(HELPERS) $(FUZZ) $(O)/nodestrap pure
	$(Q)NODESTRAP=$(abspath $(O)/nodestrap) tests/run.sh $(TESTS) $(FUZZ) $(sort $(wildcard tests/check/*.sh))
pure: $(filter $(O)/src/plan/%,$(OBJS))  # planners may not reach the machine: no such undefined symbol
	$(Q)! nm -u $^ /dev/null 2>&1 | grep -wE 'f?open(at)?|l?stat|mount|ioctl|socket|exec.*|getenv|time|clock_gettime|now_usec|(root|imds|ec2|sd|blkid|mnt|curl)_.*'
fuzz: SANFLAGS := -fsanitize=fuzzer-no-link,address,undefined
fuzz: $(O)/tests/fuzz/$(F).o $(LIB)      # make fuzz CC=clang O=build-fuzz F=fuzz-toml T=60; move good inputs to the corpus by hand
	$(Q)mkdir -p $(O)/corpus/$(F)
	$(CC) $(SANFLAGS) -fsanitize=fuzzer -o $(O)/$(F) $^ $(PKG_LIBS) -ldl
	$(O)/$(F) -max_total_time=$(or $(T),60) -timeout=10 $(O)/corpus/$(F) tests/fuzz/corpus/$(F)
sizes:                                   # the ten longest functions, then count, median, p90
	@ctags -x --c-kinds=f --fields=+e --_xformat='%{end} %n %N %F' -R src | awk '{print $$1-$$2+1, $$3, $$4}' | sort -n \
	  | awk '{n[NR]=$$1; l[NR]=$$0} END {for (i=NR; i>NR-10 && i>0; i--) print l[i]; print NR, n[int(NR/2)+1], n[int(NR*.9)+1]}'
clean:
	$(RM) -r build build-*
-include $(OBJS:.o=.d) $(TESTS:=.d) $(FUZZ:=.d)
.SECONDARY:
