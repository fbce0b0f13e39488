// Sequential, ModuleList, AnyModule, named submodules, ModuleDict: handles reached through the containers.
#include <torch/torch.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../cases.h"

using namespace torch;

void sequential_input_on_host_bad() {
  nn::Sequential mlp(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 1));
  mlp->to(kCUDA);
  auto y = mlp->forward(torch::rand({2, 4})); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void sequential_input_on_device_ok() {
  nn::Sequential mlp(nn::Linear(4, 8), nn::ReLU(), nn::Linear(8, 1));
  mlp->to(kCUDA);
  auto y = mlp->forward(torch::rand({2, 4}, kCUDA));
  TORCH_CHECK(y.defined());
}

void sequential_extended_after_the_move_bad() {
  nn::Sequential mlp(nn::Linear(4, 8), nn::ReLU());
  mlp->to(kCUDA);
  mlp->push_back(nn::Linear(8, 1));
  auto y = mlp->forward(torch::rand({2, 4}, kCUDA)); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void sequential_extended_before_the_move_ok() {
  nn::Sequential mlp(nn::Linear(4, 8), nn::ReLU());
  mlp->push_back(nn::Linear(8, 1));
  mlp->to(kCUDA);
  auto y = mlp->forward(torch::rand({2, 4}, kCUDA));
  TORCH_CHECK(y.defined());
}

void any_module_on_device_bad() {
  nn::AnyModule any(nn::Linear(3, 2));
  any.ptr()->to(kCUDA);
  auto y = any.forward(torch::rand({1, 3})); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void any_module_on_device_ok() {
  nn::AnyModule any(nn::Linear(3, 2));
  any.ptr()->to(kCUDA);
  auto y = any.forward(torch::rand({1, 3}, kCUDA));
  TORCH_CHECK(y.defined());
}

struct StackedImpl : nn::Module {
  explicit StackedImpl(int depth) {
    for (int i = 0; i < depth; ++i)
      layers->push_back(nn::Linear(4, 4));
    register_module("layers", layers);
  }
  Tensor forward(Tensor x) {
    for (const auto &layer : *layers)
      x = torch::relu(layer->as<nn::Linear>()->forward(x));
    return x;
  }
  nn::ModuleList layers;
};
TORCH_MODULE(Stacked);

void module_list_registered_ok() {
  Stacked net(3);
  net->to(kCUDA);
  auto y = net->forward(torch::rand({1, 4}, kCUDA));
  TORCH_CHECK(y.is_cuda());
}

// A std::vector of layers is invisible to Module::to unless each one is registered.
struct VectorStackImpl : nn::Module {
  explicit VectorStackImpl(int depth) : input(register_module("input", nn::Linear(4, 4))) {
    for (int i = 0; i < depth; ++i)
      layers.push_back(nn::Linear(4, 4));
  }
  Tensor forward(Tensor x) {
    x = input(x);
    for (auto &layer : layers)
      x = torch::relu(layer->forward(x)); // [[device-unregistered-tensor]]
    return x;
  }
  nn::Linear input;
  std::vector<nn::Linear> layers;
};
TORCH_MODULE(VectorStack);

void vector_of_layers_unregistered_bad() {
  VectorStack net(2);
  net->to(kCUDA);
  net->forward(torch::rand({1, 4}, kCUDA));
}

struct NamedVectorStackImpl : nn::Module {
  explicit NamedVectorStackImpl(int depth) : input(register_module("input", nn::Linear(4, 4))) {
    for (int i = 0; i < depth; ++i)
      layers.push_back(register_module("layer" + std::to_string(i), nn::Linear(4, 4)));
  }
  Tensor forward(Tensor x) {
    x = input(x);
    for (auto &layer : layers)
      x = torch::relu(layer->forward(x));
    return x;
  }
  nn::Linear input;
  std::vector<nn::Linear> layers;
};
TORCH_MODULE(NamedVectorStack);

void vector_of_layers_registered_ok() {
  NamedVectorStack net(2);
  net->to(kCUDA);
  net->forward(torch::rand({1, 4}, kCUDA));
}

void map_of_models_one_not_moved_bad() {
  std::map<std::string, std::shared_ptr<nn::LinearImpl>> models;
  models["actor"] = std::make_shared<nn::LinearImpl>(4, 2);
  models["critic"] = std::make_shared<nn::LinearImpl>(4, 1);
  models["actor"]->to(kCUDA);
  auto obs = torch::rand({1, 4}, kCUDA);
  auto action = models["actor"]->forward(obs);
  auto value = models["critic"]->forward(obs); // [[device-mixed-op]]
  TORCH_CHECK(action.defined() && value.defined());
}

void map_of_models_all_moved_ok() {
  std::map<std::string, std::shared_ptr<nn::LinearImpl>> models;
  models["actor"] = std::make_shared<nn::LinearImpl>(4, 2);
  models["critic"] = std::make_shared<nn::LinearImpl>(4, 1);
  for (auto &entry : models)
    entry.second->to(kCUDA);
  auto obs = torch::rand({1, 4}, kCUDA);
  auto action = models["actor"]->forward(obs);
  auto value = models["critic"]->forward(obs);
  TORCH_CHECK(action.defined() && value.defined());
}

DT_MAIN(sequential_input_on_host_bad, sequential_input_on_device_ok, sequential_extended_after_the_move_bad,
        sequential_extended_before_the_move_ok, any_module_on_device_bad, any_module_on_device_ok,
        module_list_registered_ok, vector_of_layers_unregistered_bad, vector_of_layers_registered_ok,
        map_of_models_one_not_moved_bad, map_of_models_all_moved_ok)
