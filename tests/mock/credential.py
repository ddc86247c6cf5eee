#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the API server of an EKS cluster does with a token (github.com/kubernetes-sigs/aws-iam-authenticator): undoes it, looks at the
URL inside, and has STS say who signed it; here the signature is checked with the keys given.

usage: credential.py CLUSTER KEY-ID:SECRET[:SESSION-TOKEN] [VERSION]      reads what `nodestrap token` prints
Prints the host that the URL names; exit 1 and the reason for what kubelet, or the cluster, would not take. VERSION: "v1beta1".
"""
import base64
import datetime
import json
import sys
import time
import urllib.parse

import sigv4

PREFIX = 'k8s-aws-v1.'
ALLOWED = {'Action', 'Version', 'X-Amz-Algorithm', 'X-Amz-Credential', 'X-Amz-Date', 'X-Amz-Expires', 'X-Amz-Security-Token',
           'X-Amz-SignedHeaders', 'X-Amz-Signature'}


def url_of(token):
    """The URL in a token; ValueError when it is none."""
    if not token.startswith(PREFIX):
        raise ValueError(f'the token does not begin with {PREFIX}')
    text = token[len(PREFIX):]
    if '=' in text or not set(text) <= set('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'):
        raise ValueError('the token is not base64 for URLs without padding')
    return base64.urlsafe_b64decode(text + '=' * (-len(text) % 4)).decode()


def reason_against(token, cluster, keys, clock):
    """None, or why the cluster would answer 401."""
    try:
        url = url_of(token)
    except ValueError as e:
        return str(e)
    parts = urllib.parse.urlsplit(url)
    fields = dict(urllib.parse.parse_qsl(parts.query, strict_parsing=True))
    if set(fields) - ALLOWED or fields.get('Action') != 'GetCallerIdentity' or fields.get('Version') != '2011-06-15' or parts.path != '/':
        return f'the URL asks for something else: {url}'
    if fields.get('X-Amz-Expires') != '60':
        return 'X-Amz-Expires is not 60'
    if fields.get('X-Amz-SignedHeaders') != 'host;x-k8s-aws-id':
        return 'the id of the cluster is not signed'
    return sigv4.check_presigned(url, {'x-k8s-aws-id': cluster}, keys, clock)


def main():
    cluster, key, *version = sys.argv[1:]
    key_id, secret, session = (key.split(':', 2) + [''])[:3]
    text = sys.stdin.read()
    credential = json.loads(text)
    if text != json.dumps(credential, indent=4) + '\n\n':
        sys.exit('not in the form in which the AWS CLI prints it')
    if list(credential) != ['kind', 'apiVersion', 'spec', 'status'] or credential['kind'] != 'ExecCredential' or credential['spec'] != {} \
            or credential['apiVersion'] != 'client.authentication.k8s.io/' + (version or ['v1beta1'])[0]:
        sys.exit(f'not the ExecCredential that was asked for: {credential["apiVersion"]}')
    until = datetime.datetime.strptime(credential['status']['expirationTimestamp'], '%Y-%m-%dT%H:%M:%S%z').timestamp()
    url = url_of(credential['status']['token'])
    fields = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
    if until - sigv4.stamp_seconds(fields['X-Amz-Date']) != 14 * 60:
        sys.exit('does not expire 14 minutes after its signature')
    sys.exit(reason_against(credential['status']['token'], cluster, {key_id: [key_id, secret, session]}, time.time())
             or print(urllib.parse.urlsplit(url).netloc))


if __name__ == '__main__':
    main()
