"""device-run, libvirtual_cuda and a real LibTorch program together."""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).with_name("training_program.cpp")
options = argparse.Namespace()


def line_of(comment):
    """The line of the training program that ends in this comment."""
    for number, line in enumerate(SOURCE.read_text(encoding="utf-8").splitlines(), 1):
        if line.endswith(f"// {comment}"):
            return number
    raise AssertionError(comment)


def run(*arguments, mode="", gpus="--virtual-gpus=2"):
    env = {name: value for name, value in os.environ.items()
           if name not in ("RANK", "WORLD_SIZE", "LD_PRELOAD", "CUDA_VISIBLE_DEVICES")}
    env["DEVICE_TIDY_VIRTUAL_CUDA"] = options.virtual_cuda
    return subprocess.run([options.device_run, gpus, *arguments, "--", options.program, mode],
                          env=env, capture_output=True, text=True, timeout=120, check=False, cwd="/")


def result(rule, comment):
    place = {"artifactLocation": {"uri": SOURCE.as_uri()}, "region": {"startLine": line_of(comment)}}
    return {"ruleId": rule, "message": {"text": "m"}, "locations": [{"physicalLocation": place}]}


class Training(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def test_trains(self):
        done = run("-n", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len([line for line in done.stdout.splitlines() if "loss" in line]), 2)

    def test_error_is_explained(self):
        done = run(mode="forgotten")
        self.assertEqual(done.returncode, 3)
        self.assertIn("Expected all tensors to be on the same device", done.stderr)
        for words in (f"at {SOURCE}:{line_of('the loss')}", f"called from {SOURCE}:{line_of('the step')}",
                      f"created by aten::randint at {SOURCE}:{line_of('the labels')}",
                      f"change {SOURCE}:{line_of('the labels')}: create it on cuda:0"):
            self.assertIn(words, done.stderr)

    def test_error_of_the_backward_pass_is_explained(self):
        done = run(mode="too early")
        self.assertEqual(done.returncode, 3, done.stderr)
        for words in ("in the backward pass, in MulBackward0: the gradient of the call at "
                      f"{SOURCE}:{line_of('the forward pass')}", f"called from {SOURCE}:{line_of('the step')}",
                      f"at {SOURCE}:{line_of('the move of what backward() needs')}"):
            self.assertIn(words, done.stderr)
        self.assertNotIn("-g", done.stderr)

    def test_error_without_virtual_gpus_is_explained(self):
        done = run(mode="meta", gpus="--explain")
        self.assertEqual(done.returncode, 3, done.stderr)
        report = done.stderr.split("device-run:")[-1]
        self.assertIn(f"in aten::sub at {SOURCE}:{line_of('the difference')}", report)
        for tensor, made, comment in (("meta", "moved by aten::to", "the weights"),
                                      ("cpu", "created by aten::rand", "the mean")):
            self.assertRegex(report, rf"on {tensor} +\[3\] +{made} at {SOURCE}:{line_of(comment)}\n")

    def test_device_that_does_not_exist(self):
        done = run(mode="ordinal")
        self.assertEqual(done.returncode, 3)
        self.assertIn("invalid device ordinal", done.stderr)
        report = done.stderr.split("device-run:")[-1]
        self.assertIn("the program asked for cuda:2, but there are 2 virtual devices", report)

    def test_error_that_was_caught(self):
        done = run(mode="caught")
        self.assertEqual(done.returncode, 134, done.stderr)
        self.assertIn("ended for another reason: no such file: data.bin", done.stderr)
        self.assertIn("it caught a device error and went on", done.stderr)
        self.assertIn(f"at {SOURCE}:{line_of('the caught error')}", done.stderr)

    def test_too_little_memory(self):
        done = run("--gpu-memory=1K")
        self.assertEqual(done.returncode, 3)
        self.assertIn("CUDA out of memory", done.stderr)

    def test_memory_is_reported(self):
        done = run("-n", "2", "--gpu-memory=1G")
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("rank 0: at most ", "rank 1: at most ", " of 1.0 GiB on cuda:0",
                      "2 ranks shared cuda:0: together"):
            self.assertIn(words, done.stderr)
        self.assertNotIn("at most", run().stderr)

    def test_discarded_move_is_confirmed(self):
        file = self.folder / "report.sarif"
        for mode, expected in (("discarded", "confirmed"), ("forgotten", "notReached")):
            file.write_text(json.dumps({"version": "2.1.0", "runs": [
                {"results": [result("device-discarded-move", "the move without effect")]}]}))
            done = run("--findings", str(file), mode=mode)
            judged = json.loads(file.read_text())["runs"][0]["results"][0]["properties"]["deviceRun"]["status"]
            self.assertEqual(judged, expected, done.stderr)

    def test_findings(self):
        report = {"version": "2.1.0", "runs": [{"results": [
            result("device-loss-input", "the loss"), result("device-mixed-op", "reads the loss"),
            result("device-mixed-op", "the step")]}]}
        for mode, expected in (("forgotten", ["confirmed", "notReached", "notReached"]),
                               ("", ["reached", "reached", "reached"])):
            file = self.folder / "report.sarif"
            file.write_text(json.dumps(report))
            done = run("--findings", str(file), mode=mode)
            results = json.loads(file.read_text())["runs"][0]["results"]
            self.assertEqual([r["properties"]["deviceRun"]["status"] for r in results], expected, done.stderr)

    def test_trace(self):
        file = self.folder / "trace.json"
        done = run("--trace", str(file))
        self.assertEqual(done.returncode, 0, done.stderr)
        events = json.loads(file.read_text())["traceEvents"]
        names = {event["name"] for event in events if event.get("cat") == "operator"}
        self.assertIn("aten::addmm", names)
        threads = [event["args"]["name"] for event in events if event["name"] == "thread_name"]
        self.assertEqual(threads, ["main", "backward pass"])
        copies = [event["args"] for event in events if event.get("cat") == "copy"]
        labels = [c for c in copies if c.get("at", "").startswith(f"{SOURCE}:{line_of('the move of the labels')} ")]
        self.assertEqual([(c["from"], c["to"], c["bytes"]) for c in labels], [("cpu", "cuda:0", 32 * 8)])
        self.assertIn(f"in 20 copies at {SOURCE}:{line_of('reads the loss')}", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    for name in ("--device-run", "--program", "--virtual-cuda"):
        parser.add_argument(name, required=True, type=os.path.abspath)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
