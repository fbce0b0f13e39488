"""Compiles and runs a file of functions, and asks the analyzer about it."""

import json
import re
import shutil
import subprocess
from collections import defaultdict, namedtuple
from pathlib import Path

from function import sources

HERE = Path(__file__).resolve().parent
HEADER = '#include "outside.h"\n#include "runner.h"\n'
CHECKED = ["-D_GLIBCXX_ASSERTIONS", "-D_GLIBCXX_DEBUG", "-D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_DEBUG"]
LIBCXX = ["libc++.a", "libc++abi.a"]

# What one run did. status: done, device, other, crash; the lines of operations that failed and that went well.
Run = namedtuple("Run", "status thrown passed")
Finding = namedtuple("Finding", "line level check message")


class Failure(Exception):
    """The suite itself is broken: something could not be built, run or analysed."""


def culprits(functions, name, messages):
    """What does not compile, with the message: by the line of an error, or by the lines that an error mentions."""
    direct, mentioned = {}, {}
    for text in messages.splitlines():
        match = re.match(rf".*{re.escape(name)}:(\d+)(.*)", text)
        owner = next((f for f in functions if match and f.start <= int(match.group(1)) <= f.end), None)
        if owner:
            sure = "error:" in text or "required from here" in text
            (direct if sure else mentioned).setdefault(owner, text)
    return direct or mentioned


class Workshop:
    def __init__(self, options, directory):
        self.options, self.directory = options, directory
        self.flags, self.libraries = ["-std=c++20"], []
        if options.libcxx:
            self.flags += ["-nostdinc++", "-isystem", options.libcxx / "include/c++/v1"]
            self.libraries = ["-nostdlib++", *(options.libcxx / "lib" / name for name in LIBCXX)]
        # The analyzer enters functions of files beside the source only, so outside.h is copied there.
        self.includes = ["-isystem", HERE / "label", "-I", directory]
        self.keep = [directory, *([Path(options.keep)] if options.keep else [])]
        self.refused = []  # (function, message): what does not compile
        self.notParsed = []

    def compiler(self, *arguments):
        command = [*self.options.compiler.split(), *self.flags, "-O0", "-w", "-DDT_NATIVE", *CHECKED,
                   *self.includes, *arguments]  # fmt: skip
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)

    def prepare(self):
        """What all files share: the runner, the functions without a body, the precompiled header."""
        for place in self.keep:
            shutil.copy(HERE / "native/outside.h", place)
        shutil.copy(HERE / "native/runner.h", self.directory)
        (self.directory / "all.h").write_text(HEADER)
        for arguments in ([*("-c", HERE / "native/runner.cpp"), "-o", self.directory / "runner.o"],
                          [*("-c", HERE / "native/outside.cpp"), "-o", self.directory / "outside.o"],
                          [*("-x", "c++-header", self.directory / "all.h"), "-o", self.precompiled]):
            done = self.compiler(*arguments)
            if done.returncode:
                raise Failure(done.stderr[-3000:])

    @property
    def precompiled(self):
        return self.directory / ("all.h.pch" if "clang" in self.options.compiler else "all.h.gch")

    def build(self, functions, title):
        """The program of the functions that compile; the others are taken out of the list."""
        source = self.directory / f"{title}.native.cpp"
        program = self.directory / f"{title}.bin"
        header = ["-include-pch", self.precompiled]
        if self.precompiled.suffix == ".gch":
            header = ["-include", self.directory / "all.h"]
        objects = [self.directory / "runner.o", self.directory / "outside.o"]
        while functions:
            read, run = sources(functions)
            (self.directory / f"{title}.cpp").write_text(read)
            source.write_text(run)
            done = self.compiler(*header, source, *objects, *self.libraries, "-o", program)
            if not done.returncode:
                return program
            bad = culprits(functions, source.name, done.stderr)
            if not bad:
                raise Failure(f"{source}: {done.stderr[-3000:]}")
            self.refused += bad.items()
            for function in bad:
                functions.remove(function)
        return None

    def execute(self, program):
        """Name of a function: its runs."""
        done = subprocess.run([program], capture_output=True, text=True, timeout=900, check=False)
        if done.returncode:
            raise Failure(f"{program}: exit status {done.returncode}")
        runs = defaultdict(list)
        for line in done.stdout.splitlines():
            name, _, status, thrown, passed = line.split()
            numbers = [frozenset(int(n) for n in text.split(",") if n != "-") for text in (thrown, passed)]
            runs[name].append(Run(status, *numbers))
        return runs

    def analyse(self, source):
        arguments = [*self.options.tool.split(), "--no-cache", "--quiet", "--format=json", source, "--", *self.flags,
                     *self.includes]  # fmt: skip
        done = subprocess.run(arguments, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode not in (0, 1, 3):
            raise Failure(f"{' '.join(map(str, arguments))}: exit status {done.returncode}\n{done.stderr[-2000:]}")
        report = json.loads(done.stdout)
        self.notParsed += [f"{f['file']}:{f['line']}: {f['message']}" for f in report["failures"]]
        return [Finding(f["line"], f["level"], f["check"], f["message"]) for f in report["findings"]
                if Path(f["file"]).name == source.name]  # fmt: skip

    def outcome(self, functions, title):
        """(runs by name, findings by name) of the functions that compile."""
        program = self.build(functions, title)
        if not program:
            return {}, {}
        runs = self.execute(program)
        program.unlink()
        source = self.directory / f"{title}.cpp"
        findings = self.analyse(source)
        for place in self.keep[1:]:
            shutil.copy(source, place)
        byName = {f.name: [x for x in findings if f.start <= x.line <= f.end] for f in functions}
        return runs, byName
