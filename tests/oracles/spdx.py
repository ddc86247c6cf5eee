#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""spdx.py ROOT SOURCES [unknown]: checks the software bill of materials of the package that is unpacked at ROOT.

Form: the rules of SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/), each identifier once, both ends of each relationship in the
document. Content: exactly the files of the package, without the document itself, with their checksums. Exactly the libraries in the ELF
header of the program and those that the sources load. Each library has the version that is installed here. With "unknown", for a
package that is installed elsewhere, it has its name alone, without version and supplier. Prints the faults.
"""
import hashlib, json, os, re, struct, subprocess, sys

import jsonschema

ROOT, SOURCES, UNKNOWN = sys.argv[1], sys.argv[2], sys.argv[3:] == ["unknown"]
SELF, PROGRAM = "./usr/share/doc/nodestrap/nodestrap.spdx.json", "./usr/bin/nodestrap"
ID = {"type": "string", "pattern": "^SPDXRef-[A-Za-z0-9.-]+$"}
TEXT = {"type": "string", "minLength": 1}
ACTOR = {"type": "string", "pattern": r"^(NOASSERTION|(Organization|Person): .+)$"}
LICENCE = {"enum": ["Apache-2.0", "NOASSERTION"]}


def fields(needed, **rest):
    return {"type": "object", "required": needed.split(), "properties": rest, "additionalProperties": False}


SCHEMA = fields(
    "spdxVersion dataLicense SPDXID name documentNamespace creationInfo packages files relationships",
    spdxVersion={"const": "SPDX-2.3"}, dataLicense={"const": "CC0-1.0"}, SPDXID={"const": "SPDXRef-DOCUMENT"}, name=TEXT,
    documentNamespace={"type": "string", "pattern": "^https://[^#]+-[0-9a-f]{64}$"},
    creationInfo=fields("created creators", created={"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$"},
                        creators={"type": "array", "minItems": 1, "items": {"type": "string", "pattern": "^(Person|Organization|Tool): .+"}}),
    packages={"type": "array", "items": fields(
        "SPDXID name supplier downloadLocation filesAnalyzed licenseDeclared licenseConcluded copyrightText", SPDXID=ID, name=TEXT, versionInfo=TEXT,
        supplier=ACTOR, downloadLocation={"const": "NOASSERTION"}, primaryPackagePurpose={"enum": ["APPLICATION", "LIBRARY"]},
        filesAnalyzed={"type": "boolean"}, licenseDeclared=LICENCE, licenseConcluded=LICENCE, copyrightText=TEXT,
        packageVerificationCode=fields("packageVerificationCodeValue", packageVerificationCodeValue={"type": "string", "pattern": "^[0-9a-f]{40}$"},
                                       packageVerificationCodeExcludedFiles={"type": "array", "items": {"type": "string"}}),
        externalRefs={"type": "array", "items": fields(
            "referenceCategory referenceType referenceLocator", referenceCategory={"const": "PACKAGE-MANAGER"}, referenceType={"const": "purl"},
            referenceLocator={"type": "string", "pattern": r"^pkg:(generic/nodestrap|(deb|rpm)/[a-z.-]+/[A-Za-z0-9.+_-]+)@[A-Za-z0-9.:~%^_-]+\?arch=[a-z0-9_]+$"})})},
    files={"type": "array", "minItems": 20, "items": fields(
        "SPDXID fileName checksums licenseConcluded copyrightText", SPDXID=ID, fileName={"type": "string", "pattern": "^[.]/"}, licenseConcluded=LICENCE,
        copyrightText=TEXT, checksums={"type": "array", "items": fields("algorithm checksumValue", algorithm={"enum": ["SHA1", "SHA256"]}, checksumValue=TEXT)})},
    relationships={"type": "array", "items": fields(
        "spdxElementId relationshipType relatedSpdxElement", spdxElementId=ID, relatedSpdxElement=ID, comment=TEXT,
        relationshipType={"enum": ["DESCRIBES", "CONTAINS", "DYNAMIC_LINK", "RUNTIME_DEPENDENCY_OF", "OPTIONAL_DEPENDENCY_OF"]})})

faults = []


def same(what, found, want):
    if found != want:
        faults.append("%s: is %s, want %s" % (what, found, want))


def needed(path):
    """DT_NEEDED of a 64-bit little-endian ELF file (elf(5))."""
    data = open(path, "rb").read()
    offset, size, count = *struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54)
    heads = [struct.unpack_from("<IIQQQQQQ", data, offset + i * size) for i in range(count)]
    place = lambda address: next(h[2] + address - h[3] for h in heads if h[0] == 1 and h[3] <= address < h[3] + h[5])
    dynamic = next(h for h in heads if h[0] == 2)
    tags = [struct.unpack_from("<QQ", data, dynamic[2] + i) for i in range(0, dynamic[5], 16)]
    strings = place(next(v for t, v in tags if t == 5))
    return {data[strings + v:data.index(b"\0", strings + v)].decode() for t, v in tags if t == 1}


def opened():
    """The libraries that the sources name in a string of their own."""
    found = set()
    for folder, _, names in os.walk(os.path.join(SOURCES, "src")):
        for name in names:
            found |= set(re.findall(r'"(lib[a-z0-9_+-]+\.so\.\d+)"', open(os.path.join(folder, name)).read()))
    return found


document = json.load(open(os.path.join(ROOT, SELF)))
for e in jsonschema.Draft7Validator(SCHEMA).iter_errors(document):
    faults.append("%s: %s" % ("/".join(map(str, e.path)), e.message[:200]))
if faults:
    sys.exit("\n".join(faults))

# identifiers, and both ends of each relationship
elements = [document["SPDXID"]] + [x["SPDXID"] for x in document["packages"] + document["files"]]
same("duplicate identifiers", sorted({x for x in elements if elements.count(x) > 1}), [])
relations = [(r["spdxElementId"], r["relationshipType"], r["relatedSpdxElement"], r.get("comment")) for r in document["relationships"]]
same("relationships with an unknown identifier", [r for r in relations if r[0] not in elements or r[2] not in elements], [])
packages = {p["SPDXID"]: p for p in document["packages"]}
ours = [r[2] for r in relations if r[1] == "DESCRIBES"]
same("described packages", [packages[x]["name"] for x in ours], ["nodestrap"])
own = packages[ours[0]]

# files
there = {}
for folder, _, names in os.walk(ROOT):
    for name in names:
        path = os.path.join(folder, name)
        if not os.path.islink(path) and "./" + os.path.relpath(path, ROOT) != SELF:
            data = open(path, "rb").read()
            there["./" + os.path.relpath(path, ROOT)] = {"SHA1": hashlib.sha1(data).hexdigest(), "SHA256": hashlib.sha256(data).hexdigest()}
told = {f["fileName"]: {c["algorithm"]: c["checksumValue"] for c in f["checksums"]} for f in document["files"]}
for name in sorted(there.keys() | told.keys()):
    same(name, told.get(name), there.get(name))
same("contained files", sorted(r[2] for r in relations if r[1] == "CONTAINS"), sorted(f["SPDXID"] for f in document["files"]))
same("verification code", own["packageVerificationCode"]["packageVerificationCodeValue"],
     hashlib.sha1("".join(sorted(c["SHA1"] for c in there.values())).encode()).hexdigest())
same("files that the verification code excludes", own["packageVerificationCode"]["packageVerificationCodeExcludedFiles"], [SELF])

# libraries
program = next(f["SPDXID"] for f in document["files"] if f["fileName"] == PROGRAM)
linked = {r[3]: r[2] for r in relations if r[1] == "DYNAMIC_LINK" and r[0] == program}
loaded = {r[3]: r[0] for r in relations if r[1].endswith("_DEPENDENCY_OF") and r[2] == program}
same("linked libraries", sorted(linked), sorted(needed(os.path.join(ROOT, PROGRAM))))
same("loaded libraries", sorted(loaded), sorted(opened() - linked.keys()))
optional = {r[3] for r in relations if r[1] == "OPTIONAL_DEPENDENCY_OF"}
same("libraries that only some machines have", {x.partition("-")[0] for x in optional}, {"libnvidia", "libcuda.so.1"})
same("packages", sorted(packages), sorted({ours[0], *linked.values(), *loaded.values()}))
for soname, identifier in sorted({**linked, **loaded}.items()):
    p = packages[identifier]
    if soname in optional or UNKNOWN:
        same(soname, (p["name"], p["supplier"], p.get("versionInfo"), p.get("externalRefs")), (soname, "NOASSERTION", None, None))
        continue
    arch = p["externalRefs"][0]["referenceLocator"].rpartition("=")[2]
    version = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", "%s:%s" % (p["name"], arch)], stdout=subprocess.PIPE, text=True).stdout
    same("%s (%s)" % (soname, p["name"]), p.get("versionInfo"), version)
    content = subprocess.run(["dpkg-query", "-L", "%s:%s" % (p["name"], arch)], stdout=subprocess.PIPE, text=True).stdout
    same("%s in %s" % (soname, p["name"]), bool(re.search(r"/%s$" % re.escape(soname), content, re.M)), True)
sys.exit("\n".join(faults) or 0)
