#!/usr/bin/env python3
"""Analyses the programs below this folder and compares the findings with their labels.

known.txt lists the bugs that are not found at the default level, and the findings that are at no label. The run fails
when it differs; --update writes it anew.
"""

import argparse
import collections
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LABEL = re.compile(r"//\s*\[\[(device-[a-z-]+)\]\]")
FINDING = re.compile(r"^(/[^:]+):(\d+):\d+: warning: .* \[(device-[a-z-]+)\]", re.M)
SOURCES = (".cpp", ".cu")


def findings(program, level, tool):
    sources = sorted(str(path) for path in program.iterdir() if path.suffix in SOURCES)
    arguments = ["-std=c++17", "-I/usr/include/torch/csrc/api/include"]
    done = subprocess.run([tool, f"--level={level}", "--no-cache", *sources, "--", *arguments],
                          capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"error: {tool} ended with status {done.returncode} on {program}:\n{done.stderr}")
    return {(Path(file), int(line)): check for file, line, check in FINDING.findall(done.stdout)}


def labels(program):
    return {(path, number): found.group(1)
            for path in sorted(program.iterdir()) if path.is_file()
            for number, line in enumerate(path.read_text().split("\n"), 1) if (found := LABEL.search(line))}


def judge(program, tool, counts, known):
    expected, shown, all_ = labels(program), findings(program, "likely", tool), findings(program, "latent", tool)
    counts["bugs"] += len(expected)
    for place in sorted({*expected, *all_}):
        where = f"{place[0].relative_to(HERE)}:{place[1]}"
        if place not in expected:
            level = "default" if place in shown else "latent"
            known.append(f"elsewhere {where} {all_[place]} {level}")
        elif place in shown:
            level = "default"
        else:
            level = "latent" if place in all_ else "missed"
            known.append(f"{level} {where} {expected[place]}")
        counts[("found " if place in expected else "elsewhere ") + level] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", default=str(ROOT / "build/bin/device-tidy"))
    parser.add_argument("--update", action="store_true", help="write known.txt")
    options = parser.parse_args()
    known = []
    for group in sorted(path for path in HERE.iterdir() if path.is_dir() and path.name != "shim"):
        counts = collections.Counter()
        for program in sorted(path for path in group.iterdir() if path.is_dir()):
            judge(program, options.tool, counts, known)
        print(f"{group.name:8} {counts['bugs']} bugs: {counts['found default']} found, {counts['found latent']} more "
              f"with latent; at no label {counts['elsewhere default']}, {counts['elsewhere latent']} more with latent")
    file = HERE / "known.txt"
    if options.update:
        file.write_text("\n".join(known) + "\n")
        return 0
    before, now = set(file.read_text().split("\n")) - {""}, set(known)
    for line in sorted(before ^ now):
        print(("new: " if line in now else "gone: ") + line)
    return 1 if before != now else 0


if __name__ == "__main__":
    sys.exit(main())
