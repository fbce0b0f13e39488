#include "sparse_matrix.h"

namespace sparselin {

CsrMatrix CsrMatrix::to(torch::Device device) const {
  return {rowptr.to(device), col.to(device), values.to(device), rows, cols};
}

CsrMatrix from_coo(const torch::Tensor &row, const torch::Tensor &col, const torch::Tensor &values, int64_t rows,
                   int64_t cols) {
  TORCH_CHECK(row.is_cuda() && col.is_cuda() && values.is_cuda(), "from_coo: expected CUDA tensors");
  TORCH_CHECK(row.numel() == values.numel(), "from_coo: ", row.numel(), " rows for ", values.numel(), " values");
  const auto order = row.argsort();
  const auto sorted = row.index_select(0, order).to(torch::kInt).contiguous();
  auto rowptr = torch::empty({rows + 1}, sorted.options());
  TORCH_CUDASPARSE_CHECK(cusparseXcoo2csr(at::cuda::getCurrentCUDASparseHandle(), sorted.data_ptr<int>(), // [[device-missing-guard]]
                                          static_cast<int>(sorted.numel()), static_cast<int>(rows),
                                          rowptr.data_ptr<int>(), CUSPARSE_INDEX_BASE_ZERO));
  return {rowptr, col.index_select(0, order).to(torch::kInt), values.index_select(0, order), rows, cols};
}

CsrMatrix from_coo_sorted(const torch::Tensor &row, const torch::Tensor &col, const torch::Tensor &values, int64_t rows,
                          int64_t cols) {
  TORCH_CHECK(values.is_cuda(), "from_coo_sorted: expected CUDA tensors");
  const at::DeviceGuard guard(values.device());
  const auto sorted = row.to(torch::kInt).contiguous();
  auto rowptr = torch::empty({rows + 1}, torch::dtype(torch::kInt).device(torch::kCUDA));
  TORCH_CUDASPARSE_CHECK(cusparseXcoo2csr(at::cuda::getCurrentCUDASparseHandle(), sorted.data_ptr<int>(),
                                          static_cast<int>(sorted.numel()), static_cast<int>(rows),
                                          rowptr.data_ptr<int>(), CUSPARSE_INDEX_BASE_ZERO));
  return {rowptr, col.to(torch::kInt), values, rows, cols};
}

CsrMatrix identity(int64_t n, torch::Device device) {
  const auto ints = torch::dtype(torch::kInt).device(device);
  return {torch::arange(n + 1, ints), torch::arange(n, ints), torch::ones({n}, torch::device(device)), n, n};
}

/// The positions of a band matrix are made where they are cheap, on the host, and moved once.
CsrMatrix banded(int64_t n, int64_t width, const torch::Tensor &like) {
  std::vector<int> rowptr{0}, col;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = std::max<int64_t>(0, i - width); j <= std::min(n - 1, i + width); ++j)
      col.push_back(static_cast<int>(j));
    rowptr.push_back(static_cast<int>(col.size()));
  }
  const auto count = static_cast<int64_t>(col.size());
  auto host_col = torch::from_blob(col.data(), {count}, torch::kInt).clone();
  auto host_ptr = torch::from_blob(rowptr.data(), {n + 1}, torch::kInt).clone();
  CsrMatrix m{host_ptr, host_col, torch::ones({count}), n, n};
  return m.to(like.device());
}

torch::Tensor spmm(const CsrMatrix &a, torch::Tensor dense) {
  TORCH_CHECK(a.device() == dense.device(), "spmm: matrix on ", a.device(), ", dense on ", dense.device());
  const c10::cuda::CUDAGuard guard(a.device());
  dense = dense.contiguous();
  auto out = torch::empty({a.rows, dense.size(1)}, dense.options());
  const Descriptor descr(a);
  cusparseDnMatDescr_t in_descr, out_descr;
  TORCH_CUDASPARSE_CHECK(cusparseCreateDnMat(&in_descr, dense.size(0), dense.size(1), dense.size(1),
                                             dense.data_ptr<float>(), CUDA_R_32F, CUSPARSE_ORDER_ROW));
  TORCH_CUDASPARSE_CHECK(cusparseCreateDnMat(&out_descr, out.size(0), out.size(1), out.size(1), out.data_ptr<float>(),
                                             CUDA_R_32F, CUSPARSE_ORDER_ROW));
  const float alpha = 1, beta = 0;
  size_t bytes = 0;
  auto handle = at::cuda::getCurrentCUDASparseHandle();
  TORCH_CUDASPARSE_CHECK(cusparseSpMM_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                                 CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha, descr.get(), in_descr, &beta,
                                                 out_descr, CUDA_R_32F, CUSPARSE_SPMM_CSR_ALG2, &bytes));
  auto workspace = torch::empty({static_cast<int64_t>(bytes)}, dense.options().dtype(torch::kByte));
  TORCH_CUDASPARSE_CHECK(cusparseSpMM(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, CUSPARSE_OPERATION_NON_TRANSPOSE, &alpha,
                                      descr.get(), in_descr, &beta, out_descr, CUDA_R_32F, CUSPARSE_SPMM_CSR_ALG2,
                                      workspace.data_ptr()));
  cusparseDestroyDnMat(in_descr);
  cusparseDestroyDnMat(out_descr);
  return out;
}

torch::Tensor row_degrees(const CsrMatrix &a) {
  return a.rowptr.slice(0, 1) - a.rowptr.slice(0, 0, a.rowptr.size(0) - 1);
}

torch::Tensor normalize_rows(const CsrMatrix &a) {
  const auto degrees = row_degrees(a).to(torch::kLong);
  const auto row = torch::repeat_interleave(torch::arange(a.rows, degrees.options()), degrees);
  auto sums = torch::zeros({a.rows}, torch::kFloat);
  sums = sums.index_add(0, row, a.values.abs()); // [[device-mixed-op]]
  return a.values / sums.index_select(0, row).clamp_min(1e-12);
}

SparseLinear::SparseLinear(CsrMatrix weight, torch::Tensor bias, torch::Device device)
    : device_(device), weight_(weight.to(device)), bias_(bias.to(device)) {
  TORCH_CHECK(device_.is_cuda() && device_.has_index(), "SparseLinear needs cuda:N, got ", device_);
  TORCH_CHECK(bias_.numel() == weight_.rows);
}

torch::Tensor SparseLinear::forward(const torch::Tensor &x) {
  auto input = x.to(device_);
  return spmm(weight_, input.t()).t() + bias_;
}

torch::Tensor SparseLinear::forward_dense(const torch::Tensor &x) {
  if (!dense_) {
    const auto degrees = row_degrees(weight_).to(torch::kLong);
    const auto row = torch::repeat_interleave(torch::arange(weight_.rows, degrees.options()), degrees);
    auto dense = torch::zeros({weight_.rows, weight_.cols}, weight_.values.options());
    dense.index_put_({row, weight_.col.to(torch::kLong)}, weight_.values);
    dense_ = dense;
  }
  return torch::addmm(bias_, x.to(device_), dense_->t());
}

int64_t SparseLinear::longest_row() const {
  const auto rowptr = weight_.rowptr.accessor<int, 1>();
  int64_t longest = 0;
  for (int64_t i = 0; i < weight_.rows; ++i)
    longest = std::max<int64_t>(longest, rowptr[i + 1] - rowptr[i]); // [[device-host-access]]
  return longest;
}

int64_t SparseLinear::count_empty_rows() const {
  const auto rowptr = weight_.rowptr.cpu();
  const int *starts = rowptr.data_ptr<int>();
  int64_t empty = 0;
  for (int64_t i = 0; i < weight_.rows; ++i)
    empty += starts[i + 1] == starts[i];
  return empty;
}

torch::Tensor SparseLinear::prune_mask(double threshold) const {
  const auto limit = torch::tensor(threshold, torch::kFloat);
  return weight_.values.abs() > limit;
}

void SparseLinear::clip_rows(const torch::Tensor &limits) {
  TORCH_CHECK(limits.numel() == weight_.rows);
  const auto degrees = row_degrees(weight_).to(torch::kLong);
  const auto bound = torch::repeat_interleave(limits.to(device_), degrees);
  weight_.values = torch::min(torch::max(weight_.values, -bound), bound);
  dense_.reset();
}

} // namespace sparselin
