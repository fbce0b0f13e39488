// Layers that join a Sequential or a list after it was moved.
#include "../cases.h"
#include <torch/torch.h>

namespace {

struct ScaleImpl : torch::nn::Module {
  explicit ScaleImpl(int64_t n) { w = register_parameter("w", torch::ones({n})); }
  torch::Tensor forward(torch::Tensor x) { return x * w; } // [[device-mixed-op]]
  torch::Tensor w;
};
TORCH_MODULE(Scale);

struct ShiftImpl : torch::nn::Module {
  explicit ShiftImpl(int64_t n) { w = register_parameter("w", torch::ones({n})); }
  torch::Tensor forward(torch::Tensor x) { return x + w; }
  torch::Tensor w;
};
TORCH_MODULE(Shift);

// A module that is made of another one is no second handle on it.
struct HeadImpl : torch::nn::Module {
  explicit HeadImpl(torch::nn::Linear backbone) : backbone(register_module("backbone", backbone)) {
    fc = register_module("fc", torch::nn::Linear(4, 2));
  }
  torch::Tensor forward(torch::Tensor x) { return fc(backbone(x)); }
  torch::nn::Linear backbone, fc{nullptr};
};
TORCH_MODULE(Head);

struct TowerImpl : torch::nn::SequentialImpl {
  explicit TowerImpl(int64_t n) : SequentialImpl(torch::nn::Linear(n, n), torch::nn::ReLU()) {}
};

} // namespace

void after_one_layer_bad() {
  torch::nn::Sequential layers{torch::nn::Linear(4, 4)};
  layers->to(torch::kCUDA);
  layers->push_back(Scale(4));
  layers->forward(torch::ones({1, 4}, torch::kCUDA));
}

void after_one_layer_ok() {
  torch::nn::Sequential layers{torch::nn::Linear(4, 4)};
  layers->push_back(Shift(4));
  layers->to(torch::kCUDA);
  layers->forward(torch::ones({1, 4}, torch::kCUDA));
}

void another_handle_ok() {
  torch::nn::Sequential layers(torch::nn::Linear(4, 4));
  torch::nn::Sequential same(layers);
  same->push_back(Shift(4));
  layers->to(torch::kCUDA);
  same->forward(torch::ones({1, 4}, torch::kCUDA));
}

void another_handle_bad() {
  torch::nn::Sequential layers(torch::nn::Linear(4, 4));
  torch::nn::Sequential same(layers);
  layers->to(torch::kCUDA);
  same->forward(torch::ones({1, 4})); // [[device-mixed-op]]
}

void made_of_a_module_bad() {
  torch::nn::Linear backbone(4, 4);
  Head head(backbone);
  backbone->to(torch::kCUDA);
  torch::Tensor features = backbone(torch::ones({1, 4}, torch::kCUDA));
  head->fc->forward(features); // [[device-mixed-op]]
}

void made_of_a_module_ok() {
  torch::nn::Linear backbone(4, 4);
  Head head(backbone);
  head->to(torch::kCUDA);
  torch::Tensor features = backbone(torch::ones({1, 4}, torch::kCUDA));
  head->fc->forward(features);
}

void made_with_layers_bad() {
  auto layers = std::make_shared<torch::nn::SequentialImpl>(torch::nn::Linear(4, 4), torch::nn::ReLU());
  layers->to(torch::kCUDA);
  layers->forward(torch::ones({1, 4})); // [[device-mixed-op]]
}

void made_with_layers_ok() {
  auto layers = std::make_shared<torch::nn::SequentialImpl>(torch::nn::Linear(4, 4), torch::nn::ReLU());
  layers->to(torch::kCUDA);
  layers->forward(torch::ones({1, 4}, torch::kCUDA));
}

void base_with_layers_bad() {
  TowerImpl tower(4);
  tower.to(torch::kCUDA);
  tower.forward(torch::ones({1, 4})); // [[device-mixed-op]]
}

void base_with_layers_ok() {
  TowerImpl tower(4);
  tower.to(torch::kCUDA);
  tower.forward(torch::ones({1, 4}, torch::kCUDA));
}

DT_MAIN(after_one_layer_bad, after_one_layer_ok, another_handle_ok, another_handle_bad, made_of_a_module_bad,
        made_of_a_module_ok, made_with_layers_bad, made_with_layers_ok, base_with_layers_bad, base_with_layers_ok)
