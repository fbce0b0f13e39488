"""The functions of labelled.py: each raises on the line that its comment names, or runs. Run on 2 virtual GPUs."""

import inspect
import traceback
import unittest

import torch

import labelled


class Labels(unittest.TestCase):
    def tearDown(self):
        torch.cuda.set_device(0)

    def expected(self, function):
        lines, first = inspect.getsourcelines(function)
        return [number for number, line in enumerate(lines, first) if line.endswith("# raises\n")]

    def raised(self, function):
        try:
            function()
        except unittest.SkipTest:
            raise
        except Exception as error:  # noqa: BLE001
            frames = [each for each in traceback.extract_tb(error.__traceback__) if each.filename == labelled.__file__]
            return [frames[-1].lineno]
        return []


def add(name, function):
    def test(self):
        self.assertEqual(self.raised(function), self.expected(function))

    setattr(Labels, "test_" + name, test)


for name, function in inspect.getmembers(labelled, inspect.isfunction):
    if function.__module__ == labelled.__name__:
        add(name, function)

if __name__ == "__main__":
    unittest.main()
