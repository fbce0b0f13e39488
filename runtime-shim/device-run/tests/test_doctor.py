"""device-run doctor: its verdicts on real files and environments, and on a driver of a given machine."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile

import launching
from launching import LaunchTest

DRIVER = pathlib.Path(__file__).with_name("driver_library.c")
# Variables of the machine the tests run on that the doctor reads as well.
OWN_PREFIXES = ("CUDA_", "NCCL_", "TORCH_", "GLOO_", "ACCELERATE_", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX",
                "LD_LIBRARY_PATH", "PYENV_ROOT")
A100 = "NVIDIA A100-SXM4-80GB|GPU-{0}1111111-aaaa|80|0|8.0"
RANKS = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "127.0.0.1",
         "MASTER_PORT": "29400"}


# A program without LibTorch: whichever is installed on this machine, from Debian or for Python, says nothing then.
NO_TORCH = ("--program", os.path.realpath("/bin/sh"))


class DoctorTest(LaunchTest):
    """A folder that is the home of the doctor's user, so that nothing of this machine's packages shows."""

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(tempfile.mkdtemp())

    def tearDown(self):
        shutil.rmtree(self.folder)
        super().tearDown()

    def environment(self, **extra):
        own = {name: value for name, value in super().environment().items() if not name.startswith(OWN_PREFIXES)}
        return {**own, "HOME": str(self.folder), "PATH": "/usr/bin:/bin", **extra}

    def examine(self, *arguments, **env):
        """The exit code, and the lines of the report by their id."""
        run = self.run_tool("doctor", "--format=json", *map(str, arguments), env=env)
        self.assertIn(run.returncode, (0, 1), run.stderr)
        report = json.loads(run.stdout)
        self.assertEqual(report["version"], 1)
        self.assertEqual(run.returncode, 1 if report["problems"] else 0)
        for line in report["lines"]:
            self.assertEqual("next" in line, line["verdict"] != "ok", line)
        return {line["id"]: line for line in report["lines"]}

    def expect(self, lines, identifier, verdict, *parts):
        self.assertIn(identifier, lines)
        line = lines[identifier]
        self.assertEqual(line["verdict"], verdict, line)
        for part in parts:
            self.assertIn(part, line["text"] + line.get("next", "") + line.get("place", ""))

    def file(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2), encoding="utf-8")
        return path


class CommandLine(DoctorTest):
    def test_text_report(self):
        run = self.run_tool("doctor", *NO_TORCH, str(self.file("ds.json", {"zero_optimization": {"stage": 5}})))
        self.assertEqual(run.returncode, 1)
        self.assertRegex(run.stdout, r"(?m)^problem  deepspeed +\S+ds.json:3: there is no ZeRO stage 5$")
        self.assertRegex(run.stdout, r"(?m)^ +-> 2 shards gradients")
        self.assertRegex(run.stdout.splitlines()[-1], r"^1 problem, \d+ warnings?$")

    def test_strict(self):
        env = {"NCCL_P2P_DISABLE": "1"}
        self.assertEqual(self.run_tool("doctor", *NO_TORCH, env=env).returncode, 0)
        self.assertEqual(self.run_tool("doctor", *NO_TORCH, "--strict", env=env).returncode, 1)

    def test_wrong_use(self):
        for arguments, part in [(["--fromat=json"], "did you mean --format?"), (["--format=xml"], "'xml'"),
                                (["--program", "/nowhere"], "/nowhere is not a file"), (["--format"], "needs a value"),
                                ([str(self.folder)], "it is a folder"),
                                (["/nowhere.json"], "cannot read the configuration file /nowhere.json: No such")]:
            run = self.run_tool("doctor", *arguments)
            self.assertEqual((run.returncode, run.stdout), (2, ""), arguments)
            self.assertIn(part, run.stderr)

    def test_help(self):
        run = self.run_tool("doctor", "--help")
        self.assertEqual(run.returncode, 0)
        self.assertIn("--site-packages DIR", run.stdout)


class Driver(DoctorTest):
    """With a driver library for a machine that the environment describes."""

    @classmethod
    def setUpClass(cls):
        cls.driver = pathlib.Path(tempfile.mkdtemp())
        subprocess.run([launching.compiler, "-x", "c", "-shared", "-fPIC", "-o", str(cls.driver / "libnvidia-ml.so.1"),
                        str(DRIVER)], check=True)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.driver)

    def environment(self, **extra):
        path = ":".join(filter(None, [str(self.driver), extra.pop("LD_LIBRARY_PATH", "")]))
        return super().environment(LD_LIBRARY_PATH=path, **extra)

    GPUS = {"GPUS": ";".join(A100.format(letter) for letter in "abcd")}

    def cuda_torch(self, version, cuda):
        """The folders of a PyTorch wheel, as far as the doctor reads them."""
        site = self.folder / "venv/lib/python3.11/site-packages"
        self.file(site / "torch/version.py", f"__version__ = '{version}'\ncuda: str = '{cuda}'\n")
        for library in ("libtorch_cpu.so", "libtorch_cuda.so"):
            self.file(site / "torch/lib" / library, "")
        return {"VIRTUAL_ENV": str(self.folder / "venv")}

    def test_python_environment(self):
        environment = self.cuda_torch("2.11.0+cu130", "13.0")
        site = self.folder / "venv/lib/python3.11/site-packages"
        for package in ("accelerate-1.15.0", "peft-0.21.2"):
            self.file(site / f"{package}.dist-info/METADATA", "")
        run = self.run_tool("doctor", "--format", "json", env=environment)
        texts = [line["text"] for line in json.loads(run.stdout)["lines"] if line["topic"] == "python"]
        self.assertEqual(texts[0], "PyTorch 2.11.0+cu130 for Python 3.11, a build for CUDA, in "
                                   f"{site}; with accelerate 1.15.0, peft 0.21.2")

    def virtual_gpus_for(self, version, *builds):
        """What is said of a PyTorch for the CPU in Python 3.11, where virtual GPUs are built for `builds`."""
        site = self.folder / "venv/lib/python3.11/site-packages"
        self.file(site / "torch/version.py", f"__version__ = '{version}'\n")
        self.file(site / "torch/lib/libtorch_cpu.so", "")
        library = self.file("virtual/libvirtual_cuda.so", "")
        for build in builds:
            self.file(f"virtual/virtual_cuda_python/native-{build}-x86_64-linux-gnu.so", "")
        environment = {"VIRTUAL_ENV": str(self.folder / "venv"), "DEVICE_TIDY_VIRTUAL_CUDA": str(library)}
        run = self.run_tool("doctor", "--format", "json", env=environment)
        # The machine may have a PyTorch of its own.
        lines = [line for line in json.loads(run.stdout)["lines"] if str(site) in line["text"]]
        (line,) = [line for line in lines if line["id"].endswith("virtual-gpus")]
        return line, site

    def test_virtual_gpus_for_python(self):
        line, site = self.virtual_gpus_for("2.13.0+cpu", "1.13.cpython-311", "2.13.cpython-311")
        self.assertEqual((line["id"], line["verdict"]), ("python-virtual-gpus", "ok"))
        self.assertEqual(line["text"], f"virtual GPUs are built for the PyTorch in {site}")

    def test_virtual_gpus_for_another_pytorch(self):
        known = ", but for PyTorch 1.13 for Python 3.11, PyTorch 2.12 for Python 3.12"
        for builds, rest in (([], ""), (["1.13.cpython-311", "2.12.cpython-312"], known)):
            line, site = self.virtual_gpus_for("2.12.1+cpu", *builds)
            self.assertEqual((line["id"], line["verdict"]), ("python-no-virtual-gpus", "warning"))
            self.assertEqual(line["text"], f"virtual GPUs are not built for the PyTorch in {site}{rest}")
            self.assertIn("scripts/build-wheel.sh PYTHON", line["next"])

    def test_driver_and_gpus(self):
        run = self.run_tool("doctor", "--format", "json", env=self.GPUS)
        lines = json.loads(run.stdout)["lines"]
        self.assertIn("NVIDIA driver 550.54.14, runs CUDA up to 12.4", [line["text"] for line in lines])
        self.assertIn("cuda:3 is GPU 3, NVIDIA A100-SXM4-80GB, 80.0 GiB, 0 B used", [line["text"] for line in lines])

    def test_driver_that_fails(self):
        self.expect(self.examine(DRIVER_FAILS="1"), "driver-failure", "problem", "version mismatch", "restart")

    def test_driver_older_than_cuda(self):
        lines = self.examine(**self.GPUS, **self.cuda_torch("2.11.0+cu130", "13.0"))
        self.expect(lines, "driver-too-old", "problem", "CUDA 13.0", "550.54.14 runs CUDA 12.4", "580")

    def test_newer_minor_version(self):
        lines = self.examine(**self.GPUS, **self.cuda_torch("2.7.0+cu128", "12.8"))
        self.expect(lines, "minor-version-compatibility", "warning", "12.8", "12.4")
        self.assertNotIn("driver-too-old", lines)

    def test_fitting_version(self):
        lines = self.examine(**self.GPUS, **self.cuda_torch("2.6.0+cu124", "12.4"))
        self.assertEqual([line for line in lines.values() if line["verdict"] == "problem"], [])
        self.assertNotIn("minor-version-compatibility", lines)

    def test_gpu_that_cuda_dropped_or_does_not_know(self):
        gpus = "Tesla V100|GPU-1|32|0|7.0"
        lines = self.examine(GPUS=gpus, DRIVER_CUDA="13000", **self.cuda_torch("2.11.0+cu130", "13.0"))
        self.expect(lines, "gpu-too-old", "problem", "Tesla V100", "7.0", "LibTorch for CUDA 12")
        gpus = "NVIDIA B200|GPU-1|180|0|10.0"
        lines = self.examine(GPUS=gpus, DRIVER_CUDA="12080", **self.cuda_torch("2.6.0+cu124", "12.4"))
        self.expect(lines, "gpu-too-new", "problem", "no kernel image", "12.8")

    def test_memory_in_use(self):
        lines = self.examine(GPUS="NVIDIA A100|GPU-1|80|60|8.0")
        self.expect(lines, "gpu-in-use", "warning", "60.0 GiB used", "nvidia-smi")

    def test_visible_devices(self):
        def verdict(value, identifier, kind, *parts):
            self.expect(self.examine(CUDA_VISIBLE_DEVICES=value, **self.GPUS), identifier, kind, *parts)
        verdict("2,3", "visible-renumbered", "ok", "cuda:0 is GPU 2, cuda:1 is GPU 3")
        verdict("0,1", "visible", "ok", "cuda:1 is GPU 1")
        verdict("1,0,1", "visible-repeated", "problem", "'1' twice", "no GPU at all")
        verdict("GPU-c,2", "visible-repeated", "problem", "'2' twice")
        verdict("GPU-d1111111,GPU-a", "visible-renumbered", "ok", "cuda:0 is GPU 3, cuda:1 is GPU 0")
        verdict("GPU-", "visible-wrong", "problem", "beginning of several UUIDs")
        verdict("GPU-f", "visible-wrong", "problem", "UUID of no GPU")
        verdict("0,7,1", "visible-wrong", "problem", "'7' does not exist", "shows the 1 before it, nothing after")
        verdict("0,-1,2", "visible-wrong", "problem", "negative")
        verdict("gpu0", "visible-wrong", "problem", "neither a number nor a UUID")
        verdict("1gpu, 2nd", "visible-renumbered", "ok", "cuda:0 is GPU 1, cuda:1 is GPU 2")
        verdict("0,,1", "visible-wrong", "problem", "'' is an empty entry", "shows the 1 before it, nothing after")
        verdict("1,0,", "visible-renumbered", "ok", "cuda:0 is GPU 1, cuda:1 is GPU 0")
        for hidden in ("", "-1", "NoDevFiles"):
            verdict(hidden, "visible-empty", "warning", "hides all GPUs")

    def test_ranks_and_devices(self):
        lines = self.examine(**self.GPUS, **RANKS)
        self.expect(lines, "local-rank", "ok", "local rank 1 has cuda:1; 4 GPUs are visible")
        lines = self.examine(CUDA_VISIBLE_DEVICES="3", **self.GPUS, **RANKS)
        self.expect(lines, "local-rank-without-gpu", "problem", "cuda:1 does not exist", "cuda:0 for each")
        lines = self.examine(CUDA_VISIBLE_DEVICES="0,1", **self.GPUS, **RANKS)
        self.expect(lines, "more-ranks-than-gpus", "problem", "4 ranks", "2 GPUs are visible")
        lines = self.examine(**self.GPUS, **{**RANKS, "LOCAL_RANK": "5", "LOCAL_WORLD_SIZE": "8", "WORLD_SIZE": "8"})
        self.expect(lines, "local-rank-without-gpu", "problem", "LOCAL_RANK is 5")

    def test_bfloat16_on_an_old_gpu(self):
        config = self.file("ds.json", {"bf16": {"enabled": True}, "zero_optimization": {"stage": 2}})
        lines = self.examine(config, GPUS="Tesla V100|GPU-1|32|0|7.0")
        self.expect(lines, "bf16-old-gpu", "warning", "Tesla V100", "use fp16", "ds.json:2")


class Libraries(DoctorTest):
    def test_cuda_build_without_driver(self):
        site = self.folder / ".local/lib/python3.12/site-packages"
        self.file(site / "torch/version.py", "__version__ = '2.6.0+cu124'\ncuda = '12.4'\n")
        self.file(site / "torch/lib/libtorch_cpu.so", "")
        self.file(site / "torch/lib/libtorch_cuda.so", "")
        lines = self.examine()
        if "no-driver" not in lines:
            self.skipTest("this machine has a driver")
        self.expect(lines, "no-driver", "warning", "--virtual-gpus")
        self.expect(lines, "cuda-build-without-driver", "problem", "2.6.0+cu124", "525")

    def test_version_of_an_archive(self):
        self.file("libtorch/build-version", "2.5.1+cpu\n")
        self.file("libtorch/lib/libtorch_cpu.so", "")
        run = self.run_tool("doctor", env={"TORCH_ROOT": str(self.folder / "libtorch")})
        self.assertIn(f"LibTorch 2.5.1+cpu in {self.folder}/libtorch/lib, for the CPU", run.stdout)

    def test_program_without_libtorch(self):
        lines = self.examine("--program", "/bin/sh")
        self.expect(lines, "no-libtorch", "warning", "no LibTorch was found")

    def test_virtual_gpus(self):
        # As in a rank of device-run --virtual-gpus 2; the loader passes over what it cannot preload.
        lines = self.examine(LD_PRELOAD=str(self.folder / "libvirtual_cuda.so"), VIRTUAL_GPUS="2", **RANKS)
        self.expect(lines, "virtual-gpus", "ok", "2 virtual GPUs")
        self.expect(lines, "more-ranks-than-gpus", "problem", "4 ranks")


class Distributed(DoctorTest):
    def test_coherent(self):
        lines = self.examine(**RANKS)
        self.expect(lines, "ranks", "ok", "rank 1 of 4")
        self.expect(lines, "master-addr", "ok", "127.0.0.1")

    def test_none(self):
        self.expect(self.examine(), "single", "ok")

    def test_contradictions(self):
        def verdict(identifier, changes, *parts):
            env = {name: value for name, value in {**RANKS, **changes}.items() if value is not None}
            self.expect(self.examine(**env), identifier, "problem", *parts)
        verdict("rank-out-of-range", {"RANK": "4"}, "RANK is 4, but WORLD_SIZE is 4")
        verdict("rank-out-of-range", {"LOCAL_RANK": "4"}, "LOCAL_RANK is 4, but LOCAL_WORLD_SIZE is 4")
        verdict("not-a-number", {"WORLD_SIZE": "four"}, "WORLD_SIZE='four'")
        verdict("half-set", {"RANK": None}, "WORLD_SIZE is set, but RANK is not")
        verdict("local-world-size", {"LOCAL_WORLD_SIZE": "8"}, "more than WORLD_SIZE")
        verdict("no-master-addr", {"MASTER_ADDR": None}, "MASTER_ADDR")
        verdict("master-addr-unknown", {"MASTER_ADDR": "no.such.host.invalid"}, "no.such.host.invalid")
        verdict("no-master-port", {"MASTER_PORT": None}, "MASTER_PORT")
        verdict("master-port-range", {"MASTER_PORT": "99999"}, "99999")
        verdict("master-addr-loopback", {"LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "2"}, "127.0.0.1", "several")

    def test_negative_local_rank(self):
        alone = {"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "-1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29400"}
        self.expect(self.examine(**alone), "rank-out-of-range", "problem", "LOCAL_RANK is -1")

    def test_port_in_use(self):
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            port = str(listening.getsockname()[1])
            first = {**RANKS, "RANK": "0", "LOCAL_RANK": "0", "MASTER_PORT": port}
            self.expect(self.examine(**first), "master-port-in-use", "problem", port)
            # torchrun's agent is that other program.
            self.expect(self.examine(**first, TORCHELASTIC_USE_AGENT_STORE="True"), "master-port", "ok")

    def test_as_a_rank_of_device_run(self):
        run = self.run_tool("-n", "2", "--", launching.tool, "doctor", "--format=json", *NO_TORCH)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn('"rank 1 of 2"', run.stdout)
        self.assertNotIn("in-use", run.stdout)

    def test_launchers_that_do_not_say(self):
        lines = self.examine(SLURM_STEP_NUM_TASKS="8", SLURM_PROCID="3")
        self.expect(lines, "launcher-without-ranks", "warning", "srun started 8", "device-run -- PROGRAM")
        self.expect(self.examine(LOCAL_RANK="1"), "local-rank-alone", "warning", "unset LOCAL_RANK")

    def test_bypassed_error(self):
        self.expect(self.examine(ACCELERATE_BYPASS_DEVICE_MAP="true"), "bypass-device-map", "warning")


class Communication(DoctorTest):
    def test_traps(self):
        lines = self.examine(NCCL_SOKET_IFNAME="lo")
        self.expect(lines, "misspelt-variable", "warning", "NCCL_SOKET_IFNAME", "NCCL_SOCKET_IFNAME?")
        self.expect(self.examine(NCCL_TIMEOUT="60"), "no-such-variable", "warning", "timeout=")
        self.expect(self.examine(NCCL_SOCKET_IFNAME="eth77"), "no-interface", "problem", "eth77", "lo")
        self.expect(self.examine(GLOO_SOCKET_IFNAME="l"), "no-interface", "problem")
        self.expect(self.examine(NCCL_SOCKET_IFNAME="=lo"), "interface", "ok")
        self.expect(self.examine(NCCL_SOCKET_IFNAME="lo", GROUP_WORLD_SIZE="2"), "loopback-interface", "problem")
        self.expect(self.examine(NCCL_P2P_DISABLE="1"), "slow-path", "warning", "directly")
        self.expect(self.examine(NCCL_ALGO="Ring"), "pinned-choice", "warning")
        self.expect(self.examine(NCCL_HOSTID="a"), "hostid", "warning")
        self.expect(self.examine(TORCH_DISTRIBUTED_DEBUG="verbose"), "debug-level", "problem", "DETAIL")

    def test_no_traps(self):
        lines = self.examine(NCCL_P2P_DISABLE="0", NCCL_DEBUG="INFO", NCCL_IB_HCA="mlx5", NCCL_FUTURE_THING="1",
                             TORCH_DISTRIBUTED_DEBUG="info", NCCL_SOCKET_IFNAME="^docker")
        self.assertEqual([line for line in lines.values() if line["topic"] == "communication"
                          and line["verdict"] != "ok"], [])

    def test_variables_renamed_in_torch_2_2(self):
        self.file("libtorch/build-version", "2.5.1+cpu\n")
        self.file("libtorch/lib/libtorch_cpu.so", "")
        lines = self.examine(TORCH_ROOT=str(self.folder / "libtorch"), NCCL_BLOCKING_WAIT="1")
        self.expect(lines, "renamed-variable", "warning", "TORCH_NCCL_BLOCKING_WAIT")


class ZeroConfiguration(DoctorTest):
    GOOD = {"zero_optimization": {
        "stage": 3, "offload_optimizer": {"device": "cpu", "pin_memory": True},
        "offload_param": {"device": "cpu", "pin_memory": True}, "stage3_gather_16bit_weights_on_model_save": True},
        "gradient_clipping": 1.0, "fp16": {"enabled": "auto"}, "train_batch_size": "auto"}

    def zero(self, **changes):
        return {**self.GOOD, "zero_optimization": {**self.GOOD["zero_optimization"], **changes}}

    def check(self, config, **env):
        return self.examine(self.file("zero.json", config), **env)

    def test_good(self):
        lines = self.check(self.GOOD)
        self.expect(lines, "config", "ok", "ZeRO stage 3, optimizer offloaded to cpu, parameters to cpu")

    def test_pin_memory(self):
        lines = self.check(self.zero(offload_optimizer={"device": "cpu"}))
        self.expect(lines, "offload-pin-memory", "warning", "offload_optimizer", "zero.json:4")
        for value in ("true", 1, "ON"):
            lines = self.check(self.zero(offload_param={"device": "cpu", "pin_memory": value}))
            self.assertNotIn("offload-pin-memory", lines)
        lines = self.check(self.zero(offload_param={"device": "cpu", "pin_memory": "perhaps"}))
        self.expect(lines, "offload-pin-memory", "problem", "not true or false")

    def test_gather_on_save(self):
        lines = self.check(self.zero(stage3_gather_16bit_weights_on_model_save=False))
        self.expect(lines, "gather-on-save", "warning", "has no weights", "zero.json:12")
        self.assertNotIn("gather-on-save", self.check(self.zero(stage3_gather_16bit_weights_on_model_save="true")))
        self.assertNotIn("gather-on-save", self.check({"zero_optimization": {"stage": 2}}))

    def test_devices(self):
        lines = self.check(self.zero(offload_param={"device": "gpu"}))
        self.expect(lines, "offload-device", "problem", "'gpu'")
        lines = self.check(self.zero(offload_optimizer={"device": "none"}))
        self.expect(lines, "offload-devices-differ", "warning", "parameters are offloaded to cpu, the optimizer to none")
        lines = self.check(self.zero(offload_optimizer={"device": "nvme", "pin_memory": True}))
        self.expect(lines, "nvme-path", "problem", "without nvme_path")
        lines = self.check(self.zero(offload_optimizer={"device": "nvme", "nvme_path": "/no/such", "pin_memory": True}))
        self.expect(lines, "nvme-path", "problem", "/no/such")
        lines = self.check(self.zero(stage=2))
        self.expect(lines, "offload-param-stage", "problem", "no effect with stage 2")

    def test_slips(self):
        self.expect(self.check(self.zero(offload_optimiser={"device": "cpu"})), "unknown-setting", "problem",
                    "offload_optimizer?")
        self.expect(self.check(self.zero(foo=1)), "unknown-setting", "warning", "'foo'", "refuses")
        for name in ("stage3_max_live_parameters", "max_live_parameters", "sub_group_size"):
            self.assertNotIn("unknown-setting", self.check(self.zero(**{name: 5})))
        self.expect(self.check({"zero_optimization": True}), "zero-kind", "warning", "stage 1")
        self.expect(self.check({"zero_optimization": 3}), "zero-kind", "problem", "not an object")
        self.expect(self.check(self.zero(stage3_gather_fp16_weights_on_model_save=True)), "gather-renamed", "warning")
        self.expect(self.check({**self.GOOD, "fp16": {"enabled": True}, "bf16": {"enabled": True}}), "two-formats",
                    "problem")
        lines = self.examine(self.file("broken.json", '{\n  "zero_optimization": {\n    "stage": 3;\n  }\n}\n'))
        self.expect(lines, "not-json", "problem", "broken.json:3:15")

    def test_batch_size(self):
        sizes = {"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 2}
        self.assertNotIn("batch-size", self.check({**self.GOOD, **sizes}, **RANKS))
        lines = self.check({**self.GOOD, **sizes, "train_batch_size": 64}, **RANKS)
        self.expect(lines, "batch-size", "problem", "4 per GPU x 2 accumulation steps x 4 ranks is 32")

    def test_batch_numbers(self):
        for name, value in (("train_batch_size", -4), ("train_batch_size", 8.5), ("train_batch_size", "8"),
                            ("train_micro_batch_size_per_gpu", 0), ("gradient_accumulation_steps", False)):
            lines = self.check({**self.GOOD, name: value})
            self.expect(lines, "batch-number", "problem", f"{name} is {json.dumps(value)}", "above 0")
        sizes = {"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2}
        self.expect(self.check({**self.GOOD, **sizes}), "batch-size", "problem", "7, which is not a multiple of 4",
                    "2 per GPU x 2 accumulation steps")
        self.expect(self.check({**self.GOOD, "train_batch_size": 6}, **RANKS), "batch-size", "problem", "4 ranks")
        self.assertNotIn("batch-size", self.check({**self.GOOD, **sizes, "train_batch_size": 12}))

    def deepspeed(self, version):
        site = self.folder / "site"
        self.file(site / f"deepspeed-{version}.dist-info/METADATA", f"Name: deepspeed\nVersion: {version}\n")
        return site

    def test_deepspeed_with_the_clipping_bug(self):
        for version in ("0.14.1", "0.14.2"):
            site = self.deepspeed(version)
            lines = self.examine("--site-packages", site, self.file("zero.json", self.GOOD))
            self.expect(lines, "deepspeed-clipping", "warning", version, "0.14.5")
            self.expect(lines, "offload-clipping", "problem", version, "first step that clips", "zero.json:14")
            shutil.rmtree(site)

    def test_clipping_bug_needs_clipping_and_offloading(self):
        site = self.deepspeed("0.14.2")
        for config in ({**self.GOOD, "gradient_clipping": 0.0},
                       self.zero(offload_optimizer={"device": "none"}, offload_param={"device": "none"})):
            self.assertNotIn("offload-clipping",
                             self.examine("--site-packages", site, self.file("zero.json", config)))

    def test_other_deepspeeds(self):
        for version in ("0.14.0", "0.14.5", "0.16.4"):
            site = self.deepspeed(version)
            lines = self.examine("--site-packages", site, self.file("zero.json", self.GOOD))
            self.expect(lines, "deepspeed", "ok", version)
            self.assertNotIn("offload-clipping", lines)
            shutil.rmtree(site)


    def test_kinds_of_values(self):
        stage = {"stage3_gather_16bit_weights_on_model_save": True}
        for text in ("3", 3.0):
            lines = self.check({"zero_optimization": {"stage": text, **stage}})
            self.expect(lines, "zero-stage-kind", "warning", json.dumps(text), "write 3")
            self.assertNotIn("zero-stage", lines)
        self.expect(self.check({"zero_optimization": {"stage": "three"}}), "zero-stage", "problem", '"three"')
        self.expect(self.check(self.zero(offload_optimizer="cpu")), "offload-kind", "problem",
                    'offload_optimizer is "cpu", not an object', '{"device": "cpu", "pin_memory": true}', "zero.json:4")
        self.expect(self.check(self.zero(offload_param={"device": 5})), "offload-kind", "problem", "device is 5")

    def test_names(self):
        lines = self.check({"zero_optimisation": {"stage": 3}, "train_batch_size": 8})
        self.expect(lines, "unknown-setting", "warning", "'zero_optimisation'", "did you mean zero_optimization?",
                    "zero.json:2")
        for name in ("fp16", "amp", "wandb", "zero_force_ds_cpu_optimizer", "my_own"):
            self.assertNotIn("unknown-setting", self.check({**self.GOOD, name: {}}))
        lines = self.check('{"train_batch_size": 1, "zero_optimization": {"stage": 2, "stage": 3}}')
        self.expect(lines, "repeated-setting", "problem", "'stage' is there twice", "refuses")
        self.assertNotIn("repeated-setting", self.check('{"zero_optimization": {"stage": 2}, "aio": [{"a": 1}, {"a": 2}]}'))

    def test_comments_and_commas(self):
        text = ('{ // one\n "train_batch_size": 8, # two\n "x": "/* no # comment */", /* three */\n'
                ' "zero_optimization": {"stage": 5,},\n}')
        lines = self.check(text)
        self.expect(lines, "not-strict-json", "warning", "Hugging Face", "remove", "zero.json:1:3")
        self.expect(lines, "zero-stage", "problem", "zero.json:4")
        self.assertNotIn("not-json", lines)
        self.expect(self.check('{"device_map": "auto",}'), "not-json", "problem")
        self.expect(self.check('{"train_batch_size": 8,,}'), "not-json", "problem")

    def test_within_the_configuration_of_a_trainer(self):
        inner = self.zero(offload_optimizer={"device": "gpu", "pin_memory": True})
        config = self.file("trainer.json", {"output_dir": "x", "deepspeed": inner})
        self.expect(self.examine(config), "offload-device", "problem", "'gpu'", "trainer.json:7")
        self.file("ds.json", inner)
        config = self.file("arguments.json", {"output_dir": "x", "deepspeed": "ds.json"})
        lines = self.examine(config)
        self.expect(lines, "offload-device", "problem", "'gpu'", "ds.json:5")
        self.expect(lines, "trainer-config", "ok", "ds.json")
        config = self.file("arguments.json", {"output_dir": "x", "deepspeed": "missing.json"})
        self.expect(self.examine(config), "no-such-config", "problem", "missing.json", "arguments.json:3")

    def accelerate(self, *lines, kind="DEEPSPEED"):
        text = "\n".join(["compute_environment: LOCAL_MACHINE", "deepspeed_config:", *("  " + line for line in lines),
                          f"distributed_type: {kind}", "num_processes: 4", ""])
        return self.examine(self.file("accelerate.yaml", text))

    def test_accelerate(self):
        good = ("zero_stage: 3", "offload_optimizer_device: cpu", "zero3_save_16bit_model: true")
        self.expect(self.accelerate(*good), "accelerate-config", "ok", "ZeRO stage 3, optimizer offloaded to cpu")
        self.expect(self.accelerate(*good[:2], "zero3_save_16bit_model: false"), "gather-on-save", "warning",
                    "zero3_save_16bit_model", "accelerate.yaml:5")
        self.expect(self.accelerate("zero_stage: 5"), "zero-stage", "problem", "accelerate.yaml:3")
        self.expect(self.accelerate("zero_stage: 2", "offload_param_device: cpu"), "offload-param-stage", "problem")
        self.expect(self.accelerate(*good[::2], "offload_param_device: gpu"), "offload-device", "problem", "'gpu'")
        self.expect(self.accelerate(*good[::2], "offload_param_device: nvme"), "nvme-path", "problem")
        lines = self.accelerate("deepspeed_config_file: none_such.json")
        self.expect(lines, "no-such-config", "problem", "none_such.json", "accelerate.yaml:3")
        self.file("ds.json", {"zero_optimization": {"stage": 7}})
        self.expect(self.accelerate("deepspeed_config_file: ds.json"), "zero-stage", "problem", "ds.json:3")
        self.expect(self.accelerate(kind="MULTI_GPU"), "accelerate-config", "ok", "distributed_type MULTI_GPU")
        config = self.file("accelerate.json", {"deepspeed_config": {"zero_stage": 9}})
        self.expect(self.examine(config), "zero-stage", "problem", "accelerate.json:3")

    def test_nothing_known(self):
        for name, text in (("bad.yaml", "a: [1,\nb: {"), ("other.json", '{"output_dir": "x"}')):
            self.expect(self.examine(self.file(name, text)), "nothing-known", "warning", name)
        self.expect(self.check(""), "empty", "problem", "zero.json")
        os.mkfifo(self.folder / "pipe.json")
        run = self.run_tool("doctor", str(self.folder / "pipe.json"))
        self.assertEqual(run.returncode, 2)
        self.assertIn("it is a pipe", run.stderr)

    def test_no_configuration(self):
        for text, shown in (('"text"', '"text"'), ("null", "null"), ("[1]", "a list")):
            self.expect(self.check(text), "no-object", "warning", shown)
        for deep in ("[" * 20000 + "]" * 20000, '{"device_map": ' * 20000 + "1" + "}" * 20000):
            self.expect(self.check(deep), "too-deep", "problem", "100 levels")


class DeviceMap(DoctorTest):
    def test_json(self):
        config = self.file("model.json", {"model": {"loader": {"device_map": "auto"}}})
        self.expect(self.examine(config, **RANKS), "device-map-distributed", "problem", "4 ranks", "model.json:4")
        self.expect(self.examine(config), "device-map-single-process", "warning", "single process only")
        zero = self.file("zero.json", ZeroConfiguration.GOOD)
        self.expect(self.examine(config, zero), "device-map-distributed", "problem")

    def test_explicit_maps(self):
        config = self.file("map.json", {"device_map": {"embed": 0, "h": 1}})
        self.expect(self.examine(config, **RANKS), "device-map-distributed", "problem")
        config = self.file("one.json", {"device_map": {"": "cuda:1"}})
        self.expect(self.examine(config, **RANKS), "device-map", "ok")
        config = self.file("zero.json", {"device_map": {"": 0}})
        self.expect(self.examine(config, **RANKS), "device-map-one-gpu", "warning", "every rank on GPU 0")
        for first in (0, "cuda:0"):
            config = self.file("first.json", {"device_map": first})
            self.expect(self.examine(config, **RANKS), "device-map-one-gpu", "warning", "every rank on GPU 0")
        config = self.file("other.json", {"device_map": 1})
        self.expect(self.examine(config, **RANKS), "device-map", "ok", "device_map 1")
        config = self.file("list.json", {"device_map": ["a"]})
        self.expect(self.examine(config, **RANKS), "device-map-kind", "problem", "a list")
        config = self.file("null.json", {"device_map": None})
        self.expect(self.examine(config, **RANKS), "device-map", "ok", "null")

    def test_yaml(self):
        config = self.file("train.yaml", "# device_map: auto\nmodel:\n  name: qwen\n  device_map: balanced  # GPUs\n")
        self.expect(self.examine(config, **RANKS), "device-map-distributed", "problem", '"balanced"', "train.yaml:4")
        config = self.file("map.yml", "device_map:\n  embed: 0\n\n  h: 1\nother: 1\n")
        self.expect(self.examine(config, **RANKS), "device-map-distributed", "problem", "of 2 entries")
        config = self.file("none.yaml", "device_map:\nother: 1\n")
        self.expect(self.examine(config, **RANKS), "device-map", "ok")
        config = self.file("flow.yaml", "train: 1\nmodel: {name: qwen, device_map: auto, x: {y: 1}}\n")
        self.expect(self.examine(config, **RANKS), "device-map-distributed", "problem", '"auto"', "flow.yaml:2")
        config = self.file("flow.yaml", "model: {'device_map': {a: 0, b: 1}}  # {device_map: 1}\n")
        self.expect(self.examine(config, **RANKS), "device-map-distributed", "problem", "{a: 0, b: 1}")
        config = self.file("first.yaml", 'model: {device_map: {"": 0}}\n')
        self.expect(self.examine(config, **RANKS), "device-map-one-gpu", "warning")
        config = self.file("list.yaml", "device_map:\n- a\n- b\n")
        self.expect(self.examine(config, **RANKS), "device-map-kind", "problem", "a list")
        config = self.file("accelerate.yaml", "distributed_type: MULTI_GPU\ndevice_map: 'auto'\n")
        self.expect(self.examine(config), "device-map-distributed", "problem")
        config = self.file("alone.yaml", "distributed_type: 'NO'\ndevice_map: auto\n")
        self.expect(self.examine(config), "device-map-single-process", "warning")


if __name__ == "__main__":
    launching.main()
