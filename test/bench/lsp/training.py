"""training.py: a training program in one file of about 500 lines, the size of file that people type in.

Networks, data sets, training and evaluation loops over the real LibTorch; one tensor is left on the CPU.
"""
import os

HEAD = """#include <torch/torch.h>

#include <cmath>
#include <iostream>
#include <string>
#include <vector>

struct Settings {
  int64_t features = 64, hidden = 128, classes = 10, epochs = 3;
  double rate = 1e-3;
  std::string weights;
};

torch::Device chooseDevice(const Settings &settings) {
  if (torch::cuda::is_available() && settings.hidden > 0)
    return torch::Device(torch::kCUDA, 0);
  return torch::Device(torch::kCPU);
}

struct Samples : torch::data::Dataset<Samples> {
  explicit Samples(const Settings &settings)
      : data(torch::randn({256, settings.features})), target(torch::randint(settings.classes, {256})) {}
  torch::data::Example<> get(size_t index) override { return {data[index], target[index]}; }
  torch::optional<size_t> size() const override { return data.size(0); }
  torch::Tensor data, target;
};
"""

BLOCK = """
struct Net{i}Impl : torch::nn::Module {{
  explicit Net{i}Impl(const Settings &settings)
      : first(register_module("first", torch::nn::Linear(settings.features, settings.hidden))),
        norm(register_module("norm", torch::nn::BatchNorm1d(settings.hidden))),
        second(register_module("second", torch::nn::Linear(settings.hidden, settings.classes))),
        scale(register_parameter("scale", torch::ones({{settings.classes}}))) {{}}

  torch::Tensor forward(torch::Tensor x) {{
    x = torch::relu(norm(first(x)));
    x = torch::dropout(x, 0.1, is_training());
    return second(x) * scale;
  }}

  torch::nn::Linear first{{nullptr}};
  torch::nn::BatchNorm1d norm{{nullptr}};
  torch::nn::Linear second{{nullptr}};
  torch::Tensor scale;
}};
TORCH_MODULE(Net{i});

double train{i}(Net{i} &net, const Settings &settings, torch::Device device) {{
  net->to(device);
  net->train();
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(settings.rate));
  auto loader = torch::data::make_data_loader(
      Samples(settings).map(torch::data::transforms::Stack<>()), 32);
  double total = 0;
  for (int64_t epoch = 0; epoch < settings.epochs; ++epoch) {{
    for (auto &batch : *loader) {{
      auto data = batch.data.to(device), target = batch.target.to(device);
      optimizer.zero_grad();
      auto output = net->forward(data);
      auto loss = torch::nn::functional::cross_entropy(output, target);
      loss.backward();
      optimizer.step();
      total += loss.item<double>();
    }}
    std::cout << "epoch " << epoch << ": " << total << "\\n";
  }}
  return total;
}}

double evaluate{i}(Net{i} &net, const Settings &settings, torch::Device device) {{
  torch::NoGradGuard guard;
  net->eval();
  auto data = torch::randn({{64, settings.features}}, device);
  auto target = torch::randint(settings.classes, {{64}}{device});
  auto output = net->forward(data);
  auto loss = torch::nll_loss(torch::log_softmax(output, 1), target);
  auto hits = output.argmax(1).eq(target).sum();
  std::vector<torch::Tensor> parts;
  for (int64_t k = 0; k < 3; ++k)
    parts.push_back(output.narrow(0, k, 1) * double(k));
  auto joined = torch::cat(parts).mean();
  return loss.item<double>() + hits.item<double>() + joined.item<double>();
}}
"""

MAIN = """
int main() {
  Settings settings;
  const torch::Device device = chooseDevice(settings);
  double sum = 0;
%s  std::cout << sum << "\\n";
  return 0;
}
"""


def text(networks=8):
    """The file; the last network is the one that leaves its labels behind."""
    parts = [HEAD]
    calls = ""
    for i in range(networks):
        device = "" if i + 1 == networks else ", device"
        parts.append(BLOCK.format(i=i, device=device))
        calls += (f"  Net{i} net{i}(settings);\n  sum += train{i}(net{i}, settings, device);\n"
                  f"  sum += evaluate{i}(net{i}, settings, device);\n")
    return "".join(parts) + MAIN % calls


def torchInclude():
    """The folder that holds LibTorch's headers."""
    for folder in ("/usr/include", "/usr/local/include", "/opt/libtorch/include"):
        if os.path.exists(os.path.join(folder, "torch/csrc/api/include/torch/torch.h")):
            return folder
    raise SystemExit("LibTorch's headers are not installed; run scripts/install-deps.sh")


def arguments(file):
    """How the file is compiled."""
    include = torchInclude()
    system = ["-isystem", os.path.join(include, "torch/csrc/api/include")]
    if include != "/usr/include":
        system += ["-isystem", include]
    return ["clang++", "-std=c++17", *system, "-c", file]
