#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tests/run/stamps.py: a linter runs again over a file exactly when something that it reads has changed, and only a clean file rests.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154  # tmp and here are its
. "$(dirname "$0")/../mock/lib.sh"
stamps=$here/../run/stamps.py cache=$tmp/cache
# The linter says on its own what it is called with. BAD in a file fails, WORD is said and passes.
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
ok 'all are checked at first' asked "$all"
ok 'it says how many' grep -qx 5 "$tmp/said"
ok 'none is checked again' asked ''
ok 'but with -f' asked "$all" -f
changes() { # FILE TEXT ASKED: added to it, and taken away again
        cp "$1" "$tmp/kept"; echo "$2" >>"$1"; asked "$3" || return
        cp "$tmp/kept" "$1"; asked ''
}
ok 'a comment is a change of the file, and back again is none' changes src/c.c '/* NOLINT */' src/c.c
ok 'a header is one of what includes it by another header' changes inc/far.h '/* NOLINT */' src/sub/a.c
ok 'a script is one of what sources it' changes src/lib.sh '# more' "src/lib.sh src/x.sh"
shadowed() { cp inc/far.h src/far.h; asked src/sub/a.c; rm src/far.h; }
ok 'a header before it on the path is one, too' shadowed
with_facts() { local facts=$1; asked "${@:2}"; }
ok 'other facts are a change of all' with_facts 'version 2' "$all"
with_flags() { local flags=/dev/null; asked "/dev/null ${all// / \/dev\/null }"; }
ok 'other flags as well' with_flags
elsewhere() { cp -r "$tmp/clone" "$tmp/other" && cd "$tmp/other" && asked ''; }
ok 'another clone has the same stamps' elsewhere
fails() { echo "$1" >>src/y.sh; asked src/y.sh && asked src/y.sh && [ "$(cat "$tmp/out/src_y.sh" 2>/dev/null)" = "$2" ]; }
ok 'one that fails is checked each time, and its output is there' fails '# BAD' '# BAD'
sed -i '$d' src/y.sh
ok 'one of which something is said is checked each time' fails '# WORD' ''
sed -i '$d' src/y.sh
echo '# new' >>src/c.c; echo "echo more >>$tmp/clone/src/c.c" >"$tmp/during"; lint; rm "$tmp/during"; sed -i '$d' src/c.c
ok 'one that was written to meanwhile has no stamp, as it was' asked src/c.c
by_macro() { echo '#include NAME' >>src/c.c; asked src/c.c && asked src/c.c; }
ok 'nor one whose include is a macro' by_macro
sed -i '$d' src/c.c; lint
ok 'nor any without facts' with_facts '' "$all"
ok 'all in one command' with_facts 'version 3' "$all" -n 0
nowhere() { local cache=$tmp/linter/tidy; asked "$all"; }
ok 'a folder that cannot be made: all are checked, and nothing fails' nowhere
old() {
        touch -d '31 days ago' "$cache"/* && touch -d '29 days ago' "$cache/unused" && asked '' || return
        [ -e "$cache/unused" ] && [ "$(find "$cache" -type f | wc -l)" = 6 ] || { ls -l "$cache"; false; }
}
ok 'a stamp that is used is young again, and an old one goes' old
c_files() { find src -name '*.c' | python3 "$stamps" "$cache" facts "$tmp/out" "$tmp/linter" {}; }
both() { rm -r "$cache"; c_files & c_files && wait $! && [ "$(c_files)" = 0 ]; }
ok 'two at once' both
done_testing
