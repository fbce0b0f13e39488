"""Writes, as a list of JSON, the commands in the scripts of a project that start a Python program once for each GPU. The folders of the
projects are read, each ended by a zero byte.

They are looked for in shell and SLURM scripts, Makefiles and YAML files. What documents show is no command of the project.
"""

import json
import os
import re
import shlex
import sys

MODULES = {"torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch", "deepspeed.launcher.runner"}
SCRIPTS = (".sh", ".bash", ".slurm", ".sbatch", ".mk", ".yml", ".yaml")
COUNTS = {"nproc_per_node", "num_processes", "num_gpus"}
MACHINES = {"nnodes", "num_machines", "num_nodes"}
MOST_FILES = 20000  # looked at


def files_below(root):
    seen = 0
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(each for each in folders if each[0] != "." and each not in ("node_modules", "site-packages"))
        for name in sorted(names):
            if name.endswith(SCRIPTS) or name in ("Makefile", "makefile"):
                yield os.path.join(folder, name)
        seen += len(names)
        if seen > MOST_FILES:
            return


def logical_lines(text):
    """Lines with those that continue them, each with the number of its first."""
    lines = text.split("\n")
    start = 0
    while start < len(lines):
        end = start
        while end + 1 < len(lines) and (lines[end].rstrip().endswith("\\") or '"' in open_quote(lines[start : end + 1])):
            end += 1
        yield start + 1, "\n".join(lines[start : end + 1]).replace("\\\n", " ")
        start = end + 1


def open_quote(lines):
    """A quote that an assignment leaves open: its value goes on in the next line."""
    text = "\n".join(lines)
    return '"' if re.match(r'\s*(export\s+)?\w+="[^"]*$', text) else ""


def words_of(line):
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


def expanded(word, variables):
    def value(match):
        return variables.get(match.group(1) or match.group(2), match.group(0))

    return re.sub(r"\$[{(]?(\w+)(?::-[^}]*)?[})]?|\$(\w+)", value, word)


def options_of(words):
    """Options with their values; those without one have the next word."""
    options = {}
    for word, following in zip(words, [*words[1:], ""]):
        if word.startswith("-"):
            name, _, value = word.lstrip("-").partition("=")
            options[name.replace("-", "_")] = value or following
    return options


def is_single(words, folders):
    """Does it start one process only?"""
    options = options_of(words)
    if any(options.get(each, "1") != "1" for each in MACHINES):
        return False
    if any(options.get(each) == "1" for each in COUNTS):
        return True
    for folder in folders if "config_file" in options else ():
        path = os.path.join(folder, options["config_file"])
        if os.path.isfile(path):
            text = text_of(path)
            return bool(re.search(r"^(num_processes: *1|distributed_type: *['\"]?NO['\"]?) *$", text, re.MULTILINE))
    return False


def launcher_in(words):
    """The launcher and the words behind it."""
    for i, word in enumerate(words):
        name = os.path.basename(word)
        if name in ("torchrun", "deepspeed", "accelerate-launch"):
            return name, words[i + 1 :]
        if name == "accelerate" and words[i + 1 : i + 2] == ["launch"]:
            return "accelerate launch", words[i + 2 :]
        if word == "-m" and words[i + 1 : i + 2] and words[i + 1] in MODULES:
            return words[i + 1], words[i + 2 :]
    return None, []


def program_in(words):
    """The path of the program that a launcher is given, or of its module."""
    for i, word in enumerate(words):
        if word.endswith(".py"):
            return word, words[:i]
        if word in ("-m", "--module") and i + 1 < len(words):
            return words[i + 1].replace(".", "/") + ".py", words[:i]
    return None, []


def text_of(path):
    try:
        with open(path, encoding="utf-8") as stream:
            return stream.read(1 << 20)
    except (OSError, UnicodeDecodeError):
        return ""


def command_of(line, path):
    """A line without what Makefiles and YAML put around a command."""
    if path.endswith((".yml", ".yaml")):
        line = re.sub(r"^\s*(- )?(\w+:)?\s*", "", line)
        return re.sub(r"[\[\],]", " ", line)
    return line.lstrip("\t @-") if "akefile" in path or path.endswith(".mk") else line


def launches_in(path, root):
    text = text_of(path)
    if not re.search(r"torchrun|torch\.distributed|accelerate|deepspeed", text):
        return
    folders = [os.path.dirname(path)]
    while len(folders[-1]) > len(root):
        folders.append(os.path.dirname(folders[-1]))
    variables = {}
    for number, line in logical_lines(text):
        words = words_of(command_of(line, path))
        for word in words:
            name, is_assignment, value = word.partition("=")
            if not is_assignment or not re.fullmatch(r"\w+", name):
                break
            variables[name] = expanded(value, variables)
        words = [part for word in words for part in (expanded(word, variables).split() if "$" in word else [word])]
        launcher, rest = launcher_in(words)
        program, before = program_in(rest)
        if launcher and program and not is_single(before, folders):
            found = re.search(re.escape(launcher.split()[0]), line)
            column = found.start() if found and "\n" not in line else 0
            paths = [os.path.normpath(os.path.join(folder, program)) for folder in folders]
            yield {"path": path, "line": number, "column": column, "command": launcher, "programs": paths}


def launches_below(root):
    return [launch for path in files_below(root) for launch in launches_in(path, root)]


if __name__ == "__main__":
    roots = sys.stdin.buffer.read().split(b"\0")[:-1]
    print(json.dumps([launch for root in roots for launch in launches_below(os.fsdecode(root))]))
