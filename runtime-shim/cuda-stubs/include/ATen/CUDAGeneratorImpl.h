/// Stand-in for ATen/CUDAGeneratorImpl.h of PyTorch 1.6 to 1.9.
#pragma once

#include <ATen/cuda/CUDAGeneratorImpl.h>
