// Blocks that hold copies of blocks, made in a loop: how deep they nest is not known, and the program goes on
// after them.
#include <torch/torch.h>

#include "../cases.h"

struct NestedBlockImpl : torch::nn::Module {
  NestedBlockImpl() = default;
  NestedBlockImpl(NestedBlockImpl &inner, bool isInnermost) {
    layers->push_back(torch::nn::Linear(4, 4));
    if (!isInnermost)
      layers->push_back(inner);
    layers->push_back(torch::nn::ReLU());
    register_module("layers", layers);
  }
  torch::Tensor forward(torch::Tensor x) { return x + layers->forward(x); }
  torch::nn::Sequential layers;
};
TORCH_MODULE(NestedBlock);

struct NestImpl : torch::nn::Module {
  explicit NestImpl(int depth) {
    NestedBlockImpl blocks, none;
    blocks = NestedBlockImpl(none, true);
    for (int i = 0; i < depth; i++)
      blocks = NestedBlockImpl(blocks, false);
    model->push_back(blocks);
    register_module("model", model);
  }
  torch::Tensor forward(torch::Tensor x) { return model->forward(x); }
  torch::nn::Sequential model;
};
TORCH_MODULE(Nest);

void use(int depth) {
  Nest nest(depth);
  nest->to(torch::kCUDA);
  auto out = nest->forward(torch::ones({1, 4}, torch::kCUDA));
  (void)out;
}

void after_the_nest_bad() {
  use(3);
  auto sum = torch::ones({2}, torch::kCUDA) + torch::ones({2}); // [[device-mixed-op]]
  (void)sum;
}

void after_the_nest_ok() {
  use(3);
  auto sum = torch::ones({2}, torch::kCUDA) + torch::ones({2}, torch::kCUDA);
  (void)sum;
}

// Inlined, so that nothing but the nest ends the function.
void unknown_depth(int depth) {
  Nest nest(depth);
  nest->to(torch::kCUDA);
  nest->forward(torch::ones({1, 4}, torch::kCUDA));
  auto sum = torch::ones({2}, torch::kCUDA) + torch::ones({2}); // [[device-mixed-op]]
  (void)sum;
}

void unknown_depth_bad() { unknown_depth(4); }

DT_MAIN(after_the_nest_bad, after_the_nest_ok, unknown_depth_bad)
