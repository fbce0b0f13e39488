#!/usr/bin/env python3
"""run.py --tool DEVICE_TIDY: the VS Code extension, tested and packaged by its own toolchain, then inside VS Code.

The host is the server of VS Code that the npm package code-server brings, with a headless Chromium as its window. It
is installed once, in ${XDG_CACHE_HOME:-~/.cache}/device-tidy-vscode. Exit code 77: Node.js or Chromium is missing.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

HERE = pathlib.Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
TINY_TORCH = REPOSITORY / "test/lit/lsp/Inputs/tiny-torch"
HOST_PACKAGE = "code-server@4.96.4"  # the newest for Node.js 20; VS Code 1.96
NODE_MAJOR = 20
PATIENCE = 180  # seconds for all that happens inside the editor

SOURCE = """#include <torch/torch.h>
void train() {
  auto 批次 = torch::randn({2, 2});
  auto weight = torch::randn({2, 2}, torch::kCUDA);
  auto z = 批次 + weight;
}
"""


SCRIPT = """import torch
x = torch.ones(2)
y = torch.ones(2, device="cuda")
z = x + y
"""


def require_programs():
    missing = [name for name in ("node", "npm", "chromium") if not shutil.which(name)]
    if not missing:
        version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
        if int(version[1:].split(".")[0]) < NODE_MAJOR:
            missing = [f"Node.js {NODE_MAJOR} or newer (this is {version.strip()})"]
    if missing:
        print(f"vscode: skipped, not installed: {', '.join(missing)}")
        sys.exit(77)


def npm(folder, *arguments, **environment):
    subprocess.run(["npm", "--no-audit", "--no-fund", *arguments], cwd=folder, check=True,
                   env={**os.environ, **environment})


def package_extension(work, tool):
    """The extension's own tests and packaging, in a copy."""
    folder = work / "extension"
    shutil.copytree(REPOSITORY / "analyzer/tools/vscode", folder, ignore=shutil.ignore_patterns("node_modules", "out"))
    npm(folder, "install")
    npm(folder, "test", DEVICE_TIDY=str(tool), TINY_TORCH=str(TINY_TORCH))
    npm(folder, "run", "package")
    return folder / "device-tidy.vsix"


def install_host():
    """The folder with VS Code's server. Its native modules are left unbuilt: it runs without them."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "device-tidy-vscode"
    root = cache / HOST_PACKAGE
    server = root / "node_modules/code-server/lib/vscode"
    if (root / "complete").exists():
        return server
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    (root / "package.json").write_text("{}", encoding="utf-8")
    npm(root, "install", "--ignore-scripts", HOST_PACKAGE)
    # It names packages by their places in git, which are not always within reach; the registry has them too.
    (server / "npm-shrinkwrap.json").unlink()
    npm(server, "install", "--omit=dev", "--ignore-scripts", "--legacy-peer-deps")
    (root / "complete").touch()
    return server


def make_workspace(work, tool):
    folder = work / "workspace"
    (folder / ".vscode").mkdir(parents=True)
    (folder / "train.cpp").write_text(SOURCE, encoding="utf-8")
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    settings = {"device-tidy.path": str(tool), "device-tidy.arguments": [f"--cache-dir={work / 'cache'}"]}
    (folder / ".vscode/settings.json").write_text(json.dumps(settings), encoding="utf-8")
    arguments = ["clang++", "-std=c++17", "-isystem", str(TINY_TORCH), "-c", "train.cpp"]
    entry = {"directory": str(folder), "file": "train.cpp", "arguments": arguments}
    (folder / "compile_commands.json").write_text(json.dumps([entry]), encoding="utf-8")
    return folder


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(command, log):
    """A process in a group of its own, which ends with the block."""
    with open(log, "wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=stream, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=30)


def wait_for(what, ask, seconds):
    end = time.monotonic() + seconds
    while not ask():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {seconds} s for {what}")
        time.sleep(0.3)


def run_inside(server, work, folder, extension):
    """What in-editor/index.js wrote."""
    main, port, result = server / "out/server-main.js", free_port(), folder / "result.txt"
    places = ["--user-data-dir", str(work / "data"), "--extensions-dir", str(work / "extensions")]
    subprocess.run(["node", str(main), *places, "--install-extension", str(extension)], check=True)
    command = ["node", str(main), *places, "--host", "127.0.0.1", "--port", str(port), "--without-connection-token",
               "--accept-server-license-terms", "--disable-workspace-trust"]
    remote = f"vscode-remote://127.0.0.1:{port}"
    payload = [["extensionDevelopmentPath", f"{remote}{HERE}/in-editor"],
               ["extensionTestsPath", f"{remote}{HERE}/in-editor/index.js"]]
    query = urllib.parse.urlencode({"folder": str(folder), "payload": json.dumps(payload)})
    window = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={work / 'window'}",
              f"http://127.0.0.1:{port}/?{query}"]
    with running(command, work / "server.log"):
        wait_for("VS Code's server", lambda: "agent started" in (work / "server.log").read_text("utf-8"), 60)
        with running(window, work / "window.log"):
            wait_for("the tests inside VS Code",
                     lambda: result.exists() and result.read_text("utf-8").endswith("done\n"), PATIENCE)
    return result.read_text("utf-8").splitlines()[:-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True, type=pathlib.Path)
    tool = parser.parse_args().tool.resolve()
    require_programs()
    with tempfile.TemporaryDirectory(prefix="device-tidy-vscode-") as temporary:
        work = pathlib.Path(temporary)
        extension = package_extension(work, tool)
        server = install_host()
        lines = run_inside(server, work, make_workspace(work, tool), extension)
    print("\n".join(lines))
    sys.exit(any(line.startswith("failed") for line in lines))


if __name__ == "__main__":
    main()
