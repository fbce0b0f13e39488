/// Stand-in for ATen/cuda/PhiloxCudaState.h of PyTorch 2.
#pragma once

#include <ATen/cuda/CUDAGeneratorImpl.h>
