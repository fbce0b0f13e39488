"""device-run and virtual GPUs: the environment, the refusals, and what becomes of the records."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import launching
from launching import LaunchTest, python

SOURCE = pathlib.Path(__file__).with_name("recording_program.c")


def line_of(comment):
    """The line of the recording program that carries this comment."""
    for number, line in enumerate(SOURCE.read_text(encoding="utf-8").splitlines(), 1):
        if f"/* {comment} */" in line:
            return number
    raise AssertionError(comment)


def compile_c(output, *arguments):
    subprocess.run([launching.compiler, "-o", str(output), *map(str, arguments)], check=True)


class RecordsTest(LaunchTest):
    """A folder with a library to preload and the recording program."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        (cls.folder / "empty.c").write_text("int nothing;\n")
        cls.library = cls.folder / "libvirtual_cuda.so"
        compile_c(cls.library, "-shared", "-fPIC", cls.folder / "empty.c")
        cls.program = cls.folder / "program"
        compile_c(cls.program, "-g", "-O0", SOURCE, "-ldl")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def run_virtual(self, *arguments, env=None):
        return self.run_tool("--virtual-gpus", "2", *arguments,
                             env={"DEVICE_TIDY_VIRTUAL_CUDA": str(self.library), **(env or {})})


class Folders(RecordsTest):
    def test_those_of_killed_launchers_go_with_the_next(self):
        with tempfile.TemporaryDirectory() as parent:
            env = {"TMPDIR": parent, "DEVICE_TIDY_VIRTUAL_CUDA": str(self.library)}
            with self.start("--virtual-gpus", "1", "--", "sleep", "600", env=env) as process:
                self.wait_for_processes(3)
                running = os.listdir(parent)
                self.assertEqual(len(running), 1)
                self.run_virtual("--", "true", env=env)
                self.assertEqual(os.listdir(parent), running, "the folder of a launcher that runs is gone")
                # The launcher's process that would remove it ends first; the others may follow by themselves.
                for pid in sorted(launching.marked_processes(self.mark)):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                process.communicate(timeout=30)
            self.assertEqual(os.listdir(parent), running)
            self.run_virtual("--", "true", env=env)
            self.assertEqual(os.listdir(parent), [])


class Environment(RecordsTest):
    SHOW = python("import os, json; print(json.dumps({n: v for n, v in os.environ.items() "
                  "if n.startswith('VIRTUAL_GPU') or n == 'LD_PRELOAD'}))")

    def test_variables(self):
        run = self.run_virtual("--gpu-memory=1.5GiB", "--isolate", "--trace", str(self.folder / "t.json"), "--",
                               *self.SHOW)
        self.assertEqual(run.returncode, 0, run.stderr)
        env = json.loads(run.stdout)
        records = env["VIRTUAL_GPU_ERRORS"]
        self.assertTrue(os.path.isabs(records))
        self.assertFalse(os.path.exists(os.path.dirname(records)), "the scratch directory is left behind")
        self.assertEqual(env, {"LD_PRELOAD": str(self.library), "VIRTUAL_GPUS": "2",
                               "VIRTUAL_GPU_MEMORY": str(3 << 29), "VIRTUAL_GPU_ISOLATE": "1",
                               "VIRTUAL_GPU_ERRORS": records, "VIRTUAL_GPU_TRACE": records})

    def test_variables_of_explain(self):
        run = self.run_tool("--explain", "--", *self.SHOW, env={"DEVICE_TIDY_VIRTUAL_CUDA": str(self.library)})
        env = json.loads(run.stdout)
        self.assertEqual(env, {"LD_PRELOAD": str(self.library), "VIRTUAL_GPU_RECORDS_ONLY": "1",
                               "VIRTUAL_GPU_ERRORS": env.get("VIRTUAL_GPU_ERRORS")})
        run = self.run_virtual("--", *self.SHOW, env={"VIRTUAL_GPU_RECORDS_ONLY": "1"})
        self.assertNotIn("VIRTUAL_GPU_RECORDS_ONLY", run.stdout)

    def test_earlier_preload_is_kept(self):
        other = self.folder / "other.so"
        shutil.copy(self.library, other)
        run = self.run_virtual("--", *self.SHOW, env={"LD_PRELOAD": str(other)})
        self.assertEqual(json.loads(run.stdout)["LD_PRELOAD"], f"{self.library}:{other}")

    def test_program_with_address_sanitizer(self):
        program = self.folder / "sanitized"
        (self.folder / "sanitized.c").write_text("#include <stdio.h>\nint main(void) { return puts(\"ran\") < 0; }\n")
        built = subprocess.run(["gcc", "-fsanitize=address", "-o", str(program), str(self.folder / "sanitized.c")],
                               capture_output=True, check=False) if shutil.which("gcc") else None
        if built is None or built.returncode != 0:
            self.skipTest("needs gcc with its AddressSanitizer")
        run = self.run_virtual("-n", "2", "--", str(program))
        self.assertEqual((run.returncode, run.stdout.count("] ran")), (0, 2), run.stderr)
        if b"__asan_init" in pathlib.Path(launching.tool).read_bytes():
            return  # an instrumented launcher has a runtime of its own, and starts with no second one
        # Behind a script only the user knows.
        runtime = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True,
                                 check=True).stdout.strip()
        run = self.run_virtual("--", "sh", "-c", str(program), env={"LD_PRELOAD": runtime})
        self.assertEqual(run.returncode, 0, run.stderr)

    def test_hidden_gpus_are_named(self):
        run = self.run_virtual("--", "true", env={"CUDA_VISIBLE_DEVICES": "1"})
        self.assertIn("CUDA_VISIBLE_DEVICES='1' shows 1 of the 2 virtual GPUs; unset it to have all", run.stderr)
        # What hides all of them does not count.
        for ids in ("", "-1", "0,0", "1,0,3"):
            run = self.run_virtual("--", "true", env={"CUDA_VISIBLE_DEVICES": ids})
            self.assertNotIn("CUDA_VISIBLE_DEVICES", run.stderr)
            echo = ("sh", "-c", "echo ${CUDA_VISIBLE_DEVICES-all}")
            run = self.run_virtual("--", *echo, env={"CUDA_VISIBLE_DEVICES": ids})
            self.assertEqual(run.stdout, "1,0,3\n" if ids == "1,0,3" else "all\n")
        self.assertNotIn("CUDA_VISIBLE_DEVICES", self.run_virtual("--", "true").stderr)

    def test_ranks_without_a_gpu_of_their_own(self):
        run = self.run_virtual("-n", "3", "--", "true")
        self.assertEqual(run.returncode, 0)
        self.assertIn("3 ranks share 2 virtual GPUs: local ranks from 2 on have none of their own", run.stderr)
        run = self.run_virtual("--nproc-per-node=gpu", "--", "sh", "-c", "echo rank")
        self.assertEqual(len(run.stdout.splitlines()), 2)


class Refusals(RecordsTest):
    def test_library_that_is_missing(self):
        run = self.run_tool("--virtual-gpus=1", "--", "true", env={"DEVICE_TIDY_VIRTUAL_CUDA": "/no/such.so"})
        self.assertEqual(run.returncode, 2)
        self.assertIn("DEVICE_TIDY_VIRTUAL_CUDA names /no/such.so", run.stderr)

    def test_program_of_a_cuda_build(self):
        # Linked with a library that is linked with it: only the loader's view tells.
        folder = self.folder
        compile_c(folder / "libtorch_cuda.so", "-shared", "-fPIC", folder / "empty.c")
        (folder / "user.c").write_text("extern int nothing; int use(void) { return nothing; }\n")
        compile_c(folder / "libuser.so", "-shared", "-fPIC", folder / "user.c", folder / "libtorch_cuda.so",
                  f"-Wl,-rpath,{folder}")
        (folder / "main.c").write_text("int use(void); int main(void) { return use(); }\n")
        compile_c(folder / "cuda_program", folder / "main.c", folder / "libuser.so", f"-Wl,-rpath,{folder}",
                  "-Wl,-rpath-link," + str(folder))
        run = self.run_virtual("--", str(folder / "cuda_program"))
        self.assertEqual(run.returncode, 126)
        self.assertIn(f"linked with a CUDA build of LibTorch ({folder}/libtorch_cuda.so)", run.stderr)
        self.assertEqual(self.run_tool("--", str(folder / "cuda_program")).returncode, 0)

    def test_reports_that_cannot_be_used(self):
        for name, text, words in (("a.sarif", "{", "is not JSON"), ("b.sarif", "[]", "not a SARIF 2.1.0"),
                                  ("c.sarif", '{"version": "2.0.0", "runs": []}', "not a SARIF 2.1.0")):
            (self.folder / name).write_text(text)
            run = self.run_virtual(f"--findings={self.folder / name}", "--", "true")
            self.assertEqual(run.returncode, 2)
            self.assertIn(words, run.stderr)
        run = self.run_virtual("--findings=/no/such.sarif", "--", "true")
        self.assertEqual((run.returncode, "cannot read the findings" in run.stderr), (2, True))
        run = self.run_virtual("--trace=/no/such/dir/t.json", "--", "true")
        self.assertEqual((run.returncode, "there is no directory" in run.stderr), (2, True))


class Reports(RecordsTest):
    def test_device_error_is_explained(self):
        run = self.run_virtual("-n", "2", "--", "sh", "-c",
                               f"test $RANK = 0 && sleep 600; exec {self.program} fail")
        self.assertEqual(run.returncode, 134)
        explained = run.stderr[run.stderr.index("the last device error of rank 1"):]
        expected = (f"in aten::mm at {SOURCE}:{line_of('line of the failure')}", "failingOp(gpu, host);",
                    f"created by aten::randn at {SOURCE}:{line_of('line of the creation')}",
                    f"moved by aten::_to_copy at {SOURCE}:{line_of('line of the move')}",
                    f"change {SOURCE}:{line_of('line of the creation')}: create it on cuda:0",
                    "move 'mat2' to cuda:0, where 'self' is")
        for words in expected:
            self.assertIn(words, explained)

    def test_trace(self):
        file = self.folder / "trace.json"
        run = self.run_virtual("-n", "2", "--trace", str(file), "--", str(self.program), "clean")
        self.assertEqual(run.returncode, 0, run.stderr)
        events = json.loads(file.read_text())["traceEvents"]
        move = line_of("line of the move")
        operators = [e for e in events if e.get("cat") == "operator"]
        self.assertEqual([(e["pid"], e["name"], e["ts"], e["dur"]) for e in operators],
                         [(0, "aten::mm", 0, 20), (1, "aten::mm", 0, 20)])
        self.assertTrue(operators[0]["args"]["at"].endswith(f"recording_program.c:{move} main"))
        copies = [e for e in events if e.get("cat") == "copy"]
        self.assertEqual([(e["args"]["from"], e["args"]["to"], e["args"]["bytes"], e["ts"]) for e in copies],
                         [("cpu", "cuda:0", 3072, 99.5)] * 2)
        names = {(e["pid"], e["args"]["name"]) for e in events if e["name"] in ("process_name", "thread_name")}
        for rank in (0, 1):
            self.assertIn((rank, f"rank {rank}"), names)
            self.assertIn((rank, "worker"), names)
        self.assertEqual(len(names), 4, "a track for each thread")
        self.assertEqual(operators[0]["args"]["operands"], {"self": "cuda:0 [8, 4]", "tensors[1]": "cpu [2]"})
        self.assertEqual(operators[0]["args"]["device"], "cuda:0")
        self.assertIn("cpu -> cuda:0: 6.0 KiB in 2 copies", run.stderr)
        self.assertIn(f"6.0 KiB in 2 copies at {SOURCE}:{move} main", run.stderr)
        self.assertIn("rank 1: at most 2.0 KiB on cuda:0", run.stderr)

    def test_errors_are_events(self):
        file = self.folder / "t.json"
        self.run_virtual("--trace", str(file), "--", str(self.program), "catch")
        events = json.loads(file.read_text())["traceEvents"]
        error, = [e for e in events if e.get("cat") == "error"]
        self.assertEqual((error["name"], error["ph"], error["ts"]), ("device error in aten::mm", "i", 999.5))
        self.assertIn("cuda:0 and cpu!", error["args"]["error"])
        self.assertEqual(error["args"]["operands"], {"self": "cuda:0 [8, 4]", "mat2": "cpu [4, 2]"})
        self.assertTrue(error["args"]["at"].endswith(f":{line_of('line of the failure')} main"), error)

    def report(self):
        def result(rule, line, **more):
            place = {"artifactLocation": {"uri": SOURCE.name, "uriBaseId": "SRC"}, "region": {"startLine": line}}
            return {"ruleId": rule, "message": {"text": "m"}, "locations": [{"physicalLocation": place}], **more}
        made = {"physicalLocation": {"artifactLocation": {"uri": SOURCE.as_uri()},
                                     "region": {"startLine": line_of("line of the creation")}}}
        move = line_of("line of the move")
        return {"version": "2.1.0", "$schema": "s", "runs": [{
            "tool": {"driver": {"name": "device-tidy"}},
            "originalUriBaseIds": {"SRC": {"uri": SOURCE.parent.as_uri() + "/"}},
            "results": [result("device-mixed-op", line_of("line of the failure"), properties={"level": "definite"}),
                        result("device-mixed-op", line_of("line of the creation")),
                        result("device-mixed-op", line_of("line that is not reached")),
                        result("device-discarded-move", move, relatedLocations=[made]),
                        {"ruleId": "no-place", "message": {"text": "m"}}]}]}

    def test_findings(self):
        file, out = self.folder / "report.sarif", self.folder / "judged.sarif"
        for mode, code, expected in (
                ("fail", 134, ["confirmed", "reached", "notReached", "confirmed"]),
                ("catch", 0, ["confirmed", "reached", "notReached", "confirmed"]),
                ("clean", 0, ["notReached", "reached", "notReached", "notReached"])):
            file.write_text(json.dumps(self.report()))
            run = self.run_virtual("--findings", str(file), "--findings-out", str(out), "--", str(self.program),
                                   mode)
            self.assertEqual(run.returncode, code, run.stderr)
            results = json.loads(out.read_text())["runs"][0]["results"]
            self.assertEqual([r["properties"]["deviceRun"]["status"] for r in results[:4]], expected)
            self.assertEqual(results[0]["properties"]["level"], "definite")
            self.assertNotIn("properties", results[4])
            if mode == "fail":
                self.assertIn("cuda:0 and cpu", results[0]["properties"]["deviceRun"]["error"])
                self.assertIn(f"(at {SOURCE}:{line_of('line of the failure')})",
                              results[3]["properties"]["deviceRun"]["error"])
                self.assertIn("4 findings: 2 confirmed, 1 reached without error, 1 not reached\n", run.stderr)
        self.assertEqual(json.loads(file.read_text()), self.report(), "--findings-out leaves the report alone")
        self.run_virtual("--findings", str(file), "--", str(self.program), "clean")
        self.assertIn("deviceRun", json.loads(file.read_text())["runs"][0]["results"][0]["properties"])

    def test_findings_of_other_programs(self):
        file = self.folder / "report.sarif"
        other = {"ruleId": "device-mixed-op", "message": {"text": "m"}, "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": SOURCE.with_name("evaluate.c").as_uri()}, "region": {"startLine": 3}}}]}
        report = self.report()
        report["runs"][0]["results"].append(other)
        for version in ("-gdwarf-4", "-gdwarf-5", "-g0"):
            program = self.folder / "program-of-version"
            compile_c(program, version, "-O0", SOURCE, "-ldl")
            file.write_text(json.dumps(report))
            run = self.run_virtual("--findings", str(file), "--", str(program), "clean")
            status = json.loads(file.read_text())["runs"][0]["results"][-1]["properties"]["deviceRun"]["status"]
            # Without debug information nobody knows.
            known = version != "-g0"
            self.assertEqual(status, "otherProgram" if known else "notReached", version)
            self.assertEqual("evaluate.c" in run.stderr, not known, run.stderr)
            self.assertEqual("5 findings: 0 confirmed, 1 reached without error, 3 not reached, 1 of other programs\n"
                             in run.stderr, known, run.stderr)

    def test_host_access_needs_isolation(self):
        file = self.folder / "report.sarif"
        for options, status in (([], "notJudged"), (["--isolate"], "reached")):
            report = self.report()
            report["runs"][0]["results"][1]["ruleId"] = "device-host-access"
            file.write_text(json.dumps(report))
            run = self.run_virtual(*options, "--findings", str(file), "--", str(self.program), "clean")
            judged = json.loads(file.read_text())["runs"][0]["results"][1]["properties"]["deviceRun"]
            self.assertEqual(judged["status"], status, run.stderr)
            self.assertEqual("add --isolate" in run.stderr, not options, run.stderr)


if __name__ == "__main__":
    launching.main()
