#!/usr/bin/env python3
"""Installs the build tree into an empty folder and uses what is there: the command, its manual, its completions.

run.py BUILD_DIRECTORY
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCES = pathlib.Path(__file__).resolve().parents[2]
FAILURES = []


def run(*command, **options):
    return subprocess.run(
        [str(each) for each in command], capture_output=True, text=True, errors="replace", check=False, **options
    )


def expect(holds, what, output=""):
    if not holds:
        FAILURES.append(what)
        print(f"FAILED: {what}\n{output}", file=sys.stderr)


def options_of(program):
    """The options that --help lists, as "--level" and "-p"."""
    text = run(program, "--help").stdout
    return [
        name for line in re.findall(r"^  (-\S.*?)(?:  |$)", text, re.MULTILINE)
        for name in re.findall(r"(?:^|, )(--?[A-Za-z][\w-]*)", line)
    ]  # fmt: skip


def check_manual(prefix, name):
    program = prefix / "bin" / name
    names = options_of(program)
    expect(len(names) > 10, f"{name} --help lists its options")
    page = (prefix / "share/man/man1" / f"{name}.1").read_text(encoding="utf-8")
    plain = page.replace("\\-", "-")
    for option in names:
        expect(f"\\fB{option}\\fR" in plain, f"the manual of {name} has {option}")
    if shutil.which("man"):
        shown = run("man", "--warnings", "-l", prefix / "share/man/man1" / f"{name}.1", env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"})
        expect(shown.returncode == 0 and not shown.stderr, f"man shows the manual of {name}", shown.stderr)
    return names


def completed(prefix, name, *words, lines=False):
    """What bash offers for the last of `words`, split as readline splits them."""
    script = prefix / "share/bash-completion/completions" / name
    function = "_" + name.replace("-", "_")
    array = " ".join(f"'{word}'" for word in (name, *words))
    code = (
        f"source '{script}'; COMP_WORDS=({array}); COMP_CWORD=$(( ${{#COMP_WORDS[@]}} - 1 )); {function}; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    result = run("bash", "-c", code)
    expect(not result.stderr, f"completing {words}", result.stderr)
    return result.stdout.splitlines() if lines else result.stdout.split()


def check_completions(prefix):
    expect(set(options_of(prefix / "bin/device-tidy")) <= set(completed(prefix, "device-tidy", "-")),
           "bash completes every option")  # fmt: skip
    expect(completed(prefix, "device-tidy", "--lev") == ["--level"], "bash completes --level")
    expect(completed(prefix, "device-tidy", "--level", "=", "la") == ["latent"], "bash completes --level=latent")
    expect(completed(prefix, "device-tidy", "--level", "=") == ["definite", "likely", "latent"], "bash lists the levels")
    expect("sarif" in completed(prefix, "device-tidy", "--format", "sa"), "bash completes formats")
    expect(completed(prefix, "device-tidy", "--explain", "device-loss") == ["device-loss-input"], "bash completes checks")
    expect(completed(prefix, "device-tidy", "--checks", "=", "device-mixed-op,-device-loss")
           == ["device-mixed-op,-device-loss-input"], "bash completes the second check of a list")  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        (pathlib.Path(place) / "two words.cpp").touch()
        expect(completed(prefix, "device-tidy", f"{place}/two", lines=True) == [f"{place}/two words.cpp"],
               "bash completes a name with a blank")  # fmt: skip
    expect("--virtual-gpus" in completed(prefix, "device-run", "--vir"), "bash completes device-run")
    for shell, place in (("zsh", "zsh/vendor-completions/_{}"), ("fish", "fish/vendor_completions.d/{}.fish")):
        for name in ("device-tidy", "device-run"):
            file = prefix / "share" / place.format(name)
            expect(file.stat().st_size > 200, f"{file.name} is written")
            if shutil.which(shell):
                result = run(shell, "-n", file)
                expect(result.returncode == 0, f"{shell} reads {file.name}", result.stderr)


def check_command(prefix, place):
    (place / "sum.cpp").write_text(
        "#include <cuda_runtime.h>\n#include <torch/torch.h>\n"
        "torch::Tensor sum(long n) {\n  return torch::ones({n}, torch::kCUDA) + torch::randn({n});\n}\n"
    )
    names = SOURCES / "test/lit/report/Inputs"
    result = run(
        prefix / "bin/device-tidy", "--no-cache", "--stats", place / "sum.cpp", "--", "-std=c++17", "-isystem", names
    )
    expect(result.returncode == 1 and "[device-mixed-op]" in result.stdout, "the installed command finds a mixed operation",
           result.stdout + result.stderr)  # fmt: skip
    stand_ins = prefix / "share/device-tidy/cuda-stubs/include"
    facts = run(prefix / "bin/device-tidy", "--emit-facts", place / "sum.facts", "--depfile", place / "sum.d",
                place / "sum.cpp", "--", "-std=c++17", "-isystem", names)  # fmt: skip
    expect(facts.returncode == 0, "the installed command writes facts", facts.stderr)
    expect(str(stand_ins) in (place / "sum.d").read_text(), "the installed stand-ins for CUDA's headers are taken")
    launched = run(prefix / "bin/device-run", "-n", "2", "--", "/bin/sh", "-c", "echo rank $RANK")
    expect(launched.returncode == 0 and "rank 1" in launched.stdout, "device-run starts ranks", launched.stderr)


def check_help_pages(prefix, place):
    """A SARIF viewer's link at a finding leads to the installed page of its check."""
    log = place / "sum.sarif"
    run(prefix / "bin/device-tidy", "--no-cache", "--format=sarif", f"--output={log}", place / "sum.cpp", "--",
        "-std=c++17", "-isystem", SOURCES / "test/lit/report/Inputs")  # fmt: skip
    result = run(sys.executable, SOURCES / "test/lit/report/Inputs/check_sarif.py", log)
    expect(result.returncode == 0, "the SARIF report of the installed command is valid", result.stderr)
    rules = json.loads(log.read_text(encoding="utf-8"))["runs"][0]["tool"]["driver"]["rules"]
    pages = prefix / "share/doc/device-tidy/docs"
    for rule in rules:
        uri = rule["helpUri"]
        expect(uri.startswith(f"file://{pages}/") or not uri.startswith("file:"), f"{uri} is an installed page")


def check_part(build, place):
    """After a build of the first target of docs/quick-start.md alone, that is installed, and what is not is named."""
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    kept = [f"-D{line}" for line in re.findall(r"^(?:DEVICE_TIDY_|CMAKE_PREFIX_PATH)\S*:\S*=\S+$", cache, re.MULTILINE)]
    part, prefix = place / "part", place / "part-prefix"
    configured = run("cmake", "-G", "Ninja", "-S", SOURCES, "-B", part, "-DDEVICE_TIDY_TESTS=OFF", *kept)
    expect(configured.returncode == 0, "another tree can be configured", configured.stderr)
    (part / "bin").mkdir(exist_ok=True)
    shutil.copy2(build / "bin/device-tidy", part / "bin")
    installed = run("cmake", "--install", part, "--prefix", prefix)
    expect(installed.returncode == 0, "a part of the build is installed", installed.stderr)
    for target in ("device-tidy-plugin", "device-run", "device_shim"):
        expect(f"Left out, because it is not built: {target}\n" in installed.stdout, f"{target} is left out")
    expect(not (prefix / "include").exists(), "no headers of device_shim without the library")
    expect(run(prefix / "bin/device-tidy", "--version").returncode == 0, "the command of the part runs")


def check_documents(prefix):
    """What the installed pages link to is installed."""
    for page in (prefix / "share/doc").rglob("*.md"):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
            if not re.match(r"[a-z]+:", link):
                expect((page.parent / link).exists(), f"{page.name} links to {link}")


def main():
    build = pathlib.Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder).resolve()
        prefix = place / "prefix"
        for component in ("tools", "virtual_gpu", "device_shim"):
            installed = run("cmake", "--install", build, "--prefix", prefix, "--component", component)
            expect(installed.returncode == 0, f"installing {component}", installed.stdout + installed.stderr)
        check_manual(prefix, "device-tidy")
        check_manual(prefix, "device-run")
        check_completions(prefix)
        check_command(prefix, place)
        check_help_pages(prefix, place)
        check_documents(prefix)
        check_part(build, place)
    print("failed" if FAILURES else "The installed tree works.")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
