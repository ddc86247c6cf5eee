#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the files that `nodestrap status` reads, and checks its pictures in a browser.
usage: status.py boot KIND ROOT         makes the files of a boot below ROOT; KIND is ok, failed, running, long or config
       status.py terminal COLUMNS COMMAND...
                                        prints what the command writes to a terminal with that many columns
       status.py pictures FILE WORD... [-- FILE WORD...]...
                                        opens SVGs in chromium, all in one page. Each picture has all its words. No text is
                                        outside of it, on another text or on a bar. The parts that failed are red.
                                        The exit status is 77 without chromium"""
import fcntl, html, json, os, pty, shutil, struct, subprocess, sys, tempfile, termios

SECOND, PLAN = 1000000, 'sha256:4b1f0c2d5a77a9e0d3b8c6f1e2a3948576bdc0e1f2a3b4c5d6e7f8091a2b3c4d'
SENTENCE = ('GPUs 3 and 5 of 8 (0000:97:00.0, 0000:b9:00.0) are still "In Progress" after 300 s: fabric manager has not set up their NVLinks; '
            'nvidia-smi -q -i 3 shows the state, /var/log/fabricmanager.log says why, and a <stop> & start of the instance brings other hardware')
BROWSERS = 'chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'

def action(phase, name, begin, end, outcome='done', after=(), **more):
    return {'id': name, 'phase': phase, 'outcome': outcome, 'beginUsec': int(begin * SECOND), 'endUsec': int(end * SECOND), 'after': list(after), **more}

def run(phases, begin, end, actions, **more):
    return {'command': 'init', 'phases': phases, 'verdict': 'ok', 'code': 'OK', 'exit': 0, 'step': None, 'text': None, 'planId': PLAN,
            'endedAt': '2026-11-23T22:11:00Z', 'beginUsec': int(begin * SECOND), 'endUsec': int(end * SECOND), 'requests': {'imds': 7, 'ec2': 1},
            'errors': [], 'warnings': [], 'actions': actions, **more}

def write(root, path, text):
    os.makedirs(os.path.dirname(root + path), exist_ok=True)
    with open(root + path, 'w') as f:
        f.write(text)

def runs_of(kind):
    config = run('config', 4.9, 5.6, [action('config', 'write-file:/etc/kubernetes/kubelet/config.json', 5.1, 5.13),
                                      action('config', 'reload-manager:systemd', 5.15, 5.5)])
    if kind in ('config', 'running'):
        return {'config': config}
    if kind == 'long':
        names = ['set-sysctl:net.ipv4.conf.eth0.rp_filter', 'write-file:/etc/systemd/system/kubelet.service.d/environment.conf', 'load-module:nvidia-uvm',
                 'make-filesystem:/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0123456789abcdef0-part1-of-a-name-that-no-picture-has-room-for',
                 'restart-unit:nvidia-fabricmanager.service']
        took = (.0003, .02, 9, .4, 3)
        actions = [action('devices' if i < 20 else 'run', f'{names[i % 5]}{i}', 6 + i * 1.1, 6 + i * 1.1 + took[i % 5]) for i in range(40)]
        return {'config': config, 'devices,run': run('devices,run', 5.8, 60, actions)}
    failed = kind == 'failed'
    end, skipped = (315.1, {'outcome': 'skipped'}) if failed else (65.1, {})
    wrong = {'outcome': 'failed', 'code': 'EFABRIC', 'text': SENTENCE + '\nfabricmanager: its own words'} if failed else {}
    def later(name, begin, took):
        return action('devices', name, 0 if failed else begin, 0 if failed else begin + took, **skipped)
    verdict = {'verdict': 'failed', 'code': 'EFABRIC', 'exit': 33, 'step': 'await-fabric:fabric', 'text': SENTENCE, 'phase': 'devices'} if failed else {}
    devices = [action('devices', 'load-module:nvidia', 5.9, 17.2), action('devices', 'await-fabric:fabric', 17.2, end, after=['load-module:nvidia'], **wrong),
               later('generate-cdi:/var/run/cdi/nvidia.yaml', 66, .4)]
    rest = [action('run', 'create-raid:/dev/md/kubernetes', 25.1, 26.4), action('run', 'start-unit:containerd.service', 30, 33.2),
            action('devices', 'take-turn:devices', 25.1, end + 1.5)]
    rest += [action('devices', 'await-fabric:fabric', end + 1.5, end + 250, **wrong) if failed else action('devices', 'await-fabric:fabric', 66.6, 66.7, 'unchanged')]
    rest += [{**later('start-unit:kubelet.service', 66.9, .9), 'phase': 'run'}]
    return {'config': config, 'devices': run('devices', 5.8, end + 1.4, devices, **verdict),
            'devices,run': run('devices,run', 25, end + 251 if failed else 68, rest, **verdict)}

def boot(kind, root):
    runs = runs_of(kind)
    last = list(runs.values())[-1]
    status = {'version': '1', 'bootId': 'b-1', 'bootedAt': '2026-11-23T22:09:51Z', 'planId': PLAN, **{k: last[k] for k in ('verdict', 'code', 'exit', 'step', 'text', 'phase') if k in last},
              'node': {'host': 'ip-10-0-3-17', 'instanceId': 'i-0123456789abcdef0', 'instanceType': 'p5.48xlarge', 'region': 'us-west-2', 'cluster': 'training'}, 'runs': runs}
    if kind == 'ok':
        status['criticalPath'] = [{'run': 'devices', 'id': 'await-fabric:fabric', 'beginUsec': 17200000, 'endUsec': 65100000},
                                  {'run': 'devices,run', 'id': 'start-unit:kubelet.service', 'beginUsec': 66900000, 'endUsec': 67800000}]
        joined = {'bootId': 'b-1', 'verdict': 'ok', 'code': 'OK', 'exit': 0, 'step': None, 'text': None, 'for': 'ready', 'node': 'ip-10-0-3-17', 'cluster': 'training',
                  'registeredUsec': 69200000, 'readyUsec': 78800000, 'beginUsec': 68100000, 'endUsec': 78900000}
        write(root, '/run/nodestrap/joined.json', json.dumps(joined))
    write(root, '/proc/sys/kernel/random/boot_id', 'b-1\n')
    write(root, '/run/nodestrap/status.json', json.dumps(status, indent=1))
    if kind == 'running':
        lines = [(5.8, 71, 'start', 'devices'), (5.9, 71, 'begin', 'load-module:nvidia'), (17.2, 71, 'done', 'load-module:nvidia'), (17.2, 71, 'begin', 'await-fabric:fabric'),
                 (25, 72, 'start', 'devices,run'), (25.1, 72, 'begin', 'take-turn:devices'), (30, 72, 'begin', 'start-unit:containerd.service'),
                 (33, 72, 'done', 'start-unit:containerd.service'), (1, 73, 'start', 'config'), (40, 74, 'start', 'config'), (41, 74, 'end', 'ok')]
        write(root, '/run/nodestrap/progress', ''.join('%d\t%d\t%s\t%s\n' % (t * SECOND, pid, word, what) for t, pid, word, what in lines) + 'damaged\n99\tx\ty\tz\n1\t2')
        for pid, name in (71, 'nodestrap'), (72, 'nodestrap'), (73, 'sleep'), (74, 'nodestrap'):
            write(root, f'/proc/{pid}/comm', name + '\n')

def terminal(columns, command):
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
    with subprocess.Popen(command, stdout=theirs, stdin=subprocess.DEVNULL) as process:
        os.close(theirs)
        said = b''
        try:
            while more := os.read(ours, 65536):
                said += more
        except OSError:             # the other end is closed
            pass
    sys.stdout.write(said.decode().replace('\r\n', '\n'))
    return process.returncode

# Every text and every rectangle, as the browser draws it.
LOOK = '''<script>
const box = (e) => { const b = e.getBBox(); return { x: b.x, y: b.y, w: b.width, h: b.height, fill: getComputedStyle(e).fill, opacity: getComputedStyle(e).fillOpacity }; };
const found = Array.from(document.querySelectorAll('svg')).map(svg => ({ width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height,
  texts: Array.from(svg.querySelectorAll('text')).map(e => ({ text: e.textContent, group: e.parentElement.getAttribute('class') || '', kind: e.getAttribute('class') || '', ...box(e) })),
  bars: Array.from(svg.querySelectorAll('g rect')).map(e => ({ group: e.parentElement.getAttribute('class'), ...box(e) })) }));
document.body.innerHTML = '<pre></pre>'; document.querySelector('pre').textContent = 'FOUND' + JSON.stringify(found) + 'END';
</script>'''

def look(paths):
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not browser:
        print('skip: no chromium here')
        sys.exit(77)
    with tempfile.TemporaryDirectory() as work:
        page = work + '/page.html'
        with open(page, 'w') as f:
            f.write('<!DOCTYPE html><meta charset="utf-8"><body>')
            for path in paths:
                with open(path) as svg:
                    f.write(svg.read())
            f.write(LOOK)
        shown = subprocess.run([browser, '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', f'--user-data-dir={work}/user', '--dump-dom', 'file://' + page],
                               capture_output=True, text=True, timeout=120, env={**os.environ, 'HOME': work})
    if 'FOUND' not in shown.stdout:
        sys.exit(f'{browser} ends with {shown.returncode}: {shown.stderr[-2000:]}')
    return json.loads(html.unescape(shown.stdout.split('FOUND')[1].split('END')[0]))

def overlap(a, b):
    return a['x'] + 1 < b['x'] + b['w'] and b['x'] + 1 < a['x'] + a['w'] and a['y'] + 4 < b['y'] + b['h'] and b['y'] + 4 < a['y'] + a['h']

def judge(found, words):
    texts, bars = found['texts'], found['bars']
    whole, red = ' '.join(t['text'] for t in texts), 'rgb(208, 52, 44)'
    wrong = [f'lacks "{w}": {whole}' for w in words if w not in whole]
    wrong += [f'leaves the picture: {t}' for t in texts if t['x'] < 0 or t['x'] + t['w'] > found['width'] or t['y'] < 0 or t['y'] + t['h'] > found['height']]
    wrong += [f'lies on another: {a["text"]} {b["text"]}' for i, a in enumerate(texts) for b in texts[:i] if overlap(a, b)]
    wrong += [f'lies on a bar: {t["text"]}' for t in texts for b in bars if overlap(t, b)]
    failed = [e for e in texts + bars if 'failed' in e['group'].split()]
    wrong += [f'is not red: {e}' for e in failed if e['fill'] != red or float(e['opacity']) != 1]
    wrong += [f'is red: {e}' for e in texts + bars if e['fill'] == red and e not in failed and 'bad' not in e.get('kind', '').split()]
    if 'nodestrap: failed' in whole and not failed:
        wrong.append('nothing of it has failed')
    return wrong

def pictures(arguments):
    asked = [[]]
    for argument in arguments:
        asked.append([]) if argument == '--' else asked[-1].append(argument)
    found = look([one[0] for one in asked])
    wrong = [f'{one[0]} {what}' for one, seen in zip(asked, found) for what in judge(seen, one[1:])]
    if len(found) != len(asked):
        wrong.append(f'{len(found)} pictures')
    if wrong:
        sys.exit('\n'.join(wrong[:20]))

if __name__ == '__main__':
    if len(sys.argv) == 4 and sys.argv[1] == 'boot':
        boot(sys.argv[2], sys.argv[3])
    elif len(sys.argv) > 3 and sys.argv[1] == 'terminal':
        sys.exit(terminal(int(sys.argv[2]), sys.argv[3:]))
    elif len(sys.argv) > 2 and sys.argv[1] == 'pictures':
        pictures(sys.argv[2:])
    else:
        sys.exit(__doc__)
