#!/usr/bin/env python3
"""Applies --fix to copies of the case programs, analyses them again, and says per check what became of the findings.

Prints for each check how many findings there were, how many have a fix, and how many are left after the fixes.  With
--preload the repaired programs are compiled and their cases run on virtual GPUs.  A finding with a fix counts as run
when no case that shows it stops with an error any more; those whose case shows another finding that is left are not
counted.  It counts as the same when each of those cases that has a clean twin (x_ok for x_bad) computes what the twin
computes, as far as both go.  Then it names what got worse: code that does not compile, findings that were not there
before, clean cases that throw, and cases that throw something else than a device error.  Exits 1 when something did,
or when a rate is below its floor.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import execute_cases
from run_cases import collectUnits, compileArguments, lowerOnce

CASE = re.compile(r"^(?:static )?void (\w+_(?:bad|ok))\(\) ?\{.*?(?:^\}|\}$)", re.M | re.S)
COLUMNS = ("findings", "fix", "left", "failed", "run", "twin", "same")

Repair = collections.namedtuple("Repair", "unit before after")


def analyse(options, unit, *further):
    arguments = [options.tool, *further, "--format=json", f"--cache-dir={options.cache}"]
    arguments += [*map(str, unit.sources), "--", *compileArguments(options)]
    done = subprocess.run(arguments, capture_output=True, text=True)
    try:
        return json.loads(done.stdout)
    except ValueError:
        sys.exit(f"fix_cases.py: {unit.name}: {options.tool} printed no report: {done.stderr}")


def repaired(options, unit):
    before = analyse(options, unit)
    if not any(f["fix"] for f in before["findings"]):
        return Repair(unit, before, before)
    analyse(options, unit, "--fix")
    return Repair(unit, before, analyse(options, unit))


def counts(report):
    """Findings by check and function: lines move when code changes."""
    return collections.Counter((f["check"], f["file"], f["function"]) for f in report["findings"])


def problems(repair):
    """What the analyzer itself says against the repaired program."""
    unit, before, after = repair
    found = [f"{unit.name}: new: {check} in {function}" for check, _, function in counts(after) - counts(before)]
    if len(after["failures"]) > len(before["failures"]):
        found.append(f"{unit.name}: does not compile: {after['failures'][-1]['message']}")
    return found


def spansOfCases(text):
    """The first and the last line of each case."""

    def lineOf(offset):
        return text.count("\n", 0, offset) + 1

    return {found.group(1): (lineOf(found.start()), lineOf(found.end())) for found in CASE.finditer(text)}


def casesOf(finding, spans):
    """The cases that show the finding: it, or a note of it, is in them."""
    places = {(place["file"], place["line"]) for place in [finding, *finding["notes"]]}

    def isShown(name, first, last):
        return any(Path(file).name == name and first <= line <= last for file, line in places)

    return {case for case, span in spans.items() if isShown(*span)}


class Outcomes:
    """What the cases of a repaired program did."""

    def __init__(self, unit, program, options):
        self.output, self.trace = {}, {}
        environment = execute_cases.environmentOf(unit, options)
        with tempfile.TemporaryDirectory() as scratch:
            environment["CASE_TRACE"] = str(Path(scratch, "trace"))
            for name in execute_cases.caseNames(program):
                self.output[name] = execute_cases.runCase(program, name, environment)
                lines = Path(scratch, "trace").read_text().splitlines()
                self.trace[name] = collections.Counter(lines)

    def hasTwin(self, case):
        return case.endswith("_bad") and self.output.get(case[: -len("_bad")] + "_ok") == "ok"

    def isSame(self, case):
        """Is what one of the twins computes a part of what the other does? One may go on where the other ends."""
        trace, twin = self.trace[case], self.trace[case[: -len("_bad")] + "_ok"]
        return not trace - twin or not twin - trace

    def worse(self):
        """Cases that do what no case did before the repair."""
        for name, output in self.output.items():
            isDeviceError = output.startswith("THROWS") and execute_cases.DEVICE_ERROR.search(output)
            if output != "ok" and (name.endswith("_ok") or not isDeviceError):
                yield f"{name}: {output[:160]}"


def tallyRun(finding, outcomes, spans, leftIn, row, details):
    """Counts what the cases with `finding`, which has a fix, did."""
    shown = {case for case in casesOf(finding, spans) if case in outcomes.output}
    if not shown or shown & leftIn:
        return
    failed = [case for case in shown if outcomes.output[case] != "ok"]
    row["failed" if failed else "run"] += 1
    details += [f"{case} still fails, {finding['check']}: {outcomes.output[case][:120]}" for case in sorted(failed)]
    twins = [case for case in shown if not failed and outcomes.hasTwin(case)]
    others = [case for case in twins if not outcomes.isSame(case)]
    row["twin"] += bool(twins)
    row["same"] += bool(twins) and not others
    details += [f"{case} computes something else than its twin, {finding['check']}" for case in sorted(others)]


def spansIn(texts):
    return {case: (name, *span) for name, text in texts.items() for case, span in spansOfCases(text).items()}


def builtProgram(unit, options):
    """The repaired program; one that an earlier run built from the same text is used again."""
    texts = [path.read_bytes() for path in [*unit.texts, options.root / "trace.h", options.root / "cases.h"]]
    digest = hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]
    options = argparse.Namespace(**{**vars(options), "build_dir": options.build_dir / digest})
    options.build_dir.mkdir(exist_ok=True)
    for program in options.build_dir.iterdir():
        os.utime(program)
    return execute_cases.upToDateProgram(unit, options)


def execute(options, repair, originals, rows):
    """Builds and runs a repaired program: what got worse, and what is to be looked at."""
    unit = repair.unit
    program = builtProgram(unit, options)
    if not program:
        return [f"{unit.name}: the repaired program does not build"], []
    outcomes = Outcomes(unit, program, options)
    spans = spansIn(originals)
    after = spansIn({path.name: path.read_text() for path in unit.texts})
    leftIn = set().union(*(casesOf(finding, after) for finding in repair.after["findings"]))
    details = []
    for finding in repair.before["findings"]:
        if finding["fix"]:
            tallyRun(finding, outcomes, spans, leftIn, rows[finding["check"]], details)
    return [f"{unit.name}: {line}" for line in outcomes.worse()], [f"{unit.name}: {line}" for line in details]


def measure(options, unit):
    """Repairs and runs one program: its row for each check, what got worse, what is to be looked at."""
    originals = {path.name: path.read_text() for path in unit.texts}
    repair = repaired(options, unit)
    rows = collections.defaultdict(collections.Counter)
    for finding in repair.before["findings"]:
        rows[finding["check"]].update(findings=1, fix=finding["fix"] is not None)
    for finding in repair.after["findings"]:
        rows[finding["check"]]["left"] += 1
    worse, details = problems(repair), []
    if options.preload and repair.before is not repair.after and execute_cases.hasCases(unit):
        further, details = execute(options, repair, originals, rows)
        worse += further
    if options.reports:
        target = options.reports / (unit.name.replace("/", "_") + ".json")
        target.write_text(json.dumps({"before": repair.before, "after": repair.after}))
    return rows, worse, details


def copyOf(root, target):
    for source in root.rglob("*"):
        copy = target / source.relative_to(root)
        if source.suffix in (".cpp", ".h", ".hpp", ".cu"):
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
    return target


def parseOptions():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent)
    execute_cases.addRunOptions(parser, Path("build/fixed-case-programs"))
    parser.add_argument("--keep", type=Path, help="keep the repaired sources here")
    parser.add_argument("--reports", type=Path, help="write the findings before and after to this folder")
    parser.add_argument("--min-fix", type=float, default=0, metavar="PERCENT", help="floor: findings with a fix")
    parser.add_argument("--min-run", type=float, default=0, metavar="PERCENT", help="floor: of those, run")
    parser.add_argument("--min-same", type=float, default=0, metavar="PERCENT", help="floor: same as the clean twin")
    return parser.parse_args()


def rate(part, whole):
    return 100.0 * part / whole if whole else 100.0


def printTable(rows):
    total = collections.Counter()
    print(f"{'check':28}" + "".join(f"{column:>9}" for column in COLUMNS) + "   fix %  run %  same %")
    for check, row in [*sorted(rows.items()), ("all", total)]:
        if check != "all":
            total.update(row)
        print(f"{check:28}" + "".join(f"{row[column]:9}" for column in COLUMNS)
              + f"   {rate(row['fix'], row['findings']):5.1f}  {rate(row['run'], row['run'] + row['failed']):5.1f}"
              f"  {rate(row['same'], row['twin']):6.1f}")
    return total


def belowFloors(total, options):
    rates = {"fix": rate(total["fix"], total["findings"]), "run": rate(total["run"], total["run"] + total["failed"]),
             "same": rate(total["same"], total["twin"])}
    floors = {"fix": options.min_fix, "run": options.min_run, "same": options.min_same}
    return [f"{what} is {rates[what]:.1f} %, the floor is {floors[what]} %" for what in rates
            if rates[what] < floors[what]]


def measureAll(options):
    units = [unit for unit in collectUnits(options.root) if re.search(options.filter, unit.name)]
    if options.preload:
        options.build_dir.mkdir(parents=True, exist_ok=True)
        options.precompiled = execute_cases.precompile(options, [f'"{options.root / "trace.h"}"'])
    lowerOnce(units, options)
    total, worse, details = collections.defaultdict(collections.Counter), [], []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for rows, further, lines in pool.map(lambda unit: measure(options, unit), units):
            for check, row in rows.items():
                total[check].update(row)
            worse += further
            details += lines
    return total, worse, details


def main():
    options = parseOptions()
    options.timeout = 300
    for folder in filter(None, (options.keep, options.reports)):
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="device-tidy-fixes-") as scratch:
        options.cache = Path(scratch, "cache")
        options.cache.mkdir()
        options.root = copyOf(options.root, options.keep or Path(scratch, "cases")).resolve()
        rows, worse, details = measureAll(options)
    print("\n".join(details))
    total = printTable(rows)
    failed = belowFloors(total, options)
    print("\n".join([*worse, *failed] or ["Nothing became worse."]))
    sys.exit(1 if worse or failed else 0)


if __name__ == "__main__":
    main()
