#!/usr/bin/env python3
"""Runs the five systems in Python on virtual GPUs, with the libraries in which each of them failed, and small trainings
with the libraries of today.

Every broken program must fail with its report's error, and device-run must name the lines; where the report says that
it runs, it runs. Every fixed one must train, its loss falling. The libraries are installed with pip, once for each
list of requirements, into virtual environments that see the PyTorch of --python.
"""

import argparse
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
MIXED = "Expected all tensors to be on the same device"
OWN_LINE = r"\.\.\. called from .*/common/tiny\.py:\d+\n"  # the innermost that is in no library


def at(system, file, text):
    """A pattern for "file:line" of the only line of a broken program that has `text`."""
    lines = (HERE / system / "broken" / file).read_text(encoding="utf-8").splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if text in line]
    return rf"/{re.escape(file)}:{number}\n"


class Run:
    """One run. `error` is the text it must fail with, None when it must train; `told` what device-run says about it:
    lists of patterns that come in this order, one of which must be there. `launcher` starts the program, with its
    module and options; `memory` is that of a card."""

    def __init__(self, system, variant, gpus, ranks=None, args=(), error=None, told=(), launcher="", memory=None):
        self.system, self.variant, self.gpus, self.ranks = system, variant, gpus, ranks
        self.args, self.error, self.told = list(args), error, told
        self.launcher, self.memory = launcher.split(), memory

    def __str__(self):
        ranks = f"{self.ranks} ranks, " if self.ranks else ""
        return " ".join([f"{self.system} {self.variant}, {ranks}{self.gpus} GPUs", *self.launcher[1:2], *self.args])

    @property
    def program(self):
        names = (self.folder / "finetune.py", self.folder / "edit.py", self.folder.with_suffix(".py"))
        return next(each for each in names if each.exists())

    def command(self, python):
        options = ["--virtual-gpus", str(self.gpus)]
        options += ["-n", str(self.ranks)] if self.ranks else []
        options += ["--gpu-memory", self.memory] if self.memory else []
        return [*options, "--", python, "-W", "ignore", *self.launcher, self.program, *self.args]

    @property
    def folder(self):
        return HERE / self.system / self.variant

    @property
    def requirements(self):
        return next(
            each / "requirements.txt"
            for each in (self.folder, self.folder.parent)
            if (each / "requirements.txt").exists()
        )


RUNS = [
    # DeepSpeed has moved all layers to the card of the rank, and accelerate moves their inputs to the cards of the map.
    # Rank 1 fails in the embedding, rank 0 in the first layer of another card; which of them is first, is chance.
    Run(
        "qwen-finetune",
        "broken",
        4,
        2,
        error=MIXED,
        told=[
            [
                r"in aten::index_select at .*/accelerate/hooks\.py:165\n",
                r"called from .*/modeling_llama\.py:651\n",
                OWN_LINE,
                r"self +on cuda:1 .* moved by aten::to at .*/deepspeed/runtime/zero/stage_1_and_2\.py:362\n",
                r"index +on cuda:0 .* moved by aten::to at .*/accelerate/utils/operations\.py:167\n",
            ],
            [
                r"in aten::mul at .*/modeling_llama\.py:89\n",
                OWN_LINE,
                r"self +on cuda:0 .* moved by aten::to at .*/deepspeed/",
                r"other +on cuda:1 .* at .*/modeling_llama\.py:88\n",
            ],
        ],
    ),
    Run("qwen-finetune", "broken", 4, 2, ["--small"]),
    Run("qwen-finetune", "fixed", 2, 2),
    Run(
        "minicpm-zero3",
        "broken",
        2,
        2,
        error=MIXED,
        told=[
            [
                r"in aten::mul_ at .*/deepspeed/runtime/zero/stage3\.py:2117\n",
                r"called from .*/stage3\.py:2047\n",
                OWN_LINE,
                r"self +on cpu .* created by aten::pin_memory at .*/deepspeed/accelerator/cuda_accelerator\.py:\d+\n",
                r"other +on cuda:\d .* created by aten::mul at .*/stage3\.py:2117\n",
                r"/stage3\.py:2117: move 'other' to cpu",
            ],
        ],
    ),
    Run("minicpm-zero3", "broken", 2, 2, ["--clip", "100"]),
    Run("minicpm-zero3", "fixed", 2, 2),
    Run(
        "easyedit-memit",
        "broken",
        4,
        error=MIXED,
        told=[
            [
                r"in aten::add_ at .*" + at("easyedit-memit", "edit.py", "+= delta"),
                r"self +on cuda:1 .* created by aten::add at .*/modeling_llama\.py:\d+\n",
                r"other +on cuda:0 .* created by aten::zeros at .*"
                + at("easyedit-memit", "edit.py", "delta = torch.zeros("),
                r"/edit\.py:\d+: move 'other' to cuda:1",
            ],
        ],
    ),
    Run("easyedit-memit", "broken", 2),
    Run("easyedit-memit", "fixed", 2),
    Run("easyedit-memit", "fixed", 4),
    Run(
        "glm4-loss",
        "broken",
        4,
        error=MIXED,
        told=[
            [
                r"in aten::nll_loss_forward at .*"
                + at("glm4-loss", "modeling_small_glm.py", "loss = nn.CrossEntropyLoss()("),
                r"self +on cuda:3 ",
                r"target +on cuda:0 .* at .*" + at("glm4-loss", "modeling_small_glm.py", "shift_labels = labels["),
                r"/modeling_small_glm\.py:\d+: move 'target' to cuda:3",
            ],
        ],
    ),
    Run("glm4-loss", "broken", 1),
    Run("glm4-loss", "fixed", 4),
    Run(
        "qwen-lora",
        "broken",
        2,
        2,
        error="You can't train a model that has been loaded with `device_map='auto'` in any distributed mode.",
    ),
    Run("qwen-lora", "broken", 2),
    Run("qwen-lora", "fixed", 2, 2),
    # The libraries of today, each with its own way to start ranks.
    Run(
        "stack",
        "accelerate_loop",
        2,
        launcher="-m accelerate.commands.launch --multi_gpu --num_processes 2 --num_machines 1"
        " --mixed_precision no --dynamo_backend no",
    ),
    Run("stack", "accelerate_loop", 2, launcher="-m torch.distributed.run --nproc-per-node 2"),
    Run("stack", "deepspeed_loop", 2, launcher="-m deepspeed.launcher.runner --num_gpus 2"),
    Run("stack", "lightning_loop", 2),
    Run("stack", "trl_sft", 2, 2),
    Run("stack", "spread", 4, memory="1536MiB"),
]


class Environments:
    """Virtual environments by what is required."""

    def __init__(self, python, folder):
        self.python, self.folder = python, folder
        code = "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))"
        self.packages = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout

    def interpreter(self, requirements):
        """The interpreter of the environment, which is made when it is needed first."""
        key = hashlib.sha256(requirements.read_bytes() + self.packages.encode()).hexdigest()[:12]
        venv = self.folder / f"venv-{key}"
        python, done = venv / "bin" / "python3", venv / "done"
        if done.exists():
            return python
        subprocess.run([self.python, "-m", "venv", "--clear", venv], check=True)
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        own = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        Path(own, "pytorch.pth").write_text(self.packages, encoding="utf-8")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "-r", requirements], check=True)
        done.touch()
        return python


def losses(output):
    """The losses the first rank printed, in order."""
    return [float(number) for number in re.findall(r"^(?:\[rank 0\] )?step \d+: loss ([0-9.]+)$", output, re.MULTILINE)]


def judge(run, done):
    """What is wrong with a finished run, or nothing."""
    output = done.stdout + done.stderr
    if run.error is None:
        values = losses(output)
        if done.returncode != 0 or len(values) < 2:
            return f"exit status {done.returncode}, losses {values}:\n{output[-3000:]}"
        return None if values[-1] < values[0] else f"the loss did not fall: {values}"
    if done.returncode == 0:
        return "ran, but must fail"
    if run.error not in output:
        return f"failed without '{run.error}':\n{output[-3000:]}"
    told = output[output.rfind("device-run: the last device error") :]
    if run.told and not any(re.search("(?s:.*)".join(patterns), told) for patterns in run.told):
        return f"device-run does not tell the lines:\n{told}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device-run", required=True, help="the launcher")
    parser.add_argument("--python", required=True, help="an interpreter with PyTorch for which there are virtual GPUs")
    parser.add_argument("--work", required=True, type=Path, metavar="DIR", help="for the virtual environments")
    parser.add_argument("--filter", default="", metavar="REGEX")
    parser.add_argument("--timeout", type=float, default=600, metavar="SECONDS", help="per run")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    environments = Environments(options.python, options.work.resolve())
    variables = {**os.environ, "HF_HOME": str(options.work.resolve() / "huggingface"), "HF_HUB_OFFLINE": "1"}
    chosen = [run for run in RUNS if re.search(options.filter, str(run))]
    failed = 0
    for run in chosen:
        command = [options.device_run, "--timeout", str(int(options.timeout))]
        command += run.command(environments.interpreter(run.requirements))
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        problem = judge(run, done)
        failed += bool(problem)
        print(f"{'FAILED' if problem else 'ok'}: {run}" + (f": {problem}" if problem else ""), flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
