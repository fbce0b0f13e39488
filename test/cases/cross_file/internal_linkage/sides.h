#pragma once
#include <torch/torch.h>

torch::Tensor hostSide();
