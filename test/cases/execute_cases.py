#!/usr/bin/env python3
"""Checks the labels of the case corpus by running every case on virtual GPUs.

A case whose name ends in _ok must run.  One that ends in _bad must stop with a device error, unless all it
shows is a discarded move or a placement map, which no run confirms: then it may do either. Programs with host access
run with memory that the host cannot read.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from run_cases import ANNOTATION, SYSTEM, addTorchOption, collectUnits, holds, torchArguments, torchVersion

DEVICE_ERROR = re.compile(r"same device|different devices|weight type .* should be the same|host code used memory|"
                          r"resides on host memory|should be a 1D CPU int64 tensor")
CONFIRMED_BY_A_RUN = ("device-mixed-op", "device-loss-input", "device-unregistered-tensor", "device-host-access")
FAULT = re.compile(r"^virtual-cuda: (host code used .*)", re.M)
BODY = r"^(?:static )?void {name}\(.*?^}}"


def compileCommand(options):
    python = sysconfig.get_paths()["include"]
    command = [options.compiler, "-std=c++17", "-DDT_RUN", "-w", *torchArguments(options.torch), "-I" + python]
    return command + options.compile_arg


def precompile(options, further=()):
    """The headers that take most of the time of each program, compiled once: the arguments that include them."""
    header = options.build_dir.resolve() / "torch-headers.h"
    header.write_text("".join(f"#include {name}\n" for name in ("<torch/torch.h>", *further)))
    compiled = header.with_name(header.name + (".pch" if "clang" in options.compiler else ".gch"))
    command = [*compileCommand(options), "-x", "c++-header", str(header), "-o", str(compiled)]
    return ["-include", str(header)] if subprocess.run(command, check=False).returncode == 0 else []


def build(unit, program, options):
    command = [*compileCommand(options), *options.precompiled, *map(str, unit.sources), "-o", str(program)]
    if options.torch != SYSTEM:
        command += [f"-L{options.torch}/lib", f"-Wl,-rpath,{options.torch}/lib"]
    command += ["-ltorch", "-ltorch_cpu", "-lc10", "-lpthread"] + options.link_arg
    return subprocess.run(command, check=False).returncode == 0


def mayStayQuiet(unit, name, version):
    """True for a bad case that no run can confirm: nothing but discarded moves, placement maps and what other releases
    of LibTorch object to."""
    text = "\n".join(path.read_text(errors="replace") for path in unit.texts)
    if "discard" in name:
        return True
    body = re.search(BODY.format(name=re.escape(name.split("::")[-1])), text, re.M | re.S)
    found = (ANNOTATION.findall(body.group(0)) if body else []) or ANNOTATION.findall(text)
    checks = {check for _, check, relation, bound in found if not relation or holds(version, relation, bound)}
    return not checks.intersection(CONFIRMED_BY_A_RUN)


def verdict(unit, name, output, version):
    threw = output.startswith("THROWS")
    if output != "ok" and not threw:
        return "neither ran nor threw"
    if name.endswith("_ok"):
        return "a clean case threw" if threw else None
    if threw:
        return None if DEVICE_ERROR.search(output) else "threw something else than a device error"
    return None if mayStayQuiet(unit, name, version) else "a bad case ran"


def environmentOf(unit, options):
    environment = dict(os.environ, VIRTUAL_GPUS=str(options.gpus), OMP_NUM_THREADS="1")
    if options.preload:
        environment["LD_PRELOAD"] = os.path.abspath(options.preload)
    if any("device-host-access" in path.read_text(errors="replace") for path in unit.texts):
        environment["VIRTUAL_GPU_ISOLATE"] = "1"
    return environment


def caseNames(program):
    return subprocess.run([program, "--list"], capture_output=True, text=True, check=False).stdout.split()


def runCase(program, name, environment):
    """The last line of the case: "ok", or "THROWS: " and what was thrown."""
    done = subprocess.run([program, name], env=environment, capture_output=True, timeout=120, check=False)
    lines = [line for line in done.stdout.decode(errors="replace").splitlines() if line]
    output = lines[-1] if lines else f"exit status {done.returncode}"
    if output.startswith("THROWS") and "TorchScript" in output:
        output = "THROWS: " + (done.stderr.decode(errors="replace").strip().splitlines() or [output])[-1]
    if fault := done.returncode < 0 and FAULT.search(done.stderr.decode(errors="replace")):
        output = "THROWS: " + fault.group(1)
    return output


def execute(unit, program, options):
    environment = environmentOf(unit, options)
    wrong = []
    for name in caseNames(program):
        output = runCase(program, name, environment)
        problem = verdict(unit, name, output, options.version)
        if options.verbose or problem:
            print(f"{unit.name}: {name}: {problem or 'as labelled'}: {output[:160]}", flush=True)
        wrong.append(bool(problem))
    return wrong


def addRunOptions(parser, buildFolder):
    """What building and running case programs needs to know."""
    parser.add_argument("--preload", metavar="LIB", help="the virtual GPU library: run the programs")
    parser.add_argument("--gpus", type=int, default=4)
    addTorchOption(parser)
    parser.add_argument("--compiler", default="g++")
    parser.add_argument("--compile-arg", action="append", default=[], metavar="ARG")
    parser.add_argument("--link-arg", action="append", default=[], metavar="ARG")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only programs whose name matches")
    parser.add_argument("--build-dir", type=Path, default=buildFolder, metavar="DIR")
    parser.add_argument("--jobs", "-j", type=int, default=os.cpu_count(), metavar="N")


def parseOptions():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = Path(__file__).resolve().parent
    parser.add_argument("directory", nargs="?", type=Path, default=here, metavar="DIR")
    addRunOptions(parser, Path("build/case-programs"))
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args()


def upToDateProgram(unit, options):
    """The program of the unit, built unless it is newer than its sources; nothing when it does not build."""
    program = options.build_dir.resolve() / unit.name.replace("/", "_").replace(".cpp", "")
    driver = Path(__file__).resolve().with_name("cases.h")
    newest = max(path.stat().st_mtime for path in [driver, *unit.texts])
    isOld = not program.exists() or program.stat().st_mtime < newest
    return program if not isOld or build(unit, program, options) else None


def check(unit, options):
    """For each case of the unit whether its label is wrong."""
    program = upToDateProgram(unit, options)
    if not program:
        print(f"{unit.name}: does not build", flush=True)
        return [True]
    return execute(unit, program, options)


def hasCases(unit):
    return "DT_MAIN" in "".join(path.read_text(errors="replace") for path in unit.sources)


def main():
    options = parseOptions()
    options.build_dir.mkdir(parents=True, exist_ok=True)
    options.precompiled = precompile(options)
    options.version = torchVersion(options.torch)
    units = [
        unit
        for unit in collectUnits(options.directory.resolve())
        if re.search(options.filter, unit.name) and hasCases(unit)
    ]
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for wrong in pool.map(lambda unit: check(unit, options), units):
            counts.update(wrong)
    print(f"{counts[False]} passed, {counts[True]} failed")
    return 1 if counts[True] or not counts[False] else 0


if __name__ == "__main__":
    sys.exit(main())
