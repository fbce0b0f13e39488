"""same_report.py TOOL DATABASE ARGUMENTS...: a run over the database and a --link with the arguments, which name
facts files among the options, give the same report, remarks and exit status."""

import subprocess
import sys

tool, database, *arguments = sys.argv[1:]
options = [each for each in arguments if each.startswith("--")]
runs = [
    subprocess.run([tool, *command], capture_output=True, text=True, check=False)
    for command in (["-p", database, "--no-cache", *options], ["--link", *arguments])
]
whole, linked = runs
for what in ("returncode", "stdout", "stderr"):
    expected, found = (getattr(run, what) for run in runs)
    if expected != found:
        sys.exit(f"{what} differs\n--- one step\n{expected}\n--- linked\n{found}")
if not whole.stdout and not whole.stderr:
    sys.exit("both runs said nothing")
