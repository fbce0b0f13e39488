"""Tells the records of device-run which Python code is the program's, and which exception ended it."""

import os
import sys

from . import FOLDER


def watch(torch_c, native):
    torch_folder = os.path.dirname(torch_c.__file__)
    foreign = [torch_folder + os.sep, FOLDER + os.sep]
    if "--multiprocessing-fork" in sys.orig_argv:
        foreign.append("<string>")  # python -c "from multiprocessing.spawn import spawn_main; ..."
    native.watch_frames(foreign, os.path.dirname(os.__file__) + os.sep)
    show = sys.excepthook

    def record_and_show(kind, exception, traceback):
        if not issubclass(kind, KeyboardInterrupt):
            native.record_uncaught(str(exception) or kind.__name__)
        show(kind, exception, traceback)

    sys.excepthook = record_and_show
