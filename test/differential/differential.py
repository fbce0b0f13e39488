#!/usr/bin/env python3
"""Holds the analyzer against executed truth: random functions are analysed and run, and the two must agree.

A definite finding must throw a device error at its line under some value of the function's choices; a device
error must be a finding at its line.  Disagreements are minimised and compared with known.json.  Exit status
0: none but known ones, 1: new ones, 2: the functions could not be built, run or analysed.
"""

import argparse
import collections
import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from generator import generate
from judge import Failure, Judge

PER_FILE = 80


def candidates(disagreement, prefix):
    """The next smaller versions of a function that still have the statement in question."""
    function, out = disagreement.function, []
    for key, mode in function.variants():
        twin = function.variant(f"{prefix}{len(out)}", key, mode)
        if twin and twin.find(disagreement.key):
            out.append(((key, mode), twin))
    return out


def same(found, wanted):
    return [d for d in found if d.kind == wanted.kind and d.key == wanted.key]


def allTogether(disagreement, steps, name):
    """One copy with every step that worked alone; the later ones may no longer apply."""
    twin = disagreement.function
    for key, mode in steps:
        smaller = twin.variant(name, key, mode)
        if smaller and smaller.find(disagreement.key):
            twin = smaller
    return twin


def minimise(judge, disagreements, rounds):
    """Drops statements while the disagreement stays; the attempts of all functions share files."""
    current = list(disagreements)
    open_ = set(range(len(current)))
    for turn in range(rounds):
        attempts = {}
        for index in sorted(open_):
            for step, twin in candidates(current[index], f"m{index}_{turn}_"):
                attempts[twin.name] = (index, step, twin)
        if not attempts:
            break
        found = judgeTwins(judge, [twin for _, _, twin in attempts.values()], f"minimise{turn}")
        good = collections.defaultdict(list)
        for name, (index, step, twin) in attempts.items():
            kept = same(found[name], current[index])
            if kept:
                good[index].append((step, kept[0]))
        open_ = set(good)
        several = [i for i in good if len(good[i]) > 1]
        joint = {i: allTogether(current[i], [s for s, _ in good[i]], f"j{i}_{turn}") for i in several}
        found = judgeTwins(judge, list(joint.values()), f"joint{turn}")
        for index, steps in good.items():
            kept = same(found[joint[index].name], current[index]) if index in joint else []
            current[index] = kept[0] if kept else min((d for _, d in steps), key=lambda d: d.function.size())
    return current


def judgeTwins(judge, twins, title):
    found = collections.defaultdict(list)
    saved = collections.Counter(judge.counts)
    for start in range(0, len(twins), 2 * PER_FILE):
        for disagreement in judge.judge(twins[start : start + 2 * PER_FILE], f"{title}_{start}"):
            found[disagreement.function.name].append(disagreement)
    judge.counts = saved
    return found


def mechanism(disagreement, known):
    """The entry of known.json that explains it: its kind, tags, texts and what was said."""
    tags, text = set(disagreement.function.tags()), disagreement.function.text()
    for entry in known:
        if entry["kind"] == disagreement.kind and set(entry.get("tags", ())) <= tags:
            said = entry.get("detail", "") in disagreement.detail
            if said and all(part in text for part in entry.get("texts", ())):
                return entry["mechanism"]
    return None


def printDisagreement(disagreement, name):
    function = disagreement.function
    print(f"\n{disagreement.kind} ({name or 'NEW'}): {disagreement.detail[:200]}")
    print("  tags: " + " ".join(function.tags()))
    for text, key in function.render():
        mark = "->" if key == disagreement.key else "  "
        print(f"  {mark} {text.replace('AT ', '', 1).replace(' FRAME', '')}")
    sys.stdout.flush()


def parseOptions():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True, help="the device-tidy program")
    parser.add_argument("--preload", required=True, metavar="LIB", help="the virtual GPU library")
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--count", type=int, default=200, help="functions to generate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="files at a time")
    parser.add_argument("--rounds", type=int, default=8, help="of minimisation; 0 prints the functions whole")
    parser.add_argument("--build-dir", type=Path, default=Path("differential-programs"), metavar="DIR")
    parser.add_argument("--known", type=Path, default=Path(__file__).resolve().with_name("known.json"))
    return parser.parse_args()


def check(options):
    judge = Judge(options)
    judge.precompile()
    known = json.loads(options.known.read_text())
    functions = [generate(random.Random(f"{options.seed}/{i}"), i) for i in range(options.count)]
    parts = [functions[i : i + PER_FILE] for i in range(0, len(functions), PER_FILE)]
    with ThreadPoolExecutor(max(1, options.jobs)) as pool:
        titles = [f"seed{options.seed}_{i}" for i in range(len(parts))]
        results = pool.map(judge.judge, parts, titles)
        disagreements = [d for found in results for d in found]
    minimised = minimise(judge, disagreements, options.rounds)
    byMechanism = collections.Counter()
    for disagreement in sorted(minimised, key=lambda d: (d.kind, d.function.tags())):
        name = mechanism(disagreement, known)
        byMechanism[(disagreement.kind, name or "NEW")] += 1
        printDisagreement(disagreement, name)
    print()
    for what, number in sorted(judge.counts.items()):
        print(f"{number:>6} {what}")
    for (kind, name), number in sorted(byMechanism.items()):
        print(f"{number:>6} {kind}: {name}")
    new = sum(number for (_, name), number in byMechanism.items() if name == "NEW")
    print(f"{len(minimised)} disagreements, {new} of them not in {options.known.name}")
    if judge.counts["crashed"] or not judge.counts["agreed findings"]:
        return 2
    return 1 if new else 0


def main():
    options = parseOptions()
    try:
        return check(options)
    except (Failure, OSError, ValueError) as problem:
        print(f"differential.py: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
