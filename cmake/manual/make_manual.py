#!/usr/bin/env python3
"""Writes the man page and the shell completions of a program from its --help, which it prints from its option table.

make_manual.py PROGRAM OUTPUT_DIRECTORY --summary TEXT [--files GLOB]

Writes NAME.1, NAME.bash, _NAME (zsh) and NAME.fish, NAME being the program's file name.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

Option = collections.namedtuple("Option", "names value help choices")
Group = collections.namedtuple("Group", "title options")

OPTION = re.compile(r"^  (-\S.*?)(?:  +(.*))?$")
NAME = re.compile(r"^(--?[A-Za-z][\w-]*)(?:[= ](\S.*))?$")
CHOICES = re.compile(r"(?:^|: )((?:[\w-]+, )+[\w-]+ or [\w-]+|[\w-]+ or [\w-]+)(?= \(default|$)")


def output_of(*command):
    return subprocess.run([str(each) for each in command], capture_output=True, text=True, check=True).stdout


def choices_in(text):
    found = CHOICES.search(text)
    return re.split(r", | or ", found.group(1)) if found else []


def read_option(spelled, text):
    names, value = [], ""
    for part in spelled.split(", "):
        match = NAME.match(part)
        if not match:
            sys.exit(f"make_manual.py: no option: {part!r}")
        names.append(match.group(1))
        value = match.group(2) or value
    return Option(names, value, text, choices_in(text) if value else [])


def read_help(text):
    """The paragraphs around the options, and the options in their groups."""
    before, after, groups, group = [], [], [], None
    for line in text.splitlines():
        option = OPTION.match(line)
        if re.match(r"^[A-Z].*:$", line):
            group = Group(line[:-1], [])
            groups.append(group)
        elif option and group:
            group.options.append(read_option(option.group(1), option.group(2) or ""))
        elif line.startswith("    ") and group and group.options and line.strip():
            last = group.options[-1]
            group.options[-1] = last._replace(help=f"{last.help} {line.strip()}".strip())
        elif line.strip():
            (after if groups else before).append(line.strip())
    if not groups:
        sys.exit("make_manual.py: --help lists no options")
    return before, groups, after


def all_options(groups):
    return [option for group in groups for option in group.options]


# ---- man page


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text.startswith((".", "'")) else text


def man_page(name, version, summary, before, groups, after):
    usages = [line for line in before if re.match(rf"(usage: )?{name} ", line)]
    lines = [f'.TH {name.upper()} 1 "" "device\\-tidy {version}" "User Commands"', ".SH NAME"]
    lines.append(f"{roff(name)} \\- {roff(summary)}")
    lines.append(".SH SYNOPSIS")
    for usage in usages:
        rest = re.sub(rf"^(usage: )?{name} ", "", usage)
        lines += [f".B {roff(name)}", roff(rest), ".br"]
    lines.append(".SH DESCRIPTION")
    lines += [roff(line) for line in before if line not in usages]
    lines.append(".SH OPTIONS")
    for group in groups:
        lines.append(f".SS {roff(group.title)}")
        for option in group.options:
            value = f"\\fI{roff(option.value)}\\fR" if option.value else ""
            spelled = []
            for each in option.names:
                separator = "=" if each.startswith("--") else " "
                spelled.append(f"\\fB{roff(each)}\\fR" + (separator + value if value else ""))
            lines += [".TP", ", ".join(spelled), roff(option.help)]
    if after:
        lines.append(".SH EXIT STATUS")
        lines += [roff(re.sub(r"^Exit status: ", "", line)) for line in after]
    return "\n".join(lines) + "\n"


# ---- completions

LISTS = ("GLOBS",)  # values that are several words with commas between them


def kind_of(option):
    """What a shell should offer for the value: "file", "directory" or "nothing"."""
    if "DIR" in option.value:
        return "directory"
    return "file" if option.value in ("FILE", "SARIF") else "nothing"


def bash_completion(name, groups, words):
    function = "_" + name.replace("-", "_")
    names = " ".join(each for option in all_options(groups) for each in option.names)
    cases = []
    for option in all_options(groups):
        if not option.value:
            continue
        choices = words.get(option.value, option.choices)
        if choices and option.value in LISTS:
            reply = f'{function}_offer -P "$before" -W "{" ".join(choices)}" -- "$part"'
        elif choices:
            reply = f'{function}_offer -W "{" ".join(choices)}" -- "$word"'
        elif kind_of(option) == "directory":
            reply = f'{function}_offer -d -- "$word"'
        elif kind_of(option) == "file":
            reply = f'{function}_offer -f -- "$word"'
        else:
            reply = "COMPREPLY=()"
        cases.append(f"    {'|'.join(option.names)}) {reply}; return ;;")
    return f"""# bash completion of {name}
{function}_offer() {{ # one word a line: names of files have blanks
  mapfile -t COMPREPLY < <(compgen "$@")
}}
{function}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} option=${{COMP_WORDS[COMP_CWORD-1]}}
  if [[ $word == = ]]; then
    word=
  elif [[ $option == = ]]; then
    option=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  local part=${{word##*,}} # the last of a list; "-" takes it out
  part=${{part#-}}
  local before=${{word%"$part"}}
  case $option in
{chr(10).join(cases)}
  esac
  if [[ $word == -* ]]; then
    {function}_offer -W "{names}" -- "$word"
  else
    {function}_offer -f -- "$word"
  fi
}}
complete -o filenames -F {function} {name}
"""


def quoted(text):
    return "'" + text.replace("'", "'\\''") + "'"


def zsh_completion(name, groups, words):
    lines = [f"#compdef {name}", "_arguments -S \\"]
    for option in all_options(groups):
        action = ""
        if option.value:
            choices = words.get(option.value, option.choices)
            joined = " ".join(choices)
            several = f"_sequence compadd - {joined}" if option.value in LISTS else f"({joined})"
            offered = several if choices else {"file": "_files", "directory": "_directories"}.get(
                kind_of(option), " "
            )
            action = f":{option.value.replace(':', ' ')}:{offered}"
        help_text = re.sub(r"([\[\]:])", r"\\\1", option.help)
        for each in option.names:
            join = "=" if option.value and each.startswith("--") else "+" if option.value else ""
            lines.append(f"  {quoted(f'{each}{join}[{help_text}]{action}')} \\")
    lines.append("  '*:file:_files'")
    return "\n".join(lines) + "\n"


def fish_completion(name, groups, words):
    lines = []
    for option in all_options(groups):
        line = f"complete -c {name}"
        for each in option.names:
            line += f" -l {each[2:]}" if each.startswith("--") else f" -s {each[1:]}"
        if option.value:
            choices = words.get(option.value, option.choices)
            if choices and option.value in LISTS:
                line += f" -x -a '(__fish_complete_list , \"string split , {','.join(choices)}\")'"
            elif choices:
                line += f" -x -a {quoted(' '.join(choices))}"
            elif kind_of(option) == "nothing":
                line += " -x"
            else:
                line += " -r"
        lines.append(f"{line} -d {quoted(option.help)}")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--summary", required=True)
    parser.add_argument("--checks", action="store_true", help="the program has --list-checks")
    arguments = parser.parse_args()

    name = arguments.program.name
    listing = output_of(arguments.program, "--help")
    if "--help-all" in listing:
        listing = output_of(arguments.program, "--help-all")
    before, groups, after = read_help(listing)
    version = re.search(r"\d+\.\d+\.\d+", output_of(arguments.program, "--version")).group(0)
    words = {}
    if arguments.checks:
        checks = [line.split()[0] for line in output_of(arguments.program, "--list-checks").splitlines() if line]
        words = {"CHECK": checks, "GLOBS": checks}
    arguments.directory.mkdir(parents=True, exist_ok=True)
    for file, text in (
        (f"{name}.1", man_page(name, version, arguments.summary, before, groups, after)),
        (f"{name}.bash", bash_completion(name, groups, words)),
        (f"_{name}", zsh_completion(name, groups, words)),
        (f"{name}.fish", fish_completion(name, groups, words)),
    ):
        (arguments.directory / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
