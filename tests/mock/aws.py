#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The services that nodestrap asks, on addresses of our choice: instance metadata (version 2 only), the Query APIs of EC2 and STS, and
the credential endpoint of a container.

usage: aws.py [--imds DIR] [--listen ADDRESS:PORT] [--ec2-listen ADDRESS:PORT] [OPTION]...

Prints "imds ADDRESS:PORT", then "ec2 …", "sts …" and "container …" for those that there are (one line each, port 0 resolved) when it
listens, then serves until killed.
  --imds DIR            answer /latest/X from DIR/latest/X; a directory is answered by its listing, as IMDS does. What DIR lacks
                        is 404, but for the role's credentials, which are made up unless DIR has meta-data/iam or --no-role is
                        given. Without --imds: an ordinary p5.48xlarge without user data
  --user-data FILE      serve FILE as the user data, whatever DIR says
  --listen A:P          of the metadata service (127.0.0.1:0); "[::1]:0" for IPv6
  --ec2-listen A:P      of the EC2 API; without it there is none
  --sts-listen A:P      of STS: AssumeRole, AssumeRoleWithWebIdentity (token: "identity") and presigned GetCallerIdentity
  --container-listen A:P   of a container's endpoint: /v1/credentials, for who sends --container-token TOKEN, if that is given
  --ec2-name NAME       PrivateDnsName of every instance (default: meta-data/local-hostname, or made from local-ipv4)
  --eni TYPE=ENIS,ADDRESSES   what DescribeInstanceTypes says of TYPE (any other type: InvalidInstanceType)
  --interface MAC[,KEY=VALUE]...   one that DescribeNetworkInterfaces knows, and its tags; without it those that the metadata service
                        lists, without tags
  --no-role             no instance profile
  --tls CERT:KEY        the EC2 API speaks TLS with these PEM files
  --faults-while FILE   faults hold as long as FILE is there
  --log FILE            a line for each request: SECONDS SERVICE CONNECTION METHOD PATH-OR-ACTION STATUS
  --overlaps FILE       a line for each EC2 request that comes while another one waits for its answer
  --fault [imds:|ec2:|sts:|container:]KIND[=VALUE][*COUNT][@PATH]   may be given often; COUNT requests (default: all) whose path begins with PATH,
                        or matches it where it has a * (or EC2 action is PATH) get it; faults are taken in the order given, delays go with others
    all:   delay=SECONDS   hold=FILE (no answer as long as FILE is there; the log says "held" before)   status=CODE   redirect   silent (no answer)   hang (half an answer, then nothing)
           close (half an answer, then closed)   refuse (closed without an answer)   garbage (no HTTP)
           short / long (Content-Length says less / more than is sent)   chunked   until-close (no length, then closed)
           no-keepalive (Connection: close)   drop (closed after the answer without saying so)   surplus (bytes behind the answer)
           no-date (an answer without the Date header)
    imds:  big=BYTES (a body of that size)   bad-token (a token with a line end in it)   text=TEXT (that instead)
    ec2:   throttle   unauthorized   authfailure   notfound   expired (the first credentials handed out are)   empty (no name yet)
           skew=SECONDS (EC2's clock is that much ahead; with *COUNT until that request, which finds it right)   not-xml   error=CODE   retry-after=SECONDS (in that header, beside others)
    sts:   not-xml   error=CODE   expired and skew=SECONDS as for ec2        container: body=TEXT
EC2 and STS check the signature (Version 4) of each request with the credentials that the metadata service hands out, or those
of --key ID:SECRET[:TOKEN], and the date against their clock: 300 s either way, as AWS does. Who assumes the role of
--role-arn ARN:ID:SECRET:TOKEN gets those.
"""
import argparse
import email.utils
import fnmatch
import json
import os
import socket
import ssl
import sys
import threading
import time
import urllib.parse

import sigv4

TTL = 'x-aws-ec2-metadata-token-ttl-seconds'
lock = threading.Lock()


class Fault:
    def __init__(self, text):
        self.service, rest = (text.split(':', 1) if text.split(':')[0] in ('imds', 'ec2', 'sts', 'container') else ('imds', text))
        rest, _, self.path = rest.partition('@')
        rest, _, count = rest.partition('*')
        self.kind, _, self.value = rest.partition('=')
        self.left = int(count) if count else None

    def takes(self, service, path):
        fits = fnmatch.fnmatchcase(path, self.path) if '*' in self.path else path.startswith(self.path)
        if self.service != service or self.left == 0 or not fits or (options.faults_while and not os.path.exists(options.faults_while)):
            return False
        if self.left is not None:
            self.left -= 1
        return True


def faults_for(service, path):
    """Delays and ways of sending that apply, and the first fault that changes the answer."""
    found = {}
    with lock:
        for f in options.fault:
            kind = 'framing' if f.kind in FRAMINGS else f.kind if f.kind in ('delay', 'hold', 'skew', 'retry-after') else 'answer'
            if kind not in found and f.takes(service, path):
                found[kind] = f
    return found


FRAMINGS = ('silent', 'hang', 'close', 'refuse', 'garbage', 'short', 'long', 'chunked', 'until-close', 'no-keepalive', 'drop', 'surplus', 'no-date')


def send(conn, code, body, headers, framing):
    """Returns whether the connection goes on."""
    head = f'HTTP/1.1 {code} X\r\nServer: EC2ws\r\n'
    if framing != 'no-date':
        head += f'Date: {email.utils.formatdate(now(), usegmt=True)}\r\n'
    head += ''.join(f'{k}: {v}\r\n' for k, v in headers)
    if framing == 'silent':
        time.sleep(3600)
    if framing == 'refuse':
        return False
    if framing == 'garbage':
        conn.sendall(b'\x00\x01SSH-2.0-mock\r\n')
        return False
    if framing == 'chunked':
        third = max(1, len(body) // 3)
        chunks = [body[i:i + third] for i in range(0, len(body), third)]
        body = b''.join(b'%x;ext=1\r\n%s\r\n' % (len(c), c) for c in chunks) + b'0\r\nX-Trailer: 1\r\n\r\n'
        head += 'Transfer-Encoding: chunked\r\n'
    elif framing == 'no-keepalive':
        head += f'Content-Length: {len(body)}\r\nConnection: close\r\n'
    elif framing != 'until-close':
        length = len(body) + {'short': -1, 'long': 7}.get(framing, 0)
        head += f'Content-Length: {max(0, length)}\r\n'
    data = head.encode() + b'\r\n' + body
    if framing in ('hang', 'close'):
        conn.sendall(data[:len(data) - (len(body) + 1) // 2])
        if framing == 'hang':
            time.sleep(3600)
        return False
    conn.sendall(data + (b'HTTP/1.1 200 X\r\n' if framing == 'surplus' else b''))
    return framing not in ('no-keepalive', 'until-close', 'drop', 'long')


def now():
    return time.time() + sum(float(f.value) for f in options.fault if f.kind == 'skew' and f.left != 0)


# ---- instance metadata ----
TOKENS = set()
IDENTITY = {'accountId': '123456789012', 'architecture': 'x86_64', 'availabilityZone': 'us-west-2a', 'imageId': 'ami-0mock',
            'instanceId': 'i-0123456789abcdef0', 'instanceType': 'p5.48xlarge', 'privateIp': '10.0.0.10', 'region': 'us-west-2',
            'version': '2017-09-30'}
MAC = '02:00:00:00:00:01'
BUILT_IN = {
    'meta-data/instance-id': 'i-0123456789abcdef0', 'meta-data/instance-type': 'p5.48xlarge', 'meta-data/mac': MAC,
    'meta-data/local-ipv4': '10.0.0.10', 'meta-data/local-hostname': 'ip-10-0-0-10.us-west-2.compute.internal',
    'meta-data/services/domain': 'amazonaws.com', 'meta-data/placement/region': 'us-west-2',
    'meta-data/placement/availability-zone': 'us-west-2a', 'dynamic/instance-identity/document': json.dumps(IDENTITY),
    f'meta-data/network/interfaces/macs/{MAC}/device-number': '0',
    f'meta-data/network/interfaces/macs/{MAC}/vpc-ipv4-cidr-blocks': '10.0.0.0/16'}
ROLES = 'meta-data/iam/security-credentials/'
keys_made = 0


def keys(generation):
    if options.key:
        parts = options.key.split(':', 2)
        return parts + [''] * (3 - len(parts))
    return [f'ASIAMOCK{generation:08d}', f'mock/secret+{generation}', f'mock//session+token=={generation}']


def role_credentials():
    global keys_made
    with lock:
        keys_made += 1
        key, secret, token = keys(keys_made)
    return json.dumps({'Code': 'Success', 'Type': 'AWS-HMAC', 'AccessKeyId': key, 'SecretAccessKey': secret, 'Token': token,
                       'LastUpdated': '2026-01-01T00:00:00Z', 'Expiration': '2036-01-01T00:00:00Z'}, indent=2).encode()


def from_tree(path):
    if options.imds is None:
        return BUILT_IN[path].encode() if path in BUILT_IN else None
    root = os.path.realpath(options.imds + '/latest')
    p = os.path.realpath(root + '/' + path)
    if p != root and not p.startswith(root + '/'):
        return None
    if os.path.isdir(p):
        return '\n'.join(n + '/' * os.path.isdir(p + '/' + n) for n in sorted(os.listdir(p))).encode()
    if not os.path.isfile(p):
        return None
    with open(p, 'rb') as f:
        return f.read()


def tree_keys():
    """The credentials that DIR itself has, by their id."""
    if options.imds is None:
        return {}
    roles = (from_tree(ROLES) or b'').decode().split()
    found = [json.loads(from_tree(ROLES + role)) for role in roles]
    return {f['AccessKeyId']: [f['AccessKeyId'], f['SecretAccessKey'], f.get('Token', '')] for f in found}


def metadata(path):
    path = path.split('?')[0].removeprefix('/latest/')
    if path == 'user-data' and options.user_data:
        with open(options.user_data, 'rb') as f:
            return f.read()
    found = from_tree(path)
    if found is None and path.startswith(ROLES.rstrip('/')) and not options.no_role and from_tree('meta-data/iam') is None:
        return {ROLES.rstrip('/'): lambda: b'mock-role', ROLES: lambda: b'mock-role',
                ROLES + 'mock-role': role_credentials}.get(path, lambda: None)()
    return found


def imds(method, path, headers, body, fault):
    if fault and fault.kind == 'status':
        return int(fault.value), b'', []
    if fault and fault.kind == 'redirect':
        return 302, b'', [('Location', 'http://127.0.0.1:9/latest/user-data')]
    if method == 'PUT':
        ttl = headers.get(TTL, '')
        if path != '/latest/api/token' or not ttl.isdigit() or not 1 <= int(ttl) <= 21600 or 'x-forwarded-for' in headers:
            return 400, b'', []
        token = f'AQAEAmock{len(TOKENS)}TOKEN=='
        TOKENS.add(token)
        if fault and fault.kind == 'bad-token':
            token = 'bad\r\nX-Injected: 1'
        return 200, token.encode(), [(TTL, ttl)]
    if method != 'GET':
        return 405, b'', []
    if headers.get('x-aws-ec2-metadata-token') not in TOKENS:
        return 401, b'', []
    if fault and fault.kind == 'big':
        return 200, b'#' * int(fault.value), []
    if fault and fault.kind == 'text':
        return 200, fault.value.encode(), []
    found = metadata(path)
    return (404, b'', []) if found is None else (200, found, [('Content-Type', 'text/plain')])


# ---- EC2 ----
XMLNS = 'xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"'
STATUS = {'RequestLimitExceeded': 503, 'UnauthorizedOperation': 403, 'AuthFailure': 401, 'SignatureDoesNotMatch': 403,
          'InternalError': 500}
ANSWERS = {'throttle': 'RequestLimitExceeded', 'unauthorized': 'UnauthorizedOperation', 'authfailure': 'AuthFailure',
           'notfound': 'InvalidInstanceID.NotFound'}


def ec2_error(code, message='The mock says no.'):
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message>' \
           '</Error></Errors><RequestID>7a62c49f-347e-4fc4-9331-6e8e00000000</RequestID></Response>'
    return STATUS.get(code, 400), text.encode(), [('Content-Type', 'text/xml;charset=UTF-8')]


def ec2_answer(name, inner):
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name}Response {XMLNS}>\n  <requestId>7a62c49f</requestId>\n{inner}</{name}Response>'
    return 200, text.encode(), [('Content-Type', 'text/xml;charset=UTF-8')]


def known_keys():
    """All credentials that were handed out, or may be."""
    known = tree_keys()
    for n in range(1, keys_made + 1 + bool(options.key)):
        known[keys(n)[0]] = keys(n)
    if options.role:
        known[options.role[1]] = options.role[1:]
    return known


def private_name():
    if options.ec2_name is not None:
        return options.ec2_name
    name, ipv4 = from_tree('meta-data/local-hostname'), from_tree('meta-data/local-ipv4')
    return name.decode().strip() if name else f'ip-{(ipv4 or b"10.0.0.10").decode().strip().replace(".", "-")}.us-west-2.compute.internal'


def describe_instances(form, fault):
    name = '' if fault and fault.kind == 'empty' else private_name()
    return ec2_answer('DescribeInstances', f'''  <reservationSet><item><reservationId>r-1</reservationId><instancesSet><item>
    <instanceId>{form.get("InstanceId.1", "")}</instanceId><privateDnsName>{name}</privateDnsName><dnsName/>
    <networkInterfaceSet><item><privateDnsName>wrong.example</privateDnsName></item></networkInterfaceSet>
  </item></instancesSet></item></reservationSet>
''')


def describe_instance_types(form, fault):
    limits = dict(e.split('=') for e in options.eni)
    if form.get('InstanceType.1') not in limits:
        return ec2_error('InvalidInstanceType')
    enis, addresses = limits[form['InstanceType.1']].split(',')
    return ec2_answer('DescribeInstanceTypes', f'''  <instanceTypeSet><item><instanceType>{form["InstanceType.1"]}</instanceType><networkInfo>
    <defaultNetworkCardIndex>0</defaultNetworkCardIndex><ipv4AddressesPerInterface>{addresses}</ipv4AddressesPerInterface>
    <maximumNetworkInterfaces>99</maximumNetworkInterfaces><networkCards>
      <item><maximumNetworkInterfaces>98</maximumNetworkInterfaces><networkCardIndex>1</networkCardIndex></item>
      <item><maximumNetworkInterfaces>{enis}</maximumNetworkInterfaces><networkCardIndex>0</networkCardIndex></item>
    </networkCards></networkInfo></item></instanceTypeSet>
''')


def describe_network_interfaces(form, fault):
    """Knows the two filters that are asked for, and these alone."""
    filters = {form.get(f'Filter.{n}.Name'): form.get(f'Filter.{n}.Value.1') for n in (1, 2)}
    if set(filters) != {'attachment.instance-id', 'mac-address'} or any(k.startswith('Filter.3') or '.Value.2' in k for k in form):
        return ec2_error('InvalidParameterValue')
    known = {i.split(',')[0]: [t.split('=') for t in i.split(',')[1:]] for i in options.interface}
    if not known:
        listed = from_tree('meta-data/network/interfaces/macs') or MAC.encode()
        known = {line.strip('/'): [] for line in listed.decode().split()}
    mac = filters['mac-address']
    items = ''
    if mac in known and filters['attachment.instance-id'] == from_tree('meta-data/instance-id').decode() and not (fault and fault.kind == 'empty'):
        tags = ''.join(f'<item><key>{k}</key>{f"<value>{v}</value>" if v else "<value/>"}</item>' for k, v in known[mac])
        items = f'<item><networkInterfaceId>eni-1</networkInterfaceId><macAddress>{mac}</macAddress><tagSet>{tags}</tagSet></item>'
    return ec2_answer('DescribeNetworkInterfaces', f'  <networkInterfaceSet>{items}</networkInterfaceSet>\n')


ACTIONS = {'DescribeInstances': describe_instances, 'DescribeInstanceTypes': describe_instance_types,
           'DescribeNetworkInterfaces': describe_network_interfaces}


def ec2(method, path, headers, body, fault):
    form = dict(urllib.parse.parse_qsl(body.decode()))
    if fault and fault.kind == 'status':
        return int(fault.value), b'', []
    if fault and fault.kind == 'redirect':
        return 307, b'', [('Location', 'http://127.0.0.1:9/')]
    if fault and fault.kind == 'not-xml':
        return 200, b'<html>welcome', []
    if fault and fault.kind == 'error':
        return ec2_error(fault.value, f'secret: {headers.get("x-amz-security-token")}')
    if fault and fault.kind == 'expired' and keys(1)[0] in headers.get('authorization', ''):
        return ec2_error('RequestExpired')
    if fault and fault.kind in ANSWERS:
        return ec2_error(ANSWERS[fault.kind])
    wrong = sigv4.check_header(path, headers, body, known_keys(), now(), 'ec2')
    if wrong:
        return ec2_error(wrong)
    if method != 'POST' or form.get('Version') != '2016-11-15' or form.get('Action') not in ACTIONS:
        return ec2_error('InvalidAction')
    return ACTIONS[form['Action']](form, fault)


# ---- STS ----
def sts_error(code):
    status = 403 if code in ('AccessDenied', 'ExpiredToken', 'SignatureDoesNotMatch', 'InvalidClientTokenId', 'RegionDisabledException') else 400
    text = f'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>{code}</Code>' \
           '<Message>The mock says no, secret session+token.</Message></Error><RequestId>4d5c1e2a-mock</RequestId></ErrorResponse>'
    return status, text.encode(), [('Content-Type', 'text/xml')]


def sts_credentials(action):
    key, secret, token = options.role[1:]
    return 200, f'''<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result>
  <AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/mock/session</Arn></AssumedRoleUser>
  <Credentials><AccessKeyId>{key}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey><SessionToken>{token}</SessionToken>
  <Expiration>2036-01-01T00:00:00Z</Expiration></Credentials></{action}Result></{action}Response>'''.encode(), [('Content-Type', 'text/xml')]


def caller_identity(headers):
    """The instance, whose role has the name that the metadata service says; as aws-iam-authenticator asks for it."""
    if headers.get('accept') != 'application/json':
        return b'<GetCallerIdentityResponse/>'
    role = (from_tree(ROLES) or b'mock-role').decode().split()[0]
    instance = from_tree('meta-data/instance-id').decode().strip()
    account = json.loads(from_tree('dynamic/instance-identity/document'))['accountId']
    return json.dumps({'GetCallerIdentityResponse': {'GetCallerIdentityResult': {
        'Account': account, 'Arn': f'arn:aws:sts::{account}:assumed-role/{role}/{instance}', 'UserId': f'AROAMOCKMOCKMOCKMOCK:{instance}'},
        'ResponseMetadata': {'RequestId': '4d5c1e2a-mock'}}}).encode()


def sts(method, path, headers, body, fault):
    if fault and fault.kind == 'status':
        return int(fault.value), b'', []
    if fault and fault.kind == 'redirect':
        return 307, b'', [('Location', 'http://127.0.0.1:9/')]
    if fault and fault.kind == 'expired' and keys(1)[0] in headers.get('authorization', ''):
        return sts_error('ExpiredToken')
    if fault and fault.kind == 'not-xml':
        return 200, b'<html>welcome', []
    if fault and fault.kind == 'error':
        return sts_error(fault.value)
    if method == 'GET':
        wrong = sigv4.check_presigned(f'http://{headers["host"]}{path}', headers, known_keys(), now())
        return sts_error(wrong) if wrong else (200, caller_identity(headers), [('Content-Type', 'application/json')])
    form = dict(urllib.parse.parse_qsl(body.decode(), strict_parsing=True))
    action = form.get('Action')
    if not options.role or form.get('RoleArn') != options.role[0] or form.get('Version') != '2011-06-15' or not form.get('RoleSessionName'):
        return sts_error('AccessDenied')
    if action == 'AssumeRoleWithWebIdentity' and 'authorization' not in headers:
        return sts_credentials(action) if form.get('WebIdentityToken') == 'identity' else sts_error('InvalidIdentityToken')
    if action != 'AssumeRole' or form['RoleSessionName'] != 'EKSGetTokenAuth':
        return sts_error('InvalidAction')
    wrong = sigv4.check_header(path, headers, body, known_keys(), now(), 'sts')
    return sts_error(wrong) if wrong else sts_credentials(action)


# ---- a container's endpoint ----
def container(method, path, headers, body, fault):
    if fault and fault.kind == 'status':
        return int(fault.value), b'{"code": "mock", "message": "secret session+token"}', []
    if fault and fault.kind == 'body':
        return 200, fault.value.encode(), []
    if method != 'GET' or path.split('?')[0] != '/v1/credentials':
        return 404, b'{}', []
    if options.container_token and headers.get('authorization') != options.container_token:
        return 401, b'{}', []
    return 200, role_credentials(), [('Content-Type', 'application/json')]


SERVICES = {'imds': imds, 'ec2': ec2, 'sts': sts, 'container': container}


# ---- the server ----
def read_request(conn, buffer):
    while b'\r\n\r\n' not in buffer:
        more = conn.recv(65536)
        if not more:
            return None
        buffer += more
    head, _, buffer = buffer.partition(b'\r\n\r\n')
    first, *lines = head.decode('latin-1').split('\r\n')
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(':') for line in lines)}
    length = int(headers.get('content-length', 0))
    while len(buffer) < length:
        more = conn.recv(65536)
        if not more:
            return None
        buffer += more
    return first.split(' ')[:2], headers, buffer[:length], buffer[length:]


def note(service, number, method, what, code):
    if options.log:
        with lock, open(options.log, 'a') as f:
            f.write(f'{time.time():.3f} {service} c{number} {method} {what} {code}\n')


waiting = 0      # EC2 requests without an answer


def note_overlap(what):
    global waiting
    with lock:
        waiting += 1
        if waiting > 1 and options.overlaps:
            with open(options.overlaps, 'a') as f:
                f.write(f'{time.time():.3f} {what} beside {waiting - 1}\n')


def serve_connection(conn, service, number):
    global waiting
    buffer = b''
    with conn:
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while (request := read_request(conn, buffer)):
            (method, path), headers, body, buffer = request
            query = urllib.parse.urlsplit(path).query if method == 'GET' else body.decode('latin-1')
            what = path if service in ('imds', 'container') else dict(urllib.parse.parse_qsl(query)).get('Action', '-')
            if service == 'ec2':
                note_overlap(what)
            found = faults_for(service, what)
            if 'delay' in found:
                time.sleep(float(found['delay'].value))
            if 'hold' in found and os.path.exists(found['hold'].value):
                note(service, number, method, what, 'held')
                while os.path.exists(found['hold'].value):
                    time.sleep(0.05)
            code, text, more = SERVICES[service](method, path, headers, body, found.get('answer'))
            if 'retry-after' in found:
                more = more + [('Retry-After', found['retry-after'].value)]
            framing = found['framing'].kind if 'framing' in found else None
            note(service, number, method, what, framing if framing in ('silent', 'hang', 'close', 'refuse', 'garbage') else code)
            if service == 'ec2':
                with lock:
                    waiting -= 1
            if not send(conn, code, text, more, framing):
                return


def guarded(conn, service, number):
    try:
        if tls and service in ('ec2', 'sts'):
            conn = tls.wrap_socket(conn, server_side=True)
        serve_connection(conn, service, number)
    except OSError:
        pass


def listen(address, service):
    host, _, port = address.rpartition(':')
    host = host.strip('[]')
    s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((host, int(port)))
    s.listen(128)
    print(service, f'[{host}]:{s.getsockname()[1]}' if ':' in host else f'{host}:{s.getsockname()[1]}', flush=True)

    def loop():
        number = 0
        while True:
            conn, _ = s.accept()
            number += 1
            threading.Thread(target=guarded, args=(conn, service, number), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()


def main():
    global options, tls
    p = argparse.ArgumentParser(usage=__doc__.split('\n\n', 1)[1], add_help=False)
    p.add_argument('--imds')
    p.add_argument('--user-data')
    p.add_argument('--listen', default='127.0.0.1:0')
    p.add_argument('--ec2-listen')
    p.add_argument('--sts-listen')
    p.add_argument('--container-listen')
    p.add_argument('--container-token')
    p.add_argument('--role-arn')
    p.add_argument('--ec2-name')
    p.add_argument('--eni', action='append', default=[])
    p.add_argument('--interface', action='append', default=[])
    p.add_argument('--no-role', action='store_true')
    p.add_argument('--key')
    p.add_argument('--tls')
    p.add_argument('--log')
    p.add_argument('--overlaps')
    p.add_argument('--faults-while')
    p.add_argument('--fault', action='append', default=[], type=Fault)
    p.add_argument('-h', '--help', action='store_true')
    options = p.parse_args()
    if options.help:
        sys.exit(__doc__)
    options.role = options.role_arn and options.role_arn.rsplit(':', 3)
    tls = options.tls and ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    if tls:
        tls.load_cert_chain(*options.tls.split(':'))
    listen(options.listen, 'imds')
    for service in 'ec2', 'sts', 'container':
        if getattr(options, service + '_listen'):
            listen(getattr(options, service + '_listen'), service)
    threading.Event().wait()


main()
