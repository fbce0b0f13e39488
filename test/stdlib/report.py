"""Prints what the verdicts add up to."""

from collections import Counter, defaultdict


def show(title, verdicts, number):
    chosen = sorted(verdicts, key=lambda v: len(v.function.text))[:number]
    for verdict in chosen:
        print(f"\n=== {title}: {', '.join(verdict.function.tags)}")
        for found in verdict.false:
            print(f"    line {found.line - verdict.function.start + 1}: {found.message}")
        if verdict.missed:
            print(f"    line {verdict.line - verdict.function.start + 1} fails")
        print(verdict.function.text.replace("@@", ""))


def byTag(verdicts, limit):
    counts = defaultdict(Counter)
    for verdict in verdicts:
        for tag in set(verdict.function.tags):
            counts[tag]["functions"] += 1
            counts[tag]["fails"] += verdict.kind == "fails"
            counts[tag]["false"] += bool(verdict.false)
            counts[tag]["missed"] += verdict.missed
    worst = sorted(counts.items(), key=lambda item: (-item[1]["false"], -item[1]["missed"], item[0]))
    worst = [(tag, count) for tag, count in worst if count["false"] or count["missed"]]
    print(f"\n{'tag':28} {'functions':>9} {'fail':>5} {'false':>5} {'missed':>6}")
    for tag, count in worst[:limit]:
        print(f"{tag:28} {count['functions']:9} {count['fails']:5} {count['false']:5} {count['missed']:6}")
    if len(worst) > limit:
        print(f"... and {len(worst) - limit} more tags")


def totals(verdicts):
    """(functions with a false finding, recall); prints the sums."""
    kinds = Counter(verdict.kind for verdict in verdicts)
    failing = [verdict for verdict in verdicts if verdict.kind == "fails"]
    found = [verdict for verdict in failing if verdict.found]
    definite = sum(verdict.found == "definite" for verdict in failing)
    false = sum(bool(verdict.false) for verdict in verdicts)
    recall = len(found) / len(failing) if failing else 1.0
    print(f"{len(verdicts)} functions: {kinds['fails']} fail in every world, {kinds['sometimes']} in some, "
          f"{kinds['clean']} in none; {kinds['other']} only throw something else, {kinds['discarded']} discarded")
    print(f"false: {false}; found {len(found)} of {len(failing)} (recall {recall:.4f}), {definite} of them definite")
    return false, recall


def below(options, false, recall):
    """Whether the bars are not met."""
    return false > options.max_false or recall < options.min_recall
