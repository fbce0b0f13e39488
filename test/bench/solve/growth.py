#!/usr/bin/env python3
"""Holds the growth of the solver to a limit: counts the instructions that solve() takes on the programs of
solve-bench, fits instructions = c * size^k for each shape, and fails when a k is above the limit.

Instructions are counted by valgrind's callgrind, so other work on the machine changes nothing.
"""
import argparse
import collections
import concurrent.futures
import math
import re
import subprocess
import sys


def instructions(options, case):
    command = [options.valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null",
               "--toggle-collect=*countedSolve*", options.bench, f"--once={case}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    collected = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not collected or collected.group(1) == "0":
        sys.exit(f"growth.py: {' '.join(command)} counted nothing:\n{done.stderr}")
    return int(collected.group(1))


def exponent(counts):
    """Slope of log(instructions) over log(size), by least squares."""
    points = [(math.log(size), math.log(count)) for size, count in counts.items()]
    meanX, meanY = (sum(axis) / len(points) for axis in zip(*points))
    return sum((x - meanX) * (y - meanY) for x, y in points) / sum((x - meanX) ** 2 for x, _ in points)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", required=True, help="the solve-bench program")
    parser.add_argument("--valgrind", default="valgrind")
    parser.add_argument("--max-exponent", type=float, default=1.3, metavar="K")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only shapes whose name matches")
    parser.add_argument("--jobs", "-j", type=int, default=2, metavar="N")
    options = parser.parse_args()
    listed = subprocess.run([options.bench, "--list"], capture_output=True, text=True, check=True)
    cases = [case for case in listed.stdout.split("\n") if case and re.search(options.filter, case)]
    if not cases:
        sys.exit(f"growth.py: no shape matches '{options.filter}'")

    shapes = collections.defaultdict(dict)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case, count in zip(cases, pool.map(lambda case: instructions(options, case), cases)):
            shape, size = case.rsplit("/", 1)
            shapes[shape][int(size)] = count
    isTooSteep = False
    print(f"{'grows in':<16} {'exponent':>8} {'last doubling':>14}  instructions of the largest")
    for shape, counts in shapes.items():
        fit = exponent(counts)
        last = exponent(dict(sorted(counts.items())[-2:]))
        isTooSteep |= fit > options.max_exponent
        mark = "  above the limit" if fit > options.max_exponent else ""
        print(f"{shape:<16} {fit:>8.2f} {last:>14.2f}  {max(counts.values()):,}{mark}")
    return 1 if isTooSteep else 0


if __name__ == "__main__":
    sys.exit(main())
