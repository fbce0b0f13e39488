"""Builds, runs and analyses a file of generated functions, and says where the two disagree."""

import collections
import json
import os
import re
import subprocess
from pathlib import Path

from program import writeFile

HERE = Path(__file__).resolve().parent
TORCH_INCLUDE = "/usr/include/torch/csrc/api/include"
DEVICE_ERROR = re.compile(r"same device|different devices|weight type .* should be the same|device type|"
                          r"on cpu or on the same")
RUN = re.compile(r"^RUN (\w+) (\d+) (\d+) ([\d,]*) (.*)$")
FLAGS = ["-std=c++17", "-I" + TORCH_INCLUDE, "-I" + str(HERE)]

# What one run of a function did: the key of the statement that threw or None, those reached, the text.
Run = collections.namedtuple("Run", "bits thrown isDevice reached text")
# kind is "false alarm", "miss" or "dead code"; key names the statement.
Disagreement = collections.namedtuple("Disagreement", "function kind key detail")


class Failure(Exception):
    """The generated file could not be built or analysed: the suite itself is broken."""


class Judge:
    def __init__(self, options):
        self.options = options
        self.directory = options.build_dir.resolve()
        self.directory.mkdir(parents=True, exist_ok=True)
        self.counts = collections.Counter()
        self.files = 0

    def command(self, arguments, what, **more):
        done = subprocess.run(arguments, capture_output=True, text=True, errors="replace", check=False,
                              **more)
        if done.returncode:
            raise Failure(f"{what} failed: {' '.join(map(str, arguments))}\n{done.stderr[-3000:]}")
        return done.stdout

    def precompile(self):
        header, output = self.directory / "torch_pch.h", self.directory / "torch_pch.h.gch"
        if output.exists() and output.stat().st_mtime > Path(TORCH_INCLUDE, "torch/torch.h").stat().st_mtime:
            return
        header.write_text("#include <torch/torch.h>\n")
        self.command([self.options.compiler, *FLAGS[:2], "-O0", "-w", "-DDT_RUN", "-x", "c++-header",
                      header, "-o", output], "the precompiled header")

    def build(self, source):
        program = source.with_suffix("")
        self.command([self.options.compiler, *FLAGS, "-O0", "-w", "-DDT_RUN", "-include",
                      self.directory / "torch_pch.h", source, "-o", program, "-ltorch", "-ltorch_cpu",
                      "-lc10", "-lpthread"], "the compiler")
        return program

    def execute(self, program, functions):
        """Runs by function name."""
        environment = dict(os.environ, VIRTUAL_GPUS="4", OMP_NUM_THREADS="1",
                           LD_PRELOAD=os.path.abspath(self.options.preload))
        output = self.command([program, "--all"], "the program", env=environment, timeout=600)
        byName = {function.name: function for function in functions}
        runs = collections.defaultdict(list)
        for line in output.splitlines():
            match = RUN.match(line)
            if match:
                lines = byName[match.group(1)].lines
                thrown = int(match.group(3))
                text = match.group(5)
                if text != "-" and thrown not in lines:
                    raise Failure(f"{program}: {match.group(1)} threw outside its statements: {text}")
                reached = {lines[int(n)] for n in match.group(4).split(",") if n and int(n) in lines}
                key = lines[thrown] if text != "-" else None
                isDevice = bool(DEVICE_ERROR.search(text))
                runs[match.group(1)].append(Run(int(match.group(2)), key, isDevice, reached, text))
            elif line.startswith("CRASH"):
                self.counts["crashed"] += 1
        return runs

    def analyse(self, source, functions):
        """Findings by function name: statement key -> (level, check, message)."""
        arguments = [self.options.tool, "--no-cache", "--quiet", "--format=json", source, "--", *FLAGS]
        done = subprocess.run(arguments, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode not in (0, 1):
            command = " ".join(map(str, arguments))
            raise Failure(f"{command}: exit status {done.returncode}\n{done.stderr[-2000:]}")
        found = collections.defaultdict(dict)
        for finding in json.loads(done.stdout)["findings"]:
            owner = next((f for f in functions if finding["line"] in f.lines), None)
            if owner is None or Path(finding["file"]).name != source.name:
                place = f"{finding['file']}:{finding['line']}"
                raise Failure(f"{source}: a finding outside of every statement: {place}: "
                              + finding["message"])
            key = owner.lines[finding["line"]]
            if finding["level"] == "definite" or key not in found[owner.name]:
                found[owner.name][key] = (finding["level"], finding["check"], finding["message"])
        return found

    def judge(self, functions, title):
        """All disagreements in these functions."""
        self.files += 1
        source = self.directory / f"{title}.cpp"
        writeFile(source, title, functions)
        program = self.build(source)
        runs = self.execute(program, functions)
        findings = self.analyse(source, functions)
        program.unlink()
        result = []
        for function in functions:
            result += compare(function, runs[function.name], findings[function.name], self.counts)
        return result


def compare(function, runs, findings, counts):
    result = []
    thrown = {}
    for run in runs:
        if run.isDevice:
            thrown.setdefault(run.thrown, run.text)
    counts["functions"] += 1
    counts["functions that throw"] += bool(thrown)
    counts["functions with other errors"] += any(r.thrown is not None and not r.isDevice for r in runs)
    counts["throwing statements"] += len(thrown)
    counts["findings"] += len(findings)
    # A move whose result is discarded is reported instead of the operation that it breaks.
    discarded = any(check == "device-discarded-move" for _, check, _ in findings.values())
    for key, text in thrown.items():
        if key in findings:
            counts["agreed throws"] += 1
        elif discarded:
            counts["throws behind a discarded move"] += 1
        else:
            result.append(Disagreement(function, "miss", key, text))
    # Without a run that stopped early, what was not reached cannot be reached.
    complete = all(run.thrown is None for run in runs)
    for key, (level, check, message) in findings.items():
        if level != "definite" or check == "device-discarded-move":
            counts["findings not judged: not definite"] += 1
        elif key in thrown:
            counts["agreed findings"] += 1
        elif any(key in run.reached and run.thrown != key for run in runs):
            # Reached without an error; when other runs stopped before it, one of those might have shown it.
            blocked = any(run.thrown is not None and key not in run.reached for run in runs)
            if blocked:
                counts["findings not judged: behind an error"] += 1
            else:
                result.append(Disagreement(function, "false alarm", key, message))
        elif complete:
            result.append(Disagreement(function, "dead code", key, message))
        else:
            counts["findings not judged: behind an error"] += 1
    return result
