#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the signatures that test-sigv4.c expects, from the description of Signature Version 4 alone."""
import hashlib
import hmac

SECRET = 'not/a+secret/but=long+enough/to/test0001'


def sign(method, query, headers, body, region, service, date):
    names = ';'.join(n for n, _ in headers)
    canonical = '\n'.join([method, '/', query, *(f'{n}:{v}' for n, v in headers), '', names, hashlib.sha256(body.encode()).hexdigest()])
    scope = f'{date[:8]}/{region}/{service}/aws4_request'
    text = f'AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}'
    key = ('AWS4' + SECRET).encode()
    for part in scope.split('/') + [text]:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()


print('POST', sign('POST', '', [('content-type', 'application/x-www-form-urlencoded; charset=utf-8'),
                                ('host', 'ec2.us-west-2.amazonaws.com'), ('x-amz-date', '20260102T030405Z'),
                                ('x-amz-security-token', 'tok//en+==')],
                   'Action=DescribeInstances&InstanceId.1=i-0123456789abcdef0&Version=2016-11-15', 'us-west-2', 'ec2', '20260102T030405Z'))
print('GET', sign('GET', 'Action=GetCallerIdentity&Version=2011-06-15', [('host', 'sts.eu-central-1.amazonaws.com'),
                  ('x-amz-date', '20281231T235959Z'), ('x-k8s-aws-id', 'a cluster name')], '', 'eu-central-1', 'sts', '20281231T235959Z'))
