#!/usr/bin/env python3
"""Analyses the five systems in Python: what is broken is named at its line, what is fixed is silent.

minicpm-zero3 fails inside of DeepSpeed, whose code is not read: nothing is said of it.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

# System, file, check, and a text in the only line of the file that has the mistake.
BROKEN = [
    ("qwen-finetune", "finetune.py", "device-map-distributed", "from_pretrained(folder"),
    ("easyedit-memit", "edit.py", "device-mixed-op", "+= delta"),
    ("glm4-loss", "modeling_small_glm.py", "device-loss-input", "loss = nn.CrossEntropyLoss()("),
    ("qwen-lora", "finetune.py", "device-map-distributed", "from_pretrained(folder"),
]


def findings(tool, folder):
    command = [tool, "--format=json", "--quiet", "--no-cache", *sorted(map(str, folder.glob("*.py")))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    return {(Path(each["file"]).name, each["line"], each["check"]) for each in json.loads(done.stdout)["findings"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True, help="the analyzer")
    options = parser.parse_args()
    failed = 0
    for system, file, check, text in BROKEN:
        lines = (HERE / system / "broken" / file).read_text(encoding="utf-8").splitlines()
        (line,) = [number for number, each in enumerate(lines, 1) if text in each]
        found = findings(options.tool, HERE / system / "broken")
        if (file, line, check) not in found:
            print(f"{system}: {check} is not told at {file}:{line}, but {sorted(found)}")
            failed += 1
    for folder in sorted(HERE.glob("*/fixed")):
        for file, line, check in sorted(findings(options.tool, folder)):
            print(f"{folder.parent.name} is fixed, and {check} is told at {file}:{line}")
            failed += 1
    print("failed" if failed else "all as expected")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
