#!/usr/bin/env python3
"""Checks the labels of the programs by running them on virtual GPUs: a _bad case must stop with a device error, an
_ok case must run, and a program has as many labels as _bad cases.

A kernel launch becomes a call that compares the current GPU with the memory it gets (shim/prefix.h); cuBLAS, cuSPARSE,
cuFFT, cuRAND, NCCL and MPI are checked in the same way (shim/shim.cpp). Bodies of kernels are not run.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SHIM = HERE / "shim"
FLAGS = ["-std=c++17", "-DDT_RUN", "-w", "-O0", "-I", SHIM / "include", "-I", ROOT / "runtime-shim/cuda-stubs/include",
         "-I/usr/include/torch/csrc/api/include"]
LINK = ["-ltorch", "-ltorch_cpu", "-lc10", "-lpthread", "-ldl", "-rdynamic", "-Wl,--unresolved-symbols=ignore-all",
        "-no-pie"]
DEVICE_ERROR = re.compile(r"device error|same device|different devices|weight type .* should be the same|host code used|"
                          r"resides on host memory|should be a 1D CPU int64 tensor|invalid device ordinal|CUDA|"
                          r"cannot pin|record_stream")
LABEL = re.compile(r"// \[\[(?:FN |FP )?device-[a-z-]+\]\]")


def withLaunches(text):
    """`k<N><<<grid, block>>>(x)` as a call of the shim."""
    result, position = [], 0
    while (start := text.find("<<<", position)) >= 0:
        end = start
        while text[end - 1].isspace():
            end -= 1
        begin = end
        if text[begin - 1] == ">":
            depth = 0
            while True:
                begin -= 1
                depth += (text[begin] == ">") - (text[begin] == "<")
                if depth == 0:
                    break
        while re.match(r"[\w:]", text[begin - 1]):
            begin -= 1
        close = text.index(">>>", start)
        result.append(text[position:begin] + f"::dtl::Launch({text[start + 3:close]}).go([&](auto... given) {{ "
                      f"{text[begin:end]}(given...); }})")
        position = close + 3
    return "".join(result) + text[position:]


def run(command):
    return subprocess.run([str(part) for part in command], check=False).returncode == 0


def build(program, work, options):
    work.mkdir(parents=True, exist_ok=True)
    for header in [*program.glob("*.h"), *program.glob("*.cuh")]:
        (work / header.name).write_text(withLaunches(header.read_text()))
    objects = []
    for source in sorted([*program.glob("*.cpp"), *program.glob("*.cu")]):
        changed = work / (source.name + ".cpp")
        text = withLaunches(source.read_text())
        for name in ("../../../cases/cases.h", "../../shim/driver.h"):
            text = text.replace(f'"{name}"', f'"{(program / name).resolve()}"')
        changed.write_text(f'#line 1 "{source}"\n{text}')
        objects.append(changed.with_suffix(".o"))
        if not run(["g++", *FLAGS, "-include", options.prefix, "-I", work, "-c", changed, "-o", objects[-1]]):
            return None
    result = work / "program"
    libraries = options.library.parent
    return result if run(["g++", *objects, options.shim, "-o", result, options.library, *LINK,
                          f"-Wl,-rpath,{libraries}"]) else None


def outcomeOf(program, name, options):
    environment = dict(os.environ, VIRTUAL_GPUS="4", OMP_NUM_THREADS="1", LD_PRELOAD=str(options.preload),
                       VIRTUAL_GPU_ISOLATE="1", MALLOC_PERTURB_="165", GLIBC_TUNABLES="glibc.malloc.tcache_count=0")
    done = subprocess.run([program, name], env=environment, capture_output=True, timeout=300, check=False,
                          cwd=program.parent)
    output = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode == 0:
        return "ok"
    return "device error" if DEVICE_ERROR.search(output) else f"exit {done.returncode}: {output[-300:]}"


def check(program, work, options):
    """How many of the cases of `program` do not do what their names say."""
    built = build(program, work, options)
    if not built:
        print(f"{program.name}: does not compile")
        return 1
    environment = dict(os.environ, LD_PRELOAD=str(options.preload))
    names = subprocess.run([built, "--list"], env=environment, capture_output=True, text=True, check=False).stdout.split()
    wrong = 0
    for name in names:
        outcome = outcomeOf(built, name, options)
        if outcome == "ok" and "discarded" in name:
            continue  # that the type of the numbers stays what it was stops nothing
        if outcome != ("ok" if name.endswith("_ok") else "device error"):
            wrong += 1
            print(f"{program.parent.name}/{program.name}: {name}: {outcome}")
    labels = sum(len(LABEL.findall(path.read_text())) for path in program.iterdir() if path.is_file())
    bad = sum(name.endswith("_bad") for name in names)
    print(f"{program.parent.name}/{program.name}: {len(names)} cases, {wrong} wrong, {labels} labels")
    return wrong + (labels != bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build", help="where the virtual GPUs were built")
    parser.add_argument("programs", nargs="*", type=Path, help="folders, by default all")
    options = parser.parse_args()
    options.preload = next(options.build_dir.resolve().rglob("libvirtual_cuda.so"), None)
    options.library = next(options.build_dir.resolve().rglob("libc10_cuda.so"), None)
    if not options.preload or not options.library:
        sys.exit(f"error: no libvirtual_cuda.so and libc10_cuda.so below {options.build_dir}; build the project first")
    work = options.build_dir.resolve() / "library-programs"
    work.mkdir(exist_ok=True)
    options.prefix, options.shim = work / "prefix.h", work / "shim.o"
    options.prefix.write_text(f'#include "{SHIM / "prefix.h"}"\n')
    if not run(["g++", *FLAGS, "-x", "c++-header", options.prefix, "-o", work / "prefix.h.gch"]) or \
            not run(["g++", *FLAGS, "-c", "-I", SHIM, SHIM / "shim.cpp", "-o", options.shim]):
        sys.exit("error: the shim does not compile")
    programs = options.programs or sorted(path for path in HERE.glob("*/*") if path.is_dir() and path.parent != SHIM)
    wrong = sum(check(path.resolve(), work / f"{path.resolve().parent.name}-{path.name}", options) for path in programs)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
