"""Writes a source file that no person would write: odd_sources.py KIND > file.cpp."""

import random
import sys

LOST = "  state.cuda();\n"


def function(body, parameters="at::Tensor state, int n"):
    return f"#include <torch/torch.h>\nvoid f({parameters}) {{\n{body}{LOST}}}\n"


def long_function():
    lines = [f"  at::Tensor t{i} = t{i - 1}.to(torch::kCUDA);\n" for i in range(1, 20000)]
    return function("  at::Tensor t0 = state;\n" + "".join(lines))


def branches():
    return function("".join(f"  if (n == {i}) state = state.cuda();\n" for i in range(10000)))


def else_if():
    arms = [f"if (n == {i}) state = state.cuda();\n  else " for i in range(10000)]
    return function("  " + "".join(arms) + "state = state.cpu();\n")


def switch():
    cases = "".join(f"  case {i}: state = state.cuda(); break;\n" for i in range(10000))
    return function("  switch (n) {\n" + cases + "  }\n")


def expression():
    return function("  n = " + " + ".join(["n"] * 10000) + ";\n")


def chain():
    calls = "".join(f"at::Tensor g{i}(at::Tensor t) {{ return g{i - 1}(t); }}\n" for i in range(1, 3000))
    head = "#include <torch/torch.h>\nat::Tensor g0(at::Tensor t) { return t.cpu(); }\n"
    return head + calls + f"void f(at::Tensor state) {{\n  state = g2999(state);\n{LOST}}}\n"


def latin1():
    lines = ["#include <torch/torch.h>", "// gr\xfc\xdfe", "void f(at::Tensor zustand) {"]
    lines += ["  /* \xe4\xf6 */ zustand.cuda(); // \xff", "}", ""]
    return "\n".join(lines).encode("latin-1")


def crlf():
    return b"#include <torch/torch.h>\r\nvoid f(at::Tensor x) { x.cuda();}\r\n"


def zeroes():
    return bytes(5000)


def noise():
    return random.Random(1).randbytes(20000)


def is_utf8(path):
    with open(path, "rb") as stream:
        stream.read().decode("utf-8")


def main():
    kind = sys.argv[1].replace("-", "_")
    if kind == "is_utf8":
        is_utf8(sys.argv[2])
        return
    text = globals()[kind]()
    sys.stdout.buffer.write(text if isinstance(text, bytes) else text.encode())


if __name__ == "__main__":
    main()
