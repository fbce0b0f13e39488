"""Writes asked.py, which asks an enumeration often, lived.py, a class whose methods change much, and test_much.py."""

import pathlib
import sys

out = pathlib.Path(sys.argv[1])

members = "".join(f'    M{i} = "{i}"\n' for i in range(30))
asks = "".join(f"    if kind == Kind.M{i % 30}:\n        x = x + {i}\n" for i in range(200))
(out / "asked.py").write_text(
    f"import enum\n\nimport torch\n\n\nclass Kind(enum.Enum):\n{members}\n\ndef run(x: torch.Tensor, kind):\n{asks}    return x\n"
)

lines = "".join(f"        y = y + {i}\n" for i in range(400))
methods = "".join(
    f"    def step{i}(self, n):\n        y = n\n{lines}        self.part{i} = torch.ones(2, device=n)\n"
    "        return self.state + " + " + ".join(f"self.part{j}" for j in range(30)) + "\n\n"
    for i in range(30)
)
parts = "".join(f"        self.part{i} = torch.zeros(2)\n" for i in range(30))
(out / "lived.py").write_text(
    "import torch\n\n\nclass Many:\n    def __init__(self):\n        self.state = torch.zeros(2)\n"
    f"{parts}\n    def use(self):\n        return self.state + torch.ones(2, device=\"cuda\")\n\n{methods}"
)

steps = "".join(f"                x = x * {i} + x.sum()\n" for i in range(100))
tests = "".join(
    f"\n\ndef test_{i}():\n    x = torch.ones(2)\n    for _ in range(8):\n        for _ in range(8):\n"
    f"            for _ in range(8):\n{steps}    assert x.sum() + {i} > 0\n"
    for i in range(80)
)
(out / "test_much.py").write_text(f"import torch\n{tests}")
