// Stand-in for a header of CUDA.
#pragma once

#include "cuda_bf16.h"
