#!/usr/bin/env python3
"""run_labels.py --tool DEVICE_TIDY [--level LEVEL] [--verbose] PROGRAMS: compares findings with labels in Python code.

A program is a file or a folder.

A line that ends in "# raises" fails when its function is run; no other line does. A move whose result is thrown away is
told of at the move: it stands for the next line that raises, or, where its file has none, for one of another file that is
not told of. What follows a line that raises in its function is never reached and counts for nothing. The labels are executed
on virtual GPUs by the suites of the runtime.
"""
import argparse
import ast
import collections
import json
import subprocess
import sys
from pathlib import Path

LABEL = "# raises"


def labelled(path):
    return {number for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
            if line.rstrip().endswith(LABEL)}


def findings_of(tool, program, level):
    """The findings in a file, or in the files of a folder, by file."""
    root = program if program.is_dir() else program.parent
    command = [tool, "--format=json", "--quiet", "--source-root", str(root), "--level", level, str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
    findings = collections.defaultdict(list)
    for finding in json.loads(done.stdout)["findings"]:
        findings[root / finding["file"]].append(finding)
    return findings


def unreached(path, wanted):
    """The lines of functions behind the first one that raises."""
    lines = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            raising = [line for line in wanted if node.lineno <= line <= node.end_lineno]
            if raising:
                lines.update(range(min(raising) + 1, node.end_lineno + 1))
    return lines - wanted


def told(findings, wanted):
    """The lines that findings are about, with their messages, and those of moves that stand for a line of another file."""
    lines, elsewhere = {}, []
    for finding in findings:
        line = finding["line"]
        if finding["check"] == "device-discarded-move":
            line = min((each for each in wanted if each > line), default=None)
        if line is None:
            elsewhere.append(finding)
        else:
            lines[line] = finding["message"]
    return lines, elsewhere


def compare(path, findings, verbose):
    """How many labels are found and missed, and how many findings are false."""
    wanted = labelled(path)
    behind = unreached(path, wanted)
    lines, elsewhere = told(findings, wanted)
    got = {line: message for line, message in lines.items() if line not in behind}
    for line in sorted(wanted - set(got)) if verbose else []:
        print(f"{path}:{line}: missed: {path.read_text().splitlines()[line - 1].strip()}")
    for line in sorted(set(got) - wanted):
        print(f"{path}:{line}: false: {got[line]}")
    return {"found": len(wanted & set(got)), "missed": len(wanted - set(got)), "false": len(set(got) - wanted)}, elsewhere


def compare_program(program, findings, verbose):
    """The same of all files of a program."""
    counts, elsewhere = collections.Counter(), []
    for path in sorted(program.rglob("*.py")) if program.is_dir() else [program]:
        own, moves = compare(path, findings[path], verbose)
        counts.update(own)
        elsewhere += moves
    meant = min(len(elsewhere), counts["missed"])
    for finding in elsewhere[meant:]:
        print(f"{finding['file']}:{finding['line']}: false: {finding['message']}")
    counts.update(found=meant, missed=-meant, false=len(elsewhere) - meant)
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True)
    parser.add_argument("--level", default="likely")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--recall", type=float, default=0, help="fail below it, in percent")
    parser.add_argument("--precision", type=float, default=0, help="fail below it, in percent")
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    counts = collections.Counter()
    for program in map(Path.resolve, options.files):
        findings = findings_of(options.tool, program, options.level)
        counts.update(compare_program(program, findings, options.verbose))
    recall = 100 * counts["found"] / max(1, counts["found"] + counts["missed"])
    precision = 100 * counts["found"] / max(1, counts["found"] + counts["false"])
    print(f"{counts['found']} found, {counts['missed']} missed, {counts['false']} false: "
          f"recall {recall:.0f} %, precision {precision:.0f} %")
    return 1 if recall < options.recall or precision < options.precision else 0


if __name__ == "__main__":
    sys.exit(main())
