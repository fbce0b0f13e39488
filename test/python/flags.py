#!/usr/bin/env python3
"""flags.py --tool DEVICE_TIDY [--print]: programs that are right on every way, where a flag chooses the GPU.

Each form of a program is written with each kind of flag. No line fails: where the flag holds, the model and what it
gets are on the GPU, else both are on the CPU. A finding is a false alarm. KNOWN lists the flags that a form still gets
one for; the run fails when that changes.
"""
import argparse
import ast
import collections
import json
import subprocess
import sys
import tempfile
from pathlib import Path

FLAGS = {
    "attribute": "args.cuda",
    "negated": "not args.cpu",
    "equal": 'args.device == "cuda"',
    "unequal": 'args.device != "cpu"',
    "at_least": "args.gpu >= 0",
    "above": "args.gpu > -1",
    "either": "args.a or args.b",
    "both": "args.a and args.b",
    "neither": "not (args.cpu or args.mps)",
    "bits": "args.cuda & torch.cuda.is_available()",
    "length": "len(args.gpus) > 0",
    "not_none": "args.gpu is not None",
    "within": '"cuda" in args.device',
    "not_within": '"cpu" not in args.name',
    "entry": 'args["cuda"]',
    "entry_or": 'args.get("cuda", False)',
    "attribute_or": 'getattr(args, "cuda", False)',
    "method": "args.use_cuda()",
    "unknown": "helper.use_cuda(args)",
    "begins": 'args.device.startswith("cuda")',
    "text_begins": 'args.name.startswith("cuda")',
    "lower": 'args.device.lower() != "cpu"',
    "split": 'len(args.gpus.split(",")) > 1',
    "available": "torch.cuda.is_available() and args.gpu >= 0",
    "chosen": "torch.cuda.is_available() if args.cuda else False",
    "number": "int(args.gpu) > 0",
    "computed": "args.gpus * 2 > 0",
    "between": "0 <= args.gpu < 4",
    "variable": 'os.environ.get("CUDA") == "1"',
    "has_variable": '"CUDA" in os.environ',
    "several": "torch.cuda.device_count() > 1",
    "any": "any(args.gpus)",
    "truth": "bool(args.cuda)",
    "type": 'torch.device(args.device).type == "cuda"',
    "is_number": "isinstance(args.gpu, int)",
    "has": 'hasattr(args, "gpu")',
    "remainder": "args.gpu % 2 == 0",
    "differs": "args.a != args.b",
}

BODY = """
    net = nn.Linear(3, 3)
    if {use}:
        net = net.cuda()
    for _ in rows:
        x = torch.ones(3)
        if {use}:
            x = x.cuda()
        net(x)
"""

FORMS = {
    "straight": """
def {name}(args):
    net = nn.Linear(3, 3)
    if {flag}:
        net = net.cuda()
    net(torch.ones(3).cuda() if ({flag}) else torch.ones(3))
""",
    "loop": "\ndef {name}(args, rows):\n    use = {flag}" + BODY.replace("{use}", "use"),
    "entry": '\ndef {name}(args, rows):\n    config = {{"gpu": {flag}}}' + BODY.replace("{use}", 'config["gpu"]'),
    "written": "\ndef {name}(args, rows):\n    args.on_gpu = {flag}" + BODY.replace("{use}", "args.on_gpu"),
    "asked_again": "\ndef {name}(args, rows):" + BODY.replace("{use}", "{flag}"),
    "argument": """
def {name}__moved(x, use):
    return x.cuda() if use else x


def {name}(args, rows):
    use = {flag}
    net = {name}__moved(nn.Linear(3, 3), use)
    for _ in rows:
        net({name}__moved(torch.ones(3), use))
""",
    "closure": """
def {name}(args, rows):
    use = {flag}

    def put(x):
        return x.cuda() if use else x

    net = put(nn.Linear(3, 3))
    for _ in rows:
        net(put(torch.ones(3)))
""",
    "generator": """
def {name}__batches(rows, use):
    for _ in rows:
        x = torch.ones(3)
        yield x.cuda() if use else x


def {name}(args, rows):
    use = {flag}
    net = nn.Linear(3, 3)
    if use:
        net.cuda()
    for x in {name}__batches(rows, use):
        net(x)
""",
    "member": """
class {name}:
    def __init__(self, args):
        self.use = {flag}
        self.on_gpu = self.use
        self.net = nn.Linear(3, 3)
        if self.use:
            self.net = self.net.cuda()

    def prepare(self, x):
        return x.cuda() if self.use else x

    def fit(self, epochs, rows):
        for _ in range(epochs):
            for _ in rows:
                self.net(self.prepare(torch.ones(3)))

    def evaluate(self, rows):
        for _ in rows:
            x = torch.ones(3)
            if self.on_gpu:
                x = x.cuda()
            self.net(x)
""",
    "returned": """
def {name}__made(args):
    use = {flag}
    net = nn.Linear(3, 3)
    if use:
        net.cuda()
    return net, use


def {name}(args, rows):
    net, use = {name}__made(args)
    for _ in rows:
        x = torch.ones(3)
        if use:
            x = x.cuda()
        net(x)
""",
    "given": """
def {name}(args, rows):
    use = {flag}
    net, loss = nn.Linear(3, 3), nn.CrossEntropyLoss(weight=torch.ones(3))
    if use:
        net, loss = net.cuda(), loss.cuda()
    for x, y in rows:
        if use:
            x, y = x.cuda(), y.cuda()
        loss(net(x), y)
""",
    "helper": """
def {name}__counted(count):
    total = 0
    for i in range(count):
        total += i
    return total


def {name}(args, count):
    use = {flag}
    net = nn.Linear(3, 3)
    if use:
        net = net.cuda()
    {name}__counted(count)
    net(torch.ones(3).cuda() if use else torch.ones(3))
""",
    "default": """
def {name}__grid(count, device):
    made = torch.zeros(count, 3, device=device)
    for i in range(count):
        made[i].fill_(i)
    return made


def {name}__run(count, use=False):
    grid = {name}__grid(count, torch.device("cuda") if use else torch.device("cpu"))
    net = nn.Linear(3, 3)
    if use:
        net.cuda()
    net(grid)


def {name}(args, count):
    {name}__run(count)
    if torch.cuda.is_available():
        {name}__run(count, use={flag})
""",
}

# Operators of what nothing is known of give something new each time; what a loop asks again may have changed.
KNOWN = {
    "straight": ["bits", "computed", "remainder"],
    "asked_again": ["above", "any", "between", "bits", "computed", "differs", "length", "lower", "method", "not_within",
                    "remainder", "split", "text_begins", "truth", "unknown", "variable"],
}


def program():
    text = "import os\n\nimport helper\nimport torch\nfrom torch import nn\n"
    for form, body in FORMS.items():
        for kind, flag in FLAGS.items():
            text += "\n" + body.format(name=f"{form}__{kind}", flag=flag)
    return text


def told(tool, text):
    """The flags that a form gets a finding for."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "flags_of_programs.py"
        file.write_text(text, encoding="utf-8")
        command = [tool, "--format=json", "--quiet", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"{tool} ended with {done.returncode}: {done.stderr.strip()}")
    findings = collections.defaultdict(set)
    places = [(node.lineno, node.end_lineno, node.name) for node in ast.parse(text).body if hasattr(node, "name")]
    for finding in json.loads(done.stdout)["findings"]:
        for first, last, name in places:
            if first <= finding["line"] <= last:
                form, kind = name.split("__")[:2]
                findings[form].add(kind)
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", required=True)
    parser.add_argument("--print", action="store_true", help="print the programs instead")
    options = parser.parse_args()
    text = program()
    if options.print:
        print(text)
        return
    findings = told(options.tool, text)
    failed = False
    for form in FORMS:
        known = set(KNOWN.get(form, ()))
        for what, kinds in (("false", findings[form] - known), ("not any more in KNOWN", known - findings[form])):
            if kinds:
                print(f"{form}: {what}: {' '.join(sorted(kinds))}")
                failed = True
    print(f"{sum(map(len, findings.values()))} false alarms in {len(FORMS) * len(FLAGS)} programs")
    sys.exit(failed)


if __name__ == "__main__":
    main()
