#!/usr/bin/env python3
"""latency.py --tool DEVICE_TIDY [--edits N] [--work DIR]: how long an editor waits for its diagnostics.

Opens a training program of 500 lines in the language server and types in it: statements, character by character, so
that most states of the file are broken code; each character waits for the diagnostics of the one before. Prints the
time from an edit to its diagnostics, alone and beside a second open file, and fails when the 95th percentile is above
the bar of 0.3 s. Also printed: the first diagnostics with an empty and with a filled cache, and how the server's memory
grows.
"""
import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "../../lit/lsp/Inputs")]
import training  # noqa: E402
from lsp_client import Client  # noqa: E402

BAR = 0.3

# Typed in the evaluation of the first network, one after the other.
STATEMENTS = [
    "  auto bias = torch::zeros({64}, device);\n",
    "  auto shifted = output + bias.unsqueeze(1);\n",
    "  if (shifted.dim() > 1) {\n    shifted = shifted.to(torch::kCPU);\n  }\n",
    "  auto both = output * shifted;\n",
]


def memory(process):
    """Resident memory in MB."""
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as stream:
        return next(int(line.split()[1]) / 1024 for line in stream if line.startswith("VmRSS"))


def processorTime(process):
    """Seconds of processor the server has used."""
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as stream:
        fields = stream.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def opened(command, file):
    begin = time.monotonic()
    client = Client(command)
    client.open(file)
    client.findings(file)
    return client, time.monotonic() - begin


def typed(client, file, text, edits):
    """Seconds from each edit to its diagnostics."""
    line = next(i for i, each in enumerate(text.splitlines()) if "auto hits" in each)
    waits = []
    characters = "".join(STATEMENTS) * (1 + edits // len("".join(STATEMENTS)))
    row, column = line, 0
    for character in characters[:edits]:
        begin = time.monotonic()
        client.edit(file, (row, column), (row, column), character)
        client.findings(file)
        waits.append(time.monotonic() - begin)
        row, column = (row + 1, 0) if character == "\n" else (row, column + 1)
    return waits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--work", help="keep everything here")
    options = parser.parse_args()
    work = options.work or tempfile.mkdtemp(prefix="lsp-bench-")
    os.makedirs(work, exist_ok=True)
    text = training.text()
    file, other = (os.path.join(work, name) for name in ("train.cpp", "other.cpp"))
    for each in (file, other):
        with open(each, "w", encoding="utf-8") as stream:
            stream.write(text)
    with open(os.path.join(work, "compile_commands.json"), "w", encoding="utf-8") as stream:
        json.dump([{"directory": work, "file": each, "arguments": training.arguments(each)} for each in (file, other)],
                  stream)
    shutil.rmtree(os.path.join(work, "cache"), ignore_errors=True)
    command = [options.tool, "--lsp", "--cache-dir", os.path.join(work, "cache")]

    client, cold = opened(command, file)
    client.shutdown()
    client, warm = opened(command, file)
    before, used = memory(client.process), processorTime(client.process)
    waits = typed(client, file, text, options.edits)
    after, used = memory(client.process), processorTime(client.process) - used
    client.change(file, text)
    client.findings(file)
    client.open(other)
    client.findings(other)
    besides = typed(client, file, text, options.edits // 2)
    client.change(file, text)
    findings = [each["code"] for each in client.findings(file)]
    status = client.shutdown()
    if not options.work:
        shutil.rmtree(work)

    high = max(percentile(each, 0.95) for each in (waits, besides))
    print(f"file of {len(text.splitlines())} lines, {len(waits)} edits; load {os.getloadavg()[0]:.1f}")
    print(f"first diagnostics, nothing in the cache  {cold:6.2f} s")
    print(f"first diagnostics, preamble in the cache {warm:6.2f} s")
    for what, each in (("edit to diagnostics", waits), ("the same beside a second open file", besides)):
        print(f"{what}: median {statistics.median(each):.3f} s, 95th percentile {percentile(each, 0.95):.3f} s, "
              f"longest {max(each):.3f} s (bar {BAR} s)")
    print(f"processor time for each edit {used / len(waits):.3f} s")
    print(f"memory of the server: {before:.0f} MB after opening, {after:.0f} MB after {len(waits)} edits")
    if "device-loss-input" not in findings or status:
        raise SystemExit(f"the server is not what it was: {findings}, exit status {status}")
    if high > BAR:
        raise SystemExit(f"the 95th percentile is above the bar of {BAR} s")


if __name__ == "__main__":
    main()
