#!/usr/bin/env python3
"""Runs the analyzer over the case corpus and compares its findings with the expectations in the comments.

A case file says what must be reported, on the line that must be reported:

    auto y = a + b; // [[device-mixed-op]]             must be reported here
    auto y = a + b; // [[device-mixed-op if torch<2]]  only for that LibTorch
    auto y = a + b; // [[FN device-mixed-op]]          a known miss: must stay missed
    auto y = a + b; // [[FP device-mixed-op]]          a known false alarm: the same

A line without such a comment must stay silent.  A folder below cross_file/ is one program, every other .cpp
file is a program of its own.  Exits 1 when the tool and the comments disagree anywhere.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ANNOTATION = re.compile(r"\[\[(?:(FN|FP) )?(device-[a-z-]+)(?: if torch(<|>=)([0-9.]+))?\]\]")
FINDING = re.compile(r"^(.+?):(\d+):(\d+): (?:warning|error): (.*) \[([a-z][\w.-]*)(?:,[^\]]*)?\]$")
SYSTEM = Path("/usr")
API_INCLUDE = "torch/csrc/api/include"

Unit = collections.namedtuple("Unit", "name sources texts")
Expectation = collections.namedtuple("Expectation", "file line check kind")


def torchVersion(prefix=SYSTEM):
    """The version the analysed code sees, from the headers of LibTorch; (1, 13) when there are none."""
    # Newer releases have it in the second one, which the first includes.
    for header in (f"{API_INCLUDE}/torch/version.h", "torch/headeronly/version.h"):
        path = Path(prefix, "include", header)
        text = path.read_text(errors="replace") if path.exists() else ""
        parts = [re.search(rf"define TORCH_VERSION_{part} (\d+)", text) for part in ("MAJOR", "MINOR")]
        if all(parts):
            return tuple(int(part.group(1)) for part in parts)
    return (1, 13)


def torchArguments(prefix):
    """What a compiler has to be told to find the headers of LibTorch, in the order of LibTorch's own packages."""
    include = Path(prefix, "include")
    return [f"-I{include / API_INCLUDE}", *([] if prefix == SYSTEM else [f"-I{include}"])]


def holds(version, relation, bound):
    wanted = tuple(int(part) for part in bound.split("."))
    current = version[: len(wanted)]
    return current < wanted if relation == "<" else current >= wanted


def collectUnits(root):
    """One unit per program: a folder below cross_file/, or a single source file."""
    groups = collections.OrderedDict()
    for source in sorted(root.rglob("*.cpp")):
        parts = source.relative_to(root).parts
        whole = "cross_file" in parts[:-2] or (root.name == "cross_file" and len(parts) > 1)
        groups.setdefault(source.parent if whole else source, []).append(source)
    units = []
    for key, sources in groups.items():
        headers = sorted(key.glob("*.h*")) if key.is_dir() else []
        units.append(Unit(str(key.relative_to(root)), sources, sources + headers))
    return units


def expectations(unit, version):
    found = []
    for path in unit.texts:
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for kind, check, relation, bound in ANNOTATION.findall(line):
                if not relation or holds(version, relation, bound):
                    found.append(Expectation(path.resolve(), number, check, kind))
    return found


def parseFindings(text, directory):
    findings = []
    for line in text.splitlines():
        match = FINDING.match(line)
        if match:
            path = Path(directory, match.group(1)).resolve()
            findings.append((path, int(match.group(2)), match.group(5), match.group(4)))
    return findings


def compileArguments(options):
    arguments = ["-std=c++17", *torchArguments(options.torch)]
    python = sysconfig.get_paths()["include"]
    if os.path.isdir(python):
        arguments.append("-I" + python)
    return arguments + options.compile_arg


def runTool(unit, options):
    """Findings of one program, and the reason when the tool did not do its job."""
    command = [options.tool, f"--cache-dir={options.cache}", *map(str, unit.sources), "--"]
    command += compileArguments(options)
    try:
        done = subprocess.run(command, capture_output=True, timeout=options.timeout, check=False)
    except subprocess.TimeoutExpired:
        return [], f"no answer after {options.timeout} s"
    except OSError as error:
        return [], str(error)
    problem = None
    if done.returncode not in (0, 1):
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        problem = f"exit status {done.returncode}: {lines[-1] if lines else 'no message'}"
    return parseFindings(done.stdout.decode(errors="replace"), os.getcwd()), problem


def lowerOnce(units, options):
    """Lowers all files in one run, LibTorch's headers parsed once: each program then reads its facts from the cache."""
    sources = [str(source) for unit in units for source in unit.sources]
    command = [options.tool, f"--cache-dir={options.cache}", f"-j={options.jobs}", "--quiet"]
    command += [f"--emit-facts={options.cache}/cases.facts", *sources, "--", *compileArguments(options)]
    subprocess.run(command, capture_output=True, timeout=20 * options.timeout, check=False)


def compare(unit, findings, expected, tally):
    """Counts the unit's findings into `tally` and returns one line of text per disagreement."""
    reported = collections.Counter((path, line, check) for path, line, check, _ in findings)
    messages = {(path, line, check): message for path, line, check, message in findings}
    complaints = []

    def complain(what, path, line, check, more=""):
        complaints.append(f"{os.path.relpath(path)}:{line}: {what} [{check}]{more}")

    known = set()
    for want in expected:
        key = (want.file, want.line, want.check)
        known.add(key)
        seen = reported[key] > 0
        if want.kind == "FP":
            tally[want.check]["FP"] += seen
            if not seen:
                complain("known false alarm is gone: remove the comment", *key)
        else:
            tally[want.check]["TP" if seen else "FN"] += 1
            if want.kind == "FN" and seen:
                complain("known miss is found now: make it a plain expectation", *key)
            elif not want.kind and not seen:
                complain("missed", *key)
    for key, count in sorted(reported.items()):
        if key not in known:
            tally[key[2]]["FP"] += 1
            complain("false alarm", *key, ": " + messages[key])
        elif count > 1:
            complain(f"reported {count} times", *key)
    return complaints


def percentage(part, whole):
    return f"{100.0 * part / whole:6.1f}%" if whole else "     --"


def printTable(tally):
    print(f"{'check':<30} {'TP':>5} {'FP':>5} {'FN':>5}  recall precision")
    total = collections.Counter()
    for check in sorted(tally):
        total.update(tally[check])
    for name, row in [*sorted(tally.items()), ("all", total)]:
        hit, false, miss = row["TP"], row["FP"], row["FN"]
        recall, precision = percentage(hit, hit + miss), percentage(hit, hit + false)
        print(f"{name:<30} {hit:>5} {false:>5} {miss:>5} {recall}  {precision}")


def addTorchOption(parser):
    parser.add_argument("--torch", type=Path, default=SYSTEM, metavar="DIR",
                        help="the LibTorch that has include/ and lib/ there; default: the system's")


def parseOptions():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).resolve().parent
    parser.add_argument("directory", nargs="?", type=Path, default=here, metavar="DIR")
    parser.add_argument("--tool", help="the device-tidy program")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only programs whose path matches")
    parser.add_argument("--jobs", "-j", type=int, default=1, metavar="N")
    parser.add_argument("--compile-arg", action="append", default=[], metavar="ARG", help="added after --")
    addTorchOption(parser)
    parser.add_argument("--torch-version", metavar="X.Y", help="default: the headers'")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="per program")
    parser.add_argument("--list", action="store_true", help="print the programs, run nothing")
    options = parser.parse_args()
    if not options.list and not options.tool:
        parser.error("--tool is required")
    if not options.directory.is_dir():
        parser.error(f"{options.directory} is not a folder")
    return options


def judge(units, options, version):
    tally = collections.defaultdict(collections.Counter)
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        results = pool.map(lambda unit: runTool(unit, options), units)
        for unit, (findings, problem) in zip(units, results):
            complaints = compare(unit, findings, expectations(unit, version), tally)
            if problem:
                complaints.insert(0, f"{unit.name}: {problem}")
            passed, failed = passed + (not complaints), failed + bool(complaints)
            for complaint in complaints:
                print(complaint, flush=True)
    printTable(tally)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def main():
    options = parseOptions()
    version = torchVersion(options.torch)
    if options.torch_version:
        version = tuple(int(part) for part in options.torch_version.split(".")[:2])
    units = [u for u in collectUnits(options.directory.resolve()) if re.search(options.filter, u.name)]
    if not units:
        print("no case file matches", file=sys.stderr)
        return 1
    if options.list:
        for unit in units:
            print(f"{unit.name}: {len(expectations(unit, version))} expected")
        return 0

    with tempfile.TemporaryDirectory(prefix="device-tidy-cases-") as options.cache:
        lowerOnce(units, options)
        return judge(units, options, version)


if __name__ == "__main__":
    sys.exit(main())
