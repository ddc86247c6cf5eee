#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares our readers of the NVIDIA driver with nvidia-smi, value by value, on a machine with a GPU. Changes no setting.

usage: device.py --tool FILE [--smi FILE] [--root DIR] [--report DIR]

--tool is tests/helpers/device-tool, --smi the output of `nvidia-smi -q -x` (default: run it). --report keeps both outputs, the messages
of the kernel and /proc/driver/nvidia, which can become fixtures. Without a GPU the only test is skipped. The elements are those of the DTD
of nvidia-smi (https://docs.nvidia.com/deploy/nvidia-smi). Older drivers have other names for some. A value that nvidia-smi lacks is
skipped with the reason.
"""
import argparse
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

NO = ("N/A", "[N/A]", "Not Supported", "", None)
REASONS = {"hw_slowdown": 0x08, "sw_thermal_slowdown": 0x20, "hw_thermal_slowdown": 0x40, "hw_power_brake_slowdown": 0x80}
RECOVERY = ("None", "Reset", "Reboot", "Drain P2P", "Drain and Reset")


def first(gpu, *paths):
    """The text of the first of these elements that has one."""
    texts = (gpu.findtext(p) for p in paths)
    return next((t.strip() for t in texts if t is not None and t.strip() not in NO), None)


def yes(*paths):
    def read(gpu):
        words = [first(gpu, *p.split("|")) for p in paths]
        if None in words:
            return None
        return ",".join("yes" if w in ("Yes", "Enabled", "Active", "True") else "no" for w in words)
    return read


def megahertz(place):
    def read(gpu):
        found = [first(gpu, f"{place}/{clock}_clock") for clock in ("mem", "graphics")]
        return None if None in found else ",".join(f.split()[0] for f in found)
    return read


def highest(gpu):
    """The highest of the supported pairs, not max_clocks: applications can set only supported pairs."""
    pairs = [(int(m.findtext("value").split()[0]), int(g.text.split()[0]))
             for m in gpu.findall("supported_clocks/supported_mem_clock") for g in m.findall("supported_graphics_clock")]
    return "%d,%d" % max(pairs) if pairs else None


def reasons(gpu):
    """Only the bits that are faults: other bits change between two queries."""
    bits = 0
    for word, bit in REASONS.items():
        state = first(gpu, f"clocks_event_reasons/clocks_event_reason_{word}", f"clocks_throttle_reasons/clocks_throttle_reason_{word}")
        if state is None:
            return None
        bits |= bit if state == "Active" else 0
    return str(bits)


def uncorrected(gpu):
    counters = [e for e in gpu.iterfind("ecc_errors/volatile/*") if "uncorrectable" in e.tag and e.tag != "sram_threshold_exceeded"]
    if not counters or any(e.text in NO for e in counters):
        return None
    return str(sum(int(e.text) for e in counters))


def pci_id(gpu):
    text = first(gpu, "pci/pci_device_id")
    return text and "0x%s%s" % (text[-4:].lower(), text[-8:-4].lower())


def recovery(gpu):
    word = first(gpu, "gpu_recovery_action")
    return str(RECOVERY.index(word)) if word in RECOVERY else None


def clique(gpu):
    return first(gpu, "fabric/cliqueId") if first(gpu, "fabric/state") == "Completed" else None


def cluster(gpu):
    text = first(gpu, "fabric/clusterUuid")
    return text and text.replace("-", "").lower()


# key of device-tool, reader of the nvidia-smi value, conversion of our value into that form
ROWS = (
    ("uuid", lambda g: first(g, "uuid"), str),
    ("pci-id", pci_id, str),
    ("persistence", yes("persistence_mode"), str),
    ("mig", yes("mig_mode/current_mig", "mig_mode/pending_mig"), str),
    ("recovery", recovery, str),
    ("rows", yes("remapped_rows/remapped_row_pending", "remapped_rows/remapped_row_failure"), str),
    ("pages", yes("retired_pages/pending_retirement|retired_pages/pending_blacklist"), str),
    ("ecc-uncorrected", uncorrected, str),
    ("fabric-state", lambda g: first(g, "fabric/state"), str),
    ("fabric-clique", clique, str),
    ("fabric-uuid", cluster, str),
    ("clocks-highest", highest, str),
    ("clocks-applications", megahertz("applications_clocks"), str),
    ("clocks-default", megahertz("default_applications_clocks"), str),
    ("clock-reasons", reasons, lambda v: str(int(v, 16) & 0xe8)),
)


class Tap:
    count = failed = 0

    def line(self, good, name, why=""):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}{why}")

    def skip(self, name, why):
        self.line(True, name, f" # SKIP {why}")


def address(gpu):
    """00000000:53:00.0 → 0000:53:00.0, as in sysfs"""
    return re.sub("^0000(?=[0-9a-f]{4}:)", "", gpu.get("id").lower())


def compare(tap, ours, smi):
    gpus = {address(g): g for g in ET.fromstring(smi).iterfind("gpu")}
    seen = {g for g, _, _ in ours if g != "-"}
    tap.line(seen == set(gpus), "the same GPUs are in device-tool and in nvidia-smi", "" if seen == set(gpus) else f"\n# ours: {sorted(seen)}\n# nvidia-smi: {sorted(gpus)}")
    for gpu, element in sorted(gpus.items()):
        values = {key: value for g, key, value in ours if g == gpu}
        for key, read, alike in ROWS:
            name, theirs, mine = f"{gpu} {key}", read(element), values.get(key)
            if theirs is None:
                tap.skip(name, f"nvidia-smi does not say; ours: {mine}")
            elif mine is None or mine.startswith("["):
                tap.line(False, name, f"\n# ours: {mine}\n# nvidia-smi: {theirs}")
            else:
                tap.line(alike(mine) == theirs, name, "" if alike(mine) == theirs else f"\n# ours: {mine}\n# nvidia-smi: {theirs}")


def keep(directory, files):
    os.makedirs(directory, exist_ok=True)
    log = subprocess.run(["dmesg"], capture_output=True, text=True, check=False).stdout
    files["kernel.txt"] = "".join(line + "\n" for line in log.splitlines() if re.search("nvrm|nvidia|xid|nvlink", line, re.I))
    for name in ("version", "params"):
        try:
            with open(f"/proc/driver/nvidia/{name}", encoding="utf-8") as f:
                files[f"{name}.txt"] = f.read()
        except OSError as e:
            files[f"{name}.txt"] = f"{e}\n"
    for name, text in files.items():
        with open(os.path.join(directory, name), "w", encoding="utf-8") as f:
            f.write(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    parser.add_argument("--smi")
    parser.add_argument("--root", default="/")
    parser.add_argument("--report")
    options = parser.parse_args()
    tap = Tap()
    if not options.smi and not os.path.exists("/proc/driver/nvidia/version"):
        print("1..1")
        tap.skip("our readers agree with nvidia-smi", "no NVIDIA driver is loaded here")
        return 0
    tool = subprocess.run([options.tool, options.root], capture_output=True, text=True, check=False)
    if tool.returncode:
        sys.exit(f"{options.tool}: exit status {tool.returncode}: {tool.stderr.strip()}")
    if options.smi:
        with open(options.smi, encoding="utf-8") as f:
            smi = f.read()
    else:
        smi = subprocess.run(["nvidia-smi", "-q", "-x"], capture_output=True, text=True, check=True).stdout
    if options.report:
        keep(options.report, {"readers.txt": tool.stdout, "smi.xml": smi})
    compare(tap, [line.split(" ", 2) for line in tool.stdout.splitlines()], smi)
    print("".join(f"# {line}\n" for line in tool.stdout.splitlines() if line.split(" ")[1] in ("finding", "gpudirect", "links-up")), end="")
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


sys.exit(main())
