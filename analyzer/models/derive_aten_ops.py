#!/usr/bin/env python3
"""Writes data/aten_ops.csv: one device rule per ATen operator name.

Two inputs, both in data/:
  op_device_rules.csv  facts read off the operator lists of torch 1.13, 2.6 and 2.13 (kernel kind, device check,
                       tensor arguments); read_operator_list.py reads those of an installed PyTorch
  aten_overrides.csv   rules decided by hand, with their source

What the facts alone decide:
  - fewer than two tensor arguments: no device can differ, the result is where the tensor is (same_self),
    or it is a factory (no tensor, a Device argument) or a like-constructor (one tensor, a Device argument);
  - a CUDA kernel with the generated ExactSame check: strict.
Everything else (NoCheck kernels and composite functions of several tensors) needs a row in the overrides.
What has none is left out of the table, so that a call of it is unknown to the analyzer, and silent.
"""
import csv
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
COLUMNS = ["op", "rule", "result", "rank0", "loss", "view", "since", "until", "source"]
# The versions of the operator lists, from old to new, with the bounds of a rule that begins or ends with one. What
# changed between 2.6 and 2.13 is not known for the versions between: there an operator has no rule.
VERSIONS = ("1.13.1", "2.6.0", "2.13.0")
SINCE = {"2.6.0": "2.0", "2.13.0": "2.13"}
UNTIL = {"1.13.1": "1.13", "2.6.0": "2.6"}
MOVE_RULES = ("move", "to_cpu", "to_cuda", "type_as", "pin_memory")
OUT_RULES = ("strict", "iterator", "same_self", "factory")


def readRows(path):
    """Rows of a CSV file as dicts; comment lines are skipped."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def readFacts(path):
    """{version: {base name: [overload, ...]}}, out variants kept apart under the key NAME_out."""
    facts = {version: {} for version in VERSIONS}
    for row in readRows(path):
        base, _, overload = row["op"].partition(".")
        key = base + "_out" if isOutVariant(base, overload, row) else base
        facts[row["version"]].setdefault(key, []).append(row)
    return facts


def isOutVariant(base, overload, row):
    """add.out, topk.values, max.dim_max: an overload that writes although the name is not an in-place one."""
    return bool(overload) and row["n_writes"] != "0" and not base.endswith("_")


def tensorCount(row):
    """Number of tensor arguments; a list counts as many."""
    return 2 if "list" in row["n_tensor_args"] else int(row["n_tensor_args"])


def deriveOne(overloads):
    """(rule, result, source) of one operator from its overloads, or None when they do not decide."""
    several = [row for row in overloads if tensorCount(row) >= 2]
    if not several:
        hasDevice = all(row["has_Device_arg"] == "True" for row in overloads)
        tensors = max(tensorCount(row) for row in overloads)
        if hasDevice and tensors == 0:
            return "factory", "cpu", "operator list: a device argument and no tensor"
        if hasDevice and tensors == 1:
            return "like", "self", "operator list: a device argument and one tensor"
        if tensors == 0:
            return None
        return "same_self", "self", "operator list: one tensor argument"
    for row in several:
        if not row["kernel"].startswith("CUDA") or row["device_check"] != "ExactSame":
            return None
    return "strict", "common", "operator list: CUDA kernel with the ExactSame check"


def deriveRank0(name, rule, overloads, known):
    """A pointwise operator has an in-place form and is no view: it keeps the rank of its tensor."""
    if name.endswith("_"):
        return "keep"
    isView = any(row["view"] == "True" for row in overloads)
    if rule == "same_self" and not isView and name + "_" in known:
        return "keep"
    return "size" if rule == "factory" else "keep" if rule == "like" else "unknown"


def deriveAll(facts):
    """{name: {version: row}} for every operator the facts decide."""
    derived = {}
    for version, operators in facts.items():
        for name, overloads in operators.items():
            found = None if name.endswith("_out") else deriveOne(overloads)
            if not found:
                continue
            rule, result, source = found
            isInplace = name.endswith("_") and not name.endswith("__")
            rank0 = deriveRank0(name, rule, overloads, operators)
            derived.setdefault(name, {})[version] = {
                "op": name, "rule": rule, "result": "self" if isInplace else result, "rank0": rank0,
                "loss": "no", "view": "", "since": "", "until": "", "source": source}
    return derived


def mergeVersions(derived, facts):
    """{name: [row, ...]}: one row while the operator lists agree, one more, with bounds, where they do not."""
    merged = {}
    for name, versions in derived.items():
        runs = []  # (row or None where the facts do not decide, first version, last version)
        for version in VERSIONS:
            row = versions.get(version)
            if runs and runs[-1][0] == row:
                runs[-1] = (row, runs[-1][1], version)
            elif name in facts[version]:
                runs.append((row, version, version))
        merged[name] = [dict(row, since=SINCE[first] if place > 0 else "",
                             until=UNTIL[last] if place + 1 < len(runs) else "")
                        for place, (row, first, last) in enumerate(runs) if row]
    return merged


def fail(message):
    sys.exit("derive_aten_ops.py: " + message)


def readOverrides(path):
    """{name: [override, ...]} in file order."""
    overrides = {}
    for row in readRows(path):
        if not row["source"]:
            fail("aten_overrides.csv: no source for " + row["ops"])
        for name in row["ops"].split():
            overrides.setdefault(name, []).append(dict(row, op=name))
    return overrides


def completed(override, base):
    """The override's row, empty cells filled from the derived row."""
    row = {column: override[column] or (base or {}).get(column, "") for column in COLUMNS}
    row["since"], row["until"] = override["since"], override["until"]
    for column in ("rule", "result", "rank0", "loss"):
        if not row[column]:
            fail("aten_overrides.csv: %s has no %s and none can be derived" % (override["op"], column))
    return row


def applyOverrides(table, overrides):
    """Puts the hand-written rows in; an override of NAME speaks for NAME_ as well."""
    for name, items in overrides.items():
        if items[0]["rule"] == "skip":
            table.pop(name, None)
            continue
        if len(items) > 1 and not all(item["since"] or item["until"] for item in items):
            fail("aten_overrides.csv: two rows for " + name)
        base = table.get(name, [None])[0]
        table[name] = [completed(item, base) for item in items]


def addInplaceForms(table, overrides, facts):
    """NAME_ follows the override of NAME: same rule, but the result is self."""
    known = {name for operators in facts.values() for name in operators}
    for name in overrides:
        inplace = name + "_"
        if inplace in known and inplace not in overrides and name in table:
            table[inplace] = [dict(row, result="self", rank0="keep") for row in table[name]]


def addOutForms(table, facts):
    """NAME_out(out, ...): a real out kernel checks `out` as well; generated copy-back forms are left out."""
    for version in VERSIONS:
        for name, overloads in facts[version].items():
            base = name[:-4]
            if not name.endswith("_out") or base not in table or name in table:
                continue
            kinds = {row["kernel"] for row in overloads}
            hasCheck = "CUDA-kernel" in kinds or kinds == {"CompositeImplicit"}
            rows = [outForm(row) for row in table[base]
                    if row["rule"] in OUT_RULES and (hasCheck or row["rule"] == "factory")]
            if rows:
                table[name] = rows


def outForm(row):
    """A unary kernel compares its output too, without exception; a factory fills the output it is given."""
    rule = {"same_self": "strict", "factory": "same_self"}.get(row["rule"], row["rule"])
    return dict(row, rule=rule, result="self", rank0="keep", loss="no", source="out form: " + row["source"])


def viewNames(facts):
    """Operators that may give back the storage of their first tensor: views, moves and in-place forms."""
    views = {name for operators in facts.values() for name, overloads in operators.items()
             if any(row["view"] == "True" for row in overloads)}
    inplace = {name for operators in facts.values() for name in operators
               if name.endswith(("_", "_out")) and not name.endswith("__")}
    return views | inplace


def deriveTable(dataDir):
    """Sorted rows of aten_ops.csv and the names that stay without a rule."""
    facts = readFacts(os.path.join(dataDir, "op_device_rules.csv"))
    overrides = readOverrides(os.path.join(dataDir, "aten_overrides.csv"))
    table = mergeVersions(deriveAll(facts), facts)
    applyOverrides(table, overrides)
    addInplaceForms(table, overrides, facts)
    addOutForms(table, facts)
    views = viewNames(facts)
    for name, rows in table.items():
        for row in rows:
            row["op"] = name
            row["view"] = row["view"] or ("yes" if name in views or row["rule"] in MOVE_RULES else "no")
    skipped = {name for name, items in overrides.items() if items[0]["rule"] == "skip"}
    every = {name for operators in facts.values() for name in operators if not name.endswith("_out")}
    unmodelled = sorted(every - set(table) - skipped)
    rows = [row for name in sorted(table) for row in table[name]]
    return rows, unmodelled


def render(dataDir):
    rows, unmodelled = deriveTable(dataDir)
    lines = ["# Written by derive_aten_ops.py from op_device_rules.csv and aten_overrides.csv; do not edit.",
             "# %d rows; %d operators have no row and are unknown to the analyzer."
             % (len(rows), len(unmodelled)),
             "# The words of each column are explained in embed.py."]
    lines.append(",".join(COLUMNS))
    for row in rows:
        cells = [row[column] for column in COLUMNS]
        lines.append(",".join('"%s"' % cell if "," in cell else cell for cell in cells))
    return "\n".join(lines) + "\n"


def main():
    dataDir = sys.argv[1] if len(sys.argv) > 1 else os.path.join(HERE, "data")
    with open(os.path.join(dataDir, "aten_ops.csv"), "w", encoding="utf-8") as file:
        file.write(render(dataDir))
    return 0


if __name__ == "__main__":
    sys.exit(main())
