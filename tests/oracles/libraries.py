#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: libraries.py PROGRAM [SOURCES]
Does the program run with the libraries of Amazon Linux 2023? The oracle reads what the ELF of the program needs from the dynamic linker.
With SOURCES (the folder src/ of its build), it also reads what the program loads with dlopen(3), its constants of libcurl and the numbers
for syscall(2). Each symbol has the version of its library that introduced it: in the ELF if the library gives versions to its symbols,
otherwise in the table below. A symbol in neither fails, and so does one that is newer than Amazon Linux 2023. Prints TAP."""
import os, re, subprocess, sys

# https://docs.aws.amazon.com/linux/al2023/release-notes/all-packages.html: the lowest version in any of its releases.
AL2023 = {"glibc": "2.34", "systemd": "252", "openssl": "3.0.0", "util-linux": "2.37", "jansson": "2.14", "libyaml": "0.2.5",
          "expat": "2.5.0", "zlib": "1.2.11", "curl": "7.87.0", "linux": "6.1", "nvml": "384"}
# Version nodes of libraries that give versions to their symbols.
NODES = {"GLIBC": "glibc", "LIBSYSTEMD": "systemd", "OPENSSL": "openssl", "BLKID": "util-linux", "MOUNT": "util-linux"}
# Libraries that the program links, by the name in both distributions.
LOADERS = {"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"}
LINKED = {"libjansson.so.4", "libyaml-0.so.2", "libexpat.so.1", "libz.so.1", "libsystemd.so.0", "libcrypto.so.3", "libc.so.6", "libm.so.6",
          *map(os.path.basename, LOADERS)}
# For libraries that give no versions to symbols, the first release with each symbol. Sources: jansson's CHANGES.rst and the headers of each
# of its tags; libyaml's and zlib's headers; expat's Changes; libcurl's docs/libcurl/symbols-in-versions and man pages ("Added-in"); the
# manual pages of section 2.
SINCE = """
jansson 1.0 json_array json_array_get json_array_size json_delete json_dumps json_false json_integer json_integer_value json_loadf
 json_load_file json_loads json_null json_number_value json_object json_object_del json_object_get json_object_iter json_object_iter_key json_object_iter_next
 json_object_iter_value json_real json_real_value json_string json_string_value json_true
jansson 1.3 json_object_iter_at
jansson 1.1 json_array_append_new json_array_extend json_array_insert_new json_array_remove json_array_set_new json_object_set_new
 json_object_size json_object_update
jansson 1.2 json_copy json_deep_copy json_equal json_object_set_new_nocheck
jansson 2.0 json_pack json_set_alloc_funcs json_unpack json_unpack_ex
jansson 2.1 json_loadb
jansson 2.3 json_object_key_to_iter json_object_update_missing
jansson 2.7 json_string_length json_stringn json_stringn_nocheck
jansson 2.11 json_sprintf
jansson 2.14 json_object_getn json_object_iter_key_len json_object_setn_new_nocheck
libyaml 0.0.1 yaml_event_delete yaml_parser_delete yaml_parser_initialize yaml_parser_parse yaml_parser_set_encoding
 yaml_parser_set_input yaml_parser_set_input_string
expat 1.95.0 XML_Parse XML_ParserCreate XML_ParserFree XML_SetCharacterDataHandler XML_SetElementHandler
 XML_SetStartDoctypeDeclHandler XML_SetUserData
expat 1.95.8 XML_StopParser
zlib 0.99 crc32 deflate deflateEnd deflateInit2_ inflate inflateEnd inflateInit2_ inflateReset
curl 7.1 CURLE_OUT_OF_MEMORY curl_easy_init curl_easy_cleanup curl_easy_setopt curl_easy_perform curl_getdate curl_slist_append curl_slist_free_all
 CURLE_ABORTED_BY_CALLBACK CURLE_COULDNT_CONNECT CURLE_COULDNT_RESOLVE_HOST CURLE_COULDNT_RESOLVE_PROXY CURLE_OK
 CURLE_SSL_CONNECT_ERROR CURLE_UNSUPPORTED_PROTOCOL CURLOPT_CUSTOMREQUEST CURLOPT_ERRORBUFFER CURLOPT_FOLLOWLOCATION
 CURLOPT_HTTPHEADER CURLOPT_NOBODY CURLOPT_NOPROGRESS CURLOPT_POSTFIELDS CURLOPT_PROXY CURLOPT_SSLVERSION CURLOPT_URL
 CURLOPT_USERAGENT CURLOPT_WRITEFUNCTION
curl 7.4.1 curl_easy_getinfo
curl 7.4.2 CURLOPT_CAINFO CURLOPT_SSL_VERIFYPEER
curl 7.5 CURLINFO_SSL_VERIFYRESULT
curl 7.7 CURLOPT_FORBID_REUSE CURLOPT_FRESH_CONNECT CURLOPT_MAXCONNECTS
curl 7.9.6 curl_multi_init curl_multi_add_handle curl_multi_remove_handle curl_multi_perform curl_multi_info_read curl_multi_cleanup
curl 7.9.8 CURLOPT_CAPATH CURLOPT_HEADERFUNCTION CURLOPT_HTTPGET CURLOPT_HTTP_VERSION CURLOPT_POSTFIELDSIZE CURLOPT_SSL_VERIFYHOST
 CURLOPT_WRITEDATA CURL_HTTP_VERSION_1_1
curl 7.12.2 curl_easy_strerror CURLE_OPERATION_TIMEDOUT CURLINFO_HTTP_CONNECTCODE CURLINFO_OS_ERRNO CURLINFO_RESPONSE_CODE
 CURLOPT_HEADERDATA CURLOPT_NOSIGNAL
curl 7.17.1 CURLE_PEER_FAILED_VERIFICATION CURLE_SSL_CACERT_BADFILE CURLOPT_CONNECTTIMEOUT_MS CURLOPT_TIMEOUT_MS
curl 7.25.0 CURLOPT_CLOSESOCKETDATA CURLOPT_CLOSESOCKETFUNCTION CURLOPT_NOPROXY CURLOPT_TCP_KEEPALIVE
curl 7.34.0 CURLOPT_XFERINFODATA CURLOPT_XFERINFOFUNCTION CURL_SSLVERSION_TLSv1_2
curl 7.40.0 CURLOPT_UNIX_SOCKET_PATH
curl 7.49.0 CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE
curl 7.54.0 CURLE_WEIRD_SERVER_REPLY CURLOPT_SUPPRESS_CONNECT_HEADERS
curl 7.61.0 CURLINFO_NAMELOOKUP_TIME_T
curl 7.66.0 curl_multi_poll
curl 7.77.0 CURLOPT_CAINFO_BLOB
nvml 384 nvmlInit_v2 nvmlShutdown nvmlErrorString nvmlDeviceGetCount_v2 nvmlDeviceGetHandleByIndex_v2 nvmlDeviceGetPciInfo_v3
linux 2.2 SYS_capget SYS_capset SYS_clone
linux 2.4 SYS_pivot_root
linux 5.3 SYS_pidfd_open
linux 5.6 SYS_openat2
linux 5.8 STATX_ATTR_MOUNT_ROOT
linux 5.12 SYS_mount_setattr
"""
# Symbols of jansson have the name of the library as their version. Symbols that a linker adds have no version and may be missing.
ONE_NODE = "libjansson.so.4"
WEAK = {"__gmon_start__", "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize"}
known = {}
number = failed = 0


def result(bad, name):
    """One line of TAP: bad are the reasons why it is not ok."""
    global number, failed
    number += 1
    failed += bool(bad)
    print(f"{'not ok' if bad else 'ok'} {number} - {name}")
    for reason in bad:
        print(f"# {reason}")


def version(text):
    return [int(part) for part in text.split(".")]


def too_new(what, library, since):
    if version(since) > version(AL2023[library]):
        return f"{what} is of {library} {since}; Amazon Linux 2023 has {AL2023[library]}"
    return None


def judge_node(symbol, node):
    """A symbol with a version -> None, or why it fails."""
    name, _, since = node.rpartition("_")
    if name not in NODES or not re.fullmatch(r"[0-9.]+", since):
        return f"{symbol}@{node}: no library is known to have such versions"
    return too_new(f"{symbol}@{node}", NODES[name], since)


def judge_name(name):
    """A symbol without a version -> None, or why it fails."""
    if name not in known:
        return f"{name}: since when? It is not in the table of {sys.argv[0]}"
    return too_new(name, *known[name])


def readelf(options, path):
    return subprocess.run(["readelf", "-W", *options, path], stdout=subprocess.PIPE, check=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout


def symbols(path, undefined):
    """(name, version or None) of its dynamic symbols."""
    for line in readelf(["--dyn-syms"], path).splitlines():
        field = line.split()
        if len(field) >= 8 and field[0].endswith(":") and (field[6] == "UND") == undefined:
            name, _, node = field[7].partition("@")
            yield name, node.lstrip("@") or None


def judge_linked(program):
    notes = readelf(["-d", "-l", "-V"], program)
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", notes))
    result([f"{name} is linked" for name in sorted(needed - LINKED)], "Amazon Linux 2023 has each linked library under the same name")
    loader = re.findall(r"interpreter: (.*)\]", notes)
    result([f"it is {loader}"] if len(loader) != 1 or loader[0] not in LOADERS else [], "the dynamic linker has the same path in Amazon Linux 2023")
    # The ELF can need nodes that no symbol has, such as GLIBC_ABI_DT_RELR.
    nodes = set(re.findall(r"Name: (\S+)\s+Flags", notes)) - {ONE_NODE}
    found = list(symbols(program, True))
    bad = [judge_node("", node) for node in sorted(nodes)]
    bad += [judge_node(name, node) for name, node in found if node and node != ONE_NODE]
    result(list(filter(None, bad)), f"none of {sum(bool(node) for _, node in found)} symbols with a version is newer than Amazon Linux 2023")
    plain = [name for name, node in found if node in (None, ONE_NODE) and name not in WEAK]
    result(list(filter(None, map(judge_name, plain))), f"none of {len(plain)} symbols without a version is newer than Amazon Linux 2023")
    result([] if len(found) > 100 and len(plain) > 20 else [str(found)], "readelf finds more than 100 symbols, and more than 20 of them have no version")


def preprocess(path, sources):
    compiler, environment = os.environ.get("CC", "cc").split(), dict(os.environ)
    if other := re.search(r"([a-z0-9_]+-linux-gnu)-gcc", compiler[0]):
        environment["PKG_CONFIG_LIBDIR"] = f"/usr/lib/{other[1]}/pkgconfig:/usr/share/pkgconfig"
    flags = subprocess.run([os.environ.get("PKG_CONFIG", "pkg-config"), "--cflags", "jansson", "libcurl", "blkid", "mount"],
                           stdout=subprocess.PIPE, check=True, text=True, env=environment).stdout.split()
    command = [*compiler, "-E", "-P", "-std=gnu17", "-D_GNU_SOURCE", "-DVERSION=\"0\"", f"-I{sources}", *flags, path]
    return subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout


def literal(text):
    """Adjacent string literals -> their text."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace("\\0", "\0")


def library_path(name):
    for line in subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines():
        if line.split()[:1] == [name]:
            return line.split("=> ")[1]
    return None


def judge_loaded(name, functions, package):
    """The arguments of library_load() -> the faults in them."""
    must = [f for f in functions if not f.startswith("?")]
    if name.startswith(("libblkid.", "libmount.")):
        path = library_path(name)
        if not path:
            return [f"{name} is not on this machine, so its symbols are not known"]
        nodes = dict(symbols(path, False))
        bad = [judge_node(f, nodes.get(f) or "none") for f in must]
        newest = max((nodes[f].rpartition("_")[2] for f in must if nodes.get(f)), key=version, default="0")
    else:
        bad = list(map(judge_name, must))
        newest = max((known[f][1] for f in must if f in known), key=version, default="0")
        if name.startswith("libcurl."):             # its options count, too
            newest = max((since for library, since in known.values() if library == "curl"), key=version)
    told = re.search(r"version ([0-9.]+) or later", package or "")
    if package and (not told or version(told[1]) != [n for n in version(newest)][:len(version(told[1]))]):
        bad.append(f"{name}: what is told to be installed is \"{package}\", but it is {newest} that has all of this first")
    return [b for b in bad if b]


def judge_sources(program, sources):
    texts = {}
    for folder, _, files in os.walk(sources):
        for file in files:
            if file.endswith((".c", ".h")):
                path = os.path.join(folder, file)
                with open(path, encoding="utf-8") as f:
                    texts[os.path.relpath(path, sources)] = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
    stray = [f"{path} calls {call}()" for path, text in sorted(texts.items()) for call in re.findall(r"\b(dlv?sym|dlm?open)\s*\(", text)
             if path not in ("base/library.c", "prove/main.c")]         # prove/main.c is another program, without libcrypto
    result(stray, "only base/library.c and prove/main.c load libraries")
    with open(program, "rb") as f:
        code = f.read()
    text = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
    for path in sorted(p for p in texts if "library_load(" in texts[p] and not p.startswith("base/library.")):
        calls = re.findall(r"library_load\(\s*" + text + r",\s*" + text + r",\s*(?:" + text + r"|\(\(void ?\*\)0\))\s*,",
                           preprocess(os.path.join(sources, path), sources))
        result([] if len(calls) == texts[path].count("library_load(") else [f"read: {calls}"], f"the oracle can read each call of library_load() in {path}")
        for name, functions, package in calls:
            name, functions, package = literal(name), literal(functions).rstrip("\0").split("\0"), literal(package)
            bad = judge_loaded(name, functions, package)
            if "\0".join(functions).encode() + b"\0" not in code or name.encode() not in code:
                bad.append("the program was built of something else")
            result(bad, f"{path}: none of {len(functions)} functions of {name} is newer than Amazon Linux 2023")
    used = sorted({name for text in texts.values() for name in re.findall(r"\b(CURL(?:OPT|INFO|E|_HTTP_VERSION|_SSLVERSION)_\w+)", text)})
    result(list(filter(None, map(judge_name, used))), f"none of {len(used)} libcurl constants is newer than the libcurl of Amazon Linux 2023")
    calls = sorted({name for text in texts.values() for name in re.findall(r"\b((?:SYS|__NR)_[a-z]\w*|STATX_ATTR_\w+)", text)})
    result(list(filter(None, map(judge_name, calls))), f"the kernel of Amazon Linux 2023 has {', '.join(calls)}")


def main():
    library = since = None
    for line in SINCE.strip().splitlines():
        words = line.split()
        if not line.startswith(" "):
            library, since, *words = words
        known.update({word: (library, since) for word in words})
    if "__asan" in readelf(["--dyn-syms"], sys.argv[1]):
        print("1..0")       # a build with sanitizers is another program
        return 0
    judge_linked(sys.argv[1])
    if len(sys.argv) > 2:
        judge_sources(sys.argv[1], sys.argv[2])
    print(f"1..{number}")
    return failed > 0


sys.exit(main())
