#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Is this a document of SARIF 2.1.0 that a forge shows? problems(document) returns its faults as sentences. The program prints those of files.

The checks are those of the standard (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html, by its sections) for the objects
that nodestrap writes, and those that GitHub code scanning adds
(https://docs.github.com/en/code-security/reference/code-scanning/sarif-files/sarif-support).
"""
import json, re, sys

# RFC 3986, 4.1: a URI or a relative reference, with the characters that a path can have
URI = re.compile(r"^(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9A-Fa-f]{2})*$")
KNOWN = {       # the properties that nodestrap writes, by object; others are misspelt
    "log": {"$schema", "version", "runs"}, "run": {"tool", "invocations", "columnKind", "results"},
    "driver": {"name", "version", "rules"}, "rule": {"id", "shortDescription", "fullDescription", "help"},
    "invocation": {"executionSuccessful", "exitCode"},
    "result": {"ruleId", "ruleIndex", "level", "message", "locations", "properties"},
    "location": {"physicalLocation", "logicalLocations"}, "region": {"startLine", "startColumn"},
}


class Reader:
    def __init__(self):
        self.found = []

    def want(self, condition, sentence):
        if not condition:
            self.found.append(sentence)
        return condition

    def object(self, value, kind):
        if not self.want(isinstance(value, dict), "%s is no object" % kind):
            return {}
        self.want(set(value) <= KNOWN.get(kind, set(value)), "%s has %s" % (kind, ", ".join(sorted(set(value) - KNOWN.get(kind, set(value))))))
        return value

    def text(self, value, where):           # 3.11: a message; plain text, which is shown as it is
        text = self.object(value, where).get("text")
        self.want(isinstance(text, str) and text != "", "%s has no text" % where)
        self.want(isinstance(text, str) and not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), "%s has control characters" % where)

    def location(self, value):              # 3.28, 3.29, 3.30
        location = self.object(value, "location")
        physical = self.object(location.get("physicalLocation"), "physicalLocation")
        uri = self.object(physical.get("artifactLocation"), "artifactLocation").get("uri")
        self.want(isinstance(uri, str) and uri and URI.match(uri), "uri %r is none" % (uri,))
        self.want(isinstance(uri, str) and not uri.startswith("//") and ":" not in uri.split("/")[0].replace("file:", "", 1), "uri %r has another scheme" % (uri,))
        region = self.object(physical.get("region"), "region")
        for key in ("startLine", "startColumn"):
            if key in region or key == "startLine":
                number = region.get(key)
                self.want(isinstance(number, int) and not isinstance(number, bool) and number >= 1, "%s is %r" % (key, number))
        for logical in location.get("logicalLocations", []):        # 3.33
            self.want(isinstance(logical.get("fullyQualifiedName"), str), "a logicalLocation without a name")

    def result(self, value, rules):         # 3.27
        result = self.object(value, "result")
        index = result.get("ruleIndex")
        self.want(isinstance(index, int) and 0 <= index < len(rules) and rules[index].get("id") == result.get("ruleId"),
                  "ruleIndex %r is not that of %r" % (index, result.get("ruleId")))
        self.want(result.get("level") in ("none", "note", "warning", "error"), "level is %r" % (result.get("level"),))
        self.text(result.get("message"), "message")
        locations = result.get("locations")
        if self.want(isinstance(locations, list) and len(locations) == 1, "a result without its one location"):
            self.location(locations[0])
        self.want(isinstance(result.get("properties", {}), dict), "properties is no object")        # 3.8

    def run(self, value):                   # 3.14
        run = self.object(value, "run")
        driver = self.object(self.object(run.get("tool"), "tool").get("driver"), "driver")
        self.want(isinstance(driver.get("name"), str) and driver.get("name"), "the tool has no name")
        self.want(isinstance(driver.get("version"), str) and driver.get("version"), "the tool has no version")
        rules = driver.get("rules")
        if not self.want(isinstance(rules, list), "rules is no list"):
            rules = []
        names = [rule.get("id") for rule in rules]
        self.want(len(set(names)) == len(names), "a rule stands there twice")
        for rule in rules:                  # 3.49
            self.want(isinstance(self.object(rule, "rule").get("id"), str) and rule["id"], "a rule without id")
            for key in ("shortDescription", "fullDescription", "help"):
                self.text(rule.get(key), key)
        self.want(run.get("columnKind") in ("utf16CodeUnits", "unicodeCodePoints"), "columnKind is %r" % (run.get("columnKind"),))
        for invocation in run.get("invocations", []):               # 3.20
            self.want(isinstance(self.object(invocation, "invocation").get("executionSuccessful"), bool), "executionSuccessful is missing")
            self.want(isinstance(invocation.get("exitCode", 0), int), "exitCode is no number")
        results = run.get("results")        # present, if the tool looked
        if self.want(isinstance(results, list), "results is no list"):
            for result in results:
                self.result(result, rules)


def problems(document):
    reader = Reader()
    log = reader.object(document, "log")    # 3.13
    reader.want(log.get("version") == "2.1.0", "version is %r" % (log.get("version"),))
    reader.want(isinstance(log.get("$schema"), str) and URI.match(log["$schema"]), "$schema is none")
    runs = log.get("runs")
    if reader.want(isinstance(runs, list) and len(runs) == 1, "runs is no list of one"):
        reader.run(runs[0])
    return reader.found


if __name__ == "__main__":
    bad = 0
    for name in sys.argv[1:]:
        with open(name, encoding="utf-8") as f:
            for sentence in problems(json.load(f)):
                bad = 1
                print("%s: %s" % (name, sentence))
    sys.exit(bad)
