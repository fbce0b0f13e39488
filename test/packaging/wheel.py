#!/usr/bin/env python3
"""Makes the wheel of device-run, installs it in a fresh virtual environment and runs a script on virtual GPUs.

wheel.py --torch-python PYTHON     PYTHON has the PyTorch for which the wheel is made
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCES = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = """\
import torch

x = torch.ones(3, device="cuda:1")
print("cards:", torch.cuda.device_count(), x.sum().item())
y = torch.randn(3)
z = x + y
"""
EXPECTED = (
    "cards: 2 3.0",
    "in aten::add at train.py:6",
    "created by aten::ones at train.py:3",
    "created by aten::randn at train.py:5",
)


def run(*command, **options):
    done = subprocess.run(
        [str(each) for each in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )
    return done.returncode, done.stdout


def must(*command, **options):
    code, output = run(*command, **options)
    if code:
        sys.exit(f"FAILED: {' '.join(map(str, command))}: exit code {code}\n{output}")
    return output


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--torch-python", required=True, metavar="PYTHON")
    options = parser.parse_args()
    release = must(options.torch_python, "-c", "import torch; print(torch.__version__.split('+')[0])").strip()
    with tempfile.TemporaryDirectory(prefix="device-run-wheel-") as place:
        folder = pathlib.Path(place)
        must(SOURCES / "scripts/build-wheel.sh", options.torch_python, folder / "dist")
        (wheel,) = (folder / "dist").glob("device_run-*.whl")
        # Nothing of the build is left for the environment to find.
        must(options.torch_python, "-m", "venv", folder / "fresh")
        python = folder / "fresh/bin/python3"
        must(python, "-m", "pip", "install", "--quiet", f"torch=={release}", "numpy", wheel)
        (folder / "train.py").write_text(SCRIPT)
        environment = {"PATH": f"{folder}/fresh/bin:{os.environ['PATH']}", "HOME": place, "LC_ALL": "C.UTF-8"}
        code, output = run("device-run", "--virtual-gpus", "2", "--", "python3", "train.py", cwd=place, env=environment)
        missing = [part for part in EXPECTED if part not in output]
        if code == 0 or missing:
            sys.exit(f"FAILED: exit code {code}, not said: {missing}\n{output}")
        must(python, "-m", "pip", "uninstall", "--quiet", "--yes", "device-run")
        left = [path for path in (folder / "fresh").rglob("*virtual_cuda*") if "__pycache__" not in path.parts]
        if left or (folder / "fresh/bin/device-run").exists():
            sys.exit(f"FAILED: left after the wheel was uninstalled: {left}")
    print(f"The wheel for PyTorch {release} works.")


if __name__ == "__main__":
    main()
