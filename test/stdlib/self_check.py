"""Proves that the suite can fail: handwritten functions are really built and run, and a stub says wrong things."""

import sys
from pathlib import Path
from types import SimpleNamespace

import report
from build import Workshop
from function import Function
from judge import judge

STUB = """import json, sys
source = next(a for a in sys.argv if a.endswith(".cpp"))
found = [dict(file=source, line=n, level=text.split("SAY ")[1].split()[0], check="stub", message="stub")
         for n, text in enumerate(open(source), 1) if "SAY " in text]
print(json.dumps(dict(failures=[], findings=found)))
"""

# The body; the kind of the verdict, whether it is a false finding, whether it is a miss.
CASES = [
    ("host().mm(gpu()); // SAY definite", "fails", False, False),
    ("host().mm(gpu()); // SAY likely", "fails", False, False),
    ("host().mm(gpu());", "fails", False, True),
    ("host().mm(gpu()); // SAY latent", "fails", False, True),
    ("host().mm(host()); // SAY definite", "clean", True, False),
    ("host().mm(host()); // SAY likely", "clean", False, False),
    ("host().mm(host());", "clean", False, False),
    # Behind a failure nothing runs; before it, everything did.
    ("host().mm(gpu()); // SAY definite\n  gpu().mm(gpu()); // SAY definite", "fails", False, False),
    ("gpu().mm(gpu()); // SAY definite\n  host().mm(gpu());", "fails", True, True),
    # A failure found at another line is a miss.
    ("host().mm(gpu());\n  gpu().mm(host()); // SAY definite", "fails", False, True),
    ("if (externalFlag()) {\n  host().mm(gpu()); // SAY definite\n  }", "sometimes", False, False),
    ("if (externalFlag()) {\n  host().mm(host()); // SAY definite\n  }", "clean", True, False),
    ("std::vector<Tensor> items;\n  items.front().mm(host()); // SAY definite", "discarded", False, False),
    ("while (true) {\n  host(); // SAY definite\n  }", "discarded", False, False),
    ("Tensor().mm(gpu()); // SAY definite", "other", False, False),
    ("std::vector<Tensor> v{gpu()};\n@@auto sum = std::accumulate(v.begin(), v.end(), host()); // SAY definite",
     "fails", False, False),
]  # fmt: skip


def check(options, directory):
    """The number of cases that come out wrong; prints them."""
    stub = Path(directory) / "stub.py"
    stub.write_text(STUB)
    options.tool = f"{sys.executable} {stub}"
    workshop = Workshop(options, Path(directory))
    workshop.prepare()
    functions = [Function(f"f{number}", ["case"], [], case[0].split("\n")) for number, case in enumerate(CASES)]
    functions.append(Function("broken", ["case"], [], ["nothing();"]))
    runs, findings = workshop.outcome(functions, "cases")
    wrong = 0
    if [function.name for function, _ in workshop.refused] != ["broken"]:
        print("self-check: the function that does not compile was not taken out alone")
        wrong += 1
    verdicts = [judge(f, runs[f.name], findings[f.name]) for f in functions]
    for (body, *expected), verdict in zip(CASES, verdicts, strict=True):
        got = [verdict.kind, bool(verdict.false), verdict.missed]
        if got != expected:
            print(f"self-check: {got} instead of {expected}:\n  {body}")
            wrong += 1
    bars = SimpleNamespace(max_false=0, min_recall=0.97)
    if not report.below(bars, 1, 1.0) or not report.below(bars, 0, 0.9) or report.below(bars, 0, 0.98):
        print("self-check: the bars do not hold")
        wrong += 1
    print(f"self-check: {len(CASES) + 2} cases, {wrong} wrong")
    return wrong
