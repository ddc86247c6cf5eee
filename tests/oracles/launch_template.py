#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A launch template and its NodeConfig in config check: the forms of the AWS guides pass, and each mutation is a finding. Prints TAP.

The contents are our own. The forms are those of the guides (src/doctor/launch-template.c names them). The model of EC2 in botocore checks
the forms, so each test is about a template that EC2 would read. usage: tests/oracles/launch_template.py NODESTRAP
"""
import base64, copy, json, os, re, subprocess, sys, tempfile

NODESTRAP = os.path.realpath(sys.argv[1])
try:
    import botocore.session, botocore.validate
    MODEL = botocore.session.get_session().get_service_model("ec2").shape_for("RequestLaunchTemplateData")
except ImportError:
    MODEL = None
number = failed = 0


def result(ok, name, why="", skip=""):
    global number, failed
    number += 1
    failed += not ok
    print("%sok %d - %s%s" % ("" if ok else "not ", number, name, skip and " # SKIP " + skip))
    if not ok:
        print("# %s" % str(why).replace("\n", "\n# "))


def node_config(instance="", more=""):
    return ("apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  cluster:\n    name: demo\n    apiServerEndpoint: https://example.com\n"
            "    certificateAuthority: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tClkyRT0KLS0tLS1FTkQgQ0VSVElGSUNBVEUtLS0tLQo=\n"
            "    cidr: 10.100.0.0/16\n" + ("  instance:\n    %s\n" % instance if instance else "") + more)


def nic(card, device, kind, **more):
    return {"NetworkCardIndex": card, "DeviceIndex": device, "InterfaceType": kind, "Groups": ["sg-0123456789abcdef0"], **more}


def efa(n):
    return node_config("network: {efa: {mode: require, expectedDevices: %d}}" % n)


BLOCK = {"InstanceMarketOptions": {"MarketType": "capacity-block"},
         "CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationId": "cr-0123456789abcdef0"}}}
OWN = {"IamInstanceProfile": {"Arn": "arn:aws:iam::111122223333:instance-profile/node"}, "ImageId": "ami-0123456789abcdef0"}
PLACED = {"Placement": {"GroupName": "training"}}
# Name → template, NodeConfig.
BASES = {
    # EKS: device-management-efa.adoc; the EC2 guide recommends a placement group.
    "managed P6-B200": ({"InstanceType": "p6-b200.48xlarge", "ImageId": "ami-0123456789abcdef0", **PLACED, "NetworkInterfaces": [
        nic(0, 0, "interface"), nic(0, 1, "efa-only")] + [nic(i, 0, "efa-only") for i in range(1, 8)]}, efa(8)),
    # EKS: capacity-blocks-mng.adoc, capacity-blocks.adoc
    "managed capacity block": ({"InstanceType": "p5.48xlarge", "ImageId": "ami-0123456789abcdef0", **BLOCK}, node_config()),
    "capacity block": ({"InstanceType": "p5.48xlarge", **BLOCK, **OWN, "KeyName": "ops", "SecurityGroupIds": ["sg-0123456789abcdef0"]},
                       node_config()),
    # EC2: efa-acc-inst-types.html, for all types, for P5 (use cases 1 and 2), P6-B300 and P6e-GB200
    "P5": ({"InstanceType": "p5.48xlarge", **OWN, **PLACED, "NetworkInterfaces": [
        nic(0, 0, "interface", SubnetId="subnet-0123456789abcdef0"), nic(0, 1, "efa-only", SubnetId="subnet-0123456789abcdef0")] +
        [nic(i, 0, "efa-only", SubnetId="subnet-0123456789abcdef0") for i in range(1, 32)]}, efa(32)),
    "P5, one address": ({"InstanceType": "p5.48xlarge", **OWN, **PLACED, "NetworkInterfaces": [
        nic(0, 0, "efa")] + [nic(i, 1, "efa-only") for i in range(1, 32)]}, efa(32)),
    "P5, an address each four cards": ({"InstanceType": "p5.48xlarge", **OWN, **PLACED, "NetworkInterfaces": [
        nic(0, 0, "efa")] + [nic(i, 1, "efa-only" if i % 4 else "efa") for i in range(1, 32)]}, efa(32)),
    "P6-B300": ({"InstanceType": "p6-b300.48xlarge", **OWN, **PLACED, "NetworkInterfaces": [
        nic(0, 0, "interface")] + [nic(i, 0, "efa-only") for i in range(1, 17)]}, efa(16)),
    "P6e-GB200": ({"InstanceType": "p6e-gb200.36xlarge", **OWN, **BLOCK, "NetworkInterfaces": [
        nic(0, 0, "interface")] + [nic(i, 0, "efa-only") for i in (1, 5, 9, 13)]}, efa(4)),
    # PCS: working-with_networking_efa_create-lt.html
    "Hpc7a": ({"InstanceType": "hpc7a.96xlarge", **OWN, "Placement": {"GroupId": "pg-0123456789abcdef0"}, "NetworkInterfaces": [
        nic(0, 0, "efa", SubnetId="subnet-0123456789abcdef0"), nic(1, 1, "efa", SubnetId="subnet-0123456789abcdef0")]}, efa(2)),
    # EKS: launch-templates.adoc, and its best practices; EC2: create-launch-template.html
    "metadata and volumes": ({"InstanceType": "g5.xlarge", **OWN, "SecurityGroupIds": ["sg-0123456789abcdef0"],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2, "HttpEndpoint": "enabled",
                            "InstanceMetadataTags": "disabled"},
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 100, "VolumeType": "gp3", "DeleteOnTermination": True}},
            {"DeviceName": "/dev/sdb", "Ebs": {"VolumeSize": 500, "VolumeType": "gp3"}}],
        "TagSpecifications": [{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "node"}]}]},
        node_config("storage: {volumes: [{device: /dev/xvdb, mountTarget: /var/lib/models}]}")),
    "no_manage": ({"InstanceType": "g5.xlarge", **OWN, "NetworkInterfaces": [nic(0, 0, "interface")], "TagSpecifications": [
        {"ResourceType": "network-interface", "Tags": [{"Key": "node.k8s.amazonaws.com/no_manage", "Value": "true"}]}]},
        node_config(more="  featureGates: {OSManagedNoManageENIs: true}\n")),
}


def walk(tree, path):
    """"a[1].b" → the container of b, and its key there."""
    parts = [int(p) if p.isdigit() else p for p in re.findall(r"\w+", path)]
    for p in parts[:-1]:
        tree = tree[p]
    return tree, parts[-1]


def put(path, value):
    def change(tree):
        into, key = walk(tree, path)
        into[key] = value
    return change


def drop(path):
    def change(tree):
        into, key = walk(tree, path)
        del into[key]
    return change


def rename(path, name):
    def change(tree):
        into, key = walk(tree, path)
        into[name] = into.pop(key)
    return change


def check(template, config, *options, wrap=True):
    """The lines of the template, the exit status and the findings of config check."""
    data = dict(template, UserData=base64.b64encode(config.encode()).decode())
    if wrap:
        data = {"LaunchTemplateVersions": [{"LaunchTemplateId": "lt-0123456789abcdef0", "LaunchTemplateName": "gpu", "VersionNumber": 7,
                                            "DefaultVersion": True, "LaunchTemplateData": data}]}
    text = json.dumps(data, indent=1)
    p = subprocess.run([NODESTRAP, "config", "check", "--output", "json", *options, "-c", "-"], input=text.encode(), timeout=60,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    found = json.loads(p.stdout)["findings"] if p.stdout else [{"message": p.stderr.decode()}]
    return text.split("\n"), p.returncode, found


PREFIX = "LaunchTemplateVersions[0].LaunchTemplateData."


def told(name, base, change, path, severity, words):
    """Checks that the mutation is one finding, at its line."""
    template, config = copy.deepcopy(BASES[base])
    if isinstance(change, str):
        config = change
    else:
        change(template)
    lines, status, found = check(template, config)
    if len(found) != 1:
        return result(False, name, "%d findings: %s" % (len(found), json.dumps(found, indent=1)))
    f, key = found[0], re.findall(r"\w+", path or "LaunchTemplateData")[-1]
    line = lines[f.get("line", 0) - 1]
    ok = (f["severity"], f.get("path"), f["code"], status) == (severity, (PREFIX + path).rstrip("."), "launch-template",
                                                              0 if severity == "warning" else 11 if f["exit"] == 11 else f["exit"])
    at = '"%s"' % key in line if not key.isdigit() else line.strip() == "{"
    result(ok and at and words in f["message"], name, "%s\nexit %d, line: %s" % (json.dumps(f, indent=1), status, line))


for name, (template, config) in BASES.items():
    for wrap in (True, False):
        lines, status, found = check(template, config, "--strict", wrap=wrap)
        result(status == 0 and not found, "config check --strict accepts the template \"%s\" %s" % (name, "as the AWS CLI prints it" if wrap else "alone"), json.dumps(found, indent=1))

W, E = "warning", "error"
for row in [
    # ---- interfaces
    ("a template without a primary interface is an error", "P5, one address", put("NetworkInterfaces[0].DeviceIndex", 1), "NetworkInterfaces", E,
     "EC2 needs a primary interface; give an interface NetworkCardIndex 0 and DeviceIndex 0"),
    ("a primary interface of type efa-only is an error", "P5, one address", put("NetworkInterfaces[0].InterfaceType", "efa-only"), "NetworkInterfaces[0]", E,
     "the primary interface needs an address, and efa-only has none; write InterfaceType interface, or choose DeviceIndex 1"),
    ("two interfaces with one network card and one device index are an error", "managed P6-B200", lambda t: t["NetworkInterfaces"].append(nic(0, 0, "interface")), "NetworkInterfaces[9]", E,
     "uses network card 0 like NetworkInterfaces[0], with the same DeviceIndex; choose another"),
    ("two EFA devices on one network card are an error", "P6e-GB200", put("NetworkInterfaces[4]", nic(9, 1, "efa-only")), "NetworkInterfaces[4]", E,
     "uses network card 9 like NetworkInterfaces[3], but only one EFA device fits on a card; choose another"),
    ("a network card that the type does not have is an error", "P6-B300", put("NetworkInterfaces[16].NetworkCardIndex", 17), "NetworkInterfaces[16]", E,
     "p6-b300.48xlarge has no network card 17; the last one is 16"),
    ("EFA on a type without EFA is an error", "no_manage", lambda t: t.update(PLACED, NetworkInterfaces=[nic(0, 0, "efa")]), "NetworkInterfaces[0]", E,
     "is EFA device number 1, but g5.xlarge takes at most 0; remove it, or set InterfaceType to interface"),
    ("EFA on a network card without EFA is an error", "P6-B300", put("NetworkInterfaces[3]", nic(0, 1, "efa-only")), "NetworkInterfaces[3]", E,
     "network card 0 of p6-b300.48xlarge takes no EFA; set InterfaceType to interface"),
    ("an interface with addresses on a network card only for EFA is an error", "P6e-GB200", put("NetworkInterfaces[2].InterfaceType", "efa"), "NetworkInterfaces[2]", E,
     "network card 5 of p6e-gb200.36xlarge takes no addresses; set InterfaceType to efa-only"),
    ("an address of an efa-only interface is an error", "P5", put("NetworkInterfaces[5].PrivateIpAddress", "10.0.0.9"), "NetworkInterfaces[5].PrivateIpAddress", E,
     "an EFA-only interface takes no address; remove it"),
    ("a prefix count of an efa-only interface is an error", "P5", put("NetworkInterfaces[5].Ipv4PrefixCount", 1), "NetworkInterfaces[5].Ipv4PrefixCount", E,
     "an EFA-only interface takes no address; remove it"),
    ("a public address of an instance with several interfaces is an error", "P5", put("NetworkInterfaces[0].AssociatePublicIpAddress", True),
     "NetworkInterfaces[0].AssociatePublicIpAddress", E, "EC2 gives no public address to an instance with several interfaces; remove it"),
    ("SecurityGroupIds beside NetworkInterfaces is an error", "P5", put("SecurityGroupIds", ["sg-0123456789abcdef0"]), "SecurityGroupIds", E,
     "EC2 refuses it with NetworkInterfaces; move it to Groups of each interface"),
    ("SecurityGroups beside NetworkInterfaces is an error", "no_manage", put("SecurityGroups", ["nodes"]), "SecurityGroups", E, "EC2 refuses it with NetworkInterfaces"),
    ("an interface without security groups is a warning", "P5", drop("NetworkInterfaces[7].Groups"), "NetworkInterfaces[7]", W,
     "gets the default security group of the VPC; set Groups. EFA needs a group that allows all traffic within it"),
    ("an unknown type of interface is a warning", "no_manage", put("NetworkInterfaces[0].InterfaceType", "EFA"), "NetworkInterfaces[0].InterfaceType", W,
     "EC2 does not accept this value; use one of interface, efa, efa-only; did you mean efa?"),
    ("a subnet in the template of a managed node group is a warning", "managed P6-B200", put("NetworkInterfaces[0].SubnetId", "subnet-0123456789abcdef0"), "NetworkInterfaces[0].SubnetId", W,
     "a managed node group refuses it, and a self-managed node needs IamInstanceProfile: remove the one, or add the other"),
    ("a shutdown behaviour in the template of a managed node group is a warning", "managed capacity block", put("InstanceInitiatedShutdownBehavior", "terminate"),
     "InstanceInitiatedShutdownBehavior", W, "a managed node group refuses it"),
    ("hibernation in the template of a managed node group is a warning", "managed capacity block", put("HibernationOptions", {"Configured": False}), "HibernationOptions", W,
     "a managed node group refuses it"),
    ("more expectedDevices than EFA interfaces is an error", "P5", efa(33), "NetworkInterfaces", E,
     "has too few EFA devices (32), and spec.instance.network.efa wants 33: the boot reports EEFA; add interfaces, or change mode or expectedDevices"),
    ("required EFA in a template without interfaces is an error", "metadata and volumes",
     node_config("network: {efa: {mode: require}}\n    storage: {volumes: [{device: /dev/xvdb, mountTarget: /var/lib/models}]}"), "", E,
     "has too few EFA devices (0), and spec.instance.network.efa wants 1"),
    ("EFA without a placement group is a warning", "P5", drop("Placement"), "NetworkInterfaces", W,
     "EFA is fastest within a cluster placement group; name one in Placement.GroupName"),
    ("the tag no_manage without its feature gate is a warning", "no_manage", node_config(), "TagSpecifications[0].Tags", W,
     "nothing configures interfaces with the tag node.k8s.amazonaws.com/no_manage; set spec.featureGates.OSManagedNoManageENIs: true"),
    # ---- capacity
    ("a capacity block without its reservation is an error", "capacity block", drop("CapacityReservationSpecification"), "InstanceMarketOptions.MarketType", E,
     "capacity-block needs CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId; add it"),
    ("a capacity block with an empty reservation target is an error", "capacity block",
     drop("CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId"), "InstanceMarketOptions.MarketType", E,
     "capacity-block needs CapacityReservationSpecification"),
    ("a capacity block without an instance type is an error", "managed capacity block", drop("InstanceType"), "InstanceMarketOptions.MarketType", E,
     "capacity-block needs InstanceType; add it"),
    ("a capacity block of a type without capacity blocks is a warning", "capacity block", put("InstanceType", "g6e.48xlarge"), "InstanceMarketOptions.MarketType", W,
     "AWS listed no capacity blocks for g6e.48xlarge in November 2026; choose another instance type, or remove MarketType"),
    ("a capacity block in a placement group is a warning", "capacity block", put("Placement", {"GroupName": "x"}), "Placement.GroupName", W,
     "EC2 places a capacity block itself, and another group can keep instances from starting; remove it"),
    ("an unknown market type is a warning", "capacity block", put("InstanceMarketOptions.MarketType", "capacity-blocks"), "InstanceMarketOptions.MarketType", W,
     "did you mean capacity-block?"),
    # ---- metadata
    ("a disabled metadata service is an error", "metadata and volumes", put("MetadataOptions.HttpEndpoint", "disabled"), "MetadataOptions.HttpEndpoint", E,
     "nodestrap reads user data from the metadata service, without which the boot ends with EIMDS; write enabled"),
    ("optional IMDS tokens (IMDSv1) are a warning", "metadata and volumes", put("MetadataOptions.HttpTokens", "optional"), "MetadataOptions.HttpTokens", W,
     "IMDSv1 gives the credentials of the node without a token, and nodestrap needs no IMDSv1; write required"),
    ("an unknown value of HttpTokens is a warning", "metadata and volumes", put("MetadataOptions.HttpTokens", "Required"), "MetadataOptions.HttpTokens", W,
     "did you mean required?"),
    ("a hop limit of 0 is a warning", "metadata and volumes", put("MetadataOptions.HttpPutResponseHopLimit", 0), "MetadataOptions.HttpPutResponseHopLimit", W,
     "EC2 does not accept this value; use one of 1-64"),
    ("a hop limit of 65 is a warning", "metadata and volumes", put("MetadataOptions.HttpPutResponseHopLimit", 65), "MetadataOptions.HttpPutResponseHopLimit", W,
     "use one of 1-64"),
    ("instance tags in the metadata service are a warning", "metadata and volumes", put("MetadataOptions.InstanceMetadataTags", "enabled"), "MetadataOptions.InstanceMetadataTags", W,
     "EC2 then refuses an instance with a slash in a tag key, such as kubernetes.io/cluster/NAME; write disabled"),
    # ---- volumes
    ("a missing mapping for a volume of the NodeConfig is a warning", "metadata and volumes", drop("BlockDeviceMappings[1]"), "BlockDeviceMappings", W,
     "spec.instance.storage.volumes[0] waits for /dev/xvdb: unless the image maps it, the boot ends with EVOLUME; add a mapping"),
    ("a template without mappings for a volume of the NodeConfig is a warning", "metadata and volumes", drop("BlockDeviceMappings"), "", W, "volumes[0] waits for /dev/xvdb"),
    ("a mapping with another name than the volume of the NodeConfig is a warning", "metadata and volumes", put("BlockDeviceMappings[1].DeviceName", "/dev/sdc"), "BlockDeviceMappings", W, "volumes[0] waits for /dev/xvdb"),
    ("a mapping with NoDevice for a volume of the NodeConfig is a warning", "metadata and volumes", put("BlockDeviceMappings[1]", {"DeviceName": "/dev/xvdb", "NoDevice": "x"}),
     "BlockDeviceMappings", W, "volumes[0] waits for /dev/xvdb"),
    ("a mapping without a size for a volume of the NodeConfig is a warning", "metadata and volumes", drop("BlockDeviceMappings[1].Ebs.VolumeSize"), "BlockDeviceMappings[1]", W,
     "has no Ebs.VolumeSize for spec.instance.storage.volumes[0]; add it"),
    ("two mappings with the same name to Linux are an error", "metadata and volumes", put("BlockDeviceMappings[0].DeviceName", "/dev/xvdb"), "BlockDeviceMappings[1]", E,
     "an earlier mapping has this DeviceName, or one that Linux takes for the same; rename one"),
    # ---- user data
    ("user data above 16 KiB is an error", "managed capacity block", node_config() + "#" * 16384, "UserData", E, "bytes before base64, and EC2 takes 16384; compress them: "
     "gzip -9 <FILE | base64 -w 0"),
]:
    told(*row)

# ---- plan checks a template, too. Terraform has other names for the keys
NAMES = {"Groups": "security_groups", "SecurityGroupIds": "vpc_security_group_ids"}


def terraform(tree):
    """The template as terraform show -json prints a planned aws_launch_template: each block is a list, tags are a map."""
    out = {}
    for key, value in tree.items():
        name = NAMES.get(key) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", key).lower()
        if key == "Tags":
            out[name] = {t["Key"]: t["Value"] for t in value}
        elif isinstance(value, dict):
            out[name] = [terraform(value)]
        else:
            out[name] = [terraform(v) if isinstance(v, dict) else v for v in value] if isinstance(value, list) else value
    return out


def check_terraform(template, config):
    values = dict(terraform(template), user_data=base64.b64encode(config.encode()).decode(), kernel_id=None, description=None)
    tree = {"format_version": "1.2", "planned_values": {"root_module": {"resources": [
        {"address": "aws_launch_template.gpu", "type": "aws_launch_template", "name": "gpu", "values": values}]}}}
    p = subprocess.run([NODESTRAP, "config", "check", "--strict", "--output", "json", "-c", "/dev/stdin"], input=json.dumps(tree).encode(),
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    return p.returncode, json.loads(p.stdout)["findings"]


for name, (template, config) in BASES.items():
    status, found = check_terraform(template, config)
    result(status == 0 and not found, "config check --strict accepts the template \"%s\" in a plan of Terraform" % name, json.dumps(found, indent=1))
for base, path, change in (("P5", "network_interfaces[8]", put("NetworkInterfaces[4].NetworkCardIndex", 7)),
                           ("P5", "vpc_security_group_ids", put("SecurityGroupIds", ["sg-0123456789abcdef0"])),
                           ("P5", "network_interfaces[0].associate_public_ip_address", put("NetworkInterfaces[0].AssociatePublicIpAddress", "true")),
                           ("metadata and volumes", "metadata_options[0].http_tokens", put("MetadataOptions.HttpTokens", "optional")),
                           ("capacity block", "instance_market_options[0].market_type", drop("CapacityReservationSpecification")),
                           ("no_manage", "tag_specifications[0].tags", node_config())):
    template, config = copy.deepcopy(BASES[base])
    config = change if isinstance(change, str) else change(template) or config
    status, found = check_terraform(template, config)
    wanted = "planned_values.root_module.resources[0].values." + path
    result(status == 11 and {f.get("path") for f in found} == {wanted}, "config check --strict finds a mutation in a plan of Terraform at %s" % path, json.dumps(found, indent=1))

for words, change, wanted in (("accepts", put("KeyName", "ops"), 0), ("rejects", drop("CapacityReservationSpecification"), 11)):
    template, config = copy.deepcopy(BASES["capacity block"])
    change(template)
    data = dict(template, UserData=base64.b64encode(config.encode()).decode())
    p = subprocess.run([NODESTRAP, "plan", "--kubelet-version", "1.34.2", "--containerd-version", "2.1.5", "-c", "-"],
                       input=json.dumps({"LaunchTemplateData": data}).encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    result(p.returncode == wanted and (b"capacity-block needs" in p.stderr) == (wanted != 0), "plan %s a capacity block %s its reservation" %
           (words, "without" if wanted else "with"), (p.stdout + p.stderr).decode())

template, config = copy.deepcopy(BASES["capacity block"])
drop("CapacityReservationSpecification")(template)
p = subprocess.run([NODESTRAP, "config", "dump", "-c", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60, input=json.dumps(
    {"LaunchTemplateData": dict(template, UserData=base64.b64encode(config.encode()).decode())}).encode())
result(p.returncode == 0 and b'"apiVersion"' in p.stdout, "config dump prints the NodeConfig of a template with an error", p.stderr.decode())

# ---- a loop: five mutations of each interface of a type
template = BASES["P5"][0]
missed = []
for i in range(33):
    other = template["NetworkInterfaces"][(i + 1) % 33]
    for what, change in (("removed", drop("NetworkInterfaces[%d]" % i)),
                         ("moved", put("NetworkInterfaces[%d]" % i, dict(other, InterfaceType=template["NetworkInterfaces"][i]["InterfaceType"]))),
                         ("of another kind", put("NetworkInterfaces[%d].InterfaceType" % i, "interface" if i else "efa-only")),
                         ("without a group", drop("NetworkInterfaces[%d].Groups" % i)),
                         ("on a card that is not there", put("NetworkInterfaces[%d].NetworkCardIndex" % i, 32))):
        mutated = copy.deepcopy(template)
        change(mutated)
        if not check(mutated, BASES["P5"][1])[2]:
            missed.append("NetworkInterfaces[%d] %s" % (i, what))
result(not missed, "each of five mutations of each of 33 interfaces is a finding", "\n".join(missed))


# ---- keys: without a letter, and with a small first letter
def keys(tree, path=""):
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield path + key, key
            yield from keys(value, path + key + ".")
    elif isinstance(tree, list):
        for i, value in enumerate(tree):
            yield from keys(value, path[:-1] + "[%d]." % i)


missed, seen, unlike = [], set(), []
READ = ("ImageId InstanceType IamInstanceProfile SecurityGroupIds NetworkInterfaces NetworkCardIndex DeviceIndex InterfaceType Groups GroupName GroupId "
        "Placement InstanceMarketOptions MarketType CapacityReservationSpecification CapacityReservationTarget CapacityReservationId MetadataOptions "
        "HttpTokens HttpPutResponseHopLimit HttpEndpoint InstanceMetadataTags BlockDeviceMappings DeviceName VolumeSize TagSpecifications "
        "ResourceType SubnetId").split()
for name, (template, config) in BASES.items():
    for path, key in keys(template):
        if key not in READ or key in seen:
            continue
        seen.add(key)
        for wrong in (key[:-2] + key[-1], key[0].lower() + key[1:]):
            mutated = copy.deepcopy(template)
            rename(path, wrong)(mutated)
            said = [f for f in check(mutated, config)[2] if f["message"].startswith("is not a key that EC2 knows; did you mean ")]
            # Groupd is as near to Groups as it is to GroupId.
            if len(said) != 1 or not said[0]["path"].endswith(wrong) or (said[0]["suggestion"] != key and wrong != "Groupd"):
                missed.append("%s: %s" % (path, wrong))
            if MODEL and not botocore.validate.ParamValidator().validate(mutated, MODEL).has_errors():
                unlike.append("%s: %s" % (path, wrong))
result(not missed and seen == set(READ), "config check suggests the right key for two misspellings of each of %d keys" % len(READ), "\n".join(missed) or sorted(set(READ) - seen))

# ---- the model of EC2 in botocore
why = "" if MODEL else "botocore is not installed (python3-botocore)"
result(not unlike, "botocore refuses the misspelled keys, too", "\n".join(unlike), why)
for name, (template, _) in BASES.items():
    report = botocore.validate.ParamValidator().validate(template, MODEL) if MODEL else None
    result(not report or not report.has_errors(), "botocore accepts the template \"%s\"" % name, report and report.generate_report(), why)


def all_keys(shape, seen=()):
    """A tree with each key of the model."""
    if shape.type_name == "structure":
        return {} if shape.name in seen else {k: all_keys(v, seen + (shape.name,)) for k, v in shape.members.items()}
    if shape.type_name == "list":
        return [all_keys(shape.member, seen)]
    return 1 if shape.type_name in ("integer", "long", "float", "double") else True if shape.type_name == "boolean" else "x"


said = []
if MODEL:
    found = check(all_keys(MODEL), node_config())[2]
    said = [f for f in found if "is not a key that EC2 knows" in f["message"] or not f["path"].startswith(PREFIX)]
    said += ["not looked at"] if not any("HttpTokens" in f["path"] for f in found) else []
result(not said, "config check calls no key of the EC2 model a misspelling", json.dumps(said, indent=1), why)
print("1..%d" % number)
sys.exit(failed > 0)
