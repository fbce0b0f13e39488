"""How much longer a training step takes on a virtual GPU than on the CPU, and `import torch` with virtual GPUs.

usage: compare.py --device-run PATH --python INTERPRETER_WITH_TORCH [--seconds S] [--rounds N]

Rounds of both take turns, and the fastest of each counts, so that other work on the machine matters little.
"""

import argparse
import pathlib
import subprocess
import time

STEPS = pathlib.Path(__file__).parent / "steps.py"
IMPORT = ["-c", "import torch; torch.ones(1).to('cuda' if torch.cuda.is_available() else 'cpu')"]


def timed(command):
    start = time.perf_counter()
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return output, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device-run", required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--seconds", default="5", help="for each model and round")
    parser.add_argument("--rounds", type=int, default=6)
    options = parser.parse_args()
    python = [options.python, "-W", "ignore"]
    ways = {"cpu": python, "virtual GPU": [options.device_run, "--virtual-gpus", "1", "--", *python]}
    fastest = {}
    for _ in range(options.rounds):
        for way, command in ways.items():
            output, _ = timed([*command, str(STEPS), options.seconds])
            measured = [line.split() for line in output.splitlines()]
            measured.append(("import", 1000 * timed([*command, *IMPORT])[1]))
            for name, milliseconds in measured:
                known = fastest.setdefault(name, {})
                known[way] = min(known.get(way, float("inf")), float(milliseconds))
    for name, times in fastest.items():
        cpu, gpu = times["cpu"], times["virtual GPU"]
        print(f"{name:8} cpu {cpu:8.2f} ms   virtual GPU {gpu:8.2f} ms   {gpu / cpu:.2f}x")


if __name__ == "__main__":
    main()
