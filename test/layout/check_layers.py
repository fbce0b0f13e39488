#!/usr/bin/env python3
"""check_layers.py [ROOT]

Holds the sources against layers.py, which says which room may use which. It reads every #include that names a file of
the repository, and the LINK line of every room that is a CMake library of its own. It fails, with file and line, where
a room uses one that it may not use, for a folder with sources that is no room, and for a room without a folder.
It also fails for the name of a library in a string literal of a room that is to know no library.
"""

import fnmatch
import pathlib
import re
import sys

import layers
from layers import INCLUDE_FOLDERS, LIBRARY_NAMES, ROOMS, ROOMS_WITHOUT_LIBRARIES, TREES

SOURCES = {".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".inc"}
INCLUDE = re.compile(r'\s*#\s*include\s*(["<])([^">]+)[">]')
# A string literal, or a comment that begins where none is open. Raw strings count as plain ones.
STRING_OR_COMMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|//.*')
LIBRARY = re.compile(r"^\s*(?:device_tidy_library|device_run_room|device_shim_room)\(\s*(\w+)(.*?)\)", re.M | re.S)


def is_below(path, folder):
    return path == folder or path.startswith(folder + "/")


def room_of(path):
    """The room that a file is in, or None. A room named "a/**" is "a" with all folders below it."""
    folder = path.rpartition("/")[0]
    if folder in ROOMS:
        return folder
    return next((room for room in ROOMS if room.endswith("/**") and is_below(folder, room[:-3])), None)


def may_use(room, other):
    return room == other or any(fnmatch.fnmatchcase(other, each) for each in ROOMS[room])


class Layers:
    def __init__(self, root):
        self.root = root
        self.errors = []

    def fail(self, path, line, sentence):
        self.errors.append(f"{path}:{line}: {sentence}")

    def fail_table(self, entry, sentence):
        text = pathlib.Path(layers.__file__).read_text(encoding="utf-8")
        at = max(text.find(entry), 0)
        self.fail("test/layout/layers.py", text.count("\n", 0, at) + 1, sentence)

    def files(self, names):
        for tree in TREES:
            for path in sorted((self.root / tree).rglob("*")):
                if path.is_file() and (path.suffix in names or path.name in names):
                    yield path.relative_to(self.root).as_posix()

    def lines(self, path):
        return (self.root / path).read_text(encoding="utf-8", errors="replace").split("\n")

    def file_named(self, path, name, is_quoted):
        """The file of the repository that `name` means in an #include of the file `path`, or None."""
        folders = [path.rpartition("/")[0]] if is_quoted else []
        folders += next((found for tree, found in INCLUDE_FOLDERS.items() if is_below(path, tree)), [])
        for folder in [*folders, "."]:
            found = (self.root / folder / name).resolve()
            if found.is_file() and found.is_relative_to(self.root):
                return found.relative_to(self.root).as_posix()
        return None

    def refuse(self, path, line, room, other, what):
        allowed = ", ".join(ROOMS[room]) or "no other room"
        self.fail(path, line, f"{room} may not use {other} ({what}); it may use {allowed}")

    def check_source(self, path):
        room = room_of(path)
        if not room:
            folder = path.rpartition("/")[0]
            self.fail(path, 1, f"{folder} is no room; name it in test/layout/layers.py with the rooms that it may use")
            return
        self.check_names(path, room)
        for number, line in enumerate(self.lines(path), 1):
            match = INCLUDE.match(line)
            target = match and self.file_named(path, match[2], match[1] == '"')
            other = target and room_of(target)
            if other and not may_use(room, other):
                self.refuse(path, number, room, other, target)

    def check_names(self, path, room):
        if not any(fnmatch.fnmatchcase(room, each) for each in ROOMS_WITHOUT_LIBRARIES):
            return
        for number, line in enumerate(self.lines(path), 1):
            for literal in STRING_OR_COMMENT.finditer(line):
                name = re.search(LIBRARY_NAMES, literal[1] or "")
                if name:
                    sentence = f"{room} may not know {name[0]} (in {literal[0]}); that belongs in analyzer/models"
                    self.fail(path, number, sentence)

    def check_links(self):
        libraries = []
        folders = {}
        for path in self.files({"CMakeLists.txt"}):
            text = (self.root / path).read_text(encoding="utf-8")
            for match in LIBRARY.finditer(text):
                folder = path.rpartition("/")[0]
                folders[match[1]] = folder
                libraries.append((path, text.count("\n", 0, match.start()) + 1, folder, match[2]))
        for path, line, folder, arguments in libraries:
            room = room_of(folder + "/")
            for name in re.findall(r"\w+", arguments.partition("LINK")[2]):
                other = room_of(folders.get(name, "") + "/")
                if room and other and not may_use(room, other):
                    self.refuse(path, line, room, other, "LINK " + name)

    def check(self):
        for path in self.files(SOURCES):
            self.check_source(path)
        self.check_links()
        for room in ROOMS:
            if not (self.root / room.removesuffix("/**")).is_dir():
                self.fail_table(room, f"there is no folder {room}")


def main(root=pathlib.Path(__file__).parents[2]):
    found = Layers(pathlib.Path(root).resolve())
    found.check()
    print("\n".join(found.errors) or f"{len(ROOMS)} rooms")
    return 1 if found.errors else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
