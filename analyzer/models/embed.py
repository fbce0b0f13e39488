#!/usr/bin/env python3
"""embed.py OUTPUT.inc CSV...: checks the model tables and turns them into one C++ source of constexpr arrays.

Each table is recognised by its file name. Rows are sorted by their key, those of models_*.csv keep their order: rows of
one name are asked one after the other.

What the words mean
  rule     strict       every tensor argument (also in lists and optionals) on one device, with no exception
                        for 0-dim CPU tensors
           iterator     as strict, but one 0-dim CPU input may meet CUDA tensors; an output or in-place self
                        may not
           third        as strict, but the third tensor may be a 0-dim one of the CPU
           same_self    takes tensors of any devices; `result` says where the outcome is
           index        the indices are on the CPU or on self's device
           index_put    indices anywhere; a value that is not 0-dim on self's device; basic indices copy
                        across devices
           where        as strict, but 0-dim tensors of any device are moved to the others
           masked_fill  the first two tensors on one device, a further 0-dim tensor anywhere
           factory      no tensor: the CPU unless options or a device argument say otherwise
           blob         a factory around memory that is there already
           like         where the first tensor is unless options or a device argument say otherwise
           move         Tensor::to; to_cpu, to_cuda, type_as, pin_memory are its fixed forms
           host         returns no tensor
           cpu_lengths  the second tensor, if there is one, must be on the CPU; the result is where the
                        first is
           set_data     rebinds the storage of the first tensor
           sequential   a module that runs the modules it holds one after the other
           functional   a module that calls the function it was made of
           modules, parameters  a module that holds modules or parameters, and has no forward
  result   common (the one device of the arguments), self (the first tensor's), cpu, none (no tensor), unknown;
           pieces: as many tensors as the second argument says, where the first tensor is
  rank0    how many dimensions has the result? yes: it is 0-dim; one; two; no: at least one; unknown
           keep, more, less  as many as the first tensor, one more, one less
           second       as many as the second tensor
           same         as many as the tensors, which all have at least one and the same number
           common       as many as the tensor with the most
           size, data   as many as there are sizes, as the braces are deep
           grow         as size, and at least as many as the first tensor
           reduce       0-dim when no dim argument is given
           loss         0-dim unless the reduction is none
           squeeze, diagonal, matmul, einsum, index  as that operator's
  loss     yes for losses
  view     yes: what it returns may share the storage of its first tensor, or be that tensor
  kind     what a library class holds; explained at the top of library_types.csv
  model    models_*.csv: the effects of a call; Rows.h says how they are written
  word     spelling.csv: a word of source code; its kinds are explained at the top of the table
  role     distributed.csv, words.csv: what a name is for; explained at their tops
  params   yes: owns a weight and a bias; one: a weight; many: parameters of other names; no; weight: a loss with optional tensors given by its options
"""
import csv
import os
import sys

RULES = set("strict iterator third same_self index index_put where masked_fill factory blob like "
            "move to_cpu to_cuda type_as pin_memory host cpu_lengths set_data sequential functional modules "
            "parameters".split())
RESULTS = set("common self pieces cpu none unknown".split())
RANKS = set("yes one two no unknown keep more less second same common size data grow reduce loss squeeze diagonal matmul "
            "einsum index".split())
YES_NO = {"yes", "no"}
TYPE_KINDS = set("tensor device options string list map pair tuple pointer holder any_module optional "
                 "wrapper scalar function variant example nothing guard dataset optimizer optimizer_options "
                 "accessor nn_options ordering python".split())
WORD_KINDS = set("namespace device device_class dtype factory move same_device element gradient parameter "
                 "register pass option append".split())
ROLES = set("host_memory host_view makes_host_memory device_memory stream init rank local_rank visible_devices "
            "global_rank gpu_backend cpu_backend "
            "launcher python_init map_value "
            "loader library no_throw lookup assigns asks_device makes_there names_gpus adds_hook brings_to_host made_to_move "
            "moves_object "
            "starts_again drives given_module stages leaves_autograd dataset expects_error constructs maker runs_python calls_python "
            "calls_python_method starts_program bookkeeping loads model model_type plan map_key map_text no_map "
            "map_setter option_setter option_getter command outside has_models standard_module computes exports test "
            "keeps_numbers".split())


class Table:
    """Shape of one CSV file: names in C++, columns, the words a column may hold, and what must be unique."""

    def __init__(self, array, struct, columns, words, key):
        self.array = array
        self.struct = struct
        self.columns = columns.split()
        self.words = words
        self.key = key


OP_WORDS = {"rule": RULES, "result": RESULTS, "rank0": RANKS, "loss": YES_NO}
MODELS = Table("kModels", "ModelRow", "name model source", {}, ["name", "model"])
NAMES = Table("kNames", "NameRow", "name role source", {"role": ROLES}, ["name", "role"])
TABLES = {
    "aten_ops.csv": Table("kAtenOps", "AtenOpRow", "op rule result rank0 loss view since until source",
                          dict(OP_WORDS, view=YES_NO), ["op"]),
    "nn_modules.csv": Table("kNnModules", "NnModuleRow",
                            "module params rule result rank0 loss buffers source",
                            dict(OP_WORDS, params=YES_NO | {"one", "many", "weight"}), ["module"]),
    "nn_functional.csv": Table("kNnFunctional", "NnFunctionalRow",
                               "op rule result rank0 loss since until source", OP_WORDS,
                               ["op"]),
    **{"models_%s.csv" % library: MODELS for library in ("torch", "cuda", "modules", "std", "config", "python")},
    **{table: NAMES for table in ("distributed.csv", "words.csv")},
    "library_types.csv": Table("kLibraryTypes", "LibraryTypeRow", "type kind source", {"kind": TYPE_KINDS},
                               ["type"]),
    "spelling.csv": Table("kSpelling", "SpellingRow", "word kind detail source", {"kind": WORD_KINDS},
                          ["word", "kind"]),
}


def fail(path, line, message):
    sys.exit("%s:%d: %s" % (path, line, message))


def version(text, otherwise, path, line):
    """A torch version as a tuple of numbers, for comparing."""
    if not text:
        return otherwise
    try:
        return tuple(int(part) for part in text.split("."))
    except ValueError:
        return fail(path, line, "bad version '%s'" % text)


def checkRow(table, path, line, row):
    """Words, source and version bounds of one row."""
    for column, words in table.words.items():
        if row[column] not in words:
            fail(path, line, "unknown %s '%s'" % (column, row[column]))
    for column in table.key:
        if not row[column]:
            fail(path, line, "empty %s" % column)
    if not row["source"]:
        fail(path, line, "missing source")
    for cell in row.values():
        if any(ord(char) < 32 or ord(char) > 126 for char in cell):
            fail(path, line, "only printable ASCII is allowed")
    since = version(row.get("since", ""), (0,), path, line)
    return since, version(row.get("until", ""), (10**6,), path, line)


def checkUnique(path, table, numbered):
    """A key may come back only with version bounds that do not overlap."""
    seen = {}
    for line, row, (since, until) in numbered:
        key = tuple(row[column] for column in table.key)
        for otherLine, (otherSince, otherUntil) in seen.get(key, []):
            if since <= otherUntil and otherSince <= until:
                fail(path, line, "duplicate %s, first at line %d" % (" ".join(key), otherLine))
        seen.setdefault(key, []).append((line, (since, until)))


def readTable(path):
    """(table, sorted rows) of a CSV file, after all checks."""
    table = TABLES.get(os.path.basename(path))
    if not table:
        fail(path, 1, "no model table has this name")
    header, numbered = None, []
    with open(path, newline="", encoding="utf-8") as file:
        for line, text in enumerate(file, 1):
            if text.startswith("#") or not text.strip():
                continue
            cells = next(csv.reader([text.rstrip("\r\n")]))
            if header is None:
                header = cells
                if header != table.columns:
                    fail(path, line, "the header must be " + ",".join(table.columns))
                continue
            if len(cells) != len(header):
                fail(path, line, "%d cells where %d are needed" % (len(cells), len(header)))
            row = dict(zip(header, cells))
            numbered.append((line, row, checkRow(table, path, line, row)))
    if not numbered:
        fail(path, 1, "no rows")
    checkUnique(path, table, numbered)
    if table is not MODELS:
        numbered.sort(key=lambda item: ([item[1][column] for column in table.key], item[2]))
    return table, [row for _, row, _ in numbered]


def literal(text):
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')


def renderStruct(table):
    members = "".join("  std::string_view %s;\n" % column for column in table.columns)
    return "struct %s {\n%s};\n" % (table.struct, members)


def renderRows(table, rows):
    lines = ["    {%s},\n" % ", ".join(literal(row[column]) for column in table.columns) for row in rows]
    return "inline constexpr %s %s[] = {\n%s};\n" % (table.struct, table.array, "".join(lines))


def render(paths):
    parts = ["// Generated by embed.py from the model tables; do not edit.\n#pragma once\n\n",
             "#include <string_view>\n\n", "namespace devicetidy::models::tables {\n"]
    tables = {}
    for path in paths:
        table, rows = readTable(path)
        tables.setdefault(table, []).extend(rows)
    for table, rows in tables.items():
        parts += ["\n", renderStruct(table), "\n", renderRows(table, rows)]
    parts.append("\n} // namespace devicetidy::models::tables\n")
    return "".join(parts)


def main():
    if len(sys.argv) < 3:
        sys.exit("usage: embed.py OUTPUT.inc CSV...")
    text = render(sys.argv[2:])
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
