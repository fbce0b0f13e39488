"""Prints an example of a check's page as a complete source: page_example.py PAGE.md bad|good > file.cpp."""

import pathlib
import re
import sys

DISTRIBUTED = """#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
"""
PYTHON = """#include <pybind11/embed.h>
namespace py = pybind11;
"""
CUDA = "#include <c10/cuda/CUDAGuard.h>\n"
NCCL = "#include <cuda_runtime.h>\n#include <nccl.h>\n"
PRELUDE = """#include <torch/torch.h>
struct NetImpl : torch::nn::Module {
  NetImpl() : layer(register_module("layer", torch::nn::Linear(4, 2))) {}
  torch::Tensor forward(torch::Tensor x) { return layer->forward(x); }
  torch::nn::Linear layer;
};
TORCH_MODULE(Net);
"""


def main():
    page, wanted = sys.argv[1:]
    text = pathlib.Path(page).read_text(encoding="utf-8")
    # The example under "Bad:" or "Good:".
    example = re.search(rf"^{wanted.capitalize()}:.*?^```cpp\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    if not example:
        sys.exit(f"{page} has no {wanted} example")
    code = example.group(1)
    # Headers of LibTorch take seconds; an example gets those it needs.
    used = [
        header
        for name, header in (("c10d::", DISTRIBUTED), ("py::", PYTHON), ("c10::cuda::", CUDA), ("nccl", NCCL))
        if name in code
    ]
    print("".join(used) + PRELUDE + code)


if __name__ == "__main__":
    main()
