#include "sparse_matrix.h"

namespace sparselin {

HandlePool &HandlePool::instance() {
  static HandlePool pool;
  return pool;
}

cublasHandle_t HandlePool::blas() {
  int device = 0;
  C10_CUDA_CHECK(cudaGetDevice(&device));
  const std::lock_guard<std::mutex> lock(mutex_);
  auto &handle = blas_[device];
  if (!handle) {
    TORCH_CUDABLAS_CHECK(cublasCreate(&handle));
    TORCH_CUDABLAS_CHECK(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));
  }
  TORCH_CUDABLAS_CHECK(cublasSetStream(handle, at::cuda::getCurrentCUDAStream()));
  return handle;
}

namespace {

void check_shapes(const torch::Tensor &a, const torch::Tensor &b) {
  TORCH_CHECK(a.is_cuda() && b.is_cuda(), "gemm: expected CUDA tensors");
  TORCH_CHECK(a.device() == b.device(), "gemm: operands on ", a.device(), " and ", b.device());
  TORCH_CHECK(a.size(-1) == b.size(-2), "gemm: shapes do not match");
  TORCH_CHECK(a.is_contiguous() && b.is_contiguous(), "gemm: expected contiguous operands");
}

// Row-major C = A B as column-major C' = B' A'.
void sgemm_raw(cublasHandle_t handle, int m, int n, int k, const float *a, const float *b, float *c) {
  const float alpha = 1.f, beta = 0.f;
  TORCH_CUDABLAS_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &alpha, b, n, a, k, &beta, c, n));
}

} // namespace

torch::Tensor gemm(const torch::Tensor &a, const torch::Tensor &b) {
  check_shapes(a, b);
  const int m = a.size(0), n = b.size(1), k = a.size(1);
  auto c = torch::empty({m, n}, a.options());
  const float alpha = 1.f, beta = 0.f;
  auto handle = at::cuda::getCurrentCUDABlasHandle();
  TORCH_CUDABLAS_CHECK(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &alpha, b.data_ptr<float>(), n, // [[device-missing-guard]]
                                   a.data_ptr<float>(), k, &beta, c.data_ptr<float>(), n));
  return c;
}

torch::Tensor gemm_pooled(const torch::Tensor &a, const torch::Tensor &b) {
  check_shapes(a, b);
  const c10::cuda::CUDAGuard guard(b.device());
  auto c = torch::empty({a.size(0), b.size(1)}, a.options());
  sgemm_raw(HandlePool::instance().blas(), a.size(0), b.size(1), a.size(1), a.data_ptr<float>(), b.data_ptr<float>(),
            c.data_ptr<float>());
  return c;
}

torch::Tensor gemm_private(const torch::Tensor &a, const torch::Tensor &b) {
  check_shapes(a, b);
  cublasHandle_t handle = nullptr;
  TORCH_CUDABLAS_CHECK(cublasCreate(&handle));
  const c10::cuda::CUDAGuard guard(a.device());
  const int m = a.size(0), n = b.size(1), k = a.size(1);
  auto c = torch::empty({m, n}, a.options());
  const float alpha = 1.f, beta = 0.f;
  const auto status = cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &alpha, b.data_ptr<float>(), n, // [[device-lost-index]]
                                  a.data_ptr<float>(), k, &beta, c.data_ptr<float>(), n);
  cublasDestroy(handle);
  TORCH_CHECK(status == CUBLAS_STATUS_SUCCESS, "cublasSgemm failed: ", cublasGetStatusString(status));
  return c;
}

torch::Tensor gemm_batched(const torch::Tensor &a, const torch::Tensor &b) {
  check_shapes(a, b);
  c10::cuda::OptionalCUDAGuard guard;
  guard.set_index(a.get_device());
  const int m = a.size(1), n = b.size(2), k = a.size(2), batch = a.size(0);
  auto c = torch::empty({batch, m, n}, a.options());
  const float alpha = 1.f, beta = 0.f;
  TORCH_CUDABLAS_CHECK(cublasSgemmStridedBatched(
      at::cuda::getCurrentCUDABlasHandle(), CUBLAS_OP_N, CUBLAS_OP_N, n, m, k, &alpha, b.data_ptr<float>(), n,
      static_cast<long long>(n) * k, a.data_ptr<float>(), k, static_cast<long long>(m) * k, &beta, c.data_ptr<float>(), n,
      static_cast<long long>(m) * n, batch));
  return c;
}

/// `alpha` is a number on the host: cuBLAS reads it from there.
void axpy_(torch::Tensor y, const torch::Tensor &x, const torch::Tensor &alpha) {
  TORCH_CHECK(y.is_cuda() && x.device() == y.device() && x.sizes() == y.sizes());
  TORCH_CHECK(alpha.device().is_cpu() && alpha.numel() == 1, "axpy_: alpha must be one number on the host");
  const c10::cuda::CUDAGuard guard(y.device());
  TORCH_CUDABLAS_CHECK(cublasSaxpy(at::cuda::getCurrentCUDABlasHandle(), static_cast<int>(y.numel()),
                                   alpha.data_ptr<float>(), x.data_ptr<float>(), 1, y.data_ptr<float>(), 1));
}

torch::Tensor ridge(const torch::Tensor &gram, double lambda) {
  static std::unordered_map<int64_t, torch::Tensor> eyes;
  auto &eye = eyes[gram.size(0)];
  if (!eye.defined())
    eye = torch::eye(gram.size(0), gram.options());
  return gram + lambda * eye; // [[device-mixed-op]]
}

torch::Tensor spectral_norm(const torch::Tensor &a, int iterations) {
  auto u = torch::ones({a.size(0)}, a.options());
  u = u / u.norm();
  torch::Tensor v;
  for (int i = 0; i < iterations; ++i) {
    v = torch::mv(a.t(), u);
    v = v / v.norm().clamp_min(1e-12);
    u = torch::mv(a, v);
    u = u / u.norm().clamp_min(1e-12);
  }
  return torch::dot(u, torch::mv(a, v)).cpu();
}

torch::Tensor adopt_values(const float *device_values, int64_t count, int device) {
  const auto options = torch::dtype(torch::kFloat).device(torch::kCUDA, static_cast<c10::DeviceIndex>(device));
  return torch::from_blob(const_cast<float *>(device_values), {count}, options).clone();
}

torch::Tensor device_scratch(int64_t count, double fill) {
  float *memory = nullptr;
  C10_CUDA_CHECK(cudaMalloc(&memory, count * sizeof(float)));
  auto scratch = torch::from_blob(memory, {count}, [](void *p) { cudaFree(p); }, torch::kFloat); // [[device-host-access]]
  scratch.fill_(fill);
  return scratch;
}

} // namespace sparselin

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace {
using namespace sparselin;
using dtl::gpu;
CsrMatrix eye(int i = 1) { return identity(4, dtl::dev(i)); }
SparseLinear layer() { return SparseLinear(identity(4, torch::kCPU), torch::zeros({4}), dtl::dev(1)); }
void from_coo_bad() { from_coo(dtl::longs({5}), dtl::longs({5}), gpu({5}), 4, 4); }
void from_coo_sorted_ok() { from_coo_sorted(dtl::longs({5}), dtl::longs({5}), gpu({5}), 4, 4); }
void banded_ok() { auto m = banded(5, 1, gpu({2})); dtl::require(m.col.is_cuda(), "col"); }
void spmm_ok() { spmm(eye(), gpu({4, 3})); }
void normalize_bad() { normalize_rows(eye()); }
void forward_ok() { layer().forward(torch::rand({2, 4})); }
void forward_dense_ok() { auto l = layer(); l.forward_dense(torch::rand({2, 4})); l.forward_dense(gpu({2, 4}, 0)); }
void longest_row_bad() { layer().longest_row(); }
void empty_rows_ok() { dtl::require(layer().count_empty_rows() == 0, "rows"); }
void prune_mask_ok() { layer().prune_mask(.1); }
void clip_rows_ok() { layer().clip_rows(torch::ones({4})); }
void gemm_bad() { gemm(gpu({4, 3}), gpu({3, 2})); }
void gemm_pooled_ok() { gemm_pooled(gpu({4, 3}), gpu({3, 2})); gemm_pooled(gpu({4, 3}, 2), gpu({3, 2}, 2)); }
void gemm_private_bad() { gemm_private(gpu({4, 3}), gpu({3, 2})); }
void gemm_batched_ok() { gemm_batched(gpu({2, 4, 3}), gpu({2, 3, 2})); }
void axpy_ok() { axpy_(gpu({4}), gpu({4}), torch::full({}, 2.f)); }
void ridge_bad() { ridge(gpu({4, 4}, 0), .1); ridge(gpu({4, 4}, 1), .1); }
void spectral_norm_ok() { spectral_norm(gpu({4, 3}), 3); }
void adopt_ok() { auto x = gpu({4}); adopt_values(x.data_ptr<float>(), 4, 1); }
void scratch_bad() { device_scratch(4, 1); }
} // namespace
DT_MAIN(from_coo_bad, from_coo_sorted_ok, banded_ok, spmm_ok, normalize_bad, forward_ok, forward_dense_ok,
        longest_row_bad, empty_rows_ok, prune_mask_ok, clip_rows_ok, gemm_bad, gemm_pooled_ok, gemm_private_bad, gemm_batched_ok,
        axpy_ok, ridge_bad, spectral_norm_ok, adopt_ok, scratch_bad)
#endif
