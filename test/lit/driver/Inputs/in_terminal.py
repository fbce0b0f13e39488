"""Runs a command in a terminal of its own and prints what it shows there: in_terminal.py COMMAND..."""

import os
import pty
import sys

shown = bytearray()
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
try:
    while True:
        data = os.read(terminal, 65536)
        if not data:
            break
        shown.extend(data)
except OSError:  # the other end is closed
    pass
os.waitpid(pid, 0)
sys.stdout.buffer.write(shown)
