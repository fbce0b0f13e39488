#!/usr/bin/env python3
"""Runs the programs that scripts/gpu-validate.sh has built, on real or virtual GPUs, and writes the reports."""

import argparse
import importlib.util
import json
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import jobs
import machine as machines
import report

MIXED = "Expected all tensors to be on the same device"
MAP = "device_map"
HERE = Path(__file__).resolve().parent


def system_runs(gpus):
    """(system, variant, ranks, device list, error): what each program must do with so many GPUs.

    With one GPU the programs of a single process are spread over it and the CPU.
    """
    ranks = max(2, min(gpus, 4))
    one = gpus == 1
    pair, four = ("cuda:0,cpu", "cuda:0,cpu,cuda:0,cpu") if one else ("", "")
    return [
        ("qwen-finetune", "broken", ranks, "cpu,cuda:0" if one else "", MIXED),
        ("qwen-finetune", "fixed", ranks, "", None),
        ("qwen-finetune", "shim", ranks, "", None),
        ("minicpm-zero3", "broken", ranks, "", MIXED),
        ("minicpm-zero3", "fixed", ranks, "", None),
        ("minicpm-zero3", "shim", ranks, "", None),
        # With two or three GPUs layer 8 of 32 is on the first one, and the program runs, as in its report.
        ("easyedit-memit", "broken", 1, four, MIXED if one or gpus > 3 else None),
        ("easyedit-memit", "fixed", 1, four, None),
        ("easyedit-memit", "shim", 1, four, None),
        ("glm4-loss", "broken", 1, pair, MIXED),
        ("glm4-loss", "fixed", 1, pair, None),
        ("glm4-loss", "shim", 1, pair, None),
        ("qwen-lora", "broken", ranks, "", MAP),
        ("qwen-lora", "fixed", ranks, "", None),
        ("qwen-lora", "shim", ranks, "", None),
    ]


def losses(text):
    return [float(number) for number in re.findall(r"(?:rank 0 |^)(?:\S+ \S+ )*?loss[ =:]+([0-9.]+(?:e-?[0-9]+)?)",
                                                   text, re.MULTILINE)]


def judge(ended, error):
    """What is wrong with a run of a system, or nothing."""
    if ended.late:
        return "did not end in time"
    if error:
        if ended.ok:
            return "ran, but must fail"
        return None if error in ended.text else "failed with another error: " + ended.text.strip()[-300:]
    if not ended.ok:
        return f"exit codes {ended.codes}: " + ended.text.strip()[-300:]
    values = losses(ended.text)
    if len(values) < 2 or not values[-1] < values[0]:
        return f"the loss did not fall: {values[:1]} to {values[-1:]}"
    return None


def run_systems(machine, programs, timeout):
    rows = []
    for system, variant, ranks, devices, error in system_runs(machine.count):
        program = programs / "systems" / f"system-{system}-{variant}"
        row = {"system": system, "variant": variant, "ranks": ranks,
               "devices": devices or ", ".join(f"cuda:{i}" for i in range(machine.count)),
               "expected": "fails with its report's error" if error else "trains, loss falling"}
        if not program.is_file():
            rows.append({**row, "ok": None, "observed": "not built"})
            continue
        extra = {"SYSTEMS_DEVICES": devices} if devices else {}
        ended = jobs.run(machine, [program], ranks, timeout, **extra)
        problem = judge(ended, error)
        rows.append({**row, "ok": problem is None, "observed": problem or row["expected"],
                     "seconds": round(ended.seconds, 1)})
        say(rows[-1])
    return rows


def json_lines(text):
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                yield json.loads(line)
            except ValueError:
                pass


def probe_rules(machine, programs, timeout):
    """Runs the probe until it is through; a crash costs the operator it happened in."""
    results, crashes, start = [], [], 0
    while True:
        ended = jobs.run(machine, [programs / "rule_probe", "--from", start], 1, timeout)
        last, done = None, False
        for entry in json_lines(ended.text):
            if "begin" in entry:
                last = entry["begin"]
            elif "done" in entry:
                done = True
            else:
                results.append(entry)
        if done:
            break
        crashes.append({"operator": last, "codes": ended.codes, "late": ended.late,
                        "text": ended.text.strip()[-300:]})
        if last is None or len(crashes) > 50:
            break
        start = last + 1
    compared = [entry for entry in results if entry["observed"] != "other error"]
    wrong = [entry for entry in compared if entry["observed"] != entry["expected"]]
    others = [entry for entry in results if entry["observed"] == "other error"]
    counts = Counter(entry["part"] for entry in compared)
    section = {"compared": dict(counts), "disagreements": wrong, "other_errors": others, "crashes": crashes,
               "finished": bool(results) and (not crashes or crashes[-1]["operator"] is not None),
               "operators": len({entry["op"] for entry in compared})}
    print(f"rule table: {sum(counts.values())} placements of {section['operators']} operators, "
          f"{len(wrong)} disagreements, {len(others)} other errors, {len(crashes)} crashes", flush=True)
    return section


def check_training(machine, programs, timeout):
    rows = []
    for ranks in sorted({2, max(2, min(machine.count, 4))}):
        with tempfile.TemporaryDirectory() as folder:
            ended = jobs.run(machine, [programs / "training_check", folder], ranks, timeout)
        found = [entry for entry in json_lines(ended.text) if "check" in entry]
        rows += found
        if not ended.ok and all(entry["ok"] for entry in found):
            rows.append({"check": f"training_check with {ranks} ranks ends well", "ok": False, "ranks": ranks,
                         "text": ended.text.strip()[-500:]})
    for row in rows:
        say(row)
    return rows


def check_mismatch(machine, programs, timeout):
    """Ranks that call different operations must all end with an error that says so, and not hang in NCCL."""
    ended = jobs.run(machine, [programs / "mismatch_check"], 2, timeout)
    told = ("rank 0 called 'all_reduce of 12 x Float, sum', rank 1 called 'broadcast of 12 x Float" in ended.text)
    row = {"check": "ranks that call different operations are told", "ranks": 2,
           "ok": told and not ended.late and 0 not in ended.codes, "seconds": round(ended.seconds, 1),
           "text": f"exit codes {ended.codes}: " + ended.text.strip()[-500:]}
    say(row)
    return row


def measure(machine, programs, timeout, quick, python_torch):
    """Step time and all-reduce bandwidth of the library, and of PyTorch where Python has it."""
    sizes = ["--layers", "4", "--width", "128", "--batch", "16", "--steps", "3", "--megabytes", "4"] if quick else []
    commands = {"device_shim": [programs / "step_bench", *sizes]}
    if python_torch:
        commands["pytorch"] = [sys.executable, HERE / "reference_ddp.py", *sizes]
    rows = []
    for ranks in sorted({1, max(2, machine.count)}):
        for name, command in commands.items():
            ended = jobs.run(machine, command, ranks, timeout)
            found = [{**entry, "by": name} for entry in json_lines(ended.text) if "metric" in entry]
            if not ended.ok:
                found.append({"metric": "failed", "by": name, "ranks": ranks, "text": ended.text.strip()[-300:]})
            rows += found
    for row in rows:
        print("measured:", json.dumps(row), flush=True)
    return rows


def say(row):
    words = {True: "ok", False: "FAILED", None: "left out"}
    name = row.get("check") or f"{row['system']} {row['variant']}, {row['ranks']} ranks"
    rest = "" if row["ok"] else ": " + str(row.get("observed") or row.get("text") or row.get("difference"))
    print(f"{words[row['ok']]}: {name}{rest}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", type=Path, required=True, help="the folder bin/ of the build")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--torch", default="/usr", help="LibTorch's folder, for its version")
    parser.add_argument("--virtual", type=int, default=0, metavar="N", help="run on N virtual GPUs")
    parser.add_argument("--virtual-cuda", type=Path, help="libvirtual_cuda.so")
    parser.add_argument("--quick", action="store_true", help="small sizes, for trying it out")
    parser.add_argument("--build-seconds", type=int, default=0)
    parser.add_argument("--shim-seconds", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one run")
    options = parser.parse_args()
    facts = machines.describe(options.torch, options.virtual)
    count = len(facts["gpus"])
    if count == 0:
        parser.exit(2, "error: no NVIDIA GPU is reachable; use --virtual N to test this program itself\n")
    machine = jobs.Machine(count, options.virtual_cuda.resolve() if options.virtual else None)
    begin = time.monotonic()
    python_torch = importlib.util.find_spec("torch") is not None and not options.virtual
    result = {
        "version": 1,
        "machine": facts,
        "quick": options.quick,
        "build_seconds": options.build_seconds,
        "device_shim_build_seconds": options.shim_seconds,
        "systems": run_systems(machine, options.programs, options.timeout),
        "rule_table": probe_rules(machine, options.programs, options.timeout),
        "training": check_training(machine, options.programs, options.timeout)
                    + [check_mismatch(machine, options.programs, options.timeout)],
        "measurements": measure(machine, options.programs, options.timeout, options.quick, python_torch),
        "python_torch": python_torch,
    }
    result["run_seconds"] = round(time.monotonic() - begin)
    failures = report.failures(result)
    result["passed"] = not failures
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "gpu-validation.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (options.out / "gpu-validation.md").write_text(report.to_markdown(result, failures), encoding="utf-8")
    for failure in failures:
        print("not as expected:", failure)
    print(f"reports: {options.out / 'gpu-validation.json'} and {options.out / 'gpu-validation.md'}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
