#pragma once
#include <torch/types.h>

torch::Tensor lossOf(torch::Tensor prediction, torch::Tensor target);
