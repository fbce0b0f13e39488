#!/usr/bin/env python3
"""Makes everything that follows from checks/checks.json, the one list of checks.

  generate.py REGISTRY OUTPUT   write CheckRegistry.inc (the build calls this)
  generate.py --docs            write docs/checks/index.md
  generate.py --check           fail when a check lacks its source, page or test, or the list is stale
  generate.py --new NAME        make the files and the entry of a new check; NAME is like device-some-thing
"""

import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
REGISTRY = ROOT / "checks" / "checks.json"
PAGES = ROOT / "docs" / "checks"
TESTS = ROOT / "test" / "lit" / "checks"
LEVELS = {"definite": "Level::Definite", "likely": "Level::Likely", "latent": "Level::Latent"}
KEYS = ["name", "class", "summary", "level", "message", "fix", "notes", "options"]
OPTION_KEYS = ["name", "kind", "default", "help"]
OPTION_KINDS = {"level": "CheckOptionKind::Level", "flag": "CheckOptionKind::Flag", "names": "CheckOptionKind::Names"}
# What every check has.
COMMON_OPTIONS = [
    {"name": "Level", "kind": "level", "default": "", "help": "least sure level to show of this check"}
]
# Fields that analyzer/report/diagnostic/Describe.cpp gives to every template.
COMMON_FIELDS = {"operation", "gets", "fix", "first", "second", "firstDevice", "secondDevice"}


def load(path=REGISTRY):
    checks = json.loads(path.read_text(encoding="utf-8"))
    for check in checks:
        missing = [key for key in KEYS if key not in check]
        unknown = [key for key in check if key not in KEYS]
        if missing or unknown:
            sys.exit(f"{path}: {check.get('name', '?')}: missing {missing}, unknown {unknown}")
        if check["level"] not in LEVELS:
            sys.exit(f"{path}: {check['name']}: level must be one of {', '.join(LEVELS)}")
        for option in check["options"]:
            if sorted(option) != sorted(OPTION_KEYS) or option["kind"] not in OPTION_KINDS:
                sys.exit(
                    f"{path}: {check['name']}: an option has the keys {', '.join(OPTION_KEYS)}"
                    f" and one of the kinds {', '.join(OPTION_KINDS)}: {option}"
                )
    return sorted(checks, key=lambda check: check["name"])


def literal(text):
    """`text` as a C++ string literal."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", '\\n"\n    "')
    return f'"{escaped}"'


def page_path(check):
    return PAGES / f"{check['name']}.md"


def registry_inc(checks):
    lines = ["// Written by checks/generate.py from checks/checks.json.", "#ifdef DEVICE_TIDY_CHECK_HEADERS"]
    lines += [f'#include "checks/{check["class"]}.h"' for check in checks]
    lines += ["#endif", "#ifdef DEVICE_TIDY_CHECK"]
    lines += [f"DEVICE_TIDY_CHECK({check['class']})" for check in checks]
    lines += ["#endif", "#ifdef DEVICE_TIDY_CHECK_INFOS"]
    for check in checks:
        notes = ", ".join(f"{{{literal(key)}, {literal(text)}}}" for key, text in check["notes"].items())
        options = ", ".join(
            f"{{{literal(o['name'])}, {OPTION_KINDS[o['kind']]}, {literal(o['default'])}, {literal(o['help'])}}}"
            for o in [*COMMON_OPTIONS, *check["options"]]
        )
        page = page_path(check).read_text(encoding="utf-8") if page_path(check).exists() else ""
        lines += [
            f"{{{literal(check['name'])},",
            f"    {literal(check['summary'])},",
            f"    {LEVELS[check['level']]},",
            f"    {literal(check['message'])},",
            f"    {literal(check['fix'])},",
            f"    {{{notes}}},",
            f"    {{{options}}},",
            f"    {literal(page)}}},",
        ]
    return "\n".join(lines + ["#endif", ""])


def index_page(checks):
    rows = [f"| [{c['name']}]({c['name']}.md) | {c['summary']} | {c['level']} |" for c in checks]
    return "\n".join(
        [
            "# Checks",
            "",
            "This list is written by `python3 checks/generate.py --docs` from `checks/checks.json`.",
            "`device-tidy --explain=NAME` prints a page.",
            "",
            "| check | reports that | highest level |",
            "|---|---|---|",
            *rows,
            "",
            *ADDING.splitlines(),
            "",
        ]
    )


ADDING = """## Adding a check

1. `python3 checks/generate.py --new device-some-thing` creates the class in `checks/`, the page here, the
   test in `test/lit/checks/` and the entry in `checks/checks.json`.
2. Fill in the entry. `message`, `fix` and `notes` are templates; the fields they may name are those the
   class puts into `Finding::fields` and the ones every finding has: `{operation}`, `{gets}`, `{fix}`,
   `{first}`, `{second}`, `{firstDevice}` and `{secondDevice}`.
3. Write `run` in the class: it reads one kind of answer from the `Solution` (`analyzer/solve/solution/Solution.h`) and
   pushes a `Finding` for every answer that is a mistake. An answer that the solution does not have belongs in
   `analyzer/solve`.
4. Write the page with bad and good code, and the test.
5. `python3 checks/generate.py --docs` updates this list, `python3 checks/generate.py --check` lists what
   is missing.
"""


def write_if_changed(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def problems_of(check):
    """What `check` lacks, as sentences."""
    name, cls = check["name"], check["class"]
    header, source = ROOT / "checks" / f"{cls}.h", ROOT / "checks" / f"{cls}.cpp"
    for path in (header, source):
        if not path.exists():
            yield f"{path.relative_to(ROOT)} is missing"
    if header.exists() and f'"{name}"' not in header.read_text(encoding="utf-8"):
        yield f"{header.name} does not return the name {name}"
    page = page_path(check)
    if not page.exists():
        yield f"{page.relative_to(ROOT)} is missing"
    else:
        text = page.read_text(encoding="utf-8")
        if not text.startswith(f"# {name}\n"):
            yield f"{page.name} must start with '# {name}'"
        for option in check["options"]:
            if f"`{option['name']}`" not in text:
                yield f"{page.name} does not say what the option `{option['name']}` does"
        if len(re.findall(r"^```cpp\n[^`]+^```$", text, re.MULTILINE)) < 2:
            yield f"{page.name} needs bad and good code"
    tests = [TESTS / (name + extension) for extension in (".cpp", ".cu")]
    test = next((each for each in tests if each.exists()), tests[0])
    if not test.exists():
        yield f"{test.relative_to(ROOT)} is missing"
    elif f"[{name}]" not in test.read_text(encoding="utf-8"):
        yield f"{test.name} expects no finding of {name}"
    for key in ("summary", "message"):
        if not check[key]:
            yield f"checks.json: '{key}' is empty"
    known = set(COMMON_FIELDS)
    if source.exists():
        known |= set(re.findall(r'\{"(\w+)", ', source.read_text(encoding="utf-8")))
    for template in [check["message"], check["fix"], *check["notes"].values()]:
        for field in re.findall(r"\{(\w+)\}", template):
            if field not in known:
                yield f"checks.json: no field '{field}' for: {template}"


def run_checks(checks):
    problems = [f"{c['name']}: {problem}" for c in checks for problem in problems_of(c)]
    index = PAGES / "index.md"
    if not index.exists() or index.read_text(encoding="utf-8") != index_page(checks):
        problems.append("docs/checks/index.md is stale: run python3 checks/generate.py --docs")
    listed = {c["name"] for c in checks} | {"index"}
    orphans = [page for page in sorted(PAGES.glob("*.md")) if page.stem not in listed]
    problems += [f"docs/checks/{page.name} belongs to no check" for page in orphans]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


HEADER = """{banner}
#pragma once

#include "checks/Check.h"

namespace devicetidy {{

class {cls} : public Check {{
public:
  std::string_view name() const override {{ return "{name}"; }}
  void run(const Solution &solution, const CheckContext &context,
           std::vector<Finding> &findings) const override;
}};

}} // namespace devicetidy
"""

SOURCE = """#include "checks/{cls}.h"

namespace devicetidy {{

// Ask `solution` a question and push a finding for every answer that is a mistake; the sentences stand in
// checks.json.
void {cls}::run(const Solution &, const CheckContext &, std::vector<Finding> &) const {{}}

}} // namespace devicetidy
"""

PAGE = """# {name}

Say in one sentence what goes wrong at run time.

Bad:

```cpp
```

Good:

```cpp
```
"""

TEST = """// REQUIRES: torch
// RUN: not %device-tidy --checks={name} %s %torch | FileCheck %s --implicit-check-not=warning:
#include <torch/torch.h>

// CHECK: [[@LINE+1]]:{{{{[0-9]+}}}}: warning: {{{{.*}}}} [{name}]
"""


def new_check(name, checks):
    if not re.fullmatch(r"device(-[a-z0-9]+)+", name):
        sys.exit(f"{name}: a check is called device-some-thing")
    if any(check["name"] == name for check in checks):
        sys.exit(f"{name}: there is a check of this name")
    cls = "".join(part.capitalize() for part in name.split("-"))
    title = f"//===- {cls}.h - {name} "
    values = {"name": name, "cls": cls, "banner": title.ljust(65, "-") + "*- C++ -*-===//"}
    files = {
        ROOT / "checks" / f"{cls}.h": HEADER,
        ROOT / "checks" / f"{cls}.cpp": SOURCE,
        PAGES / f"{name}.md": PAGE,
        TESTS / f"{name}.cpp": TEST,
    }
    for path, template in files.items():
        if path.exists():
            sys.exit(f"{path.relative_to(ROOT)} exists")
    for path, template in files.items():
        write_if_changed(path, template.format(**values))
        print(path.relative_to(ROOT))
    texts = {"summary": "", "level": "definite", "message": "", "fix": "", "notes": {}, "options": []}
    written = json.loads(REGISTRY.read_text(encoding="utf-8")) # in the order people gave it
    written.append({"name": name, "class": cls, **texts})
    REGISTRY.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
    print(f"{REGISTRY.relative_to(ROOT)}: fill in the entry, then run python3 checks/generate.py --docs")


def main():
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--new", metavar="NAME")
    parser.add_argument("paths", nargs="*", metavar="REGISTRY OUTPUT")
    options = parser.parse_args()
    if options.new:
        new_check(options.new, load())
    elif options.docs:
        write_if_changed(PAGES / "index.md", index_page(load()))
    elif options.check:
        return run_checks(load())
    elif len(options.paths) == 2:
        registry, output = map(pathlib.Path, options.paths)
        # Written even when nothing changed: the build compares times.
        output.write_text(registry_inc(load(registry)), encoding="utf-8")
    else:
        parser.error("give REGISTRY OUTPUT, --docs, --check or --new NAME")
    return 0


if __name__ == "__main__":
    sys.exit(main())
