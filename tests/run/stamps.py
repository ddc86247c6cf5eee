#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a linter over the files that stdin names, one a line, save those that it has found clean before.

usage: stamps.py [-f] [-n N] [-I DIR]... CACHE FACTS OUT COMMAND... <NAMES

N files a time take the place of {} in COMMAND (0: all of them); one command runs on each CPU. The output of each that fails becomes a file
in the folder OUT, named after the first of its files. Prints how many files were checked.

A stamp is an empty file in CACHE. Its name is a hash of COMMAND, of FACTS (what else decides: version, settings, system headers), of the
text of the file, and of the text and name of each file of the project that this one includes or sources, comments and all. Names are
relative, so that a clone elsewhere has the same stamps. -f ignores stamps, yet leaves them. Empty FACTS, or a file whose includes are not
known, leave none. A stamp goes that was not used for 30 days.
"""
import argparse, concurrent.futures, hashlib, os, re, subprocess, sys, time

DAYS = 30
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include\b[ \t]*(?:"([^"\n]+)"|<([^>\n]+)>)?', re.M)
SOURCE = re.compile(rb"^.*?(?:\bshellcheck\b.*\bsource=(\S+)|(?:^|[\s;&|(])(?:\.|source)[ \t]+([^;&|\n]+))", re.M)


class Unknown(Exception):
    pass


class Project:
    """The files as they are now: each is read once."""

    def __init__(self, folders, scripts):
        self.folders, self.scripts, self.files = folders, scripts, {}

    def includes(self, name, text):
        for quoted, angled in INCLUDE.findall(text):
            if not quoted and not angled:
                raise Unknown("%s includes what a macro names" % name)
            places = ([os.path.dirname(name)] if quoted else []) + self.folders
            found = [p for p in (os.path.normpath(os.path.join(d, os.fsdecode(quoted or angled))) for d in places) if os.path.isfile(p)]
            if found:
                yield found[0]
            elif quoted:
                raise Unknown("%s includes %s, which is not in the project" % (name, os.fsdecode(quoted)))

    def sources(self, text):
        """Rather too much than too little: where a name has variables, each script whose last part is the same."""
        for said, words in SOURCE.findall(text):
            for word in map(os.fsdecode, (said or words).split()):
                word = word.strip("\"'")
                if word.startswith("/") or said:
                    if os.path.isfile(word):
                        yield os.path.normpath(word)
                else:
                    yield from self.scripts.get(os.path.basename(word), ())

    def read(self, name):
        if name not in self.files:
            with open(name, "rb") as f:
                text = f.read()
            more = self.includes(name, text) if name.endswith((".c", ".h")) else self.sources(text)
            self.files[name] = hashlib.sha256(text).hexdigest(), sorted(set(more))
        return self.files[name]

    def key(self, name, facts):
        found, left = {}, [name]
        try:
            while left:
                n = left.pop()
                if n not in found:
                    found[n], more = self.read(n)
                    left += more
        except (Unknown, OSError):
            return None
        return hashlib.sha256("\0".join(facts + [name] + ["%s %s" % f for f in sorted(found.items())]).encode()).hexdigest()


def stamped(cache, key):
    path = os.path.join(cache, key)
    if not os.path.isfile(path):
        return False
    try:
        os.utime(path)
    except OSError:         # not ours to touch; it says the same
        pass
    return True


def clean_away(cache):
    try:
        for entry in os.scandir(cache):
            if entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < time.time() - DAYS * 86400:
                os.unlink(entry.path)
    except OSError:         # another run was faster, or we may not
        pass


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("-f", dest="full", action="store_true")
    parser.add_argument("-n", dest="number", type=int, default=1)
    parser.add_argument("-I", dest="folders", action="append", default=[])
    parser.add_argument("cache")
    parser.add_argument("facts")
    parser.add_argument("out")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    names = sys.stdin.read().splitlines()
    scripts = {}
    for name in names:
        scripts.setdefault(os.path.basename(name), []).append(name)
    facts = [args.facts, *args.command]
    keeps = bool(args.facts)
    try:
        os.makedirs(args.cache, exist_ok=True)
    except OSError:         # nothing is kept then, and all is checked
        keeps = False

    project = Project(args.folders, scripts)
    keys = {n: project.key(n, facts) if keeps else None for n in names}
    new = [n for n in names if args.full or not keys[n] or not stamped(args.cache, keys[n])]

    def check(batch):
        place = args.command.index("{}")
        command = args.command[:place] + batch + args.command[place + 1:]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if done.returncode:
            with open(os.path.join(args.out, batch[0].replace("/", "_")), "wb") as f:
                f.write(done.stdout or ("exit %d without a word: %s\n" % (done.returncode, " ".join(command))).encode())
        elif not done.stdout:
            now = Project(args.folders, scripts)
            for n in batch:
                if keys[n] and now.key(n, facts) == keys[n]:        # and nobody wrote to it meanwhile
                    try:
                        os.close(os.open(os.path.join(args.cache, keys[n]), os.O_WRONLY | os.O_CREAT, 0o644))
                    except OSError:
                        pass

    step = args.number or max(len(new), 1)
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(check, [new[i:i + step] for i in range(0, len(new), step)]))
    if keeps:
        clean_away(args.cache)
    print(len(new))


main()
