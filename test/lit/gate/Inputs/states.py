"""Prints line and baseline state of each result of a SARIF file."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as stream:
    run = json.load(stream)["runs"][0]
for result in run["results"]:
    line = result["locations"][0]["physicalLocation"]["region"]["startLine"]
    print(line, result.get("baselineState", "none"), *(s["kind"] for s in result.get("suppressions", [])))
