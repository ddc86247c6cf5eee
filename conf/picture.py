#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a small picture of a boot out of the whole one (nodestrap status --output svg): python3 conf/picture.py WHOLE.svg >debian/boot.svg

It fits the width of a page. A phase has one row for all steps below 1 % of the boot, and one for the steps of an earlier phase that it repeats.
"""
import re, sys
import xml.etree.ElementTree as ET
from xml.sax.saxutils import escape

ROW, NAMES, CHART, WIDTH = 19, 352, 410, 850            # pixels
SVG = "{http://www.w3.org/2000/svg}"
LABEL = "The boot of a %s on a timeline: phases, their longest steps, and the steps that kubelet waited for"
STYLE = ("text{font:13px monospace;white-space:pre}.title{font-size:16px;font-weight:bold}.fact{fill:#555}.tick{stroke:#ddd}"
         ".phase rect,rect.phase{fill:#9fb3c8}.phase text{font-weight:bold}.step rect,rect.step{fill:#2e9d5b}.failed rect{fill:#d0342c}.wait rect,rect.wait{fill:#e5c46b}"
         ".folded text{fill:#777}.critical rect,rect.critical{stroke:#000;stroke-width:2}")

whole = ET.parse(sys.argv[1]).getroot()
texts = [t.text for t in whole.findall(SVG + "text")]
host = next(t for t in texts if t.startswith("host "))
kind = re.search(r"[a-z0-9-]+\.[a-z0-9-]+", host).group(0)
groups = [(g.get("class").split(), g.find(SVG + "text").text, g.find(SVG + "rect"), g.findall(SVG + "text")[-1].text) for g in whole.findall(SVG + "g")]
bars = [(int(r.get("x")), int(r.get("width"))) for _, _, r, _ in groups if r is not None]
begin, end = min(x for x, _ in bars), max(x + w for x, w in bars)
ticks = [(t, int(p.get("d").split()[0][1:])) for p, t in zip(whole.findall(SVG + "path"), [t for t in texts if re.fullmatch(r"[0-9.]+ s", t)])]
second = (ticks[-1][1] - ticks[0][1]) / (float(ticks[-1][0][:-2]) - float(ticks[0][0][:-2]))        # pixels


def place(x):
    return NAMES + (x - begin) * CHART // (end - begin)


rows, seen, short, again = [], set(), 0, []             # class, name, bar (left, right), time


def close_phase():
    global short, again
    if again:
        critical = any("critical" in words for words, _, _ in again)
        left, right = min(x for _, x, _ in again), max(x for _, _, x in again)
        at = next(i for i in range(phase + 1, len(rows) + 1) if i == len(rows) or rows[i][2][0] >= left)
        rows.insert(at, ("step critical" if critical else "step", "%s %d steps of devices again" % (">" if critical else " ", len(again)), (left, right),
                         "%.2f s" % ((right - left) / second)))
    if short:
        rows.append(("folded", "  %d steps below 1 %%" % short, None, ""))
    short, again = 0, []


for words, name, rect, took in groups:
    step = name.lstrip("> ")
    bar = (int(rect.get("x")), int(rect.get("x")) + int(rect.get("width"))) if rect is not None else None
    if "phase" in words:
        close_phase()
        phase = len(rows)
        rows.append(("phase", name, bar, took))
    elif bar and step in seen and not step.startswith("take-turn"):
        again.append((words, *bar))
    elif not bar or (bar[1] - bar[0]) * 100 < end - begin:
        short += 1
    else:
        kinds = ["critical"] if "critical" in words else []
        kinds.append("failed" if "failed" in words else "wait" if "wait" in words or step.startswith("take-turn") else "step")
        rows.append((" ".join(kinds), name.replace(":", " ", 1), bar, took))
    seen.add(step)
close_phase()

top, height = 108, 108 + ROW * len(rows) + 12
out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">' % (WIDTH, height, WIDTH, height, LABEL % kind),
       "<title>%s</title>" % (LABEL % kind), "<style>%s</style>" % STYLE, '<rect width="100%" height="100%" fill="#fff"/>',
       '<text class="title" x="18" y="27">%s, %s</text>' % (escape(texts[0]), kind), '<text class="fact" x="18" y="47">%s</text>' % escape(texts[1])]
x = 18
for word, said in (("phase", "phase"), ("step", "step"), ("wait", "wait"), ("step critical", "kubelet waited for it")):
    out.append('<rect class="%s" x="%d" y="58" width="18" height="12"/><text class="fact" x="%d" y="69">%s</text>' % (word, x, x + 24, said))
    x += 50 + 8 * len(said)
for said, at in ticks:
    out.append('<path class="tick" d="M%d 84 V%d"/><text class="fact" x="%d" y="96">%s</text>' % (place(at), height - 8, place(at) + 3, said))
for n, (words, name, bar, took) in enumerate(rows):
    y, drawn = top + ROW * n, ""
    if bar:
        left, right = map(place, bar)
        drawn = '<rect x="%d" y="%d" width="%d" height="13"/><text class="fact" x="%d" y="%d">%s</text>' % (left, y, max(right - left, 2), right + 5, y + 11, took)
    out.append('<g class="%s"><text x="18" y="%d">%s</text>%s</g>' % (words, y + 11, escape(name), drawn))
print("\n".join(out + ["</svg>"]))
