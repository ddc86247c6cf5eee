#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/run/stamps.py: a linter checks a file again exactly when something that it reads has changed, and it skips only clean files.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154  # tmp and here are its
. "$(dirname "$0")/../mock/lib.sh"
stamps=$here/../run/stamps.py cache=$tmp/cache
# The stub of a linter records its arguments. It fails for a file with BAD; for a file with WORD it prints that line and passes.
cat >"$tmp/linter" <<END
#!/bin/sh
echo "\$@" >>$tmp/calls
! grep -h BAD "\$@" || exit 1
grep -h WORD "\$@"; [ ! -e $tmp/during ] || . $tmp/during
exit 0
END
chmod +x "$tmp/linter"
mkdir -p "$tmp/clone/src/sub" "$tmp/clone/inc"; cd "$tmp/clone" || exit 1
printf '#include "b.h"\n#include <stdio.h>\nint a;\n' >src/sub/a.c
echo '#include <far.h>' >src/sub/b.h
echo 'int far;' >inc/far.h
echo 'int c; /* a comment */' >src/c.c
printf '#!/bin/sh\n. "$d/lib.sh"\n' >src/x.sh
echo 'x=1' >src/lib.sh
echo 'y=1' >src/y.sh
# ARGUMENTS...: the files that the linter was called for
lint() {
        rm -rf "$tmp/calls" "$tmp/out"; mkdir "$tmp/out"; touch "$tmp/calls"
        find src -name '*.c' -o -name '*.sh' | sort | python3 "$stamps" "$@" -Isrc -Iinc "$cache" "${facts-version 1}" "$tmp/out" "$tmp/linter" ${flags-} {} >"$tmp/said"
}
asked() { lint "${@:2}"; [ "$(sort "$tmp/calls" | paste -sd' ')" = "$1" ] || { cat "$tmp/calls"; false; }; }
all='src/c.c src/lib.sh src/sub/a.c src/x.sh src/y.sh'
ok 'the first run checks all files' asked "$all"
ok 'stamps.py prints the number of checked files' grep -qx 5 "$tmp/said"
ok 'the second run checks no file' asked ''
ok '-f checks all files again' asked "$all" -f
changes() { # FILE TEXT ASKED: added to it, and taken away again
        cp "$1" "$tmp/kept"; echo "$2" >>"$1"; asked "$3" || return
        cp "$tmp/kept" "$1"; asked ''
}
ok 'a new comment causes a check of the file, and its removal causes none' changes src/c.c '/* NOLINT */' src/c.c
ok 'a change of a header causes a check of files that include it indirectly' changes inc/far.h '/* NOLINT */' src/sub/a.c
ok 'a change of a sourced script causes a check of the scripts that source it' changes src/lib.sh '# more' "src/lib.sh src/x.sh"
shadowed() { cp inc/far.h src/far.h; asked src/sub/a.c; rm src/far.h; }
ok 'a new header that comes earlier in the search path causes a check' shadowed
with_facts() { local facts=$1; asked "${@:2}"; }
ok 'other facts cause a check of all files' with_facts 'version 2' "$all"
with_flags() { local flags=/dev/null; asked "/dev/null ${all// / \/dev\/null }"; }
ok 'other flags cause a check of all files' with_flags
elsewhere() { cp -r "$tmp/clone" "$tmp/other" && cd "$tmp/other" && asked ''; }
ok 'another clone uses the same stamps' elsewhere
fails() { echo "$1" >>src/y.sh; asked src/y.sh && asked src/y.sh && [ "$(cat "$tmp/out/src_y.sh" 2>/dev/null)" = "$2" ]; }
ok 'a file that fails is checked each time, and its output is kept' fails '# BAD' '# BAD'
sed -i '$d' src/y.sh
ok 'a file for which the linter prints a line is checked each time' fails '# WORD' ''
sed -i '$d' src/y.sh
echo '# new' >>src/c.c; echo "echo more >>$tmp/clone/src/c.c" >"$tmp/during"; lint; rm "$tmp/during"; sed -i '$d' src/c.c
ok 'a file that changes during its check gets no stamp' asked src/c.c
by_macro() { echo '#include NAME' >>src/c.c; asked src/c.c && asked src/c.c; }
ok 'a file whose include is a macro gets no stamp' by_macro
sed -i '$d' src/c.c; lint
ok 'no file gets a stamp without facts' with_facts '' "$all"
ok '-n 0 checks all files in one command' with_facts 'version 3' "$all" -n 0
nowhere() { local cache=$tmp/linter/tidy; asked "$all"; }
ok 'without a cache folder, all files are checked and nothing fails' nowhere
old() {
        touch -d '31 days ago' "$cache"/* && touch -d '29 days ago' "$cache/unused" && asked '' || return
        [ -e "$cache/unused" ] && [ "$(find "$cache" -type f | wc -l)" = 6 ] || { ls -l "$cache"; false; }
}
ok 'a stamp that is used stays, and an old stamp is deleted' old
c_files() { find src -name '*.c' | python3 "$stamps" "$cache" facts "$tmp/out" "$tmp/linter" {}; }
both() { rm -r "$cache"; c_files & c_files && wait $! && [ "$(c_files)" = 0 ]; }
ok 'two runs in parallel do not disturb each other' both
done_testing
