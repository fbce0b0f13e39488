#!/usr/bin/env python3
"""Derive data/op_rules.csv from a table of PyTorch's operator declarations.

usage: derive_rules.py OP_DEVICE_RULES.csv VERSION=TORCH_INCLUDE... > data/op_rules.csv

TORCH_INCLUDE is the folder with the headers of that version: they say which operators are structured,
which decides the name that CUDA's error text prints.

The input has one row per operator and version: what kernel it has, and whether the generated CUDA
wrapper checks devices. An operator that is checked there is `strict`. The others do their own checking
in the kernel; which way is written down in FAMILIES below. Only operators with a CUDA kernel appear:
everything else either is composed of them or does not exist on CUDA.
"""
import csv
import os
import sys

# Binary TensorIterator operators: one 0-dim CPU input may join CUDA operands.
BINARY = set(
    """add sub mul div floor_divide rsub copysign logical_xor logical_and logical_or xlogy heaviside
    eq ne ge le gt lt __lshift__ __ilshift__ __rshift__ __irshift__ bitwise_and bitwise_or bitwise_xor
    bitwise_left_shift bitwise_right_shift atan2 hypot fmod remainder fmin fmax maximum minimum
    special_xlog1py special_zeta special_chebyshev_polynomial_t
    special_chebyshev_polynomial_u special_chebyshev_polynomial_v special_chebyshev_polynomial_w
    special_hermite_polynomial_h special_hermite_polynomial_he special_laguerre_polynomial_l
    special_legendre_polynomial_p special_shifted_chebyshev_polynomial_t
    special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
    special_shifted_chebyshev_polynomial_w threshold""".split()
)
BINARY_OPS = {
    "pow.Tensor_Tensor", "pow.Tensor_Tensor_out", "pow_.Tensor", "clamp_max.Tensor_out",
    "clamp_min.Tensor_out",
}
# TensorIterator lets a 0-dim CPU input pass, and the kernel, which calls gpu_kernel(), refuses it.
REFUSING = set(
    "mse_loss mse_loss.out smooth_l1_loss smooth_l1_loss.out lerp.Scalar lerp.Scalar_out lerp_.Scalar".split()
)
FAMILIES = {
    "index.Tensor": "index",
    "index.Tensor_out": "index",
    "_index_put_impl_": "index_put",
    "masked_fill_.Scalar": "masked_fill",
    "masked_fill_.Tensor": "masked_fill",
    "index_fill_.int_Scalar": "index_fill",
    "index_fill_.int_Tensor": "index_fill",
    "where.self": "where",
    "where.self_out": "where",
    "binary_cross_entropy": "bce",
    "binary_cross_entropy.out": "bce",
    "fill_.Tensor": "any",
    "bernoulli.out": "any",
    "bernoulli_.Tensor": "any",
    "_use_cudnn_ctc_loss": "any",
    "_use_cudnn_ctc_loss.Tensor": "any",
    "_use_miopen_ctc_loss": "any",
    "_use_miopen_ctc_loss.Tensor": "any",
    "is_set_to": "any",
}


def base_name(op):
    return op.split(".")[0]


def rule_of(row):
    op, version = row["op"], row["version"]
    if row["device_check"] == "ExactSame":
        return "strict"
    if op in FAMILIES:
        return FAMILIES[op]
    if op in REFUSING:
        return "gpu_kernel"
    name = base_name(op)
    if name.startswith("_foreach_"):
        return "foreach"
    if op.startswith(("lerp.Tensor", "lerp_.Tensor")) and version != "1.13.1":
        return "lerp"
    if name in ("addcmul", "addcmul_") and version not in ("1.13.1", "2.6.0"):
        return "addcmul"
    if op == "threshold.out" or op.endswith(".Scalar_out") and op not in BINARY_OPS:
        # The number is the one CPU scalar already.
        return "iterator"
    if op in BINARY_OPS or name in BINARY or (name.endswith("_") and name[:-1] in BINARY):
        return "iterator_scalar"
    return "iterator"


def method_of(op, structured):
    """The wrapper's name as CUDA's error text prints it, without the prefix."""
    name, _, overload = op.partition(".")
    if not structured:
        return overload + "_" + name
    out = "_out" if overload.endswith("out") else ""
    return name + out + ("_" + overload if overload else "")


def is_structured(op, include):
    name = base_name(op)
    names = [name, name[:-1]] if name.endswith("_") else [name]
    return any(os.path.exists(os.path.join(include, "ATen", "ops", n + "_meta.h")) for n in names)


def main():
    source = sys.argv[1]
    includes = dict(pair.split("=", 1) for pair in sys.argv[2:])
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["version", "op", "rule", "method"])
    with open(source, newline="") as rows:
        for row in csv.DictReader(rows):
            op, version = row["op"], row["version"]
            if row["kernel"] == "CUDA-kernel" and version in includes:
                structured = is_structured(op, includes[version])
                out.writerow([version, op, rule_of(row), method_of(op, structured)])


main()
