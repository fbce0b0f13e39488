"""check_profile.py FILE EVENT...: the file is a Chrome trace with each event ("name" or "name:end of its detail"),
of which those with a duration lie one in another within their thread."""

import json
import sys

file, *wanted = sys.argv[1:]
with open(file, encoding="utf-8") as stream:
    trace = json.load(stream)
spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
for event in spans:
    assert {"pid", "tid", "ts", "dur", "name"} <= event.keys(), event
    assert event["dur"] >= 0, event

# The sums that LLVM adds ("Total parse") stand in threads of their own.
work = [event for event in spans if not event["name"].startswith("Total ")]
open_spans = {}  # thread -> ends of the events around this one
for event in sorted(work, key=lambda each: (each["ts"], -each["dur"])):
    around = open_spans.setdefault(event["tid"], [])
    end = event["ts"] + event["dur"]
    while around and around[-1] <= event["ts"]:
        around.pop()
    assert not around or end <= around[-1] + 1, event  # rounded to microseconds
    around.append(end)

for each in wanted:
    name, _, detail = each.partition(":")
    if not any(
        event["name"] in (name, f"Total {name}") and event.get("args", {}).get("detail", "").endswith(detail)
        for event in spans
    ):
        sys.exit(f"{file} has no event '{each}': {sorted({event['name'] for event in spans})}")
names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
print(len(work), "events,", "threads:", *sorted(names))
