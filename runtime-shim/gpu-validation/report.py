"""The readable report of a validation."""

MOST_STEP_RATIO = 1.05  # of a training step of the library and one of PyTorch
MOST_BUILD_SECONDS = 8 * 60  # for device_shim, CMake's part included


def failures(result):
    """What was not as expected, one sentence each."""
    found = [f"{row['system']} {row['variant']}: {row['observed']}" for row in result["systems"] if row["ok"] is False]
    rules = result["rule_table"]
    if not rules["finished"] or not rules["compared"]:
        found.append("the rule table could not be run to its end")
    if rules["disagreements"]:
        found.append(f"{len(rules['disagreements'])} placements of the rule table behave otherwise than it says")
    if rules["crashes"]:
        found.append(f"{len(rules['crashes'])} operators of the rule table ended the program")
    found += [row["check"] for row in result["training"] if not row["ok"]]
    if not result["training"]:
        found.append("no training check ran")
    found += [f"measuring {row['by']} with {row['ranks']} ranks failed" for row in result["measurements"]
              if row["metric"] == "failed"]
    return found + left_out(result) + too_slow(result)


def left_out(result):
    """What was not validated because the machine lacks something."""
    systems = dict.fromkeys(row["system"] for row in result["systems"] if row["ok"] is None)
    found = [f"the system {system} was left out: its programs were not built (qwen-lora needs nlohmann-json)"
             for system in systems]
    if result["machine"]["kind"] == "real" and not result["quick"] and not result["python_torch"]:
        found.append("the step was not compared with PyTorch's: python3 has no PyTorch")
    return found


def step_times(result):
    """By number of ranks, the milliseconds of a step of the library and of PyTorch, where both were measured."""
    times = {}
    for row in result["measurements"]:
        if row["metric"] == "ddp_step_ms":
            times.setdefault(row["ranks"], {})[row["by"]] = row["value"]
    return {ranks: (by["device_shim"], by["pytorch"]) for ranks, by in times.items() if len(by) == 2}


def too_slow(result):
    """The bars for speed. Virtual GPUs and small sizes say nothing about them."""
    if result["machine"]["kind"] != "real":
        return []
    found = []
    if result["device_shim_build_seconds"] >= MOST_BUILD_SECONDS:
        found.append(f"device_shim was built in {result['device_shim_build_seconds']} s, "
                     f"not in less than {MOST_BUILD_SECONDS} s")
    for ranks, (ours, theirs) in sorted(step_times(result).items()):
        if ours > MOST_STEP_RATIO * theirs and not result["quick"]:
            found.append(f"a step with {ranks} ranks takes {ours:.3g} ms, {ours / theirs:.3f} times PyTorch's "
                         f"{theirs:.3g} ms; at most {MOST_STEP_RATIO} times is expected")
    return found


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
                    for row in rows]


def machine_lines(result):
    facts = result["machine"]
    names = [gpu["name"] for gpu in facts["gpus"]]
    gpus = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))
    return table(("", ""), [("date", facts["date"]), ("GPUs", gpus), ("driver", facts["driver"]),
                            ("LibTorch", facts["libtorch"]), ("NCCL", facts["nccl"]), ("system", facts["system"]),
                            ("build", f"{result['build_seconds']} s in all, device_shim "
                                      f"{result['device_shim_build_seconds']} s"),
                            ("runs", f"{result['run_seconds']} s")])


def measurement_lines(result):
    """A row per quantity, the library beside PyTorch."""
    rows = {}
    for entry in result["measurements"]:
        if entry["metric"] != "failed":
            rows.setdefault((entry["ranks"], entry["metric"], entry.get("bytes", 0)), {})[entry["by"]] = entry
    lines = []
    for (ranks, metric, size), by in sorted(rows.items()):
        ours, theirs = (by.get(name, {}).get("value") for name in ("device_shim", "pytorch"))
        steps = {"ddp_step_ms": "DDP step, ms", "stage2_step_ms": "step of stage 2, ms"}
        what = steps.get(metric) or f"all-reduce of {size >> 20} MiB, GB/s"
        show = [f"{value:.3g}" if value is not None else "-" for value in (ours, theirs)]
        ratio = f"{ours / theirs:.3f}" if ours and theirs else "-"
        lines.append((ranks, by.get("device_shim", by.get("pytorch"))["backend"], what, *show, ratio))
    return table(("ranks", "backend", "", "device_shim", "PyTorch", "ratio"), lines)


def to_markdown(result, found):
    virtual = result["machine"]["kind"] == "virtual"
    rules = result["rule_table"]
    words = {True: "yes", False: "**no**", None: "left out"}
    lines = ["# Validation on " + ("virtual GPUs" if virtual else "real GPUs"), ""]
    if virtual:
        lines += ["**Virtual GPUs: this tests the validation itself and says nothing about real GPUs or NCCL.**", ""]
    lines += machine_lines(result)
    lines += ["", "Everything was as expected." if not found else "Not as expected:"]
    lines += [""] * bool(found) + [f"- {failure}" for failure in found]
    lines += ["", "## The five systems", ""]
    lines += table(("system", "variant", "ranks", "devices", "expected", "as expected", "observed"),
                   [(row["system"], row["variant"], row["ranks"], row["devices"], row["expected"], words[row["ok"]],
                     "" if row["ok"] else row["observed"]) for row in result["systems"]])
    lines += ["", "## The rule table", "",
              f"{rules['operators']} operators, placements compared: "
              + ", ".join(f"{count} {part}" for part, count in sorted(rules["compared"].items()))
              + f". {len(rules['disagreements'])} disagreements, {len(rules['other_errors'])} placements with an error "
                f"that is not about devices, {len(rules['crashes'])} crashes.", ""]
    if rules["disagreements"]:
        lines += table(("operator", "placement", "table", "device", "text"),
                       [(row["op"], row["placement"], row["expected"], row["observed"], row["text"])
                        for row in rules["disagreements"]]) + [""]
    if rules["other_errors"]:
        lines += ["Errors that are not about devices:", ""]
        lines += table(("operator", "placement", "text"),
                       [(row["op"], row["placement"], row["text"][:160]) for row in rules["other_errors"]]) + [""]
    lines += ["## Training", ""]
    lines += table(("check", "ranks", "backend", "device of rank 0", "holds", "difference"),
                   [(row["check"], row.get("ranks", ""), row.get("backend", ""), row.get("device", ""),
                     words[row["ok"]], row.get("difference", row.get("text", ""))) for row in result["training"]])
    lines += ["", "## Times", ""] + measurement_lines(result)
    if not result["python_torch"]:
        lines += ["", "Python has no PyTorch here, so there is nothing to compare with." if not virtual
                  else "PyTorch's Python package is not compared on virtual GPUs."]
    return "\n".join(lines) + "\n"
