"""device-run with Python programs: what it prints, and what it leaves alone.

usage: test_launching.py --device-run PATH --python INTERPRETER_WITH_TORCH --library LIBVIRTUAL_CUDA
"""

import os
import pathlib
import re
import shutil
import subprocess

from python_runs import PythonRuns, main


def shared_memory():
    return {each for each in pathlib.Path("/dev/shm").iterdir() if each.name.startswith("torch_")}


class Launching(PythonRuns):
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
            "or failing.py:19: move 'target' to cuda:0, where 'self' is",
        ):
            self.assertIn(line, told)
        self.assertRegex(told, r"self +on cuda:0 +\[8, 3\] +created by aten::cross_entropy_loss at failing.py:19")

    def test_caught_error_is_told_as_such(self):
        told = self.run_python("failing.py", "caught").stderr
        self.assertIn("rank 0 ended for another reason: something else", told)
        self.assertIn("before, it caught a device error and went on", told)

    def test_error_in_a_rank_of_another_launcher(self):
        launcher = self.write(
            "launcher.py",
            "import os, subprocess, sys\n"
            "rank = {'RANK': '1', 'LOCAL_RANK': '1', 'WORLD_SIZE': '2'}\n"
            "sys.exit(subprocess.run([sys.executable, 'failing.py'], env={**os.environ, **rank}).returncode)\n",
        )
        told = self.run_python(launcher).stderr
        self.assertIn("device-run: the last device error of rank 1:", told)
        self.assertIn("in aten::nll_loss_forward at failing.py:19", told)

    def test_error_in_a_spawned_process(self):
        program = self.write(
            "spawn.py",
            "import torch\nimport torch.multiprocessing as m\n"
            "def work(i):\n    torch.ones(1, device=1) + torch.ones(2)\n"
            "if __name__ == '__main__': m.spawn(work, nprocs=1)\n",
        )
        told = self.run_python(program).stderr
        self.assertIn(f"in aten::add at {program}:4", told)
        self.assertNotIn("called from", told)

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
        own = [self.options.python, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "1", script]
        if subprocess.run(own, capture_output=True, timeout=240, check=False).returncode != 0:
            self.skipTest("this PyTorch's own torchrun fails")
        done = self.run_python("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "collectives.py")
        self.assertEqual(done.returncode, 0, done.stderr)

    # Devices that the program hides from itself.

    def test_visible_devices(self):
        print_devices = "print(torch.cuda.is_available(), torch.cuda.device_count())"
        setting = "os.environ['CUDA_VISIBLE_DEVICES'] = {}; "
        for order in (setting + "import torch; ", "import torch; " + setting):
            for ids, told in (("''", "False 0"), ("'-1'", "False 0"), ("'1'", "True 1"), ("'1,0'", "True 2")):
                self.assertEqual(self.output_of("import os; " + order.format(ids) + print_devices), told)
        hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        self.assertEqual(self.output_of("import torch; " + print_devices, environment=hidden), "True 2")

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
        done = self.run_python(program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.strip(), "cuda:1 2.0 [1.0, 1.0, 1.0] [1.0, 1.0] cuda:1")

    def test_tensor_that_nobody_receives(self):
        program = self.write(
            "leave.py",
            "import os, sys, torch\nfrom torch.multiprocessing import reductions\n"
            "shared = reductions.reduce_tensor(torch.zeros(1 << 20, device='cuda'))\n"
            "if 'killed' in sys.argv: os.kill(os.getpid(), 9)\n",
        )
        for way, code in (("ordinary", 0), ("killed", 137)):
            before = shared_memory()
            done = self.run_python(program, way)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertEqual(shared_memory() - before, set())

    def test_tensor_is_freed_before_it_is_received(self):
        program = self.write(
            "free.py",
            "import torch\nimport torch.multiprocessing as m\n"
            "def work(inbox, outbox):\n"
            "    outbox.put('ready')\n"
            "    outbox.put([inbox.get().tolist() for _ in range(3)])\n"
            "if __name__ == '__main__':\n"
            "    context = m.get_context('spawn')\n"
            "    inbox, outbox = context.Queue(), context.Queue()\n"
            "    for i in range(3): inbox.put(torch.full((2,), i, device='cuda:1'))\n"
            "    child = context.Process(target=work, args=(inbox, outbox))\n"
            "    child.start()\n"
            "    print(outbox.get(), outbox.get())\n"
            "    child.join()\n",
        )
        done = self.run_python(program)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "ready [[0, 0], [1, 1], [2, 2]]"), done.stderr)

    def test_received_tensor_is_not_sent_on(self):
        program = self.write(
            "send_on.py",
            "import torch\nimport torch.multiprocessing as m\nfrom torch.multiprocessing import reductions\n"
            "def work(inbox, outbox):\n"
            "    tensor = inbox.get()\n"
            "    try:\n        reductions.reduce_tensor(tensor)\n"
            "    except RuntimeError as error:\n        outbox.put(str(error))\n"
            "if __name__ == '__main__':\n"
            "    context = m.get_context('spawn')\n"
            "    inbox, outbox = context.Queue(), context.Queue()\n"
            "    child = context.Process(target=work, args=(inbox, outbox))\n"
            "    child.start()\n"
            "    tensor = torch.ones(1, device='cuda')\n"
            "    inbox.put(tensor)\n"
            "    print(outbox.get())\n"
            "    child.join()\n",
        )
        self.assertIn("Attempted to send CUDA tensor received from another process", self.run_python(program).stdout)

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
        plain = subprocess.run([self.options.python, "-c", code], capture_output=True, text=True, check=True).stdout
        self.assertEqual(self.output_of(code), plain.strip())

    # What cannot work says why.

    def other_torch(self, files):
        for name, text in files.items():
            self.write(name, text)
        return self.run_python("-c", f"import sys; sys.path.insert(0, {str(self.folder)!r}); import torch")

    def test_builds_for_real_gpus(self):
        for kind, library in (("CUDA", "libtorch_cuda.so"), ("ROCm", "libtorch_hip.so")):
            done = self.other_torch(
                {
                    "torch/__init__.py": "raise AssertionError('this must not run')",
                    "torch/version.py": "__version__ = '2.13.1+cu126'",
                    f"torch/lib/{library}": "",
                }
            )
            (self.folder / "torch/lib" / library).unlink()
            self.assertEqual(done.returncode, 1)
            self.assertRegex(
                done.stderr,
                f"ImportError: virtual GPUs need a CPU build of PyTorch, and .* is a {kind} build; .*"
                "python.* -m pip install --force-reinstall torch==2.13.1 --index-url",
            )

    def test_another_module_named_torch(self):
        done = self.other_torch({"torch.py": "print('not PyTorch')"})
        self.assertEqual((done.returncode, done.stdout), (0, "not PyTorch\n"), done.stderr)

    def test_missing_torch(self):
        done = self.run_python("-I", "-S", "-c", "import torch")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(
            done.stderr,
            "No module named 'torch'\ndevice-run: /.*python.* has no PyTorch; .*pip install torch --index-url",
        )

    def test_device_that_is_not_there(self):
        done = self.run_python("-c", "import torch; torch.ones(1, device='cuda:2')")
        self.assertEqual(done.returncode, 1)
        self.assertIn("invalid device ordinal", done.stderr)
        self.assertIn("the program asked for cuda:2, but there are 2 virtual devices, cuda:0 to cuda:1", done.stderr)
        self.assertIn("--virtual-gpus 3", done.stderr)

    def copy_of_library(self, *parts):
        library = pathlib.Path(self.options.library)
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


if __name__ == "__main__":
    main()
