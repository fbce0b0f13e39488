"""Composes random functions from the expressions of operations.py and the statements of carriers.py.

The generator keeps a guess of where every tensor is, only to make most operations agree: a function whose
first operation fails shows nothing of its other statements.  What is true is decided by running it.
"""

import re

import carriers
from operations import CREATIONS, LIKE_CREATIONS, MODULES, MOVES, MOVES_TO_TENSOR, OPERATIONS, WRITES
from program import Function, Statement

DEVICES = ["cpu", "cuda:0", "cuda:1"]
OPERAND = re.compile(r"\{([A-Z])\}")
KINDS = "SVMMMIB"


class Variable:
    def __init__(self, text, kind, device, assignable=True):
        self.text, self.kind, self.device, self.assignable = text, kind, device, assignable


class Composer:
    def __init__(self, rng, number):
        self.rng = rng
        self.number = number
        self.variables = []
        self.modules = []
        self.helpers = []
        self.choices = 0
        self.current = 0
        self.names = 0
        self.home = rng.choice(["cuda:0", "cuda:0", "cuda:1"])
        self.depth = 0

    def pick(self, options):
        return self.rng.choice(options)

    def chance(self, probability):
        return self.rng.random() < probability

    def name(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    # Devices, written in the ways programs write them.

    def deviceGuess(self):
        return self.pick([self.home] * 2 + DEVICES)

    def deviceText(self, device):
        if device == "cpu":
            return self.pick(["torch::kCPU", "torch::Device(\"cpu\")", "torch::Device(torch::kCPU)"])
        index = int(device[-1])
        forms = [f'torch::Device("{device}")', f"torch::Device(torch::kCUDA, {index})"]
        if index == self.current:
            forms += ["torch::kCUDA", 'torch::Device("cuda")', "torch::Device(torch::kCUDA)"]
        owners = [v for v in self.variables if v.device == device]
        if owners and self.chance(0.4):
            return self.pick(owners).text + ".device()"
        return self.pick(forms)

    def optionsText(self, device):
        owners = [v for v in self.variables if v.device == device and v.kind in "SVM"]
        if owners and self.chance(0.15):
            return self.pick(owners).text + ".options()"
        if device == "cpu" and self.chance(0.5):
            return "torch::TensorOptions()"
        text = self.deviceText(device)
        forms = ["torch::device({})", "torch::TensorOptions().device({})",
                 "torch::dtype(torch::kFloat).device({})"]
        return self.pick(forms).format(text)

    # Expressions: every one returns (text, guess, tags).

    def create(self, kind, device):
        return self.pick(CREATIONS[kind]).format(o=self.optionsText(device)), device, ["create"]

    def operand(self, kind, device, agreeing=0.6):
        if kind == "S" and self.chance(0.25):
            agreeing = 0.4
        matching = [v for v in self.variables if v.kind == kind and v.device == device]
        others = [v for v in self.variables if v.kind == kind]
        if matching and self.chance(agreeing):
            return self.pick(matching).text, device, []
        if others and self.chance(0.75):
            chosen = self.pick(others)
            if chosen.device == device or self.chance(0.45):
                return chosen.text, chosen.device, []
            return self.move(chosen, device)
        return self.create(kind, device)

    def move(self, variable, device):
        targets = [v for v in self.variables if v.device == device and v.kind == variable.kind]
        if targets and self.chance(0.4):
            text = self.pick(MOVES_TO_TENSOR).format(x=variable.text, y=self.pick(targets).text)
            return text, device, ["move"]
        if device == "cpu" and self.chance(0.5):
            return variable.text + ".cpu()", device, ["move"]
        if device == f"cuda:{self.current}" and self.chance(0.4):
            return variable.text + ".cuda()", device, ["move"]
        return self.pick(MOVES).format(x=variable.text, d=self.deviceText(device)), device, ["move"]

    def fill(self, text, device):
        tags = []

        def one(match):
            operand, _, more = self.operand(match.group(1), device)
            tags.extend(more)
            return operand

        parts = OPERAND.sub(one, text)
        return parts.replace("{{", "{").replace("}}", "}"), tags

    def operation(self, kind, device):
        family, _, text = self.pick([o for o in OPERATIONS if o[1] == kind])
        filled, tags = self.fill(text, device)
        return filled, device, [family, *tags]

    def expression(self, kind=None):
        kind = kind or self.pick(KINDS)
        own = [v for v in self.variables if v.kind == kind]
        way = self.rng.random()
        if not own or way < 0.12:
            return kind, *self.create(kind, self.deviceGuess())
        chosen = self.pick(own)
        if way < 0.24:
            text = self.pick(LIKE_CREATIONS[kind])
            device = self.deviceGuess() if "{o}" in text else chosen.device
            options = self.optionsText(device)
            if options == "torch::TensorOptions()":  # would not say cpu here
                options = "torch::device(torch::kCPU)"
            return kind, text.format(x=chosen.text, o=options), device, ["like"]
        if way < 0.38:
            return kind, *self.move(chosen, self.deviceGuess())
        if way < 0.42:
            other = self.pick(own)
            return kind, f"{self.condition()} ? {chosen.text} : {other.text}", chosen.device, ["ternary"]
        return kind, *self.operation(kind, chosen.device)

    def condition(self):
        """A condition: unknown to the analyzer and either way at run time, or one the program decides."""
        known = [v for v in self.variables]
        if self.choices < 3 and self.chance(0.6):
            self.choices += 1
            return f"differential::flag({self.choices - 1})"
        if known and self.chance(0.7):
            variable, other = self.pick(known), self.pick(known)
            return self.pick(["{x}.is_cuda()", "{x}.device() == {y}.device()", "{x}.dim() > 1",
                              "!{x}.is_cuda()",
                              "{x}.device().is_cpu()", "{x}.defined()", "{x}.device() != {y}.device()",
                              "{x}.numel() > 2"]).format(x=variable.text, y=other.text)
        return self.pick(["true", "false", "1 + 1 == 2", "torch::cuda::is_available()"])

    # Statements: every one returns a list.

    def declare(self, text, kind, device, tags):
        name = self.name("x")
        self.variables.append(Variable(name, kind, device))
        form = self.pick(["auto {}", "Tensor {}", "torch::Tensor {}"])
        if "?" in text:
            form = "Tensor {}"
        return [Statement(f"{form.format(name)} = {text};", [name], tags)]

    def statement(self):
        makers = [(self.declareOne, 30), (self.write, 14), (self.assign, 10), (self.module, 7)]
        makers.append((self.carry, 26))
        if self.depth < 2:
            makers += [(self.branch, 11), (self.loop, 9), (self.guard, 3)]
        return self.rng.choices([m for m, _ in makers], [w for _, w in makers])[0]()

    def declareOne(self):
        kind, text, device, tags = self.expression()
        return self.declare(text, kind, device, tags)

    def assign(self):
        targets = [v for v in self.variables if v.assignable]
        if not targets:
            return self.declareOne()
        target = self.pick(targets)
        _, text, device, tags = self.expression(target.kind)
        target.device = device
        return [Statement(f"{target.text} = {text};", tags=["assign", *tags])]

    def write(self):
        family, text = self.pick(WRITES)
        kind = OPERAND.search(text).group(1)
        targets = [v for v in self.variables if v.kind == kind and v.assignable]
        if not targets:
            return self.declareOne()
        target = self.pick(targets)
        filled, tags = self.fill(text.replace("{" + kind + "}", target.text, 1), target.device)
        return [Statement(filled + ";", tags=[family, *tags])]

    def module(self):
        if self.modules and self.chance(0.75):
            entry = self.pick(self.modules)
            if self.chance(0.3):
                entry[1] = self.deviceGuess()
                return [Statement(f"{entry[0]}->to({self.deviceText(entry[1])});", tags=["module-to"])]
            text, _, tags = self.operand(entry[2], entry[1])
            forms = ["{}->forward({})"] if entry[4] == "Sequential" else ["{}({})", "{}->forward({})"]
            call = self.pick(forms).format(entry[0], text)
            return self.declare(call, entry[3], entry[1], [entry[4], *tags])
        label, text, source, result = self.pick(MODULES)
        name, device = self.name("net"), self.deviceGuess()
        self.modules.append([name, device, source, result, label])
        made = [Statement(text.format(n=name) + ";", [name], [label])]
        if device != "cpu":
            made.append(Statement(f"{name}->to({self.deviceText(device)});", tags=["module-to"]))
        return made

    def carry(self):
        return self.pick(carriers.ALL)(self)

    def block(self, low=1, high=3):
        """Statements in a scope of their own: what they declare is gone afterwards."""
        kept, modules = list(self.variables), list(self.modules)
        self.depth += 1
        made = [s for _ in range(self.rng.randint(low, high)) for s in self.statement()]
        self.depth -= 1
        self.variables, self.modules = kept, modules
        return made

    def branch(self):
        body, orElse = None, None
        condition = self.condition()
        body = self.block()
        if self.chance(0.4):
            orElse = self.block(1, 2)
        elif self.chance(0.08):
            body.append(Statement("return;", tags=["return"]))
        return [Statement(f"if ({condition}) {{", tags=["if"], body=body, orElse=orElse)]

    def loop(self):
        index = self.name("i")
        if self.choices < 3 and self.chance(0.5):
            bound = f"differential::count({self.choices})"
            self.choices += 1
            header = f"for (int {index} = 0, n{index} = {bound}; {index} < n{index}; ++{index}) {{"
        else:
            header = f"for (int {index} = 0; {index} < {self.pick([1, 2, 3])}; ++{index}) {{"
        body = self.block()
        if self.chance(0.12):
            body.append(Statement(self.pick([f"if ({index} == 1) {{", "if (torch::cuda::is_available()) {"]),
                                  tags=["break"], body=[Statement(self.pick(["break;", "continue;"]))]))
        return [Statement(header, [index, "n" + index], ["for"], body=body)]

    def guard(self):
        name, index, saved = self.name("guard"), self.pick([0, 1]), self.current
        self.current = index
        text = f"c10::DeviceGuard {name}(torch::Device(torch::kCUDA, {index}));"
        first = Statement(text, [name], ["guard"])
        body = [first, *self.block(1, 3)]
        self.current = saved
        return [Statement("{", tags=["scope"], body=body)]


def generate(rng, number):
    composer = Composer(rng, number)
    statements = []
    for kind in ("M", composer.pick("VMS"), composer.pick("MIB")):
        text, device, tags = composer.create(kind, composer.deviceGuess())
        statements += composer.declare(text, kind, device, tags)
    wanted = rng.randint(3, 10)
    while len(statements) < wanted + 3:
        statements += composer.statement()
    return Function(f"f{number}", composer.helpers + statements)
