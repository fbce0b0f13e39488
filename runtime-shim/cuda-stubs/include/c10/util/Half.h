// In front of LibTorch's c10/util/Half.h, which brings CUDA's half precision numbers to CUDA's compiler only.
#pragma once

#if defined(__CUDA__) && !defined(__CUDACC__)
#include <cuda_fp16.h>
#endif

#include_next <c10/util/Half.h>
