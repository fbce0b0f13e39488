// Stand-in for a header of CUDA.
#pragma once

#include "cuda_fp16.h"
