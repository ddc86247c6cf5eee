# SPDX-License-Identifier: Apache-2.0
"""AWS Signature Version 4, checked as the services check it; written from its description alone:
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html

keys: {id: [id, secret, session token or ""]}. Each check returns None, or the code of the error that the service would answer with.
"""
import calendar
import hashlib
import hmac
import time
import urllib.parse

ALGORITHM = 'AWS4-HMAC-SHA256'


def stamp_seconds(stamp):
    return calendar.timegm(time.strptime(stamp, '%Y%m%dT%H%M%SZ'))


def signature(secret, scope, stamp, canonical):
    key = b'AWS4' + secret.encode()
    for part in scope.split('/'):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    text = '\n'.join([ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def canonical_request(method, path, query, names, headers, body):
    return '\n'.join([method, path, query, *(f'{n}:{" ".join(headers.get(n, "").split())}' for n in names), '', ';'.join(names),
                      hashlib.sha256(body).hexdigest()])


def check_header(path, headers, body, keys, clock, service):
    """A POST whose signature stands in its Authorization header."""
    try:
        kind, rest = headers['authorization'].split(' ', 1)
        fields = dict(f.strip().split('=', 1) for f in rest.split(','))
        key_id, day, region, of, end = fields['Credential'].split('/')
        stamp = headers['x-amz-date']
        sent = stamp_seconds(stamp)
    except (KeyError, ValueError):
        return 'MissingAuthenticationToken'
    if key_id not in keys:
        return 'AuthFailure'
    if abs(sent - clock) > 300:
        return 'RequestExpired' if sent < clock else 'SignatureDoesNotMatch'
    names = fields['SignedHeaders'].split(';')
    if kind != ALGORITHM or end != 'aws4_request' or of != service or day != stamp[:8] or names != sorted(names) \
            or 'host' not in names or 'x-amz-date' not in names:
        return 'IncompleteSignature'
    if headers.get('x-amz-security-token', '') != keys[key_id][2]:
        return 'AuthFailure'
    canonical = canonical_request('POST', path, '', names, headers, body)
    good = signature(keys[key_id][1], f'{day}/{region}/{service}/{end}', stamp, canonical)
    return None if hmac.compare_digest(good, fields['Signature']) else 'AuthFailure'


def check_presigned(url, headers, keys, clock, lifetime=900):
    """A GET whose signature stands in its query; headers are those that it would be sent with, but host. STS itself does not go by
    X-Amz-Expires, it gives 15 minutes."""
    parts = urllib.parse.urlsplit(url)
    pairs = [p.partition('=')[::2] for p in parts.query.split('&')]
    fields = {k: urllib.parse.unquote(v) for k, v in pairs}
    headers = {**headers, 'host': parts.netloc.lower()}
    try:
        key_id, day, region, service, end = fields['X-Amz-Credential'].split('/')
        stamp = fields['X-Amz-Date']
        sent = stamp_seconds(stamp)
        names = fields['X-Amz-SignedHeaders'].split(';')
        given = fields['X-Amz-Signature']
    except (KeyError, ValueError):
        return 'MissingAuthenticationToken'
    if len(fields) != len(pairs) or fields.get('X-Amz-Algorithm') != ALGORITHM or end != 'aws4_request' or service != 'sts' \
            or day != stamp[:8] or names != sorted(names) or not 0 < int(fields.get('X-Amz-Expires', 0)) <= lifetime:
        return 'IncompleteSignature'
    if key_id not in keys or fields.get('X-Amz-Security-Token', '') != keys[key_id][2]:
        return 'InvalidClientTokenId'
    if not -300 <= clock - sent <= lifetime:
        return 'SignatureDoesNotMatch'
    query = '&'.join(f'{k}={v}' for k, v in sorted(pairs) if k != 'X-Amz-Signature')
    canonical = canonical_request('GET', parts.path, query, names, headers, b'')
    good = signature(keys[key_id][1], f'{day}/{region}/{service}/{end}', stamp, canonical)
    return None if hmac.compare_digest(good, given) else 'SignatureDoesNotMatch'
