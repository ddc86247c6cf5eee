/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What module.c (load-module), module-options.c (modprobe.d) and reload.c (a driver whose options are others
 * than it was loaded with) share. */
#include "apply/work.h"
#include "base/str.h"

/* What a boot says where this module cannot be loaded; name as the kernel spells it. */
_nonnull_ Cause module_cause(const char *name);
/* All lines of modprobe.d(5) that say how a module is loaded (options, install), of this name or one that
 * continues it behind "_" ("nvidia", "nvidia_drm"; "-" counts as "_"), in the order in which modprobe reads
 * them, each behind its file: "/etc/modprobe.d/a.conf: options nvidia X=1". "": none. The caller frees it. */
_must_check_ _nonnull_ int module_options(const Root *root, const char *prefix, char **ret);
/* The same of one file. */
_nonnull_ void module_options_add(Text *to, const char *path, const char *text, const char *prefix);
/* A file that the one has lines of that the other has not; the caller frees it. */
_malloc_ _nonnull_ char *module_options_changed(const char *before, const char *now);

/* reload.c: NVIDIA's driver is about to be loaded: notes with which options. < 0 after work_fail(). */
_must_check_ _nonnull_ int driver_note_options(Work *w);
/* It is loaded: takes it out and loads it anew where its options are others than those noted: 1; 0: they are
 * the same, or are seen for the first time in this boot, or it cannot be, of which it warns. */
_must_check_ _nonnull_ int driver_renew(Work *w);
/* Loads and starts again what a process before this one has left stopped in the middle of that. */
_nonnull_ void driver_return(Work *w);
