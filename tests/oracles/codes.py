#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""nodestrap-codes(7) has an entry for each code that the program can print, and for no other code. Prints TAP.

The codes come from the sources: causes and exit codes from error.h, warnings from the calls that add one, and words of health
from the calls that add a finding. Verdicts and outcomes come from the code that sets them.
"""
import collections, os, re, sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# Function → the index of the argument that is the code.
SAYS = {"diag_warn": 1, "diag_warn_at": 1, "merge_warn": 2, "part_warn": 3, "work_miss": 3, "finding_add": 1, "FOUND": 1, "event_at": 1, "pull_warn": 0}
CODE = re.compile(r'"([a-z][a-z0-9]*(?:-[a-z0-9]+)*)"')
# Files with calls whose code comes from elsewhere: from other warnings, or from the tables and calls below.
PASSED_ON = {"src/base/error.c", "src/config/texts.c", "src/doc/mime.c",
             "src/apply/task.c", "src/apply/work.c", "src/apply/health.c", "src/nic/net-event.c", "src/nic/snapshot.c",
             "src/health/findings.c", "src/health/gpu.c", "src/health/kernel-log.c", "src/health/prove.c"}
TABLES, NO_CODES = {"src/health/gpu.c", "src/health/kernel-log.c", "src/health/prove.c"}, {"nvidia-nvswitch"}
# Actions of these types may fail. Their executor has no code of its own, so the type is the code (task.c, task_miss).
MISSED = re.compile(r'\{ ("[a-z-]+"), [^\[]*?\.lenient = true')


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as f:
        return f.read()


def sources():
    for folder, _, files in sorted(os.walk(os.path.join(TOP, "src"))):
        for name in sorted(files):
            if name.endswith((".c", ".h")):
                path = os.path.relpath(os.path.join(folder, name), TOP)
                yield path, re.sub(r"/\*.*?\*/", "", read(path), flags=re.S)


def arguments(text, at):
    """The arguments of the call whose parenthesis opens right before at."""
    depth, begin, out = 0, at, []
    for m in re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[(){}\[\],]').finditer(text, at):
        c = m.group()
        if c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                return out + [text[begin:m.start()]]
            depth -= 1
        elif c == "," and depth == 0:
            out.append(text[begin:m.start()])
            begin = m.end()
    return out

def split_calls(text, name):
    for m in re.finditer(r"\b%s\(" % name, text):
        yield arguments(text, m.end())


def words_of(text, table):
    """The texts of DEFINE_STRING_TABLE(table, …)."""
    return CODE.findall(re.search(r"DEFINE_STRING_TABLE\(%s,(.*?)\)" % table, text, re.S).group(1))


def causes():
    numbers = dict(re.findall(r"(EXIT_[A-Z_]+) = (\d+)", read("src/base/error.h")))
    return {(word, numbers["EXIT_" + code]) for word, code in re.findall(r'X\([A-Z0-9_]+, "([A-Z0-9]+)", ([A-Z_]+)\)', read("src/base/error.h"))}


def defined():
    """The names that a #define gives to a code: name → code in quotes."""
    return {name: '"%s"' % code for _, text in sources() for name, code in re.findall(r'#define ([A-Z_]+) +"([a-z][a-z0-9-]*)"', text)}


def program():
    """({warning}, {word of health}, {verdict}, {outcome}, calls whose code is not seen)"""
    warnings, health, verdicts, unseen, names = set(), set(), set(), [], defined()
    for path, text in sources():
        for name, at in SAYS.items():
            for given in split_calls(text, name):
                code = given[at].strip() if len(given) > at else ""
                code = names.get(code, code)
                found = CODE.findall(code)
                (health if path.startswith("src/health/") or name == "finding_add" else warnings).update(found)
                if not found and not code.startswith("const char *") and path not in PASSED_ON:
                    unseen.append("%s: %s(… %s …)" % (path, name, code))
        warnings.update(re.findall(r'code = xstrdup\("([a-z-]+)"\)', text))   # an error that has become a warning
        if path in TABLES:
            health.update(w for w in CODE.findall(text) if ("-" in w or w in ("xid", "sxid")) and w not in NO_CODES)
        if path == "src/plan/requirements.c":
            warnings.update(re.findall(r'\.code = "([a-z-]+)"', text))
        if path == "src/apply/table.c":     # of steps that a node can do without
            warnings.update(re.findall(r'\.missed = "([a-z-]+)"', text))
            warnings.update(w for name in ("WORK", "WAIT") for given in split_calls(text, name) if len(given) > 2 for w in CODE.findall(given[2]))
        if path.startswith("src/report/"):
            for value in re.findall(r"\.word = ([^;]*?)(?:, \.|;)", text):
                verdicts.update(CODE.findall(value))
        if path == "src/report/phases.c":   # of a phase, and of the boot
            for value in re.findall(r"(?:return|verdict = |entry_new\(JOIN,)([^;]*);", text):
                verdicts.update(w for w in re.findall(r'"([a-z]+(?: [a-z]+)?)"', value) if w not in ("phase", "verdict", "skipped", "steps"))
    warnings.update(word.strip('"') for word in MISSED.findall(read("src/plan/action.c")))
    return warnings, health, verdicts, set(words_of(read("src/apply/task.c"), "outcome")), unseen


def unhelpful():
    """Causes without Look and Do, and causes whose Look or Do only names another entry: status prints these texts of one entry."""
    causes = re.search(r"^\.SH CAUSES\n(.*?)^\.SH ", read("debian/nodestrap-codes.7"), re.S | re.M).group(1)
    for word, text in re.findall(r'^\.BR (E[A-Z0-9]+) " [^\n]*\n(.*?)(?=^\.TP|^\.SS|\Z)', causes, re.S | re.M):
        if not re.search(r"\\fI(Look|Do):", text):
            yield "%s: neither Look nor Do" % word
        elif re.search(r"\\fI(Look|Do):\\fR As E[A-Z0-9]+", text):
            yield "%s: as another" % word


def page():
    """Section → its entries; an entry of a cause also has its exit status."""
    sections, name, tag = collections.defaultdict(list), None, False
    for line in read("debian/nodestrap-codes.7").splitlines():
        if line.startswith(".SH "):
            name = line[4:]
        elif tag:
            text = re.sub(r"^\.BR? ", "", line).replace("\\-", "-")
            m = re.match(r'(\S+) " \((\d+)\)"$', text)
            sections[name].append((m.group(1), m.group(2)) if m else text if name == "VERDICTS" else text.split()[0])
        tag = line == ".TP"
    return sections


number = failed = 0


def same(name, said, written):
    global number, failed
    number += 1
    wrong = ["no entry: %s" % (w,) for w in sorted(said - set(written))] + ["nobody says: %s" % (w,) for w in sorted(set(written) - said)]
    wrong += ["twice: %s" % (w,) for w, n in collections.Counter(written).items() if n > 1]
    failed += bool(wrong)
    print("%sok %d - %s" % ("not " if wrong else "", number, name))
    for line in wrong:
        print("# %s" % line)


warnings, health, verdicts, outcomes, unseen = program()
sections = page()
same("the oracle finds the code of each call in the sources", set(unseen), [])
same("nodestrap-codes(7) has all %d causes with their exit status, and no others" % len(causes()), causes(), sections["CAUSES"])
same("each cause in nodestrap-codes(7) says itself what to look at or what to do", set(unhelpful()), [])
same("nodestrap-codes(7) has all %d warnings, and no others" % len(warnings), warnings, sections["WARNINGS"])
same("nodestrap-codes(7) has all %d words of health, and no others" % len(health), health, sections["HEALTH"])
same("nodestrap-codes(7) has all %d verdicts, and no others" % len(verdicts), verdicts, sections["VERDICTS"])
same("nodestrap-codes(7) has all %d outcomes, and no others" % len(outcomes), outcomes, sections["OUTCOMES"])
same("the sources have more than 60 causes, 100 warnings, 30 words of health and 2 verdicts", {len(causes()) > 60, len(warnings) > 100, len(health) > 30, len(verdicts) > 2}, [True])
print("1..%d" % number)
sys.exit(1 if failed else 0)
