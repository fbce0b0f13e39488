#!/usr/bin/env python3
"""Runs the five systems on virtual GPUs through device-run: what the reports say happens, happens.

Every broken program must fail with its report's error where the report says it fails, and run where it says
it runs; every fixed one, and every one on device_shim, must train on 2 and 4 GPUs or ranks, its loss falling.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

MIXED = "Expected all tensors to be on the same device"
MAP = "device_map"


class Run:
    """One run: `error` is the text it must fail with, None when it must train."""

    def __init__(self, system, variant, ranks, gpus, error=None, args=()):
        self.system, self.variant, self.ranks, self.gpus = system, variant, ranks, gpus
        self.error, self.args = error, list(args)

    def __str__(self):
        return " ".join([f"{self.system} {self.variant}, {self.ranks} ranks, {self.gpus} GPUs"] + self.args)


RUNS = [
    Run("qwen-finetune", "broken", 2, 2, MIXED),
    Run("qwen-finetune", "broken", 2, 2, None, ["--small"]),
    Run("qwen-finetune", "fixed", 2, 2),
    Run("qwen-finetune", "fixed", 4, 4),
    Run("minicpm-zero3", "broken", 2, 2, MIXED),
    Run("minicpm-zero3", "broken", 2, 2, None, ["--clip", "100"]),
    Run("minicpm-zero3", "fixed", 2, 2),
    Run("minicpm-zero3", "fixed", 4, 4),
    Run("easyedit-memit", "broken", 1, 4, MIXED),
    Run("easyedit-memit", "broken", 1, 2),
    Run("easyedit-memit", "fixed", 1, 2),
    Run("easyedit-memit", "fixed", 1, 4),
    Run("glm4-loss", "broken", 1, 4, MIXED),
    Run("glm4-loss", "broken", 1, 1),
    Run("glm4-loss", "fixed", 1, 2),
    Run("glm4-loss", "fixed", 1, 4),
    Run("qwen-lora", "broken", 2, 2, MAP),
    Run("qwen-lora", "fixed", 2, 2),
    Run("qwen-lora", "fixed", 4, 4),
    Run("qwen-finetune", "shim", 2, 2),
    Run("qwen-finetune", "shim", 4, 4),
    Run("minicpm-zero3", "shim", 2, 2),
    Run("minicpm-zero3", "shim", 4, 4),
    Run("easyedit-memit", "shim", 1, 2),
    Run("easyedit-memit", "shim", 1, 4),
    Run("glm4-loss", "shim", 1, 2),
    Run("glm4-loss", "shim", 1, 4),
    Run("qwen-lora", "shim", 2, 2),
    Run("qwen-lora", "shim", 4, 4),
    # Without any GPU they train on the CPU.
    Run("qwen-finetune", "shim", 2, 0),
    Run("minicpm-zero3", "shim", 4, 0),
    Run("qwen-lora", "shim", 2, 0),
]


def losses(output):
    """The losses the first rank printed, in order."""
    lines = [line for line in output.splitlines() if not re.match(r"\[rank [1-9]", line)]
    return [float(number) for number in re.findall(r"\bloss[ =:]+([0-9.]+(?:e-?[0-9]+)?)", "\n".join(lines))]


def judge(run, done):
    """What is wrong with a finished run, or nothing."""
    output = done.stdout + done.stderr
    if run.error:
        if done.returncode == 0:
            return "ran, but must fail"
        return None if run.error in output else f"failed without '{run.error}':\n{output[-2000:]}"
    if done.returncode != 0:
        return f"exit status {done.returncode}:\n{output[-2000:]}"
    values = losses(output)
    if len(values) < 2:
        return f"printed no losses:\n{output[-2000:]}"
    return None if values[-1] < values[0] else f"the loss did not fall: {values}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device-run", required=True, help="the launcher")
    parser.add_argument("--programs", required=True, type=Path, metavar="DIR", help="where the systems are built")
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS", help="per run")
    options = parser.parse_args()
    chosen = [run for run in RUNS if re.search(options.filter, str(run))]
    failed = 0
    for run in chosen:
        program = options.programs / f"system-{run.system}-{run.variant}"
        command = [options.device_run, "-n", str(run.ranks), "--virtual-gpus", str(run.gpus), "--timeout",
                   str(int(options.timeout)), "--", str(program), *run.args]
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout + 30, check=False)
        problem = judge(run, done)
        failed += bool(problem)
        print(f"{'FAILED' if problem else 'ok'}: {run}" + (f": {problem}" if problem else ""), flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
