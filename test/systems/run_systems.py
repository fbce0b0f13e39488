#!/usr/bin/env python3
"""Runs the analyzer over the five systems through the compile database and compares with the [[...]] comments.

Every broken program must be named at its marked lines and nowhere else, every other one must be silent.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "cases"))
import run_cases  # noqa: E402  the comments and findings are those of the case corpus


def analyse(options, source):
    command = [options.tool, "-p", options.p, "--quiet", "--no-cache", str(source)]
    done = subprocess.run(command, capture_output=True, timeout=options.timeout, check=False)
    findings = run_cases.parseFindings(done.stdout.decode(errors="replace"), os.getcwd())
    wanted = 1 if findings else 0
    if done.returncode != wanted:
        return findings, f"exit status {done.returncode}: {done.stderr.decode(errors='replace').strip()}"
    return findings, None


def compiledSources(buildDir):
    """The files of the compile database; shim/ is part of it where runtime-shim/device-shim is built."""
    entries = json.loads((Path(buildDir) / "compile_commands.json").read_text())
    return {os.path.realpath(os.path.join(entry["directory"], entry["file"])) for entry in entries}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True, help="the device-tidy program")
    parser.add_argument("-p", required=True, metavar="BUILD_DIR", help="where compile_commands.json is")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="per program")
    options = parser.parse_args()
    version = run_cases.torchVersion()
    compiled = compiledSources(options.p)
    sources = sorted(source for kind in ("broken", "fixed", "shim") for source in HERE.glob(f"*/{kind}/*.cpp")
                     if kind != "shim" or str(source) in compiled)
    passed = failed = 0
    tally = collections.defaultdict(collections.Counter)
    for source in sources:
        unit = run_cases.Unit(str(source.relative_to(HERE)), [source], [source])
        findings, problem = analyse(options, source)
        expected = run_cases.expectations(unit, version)
        complaints = run_cases.compare(unit, findings, expected, tally)
        if "broken" in source.parts and not expected:
            complaints.append(f"{unit.name}: a broken program without a marked line")
        if problem:
            complaints.append(f"{unit.name}: {problem}")
        passed, failed = passed + (not complaints), failed + bool(complaints)
        for complaint in complaints:
            print(complaint, flush=True)
    run_cases.printTable(tally)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
