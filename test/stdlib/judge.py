"""Compares what a function did with what the analyzer says about it."""

from dataclasses import dataclass


@dataclass
class Verdict:
    function: object
    kind: str  # "fails" in every world, "sometimes", "clean", "other": only other exceptions, "discarded"
    line: int = 0  # where it fails in every world
    found: str = ""  # level of the finding there
    false: tuple = ()  # definite findings where nothing fails

    @property
    def missed(self):
        return self.kind == "fails" and not self.found


def judge(function, runs, findings):
    """Undefined behaviour in any world discards the function: its crash proves nothing."""
    if not runs or any(run.status == "crash" for run in runs):
        return Verdict(function, "discarded")
    thrown = set().union(*(run.thrown for run in runs))
    passed = set().union(*(run.passed for run in runs))
    completed = any(run.status == "done" for run in runs)
    # A line that was reached without an error, or never although a world ran to the end. A line behind an error of
    # every world is not judged.
    false = tuple(f for f in findings if f.level == "definite" and f.line not in thrown
                  and (f.line in passed or completed))  # fmt: skip
    judged = [run for run in runs if run.status != "other"]
    first = judged[0].thrown if judged else frozenset()
    if not thrown:
        return Verdict(function, "clean" if judged else "other", false=false)
    if not all(run.status == "device" and run.thrown == first for run in judged):
        return Verdict(function, "sometimes", false=false)
    line = min(first)
    levels = [f.level for f in findings if f.line == line]
    found = "definite" if "definite" in levels else "likely" if "likely" in levels else ""
    return Verdict(function, "fails", line, found, false)
