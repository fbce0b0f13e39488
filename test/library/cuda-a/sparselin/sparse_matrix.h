#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/Exceptions.h>
#include <c10/cuda/CUDAGuard.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cusparse.h>
#include <torch/torch.h>

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace sparselin {

/// Compressed rows; all three tensors are on one device.
struct CsrMatrix {
  torch::Tensor rowptr, col, values;
  int64_t rows = 0, cols = 0;

  int64_t nnz() const { return values.numel(); }
  torch::Device device() const { return values.device(); }
  CsrMatrix to(torch::Device device) const;
};

class Descriptor {
public:
  explicit Descriptor(const CsrMatrix &m) {
    TORCH_CUDASPARSE_CHECK(cusparseCreateCsr(&descr_, m.rows, m.cols, m.nnz(), m.rowptr.data_ptr<int>(),
                                             m.col.data_ptr<int>(), m.values.data_ptr<float>(), CUSPARSE_INDEX_32I,
                                             CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
  }
  ~Descriptor() { cusparseDestroySpMat(descr_); }
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  cusparseSpMatDescr_t get() const { return descr_; }

private:
  cusparseSpMatDescr_t descr_ = nullptr;
};

/// One handle per device, made when a device is first used.
class HandlePool {
public:
  static HandlePool &instance();
  cublasHandle_t blas();

private:
  std::mutex mutex_;
  std::unordered_map<int, cublasHandle_t> blas_;
};

CsrMatrix from_coo(const torch::Tensor &row, const torch::Tensor &col, const torch::Tensor &values, int64_t rows,
                   int64_t cols);
CsrMatrix from_coo_sorted(const torch::Tensor &row, const torch::Tensor &col, const torch::Tensor &values, int64_t rows,
                          int64_t cols);
CsrMatrix identity(int64_t n, torch::Device device);
CsrMatrix banded(int64_t n, int64_t width, const torch::Tensor &like);
torch::Tensor spmm(const CsrMatrix &a, torch::Tensor dense);
torch::Tensor row_degrees(const CsrMatrix &a);
torch::Tensor normalize_rows(const CsrMatrix &a);

class SparseLinear {
public:
  SparseLinear(CsrMatrix weight, torch::Tensor bias, torch::Device device);

  torch::Tensor forward(const torch::Tensor &x);
  torch::Tensor forward_dense(const torch::Tensor &x);
  int64_t longest_row() const;
  int64_t count_empty_rows() const;
  torch::Tensor prune_mask(double threshold) const;
  void clip_rows(const torch::Tensor &limits);

private:
  torch::Device device_;
  CsrMatrix weight_;
  torch::Tensor bias_;
  std::optional<torch::Tensor> dense_;
};

torch::Tensor gemm(const torch::Tensor &a, const torch::Tensor &b);
torch::Tensor gemm_pooled(const torch::Tensor &a, const torch::Tensor &b);
torch::Tensor gemm_private(const torch::Tensor &a, const torch::Tensor &b);
torch::Tensor gemm_batched(const torch::Tensor &a, const torch::Tensor &b);
void axpy_(torch::Tensor y, const torch::Tensor &x, const torch::Tensor &alpha);
torch::Tensor ridge(const torch::Tensor &gram, double lambda);
torch::Tensor spectral_norm(const torch::Tensor &a, int iterations);
torch::Tensor adopt_values(const float *device_values, int64_t count, int device);
torch::Tensor device_scratch(int64_t count, double fill);

} // namespace sparselin
