#!/usr/bin/env python3
"""generate.py DIRECTORY COUNT: writes a training program of COUNT translation units, all of which read
torch/torch.h, with its compile_commands.json.

Every unit is a network of its own with a constructor, a forward pass, training and evaluation, behind a
project header. A third of the units read torch/torch.h first, a third their own header first, a third a
common header that reads it. Every fifth unit forgets to move its labels, so that a run has something to
report. One unit has main() and calls all others.
"""
import argparse
import json
import os

COMMON_H = """#pragma once
#include <torch/torch.h>

#include <map>
#include <string>
#include <vector>

namespace bench {

struct Batch {
  torch::Tensor data, target;
};

struct Settings {
  int64_t features = 64, hidden = 128, classes = 10, rounds = 3;
  double rate = 1e-3;
  std::string weights;
};

torch::Device chooseDevice(const Settings &settings);
Batch makeBatch(const Settings &settings, int64_t size);
double average(const std::vector<double> &values);

} // namespace bench
"""

COMMON_CPP = """#include "common.h"

#include <numeric>

namespace bench {

torch::Device chooseDevice(const Settings &settings) {
  if (torch::cuda::is_available() && settings.hidden > 0)
    return torch::Device(torch::kCUDA);
  return torch::Device(torch::kCPU);
}

Batch makeBatch(const Settings &settings, int64_t size) {
  Batch batch;
  batch.data = torch::randn({size, settings.features});
  batch.target = torch::randint(settings.classes, {size}, torch::kLong);
  return batch;
}

double average(const std::vector<double> &values) {
  return values.empty() ? 0 : std::accumulate(values.begin(), values.end(), 0.0) / double(values.size());
}

} // namespace bench
"""

NET_H = """#pragma once
#include "common.h"

namespace bench {

class Net@N@Impl : public torch::nn::Module {
public:
  explicit Net@N@Impl(const Settings &settings);
  torch::Tensor forward(torch::Tensor x);
  torch::Tensor encode(torch::Tensor x);

private:
  torch::nn::Linear first{nullptr}, second{nullptr}, last{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Dropout dropout{nullptr};
  torch::Tensor scale;
};
TORCH_MODULE(Net@N@);

double train@N@(const Settings &settings);
double evaluate@N@(Net@N@ &net, const Settings &settings, torch::Device device);

} // namespace bench
"""

NET_CPP = """@INCLUDES@

#include <algorithm>
#include <iostream>

namespace bench {

Net@N@Impl::Net@N@Impl(const Settings &settings) {
  first = register_module("first", torch::nn::Linear(settings.features, settings.hidden));
  second = register_module("second", torch::nn::Linear(settings.hidden, settings.hidden));
  last = register_module("last", torch::nn::Linear(settings.hidden, settings.classes));
  norm = register_module("norm", torch::nn::BatchNorm1d(settings.hidden));
  dropout = register_module("dropout", torch::nn::Dropout(0.25));
  scale = register_buffer("scale", torch::ones({settings.hidden}));
}

torch::Tensor Net@N@Impl::encode(torch::Tensor x) {
  x = torch::relu(first->forward(x));
  for (int round = 0; round < 2; ++round)
    x = x + torch::relu(norm->forward(second->forward(x))) * scale;
  return dropout->forward(x);
}

torch::Tensor Net@N@Impl::forward(torch::Tensor x) {
  return torch::log_softmax(last->forward(encode(x)), 1);
}

double evaluate@N@(Net@N@ &net, const Settings &settings, torch::Device device) {
  torch::NoGradGuard guard;
  net->eval();
  std::vector<double> hits;
  for (int64_t round = 0; round < settings.rounds; ++round) {
    Batch batch = makeBatch(settings, 32);
    auto output = net->forward(batch.data.to(device));
    auto target = batch.target.to(device);
    hits.push_back(output.argmax(1).eq(target).sum().item<double>());
  }
  return average(hits);
}

double train@N@(const Settings &settings) {
  torch::manual_seed(@N@);
  const torch::Device device = chooseDevice(settings);
  Net@N@ net(settings);
  net->to(device);
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(settings.rate));
  std::vector<double> losses;
  for (int64_t round = 0; round < settings.rounds; ++round) {
    net->train();
    Batch batch = makeBatch(settings, 64);
    auto data = batch.data.to(device);
    auto target = @TARGET@;
    optimizer.zero_grad();
    auto loss = torch::nll_loss(net->forward(data), target);
    loss.backward();
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  std::sort(losses.begin(), losses.end(), [](double a, double b) { return a < b; });
  std::cout << "net @N@: " << average(losses) << '\\n';
  return evaluate@N@(net, settings, device);
}

} // namespace bench
"""

INCLUDES = [
    '#include <torch/torch.h>\n\n#include "net@N@.h"',
    '#include "net@N@.h"\n\n#include <torch/torch.h>',
    '#include "common.h"\n#include "net@N@.h"',
]


def write(directory, name, text):
    with open(os.path.join(directory, name), "w", encoding="utf-8") as stream:
        stream.write(text)


def generate(directory, count, flags, compiler="clang++-22"):
    """Writes the program; returns the paths of its sources, the one with main() last."""
    os.makedirs(directory, exist_ok=True)
    nets = range(max(count - 2, 0))
    write(directory, "common.h", COMMON_H)
    sources = ["common.cpp"] if count > 1 else []
    if sources:
        write(directory, "common.cpp", COMMON_CPP)
    for number in nets:
        target = "batch.target" if number % 5 == 4 else "batch.target.to(device)"
        text = NET_CPP.replace("@INCLUDES@", INCLUDES[number % 3]).replace("@TARGET@", target)
        write(directory, f"net{number}.h", NET_H.replace("@N@", str(number)))
        write(directory, f"net{number}.cpp", text.replace("@N@", str(number)))
        sources.append(f"net{number}.cpp")
    includes = "".join(f'#include "net{number}.h"\n' for number in nets)
    calls = "".join(f"  sum += bench::train{number}(settings);\n" for number in nets)
    main = f'#include "common.h"\n{includes}\nint main() {{\n  bench::Settings settings;\n  double sum = 0;\n'
    write(directory, "main.cpp", main + calls + "  return sum > 0 ? 0 : 1;\n}\n")
    sources.append("main.cpp")
    commands = [
        {"directory": os.path.abspath(directory), "file": source,
         "arguments": [compiler, "-std=c++17", *flags, "-c", source, "-o", source + ".o"]}
        for source in sources
    ]
    write(directory, "compile_commands.json", json.dumps(commands, indent=1) + "\n")
    return [os.path.join(os.path.abspath(directory), source) for source in sources]


def torchFlags(include):
    """What finds torch/torch.h when LibTorch's headers are in `include`."""
    flags = ["-isystem", os.path.join(include, "torch/csrc/api/include")]
    return flags if include == "/usr/include" else [*flags, "-isystem", include]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("count", type=int)
    parser.add_argument("--torch-include", default="/usr/include")
    options = parser.parse_args()
    generate(options.directory, options.count, torchFlags(options.torch_include))


if __name__ == "__main__":
    main()
