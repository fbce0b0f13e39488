// torch::jit modules: to() works in place, forward takes IValues.
#include <torch/script.h>
#include <torch/torch.h>

#include <cstdio>
#include <string>
#include <unistd.h>
#include <vector>

#include "../cases.h"

// Stands for a model exported from Python: saves a small one and returns its path.
static std::string exported() {
  torch::jit::Module m("Exported");
  m.register_parameter("w", torch::rand({3, 2}), /*is_buffer=*/false);
  m.define("def forward(self, x: Tensor) -> Tensor:\n  return torch.mm(x, self.w)\n");
  const std::string path = "/tmp/dt_case_" + std::to_string(::getpid()) + "_script.pt";
  m.save(path);
  return path;
}

void script_input_on_host_bad() {
  torch::jit::Module module = torch::jit::load(exported());
  module.to(torch::kCUDA);
  std::vector<torch::jit::IValue> inputs;
  inputs.push_back(torch::ones({1, 3}));
  at::Tensor output = module.forward(inputs).toTensor(); // [[device-mixed-op]]
  TORCH_CHECK(output.defined());
}

void script_input_on_device_ok() {
  torch::jit::Module module = torch::jit::load(exported());
  module.to(torch::kCUDA);
  std::vector<torch::jit::IValue> inputs;
  inputs.push_back(torch::ones({1, 3}).to(torch::kCUDA));
  at::Tensor output = module.forward(inputs).toTensor();
  TORCH_CHECK(output.is_cuda());
}

void script_loaded_on_device_bad() {
  torch::Device device(torch::kCUDA, 0);
  auto module = torch::jit::load(exported(), device);
  auto output = module.forward({torch::ones({1, 3})}).toTensor(); // [[device-mixed-op]]
  TORCH_CHECK(output.defined());
}

void script_loaded_on_device_ok() {
  torch::Device device(torch::kCUDA, 0);
  auto module = torch::jit::load(exported(), device);
  auto output = module.forward({torch::ones({1, 3}, device)}).toTensor();
  TORCH_CHECK(output.is_cuda());
}

void script_loaded_without_device_ok() {
  auto module = torch::jit::load(exported());
  module.eval();
  auto output = module.forward({torch::ones({1, 3})}).toTensor();
  TORCH_CHECK(!output.is_cuda());
}

// The output of a module on the GPU is on the GPU.
void script_output_meets_host_labels_bad() {
  auto module = torch::jit::load(exported());
  module.to(at::kCUDA);
  auto logits = module.forward({torch::ones({4, 3}, at::kCUDA)}).toTensor();
  auto labels = torch::zeros({4}, torch::kLong);
  auto loss = torch::nn::functional::cross_entropy(logits, labels); // [[device-loss-input]]
  TORCH_CHECK(loss.defined());
}

void script_output_brought_to_host_ok() {
  auto module = torch::jit::load(exported());
  module.to(at::kCUDA);
  auto logits = module.forward({torch::ones({4, 3}, at::kCUDA)}).toTensor().to(torch::kCPU);
  auto labels = torch::zeros({4}, torch::kLong);
  auto loss = torch::nn::functional::cross_entropy(logits, labels);
  TORCH_CHECK(loss.defined());
}

// A flag of one element that the script reads on the host, and a second input.
static torch::jit::Module padding() {
  torch::jit::Module m("Padding");
  m.register_parameter("w", torch::rand({3, 2}), /*is_buffer=*/false);
  m.define("def forward(self, x: Tensor, mask: Tensor, pad: Tensor) -> Tensor:\n"
           "  y = torch.mm(x * mask, self.w)\n"
           "  if bool(pad):\n"
           "    y = torch.cat([y, y])\n"
           "  return y\n");
  const std::string path = "/tmp/dt_case_" + std::to_string(::getpid()) + "_padding.pt";
  m.save(path);
  return torch::jit::load(path, torch::Device(torch::kCUDA));
}

void script_flag_on_host_ok() {
  auto module = padding();
  const torch::Device device(torch::kCUDA);
  auto flag = torch::tensor({0}).to(torch::kBool);
  auto output = module.forward({torch::ones({1, 3}, device), torch::ones({1, 3}, device), flag}).toTensor();
  TORCH_CHECK(output.is_cuda());
}

void script_second_input_on_host_bad() {
  auto module = padding();
  const torch::Device device(torch::kCUDA);
  auto flag = torch::tensor({0}).to(torch::kBool);
  auto output = module.forward({torch::ones({1, 3}, device), torch::ones({1, 3}), flag}).toTensor(); // [[device-mixed-op]]
  TORCH_CHECK(output.is_cuda());
}

DT_MAIN(script_input_on_host_bad, script_input_on_device_ok, script_loaded_on_device_bad,
        script_loaded_on_device_ok, script_loaded_without_device_ok, script_output_meets_host_labels_bad,
        script_output_brought_to_host_ok, script_flag_on_host_ok, script_second_input_on_host_bad)
