#!/usr/bin/env python3
"""check_sarif.py FILE [SCHEMA]: fails when a SARIF file breaks the rules that our reports rely on.

With python3-jsonschema and a copy of the official schema (argument, or DEVICE_TIDY_SARIF_SCHEMA) the file is
validated against it, too. What is checked by hand is what the schema cannot say: that references lead
somewhere, that regions lie in their files and that GitHub's limits are kept.
"""

import json
import os
import pathlib
import sys
import urllib.parse

LEVELS = {"error", "warning", "note", "none"}


def fail(text):
    sys.exit(f"check_sarif.py: {text}")


def lines_of(run, artifact):
    """The lines of an artifact, and fails when there is no such file."""
    uri = artifact["uri"]
    if "uriBaseId" in artifact:
        base = run["originalUriBaseIds"][artifact["uriBaseId"]]["uri"]
        if not base.endswith("/") or urllib.parse.urlparse(uri).scheme or uri.startswith("/"):
            fail(f"{uri} is not relative to {base}")
        uri = base + uri
    path = pathlib.Path(urllib.parse.unquote(urllib.parse.urlparse(uri).path))
    if not path.is_file():
        fail(f"{uri} names no file")
    return path.read_bytes().decode("utf-8", errors="replace").split("\n")


def units(line):
    return len(line.encode("utf-16-le")) // 2


def check_region(region, lines):
    start = region["startLine"], region.get("startColumn", 1)
    end = region.get("endLine", start[0]), region.get("endColumn", units(lines[start[0] - 1]) + 1)
    if start > end:
        fail(f"region ends before it begins: {region}")
    for line, column in (start, end):
        if not 1 <= line <= len(lines) or not 1 <= column <= units(lines[line - 1]) + 1:
            fail(f"region is outside its file: {region}")


def check_location(run, location):
    physical = location["physicalLocation"]
    lines = lines_of(run, physical["artifactLocation"])
    if "region" in physical:
        check_region(physical["region"], lines)


def check_result(run, result):
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    if rule["id"] != result["ruleId"]:
        fail(f"ruleIndex of {result['ruleId']} leads to {rule['id']}")
    if result["level"] not in LEVELS or not result["message"]["text"]:
        fail(f"no level or message: {result}")
    if len(result["locations"]) != 1 or len(result.get("relatedLocations", [])) > 1000:
        fail("one location and at most 1000 related ones")
    flows = [flow for code in result.get("codeFlows", []) for flow in code["threadFlows"]]
    steps = [step["location"] for flow in flows for step in flow["locations"]]
    if len(steps) > 10000:
        fail("more than 10000 steps")
    for location in result["locations"] + result.get("relatedLocations", []) + steps:
        check_location(run, location)
    for fix in result.get("fixes", []):
        for change in fix["artifactChanges"]:
            lines = lines_of(run, change["artifactLocation"])
            for replacement in change["replacements"]:
                check_region(replacement["deletedRegion"], lines)


def validate(log, schema):
    try:
        import jsonschema
    except ImportError:
        return "no jsonschema"
    jsonschema.validate(log, json.loads(pathlib.Path(schema).read_text(encoding="utf-8")))
    return "schema"


def main():
    log = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    schema = sys.argv[2] if len(sys.argv) > 2 else os.environ.get("DEVICE_TIDY_SARIF_SCHEMA")
    how = validate(log, schema) if schema else "no schema"
    if log["version"] != "2.1.0" or len(log["runs"]) != 1:
        fail("one run of version 2.1.0")
    run = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    if len(rules) != len(set(rules)) or run["columnKind"] != "utf16CodeUnits":
        fail("rules must be unique and columns UTF-16 code units")
    for rule in run["tool"]["driver"]["rules"]:
        page = urllib.parse.urlparse(rule["helpUri"])
        if page.scheme == "file" and not pathlib.Path(urllib.parse.unquote(page.path)).is_file():
            fail(f"{rule['helpUri']} names no page")
        if not rule["id"].endswith("-nolint") and not page.path.endswith(f"/checks/{rule['id']}.md"):
            fail(f"{rule['helpUri']} is not the page of {rule['id']}")
    if len(run["results"]) > 25000:
        fail("more than 25000 results")
    for result in run["results"]:
        check_result(run, result)
    prints = [result["partialFingerprints"]["deviceTidy/v1"] for result in run["results"]]
    if len(prints) != len(set(prints)):
        fail("two results with one fingerprint")
    print(f"{len(run['results'])} results, valid ({how})")


if __name__ == "__main__":
    main()
