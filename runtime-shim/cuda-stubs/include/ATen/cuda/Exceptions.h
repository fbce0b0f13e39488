/// Stand-in for ATen/cuda/Exceptions.h of PyTorch.
#pragma once

#include <c10/cuda/CUDAException.h>

#include <cublas_v2.h>
#include <cusolverDn.h>
#include <cusparse.h>

#define AT_CUDA_CHECK(EXPR) C10_CUDA_CHECK(EXPR)

#define TORCH_CUDABLAS_CHECK(EXPR)                                                                           \
  TORCH_CHECK((EXPR) == CUBLAS_STATUS_SUCCESS, "CUDA error of cuBLAS: " #EXPR)
#define TORCH_CUDASPARSE_CHECK(EXPR)                                                                         \
  TORCH_CHECK((EXPR) == CUSPARSE_STATUS_SUCCESS, "CUDA error of cuSPARSE: " #EXPR)
#define TORCH_CUSOLVER_CHECK(EXPR)                                                                           \
  TORCH_CHECK((EXPR) == CUSOLVER_STATUS_SUCCESS, "CUDA error of cuSOLVER: " #EXPR)
