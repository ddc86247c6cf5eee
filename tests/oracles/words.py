#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts forms of words that this project avoids, by area, and fails if the number of one grows.

usage: words.py [--list AREA FORM]

words.csv beside this file has the number of each form that an area may have. A larger number fails, and the output names places: those
that the last passed run did not see, by the cache of the tests, or else those in the files that changed last. A smaller number passes,
with a line of output; UPDATE=1 then lowers the numbers of the table. You raise one by hand.

  areas   readme    README.md, tests/README.md and src/README.md
          help      conf/help.txt, string literals of src/cli and src/commands/commands.c: --help
          messages  the other string literals of src/
          manual    debian/*.[1-8]
          comments  of C in src/ and tests/, of shell in tests/
          names     of tests: the text that TAP has behind "ok 1 - "
  forms   subject     a sentence, but not a question, that begins with Who, What, Whether or Whoever
          is-no       is no; there is no and is no longer do not count
          anew, all-the-same
          somebody    or nobody, or whoever
          possessive  's behind one of NAMES. A company may have it.
          told        is told, is said, is asked: by which actor?
          fragment    in names only: a name that continues the name before it (which, and, but, nor, also, so is)
          long        a sentence of more than 25 words; `code` counts as one
"""
import bisect, collections, csv, glob, hashlib, os, re, sys

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "words.csv")
SEEN = os.path.join(os.environ.get("NODESTRAP_TEST_CACHE") or "/var/cache/nodestrap-test", "tidy", "words")
LONGEST, SHOWN, CODE_SPACE = 25, 20, "\1"
NAMES = ("nodestrap nodeadm systemd systemd-networkd networkd udev kubelet containerd runc cloud-init init kernel Kubernetes NVML EFA MIG IMEX IMDS "
         "GPU NVSwitch driver daemon program library libcurl jansson glibc gcc clang QEMU bash make machine instance node cluster image unit").split()
FORMS = {
    "subject": None,
    "is-no": re.compile(r"(?<!\bthere )\bis\s+no\b(?!\s+longer\b)", re.I),
    "anew": re.compile(r"\banew\b", re.I),
    "all-the-same": re.compile(r"\ball\s+the\s+same\b", re.I),
    "somebody": re.compile(r"\b(?:somebody|nobody|whoever)\b", re.I),
    "possessive": re.compile(r"(?<![\w-])(?:%s)`?['\u2019]s\b" % "|".join(NAMES), re.I),
    "told": re.compile(r"\b(?:is|are|was|were)\s+(?:told|said|asked)\b", re.I),
    "fragment": None,
    "long": None,
}
FRAGMENT = re.compile(r"[\W_]*(?:which|and|but|nor|also|so (?:is|are|does|do))\b", re.I)
SUBJECT = re.compile(r"[\W_]*(?:Who|What|Whether|Whoever)\s+\S+\s+\S")
END = re.compile(r"(?<!\be\.g)(?<!\bi\.e)[.!?]['\")\]]*(?=\s|$)")
# Sentence and the forms that it has, for check_itself().
KNOWN = [
    ("Who builds images installs the package.", "subject"), ("What EC2 says counts.", "subject"), ("Whether it runs is not known.", "subject"),
    ("What does init do here?", ""), ("It says what EC2 said. Who asks, waits.", "subject"), ("This is what they want.", ""),
    ("A disk is no file.", "is-no"), ("It is no longer there, and is not a file.", ""), ("If there is no file, it ends.", ""), ("It is\nno file.", "is-no"),
    ("Then it starts anew.", "anew"), ("The news renews it.", ""), ("It runs all the same.", "all-the-same"), ("It runs anyway.", ""),
    ("Nobody and somebody wait.", "somebody somebody"), ("Give it to whoever waits.", "somebody"), ("Any body of text.", ""),
    ("The kubelet's flag and `nodeadm`'s.", "possessive possessive"), ("systemd's own.", "possessive"), ("NVIDIA's stack, the reader's eye.", ""),
    ("It's the kubelet flag.", ""), ("The caller is told of it.", "told"), ("It tells the caller.", ""), ("Which it says.", "fragment"), ("and not twice", "fragment"), ("Android.", ""),
    (" ".join(["word"] * 25) + ".", ""), (" ".join(["word"] * 26) + ".", "long"),
    (" ".join(["word"] * 20) + ". " + " ".join(["word"] * 20) + ".", ""), (" ".join(["word"] * 24) + " `make test T=a b`.", ""),
    (" ".join(["word"] * 20) + ", e.g. " + " ".join(["word"] * 6) + ".", "long"),
]


def found(pieces, small=False):
    """(line, form, sentence) of a paragraph: pieces are (line, text). small: a sentence may begin with a small letter."""
    text, starts = "", []
    for line, piece in pieces:
        starts.append((len(text), line))
        text += piece + " "
    text = re.sub(r"`[^`]*`", lambda m: re.sub(r"\s", CODE_SPACE, m[0]), text)        # one word
    begin = 0
    for end in [m.end() for m in END.finditer(text)] + [len(text)]:
        sentence, at, begin = text[begin:end], begin + len(text[begin:end]) - len(text[begin:end].lstrip()), end
        if not sentence.strip():
            continue
        start = sentence.strip()
        start = start[:1].upper() + start[1:] if small else start
        hits = [(at, "subject")] if SUBJECT.match(start) and not start.endswith("?") else []
        hits += [(at, "fragment")] if FRAGMENT.match(start) else []
        hits += [(end - len(sentence) + m.start(), form) for form, pattern in FORMS.items() if pattern for m in pattern.finditer(sentence)]
        if sum(1 for w in sentence.split() if re.search(r"\w", w)) > LONGEST:
            hits.append((at, "long"))
        for offset, form in hits:
            yield starts[bisect.bisect_right(starts, (offset, 1 << 30)) - 1][1], form, " ".join(sentence.replace(CODE_SPACE, " ").split())


def paragraphs(lines):
    """Lines (number, text) → paragraphs: what is empty, indented or an item of a list ends one."""
    paragraph = []
    for number, text in lines:
        none = not text.strip() or re.match(r"\s*(SPDX-License-Identifier|shellcheck \S+=)", text)
        if none or re.match(r"\s{2,}|\s*([-*•]|\d+\.)\s", text):
            yield paragraph
            paragraph = []
        if not none:
            paragraph.append((number, text.strip()))
    yield paragraph


def markdown(text):
    lines, fenced = [], False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            line = ""
        elif fenced:
            line = ""
        line = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", line).replace("**", "")
        cells = re.split(r"(?<!\\)\|", line) if line.startswith("|") else [line]
        for cell in cells:
            lines += [(number, "")] if line.startswith(("|", "#")) else []
            lines.append((number, cell.strip("# ") if line.startswith("#") else cell.strip() if line.startswith("|") else re.sub(r"^ +(?![-*\d])", "", cell)))
        lines += [(number, "")] if line.startswith(("|", "#")) else []
    return paragraphs(lines)


def troff(text):
    lines, as_is, tag = [], False, False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith((".nf", ".TS", ".EX")):
            as_is = True
        elif line.startswith((".fi", ".TE", ".EE")):
            as_is = False
        macro = re.match(r"[.']\s*(\S*)\s*(.*)", line)
        if as_is or macro and macro[1] not in ("B", "I", "BR", "RB", "IR", "RI", "BI", "IB", "SM"):
            lines.append((number, ""))
            tag = tag or bool(macro and macro[1] == "TP")
            continue
        if macro:
            words = [a or b for a, b in re.findall(r'"([^"]*)"|(\S+)', macro[2])]
            line = ("" if len(macro[1]) == 2 else " ").join(words)
        line = re.sub(r"\\f(?:\[[^]]*\]|.)", "", line).replace("\\(aq", "'").replace("\\-", "-").replace("\\&", "")
        lines.append((number, line.strip()))
        if tag:         # the line behind .TP is the name of an item
            lines.append((number, ""))
            tag = False
    return paragraphs(lines)


def help_texts(text):
    """Each text of conf/help.txt is a paragraph."""
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        begins = re.match(r"[a-z-]+: (.*)|[#[]", line)
        lines += [(number, ""), (number, begins[1] or "")] if begins else [(number, line.strip())]
    return paragraphs(lines)


TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
ESCAPE = re.compile(r"\\(?:([nt])|(?:x[0-9a-fA-F]+|[0-7]{1,3})|(.))", re.S)


def c_tokens(text):
    """Comments and string literals, as paragraphs: ("comment" or "string", paragraph). Literals beside each other are one."""
    strings, end, number, last = [], 0, 1, 0
    for token in TOKEN.finditer(text):
        number, last = number + text.count("\n", last, token.start()), token.start()
        word, between = token[0], text[end:token.start()]
        if strings and not (word[0] == '"' and re.fullmatch(r"\s*(?:[A-Z_][A-Za-z0-9_]*)?\s*", between)):
            yield from (("string", p) for p in paragraphs(strings))
            strings = []
        end = token.end()
        if word[0] == '"' and not re.search(r"#\s*include\s*$", between):
            said = ESCAPE.sub(lambda m: {"n": "\n", "t": " "}.get(m[1], m[2] or " "), word[1:-1])
            first = number
            if strings:
                first, before = strings.pop()
                said = before + between.strip() + said
            head, *more = said.split("\n")
            strings += [(first, head)] + [piece for line in more for piece in ((number, ""), (number, line))]
        elif word[0] == "/":
            lines = word[2:-2 if word[1] == "*" else None].split("\n")
            yield from (("comment", p) for p in paragraphs((number + i, re.sub(r"^\s*\* ?", "", line) if i else line.strip()) for i, line in enumerate(lines)))
    yield from (("string", p) for p in paragraphs(strings))


# Head lines for tests/run/boot.sh and tests/run/cluster.sh are not sentences.
DIRECTIVE = re.compile(r"(run|type|imds|metadata|gpu|spec|interfaces|tree|script|signed|changed|watcher|vpc|environment|kernel|console(-lacks)?|kube|cluster|beside|usage): ")


def shell_comments(text):
    """Lines that are comments belong together; a comment behind a command stands alone. A line of quoted text may count as a comment."""
    lines = []
    for number, line in enumerate(text.split("\n"), 1):
        whole = re.match(r"\s*#(?!!) ?(.*)", line)
        if whole:
            lines.append((number, "" if DIRECTIVE.match(whole[1]) else whole[1]))
            continue
        lines.append((number, ""))
        for m in re.finditer(r"\s#\s", line):
            before = line[:m.start()]
            if before.count("'") % 2 == 0 and before.count('"') % 2 == 0:
                lines += [(number, line[m.end():]), (number, "")]
                break
    return paragraphs(lines)


NAME = re.compile(r"""\b(?:(?:ok|try|is|same)\s+|(?:ok|same|result)\([^'"\n]*)(?:'([^'\n]*)'|"((?:[^"\\\n]|\\.)*)")|^TEST\((\w+)\)""")


def test_names(text):
    """A name of a test is a paragraph: the first string of a call that prints one; an identifier in C."""
    for number, line in enumerate(text.split("\n"), 1):
        for m in NAME.finditer(line):
            name = m[1] or m[2] or (m[3] or "").replace("_", " ")
            if " " in name and "$(" not in name:
                yield [(number, name)]


def areas():
    """(area, file, paragraph, whether sentences begin small)"""
    files = sorted(glob.glob("src/**/*.[ch]", recursive=True) + glob.glob("tests/**/*.[ch]", recursive=True))
    for name in files:
        area = "help" if name.startswith("src/cli/") or name == "src/commands/commands.c" else "messages"
        for kind, paragraph in c_tokens(read(name)):
            if kind == "comment":
                yield "comments", name, paragraph, False
            elif name.startswith("src/"):
                yield area, name, paragraph, True
    yield from (("help", "conf/help.txt", p, True) for p in help_texts(read("conf/help.txt")))
    for folder, _, names in sorted(os.walk("tests")):
        for name in sorted(os.path.join(folder, n) for n in names):
            with open(name, "rb") as f:
                script = name.endswith(".sh") or re.match(rb"#!.*/(ba)?sh\b", f.read(80))
            if script:
                yield from (("comments", name, p, False) for p in shell_comments(read(name)))
            if script or name.endswith((".py", ".c")):
                yield from (("names", name, p, True) for p in test_names(read(name)))
    for name in filter(os.path.exists, ("README.md", "tests/README.md", "src/README.md")):
        yield from (("readme", name, p, False) for p in markdown(read(name)))
    for name in sorted(glob.glob("debian/*.[1-8]")):
        yield from (("manual", name, p, False) for p in troff(read(name)))


def read(name):
    with open(name, encoding="utf-8", errors="replace") as f:
        return f.read()


def check_itself():
    wrong = []
    for sentence, forms in KNOWN:
        got = sorted(form for _, form, _ in found([(1, s) for s in sentence.split("\n")]))
        if got != sorted(forms.split()):
            wrong.append("%s: %s, not %s" % (sentence, " ".join(got) or "nothing", forms or "nothing"))
    c = 'f("it is "\n  "no file", \'"\', X); /* somebody\n * waits anew */ g("a\\n" B "// anew"); // nobody\n'
    got = [(kind, line, form) for kind, p in c_tokens(c) for line, form, _ in found(p)]
    if sorted(got) != [("comment", 2, "somebody"), ("comment", 3, "anew"), ("comment", 3, "somebody"), ("string", 1, "is-no"), ("string", 3, "anew")]:
        wrong.append("C: %s" % got)
    got = [(line, form) for p in shell_comments("#!/bin/sh anew\n# tree: anew\n# it is\n# no file\necho '# anew' # nobody\n") for line, form, _ in found(p)]
    if sorted(got) != [(3, "is-no"), (5, "somebody")]:
        wrong.append("shell: %s" % got)
    got = [(line, form) for p in troff('.\\" anew\n.TP\n.B anew\nThe\n.BR kubelet "\'s flag" .\n.nf\nnobody\n.fi\n') for line, form, _ in found(p)]
    if got != [(3, "anew"), (5, "possessive")]:
        wrong.append("troff: %s" % got)
    got = [(line, form) for p in markdown("# T\n```\nanew\n```\nIt is\nno file.\n| Who a | b c. |\n* What x y\n") for line, form, _ in found(p)]
    if got != [(5, "is-no"), (8, "subject")]:
        wrong.append("markdown: %s" % got)
    return wrong


def digest(kind, place):
    """The key of a place, without its line number."""
    return hashlib.sha256(repr((kind, place[0], place[2])).encode()).hexdigest()[:16]


def remember(places):
    try:
        os.makedirs(os.path.dirname(SEEN), exist_ok=True)
        with open("%s.%d" % (SEEN, os.getpid()), "w", encoding="ascii") as f:
            f.write("\n".join(sorted(digest(k, p) for k in places for p in places[k])))
        os.replace(f.name, SEEN)
    except OSError:     # the cache only helps
        pass


def last_first(kind, places):
    """The places to look at, and how many others there are."""
    try:
        with open(SEEN, encoding="ascii") as f:
            seen = set(f.read().split("\n"))
    except OSError:
        seen = set()
    new = [p for p in places if digest(kind, p) not in seen] or places
    new = sorted(new, key=lambda p: (-os.stat(p[0]).st_mtime, p))[:SHOWN]
    return new, len(places) - len(new)


def main():
    wrong = check_itself()
    if wrong:
        print("\n".join(["words.py does not know its own sentences:"] + wrong))
        return 1
    os.chdir(os.path.join(HERE, "..", ".."))
    places = collections.defaultdict(list)
    for area, name, paragraph, small in areas():
        for line, form, sentence in found(paragraph, small):
            places[area, form].append((name, line, sentence))
    if sys.argv[1:2] == ["--list"]:
        for name, line, sentence in sorted(places[sys.argv[2], sys.argv[3]]):
            print("%s:%d: %s" % (name, line, sentence))
        return 0
    kinds = [(a, f) for a in ("readme", "help", "messages", "manual", "comments", "names") for f in FORMS if f != "fragment" or a == "names"]
    with open(TABLE, encoding="ascii", newline="") as f:
        allowed = {(row["area"], row["form"]): int(row["number"]) for row in csv.DictReader(f)}
    if os.environ.get("UPDATE"):
        allowed = {k: min(allowed.get(k, 0), len(places[k])) for k in kinds}
        with open(TABLE, "w", encoding="ascii", newline="") as f:
            csv.writer(f, lineterminator="\n").writerows([("area", "form", "number")] + [k + (allowed[k],) for k in kinds])
    grown = fallen = 0
    for kind in kinds:
        n, may = len(places[kind]), allowed.get(kind, 0)
        if n > may:
            grown += 1
            last, others = last_first(kind, places[kind])
            print("%s: %d of the form %s, and tests/oracles/words.csv allows %d: write it in other words (tests/oracles/words.py has the forms)" % (kind[0], n, kind[1], may))
            print("\n".join("  %s:%d: %s" % (p[0], p[1], p[2] if len(p[2]) <= 160 else p[2][:157] + "...") for p in last))
            if others:
                print("  and %d others; tests/oracles/words.py --list %s %s has all" % ((others,) + kind))
        elif n < may:
            fallen += 1
            print("%s: tests/oracles/words.csv may say %d of the form %s, not %d" % (kind[0], n, kind[1], may))
    if not grown:
        remember(places)
    if fallen:
        print("make words UPDATE=1 lowers it")
    return 1 if grown else 0


sys.exit(main())
