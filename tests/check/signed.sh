#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Signed configurations from outside. openssl(1) and the parser of cloud-init accept the output of config sign. With keys in trusted.d, init
# accepts only a signed configuration, from any source; otherwise it changes nothing.
# shellcheck source=tests/mock/bad.sh
# shellcheck disable=SC2154  # tmp, root and code are set there
. "$(dirname "$0")/../mock/bad.sh"
trusted=$root/etc/nodestrap/trusted.d serials=/var/lib/nodestrap/serials.json id='sha256:[0-9a-f]{64}'
key() { openssl genpkey -algorithm ed25519 -out "$tmp/$1.pem" && openssl pkey -in "$tmp/$1.pem" -pubout -out "$tmp/$1.pub" && chmod 600 "$tmp/$1.pem"; }
# sign OPTION...: the user data becomes this configuration, signed with our key where no other is named
sign() { "$nodestrap" config sign -k "$tmp/ours.pem" -c "file://$tmp/config" "$@" >"$tmp/user-data" 2>"$tmp/err"; }
verify() { "$nodestrap" config verify "$@" >"$tmp/out" 2>"$tmp/err"; }
boot() { init --skip run --config-cache "$cache" "$@"; }
taken() { same_word "$code" 0 && silent; }
refused() { fails 11 "$1" "$2" && says_last "$3"; }
equal_file() { [ "$(cat "$1")" = "$2" ] || { cat "$1"; false; }; }
key ours && key theirs || { echo '1..0 # SKIP no openssl with Ed25519 here'; exit 0; }
good >"$tmp/config"
cp -r "$fixtures/imds-m5" "$tmp/imds"
identity=$tmp/imds/latest/dynamic/instance-identity
account=$(sed -n 's/.*"accountId" *: *"\([0-9]*\)".*/\1/p' "$identity/document") region=$(sed -n 's/.*"region" *: *"\([^"]*\)".*/\1/p' "$identity/document")
mock --imds "$tmp/imds" --user-data "$tmp/user-data"
settled

# ---- the message ----
printf '#!/bin/sh\necho hi\n' >"$tmp/script"
sign -c "file://$tmp/script" --serial 5 --account "$account" --region "$region" --cluster demo
# The signed bytes and the key, as the manual says.
split() { python3 - "$1" "$tmp" <<-'X'
	import base64, sys
	text = open(sys.argv[1], 'rb').read()
	end = text.rindex(b'\nsignature: ') + len(b'\nsignature: ')
	open(sys.argv[2] + '/bytes', 'wb').write(b'nodestrap signed configuration, version 1\n' + text[:end])
	open(sys.argv[2] + '/signature', 'wb').write(base64.b64decode(text[end:end + 88], validate=True))
	X
}
by_openssl() { split "$tmp/user-data" && openssl pkeyutl -verify -pubin -inkey "$tmp/$1.pub" -rawin -in "$tmp/bytes" -sigfile "$tmp/signature"; }
ok 'openssl accepts the signature of config sign' by_openssl ours
not_theirs() { ! by_openssl theirs; }
ok 'openssl refuses the signature with another key' not_theirs
ok 'the signed message names the key by its digest' grep -qx "key: sha256:$(openssl pkey -pubin -in "$tmp/ours.pub" -outform DER | sha256sum | cut -c 1-64)" "$tmp/user-data"
email() { python3 - "$tmp" <<-'X'
	import email, sys
	message = email.message_from_bytes(open(sys.argv[1] + '/user-data', 'rb').read())
	parts = [(p.get_content_type(), p.get_payload(decode=True)) for p in message.walk() if not p.is_multipart()]
	assert not message.defects and [t for t, _ in parts] == ['application/node.eks.aws', 'text/plain', 'application/vnd.nodestrap.signature'], parts
	assert parts[0][1] == open(sys.argv[1] + '/config', 'rb').read() and parts[1][1] == open(sys.argv[1] + '/script', 'rb').read()
	X
}
ok "the parser of cloud-init finds all parts unchanged" email
ok 'config verify accepts the signed configuration' verify -k "$tmp/ours.pub" -c "file://$tmp/user-data"
ok 'config verify names the key, the serial, the account, the region and the cluster' grep -qE "is signed with $id \(ours.pub\), serial 5, for account $account, region $region, cluster demo\.$" "$tmp/err"
verify -k "$tmp/theirs.pub" -c "file://$tmp/user-data"; code=$?
ok 'config verify refuses another key with exit status 11' same_word "$code" 11
ok 'the error names the signing key and the trusted key' grep -qE "failed \(11 ESIGNATURE\) at verify: $tmp/user-data: is signed with the key $id, but this machine trusts only theirs.pub" "$tmp/err"
resigned() {
        split "$tmp/user-data" && openssl pkeyutl -sign -inkey "$tmp/ours.pem" -rawin -in "$tmp/bytes" -out "$tmp/signature" &&
                { tail -c +43 "$tmp/bytes"; base64 -w 0 "$tmp/signature"; printf '\n'; tail -n 1 "$tmp/user-data"; } >"$tmp/again" &&
                cmp "$tmp/again" "$tmp/user-data" && verify -k "$tmp/ours.pub" -c "file://$tmp/again"
}
ok 'openssl makes the same signature for the same bytes' resigned
{ printf '%s\n' 'MIME-Version: 1.0' 'Content-Type: multipart/mixed; boundary="//"' '' '--//' 'Content-Type: application/node.eks.aws' ''
        good; printf '%s\n' '--//--'; } >"$tmp/message"
kept() { "$nodestrap" config sign -k "$tmp/ours.pem" -c "file://$tmp/message" 2>"$tmp/err" | head -c "$(($(stat -c %s "$tmp/message") - 7))" | cmp - <(head -n -1 "$tmp/message"); }
ok 'config sign adds a part to a message and keeps the rest' kept
whole() { gzip -9 <"$tmp/user-data" >"$tmp/packed" && verify -k "$tmp/ours.pub" -c "file://$tmp/packed" && base64 "$tmp/user-data" >"$tmp/packed" && verify -k "$tmp/ours.pub" -c "file://$tmp/packed"; }
ok 'config verify accepts a signed message that is compressed or base64-encoded as a whole' whole
checked() { "$nodestrap" config check -c "file://$tmp/user-data" 2>"$tmp/err" && says 'this machine does not check the signature of '; }
[ -e /etc/nodestrap/trusted.d ] || ok 'config check says that this machine does not check the signature' checked

# ---- what is not signed ----
# cannot WORDS OPTION...: config sign refuses, says so, and prints nothing
cannot() { local words=$1; shift; ! "$nodestrap" config sign "$@" >"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/out" ] && says "$words"; }
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$tmp/rsa.pem" -out "$tmp/aws.crt" -subj '/CN=ec2' -days 1 2>/dev/null
openssl pkey -in "$tmp/ours.pem" -aes256 -passout pass:CANARYpass -out "$tmp/locked.pem"
ok 'config sign fails without a key' cannot 'needs a private key: -k KEY.pem' -c "file://$tmp/config"
ok 'config sign refuses an RSA key' cannot 'it is not an Ed25519 private key' -k "$tmp/rsa.pem" -c "file://$tmp/config"
ok 'config sign refuses a public key' cannot 'it is not an Ed25519 private key' -k "$tmp/ours.pub" -c "file://$tmp/config"
ok 'config sign refuses a key with a passphrase' cannot 'it has a passphrase' -k "$tmp/locked.pem" -c "file://$tmp/config"
ok 'config sign fails if the key file does not exist' cannot 'No such file' -k "$tmp/none.pem" -c "file://$tmp/config"
ok 'config sign refuses the user data of the instance' cannot 'name a file that you vouch for, -c file://PATH' -k "$tmp/ours.pem"
ok 'config sign refuses a configuration that is signed already' cannot 'is signed already' -k "$tmp/ours.pem" -c "file://$tmp/user-data"
ok 'config sign refuses --cluster with the name of another cluster' cannot 'the configuration is for the cluster demo' -k "$tmp/ours.pem" -c "file://$tmp/config" --cluster other
ok 'config sign refuses an invalid account ID' cannot '--account "12": an AWS account id has 12 digits' -k "$tmp/ours.pem" -c "file://$tmp/config" --account 12
ok 'config sign refuses an invalid region' cannot '--region "us west": not a valid name' -k "$tmp/ours.pem" -c "file://$tmp/config" --region 'us west'
ok 'config sign refuses an invalid serial' cannot '--serial takes a number' -k "$tmp/ours.pem" -c "file://$tmp/config" --serial -1
good | sed 's/^  cluster/  : cluster/' >"$tmp/broken"
ok 'config sign refuses a file that is not YAML' cannot 'not YAML' -k "$tmp/ours.pem" -c "file://$tmp/config" -c "file://$tmp/broken"
{ good; head -c 20000 /dev/zero | tr '\0' '#'; } >"$tmp/large"
chmod 644 "$tmp/ours.pem"
warned() { "$nodestrap" config sign -k "$tmp/ours.pem" -c "file://$tmp/large" >"$tmp/out" 2>"$tmp/err" && says 'EC2 accepts at most 16384 as user data: compress it' && says 'key-readable'; }
ok 'config sign warns about a result too large for EC2 and a key that others can read' warned
chmod 600 "$tmp/ours.pem"

# ---- a machine that trusts one key ----
sign --serial 5 --cluster demo
boot
ok 'without trusted keys, init accepts signed user data like other user data' taken
trust() { rm -rf "$trusted" && mkdir -p "$trusted" && cp "$@" "$trusted" && chmod -R go-w "$root/etc/nodestrap"; }
trust "$tmp/ours.pub"
boot
ok 'init accepts user data that is signed with a trusted key' taken
ok 'the message names the trusted key, the serial and the cluster' grep -qE "user-data is signed with $id \(ours.pub\), serial 5, for cluster demo\.$" "$tmp/err"
ok 'init records the serial' equal_file "$root$serials" '{"user-data":5}'
cp "$tmp/user-data" "$tmp/fifth"
cp "$tmp/config" "$tmp/user-data"; boot
ok 'init refuses unsigned user data' refused ESIGNATURE decode 'user-data: is not signed, but this machine requires a signature'
cp "$tmp/message" "$tmp/user-data"; boot
ok 'init refuses an unsigned MIME message' refused ESIGNATURE decode 'user-data: is not signed'
sed 's/10\.100/10.101/' "$tmp/fifth" >"$tmp/user-data"; boot
ok 'init refuses user data that was changed after it was signed' refused ESIGNATURE decode 'user-data: was changed after it was signed'
{ sed '$d' "$tmp/fifth"; sed -n '3,$p' "$tmp/message"; } >"$tmp/user-data"; boot
ok 'init refuses text after the signature' refused ESIGNATURE decode 'has a damaged signature, or text after it'
head -c -20 "$tmp/fifth" >"$tmp/user-data"; boot
ok 'init refuses a truncated signature' refused ESIGNATURE decode 'has a damaged signature'
sign -k "$tmp/theirs.pem"; boot
ok 'init refuses a signature with a key that it does not trust' refused ESIGNATURE decode 'but this machine trusts only ours.pub'
: >"$tmp/user-data"; boot
ok 'init fails with empty user data and does not use the cache' fails 10 ENOCONFIG source
sign --serial 4; boot
ok 'init refuses an earlier serial' refused EDOWNGRADE validate 'is signed with the serial 4, but this machine has applied 5 already'
"$nodestrap" plan --root "$root" >"$tmp/out" 2>"$tmp/err"; code=$?
ok 'plan refuses an earlier serial with exit status 11' same_word "$code" 11
mkdir -p "$tmp/bin" && ln -sf "$(realpath "$nodestrap")" "$tmp/bin/nodeadm"
cp "$tmp/config" "$tmp/user-data"; "$tmp/bin/nodeadm" config check --root "$root" >"$tmp/out" 2>"$tmp/err"; code=$?
ok "nodeadm config check refuses an unsigned configuration with exit status 11" same_word "$code" 11
echo '{"user-data":"5"}' >"$root$serials"; cp "$tmp/fifth" "$tmp/user-data"; boot
ok 'init fails if it cannot read the record of serials' refused EDOWNGRADE validate "$serials: cannot read this record of serials"
rm "$root$serials"; boot
ok 'init accepts a signed configuration if the record of serials is missing' taken
sign --serial 6; boot
ok 'init accepts a later serial' taken
boot
ok 'init accepts the same serial again' taken
ok 'init records the later serial' equal_file "$root$serials" '{"user-data":6}'
init --skip config --skip run --config-cache "$cache"
ok 'the devices phase accepts the same signed configuration' taken

# ---- files ----
mkdir -p "$root/etc/eks/nodeadm.d" && printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {podPidsLimit: 4711}}}\n' >"$root/etc/eks/nodeadm.d/a.yaml"
chmod -R go-w "$root/etc"
boot -c imds://user-data -c file:///etc/eks/nodeadm.d/
ok "drop-ins of the image need no signature" taken
ok 'the configuration of kubelet has the setting of the drop-in' grep -rqs 4711 "$root/etc/kubernetes/kubelet"
chmod 664 "$root/etc/eks/nodeadm.d/a.yaml"; boot -c imds://user-data -c file:///etc/eks/nodeadm.d/
ok 'a drop-in that other users can write needs a signature' refused ESIGNATURE decode '/etc/eks/nodeadm.d/a.yaml: is not signed'
chmod 644 "$root/etc/eks/nodeadm.d/a.yaml"

# ---- keys that are none ----
cp "$tmp/rsa.pem" "$trusted/z.pub"; boot
ok 'init refuses a private key in trusted.d' refused ETRUST source 'trusted.d/z.pub: cannot be used as the key of a signer: it is a private key'
openssl pkey -in "$tmp/rsa.pem" -pubout -out "$trusted/z.pub"; boot
ok 'init refuses a key in trusted.d that is not an Ed25519 key' refused ETRUST source 'it is not an Ed25519 public key'
rm "$trusted/z.pub"; chmod 664 "$trusted/ours.pub"; boot
ok 'init refuses a key in trusted.d that other users can write' refused ETRUST source 'trusted.d/ours.pub is writable by users other than root'
mv "$trusted/ours.pub" "$trusted/ours.pub.old"; boot
ok 'init fails if trusted.d has no key' refused ETRUST source 'it has no key (*.pub)'
rm -r "$trusted"; ln -s /mnt/keys "$trusted"; boot
ok 'init fails if trusted.d is a dangling symbolic link' refused ETRUST source 'trusted.d is a dangling symbolic link'
rm "$trusted"

# ---- an account and a region ----
# A certificate with the same name and serial number, but with another key: the key counts.
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$tmp/else.key" -out "$tmp/else.crt" -subj '/CN=ec2' -days 1 2>/dev/null \
        -set_serial "0x$(openssl x509 -in "$tmp/aws.crt" -noout -serial | cut -d= -f2)"
cp "$tmp/rsa.pem" "$tmp/aws.key"
# As the service has it: the document inside, BER of indefinite length ("MIAG..."), in base64 without its first and last line.
identify() { openssl smime -sign -in "$1" -outform PEM -stream -nodetach -binary -md sha256 -signer "$tmp/$2.crt" -inkey "$tmp/$2.key" | sed '1d;$d' >"$identity/rsa2048"; }
cp "$tmp/aws.crt" "$tmp/aws.pem"; cp "$tmp/else.crt" "$tmp/else.pem"
trust "$tmp/ours.pub"
sign --serial 7 --account "$account" --region "$region"; boot
ok 'init refuses a bound configuration if trusted.d has no AWS certificate' refused EBINDING validate 'has no AWS certificate (*.pem)'
trust "$tmp/ours.pub" "$tmp/aws.pem"; boot
ok 'init refuses a bound configuration if the service has no signed identity document' refused EBINDING validate 'the metadata service has no /latest/dynamic/instance-identity/rsa2048 (404)'
identify "$identity/document" else; boot
ok 'init refuses an identity document that is signed with another key' refused EBINDING validate 'is not signed by a certificate'
identify "$identity/document" aws
sed -i '5s/./A/' "$identity/rsa2048"; boot
ok 'init refuses an identity document that was changed' refused EBINDING validate 'is not signed by a certificate'
identify "$identity/document" aws
: >"$tmp/log"; boot
ok 'init accepts a configuration that is bound to this account and region' taken
ok 'a bound configuration causes no request for the plain identity document' sent 0 'instance-identity/document'
ok 'a bound configuration causes one request for the signed identity document' sent 1 'instance-identity/rsa2048'
bound=$(requests .)
cat "$tmp/else.crt" "$tmp/aws.crt" >"$trusted/aws.pem"; boot
ok 'init finds the right certificate among several in one file' taken
sign --serial 7; : >"$tmp/log"; boot
unbound() { taken && sent 1 'instance-identity/document' && sent 0 'rsa2048' && same_word "$(requests .)" "$bound"; }
ok 'a configuration that is not bound causes as many requests as a bound one' unbound
sign --serial 7 --account 210987654321; boot
ok 'init refuses a configuration that is signed for another account' refused EBINDING validate "is signed for account 210987654321, but this is $account"
sign --serial 7 --region eu-north-9; boot
ok 'init refuses a configuration that is signed for another region' refused EBINDING validate "is signed for region eu-north-9, but this is $region"
# The drop-ins of the image name the cluster of this configuration.
sed 's/name: demo, //' "$tmp/config" >"$tmp/part"; echo '{apiVersion: node.eks.aws/v1alpha1, kind: NodeConfig, spec: {cluster: {name: demo}}}' >"$root/etc/eks/nodeadm.d/a.yaml"
"$nodestrap" config sign -k "$tmp/ours.pem" -c "file://$tmp/part" --cluster other --serial 7 >"$tmp/user-data" 2>"$tmp/err"
boot -c imds://user-data -c file:///etc/eks/nodeadm.d/
ok 'init refuses a signature for a cluster other than the one that the drop-ins name' refused EBINDING validate 'is signed for cluster other, but this is demo'
sed 's/name: demo/name: other/' "$tmp/config" >"$tmp/elsewhere"
"$nodestrap" config sign -k "$tmp/ours.pem" -c "file://$tmp/elsewhere" --cluster other --serial 7 >"$tmp/user-data" 2>"$tmp/err"
boot -c imds://user-data -c file:///etc/eks/nodeadm.d/
ok "init refuses a configuration that names another cluster than the drop-ins of the image" refused EBINDING validate 'is signed for cluster other, but this is demo'
rm "$root/etc/eks/nodeadm.d/a.yaml"
"$nodestrap" config sign -k "$tmp/ours.pem" -c "file://$tmp/part" --cluster other --serial 7 >"$tmp/user-data" 2>"$tmp/err"
ln -sf "$(realpath "$nodestrap")" "$tmp/bin/nodeadm"
"$tmp/bin/nodeadm" config dump --root "$root" >"$tmp/out" 2>"$tmp/err"
ok 'the error says that no source names a cluster' says 'is signed for cluster other, but no source names a cluster'

# ---- no Ed25519 ----
printf 'openssl_conf = s\n[s]\nproviders = p\nalg_section = a\n[p]\ndefault = d\n[d]\nactivate = 1\n[a]\ndefault_properties = fips=yes\n' >"$tmp/fips"
OPENSSL_CONF=$tmp/fips verify -k "$tmp/ours.pub" -c "file://$tmp/user-data"; code=$?
fips() { same_word "$code" 20 && says_last 'failed (20 ECRYPTO)'; }
ok 'config verify fails with ECRYPTO if only validated cryptography is allowed' fips
done_testing
