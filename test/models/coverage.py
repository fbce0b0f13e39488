#!/usr/bin/env python3
"""coverage.py [--tool BIN] [--include DIR] [--update] [LIST]: which names of the installed LibTorch headers have a model.

Walks the headers, prints every Tensor method, at:: and torch:: function, torch::nn class and struct of options as
modelled or unmodelled with counts, and writes the same lines to LIST when it is given. Exits 1 when a name is unmodelled
that unmodelled.txt does not list, or when that file lists a name that has a model by now; --update
rewrites it.

Left out, because no user code calls them: names with a leading underscore, the _outf and _symint spellings of
a function that is counted under its plain name, backward functions, the copying forms of views, and
backend-private families (mkldnn, cudnn, miopen, fbgemm, ...).
"""
import argparse
import glob
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TOOL = os.path.join(os.path.dirname(os.path.dirname(HERE)), "build", "bin", "device-tidy")
BASELINE = os.path.join(HERE, "unmodelled.txt")
API = "torch/csrc/api/include/torch"

PRIVATE = re.compile(r"_|mkldnn_|cudnn_|miopen_|fbgemm_|mps_|quantized_|thnn_|unsafe")
PRIVATE_END = re.compile(r"(_outf|_symint(_outf?)?|_backward(_out)?|(?<!index)_copy(_out)?)$")
# Words before a parenthesis that are no function names.
NO_NAMES = {"if", "for", "while", "switch", "return", "sizeof", "decltype", "static_assert", "noexcept",
            "alignas", "void", "Tensor", "TensorBase", "explicit"}


def read(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def withoutComments(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"//[^\n]*", " ", text)
    return re.sub(r"^\s*#(?:[^\n]*\\\n)*[^\n]*", " ", text, flags=re.M)


def declarations(text):
    """The text outside of every pair of braces and of every argument list, "()" kept where a list was."""
    out, braces, parens = [], 0, 0
    for char in text:
        braces += (char == "{") - (char == "}")
        parens += (char == "(") - (char == ")")
        if char == ")" and parens == 0 and braces == 0:
            out.append("()")
        elif char == "}" and braces == 0 and parens == 0:
            out.append(";")
        elif braces == 0 and parens == 0 and char not in "(){}":
            out.append(char)
    return "".join(out)


def declaredNames(text):
    """Names of the functions declared at the outermost level: the first NAME() of each statement."""
    names = set()
    for statement in declarations(text).split(";"):
        found = re.search(r"(operator\s*(?:\(\)|\[\]|[^\s\w(]+)|\b\w+)\s*\(\)", statement)
        if found and not statement.lstrip().startswith("namespace"):
            name = re.sub(r"\s", "", found.group(1))
            if name not in NO_NAMES and not name.isupper() and not name.endswith(("_CHECK", "_ASSERT")):
                names.add(name)
    return names


def classBody(text, name):
    """What stands between the braces of `class NAME`."""
    start = re.search(r"\bclass\s+(?:\w+\s+)?%s\b[^;{]*\{" % name, text)
    depth, end = 1, start.end()
    while depth and end < len(text):
        depth += (text[end] == "{") - (text[end] == "}")
        end += 1
    return text[start.end():end - 1]


def namespaceBodies(text):
    """`text` with the braces of namespaces gone, so that what they hold is at the outermost level."""
    while True:
        found = re.search(r"\b(?:inline\s+)?namespace\s+[\w:]*\s*\{", text)
        if not found:
            return text
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        text = text[:found.start()] + text[found.end():end - 1] + text[end:]


def isPrivate(name):
    return bool(PRIVATE.match(name) or PRIVATE_END.search(name)) and not name.startswith("operator")


def tensorMethods(include):
    names = set()
    for header, cls in (("TensorBody.h", "Tensor"), ("TensorBase.h", "TensorBase")):
        text = read(os.path.join(include, "ATen/core", header))
        names |= declaredNames(classBody(withoutComments(text), cls))
        names |= set(re.findall(r"^inline [^(\n]*\bTensor::(\w+)\(", text, re.M))
    return names


def atenFunctions(include):
    """Functions of the per-operator headers, and every operator that RegistrationDeclarations.h names."""
    aten = os.path.join(include, "ATen")
    names = set(re.findall(r'"schema": "aten::(\w+)', read(os.path.join(aten, "RegistrationDeclarations.h"))))
    for path in glob.glob(os.path.join(aten, "ops/*.h")):
        if not path.endswith(("_native.h", "_ops.h", "_dispatch.h")):
            names |= set(re.findall(r"^(?:TORCH_API )?inline [^(\n]*?\b(\w+)\(", read(path), re.M))
    functions = read(os.path.join(aten, "Functions.h")) + read(os.path.join(aten, "TensorOperators.h"))
    names |= set(re.findall(r"^(?:TORCH_API |static )?inline [^(\n]*?\b(\w+)\(", functions, re.M))
    names |= {"operator" + symbol for symbol in re.findall(r"^  _\((\S+),", functions, re.M)}
    return {name for name in names if not name.startswith("__")}


def namespaceFunctions(include, header):
    path = os.path.join(include, API, header)
    if not os.path.exists(path):  # linalg.h went after 1.13
        return set()
    text = withoutComments(read(path))
    return declaredNames(namespaceBodies(withoutDetail(text)))


def withoutDetail(text):
    """`text` without its detail namespaces."""
    while True:
        found = re.search(r"\bnamespace\s+\w*detail\w*\s*\{", text)
        if not found:
            return text
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += (text[end] == "{") - (text[end] == "}")
            end += 1
        text = text[:found.start()] + text[end:]


def moduleClasses(include):
    """torch::nn classes named ...Impl, explicit template bases too."""
    names = set()
    for path in glob.glob(os.path.join(include, API, "nn/modules/**/*.h"), recursive=True):
        pattern = r"^(?:class|struct)\s+(?:TORCH_API\s+)?(\w+)Impl\b(?!\s*;)"
        names |= set(re.findall(pattern, read(path), re.M))
    return names


def optionClasses(include):
    """Qualified names of the structs of nn/options."""
    names = set()
    pattern = r"^namespace (\w+) \{|^(\})[^;]|^(?:template <.*> )?struct (?:TORCH_API )?(\w+)\b[^;]*$"
    for path in glob.glob(os.path.join(include, API, "nn/options/*.h")):
        scopes = []
        for namespace, end, name in re.findall(pattern, withoutComments(read(path)), re.M):
            scopes = scopes + [namespace] if namespace else scopes[:-1] if end else scopes
            names |= {"::".join([*scopes, name])} if name else set()
    return names


# Headers below torch/, and the namespace whose functions they declare.
API_HEADERS = (
    ("../../../autograd/generated/variable_factories.h", "torch::"), ("serialize.h", "torch::"),
    ("fft.h", "torch::fft::"), ("linalg.h", "torch::linalg::"), ("special.h", "torch::special::"),
    ("nested.h", "torch::nested::"), ("sparse.h", "torch::sparse::"), ("cuda.h", "torch::cuda::"),
    ("nn/init.h", "torch::nn::init::"), ("nn/utils/clip_grad.h", "torch::nn::utils::"),
    ("nn/utils/convert_parameters.h", "torch::nn::utils::"), ("nn/utils/rnn.h", "torch::nn::utils::rnn::"))


def collect(include):
    """{(kind, name)} of everything that could have a model."""
    found = {("method", name) for name in tensorMethods(include)}
    found |= {("function", name) for name in atenFunctions(include)}
    for header, prefix in API_HEADERS:
        found |= {("api", prefix + name) for name in namespaceFunctions(include, header)}
    for path in glob.glob(os.path.join(include, API, "nn/functional/*.h")):
        header = os.path.join("nn/functional", os.path.basename(path))
        found |= {("functional", name) for name in namespaceFunctions(include, header)}
    found |= {("module", name) for name in moduleClasses(include)}
    found |= {("options", name) for name in optionClasses(include)}
    return {(kind, name) for kind, name in found if not isPrivate(name.rpartition("::")[2])}


def modelled(tool):
    """For each kind, the set of names that the tool says it has a model of."""
    names = {}
    listed = subprocess.run([tool, "--list-models"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        what, name = line.split(maxsplit=1)
        names.setdefault(what, set()).add(name)
    ops, api = names["operator"], names["effects"] | names["body"]
    functions = ops | {name[4:] for name in api if name.startswith("at::")}
    api |= {"torch::" + name for name in ops}
    return {"method": ops, "function": functions, "api": api, "functional": names["functional"],
            "module": names["module"], "options": names["class"]}


def report(found, known):
    """The printed lines and the unmodelled names."""
    lines, missing = [], []
    for kind in ("method", "function", "api", "functional", "module", "options"):
        names = sorted(name for other, name in found if other == kind)
        without = [name for name in names if name not in known[kind]]
        missing += ["%s %s" % (kind, name) for name in without]
        lines += ["%smodelled %s %s" % ("un" if name in without else "", kind, name) for name in names]
        lines.append("%s: %d of %d modelled" % (kind, len(names) - len(without), len(names)))
    return lines, missing


def compare(missing, found, known):
    """Exit status after holding the unmodelled names against the baseline."""
    with open(BASELINE, encoding="utf-8") as file:
        listed = {line.strip() for line in file if line.strip() and not line.startswith("#")}
    fresh = [name for name in missing if name not in listed]
    stale = ["%s %s" % (kind, name) for kind, name in sorted(found)
             if "%s %s" % (kind, name) in listed and name in known[kind]]
    for name in fresh:
        print("newly unmodelled: " + name)
    for name in stale:
        print("listed as unmodelled but has a model: " + name)
    if fresh or stale:
        print("add a row to the tables, or run coverage.py --update")
    return 1 if fresh or stale else 0


def isBaselineVersion(include):
    """The list of unmodelled names is kept for one version; other headers are listed and counted only."""
    text = read(os.path.join(include, API, "version.h"))
    return re.findall(r"define TORCH_VERSION_(?:MAJOR|MINOR) (\d+)", text) == ["1", "13"]


def update(missing):
    with open(BASELINE, "w", encoding="utf-8") as file:
        file.write("# Names in the LibTorch 1.13 headers without a model; written by coverage.py --update.\n")
        file.write("".join(name + "\n" for name in missing))


def main():
    parser = argparse.ArgumentParser(description="Which names of the LibTorch headers have a model.")
    parser.add_argument("--tool", default=TOOL, help="device-tidy")
    parser.add_argument("--include", default="/usr/include", help="where ATen/ and torch/ are")
    parser.add_argument("--update", action="store_true", help="rewrite unmodelled.txt")
    parser.add_argument("list", nargs="?", help="also write the lines to this file")
    options = parser.parse_args()
    if not os.path.exists(os.path.join(options.include, "ATen/RegistrationDeclarations.h")):
        sys.exit("coverage.py: no LibTorch headers in " + options.include)
    found, known = collect(options.include), modelled(options.tool)
    lines, missing = report(found, known)
    print("\n".join(lines))
    if options.list:
        with open(options.list, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    if options.update:
        update(missing)
        return 0
    if not isBaselineVersion(options.include):
        print("not held against unmodelled.txt, which is about LibTorch 1.13")
        return 0
    return compare(missing, found, known)


if __name__ == "__main__":
    sys.exit(main())
