"""Tests that run Python programs with device-run."""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent


class PythonRuns(unittest.TestCase):
    options = None  # of the command line, see main()

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_device_run(self, *arguments, environment=None):
        return subprocess.run(
            [self.options.device_run, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=240,
            cwd=HERE,
            env=environment,
            check=False,
        )

    def run_python(self, *arguments, gpus=2, launcher=(), environment=None, python=None):
        command = ["--virtual-gpus", gpus, *launcher, "--", python or self.options.python, *arguments]
        return self.run_device_run(*command, environment=environment)

    def output_of(self, code, *flags, **launch):
        done = self.run_python(*flags, "-c", code, **launch)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


def main():
    parser = argparse.ArgumentParser()
    for name in ("--device-run", "--python", "--library"):
        parser.add_argument(name, required=True)
    PythonRuns.options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
