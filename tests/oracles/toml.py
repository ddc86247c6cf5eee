#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: toml.py TOOL [FILE...]
Compares the TOML parser and writer with Python's tomllib: on documents made here (valid, damaged, and hand-written ones), and on
each FILE. Both must give the same value, or both must fail. Only if tomllib gives a value that JSON cannot hold, ours must fail alone.
Prints TAP. SEED and COUNT in the environment set the random documents and their number."""
import datetime, json, math, os, random, subprocess, sys, tomllib

TOOL = sys.argv[1]
SEED = int(os.environ.get("SEED", "1"))
COUNT = int(os.environ.get("COUNT", "1500"))
number = failed = 0


def ok(good, name, *notes):
    global number, failed
    number += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {name}")
    for note in notes if not good else ():
        print("# " + note.replace("\n", "\n# "))


def tool(frames, *options):
    data = b"".join(b"%d\n%s" % (len(f), f) for f in frames)
    return subprocess.run([TOOL, *options], input=data, stdout=subprocess.PIPE, check=True).stdout


def representable(value):
    """Can JSON, with integers of 64 bits, hold it?"""
    if isinstance(value, dict):
        return all(map(representable, value.values()))
    if isinstance(value, list):
        return all(map(representable, value))
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return -2**63 <= value < 2**63
    return not isinstance(value, (datetime.date, datetime.time))


def same(a, b):
    """Equal in type too: 1, 1.0 and True are different, and so are 0.0 and -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b and (not isinstance(a, float) or math.copysign(1, a) == math.copysign(1, b))


def judge(data, line):
    """None if tomllib and the tool agree about data, otherwise their answers."""
    try:
        want = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as e:
        return None if line.startswith("error ") else f"tomllib refuses it ({e}), we say {line}"
    if line.startswith("error "):
        return f"tomllib takes it, we say {line}" if representable(want) else None
    if not representable(want):
        return f"should have been refused, we say {line}"
    return None if same(json.loads(line), want) else f"tomllib says {want}, we say {line}"


def compare(name, documents):
    documents = [d if isinstance(d, bytes) else d.encode() for d in documents]
    lines = tool(documents).decode().split("\n")[:-1]
    bad = [(d, e) for d, line in zip(documents, lines) if (e := judge(d, line))]
    taken = sum(not line.startswith("error ") for line in lines)
    ok(len(lines) == len(documents) and not bad, f"{name}: the parser agrees with tomllib about {len(documents)} documents, {taken} of them valid",
       f"{len(lines)} answers for {len(documents)} documents", *(f"{d!r}\n  {e}" for d, e in bad[:5]))


# ---- made documents ----
R = random.Random(SEED)
KEYS = ["a", "b", "c", "d-e", "_f", "1", "12", '"q x"', "'l.t'", '""', '"\\u00e9"', "true"]
SCALARS = ["1", "-0", "+7", "1_000", "0x1F", "0xdead_BEEF", "0o17", "0b1_01", "9223372036854775807", "-9223372036854775808",
           "9223372036854775808", "0x7fffffffffffffff", "0x8000000000000000", "01", "1__0", "_1", "1_", "0x", "0b2", "+0x1", "0X1",
           "1.5", "-0.0", "1e6", "1E+2", "6.02e-2_3", "1.", ".5", "1.e2", "1e", "1_.5", "1._5", "03.5", "1e400", "1e-400", "5e-324",
           "3.141592653589793", "0e0", "+1.0", "nan", "-inf", "+nan", "true", "false", "True", "truex", "1979-05-27", "07:32:00",
           "1979-05-27T07:32:00Z", "1979-05-27 07:32:00.5", "bare", "1 2", "", '""', "''", '"a\\tb\\\\\\""', '"\\u00E9\\U0001F600"',
           '"\\ud800"', '"\\U00110000"', '"\\x41"', '"\\e"', '"a\nb"', "'a\\n'", '"\t"', '"\x01"', '"\x7f"', "'\x00'", '"open', "'open",
           '"""a\nb"""', '"""\n  a \\\n   \n  b"""', '"""a""b"""', '"""a"""""', '"""a""""""', '"""\\ x"""', "'''a\n'b'''", "'''a'''''",
           "'''\\'''", '"""open', '"""a\r\nb"""', "'''\r\nb\r\n'''", '"""a\rb"""', '"""\\\r\n  b"""', '"\\u12"', '"\u00e9\U0001f600"', "'''a''''''"]
SPACE = ["", "", "", " ", "\t", "  "]
ENDS = ["\n", "\n", "\n", "\r\n", " # note\n", "#\n", "\n\n", " \t\n"]


def key(depth=0):
    parts = [R.choice(KEYS[:5] if R.random() < .8 else KEYS) for _ in range(R.choice([1, 1, 1, 2, 3]))]
    return (R.choice(SPACE) + "." + R.choice(SPACE)).join(parts)


def value(depth=0):
    kind = R.random()
    if depth > 3 or kind < .75:
        return R.choice(SCALARS[:12]) if R.random() < .7 else R.choice(SCALARS)
    if kind < .9:
        gap = lambda: R.choice(SPACE + ["\n", " # c\n"])
        inner = ",".join(gap() + value(depth + 1) + gap() for _ in range(R.randrange(4)))
        return "[" + inner + R.choice(["", "", ",", gap()]) + "]"
    pairs = ",".join(R.choice(SPACE) + key() + R.choice(SPACE) + "=" + R.choice(SPACE) + value(depth + 1) for _ in range(R.randrange(4)))
    return "{" + pairs + R.choice(["", "", "", ",", "\n"] if R.random() < .2 else SPACE) + "}"


def document():
    out = []
    for _ in range(R.randrange(1, 9)):
        kind = R.random()
        if kind < .3:
            out.append(R.choice(SPACE) + "[" + R.choice(SPACE) + key() + R.choice(SPACE) + "]")
        elif kind < .45:
            out.append("[[" + key() + "]]")
        else:
            out.append(R.choice(SPACE) + key() + R.choice(SPACE) + "=" + R.choice(SPACE) + value())
        out.append(R.choice(ENDS))
    return "".join(out)


def structure():
    """Tables that are defined, extended and defined again, with so few names that they collide."""
    name = lambda: ".".join(R.choice("abc") for _ in range(R.randrange(1, 4)))
    forms = ["[{}]", "[{}]", "[[{}]]", "{} = 1", "{} = 1", "{} = {{}}", "{} = [{{}}]", "{} = {{ a.b = 1, a.c = {{ d = 2 }} }}", "{} = {{ b = 1, b.c = 2 }}"]
    return "".join(R.choice(forms).format(name()) + "\n" for _ in range(R.randrange(2, 7)))


def damaged(text):
    data = bytearray(text.encode())
    for _ in range(R.randrange(1, 3)):
        at = R.randrange(len(data) + 1)
        kind = R.randrange(3)
        if kind == 0:
            data[at:at + R.randrange(1, 4)] = b""
        elif kind == 1:
            data[at:at] = R.choice([b'"', b"'", b"[", b"]", b"{", b"}", b",", b"=", b".", b"#", b"\n", b"\r", b"\0", b"\xff", b"\xc3", b"\xe2\x82\xac", b"\\", b"0"])
        elif at < len(data):
            data[at] = R.randrange(256)
    return bytes(data)


def made_value(depth=0):
    kind = R.random()
    if depth < 4 and kind < .3:
        return {made_key(): made_value(depth + 1) for _ in range(R.randrange(5))}
    if depth < 4 and kind < .5:
        n = R.randrange(4)
        return [{made_key(): made_value(depth + 2)} for _ in range(n)] if R.random() < .5 else [made_value(depth + 1) for _ in range(n)]
    return R.choice([R.randrange(-2**63, 2**63), R.randrange(-9, 9), R.choice([True, False]), made_text(), R.uniform(-1, 1), R.choice([1e22, 1e23, -0.0, 0.1, 5e-324, 1.7976931348623157e308, 100.0, 1e16]),
                     R.random() * 10.0 ** R.randrange(-300, 300)])


def made_text():
    return "".join(R.choice(["a", "B", "7", " ", "\n", "\r", "\t", '"', "'", "\\", "#", "=", "]", "\0", "\x1f", "\x7f", "\x80", "é", "€", "😀"]) for _ in range(R.randrange(8)))


def made_key():
    return R.choice("abcdefgh") if R.random() < .7 else made_text().replace("\0", "")     # jansson reads no NUL in a key


compare("scalars", [f"{before}x = {s}{after}" for s in SCALARS for before, after in [("", ""), ("", "\n"), ("[t]\n", " # c\n"), ("y = [0, ", "]"), ("y={a=0,", "}")]])
compare("hand-written", [
    "", "\n", "\r\n", "\r", "# c", "# \x01\n", "# \x7f", "#\r\n", "\ufeffa=1", b"\xff", b"a='\xed\xa0\x80'", b"a='\xc0\x80'", b"a='\xf4\x90\x80\x80'",
    "a", "a=", "=1", "a b=1", "a=1 b=2", "a=1,", "a.=1", ".a=1", "a..b=1", '"a"b=1', '"""a"""=1', "a=1\na=2", "a.b=1\na=2", "a=1\na.b=2", "[a]\n[a]", "[a.b]\n[a]", "[a.b]\n[a]\n[a]",
    "[]", "[a", "[a]]", "[[a]", "[ [a]]", "[[a] ]", "[[ a ]]", "[a]b=1", "[a] # c", "[a\n]", "[a.]", "['']", "a=[]\n[[a]]", "[[a]]\n[a]", "[a]\n[[a]]", "[[a]]\n[[a]]\nb=1\n[a.c]\nd=2\n[[a.e]]\n[[a.e]]",
    "[a.b.c]\nz=9\n[a]\nb.c.t=1", "[a.b.c]\nz=9\n[a]\nb.t=1\n[a.b]", "a.b=1\n[a.c]\nd=2", "a.b=1\n[a]", "[x]\na.b=1\n[x.a]", "[x]\na.b=1\n[x.a.c]\ny=2", "[[a.b]]\n[a]\nb.y=2",
    "a={}\na.b=1", "a={}\n[a]", "a={}\n[a.b]", "a={b=1}\n[[a]]", "a=[{b=1}]\n[a.c]", "a=[{b=1}]\n[[a]]", "a={b.c=1,b.d=2}", "a={b={c=1},b.d=2}", "a={b=1,b=2}", "a={b=1,}", "a={,}", "a={\nb=1}", "a={b=[1,\n2]}",
    "a=[,]", "a=[1,,2]", "a=[1 2]", "a=[1", "a=[1,", "a=[\n# c\n1, # d\n]", "a=[1,'x',[2.5,{b=3}]]", "a=[[[[]]]]", "a={b={c={}}}", "a = [ # \x01\n]", "a=1\r\nb=2\r\n", "a=1\rb=2", "a='x'\r\r\n",
    "fruit.apple.color=1\nfruit.apple.taste.sweet=true\n[fruit.apple.texture]\nsmooth=true", "3.14=1", "a = 'b' # c\n", "a\t=\t1\t\n", "a=\n1", "a=true]", "[a]\nb=1\n\n[c]\n[a.d]",
    "a=" + "[" * 97 + "]" * 97, ".".join("a" * 90) + "=1", "[" + ".".join("a" * 90) + "]\nb=[[1]]",
])
compare("generated", [document() for _ in range(COUNT)])
compare("tables with colliding names", [structure() for _ in range(COUNT)])
compare("damaged", [damaged(document()) for _ in range(COUNT)])

values = [v for v in ({made_key(): made_value() for _ in range(R.randrange(6))} for _ in range(COUNT))]
left, bad = tool([json.dumps(v).encode() for v in values], "-w"), []
for v in values:
    size, _, left = left.partition(b"\n")
    text, left = (left[:int(size)], left[int(size):]) if size.isdigit() else (b"\0 not written", left)
    try:
        if not same(tomllib.loads(text.decode()), v):
            bad.append(f"{v}\n{text.decode()}")
    except ValueError as e:
        bad.append(f"{e}: {v}\n{text.decode()}")
ok(not bad, f"tomllib reads back {len(values)} written values", *bad[:5])
nulls = [b'{"a":null}', b'{"a":[null]}', b'{"a":{"b":{"c":null}}}', b'{"a":[{"b":null}]}', b'[]', b'1']
ok(tool(nulls, "-w") == b"error\n" * len(nulls), "the writer refuses null and a document that is not an object")

for path in sys.argv[2:]:
    with open(path, "rb") as f:
        data = f.read()
    line = tool([data]).decode()
    compare(os.path.basename(path), [data])
    size, _, text = tool([line.encode()], "-w").partition(b"\n")
    ok(len(data) > 1000 and not line.startswith("error ") and tomllib.loads(text.decode()) == json.loads(line), f"tomllib reads the same data from {os.path.basename(path)} after a rewrite", line[:200])
print(f"1..{number}")
sys.exit(failed > 0)
