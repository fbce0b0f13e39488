// State kept under keys: maps looked up by iterator, OrderedDict, saved_data, module dictionaries, statics.
#include "../cases.h"

#include <torch/torch.h>

#include <map>
#include <unordered_map>

using torch::Tensor;
namespace nn = torch::nn;

namespace {

// Moments of a hand-written optimizer, made when a parameter is met first.
template <bool Like>
class Momentum {
public:
  explicit Momentum(std::vector<Tensor> parameters) : parameters_(std::move(parameters)) {}
  void step();

private:
  std::vector<Tensor> parameters_;
  std::unordered_map<void*, Tensor> moments_;
};
template <>
void Momentum<false>::step() {
  torch::NoGradGuard guard;
  for (auto& p : parameters_) {
    auto found = moments_.find(p.unsafeGetTensorImpl());
    if (found == moments_.end())
      found = moments_.emplace(p.unsafeGetTensorImpl(), torch::zeros(p.sizes())).first;
    found->second.mul_(0.9).add_(p.grad()); // [[device-mixed-op]]
  }
}
template <>
void Momentum<true>::step() {
  torch::NoGradGuard guard;
  for (auto& p : parameters_) {
    auto found = moments_.find(p.unsafeGetTensorImpl());
    if (found == moments_.end())
      found = moments_.emplace(p.unsafeGetTensorImpl(), torch::zeros_like(p)).first;
    found->second.mul_(0.9).add_(p.grad());
  }
}
Tensor trainedWeight() {
  auto weight = torch::ones({2}, torch::TensorOptions().device(torch::kCUDA).requires_grad(true));
  (weight * 2).sum().backward();
  return weight;
}
void momentum_bad() { Momentum<false>({trainedWeight()}).step(); }
void momentum_ok() { Momentum<true>({trainedWeight()}).step(); }

void found_entry_bad() {
  std::map<std::string, Tensor> features{{"image", torch::ones({2}, torch::kCUDA)}};
  if (auto found = features.find("image"); found != features.end())
    found->second.add_(torch::ones({2})); // [[device-mixed-op]]
}
void absent_entry_ok() {
  std::map<std::string, Tensor> features{{"image", torch::ones({2}, torch::kCUDA)}};
  if (auto found = features.find("text"); found != features.end())
    found->second.add_(torch::ones({2}));
  if (features.count("text"))
    features["image"].add_(torch::ones({2}));
}
void iterated_entries_bad() {
  std::map<int, Tensor> layers;
  for (int i = 0; i < 9; ++i)
    layers[i] = torch::ones({2}, torch::kCUDA);
  for (auto entry = layers.begin(); entry != layers.end(); ++entry)
    entry->second.add_(torch::ones({2})); // [[device-mixed-op]]
}
void iterated_entries_ok() {
  std::map<int, Tensor> layers;
  for (int i = 0; i < 9; ++i)
    layers[i] = torch::ones({2}, torch::kCUDA);
  for (auto entry = layers.begin(); entry != layers.end(); ++entry)
    entry->second.add_(torch::ones({2}, entry->second.options()));
}

void ordered_dict_bad() {
  torch::OrderedDict<std::string, Tensor> shadow;
  shadow.insert("weight", torch::ones({2}));
  shadow["weight"].add_(torch::ones({2}, torch::kCUDA)); // [[device-mixed-op]]
}
void ordered_dict_ok() {
  torch::OrderedDict<std::string, Tensor> shadow;
  shadow.insert("weight", torch::ones({2}, torch::kCUDA));
  for (auto& entry : shadow)
    entry.value().add_(torch::ones({2}, torch::kCUDA));
}

nn::ModuleDict heads() {
  return nn::ModuleDict(
      torch::OrderedDict<std::string, std::shared_ptr<nn::Module>>{{"policy", nn::Linear(2, 2).ptr()}});
}
void module_dict_bad() {
  auto dict = heads();
  dict->to(torch::kCUDA);
  dict["policy"]->as<nn::Linear>()->forward(torch::ones({2, 2})); // [[device-mixed-op]]
}
void module_dict_ok() {
  auto dict = heads();
  dict->to(torch::kCUDA);
  dict["policy"]->as<nn::Linear>()->forward(torch::ones({2, 2}, torch::kCUDA));
}
void module_list_bad() {
  nn::ModuleList blocks;
  for (int i = 0; i < 6; ++i)
    blocks->push_back(nn::Linear(2, 2));
  blocks->to(torch::kCUDA);
  blocks[0]->as<nn::Linear>()->forward(torch::ones({2, 2})); // [[device-mixed-op]]
}
void sequential_of_loop_bad() {
  nn::Sequential stack;
  for (int i = 0; i < 6; ++i) {
    stack->push_back(nn::Linear(2, 2));
    stack->push_back(nn::ReLU());
  }
  stack->to(torch::kCUDA);
  stack->forward(torch::ones({2, 2})); // [[device-mixed-op]]
}
void sequential_of_loop_ok() {
  nn::Sequential stack;
  for (int i = 0; i < 6; ++i) {
    stack->push_back(nn::Linear(2, 2));
    stack->push_back(nn::ReLU());
  }
  stack->to(torch::kCUDA);
  auto y = stack->forward(torch::ones({2, 2}, torch::kCUDA)) + torch::ones({2}, torch::kCUDA);
  TORCH_CHECK(y.defined());
}
void functional_layer_ok() {
  nn::Sequential stack(nn::Linear(2, 4), nn::Functional(torch::relu),
                       nn::Functional([](const Tensor& x) { return x + torch::ones({4}, x.options()); }));
  stack->to(torch::kCUDA);
  auto y = stack->forward(torch::ones({1, 2}, torch::kCUDA)) * torch::ones({4}, torch::kCUDA);
  TORCH_CHECK(y.defined());
}

class Runtime {
public:
  static Runtime& get() {
    static Runtime runtime;
    return runtime;
  }
  torch::Device device = torch::kCPU;
};
void runtime_ok() {
  Runtime::get().device = torch::kCUDA;
  auto table = torch::arange(10, Runtime::get().device);
  auto index = torch::zeros({2}, torch::TensorOptions(torch::kLong).device(Runtime::get().device));
  table.gather(0, index);
}
void runtime_bad() {
  Runtime::get().device = torch::kCUDA;
  auto table = torch::arange(10, Runtime::get().device);
  table.gather(0, torch::zeros({2}, torch::kLong)); // [[device-mixed-op]]
}

} // namespace

DT_MAIN(momentum_bad, momentum_ok, found_entry_bad, absent_entry_ok, iterated_entries_bad,
        iterated_entries_ok, ordered_dict_bad, ordered_dict_ok, module_dict_bad, module_dict_ok,
        module_list_bad, sequential_of_loop_bad, sequential_of_loop_ok, functional_layer_ok, runtime_ok,
        runtime_bad)
