#include "../cases.h"

// A residual block whose shortcut is an empty Sequential, registered only when it has layers.
#include <torch/torch.h>

using torch::Tensor;
namespace nn = torch::nn;

struct BlockImpl : nn::Module {
  nn::Linear body{nullptr};
  nn::Sequential shortcut;
  BlockImpl(nn::Sequential way, bool keeps) : shortcut(way) {
    body = register_module("body", nn::Linear(4, 4));
    if (keeps && !shortcut->is_empty())
      register_module("shortcut", shortcut);
  }
  Tensor forward(Tensor x) {
    Tensor rest = x;
    if (!shortcut->is_empty())
      rest = shortcut->forward(rest);
    return body(x) + rest;
  }
};
TORCH_MODULE(Block);

void registered_when_filled_ok() {
  nn::Sequential layers;
  layers->push_back(Block(nn::Sequential(nn::Linear(4, 4)), true));
  for (int i = 0; i < 3; ++i)
    layers->push_back(Block(nn::Sequential(), true));
  layers->to(torch::kCUDA);
  layers->forward(torch::ones({2, 4}, torch::kCUDA));
}
void empty_and_unregistered_ok() {
  Block block(nn::Sequential(), false);
  block->to(torch::kCUDA);
  block->forward(torch::ones({2, 4}, torch::kCUDA));
}

DT_MAIN(registered_when_filled_ok, empty_and_unregistered_ok)
