#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Signed configurations from outside. openssl(1) and the parser of cloud-init accept the output of config sign. With keys in trusted.d init
# takes a signed configuration alone, from any source, and otherwise touches nothing.
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
ok 'openssl takes what was signed' by_openssl ours
not_theirs() { ! by_openssl theirs; }
ok 'and not with another key' not_theirs
ok 'the key is named by its digest' grep -qx "key: sha256:$(openssl pkey -pubin -in "$tmp/ours.pub" -outform DER | sha256sum | cut -c 1-64)" "$tmp/user-data"
email() { python3 - "$tmp" <<-'X'
	import email, sys
	message = email.message_from_bytes(open(sys.argv[1] + '/user-data', 'rb').read())
	parts = [(p.get_content_type(), p.get_payload(decode=True)) for p in message.walk() if not p.is_multipart()]
	assert not message.defects and [t for t, _ in parts] == ['application/node.eks.aws', 'text/plain', 'application/vnd.nodestrap.signature'], parts
	assert parts[0][1] == open(sys.argv[1] + '/config', 'rb').read() and parts[1][1] == open(sys.argv[1] + '/script', 'rb').read()
	X
}
ok "cloud-init's parser finds the parts as they were" email
ok 'config verify takes it' verify -k "$tmp/ours.pub" -c "file://$tmp/user-data"
ok 'and says by whom, and for whom' grep -qE "is signed with $id \(ours.pub\), serial 5, for account $account, region $region, cluster demo\.$" "$tmp/err"
verify -k "$tmp/theirs.pub" -c "file://$tmp/user-data"; code=$?
ok 'not with another key' same_word "$code" 11
ok 'and names both' grep -qE "failed \(11 ESIGNATURE\) at verify: $tmp/user-data: is signed with the key $id, but this machine trusts only theirs.pub" "$tmp/err"
resigned() {
        split "$tmp/user-data" && openssl pkeyutl -sign -inkey "$tmp/ours.pem" -rawin -in "$tmp/bytes" -out "$tmp/signature" &&
                { tail -c +43 "$tmp/bytes"; base64 -w 0 "$tmp/signature"; printf '\n'; tail -n 1 "$tmp/user-data"; } >"$tmp/again" &&
                cmp "$tmp/again" "$tmp/user-data" && verify -k "$tmp/ours.pub" -c "file://$tmp/again"
}
ok 'openssl signs the same bytes' resigned
{ printf '%s\n' 'MIME-Version: 1.0' 'Content-Type: multipart/mixed; boundary="//"' '' '--//' 'Content-Type: application/node.eks.aws' ''
        good; printf '%s\n' '--//--'; } >"$tmp/message"
kept() { "$nodestrap" config sign -k "$tmp/ours.pem" -c "file://$tmp/message" 2>"$tmp/err" | head -c "$(($(stat -c %s "$tmp/message") - 7))" | cmp - <(head -n -1 "$tmp/message"); }
ok 'a message gets a part more and stays what it was' kept
whole() { gzip -9 <"$tmp/user-data" >"$tmp/packed" && verify -k "$tmp/ours.pub" -c "file://$tmp/packed" && base64 "$tmp/user-data" >"$tmp/packed" && verify -k "$tmp/ours.pub" -c "file://$tmp/packed"; }
ok 'compressed or encoded as a whole it counts, too' whole
checked() { "$nodestrap" config check -c "file://$tmp/user-data" 2>"$tmp/err" && says 'this machine does not check the signature of '; }
[ -e /etc/nodestrap/trusted.d ] || ok 'config check says where nobody looks at it' checked

# ---- what is not signed ----
# cannot WORDS OPTION...: config sign refuses, says so, and prints nothing
cannot() { local words=$1; shift; ! "$nodestrap" config sign "$@" >"$tmp/out" 2>"$tmp/err" && [ ! -s "$tmp/out" ] && says "$words"; }
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$tmp/rsa.pem" -out "$tmp/aws.crt" -subj '/CN=ec2' -days 1 2>/dev/null
openssl pkey -in "$tmp/ours.pem" -aes256 -passout pass:CANARYpass -out "$tmp/locked.pem"
ok 'no key' cannot 'needs a private key: -k KEY.pem' -c "file://$tmp/config"
ok 'a key of RSA' cannot 'it is not an Ed25519 private key' -k "$tmp/rsa.pem" -c "file://$tmp/config"
ok 'a public one' cannot 'it is not an Ed25519 private key' -k "$tmp/ours.pub" -c "file://$tmp/config"
ok 'one with a passphrase' cannot 'it has a passphrase' -k "$tmp/locked.pem" -c "file://$tmp/config"
ok 'one that is not there' cannot 'No such file' -k "$tmp/none.pem" -c "file://$tmp/config"
ok 'the user data of this instance' cannot 'name a file that you vouch for, -c file://PATH' -k "$tmp/ours.pem"
ok 'what is signed' cannot 'is signed already' -k "$tmp/ours.pem" -c "file://$tmp/user-data"
ok 'another cluster' cannot 'the configuration is for the cluster demo' -k "$tmp/ours.pem" -c "file://$tmp/config" --cluster other
ok 'no account' cannot '--account "12": an AWS account id has 12 digits' -k "$tmp/ours.pem" -c "file://$tmp/config" --account 12
ok 'no region' cannot '--region "us west": not a valid name' -k "$tmp/ours.pem" -c "file://$tmp/config" --region 'us west'
ok 'no number' cannot '--serial takes a number' -k "$tmp/ours.pem" -c "file://$tmp/config" --serial -1
good | sed 's/^  cluster/  : cluster/' >"$tmp/broken"
ok 'no YAML' cannot 'not YAML' -k "$tmp/ours.pem" -c "file://$tmp/config" -c "file://$tmp/broken"
{ good; head -c 20000 /dev/zero | tr '\0' '#'; } >"$tmp/large"
chmod 644 "$tmp/ours.pem"
warned() { "$nodestrap" config sign -k "$tmp/ours.pem" -c "file://$tmp/large" >"$tmp/out" 2>"$tmp/err" && says 'EC2 takes 16384 as user data: compress it' && says 'key-readable'; }
ok 'what EC2 does not take is warned of, and a key that others can read' warned
chmod 600 "$tmp/ours.pem"

# ---- a machine that trusts one key ----
sign --serial 5 --cluster demo
boot
ok 'without keys it is user data like other' taken
trust() { rm -rf "$trusted" && mkdir -p "$trusted" && cp "$@" "$trusted" && chmod -R go-w "$root/etc/nodestrap"; }
trust "$tmp/ours.pub"
boot
ok 'with the key it is taken' taken
ok 'and said by whom' grep -qE "user-data is signed with $id \(ours.pub\), serial 5, for cluster demo\.$" "$tmp/err"
ok 'its serial is kept' equal_file "$root$serials" '{"user-data":5}'
cp "$tmp/user-data" "$tmp/fifth"
cp "$tmp/config" "$tmp/user-data"; boot
ok 'what is not signed is refused' refused ESIGNATURE decode 'user-data: is not signed, but this machine requires a signature'
cp "$tmp/message" "$tmp/user-data"; boot
ok 'as a message, too' refused ESIGNATURE decode 'user-data: is not signed'
sed 's/10\.100/10.101/' "$tmp/fifth" >"$tmp/user-data"; boot
ok 'what was changed' refused ESIGNATURE decode 'user-data: was changed after it was signed'
{ sed '$d' "$tmp/fifth"; sed -n '3,$p' "$tmp/message"; } >"$tmp/user-data"; boot
ok 'what has more behind it' refused ESIGNATURE decode 'has a damaged signature, or text after it'
head -c -20 "$tmp/fifth" >"$tmp/user-data"; boot
ok 'what was cut off' refused ESIGNATURE decode 'has a damaged signature'
sign -k "$tmp/theirs.pem"; boot
ok 'what somebody else has signed' refused ESIGNATURE decode 'but this machine trusts only ours.pub'
: >"$tmp/user-data"; boot
ok 'the cache is no way around' fails 10 ENOCONFIG source
sign --serial 4; boot
ok 'nor is what was signed before' refused EDOWNGRADE validate 'is signed with the serial 4, but this machine has applied 5 already'
"$nodestrap" plan --root "$root" >"$tmp/out" 2>"$tmp/err"; code=$?
ok 'plan says so, too' same_word "$code" 11
mkdir -p "$tmp/bin" && ln -sf "$(realpath "$nodestrap")" "$tmp/bin/nodeadm"
cp "$tmp/config" "$tmp/user-data"; "$tmp/bin/nodeadm" config check --root "$root" >"$tmp/out" 2>"$tmp/err"; code=$?
ok "so does nodeadm's name" same_word "$code" 11
echo '{"user-data":"5"}' >"$root$serials"; cp "$tmp/fifth" "$tmp/user-data"; boot
ok 'serials that cannot be read' refused EDOWNGRADE validate "$serials: cannot read this record of serials"
rm "$root$serials"; boot
ok 'without them it is taken' taken
sign --serial 6; boot
ok 'a later one is taken' taken
boot
ok 'and once more' taken
ok 'and kept' equal_file "$root$serials" '{"user-data":6}'
init --skip config --skip run --config-cache "$cache"
ok 'the next phase takes it as well' taken

# ---- files ----
mkdir -p "$root/etc/eks/nodeadm.d" && printf 'apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec: {kubelet: {config: {podPidsLimit: 4711}}}\n' >"$root/etc/eks/nodeadm.d/a.yaml"
chmod -R go-w "$root/etc"
boot -c imds://user-data -c file:///etc/eks/nodeadm.d/
ok "the image's own drop-ins need no signature" taken
ok 'and count' grep -rqs 4711 "$root/etc/kubernetes/kubelet"
chmod 664 "$root/etc/eks/nodeadm.d/a.yaml"; boot -c imds://user-data -c file:///etc/eks/nodeadm.d/
ok 'one that others can write does' refused ESIGNATURE decode '/etc/eks/nodeadm.d/a.yaml: is not signed'
chmod 644 "$root/etc/eks/nodeadm.d/a.yaml"

# ---- keys that are none ----
cp "$tmp/rsa.pem" "$trusted/z.pub"; boot
ok 'a private key among those who may sign' refused ETRUST source 'trusted.d/z.pub: cannot be used as the key of a signer: it is a private key'
openssl pkey -in "$tmp/rsa.pem" -pubout -out "$trusted/z.pub"; boot
ok 'one that is not of Ed25519' refused ETRUST source 'it is not an Ed25519 public key'
rm "$trusted/z.pub"; chmod 664 "$trusted/ours.pub"; boot
ok 'one that others can write' refused ETRUST source 'trusted.d/ours.pub is writable by users other than root'
mv "$trusted/ours.pub" "$trusted/ours.pub.old"; boot
ok 'none where there should be one' refused ETRUST source 'it has no key (*.pub)'
rm -r "$trusted"; ln -s /mnt/keys "$trusted"; boot
ok 'a link to where nothing is' refused ETRUST source 'trusted.d is a dead symbolic link'
rm "$trusted"

# ---- an account and a region ----
# The same name and number, and another key: it is that which counts.
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$tmp/else.key" -out "$tmp/else.crt" -subj '/CN=ec2' -days 1 2>/dev/null \
        -set_serial "0x$(openssl x509 -in "$tmp/aws.crt" -noout -serial | cut -d= -f2)"
cp "$tmp/rsa.pem" "$tmp/aws.key"
# As the service has it: the document inside, BER of no length that is told ("MIAG..."), in base64 without its first and last line.
identify() { openssl smime -sign -in "$1" -outform PEM -stream -nodetach -binary -md sha256 -signer "$tmp/$2.crt" -inkey "$tmp/$2.key" | sed '1d;$d' >"$identity/rsa2048"; }
cp "$tmp/aws.crt" "$tmp/aws.pem"; cp "$tmp/else.crt" "$tmp/else.pem"
trust "$tmp/ours.pub"
sign --serial 7 --account "$account" --region "$region"; boot
ok 'no certificate' refused EBINDING validate 'has no AWS certificate (*.pem)'
trust "$tmp/ours.pub" "$tmp/aws.pem"; boot
ok 'no signed document' refused EBINDING validate 'the metadata service has no /latest/dynamic/instance-identity/rsa2048 (404)'
identify "$identity/document" else; boot
ok 'one that somebody else has signed' refused EBINDING validate 'is signed by none of the certificates'
identify "$identity/document" aws
sed -i '5s/./A/' "$identity/rsa2048"; boot
ok 'one that was changed' refused EBINDING validate 'is signed by none of the certificates'
identify "$identity/document" aws
: >"$tmp/log"; boot
ok 'the right one' taken
ok 'it takes the place of the plain one' sent 0 'instance-identity/document'
ok 'and is asked for once' sent 1 'instance-identity/rsa2048'
bound=$(requests .)
cat "$tmp/else.crt" "$tmp/aws.crt" >"$trusted/aws.pem"; boot
ok 'the right one of several certificates' taken
sign --serial 7; : >"$tmp/log"; boot
unbound() { taken && sent 1 'instance-identity/document' && sent 0 'rsa2048' && same_word "$(requests .)" "$bound"; }
ok 'what is not bound asks as often as what is' unbound
sign --serial 7 --account 210987654321; boot
ok 'another account' refused EBINDING validate "is signed for account 210987654321, but this is $account"
sign --serial 7 --region eu-north-9; boot
ok 'another region' refused EBINDING validate "is signed for region eu-north-9, but this is $region"
# One whose cluster the drop-ins of the image say.
sed 's/name: demo, //' "$tmp/config" >"$tmp/part"; echo '{apiVersion: node.eks.aws/v1alpha1, kind: NodeConfig, spec: {cluster: {name: demo}}}' >"$root/etc/eks/nodeadm.d/a.yaml"
"$nodestrap" config sign -k "$tmp/ours.pem" -c "file://$tmp/part" --cluster other --serial 7 >"$tmp/user-data" 2>"$tmp/err"
boot -c imds://user-data -c file:///etc/eks/nodeadm.d/
ok 'another cluster than all sources come to' refused EBINDING validate 'is signed for cluster other, but this is demo'
sed 's/name: demo/name: other/' "$tmp/config" >"$tmp/elsewhere"
"$nodestrap" config sign -k "$tmp/ours.pem" -c "file://$tmp/elsewhere" --cluster other --serial 7 >"$tmp/user-data" 2>"$tmp/err"
boot -c imds://user-data -c file:///etc/eks/nodeadm.d/
ok "nor is one of another cluster, that says so itself, taken by an image that names its own" refused EBINDING validate 'is signed for cluster other, but this is demo'
rm "$root/etc/eks/nodeadm.d/a.yaml"
"$nodestrap" config sign -k "$tmp/ours.pem" -c "file://$tmp/part" --cluster other --serial 7 >"$tmp/user-data" 2>"$tmp/err"
ln -sf "$(realpath "$nodestrap")" "$tmp/bin/nodeadm"
"$tmp/bin/nodeadm" config dump --root "$root" >"$tmp/out" 2>"$tmp/err"
ok 'where no source names one it is said so' says 'is signed for cluster other, but no source names a cluster'

# ---- no Ed25519 ----
printf 'openssl_conf = s\n[s]\nproviders = p\nalg_section = a\n[p]\ndefault = d\n[d]\nactivate = 1\n[a]\ndefault_properties = fips=yes\n' >"$tmp/fips"
OPENSSL_CONF=$tmp/fips verify -k "$tmp/ours.pub" -c "file://$tmp/user-data"; code=$?
fips() { same_word "$code" 20 && says_last 'failed (20 ECRYPTO)'; }
ok 'where validated cryptography alone is allowed, nothing is taken' fips
done_testing
