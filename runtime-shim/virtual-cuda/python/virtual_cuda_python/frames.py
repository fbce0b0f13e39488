"""Tells the records of device-run which Python code is the program's, and which exception ended it."""

import os
import sys

from . import FOLDER


def watch(torch_c, native):
    torch_folder = os.path.dirname(torch_c.__file__)
    native.watch_frames([torch_folder + os.sep, FOLDER + os.sep], os.path.dirname(os.__file__) + os.sep)
    show = sys.excepthook

    def record_and_show(kind, exception, traceback):
        if not issubclass(kind, KeyboardInterrupt):
            native.record_uncaught(str(exception) or kind.__name__)
        show(kind, exception, traceback)

    sys.excepthook = record_and_show
