// Arrays and vectors of objects that nobody makes one by one.
#include "../cases.h"
#include <torch/torch.h>

#include <array>
#include <functional>
#include <vector>

namespace {

using OutputHook = std::function<torch::Tensor(const torch::Tensor &)>;

struct Block {
  torch::nn::Linear fc{4, 4};
  std::vector<OutputHook> hooks;
  torch::Device device{torch::kCPU};
  void place(torch::Device where) { fc->to(device = where); }
  torch::Tensor run(torch::Tensor x) {
    x = fc->forward(x.to(device));
    for (auto &hook : hooks)
      x = hook(x);
    return x;
  }
};

struct Meter {
  torch::Tensor sum = torch::zeros({2});
};

struct NetImpl : torch::nn::Module {
  NetImpl() { fc = register_module("fc", torch::nn::Linear(2, 2)); }
  torch::Tensor forward(torch::Tensor x) { return fc(x); } // [[device-mixed-op]]
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(Net);

struct TwinImpl : torch::nn::Module {
  TwinImpl() { fc = register_module("fc", torch::nn::Linear(2, 2)); }
  torch::Tensor forward(torch::Tensor x) { return fc(x); }
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(Twin);

} // namespace

void hook_of_the_last_bad() {
  std::array<Block, 3> blocks;
  for (int i = 0; i < 3; ++i)
    blocks[i].place(torch::Device(torch::kCUDA, i));
  auto delta = torch::zeros({4}, torch::Device(torch::kCUDA, 0));
  blocks[2].hooks.push_back([&delta](const torch::Tensor &out) {
    return out + delta; // [[device-mixed-op]]
  });
  auto x = torch::rand({2, 4});
  for (auto &block : blocks)
    x = block.run(x);
}

void hook_of_the_last_ok() {
  std::array<Block, 3> blocks;
  for (int i = 0; i < 3; ++i)
    blocks[i].place(torch::Device(torch::kCUDA, i));
  auto delta = torch::zeros({4}, torch::Device(torch::kCUDA, 0));
  blocks[2].hooks.push_back([&delta](const torch::Tensor &out) { return out + delta.to(out.device()); });
  auto x = torch::rand({2, 4});
  for (auto &block : blocks)
    x = block.run(x);
}

void counted_vector_bad() {
  std::vector<Meter> meters(2);
  meters[1].sum += torch::ones({2}, torch::kCUDA); // [[device-mixed-op]]
}

void counted_vector_ok() {
  std::vector<Meter> meters(2);
  meters[1].sum += torch::ones({2}, torch::kCUDA).cpu();
}

void built_in_array_bad() {
  Meter meters[2];
  meters[0].sum += torch::ones({2}, torch::kCUDA); // [[device-mixed-op]]
}

void built_in_array_ok() {
  Meter meters[2];
  meters[0].sum = meters[0].sum.cuda();
  meters[0].sum += torch::ones({2}, torch::kCUDA);
  meters[1].sum += torch::ones({2});
}

void one_of_two_models_bad() {
  std::vector<Net> models(2);
  models[0]->to(torch::kCUDA);
  models[1]->forward(torch::ones({1, 2}, torch::kCUDA));
}

void one_of_two_models_ok() {
  std::vector<Twin> models(2);
  models[0]->to(torch::kCUDA);
  models[1]->forward(torch::ones({1, 2}));
  models[0]->forward(torch::ones({1, 2}, torch::kCUDA));
}

DT_MAIN(hook_of_the_last_bad, hook_of_the_last_ok, counted_vector_bad, counted_vector_ok, built_in_array_bad,
        built_in_array_ok, one_of_two_models_bad, one_of_two_models_ok)
