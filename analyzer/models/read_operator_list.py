#!/usr/bin/env python3
"""Reads the facts of data/op_device_rules.csv off the operator list of an installed PyTorch.

    python3 read_operator_list.py >> FILE

The wheel of PyTorch has its operator list and the generator that reads it (torchgen), which knows structured
operators, delegates and what is generated. Prints a line per public operator; `--compare VERSION` says instead what
differs from the rows of that version in data/op_device_rules.csv.
"""
import argparse
import csv
import os
import sys

COLUMNS = ("version", "op", "kernel", "device_check", "n_tensor_args", "n_writes", "has_Device_arg", "view")
RULES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "op_device_rules.csv")


def kernelOf(function, backends, keys):
    """Which kernel a call with CUDA tensors reaches."""
    if backends[keys.CUDA].has_kernel(function) or function.structured or function.structured_delegate:
        return "CUDA-kernel"
    if function.has_composite_implicit_autograd_kernel:
        return "CompositeImplicit"
    if function.has_composite_explicit_autograd_kernel or \
            function.has_composite_explicit_autograd_non_functional_kernel:
        return "CompositeExplicit"
    return "CPU-only/other"


def tensorArguments(arguments):
    """The number of tensor arguments, lists included, and '+list' where one is a list."""
    tensors = [each.type for each in arguments if each.type.is_tensor_like()]
    return str(len(tensors)) + ("+list" if any(each.is_list_like() for each in tensors) else "")


def factsOf(function, backends, keys, version):
    arguments = list(function.func.arguments.flat_all)
    return {
        "version": version,
        "op": str(function.func.name),
        "kernel": kernelOf(function, backends, keys),
        "device_check": function.device_check.name,
        "n_tensor_args": tensorArguments(arguments),
        "n_writes": str(sum(1 for each in arguments if each.annotation is not None and each.annotation.is_write)),
        "has_Device_arg": str(any(str(each.type).startswith("Device") for each in arguments)),
        "view": str(function.is_view_op),
    }


def readFacts():
    import torch
    import torchgen
    from torchgen.gen import parse_native_yaml
    from torchgen.model import DispatchKey
    folder = os.path.join(os.path.dirname(torchgen.__file__), "packaged", "ATen", "native")
    parsed = parse_native_yaml(os.path.join(folder, "native_functions.yaml"), os.path.join(folder, "tags.yaml"))
    version = torch.__version__.partition("+")[0]
    rows = [factsOf(each, parsed.backend_indices, DispatchKey, version) for each in parsed.native_functions
            if "generated" not in each.tags]
    return rows


def compare(rows, version):
    """Prints what rows say that those of `version` do not."""
    with open(RULES, newline="", encoding="utf-8") as file:
        before = {row["op"]: row for row in csv.DictReader(line for line in file if not line.startswith("#"))
                  if row["version"] == version}
    for row in rows:
        old = before.pop(row["op"], None)
        changed = [f"{column} {old[column]} -> {row[column]}" for column in COLUMNS[2:]
                   if old and old[column] != row[column]]
        if old is None:
            print("new:", row["op"])
        elif changed:
            print(f"changed: {row['op']}: " + ", ".join(changed))
    for name in before:
        print("gone:", name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compare", metavar="VERSION")
    parser.add_argument("--internal", action="store_true", help="also operators with an underscore in front")
    options = parser.parse_args()
    rows = readFacts()
    if not options.internal:
        rows = [row for row in rows if not row["op"].startswith("_")]
    if options.compare:
        compare(rows, options.compare)
        return
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writerows(rows)


if __name__ == "__main__":
    main()
