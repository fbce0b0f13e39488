"""device-run --explain: the explanation alone, for a PyTorch that is left as it is.

usage: test_explain.py --device-run PATH --python INTERPRETER_WITH_TORCH --library LIBVIRTUAL_CUDA
"""

import json
import os
import pathlib
import re
import shutil

from python_runs import HERE, PythonRuns, main

PROGRAM = (HERE / "explained.py").read_text().splitlines()


def line_of(text, first=False):
    """explained.py:12, where 12 is the line with this text, or the first of several."""
    numbers = [number for number, line in enumerate(PROGRAM, 1) if line.strip() == text]
    assert numbers and (first or len(numbers) == 1), text
    return f"explained.py:{numbers[0]}"


class Explain(PythonRuns):
    def explain(self, function, **launch):
        return self.run_device_run("--explain", "--", self.options.python, "explained.py", function, **launch)

    def told(self, function):
        done = self.explain(function)
        self.assertEqual(done.returncode, 1, done.stderr)
        before, _, told = done.stderr.partition("device-run: the last device error of rank 0:")
        self.assertIn("Traceback", before)
        return told

    def tensor(self, told, name, device, made, line, first=False):
        """The explanation names where a tensor was made."""
        place = line_of(line, first)
        self.assertRegex(told, rf"{re.escape(name)} +on {device} +\[[0-9, ]+\] +{made} at {place}\n")

    def test_both_operands(self):
        told = self.told("forgotten_state")
        self.assertIn(f"in aten::lstm at {line_of('return model(x, (state, state))')}", told)
        self.assertIn(f"called from {line_of('return run(nn.LSTM(3, 3), x, state)')}", told)
        self.assertIn(f"called from {line_of('globals()[sys.argv[1]]()')}", told)
        self.tensor(told, "input", "cpu", "created by aten::randn", "x = torch.randn(4, 2, 3)")
        self.tensor(told, "hx[0]", "meta", "created by aten::zeros", 'state = torch.zeros(1, 2, 3, device="meta")')

    def test_moved_tensor(self):
        told = self.told("moved_lengths")
        self.tensor(told, "lengths", "meta", "moved by aten::to", 'lengths = lengths.to("meta")')
        line = line_of("return nn.utils.rnn.pack_padded_sequence(torch.ones(4, 2, 3), lengths)")
        self.assertIn(f"change {line}: give 'lengths' on the CPU", told)

    def test_moved_module_and_discarded_move(self):
        told = self.told("discarded_move")
        self.tensor(told, "input", "cpu", "created by aten::ones", "x = torch.ones(4, 2, 3)")
        self.tensor(told, "params[0]", "meta", "moved by aten::to", 'model = nn.LSTM(3, 3).to("meta")', first=True)

    def test_memory_of_numpy(self):
        line = 'return model(torch.from_numpy(numpy.ones((4, 2, 3), "float32")))'
        self.tensor(self.told("memory_of_numpy"), "input", "cpu", "created by torch::from_blob", line)

    def test_storages_that_are_freed(self):
        told = self.told("many_tensors")
        self.tensor(told, "hx[0]", "meta", "created by aten::zeros", 'kept = torch.zeros(1, 2, 3, device="meta")')
        line = "return run(nn.LSTM(3, 3), torch.ones(4, 2, 3), kept)"
        self.tensor(told, "input", "cpu", "created by aten::ones", line)

    def test_memory_is_not_held(self):
        megabytes = int(self.explain("large_tensors").stdout)
        self.assertLess(megabytes, 1000)  # the tensors have 2000 together

    def test_loaded_tensor(self):
        self.tensor(self.told("loaded_tensor"), "hx[0]", "cpu", "created by aten::set_", "state = torch.load(file)")

    def test_backward_pass(self):
        told = self.told("backward_pass")
        self.assertIn(f"at {line_of('y.sum().backward()')}", told)
        self.assertIn(f"the gradient of the call at {line_of('return x.clone()')}", told)
        self.assertIn("change backward() of LeavesBackward: return gradients on cpu", told)

    def test_program_goes_on_with_its_own_devices(self):
        plain = self.run_device_run("--", self.options.python, "explained.py", "caught")
        done = self.explain("caught")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, plain.stdout, ""))

    def test_findings(self):
        line = int(line_of("return model(x)").split(":")[1])
        place = {"artifactLocation": {"uri": str(HERE / "explained.py")}, "region": {"startLine": line}}
        finding = {
            "ruleId": "device-mixed-op",
            "message": {"text": "mixed"},
            "locations": [{"physicalLocation": place}],
        }
        report = self.write("report.sarif", json.dumps({"version": "2.1.0", "runs": [{"results": [finding]}]}))
        command = ["--explain", "--findings", report, "--", self.options.python, "explained.py", "discarded_move"]
        done = self.run_device_run(*command)
        self.assertIn("confirmed", done.stdout + done.stderr)

    def test_torch_of_another_release(self):
        library = pathlib.Path(self.options.library)
        shutil.copy(library, self.folder)
        shutil.copytree(library.parent / "virtual_cuda_python", self.folder / "virtual_cuda_python")
        environment = {**os.environ, "DEVICE_TIDY_VIRTUAL_CUDA": str(self.folder / library.name)}
        done = self.explain("caught", environment=environment)
        self.assertEqual(done.returncode, 1)
        text = "ImportError: device-run --explain: .*the libraries for --explain in .* are for none; build them"
        self.assertRegex(done.stderr, text)

    def test_not_with_virtual_gpus(self):
        done = self.run_python("-c", "", launcher=["--explain"])
        self.assertEqual(done.returncode, 2)
        self.assertIn("--explain is for real GPUs", done.stderr)


if __name__ == "__main__":
    main()
