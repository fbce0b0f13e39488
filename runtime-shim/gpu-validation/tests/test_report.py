#!/usr/bin/env python3
"""What a validation is judged by, on results that are made up here."""

import copy
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import report  # pylint: disable=wrong-import-position
import validate  # pylint: disable=wrong-import-position

GOOD = {
    "machine": {"kind": "real", "date": "2026-01-01", "gpus": [{"name": "GPU"}], "driver": "1", "libtorch": "2",
                "nccl": "2", "system": "Linux"},
    "quick": False, "python_torch": True, "build_seconds": 900, "device_shim_build_seconds": 479, "run_seconds": 1,
    "systems": [{"system": "glm4-loss", "variant": "shim", "ranks": 1, "devices": "cuda:0,cpu", "ok": True,
                 "expected": "trains", "observed": "trains"}],
    "rule_table": {"finished": True, "compared": {"family": 3}, "disagreements": [], "other_errors": [],
                   "crashes": [], "operators": 3},
    "training": [{"check": "stage 3", "ok": True}],
    "measurements": [{"metric": "ddp_step_ms", "value": value, "ranks": 2, "by": by, "backend": "nccl"}
                     for by, value in (("device_shim", 10.4), ("pytorch", 10.0))],
}


class Failures(unittest.TestCase):
    def failures(self, change=lambda result: None):
        result = copy.deepcopy(GOOD)
        change(result)
        found = report.failures(result)
        for failure in found:
            self.assertIn(failure, report.to_markdown(result, found))
        return found

    def test_all_as_expected(self):
        self.assertEqual(self.failures(), [])

    def test_slow_step(self):
        def slow(result):
            result["measurements"][0]["value"] = 10.6
        self.assertEqual(self.failures(slow), ["a step with 2 ranks takes 10.6 ms, 1.060 times PyTorch's 10 ms; "
                                               "at most 1.05 times is expected"])

        def slow_and_small(result):
            slow(result)
            result["quick"] = True
        self.assertEqual(self.failures(slow_and_small), [])

    def test_slow_build(self):
        def slow(result):
            result["device_shim_build_seconds"] = 480
        self.assertEqual(self.failures(slow), ["device_shim was built in 480 s, not in less than 480 s"])

        def slow_and_virtual(result):
            slow(result)
            result["machine"]["kind"] = "virtual"
        self.assertEqual(self.failures(slow_and_virtual), [])

    def test_what_is_left_out(self):
        def without_json(result):
            result["systems"] += [{**result["systems"][0], "system": "qwen-lora", "variant": variant, "ok": None,
                                   "observed": "not built"} for variant in ("broken", "fixed")]
        self.assertEqual(self.failures(without_json), ["the system qwen-lora was left out: its programs were not "
                                                       "built (qwen-lora needs nlohmann-json)"])

        def without_pytorch(result):
            result["python_torch"] = False
            del result["measurements"][1]
        self.assertEqual(len(self.failures(without_pytorch)), 1)


class Systems(unittest.TestCase):
    def test_one_gpu(self):
        # Programs of one process have a second device, or nothing would be spread over devices.
        for system, variant, ranks, devices, _ in validate.system_runs(1):
            if ranks == 1:
                self.assertIn("cpu", devices.split(","), (system, variant))
        self.assertEqual({devices for *_, devices, _ in validate.system_runs(2)}, {""})


if __name__ == "__main__":
    unittest.main()
