#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The schema of NodeConfig, made from the table of fields, and the heads of the examples → NodeConfig(5):

        build/tests/helpers/schema-tool >conf/nodeconfig.schema.json; python3 conf/manual.py >debian/NodeConfig.5
"""
import json, os, re, textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "examples")
# Plain in YAML, among what is used here.
PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9_./+*=() -]*|https?://[^ #]*|[0-9]+(\.[0-9]+){3}(/[0-9]+)?|[1-9][0-9]*[MGmsh]i?|--[a-z][a-z0-9/.=-]*")
TYPES = {"object": "map", "array": "list", "string": "text", "boolean": "true or false", "integer": "integer"}

# What people must know before they choose, and the program need not hold.
FAILURE_POLICY = r""".PP
A finding of check\-health is a failure if spec.accelerator.nvidia.health is
require. Otherwise, as a rule, only a finding marked ! in
.BR nodestrap\-codes (7),
HEALTH, is one.
.PP
reboot and poweroff act only for hardware causes, and before kubelet has run.
Only the systemd units of nodestrap do so; an init that you run does not. Each
instance reboots at most once: a ledger on its root disk records it. A node
cannot stop its group from replacing machines for ever. Set an alarm that
suspends its launches, or a limit in the NodePool. Stopping and terminating both
lose what is on instance stores.
See
.BR nodestrap\-cluster (7),
FAILURE POLICY.
"""

HEAD = r""".\" SPDX-License-Identifier: Apache-2.0
.\" Made by conf/manual.py of the program's table of fields: change that.
.TH NODECONFIG 5 2026-11-23 nodestrap "File formats"
.nh
.na
.SH NAME
NodeConfig \- configuration of an EC2 instance as a node of an EKS cluster
.SH DESCRIPTION
.BR nodestrap (8)
reads a NodeConfig from the user data of the instance, or from the sources of
.BR \-\-config\-source .
It is YAML or JSON. See USER DATA for its place there.
.PP
Several documents merge, in this order: those of a file (between lines of three
hyphens), parts, sources. Files of a directory come in the order of their names.
The rules are:
.IP \(bu 2
maps merge; any other later value replaces the earlier one, even if it is false,
0, or an empty text;
.IP \(bu 2
.I spec.kubelet.flags
come after the earlier ones; any other list replaces the earlier one, even if it
is empty;
.IP \(bu 2
.I spec.containerd.config
merges as TOML does, table by table;
.IP \(bu 2
null and {} leave the earlier value as it is.
.PP
The program checks the merged whole. A value of another type, or one that is not
allowed, is an error with file, part, line and path. An unknown key is a warning
that names the nearest known key, and with
.B \-\-strict
an error. This page and the output of
.B nodestrap config schema
come from the same table.
.SH USER DATA
Put the NodeConfig into the user data of the launch template. It may be the
whole user data. Or the user data is a MIME message: each part with the type
.I application/node.eks.aws
is a NodeConfig, and cloud\-init gets the other parts. A blank line ends the
headers of each part:
.PP
.RS 4
.nf
MIME\-Version: 1.0
Content\-Type: multipart/mixed; boundary="NODE"

\-\-NODE
Content\-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec: {instance: {localStorage: {strategy: RAID0}}}
\-\-NODE
Content\-Type: text/x\-shellscript

#!/bin/sh
echo "cloud\-init runs this"
\-\-NODE\-\-
.fi
.RE
.PP
One of the parts, or a file in
.IR /etc/eks/nodeadm.d ,
must have
.IR spec.cluster .
EKS does not add it for a managed node group whose launch template names an AMI.
.PP
Check the file before you use it:
.PP
.RS 4
.nf
nodestrap config check \-\-strict user\-data
.fi
.RE
.SS Larger than 16 KiB
EC2 accepts at most 16 KiB of user data, counted before base64 encoding. If
yours is larger, do one of these.
.PP
Compress the whole file. nodestrap, nodeadm and cloud\-init read gzip. For an
instance the AWS CLI encodes the bytes of a file itself. For a launch template,
encode them yourself:
.PP
.RS 4
.nf
gzip \-9 <user\-data >user\-data.gz
aws ec2 run\-instances \-\-user\-data fileb://user\-data.gz ...
base64 \-w 0 user\-data.gz   # UserData of a launch template
.fi
.RE
.PP
In Terraform, write this into an
.IR aws_launch_template .
For an
.IR aws_instance ,
the key is
.I user_data_base64
instead of
.IR user_data :
.PP
.RS 4
.nf
user_data = base64gzip(file("user\-data"))
.fi
.RE
.PP
The other way: move settings of all nodes into files of the image,
.I /etc/eks/nodeadm.d/*.yaml
(also *.yml and *.json).
They merge after the user data. Where both have a key, these files win. Check
such a file, which may lack
.IR spec.cluster ,
with
.BR "nodestrap config check \-\-partial" .
With Karpenter and amiFamily AL2023, only this way works. Karpenter merges your
user data with a part of its own, as MIME text, so your user data must not be
compressed.
.PP
.I /usr/share/doc/nodestrap/examples
has
.I launch\-template.sh
and
.IR launch\-template.tf ,
which make such a launch template.
.SH KEYS
Each key has its type, its limits, its default and an example.
A key without a version is also in the API of nodeadm, with the same meaning
.RI ( https://github.com/awslabs/amazon\-eks\-ami ).
A key with a version belongs to nodestrap since that version; nodeadm ignores
it.
"""

TAIL = r""".SH SEE ALSO
.BR nodestrap (8),
.BR nodestrap\-codes (7)
"""


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return "\\&" + text if text[:1] in (".", "'") else text


def paragraph(text):
    return "\n".join(roff(line) for line in textwrap.wrap(text, 74, break_long_words=False, break_on_hyphens=False)) + "\n"


def flow(value):
    """A value in YAML's flow style."""
    if isinstance(value, dict):
        return "{%s}" % ", ".join("%s: %s" % (k, flow(v)) for k, v in value.items())
    if isinstance(value, list):
        return "[%s]" % ", ".join(flow(v) for v in value)
    if isinstance(value, str) and PLAIN.fullmatch(value) and value not in ("on", "off"):
        return value
    return json.dumps(value)


def verbatim(lines):
    """Lines as they are; a long one is broken in the source alone."""
    out = ".RS\n.nf\n"
    for line in lines:
        parts = [line[i:i + 60] for i in range(0, len(line), 60)] or [""]
        out += "\\\n".join(roff(part) if i == 0 else part.replace("\\", "\\e").replace("-", "\\-") for i, part in enumerate(parts)) + "\n"
    return out + ".fi\n.RE\n"


def example(key, value):
    if isinstance(value, str) and "\n" in value:
        return ["%s: |" % key] + ["  " + line for line in value.splitlines()]
    line = "%s: %s" % (key, flow(value))
    if len(line) > 66 and isinstance(value, dict):
        return [key + ":"] + ["  " + inner for k, v in value.items() for inner in example(k, v)]
    return [line]


def kind(node):
    """What may stand there, in words."""
    types = node.get("type", "string")
    types = [types] if isinstance(types, str) else [t for t in types if t != "null"]
    of = node.get("items") or node.get("additionalProperties")
    words = TYPES[types[0]]
    if isinstance(of, dict):
        words += " of " + ("any of %s" % names(of) if "enum" in of else re.sub(r"^(map|list|integer)", r"\1s", kind(of)))
    if types[0] in ("object", "array") and "string" in types:
        words += ", or text"
    if "enum" in node:
        words = "one of " + names(node) if "," in names(node) else "always " + names(node)
    elif "minimum" in node:
        words = "integer from %d to %d" % (node["minimum"], node["maximum"])
    elif "pattern" in node and " in upper or lower case." not in node.get("description", ""):
        pattern = re.sub(r"\|\^\$$", "", node["pattern"])
        words += " that matches " + (pattern if len(pattern) < 50 else "the pattern below")
    return words


def names(node):
    return ", ".join(v for v in node["enum"] if isinstance(v, str) and v)


def entry(path, key, node):
    out = ".TP\n.B %s\n%s" % (roff(path), paragraph(node["description"]))
    about = kind(node) if "type" in node or "enum" in node else "anything"
    about = about[0].upper() + about[1:] + "."
    if "default" in node:
        about += " Default: %s." % flow(node["default"])
    if "x-since" in node:
        about += " Since %s." % node["x-since"]
    lines = example(key, node["examples"][0])
    if "the pattern below" in about:        # no line is long enough for it
        lines = re.split(r"(?<=\$)\|", re.sub(r"\|\^\$$", "", node["pattern"])) + lines
    return out + ".br\n" + paragraph(about) + verbatim(lines)


def entries(node, path=""):
    out = ""
    for key, sub in node.get("properties", {}).items():
        here = path + "." + key if path else key
        if here in ("spec",) or path == "spec" and sub.get("properties"):
            out += (".SS %s\n" % roff(here) if path else "") + entry(here, key, sub)
        elif here == "spec.failurePolicy":
            out += ".SS %s\n" % roff(here) + entry(here, key, sub) + FAILURE_POLICY
        else:
            out += entry(here, key, sub)
        out += entries(sub, here)
        if "items" in sub:
            out += entries(sub["items"], here + "[]")
    return out


# A program draws them, and they hold no comment.
PICTURES = {"p5-48xlarge-boot.svg": "All steps of a boot of a p5.48xlarge, as `nodestrap status --output svg` draws them."}


def examples():
    out = (".SH EXAMPLES\nThe smallest one, as nodes of EKS get it:\n.PP\n" + verbatim(SMALLEST.splitlines()) +
           ".PP\nIn\n.I /usr/share/doc/nodestrap/examples\nare\n")
    for name in sorted(os.listdir(EXAMPLES)):
        with open(os.path.join(EXAMPLES, name), encoding="utf-8") as f:
            text = f.read()
        head = PICTURES.get(name) or re.search(r"(?m)^# (?!SPDX)(.*(?:\n# .*)*)", text).group(1).replace("\n# ", " ")
        out += ".TP\n.I %s\n%s" % (roff(name), paragraph(re.match(r".*?\.(?= |$)", head).group()))
    return out


with open(os.path.join(HERE, "nodeconfig.schema.json"), encoding="utf-8") as f:
    SCHEMA = json.load(f)
CLUSTER = SCHEMA["properties"]["spec"]["properties"]["cluster"]["properties"]
SMALLEST = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster:\n" + "".join(
    "    %s\n" % example(key, CLUSTER[key]["examples"][0])[0] for key in ("name", "apiServerEndpoint", "certificateAuthority", "cidr"))
print(HEAD + entries(SCHEMA) + examples() + TAIL, end="")
