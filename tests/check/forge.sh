#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The examples for a repository of NodeConfigs do what they say. pre-commit itself runs the hooks. bash runs each step of the workflow in a
# clone with a pull request, as GitHub's runner does.
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2163,SC2120,SC2034  # tmp and here are its; functions are handed to ok, which reads status
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}") top=$(realpath "$here/../..") examples=$top/conf/examples
for need in pre-commit git; do
        command -v $need >/dev/null && continue
        [ "${NODESTRAP_TEST_REQUIRE:-}" != 1 ] || { echo "1..1"; echo "not ok 1 - $need is not here"; exit 1; }
        echo "1..0 # SKIP $need is not here"; exit 0
done
mkdir "$tmp/bin"; ln -s "$nodestrap" "$tmp/bin/nodestrap"
export PATH=$tmp/bin:$PATH HOME=$tmp/home GIT_CONFIG_NOSYSTEM=1 PRE_COMMIT_HOME=$tmp/pre-commit; mkdir "$HOME"
git config --global user.name Test; git config --global user.email test@test.example; git config --global init.defaultBranch main
repository() { git init -q "$1" && mkdir "$1/node-configs" && cp "$examples/p5-48xlarge.userdata" "$1/node-configs/p5.userdata" && cp "$examples/g6-xlarge.userdata" "$1/node-configs/g6.yaml" &&
        echo 'kind: List' >"$1/other.yaml" && git -C "$1" add . && git -C "$1" commit -qm first; }
break_it() { sed -i 's/strategy: RAID0/strategy: RAID5/' "$1/node-configs/p5.userdata" && git -C "$1" add .; }
fails() { ! "$@" >"$tmp/out" 2>&1 || { cat "$tmp/out"; false; }; }
passes() { "$@" >"$tmp/out" 2>&1 || { cat "$tmp/out"; false; }; }
said() { grep -qE -- "$1" "$tmp/out" || { cat "$tmp/out"; false; }; }
# ---- pre-commit ----
cd "$tmp" || exit 1
repository nodes; cp "$examples/pre-commit.yml" nodes/.pre-commit-config.yaml; git -C nodes add .
hooked() { (cd nodes && pre-commit "$@"); }
ok "the example is a configuration of pre-commit" pre-commit validate-config "$examples/pre-commit.yml"
ok "the hooks of this tree are a valid pre-commit manifest" pre-commit validate-manifest "$top/.pre-commit-hooks.yaml"
ok "pre-commit passes a repository of good NodeConfigs" eval 'passes hooked run --all-files -v && said "node-configs/p5.userdata: valid" && said "node-configs/g6.yaml: valid" && ! grep -q other.yaml "$tmp/out"'
passes hooked install; break_it nodes
ok "pre-commit stops the commit of a bad NodeConfig" eval 'fails git -C nodes commit -m bad && said "^node-configs/p5.userdata:[0-9]+:[0-9]+: error: spec.instance.localStorage.strategy: .*RAID5"'
ok "pre-commit lets git commit good NodeConfigs" eval 'git -C nodes checkout -q HEAD node-configs && passes git -C nodes commit -m good'
mkdir hooks; cp "$top/.pre-commit-hooks.yaml" hooks/; git -C hooks init -q; git -C hooks add .; git -C hooks commit -qm hooks
ok "the hook of this tree passes good NodeConfigs" eval 'passes hooked try-repo "$tmp/hooks" nodestrap-config-check --all-files -v && said "node-configs/p5.userdata: valid" && ! grep -q other.yaml "$tmp/out"'
break_it nodes
ok "the hook of this tree refuses a bad NodeConfig" eval 'fails hooked try-repo "$tmp/hooks" nodestrap-config-check --all-files && said "error: spec.instance.localStorage.strategy"'
same_hook() { python3 - "$top/.pre-commit-hooks.yaml" "$examples/pre-commit.yml" <<'P'
import sys, yaml
hooks, example = (yaml.safe_load(open(path)) for path in sys.argv[1:])
mine = {k: v for k, v in hooks[0].items() if k != "description"}
assert example["repos"][0]["hooks"] == [mine], (mine, example)
P
}
ok "the hook of this tree and the hook of the example are the same" same_hook
# ---- the workflow ----
repository base; cp "$examples/check-node-configs.sh" base/node-configs/; touch base/node-configs/nodestrap_0.1.0_amd64.deb
git -C base add .; git -C base commit -qm scripts
printf '#!/bin/sh\necho "$@" >>"%s/apt"\nfor f; do case $f in ./*) [ -e "$f" ] || exit 100;; esac; done\n' "$tmp" >bin/apt-get; chmod +x bin/apt-get
steps() { # CLONE: its run: steps, one after the other, until one fails
        : >"$tmp/summary"
        python3 - "$examples/github-actions.yml" "$1" "$tmp/summary" <<'P'
import os, subprocess, sys, yaml
job = yaml.safe_load(open(sys.argv[1]))["jobs"]["check"]
env = dict(os.environ, **job["env"], GITHUB_ACTIONS="true", GITHUB_BASE_REF="main", GITHUB_WORKSPACE=sys.argv[2], GITHUB_STEP_SUMMARY=sys.argv[3])
for step in job["steps"]:
    if "run" in step:
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=sys.argv[2], env=env)
        if done.returncode:
            sys.exit(done.returncode)
P
}
pull() { rm -rf "$tmp/clone"; git clone -q base clone && git -C clone checkout -qb change && "$@" && { git -C clone commit -qam change || true; } && { steps "$tmp/clone" >"$tmp/out" 2>&1; status=$?; }; }
on_page() { grep -qE -- "$1" "$tmp/summary" || { cat "$tmp/summary"; false; }; }
ok "a pull request that changes nothing passes" eval 'pull true; [ "$status" = 0 ] && on_page "^## p5$" && on_page "^### Plan changes for p5.48xlarge" && on_page "^Nothing differs.$" && on_page "^### Plan changes for g6.xlarge" && [ "$(ls clone/plans)" = "$(printf "%s\n" g6.yaml.{json,plan} p5.{json,plan})" ]'
ok "the workflow installs the nodestrap package" grep -qxF 'install -y --no-install-recommends ./node-configs/nodestrap_0.1.0_amd64.deb' apt
ok "the summary has only the two plans, and no annotation, if nothing changes" eval '[ "$(grep -c "^## " summary)" = 2 ] && ! grep -q "^::" out'
change() { sed -i 's/topologyManagerPolicy: restricted/topologyManagerPolicy: best-effort/' clone/node-configs/p5.userdata; }
ok "a pull request that changes a plan shows the changes in the summary" eval 'pull change; [ "$status" = 0 ] && on_page "settings.topologyManagerPolicy: restricted -> best-effort$" && on_page "^0 added, 0 removed, 0 changed, 0 moved, 2 hidden"'
add() { cp clone/node-configs/p5.userdata clone/node-configs/p5-new.userdata && git -C clone add .; }
ok "the summary has the whole plan of a new NodeConfig" eval 'pull add; [ "$status" = 0 ] && on_page "^## p5-new$" && on_page "^### Plan for p5.48xlarge" && on_page "^[|] .* write-file [|] .*/etc/kubernetes/kubelet/config.json"'
ok "a pull request with a bad NodeConfig fails, with an annotation at its line" eval 'pull break_it clone; [ "$status" = 1 ] && said "^::error file=node-configs/p5.userdata,line=[0-9]+,col=[0-9]+::spec.instance.localStorage.strategy: .*RAID5" && on_page "^node-configs/p5.userdata:[0-9]+:[0-9]+: error"'
wrong_type() { sed -i 's/--instance-type p5.48xlarge/--instance-type p5.44xlarge/' clone/node-configs/p5.userdata; }
ok "a plan that fails has an annotation at the file, and a page in the summary" eval 'pull wrong_type; [ "$status" = 1 ] && said "^::error file=node-configs/p5.userdata::nodestrap: failed .*p5.44xlarge" && on_page "^### No plan for p5.44xlarge" && on_page "^- [*][*]error:[*][*] .*did you mean p5.48xlarge"'
no_type() { sed -i 's/--instance-type p5.48xlarge//' clone/node-configs/p5.userdata; }
ok "a NodeConfig without an instance type fails with an annotation at the file" eval 'pull no_type; [ "$status" = 1 ] && said "^::error file=node-configs/p5.userdata::no instance type"'
done_testing
