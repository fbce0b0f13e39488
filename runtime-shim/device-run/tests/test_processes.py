"""device-run with real processes: how they are started, how they end, and that nothing is left."""

import os
import pty
import re
import signal
import subprocess
import tempfile
import textwrap
import time

import launching
from launching import LaunchTest, marked_processes, python, wait_until

SHOW = python("import os; print(' '.join(f'{n}={os.environ.get(n)}' for n in "
              "'RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE NODE_RANK ROLE_RANK "
              "ROLE_WORLD_SIZE ROLE_NAME MASTER_ADDR MASTER_PORT TORCHELASTIC_RESTART_COUNT "
              "TORCHELASTIC_MAX_RESTARTS TORCHELASTIC_RUN_ID TORCHELASTIC_USE_AGENT_STORE "
              "OMP_NUM_THREADS'.split()))")

# A rank that ignores SIGTERM and has a child that left its session and ignores SIGTERM too.
STUBBORN = python(textwrap.dedent("""
    import os, signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
    time.sleep(600)
"""))
STUBBORN_PROCESSES = 2

SLEEPER = python("import time; time.sleep(600)")


def variables(line):
    """The variables that a line of SHOW holds; a rank prefix is skipped."""
    return dict(word.split("=", 1) for word in line.split() if "=" in word)


class Starting(LaunchTest):
    def shown(self, *arguments, **env):
        run = self.run_tool(*arguments, "--", *SHOW, env=env)
        self.assertEqual(run.returncode, 0, run.stderr)
        return sorted((variables(line) for line in run.stdout.splitlines()), key=lambda v: int(v["RANK"]))

    def test_environment_of_torchrun(self):
        ranks = self.shown("-n", "3", "--max_restarts=2", "--rdzv_id", "job7")
        for number, rank in enumerate(ranks):
            self.assertEqual(rank["RANK"], str(number))
            self.assertEqual(rank["LOCAL_RANK"], str(number))
            self.assertEqual(rank["ROLE_RANK"], str(number))
            for name, value in {"WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3", "ROLE_WORLD_SIZE": "3",
                                "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "NODE_RANK": "0",
                                "ROLE_NAME": "default", "MASTER_ADDR": "127.0.0.1",
                                "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "2",
                                "TORCHELASTIC_RUN_ID": "job7", "OMP_NUM_THREADS": "1"}.items():
                self.assertEqual(rank[name], value, name)
            self.assertEqual(rank["MASTER_PORT"], ranks[0]["MASTER_PORT"])
        self.assertEqual(len(ranks), 3)

    def test_second_node(self):
        ranks = self.shown("--nproc-per-node=2", "--nnodes=2", "--node_rank=1", "--rdzv-endpoint=[::1]:4711",
                           OMP_NUM_THREADS="5")
        self.assertEqual([rank["RANK"] for rank in ranks], ["2", "3"])
        self.assertEqual([rank["LOCAL_RANK"] for rank in ranks], ["0", "1"])
        self.assertEqual({(rank["WORLD_SIZE"], rank["NODE_RANK"], rank["MASTER_ADDR"], rank["MASTER_PORT"],
                           rank["OMP_NUM_THREADS"]) for rank in ranks}, {("4", "1", "::1", "4711", "5")})

    def test_alone(self):
        names = python("import os; print([n for n in sorted(os.environ) if 'RANK' in n or 'WORLD' in n or 'MASTER' in n])")
        self.assertEqual(self.run_tool("--", *names).stdout, "[]\n")
        self.assertEqual(self.run_tool("--", *names, env={"LOCAL_RANK": "0"}).stdout, "['LOCAL_RANK']\n")
        for arguments in (["-n", "1"], ["--nnodes=1"], ["--master-port=4711"], ["--max-restarts=1"], ["--rdzv-id=7"]):
            self.assertEqual(self.shown(*arguments)[0]["WORLD_SIZE"], "1", arguments)

    def test_single_rank_passes_through(self):
        run = self.run_tool("--", *python("import sys; print('a\\nb', end=''); sys.stderr.write('c')"))
        self.assertEqual((run.returncode, run.stdout, run.stderr), (0, "a\nb", "c"))

    def test_under_torchrun(self):
        rank, = self.shown(RANK="5", WORLD_SIZE="8", LOCAL_RANK="1", LOCAL_WORLD_SIZE="4", GROUP_RANK="1",
                           GROUP_WORLD_SIZE="2", MASTER_ADDR="head", MASTER_PORT="1234",
                           TORCHELASTIC_RESTART_COUNT="3", TORCHELASTIC_MAX_RESTARTS="9")
        self.assertEqual([rank[n] for n in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "NODE_RANK",
                                            "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")],
                         ["5", "8", "1", "4", "1", "head", "1234", "3"])

    def test_torchrun_around_knows_its_job(self):
        given = dict(ROLE_NAME="trainer", ROLE_RANK="0", ROLE_WORLD_SIZE="4", TORCHELASTIC_USE_AGENT_STORE="True")
        rank, = self.shown(RANK="5", WORLD_SIZE="8", MASTER_ADDR="head", MASTER_PORT="1234", **given)
        self.assertEqual({name: rank[name] for name in given}, given)
        rank, = self.shown(RANK="5", WORLD_SIZE="8", MASTER_ADDR="head", MASTER_PORT="1234")
        self.assertEqual((rank["ROLE_RANK"], rank["TORCHELASTIC_USE_AGENT_STORE"]), ("5", "False"))

    def test_under_srun(self):
        step = dict(SLURM_NTASKS="6", SLURM_STEP_NODELIST="gpu[03-04,9]", SLURM_STEP_ID="2", SLURM_JOB_ID="77",
                    SLURM_STEP_NUM_NODES="3", SLURM_STEP_TASKS_PER_NODE="2(x3)")
        ranks = [self.shown(SLURM_PROCID=str(p), SLURM_LOCALID=str(p % 2), SLURM_NODEID=str(p // 2), **step)[0]
                 for p in (0, 3)]
        self.assertEqual([ranks[1][n] for n in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE",
                                                "NODE_RANK", "MASTER_ADDR")], ["3", "1", "6", "2", "1", "gpu03"])
        self.assertEqual(ranks[0]["MASTER_PORT"], ranks[1]["MASTER_PORT"])

    def test_batch_script_of_slurm_is_no_rank(self):
        self.assertEqual(self.shown(SLURM_PROCID="0", SLURM_NTASKS="4", SLURM_LOCALID="0")[0]["WORLD_SIZE"], "1")

    def test_under_mpirun(self):
        ranks = [self.shown(OMPI_COMM_WORLD_RANK=str(r), OMPI_COMM_WORLD_SIZE="2",
                            OMPI_COMM_WORLD_LOCAL_RANK=str(r), OMPI_COMM_WORLD_LOCAL_SIZE="2")[0] for r in (0, 1)]
        self.assertEqual([(r["RANK"], r["LOCAL_RANK"], r["WORLD_SIZE"]) for r in ranks],
                         [("0", "0", "2"), ("1", "1", "2")])
        self.assertEqual(ranks[0]["MASTER_PORT"], ranks[1]["MASTER_PORT"])
        rank, = self.shown(PMI_RANK="1", PMI_SIZE="4", MPI_LOCALRANKID="1", MPI_LOCALNRANKS="4")
        self.assertEqual((rank["RANK"], rank["WORLD_SIZE"], rank["LOCAL_WORLD_SIZE"]), ("1", "4", "4"))

    def test_wrappers_of_mpi_ranks_do_not_change_the_port(self):
        ports = set()
        for rank in ("0", "1"):
            env = dict(PMI_RANK=rank, PMI_SIZE="2", MPI_LOCALRANKID=rank, MPI_LOCALNRANKS="2")
            run = subprocess.run(["sh", "-c", '"$@"; true', "wrapper", launching.tool, "--", *SHOW],
                                 env=self.environment(**env), capture_output=True, text=True, timeout=60,
                                 check=False)
            ports.add(variables(run.stdout)["MASTER_PORT"])
        self.assertEqual(len(ports), 1)

    def test_ranks_given_win_over_an_outer_launcher(self):
        self.assertEqual(len(self.shown("-n2", RANK="5", WORLD_SIZE="8")), 2)

    def test_incomplete_outer_environment(self):
        for env, word in (({"RANK": "0", "WORLD_SIZE": "2"}, "MASTER_ADDR"),
                          ({"RANK": "9", "WORLD_SIZE": "2", "MASTER_ADDR": "h", "MASTER_PORT": "1"}, "cannot be"),
                          ({"OMPI_COMM_WORLD_RANK": "0"}, "OMPI_COMM_WORLD_SIZE"),
                          ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK='x'")):
            run = self.run_tool("--", "true", env=env)
            self.assertEqual(run.returncode, 2, env)
            self.assertIn(word, run.stderr)


class Output(LaunchTest):
    def test_whole_lines_with_their_rank(self):
        code = python(textwrap.dedent("""
            import os, sys, time
            for i in range(40):
                for part in ('begin ', os.environ['RANK'] * 50, f' {i}\\n'):
                    sys.stdout.write(part); sys.stdout.flush()
                    time.sleep(0.001)
            sys.stdout.write('no line end')
        """))
        run = self.run_tool("-n", "4", "--", *code)
        self.assertEqual(run.returncode, 0, run.stderr)
        expected = [f"[rank {r}] begin {str(r) * 50} {i}" for r in range(4) for i in range(40)]
        expected += [f"[rank {r}] no line end" for r in range(4)]
        self.assertEqual(sorted(run.stdout.splitlines()), sorted(expected))
        self.assertTrue(run.stdout.endswith("\n"))

    def test_log_files(self):
        with tempfile.TemporaryDirectory() as folder:
            said = f"{folder}/said-$TORCHELASTIC_RESTART_COUNT"  # rank 1 must not fail before rank 0 has written
            run = self.run_tool("-n", "2", "--log-dir", f"{folder}/logs", "--rdzv-id", "run", "--max-restarts=1",
                                "--", "sh", "-c", "echo out $RANK; echo err $RANK >&2; "
                                f"test $RANK = 1 || {{ touch {said}; sleep 600; }}; "
                                f"until test -e {said}; do sleep 0.02; done; exit 4")
            self.assertEqual(run.returncode, 4)
            directory, = os.listdir(f"{folder}/logs")
            self.assertTrue(directory.startswith("run_"))
            for attempt in range(2):
                for rank in range(2):
                    for stream in ("out", "err"):
                        path = f"{folder}/logs/{directory}/attempt_{attempt}/{rank}/std{stream}.log"
                        with open(path, encoding="utf-8") as file:
                            self.assertEqual(file.read(), f"{stream} {rank}\n")

    def test_reader_that_goes_away(self):
        command = f"'{launching.tool}' -n 2 -- sh -c 'while :; do echo line; done' | head -n 1; echo ${{PIPESTATUS[0]}}"
        run = subprocess.run(["bash", "-c", command], env=self.environment(), capture_output=True, text=True,
                             timeout=30, check=False)
        self.assertIn("line", run.stdout.splitlines()[0])
        self.assertEqual(run.stdout.splitlines()[-1], "141")

    def test_full_disk(self):
        with open("/dev/full", "wb") as full:
            run = self.run_tool("-n", "2", "--", "echo", "line", stdout=full)
        self.assertEqual(run.returncode, 141)
        self.assertIn("cannot write to standard output: No space left on device", run.stderr)

    def test_reader_that_stalls_does_not_keep_ranks_alive(self):
        flood = ["sh", "-c", "if [ $RANK = 1 ]; then sleep 1; exit 7; fi; while :; do echo flood; done"]
        with self.start("-n", "3", "--", *flood) as process:
            # Nobody reads: the launcher, the guard and no rank remain.
            self.assertTrue(wait_until(lambda: len(marked_processes(self.mark)) > 2, 10))
            self.assertTrue(wait_until(lambda: len(marked_processes(self.mark)) <= 2, 10))
            self.assertIsNone(process.poll())
            process.communicate(timeout=60)
            self.assertEqual(process.returncode, 7)


class Errors(LaunchTest):
    def expect(self, code, words, *arguments, **env):
        run = self.run_tool(*arguments, env=env)
        self.assertEqual(run.returncode, code, run.stderr)
        self.assertTrue(run.stderr.startswith("device-run: "), run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)

    def test_usage(self):
        self.expect(2, ["unknown option '--nporc'", "--nproc-per-node"], "--nporc", "2", "--", "true")
        self.expect(2, ["no program"], "-n", "2")
        self.expect(2, ["from 1 to 4096", "'zero'"], "-n", "zero", "--", "true")
        self.expect(2, ["--timeout needs a value"], "--timeout", "--", "true")
        self.expect(2, ["takes no value"], "--isolate=1", "--", "true")
        self.expect(2, ["24G"], "--virtual-gpus=1", "--gpu-memory=lots", "--", "true")
        self.expect(2, ["--trace needs --virtual-gpus"], "--trace=t.json", "--", "true")
        self.expect(2, ["--rdzv-endpoint"], "--nnodes=2", "--", "true")
        self.expect(2, ["--node-rank 2 does not exist"], "--nnodes=2", "--node-rank=2", "--", "true")

    def test_program_that_cannot_run(self):
        with tempfile.TemporaryDirectory() as folder:
            def make(name, text, mode):
                path = f"{folder}/{name}"
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                os.chmod(path, mode)
                return path
            make("train", "", 0o755)
            self.expect(127, ["no such file", "there is"], "--", f"{folder}/trian")
            self.expect(127, ["PATH"], "--", "no-such-program-at-all")
            self.expect(126, ["directory"], "--", folder)
            self.expect(126, ["python3"], "--", make("a.py", "print(1)", 0o644))
            self.expect(126, ["source file"], "--", make("a.cpp", "int x;", 0o644))
            self.expect(126, ["neither a program"], "-n", "2", "--", make("text", "hello", 0o755))
            self.expect(127, ["interpreter"], "--", make("script", "#!/no/such/interpreter\n", 0o755))

    def test_log_directory_that_cannot_be_made(self):
        self.expect(125, ["--log-dir"], "--log-dir=/proc/logs", "--", "true")


class Ending(LaunchTest):
    def test_exit_codes(self):
        for command, code in (("exit 0", 0), ("exit 3", 3), ("kill -SEGV $$", 139), ("kill -TERM $$", 143)):
            self.assertEqual(self.run_tool("--", "sh", "-c", command).returncode, code)
            run = self.run_tool("-n", "2", "--", "sh", "-c", f"test $RANK = 0 || {{ {command}; }}")
            self.assertEqual(run.returncode, code)
        self.assertIn("the program was ended by SIGSEGV", self.run_tool("--", "sh", "-c", "kill -SEGV $$").stderr)
        self.assertIn("the program ended with exit code 139", self.run_tool("--", "sh", "-c", "exit 139").stderr)

    def test_first_failure_is_told(self):
        run = self.run_tool("-n", "3", "--", "sh", "-c", "case $RANK in 0) trap 'exit 9' TERM; sleep 600 & wait;; "
                            "1) echo the reason >&2; exit 5;; *) sleep 600;; esac")
        self.assertEqual(run.returncode, 5)
        self.assertIn("rank 1 failed, exit code 5; ending the other ranks", run.stderr)
        summary = run.stderr[run.stderr.index("rank 1 failed first: exit code 5"):]
        self.assertIn("    the reason\n", summary)
        self.assertIn("ended with it: rank 0, 2", summary)

    def test_killing_a_rank_ends_the_job(self):
        with tempfile.TemporaryDirectory() as folder:
            code = f"import os; open(f'{folder}/' + os.environ['RANK'], 'w').write(str(os.getpid()))\n"
            with self.start("-n", "4", "--", *python(code + STUBBORN[-1])) as process:
                self.wait_for_processes(2 + 4 * STUBBORN_PROCESSES)
                time.sleep(0.3)
                with open(f"{folder}/2", encoding="utf-8") as file:
                    victim = int(file.read())
                killed = time.monotonic()
                os.kill(victim, signal.SIGKILL)
                _, err = process.communicate(timeout=30)
                seconds = time.monotonic() - killed
        print(f"\nall ranks ignoring SIGTERM: the job ended {seconds:.2f} s after a rank was killed")
        self.assertEqual(process.returncode, 137)
        self.assertIn("rank 2 failed first: ended by SIGKILL", err)
        self.assertLess(seconds, 10)
        self.assertEqual(marked_processes(self.mark), [])

    def test_killing_a_rank_of_well_behaved_ones(self):
        with self.start("-n", "4", "--", *SLEEPER) as process:
            self.wait_for_processes(6)
            time.sleep(0.3)
            victim = max(marked_processes(self.mark))
            killed = time.monotonic()
            os.kill(victim, signal.SIGKILL)
            process.communicate(timeout=30)
            seconds = time.monotonic() - killed
        print(f"\nordinary ranks: the job ended {seconds:.2f} s after a rank was killed")
        self.assertEqual(process.returncode, 137)
        self.assertLess(seconds, 3)

    def interrupt(self, send, code, ranks=STUBBORN, count=STUBBORN_PROCESSES):
        with self.start("-n", "2", "--kill-after=2", "--", *ranks, start_new_session=True) as process:
            self.wait_for_processes(2 + 2 * count)
            time.sleep(0.3)
            send(process.pid)
            process.communicate(timeout=30)
        self.assertEqual(process.returncode, code)
        self.assertEqual(marked_processes(self.mark), [])

    def test_interrupt(self):
        self.interrupt(lambda pid: os.killpg(pid, signal.SIGINT), 130)

    def test_terminate(self):
        self.interrupt(lambda pid: os.kill(pid, signal.SIGTERM), 143)

    def test_hang_up(self):
        self.interrupt(lambda pid: os.kill(pid, signal.SIGHUP), 129, ranks=SLEEPER, count=1)

    # Saves for longer than a failed rank would get, says which signals came, and has a child that ignores SIGINT.
    SAVER = python(textwrap.dedent("""
        import os, signal, time
        came = []
        for name in ('SIGINT', 'SIGTERM'):
            signal.signal(getattr(signal, name), lambda number, frame: came.append(number))
        if os.fork() == 0:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            time.sleep(600)
        print('up', flush=True)
        while not came:
            time.sleep(0.02)
        end = time.monotonic() + 4
        while time.monotonic() < end:
            time.sleep(0.02)
        print('saved after', [signal.Signals(number).name for number in came], flush=True)
        os._exit(0)
    """))

    def test_ranks_get_the_signal_and_the_time_to_save(self):
        for sent in (signal.SIGINT, signal.SIGTERM):
            with self.start("-n", "2", "--", *self.SAVER) as process:
                self.assertEqual({process.stdout.readline() for _ in range(2)}, {"[rank 0] up\n", "[rank 1] up\n"})
                os.kill(process.pid, sent)
                out, err = process.communicate(timeout=40)
            self.assertEqual(process.returncode, 128 + sent, err)
            self.assertEqual(out.count(f"saved after ['{sent.name}']"), 2, (out, err))
            self.assertIn("which have 30 s", err)

    def test_hang_up_under_nohup(self):
        def ignoring():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

        with self.start("-n", "2", "--", "sh", "-c", "sleep 1; echo done", preexec_fn=ignoring) as process:
            self.wait_for_processes(4)
            os.kill(process.pid, signal.SIGHUP)
            out, _ = process.communicate(timeout=30)
        self.assertEqual((process.returncode, out.count("done")), (0, 2))

    def test_interrupt_where_it_is_ignored(self):
        def ignoring():
            signal.signal(signal.SIGINT, signal.SIG_IGN)

        began = time.monotonic()
        with self.start("-n", "2", "--", "sleep", "600", preexec_fn=ignoring) as process:
            self.wait_for_processes(4)
            time.sleep(0.3)
            os.kill(process.pid, signal.SIGINT)
            process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)
        self.assertLess(time.monotonic() - began, 15)

    def test_interrupt_twice_kills_at_once(self):
        def send(pid):
            os.kill(pid, signal.SIGINT)
            time.sleep(0.8)
            os.kill(pid, signal.SIGINT)
        began = time.monotonic()
        self.interrupt(send, 130)
        self.assertLess(time.monotonic() - began, 8)

    def job_process(self, guardian):
        """The child that the process we started runs the job in."""
        with open(f"/proc/{guardian}/task/{guardian}/children", encoding="utf-8") as file:
            return int(file.read().split()[0])

    def test_killing_the_job_process(self):
        self.interrupt(lambda pid: os.kill(self.job_process(pid), signal.SIGKILL), 137)

    def test_killing_the_launcher(self):
        with self.start("-n", "2", "--", *STUBBORN) as process:
            self.wait_for_processes(2 + 2 * STUBBORN_PROCESSES)
            time.sleep(0.3)
            process.kill()
            process.communicate(timeout=30)
        self.assertTrue(wait_until(lambda: not marked_processes(self.mark), 10), "ranks outlived the launcher")

    def test_ctrl_c_on_a_terminal(self):
        for ranks in ("1", "2"):
            pid, terminal = pty.fork()
            if pid == 0:
                os.execve(launching.tool, [launching.tool, "-n", ranks, "--", *SLEEPER], self.environment())
            self.wait_for_processes(2 + int(ranks))
            time.sleep(0.3)
            os.write(terminal, b"\x03")
            _, status = os.waitpid(pid, 0)
            os.close(terminal)
            self.assertEqual(os.waitstatus_to_exitcode(status), 130)
            self.assertEqual(marked_processes(self.mark), [])

    def test_ctrl_c_comes_once(self):
        code = python(textwrap.dedent("""
            import signal, time
            came = []
            signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
            print('up', flush=True)
            end = time.monotonic() + 600
            while time.monotonic() < end:
                time.sleep(0.02)
                if len(came) == 1 and end - time.monotonic() > 1:
                    end = time.monotonic() + 1
            print('interrupts:', len(came), flush=True)
        """))
        for ranks in (1, 2):
            pid, terminal = pty.fork()
            if pid == 0:
                os.execve(launching.tool, [launching.tool, "-n", str(ranks), "--", *code], self.environment())
            shown = b""
            sent = False
            # A terminal gives a line in pieces: only one with its end is whole.
            while len(re.findall(rb"interrupts: \d+\r?\n", shown)) < ranks:
                shown += os.read(terminal, 4096)
                if not sent and shown.count(b"up") == ranks:
                    os.write(terminal, b"\x03")
                    sent = True
            _, status = os.waitpid(pid, 0)
            os.close(terminal)
            self.assertEqual(os.waitstatus_to_exitcode(status), 130)
            self.assertEqual(shown.count(b"interrupts: 1"), ranks, shown)

    def test_timeout(self):
        began = time.monotonic()
        run = self.run_tool("-n", "2", "--timeout", "1.5", "--", *SLEEPER)
        self.assertEqual(run.returncode, 124)
        self.assertIn("--timeout", run.stderr)
        self.assertLess(time.monotonic() - began, 6)

    def test_processes_left_by_ranks_that_succeed(self):
        run = self.run_tool("-n", "2", "--", "sh", "-c", "setsid sleep 600 & exit 0")
        self.assertEqual(run.returncode, 0)
        self.assertIn("left processes behind", run.stderr)

    def test_restart(self):
        program = ("sh", "-c", "test $RANK = 0 || test $TORCHELASTIC_RESTART_COUNT = 2 || exit 6; "
                               "test $TORCHELASTIC_RESTART_COUNT = 2 || sleep 600; echo port $MASTER_PORT")
        run = self.run_tool("-n", "2", "--max-restarts", "3", "--", *program)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("restart 2 of 3", run.stderr)
        self.assertNotIn("restart 3 of 3", run.stderr)
        run = self.run_tool("-n", "2", "--max-restarts", "1", "--", *program)
        self.assertEqual(run.returncode, 6)


class Rendezvous(LaunchTest):
    # Rank 0 binds without SO_REUSEADDR, the strictest of programs.
    MEET = python(textwrap.dedent("""
        import os, socket, time
        rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
        where = (os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']))
        job = os.environ['TORCHELASTIC_RUN_ID'].encode()
        if rank == 0:
            server = socket.socket()
            server.bind(where)
            server.listen()
            peers = [server.accept()[0] for _ in range(world - 1)]
            assert all(peer.recv(100) == job for peer in peers)
            for peer in peers:
                peer.sendall(b'go')
            print('port', where[1])
        else:
            for attempt in range(1000):
                try:
                    peer = socket.create_connection(where)
                    break
                except ConnectionRefusedError:
                    time.sleep(0.02)
            peer.sendall(job)
            assert peer.recv(100) == b'go'
    """))

    def test_launchers_side_by_side(self):
        for _ in range(3):
            jobs = [self.start("-n", "3", "--timeout", "60", "--rdzv-id", f"job{i}", "--", *self.MEET)
                    for i in range(3)]
            outputs = [job.communicate(timeout=90) for job in jobs]
            self.assertEqual([job.returncode for job in jobs], [0, 0, 0], outputs)
            self.assertEqual(len({out for out, _ in outputs}), 3)


if __name__ == "__main__":
    launching.main()
