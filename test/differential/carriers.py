"""Statements that carry tensors: aliases, containers, structs, lambdas, helper functions, references, guards.

Every maker takes the composer and returns statements; what it carries becomes a variable of the composer, so
that everything else is composed with it.
"""

from program import Statement


def two(c, kind=None):
    """Two operands of one kind: variables, moved variables or new tensors."""
    kind = kind or c.pick("VMMS")
    variable = [v for v in c.variables if v.kind == kind]
    device = c.pick(variable).device if variable else c.home
    first, deviceA, tagsA = c.operand(kind, device)
    second, deviceB, tagsB = c.operand(kind, device, agreeing=0.6)
    return kind, (first, deviceA), (second, deviceB), tagsA + tagsB


def variableOf(c, text, kind, device, assignable=True):
    # The composer's own class, without an import in a circle.
    c.variables.append(type(c.variables[0])(text, kind, device, assignable))


def vector(c):
    kind, a, b, tags = two(c)
    name, tags = c.name("v"), ["vector", *tags]
    form = c.pick(["std::vector<Tensor> {} = {{{}, {}}};", "std::vector<Tensor> {}{{{}, {}}};",
                   "std::array<Tensor, 2> {} = {{{}, {}}};"])
    made = [Statement(form.format(name, a[0], b[0]), [name], tags)]
    if "array" not in form and c.chance(0.4):
        extra, device, more = c.operand(kind, a[1])
        call = c.pick(["push_back", "emplace_back"])
        made.append(Statement(f"{name}.{call}({extra});", tags=[call, *more]))
        variableOf(c, f"{name}.back()", kind, device)
    if c.chance(0.35):
        item, device = c.name("t"), c.deviceGuess()
        move = Statement(f"{item} = {item}.to({c.deviceText(device)});", tags=["move"])
        made.append(Statement(f"for (auto &{item} : {name}) {{", [item], ["range-for"], body=[move]))
        a, b = (a[0], device), (b[0], device)
    if c.chance(0.3):
        total, item = c.name("x"), c.name("t")
        made.append(Statement(f"auto {total} = {name}[0].clone();", [total], ["vector"]))
        add = Statement(c.pick(["{0} = {0} + {1};", "{0} += {1};"]).format(total, item), tags=["accumulate"])
        made.append(Statement(f"for (const auto &{item} : {name}) {{", [item], ["range-for"], body=[add]))
        variableOf(c, total, kind, a[1])
    variableOf(c, f"{name}[0]", kind, a[1])
    variableOf(c, c.pick([f"{name}[1]", f"{name}.at(1)"]), kind, b[1])
    if kind == "M" and c.chance(0.3):
        joined = c.pick(["torch::stack({}).sum(0)", "torch::cat({}).slice(0, 0, 4).clone()"]).format(name)
        if "array" not in form:
            made += c.declare(joined, kind, a[1], ["join", "vector"])
    return made


def pair(c):
    kind, a, b, tags = two(c)
    name = c.name("p")
    form = c.pick(["auto {} = std::make_pair({}, {});", "std::pair<Tensor, Tensor> {}({}, {});",
                   "std::pair<Tensor, Tensor> {} = {{{}, {}}};"])
    variableOf(c, name + ".first", kind, a[1])
    variableOf(c, name + ".second", kind, b[1])
    return [Statement(form.format(name, a[0], b[0]), [name], ["pair", *tags])]


def tuples(c):
    kind, a, b, tags = two(c)
    name, first, second = c.name("u"), c.name("x"), c.name("x")
    made = [Statement(f"auto {name} = std::make_tuple(Tensor({a[0]}), Tensor({b[0]}));", [name],
                      ["tuple", *tags])]
    way = c.rng.random()
    if way < 0.35:
        made.append(Statement(f"auto [{first}, {second}] = {name};", [first, second], ["binding"]))
    elif way < 0.6:
        made.append(Statement(f"Tensor {first}, {second};", [first, second]))
        made.append(Statement(f"std::tie({first}, {second}) = {name};", [], ["tie"]))
    else:
        first, second = f"std::get<0>({name})", f"std::get<1>({name})"
    variableOf(c, first, kind, a[1])
    variableOf(c, second, kind, b[1])
    return made


def maps(c):
    kind, a, b, tags = two(c)
    name, form = c.name("m"), c.pick(["std::map", "std::unordered_map"])
    made = [Statement(f'{form}<std::string, Tensor> {name} = {{{{"a", {a[0]}}}, {{"b", {b[0]}}}}};', [name],
                      ["map", *tags])]
    if c.chance(0.35):
        item, device = c.name("t"), c.deviceGuess()
        text = c.pick(["for (auto &{0} : {1}) {{", "for (auto &[key{0}, {0}] : {1}) {{"])
        target = item + ".second" if "key" not in text else item
        move = Statement(f"{target} = {target}.to({c.deviceText(device)});", tags=["move"])
        made.append(Statement(text.format(item, name), [item], ["range-for"], body=[move]))
        a, b = (a[0], device), (b[0], device)
    variableOf(c, c.pick([f'{name}["a"]', f'{name}.at("a")']), kind, a[1])
    variableOf(c, f'{name}.at("b")', kind, b[1])
    return made


def optional(c):
    kind, a, b, tags = two(c)
    name = c.name("o")
    made = [Statement(f"{c.pick(['std::optional', 'c10::optional'])}<Tensor> {name};", [name], ["optional"])]
    if c.chance(0.7):
        made.append(Statement(f"{name} = {a[0]};", tags=["optional", *tags]))
        variableOf(c, c.pick([f"(*{name})", f"{name}.value()"]), kind, a[1])
    elif c.chance(0.5):
        fill = Statement(f"{name} = {a[0]};", tags=["optional", *tags])
        made.append(Statement(f"if ({c.condition()}) {{", tags=["if"], body=[fill]))
    variableOf(c, f"{name}.value_or({b[0]})", kind, b[1], assignable=False)
    return made


def struct(c):
    kind, a, b, tags = two(c)
    name = c.name("s")
    form = c.pick(["differential::Pack {}{{{}, {}}};", "differential::Pack {} = {{{}, {}}};"])
    made = [Statement(form.format(name, a[0], b[0]), [name], ["struct", *tags])]
    if c.chance(0.3):
        twin = c.name("s")
        how = c.pick(["auto", "auto &", "const auto &"])
        made.append(Statement(f"{how} {twin} = {name};", [twin], ["struct-copy"]))
        variableOf(c, twin + ".first", kind, a[1], assignable=False)
    variableOf(c, name + ".first", kind, a[1])
    variableOf(c, name + ".second", kind, b[1])
    return made


def alias(c):
    source = c.pick([v for v in c.variables if v.assignable] or c.variables)
    name = c.name("y")
    forms = ["auto {0} = {1};", "Tensor {0}({1});"]
    if source.assignable:
        forms += ["auto &{0} = {1};", "Tensor &{0} = {1};"]
    form = c.pick(forms + ["const Tensor &{0} = {1};"])
    variableOf(c, name, source.kind, source.device, "const" not in form)
    made = [Statement(form.format(name, source.text), [name], ["reference" if "&" in form else "alias"])]
    if "const" not in form and c.chance(0.5):
        text, device, tags = c.move(source, c.deviceGuess())
        c.variables[-1].device = device
        made.append(Statement(f"{name} = {text};", tags=["assign", *tags]))
    return made


def pointer(c):
    names = [v for v in c.variables if v.assignable and v.text.isidentifier()]
    if not names:
        return alias(c)
    source, name = c.pick(names), c.name("q")
    variableOf(c, f"(*{name})", source.kind, source.device)
    form = c.pick(["Tensor *{0} = &{1};", "auto {0} = std::make_shared<Tensor>({1});",
                   "auto {0} = std::make_unique<Tensor>({1});", "auto {0} = &{1};"])
    return [Statement(form.format(name, source.text), [name], ["pointer"])]


def swap(c):
    targets = [v for v in c.variables if v.assignable]
    a = c.pick(targets)
    b = c.pick([v for v in targets if v.kind == a.kind])
    a.device, b.device = b.device, a.device
    return [Statement(f"std::swap({a.text}, {b.text});", tags=["swap"])]


def devices(c):
    """A device or options in a variable of its own, and a tensor made with it."""
    name, kind, device = c.name("d"), c.pick("VM"), c.deviceGuess()
    text = c.deviceText(device)
    tags = ["device-variable"]
    if c.chance(0.25):
        other = c.deviceText(c.deviceGuess())
        text = f"{c.condition()} ? torch::Device({text}) : torch::Device({other})"
        tags.append("ternary")
    if c.chance(0.5):
        made = [Statement(f"const torch::Device {name} = {text};", [name], tags)]
    else:
        made = [Statement(f"const auto {name} = torch::TensorOptions().device({text});", [name],
                          ["options-variable", *tags[1:]])]
    shape = {"V": "{4}", "M": "{4, 4}"}[kind]
    call = c.pick(["ones", "zeros", "rand"])
    return made + c.declare(f"torch::{call}({shape}, {name})", kind, device, ["create"])


def lambdas(c):
    """A lambda that captures one tensor and takes another, or that moves what it captures."""
    kind, a, b, tags = two(c, c.pick("VM"))
    name = c.name("g")
    captured = [v for v in c.variables if v.kind == kind and v.text.isidentifier()]
    if not captured:
        return alias(c)
    source = c.pick(captured)
    if source.assignable and c.chance(0.3):
        device = c.deviceGuess()
        line = Statement(f"{source.text} = {source.text}.to({c.deviceText(device)});", tags=["move"])
        made = [Statement(f"auto {name} = [&]() {{ FRAME", [name], ["lambda"], body=[line], close="};"),
                Statement(f"{name}();", tags=["lambda-call"])]
        source.device = device
        return made
    capture = c.pick(["&", "=", source.text, "&" + source.text])
    operation = c.pick(["return {0} + {1};", "return {0} * {1}.sum();", "return {1}.sub({0});",
                        "return {0} + {1}.mean();"])
    line = Statement(operation.format("t", source.text), tags=["binary"])
    form = c.pick(["auto {} = [{}](const Tensor &t) {{ FRAME",
                   "std::function<Tensor(Tensor)> {} = [{}](Tensor t) {{ FRAME"])
    made = [Statement(form.format(name, capture), [name], ["lambda"], body=[line], close="};")]
    return made + c.declare(f"{name}({b[0]})", kind, source.device, ["lambda-call", *tags])


def helper(c):
    """A function of its own: an operation, a move through a reference, a default argument, a pair."""
    kind, a, b, tags = two(c, c.pick("VM"))
    name = c.name(f"help{c.number}_")
    shape = {"V": "{4}", "M": "{4, 4}"}[kind]
    device = c.deviceGuess()
    way = c.pick(["operation", "move", "default", "pair", "chosen"])
    tags = ["helper-" + way, *tags]

    def define(signature, *lines):
        c.helpers.append(Statement(f"static {signature} {{ FRAME", [name], tags, helper=True,
                                   body=[Statement(line, tags=["in-helper"]) for line in lines]))

    if way == "operation":
        define(f"Tensor {name}(const Tensor &a, Tensor b)",
               c.pick(["return a + b;", "return a * b.sum();", "return a.add_(b);",
                       "return torch::stack({a, b}).sum(0);"]))
        return c.declare(f"{name}({a[0]}, {b[0]})", kind, a[1], tags)
    if way == "move":
        targets = [v for v in c.variables if v.assignable]
        target = c.pick(targets)
        text = c.deviceText(device)
        target.device = device
        define(f"void {name}(Tensor &t, torch::Device d)", c.pick(["t = t.to(d);", "t = t.to(d).clone();"]))
        return [Statement(f"{name}({target.text}, {text});", tags=tags)]
    if way == "default":
        define(f"Tensor {name}(torch::Device d = torch::kC{c.pick(['PU', 'UDA'])})",
               f"return torch::ones({shape}, d);")
        return c.declare(f"{name}({c.pick(['', c.deviceText(device)])})", kind, device, tags)
    if way == "pair":
        define(f"std::pair<Tensor, Tensor> {name}(Tensor a, Tensor b)", "return {a, b};")
        first, second = c.name("x"), c.name("x")
        variableOf(c, first, kind, a[1])
        variableOf(c, second, kind, b[1])
        return [Statement(f"auto [{first}, {second}] = {name}({a[0]}, {b[0]});", [first, second],
                          ["binding", *tags])]
    define(f"Tensor {name}(bool which, Tensor a, Tensor b)", "if (which) { return a; }", "return b;")
    return c.declare(f"{name}({c.condition()}, {a[0]}, {b[0]})", kind, a[1], tags)


def idiom(c):
    """The guard that makes two tensors agree, or a move behind a question about the device."""
    kind = c.pick("VM")
    targets = [v for v in c.variables if v.assignable and v.kind == kind]
    if not targets:
        return devices(c)
    a, b = c.pick(targets), c.pick([v for v in c.variables if v.kind == kind])
    question = c.pick(["{0}.device() != {1}.device()", "!({0}.device() == {1}.device())", "!{0}.is_cuda()",
                       "{0}.get_device() != {1}.get_device()"]).format(a.text, b.text)
    fix = Statement(f"{a.text} = {a.text}.to({b.text}.device());", tags=["move"])
    a.device = b.device
    return [Statement(f"if ({question}) {{", tags=["if", "guarded-move"], body=[fix])]


ALL = [vector, vector, pair, tuples, maps, optional, struct, alias, alias, pointer, swap, devices, devices,
       lambdas, lambdas, helper, helper, helper, idiom]
