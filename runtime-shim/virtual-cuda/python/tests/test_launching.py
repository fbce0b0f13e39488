"""device-run with Python programs: what it prints, and what it leaves alone.

usage: test_launching.py --device-run PATH --python INTERPRETER_WITH_TORCH --library LIBVIRTUAL_CUDA
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
options = None


class Launching(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_python(self, *arguments, gpus=2, launcher=(), environment=None, python=None):
        command = [
            options.device_run,
            "--virtual-gpus",
            str(gpus),
            *launcher,
            "--",
            python or options.python,
            *map(str, arguments),
        ]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=240, cwd=HERE, env=environment, check=False
        )

    def output_of(self, code, *flags, **launch):
        done = self.run_python(*flags, "-c", code, **launch)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    # What a failing program is told.

    def test_explanation_names_python_lines(self):
        done = self.run_python("failing.py")
        self.assertEqual(done.returncode, 1)
        told = done.stderr
        self.assertLess(told.index("Traceback"), told.index("device-run: the last device error of rank 0:"))
        for line in (
            "in aten::nll_loss_forward at failing.py:19",
            "loss = nn.functional.cross_entropy(model(inputs), labels)",
            "called from failing.py:25",
            "created by aten::randint at failing.py:23",
            "change failing.py:23: create it on cuda:0",
            "or failing.py:19: move 'target' to cuda:0 ('.to(self.device)')",
        ):
            self.assertIn(line, told)
        self.assertRegex(told, r"self +on cuda:0 +\[8, 3\] +created by aten::cross_entropy_loss at failing.py:19")

    def test_caught_error_is_told_as_such(self):
        told = self.run_python("failing.py", "caught").stderr
        self.assertIn("rank 0 ended for another reason: something else", told)
        self.assertIn("before, it caught a device error and went on", told)

    def test_trace_has_python_lines(self):
        trace = self.folder / "trace.json"
        self.run_python("failing.py", launcher=["--trace", str(trace)])
        self.assertIn("failing.py:19", trace.read_text())

    # Memory.

    def test_memory_limit(self):
        code = (
            "import torch; print(torch.cuda.mem_get_info(1), torch.cuda.get_device_properties(0).total_memory)\n"
            "try:\n    torch.empty(65 << 20, dtype=torch.uint8, device='cuda')\n"
            "except torch.cuda.OutOfMemoryError as error:\n    print(str(error)[:47])"
        )
        self.assertEqual(
            self.output_of(code, launcher=["--gpu-memory", "64MiB"]),
            "(67108864, 67108864) 67108864\nCUDA out of memory. Tried to allocate 65.00 MiB",
        )

    def test_memory_on_the_device_of_another_rank(self):
        program = self.write(
            "load.py",
            "import os, torch\n"
            "rank = int(os.environ['LOCAL_RANK'])\n"
            "own = torch.ones(1 << 10, device=rank)\n"
            "state = torch.ones(1 << 20, device='cuda:0')\n",
        )
        done = self.run_python(program, launcher=["-n", "2"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("rank 1 allocated 4.0 MiB on cuda:0, the device of rank 0, most at ", done.stderr)
        self.assertIn("load.py:4", done.stderr)
        self.assertNotIn("rank 0 allocated", done.stderr)

    # Ranks.

    def test_collectives(self):
        done = self.run_python("collectives.py", launcher=["-n", "2"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("rank 1 is done", done.stdout)

    def test_two_ranks_on_one_device(self):
        done = self.run_python("collectives.py", "one", launcher=["-n", "2"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 0", done.stderr)

    def test_torchrun(self):
        # PyTorch 1.13's fails in Python 3.11, whatever it starts.
        script = self.write("nothing.py", "")
        own = [options.python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "1", script]
        if subprocess.run(own, capture_output=True, timeout=240, check=False).returncode != 0:
            self.skipTest("this PyTorch's own torchrun fails")
        done = self.run_python("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "collectives.py")
        self.assertEqual(done.returncode, 0, done.stderr)

    # Every way to start Python; nothing of the user's is in the way, or out of it.

    def test_isolated_interpreter(self):
        for flags in ([], ["-I"], ["-E", "-s"]):
            self.assertEqual(self.output_of("import torch; print(torch.cuda.device_count())", *flags), "2")

    def test_child_processes(self):
        code = (
            "import subprocess, sys\n"
            "print(subprocess.check_output([sys.executable, '-c', 'import torch; print(torch.cuda.device_count())'], text=True))"
        )
        self.assertEqual(self.output_of(code), "2")

    def test_spawned_processes(self):
        program = self.write(
            "spawn.py",
            "import torch\nimport torch.multiprocessing as m\n"
            "def work(i): print(f'{torch.ones(1, device=i).device} ', end='', flush=True)\n"
            "if __name__ == '__main__': m.spawn(work, nprocs=2)\n",
        )
        done = self.run_python(program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.split()), ["cuda:0", "cuda:1"])

    def test_tensors_of_two_processes(self):
        program = self.write(
            "share.py",
            "import torch\nimport torch.multiprocessing as m\n"
            "def work(inbox, outbox):\n"
            "    first, second = inbox.get(), inbox.get()\n"
            "    first += 1\n"
            "    outbox.put((first.device, second.sum().item(), torch.ones(2, device='cuda:1')))\n"
            "    inbox.get()\n"
            "if __name__ == '__main__':\n"
            "    context = m.get_context('spawn')\n"
            "    inbox, outbox = context.Queue(), context.Queue()\n"
            "    child = context.Process(target=work, args=(inbox, outbox))\n"
            "    child.start()\n"
            "    tensor = torch.zeros(3, device='cuda:1')\n"
            "    inbox.put(tensor)\n"
            "    inbox.put(tensor[1:])\n"
            "    device, total, back = outbox.get()\n"
            "    print(device, total, tensor.tolist(), back.tolist(), (tensor + 1).device)\n"
            "    inbox.put(None)\n"
            "    child.join()\n",
        )
        before = set(pathlib.Path("/dev/shm").iterdir())
        done = self.run_python(program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.strip(), "cuda:1 2.0 [1.0, 1.0, 1.0] [1.0, 1.0] cuda:1")
        left = [each for each in set(pathlib.Path("/dev/shm").iterdir()) - before if each.name.startswith("torch_")]
        self.assertEqual(left, [])

    def test_sitecustomize_of_the_user(self):
        self.write("sitecustomize.py", "import sys; sys.users_own = True")
        code = "import sys, torch; print(sys.users_own, torch.cuda.is_available(), sys.path[1])"
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        self.assertEqual(self.output_of(code, environment=environment), f"True True {self.folder}")

    def test_interpreter_without_torch(self):
        code = "import sys\ntry:\n    import torch\nexcept ImportError as error:\n    print(error.name, error)"
        done = self.run_python("-I", "-S", "-c", code)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "torch No module named 'torch'"), done.stderr)
        code = "import sys; print(sorted(each for each in sys.modules if 'virtual' in each), len(sys.meta_path))"
        plain = subprocess.run([options.python, "-c", code], capture_output=True, text=True, check=True).stdout
        self.assertEqual(self.output_of(code), plain.strip())

    # What cannot work says why.

    def test_cuda_build(self):
        self.write("torch/__init__.py", "raise AssertionError('this must not run')")
        self.write("torch/lib/libtorch_cuda.so", "")
        done = self.run_python("-c", f"import sys; sys.path.insert(0, {str(self.folder)!r}); import torch")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(
            done.stderr, "ImportError: virtual GPUs need a CPU build of PyTorch, and .* is a CUDA build; .*pip install"
        )

    def copy_of_library(self, *parts):
        library = pathlib.Path(options.library)
        shutil.copy(library, self.folder)
        for part in parts:
            (shutil.copytree if (library.parent / part).is_dir() else shutil.copy)(
                library.parent / part, self.folder / part
            )
        return {**os.environ, "DEVICE_TIDY_VIRTUAL_CUDA": str(self.folder / library.name)}

    def test_torch_of_another_release(self):
        environment = self.copy_of_library("virtual_cuda_python")
        (self.folder / "libvirtual_cuda-0.9.so").touch()
        done = self.run_python("-c", "import torch", environment=environment)
        self.assertEqual(done.returncode, 1)
        self.assertTrue(
            re.search(
                r"ImportError: virtual GPUs: this process uses LibTorch \d+\.\d+\.\d+ \(.*\), and the virtual GPUs in "
                r".* are for 0\.9; build them for it \(cmake .*-DTORCH_ROOT=",
                done.stderr,
            ),
            done.stderr,
        )

    def test_without_the_python_half(self):
        done = self.run_python("-c", "import torch", environment=self.copy_of_library())
        self.assertEqual(done.returncode, 1)
        self.assertIn("ImportError: virtual GPUs for Python are not in", done.stderr)

    def test_missing_script(self):
        done = self.run_python("no_such_script.py")
        self.assertEqual(done.returncode, 2)
        self.assertIn("No such file", done.stderr)


def main():
    global options
    parser = argparse.ArgumentParser()
    for name in ("--device-run", "--python", "--library"):
        parser.add_argument(name, required=True)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
