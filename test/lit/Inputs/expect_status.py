"""Runs a command and fails unless it exits with the status given first: expect_status.py 2 command ..."""

import subprocess
import sys

wanted, command = int(sys.argv[1]), sys.argv[2:]
status = subprocess.run(command).returncode
if status != wanted:
    sys.exit(f"exit status {status}, expected {wanted}: {' '.join(command)}")
