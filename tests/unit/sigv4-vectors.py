#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the signatures that test-sigv4.c expects, from the description of Signature Version 4 alone."""
import hashlib
import hmac
from urllib.parse import quote

SECRET = 'not/a+secret/but=long+enough/to/test0001'


def sign(method, query, headers, body, region, service, date, path='/'):
    names = ';'.join(n for n, _ in headers)
    canonical = '\n'.join([method, path, query, *(f'{n}:{" ".join(v.split())}' for n, v in headers), '', names,
                           hashlib.sha256(body.encode()).hexdigest()])
    scope = f'{date[:8]}/{region}/{service}/aws4_request'
    text = f'AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}'
    key = ('AWS4' + SECRET).encode()
    for part in scope.split('/') + [text]:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()


def presign(own, headers, region, date, token=None, expires=60, key='AKIDNODESTRAP0001', path='/'):
    """The signature alone: test-sigv4.c has the query before it."""
    fields = own + [('X-Amz-Algorithm', 'AWS4-HMAC-SHA256'), ('X-Amz-Credential', f'{key}/{date[:8]}/{region}/sts/aws4_request'),
                    ('X-Amz-Date', date), ('X-Amz-Expires', str(expires)), ('X-Amz-SignedHeaders', ';'.join(n for n, _ in headers))]
    if token is not None:
        fields.append(('X-Amz-Security-Token', token))
    query = '&'.join(sorted(f'{k}={quote(v, safe="-_.~")}' for k, v in fields))
    return sign('GET', query, headers, '', region, 'sts', date, path)


print('POST', sign('POST', '', [('content-type', 'application/x-www-form-urlencoded; charset=utf-8'),
                                ('host', 'ec2.us-west-2.amazonaws.com'), ('x-amz-date', '20260102T030405Z'),
                                ('x-amz-security-token', 'tok//en+==')],
                   'Action=DescribeInstances&InstanceId.1=i-0123456789abcdef0&Version=2016-11-15', 'us-west-2', 'ec2', '20260102T030405Z'))
print('GET', sign('GET', 'Action=GetCallerIdentity&Version=2011-06-15', [('host', 'sts.eu-central-1.amazonaws.com'),
                  ('x-amz-date', '20281231T235959Z'), ('x-k8s-aws-id', 'a cluster name')], '', 'eu-central-1', 'sts', '20281231T235959Z'))
IDENTITY = [('Action', 'GetCallerIdentity'), ('Version', '2011-06-15')]
print('presigned', presign(IDENTITY, [('host', 'sts.us-west-2.amazonaws.com'), ('x-k8s-aws-id', 'demo')], 'us-west-2', '20260102T030405Z'))
print('with a session token', presign(IDENTITY, [('host', 'sts.cn-north-1.amazonaws.com.cn'), ('x-k8s-aws-id', ' a  cluster \t name ')], 'cn-north-1',
                                      '20240229T235959Z', token='tok//en+=='))
print('without an own query', presign([], [('host', 'localhost:8443')], 'us-west-2', '20260102T030405Z', expires=604800, path='/base'))
print('own query behind ours in the alphabet', presign([('Zone', 'a b'), ('a', '~é')], [('host', 'h')], 'us-west-2', '20260102T030405Z', token='t'))
