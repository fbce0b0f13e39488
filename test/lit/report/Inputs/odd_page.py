"""odd_page.py FILE: writes a source whose lines are hard to show on a page."""

import sys

numbers = " ".join(str(i) for i in range(2000)).encode()
lines = [
    b"#include <torch/torch.h>",
    b"torch::Tensor sum(torch::Tensor x, torch::Tensor y) {",
    b"  x = x.cuda();",
    b"  // before",
    b"  y = torch::ones({2}).clone(); // gr\xfc\xc3\x9fe \xe2\x80\xae end",
    b"\t/* " + numbers + b" */",
    b"  /* " + numbers + b" */ return x + y; /* " + numbers + b" */",
    b"}",
]
with open(sys.argv[1], "wb") as stream:
    stream.write(b"\n".join(lines) + b"\n")
