#!/usr/bin/env python3
"""docs/bazel in a workspace, with the Bazel of Debian and without the network: what is found, how its files are named, and
which actions run again.

run.py --tool DEVICE_TIDY [--bazel BAZEL]. Exit code 77: there is no Bazel.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs/bazel"
ACTION = re.compile(r"^SUBCOMMAND: # \S+ \[action '(DeviceTidy\w+) (\S+?)'", re.MULTILINE)
SKIPPED = 77


class Workspace:
    """A copy of project/ with the rule, the stand-ins of Debian and a tool, and a server of Bazel of its own."""

    def __init__(self, place, bazel, tool):
        self.folder, self.bazel, self.output = place / "trainer", bazel, ""
        self.start = [bazel, f"--output_user_root={place / 'bazel'}", "--nohome_rc",
                      "--max_idle_secs=60"]  # fmt: skip
        shutil.copytree(HERE / "project", self.folder)
        shutil.copytree(HERE.parent / "cmake-module/project/tensor/include", self.folder / "tensor/include")
        shutil.copytree(DOCS / "debian", self.folder / "third_party")
        shutil.copy(DOCS / "device_tidy.bzl", self.folder / "tools")
        script = self.folder / "tools/device_tidy.sh"
        script.write_text(f'#!/bin/sh\nexec "{tool}" "$@"\n')
        script.chmod(0o755)

    def run(self, *arguments):
        done = subprocess.run(
            [*self.start, *arguments], cwd=self.folder, capture_output=True, text=True, check=False, timeout=600,
            env={**os.environ, "HOME": str(self.folder.parent)},
        )  # fmt: skip
        self.output = f"{done.stdout}\n{done.stderr}"
        return done.returncode

    def build(self, target, succeeds=True):
        """The sources that were read, and "linked" where the check itself ran."""
        status = self.run("build", "--subcommands", target)
        self.expect(f"the build of {target}", status == 0, succeeds)
        return sorted("linked" if kind == "DeviceTidyLink" else pathlib.PurePath(file).stem
                      for kind, file in ACTION.findall(self.output))  # fmt: skip

    def edit(self, name, old, new):
        path = self.folder / name
        text = path.read_text()
        self.expect(f"{old!r} in {name}", text.count(old), 1)
        path.write_text(text.replace(old, new))

    def expect(self, what, found, wanted):
        if found != wanted:
            sys.exit(f"{what}: {found}, expected {wanted}\n{self.output}")

    def expect_said(self, words, said=True):
        self.expect(f"whether {words!r} was said", words in self.output, said)


def check(workspace):
    # A mistake across two targets, named by the files of the workspace as a compiler does it.
    read = workspace.build("//app:train_devices", succeeds=False)
    workspace.expect("what ran at first", read, ["linked", "loss.cc", "main.cc", "report.cc"])
    workspace.expect_said("loss/loss.cc:6:71: warning: '+' gets 'scores' on cuda and 'labels' on cpu")
    workspace.expect_said("\napp/main.cc:5:23: note: 'labels' is created on cpu here")
    workspace.expect_said("execroot/trainer/loss", said=False)
    workspace.build("//app:train_json", succeeds=False)
    workspace.expect_said('"loss/loss.cc"')

    workspace.edit("app/main.cc", "labels = torch::ones(2);", "labels = torch::ones(2).cuda();")
    workspace.expect("after the repair", workspace.build("//app:train_devices"), ["linked", "main.cc"])
    workspace.expect_said("warning:", said=False)
    workspace.expect("when nothing has changed", workspace.build("//app:train_devices"), [])
    workspace.edit("app/report.h", "#pragma once", "#pragma once\n// An edit")
    workspace.expect("after an edit of a header of one target", workspace.build("//app:train_devices"),
                     ["linked", "main.cc", "report.cc"])  # fmt: skip
    workspace.edit("loss/loss.h", "#pragma once", "#pragma once\n// An edit")
    workspace.expect("after an edit of a header of a library", workspace.build("//app:train_devices"),
                     ["linked", "loss.cc", "main.cc", "report.cc"])  # fmt: skip
    workspace.expect("the program", workspace.build("//app:train"), [])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True, type=os.path.abspath)
    parser.add_argument("--bazel", default="bazel")
    arguments = parser.parse_args()
    bazel = shutil.which(arguments.bazel)
    if not bazel:
        print(f"{arguments.bazel} is not installed; scripts/install-deps.sh --all installs it", file=sys.stderr)
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="device-tidy-bazel-") as temporary:
        place = pathlib.Path(temporary)
        workspace = Workspace(place, bazel, arguments.tool)
        try:
            check(workspace)
        finally:
            workspace.run("shutdown")
            # Bazel takes the right to write from what it makes.
            subprocess.run(["chmod", "-R", "u+w", place], check=False)


if __name__ == "__main__":
    main()
