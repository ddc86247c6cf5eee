# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Sourced by the shell tests that need the two services: one mock at a time, TAP lines, and nothing left behind.
#   mock OPTION...          starts aws.py with these options; afterwards $imds, $ec2, $sts, $container (ADDRESS:PORT) and the log in $tmp/log
#   requests PATTERN        how many lines of the log match
#   ok DESCRIPTION COMMAND...   one TAP line; what the command printed is shown when it failed
#   done_testing            the plan
set -u
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
tmp=$(mktemp -d) mock_pid='' count=0
# Settings of the caller for other programs would count here.
unset "${!AWS_@}" {HTTP,HTTPS,NO,ALL}_PROXY {http,https,no,all}_proxy SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE
mock_stop() { [ -z "$mock_pid" ] || { kill "$mock_pid"; wait "$mock_pid"; } 2>/dev/null; mock_pid=''; }
trap 'mock_stop; rm -r "$tmp"' EXIT
mock() {
        mock_stop
        : >"$tmp/log"
        exec 9< <(exec python3 "$here/aws.py" --log "$tmp/log" "$@")
        mock_pid=$!
        read -r _ imds <&9 || { echo "Bail out! the mock does not start"; exit 1; }
        export AWS_EC2_METADATA_SERVICE_ENDPOINT=http://$imds
        case " $* " in *" --ec2-listen "*) read -r _ ec2 <&9; export AWS_ENDPOINT_URL_EC2=http://$ec2;; esac
        case " $* " in *" --sts-listen "*) read -r _ sts <&9; export AWS_ENDPOINT_URL_STS=http://$sts;; esac
        # shellcheck disable=SC2034  # for the scripts that ask for one
        case " $* " in *" --container-listen "*) read -r _ container <&9;; esac
        exec 9<&-
}
requests() { grep -cE -- "$1" "$tmp/log"; }
ok() {
        local what=$1 out
        shift
        count=$((count + 1))
        if out=$("$@" 2>&1); then echo "ok $count - $what"; else
                echo "not ok $count - $what"
                sed 's/^/# /' <<<"$*"$'\n'"$out"
        fi
}
done_testing() { echo "1..$count"; }
# Results of the last command under test: equal TEXT, says WORDS, lacks WORDS, sent NUMBER PATTERN.
equal() { [ "$(cat "$tmp/out")" = "$1" ] || { cat "$tmp/out" "$tmp/err"; false; }; }
# A failure with a message: exit 1 and no report of a sanitizer.
failed() { [ $? = 1 ] && ! grep -F Sanitizer "$tmp/err"; }
says() { grep -qF -- "$1" "$tmp/err" || { cat "$tmp/err"; false; }; }
lacks() { ! grep -rF -- "$1" "$tmp/out" "$tmp/err"; }
sent() { [ "$(requests "$2")" = "$1" ] || { cat "$tmp/log"; false; }; }
at_least() { [ "$(requests "$2")" -ge "$1" ] || { cat "$tmp/log"; false; }; }
