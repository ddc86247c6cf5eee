#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The privileges of a command while it reads what others wrote, by /proc/PID and by attempts to use them. Prints TAP.

Each command is held there: the metadata service accepts its connection and does not answer, its stdout is a full pipe, and for `wait`
an init holds the lock.
usage: power.py --nodestrap PROGRAM --apply-tool PROGRAM
"""
import argparse, fcntl, os, resource, shutil, signal, socket, subprocess, sys, tempfile, time

OTHER = 65534
READ, WRITE, LOOK, LOG = 1 << 2, 1 << 1 | 1 << 2 | 1 << 3, 1 << 19, 1 << 34
CONFIG = '''apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: training, apiServerEndpoint: "https://example.com", certificateAuthority: Y2E=, cidr: 10.100.0.0/16}
'''
# A key of 32 zeros, which has no other use.
KEY = '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEI' + 'A' * 43 + '\n-----END PRIVATE KEY-----\n'
MODEL = ['--instance-type', 'm5.large', '--kubelet-version', '1.34.2', '--containerd-version', '2.1.5']
count = 0


def ok(good, what, *said):
    global count
    count += 1
    print(f'{"ok" if good else "not ok"} {count} - {what}', flush=True)
    for line in [] if good else said:
        print(*('# ' + x for x in str(line).splitlines()), sep='\n')


def skip(what, why):
    global count
    count += 1
    print(f'ok {count} - {what} # SKIP {why}')


def full_pipe():
    r, w = os.pipe()
    os.set_blocking(w, False)
    try:
        while True:
            os.write(w, b'x' * 4096)
    except BlockingIOError:
        os.set_blocking(w, True)
    return r, w


def fields(pid):
    with open(f'/proc/{pid}/status') as f:
        return dict(line.split(':\t', 1) for line in f.read().splitlines() if ':\t' in line)


class Kept:
    """A command that cannot finish."""
    def __init__(self, arguments, **options):
        self.r, w = full_pipe()
        self.p = subprocess.Popen([nodestrap, *arguments], stdout=w, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment, cwd=tmp, **options)
        os.close(w)
        until = time.monotonic() + 60
        while self.p.poll() is None and time.monotonic() < until and fields(self.p.pid).get('NoNewPrivs') != '1':
            time.sleep(.01)             # until it has begun to give up privileges
        while filters and self.p.poll() is None and time.monotonic() < until and fields(self.p.pid).get('Seccomp') != '2':
            time.sleep(.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.communicate(timeout=60)  # until all that it started has ended, too
        os.close(self.r)


def check_status(words, keep, *arguments):
    bits = f'{keep:016x}'
    def has_those(f):
        return f['CapEff'] == f['CapPrm'] == bits and f['CapAmb'] == f'{0:016x}'
    with Kept([*words.split(), *arguments]) as k:
        until = time.monotonic() + 20
        while k.p.poll() is None and not has_those(f := fields(k.p.pid)) and time.monotonic() < until:
            time.sleep(.01)             # doctor gives up one capability after its look at the processes
        if k.p.poll() is not None:
            return ok(False, f'{words} runs until the test has read its privileges', k.p.stderr.read())
        ok(has_those(f), f'{words} has the capabilities {bits}', f)
        ok(int(f['CapBnd'], 16) & ~(keep | LOOK) == 0, f'{words}: its bounding set has at most {bits} and CAP_SYS_PTRACE', f)
        ok(f['NoNewPrivs'] == '1' and (not filters or f['Seccomp'] == '2'), f'{words} sets no_new_privs and a seccomp filter', f)


def await_request(p):
    """Waits until p asks the metadata service. The commands that asked before it have ended."""
    service.settimeout(.1)
    while p.poll() is None:
        try:
            return service.accept()
        except TimeoutError:
            pass


def forget_requests():
    service.setblocking(False)
    try:
        while True:
            service.accept()[0].close()
    except BlockingIOError:
        pass


def look_inside(*arguments):
    """Whether the parent of a waiting command, the same ordinary user, can read its memory (Yama would allow it), and whether it dumps core."""
    r, w = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGQUIT, signal.SIG_DFL)   # shells ignore SIGQUIT for commands that they start with '&'
        os.chdir(other)
        os.setgroups([])
        os.setresgid(OTHER, OTHER, OTHER)
        os.setresuid(OTHER, OTHER, OTHER)
        resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
        forget_requests()
        p = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        asks = await_request(p) if 'init' in arguments else None        # init gives up nothing by itself: its units do
        while not asks and p.poll() is None and fields(p.pid)['NoNewPrivs' if 'token' in arguments else 'Name'] not in ('1', 'sleep'):
            time.sleep(.01)
        try:
            open(f'/proc/{p.pid}/mem', 'rb').close()
            os.write(w, b'mem ')
        except PermissionError:
            os.write(w, b'- ')
        except FileNotFoundError:
            os.write(w, b'ended ')
        p.send_signal(signal.SIGQUIT)
        os.write(w, b'core' if os.WCOREDUMP(os.waitpid(p.pid, 0)[1]) else b'-')
        os._exit(0)
    os.close(w)
    with os.fdopen(r) as f:
        said = f.read().split()
    os.waitpid(child, 0)
    return said


def run(*arguments, extra={}, **options):
    return subprocess.run([nodestrap, *arguments], capture_output=True, text=True, env=environment | extra, timeout=60, **{'cwd': tmp, **options})


def works(what, *arguments, **options):
    p = run(*arguments, **options)
    ok(p.returncode == 0, what, p.returncode, p.stderr)


def check_root():
    source = f'file://{other}/private/config.yaml'
    check_status('token', 0, '--cluster-name', 'x')
    check_status('config check', 0, '-c', 'imds://user-data')
    check_status('config dump', 0, '-c', f'file://{tmp}/config.yaml')
    check_status('plan', READ, '-c', 'imds://user-data')
    check_status('init --dry-run', READ, '-c', 'imds://user-data')
    check_status('doctor', READ, '-c', 'imds://user-data')
    check_status('status', 0, '--root', f'{tmp}/root')
    check_status('status --bundle -', READ | LOOK | LOG)
    check_status('status --bundle', READ | LOOK | LOG | WRITE, f'{other}/private/b.tar.gz')
    check_status('wait', 0, '--root', f'{tmp}/root')
    check_status('config dump', READ, '-c', source)
    check_status('config dump', READ, '-c', f'file://{other}/open')
    check_status('config dump', WRITE, '-c', 'imds://user-data', '-o', f'{other}/private/dumped')

    works('root can check the private file of another user', 'config', 'check', '-c', source)
    works('root can check a file by its name in a private directory of another user', 'config', 'check', '-c', 'file://config.yaml', cwd=f'{other}/private')
    works('root can check a directory with a private file of another user', 'config', 'check', '-c', f'file://{other}/open')
    works('root can sign with the private key of another user', 'config', 'sign', '-k', f'{other}/private/key.pem', '-c', source)
    p = run('token', '--cluster-name', 'x', '--region', 'us-west-2', extra={'AWS_WEB_IDENTITY_TOKEN_FILE': f'{other}/private/empty', 'AWS_ROLE_ARN': 'x'})
    ok(p.returncode == 20 and 'private/empty, which AWS_WEB_IDENTITY_TOKEN_FILE names, is empty' in p.stderr, 'root can read the private AWS token file of another user, and finds it empty', p.stderr)
    works('root can write a dump into the private directory of another user', 'config', 'dump', '-c', source, '-o', f'{other}/private/dumped')
    works('root can write a plan into the private directory of another user', 'plan', '-c', source, *MODEL, '--write-to', f'{other}/private/a/b')
    os.chmod(other, 0o1777)
    with open(f'{other}/his', 'w') as f:
        os.fchown(f.fileno(), OTHER, OTHER)
    works('root can overwrite a file of another user in a sticky directory', 'config', 'dump', '-c', source, '-o', f'{other}/his')

    inside = look_inside(nodestrap, 'token', '--cluster-name', 'x')
    ok(inside == ['-', '-'], 'a process of the same user cannot read the memory of token, and token dumps no core', inside)
    init = [nodestrap, 'init', '--root', f'{other}/node', '-c', 'file:///config.yaml', '-c', 'imds://user-data']
    inside = look_inside(*init)
    ok(inside == ['-', '-'], 'a process of the same user cannot read the memory of init with a NodeConfig, and init dumps no core', inside)
    control = look_inside('/bin/sleep', '60')
    inside, inits = look_inside(nodestrap, 'token', '--cluster-name', 'x', '--development'), look_inside(*init, '--development')
    with open(nodestrap, 'rb') as f:
        if b'__asan_init' in f.read() or os.environ.get('NODESTRAP_TRANSLATED'):        # neither makes core files
            control[1] = '-'
    ok(inside == inits == ['mem', control[1]], 'with --development, the parent reads the memory of token and init', inside, inits, control)


def check_user():
    private = dict(user=OTHER, group=OTHER, extra_groups=[], cwd=f'{other}/private')
    works('an ordinary user can plan with a private file', 'plan', '-c', 'file://config.yaml', *MODEL, **private)
    p = subprocess.run(['bash', '-c', '"$0" config dump -c file://config.yaml -o >(cat >&2)', nodestrap], capture_output=True, text=True, env=environment, **private)
    ok(p.returncode == 0, 'config dump writes to a pipe that the shell of an ordinary user opened', p.stderr)
    p = run('wait', '--root', f'{tmp}/root', '--timeout', '1s', **private)
    ok(p.returncode and 'status.json is not readable, so a failed init goes unnoticed' in p.stderr, 'wait warns an ordinary user that status.json is not readable', p.returncode, p.stderr)


def reports():
    return [(entry.name, entry.stat().st_mtime_ns) for entry in os.scandir('/run/nodestrap')] if os.path.isdir('/run/nodestrap') else []


def check_refusal():
    """A setting that only CAP_SYS_ADMIN may write, and a value that it does not accept."""
    if subprocess.run(['unshare', '-m', 'true'], stderr=subprocess.DEVNULL).returncode:
        return skip('the messages for a missing privilege and for a rejected value differ', 'no mount namespaces here')
    def apply(*before):     # with its own /run, because the tool reports as init does
        alone = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /run && exec "$@"', 'sh']
        return subprocess.run([*alone, *before, arguments.apply_tool], input='set-sysctl kernel.dmesg_restrict with=7\n', capture_output=True, text=True, env=environment)
    hint = "lacks a root privilege: see SystemCallFilter= and CapabilityBoundingSet="
    kept = reports()
    refused = apply('setpriv', '--bounding-set', '-all', '--inh-caps', '-all')
    if 'Read-only' in refused.stderr:
        return skip('the messages for a missing privilege and for a rejected value differ', '/proc/sys is read-only here')
    ok('Operation not permitted' in refused.stderr and hint in refused.stderr, 'the message for a missing privilege names the settings of the unit', refused.stderr)
    other = apply()
    ok('Operation not permitted' in other.stderr or hint not in other.stderr, 'the message for a value that the kernel rejects does not blame a privilege', other.stderr)
    ok(reports() == kept, 'the test does not change the reports of this machine', reports())


arguments = argparse.ArgumentParser()
arguments.add_argument('--nodestrap', required=True)
arguments.add_argument('--apply-tool', required=True)
arguments = arguments.parse_args()
nodestrap = os.path.realpath(arguments.nodestrap)
filters = 'NODESTRAP_TRANSLATED' not in os.environ
if os.geteuid() != 0:
    print('1..0 # SKIP only root has powers to give up')
    sys.exit()
tmp = tempfile.mkdtemp()
try:
    os.chmod(tmp, 0o755)
    nodestrap = shutil.copy(nodestrap, tmp)     # the other user can execute the copy
    os.makedirs(other := f'{tmp}/other')
    os.makedirs(f'{other}/private', 0o700)
    os.makedirs(f'{other}/open')
    os.makedirs(f'{other}/node')
    os.makedirs(f'{tmp}/root/run/nodestrap')
    texts = {f'{tmp}/config.yaml': CONFIG, f'{other}/private/config.yaml': CONFIG, f'{other}/open/config.yaml': CONFIG,
             f'{other}/node/config.yaml': CONFIG, f'{other}/private/key.pem': KEY, f'{other}/private/empty': ''}
    for path, text in texts.items():
        with open(path, 'w', opener=lambda p, f: os.open(p, f, 0o600)) as f:
            f.write(text)
    for path in (other, f'{other}/private', f'{other}/node', *(p for p in texts if p.startswith(other))):
        os.chown(path, OTHER, OTHER)
    with open(f'{tmp}/root/run/nodestrap/status.json', 'w') as f:
        os.fchmod(f.fileno(), 0o640)
        f.write('{"schema": 1, "verdict": "ok", "text": "well", "runs": {}}')
    lock = open(f'{tmp}/root/run/nodestrap/lock', 'w')
    fcntl.flock(lock, fcntl.LOCK_EX)
    service = socket.create_server(('127.0.0.1', 0))
    service.settimeout(60)
    environment = {'PATH': os.environ['PATH'], 'AWS_EC2_METADATA_SERVICE_ENDPOINT': 'http://127.0.0.1:%d' % service.getsockname()[1]}
    environment |= {k: v for k, v in os.environ.items() if k.endswith('SAN_OPTIONS')}
    check_root()
    check_user()
    check_refusal()
finally:
    shutil.rmtree(tmp)
print(f'1..{count}')
