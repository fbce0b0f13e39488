#!/usr/bin/env python3
"""truncated.py --tool DEVICE_TIDY [--step N]: a training program that ends after each of its lines.

Opens a file of 500 lines in the language server and cuts it off after every line (every N-th with --step), in the
middle of the line too. Every state must be answered within a minute by the same process, and the whole file must
have its finding afterwards.
"""
import argparse
import json
import os
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../bench/lsp"), os.path.join(here, "../lit/lsp/Inputs")]
import training  # noqa: E402
from lsp_client import Client  # noqa: E402

PATIENCE = 60  # seconds for one state


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--step", type=int, default=1)
    options = parser.parse_args()
    text = training.text()
    lines = text.splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as work:
        file = os.path.join(work, "train.cpp")
        with open(file, "w", encoding="utf-8") as stream:
            stream.write(text)
        with open(os.path.join(work, "compile_commands.json"), "w", encoding="utf-8") as stream:
            json.dump([{"directory": work, "file": file, "arguments": training.arguments(file)}], stream)
        client = Client([options.tool, "--lsp", "--cache-dir", os.path.join(work, "cache")])
        client.open(file)
        client.findings(file)
        states = 0
        for count in range(0, len(lines), options.step):
            before, line = "".join(lines[:count]), lines[count]
            for state in (before, before + line[: len(line) // 2]):
                client.change(file, state)
                try:
                    client.findings(file, PATIENCE)
                except (TimeoutError, EOFError) as error:
                    raise SystemExit(f"after line {count} ({state[-40:]!r}): {error}") from None
                states += 1
        client.change(file, text)
        codes = [each["code"] for each in client.findings(file)]
        status = client.shutdown()
    if "device-loss-input" not in codes or status:
        raise SystemExit(f"the whole file afterwards: {codes}, exit status {status}")
    print(f"{states} states, all answered")


if __name__ == "__main__":
    main()
