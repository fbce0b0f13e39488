#pragma once
#include <torch/torch.h>

torch::Tensor lossOf(torch::Tensor logits, torch::Tensor target);
