"""Starting the ranks of a program and collecting what they print."""

import os
import signal
import socket
import subprocess
import tempfile
import time

CLEARED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LD_PRELOAD",
           "NCCL_HOSTID", "VIRTUAL_GPUS", "SYSTEMS_DEVICES")


def free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


class Machine:
    """The GPUs to run on: `count` real ones, or virtual ones through `library`."""

    def __init__(self, count, library=None):
        self.count, self.library = count, library

    def environment(self, rank, ranks, port, gpus=None):
        """The variables of one rank. Ranks beyond the GPUs share them."""
        env = {name: value for name, value in os.environ.items() if name not in CLEARED}
        count = gpus or self.count
        env.update(RANK=str(rank), WORLD_SIZE=str(ranks), LOCAL_RANK=str(rank % count), LOCAL_WORLD_SIZE=str(ranks),
                   MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
        env.setdefault("OMP_NUM_THREADS", "1")
        if self.library:
            env.update(LD_PRELOAD=str(self.library), VIRTUAL_GPUS=str(count))
        else:
            if gpus and gpus < self.count:
                env["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, range(gpus)))
            if ranks > count:
                # Before 2.30.3 NCCL refuses two ranks on one GPU unless they seem to be on different hosts; from
                # then on it has a switch for it.
                env.update(NCCL_HOSTID=f"rank{rank}", NCCL_MULTI_RANK_GPU_ENABLE="1")
        return env


class Ended:
    """What became of a job: `codes` per rank, the text of all ranks, and whether it was ended for its time."""

    def __init__(self, codes, text, late, seconds):
        self.codes, self.text, self.late, self.seconds = codes, text, late, seconds

    @property
    def ok(self):
        return not self.late and all(code == 0 for code in self.codes)


def run(machine, command, ranks=1, timeout=300, gpus=None, **extra):
    """Runs the ranks of one job to their end. One that fails gives the others ten seconds."""
    port, processes, files = free_port(), [], []
    begin = time.monotonic()
    for rank in range(ranks):
        files.append(tempfile.TemporaryFile())
        env = {**machine.environment(rank, ranks, port, gpus), **extra}
        processes.append(subprocess.Popen([str(word) for word in command], env=env, stdout=files[-1],
                                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                          start_new_session=True))
    end, late = begin + timeout, False
    while any(process.poll() is None for process in processes):
        if any(process.poll() for process in processes):
            end = min(end, time.monotonic() + 10)
        if time.monotonic() > end:
            late = not any(process.poll() for process in processes)
            for process in processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        time.sleep(0.05)
    text = ""
    for file in files:
        file.seek(0)
        text += file.read().decode(errors="replace")
        file.close()
    return Ended([process.returncode for process in processes], text, late, time.monotonic() - begin)
