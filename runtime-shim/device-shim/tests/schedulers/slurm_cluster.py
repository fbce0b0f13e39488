"""A Slurm cluster of two nodes on this machine: munged, slurmctld and two slurmd, all in one folder and as this user."""

import contextlib
import os
import pathlib
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sinfo")
# Every address of 127.0.0.0/8 is this machine, and a node is found by its name.
NODES = ("127.0.0.1", "127.0.0.2")
TASKS_PER_NODE = 2
SECONDS_TO_START = 60

CONFIGURATION = """\
ClusterName=device-shim
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmdSpoolDir={folder}/spool-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr={name} Port={port} CPUs={cpus} State=UNKNOWN"


def search(name):
    """The path of a program, daemons included; None: it is not installed."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def free_ports(count):
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


class SlurmCluster:
    """Runs from start() to stop(). `env` is for srun and the daemons."""

    def __init__(self, folder, env):
        self.folder = pathlib.Path(folder)
        self.folder.chmod(0o711)  # munged wants its socket to be within reach of all
        self.env = {**env, "SLURM_CONF": str(self.folder / "slurm.conf")}
        self.daemons = []

    def configure(self):
        """Writes the configuration, with ports that are free now."""
        host = socket.gethostname().partition(".")[0]
        controller, *ports = free_ports(1 + len(NODES))
        nodes = [NODE.format(name=name, host=host, port=port, cpus=TASKS_PER_NODE)
                 for name, port in zip(NODES, ports)]
        (self.folder / "slurm.conf").write_text(
            CONFIGURATION.format(host=host, folder=self.folder, controller=controller, nodes="\n".join(nodes),
                                 user=pwd.getpwuid(os.getuid()).pw_name), encoding="utf-8")
        for name in ("state", *(f"spool-{name}" for name in NODES)):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)

    def start(self):
        self.configure()
        self.launch("munged", "--foreground", *(f"--{kind}={self.folder}/munge.{end}" for kind, end in (
            ("socket", "socket"), ("key-file", "key"), ("pid-file", "pid"), ("log-file", "log"),
            ("seed-file", "seed"))))
        self.wait_for("munged", (self.folder / "munge.socket").exists)
        self.launch("slurmctld", "-D")
        for name in NODES:
            self.launch("slurmd", "-D", "-N", name)
        self.wait_for("the nodes", self.nodes_are_idle)

    def launch(self, name, *arguments):
        with open(self.folder / f"{name}.out", "ab") as output:
            self.daemons.append(subprocess.Popen([search(name), *arguments], env=self.env, cwd=self.folder,
                                                 stdin=subprocess.DEVNULL, stdout=output, stderr=output))

    def nodes_are_idle(self):
        done = subprocess.run([search("sinfo"), "--noheader", "--Node", "--format=%T"], env=self.env,
                              capture_output=True, text=True, check=False)
        return done.stdout.split() == ["idle"] * len(NODES)

    def wait_for(self, what, condition):
        end = time.monotonic() + SECONDS_TO_START
        while not condition():
            ended = [one.args[0] for one in self.daemons if one.poll() is not None]
            if ended or time.monotonic() > end:
                said = "".join(f"\n--- {file.name}\n{file.read_text(errors='replace')}"
                               for file in sorted(self.folder.glob("*.out")))
                raise RuntimeError(f"{what} did not come up{said}")
            time.sleep(0.1)

    def stop(self):
        # A step ends a moment after its srun, and would wait for ever for daemons that are gone.
        end = time.monotonic() + SECONDS_TO_START
        while all(one.poll() is None for one in self.daemons) and not self.nodes_are_idle() and time.monotonic() < end:
            time.sleep(0.1)
        for one in reversed(self.daemons):
            one.terminate()
        for one in reversed(self.daemons):
            try:
                one.wait(timeout=20)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
                print(f"{one.args[0]} had to be killed", file=sys.stderr)
        self.daemons.clear()
