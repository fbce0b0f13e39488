#!/usr/bin/env python3
"""Makes the wheel of device-tidy, installs it in a fresh virtual environment and uses it there, also as a hook.

tidy_wheel.py [WHEEL]     tries WHEEL instead of making one
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCES = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = """\
import torch

x = torch.ones(3, device="cuda")
y = torch.ones(3)
for each in [x, y]:
    print(each)
z = x + y
"""
HOOK = """\
repos:
  - repo: local
    hooks:
      - id: device-tidy
        name: device-tidy
        entry: device-tidy --whole-program
        language: python
        additional_dependencies: ["{wheel}"]
        types_or: [python, jupyter]
        require_serial: true
"""


def run(*command, **options):
    done = subprocess.run(
        [str(each) for each in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options
    )
    return done.returncode, done.stdout


def must(*command, expected=0, said=(), **options):
    code, output = run(*command, **options)
    missing = [part for part in said if part not in output]
    if code != expected or missing:
        sys.exit(f"FAILED: {' '.join(map(str, command))}: exit code {code}, not said: {missing}\n{output}")
    return output


def check_needs(program):
    """What it needs of the machine is the C library."""
    allowed = ("linux-vdso", "libc.so", "libm.so", "ld-linux", "libz.so", "librt", "libdl", "libpthread")
    for line in must("ldd", program).splitlines():
        name = os.path.basename(line.split()[0])
        if not name.startswith(allowed):
            sys.exit(f"FAILED: {program} needs {line.strip()}")


def check_hook(place, wheel, environment):
    if not shutil.which("pre-commit") or not shutil.which("git"):
        print("The hook was not tried: pre-commit or git is missing.")
        return
    project = place / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    (project / ".pre-commit-config.yaml").write_text(HOOK.format(wheel=wheel))
    git = ["git", "-c", "user.name=Test", "-c", "user.email=test@example.org"]
    must(*git, "init", "--quiet", cwd=project, env=environment)
    must(*git, "add", ".", cwd=project, env=environment)
    said = ("device-tidy....", "Failed", "train.py:7:5: warning: '+' gets")
    must("pre-commit", "run", "--all-files", expected=1, said=said, cwd=project, env=environment)
    (project / "train.py").write_text(SCRIPT.replace("torch.ones(3)", "torch.ones_like(x)"))
    must("pre-commit", "run", "--all-files", said=("Passed",), cwd=project, env=environment)


def check_server(program, environment, folder):
    request = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
    shutdown = '{"jsonrpc":"2.0","id":2,"method":"shutdown"}', '{"jsonrpc":"2.0","method":"exit"}'
    messages = "".join(f"Content-Length: {len(each)}\r\n\r\n{each}" for each in (request, *shutdown))
    must(program, "--lsp", said=("hoverProvider",), input=messages, env=environment, cwd=folder)


def main():
    with tempfile.TemporaryDirectory(prefix="device-tidy-wheel-") as name:
        place = pathlib.Path(name)
        if len(sys.argv) > 1:
            wheel = pathlib.Path(sys.argv[1]).resolve()
        else:
            must(SOURCES / "scripts/build-wheel.sh", "--device-tidy", place / "dist")
            (wheel,) = (place / "dist").glob("device_tidy-*.whl")
        must(sys.executable, "-m", "venv", place / "fresh")
        python, program = place / "fresh/bin/python3", place / "fresh/bin/device-tidy"
        must(python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
        check_needs(program)
        environment = {"PATH": f"{place}/fresh/bin:{os.environ['PATH']}", "HOME": name, "LC_ALL": "C.UTF-8"}
        (place / "train.py").write_text(SCRIPT)
        (place / "net.cpp").write_text("int main() {}\n")
        must("device-tidy", "train.py", expected=1, said=("train.py:7:5: warning: '+' gets",), cwd=place, env=environment)
        must("device-tidy", "--stats", "train.py", expected=1, said=("0  of them parsed",), cwd=place, env=environment)
        must("device-tidy", "--explain=device-mixed-op", said=("device-mixed-op",), env=environment)
        for arguments in (["net.cpp"], ["train.py", "net.cpp"], ["net.cpp", "--", "-std=c++17"]):
            said = ("net.cpp is not Python, and this device-tidy reads Python only", "C++ front end")
            must("device-tidy", *arguments, expected=2, said=said, cwd=place, env=environment)
        must("device-tidy", expected=2, said=("no files: name Python files",), cwd=place, env=environment)
        check_server(program, environment, place)
        check_hook(place, wheel, environment)
        must(python, "-m", "pip", "uninstall", "--quiet", "--yes", "device-tidy")
        if program.exists():
            sys.exit(f"FAILED: left after the wheel was uninstalled: {program}")
        print(f"{wheel.name} works; it has {wheel.stat().st_size / 1e6:.1f} MB.")


if __name__ == "__main__":
    main()
