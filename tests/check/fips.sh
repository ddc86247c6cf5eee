#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An image in FIPS mode: the configuration of libcrypto allows only validated algorithms. With a FIPS provider the digests and signatures
# are the same; without one nothing else computes them.
# shellcheck source=tests/mock/bad.sh
# shellcheck disable=SC2154  # tmp, here and code are set there
. "$(dirname "$0")/../mock/bad.sh"
# configuration NAME SECTION [LINE]: an openssl.cnf that loads this provider and allows only FIPS
configuration() {
        cat >"$tmp/$1" <<-X
	openssl_conf = start
	${3-}
	[start]
	providers = providers
	alg_section = algorithms
	[providers]
	$2 = $2_sect
	[default_sect]
	activate = 1
	[algorithms]
	default_properties = fips=yes
	X
}
mock --imds "$fixtures/imds-m5"
settled
configuration without default
keys=(AWS_ACCESS_KEY_ID=AKIDCANARY AWS_SECRET_ACCESS_KEY=CANARYsecret AWS_REGION=us-gov-west-1)
token() { env "${keys[@]}" "$@" "$nodestrap" token --cluster-name demo >"$tmp/out" 2>"$tmp/err"; }
refused() { token "OPENSSL_CONF=$tmp/without"; same_word $? 20 && [ ! -s "$tmp/out" ] && says_last 'failed (20 ECRYPTO) at token: '; }
ok 'token fails in FIPS mode without the FIPS provider' refused
ok 'the message says that the FIPS provider is missing or fails the self-test' says "but the FIPS provider is missing or fails the self-test"
OPENSSL_CONF=$tmp/without init -c file:///good.yaml
ok 'init fails in FIPS mode without the FIPS provider' fails 20 ECRYPTO detect
OPENSSL_CONF=$tmp/without "$nodestrap" config check -c "file://$root/good.yaml" 2>"$tmp/err" || code=1
ok 'config check works without the FIPS provider' says 'is valid'
printf 'openssl_conf = start\n[start]\nproviders = none\n[none]\nnull = null_sect\n[null_sect]\nactivate = 1\n' >"$tmp/null"
OPENSSL_CONF=$tmp/null init -c file:///good.yaml
ok 'init fails if openssl.cnf has no provider' fails 20 ECRYPTO detect
ok 'the message says that no provider in openssl.cnf has SHA-256 and HMAC' says_last "libcrypto lacks SHA-256 and HMAC: no provider in openssl.cnf has them"

# Debian 12 has no FIPS provider; that of the next release works with its libcrypto, since the provider interface is stable.
have() {
        local dir module
        [ -z "${NODESTRAP_TRANSLATED-}" ] || { echo "the provider is for this machine, and the program is not" >"$tmp/why"; return 1; }
        dir=$("$here/../tools/peers.sh" --cached openssl-fips trixie openssl-provider-fips 2>"$tmp/why") && module=$(find "$dir" -name fips.so) &&
                openssl fipsinstall -quiet -provider_name fips -module "$module" -out "$tmp/fipsmodule.cnf" 2>"$tmp/why" &&
                export OPENSSL_MODULES=${module%/*}
}
if have; then
        configuration with fips ".include $tmp/fipsmodule.cnf"
        signs() { token "OPENSSL_CONF=$tmp/with" && python3 "$here/credential.py" demo AKIDCANARY:CANARYsecret <"$tmp/out"; }
        ok 'token signs with the FIPS provider as a cluster expects' signs
        OPENSSL_CONF=$tmp/with init -c file:///good.yaml
        same() { same_word "$code" 0 && unchanged; }
        ok 'init changes nothing with the FIPS provider, since all digests are the same' same
        signed() {
                openssl genpkey -algorithm ed25519 -out "$tmp/key.pem" && openssl pkey -in "$tmp/key.pem" -pubout -out "$tmp/key.pub" &&
                        "$nodestrap" config sign -k "$tmp/key.pem" -c "file://$root/good.yaml" >"$tmp/signed" 2>"$tmp/err" &&
                        OPENSSL_CONF=$tmp/with "$nodestrap" config verify -k "$tmp/key.pub" -c "file://$tmp/signed" 2>"$tmp/err" &&
                        sed -i s/demo/deno/ "$tmp/signed" && ! OPENSSL_CONF=$tmp/with "$nodestrap" config verify -k "$tmp/key.pub" -c "file://$tmp/signed" 2>"$tmp/err" && says_last ESIGNATURE
        }
        ok 'config verify accepts a good signature and refuses a bad one with the FIPS provider' signed
        sed -i 's/^module-mac = ......../module-mac = 00:00:00/' "$tmp/fipsmodule.cnf"
        other() { ! token "OPENSSL_CONF=$tmp/with" && says_last ECRYPTO; }
        ok 'token fails with a FIPS provider whose checksum is wrong' other
elif [ "${NODESTRAP_TEST_REQUIRE:-0}" != 0 ]; then
        ok 'a FIPS provider is available' cat "$tmp/why" /nonexistent
else
        count=$((count + 1))
        echo "ok $count - a FIPS provider # SKIP none here: $(tail -1 "$tmp/why")"
fi
done_testing
