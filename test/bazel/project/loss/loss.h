#pragma once
#include <torch/torch.h>

at::Tensor loss(at::Tensor scores, at::Tensor labels);
