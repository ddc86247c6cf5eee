# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash source=tests/vm/lib/volumes.sh disable=SC2154 # what guest.sh and volumes.sh define
# Sourced: volume-cuts.sh TIMES SECONDS TYPE...
# A volume that is torn away, with all that was not on it yet, while nodestrap makes it, fills it or removes the originals: the next
# boot brings the directory whole to it, whatever the moment was: at each program, and at so many moments behind the copy, so far
# apart. The root disk keeps what was done to it, which is the worse half of a power cut: an original that is gone must be on the volume.
fill() {                                # a store of some hundred files
        local n; rm -rf "$1"; mkdir -p "$1"; chmod 0711 "$1"
        for n in $(seq 40); do mkdir -p "$1/snapshots/$n/fs"; echo "file $n" >"$1/snapshots/$n/fs/a"; head -c 20000 /dev/urandom >"$1/snapshots/$n/fs/b"; ln -s a "$1/snapshots/$n/fs/link"; done
}
cat >content.py <<'END'
import hashlib, os, sys                 # all that a copy must keep, as one line
top, h = sys.argv[1], hashlib.sha256()
for at, dirs, files in os.walk(top):
    if at == top and 'lost+found' in dirs: dirs.remove('lost+found')
    dirs.sort()
    for name in sorted(files) + sorted(dirs) + ['.']:
        path = os.path.join(at, name); s = os.lstat(path); link = os.path.islink(path)
        data = os.readlink(path) if link else hashlib.sha256(open(path, 'rb').read()).hexdigest() if os.path.isfile(path) else ''
        h.update(repr((os.path.relpath(path, top), oct(s.st_mode), s.st_uid, data, 0 if link or os.path.isdir(path) else s.st_mtime_ns)).encode())
print(h.hexdigest())
END
content() { python3 content.py "$1"; }
tear_away() {                           # as a power cut does: nobody gets to write another byte
        local c
        kill -KILL "$1" 2>/dev/null
        for c in /sys/class/nvme/nvme*; do [ "$(cat "$c/subsysnqn")" != "$NQN$2" ] || echo 1 >"$c/delete_controller"; done
        pkill -KILL -x cp; pkill -KILL mkfs
        wait "$1" 2>/dev/null
        for m in /data "$P/vol-$(id "$2")"; do while mountpoint -q "$m"; do umount -l "$m"; done; done
        rm -rf /run/nodestrap /run/eks /run/nodeadm; udevadm settle
}
# A program of the step that says it was reached, and stands still: bin/NAME, before or after its work, or when half is done.
hook() {                                # hook NAME before|half|after
        rm -f "bin/$1" reached go; mkfifo reached go
        cat >"bin/$1" <<END
#!/bin/bash
[ $2 = before ] || { if [ $2 = half ]; then PATH=/usr/sbin:/usr/bin:/sbin:/bin timeout -s KILL 0.15 $1 "\$@"; else PATH=/usr/sbin:/usr/bin:/sbin:/bin $1 "\$@"; fi; }
echo >/vmtest/reached; read -r _ </vmtest/go
END
        chmod +x "bin/$1"
}
unhook() { rm -f "bin/$1"; ln -s ../tool "bin/$1"; }

blank() { local n=$1; detach "$n"; rm -f "/vmtest/volume.$n"; truncate -s 400M "/vmtest/volume.$n"; local word; for word in 0 1; do echo $word >"$TARGET/subsystems/$NQN$n/namespaces/1/enable"; done; attach "$n"; }
begin() { while mountpoint -q /data; do umount /data; done; while mountpoint -q "$P/vol-$(id 1)"; do umount "$P/vol-$(id 1)"; done; blank 1; fill /data; want=$(content /data); }
whole() { is "$(content /data)" "$want" && no test -e /data/.nodestrap-incoming && seen /data 1; }
recovers() {
        try "$1: the volume comes back" attach 1
        try "$1: the next boot succeeds" init
        try "$1: all of it is on the volume" whole
        try "$1: and nothing beside it" no below /data/snapshots/1/fs/a
}

try "the target is set up" target; try "a volume is made" volume 1 400M; attach 1; mkdir -p under
times=$1 apart=$2; shift 2
for type; do
        wants "{device: vol-$(id 1), mountTarget: /data, fsType: $type}"
        for step in "mkfs.$type before" "mkfs.$type half" "mkfs.$type after" "cp before" "cp half" "cp after"; do
                read -r name when <<<"$step"; begin; hook "$name" "$when"
                init >init.out 2>&1 & job=$!
                read -rt 60 _ <reached; try "$type: $step is reached" is $? 0
                pid=$(pgrep -P $job -x nodestrap || pgrep -x nodestrap); tear_away "$pid" 1; wait $job; unhook "$name"
                recovers "$type, cut at $step"
        done
        for i in $(seq "$times"); do    # behind the copy: files are taken over, originals removed
                begin; hook cp after
                init >init.out 2>&1 & job=$!
                read -rt 60 _ <reached; pid=$(pgrep -x nodestrap); echo >go
                python3 -c "import time; time.sleep($apart * $i)"
                tear_away "$pid" 1; wait $job; unhook cp
                recovers "$type, cut $i behind the copy"
        done
done
finish
