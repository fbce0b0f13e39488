#!/usr/bin/env python3
"""Are the model tables sound? Derives aten_ops.csv anew and compares, runs embed.py over every table, breaks
each rule of embed.py once to see it complain with file and line, and holds the tables against rules known
from LibTorch itself."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODELS = os.path.join(ROOT, "analyzer", "models")
DATA = os.path.join(MODELS, "data")
EMBED = os.path.join(MODELS, "embed.py")
sys.dont_write_bytecode = True
sys.path.insert(0, MODELS)

import derive_aten_ops  # noqa: E402  (needs the path above)
import embed  # noqa: E402

ATEN = "/usr/include/ATen"
ATEN_HEADERS = ("core/TensorBody.h", "core/TensorBase.h")
# Members and functions that the headers of only some versions have.
VERSIONED_NAMES = {"swap_tensors", "const_data_ptr", "mutable_data_ptr", "is_ort"}


def runEmbed(*paths):
    """(exit status, generated text, stderr) of embed.py over `paths`."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "Tables.inc")
        command = [sys.executable, EMBED, out, *paths]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        text = ""
        if os.path.exists(out):
            with open(out, encoding="utf-8") as file:
                text = file.read()
        return done.returncode, text, done.stderr


def rowsOf(name):
    """{key: [row, ...]} of a table."""
    table, rows = embed.readTable(os.path.join(DATA, name))
    result = {}
    for row in rows:
        result.setdefault(row[table.key[0]], []).append(row)
    return result


class DerivedTable(unittest.TestCase):
    def testIsUpToDate(self):
        with open(os.path.join(DATA, "aten_ops.csv"), encoding="utf-8") as file:
            written = file.read()
        self.assertEqual(written, derive_aten_ops.render(DATA), "run analyzer/models/derive_aten_ops.py")

    @unittest.skipUnless(os.path.isdir(ATEN), "LibTorch headers are not installed")
    def testOverridesNameRealOperators(self):
        """A name misspelt in the overrides would make a row nobody ever looks up."""
        facts = derive_aten_ops.readFacts(os.path.join(DATA, "op_device_rules.csv"))
        known = {name for operators in facts.values() for name in operators}
        body = ""
        for header in ATEN_HEADERS:
            with open(os.path.join(ATEN, header), encoding="utf-8") as file:
                body += file.read()
        for name in derive_aten_ops.readOverrides(os.path.join(DATA, "aten_overrides.csv")):
            declared = name in known or name in VERSIONED_NAMES or name.startswith(("operator", "_"))
            declared = declared or os.path.exists(os.path.join(ATEN, "ops", name + ".h"))
            declared = declared or re.search(r"\b%s\(" % re.escape(name), body)
            with self.subTest(name):
                self.assertTrue(declared)


class Embedding(unittest.TestCase):
    def testAllTables(self):
        status, text, errors = runEmbed(*[os.path.join(DATA, name) for name in embed.TABLES])
        self.assertEqual((status, errors), (0, ""))
        for table in embed.TABLES.values():
            self.assertIn("inline constexpr %s %s[]" % (table.struct, table.array), text)

    def testOutputIsSortedAndStable(self):
        path = os.path.join(DATA, "aten_ops.csv")
        first, second = runEmbed(path)[1], runEmbed(path)[1]
        self.assertEqual(first, second)
        names = [line.split('"')[1] for line in first.splitlines() if line.startswith('    {"')]
        self.assertEqual(names, sorted(names))
        self.assertGreater(len(names), 1000)

    def broken(self, name, change, message):
        """embed.py must refuse table `name` after `change(lines)` and say `message` with file and line."""
        with open(os.path.join(DATA, name), encoding="utf-8") as file:
            lines = file.read().splitlines()
        line = change(lines)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            status, text, errors = runEmbed(path)
        self.assertEqual((status, text), (1, ""))
        self.assertIn("%s:%d: " % (path, line), errors)
        self.assertIn(message, errors)

    def testRefusesDuplicate(self):
        def repeat(lines):
            lines.append(lines[-1])
            return len(lines)
        for name in embed.TABLES:
            self.broken(name, repeat, "duplicate")

    def testRefusesOverlappingVersions(self):
        def overlap(lines):
            lines.append("where,where,common,unknown,no,no,1.10,1.12,somewhere")
            return len(lines)
        self.broken("aten_ops.csv", overlap, "duplicate where")

    def testRefusesUnknownWords(self):
        def append(row):
            def change(lines):
                lines.append(row)
                return len(lines)
            return change
        self.broken("aten_ops.csv", append("zzz,srict,self,no,no,no,,,x"), "unknown rule 'srict'")
        self.broken("aten_ops.csv", append("zzz,strict,self,maybe,no,no,,,x"), "unknown rank0 'maybe'")
        self.broken("aten_ops.csv", append("zzz,strict,self,no,no,no,two,,x"), "bad version 'two'")
        self.broken("aten_ops.csv", append("zzz,strict,self,no,no,no,,,"), "missing source")
        self.broken("aten_ops.csv", append("zzz,strict,self,no,no,no,,"), "8 cells where 9 are needed")
        self.broken("nn_modules.csv", append("Zzz,maybe,strict,self,no,no,,x"), "unknown params 'maybe'")
        self.broken("models_torch.csv", append("torch::zzz,,x"), "empty model")
        self.broken("distributed.csv", append("zzz,fly,x"), "unknown role 'fly'")
        self.broken("library_types.csv", append("zzz,fly,x"), "unknown kind 'fly'")
        self.broken("spelling.csv", append("zzz,fly,,x"), "unknown kind 'fly'")

    def testRefusesBadHeader(self):
        def rename(lines):
            number = next(i for i, line in enumerate(lines) if not line.startswith("#"))
            lines[number] = lines[number].replace("source", "origin")
            return number + 1
        for name in embed.TABLES:
            self.broken(name, rename, "the header must be")


class KnownRules(unittest.TestCase):
    """Rules read in LibTorch's kernels or seen at run time; the tables may never lose them."""

    def rule(self, op, torch=(2, 0)):
        for row in rowsOf("aten_ops.csv").get(op, []):
            since = embed.version(row["since"], (0,), "aten_ops.csv", 0)
            until = embed.version(row["until"], (99,), "aten_ops.csv", 0)
            if since <= torch <= until:
                return row["rule"]
        return None

    def testStrict(self):
        for op in ("mm", "matmul", "linear", "embedding", "cat", "stack", "conv2d", "layer_norm", "nll_loss",
                   "gather", "cross_entropy_loss", "scatter_", "index_select", "addcmul_", "huber_loss",
                   "hypot", "cat_out", "mse_loss", "smooth_l1_loss"):
            self.assertEqual(self.rule(op), "strict", op)

    def testIterator(self):
        for op in ("add", "mul_", "operator+", "operator*=", "eq", "l1_loss", "pow", "add_out", "maximum"):
            self.assertEqual(self.rule(op), "iterator", op)

    def testVersions(self):
        self.assertEqual(self.rule("where", (1, 13)), "strict")
        self.assertEqual(self.rule("where", (2, 6)), "where")
        self.assertEqual(self.rule("lerp", (1, 13)), "strict")
        self.assertEqual(self.rule("lerp_", (2, 6)), "third")

    def testNeverFlagged(self):
        for op in ("copy_", "fill_", "ctc_loss", "index", "index_put_", "expand_as", "set_data",
                   "pad_sequence", "bernoulli_"):
            self.assertNotIn(self.rule(op), ("strict", "iterator", None), op)

    def testLosses(self):
        functional = rowsOf("nn_functional.csv")
        for op in ("cross_entropy", "mse_loss", "nll_loss", "binary_cross_entropy"):
            self.assertEqual([row["loss"] for row in functional[op]], ["yes"], op)
        modules = rowsOf("nn_modules.csv")
        self.assertEqual(modules["CrossEntropyLoss"][0]["buffers"], "weight")
        self.assertEqual(modules["Linear"][0]["params"], "yes")

    def testApiNamesOperatorsThatExist(self):
        ops = rowsOf("aten_ops.csv")
        for name, rows in rowsOf("models_torch.csv").items():
            for row in rows:
                if row["model"].startswith("aten(") and not name.endswith("*"):
                    self.assertIn(row["model"][len("aten("):-1] or name.rpartition("::")[2], ops, name)


if __name__ == "__main__":
    unittest.main()
