"""Puts the commit that a file names in the place of HEAD: set_rev.py REV_FILE CONFIG."""

import pathlib
import sys

revision, config = map(pathlib.Path, sys.argv[1:])
text = config.read_text(encoding="utf-8")
config.write_text(text.replace("rev: HEAD", "rev: " + revision.read_text(encoding="utf-8").strip()), encoding="utf-8")
