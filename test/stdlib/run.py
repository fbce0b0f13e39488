#!/usr/bin/env python3
"""Measures the analyzer's model of the C++ standard library against functions that are run. See README.md.

Exit status 0: the bars are met; 1: they are not; 2: the suite could not be run; 77: there is no libc++.
"""

import argparse
import itertools
import shutil
import sys
import tempfile
import time
from pathlib import Path

import report
import self_check
from build import LIBCXX, Failure, Workshop
from catalogue import load
from composition import compositions
from judge import judge
from systematic import systematic

PER_FILE = 150


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tool", default="build/bin/device-tidy")
    parser.add_argument("--count", type=int, default=2000, help="number of random functions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--systematic", action="store_true", help="every operation alone, no random functions")
    parser.add_argument("--limit", type=int, help="only the first so many systematic functions")
    parser.add_argument("--only", metavar="TAG", help="only entries with this tag (several: TAG,TAG)")
    parser.add_argument("--compiler", default="clang++-22" if shutil.which("clang++-22") else "g++")
    parser.add_argument("--libcxx", type=Path, metavar="DIR",
                        help="libc++ for compiler and analyzer: DIR/include/c++/v1 and DIR/lib/libc++.a")
    parser.add_argument("--show", type=int, default=0, help="print so many false and missed functions")
    parser.add_argument("--tags", type=int, default=40, help="print so many tags")
    parser.add_argument("--keep", metavar="DIR", help="leave the sources there")
    parser.add_argument("--max-false", type=int, default=0)
    parser.add_argument("--min-recall", type=float, default=0.97)
    parser.add_argument("--self-check", action="store_true", help="prove that the judge can fail")
    return parser.parse_args()


def functions(options):
    entries = load()
    if options.only:
        wanted = set(options.only.split(","))
        entries = [entry for entry in entries if wanted & {*entry.tags, *entry.kinds}]
        if not entries:
            raise Failure(f"no operation has the tag {options.only}")
    if options.systematic:
        return itertools.islice(systematic(entries, options.seed), options.limit)
    return compositions(entries, options.seed, options.count)


def measure(options, directory):
    workshop = Workshop(options, Path(directory))
    workshop.prepare()
    verdicts = []
    source = iter(functions(options))
    for number in itertools.count():
        batch = list(itertools.islice(source, PER_FILE))
        if not batch:
            return workshop, verdicts
        runs, findings = workshop.outcome(batch, f"part{number}")
        verdicts += [judge(f, runs.get(f.name, []), findings.get(f.name, [])) for f in batch]


def main():
    options = arguments()
    if options.libcxx and not (options.libcxx / "lib" / LIBCXX[0]).exists():
        print(f"skipped: no libc++ in {options.libcxx} (Debian: libc++-22-dev; a copy elsewhere: --libcxx DIR, "
              "or for CMake -DDEVICE_TIDY_LIBCXX=DIR)")  # fmt: skip
        return 77
    if options.keep:
        Path(options.keep).mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        if options.self_check:
            return int(self_check.check(options, directory) > 0)
        workshop, verdicts = measure(options, directory)
    report.show("FALSE", [v for v in verdicts if v.false], options.show)
    report.show("MISSED", [v for v in verdicts if v.missed], options.show)
    report.byTag(verdicts, options.tags)
    refused = {tuple(function.tags): (function, message) for function, message in workshop.refused}
    for function, message in list(refused.values())[: options.show or 5]:
        print(f"\ndoes not compile ({', '.join(function.tags)}): {message}\n{function.text}")
    for line in workshop.notParsed[:10]:
        print(f"not parsed: {line}")
    print()
    false, recall = report.totals(verdicts)
    print(f"{len(workshop.refused)} do not compile (a bug of the generator), {len(workshop.notParsed)} not parsed by "
          f"the analyzer; {time.monotonic() - started:.0f} s")
    return int(report.below(options, false, recall) or bool(workshop.refused))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"run.py: {failure}", file=sys.stderr)
        sys.exit(2)
