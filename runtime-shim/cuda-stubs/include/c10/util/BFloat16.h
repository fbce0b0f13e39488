// In front of LibTorch's c10/util/BFloat16.h, which brings CUDA's bfloat16 numbers to CUDA's compiler only.
#pragma once

#if defined(__CUDA__) && !defined(__CUDACC__)
#include <cuda_bf16.h>
#endif

#include_next <c10/util/BFloat16.h>
