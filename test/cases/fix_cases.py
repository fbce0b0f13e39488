#!/usr/bin/env python3
"""Applies --fix to copies of the case programs, analyses them again, and says per check what became of the findings.

Prints for each check how many findings there were, how many have a fix, and how many are left after the fixes; then
what got worse: code that no longer parses, and findings that were not there before.  Exits 1 when something did.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from run_cases import TORCH_INCLUDE, collectUnits


def analyse(options, root, unit, *further):
    arguments = [options.tool, *further, "--format=json", "--no-cache", *map(str, unit.sources), "--"]
    arguments += ["-std=c++17", f"-I{root}", f"-I{options.include}"]
    done = subprocess.run(arguments, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        sys.exit(f"fix_cases.py: {unit.name}: {options.tool} printed no report: {done.stderr}")


def counts(report):
    """Findings by check and function: lines move when code changes."""
    return collections.Counter((f["check"], f["file"], f["function"]) for f in report["findings"])


def repaired(options, unit):
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch, "cases")
        shutil.copytree(options.root, root)
        moved = unit._replace(sources=[root / s.relative_to(options.root) for s in unit.sources])
        before = analyse(options, root, moved)
        if not any(f["fix"] for f in before["findings"]):
            return unit, before, before
        analyse(options, root, moved, "--fix")
        after = analyse(options, root, moved)
        if options.keep:
            for source in moved.sources:
                target = options.keep / source.relative_to(root)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
        return unit, before, after


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent)
    parser.add_argument("--include", default=TORCH_INCLUDE)
    parser.add_argument("--filter", default="", help="only programs whose name contains this")
    parser.add_argument("--keep", type=Path, help="keep the repaired sources here")
    parser.add_argument("-j", type=int, default=os.cpu_count())
    options = parser.parse_args()
    total, fixable, left = collections.Counter(), collections.Counter(), collections.Counter()
    worse = []
    units = [unit for unit in collectUnits(options.root) if options.filter in unit.name]
    with concurrent.futures.ThreadPoolExecutor(options.j) as pool:
        for unit, before, after in pool.map(lambda unit: repaired(options, unit), units):
            for finding in before["findings"]:
                total[finding["check"]] += 1
                fixable[finding["check"]] += finding["fix"] is not None
            for finding in after["findings"]:
                left[finding["check"]] += 1
            new = counts(after) - counts(before)
            worse += [f"{unit.name}: new: {check} in {function}" for check, _, function in new]
            if len(after["failures"]) > len(before["failures"]):
                worse.append(f"{unit.name}: does not compile: {after['failures'][-1]['message']}")
    for check, number in sorted(total.items()):
        print(f"{check:28} {number:4} findings, {fixable[check]:4} with a fix, {left[check]:4} left")
    print("\n".join(worse) or "Nothing became worse.")
    sys.exit(1 if worse else 0)


if __name__ == "__main__":
    main()
