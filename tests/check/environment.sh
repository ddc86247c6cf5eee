#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A service must receive, byte for byte, the variables and arguments of the NodeConfig. A container boots with the planned files. The real
# systemd reads our EnvironmentFile=, system.conf and a drop-in as nodeadm writes them, and $NODEADM_KUBELET_ARGS; services record their
# environment. The kubelet version is one whose flags nodestrap does not know, so the test may use any flag. The test also compares which
# characters and which lengths of a variable systemd and `plan` refuse.
here=$(dirname "$(readlink -f "$0")")
tool=${HELPERS:-build/tests/helpers}/plan-tool
boot=$here/../tools/nsboot.sh
nodestrap=${NODESTRAP:-build/nodestrap}
tmp=$(mktemp -d) && trap 'rm -rf "$tmp"' EXIT

python3 - "$tmp" <<'PY'
import json, sys
values = ['plain', '  lead and trail  ', '"', "'", 'a"b\'c', '"whole"', '\\', 'C:\\new\\table\\x41', 'trailing\\', '%', '%n %% 50%', '$HOME ${X} $$', '`id`',
          '# ; = :', 'tab\there', 'é€𝄞', '\x01\x7f', 'http://me:p%40ss@proxy:3128/', '{"k": ["v", 1]}', '~', '*', '!', 'x' * 5000, '\\"', "\\'", '-']
flags = [  # the requested variables, and the arguments that they mean
    ('--plain=1', ['--plain=1']), ('--two=1 --in=one', ['--two=1', '--in=one']), ('--apart 2', ['--apart', '2']),
    ('--node-labels="a=b,c=d"', ['--node-labels=a=b,c=d']), ("--single='x y'", ['--single=x y']), ('--blank=x y', ['--blank=x y']),
    ('--json={"k": "v"}', ['--json={"k": "v"}']), ('--percent=%n%%', ['--percent=%n%%']), ('--back=C:\\x\\', ['--back=C:\\x\\']),
    ('--dollar=$HOME ${X}', ['--dollar=$HOME ${X}']), ('--tick=`id`', ['--tick=`id`']), ("--quote=it's", ["--quote=it's"]), ('--half="x', ['--half="x']),
    ('--empty=', ['--empty=']), ('--hash=#;', ['--hash=#;']), ('--utf8=é€', ['--utf8=é€']), ('--star=*?[a]', ['--star=*?[a]']),
    ('--backquote=\\"', ['--backquote=\\"']), ('--last=\\', ['--last=\\'])]
# The orders differ, since each service gets more than one list. containerd gets the variables for all, kubelet those and its own. Both and
# "theirs" get those of nodeadm for all.
orders = {'containerd': values, 'kubelet': values[::-1], 'other': values[1:] + values[:1], 'theirs': values[2:] + values[:2]}
for name, order in orders.items():
    with open(f'{sys.argv[1]}/{name}', 'wb') as out: out.write(b''.join(s.encode() + b'\0' for s in order + ([''] + [f for f, _ in flags] if name == 'kubelet' else [])))
json.dump(orders | {'words': [w for _, words in flags for w in words]}, open(sys.argv[1] + '/want', 'w'))
PY
tree=$tmp/tree
mkdir -p "$tree/etc/systemd/system" "$tree/usr/local/bin" "$tree/vmtest/refuses"
# One file for each text, and the exit status of nodestrap for a NodeConfig with the same text, in the environment and in a flag.
python3 - "$nodestrap" "$tree/vmtest/refuses" "$tmp/refused" <<'PY'
import json, os, subprocess, sys
nodestrap, folder, said = sys.argv[1:]
texts = {'U+%04X' % c: 'a' + chr(c) for c in (0x85, 0x2028, 0xFDCF, 0xFDD0, 0xFDEF, 0xFDF0, 0xFFFD, 0xFFFE, 0xFFFF, 0x1FFFD, 0x1FFFE, 0xFFFFF, 0x10FFFD, 0x10FFFE, 0x10FFFF)}
texts |= {'%d bytes' % n: 'x' * (n - len('A=\0')) for n in (131072, 131073)}
cluster = {'name': 'c', 'apiServerEndpoint': 'https://e', 'certificateAuthority': 'Y2E=', 'cidr': '10.100.0.0/16'}
machine = ['--instance-type', 'm5.large', '--kubelet-version', '1.33', '--containerd-version', '2.1']
taken = {}
for name, text in texts.items():
    with open(os.path.join(folder, name), 'w', encoding='utf-8') as f: f.write(f'A="{text}"\n')
    taken[name] = []
    for more in ({'instance': {'environment': {'kubelet': {'A': text}}}}, {'kubelet': {'flags': ['--root-dir=/' + text]}}):
        if 'bytes' in name and 'kubelet' in more: continue
        with open(said + '.json', 'w') as f: json.dump({'apiVersion': 'node.eks.aws/v1alpha1', 'kind': 'NodeConfig', 'spec': {'cluster': cluster} | more}, f)
        taken[name].append(subprocess.run([nodestrap, 'plan', *machine, '-c', 'file://' + said + '.json'], capture_output=True).returncode)
json.dump(taken, open(said, 'w'))
PY
"$tool" 1.99.0 2.1.5 "$tree" nodeadm "environment=default:$tmp/other" "environment=theirs:$tmp/theirs" &&
        "$tool" 1.99.0 2.1.5 "$tree" "environment=default:$tmp/containerd" "environment=kubelet:$tmp/kubelet" || exit 1
rm -rf "$tree/etc/containerd" "$tree/run"
printf '#!/bin/bash\ncat /proc/self/environ >/vmtest/out/$1.environ; name=$1; shift; printf "%%s\\0" "$@" >/vmtest/out/$name.words\n' >"$tree/usr/local/bin/tell"
chmod 755 "$tree/usr/local/bin/tell"
for name in containerd other theirs; do printf '[Service]\nType=oneshot\nExecStart=/usr/local/bin/tell %s\n' $name >"$tree/etc/systemd/system/$name.service"; done
printf '[Service]\nType=oneshot\nEnvironmentFile=/etc/eks/kubelet/environment\nExecStart=/usr/local/bin/tell kubelet $NODEADM_KUBELET_ARGS\n' \
        >"$tree/etc/systemd/system/kubelet.service"
printf '#!/bin/bash\nsystemctl start containerd other theirs kubelet
for file in /vmtest/refuses/*; do systemd-run -q --wait -p EnvironmentFile="$file" /bin/true; echo "$? ${file##*/}"; done >/vmtest/out/refused 2>/dev/null
for unit in containerd kubelet; do systemctl show $unit; done >/vmtest/out/shown; setpriv --reuid nobody --clear-groups systemctl show containerd kubelet >>/vmtest/out/shown\n' >"$tmp/run.sh"
chmod 755 "$tmp/run.sh"

n=0 bad=0
for suite in bookworm trixie; do
        "$boot" -S "$suite" -d 0 -p "$tree" -o "$tmp/$suite" "$tmp/run.sh" >"$tmp/log" 2>&1; rc=$?
        if [ $rc = 77 ]; then
                n=$((n + 1)); echo "ok $n - systemd of $suite # SKIP $(sed -n 's/.*skip: //p' "$tmp/log" | tail -1)"
                continue
        fi
        python3 - "$tmp/want" "$tmp/$suite/vmtest/out" "$tmp/$suite" "$suite" "$n" "$rc" "$tmp/refused" <<'PY'
import json, os, sys
want, suite, n = json.load(open(sys.argv[1])), sys.argv[4], int(sys.argv[5])
out = next((d for d in sys.argv[2:4] if os.path.exists(d + '/kubelet.words')), None)
bad = 0
def say(ok, what, why=''):
    global n, bad
    n += 1; bad |= not ok
    print('ok' if ok else 'not ok', n, '-', what, 'of', suite, *(['\n#', why] if not ok else []))
if not out:
    say(False, 'services start, with systemd', 'exit status ' + sys.argv[6])
    for what in range(6): say(False, 'the services leave a result, with systemd')
    sys.exit(1)
for name, what in (('containerd', 'containerd gets the variables for all services, with systemd'), ('kubelet', 'kubelet gets its own variables, with systemd'),
                   ('other', 'a service gets the variables for all that nodeadm writes, with systemd'), ('theirs', 'a service gets its own variables that nodeadm writes, with systemd')):
    got = dict(e.split(b'=', 1) for e in open(f'{out}/{name}.environ', 'rb').read().split(b'\0') if b'=' in e)
    wrong = [i for i, v in enumerate(want[name]) if got.get(b'A%d' % i) != v.encode()]
    say(not wrong, what, '; '.join(f"{want[name][i][:40]!r} became {got.get(b'A%d' % i)!r}" for i in wrong))
words = open(f'{out}/kubelet.words', 'rb').read().split(b'\0')[:-1]
tail = words[-len(want['words']):]
wrong = [(w, g) for w, g in zip(want['words'], tail) if w.encode() != g]
say(not wrong and len(words) == 8 + len(tail), 'kubelet gets exactly its arguments, with systemd', f'{len(words)} words; ' + '; '.join(map(repr, wrong)))
shown = open(f'{out}/shown', encoding='utf-8', errors='replace').read()
say('EnvironmentFiles=/etc/nodestrap/environment/kubelet.service' in shown and 'p%40ss' not in shown, 'systemctl show names the file of variables and has no secret, with systemd')
taken, wrong = json.load(open(sys.argv[7])), []
for line in open(out + '/refused'):
    rc, name = line.split(' ', 1)
    if any((rc == '0') != (ours == 0) for ours in taken.pop(name.strip())): wrong.append(line.strip())
say(not wrong and not taken, 'plan refuses a variable if and only if systemd starts nothing with it, with systemd', f'{wrong} and of {list(taken)} it said nothing')
sys.exit(bad)
PY
        [ $? = 0 ] || bad=1
        n=$((n + 7))
done
echo "1..$n"
exit $bad
