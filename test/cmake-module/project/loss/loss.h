#pragma once
#include <torch/torch.h>
// An edit
at::Tensor loss(at::Tensor x, at::Tensor y);
