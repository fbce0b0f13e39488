"""What the tests of device-run share: starting it, and knowing what it left behind."""

import argparse
import os
import signal
import subprocess
import sys
import time
import unittest
import uuid

MARK = "DEVICE_RUN_TEST_MARK"
OUTER_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                   "OMP_NUM_THREADS", "LD_PRELOAD", "VIRTUAL_GPUS", "DEVICE_TIDY_VIRTUAL_CUDA",
                   "CUDA_VISIBLE_DEVICES")
OUTER_PREFIXES = ("SLURM_", "OMPI_", "PMI", "MPI_", "MV2_", "TORCHELASTIC_", "GROUP_", "ROLE_", "NODE_RANK")

tool = ""
compiler = "cc"


def clean_environment(**extra):
    """The environment without anything an outer launcher may have set."""
    env = {name: value for name, value in os.environ.items()
           if name not in OUTER_VARIABLES and not name.startswith(OUTER_PREFIXES)}
    env.update(extra)
    return env


def wait_until(condition, seconds):
    """Whether `condition` came true within `seconds`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def marked_processes(mark):
    """Living processes that were started with this mark in their environment."""
    found = []
    needle = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                marked = needle in file.read().split(b"\0")
            with open(f"/proc/{name}/stat", "rb") as file:
                state = file.read().rpartition(b")")[2].split()[0]
        except OSError:
            continue
        if marked and state not in (b"Z", b"X"):
            found.append(int(name))
    return found


def python(code):
    """The command that runs `code`."""
    return [sys.executable, "-S", "-c", code]


class LaunchTest(unittest.TestCase):
    """Every test has a mark of its own and fails when a process with that mark outlives it."""

    def setUp(self):
        self.mark = uuid.uuid4().hex

    def tearDown(self):
        left = [] if wait_until(lambda: not marked_processes(self.mark), 2) else marked_processes(self.mark)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "processes were left behind")

    def environment(self, **extra):
        return clean_environment(**{MARK: self.mark, **extra})

    def start(self, *arguments, env=None, **keywords):
        keywords.setdefault("stdout", subprocess.PIPE)
        keywords.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([tool, *arguments], env=self.environment(**(env or {})), text=True,
                                stdin=subprocess.DEVNULL, cwd="/", **keywords)

    def run_tool(self, *arguments, env=None, timeout=60, **keywords):
        with self.start(*arguments, env=env, **keywords) as process:
            try:
                out, err = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def wait_for_processes(self, count, seconds=20):
        """Waits until at least `count` marked processes run, launchers included."""
        self.assertTrue(wait_until(lambda: len(marked_processes(self.mark)) >= count, seconds),
                        f"only {len(marked_processes(self.mark))} of {count} processes started")


def main():
    """Runs the tests of the calling module: --device-run PATH [--compiler CC] [unittest arguments]."""
    global tool, compiler  # pylint: disable=global-statement
    parser = argparse.ArgumentParser()
    parser.add_argument("--device-run", required=True)
    parser.add_argument("--compiler", default="cc")
    options, rest = parser.parse_known_args()
    tool, compiler = os.path.abspath(options.device_run), options.compiler
    unittest.main(module="__main__", argv=[sys.argv[0], *rest])
