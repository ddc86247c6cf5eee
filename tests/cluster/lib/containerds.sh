# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2154 # tests is control-plane.sh's
# Sourced by scripts behind host.sh: the verdict of the program beside those of the real containerds of $CONTAINERDS, one of each version.
# 1.6 is not one that any image of EKS has any more.
CHOSEN=() VERSIONS=''
while read -r containerd; do
        version=$("$containerd" --version | awk '{ print $3 }') version=${version#v} version=${version%%[~+-]*}
        case " 1.6.20 $VERSIONS " in *" $version "*) continue;; esac
        VERSIONS+="$version " CHOSEN+=("$containerd")
done <<<"$CONTAINERDS"

compared() {            # CONTAINERD OPTION…
        python3 "$tests/oracles/containerd.py" --nodestrap "$NODESTRAP" --containerd "$1" --group "${@:2}" >said 2>&1
        local r=$?; cat said; return $r
}
check_compared() {      # NAME CONTAINERD OPTION…; a success, too, shows the strict verdicts
        try "$1" compared "${@:2}" && sed 's/^/# /' said
}
check_reported() {      # of what people reported, and of each rule: on 1.x and on the oldest 2.x
        local c; for c in "${CHOSEN[@]::2}"; do
                check_compared "plan and $("$c" --version | awk '{ print $3 }') agree on what people reported" "$c" -n 0 --also "$tests/oracles/containerd-cases.jsonl"
        done
}
check_random() {        # SEED COUNT: for each
        local c; for c in "${CHOSEN[@]}"; do check_compared "plan and $("$c" --version | awk '{ print $3 }') agree on $2 random settings of seed $1" "$c" --seed "$1" -n "$2"; done
}
