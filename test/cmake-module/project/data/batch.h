#pragma once
#include <torch/torch.h>
at::Tensor batch(at::Tensor x);
