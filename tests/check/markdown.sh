#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# plan --output markdown, as GitHub's own parser reads it (cmark-gfm; tests/oracles/markdown.py).
# shellcheck source=tests/mock/lib.sh
# shellcheck disable=SC2154,SC2163,SC2120  # tmp and here are its; functions are handed to ok
. "$(dirname "$0")/../mock/lib.sh"
nodestrap=$(realpath "${NODESTRAP:-build/nodestrap}") top=$(realpath "$here/../..") examples=$top/conf/examples canary=CaNaRy-5e1f
command -v cmark-gfm >/dev/null || { [ "${NODESTRAP_TEST_REQUIRE:-}" != 1 ] || { echo "1..1"; echo "not ok 1 - cmark-gfm is not here"; exit 1; }; echo "1..0 # SKIP cmark-gfm is not here"; exit 0; }
node() { # [SPEC]: a NodeConfig, with SPEC after it
        cat >"$tmp/node.yaml" <<END
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: training, apiServerEndpoint: https://A1B2C3D4.gr7.us-west-2.eks.amazonaws.com, certificateAuthority: Y2VydGlmaWNhdGVBdXRob3JpdHk=, cidr: 10.100.0.0/16}
${1-}
END
}
plan() { "$nodestrap" plan --kubelet-version 1.34.2 --driver-version 580.159.04 "$@" 2>"$tmp/err" || { cat "$tmp/err"; return 1; }; }
same_plan() { # OPTION...: rows, list and block are those of the JSON and of the text
        plan "$@" --output markdown >"$tmp/page.md" && plan "$@" --output json >"$tmp/plan.json" && plan "$@" >"$tmp/plan.txt" &&
                python3 "$top/tests/oracles/markdown.py" "$tmp/page.md" "$tmp/plan.json" "$tmp/plan.txt"
}
while read -r name type; do
        ok "the page for $name as $type has each step, each warning and the text" same_plan -c "$examples/$name" --instance-type "$type"
done <<'END'
p5-48xlarge.userdata p5.48xlarge
p4d-24xlarge-mig.userdata p4d.24xlarge
p6e-gb200.userdata p6e-gb200.36xlarge
trn2-48xlarge.userdata trn2.48xlarge
plain.userdata m5.large
END
ok "the heading of the page has the instance type" grep -qx '### Plan for m5.large' "$tmp/page.md"
mkdir "$tmp/root"; "$here/../fixtures/expand.sh" m5-large "$tmp/root"
node; cp "$tmp/node.yaml" "$tmp/root/etc/node.yaml"
ok "the page for an image has the state of each step" same_plan --root "$tmp/root" -c /etc/node.yaml
ok "the page for an image has files to create" grep -q '| \\\[create\\\]' "$tmp/page.md"
# ---- texts with Markdown syntax ----
odd='|a `b` <b>c</b> *d* _e_ [f](g) &lt; ~~h~~ #1 $i$ \\| \\` ```'
node "  instance: {sysctl: {kernel.domainname: '$odd'}}"
ok "the page escapes Markdown syntax in a text of the user" same_plan -c "$tmp/node.yaml" --instance-type m5.large --show-secrets
ok "the page shows the text of the user unchanged" python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import markdown; assert any(sys.argv[3] in cell for row in markdown.page_of(sys.argv[2]).rows for cell in row)' "$top/tests/oracles" "$tmp/page.md" "$odd"
node "  instance: {sysctl: {kernel.domainname: $canary}}"
ok "the page shows no secret without --show-secrets" eval 'same_plan -c "$tmp/node.yaml" --instance-type m5.large && ! grep -F "$canary" "$tmp/page.md"'
# ---- two plans ----
node; plan -c "$tmp/node.yaml" --instance-type m5.large --output json >"$tmp/old.json"
changed() { plan -c "$tmp/node.yaml" --instance-type m5.large --diff "$tmp/old.json" "$@"; }
block() { # the page has one block of code, which is the text that plan --diff prints, and this heading
        changed "$@" --output markdown >"$tmp/page.md" && changed "$@" >"$tmp/text" &&
                python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import markdown; page = markdown.page_of(sys.argv[2])
assert page.blocks == [open(sys.argv[3]).read()] and page.heading.strip() == "Plan changes for m5.large" and "<pre" not in page.seen, page.blocks' "$top/tests/oracles" "$tmp/page.md" "$tmp/text"
}
ok "the page for two equal plans says that nothing differs" eval 'block && grep -qx "Nothing differs." "$tmp/page.md"'
node '  kubelet: {config: {maxPods: 42}}
  instance: {environment: {default: {A: b}}}'
ok "the page for two plans has a diff block with the changes" eval 'block && grep -qx "\`\`\`diff" "$tmp/page.md" && grep -qx "+ write-file:/etc/nodestrap/environment/default: .*" "$tmp/page.md" && grep -q "^+ *\"maxPods\": 42,$" "$tmp/page.md"'
node "  containerd: {config: \"[plugins.'io.containerd.cri.v1.images'.registry.configs.'r.example'.auth]\\npassword = '$canary'\\n\"}"
ok "the diff block has no secret" eval 'block && ! grep -F "$canary" "$tmp/page.md"'
plan -c "$tmp/node.yaml" --instance-type m5.large --show-secrets --output json >"$tmp/old.json"
node "  containerd: {config: \"[plugins.'io.containerd.cri.v1.images'.registry.configs.'r.example'.auth]\\npassword = '\`\`\`\`'\\n\"}"
ok "a fence in a file does not end the diff block" eval 'block --show-secrets && grep -q "^\`\`\`\`\`diff$" "$tmp/page.md"'
# ---- no plan ----
fails() { "$nodestrap" plan "$@" --output markdown >"$tmp/page.md" 2>"$tmp/err"; [ $? = 11 ] && grep -qx '### No plan for m5.large' "$tmp/page.md" && grep -qE '^- \*\*error:\*\* .*spec\.cluster\.cidr.* \\\[EINVALID\\\]$' "$tmp/page.md" || { cat "$tmp/page.md"; false; }; }
node; sed -i 's/, cidr: [^}]*//' "$tmp/node.yaml"
ok "the page for a failure has the error" fails -c "$tmp/node.yaml" --instance-type m5.large
node
ok "the page for --matrix has a row for each type" eval 'plan -c "$tmp/node.yaml" --matrix m5.large,p5.48xlarge --output markdown >"$tmp/page.md" && grep -qx "### Plans for m5.large,p5.48xlarge" "$tmp/page.md" && grep -q "^p5.48xlarge  *ok " "$tmp/page.md"'
done_testing
