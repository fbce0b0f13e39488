"""The environment of every test, as environment.txt has it."""

import os
import pathlib
import re
import sys


def rules():
    """What stays, as a pattern of names, and what is set."""
    kept, fixed = [], {}
    for line in pathlib.Path(__file__).with_name("environment.txt").read_text(encoding="utf-8").splitlines():
        word, _, rest = line.partition(" ")
        if word == "keep":
            kept.append(rest)
        elif word == "set":
            name, _, value = rest.partition("=")
            fixed[name] = value
    return re.compile("|".join(kept)), fixed


def clean_environment(environment=os.environ):
    """`environment` without what might decide a test."""
    kept, fixed = rules()
    return {**{name: value for name, value in environment.items() if kept.fullmatch(name)}, **fixed}


def main():
    """Fails when this process has another environment: CTest runs it as a test of its own."""
    kept, fixed = rules()
    own = {"PWD", "OLDPWD", "SHLVL", "_", "CTEST_INTERACTIVE_DEBUG_MODE", "LC_CTYPE"}  # of shells, CTest and Python
    others = sorted(name for name in os.environ if not kept.fullmatch(name) and name not in fixed and name not in own)
    wrong = sorted(name for name, value in fixed.items() if os.environ.get(name) != value)
    if others or wrong:
        sys.exit(f"variables that may decide a test: {others}; not as they are set: {wrong}")
    print("The environment is that of test/environment.txt.")


if __name__ == "__main__":
    main()
