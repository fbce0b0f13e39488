#pragma once
#include <torch/torch.h>

void report(at::Tensor loss);
