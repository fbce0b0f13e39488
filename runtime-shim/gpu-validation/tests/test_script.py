#!/usr/bin/env python3
"""scripts/gpu-validate.sh, with a CMake and a Python that only write down how they were called."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "scripts/gpu-validate.sh"
# Configuring writes the cache that the test wants.
CMAKE = """#!/bin/sh
echo "$@" >> "$CALLS"
while [ $# -gt 1 ]; do
  if [ "$1" = -B ]; then mkdir -p "$2"; printf '%s\\n' "$CACHE" > "$2/CMakeCache.txt"; fi
  shift
done
"""
CACHE = "RUNTIME_SHIM_HAS_DEVICE_RUN:INTERNAL=ON\nDEVICE_SHIM_WITHOUT_NCCL:INTERNAL="


class Script(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.tool("cmake", CMAKE)
        self.tool("python3", '#!/bin/sh\necho python3 "$@" >> "$CALLS"\n')
        self.tool("nvidia-smi", "#!/bin/sh\necho 'GPU 0: made up'\n")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def tool(self, name, text):
        path = self.folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def torch(self, name, *libraries):
        for library in libraries:
            path = self.folder / name / "lib" / library
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        return self.folder / name

    def run_script(self, *arguments, cache=CACHE):
        calls = self.folder / "calls"
        calls.write_text("", encoding="utf-8")
        env = {**os.environ, "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin", "CALLS": str(calls), "CACHE": cache}
        run = subprocess.run(["bash", SCRIPT, "--out", self.folder / "out", *arguments], env=env, text=True,
                             capture_output=True, check=False)
        return run, calls.read_text(encoding="utf-8")

    def test_each_torch_is_named(self):
        # Also /usr: the folder may have been configured for another one.
        for torch in (self.torch("torch", "libtorch_cpu.so"), pathlib.Path("/usr")):
            run, calls = self.run_script("--virtual", "2", "--torch", str(torch))
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertIn(f"-DTORCH_ROOT={torch}\n", calls)

    def test_device_run_is_built_where_it_can_be(self):
        torch = self.torch("torch", "libtorch_cuda.so")
        self.assertIn("--target device-run\n", self.run_script("--torch", torch)[1])
        run, calls = self.run_script("--torch", torch, cache=CACHE.replace("=ON", "=OFF") + "\nfmt_DIR:PATH=/usr/lib")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("device-run", calls)
        self.assertIn("validate.py", calls)

    def test_without_nccl(self):
        torch = self.torch("torch", "libtorch_cuda.so")
        run, calls = self.run_script("--torch", torch, cache=CACHE + "there is no nv/target (package nvidia-cuda-cccl).")
        self.assertEqual(run.returncode, 2)
        self.assertIn("NCCL cannot be compiled in: there is no nv/target (package nvidia-cuda-cccl).", run.stderr)
        self.assertNotIn("--build", calls)

    def test_help_names_the_default(self):
        text = subprocess.run(["bash", SCRIPT, "--help"], text=True, capture_output=True, check=True).stdout
        self.assertIn("build-gpu-validation/", text)
        self.assertIn("build-gpu-validation", SCRIPT.read_text(encoding="utf-8").split("set -euo")[1])


if __name__ == "__main__":
    unittest.main()
