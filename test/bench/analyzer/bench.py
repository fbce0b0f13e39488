#!/usr/bin/env python3
"""bench.py --tool DEVICE_TIDY [--full] [--work DIR]: how fast the analyzer is beside its peers.

Generates programs (generate.py), runs the analyzer and its peers on them one after the other, and prints one
row per bar: both times, the ratio, and the bar. Wall-clock time is what users feel; processor time, in the
second pair of columns, is steadier on a machine that does other things too. Peers that are not installed are
left out and said so. Nothing outside the working directory is written; the user's cache is not touched.

  default   1 and 20 translation units, a few minutes
  --full    also 100 translation units; the peer alone takes about seven minutes there

hyperfine measures the runs that take a fraction of a second, when it is there.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import generate  # noqa: E402

PEER_CHECK = "-*,bugprone-unchecked-optional-access"


@dataclass
class Sample:
    """One measured run: seconds on the clock and of processor, peak memory in MB, what it wrote to stderr."""

    wall: float
    cpu: float
    memory: float = 0
    errors: str = ""


def run(command, cwd, cache=None, allowed=(0, 1)):
    """Runs and measures; the peak memory is that of the largest process."""
    environment = dict(os.environ)
    if cache:
        environment["XDG_CACHE_HOME"] = cache
    with tempfile.TemporaryFile() as errors:
        begin = time.monotonic()
        process = subprocess.Popen(command, cwd=cwd, env=environment, stdout=subprocess.DEVNULL,
                                   stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        text = errors.read().decode("utf-8", "replace")
    if process.returncode not in allowed:
        raise SystemExit(f"{' '.join(command)} ended with status {process.returncode}:\n{text[-2000:]}")
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, text)


def median(samples):
    return Sample(
        statistics.median(each.wall for each in samples),
        statistics.median(each.cpu for each in samples),
        max(each.memory for each in samples),
        samples[-1].errors,
    )


def short(command, cwd, cache, rounds=20):
    """A run of a fraction of a second, many times; hyperfine also takes away the time to start a shell."""
    if not shutil.which("hyperfine"):
        return median([run(command, cwd, cache) for _ in range(rounds)])
    with tempfile.TemporaryDirectory() as place:
        result = os.path.join(place, "result.json")
        subprocess.run(
            ["hyperfine", "--shell=none", "--ignore-failure", "--warmup", "2", "--runs", str(rounds),
             "--export-json", result, " ".join(command)],
            cwd=cwd, env=dict(os.environ, XDG_CACHE_HOME=cache), check=True, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        with open(result, encoding="utf-8") as stream:
            found = json.load(stream)["results"][0]
    return Sample(found["median"], found["user"] + found["system"])


class Bench:
    def __init__(self, options):
        self.tool = os.path.abspath(options.tool)
        self.jobs = options.jobs
        self.rounds = options.rounds
        self.work = options.work
        self.flags = generate.torchFlags(options.torch_include)
        self.rows = []

    def project(self, count):
        directory = os.path.join(self.work, f"program-{count}")
        shutil.rmtree(directory, ignore_errors=True)
        generate.generate(directory, count, self.flags)
        return directory

    def row(self, case, ours, peerName, peer, bar, goal, isFaster=True):
        """`isFaster`: the bar is how many times faster; else what part of the peer's."""
        def ratio(a, b):
            return (b / a if isFaster else a / b) if a and b else 0
        self.rows.append((case, ours, peerName, peer, ratio(ours.wall, peer.wall), ratio(ours.cpu, peer.cpu),
                          bar, goal))
        unit = "x faster" if isFaster else "x"
        print(f"{case:<34} {ours.wall:8.3f} s  {peerName:<24} {peer.wall:8.3f} s   "
              f"wall {ratio(ours.wall, peer.wall):6.2f}{unit}  cpu {ratio(ours.cpu, peer.cpu):6.2f}{unit}   "
              f"bar {bar}, goal {goal}", flush=True)

    def analyse(self, directory, *options, cache=None):
        command = [self.tool, "-p", ".", "-j", str(self.jobs), "--quiet", "--stats", *options]
        return run(command, directory, cache)

    def clangTidy(self, directory, jobs):
        runner = shutil.which("run-clang-tidy-22")
        if not runner:
            return None
        return run([runner, "-quiet", "-p", ".", "-j", str(jobs), "-checks=" + PEER_CHECK], directory)

    def oneUnit(self):
        directory = self.project(3)
        ours, compiler, tidy = [], [], []
        for _ in range(self.rounds): # in turns, so that a busy moment hits all of them
            ours.append(self.analyse(directory, "--no-cache", "net0.cpp"))
            command = ["clang++-22", "-std=c++17", *self.flags, "-fsyntax-only", "net0.cpp"]
            compiler.append(run(command, directory))
            if shutil.which("clang-tidy-22"):
                tidy.append(run(["clang-tidy-22", "-p", ".", "--quiet", "-checks=" + PEER_CHECK, "net0.cpp"],
                                directory))
        self.row("1 unit, cold", median(ours), "clang++-22 -fsyntax-only", median(compiler), "0.55x", "0.4x",
                 isFaster=False)
        if tidy:
            mine, peer = median(ours), median(tidy)
            print(f"{'peak memory, 1 unit cold':<34} {mine.memory:8.0f} MB {'clang-tidy-22':<24} "
                  f"{peer.memory:8.0f} MB  {mine.memory / peer.memory:11.2f}x{'':17}   bar 0.7x, goal 0.5x")

    def manyUnits(self, count, bar, goal):
        """Cold against the peer, warm and one edit against our cold run."""
        directory = self.project(count)
        cache = os.path.join(self.work, f"cache-{count}")
        shutil.rmtree(cache, ignore_errors=True)
        cold = self.analyse(directory, cache=cache)
        peer = self.clangTidy(directory, self.jobs)
        if peer:
            self.row(f"{count} units, cold, -j {self.jobs}", cold, "run-clang-tidy-22", peer, bar, goal)
        else:
            print("run-clang-tidy-22 is not installed: no peer for the cold run")
        self.share(count, cold)
        command = [self.tool, "-p", ".", "-j", str(self.jobs), "--quiet"]
        warm = short(command, directory, cache)
        self.row(f"{count} units, nothing changed", warm, "our cold run", cold, "50x", "0.1 s")
        edits = []
        for number in range(self.rounds):
            with open(os.path.join(directory, "net1.cpp"), "a", encoding="utf-8") as stream:
                stream.write(f"// edit {number}\n")
            edits.append(self.analyse(directory, cache=cache))
        self.row(f"{count} units, one .cpp edited", median(edits), "our cold run", cold, "10x", "1 s")

    def share(self, count, cold):
        times = dict((name, float(seconds)) for seconds, name in
                     re.findall(r"^ *(\d+\.\d+)  (parsing|solving)$", cold.errors, re.M))
        if len(times) == 2:
            share = 100 * times["solving"] / times["parsing"]
            print(f"{f'{count} units, solve + link share':<34} {times['solving']:8.3f} s  {'parsing':<24} "
                  f"{times['parsing']:8.3f} s   {share:10.1f} %{'':19}   bar 10%, goal 3%")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True, help="path of device-tidy")
    parser.add_argument("--full", action="store_true", help="also 100 translation units")
    parser.add_argument("--only", choices=["1", "20", "100"], help="one part of it")
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="how often short runs are repeated")
    parser.add_argument("--torch-include", default="/usr/include")
    parser.add_argument("--work", help="working directory (default: a temporary one)")
    options = parser.parse_args()
    isTemporary = not options.work
    options.work = tempfile.mkdtemp() if isTemporary else os.path.abspath(options.work)
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors, load {load:.1f} before the run"
          + ("; others are at work here, so trust processor time more" if load > 1 else ""), flush=True)
    bench = Bench(options)
    try:
        if options.only in (None, "1"):
            bench.oneUnit()
        if options.only in (None, "20"):
            bench.manyUnits(20, "10x", "15x")
        if options.only == "100" or (options.full and not options.only):
            bench.manyUnits(100, "15x", "25x")
    finally:
        if isTemporary:
            shutil.rmtree(options.work, ignore_errors=True)


if __name__ == "__main__":
    main()
