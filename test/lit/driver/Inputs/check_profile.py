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
for event in work:
    for other in work:
        if other["tid"] == event["tid"] and event["ts"] < other["ts"] < event["ts"] + event["dur"]:
            assert other["ts"] + other["dur"] <= event["ts"] + event["dur"] + 1, (event, other)

for each in wanted:
    name, _, detail = each.partition(":")
    if not any(
        event["name"] in (name, f"Total {name}") and event.get("args", {}).get("detail", "").endswith(detail)
        for event in spans
    ):
        sys.exit(f"{file} has no event '{each}': {sorted({event['name'] for event in spans})}")
names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
print(len(work), "events,", "threads:", *sorted(names))
