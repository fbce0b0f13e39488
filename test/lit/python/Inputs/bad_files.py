"""Writes files that something is wrong with, and some that only look so, into the current folder."""

import os

RIGHT = "import torch\nx = torch.ones(3, device='cuda') + torch.ones(3)\n"


def write(name, content):
    with open(name, "wb") as stream:
        stream.write(content if isinstance(content, bytes) else content.encode())


def program(name, script):
    write(name, "#!/bin/sh\n" + script)
    os.chmod(name, 0o755)


write("right.py", RIGHT)
write("bom.py", b"\xef\xbb\xbf" + RIGHT.encode())
write("windows.py", RIGHT.replace("\n", "\r\n"))
write("carriage_return.py", RIGHT.replace("\n", "\r"))
write("latin_named.py", b"# -*- coding: latin-1 -*-\nimport torch\n" + "s = 'é'; ".encode("latin-1") + RIGHT.encode().split(b"\n")[1])
write("latin_unnamed.py", "import torch\n# é\n".encode("latin-1") + RIGHT.encode())
write("encoding_unknown.py", "# -*- coding: klingon -*-\n" + RIGHT)
write("zero.py", b"import torch\0\n")
write("empty.py", "")
write("python2.py", "import torch\nprint 'x'\n")
write("tabs.py", "import torch\nif True:\n\tx = torch.ones(3)\n\ty = x + torch.ones(3, device='cuda')\n")
write("tabs_mixed.py", "import torch\nif True:\n\tx = 1\n        y = 2\n")
write("cycle_a.py", "import torch\nimport cycle_b\ndef fa(x):\n    return cycle_b.fb(x)\nfa(torch.ones(3, device='cuda'))\n")
write("cycle_b.py", "import torch\nimport cycle_a\ndef fb(x):\n    return x + torch.ones(3)\n")
write("parentheses.py", "x = " + "(" * 10000 + "1" + ")" * 10000 + "\n")
write("nested_ifs.py", "import torch\n" + "".join(" " * i + "if x:\n" for i in range(1000)) + " " * 1000 + "pass\n")
write("levels.py", "x = " + " + ".join(["1"] * 20000) + "\n")
write("deep.py", "import torch\ny = torch.ones(3)\nx = " + " + ".join(["y"] * 900) + "\n")
write("long_line.py", "import torch\nx = [" + ", ".join(map(str, range(100000))) + "]\n" + RIGHT.split("\n")[1] + "\n")
write("not_python.ipynb", "[1, 2]")
os.makedirs("names")
write("names/base.py", "import torch\nclass Frame:\n    def put(self, x):\n        return x + torch.ones(3)\n")
write(
    "names/derived.py",
    "import torch\nimport base\nclass Frame(base.Frame):\n    pass\nclass Other(Frame):\n    pass\n"
    "Frame().put(torch.ones(3))\nOther()\n",
)
program("old", "cat > /dev/null\necho 'it is Python 3.6, and 3.8 or newer is needed' >&2\nexit 1\n")
program("older", "[ $1 = -V ] && echo 'Python 2.7.18' >&2 || echo 'Unknown option: -I' >&2\nexit 2\n")
program(
    "fragile",
    "cat > input-$$\nif grep -q python2.py input-$$; then kill -9 $$; fi\nexec python3 \"$@\" < input-$$\n",
)
