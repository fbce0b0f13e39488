#!/usr/bin/env python3
"""execute.py [--library] FILES: runs what run_labels.py analyses, under device-run --virtual-gpus 4.

Of a file of functions each whose name begins with case_ is a case, or where there is none, each that is no helper (_name); of
a file of the library each entry of CALLS, or each function drive_*, in the driver of its name. A file *_torch2.py is for
PyTorch 2. Every case is run in a process of its own. The line that raises must be the labelled one,
with an error about devices, and each label must be met. What is drawn by chance is the same in every run.
"""
import argparse
import ast
import importlib.util
import json
import os
import random
import re
import sys
import traceback
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEVICE_ERROR = re.compile(r"same device|same GPU|device type tensor to numpy|invalid device ordinal|different devices|device|"
                          r"Input type .* and (weight|bias) type|(is|are) on (cpu|cuda)|on CPU|CUDA|cuda", re.DOTALL)


def loaded(path, name="case"):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def functions_of(path):
    """Name and call of each case of a file of functions."""
    names = [node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)]
    cases = [name for name in names if name.startswith("case_")]
    for name in cases or [name for name in names if not name.startswith("_")]:
        yield name, lambda name=name: getattr(loaded(path), name)()


def calls_of(path):
    """The same of a file of the library: its driver says how it is called."""
    sys.path[:0] = [str(HERE / "library"), str(HERE / "drivers")]
    driver = HERE / "drivers" / path.name
    if not driver.exists():
        driver = driver.with_name("d" + path.name[1:])

    def calls():
        made = loaded(driver, "driver")
        return getattr(made, "CALLS", None) or {name: each for name, each in vars(made).items() if name.startswith("drive_")}

    for name in in_child(lambda: list(calls()))["value"]:
        yield name, lambda name=name: calls()[name]()


def repeatable():
    """From here on, what is drawn by chance is what every run draws."""
    import numpy
    import torch
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)


def in_child(work, path=None):
    """What `work` gives, or the error it raises and the innermost line of `path` it comes from."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        warnings.simplefilter("ignore")
        repeatable()
        try:
            value = work()
            result = {"value": value if path is None else None}
        except BaseException as error:  # noqa: BLE001
            lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if path and each.filename == str(path)]
            result = {"line": lines[-1] if lines else 0, "error": f"{type(error).__name__}: {error}"[:300]}
        os.write(writing, json.dumps(result).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        data = stream.read()
    os.waitpid(child, 0)
    return json.loads(data) if data else {"line": 0, "error": "the process died"}


def problems_of(path, cases):
    wanted = {number for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
              if line.rstrip().endswith("# raises")}
    met = set()
    for name, call in cases:
        result = in_child(call, path)
        if "error" not in result:
            continue
        if result["line"] not in wanted or not DEVICE_ERROR.search(result["error"]):
            yield f"{path}:{result['line']}: {name}: not as labelled: {result['error']}"
        met.add(result["line"])
    for line in sorted(wanted - met):
        yield f"{path}:{line}: labelled, and nothing raises there"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", action="store_true")
    parser.add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    import torch
    if torch.cuda.device_count() != 4:
        parser.exit(2, "execute.py needs 4 GPUs: device-run --virtual-gpus 4 -- python3 execute.py FILES\n")
    problems = []
    for path in options.files:
        path = path.resolve()
        if path.stem.endswith("_torch2") and torch.__version__.startswith("1."):
            continue
        problems += problems_of(path, calls_of(path) if options.library else functions_of(path))
    print("\n".join(problems) or f"{len(options.files)} files as labelled")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
