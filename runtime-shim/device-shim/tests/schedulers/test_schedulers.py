"""device_shim under srun (a Slurm cluster of two nodes), mpirun (Open MPI) and mpiexec (MPICH), as Debian has them.

Exit code 77: all went well, but a launcher is missing, so that its tests were left out.
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import unittest
import uuid

from slurm_cluster import NODES, PROGRAMS, TASKS_PER_NODE, SlurmCluster, search

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "device-run/tests"))
from launching import MARK, clean_environment, marked_processes, wait_until

RANKS = len(NODES) * TASKS_PER_NODE
LINE = re.compile(r"rank (\d+) of (\d+) (.*)")
STARTED = re.compile(r"local (\d+) on (\S+) pid (\d+)")
SKIPPED = 77
options = argparse.Namespace()


class Launcher:
    """What the three have in common: a job of RANKS processes, and that nothing of it is left."""

    name = ""  # as the messages of device_shim call it
    program = ""
    arguments = ()
    local_ranks = tuple(range(RANKS))
    ends_ranks = True  # when one has failed, perhaps before they have said why they end

    @classmethod
    def setUpClass(cls):
        if not search(cls.program):
            raise unittest.SkipTest(f"{cls.program} is not installed")

    def setUp(self):
        self.mark = uuid.uuid4().hex

    def tearDown(self):
        left = [] if wait_until(lambda: not marked_processes(self.mark), 20) else marked_processes(self.mark)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "processes were left behind")

    def environment(self):
        return clean_environment(**{MARK: self.mark, "OMP_NUM_THREADS": "1",
                                    "DEVICE_TIDY_VIRTUAL_CUDA": options.virtual_cuda})

    def start(self, *command):
        # pylint: disable-next=consider-using-with
        return subprocess.Popen([search(self.program), *self.arguments, *command], env=self.environment(), cwd="/",
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run_job(self, *command):
        """Exit code and output of all ranks."""
        with self.start(*command) as job:
            try:
                output, _ = job.communicate(timeout=180)
            except subprocess.TimeoutExpired:
                job.terminate()
                raise
        return job.returncode, output

    def lines_of(self, output):
        """What each rank said, by rank."""
        lines = {}
        for line in output.splitlines():
            if found := LINE.search(line):
                self.assertEqual(int(found[2]), RANKS, output)
                lines.setdefault(int(found[1]), []).append(found[3])
        self.assertEqual(sorted(lines), list(range(RANKS)), output)
        return lines

    def expect_training(self, output, device):
        for rank, lines in self.lines_of(output).items():
            started = STARTED.search(lines[0])
            local = self.local_ranks[rank]
            self.assertEqual((int(started[1]), started[2]), (local, device.format(local)), output)
            self.assertLess(float(lines[1].rpartition(" ")[2]), 1e-5, output)

    def test_trains_as_one_process(self):
        code, output = self.run_job(options.device_run, "--", options.program)
        self.assertEqual(code, 0, output)
        self.expect_training(output, "cpu")

    def test_each_rank_has_its_gpu(self):
        code, output = self.run_job(options.device_run, f"--virtual-gpus={RANKS}", "--", options.program)
        self.assertEqual(code, 0, output)
        self.expect_training(output, "cuda:{}")

    def test_without_device_run_it_is_refused(self):
        code, output = self.run_job(options.program)
        self.assertNotEqual(code, 0, output)
        self.assertIn(f"{self.name} started several processes", output)
        self.assertIn(f"start '{self.name} device-run PROGRAM'", output)
        self.assertNotIn("trained", output)

    def test_a_killed_rank_ends_all(self):
        victim = 2
        with self.start(options.device_run, "--", options.program, "1000000000") as job:
            pids, trained, said = {}, set(), []
            for line in job.stdout:
                said.append(line)
                if found := LINE.search(line):
                    if started := STARTED.search(found[3]):
                        pids[int(found[1])] = int(started[3])
                    else:
                        trained.add(int(found[1]))
                if len(trained) == RANKS:
                    break
            self.assertEqual(sorted(pids), list(range(RANKS)), "".join(said))
            os.kill(pids[victim], signal.SIGKILL)
            try:
                rest, _ = job.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                job.terminate()
                raise
        output = "".join(said) + rest
        self.assertNotEqual(job.returncode, 0, output)
        self.assertIn("device-run: the program was ended by SIGKILL", output)
        if not self.ends_ranks:
            self.assertIn(f"rank {victim} (process {pids[victim]} on ", output)


class Slurm(Launcher, unittest.TestCase):
    name = program = "srun"
    arguments = (f"--nodes={len(NODES)}", f"--ntasks={RANKS}")
    local_ranks = tuple(rank % TASKS_PER_NODE for rank in range(RANKS))
    ends_ranks = False
    cluster = None

    @classmethod
    def setUpClass(cls):
        missing = [name for name in PROGRAMS if not search(name)]
        if missing:
            raise unittest.SkipTest(f"{', '.join(missing)} of Slurm is not installed")
        holder = tempfile.TemporaryDirectory(prefix="device-shim-slurm-")
        cls.addClassCleanup(holder.cleanup)
        mark = uuid.uuid4().hex
        cls.addClassCleanup(cls.expect_nothing_left, mark)
        cls.cluster = SlurmCluster(holder.name, clean_environment(**{MARK: mark}))
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()

    @staticmethod
    def expect_nothing_left(mark):
        if not wait_until(lambda: not marked_processes(mark), 20):
            left = marked_processes(mark)
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f"the cluster left processes behind: {left}")

    def environment(self):
        return {**super().environment(), "SLURM_CONF": self.cluster.env["SLURM_CONF"]}


class OpenMpi(Launcher, unittest.TestCase):
    name = "mpirun"
    program = "mpirun.openmpi"
    arguments = ("-np", str(RANKS), "--oversubscribe", "--bind-to", "none", "--allow-run-as-root")


class Mpich(Launcher, unittest.TestCase):
    name = "mpiexec"
    program = "mpiexec.mpich"
    arguments = ("-n", str(RANKS))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--device-run", "--program", "--virtual-cuda"):
        parser.add_argument(name, required=True, type=os.path.abspath)
    _, rest = parser.parse_known_args(namespace=options)
    done = unittest.main(argv=[sys.argv[0], *rest], exit=False).result
    if not done.wasSuccessful():
        return 1
    for test, reason in done.skipped:
        print(f"left out: {test}: {reason}; scripts/install-deps.sh --all installs it", file=sys.stderr)
    return SKIPPED if done.skipped else 0


if __name__ == "__main__":
    sys.exit(main())
