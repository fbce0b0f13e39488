#pragma once
#include <torch/torch.h>

namespace losses {
torch::Tensor focal(const torch::Tensor &logits, const torch::Tensor &target);
torch::Tensor dice(const torch::Tensor &logits, const torch::Tensor &target);
torch::Tensor weighted(const torch::Tensor &logits, const torch::Tensor &target);
} // namespace losses
