#!/usr/bin/env python3
"""Turn data/op_rules.csv into the initializers of the run-time rule table.

usage: make_rules.py op_rules.csv OUTPUT.inc
"""
import csv
import sys

RULES = {
    "strict": "Strict",
    "iterator": "Iterator",
    "iterator_scalar": "IteratorScalar",
    "gpu_kernel": "Iterator",
    "index": "Index",
    "index_put": "IndexPut",
    "masked_fill": "MaskedFill",
    "index_fill": "IndexFill",
    "where": "Where",
    "bce": "BinaryCrossEntropy",
    "addcmul": "Addcmul",
    "lerp": "Lerp",
    "foreach": "Foreach",
    "any": "Any",
}


def main():
    source, target = sys.argv[1:]
    lines = []
    with open(source, newline="") as rows:
        for number, row in enumerate(csv.DictReader(rows), start=2):
            if row["rule"] not in RULES:
                sys.exit("%s:%d: unknown rule '%s'" % (source, number, row["rule"]))
            cells = (row["version"], row["op"], RULES[row["rule"]], row["method"])
            lines.append('{"%s", "%s", Rule::%s, "%s"},' % cells)
    if not lines:
        sys.exit("%s: no rules" % source)
    with open(target, "w") as out:
        out.write("\n".join(lines) + "\n")


main()
