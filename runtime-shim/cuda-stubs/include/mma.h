// Stand-in for CUDA's mma.h: products of matrices in kernels.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"

#ifdef __cplusplus
namespace nvcuda {
namespace wmma {

struct matrix_a {};
struct matrix_b {};
struct accumulator {};
struct row_major {};
struct col_major {};
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32 {};
struct u4 {};
struct s4 {};
struct b1 {};
} // namespace precision
namespace experimental {
namespace precision = wmma::precision;
enum bmmaBitOp { bmmaBitOpXOR = 1, bmmaBitOpAND = 2 };
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
} // namespace experimental

template <typename Use, int M, int N, int K, typename T, typename Layout = void> struct fragment {
  static constexpr int num_elements = M * K;
  T x[num_elements];
};
template <typename... Arguments> __host__ __device__ void load_matrix_sync(Arguments &&...);
template <typename... Arguments> __host__ __device__ void store_matrix_sync(Arguments &&...);
template <typename... Arguments> __host__ __device__ void fill_fragment(Arguments &&...);
template <typename... Arguments> __host__ __device__ void mma_sync(Arguments &&...);
template <typename... Arguments> __host__ __device__ void bmma_sync(Arguments &&...);
__host__ __device__ float __float_to_tf32(float value);

} // namespace wmma
} // namespace nvcuda
#endif
