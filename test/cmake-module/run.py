#!/usr/bin/env python3
"""Builds a project that uses device_tidy_add_check(), with real CMake and real Ninja or Make, and looks at which edges
ran and what they found.

run.py --package DIRECTORY [--install-from BUILD] [GENERATOR...]: DIRECTORY holds DeviceTidyConfig.cmake; what would be
installed from the build tree BUILD is tried, too.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
READS = re.compile(r"Reading the devices of (?:.*/)?([\w.]+)$", re.MULTILINE)


class Project:
    """A copy of the project in project/, and its build tree."""

    def __init__(self, place, generator, package):
        self.source, self.build_tree = place / "my project", place / "build"
        self.generator, self.package = generator, package
        shutil.copytree(HERE / "project", self.source)
        self.output = ""

    def command(self, *arguments, status=0):
        environment = dict(os.environ, XDG_CACHE_HOME=str(self.source.parent / "cache"))
        run = subprocess.run(
            [str(each) for each in arguments], capture_output=True, text=True, check=False, env=environment
        )
        self.output = run.stdout + run.stderr
        if (run.returncode != 0) != (status != 0):
            sys.exit(f"{' '.join(map(str, arguments))}: exit status {run.returncode}\n{self.output}")
        return self.output

    def configure(self, *arguments):
        return self.command(
            "cmake", "-S", self.source, "-B", self.build_tree, "-G", self.generator,
            f"-DDeviceTidy_DIR={self.package}", "-DCMAKE_CXX_COMPILER_LAUNCHER=", *arguments,
        )  # fmt: skip

    def build(self, *targets, status=0):
        """The names of the sources that were read, sorted."""
        self.command(
            "cmake", "--build", self.build_tree, "--parallel", "2", *(["--target", *targets] if targets else []),
            status=status,
        )  # fmt: skip
        return sorted(READS.findall(self.output))

    def edit(self, name, old, new):
        wait_for_clock()
        path = self.source / name
        text = path.read_text()
        if text.count(old) != 1:
            sys.exit(f"{name} has {text.count(old)} times {old!r}")
        path.write_text(text.replace(old, new))

    def touch(self, name):
        wait_for_clock()
        (self.source / name).touch()

    def expect(self, what, found, wanted):
        if found != wanted:
            sys.exit(f"{self.generator}: {what}: {found}, expected {wanted}\n{self.output}")

    def expect_output(self, pattern):
        if not re.search(pattern, self.output):
            sys.exit(f"{self.generator}: no '{pattern}' in\n{self.output}")


def wait_for_clock():
    """Make compares whole seconds on some file systems, and a file may not be older than what was made of it."""
    time.sleep(1.1)


EVERYTHING = ["batch.cpp", "loss.cpp", "main.cpp", "metrics.cpp", "plugin.cpp"]


def check(project):
    project.configure()
    project.expect("first build", project.build(), EVERYTHING)
    project.expect_output("no findings; 5 translation units analysed")
    project.expect("nothing to do", project.build(), [])
    if "Checking" in project.output:
        sys.exit(f"{project.generator}: checked again for nothing\n{project.output}")

    # To read a program and its written source nothing is linked, and another program is left alone altogether.
    project.expect("another program", project.build("check-evaluate"), ["evaluate.cpp"])
    if (project.build_tree / "written.cpp").exists():
        sys.exit(f"{project.generator}: the source of another program was written\n{project.output}")
    project.expect("no link", project.build("check-unlinkable"), ["unlinkable.cpp", "written.cpp"])

    project.touch("app/main.cpp")
    project.expect("a source touched", project.build(), ["main.cpp"])
    project.expect_output("Checking the devices of train")
    project.expect("nothing to do", project.build(), [])

    project.edit("loss/loss.h", "// An edit", "// Another edit")
    project.expect("a header edited", project.build(), ["loss.cpp", "main.cpp"])
    project.expect("nothing to do", project.build(), [])

    # CMake runs again and changes no command; then a definition of one target.
    wait_for_clock()
    project.configure()
    project.expect("configured again", project.build(), [])
    wait_for_clock()
    project.configure("-DFEATURE=ON")
    if "batch.cpp" not in project.build():
        sys.exit(f"{project.generator}: a new definition went unnoticed\n{project.output}")
    project.expect("nothing to do", project.build(), [])

    # A bug in a library's function shows where an executable calls it, and stays until it is mended.
    project.edit("loss/loss.cpp", "x + y.to(x.device())", "x + y")
    project.expect("a bug", project.build(status=1), ["loss.cpp"])
    project.expect_output(r"loss\.cpp:\d+:\d+: error: .*\[device-mixed-op\]")
    project.expect_output(r"main\.cpp:\d+:\d+: note: ")
    project.expect("the bug is still there", project.build(status=1), [])
    project.expect_output(r"\[device-mixed-op\]")
    # The check of the library alone has no caller to blame.
    project.expect("the library", project.build("check-loss"), [])
    project.edit("loss/loss.cpp", "x + y", "x + y.to(x.device())")
    project.expect("mended", project.build(), ["loss.cpp"])

    # Code that does not compile: what can be parsed is checked, the check fails all the same, and the source is read by
    # every build.
    project.edit("app/metrics.cpp", "return y;", "return y.nonsense();")
    for _ in range(2):
        project.expect("an error", project.build("device-tidy-train", status=1), ["metrics.cpp"])
        project.expect_output("metrics.cpp .what could be parsed of it was analysed")
        project.expect_output("5 translation units analysed, 1 of them with errors")
    # Nothing can be told: there are no facts to link.
    project.edit("app/metrics.cpp", "return y.nonsense();", "if (true) return lost::call(y); return y;")
    project.edit("app/metrics.cpp", "return x;", "if (true) return lost::call(x); return x;")
    for _ in range(2):
        project.expect("only errors", project.build("device-tidy-train", status=1), ["metrics.cpp"])
        project.expect_output("1 of 1 translation unit could not be parsed")
        if "translation units analysed" in project.output:
            sys.exit(f"{project.generator}: linked without all facts\n{project.output}")
    project.edit("app/metrics.cpp", "if (true) return lost::call(x); return x;", "return x;")
    project.edit("app/metrics.cpp", "if (true) return lost::call(y); return y;", "return y;")
    project.expect("mended", project.build(), ["metrics.cpp"])
    project.build()  # Make sees a shorter list of headers one build later
    project.expect("nothing to do", project.build(), [])

    # A header that is gone.
    project.edit("app/main.cpp", '#include "extra.h"\n', "")
    (project.source / "app" / "extra.h").unlink()
    project.expect("a header gone", project.build(), ["main.cpp"])


def check_installed(project, build_tree):
    """The package finds the program that is installed with it."""
    prefix = project.source.parent / "prefix"
    for component in ("analyzer/tools", "."):
        project.command("cmake", "-DCMAKE_INSTALL_LOCAL_ONLY=1", f"-DCMAKE_INSTALL_PREFIX={prefix}",
                        "-P", f"{build_tree}/{component}/cmake_install.cmake")  # fmt: skip
    project.package = next(prefix.glob("lib*/**/cmake/DeviceTidy"))
    project.configure()
    cache = (project.build_tree / "CMakeCache.txt").read_text()
    found = re.search("^DEVICE_TIDY_EXECUTABLE:FILEPATH=(.*)$", cache, re.MULTILINE).group(1)
    project.expect("the program", found, str(prefix / "bin" / "device-tidy"))
    project.expect("first build", project.build("device-tidy-train"), EVERYTHING)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", required=True)
    parser.add_argument("--install-from")
    parser.add_argument("--work", type=pathlib.Path, help="where temporary folders are made")
    parser.add_argument("generators", nargs="*", default=["Ninja", "Unix Makefiles"])
    arguments = parser.parse_args()
    for generator in arguments.generators:
        with tempfile.TemporaryDirectory(prefix="device-tidy-cmake-", dir=arguments.work) as place:
            check(Project(pathlib.Path(place), generator, arguments.package))
        print(f"{generator}: as it should be")
    if arguments.install_from:
        with tempfile.TemporaryDirectory(prefix="device-tidy-cmake-", dir=arguments.work) as place:
            check_installed(Project(pathlib.Path(place), "Ninja", arguments.package), arguments.install_from)
        print("installed: as it should be")


if __name__ == "__main__":
    main()
