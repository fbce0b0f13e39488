// Modules that emplace_back makes and returns, registered under that name.
#include "../cases.h"

#include <torch/torch.h>
#include <vector>

namespace {

struct BlockImpl : torch::nn::Module {
  BlockImpl() { norm = register_module("norm", torch::nn::BatchNorm1d(3)); }
  torch::Tensor forward(const torch::Tensor &x) { return torch::relu(norm(x)); }
  torch::nn::BatchNorm1d norm{nullptr};
};
TORCH_MODULE(Block);

struct TowerImpl : torch::nn::Module {
  explicit TowerImpl(int count) {
    for (int i = 0; i < count; ++i) {
      auto block = blocks.emplace_back();
      register_module("block" + std::to_string(i), block);
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto &block : blocks)
      x = block(x);
    return x;
  }
  std::vector<Block> blocks;
};
TORCH_MODULE(Tower);
void emplaced_in_a_loop_ok() {
  Tower tower(2);
  tower->to(torch::kCUDA);
  auto y = tower(torch::rand({2, 3}, torch::kCUDA));
  auto both = torch::cat({y, torch::rand({2, 3}, torch::kCUDA)}, 1);
}

struct PairImpl : torch::nn::Module {
  PairImpl() {
    auto first = layers.emplace_back(3, 3);
    register_module("first", first);
    layers.emplace_back(3, 3);
  }
  torch::Tensor forward(const torch::Tensor &x) { return layers[0](x); }
  torch::Tensor forgotten(const torch::Tensor &x) {
    return layers[1](x); // [[device-unregistered-tensor]]
  }
  std::vector<torch::nn::Linear> layers;
};
TORCH_MODULE(Pair);
void emplaced_one_ok() {
  Pair pair;
  pair->to(torch::kCUDA);
  pair(torch::rand({2, 3}, torch::kCUDA));
}
void emplaced_one_bad() {
  Pair pair;
  pair->to(torch::kCUDA);
  pair->forgotten(torch::rand({2, 3}, torch::kCUDA));
}

// The device of a model, asked of its parameters.
struct DeepImpl : torch::nn::Module {
  DeepImpl() {
    for (auto *layer : {&a, &b, &c, &d, &e})
      *layer = register_module(std::string("layer") + static_cast<char>('0' + count++), torch::nn::Linear(3, 3));
  }
  torch::Tensor forward(const torch::Tensor &x) { return e(d(c(b(a(x))))); }
  int count = 0;
  torch::nn::Linear a{nullptr}, b{nullptr}, c{nullptr}, d{nullptr}, e{nullptr};
};
TORCH_MODULE(Deep);

struct FiveImpl : torch::nn::Module {
  FiveImpl() {
    a = register_module("a", torch::nn::Linear(3, 3));
    b = register_module("b", torch::nn::Linear(3, 3));
    c = register_module("c", torch::nn::Linear(3, 3));
    d = register_module("d", torch::nn::Linear(3, 3));
    e = register_module("e", torch::nn::Linear(3, 3));
  }
  torch::Tensor forward(const torch::Tensor &x) {
    return e(d(c(b(a(x))))); // [[device-mixed-op]]
  }
  torch::nn::Linear a{nullptr}, b{nullptr}, c{nullptr}, d{nullptr}, e{nullptr};
};
TORCH_MODULE(Five);

template <typename Model> torch::Device deviceOf(Model &model) {
  return model->parameters().empty() ? torch::Device(torch::kCPU) : model->parameters()[0].device();
}
void device_of_parameters_ok() {
  Deep model;
  model->to(torch::Device(torch::kCUDA, 0));
  model(torch::rand({2, 3}).to(deviceOf(model)));
}
void device_of_parameters_bad() {
  Five model;
  auto before = deviceOf(model);
  model->to(torch::Device(torch::kCUDA, 0));
  model(torch::rand({2, 3}).to(before));
}

void parameters_before_ok() {
  Five model;
  auto parameters = model->parameters();
  model->to(torch::Device(torch::kCUDA, 0));
  auto all = torch::cat({torch::zeros({1, 3}, torch::kCUDA), parameters[0]});
}

} // namespace

DT_MAIN(emplaced_in_a_loop_ok, emplaced_one_ok, emplaced_one_bad, device_of_parameters_ok, device_of_parameters_bad,
        parameters_before_ok)
