"""Folders in which the commands of a page run as they are copied."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

from pages import SOURCES

sys.path.insert(0, str(SOURCES / "test"))
from environment import clean_environment  # noqa: E402

PROJECT = SOURCES / "test/docs/project"
TORCH = "/usr/include/torch/csrc/api/include"


def git(*arguments, cwd):
    names = ["-c", "user.name=Docs", "-c", "user.email=docs@example.org", "-c", "init.defaultBranch=main"]
    done = subprocess.run(["git", *names, *arguments], cwd=cwd, capture_output=True, text=True, check=True)
    return done.stdout


def source_files():
    """The files of the repository; sources without one, from an archive, are all files outside of build folders."""
    if (SOURCES / ".git").exists():
        listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=SOURCES)
        return [name for name in listed.split("\0") if name]
    names = []
    for folder, folders, files in os.walk(SOURCES):
        folders[:] = [each for each in folders if not each.startswith("build") and each != "__pycache__"]
        names += [os.path.relpath(os.path.join(folder, name), SOURCES) for name in files]
    return names


class Sandbox:
    """One folder of a `kind`, for the blocks of one page: what one of them makes, the next one finds."""

    def __init__(self, kind, parent, build):
        self.kind, self.build = kind, build
        self.root = parent / kind
        self.temporary = parent / f"{kind}-tmp"
        self.temporary.mkdir(parents=True)
        self.home = parent / f"{kind}-home"
        self.home.mkdir()
        if kind == "project":
            shutil.copytree(PROJECT, self.root)
            self.database(self.root / "build")
            (self.root / ".gitignore").write_text("build/\n", encoding="utf-8")
        else:
            self.copy_sources()
            shutil.copytree(PROJECT / "src", self.root / "src")
            self.database(self.root / "BUILD_DIR")
            if kind == "clone":
                (self.root / "build").symlink_to(build)
        git("init", "--quiet", cwd=self.root)
        git("add", "--all", cwd=self.root)
        git("commit", "--quiet", "-m", "Start", cwd=self.root)
        git("update-ref", "refs/remotes/origin/main", "HEAD", cwd=self.root)

    def copy_sources(self):
        for name in source_files():
            source = SOURCES / name
            if source.is_symlink() or not source.is_file():
                continue  # a link to the build folder, or deleted and not yet committed
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, self.root / name)

    def database(self, folder):
        folder.mkdir()
        units = [
            {
                "directory": str(folder),
                "file": str(self.root / "src" / name),
                "arguments": ["g++", "-std=c++17", "-isystem", TORCH, "-c", str(self.root / "src" / name)],
            }
            for name in ("loss.cpp", "main.cpp", "train.cpp")
        ]
        (folder / "compile_commands.json").write_text(json.dumps(units), encoding="utf-8")

    def place(self, path):
        """Where a file of a page lies: below the sandbox, also when the page says /tmp."""
        return self.temporary / path[5:] if path.startswith("/tmp/") else self.root / path

    def environment(self, cache):
        build = self.root / "build" if self.kind == "built" else self.build
        return {
            **clean_environment(),
            "PATH": f"{build}/bin:{os.environ['PATH']}",
            "HOME": str(self.home),
            "XDG_CACHE_HOME": str(cache),
            "CCACHE_DIR": os.environ.get("CCACHE_DIR", str(pathlib.Path.home() / ".cache/ccache")),
            "CCACHE_BASEDIR": str(self.root),
            "CCACHE_NOHASHDIR": "1",
            "TERM": "dumb",
        }
