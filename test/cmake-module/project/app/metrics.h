#pragma once
#include <torch/torch.h>
at::Tensor metric(at::Tensor x);
