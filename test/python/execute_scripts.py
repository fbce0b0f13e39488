#!/usr/bin/env python3
"""execute_scripts.py --device-run DEVICE_RUN FOLDERS: runs programs on virtual GPUs, as the cases.json of each says.

A case is {"args": ["train.py", "--option"], "raises": "models/net.py:57"}: where the program dies, or null where it runs to
its end. Each labelled line must be met by one of them.
"""
import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from run_labels import labelled


def place_of(output, folder):
    """The innermost line of the program in a traceback; the end of the output where there is none."""
    frames = [(folder / file, number) for file, number in re.findall(r'File "([^"]+)", line (\d+)', output)]
    own = [f"{file.relative_to(folder)}:{number}" for file, number in frames if file.is_relative_to(folder)]
    return own[-1] if own else output[-300:]


def problems_of(source, device_run):
    with tempfile.TemporaryDirectory() as copy:  # programs write files
        yield from problems_in(Path(shutil.copytree(source, Path(copy).resolve() / source.name)), device_run)


def problems_in(folder, device_run):
    labels = {f"{file.relative_to(folder)}:{number}" for file in folder.rglob("*.py") for number in labelled(file)}
    for case in json.loads((folder / "cases.json").read_text()):
        command = [device_run, "--virtual-gpus", "4", "--", sys.executable, "-B", "-W", "ignore", *case["args"]]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        place = place_of(done.stderr, folder) if done.returncode else None
        if place != case["raises"]:
            yield f"{folder}: {' '.join(case['args'])}: not as labelled: {place}"
        labels.discard(place)
    for label in sorted(labels):
        yield f"{folder}/{label}: labelled, and nothing raises there"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device-run", required=True)
    parser.add_argument("folders", nargs="+", type=Path, help="those without a cases.json are left out")
    options = parser.parse_args()
    folders = [each.resolve() for each in options.folders if (each / "cases.json").exists()]
    problems = [problem for folder in folders for problem in problems_of(folder, options.device_run)]
    print("\n".join(problems) or f"{len(folders)} programs as labelled")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
